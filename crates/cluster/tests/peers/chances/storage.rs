//! Volumes: classes, drivers and the room that they report, volumes that are there, and claims that
//! have one, wait for their pod, or can't be used.

use serde_json::{Value, json};

use super::super::chance::Chance;
use super::world::{HOST, ZONE};

/// A driver that makes volumes wherever its class allows, and one that says how much room there is.
const DRIVERS: [&str; 2] = ["csi.example.com", "room.example.com"];

/// What there is of volumes, and the claims that pods may name.
pub(super) struct Storage {
    pub(super) objects: Vec<Value>,
    /// By namespace, claims that have their volume, or never will.
    there: Vec<(&'static str, String)>,
}

impl Storage {
    /// The storage of a world; of most there is none.
    pub(super) fn new(chance: &mut Chance, nodes: u64) -> Self {
        let mut storage = Self { objects: Vec::new(), there: Vec::new() };
        if !chance.one_in(3) {
            return storage;
        }
        storage.classes(chance);
        storage.room(chance);
        storage.nodes(chance, nodes);
        for at in 0..chance.below(7) {
            let volume = volume(chance, at, nodes);
            storage.objects.push(volume);
        }
        for at in 0..2 + chance.below(3) {
            storage.bound(chance, at, nodes);
        }
        storage
    }

    fn classes(&mut self, chance: &mut Chance) {
        for (name, mode, provisioner) in [
            ("waits", "WaitForFirstConsumer", DRIVERS[0]),
            ("room", "WaitForFirstConsumer", DRIVERS[1]),
            ("static", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"),
            ("now", "Immediate", DRIVERS[0]),
        ] {
            let mut class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": name}, "provisioner": provisioner,
                "volumeBindingMode": mode});
            if name == "waits" && chance.one_in(2) {
                let values = json!([chance.pick(&["za", "zb"]), "zc"]);
                class["allowedTopologies"] =
                    json!([{"matchLabelExpressions": [{"key": ZONE, "values": values}]}]);
            }
            self.objects.push(class);
        }
        for driver in DRIVERS {
            let spec = json!({"storageCapacity": driver == DRIVERS[1],
                "preventPodSchedulingIfMissing": driver == DRIVERS[0] && chance.one_in(3)});
            self.objects.push(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
                "metadata": {"name": driver}, "spec": spec}));
        }
    }

    /// Each node sees at most one report: of several the first that is found counts.
    fn room(&mut self, chance: &mut Chance) {
        for zone in ["za", "zb", "zc"] {
            if chance.one_in(4) {
                continue;
            }
            let mut report = json!({"apiVersion": "storage.k8s.io/v1",
                "kind": "CSIStorageCapacity", "metadata": {"name": zone, "namespace": "a"},
                "storageClassName": "room", "nodeTopology": {"matchLabels": {ZONE: zone}},
                "capacity": chance.pick(&["3Gi", "10Gi", "50Gi", "7000000001"])});
            if chance.one_in(3) {
                report["maximumVolumeSize"] = json!(chance.pick(&["1Gi", "20Gi"]));
            }
            self.objects.push(report);
        }
    }

    fn nodes(&mut self, chance: &mut Chance, nodes: u64) {
        for at in 1..=nodes {
            if chance.one_in(4) {
                continue;
            }
            let mut drivers = Vec::new();
            for driver in DRIVERS {
                if chance.one_in(4) {
                    continue;
                }
                let mut one = json!({"name": driver, "nodeID": format!("n{at}")});
                if chance.one_in(2) {
                    one["allocatable"] = json!({"count": chance.below(4)});
                }
                drivers.push(one);
            }
            self.objects.push(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
                "metadata": {"name": format!("n{at}")}, "spec": {"drivers": drivers}}));
        }
    }

    /// A claim with its volume; or one of which something is wrong.
    fn bound(&mut self, chance: &mut Chance, at: u64, nodes: u64) {
        let (name, namespace) = (format!("bound-{at}"), if chance.one_in(4) { "b" } else { "a" });
        let mut held = volume(chance, 20 + at, nodes);
        let of_claim = json!({"kind": "PersistentVolumeClaim", "namespace": namespace,
            "name": name, "uid": name});
        held["spec"]["claimRef"] = of_claim;
        held["status"]["phase"] = json!("Bound");
        let mut claim = claim(&name, namespace, "waits", "1Gi");
        claim["spec"]["volumeName"] = held["metadata"]["name"].clone();
        claim["status"] = json!({"phase": "Bound"});
        if chance.one_in(3) {
            let mode = json!(["ReadWriteOncePod"]);
            claim["spec"]["accessModes"] = mode.clone();
            held["spec"]["accessModes"] = mode;
        }
        if !chance.one_in(12) {
            claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = json!("yes");
        }
        if chance.one_in(15) {
            claim["status"]["phase"] = json!("Lost");
        }
        if chance.one_in(15) {
            claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            claim["metadata"]["finalizers"] = json!(["kubernetes.io/pvc-protection"]);
        }
        if !chance.one_in(12) {
            self.objects.push(held);
        }
        self.objects.push(claim);
        self.there.push((namespace, name));
    }

    /// Has a pod on a node mount what is there.
    pub(super) fn mount_there(&self, chance: &mut Chance, pod: &mut Value) {
        let namespace = pod["metadata"]["namespace"].clone();
        for (_, name) in self.there.iter().filter(|(of, _)| *of == namespace) {
            if chance.one_in(4) {
                add(pod, name);
            }
        }
    }

    /// Has a pod that waits mount what is there and what is its own; answers the latter.
    pub(super) fn mount(&self, chance: &mut Chance, pod: &mut Value, at: u64) -> Vec<Value> {
        if self.objects.is_empty() || chance.one_in(3) {
            return Vec::new();
        }
        if chance.one_in(2) {
            self.mount_there(chance, pod);
        }
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let mut own = Vec::new();
        for number in 0..chance.below(3) {
            let name = format!("own-{at}-{number}");
            let class = chance.pick(&["waits", "waits", "room", "room", "static", "static"]);
            let class = if chance.one_in(15) { "now" } else { class };
            let size = chance.pick(&["1Gi", "2Gi", "5Gi", "1500000000"]);
            let mut made = claim(&name, &namespace, class, size);
            if chance.one_in(10) {
                let node = format!("n{}", 1 + chance.below(4));
                made["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = json!(node);
            }
            if chance.one_in(8) {
                made["spec"]["selector"] = json!({"matchLabels": {"kind": "fast"}});
            }
            add(pod, &name);
            if !chance.one_in(15) {
                own.push(made);
            }
        }
        if chance.one_in(5) {
            own.extend(ephemeral(chance, pod));
        }
        own
    }
}

