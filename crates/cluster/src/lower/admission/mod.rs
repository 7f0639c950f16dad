//! Admission, played for what is not submitted yet: what the API server would add to a pod when it
//! is made, and what it would refuse. Pods that exist went through it: nothing is added to them.
//!
//! [`pod`] holds the plugins that change one pod by itself, in the API server's order, [`limits`] the
//! bounds of LimitRanges, [`claims`] those of claims on volumes, [`quota`] what quotas count. Here stand the objects that they read, and
//! what must be played again when one of them changes. Webhooks and policies are not played.

mod claims;
mod limits;
mod pod;
mod quota;
mod security;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_engine::{Fault, GroupKey, Name, Reason, Scoped};
use phalanx_objects::Kind;
use phalanx_objects::admission::{LimitRange, LimitRangeItem, ResourceQuota, RuntimeClass};
use phalanx_objects::core::{Namespace, Pod, PodSpec, PodTemplateSpec, ServiceAccount};
use phalanx_objects::meta::ObjectMeta;

use super::absorb::change;
use super::meant::PodLabels;
use super::pod::PodReader;
use super::record::{Header, PodRecord, PodShape};
use super::settle::{distinct, object, workload_kind};
use super::slice::Note;
use super::valid;
use super::{Dependent, Lowering};
use crate::finding::{Finding, Severity};

pub(crate) use pod::{Added, Bound, Refusal, Rules};
pub(crate) use quota::{Asker, DEVICES, Excess, QuotaVerdict};
pub(crate) use security::{ENFORCE_LABEL, Level, Violations};

/// The namespace's annotation that PodNodeSelector reads.
const NODE_SELECTOR_ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";

/// An object that admission reads, whole.
#[derive(Clone, Debug)]
pub(super) struct Stored<T> {
    pub(super) header: Header,
    pub(super) object: Arc<T>,
}

/// What admission reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admission {
    pub(super) runtime_classes: BTreeMap<Name, Stored<RuntimeClass>>,
    pub(super) limit_ranges: BTreeMap<Scoped, Stored<LimitRange>>,
    pub(super) quotas: BTreeMap<Scoped, Stored<ResourceQuota>>,
    pub(super) accounts: BTreeMap<Scoped, Stored<ServiceAccount>>,
    /// By namespace, the node selector that PodNodeSelector adds.
    node_selectors: BTreeMap<Name, Box<str>>,
    /// By namespace, the level of PodSecurity that it enforces, where it is one that forbids anything.
    levels: BTreeMap<Name, Level>,
}

impl Admission {
    /// The bounds of a namespace, by name of their object.
    fn limits_of(&self, namespace: &str) -> impl Iterator<Item = (&Name, Vec<LimitRangeItem>)> {
        in_namespace(&self.limit_ranges, namespace)
            .map(|(key, kept)| (&key.name, kept.object.defaulted()))
    }

    /// The quotas of a namespace, by name.
    fn quotas_of(&self, namespace: &str) -> impl Iterator<Item = (&Name, &ResourceQuota)> {
        in_namespace(&self.quotas, namespace).map(|(key, kept)| (&key.name, &*kept.object))
    }

    /// What is kept of the metadata of each object.
    pub(super) fn headers(&self) -> impl Iterator<Item = &Header> {
        let classes = self.runtime_classes.values().map(|kept| &kept.header);
        let ranges = self.limit_ranges.values().map(|kept| &kept.header);
        let quotas = self.quotas.values().map(|kept| &kept.header);
        let accounts = self.accounts.values().map(|kept| &kept.header);
        classes.chain(ranges).chain(quotas).chain(accounts)
    }

    /// Whether a service account is not there, as far as the input has those of its namespace: there
    /// is one that the API server has made. `default` is there wherever the namespace is.
    fn lacks_account(&self, namespace: &str, name: &str) -> bool {
        let own = || in_namespace(&self.accounts, namespace);
        !name.is_empty()
            && name != "default"
            && own().any(|(_, kept)| kept.header.is_made())
            && !own().any(|(key, _)| key.name.as_str() == name)
    }

