//! Taking workloads in and out: the compact forms, what depends on them, and the runtimes without which
//! a TrainJob says nothing of its pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use phalanx_engine::{GroupKey, Name, Scoped};
use phalanx_objects::workload::{TrainingRuntime, Workload};
use phalanx_objects::{Kind, ObjectRef};

use super::super::absorb::{change, findings};
use super::super::slice::Note;
use super::super::{Dependent, Findings, Lowering};
use super::{Context, WorkloadRecord, expand, runtimes_of};
use crate::edit::kind_word;
use crate::finding::Source;

impl Lowering {
    /// Takes in a workload, and those again that are expanded by it.
    pub(crate) fn workload(&mut self, workload: &Workload, source: Source) -> Vec<Note> {
        let reference = of(workload);
        let key = self.workload_key(&reference);
        let runtimes = runtimes_of(workload);
        self.forget(&reference, &key);
        for runtime in &runtimes {
            change(&mut self.index.runtime, runtime.clone(), key.clone(), true);
        }
        if !runtimes.is_empty() {
            let kept = (Arc::new(workload.clone()), source.clone());
            self.objects.expanding.insert(key.clone(), kept);
        }
        if let Workload::TrainingRuntime(runtime) | Workload::ClusterTrainingRuntime(runtime) =
            workload
        {
            self.objects.runtimes.insert(reference.clone(), Arc::new((**runtime).clone()));
        }
        let notes = self.put(&key, workload, source);
        self.selects(&key, workload);
        self.expand_those_of(&reference);
        notes
    }

    pub(crate) fn workload_gone(&mut self, reference: &ObjectRef) {
        let key = self.workload_key(reference);
        self.forget(reference, &key);
        self.expand_those_of(reference);
    }

    fn forget(&mut self, reference: &ObjectRef, key: &GroupKey) {
        if let Some((old, _)) = self.objects.expanding.remove(key) {
            for runtime in runtimes_of(&old) {
                change(&mut self.index.runtime, runtime, key.clone(), false);
            }
        }
        self.objects.runtimes.remove(reference);
        self.selects_none(key);
        if let Some(old) = self.objects.workloads.remove(key) {
            self.index_workload(key, &old, false);
        }
    }

    /// Expands again what is expanded by this object.
    fn expand_those_of(&mut self, reference: &ObjectRef) {
        let needing = self.index.runtime.get(reference).cloned().unwrap_or_default();
        needing.iter().for_each(|key| self.expand_again(key));
    }

    /// Expands a workload again because what it is expanded by has changed.
    pub(crate) fn expand_again(&mut self, key: &GroupKey) {
        let Some((workload, source)) = self.objects.expanding.get(key).cloned() else { return };
        if let Some(old) = self.objects.workloads.remove(key) {
            self.index_workload(key, &old, false);
        }
        let notes = self.put(key, &workload, source.clone());
        let reference = of(&workload);
        let found = findings(&reference, &source, notes);
        Findings::set(&mut self.findings.read, &reference, found);
    }

    fn put(&mut self, key: &GroupKey, workload: &Workload, source: Source) -> Vec<Note> {
        let needed = runtimes_of(workload).into_iter();
        let runtimes: Vec<(ObjectRef, Arc<TrainingRuntime>)> = needed
            .filter_map(|of| self.objects.runtimes.get(&of).cloned().map(|found| (of, found)))
            .collect();
        let find = |of: &ObjectRef| runtimes.iter().find(|(named, _)| named == of);
        let context = Context {
            created: workload.metadata().creation_timestamp.is_some()
                || !workload.metadata().uid.is_empty(),
            runtime: &|of: &ObjectRef| find(of).map(|(_, runtime)| runtime.as_ref()),
        };
        let expansion = expand(workload, &context);
        let mut reader = self.pod_reader();
        let record = reader.workload(workload, expansion, source);
        let notes = std::mem::take(&mut reader.notes);
        self.index_workload(key, &record, true);
        self.objects.workloads.insert(key.clone(), record);
        notes
    }

    fn workload_key(&mut self, reference: &ObjectRef) -> GroupKey {
        let names = &mut self.interned.names;
        let object =
            Scoped { namespace: names.get(&reference.namespace), name: Name::new(&reference.name) };
        GroupKey { object, kind: names.get(kind_word(reference.kind)) }
    }

    pub(crate) fn index_workload(&mut self, key: &GroupKey, record: &WorkloadRecord, enter: bool) {
        for (at, role) in record.roles.iter().enumerate() {
            let dependent = Dependent::Role(key.clone(), at as u16);
            self.index_shape(&role.labels, &role.shape, &dependent, enter);
            if !record.aside {
                let rules = role.shape.near.as_deref();
                self.meant.index(&role.labels, rules, &dependent, enter);
                self.index_spread(&role.labels, &role.shape, &dependent, enter);
            }
            self.index_draft(&key.object.namespace, Some(&role.draft), &dependent, enter);
            self.index_asks(&role.shape, &dependent, enter);
            self.index_priority(&role.priority, dependent, enter);
            let marked = role.marks.as_deref().and_then(|m| m.group_in(&key.object.namespace));
            if let Some(gang) = marked {
                self.dirty.gangs.push(gang.clone());
                change(&mut self.index.gang_roles, gang, (key.clone(), at as u16), enter);
            }
        }
        if record.gang.is_some() {
            self.dirty.gangs.push(key.clone());
        }
        self.index_names(key, record, enter);
        if record.roles.iter().any(|role| !role.volume_claims.is_empty()) {
            let namespace = key.object.namespace.clone();
            change(&mut self.index.mounting, namespace, key.clone(), enter);
        }
        // Its pods are part of it from now on, or no more; so are those of what it manages.
        let mut of = vec![key.clone()];
        of.extend(self.index.children.get(key).into_iter().flatten().cloned());
        let pods = of.iter().filter_map(|workload| self.index.owned.get(workload)).flatten();
        let pods: Vec<_> = pods.cloned().collect();
        for pod in &pods {
            self.mark_namesakes(&pod.0.namespace, &pod.0.name);
        }
        // Whom else they name has them where this one is not there, and lacks them where it is.
        let records = pods.iter().filter_map(|pod| self.objects.pods.get(pod));
        let chains = records.filter_map(|pod| pod.owner.as_ref()).flat_map(|owner| &owner.chain);
        let others: BTreeSet<&GroupKey> = chains.map(|(workload, _)| workload).collect();
        self.dirty.workloads.extend(others.into_iter().cloned());
        self.dirty.pods.extend(pods);
        self.dirty.workloads.extend(of);
        if let Some((owner, _)) = &record.owner {
            change(&mut self.index.children, owner.clone(), key.clone(), enter);
            self.dirty.workloads.push(owner.clone());
        }
    }
}

/// What a workload is referred to by.
fn of(workload: &Workload) -> ObjectRef {
    let meta = workload.metadata();
    ObjectRef {
        kind: Kind::Workload(workload.kind()),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
    }
}
