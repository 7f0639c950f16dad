//! The way to a cluster: a kubeconfig, or the service account of the pod that this runs in.

use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use phalanx_cluster::Version;

use crate::failure::Failure;

/// Which cluster is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The kubeconfig; none is that of `KUBECONFIG`, or the one at home, or the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; none is its current one.
    pub context: Option<String>,
}

/// A cluster that answers.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) client: Client,
    /// The address of its API server.
    pub server: String,
    /// The version that it says it is, such as `v1.37.2`.
    pub git_version: String,
    /// The namespace that the kubeconfig names; `default` where it names none.
    pub namespace: String,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({}, {})", self.server, self.git_version)
    }
}

impl Cluster {
    /// Finds the cluster and asks for its version.
    ///
    /// # Errors
    /// When there is no way to it, or it does not answer.
    pub(crate) async fn find(access: &Access) -> Result<Self, Failure> {
        let mut config = config(access).await?;
        // The client would ask again by itself, for minutes, where the server is too busy or does not know
        // (429, 503, 504): what to make of that is decided by who asks.
        config.default_retry = false;
        let (server, namespace) =
            (config.cluster_url.to_string(), config.default_namespace.clone());
        let server = server.trim_end_matches('/').to_owned();
        let unanswered = |what| {
            let server = server.clone();
            move |source| Failure::Server { server, what, source }
        };
        let client = Client::try_from(config).map_err(unanswered("anything"))?;
        let version = client.apiserver_version().await.map_err(unanswered("its version"))?;
        Ok(Self { client, server, git_version: version.git_version, namespace })
    }

    /// The version whose rules hold: the server's own, and of one that is newer than those known the
    /// newest of them.
    ///
    /// # Errors
    /// When it is older than those that are known, or no version.
    pub fn version(&self) -> Result<Version, Failure> {
        match Version::parse(&self.git_version) {
            Err(_) if is_newer(&self.git_version) => Ok(Version::default()),
            parsed => Ok(parsed?),
        }
    }
}

/// Whether a version is newer than the newest that is known.
fn is_newer(text: &str) -> bool {
    let minor = |text: &str| -> Option<u32> {
        let rest = text.trim_start_matches('v').strip_prefix("1.")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    minor(text).zip(minor(Version::default().as_str())).is_some_and(|(it, newest)| it > newest)
}

async fn config(access: &Access) -> Result<Config, Failure> {
    let options =
        KubeConfigOptions { context: access.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &access.kubeconfig {
        let unusable = |source| Failure::Kubeconfig { path: path.clone(), source };
        let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
        return Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(unusable);
    }
    if let Some(context) = &access.context {
        let unusable = |source| Failure::Context { context: context.clone(), source };
        return Config::from_kubeconfig(&options).await.map_err(unusable);
    }
    Config::infer().await.map_err(Failure::NoCluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_version_is_told_from_an_older_one() {
        assert!(is_newer("v1.38.0-alpha.1"));
        assert!(is_newer("1.101.3+k3s1"));
        assert!(!is_newer("v1.37.2"));
        assert!(!is_newer("v1.33.9"));
        assert!(!is_newer("main"));
    }
}
