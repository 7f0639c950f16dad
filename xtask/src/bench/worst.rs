//! Questions that are hard for a search: equal devices under constraints that can't be met, long
//! lists of alternatives, counters that run out, `All` over many pools. Ours beside upstream's
//! allocator, which is stopped after the ten seconds that kube-scheduler gives it for a node.

use std::time::Duration;

use serde_json::{Value, json};

use super::dra::compare;
use super::kinds::{class, counter_set, of_profile, partitions, shareable, slice};
use super::question::Question;
use crate::run::Done;

const DRIVER: &str = "gpu.example.com";
const NODE: &str = "node-a";

/// Gates of the allocator that are on in 1.37.
const FEATURES: [&str; 8] = [
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAFractionalCapacityRange",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
];

/// Asks both sides each question, and prints time and steps.
pub(crate) fn measure(runs: usize) -> Done {
    let all = compare(&questions(), runs)?;
    println!("   one node; ours with its steps, upstream's allocator with a warm cache of CEL");
    for one in &all {
        let ratio = one.ours.as_secs_f64() / one.warm.as_secs_f64().max(1e-9);
        println!(
            "   {:<58} {:>9.1?} {:>8} steps  {:<4} upstream {:>9.1?}  {:<9} ratio {ratio:.4}",
            one.name, one.ours, one.steps, one.answer, one.warm, one.theirs
        );
    }
    let slower = all.iter().filter(|c| c.ours > c.warm + Duration::from_millis(1)).count();
    println!("   slower than upstream's by more than a millisecond: {slower}");
    Ok(())
}

fn question(name: &str, slices: Vec<Value>, mut asks: Value) -> Question {
    for request in asks["requests"].as_array_mut().into_iter().flatten() {
        request.get_mut("exactly").into_iter().for_each(counts);
        let list = request.get_mut("firstAvailable").and_then(Value::as_array_mut);
        list.into_iter().flatten().for_each(counts);
    }
    let mut slices = slices;
    slices.sort_by_key(|slice| slice["metadata"]["name"].to_string());
    Question {
        name: name.to_owned(),
        features: FEATURES.map(str::to_owned).into(),
        node: json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}),
        slices,
        classes: [DRIVER, "mig.example.com", "share.example.com"].map(class).into(),
        claims: vec![json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": "claim", "namespace": "default", "uid": "claim"},
            "spec": {"devices": asks}})],
        held: Vec::new(),
    }
}

/// What an API server adds to a request: that it counts.
fn counts(request: &mut Value) {
    if request["allocationMode"].is_null() {
        request["allocationMode"] = json!("ExactCount");
    }
    if request["count"].is_null() && request["allocationMode"] == "ExactCount" {
        request["count"] = json!(1);
    }
}

/// One pool of devices with two attributes each.
fn pool(devices: u32, a: impl Fn(u32) -> u32, b: impl Fn(u32) -> u32) -> Vec<Value> {
    let device = |n: u32| {
        json!({"name": format!("gpu-{n:02}"),
        "attributes": {"a": {"int": a(n)}, "b": {"int": b(n)}}})
    };
    vec![slice(NODE, DRIVER, "gpus", 1, "devices", (0..devices).map(device).collect())]
}

fn exactly(name: &str, count: u32) -> Value {
    json!({"name": name, "exactly": {"deviceClassName": DRIVER, "count": count}})
}

/// Of the devices whose attribute `a` is at least this.
fn above(name: &str, count: u32, least: u32) -> Value {
    let expression = format!("device.attributes[\"{DRIVER}\"].a >= {least}");
    json!({"name": name, "deviceClassName": DRIVER, "count": count,
        "selectors": [{"cel": {"expression": expression}}]})
}

fn rule(kind: &str, attribute: &str) -> Value {
    let mut rule = json!({});
    rule[kind] = json!(format!("{DRIVER}/{attribute}"));
    rule
}

fn questions() -> Vec<Question> {
    let mut all = equal_devices();
    all.extend(lists());
    all.extend(all_of_many_pools());
    all.extend(partitioned());
    all.extend(amounts());
    all
}

fn equal_devices() -> Vec<Question> {
    let (matches, differs) = ("matchAttribute", "distinctAttribute");
    let asks = |count: u32, constraints: Value| json!({"requests": [exactly("gpu", count)], "constraints": constraints});
    let both = json!([rule(matches, "a"), rule(matches, "b")]);
    vec![
        question(
            "5 of 8 where a NUMA node has 4",
            pool(8, |n| n / 4, |_| 0),
            asks(5, json!([rule(matches, "a")])),
        ),
        question(
            "9 of 32 where two rules leave 8 to agree",
            pool(32, |n| n / 16, |n| n % 2),
            asks(9, both.clone()),
        ),
        question(
            "17 of 32 where two rules leave 8 to agree",
            pool(32, |n| n / 16, |n| n % 2),
            asks(17, both),
        ),
        question(
            "9 of 16 that differ, of 8 values",
            pool(16, |n| n / 2, |_| 0),
            asks(9, json!([rule(differs, "a")])),
        ),
        question(
            "8 small requests before 8 that need the first 8 of 16",
            pool(16, |n| n % 8, |n| u32::from(n < 8)),
            json!({"requests": first_ones_last()}),
        ),
    ]
}

