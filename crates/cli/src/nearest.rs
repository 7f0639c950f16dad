//! What a verdict says beyond the document: where the pod came nearest, and how far the devices of
//! that node got, check by check.

use phalanx_cluster::plan::{PlanOptions, why};
use phalanx_cluster::view::{PodView, request_name};
use phalanx_cluster::words::within;
use phalanx_cluster::world::World;
use phalanx_engine::{DeviceFacts, DeviceStage, GroupKey, NodeKey, Reason, Short, Verdict, Why};

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
    /// The request, as a sentence names it.
    pub(crate) request: String,
    /// Devices asked for; none where all that match are.
    pub(crate) asked: Option<u32>,
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
    let group = account.group.clone();
    let name = |facts: &DeviceFacts| {
        request_name(world, &group, facts).unwrap_or_else(|| "the request".to_owned())
    };
    let told = node.checks.iter().filter_map(|(reason, _, example)| {
        example.facts.devices().map(|facts| funnels(*reason, facts, &name))
    });
    account.funnels = told.flatten().collect();
}

/// One funnel; of requests that can't be met together one each, with what the nearest value or
/// domain has for it.
fn funnels(
    reason: Reason,
    facts: &DeviceFacts,
    name: &dyn Fn(&DeviceFacts) -> String,
) -> Vec<Funnel> {
    let Some(joint) = facts.joint.as_deref() else { return vec![funnel(reason, facts, name)] };
    let parts = joint.parts.iter().enumerate().map(|(at, part)| {
        let mut funnel = funnel(Reason::NotTogether, part, name);
        let kind = joint.kinds.iter().position(|kind| kind.contains(&at));
        if let (Some(kind), Some(group)) = (kind, joint.groups.first()) {
            let has = |of: &[u32]| of.get(kind).copied().unwrap_or_default();
            let (free, all) = (has(&group.free), has(&group.all));
            funnel.stages.push(("together", free, together(facts, free, all)));
        }
        funnel
    });
    parts.collect()
}

fn funnel(reason: Reason, facts: &DeviceFacts, name: &dyn Fn(&DeviceFacts) -> String) -> Funnel {
    let together = together(facts, facts.together, facts.together_if_free);
    let all = [
        ("seen", facts.seen, "that the node sees".to_owned()),
        ("selected", facts.selected, "that pass the selectors".to_owned()),
        ("tolerated", facts.tolerated, "without a taint against it".to_owned()),
        ("free", facts.free, "that nobody holds".to_owned()),
        ("together", facts.together, together),
    ];
    Funnel {
        request: name(facts),
        asked: (!facts.all).then_some(facts.asked),
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
fn together(facts: &DeviceFacts, now: u32, if_free: u32) -> String {
    let place = match (facts.level, &facts.attribute) {
        (Some(level), _) => format!("{}, where most are", within(level)),
        (None, Some(attribute)) => format!("that the constraint on {attribute} lets be together"),
        (None, None) => "that can be together".to_owned(),
    };
    if if_free > now {
        return format!("{place} ({if_free} if nobody held any)");
    }
    place
}
