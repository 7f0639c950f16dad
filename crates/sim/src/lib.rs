//! A deterministic world: scenarios and their runner.
//!
//! A scenario is one rule in one file: a small world in a compact notation or as manifests, what is
//! expected of it by hand, and what is said of it, accepted by tool. It is handed over as text and
//! goes the same way as the command's input. Reading files, and judging whether all reasons have
//! their scenarios, is left to the developers' tool and to tests.

mod judge;
mod linted;
mod masked;
mod notation;
mod run;
mod says;
mod scenario;

pub use notation::Ordered;
pub use run::{Outcome, run};
pub use scenario::{
    CompatNote, DeviceOrderNote, Expect, NodeOrderNote, PolicyNote, Scenario, ScenarioError,
};
