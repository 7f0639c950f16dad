//! What a placement costs: one type with one order, compared lexicographically.
//!
//! The blocks, first to last: index in prioritised lists; topology; devices; the user's soft node
//! preferences; harm to later requests. The last block, name rank, is the seat itself: between
//! equal costs the smaller node name wins, then the smaller device names. Brute force minimises the
//! same type. No block is weighted against another.

use crate::facts::LinkClass;

/// The cost of one seat, or of a group's seats added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost {
    /// Sum of the indices chosen in `firstAvailable` lists.
    pub alternatives: u32,
    /// Topology.
    pub topology: TopologyCost,
    /// Devices of one pod among themselves.
    pub devices: DeviceCost,
    /// Soft node preferences not met: the sum of the weights of preferred terms that don't match
    /// and of untolerated `PreferNoSchedule` taints (1 each).
    pub soft: u32,
    /// What it takes from later requests.
    pub harm: Harm,
}

/// Topology spanned by a group. (A lone pod spans nothing.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologyCost {
    /// Highest level spanned, 0 the narrowest.
    pub level: u16,
    /// Domains used at that level, beyond the first.
    pub domains: u16,
}

/// How far apart the devices of one pod are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceCost {
    /// Wishes of `phalanx.dev/align` (`preferred`) that are not met.
    pub unaligned: u16,
    /// NVLink islands used beyond the first.
    pub islands: u16,
    /// The slowest link that must be used: the bottleneck edge of the set's best ring.
    pub slowest: LinkClass,
    /// PCIe roots used beyond the first, where NICs are among the devices.
    pub roots: u16,
    /// NUMA nodes used beyond the first.
    pub numa: u16,
}

impl Default for DeviceCost {
    fn default() -> Self {
        Self { unaligned: 0, islands: 0, slowest: LinkClass::Nvlink, roots: 0, numa: 0 }
    }
}

/// What a placement takes from later requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Harm {
    /// Islands that were whole and free and are now broken (used in part).
    pub islands_broken: u16,
    /// Nodes whose scarce things were all free and are now used in part.
    pub nodes_broken: u16,
    /// Scarce things (devices, extended resources) that stay free on the node: fewer is a tighter
    /// fit. Saturates.
    pub scarce_left: u32,
}

impl Cost {
    /// The cost of two seats together: sums, but the slowest link and the highest level of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            alternatives: self.alternatives.saturating_add(other.alternatives),
            topology: TopologyCost {
                level: self.topology.level.max(other.topology.level),
                domains: self.topology.domains.saturating_add(other.topology.domains),
            },
            devices: DeviceCost {
                unaligned: self.devices.unaligned.saturating_add(other.devices.unaligned),
                islands: self.devices.islands.saturating_add(other.devices.islands),
                slowest: self.devices.slowest.max(other.devices.slowest),
                roots: self.devices.roots.saturating_add(other.devices.roots),
                numa: self.devices.numa.saturating_add(other.devices.numa),
            },
            soft: self.soft.saturating_add(other.soft),
            harm: Harm {
                islands_broken: self.harm.islands_broken.saturating_add(other.harm.islands_broken),
                nodes_broken: self.harm.nodes_broken.saturating_add(other.harm.nodes_broken),
                scarce_left: self.harm.scarce_left.saturating_add(other.harm.scarce_left),
            },
        }
    }
}