/// Has a pod mount a claim that goes with it; answers the claim, where it is made already.
fn ephemeral(chance: &mut Chance, pod: &mut Value) -> Option<Value> {
    let (namespace, name) = (pod["metadata"]["namespace"].clone(), pod["metadata"]["name"].clone());
    let (namespace, name) = (namespace.as_str()?, name.as_str()?);
    let class = chance.pick(&["waits", "room", "static", "now"]);
    let mut made = claim(&format!("{name}-scratch"), namespace, class, "1Gi");
    let template = json!({"spec": made["spec"]});
    mount(pod, json!({"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}));
    let owner = if chance.one_in(8) { "other" } else { name };
    made["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod",
        "name": owner, "uid": owner, "controller": true}]);
    (!chance.one_in(8)).then_some(made)
}

fn add(pod: &mut Value, claim: &str) {
    mount(pod, json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
}

fn mount(pod: &mut Value, volume: Value) {
    if !pod["spec"]["volumes"].is_array() {
        pod["spec"]["volumes"] = json!([]);
    }
    pod["spec"]["volumes"].as_array_mut().expect("a list").push(volume);
}

fn claim(name: &str, namespace: &str, class: &str, size: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": name, "annotations": {}},
        "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}},
        "status": {"phase": "Pending"}})
}

/// A volume that nobody has. No two are of one size: of those the first that is found is taken.
fn volume(chance: &mut Chance, at: u64, nodes: u64) -> Value {
    let size = format!("{}Mi", (1 + chance.below(8)) * 1024 + at);
    let class = chance.pick(&["waits", "static", "static", "room"]);
    let phase = chance.pick(&["Available", "Available", "Available", "Released"]);
    // Of another driver than its class it counts otherwise until it is bound: a known difference.
    let driver = match class {
        "waits" => DRIVERS[0],
        "room" => DRIVERS[1],
        _ => "static.example.com",
    };
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": format!("v{at}"), "uid": format!("v{at}"), "labels": {}},
        "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "csi": {"driver": driver, "volumeHandle": format!("h{at}")}},
        "status": {"phase": phase}});
    let (key, value) = match chance.below(4) {
        0 => (ZONE, json!(chance.pick(&["za", "zb", "zc"]))),
        1 => (HOST, json!(format!("n{}", 1 + chance.below(nodes)))),
        2 => ("disk", json!("ssd")),
        _ => ("", json!(null)),
    };
    if !key.is_empty() {
        let expression = json!({"key": key, "operator": "In", "values": [value]});
        volume["spec"]["nodeAffinity"] =
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}});
    }
    if chance.one_in(4) {
        volume["metadata"]["labels"][ZONE] = json!(chance.pick(&["za", "zb__zc"]));
    }
    if chance.one_in(2) {
        volume["metadata"]["labels"]["kind"] = json!("fast");
    }
    volume
}
