//! The state: every fact that was applied, and what follows from them at once (ledgers, holders,
//! who waits). Caches that can be thrown away are not here.
//!
//! Facts may come in any order: a pod before its group or its node, an allocation before the slice
//! that publishes the device. What a fact contributes to another's row is taken back before the
//! fact is replaced, so a state is a function of the facts that are live and of nothing else.

mod apply;
mod around;
mod forest;
mod free;
mod ideal;
mod ledger;
mod seat;
mod table;
mod view;
mod volumes;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

pub(crate) use around::Around;
pub(crate) use forest::{Forest, NOWHERE, Tree};
pub use free::DeviceFree;
pub use ledger::ScalarLeft;
pub(crate) use ledger::{Charge, Ledger};
pub(crate) use seat::Taken;
pub(crate) use table::Table;
pub(crate) use view::NodeDevices;
pub(crate) use volumes::{Attached, Decided, Handle, OnTrial, Storage, StorageFacts, selects};

use crate::decision::Revision;
use crate::device::Matches;
use crate::facts::Since;
use crate::facts::{
    Allocation, Claim, Consumption, Domains, Fault, Gate, Group, Hold, Links, Member, Node, Phase,
    Pool, Queue, Request, Seat, Topology,
};
use crate::name::{
    ClaimKey, FlightId, GroupKey, Name, NodeKey, PodKey, PoolKey, QueueKey, Scoped, Shared,
    Timestamp, TopologyKey,
};
use crate::pods::HostPort;

/// Everything that is known.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) revision: Revision,
    pub(crate) nodes: Table<NodeKey, NodeState>,
    pub(crate) pools: Table<PoolKey, PoolState>,
    pub(crate) claims: Table<ClaimKey, ClaimState>,
    pub(crate) groups: Table<GroupKey, GroupState>,
    pub(crate) members: Table<PodKey, MemberState>,
    pub(crate) requests: Table<Shared<Request>, RequestState>,
    pub(crate) matches: Matches,
    pub(crate) topologies: BTreeMap<TopologyKey, Topology>,
    pub(crate) domains: BTreeMap<(NodeKey, TopologyKey), Domains>,
    pub(crate) queues: BTreeMap<QueueKey, Queue>,
    pub(crate) holds: BTreeMap<GroupKey, Hold>,
    /// Volumes and who uses them.
    pub(crate) storage: Storage,
    /// Names of scalar resources; ledgers count by index.
    pub(crate) scalars: Vec<Name>,
    pub(crate) scalar_index: FxHashMap<Name, u16>,
    /// By index: whether it is an extended resource, of which there are few (GPUs, NICs) and whose
    /// nodes are best kept for those who ask for them.
    pub(crate) scarce: Vec<bool>,
    /// When bound pods are expected to be gone, and how many at each time.
    pub(crate) ends: BTreeMap<Timestamp, u32>,
    /// After which times the waits for binding conditions end, and how many at each time.
    pub(crate) deadlines: BTreeMap<Timestamp, u32>,
    /// Groups with something to place, in queue order.
    pub(crate) pending: BTreeMap<QueuePlace, u32>,
    pub(crate) flights: BTreeMap<FlightId, Flight>,
    pub(crate) flight_pods: FxHashMap<PodKey, FlightId>,
    /// Flights that allocate or join a claim, in order.
    pub(crate) flight_claims: FxHashMap<ClaimKey, Vec<FlightId>>,
    /// What pods on nodes mean to other pods.
    pub(crate) around: Around,
    /// Pods that wait with a node promised to them.
    pub(crate) nominated: BTreeSet<u32>,
    /// Pools that are not confined to nodes that they name.
    pub(crate) wide_pools: BTreeSet<u32>,
    pub(crate) clock: Versions,
}

/// Versions are drawn from one counter and never used twice, so a version that is put back (by a
/// trial that is rolled back) stands for the very content that it stood for before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Versions {
    last: u64,
    /// Nodes whose version changed, in order: columns read on from where they were. The first
    /// entry is number `touched_from`.
    touched: Vec<u32>,
    touched_from: u64,
    /// How far any column has read.
    read_to: u64,
    /// While a trial runs: the versions that nodes had before it touched them.
    before_trial: Option<Vec<(u32, u64)>>,
    /// Version of the set of nodes.
    pub(crate) node_set: u64,
    /// Version of the topology trees and of the nodes' domains in them.
    pub(crate) topology: u64,
    /// Version of what selectors say.
    pub(crate) selectors: u64,
    /// Version of what any node's answer about volumes may depend on.
    pub(crate) volumes: u64,
    /// Version of the facts about volumes.
    pub(crate) volume_facts: u64,
    /// While a trial runs: what [`volumes`](Self::volumes) was before it.
    volumes_before_trial: u64,
    /// Version of all that [`Refused`](crate::Verdict::Refused) depends on: nodes, pools, links,
    /// selectors.
    pub(crate) hardware: u64,
}

