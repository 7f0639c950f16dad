//! From a plan to its effects.

use std::collections::BTreeMap;

use phalanx_engine::{Act, Grant, GroupKey, PodKey, Seat};
use phalanx_objects::meta::{Annotations, ObjectMeta, OwnerReference};
use phalanx_objects::resource::{ResourceClaim, ResourceClaimSpec};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::{
    Bind, Draft, Effect, Granted, PLANNED, POD_CLAIM_NAME, SliceIndex, allocate, api_time,
    placeholder_uid, user,
};
use crate::lower::{ClaimInfo, ClaimName, GroupInfo, PodInfo};
use crate::plan::Plan;
use crate::view::{claim_reference, who_sits};
use crate::world::{Objects, World};

/// The writes of a plan, in order. Empty where the world keeps no objects.
pub fn raise(world: &World, plan: &Plan) -> Vec<Effect> {
    let Some(objects) = world.objects() else { return Vec::new() };
    let slices = SliceIndex::new(objects, world.lowering().compat());
    let mut raiser = Raiser { world, objects, slices, plan, draft: Draft::default() };
    for act in &plan.decision.acts {
        match act {
            Act::Release(_, claim) => {
                let reference = claim_reference(claim);
                raiser.take(&reference);
                raiser.draft.release(&reference);
            }
            Act::Place(group, seats, _) => raiser.place(group, seats),
            Act::Admit(_) | Act::Hold(..) | Act::Evict { .. } => {}
        }
    }
    raiser.draft.finish()
}

struct Raiser<'a> {
    world: &'a World,
    objects: &'a Objects,
    slices: SliceIndex<'a>,
    plan: &'a Plan,
    draft: Draft,
}

impl Raiser<'_> {
    /// Takes a claim that exists into the draft.
    fn take(&mut self, claim: &ObjectRef) {
        if let Some(Object::ResourceClaim(found)) = self.objects.get(claim) {
            self.draft.claim(found);
        }
    }

    fn place(&mut self, group: &GroupKey, seats: &[Seat]) {
        let Some(info) = self.world.lowering().group(group) else { return };
        let pods: BTreeMap<&PodKey, &PodInfo> =
            info.roles.iter().flat_map(|role| &role.pods).map(|pod| (&pod.key, pod)).collect();
        for seat in seats {
            if let Some(pod) = who_sits(seat, &info).and_then(|pod| pods.get(pod)) {
                self.seat(&info, pod, seat);
            }
        }
    }

    fn seat(&mut self, info: &GroupInfo, pod: &PodInfo, seat: &Seat) {
        let name = pod.key.0.name.to_string();
        let created = !pod.uid.is_empty();
        let uid = if created { pod.uid.clone() } else { placeholder_uid(&name) };
        let mut after = Vec::new();
        for (at, claim) in pod.claims.iter().enumerate() {
            let reference = claim_reference(claim.claim.key());
            match &claim.claim {
                ClaimName::Real(_) => self.take(&reference),
                ClaimName::Planned(_) => {
                    let made = self.made_from_template(pod, claim, &uid);
                    self.draft.create(made);
                }
            }
            let grants: Vec<&Grant> =
                seat.grants.iter().filter(|grant| usize::from(grant.claim) == at).collect();
            let held =
                self.draft.current(&reference).is_some_and(|c| c.status.allocation.is_some());
            let allocation = (!held && !grants.is_empty()).then(|| {
                let granted = Granted {
                    asks: &claim.spec,
                    claim: &reference,
                    grants,
                    node: &seat.node.0,
                    now: self.plan.options.now.and_then(api_time),
                };
                allocate(&granted, &self.slices, self.objects)
            });
            after.extend(self.draft.reserve(&reference, allocation, user(&name, &uid)));
        }
        let bind = Bind {
            namespace: pod.key.0.namespace.to_string(),
            pod: name,
            uid,
            planned: !created,
            spec_of: ObjectRef {
                kind: info.kind,
                namespace: info.key.object.namespace.to_string(),
                name: info.key.object.name.to_string(),
            },
            node: seat.node.0.to_string(),
        };
        self.draft.bind(bind, after);
    }

    /// The claim that the resourceclaim controller would make for the pod.
    fn made_from_template(&self, pod: &PodInfo, claim: &ClaimInfo, uid: &str) -> ResourceClaim {
        let key = claim.claim.key();
        let namespace = key.0.namespace.to_string();
        let template = claim.template.as_ref().and_then(|name| {
            let (kind, name) = (Kind::ResourceClaimTemplate, name.to_string());
            self.objects.get(&ObjectRef { kind, namespace: namespace.clone(), name })
        });
        let (mut labels, mut annotations) = (BTreeMap::new(), BTreeMap::new());
        if let Some(Object::ResourceClaimTemplate(template)) = template {
            labels.clone_from(&template.spec.metadata.labels);
            annotations.clone_from(&template.spec.metadata.annotations);
        }
        annotations.insert(POD_CLAIM_NAME.to_owned(), claim.pod_claim.to_string());
        annotations.insert(PLANNED.to_owned(), "true".to_owned());
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: pod.key.0.name.to_string(),
            uid: uid.to_owned(),
            controller: Some(true),
        };
        ResourceClaim {
            metadata: ObjectMeta {
                name: key.0.name.to_string(),
                namespace,
                labels,
                annotations: annotations.into_iter().collect::<Annotations>(),
                owner_references: vec![owner],
                ..ObjectMeta::default()
            },
            spec: ResourceClaimSpec { devices: (*claim.spec).clone() },
            ..ResourceClaim::default()
        }
    }
}
