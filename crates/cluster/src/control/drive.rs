//! Driving flights: each looks at the board and gives out what comes next. Forwards here; what is given up
//! is [`give`](super::give)'s.
//!
//! A group of one pod: its claims are allocated and reserved, then it is bound. A group that starts whole:
//! its Placement says `Held`; all claims are allocated and reserved; it is looked whether another writer
//! came first; the Placement says `Committing`; all are bound; once all that it needs run it says `Done`.
//! Until `Committing` all is taken back where anything fails. From then on the group is carried on: a seat
//! that fails is given up alone, so that the engine seats its pod again beside the others.

use std::collections::BTreeSet;

use phalanx_engine::{Change, FlightId, PodKey, Seat, Timestamp};
use phalanx_objects::topology::{Placement, PlacementPhase, PlacementSpec, PlacementStatus};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::Controller;
use super::flight::{Cause, Flight, phase, placement, pod_reference, pods_of, started};
use super::rivals::Standing;
use super::write::{Guard, Write, seat_target};
use crate::raise::{self, Effect, GuardVersion, Lack, Underway, resume};

/// Of the time within which a group must run, the part that one has who takes it up later.
const GRACE: i64 = 6;

/// How a look at a flight ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// It goes on when something happens.
    On,
    /// Something was changed: it looks once more.
    Again,
    /// It has arrived.
    Landed,
    /// What was written of it is taken back, or it is another's.
    Ended,
}

/// How far a committed group has come.
#[derive(Clone, Debug, Default)]
struct Start {
    /// All that it needs run, or have run.
    runs: bool,
    /// They do not, and the time for it is over.
    late: bool,
    /// Why it is released whole, if it is.
    over: Option<Cause>,
}

impl Controller {
    /// Lets every flight that is restless look at the board, and takes up what nobody is at work on.
    pub(super) fn drive(&mut self, now: Timestamp) {
        loop {
            self.take_up();
            let Some(id) = self.restless.pop_first() else { return };
            let Some(mut flight) = self.flights.remove(&id) else { continue };
            let mut course = self.look(id, &mut flight, now);
            // A seat that is dropped, a phase that turns: each happens once.
            while course == Course::Again {
                course = self.look(id, &mut flight, now);
            }
            match course {
                Course::On | Course::Again => {
                    self.assume(id, &mut flight);
                    let at = flight.wakes_at(now, self.options.wait_within_millis);
                    self.times.set(&id, at);
                    self.flights.insert(id, flight);
                }
                Course::Landed => {
                    self.forget_backoff(&flight.group);
                    self.end(id, &flight);
                }
                Course::Ended => {
                    self.end(id, &flight);
                    self.tell_ended(&flight, now);
                }
            }
        }
    }

    /// Takes a flight out of the air.
    fn end(&mut self, id: u64, flight: &Flight) {
        for object in &flight.reads {
            if let Some(readers) = self.readers.get_mut(object) {
                readers.remove(&id);
                if readers.is_empty() {
                    self.readers.remove(object);
                }
            }
        }
        if let Some(flights) = self.flights_of.get_mut(&flight.group) {
            flights.remove(&id);
            if flights.is_empty() {
                self.flights_of.remove(&flight.group);
            }
        }
        self.records.extend(flight.record.iter().map(|record| record.of.clone()));
        self.times.set(&id, None);
        self.watching.remove(&id);
        self.world.settle_flight(FlightId(id));
        self.stale = true;
    }

    /// Tells the engine of the seats that the board does not show, by the numbers that their roles have now.
    pub(super) fn assume(&mut self, id: u64, flight: &mut Flight) {
        let seats = self.seats_now(flight);
        if seats == flight.assumed {
            return;
        }
        flight.assumed.clone_from(&seats);
        self.stale = true;
        let change = match seats.is_empty() {
            true => Change::Settle(FlightId(id)),
            false => Change::Assume(FlightId(id), flight.group.clone(), seats),
        };
        self.world.tell_engine(change);
    }

