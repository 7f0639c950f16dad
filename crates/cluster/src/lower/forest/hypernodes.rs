//! The tree of HyperNodes (Volcano): which of them, tier by tier, each node is in.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cel::Pattern;
use phalanx_engine::{Domains, Name, Scoped};
use phalanx_objects::core::{LabelSelector, LabelSelectorOperator};
use phalanx_objects::scheduling::{HyperNode, HyperNodeSelector, Scheduling, SchedulingKind};
use rustc_hash::FxHashMap;

use super::super::record::{NodeRecord, SchedulingRecord};
use super::super::slice::Note;
use super::super::workload::LevelName;
use crate::finding::Severity;

/// The HyperNodes of each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lower) struct Places {
    /// Tiers with their names, the widest first.
    pub(in crate::lower) levels: Box<[(i32, Name)]>,
    pub(super) of: BTreeMap<Name, Domains>,
    /// Nodes that are in two HyperNodes of one tier, with what to say of it.
    pub(super) twice: Vec<(Name, String)>,
}

/// The HyperNodes by name.
type All<'a> = BTreeMap<&'a Name, &'a HyperNode>;

impl Places {
    /// Those that objects say; none where there are no HyperNodes.
    pub(super) fn of(
        objects: &BTreeMap<(SchedulingKind, Scoped), SchedulingRecord>,
        nodes: &FxHashMap<Name, NodeRecord>,
    ) -> Option<Self> {
        let mut all = All::new();
        for ((_, scoped), record) in objects {
            if let Scheduling::HyperNode(of) = &*record.object {
                all.insert(&scoped.name, of);
            }
        }
        if all.is_empty() {
            return None;
        }
        let mut tiers: BTreeMap<i32, Name> = BTreeMap::new();
        for of in all.values() {
            let tier = of.spec.tier;
            let name = match of.spec.tier_name.as_str() {
                "" => format!("tier-{tier}"),
                name => name.to_owned(),
            };
            tiers.entry(tier).or_insert_with(|| Name::new(&name));
        }
        let levels: Box<[(i32, Name)]> = tiers.into_iter().rev().collect();
        let nodes: BTreeMap<&Name, &NodeRecord> = nodes.iter().collect();
        let mut places = Self { levels, of: BTreeMap::new(), twice: Vec::new() };
        let own = all.iter().map(|(name, of)| (*name, Own::of(of, &all, &nodes)));
        let own: BTreeMap<&Name, Own<'_>> = own.collect();
        for (name, of) in &all {
            for node in inside_of(name, &own) {
                places.put(node, of.spec.tier, name);
            }
        }
        places.widen();
        Some(places)
    }

    /// Puts a node into a HyperNode. HyperNodes come in order of name: of two the first counts.
    fn put(&mut self, node: &Name, tier: i32, name: &Name) {
        let Some(at) = self.levels.iter().position(|(of, _)| *of == tier) else { return };
        let empty = || self.levels.iter().map(|_| None).collect();
        let domains = self.of.entry(node.clone()).or_insert_with(empty);
        match domains.get_mut(at) {
            Some(Some(first)) => {
                let message = format!(
                    "Two sources disagree about the place of the node: HyperNodes {first} and {name} \
                     of tier {tier} both have it. {first}, the first by name, is used."
                );
                self.twice.push((node.clone(), message));
            }
            Some(place) => *place = Some(name.clone()),
            None => {}
        }
    }

    /// Of a tier of which a node is in no HyperNode it is in that of the next lower one: a group that may
    /// be in a HyperNode of at most so high a tier may be there.
    fn widen(&mut self) {
        for domains in self.of.values_mut() {
            let mut lower: Option<Name> = None;
            for domain in domains.iter_mut().rev() {
                match domain {
                    Some(name) => lower = Some(name.clone()),
                    None => *domain = lower.clone(),
                }
            }
        }
    }

    /// The level of a tier: of a number the widest that is allowed.
    pub(super) fn level(&self, level: &LevelName) -> Option<u16> {
        let at = match level {
            LevelName::Tier(tier) => self.levels.iter().position(|(of, _)| of <= tier),
            LevelName::TierName(name) => self.levels.iter().position(|(_, of)| of == name),
            LevelName::Label(_) | LevelName::OfKai(..) => None,
        };
        u16::try_from(at?).ok()
    }
}

