//! InterPodAffinity: pods that must be in the node's domain, pods that must not be, and pods there
//! that refuse this one. Pods that are being deleted count like others.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Failing;
use super::fact::label;
use super::spread::value_of;
use crate::decision::Facts;
use crate::facts::{Node, Request};
use crate::name::Name;
use crate::pods::{PodAffinity, PodSelectorId};
use crate::reason::{Reason, Status};
use crate::state::State;

/// A request's rules with the pods that there are now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Near {
    /// The domains with a pod that is wanted, by key; none where no affinity is required.
    wanted: Option<FxHashMap<Name, FxHashSet<Name>>>,
    /// No pod that is wanted is in any domain, and this pod would be one: it is the first of its
    /// kind.
    first: bool,
    /// The domains with a pod that this one refuses, by its terms.
    refused: Vec<FxHashSet<Name>>,
    /// The domains with a pod that refuses this one, by key.
    refusing: BTreeMap<Name, FxHashSet<Name>>,
}

impl Near {
    /// Looks where pods are; none where there is nothing to look for (kube-scheduler's PreFilter
    /// skips the plugin).
    pub(crate) fn of(state: &State, request: &Request) -> Option<Self> {
        let mut near = Self::default();
        if let Some(rules) = &request.near {
            if let Some(affinity) = &rules.affinity {
                near.want(state, request, affinity);
            }
            for term in &rules.anti {
                let slots = state.around.meant(term.pods).map(|(slot, _)| slot);
                near.refused.push(slots.filter_map(|s| value_of(state, s, &term.key)).collect());
            }
        }
        for pods in &request.matched {
            for (slot, key) in state.around.refusals(*pods) {
                let Some(value) = value_of(state, *slot, key) else { continue };
                near.refusing.entry(key.clone()).or_default().insert(value);
            }
        }
        let idle = near.wanted.is_none() && near.refused.is_empty() && near.refusing.is_empty();
        (!idle).then_some(near)
    }

    fn want(&mut self, state: &State, request: &Request, affinity: &PodAffinity) {
        let mut domains: FxHashMap<Name, FxHashSet<Name>> = FxHashMap::default();
        for (slot, _) in state.around.meant(affinity.pods) {
            for key in &affinity.keys {
                if let Some(value) = value_of(state, slot, key) {
                    domains.entry(key.clone()).or_default().insert(value);
                }
            }
        }
        self.first = domains.is_empty() && request.matched.contains(&affinity.pods);
        self.wanted = Some(domains);
    }

    /// The first of the three that a node does not keep.
    pub(crate) fn on(&self, request: &Request, node: &Node) -> Result<(), Failing> {
        if let Some(rules) = &request.near {
            if let (Some(affinity), Some(wanted)) = (&rules.affinity, &self.wanted) {
                let there = |key: &Name, value: &Name| {
                    self.first || wanted.get(key).is_some_and(|values| values.contains(value))
                };
                has_all(affinity, node, there)?;
            }
            for (term, values) in rules.anti.iter().zip(&self.refused) {
                let here = label(&node.labels, &term.key).filter(|value| values.contains(*value));
                if let Some(value) = here {
                    let facts = pods(term.pods, &term.key, Some(value));
                    return Err(refusal(Reason::PodAntiAffinityUnmet).with(facts));
                }
            }
        }
        for (key, values) in &self.refusing {
            let Some(value) = label(&node.labels, key) else { continue };
            if values.contains(value) {
                let facts =
                    Facts::Pods { pods: None, key: key.clone(), value: Some(value.clone()) };
                return Err(refusal(Reason::RepelledByPod).with(facts));
            }
        }
        Ok(())
    }
}

