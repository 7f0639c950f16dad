//! Kubernetes objects as lean types: only the fields that are read. No IO, no decision: what a field
//! means for placement is for the crates that lower these objects.

pub mod admission;
pub mod core;
mod macros;
pub mod meta;
mod object;
pub mod quantity;
pub mod read;
pub mod resource;
pub mod scheduling;
pub mod storage;
pub mod topology;
pub mod workload;

pub use object::{Kind, Object, ObjectRef};
pub use quantity::Quantity;
pub use read::{Item, Problem, Severity, Source, read};
