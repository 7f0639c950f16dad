//! Trees of topology, from every source that there is: Topology objects of Kueue and of KAI,
//! HyperNodes, labels that say themselves what they are (Topograph's, the NVLink clique), and any label
//! that a group names as a level. What a group asks of a level is lowered with the group.

mod hypernodes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_engine::{Change, Domains, GroupKey, Name, NodeKey, Scoped, Topology, TopologyKey};
use phalanx_objects::scheduling::{Scheduling, SchedulingKind};
use phalanx_objects::{Kind, ObjectRef};

use super::Lowering;
use super::absorb::{findings, wish_notes};
use super::record::{Header, NodeRecord, SchedulingRecord};
use super::settle::cluster_object;
use super::slice::Note;
use super::workload::LevelName;
use crate::finding::{Finding, Severity};
use hypernodes::Places;

/// The NVLink domain of a node and its part of it: cluster UUID and clique.
pub(super) const CLIQUE: &str = "nvidia.com/gpu.clique";

/// The tree of HyperNodes, where no Topology has the name.
const HYPERNODES: &str = "hypernodes";

/// Labels that say themselves what they are, by tree, widest level first: the first two generations of
/// Topograph's, what its third says of accelerators, and the clique.
const KNOWN: [(&str, &[&str]); 4] = [
    (
        "network.topology.nvidia.com",
        &[
            "network.topology.nvidia.com/datacenter",
            "network.topology.nvidia.com/core",
            "network.topology.nvidia.com/spine",
            "network.topology.nvidia.com/block",
            "network.topology.nvidia.com/leaf",
        ],
    ),
    ("network.topology.nvidia.com/accelerator", &["network.topology.nvidia.com/accelerator"]),
    (
        "accelerator.topograph.run",
        &["accelerator.topograph.run/domain", "accelerator.topograph.run/sub-domain"],
    ),
    (CLIQUE, &[CLIQUE]),
];

/// Before the number of a tier in Topograph's third generation; 0 is nearest to the node.
const TIER: &str = "fabric.topograph.run/tier-";

/// Most nodes that are named in one finding, and most that are told of by themselves of two sources that
/// disagree.
const NAMED_MAX: usize = 5;

/// Most levels of one kind of place of which every two are compared.
const COMPARED_MAX: usize = 8;

/// Trees by key.
pub(super) type Trees = BTreeMap<TopologyKey, Tree>;

/// A tree, and where a node's place in it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// In labels of the node, widest level first.
    Labels(Source, Box<[Name]>),
    /// In HyperNodes.
    Places(Arc<Places>),
}

/// What says that there is a tree of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A Topology.
    Object(SchedulingKind),
    /// The labels themselves.
    Labels,
    /// A group that names the label.
    Group,
}

/// A tree, for output.
#[derive(Clone, Debug)]
pub(crate) struct TreeInfo {
    pub(crate) key: TopologyKey,
    /// What says that there is one, in words.
    pub(crate) source: String,
    /// Its levels, widest first.
    pub(crate) levels: Vec<Name>,
    /// The domains of each node that is in some.
    pub(crate) nodes: BTreeMap<NodeKey, Domains>,
}

impl Tree {
    /// Whether a group finds the same levels in the other.
    pub(super) fn is_read_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Labels(..), Self::Labels(..)) => self == other,
            (Self::Places(one), Self::Places(other)) => one.levels == other.levels,
            (Self::Labels(..), Self::Places(_)) | (Self::Places(_), Self::Labels(..)) => false,
        }
    }

    pub(super) fn levels(&self) -> Box<[Name]> {
        match self {
            Self::Labels(_, labels) => labels.clone(),
            Self::Places(places) => places.levels.iter().map(|(_, name)| name.clone()).collect(),
        }
    }

    /// The domains of a node; none where it is in none.
    fn domains(&self, name: &Name, node: &NodeRecord) -> Option<Domains> {
        let domains: Domains = match self {
            Self::Labels(_, labels) => labels.iter().map(|label| value(node, label)).collect(),
            Self::Places(places) => places.of.get(name)?.clone(),
        };
        domains.iter().any(Option::is_some).then_some(domains)
    }
}

