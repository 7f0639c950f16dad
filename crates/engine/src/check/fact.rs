//! Checks of the node's fact alone: name, cordon, taints, labels. Their outcome changes only when
//! the node object does, so columns keep it apart from the rest.

use std::collections::{BTreeMap, BTreeSet};

use super::Failing;
use super::claims::{Stopped, object};
use crate::decision::{Facts, Only};
use crate::facts::{Effect, Node, NodeRequirement, NodeRules, NodeTerm, Taint, Toleration};
use crate::name::{Name, NodeKey};
use crate::reason::{Reason, Status};

/// The taint that a cordon stands for.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Taints under this prefix are set and lifted by the cluster itself as a node's health changes.
const HEALTH_PREFIX: &str = "node.kubernetes.io/";

/// Whether a node is looked at as it is, or as it would be in full health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// As it is.
    AsIs,
    /// Not cordoned, without the cluster's own health taints, and with all devices that it counts.
    Healed,
}

/// A node in full health.
pub fn healed(node: &Node) -> Node {
    let mut node = node.clone();
    node.unschedulable = false;
    node.taints =
        node.taints.iter().filter(|t| !t.key.starts_with(HEALTH_PREFIX)).cloned().collect();
    let unhealthy = std::mem::take(&mut node.unhealthy);
    if !unhealthy.is_empty() {
        let mut scalars: BTreeMap<Name, i64> = node.allocatable.scalars.iter().cloned().collect();
        for (name, amount) in unhealthy {
            let all = scalars.entry(name).or_default();
            *all = all.saturating_add(amount);
        }
        node.allocatable.scalars = scalars.into_iter().collect();
    }
    node
}

/// The soft cost of the node, or the first check that fails.
pub(crate) fn first(
    rules: &NodeRules,
    key: &NodeKey,
    node: &Node,
    health: Health,
) -> Result<u32, Failing> {
    name(rules, key)?;
    narrowing(rules, key)?;
    if health == Health::AsIs {
        unschedulable(rules, node)?;
    }
    taints(rules, node, health)?;
    affinity(rules, key, node)?;
    Ok(soft(rules, key, node))
}

/// Whether a node's own fact lets a pod with these rules in, which is what a DaemonSet asks before it
/// makes a pod for the node (daemon controller, `NodeShouldRunDaemonPod`).
#[must_use]
pub fn admits(rules: &NodeRules, key: &NodeKey, node: &Node) -> bool {
    first(rules, key, node, Health::AsIs).is_ok()
}

/// Every one of these checks that fails, in order.
pub(crate) fn all(rules: &NodeRules, key: &NodeKey, node: &Node) -> Vec<Failing> {
    [
        name(rules, key),
        unschedulable(rules, node),
        taints(rules, node, Health::AsIs),
        affinity(rules, key, node),
    ]
    .into_iter()
    .filter_map(Result::err)
    .collect()
}

const NEVER: Status = Status::UnschedulableAndUnresolvable;

/// NodeName.
fn name(rules: &NodeRules, key: &NodeKey) -> Result<(), Failing> {
    match &rules.name {
        Some(name) if *name != key.0 => Err(Failing::new(Reason::NodeName, NEVER)
            .with(Facts::Subject { subject: name.clone(), detail: Name::new("") })),
        Some(_) | None => Ok(()),
    }
}

/// NodeAffinity's PreFilter: where every required term names nodes (`matchFields metadata.name`, as
/// DaemonSet pods have it), the other nodes are not filtered at all, whatever else they fail.
fn narrowing(rules: &NodeRules, key: &NodeKey) -> Result<(), Failing> {
    let Some(terms) = rules.required.as_deref().filter(|terms| narrows(terms)) else {
        return Ok(());
    };
    let here = |term: &NodeTerm| names(term).all(|name| *name == key.0);
    if terms.iter().any(here) { Ok(()) } else { Err(Failing::new(Reason::NodeAffinity, NEVER)) }
}

/// The same PreFilter before any node: terms that each name several nodes at once leave none.
pub(crate) fn terms_agree(rules: &NodeRules) -> Result<(), Stopped> {
    let Some(terms) = rules.required.as_deref().filter(|terms| narrows(terms)) else {
        return Ok(());
    };
    let agrees = |term: &NodeTerm| names(term).zip(names(term).skip(1)).all(|(a, b)| a == b);
    if terms.iter().any(agrees) {
        return Ok(());
    }
    let detail = Name::new("each of its node affinity terms names several nodes at once");
    Err(object(Reason::NodeAffinity, &Name::new(""), &detail))
}

