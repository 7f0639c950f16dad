//! What is decided: acts, verdicts and the reasons for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cost::Cost;
use crate::facts::{BindingFailure, Domains, Hold, Level, Seat, Taint};
use crate::name::{
    ClaimKey, DeviceKey, GroupKey, Name, NodeKey, PodKey, SelectorId, Timestamp, TopologyKey,
};
use crate::pods::{HostPort, PodSelectorId};
use crate::policy::Effort;
use crate::reason::{Reason, Status};

/// A count of the changes applied; equal revisions are equal states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// The answer to one call of [`decide`](crate::Engine::decide).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The state it was taken on.
    pub on: Revision,
    /// What to do, in order.
    pub acts: Vec<Act>,
    /// One verdict for each group that has something pending, in queue order.
    pub verdicts: Vec<(GroupKey, Verdict)>,
    /// What becomes of the roles of a group that find no seat beside the first such, of which the group's
    /// verdict speaks.
    pub roles: Vec<(GroupKey, u16, Verdict)>,
    /// Of groups that start whole and were placed, how broken up the trees are by which they are judged.
    pub fragmentation: Vec<(GroupKey, Vec<Fragmentation>)>,
    /// When to decide again even if nothing changes.
    pub wake_at: Option<Timestamp>,
    /// Effort spent.
    pub spent: Effort,
}

/// How broken up a tree is, as Slurm's topology/block plugin counts: over all levels the nodes of each
/// domain in which any node is in use, and the nodes in use. Less is better. A node is in use where
/// anything scarce of it is: devices, extended resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragmentation {
    /// The tree.
    pub topology: TopologyKey,
    /// Before the group is there.
    pub before: u64,
    /// With it.
    pub after: u64,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Let a group in. (Nothing emits it yet: there are no queues.)
    Admit(GroupKey),
    /// Bind these seats.
    Place(GroupKey, Vec<Seat>, Cost),
    /// Promise a place. (Nothing emits it yet.)
    Hold(GroupKey, Hold),
    /// Give up what a group holds: here an allocation that nobody uses, so that its claim can be
    /// allocated where the group fits.
    Release(GroupKey, ClaimKey),
    /// End pods of one group for another. (Nothing emits it yet.)
    Evict {
        /// Who goes.
        victim: GroupKey,
        /// Its pods.
        pods: Vec<PodKey>,
        /// For whom.
        beneficiary: GroupKey,
    },
}

/// What becomes of a pending group: exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It starts.
    Placed {
        /// What it costs.
        cost: Cost,
        /// Whether no better place exists, as far as the search could tell.
        optimal: Proof,
        /// Why not all of it, where seats are missing.
        short: Option<Short>,
    },
    /// It does not fit now and could when things change.
    Waits(Arc<Why>),
    /// It does not fit this cluster even with every other pod gone, every node and device healed,
    /// every gate lifted and every quota free.
    Refused(Arc<Why>),
    /// The search ended at its bound.
    GaveUp(Arc<Why>, Effort),
}

impl Verdict {
    /// Whether all of the group is placed.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Placed { short, .. } => short.is_none(),
            Self::Waits(_) | Self::Refused(_) | Self::GaveUp(..) => false,
        }
    }
}

/// What is missing of a group that was placed in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Short {
    /// Seats that are not placed.
    pub missing: u32,
    /// Why the next one is not.
    pub why: Arc<Why>,
    /// Parts of a group that are not there, by name ([`Part`](crate::Part)); where nothing is placed they
    /// are [`Why::parts`].
    pub parts: Box<[Name]>,
}

/// Whether a placement is the best there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Proof {
    /// All better ones were ruled out.
    Proven,
    /// Something else was asked for: the first set that fits in upstream's order of devices, the node
    /// that kube-scheduler scores highest, or the node that was promised to the pod.
    FirstFit,
    /// The search was bounded.
    Bounded,
}

