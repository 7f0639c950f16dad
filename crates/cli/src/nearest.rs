//! What a verdict says beyond the document: where the pod came nearest, and how far the devices of
//! that node got, check by check.

use phalanx_cluster::plan::Plan;
use phalanx_cluster::view::{CheckView, PodView, account, checks_on, culprit, request_name};
use phalanx_cluster::words::within;
use phalanx_cluster::world::World;
use phalanx_engine::{DeviceFacts, DeviceStage, GroupKey, NodeKey, Reason, Short, Verdict, Why};

/// The nearest miss of a pod, or of the member of its group that stands in its way.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// The node.
    pub(crate) node: NodeKey,
    /// Whose miss it is, where that is another pod.
    pub(crate) of: Option<String>,
    /// What fails there.
    pub(crate) checks: Vec<CheckView>,
    /// How far the devices got, one for each request that failed there.
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

/// What the verdict of a pod says beyond the document; none where it came near no node.
pub(crate) fn of_pod(pod: &PodView, plan: &Plan, world: &mut World) -> Option<Account> {
    // A pod that exists is decided by itself, whoever made it.
    let own = format!("pod/{}", pod.name);
    let names = [Some(&own), pod.group.as_ref()];
    let verdict = |name: &String| {
        let is = |group: &GroupKey| {
            *group.object.namespace == *pod.namespace && group.to_string() == *name
        };
        plan.decision.verdicts.iter().find(|(group, _)| is(group))
    };
    let (group, verdict): &(GroupKey, Verdict) = names.into_iter().flatten().find_map(verdict)?;
    let info = world.lowering().group(group)?;
    let is = |of: &phalanx_engine::PodKey| *of.0.name == *pod.name;
    let own = info.roles.iter().position(|role| role.pods.iter().any(|of| is(&of.key)))?;
    let mut beside = plan.decision.roles.iter();
    let beside = beside.find(|(of, role, _)| of == group && usize::from(*role) == own);
    let verdict = beside.map_or(verdict, |(.., verdict)| verdict);
    let why: &Why = match verdict {
        Verdict::Placed { short, .. } => short.as_ref().map(|Short { why, .. }| &**why)?,
        Verdict::Waits(why) | Verdict::Refused(why) | Verdict::GaveUp(why, _) => why,
    };
    let node = why.nearest.clone()?;
    let role = culprit(verdict).filter(|_| info.gang).unwrap_or(own);
    let of = info.roles.get(role).filter(|_| role != own).and_then(|role| role.pods.first());
    let of = of.map(|pod| pod.key.0.name.to_string());
    let report = account(world, plan, group, u16::try_from(role).ok())?;
    let told = report.nodes.iter().find(|one| one.node == node)?;
    let name = |facts: &DeviceFacts| {
        request_name(world, group, role, facts).unwrap_or_else(|| "the request".to_owned())
    };
    let told = told.checks.iter().filter_map(|(reason, _, example)| {
        example.facts.devices().map(|facts| funnels(*reason, facts, &name))
    });
    let funnels = told.flatten().collect();
    let checks = checks_on(world, &report, &node);
    Some(Account { node, of, checks, funnels })
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