/// What a node's label says; the clique of a node without NVLink to others says nothing.
fn value(node: &NodeRecord, label: &Name) -> Option<Name> {
    let labels = &node.node.labels;
    let at = labels.binary_search_by(|(key, _)| key.cmp(label)).ok()?;
    let value = labels.get(at)?.1.clone();
    let none = value.is_empty()
        || label.as_str() == CLIQUE
            && (value.starts_with("N/A") || value.starts_with("00000000-0000-0000-0000-00000000"));
    (!none).then_some(value)
}

fn is_known(label: &str) -> bool {
    label.starts_with(TIER) || KNOWN.iter().any(|(_, labels)| labels.contains(&label))
}

impl Lowering {
    /// Takes in an object about groups or places.
    pub(super) fn scheduling(&mut self, object: &Scheduling, header: Header) -> Vec<Note> {
        let meta = object.metadata();
        let kind = object.kind();
        let scoped = match kind.is_namespaced() {
            true => self.scoped(&meta.namespace, &meta.name),
            false => Scoped { namespace: Name::new(""), name: Name::new(&meta.name) },
        };
        let align = super::pod::wish(meta, &mut self.interned.names);
        let mut notes = wish_notes(&align);
        let record = SchedulingRecord { header, object: Arc::new(object.clone()), align };
        self.mark_above(kind, &scoped);
        self.mark_wishing(kind, &scoped);
        self.index_sharing(kind, &scoped, false);
        self.objects.scheduling.insert((kind, scoped.clone()), record);
        self.mark_wishing(kind, &scoped);
        self.index_sharing(kind, &scoped, true);
        self.scheduling_changed(kind, &scoped);
        notes.extend(match object {
            Scheduling::HyperNode(of) => hypernodes::notes(of),
            Scheduling::KueueTopology(of) | Scheduling::KaiTopology(of) => {
                let none = of.spec.levels.is_empty();
                let message = "The Topology has no levels: nothing can be in a domain of it.";
                let note = (Severity::Warning, "spec.levels".to_owned(), message.to_owned());
                none.then_some(note).into_iter().collect()
            }
            Scheduling::PodGroup(of) => self.sharing_notes(of),
            Scheduling::CompositePodGroup(_)
            | Scheduling::Templates(_)
            | Scheduling::KueueWorkload(_)
            | Scheduling::Coscheduling(_)
            | Scheduling::VolcanoPodGroup(_)
            | Scheduling::KaiPodGroup(_)
            | Scheduling::PodGang(_)
            | Scheduling::ComputeDomain(_) => Vec::new(),
        });
        notes
    }

    pub(super) fn scheduling_gone(&mut self, kind: SchedulingKind, scoped: &Scoped) {
        let mut scoped = scoped.clone();
        if !kind.is_namespaced() {
            scoped.namespace = Name::new("");
        }
        self.mark_above(kind, &scoped);
        self.mark_wishing(kind, &scoped);
        self.index_sharing(kind, &scoped, false);
        if self.objects.scheduling.remove(&(kind, scoped.clone())).is_some() {
            self.scheduling_changed(kind, &scoped);
        }
    }

    /// Marks the group of groups that a PodGroup is part of before it changes: it may be part of another
    /// then.
    fn mark_above(&mut self, kind: SchedulingKind, scoped: &Scoped) {
        let key = GroupKey { object: scoped.clone(), kind: Name::new(kind.word()) };
        self.dirty.gangs.extend(self.above(&key));
    }

