//! The controller against a small board: what it writes, in which order, and what is left of it when it is
//! stopped at any write, when answers are lost, watches lag, and others write to the same pool.

#[cfg(test)]
#[path = "../chance/mod.rs"]
mod chance;

#[cfg(test)]
mod board;
#[cfg(test)]
mod client;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod gangs;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod rivals;
#[cfg(test)]
mod singles;
#[cfg(test)]
mod tells;
#[cfg(test)]
mod waits;
#[cfg(test)]
mod worlds;
