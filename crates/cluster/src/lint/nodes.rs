//! What pods want of nodes, held against the nodes of the input: selectors and affinities that none
//! can meet, tolerations that are nearly of a taint that there is, host ports that leave room for one
//! pod a node. Spread constraints and volumes are held against them in modules of their own.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::core::{
    Container, ContainerPort, Node, NodeSelectorOperator, NodeSelectorRequirement,
    NodeSelectorTerm, PodSpec, RestartPolicy, Taint, TaintEffect, Toleration, TolerationOperator,
};
use phalanx_objects::{Kind, Object};

use super::bench::Bench;
use super::claims::Waiting;
use super::near::{cut, meant, nearest, quoted};
use super::resources::containers;
use super::{Lint, Rule, spread, volumes};
use crate::compat::distance;
use crate::plan::PlanOptions;
use crate::words::{count, list};

/// How many names a finding lists.
const NAMES_SHOWN: usize = 4;

/// Most edits that lead from a taint's key to one that is written wrong.
const EDITS_MAX: usize = 2;

pub(super) fn find(bench: &Bench<'_>, options: &PlanOptions, found: &mut Vec<Lint>) {
    let objects = bench.world.objects().into_iter().flat_map(|o| o.of_kind(Kind::Node));
    let nodes: Vec<&Node> = objects
        .filter_map(|object| if let Object::Node(node) = object { Some(&**node) } else { None })
        .collect();
    if nodes.is_empty() {
        return;
    }
    let fleet = Fleet::of(&nodes);
    for waiting in &bench.waiting {
        fleet.selector(waiting, found);
        fleet.affinity(waiting, found);
        fleet.tolerations(waiting, found);
        host_ports(bench, waiting, found);
    }
    spread::find(bench, &fleet, found);
    volumes::find(bench, options, &fleet, found);
}

/// The nodes, and what their labels and taints are.
pub(super) struct Fleet<'w> {
    pub(super) nodes: &'w [&'w Node],
    pub(super) labels: BTreeMap<&'w str, BTreeSet<&'w str>>,
    taints: BTreeSet<&'w str>,
}

