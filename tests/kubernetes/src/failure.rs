//! Why there is no control plane.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::parts::Part;

/// Why a program could not be had, started or reached.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Neither ready programs nor Go to build them.
    #[error(
        "There is no real control plane: KUBEBUILDER_ASSETS names no folder with the programs, and \
         Go is not installed to build them."
    )]
    NoPrograms,
    /// The folder of ready programs lacks one.
    #[error("KUBEBUILDER_ASSETS names {folder}, which lacks {name}.")]
    Lacks {
        /// The folder.
        folder: PathBuf,
        /// The program.
        name: &'static str,
    },
    /// No folder to keep programs in.
    #[error("The programs can't be kept: neither XDG_CACHE_HOME nor HOME is set.")]
    NoCache,
    /// Go built nothing.
    #[error("Go could not build {name} ({status}).")]
    Build {
        /// The program.
        name: &'static str,
        /// How Go ended.
        status: ExitStatus,
    },
    /// A file, folder or process.
    #[error("{what}: {source}.")]
    Io {
        /// What was to be done, as the beginning of a sentence.
        what: String,
        /// Why it could not be.
        source: io::Error,
    },
    /// No certificate could be made.
    #[error("The API server's certificate could not be made: {0}.")]
    Certificate(#[from] rcgen::Error),
    /// A kubeconfig that the client does not take.
    #[error("The client does not take the kubeconfig: {0}.")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// The API server refused, or could not be asked.
    #[error("The API server was asked in vain: {0}.")]
    Api(#[from] kube::Error),
    /// kubectl failed.
    #[error("kubectl could not apply {folder}: {said}")]
    Apply {
        /// What was to be applied.
        folder: PathBuf,
        /// What it says.
        said: String,
    },
    /// Phalanx asked for what its role does not allow.
    #[error("{user} may not {verb} {resource}: the role in deploy/role.yaml lacks it.")]
    Forbidden {
        /// Who asked.
        user: String,
        /// What for.
        verb: String,
        /// Of which resource.
        resource: String,
    },
    /// A program ended by itself.
    #[error("{part} has ended ({status}). Its log ends so:\n{log}")]
    Ended {
        /// Which.
        part: Part,
        /// How.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// Something did not come about in time.
    #[error("It did not come about in {seconds} s that {what}.")]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        seconds: u64,
    },
}

impl Failure {
    /// A failure of the system, with what was to be done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// The sentence: what a test returns is shown so.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
