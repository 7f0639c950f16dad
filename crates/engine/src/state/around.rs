//! What pods on nodes mean to other pods: how many of those that a rule means are on which node, and
//! which pods they refuse to have near. It comes and goes with the pod's charge.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::facts::Request;
use crate::name::{Name, NodeKey, PodKey};
use crate::pods::{HostPort, PodSelectorId};

/// Pods of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodCount {
    /// All.
    pub(crate) all: u32,
    /// Those that are not being deleted.
    pub(crate) staying: u32,
}

/// The pods on nodes, as far as rules are about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around {
    /// By selector and node, the pods that it means.
    meant: FxHashMap<PodSelectorId, BTreeMap<u32, PodCount>>,
    /// By selector, then node and label, the pods that refuse to have those near that it means.
    refusals: FxHashMap<PodSelectorId, BTreeMap<(u32, Name), u32>>,
    /// By selector, then node, label and weight, the pods that wish to have those near that it means,
    /// or not to.
    wishes: FxHashMap<PodSelectorId, BTreeMap<(u32, Name, i32), u32>>,
}

impl Around {
    /// The nodes with pods that a selector means, in no order that may be seen.
    pub(crate) fn meant(&self, pods: PodSelectorId) -> impl Iterator<Item = (u32, PodCount)> {
        self.meant.get(&pods).into_iter().flatten().map(|(slot, count)| (*slot, *count))
    }

    /// The pods of one node that a selector means.
    pub(crate) fn meant_on(&self, pods: PodSelectorId, slot: u32) -> PodCount {
        self.meant.get(&pods).and_then(|nodes| nodes.get(&slot)).copied().unwrap_or_default()
    }

    /// Node and label of the pods that refuse to have those near that a selector means.
    pub(crate) fn refusals(&self, pods: PodSelectorId) -> impl Iterator<Item = &(u32, Name)> {
        self.refusals.get(&pods).into_iter().flat_map(BTreeMap::keys)
    }

    /// Node, label and weight of the pods that wish to have those near that a selector means, and how
    /// many they are.
    pub(crate) fn wishes(
        &self,
        pods: PodSelectorId,
    ) -> impl Iterator<Item = (&(u32, Name, i32), u32)> {
        let all = self.wishes.get(&pods).into_iter().flatten();
        all.map(|(wish, count)| (wish, *count))
    }

    /// Whether nothing is on any node.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.meant.is_empty() && self.refusals.is_empty() && self.wishes.is_empty()
    }

    /// Adds a pod of this request to a node (`sign` 1), or takes it back.
    fn add(&mut self, node: u32, request: &Request, staying: bool, sign: i64) {
        for pods in &request.matched {
            let nodes = self.meant.entry(*pods).or_default();
            let count = nodes.entry(node).or_default();
            step(&mut count.all, sign);
            if staying {
                step(&mut count.staying, sign);
            }
            if count.all == 0 {
                nodes.remove(&node);
            }
            if nodes.is_empty() {
                self.meant.remove(pods);
            }
        }
        let Some(rules) = &request.near else { return };
        for term in &rules.anti {
            note(&mut self.refusals, term.pods, (node, term.key.clone()), sign);
        }
        for wish in &rules.wishes {
            note(&mut self.wishes, wish.pods, (node, wish.key.clone(), wish.weight), sign);
        }
        for term in &rules.welcomes {
            note(&mut self.wishes, term.pods, (node, term.key.clone(), 1), sign);
        }
    }
}

/// Counts one more, or one fewer.
fn note<K: Ord + Clone>(
    all: &mut FxHashMap<PodSelectorId, BTreeMap<K, u32>>,
    pods: PodSelectorId,
    key: K,
    sign: i64,
) {
    let of = all.entry(pods).or_default();
    let count = of.entry(key.clone()).or_default();
    step(count, sign);
    if *count == 0 {
        of.remove(&key);
    }
    if of.is_empty() {
        all.remove(&pods);
    }
}

fn step(count: &mut u32, sign: i64) {
    *count = if sign > 0 { count.saturating_add(1) } else { count.saturating_sub(1) };
}

/// Adds ports to those of a node, or takes them back.
fn add_ports(used: &mut Vec<(HostPort, u32)>, ports: &[HostPort], sign: i64) {
    for port in ports {
        match used.iter().position(|(known, _)| known == port) {
            Some(at) => {
                step(&mut used[at].1, sign);
                if used[at].1 == 0 {
                    used.swap_remove(at);
                }
            }
            None => used.push((port.clone(), 1)),
        }
    }
}

impl super::State {
    /// What a pod of this request on a node means to others, added (`sign` 1) or taken back.
    pub(super) fn place_among(&mut self, node: u32, request: u32, staying: bool, sign: i64) {
        let Some(request) = self.requests.at(request).fact.clone() else { return };
        if !request.ports.is_empty() {
            add_ports(&mut self.nodes.at_mut(node).ports, &request.ports, sign);
        }
        if !request.matched.is_empty() || request.near.is_some() {
            self.around.add(node, &request, staying, sign);
        }
    }

    /// Node and request of each pod that waits with a node promised to it, if it is of such a
    /// priority or a higher one, is not `but`, and has no seat yet. By node.
    pub(crate) fn promised(&self, priority: i32, but: Option<&PodKey>) -> BTreeMap<u32, Vec<u32>> {
        let mut by_node: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for slot in &self.nominated {
            let (row, key) = (self.members.at(*slot), self.members.key(*slot));
            let Some(fact) = row.fact.as_ref().filter(|_| row.seats == 0 && but != Some(key))
            else {
                continue;
            };
            let group = self.groups.at(row.group);
            let of = group.fact.as_ref().filter(|group| group.priority >= priority);
            let request = group.requests.get(usize::from(fact.role)).filter(|_| of.is_some());
            let node = fact.nominated.as_ref().and_then(|node| self.node_with_fact(node));
            if let (Some(node), Some(request)) = (node, request) {
                by_node.entry(node).or_default().push(*request);
            }
        }
        by_node
    }

    /// The node that is promised to a pod that waits.
    pub(crate) fn promised_to(&self, pod: &PodKey) -> Option<u32> {
        let fact = self.members.find(pod)?.fact.as_ref()?;
        self.node_with_fact(fact.nominated.as_ref()?)
    }

    fn node_with_fact(&self, key: &NodeKey) -> Option<u32> {
        self.nodes.slot(key).filter(|slot| self.nodes.at(*slot).fact.is_some())
    }
}
