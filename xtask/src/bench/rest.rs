//! A controller at rest and in the midst of a new list: nodes with eight devices, 30 pods on each, and one
//! pod that waits, read object by object as `phalanx-live` reads them. How much memory it takes, and how
//! long the first decision after the last byte.

use std::time::Duration;

use phalanx_cluster::control::{ControlOptions, Controller, Event, Step, Write};
use phalanx_cluster::{Compat, Version};
use phalanx_engine::Timestamp;
use phalanx_objects::read::{Item, read};
use phalanx_objects::{Kind, Object};
use serde_json::{Value, json};

use super::load::{PODS, node, pod};
use super::{memory_bytes, resident_bytes, time};
use crate::run::Done;

/// Most memory, and the longest until the first decision.
const TARGET_MIB: f64 = 600.0;
const TARGET: Duration = Duration::from_secs(1);

/// Most events of one step, as of the process.
const BATCH: usize = 16_384;

/// Devices of a node.
const DEVICES: u32 = 8;

/// Measures one.
pub(super) fn measure(count: u32) -> Done {
    let compat = Compat::new(Version::default());
    let mut controller = Controller::new(ControlOptions::new("phalanx", compat.clone()));
    let kinds = ControlOptions::new("phalanx", compat).kinds;
    println!("   {count} nodes with {DEVICES} devices, {} pods", count * PODS);
    let before = memory_bytes("VmRSS:")?;
    let (listed, first) = time(|| list(&mut controller, &kinds, count));
    let (decided, step) = first;
    let rest = memory_bytes("VmRSS:")?;
    if !step.effects.iter().any(|effect| matches!(effect.write, Write::Seat(_))) {
        return Err("the pod that waits is not bound.".to_owned());
    }
    let (again, _) = time(|| list(&mut controller, &kinds, count));
    let most = resident_bytes()?;
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let met = |is| if is { "met" } else { "MISSED" };
    println!("   taken in in {listed:.2?}, listed again in {again:.2?}");
    println!(
        "   last byte to first decision {decided:.2?}  target {TARGET:?}  {}",
        met(decided <= TARGET)
    );
    println!(
        "   at rest {:.0} MiB, {:.1} KB a pod; with a new list {:.0} MiB  target {TARGET_MIB:.0}  {}",
        mib(rest),
        (rest - before) / f64::from(count * PODS) / 1e3,
        mib(most),
        met(mib(most) <= TARGET_MIB)
    );
    Ok(())
}

/// Lists all kinds, pods last. Answers how long it took from the last object to what comes of it.
fn list(controller: &mut Controller, kinds: &[Kind], count: u32) -> (Duration, Step) {
    let mut feed = Feed { controller, waiting: Vec::new() };
    let listed = |kind| Event::Listed { kind, version: "1000000".to_owned() };
    for kind in kinds.iter().copied().filter(|kind| *kind != Kind::Pod) {
        feed.take(Event::Listing(kind));
        if kind == Kind::Node {
            (0..count).for_each(|n| feed.found(&node(n)));
        } else if kind == Kind::ResourceSlice {
            (0..count).for_each(|n| feed.found(&slice(n)));
        }
        feed.take(listed(kind));
    }
    feed.take(Event::Listing(Kind::Pod));
    (0..count * PODS).for_each(|n| feed.found(&pod(n)));
    let (took, step) = time(|| {
        feed.found(&waits());
        feed.take(listed(Kind::Pod));
        feed.step()
    });
    (took, step)
}

/// What waits for the next step.
struct Feed<'a> {
    controller: &'a mut Controller,
    waiting: Vec<Event>,
}

impl Feed<'_> {
    fn take(&mut self, event: Event) {
        self.waiting.push(event);
        if self.waiting.len() == BATCH {
            self.step();
        }
    }

    fn step(&mut self) -> Step {
        self.controller.step(self.waiting.drain(..), Timestamp(1_800_000_000_000))
    }

    /// An object as it comes over the wire.
    fn found(&mut self, object: &Value) {
        let text = object.to_string();
        let mut found: Option<Object> = None;
        read("the cluster", text.as_bytes(), &mut |item| {
            if let Item::Object(object, _) = item {
                found = Some(object);
            }
        });
        if let Some(object) = found {
            self.take(Event::Found(Box::new(object)));
        }
    }
}

fn slice(n: u32) -> Value {
    let name = format!("node-{n:05}");
    let device = |at: u32| {
        json!({"name": format!("gpu-{at}"),
            "attributes": {"uuid": {"string": format!("GPU-{n:08x}-{at}")},
                "productName": {"string": "NVIDIA H100 80GB HBM3"}, "numa": {"int": at / 4},
                "architecture": {"string": "Hopper"},
                "resource.kubernetes.io/pcieRoot": {"string": format!("pci0000:{:02x}", at * 16)}},
            "capacity": {"memory": {"value": "81559Mi"}}})
    };
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("{name}-gpus"), "uid": format!("slice-{n}"),
            "resourceVersion": (500_000 + n).to_string()},
        "spec": {"nodeName": name, "driver": "gpu.nvidia.com",
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": (0..DEVICES).map(device).collect::<Vec<_>>()}})
}

/// The one pod that is to be placed.
fn waits() -> Value {
    let mut pod = pod(0);
    pod["metadata"]["name"] = json!("waits");
    pod["metadata"]["uid"] = json!("waits");
    pod["spec"]["schedulerName"] = json!("phalanx");
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    pod["status"] = json!({"phase": "Pending"});
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.remove("nodeName");
    }
    pod
}
