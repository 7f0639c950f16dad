//! Drawn worlds with drivers, alternatives, shares, admin access, binding conditions, configuration
//! and devices in the network: each field of each write is held to the rules.

use phalanx_cluster::raise::{Write, raise};
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Lowering, ObjectEvent, Source, Version};
use phalanx_objects::read::{Item, read};
use phalanx_objects::resource::DeviceRequestAllocationResult as Granted;
use serde_json::{Value, json};

use super::chance::Chance;
use super::support::options;
use super::written::{Checked, check};

/// A world of these objects.
fn world_of(objects: &[Value], version: Version) -> World {
    let mut world = World::new(Lowering::new(Compat::new(version)));
    for (ordinal, object) in (0..).zip(objects) {
        read("test.json", object.to_string().as_bytes(), &mut |item| match item {
            Item::Object(object, _) => {
                let source = Source { ordinal, ..Source::default() };
                world.absorb(ObjectEvent::Applied(Box::new(object), source));
            }
            Item::Gone(..) | Item::Unknown { .. } | Item::Problem(_) => panic!("{item:?}"),
        });
    }
    world.settle();
    world
}

fn opaque(driver: &str, value: &str) -> Value {
    json!({"opaque": {"driver": driver, "parameters": {"set": value}}})
}

/// Two nodes with GPUs that can be shared or not, NICs of which some are in the network, and two to
/// four pods whose claims ask for them in every form.
fn drawn(chance: &mut Chance) -> Vec<Value> {
    let mut objects = Vec::new();
    for node in ["a", "b"] {
        objects.push(json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node, "labels": {"zone": "one", "rack": node}},
            "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}}));
        objects.push(gpus(chance, node));
    }
    objects.push(nics(chance));
    for class in ["gpu", "nic"] {
        let driver = format!("{class}.example.com");
        let config: Vec<Value> =
            (0..chance.below(3)).map(|n| opaque(&driver, &format!("class {n}"))).collect();
        let select = json!({"cel": {"expression": format!("device.driver == \"{driver}\"")}});
        objects.push(json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
            "metadata": {"name": class}, "spec": {"selectors": [select], "config": config}}));
    }
    for n in 0..2 + chance.below(3) {
        let name = format!("p{n}");
        objects.push(json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default", "uid": format!("claim-{n}")},
            "spec": {"devices": asks(chance)}}));
        objects.push(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": format!("pod-{n}")},
            "spec": {"containers": [{"name": "c"}],
                "resourceClaims": [{"name": "d", "resourceClaimName": name}]}}));
    }
    objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default",
        "labels": {"resource.kubernetes.io/admin-access": "true"}}}));
    objects
}

