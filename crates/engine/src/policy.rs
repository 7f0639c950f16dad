//! What a decision is told besides the state: policy and effort.

/// How to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Which of the nodes that fit is taken.
    pub node_order: NodeOrder,
    /// Which feasible set of devices is taken.
    pub device_order: DeviceOrder,
    /// An error that upstream's search meets ends the pod's attempt on all nodes, as in
    /// kube-scheduler, rather than making that device (or for `All` that node) ineligible: of a
    /// selector or a derived attribute, of an amount that can't be counted, of devices for `All`
    /// that break a constraint or pass the limit. It is a question of upstream's order, and has no
    /// effect with any other: which devices are reached depends on it.
    pub strict_cel: bool,
}

/// Which of the nodes that fit is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeOrder {
    /// The one of least cost.
    #[default]
    Best,
    /// The one that kube-scheduler scores highest.
    Scores,
}

/// Which feasible set of devices is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceOrder {
    /// The one of least cost.
    #[default]
    Best,
    /// The first in upstream's order of candidates.
    Upstream,
}

/// Effort, in steps of search: one step is one candidate device or one node looked at. Counted, not
/// timed, so that it is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Effort {
    /// Steps that one search may take: for the devices of a seat on a node, or for an arrangement of a
    /// group.
    pub steps: u64,
    /// Ways to seat a group, nodes to the power of members, up to which all are gone through for the
    /// cheapest. Groups of more are counted first, and searched where counting finds nothing.
    pub ways: u64,
    /// Choices of its members and parts with which a group may start, where not all must, up to which all
    /// are gone through. Of more a few are tried.
    pub choices: u64,
}

impl Effort {
    /// So many steps, and ways and choices as by default.
    pub fn of_steps(steps: u64) -> Self {
        Self { steps, ..Self::default() }
    }
}

impl Default for Effort {
    /// Steps that no honest request reaches per seat and node; and as many ways as take milliseconds,
    /// for a plan may hold thousands of groups.
    fn default() -> Self {
        Self { steps: 1_000_000, ways: 4096, choices: 256 }
    }
}