    fn has_quotas(&self, namespace: &str) -> bool {
        self.quotas_of(namespace).next().is_some()
    }
}

fn in_namespace<'a, T>(
    of: &'a BTreeMap<Scoped, Stored<T>>,
    namespace: &str,
) -> impl Iterator<Item = (&'a Scoped, &'a Stored<T>)> + use<'a, T> {
    let first = Scoped { namespace: Name::new(namespace), name: Name::new("") };
    let namespace = first.namespace.clone();
    of.range(first..).take_while(move |(key, _)| key.namespace == namespace)
}

/// A pod that is not made yet, as its manifest or its workload's template has it: admission is
/// played again when what it reads changes.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) made: Made,
    /// The labels that its pods get.
    labels: phalanx_engine::Shared<PodLabels>,
    /// What stands before `spec` in the paths of its object: `spec.template.` of a workload.
    pub(crate) at: Box<str>,
    /// What is to be said of it.
    told: Box<[Note]>,
    /// Why that which makes it is refused; it is said of that.
    refused: Arc<[Note]>,
}

/// What says how a pod is that is not made yet: shared with the object where it is one.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// The pod's own manifest.
    Itself(Arc<Pod>),
    /// The template of a workload, with what the workload adds to it.
    Of(Arc<PodTemplateSpec>),
}

impl Made {
    /// The metadata of the pod.
    fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Itself(pod) => &pod.metadata,
            Self::Of(template) => &template.metadata,
        }
    }

    /// The spec of the pod.
    pub(super) fn spec(&self) -> &PodSpec {
        match self {
            Self::Itself(pod) => &pod.spec,
            Self::Of(template) => &template.spec,
        }
    }
}

/// Who must be played again when something else changes, and what came of quotas.
#[derive(Clone, Debug, Default)]
pub(super) struct Played {
    /// By namespace, who is not made yet.
    drafts: BTreeMap<Name, BTreeSet<Dependent>>,
    /// By runtime class.
    runtime: BTreeMap<Name, BTreeSet<Dependent>>,
    /// Those that name a priority class or give a priority.
    ranked: BTreeSet<Dependent>,
    /// Whom a quota keeps out, wholly or in part.
    verdicts: BTreeMap<Dependent, QuotaVerdict>,
    dirty: Vec<Dependent>,
    dirty_quotas: Vec<Name>,
}

impl Played {
    /// Who is not made yet in a namespace.
    pub(super) fn drafts_in(&self, namespace: &Name) -> impl Iterator<Item = &Dependent> {
        self.drafts.get(namespace).into_iter().flatten()
    }
}

/// What keeps an object from being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// A rule that the object breaks.
    Refused,
    /// A quota.
    ByQuota,
}

/// The subject of a refusal that is not the pod's but that of what would make it.
pub(crate) const MAKER: &str = "maker";

/// Whether the API server has made the object.
pub(crate) fn exists(meta: &ObjectMeta) -> bool {
    meta.creation_timestamp.is_some() || !meta.uid.is_empty()
}

