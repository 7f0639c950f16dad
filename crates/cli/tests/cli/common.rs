//! What the tests of the command share: running it, and files of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

use assert_cmd::Command;
use serde_json::Value;

/// The root of the repository, where `examples` is.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The command, run at the root of the repository, without what the caller's terminal says.
pub(crate) fn phalanx(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("phalanx"));
    command.current_dir(root()).args(args);
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR"] {
        command.env_remove(variable);
    }
    command
}

/// What it does.
pub(crate) fn run(args: &[&str]) -> Ran {
    let output = phalanx(args).output().expect("the command starts");
    Ran::new(output, args)
}

/// What it does with this on standard input.
pub(crate) fn run_with(args: &[&str], stdin: &str) -> Ran {
    let output = phalanx(args).write_stdin(stdin).output().expect("the command starts");
    Ran::new(output, args)
}

/// As [`run_with`], with bytes that need not be text.
pub(crate) fn run_with_bytes(args: &[&str], stdin: &[u8]) -> Ran {
    let output = phalanx(args).write_stdin(stdin).output().expect("the command starts");
    Ran::new(output, args)
}

/// The outcome of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    said: String,
}

impl Ran {
    fn new(output: Output, args: &[&str]) -> Self {
        let out = String::from_utf8(output.stdout).expect("standard output is text");
        let err = String::from_utf8(output.stderr).expect("standard error is text");
        let said = format!("phalanx {args:?}\n--- stdout\n{out}\n--- stderr\n{err}");
        Self { code: output.status.code().expect("an exit code"), out, err, said }
    }

    /// Asserts the exit code.
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, expected, "{}", self.said);
        assert!(!self.err.contains("panicked"), "{}", self.said);
        self
    }

    /// Asserts that standard output contains all of these.
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.out.contains(part), "{part:?} is missing\n{}", self.said);
        }
        self
    }

    /// Asserts that standard error contains all of these.
    pub(crate) fn complains(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is missing\n{}", self.said);
        }
        self
    }

    /// Standard output as exactly one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}\n{}", self.said))
    }
}

/// A directory that is removed when it is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cli-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    /// Writes a file into it and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        self.bytes(name, text.as_bytes())
    }

    /// As [`file`](Self::file), with bytes that need not be text.
    pub(crate) fn bytes(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, bytes).expect("a file");
        path.display().to_string()
    }

    /// What stands in a file that the command wrote.
    #[expect(clippy::disallowed_methods, reason = "a test looks at what was written")]
    pub(crate) fn read(path: &str) -> String {
        fs::read_to_string(path).expect("a file")
    }

    pub(crate) fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The pods of a document by `namespace/name`: verdict, node and device names.
pub(crate) fn pod<'a>(document: &'a Value, name: &str) -> &'a Value {
    let pods = document["pods"].as_array().expect("pods");
    let is = |pod: &&Value| {
        format!("{}/{}", pod["namespace"].as_str().unwrap(), pod["name"].as_str().unwrap()) == name
    };
    pods.iter().find(is).unwrap_or_else(|| panic!("there is no pod {name} in {document:#}"))
}

/// Names of a pod's devices.
pub(crate) fn devices(pod: &Value) -> Vec<&str> {
    let devices = pod["devices"].as_array().expect("devices");
    devices.iter().map(|device| device["device"].as_str().expect("a name")).collect()
}

/// A node with room for anything but GPUs.
pub(crate) const NODE: &str = "\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: '8', memory: 32Gi, pods: '110'}}
";

/// A pod that fits on it.
pub(crate) const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: default}
spec: {containers: [{name: main, resources: {requests: {cpu: '1'}}}]}
";
