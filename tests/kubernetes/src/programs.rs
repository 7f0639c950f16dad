//! Where the programs are: in a folder that the user names, or built with Go.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::go;
use crate::kubernetes::{KWOK, Kubernetes};
use crate::parts::Part;

/// The programs of one version of Kubernetes, and kwok.
#[derive(Clone, Debug)]
pub struct Programs {
    control_plane: PathBuf,
    kwok: PathBuf,
}

impl Programs {
    /// Those that `KUBEBUILDER_ASSETS` names, whatever version they are; else those that were built,
    /// which takes minutes the first time.
    ///
    /// # Errors
    /// [`Failure::NoPrograms`] where there are none and Go is missing; where the named folder lacks
    /// one, or Go can't build one.
    pub fn have(kubernetes: Kubernetes) -> Result<Self, Failure> {
        if let Some(named) = std::env::var_os("KUBEBUILDER_ASSETS").filter(|v| !v.is_empty()) {
            return Self::within(Path::new(&named));
        }
        if !go::is_installed() {
            return Err(Failure::NoPrograms);
        }
        Ok(Self { control_plane: kubernetes.module().built()?, kwok: KWOK.built()? })
    }

    /// As [`have`](Self::have); none where there is no control plane to be had, which is said aloud.
    /// With `PHALANX_REQUIRE_KUBERNETES=1` that is a failure.
    ///
    /// # Errors
    /// As [`have`](Self::have).
    pub fn or_left_out(kubernetes: Kubernetes) -> Result<Option<Self>, Failure> {
        let required =
            std::env::var("PHALANX_REQUIRE_KUBERNETES").is_ok_and(|v| !v.is_empty() && v != "0");
        match Self::have(kubernetes) {
            Ok(programs) => Ok(Some(programs)),
            Err(Failure::NoPrograms) if !required => {
                let why = Failure::NoPrograms;
                // Past the test runner, which keeps to itself what a test that passes prints.
                let _ =
                    writeln!(std::io::stderr(), "left out: what tests/kubernetes proves. {why}");
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    fn within(folder: &Path) -> Result<Self, Failure> {
        let programs = Self { control_plane: folder.to_owned(), kwok: folder.to_owned() };
        let lacking = Part::ALL.into_iter().find(|part| !programs.of(*part).is_file());
        match lacking {
            Some(part) => Err(Failure::Lacks { folder: folder.to_owned(), name: part.as_str() }),
            None => Ok(programs),
        }
    }

    /// The program of a part.
    #[must_use]
    pub fn of(&self, part: Part) -> PathBuf {
        let folder = match part {
            Part::Etcd | Part::ApiServer | Part::ControllerManager | Part::Scheduler => {
                &self.control_plane
            }
            Part::Kwok => &self.kwok,
        };
        folder.join(part.as_str())
    }

    /// Where the programs of the control plane are, `kubectl` among them.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.control_plane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_lacks_a_program_is_refused_by_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        for part in Part::ALL.into_iter().filter(|part| *part != Part::Kwok) {
            std::fs::write(folder.path().join(part.as_str()), "").expect("a file");
        }
        let failure = Programs::within(folder.path()).expect_err("kwok is missing");
        assert!(matches!(failure, Failure::Lacks { name: "kwok", .. }), "{failure}");
        std::fs::write(folder.path().join("kwok"), "").expect("a file");
        assert!(Programs::within(folder.path()).is_ok());
    }
}