impl PodReader<'_> {
    /// What a pod that is not made yet will be like, once it is.
    pub(crate) fn admitted(
        &mut self,
        labels: &phalanx_engine::Shared<PodLabels>,
        at: &str,
        made: Made,
        refused: Arc<[Note]>,
    ) -> (phalanx_engine::Shared<PodShape>, Draft) {
        let mut outcome = self.rules.admit(&labels.namespace, made.spec());
        // Of a pod of its own the name is part of it.
        let meta = at.is_empty().then_some(made.metadata());
        outcome.refused.extend(valid::pod(meta, &outcome.spec).into_iter().map(Refusal::Invalid));
        let of = (&**labels, false);
        let said = self.notes.len();
        let mut shape = self.asked(made.metadata(), &outcome.spec, of);
        for (_, field, _) in self.notes.iter_mut().skip(said) {
            field.insert_str(0, at);
        }
        let node = outcome.spec.node_name.as_str();
        let names_node = !node.is_empty() && meta.is_some();
        if names_node {
            shape = self.seen_by_kubelet(&shape);
        }
        let path = |field: &str| match field {
            "" | "metadata.namespace" => field.to_owned(),
            field => format!("{at}{field}"),
        };
        let mut told: Vec<Note> = Vec::new();
        for refusal in &outcome.refused {
            let message = crate::words::refused(refusal);
            told.push((Severity::Error, path(refusal.field()), message));
        }
        if let Some((field, class)) = &outcome.unknown {
            let message = crate::words::runtime_class_unknown(class);
            told.push((Severity::Warning, path(field), message));
        }
        if outcome.refused.is_empty() && names_node {
            told.push((Severity::Info, path("spec.nodeName"), crate::words::names_node(node)));
        }
        if outcome.refused.is_empty() && !outcome.added.is_empty() {
            told.push((Severity::Info, path("spec"), crate::words::added(&outcome.added)));
        }
        let shape = match (refused.first(), outcome.refused.first()) {
            (Some((.., message)), _) => {
                self.refused(&shape, MAKER, &crate::words::of_maker(message))
            }
            (None, Some(first)) => self.refused(&shape, "", &crate::words::why_refused(first)),
            (None, None) => shape,
        };
        let labels = labels.clone();
        (shape, Draft { made, labels, at: at.into(), told: told.into(), refused })
    }

    /// The shape of a pod that the API server refuses.
    fn refused(
        &mut self,
        shape: &PodShape,
        subject: &str,
        why: &str,
    ) -> phalanx_engine::Shared<PodShape> {
        let fault = Fault {
            reason: Reason::AdmissionRefused,
            subject: self.names.get(subject),
            detail: self.names.get(why),
        };
        self.share(PodShape { fault: Some(fault), ..shape.clone() })
    }
}

impl Lowering {
    pub(super) fn runtime_class(&mut self, class: &Arc<RuntimeClass>, header: Header) {
        let name = self.interned.names.get(&class.metadata.name);
        let first = self.objects.admission.runtime_classes.is_empty();
        let kept = Stored { header, object: Arc::clone(class) };
        self.objects.admission.runtime_classes.insert(name.clone(), kept);
        self.runtime_changed(&name, first);
    }

    pub(super) fn runtime_class_gone(&mut self, name: &str) {
        if self.objects.admission.runtime_classes.remove(name).is_some() {
            let last = self.objects.admission.runtime_classes.is_empty();
            self.runtime_changed(&Name::new(name), last);
        }
    }

    /// Marks who names the class; all that name any where it is the first or the last of the input.
    pub(super) fn runtime_changed(&mut self, name: &Name, all: bool) {
        let named = self.played.runtime.iter().filter(|(class, _)| all || *class == name);
        let dependents: Vec<Dependent> = named.flat_map(|(_, of)| of.iter().cloned()).collect();
        self.played.dirty.extend(dependents);
    }

    pub(super) fn limit_range(&mut self, range: &Arc<LimitRange>, header: Header) {
        let key = self.scoped(&range.metadata.namespace, &range.metadata.name);
        self.mark_drafts(&key.namespace);
        self.mark_claims_to_come(&key.namespace);
        let kept = Stored { header, object: Arc::clone(range) };
        self.objects.admission.limit_ranges.insert(key, kept);
    }

    pub(super) fn limit_range_gone(&mut self, key: &Scoped) {
        if self.objects.admission.limit_ranges.remove(key).is_some() {
            self.mark_drafts(&key.namespace);
            self.mark_claims_to_come(&key.namespace);
        }
    }

    pub(super) fn service_account(&mut self, account: &Arc<ServiceAccount>, header: Header) {
        let key = self.scoped(&account.metadata.namespace, &account.metadata.name);
        self.mark_drafts(&key.namespace);
        let kept = Stored { header, object: Arc::clone(account) };
        self.objects.admission.accounts.insert(key, kept);
    }