impl<'w> Fleet<'w> {
    fn of(nodes: &'w [&'w Node]) -> Self {
        let mut labels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (key, value) in nodes.iter().flat_map(|node| &node.metadata.labels) {
            labels.entry(key).or_default().insert(value);
        }
        let taints = nodes.iter().flat_map(|node| &node.spec.taints);
        let taints = taints.map(|taint| taint.key.as_str()).collect();
        Self { nodes, labels, taints }
    }

    /// Pairs that no node has, and pairs that no node has together.
    fn selector(&self, waiting: &Waiting<'_>, found: &mut Vec<Lint>) {
        let spec = waiting.spec;
        let place = (&waiting.reference, waiting.source);
        let mut lacking = false;
        for (key, value) in &spec.node_selector {
            let Some(lack) = self.lacks(key, std::slice::from_ref(value)) else { continue };
            lacking = true;
            let message = format!(
                "No node of the input has the label {}={}, which the node selector demands. {lack}",
                cut(key),
                cut(value)
            );
            let path = format!("{}.nodeSelector[{key:?}]", waiting.at);
            found.push(Lint::new(Rule::NodeSelectorUnmet, place, &path, message));
        }
        let meets = |node: &&&Node| has_labels(node, spec);
        if !lacking && !spec.node_selector.is_empty() && !self.nodes.iter().any(|n| meets(&n)) {
            let pairs: Vec<String> =
                spec.node_selector.iter().map(|(k, v)| format!("{}={}", cut(k), cut(v))).collect();
            let message = format!(
                "No node of the input has all the labels {} together, though there are nodes with each \
                 of them.",
                list(&pairs)
            );
            let path = format!("{}.nodeSelector", waiting.at);
            found.push(Lint::new(Rule::NodeSelectorUnmet, place, &path, message));
        }
    }

    /// What there is in place of a label with one of these values; none where a node has it.
    fn lacks(&self, key: &str, values: &[String]) -> Option<String> {
        match self.labels.get(key) {
            None => {
                let names = self.labels.keys().copied();
                Some(match meant(key, names) {
                    Some(near) => {
                        format!(
                            "None has the key {}; if `{}` is meant, name that.",
                            cut(key),
                            cut(near)
                        )
                    }
                    None => format!("None has the key {}.", cut(key)),
                })
            }
            Some(known) if values.iter().any(|value| known.contains(value.as_str())) => None,
            Some(known) => {
                let wanted = values.first().map_or("", String::as_str);
                let near = nearest(wanted, known.iter().copied());
                Some(format!("Nodes have {}.", quoted(&near, NAMES_SHOWN)))
            }
        }
    }

    /// Required node affinity of which no term holds on any node.
    fn affinity(&self, waiting: &Waiting<'_>, found: &mut Vec<Lint>) {
        let affinity = waiting.spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
        let required =
            affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
        let Some(terms) = required.map(|required| &required.node_selector_terms) else { return };
        let holds = |term: &&NodeSelectorTerm| self.nodes.iter().any(|node| term_holds(term, node));
        if terms.is_empty() || terms.iter().any(|term| holds(&term)) {
            return;
        }
        // The first requirement that no node meets, of a term that has some.
        let requirements = terms.iter().flat_map(|term| &term.match_expressions);
        let alone = requirements.into_iter().find(|r| !self.nodes.iter().any(|n| holds_on(r, n)));
        let why = match alone {
            Some(r) => {
                let lack = self.lacks(&r.key, &r.values).unwrap_or_default();
                let lack =
                    if r.operator == NodeSelectorOperator::In { lack } else { String::new() };
                let values: Vec<String> = r.values.iter().map(|v| cut(v).into_owned()).collect();
                let told = format!("{} {} {}", cut(&r.key), r.operator, list(&values));
                format!("No node meets `{}`. {lack}", told.trim_end())
            }
            None => {
                "Each of its requirements holds somewhere, but no node meets all of a term.".into()
            }
        };
        let message = format!("No node of the input meets the required node affinity. {why}")
            .trim_end()
            .to_owned();
        let path = format!(
            "{}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            waiting.at
        );
        let place = (&waiting.reference, waiting.source);
        found.push(Lint::new(Rule::NodeAffinityUnmet, place, &path, message));
    }

    /// Tolerations whose key is all but that of a taint that they don't tolerate.
    fn tolerations(&self, waiting: &Waiting<'_>, found: &mut Vec<Lint>) {
        let own: BTreeSet<&str> =
            waiting.spec.tolerations.iter().map(|toleration| toleration.key.as_str()).collect();
        for (index, toleration) in waiting.spec.tolerations.iter().enumerate() {
            let key = toleration.key.as_str();
            let near = |taint: &&&str| {
                !own.contains(**taint) && key.len() > 4 && distance(key, taint) <= EDITS_MAX
            };
            if key.is_empty() || self.taints.contains(key) {
                continue;
            }
            let Some(taint) = self.taints.iter().find(near) else { continue };
            let message = format!(
                "No node of the input has a taint with the key {}; nodes have the taint {}, which is not \
                 tolerated. If that is meant, write it so.",
                cut(key),
                cut(taint)
            );
            let path = format!("{}.tolerations[{index}].key", waiting.at);
            let place = (&waiting.reference, waiting.source);
            found.push(Lint::new(Rule::TolerationMisspelt, place, &path, message));
        }
    }
}

/// Host ports of a workload that wants more pods than there are nodes for it.
fn host_ports(bench: &Bench<'_>, waiting: &Waiting<'_>, found: &mut Vec<Lint>) {
    let spec = waiting.spec;
    // What an init container has that ends is not counted.
    let ends = |container: &Container| {
        spec.init_containers.iter().any(|init| std::ptr::eq(init, container))
            && container.restart_policy != Some(RestartPolicy::Always)
    };
    let takes =
        |port: &ContainerPort| port.host_port != 0 || spec.host_network && port.container_port != 0;
    let mut all = containers(waiting);
    let Some((path, container)) = all.find(|(_, c)| !ends(c) && c.ports.iter().any(takes)) else {
        return;
    };
    let lowering = bench.world.lowering();
    let wanted = lowering.pods_wanted(&waiting.reference, &waiting.at);
    let room = lowering.nodes_open_to(&waiting.reference, &waiting.at);
    if u64::from(wanted) <= room as u64 {
        return;
    }
    let message = format!(
        "Container {} takes a port of its node, so that each node holds one pod of the workload: it \
         wants {}, and {}.",
        cut(&container.name),
        count(u64::from(wanted), "pod", "pods"),
        match room {
            1 => "1 node of the input is open to it".to_owned(),
            room => format!("{room} nodes of the input are open to it"),
        }
    );
    let path = format!("{path}.ports");
    let place = (&waiting.reference, waiting.source);
    found.push(Lint::new(Rule::HostPortLimitsReplicas, place, &path, message));
}

