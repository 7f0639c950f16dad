//! What is: nodes, pools, links, claims, groups and their members, as the engine sees them.
//!
//! These are the values that a [`Change`](crate::Change) carries. They hold no text that is
//! decided on later: labels, quantities and selectors have been turned into values by lowering.
//! Some fields have no writer yet (queues, holds, topology trees): they are here because what is
//! built on them must fit without a rewrite, and each says so.

use crate::name::{
    ClaimKey, DeviceKey, GroupKey, Name, NodeKey, PodKey, ProfileId, QueueKey, SelectorId, Shared,
    Timestamp, TopologyKey,
};
use crate::part::Parts;
use crate::pods::{HostPort, PodRules, PodSelectorId};
use crate::reason::Reason;
use crate::scored::Scored;
use crate::storage::{VolumeGrant, VolumeUse};

/// Amounts of what a node counts. For a node: what is allocatable; for a request: what is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resources {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    /// Memory in bytes.
    pub memory_bytes: i64,
    /// Local ephemeral storage in bytes.
    pub ephemeral_bytes: i64,
    /// Pods: on a node how many it takes, in a request 1.
    pub pods: i64,
    /// Extended resources, hugepages and every other name that kube-scheduler calls scalar, in
    /// whole units, sorted by name, no name twice.
    pub scalars: Box<[(Name, i64)]>,
}

/// What a taint does. `PreferNoSchedule` repels only in the order of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// New pods stay away unless they tolerate it.
    NoSchedule,
    /// As `NoSchedule`, and running pods are evicted by others.
    NoExecute,
    /// New pods go elsewhere where they can.
    PreferNoSchedule,
}

/// A taint of a node or a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Key.
    pub key: Name,
    /// Value, possibly empty.
    pub value: Name,
    /// Effect.
    pub effect: Effect,
}

/// What tolerates a taint (core/v1 `Toleration`, resource/v1 `DeviceToleration`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// The taint's key; none matches every key.
    pub key: Option<Name>,
    /// The value that `Equal` asks for; none is the operator `Exists`.
    pub equals: Option<Name>,
    /// The effect; none matches every effect.
    pub effect: Option<Effect>,
}

impl Toleration {
    /// Whether `taint` is tolerated.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|e| e == taint.effect)
            && self.key.as_ref().is_none_or(|k| *k == taint.key)
            && self.equals.as_ref().is_none_or(|v| *v == taint.value)
    }
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// `status.allocatable`.
    pub allocatable: Resources,
    /// Of extended resources, what is there and not allocatable, for its device plugin calls it
    /// unhealthy (`status.capacity` less allocatable); above zero, sorted by name, no name twice.
    pub unhealthy: Box<[(Name, i64)]>,
    /// Labels, sorted by key.
    pub labels: Box<[(Name, Name)]>,
    /// Taints, in the node's order.
    pub taints: Box<[Taint]>,
    /// `spec.unschedulable`: cordoned.
    pub unschedulable: bool,
    /// `status.declaredFeatures`, sorted.
    pub features: Box<[Name]>,
    /// Images that are there, with their sizes in bytes, sorted by name, no name twice; none where
    /// nodes are not scored.
    pub images: Box<[(Name, i64)]>,
}

/// One requirement of a node selector term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeRequirement {
    /// The label's value is one of these (sorted).
    In(Name, Box<[Name]>),
    /// The label is absent or its value is none of these (sorted).
    NotIn(Name, Box<[Name]>),
    /// The label is there.
    Exists(Name),
    /// The label is absent.
    DoesNotExist(Name),
    /// The label reads as a base-10 integer above this.
    Gt(Name, i64),
    /// The label reads as a base-10 integer below this.
    Lt(Name, i64),
    /// `matchFields`: the node's name is this.
    NameIs(Name),
    /// `matchFields`: the node's name is not this.
    NameIsNot(Name),
    /// A requirement that the API would refuse or that can't be read: never true.
    Never,
}

