//! Small worlds by hand, and brute force over random ones.

mod brute;
mod examples;
mod gathering;
mod joined;
mod packing;
mod pooled;
mod strict;
pub(super) mod world;
mod worst;

pub(super) use world::Chance;
