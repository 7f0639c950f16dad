//! A flight: seats of one group from the decision until the board shows all of them, or until what was
//! written of them is taken back. What is to be written next is asked of the objects as they are, in
//! [`resume`](crate::raise::resume); here is told what a flight is, and what the board shows of it.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{Grant, GroupKey, PodKey, Seat, Timestamp};
use phalanx_objects::core::{Pod, PodPhase};
use phalanx_objects::resource::{AllocationResult, DeviceClaim};
use phalanx_objects::topology::{
    Placement, PlacementGrant, PlacementGroup, PlacementPhase, PlacementSeat, PlacementSpec,
};
use phalanx_objects::{Kind, Object, ObjectRef, Quantity};

use crate::lower::{ClaimInfo, ClaimName, GroupInfo, PodInfo};
use crate::view::claim_reference;
use crate::world::{Objects, World};

/// Seats on their way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// The group.
    pub group: GroupKey,
    /// The seats that are not dropped, whether the board shows them or not.
    pub seats: Vec<Seat>,
    /// UIDs of their pods.
    pub uids: BTreeMap<PodKey, String>,
    /// What claims give up before they are given what the seats say.
    pub given_up: BTreeMap<ObjectRef, AllocationResult>,
    /// Of a group that starts whole: its record as it is to be.
    pub record: Option<Record>,
    /// What the engine was told of it.
    pub assumed: Vec<Seat>,
    /// Claims whose state it may have written.
    pub touched: BTreeSet<ObjectRef>,
    /// Objects whose change makes it look again.
    pub reads: BTreeSet<ObjectRef>,
    /// Seats that are given up, and why.
    pub dropping: BTreeMap<PodKey, Cause>,
    /// All of it is given up, and why.
    pub back: Option<Cause>,
    /// It was taken up from the board: what stands there of it was written by one that was stopped.
    pub resumed: bool,
    /// An object that the API server refuses to have written, and why.
    pub refused: Option<(ObjectRef, Cause)>,
    /// Before then it writes nothing, for what it wrote to give things back was refused.
    pub pause: Option<Timestamp>,
    /// How often that was refused.
    pub refusals: u32,
    /// Its Placement was told that this is all.
    pub closing: bool,
    /// By when all that the group needs must run.
    pub deadline: Option<Timestamp>,
    /// Since when a pod waits for what others do to an object: make a volume, prepare devices.
    pub others_since: BTreeMap<(PodKey, ObjectRef), Timestamp>,
    /// Claims on volumes that it has told the node.
    pub selected: BTreeSet<ObjectRef>,
}

/// The Placement of a flight as it is to be, but for its phase.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Its name.
    pub of: ObjectRef,
    /// The seats, those that ran before included.
    pub spec: PlacementSpec,
    /// This flight has written it.
    pub own: bool,
}

/// Why seats are given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The pod is gone, or going.
    PodGone,
    /// Each of its seats was given up by itself.
    NoSeatLeft,
    /// A claim is gone, going, or made for another.
    ClaimGone(String),
    /// A claim holds other devices than were decided.
    Elsewhere(String),
    /// The devices of a claim reported that they can't be used.
    Unusable(String),
    /// Another seat was to allocate the claim, and does not.
    NotAllocated(String),
    /// Another claim came first.
    Second {
        /// The device.
        device: String,
        /// The other claim.
        other: Option<String>,
    },
    /// The API server refuses a write.
    Refused {
        /// HTTP status.
        code: u16,
        /// What it says.
        message: String,
    },
    /// The node is gone.
    NodeGone(String),
    /// The node has a taint that keeps the pod away; cordoning is one.
    NodeShut {
        /// The node.
        node: String,
        /// Key of the taint.
        taint: String,
    },
    /// What others were to do, make a volume or prepare devices, was not done in time.
    Waited {
        /// What it was to be done to.
        object: String,
        /// How long was waited.
        seconds: i64,
    },
    /// The volume controller has taken back the node for which it was to make a volume.
    NotProvisioned(String),
    /// A controller that was stopped held it, and nothing was bound.
    Stopped,
    /// Not all that is needed ran in time.
    NotStarted {
        /// How many ran.
        ran: usize,
        /// How many are needed.
        of: usize,
        /// One that did not, and what became of it.
        example: Option<(String, &'static str)>,
    },
}