/// Why a group is not placed. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The reason that decides: for what is refused, what stays in the way whatever is freed or
    /// healed; else what stands in the way on the nearest miss; or the object's own.
    pub first: Reason,
    /// Each reason with the nodes that fell for it (each node counts once, under the check that
    /// kube-scheduler names first) and an example. Sorted by reason. An object's own reason stands
    /// alone with 0 nodes.
    pub tally: Vec<Tally>,
    /// The nearest miss, where nodes were looked at: the node that passed the most.
    pub nearest: Option<NodeKey>,
    /// What stays in the way with every other pod gone and everything healed: its nodes and devices
    /// are counted in that world. Only what is refused has it.
    pub never: Option<Arc<Tally>>,
    /// Of a group that starts whole, the role of the member that all of this is about.
    pub role: Option<u16>,
    /// Of a group that runs and of which nothing more is placed, its parts that are not there, by name
    /// ([`Part`](crate::Part)).
    pub parts: Box<[Name]>,
}

/// One row of [`Why`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The reason.
    pub reason: Reason,
    /// Nodes that fell for it.
    pub nodes: u32,
    /// Devices that fell for it on those nodes; 0 where the reason isn't about devices.
    pub devices: u32,
    /// One of them.
    pub example: Example,
}

/// The names and numbers of one case of a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// The node.
    pub node: Option<NodeKey>,
    /// A device.
    pub device: Option<DeviceKey>,
    /// A device of each of [`Joint::groups`], by which the value or the domain can be named.
    pub leaders: Vec<DeviceKey>,
    /// The rest.
    pub facts: Facts,
}

/// What a sentence needs beside the node and the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Facts {
    /// Nothing.
    #[default]
    None,
    /// An object that is named, and words on it (a compile error, the gates).
    Subject {
        /// Its name.
        subject: Name,
        /// More.
        detail: Name,
    },
    /// Amounts of a resource.
    Amount {
        /// `cpu` (in thousandths), `memory`, `ephemeral-storage`, `pods`, or a scalar's name.
        resource: Name,
        /// Asked for.
        asked: i64,
        /// Free, possibly negative.
        free: i64,
        /// Allocatable in all.
        allocatable: i64,
        /// There beyond that, and not allocatable, for its device plugin calls it unhealthy.
        unhealthy: i64,
    },
    /// A label that the pod's node selector asks for, and what the node has instead.
    Label {
        /// `key=value`.
        asked: Name,
        /// The node's value of the key; empty where it lacks the label.
        has: Name,
    },
    /// A taint.
    Taint(Taint),
    /// A claim that is allocated, and where.
    Claim {
        /// The claim.
        claim: ClaimKey,
        /// The node that its allocation is bound to, where it is one.
        at: Option<Name>,
    },
    /// A claim whose allocation has failed.
    Binding {
        /// The claim.
        claim: ClaimKey,
        /// The device and its condition.
        failure: Box<BindingFailure>,
    },
    /// A host port that is asked for, and the one that stands in its way.
    Port {
        /// Asked for.
        asked: HostPort,
        /// Had by a pod on the node.
        taken: HostPort,
    },
    /// How a topology spread constraint comes out.
    Spread {
        /// The node label whose values are the domains.
        key: Name,
        /// The node's value; none where it lacks the label.
        value: Option<Name>,
        /// Pods that count in the node's domain.
        here: u32,
        /// Pods in the emptiest domain; none where there are fewer domains than asked, so that it
        /// counts as empty.
        least: Option<u32>,
        /// How many more there may be.
        max_skew: i32,
    },
    /// Pods that are to be in the node's domain, or not to be.
    Pods {
        /// Which the pod's rule means; none where it is the rule of a pod that is there.
        pods: Option<PodSelectorId>,
        /// The node label whose values are the domains.
        key: Name,
        /// The node's value; none where it lacks the label.
        value: Option<Name>,
    },
    /// How many members of a group fit together.
    Group(Box<GroupFacts>),
    /// Counts of devices, check by check.
    Devices(Box<DeviceFacts>),
    /// A claim on a volume, and what is wrong with it.
    Volume(Box<VolumeFacts>),
}

impl Facts {
    /// What is told of devices, where that is what it is about.
    pub fn devices(&self) -> Option<&DeviceFacts> {
        match self {
            Self::Devices(facts) => Some(facts),
            Self::None
            | Self::Subject { .. }
            | Self::Amount { .. }
            | Self::Label { .. }
            | Self::Taint(_)
            | Self::Claim { .. }
            | Self::Binding { .. }
            | Self::Port { .. }
            | Self::Spread { .. }
            | Self::Pods { .. }
            | Self::Group(_)
            | Self::Volume(_) => None,
        }
    }
}

