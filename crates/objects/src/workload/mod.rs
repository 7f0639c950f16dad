//! Workloads: the objects that make pods, one module a family. How many pods each wants, and which,
//! is for the crate that expands them.

mod apps;
mod appwrapper;
mod batch;
mod grove;
mod jobset;
mod kubeflow;
mod lws;
mod parts;
mod ray;
mod volcano;

use crate::macros::family;

pub use apps::*;
pub use appwrapper::*;
pub use batch::*;
pub use grove::*;
pub use jobset::*;
pub use kubeflow::*;
pub use lws::*;
pub use parts::{PodPart, PodPartMut};
pub use ray::*;
pub use volcano::*;

family! {
    /// The kind of a workload.
    WorkloadKind;
    /// A workload.
    Workload;
    /// A job.
    Job(Job): "Job", "job", ["batch/v1"];
    /// A job at set times.
    CronJob(CronJob): "CronJob", "cronjob" | "cj", ["batch/v1"];
    /// A deployment.
    Deployment(Deployment): "Deployment", "deployment" | "deploy", ["apps/v1"];
    /// A replica set.
    ReplicaSet(ReplicaSet): "ReplicaSet", "replicaset" | "rs", ["apps/v1"];
    /// A stateful set.
    StatefulSet(StatefulSet): "StatefulSet", "statefulset" | "sts", ["apps/v1"];
    /// A daemon set.
    DaemonSet(DaemonSet): "DaemonSet", "daemonset" | "ds", ["apps/v1"];
    /// Jobs that belong together.
    JobSet(JobSet): "JobSet", "jobset", ["jobset.x-k8s.io/v1alpha2"];
    /// Groups of a leader and its workers.
    LeaderWorkerSet(LeaderWorkerSet): "LeaderWorkerSet", "leaderworkerset" | "lws",
        ["leaderworkerset.x-k8s.io/v1"];
    /// A job of MPI.
    MpiJob(KubeflowJob): "MPIJob", "mpijob", ["kubeflow.org/v2beta1", "kubeflow.org/v1"];
    /// A job of PyTorch.
    PyTorchJob(KubeflowJob): "PyTorchJob", "pytorchjob", ["kubeflow.org/v1"];
    /// A job of TensorFlow.
    TfJob(KubeflowJob): "TFJob", "tfjob", ["kubeflow.org/v1"];
    /// A job of XGBoost.
    XgBoostJob(KubeflowJob): "XGBoostJob", "xgboostjob", ["kubeflow.org/v1"];
    /// A job of PaddlePaddle.
    PaddleJob(KubeflowJob): "PaddleJob", "paddlejob", ["kubeflow.org/v1"];
    /// A job of JAX.
    JaxJob(KubeflowJob): "JAXJob", "jaxjob", ["kubeflow.org/v1"];
    /// A training.
    TrainJob(TrainJob): "TrainJob", "trainjob", ["trainer.kubeflow.org/v1alpha1"];
    /// How trainings of a namespace are run.
    TrainingRuntime(TrainingRuntime): "TrainingRuntime", "trainingruntime",
        ["trainer.kubeflow.org/v1alpha1"];
    /// How trainings of all namespaces are run.
    ClusterTrainingRuntime(TrainingRuntime): "ClusterTrainingRuntime", "clustertrainingruntime",
        ["trainer.kubeflow.org/v1alpha1"];
    /// A cluster of Ray.
    RayCluster(RayCluster): "RayCluster", "raycluster", ["ray.io/v1", "ray.io/v1alpha1"];
    /// A job on a cluster of Ray.
    RayJob(RayJob): "RayJob", "rayjob", ["ray.io/v1", "ray.io/v1alpha1"];
    /// A service on a cluster of Ray.
    RayService(RayService): "RayService", "rayservice", ["ray.io/v1", "ray.io/v1alpha1"];
    /// A job of Volcano.
    VolcanoJob(VolcanoJob): "Job", "vcjob" | "vj", ["batch.volcano.sh/v1alpha1"];
    /// A set of cliques of Grove.
    PodCliqueSet(PodCliqueSet): "PodCliqueSet", "podcliqueset" | "pcs", ["grove.io/v1alpha1"];
    /// Objects that are queued as one.
    AppWrapper(AppWrapper): "AppWrapper", "appwrapper", ["workload.codeflare.dev/v1beta2"];
}

impl WorkloadKind {
    /// The group of its API.
    #[must_use]
    pub fn group(self) -> &'static str {
        let version = self.versions().first().copied().unwrap_or_default();
        version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The kind that an owner reference names; its version does not matter, and where it names no
    /// group the first kind of that name is meant.
    #[must_use]
    pub fn of_owner(api_version: &str, kind: &str) -> Option<Self> {
        let group = api_version.split_once('/').map_or(api_version, |(group, _)| group);
        let is =
            |known: &&Self| known.as_str() == kind && (group.is_empty() || known.group() == group);
        Self::ALL.iter().find(is).copied()
    }

    /// Whether objects of the kind live in a namespace.
    #[must_use]
    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Self::ClusterTrainingRuntime)
    }
}
