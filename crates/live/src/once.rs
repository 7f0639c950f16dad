//! Reads a cluster once, for who asks about it instead of about files.

use phalanx_objects::Kind;
use tokio::runtime::Runtime;

use crate::access::{Access, Cluster};
use crate::discover::discover;
use crate::failure::{Failure, cause};
use crate::run::runtime;
use crate::watch::page::Page;

/// A cluster that can be read.
#[derive(Debug)]
pub struct Connection {
    runtime: Runtime,
    cluster: Cluster,
}

impl Connection {
    /// Finds the cluster; it answers.
    ///
    /// # Errors
    /// When there is no way to it, or it does not answer.
    pub fn open(access: &Access) -> Result<Self, Failure> {
        let runtime = runtime()?;
        let cluster = runtime.block_on(Cluster::find(access))?;
        Ok(Self { runtime, cluster })
    }

    /// Which cluster it is.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Lists every kind that is read and served, in the order of [`Kind::ALL`]. Secrets are none of them, nor
    /// ConfigMaps. Hands out each page of a list as the server sent it, or its refusal to give one: a text
    /// in JSON, under the path that it was asked for.
    ///
    /// # Errors
    /// When the server ceases to answer. That it refuses to list a kind costs only that kind.
    pub fn read(&self, sink: &mut dyn FnMut(&str, &str)) -> Result<(), Failure> {
        self.runtime.block_on(self.pages(sink))
    }

    async fn pages(&self, sink: &mut dyn FnMut(&str, &str)) -> Result<(), Failure> {
        let Cluster { client, server, .. } = &self.cluster;
        let lost = |what| {
            let server = server.clone();
            move |source| Failure::Server { server, what, source }
        };
        let board = discover(client, Kind::ALL.iter().copied()).await;
        let board = board.map_err(lost("what it serves"))?;
        for served in Kind::ALL.iter().filter_map(|kind| board.get(kind)) {
            let (path, mut rest) = (served.all(), String::new());
            loop {
                match Page::get(client, &path, &rest).await {
                    Ok(page) => {
                        sink(&path, page.text());
                        rest = page.rest;
                    }
                    Err(error @ kube::Error::Api(_)) => {
                        sink(&path, &refusal(&path, &error));
                        rest.clear();
                    }
                    Err(source) => return Err(lost("a list")(source)),
                }
                if rest.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// What the server says in place of a list.
fn refusal(path: &str, error: &kube::Error) -> String {
    tracing::debug!(path, why = cause(error), "a list is refused");
    let kube::Error::Api(status) = error else { return String::new() };
    let text = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "message": status.message,
        "reason": status.reason,
        "code": status.code,
    });
    text.to_string()
}
