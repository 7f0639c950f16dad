//! The controller: a world that follows the board event by event, decides what waits, and works out which
//! writes come next. It reads no clock and writes nothing: whoever has a connection carries events in,
//! effects out and answers back.
//!
//! What it remembers can be rebuilt from one list of the board. Next writes are worked out from the objects
//! as they are, so that going on, going on after a conflict and going on after a crash are one piece of
//! code.

mod absorb;
mod air;
mod drive;
mod flight;
mod give;
mod rivals;
mod shadow;
mod start;
mod tell;
mod timers;
mod watch;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_engine::{Effort, GroupKey, PodKey, Policy, Timestamp};
use phalanx_objects::{Kind, Object, ObjectRef};

use crate::compat::Compat;
use crate::lower::{Gone, Lowering};
use crate::world::World;
use air::Air;
pub(crate) use flight::Cause;
use flight::Flight;
use rivals::Rivals;
use shadow::Shadow;
use tell::Tellings;
use timers::Timers;
use watch::Watch;

pub use write::{
    Effect, EffectId, EventType, EventWrite, Guard, PodConditionWrite, PodName, Write,
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
    /// The reign of this leader. It is made higher than that of every earlier one of the same scheduler, by
    /// the Placements that stand on the board when it begins.
    pub epoch: i64,
    /// How long a group that starts whole may take from its first binding until all that it needs run,
    /// in milliseconds. After it the group is released whole.
    pub start_within_millis: i64,
    /// How long a seat may wait for others before its pod is bound, in milliseconds: for a volume to be made,
    /// for devices to be prepared. After it the seat is given up. kube-scheduler waits ten minutes for either.
    pub wait_within_millis: i64,
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
            wait_within_millis: 600_000,
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

/// A world that follows the board, and what is under way there.
#[derive(Clone, Debug)]
pub struct Controller {
    options: ControlOptions,
    world: World,
    watch: Watch,
    rivals: Rivals,
    air: Air,
    flights: BTreeMap<u64, Flight>,
    /// Those of each group.
    flights_of: BTreeMap<GroupKey, BTreeSet<u64>>,
    /// When flights look again by themselves.
    times: Timers<u64>,
    /// By object that flights read, those flights.
    readers: BTreeMap<ObjectRef, BTreeSet<u64>>,
    /// Flights that look again at the next occasion.
    restless: BTreeSet<u64>,
    /// Flights that wait until the watch of claims has come to what they wrote.
    watching: BTreeSet<u64>,
    /// Groups that are left alone for a while after their writes failed.
    backoffs: BTreeMap<GroupKey, Backoff>,
    /// When that is over.
    backoff_ends: Timers<GroupKey>,
    /// Claims for extended resources: what of them a failed attempt has left is deleted.
    extended: BTreeSet<ObjectRef>,
    /// Namespaces of pods that went, so that Placements there may have no more to say.
    emptied: BTreeSet<String>,
    /// Pods that are other than at the last step.
    moved_pods: BTreeSet<PodKey>,
    /// Placements that are other than before, or that a flight has left: nobody may be at work on them.
    records: BTreeSet<ObjectRef>,
    told: Tellings,
    shadow: Shadow,
    /// Everything was listed once, and the reign is known.
    reigns: bool,
    /// Something changed since the last decision.
    stale: bool,
    /// When the engine asked to be asked again.
    wake_at: Option<Timestamp>,
    flights_made: u64,
    effects_made: u64,
    events_seen: u64,
    file: Arc<str>,
    /// What this step gives out.
    out: Step,
}

/// How long a group is left alone.
#[derive(Clone, Copy, Debug)]
struct Backoff {
    until: Timestamp,
    times: u32,
}

/// How long a pause is after so many: the first doubled for each, and no longer than the most.
fn pause_millis((first, most): (i64, i64), times: u32) -> i64 {
    first.saturating_mul(1 << times.min(20)).min(most)
}

impl Controller {
    /// A controller that has seen nothing.
    pub fn new(options: ControlOptions) -> Self {
        let lowering = Lowering::new(options.compat.clone()).for_scheduler(&options.scheduler_name);
        Self {
            options,
            world: World::for_controller(lowering),
            watch: Watch::default(),
            rivals: Rivals::default(),
            air: Air::default(),
            flights: BTreeMap::new(),
            flights_of: BTreeMap::new(),
            times: Timers::default(),
            readers: BTreeMap::new(),
            restless: BTreeSet::new(),
            watching: BTreeSet::new(),
            backoffs: BTreeMap::new(),
            backoff_ends: Timers::default(),
            extended: BTreeSet::new(),
            emptied: BTreeSet::new(),
            moved_pods: BTreeSet::new(),
            records: BTreeSet::new(),
            told: Tellings::default(),
            shadow: Shadow::default(),
            reigns: false,
            stale: false,
            wake_at: None,
            flights_made: 0,
            effects_made: 0,
            events_seen: 0,
            file: Arc::from("the cluster"),
            out: Step::default(),
        }
    }

    /// Takes in what happened, decides once, and says what is to be done now.
    pub fn step(&mut self, batch: impl IntoIterator<Item = Event>, now: Timestamp) -> Step {
        for event in batch {
            self.event(event, now);
        }
        self.stale |= self.world.lower();
        self.out.synced = self.watch.has_listed(&self.options.kinds);
        if self.out.synced {
            self.act(now);
        }
        std::mem::take(&mut self.out)
    }

    fn act(&mut self, now: Timestamp) {
        if !self.reigns {
            self.reigns = true;
            self.begin_reign();
        }
        for object in self.air.expire(now) {
            self.wake_readers(&object);
        }
        self.wake_members();
        self.restless.extend(self.times.due(now));
        self.drive(now);
        let due = self.wake_at.is_some_and(|at| at <= now);
        if self.end_backoffs(now) || self.stale || due {
            self.stale = false;
            self.choose(now);
            self.drive(now);
        }
        self.sweep();
        self.out.wake_at = self.next_wake(now);
    }

    /// The world as it was seen so far, for read-only views.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// How many decisions are on their way to the board.
    pub fn flights_len(&self) -> usize {
        self.flights.len()
    }

    /// Ends the waits that are over. Whether there was one.
    fn end_backoffs(&mut self, now: Timestamp) -> bool {
        let ended = self.backoff_ends.due(now);
        for group in &ended {
            // How often it failed is kept as long as there is somebody to fail.
            if self.world.lowering().group(group).is_none() {
                self.backoffs.remove(group);
            }
        }
        !ended.is_empty()
    }

    /// Ends the wait of a group, and forgets that it failed.
    fn forget_backoff(&mut self, group: &GroupKey) {
        self.backoffs.remove(group);
        self.backoff_ends.set(group, None);
    }

    /// Leaves a group alone for a while: each time twice as long, and a little more by its name, so that two
    /// controllers that stood in each other's way do not meet again.
    fn back_off(&mut self, group: &GroupKey, now: Timestamp) {
        let backoff =
            self.backoffs.entry(group.clone()).or_insert(Backoff { until: now, times: 0 });
        let millis = pause_millis(self.options.backoff_millis, backoff.times);
        backoff.times += 1;
        let text = format!("{}/{group}#{}", self.options.scheduler_name, backoff.times);
        let spread = i64::try_from(flight::hash(&text) % 1000).unwrap_or_default();
        let millis = millis.saturating_add(millis.saturating_mul(spread) / 1000);
        backoff.until = Timestamp(now.0.saturating_add(millis));
        self.backoff_ends.set(group, Some(backoff.until));
    }

    fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let all = [self.wake_at, self.air.wake_at(), self.backoff_ends.next(), self.times.next()];
        all.into_iter().flatten().filter(|at| *at > now).min()
    }

    /// Gives out a write, unless one of the same object is under way.
    fn emit(&mut self, flight: Option<u64>, guard: Guard, write: Write) -> bool {
        let id = EffectId(self.effects_made);
        let effect = Effect { id, guard, write };
        if let Some(target) = effect.target() {
            if self.air.has(&target) {
                return false;
            }
            let version = self.version_of(&target);
            self.air.send(&effect, flight, version);
        }
        self.effects_made += 1;
        self.out.effects.push(effect);
        true
    }

    /// The version of an object as it was last seen.
    fn version_of(&self, object: &ObjectRef) -> Option<String> {
        let found = self.world.objects()?.get(object)?;
        Some(found.metadata().resource_version.clone())
    }

    /// A guard by identity alone.
    fn of_uid(&self, uid: &str) -> Guard {
        Guard { uid: uid.to_owned(), version: None, epoch: self.options.epoch }
    }

    /// The pod as it was last seen.
    fn pod(&self, pod: &PodKey) -> Option<&phalanx_objects::core::Pod> {
        flight::pod_of(self.world.objects()?, pod)
    }
}
