//! What a controller writes. The form on the wire is left to whoever has the connection: objects here are
//! lean, so what exists is patched and never replaced.

use std::fmt;

use phalanx_objects::topology::Placement;
use phalanx_objects::{Kind, ObjectRef};

use crate::raise;

/// Number of an effect, unique over a controller's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One write, to be made now.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Its number, by which it is answered.
    pub id: EffectId,
    /// What must still be so when it is written.
    pub guard: Guard,
    /// The write.
    pub write: Write,
}

/// What must still be so when an effect is written: the server is to refuse it otherwise (409).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// UID of the object; empty where it is created.
    pub uid: String,
    /// Its `resourceVersion`; none where any will do.
    pub version: Option<String>,
    /// The reign of the leader that writes.
    pub epoch: i64,
}

/// A write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// What puts seats on the board: claims, pods' statuses, volumes, bindings. Of claims none is made
    /// from a template here, for the resourceclaim controller does so.
    Seat(raise::Write),
    /// Create a Placement.
    CreatePlacement(Box<Placement>),
    /// Replace spec and status of a Placement (it has no status subresource).
    UpdatePlacement(Box<Placement>),
    /// Delete a Placement.
    DeletePlacement(ObjectRef),
    /// Delete a pod with the grace that it asks for.
    DeletePod(PodName),
    /// Patch a pod's status: the condition `PodScheduled` is False.
    PodCondition(PodConditionWrite),
    /// Create an event.
    Event(EventWrite),
}

/// A pod by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Why a pod is not placed: its condition `PodScheduled` with the status `False`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodConditionWrite {
    /// The pod.
    pub pod: PodName,
    /// UID of the pod.
    pub uid: String,
    /// `Unschedulable`, which autoscalers look for, or `SchedulerError`.
    pub reason: &'static str,
    /// The sentence.
    pub message: String,
}

/// An event (`events.k8s.io`) about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventWrite {
    /// The object.
    pub regarding: ObjectRef,
    /// Its UID.
    pub uid: String,
    /// Whether it is as it should be.
    pub of_type: EventType,
    /// One word, as kube-scheduler has it: `Scheduled`, `FailedScheduling`; `Released` for a group that is
    /// given up after it was bound.
    pub reason: &'static str,
    /// What was being done.
    pub action: &'static str,
    /// The sentence.
    pub note: String,
}

/// `type` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// `Normal`.
    Normal,
    /// `Warning`.
    Warning,
}

impl EventType {
    /// The word as the API spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl Write {
    /// The binding that it makes.
    pub(super) fn binds(&self) -> Option<&raise::Bind> {
        if let Self::Seat(raise::Write::Bind(bind)) = self { Some(bind) } else { None }
    }

    /// Whether it deletes the object.
    pub(super) fn deletes(&self) -> bool {
        match self {
            Self::Seat(raise::Write::DeleteClaim(_))
            | Self::DeletePlacement(_)
            | Self::DeletePod(_) => true,
            Self::Seat(
                raise::Write::CreateClaim(_)
                | raise::Write::Finalize(_)
                | raise::Write::Unprotect(_)
                | raise::Write::ClaimStatus(_)
                | raise::Write::PodStatus(_)
                | raise::Write::KeepVolume(_)
                | raise::Write::SelectNode(_)
                | raise::Write::Bind(_),
            )
            | Self::CreatePlacement(_)
            | Self::UpdatePlacement(_)
            | Self::PodCondition(_)
            | Self::Event(_) => false,
        }
    }
}

impl Effect {
    /// The object that is written, and of which no two writes are under way together. An event is an
    /// object of its own: it has none.
    pub fn target(&self) -> Option<ObjectRef> {
        let pod = |pod: &PodName| ObjectRef {
            kind: Kind::Pod,
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
        };
        match &self.write {
            Write::Seat(write) => Some(seat_target(write)),
            Write::CreatePlacement(placement) | Write::UpdatePlacement(placement) => {
                Some(ObjectRef {
                    kind: Kind::Placement,
                    namespace: placement.metadata.namespace.clone(),
                    name: placement.metadata.name.clone(),
                })
            }
            Write::DeletePlacement(placement) => Some(placement.clone()),
            Write::DeletePod(name) => Some(pod(name)),
            Write::PodCondition(condition) => Some(pod(&condition.pod)),
            Write::Event(_) => None,
        }
    }
}

/// The object that a write of a seat is about.
pub(super) fn seat_target(write: &raise::Write) -> ObjectRef {
    let of = |kind, namespace: &str, name: &str| ObjectRef {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    match write {
        raise::Write::CreateClaim(claim)
        | raise::Write::Finalize(claim)
        | raise::Write::Unprotect(claim)
        | raise::Write::DeleteClaim(claim)
        | raise::Write::ClaimStatus(claim) => raise::reference(claim),
        raise::Write::PodStatus(status) => of(Kind::Pod, &status.namespace, &status.pod),
        raise::Write::KeepVolume(write) => of(Kind::PersistentVolume, "", &write.volume),
        raise::Write::SelectNode(write) => {
            of(Kind::PersistentVolumeClaim, &write.namespace, &write.claim)
        }
        raise::Write::Bind(bind) => of(Kind::Pod, &bind.namespace, &bind.pod),
    }
}
