//! Gangs: pods that start together, whoever declares it. Which pods and roles are of which gang is told
//! here, and a gang lowered to one group of the engine; what its API says of it is [`spec`]'s.

mod minima;
mod odd;
mod refused;
mod rules;
mod spec;
mod units;
mod volcano;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_engine::{
    Admits, Change, Fault, Gate, Group, GroupKey, Member, Minimum, Name, PodKey, Reason, Request,
    Role, Scoped, Shared, Since,
};
use phalanx_objects::scheduling::{Scheduling, SchedulingKind};
use phalanx_objects::{Kind, ObjectRef};

use super::absorb::{change, findings};
use super::claim::Wish as Nearness;
use super::forest::Trees;
use super::found::Found;
use super::look::PodInfo;
use super::record::{Life, PodRecord};
use super::settle::{Planned, distinct, object, workload_kind};
use super::slice::Note;
use super::workload::{Marks, RoleRecord, Wish, WorkloadRecord};
use super::{Lowering, Objects};
use crate::finding::{Finding, Severity};
use minima::{HalfPart, Minima};
use rules::{Kept, Rules};
use spec::Spec;
use volcano::Subgroups;

/// What workloads have still to make, each worked out once.
type AllPlanned = BTreeMap<GroupKey, Arc<Vec<Planned>>>;

/// A part of a gang of which some pods run, and fewer than make it whole.
#[derive(Clone, Debug)]
pub(crate) struct HalfStarted {
    pub(crate) name: Name,
    pub(crate) needs: u32,
    /// Its pods that run.
    pub(crate) pods: BTreeSet<String>,
    /// Others of it wait.
    pub(crate) waits: bool,
}

/// A member on a node.
#[derive(Clone, Debug)]
pub(crate) struct RunningMember {
    /// Empty where its workload has no roles.
    pub(crate) role: String,
    pub(crate) rank: Option<u32>,
    pub(crate) index: Option<u32>,
    pub(crate) pod: String,
    pub(crate) node: String,
    /// How many devices it holds by its claims.
    pub(crate) devices: u32,
}

/// Something to say of an object.
type Told = (ObjectRef, Note);

/// A gang as it was lowered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// Its roles, as the engine numbers them.
    pub(crate) lines: Vec<Line>,
    /// Labels that it names as levels.
    labels: BTreeSet<Name>,
    /// What there is to say of it.
    notes: Vec<Note>,
    /// The object that it is said of.
    about: Option<ObjectRef>,
    /// What there is to say of other objects.
    told: Vec<Told>,
    /// The object that declares it is not there.
    is_absent: bool,
    /// Pods that it starts with, those that run included.
    needed: u64,
    /// Parts beyond those that started in part.
    halves: Vec<HalfPart>,
    /// Where it is to be, each rule with the field that says so.
    rules: Vec<Kept>,
}

/// A role of a gang: pods that are alike.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The workload and its role, where they have one.
    pub(crate) of: Option<(GroupKey, u16)>,
    /// Its pods that exist.
    pub(crate) pods: Vec<PodKey>,
    /// The indexes of those that do not.
    pub(crate) planned: Vec<u32>,
    /// The pods are on nodes.
    pub(crate) running: bool,
    /// They are being deleted there: nothing of the gang runs by them.
    pub(crate) going: bool,
}

/// A role under way.
struct Draft {
    line: Line,
    name: Name,
    /// The part of the gang that it is.
    part: Option<Name>,
    /// The subgroup that labels say, empty for none; where labels tell.
    subgroup: Option<Name>,
    request: Shared<Request>,
    first_rank: u32,
    members: Vec<(PodKey, Member)>,
    least: Option<u32>,
    /// So many of its pods at a time start beyond those that must.
    part_size: Option<u32>,
    marks: Option<Box<Marks>>,
    admits: Option<Box<Admits>>,
    gates: Box<[Name]>,
}

impl Draft {
    fn len(&self) -> u32 {
        let all = self.line.pods.len() + self.line.planned.len();
        u32::try_from(all).unwrap_or(u32::MAX)
    }

    /// The indexes of its pods in order; none where a pod has none.
    fn indexes(&self) -> Vec<u32> {
        let there = self.members.iter().map(|(_, member)| member.index);
        let all = there.chain(self.line.planned.iter().map(|index| Some(*index)));
        let mut all: Vec<u32> = all.collect::<Option<_>>().unwrap_or_default();
        all.sort_unstable();
        all
    }

    /// Whether its pods count as started.
    fn counts(&self) -> bool {
        self.line.running && !self.line.going
    }

    /// Whether it is of one of these parts.
    fn is_of(&self, parts: &[Name]) -> bool {
        [&self.part, &self.subgroup].into_iter().flatten().any(|part| parts.contains(part))
    }

    fn wishes(&self) -> &[Wish] {
        self.marks.as_deref().map_or(&[], |marks| &marks.wishes)
    }
}