    fn scheduling_changed(&mut self, kind: SchedulingKind, scoped: &Scoped) {
        match kind {
            SchedulingKind::KueueTopology
            | SchedulingKind::KaiTopology
            | SchedulingKind::HyperNode => self.dirty.trees = true,
            SchedulingKind::PodGroup
            | SchedulingKind::Coscheduling
            | SchedulingKind::VolcanoPodGroup
            | SchedulingKind::KaiPodGroup
            | SchedulingKind::PodGang => {
                let kind = Name::new(kind.word());
                self.dirty.gangs.push(GroupKey { object: scoped.clone(), kind });
            }
            SchedulingKind::CompositePodGroup
            | SchedulingKind::Templates
            | SchedulingKind::KueueWorkload
            | SchedulingKind::ComputeDomain => {
                self.dirty.gang_namespaces.insert(scoped.namespace.clone());
            }
        }
    }

    /// Marks the gangs of a namespace.
    pub(super) fn mark_gangs_of(&mut self, namespace: &Name) {
        let object = Scoped { namespace: namespace.clone(), name: Name::new("") };
        let first = GroupKey { object, kind: Name::new("") };
        let here = |key: &&GroupKey| key.object.namespace == *namespace;
        let members = self.index.members.range(&first..).map(|(key, _)| key).take_while(here);
        let roles = self.index.gang_roles.range(&first..).map(|(key, _)| key).take_while(here);
        let shown = self.shown.gangs.range(&first..).map(|(key, _)| key).take_while(here);
        self.dirty.gangs.extend(members.chain(roles).chain(shown).cloned());
    }

    /// Counts the labels of a node that say themselves what they are, as it comes, changes or goes.
    pub(super) fn node_moves(&mut self, old: Option<&NodeRecord>, new: Option<&NodeRecord>) {
        let before = old.map(|record| &record.node.labels);
        let after = new.map(|record| &record.node.labels);
        if before == after {
            return;
        }
        let known = |of: Option<&Box<[(Name, Name)]>>| -> BTreeSet<Name> {
            let labels = of.into_iter().flatten().map(|(label, _)| label);
            labels.filter(|label| is_known(label)).cloned().collect()
        };
        let (had, has) = (known(before), known(after));
        for label in had.difference(&has) {
            let count = self.index.known_labels.get_mut(label);
            let left = count.map_or(0, |count| {
                *count = count.saturating_sub(1);
                *count
            });
            if left == 0 {
                self.index.known_labels.remove(label);
                self.dirty.trees = true;
            }
        }
        for label in has.difference(&had) {
            let count = self.index.known_labels.entry(label.clone()).or_default();
            *count += 1;
            self.dirty.trees |= *count == 1;
        }
        // HyperNodes choose nodes by name and by labels.
        self.dirty.trees |= self.shown.trees.values().any(|tree| matches!(tree, Tree::Places(_)));
    }

    /// The trees that were told of, those that only groups name left out.
    pub(super) fn shown_trees(&self) -> Trees {
        let said = |tree: &Tree| !matches!(tree, Tree::Labels(Source::Group, _));
        let shown = self.shown.trees.iter().filter(|(_, tree)| said(tree));
        shown.map(|(key, tree)| (key.clone(), tree.clone())).collect()
    }

