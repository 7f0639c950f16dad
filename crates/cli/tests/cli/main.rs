//! The command as a user runs it: one process per question.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod cluster;
mod command;
mod common;
mod devices;
mod dumps;
mod examples;
mod layouts;
mod lint;
mod status;
mod why;
