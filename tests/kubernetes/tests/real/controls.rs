//! `phalanx controller`, the built command, as deploy/ runs it: with that Deployment's arguments, and the
//! rights of its service account. What it did is judged by what stands on the API server.

pub(crate) mod command;
mod gangs;
mod singles;

pub(crate) use command::{Running, deployed};
