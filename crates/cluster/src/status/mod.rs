//! The fleet at a glance: what there is, what is free of it and in which pieces, who holds it, and
//! who waits. It decides nothing of its own: who waits is a plan's answer, and what is free is what
//! the engine's state has left.

mod document;
mod holders;
mod stock;
#[cfg(test)]
mod tests;
mod trees;
mod waiting;

use phalanx_engine::Decision;
use phalanx_objects::core::{Node, TaintEffect};
use phalanx_objects::{Kind, Object};

pub use document::{
    FreeIslands, FreeNodes, HolderView, NodeCounts, STATUS_API_VERSION, StalledView,
    StatusDocument, StatusSummary, StockView, StrandedView, TopologyLevelView, TopologyView,
    WaitingView,
};

use crate::plan::{PlanOptions, plan};
use crate::view::{Document, VerdictWord, ViewOptions, document_with};
use crate::world::World;

/// The status of a world, and what was found wrong in it.
pub fn status(world: &mut World, options: &PlanOptions) -> StatusDocument {
    let plan = plan(world, options);
    let held = crate::deadlock::findings(world, &plan);
    let document = document_with(world, &plan, &ViewOptions::default(), &held);
    // What is held now: nothing of the plan has begun.
    let now = Decision {
        on: plan.decision.on,
        acts: Vec::new(),
        verdicts: Vec::new(),
        roles: Vec::new(),
        fragmentation: Vec::new(),
        wake_at: None,
        spent: plan.decision.spent,
    };
    let summary = summary(world, &document);
    StatusDocument {
        api_version: STATUS_API_VERSION,
        nodes: nodes(world),
        devices: stock::stock(world, &now),
        topologies: trees::trees(world),
        holders: holders::holders(world),
        stalled: held.iter().map(StalledView::from).collect(),
        waiting: waiting::waiting(world, &document, options.now),
        compat: document.compat,
        findings: document.findings,
        summary,
    }
}

fn summary(world: &World, document: &Document) -> StatusSummary {
    let starting = document.pods.iter().filter(|pod| pod.verdict == VerdictWord::Placed).count();
    StatusSummary {
        running: holders::bound(world).count() as u64,
        starting: starting as u64,
        waiting: (document.pods.len() - starting) as u64,
    }
}

fn nodes(world: &World) -> NodeCounts {
    let mut counts = NodeCounts::default();
    for node in all_nodes(world) {
        counts.total += 1;
        counts.cordoned += u64::from(node.spec.unschedulable);
        match is_ready(node) {
            Some(true) => counts.ready += 1,
            Some(false) => counts.not_ready += 1,
            None => counts.unsaid += 1,
        }
    }
    counts
}

fn all_nodes(world: &World) -> impl Iterator<Item = &Node> {
    let objects = world.objects().into_iter();
    objects
        .flat_map(|objects| objects.of_kind(Kind::Node))
        .filter_map(|object| if let Object::Node(node) = object { Some(&**node) } else { None })
}

/// Whether its kubelet says so; none where it says nothing.
fn is_ready(node: &Node) -> Option<bool> {
    let mut conditions = node.status.conditions.iter();
    conditions.find(|condition| condition.kind == "Ready").map(|c| c.status == "True")
}

/// Whether new pods that use devices of a driver or a resource are let on the node: it is ready and not
/// cordoned, and has no taint that keeps pods away but one that marks nodes with such devices, which
/// whoever asks for them tolerates.
fn takes_pods(node: &Node, name: &str) -> bool {
    let marks = |key: &str| key == name || is_of_vendor(key, name);
    let tainted = node.spec.taints.iter().any(|taint| {
        let keeps = matches!(taint.effect, TaintEffect::NoSchedule | TaintEffect::NoExecute);
        keeps && !marks(&taint.key)
    });
    !node.spec.unschedulable && !tainted && is_ready(node) != Some(false)
}

/// Whether a key is the vendor's of a driver or a resource: `nvidia.com/gpu` for `gpu.nvidia.com`.
fn is_of_vendor(key: &str, name: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    let name = name.split('/').next().unwrap_or(name);
    let is_part = name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    !domain.ends_with("kubernetes.io") && (name == domain || is_part)
}