impl Lowering {
    /// The gang that a pod is of.
    pub(super) fn gang_of_pod(&self, key: &PodKey, record: &PodRecord) -> Option<GroupKey> {
        let root = self.root_of_pod(record);
        let whole = root.clone().filter(|root| {
            self.objects.workloads.get(root).is_some_and(|workload| workload.gang.is_some())
        });
        let own = || self.own_gang_of_pod(root.as_ref()?, record);
        whole.or_else(own).or_else(|| self.marked(&key.0.namespace, record.marks.as_deref()))
    }

    /// The gang that a pod is of as one of the role of its workload, without naming it.
    fn own_gang_of_pod(&self, root: &GroupKey, pod: &PodRecord) -> Option<GroupKey> {
        let record = self.objects.workloads.get(root)?;
        if !record.roles.iter().any(|role| role.gang_is_own) {
            return None;
        }
        let role = record.roles.get(usize::from(self.seat_of(root, pod)?.role))?;
        let marks = role.marks.as_deref().filter(|_| role.gang_is_own)?;
        marks.group_in(&root.object.namespace)
    }

    /// The gang that the pods of a role are of.
    pub(super) fn gang_of_role(
        &self,
        key: &GroupKey,
        record: &WorkloadRecord,
        role: usize,
    ) -> Option<GroupKey> {
        if record.gang.is_some() {
            return Some(key.clone());
        }
        let marks = record.roles.get(role)?.marks.as_deref();
        self.marked(&key.object.namespace, marks)
    }

    /// The gang that marks name: that which is above all others, where it is part of another.
    fn marked(&self, namespace: &Name, marks: Option<&Marks>) -> Option<GroupKey> {
        let key = marks?.group_in(namespace)?;
        if key.kind.as_str() != SchedulingKind::PodGroup.word() {
            return Some(key);
        }
        let parents = self.objects.parents(&key.object);
        Some(parents.last().map_or(key, |name| composite(namespace, name)))
    }

    /// Lowers gangs that are marked.
    /// Answers the trees that objects and labels say there are, where they were looked at.
    pub(super) fn settle_gangs(&mut self, changes: &mut Vec<Change>) -> Trees {
        for namespace in std::mem::take(&mut self.dirty.gang_namespaces) {
            self.mark_gangs_of(&namespace);
        }
        let mut dirty = distinct(&mut self.dirty.gangs);
        if dirty.is_empty() && !self.dirty.trees {
            return Trees::new();
        }
        let shown = self.shown_trees();
        let trees = if self.dirty.trees { self.said_trees() } else { shown.clone() };
        // Where nodes are is no matter here: only what levels there are.
        let alike = shown.len() == trees.len()
            && shown.iter().zip(&trees).all(|(a, b)| a.0 == b.0 && a.1.is_read_like(b.1));
        if !alike {
            dirty.extend(self.shown.gangs.keys().cloned());
        }
        // A group that has become part of another is asked through it.
        let above: Vec<GroupKey> = dirty.iter().filter_map(|key| self.above(key)).collect();
        dirty.extend(above);
        let mut planned = AllPlanned::new();
        for key in distinct(&mut dirty) {
            self.settle_gang(&key, &trees, &mut planned, changes);
        }
        trees
    }

    pub(super) fn above(&self, key: &GroupKey) -> Option<GroupKey> {
        if key.kind.as_str() != SchedulingKind::PodGroup.word() {
            return None;
        }
        let parents = self.objects.parents(&key.object);
        Some(composite(&key.object.namespace, parents.last()?))
    }

