//! Giving up: what was written of seats is taken back, so that nothing of them is left on the board. A
//! group that was committed and does not come to run is ended whole, for half of it holds devices and makes
//! no progress.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{PodKey, Timestamp};
use phalanx_objects::topology::{Placement, PlacementPhase};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::Controller;
use super::drive::Course;
use super::flight::{Cause, Flight, Record, phase, pod_of, pod_reference};
use super::write::{Guard, PodName, Write};
use crate::lower::ClaimName;
use crate::raise::{self, Draft};
use crate::view::claim_reference;

impl Controller {
    /// Takes back what the seats have that are given up alone, and forgets those seats.
    pub(super) fn drop_seats(&mut self, id: u64, flight: &mut Flight, now: Timestamp) -> Course {
        let pods: BTreeSet<PodKey> = flight.dropping.keys().cloned().collect();
        if self.take_back(id, flight, &pods) {
            return Course::On;
        }
        // What was bound before it could be given up stays.
        if let Some(objects) = self.world.objects() {
            let bound: BTreeSet<PodKey> =
                pods.iter().filter(|pod| flight.is_bound(pod, objects)).cloned().collect();
            flight.dropping.retain(|pod, _| !bound.contains(pod));
        }
        let pods: BTreeSet<PodKey> = flight.dropping.keys().cloned().collect();
        flight.seats.retain(|seat| seat.pod.as_ref().is_none_or(|pod| !pods.contains(pod)));
        if let Some(record) = &mut flight.record {
            let gone = |pod: &str| pods.iter().any(|key| *key.0.name == *pod);
            record.spec.seats.retain(|seat| !gone(&seat.pod));
        }
        flight.uids.retain(|pod, _| !pods.contains(pod));
        self.tell_dropped(flight);
        let again =
            |cause: &Cause| matches!(cause, Cause::Refused { .. } | Cause::NotProvisioned(_));
        if flight.dropping.values().any(again) {
            // It may befall the next seat as well.
            self.back_off(&flight.group, now);
        }
        flight.dropping.clear();
        // A pod may come again, for another node.
        flight.selected.clear();
        Course::Again
    }

    /// Takes back all of a flight.
    pub(super) fn give_back(&mut self, id: u64, flight: &mut Flight) -> Course {
        let found = flight.record.as_ref().and_then(|record| self.record(&record.of)).cloned();
        if let Some(found) = &found
            && (found.spec.epoch > self.options.epoch
                || !flight.record.as_ref().is_some_and(|record| record.own))
        {
            return Course::Ended;
        }
        let phase = found.as_ref().map(phase);
        if phase == Some(PlacementPhase::Done) && flight.closing {
            return Course::Ended;
        }
        if let Some(found) = &found
            && phase != Some(PlacementPhase::Releasing)
        {
            self.learn_of(flight, found);
            // From now on no earlier write of the record is taken, and who comes after a crash goes on
            // giving up.
            self.write_record(id, flight, Some(found), PlacementPhase::Releasing);
            return Course::On;
        }
        let Some(objects) = self.world.objects() else { return Course::Ended };
        let open: BTreeSet<PodKey> =
            flight.open(objects).filter_map(|seat| seat.pod.clone()).collect();
        let mut busy = self.take_back(id, flight, &open);
        let spec = found.as_ref().map(|found| &found.spec);
        let spec = spec.or(flight.record.as_ref().map(|record| &record.spec));
        let ends_pods = spec.is_some_and(Record::ends_pods);
        if ends_pods && self.end_pods(id, flight) {
            busy = true;
            if found.is_none() {
                // Somebody has deleted it: without it nobody would go on after a crash.
                self.write_record(id, flight, None, PlacementPhase::Releasing);
            }
        }
        if busy || self.air.has_of(id) {
            return Course::On;
        }
        match found {
            Some(found) if !ends_pods && self.has_bound(flight) => {
                // What ran before stays on record.
                if let Some(record) = &mut flight.record {
                    let gone = |pod: &str| open.iter().any(|key| *key.0.name == *pod);
                    record.spec.seats.retain(|seat| !gone(&seat.pod));
                }
                flight.closing = true;
                self.write_record(id, flight, Some(&found), PlacementPhase::Done);
                Course::On
            }
            // A finalizer of somebody else keeps it.
            Some(found) if found.metadata.deletion_timestamp.is_some() => Course::On,
            Some(found) => {
                let record = ObjectRef {
                    kind: Kind::Placement,
                    namespace: found.metadata.namespace.clone(),
                    name: found.metadata.name.clone(),
                };
                let guard = Guard {
                    uid: found.metadata.uid.clone(),
                    version: Some(found.metadata.resource_version),
                    epoch: self.options.epoch,
                };
                self.emit(Some(id), guard, Write::DeletePlacement(record));
                Course::On
            }
            None => Course::Ended,
        }
    }