    fn seats_now(&self, flight: &Flight) -> Vec<Seat> {
        let Some(objects) = self.world.objects() else { return Vec::new() };
        let info = self.world.lowering().group(&flight.group);
        let Some(info) = info else { return Vec::new() };
        let pods = pods_of(&info);
        let open = flight.open(objects).filter_map(|seat| {
            let (role, pod) = seat.pod.as_ref().and_then(|pod| pods.get(pod))?;
            let same = flight.uids.get(&pod.key) == Some(&pod.uid);
            same.then(|| Seat { role: *role, ..seat.clone() })
        });
        open.collect()
    }

    fn look(&mut self, id: u64, flight: &mut Flight, now: Timestamp) -> Course {
        if let Some((target, cause)) = flight.refused.take() {
            // Where what gives things back is refused there is nothing else to do than to try again.
            if flight.back.is_some() || !flight.dropping.is_empty() {
                flight.pause(now, self.options.backoff_millis);
            } else {
                self.refuse(flight, &target, &cause, now);
            }
        }
        if flight.pause.is_some_and(|until| until > now) {
            return Course::On;
        }
        flight.pause = None;
        if flight.back.is_some() {
            return self.give_back(id, flight);
        }
        if !flight.dropping.is_empty() {
            return self.drop_seats(id, flight, now);
        }
        if flight.record.is_some() {
            return self.look_at_record(id, flight, now);
        }
        self.write_seats(id, flight, now, true)
    }

    /// The API server refuses a write: before a group is committed all of it is given up; afterwards the seat
    /// whose pod or claims can't be written. What else is refused then, the Placement above all, is tried
    /// again later, for pods that run must not end for it.
    fn refuse(&self, flight: &mut Flight, target: &ObjectRef, cause: &Cause, now: Timestamp) {
        if !self.is_committed(flight) {
            flight.back = Some(cause.clone());
            return;
        }
        let of = self.open_pods_of(flight, target);
        if of.is_empty() {
            flight.pause(now, self.options.backoff_millis);
        }
        flight.dropping.extend(of.into_iter().map(|pod| (pod, cause.clone())));
    }

    /// The pods of open seats that are an object, or mount or claim it.
    fn open_pods_of(&self, flight: &Flight, target: &ObjectRef) -> Vec<PodKey> {
        let Some(objects) = self.world.objects() else { return Vec::new() };
        let info = self.world.lowering().group(&flight.group);
        let info = info.iter().flat_map(|info| info.roles.iter().flat_map(|role| &role.pods));
        let open: BTreeSet<&PodKey> =
            flight.open(objects).filter_map(|seat| seat.pod.as_ref()).collect();
        info.filter(|pod| open.contains(&pod.key))
            .filter(|pod| super::flight::reads(&self.world, pod).contains(target))
            .map(|pod| pod.key.clone())
            .collect()
    }

    /// Whether seats of a flight are given up one by one: of a group that starts whole once it is
    /// committed, though somebody may have deleted its Placement since.
    pub(super) fn is_committed(&self, flight: &Flight) -> bool {
        let objects = self.world.objects();
        let of = flight.record.as_ref().map(|record| &record.of);
        match objects.zip(of).and_then(|(objects, of)| placement(objects, of)) {
            Some(found) => phase(found) == PlacementPhase::Committing,
            None => flight.deadline.is_some(),
        }
    }