fn gpus(chance: &mut Chance, node: &str) -> Value {
    let mut devices = Vec::new();
    for n in 0..2 + chance.below(3) {
        let mut device = json!({"name": format!("gpu-{n}"),
            "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "100"}}});
        if chance.one_in(2) {
            device["allowMultipleAllocations"] = json!(true);
            device["capacity"]["memory"]["requestPolicy"] = json!({"default": "8Gi",
                "validRange": {"min": "8Gi", "step": "8Gi"}});
            device["capacity"]["cores"]["requestPolicy"] =
                json!({"default": "10", "validValues": ["10", "50"]});
        }
        if chance.one_in(3) {
            device["taints"] =
                json!([{"key": "example.com/hot", "value": "yes", "effect": "NoSchedule"}]);
        }
        devices.push(device);
    }
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("{node}-gpu")}, "spec": {"driver": "gpu.example.com",
            "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices}})
}

/// NICs in the network: for all, for a zone, or each for its own.
fn nics(chance: &mut Chance) -> Value {
    let mut spec = json!({"driver": "nic.example.com",
        "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 1}});
    let term = |key: &str| json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]});
    let way = chance.below(3);
    match way {
        0 => spec["allNodes"] = json!(true),
        1 => spec["nodeSelector"] = term("zone"),
        _ => spec["perDeviceNodeSelection"] = json!(true),
    }
    let mut devices = Vec::new();
    for n in 0..4 {
        let mut device = json!({"name": format!("nic-{n}")});
        if way == 2 {
            match chance.below(3) {
                0 => device["nodeName"] = json!("a"),
                1 => device["nodeSelector"] = term(chance.pick(&["zone", "rack"])),
                _ => device["allNodes"] = json!(true),
            }
        }
        if chance.one_in(3) {
            device["bindsToNode"] = json!(true);
        }
        if chance.one_in(3) {
            device["bindingConditions"] = json!(["example.com/Attached"]);
            device["bindingFailureConditions"] = json!(["example.com/Failed"]);
        }
        devices.push(device);
    }
    spec["devices"] = json!(devices);
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": "fabric-nic"}, "spec": spec})
}

/// One to three requests, with configuration about some of them.
fn asks(chance: &mut Chance) -> Value {
    let mut requests = Vec::new();
    for n in 0..=chance.below(3) {
        let class = chance.pick(&["gpu", "gpu", "nic"]);
        let mut one = json!({"deviceClassName": class, "count": 1 + chance.below(2)});
        if chance.one_in(3) {
            one["tolerations"] = json!([{"key": "example.com/hot", "operator": "Exists"}]);
        }
        if class == "gpu" && chance.one_in(3) {
            one["capacity"] = json!({"requests": {
                "memory": chance.pick(&["8Gi", "10Gi", "20Gi"]),
                "cores": chance.pick(&["5", "10", "20"]),
            }});
        }
        let name = format!("r{n}");
        requests.push(if chance.one_in(3) {
            let mut first = one.clone();
            first["name"] = json!("best");
            first["count"] = json!(3);
            one["name"] = json!("next");
            json!({"name": name, "firstAvailable": [first, one]})
        } else {
            if chance.one_in(4) {
                one["adminAccess"] = json!(true);
            }
            json!({"name": name, "exactly": one})
        });
    }
    let mut config = Vec::new();
    for _ in 0..chance.below(3) {
        let mut own = opaque("gpu.example.com", "claim");
        own["requests"] = match chance.below(4) {
            0 => json!([]),
            1 => json!(requests.iter().map(|r| r["name"].clone()).collect::<Vec<_>>()),
            2 => json!(["r0/next"]),
            _ => json!(["r0"]),
        };
        config.push(own);
    }
    json!({"requests": requests, "config": config})
}

#[test]
fn drawn_worlds_are_written_as_the_api_accepts_them() {
    let mut all = Checked::default();
    for seed in 0..600 {
        let objects = drawn(&mut Chance::new(seed));
        check(&mut world_of(&objects, Version::V1_37), &mut all);
        assert!(all.wrong.is_empty(), "seed {seed}: {:#?}", all.wrong);
    }
    println!("looked at {:?}", all.seen);
    for what in [
        "admin access",
        "allocations",
        "alternatives",
        "binding conditions",
        "configurations",
        "network selectors",
        "no node selector",
        "node-local selectors",
        "shares",
        "tolerations",
    ] {
        assert!(all.seen.get(what).is_some_and(|n| *n >= 20), "{what}: {:?}", all.seen);
    }
}

#[test]
fn one_device_given_twice_has_two_shares_with_ids_of_their_own() {
    let objects = [
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}}),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": "a-gpu"}, "spec": {"driver": "gpu.example.com", "nodeName": "a",
                "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0", "allowMultipleAllocations": true,
                    "capacity": {"memory": {"value": "80Gi"}}}]}}),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
            "metadata": {"name": "gpu"}, "spec": {}}),
        claim_of_two(),
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "uid": "pod"},
            "spec": {"containers": [{"name": "c"}],
                "resourceClaims": [{"name": "d", "resourceClaimName": "two"}]}}),
    ];
    let mut world = world_of(&objects, Version::V1_37);
    let plan = phalanx_cluster::plan::plan(&mut world, &options());
    let effects = raise(&world, &plan);
    assert_eq!(effects, raise(&world, &plan), "the same decision is written the same way");
    let results: Vec<Granted> = effects
        .iter()
        .filter_map(|effect| match &effect.write {
            Write::ClaimStatus(claim) => claim.status.allocation.clone(),
            Write::CreateClaim(_)
            | Write::Finalize(_)
            | Write::Unprotect(_)
            | Write::DeleteClaim(_)
            | Write::PodStatus(_)
            | Write::KeepVolume(_)
            | Write::SelectNode(_)
            | Write::Bind(_) => None,
        })
        .flat_map(|allocation| allocation.devices.results)
        .collect();
    let [one, two] = results.as_slice() else { panic!("two results: {results:?}") };
    assert_eq!((&one.device, &two.device), (&"gpu-0".to_owned(), &"gpu-0".to_owned()));
    assert_ne!(one.share_id, two.share_id);
    let amounts: Vec<String> =
        [one, two].map(|share| share.consumed_capacity["memory"].to_string()).into();
    assert_eq!(amounts, ["16Gi", "24Gi"]);
    let mut checked = Checked::default();
    check(&mut world, &mut checked);
    assert_eq!(checked.wrong, Vec::<String>::new());
}

