//! Tests through the public face, over one device of our own and over hostile text.

mod compiling;
mod costs;
mod evaluating;
mod explaining;
mod fuzz;
mod hostile;
mod libraries;
mod reading;
mod upstream;

use phalanx_objects::resource;

use crate::{COST_LIMIT, CompileError, Device, Environment, Program, Verdict};

pub(super) const DRIVER: &str = "gpu.example.com";

/// An H100 with the attributes and capacities that the tests ask for.
pub(super) fn object() -> resource::Device {
    serde_json::from_str(
        r#"{
            "name": "gpu-0",
            "attributes": {
                "model": {"string": "H100"},
                "index": {"int": 3},
                "healthy": {"bool": true},
                "driverVersion": {"version": "550.54.15+build1"},
                "lanes": {"ints": [16, 8]},
                "modes": {"strings": ["mig", "mps"]},
                "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"}
            },
            "capacity": {"memory": {"value": "80Gi"}, "other.example.com/slots": {"value": "7"}}
        }"#,
    )
    .unwrap()
}

pub(super) fn compile(source: &str) -> Result<Program, CompileError> {
    Program::compile(source, &Environment::default())
}

/// The answer for the H100: `yes`, `no`, or the error's text.
pub(super) fn answer(source: &str) -> String {
    let object = object();
    let device = Device::new(DRIVER, &object).unwrap();
    match compile(source).unwrap().evaluate(&device, COST_LIMIT).verdict {
        Verdict::Yes => "yes".to_owned(),
        Verdict::No => "no".to_owned(),
        Verdict::Error(error) => error.to_string(),
    }
}

/// Programs are compiled once and used by whoever evaluates.
#[test]
fn programs_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Program>();
    shared::<CompileError>();
}
