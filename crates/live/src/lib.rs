//! Runs the controller of `phalanx-cluster` against a real API server: what the server's watches show
//! becomes events, effects become requests, and what the server says to those becomes events again.
//!
//! It decides nothing and knows no rule of placement. It also reads a cluster once, for who asks about it
//! instead of about files ([`Connection`]).

#![expect(
    clippy::disallowed_methods,
    reason = "it stands at the rim: it reads the clock and starts threads"
)]

mod access;
mod ask;
mod carry;
mod discover;
mod failure;
mod health;
mod logs;
mod metrics;
mod once;
mod queue;
mod run;
mod snapshot;
mod steer;
mod watch;

pub use access::{Access, Cluster};
pub use failure::Failure;
pub use logs::{LogFormat, LogLevel, start as start_logs};
pub use once::Connection;
pub use run::{Options, run};
