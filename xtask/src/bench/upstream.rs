//! The allocator that kube-scheduler uses, alone, on the same machine in the same run: a program in
//! Go over upstream's own module. Without Go it is left out, and that is said.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{output, root};

/// Pods that it places; it is slow enough that few tell.
const PODS: u32 = 100;

/// Builds the program and answers where it is.
pub(crate) fn build() -> Result<PathBuf, String> {
    let program = root().join("target/upstream-allocator");
    let mut build = Command::new("go");
    build.args(["build", "-mod=readonly", "-o"]).arg(&program).arg(".");
    build.current_dir(root().join("xtask/upstream"));
    output("go build of upstream's allocator", &mut build)?;
    Ok(program)
}

/// Pods a second: the first fit from the top of the list, and with all nodes tried.
pub(crate) fn fill(nodes: u32, devices: u32) -> Result<(f64, f64), String> {
    let mut run = Command::new(build()?);
    run.arg("fill").args([nodes, devices, PODS].map(|n| n.to_string()));
    let text = output("upstream's allocator", &mut run)?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [first, all] => Ok((first, all)),
        _ => Err(format!("upstream's allocator printed `{}`.", text.trim())),
    }
}
