//! What is measured on: nodes with devices, and pods that wait, with the claims that are made for them.

use http::Method;
use kube::Client;
use phalanx_kubernetes::{Failure, until};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{Load, wire};

/// Devices of a node, five to each half of it.
pub(super) const DEVICES: u32 = 10;
/// Group and version of gangs.
pub(super) const SCHEDULING: &str = "scheduling.k8s.io/v1beta1";
/// Objects that are created at once.
const AT_ONCE: usize = 32;

pub(super) const DRIVER: &str = "gpu.example.com";
const RESOURCE: &str = "/apis/resource.k8s.io/v1";

/// Puts all of it there, and waits until the claims are made.
pub(super) async fn put(
    client: &Client,
    load: Load,
    (nodes, pods): (u32, u32),
    scheduler: &str,
) -> Result<(), Failure> {
    create(client, vec![(format!("{RESOURCE}/deviceclasses"), class())]).await?;
    let template = format!("{RESOURCE}/namespaces/default/resourceclaimtemplates");
    create(client, vec![(template, claim_template())]).await?;
    let path = |n| ("/api/v1/nodes".to_owned(), node(n));
    create(client, (0..nodes).map(path).collect()).await?;
    let path = |n| (format!("{RESOURCE}/resourceslices"), slice(n));
    create(client, (0..nodes).map(path).collect()).await?;
    if load == Load::Gangs {
        let path = format!("/apis/{SCHEDULING}/namespaces/default/podgroups");
        let gangs = (0..pods.div_ceil(load.together())).map(|n| (path.clone(), gang(n, load)));
        create(client, gangs.collect()).await?;
    }
    let path = "/api/v1/namespaces/default/pods".to_owned();
    let all = (0..pods).map(|n| (path.clone(), pod(n, load, scheduler)));
    create(client, all.collect()).await?;
    if load == Load::Plain { Ok(()) } else { until_claims_are_made(client).await }
}

/// All pods as the server holds them, in order of name.
pub(super) async fn pods(client: &Client) -> Result<Vec<Value>, Failure> {
    items(wire::get(client, "/api/v1/namespaces/default/pods").await?)
}

/// All claims.
pub(super) async fn claims(client: &Client) -> Result<Vec<Value>, Failure> {
    items(wire::get(client, &format!("{RESOURCE}/namespaces/default/resourceclaims")).await?)
}

fn items(mut list: Value) -> Result<Vec<Value>, Failure> {
    Ok(list.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default())
}

async fn until_claims_are_made(client: &Client) -> Result<(), Failure> {
    until("claims are made from templates", async || {
        // The list is long: it is not to be in the way of those who make them.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let made = |pod: &Value| pod.pointer("/status/resourceClaimStatuses/0").is_some();
        Ok(pods(client).await?.iter().all(made).then_some(()))
    })
    .await
}

async fn create(client: &Client, all: Vec<(String, Value)>) -> Result<(), Failure> {
    let mut under_way = JoinSet::new();
    let mut all = all.into_iter();
    loop {
        while under_way.len() < AT_ONCE {
            let Some((path, object)) = all.next() else { break };
            let client = client.clone();
            under_way.spawn(async move {
                wire::send(&client, Method::POST, &path, wire::JSON, &object).await.map(|_| ())
            });
        }
        match under_way.join_next().await {
            None => return Ok(()),
            Some(Ok(created)) => created?,
            // A task that panics has said so.
            Some(Err(_)) => {}
        }
    }
}

fn class() -> Value {
    let selector = format!("device.driver == \"{DRIVER}\"");
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": selector}}]}})
}

/// Two devices with enough memory and of one half of the node.
fn claim_template() -> Value {
    let selector =
        format!("device.capacity[\"{DRIVER}\"].memory.compareTo(quantity(\"40Gi\")) >= 0");
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2,
        "selectors": [{"cel": {"expression": selector}}]}});
    let constraint = json!({"requests": ["gpu"], "matchAttribute": format!("{DRIVER}/numa")});
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "two", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request], "constraints": [constraint]}}}})
}

pub(super) fn node_name(n: u32) -> String {
    format!("node-{n:05}")
}

fn node(n: u32) -> Value {
    let name = node_name(n);
    let amounts = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

pub(super) fn device_name(n: u32) -> String {
    format!("gpu-{n}")
}

fn slice(n: u32) -> Value {
    let device = |n: u32| {
        json!({"name": device_name(n),
            "attributes": {"model": {"string": "h100"}, "numa": {"int": n / (DEVICES / 2)}},
            "capacity": {"memory": {"value": "80Gi"}}})
    };
    let devices: Vec<Value> = (0..DEVICES).map(device).collect();
    let name = node_name(n);
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("gpus-{name}")},
        "spec": {"nodeName": name, "driver": DRIVER,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}, "devices": devices}})
}

pub(super) fn gang_name(n: u32) -> String {
    format!("gang-{n:05}")
}

fn gang(n: u32, load: Load) -> Value {
    json!({"apiVersion": SCHEDULING, "kind": "PodGroup",
        "metadata": {"name": gang_name(n), "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": load.together()}}}})
}

fn pod(n: u32, load: Load, scheduler: &str) -> Value {
    let requests = json!({"cpu": "1", "memory": "1Gi"});
    let mut container = json!({"name": "main", "image": "registry.invalid/train:1",
        "resources": {"requests": requests}});
    let mut spec = json!({"schedulerName": scheduler});
    if load != Load::Plain {
        container["resources"]["claims"] = json!([{"name": "gpu"}]);
        spec["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": "two"}]);
    }
    if load == Load::Gangs {
        spec["schedulingGroup"] = json!({"podGroupName": gang_name(n / load.together())});
    }
    spec["containers"] = json!([container]);
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("pod-{n:05}"), "namespace": "default"}, "spec": spec})
}