    /// Gives out what comes next of the seats, the bindings too where they may. Landed is who has nothing
    /// left to write and nothing to wait for.
    fn write_seats(&mut self, id: u64, flight: &mut Flight, now: Timestamp, binds: bool) -> Course {
        let underway = Underway {
            group: &flight.group,
            seats: &flight.seats,
            given_up: &flight.given_up,
            now,
        };
        let resumed = resume(&self.world, &underway);
        let mut waits = self.air.has_of(id);
        let before = std::mem::take(&mut flight.others_since);
        for (pod, lack) in &resumed.lacks {
            if let Lack::Others(of) = lack {
                let wait = (pod.clone(), of.clone());
                let since = before.get(&wait).copied().unwrap_or(now);
                flight.others_since.insert(wait, since);
            }
        }
        for (pod, lack) in &resumed.lacks {
            match self.cause(flight, (pod, lack), now) {
                Some(cause) => self.void(flight, pod, cause),
                None => waits = true,
            }
        }
        if flight.back.is_some() || !flight.dropping.is_empty() {
            return Course::Again;
        }
        let claims = self.claims_of(flight);
        for effect in resumed.effects {
            let is_binding = matches!(effect.write, raise::Write::Bind(_));
            if is_binding && !binds {
                continue;
            }
            waits = true;
            if !effect.after.is_empty() {
                continue;
            }
            if let raise::Write::SelectNode(write) = &effect.write {
                let target = seat_target(&effect.write);
                if flight.selected.remove(&target) {
                    // The node was taken back: to tell it at once again would help nobody.
                    let cause = Cause::NotProvisioned(write.claim.clone());
                    for pod in self.open_pods_of(flight, &target) {
                        self.void(flight, &pod, cause.clone());
                    }
                    return Course::Again;
                }
            }
            if let raise::Write::Bind(bind) = &effect.write {
                let pod = crate::lower::pod_key(&bind.namespace, &bind.pod);
                if self.is_in_air(&pod) {
                    // It was looked at before it was sent.
                    continue;
                }
                match self.standing(&claims, Some(&pod)) {
                    Standing::Clear => {}
                    Standing::NotYet => {
                        self.watching.insert(id);
                        continue;
                    }
                    Standing::Second { device, other } => {
                        let other = other.map(|other| other.to_string());
                        self.void(flight, &pod, Cause::Second { device, other });
                        return Course::Again;
                    }
                }
            }
            self.emit_seat(id, effect);
        }
        if waits { Course::On } else { Course::Landed }
    }

    pub(super) fn emit_seat(&mut self, id: u64, effect: Effect) {
        let version = match effect.guard.version {
            GuardVersion::Any => None,
            GuardVersion::Read(version) => Some(version),
            // It comes after a write that is not made yet.
            GuardVersion::LeftBy(_) => return,
        };
        let guard = Guard { uid: effect.guard.uid, version, epoch: self.options.epoch };
        self.emit(Some(id), guard, Write::Seat(effect.write));
    }

    /// Gives up one seat, or all of a flight that has bound nothing yet.
    fn void(&self, flight: &mut Flight, pod: &PodKey, cause: Cause) {
        if flight.record.is_some() && self.is_committed(flight) {
            flight.dropping.insert(pod.clone(), cause);
        } else {
            flight.back = Some(cause);
        }
    }

    /// Why a seat is void for what it lacks; none where that may come yet.
    fn cause(
        &self,
        flight: &Flight,
        (pod, lack): (&PodKey, &Lack),
        now: Timestamp,
    ) -> Option<Cause> {
        match lack {
            Lack::Pod => Some(Cause::PodGone),
            Lack::Claim(claim) => Some(Cause::ClaimGone(claim.name.clone())),
            Lack::Elsewhere(claim) => Some(Cause::Elsewhere(claim.name.clone())),
            Lack::Failed(claim) => Some(Cause::Unusable(claim.name.clone())),
            Lack::NodeGone(node) => Some(Cause::NodeGone(node.clone())),
            Lack::NodeShut { node, taint } => {
                Some(Cause::NodeShut { node: node.clone(), taint: taint.clone() })
            }
            Lack::Others(of) => {
                let millis = self.options.wait_within_millis;
                let over = |since: Timestamp| since.0.saturating_add(millis) <= now.0;
                let (object, seconds) = (of.to_string(), millis / 1000);
                let since = flight.others_since.get(&(pod.clone(), of.clone())).copied();
                since.is_some_and(over).then_some(Cause::Waited { object, seconds })
            }
            Lack::Allocation(claim) => {
                let readers = self.readers.get(claim).into_iter().flatten();
                let comes = readers
                    .filter_map(|id| self.flights.get(id))
                    .any(|other| other.back.is_none() && self.gives(other, claim));
                (!comes && !self.gives(flight, claim))
                    .then(|| Cause::NotAllocated(claim.name.clone()))
            }
        }
    }

    /// Whether a flight allocates a claim.
    fn gives(&self, flight: &Flight, claim: &ObjectRef) -> bool {
        flight.reads.contains(claim) && {
            let claims = self.claims_of(flight);
            !flight.grants(&claims, claim).is_empty()
        }
    }

