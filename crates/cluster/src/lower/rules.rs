//! Rules about nodes: node selectors, affinity terms, taints and tolerations, as values.
//!
//! A requirement that the API would refuse makes its term never match, as the scheduler treats it
//! (component-helpers' `nodeaffinity`); the other terms stand.

use phalanx_engine::{
    Effect, Name, NodeRequirement, NodeRules, NodeTerm, Taint as EngineTaint,
    Toleration as EngineToleration,
};
use phalanx_objects::core::{
    Node, NodeSelector, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm, PodSpec,
    TaintEffect, Toleration, TolerationOperator,
};

use super::intern::Names;

/// The taint of a node that is cordoned.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The rules of a pod.
pub(crate) fn node_rules(spec: &PodSpec, names: &mut Names) -> NodeRules {
    let affinity = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
    let required =
        affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
    let preferred = affinity.map(|a| &a.preferred_during_scheduling_ignored_during_execution);
    NodeRules {
        name: (!spec.node_name.is_empty()).then(|| names.get(&spec.node_name)),
        selector: spec.node_selector.iter().map(|(k, v)| (names.get(k), names.get(v))).collect(),
        required: required.map(|selector| terms(selector, names)),
        preferred: preferred
            .into_iter()
            .flatten()
            .filter(|wish| wish.weight != 0)
            .map(|wish| (wish.weight, term(&wish.preference, names)))
            .filter(|(_, term)| !term.is_empty())
            .collect(),
        tolerations: tolerations(&spec.tolerations, names),
    }
}

/// The terms of a selector; one of them must match.
pub(crate) fn terms(selector: &NodeSelector, names: &mut Names) -> Box<[NodeTerm]> {
    selector.node_selector_terms.iter().map(|t| term(t, names)).collect()
}

/// One term.
pub(crate) fn term(term: &NodeSelectorTerm, names: &mut Names) -> NodeTerm {
    let labels = term.match_expressions.iter().map(|r| label_requirement(r, names));
    let mut all: Vec<_> = labels.collect();
    all.extend(term.match_fields.iter().map(|r| field_requirement(r, names)));
    all.into()
}

fn label_requirement(r: &NodeSelectorRequirement, names: &mut Names) -> NodeRequirement {
    use NodeRequirement as N;
    use NodeSelectorOperator as Op;
    if !is_qualified_name(&r.key) || !r.values.iter().all(|value| is_label_value(value)) {
        return N::Never;
    }
    let key = names.get(&r.key);
    match (&r.operator, r.values.as_slice()) {
        (Op::In, [_, ..]) => N::In(key, sorted(&r.values, names)),
        (Op::NotIn, [_, ..]) => N::NotIn(key, sorted(&r.values, names)),
        (Op::Exists, []) => N::Exists(key),
        (Op::DoesNotExist, []) => N::DoesNotExist(key),
        (Op::Gt, [bound]) => bound.parse().map_or(N::Never, |bound| N::Gt(key, bound)),
        (Op::Lt, [bound]) => bound.parse().map_or(N::Never, |bound| N::Lt(key, bound)),
        (
            Op::In
            | Op::NotIn
            | Op::Exists
            | Op::DoesNotExist
            | Op::Gt
            | Op::Lt
            | Op::Unset
            | Op::Other(_),
            _,
        ) => N::Never,
    }
}

fn field_requirement(r: &NodeSelectorRequirement, names: &mut Names) -> NodeRequirement {
    use NodeSelectorOperator as Op;
    let ("metadata.name", [name]) = (r.key.as_str(), r.values.as_slice()) else {
        return NodeRequirement::Never;
    };
    match r.operator {
        Op::In => NodeRequirement::NameIs(names.get(name)),
        Op::NotIn => NodeRequirement::NameIsNot(names.get(name)),
        Op::Exists | Op::DoesNotExist | Op::Gt | Op::Lt | Op::Unset | Op::Other(_) => {
            NodeRequirement::Never
        }
    }
}

fn sorted(values: &[String], names: &mut Names) -> Box<[Name]> {
    let mut all: Vec<Name> = values.iter().map(|value| names.get(value)).collect();
    all.sort();
    all.dedup();
    all.into()
}

