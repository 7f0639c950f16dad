//! Spread constraints that can't be met: over a label that no node has, or with fewer domains than the
//! workload's pods need.
//!
//! A domain of nodes that none of the pods may go to stays as it is, and keeps the others from getting
//! more than `maxSkew` pods; so does a `minDomains` above the number of domains (PodTopologySpread).

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::core::{
    Node, NodeInclusionPolicy, TopologySpreadConstraint, UnsatisfiableConstraintAction,
};
use phalanx_objects::{Kind, Object};

use super::bench::Bench;
use super::claims::Waiting;
use super::near::{cut, meant, quoted};
use super::nodes::{Fleet, bears_taints, meets};
use super::{Lint, Rule};
use crate::finding::Severity;
use crate::lower::unmet;
use crate::words::count;

/// How many domains a finding names.
const DOMAINS_SHOWN: usize = 3;

pub(super) fn find(bench: &Bench<'_>, fleet: &Fleet<'_>, found: &mut Vec<Lint>) {
    for waiting in &bench.waiting {
        for (index, constraint) in waiting.spec.topology_spread_constraints.iter().enumerate() {
            if constraint.when_unsatisfiable == UnsatisfiableConstraintAction::DoNotSchedule {
                let told = keyless(fleet, waiting, constraint)
                    .map(|message| (Severity::Error, "topologyKey", message));
                let told = told.or_else(|| crowded(bench, fleet, waiting, constraint));
                let Some((severity, field, message)) = told else { continue };
                let path = format!("{}.topologySpreadConstraints[{index}].{field}", waiting.at);
                let place = (&waiting.reference, waiting.source);
                let lint = Lint::new(Rule::SpreadUnmet, place, &path, message);
                found.push(lint.graded(severity));
            }
        }
    }
}

/// A label that no node has to which the pods may go.
fn keyless(
    fleet: &Fleet<'_>,
    waiting: &Waiting<'_>,
    constraint: &TopologySpreadConstraint,
) -> Option<String> {
    let key = constraint.topology_key.as_str();
    let open = || fleet.nodes.iter().filter(|node| meets(node, waiting.spec));
    let has = |node: &&&Node| node.metadata.labels.contains_key(key);
    if open().next().is_none() || open().any(|node| has(&node)) {
        return None;
    }
    let hint = if fleet.labels.contains_key(key) {
        "The nodes that have it are kept out by the node selector or the node affinity.".to_owned()
    } else {
        match meant(key, fleet.labels.keys().copied()) {
            Some(near) => format!("If `{}` is meant, name that.", cut(near)),
            None => "Spread over a label that the nodes have, or wish for it (ScheduleAnyway)."
                .to_owned(),
        }
    };
    Some(format!(
        "No node that the pods may go to has the label {}, over which the constraint spreads them, and \
         nodes without it hold none of them. {hint}",
        cut(key)
    ))
}