    /// Which claim each entry of the pods of a flight is.
    pub(super) fn claims_of(&self, flight: &Flight) -> Vec<(PodKey, ObjectRef, usize)> {
        let info = self.world.lowering().group(&flight.group);
        let pods = info.iter().flat_map(|info| &info.roles).flat_map(|role| &role.pods);
        let of_pod = |pod: &crate::lower::PodInfo| {
            let claims =
                pod.claims.iter().map(|claim| crate::view::claim_reference(claim.claim.key()));
            let claims = claims.chain([raise::made_extended(pod)]);
            let key = pod.key.clone();
            claims.enumerate().map(move |(at, of)| (key.clone(), of, at)).collect::<Vec<_>>()
        };
        pods.filter(|pod| flight.uids.contains_key(&pod.key)).flat_map(of_pod).collect()
    }

    /// Whether the devices of a seat, or of all of a flight's with these claims, are its own. A claim that
    /// pods which are bound use already was looked at before they were.
    fn standing(&self, claims: &[(PodKey, ObjectRef, usize)], pod: Option<&PodKey>) -> Standing {
        let Some(objects) = self.world.objects() else { return Standing::Clear };
        let passed = self.watch.passed(Kind::ResourceClaim);
        let mut not_yet = false;
        for (of_pod, claim, _) in claims {
            if pod.is_some_and(|pod| pod != of_pod) || self.is_in_use(claim) {
                continue;
            }
            let gives_way =
                |other: &phalanx_objects::resource::ResourceClaim| self.gives_way(other);
            let counts = |driver: &str, pool: &str| self.counts(driver, pool);
            match self.rivals.standing(claim, passed, objects, gives_way, counts) {
                Standing::Clear => {}
                Standing::NotYet => not_yet = true,
                second @ Standing::Second { .. } => return second,
            }
        }
        if not_yet { Standing::NotYet } else { Standing::Clear }
    }

    /// Whether a pod that is bound uses the claim.
    fn is_in_use(&self, claim: &ObjectRef) -> bool {
        let Some(objects) = self.world.objects() else { return false };
        let Some(Object::ResourceClaim(found)) = objects.get(claim) else { return false };
        found.status.reserved_for.iter().any(|user| {
            let pod = crate::lower::pod_key(&claim.namespace, &user.name);
            user.resource == "pods"
                && self.pod(&pod).is_some_and(|pod| {
                    pod.metadata.uid == user.uid && !pod.spec.node_name.is_empty()
                })
        })
    }

    /// Whether the writer of a claim keeps to the same rule: all its users are pods of ours that wait.
    fn gives_way(&self, claim: &phalanx_objects::resource::ResourceClaim) -> bool {
        let users = &claim.status.reserved_for;
        let is_ours = |user: &phalanx_objects::resource::ResourceClaimConsumerReference| {
            let pod = crate::lower::pod_key(&claim.metadata.namespace, &user.name);
            user.resource == "pods"
                && self.pod(&pod).is_some_and(|pod| {
                    pod.spec.scheduler_name == self.options.scheduler_name
                        && pod.spec.node_name.is_empty()
                })
        };
        !users.is_empty() && users.iter().all(is_ours)
    }

    /// Whether the devices of a pool take from counters.
    fn counts(&self, driver: &str, pool: &str) -> bool {
        let Some(objects) = self.world.objects() else { return false };
        let pool = phalanx_engine::PoolKey { driver: driver.into(), pool: pool.into() };
        let slices = raise::Slices::new(self.world.lowering(), objects);
        slices.of(&pool).any(|slice| !slice.spec.shared_counters.is_empty())
    }

