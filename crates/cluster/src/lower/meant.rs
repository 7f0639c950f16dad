//! Which pods the rules of others mean: label selectors with their namespaces as numbers, and for each
//! set of labels that pods have the numbers by which these pods are meant.
//!
//! Only selectors of pods that the engine sees are live, and only live ones are asked. What they say
//! is worked out once for all pods of a namespace that have the same labels.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{
    GroupKey, HostPort, Name, NodeKey, PodKey, PodRules, PodSelectorId, Shared, SpreadRule,
};
use phalanx_objects::core::{LabelSelector, LabelSelectorOperator, LabelSelectorRequirement};
use rustc_hash::{FxHashMap, FxHashSet};

use super::intern::{Names, Numbers};
use super::record::NamespaceRecord;
use super::rules::{is_label_value, is_qualified_name};
use super::workload::is_number;
use super::{Dependent, Lowering};
use crate::finding::{Finding, Severity};

/// Labels, sorted by key.
pub(crate) type Labels = Box<[(Name, Name)]>;

/// What selectors can tell about a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PodLabels {
    pub(crate) namespace: Name,
    pub(crate) labels: Labels,
}

impl PodLabels {
    /// The value of a label.
    pub(crate) fn value(&self, key: &str) -> Option<&Name> {
        value_of(&self.labels, key)
    }
}

fn value_of<'a>(labels: &'a [(Name, Name)], key: &str) -> Option<&'a Name> {
    labels.iter().find(|(label, _)| label.as_str() == key).map(|(_, value)| value)
}

/// A requirement on labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Requirement {
    In(Name, Box<[Name]>),
    NotIn(Name, Box<[Name]>),
    Exists(Name),
    DoesNotExist(Name),
}

impl Requirement {
    fn key(&self) -> &Name {
        let (Self::In(key, _) | Self::NotIn(key, _) | Self::Exists(key) | Self::DoesNotExist(key)) =
            self;
        key
    }

    fn holds(&self, labels: &[(Name, Name)]) -> bool {
        match self {
            Self::In(key, values) => value_of(labels, key).is_some_and(|v| values.contains(v)),
            Self::NotIn(key, values) => value_of(labels, key).is_none_or(|v| !values.contains(v)),
            Self::Exists(key) => value_of(labels, key).is_some(),
            Self::DoesNotExist(key) => value_of(labels, key).is_none(),
        }
    }
}

/// Requirements that must all hold; none matches everything. Sorted, each once.
pub(crate) type LabelRule = Box<[Requirement]>;

pub(crate) fn holds(rule: &LabelRule, labels: &[(Name, Name)]) -> bool {
    rule.iter().all(|requirement| requirement.holds(labels))
}

/// Some pods of some namespaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PodSet {
    /// Namespaces by name, sorted.
    pub(crate) namespaces: Box<[Name]>,
    /// And namespaces by their labels.
    pub(crate) namespace_rule: Option<LabelRule>,
    /// A namespace that is not among the objects is taken as one without labels. So it is for the
    /// rules of pods that are there; those of a pod that comes pass it over, but for `{}`.
    pub(crate) unlisted: bool,
    /// Which of their pods; none is no pod.
    pub(crate) pods: Option<LabelRule>,
}

impl PodSet {
    /// The labels that it asks and that number pods.
    fn numbers(&self) -> impl Iterator<Item = &Name> {
        let keys = self.pods.iter().flatten().map(Requirement::key);
        keys.filter(|key| is_number(key.as_str()))
    }

    fn means(&self, pod: &PodLabels, namespace: Option<&NamespaceRecord>) -> bool {
        let by_labels = |rule: &LabelRule| match namespace {
            Some(record) => holds(rule, &record.labels),
            None => rule.is_empty() || (self.unlisted && holds(rule, &[])),
        };
        (self.namespaces.contains(&pod.namespace)
            || self.namespace_rule.as_ref().is_some_and(by_labels))
            && self.pods.as_ref().is_some_and(|rule| holds(rule, &pod.labels))
    }
}

/// The pods that are in all of some sets.
pub(crate) type PodSelector = Box<[PodSet]>;

/// The numbers of selectors.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodSelectors(Numbers<PodSelector>);

impl PodSelectors {
    /// The number of a selector.
    pub(crate) fn id(&mut self, mut sets: Vec<PodSet>) -> PodSelectorId {
        sets.sort();
        sets.dedup();
        PodSelectorId(self.0.add(sets.into()).0)
    }

