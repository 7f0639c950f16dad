//! `kubeflow.org`: the jobs of the training operator (v1) and MPIJob (v2beta1, and v1 before it). They
//! differ in the name of the map that holds their roles.

use std::collections::BTreeMap;

use crate::core::PodTemplateSpec;
use crate::macros::{object, words};
use crate::meta::{Condition, ObjectMeta};

/// Roles by name, such as `Master` and `Worker`.
pub type ReplicaSpecs = BTreeMap<String, ReplicaSpec>;

object! {
    /// A job of one of these kinds.
    pub struct KubeflowJob {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: KubeflowJobSpec,
        /// What is.
        pub status: KubeflowJobStatus,
    }

    /// What such a job wants. Exactly one of the maps of roles is that of its kind.
    pub struct KubeflowJobSpec {
        /// What all kinds have in common.
        pub run_policy: RunPolicy,
        /// Whether the number of workers may change.
        pub elastic_policy: Option<ElasticPolicy>,
        /// Roles of a PyTorchJob.
        pub pytorch_replica_specs: ReplicaSpecs,
        /// Roles of a TFJob.
        pub tf_replica_specs: ReplicaSpecs,
        /// Roles of an XGBoostJob.
        pub xgb_replica_specs: ReplicaSpecs,
        /// Roles of a PaddleJob.
        pub paddle_replica_specs: ReplicaSpecs,
        /// Roles of a JAXJob.
        pub jax_replica_specs: ReplicaSpecs,
        /// Roles of an MPIJob.
        pub mpi_replica_specs: ReplicaSpecs,
        /// Whether the launcher of an MPIJob computes as well.
        pub run_launcher_as_worker: bool,
        /// When the launcher of an MPIJob is made.
        pub launcher_creation_policy: LauncherCreationPolicy,
    }

    /// A role: pods that are alike.
    pub struct ReplicaSpec {
        /// Pods; what none means depends on the kind.
        pub replicas: Option<i32>,
        /// The pods.
        pub template: PodTemplateSpec,
        /// What becomes of a pod that ends, such as `OnFailure`.
        pub restart_policy: String,
    }

    /// What all kinds have in common.
    pub struct RunPolicy {
        /// Whether it makes no pods for now.
        pub suspend: bool,
        /// The controller that makes its pods; none means the operator's own.
        pub managed_by: Option<String>,
        /// Limit of the run in seconds.
        pub active_deadline_seconds: Option<i64>,
        /// How the pods are scheduled together.
        pub scheduling_policy: Option<SchedulingPolicy>,
    }

    /// How the pods are scheduled together.
    pub struct SchedulingPolicy {
        /// Fewest pods that start together.
        pub min_available: Option<i32>,
    }

    /// Whether the number of workers may change.
    pub struct ElasticPolicy {
        /// Fewest.
        pub min_replicas: Option<i32>,
        /// Most.
        pub max_replicas: Option<i32>,
    }

    /// What is known of such a job.
    pub struct KubeflowJobStatus {
        /// How it stands.
        pub conditions: Vec<Condition>,
    }
}

words! {
    /// When the launcher of an MPIJob is made.
    pub enum LauncherCreationPolicy {
        /// At once.
        AtStartup = "AtStartup",
        /// When the workers are ready.
        WaitForWorkersReady = "WaitForWorkersReady",
    }
}

impl KubeflowJobSpec {
    /// The maps of roles, each with the name of its field.
    #[must_use]
    pub fn maps(&self) -> [(&'static str, &ReplicaSpecs); 6] {
        [
            ("pytorchReplicaSpecs", &self.pytorch_replica_specs),
            ("tfReplicaSpecs", &self.tf_replica_specs),
            ("xgbReplicaSpecs", &self.xgb_replica_specs),
            ("paddleReplicaSpecs", &self.paddle_replica_specs),
            ("jaxReplicaSpecs", &self.jax_replica_specs),
            ("mpiReplicaSpecs", &self.mpi_replica_specs),
        ]
    }

    /// The same, to be changed.
    pub fn maps_mut(&mut self) -> [(&'static str, &mut ReplicaSpecs); 6] {
        [
            ("pytorchReplicaSpecs", &mut self.pytorch_replica_specs),
            ("tfReplicaSpecs", &mut self.tf_replica_specs),
            ("xgbReplicaSpecs", &mut self.xgb_replica_specs),
            ("paddleReplicaSpecs", &mut self.paddle_replica_specs),
            ("jaxReplicaSpecs", &mut self.jax_replica_specs),
            ("mpiReplicaSpecs", &mut self.mpi_replica_specs),
        ]
    }
}