    /// A group that starts whole, by what its Placement says.
    fn look_at_record(&mut self, id: u64, flight: &mut Flight, now: Timestamp) -> Course {
        let Some(record) = flight.record.clone() else { return Course::Ended };
        let found = self.record(&record.of).cloned();
        let Some(found) = found else {
            if flight.deadline.is_none() {
                self.write_record(id, flight, None, PlacementPhase::Held);
                return Course::On;
            }
            // Somebody has deleted it: without it nobody would end a group that does not come to run.
            let start = self.start_of(flight, &record.of.namespace, &record.spec, now);
            if let Some(cause) = start.over {
                flight.back = Some(cause);
                return Course::Again;
            }
            self.write_record(id, flight, None, PlacementPhase::Committing);
            return Course::On;
        };
        if found.spec.epoch > self.options.epoch {
            return Course::Ended;
        }
        let same = found.spec.seats == record.spec.seats
            && found.spec.pools == record.spec.pools
            && found.spec.epoch == self.options.epoch;
        match phase(&found) {
            PlacementPhase::Done if flight.closing && same => Course::Landed,
            PlacementPhase::Waiting | PlacementPhase::Done => {
                flight.closing = false;
                flight.deadline = None;
                self.write_record(id, flight, Some(&found), PlacementPhase::Held);
                Course::On
            }
            PlacementPhase::Releasing => Course::Ended,
            PlacementPhase::Held | PlacementPhase::Committing if !same && !record.own => {
                Course::Ended
            }
            PlacementPhase::Held if !same => {
                self.write_record(id, flight, Some(&found), PlacementPhase::Held);
                Course::On
            }
            PlacementPhase::Held => self.look_while_held(id, flight, &found, now),
            PlacementPhase::Committing if !same => {
                self.write_record(id, flight, Some(&found), PlacementPhase::Committing);
                Course::On
            }
            PlacementPhase::Committing => self.look_while_committing(id, flight, &found, now),
        }
    }

    fn look_while_held(
        &mut self,
        id: u64,
        flight: &mut Flight,
        found: &Placement,
        now: Timestamp,
    ) -> Course {
        match self.write_seats(id, flight, now, false) {
            Course::Landed => {}
            course @ (Course::On | Course::Again | Course::Ended) => return course,
        }
        match self.standing(&self.claims_of(flight), None) {
            Standing::Clear => {
                if let Some(record) = &mut flight.record {
                    record.spec.committed_at = crate::raise::api_time(now);
                }
                self.write_record(id, flight, Some(found), PlacementPhase::Committing);
                Course::On
            }
            Standing::NotYet => {
                self.watching.insert(id);
                Course::On
            }
            Standing::Second { device, other } => {
                let other = other.map(|other| other.to_string());
                flight.back = Some(Cause::Second { device, other });
                Course::Again
            }
        }
    }

    fn look_while_committing(
        &mut self,
        id: u64,
        flight: &mut Flight,
        found: &Placement,
        now: Timestamp,
    ) -> Course {
        flight.deadline.get_or_insert_with(|| self.deadline(&found.spec, now));
        let start = self.start_of(flight, &found.metadata.namespace, &found.spec, now);
        if let Some(cause) = start.over {
            flight.back = Some(cause);
            return Course::Again;
        }
        let course = self.write_seats(id, flight, now, true);
        let whole = start.runs && course == Course::Landed;
        // What ran whole once is its owner's, late or not.
        if whole || start.late && course != Course::Again {
            if let Some(record) = &mut flight.record {
                record.spec.ran |= whole;
            }
            flight.closing = true;
            self.write_record(id, flight, Some(found), PlacementPhase::Done);
            return Course::On;
        }
        if course == Course::Again { course } else { Course::On }
    }

    /// By when all that a committed group needs must run, whoever has committed it. One that takes it up has
    /// some of that time even where it is over, for nobody went on with it meanwhile.
    fn deadline(&self, spec: &PlacementSpec, now: Timestamp) -> Timestamp {
        let wait = self.options.start_within_millis;
        let since = spec.committed_at.map_or(now.0, |at| at.as_millisecond());
        let grace = now.0.saturating_add(wait / GRACE);
        Timestamp(since.saturating_add(wait).max(grace))
    }

