//! Recorded worlds as objects for an API server.

use serde_json::{Value, json};

use super::question::Question;
use super::shared::{list, text};
use crate::board::RESOURCE;

/// The finalizer that keeps what is being deleted.
const KEPT: &str = "phalanx.dev/kept";

/// A world, and the pod that asks for a place in it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) name: String,
    /// In the order in which they are made.
    pub(crate) objects: Vec<Value>,
    pub(crate) pod: Value,
    /// Whether the recording says that there is room. How long is waited depends on it, too.
    pub(crate) room: bool,
}

/// In which order objects are made: what others name by UID first, pods last.
const ORDER: [&str; 16] = [
    "Namespace",
    "RuntimeClass",
    "StorageClass",
    "CSIDriver",
    "Node",
    "CSINode",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "VolumeAttachment",
    "CSIStorageCapacity",
    "Service",
    "ReplicaSet",
    "DeviceClass",
    "ResourceSlice",
    "ResourceClaim",
    "Pod",
];

/// A world of kube-scheduler's predicates; else why no running scheduler can be asked about it.
pub(crate) fn of_predicates(recorded: &Value) -> Result<World, &'static str> {
    let mut pod = recorded["pod"].clone();
    if !text(&pod, "/spec/nodeName").is_empty() {
        return Err("the pod names its node, and no scheduler sees it");
    }
    // Other pods that wait count for nothing, and both schedulers would seat them.
    let there = |object: &&Value| {
        let waits = text(object, "/kind") == "Pod" && text(object, "/spec/nodeName").is_empty();
        !waits && !is(object, &pod)
    };
    let mut objects: Vec<Value> =
        list(recorded, "/objects").iter().filter(there).cloned().collect();
    if objects.iter().any(|object| object.pointer("/metadata/ownerReferences").is_some()) {
        return Err("a claim belongs to a pod by its UID, which the server chooses");
    }
    let mut classes = Vec::new();
    for pod in objects.iter_mut().chain([&mut pod]) {
        classed(pod, &mut classes);
    }
    objects.extend(classes);
    objects.iter_mut().for_each(kept);
    let room = recorded["answer"].get("preenqueue").is_none()
        && recorded["answer"]["nodes"]
            .as_object()
            .is_some_and(|nodes| nodes.values().any(|node| node["fits"] == true));
    Ok(World { name: text(recorded, "/name").to_owned(), objects: ordered(objects), pod, room })
}

/// A world of devices, with what is in use as claims that running pods hold.
pub(crate) fn of_devices(recorded: &Value) -> Result<World, &'static str> {
    let question = Question::of(recorded);
    let mut node = question.node.clone();
    node["metadata"]["uid"] = Value::Null;
    node["status"]["allocatable"] = json!({"cpu": "64", "memory": "512Gi", "pods": "110"});
    // Upstream's allocator was asked past the API server, which looks for this.
    let looks = json!({"resource.kubernetes.io/admin-access": "true"});
    let asks = json!({"name": "default", "labels": looks});
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "others"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": asks}),
        typed(&node, "v1", "Node"),
    ];
    objects.extend(question.classes.iter().map(|o| typed(o, RESOURCE, "DeviceClass")));
    objects.extend(question.slices.iter().map(|o| typed(o, RESOURCE, "ResourceSlice")));
    for (at, held) in question.held.iter().enumerate() {
        let user = format!("user-{at}");
        let mut claim = typed(held, RESOURCE, "ResourceClaim");
        let request = json!({"name": "r", "exactly": {"deviceClassName": "any"}});
        claim["spec"] = json!({"devices": {"requests": [request]}});
        claim["status"]["reservedFor"] = json!([{"resource": "pods", "name": user, "uid": user}]);
        objects.push(claim);
        let mut pod = pod_of("others", &user, &[text(held, "/metadata/name").to_owned()]);
        pod["metadata"]["uid"] = json!(user);
        pod["spec"]["nodeName"] = node["metadata"]["name"].clone();
        pod["status"] = json!({"phase": "Running"});
        objects.push(pod);
    }
    let mut names = Vec::new();
    for claim in &question.claims {
        names.push(text(claim, "/metadata/name").to_owned());
        let mut claim = typed(claim, RESOURCE, "ResourceClaim");
        // Not yet allocated: there is nothing to write.
        claim.as_object_mut().and_then(|fields| fields.remove("status"));
        objects.push(claim);
    }
    let room = recorded["answer"]["results"].is_array();
    let pod = pod_of("default", "asks", &names);
    Ok(World { name: question.name, objects: ordered(objects), pod, room })
}

/// Whether the world is of the gates that are on by default, as far as a server looks at them: a range finer
/// than whole steps is refused where its gate is off.
pub(crate) fn has_default_gates(recorded: &Value) -> bool {
    const ON: [&str; 7] = [
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
    ];
    let features: Vec<&str> =
        list(recorded, "/features").iter().filter_map(Value::as_str).collect();
    let strange = |gate: &&str| !ON.contains(gate) && *gate != "DRAFractionalCapacityRange";
    ON.iter().all(|gate| features.contains(gate)) && !features.iter().any(strange)
}

fn is(a: &Value, b: &Value) -> bool {
    ["/kind", "/metadata/namespace", "/metadata/name"].iter().all(|at| text(a, at) == text(b, at))
}

fn ordered(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(|object| ORDER.iter().position(|kind| *kind == text(object, "/kind")));
    objects
}

fn typed(object: &Value, api_version: &str, kind: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object
}

/// The server takes a pod's overhead only from its RuntimeClass: each amount has one of its own.
fn classed(pod: &mut Value, classes: &mut Vec<Value>) {
    if pod.pointer("/spec/runtimeClassName").is_none() {
        return;
    }
    let overhead = pod["spec"]["overhead"].clone();
    let of = |class: &Value| class["overhead"]["podFixed"] == overhead;
    let at = classes.iter().position(of).unwrap_or(classes.len());
    let name = format!("runtime-{at}");
    if at == classes.len() {
        classes.push(json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
            "metadata": {"name": name}, "handler": "kata", "overhead": {"podFixed": overhead}}));
    }
    pod["spec"]["runtimeClassName"] = json!(name);
}

/// What is being deleted stays so.
fn kept(object: &mut Value) {
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        object["metadata"]["finalizers"] = json!([KEPT]);
    }
}

fn pod_of(namespace: &str, name: &str, claims: &[String]) -> Value {
    let uses = |(at, claim): (usize, &String)| json!({"name": format!("c{at}"), "resourceClaimName": claim});
    let uses: Vec<Value> = claims.iter().enumerate().map(uses).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "c", "image": "example.com/i"}], "resourceClaims": uses},
    })
}
