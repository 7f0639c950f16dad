//! Phalanx against a real control plane: what it reads of an API server, what it writes, and what
//! kube-scheduler says to the same.
//!
//! Without Go and without ready programs these tests say that they are left out.

#![expect(clippy::disallowed_methods, reason = "it stands at the rim: it looks at processes")]
#![expect(clippy::print_stdout, reason = "a test says what it found, and what it left out")]
#![expect(clippy::panic, reason = "what a helper finds wrong fails the test that asked it")]

mod accepts;
mod agrees;
mod answers;
mod board;
mod controls;
mod crashes;
mod ends;
mod kubelets;
mod least;
mod planned;
mod recorded;
mod rights;
mod writer;