    /// The trees that objects and labels say there are; those that only groups name are left out.
    pub(super) fn said_trees(&self) -> Trees {
        let mut trees = Trees::new();
        for ((kind, scoped), record) in &self.objects.scheduling {
            let (Scheduling::KueueTopology(of) | Scheduling::KaiTopology(of)) = &*record.object
            else {
                continue;
            };
            let labels = of.spec.levels.iter().map(|level| Name::new(&level.node_label)).collect();
            let tree = Tree::Labels(Source::Object(*kind), labels);
            // Of two of one name that of Kueue has the name alone.
            let key = free_key(&trees, &scoped.name, kind.group());
            trees.insert(key, tree);
        }
        let said: Vec<Box<[Name]>> = trees.values().map(Tree::levels).collect();
        let counted = |label: &&&str| self.index.known_labels.contains_key(**label);
        for (key, labels) in KNOWN {
            let labels: Box<[Name]> = labels.iter().filter(counted).map(|l| Name::new(l)).collect();
            self.add_known(key, labels, &said, &mut trees);
        }
        let tier = |label: &Name| label.strip_prefix(TIER)?.parse::<u32>().ok();
        let mut tiers: Vec<(u32, Name)> = self
            .index
            .known_labels
            .keys()
            .filter_map(|label| Some((tier(label)?, label.clone())))
            .collect();
        tiers.sort_by(|a, b| b.cmp(a));
        let labels = tiers.into_iter().map(|(_, label)| label).collect();
        self.add_known("fabric.topograph.run", labels, &said, &mut trees);
        let places = Places::of(&self.objects.scheduling, &self.objects.nodes);
        if let Some(places) = places {
            let key = free_key(&trees, HYPERNODES, SchedulingKind::HyperNode.group());
            trees.insert(key, Tree::Places(Arc::new(places)));
        }
        trees
    }

    /// Adds a tree of labels, unless a Topology has all of them.
    fn add_known(&self, key: &str, labels: Box<[Name]>, said: &[Box<[Name]>], trees: &mut Trees) {
        let covered = said.iter().any(|levels| labels.iter().all(|label| levels.contains(label)));
        if !covered && !labels.is_empty() {
            trees.insert(free_key(trees, key, "labels"), Tree::Labels(Source::Labels, labels));
        }
    }

    /// Where a level is found: the tree, and the level's index. A label that no tree has is a tree of
    /// its own.
    pub(super) fn level(trees: &Trees, level: &LevelName) -> Result<(TopologyKey, u16), String> {
        let at = |levels: &[Name], label: &Name| {
            levels.iter().position(|level| level == label).and_then(|at| u16::try_from(at).ok())
        };
        match level {
            LevelName::Label(label) => {
                let found = trees.iter().find_map(|(key, tree)| match tree {
                    Tree::Labels(_, labels) => Some((key.clone(), at(labels, label)?)),
                    Tree::Places(_) => None,
                });
                Ok(found.unwrap_or_else(|| (free_key(trees, label, "label"), 0)))
            }
            LevelName::OfKai(topology, label) => {
                let is = |source: &Source| *source == Source::Object(SchedulingKind::KaiTopology);
                let second = format!("{topology}.{}", SchedulingKind::KaiTopology.group());
                let named =
                    |key: &&TopologyKey| key.0 == *topology || key.0.as_str() == second.as_str();
                let found = trees.iter().filter(|(key, _)| named(key)).find_map(|(key, tree)| {
                    let Tree::Labels(source, labels) = tree else { return None };
                    Some((key.clone(), at(labels, label)?)).filter(|_| is(source))
                });
                found.ok_or_else(|| {
                    format!(
                        "Topology {topology} of KAI has no level {label}, or is not in the input"
                    )
                })
            }
            LevelName::Tier(_) | LevelName::TierName(_) => {
                let places = trees.iter().find_map(|(key, tree)| match tree {
                    Tree::Places(places) => Some((key.clone(), places.level(level)?)),
                    Tree::Labels(..) => None,
                });
                match (places, level) {
                    (Some(found), _) => Ok(found),
                    (None, LevelName::Tier(tier)) => {
                        Err(format!("no HyperNode is of tier {tier} or a lower one"))
                    }
                    (None, _) => Err("no HyperNode is of a tier of that name".to_owned()),
                }
            }
        }
    }

    /// All trees, those that only groups name included.
    fn trees(&self, said: Trees) -> Trees {
        let mut trees = said;
        for label in self.index.levels.keys() {
            let wanted = Self::level(&trees, &LevelName::Label(label.clone()));
            if let Ok((key, _)) = wanted
                && !trees.contains_key(&key)
            {
                trees.insert(key, Tree::Labels(Source::Group, [label.clone()].into()));
            }
        }
        trees
    }

