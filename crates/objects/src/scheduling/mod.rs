//! What schedulers are told beside pods: which pods belong together, and which nodes are near each
//! other. Each API has a type of its own here; what they have in common is for lowering to see.

mod groups;
mod kueue;
mod peers;
mod places;

use crate::macros::family;

pub use groups::*;
pub use kueue::*;
pub use peers::*;
pub use places::*;

family! {
    /// The kind of an object about groups or places.
    SchedulingKind;
    /// An object about groups or places.
    Scheduling;

    /// A group of pods.
    PodGroup(PodGroup): "PodGroup", "podgroup" | "pg",
        ["scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha2"];
    /// A group of groups.
    CompositePodGroup(CompositePodGroup): "CompositePodGroup", "compositepodgroup" | "cpg",
        ["scheduling.k8s.io/v1alpha3"];
    /// Templates of groups; in its first version the groups themselves.
    Templates(GroupTemplates): "Workload", "workload",
        ["scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha2",
         "scheduling.k8s.io/v1alpha1"];
    /// What Kueue admits as one.
    KueueWorkload(KueueWorkload): "Workload", "workload.kueue.x-k8s.io",
        ["kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"];
    /// A group of the coscheduling plugin, and of Koordinator.
    Coscheduling(CoschedulingPodGroup): "PodGroup", "podgroup.scheduling.x-k8s.io",
        ["scheduling.x-k8s.io/v1alpha1", "scheduling.sigs.k8s.io/v1alpha1"];
    /// A group of Volcano.
    VolcanoPodGroup(VolcanoPodGroup): "PodGroup", "podgroup.scheduling.volcano.sh",
        ["scheduling.volcano.sh/v1beta1"];
    /// A group of KAI.
    KaiPodGroup(KaiPodGroup): "PodGroup", "podgroup.scheduling.run.ai",
        ["scheduling.run.ai/v2alpha2"];
    /// A gang of Grove.
    PodGang(PodGang): "PodGang", "podgang", ["scheduler.grove.io/v1alpha1"];
    /// A topology of Kueue.
    KueueTopology(LabelTopology): "Topology", "topology.kueue.x-k8s.io",
        ["kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1alpha1"];
    /// A topology of KAI.
    KaiTopology(LabelTopology): "Topology", "topology.kai.scheduler", ["kai.scheduler/v1alpha1"];
    /// A place of Volcano's topology.
    HyperNode(HyperNode): "HyperNode", "hypernode" | "hn", ["topology.volcano.sh/v1alpha1"];
    /// Nodes that share memory over NVLink for a job.
    ComputeDomain(ComputeDomain): "ComputeDomain", "computedomain", ["resource.nvidia.com/v1beta1"];
}

impl SchedulingKind {
    /// The group of its API.
    #[must_use]
    pub fn group(self) -> &'static str {
        let version = self.versions().first().copied().unwrap_or_default();
        version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Whether objects of the kind live in a namespace.
    #[must_use]
    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Self::KueueTopology | Self::KaiTopology | Self::HyperNode)
    }

    /// Whether objects of the kind are groups of pods.
    #[must_use]
    pub const fn is_group(self) -> bool {
        match self {
            Self::PodGroup
            | Self::Coscheduling
            | Self::VolcanoPodGroup
            | Self::KaiPodGroup
            | Self::PodGang => true,
            Self::CompositePodGroup
            | Self::Templates
            | Self::KueueWorkload
            | Self::KueueTopology
            | Self::KaiTopology
            | Self::HyperNode
            | Self::ComputeDomain => false,
        }
    }
}
