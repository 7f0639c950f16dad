//! From seats to effects: of a whole plan, or of seats that are on their way and of which the board shows
//! some of the writes already.

use std::collections::BTreeMap;

use phalanx_engine::{Act, Grant, GroupKey, PodKey, Seat, Timestamp};
use phalanx_objects::meta::{Annotations, ObjectMeta, OwnerReference};
use phalanx_objects::resource::{AllocationResult, ResourceClaim, ResourceClaimSpec};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::{
    Bind, Draft, Effect, Granted, PLANNED, POD_CLAIM_NAME, PodStatusWrite, Slices, allocate,
    api_time, extended, group_uid, group_user, placeholder_uid, user, volumes,
};
use crate::lower::{ClaimInfo, ClaimName, GroupInfo, PodInfo, conditions_of};
use crate::plan::Plan;
use crate::view::{claim_reference, who_sits};
use crate::world::{Objects, World};

/// The writes of a plan, in order. Empty where the world keeps no objects.
pub fn raise(world: &World, plan: &Plan) -> Vec<Effect> {
    let Some(mut raiser) = Raiser::new(world, plan.options.now, None) else { return Vec::new() };
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
            Act::Place(group, seats, _) => {
                if let Some(info) = world.lowering().group(group) {
                    raiser.place(&info, seats);
                }
            }
            Act::Admit(_) | Act::Hold(..) | Act::Evict { .. } => {}
        }
    }
    raiser.draft.finish()
}

/// Seats on their way to the board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Underway<'a> {
    /// The group.
    pub group: &'a GroupKey,
    /// Its seats, each of a pod that exists.
    pub seats: &'a [Seat],
    /// Claims that give up what they hold, with that, before they are given what the seats say.
    pub given_up: &'a BTreeMap<ObjectRef, AllocationResult>,
    /// The time.
    pub now: Timestamp,
}

/// What is still to be written of seats, given the board as it is.
#[derive(Debug, Default)]
pub(crate) struct Resumed {
    /// The writes. Those with nothing before them can be made now.
    pub effects: Vec<Effect>,
    /// What else must come before the bindings that are not among them, pod by pod.
    pub lacks: Vec<(PodKey, Lack)>,
}

/// What stands between a seat and its binding, other than a write of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The pod is gone, going, or of another group: the seat is void.
    Pod,
    /// The claim is gone, going, or not what it was decided on: the seat is void.
    Claim(ObjectRef),
    /// The claim holds other devices than were decided: the seat is void.
    Elsewhere(ObjectRef),
    /// Its devices report that they can't be bound, or not in time: the seat is void.
    Failed(ObjectRef),
    /// Another seat allocates the claim.
    Allocation(ObjectRef),
    /// A controller of the cluster has something to do first: make or bind the object, prepare devices.
    Others(ObjectRef),
    /// The node is gone: the seat is void.
    NodeGone(String),
    /// The node has a taint by now that keeps the pod away, as one that is cordoned has: the seat is void.
    NodeShut {
        /// The node.
        node: String,
        /// Key of the taint.
        taint: String,
    },
}

/// What is still to be written of seats that are on their way.
pub(crate) fn resume(world: &World, seats: &Underway<'_>) -> Resumed {
    let Some(mut raiser) = Raiser::new(world, Some(seats.now), Some(seats.given_up)) else {
        return Resumed::default();
    };
    match world.lowering().group(seats.group) {
        Some(info) => raiser.place(&info, seats.seats),
        None => {
            let pods = seats.seats.iter().filter_map(|seat| seat.pod.clone());
            let pods = pods.filter(|pod| !raiser.objects.names_node(pod));
            raiser.lacks.extend(pods.map(|pod| (pod, Lack::Pod)));
        }
    }
    Resumed { effects: raiser.draft.finish(), lacks: raiser.lacks }
}

struct Raiser<'a> {
    world: &'a World,
    objects: &'a Objects,
    slices: Slices<'a>,
    now: Option<Timestamp>,
    /// Of seats that are on their way: what claims give up. Then what the board has of the seats is their
    /// own, and what does not exist is not planned.
    underway: Option<&'a BTreeMap<ObjectRef, AllocationResult>>,
    draft: Draft,
    /// The pod that is seated.
    seated: Option<PodKey>,
    lacks: Vec<(PodKey, Lack)>,
}

impl<'a> Raiser<'a> {
    fn new(
        world: &'a World,
        now: Option<Timestamp>,
        underway: Option<&'a BTreeMap<ObjectRef, AllocationResult>>,
    ) -> Option<Self> {
        let objects = world.objects()?;
        let slices = Slices::new(world.lowering(), objects);
        let (draft, lacks, seated) = (Draft::default(), Vec::new(), None);
        Some(Self { world, objects, slices, now, underway, draft, seated, lacks })
    }
}

