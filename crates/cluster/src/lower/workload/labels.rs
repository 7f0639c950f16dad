//! The labels that a kind's controller gives its pods, so far as all pods of a role have them and they
//! are known before the pods are: others may select by them. What is an index of each pod, a hash or a
//! random name is left out, for a wrong label is worse than none; an index is known where there is but
//! one pod.

use phalanx_objects::workload::{JobSet, Workload};

use super::{RolePlan, count};

/// Labels, in no order.
type Pairs = Vec<(&'static str, String)>;

/// The labels of the pods of a role of a workload.
#[expect(clippy::too_many_lines, reason = "all kinds in one match")]
pub(super) fn of_role(workload: &Workload, role: &RolePlan<'_>) -> Pairs {
    let name = &workload.metadata().name;
    let text = |text: &str| text.to_owned();
    match workload {
        Workload::Job(of) => {
            let mut all = of_job(name);
            if !of.metadata.uid.is_empty() {
                all.push(("batch.kubernetes.io/controller-uid", of.metadata.uid.clone()));
                all.push(("controller-uid", of.metadata.uid.clone()));
            }
            if role.wanted == 1
                && let Some(indexes) = &role.indexes
                && let [only] = indexes.open.as_slice()
                && only.len() == 1
            {
                all.push(("batch.kubernetes.io/job-completion-index", only.start.to_string()));
            }
            all
        }
        Workload::StatefulSet(_) => {
            let alone = role.wanted == 1;
            let pod = role.places.name(0);
            let index = pod.rsplit_once('-').map_or_else(String::new, |(_, index)| text(index));
            let all = vec![
                ("apps.kubernetes.io/pod-index", index),
                ("statefulset.kubernetes.io/pod-name", pod),
            ];
            if alone { all } else { Vec::new() }
        }
        Workload::JobSet(of) => of_job_set(of, role),
        Workload::TrainJob(_) => vec![
            ("jobset.sigs.k8s.io/jobset-name", name.clone()),
            ("jobset.sigs.k8s.io/replicatedjob-name", role.name.clone()),
        ],
        Workload::LeaderWorkerSet(of) => {
            let mut all = vec![("leaderworkerset.sigs.k8s.io/name", name.clone())];
            if role.name == "leader" {
                all.push(("leaderworkerset.sigs.k8s.io/worker-index", text("0")));
            }
            if of.spec.replicas.map_or(1, count) == 1 {
                all.push(("leaderworkerset.sigs.k8s.io/group-index", text("0")));
            }
            all
        }
        Workload::MpiJob(_) => {
            let mut all = vec![
                ("training.kubeflow.org/operator-name", text("mpi-operator")),
                ("training.kubeflow.org/job-name", name.clone()),
                ("training.kubeflow.org/job-role", role.name.clone()),
            ];
            if role.name == "launcher" {
                all.extend(of_job(&format!("{name}-launcher")));
            }
            all
        }
        Workload::PyTorchJob(_)
        | Workload::TfJob(_)
        | Workload::XgBoostJob(_)
        | Workload::PaddleJob(_)
        | Workload::JaxJob(_) => {
            let mut all = vec![
                ("training.kubeflow.org/job-name", name.clone()),
                ("training.kubeflow.org/replica-type", role.name.clone()),
            ];
            if role.wanted == 1 {
                all.push(("training.kubeflow.org/replica-index", text("0")));
            }
            all
        }
        Workload::RayCluster(_) => {
            let mut all = of_ray(role);
            all.push(("ray.io/cluster", name.clone()));
            all
        }
        // The name of the cluster ends in random letters.
        Workload::RayJob(_) if role.name == "submitter" => of_job(name),
        Workload::RayJob(_) | Workload::RayService(_) => of_ray(role),
        Workload::VolcanoJob(of) => {
            let namespace = of.metadata.namespace.as_str();
            let namespace = if namespace.is_empty() { "default" } else { namespace };
            vec![
                ("volcano.sh/job-name", name.clone()),
                ("volcano.sh/job-namespace", text(namespace)),
                ("volcano.sh/task-spec", role.name.clone()),
            ]
        }
        Workload::PodCliqueSet(_) => {
            let copy = role.name.split('-').next().unwrap_or_default();
            vec![
                ("app.kubernetes.io/managed-by", text("grove-operator")),
                ("app.kubernetes.io/part-of", name.clone()),
                ("grove.io/podclique", role.places.base.to_string()),
                ("grove.io/podcliqueset-replica-index", text(copy)),
            ]
        }
        // What their controllers add is a hash or a run's name; a runtime makes none, and what stands
        // in a wrapper has its own.
        Workload::CronJob(_)
        | Workload::Deployment(_)
        | Workload::ReplicaSet(_)
        | Workload::DaemonSet(_)
        | Workload::TrainingRuntime(_)
        | Workload::ClusterTrainingRuntime(_)
        | Workload::AppWrapper(_) => Vec::new(),
    }
}

fn of_job(name: &str) -> Pairs {
    vec![("batch.kubernetes.io/job-name", name.to_owned()), ("job-name", name.to_owned())]
}

fn of_job_set(set: &JobSet, role: &RolePlan<'_>) -> Pairs {
    let name = &set.metadata.name;
    let jobs = &set.spec.replicated_jobs;
    let of_role = jobs.iter().find(|job| job.name == role.name);
    let number = of_role.map_or(1, |job| job.replicas.map_or(1, count));
    let all_jobs = jobs.iter().map(|job| u64::from(job.replicas.map_or(1, count)));
    let mut all = vec![
        ("jobset.sigs.k8s.io/jobset-name", name.clone()),
        ("jobset.sigs.k8s.io/replicatedjob-name", role.name.clone()),
        ("jobset.sigs.k8s.io/replicatedjob-replicas", number.to_string()),
        ("jobset.sigs.k8s.io/global-replicas", all_jobs.sum::<u64>().to_string()),
        ("jobset.sigs.k8s.io/restart-attempt", count(set.status.restarts).to_string()),
    ];
    if number == 1 {
        all.push(("jobset.sigs.k8s.io/job-index", "0".to_owned()));
        all.extend(of_job(&format!("{name}-{}-0", role.name)));
    }
    if !set.metadata.uid.is_empty() {
        all.push(("jobset.sigs.k8s.io/jobset-uid", set.metadata.uid.clone()));
    }
    all
}

fn of_ray(role: &RolePlan<'_>) -> Pairs {
    let head = role.sign == "headgroup";
    vec![
        ("ray.io/is-ray-node", "yes".to_owned()),
        ("ray.io/node-type", if head { "head" } else { "worker" }.to_owned()),
        ("ray.io/group", role.sign.clone()),
    ]
}