impl NodeRequirement {
    /// The node that it asks for by name.
    pub fn node_name(&self) -> Option<&Name> {
        match self {
            Self::NameIs(name) => Some(name),
            Self::In(..)
            | Self::NotIn(..)
            | Self::Exists(_)
            | Self::DoesNotExist(_)
            | Self::Gt(..)
            | Self::Lt(..)
            | Self::NameIsNot(_)
            | Self::Never => None,
        }
    }
}

/// One term: all its requirements. An empty term matches nothing.
pub type NodeTerm = Box<[NodeRequirement]>;

/// Which nodes a pod may go to, and which it would rather.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeRules {
    /// `spec.nodeName` of a pod that names its node itself.
    pub name: Option<Name>,
    /// `spec.nodeSelector`: all of these labels.
    pub selector: Box<[(Name, Name)]>,
    /// Required node affinity: any of the terms; none is no condition, `Some` of an empty list
    /// matches nothing.
    pub required: Option<Box<[NodeTerm]>>,
    /// Preferred node affinity: weight (1..100) and term.
    pub preferred: Box<[(i32, NodeTerm)]>,
    /// Tolerations.
    pub tolerations: Box<[Toleration]>,
}

/// Which nodes can use a device or a slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// One node.
    Node(NodeKey),
    /// Every node.
    All,
    /// The nodes that match the one term (`nodeSelector` of slices has exactly one).
    Selector(NodeTerm),
    /// Each device says it itself (`perDeviceNodeSelection`).
    PerDevice,
    /// A selection of a kind that we don't know: no node.
    Unknown,
}

/// A pool of devices: all of its slices that are on the board, older generations too, for whether
/// a pool is whole is a question of each node (reference: structured allocator, GatherPools).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Its slices, sorted by object name: the order in which upstream's allocator goes through
    /// their devices.
    pub slices: Vec<Slice>,
}

/// A ResourceSlice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Name of the object.
    pub name: Name,
    /// `pool.generation`: only the highest of a pool counts.
    pub generation: i64,
    /// `pool.resourceSliceCount` at this generation.
    pub slice_count: i64,
    /// Who can use its devices.
    pub reach: Reach,
    /// Its devices, in the slice's order.
    pub devices: Box<[Device]>,
    /// Counter sets that the pool's devices consume from.
    pub counters: Box<[CounterSet]>,
    /// Whether its devices can be given out, as far as the node goes.
    pub granting: Granting,
    /// What it publishes can't be read by this Kubernetes: it counts only in that a newer generation
    /// of it makes older ones obsolete.
    pub opaque: bool,
}

/// Whether the devices of a slice can be given out on a node (`skipNodeOperations`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Granting {
    /// On every node that reaches them.
    #[default]
    Always,
    /// On nodes that declare this feature.
    IfDeclared(Name),
    /// On none, for want of this feature gate.
    Never(Name),
}

/// What a feature gate that is off makes of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Nothing.
    #[default]
    Open,
    /// It is selected as others are and never given out, for want of this gate.
    Barred(Name),
    /// No request selects it, for want of this gate.
    Hidden(Name),
}

/// A device. What it shares with its equals stands in `traits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name in the pool.
    pub name: Name,
    /// All else.
    pub traits: Shared<Traits>,
}

/// What devices of one kind have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Traits {
    /// What live selectors can tell about it.
    pub profile: ProfileId,
    /// The attributes that a live constraint reads, by fully qualified name, sorted.
    pub attributes: Box<[(Name, AttributeValue)]>,
    /// Capacities by name as the device spells them, sorted; amounts in billionths of a unit.
    pub capacity: Box<[Capacity]>,
    /// What it takes from the pool's counter sets when allocated.
    pub counters: Box<[CounterUse]>,
    /// Taints, those of DeviceTaintRules included.
    pub taints: Box<[Taint]>,
    /// Where it sits and whether it is a network card, as its own attributes say.
    pub place: Place,
    /// `allowMultipleAllocations`.
    pub shareable: bool,
    /// `bindsToNode`.
    pub binds_to_node: bool,
    /// `bindingConditions` and `bindingFailureConditions`.
    pub binding: Option<Box<Binding>>,
    /// Its own node selection, where the slice says `perDeviceNodeSelection`.
    pub reach: Option<Reach>,
    /// What feature gates make of it.
    pub access: Access,
    /// `compatibilityGroups` by counter set: only devices with a group in common, or none of which
    /// has any, are in use of one set together. Sets without groups are left out.
    pub groups: Box<[(Name, Box<[Name]>)]>,
}

