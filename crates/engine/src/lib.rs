//! The engine: given the state and a policy, decide who runs where, and why the rest wait.
//!
//! It does no IO, reads no clock, draws no chance, writes no log and cannot fail. What it knows
//! came in as [`Change`]s; what it decides goes out as a [`Decision`]. Kubernetes' objects, CEL and
//! words are left to the crate above it.

mod audit;
mod change;
mod check;
mod cost;
mod decide;
mod decision;
mod device;
mod facts;
mod name;
mod part;
mod pods;
mod policy;
mod reason;
mod scored;
mod state;
mod storage;
#[cfg(test)]
mod tests;

pub use audit::{Violation, audit};
pub use change::*;
pub use check::fact::{admits, healed};
pub use cost::*;
pub use decide::{Engine, decide_fresh};
pub use decision::*;
pub use device::best_ring;
pub use facts::*;
pub use name::*;
pub use part::{AnyOf, Part, Parts};
pub use pods::*;
pub use policy::*;
pub use reason::*;
pub use scored::*;
pub use state::{DeviceFree, ScalarLeft, State};
pub use storage::*;
