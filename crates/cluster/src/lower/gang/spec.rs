//! What the API that declares a gang says of it: how many of it must start at once, part by part, and
//! where they are to be. The table of fields is in the guide.

use std::collections::BTreeMap;

use phalanx_engine::{GroupKey, Name, Scoped};
use phalanx_objects::scheduling::{
    GroveTopologyConstraint, KaiSubGroup, KaiTopologyConstraint, PodGroupSpec, Scheduling,
    SchedulingKind,
};
use phalanx_objects::{Kind, ObjectRef};

use super::super::Lowering;
use super::super::record::PriorityFrom;
use super::super::settle::object;
use super::super::slice::Note;
use super::super::workload::{BOUND, LevelName, UNDECLARED, Wish};
use super::units::{Node, Units, units};
use super::{Draft, Told, declaring, volcano};
use crate::finding::Severity;
use crate::words;

/// What is said of a gang.
#[derive(Clone, Debug, Default)]
pub(super) struct Spec {
    /// Fewest pods of all; none is what parts and roles say.
    pub(super) min: Option<u32>,
    pub(super) parts: Vec<Part>,
    /// Parts among which there is a choice, each there whole or not at all.
    pub(super) units: Units,
    /// So many pods at a time start beyond those that must.
    pub(super) segment: Option<Segment>,
    /// Where all of it is to be.
    pub(super) wishes: Vec<Wish>,
    pub(super) priority: Option<PriorityFrom>,
    /// Nothing of it must start at once.
    pub(super) is_each: bool,
    /// The object that declares it is not there.
    pub(super) missing: Option<String>,
    /// Too few groups of it are there, or one of its objects is refused, in words.
    pub(super) few: Option<String>,
    /// The object that it is said of.
    pub(super) about: Option<ObjectRef>,
    pub(super) notes: Vec<Note>,
    /// What there is to say of other objects.
    pub(super) told: Vec<Told>,
}

/// Pods that are told to be of parts by their order alone.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// What the parts are of.
    pub(super) name: Name,
    /// Pods of each.
    pub(super) size: u32,
}

/// A group below a group of groups: its name, and whether pods are in it. One of groups may have the name of
/// one of pods.
type Member = (Name, bool);

/// All of them: the group of groups that each is under, unless that is the first of all; and what it says.
type Tree<'o> = BTreeMap<Member, (Option<Name>, &'o PodGroupSpec)>;

/// What is said of a part of a gang.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// The parts by name that it is made of: itself, or those below it.
    pub(super) names: Vec<Name>,
    pub(super) min: Option<u32>,
    /// The unit that it is of, where there is a choice.
    pub(super) unit: Option<u16>,
    pub(super) wishes: Vec<Wish>,
    /// The object that says all this, where that is not the gang's.
    pub(super) object: Option<ObjectRef>,
}

impl Lowering {
    pub(super) fn spec_of(&self, key: &GroupKey, drafts: &[Draft]) -> Spec {
        if let Some(record) = self.objects.workloads.get(key)
            && let Some(declared) = &record.gang
        {
            return Spec {
                min: declared.min,
                wishes: declared.wishes.to_vec(),
                about: Some(declaring(key)),
                ..Spec::default()
            };
        }
        let pods = drafts.iter().flat_map(|draft| &draft.line.pods);
        let first = pods.min().map(|pod| object(Kind::Pod, &pod.0));
        let of = drafts.iter().find_map(|draft| draft.line.of.as_ref());
        let about = first.or_else(|| of.map(|(workload, _)| declaring(workload)));
        let kinds = SchedulingKind::ALL.iter().copied();
        let Some(kind) = kinds.into_iter().find(|kind| kind.word() == key.kind.as_str()) else {
            return Spec { about, ..self.undeclared(key, drafts) };
        };
        let found = match kind {
            SchedulingKind::Templates => self.in_workload(key),
            SchedulingKind::CompositePodGroup => Some(self.composite(key)),
            SchedulingKind::PodGroup
            | SchedulingKind::KueueWorkload
            | SchedulingKind::Coscheduling
            | SchedulingKind::VolcanoPodGroup
            | SchedulingKind::KaiPodGroup
            | SchedulingKind::PodGang
            | SchedulingKind::KueueTopology
            | SchedulingKind::KaiTopology
            | SchedulingKind::HyperNode
            | SchedulingKind::ComputeDomain => {
                let record = self.objects.scheduling.get(&(kind, key.object.clone()));
                record.and_then(|record| of_object(&record.object, drafts))
            }
        };
        if let Some(mut spec) = found {
            self.refuse(key, kind, &mut spec);
            let about = if spec.missing.is_some() { about } else { Some(declaring(key)) };
            return Spec { about, ..spec };
        }
        let own = drafts.iter().any(|draft| draft.least.is_some());
        let marked = marked_min(drafts);
        if own || marked.is_some() {
            return Spec { min: marked, about, ..Spec::default() };
        }
        Spec { missing: Some(absence(kind, &key.object.name)), about, ..Spec::default() }
    }