/// What a device's attributes say of where it sits. Only nearness looks at it: names are made equal
/// in spelling, which constraints don't do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// PCIe root complex (`resource.kubernetes.io/pcieRoot`).
    pub root: Option<Name>,
    /// NUMA node (`resource.kubernetes.io/numaNode`), where it is one.
    pub numa: Option<Name>,
    /// It is a network card (NIC).
    pub nic: bool,
}

/// The typed value of an attribute, as constraints compare it: type and value. An attribute that
/// has no value of a known kind is `Unset`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttributeValue {
    /// `int`.
    Int(i64),
    /// `bool`.
    Bool(bool),
    /// `string`.
    String(Name),
    /// `version`, compared as text.
    Version(Name),
    /// A list of values of one kind.
    List(Box<[AttributeValue]>),
    /// No value.
    Unset,
}

/// A capacity of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Capacity {
    /// Name as the device spells it.
    pub name: Name,
    /// Amount, in billionths of a unit.
    pub nanos: i128,
    /// How requests on a shareable device are rounded.
    pub policy: Option<Box<CapacityPolicy>>,
}

/// `requestPolicy` of a capacity; amounts in billionths of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CapacityPolicy {
    /// Taken where the request says nothing.
    pub default: Option<i128>,
    /// The only amounts there are, ascending.
    pub valid: Box<[i128]>,
    /// Minimum, maximum and step.
    pub range: Option<(Option<i128>, Option<i128>, Option<i128>)>,
    /// Steps are counted exactly (`DRAFractionalCapacityRange`) rather than in whole units.
    pub exact: bool,
}

/// A counter set of a pool; amounts in billionths of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CounterSet {
    /// Name.
    pub name: Name,
    /// Counters, sorted by name.
    pub counters: Box<[(Name, i128)]>,
}

/// What one device takes from one counter set; amounts in billionths of a unit.
pub type CounterUse = CounterSet;

/// Conditions that a driver reports before a pod may be bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Binding {
    /// Must become true.
    pub conditions: Box<[Name]>,
    /// Any of them true: the allocation has failed.
    pub failures: Box<[Name]>,
}

/// How good the path between two devices is, best first. The letters are those of
/// `nvidia-smi topo -m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkClass {
    /// NVLink, direct or through NVSwitch.
    Nvlink,
    /// One PCIe switch (PIX).
    Switch,
    /// Several PCIe switches, no host bridge (PXB).
    Switches,
    /// A PCIe host bridge (PHB).
    HostBridge,
    /// Several host bridges of one NUMA node (NODE).
    Numa,
    /// Across NUMA nodes (SYS).
    System,
    /// Nothing is known.
    Unknown,
}

/// A path between two devices: of two the better one is the smaller, by class and then by bandwidth.
/// A path whose bandwidth is unknown comes after those of its class where it is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(u16);

/// Bits of a [`Link`] that hold the bandwidth, counted down.
const GBPS_BITS: u32 = 13;
/// The greatest bandwidth that a [`Link`] tells, in 10^9 bytes a second.
const GBPS_MAX: u16 = (1 << GBPS_BITS) - 1;

impl Link {
    /// Better than all others: where no link needs to be used.
    pub const IDEAL: Self = Self(0);
    /// A path that nothing is known of.
    pub const UNKNOWN: Self = Self::new(LinkClass::Unknown, 0);

