//! Which Kubernetes is started, and the modules in Go that it is built from. The patch version stands
//! in the module's `go.mod` alone.

use std::fmt;

use crate::go::{Module, Program};

/// A minor version of Kubernetes that the tests can start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kubernetes {
    /// The oldest that Phalanx serves.
    V1_34,
    /// The newest.
    #[default]
    V1_37,
}

impl Kubernetes {
    /// Each, oldest first.
    pub const ALL: [Self; 2] = [Self::V1_34, Self::V1_37];

    /// Its text, such as `1.37`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1_34 => "1.34",
            Self::V1_37 => "1.37",
        }
    }

    /// Reads `1.37`; none where it is not one of [`Self::ALL`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// The version that a run of the tests is about: `PHALANX_KUBERNETES`, or the newest.
    ///
    /// # Panics
    /// When the variable names a version that is not known: a run that was to be about another
    /// version proves nothing.
    #[must_use]
    pub fn of_this_run() -> Self {
        let Ok(text) = std::env::var("PHALANX_KUBERNETES") else { return Self::default() };
        let known = Self::parse(&text);
        assert!(known.is_some(), "PHALANX_KUBERNETES is {text}; it may be 1.34 or 1.37.");
        known.unwrap_or_default()
    }

    /// The module that pins its programs.
    pub(crate) fn module(self) -> Module {
        let (go_mod, go_sum) = match self {
            Self::V1_34 => (include_str!("../1.34/go.mod"), include_str!("../1.34/go.sum")),
            Self::V1_37 => (include_str!("../1.37/go.mod"), include_str!("../1.37/go.sum")),
        };
        Module { folder: self.as_str(), go_mod, go_sum, programs: &CONTROL_PLANE }
    }
}

impl fmt::Display for Kubernetes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a control plane consists of.
const CONTROL_PLANE: [Program; 5] = [
    Program { name: "etcd", package: "go.etcd.io/etcd/server/v3" },
    Program { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
    Program {
        name: "kube-controller-manager",
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
    Program { name: "kube-scheduler", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
    Program { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl" },
];

/// kwok, which plays the kubelets, has a module of its own: its dependencies are of another age.
pub(crate) const KWOK: Module = Module {
    folder: "kwok",
    go_mod: include_str!("../kwok/go.mod"),
    go_sum: include_str!("../kwok/go.sum"),
    programs: &[Program { name: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok" }],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_module_pins_the_version_that_its_folder_names() {
        for version in Kubernetes::ALL {
            let pinned = version.module().version_of("k8s.io/kubernetes").expect("a version");
            assert!(pinned.starts_with(&format!("v{version}.")), "{version} pins {pinned}");
            assert_eq!(Kubernetes::parse(version.as_str()), Some(version));
        }
        assert_eq!(Kubernetes::parse("1.30"), None);
    }
}
