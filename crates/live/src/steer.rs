//! The thread that owns the controller: takes all events that wait, steps once, and hands the effects on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use phalanx_cluster::control::{Controller, Difference, Effect, Event, Step, Told, Write};
use phalanx_cluster::raise;
use phalanx_engine::Timestamp;
use phalanx_objects::resource::ResourceClaim;
use phalanx_objects::{Kind, Object, ObjectRef};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use crate::carry::Parcel;
use crate::failure::Failure;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::snapshot;

/// Most events of one step: what comes after them waits for the next.
const BATCH: usize = 16_384;

/// What the thread is given.
pub(crate) struct Steering {
    pub controller: Controller,
    pub events: mpsc::Receiver<Event>,
    pub parcels: mpsc::UnboundedSender<Parcel>,
    pub stop: watch::Receiver<bool>,
    pub runtime: Handle,
    pub health: Health,
    pub metrics: Metrics,
    /// Where a snapshot goes if a decision fails.
    pub snapshots: PathBuf,
}

/// Why it woke.
enum Woken {
    Events,
    /// Nothing happened, but it was to be woken.
    Time,
    Stop,
}

impl Steering {
    /// Steps until it is told to stop. Effects are given out until then; their answers are not waited for.
    pub(crate) fn steer(mut self) -> Result<(), Failure> {
        self.health.set_alive(true);
        let mut batch = Vec::new();
        // Kinds that are served nowhere are told of as events as well: there is a first one.
        let mut wake_at = None;
        loop {
            match self.wait(&mut batch, wake_at) {
                Woken::Stop => break,
                Woken::Events | Woken::Time => {}
            }
            let count = batch.len();
            let began = Instant::now();
            let now = Timestamp(jiff::Timestamp::now().as_millisecond());
            let controller = &mut self.controller;
            let stepped = catch_unwind(AssertUnwindSafe(|| controller.step(batch.drain(..), now)));
            let step = match stepped {
                Ok(step) => step,
                Err(panic) => return Err(self.panicked(panic.as_ref())),
            };
            self.metrics.stepped(&step, count, self.controller.flights_len(), began.elapsed());
            self.health.set_ready(step.synced);
            wake_at = step.wake_at;
            self.hand_on(step);
        }
        self.health.set_alive(false);
        Ok(())
    }

    /// Waits for events, takes all that are there, and says why it woke.
    fn wait(&mut self, batch: &mut Vec<Event>, wake_at: Option<Timestamp>) -> Woken {
        let (events, stop) = (&mut self.events, &mut self.stop);
        self.runtime.block_on(async {
            let time = async {
                let Some(at) = wake_at else { return std::future::pending().await };
                let now = jiff::Timestamp::now().as_millisecond();
                let millis = u64::try_from(at.0.saturating_sub(now)).unwrap_or_default();
                // A clock that stands between two milliseconds must not make it spin.
                tokio::time::sleep(Duration::from_millis(millis.max(1))).await;
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => Woken::Stop,
                count = events.recv_many(batch, BATCH) => {
                    if count == 0 { Woken::Stop } else { Woken::Events }
                }
                () = time => Woken::Time,
            }
        })
    }

    fn hand_on(&self, step: Step) {
        step.told.iter().for_each(tell);
        step.differences.iter().for_each(tell_difference);
        for effect in step.effects {
            let stands = self.stands(&effect);
            // Nobody takes it when the process ends.
            let _ = self.parcels.send(Parcel { effect, stands });
        }
    }

    /// Whether the pod has the condition already that the effect writes, or the claim the allocation.
    fn stands(&self, effect: &Effect) -> bool {
        let condition = match &effect.write {
            Write::PodCondition(condition) => condition,
            Write::Seat(raise::Write::ClaimStatus(claim)) => return self.is_allocated(claim),
            Write::Seat(_)
            | Write::CreatePlacement(_)
            | Write::UpdatePlacement(_)
            | Write::DeletePlacement(_)
            | Write::DeletePod(_)
            | Write::Event(_) => return false,
        };
        let of = ObjectRef {
            kind: Kind::Pod,
            namespace: condition.pod.namespace.clone(),
            name: condition.pod.name.clone(),
        };
        let found = self.controller.world().objects().and_then(|objects| objects.get(&of));
        let Some(Object::Pod(pod)) = found else { return false };
        pod.status.conditions.iter().any(|c| c.kind == "PodScheduled" && c.status == "False")
    }

    /// Whether a claim is allocated as it is to be written. The write is guarded by the version that says so.
    fn is_allocated(&self, claim: &ResourceClaim) -> bool {
        let objects = self.controller.world().objects();
        let found = objects.and_then(|objects| objects.get(&raise::reference(claim)));
        let Some(Object::ResourceClaim(found)) = found else { return false };
        found.status.allocation.is_some() && found.status.allocation == claim.status.allocation
    }

    /// Keeps the objects that a decision failed on.
    fn panicked(&self, panic: &(dyn Any + Send)) -> Failure {
        self.health.set_alive(false);
        self.health.set_ready(false);
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
        let snapshot = match snapshot::write(self.controller.world(), &self.snapshots) {
            Ok(path) => {
                format!("the snapshot {}, which `phalanx mask` makes anonymous", path.display())
            }
            Err(error) => format!("a dump of the cluster (the snapshot can't be written: {error})"),
        };
        Failure::Panicked { message: message.unwrap_or("no message").to_owned(), snapshot }
    }
}

fn tell(told: &Told) {
    let group = told.group.to_string();
    let said = if told.message.is_empty() { told.verdict } else { &told.message };
    tracing::info!(group, verdict = told.verdict, reason = told.code, "{said}");
}

fn tell_difference(difference: &Difference) {
    let (pod, none) = (difference.pod.to_string(), "none");
    let ours = difference.ours.as_deref().unwrap_or(none);
    let theirs = difference.theirs.as_deref().unwrap_or(none);
    tracing::info!(pod, ours, theirs, "{}", difference.message);
}