/// What the members of a HyperNode mean: nodes, and HyperNodes.
struct Own<'a> {
    nodes: BTreeSet<&'a Name>,
    below: BTreeSet<&'a Name>,
}

impl<'a> Own<'a> {
    fn of(of: &HyperNode, all: &All<'a>, nodes: &BTreeMap<&'a Name, &'a NodeRecord>) -> Self {
        let mut own = Self { nodes: BTreeSet::new(), below: BTreeSet::new() };
        for member in &of.spec.members {
            if member.r#type == "HyperNode" {
                let label = |child: &&HyperNode, key: &str| child.metadata.labels.get(key).cloned();
                select(&member.selector, all, &label, &mut own.below);
            } else {
                let label = |node: &&NodeRecord, key: &str| {
                    let mut labels = node.node.labels.iter();
                    labels.find(|(of, _)| of.as_str() == key).map(|(_, v)| v.to_string())
                };
                select(&member.selector, nodes, &label, &mut own.nodes);
            }
        }
        own
    }
}

/// The nodes of a HyperNode, those of the HyperNodes in it included, each of which is looked at once.
fn inside_of<'a>(name: &'a Name, own: &BTreeMap<&'a Name, Own<'a>>) -> BTreeSet<&'a Name> {
    let mut inside = BTreeSet::new();
    let mut seen = BTreeSet::from([name]);
    let mut open = vec![name];
    while let Some(of) = open.pop().and_then(|name| own.get(name)) {
        inside.extend(of.nodes.iter().copied());
        open.extend(of.below.iter().copied().filter(|name| seen.insert(*name)));
    }
    inside
}

/// Adds those that a selector means.
fn select<'a, T>(
    of: &HyperNodeSelector,
    all: &BTreeMap<&'a Name, T>,
    label: &dyn Fn(&T, &str) -> Option<String>,
    chosen: &mut BTreeSet<&'a Name>,
) {
    if let Some(exact) = &of.exact_match {
        chosen.extend(all.get_key_value(&Name::new(&exact.name)).map(|(name, _)| *name));
    }
    if let Some(regex) = &of.regex_match
        && let Ok(pattern) = Pattern::new(&regex.pattern)
    {
        chosen.extend(all.keys().filter(|name| pattern.matches(name)));
    }
    if let Some(selector) = &of.label_match {
        let is = |(_, one): &(&&Name, &T)| matches(selector, &|key| label(one, key));
        chosen.extend(all.iter().filter(is).map(|(name, _)| *name));
    }
}

/// Looks up a label.
type Labels<'l> = dyn Fn(&str) -> Option<String> + 'l;

fn matches(selector: &LabelSelector, labels: &Labels<'_>) -> bool {
    let all = selector.match_labels.iter().all(|(key, value)| labels(key).as_ref() == Some(value));
    all && selector.match_expressions.iter().all(|of| {
        let value = labels(&of.key);
        let among = value.as_ref().is_some_and(|value| of.values.contains(value));
        match &of.operator {
            LabelSelectorOperator::In => among,
            LabelSelectorOperator::NotIn => !among,
            LabelSelectorOperator::Exists => value.is_some(),
            LabelSelectorOperator::DoesNotExist => value.is_none(),
            LabelSelectorOperator::Unset | LabelSelectorOperator::Other(_) => false,
        }
    })
}

/// What is wrong with a HyperNode itself.
pub(super) fn notes(of: &HyperNode) -> Vec<Note> {
    let mut notes = Vec::new();
    for (at, member) in of.spec.members.iter().enumerate() {
        let Some(regex) = &member.selector.regex_match else { continue };
        if let Err(error) = Pattern::new(&regex.pattern) {
            let path = format!("spec.members[{at}].selector.regexMatch.pattern");
            let message =
                format!("The pattern does not compile, so that nothing matches: {error}.");
            notes.push((Severity::Error, path, message));
        }
    }
    notes
}
