//! What may change: the only way into the state.

use crate::decision::Revision;
use crate::facts::{
    AttributeValue, Claim, Domains, Group, Hold, Links, Member, Node, Pool, Queue, Seat, Topology,
};
use crate::name::{
    ClaimKey, FlightId, GroupKey, Name, NodeKey, PodKey, PoolKey, ProfileId, QueueKey, SelectorId,
    TopologyKey, VolumeClaimKey, VolumeKey,
};
use crate::storage::{NodeStorage, StorageClass, StorageDriver, Volume, VolumeClaim};

/// One fact that is now so; `None` is gone. Applying a change twice is applying it once, and the
/// order of changes about different keys does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node.
    Node(NodeKey, Option<Node>),
    /// A pool of devices.
    Pool(PoolKey, Option<Pool>),
    /// The links inside a node.
    Links(NodeKey, Option<Links>),
    /// A topology tree.
    Topology(TopologyKey, Option<Topology>),
    /// A node's domains in a topology tree.
    Domains(NodeKey, TopologyKey, Option<Domains>),
    /// A queue.
    Queue(QueueKey, Option<Queue>),
    /// A group.
    Group(GroupKey, Option<Group>),
    /// A pod.
    Member(PodKey, Option<Member>),
    /// A claim.
    Claim(ClaimKey, Option<Claim>),
    /// A PersistentVolume.
    Volume(VolumeKey, Option<Volume>),
    /// A PersistentVolumeClaim.
    VolumeClaim(VolumeClaimKey, Option<VolumeClaim>),
    /// A StorageClass.
    StorageClass(Name, Option<StorageClass>),
    /// A CSIDriver.
    StorageDriver(Name, Option<StorageDriver>),
    /// What a node can attach.
    NodeStorage(NodeKey, Option<NodeStorage>),
    /// A promised place.
    Hold(GroupKey, Option<Hold>),
    /// What a selector says of all devices of a profile.
    Match(SelectorId, ProfileId, Match),
    /// What an expression for a derived attribute gives on all devices of a profile; none is that
    /// they lack the attribute.
    Derived(SelectorId, ProfileId, Option<Derived>),
    /// A decision is on its way to the board: its seats count until the board shows them.
    Assume(FlightId, GroupKey, Vec<Seat>),
    /// The board shows it, or it failed: the seats count no more.
    Settle(FlightId),
}

/// The value of a derived attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Derived {
    /// It has one.
    Value(AttributeValue),
    /// Its expression ends in an error.
    Error,
}

/// A selector's verdict on a profile. What was never said is `No`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Match {
    /// It matches.
    Yes,
    /// It does not.
    #[default]
    No,
    /// It ends in an error.
    Error,
}

impl Revision {
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
