//! A dump of a real server, planned, beside what kube-scheduler does on that server.

use std::collections::BTreeMap;

use phalanx_kubernetes::{Cluster, Failure, Identity, Setup};
use serde_json::Value;

use crate::board::{documents, dump, pod, put, text, until_claims_are_made, until_pod};
use crate::planned::Planned;

const WORLD: &str = include_str!("worlds/agrees.yaml");

/// The pod that fits nowhere.
const NOWHERE: &str = "nowhere";

#[tokio::test]
async fn a_pod_with_one_node_that_fits_goes_where_kube_scheduler_puts_it() {
    Cluster::test(Setup::default(), goes_where_kube_scheduler_puts_it).await;
}

async fn goes_where_kube_scheduler_puts_it(cluster: &mut Cluster) -> Result<(), Failure> {
    let client = cluster.client(Identity::Admin).await?;
    let world = documents(WORLD);
    put(&client, &world).await;
    until_claims_are_made(&client).await?;

    let planned = Planned::of(&dump(&client).await?, &[]);
    assert_eq!(planned.findings, Vec::<String>::new(), "what a server holds is right");

    cluster.start_scheduler()?;
    let mut bound = BTreeMap::new();
    let pods = world.iter().filter(|document| text(document, "/kind") == "Pod");
    for name in pods.map(|pod| text(pod, "/metadata/name")).filter(|name| *name != NOWHERE) {
        let is_bound = |pod: &Value| !text(pod, "/spec/nodeName").is_empty();
        let pod = until_pod(&client, name, "is bound", is_bound).await?;
        bound.insert(name.to_owned(), text(&pod, "/spec/nodeName").to_owned());
    }
    until_pod(&client, NOWHERE, "is found unschedulable", is_unschedulable).await?;
    assert_eq!(text(&pod(&client, NOWHERE).await, "/spec/nodeName"), "");
    assert_eq!(planned.nodes(), bound);
    // By hand, so that the two are not wrong together.
    let by_hand = [
        ("heavy", "large"),
        ("labelled", "small"),
        ("one-h100", "gpu-2"),
        ("tolerant", "tainted"),
        ("two-near", "gpu-1"),
    ];
    assert_eq!(bound, by_hand.map(|(pod, node)| (pod.to_owned(), node.to_owned())).into());
    Ok(())
}

fn is_unschedulable(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "PodScheduled" && condition["reason"] == "Unschedulable"
    })
}