impl Why {
    /// Of a group that fits in part, the place that comes nearest.
    pub fn group(&self) -> Option<&GroupFacts> {
        self.tally.iter().find_map(|one| {
            if let Facts::Group(facts) = &one.example.facts { Some(&**facts) } else { None }
        })
    }
}

/// The place that comes nearest to holding a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupFacts {
    /// Members that fit there together, those that run already included.
    pub fit: u32,
    /// In another arrangement more may fit: not all were gone through.
    pub at_least: bool,
    /// Of those that fit the ones that run already.
    pub running: u32,
    /// Members that must.
    pub of: u32,
    /// The domain, as its tree and its path from the widest level down, where the group must be in one.
    pub place: Option<(TopologyKey, Domains)>,
    /// No node is in a domain of a level that the whole group must be in one of.
    pub nowhere: bool,
    /// The role of the first member that does not fit.
    pub role: u16,
    /// The segment that this member is of, where no domain takes that together.
    pub segment: Option<Segment>,
    /// The group runs without this member, which is beyond those that it needs.
    pub beyond: bool,
    /// The part that is placed whole or not at all, where the members are those of a part beyond what
    /// the group needs.
    pub part: Option<Name>,
    /// The parts that were to start, where the group may do with others: none of those comes nearer.
    pub chosen: Box<[Name]>,
}

/// Members of a group that must be in one domain of a level together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index in its role of the first.
    pub first: u32,
    /// Index of the last.
    pub last: u32,
    /// The tree.
    pub topology: TopologyKey,
    /// The level, 0 the widest.
    pub level: u16,
}

/// What is wrong with a claim on a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeFacts {
    /// Name of the claim; empty where it is made with a pod that does not exist yet.
    pub claim: Name,
    /// Name of the volume that it has, or that is kept for it.
    pub volume: Option<Name>,
    /// Name of its class.
    pub class: Option<Name>,
    /// The node on which a volume is being made for it.
    pub node: Option<Name>,
    /// The zone or region that the volume's label names (`key=a__b`), and the node's own.
    pub label: Option<(Name, Option<Name>)>,
    /// What it lacks.
    pub lack: Option<VolumeLack>,
}

/// What a claim on a volume lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeLack {
    /// Its class binds at once, and has not yet.
    Immediate,
    /// It names a volume, and their binding is not complete.
    HalfBound,
    /// It has no class.
    NoClass,
    /// Its class does not exist.
    ClassMissing,
    /// A volume is being made for it on another node.
    MadeElsewhere,
    /// No volume is there for it, and its class makes none.
    NotMade,
    /// No volume is there for it, and its class makes none here.
    Topology,
    /// No volume is there for it, and no room to make one.
    Room,
}

/// How far the devices of a node got for one request of one claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Index into the request's claims.
    pub claim: u16,
    /// Name of the request, with its alternative (`main/sub`).
    pub request: Option<Name>,
    /// Devices asked for; for `All` those that match.
    pub asked: u32,
    /// All devices that match are asked for.
    pub all: bool,
    /// Devices that the node sees.
    pub seen: u32,
    /// Of these, those that pass the selectors.
    pub selected: u32,
    /// Of these, those whose taints are tolerated.
    pub tolerated: u32,
    /// Of these, those that are free.
    pub free: u32,
    /// Most of these that can be together under the constraint or level that fails.
    pub together: u32,
    /// Most that could be together with every device free.
    pub together_if_free: u32,
    /// The attribute of the constraint that fails.
    pub attribute: Option<Name>,
    /// How many of the devices that would do publish it, and how many would do; only where too few
    /// publish it.
    pub published: Option<(u32, u32)>,
    /// The level that is required.
    pub level: Option<Level>,
    /// The selector that says no or ends in an error for [`Example::device`].
    pub selector: Option<SelectorId>,
    /// The taint that is not tolerated on [`Example::device`].
    pub taint: Option<Taint>,
    /// Name of the counter or capacity that is short.
    pub resource: Option<Name>,
    /// The counter set of that counter, or whose devices no compatibility group joins.
    pub set: Option<Name>,
    /// Amounts of it, in billionths: asked and left, or asked and the most that may be asked.
    pub amount: Option<(i128, i128)>,
    /// What stands against the amount, where it is of a capacity.
    pub unmet: Option<Unmet>,
    /// The other rules without which the one that fails could be kept.
    pub beside: Box<[Beside]>,
    /// The requests that can't be met together, where they are several.
    pub joint: Option<Box<Joint>>,
}

