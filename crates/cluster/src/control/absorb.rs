//! Taking in events: the board as it is seen, and what became of writes.

use phalanx_engine::{PodKey, Timestamp};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::flight::Cause;
use super::rivals::Seen;
use super::watch::number;
use super::write::EffectId;
use super::{Answer, Controller, Event};
use crate::finding::Source;
use crate::lower::{Gone, ObjectEvent};
use crate::raise::EXTENDED_CLAIM;

impl Controller {
    pub(super) fn event(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Listing(kind) => self.watch.begin(kind),
            Event::Found(object) => {
                self.watch.found(object.reference());
                self.see(*object, Seen::Listed);
            }
            Event::Listed { kind, version } => self.listed(kind, &version),
            Event::Applied(object) => {
                let (kind, version) = (object.kind(), object.metadata().resource_version.clone());
                self.see(*object, Seen::Followed);
                self.pass(kind, &version);
            }
            Event::Deleted(gone) => {
                let (kind, version) = (gone.object.kind, gone.resource_version.clone());
                self.gone(gone);
                self.pass(kind, &version);
            }
            Event::Passed { kind, version } => self.pass(kind, &version),
            Event::Answered(id, answer) => self.answered(id, answer, now),
        }
    }

    /// The watch of a kind has come to a version.
    fn pass(&mut self, kind: Kind, version: &str) {
        self.watch.pass(kind, version);
        if kind == Kind::ResourceClaim {
            self.restless.append(&mut self.watching);
        }
    }

    /// Takes in the state of an object, if it is later than what is known of it.
    fn see(&mut self, object: Object, how: Seen) {
        let of = object.reference();
        let version = object.metadata().resource_version.clone();
        let known = self.version_of(&of);
        let late = |known: &String| match (number(known), number(&version)) {
            (Some(known), Some(version)) => known >= version,
            (Some(_) | None, Some(_) | None) => false,
        };
        if known.as_ref().is_some_and(late) {
            return;
        }
        let is_extended = of.kind == Kind::ResourceClaim
            && object.metadata().annotations.contains_key(EXTENDED_CLAIM);
        let other_uid = |known: &Object| known.metadata().uid != object.metadata().uid;
        let known = self.world.objects().and_then(|objects| objects.get(&of));
        if of.kind == Kind::Pod && known.is_some_and(other_uid) {
            self.emptied.insert(of.namespace.clone());
        }
        self.events_seen += 1;
        let source = Source { file: self.file.clone(), line: 0, ordinal: self.events_seen };
        self.world.absorb(ObjectEvent::Applied(Box::new(object), source));
        if self.version_of(&of).as_ref() != Some(&version) {
            // It is gone already.
            return;
        }
        if is_extended {
            self.extended.insert(of.clone());
        }
        if let Some(Object::ResourceClaim(claim)) = self.world.objects().and_then(|o| o.get(&of)) {
            self.rivals.seen(claim, how);
        }
        if of.kind == Kind::Pod {
            self.seen_in_shadow(&of);
        }
        self.moved(&of);
    }

    fn gone(&mut self, gone: Gone) {
        let of = gone.object.clone();
        self.world.absorb(ObjectEvent::Deleted(gone));
        if self.version_of(&of).is_some() {
            return;
        }
        if of.kind == Kind::ResourceClaim {
            self.rivals.gone(&of);
            self.extended.remove(&of);
        } else if of.kind == Kind::Pod {
            self.told.pod_gone(&crate::lower::pod_key(&of.namespace, &of.name));
            self.emptied.insert(of.namespace.clone());
        }
        self.moved(&of);
    }

    /// Who reads an object looks again: it is another, or it may be written again.
    pub(super) fn wake_readers(&mut self, of: &ObjectRef) {
        if let Some(flights) = self.readers.get(of) {
            self.restless.extend(flights);
        }
        self.stale |= self.told.is_owed(of);
    }

    /// An object is another than before: who reads it looks again.
    fn moved(&mut self, of: &ObjectRef) {
        self.air.news(of);
        self.wake_readers(of);
        if of.kind == Kind::Pod {
            // Of one that goes only what was known of it so far tells the gang, of one that comes only what
            // lowering finds out.
            let pod = crate::lower::pod_key(&of.namespace, &of.name);
            self.wake_gang_of(&pod);
            self.moved_pods.insert(pod);
        }
        if of.kind == Kind::Placement {
            self.stale = true;
            self.records.insert(of.clone());
        }
    }

    /// Members of a gang that come, are bound or go renumber its roles: its flights look again.
    pub(super) fn wake_members(&mut self) {
        for pod in std::mem::take(&mut self.moved_pods) {
            self.wake_gang_of(&pod);
        }
    }

    fn wake_gang_of(&mut self, pod: &PodKey) {
        let gang = self.world.lowering().gang_of(pod);
        if let Some(flights) = gang.and_then(|gang| self.flights_of.get(gang)) {
            self.restless.extend(flights);
        }
    }

    /// A list has ended: what it did not have and is no younger than it is gone.
    fn listed(&mut self, kind: Kind, version: &str) {
        let found = self.watch.end(kind, version);
        let end = number(version);
        let objects = self.world.objects();
        let all = objects.into_iter().flat_map(|objects| objects.of_kind(kind));
        let gone: Vec<Gone> = all
            .filter(|object| {
                let own = number(&object.metadata().resource_version);
                let younger = own.zip(end).is_some_and(|(own, end)| own > end);
                !younger && !found.contains(&object.reference())
            })
            .map(|object| Gone {
                object: object.reference(),
                uid: object.metadata().uid.clone(),
                resource_version: version.to_owned(),
            })
            .collect();
        gone.into_iter().for_each(|gone| self.gone(gone));
        self.pass(kind, version);
    }

    /// What became of an effect.
    fn answered(&mut self, id: EffectId, answer: Answer, now: Timestamp) {
        let Some(write) = self.air.get(id).cloned() else { return };
        let until = Timestamp(now.0.saturating_add(self.options.lost_within_millis));
        self.wake_readers(&write.target);
        let tells = write.flight.is_none() && !matches!(answer, Answer::Written(_));
        if tells && !matches!(answer, Answer::Refused { .. }) {
            self.told.owe(&write.target);
        }
        let may_be_written = match &answer {
            Answer::Written(_) | Answer::Unknown => true,
            Answer::Conflict | Answer::Missing | Answer::Refused { .. } => false,
        };
        if let Some(flight) = write.flight.and_then(|id| self.flights.get_mut(&id))
            && may_be_written
        {
            flight.touched.insert(write.target.clone());
            if matches!(answer, Answer::Written(_)) {
                flight.refusals = 0;
                // Of a claim on a volume nothing is written but the node.
                if write.target.kind == Kind::PersistentVolumeClaim {
                    flight.selected.insert(write.target.clone());
                }
            }
        }
        match answer {
            Answer::Written(object) => {
                if let Some(bind) = &write.bind {
                    self.tell_bound(bind);
                }
                let shown = object.is_some() && !write.deletes;
                if let Some(object) = object {
                    self.see(*object, Seen::Followed);
                }
                if shown {
                    self.air.land(id);
                } else {
                    let version = self.version_of(&write.target);
                    self.air.await_news(id, version.as_deref(), until);
                }
            }
            Answer::Conflict | Answer::Missing | Answer::Unknown => {
                let version = self.version_of(&write.target);
                self.air.await_news(id, version.as_deref(), until);
            }
            Answer::Refused { code, message } => {
                self.air.land(id);
                if let Some(flight) = write.flight.and_then(|id| self.flights.get_mut(&id)) {
                    flight.refused = Some((write.target, Cause::Refused { code, message }));
                }
            }
        }
    }
}
