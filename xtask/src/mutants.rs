//! `cargo xtask mutants`: does any test notice when a check, the device allocator or the CEL
//! evaluator says something else? Too slow for every change; each survivor is either killed by a
//! new test or shown to change nothing.

use crate::run::{Done, cargo, has_subcommand, root, show};

/// The packages and the parts of them whose every line carries a rule.
const PARTS: [(&str, &[&str]); 2] = [
    ("phalanx-engine", &["crates/engine/src/check", "crates/engine/src/device"]),
    (
        "phalanx-cel",
        &["crates/cel/src/eval", "crates/cel/src/estimate", "crates/cel/src/functions"],
    ),
];

/// Runs cargo-mutants once a package, in a copy of the tree.
pub(crate) fn run(more: &[String]) -> Done {
    if !has_subcommand("mutants") {
        return Err("cargo-mutants is not installed; `cargo install --locked cargo-mutants` \
                    installs it."
            .to_owned());
    }
    for (package, parts) in PARTS {
        let globs = globs(parts);
        if globs.is_empty() {
            return Err(format!("Nothing to mutate in {package}: none of {parts:?} exists."));
        }
        let mut command = cargo(&["mutants", "--package", package, "--test-package", package]);
        for glob in globs {
            command.arg("--file").arg(glob);
        }
        command.args(more);
        show(&format!("cargo mutants of {package}"), &mut command)?;
    }
    Ok(())
}

/// A part is a module: a file, a directory, or both.
fn globs(parts: &[&str]) -> Vec<String> {
    let root = root();
    let mut globs = Vec::new();
    for part in parts {
        let file = format!("{part}.rs");
        if root.join(&file).is_file() {
            globs.push(file);
        }
        if root.join(part).is_dir() {
            globs.push(format!("{part}/**/*.rs"));
        }
    }
    globs
}
