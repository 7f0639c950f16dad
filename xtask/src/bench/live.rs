//! Pods bound a second on a real API server: `phalanx-kubernetes bench`, which starts the servers, beside
//! the command as it is built.

use crate::run::{Done, cargo, root, show};

/// Builds both in release and measures.
pub(super) fn measure(pods: u32, runs: usize) -> Done {
    let both = ["--package", "phalanx-cli", "--package", "phalanx-kubernetes"];
    let build = ["build", "--release", "--quiet", "--locked", "--bins"];
    show("the command, in release", cargo(&build).args(both))?;
    let args = ["run", "--release", "--quiet", "--locked", "--package", "phalanx-kubernetes", "--"];
    let mut bench = cargo(&args);
    bench.arg("bench").arg("--phalanx").arg(root().join("target/release/phalanx"));
    bench.args(["--pods", &pods.to_string(), "--runs", &runs.to_string()]);
    show("bench live", &mut bench)
}
