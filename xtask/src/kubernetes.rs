//! The real control plane of `tests/kubernetes`: its programs built beforehand (`cargo xtask
//! kubernetes build`), and the suite against one version of it (`cargo xtask e2e`).
//!
//! The tests build what they lack by themselves; built beforehand it is no part of their time.

use clap::ValueEnum;

use crate::run::{Done, cargo, show};

/// Which Kubernetes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Version {
    /// The oldest that Phalanx serves.
    #[value(name = "1.34")]
    V1_34,
    /// The newest.
    #[value(name = "1.37")]
    V1_37,
}

impl Version {
    fn as_str(self) -> &'static str {
        match self {
            Self::V1_34 => "1.34",
            Self::V1_37 => "1.37",
        }
    }
}

/// Builds the programs that are not there yet. Where Go is missing, that is said, and is a failure
/// only with `PHALANX_REQUIRE_KUBERNETES=1`.
pub(crate) fn build(version: Version) -> Done {
    let version = version.as_str();
    let args = ["run", "--quiet", "--locked", "--package", "phalanx-kubernetes", "--"];
    let mut build = cargo(&args);
    build.args(["build", "--kubernetes", version]);
    show(&format!("the programs of Kubernetes {version}, built where they are missing"), &mut build)
}

/// Parts that share what they are built of: the suite runs the command, which lies beside its own program.
const BOTH: [&str; 5] = ["--locked", "--package", "phalanx-cli", "--package", "phalanx-kubernetes"];

/// Writes down what the server answers to the sequences in `tests/kubernetes/recorded`.
pub(crate) fn record(version: Version) -> Done {
    build(version)?;
    let version = version.as_str();
    let mut test = cargo(&["test", "--test", "real"]);
    test.args(BOTH).arg("the_server_answers_as_recorded");
    test.env("PHALANX_KUBERNETES", version).env("PHALANX_REQUIRE_KUBERNETES", "1");
    test.env("PHALANX_RECORD", "1");
    show(&format!("what Kubernetes {version} answers"), &mut test)
}

/// Runs the suite against a version; or of it only what is asked for, in full and not as a sample.
pub(crate) fn suite(version: Version, full: &[Full]) -> Done {
    build(version)?;
    let version = version.as_str();
    show("the command", cargo(&["build", "--bins"]).args(BOTH))?;
    let mut test = cargo(&["test", "--test", "real"]);
    test.args(BOTH);
    test.env("PHALANX_KUBERNETES", version).env("PHALANX_REQUIRE_KUBERNETES", "1");
    if !full.is_empty() {
        // What was found is worth a look although all is well.
        test.args(["--", "--nocapture"]);
    }
    for part in full {
        let (tests, variable) = part.names();
        test.arg(tests).env(variable, "all");
    }
    if full.contains(&Full::Worlds) {
        test.env("PHALANX_REQUIRE_SHARED", "1");
    }
    show(&format!("the suite against Kubernetes {version}"), &mut test)
}

/// A part of the suite of which every run takes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The controller is killed after each write.
    Crash,
    /// Recorded worlds are put on the server.
    Worlds,
}

impl Full {
    /// The module of its tests, and the variable that makes them take all.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Crash => ("crashes::", "PHALANX_CRASHES"),
            Self::Worlds => ("answers::", "PHALANX_WORLDS"),
        }
    }
}
