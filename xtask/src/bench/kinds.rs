//! Devices and claims of every kind that allocation knows, as manifests: whole devices with a NUMA
//! node, devices in partitions that share counters (a MIG GPU), and devices that are shared by
//! amounts of memory; claims with alternatives among them. Lowered like any other objects.

use phalanx_cluster::{Compat, Lowering, ObjectEvent, Source, Version};
use phalanx_engine::{Change, Request, Shared};
use serde_json::{Map, Value, json};

use super::objects::object;
use super::world::{Dice, node_cpu};

const WHOLE: &str = "gpu.example.com";
const PARTED: &str = "mig.example.com";
const SHARED: &str = "share.example.com";

/// Memory slices of a GPU that can be partitioned.
const SLICES: usize = 8;

/// Partitions of one GPU, by profile: name, memory slices that each takes, and where each begins.
pub(crate) const PROFILES: [(&str, usize, &[usize]); 4] =
    [("7g", 8, &[0]), ("3g", 4, &[0, 4]), ("2g", 2, &[0, 2, 4]), ("1g", 1, &[0, 1, 2, 3, 4, 5, 6])];

/// Nodes with so many devices each, of three kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet {
    pub(crate) nodes: u32,
    pub(crate) devices: u32,
}

impl Fleet {
    /// How many devices of a node are whole, in partitions and shared.
    pub(crate) fn parts(&self) -> (u32, u32, u32) {
        let plain = 4.min(self.devices);
        let parted = (self.devices - plain) / 2;
        (plain, parted, self.devices - plain - parted)
    }

    /// The fleet as changes of the state, and for each kind of pod what it asks for.
    pub(crate) fn lowered(&self) -> Result<(Vec<Change>, Vec<Shared<Request>>), String> {
        let mut lowering = Lowering::new(Compat::new(Version::V1_37));
        let mut ordinal = 0;
        let mut put = |lowering: &mut Lowering, manifest: &Value| {
            ordinal += 1;
            let source = Source { ordinal, ..Source::default() };
            object(manifest).map(|o| lowering.absorb(ObjectEvent::Applied(o, source)))
        };
        for driver in [WHOLE, PARTED, SHARED] {
            put(&mut lowering, &class(driver))?;
        }
        for (n, (_, _, asks)) in claims().iter().enumerate() {
            put(&mut lowering, &template(n, asks))?;
            put(&mut lowering, &pod(n))?;
        }
        for n in 0..self.nodes {
            for manifest in self.node(n) {
                put(&mut lowering, &manifest)?;
            }
        }
        let changes = lowering.settle();
        let mut requests = Vec::new();
        for change in &changes {
            if let Change::Group(_, Some(group)) = change {
                requests.extend(group.roles.iter().map(|role| role.request.clone()));
            }
        }
        let fleet = changes.into_iter();
        let fleet = fleet.filter(|c| !matches!(c, Change::Group(..) | Change::Member(..)));
        Ok((fleet.collect(), requests))
    }

    fn node(&self, n: u32) -> Vec<Value> {
        let name = format!("node-{n:06}");
        let (plain, parted, shared) = self.parts();
        let cpu = format!("{}m", node_cpu(n));
        let mut all = vec![json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {}, "status": {"allocatable": {"cpu": cpu, "memory": "1Ti", "pods": "110"}}})];
        let whole = |d: u32| {
            json!({"name": format!("gpu-{d}"), "attributes": {"numa": {"int": d / 2}},
            "capacity": {"memory": {"value": "80Gi"}}})
        };
        let whole: Vec<Value> = (0..plain).map(whole).collect();
        all.push(slice(&name, WHOLE, "gpus", 1, "devices", json!(whole)));
        let parts: Vec<Value> = (0..parted as usize).flat_map(partitions).collect();
        let sets: Vec<Value> = (0..parted as usize).map(counter_set).collect();
        all.push(slice(&name, PARTED, "parts", 2, "devices", json!(parts)));
        all.push(slice(&name, PARTED, "sets", 2, "sharedCounters", json!(sets)));
        let shares: Vec<Value> = (0..shared).map(shareable).collect();
        all.push(slice(&name, SHARED, "shares", 1, "devices", json!(shares)));
        all
    }

    /// Pods until nine tenths of each kind of device are asked for: their kinds, by chance.
    pub(crate) fn pods(&self) -> Vec<usize> {
        let (plain, parted, shared) = self.parts();
        let most = [plain, parted * SLICES as u32, shared * 80];
        let most = most.map(|of_node| u64::from(of_node) * u64::from(self.nodes) * 9 / 10);
        let (kinds, mut used, mut dice) = (claims(), [0_u64; 3], Dice(11));
        let mut pods = Vec::new();
        while used.iter().zip(&most).any(|(used, most)| used < most) {
            let at = dice.below(kinds.len());
            let (pool, takes, _) = &kinds[at];
            if used[*pool] < most[*pool] {
                used[*pool] += takes;
                pods.push(at);
            }
        }
        pods
    }
}

