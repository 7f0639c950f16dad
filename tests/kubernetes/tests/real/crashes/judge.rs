//! What is wrong with a namespace when all has come to rest, told from its objects alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::board::text;

/// The objects of a namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stand {
    pub(crate) pods: Vec<Value>,
    pub(crate) claims: Vec<Value>,
    pub(crate) groups: Vec<Value>,
    pub(crate) placements: Vec<Value>,
}

/// What is wrong, each a sentence. As many groups as are given are to run whole, and each pod of none.
pub(crate) fn wrong(stand: &Stand, whole: usize) -> Vec<String> {
    let mut wrong = gangs(stand, whole);
    wrong.extend(devices_twice(stand));
    wrong.extend(stand.claims.iter().flat_map(|claim| held_for_nobody(stand, claim)));
    wrong.extend(stand.pods.iter().filter(|pod| is_bound(pod)).flat_map(|pod| lacks(stand, pod)));
    let alone = stand.pods.iter().filter(|pod| group(pod).is_empty() && !is_bound(pod));
    wrong.extend(alone.map(|pod| format!("pod {} is not bound", name(pod))));
    wrong
}

fn gangs(stand: &Stand, whole: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut run = 0;
    for of in &stand.groups {
        let members: Vec<&Value> = stand.pods.iter().filter(|pod| group(pod) == name(of)).collect();
        let bound = members.iter().filter(|pod| is_bound(pod)).count();
        if bound != 0 && bound != members.len() {
            wrong.push(format!("{bound} of the {} pods of {} are bound", members.len(), name(of)));
        }
        run += usize::from(bound > 0 && bound == members.len());
        let placement = format!("podgroup-{}", name(of));
        let placement = stand.placements.iter().find(|found| name(found) == placement);
        let phase = placement.map_or("none", |placement| text(placement, "/spec/phase"));
        let right = if bound == 0 { "Waiting" } else { "Done" };
        if phase != right {
            wrong
                .push(format!("{bound} of {} are bound, and its Placement says {phase}", name(of)));
        }
    }
    if run != whole {
        wrong.push(format!("{run} groups are bound whole, and there is room for {whole}"));
    }
    if stand.placements.len() != stand.groups.len() {
        wrong.push(format!("{} Placements", stand.placements.len()));
    }
    wrong
}

fn devices_twice(stand: &Stand) -> Vec<String> {
    let mut holders: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for claim in &stand.claims {
        for result in list(claim, "/status/allocation/devices/results") {
            let part = |of| text(result, of);
            let device = format!("{}/{}/{}", part("/driver"), part("/pool"), part("/device"));
            holders.entry(device).or_default().push(name(claim));
        }
    }
    let twice = holders.into_iter().filter(|(_, claims)| claims.len() > 1);
    twice.map(|(device, claims)| format!("{device} is in {}", claims.join(" and "))).collect()
}

/// What a claim keeps although no bound pod uses it.
fn held_for_nobody(stand: &Stand, claim: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let bound: BTreeSet<&str> = stand
        .pods
        .iter()
        .filter(|pod| is_bound(pod))
        .map(|pod| text(pod, "/metadata/uid"))
        .collect();
    let users = list(claim, "/status/reservedFor");
    let strange = users.iter().filter(|user| !bound.contains(text(user, "/uid")));
    let of = name(claim);
    wrong.extend(
        strange.map(|user| {
            format!("claim {of} is kept for {}, which is not bound", text(user, "/name"))
        }),
    );
    if users.is_empty() && claim.pointer("/status/allocation").is_some() {
        wrong.push(format!("claim {of} has devices that nobody uses"));
    }
    if users.is_empty() && !list(claim, "/metadata/finalizers").is_empty() {
        wrong.push(format!("claim {of} is protected, and nobody uses it"));
    }
    wrong
}

/// What a bound pod lacks.
fn lacks(stand: &Stand, pod: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let of = name(pod);
    if text(pod, "/status/phase") != "Running" {
        wrong.push(format!("pod {of} is bound and does not run"));
    }
    let made = list(pod, "/status/resourceClaimStatuses").iter();
    let named = list(pod, "/spec/resourceClaims").iter();
    let claims = made.chain(named).map(|claim| text(claim, "/resourceClaimName"));
    for claim in claims.filter(|claim| !claim.is_empty()) {
        let found = stand.claims.iter().find(|found| name(found) == claim);
        let users = found.map_or(&[][..], |found| list(found, "/status/reservedFor"));
        if !users.iter().any(|user| text(user, "/uid") == text(pod, "/metadata/uid")) {
            wrong.push(format!("pod {of} is bound, and claim {claim} is not kept for it"));
        }
        if found.is_none_or(|found| list(found, "/status/allocation/devices/results").is_empty()) {
            wrong.push(format!("pod {of} is bound, and claim {claim} has no device"));
        }
    }
    wrong
}