/// Entries of the log of touched nodes before its older half is dropped.
const TOUCHED_MAX: usize = 1 << 20;

impl Versions {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Numbers of the first entry of the log and of the one after its last.
    pub(crate) fn log(&self) -> (u64, u64) {
        (self.touched_from, self.touched_from + self.touched.len() as u64)
    }

    /// Entry `at` of the log, which must be inside [`log`](Self::log).
    pub(crate) fn log_at(&self, at: u64) -> u32 {
        self.touched[(at - self.touched_from) as usize]
    }

    /// Notes that a column has read the whole log.
    pub(crate) fn log_read(&mut self) {
        self.read_to = self.log().1;
    }

    fn note(&mut self, slot: u32) {
        // A node is often touched several times on end: as long as nobody has read the entry, it
        // says all there is to say.
        if self.touched.last() == Some(&slot) && self.read_to < self.log().1 {
            return;
        }
        if self.touched.len() >= TOUCHED_MAX {
            self.touched.drain(..TOUCHED_MAX / 2);
            self.touched_from += (TOUCHED_MAX / 2) as u64;
        }
        self.touched.push(slot);
    }
}

/// Where a group stands in the queue: priority, time, namespace, name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueuePlace {
    priority: Reverse<i32>,
    since: Since,
    object: Scoped,
    kind: Name,
}

/// A node's row.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeState {
    pub(crate) fact: Option<Node>,
    pub(crate) links: Option<Links>,
    pub(crate) ledger: Ledger,
    /// Pods that are charged.
    pub(crate) pods: u32,
    /// Host ports that its pods have, and how many have each.
    pub(crate) ports: Vec<(HostPort, u32)>,
    /// Pools that name this node.
    pub(crate) pools: Vec<u32>,
    /// What it sees, where that was worked out.
    pub(crate) devices: Option<Box<NodeDevices>>,
    /// What its pods mount.
    pub(crate) volumes: volumes::NodeVolumes,
    /// Changes with anything that a check could notice.
    pub(crate) version: u64,
    /// Changes with the node's own fact.
    pub(crate) fact_version: u64,
}

/// A pool's row.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolState {
    pub(crate) fact: Option<Pool>,
    /// Devices that allocations hold, by name.
    pub(crate) devices: Vec<Holders>,
    /// Nodes that its slices name.
    pub(crate) nodes: Vec<u32>,
}

/// Who holds a device. Reality may have two exclusive holders; the state counts them.
#[derive(Clone, Debug)]
pub(crate) struct Holders {
    pub(crate) name: Name,
    pub(crate) exclusive: u32,
    pub(crate) shares: u32,
    /// Capacity used by shares, by name, in billionths.
    pub(crate) consumed: Vec<(Name, i128)>,
    /// What it takes of counters, where slices don't say so: all who hold it know the same.
    pub(crate) consumes: Consumption,
}

/// A claim's row.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimState {
    pub(crate) fact: Option<Claim>,
    /// An allocation that a seat in flight or on trial gives it.
    pub(crate) assumed: Option<Allocation>,
    /// Users that seats in flight or on trial add.
    pub(crate) assumed_users: u32,
    /// Given up on trial, so that it can be allocated anew.
    pub(crate) released: bool,
}

impl ClaimState {
    /// What it holds, as far as is known here.
    pub(crate) fn held(&self) -> Option<&Allocation> {
        if self.assumed.is_some() {
            return self.assumed.as_ref();
        }
        if self.released { None } else { self.fact.as_ref()?.held.as_ref() }
    }
}

/// A group's row.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupState {
    pub(crate) fact: Option<Group>,
    /// Slot of each role's request.
    pub(crate) requests: Vec<u32>,
    pub(crate) members: Vec<u32>,
    /// Decisions about it that are in flight.
    pub(crate) flights: Vec<FlightId>,
    /// Where it stands in the queue, while it has something to place.
    pub(crate) place: Option<QueuePlace>,
}

