//! From objects to the engine and back: lower objects to changes of the state, raise decisions to
//! writes and views, and say in sentences what was decided and why.
//!
//! It reads no file and no clock, and writes nothing: what it is given are objects, what it gives
//! back are values. Parsing is left to `phalanx-objects`, printing to the command.
//!
//! The way through: [`World::absorb`](world::World::absorb) takes objects in, [`plan::plan`]
//! decides, and [`view`] shows the plan or [`raise`] writes it. [`edit`] changes the world to ask
//! what if, [`cure`] finds the edits that would help, [`audit`] judges the writes, and [`mask`] hides
//! names.

pub mod audit;
mod compat;
pub mod control;
pub mod cure;
mod deadlock;
pub mod diff;
pub mod edit;
mod finding;
pub mod lint;
mod lower;
pub mod mask;
pub mod plan;
pub mod raise;
pub mod status;
pub mod view;
pub mod words;
pub mod world;

pub use compat::{Allocator, Compat, CompatError, Gate, Plugin, Version};
pub use finding::{Finding, Severity, Source};
pub use lower::{
    ClaimInfo, ClaimName, DeviceInfo, Failing, Gone, GroupInfo, GroupOwner, Lowering, ObjectEvent,
    PodInfo, RoleInfo, SpecText,
};
