//! Writes that were given out and whose outcome the board does not show yet: of one object no two are
//! under way together.

use std::collections::BTreeMap;

use phalanx_engine::Timestamp;
use phalanx_objects::ObjectRef;

use super::timers::Timers;
use super::write::{Effect, EffectId};
use crate::raise::Bind;

/// The writes under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Air {
    writes: BTreeMap<EffectId, InAir>,
    /// How many there are of each flight.
    of_flight: BTreeMap<u64, u32>,
    targets: BTreeMap<ObjectRef, EffectId>,
    /// Of those that were answered and are not seen yet: when they are taken as not written.
    late: Timers<EffectId>,
}

/// A write under way.
#[derive(Clone, Debug)]
pub(super) struct InAir {
    /// The object that is written.
    pub target: ObjectRef,
    /// The flight that it is part of.
    pub flight: Option<u64>,
    /// It binds a pod.
    pub bind: Option<Bind>,
    /// It deletes the object.
    pub deletes: bool,
    /// The version of the object when it was given out; none where there was none.
    version: Option<String>,
    /// It was answered, and what became of it is seen when the object has another version.
    answered: bool,
}

impl Air {
    /// Whether a write of the object is under way.
    pub(super) fn has(&self, target: &ObjectRef) -> bool {
        self.targets.contains_key(target)
    }

    /// Whether a write of a flight is under way.
    pub(super) fn has_of(&self, flight: u64) -> bool {
        self.of_flight.contains_key(&flight)
    }

    /// Takes note of a write that is given out, with the version that the object has.
    pub(super) fn send(&mut self, effect: &Effect, flight: Option<u64>, version: Option<String>) {
        let Some(target) = effect.target() else { return };
        let bind = effect.write.binds().cloned();
        let deletes = effect.write.deletes();
        if let Some(flight) = flight {
            *self.of_flight.entry(flight).or_default() += 1;
        }
        self.targets.insert(target.clone(), effect.id);
        let write = InAir { target, flight, bind, deletes, version, answered: false };
        self.writes.insert(effect.id, write);
    }

    /// The write of this number.
    pub(super) fn get(&self, id: EffectId) -> Option<&InAir> {
        self.writes.get(&id)
    }

    /// A write has come to its end.
    pub(super) fn land(&mut self, id: EffectId) {
        if let Some(write) = self.writes.remove(&id) {
            self.late.set(&id, None);
            self.targets.remove(&write.target);
            if let Some(flight) = write.flight
                && let Some(count) = self.of_flight.get_mut(&flight)
            {
                *count -= 1;
                if *count == 0 {
                    self.of_flight.remove(&flight);
                }
            }
        }
    }

    /// What became of a write is to be seen on the board, where the object has `version` now.
    pub(super) fn await_news(&mut self, id: EffectId, version: Option<&str>, until: Timestamp) {
        let Some(write) = self.writes.get_mut(&id) else { return };
        if write.version.as_deref() == version {
            write.answered = true;
            self.late.set(&id, Some(until));
        } else {
            self.land(id);
        }
    }

    /// The object has another version, or is gone.
    pub(super) fn news(&mut self, target: &ObjectRef) {
        let Some(id) = self.targets.get(target).copied() else { return };
        if self.writes.get(&id).is_some_and(|write| write.answered) {
            self.land(id);
        }
    }

    /// Ends the writes of which nothing was seen in time. Answers their objects.
    pub(super) fn expire(&mut self, now: Timestamp) -> Vec<ObjectRef> {
        let ids = self.late.due(now);
        let targets = ids.iter().filter_map(|id| Some(self.writes.get(id)?.target.clone()));
        let targets = targets.collect();
        ids.into_iter().for_each(|id| self.land(id));
        targets
    }

    /// When the next of them is taken as not written.
    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        self.late.next()
    }
}