/// How many of a record's members run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Started {
    /// Those that run, or have run.
    pub ran: usize,
    /// Those that are bound and not lost.
    pub bound: usize,
    /// Those that are not lost, bound or not.
    pub alive: usize,
    /// The first that does not run, and what became of it.
    pub example: Option<(String, &'static str)>,
}

impl Flight {
    /// One that has written nothing yet.
    pub(super) fn new(group: GroupKey, seats: Vec<Seat>, record: Option<Record>) -> Self {
        Self {
            group,
            seats,
            uids: BTreeMap::new(),
            given_up: BTreeMap::new(),
            record,
            assumed: Vec::new(),
            touched: BTreeSet::new(),
            reads: BTreeSet::new(),
            dropping: BTreeMap::new(),
            back: None,
            resumed: false,
            refused: None,
            pause: None,
            refusals: 0,
            closing: false,
            deadline: None,
            others_since: BTreeMap::new(),
            selected: BTreeSet::new(),
        }
    }

    /// When it looks again if nothing happens; `wait_millis` is how long it waits for others.
    pub(super) fn wakes_at(&self, now: Timestamp, wait_millis: i64) -> Option<Timestamp> {
        let over = |since: &Timestamp| Timestamp(since.0.saturating_add(wait_millis));
        let waited = self.others_since.values().map(over);
        let times = [self.deadline, self.pause].into_iter().flatten().chain(waited);
        times.filter(|at| *at > now).min()
    }

    /// Lets it write nothing for a while: each time twice as long, from the first to the most milliseconds.
    pub(super) fn pause(&mut self, now: Timestamp, backoff_millis: (i64, i64)) {
        if self.pause.is_some_and(|until| until > now) {
            // Of several that were refused at once each is told by itself.
            return;
        }
        let millis = super::pause_millis(backoff_millis, self.refusals);
        self.refusals = self.refusals.saturating_add(1);
        self.pause = Some(Timestamp(now.0.saturating_add(millis)));
    }

    /// The seats of pods that the board does not show as bound.
    pub(super) fn open<'a>(&'a self, objects: &'a Objects) -> impl Iterator<Item = &'a Seat> {
        self.seats
            .iter()
            .filter(move |seat| seat.pod.as_ref().is_some_and(|pod| !self.is_bound(pod, objects)))
    }

    /// Whether the board shows a pod of it as bound.
    pub(super) fn is_bound(&self, pod: &PodKey, objects: &Objects) -> bool {
        let uid = self.uids.get(pod);
        pod_of(objects, pod).is_some_and(|found| {
            Some(&found.metadata.uid) == uid && !found.spec.node_name.is_empty()
        })
    }

    /// What a claim is granted by the seats, of the seat that grants it.
    pub(super) fn grants<'a>(
        &'a self,
        claims: &[(PodKey, ObjectRef, usize)],
        of: &ObjectRef,
    ) -> Vec<&'a Grant> {
        let mut all = Vec::new();
        for (pod, _, at) in claims.iter().filter(|(_, claim, _)| claim == of) {
            let seats = self.seats.iter().filter(|seat| seat.pod.as_ref() == Some(pod));
            let grants = seats.flat_map(|seat| &seat.grants);
            all.extend(grants.filter(|grant| usize::from(grant.claim) == *at));
        }
        all
    }
}

impl Record {
    /// Whether pods of it may be bound that are to be ended if it is given up: it was committed, and not all
    /// that the group needs ran ever.
    pub(super) fn ends_pods(spec: &PlacementSpec) -> bool {
        spec.committed_at.is_some() && !spec.ran
    }
}

/// A pod that exists.
pub(super) fn pod_of<'a>(objects: &'a Objects, pod: &PodKey) -> Option<&'a Pod> {
    let found = objects.get(&pod_reference(pod))?;
    if let Object::Pod(pod) = found { Some(pod) } else { None }
}

/// What a pod is referred to by.
pub(super) fn pod_reference(pod: &PodKey) -> ObjectRef {
    ObjectRef {
        kind: Kind::Pod,
        namespace: pod.0.namespace.to_string(),
        name: pod.0.name.to_string(),
    }
}

