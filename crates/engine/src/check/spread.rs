//! PodTopologySpread: no domain has many more of the pods that count than the emptiest has.
//!
//! Which domains there are, and which nodes count, is a question of nodes alone: a [`Grid`] holds it
//! as long as no node changes. How many pods are where is counted for each ask.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Failing;
use super::fact::{any_term, label, tolerated};
use crate::decision::Facts;
use crate::facts::{Effect, Node, NodeRules, Request};
use crate::name::{Name, NodeKey};
use crate::pods::{PodSelectorId, SpreadRule};
use crate::reason::{Reason, Status};
use crate::state::State;

/// The domains of a request's constraints, and the nodes that count for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    domains: Vec<Domains>,
    lacking: Lacking,
}

/// What becomes of a node that lacks the label of a constraint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// It counts for none of them.
    #[default]
    Out,
    /// It is in the domain without a name (kube-scheduler's system defaults).
    Nameless,
}

/// The domains of one constraint.
#[derive(Clone, Debug)]
struct Domains {
    /// By slot: the number of the node's value; none where it lacks the label.
    value_of: Vec<Option<u32>>,
    /// By slot: whether pods on the node count.
    counts: Vec<bool>,
    /// By number: whether any node of the domain counts.
    exists: Vec<bool>,
}

impl Grid {
    /// The grid of some constraints of a pod with these rules about nodes.
    pub(crate) fn new(
        state: &State,
        of_pod: &NodeRules,
        rules: &[SpreadRule],
        lacking: Lacking,
    ) -> Self {
        let all_have = match lacking {
            Lacking::Out => rules,
            Lacking::Nameless => &[],
        };
        let of = |rule| Domains::new(state, of_pod, all_have, rule, lacking);
        Self { domains: rules.iter().map(of).collect(), lacking }
    }
}

impl Domains {
    /// Only nodes count that have the labels of `all_have`.
    fn new(
        state: &State,
        of_pod: &NodeRules,
        all_have: &[SpreadRule],
        rule: &SpreadRule,
        lacking: Lacking,
    ) -> Self {
        let nameless = Name::default();
        let slots = state.nodes.slots() as usize;
        let (mut value_of, mut counts) = (vec![None; slots], vec![false; slots]);
        let mut exists = Vec::new();
        let mut numbers: FxHashMap<&Name, u32> = FxHashMap::default();
        for (slot, key, row) in state.nodes.iter() {
            let Some(node) = &row.fact else { continue };
            let value = label(&node.labels, &rule.key);
            let value = match lacking {
                Lacking::Out => value,
                Lacking::Nameless => value.or(Some(&nameless)),
            };
            let Some(value) = value else { continue };
            let number = *numbers.entry(value).or_insert_with(|| {
                exists.push(false);
                exists.len() as u32 - 1
            });
            value_of[slot as usize] = Some(number);
            if counts_on(of_pod, all_have, rule, key, node) {
                counts[slot as usize] = true;
                exists[number as usize] = true;
            }
        }
        Self { value_of, counts, exists }
    }

    fn value(&self, slot: u32) -> Option<u32> {
        self.value_of.get(slot as usize).copied().flatten()
    }
}

/// Whether a node counts for a constraint: it has the labels of all of them, and the pod's rules
/// about nodes let it in as far as the constraint heeds them.
fn counts_on(
    of_pod: &NodeRules,
    all_have: &[SpreadRule],
    rule: &SpreadRule,
    key: &NodeKey,
    node: &Node,
) -> bool {
    if !all_have.iter().all(|rule| label(&node.labels, &rule.key).is_some()) {
        return false;
    }
    let lets_in = || {
        of_pod.selector.iter().all(|(k, v)| label(&node.labels, k) == Some(v))
            && of_pod.required.as_ref().is_none_or(|terms| any_term(terms, key, &node.labels))
    };
    let bears = || {
        let mut hard = node.taints.iter().filter(|t| t.effect != Effect::PreferNoSchedule);
        hard.all(|taint| tolerated(&of_pod.tolerations, taint))
    };
    (!rule.honors_affinity || lets_in()) && (!rule.honors_taints || bears())
}

/// A request's constraints with the pods that there are now.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    grid: Arc<Grid>,
    /// For each constraint, by number of the domain.
    pods: Vec<Vec<u32>>,
    /// For each constraint, the pods of the emptiest domain; none where there are too few domains.
    least: Vec<Option<u32>>,
}

