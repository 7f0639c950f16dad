//! `kueue.x-k8s.io`: Workload, as far as it tells of pods and places.

use crate::macros::object;
use crate::meta::ObjectMeta;

object! {
    /// What Kueue admits as one.
    pub struct KueueWorkload {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: KueueWorkloadSpec,
    }

    /// What a workload wants.
    pub struct KueueWorkloadSpec {
        /// Its roles.
        pub pod_sets: Vec<KueuePodSet>,
    }

    /// Pods that are alike.
    pub struct KueuePodSet {
        /// Name.
        pub name: String,
        /// Pods.
        pub count: i32,
        /// Fewest of them, where fewer do.
        pub min_count: Option<i32>,
        /// Where they are to be.
        pub topology_request: Option<KueueTopologyRequest>,
    }

    /// Where pods are to be; levels are labels of nodes.
    pub struct KueueTopologyRequest {
        /// In one domain of this level.
        pub required: Option<String>,
        /// In one, where that can be had.
        pub preferred: Option<String>,
        /// Anywhere.
        pub unconstrained: Option<bool>,
        /// With the other pod sets of this group.
        pub pod_set_group_name: Option<String>,
        /// Each slice in one domain of this level.
        pub pod_set_slice_required_topology: Option<String>,
        /// Pods of a slice.
        pub pod_set_slice_size: Option<i32>,
    }
}
