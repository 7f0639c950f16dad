//! `cargo xtask fuzz cel`: more of the texts that the crate's own test makes by chance.
//!
//! The test is the fuzzer, in optimised form; here it is given a seed and a number of runs. A
//! failure prints the text: it belongs into `crates/cel/corpus/expressions.txt`, which the test
//! replays.

use clap::ValueEnum;

use crate::run::{Done, cargo, show};

/// What is fuzzed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Target {
    /// The parser, checker, estimator and evaluator of CEL.
    Cel,
}

/// Runs the test with so many texts from a seed.
pub(crate) fn run(target: Target, runs: u64, seed: u64) -> Done {
    let (package, test) = match target {
        Target::Cel => ("phalanx-cel", "texts_made_by_chance"),
    };
    let mut command =
        cargo(&["test", "--release", "--locked", "--package", package, test, "--", "--nocapture"]);
    command.env("PHALANX_FUZZ_RUNS", runs.to_string());
    command.env("PHALANX_FUZZ_SEED", seed.to_string());
    show(&format!("{runs} texts for {package} from seed {seed}"), &mut command)
}
