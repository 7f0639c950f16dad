//! Jobs and Deployments: how many pods they want at a time, and which of them do not exist yet.
//!
//! A plain Job or Deployment is no gang: each of its pods is decided alone.

use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::topology::ALIGN_ANNOTATION;
use phalanx_objects::workload::{CompletionMode, Deployment, Job, PodReplacementPolicy};

use super::claim::Wish;
use super::pod::{PodReader, wish};
use super::record::{Header, Indexes, WorkloadRecord};
use super::unchecked::UncheckedSet;
use crate::finding::{Severity, Source};

/// Most pods of one workload that are planned at a time: more than a cluster holds.
const PODS_MAX: u32 = 100_000;

/// What `spec.managedBy` says where kube-controller-manager makes the pods.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

impl PodReader<'_> {
    /// The compact form of a Job. A suspended one is read as if it were resumed.
    pub(crate) fn job(&mut self, job: &Job, source: Source) -> WorkloadRecord {
        let mut spec = job.spec.template.spec.clone();
        spec.active_deadline_seconds =
            spec.active_deadline_seconds.or(job.spec.active_deadline_seconds);
        let finished = job.is_finished();
        let foreign = job.spec.managed_by.as_deref().filter(|who| *who != JOB_CONTROLLER);
        if job.spec.suspend && !finished {
            self.notes.push((
                Severity::Info,
                "spec.suspend".to_owned(),
                "The Job is suspended and has no pods. It is planned as if it were resumed now."
                    .to_owned(),
            ));
        }
        if let Some(who) = foreign.filter(|_| !finished) {
            let message = format!("{who} makes the pods of this Job. None is planned.");
            self.notes.push((Severity::Info, "spec.managedBy".to_owned(), message));
        }
        let indexes = self.indexes(job);
        let succeeded = match &indexes {
            Some(indexes) => indexes.completed,
            None => u32::try_from(job.status.succeeded).unwrap_or(0),
        };
        let unchecked = UncheckedSet::of_waiting(&spec, false);
        let shape = self.asked(&job.spec.template.metadata, &spec, unchecked);
        WorkloadRecord {
            header: Header::new(&job.metadata, source),
            wish: self.workload_wish(&job.metadata),
            shape,
            priority: self.priority(&spec, false),
            run_max_millis: spec.active_deadline_seconds.map(|s| s.saturating_mul(1000)),
            wanted: self.capped(wanted(job, succeeded), "spec.parallelism"),
            indexes,
            keeps_leaving: job.spec.pod_replacement_policy == PodReplacementPolicy::Failed,
            aside: !self.is_ours(&spec)
                || job.metadata.deletion_timestamp.is_some()
                || finished
                || foreign.is_some(),
        }
    }

    /// The indexes of an indexed Job.
    fn indexes(&mut self, job: &Job) -> Option<Indexes> {
        if job.spec.completion_mode != CompletionMode::Indexed {
            return None;
        }
        let count = |n: i32| u32::try_from(n).unwrap_or(0);
        let mut read = |text: &str, field: &str| {
            ranges(text).unwrap_or_else(|| {
                let message = format!(
                    "{text:?} is no list of indexes such as \"1,3-5,7\". It is read as if it were \
                     empty."
                );
                self.notes.push((Severity::Error, format!("status.{field}"), message));
                Vec::new()
            })
        };
        let mut completed = read(&job.status.completed_indexes, "completedIndexes");
        let failed = read(&job.status.failed_indexes, "failedIndexes");
        // Which ones have ended well is not said: the lowest, for they start first.
        if completed.is_empty() && job.status.succeeded > 0 {
            completed.push((0, count(job.status.succeeded) - 1));
        }
        Some(Indexes::new(job.spec.completions.map_or(u32::MAX, count), &completed, &failed))
    }

    /// The compact form of a Deployment.
    pub(crate) fn deployment(&mut self, object: &Deployment, source: Source) -> WorkloadRecord {
        let spec = &object.spec.template.spec;
        let replicas = u32::try_from(object.spec.replicas.unwrap_or(1)).unwrap_or(0);
        let unchecked = UncheckedSet::of_waiting(spec, false);
        let shape = self.asked(&object.spec.template.metadata, spec, unchecked);
        WorkloadRecord {
            header: Header::new(&object.metadata, source),
            wish: self.workload_wish(&object.metadata),
            shape,
            priority: self.priority(spec, false),
            run_max_millis: spec.active_deadline_seconds.map(|s| s.saturating_mul(1000)),
            wanted: self.capped(replicas, "spec.replicas"),
            indexes: None,
            keeps_leaving: false,
            aside: !self.is_ours(spec) || object.metadata.deletion_timestamp.is_some(),
        }
    }

    fn capped(&mut self, wanted: u32, path: &str) -> u32 {
        if wanted > PODS_MAX {
            let message = format!(
                "It wants {wanted} pods at a time. Phalanx plans the first {PODS_MAX} of them."
            );
            self.notes.push((Severity::Error, path.to_owned(), message));
        }
        wanted.min(PODS_MAX)
    }

    /// The wish on the workload itself, which holds for those of its pods that have none.
    fn workload_wish(&mut self, meta: &ObjectMeta) -> Wish {
        let wish = wish(meta, self.names);
        if let Err(message) = &wish {
            self.notes.push((
                Severity::Error,
                format!("metadata.annotations[{ALIGN_ANNOTATION}]"),
                format!("{message} No pod of it is placed, for the wish might be required."),
            ));
        }
        wish
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
fn wanted(job: &Job, succeeded: u32) -> u32 {
    let count = |n: i32| u32::try_from(n).unwrap_or(0);
    match (job.spec.parallelism.map(count), job.spec.completions.map(count)) {
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
