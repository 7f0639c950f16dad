//! Nothing that is started outlives the process that started it, however that ends.
//!
//! A shell waits at the other end of a pipe that only this process holds, and leads the process group
//! that all parts join. When the pipe closes, because it is dropped or because the process is gone,
//! the shell kills its group. Until then its number is taken, so the group can be no other's.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::failure::Failure;

/// Ends a group of processes when it is dropped, or when this process ends.
#[derive(Debug)]
pub(crate) struct Guard {
    shell: Child,
}

impl Guard {
    pub(crate) fn start() -> Result<Self, Failure> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "read end; kill -KILL 0"]).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let failed = Failure::io("The shell that ends the parts could not be started");
        Ok(Self { shell: shell.spawn().map_err(failed)? })
    }

    /// Lets the process join the group.
    pub(crate) fn guard(&self, command: &mut Command) {
        // The kernel's process numbers stay far below.
        command.process_group(i32::try_from(self.shell.id()).unwrap_or(i32::MAX));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It has killed itself with the rest; its number is given back.
        let _ = self.shell.wait();
    }
}