    /// How far a committed group has come with the seats of its Placement.
    fn start_of(
        &self,
        flight: &Flight,
        namespace: &str,
        spec: &PlacementSpec,
        now: Timestamp,
    ) -> Start {
        let Some(objects) = self.world.objects() else { return Start::default() };
        let so_far = started(objects, namespace, spec);
        let needed = usize::try_from(self.world.lowering().needed(&flight.group)).unwrap_or(0);
        let of = if needed == 0 { spec.seats.len() } else { needed };
        let ran = so_far.ran + self.runs_elsewhere(flight, spec);
        let late = ran < of && flight.deadline.is_some_and(|deadline| deadline <= now);
        let over = if spec.seats.is_empty() {
            Some(Cause::NoSeatLeft)
        } else if so_far.alive == 0 {
            Some(Cause::PodGone)
        } else {
            let example = so_far.example;
            (late && !spec.ran).then_some(Cause::NotStarted { ran, of, example })
        };
        Start { runs: ran >= of, late, over }
    }

    /// Members of a group that are on nodes and stand in no seat of its Placement.
    fn runs_elsewhere(&self, flight: &Flight, spec: &PlacementSpec) -> usize {
        let lowering = self.world.lowering();
        let seated: BTreeSet<&str> = spec.seats.iter().map(|seat| seat.pod.as_str()).collect();
        let running = lowering.running_members(&flight.group);
        running.iter().filter(|one| !seated.contains(one.pod.as_str())).count()
    }

    /// The Placement of this name.
    pub(super) fn record(&self, of: &ObjectRef) -> Option<&Placement> {
        placement(self.world.objects()?, of)
    }

    /// Writes the Placement of a flight in this phase.
    pub(super) fn write_record(
        &mut self,
        id: u64,
        flight: &mut Flight,
        found: Option<&Placement>,
        phase: PlacementPhase,
    ) {
        let owner = self.owner_of(&flight.group);
        let Some(record) = &mut flight.record else { return };
        record.own = true;
        record.spec.epoch = self.options.epoch;
        record.spec.phase = Some(phase);
        let mut placement = found.cloned().unwrap_or_else(|| {
            let mut fresh = Placement::default();
            fresh.metadata.name.clone_from(&record.of.name);
            fresh.metadata.namespace.clone_from(&record.of.namespace);
            fresh.metadata.owner_references.extend(owner);
            fresh
        });
        placement.spec = record.spec.clone();
        placement.status = PlacementStatus::default();
        "placed".clone_into(&mut placement.status.verdict);
        if let Some(cause) = &flight.back {
            "waits".clone_into(&mut placement.status.verdict);
            placement.status.message = crate::words::given_up(cause);
        }
        self.emit_record(Some(id), placement);
    }

    /// Creates a Placement, or replaces it in the version that was read.
    pub(super) fn emit_record(&mut self, flight: Option<u64>, placement: Placement) -> bool {
        let version = Some(placement.metadata.resource_version.clone());
        let guard = Guard {
            uid: placement.metadata.uid.clone(),
            version: version.filter(|version| !version.is_empty()),
            epoch: self.options.epoch,
        };
        let write = match guard.uid.is_empty() {
            true => Write::CreatePlacement(Box::new(placement)),
            false => Write::UpdatePlacement(Box::new(placement)),
        };
        self.emit(flight, guard, write)
    }

    /// The object that declares a group, as the owner of its Placement.
    pub(super) fn owner_of(
        &self,
        group: &phalanx_engine::GroupKey,
    ) -> Option<phalanx_objects::meta::OwnerReference> {
        let of = crate::lower::declaring(group);
        let found = self.world.objects()?.get(&of)?;
        let uid = found.metadata().uid.clone();
        (!uid.is_empty()).then(|| phalanx_objects::meta::OwnerReference {
            api_version: of.kind.api_version().to_owned(),
            kind: of.kind.as_str().to_owned(),
            name: of.name,
            uid,
            controller: Some(true),
        })
    }

    /// Lets a flight look whenever one of these objects changes.
    pub(super) fn read(&mut self, id: u64, flight: &mut Flight, objects: Vec<ObjectRef>) {
        for object in objects {
            self.readers.entry(object.clone()).or_default().insert(id);
            flight.reads.insert(object);
        }
    }

    /// The pod of a seat, as its target.
    pub(super) fn is_in_air(&self, pod: &PodKey) -> bool {
        self.air.has(&pod_reference(pod))
    }
}