    /// The selector with this number.
    pub(crate) fn get(&self, id: PodSelectorId) -> Option<&PodSelector> {
        self.0.get(id.0)
    }
}

/// Pods of a namespace with the same labels.
#[derive(Clone, Debug, Default)]
struct LabelSet {
    users: BTreeSet<Dependent>,
    matched: Box<[PodSelectorId]>,
}

/// Who is meant by whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meant {
    pub(crate) selectors: PodSelectors,
    /// Selectors of pods that the engine sees, with how many rules have them.
    uses: BTreeMap<PodSelectorId, u32>,
    /// Those of them that are asked, by a namespace that they name; and those that tell namespaces by
    /// their labels.
    by_namespace: BTreeMap<Name, BTreeSet<PodSelectorId>>,
    wide: BTreeSet<PodSelectorId>,
    live: BTreeSet<PodSelectorId>,
    /// The labels that number pods and that live selectors ask, with how many ask each.
    numbers: BTreeMap<Name, u32>,
    /// Whether pods that stand alone for their number may be meant by others than before.
    renumbered: bool,
    /// The labels that pods have; and by namespace, which these are.
    sets: FxHashMap<Shared<PodLabels>, LabelSet>,
    in_namespace: FxHashMap<Name, FxHashSet<Shared<PodLabels>>>,
    touched: BTreeSet<PodSelectorId>,
    /// What is to be asked again.
    namespaces: BTreeSet<Name>,
    fresh: Vec<Shared<PodLabels>>,
}

impl Meant {
    /// The numbers by which pods with these labels are meant. What pods have that stand alone for their
    /// number is not kept.
    pub(crate) fn matched(
        &self,
        labels: &Shared<PodLabels>,
        namespaces: &BTreeMap<Name, NamespaceRecord>,
    ) -> Box<[PodSelectorId]> {
        match self.sets.get(labels) {
            Some(set) => set.matched.clone(),
            None => self.ask(labels, namespaces),
        }
    }

    /// The rules of pods of a shape with these labels: a spread rule counts the pod itself where it is
    /// meant, which of one that stands alone for its number its template does not tell.
    pub(crate) fn near(
        &self,
        rules: Option<&Shared<PodRules>>,
        labels: &Shared<PodLabels>,
        matched: &[PodSelectorId],
    ) -> Option<Shared<PodRules>> {
        let rules = rules?;
        let is_own = |rule: &SpreadRule| rule.pods.map_or(rule.own, |pods| matched.contains(&pods));
        let mut all = rules.spread.iter().chain(&rules.spread_wishes);
        if self.sets.contains_key(labels) || all.all(|rule| rule.own == is_own(rule)) {
            return Some(rules.clone());
        }
        let mut own = PodRules::clone(rules);
        for rule in own.spread.iter_mut().chain(&mut own.spread_wishes) {
            rule.own = is_own(rule);
        }
        Some(Shared::new(own))
    }

    /// Whether a rule selects by this label, which is a pod's number.
    pub(crate) fn asks_number(&self, key: &str) -> bool {
        self.numbers.keys().any(|asked| asked.as_str() == key)
    }

    /// Enters a pod or the pods of a workload, or takes them out.
    pub(crate) fn index(
        &mut self,
        labels: &Shared<PodLabels>,
        rules: Option<&PodRules>,
        who: &Dependent,
        enter: bool,
    ) {
        for id in rules.into_iter().flat_map(selectors_of) {
            self.count(id, enter);
        }
        if enter {
            let set = self.sets.entry(labels.clone()).or_default();
            if set.users.is_empty() {
                self.fresh.push(labels.clone());
                let here = self.in_namespace.entry(labels.namespace.clone()).or_default();
                here.insert(labels.clone());
            }
            set.users.insert(who.clone());
        } else if let Some(set) = self.sets.get_mut(labels) {
            set.users.remove(who);
            if set.users.is_empty() {
                self.sets.remove(labels);
                if let Some(here) = self.in_namespace.get_mut(&labels.namespace) {
                    here.remove(labels);
                    if here.is_empty() {
                        self.in_namespace.remove(&labels.namespace);
                    }
                }
            }
        }
    }

    /// One rule more has this selector, or one fewer.
    pub(crate) fn count(&mut self, id: PodSelectorId, more: bool) {
        let uses = self.uses.entry(id).or_default();
        *uses = if more { *uses + 1 } else { uses.saturating_sub(1) };
        if *uses == 0 {
            self.uses.remove(&id);
        }
        self.touched.insert(id);
    }

