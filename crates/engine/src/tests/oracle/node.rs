//! What a node costs that is no device: soft preferences, and extended resources.

use crate::audit::pods::Scene;
use crate::audit::rules::{matches, scalar};
use crate::*;

use std::collections::BTreeMap;

/// Weights of preferred terms that don't match, and 1 for each soft taint not tolerated.
pub(super) fn soft(rules: &NodeRules, key: &NodeKey, node: &Node) -> u32 {
    let mut sum = 0;
    for (weight, term) in &rules.preferred {
        // An empty preferred term is no preference (core/v1 PreferredSchedulingTerm).
        if !term.is_empty() && !matches(term, key, node) {
            sum += *weight as u32;
        }
    }
    for taint in node.taints.iter().filter(|t| t.effect == Effect::PreferNoSchedule) {
        sum += u32::from(!rules.tolerations.iter().any(|t| t.tolerates(taint)));
    }
    sum
}

/// Wishes about pods, of the pod and about it, that a node does not meet.
pub(super) fn wishes(scene: &Scene<'_>, asked: &Request, on: &NodeKey) -> u32 {
    let here = |node: &NodeKey, key: &Name| {
        scene.value(on, key).is_some() && scene.value(on, key) == scene.value(node, key)
    };
    let mut sum = 0;
    let mut judge = |weight: i32, near: bool| {
        if near != (weight > 0) {
            sum += weight.unsigned_abs();
        }
    };
    let own = asked.near.as_deref().cloned().unwrap_or_default();
    for wish in &own.wishes {
        let mut meant = scene.pods.iter().filter(|pod| pod.is_meant(wish.pods));
        judge(wish.weight, meant.any(|pod| here(&pod.node, &wish.key)));
    }
    // Pods that wish the same count once, wherever they are on nodes with the label.
    let mut others: Vec<(PodSelectorId, Name, i32)> = Vec::new();
    let of = |pod: &crate::audit::pods::Seated| {
        let rules = pod.request.near.as_deref().cloned().unwrap_or_default();
        let wishes = rules.wishes.iter().map(|w| (w.pods, w.key.clone(), w.weight));
        let welcomes = rules.welcomes.iter().map(|t| (t.pods, t.key.clone(), 1));
        wishes.chain(welcomes).collect::<Vec<_>>()
    };
    for pod in scene.pods {
        others.extend(of(pod).into_iter().filter(|(pods, key, _)| {
            asked.matched.contains(pods) && scene.value(&pod.node, key).is_some()
        }));
    }
    others.sort();
    others.dedup();
    for wish in others {
        let mut wishing = scene.pods.iter().filter(|pod| of(pod).contains(&wish));
        judge(wish.2, wishing.any(|pod| here(&pod.node, &wish.1)));
    }
    for rule in &own.spread_wishes {
        sum += overdrawn(scene, asked, &own.spread_wishes, rule, on);
    }
    sum
}

/// By how many pods a node would overdraw a constraint that is a wish.
fn overdrawn(
    scene: &Scene<'_>,
    asked: &Request,
    rules: &[SpreadRule],
    rule: &SpreadRule,
    on: &NodeKey,
) -> u32 {
    let mut pods: BTreeMap<&Name, i64> = BTreeMap::new();
    for node in scene.nodes.keys().filter(|n| scene.counts(&asked.node, rules, rule, n)) {
        pods.insert(scene.value(node, &rule.key).unwrap(), 0);
    }
    for pod in scene.pods.iter().filter(|pod| pod.staying) {
        if rule.pods.is_some_and(|pods| pod.is_meant(pods))
            && scene.counts(&asked.node, rules, rule, &pod.node)
        {
            *pods.get_mut(scene.value(&pod.node, &rule.key).unwrap()).unwrap() += 1;
        }
    }
    let Some(value) = scene.value(on, &rule.key) else {
        return pods.values().sum::<i64>() as u32 + 1;
    };
    let few = (pods.len() as i64) < i64::from(rule.min_domains);
    let least = if few { 0 } else { *pods.values().min().unwrap() };
    let here = pods.get(value).copied().unwrap_or(0) + i64::from(rule.own);
    (here - least - i64::from(rule.max_skew)).max(0) as u32
}

/// Extended resources, which are scarce as devices are.
pub(super) struct Scarce {
    pub(super) used: bool,
    pub(super) taking: bool,
    /// What stays free once this is taken.
    pub(super) left: u32,
}

impl Scarce {
    pub(super) fn new(asked: &Resources, node: &Node, used: &[&Resources]) -> Self {
        let extended = |name: &str| name.contains('/') && !name.contains("kubernetes.io/");
        let mut scarce = Self { used: false, taking: false, left: 0 };
        scarce.taking = asked.scalars.iter().any(|(n, amount)| extended(n) && *amount > 0);
        for resources in used {
            scarce.used |= resources.scalars.iter().any(|(n, amount)| extended(n) && *amount > 0);
        }
        for (name, all) in node.allocatable.scalars.iter().filter(|(n, _)| extended(n)) {
            let taken: i64 = used.iter().map(|r| scalar(r, name)).sum();
            scarce.left += (all - taken - scalar(asked, name)).max(0) as u32;
        }
        scarce
    }
}