    /// Tells of trees that are new, changed or gone, and of the places of nodes that moved, which come
    /// sorted; `said` are the trees that objects and labels say.
    pub(super) fn settle_trees(&mut self, said: Trees, moved: &[Name], changes: &mut Vec<Change>) {
        if self.dirty.trees {
            self.dirty.trees = false;
            let now = self.trees(said);
            let before = std::mem::replace(&mut self.shown.trees, now);
            for (key, _) in before.iter().filter(|(key, _)| !self.shown.trees.contains_key(*key)) {
                changes.push(Change::Topology(key.clone(), None));
                let nodes = self.objects.nodes.keys().chain(moved);
                let gone = |node: &Name| Change::Domains(NodeKey(node.clone()), key.clone(), None);
                changes.extend(nodes.map(gone));
            }
            for (key, tree) in &self.shown.trees {
                let old = before.get(key);
                if old == Some(tree) {
                    continue;
                }
                let levels = tree.levels();
                if old.is_none_or(|old| old.levels() != levels) {
                    let topology = Topology { levels: levels.into_vec() };
                    changes.push(Change::Topology(key.clone(), Some(topology)));
                }
                let stayed = |(name, _): &(&Name, _)| moved.binary_search(name).is_err();
                for (name, node) in self.objects.nodes.iter().filter(stayed) {
                    let domains = tree.domains(name, node);
                    if domains != old.and_then(|old| old.domains(name, node)) {
                        changes.push(Change::Domains(NodeKey(name.clone()), key.clone(), domains));
                    }
                }
            }
        }
        for name in moved {
            let node = self.objects.nodes.get(name);
            for (key, tree) in &self.shown.trees {
                let domains = node.and_then(|node| tree.domains(name, node));
                changes.push(Change::Domains(NodeKey(name.clone()), key.clone(), domains));
            }
        }
    }

    /// The trees that there are, for output.
    pub(crate) fn tree_infos(&self) -> Vec<TreeInfo> {
        let info = |(key, tree): (&TopologyKey, &Tree)| TreeInfo {
            key: key.clone(),
            source: match tree {
                Tree::Labels(Source::Object(kind), _) => format!("Topology of {}", kind.group()),
                Tree::Labels(Source::Labels, _) => "labels of nodes".to_owned(),
                Tree::Labels(Source::Group, _) => "a label that a group names".to_owned(),
                Tree::Places(_) => "HyperNodes".to_owned(),
            },
            levels: tree.levels().into_vec(),
            nodes: self.domains(tree),
        };
        self.shown.trees.iter().map(info).collect()
    }

    /// The domains of each node in a tree.
    pub(crate) fn places_in(&self, topology: &TopologyKey) -> BTreeMap<NodeKey, Domains> {
        self.shown.trees.get(topology).map(|tree| self.domains(tree)).unwrap_or_default()
    }

    /// The name of a level of a tree.
    pub(crate) fn level_name(&self, topology: &TopologyKey, level: u16) -> Option<Name> {
        self.shown.trees.get(topology)?.levels().get(usize::from(level)).cloned()
    }

    /// Where a node is in a tree.
    pub(crate) fn place_in(&self, topology: &TopologyKey, node: &NodeKey) -> Option<Domains> {
        self.shown.trees.get(topology)?.domains(&node.0, self.objects.nodes.get(&node.0)?)
    }

    /// Whether any node is in a tree.
    pub(crate) fn has_places(&self, topology: &TopologyKey) -> bool {
        let tree = self.shown.trees.get(topology);
        tree.is_some_and(|tree| {
            self.objects.nodes.iter().any(|(name, node)| tree.domains(name, node).is_some())
        })
    }

    fn domains(&self, tree: &Tree) -> BTreeMap<NodeKey, Domains> {
        let of = |(name, node): (&Name, &NodeRecord)| {
            Some((NodeKey(name.clone()), tree.domains(name, node)?))
        };
        self.objects.nodes.iter().filter_map(of).collect()
    }

