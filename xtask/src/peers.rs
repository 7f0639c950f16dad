//! `cargo xtask peers`: the real kube-scheduler beside Phalanx, on worlds made by chance.
//!
//! kube-scheduler's default profile is a program in Go over upstream's own module (`xtask/scheduler`);
//! the first build takes minutes, so it is no part of the tests. A difference prints its world's name,
//! whose number is the seed that makes it again.

use std::process::Command;

use crate::run::{Done, cargo, output, root, show};

/// Asks both about so many worlds from a seed.
pub(crate) fn run(runs: u64, seed: u64) -> Done {
    let program = root().join("target/upstream-scheduler");
    let mut build = Command::new("go");
    build.args(["build", "-mod=readonly", "-o"]).arg(&program).arg(".");
    build.current_dir(root().join("xtask/scheduler"));
    output("go build of kube-scheduler's profile", &mut build)?;
    let mut test = cargo(&["test", "--locked", "--package", "phalanx-cluster", "--test", "peers"]);
    test.args(["worlds_made_by_chance", "--", "--nocapture"]);
    test.env("PHALANX_PEER_SCHEDULER", program);
    test.env("PHALANX_PEER_RUNS", runs.to_string()).env("PHALANX_PEER_SEED", seed.to_string());
    show(&format!("{runs} worlds from seed {seed}, asked of kube-scheduler as well"), &mut test)
}