    /// What the last write of a Placement says that this flight has not seen: one of an earlier reign may have
    /// committed the group, or seen it run, in the meantime.
    fn learn_of(&self, flight: &mut Flight, found: &Placement) {
        let Some(record) = &mut flight.record else { return };
        match phase(found) {
            PlacementPhase::Committing | PlacementPhase::Done => {
                record.spec.ran |= found.spec.ran;
                record.spec.committed_at = record.spec.committed_at.or(found.spec.committed_at);
            }
            PlacementPhase::Waiting | PlacementPhase::Held | PlacementPhase::Releasing => {}
        }
    }

    fn has_bound(&self, flight: &Flight) -> bool {
        let Some(objects) = self.world.objects() else { return false };
        let Some(record) = &flight.record else { return false };
        let namespace = &record.of.namespace;
        record.spec.seats.iter().any(|seat| {
            let pod = pod_of(objects, &crate::lower::pod_key(namespace, &seat.pod));
            pod.is_some_and(|pod| pod.metadata.uid == seat.uid && !pod.spec.node_name.is_empty())
        })
    }

    /// Ends the pods of a group that did not come to run. Whether any is still there.
    fn end_pods(&mut self, id: u64, flight: &Flight) -> bool {
        let Some(objects) = self.world.objects() else { return false };
        let Some(record) = &flight.record else { return false };
        let mut ends = Vec::new();
        let mut busy = false;
        for seat in &record.spec.seats {
            let key = crate::lower::pod_key(&record.of.namespace, &seat.pod);
            let Some(pod) = pod_of(objects, &key).filter(|pod| pod.metadata.uid == seat.uid) else {
                continue;
            };
            if pod.spec.node_name.is_empty() || pod.status.phase.is_terminal() {
                continue;
            }
            busy = true;
            if pod.metadata.deletion_timestamp.is_none() {
                ends.push((key, seat.uid.clone()));
            }
        }
        for (pod, uid) in ends {
            let guard = self.of_uid(&uid);
            let of = pod_reference(&pod);
            let name = PodName { namespace: of.namespace, name: of.name };
            if self.emit(Some(id), guard, Write::DeletePod(name)) {
                self.tell_released(&pod, &uid, flight);
            }
        }
        busy
    }

    /// Takes back what pods have that are not bound: their reservations, what only they were given, and
    /// the claims that were made for their extended resources. Whether anything is left to be taken back.
    fn take_back(&mut self, id: u64, flight: &Flight, pods: &BTreeSet<PodKey>) -> bool {
        let Some(objects) = self.world.objects() else { return false };
        let mut uids: BTreeMap<&str, &PodKey> = flight
            .uids
            .iter()
            .filter(|(pod, _)| pods.contains(*pod) && !flight.is_bound(pod, objects))
            .map(|(pod, uid)| (uid.as_str(), pod))
            .collect();
        // A binding that is under way may be taken: what the pod then needs must not be taken from it.
        let all = uids.len();
        uids.retain(|_, pod| !self.is_in_air(pod));
        let mut busy = uids.len() < all;
        let mut draft = Draft::default();
        for claim in self.claims_written(flight) {
            if self.air.has(&claim) {
                busy = true;
                continue;
            }
            let Some(Object::ResourceClaim(found)) = objects.get(&claim) else { continue };
            let owner = found.metadata.controller().map(|owner| owner.uid.as_str());
            let is_extended = found.metadata.annotations.contains_key(raise::EXTENDED_CLAIM);
            draft.claim(found);
            if is_extended && owner.is_some_and(|owner| uids.contains_key(owner)) {
                draft.delete(&claim);
            } else {
                let of_group = self.is_of_group(flight, &claim).filter(|_| !busy);
                draft.leave(&claim, |user| {
                    uids.contains_key(user) || of_group == Some(user.to_owned())
                });
            }
        }
        for effect in draft.finish() {
            busy = true;
            if effect.after.is_empty() {
                self.emit_seat(id, effect);
            }
        }
        busy
    }

