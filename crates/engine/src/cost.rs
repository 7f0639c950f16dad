//! What a placement costs: one type with one order, compared lexicographically.
//!
//! The blocks, first to last: index in prioritised lists; topology; devices; the user's soft node
//! preferences; harm to later requests. The last block, name rank, is the seat itself: between
//! equal costs the smaller node name wins, then the smaller device names. Brute force minimises the
//! same type. No block is weighted against another.

use crate::facts::Link;

/// The cost of one seat, or of a group's seats added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost {
    /// Sum of the indices chosen in `firstAvailable` lists.
    pub alternatives: u32,
    /// Topology.
    pub topology: TopologyCost,
    /// Devices of one pod among themselves.
    pub devices: DeviceCost,
    /// Wishes not met: the sum of the weights of preferred node affinity terms that don't match, of
    /// untolerated `PreferNoSchedule` taints (1 each), of preferred affinity to pods of which the
    /// node's domain has none, of preferred anti-affinity to pods of which it has one, of the same
    /// wishes of pods on nodes about this one (their required affinity counts 1), and of the pods by
    /// which a `ScheduleAnyway` constraint is overdrawn (1 each; on a node without its label one more
    /// than all pods that count).
    pub soft: u32,
    /// What it takes from later requests.
    pub harm: Harm,
}

/// Levels of topology that are told apart in a cost, the nodes included: as many as a Kueue Topology
/// has, and one. Of deeper trees the widest levels are left out.
pub const LEVELS_MAX: usize = 17;

/// Topology spanned by a group, its members that run already included. (A lone pod spans nothing.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologyCost {
    /// Domains used beyond the first, level by level and over the trees that the group is judged by,
    /// widest first; the last is nodes. So the highest level that is spanned decides, and then how
    /// many domains are used at each. A node that is in no domain of a level is one of its own.
    pub beyond_first: [u16; LEVELS_MAX],
    /// The same for what is wished to be together and is only a part of the group, over all such
    /// wishes.
    pub wishes: u16,
}

/// How far apart the devices of one pod are, those of its claims that were allocated before included; and
/// those of a group on each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceCost {
    /// NVLink islands that the new members of a group on one node use beyond the first, over its nodes.
    pub of_group: u16,
    /// Wishes of `phalanx.dev/align` (`preferred`) that are not met.
    pub unaligned: u16,
    /// NVLink islands used beyond the first.
    pub islands: u16,
    /// The slowest link that must be used: the bottleneck edge of the set's best ring.
    pub slowest: Link,
    /// The slowest of all pairs, which all-to-all collectives use.
    pub farthest: Link,
    /// Devices that are not beside their network card, or cards that are not beside their devices.
    pub nics: NicCost,
    /// NUMA nodes used beyond the first: how many more CPUs' memories are drawn in.
    pub numa: u16,
}

/// How a pod's network cards (NICs) sit to its other devices. With k devices and m NICs, each NIC
/// serves at most k/m of the devices (rounded up) and each device is served by at most m/k NICs
/// (rounded up): that is the fair share. At each level are counted the devices that find no share
/// of a NIC in their own domain, and the NICs that find no share of a device in theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NicCost {
    /// Without a partner under the same PCIe switch.
    pub off_switch: u16,
    /// Without a partner under the same PCIe root complex.
    pub off_root: u16,
    /// Without a partner on the same NUMA node.
    pub off_numa: u16,
}

impl Default for DeviceCost {
    fn default() -> Self {
        Self {
            of_group: 0,
            unaligned: 0,
            islands: 0,
            slowest: Link::IDEAL,
            farthest: Link::IDEAL,
            nics: NicCost::default(),
            numa: 0,
        }
    }
}

/// What a placement takes from later requests. Sizes are in Mi (2^20 units, rounded up) of a
/// device's capacity `memory`, or of its greatest capacity where it has none of that name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Harm {
    /// Islands that were whole and free, and of which now a part is used and a part is free.
    pub islands_broken: u16,
    /// Whole things that were untouched and are not any more: counter sets (a GPU that is given out
    /// in partitions), shared devices, and devices that are neither.
    pub wholes_used: u16,
    /// Sizes of the devices that could be had before and can't be now, because they are given or
    /// because the counters that they draw on are spent; and what shares consume.
    pub lost_mi: u32,
    /// Room that was left on the shared devices that are drawn on: the fullest are filled first.
    pub shared_mi: u32,
    /// By how much the nodes are broken up more than before, as Slurm's topology/block plugin counts:
    /// nodes of which nothing scarce was in use and now something is; and of a group also, over all
    /// levels of the trees that it is judged by, the nodes of each domain of which that was true of all
    /// nodes and is not any more.
    pub fragmentation: u32,
    /// Nodes whose scarce things were all free and are now used in part.
    pub nodes_broken: u16,
    /// Scarce things (devices, extended resources) that stay free on the node: fewer is a tighter
    /// fit. Saturates.
    pub scarce_left: u32,
}

impl Cost {
    /// The cost of two seats together: sums, but the slowest links and the highest level of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            alternatives: self.alternatives.saturating_add(other.alternatives),
            // What a group spans is no sum over its seats.
            topology: self.topology.max(other.topology),
            devices: self.devices.and(other.devices),
            soft: self.soft.saturating_add(other.soft),
            harm: self.harm.and(other.harm),
        }
    }

    /// The same, with so many islands that the members of a group on one node use beyond the first.
    pub(crate) fn with_islands(self, of_group: u16) -> Self {
        Self { devices: DeviceCost { of_group, ..self.devices }, ..self }
    }
}

impl DeviceCost {
    fn and(self, other: Self) -> Self {
        let (a, b) = (self.nics, other.nics);
        Self {
            // What a group uses is no sum over its seats.
            of_group: self.of_group.max(other.of_group),
            unaligned: self.unaligned.saturating_add(other.unaligned),
            islands: self.islands.saturating_add(other.islands),
            slowest: self.slowest.max(other.slowest),
            farthest: self.farthest.max(other.farthest),
            nics: NicCost {
                off_switch: a.off_switch.saturating_add(b.off_switch),
                off_root: a.off_root.saturating_add(b.off_root),
                off_numa: a.off_numa.saturating_add(b.off_numa),
            },
            numa: self.numa.saturating_add(other.numa),
        }
    }
}

impl Harm {
    fn and(self, other: Self) -> Self {
        Self {
            islands_broken: self.islands_broken.saturating_add(other.islands_broken),
            wholes_used: self.wholes_used.saturating_add(other.wholes_used),
            lost_mi: self.lost_mi.saturating_add(other.lost_mi),
            shared_mi: self.shared_mi.saturating_add(other.shared_mi),
            fragmentation: self.fragmentation.saturating_add(other.fragmentation),
            nodes_broken: self.nodes_broken.saturating_add(other.nodes_broken),
            scarce_left: self.scarce_left.saturating_add(other.scarce_left),
        }
    }
}
