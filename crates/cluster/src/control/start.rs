//! Deciding, and what comes of it: flights that start. And after a restart: what stands on the board from
//! before, taken up from Placements.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_engine::{Act, Change, ClaimKey, FlightId, GroupKey, PodKey, Seat, Timestamp, Verdict};
use phalanx_objects::resource::AllocationResult;
use phalanx_objects::topology::{Placement, PlacementPhase};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::flight::{
    Cause, Flight, Record, can_fly, phase, placement, pod_of, pod_reference, pods_of,
    reads_of_seat, record_name, record_of,
};
use super::write::{Guard, Write};
use super::{Controller, Decided};
use crate::lower::{GroupInfo, placed_group};
use crate::plan::{Plan, PlanOptions, plan};
use crate::raise::Draft;
use crate::view::claim_reference;

impl Controller {
    /// Decides what waits, and starts what can be.
    pub(super) fn choose(&mut self, now: Timestamp) {
        let options = PlanOptions {
            now: Some(now),
            policy: self.options.policy,
            effort: self.options.effort,
        };
        let plan = plan(&mut self.world, &options);
        let verdicts = &plan.decision.verdicts;
        let placed = verdicts.iter().filter(|(_, v)| matches!(v, Verdict::Placed { .. })).count();
        self.out.decided = Some(Decided {
            placed,
            waiting: verdicts.len() - placed,
            steps: plan.decision.spent.steps,
        });
        self.wake_at = plan.decision.wake_at;
        if self.options.shadow {
            self.shadow_plan(&plan);
        } else {
            self.start_all(&plan, now);
        }
        self.tell_all(&plan, now);
    }

    fn start_all(&mut self, plan: &Plan, now: Timestamp) {
        let mut released: BTreeMap<&GroupKey, Vec<&ClaimKey>> = BTreeMap::new();
        for act in &plan.decision.acts {
            match act {
                Act::Release(group, claim) => released.entry(group).or_default().push(claim),
                Act::Place(group, seats, _) => {
                    let given_up = released.remove(group).unwrap_or_default();
                    self.start(group, seats, &given_up, now);
                }
                Act::Admit(_) | Act::Hold(..) | Act::Evict { .. } => {}
            }
        }
        for claim in released.into_values().flatten() {
            self.release(claim);
        }
        self.delete_left_over();
    }

    /// Gives up what a claim holds that nobody uses, for a group that is not placed now.
    fn release(&mut self, claim: &ClaimKey) {
        let of = claim_reference(claim);
        let found = self.world.objects().and_then(|objects| objects.get(&of));
        let Some(Object::ResourceClaim(found)) = found else { return };
        let mut draft = Draft::default();
        draft.claim(found);
        draft.release(&of);
        for effect in draft.finish() {
            self.emit_loose(effect);
        }
    }

    fn start(&mut self, group: &GroupKey, seats: &[Seat], released: &[&ClaimKey], now: Timestamp) {
        if self.backoffs.get(group).is_some_and(|backoff| backoff.until > now) {
            return;
        }
        let Some(info) = self.world.lowering().group(group) else { return };
        let Some(objects) = self.world.objects() else { return };
        let able: Vec<Seat> =
            seats.iter().filter(|seat| can_fly(&info, seat, objects)).cloned().collect();
        // Of a group that starts whole a member that can't be written now keeps all.
        if able.is_empty() || info.gang && able.len() < seats.len() {
            return;
        }
        let given_up = released.iter().filter_map(|claim| self.holds(claim)).collect();
        let before = self.flights_of.get(group).and_then(|flights| flights.first());
        if let Some(id) = before {
            self.join(*id, &info, able, given_up);
            return;
        }
        let record = info.gang.then(|| self.new_record(&info, &able));
        let flight = Flight { given_up, ..Flight::new(group.clone(), able, record) };
        self.board(flight, Some(&info));
    }

    /// What a claim holds now.
    fn holds(&self, claim: &ClaimKey) -> Option<(ObjectRef, AllocationResult)> {
        let of = claim_reference(claim);
        let Some(Object::ResourceClaim(found)) = self.world.objects()?.get(&of) else {
            return None;
        };
        Some((of, found.status.allocation.clone()?))
    }