impl Spread {
    /// Counts the pods; none where there is no constraint.
    pub(crate) fn of(state: &State, rules: &[SpreadRule], grid: &Arc<Grid>) -> Option<Self> {
        if rules.is_empty() {
            return None;
        }
        let mut spread = Self { grid: Arc::clone(grid), pods: Vec::new(), least: Vec::new() };
        for (rule, domains) in rules.iter().zip(&grid.domains) {
            let mut pods = vec![0_u32; domains.exists.len()];
            for (slot, count) in rule.pods.iter().flat_map(|id| state.around.meant(*id)) {
                let counts = domains.counts.get(slot as usize).copied().unwrap_or(false);
                if let Some(value) = domains.value(slot).filter(|_| counts) {
                    pods[value as usize] += count.staying;
                }
            }
            let there = || pods.iter().zip(&domains.exists).filter(|(_, exists)| **exists);
            let few = i64::from(rule.min_domains) > there().count() as i64;
            let least = there().map(|(pods, _)| *pods).min().filter(|_| !few);
            spread.least.push(least);
            spread.pods.push(pods);
        }
        Some(spread)
    }

    /// The first constraint that the node does not keep.
    pub(crate) fn on(&self, state: &State, rules: &[SpreadRule], slot: u32) -> Result<(), Failing> {
        for (at, (rule, domains)) in rules.iter().zip(&self.grid.domains).enumerate() {
            let least = self.least[at];
            let (value, here) = match domains.value(slot) {
                Some(value) => (Some(value), self.pods[at][value as usize]),
                None => (None, 0),
            };
            let skew = i64::from(here) + i64::from(rule.own) - i64::from(least.unwrap_or(0));
            let (reason, status) = match value {
                None => (Reason::SpreadKeyMissing, Status::UnschedulableAndUnresolvable),
                Some(_) if skew > i64::from(rule.max_skew) => {
                    (Reason::SpreadUnmet, Status::Unschedulable)
                }
                Some(_) => continue,
            };
            let close = closeness(skew, rule.max_skew);
            let (key, max_skew) = (rule.key.clone(), rule.max_skew);
            let value = value.and_then(|_| value_of(state, slot, &rule.key));
            let facts = Facts::Spread { key, value, here, least, max_skew };
            return Err(Failing { close, ..Failing::new(reason, status).with(facts) });
        }
        Ok(())
    }
}

impl Spread {
    /// How many pods of these constraints find room together at most, on nodes of which each takes so many
    /// by itself: no domain gets more than the skew beyond what the emptiest can come to have. What
    /// `others` of the group are meant by as well bounds nothing.
    pub(crate) fn most(
        &self,
        rules: &[SpreadRule],
        rooms: &[(u32, u32)],
        others: &[PodSelectorId],
    ) -> u64 {
        let mut most = u64::MAX;
        for (at, (rule, domains)) in rules.iter().zip(&self.grid.domains).enumerate() {
            let Some(of) = rule.pods.filter(|_| rule.own) else { continue };
            if others.contains(&of) || self.grid.lacking != Lacking::Out {
                continue;
            }
            let (here, mut room) = (&self.pods[at], vec![0_u64; domains.exists.len()]);
            // Pods on nodes that do not count are not held against the skew.
            let mut aside = 0_u64;
            for (slot, count) in rooms {
                let Some(value) = domains.value(*slot) else { continue };
                match domains.counts.get(*slot as usize) {
                    Some(true) => room[value as usize] += u64::from(*count),
                    Some(false) | None => aside += u64::from(*count),
                }
            }
            let full = |at: usize| u64::from(here[at]) + room[at];
            let there = (0..here.len()).filter(|at| domains.exists[*at]);
            let emptiest = self.least[at].and_then(|_| there.map(full).min()).unwrap_or(0);
            let highest = emptiest + u64::try_from(rule.max_skew).unwrap_or(0);
            let each = room.iter().zip(here);
            let each = each.map(|(r, here)| highest.saturating_sub(u64::from(*here)).min(*r));
            most = most.min(aside + each.sum::<u64>());
        }
        most
    }
}

/// How near a node is that would be skewed so: each pod above `max_skew` is a step away.
fn closeness(skew: i64, max_skew: i32) -> u32 {
    const FARTHEST: u32 = 1000;
    let over = skew.saturating_sub(i64::from(max_skew));
    FARTHEST - u32::try_from(over.max(0)).unwrap_or(FARTHEST).min(FARTHEST)
}

