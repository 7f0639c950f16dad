//! `apps/v1`: Deployment, ReplicaSet, StatefulSet and DaemonSet.

use crate::core::{LabelSelector, PodTemplateSpec};
use crate::macros::{object, words};
use crate::meta::ObjectMeta;
use crate::storage::PersistentVolumeClaim;

object! {
    /// A deployment.
    pub struct Deployment {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ReplicasSpec,
    }

    /// A replica set.
    pub struct ReplicaSet {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ReplicasSpec,
    }

    /// What a deployment or a replica set wants.
    pub struct ReplicasSpec {
        /// Pods; none means 1.
        pub replicas: Option<i32>,
        /// Its pods' labels.
        pub selector: Option<LabelSelector>,
        /// Its pods.
        pub template: PodTemplateSpec,
    }

    /// A stateful set.
    pub struct StatefulSet {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: StatefulSetSpec,
    }

    /// What a stateful set wants.
    pub struct StatefulSetSpec {
        /// Pods; none means 1.
        pub replicas: Option<i32>,
        /// Whether a pod waits until those before it run.
        pub pod_management_policy: PodManagementPolicy,
        /// The numbers of its pods.
        pub ordinals: Option<StatefulSetOrdinals>,
        /// The claims on volumes that each of its pods gets.
        pub volume_claim_templates: Vec<PersistentVolumeClaim>,
        /// Its pods' labels.
        pub selector: Option<LabelSelector>,
        /// Its pods.
        pub template: PodTemplateSpec,
    }

    /// The numbers of a stateful set's pods.
    pub struct StatefulSetOrdinals {
        /// The first.
        pub start: i32,
    }

    /// A pod on each node.
    pub struct DaemonSet {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: DaemonSetSpec,
    }

    /// What a daemon set wants.
    pub struct DaemonSetSpec {
        /// Its pods' labels.
        pub selector: Option<LabelSelector>,
        /// Its pods.
        pub template: PodTemplateSpec,
    }
}

words! {
    /// Whether a stateful set's pod waits until those before it run.
    pub enum PodManagementPolicy {
        /// It waits.
        OrderedReady = "OrderedReady",
        /// All are made at once.
        Parallel = "Parallel",
    }
}
