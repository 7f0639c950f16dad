//! From objects to a decision: what the engine's figures become when each pod comes as a pod, its
//! claim as a claim, and its end as their deletion.

use std::sync::Arc;
use std::time::Duration;

use phalanx_cluster::plan::{Plan, PlanOptions, plan};
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Lowering, ObjectEvent, Source, Version};
use phalanx_engine::{Act, Seat};
use phalanx_objects::Object;
use phalanx_objects::read::{Item, read};
use phalanx_objects::resource::{DeviceRequestAllocationResult, ResourceClaim};
use serde_json::{Value, json};

use super::world::{Dice, Shape, node_cpu};
use super::{median, rate, time};

/// Ends and starts of one run of churn.
const CHURN: usize = 100_000;
/// How many objects are made ahead of the clock.
const AHEAD: usize = 1_000;

/// Objects as they come from a watch.
pub(crate) struct Bench {
    nodes: u32,
    devices: u32,
    runs: usize,
}

/// Reads one manifest as an object.
pub(crate) fn object(manifest: &Value) -> Result<Box<Object>, String> {
    let mut found = Err("a manifest of the benchmark was not read.".to_owned());
    read("bench", manifest.to_string().as_bytes(), &mut |item| match item {
        Item::Object(object, _) => found = Ok(Box::new(object)),
        Item::Gone(object, _) => found = Err(format!("{} is gone.", object.reference())),
        Item::Unknown { kind, .. } => found = Err(format!("{kind} is not read.")),
        Item::Problem(problem) => found = Err(problem.message),
    });
    found
}

fn applied(object: Box<Object>, ordinal: u64) -> ObjectEvent {
    let source = Source { ordinal, ..Source::default() };
    ObjectEvent::Applied(object, source)
}

impl Bench {
    /// Over a fleet of this size.
    pub(crate) fn new(nodes: u32, devices: u32, runs: usize) -> Self {
        Self { nodes, devices, runs }
    }

    /// The fleet, its class, and a template for each shape.
    fn world(&self, shapes: &[Shape]) -> Result<World, String> {
        let mut world = World::without_objects(Lowering::new(Compat::new(Version::default())));
        let mut place = 0;
        let mut put = |world: &mut World, manifest: Value| {
            place += 1;
            object(&manifest).map(|object| world.absorb(applied(object, place)))
        };
        for n in 0..self.nodes {
            let name = format!("node-{n:06}");
            put(&mut world, node(&name, node_cpu(n)))?;
            put(&mut world, slice(&name, self.devices))?;
        }
        put(&mut world, class())?;
        for (at, shape) in shapes.iter().enumerate() {
            put(&mut world, template(at, shape))?;
        }
        world.settle();
        Ok(world)
    }

    /// All pods at once, and each by itself with its binding and its claim coming back.
    pub(crate) fn fill(&self, shapes: &[Shape], which: &[usize]) -> Result<(f64, f64), String> {
        let start = self.world(shapes)?;
        let arrivals = which.iter().enumerate();
        let arrivals = arrivals.map(|(n, at)| Arrival::new(n, *at, &shapes[*at]));
        let arrivals: Vec<Arrival> = arrivals.collect::<Result<_, _>>()?;
        let (mut at_once, mut each) = (Vec::new(), Vec::new());
        for _ in 0..self.runs {
            let mut world = start.clone();
            let pods: Vec<Box<Object>> = arrivals.iter().map(|a| a.pod.clone()).collect();
            let (taken, _) = time(|| {
                for (at, pod) in pods.into_iter().enumerate() {
                    world.absorb(applied(pod, at as u64));
                }
                world.settle();
                plan(&mut world, &PlanOptions::default())
            });
            at_once.push(taken);
            let mut world = start.clone();
            let events = arrivals.clone();
            let (taken, ()) = time(|| {
                for arrival in events {
                    arrival.comes(&mut world);
                }
            });
            each.push(taken);
        }
        let count = which.len();
        Ok((rate(count, median(at_once)), rate(count, median(each))))
    }

    /// Of pods that fill the fleet one ends and one like it starts, each decided.
    pub(crate) fn churn(&self, shapes: &[Shape], which: &[usize]) -> Result<f64, String> {
        let mut start = self.world(shapes)?;
        let mut running: Vec<(usize, usize)> = Vec::new();
        for (n, shape) in which.iter().enumerate() {
            if Arrival::new(n, *shape, &shapes[*shape])?.comes(&mut start) {
                running.push((n, *shape));
            }
        }
        if running.is_empty() {
            return Err("from objects: no pod was placed.".to_owned());
        }
        let mut times = Vec::new();
        for run in 0..self.runs {
            let (mut world, mut running) = (start.clone(), running.clone());
            let mut dice = Dice(run as u64);
            let mut taken = Duration::ZERO;
            for from in (0..CHURN).step_by(AHEAD) {
                let mut next = Vec::with_capacity(AHEAD);
                for number in (which.len() + from..).take(AHEAD) {
                    let at = dice.below(running.len());
                    let (gone, shape) = running.swap_remove(at);
                    running.push((number, shape));
                    next.push((gone, Arrival::new(number, shape, &shapes[shape])?));
                }
                let (some, ()) = time(|| {
                    for (gone, arrival) in next {
                        ends(&mut world, gone);
                        arrival.comes(&mut world);
                    }
                });
                taken += some;
            }
            times.push(taken);
        }
        Ok(rate(CHURN, median(times)))
    }
}