    /// A path of a class, with its bandwidth each way in 10^9 bytes a second; 0 is unknown.
    pub const fn new(class: LinkClass, gbps: u16) -> Self {
        let gbps = if gbps < GBPS_MAX { gbps } else { GBPS_MAX - 1 };
        Self((class as u16) << GBPS_BITS | (GBPS_MAX - gbps))
    }

    /// Its class.
    pub fn class(self) -> LinkClass {
        match self.0 >> GBPS_BITS {
            0 => LinkClass::Nvlink,
            1 => LinkClass::Switch,
            2 => LinkClass::Switches,
            3 => LinkClass::HostBridge,
            4 => LinkClass::Numa,
            5 => LinkClass::System,
            _ => LinkClass::Unknown,
        }
    }

    /// Its bandwidth each way in 10^9 bytes a second, where it is known.
    pub fn gbps(self) -> Option<u16> {
        let gbps = GBPS_MAX - (self.0 & GBPS_MAX);
        (gbps > 0 && self != Self::IDEAL).then_some(gbps)
    }
}

impl From<LinkClass> for Link {
    fn from(class: LinkClass) -> Self {
        Self::new(class, 0)
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.gbps() {
            _ if *self == Self::IDEAL => f.write_str("Ideal"),
            Some(gbps) => write!(f, "{:?} {gbps} GB/s", self.class()),
            None => write!(f, "{:?}", self.class()),
        }
    }
}

/// A level of nearness inside a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// NVLink island: every pair linked directly or by one switch fabric.
    Island,
    /// PCIe switch.
    Switch,
    /// PCIe root complex.
    Root,
    /// NUMA node.
    Numa,
    /// Rail: position of a NIC in the fabric.
    Rail,
}

impl Level {
    /// All levels, nearest first.
    pub const ALL: [Self; 5] = [Self::Island, Self::Switch, Self::Root, Self::Numa, Self::Rail];
}

/// The links of one node, from `NodeTopology`: an overlay over its slices. Selectors and
/// constraints never see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The members, in the object's order.
    pub members: Vec<LinkMember>,
    /// Paths between members `a < b`. Of a pair that is not named its domains tell: NVLink on one
    /// island, else no worse than one switch, one root, one NUMA node; else nothing.
    pub pairs: Vec<(u16, u16, Link)>,
    /// Bandwidth of the islands, by number, in 10^9 bytes a second into and out of a member; 0 is
    /// unknown.
    pub island_gbps: Vec<u16>,
    /// Names of the domains of PCIe roots and NUMA nodes, spelled as in [`Place`], with their
    /// numbers: by them a device that is no member finds its domain.
    pub names: Vec<(Level, Name, u16)>,
    /// The bandwidths of pairs are numbers of NVLinks of unknown speed: good for comparing them with
    /// each other, and for nothing else.
    pub nominal: bool,
}

/// Numbers of domains from here on are of domains that nobody names: that two of them differ does not
/// say that they are apart.
pub const UNNAMED_DOMAIN: u16 = 1 << 15;

/// A device in [`Links`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkMember {
    /// The name that the object gives it, for output.
    pub label: Name,
    /// The device of a slice that it is, where lowering found one.
    pub device: Option<DeviceKey>,
    /// A GPU (or other accelerator): only these have islands.
    pub accelerator: bool,
    /// A network card.
    pub nic: bool,
    /// Its domain at each level of [`Level::ALL`]: equal numbers are one domain; none is unknown.
    /// Numbers from [`UNNAMED_DOMAIN`] on are of domains without a name.
    pub domains: [Option<u16>; 5],
}

/// One tree of the topology forest. Which domains a node is in is a fact of the node, so that one
/// node's move is one change. (Nothing fills it yet.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Names of the levels, widest first (a node label key, for instance).
    pub levels: Vec<Name>,
}

