//! What is kept of each object: compact contributions, from which everything is lowered again when
//! something that they refer to changes. Full objects are never kept.

use std::sync::Arc;

use phalanx_engine::{
    Access, Align, Allocation, Binding, BindingFailure, Capacity, Consumption, CounterSet, Fault,
    Granting, GroupKey, HostPort, Links, Name, Node, NodeKey, NodeRules, Padded, Place, PodKey,
    PodRules, PoolKey, Reach, Resources, Shared, Since, Taint, Timestamp, User,
};
use phalanx_objects::core::PreemptionPolicy;
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::scheduling::Scheduling;

use super::admission::Draft;
use super::claim::SpecId;
use super::intern::{AttributeName, Value, Written};
use super::meant::{Labels, PodLabels};
use super::volumes::PodVolume;
use super::workload::Marks;
use crate::finding::Source;

/// A UID: sixteen bytes where it is one as Kubernetes writes it, else its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Uid {
    /// As RFC 4122 writes it, in lower case.
    Bits(u128),
    /// Anything else; empty if there is none.
    Text(Box<str>),
}

impl Uid {
    pub(crate) fn new(text: &str) -> Self {
        if text.is_empty() {
            return Self::Text(Box::default());
        }
        let bits = u128::from_str_radix(&text.replace('-', ""), 16).ok();
        match bits.map(Self::Bits) {
            Some(uid) if uid.to_string() == text => uid,
            Some(_) | None => Self::Text(text.into()),
        }
    }

    /// Whether both are known and differ: then they are two objects of one name.
    pub(crate) fn differs(&self, other: &Self) -> bool {
        !self.is_none() && !other.is_none() && self != other
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
}

impl std::fmt::Display for Uid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Bits(bits) => {
                let hex = format!("{bits:032x}");
                let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
                f.write_str(&parts.join("-"))
            }
        }
    }
}

/// What is kept of every object's metadata.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// `resourceVersion`, where it reads as a number.
    pub(crate) version: Option<u64>,
    pub(crate) created: Option<Timestamp>,
    pub(crate) uid: Uid,
    pub(crate) source: Source,
    /// The name is ours: the object leaves it to the API server (`generateName`).
    pub(crate) named_here: bool,
}

impl Header {
    pub(crate) fn new(meta: &ObjectMeta, source: Source) -> Self {
        Self {
            version: meta.resource_version.parse().ok(),
            created: meta.creation_timestamp.map(timestamp),
            uid: Uid::new(&meta.uid),
            source,
            named_here: !meta.generate_name.is_empty() && meta.uid.is_empty(),
        }
    }

    /// Whether this is the later state of the object: by the API server's numbers where both have
    /// one, else by the place in the input.
    pub(crate) fn supersedes(&self, old: &Self) -> bool {
        match (self.version, old.version) {
            (Some(new), Some(old)) if new != old => new > old,
            (Some(_) | None, Some(_) | None) => self.source.ordinal >= old.source.ordinal,
        }
    }

    /// Whether the API server has made the object.
    pub(crate) fn is_made(&self) -> bool {
        self.created.is_some() || !self.uid.is_none()
    }

    /// Since when it waits.
    pub(crate) fn since(&self) -> Since {
        self.created.map_or(Since::Input(self.source.ordinal), Since::Created)
    }
}

/// A time stamp in the engine's unit.
pub(crate) fn timestamp(at: jiff::Timestamp) -> Timestamp {
    Timestamp(at.as_millisecond())
}

/// How one of a pod's claims is named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PodClaimSource {
    /// A claim in the pod's namespace.
    Claim(Name),
    /// A template in the pod's namespace.
    Template(Name),
    /// Neither, or both: the API refuses it.
    Invalid,
}

/// One of a pod's claims.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PodClaim {
    /// Name in the pod.
    pub(crate) name: Name,
    pub(crate) source: PodClaimSource,
}

/// What a pod asks of an extended resource, as the requests of a claim: name and count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ExtendedAsk {
    pub(crate) resource: Name,
    pub(crate) requests: Box<[(Name, i64)]>,
}

