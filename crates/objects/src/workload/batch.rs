//! `batch/v1`: Job and CronJob.

use crate::core::PodTemplateSpec;
use crate::macros::{object, words};
use crate::meta::ObjectMeta;
use crate::scheduling::GroupConstraints;

object! {
    /// A job.
    pub struct Job {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: JobSpec,
        /// What is.
        pub status: JobStatus,
    }

    /// What a job wants.
    pub struct JobSpec {
        /// Most pods at a time; none means 1.
        pub parallelism: Option<i32>,
        /// Pods that must succeed; none means any one.
        pub completions: Option<i32>,
        /// Whether the job makes no pods for now.
        pub suspend: bool,
        /// Whether pods have an index; none means not, but in a JobSet.
        pub completion_mode: Option<CompletionMode>,
        /// Limit of the run in seconds.
        pub active_deadline_seconds: Option<i64>,
        /// Pods that may fail before the job does; none means 6.
        pub backoff_limit: Option<i32>,
        /// The same for each index; none means that only the job's limit counts.
        pub backoff_limit_per_index: Option<i32>,
        /// Indexes that may fail before the job does.
        pub max_failed_indexes: Option<i32>,
        /// When a pod that goes is made anew.
        pub pod_replacement_policy: PodReplacementPolicy,
        /// The controller that makes its pods; none means kube-controller-manager's.
        pub managed_by: Option<String>,
        /// How its pods are scheduled together (alpha).
        pub scheduling: Option<JobScheduling>,
        /// Its pods.
        pub template: PodTemplateSpec,
    }

    /// How a job's pods are scheduled together.
    pub struct JobScheduling {
        /// Whether they are a gang.
        pub scheduling_policy: JobSchedulingPolicy,
        /// Where they must be.
        pub scheduling_constraints: Option<GroupConstraints>,
    }

    /// Whether a job's pods are a gang.
    pub struct JobSchedulingPolicy {
        /// They are.
        pub gang: Option<JobGang>,
    }

    /// A gang of a job's pods.
    pub struct JobGang {
        /// Fewest pods that start together; none means all that run at a time.
        pub min_count: Option<i32>,
    }

    /// What is known of a job.
    pub struct JobStatus {
        /// Pods that wait or run.
        pub active: i32,
        /// Pods that ended well.
        pub succeeded: i32,
        /// Pods that ended badly.
        pub failed: i32,
        /// Indexes that are done, such as `1,3-5,7`.
        pub completed_indexes: String,
        /// Indexes that are given up, written alike.
        pub failed_indexes: String,
        /// Pods that have ended and are not counted above yet, by UID.
        pub uncounted_terminated_pods: UncountedPods,
        /// How it stands.
        pub conditions: Vec<JobCondition>,
    }

    /// Pods that have ended and are not counted yet.
    pub struct UncountedPods {
        /// Those that ended well, by UID.
        pub succeeded: Vec<String>,
    }

    /// One thing that is known of how a job stands.
    pub struct JobCondition {
        /// What.
        pub r#type: JobConditionType,
        /// Whether it is so: `True`, `False` or `Unknown`.
        pub status: String,
    }

    /// A job that is made anew at set times.
    pub struct CronJob {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CronJobSpec,
    }

    /// What a cron job wants.
    pub struct CronJobSpec {
        /// When, as cron writes it.
        pub schedule: String,
        /// Whether no more jobs are made for now.
        pub suspend: bool,
        /// The job of each run.
        pub job_template: JobTemplateSpec,
    }

    /// The job that another object makes.
    pub struct JobTemplateSpec {
        /// Labels and annotations of the job.
        pub metadata: ObjectMeta,
        /// What the job wants.
        pub spec: JobSpec,
    }
}

impl Job {
    /// Whether it makes no more pods: it has ended, or is about to. Its condition says so, or more
    /// of its pods failed than may.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let ends = |condition: &JobCondition| match condition.r#type {
            JobConditionType::Complete
            | JobConditionType::Failed
            | JobConditionType::SuccessCriteriaMet
            | JobConditionType::FailureTarget => condition.status == "True",
            JobConditionType::None | JobConditionType::Suspended | JobConditionType::Other(_) => {
                false
            }
        };
        let failed = self.spec.backoff_limit.is_some_and(|limit| self.status.failed > limit);
        failed || self.status.conditions.iter().any(ends)
    }
}

words! {
    /// What a condition of a job is about.
    pub enum JobConditionType {
        /// It does not say.
        None = "",
        /// Enough of its pods ended well.
        Complete = "Complete",
        /// It failed.
        Failed = "Failed",
        /// It makes no pods for now.
        Suspended = "Suspended",
        /// Enough ended well, and the rest is being ended.
        SuccessCriteriaMet = "SuccessCriteriaMet",
        /// It is about to fail, and its pods are being ended.
        FailureTarget = "FailureTarget",
    }

    /// When a job replaces a pod that goes.
    pub enum PodReplacementPolicy {
        /// Once it is being deleted.
        TerminatingOrFailed = "TerminatingOrFailed",
        /// Once it is gone.
        Failed = "Failed",
    }

    /// Whether a job's pods have an index.
    pub enum CompletionMode {
        /// They are alike.
        NonIndexed = "NonIndexed",
        /// Each has an index from 0 to completions - 1.
        Indexed = "Indexed",
    }
}