/// A rule over several devices, as a sentence names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beside {
    /// `matchAttribute`.
    Match(Name),
    /// `distinctAttribute`.
    Distinct(Name),
    /// A required level.
    Level(Level),
}

/// Requests of which each can be met alone, and what there is for them together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joint {
    /// The requests, each with its own counts.
    pub parts: Vec<DeviceFacts>,
    /// The parts (as indices) by the devices that would do for them: parts that the same devices
    /// would do for stand together.
    pub kinds: Vec<Vec<usize>>,
    /// Values of the attribute or domains of the level, nearest miss first, the best of them only;
    /// none where no rule over values is to blame.
    pub groups: Vec<JointGroup>,
    /// How many values or domains there are beside these.
    pub more: u32,
    /// Devices that would do for any of the parts, and are free.
    pub free: u32,
}

/// The devices of one value, or of one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JointGroup {
    /// The first of them by name, as an index in the node's devices.
    pub leader: u16,
    /// Which element of that device's value the group has, where that is a list.
    pub element: Option<u16>,
    /// Free devices, by [`Joint::kinds`].
    pub free: Vec<u32>,
    /// Devices in all, by [`Joint::kinds`].
    pub all: Vec<u32>,
}

/// What stands against an amount that is asked of a device's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmet {
    /// The device has no capacity of that name.
    Lacking,
    /// The amount is below zero or too large to be counted.
    Absurd,
    /// `requestPolicy` has no such amount.
    Policy,
    /// Too little is left.
    Short,
}

/// The whole account for one group: every node, every check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The group.
    pub group: GroupKey,
    /// The role of the opening that was looked at.
    pub role: u16,
    /// The verdict, as `decide` gives it.
    pub verdict: Verdict,
    /// Reasons that stand before any node is looked at.
    pub object: Vec<(Reason, Example)>,
    /// Which nodes kube-scheduler's PreFilter leaves; none where it leaves all.
    pub only: Option<Only>,
    /// Each node in order of name, as it is when the group's turn comes.
    pub nodes: Vec<NodeReport>,
    /// What is chosen for the opening that was looked at, and what else there is; none where nothing
    /// fits, where the first that fits was asked for, and where one node was looked at.
    pub choice: Option<Choice>,
}

/// The nodes that a pod names, which are all that kube-scheduler filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Only {
    /// The plugins by whose rules it names them, sorted by name.
    pub plugins: &'static [&'static str],
    /// The nodes, whether they exist or not; none where two rules have no node in common.
    pub nodes: BTreeSet<Name>,
}

/// A choice beside what else could have been chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is chosen.
    pub best: Offered,
    /// Sets of devices of that node that cost exactly as much, the chosen one included: it is the
    /// first of them by name. None where they are more than a thousand.
    pub equal: Option<u32>,
    /// The best of that node's sets that cost more.
    pub second: Option<Offered>,
    /// The best on any other node; it may cost as much.
    pub elsewhere: Option<Offered>,
}

/// A seat that could be taken, and its price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// The seat.
    pub seat: Seat,
    /// What it costs.
    pub cost: Cost,
    /// Whether a better one of its kind is ruled out.
    pub proof: Proof,
}

/// One node's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The node.
    pub node: NodeKey,
    /// What a seat there costs, where it fits.
    pub offer: Option<(Cost, Seat, Proof)>,
    /// The check that it counts under: the one that kube-scheduler names first, which is
    /// NodeAffinity wherever its PreFilter leaves the node out.
    pub counted: Option<Reason>,
    /// All failing checks, in kube-scheduler's order.
    pub checks: Vec<(Reason, Status, Example)>,
}
