//! Claims that a PodGroup has for its pods (`spec.resourceClaims`, KEP-5729): which of a pod's claims
//! they stand for, and those that are still to be made. The resourceclaim controller is played: a
//! group's claim from a template is there as soon as the group is.

use std::collections::BTreeMap;

use phalanx_engine::{Change, Claim, ClaimKey, GroupKey, Name, PodKey, Reason, Scoped, Since};
use phalanx_objects::Kind;
use phalanx_objects::scheduling::{GroupClaim, PodGroup, Scheduling, SchedulingKind};

use super::Lowering;
use super::absorb::change;
use super::claim::SpecId;
use super::found::{Found, fault};
use super::look::planned_for;
use super::record::{Header, PodClaim, PodClaimSource};
use super::settle::distinct;
use super::slice::Note;
use super::workload::Marks;
use crate::compat::Gate;
use crate::finding::Severity;

/// A claim that is reserved for a PodGroup and not for each of its pods.
#[derive(Clone, Debug)]
pub struct GroupOwner {
    /// The PodGroup's name.
    pub name: Name,
    /// Its UID; empty where it does not exist yet.
    pub uid: String,
}

impl Lowering {
    /// The PodGroup that one of a pod's claims is reserved for: the one that the pod names, where that
    /// has a claim of the same name and source.
    pub(super) fn reserved_for(
        &self,
        namespace: &Name,
        marks: Option<&Marks>,
        claim: &PodClaim,
    ) -> Option<Scoped> {
        let key = marks?.group_in(namespace)?;
        let is_upstream = key.kind.as_str() == SchedulingKind::PodGroup.word();
        let (group, _) = self.sharing(&key.object).filter(|_| is_upstream)?;
        let same = |of: &&GroupClaim| of.name == *claim.name && source(of) == claim.source;
        group.spec.resource_claims.iter().find(same).map(|_| key.object)
    }

    /// The PodGroup as the owner of claims.
    pub(super) fn group_owner(&self, group: &Scoped) -> GroupOwner {
        let uid = self.sharing(group).map(|(_, header)| header.uid.to_string());
        GroupOwner { name: group.name.clone(), uid: uid.unwrap_or_default() }
    }

    /// The claim of a PodGroup that stands for one of a pod's.
    pub(super) fn of_group(&self, group: &Scoped, claim: &PodClaim) -> Found {
        let namespace = &group.namespace;
        let template = match &claim.source {
            PodClaimSource::Claim(name) => {
                let found = self.named(namespace, name, claim);
                return if let Found::Named(key) = found { Found::Shared(key) } else { found };
            }
            PodClaimSource::Template(template) => template,
            PodClaimSource::Invalid => return super::found::invalid(claim),
        };
        match self.made_for_group(group, &claim.name) {
            Some(None) => Found::Nothing,
            Some(Some(key)) => match self.objects.claims.get(&key) {
                Some(made) if made.deleting => {
                    fault(Reason::ClaimDeleting, &key.0.name, &claim.name)
                }
                Some(_) => Found::Shared(key),
                None => self.missing_object(Kind::ResourceClaim, &key.0, &claim.name),
            },
            None => {
                let found = self.of_template(namespace, template, claim);
                let is_there = matches!(found, Found::Own(..));
                if is_there { Found::Shared(planned_for(group, &claim.name)) } else { found }
            }
        }
    }

    /// What a group's status says of the claim that was made for it; nothing where it says nothing.
    fn made_for_group(&self, group: &Scoped, claim: &Name) -> Option<Option<ClaimKey>> {
        let (of, _) = self.sharing(group)?;
        let mut statuses = of.status.resource_claim_statuses.iter();
        let status = statuses.find(|status| status.name == **claim)?;
        Some(status.resource_claim_name.as_deref().map(|name| {
            ClaimKey(Scoped { namespace: group.namespace.clone(), name: Name::new(name) })
        }))
    }

    /// A PodGroup whose claims count: the feature is on, or claims were made for it.
    fn sharing(&self, group: &Scoped) -> Option<(&PodGroup, &Header)> {
        let record = self.objects.scheduling.get(&(SchedulingKind::PodGroup, group.clone()))?;
        let Scheduling::PodGroup(of) = &*record.object else { return None };
        self.shares(of).then_some((of, &record.header))
    }

    fn shares(&self, of: &PodGroup) -> bool {
        let made = !of.status.resource_claim_statuses.is_empty();
        let on = made || self.compat.is_on(Gate::DRAWorkloadResourceClaims);
        on && !of.spec.resource_claims.is_empty()
    }

    /// What there is to say of a PodGroup's claims.
    pub(super) fn sharing_notes(&self, of: &PodGroup) -> Vec<Note> {
        if of.spec.resource_claims.is_empty() || self.shares(of) {
            return Vec::new();
        }
        let message = "These claims count for nothing, for DRAWorkloadResourceClaims is off: claims from \
                       a template are made for each pod, and claims by name are reserved for each. If your cluster has it on, say so by \
                       --feature-gates DRAWorkloadResourceClaims=true.";
        vec![(Severity::Warning, "spec.resourceClaims".to_owned(), message.to_owned())]
    }