fn name(of: &Value) -> &str {
    text(of, "/metadata/name")
}

fn group(pod: &Value) -> &str {
    text(pod, "/spec/schedulingGroup/podGroupName")
}

fn is_bound(pod: &Value) -> bool {
    !text(pod, "/spec/nodeName").is_empty()
}

fn list<'v>(of: &'v Value, pointer: &str) -> &'v [Value] {
    of.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Two members with a device each, and one on its own.
fn right() -> Stand {
    let pod = |name: &str, group: Value, at: usize| {
        json!({
            "metadata": {"name": name, "uid": format!("uid-{name}")},
            "spec": {"nodeName": "n1", "schedulingGroup": group},
            "status": {
                "phase": "Running",
                "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": format!("c{at}")}],
            },
        })
    };
    let claim = |user: &str, at: usize| {
        let result = json!({"driver": "d", "pool": "n1", "device": format!("gpu-{at}")});
        json!({
            "metadata": {"name": format!("c{at}"), "finalizers": ["protection"]},
            "status": {
                "allocation": {"devices": {"results": [result]}},
                "reservedFor": [{"name": user, "uid": format!("uid-{user}")}],
            },
        })
    };
    let of = json!({"podGroupName": "a"});
    Stand {
        pods: vec![pod("a-0", of.clone(), 0), pod("a-1", of, 1), pod("alone", Value::Null, 2)],
        claims: vec![claim("a-0", 0), claim("a-1", 1), claim("alone", 2)],
        groups: vec![json!({"metadata": {"name": "a"}})],
        placements: vec![json!({"metadata": {"name": "podgroup-a"}, "spec": {"phase": "Done"}})],
    }
}

/// Asserts that a change makes the right stand wrong, in these words among others.
fn assert_told(change: impl FnOnce(&mut Stand), sentence: &str) {
    let mut stand = right();
    change(&mut stand);
    let wrong = wrong(&stand, 1);
    assert!(wrong.iter().any(|told| told == sentence), "{sentence} {wrong:#?}");
}

#[test]
fn what_is_right_is_not_called_wrong() {
    assert_eq!(wrong(&right(), 1), Vec::<String>::new());
}

#[test]
fn half_a_gang_is_called_wrong() {
    let half = |stand: &mut Stand| stand.pods[1]["spec"]["nodeName"] = Value::Null;
    assert_told(half, "1 of the 2 pods of a are bound");
    assert_told(half, "claim c1 is kept for a-1, which is not bound");
    assert_told(half, "0 groups are bound whole, and there is room for 1");
}

#[test]
fn a_device_in_two_claims_is_called_wrong() {
    let twice = |stand: &mut Stand| {
        let device =
            &mut stand.claims[2]["status"]["allocation"]["devices"]["results"][0]["device"];
        *device = json!("gpu-0");
    };
    assert_told(twice, "d/n1/gpu-0 is in c0 and c2");
}

#[test]
fn what_is_stuck_is_called_wrong() {
    for phase in ["Held", "Committing", "Waiting"] {
        let sentence = format!("2 of a are bound, and its Placement says {phase}");
        assert_told(|stand| stand.placements[0]["spec"]["phase"] = json!(phase), &sentence);
    }
    assert_told(|stand| stand.placements.clear(), "2 of a are bound, and its Placement says none");
    let alone = |stand: &mut Stand| stand.pods[2]["spec"]["nodeName"] = Value::Null;
    assert_told(alone, "pod alone is not bound");
    let unused = |stand: &mut Stand| stand.claims[2]["status"]["reservedFor"] = json!([]);
    assert_told(unused, "claim c2 has devices that nobody uses");
    assert_told(unused, "claim c2 is protected, and nobody uses it");
    assert_told(unused, "pod alone is bound, and claim c2 is not kept for it");
    let bare = |stand: &mut Stand| stand.claims[2]["status"]["allocation"] = json!({});
    assert_told(bare, "pod alone is bound, and claim c2 has no device");
    let pending = |stand: &mut Stand| stand.pods[2]["status"]["phase"] = json!("Pending");
    assert_told(pending, "pod alone is bound and does not run");
}
