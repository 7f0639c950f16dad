//! The groups of other schedulers: coscheduling (`scheduling.x-k8s.io`), Volcano
//! (`scheduling.volcano.sh`), KAI (`scheduling.run.ai`), Grove (`scheduler.grove.io`).

use std::collections::BTreeMap;

use crate::core::LabelSelector;
use crate::macros::object;
use crate::meta::ObjectMeta;

object! {
    /// A group of the coscheduling plugin, and of Koordinator.
    pub struct CoschedulingPodGroup {
        /// Metadata; Koordinator's annotations stand here.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CoschedulingPodGroupSpec,
    }

    /// What such a group wants.
    pub struct CoschedulingPodGroupSpec {
        /// Fewest pods that start at once.
        pub min_member: i32,
    }

    /// A group of Volcano.
    pub struct VolcanoPodGroup {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: VolcanoPodGroupSpec,
    }

    /// What a group of Volcano wants.
    pub struct VolcanoPodGroupSpec {
        /// Fewest pods that start at once.
        pub min_member: i32,
        /// Fewest of each task.
        pub min_task_member: BTreeMap<String, i32>,
        /// Name of the priority class.
        pub priority_class_name: String,
        /// Where it is to be.
        pub network_topology: Option<NetworkTopology>,
        /// Parts of it.
        pub sub_group_policy: Vec<VolcanoSubGroup>,
    }

    /// Where a group of Volcano is to be: within one HyperNode of at most this tier.
    pub struct NetworkTopology {
        /// `hard`, which is required, or `soft`.
        pub mode: String,
        /// The tier, by number.
        pub highest_tier_allowed: Option<i32>,
        /// The tier, by name.
        pub highest_tier_name: String,
    }

    /// Parts of a group of Volcano.
    pub struct VolcanoSubGroup {
        /// Name.
        pub name: String,
        /// Pods of a part.
        pub sub_group_size: Option<i32>,
        /// Fewest parts that start at once.
        pub min_sub_groups: Option<i32>,
        /// The pods that it is about.
        pub label_selector: Option<LabelSelector>,
        /// Labels by whose values pods are of one part.
        pub match_label_keys: Vec<String>,
        /// Where each part is to be.
        pub network_topology: Option<NetworkTopology>,
    }

    /// A group of KAI.
    pub struct KaiPodGroup {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: KaiPodGroupSpec,
    }

    /// What a group of KAI wants.
    pub struct KaiPodGroupSpec {
        /// Fewest pods that start at once.
        pub min_member: Option<i32>,
        /// Fewest of its parts that do.
        pub min_sub_group: Option<i32>,
        /// Name of the priority class.
        pub priority_class_name: String,
        /// Where it is to be.
        pub topology_constraint: Option<KaiTopologyConstraint>,
        /// Its parts.
        pub sub_groups: Vec<KaiSubGroup>,
    }

    /// A part of a group of KAI.
    pub struct KaiSubGroup {
        /// Name; its pods have it in their label `kai.scheduler/subgroup-name`.
        pub name: String,
        /// The part that it is part of.
        pub parent: Option<String>,
        /// Fewest pods that start at once.
        pub min_member: Option<i32>,
        /// Fewest of its parts that do.
        pub min_sub_group: Option<i32>,
        /// Where it is to be.
        pub topology_constraint: Option<KaiTopologyConstraint>,
    }

    /// Where pods are to be: levels are labels of nodes.
    pub struct KaiTopologyConstraint {
        /// Name of the Topology.
        pub topology: String,
        /// In one domain of this level.
        pub required_topology_level: String,
        /// In one, where that can be had.
        pub preferred_topology_level: String,
    }

    /// A gang of Grove.
    pub struct PodGang {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PodGangSpec,
    }

    /// What a gang of Grove wants.
    pub struct PodGangSpec {
        /// Its parts.
        #[serde(rename = "podgroups")]
        pub pod_groups: Vec<GrovePodGroup>,
        /// Where all of it is to be.
        pub topology_constraint: Option<GroveTopologyConstraint>,
        /// Where some of its parts are to be together.
        pub topology_constraint_group_configs: Vec<GroveGroupConfig>,
        /// Name of the priority class.
        pub priority_class_name: String,
    }

    /// A part of a gang of Grove: the pods of one PodClique.
    pub struct GrovePodGroup {
        /// Name of the PodClique.
        pub name: String,
        /// Its pods.
        pub pod_references: Vec<NamespacedName>,
        /// Fewest pods that start at once.
        pub min_replicas: i32,
        /// Where it is to be.
        pub topology_constraint: Option<GroveTopologyConstraint>,
    }

    /// A reference to an object.
    pub struct NamespacedName {
        /// Namespace.
        pub namespace: String,
        /// Name.
        pub name: String,
    }

    /// Where parts are to be together.
    pub struct GroveGroupConfig {
        /// Name.
        pub name: String,
        /// The parts.
        pub pod_group_names: Vec<String>,
        /// Where.
        pub topology_constraint: Option<GroveTopologyConstraint>,
    }

    /// Where pods are to be.
    pub struct GroveTopologyConstraint {
        /// Levels.
        pub pack_constraint: Option<GrovePackConstraint>,
    }

    /// Levels, as labels of nodes.
    pub struct GrovePackConstraint {
        /// In one domain of this level.
        pub required: Option<String>,
        /// In one, where that can be had.
        pub preferred: Option<String>,
    }
}