/// What pods of one make have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PodShape {
    pub(crate) resources: Resources,
    /// What it counts as where kube-scheduler scores nodes.
    pub(crate) padded: Padded,
    pub(crate) node: NodeRules,
    pub(crate) claims: Box<[PodClaim]>,
    /// Of what it waits for, the extended resources that devices might serve, by name.
    pub(crate) extended: Box<[ExtendedAsk]>,
    pub(crate) align: Box<[Align]>,
    pub(crate) gates: Box<[Name]>,
    pub(crate) ports: Box<[HostPort]>,
    /// What it asks of the pods around it.
    pub(crate) near: Option<Shared<PodRules>>,
    /// The volumes that decide where it can be.
    pub(crate) volumes: Box<[PodVolume]>,
    /// Features that its node must declare, sorted.
    pub(crate) features: Box<[Name]>,
    /// Its images, each as often as it is named; none where nodes are not scored.
    pub(crate) images: Box<[Name]>,
    /// What is wrong with the pod itself.
    pub(crate) fault: Option<Fault>,
}

/// Where a pod's priority comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PriorityFrom {
    /// The pod has it.
    Value(i32),
    /// A PriorityClass.
    Class(Name),
    /// The class that is the default, if there is one.
    Default,
}

/// Where in its life a pod is, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Ours to place.
    Pending,
    /// Another scheduler's to place: neither decided nor counted.
    Foreign,
    /// Being deleted before it was placed: kube-scheduler passes it over.
    Leaving,
    /// On a node.
    Bound(NodeKey),
    /// On a node and being deleted.
    Terminating(NodeKey, Timestamp),
    /// Ended: holds nothing.
    Ended,
}

impl Life {
    /// The node that it is on.
    pub(crate) fn node(&self) -> Option<&NodeKey> {
        match self {
            Self::Bound(node) | Self::Terminating(node, _) => Some(node),
            Self::Pending | Self::Foreign | Self::Leaving | Self::Ended => None,
        }
    }

    /// Whether the engine sees the pod.
    pub(crate) fn is_seen(&self) -> bool {
        match self {
            Self::Pending | Self::Bound(_) | Self::Terminating(..) => true,
            Self::Foreign | Self::Leaving | Self::Ended => false,
        }
    }
}

/// What a pod says of the workload that it is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The workloads that it may be part of, the nearest first, with their UIDs where it says them.
    pub(crate) chain: Box<[(GroupKey, Uid)]>,
    /// Its role, as the controller spells it.
    pub(crate) role: Name,
    /// The number of the part of its role that it is in.
    pub(crate) outer: Option<u32>,
    /// Its number in that part, or in its role.
    pub(crate) inner: Option<u32>,
    /// Which attempt of the workload it is of.
    pub(crate) attempt: u32,
}

/// A pod.
#[derive(Clone, Debug)]
pub(crate) struct PodRecord {
    pub(crate) header: Header,
    pub(crate) shape: Shared<PodShape>,
    pub(crate) labels: Shared<PodLabels>,
    pub(crate) life: Life,
    /// The node that is promised to it while it waits.
    pub(crate) nominated: Option<NodeKey>,
    pub(crate) priority: PriorityFrom,
    pub(crate) owner: Option<Box<Owner>>,
    /// What it says itself of gang and place.
    pub(crate) marks: Option<Box<Marks>>,
    pub(crate) run_max_millis: Option<i64>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) expected_end: Option<Timestamp>,
    /// `status.resourceClaimStatuses`: name in the pod, and the claim that was made.
    pub(crate) claims_made: Box<[(Name, Option<Name>)]>,
    /// As its manifest has it, while it is not made.
    pub(crate) draft: Option<Box<Draft>>,
}

/// A namespace.
#[derive(Clone, Debug)]
pub(crate) struct NamespaceRecord {
    pub(crate) header: Header,
    pub(crate) labels: Labels,
    /// It is being deleted, and nothing new is made in it.
    pub(crate) going: bool,
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct NodeRecord {
    pub(crate) header: Header,
    pub(crate) node: Node,
}

/// Where a member of a NodeTopology is looked for among published devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) driver: Option<Name>,
    pub(crate) pool: Option<Name>,
    /// Name of the DRA device, where the object says it.
    pub(crate) device: Option<Name>,
    /// Bus address in its long form, in lower case.
    pub(crate) bus: Option<Box<str>>,
    /// UUID in lower case.
    pub(crate) uuid: Option<Box<str>>,
    /// What the object says and an attribute may contradict.
    pub(crate) numa: Option<u32>,
    pub(crate) root: Option<Name>,
    /// It is a NIC: most have no DRA driver, so that no slice publishes them.
    pub(crate) nic: bool,
}

/// A NodeTopology: its links but for the devices, which are looked up.
#[derive(Clone, Debug)]
pub(crate) struct TopologyRecord {
    pub(crate) header: Header,
    pub(crate) node: NodeKey,
    /// The links, without devices; the bandwidth of a pair only where no number of NVLinks is given.
    pub(crate) links: Links,
    /// How many NVLinks each pair has, 0 where that is not said, and the bandwidth that is given for
    /// one of them.
    pub(crate) nvlinks: Box<[u32]>,
    pub(crate) nvlink_gbps: Option<f64>,
    /// One a member.
    pub(crate) hints: Box<[Hint]>,
}

