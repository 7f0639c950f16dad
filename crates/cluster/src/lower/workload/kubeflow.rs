//! `kubeflow.org`: PyTorchJob and the other jobs of the training operator, and MPIJob. Each pod's name
//! is known beforehand, but for the launcher of MPI, which is the pod of a child Job.

use phalanx_objects::workload::{KubeflowJob, LauncherCreationPolicy, ReplicaSpec, WorkloadKind};

use super::record::{Numbers, Places, Rank, StandsFor};
use super::{Declared, Expansion, RolePlan, count};
use crate::finding::Severity;

const TRAINING_OPERATOR: &str = "kubeflow.org/training-operator";
const MPI_OPERATOR: &str = "kubeflow.org/mpi-operator";

/// What the kinds differ in.
pub(super) struct Sort {
    kind: WorkloadKind,
    /// The map of the roles.
    field: &'static str,
    /// The roles, in order.
    roles: &'static [&'static str],
    /// The container that must be there.
    container: &'static str,
}

pub(super) const PYTORCH: Sort = Sort {
    kind: WorkloadKind::PyTorchJob,
    field: "pytorchReplicaSpecs",
    roles: &["Master", "Worker"],
    container: "pytorch",
};

pub(super) const TENSORFLOW: Sort = Sort {
    kind: WorkloadKind::TfJob,
    field: "tfReplicaSpecs",
    roles: &["Chief", "Master", "PS", "Worker", "Evaluator"],
    container: "tensorflow",
};

pub(super) const XGBOOST: Sort = Sort {
    kind: WorkloadKind::XgBoostJob,
    field: "xgbReplicaSpecs",
    roles: &["Master", "Worker"],
    container: "xgboost",
};

pub(super) const PADDLE: Sort = Sort {
    kind: WorkloadKind::PaddleJob,
    field: "paddleReplicaSpecs",
    roles: &["Master", "Worker"],
    container: "paddle",
};

pub(super) const JAX: Sort = Sort {
    kind: WorkloadKind::JaxJob,
    field: "jaxReplicaSpecs",
    roles: &["Worker"],
    container: "jax",
};

const MPI: Sort = Sort {
    kind: WorkloadKind::MpiJob,
    field: "mpiReplicaSpecs",
    roles: &["Launcher", "Worker"],
    container: "",
};

/// A role of the job's map: what it is called there, in order of the kind's roles.
struct Found<'a> {
    role: &'static str,
    at: String,
    spec: &'a ReplicaSpec,
}

fn found<'a>(job: &'a KubeflowJob, sort: &Sort, expansion: &mut Expansion<'_>) -> Vec<Found<'a>> {
    let maps = job.spec.maps();
    let map = maps.into_iter().find(|(field, _)| *field == sort.field).map(|(_, map)| map);
    let mut all = Vec::new();
    for (key, spec) in map.into_iter().flatten() {
        let at = format!("spec.{}.{key}", sort.field);
        match sort.roles.iter().position(|role| role.eq_ignore_ascii_case(key)) {
            Some(order) => all.push((order, Found { role: sort.roles[order], at, spec })),
            None => {
                let message = format!(
                    "{key} is no role of this kind. Its roles are {}; a job with another is refused.",
                    sort.roles.join(", ")
                );
                expansion.refuse(&at, message);
            }
        }
    }
    all.sort_by_key(|(order, _)| *order);
    all.into_iter().map(|(_, found)| found).collect()
}

/// What all these kinds have in common.
fn begun<'a>(job: &KubeflowJob, operator: &str, kind: WorkloadKind) -> Expansion<'a> {
    let done = |kind: &str| kind == "Succeeded" || kind == "Failed";
    let ended = job.status.conditions.iter().any(|c| c.status == "True" && done(&c.kind));
    let mut expansion =
        Expansion { aside: ended, keeps_leaving: true, keeps_ended: true, ..Expansion::default() };
    let policy = &job.spec.run_policy;
    expansion.suspended(policy.suspend, "spec.runPolicy.suspend", kind.as_str());
    let by = policy.managed_by.as_deref();
    expansion.managed(by, &[operator], "spec.runPolicy.managedBy", kind.as_str());
    let least = policy.scheduling_policy.as_ref().and_then(|policy| policy.min_available);
    if let Some(least) = least.filter(|least| *least < 0) {
        let message = format!(
            "{least} is no number of pods that start at once, though nobody refuses it: it is read as 0, \
             and none waits for the others."
        );
        expansion.note(Severity::Warning, "spec.runPolicy.schedulingPolicy.minAvailable", message);
    }
    expansion.gang = policy.scheduling_policy.as_ref().map(|policy| {
        let declared = Declared::by("spec.runPolicy.schedulingPolicy");
        Declared { min: policy.min_available.map(count), ..declared }
    });
    expansion
}