    /// Takes note that a namespace has other labels now.
    pub(crate) fn namespace_changed(&mut self, name: &Name) {
        self.namespaces.insert(name.clone());
    }

    /// Which selectors are asked now.
    fn settle_live(&mut self) {
        for id in std::mem::take(&mut self.touched) {
            let live = self.uses.contains_key(&id);
            let changed = if live { self.live.insert(id) } else { self.live.remove(&id) };
            let Some(sets) = self.selectors.get(id).filter(|_| changed) else { continue };
            for key in sets.iter().flat_map(PodSet::numbers) {
                let asked = self.numbers.entry(key.clone()).or_default();
                *asked = if live { *asked + 1 } else { asked.saturating_sub(1) };
                self.renumbered = true;
            }
            self.numbers.retain(|_, asked| *asked > 0);
            let Some(first) = sets.first() else { continue };
            if first.namespace_rule.is_some() {
                if live {
                    self.wide.insert(id)
                } else {
                    self.wide.remove(&id)
                };
                self.namespaces.extend(self.in_namespace.keys().cloned());
            }
            for namespace in &first.namespaces {
                super::absorb::change(&mut self.by_namespace, namespace.clone(), id, live);
                self.namespaces.insert(namespace.clone());
            }
        }
    }

    /// Asks again about what has changed; answers who is meant by others than before.
    fn settle(&mut self, namespaces: &BTreeMap<Name, NamespaceRecord>) -> Vec<Dependent> {
        self.settle_live();
        self.renumbered |= !self.namespaces.is_empty() && !self.numbers.is_empty();
        let mut asked = std::mem::take(&mut self.fresh);
        for namespace in std::mem::take(&mut self.namespaces) {
            asked.extend(self.in_namespace.get(&namespace).into_iter().flatten().cloned());
        }
        let mut changed = Vec::new();
        for labels in asked {
            let matched = self.ask(&labels, namespaces);
            let Some(set) = self.sets.get_mut(&labels).filter(|set| set.matched != matched) else {
                continue;
            };
            set.matched = matched;
            changed.extend(set.users.iter().cloned());
        }
        changed
    }

    /// The namespaces with pods of which a rule asks the labels, and that are not among these.
    fn unlisted(&self, known: &BTreeMap<Name, NamespaceRecord>) -> BTreeSet<&Name> {
        let asks = |set: &PodSet| set.namespace_rule.as_ref().is_some_and(|rule| !rule.is_empty());
        let mut wide = self.wide.iter().filter_map(|id| self.selectors.get(*id));
        if !wide.any(|sets| sets.iter().any(asks)) {
            return BTreeSet::new();
        }
        self.in_namespace.keys().filter(|namespace| !known.contains_key(*namespace)).collect()
    }

    fn ask(
        &self,
        labels: &PodLabels,
        namespaces: &BTreeMap<Name, NamespaceRecord>,
    ) -> Box<[PodSelectorId]> {
        let here = self.by_namespace.get(&labels.namespace).into_iter().flatten();
        let candidates: BTreeSet<PodSelectorId> = here.chain(&self.wide).copied().collect();
        let namespace = namespaces.get(&labels.namespace);
        let means = |id: &PodSelectorId| {
            let sets = self.selectors.get(*id);
            sets.is_some_and(|sets| sets.iter().all(|set| set.means(labels, namespace)))
        };
        candidates.into_iter().filter(means).collect()
    }
}

/// The numbers that a pod's rules are about.
fn selectors_of(rules: &PodRules) -> impl Iterator<Item = PodSelectorId> {
    let affinity = rules.affinity.iter().map(|affinity| affinity.pods);
    let anti = rules.anti.iter().map(|term| term.pods);
    let others = rules.wishes.iter().map(|wish| wish.pods);
    let welcomes = rules.welcomes.iter().map(|term| term.pods);
    let spread = rules.spread.iter().chain(&rules.spread_wishes).filter_map(|rule| rule.pods);
    affinity.chain(anti).chain(others).chain(welcomes).chain(spread)
}

