//! `ray.io/v1`: RayCluster, RayJob and RayService.

use crate::core::PodTemplateSpec;
use crate::macros::{object, words};
use crate::meta::ObjectMeta;

object! {
    /// A cluster of Ray.
    pub struct RayCluster {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: RayClusterSpec,
    }

    /// What a cluster of Ray wants.
    pub struct RayClusterSpec {
        /// The head, always one pod.
        pub head_group_spec: HeadGroupSpec,
        /// The workers.
        pub worker_group_specs: Vec<WorkerGroupSpec>,
        /// Whether the number of workers follows the load.
        pub enable_in_tree_autoscaling: Option<bool>,
        /// Whether it makes no pods for now.
        pub suspend: bool,
        /// The controller that makes its pods; none means the operator's own.
        pub managed_by: Option<String>,
    }

    /// The head.
    pub struct HeadGroupSpec {
        /// Its pod.
        pub template: PodTemplateSpec,
    }

    /// Workers that are alike.
    pub struct WorkerGroupSpec {
        /// Name.
        pub group_name: String,
        /// Workers; none means the fewest.
        pub replicas: Option<i32>,
        /// Fewest; none means 0.
        pub min_replicas: Option<i32>,
        /// Most; none means any number.
        pub max_replicas: Option<i32>,
        /// Pods of one worker; none means 1.
        pub num_of_hosts: Option<i32>,
        /// Whether it makes no pods for now.
        pub suspend: bool,
        /// The pods.
        pub template: PodTemplateSpec,
    }

    /// A job on a cluster of Ray that is made for it, or on another.
    pub struct RayJob {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: RayJobSpec,
        /// What is.
        pub status: RayJobStatus,
    }

    /// What a job of Ray wants.
    pub struct RayJobSpec {
        /// The cluster that is made for it.
        pub ray_cluster_spec: Option<RayClusterSpec>,
        /// Labels of a cluster that there is.
        pub cluster_selector: crate::meta::Labels,
        /// Who hands it in.
        pub submission_mode: SubmissionMode,
        /// The pod that hands it in.
        pub submitter_pod_template: Option<PodTemplateSpec>,
        /// Whether the cluster goes when the job ends.
        pub shutdown_after_job_finishes: bool,
        /// Whether it makes no pods for now.
        pub suspend: bool,
        /// The controller that makes its pods; none means the operator's own.
        pub managed_by: Option<String>,
    }

    /// What is known of a job of Ray.
    pub struct RayJobStatus {
        /// Such as `Running`, `Complete` and `Failed`.
        pub job_deployment_status: String,
    }

    /// A service on a cluster of Ray.
    pub struct RayService {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: RayServiceSpec,
    }

    /// What a service of Ray wants.
    pub struct RayServiceSpec {
        /// The cluster that is made for it.
        pub ray_cluster_config: RayClusterSpec,
        /// The controller that makes its pods; none means the operator's own.
        pub managed_by: Option<String>,
    }
}

words! {
    /// Who hands a job in to its cluster.
    pub enum SubmissionMode {
        /// A pod of its own.
        K8sJobMode = "K8sJobMode",
        /// The operator.
        HttpMode = "HTTPMode",
        /// The user.
        InteractiveMode = "InteractiveMode",
        /// A container in the head.
        SidecarMode = "SidecarMode",
    }
}