/// How many pods of a request find room together at most, going by what they mean to each other: at most
/// one in a domain where they refuse each other, and all in one where they must be together. `rooms` are
/// nodes with how many each takes by itself; what `others` of the group are meant by as well bounds
/// nothing.
pub(crate) fn most(
    state: &State,
    request: &Request,
    rooms: &[(u32, u32)],
    others: &[PodSelectorId],
) -> u64 {
    let is_own = |pods: PodSelectorId| request.matched.contains(&pods);
    let rules = request.near.as_deref();
    let alone = |affinity: &&PodAffinity| {
        is_own(affinity.pods)
            && !others.contains(&affinity.pods)
            && state.around.meant(affinity.pods).next().is_none()
    };
    let together = rules.and_then(|rules| rules.affinity.as_ref()).filter(alone);
    let mut places: BTreeMap<Vec<Name>, Vec<(u32, u32)>> = BTreeMap::new();
    for (slot, room) in rooms {
        let keys = together.map_or(&[][..], |affinity| &affinity.keys);
        let place = keys.iter().map(|key| value_of(state, *slot, key)).collect::<Option<Vec<_>>>();
        if let Some(place) = place {
            places.entry(place).or_default().push((*slot, *room));
        }
    }
    let apart = rules.map_or(&[][..], |rules| &rules.anti).iter().filter(|one| is_own(one.pods));
    let holds = |rooms: &Vec<(u32, u32)>| {
        let all: u64 = rooms.iter().map(|(_, room)| u64::from(*room)).sum();
        let by_term = apart.clone().map(|term| {
            let taken = state.around.meant(term.pods).map(|(slot, _)| slot);
            let taken: FxHashSet<Name> =
                taken.filter_map(|slot| value_of(state, slot, &term.key)).collect();
            let mut domains: FxHashSet<Name> = FxHashSet::default();
            let mut anywhere = 0;
            for (slot, room) in rooms.iter().filter(|(_, room)| *room > 0) {
                match value_of(state, *slot, &term.key) {
                    Some(value) if taken.contains(&value) => {}
                    Some(value) => _ = domains.insert(value),
                    None => anywhere += u64::from(*room),
                }
            }
            anywhere + domains.len() as u64
        });
        by_term.fold(all, u64::min)
    };
    places.values().map(holds).max().unwrap_or(0)
}

/// What stays of the rules where no other pod is on any node: the pods that are wanted may come
/// anywhere, in a domain of each key.
pub(crate) fn when_empty(request: &Request, node: &Node) -> Result<(), Failing> {
    let affinity = request.near.as_ref().and_then(|rules| rules.affinity.as_ref());
    affinity.map_or(Ok(()), |affinity| has_all(affinity, node, |_, _| true))
}

/// Whether the node has every key, and a pod in its domain of each.
fn has_all(
    affinity: &PodAffinity,
    node: &Node,
    there: impl Fn(&Name, &Name) -> bool,
) -> Result<(), Failing> {
    let mut kept = 0;
    let mut missed = None;
    for key in &affinity.keys {
        let value = label(&node.labels, key);
        if value.is_some_and(|value| there(key, value)) {
            kept += 1;
        } else if missed.is_none() {
            missed = Some(pods(affinity.pods, key, value));
        }
    }
    let Some(facts) = missed else { return Ok(()) };
    let status = Status::UnschedulableAndUnresolvable;
    Err(Failing { close: kept, ..Failing::new(Reason::PodAffinityUnmet, status).with(facts) })
}

fn pods(pods: PodSelectorId, key: &Name, value: Option<&Name>) -> Facts {
    Facts::Pods { pods: Some(pods), key: key.clone(), value: value.cloned() }
}

fn refusal(reason: Reason) -> Failing {
    Failing::new(reason, Status::Unschedulable)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nearest is the node that lacks the fewest of the domains.
    #[test]
    fn what_is_kept_of_an_affinity_is_counted() {
        let keys = ["a", "b", "c"].map(Name::new);
        let affinity = PodAffinity { pods: PodSelectorId(0), keys: keys.clone().into() };
        let labels = keys.map(|key| (key, Name::new("x"))).into();
        let node = Node { labels, ..Node::default() };
        let kept = |there: &[&str]| {
            let failing = has_all(&affinity, &node, |key, _| there.contains(&key.as_str()));
            failing.map_or_else(|failing| failing.close, |()| u32::MAX)
        };
        assert_eq!([kept(&[]), kept(&["b"]), kept(&["a", "c"])], [0, 1, 2]);
        assert_eq!(kept(&["a", "b", "c"]), u32::MAX);
    }
}
