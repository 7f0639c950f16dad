//! What is shown: a plan, or the answer to a why, as one document of the schema.

mod align;
mod build;
mod choice;
mod cures;
mod first;
mod groups;
mod members;
mod mounts;
mod others;
mod places;
mod schema;
mod stay;
mod why;

pub use build::{ViewOptions, account, culprit, node_order, plan_document, request_name};
pub(crate) use build::{claim_reference, counters_of, document_with, home_of, seats_of, who_sits};
pub(crate) use first::first_reason;
pub(crate) use others::is_alike;
pub use schema::*;
pub use why::{checks_on, node_asked, why_document};

#[cfg(test)]
mod tests;
