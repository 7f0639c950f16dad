//! What a node costs that is no device: soft preferences, and extended resources.

use crate::audit::rules::{matches, scalar};
use crate::*;

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