    pub(super) fn service_account_gone(&mut self, key: &Scoped) {
        if self.objects.admission.accounts.remove(key).is_some() {
            self.mark_drafts(&key.namespace);
        }
    }

    pub(super) fn quota(&mut self, quota: &Arc<ResourceQuota>, header: Header) {
        let key = self.scoped(&quota.metadata.namespace, &quota.metadata.name);
        self.mark_drafts(&key.namespace);
        let kept = Stored { header, object: Arc::clone(quota) };
        self.objects.admission.quotas.insert(key, kept);
    }

    pub(super) fn quota_gone(&mut self, key: &Scoped) {
        if self.objects.admission.quotas.remove(key).is_some() {
            self.mark_drafts(&key.namespace);
        }
    }

    /// Takes over what admission reads of a namespace.
    pub(super) fn namespace_rules(&mut self, namespace: &Namespace) {
        let name = self.interned.names.get(&namespace.metadata.name);
        let selector = namespace.metadata.annotations.get(NODE_SELECTOR_ANNOTATION);
        let selectors = &mut self.objects.admission.node_selectors;
        let before = match selector {
            Some(selector) => selectors.insert(name.clone(), selector.as_str().into()),
            None => selectors.remove(&name),
        };
        let label = namespace.metadata.labels.get(ENFORCE_LABEL);
        let level = label.and_then(|label| Level::parse(label));
        let levels = &mut self.objects.admission.levels;
        let of_before = match level {
            Some(level) => levels.insert(name.clone(), level),
            None => levels.remove(&name),
        };
        if before.as_deref() != selector.map(String::as_str) || of_before != level {
            self.mark_drafts(&name);
        }
    }

    pub(super) fn namespace_rules_gone(&mut self, name: &str) {
        let selector = self.objects.admission.node_selectors.remove(name).is_some();
        let level = self.objects.admission.levels.remove(name).is_some();
        if selector || level {
            self.mark_drafts(&Name::new(name));
        }
    }

    /// Marks who would be made in a namespace that is there or is not there now; all, where the input
    /// did not say which namespaces there are and does, or the reverse.
    pub(super) fn namespace_stands(&mut self, name: &Name, said: bool) {
        if said == self.objects.says_namespaces() {
            self.mark_drafts(name);
            return;
        }
        let all: Vec<Name> = self.played.drafts.keys().cloned().collect();
        all.iter().for_each(|namespace| self.mark_drafts(namespace));
    }

    /// Marks all of a namespace that is not made yet.
    pub(super) fn mark_drafts(&mut self, namespace: &Name) {
        let drafts: Vec<Dependent> = self.played.drafts_in(namespace).cloned().collect();
        self.played.dirty.extend(drafts);
        self.played.dirty_quotas.push(namespace.clone());
    }

    /// Enters what is not made yet, or takes it out.
    pub(super) fn index_draft(
        &mut self,
        namespace: &Name,
        draft: Option<&Draft>,
        dependent: &Dependent,
        enter: bool,
    ) {
        if !enter {
            self.played.verdicts.remove(dependent);
        }
        let Some(draft) = draft else { return };
        change(&mut self.played.drafts, namespace.clone(), dependent.clone(), enter);
        self.played.dirty_quotas.push(namespace.clone());
        let spec = draft.made.spec();
        if let Some(class) = &spec.runtime_class_name {
            let class = self.interned.names.get(class);
            change(&mut self.played.runtime, class, dependent.clone(), enter);
        }
        if spec.priority.is_some() || !spec.priority_class_name.is_empty() {
            if enter {
                self.played.ranked.insert(dependent.clone());
            } else {
                self.played.ranked.remove(dependent);
            }
        }
    }

    /// Marks what is not made yet and says something of its priority.
    pub(super) fn mark_ranked(&mut self) {
        self.played.dirty.extend(self.played.ranked.iter().cloned());
    }