    fn settle_gang(
        &mut self,
        key: &GroupKey,
        trees: &Trees,
        planned: &mut AllPlanned,
        changes: &mut Vec<Change>,
    ) {
        let mut drafts = Vec::new();
        let subgroups = self.subgroups_of(key);
        let (mut priority, mut since, mut run_max) = (i32::MIN, None::<Since>, None);
        for (workload, roles) in self.roles_of_gang(key) {
            let Some(record) = self.objects.workloads.get(&workload).cloned() else { continue };
            let all = match planned.get(&workload) {
                Some(known) => known.clone(),
                None => Arc::new(self.roles(&workload, &record).0),
            };
            planned.insert(workload.clone(), Arc::clone(&all));
            self.plan_roles((&workload, &record), &roles, (&all, subgroups.as_ref()), &mut drafts);
            if drafts.iter().any(|draft| draft.line.of.as_ref().is_some_and(|of| of.0 == workload))
            {
                let named = roles.iter().filter_map(|at| record.roles.get(usize::from(*at)));
                for role in named {
                    priority = priority.max(self.priority(&role.priority).0);
                    run_max = run_max.max(role.run_max_millis);
                }
                since = since.into_iter().chain([record.header.since()]).min();
            }
        }
        for pod in self.pods_of_gang(key) {
            let Some(record) = self.objects.pods.get(&pod).cloned() else { continue };
            priority = priority.max(self.priority(&record.priority).0);
            since = since.into_iter().chain([record.header.since()]).min();
            run_max = run_max.max(record.run_max_millis);
            self.plan_pod((&pod, &record), key, subgroups.as_ref(), &mut drafts);
        }
        drafts.sort_by_key(|draft| (draft.line.running, draft.line.of.clone(), draft.name.clone()));
        let old = self.shown.gangs.remove(key);
        let old_labels = old.as_ref().map(|old| old.labels.clone()).unwrap_or_default();
        if drafts.is_empty() {
            self.forget_labels(key, &old_labels, &BTreeSet::new());
            if old.is_some() {
                changes.push(Change::Group(key.clone(), None));
            }
            return;
        }
        let spec = self.spec_of(key, &drafts);
        let mut rules = self.rules_of(key, &spec, &drafts, trees);
        self.forget_labels(key, &old_labels, &rules.labels);
        let priority = spec.priority.as_ref().map_or(priority, |from| self.priority(from).0);
        let minima = minima::minima(&spec, &drafts);
        let gates = gates(&drafts, &minima);
        let (roles, whole) = self.roles_with_minima(&spec, &minima, &drafts);
        let group = Group {
            rules: rules.kept.iter().map(|kept| kept.rule.clone()).collect(),
            minimum: if whole || !spec.is_each { Minimum::Gang } else { Minimum::Each },
            parts: minima.parts.clone(),
            gate: if gates.is_empty() { Gate::Open } else { Gate::Gated(gates) },
            ..self.group_with(roles, priority, since.unwrap_or(Since::Input(0)), run_max)
        };
        changes.push(Change::Group(key.clone(), Some(group)));
        for (role, draft) in drafts.iter().enumerate() {
            for (pod, member) in &draft.members {
                let role = u16::try_from(role).unwrap_or(u16::MAX);
                let member = Member { role, ..member.clone() };
                changes.push(Change::Member(pod.clone(), Some(member)));
                self.shown.gang_of.insert(pod.clone(), key.clone());
            }
        }
        rules.notes.extend(spec.notes.iter().cloned());
        let shown = self.shown_gang(key, rules, (spec, minima), drafts);
        self.shown.gangs.insert(key.clone(), shown);
    }

    /// What is kept of a gang.
    fn shown_gang(
        &self,
        key: &GroupKey,
        Rules { kept: rules, labels, mut notes, told: of_others }: Rules,
        (spec, minima): (Spec, Minima),
        drafts: Vec<Draft>,
    ) -> Shown {
        notes.extend(odd::notes(&drafts));
        notes.extend(self.together(key, &drafts));
        notes.extend(odd::merged(key, &drafts));
        notes.extend(self.unnumbered_slices(&drafts));
        let mut told = spec.told;
        told.extend(of_others);
        told.extend(self.strays(key, &drafts));
        let Minima { needed, halves, .. } = minima;
        Shown {
            lines: drafts.into_iter().map(|draft| draft.line).collect(),
            labels,
            notes,
            about: spec.about,
            told,
            is_absent: spec.missing.is_some(),
            needed,
            halves,
            rules,
        }
    }

    fn forget_labels(&mut self, key: &GroupKey, old: &BTreeSet<Name>, new: &BTreeSet<Name>) {
        for label in old.difference(new) {
            change(&mut self.index.levels, label.clone(), key.clone(), false);
            self.dirty.trees = true;
        }
        for label in new.difference(old) {
            change(&mut self.index.levels, label.clone(), key.clone(), true);
            self.dirty.trees = true;
        }
    }

    /// The keys by which pods name a gang: its own, and of a group of groups those of its groups.
    pub(super) fn named_as(&self, key: &GroupKey) -> Vec<GroupKey> {
        if key.kind.as_str() != SchedulingKind::CompositePodGroup.word() {
            return vec![key.clone()];
        }
        let groups = self.objects.groups_below(&key.object);
        let kind = Name::new(SchedulingKind::PodGroup.word());
        groups.into_iter().map(|object| GroupKey { object, kind: kind.clone() }).collect()
    }

    /// The roles of workloads that are of a gang.
    fn roles_of_gang(&self, key: &GroupKey) -> BTreeMap<GroupKey, Vec<u16>> {
        let mut all: BTreeMap<GroupKey, Vec<u16>> = BTreeMap::new();
        if let Some(record) = self.objects.workloads.get(key).filter(|of| of.gang.is_some()) {
            let roles = 0..u16::try_from(record.roles.len()).unwrap_or(u16::MAX);
            all.insert(key.clone(), roles.collect());
        }
        for name in self.named_as(key) {
            for (workload, role) in self.index.gang_roles.get(&name).into_iter().flatten() {
                let Some(record) = self.objects.workloads.get(workload) else { continue };
                if self.gang_of_role(workload, record, usize::from(*role)).as_ref() == Some(key) {
                    all.entry(workload.clone()).or_default().push(*role);
                }
            }
        }
        all
    }

