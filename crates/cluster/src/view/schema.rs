//! The JSON that scripts rely on: `docs/schema.md` describes every field, and a test holds the two
//! together. An addition is a minor version; readers ignore what they don't know.

use std::collections::BTreeMap;

use phalanx_engine::{Proof, Scope, Status, Verdict};
use serde::Serialize;

/// The version of the schema.
pub const API_VERSION: &str = "phalanx.dev/plan/v1";

/// What `plan` and `why` answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// Version of the schema.
    pub api_version: &'static str,
    /// What the answer depends on beside the objects.
    pub compat: CompatView,
    /// How was chosen.
    pub policy: PolicyView,
    /// Every pod that waits or is planned, in queue order.
    pub pods: Vec<PodView>,
    /// Every workload that has such pods, in queue order.
    pub groups: Vec<GroupView>,
    /// What was found wrong while reading.
    pub findings: Vec<FindingView>,
    /// There is no answer, and the first finding says why; left out where there is one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
    /// Counts.
    pub summary: Summary,
}

/// Time, version and gates.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompatView {
    /// The time of the question, RFC 3339; none where none was given or read.
    pub now: Option<String>,
    /// Minor version of Kubernetes.
    pub kubernetes_version: String,
    /// Feature gates that differ from the version's defaults.
    pub feature_gates: BTreeMap<String, bool>,
    /// Admission plugins that are enabled beside the defaults; left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub admission_plugins: Vec<&'static str>,
}

/// How was chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyView {
    /// `best` or `kube-scheduler`.
    pub node_order: &'static str,
    /// `best` or `upstream`.
    pub device_order: &'static str,
    /// Whether a CEL error ends the pod's attempt.
    pub strict_cel: bool,
    /// Bound of the search for each seat and node, in steps.
    pub effort_steps: u64,
}

/// A verdict as scripts read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum VerdictWord {
    /// It starts.
    Placed,
    /// It does not fit now.
    Waits,
    /// It can't fit.
    Refused,
    /// The search ended at its bound.
    GaveUp,
}

impl VerdictWord {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::Waits => "waits",
            Self::Refused => "refused",
            Self::GaveUp => "gaveUp",
        }
    }
}

impl From<&Verdict> for VerdictWord {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Placed { .. } => Self::Placed,
            Verdict::Waits(_) => Self::Waits,
            Verdict::Refused(_) => Self::Refused,
            Verdict::GaveUp(..) => Self::GaveUp,
        }
    }
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodView {
    /// Namespace.
    pub namespace: String,
    /// Name; of a pod that is not created yet the name that we give it.
    pub name: String,
    /// `true` where the pod is not created yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub planned: bool,
    /// The workload that it is of, as `KIND/NAME`.
    pub group: Option<String>,
    /// Its role in the workload, where that has several.
    pub role: Option<String>,
    /// Its index in the role, where pods of it have one.
    pub index: Option<u32>,
    /// Devices that it asks for as a counter, of the resource of which it asks for most: what a launcher
    /// starts processes for where no claim names them.
    #[serde(skip)]
    pub counted: u32,
    /// Its rank in the workload, where that gives pods one.
    pub rank: Option<u32>,
    /// Its verdict.
    pub verdict: VerdictWord,
    /// Where it is placed.
    pub node: Option<String>,
    /// The devices that it gets, those of claims allocated before included.
    pub devices: Vec<DeviceView>,
    /// Whether a better place is ruled out: `proven`, `firstFit` or `bounded`.
    pub optimal: Option<&'static str>,
    /// Until when it may stay, RFC 3339, where it tolerates a NoExecute taint for a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stays_until: Option<String>,
    /// Why it is not placed, by reason.
    pub reasons: Vec<ReasonView>,
    /// What would place it.
    pub cures: Vec<CureView>,
    /// Steps after which the search ended, where it gave up.
    pub effort: Option<u64>,
    /// What else is to be known of the placement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// `why` only, of a pod that is placed: what else could have been chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<ChoiceView>,
    /// `why` only, of a pod that fits nowhere: what kube-scheduler says of it in its condition, but
    /// for preemption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit_error: Option<String>,
    /// `why` only: failures that stand before any node is looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<CheckView>>,
    /// `why` only: every node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<NodeView>>,
}