/// The effect; none where it neither keeps pods away nor makes them unwelcome.
pub(crate) fn effect(effect: &TaintEffect) -> Option<Effect> {
    match effect {
        TaintEffect::NoSchedule => Some(Effect::NoSchedule),
        TaintEffect::NoExecute => Some(Effect::NoExecute),
        TaintEffect::PreferNoSchedule => Some(Effect::PreferNoSchedule),
        TaintEffect::Unset | TaintEffect::None | TaintEffect::Other(_) => None,
    }
}

/// A taint, where it has an effect.
pub(crate) fn taint(
    key: &str,
    value: &str,
    word: &TaintEffect,
    names: &mut Names,
) -> Option<EngineTaint> {
    let effect = effect(word)?;
    Some(EngineTaint { key: names.get(key), value: names.get(value), effect })
}

/// Tolerations of pods or of device requests. One that can tolerate nothing (an unknown operator,
/// the alpha operators, an effect that is none) is left out.
pub(crate) fn tolerations(all: &[Toleration], names: &mut Names) -> Box<[EngineToleration]> {
    all.iter().filter_map(|t| toleration(t, names)).collect()
}

/// The key of the first taint of a node that keeps away who has only these tolerations, that of being
/// cordoned included (NodeUnschedulable, TaintToleration); none where he may run there.
pub(crate) fn shut_by(node: &Node, tolerations: &[Toleration]) -> Option<String> {
    if node.spec.taints.is_empty() && !node.spec.unschedulable {
        return None;
    }
    let names = &mut Names::default();
    let cordon = node.spec.unschedulable.then_some((UNSCHEDULABLE, "", &TaintEffect::NoSchedule));
    let taints = node.spec.taints.iter().map(|t| (t.key.as_str(), t.value.as_str(), &t.effect));
    let rules = self::tolerations(tolerations, names);
    let shuts = |(key, value, word): (&str, &str, &TaintEffect)| {
        let taint = taint(key, value, word, names)?;
        let keeps_away = match taint.effect {
            Effect::NoSchedule | Effect::NoExecute => true,
            Effect::PreferNoSchedule => false,
        };
        let tolerated = rules.iter().any(|rule| rule.tolerates(&taint));
        (keeps_away && !tolerated).then(|| key.to_owned())
    };
    cordon.into_iter().chain(taints).find_map(shuts)
}

fn toleration(t: &Toleration, names: &mut Names) -> Option<EngineToleration> {
    let equals = match t.operator {
        TolerationOperator::Equal => Some(names.get(&t.value)),
        TolerationOperator::Exists => None,
        TolerationOperator::Gt | TolerationOperator::Lt | TolerationOperator::Other(_) => {
            return None;
        }
    };
    let effect = match effect(&t.effect) {
        None if t.effect != TaintEffect::Unset => return None,
        effect => effect,
    };
    Some(EngineToleration { key: (!t.key.is_empty()).then(|| names.get(&t.key)), equals, effect })
}

/// Whether the text is a qualified name: an optional DNS subdomain and `/`, then at most 63
/// characters (`content.IsLabelKey`).
pub(crate) fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        None => is_name_part(text),
        Some((prefix, name)) => is_subdomain(prefix) && is_name_part(name),
    }
}

fn is_name_part(text: &str) -> bool {
    !text.is_empty() && is_label_value(text)
}

/// Whether the text is a label's value: empty, or at most 63 characters that begin and end with a
/// letter or digit.
pub(crate) fn is_label_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    bytes.len() <= 63
        && bytes.iter().all(inner)
        && bytes.first().is_none_or(u8::is_ascii_alphanumeric)
        && bytes.last().is_none_or(u8::is_ascii_alphanumeric)
}

/// Whether the text is a DNS subdomain (RFC 1123), of at most 253 characters.
pub(crate) fn is_subdomain(text: &str) -> bool {
    let lower = |c: &u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(lower)
            && bytes.last().is_some_and(lower)
            && bytes.iter().all(|c| lower(c) || *c == b'-')
    };
    !text.is_empty() && text.len() <= 253 && text.split('.').all(label)
}