/// A job of the training operator.
pub(super) fn training_job<'a>(sort: &Sort, job: &'a KubeflowJob) -> Expansion<'a> {
    let kind = sort.kind;
    let mut expansion = begun(job, TRAINING_OPERATOR, kind);
    let roles = found(job, sort, &mut expansion);
    refusals(job, sort, &roles, &mut expansion);
    let masters = roles.iter().filter(|found| found.role == "Master");
    let masters = masters.map(|found| found.spec.replicas.map_or(1, count));
    let masters = masters.fold(0, u32::saturating_add);
    for Found { role, at, spec } in roles {
        let name = role.to_ascii_lowercase();
        let base = format!("{}-{name}", job.metadata.name);
        let wanted = spec.replicas.map_or(1, count);
        let at = format!("{at}.template.spec");
        // TensorFlow's pods are known by role and index; the others' are ranked, the master first.
        let first = if role == "Worker" && kind != WorkloadKind::TfJob { masters } else { 0 };
        expansion.roles.push(RolePlan {
            rank: Rank::From(first),
            deadline_seconds: job.spec.run_policy.active_deadline_seconds,
            ..RolePlan::numbered(&name, &base, &spec.template, &at, wanted)
        });
    }
    expansion
}

/// What the webhook refuses.
fn refusals(job: &KubeflowJob, sort: &Sort, roles: &[Found<'_>], expansion: &mut Expansion<'_>) {
    let (kind, word) = (sort.kind, sort.kind.as_str());
    let of = |role: &str| roles.iter().find(|found| found.role == role);
    if roles.is_empty() {
        let message = format!("A {word} without roles is refused.");
        expansion.refuse(&format!("spec.{}", sort.field), message);
    }
    for Found { role, at, spec } in roles {
        let named = spec.template.spec.containers.iter().any(|c| c.name == sort.container);
        if !named {
            let message = format!(
                "No container of {role} is called {}; a {word} without it is refused.",
                sort.container
            );
            expansion.refuse(&format!("{at}.template.spec.containers"), message);
        }
        if kind == WorkloadKind::PyTorchJob && *role == "Master" && spec.replicas != Some(1) {
            let message = "A PyTorchJob whose Master does not say `replicas: 1` is refused.";
            expansion.refuse(&format!("{at}.replicas"), message);
        }
        if kind == WorkloadKind::PyTorchJob && *role == "Worker" && spec.replicas == Some(0) {
            let message = "A PyTorchJob whose Worker has no pods is refused.";
            expansion.refuse(&format!("{at}.replicas"), message);
        }
    }
    if kind == WorkloadKind::XgBoostJob && of("Master").is_none() {
        expansion.refuse("spec.xgbReplicaSpecs", "An XGBoostJob without a Master is refused.");
    }
    if kind == WorkloadKind::TfJob && of("Chief").is_some() && of("Master").is_some() {
        let message = "A TFJob with both a Chief and a Master is refused.";
        expansion.refuse("spec.tfReplicaSpecs", message);
    }
    if job.spec.elastic_policy.is_some() && of("Worker").is_none() {
        let message = "A PyTorchJob with an elasticPolicy and without a Worker is refused.";
        expansion.refuse("spec.elasticPolicy", message);
    }
}

/// An MPIJob.
pub(super) fn mpi_job(job: &KubeflowJob) -> Expansion<'_> {
    let mut expansion = begun(job, MPI_OPERATOR, MPI.kind);
    let roles = found(job, &MPI, &mut expansion);
    let works = job.spec.run_launcher_as_worker;
    let launcher = roles.iter().find(|found| found.role == "Launcher");
    if launcher.is_none_or(|found| found.spec.replicas.is_some_and(|n| n != 1)) {
        let message = "An MPIJob has exactly one Launcher; one with another number is refused.";
        expansion.refuse("spec.mpiReplicaSpecs", message);
    }
    for Found { role, at, spec } in roles {
        let name = role.to_ascii_lowercase();
        let base = format!("{}-{name}", job.metadata.name);
        let template_at = format!("{at}.template.spec");
        if role == "Launcher" {
            let number = None;
            let stands_for = StandsFor::Jobs { base: base.as_str().into(), number, each: 1 };
            expansion.roles.push(RolePlan {
                rank: if works { Rank::From(0) } else { Rank::None },
                stands_for: Some(stands_for),
                ..RolePlan::numbered(&name, &base, &spec.template, &template_at, 1)
            });
            continue;
        }
        let wanted = spec.replicas.map_or(0, count);
        if wanted == 0 {
            let message = "An MPIJob whose Worker has no `replicas` is refused.";
            expansion.refuse(&format!("{at}.replicas"), message);
        }
        let first = u32::from(works);
        expansion.roles.push(RolePlan {
            places: Places { numbers: Numbers::Own(0), first_label: first, ..Places::plain(&base) },
            rank: Rank::From(first),
            ..RolePlan::numbered(&name, &base, &spec.template, &template_at, wanted)
        });
    }
    if job.spec.launcher_creation_policy == LauncherCreationPolicy::WaitForWorkersReady {
        let message = "The launcher is made once the workers are ready. It is planned beside them.";
        expansion.due(Severity::Info, "spec.launcherCreationPolicy", message);
    }
    expansion
}