/// A pod that waits and its claim as it will be.
#[derive(Clone)]
struct Arrival {
    pod: Box<Object>,
    claim: Box<Object>,
}

impl Arrival {
    fn new(n: usize, at: usize, shape: &Shape) -> Result<Self, String> {
        Ok(Self { pod: object(&pod(n, at, shape))?, claim: object(&claim(n, shape))? })
    }

    /// The pod comes, is decided, and comes back bound with its claim allocated.
    fn comes(mut self, world: &mut World) -> bool {
        world.absorb(applied(self.pod.clone(), 0));
        world.settle();
        let plan = plan(world, &PlanOptions::default());
        let Some(seat) = seat(&plan) else { return false };
        if let Object::ResourceClaim(claim) = &mut *self.claim {
            fill_in(Arc::make_mut(claim), seat);
        }
        world.absorb(applied(self.claim, 0));
        if let Object::Pod(pod) = &mut *self.pod {
            Arc::make_mut(pod).spec.node_name = seat.node.0.to_string();
        }
        world.absorb(applied(self.pod, 1));
        world.settle();
        true
    }
}

fn fill_in(claim: &mut ResourceClaim, seat: &Seat) {
    let Some(allocation) = &mut claim.status.allocation else { return };
    let result = |grant: &phalanx_engine::Grant| DeviceRequestAllocationResult {
        request: "gpu".to_owned(),
        driver: grant.device.pool.driver.to_string(),
        pool: grant.device.pool.pool.to_string(),
        device: grant.device.device.to_string(),
        ..DeviceRequestAllocationResult::default()
    };
    allocation.devices.results = seat.grants.iter().map(result).collect();
    let terms = allocation.node_selector.iter_mut().flat_map(|s| &mut s.node_selector_terms);
    for field in terms.flat_map(|term| &mut term.match_fields) {
        field.values = vec![seat.node.0.to_string()];
    }
}

/// The pod and its claim are gone.
fn ends(world: &mut World, n: usize) {
    for (kind, name) in [
        (phalanx_objects::Kind::Pod, format!("p-{n:08}")),
        (phalanx_objects::Kind::ResourceClaim, format!("p-{n:08}-gpu")),
    ] {
        let namespace = "default".to_owned();
        let gone = phalanx_objects::ObjectRef { kind, namespace, name };
        world.absorb(ObjectEvent::Deleted(gone.into()));
    }
    world.settle();
    plan(world, &PlanOptions::default());
}

fn seat(plan: &Plan) -> Option<&Seat> {
    plan.decision.acts.iter().find_map(|act| match act {
        Act::Place(_, seats, _) => seats.first(),
        Act::Admit(_) | Act::Hold(..) | Act::Release(..) | Act::Evict { .. } => None,
    })
}

fn node(name: &str, cpu_milli: i64) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}, "status": {
        "allocatable": {"cpu": format!("{cpu_milli}m"), "memory": "1Ti", "pods": "110"}}})
}

fn slice(node: &str, devices: u32) -> Value {
    let device = |d: u32| {
        json!({"name": format!("gpu-{d:02}"), "attributes": {"numa": {"int": d / 2}},
            "capacity": {"memory": {"value": "80Gi"}}})
    };
    let devices: Vec<Value> = (0..devices).map(device).collect();
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("{node}-gpus")},
        "spec": {"driver": "gpu.nvidia.com", "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}})
}

fn class() -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == \"gpu.nvidia.com\""}}]}})
}

fn asked(shape: &Shape) -> Value {
    let memory = "device.capacity[\"gpu.nvidia.com\"].memory.compareTo(quantity(\"40Gi\")) >= 0";
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com",
        "count": shape.devices, "selectors": [{"cel": {"expression": memory}}]}});
    if shape.agree {
        json!({"requests": [request], "constraints": [{"matchAttribute": "gpu.nvidia.com/numa"}]})
    } else {
        json!({"requests": [request]})
    }
}

fn template(at: usize, shape: &Shape) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": format!("shape-{at}"), "namespace": "default"},
        "spec": {"spec": {"devices": asked(shape)}}})
}

fn pod(n: usize, at: usize, shape: &Shape) -> Value {
    let requests = json!({"cpu": format!("{}m", shape.cpu_milli), "memory": "8Gi"});
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("p-{n:08}"), "namespace": "default", "uid": format!("u-{n}"),
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": format!("shape-{at}")}]},
        "status": {"phase": "Pending"}})
}

/// The claim of pod `n` as it will be, but for node and devices.
fn claim(n: usize, shape: &Shape) -> Value {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [""]});
    let (pod, uid) = (format!("p-{n:08}"), format!("u-{n}"));
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": format!("{pod}-gpu"), "namespace": "default", "uid": format!("c-{n}"),
            "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid,
                "controller": true}]},
        "spec": {"devices": asked(shape)},
        "status": {"allocation": {"devices": {"results": []},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": uid}]}})
}
