//! What a pod would rather have around it, and what pods on nodes would rather have of it: preferred
//! affinity and anti-affinity, and spread that is only wished for. It refuses nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::fact::label;
use super::spread::{Grid, Spread, value_of};
use crate::facts::{Node, Request};
use crate::name::Name;
use crate::pods::{PodRules, PodSelectorId};
use crate::state::State;

/// By value of a label, how many pods there are.
type Counts = FxHashMap<Name, u32>;

/// A request's wishes, and those about it, with the pods that there are now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Of each of its own, where the pods are that it means.
    own: Vec<Counts>,
    /// By label, weight and the selector that means this pod, where the pods are that wish so.
    others: BTreeMap<(Name, i32, PodSelectorId), Counts>,
    /// Spread that is wished for.
    spread: Option<Spread>,
}

impl Wishes {
    /// Looks where pods are; none where nobody wishes anything.
    pub(crate) fn of(state: &State, request: &Request, grid: &Arc<Grid>) -> Option<Self> {
        let mut wishes = Self::default();
        if let Some(rules) = &request.near {
            wishes.own = rules.wishes.iter().map(|w| counts(state, w.pods, &w.key)).collect();
            wishes.spread = Spread::of(state, &rules.spread_wishes, grid);
        }
        for pods in &request.matched {
            for ((slot, key, weight), count) in state.around.wishes(*pods) {
                let Some(value) = value_of(state, *slot, key) else { continue };
                let of = wishes.others.entry((key.clone(), *weight, *pods)).or_default();
                *of.entry(value).or_default() += count;
            }
        }
        let idle = wishes.own.is_empty() && wishes.others.is_empty() && wishes.spread.is_none();
        (!idle).then_some(wishes)
    }

    /// The sum of what is not met on a node.
    pub(crate) fn unmet(&self, rules: Option<&PodRules>, node: &Node, slot: u32) -> u32 {
        let of_spread = self.spread.as_ref().zip(rules);
        let overdrawn =
            of_spread.map_or(0, |(spread, rules)| spread.overdrawn(&rules.spread_wishes, slot));
        let met = |key: &Name, weight: i32, counts: &Counts| {
            let near = label(&node.labels, key).is_some_and(|value| counts.contains_key(value));
            near == (weight > 0)
        };
        let unmet = self.each(rules).filter(|(key, weight, counts)| !met(key, *weight, counts));
        let weights = unmet.map(|(_, weight, _)| weight.unsigned_abs());
        weights.fold(overdrawn, u32::saturating_add)
    }

    /// The sum of the weights of all pods that these wishes bring together on a node, those apart taken
    /// off (kube-scheduler's raw score).
    pub(crate) fn weight(&self, rules: Option<&PodRules>, node: &Node) -> i64 {
        let of = |(key, weight, counts): (&Name, i32, &Counts)| {
            let pods = label(&node.labels, key).and_then(|value| counts.get(value)).copied();
            i64::from(weight) * i64::from(pods.unwrap_or(0))
        };
        self.each(rules).map(of).sum()
    }

    /// Spread that is wished for.
    pub(crate) fn spread(&self) -> Option<&Spread> {
        self.spread.as_ref()
    }

    fn each<'s>(
        &'s self,
        rules: Option<&'s PodRules>,
    ) -> impl Iterator<Item = (&'s Name, i32, &'s Counts)> {
        let own = rules.into_iter().flat_map(|rules| &rules.wishes).zip(&self.own);
        let own = own.map(|(wish, counts)| (&wish.key, wish.weight, counts));
        let others = self.others.iter().map(|((key, weight, _), counts)| (key, *weight, counts));
        own.chain(others)
    }
}

/// By value of a label, the pods that a selector means.
fn counts(state: &State, pods: PodSelectorId, key: &str) -> Counts {
    let mut counts = Counts::default();
    for (slot, count) in state.around.meant(pods) {
        if let Some(value) = value_of(state, slot, key) {
            *counts.entry(value).or_default() += count.all;
        }
    }
    counts
}
