//! `batch/v1`. A Job wants as many pods at a time as may run and are still needed; of an indexed one
//! those with the lowest indexes that have not ended. A CronJob makes Jobs, and is itself planned only
//! where it does not exist yet: as one run.

use phalanx_engine::Name;
use phalanx_objects::scheduling::TopologyConstraint;
use phalanx_objects::workload::{
    CompletionMode, CronJob, Job, JobScheduling, JobSpec, PodReplacementPolicy,
};

use super::record::{Indexes, Places, Rank};
use super::{Declared, Expansion, LevelName, RolePlan, Wish, count};
use crate::finding::Severity;
use crate::words;

/// What `spec.managedBy` says where kube-controller-manager makes the pods.
const CONTROLLER: &str = "kubernetes.io/job-controller";

/// Most pods at a time of an indexed Job (`maxParallelismForIndexedJob`).
const PARALLELISM_MAX: u32 = 100_000;

/// A Job. A suspended one is read as if it were resumed.
pub(super) fn job(job: &Job) -> Expansion<'_> {
    let mut expansion = Expansion {
        aside: job.is_finished(),
        keeps_leaving: job.spec.pod_replacement_policy == PodReplacementPolicy::Failed,
        gang: gang(job.spec.scheduling.as_ref(), "spec"),
        ..Expansion::default()
    };
    expansion.suspended(job.spec.suspend, "spec.suspend", "Job");
    expansion.managed(job.spec.managed_by.as_deref(), &[CONTROLLER], "spec.managedBy", "Job");
    refusals(&job.spec, "spec", &mut expansion);
    let indexes = indexes(job, &mut expansion);
    let succeeded = match &indexes {
        Some(indexes) => indexes.completed,
        None => {
            let uncounted = job.status.uncounted_terminated_pods.succeeded.len();
            let uncounted = u32::try_from(uncounted).unwrap_or(u32::MAX);
            count(job.status.succeeded).saturating_add(uncounted)
        }
    };
    let template = &job.spec.template;
    let base = &job.metadata.name;
    let wanted = wanted(&job.spec, succeeded);
    expansion.roles.push(RolePlan {
        deadline_seconds: job.spec.active_deadline_seconds,
        rank: if indexes.is_some() { Rank::From(0) } else { Rank::None },
        indexes,
        ..RolePlan::alike(base, template, "spec.template.spec", wanted)
    });
    expansion
}

/// One run of a CronJob that does not exist yet.
pub(super) fn cron_job(cron: &CronJob, created: bool) -> Expansion<'_> {
    let mut expansion = Expansion::default();
    if created {
        // Its Jobs are objects of their own.
        return expansion;
    }
    expansion.due(
        Severity::Info,
        "spec.jobTemplate",
        "The CronJob makes a Job at each time that it names. One is planned, as if it were made now.",
    );
    expansion.suspended(cron.spec.suspend, "spec.suspend", "CronJob");
    let spec = &cron.spec.job_template.spec;
    let at = "spec.jobTemplate.spec";
    expansion.gang = gang(spec.scheduling.as_ref(), at);
    refusals(spec, at, &mut expansion);
    let wanted = wanted(spec, 0);
    let indexed = spec.completion_mode == Some(CompletionMode::Indexed);
    expansion.roles.push(RolePlan {
        deadline_seconds: spec.active_deadline_seconds,
        rank: if indexed { Rank::From(0) } else { Rank::None },
        indexes: indexed.then(|| Indexes::all(completions(spec))),
        // The Job's own name ends in the minute of its run.
        places: Places::plain(&format!("{}-run", cron.metadata.name)),
        ..RolePlan::alike("", &spec.template, &format!("{at}.template.spec"), wanted)
    });
    expansion
}

fn gang(scheduling: Option<&JobScheduling>, at: &str) -> Option<Declared> {
    let scheduling = scheduling?;
    let gang = scheduling.scheduling_policy.gang.as_ref()?;
    let at = format!("{at}.scheduling");
    let field = Name::new(&format!("{at}.schedulingConstraints.topology"));
    let keys = scheduling.scheduling_constraints.iter().flat_map(|of| &of.topology);
    let wish = |of: &TopologyConstraint| Wish {
        level: LevelName::Label(Name::new(&of.key)),
        required: true,
        segment: None,
        field: field.clone(),
    };
    let wishes = keys.map(wish).collect();
    let declared = Declared::by(&format!("{at}.schedulingPolicy.gang"));
    Some(Declared { min: gang.min_count.map(count), wishes, ..declared })
}

