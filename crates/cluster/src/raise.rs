//! A decision as the writes that put it on the board, in the order in which kube-scheduler makes
//! them: what becomes of volumes, the claim's finalizer, its allocation with the reservation, then the
//! binding. The writing itself, and waiting for volumes and for binding conditions, are left to whoever
//! has a connection.

mod allocation;
mod decide;
mod extended;
mod manifests;
mod volumes;

use std::collections::BTreeMap;

use phalanx_engine::Timestamp;
use phalanx_objects::resource::{ResourceClaim, ResourceClaimConsumerReference};
use phalanx_objects::{Kind, ObjectRef};

use crate::lower::GroupOwner;

pub(crate) use allocation::{Granted, Slices, allocate, quantity, share_id};
pub use decide::raise;
pub(crate) use decide::{Lack, Underway, is_of, made_extended, resume};
pub use extended::{EXTENDED_CLAIM, PodStatusWrite};
pub use manifests::manifests;
pub(crate) use volumes::mounted;
pub use volumes::{VolumeClaimWrite, VolumeWrite};

/// Keeps a claim from vanishing while it holds devices.
pub const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// Which entry of the pod's `resourceClaims` a claim was made for.
pub const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";
/// Marks a claim among the manifests that is to be deleted, and not applied.
pub const DELETED: &str = "phalanx.dev/deleted";
/// Marks what does not exist yet and carries names that we gave it.
pub const PLANNED: &str = "phalanx.dev/planned";

/// Number of an effect within one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u32);

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Its number.
    pub id: EffectId,
    /// Effects that must be seen done before.
    pub after: Vec<EffectId>,
    /// What must still be so when it is written.
    pub guard: Guard,
    /// The write.
    pub write: Write,
}

/// What must still be so when an effect is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// Identity of the object; empty where it did not exist when it was read.
    pub uid: String,
    /// Its version.
    pub version: GuardVersion,
}

/// The `resourceVersion` that an object must have when an effect is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GuardVersion {
    /// Any: the object is created by this effect, or its version is not known or does not matter.
    #[default]
    Any,
    /// The one that was read.
    Read(String),
    /// The one that an earlier effect on the object leaves, which only its answer tells.
    LeftBy(EffectId),
}

/// A write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Create a claim from its template, as the resourceclaim controller does once the pod exists.
    CreateClaim(Box<ResourceClaim>),
    /// Update a claim's metadata: add the finalizer.
    Finalize(Box<ResourceClaim>),
    /// Update a claim's metadata: take the finalizer away, so that it can be deleted.
    Unprotect(Box<ResourceClaim>),
    /// Delete a claim.
    DeleteClaim(Box<ResourceClaim>),
    /// Update a claim's status: its allocation and its users, in one call.
    ClaimStatus(Box<ResourceClaim>),
    /// Patch a pod's status: the claim that serves its extended resources.
    PodStatus(PodStatusWrite),
    /// Patch a volume: the claim that it is kept for.
    KeepVolume(VolumeWrite),
    /// Patch a claim on a volume: the node on which one is to be made for it.
    SelectNode(VolumeClaimWrite),
    /// Create the Binding of a pod.
    Bind(Bind),
}

/// A Binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Namespace of the pod.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// Its UID; a placeholder where the pod is not created yet.
    pub uid: String,
    /// Whether the pod is not created yet.
    pub planned: bool,
    /// The object that says what the pod is like: itself, or the workload that will make it.
    pub spec_of: ObjectRef,
    /// The role in that object that it is of.
    pub role: u16,
    /// The node.
    pub node: String,
}

/// The UID to be filled in for a pod that does not exist yet. It reads as what it is, and no API
/// server would take it for one.
pub fn placeholder_uid(pod: &str) -> String {
    format!("uid-of-pod-{pod}-once-created")
}

/// Effects under way: claims as the effects so far leave them.
#[derive(Debug, Default)]
pub struct Draft {
    effects: Vec<Effect>,
    claims: BTreeMap<ObjectRef, Drafted>,
}

/// A claim as the effects so far leave it.
#[derive(Clone, Debug)]
struct Drafted {
    claim: ResourceClaim,
    /// The effect that changed it last.
    last: Option<EffectId>,
}

impl Drafted {
    /// What must still be so when the claim is written next.
    fn guard(&self) -> Guard {
        let version = match self.last {
            Some(last) => GuardVersion::LeftBy(last),
            None if self.claim.metadata.resource_version.is_empty() => GuardVersion::Any,
            None => GuardVersion::Read(self.claim.metadata.resource_version.clone()),
        };
        Guard { uid: self.claim.metadata.uid.clone(), version }
    }

    fn after(&self) -> Vec<EffectId> {
        self.last.into_iter().collect()
    }
}

impl Draft {
    /// A claim that exists is taken as it is now, unless an effect has changed it.
    pub fn claim(&mut self, claim: &ResourceClaim) {
        let drafted = || Drafted { claim: claim.clone(), last: None };
        self.claims.entry(reference(claim)).or_insert_with(drafted);
    }

    /// A claim that does not exist yet is created from its template.
    pub fn create(&mut self, claim: ResourceClaim) {
        let reference = reference(&claim);
        if self.claims.contains_key(&reference) {
            return;
        }
        let id =
            self.push(Vec::new(), Guard::default(), Write::CreateClaim(Box::new(claim.clone())));
        self.claims.insert(reference, Drafted { claim, last: Some(id) });
    }

    /// The claim as it is after the effects so far.
    pub fn current(&self, claim: &ObjectRef) -> Option<&ResourceClaim> {
        self.claims.get(claim).map(|drafted| &drafted.claim)
    }

