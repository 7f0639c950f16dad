//! What a pod's claims are: looked up by name, by what its status says, or by who owns them, as
//! kube-scheduler's DynamicResources plugin and the resourceclaim controller do.

use phalanx_engine::{
    Align, ClaimKey, ClaimSpec, ClaimUse, Extended, Fault, Name, PodKey, PodSelectorId, Reason,
    Request, Scoped, Shared, VolumeUse,
};
use phalanx_objects::Kind;
use phalanx_objects::topology::ALIGN_ANNOTATION;

use super::Lowering;
use super::amount::is_extended;
use super::claim::Wish;
use super::extended::{Served, extended};
use super::meant::PodLabels;
use super::pod::level_word;
use super::record::{ClaimRecord, Life, PodClaim, PodClaimSource, PodRecord, PodShape};
use super::settle::object;
use super::slice::Note;
use super::workload::Marks;
use crate::finding::{Severity, UNREAD};

/// One of a pod's claims, looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing to allocate: the status says that no claim is needed.
    Nothing,
    /// To be made from a template, or made and not allocated yet.
    Own(Shared<ClaimSpec>, Option<ClaimKey>),
    /// There by name.
    Named(ClaimKey),
    /// Its group's, there or still to be made.
    Shared(ClaimKey),
    /// Not to be had.
    Fault(Fault),
}

impl Lowering {
    /// The claims of a pod that exists.
    pub(super) fn claims_of(&self, pod: &PodKey, record: &PodRecord) -> Vec<Found> {
        let mut claims: Vec<Found> =
            record.shape.claims.iter().map(|claim| self.claim_of(pod, record, claim)).collect();
        match record.life {
            Life::Pending => {}
            // On its node it uses what was allocated; what is not there it will not get any more.
            Life::Bound(_)
            | Life::Terminating(..)
            | Life::Foreign
            | Life::Leaving
            | Life::Ended => {
                for claim in &mut claims {
                    let there = match claim {
                        Found::Named(_) => true,
                        Found::Shared(key) => self.objects.claims.contains_key(key),
                        Found::Nothing | Found::Own(..) | Found::Fault(_) => false,
                    };
                    if !there {
                        *claim = Found::Nothing;
                    }
                }
            }
        }
        claims
    }

    /// The claims of a pod that does not exist yet.
    pub(super) fn claims_planned(
        &self,
        namespace: &Name,
        marks: Option<&Marks>,
        shape: &PodShape,
    ) -> Vec<Found> {
        let look = |claim: &PodClaim| {
            if let Some(group) = self.reserved_for(namespace, marks, claim) {
                return self.of_group(&group, claim);
            }
            match &claim.source {
                PodClaimSource::Claim(name) => self.named(namespace, name, claim),
                PodClaimSource::Template(name) => self.of_template(namespace, name, claim),
                PodClaimSource::Invalid => invalid(claim),
            }
        };
        shape.claims.iter().map(look).collect()
    }

    fn claim_of(&self, pod: &PodKey, record: &PodRecord, claim: &PodClaim) -> Found {
        let namespace = &pod.0.namespace;
        if let Some(group) = self.reserved_for(namespace, record.marks.as_deref(), claim) {
            return self.of_group(&group, claim);
        }
        match &claim.source {
            PodClaimSource::Claim(name) => self.named(namespace, name, claim),
            PodClaimSource::Invalid => invalid(claim),
            PodClaimSource::Template(template) => {
                let made = record.claims_made.iter().find(|(name, _)| *name == claim.name);
                match made {
                    Some((_, None)) => Found::Nothing,
                    Some((_, Some(name))) => {
                        let key = in_namespace(namespace, name);
                        self.made(pod, record, claim, template, ClaimKey(key))
                    }
                    None => match self.made_for(pod, record, claim) {
                        Some(key) => self.made(pod, record, claim, template, key),
                        None => self.of_template(namespace, template, claim),
                    },
                }
            }
        }
    }

    pub(super) fn named(&self, namespace: &Name, name: &Name, claim: &PodClaim) -> Found {
        let key = ClaimKey(in_namespace(namespace, name));
        match self.objects.claims.get(&key) {
            None => self.missing_object(Kind::ResourceClaim, &key.0, &claim.name),
            Some(record) if record.deleting => fault(Reason::ClaimDeleting, name, &claim.name),
            Some(_) => Found::Named(key),
        }
    }

    pub(super) fn of_template(&self, namespace: &Name, template: &Name, claim: &PodClaim) -> Found {
        let key = in_namespace(namespace, template);
        let found = self.objects.templates.get(&key);
        match found.and_then(|record| self.specs.resolved(record.spec)) {
            Some(spec) => Found::Own(spec.clone(), None),
            None => self.missing_object(Kind::ResourceClaimTemplate, &key, &claim.name),
        }
    }