    fn new_record(&self, info: &GroupInfo, seats: &[Seat]) -> Record {
        let of = record_name(&info.key);
        let found = self.record(&of);
        let ran = found.filter(|found| phase(found) == PlacementPhase::Done);
        let mut before = ran.map(|found| {
            let mut spec = found.spec.clone();
            let namespace = &of.namespace;
            spec.seats.retain(|seat| {
                let key = crate::lower::pod_key(namespace, &seat.pod);
                let pod = self.world.objects().and_then(|objects| pod_of(objects, &key));
                pod.is_some_and(|pod| {
                    pod.metadata.uid == seat.uid
                        && pod.metadata.deletion_timestamp.is_none()
                        && !pod.status.phase.is_terminal()
                })
            });
            spec
        });
        // Where none of those is left that ran, the group begins anew.
        before.take_if(|spec| spec.seats.is_empty());
        let who = (info, self.options.scheduler_name.as_str(), self.options.epoch);
        let spec = record_of(&self.world, who, before.as_ref(), seats);
        Record { of, spec, own: false }
    }

    /// Lets a new flight take off.
    fn board(&mut self, mut flight: Flight, info: Option<&GroupInfo>) {
        self.flights_made += 1;
        let id = self.flights_made;
        let pods = info.map(pods_of).unwrap_or_default();
        let mut objects: Vec<ObjectRef> = flight.uids.keys().map(pod_reference).collect();
        for seat in &flight.seats {
            if let Some((_, pod)) = seat.pod.as_ref().and_then(|pod| pods.get(pod)) {
                flight.uids.entry(pod.key.clone()).or_insert_with(|| pod.uid.clone());
                objects.extend(reads_of_seat(&self.world, pod, seat));
            }
        }
        objects.extend(flight.record.iter().map(|record| record.of.clone()));
        self.read(id, &mut flight, objects);
        self.flights_of.entry(flight.group.clone()).or_default().insert(id);
        flight.assumed.clone_from(&flight.seats);
        let (group, seats) = (flight.group.clone(), flight.seats.clone());
        self.world.tell_engine(Change::Assume(FlightId(id), group, seats));
        self.flights.insert(id, flight);
        self.restless.insert(id);
    }

    /// More seats for a group of which seats are under way: it takes them where it is committed already,
    /// and waits for the end of what is under way otherwise.
    fn join(
        &mut self,
        id: u64,
        info: &GroupInfo,
        seats: Vec<Seat>,
        given_up: BTreeMap<ObjectRef, AllocationResult>,
    ) {
        let Some(flight) = self.flights.get(&id) else { return };
        let takes = flight.back.is_none() && flight.dropping.is_empty();
        if !takes || !self.is_committed(flight) {
            return;
        }
        let Some(mut flight) = self.flights.remove(&id) else { return };
        let pods = pods_of(info);
        let mut objects = Vec::new();
        for seat in &seats {
            if let Some((_, pod)) = seat.pod.as_ref().and_then(|pod| pods.get(pod)) {
                flight.uids.insert(pod.key.clone(), pod.uid.clone());
                objects.extend(reads_of_seat(&self.world, pod, seat));
            }
        }
        let who = (info, self.options.scheduler_name.as_str(), self.options.epoch);
        let namespace = info.key.object.namespace.to_string();
        if let Some(record) = &mut flight.record {
            let mut spec = record_of(&self.world, who, Some(&record.spec), &seats);
            // Members that are lost have no seat any more.
            let alive = |name: &str, uid: &str| {
                let key = crate::lower::pod_key(&namespace, name);
                let pod = self.world.objects().and_then(|objects| pod_of(objects, &key));
                pod.is_some_and(|pod| {
                    pod.metadata.uid == uid
                        && pod.metadata.deletion_timestamp.is_none()
                        && !pod.status.phase.is_terminal()
                })
            };
            spec.seats.retain(|seat| alive(&seat.pod, &seat.uid));
            record.spec = spec;
        }
        let new: BTreeSet<&PodKey> = seats.iter().filter_map(|seat| seat.pod.as_ref()).collect();
        flight.seats.retain(|seat| seat.pod.as_ref().is_none_or(|pod| !new.contains(pod)));
        flight.seats.extend(seats);
        flight.given_up.extend(given_up);
        self.read(id, &mut flight, objects);
        self.assume(id, &mut flight);
        self.flights.insert(id, flight);
        self.restless.insert(id);
    }

