//! The controller: a world that follows the board event by event, decides what waits, and works out which
//! writes come next. It reads no clock and writes nothing: whoever has a connection carries events in,
//! effects out and answers back.
//!
//! What it remembers can be rebuilt from one list of the board. Next writes are worked out from the objects
//! as they are, so that going on, going on after a conflict and going on after a crash are one piece of
//! code.

mod write;

use phalanx_engine::{Effort, Policy, Timestamp};
use phalanx_objects::{Kind, Object, ObjectRef};

use crate::compat::Compat;
use crate::lower::Gone;

pub use write::{
    Effect, EffectId, EventType, EventWrite, GroupConditionWrite, Guard, PodConditionWrite,
    PodName, Write,
};

/// What a controller is started with.
#[derive(Clone, Debug)]
pub struct ControlOptions {
    /// The `spec.schedulerName` of the pods that it places.
    pub scheduler_name: String,
    /// Version and gates of the cluster.
    pub compat: Compat,
    /// How to choose.
    pub policy: Policy,
    /// Bound of each search.
    pub effort: Effort,
    /// Decides, writes nothing, and tells where what the cluster does differs.
    pub shadow: bool,
    /// The reign of this leader: higher than that of every earlier one of the same scheduler.
    pub epoch: i64,
    /// How long a group that starts whole may take from its first binding until all that it needs run,
    /// in milliseconds. After it the group is released whole.
    pub start_within_millis: i64,
    /// How long to wait for the board to show what became of a write whose answer was lost, in
    /// milliseconds. After it the write is made again if it is still missing.
    pub lost_within_millis: i64,
    /// How long a group waits after its writes failed, the first time and at most, in milliseconds. It
    /// doubles from time to time, and is a little longer or shorter by the group's name.
    pub backoff_millis: (i64, i64),
    /// The kinds that are listed and watched. Nothing is decided before each of them was listed.
    pub kinds: Vec<Kind>,
}

impl ControlOptions {
    /// The usual for a scheduler of this name: a minute to start, a second to a minute of backoff.
    pub fn new(scheduler_name: &str, compat: Compat) -> Self {
        Self {
            scheduler_name: scheduler_name.to_owned(),
            compat,
            policy: Policy::default(),
            effort: Effort::default(),
            shadow: false,
            epoch: 0,
            start_within_millis: 60_000,
            lost_within_millis: 10_000,
            backoff_millis: (1_000, 60_000),
            kinds: kinds().collect(),
        }
    }
}

/// The kinds that a controller needs to see. Workloads are none of them: what does not exist as a pod is
/// not placed, and of those that start whole a controller makes an object that says so. Neither are the
/// objects that only admission or scores read. A kind that the server does not serve is told of by an
/// empty list.
pub fn kinds() -> impl Iterator<Item = Kind> {
    let needed = |kind: &Kind| match kind {
        Kind::Node
        | Kind::Pod
        | Kind::Namespace
        | Kind::PriorityClass
        | Kind::ResourceSlice
        | Kind::ResourceClaim
        | Kind::ResourceClaimTemplate
        | Kind::DeviceClass
        | Kind::DeviceTaintRule
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::StorageClass
        | Kind::CSINode
        | Kind::CSIDriver
        | Kind::CSIStorageCapacity
        | Kind::VolumeAttachment
        | Kind::NodeTopology
        | Kind::Placement
        | Kind::Scheduling(_) => true,
        Kind::Service
        | Kind::ReplicationController
        | Kind::ServiceAccount
        | Kind::RuntimeClass
        | Kind::LimitRange
        | Kind::ResourceQuota
        | Kind::Workload(_) => false,
    };
    Kind::ALL.iter().copied().filter(needed)
}

/// Something that happened. Of one kind, events come in the order of the board's watch; kinds may run ahead
/// of each other. Stale and repeated ones do no harm.
#[derive(Clone, Debug)]
pub enum Event {
    /// A list of a kind begins: at the start, and again after a watch was lost (410, a restart). One that
    /// was begun before and has not ended is forgotten.
    Listing(Kind),
    /// An object of the list that has begun.
    Found(Box<Object>),
    /// The list has ended, at this version: what it did not have is gone. From now on the kind is known.
    Listed {
        /// The kind.
        kind: Kind,
        /// `resourceVersion` of the list; empty where there is none, as of a kind that is not served.
        version: String,
    },
    /// The watch shows an object, new or changed.
    Applied(Box<Object>),
    /// The watch shows that an object is gone.
    Deleted(Gone),
    /// The watch of a kind has come to this version (a bookmark).
    Passed {
        /// The kind.
        kind: Kind,
        /// The version.
        version: String,
    },
    /// What became of an effect.
    Answered(EffectId, Answer),
}

/// What became of an effect.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It is written; with the object as the server returned it, where it returned one. Of a deletion that
    /// waits (grace, finalizers) that is the object that goes.
    Written(Option<Box<Object>>),
    /// The object has another version or UID than the guard says, or exists already (409).
    Conflict,
    /// There is no such object (404).
    Missing,
    /// The server won't have it, and would not if it were asked again the same: 400, 403, 422.
    Refused {
        /// HTTP status.
        code: u16,
        /// What the server says.
        message: String,
    },
    /// No answer came, or one that tells nothing (a time-out, 429, 5xx): it may be written or not.
    Unknown,
}

/// What is to be done now.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Writes. Each may be made at once and beside the others: those that must come after another are
    /// given out when that is done. Each is to be answered.
    pub effects: Vec<Effect>,
    /// When to step again even if nothing happens.
    pub wake_at: Option<Timestamp>,
    /// Whether everything that is needed was listed.
    pub synced: bool,
    /// What was decided, where anything was.
    pub decided: Option<Decided>,
    /// Groups of which something else is said than before.
    pub told: Vec<Told>,
    /// In the shadow of another scheduler: where it differs.
    pub differences: Vec<Difference>,
}

/// Figures of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Groups that are placed.
    pub placed: usize,
    /// Groups that wait, or are refused or given up.
    pub waiting: usize,
    /// Effort spent, in steps.
    pub steps: u64,
}

/// What is said of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The object that declares it: a pod alone, or what says that pods start together.
    pub group: ObjectRef,
    /// `placed`, `waits`, `refused` or `gaveUp`.
    pub verdict: &'static str,
    /// Code of the reason; empty where it is placed.
    pub code: &'static str,
    /// The sentence; empty where it is placed.
    pub message: String,
}

/// Where another scheduler does otherwise than we would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The pod.
    pub pod: ObjectRef,
    /// The node that we would take; none where we would let it wait.
    pub ours: Option<String>,
    /// The node that it is on.
    pub theirs: Option<String>,
    /// Why, in a sentence.
    pub message: String,
}