/// Whether the node has what selector and required affinity demand.
pub(super) fn meets(node: &Node, spec: &PodSpec) -> bool {
    let affinity = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
    let required =
        affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
    has_labels(node, spec)
        && required.is_none_or(|r| r.node_selector_terms.iter().any(|term| term_holds(term, node)))
}

/// Whether the pod bears the taints of a node, and that it is cordoned.
pub(super) fn bears_taints(node: &Node, spec: &PodSpec) -> bool {
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: TaintEffect::NoSchedule,
        ..Taint::default()
    };
    let cordon = Some(&cordon).filter(|_| node.spec.unschedulable);
    let mut taints = node.spec.taints.iter().chain(cordon);
    taints.all(|taint| match taint.effect {
        TaintEffect::NoSchedule | TaintEffect::NoExecute => {
            spec.tolerations.iter().any(|toleration| tolerates(toleration, taint))
        }
        TaintEffect::PreferNoSchedule
        | TaintEffect::None
        | TaintEffect::Unset
        | TaintEffect::Other(_) => true,
    })
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let Toleration { key, operator, value, effect, .. } = toleration;
    let number = |text: &str| text.parse::<i64>().ok();
    let pair = || number(&taint.value).zip(number(value));
    let every = key.is_empty() && *operator == TolerationOperator::Exists;
    (every || *key == taint.key)
        && (*effect == TaintEffect::Unset || *effect == taint.effect)
        && match operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => *value == taint.value,
            TolerationOperator::Gt => pair().is_some_and(|(has, bound)| has > bound),
            TolerationOperator::Lt => pair().is_some_and(|(has, bound)| has < bound),
            TolerationOperator::Other(_) => false,
        }
}

fn has_labels(node: &Node, spec: &PodSpec) -> bool {
    spec.node_selector.iter().all(|(key, value)| node.metadata.labels.get(key) == Some(value))
}

pub(super) fn term_holds(term: &NodeSelectorTerm, node: &Node) -> bool {
    let fields = term.match_fields.iter().all(|r| {
        let is = r.values.contains(&node.metadata.name);
        (r.operator == NodeSelectorOperator::In && is)
            || (r.operator == NodeSelectorOperator::NotIn && !is)
    });
    let empty = term.match_fields.is_empty() && term.match_expressions.is_empty();
    !empty && fields && term.match_expressions.iter().all(|r| holds_on(r, node))
}

fn holds_on(requirement: &NodeSelectorRequirement, node: &Node) -> bool {
    let value = node.metadata.labels.get(&requirement.key);
    let bound = || requirement.values.first().and_then(|bound| bound.parse::<i64>().ok());
    let number = || value.and_then(|value| value.parse::<i64>().ok());
    match requirement.operator {
        NodeSelectorOperator::In => value.is_some_and(|v| requirement.values.contains(v)),
        NodeSelectorOperator::NotIn => !value.is_some_and(|v| requirement.values.contains(v)),
        NodeSelectorOperator::Exists => value.is_some(),
        NodeSelectorOperator::DoesNotExist => value.is_none(),
        NodeSelectorOperator::Gt => number().zip(bound()).is_some_and(|(n, bound)| n > bound),
        NodeSelectorOperator::Lt => number().zip(bound()).is_some_and(|(n, bound)| n < bound),
        NodeSelectorOperator::Unset | NodeSelectorOperator::Other(_) => false,
    }
}
