//! What a verdict says beyond the document: where the pod came nearest, and how far the devices of
//! that node got, check by check.

use phalanx_cluster::plan::{PlanOptions, why};
use phalanx_cluster::view::PodView;
use phalanx_cluster::world::World;
use phalanx_engine::{
    DeviceFacts, DeviceStage, Facts, GroupKey, Level, NodeKey, Reason, Short, Verdict, Why,
};

/// What is known of one pod's verdict.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    group: GroupKey,
    /// The node that the pod missed by least.
    pub(crate) nearest: Option<NodeKey>,
    /// How far its devices got, one for each request that failed there.
    pub(crate) funnels: Vec<Funnel>,
}

/// How far the devices of a node got for one request: each stage holds those of the stage before
/// that pass one more check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Funnel {
    /// The request, as `main` or `main/sub`.
    pub(crate) request: String,
    /// Devices asked for.
    pub(crate) asked: u32,
    /// Name of a stage, devices left, and what that means.
    pub(crate) stages: Vec<(&'static str, u32, String)>,
}

/// A pod's name in the accounts.
pub(crate) fn key(pod: &PodView) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

impl Account {
    /// The account of a verdict.
    pub(crate) fn new(group: &GroupKey, verdict: &Verdict) -> Self {
        let why: Option<&Why> = match verdict {
            Verdict::Placed { short, .. } => short.as_ref().map(|Short { why, .. }| &**why),
            Verdict::Waits(why) | Verdict::Refused(why) | Verdict::GaveUp(why, _) => Some(why),
        };
        Self {
            group: group.clone(),
            nearest: why.and_then(|why| why.nearest.clone()),
            funnels: Vec::new(),
        }
    }
}

/// Adds how far the devices of the nearest miss got.
pub(crate) fn add(account: &mut Account, world: &mut World, options: &PlanOptions) {
    let Some(nearest) = &account.nearest else { return };
    let Some(report) = why(world, &account.group, options) else { return };
    let Some(node) = report.nodes.iter().find(|node| node.node == *nearest) else { return };
    account.funnels = node
        .checks
        .iter()
        .filter_map(|(reason, _, example)| match &example.facts {
            Facts::Devices(facts) => Some(funnel(*reason, facts)),
            Facts::None
            | Facts::Subject { .. }
            | Facts::Label { .. }
            | Facts::Amount { .. }
            | Facts::Taint(_)
            | Facts::Claim { .. }
            | Facts::Binding { .. } => None,
        })
        .collect();
}

fn funnel(reason: Reason, facts: &DeviceFacts) -> Funnel {
    let together = together(facts);
    let all = [
        ("seen", facts.seen, "that the node sees".to_owned()),
        ("selected", facts.selected, "that pass the selectors".to_owned()),
        ("tolerated", facts.tolerated, "without a taint against it".to_owned()),
        ("free", facts.free, "that nobody holds".to_owned()),
        ("together", facts.together, together),
    ];
    Funnel {
        request: facts.request.as_ref().map(ToString::to_string).unwrap_or_default(),
        asked: facts.asked,
        stages: all.into_iter().take(depth(reason)).collect(),
    }
}

/// How many stages say something: those up to the check that fails.
fn depth(reason: Reason) -> usize {
    match reason.stage() {
        None => 1,
        Some(DeviceStage::Selected) => 2,
        Some(DeviceStage::Tolerated) => 3,
        Some(DeviceStage::Free | DeviceStage::Fitting) => 4,
        Some(DeviceStage::Together) => 5,
    }
}

/// What the devices of the last stage have in common.
fn together(facts: &DeviceFacts) -> String {
    let place = match (facts.level, &facts.attribute) {
        (Some(level), _) => format!("in one {}", level_word(level)),
        (None, Some(attribute)) => format!("that the constraint on {attribute} lets be together"),
        (None, None) => "that can be together".to_owned(),
    };
    if facts.together_if_free > facts.together {
        return format!("{place} ({} if nobody held any)", facts.together_if_free);
    }
    place
}

fn level_word(level: Level) -> &'static str {
    match level {
        Level::Island => "NVLink island",
        Level::Switch => "PCIe switch",
        Level::Root => "PCIe root",
        Level::Numa => "NUMA node",
        Level::Rail => "rail",
    }
}
