//! Starting other tools, and where the workspace is.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a task comes to: nothing, or one sentence on what failed.
pub(crate) type Done = Result<(), String>;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// `cargo ARGS` in the root. The cargo that started us, so that one toolchain does all.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Runs it in view of the user.
pub(crate) fn show(title: &str, command: &mut Command) -> Done {
    println!("── {title}");
    let status = command.status().map_err(|e| format!("{title} could not be started: {e}."))?;
    if status.success() { Ok(()) } else { Err(format!("{title} failed ({status}).")) }
}

/// Runs it and returns what it printed; on failure what it complained of.
pub(crate) fn output(title: &str, command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{title} could not be started: {e}."))?;
    if output.status.success() {
        String::from_utf8(output.stdout).map_err(|e| format!("{title} printed no UTF-8: {e}."))
    } else {
        Err(format!("{title} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Whether `cargo NAME` is installed.
pub(crate) fn has_subcommand(name: &str) -> bool {
    cargo(&[name, "--version"])
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}