/// What the API server refuses of a Job, or of one in another object.
pub(super) fn refusals(spec: &JobSpec, at: &str, expansion: &mut Expansion<'_>) {
    let indexed = spec.completion_mode == Some(CompletionMode::Indexed);
    if indexed && spec.completions.is_none() && spec.parallelism.is_some() {
        let message = "An indexed Job says in `completions` how many indexes there are; one without \
                       is refused.";
        expansion.refuse(&format!("{at}.completions"), message);
    }
    if indexed && spec.parallelism.map_or(0, count) > PARALLELISM_MAX {
        let message =
            format!("An indexed Job with more than {PARALLELISM_MAX} pods at a time is refused.");
        expansion.refuse(&format!("{at}.parallelism"), message);
    }
    if !indexed && spec.backoff_limit_per_index.is_some() {
        let message = "A Job with a `backoffLimitPerIndex` that is not indexed is refused.";
        expansion.refuse(&format!("{at}.backoffLimitPerIndex"), message);
    }
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        let message =
            "A Job with `maxFailedIndexes` and without `backoffLimitPerIndex` is refused.";
        expansion.refuse(&format!("{at}.maxFailedIndexes"), message);
    }
    let fewest = spec.scheduling.as_ref().and_then(|s| s.scheduling_policy.gang.as_ref());
    let fewest = fewest.and_then(|gang| gang.min_count).map_or(0, count);
    let parallelism = spec.parallelism.map_or(1, count);
    if fewest > parallelism {
        let fewest = words::count(u64::from(fewest), "pod", "pods");
        let message = format!(
            "A gang of at least {fewest} in a Job that runs {parallelism} at a time is refused."
        );
        let field = "scheduling.schedulingPolicy.gang.minCount";
        expansion.refuse(&format!("{at}.{field}"), message);
    }
}

/// The indexes of an indexed Job.
fn indexes(job: &Job, expansion: &mut Expansion<'_>) -> Option<Indexes> {
    if job.spec.completion_mode != Some(CompletionMode::Indexed) {
        return None;
    }
    let mut read = |text: &str, field: &str| {
        ranges(text).unwrap_or_else(|| {
            let message = format!(
                "{text:?} is no list of indexes such as \"1,3-5,7\". It is read as if it were \
                 empty."
            );
            expansion.note(Severity::Error, &format!("status.{field}"), message);
            Vec::new()
        })
    };
    let mut completed = read(&job.status.completed_indexes, "completedIndexes");
    let failed = read(&job.status.failed_indexes, "failedIndexes");
    // Which ones have ended well is not said: the lowest, for they start first.
    if completed.is_empty() && job.status.succeeded > 0 {
        completed.push((0, count(job.status.succeeded) - 1));
    }
    Some(Indexes::new(completions(&job.spec), &completed, &failed))
}

/// How many indexes there are: one where the Job gives no counts at all, for so the API server fills
/// them in.
fn completions(spec: &JobSpec) -> u32 {
    match (spec.completions, spec.parallelism) {
        (Some(completions), _) => count(completions),
        (None, None) => 1,
        (None, Some(_)) => u32::MAX,
    }
}

/// Indexes such as `1,3-5,7`: first and last of each run, in order.
fn ranges(text: &str) -> Option<Vec<(u32, u32)>> {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || all.last().is_some_and(|(_, before)| *before >= first) {
            return None;
        }
        all.push((first, last));
    }
    Some(all)
}

/// Pods that a Job wants at a time (job controller, `manageJob`).
pub(super) fn wanted(spec: &JobSpec, succeeded: u32) -> u32 {
    match (spec.parallelism.map(count), spec.completions.map(count)) {
        // Both unset: one pod, once.
        (None, None) => 1_u32.saturating_sub(succeeded),
        // A work queue: after the first success no pod is added.
        (Some(_), None) if succeeded > 0 => 0,
        (Some(parallelism), None) => parallelism,
        (parallelism, Some(completions)) => {
            parallelism.unwrap_or(1).min(completions.saturating_sub(succeeded))
        }
    }
}