    /// A gang that marks of its pods alone declare: what they say, and Kueue's Workload for it.
    fn undeclared(&self, key: &GroupKey, drafts: &[Draft]) -> Spec {
        debug_assert_eq!(key.kind.as_str(), UNDECLARED);
        let kueue = (SchedulingKind::KueueWorkload, key.object.clone());
        let record = self.objects.scheduling.get(&kueue);
        let bound = bound_parts(key, drafts);
        if !bound.is_empty() {
            return Spec { parts: bound, ..Spec::default() };
        }
        let mut spec = Spec { min: marked_min(drafts), ..Spec::default() };
        let Some(Scheduling::KueueWorkload(of)) = record.map(|record| &*record.object) else {
            return spec;
        };
        let counts = of.spec.pod_sets.iter().map(|set| set.min_count.unwrap_or(set.count));
        let total: i64 = counts.map(i64::from).sum();
        spec.min = spec.min.or((total >= 0).then(|| u32::try_from(total).unwrap_or(u32::MAX)));
        let [only] = of.spec.pod_sets.as_slice() else { return spec };
        let request = only.topology_request.iter();
        for request in request {
            let at = "spec.podSets[0].topologyRequest";
            let mut add = |level: &Option<String>, required: bool, field: &str| {
                spec.wishes.extend(level.as_deref().map(|label| by_label(label, required, field)));
            };
            add(&request.required, true, &format!("{at}.required"));
            add(&request.preferred, false, &format!("{at}.preferred"));
            let slices = request.pod_set_slice_required_topology.as_deref();
            let size = request.pod_set_slice_size.and_then(|size| u32::try_from(size).ok());
            spec.wishes.extend(slices.map(|label| Wish {
                segment: size,
                ..by_label(label, true, &format!("{at}.podSetSliceRequiredTopology"))
            }));
        }
        spec
    }

