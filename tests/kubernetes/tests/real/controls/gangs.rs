//! Groups that start whole: in two phases through a Placement.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Duration;

use kube::Client;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use phalanx_kubernetes::{Cluster, Failure, Kubernetes, Setup, until};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::command::{Running, deployed};
use crate::board::{RESOURCE, SCHEDULING, api, documents, pod, put, text, until_pod};

const WORLD: &str = include_str!("../worlds/whole.yaml");
const EIGHT: &str = include_str!("../worlds/eight.yaml");
const PLACEMENTS: &str = "phalanx.dev/v1alpha1";

/// A cluster that knows PodGroups; none where the version that is asked does not, which is said.
fn with_groups(kubelets: bool) -> Option<Setup> {
    if Kubernetes::of_this_run() < Kubernetes::V1_37 {
        // Past the test runner, which keeps to itself what a test that passes prints.
        let _ = writeln!(std::io::stderr(), "left out: gangs, before 1.37 there is no PodGroup.");
        return None;
    }
    let (gates, apis) = (vec!["GenericWorkload".to_owned()], vec![SCHEDULING.to_owned()]);
    Some(Setup { gates, apis, kubelets })
}

#[tokio::test]
async fn a_gang_is_held_then_committed_then_done() {
    if let Some(setup) = with_groups(true) {
        Cluster::test(setup, held_committed_done).await;
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
    if let Some(setup) = with_groups(true) {
        Cluster::test(setup, killed_in_the_midst).await;
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

#[tokio::test]
async fn a_gang_whose_seventh_member_its_kubelet_rejects_runs_whole_or_holds_nothing() {
    // The kubelets are played here.
    if let Some(setup) = with_groups(false) {
        Cluster::test(setup, rejected).await;
    }
}

async fn rejected(cluster: &mut Cluster) -> Result<(), Failure> {
    let admin = deployed(cluster).await?;
    let within = format!("--start-within={}", WITHIN.as_secs());
    let mut controller = Running::start_with(cluster, &admin, &[&within]).await?;

    // Nobody makes another: all are given back.
    put(&admin, &documents(EIGHT)).await;
    put(&admin, &(0..8).map(member).collect::<Vec<_>>()).await;
    let bound = until_bound(&admin).await?;
    until("all is given back", async || {
        play_kubelets(&admin).await?;
        let running = pods(&admin).await?.iter().filter(|pod| runs(pod)).count();
        Ok((running == 0 && devices(&admin).await?.is_empty()).then_some(()))
    })
    .await?;
    let took = bound.elapsed();
    assert!(took > WITHIN / 2, "another may come until then: {took:?}");
    assert!(took < WITHIN + SLACK, "{took:?}");

    // The same again, and another comes in its place: it is seated beside the seven.
    let left = api(&admin, "v1", "Pod", "default");
    left.delete_collection(&now(), &ListParams::default()).await?;
    until("they are gone", async || Ok(pods(&admin).await?.is_empty().then_some(()))).await?;
    put(&admin, &(0..8).map(member).collect::<Vec<_>>()).await;
    let bound = until_bound(&admin).await?;
    let seven: BTreeSet<String> = uids(&pods(&admin).await?, runs);
    left.delete(&format!("g-{REJECTED}"), &now()).await?;
    put(&admin, &[member(8)]).await;
    until("all eight run", async || {
        play_kubelets(&admin).await?;
        Ok((uids(&pods(&admin).await?, runs).len() == 8).then_some(()))
    })
    .await?;
    assert!(bound.elapsed() < WITHIN + SLACK, "{:?}", bound.elapsed());
    assert!(uids(&pods(&admin).await?, runs).is_superset(&seven), "the seven were left alone");
    assert_eq!(devices(&admin).await?.len(), 8, "each has a device of its own");
    until("the Placement is done", async || {
        Ok((phase(&admin).await?.as_deref() == Some("Done")).then_some(()))
    })
    .await?;
    controller.assert_rights_suffice();
    assert_eq!(controller.stop().code(), Some(0), "{}", controller.log());
    Ok(())
}

/// How long the gang may take to run, from its first binding.
const WITHIN: Duration = Duration::from_secs(8);
/// How much later it may be given back, on a machine that does much else.
const SLACK: Duration = Duration::from_secs(12);
/// The member that its kubelet rejects.
const REJECTED: usize = 7;

/// One of the eight.
fn member(at: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": format!("g-{at}"), "namespace": "default"},
        "spec": {
            "schedulerName": "phalanx",
            "restartPolicy": "Never",
            "schedulingGroup": {"podGroupName": "g"},
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
            "containers": [{"name": "c", "image": "example.com/i",
                "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}}],
        },
    })
}

/// Waits until all eight are bound, and the seven run. Answers when the first was seen to be.
async fn until_bound(client: &Client) -> Result<Instant, Failure> {
    let mut first = None;
    until("eight are bound", async || {
        let bound = pods(client).await?.iter().filter(|pod| is_bound(pod)).count();
        if bound > 0 {
            first.get_or_insert_with(Instant::now);
        }
        Ok((bound == 8).then_some(()))
    })
    .await?;
    play_kubelets(client).await?;
    let all = pods(client).await?;
    assert_eq!(all.iter().filter(|pod| runs(pod)).count(), 7);
    Ok(first.expect("one was bound"))
}

/// What kubelets do: a bound pod runs, but for the one that is rejected; one that is deleted goes.
async fn play_kubelets(client: &Client) -> Result<(), Failure> {
    let api = api(client, "v1", "Pod", "default");
    for pod in pods(client).await?.iter().filter(|pod| is_bound(pod)) {
        let name = text(pod, "/metadata/name");
        if pod.pointer("/metadata/deletionTimestamp").is_some() {
            api.delete(name, &now()).await?;
        } else if text(pod, "/status/phase") == "Pending" {
            let status = match name == format!("g-{REJECTED}") {
                true => json!({"phase": "Failed", "reason": "UnexpectedAdmissionError",
                    "message": "Pod was rejected: a device is not healthy"}),
                false => json!({"phase": "Running"}),
            };
            let status = Patch::Merge(json!({"status": status}));
            api.patch_status(name, &PatchParams::default(), &status).await?;
        }
    }
    Ok(())
}

fn now() -> DeleteParams {
    DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() }
}

async fn pods(client: &Client) -> Result<Vec<Value>, Failure> {
    let all = api(client, "v1", "Pod", "default").list(&ListParams::default()).await?;
    Ok(all.items.iter().map(|pod| serde_json::to_value(pod).expect("an object")).collect())
}

fn is_bound(pod: &Value) -> bool {
    !text(pod, "/spec/nodeName").is_empty()
}

fn runs(pod: &Value) -> bool {
    text(pod, "/status/phase") == "Running"
}

fn uids(pods: &[Value], which: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    pods.iter().filter(|pod| which(pod)).map(|pod| text(pod, "/metadata/uid").to_owned()).collect()
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
