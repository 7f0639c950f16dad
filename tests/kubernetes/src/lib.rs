//! A real control plane for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
//! kwok, on loopback ports of their own in a temporary folder.
//!
//! [`Programs`] finds the programs or builds them with Go, [`Cluster`] starts them, waits until they
//! are ready and ends them. What is asked of the API server is left to the tests.

#![expect(
    clippy::disallowed_methods,
    reason = "it stands at the rim: it starts programs and reads files and variables"
)]

mod audit;
mod cluster;
mod failure;
mod go;
mod guard;
mod identity;
mod kubernetes;
mod parts;
mod ports;
mod programs;
mod until;

pub use audit::Asked;
pub use cluster::{CONTROLLER, Cluster, Setup};
pub use failure::Failure;
pub use identity::Identity;
pub use kubernetes::Kubernetes;
pub use parts::Part;
pub use ports::free as free_port;
pub use programs::Programs;
pub use until::until;
