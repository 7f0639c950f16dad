//! The controller against a small board: what it writes, in which order, and what is left of it when it is
//! stopped at any write, when answers are lost, watches lag, and others write to the same pool.

#[path = "../chance/mod.rs"]
mod chance;

mod board;
mod client;
mod crashes;
mod gangs;
mod lists;
mod rivals;
mod singles;
mod tells;
mod worlds;