    /// The UID of the PodGroup that a claim is reserved for, where no pod of it is bound.
    fn is_of_group(&self, flight: &Flight, claim: &ObjectRef) -> Option<String> {
        let info = self.world.lowering().group(&flight.group)?;
        let mut pods = info.roles.iter().flat_map(|role| &role.pods);
        let mut claims = pods.by_ref().flat_map(|pod| &pod.claims);
        let owner = claims.find_map(|of| {
            let same = claim_reference(of.claim.key()) == *claim;
            of.group.as_ref().filter(|_| same)
        })?;
        let runs = self.world.lowering().running(&flight.group) > 0;
        (!runs).then(|| owner.uid.to_string())
    }

    /// The claims of which a flight may have written the state, and which are as it wrote them.
    fn claims_written(&self, flight: &Flight) -> BTreeSet<ObjectRef> {
        let Some(objects) = self.world.objects() else { return BTreeSet::new() };
        // Of one that comes second the other claim may have been there before it: what its pods hold was then
        // written by a controller that was stopped.
        if flight.resumed || matches!(flight.back, Some(Cause::Second { .. })) {
            let namespace = &flight.group.object.namespace;
            let all = objects.in_namespace(Kind::ResourceClaim, namespace);
            let uids: BTreeSet<&str> = flight.uids.values().map(String::as_str).collect();
            let concerns = |object: &&Object| {
                let Object::ResourceClaim(claim) = object else { return false };
                let owner = claim.metadata.controller();
                let users = &claim.status.reserved_for;
                owner.is_some_and(|owner| uids.contains(owner.uid.as_str()))
                    || users.iter().any(|user| uids.contains(user.uid.as_str()))
            };
            let mut found: BTreeSet<ObjectRef> =
                all.filter(concerns).map(Object::reference).collect();
            found.extend(self.group_claims(flight));
            return found;
        }
        let claims = self.claims_of(flight);
        let is_own = |claim: &&ObjectRef| {
            let Some(Object::ResourceClaim(found)) = objects.get(claim) else { return false };
            let grants = flight.grants(&claims, claim);
            let held = found.status.allocation.as_ref();
            grants.is_empty() || held.is_none_or(|held| raise::is_of(held, &grants))
        };
        let touched = flight.touched.iter().filter(|of| of.kind == Kind::ResourceClaim);
        touched.filter(is_own).cloned().collect()
    }

    /// The claims that a flight's PodGroup has once.
    fn group_claims(&self, flight: &Flight) -> Vec<ObjectRef> {
        let info = self.world.lowering().group(&flight.group);
        let pods = info.iter().flat_map(|info| &info.roles).flat_map(|role| &role.pods);
        let claims = pods.flat_map(|pod| &pod.claims);
        let of = claims
            .filter(|claim| claim.group.is_some() && matches!(claim.claim, ClaimName::Real(_)));
        of.map(|claim| claim_reference(claim.claim.key())).collect()
    }

    /// Deletes claims for extended resources that an attempt has left which is not under way any more.
    pub(super) fn delete_left_over(&mut self) {
        let mut draft = Draft::default();
        let Some(objects) = self.world.objects() else { return };
        let loose = |of: &&ObjectRef| !self.readers.contains_key(*of) && !self.air.has(of);
        for of in self.extended.iter().filter(loose) {
            let Some(Object::ResourceClaim(claim)) = objects.get(of) else { continue };
            let Some(owner) = claim.metadata.controller() else { continue };
            let pod = pod_of(objects, &crate::lower::pod_key(&of.namespace, &owner.name));
            let waits = pod.is_some_and(|pod| {
                pod.metadata.uid == owner.uid
                    && pod.spec.node_name.is_empty()
                    && pod.spec.scheduler_name == self.options.scheduler_name
            });
            if waits && claim.metadata.deletion_timestamp.is_none() {
                draft.claim(claim);
                draft.delete(of);
            }
        }
        for effect in draft.finish() {
            if effect.after.is_empty() {
                self.emit_loose(effect);
            }
        }
    }

    /// Gives out a write that is part of no flight.
    pub(super) fn emit_loose(&mut self, effect: raise::Effect) {
        let version = match effect.guard.version {
            raise::GuardVersion::Read(version) => Some(version),
            raise::GuardVersion::Any => None,
            raise::GuardVersion::LeftBy(_) => return,
        };
        let guard = Guard { uid: effect.guard.uid, version, epoch: self.options.epoch };
        self.emit(None, guard, Write::Seat(effect.write));
    }
}
