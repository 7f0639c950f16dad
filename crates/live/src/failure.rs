//! Why something could not be done, in sentences.

use std::path::PathBuf;

use phalanx_cluster::CompatError;

/// Why the cluster can't be read or followed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The kubeconfig can't be used.
    #[error("The kubeconfig {} can't be used: {}.", .path.display(), plain(.source))]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// There is neither a kubeconfig nor the service account of a pod.
    #[error(
        "No cluster is known: there is neither a kubeconfig (KUBECONFIG, or .kube/config at home) nor the \
         service account of a pod. Name a kubeconfig with --kubeconfig. ({})", plain(.0)
    )]
    NoCluster(kube::config::InferConfigError),
    /// A context that can't be used.
    #[error("The context {context} can't be used: {}.", plain(.source))]
    Context {
        /// Its name.
        context: String,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// The server can't be asked.
    #[error("The API server {server} can't be asked for {what}: {}.", cause(.source))]
    Server {
        /// Its address.
        server: String,
        /// What was asked for.
        what: &'static str,
        /// Why.
        source: kube::Error,
    },
    /// A version or a gate is not known.
    #[error("{0}")]
    Compat(#[from] CompatError),
    /// The runtime can't be started.
    #[error("{what}: {source}.")]
    Io {
        /// What could not be done.
        what: String,
        /// Why.
        source: std::io::Error,
    },
    /// A decision failed.
    #[error(
        "The decision failed: {message}. That is a fault of Phalanx; please report it with {snapshot}. \
         Nothing is half written that a new start would not take up."
    )]
    Panicked {
        /// What the panic said.
        message: String,
        /// Where the objects lie, or why they could not be kept.
        snapshot: String,
    },
}

/// An error without the stop that a sentence around it has.
fn plain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        inner = error.source();
    }
    text.trim_end_matches('.').to_owned()
}

/// What the server said, or why it said nothing.
pub(crate) fn cause(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return format!("{} (code {})", status.message.trim_end_matches('.'), status.code);
    }
    plain(error)
}