    /// The pods of a gang that the engine sees.
    fn pods_of_gang(&self, key: &GroupKey) -> Vec<PodKey> {
        self.all_pods_of_gang(key, Life::is_seen)
    }

    /// The pods of a gang that have ended or are another scheduler's.
    pub(crate) fn unseen_of_gang(&self, key: &GroupKey) -> Vec<PodKey> {
        self.all_pods_of_gang(key, |life| !life.is_seen())
    }

    fn all_pods_of_gang(&self, key: &GroupKey, lives: impl Fn(&Life) -> bool) -> Vec<PodKey> {
        let mut all: BTreeSet<PodKey> = BTreeSet::new();
        if let Some(record) = self.objects.workloads.get(key).filter(|of| of.gang.is_some()) {
            all.extend(self.owned(key, record).map(|(pod, _)| pod.clone()));
        }
        for name in self.named_as(key) {
            all.extend(self.index.members.get(&name).into_iter().flatten().cloned());
        }
        // Pods of such a role do not name it themselves.
        for (workload, role) in self.index.gang_roles.get(key).into_iter().flatten() {
            let Some(record) = self.objects.workloads.get(workload) else { continue };
            if record.roles.get(usize::from(*role)).is_some_and(|role| role.gang_is_own) {
                all.extend(self.owned(workload, record).map(|(pod, _)| pod.clone()));
            }
        }
        let is = |pod: &PodKey| {
            let record = self.objects.pods.get(pod);
            record.is_some_and(|record| {
                lives(&record.life) && self.gang_of_pod(pod, record).as_ref() == Some(key)
            })
        };
        all.into_iter().filter(is).collect()
    }

    /// The pods that workloads have still to make.
    fn plan_roles(
        &self,
        (key, record): (&GroupKey, &WorkloadRecord),
        roles: &[u16],
        (all, subgroups): (&[Planned], Option<&Subgroups>),
        drafts: &mut Vec<Draft>,
    ) {
        for planned in all {
            let Some(role) = record.roles.get(usize::from(planned.at)) else { continue };
            if !roles.contains(&planned.at) || planned.indexes.is_empty() {
                continue;
            }
            drafts.push(Draft {
                line: Line {
                    of: Some((key.clone(), planned.at)),
                    pods: Vec::new(),
                    planned: planned.indexes.clone(),
                    running: false,
                    going: false,
                },
                name: role.name.clone(),
                part: self.part(role.marks.as_deref(), &role.name),
                subgroup: subgroups.map(|of| of.of(&role.labels)),
                request: planned.role.request.clone(),
                first_rank: planned.role.first_rank,
                members: Vec::new(),
                least: role.least,
                part_size: role.part_size,
                marks: role.marks.clone(),
                admits: planned.role.admits.clone(),
                gates: planned.gates.clone(),
            });
        }
    }

    /// The part of its gang that marks and a role's name say.
    fn part(&self, marks: Option<&Marks>, role: &Name) -> Option<Name> {
        let own = marks.and_then(|marks| marks.part.clone());
        // In a group of groups each group is a part.
        let named = marks.and_then(|marks| marks.gang.as_ref());
        let upstream = named.filter(|gang| gang.kind.as_str() == SchedulingKind::PodGroup.word());
        let group = upstream.map(|gang| gang.name.clone());
        group.or(own).or_else(|| Some(role.clone()).filter(|name| !name.is_empty()))
    }

    /// A pod that exists.
    fn plan_pod(
        &mut self,
        (key, record): (&PodKey, &PodRecord),
        gang: &GroupKey,
        subgroups: Option<&Subgroups>,
        drafts: &mut Vec<Draft>,
    ) {
        let Some(phase) = super::settle::phase(&record.life) else { return };
        let running = !phase.is_pending();
        let going = matches!(record.life, Life::Terminating(..));
        let parts = self.pod_parts(key, record);
        let of = parts.parent.clone().zip(parts.seat.as_ref().map(|seat| seat.role));
        let rank = record.marks.as_deref().and_then(|marks| marks.rank);
        let own = parts.seat.as_ref().and_then(|seat| seat.rank.or(seat.index));
        let member = Member {
            group: gang.clone(),
            role: 0,
            index: rank.or(own),
            phase,
            claims: parts.claims,
            expected_end: record.expected_end,
            nominated: record.nominated.clone(),
        };
        let name = parts.seat.as_ref().map_or_else(|| Name::new(""), |seat| seat.name.clone());
        let part = self.part(record.marks.as_deref(), &name);
        let subgroup = subgroups.map(|of| of.of(&record.labels));
        let fits = |draft: &&mut Draft| {
            draft.line.of == of
                && (draft.line.running, draft.line.going) == (running, going)
                && draft.request == parts.request
                && (&draft.part, &draft.subgroup) == (&part, &subgroup)
                && draft.admits == parts.admits
                && draft.gates == record.shape.gates
        };
        if let Some(draft) = drafts.iter_mut().find(fits) {
            draft.line.pods.push(key.clone());
            draft.members.push((key.clone(), member));
            return;
        }
        let role = of.as_ref().and_then(|(workload, role)| {
            self.objects.workloads.get(workload)?.roles.get(usize::from(*role))
        });
        drafts.push(Draft {
            line: Line { of, pods: vec![key.clone()], planned: Vec::new(), running, going },
            name,
            part,
            subgroup,
            request: parts.request,
            first_rank: 0,
            members: vec![(key.clone(), member)],
            least: role.and_then(|role| role.least),
            part_size: role.and_then(|role| role.part_size),
            marks: marks_of(record, role),
            admits: parts.admits,
            gates: record.shape.gates.clone(),
        });
    }