    /// Begins a reign that is later than that of whoever has written the Placements that there are: clocks
    /// may have been set back.
    pub(super) fn begin_reign(&mut self) {
        let own =
            |found: &&Arc<Placement>| found.spec.scheduler_name == self.options.scheduler_name;
        let epochs = self.world.lowering().placements().filter(own).map(|found| found.spec.epoch);
        if let Some(highest) = epochs.max() {
            self.options.epoch = self.options.epoch.max(highest.saturating_add(1));
        }
    }

    /// Takes up Placements on which nobody is at work, those that a controller left which was stopped above
    /// all: groups that were held are given up, for nothing of them is bound and they can be decided anew;
    /// those that were committed are carried on.
    pub(super) fn take_up(&mut self) {
        for of in std::mem::take(&mut self.records) {
            let Some(found) = self.record(&of).filter(|_| !self.options.shadow).cloned() else {
                continue;
            };
            if found.spec.scheduler_name != self.options.scheduler_name
                || found.spec.epoch > self.options.epoch
                || self.readers.contains_key(&of)
            {
                continue;
            }
            match phase(&found) {
                PlacementPhase::Waiting | PlacementPhase::Done => {}
                PlacementPhase::Held | PlacementPhase::Releasing => {
                    self.resume(&found, Some(Cause::Stopped));
                }
                PlacementPhase::Committing => self.resume(&found, None),
            }
        }
    }

    fn resume(&mut self, found: &Placement, back: Option<Cause>) {
        let of = ObjectRef {
            kind: Kind::Placement,
            namespace: found.metadata.namespace.clone(),
            name: found.metadata.name.clone(),
        };
        let uids = found
            .spec
            .seats
            .iter()
            .map(|seat| (crate::lower::pod_key(&of.namespace, &seat.pod), seat.uid.clone()));
        let uids = uids.collect();
        let record = Record { of, spec: found.spec.clone(), own: true };
        let seats = self.world.lowering().kept(found);
        let flight = Flight::new(placed_group(found), seats, Some(record));
        let info = self.world.lowering().group(&flight.group);
        self.board(Flight { uids, back, resumed: true, ..flight }, info.as_ref());
    }

    /// Deletes the Placements of groups that have no members any more.
    pub(super) fn sweep(&mut self) {
        let emptied = std::mem::take(&mut self.emptied);
        if emptied.is_empty() || self.options.shadow {
            return;
        }
        let Some(objects) = self.world.objects() else { return };
        let mut over = Vec::new();
        for namespace in &emptied {
            for object in objects.in_namespace(Kind::Placement, namespace) {
                let of = object.reference();
                let Some(found) = placement(objects, &of) else { continue };
                let ours = found.spec.scheduler_name == self.options.scheduler_name
                    && found.spec.epoch <= self.options.epoch
                    && found.metadata.deletion_timestamp.is_none();
                let ends = match phase(found) {
                    PlacementPhase::Done => true,
                    PlacementPhase::Waiting => {
                        self.world.lowering().group(&placed_group(found)).is_none()
                    }
                    PlacementPhase::Held
                    | PlacementPhase::Committing
                    | PlacementPhase::Releasing => false,
                };
                let alive = found.spec.seats.iter().any(|seat| {
                    let pod = pod_of(objects, &crate::lower::pod_key(namespace, &seat.pod));
                    pod.is_some_and(|pod| pod.metadata.uid == seat.uid)
                });
                let flown = self.readers.contains_key(&of);
                if ours && ends && !alive && !flown {
                    over.push((
                        of,
                        found.metadata.uid.clone(),
                        found.metadata.resource_version.clone(),
                    ));
                }
            }
        }
        let lowering = self.world.lowering();
        let failing =
            self.backoffs.keys().filter(|group| emptied.contains(&*group.object.namespace));
        let gone = failing.filter(|group| lowering.group(group).is_none()).cloned();
        for group in gone.collect::<Vec<_>>() {
            self.forget_backoff(&group);
        }
        for (of, uid, version) in over {
            let guard = Guard { uid, version: Some(version), epoch: self.options.epoch };
            self.emit(None, guard, Write::DeletePlacement(of));
        }
    }
}