    /// A claim or template that is not there, or that could not be read.
    pub(super) fn missing_object(&self, kind: Kind, key: &Scoped, entry: &Name) -> Found {
        let reason = if kind == Kind::ResourceClaim {
            Reason::ClaimMissing
        } else {
            Reason::TemplateMissing
        };
        let unread = !self.unread.is_empty() && self.unread.contains(&object(kind, key));
        let detail = if unread { Name::new(UNREAD) } else { entry.clone() };
        fault(reason, &key.name, &detail)
    }

    /// The claim that was made for the pod though its status does not say so yet.
    fn made_for(&self, pod: &PodKey, record: &PodRecord, claim: &PodClaim) -> Option<ClaimKey> {
        let keys = self.index.made.get(pod)?;
        let is_it = |key: &&ClaimKey| {
            self.objects.claims.get(*key).is_some_and(|made| {
                made.pod_claim.as_ref() == Some(&claim.name) && is_for(made, pod, record)
            })
        };
        keys.iter().find(is_it).cloned()
    }

    fn made(
        &self,
        pod: &PodKey,
        record: &PodRecord,
        claim: &PodClaim,
        template: &Name,
        key: ClaimKey,
    ) -> Found {
        let Some(made) = self.objects.claims.get(&key) else {
            return self.missing_object(Kind::ResourceClaim, &key.0, &claim.name);
        };
        if !is_for(made, pod, record) {
            return fault(Reason::ClaimOfOther, &key.0.name, &claim.name);
        }
        if made.deleting {
            return fault(Reason::ClaimDeleting, &key.0.name, &claim.name);
        }
        if made.held.is_some() {
            return Found::Named(key);
        }
        match self.with_wish(made, &in_namespace(&pod.0.namespace, template)) {
            Some(spec) => Found::Own(spec, Some(key)),
            None => fault(Reason::ClaimMissing, &key.0.name, &claim.name),
        }
    }

    /// What a claim asks for. A claim copies the annotations of its template's `spec`, and not the
    /// template's own: a wish that stands there holds as well.
    fn with_wish(&self, made: &ClaimRecord, template: &Scoped) -> Option<Shared<ClaimSpec>> {
        let own = self.specs.get(made.spec)?;
        let spec = self.specs.resolved(made.spec)?;
        let template = self.objects.templates.get(template);
        let from =
            template.and_then(|t| Some((self.specs.get(t.spec)?, self.specs.resolved(t.spec)?)));
        match from {
            Some((wishing, resolved)) if wishing.wishes() && !own.wishes() => {
                let fault = spec
                    .fault
                    .clone()
                    .or_else(|| resolved.fault.clone().filter(|_| !wishing.is_readable()));
                let align = resolved.align.clone();
                Some(Shared::new(ClaimSpec { align, fault, ..ClaimSpec::clone(spec) }))
            }
            Some(_) | None => Some(spec.clone()),
        }
    }

    /// A required wish about devices of a counter: the kubelet chooses them and knows no links.
    fn counted_wish(
        &mut self,
        shape: &PodShape,
        align: &[Align],
        served: &[Served],
    ) -> Option<Fault> {
        let required = align.iter().find(|wish| wish.required)?;
        let counter = counter_of(shape, served)?;
        let subject = format!("{}=required for {counter}", level_word(required.level));
        let detail =
            "the kubelet chooses the devices of a counter; ask for them by a ResourceClaim";
        let names = &mut self.interned.names;
        let (subject, detail) = (names.get(&subject), names.get(detail));
        Some(Fault { reason: Reason::RequestUnsupported, subject, detail })
    }

    /// What a claim asks for an extended resource, as classes have it now.
    fn extended(&self, served: &Served) -> Option<Extended> {
        let spec = self.specs.resolved(served.spec)?;
        Some(Extended {
            resource: served.resource.clone(),
            requests: spec.requests.clone(),
            fault: spec.fault.clone(),
        })
    }

    /// The claim that was made for a pod's extended resources, if it is there.
    pub(super) fn extended_made(&self, pod: &PodKey, record: &PodRecord) -> Option<ClaimKey> {
        let of = |key: &&ClaimKey| {
            let made = self.objects.claims.get(*key);
            made.is_some_and(|made| made.extended && is_for(made, pod, record))
        };
        self.index.made.get(pod)?.iter().find(of).cloned()
    }

