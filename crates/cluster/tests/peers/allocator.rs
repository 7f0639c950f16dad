//! Upstream's allocator on recorded worlds: which claims can be had on a node, and with
//! `--device-order upstream` (and strict CEL) the very devices. Worlds with alpha gates on are left
//! out, and those that the API server would refuse.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cluster::plan::{PlanOptions, plan};
use phalanx_cluster::view::{PodView, ViewOptions, plan_document};
use phalanx_cluster::{Compat, Version};
use phalanx_engine::{DeviceOrder, Policy};
use serde_json::{Value, json};

use super::shared::{lines, list, text, world};

/// Gates that the allocator reads and that 1.37 lets one turn.
const GATES: [&str; 5] = [
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAFractionalCapacityRange",
    "DRAPartitionableDevices",
];

/// Gates that are on in 1.37 and locked.
const LOCKED: [&str; 2] = ["DRAAdminAccess", "DRAPrioritizedList"];

/// Alpha gates: what Phalanx does where they are on is not upstream's yet.
const ALPHA: [&str; 4] = [
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAListTypeAttributes",
    "DRAOptionalNodeOperations",
];

/// What came out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    asked: usize,
    granted: usize,
    refused: usize,
    same_devices: usize,
}

#[derive(Debug, Default)]
struct Outcome {
    count: Count,
    /// By world: what differs, and how.
    answers: BTreeMap<String, String>,
    devices: BTreeMap<String, String>,
}

#[test]
fn generated_worlds_are_answered_as_upstream_answers_them() {
    let Some(worlds) = lines("dra/generated-worlds.jsonl") else { return };
    let settable = |world: &&Value| LOCKED.iter().all(|gate| features(world).contains(gate));
    let outcome = compare_all(worlds.iter().filter(settable));
    outcome.differs_only([
        // An error of CEL leaves one device out; with strict CEL the answer is upstream's.
        ("gen-1-188", "answer"),
        // With DRADeviceBindingConditions off Phalanx drops the devices that have conditions;
        // upstream still takes their pool last.
        ("gen-1-320", "devices"),
    ]);
    let count = Count { asked: 739, granted: 481, refused: 258, same_devices: 480 };
    assert_eq!(outcome.count, count);
}

#[test]
fn upstreams_own_cases_are_answered_as_upstream_answers_them() {
    let Some(worlds) = lines("dra/allocator-cases.jsonl") else { return };
    // The cases turn on only what they are about; what is locked in 1.37 can't be off.
    let outcome = compare_all(&worlds);
    outcome
        .differs_only([("admin-access-disabled", "answer"), ("admin-access-disabled", "devices")]);
    let count = Count { asked: 102, granted: 56, refused: 46, same_devices: 56 };
    assert_eq!(outcome.count, count);
}

impl Outcome {
    /// Fails where more differs than is known, or less.
    fn differs_only<const N: usize>(&self, known: [(&str, &str); N]) {
        let answers = self.answers.keys().map(|world| (world.as_str(), "answer"));
        let devices = self.devices.keys().map(|world| (world.as_str(), "devices"));
        let differing: BTreeSet<(&str, &str)> = answers.chain(devices).collect();
        assert_eq!(differing, known.into(), "{:#?}\n{:#?}", self.answers, self.devices);
    }
}

fn features(world: &Value) -> BTreeSet<&str> {
    list(world, "/features").iter().filter_map(Value::as_str).collect()
}

fn compare_all<'a>(worlds: impl IntoIterator<Item = &'a Value>) -> Outcome {
    let mut outcome = Outcome::default();
    for world in worlds {
        let beta = ALPHA.iter().all(|gate| !features(world).contains(gate));
        let valid = list(world, "/apiProblems").is_empty() && text(world, "/context") == "live";
        if beta && valid {
            compare(world, &mut outcome);
        }
    }
    println!("{:?}", outcome.count);
    outcome
}

fn compare(recorded: &Value, outcome: &mut Outcome) {
    let name = text(recorded, "/name").to_owned();
    let answer = &recorded["answer"];
    let yes = answer["results"].is_array() && answer["error"].is_null();
    outcome.count.asked += 1;
    outcome.count.granted += usize::from(yes);
    outcome.count.refused += usize::from(!yes);
    let best = ask(recorded, Policy::default());
    if placed(&best) != yes {
        let theirs = answer["error"].as_str().unwrap_or(if yes { "yes" } else { "no" });
        let codes: Vec<&str> = best.reasons.iter().map(|reason| reason.code).collect();
        outcome.answers.insert(name.clone(), format!("{codes:?} where upstream says {theirs}"));
    }
    let first = Policy { device_order: DeviceOrder::Upstream, strict_cel: true };
    let first = ask(recorded, first);
    if yes && placed(&first) {
        let (ours, theirs) = (given(&first), granted(recorded));
        if ours == theirs {
            outcome.count.same_devices += 1;
        } else {
            outcome.devices.insert(name, format!("{ours:?} where upstream has {theirs:?}"));
        }
    } else if yes != placed(&first) {
        let codes: Vec<&str> = first.reasons.iter().map(|reason| reason.code).collect();
        let theirs = answer["error"].as_str().unwrap_or(if yes { "yes" } else { "no" });
        outcome.devices.insert(name, format!("{codes:?} where upstream says {theirs}"));
    }
}