    /// The engine's roles: of each the fewest that must start, and what keeps all of them back while
    /// there are too few pods. Says whether any must.
    fn roles_with_minima(
        &mut self,
        spec: &Spec,
        minima: &Minima,
        drafts: &[Draft],
    ) -> (Vec<Role>, bool) {
        let incomplete = spec.incomplete(minima).map(|(subject, detail)| Fault {
            reason: Reason::GroupIncomplete,
            subject: self.interned.names.get(&subject),
            detail: self.interned.names.get(&detail),
        });
        let mut whole = false;
        let mut roles = Vec::with_capacity(drafts.len());
        for (at, (draft, min)) in drafts.iter().zip(&minima.least).enumerate() {
            let lacking = minima.kept_out.get(&at).map(|(reason, text)| {
                let (none, text) = (self.interned.names.get(""), self.interned.names.get(text));
                // Of gates all are in the detail.
                let (subject, detail) =
                    if *reason == Reason::Gated { (none, text) } else { (text, none) };
                Fault { reason: *reason, subject, detail }
            });
            let kept_back = incomplete.clone().or(lacking).filter(|_| !draft.line.running);
            whole |= *min > 0;
            roles.push(Role {
                name: draft.name.clone(),
                request: draft.request.clone(),
                min: if draft.line.running { 0 } else { *min },
                max: draft.len(),
                segment: None,
                first_rank: draft.first_rank,
                admits: match kept_back {
                    Some(fault) => Some(Box::new(Admits { most: 0, fault })),
                    None => draft.admits.clone(),
                },
            });
        }
        let in_parts = !minima.parts.all.is_empty() || !minima.parts.any.is_empty();
        (roles, whole || incomplete.is_some() || in_parts)
    }

    /// The objects of the groups that marks name: the group, and those that it is part of, nearest
    /// first.
    pub(super) fn groups_named(
        &self,
        namespace: &Name,
        marks: Option<&Marks>,
    ) -> Vec<(SchedulingKind, Scoped)> {
        let Some(key) = marks.and_then(|marks| marks.group_in(namespace)) else {
            return Vec::new();
        };
        let mut kinds = SchedulingKind::ALL.iter().copied();
        let Some(kind) = kinds.find(|kind| kind.word() == key.kind.as_str()) else {
            return Vec::new();
        };
        let parents = match kind {
            SchedulingKind::PodGroup => self.objects.parents(&key.object),
            SchedulingKind::CompositePodGroup
            | SchedulingKind::Templates
            | SchedulingKind::KueueWorkload
            | SchedulingKind::Coscheduling
            | SchedulingKind::VolcanoPodGroup
            | SchedulingKind::KaiPodGroup
            | SchedulingKind::PodGang
            | SchedulingKind::KueueTopology
            | SchedulingKind::KaiTopology
            | SchedulingKind::HyperNode
            | SchedulingKind::ComputeDomain => Vec::new(),
        };
        let above = parents.into_iter().map(|name| {
            let scoped = Scoped { namespace: namespace.clone(), name };
            (SchedulingKind::CompositePodGroup, scoped)
        });
        std::iter::once((kind, key.object)).chain(above).collect()
    }

    /// The wish for nearness of the groups that marks name: the first that has one.
    pub(super) fn wish_of_groups(
        &self,
        namespace: &Name,
        marks: Option<&Marks>,
    ) -> Option<Nearness> {
        let groups = self.groups_named(namespace, marks);
        let mut records = groups.iter().filter_map(|key| self.objects.scheduling.get(key));
        records.find(|record| is_wish(&record.align)).map(|record| record.align.clone())
    }

