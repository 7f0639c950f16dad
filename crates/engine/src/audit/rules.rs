//! A node by itself, in kube-scheduler's order of filters: plain rules, from the reference and
//! without a word of the checks that the search uses, so that a fault there is seen here.

use std::collections::BTreeMap;

use crate::facts::{
    ClaimSpec, DeviceRequest, Effect, Extended, Node, NodeRequirement, NodeRules, NodeTerm,
    Request, Resources,
};
use crate::name::{Name, NodeKey};
use crate::reason::Reason;

/// NodeName, NodeUnschedulable, TaintToleration, NodeAffinity.
pub(crate) fn admits(rules: &NodeRules, key: &NodeKey, node: &Node) -> Result<(), Reason> {
    if rules.name.as_ref().is_some_and(|name| *name != key.0) {
        return Err(Reason::NodeName);
    }
    // Where every term names nodes, only those are looked at.
    let named = |term: &NodeTerm| {
        let names = term.iter().filter_map(|requirement| {
            if let NodeRequirement::NameIs(name) = requirement {
                Some(*name == key.0)
            } else {
                None
            }
        });
        names.collect::<Vec<bool>>()
    };
    let terms = rules.required.as_deref().unwrap_or_default();
    let narrowed = !terms.is_empty() && terms.iter().all(|term| !named(term).is_empty());
    if narrowed && !terms.iter().any(|term| named(term).iter().all(|here| *here)) {
        return Err(Reason::NodeAffinity);
    }
    let tolerates = |key: &str, value: &str, effect: Effect| {
        rules.tolerations.iter().any(|t| {
            (t.key.is_none() || t.key.as_deref() == Some(key))
                && (t.equals.is_none() || t.equals.as_deref() == Some(value))
                && (t.effect.is_none() || t.effect == Some(effect))
        })
    };
    if node.unschedulable && !tolerates("node.kubernetes.io/unschedulable", "", Effect::NoSchedule)
    {
        return Err(Reason::NodeUnschedulable);
    }
    for taint in &node.taints {
        let hard = taint.effect == Effect::NoSchedule || taint.effect == Effect::NoExecute;
        if hard && !tolerates(&taint.key, &taint.value, taint.effect) {
            return Err(Reason::NodeTaint);
        }
    }
    for (label, value) in &rules.selector {
        if !node.labels.iter().any(|(l, v)| l == label && v == value) {
            return Err(Reason::NodeAffinity);
        }
    }
    let matching = |terms: &[NodeTerm]| terms.iter().any(|term| matches(term, key, node));
    if !rules.required.as_deref().is_none_or(matching) {
        return Err(Reason::NodeAffinity);
    }
    Ok(())
}

/// Whether a term matches: it has requirements, and all hold.
pub(crate) fn matches(term: &NodeTerm, key: &NodeKey, node: &Node) -> bool {
    let value =
        |label: &Name| node.labels.iter().find(|(l, _)| l == label).map(|(_, v)| v.as_str());
    let number = |label: &Name| value(label).and_then(|v| v.parse::<i64>().ok());
    let holds = |requirement: &NodeRequirement| match requirement {
        NodeRequirement::In(l, of) => of.iter().any(|v| value(l) == Some(v)),
        NodeRequirement::NotIn(l, of) => !of.iter().any(|v| value(l) == Some(v)),
        NodeRequirement::Exists(l) => value(l).is_some(),
        NodeRequirement::DoesNotExist(l) => value(l).is_none(),
        NodeRequirement::Gt(l, n) => number(l).is_some_and(|v| v > *n),
        NodeRequirement::Lt(l, n) => number(l).is_some_and(|v| v < *n),
        NodeRequirement::NameIs(name) => key.0 == *name,
        NodeRequirement::NameIsNot(name) => key.0 != *name,
        NodeRequirement::Never => false,
    };
    !term.is_empty() && term.iter().all(holds)
}

/// The extended resources of a request that a node with none of them gives devices for.
pub(crate) fn by_devices<'r>(request: &'r Request, node: &Node) -> Vec<&'r Extended> {
    let none = |asked: &&Extended| scalar(&node.allocatable, &asked.resource) <= 0;
    request.extended.iter().filter(none).collect()
}

/// The claim that is made for these, if any: their requests in order of name.
pub(crate) fn extended(
    request: &Request,
    served: &[&Extended],
) -> Result<Option<ClaimSpec>, String> {
    if let Some(bad) = served.iter().find_map(|asked| asked.fault.as_ref()) {
        return Err(format!("its extended resources can be served: {}", bad.reason.code()));
    }
    let of = |asked: &&Extended| served.iter().any(|one| one.resource == asked.resource);
    let all = request.extended.iter().filter(of).flat_map(|asked| asked.requests.to_vec());
    let by_name: BTreeMap<Name, DeviceRequest> = all.map(|r| (r.name.clone(), r)).collect();
    if by_name.is_empty() {
        return Ok(None);
    }
    let requests = by_name.into_values().collect();
    Ok(Some(ClaimSpec { requests, constraints: [].into(), align: [].into(), fault: None }))
}

/// NodeResourcesFit: the first resource that is short, those that devices serve aside. Its sums and its
/// difference wrap at 64 bits.
pub(crate) fn room(
    asked: &Resources,
    node: &Node,
    used: &[&Resources],
    served: &[&Extended],
) -> Result<(), Reason> {
    let all = &node.allocatable;
    let short = |of: fn(&Resources) -> i64| {
        let taken = used.iter().map(|r| of(r)).fold(0, i64::wrapping_add);
        let left = of(all).wrapping_sub(taken);
        of(asked) > 0 && of(asked) > left
    };
    for (reason, of) in [
        (Reason::TooManyPods, (|r| r.pods) as fn(&Resources) -> i64),
        (Reason::InsufficientCpu, |r| r.cpu_milli),
        (Reason::InsufficientMemory, |r| r.memory_bytes),
        (Reason::InsufficientEphemeral, |r| r.ephemeral_bytes),
    ] {
        if short(of) {
            return Err(reason);
        }
    }
    for (name, amount) in &asked.scalars {
        let taken = used.iter().map(|r| scalar(r, name)).fold(0, i64::wrapping_add);
        let left = scalar(all, name).wrapping_sub(taken);
        if served.iter().any(|one| one.resource == *name) {
            continue;
        }
        if *amount > 0 && *amount > left {
            return Err(Reason::InsufficientScalar);
        }
    }
    Ok(())
}

pub(crate) fn scalar(of: &Resources, name: &Name) -> i64 {
    of.scalars.iter().find(|(n, _)| n == name).map_or(0, |(_, amount)| *amount)
}
