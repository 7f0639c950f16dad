//! Nodes: what they offer and whom they repel. Addresses and volumes are not kept.

use jiff::Timestamp;

use super::ResourceList;
use crate::macros::{object, words};
use crate::meta::{Condition, ObjectMeta};

object! {
    /// A node.
    pub struct Node {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What the administrator wants.
        pub spec: NodeSpec,
        /// What the kubelet reports.
        pub status: NodeStatus,
    }

    /// The wished state of a node.
    pub struct NodeSpec {
        /// Whether the node is cordoned.
        pub unschedulable: bool,
        /// Taints.
        pub taints: Vec<Taint>,
    }

    /// The reported state of a node.
    pub struct NodeStatus {
        /// What pods may request in sum.
        pub allocatable: ResourceList,
        /// What the machine has; the API server copies it to `allocatable` where that is missing.
        pub capacity: ResourceList,
        /// Conditions; no check reads them, for taints say the same.
        pub conditions: Vec<Condition>,
        /// Features that the kubelet declares, sorted.
        pub declared_features: Vec<String>,
        /// Versions.
        pub node_info: NodeSystemInfo,
        /// Images that are there.
        pub images: Vec<ContainerImage>,
    }

    /// An image that is on a node.
    pub struct ContainerImage {
        /// What it is called, by tag and by digest.
        pub names: Vec<String>,
        /// Its size.
        pub size_bytes: i64,
    }

    /// Versions of a node's parts.
    pub struct NodeSystemInfo {
        /// Version of the kubelet, such as `v1.37.2`.
        pub kubelet_version: String,
    }

    /// A taint of a node.
    pub struct Taint {
        /// Key.
        pub key: String,
        /// Value.
        pub value: String,
        /// What happens to pods that do not tolerate it.
        pub effect: TaintEffect,
        /// When it was added.
        pub time_added: Option<Timestamp>,
    }
}

words! {
    /// The effect of a taint, and the effect that a toleration names.
    pub enum TaintEffect {
        /// Not named; in a toleration it means every effect.
        Unset = "",
        /// No new pod.
        NoSchedule = "NoSchedule",
        /// Better no new pod.
        PreferNoSchedule = "PreferNoSchedule",
        /// No new pod, and running ones are evicted.
        NoExecute = "NoExecute",
        /// Only informs (device taints).
        None = "None",
    }
}
