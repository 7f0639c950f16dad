//! How pods that are to be made are called, so that no two of them have one name. Where the API server
//! adds random letters to a name the end is ours; where a kind gives fixed names, two that meet can't
//! both be made, and that is said.

use phalanx_engine::{Admits, Fault, GroupKey, Name, PodKey, Reason, Scoped};
use phalanx_objects::workload::WorkloadKind;
use phalanx_objects::{Kind, ObjectRef};

use super::super::Lowering;
use super::super::MAKER;
use super::super::absorb::{change, findings};
use super::super::settle::{object, workload_kind};
use super::record::{Numbers, Places, RoleRecord, WorkloadRecord};
use crate::finding::{Finding, Severity};

/// Most numbers at the end of a pod's name.
const NUMBERS_MAX: usize = 2;

/// Whether the kind's pods have names that are known beforehand, with nothing random in them.
pub(super) const fn is_fixed(kind: WorkloadKind) -> bool {
    match kind {
        WorkloadKind::StatefulSet
        | WorkloadKind::LeaderWorkerSet
        | WorkloadKind::PyTorchJob
        | WorkloadKind::TfJob
        | WorkloadKind::XgBoostJob
        | WorkloadKind::PaddleJob
        | WorkloadKind::JaxJob
        | WorkloadKind::VolcanoJob => true,
        // Of an MPIJob the workers alone, and of a wrapper what is in it.
        WorkloadKind::MpiJob
        | WorkloadKind::AppWrapper
        | WorkloadKind::Job
        | WorkloadKind::CronJob
        | WorkloadKind::Deployment
        | WorkloadKind::ReplicaSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::JobSet
        | WorkloadKind::TrainJob
        | WorkloadKind::TrainingRuntime
        | WorkloadKind::ClusterTrainingRuntime
        | WorkloadKind::RayCluster
        | WorkloadKind::RayJob
        | WorkloadKind::RayService
        | WorkloadKind::PodCliqueSet => false,
    }
}

impl Places {
    /// Whether one of the first so many pods is called so.
    fn has(&self, name: &str, count: u32) -> bool {
        let Some(rest) = name.strip_prefix(self.base.as_str()) else { return false };
        let mut numbers = rest.split('-').skip(1).map(str::parse::<u32>);
        let mut next = || numbers.next().and_then(Result::ok);
        let per = self.per.unwrap_or(1).max(1);
        let index = match self.numbers {
            Numbers::Bare => Some(0),
            Numbers::Own(first) => next().and_then(|own| own.checked_sub(first)),
            Numbers::Part => next().and_then(|part| part.checked_mul(per)),
            Numbers::PartAndOwn(first) => next().zip(next()).and_then(|(part, own)| {
                part.checked_mul(per)?.checked_add(own.checked_sub(first)?)
            }),
        };
        index.is_some_and(|index| index < count && self.name(index) == name)
    }
}

impl RoleRecord {
    /// Whether a pod of it may be called so.
    fn may_have(&self, name: &str) -> bool {
        let last = self.indexes.as_ref().and_then(|indexes| indexes.open.last());
        let count = last.map_or(self.wanted, |run| run.end);
        self.wanted > 0 && self.places.has(name, count)
    }
}

impl Lowering {
    /// Enters what the pods of a workload are called, or takes it out.
    pub(super) fn index_names(&mut self, key: &GroupKey, record: &WorkloadRecord, enter: bool) {
        if record.kind == WorkloadKind::DaemonSet {
            return;
        }
        for role in &record.roles {
            let name = role.places.base.clone();
            self.mark_namesakes(&key.object.namespace, &name);
            self.mark_longer(&key.object.namespace, &name);
            let base = Scoped { namespace: key.object.namespace.clone(), name };
            change(&mut self.index.bases, base, key.clone(), enter);
        }
    }

    /// Marks the workloads with fixed names that may have a pod of this name.
    pub(crate) fn mark_namesakes(&mut self, namespace: &Name, name: &str) {
        if self.index.bases.is_empty() {
            return;
        }
        let mut base = name;
        for _ in 0..=NUMBERS_MAX {
            let at = Scoped { namespace: namespace.clone(), name: Name::new(base) };
            let all = self.index.bases.get(&at).into_iter().flatten();
            let fixed = all.filter(|key| self.gives_fixed_names(key));
            let fixed: Vec<GroupKey> = fixed.cloned().collect();
            self.dirty.workloads.extend(fixed);
            match base.rsplit_once('-') {
                Some((rest, number)) if number.parse::<u32>().is_ok() => base = rest,
                Some(_) | None => return,
            }
        }
    }

    /// Marks the workloads with fixed names whose pods' names begin with this one.
    fn mark_longer(&mut self, namespace: &Name, name: &str) {
        let begins = format!("{name}-");
        let from = Scoped { namespace: namespace.clone(), name: Name::new(&begins) };
        let longer = self.index.bases.range(from..).take_while(|(base, _)| {
            base.namespace == *namespace && base.name.as_str().starts_with(&begins)
        });
        let keys = longer.flat_map(|(_, keys)| keys);
        let fixed = keys.filter(|key| self.gives_fixed_names(key));
        let fixed: Vec<GroupKey> = fixed.cloned().collect();
        self.dirty.workloads.extend(fixed);
    }

