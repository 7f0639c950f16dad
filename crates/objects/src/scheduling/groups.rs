//! `scheduling.k8s.io`: PodGroup, CompositePodGroup and Workload (KEP-4671, KEP-5832, KEP-5732).

use crate::macros::object;
use crate::meta::ObjectMeta;

object! {
    /// A group of pods.
    pub struct PodGroup {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PodGroupSpec,
        /// What became of it.
        pub status: PodGroupStatus,
    }

    /// What became of a group of pods.
    pub struct PodGroupStatus {
        /// The claims that were made for it.
        pub resource_claim_statuses: Vec<GroupClaimStatus>,
    }

    /// A claim that was made for a group.
    pub struct GroupClaimStatus {
        /// Its name in the group.
        pub name: String,
        /// The claim's own name; none where no claim is needed.
        pub resource_claim_name: Option<String>,
    }

    /// What a group of pods wants. Templates of groups hold the same, with a name.
    pub struct PodGroupSpec {
        /// Name, of a template.
        pub name: String,
        /// The group of groups that it is part of.
        pub parent_composite_pod_group_name: Option<String>,
        /// Whether it starts whole.
        pub scheduling_policy: GroupPolicy,
        /// The same in `v1alpha1`, where the groups stand in the Workload.
        pub policy: GroupPolicy,
        /// Where it must be.
        pub scheduling_constraints: Option<GroupConstraints>,
        /// Claims that all of it shares.
        pub resource_claims: Vec<GroupClaim>,
        /// Name of the priority class.
        pub priority_class_name: String,
        /// Priority.
        pub priority: Option<i32>,
    }

    /// Whether a group starts whole: one of the two.
    pub struct GroupPolicy {
        /// Pod by pod.
        pub basic: Option<BasicPolicy>,
        /// At least so many at once.
        pub gang: Option<GangPolicy>,
    }

    /// Nothing more to say.
    pub struct BasicPolicy {}

    /// How many must start at once.
    pub struct GangPolicy {
        /// Pods, of a PodGroup.
        pub min_count: i32,
        /// Groups, of a CompositePodGroup.
        pub min_group_count: i32,
    }

    /// Where a group must be.
    pub struct GroupConstraints {
        /// All of it in one domain of this level; at most one entry.
        pub topology: Vec<TopologyConstraint>,
    }

    /// A level of topology.
    pub struct TopologyConstraint {
        /// The label of nodes that tells domains apart.
        pub key: String,
    }

    /// A claim that a group shares.
    pub struct GroupClaim {
        /// Name; pods have a claim of the same name.
        pub name: String,
        /// A claim that exists.
        pub resource_claim_name: Option<String>,
        /// The template of the one that is made for the group.
        pub resource_claim_template_name: Option<String>,
    }

    /// A group of groups.
    pub struct CompositePodGroup {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PodGroupSpec,
    }

    /// Templates of groups; in `v1alpha1` the groups themselves.
    pub struct GroupTemplates {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: GroupTemplatesSpec,
    }

    /// Templates of groups.
    pub struct GroupTemplatesSpec {
        /// The groups of `v1alpha1`, to which pods refer (`spec.workloadRef`).
        pub pod_groups: Vec<PodGroupSpec>,
        /// Templates, for controllers.
        pub pod_group_templates: Vec<PodGroupSpec>,
    }
}

impl PodGroupSpec {
    /// The fewest pods that start at once; none where each starts by itself.
    #[must_use]
    pub fn min_count(&self) -> Option<i32> {
        let gang = self.scheduling_policy.gang.as_ref().or(self.policy.gang.as_ref());
        gang.map(|gang| gang.min_count)
    }
}
