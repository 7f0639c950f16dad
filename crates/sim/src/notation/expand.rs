//! From the notation to manifests, as kubectl would print them.

use serde_json::{Map, Value, json};

use super::ordered::names;
use super::{ClaimNote, DeviceNote, NodeNote, PodNote, RequestNote, World};
use crate::scenario::ScenarioError;

const NAMESPACE: &str = "default";
const DRIVER: &str = "gpu.nvidia.com";
const RESOURCE: &str = "resource.k8s.io/v1";

/// All manifests, those of the world first. An object without a time of creation is given one, in
/// the order of the file, so that the order of input does not decide; with `creationTimestamp:
/// null` it does not exist yet.
pub(crate) fn expand(world: &World, objects: &[Value]) -> Result<Vec<Value>, ScenarioError> {
    let mut all = Vec::new();
    for (name, note) in world.nodes.iter() {
        node(name, note, &mut all)?;
    }
    match &world.classes {
        Some(classes) => all.extend(classes.iter().map(|(n, s)| class(n, s.as_deref()))),
        None => all.push(class(DRIVER, Some(&format!("device.driver == \"{DRIVER}\"")))),
    }
    for (name, note) in world.templates.iter() {
        all.push(template(name, note)?);
    }
    for (name, note) in world.claims.iter() {
        all.push(named_claim(name, note)?);
    }
    for (name, note) in world.pods.iter() {
        pod(name, note, &mut all)?;
    }
    all.extend(objects.iter().cloned());
    stamp(&mut all)?;
    Ok(all)
}

fn error<T>(message: String) -> Result<T, ScenarioError> {
    Err(ScenarioError(message))
}

/// Gives each object a time of creation, a second after the one before it.
fn stamp(objects: &mut [Value]) -> Result<(), ScenarioError> {
    let mut uncreated = 0;
    for (at, object) in objects.iter_mut().enumerate() {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return error(format!("Object {} has no `metadata`.", at + 1));
        };
        match metadata.get("creationTimestamp") {
            None => {
                let time =
                    format!("2026-01-01T{:02}:{:02}:{:02}Z", at / 3600, at / 60 % 60, at % 60);
                metadata.insert("creationTimestamp".to_owned(), json!(time));
            }
            Some(Value::Null) => {
                metadata.remove("creationTimestamp");
                uncreated += 1;
            }
            Some(_) => {}
        }
    }
    if uncreated > 1 {
        return error(
            "At most one object may have `creationTimestamp: null`: between two of them the order \
             of input decides, and a scenario also runs reversed."
                .to_owned(),
        );
    }
    Ok(())
}

fn meta(kind: &str, api_version: &str, metadata: Value, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    merge(&mut object, &rest);
    object
}

