//! Answers of other programs on real and recorded inputs, which are not part of this repository:
//! the tests look for them where `PHALANX_SHARED` points, and say so where they are left out.

#[cfg(test)]
mod allocator;
#[cfg(test)]
#[path = "../chance/mod.rs"]
mod chance;
#[cfg(test)]
mod chances;
#[cfg(test)]
mod predicates;
#[cfg(test)]
mod question;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod slices;
#[cfg(test)]
mod writes;
#[cfg(test)]
#[path = "../chain/written.rs"]
mod written;
