//! How a pod that exists is recognised: by its controller and by the labels that its workload's
//! controller gives it, never by its name where that ends in random letters.

use phalanx_objects::meta::{ObjectMeta, OwnerReference};
use phalanx_objects::workload::WorkloadKind;

/// What a pod's metadata say of the workload that it is part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recognised {
    /// The workloads that it may be part of, the nearest first: kind, name and UID, which is empty
    /// where nothing says it.
    pub(crate) chain: Vec<(WorkloadKind, String, String)>,
    /// Its role, as the controller spells it; empty where there is but one.
    pub(crate) role: String,
    /// The number of the part of its role that it is in: of the child Job, of the group.
    pub(crate) outer: Option<u32>,
    /// Its number in that part, or in its role.
    pub(crate) inner: Option<u32>,
    /// Which attempt of the workload it is of.
    pub(crate) attempt: u32,
}

const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// What a pod is of; none if no workload manages it.
pub(crate) fn recognise(meta: &ObjectMeta) -> Option<Recognised> {
    let owner = meta.controller()?;
    let mut found = Recognised::default();
    let direct = WorkloadKind::of_owner(&owner.api_version, &owner.kind);
    found.chain.extend(direct.map(|kind| (kind, owner.name.clone(), owner.uid.clone())));
    match direct {
        Some(WorkloadKind::Job) => found.of_job(meta),
        Some(WorkloadKind::ReplicaSet) => found.of_replica_set(meta, owner),
        Some(WorkloadKind::StatefulSet) => found.of_stateful_set(meta, owner),
        Some(
            WorkloadKind::MpiJob
            | WorkloadKind::PyTorchJob
            | WorkloadKind::TfJob
            | WorkloadKind::XgBoostJob
            | WorkloadKind::PaddleJob
            | WorkloadKind::JaxJob,
        ) => {
            let role = text(meta, "training.kubeflow.org/replica-type");
            let role = role.or_else(|| text(meta, "training.kubeflow.org/job-role"));
            found.role = role.unwrap_or_default().to_ascii_lowercase();
            found.inner = number(meta, "training.kubeflow.org/replica-index");
        }
        Some(WorkloadKind::RayCluster) => found.of_ray(meta),
        Some(WorkloadKind::VolcanoJob) => {
            found.role = text(meta, "volcano.sh/task-spec").unwrap_or_default().to_owned();
            found.inner = number(meta, "volcano.sh/task-index");
        }
        Some(
            WorkloadKind::CronJob
            | WorkloadKind::Deployment
            | WorkloadKind::DaemonSet
            | WorkloadKind::JobSet
            | WorkloadKind::LeaderWorkerSet
            | WorkloadKind::TrainJob
            | WorkloadKind::TrainingRuntime
            | WorkloadKind::ClusterTrainingRuntime
            | WorkloadKind::RayJob
            | WorkloadKind::RayService
            | WorkloadKind::PodCliqueSet,
        ) => {}
        // A pod that stands in the wrapper itself is a role of its own.
        Some(WorkloadKind::AppWrapper) => found.role.clone_from(&meta.name),
        None => found.of_clique(meta, owner),
    }
    if let Some(wrapper) = text(meta, "workload.codeflare.dev/appwrapper") {
        found.above(WorkloadKind::AppWrapper, wrapper);
    }
    (!found.chain.is_empty()).then_some(found)
}

impl Recognised {
    fn above(&mut self, kind: WorkloadKind, name: &str) {
        self.chain.push((kind, name.to_owned(), String::new()));
    }

    fn of_job(&mut self, meta: &ObjectMeta) {
        // Kubernetes gives both a label and an annotation; before 1.28 the annotation alone.
        let annotated = meta.annotations.get(COMPLETION_INDEX).and_then(|index| index.parse().ok());
        self.inner = annotated.or_else(|| number(meta, COMPLETION_INDEX));
        let jobset = |key: &str| text(meta, &format!("jobset.sigs.k8s.io/{key}"));
        if let Some(set) = jobset("jobset-name") {
            let uid = jobset("jobset-uid").unwrap_or_default().to_owned();
            self.chain.push((WorkloadKind::JobSet, set.to_owned(), uid));
            self.above(WorkloadKind::TrainJob, set);
            self.role = jobset("replicatedjob-name").unwrap_or_default().to_owned();
            self.outer = jobset("job-index").and_then(|index| index.parse().ok());
            self.attempt = jobset("restart-attempt").and_then(|n| n.parse().ok()).unwrap_or(0);
        } else if text(meta, "training.kubeflow.org/job-role") == Some("launcher") {
            let job = text(meta, "training.kubeflow.org/job-name").unwrap_or_default();
            self.above(WorkloadKind::MpiJob, job);
            "launcher".clone_into(&mut self.role);
        } else if self.ray_origin(meta) {
            "submitter".clone_into(&mut self.role);
        }
    }

