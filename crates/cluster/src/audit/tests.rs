//! Each rule broken once, and a clean list of writes.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::finding::Source;
use crate::lower::ObjectEvent;
use crate::raise::{EffectId, Guard};

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a test's object")
}

fn put(objects: &mut Objects, object: Object) {
    let event = ObjectEvent::Applied(Box::new(object), Source::default());
    if let ObjectEvent::Applied(object, source) = crate::lower::named(event) {
        objects.put(object.reference(), *object, source);
    }
}

fn world() -> Objects {
    let mut objects = Objects::default();
    let node = json!({
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "2"}},
    });
    put(&mut objects, Object::Node(Arc::new(read(node))));
    let slice = json!({
        "metadata": {"name": "s"},
        "spec": {"driver": "d", "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": "a", "attributes": {"island": {"string": "x"}}},
                {"name": "b", "attributes": {"island": {"string": "y"}}},
                {"name": "ill", "taints": [{"key": "xid", "effect": "NoExecute"}]},
                {"name": "whole", "consumesCounters": memory("80Gi")},
                {"name": "half-0", "consumesCounters": memory("40Gi")},
                {"name": "half-1", "consumesCounters": memory("40Gi")},
                {"name": "shared", "allowMultipleAllocations": true,
                    "capacity": {"memory": {"value": "40Gi"}}, "consumesCounters": memory("40Gi")},
            ],
            "sharedCounters": [{"name": "set", "counters": {"memory": {"value": "80Gi"}}}]},
    });
    put(&mut objects, Object::ResourceSlice(Arc::new(read(slice))));
    for (name, cpu) in [("p", "4"), ("q", "6")] {
        let claims = json!([{"name": "gpu", "resourceClaimName": name}]);
        let pod = json!({
            "metadata": {"name": name, "namespace": "ml", "uid": name},
            "spec": {
                "resourceClaims": claims,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
            },
        });
        put(&mut objects, Object::Pod(Arc::new(read(pod))));
        put(&mut objects, Object::ResourceClaim(Arc::new(claim(name, json!({})))));
    }
    objects
}

fn memory(amount: &str) -> Value {
    json!([{"counterSet": "set", "counters": {"memory": {"value": amount}}}])
}

fn claim(name: &str, status: Value) -> ResourceClaim {
    read(json!({
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "c"}}]}},
        "status": status,
    }))
}

fn given(name: &str, devices: &[&str]) -> ResourceClaim {
    let results: Vec<Value> = devices
        .iter()
        .map(|device| json!({"request": "gpu", "driver": "d", "pool": "n1", "device": device}))
        .collect();
    let users = json!([{"resource": "pods", "name": name, "uid": name}]);
    claim(name, json!({"allocation": {"devices": {"results": results}}, "reservedFor": users}))
}

fn bind(name: &str, node: &str) -> Write {
    Write::Bind(Bind {
        namespace: "ml".into(),
        pod: name.into(),
        uid: name.into(),
        planned: false,
        spec_of: ObjectRef { kind: Kind::Pod, namespace: "ml".into(), name: name.into() },
        role: 0,
        node: node.into(),
    })
}

fn status(claim: ResourceClaim) -> Write {
    Write::ClaimStatus(Box::new(claim))
}

fn says(writes: Vec<Write>) -> Vec<String> {
    let effects: Vec<Effect> = writes
        .into_iter()
        .map(|write| Effect { id: EffectId(0), after: vec![], guard: Guard::default(), write })
        .collect();
    audit_objects(&world(), &effects).iter().map(ToString::to_string).collect()
}

#[test]
fn clean_writes_pass() {
    assert_eq!(says(vec![status(given("p", &["a"])), bind("p", "n1")]), Vec::<String>::new());
}

#[test]
fn a_device_goes_to_one_claim() {
    let said = says(vec![status(given("p", &["a"])), bind("p", "n1"), status(given("q", &["a"]))]);
    assert_eq!(said, ["ResourceClaim ml/q: device d/n1/a is held by ResourceClaim ml/p"]);
}

#[test]
fn partitions_share_what_their_device_has() {
    let short = "ResourceClaim ml/q: d/n1 has not that much of the counter memory of set left";
    let both = |a, b| says(vec![status(given("p", &[a])), status(given("q", &[b]))]);
    assert_eq!(both("whole", "half-0"), [short]);
    assert_eq!(both("half-0", "whole"), [short]);
    assert_eq!(both("half-0", "half-1"), Vec::<String>::new());
}

/// A share of `shared`.
fn share(name: &str, memory: &str) -> ResourceClaim {
    let mut claim = given(name, &["shared"]);
    for result in claim.status.allocation.iter_mut().flat_map(|a| &mut a.devices.results) {
        result.share_id = Some(name.to_owned());
        result.consumed_capacity = read(json!({"memory": memory}));
    }
    claim
}

#[test]
fn shares_take_no_more_than_the_device_has_and_its_counters_once() {
    let short = "ResourceClaim ml/q: device d/n1/shared has not that much memory left";
    let both = |a, b| says(vec![status(share("p", a)), status(share("q", b))]);
    assert_eq!(both("20Gi", "21Gi"), [short]);
    assert_eq!(both("20Gi", "20Gi"), Vec::<String>::new());
    let counted = says(vec![status(share("p", "1Gi")), status(given("q", &["whole"]))]);
    assert_eq!(counted.len(), 1, "{counted:?}");
}

#[test]
fn requests_constraints_and_taints_are_kept() {
    let said = says(vec![status(given("p", &["a", "b"]))]);
    assert_eq!(said, ["ResourceClaim ml/p: request gpu is not met by 2 devices"]);
    let said = says(vec![status(given("p", &["ill"]))]);
    assert_eq!(said, ["ResourceClaim ml/p: the taint xid of d/n1/ill is not tolerated"]);
    let said = says(vec![status(given("p", &["gone"]))]);
    assert!(said[0].contains("d/n1/gone is published by no slice"), "{said:?}");
    let mut pair = given("p", &["a", "b"]);
    if let Some(exactly) = &mut pair.spec.devices.requests[0].exactly {
        exactly.count = 2;
    }
    pair.spec.devices.constraints = read(json!([{"matchAttribute": "d/island"}]));
    let said = says(vec![status(pair)]);
    assert_eq!(said, ["ResourceClaim ml/p: the constraint on d/island is broken"]);
}

#[test]
fn nodes_are_not_promised_more_than_they_have() {
    let said = says(vec![
        status(given("p", &["a"])),
        bind("p", "n1"),
        status(given("q", &["b"])),
        bind("q", "n1"),
    ]);
    assert_eq!(said, ["Pod ml/q: it asks 6000 of cpu, and n1 has 4000 of 8000 promised already"]);
}

#[test]
fn a_pod_is_bound_once_its_claims_are_reserved() {
    let said = says(vec![bind("p", "n1")]);
    assert_eq!(said, ["Pod ml/p: it needs 1 claims, and 0 are reserved for it"]);
    let said = says(vec![bind("p", "n9")]);
    assert_eq!(said, ["Pod ml/p: it is bound to n9, which is no node"]);
}
