//! `cargo xtask fuzz TARGET`: more of what a crate's own test makes by chance.
//!
//! The test is the fuzzer, in optimised form; here it is given a seed and a number of runs. A
//! failure prints what did harm: it belongs into the corpus beside the test, which replays it.

use clap::ValueEnum;

use crate::run::{Done, cargo, show};

/// What is fuzzed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Target {
    /// The parser, checker, estimator and evaluator of CEL: texts.
    Cel,
    /// The readers of YAML and JSON: texts.
    Read,
    /// All from objects to the answer: worlds with one harmed object. About ten a second.
    World,
}

/// Runs the test with so many texts or worlds from a seed.
pub(crate) fn run(target: Target, runs: u64, seed: u64) -> Done {
    let (package, test) = match target {
        Target::Cel => ("phalanx-cel", "texts_made_by_chance"),
        Target::Read => ("phalanx-objects", "texts_made_by_chance"),
        Target::World => ("phalanx-cluster", "harmed_by_chance"),
    };
    let mut command =
        cargo(&["test", "--release", "--locked", "--package", package, test, "--", "--nocapture"]);
    command.env("PHALANX_FUZZ_RUNS", runs.to_string());
    command.env("PHALANX_FUZZ_SEED", seed.to_string());
    show(&format!("{runs} of what is made by chance for {package} from seed {seed}"), &mut command)
}