/// A node's domain at each level of a tree, widest first; none where it is in no domain.
pub type Domains = Box<[Option<Name>]>;

/// A queue. (Nothing fills it yet: admission by quota comes on top.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Whether it admits nothing for now.
    pub stopped: bool,
}

/// What is decided as one: roles times counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The queue that must admit it.
    pub queue: Option<QueueKey>,
    /// Priority, as of its PriorityClass.
    pub priority: i32,
    /// Since when it waits: creation, or its place in the input where it is not created yet.
    pub since: Since,
    /// The workload that it is part of.
    pub parent: Option<GroupKey>,
    /// Roles.
    pub roles: Vec<Role>,
    /// How much of it must be placed at once.
    pub minimum: Minimum,
    /// Parts beyond the roles' minima, each of which is placed whole or not at all.
    pub parts: Parts,
    /// Levels of topology that it is kept within.
    pub rules: Vec<LevelRule>,
    /// Claims that all its members share.
    pub shared: Vec<ClaimUse>,
    /// How long it runs at most, in milliseconds.
    pub run_max_millis: Option<i64>,
    /// Whether it may be ended for others, and how.
    pub disruption: Disruption,
    /// What keeps it from being tried at all.
    pub gate: Gate,
}

/// A moment in the queue: what exists goes before what does not, older before younger, then the
/// input's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Since {
    /// Created then.
    Created(Timestamp),
    /// Not created yet: its place in the input.
    Input(u64),
}

/// How much of a group must be placed at once. What is a gang is declared, never guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Minimum {
    /// Each seat is decided alone: a lone pod, a plain Job, a Deployment.
    Each,
    /// All or nothing: the sum of the roles' minima.
    Gang,
}

/// One kind of member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Name, for output; empty for a lone pod.
    pub name: Name,
    /// What each member asks for.
    pub request: Shared<Request>,
    /// Fewest members.
    pub min: u32,
    /// Most members.
    pub max: u32,
    /// Members per segment that stay together.
    pub segment: Option<u32>,
    /// Rank of its first member.
    pub first_rank: u32,
    /// What keeps some of those that are missing from being made at all; none where all can be.
    pub admits: Option<Box<Admits>>,
}

/// How many of a role's missing members are admitted, and what keeps the others out (a
/// ResourceQuota).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admits {
    /// So many of the missing, the first ones.
    pub most: u32,
    /// Why the next is not.
    pub fault: Fault,
}

/// A rule about topology: members that are to be in one domain of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelRule {
    /// The tree.
    pub topology: TopologyKey,
    /// Index of the level in the tree, 0 the widest.
    pub level: u16,
    /// Required, or wished.
    pub required: bool,
    /// The roles whose members it is about, by index; none is all of them.
    pub roles: Box<[u16]>,
    /// Members of consecutive index, so many at a time, are together, rather than all.
    pub segment: Option<u32>,
}

/// Whether a group may be ended for others. (Nothing reads it yet.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disruption {
    /// Member by member.
    #[default]
    Single,
    /// Only whole.
    Whole,
    /// Never.
    Never,
}

/// What keeps a group from being tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// Nothing.
    #[default]
    Open,
    /// Scheduling gates, by name.
    Gated(Box<[Name]>),
}

/// A pod, as an instance of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its group.
    pub group: GroupKey,
    /// Index into the group's roles.
    pub role: u16,
    /// Its index in the role, where it has one.
    pub index: Option<u32>,
    /// Where it is in its life.
    pub phase: Phase,
    /// For each claim of its role's request, the ResourceClaim made for this pod; `None` where it
    /// is not made yet or the request names the claim itself. After them the claim that was made
    /// for its extended resources, where there is one.
    pub claims: Box<[Option<ClaimKey>]>,
    /// When it is expected to end.
    pub expected_end: Option<Timestamp>,
    /// `status.nominatedNodeName` of a pod that waits: that node is tried first, and room for the pod
    /// is kept there from those that are of no higher priority.
    pub nominated: Option<NodeKey>,
}

