//! `grove.io/v1alpha1`: Grove's PodCliqueSet.

use crate::core::PodSpec;
use crate::macros::object;
use crate::meta::{Annotations, Labels, ObjectMeta};

object! {
    /// A service of several roles, as often as is wanted.
    pub struct PodCliqueSet {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PodCliqueSetSpec,
    }

    /// What a set of cliques wants.
    pub struct PodCliqueSetSpec {
        /// How often all of it; none means 0.
        pub replicas: i32,
        /// One of it.
        pub template: PodCliqueSetTemplate,
    }

    /// One of a set of cliques.
    pub struct PodCliqueSetTemplate {
        /// The roles.
        pub cliques: Vec<PodClique>,
        /// Roles that are scaled together.
        pub pod_clique_scaling_groups: Vec<PodCliqueScalingGroup>,
        /// Name of the priority class of all pods.
        pub priority_class_name: String,
    }

    /// A role: pods that are alike.
    pub struct PodClique {
        /// Name.
        pub name: String,
        /// Labels of the pods.
        pub labels: Labels,
        /// Annotations of the pods.
        pub annotations: Annotations,
        /// What is wanted.
        pub spec: PodCliqueSpec,
    }

    /// What a role wants.
    pub struct PodCliqueSpec {
        /// The pods.
        pub pod_spec: PodSpec,
        /// How many; 0 means 1.
        pub replicas: i32,
        /// Fewest that start together; none means all.
        pub min_available: Option<i32>,
        /// Roles that must be up before.
        pub starts_after: Vec<String>,
    }

    /// Roles that are scaled together.
    pub struct PodCliqueScalingGroup {
        /// Name.
        pub name: String,
        /// The roles.
        pub clique_names: Vec<String>,
        /// How often; none means 1.
        pub replicas: Option<i32>,
        /// Fewest that start together; none means 1.
        pub min_available: Option<i32>,
    }
}