/// Whether seats can be written now: each has a pod that exists and waits, with claims that exist.
pub(super) fn can_fly(info: &GroupInfo, seat: &Seat, objects: &Objects) -> bool {
    let pods = || info.roles.iter().flat_map(|role| &role.pods);
    let pod = seat.pod.as_ref().and_then(|key| pods().find(|pod| pod.key == *key));
    pod.is_some_and(|pod| {
        let is_made = |claim: &ClaimInfo| matches!(claim.claim, ClaimName::Real(_));
        let extended = objects.get(&crate::raise::made_extended(pod));
        !pod.uid.is_empty()
            && !objects.names_node(&pod.key)
            && pod.claims.iter().all(is_made)
            && extended.is_none()
    })
}

/// Pods of a group by name.
pub(super) fn pods_of(info: &GroupInfo) -> BTreeMap<&PodKey, (u16, &PodInfo)> {
    let roles = info.roles.iter().zip(0_u16..);
    roles.flat_map(|(role, at)| role.pods.iter().map(move |pod| (&pod.key, (at, pod)))).collect()
}

/// What flights of these pods read: the pods, their claims and volumes.
pub(super) fn reads(world: &World, pod: &PodInfo) -> Vec<ObjectRef> {
    let mut all = vec![pod_reference(&pod.key), crate::raise::made_extended(pod)];
    all.extend(pod.claims.iter().map(|claim| claim_reference(claim.claim.key())));
    all.extend(world.objects().into_iter().flat_map(|objects| crate::raise::mounted(objects, pod)));
    all
}

/// What a flight reads of this pod and of the node that it is to run on.
pub(super) fn reads_of_seat(world: &World, pod: &PodInfo, seat: &Seat) -> Vec<ObjectRef> {
    let mut all = reads(world, pod);
    let (namespace, name) = (String::new(), seat.node.0.to_string());
    all.push(ObjectRef { kind: Kind::Node, namespace, name });
    all
}