    /// Marks the pods of a group that has a wish for nearness, or is part of another group.
    pub(super) fn mark_wishing(&mut self, kind: SchedulingKind, scoped: &Scoped) {
        let record = self.objects.scheduling.get(&(kind, scoped.clone()));
        let wishes = record.is_some_and(|record| is_wish(&record.align));
        let key = GroupKey { object: scoped.clone(), kind: Name::new(kind.word()) };
        if wishes || self.above(&key).is_some() {
            self.mark_members(&key);
        }
    }

    /// The objects of the groups that a pod is in, nearest first.
    pub(crate) fn groups_of(&self, pod: &PodInfo) -> Vec<ObjectRef> {
        let namespace = &pod.key.0.namespace;
        let role = || self.objects.workloads.get(&pod.home)?.roles.get(usize::from(pod.role));
        let marks = match self.objects.pods.get(&pod.key) {
            Some(record) => record.marks.as_deref(),
            None => role().and_then(|role| role.marks.as_deref()),
        };
        let groups = self.groups_named(namespace, marks).into_iter();
        groups.map(|(kind, scoped)| object(Kind::Scheduling(kind), &scoped)).collect()
    }

    /// Pods whose label names a subgroup that their PodGroup of KAI does not have.
    fn strays(&self, key: &GroupKey, drafts: &[Draft]) -> Vec<Told> {
        if key.kind.as_str() != SchedulingKind::KaiPodGroup.word() {
            return Vec::new();
        }
        let record =
            self.objects.scheduling.get(&(SchedulingKind::KaiPodGroup, key.object.clone()));
        let Some(Scheduling::KaiPodGroup(of)) = record.map(|record| &*record.object) else {
            return Vec::new();
        };
        let labelled = drafts.iter().filter_map(|draft| {
            let name = draft.marks.as_deref()?.part.clone()?;
            let pod = draft.line.pods.iter().min().map(|pod| object(Kind::Pod, &pod.0));
            let home = || Some(declaring(&draft.line.of.as_ref()?.0));
            Some((pod.or_else(home)?, name))
        });
        refused::strays(of, &labelled.collect::<Vec<_>>())
    }

    /// The object of a group: the one that declares it, else the one whose pods start together.
    pub(crate) fn object_of_group(&self, key: &GroupKey) -> ObjectRef {
        let declared = declaring(key);
        if self.header(&declared).is_some() {
            return declared;
        }
        let shown = self.shown.gangs.get(key);
        let of = shown.and_then(|shown| shown.lines.iter().find_map(|line| line.of.as_ref()));
        let workload = of.map(|(workload, _)| declaring(workload));
        let about = || shown.and_then(|shown| shown.about.clone());
        workload.or_else(about).unwrap_or(declared)
    }

    /// The objects that declare a group: its own, and of a group of groups those below it.
    pub(crate) fn objects_of_group(&self, key: &GroupKey) -> Vec<ObjectRef> {
        let mut all = vec![declaring(key)];
        if key.kind.as_str() != SchedulingKind::CompositePodGroup.word() {
            return all;
        }
        let mut add = |kind: SchedulingKind, scoped: &Scoped| {
            let of = object(Kind::Scheduling(kind), scoped);
            if !all.contains(&of) {
                all.push(of);
            }
        };
        for group in self.objects.groups_below(&key.object) {
            for name in self.objects.parents(&group) {
                let scoped = Scoped { namespace: group.namespace.clone(), name };
                add(SchedulingKind::CompositePodGroup, &scoped);
            }
            add(SchedulingKind::PodGroup, &group);
        }
        all
    }

    /// That the object that declares a gang is not in the input, which has objects of these kinds.
    fn undeclared_note(&self, key: &GroupKey, kinds: &BTreeSet<SchedulingKind>) -> Option<Note> {
        let Kind::Scheduling(kind) = kind_of(key) else { return None };
        // One that could not be read is told where it is read.
        if self.unread.contains(&declaring(key)) {
            return None;
        }
        let none = match kinds.contains(&kind) {
            true => "",
            false => ", nor is any other of its kind",
        };
        let message = format!(
            "{} {} ({}) is not in the input{none}. The pods that name it wait until it is there.",
            kind.as_str(),
            key.object.name,
            kind.group()
        );
        Some((Severity::Warning, String::new(), message))
    }

    /// What there is to say of gangs.
    pub(super) fn of_gangs(&self) -> Vec<Finding> {
        let mut all = Vec::new();
        let kinds: BTreeSet<SchedulingKind> =
            self.objects.scheduling.keys().map(|(kind, _)| *kind).collect();
        for (key, shown) in &self.shown.gangs {
            let Some(about) = &shown.about else { continue };
            let source = self.header(about).map(|header| header.source.clone()).unwrap_or_default();
            let (mut notes, mut told) = (shown.notes.clone(), shown.told.clone());
            for (object, note) in self.broken(shown).into_iter().chain(self.unknown_levels(shown)) {
                match object {
                    Some(object) => told.push((object, note)),
                    None => notes.push(note),
                }
            }
            if shown.is_absent {
                notes.extend(self.undeclared_note(key, &kinds));
            }
            all.extend(findings(about, &source, notes));
            for (object, note) in &told {
                let source = self.header(object).map(|header| header.source.clone());
                all.extend(findings(object, &source.unwrap_or_default(), vec![note.clone()]));
            }
        }
        all
    }