/// Where a pod is in its life. A pod that has ended is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not bound.
    Pending,
    /// Bound to the node: in its ledger.
    Bound(NodeKey),
    /// Bound and being deleted: in the ledger until it is gone, which is expected then.
    Terminating(NodeKey, Timestamp),
}

impl Phase {
    /// Whether the pod still has to be placed.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Pending)
    }
}

/// What a pod asks for. Equal requests are one shape and are decided from one column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// Resources, extended ones included.
    pub resources: Resources,
    /// Which nodes.
    pub node: NodeRules,
    /// Claims on devices, in the pod's order.
    pub claims: Box<[ClaimUse]>,
    /// Extended resources among [`resources`](Self::resources) that a DeviceClass serves, sorted by
    /// name: each node counts them, or gives devices by one more claim.
    pub extended: Box<[Extended]>,
    /// Nearness wished for over all of the pod's devices (`phalanx.dev/align` on the pod).
    pub align: Box<[Align]>,
    /// Ports of the node that it takes.
    pub ports: Box<[HostPort]>,
    /// Of the pods that live rules mean: the numbers by which this pod is meant, ascending. None
    /// where no rule sees it, so that requests stay equal.
    pub matched: Box<[PodSelectorId]>,
    /// What it asks of the pods around it.
    pub near: Option<Shared<PodRules>>,
    /// What it counts as where kube-scheduler scores nodes.
    pub padded: Padded,
    /// What else kube-scheduler's scores look at; none where nodes are not scored.
    pub scored: Option<Shared<Scored>>,
    /// The volumes that decide where it can be, in the pod's order.
    pub volumes: Box<[VolumeUse]>,
    /// Features that the node must declare (`status.declaredFeatures`), sorted.
    pub features: Box<[Name]>,
    /// What makes it impossible before any node is looked at: an object that does not exist, a
    /// selector that does not compile.
    pub fault: Option<Fault>,
}

/// CPU (in thousandths) and memory (in bytes) of a pod whose containers count as if they asked a
/// little where they ask nothing (kube-scheduler's non-zero requests).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Padded {
    /// While it is placed: requests of the pod as a whole do not count.
    pub asked: (i64, i64),
    /// On its node.
    pub held: (i64, i64),
}

impl Request {
    /// The extended resources that a node gives devices for, by index: those of which it has nothing
    /// allocatable (kube-scheduler's `shouldDelegateResourceToDRA`).
    pub fn served(&self, allocatable: impl Fn(&Name) -> i64) -> Vec<u16> {
        let gives = |(_, asked): &(usize, &Extended)| allocatable(&asked.resource) <= 0;
        self.extended.iter().enumerate().filter(gives).map(|(at, _)| at as u16).collect()
    }

    /// Whether it uses claims that others may use as well.
    pub(crate) fn shares_claims(&self) -> bool {
        self.claims.iter().any(|claim| claim.shared().is_some())
    }

    /// What the one claim asks that a node makes for these of the extended resources. In grants it
    /// stands after the pod's own claims. Its requests are in order of name, as kube-scheduler sorts
    /// them.
    pub fn claim_for(&self, served: &[u16]) -> ClaimSpec {
        let of = || served.iter().filter_map(|at| self.extended.get(usize::from(*at)));
        let mut requests: Vec<DeviceRequest> =
            of().flat_map(|asked| &asked.requests).cloned().collect();
        requests.sort_by(|a, b| a.name.cmp(&b.name));
        ClaimSpec {
            requests: requests.into(),
            constraints: Box::default(),
            align: Box::default(),
            fault: of().find_map(|asked| asked.fault.clone()),
        }
    }
}

/// An extended resource that a DeviceClass serves (KEP-5004).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Extended {
    /// Its name.
    pub resource: Name,
    /// The requests that stand for it in a claim, by container.
    pub requests: Box<[DeviceRequest]>,
    /// What is wrong with them whatever the devices: a class' selector that does not compile.
    pub fault: Option<Fault>,
}

