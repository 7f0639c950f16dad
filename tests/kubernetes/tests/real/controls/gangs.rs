//! Groups that start whole: in two phases through a Placement.

use std::collections::BTreeSet;
use std::io::Write as _;

use kube::Client;
use kube::api::ListParams;
use phalanx_kubernetes::{Cluster, Failure, Kubernetes, Setup, until};
use serde_json::Value;

use super::command::{Running, deployed};
use crate::board::{RESOURCE, SCHEDULING, api, documents, pod, put, text, until_pod};

const WORLD: &str = include_str!("../worlds/whole.yaml");
const PLACEMENTS: &str = "phalanx.dev/v1alpha1";

/// Whether the version that is asked knows PodGroups. Where it does not, that is said.
fn has_groups() -> bool {
    let has = Kubernetes::of_this_run() >= Kubernetes::V1_37;
    if !has {
        // Past the test runner, which keeps to itself what a test that passes prints.
        let _ = writeln!(std::io::stderr(), "left out: gangs, before 1.37 there is no PodGroup.");
    }
    has
}

#[tokio::test]
async fn a_gang_is_held_then_committed_then_done() {
    if has_groups() {
        let (gates, apis) = (vec!["GenericWorkload".to_owned()], vec![SCHEDULING.to_owned()]);
        Cluster::test(Setup { gates, apis, kubelets: true }, held_committed_done).await;
    }
}

async fn held_committed_done(cluster: &mut Cluster) -> Result<(), Failure> {
    let admin = deployed(cluster).await?;
    let from = version(&admin).await?;
    let mut controller = Running::start(cluster, &admin).await?;
    let mut world = documents(WORLD);
    let last = world.pop().expect("the last member");
    put(&admin, &world).await;

    // Two of three: it waits, and holds nothing.
    let told = |pod: &Value| text(pod, "/status/conditions/0/reason") == "Unschedulable";
    let waits = until_pod(&admin, "llama-0", "waits for the third", told).await?;
    assert_eq!(text(&waits, "/spec/nodeName"), "");
    assert_eq!(devices(&admin).await?, BTreeSet::new());

    put(&admin, &[last]).await;
    comes_to_run(&admin).await?;
    let mut phases = phases(&admin, &from).await?;
    phases.retain(|phase| phase != "Waiting");
    phases.dedup();
    assert_eq!(phases, ["Held", "Committing", "Done"]);
    controller.assert_rights_suffice();
    assert_eq!(controller.stop().code(), Some(0), "{}", controller.log());
    Ok(())
}

#[tokio::test]
async fn a_controller_that_is_killed_in_the_midst_of_a_gang_is_carried_on() {
    if has_groups() {
        let (gates, apis) = (vec!["GenericWorkload".to_owned()], vec![SCHEDULING.to_owned()]);
        Cluster::test(Setup { gates, apis, kubelets: true }, killed_in_the_midst).await;
    }
}

async fn killed_in_the_midst(cluster: &mut Cluster) -> Result<(), Failure> {
    let admin = deployed(cluster).await?;
    let killed = Running::start(cluster, &admin).await?;
    put(&admin, &documents(WORLD)).await;
    // Whatever it has written by then, be it all.
    while phase(&admin).await?.is_none_or(|phase| phase == "Waiting") {}
    drop(killed);

    let mut controller = Running::start(cluster, &admin).await?;
    comes_to_run(&admin).await?;
    controller.assert_rights_suffice();
    assert_eq!(controller.stop().code(), Some(0), "{}", controller.log());
    Ok(())
}

/// The phase of the one Placement; none where there is none.
async fn phase(client: &Client) -> Result<Option<String>, Failure> {
    let all = api(client, PLACEMENTS, "Placement", "default").list(&ListParams::default()).await?;
    assert!(all.items.len() <= 1, "one group has one Placement");
    Ok(all.items.first().map(|placement| text(&placement.data, "/spec/phase").to_owned()))
}

/// The gang comes to run whole, each member with a device of its own.
async fn comes_to_run(client: &Client) -> Result<(), Failure> {
    until("the Placement is done", async || {
        Ok((phase(client).await?.as_deref() == Some("Done")).then_some(()))
    })
    .await?;
    for member in ["llama-0", "llama-1", "llama-2"] {
        assert_eq!(text(&pod(client, member).await, "/status/phase"), "Running", "{member}");
    }
    assert_eq!(devices(client).await?.len(), 3, "each has a device of its own");
    Ok(())
}

/// The version at which Placements stand.
async fn version(client: &Client) -> Result<String, Failure> {
    let list = api(client, PLACEMENTS, "Placement", "").list(&ListParams::default()).await?;
    Ok(list.metadata.resource_version.unwrap_or_default())
}

/// The phases that Placements went through since a version, in their order.
async fn phases(client: &Client, from: &str) -> Result<Vec<String>, Failure> {
    let path =
        format!("/apis/{PLACEMENTS}/placements?watch=true&timeoutSeconds=1&resourceVersion={from}");
    let request = http::Request::get(path).body(Vec::new()).expect("a request");
    let text_of = client.request_text(request).await?;
    let events = text_of.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    Ok(events.map(|event| text(&event, "/object/spec/phase").to_owned()).collect())
}

/// The devices that claims hold.
async fn devices(client: &Client) -> Result<BTreeSet<(String, String)>, Failure> {
    let claims = api(client, RESOURCE, "ResourceClaim", "default");
    let claims = claims.list(&ListParams::default()).await?;
    let results = claims.items.iter().filter_map(|claim| {
        claim.data.pointer("/status/allocation/devices/results").and_then(Value::as_array)
    });
    let device =
        |result: &Value| (text(result, "/pool").to_owned(), text(result, "/device").to_owned());
    Ok(results.flatten().map(device).collect())
}