    /// Gives the devices to the claim, and the claim to the pod: the allocation only where there is
    /// none, the reservation only where it is missing. Answers what must precede the binding.
    pub fn reserve(
        &mut self,
        claim: &ObjectRef,
        allocation: Option<phalanx_objects::resource::AllocationResult>,
        user: ResourceClaimConsumerReference,
    ) -> Vec<EffectId> {
        let Some(mut drafted) = self.claims.remove(claim) else { return Vec::new() };
        let finalizers = &mut drafted.claim.metadata.finalizers;
        if allocation.is_some() && !finalizers.iter().any(|f| f == FINALIZER) {
            finalizers.push(FINALIZER.to_owned());
            self.write(&mut drafted, Write::Finalize);
        }
        let status = &mut drafted.claim.status;
        let reserved = status.reserved_for.iter().any(|found| found.uid == user.uid);
        if allocation.is_some() || !reserved {
            if allocation.is_some() {
                status.allocation = allocation;
            }
            if !reserved {
                status.reserved_for.push(user);
            }
            self.write(&mut drafted, Write::ClaimStatus);
        }
        let needed = drafted.after();
        self.claims.insert(claim.clone(), drafted);
        needed
    }

    /// Takes an allocation back that nobody uses: users, devices and allocation in one write, for
    /// the API server allows it only so.
    pub fn release(&mut self, claim: &ObjectRef) {
        let Some(mut drafted) = self.claims.remove(claim) else { return };
        let status = &mut drafted.claim.status;
        status.allocation = None;
        status.reserved_for.clear();
        status.devices.clear();
        self.write(&mut drafted, Write::ClaimStatus);
        self.claims.insert(claim.clone(), drafted);
    }

    /// Takes users away from a claim, and what it holds with the last of them.
    pub fn leave(&mut self, claim: &ObjectRef, goes: impl Fn(&str) -> bool) {
        let Some(mut drafted) = self.claims.remove(claim) else { return };
        let status = &mut drafted.claim.status;
        let users = status.reserved_for.len();
        status.reserved_for.retain(|user| !goes(&user.uid));
        let left = status.reserved_for.len();
        if left == 0 && status.allocation.take().is_some() {
            status.devices.clear();
            self.write(&mut drafted, Write::ClaimStatus);
        } else if left < users {
            self.write(&mut drafted, Write::ClaimStatus);
        }
        self.claims.insert(claim.clone(), drafted);
    }

    /// Deletes a claim, whatever it holds: its finalizer is taken away first (`deleteClaim`).
    pub fn delete(&mut self, claim: &ObjectRef) {
        let Some(mut drafted) = self.claims.remove(claim) else { return };
        let finalizers = &mut drafted.claim.metadata.finalizers;
        if finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
            self.write(&mut drafted, Write::Unprotect);
        }
        self.write(&mut drafted, Write::DeleteClaim);
    }

    /// Writes a claim as it is drafted, on top of what was written of it before.
    fn write(&mut self, drafted: &mut Drafted, how: fn(Box<ResourceClaim>) -> Write) {
        let write = how(Box::new(drafted.claim.clone()));
        drafted.last = Some(self.push(drafted.after(), drafted.guard(), write));
    }

    /// Says in a pod's status which claim serves its extended resources, once that is written.
    pub fn pod_status(&mut self, status: PodStatusWrite, after: Vec<EffectId>) -> EffectId {
        let uid = if status.planned { String::new() } else { status.uid.clone() };
        let guard = Guard { uid, version: GuardVersion::Any };
        self.push(after, guard, Write::PodStatus(status))
    }

    /// Binds a pod once its claims are written.
    pub fn bind(&mut self, bind: Bind, after: Vec<EffectId>) {
        let uid = if bind.planned { String::new() } else { bind.uid.clone() };
        let guard = Guard { uid, version: GuardVersion::Any };
        self.push(after, guard, Write::Bind(bind));
    }

    /// The effects, in order.
    pub fn finish(self) -> Vec<Effect> {
        self.effects
    }

    fn push(&mut self, after: Vec<EffectId>, guard: Guard, write: Write) -> EffectId {
        // More than 2^32 effects would not fit in memory.
        let id = EffectId(u32::try_from(self.effects.len()).unwrap_or(u32::MAX));
        self.effects.push(Effect { id, after, guard, write });
        id
    }
}

/// What a claim is referred to by.
pub fn reference(claim: &ResourceClaim) -> ObjectRef {
    ObjectRef {
        kind: Kind::ResourceClaim,
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
    }
}

/// A pod as the user of a claim.
pub fn user(pod: &str, uid: &str) -> ResourceClaimConsumerReference {
    ResourceClaimConsumerReference {
        api_group: String::new(),
        resource: "pods".to_owned(),
        name: pod.to_owned(),
        uid: uid.to_owned(),
    }
}

/// A PodGroup as the user of a claim (KEP-5729).
pub fn group_user(group: &str, uid: &str) -> ResourceClaimConsumerReference {
    ResourceClaimConsumerReference {
        api_group: "scheduling.k8s.io".to_owned(),
        resource: "podgroups".to_owned(),
        name: group.to_owned(),
        uid: uid.to_owned(),
    }
}

/// The UID of a PodGroup, or what is to be filled in for it.
pub(crate) fn group_uid(group: &GroupOwner) -> String {
    match group.uid.as_str() {
        "" => format!("uid-of-podgroup-{}-once-created", group.name),
        uid => uid.to_owned(),
    }
}

/// A time of the engine as the API writes it; none beyond what it can write.
pub fn api_time(time: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(time.0).ok()
}

#[cfg(test)]
mod tests;