fn claim_of_two() -> Value {
    let share = |name: &str, memory: &str| {
        json!({"name": name, "exactly": {"deviceClassName": "gpu",
            "capacity": {"requests": {"memory": memory}}}})
    };
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "two", "namespace": "default", "uid": "claim"},
        "spec": {"devices": {"requests": [share("x", "16Gi"), share("y", "24Gi")]}}})
}

/// The configuration that is written for a claim with these requests and this configuration, where
/// each class has one of its own: source, requests and what is set.
fn configuration(requests: &Value, config: &Value) -> Vec<(String, Vec<String>, String)> {
    let named = |kind: &str, driver: &str| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": format!("a-{kind}")}, "spec": {"driver": driver, "nodeName": "a",
                "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": format!("{kind}-0")}, {"name": format!("{kind}-1")}]}})
    };
    let class = |kind: &str, driver: &str| {
        let select = json!({"cel": {"expression": format!("device.driver == \"{driver}\"")}});
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": kind},
            "spec": {"selectors": [select], "config": [opaque(driver, &format!("{kind} class"))]}})
    };
    let objects = [
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}}),
        named("gpu", "gpu.example.com"),
        named("nic", "nic.example.com"),
        class("gpu", "gpu.example.com"),
        class("nic", "nic.example.com"),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default", "uid": "claim"},
            "spec": {"devices": {"requests": requests, "config": config}}}),
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "uid": "pod"},
            "spec": {"containers": [{"name": "c"}],
                "resourceClaims": [{"name": "d", "resourceClaimName": "c"}]}}),
    ];
    let mut world = world_of(&objects, Version::V1_37);
    let plan = phalanx_cluster::plan::plan(&mut world, &options());
    let effects = raise(&world, &plan);
    let allocation = effects.iter().find_map(|effect| match &effect.write {
        Write::ClaimStatus(claim) => claim.status.allocation.clone(),
        Write::CreateClaim(_)
        | Write::Finalize(_)
        | Write::Unprotect(_)
        | Write::DeleteClaim(_)
        | Write::PodStatus(_)
        | Write::KeepVolume(_)
        | Write::SelectNode(_)
        | Write::Bind(_) => None,
    });
    let config = allocation.expect("an allocation").devices.config;
    let of = |one: &phalanx_objects::resource::DeviceAllocationConfiguration| {
        let set = json!(one.opaque)["parameters"]["set"].as_str().expect("a text").to_owned();
        (json!(one.source).as_str().expect("a source").to_owned(), one.requests.clone(), set)
    };
    config.iter().map(of).collect()
}

fn due(source: &str, requests: &[&str], set: &str) -> (String, Vec<String>, String) {
    (source.to_owned(), requests.iter().map(ToString::to_string).collect(), set.to_owned())
}

fn about(requests: &[&str], set: &str) -> Value {
    let mut own = opaque("gpu.example.com", set);
    own["requests"] = json!(requests);
    own
}

#[test]
fn a_class_configures_its_requests_once_and_the_claim_comes_after() {
    let one =
        |name: &str, class: &str| json!({"name": name, "exactly": {"deviceClassName": class}});
    let requests = json!([one("x", "gpu"), one("y", "nic"), one("z", "gpu")]);
    let config = json!([about(&["x"], "for x"), about(&[], "for all")]);
    assert_eq!(
        configuration(&requests, &config),
        [
            due("FromClass", &["x", "z"], "gpu class"),
            due("FromClass", &["y"], "nic class"),
            due("FromClaim", &["x"], "for x"),
            due("FromClaim", &[], "for all"),
        ]
    );
}

#[test]
fn configuration_of_an_alternative_that_was_not_chosen_is_left_out() {
    let sub =
        |name: &str, count: u32| json!({"name": name, "deviceClassName": "gpu", "count": count});
    let requests = json!([
        {"name": "x", "firstAvailable": [sub("many", 3), sub("few", 1)]},
        {"name": "y", "exactly": {"deviceClassName": "nic"}},
    ]);
    let config = json!([
        about(&["x/many"], "for many"),
        about(&["x/few"], "for few"),
        about(&["x"], "for x"),
    ]);
    assert_eq!(
        configuration(&requests, &config),
        [
            due("FromClass", &["x/few"], "gpu class"),
            due("FromClass", &["y"], "nic class"),
            due("FromClaim", &["x/few"], "for few"),
            due("FromClaim", &["x"], "for x"),
        ]
    );
}