    /// What is wrong with the trees: nodes that have no place, and sources that disagree.
    pub(super) fn of_trees(&self) -> Vec<Finding> {
        let mut all = Vec::new();
        for (key, tree) in &self.shown.trees {
            match tree {
                Tree::Labels(source, labels) => all.extend(self.lacking(key, *source, labels)),
                Tree::Places(places) => {
                    for message in &places.twice {
                        let (name, message) = message;
                        let node = cluster_object(Kind::Node, name);
                        all.extend(self.noted(&node, "", message.clone(), Severity::Warning));
                    }
                }
            }
        }
        all.extend(self.disagreeing());
        all
    }

    fn noted(
        &self,
        object: &ObjectRef,
        path: &str,
        message: String,
        severity: Severity,
    ) -> Vec<Finding> {
        let source = self.header(object).map(|header| header.source.clone()).unwrap_or_default();
        findings(object, &source, vec![(severity, path.to_owned(), message)])
    }

    /// Nodes that lack a label of a tree, where others have it.
    fn lacking(&self, key: &TopologyKey, source: Source, labels: &[Name]) -> Vec<Finding> {
        let mut all = Vec::new();
        for (at, label) in labels.iter().enumerate() {
            let nodes: BTreeMap<&Name, &NodeRecord> = self.objects.nodes.iter().collect();
            let lacks = |(_, node): &(&Name, &NodeRecord)| value(node, label).is_none();
            let without: Vec<&Name> =
                nodes.into_iter().filter(lacks).map(|(name, _)| name).collect();
            if without.is_empty() || label.as_str() == CLIQUE && source != Source::Group {
                continue;
            }
            // That is told of the group that names it.
            if source == Source::Group && without.len() == self.objects.nodes.len() {
                continue;
            }
            let message = format!(
                "{} no label {label}: {} in no domain of that level, and {} only where none is \
                 required.",
                super::shortened(&names(&without)),
                if without.len() == 1 { "it is" } else { "they are" },
                if without.len() == 1 { "is used" } else { "are used" },
            );
            let object = match source {
                Source::Object(kind) => {
                    let name = key.0.strip_suffix(&format!(".{}", kind.group()));
                    cluster_object(Kind::Scheduling(kind), name.unwrap_or(&key.0))
                }
                Source::Labels | Source::Group => cluster_object(Kind::Node, without[0]),
            };
            let path = match source {
                Source::Object(_) => format!("spec.levels[{at}].nodeLabel"),
                Source::Labels | Source::Group => "metadata.labels".to_owned(),
            };
            all.extend(self.noted(&object, &path, message, Severity::Warning));
        }
        all
    }

    /// Nodes of which two sources say different things of one kind of place.
    fn disagreeing(&self) -> Vec<Finding> {
        let mut kinds: BTreeMap<String, BTreeMap<Name, (&TopologyKey, &Tree, usize)>> =
            BTreeMap::new();
        for (key, tree) in &self.shown.trees {
            for (at, level) in tree.levels().iter().enumerate() {
                let of_kind = kinds.entry(kind_of(level)).or_default();
                of_kind.entry(level.clone()).or_insert((key, tree, at));
            }
        }
        let mut all = Vec::new();
        for (kind, levels) in kinds.iter().filter(|(_, levels)| levels.len() > 1) {
            let mut said: Vec<Said<'_>> = Vec::new();
            for (level, (topology, tree, at)) in levels.iter().take(COMPARED_MAX) {
                said.push(Said { level, topology, places: self.places_at(tree, *at) });
            }
            for (at, one) in said.iter().enumerate() {
                for other in said.iter().skip(at + 1) {
                    all.extend(self.differences(kind, one, other));
                }
            }
        }
        all
    }

