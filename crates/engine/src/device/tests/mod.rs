//! Small worlds by hand, and brute force over random ones.

mod brute;
mod examples;
mod gathering;
mod strict;
pub(super) mod world;

pub(super) use world::Chance;
