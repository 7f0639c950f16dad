//! The `v1` group: nodes, pods, namespaces, what selects pods by their labels alone, and the selectors
//! that they share with other groups.

mod image;
mod node;
mod pod;
mod selector;
mod service;

use std::collections::BTreeMap;

use crate::macros::{object, words};
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;

pub use image::ImageName;
pub use node::{ContainerImage, Node, NodeSpec, NodeStatus, NodeSystemInfo, Taint, TaintEffect};
pub use pod::{
    Affinity, Capabilities, Container, ContainerExtendedResourceRequest, ContainerPort,
    ContainerSecurity, ContainerStatus, DeviceEnvironment, NodeInclusionPolicy, Pod, PodAffinity,
    PodAffinityTerm, PodExtendedResourceClaimStatus, PodPhase, PodResourceClaim,
    PodResourceClaimStatus, PodSchedulingGate, PodSchedulingGroup, PodSecurityContext, PodSpec,
    PodStatus, PodTemplateSpec, PodWorkloadRef, ResourceClaimUse, ResourceRequirements,
    RestartPolicy, RestartsAll, SeccompProfile, Toleration, TolerationOperator,
    TopologySpreadConstraint, UnsatisfiableConstraintAction, VolumeMounts, WeightedPodAffinityTerm,
};
pub use selector::{
    LabelSelector, LabelSelectorOperator, LabelSelectorRequirement, NodeAffinity, NodeSelector,
    NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm,
};
pub use service::{
    ReplicationController, ReplicationControllerSpec, ReplicationTemplate, Service, ServiceSpec,
};

/// Amounts by resource name: `cpu`, `memory`, `nvidia.com/gpu`.
pub type ResourceList = BTreeMap<String, Quantity>;

object! {
    /// A namespace; only its labels are read.
    pub struct Namespace {
        /// Metadata.
        pub metadata: ObjectMeta,
    }

    /// A service account; only that it is there is read.
    pub struct ServiceAccount {
        /// Metadata.
        pub metadata: ObjectMeta,
    }

    /// A `scheduling.k8s.io` priority class.
    pub struct PriorityClass {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// The priority that pods of the class get.
        pub value: i32,
        /// Whether pods without a class get this one.
        pub global_default: bool,
        /// Whether pods of the class may preempt.
        pub preemption_policy: PreemptionPolicy,
    }
}

words! {
    /// Whether a pod may preempt others.
    pub enum PreemptionPolicy {
        /// It may preempt pods of lower priority.
        PreemptLowerPriority = "PreemptLowerPriority",
        /// It waits until there is room.
        Never = "Never",
    }
}