/// The nodes that kube-scheduler's PreFilter leaves, where the pod names any: by `spec.nodeName`, by
/// `matchFields` of every required term, or by both.
pub(crate) fn only(rules: &NodeRules) -> Option<Only> {
    let terms = rules.required.as_deref().filter(|terms| narrows(terms));
    let agrees = |term: &&NodeTerm| names(term).zip(names(term).skip(1)).all(|(a, b)| a == b);
    let by_term = terms.map(|terms| {
        let named = terms.iter().filter(agrees).filter_map(|term| names(term).next().cloned());
        named.collect::<BTreeSet<Name>>()
    });
    match (&rules.name, by_term) {
        (None, None) => None,
        (Some(name), None) => {
            Some(Only { plugins: &["NodeName"], nodes: BTreeSet::from([name.clone()]) })
        }
        (None, Some(nodes)) => Some(Only { plugins: &["NodeAffinity"], nodes }),
        (Some(name), Some(mut nodes)) => {
            nodes.retain(|node| node == name);
            Some(Only { plugins: &["NodeAffinity", "NodeName"], nodes })
        }
    }
}

/// Whether every term names a node; one that does not, and an empty one, lifts the restriction.
fn narrows(terms: &[NodeTerm]) -> bool {
    !terms.is_empty() && terms.iter().all(|term| names(term).next().is_some())
}

/// The nodes that a term names by `metadata.name In`.
pub(super) fn names(term: &NodeTerm) -> impl Iterator<Item = &Name> {
    term.iter().filter_map(NodeRequirement::node_name)
}

/// NodeUnschedulable: `spec.unschedulable`, unless its taint is tolerated.
fn unschedulable(rules: &NodeRules, node: &Node) -> Result<(), Failing> {
    if !node.unschedulable {
        return Ok(());
    }
    let cordon =
        Taint { key: Name::new(UNSCHEDULABLE), value: Name::new(""), effect: Effect::NoSchedule };
    if tolerated(&rules.tolerations, &cordon) {
        Ok(())
    } else {
        Err(Failing::new(Reason::NodeUnschedulable, NEVER))
    }
}

/// TaintToleration: every NoSchedule and NoExecute taint is tolerated.
fn taints(rules: &NodeRules, node: &Node, health: Health) -> Result<(), Failing> {
    let healed = |t: &Taint| health == Health::Healed && t.key.starts_with(HEALTH_PREFIX);
    let bad = node.taints.iter().find(|t| {
        t.effect != Effect::PreferNoSchedule && !healed(t) && !tolerated(&rules.tolerations, t)
    });
    match bad {
        Some(taint) => {
            Err(Failing::new(Reason::NodeTaint, NEVER).with(Facts::Taint(taint.clone())))
        }
        None => Ok(()),
    }
}

/// Whether any of the tolerations tolerates the taint.
pub(crate) fn tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|t| t.tolerates(taint))
}

/// NodeAffinity: `nodeSelector` and the required terms.
fn affinity(rules: &NodeRules, key: &NodeKey, node: &Node) -> Result<(), Failing> {
    let unmet = rules.selector.iter().find(|(k, v)| label(&node.labels, k) != Some(v));
    if let Some((k, v)) = unmet {
        let asked = Name::new(&format!("{k}={v}"));
        let has = label(&node.labels, k).cloned().unwrap_or_else(|| Name::new(""));
        let facts = Facts::Label { asked, has };
        return Err(Failing::new(Reason::NodeAffinity, NEVER).with(facts));
    }
    match &rules.required {
        Some(terms) if !any_term(terms, key, &node.labels) => {
            Err(Failing::new(Reason::NodeAffinity, NEVER))
        }
        Some(_) | None => Ok(()),
    }
}

/// Soft preferences not met: weights of preferred terms that don't match, and one for each
/// `PreferNoSchedule` taint that is not tolerated by a toleration with that effect or none.
fn soft(rules: &NodeRules, key: &NodeKey, node: &Node) -> u32 {
    let unmet = rules
        .preferred
        .iter()
        .filter(|(_, term)| !term.is_empty() && !term_matches(term, key, &node.labels))
        .map(|(weight, _)| u32::try_from(*weight).unwrap_or(0));
    let repelled = node
        .taints
        .iter()
        .filter(|t| t.effect == Effect::PreferNoSchedule && !tolerated(&rules.tolerations, t));
    unmet.fold(0u32, u32::saturating_add).saturating_add(repelled.count() as u32)
}