impl GroupState {
    /// Whether gates keep it back.
    pub(crate) fn gates(&self) -> &[Name] {
        match self.fact.as_ref().map(|g| &g.gate) {
            Some(Gate::Gated(names)) => names,
            Some(Gate::Open) | None => &[],
        }
    }

    /// What keeps the opening of a role out that has so many before it.
    pub(crate) fn kept_out(&self, role: u16, before: u32) -> Option<&Fault> {
        let role = self.fact.as_ref()?.roles.get(usize::from(role))?;
        role.admits.as_ref().filter(|admits| before >= admits.most).map(|admits| &admits.fault)
    }
}

/// A pod's row.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberState {
    pub(crate) fact: Option<Member>,
    pub(crate) group: u32,
    /// What it is charged for.
    pub(crate) charged: Option<Charged>,
    /// Seats on trial or in flight that it has.
    pub(crate) seats: u32,
}

/// What a pod is charged for, and to which node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charged {
    pub(crate) node: u32,
    pub(crate) request: u32,
    /// It is not being deleted.
    pub(crate) staying: bool,
}

impl MemberState {
    /// When it is expected to leave its node.
    pub(crate) fn end(&self) -> Option<Timestamp> {
        let fact = self.fact.as_ref()?;
        match &fact.phase {
            Phase::Pending => None,
            Phase::Bound(_) => fact.expected_end,
            Phase::Terminating(_, gone) => Some(*gone),
        }
    }

    /// The node that it is bound to.
    pub(crate) fn node(&self) -> Option<&NodeKey> {
        match &self.fact.as_ref()?.phase {
            Phase::Pending => None,
            Phase::Bound(node) | Phase::Terminating(node, _) => Some(node),
        }
    }
}

/// A request's row: one for all that are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestState {
    pub(crate) fact: Option<Shared<Request>>,
    pub(crate) charge: Charge,
    /// Roles and charges that use it.
    pub(crate) users: u32,
}

/// Seats on their way to the board.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) group: GroupKey,
    pub(crate) seats: Vec<Seat>,
    pub(crate) taken: Vec<Taken>,
    /// Claims whose changes it must see.
    pub(crate) claims: Vec<ClaimKey>,
}

impl State {
    /// Starts a trial: what follows will be given back before [`end_trial`](Self::end_trial).
    pub(crate) fn begin_trial(&mut self) {
        self.clock.before_trial = Some(Vec::new());
        self.clock.volumes_before_trial = self.clock.volumes;
    }

    /// Ends a trial after all was given back: nodes are what they were and get the versions that
    /// stood for that, so what columns knew of them holds again.
    pub(crate) fn end_trial(&mut self) {
        for (slot, version) in self.clock.before_trial.take().into_iter().flatten().rev() {
            if self.nodes.get(slot).is_some() {
                self.nodes.at_mut(slot).version = version;
            }
        }
        self.clock.volumes = self.clock.volumes_before_trial;
    }

    /// Whether a scalar is an extended resource.
    pub(crate) fn is_scarce(&self, scalar: u16) -> bool {
        self.scarce.get(usize::from(scalar)).copied().unwrap_or(false)
    }

    /// Whether anything scarce of a node is in use: an extended resource, or a device that it is known to
    /// see.
    pub(crate) fn is_in_use(&self, slot: u32) -> bool {
        let row = self.nodes.at(slot);
        let held = row.devices.as_deref().and_then(NodeDevices::held);
        row.ledger.scalars.iter().any(|one| self.is_scarce(one.id) && one.used != 0)
            || held.is_some_and(|(_, usage)| usage.any_held())
    }

    /// Priority of a group; none where there is no such group.
    pub fn priority(&self, group: &GroupKey) -> Option<i32> {
        self.group(group).map(|fact| fact.priority)
    }

    /// A group as it was told; none where there is no such group.
    pub fn group(&self, group: &GroupKey) -> Option<&Group> {
        self.groups.find(group)?.fact.as_ref()
    }

    /// How many nodes there are.
    pub fn nodes_len(&self) -> usize {
        self.nodes.iter().filter(|(_, _, n)| n.fact.is_some()).count()
    }

    /// A request of a live role.
    #[expect(clippy::expect_used, reason = "a request in use has its fact")]
    pub(crate) fn request(&self, slot: u32) -> &Shared<Request> {
        self.requests.at(slot).fact.as_ref().expect("request in use")
    }
}