impl Lowering {
    /// That rules ask for the labels of namespaces that the input does not have.
    pub(super) fn of_namespaces(&self) -> Option<Finding> {
        let names: Vec<&str> =
            self.meant.unlisted(&self.objects.namespaces).into_iter().map(Name::as_str).collect();
        let message = match names.as_slice() {
            [] => return None,
            [one] => format!("Namespace {one} is not in the input, and a namespaceSelector"),
            [first, .., last] if names.len() > 5 => format!(
                "{} namespaces, {first} to {last}, are not in the input, and a namespaceSelector",
                names.len()
            ),
            several => format!(
                "Namespaces {} are not in the input, and a namespaceSelector",
                several.join(", ")
            ),
        };
        Some(Finding {
            severity: Severity::Warning,
            object: None,
            file: "".into(),
            line: 0,
            path: String::new(),
            message: format!(
                "{message} of a pod's affinity asks for namespaces by their labels. They are taken \
                 to have none; add `kubectl get namespaces` to the input."
            ),
        })
    }

    /// The first pod on a node whose required anti-affinity means the pods of a group, in the domain
    /// of this label.
    pub(crate) fn repelling(
        &self,
        group: &GroupKey,
        role: u16,
        key: &Name,
        value: &Name,
    ) -> Option<PodKey> {
        let objects = &self.objects;
        let of_pod = objects.pods.get(&PodKey(group.object.clone())).map(|pod| &pod.labels);
        let of_pod = of_pod.filter(|_| group.kind.as_str() == "pod");
        let labels = of_pod.or_else(|| {
            let roles = &objects.workloads.get(group)?.roles;
            Some(&roles.get(usize::from(role))?.labels)
        })?;
        let matched = self.meant.matched(labels, &objects.namespaces);
        let means = |rules: &PodRules| {
            rules.anti.iter().any(|term| term.key == *key && matched.contains(&term.pods))
        };
        let here = |node: &NodeKey| {
            let node = objects.nodes.get(&node.0);
            node.is_some_and(|node| value_of(&node.node.labels, key) == Some(value))
        };
        let repelling = objects.pods.iter().filter(|(_, pod)| {
            pod.shape.near.as_ref().is_some_and(|rules| means(rules))
                && pod.life.node().is_some_and(here)
        });
        repelling.map(|(key, _)| key).min().cloned()
    }

    /// The first pod on a node that has this host port.
    pub(crate) fn port_holder(&self, node: &NodeKey, port: &HostPort) -> Option<PodKey> {
        let holders = self
            .objects
            .pods
            .iter()
            .filter(|(_, pod)| pod.shape.ports.contains(port) && pod.life.node() == Some(node));
        holders.map(|(key, _)| key).min().cloned()
    }

    /// Marks the pods that are meant by other rules now.
    pub(super) fn settle_meant(&mut self) {
        let changed = self.meant.settle(&self.objects.namespaces);
        self.mark(changed);
        if std::mem::take(&mut self.meant.renumbered) {
            self.mark_numbered();
        }
    }
}

/// A label selector as a rule; or the requirement that the API server would refuse.
pub(crate) fn label_rule(
    selector: &LabelSelector,
    names: &mut Names,
) -> Result<Vec<Requirement>, String> {
    let mut all = Vec::new();
    for (key, value) in &selector.match_labels {
        if !is_qualified_name(key) || !is_label_value(value) {
            return Err(format!("{key}={value} is no label"));
        }
        all.push(Requirement::In(names.get(key), [names.get(value)].into()));
    }
    for requirement in &selector.match_expressions {
        all.push(expression(requirement, names).ok_or_else(|| {
            let values = requirement.values.join(", ");
            format!(
                "the requirement {} {} [{values}] is none",
                requirement.key,
                requirement.operator.as_str()
            )
        })?);
    }
    Ok(all)
}

fn expression(of: &LabelSelectorRequirement, names: &mut Names) -> Option<Requirement> {
    use LabelSelectorOperator as Op;
    if !is_qualified_name(&of.key) || !of.values.iter().all(|value| is_label_value(value)) {
        return None;
    }
    let key = names.get(&of.key);
    let mut values: Vec<Name> = of.values.iter().map(|value| names.get(value)).collect();
    values.sort();
    values.dedup();
    match (&of.operator, values.is_empty()) {
        (Op::In, false) => Some(Requirement::In(key, values.into())),
        (Op::NotIn, false) => Some(Requirement::NotIn(key, values.into())),
        (Op::Exists, true) => Some(Requirement::Exists(key)),
        (Op::DoesNotExist, true) => Some(Requirement::DoesNotExist(key)),
        (Op::In | Op::NotIn | Op::Exists | Op::DoesNotExist | Op::Unset | Op::Other(_), _) => None,
    }
}