    /// Notes which claims and templates a PodGroup's claims depend on, as it comes or goes, and marks
    /// whoever uses them.
    pub(super) fn index_sharing(&mut self, kind: SchedulingKind, group: &Scoped, enter: bool) {
        if kind != SchedulingKind::PodGroup {
            return;
        }
        let Some((of, _)) = self.sharing(group) else { return };
        let (mut claims, mut templates) = (Vec::new(), Vec::new());
        let scoped =
            |name: &String| Scoped { namespace: group.namespace.clone(), name: Name::new(name) };
        let statuses = of.status.resource_claim_statuses.iter();
        claims
            .extend(statuses.filter_map(|status| status.resource_claim_name.as_ref().map(scoped)));
        for claim in &of.spec.resource_claims {
            claims.extend(claim.resource_claim_name.as_ref().map(scoped));
            templates.extend(claim.resource_claim_template_name.as_ref().map(scoped));
        }
        for key in claims {
            change(&mut self.index.shared_claims, ClaimKey(key), group.clone(), enter);
        }
        for key in templates {
            change(&mut self.index.shared_templates, key, group.clone(), enter);
        }
        self.mark_sharers(group);
    }

    /// Marks a PodGroup's claims that are to be made, and its pods.
    pub(super) fn mark_sharers(&mut self, group: &Scoped) {
        self.dirty.sharing.push(group.clone());
        let kind = Name::new(SchedulingKind::PodGroup.word());
        self.mark_members(&GroupKey { object: group.clone(), kind });
    }

    /// Marks the pods of a group, and the workloads that are to make some.
    pub(super) fn mark_members(&mut self, key: &GroupKey) {
        for name in self.named_as(key) {
            let pods: Vec<PodKey> =
                self.index.members.get(&name).into_iter().flatten().cloned().collect();
            self.dirty.pods.extend(pods);
            let roles = self.index.gang_roles.get(&name).into_iter().flatten();
            self.dirty.workloads.extend(roles.map(|(workload, _)| workload.clone()));
        }
    }

    /// Tells of the claims that PodGroups are to have.
    pub(super) fn settle_sharing(&mut self, changes: &mut Vec<Change>) {
        for group in distinct(&mut self.dirty.sharing) {
            let planned = self.planned_claims_of(&group);
            let old = self.shown.sharing.remove(&group).unwrap_or_default();
            let gone = old.into_iter().filter(|key| !planned.contains_key(key));
            changes.extend(gone.map(|key| Change::Claim(key, None)));
            if !planned.is_empty() {
                self.shown.sharing.insert(group, planned.keys().cloned().collect());
            }
            changes.extend(planned.into_iter().map(|(key, claim)| Change::Claim(key, Some(claim))));
        }
    }

    /// The claims that PodGroups of a namespace are to have from templates and that are not made yet: when
    /// each is asked for, its name, and what it asks for.
    pub(super) fn claims_to_come_of_groups(
        &self,
        namespace: &Name,
    ) -> Vec<(Since, ClaimKey, SpecId)> {
        let mut all = Vec::new();
        let first = Scoped { namespace: namespace.clone(), name: Name::new("") };
        let groups = self.objects.scheduling.range((SchedulingKind::PodGroup, first)..);
        let here = |key: &(SchedulingKind, Scoped)| {
            key.0 == SchedulingKind::PodGroup && key.1.namespace == *namespace
        };
        for ((_, group), _) in groups.take_while(|(key, _)| here(key)) {
            let Some((of, header)) = self.sharing(group) else { continue };
            for claim in &of.spec.resource_claims {
                let name = Name::new(&claim.name);
                let PodClaimSource::Template(template) = source(claim) else { continue };
                let template = Scoped { namespace: namespace.clone(), name: template };
                let record = self.objects.templates.get(&template);
                let to_come = self.made_for_group(group, &name).is_none();
                if let Some(record) = record.filter(|_| to_come) {
                    all.push((header.since(), planned_for(group, &name), record.spec));
                }
            }
        }
        all
    }

    fn planned_claims_of(&self, group: &Scoped) -> BTreeMap<ClaimKey, Claim> {
        let Some((of, _)) = self.sharing(group) else { return BTreeMap::new() };
        let mut planned = BTreeMap::new();
        for claim in &of.spec.resource_claims {
            let name = Name::new(&claim.name);
            let PodClaimSource::Template(template) = source(claim) else { continue };
            if self.made_for_group(group, &name).is_some() {
                continue;
            }
            let template = Scoped { namespace: group.namespace.clone(), name: template };
            let record = self.objects.templates.get(&template);
            let Some(spec) = record.and_then(|record| self.specs.resolved(record.spec)) else {
                continue;
            };
            let claim = Claim {
                spec: spec.clone(),
                held: None,
                users: Vec::new(),
                failed: None,
                deleting: false,
            };
            planned.insert(planned_for(group, &name), claim);
        }
        planned
    }
}

fn source(claim: &GroupClaim) -> PodClaimSource {
    match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
        (Some(name), None) => PodClaimSource::Claim(Name::new(name)),
        (None, Some(name)) => PodClaimSource::Template(Name::new(name)),
        (Some(_), Some(_)) | (None, None) => PodClaimSource::Invalid,
    }
}