/// The label that each node has a value of its own of.
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";

impl Spread {
    /// kube-scheduler's scores of these nodes, which are all that fit. Nodes without one of the labels
    /// have 0, but by the system's defaults, of which each counts where its label is.
    pub(crate) fn scores(&self, state: &State, rules: &[SpreadRule], slots: &[u32]) -> Vec<i64> {
        let counts =
            |slot: u32| self.grid.domains.iter().all(|domains| domains.value(slot).is_some());
        let scored: Vec<u32> = slots.iter().copied().filter(|slot| counts(*slot)).collect();
        let mut raw = vec![0.0_f64; scored.len()];
        for (at, (rule, domains)) in rules.iter().zip(&self.grid.domains).enumerate() {
            let by_node = rule.key.as_str() == HOSTNAME;
            let mut values: Vec<_> = scored.iter().map(|slot| domains.value(*slot)).collect();
            values.sort_unstable();
            values.dedup();
            let size = if by_node { scored.len() } else { values.len() };
            let weight = ((size + 2) as f64).ln();
            let on = |slot| rule.pods.map_or(0, |pods| state.around.meant_on(pods, slot).staying);
            for (score, slot) in raw.iter_mut().zip(&scored) {
                if self.grid.lacking == Lacking::Nameless
                    && value_of(state, *slot, &rule.key).is_none()
                {
                    continue;
                }
                let pods = match domains.value(*slot) {
                    Some(_) if by_node => on(*slot),
                    Some(value) => self.pods[at][value as usize],
                    None => 0,
                };
                *score += f64::from(pods) * weight + (f64::from(rule.max_skew) - 1.0);
            }
        }
        let raw: Vec<i64> = raw.into_iter().map(|score| score.round() as i64).collect();
        let most = raw.iter().copied().max().unwrap_or(0);
        let least = raw.iter().copied().min().unwrap_or(0);
        let score = |raw: i64| if most == 0 { 100 } else { 100 * (most + least - raw) / most };
        let mut scores = raw.into_iter().map(score);
        let each = |slot: &u32| if counts(*slot) { scores.next().unwrap_or(0) } else { 0 };
        slots.iter().map(each).collect()
    }

    /// By how many pods a node would overdraw the constraints, where they are only wishes.
    pub(crate) fn overdrawn(&self, rules: &[SpreadRule], slot: u32) -> u32 {
        let mut sum = 0_u32;
        for (at, (rule, domains)) in rules.iter().zip(&self.grid.domains).enumerate() {
            let over = match domains.value(slot) {
                Some(value) => {
                    let here = i64::from(self.pods[at][value as usize]) + i64::from(rule.own);
                    here - i64::from(self.least[at].unwrap_or(0)) - i64::from(rule.max_skew)
                }
                None => self.pods[at].iter().map(|pods| i64::from(*pods)).sum::<i64>() + 1,
            };
            sum = sum.saturating_add(u32::try_from(over.max(0)).unwrap_or(u32::MAX));
        }
        sum
    }
}

/// What stays of the constraints where no other pod is on any node: the labels.
pub(crate) fn when_empty(request: &Request, node: &Node) -> Result<(), Failing> {
    for rule in request.near.iter().flat_map(|near| &near.spread) {
        if label(&node.labels, &rule.key).is_some() {
            continue;
        }
        let (reason, status) = (Reason::SpreadKeyMissing, Status::UnschedulableAndUnresolvable);
        let (key, max_skew) = (rule.key.clone(), rule.max_skew);
        let facts = Facts::Spread { key, value: None, here: 0, least: Some(0), max_skew };
        return Err(Failing::new(reason, status).with(facts));
    }
    Ok(())
}

/// A node's value of a label.
pub(super) fn value_of(state: &State, slot: u32, key: &str) -> Option<Name> {
    label(&state.nodes.at(slot).fact.as_ref()?.labels, key).cloned()
}

#[cfg(test)]
mod tests {
    use super::closeness;

    /// What counts is how much is above the own maximum, whichever constraint it is.
    #[test]
    fn a_node_is_near_by_the_pods_above_max_skew() {
        assert!(closeness(3, 2) > closeness(3, 1));
        assert!(closeness(3, 1) > closeness(5, 2));
        assert_eq!(closeness(0, 1), 1000);
        assert_eq!(closeness(i64::MAX, 1), 0);
    }
}