    /// The Deployment of a ReplicaSet, by the hash in its name.
    fn of_replica_set(&mut self, meta: &ObjectMeta, owner: &OwnerReference) {
        let hash = text(meta, "pod-template-hash").unwrap_or_default();
        let name = owner.name.strip_suffix(hash).and_then(|name| name.strip_suffix('-'));
        if let Some(name) = name.filter(|_| !hash.is_empty()) {
            self.above(WorkloadKind::Deployment, name);
        }
    }

    fn of_stateful_set(&mut self, meta: &ObjectMeta, owner: &OwnerReference) {
        let lws = |key: &str| text(meta, &format!("leaderworkerset.sigs.k8s.io/{key}"));
        if let Some(set) = lws("name") {
            self.above(WorkloadKind::LeaderWorkerSet, set);
            self.outer = lws("group-index").and_then(|index| index.parse().ok());
            self.inner = lws("worker-index").and_then(|index| index.parse().ok());
            let role = if self.inner == Some(0) { "leader" } else { "worker" };
            role.clone_into(&mut self.role);
            return;
        }
        let ordinal = meta.name.strip_prefix(&owner.name).and_then(|rest| rest.strip_prefix('-'));
        let ordinal = ordinal.and_then(|number| number.parse().ok());
        self.inner = number(meta, "apps.kubernetes.io/pod-index").or(ordinal);
    }

    fn of_ray(&mut self, meta: &ObjectMeta) {
        self.role = text(meta, "ray.io/group").unwrap_or_default().to_owned();
        if text(meta, "ray.io/node-type") == Some("head") {
            "headgroup".clone_into(&mut self.role);
        }
        self.outer = number(meta, "ray.io/worker-group-replica-index");
        self.inner = number(meta, "ray.io/replica-host-index").or(self.outer.map(|_| 0));
        self.ray_origin(meta);
    }

    /// The RayJob or RayService for which a cluster or a Job was made.
    fn ray_origin(&mut self, meta: &ObjectMeta) -> bool {
        let Some(name) = text(meta, "ray.io/originated-from-cr-name") else { return false };
        match text(meta, "ray.io/originated-from-crd") {
            Some("RayJob") => self.above(WorkloadKind::RayJob, name),
            Some("RayService") => self.above(WorkloadKind::RayService, name),
            Some(_) | None => return false,
        }
        true
    }

    /// A pod of Grove's PodClique, which is not read: its labels say what it is.
    fn of_clique(&mut self, meta: &ObjectMeta, owner: &OwnerReference) {
        let set = text(meta, "app.kubernetes.io/part-of").unwrap_or_default();
        let clique = text(meta, "grove.io/podclique").unwrap_or(&owner.name);
        let own = clique.strip_prefix(set).and_then(|rest| rest.strip_prefix('-'));
        let Some(role) = own.filter(|_| owner.kind == "PodClique" && !set.is_empty()) else {
            return;
        };
        self.above(WorkloadKind::PodCliqueSet, set);
        role.clone_into(&mut self.role);
        self.inner = number(meta, "grove.io/podclique-pod-index");
    }
}

fn text<'a>(meta: &'a ObjectMeta, label: &str) -> Option<&'a str> {
    meta.labels.get(label).map(String::as_str).filter(|value| !value.is_empty())
}

fn number(meta: &ObjectMeta, label: &str) -> Option<u32> {
    text(meta, label)?.parse().ok()
}

/// The workload that manages a workload: kind, name and UID.
pub(crate) fn manager(
    kind: WorkloadKind,
    meta: &ObjectMeta,
) -> Option<(WorkloadKind, String, String)> {
    // The workers' StatefulSet of a group is owned by the group's leader, a pod.
    let set = text(meta, "leaderworkerset.sigs.k8s.io/name");
    if let Some(set) = set.filter(|_| kind == WorkloadKind::StatefulSet) {
        return Some((WorkloadKind::LeaderWorkerSet, set.to_owned(), String::new()));
    }
    let owner = meta.controller()?;
    let kind = WorkloadKind::of_owner(&owner.api_version, &owner.kind)?;
    Some((kind, owner.name.clone(), owner.uid.clone()))
}

/// Whether pods of `child` are pods of `parent`, which is asked for them. Otherwise a child that
/// exists is asked itself, and its parent makes no more of what it stands for.
pub(crate) fn absorbs(parent: WorkloadKind, child: WorkloadKind) -> bool {
    use WorkloadKind as K;
    matches!(
        (parent, child),
        (K::Deployment, K::ReplicaSet)
            | (K::JobSet | K::MpiJob | K::RayJob, K::Job)
            | (K::LeaderWorkerSet, K::StatefulSet)
    )
}