    /// The request of a pod of this shape and these labels, spread by default with these pods, with these
    /// claims, shared with its equals; and for each claim of the request the one that was made for the
    /// pod.
    pub(super) fn request(
        &mut self,
        (shape, labels, spread): (&PodShape, &Shared<PodLabels>, Option<PodSelectorId>),
        of_workload: &Wish,
        found: Vec<Found>,
        served: &[Served],
        never: Option<Fault>,
        volumes: Box<[VolumeUse]>,
    ) -> (Shared<Request>, Box<[Option<ClaimKey>]>) {
        let mut faults: Vec<Fault> = shape.fault.iter().cloned().chain(never).collect();
        let mut align = shape.align.clone();
        if align.is_empty() && shape.fault.is_none() {
            match of_workload {
                Ok(wish) => align = wish.clone(),
                Err(message) => faults.push(Fault {
                    reason: Reason::RequestUnsupported,
                    subject: self.interned.names.get(ALIGN_ANNOTATION),
                    detail: message.clone(),
                }),
            }
        }
        faults.extend(self.counted_wish(shape, &align, served));
        let mut claims = Vec::with_capacity(found.len());
        let mut made = Vec::with_capacity(found.len());
        for claim in found {
            let (claim, key) = match claim {
                Found::Nothing => continue,
                Found::Own(spec, key) => (ClaimUse::Own(spec), key),
                Found::Named(key) => (ClaimUse::Named(key), None),
                Found::Shared(key) => (ClaimUse::PerGroup(key), None),
                Found::Fault(fault) => {
                    faults.push(fault);
                    continue;
                }
            };
            claims.push(claim);
            made.push(key);
        }
        let matched = self.meant.matched(labels, &self.objects.namespaces);
        let request = Shared::new(Request {
            resources: shape.resources.clone(),
            node: shape.node.clone(),
            claims: claims.into(),
            extended: served.iter().filter_map(|served| self.extended(served)).collect(),
            align,
            ports: shape.ports.clone(),
            near: self.meant.near(shape.near.as_ref(), labels, &matched),
            matched,
            padded: shape.padded,
            scored: self.scored_of(shape, spread),
            volumes,
            features: shape.features.clone(),
            fault: faults.into_iter().min_by_key(|fault| fault.reason),
        });
        let shared = match self.interned.requests.get(&request) {
            Some(shared) => shared.clone(),
            None => {
                self.interned.requests.insert(request.clone());
                request
            }
        };
        (shared, made.into())
    }
}

/// The first extended resource of a pod that asks for no claim and that no class serves. None where
/// all of them are one device: that is near itself.
fn counter_of<'a>(shape: &'a PodShape, served: &[Served]) -> Option<&'a Name> {
    let scalars = shape.resources.scalars.iter().filter(|(name, _)| is_extended(name));
    let sum = scalars.fold(0i64, |sum, (_, amount)| sum.saturating_add(*amount));
    if !shape.claims.is_empty() || sum <= 1 {
        return None;
    }
    let by_class = |name: &Name| served.iter().any(|served| served.resource == *name);
    extended(&shape.resources).find(|name| is_extended(name) && !by_class(name))
}

/// What is said of a wish about devices of a counter: that it has no effect. That a required one
/// can't be kept is said of the pod.
pub(super) fn counted_note(shape: &PodShape, wish: &[Align], served: &[Served]) -> Option<Note> {
    let counter = counter_of(shape, served)?;
    let wish = wish.iter().find(|wish| !wish.required)?;
    let message = format!(
        "{}=preferred has no effect on {counter}: the kubelet chooses the devices of a counter. Ask \
         for them by a ResourceClaim.",
        level_word(wish.level)
    );
    Some((Severity::Warning, format!("metadata.annotations[{ALIGN_ANNOTATION}]"), message))
}

fn in_namespace(namespace: &Name, name: &Name) -> Scoped {
    Scoped { namespace: namespace.clone(), name: name.clone() }
}

/// Whether the claim was made for this very pod (`resourceclaim.IsForPod`).
fn is_for(made: &ClaimRecord, pod: &PodKey, record: &PodRecord) -> bool {
    made.owner.as_ref().is_some_and(|(owner, uid)| owner == pod && !uid.differs(&record.header.uid))
}

pub(super) fn invalid(claim: &PodClaim) -> Found {
    let detail = Name::new("it names neither a claim nor a template, or both");
    Found::Fault(Fault { reason: Reason::RequestUnsupported, subject: claim.name.clone(), detail })
}

pub(super) fn fault(reason: Reason, subject: &Name, detail: &Name) -> Found {
    Found::Fault(Fault { reason, subject: subject.clone(), detail: detail.clone() })
}
