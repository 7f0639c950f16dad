//! JobSet: roles of child Jobs; and TrainJob, which its runtime turns into a JobSet of the same name.

use phalanx_objects::ObjectRef;
use phalanx_objects::core::ResourceRequirements;
use phalanx_objects::meta::Condition;
use phalanx_objects::workload::{
    CompletionMode, JobSet, JobSetSpec, ReplicatedJob, TrainJob, Trainer, TrainingRuntimeSpec,
    WorkloadKind,
};

use super::record::{Indexes, Numbers, Places, Rank, StandsFor};
use super::{Context, Declared, Expansion, RolePlan, batch, count, reference};
use crate::finding::Severity;

const CONTROLLER: &str = "jobset.sigs.k8s.io/jobset-controller";
const TRAINER: &str = "trainer.kubeflow.org/trainjob-controller";
const EXCLUSIVE: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";

/// The label of the role that a runtime's Job plays (`trainer`, `dataset-initializer`, …).
const STEP: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// Longest name of a Job, and of a pod with its random end.
const NAME_MAX: usize = 63;

/// A JobSet.
pub(super) fn job_set(set: &JobSet) -> Expansion<'_> {
    let ended = ["Completed", "Failed"];
    let mut expansion = Expansion {
        aside: !set.status.terminal_state.is_empty() || is_true(&set.status.conditions, &ended),
        attempt: count(set.status.restarts),
        ..Expansion::default()
    };
    expansion.suspended(set.spec.suspend, "spec.suspend", "JobSet");
    expansion.managed(set.spec.managed_by.as_deref(), &[CONTROLLER], "spec.managedBy", "JobSet");
    refusals(&set.metadata.name, &set.spec, &mut expansion);
    add_roles(&set.metadata.name, "spec", &set.spec.replicated_jobs, &mut expansion);
    let jobs = set.spec.replicated_jobs.iter().map(|job| &job.template.metadata);
    let exclusive = std::iter::once(&set.metadata).chain(jobs);
    if let Some(key) = exclusive.filter_map(|meta| meta.annotations.get(EXCLUSIVE)).next() {
        let message = format!(
            "Each of its Jobs is to have a domain of {key} for itself. Phalanx does not keep that \
             yet: its pods are placed wherever they fit."
        );
        expansion.due(Severity::Warning, &format!("metadata.annotations[{EXCLUSIVE:?}]"), message);
    }
    expansion
}

/// Whether one of the conditions is met.
fn is_true(conditions: &[Condition], kinds: &[&str]) -> bool {
    conditions.iter().any(|c| c.status == "True" && kinds.contains(&c.kind.as_str()))
}

/// The roles of a set's Jobs; `at` is where they stand.
fn add_roles<'a>(set: &str, at: &str, jobs: &'a [ReplicatedJob], expansion: &mut Expansion<'a>) {
    for (index, job) in jobs.iter().enumerate() {
        let spec = &job.template.spec;
        let number = job.replicas.map_or(1, count);
        let each = batch::wanted(spec, 0);
        let parts = spec.completions.map_or(each, count).max(each).max(1);
        let base = format!("{set}-{}", job.name);
        let template_at = format!("{at}.replicatedJobs[{index}].template.spec.template.spec");
        let wanted = number.saturating_mul(each);
        let indexed = spec.completion_mode != Some(CompletionMode::NonIndexed);
        let mut role = RolePlan::numbered(&job.name, &base, &spec.template, &template_at, wanted);
        role.indexes = Some(Indexes::all(number.saturating_mul(parts)));
        role.places =
            Places { numbers: Numbers::PartAndOwn(0), per: Some(parts), ..Places::plain(&base) };
        role.rank = if indexed { Rank::From(0) } else { Rank::None };
        role.deadline_seconds = spec.active_deadline_seconds;
        role.stands_for =
            Some(StandsFor::Jobs { base: base.as_str().into(), number: Some(number), each });
        let needs = job.depends_on.iter().find(|needs| needs.status == "Complete");
        let before = needs.and_then(|needs| jobs.iter().position(|job| job.name == needs.name));
        role.after = before.filter(|before| *before < index).and_then(|b| u16::try_from(b).ok());
        if let (Some(needs), Some(_)) = (needs, role.after) {
            let message = format!(
                "The pods of {} are made once {} is complete; until then they are not planned.",
                job.name, needs.name
            );
            expansion.due(
                Severity::Info,
                &format!("{at}.replicatedJobs[{index}].dependsOn"),
                message,
            );
        }
        expansion.roles.push(role);
    }
}

/// What the webhook refuses, and the API of Jobs.
fn refusals(name: &str, spec: &JobSetSpec, expansion: &mut Expansion<'_>) {
    for (index, job) in spec.replicated_jobs.iter().enumerate() {
        let at = format!("spec.replicatedJobs[{index}]");
        let mut indexed = job.template.spec.clone();
        indexed.completion_mode.get_or_insert(CompletionMode::Indexed);
        batch::refusals(&indexed, &format!("{at}.template.spec"), expansion);
        let last = job.replicas.map_or(1, count).saturating_sub(1);
        let child = format!("{name}-{}-{last}", job.name);
        let pods = job.template.spec.parallelism.map_or(1, count).saturating_sub(1);
        if child.len() > NAME_MAX || format!("{child}-{pods}-abcde").len() > NAME_MAX {
            let message = format!(
                "A JobSet is refused whose Jobs and pods have names of more than {NAME_MAX} \
                 characters, such as {child}-{pods}-abcde."
            );
            expansion.refuse(&format!("{at}.name"), message);
        }
        let earlier = |name: &str| spec.replicated_jobs[..index].iter().any(|job| job.name == name);
        if let Some(needs) = job.depends_on.iter().find(|needs| !earlier(&needs.name)) {
            let message = format!(
                "A JobSet is refused in which {} depends on {}, which does not stand before it.",
                job.name, needs.name
            );
            expansion.refuse(&format!("{at}.dependsOn"), message);
        }
    }
}

