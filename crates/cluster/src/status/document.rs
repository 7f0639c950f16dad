//! The JSON of `status`, described in `docs/schema.md`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::edit::Target;
use crate::finding::Finding;
use crate::view::{CompatView, FindingView, VerdictWord};

/// The version of the schema.
pub const STATUS_API_VERSION: &str = "phalanx.dev/status/v1";

/// What `status` answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDocument {
    /// Version of the schema.
    pub api_version: &'static str,
    /// What the answer depends on beside the objects.
    pub compat: CompatView,
    /// Nodes.
    pub nodes: NodeCounts,
    /// Devices by what they are, those of slices first.
    pub devices: Vec<StockView>,
    /// Trees of topology, by name.
    pub topologies: Vec<TopologyView>,
    /// Who holds devices, those with most first.
    pub holders: Vec<HolderView>,
    /// Groups that started in part and hold what they have without progress.
    pub stalled: Vec<StalledView>,
    /// Who waits, longest first; what is not created yet comes last.
    pub waiting: Vec<WaitingView>,
    /// What was found wrong while reading.
    pub findings: Vec<FindingView>,
    /// Counts of pods.
    pub summary: StatusSummary,
}

/// A group that started in part, or several that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StalledView {
    /// The group, of several the first: `podgroup/default/a`.
    pub group: String,
    /// What it holds and for whom it waits, and of a deadlock what would break it.
    pub message: String,
}

impl From<&Finding> for StalledView {
    fn from(finding: &Finding) -> Self {
        let group = finding.object.as_ref().map(|object| Target::from(object).to_string());
        Self { group: group.unwrap_or_default(), message: finding.message.clone() }
    }
}

/// A tree of topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyView {
    /// Its name.
    pub name: String,
    /// What says that there is one.
    pub source: String,
    /// Its levels, the widest first.
    pub levels: Vec<TopologyLevelView>,
}

/// A level of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyLevelView {
    /// A label of nodes, or a tier.
    pub level: String,
    /// Its domains, each by its path from the widest level down, and how many nodes it has.
    pub domains: BTreeMap<String, u64>,
    /// Nodes that are in none.
    pub without: u64,
}

/// Nodes by their state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCounts {
    /// All.
    pub total: u64,
    /// Those whose kubelet says so.
    pub ready: u64,
    /// Those of which it says that they are not, or that it is not known.
    pub not_ready: u64,
    /// Those that say nothing of it: written by hand, or never joined. They count as ready below.
    pub unsaid: u64,
    /// Cordoned ones, ready or not.
    pub cordoned: u64,
}

/// Devices of one kind: of one product, or counted under one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StockView {
    /// `slices` or `counter`.
    pub source: &'static str,
    /// The driver, or the extended resource.
    pub name: String,
    /// The product; none where neither devices nor labels tell.
    pub model: Option<String>,
    /// Nodes that have some.
    pub nodes: u64,
    /// All.
    pub total: u64,
    /// Held by claims or by pods on nodes.
    pub used: u64,
    /// To be had now by who tolerates no more than the taint that marks nodes with such devices.
    pub free: u64,
    /// Neither: unhealthy, on nodes that take no pods, tainted, or drawn on by a partition of the same
    /// GPU.
    pub unavailable: u64,
    /// Of these, counters that a node has and does not give out: capacity less allocatable.
    pub unhealthy: u64,
    /// Of these, free ones on nodes that take no pods: not ready, cordoned, tainted or full.
    pub closed: u64,
    /// How many nodes have how many of them free, most first.
    pub free_nodes: Vec<FreeNodes>,
    /// How many NVLink islands have how many of them free, most first, where links are known.
    pub free_islands: Vec<FreeIslands>,
    /// Free ones of whose links nothing is known.
    pub unlinked: u64,
    /// Free ones that a request for so many can't get.
    pub stranded: Vec<StrandedView>,
}

/// Nodes with so many free devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FreeNodes {
    /// Free devices on each.
    pub free: u64,
    /// Nodes.
    pub nodes: u64,
}

/// Islands with so many free devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FreeIslands {
    /// Free devices in each.
    pub free: u64,
    /// Islands.
    pub islands: u64,
}

/// Free devices that a request of a size can't get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StrandedView {
    /// Devices that the request asks for.
    pub size: u64,
    /// Free devices on nodes that have fewer than that free.
    pub on_nodes: u64,
    /// Free devices in islands that have fewer than that free; none where of some no link is known.
    pub in_islands: Option<u64>,
}

/// Who holds devices of one driver or resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HolderView {
    /// Namespace.
    pub namespace: String,
    /// The workload, as `KIND/NAME`; the pod where it has none; the claim where no pod uses it.
    pub workload: String,
    /// The driver, or the extended resource.
    pub name: String,
    /// Its pods that hold some.
    pub pods: u64,
    /// Devices.
    pub devices: u64,
    /// Of these, devices that another workload holds with it, by a claim that both use.
    pub shared: u64,
    /// Of these, devices that no slice publishes: they are in no count of devices.
    pub unpublished: u64,
}

/// Who waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingView {
    /// Namespace.
    pub namespace: String,
    /// The workload, as `KIND/NAME`, or the pod.
    pub workload: String,
    /// Its pods that wait.
    pub pods: u64,
    /// Since when the oldest of them does; none where none is created yet.
    pub since: Option<String>,
    /// The same in seconds before the time of the question.
    pub seconds: Option<i64>,
    /// The gravest verdict of them.
    pub verdict: VerdictWord,
    /// The deciding reason of the first pod with that verdict.
    pub code: String,
    /// Its sentence.
    pub message: String,
}

/// Counts of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusSummary {
    /// On nodes, and not ended.
    pub running: u64,
    /// That a plan would start now.
    pub starting: u64,
    /// That wait, or can't be placed.
    pub waiting: u64,
}
