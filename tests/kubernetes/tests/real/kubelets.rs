//! Nodes are ready and bound pods run, though no kubelet does.

use phalanx_kubernetes::{Cluster, Failure, Identity, Setup};

use crate::board::{documents, pod, put, text, until_pod};
use crate::writer;

const WORLD: &str = include_str!("worlds/kubelets.yaml");

#[tokio::test]
async fn a_bound_pod_runs_and_ends_as_it_says() {
    let setup = Setup { kubelets: true, ..Setup::default() };
    Cluster::test(setup, runs_and_ends).await;
}

async fn runs_and_ends(cluster: &mut Cluster) -> Result<(), Failure> {
    let client = cluster.client(Identity::Admin).await?;
    put(&client, &documents(WORLD)).await;

    let bind = |pod: &str| {
        serde_json::json!({"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod, "namespace": "default"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}})
    };
    writer::write(&client, &[bind("short"), bind("long")]).await?;
    let phase =
        |phase: &'static str| move |pod: &serde_json::Value| text(pod, "/status/phase") == phase;
    until_pod(&client, "long", "runs", phase("Running")).await?;
    let ended = until_pod(&client, "short", "has ended", phase("Succeeded")).await?;
    assert_eq!(
        ended.pointer("/status/containerStatuses/0/state/terminated/exitCode"),
        Some(&0.into())
    );
    assert_eq!(text(&pod(&client, "long").await, "/status/phase"), "Running");
    assert_eq!(text(&pod(&client, "waits").await, "/status/phase"), "Pending", "nobody bound it");
    Ok(())
}