/// What a scheduler is told of groups and places.
#[derive(Clone, Debug)]
pub(crate) struct SchedulingRecord {
    pub(crate) header: Header,
    /// As it is: it is lean already, and there are few.
    pub(crate) object: Arc<Scheduling>,
    /// Its wish for nearness: of its pods, where they have none.
    pub(crate) align: super::claim::Wish,
}

/// A ResourceClaim.
#[derive(Clone, Debug)]
pub(crate) struct ClaimRecord {
    pub(crate) header: Header,
    pub(crate) spec: SpecId,
    pub(crate) held: Option<Allocation>,
    /// What one of its devices reports that makes the allocation of no use.
    pub(crate) failed: Option<BindingFailure>,
    /// Who it is reserved for, with their UIDs.
    pub(crate) users: Box<[(User, Uid)]>,
    pub(crate) deleting: bool,
    /// The pod that it was made for, by its controller reference.
    pub(crate) owner: Option<(PodKey, Uid)>,
    /// Name of the claim in that pod.
    pub(crate) pod_claim: Option<Name>,
    /// It was made for the pod's extended resources.
    pub(crate) extended: bool,
}

/// A ResourceClaimTemplate.
#[derive(Clone, Debug)]
pub(crate) struct TemplateRecord {
    pub(crate) header: Header,
    pub(crate) spec: SpecId,
}

/// A PriorityClass.
#[derive(Clone, Debug)]
pub(crate) struct PriorityRecord {
    pub(crate) header: Header,
    pub(crate) value: i32,
    pub(crate) global_default: bool,
    pub(crate) preemption_policy: PreemptionPolicy,
}

/// A DeviceTaintRule; none of the three named matches every device.
#[derive(Clone, Debug)]
pub(crate) struct TaintRuleRecord {
    pub(crate) header: Header,
    /// No selector: no device.
    pub(crate) selects: bool,
    pub(crate) driver: Option<Name>,
    pub(crate) pool: Option<Name>,
    pub(crate) device: Option<Name>,
    /// None where it has no effect.
    pub(crate) taint: Option<Taint>,
}

impl TaintRuleRecord {
    pub(crate) fn may_touch(&self, pool: &PoolKey) -> bool {
        self.selects
            && self.driver.as_ref().is_none_or(|driver| *driver == pool.driver)
            && self.pool.as_ref().is_none_or(|name| *name == pool.pool)
    }
}

/// What devices of one make have in common, attributes aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct DeviceKind {
    /// Where it sits.
    pub(crate) place: Place,
    pub(crate) capacity: Box<[Capacity]>,
    /// The same amounts as written, for selectors and for output.
    pub(crate) written: Box<[Written]>,
    pub(crate) counters: Box<[CounterSet]>,
    pub(crate) taints: Box<[Taint]>,
    pub(crate) shareable: bool,
    /// `allowMultipleAllocations` as written, which selectors read.
    pub(crate) allow_multiple: Option<bool>,
    pub(crate) binds_to_node: bool,
    pub(crate) binding: Option<Box<Binding>>,
    pub(crate) reach: Option<Reach>,
    pub(crate) access: Access,
    pub(crate) groups: Box<[(Name, Box<[Name]>)]>,
}

impl DeviceKind {
    /// What it takes of its pool's counters.
    pub(crate) fn consumption(&self) -> Consumption {
        Consumption { counters: self.counters.clone(), groups: self.groups.clone() }
    }
}

/// A device as published.
#[derive(Clone, Debug)]
pub(crate) struct DeviceRecord {
    pub(crate) name: Name,
    /// By number of the fully qualified name, ascending.
    pub(crate) attributes: Box<[(AttributeName, Value)]>,
    pub(crate) kind: Shared<DeviceKind>,
}

/// A ResourceSlice.
#[derive(Clone, Debug)]
pub(crate) struct SliceRecord {
    pub(crate) header: Header,
    pub(crate) name: Name,
    pub(crate) pool: PoolKey,
    pub(crate) generation: i64,
    pub(crate) slice_count: i64,
    pub(crate) reach: Reach,
    pub(crate) devices: Box<[DeviceRecord]>,
    pub(crate) counters: Box<[CounterSet]>,
    pub(crate) granting: Granting,
    /// Left out of its pool (compatibility groups that the gate has off).
    pub(crate) opaque: bool,
}