/// A slice of a node's pool of one driver.
pub(crate) fn slice(
    node: &str,
    driver: &str,
    part: &str,
    count: u32,
    field: &str,
    what: Value,
) -> Value {
    let mut spec = json!({"driver": driver, "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": count}});
    spec[field] = what;
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("{node}-{part}")}, "spec": spec})
}

/// The counters of a GPU: one a memory slice.
pub(crate) fn counter_set(gpu: usize) -> Value {
    let counters: Map<String, Value> = (0..SLICES).map(counter).collect();
    json!({"name": format!("gpu-{gpu}"), "counters": counters})
}

fn counter(at: usize) -> (String, Value) {
    (format!("memory-slice-{at}"), json!({"value": "1"}))
}

/// The partitions of a GPU.
pub(crate) fn partitions(gpu: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for (profile, long, starts) in PROFILES {
        for start in starts {
            let counters: Map<String, Value> = (*start..start + long).map(counter).collect();
            all.push(json!({"name": format!("gpu-{gpu}-{profile}-{start}"),
                "attributes": {"profile": {"string": profile}},
                "capacity": {"memory": {"value": format!("{}Gi", 10 * long)}},
                "consumesCounters": [{"counterSet": format!("gpu-{gpu}"), "counters": counters}]}));
        }
    }
    all
}

/// A device that is shared by amounts of its memory.
pub(crate) fn shareable(n: u32) -> Value {
    json!({"name": format!("share-{n}"), "allowMultipleAllocations": true,
        "capacity": {"memory": {"value": "80Gi", "requestPolicy": {
            "default": "10Gi", "validRange": {"min": "5Gi", "step": "5Gi"}}}}})
}

pub(crate) fn class(driver: &str) -> Value {
    let expression = format!("device.driver == \"{driver}\"");
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": driver},
        "spec": {"selectors": [{"cel": {"expression": expression}}]}})
}

fn template(n: usize, asks: &Value) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": format!("kind-{n}"), "namespace": "default"},
        "spec": {"spec": {"devices": asks}}})
}

/// The pod of a kind. Groups come in order of name, and so kinds do.
fn pod(n: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("kind-{n}"), "namespace": "default"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            "resourceClaims": [{"name": "d", "resourceClaimTemplateName": format!("kind-{n}")}]}})
}

/// One device request or alternative for a partition of a profile.
pub(crate) fn of_profile(profile: &str) -> Value {
    let expression = format!("device.attributes[\"{PARTED}\"].profile == \"{profile}\"");
    json!({"deviceClassName": PARTED, "selectors": [{"cel": {"expression": expression}}]})
}

fn named(name: &str, mut one: Value) -> Value {
    one["name"] = json!(name);
    one
}

/// The kinds of claims: which of a node's three parts each draws on, how much of it, and what it
/// asks.
fn claims() -> Vec<(usize, u64, Value)> {
    let memory = "device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"40Gi\")) >= 0";
    let whole = |count: u32| {
        json!({"deviceClassName": WHOLE, "count": count,
            "selectors": [{"cel": {"expression": memory}}]})
    };
    let share = |gib: u32| {
        json!({"deviceClassName": SHARED,
            "capacity": {"requests": {"memory": format!("{gib}Gi")}}})
    };
    let exactly = |name: &str, one: Value| json!({"name": name, "exactly": one});
    let list = |name: &str, all: Vec<Value>| json!({"name": name, "firstAvailable": all});
    let numa = json!([{"matchAttribute": "gpu.example.com/numa"}]);
    vec![
        (0, 2, json!({"requests": [exactly("gpu", whole(2))], "constraints": numa})),
        (
            0,
            2,
            json!({"requests": [list("gpu", vec![named("four", whole(4)), named("one", whole(1))])]}),
        ),
        (
            1,
            4,
            json!({"requests": [list("part",
                vec![named("big", of_profile("3g")), named("small", of_profile("2g"))])]}),
        ),
        (1, 1, json!({"requests": [exactly("part", of_profile("1g"))]})),
        (2, 10, json!({"requests": [exactly("share", share(10))]})),
        (2, 55, json!({"requests": [exactly("one", share(30)), exactly("two", share(25))]})),
    ]
}