/// Something wrong with a request or a claim that no node can mend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The reason, of scope object.
    pub reason: Reason,
    /// What it is about: the missing object's name, the request's name.
    pub subject: Name,
    /// More words, such as a compile error.
    pub detail: Name,
}

/// How a pod uses a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimUse {
    /// A claim of its own, from a template: allocated for it alone.
    Own(Shared<ClaimSpec>),
    /// A claim that exists by name, perhaps shared with others.
    Named(ClaimKey),
    /// A claim of its group (`spec.resourceClaims` of a PodGroup, KEP-5729), by its name or the name that
    /// it is to have: allocated once, and reserved for the group rather than for each of its pods.
    PerGroup(ClaimKey),
}

impl ClaimUse {
    /// The claim that is used by name; none where it is the pod's own.
    pub fn shared(&self) -> Option<&ClaimKey> {
        match self {
            Self::Own(_) => None,
            Self::Named(key) | Self::PerGroup(key) => Some(key),
        }
    }
}

/// What a claim asks for (`spec.devices`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimSpec {
    /// Requests, in order.
    pub requests: Box<[DeviceRequest]>,
    /// Constraints, in order.
    pub constraints: Box<[Constraint]>,
    /// Nearness wished for inside this claim (`phalanx.dev/align` on claim or template).
    pub align: Box<[Align]>,
    /// What is wrong with it whatever the devices.
    pub fault: Option<Fault>,
}

/// A request of a claim: one or more alternatives, tried in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceRequest {
    /// Name.
    pub name: Name,
    /// `exactly` has one, without a name; `firstAvailable` has up to eight named ones.
    pub alternatives: Box<[Alternative]>,
}

/// `exactly`, or one subrequest of `firstAvailable`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alternative {
    /// Name of the subrequest.
    pub name: Option<Name>,
    /// Name of the DeviceClass.
    pub class: Name,
    /// Selectors: the class's, then the request's. All must say yes.
    pub selectors: Box<[SelectorId]>,
    /// How many of [`selectors`](Self::selectors) are the class's.
    pub class_selectors: u16,
    /// How many devices.
    pub amount: Amount,
    /// `adminAccess`: devices are looked at, not taken.
    pub admin: bool,
    /// Which device taints are tolerated.
    pub tolerations: Box<[Toleration]>,
    /// `capacity.requests`: name and amount in billionths of a unit, sorted by name.
    pub capacity: Box<[(Name, i128)]>,
    /// `derivedAttributes`, by fully qualified name: the expression whose value stands for the
    /// device's attribute in the constraints of the claim.
    pub derived: Box<[(Name, SelectorId)]>,
}

impl Alternative {
    /// The expression that stands for an attribute, where one does.
    pub fn derives(&self, attribute: &str) -> Option<SelectorId> {
        self.derived.iter().find(|(name, _)| name.as_str() == attribute).map(|(_, id)| *id)
    }
}

/// How many devices a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// Exactly so many.
    Count(u32),
    /// All that match, and every one of them free.
    All,
}

/// A constraint over the devices of some requests of one claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Constraint {
    /// Fully qualified name of the attribute.
    pub attribute: Name,
    /// `distinctAttribute` rather than `matchAttribute`.
    pub distinct: bool,
    /// The requests (`main`) or subrequests (`main/sub`) it covers; empty is all.
    pub requests: Box<[Name]>,
}

/// A wish for nearness that only we can grant (`phalanx.dev/align`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Align {
    /// The level.
    pub level: Level,
    /// Required, or preferred.
    pub required: bool,
}

