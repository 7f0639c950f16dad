//! What a pod asks of the pods around it: ports of its node, to be near some, away from others, and
//! evenly spread.
//!
//! Which pods a rule means is a number that lowering gives to a set of label selectors with their
//! namespaces; which of the live ones a pod is meant by stands in its request
//! ([`matched`](crate::Request::matched)). No text of a selector comes here.

use crate::name::Name;

/// A port of the node that a container asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Number.
    pub port: i32,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Name,
    /// Address of the node; `0.0.0.0` is every one, and `::` is an address like any other.
    pub address: Name,
}

impl HostPort {
    /// The address that stands for all.
    pub const EVERY_ADDRESS: &'static str = "0.0.0.0";

    /// Whether two pods on a node can't have both (kube-scheduler's `HostPortInfo`).
    pub fn clashes_with(&self, other: &Self) -> bool {
        let everywhere = |port: &Self| port.address.as_str() == Self::EVERY_ADDRESS;
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address || everywhere(self) || everywhere(other))
    }
}

/// Some pods, by the number that lowering gives to what selects them: equal numbers are equal
/// selectors in equal namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodSelectorId(pub u32);

/// What a pod asks of the pods around it (InterPodAffinity, PodTopologySpread).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodRules {
    /// Required affinity.
    pub affinity: Option<PodAffinity>,
    /// Required anti-affinity, which is refused to others as well: each term by itself.
    pub anti: Box<[PodTerm]>,
    /// Required spread, in the pod's order.
    pub spread: Box<[SpreadRule]>,
    /// Preferred affinity and anti-affinity, which others are judged by as well.
    pub wishes: Box<[PodWish]>,
    /// The terms of [`affinity`](Self::affinity), each by itself: on its node the pod would have such
    /// pods near, as much as by a wish of weight 1 (`hardPodAffinityWeight`).
    pub welcomes: Box<[PodTerm]>,
    /// Spread that is only wished for (`ScheduleAnyway`), in the pod's order.
    pub spread_wishes: Box<[SpreadRule]>,
}

/// A wish to be near pods, or away from them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodWish {
    /// Which pods.
    pub pods: PodSelectorId,
    /// The node label whose values are the domains.
    pub key: Name,
    /// How much it is wished: 1 to 100, or -1 to -100 to be away from them.
    pub weight: i32,
}

/// Pods, and the node label whose values are the domains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodTerm {
    /// Which pods.
    pub pods: PodSelectorId,
    /// The label (`topologyKey`).
    pub key: Name,
}

/// All terms of a required affinity: one pod must match all of them, perhaps another for each key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodAffinity {
    /// The pods that match every term.
    pub pods: PodSelectorId,
    /// The node labels of the terms: in each of these domains there must be such a pod.
    pub keys: Box<[Name]>,
}

/// A constraint on spread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpreadRule {
    /// Which pods are counted; none counts none (`labelSelector` is absent or empty).
    pub pods: Option<PodSelectorId>,
    /// Whether the pod itself counts (an empty selector means every pod, as far as that goes).
    pub own: bool,
    /// The node label whose values are the domains.
    pub key: Name,
    /// How many pods more than the emptiest domain has there may be.
    pub max_skew: i32,
    /// With fewer domains the emptiest counts as empty.
    pub min_domains: i32,
    /// Nodes that the pod's selector and required affinity refuse do not count.
    pub honors_affinity: bool,
    /// Nodes with taints that the pod does not tolerate do not count.
    pub honors_taints: bool,
}