/// Eight requests that any device serves, then eight that the first eight devices serve: who takes
/// the first that comes goes back over all of them.
fn first_ones_last() -> Vec<Value> {
    let any = (0..8).map(|n| exactly(&format!("any-{n}"), 1));
    let expression = format!("device.attributes[\"{DRIVER}\"].b == 1");
    let first = |n: u32| {
        json!({"name": format!("first-{n}"), "exactly": {"deviceClassName": DRIVER,
        "selectors": [{"cel": {"expression": expression}}]}})
    };
    any.chain((0..8).map(first)).collect()
}

fn lists() -> Vec<Question> {
    let list = |n: u32, subs: u32| {
        let sub = |s: u32| above(&format!("sub-{s}"), 1 + s % 2, s);
        json!({"name": format!("list-{n}"), "firstAvailable": (0..subs).map(sub).collect::<Vec<_>>()})
    };
    let ask = |requests: u32, last: u32| {
        let mut all: Vec<Value> = (0..requests).map(|n| list(n, 8)).collect();
        all.push(json!({"name": "last", "exactly": {"deviceClassName": DRIVER, "count": last}}));
        json!({"requests": all})
    };
    vec![
        question("4 lists of 8, then more than is left", pool(16, |n| n, |_| 0), ask(4, 13)),
        question("6 lists of 8, then what is just left", pool(16, |n| n, |_| 0), ask(6, 10)),
        question("8 lists of 8, then more than is left", pool(16, |n| n, |_| 0), ask(8, 9)),
    ]
}

fn all_of_many_pools() -> Vec<Question> {
    let pools = |one: u32| -> Vec<Value> {
        let of_pool = |n: u32| {
            let devices: Vec<Value> = (0..one)
                .map(|d| json!({"name": format!("gpu-{d}"), "attributes": {"a": {"int": n}}}))
                .collect();
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
                "metadata": {"name": format!("pool-{n:02}")}, "spec": {"driver": DRIVER,
                    "nodeName": NODE, "devices": devices,
                    "pool": {"name": format!("pool-{n:02}"), "generation": 1, "resourceSliceCount": 1}}})
        };
        (0..32).map(of_pool).collect()
    };
    let every = json!({"requests": [{"name": "all",
        "exactly": {"deviceClassName": DRIVER, "allocationMode": "All"}}]});
    vec![
        question("All of 32 pools with one device", pools(1), every.clone()),
        question("All of 32 pools with four devices: too many", pools(4), every),
    ]
}

/// A node of eight GPUs with 208 partitions in all: each GPU publishes twice thirteen.
fn partitioned() -> Vec<Question> {
    let slices = || {
        let mut all = Vec::new();
        for (n, gpus) in [[0, 1], [2, 3], [4, 5], [6, 7]].into_iter().enumerate() {
            let twice = |gpu: usize| {
                let again = partitions(gpu).into_iter().map(|mut part| {
                    part["name"] = json!(format!("{}-me", part["name"].as_str().unwrap_or("")));
                    part
                });
                partitions(gpu).into_iter().chain(again).collect::<Vec<_>>()
            };
            let parts: Vec<Value> = gpus.into_iter().flat_map(twice).collect();
            let part = format!("parts-{n}");
            all.push(slice(NODE, "mig.example.com", &part, 5, "devices", json!(parts)));
        }
        let sets: Vec<Value> = (0..8).map(counter_set).collect();
        all.push(slice(NODE, "mig.example.com", "sets", 5, "sharedCounters", json!(sets)));
        all
    };
    let parts = |name: &str, profile: &str, count: u32| {
        let mut one = of_profile(profile);
        one["count"] = json!(count);
        json!({"name": name, "exactly": one})
    };
    let asks = |all: &[Value]| json!({"requests": all});
    vec![
        question(
            "16 of 3g over 208 partitions: all there is",
            slices(),
            asks(&[parts("big", "3g", 16)]),
        ),
        question(
            "17 of 3g over 208 partitions: counters run out",
            slices(),
            asks(&[parts("big", "3g", 17)]),
        ),
        question(
            "8 of 1g, 4 of 2g and 6 of 3g over 208 partitions",
            slices(),
            asks(&[parts("a", "1g", 8), parts("b", "2g", 4), parts("c", "3g", 6)]),
        ),
        question(
            "8 of 3g, then 5 of 7g over 208 partitions: no",
            slices(),
            asks(&[parts("a", "3g", 8), parts("b", "7g", 5)]),
        ),
    ]
}

fn amounts() -> Vec<Question> {
    let slices = || {
        let devices: Vec<Value> = (0..4).map(shareable).collect();
        vec![slice(NODE, "share.example.com", "shares", 1, "devices", json!(devices))]
    };
    let shares = |sizes: &[u32]| {
        let one = |(n, gib): (usize, &u32)| {
            json!({"name": format!("r{n}"),
            "exactly": {"deviceClassName": "share.example.com",
                "capacity": {"requests": {"memory": format!("{gib}Gi")}}}})
        };
        json!({"requests": sizes.iter().enumerate().map(one).collect::<Vec<_>>()})
    };
    vec![
        question(
            "5 shares of more than half of 4 devices",
            slices(),
            shares(&[45, 45, 45, 45, 45]),
        ),
        question(
            "8 shares that fill 4 devices to the last",
            slices(),
            shares(&[25, 35, 45, 55, 25, 35, 45, 55]),
        ),
        question(
            "9 shares, one more than fits",
            slices(),
            shares(&[30, 30, 30, 30, 30, 30, 30, 30, 30]),
        ),
    ]
}