/// A ResourceClaim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What it asks for.
    pub spec: Shared<ClaimSpec>,
    /// What it holds.
    pub held: Option<Allocation>,
    /// Who it is reserved for (`status.reservedFor`).
    pub users: Vec<User>,
    /// What makes its allocation of no use, now or from a time on: a device that reports that it
    /// can't be bound, or does not report in time that it can.
    pub failed: Option<BindingFailure>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// Why an allocation is of no use (kube-scheduler's `isClaimReadyForBinding` and `isClaimTimeout`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingFailure {
    /// The device of the claim's allocation.
    pub device: DeviceKey,
    /// The binding failure condition that is true; or where [`after`](Self::after) is a time, the
    /// binding condition that is not.
    pub condition: Name,
    /// The end of the wait for the condition: after it the allocation has failed.
    pub after: Option<Timestamp>,
}

impl BindingFailure {
    /// Whether it holds at this time.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.after.is_none_or(|end| end < now)
    }
}

/// Who uses a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum User {
    /// A pod.
    Pod(PodKey),
    /// Something else: a PodGroup, or a kind that we don't know.
    Other(Name),
}

/// An allocation: the devices that a claim holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The devices.
    pub devices: Box<[HeldDevice]>,
    /// The nodes from which it can be used; none is every node.
    pub nodes: Option<Box<[NodeTerm]>>,
    /// How early in its lists the alternatives stand that it was given: 8 for each that is the first,
    /// and less for later ones.
    pub early: u32,
}

/// One device of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldDevice {
    /// The device, whether or not a slice has it now.
    pub device: DeviceKey,
    /// Only looked at.
    pub admin: bool,
    /// One share of it, rather than all: `shareID` was set.
    pub share: bool,
    /// Capacity consumed by the share, in billionths of a unit.
    pub consumed: Box<[(Name, i128)]>,
    /// What it takes of its pool's counters, where no slice of the newest generation says so any
    /// more: as it was when a slice last did.
    pub consumes: Consumption,
}

/// What a device takes of its pool's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consumption {
    /// Amounts, set by set.
    pub counters: Box<[CounterUse]>,
    /// Its compatibility groups, set by set.
    pub groups: Box<[(Name, Box<[Name]>)]>,
}

impl Consumption {
    /// The compatibility groups with which it consumes from a set.
    pub(crate) fn groups(&self, set: &Name) -> &[Name] {
        self.groups.iter().find(|(name, _)| name == set).map_or(&[], |(_, groups)| groups)
    }
}

impl HeldDevice {
    /// What a claim holds by a grant.
    pub(crate) fn granted(grant: &Grant) -> Self {
        Self {
            device: grant.device.clone(),
            admin: grant.admin,
            share: grant.share.is_some(),
            consumed: grant.share.clone().unwrap_or_default(),
            consumes: Consumption::default(),
        }
    }
}

/// A place promised to a group. (Nothing fills it yet.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The seats.
    pub seats: Vec<Seat>,
    /// Pods whose end it waits for.
    pub awaits: Vec<PodKey>,
    /// Not before.
    pub start: Timestamp,
    /// Void after.
    pub expires: Timestamp,
}

/// One member's place: a node, and the devices on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Index into the group's roles.
    pub role: u16,
    /// Index of the member in its role.
    pub index: u32,
    /// The pod that sits here, where it exists.
    pub pod: Option<PodKey>,
    /// The node.
    pub node: NodeKey,
    /// Devices granted, in the order of the request's claims and their requests. Claims that were
    /// allocated before are not repeated.
    pub grants: Vec<Grant>,
    /// What becomes of the pod's claims on volumes that waited for this, in the order of the
    /// request's volumes.
    pub volumes: Vec<VolumeGrant>,
}

/// One device granted to one request of one claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// Index into the request's claims.
    pub claim: u16,
    /// Index into the claim's requests.
    pub request: u16,
    /// Index into the request's alternatives.
    pub alternative: u16,
    /// The device.
    pub device: DeviceKey,
    /// Only looked at.
    pub admin: bool,
    /// A share of it, with the capacity consumed (billionths of a unit); none is the whole device.
    pub share: Option<Box<[(Name, i128)]>>,
}
