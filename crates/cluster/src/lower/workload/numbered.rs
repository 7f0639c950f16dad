//! The labels by which a controller numbers the pods of a role. Where a rule of some pod selects by one,
//! each pod of the role stands alone, with its own labels; else they are not worked out at all. What all
//! pods of a role have is [`labels`](super::labels)'s.

use phalanx_engine::{GroupKey, Shared};
use phalanx_objects::workload::WorkloadKind;

use super::super::Lowering;
use super::super::meant::PodLabels;
use super::exclusive::can_be_cut;
use super::marks::Wish;
use super::record::{Rank, RoleRecord};

const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const OLD_JOB_NAME: &str = "job-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const JOB_INDEX: &str = "jobset.sigs.k8s.io/job-index";
const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";
const REPLICA_INDEX: &str = "training.kubeflow.org/replica-index";
const TASK_INDEX: &str = "volcano.sh/task-index";
const CLIQUE_INDEX: &str = "grove.io/podclique-pod-index";

/// The labels of a kind that differ from pod to pod.
pub(in crate::lower) fn keys(kind: WorkloadKind) -> &'static [&'static str] {
    match kind {
        WorkloadKind::Job => &[COMPLETION_INDEX],
        WorkloadKind::StatefulSet => &[POD_INDEX, POD_NAME],
        WorkloadKind::JobSet | WorkloadKind::TrainJob => {
            &[COMPLETION_INDEX, JOB_INDEX, JOB_NAME, OLD_JOB_NAME]
        }
        WorkloadKind::LeaderWorkerSet => &[GROUP_INDEX, WORKER_INDEX],
        WorkloadKind::MpiJob
        | WorkloadKind::PyTorchJob
        | WorkloadKind::TfJob
        | WorkloadKind::XgBoostJob
        | WorkloadKind::PaddleJob
        | WorkloadKind::JaxJob => &[REPLICA_INDEX],
        WorkloadKind::VolcanoJob => &[TASK_INDEX],
        WorkloadKind::PodCliqueSet => &[CLIQUE_INDEX],
        // A run is a Job of its own; and Ray numbers its pods where a gate of its operator is on.
        WorkloadKind::CronJob
        | WorkloadKind::Deployment
        | WorkloadKind::ReplicaSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::TrainingRuntime
        | WorkloadKind::ClusterTrainingRuntime
        | WorkloadKind::RayCluster
        | WorkloadKind::RayJob
        | WorkloadKind::RayService
        | WorkloadKind::AppWrapper => &[],
    }
}

/// Whether a label is one of those.
pub(in crate::lower) fn is_number(key: &str) -> bool {
    WorkloadKind::ALL.iter().any(|kind| keys(*kind).contains(&key))
}

/// What the labels of the pod with this index in its role are.
fn of_pod(kind: WorkloadKind, role: &RoleRecord, index: u32) -> Vec<(&'static str, String)> {
    let places = &role.places;
    let per = places.per.unwrap_or(u32::MAX).max(1);
    let (part, inner) = (index / per, u64::from(index % per) + u64::from(places.first_label));
    let (part, inner) = (part.to_string(), inner.to_string());
    let [first, ..] = keys(kind) else { return Vec::new() };
    match kind {
        WorkloadKind::JobSet | WorkloadKind::TrainJob => {
            let name = format!("{}-{part}", places.base);
            let mut all = vec![(JOB_NAME, name.clone()), (OLD_JOB_NAME, name), (JOB_INDEX, part)];
            all.extend((role.rank != Rank::None).then_some((COMPLETION_INDEX, inner)));
            all
        }
        WorkloadKind::LeaderWorkerSet => vec![(GROUP_INDEX, part), (WORKER_INDEX, inner)],
        WorkloadKind::StatefulSet => vec![(POD_INDEX, inner), (POD_NAME, places.name(index))],
        WorkloadKind::Job if role.indexes.is_none() => Vec::new(),
        WorkloadKind::Job
        | WorkloadKind::CronJob
        | WorkloadKind::Deployment
        | WorkloadKind::ReplicaSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::MpiJob
        | WorkloadKind::PyTorchJob
        | WorkloadKind::TfJob
        | WorkloadKind::XgBoostJob
        | WorkloadKind::PaddleJob
        | WorkloadKind::JaxJob
        | WorkloadKind::TrainingRuntime
        | WorkloadKind::ClusterTrainingRuntime
        | WorkloadKind::RayCluster
        | WorkloadKind::RayJob
        | WorkloadKind::RayService
        | WorkloadKind::VolcanoJob
        | WorkloadKind::PodCliqueSet
        | WorkloadKind::AppWrapper => vec![(*first, inner)],
    }
}

impl Lowering {
    /// Whether each pod of so many is to stand alone, for a rule selects by the number of one. Pods that
    /// are kept together slice by slice are counted in their role, which is not cut.
    pub(super) fn is_numbered(
        &self,
        key: &GroupKey,
        kind: WorkloadKind,
        role: &RoleRecord,
        pods: usize,
    ) -> bool {
        let few = u32::try_from(pods).is_ok_and(can_be_cut);
        few && self.number_asked(kind).is_some() && !self.is_sliced(key, role)
    }

    /// The label by which pods of a role are numbered and a rule selects, though it is not looked at: they
    /// are kept together slice by slice.
    pub(in crate::lower) fn unnumbered(
        &self,
        key: &GroupKey,
        kind: WorkloadKind,
        role: &RoleRecord,
    ) -> Option<&'static str> {
        self.number_asked(kind).filter(|_| self.is_sliced(key, role))
    }

    fn number_asked(&self, kind: WorkloadKind) -> Option<&'static str> {
        keys(kind).iter().copied().find(|key| self.meant.asks_number(key))
    }

    fn is_sliced(&self, key: &GroupKey, role: &RoleRecord) -> bool {
        let in_slices = |wishes: &[Wish]| wishes.iter().any(|wish| wish.segment.is_some());
        let declared = self.objects.workloads.get(key).and_then(|record| record.gang.as_ref());
        role.marks.as_deref().is_some_and(|marks| in_slices(&marks.wishes))
            || declared.is_some_and(|gang| in_slices(&gang.wishes))
    }

    /// The labels of the pods of a run.
    pub(in crate::lower) fn labels_of_run(
        &mut self,
        key: &GroupKey,
        kind: WorkloadKind,
        role: &RoleRecord,
        run: &[u32],
    ) -> Shared<PodLabels> {
        let [index] = run else { return role.labels.clone() };
        if !self.is_numbered(key, kind, role, 1) {
            return role.labels.clone();
        }
        let own = of_pod(kind, role, *index);
        let given = role.labels.labels.iter();
        let given = given.filter(|(key, _)| !own.iter().any(|(name, _)| key.as_str() == *name));
        let mut labels: Vec<_> = given.cloned().collect();
        let names = &mut self.interned.names;
        labels.extend(own.iter().map(|(key, value)| (names.get(key), names.get(value))));
        labels.sort();
        let namespace = role.labels.namespace.clone();
        Shared::new(PodLabels { namespace, labels: labels.into() })
    }

    /// Marks the workloads whose pods are numbered: rules select by other numbers than before.
    pub(in crate::lower) fn mark_numbered(&mut self) {
        let all = self.objects.workloads.iter();
        let numbered = all.filter(|(_, record)| !keys(record.kind).is_empty());
        self.dirty.workloads.extend(numbered.map(|(key, _)| key.clone()));
    }
}
