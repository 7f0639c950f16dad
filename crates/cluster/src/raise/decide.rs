//! From a plan to its effects.

use std::collections::BTreeMap;

use phalanx_engine::{Act, Grant, GroupKey, PodKey, Seat};
use phalanx_objects::meta::{Annotations, ObjectMeta, OwnerReference};
use phalanx_objects::resource::{ResourceClaim, ResourceClaimSpec};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::{
    Bind, Draft, Effect, Granted, PLANNED, POD_CLAIM_NAME, PodStatusWrite, SliceIndex, allocate,
    api_time, extended, group_uid, group_user, placeholder_uid, user, volumes,
};
use crate::lower::{ClaimInfo, ClaimName, PodInfo};
use crate::plan::Plan;
use crate::view::{claim_reference, who_sits};
use crate::world::{Objects, World};

/// The writes of a plan, in order. Empty where the world keeps no objects.
pub fn raise(world: &World, plan: &Plan) -> Vec<Effect> {
    let Some(objects) = world.objects() else { return Vec::new() };
    let slices = SliceIndex::new(objects, world.lowering().compat());
    let mut raiser = Raiser { world, objects, slices, plan, draft: Draft::default() };
    for claim in world.lowering().left_over() {
        let reference = claim_reference(&claim);
        raiser.take(&reference);
        raiser.draft.delete(&reference);
    }
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
                self.seat(pod, seat);
            }
        }
    }

    fn seat(&mut self, pod: &PodInfo, seat: &Seat) {
        let name = pod.key.0.name.to_string();
        // Of a pod that names its node no scheduler writes anything.
        if self.objects.names_node(&pod.key) {
            return;
        }
        let created = !pod.uid.is_empty();
        let uid = if created { pod.uid.clone() } else { placeholder_uid(&name) };
        let mut after = volumes::write(&mut self.draft, self.objects, pod, seat);
        for (at, claim) in pod.claims.iter().enumerate() {
            match &claim.claim {
                ClaimName::Real(key) => self.take(&claim_reference(key)),
                ClaimName::Planned(_) => {
                    let made = self.made_from_template(pod, claim, &uid);
                    self.draft.create(made);
                }
            }
            after.extend(self.reserve(claim, at, seat, (&name, &uid)));
        }
        after.extend(self.extended(pod, seat, (&name, &uid)));
        let bind = Bind {
            namespace: pod.key.0.namespace.to_string(),
            pod: name,
            uid,
            planned: !created,
            spec_of: crate::view::home_of(pod),
            role: pod.role,
            node: seat.node.0.to_string(),
        };
        self.draft.bind(bind, after);
    }

    /// Allocates and reserves one of a pod's claims; `at` is its place in the grants.
    fn reserve(
        &mut self,
        claim: &ClaimInfo,
        at: usize,
        seat: &Seat,
        (name, uid): (&str, &str),
    ) -> Vec<super::EffectId> {
        let reference = claim_reference(claim.claim.key());
        let grants: Vec<&Grant> =
            seat.grants.iter().filter(|grant| usize::from(grant.claim) == at).collect();
        let current = self.draft.current(&reference);
        let held = current.is_some_and(|c| c.status.allocation.is_some());
        let claim_uid = current.map(|c| c.metadata.uid.clone()).unwrap_or_default();
        // A claim that requests nothing is allocated as well, with no devices.
        let allocation = (!held).then(|| {
            let granted = Granted {
                asks: &claim.spec,
                claim: &reference,
                uid: &claim_uid,
                grants,
                node: &seat.node.0,
                now: self.recorded(),
            };
            allocate(&granted, &self.slices, self.objects)
        });
        let user = match &claim.group {
            Some(group) => group_user(&group.name, &group_uid(group)),
            None => user(name, uid),
        };
        self.draft.reserve(&reference, allocation, user)
    }

    /// The time that kube-scheduler records in an allocation (`bindClaim`).
    fn recorded(&self) -> Option<jiff::Timestamp> {
        let records = self.world.lowering().compat().awaits_conditions();
        self.plan.options.now.filter(|_| records).and_then(api_time)
    }

    /// Makes the claim for those of a pod's extended resources that the node gives devices for, and
    /// says so in the pod's status.
    fn extended(
        &mut self,
        pod: &PodInfo,
        seat: &Seat,
        (name, uid): (&str, &str),
    ) -> Option<super::EffectId> {
        let claim = self.world.lowering().extended_claim(&pod.home, pod, &seat.node)?;
        self.draft.create(extended::made(pod, &claim, uid));
        let after = self.reserve(&claim, pod.claims.len(), seat, (name, uid));
        let spec = crate::lower::pod_spec(self.objects, &crate::view::home_of(pod), pod.role)?;
        let write = PodStatusWrite {
            namespace: pod.key.0.namespace.to_string(),
            pod: name.to_owned(),
            uid: uid.to_owned(),
            planned: pod.uid.is_empty(),
            status: extended::mappings(&spec, &claim),
        };
        Some(self.draft.pod_status(write, after))
    }

    /// The claim that the resourceclaim controller would make for the pod, or for its group.
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
        ResourceClaim {
            metadata: ObjectMeta {
                name: key.0.name.to_string(),
                namespace,
                labels,
                annotations: annotations.into_iter().collect::<Annotations>(),
                owner_references: vec![match &claim.group {
                    Some(group) => OwnerReference {
                        api_version: "scheduling.k8s.io/v1beta1".to_owned(),
                        kind: "PodGroup".to_owned(),
                        name: group.name.to_string(),
                        uid: group_uid(group),
                        controller: Some(true),
                    },
                    None => extended::owner(pod, uid),
                }],
                ..ObjectMeta::default()
            },
            spec: ResourceClaimSpec { devices: (*claim.spec).clone() },
            ..ResourceClaim::default()
        }
    }
}