/// Lays `over` over `under`, map by map.
fn merge(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                match under.get_mut(key) {
                    Some(there) => merge(there, value),
                    None => {
                        under.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (under, over) => *under = over.clone(),
    }
}

fn or(value: &Option<Value>, default: &str) -> Value {
    value.clone().unwrap_or_else(|| json!(default))
}

/// `KEY=VALUE:EFFECT`, `KEY:EFFECT`, each with `@TIME` where it matters when it was added.
fn taints(texts: &[String]) -> Result<Vec<Value>, ScenarioError> {
    texts.iter().map(|text| taint(text)).collect()
}

fn taint(text: &str) -> Result<Value, ScenarioError> {
    if let Some((text, added)) = text.split_once('@') {
        let mut taint = taint(text)?;
        taint["timeAdded"] = json!(added);
        return Ok(taint);
    }
    let Some((left, effect)) = text.rsplit_once(':') else {
        return error(format!("The taint `{text}` is not KEY=VALUE:EFFECT or KEY:EFFECT."));
    };
    Ok(match left.split_once('=') {
        Some((key, value)) => json!({"key": key, "value": value, "effect": effect}),
        None => json!({"key": left, "effect": effect}),
    })
}

/// `KEY=VALUE:EFFECT`, `KEY:EFFECT`, `KEY=VALUE`, `KEY`, or `*` for everything; each with `@SECONDS`
/// where it is for a time.
fn tolerations(texts: &[String]) -> Vec<Value> {
    let one = |text: &String| {
        let (text, seconds) =
            text.split_once('@').map_or((text.as_str(), None), |(text, s)| (text, Some(s)));
        let (left, effect) = text.rsplit_once(':').unwrap_or((text, ""));
        let mut toleration = match left.split_once('=') {
            Some((key, value)) => json!({"key": key, "operator": "Equal", "value": value}),
            None if left == "*" => json!({"operator": "Exists"}),
            None => json!({"key": left, "operator": "Exists"}),
        };
        if !effect.is_empty() {
            toleration["effect"] = json!(effect);
        }
        if let Some(seconds) = seconds.and_then(|seconds| seconds.parse::<i64>().ok()) {
            toleration["tolerationSeconds"] = json!(seconds);
        }
        toleration
    };
    texts.iter().map(one).collect()
}

fn node(name: &str, note: &NodeNote, all: &mut Vec<Value>) -> Result<(), ScenarioError> {
    let mut allocatable = json!({
        "cpu": or(&note.cpu, "64"),
        "memory": or(&note.memory, "256Gi"),
        "pods": or(&note.pods, "110"),
        "ephemeral-storage": or(&note.ephemeral, "1Ti"),
    });
    merge(&mut allocatable, &Value::Object(note.resources.clone()));
    let mut labels = json!({"kubernetes.io/hostname": name});
    merge(&mut labels, &Value::Object(note.labels.clone()));
    let mut spec = json!({});
    if note.cordoned {
        spec["unschedulable"] = json!(true);
    }
    if !note.taints.is_empty() {
        spec["taints"] = json!(taints(&note.taints)?);
    }
    let rest = json!({"spec": spec, "status": {"allocatable": allocatable}});
    all.push(meta("Node", "v1", json!({"name": name, "labels": labels}), rest));
    if !note.devices.is_empty() {
        slices(name, note, all)?;
    }
    if !note.islands.is_empty() {
        let island = |(at, members): (usize, &Vec<String>)| {
            let members: Vec<String> = members.iter().flat_map(|m| names(m)).collect();
            json!({"name": format!("island-{at}"), "fabric": "nvswitch", "members": members})
        };
        let islands: Vec<Value> = note.islands.iter().enumerate().map(island).collect();
        let spec = json!({"source": "assumed", "islands": islands});
        let rest = json!({"spec": spec});
        all.push(meta("NodeTopology", "phalanx.dev/v1alpha1", json!({"name": name}), rest));
    }
    Ok(())
}

/// The slice of a node's devices and, where there are counters, the slice of its counter sets.
fn slices(node: &str, note: &NodeNote, all: &mut Vec<Value>) -> Result<(), ScenarioError> {
    let driver = note.driver.as_deref().unwrap_or(DRIVER);
    let count = 1 + u32::from(!note.counters.is_empty()) + note.missing;
    let pool = json!({"name": node, "generation": 1, "resourceSliceCount": count});
    let slice = |name: String, key: &str, value: Value| {
        let spec = json!({"driver": driver, "pool": pool, "nodeName": node, key: value});
        meta("ResourceSlice", RESOURCE, json!({"name": name}), json!({"spec": spec}))
    };
    let devices: Result<Vec<Value>, _> = note.devices.iter().map(|(n, d)| device(n, d)).collect();
    all.push(slice(format!("{node}-devices"), "devices", json!(devices?)));
    if !note.counters.is_empty() {
        let sets: Vec<Value> = note
            .counters
            .iter()
            .map(|(name, counters)| json!({"name": name, "counters": amounts(counters)}))
            .collect();
        all.push(slice(format!("{node}-counters"), "sharedCounters", json!(sets)));
    }
    Ok(())
}

/// Each amount as `{value: …}`.
fn amounts(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter().map(|(name, value)| (name.clone(), json!({"value": value}))).collect()
}

fn device(name: &str, note: &DeviceNote) -> Result<Value, ScenarioError> {
    let mut device = json!({"name": name});
    if !note.attributes.is_empty() {
        let one = |(name, value): (&String, &Value)| (name.clone(), attribute(value));
        device["attributes"] = Value::Object(note.attributes.iter().map(one).collect());
    }
    if !note.capacity.is_empty() {
        device["capacity"] = Value::Object(amounts(&note.capacity));
    }
    if !note.taints.is_empty() {
        device["taints"] = json!(taints(&note.taints)?);
    }
    if !note.uses.is_empty() {
        let uses: Vec<Value> = note
            .uses
            .iter()
            .map(|(set, counters)| json!({"counterSet": set, "counters": amounts(counters)}))
            .collect();
        device["consumesCounters"] = json!(uses);
    }
    if note.shared {
        device["allowMultipleAllocations"] = json!(true);
    }
    Ok(device)
}

fn attribute(value: &Value) -> Value {
    match value {
        Value::Bool(b) => json!({"bool": b}),
        Value::Number(n) => json!({"int": n}),
        Value::String(s) => match s.strip_prefix("version:") {
            Some(version) => json!({"version": version}),
            None => json!({"string": s}),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => value.clone(),
    }
}

fn class(name: &str, selector: Option<&str>) -> Value {
    let spec = match selector {
        Some(expression) => json!({"selectors": [{"cel": {"expression": expression}}]}),
        None => json!({}),
    };
    meta("DeviceClass", RESOURCE, json!({"name": name}), json!({"spec": spec}))
}

/// `spec.devices` of a claim.
fn devices(note: &ClaimNote) -> Value {
    let requests: Vec<Value> = if note.requests.is_empty() {
        let one = RequestNote {
            class: note.class.clone(),
            count: note.count,
            all: note.all,
            select: note.select.clone(),
            tolerates: note.tolerates.clone(),
            capacity: note.capacity.clone(),
            admin: note.admin,
        };
        vec![request("gpu", &one)]
    } else {
        note.requests.iter().map(|(name, note)| request(name, note)).collect()
    };
    let mut constraints = Vec::new();
    if let Some(attribute) = &note.r#match {
        constraints.push(json!({"matchAttribute": attribute}));
    }
    if let Some(attribute) = &note.distinct {
        constraints.push(json!({"distinctAttribute": attribute}));
    }
    let mut devices = json!({"requests": requests});
    if !constraints.is_empty() {
        devices["constraints"] = json!(constraints);
    }
    devices
}

fn request(name: &str, note: &RequestNote) -> Value {
    let mut exactly = json!({"deviceClassName": note.class.as_deref().unwrap_or(DRIVER)});
    if note.all {
        exactly["allocationMode"] = json!("All");
    } else if let Some(count) = note.count {
        exactly["count"] = json!(count);
    }
    if let Some(expression) = &note.select {
        exactly["selectors"] = json!([{"cel": {"expression": expression}}]);
    }
    if !note.tolerates.is_empty() {
        exactly["tolerations"] = json!(tolerations(&note.tolerates));
    }
    if !note.capacity.is_empty() {
        exactly["capacity"] = json!({"requests": note.capacity});
    }
    if note.admin {
        exactly["adminAccess"] = json!(true);
    }
    json!({"name": name, "exactly": exactly})
}

fn namespaced(name: &str, align: Option<&str>) -> Value {
    let mut metadata = json!({"name": name, "namespace": NAMESPACE, "uid": format!("uid-{name}")});
    if let Some(align) = align {
        metadata["annotations"] = json!({"phalanx.dev/align": align});
    }
    metadata
}

fn template(name: &str, note: &ClaimNote) -> Result<Value, ScenarioError> {
    if note.holds.is_some() || !note.users.is_empty() || note.deleting || note.owner.is_some() {
        return error(format!(
            "The template `{name}` holds nothing and has no users: a claim does."
        ));
    }
    let rest = json!({"spec": {"spec": {"devices": devices(note)}}});
    let metadata = namespaced(name, note.align.as_deref());
    Ok(meta("ResourceClaimTemplate", RESOURCE, metadata, rest))
}

fn named_claim(name: &str, note: &ClaimNote) -> Result<Value, ScenarioError> {
    let mut metadata = namespaced(name, note.align.as_deref());
    if note.deleting {
        metadata["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        metadata["finalizers"] = json!(["resource.kubernetes.io/delete-protection"]);
    }
    if let Some(pod) = &note.owner {
        metadata["ownerReferences"] = json!([owner(pod)]);
    }
    if note.extended {
        metadata["annotations"]["resource.kubernetes.io/extended-resource-claim"] = json!("true");
    }
    let mut status = json!({});
    if let Some(holds) = &note.holds {
        status["allocation"] = allocation(note, &holds.node, &holds.devices)?;
    }
    if !note.users.is_empty() {
        let users: Vec<String> = note.users.iter().flat_map(|user| names(user)).collect();
        status["reservedFor"] = json!(users.iter().map(|pod| user(pod)).collect::<Vec<_>>());
    }
    let rest = json!({"spec": {"devices": devices(note)}, "status": status});
    Ok(meta("ResourceClaim", RESOURCE, metadata, rest))
}

fn owner(pod: &str) -> Value {
    let uid = format!("uid-{pod}");
    json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": true})
}

fn user(pod: &str) -> Value {
    json!({"resource": "pods", "name": pod, "uid": format!("uid-{pod}")})
}

/// The allocation of `held` devices on `node`, dealt out to the requests in their order.
fn allocation(note: &ClaimNote, node: &str, held: &[String]) -> Result<Value, ScenarioError> {
    let mut requests: Vec<(&str, u32)> =
        note.requests.iter().map(|(name, r)| (name, r.count.unwrap_or(1))).collect();
    if requests.is_empty() {
        requests.push(("gpu", u32::MAX));
    }
    let mut slots = requests.iter().flat_map(|(name, n)| std::iter::repeat_n(*name, *n as usize));
    let mut results = Vec::new();
    for device in held.iter().flat_map(|device| names(device)) {
        let Some(request) = slots.next() else {
            return error(format!("More devices are held on `{node}` than requested."));
        };
        let (pool, device) = device.split_once('/').unwrap_or((node, &device));
        let mut result =
            json!({"request": request, "driver": DRIVER, "pool": pool, "device": device});
        if note.admin {
            result["adminAccess"] = json!(true);
        }
        results.push(result);
    }
    let fields = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
    let selector = json!({"nodeSelectorTerms": [{"matchFields": fields}]});
    Ok(json!({"devices": {"results": results}, "nodeSelector": selector}))
}

fn pod(name: &str, note: &PodNote, all: &mut Vec<Value>) -> Result<(), ScenarioError> {
    let mut requests = json!({"cpu": or(&note.cpu, "1"), "memory": or(&note.memory, "1Gi")});
    if let Some(ephemeral) = &note.ephemeral {
        requests["ephemeral-storage"] = ephemeral.clone();
    }
    merge(&mut requests, &Value::Object(note.resources.clone()));
    let mut resources = json!({"requests": requests});
    if !note.resources.is_empty() {
        resources["limits"] = Value::Object(note.resources.clone());
    }
    let mut container = json!({"name": "main", "resources": resources});
    if !note.ports.is_empty() {
        let ports = note.ports.iter().map(|port| json!({"containerPort": port, "hostPort": port}));
        container["ports"] = json!(ports.collect::<Vec<_>>());
    }
    let mut spec = json!({"containers": [container]});
    if let Some(node) = &note.node {
        spec["nodeName"] = json!(node);
    }
    if let Some(priority) = note.priority {
        spec["priority"] = json!(priority);
    }
    if !note.gates.is_empty() {
        let gates = note.gates.iter().map(|gate| json!({"name": gate}));
        spec["schedulingGates"] = json!(gates.collect::<Vec<_>>());
    }
    if !note.selector.is_empty() {
        spec["nodeSelector"] = Value::Object(note.selector.clone());
    }
    if !note.tolerates.is_empty() {
        spec["tolerations"] = json!(tolerations(&note.tolerates));
    }
    let mut status = json!({"phase": if note.node.is_some() { "Running" } else { "Pending" }});
    if let Some(node) = &note.nominated {
        status["nominatedNodeName"] = json!(node);
    }
    let claims = pod_claims(name, note, &mut status, all)?;
    if !claims.is_empty() {
        spec["resourceClaims"] = json!(claims);
    }
    merge(&mut spec, &Value::Object(note.spec.clone()));
    let mut metadata = namespaced(name, note.align.as_deref());
    if !note.labels.is_empty() {
        metadata["labels"] = Value::Object(note.labels.clone());
    }
    if note.terminating {
        metadata["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        metadata["deletionGracePeriodSeconds"] = json!(30);
    }
    all.push(meta("Pod", "v1", metadata, json!({"spec": spec, "status": status})));
    Ok(())
}

/// `spec.resourceClaims` of a pod; the template and the claim that are made for it go to `all`.
fn pod_claims(
    pod: &str,
    note: &PodNote,
    status: &mut Value,
    all: &mut Vec<Value>,
) -> Result<Vec<Value>, ScenarioError> {
    let mut claims = Vec::new();
    if let Some(devices) = &note.devices {
        let name = format!("{pod}-devices");
        all.push(template(&name, devices)?);
        claims.push(json!({"name": "devices", "resourceClaimTemplateName": name}));
        if !note.holds.is_empty() {
            let Some(node) = &note.node else {
                return error(format!("The pod `{pod}` holds devices and has no node."));
            };
            all.push(own_claim(pod, &name, devices, node, &note.holds)?);
            status["resourceClaimStatuses"] =
                json!([{"name": "devices", "resourceClaimName": name}]);
        }
    } else if !note.holds.is_empty() {
        return error(format!("The pod `{pod}` holds devices that it does not ask for."));
    }
    for name in &note.claims {
        claims.push(json!({"name": name, "resourceClaimName": name}));
    }
    for name in &note.templates {
        claims.push(json!({"name": name, "resourceClaimTemplateName": name}));
    }
    Ok(claims)
}

/// The claim that the resourceclaim controller made for a pod, allocated.
fn own_claim(
    pod: &str,
    name: &str,
    note: &ClaimNote,
    node: &str,
    held: &[String],
) -> Result<Value, ScenarioError> {
    let mut metadata = namespaced(name, note.align.as_deref());
    metadata["ownerReferences"] = json!([owner(pod)]);
    merge(
        &mut metadata,
        &json!({"annotations": {"resource.kubernetes.io/pod-claim-name": "devices"}}),
    );
    let status = json!({"allocation": allocation(note, node, held)?, "reservedFor": [user(pod)]});
    let rest = json!({"spec": {"devices": devices(note)}, "status": status});
    Ok(meta("ResourceClaim", RESOURCE, metadata, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifests(world: &str) -> Vec<Value> {
        let world: World = serde_saphyr::from_str(world).unwrap();
        expand(&world, &[]).unwrap()
    }

    #[test]
    fn a_node_becomes_a_node_a_slice_and_its_links() {
        let all = manifests(
            "nodes:\n  n1:\n    taints: [a=b:NoSchedule]\n    devices:\n      gpu-0..3: {capacity: {memory: 80Gi}}\n    islands: [[gpu-0..1], [gpu-2..3]]\n",
        );
        let kinds: Vec<_> = all.iter().map(|o| o["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["Node", "ResourceSlice", "NodeTopology", "DeviceClass"]);
        assert_eq!(all[0]["spec"]["taints"][0]["effect"], "NoSchedule");
        assert_eq!(all[1]["spec"]["devices"][3]["capacity"]["memory"]["value"], "80Gi");
        assert_eq!(all[2]["spec"]["islands"][1]["members"], json!(["gpu-2", "gpu-3"]));
    }

    #[test]
    fn a_pod_that_holds_devices_has_its_template_and_its_claim() {
        let all = manifests("pods:\n  p: {node: n1, devices: {count: 2}, holds: [gpu-0..1]}\n");
        let kinds: Vec<_> = all.iter().map(|o| o["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["DeviceClass", "ResourceClaimTemplate", "ResourceClaim", "Pod"]);
        let results = &all[2]["status"]["allocation"]["devices"]["results"];
        assert_eq!(results[1]["device"], "gpu-1");
        assert_eq!(all[2]["status"]["reservedFor"][0]["name"], "p");
        assert_eq!(all[3]["status"]["resourceClaimStatuses"][0]["resourceClaimName"], "p-devices");
        assert!(
            all[3]["metadata"]["creationTimestamp"].as_str()
                > all[2]["metadata"]["creationTimestamp"].as_str()
        );
    }

    #[test]
    fn contradictions_are_errors() {
        for world in [
            "pods:\n  p: {holds: [gpu-0]}\n",
            "pods:\n  p: {devices: {}, holds: [gpu-0]}\n",
            "templates:\n  t: {users: [p]}\n",
            "nodes:\n  n: {taints: [x]}\n",
        ] {
            let world: World = serde_saphyr::from_str(world).unwrap();
            assert!(expand(&world, &[]).is_err());
        }
    }
}
