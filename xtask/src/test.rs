//! `cargo xtask test`: everything that must pass before a change goes in.
//!
//! The tests come last, so that the runner's own summary is what the eye ends on.

use std::path::{Path, PathBuf};

use crate::kubernetes::{self, Version};
use crate::run::{Done, cargo, has_subcommand, root, show};
use crate::source::Tree;
use crate::tidy;

/// Runs it all; the first step that fails ends it.
pub(crate) fn run() -> Done {
    tidy::run()?;
    show("cargo fmt", &mut cargo(&["fmt", "--all", "--check"]))?;
    show(
        "cargo clippy",
        &mut cargo(&[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]),
    )?;
    let shared = shared_data()?;
    // Before the tests, so that their time is theirs.
    kubernetes::build(Version::V1_37)?;
    let doc = &["test", "--quiet", "--workspace", "--locked", "--doc"];
    show("doc tests", with(&mut cargo(doc), shared.as_deref()))?;
    let (title, tests): (_, &[&str]) = if has_subcommand("nextest") {
        ("cargo nextest", &["nextest", "run", "--workspace", "--locked"])
    } else {
        // `--all-targets` leaves the doc tests out: they have run.
        ("cargo test", &["test", "--workspace", "--locked", "--all-targets", "--no-fail-fast"])
    };
    show(title, with(&mut cargo(tests), shared.as_deref()))
}

fn with<'c>(
    command: &'c mut std::process::Command,
    shared: Option<&Path>,
) -> &'c mut std::process::Command {
    if let Some(path) = shared {
        command.env("PHALANX_SHARED", path);
    }
    command
}

/// Where the shared data is, said aloud when it is not there. It may be missing on a developer's
/// machine; `PHALANX_REQUIRE_SHARED=1` makes that a failure.
fn shared_data() -> Result<Option<PathBuf>, String> {
    let root = root();
    let named = std::env::var("PHALANX_SHARED").unwrap_or_else(|_| "../shared".to_owned());
    let path = root.join(named);
    if path.join("data").is_dir() {
        return path.canonicalize().map(Some).map_err(|e| format!("{}: {e}.", path.display()));
    }
    let required = std::env::var("PHALANX_REQUIRE_SHARED").is_ok_and(|v| !v.is_empty() && v != "0");
    if required {
        return Err(format!(
            "PHALANX_REQUIRE_SHARED is set, and {} holds no `data` directory; \
             set PHALANX_SHARED to where the shared data is.",
            path.display()
        ));
    }
    println!(
        "── left out: no shared data at {} (set PHALANX_SHARED); tests that read it:",
        path.display()
    );
    let tree = Tree::read(&root)?;
    for file in tree.rust().filter(|f| !f.path.starts_with("xtask/")) {
        if file.text.contains("PHALANX_SHARED") {
            println!("   {}", file.path);
        }
    }
    Ok(None)
}
