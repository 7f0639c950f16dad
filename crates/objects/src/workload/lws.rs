//! `leaderworkerset.x-k8s.io/v1`: LeaderWorkerSet.

use crate::core::PodTemplateSpec;
use crate::macros::{object, words};
use crate::meta::ObjectMeta;
use crate::storage::PersistentVolumeClaim;

object! {
    /// Groups of a leader and its workers.
    pub struct LeaderWorkerSet {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: LeaderWorkerSetSpec,
    }

    /// What a leader worker set wants.
    pub struct LeaderWorkerSetSpec {
        /// Groups; none means 1.
        pub replicas: Option<i32>,
        /// A group.
        pub leader_worker_template: LeaderWorkerTemplate,
        /// When the workers are made.
        pub startup_policy: LeaderStartupPolicy,
    }

    /// A group.
    pub struct LeaderWorkerTemplate {
        /// The leader; none means that it is like a worker.
        pub leader_template: Option<PodTemplateSpec>,
        /// A worker.
        pub worker_template: PodTemplateSpec,
        /// Pods, the leader included; none means 1.
        pub size: Option<i32>,
        /// Parts of a group.
        pub sub_group_policy: Option<SubGroupPolicy>,
        /// The claims on volumes that each of its pods gets.
        pub volume_claim_templates: Vec<PersistentVolumeClaim>,
    }

    /// Parts of a group.
    pub struct SubGroupPolicy {
        /// `LeaderWorker`, which is meant by none, or `LeaderExcluded`.
        pub sub_group_policy_type: String,
        /// Pods of a part.
        pub sub_group_size: Option<i32>,
    }
}

words! {
    /// When the workers of a group are made.
    pub enum LeaderStartupPolicy {
        /// Once the leader exists.
        LeaderCreated = "LeaderCreated",
        /// Once the leader is ready.
        LeaderReady = "LeaderReady",
    }
}