    /// The workloads that have pods to make, of gangs and of none, by name.
    pub(crate) fn making(&self) -> BTreeSet<&GroupKey> {
        let lines = self.shown.gangs.values().flat_map(|shown| &shown.lines);
        let of_gangs = lines.filter(|line| !line.planned.is_empty());
        let of_gangs = of_gangs.filter_map(|line| line.of.as_ref()).map(|(workload, _)| workload);
        self.shown.workloads.iter().chain(of_gangs).collect()
    }

    /// Whether a workload has pods to make, of those of a gang whether this role has.
    pub(super) fn is_making(&self, workload: &GroupKey, role: u16) -> bool {
        let of = (workload.clone(), role);
        let is_of = |line: &Line| !line.planned.is_empty() && line.of.as_ref() == Some(&of);
        let makes = |gang: GroupKey| {
            self.shown.gangs.get(&gang).is_some_and(|shown| shown.lines.iter().any(is_of))
        };
        let record = self.objects.workloads.get(workload);
        self.shown.workloads.contains(workload)
            || record
                .and_then(|record| self.gang_of_role(workload, record, usize::from(role)))
                .is_some_and(makes)
    }

    /// The gangs that there are.
    pub(crate) fn gangs(&self) -> impl Iterator<Item = &GroupKey> {
        self.shown.gangs.keys()
    }

    /// Whether there is a gang of this key.
    pub(crate) fn is_gang(&self, key: &GroupKey) -> bool {
        self.shown.gangs.contains_key(key)
    }

    /// The gang that a pod is a member of.
    pub(crate) fn gang_of(&self, pod: &PodKey) -> Option<&GroupKey> {
        self.shown.gang_of.get(pod)
    }

    /// All pods of a gang that exist.
    pub(crate) fn pods_in_gang(&self, key: &GroupKey) -> BTreeSet<PodKey> {
        let lines = self.shown.gangs.get(key).into_iter().flat_map(|shown| &shown.lines);
        lines.flat_map(|line| line.pods.iter().cloned()).collect()
    }

    /// How many pods a gang starts with, those that run included.
    pub(crate) fn needed(&self, key: &GroupKey) -> u32 {
        let needed = self.shown.gangs.get(key).map_or(0, |shown| shown.needed);
        u32::try_from(needed).unwrap_or(u32::MAX)
    }

    /// How many pods of a gang run beyond those that it needs.
    pub(crate) fn beyond_needed(&self, key: &GroupKey) -> usize {
        let Some(shown) = self.shown.gangs.get(key) else { return 0 };
        let beyond = u64::from(self.running_of_gang(shown)).saturating_sub(shown.needed);
        usize::try_from(beyond).unwrap_or(usize::MAX)
    }

    /// How many pods of a gang are being deleted on nodes.
    pub(crate) fn leaving_members(&self, key: &GroupKey) -> usize {
        let lines = self.shown.gangs.get(key).into_iter().flat_map(|shown| &shown.lines);
        lines.filter(|line| line.running && line.going).map(|line| line.pods.len()).sum()
    }

    /// The parts of a gang that need not start and started in part.
    pub(crate) fn halves(&self, key: &GroupKey) -> Vec<HalfStarted> {
        let Some(shown) = self.shown.gangs.get(key) else { return Vec::new() };
        let half = |half: &HalfPart| {
            let lines = half.roles.iter().filter_map(|role| shown.lines.get(*role));
            let runs = |line: &&Line| line.running && !line.going;
            let pods = lines.clone().filter(runs).flat_map(|line| &line.pods);
            HalfStarted {
                name: half.name.clone(),
                needs: half.needs,
                pods: pods.map(|pod| pod.0.name.to_string()).collect(),
                waits: lines.clone().any(|line| !line.running),
            }
        };
        shown.halves.iter().map(half).collect()
    }

