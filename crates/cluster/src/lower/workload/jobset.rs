//! JobSet: roles of child Jobs; and TrainJob, which its runtime turns into a JobSet of the same name.

use std::ops::Range;

use phalanx_objects::ObjectRef;
use phalanx_objects::core::{ResourceRequirements, TaintEffect, Toleration, TolerationOperator};
use phalanx_objects::meta::Condition;
use phalanx_objects::workload::{
    CompletionMode, JobSet, JobSetSpec, ReplicatedJob, StartupPolicyOrder, TrainJob, Trainer,
    TrainingRuntimeSpec, WorkloadKind,
};

use super::exclusive::{self, Alone};
use super::record::{Indexes, Numbers, Places, Rank, StandsFor};
use super::{Context, Declared, Expansion, RolePlan, batch, count, reference};
use crate::finding::Severity;

const CONTROLLER: &str = "jobset.sigs.k8s.io/jobset-controller";
const TRAINER: &str = "trainer.kubeflow.org/trainjob-controller";
const EXCLUSIVE: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";
/// Beside it: nodes are labelled and tainted for Jobs by hand.
const SELECTED: &str = "alpha.jobset.sigs.k8s.io/node-selector";
const SET_NAME: &str = "jobset.sigs.k8s.io/jobset-name";
const NAMESPACED_JOB: &str = "alpha.jobset.sigs.k8s.io/namespaced-job";
const NO_SCHEDULE: &str = "alpha.jobset.sigs.k8s.io/no-schedule";

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
    if set.spec.startup_policy.startup_policy_order == StartupPolicyOrder::InOrder
        && set.spec.replicated_jobs.len() > 1
    {
        let message = "Each of its roles is made once the one before it is ready. All are planned \
                       together, as they run together.";
        expansion.due(Severity::Info, "spec.startupPolicy", message);
    }
    keep_apart(set, &mut expansion);
    expansion
}

/// Gives each Job the domain that it is to have for itself, as JobSet's webhook does.
fn keep_apart<'a>(set: &'a JobSet, expansion: &mut Expansion<'a>) {
    let jobs = &set.spec.replicated_jobs;
    let of = |job: &'a ReplicatedJob, name: &str| {
        let own = job.template.metadata.annotations.get(name);
        own.or_else(|| set.metadata.annotations.get(name))
    };
    let field = format!("metadata.annotations[{EXCLUSIVE:?}]");
    let number = |job: &ReplicatedJob| job.replicas.map_or(1, count);
    let alone = || jobs.iter().filter(|job| of(job, EXCLUSIVE).is_some());
    let all = alone().fold(0_u32, |sum, job| sum.saturating_add(number(job)));
    if all == 0 {
        return;
    }
    if !exclusive::can_be_cut(all) {
        let message = format!(
            "{all} Jobs are to have a domain each for themselves. That is not kept for so many: their \
             pods are placed wherever they fit."
        );
        expansion.due(Severity::Warning, &field, message);
        return;
    }
    let roles = std::mem::take(&mut expansion.roles);
    // Where the last part of each role stands: what comes after a role comes after that.
    let mut last: Vec<u16> = Vec::new();
    for (role, job) in roles.into_iter().zip(jobs) {
        let mut role = role;
        role.after = role.after.and_then(|before| last.get(usize::from(before)).copied());
        match of(job, EXCLUSIVE) {
            Some(key) => {
                let marked = of(job, SELECTED).is_some();
                let per = role.places.per.unwrap_or(1);
                let each = batch::wanted(&job.template.spec, 0);
                let parts = (0..number(job)).map(|at| {
                    let span = at.saturating_mul(per)..at.saturating_add(1).saturating_mul(per);
                    job_alone(set, &role, (at, span), (key, marked, each))
                });
                expansion.roles.extend(parts);
            }
            None => expansion.roles.push(role),
        }
        last.push(u16::try_from(expansion.roles.len().saturating_sub(1)).unwrap_or(u16::MAX));
    }
    let key = alone().find_map(|job| of(job, EXCLUSIVE)).map_or("", String::as_str);
    let message = exclusive::told("Each of its Jobs", "a Job", key, &expansion.roles);
    expansion.due(Severity::Info, &field, message);
}

/// One Job of a role, with what the webhook, or the controller where nodes are `marked` for Jobs, adds
/// to its pods.
fn job_alone<'a>(
    set: &JobSet,
    role: &RolePlan<'a>,
    (at, span): (u32, Range<u32>),
    (topology, marked, each): (&str, bool, u32),
) -> RolePlan<'a> {
    let namespace = match set.metadata.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let name = format!("{}-{at}", role.places.base);
    let mut part = exclusive::part(role, span);
    part.wanted = each;
    part.labels.extend([
        ("batch.kubernetes.io/job-name", name.clone()),
        ("job-name", name.clone()),
        ("jobset.sigs.k8s.io/job-index", at.to_string()),
    ]);
    if marked {
        let spec = exclusive::spec_of(&mut part.template);
        spec.node_selector.insert(NAMESPACED_JOB.to_owned(), format!("{namespace}_{name}"));
        spec.tolerations.push(Toleration {
            key: NO_SCHEDULE.to_owned(),
            operator: TolerationOperator::Exists,
            effect: TaintEffect::NoSchedule,
            ..Toleration::default()
        });
    } else {
        let own = [
            (SET_NAME, set.metadata.name.clone()),
            ("jobset.sigs.k8s.io/replicatedjob-name", role.name.clone()),
            ("jobset.sigs.k8s.io/job-index", at.to_string()),
        ];
        part.keep_alone(&Alone { key: SET_NAME, part: &own, topology, everywhere: true });
    }
    part
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
        if let Some(needs) = job.depends_on.iter().find(|needs| needs.status == "Ready") {
            let message = format!(
                "The pods of {} are made once {} is ready. They are planned beside them.",
                job.name, needs.name
            );
            let at = format!("{at}.replicatedJobs[{index}].dependsOn");
            expansion.due(Severity::Info, &at, message);
        }
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