impl PodView {
    /// Which pod of its workload it is, where that has several roles: `jobset/train worker-3`.
    #[must_use]
    pub fn seat(&self) -> Option<String> {
        let (group, role) = (self.group.as_ref()?, self.role.as_ref()?);
        Some(match self.index {
            Some(index) => format!("{group} {role}-{index}"),
            None => format!("{group} {role}"),
        })
    }
}

/// A device that a pod gets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceView {
    /// The ResourceClaim.
    pub claim: String,
    /// The request, as `main` or `main/sub`.
    pub request: String,
    /// Driver.
    pub driver: String,
    /// Pool.
    pub pool: String,
    /// Device.
    pub device: String,
    /// The share of a shared device.
    #[serde(rename = "shareID", skip_serializing_if = "Option::is_none")]
    pub share_id: Option<String>,
    /// What the share takes of each capacity.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub consumed_capacity: BTreeMap<String, String>,
    /// Whether the device is only looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub admin_access: bool,
    /// Conditions that it must still report before the pod is bound.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub binding_conditions: Vec<String>,
}

/// A reason, with how many fell for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReasonView {
    /// Stable name.
    pub code: &'static str,
    /// kube-scheduler's plugin; empty where none makes the check.
    pub check: &'static str,
    /// What it is about: `object`, `queue`, `group`, `node` or `device`.
    pub scope: &'static str,
    /// Nodes that fell for it.
    pub nodes: u32,
    /// Devices that fell for it.
    pub devices: u32,
    /// One of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<ExampleView>,
    /// The sentence.
    pub message: String,
}

/// One case of a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExampleView {
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The device's driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The device's pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// Whether there is nothing to count.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A change that would help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CureView {
    /// The text for `--if`.
    #[serde(rename = "if")]
    pub edit: String,
    /// The sentence.
    pub message: String,
    /// Pods of the group that wait all the same: more than none where it starts and is not whole.
    #[serde(skip_serializing_if = "is_none")]
    pub waiting: u32,
}

/// What was chosen, beside what else there was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChoiceView {
    /// What the choice costs.
    pub cost: CostView,
    /// Sets of devices of the node that cost the same, the chosen one included; none where they are
    /// too many to count.
    pub equal_sets: Option<u32>,
    /// The sentence on that, where there is something to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The best set of the same node that costs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<RivalView>,
    /// The best on another node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<RivalView>,
}

/// A choice that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RivalView {
    /// The node.
    pub node: String,
    /// The devices.
    pub devices: Vec<PickView>,
    /// What it costs.
    pub cost: CostView,
    /// `proven`, or `bounded` where a better one of its kind may exist.
    pub optimal: &'static str,
    /// What it costs more, in words.
    pub message: String,
}

/// A device by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PickView {
    /// Driver.
    pub driver: String,
    /// Pool.
    pub pool: String,
    /// Device.
    pub device: String,
}

/// A path between devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkView {
    /// `NVLink`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS` or `unknown`.
    pub class: &'static str,
    /// Its bandwidth as it is compared, in 10^9 bytes a second each way.
    pub gbps: Option<u16>,
}

/// A cost: its numbers in the order in which they are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CostView {
    /// Places in `firstAvailable` lists.
    pub alternatives: u32,
    /// Preferred levels not kept.
    pub unaligned: u16,
    /// Islands beyond the first.
    pub islands: u16,
    /// The slowest link that must be used; none where none must be.
    pub slowest: Option<LinkView>,
    /// The slowest of all pairs.
    pub farthest: Option<LinkView>,
    /// GPUs and NICs without a partner under their PCIe switch.
    pub off_switch: u16,
    /// The same under their root.
    pub off_root: u16,
    /// The same on their NUMA node.
    pub off_numa: u16,
    /// NUMA nodes beyond the first.
    pub numa: u16,
    /// The user's wishes for nodes that are not met.
    pub soft: u32,
    /// Whole islands broken.
    pub islands_broken: u16,
    /// Untouched wholes used.
    pub wholes_used: u16,
    /// Mi lost to later requests.
    pub lost_mi: u32,
    /// Mi of room on the shared devices drawn on.
    pub shared_mi: u32,
    /// 1 where the node is put to use, of which nothing scarce was in use.
    pub fragmentation: u32,
    /// Whole nodes broken.
    pub nodes_broken: u16,
    /// Scarce things that stay free on the node.
    pub scarce_left: u32,
}