    fn gives_fixed_names(&self, key: &GroupKey) -> bool {
        self.objects.workloads.get(key).is_some_and(|record| is_fixed(record.kind))
    }

    /// The name of a pod that is to be made. One that something else has already is given another
    /// end, which no generated name has.
    pub(crate) fn planned_name(&self, key: &GroupKey, kind: WorkloadKind, name: &str) -> Name {
        let namespace = &key.object.namespace;
        let is_there = |name: &str| {
            let object = Scoped { namespace: namespace.clone(), name: Name::new(name) };
            self.objects.pods.contains_key(&PodKey(object))
        };
        let mut own = name.to_owned();
        if self.rival(key, kind, name).is_some() {
            own = format!("{own}-{}", kind.word());
        }
        if is_there(&own) {
            own.push_str("-plan");
        }
        Name::new(&own)
    }

    /// Another workload that has the first right to a name.
    fn rival(&self, key: &GroupKey, kind: WorkloadKind, name: &str) -> Option<&GroupKey> {
        let mut base = name;
        for _ in 0..=NUMBERS_MAX {
            let namespace = key.object.namespace.clone();
            let at = Scoped { namespace, name: Name::new(base) };
            let all = self.index.bases.get(&at).into_iter().flatten();
            let mut others = all.filter(|other| *other != key);
            if let Some(found) = others.find(|other| self.goes_before(other, (key, kind), name)) {
                return Some(found);
            }
            base = base.rsplit_once('-')?.0;
        }
        None
    }

    /// Whether a workload makes a pod of this name too, and comes first: that with fixed names, and of
    /// two such that which sorts first.
    fn goes_before(
        &self,
        other: &GroupKey,
        (key, kind): (&GroupKey, WorkloadKind),
        name: &str,
    ) -> bool {
        let Some(record) = self.objects.workloads.get(other) else { return false };
        let order = (!is_fixed(record.kind), other) < (!is_fixed(kind), key);
        order
            && !record.aside
            && record.roles.iter().any(|role| role.may_have(name))
            // What makes it, or what it makes, is the same pod.
            && !self.lineage(key).contains(other)
            && !self.lineage(other).contains(key)
            && self.root(other) == *other
    }

    /// Workloads whose pods can't be made, for something else has their names; each once.
    pub(crate) fn name_clashes(&self) -> Vec<Finding> {
        let mut all = Vec::new();
        for key in self.making() {
            let Some(record) = self.objects.workloads.get(key).filter(|r| is_fixed(r.kind)) else {
                continue;
            };
            let due = self.due(key, record);
            let pods = record.roles.iter().zip(&due);
            let names = pods.flat_map(|(role, due)| due.iter().map(|at| role.places.name(*at)));
            let clash = names.into_iter().find_map(|name| {
                let holder = self.holder(key, record.kind, &name)?;
                Some((name, holder))
            });
            let Some((name, holder)) = clash else { continue };
            let (kind, holder_kind) = (record.kind.as_str(), holder.kind.as_str());
            let message = format!(
                "A {kind} gives its pods fixed names, and {name} is that of {holder_kind} {}, which is \
                 not of it: the pod can't be made while that is there.",
                holder.name
            );
            let note = (Severity::Error, "metadata.name".to_owned(), message);
            let reference = object(workload_kind(key), &key.object);
            all.extend(findings(&reference, &record.header.source, vec![note]));
        }
        all
    }

    /// Why a pod of a kind with fixed names can't be made now, for a sentence, if something else has its
    /// name.
    pub(crate) fn taken(
        &self,
        key: &GroupKey,
        kind: WorkloadKind,
        role: &RoleRecord,
        index: u32,
    ) -> Option<String> {
        if !is_fixed(kind) {
            return None;
        }
        let name = role.places.name(index);
        let holder = self.holder(key, kind, &name)?;
        Some(format!("its name, {name}, is that of {} {}", holder.kind.as_str(), holder.name))
    }

    /// That the pods of a run can't be made: for their name, or for the claims that each is given.
    pub(crate) fn unmade(
        &mut self,
        key: &GroupKey,
        kind: WorkloadKind,
        role: &RoleRecord,
        run: &[u32],
    ) -> Option<Box<Admits>> {
        let of_name = match run {
            [index] => self.taken(key, kind, role, *index),
            _ => None,
        };
        let detail = of_name.or_else(|| self.unclaimed(&key.object.namespace, role, run))?;
        let names = &mut self.interned.names;
        let (subject, detail) = (names.get(MAKER), names.get(&detail));
        let fault = Fault { reason: Reason::AdmissionRefused, subject, detail };
        Some(Box::new(Admits { most: 0, fault }))
    }

    /// What has a name of a workload's pod: a pod that is not of it, or another workload.
    fn holder(&self, key: &GroupKey, kind: WorkloadKind, name: &str) -> Option<ObjectRef> {
        let scoped = Scoped { namespace: key.object.namespace.clone(), name: Name::new(name) };
        let pod = self.objects.pods.get(&PodKey(scoped.clone()));
        if pod.is_some_and(|pod| self.root_of_pod(pod).as_ref() != Some(key)) {
            return Some(object(Kind::Pod, &scoped));
        }
        let rival = self.rival(key, kind, name)?;
        let fixed = self.objects.workloads.get(rival).is_some_and(|record| is_fixed(record.kind));
        fixed.then(|| object(workload_kind(rival), &rival.object))
    }
}
