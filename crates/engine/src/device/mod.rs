//! Devices of one node: which sets a pod's claims may be given, which of them is best, and why none
//! is.
//!
//! Feasibility is that of kube-scheduler's structured allocator for `resource.k8s.io/v1`; among the
//! feasible sets the cheapest is taken, or the first in upstream's order. A node's devices come in
//! as a [`Shape`], which many nodes share; who holds them comes in as a [`Usage`]. Everything here is
//! a function of its arguments: remembering answers is left to the caller, as are nodes, queues and
//! what the object itself says (a fault of a claim is never looked at here).

mod best;
mod bits;
mod capacity;
mod charge;
mod choose;
mod explain;
mod joint;
mod judge;
mod matches;
mod names;
mod overlay;
mod packing;
mod problem;
mod ring;
mod rivals;
mod search;
mod sets;
mod shape;
mod sieve;
mod spans;
mod stock;
#[cfg(test)]
mod tests;
mod twins;
mod unions;
mod units;
mod usage;
mod walk;
mod wear;

pub(crate) use charge::free;
pub(crate) use choose::{Failure, Offer, Pick, Want, choose, free_left};
pub(crate) use judge::{islands, knows_islands, lawful, price};
pub(crate) use matches::Matches;
pub use ring::best_ring;
pub(crate) use rivals::{Rivals, rivals, sets};
pub(crate) use shape::{Here, Shape, View, gather};
pub(crate) use usage::{Held, Usage, UsageKey};
pub(crate) use wear::Toll;