fn placed(view: &PodView) -> bool {
    view.node.is_some()
}

/// Claim, request, driver, pool and device.
type Given<'a> = Vec<[&'a str; 5]>;

fn given(view: &PodView) -> Given<'_> {
    let devices = view.devices.iter();
    devices.map(|d| [&*d.claim, &*d.request, &*d.driver, &*d.pool, &*d.device]).collect()
}

fn granted(recorded: &Value) -> Given<'_> {
    let mut all = Given::new();
    let results = list(recorded, "/answer/results");
    for (claim, result) in list(recorded, "/claims").iter().zip(results) {
        for device in list(result, "/devices/results") {
            let part = |name| text(device, name);
            all.push([
                text(claim, "/metadata/name"),
                part("/request"),
                part("/driver"),
                part("/pool"),
                part("/device"),
            ]);
        }
    }
    all
}

/// The plan for one pod that uses the world's claims.
fn ask(recorded: &Value, policy: Policy) -> PodView {
    let on = features(recorded);
    let gates: Vec<String> =
        GATES.iter().map(|gate| format!("{gate}={}", on.contains(gate))).collect();
    let compat = Compat::new(Version::V1_37).with_gates(&gates.join(",")).expect("known gates");
    let objects = objects(recorded);
    let mut world = world(compat, &objects);
    let options = PlanOptions { policy, ..PlanOptions::default() };
    let plan = plan(&mut world, &options);
    let document = plan_document(&mut world, &plan, &ViewOptions::default());
    document.pods.into_iter().find(|pod| pod.name == "asks").expect("the pod")
}

fn objects(recorded: &Value) -> Vec<Value> {
    let mut node = recorded["node"].clone();
    node["status"]["allocatable"] = json!({"cpu": "64", "memory": "512Gi", "pods": "110"});
    let mut objects = vec![node];
    objects.extend(list(recorded, "/slices").iter().cloned());
    objects.extend(list(recorded, "/classes").iter().cloned());
    let mut uses = Vec::new();
    for (index, claim) in list(recorded, "/claims").iter().enumerate() {
        let mut claim = claim.clone();
        claim["metadata"]["namespace"] = json!("default");
        claim["status"] = json!({});
        uses.push(
            json!({"name": format!("c{index}"), "resourceClaimName": claim["metadata"]["name"]}),
        );
        objects.push(claim);
    }
    objects.extend(held(recorded).into_iter().enumerate().map(|(index, result)| {
        json!({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": format!("held-{index}"), "namespace": "others"},
            "status": {
                "allocation": {"devices": {"results": [result]}},
                "reservedFor": [{"resource": "pods", "name": "other", "uid": "other"}],
            },
        })
    }));
    objects.push(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks", "namespace": "default"},
        "spec": {"containers": [{"name": "c"}], "resourceClaims": uses},
    }));
    objects
}

/// Devices and shares in use. The capacity that the shares of a device take together is on the
/// first of them.
fn held(recorded: &Value) -> Vec<Value> {
    let state = &recorded["allocatedState"];
    let key = |d: &Value| (d["driver"].clone(), d["pool"].clone(), d["device"].clone());
    let result = |d: &Value| json!({"request": "r", "driver": d["driver"], "pool": d["pool"], "device": d["device"]});
    let mut all: Vec<Value> = list(state, "/allocatedDevices").iter().map(result).collect();
    let shares = list(state, "/allocatedSharedDeviceIDs");
    let taken = list(state, "/aggregatedCapacity");
    let mut first: Vec<_> = Vec::new();
    for share in shares {
        let mut share_of = result(share);
        share_of["shareID"] = share["shareID"].clone();
        if !first.contains(&key(share)) {
            first.push(key(share));
            if let Some(taken) = taken.iter().find(|taken| key(taken) == key(share)) {
                share_of["consumedCapacity"] = taken["consumedCapacity"].clone();
            }
        }
        all.push(share_of);
    }
    for taken in taken.iter().filter(|taken| !first.contains(&key(taken))) {
        let mut share_of = result(taken);
        share_of["shareID"] = json!("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaab");
        share_of["consumedCapacity"] = taken["consumedCapacity"].clone();
        all.push(share_of);
    }
    all
}
