//! The compact notation of a world: what a scenario needs to say of nodes, devices, claims and pods
//! in a line each, and no more. Whatever it lacks is written as a manifest.
//!
//! A name that ends in a range stands for several: `gpu-0..3` is gpu-0, gpu-1, gpu-2 and gpu-3.
//! What is not said: a node has 64 CPUs, 256Gi of memory and room for 110 pods; devices are of the
//! driver `gpu.nvidia.com`, in one slice of a pool named as the node; there is one class,
//! `gpu.nvidia.com`, of all devices of that driver; a pod asks for 1 CPU and 1Gi.

mod expand;
mod ordered;

use serde::Deserialize;
use serde_json::{Map, Value};

pub(crate) use expand::expand;
pub use ordered::Ordered;

/// A world.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct World {
    nodes: Ordered<NodeNote>,
    /// Classes, and their one selector.
    classes: Option<Ordered<Option<String>>>,
    /// Claims that exist by name.
    claims: Ordered<ClaimNote>,
    /// Claim templates.
    templates: Ordered<ClaimNote>,
    /// Pods, oldest first.
    pods: Ordered<PodNote>,
}

/// A node and its devices.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NodeNote {
    cpu: Option<Value>,
    memory: Option<Value>,
    pods: Option<Value>,
    ephemeral: Option<Value>,
    /// Extended resources and hugepages.
    resources: Map<String, Value>,
    labels: Map<String, Value>,
    /// `KEY=VALUE:EFFECT` or `KEY:EFFECT`.
    taints: Vec<String>,
    cordoned: bool,
    /// The driver of its devices.
    driver: Option<String>,
    devices: Ordered<DeviceNote>,
    /// Counter sets of its pool.
    counters: Ordered<Map<String, Value>>,
    /// Islands of its `NodeTopology`, by the names of their members.
    islands: Vec<Vec<String>>,
    /// How many slices of its pool are missing.
    missing: u32,
}

/// A device.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DeviceNote {
    /// Attributes: a number, a truth value, a string, or `version:1.2.3`.
    attributes: Map<String, Value>,
    capacity: Map<String, Value>,
    taints: Vec<String>,
    /// What it takes of the counter sets of its pool.
    uses: Ordered<Map<String, Value>>,
    /// Whether several claims may have a share of it.
    shared: bool,
}

/// What a claim or template asks for; with one request, its fields stand here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ClaimNote {
    class: Option<String>,
    count: Option<u32>,
    all: bool,
    select: Option<String>,
    tolerates: Vec<String>,
    capacity: Map<String, Value>,
    admin: bool,
    /// Several requests; without them the one is called `gpu`.
    requests: Ordered<RequestNote>,
    /// `matchAttribute` over all requests.
    r#match: Option<String>,
    /// `distinctAttribute` over all requests.
    distinct: Option<String>,
    /// `phalanx.dev/align`.
    align: Option<String>,
    /// What a named claim holds.
    holds: Option<HoldNote>,
    /// Pods that a named claim is reserved for.
    users: Vec<String>,
    /// Whether a named claim is being deleted.
    deleting: bool,
    /// The pod that a named claim was made for.
    owner: Option<String>,
    /// Whether it was made for that pod's extended resources.
    extended: bool,
}

/// One of several requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RequestNote {
    class: Option<String>,
    count: Option<u32>,
    all: bool,
    select: Option<String>,
    tolerates: Vec<String>,
    capacity: Map<String, Value>,
    admin: bool,
}

/// What a claim holds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldNote {
    node: String,
    devices: Vec<String>,
}

/// A pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PodNote {
    cpu: Option<Value>,
    memory: Option<Value>,
    ephemeral: Option<Value>,
    /// Extended resources and hugepages.
    resources: Map<String, Value>,
    /// The node that it is bound to.
    node: Option<String>,
    priority: Option<i32>,
    gates: Vec<String>,
    selector: Map<String, Value>,
    tolerates: Vec<String>,
    /// Devices of its own: a template is made for it, and its claim where it holds some.
    devices: Option<ClaimNote>,
    /// The devices that it holds on its node.
    holds: Vec<String>,
    /// Named claims that it uses.
    claims: Vec<String>,
    /// Templates that it uses.
    templates: Vec<String>,
    align: Option<String>,
    labels: Map<String, Value>,
    /// Ports of the node that it asks for.
    ports: Vec<i32>,
    /// The node that is promised to it.
    nominated: Option<String>,
    /// Whether it is being deleted.
    terminating: bool,
    /// Laid over `spec`, field by field.
    spec: Map<String, Value>,
}