    fn places_at(&self, tree: &Tree, level: usize) -> BTreeMap<&Name, Name> {
        let of = |(name, node)| {
            let domains = tree.domains(name, node)?;
            Some((name, domains.get(level).cloned().flatten()?))
        };
        self.objects.nodes.iter().filter_map(of).collect()
    }

    /// What is said of two sources: of the first nodes by themselves, and how many more there are.
    fn differences(&self, kind: &str, one: &Said<'_>, other: &Said<'_>) -> Vec<Finding> {
        let both = one.places.iter();
        let both = both.filter_map(|(name, here)| {
            Some((*name, here.clone(), other.places.get(name)?.clone()))
        });
        let found = differing(both.collect());
        let more = found.len().saturating_sub(NAMED_MAX);
        let mut all = Vec::new();
        for (at, (node, here, there)) in found.into_iter().take(NAMED_MAX).enumerate() {
            let others = match more {
                more if more > 0 && at + 1 == NAMED_MAX => format!(
                    " So they do about {}.",
                    crate::words::count(more as u64, "more node", "more nodes")
                ),
                _ => String::new(),
            };
            let message = format!(
                "Two sources disagree about the {kind} of the node: {} of topology {} says {here}, \
                 {} of topology {} says {there}. A group goes by the one that it names.{others}",
                one.level, one.topology.0, other.level, other.topology.0
            );
            let node = cluster_object(Kind::Node, &node);
            all.extend(self.noted(&node, "", message, Severity::Warning));
        }
        all
    }
}

/// What a level says of nodes.
struct Said<'a> {
    level: &'a Name,
    topology: &'a TopologyKey,
    places: BTreeMap<&'a Name, Name>,
}

/// A key that no tree has: the name, or with what is appended to it.
fn free_key(trees: &Trees, name: &str, or: &str) -> TopologyKey {
    let key = TopologyKey(Name::new(name));
    match trees.contains_key(&key) {
        true => TopologyKey(Name::new(&format!("{name}.{or}"))),
        false => key,
    }
}

/// What kind of place a level is: `rack` of `example.com/rack` and of `topology-rack`.
fn kind_of(level: &str) -> String {
    let last = level.rsplit('/').next().unwrap_or(level);
    last.strip_prefix("topology-").unwrap_or(last).to_ascii_lowercase()
}

/// The nodes whose two places do not go together. Where both sources use the same names these are
/// compared; else that of most nodes of a place says what it is called by the other.
fn differing(mut places: Vec<(&Name, Name, Name)>) -> Vec<(Name, Name, Name)> {
    places.sort();
    let here: BTreeSet<&Name> = places.iter().map(|(_, here, _)| here).collect();
    let same = places.iter().any(|(_, _, there)| here.contains(there));
    let mut counts: BTreeMap<&Name, BTreeMap<&Name, usize>> = BTreeMap::new();
    for (_, here, there) in &places {
        *counts.entry(here).or_default().entry(there).or_default() += 1;
    }
    let usual = |here: &Name| {
        let counts = counts.get(here)?;
        counts
            .iter()
            .max_by_key(|(name, count)| (**count, std::cmp::Reverse(**name)))
            .map(|(n, _)| *n)
    };
    let differs = |(_, here, there): &&(&Name, Name, Name)| {
        if same { here != there } else { usual(here) != Some(there) }
    };
    let all = places.iter().filter(differs);
    all.map(|(node, here, there)| ((*node).clone(), here.clone(), there.clone())).collect()
}

/// `n1 and n2 have`, `n1, n2, n3, n4, n5 and 3 more nodes have`.
fn names(nodes: &[&Name]) -> String {
    let mut shown: Vec<String> = nodes.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = nodes.len() - shown.len();
    if more > 0 {
        shown.push(crate::words::count(more as u64, "more node", "more nodes"));
    }
    let verb = if nodes.len() == 1 { "has" } else { "have" };
    format!("{} {verb}", crate::words::list(&shown))
}