    /// The members of a gang that are on nodes, those that are being deleted left out.
    pub(crate) fn running_members(&self, key: &GroupKey) -> Vec<RunningMember> {
        let lines = self.shown.gangs.get(key).into_iter().flat_map(|shown| &shown.lines);
        let lines = lines.filter(|line| line.running && !line.going);
        let pods = lines.flat_map(|line| &line.pods);
        let member = |pod: &PodKey| {
            let record = self.objects.pods.get(pod)?;
            let node = record.life.node()?.0.to_string();
            let root = self.root_of_pod(record);
            let seat = root.as_ref().and_then(|root| self.seat_of(root, record));
            let role = seat.as_ref().map_or_else(String::new, |seat| seat.name.to_string());
            let marked = record.marks.as_deref().and_then(|marks| marks.rank);
            let rank = marked.or_else(|| seat.as_ref().and_then(|seat| seat.rank));
            let index = seat.and_then(|seat| seat.index);
            let claims = self.claims_of(pod, record);
            let held = claims.iter().filter_map(|found| match found {
                Found::Named(claim) | Found::Shared(claim) => {
                    self.objects.claims.get(claim)?.held.as_ref()
                }
                Found::Nothing | Found::Own(..) | Found::Fault(_) => None,
            });
            let devices = held.map(|held| held.devices.len()).sum::<usize>();
            let devices = u32::try_from(devices).unwrap_or(u32::MAX);
            let pod = pod.0.name.to_string();
            Some(RunningMember { role, rank, index, pod, node, devices })
        };
        pods.filter_map(member).collect()
    }

    /// How many pods of a gang are on nodes, those that are being deleted left out.
    pub(super) fn running_of_gang(&self, shown: &Shown) -> u32 {
        let lines = shown.lines.iter().filter(|line| line.running && !line.going);
        u32::try_from(lines.map(|line| line.pods.len()).sum::<usize>()).unwrap_or(u32::MAX)
    }
}

impl Objects {
    fn pod_group_parent(&self, scoped: &Scoped) -> Option<&str> {
        let record = self.scheduling.get(&(SchedulingKind::PodGroup, scoped.clone()))?;
        let Scheduling::PodGroup(of) = &*record.object else { return None };
        of.spec.parent_composite_pod_group_name.as_deref().filter(|name| !name.is_empty())
    }

    /// The groups of groups above a PodGroup, nearest first.
    pub(super) fn parents(&self, group: &Scoped) -> Vec<Name> {
        self.ascent(group).names
    }

    /// The PodGroups that a group of groups is above.
    fn groups_below(&self, composite: &Scoped) -> Vec<Scoped> {
        let groups = self.scheduling_in(SchedulingKind::PodGroup, &composite.namespace);
        let below = |scoped: &&Scoped| self.parents(scoped).last() == Some(&composite.name);
        groups.map(|(scoped, _)| scoped).filter(below).cloned().collect()
    }

    /// The objects of a kind in a namespace.
    fn scheduling_in<'s>(
        &'s self,
        kind: SchedulingKind,
        namespace: &'s Name,
    ) -> impl Iterator<Item = (&'s Scoped, &'s Scheduling)> {
        let first = (kind, Scoped { namespace: namespace.clone(), name: Name::new("") });
        let from = self.scheduling.range(first..);
        from.take_while(move |((of, scoped), _)| *of == kind && scoped.namespace == *namespace)
            .map(|((_, scoped), record)| (scoped, &*record.object))
    }
}

/// The gates that hold all of a gang: those of its pods that wait, but for parts that are kept out by
/// themselves.
fn gates(drafts: &[Draft], minima: &Minima) -> Box<[Name]> {
    let drafts = drafts.iter().enumerate().filter(|(_, draft)| !draft.line.running);
    let drafts = drafts.filter(|(role, _)| !minima.kept_out.contains_key(role));
    let gates: BTreeSet<Name> = drafts.flat_map(|(_, draft)| draft.gates.iter().cloned()).collect();
    gates.into_iter().collect()
}

/// The marks of a pod that exists: its own, with what only its workload knows of them.
fn marks_of(record: &PodRecord, role: Option<&RoleRecord>) -> Option<Box<Marks>> {
    let of_role = role.and_then(|role| role.marks.as_ref());
    let mut marks = record.marks.clone().or_else(|| of_role.cloned())?;
    if marks.together.is_none() {
        marks.together = of_role.and_then(|of| of.together.clone());
    }
    Some(marks)
}

/// Whether anything is wished for, or tried to be.
fn is_wish(wish: &Nearness) -> bool {
    wish.as_ref().map_or(true, |wish| !wish.is_empty())
}

fn composite(namespace: &Name, name: &Name) -> GroupKey {
    let object = Scoped { namespace: namespace.clone(), name: name.clone() };
    GroupKey { object, kind: Name::new(SchedulingKind::CompositePodGroup.word()) }
}

/// The kind of the object that declares a group by its word.
pub(super) fn kind_of(key: &GroupKey) -> Kind {
    let word = key.kind.as_str();
    if word == "pod" {
        return Kind::Pod;
    }
    let of = SchedulingKind::ALL.iter().copied().find(|kind| kind.word() == word);
    of.map_or_else(|| workload_kind(key), Kind::Scheduling)
}

/// The object of a group, by its key.
pub(crate) fn declaring(key: &GroupKey) -> ObjectRef {
    object(kind_of(key), &key.object)
}