/// The runtime of a TrainJob.
pub(super) fn runtime_of(job: &TrainJob) -> ObjectRef {
    let runtime = &job.spec.runtime_ref;
    let kind = match runtime.kind.as_str() {
        "TrainingRuntime" => WorkloadKind::TrainingRuntime,
        _ => WorkloadKind::ClusterTrainingRuntime,
    };
    reference(kind, &job.metadata.namespace, &runtime.name)
}

/// A TrainJob, by the runtime that it names.
pub(super) fn train_job<'a>(job: &'a TrainJob, context: &Context<'_, 'a>) -> Expansion<'a> {
    let mut expansion = Expansion {
        aside: is_true(&job.status.conditions, &["Complete", "Failed"]),
        ..Expansion::default()
    };
    expansion.suspended(job.spec.suspend, "spec.suspend", "TrainJob");
    expansion.managed(job.spec.managed_by.as_deref(), &[TRAINER], "spec.managedBy", "TrainJob");
    let reference = runtime_of(job);
    let Some(runtime) = (context.runtime)(&reference) else {
        if !expansion.aside {
            let message = format!(
                "{} {} is not in the input. It says what pods the TrainJob has: without it none is \
                 planned.",
                reference.kind, reference.name
            );
            expansion.note(Severity::Warning, "spec.runtimeRef", message);
        }
        return expansion;
    };
    let changed =
        !job.spec.runtime_patches.is_empty() || !job.spec.pod_template_overrides.is_empty();
    if changed {
        let message = "What it changes of its runtime's pods is not read: they are planned as the \
                       runtime has them.";
        expansion.due(Severity::Warning, "spec", message);
    }
    let policy = runtime.spec.pod_group_policy.as_ref();
    if policy.is_some_and(|policy| policy.coscheduling.is_some() || policy.volcano.is_some()) {
        let field = format!("spec.podGroupPolicy of {} {}", reference.kind, reference.name);
        expansion.gang = Some(Declared::by(&field));
    }
    let jobs = merged(&runtime.spec, job.spec.trainer.as_ref());
    let name = &job.metadata.name;
    let mut made = Expansion::default();
    add_roles(name, "spec.template.spec", &jobs, &mut made);
    let set = StandsFor::Object(WorkloadKind::JobSet, Some(name.as_str().into()));
    for role in made.roles {
        let stands_for = Some(set.clone());
        expansion.roles.push(RolePlan { stands_for, ..role.into_owned() });
    }
    for (severity, _, message) in made.while_due {
        expansion.due(severity, "spec.runtimeRef", message);
    }
    expansion
}

/// The Jobs of a runtime with what a TrainJob changes of them.
fn merged(runtime: &TrainingRuntimeSpec, trainer: Option<&Trainer>) -> Vec<ReplicatedJob> {
    let mut jobs = runtime.template.spec.replicated_jobs.clone();
    let policy = runtime.ml_policy.as_ref();
    let mpi = policy.and_then(|policy| policy.mpi.as_ref());
    let launcher_too = mpi.is_some_and(|mpi| mpi.run_launcher_as_node);
    let own = trainer.and_then(|trainer| trainer.num_nodes);
    let default = policy.and_then(|policy| policy.num_nodes);
    for job in &mut jobs {
        let step = job.template.metadata.labels.get(STEP).map(String::as_str);
        let (trains, stepped) = (step == Some("trainer"), step.is_some());
        if stepped {
            job.replicas = Some(1);
        }
        let nodes = match (mpi.is_some(), own) {
            (false, own) if trains => Some(own.or(default).unwrap_or(1)),
            // The launcher is one of the nodes, but at least one more is made.
            (true, Some(own)) if job.name == "node" && launcher_too => Some((own - 1).max(1)),
            (true, Some(own)) if job.name == "node" => Some(own),
            // What the runtime says goes to the role that is marked as the trainer.
            (true, None) if trains => default,
            (false | true, _) => None,
        };
        if nodes.is_some() {
            job.template.spec.parallelism = nodes;
            job.template.spec.completions = nodes;
        }
        let resources = trainer.and_then(|trainer| trainer.resources_per_node.as_ref());
        if let Some(resources) =
            resources.filter(|_| trains || (job.name == "node" && launcher_too))
        {
            per_node(job, resources);
        }
    }
    jobs
}

/// Gives the container `node` these resources.
fn per_node(job: &mut ReplicatedJob, resources: &ResourceRequirements) {
    let containers = &mut job.template.spec.template.spec.containers;
    for container in containers.iter_mut().filter(|container| container.name == "node") {
        container.resources = resources.clone();
    }
}