/// The value of a label; labels are sorted by key.
pub(crate) fn label<'a>(labels: &'a [(Name, Name)], key: &str) -> Option<&'a Name> {
    labels.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok().map(|at| &labels[at].1)
}

/// Whether any of the terms matches; an empty list matches nothing.
pub(crate) fn any_term(terms: &[NodeTerm], key: &NodeKey, labels: &[(Name, Name)]) -> bool {
    terms.iter().any(|term| term_matches(term, key, labels))
}

/// Whether a term matches: all of its requirements, and it has one.
pub(crate) fn term_matches(term: &NodeTerm, key: &NodeKey, labels: &[(Name, Name)]) -> bool {
    !term.is_empty() && term.iter().all(|r| requirement_matches(r, Some(key), labels))
}

/// Whether a term matches labels alone: what it asks of the name is passed over, as kube-scheduler
/// does with the terms of volumes.
pub(crate) fn on_labels(term: &NodeTerm, labels: &[(Name, Name)]) -> bool {
    !term.is_empty() && term.iter().all(|r| requirement_matches(r, None, labels))
}

fn requirement_matches(
    requirement: &NodeRequirement,
    key: Option<&NodeKey>,
    labels: &[(Name, Name)],
) -> bool {
    let number = |k: &Name| label(labels, k).and_then(|v| v.parse::<i64>().ok());
    match requirement {
        NodeRequirement::In(k, values) => label(labels, k).is_some_and(|v| values.contains(v)),
        NodeRequirement::NotIn(k, values) => label(labels, k).is_none_or(|v| !values.contains(v)),
        NodeRequirement::Exists(k) => label(labels, k).is_some(),
        NodeRequirement::DoesNotExist(k) => label(labels, k).is_none(),
        NodeRequirement::Gt(k, bound) => number(k).is_some_and(|v| v > *bound),
        NodeRequirement::Lt(k, bound) => number(k).is_some_and(|v| v < *bound),
        NodeRequirement::NameIs(name) => key.is_none_or(|key| *name == key.0),
        NodeRequirement::NameIsNot(name) => key.is_none_or(|key| *name != key.0),
        NodeRequirement::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> NodeTerm {
        names.iter().map(|name| NodeRequirement::NameIs(Name::new(name))).collect()
    }

    fn requiring(terms: &[NodeTerm]) -> NodeRules {
        NodeRules { required: Some(terms.into()), ..NodeRules::default() }
    }

    /// kube-scheduler: "pod affinity terms conflict", where each term does.
    #[test]
    fn terms_that_name_several_nodes_at_once_leave_none() {
        let agree = |terms: &[NodeTerm]| terms_agree(&requiring(terms)).is_ok();
        assert!(agree(&[named(&["a", "a"])]));
        assert!(!agree(&[named(&["a", "b"])]));
        assert!(!agree(&[named(&["a", "b"]), named(&["c", "a"])]));
        assert!(agree(&[named(&["a", "b"]), named(&["c"])]));
        // A term that names no node lifts the restriction.
        let labelled: NodeTerm = [NodeRequirement::Exists(Name::new("zone"))].into();
        assert!(agree(&[named(&["a", "b"]), labelled]));
    }

    #[test]
    fn a_node_admits_whom_its_own_fact_lets_in() {
        let key = NodeKey(Name::new("a"));
        assert!(admits(&NodeRules::default(), &key, &Node::default()));
        assert!(!admits(&requiring(&[named(&["b"])]), &key, &Node::default()));
        assert!(!admits(
            &NodeRules::default(),
            &key,
            &Node { unschedulable: true, ..Node::default() }
        ));
    }

    /// A plugin that calls all its devices unhealthy leaves a node that lacks the resource; in full
    /// health the node has it.
    #[test]
    fn a_healed_node_has_all_devices_that_it_counts() {
        let (gpu, nic) = (Name::new("example.com/gpu"), Name::new("example.com/nic"));
        let ill =
            Node { unhealthy: [(gpu.clone(), 2), (nic.clone(), 1)].into(), ..Node::default() };
        let some = crate::Resources { scalars: [(nic.clone(), 3)].into(), ..Default::default() };
        let whole = healed(&Node { allocatable: some, ..ill });
        assert_eq!(*whole.allocatable.scalars, [(gpu, 2), (nic, 4)]);
        assert!(whole.unhealthy.is_empty());
    }
}