    /// A group of the first version of Workload, `NAME.GROUP` or `NAME.GROUP.KEY`.
    fn in_workload(&self, key: &GroupKey) -> Option<Spec> {
        let namespace = &key.object.namespace;
        let mut templates = self.objects.scheduling_in(SchedulingKind::Templates, namespace);
        templates.find_map(|(scoped, object)| {
            let Scheduling::Templates(of) = object else { return None };
            let rest = key.object.name.strip_prefix(scoped.name.as_str())?.strip_prefix('.')?;
            let is = |group: &&PodGroupSpec| {
                rest.strip_prefix(group.name.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            of.spec.pod_groups.iter().find(is).map(upstream)
        })
    }

    /// A group of groups: each group is a part, and so is each group of groups below it.
    fn composite(&self, key: &GroupKey) -> Spec {
        let mut spec = Spec::default();
        let mut groups = self.objects.groups_below(&key.object);
        groups.sort();
        let own = (SchedulingKind::CompositePodGroup, key.object.clone());
        let own = match self.objects.scheduling.get(&own).map(|record| &*record.object) {
            Some(Scheduling::CompositePodGroup(of)) => Some(&of.spec),
            Some(_) | None => None,
        };
        let Some(own) = own else {
            let missing = absence(SchedulingKind::CompositePodGroup, &key.object.name);
            return Spec { missing: Some(missing), ..spec };
        };
        spec.wishes = constraints(own);
        spec.priority = priority(own);
        let at = "spec.schedulingPolicy.gang.minGroupCount";
        let mut notes = Vec::new();
        let fewest = own.scheduling_policy.gang.as_ref();
        let fewest = fewest.map(|gang| at_least(gang.min_group_count, 1, "groups", at, &mut notes));
        spec.notes = notes;
        spec.is_each = fewest.is_none();
        let (all, below) = self.below(key, &groups);
        let at = |parent: &Name| all.keys().position(|(name, pods)| !pods && name == parent);
        let node = |((name, is_group), (parent, of)): (&Member, &(Option<Name>, &PodGroupSpec))| {
            // Without a gang policy one is enough; what is odd is told below.
            let at_once = below_minimum(of, false, &mut Vec::new()).unwrap_or(1);
            Node {
                name: name.clone(),
                parent: parent.as_ref().and_then(at),
                fewest: Some(at_once).filter(|_| !is_group),
            }
        };
        let nodes: Vec<Node> = all.iter().map(node).collect();
        let fewest = fewest.unwrap_or(0);
        let own = nodes.iter().filter(|node| node.parent.is_none()).count();
        if (own as u64) < u64::from(fewest) {
            spec.few = Some(words::too_few_groups(fewest, own));
        }
        spec.units = units(Some(fewest), &nodes);
        for (((name, is_group), (parent, of)), unit) in all.iter().zip(&spec.units.of) {
            let kind = match is_group {
                true => SchedulingKind::PodGroup,
                false => SchedulingKind::CompositePodGroup,
            };
            let scoped = Scoped { namespace: key.object.namespace.clone(), name: name.clone() };
            let about = object(Kind::Scheduling(kind), &scoped);
            let mut notes = Vec::new();
            let min = below_minimum(of, *is_group, &mut notes);
            spec.told.extend(notes.into_iter().map(|note| (about.clone(), note)));
            let object = Some(about);
            // Of a group without a gang policy one pod counts for what it is under.
            let min = min.or(Some(1).filter(|_| parent.is_some() || !spec.is_each));
            let names = match below.get(name).filter(|_| !is_group) {
                Some(names) => names.clone(),
                None => vec![name.clone()],
            };
            let min = min.filter(|_| *is_group);
            spec.parts.push(Part { names, min, unit: *unit, wishes: constraints(of), object });
        }
        spec
    }

    /// Each group of a group of groups, and each group of groups below it, with what it is under; and the
    /// groups that are below each.
    fn below(&self, key: &GroupKey, groups: &[Scoped]) -> (Tree<'_>, BTreeMap<Name, Vec<Name>>) {
        let namespace = &key.object.namespace;
        let mut all = Tree::new();
        let mut below: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
        for scoped in groups {
            let record = self.objects.scheduling.get(&(SchedulingKind::PodGroup, scoped.clone()));
            let Some(Scheduling::PodGroup(of)) = record.map(|record| &*record.object) else {
                continue;
            };
            let parents = self.objects.parents(scoped);
            let parents = parents.into_iter().take_while(|name| *name != key.object.name);
            let parents: Vec<Name> = parents.collect();
            all.insert((scoped.name.clone(), true), (parents.first().cloned(), &of.spec));
            for (at, parent) in parents.iter().enumerate() {
                below.entry(parent.clone()).or_default().push(scoped.name.clone());
                let object = Scoped { namespace: namespace.clone(), name: parent.clone() };
                let record = &(SchedulingKind::CompositePodGroup, object);
                let record = self.objects.scheduling.get(record).map(|record| &*record.object);
                if let Some(Scheduling::CompositePodGroup(of)) = record {
                    let known = (parents.get(at + 1).cloned(), &of.spec);
                    all.entry((parent.clone(), false)).or_insert(known);
                }
            }
        }
        (all, below)
    }
}

/// The fewest pods of a group below a group of groups, or groups; none where each starts by itself.
fn below_minimum(of: &PodGroupSpec, is_group: bool, notes: &mut Vec<Note>) -> Option<u32> {
    let gang = of.scheduling_policy.gang.as_ref()?;
    Some(match is_group {
        true => fewest(gang.min_count, 1, "spec.schedulingPolicy.gang.minCount", notes),
        false => {
            let at = "spec.schedulingPolicy.gang.minGroupCount";
            at_least(gang.min_group_count, 1, "groups", at, notes)
        }
    })
}

/// That an object that declares a gang is not there.
fn absence(kind: SchedulingKind, name: &Name) -> String {
    format!("{} {name} is not in the input", kind.as_str())
}

/// The gangs of Koordinator that are bound together, each with the fewest pods that its own say; one of
/// which no pod is there needs some.
fn bound_parts(key: &GroupKey, drafts: &[Draft]) -> Vec<Part> {
    let gangs = || drafts.iter().filter_map(|draft| draft.marks.as_deref()?.gang.as_ref());
    if gangs().all(|gang| gang.own.is_none()) {
        return Vec::new();
    }
    let part = |name: &str| {
        let own = gangs().filter(|gang| gang.own.as_ref().is_some_and(|own| own.as_str() == name));
        let min = own.filter_map(|gang| gang.min).max().unwrap_or(1);
        Part { names: vec![Name::new(name)], min: Some(min), ..Part::default() }
    };
    key.object.name.split(BOUND).map(part).collect()
}

/// The fewest pods that marks of pods say, where they do.
fn marked_min(drafts: &[Draft]) -> Option<u32> {
    let named = drafts.iter().filter_map(|draft| draft.marks.as_deref()?.gang.as_ref()?.min);
    named.max()
}

/// What an object says of the gang that it is.
fn of_object(object: &Scheduling, drafts: &[Draft]) -> Option<Spec> {
    match object {
        Scheduling::PodGroup(of) => Some(upstream(&of.spec)),
        Scheduling::Coscheduling(of) => {
            let annotated =
                of.metadata.annotations.get("gang.scheduling.koordinator.sh/min-available");
            let annotated = annotated.and_then(|least| least.parse().ok());
            let min = u32::try_from(of.spec.min_member).ok().filter(|min| *min > 0).or(annotated);
            let mut notes = Vec::new();
            if of.spec.min_member < 0 {
                fewest(of.spec.min_member, 1, "spec.minMember", &mut notes);
            }
            Some(Spec { min: Some(min.unwrap_or(1)), notes, ..Spec::default() })
        }
        Scheduling::VolcanoPodGroup(of) => Some(volcano::spec(of, drafts)),
        Scheduling::KaiPodGroup(of) => Some(kai(of)),
        Scheduling::PodGang(of) => Some(grove(of)),
        Scheduling::CompositePodGroup(_)
        | Scheduling::Templates(_)
        | Scheduling::KueueWorkload(_)
        | Scheduling::KueueTopology(_)
        | Scheduling::KaiTopology(_)
        | Scheduling::HyperNode(_)
        | Scheduling::ComputeDomain(_) => None,
    }
}

fn upstream(of: &PodGroupSpec) -> Spec {
    let mut notes = Vec::new();
    let at = "spec.schedulingPolicy.gang.minCount";
    let min = of.min_count().map(|min| fewest(min, 1, at, &mut notes));
    Spec {
        min: Some(min.unwrap_or(0)),
        is_each: min.is_none(),
        notes,
        wishes: constraints(of),
        priority: priority(of),
        ..Spec::default()
    }
}

fn priority(of: &PodGroupSpec) -> Option<PriorityFrom> {
    let value = of.priority.map(PriorityFrom::Value);
    value.or_else(|| class(&of.priority_class_name))
}

pub(super) fn class(name: &str) -> Option<PriorityFrom> {
    (!name.is_empty()).then(|| PriorityFrom::Class(Name::new(name)))
}

fn constraints(of: &PodGroupSpec) -> Vec<Wish> {
    let keys = of.scheduling_constraints.iter().flat_map(|of| &of.topology);
    keys.map(|of| by_label(&of.key, true, "spec.schedulingConstraints.topology")).collect()
}

fn by_label(label: &str, required: bool, field: &str) -> Wish {
    let level = LevelName::Label(Name::new(label));
    Wish { level, required, segment: None, field: Name::new(field) }
}

/// The fewest pods as an API says them, which it lets be this few at least: less is told of and read as
/// that.
pub(super) fn fewest(given: i32, least: u32, field: &str, notes: &mut Vec<Note>) -> u32 {
    at_least(given, least, "pods", field, notes)
}

/// The same of what is counted.
fn at_least(given: i32, least: u32, of: &str, field: &str, notes: &mut Vec<Note>) -> u32 {
    match u32::try_from(given) {
        Ok(number) if number >= least => number,
        Ok(_) | Err(_) => {
            let what = if given == 0 { "0, or none given," } else { &*given.to_string() };
            let message = format!(
                "{what} is no number of {of} that start at once: the API server refuses what is less \
                 than {least}. It is read as {least}."
            );
            notes.push((Severity::Error, field.to_owned(), message));
            least
        }
    }
}

pub(super) fn number(of: Option<i32>) -> Option<u32> {
    of.and_then(|number| u32::try_from(number).ok())
}

fn kai(of: &phalanx_objects::scheduling::KaiPodGroup) -> Spec {
    let spec = &of.spec;
    let wishes = kai_wishes(spec.topology_constraint.as_ref(), "spec.topologyConstraint");
    let mut parts = Vec::new();
    let node = |sub: &KaiSubGroup| Node {
        name: Name::new(&sub.name),
        parent: sub
            .parent
            .as_ref()
            .filter(|name| !name.is_empty())
            .and_then(|name| spec.sub_groups.iter().position(|other| other.name == *name)),
        fewest: number(sub.min_sub_group),
    };
    let nodes: Vec<Node> = spec.sub_groups.iter().map(node).collect();
    let units = units(number(spec.min_sub_group), &nodes);
    for ((at, sub), unit) in spec.sub_groups.iter().enumerate().zip(&units.of) {
        let field = format!("spec.subGroups[{at}].topologyConstraint");
        let is_leaf = !spec.sub_groups.iter().any(|other| other.parent.as_ref() == Some(&sub.name));
        let mut names = vec![Name::new(&sub.name)];
        let mut known = 0;
        // Those below it, level by level.
        while known < names.len() {
            let above = names[known].to_string();
            let below =
                spec.sub_groups.iter().filter(|other| other.parent.as_ref() == Some(&above));
            for name in below.map(|other| Name::new(&other.name)) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            known += 1;
        }
        // What is there whole or not at all has a pod.
        let min = match unit {
            Some(_) => Some(number(sub.min_member).unwrap_or(1).max(1)),
            None => number(sub.min_member),
        };
        let min = min.filter(|_| is_leaf);
        let wishes = kai_wishes(sub.topology_constraint.as_ref(), &field);
        parts.push(Part { names, min, unit: *unit, wishes, object: None });
    }
    let mut notes = Vec::new();
    let min = spec.min_member.map(|min| fewest(min, 0, "spec.minMember", &mut notes));
    let none = spec.sub_groups.is_empty();
    Spec {
        notes,
        min: if none { Some(min.unwrap_or(0)) } else { min },
        is_each: none && min.unwrap_or(0) == 0,
        parts,
        units,
        wishes,
        priority: class(&spec.priority_class_name),
        ..Spec::default()
    }
}

fn kai_wishes(of: Option<&KaiTopologyConstraint>, field: &str) -> Vec<Wish> {
    let Some(of) = of else { return Vec::new() };
    let level = |label: &str| LevelName::OfKai(Name::new(&of.topology), Name::new(label));
    let asked = [
        (of.required_topology_level.as_str(), true, "requiredTopologyLevel"),
        (of.preferred_topology_level.as_str(), false, "preferredTopologyLevel"),
    ];
    let given = asked.into_iter().filter(|(label, ..)| !label.is_empty());
    let wish = |(label, required, name): (&str, bool, &str)| Wish {
        level: level(label),
        required,
        segment: None,
        field: Name::new(&format!("{field}.{name}")),
    };
    given.map(wish).collect()
}

fn grove(of: &phalanx_objects::scheduling::PodGang) -> Spec {
    let spec = &of.spec;
    let mut parts = Vec::new();
    for (at, group) in spec.pod_groups.iter().enumerate() {
        let field = format!("spec.podgroups[{at}].topologyConstraint.packConstraint");
        let wishes = grove_wishes(group.topology_constraint.as_ref(), &field);
        let names = vec![Name::new(&group.name)];
        let min = number(Some(group.min_replicas));
        parts.push(Part { names, min, wishes, ..Part::default() });
    }
    for (at, config) in spec.topology_constraint_group_configs.iter().enumerate() {
        let field = format!("spec.topologyConstraintGroupConfigs[{at}].topologyConstraint");
        let wishes = grove_wishes(config.topology_constraint.as_ref(), &field);
        let names = config.pod_group_names.iter().map(|name| Name::new(name)).collect();
        parts.push(Part { names, wishes, ..Part::default() });
    }
    Spec {
        min: None,
        parts,
        wishes: grove_wishes(
            spec.topology_constraint.as_ref(),
            "spec.topologyConstraint.packConstraint",
        ),
        priority: class(&spec.priority_class_name),
        ..Spec::default()
    }
}

fn grove_wishes(of: Option<&GroveTopologyConstraint>, field: &str) -> Vec<Wish> {
    let Some(pack) = of.and_then(|of| of.pack_constraint.as_ref()) else { return Vec::new() };
    let required = pack.required.as_deref().map(|label| by_label(label, true, field));
    let preferred = pack.preferred.as_deref().map(|label| by_label(label, false, field));
    required.into_iter().chain(preferred).collect()
}

pub(super) fn total(counts: impl Iterator<Item = u32>) -> u32 {
    counts.fold(0, u32::saturating_add)
}