impl Raiser<'_> {
    /// Takes a claim that exists into the draft.
    fn take(&mut self, claim: &ObjectRef) {
        if let Some(Object::ResourceClaim(found)) = self.objects.get(claim) {
            self.draft.claim(found);
        }
    }

    fn place(&mut self, info: &GroupInfo, seats: &[Seat]) {
        let pods: BTreeMap<&PodKey, &PodInfo> =
            info.roles.iter().flat_map(|role| &role.pods).map(|pod| (&pod.key, pod)).collect();
        for seat in seats {
            let Some(key) = who_sits(seat, info) else { continue };
            match pods.get(key) {
                Some(pod) => self.seat(pod, seat),
                None if self.underway.is_some() && !self.objects.names_node(key) => {
                    self.lacks.push((key.clone(), Lack::Pod));
                }
                None => {}
            }
        }
    }

    fn seat(&mut self, pod: &PodInfo, seat: &Seat) {
        let name = pod.key.0.name.to_string();
        // Of a pod that names its node no scheduler writes anything.
        if self.objects.names_node(&pod.key) {
            return;
        }
        let lacked = self.lacks.len();
        self.seated = Some(pod.key.clone());
        if self.underway.is_some()
            && let Some(lack) = self.node_lack(pod, &seat.node.0)
        {
            self.lacking(lack);
            return;
        }
        let created = !pod.uid.is_empty();
        let uid = if created { pod.uid.clone() } else { placeholder_uid(&name) };
        let mut after = volumes::write(&mut self.draft, self.objects, pod, seat);
        for (at, claim) in pod.claims.iter().enumerate() {
            match &claim.claim {
                ClaimName::Real(key) => {
                    self.take(&claim_reference(key));
                    if self.is_lacking(&claim_reference(key)) {
                        continue;
                    }
                }
                // The resourceclaim controller makes it.
                ClaimName::Planned(key) if self.underway.is_some() => {
                    self.lacking(Lack::Others(claim_reference(key)));
                    continue;
                }
                ClaimName::Planned(_) => {
                    let made = self.made_from_template(pod, claim, &uid);
                    self.draft.create(made);
                }
            }
            after.extend(self.reserve(claim, at, seat, (&name, &uid)));
        }
        after.extend(self.extended(pod, seat, (&name, &uid)));
        if self.underway.is_some() {
            let awaited = volumes::awaited(self.objects, pod);
            awaited.into_iter().for_each(|claim| self.lacking(Lack::Others(claim)));
        }
        if self.lacks.len() > lacked {
            return;
        }
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
        self.give_up(&reference, &grants);
        if self.underway.is_some() && !self.is_as_decided(&reference, claim, &grants) {
            return Vec::new();
        }
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

    /// What has become of the node of a seat that keeps its pod away now.
    fn node_lack(&self, pod: &PodInfo, node: &str) -> Option<Lack> {
        let of = ObjectRef { kind: Kind::Node, namespace: String::new(), name: node.to_owned() };
        let Some(Object::Node(found)) = self.objects.get(&of) else {
            return Some(Lack::NodeGone(node.to_owned()));
        };
        let spec = crate::lower::pod_spec(self.objects, &crate::view::home_of(pod), pod.role)?;
        let taint = crate::lower::shut_by(found, &spec.tolerations)?;
        Some(Lack::NodeShut { node: node.to_owned(), taint })
    }

    /// Notes what the pod lacks that is seated.
    fn lacking(&mut self, lack: Lack) {
        self.lacks.extend(self.seated.clone().map(|pod| (pod, lack)));
    }

    /// Whether a claim of seats under way is gone or going; it is noted.
    fn is_lacking(&mut self, claim: &ObjectRef) -> bool {
        if self.underway.is_none() {
            return false;
        }
        let gone = |claim: &ResourceClaim| claim.metadata.deletion_timestamp.is_some();
        let lacking = self.draft.current(claim).is_none_or(gone);
        if lacking {
            self.lacking(Lack::Claim(claim.clone()));
        }
        lacking
    }

    /// Takes back what a claim is to give up, while it still holds that.
    fn give_up(&mut self, claim: &ObjectRef, grants: &[&Grant]) {
        let given_up = self.underway.and_then(|all| all.get(claim));
        let held = self.draft.current(claim).and_then(|claim| claim.status.allocation.as_ref());
        if let (Some(held), Some(old)) = (held, given_up)
            && held == old
            && !grants.is_empty()
            && !is_of(held, grants)
        {
            self.draft.release(claim);
        }
    }

    /// Whether a claim of seats under way can be written, or is as it was decided; what is against it is
    /// noted.
    fn is_as_decided(&mut self, of: &ObjectRef, claim: &ClaimInfo, grants: &[&Grant]) -> bool {
        let Some(current) = self.draft.current(of) else { return false };
        let lack = match &current.status.allocation {
            Some(held) if !grants.is_empty() && !is_of(held, grants) => {
                Some(Lack::Elsewhere(of.clone()))
            }
            Some(held) => self.is_unready(current, held).then(|| {
                let key = claim.claim.key();
                let failure = self.world.lowering().claim_failure(key);
                match failure.filter(|failure| self.now.is_some_and(|now| failure.holds(now))) {
                    Some(_) => Lack::Failed(of.clone()),
                    None => Lack::Others(of.clone()),
                }
            }),
            None if grants.is_empty() && !claim.spec.requests.is_empty() => {
                Some(Lack::Allocation(of.clone()))
            }
            None => None,
        };
        let written = lack.is_none() || matches!(lack, Some(Lack::Others(_)));
        if let Some(lack) = lack {
            self.lacking(lack);
        }
        written
    }

    /// Whether a device that is allocated has still to report that it can be used.
    fn is_unready(&self, claim: &ResourceClaim, held: &AllocationResult) -> bool {
        self.world.lowering().compat().awaits_conditions()
            && held.devices.results.iter().any(|result| {
                let reported = conditions_of(claim, result).unwrap_or_default();
                let is_true = |name: &&String| {
                    reported.iter().any(|one| one.kind == **name && one.status == "True")
                };
                result.binding_conditions.iter().any(|name| !is_true(&name))
                    || result.binding_failure_conditions.iter().any(|name| is_true(&name))
            })
    }

    /// The time that kube-scheduler records in an allocation (`bindClaim`).
    fn recorded(&self) -> Option<jiff::Timestamp> {
        let records = self.world.lowering().compat().awaits_conditions();
        self.now.filter(|_| records).and_then(api_time)
    }

    /// Makes the claim for those of a pod's extended resources that the node gives devices for, and
    /// says so in the pod's status.
    fn extended(
        &mut self,
        pod: &PodInfo,
        seat: &Seat,
        (name, uid): (&str, &str),
    ) -> Option<super::EffectId> {
        let mut claim = self.world.lowering().extended_claim(&pod.home, pod, &seat.node)?;
        if self.underway.is_some() {
            claim.claim = ClaimName::Planned(extended::named(pod));
            let reference = claim_reference(claim.claim.key());
            self.take(&reference);
            if let Some(found) = self.draft.current(&reference) {
                let own = found.metadata.controller().is_some_and(|owner| owner.uid == pod.uid);
                if !own || found.metadata.deletion_timestamp.is_some() {
                    self.lacking(Lack::Claim(reference));
                    return None;
                }
            } else {
                self.draft.create(extended::created(pod, &claim, uid));
            }
        } else {
            self.draft.create(extended::made(pod, &claim, uid));
        }
        let after = self.reserve(&claim, pod.claims.len(), seat, (name, uid));
        let spec = crate::lower::pod_spec(self.objects, &crate::view::home_of(pod), pod.role)?;
        let status = extended::mappings(&spec, &claim);
        if self.underway.is_some() && extended::is_said(self.objects, pod, &status) {
            return after.into_iter().next_back();
        }
        let write = PodStatusWrite {
            namespace: pod.key.0.namespace.to_string(),
            pod: name.to_owned(),
            uid: uid.to_owned(),
            planned: pod.uid.is_empty(),
            status,
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

/// Whether an allocation has just these devices.
pub(crate) fn is_of(held: &AllocationResult, grants: &[&Grant]) -> bool {
    let mut held: Vec<(&str, &str, &str)> = held
        .devices
        .results
        .iter()
        .map(|result| (result.driver.as_str(), result.pool.as_str(), result.device.as_str()))
        .collect();
    let mut granted: Vec<(&str, &str, &str)> = grants
        .iter()
        .map(|grant| {
            let pool = &grant.device.pool;
            (pool.driver.as_str(), pool.pool.as_str(), grant.device.device.as_str())
        })
        .collect();
    held.sort_unstable();
    granted.sort_unstable();
    held == granted
}

/// The claim that a controller makes for a pod's extended resources, by its name.
pub(crate) fn made_extended(pod: &PodInfo) -> ObjectRef {
    claim_reference(&extended::named(pod))
}
