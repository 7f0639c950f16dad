//! `jobset.x-k8s.io/v1alpha2`: JobSet; and `trainer.kubeflow.org/v1alpha1`: TrainJob and the runtimes
//! that turn one into a JobSet.

use std::collections::BTreeMap;

use super::batch::JobTemplateSpec;
use crate::core::{PodTemplateSpec, ResourceRequirements};
use crate::macros::{object, words};
use crate::meta::{Condition, ObjectMeta};

object! {
    /// Jobs that belong together.
    pub struct JobSet {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: JobSetSpec,
        /// What is.
        pub status: JobSetStatus,
    }

    /// What a job set wants.
    pub struct JobSetSpec {
        /// Its roles.
        pub replicated_jobs: Vec<ReplicatedJob>,
        /// In which order the roles start (deprecated).
        pub startup_policy: StartupPolicy,
        /// Whether it makes no pods for now.
        pub suspend: bool,
        /// The controller that makes its jobs; none means JobSet's own.
        pub managed_by: Option<String>,
    }

    /// A role of a job set: jobs that are alike.
    pub struct ReplicatedJob {
        /// Name.
        pub name: String,
        /// Jobs; none means 1.
        pub replicas: Option<i32>,
        /// The jobs.
        pub template: JobTemplateSpec,
        /// Roles that must be up or done before.
        pub depends_on: Vec<DependsOn>,
    }

    /// A role that must be up or done before another.
    pub struct DependsOn {
        /// Its name.
        pub name: String,
        /// `Ready` or `Complete`.
        pub status: String,
    }

    /// In which order the roles start.
    pub struct StartupPolicy {
        /// The order.
        pub startup_policy_order: StartupPolicyOrder,
    }

    /// What is known of a job set.
    pub struct JobSetStatus {
        /// How often it was started anew.
        pub restarts: i32,
        /// `Completed` or `Failed` once it has ended.
        pub terminal_state: String,
        /// How it stands.
        pub conditions: Vec<Condition>,
    }

    /// A training.
    pub struct TrainJob {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: TrainJobSpec,
        /// What is.
        pub status: TrainJobStatus,
    }

    /// What a training wants.
    pub struct TrainJobSpec {
        /// The runtime that it is made by.
        pub runtime_ref: RuntimeRef,
        /// What it changes of the runtime's trainer.
        pub trainer: Option<Trainer>,
        /// Whether it makes no pods for now.
        pub suspend: bool,
        /// The controller that runs it; none means the trainer's own.
        pub managed_by: Option<String>,
        /// Changes of the runtime's pods, of which it is only kept that there are some.
        pub runtime_patches: Vec<serde_json::Value>,
        /// The same as older versions have it.
        pub pod_template_overrides: Vec<serde_json::Value>,
    }

    /// The runtime of a training.
    pub struct RuntimeRef {
        /// Name.
        pub name: String,
        /// `ClusterTrainingRuntime`, which is meant by none, or `TrainingRuntime`.
        pub kind: String,
    }

    /// What a training changes of the runtime's trainer.
    pub struct Trainer {
        /// Pods.
        pub num_nodes: Option<i32>,
        /// Resources of the container `node`.
        pub resources_per_node: Option<ResourceRequirements>,
    }

    /// What is known of a training.
    pub struct TrainJobStatus {
        /// How it stands.
        pub conditions: Vec<Condition>,
    }

    /// How trainings of one sort are run.
    pub struct TrainingRuntime {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: TrainingRuntimeSpec,
    }

    /// How trainings of one sort are run.
    pub struct TrainingRuntimeSpec {
        /// Numbers of nodes and processes.
        pub ml_policy: Option<MlPolicy>,
        /// How the pods are scheduled together.
        pub pod_group_policy: Option<PodGroupPolicy>,
        /// The job set.
        pub template: JobSetTemplateSpec,
    }

    /// Numbers of nodes and processes.
    pub struct MlPolicy {
        /// Pods of the trainer; none means 1.
        pub num_nodes: Option<i32>,
        /// It is started by MPI.
        pub mpi: Option<MpiPolicy>,
    }

    /// How MPI starts it.
    pub struct MpiPolicy {
        /// Whether the launcher trains as well.
        pub run_launcher_as_node: bool,
    }

    /// How the pods of a runtime are scheduled together.
    pub struct PodGroupPolicy {
        /// By the coscheduling plugin.
        pub coscheduling: Option<BTreeMap<String, serde_json::Value>>,
        /// By Volcano.
        pub volcano: Option<BTreeMap<String, serde_json::Value>>,
    }

    /// The job set of a runtime.
    pub struct JobSetTemplateSpec {
        /// Labels and annotations of the job set.
        pub metadata: ObjectMeta,
        /// What the job set wants.
        pub spec: JobSetSpec,
    }
}

words! {
    /// In which order the roles of a job set start.
    pub enum StartupPolicyOrder {
        /// All at once.
        AnyOrder = "AnyOrder",
        /// Each when the one before is up.
        InOrder = "InOrder",
    }
}

impl ReplicatedJob {
    /// The pods of each of its jobs.
    #[must_use]
    pub fn pods(&self) -> &PodTemplateSpec {
        &self.template.spec.template
    }
}
