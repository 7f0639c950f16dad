//! `batch.volcano.sh/v1alpha1`: Volcano's Job.

use crate::core::PodTemplateSpec;
use crate::macros::object;
use crate::meta::ObjectMeta;
use crate::scheduling::NetworkTopology;

object! {
    /// A job of Volcano.
    pub struct VolcanoJob {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: VolcanoJobSpec,
        /// What is.
        pub status: VolcanoJobStatus,
    }

    /// What a job of Volcano wants.
    pub struct VolcanoJobSpec {
        /// Who places the pods; empty means `volcano`.
        pub scheduler_name: String,
        /// Its roles.
        pub tasks: Vec<VolcanoTask>,
        /// Fewest pods that start together; none means the sum over the tasks.
        pub min_available: Option<i32>,
        /// Where it is to be.
        pub network_topology: Option<NetworkTopology>,
        /// Name of the priority class of the job.
        pub priority_class_name: String,
    }

    /// A role: pods that are alike.
    pub struct VolcanoTask {
        /// Name; empty means `default` and its number.
        pub name: String,
        /// Pods.
        pub replicas: i32,
        /// Fewest that start together; none means all.
        pub min_available: Option<i32>,
        /// The pods.
        pub template: PodTemplateSpec,
        /// Tasks that must be up before.
        pub depends_on: Option<VolcanoDependsOn>,
        /// Parts of the task.
        pub partition_policy: Option<VolcanoPartitionPolicy>,
    }

    /// Tasks that must be up before another.
    pub struct VolcanoDependsOn {
        /// Their names.
        pub name: Vec<String>,
    }

    /// Parts of a task.
    pub struct VolcanoPartitionPolicy {
        /// Parts.
        pub total_partitions: i32,
        /// Pods of a part.
        pub partition_size: i32,
        /// Fewest parts that start together.
        pub min_partitions: i32,
        /// Where each part is to be.
        pub network_topology: Option<NetworkTopology>,
    }

    /// What is known of a job of Volcano.
    pub struct VolcanoJobStatus {
        /// Where it stands.
        pub state: VolcanoJobState,
        /// How many pods of each task are in which phase.
        pub task_status_count: std::collections::BTreeMap<String, VolcanoTaskState>,
    }

    /// Where a job of Volcano stands.
    pub struct VolcanoJobState {
        /// Such as `Pending`, `Running`, `Completed`, `Failed`, `Terminated` and `Aborted`.
        pub phase: String,
    }

    /// How many pods of a task are in which phase.
    pub struct VolcanoTaskState {
        /// By phase.
        pub phase: std::collections::BTreeMap<String, i32>,
    }
}