/// A failing check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckView {
    /// Stable name of the reason.
    pub code: &'static str,
    /// kube-scheduler's plugin; empty where none makes the check.
    pub check: &'static str,
    /// `Unschedulable`, `UnschedulableAndUnresolvable` or `Error`.
    pub status: &'static str,
    /// The sentence.
    pub message: String,
}

/// A node, for one pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    /// Name.
    pub name: String,
    /// Whether the pod fits there.
    pub fits: bool,
    /// All failing checks, in kube-scheduler's order.
    pub checks: Vec<CheckView>,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupView {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Kind in lower case.
    pub kind: String,
    /// Its verdict: `placed` where any of it is.
    pub verdict: VerdictWord,
    /// Pods wanted, running ones included.
    pub wanted: u32,
    /// Pods placed, running ones included.
    pub placed: u32,
    /// Pods missing.
    pub short: u32,
    /// Subgroups that need not start and are not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_subgroups: Vec<String>,
    /// Why pods are missing, by reason.
    pub reasons: Vec<ReasonView>,
    /// What would place more of it.
    pub cures: Vec<CureView>,
    /// What else is to be known of its cures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Of a group that starts whole: its members that have nodes, in order of rank.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankView>,
    /// What it uses of each tree of topology.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceView>,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankView {
    /// Its rank.
    pub rank: u32,
    /// The pod.
    pub pod: String,
    /// Its node.
    pub node: String,
    /// How many devices it has by claims; where by none, how many it asks for as a counter.
    pub devices: u32,
}

/// What a group uses of a tree of topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceView {
    /// The tree.
    pub topology: String,
    /// What says that there is one.
    pub source: String,
    /// How broken up it is; none for trees by which the group is not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragmentation: Option<FragmentationView>,
    /// Level by level, the widest first and nodes last.
    pub levels: Vec<LevelView>,
}

/// How broken up a tree is: over all levels the nodes of each domain in which any node is in use, and the
/// nodes in use (Slurm's measure for topology/block; less is better).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FragmentationView {
    /// Before the group is there.
    pub before: u64,
    /// With it.
    pub after: u64,
}

/// What a group uses of a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LevelView {
    /// The level.
    pub level: String,
    /// The domains, each by its path from the widest level down.
    pub domains: Vec<String>,
    /// Members whose nodes are in no domain of it.
    pub without: u32,
    /// Pairs of neighbours in rank that are not in one domain.
    pub crossings: u32,
    /// The domain at whose boundary most of them are; none where there are none.
    pub busiest: Option<String>,
    /// How many are there.
    pub busiest_crossings: u32,
}

/// Something wrong in the input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingView {
    /// `error`, `warning` or `info`.
    pub severity: String,
    /// The object, as `KIND/NAMESPACE/NAME`.
    pub object: Option<String>,
    /// The file.
    pub file: Option<String>,
    /// The line in it, from 1.
    pub line: Option<u64>,
    /// The field's path.
    pub path: Option<String>,
    /// The sentence.
    pub message: String,
}

/// Counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Pods placed.
    pub placed: u32,
    /// Pods that wait.
    pub waits: u32,
    /// Pods refused.
    pub refused: u32,
    /// Pods for which the search ended at its bound.
    pub gave_up: u32,
    /// Nodes read.
    pub nodes: u64,
    /// Devices read.
    pub devices: u64,
    /// Steps of search spent.
    pub effort: u64,
}

/// A scope's word.
pub fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Object => "object",
        Scope::Queue => "queue",
        Scope::Group => "group",
        Scope::Node => "node",
        Scope::Device => "device",
    }
}

/// A status' word, as kube-scheduler's `Code` spells it.
pub fn status(status: Status) -> &'static str {
    match status {
        Status::Unschedulable => "Unschedulable",
        Status::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
        Status::Error => "Error",
    }
}

/// A proof's word.
pub fn proof(proof: Proof) -> &'static str {
    match proof {
        Proof::Proven => "proven",
        Proof::FirstFit => "firstFit",
        Proof::Bounded => "bounded",
    }
}
