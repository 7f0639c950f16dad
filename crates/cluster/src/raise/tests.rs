//! The writes against the worked example: two drivers, an alternative, class and claim
//! configuration, one node.

use std::sync::Arc;

use phalanx_engine::{DeviceKey, Grant, Name, PoolKey};
use phalanx_objects::{Kind, Object, ObjectRef};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::compat::Compat;
use crate::finding::Source;
use crate::lower::{Lowering, ObjectEvent};
use crate::world::Objects;

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a test's object")
}

fn put(objects: &mut Objects, object: Object) {
    let event = ObjectEvent::Applied(Box::new(object), Source::default());
    if let ObjectEvent::Applied(object, source) = crate::lower::named(event) {
        objects.put(object.reference(), *object, source);
    }
}

fn slice(driver: &str, pool: &str, spec: Value, devices: Value) -> Object {
    let mut spec = spec;
    spec["driver"] = json!(driver);
    spec["pool"] = json!({"name": pool, "generation": 1, "resourceSliceCount": 1});
    spec["devices"] = devices;
    let name = format!("{driver}-{pool}");
    Object::ResourceSlice(Arc::new(read(json!({"metadata": {"name": name}, "spec": spec}))))
}

fn class(name: &str, config: Value) -> Object {
    let spec = json!({"config": config});
    Object::DeviceClass(Arc::new(read(json!({"metadata": {"name": name}, "spec": spec}))))
}

fn objects(all: Vec<Object>) -> Objects {
    let mut objects = Objects::default();
    for object in all {
        put(&mut objects, object);
    }
    objects
}

fn grant(request: u16, alternative: u16, driver: &str, pool: &str, device: &str) -> Grant {
    let pool = PoolKey { driver: Name::new(driver), pool: Name::new(pool) };
    let device = DeviceKey { pool, device: Name::new(device) };
    Grant { claim: 0, request, alternative, device, admin: false, share: None }
}

fn claim_ref() -> ObjectRef {
    ObjectRef { kind: Kind::ResourceClaim, namespace: "ml".into(), name: "both".into() }
}

fn given(asks: Value, grants: &[Grant], objects: &Objects) -> Value {
    let asks = read(asks);
    let claim = claim_ref();
    let granted = Granted {
        asks: &asks,
        claim: &claim,
        uid: "u1",
        grants: grants.iter().collect(),
        node: "node-1",
        now: api_time(Timestamp(0)),
    };
    let mut lowering = Lowering::new(Compat::default());
    for object in objects.in_order() {
        lowering.absorb(ObjectEvent::Applied(Box::new(object.clone()), Source::default()));
    }
    lowering.settle();
    let allocation = allocate(&granted, &Slices::new(&lowering, objects), objects);
    serde_json::to_value(allocation).expect("an allocation")
}

fn opaque(driver: &str, value: &str) -> Value {
    json!({"driver": driver, "parameters": {"sharing": value}})
}

#[test]
fn an_allocation_is_written_as_kube_scheduler_writes_it() {
    let local = json!({"nodeName": "node-1"});
    let world = objects(vec![
        slice("gpu.nvidia.com", "node-1", local.clone(), json!([{"name": "gpu-0"}])),
        slice("dra.net", "node-1", local, json!([{"name": "nic-2"}])),
        class("gpu", json!([{"opaque": opaque("gpu.nvidia.com", "class")}])),
        class("nic", json!([])),
    ]);
    let tolerations = json!([{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]);
    let gpu = json!({"deviceClassName": "gpu", "tolerations": tolerations});
    let nic = json!([
        {"name": "tcp", "deviceClassName": "other"},
        {"name": "rdma", "deviceClassName": "nic"},
    ]);
    let asks = json!({
        "requests": [{"name": "gpu", "exactly": gpu}, {"name": "nic", "firstAvailable": nic}],
        "config": [
            {"requests": ["nic/tcp"], "opaque": opaque("dra.net", "not chosen")},
            {"requests": ["gpu", "nic"], "opaque": opaque("gpu.nvidia.com", "covers all")},
            {"opaque": opaque("gpu.nvidia.com", "all")},
        ],
    });
    let grants = [
        grant(0, 0, "gpu.nvidia.com", "node-1", "gpu-0"),
        grant(1, 1, "dra.net", "node-1", "nic-2"),
    ];
    let result = |request: &str, driver: &str, device: &str| json!({"request": request, "driver": driver, "pool": "node-1", "device": device});
    let mut first = result("gpu", "gpu.nvidia.com", "gpu-0");
    first["tolerations"] = tolerations;
    assert_eq!(
        given(asks, &grants, &world),
        json!({
            "devices": {
                "results": [first, result("nic/rdma", "dra.net", "nic-2")],
                "config": [
                    {"source": "FromClass", "requests": ["gpu"], "opaque": opaque("gpu.nvidia.com", "class")},
                    {"source": "FromClaim", "opaque": opaque("gpu.nvidia.com", "covers all")},
                    {"source": "FromClaim", "opaque": opaque("gpu.nvidia.com", "all")},
                ],
            },
            "nodeSelector": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]},
            ]},
            "allocationTimestamp": "1970-01-01T00:00:00Z",
        })
    );
}