/// The name of a group's Placement: its kind and its name, and where that is too long its end is a hash
/// of all.
pub(super) fn record_name(group: &GroupKey) -> ObjectRef {
    const LONGEST: usize = 253;
    let mut name = format!("{}-{}", group.kind, group.object.name).to_ascii_lowercase();
    name.retain(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
    let plain = format!("{}-{}", group.kind, group.object.name) == name;
    if name.len() > LONGEST || !plain {
        let text = format!("{}/{}", group.kind, group.object.name);
        name.truncate(LONGEST - 17);
        name = format!("{}-{:016x}", name.trim_end_matches(['-', '.']), hash(&text));
    }
    ObjectRef { kind: Kind::Placement, namespace: group.object.namespace.to_string(), name }
}

/// FNV-1a: the same in every run.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A record of these seats, after those that it had before.
pub(super) fn record_of(
    world: &World,
    (info, scheduler, epoch): (&GroupInfo, &str, i64),
    before: Option<&PlacementSpec>,
    seats: &[Seat],
) -> PlacementSpec {
    let mut spec = PlacementSpec {
        group: PlacementGroup {
            kind: info.key.kind.to_string(),
            name: info.key.object.name.to_string(),
        },
        scheduler_name: scheduler.to_owned(),
        epoch,
        ..PlacementSpec::default()
    };
    if let Some(before) = before {
        spec.ran = before.ran;
        spec.pools.clone_from(&before.pools);
        spec.seats.clone_from(&before.seats);
        spec.committed_at = before.committed_at;
    }
    let pods = pods_of(info);
    for seat in seats {
        let Some((_, pod)) = seat.pod.as_ref().and_then(|pod| pods.get(pod)) else { continue };
        let seat = written_seat(world, &mut spec, pod, seat);
        spec.seats.retain(|old| old.pod != seat.pod);
        spec.seats.push(seat);
    }
    spec.seats.sort_by(|a, b| (a.role, a.index, &a.pod).cmp(&(b.role, b.index, &b.pod)));
    spec
}

fn written_seat(
    world: &World,
    spec: &mut PlacementSpec,
    pod: &PodInfo,
    seat: &Seat,
) -> PlacementSeat {
    let extended = world.lowering().extended_claim(&pod.home, pod, &seat.node);
    let mut grants: Vec<PlacementGrant> = Vec::new();
    for grant in &seat.grants {
        let at = usize::from(grant.claim);
        let own = pod.claims.get(at);
        let Some(of) = own.or(extended.as_ref()) else { continue };
        let key = &grant.device.pool;
        let pool = spec.pool(&key.driver, &key.pool);
        let written = PlacementGrant {
            claim: own.map(|claim| claim.pod_claim.to_string()).unwrap_or_default(),
            request: request_name(&of.spec, grant),
            pool,
            devices: vec![grant.device.device.to_string()],
            consumed: grant.share.as_ref().map(|share| {
                let amount = |nanos: i128| -> Quantity { crate::raise::quantity(nanos, None) };
                share.iter().map(|(name, nanos)| (name.to_string(), amount(*nanos))).collect()
            }),
        };
        match grants.last_mut() {
            Some(last)
                if (&last.claim, &last.request, last.pool, &last.consumed)
                    == (&written.claim, &written.request, pool, &written.consumed) =>
            {
                last.devices.extend(written.devices);
            }
            Some(_) | None => grants.push(written),
        }
    }
    PlacementSeat {
        role: i32::from(pod.role),
        index: pod.index.and_then(|index| i32::try_from(index).ok()).unwrap_or_default(),
        pod: pod.key.0.name.to_string(),
        uid: pod.uid.clone(),
        node: seat.node.0.to_string(),
        grants,
    }
}

/// A request as results name it.
fn request_name(spec: &DeviceClaim, grant: &Grant) -> String {
    let Some(request) = spec.requests.get(usize::from(grant.request)) else {
        return String::new();
    };
    match request.first_available.get(usize::from(grant.alternative)) {
        Some(sub) => format!("{}/{}", request.name, sub.name),
        None => request.name.clone(),
    }
}

/// What became of the members of a record.
pub(super) fn started(objects: &Objects, namespace: &str, spec: &PlacementSpec) -> Started {
    let mut all = Started::default();
    for seat in &spec.seats {
        let (kind, namespace) = (Kind::Pod, namespace.to_owned());
        let of = ObjectRef { kind, namespace, name: seat.pod.clone() };
        let pod = match objects.get(&of) {
            Some(Object::Pod(pod)) if pod.metadata.uid == seat.uid => Some(&**pod),
            Some(_) | None => None,
        };
        let fate = fate(pod);
        match fate {
            Fate::Ran => {
                all.ran += 1;
                all.bound += 1;
                all.alive += 1;
            }
            Fate::Bound => {
                all.bound += 1;
                all.alive += 1;
            }
            Fate::Waits => all.alive += 1,
            Fate::Failed | Fate::Gone => {}
        }
        let lost = !matches!(fate, Fate::Ran | Fate::Bound);
        if fate != Fate::Ran && (all.example.is_none() || lost) {
            all.example = Some((seat.pod.clone(), fate.words()));
        }
    }
    all
}

/// What became of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Ran,
    Bound,
    Waits,
    Failed,
    Gone,
}

impl Fate {
    fn words(self) -> &'static str {
        match self {
            Self::Ran => "runs",
            Self::Bound => "is bound and does not run yet",
            Self::Waits => "is not bound",
            Self::Failed => "has failed",
            Self::Gone => "is gone",
        }
    }
}

fn fate(pod: Option<&Pod>) -> Fate {
    let Some(pod) = pod else { return Fate::Gone };
    match pod.status.phase {
        PodPhase::Succeeded => Fate::Ran,
        PodPhase::Failed => Fate::Failed,
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown | PodPhase::Other(_)
            if pod.metadata.deletion_timestamp.is_some() =>
        {
            Fate::Gone
        }
        PodPhase::Running if !pod.spec.node_name.is_empty() => Fate::Ran,
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown | PodPhase::Other(_) => {
            if pod.spec.node_name.is_empty() { Fate::Waits } else { Fate::Bound }
        }
    }
}

/// The Placement of this name.
pub(super) fn placement<'a>(objects: &'a Objects, of: &ObjectRef) -> Option<&'a Placement> {
    if let Some(Object::Placement(found)) = objects.get(of) { Some(found) } else { None }
}

/// The phase of a Placement; one without says nothing more than that the group is known.
pub(super) fn phase(placement: &Placement) -> PlacementPhase {
    placement.spec.phase.unwrap_or(PlacementPhase::Waiting)
}