    /// Plays admission again for what is marked.
    pub(super) fn settle_admission(&mut self) {
        for dependent in distinct(&mut self.played.dirty) {
            match dependent {
                Dependent::Pod(key) => {
                    let Some(record) = self.objects.pods.get(&key).cloned() else { continue };
                    let Some((shape, draft)) = self.replay(record.draft.as_deref()) else {
                        continue;
                    };
                    if shape == record.shape
                        && record.draft.as_ref().is_some_and(|d| d.told == draft.told)
                    {
                        continue;
                    }
                    let draft = Some(Box::new(draft));
                    self.pod_record(key, PodRecord { shape, draft, ..PodRecord::clone(&record) });
                }
                Dependent::Role(key, at) => self.replay_role(key, usize::from(at)),
            }
        }
    }

    fn replay_role(&mut self, key: GroupKey, at: usize) {
        let Some(record) = self.objects.workloads.get(&key).cloned() else { return };
        let before = record.roles.get(at);
        let Some((shape, draft)) = self.replay(before.map(|r| &r.draft)) else {
            return;
        };
        let mut after = record.clone();
        let Some(role) = after.roles.get_mut(at) else { return };
        if role.shape == shape && role.draft.told == draft.told {
            return;
        }
        (role.shape, role.draft) = (shape, draft);
        self.index_workload(&key, &record, false);
        self.index_workload(&key, &after, true);
        self.objects.workloads.insert(key, after);
    }

    fn replay(
        &mut self,
        draft: Option<&Draft>,
    ) -> Option<(phalanx_engine::Shared<PodShape>, Draft)> {
        let draft = draft?;
        let (at, made) = (draft.at.clone(), draft.made.clone());
        let labels = draft.labels.clone();
        let mut reader = self.pod_reader();
        // What reading it found was said when it was absorbed.
        Some(reader.admitted(&labels, &at, made, Arc::clone(&draft.refused)))
    }

    /// What would not be made, each with its finding as it stands among all findings.
    pub(crate) fn admission_findings(&self) -> Vec<(Kept, Finding)> {
        let mut all = Vec::new();
        let drafts = self.played.drafts.values().flatten().chain(self.played.verdicts.keys());
        for dependent in drafts.collect::<BTreeSet<_>>() {
            let reference = match dependent {
                Dependent::Pod(key) => object(Kind::Pod, &key.0),
                Dependent::Role(key, _) => object(workload_kind(key), &key.object),
            };
            let told = match dependent {
                Dependent::Pod(key) => self.objects.pods.get(key).and_then(|r| r.draft.as_deref()),
                Dependent::Role(key, at) => {
                    let record = self.objects.workloads.get(key);
                    record.and_then(|r| r.roles.get(usize::from(*at))).map(|role| &role.draft)
                }
            };
            let told: Vec<&Note> =
                told.iter().flat_map(|draft| draft.told.iter().chain(&*draft.refused)).collect();
            let quota = self.played.verdicts.get(dependent).map(crate::words::exceeded);
            let (lowered, read) = (&self.findings.lowered, &self.findings.read);
            let lists = [lowered.get(&reference), read.get(&reference)];
            let of_object = lists.into_iter().flatten().flatten();
            for finding in of_object {
                let is = |(severity, _, message): &&Note| {
                    *severity == Severity::Error && *message == finding.message
                };
                if told.iter().any(is) {
                    all.push((Kept::Refused, finding.clone()));
                } else if quota.as_ref() == Some(&finding.message) {
                    all.push((Kept::ByQuota, finding.clone()));
                }
            }
        }
        all
    }

    /// What is said of a pod that is not made yet.
    pub(super) fn admission_notes(
        &self,
        draft: Option<&Draft>,
        dependent: &Dependent,
    ) -> Vec<Note> {
        let mut notes: Vec<Note> =
            draft.iter().flat_map(|draft| draft.told.iter().cloned()).collect();
        if let Some(verdict) = self.played.verdicts.get(dependent) {
            let refused = notes.iter().any(|(severity, ..)| *severity == Severity::Error);
            if !refused {
                notes.push((verdict.severity(), String::new(), crate::words::exceeded(verdict)));
            }
        }
        notes
    }
}
