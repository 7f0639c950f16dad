//! The allocator that kube-scheduler uses, alone, on the same machine in the same run: a program in
//! Go over upstream's own module. Without Go it is left out, and that is said.

use std::process::Command;

use crate::run::{output, root};

/// Pods that it places; it is slow enough that few tell.
const PODS: u32 = 100;

/// Pods a second: the first fit from the top of the list, and with all nodes tried.
pub(crate) fn measure(nodes: u32, devices: u32) -> Result<(f64, f64), String> {
    let dir = root().join("xtask/upstream");
    let program = root().join("target/upstream-allocator");
    let mut build = Command::new("go");
    build.args(["build", "-mod=readonly", "-o"]).arg(&program).arg(".").current_dir(dir);
    output("go build of upstream's allocator", &mut build)?;
    let mut run = Command::new(program);
    run.args([nodes, devices, PODS].map(|n| n.to_string()));
    let text = output("upstream's allocator", &mut run)?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [first, all] => Ok((first, all)),
        _ => Err(format!("upstream's allocator printed `{}`.", text.trim())),
    }
}
