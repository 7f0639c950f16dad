//! Devices: slices of each node, and a claim of its own for a pod.

use serde_json::{Value, json};

use super::super::chance::Chance;

const DRIVER: &str = "gpu.example.com";

/// The class of all devices, and the slices of the nodes.
pub(super) fn slices(chance: &mut Chance, nodes: u64) -> Vec<Value> {
    let of_driver = format!("device.driver == {DRIVER:?}");
    let mut class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": of_driver}}]}});
    if chance.one_in(2) {
        class["spec"]["extendedResourceName"] = json!("nvidia.com/gpu");
    }
    let mut all = vec![class];
    for node in 1..=nodes {
        let devices: Vec<Value> = (0..chance.below(4))
            .map(|at| {
                let model = chance.pick(&["large", "small"]);
                json!({"name": format!("gpu-{at}"), "attributes": {"model": {"string": model}}})
            })
            .collect();
        if devices.is_empty() {
            continue;
        }
        let node = format!("n{node}");
        all.push(json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": format!("{node}-gpus")},
            "spec": {"driver": DRIVER, "nodeName": node, "devices": devices,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}));
        if chance.one_in(3) {
            all.push(in_use(&node));
        }
    }
    all
}

/// A claim of another pod that holds the first device of a node.
fn in_use(node: &str) -> Value {
    let name = format!("in-use-{node}");
    let user = json!({"resource": "pods", "name": "other", "uid": "other"});
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": name, "uid": name, "namespace": "a"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly":
            {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}]}},
        "status": {"reservedFor": [user], "allocation": {"devices": {"results": [
            {"request": "r", "driver": DRIVER, "pool": node, "device": "gpu-0"}]}}}})
}

/// The claims of a pod's own: one to be allocated, perhaps beside one that is.
pub(super) fn claims(chance: &mut Chance, pod: &mut Value) -> Vec<Value> {
    let mut all = vec![claim(chance, pod)];
    if chance.one_in(3) {
        let mut held = claim(chance, pod);
        let name = format!("held-{}", all[0]["metadata"]["name"].as_str().unwrap_or_default());
        held["metadata"]["name"] = json!(name);
        held["metadata"]["uid"] = json!(name);
        let requests = &held["spec"]["devices"]["requests"];
        let alternatives = ["r/one", "r/other", "r/third"];
        let list = requests[0]["firstAvailable"].is_array();
        let request = if list { chance.pick(&alternatives) } else { "r" };
        let device = format!("held-{}", chance.below(1000));
        held["status"] = json!({"allocation": {"devices": {"results": [
            {"request": request, "driver": DRIVER, "pool": "far", "device": device}]}}});
        let uses = json!([{"name": "c", "resourceClaimName": all[0]["metadata"]["name"]},
            {"name": "h", "resourceClaimName": name}]);
        pod["spec"]["resourceClaims"] = uses;
        all.push(held);
    }
    all
}

fn claim(chance: &mut Chance, pod: &mut Value) -> Value {
    let name = format!("claim-{}", pod["metadata"]["name"].as_str().unwrap_or_default());
    let mut asked = |name: &str| {
        let mut one = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount",
            "count": 1 + chance.below(2)});
        if chance.one_in(2) {
            let model = chance.pick(&["large", "small"]);
            let expression = format!("device.attributes[{DRIVER:?}].model == {model:?}");
            one["selectors"] = json!([{"cel": {"expression": expression}}]);
        }
        if !name.is_empty() {
            one["name"] = json!(name);
        }
        one
    };
    let first = asked("one");
    let request = match first["count"] == 1 {
        true => json!({"name": "r", "firstAvailable": [first, asked("other"), asked("third")]}),
        false => json!({"name": "r", "exactly": asked("")}),
    };
    pod["spec"]["resourceClaims"] = json!([{"name": "c", "resourceClaimName": name}]);
    let uid = name.clone();
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": name, "uid": uid, "namespace": pod["metadata"]["namespace"]},
        "spec": {"devices": {"requests": [request]}}})
}