/// More pods than the constraint lets into the domains that are open to them.
fn crowded(
    bench: &Bench<'_>,
    fleet: &Fleet<'_>,
    waiting: &Waiting<'_>,
    constraint: &TopologySpreadConstraint,
) -> Option<(Severity, &'static str, String)> {
    // Pods that do not count themselves are kept apart by nothing.
    let selector = constraint.label_selector.as_ref()?;
    let own = waiting.metadata.last().map(|(metadata, _)| &metadata.labels)?;
    if unmet(selector, own).is_some() {
        return None;
    }
    let lowering = bench.world.lowering();
    let wanted = u64::from(lowering.pods_missing(&waiting.reference, &waiting.at));
    let domains = domains(bench, fleet.nodes, waiting, constraint);
    let all = domains.len() as u64;
    let open = domains.values().filter(|domain| domain.open).count() as u64;
    let least = u64::try_from(constraint.min_domains.unwrap_or(1)).unwrap_or(1);
    let skew = u64::try_from(constraint.max_skew).unwrap_or(0);
    let few = all < least;
    // The emptiest domain that stays as it is.
    let shut_domains = domains.values().filter(|domain| !domain.open);
    let emptiest = shut_domains.map(|domain| domain.pods).min().filter(|_| !few).unwrap_or(0);
    let limit = emptiest.saturating_add(skew);
    let room = domains.values().filter(|domain| domain.open);
    let most: u64 = room.map(|domain| limit.saturating_sub(domain.pods)).sum();
    let there_already: u64 = domains.values().map(|domain| domain.pods).sum();
    if (open == all && !few) || wanted <= most || open == 0 {
        return None;
    }
    let there = match all {
        1 => "1 domain".to_owned(),
        all => format!("{all} domains"),
    };
    let key = cut(&constraint.topology_key);
    let (field, why) = if few {
        let why = format!(
            "The constraint wants {least} domains of {key}, and the input has {there} for the pods: while \
             there are fewer, each holds at most {}",
            count(limit, "pod", "pods")
        );
        ("minDomains", why)
    } else {
        let shut: Vec<&str> =
            domains.iter().filter(|(_, domain)| !domain.open).map(|(name, _)| *name).collect();
        let (subject, counts, them, stay) = match shut.len() {
            1 => ("domain", "counts", "it, for its", "It stays as it is"),
            _ => ("domains", "count", "them, for their", "They stay as they are"),
        };
        let why = format!(
            "The {subject} {} of {key} {counts}, and the pods may go to no node of {them} nodes are \
             cordoned or tainted. {stay}, so that each other domain holds at most {}",
            quoted(&shut, DOMAINS_SHOWN),
            count(limit, "pod", "pods")
        );
        ("maxSkew", why)
    };
    let then = if few {
        "Lower minDomains, or raise maxSkew."
    } else {
        "Set nodeTaintsPolicy: Honor, so that such domains do not count, or raise maxSkew."
    };
    let beside = match there_already {
        0 => String::new(),
        1 => " beside the 1 pod that counts and is there".to_owned(),
        many => format!(" beside the {many} pods that count and are there"),
    };
    let message =
        format!("{why}: {most} of the {wanted} pods that are to be made fit{beside}. {then}");
    Some((Severity::Warning, field, message))
}

/// A domain that counts.
#[derive(Clone, Copy, Default)]
struct Domain {
    /// The pods may go to a node of it.
    open: bool,
    /// Pods that count and are there.
    pods: u64,
}

/// How many pods that count are on each node.
fn counted(
    bench: &Bench<'_>,
    waiting: &Waiting<'_>,
    constraint: &TopologySpreadConstraint,
) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let (Some(objects), Some(selector)) = (bench.world.objects(), &constraint.label_selector)
    else {
        return counts;
    };
    for object in objects.in_namespace(Kind::Pod, &waiting.reference.namespace) {
        let Object::Pod(pod) = object else { continue };
        let stays = pod.metadata.deletion_timestamp.is_none() && !pod.status.phase.is_terminal();
        if stays
            && !pod.spec.node_name.is_empty()
            && unmet(selector, &pod.metadata.labels).is_none()
        {
            *counts.entry(pod.spec.node_name.clone()).or_insert(0) += 1;
        }
    }
    counts
}

/// The domains that count.
fn domains<'n>(
    bench: &Bench<'_>,
    nodes: &[&'n Node],
    waiting: &Waiting<'_>,
    constraint: &TopologySpreadConstraint,
) -> BTreeMap<&'n str, Domain> {
    let spec = waiting.spec;
    let keys: BTreeSet<&str> = spec
        .topology_spread_constraints
        .iter()
        .filter(|one| one.when_unsatisfiable == UnsatisfiableConstraintAction::DoNotSchedule)
        .map(|one| one.topology_key.as_str())
        .collect();
    let affine = constraint.node_affinity_policy != Some(NodeInclusionPolicy::Ignore);
    let taintless = constraint.node_taints_policy == Some(NodeInclusionPolicy::Honor);
    let counted = counted(bench, waiting, constraint);
    let mut domains: BTreeMap<&str, Domain> = BTreeMap::new();
    for node in nodes {
        let labels = &node.metadata.labels;
        let (meets, bears) = (meets(node, spec), bears_taints(node, spec));
        let counts = keys.iter().all(|key| labels.contains_key(*key))
            && (meets || !affine)
            && (bears || !taintless);
        let Some(domain) = labels.get(&constraint.topology_key).filter(|_| counts) else {
            continue;
        };
        let domain = domains.entry(domain.as_str()).or_default();
        domain.open |= meets && bears;
        domain.pods += counted.get(&node.metadata.name).copied().unwrap_or(0);
    }
    domains
}