#[test]
fn a_class_that_every_request_names_is_configured_once_for_all() {
    let world = objects(vec![
        slice("d", "p", json!({"allNodes": true}), json!([{"name": "a"}, {"name": "b"}])),
        class("gpu", json!([{"opaque": opaque("d", "x")}])),
    ]);
    let asks = json!({"requests": [
        {"name": "one", "exactly": {"deviceClassName": "gpu"}},
        {"name": "two", "exactly": {"deviceClassName": "gpu"}},
    ]});
    let grants = [grant(0, 0, "d", "p", "a"), grant(1, 0, "d", "p", "b")];
    let allocation = given(asks, &grants, &world);
    assert_eq!(
        allocation["devices"]["config"],
        json!([{"source": "FromClass", "opaque": opaque("d", "x")}])
    );
    assert_eq!(allocation.get("nodeSelector"), None, "every node can use it");
}

#[test]
fn devices_in_the_network_join_their_node_selectors() {
    let term = |key: &str| {
        let expression = json!({"key": key, "operator": "Exists"});
        json!({"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}})
    };
    let devices = json!([{"name": "a", "bindingConditions": ["Ready"]}]);
    let bound = json!([{"name": "b", "bindsToNode": true}]);
    let world = objects(vec![
        slice("d", "east", term("zone"), devices),
        slice("d", "west", term("rack"), json!([{"name": "a"}])),
        slice("d", "near", term("rack"), bound),
    ]);
    let request = |name: &str| json!({"name": name, "exactly": {"deviceClassName": "c"}});
    let asks = json!({"requests": [request("x"), request("y"), request("z")]});
    let two = [grant(0, 0, "d", "east", "a"), grant(1, 0, "d", "west", "a")];
    let allocation = given(asks.clone(), &two, &world);
    assert_eq!(
        allocation["nodeSelector"]["nodeSelectorTerms"],
        json!([{"matchExpressions": [
            {"key": "zone", "operator": "Exists"},
            {"key": "rack", "operator": "Exists"},
        ]}])
    );
    assert_eq!(allocation["allocationTimestamp"], json!("1970-01-01T00:00:00Z"));
    let [east, west] = two;
    let allocation = given(asks, &[east, west, grant(2, 0, "d", "near", "b")], &world);
    let term = &allocation["nodeSelector"]["nodeSelectorTerms"][0];
    assert_eq!(term["matchFields"][0]["values"], json!(["node-1"]));
}

#[test]
fn shares_carry_an_id_and_all_their_capacities() {
    let capacity = json!({"memory": {"value": "80Gi"}});
    let devices = json!([{"name": "a", "allowMultipleAllocations": true, "capacity": capacity}]);
    let world = objects(vec![slice("d", "p", json!({"nodeName": "node-1"}), devices)]);
    let mut share = grant(0, 0, "d", "p", "a");
    share.share = Some(Box::new([(Name::new("memory"), (10_i128 << 30) * 1_000_000_000)]));
    let asks = json!({"requests": [{"name": "x", "exactly": {"deviceClassName": "c"}}]});
    let first = given(asks.clone(), std::slice::from_ref(&share), &world);
    let result = &first["devices"]["results"][0];
    assert_eq!(result["consumedCapacity"], json!({"memory": "10Gi"}));
    assert_eq!(result["shareID"].as_str().map(str::len), Some(36));
    assert_eq!(first, given(asks, &[share], &world), "the same decision looks the same twice");
}

#[test]
fn a_claim_is_finalized_then_allocated_and_reserved_then_the_pod_is_bound() {
    let claim: ResourceClaim = read(json!({
        "metadata": {"name": "both", "namespace": "ml", "uid": "u1", "resourceVersion": "7"},
    }));
    let mut draft = Draft::default();
    draft.claim(&claim);
    let allocation = phalanx_objects::resource::AllocationResult::default();
    let after = draft.reserve(&claim_ref(), Some(allocation), user("train-0", "p0"));
    draft.bind(bind("train-0", "p0"), after);
    let after = draft.reserve(&claim_ref(), None, user("train-1", "p1"));
    draft.bind(bind("train-1", "p1"), after);
    let effects = draft.finish();
    let order: Vec<(&str, Vec<u32>)> = effects
        .iter()
        .map(|effect| {
            let word = match &effect.write {
                Write::CreateClaim(_) => "create",
                Write::Finalize(_) => "finalize",
                Write::Unprotect(_) => "unprotect",
                Write::DeleteClaim(_) => "delete",
                Write::ClaimStatus(_) => "status",
                Write::PodStatus(_) => "status",
                Write::KeepVolume(_) => "keep",
                Write::SelectNode(_) => "select",
                Write::Bind(_) => "bind",
            };
            (word, effect.after.iter().map(|id| id.0).collect())
        })
        .collect();
    assert_eq!(
        order,
        [
            ("finalize", vec![]),
            ("status", vec![0]),
            ("bind", vec![1]),
            ("status", vec![1]),
            ("bind", vec![3]),
        ]
    );
    let guards: Vec<&Guard> = effects.iter().map(|effect| &effect.guard).collect();
    let guard = |uid: &str, version| Guard { uid: uid.to_owned(), version };
    let left_by = |id| guard("u1", GuardVersion::LeftBy(EffectId(id)));
    let bound = |uid| guard(uid, GuardVersion::Any);
    assert_eq!(
        guards,
        [
            &guard("u1", GuardVersion::Read("7".to_owned())),
            &left_by(0),
            &bound("p0"),
            &left_by(1),
            &bound("p1"),
        ],
        "what a write leaves is what the next one must find"
    );
    let documents = manifests(&effects);
    let kinds: Vec<&Value> = documents.iter().map(|document| &document["kind"]).collect();
    assert_eq!(kinds, ["ResourceClaim", "Binding", "Binding"]);
    let written = &documents[0];
    assert_eq!(written["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(
        written["status"]["reservedFor"],
        json!([
            {"resource": "pods", "name": "train-0", "uid": "p0"},
            {"resource": "pods", "name": "train-1", "uid": "p1"},
        ])
    );
    assert_eq!(
        documents[1]["target"],
        json!({"apiVersion": "v1", "kind": "Node", "name": "node-1"})
    );
}

fn bind(pod: &str, uid: &str) -> Bind {
    Bind {
        namespace: "ml".into(),
        pod: pod.into(),
        uid: uid.into(),
        planned: false,
        spec_of: ObjectRef { kind: Kind::Pod, namespace: "ml".into(), name: pod.into() },
        role: 0,
        node: "node-1".into(),
    }
}

#[test]
fn an_allocation_that_nobody_uses_is_taken_back_in_one_write() {
    let claim: ResourceClaim = read(json!({
        "metadata": {"name": "both", "namespace": "ml", "finalizers": [FINALIZER]},
        "status": {"allocation": {"devices": {"results": [
            {"request": "x", "driver": "d", "pool": "p", "device": "a"},
        ]}}},
    }));
    let mut draft = Draft::default();
    draft.claim(&claim);
    draft.release(&claim_ref());
    let effects = draft.finish();
    let [Effect { write: Write::ClaimStatus(claim), .. }] = effects.as_slice() else {
        panic!("one write of the status: {effects:?}");
    };
    assert_eq!(claim.status, phalanx_objects::resource::ResourceClaimStatus::default());
}

#[test]
fn a_claim_that_is_given_up_and_allocated_anew_is_two_documents() {
    let claim: ResourceClaim = read(json!({
        "metadata": {
            "name": "both", "namespace": "ml", "uid": "u1", "resourceVersion": "7",
            "finalizers": [FINALIZER],
        },
        "status": {
            "allocation": {"devices": {"results": [
                {"request": "x", "driver": "d", "pool": "p", "device": "a"},
            ]}},
        },
    }));
    let mut draft = Draft::default();
    draft.claim(&claim);
    draft.release(&claim_ref());
    let allocation = read(json!({"devices": {"results": [
        {"request": "x", "driver": "d", "pool": "p", "device": "b"},
    ]}}));
    let after = draft.reserve(&claim_ref(), Some(allocation), user("train-0", "p0"));
    draft.bind(bind("train-0", "p0"), after);
    let documents = manifests(&draft.finish());
    let kinds: Vec<&Value> = documents.iter().map(|document| &document["kind"]).collect();
    assert_eq!(kinds, ["ResourceClaim", "ResourceClaim", "Binding"]);
    let nothing = json!({"allocation": null, "reservedFor": null, "devices": null});
    assert_eq!(documents[0]["status"], nothing, "merged, it takes away what is there");
    assert_eq!(documents[0]["metadata"]["resourceVersion"], json!("7"));
    assert_eq!(documents[1].pointer("/metadata/resourceVersion"), None, "the first leaves another");
    let results = &documents[1]["status"]["allocation"]["devices"]["results"];
    assert_eq!(results[0]["device"], json!("b"));
    assert_eq!(documents[1]["status"]["reservedFor"][0]["name"], json!("train-0"));
}

#[test]
fn what_drivers_say_of_devices_is_left_to_them() {
    let claim: ResourceClaim = read(json!({
        "metadata": {"name": "both", "namespace": "ml", "uid": "u1", "finalizers": [FINALIZER]},
        "status": {
            "allocation": {"devices": {"results": [
                {"request": "x", "driver": "d", "pool": "p", "device": "a"},
            ]}},
            "devices": [{"driver": "d", "pool": "p", "device": "a", "conditions": []}],
        },
    }));
    let mut draft = Draft::default();
    draft.claim(&claim);
    let after = draft.reserve(&claim_ref(), None, user("train-0", "p0"));
    draft.bind(bind("train-0", "p0"), after);
    let documents = manifests(&draft.finish());
    assert_eq!(documents[0]["status"]["reservedFor"][0]["name"], json!("train-0"));
    assert_eq!(documents[0].pointer("/status/devices"), None);
}
