//! Volcano's Job: tasks of pods whose names are known beforehand. They do not exist until Volcano lets
//! the job in, so that it is always read from its spec.

use std::borrow::Cow;
use std::collections::BTreeSet;

use phalanx_objects::workload::VolcanoJob;

use super::{Expansion, RolePlan, count};
use crate::finding::Severity;

/// A job of Volcano.
pub(super) fn job(job: &VolcanoJob) -> Expansion<'_> {
    let phase = job.status.state.phase.as_str();
    let mut expansion = Expansion {
        aside: ["Completed", "Failed", "Terminated"].contains(&phase),
        keeps_leaving: true,
        keeps_ended: true,
        gang: Some("spec.minAvailable".to_owned()),
        ..Expansion::default()
    };
    if phase == "Aborted" {
        let message =
            "The Job is aborted and has no pods. It is planned as if it were resumed now.";
        expansion.due(Severity::Info, "status.state.phase", message);
    }
    refusals(job, &mut expansion);
    for (index, task) in job.spec.tasks.iter().enumerate() {
        let at = format!("spec.tasks[{index}].template.spec");
        let name = if task.name.is_empty() { format!("default{index}") } else { task.name.clone() };
        let base = format!("{}-{name}", job.metadata.name);
        let wanted = count(task.replicas);
        let mut role = RolePlan::numbered(&name, &base, &task.template, &at, wanted);
        if task.template.spec.scheduler_name.is_empty() {
            let own = job.spec.scheduler_name.as_str();
            let mut template = task.template.clone();
            template.spec.scheduler_name = if own.is_empty() { "volcano" } else { own }.to_owned();
            role.template = Cow::Owned(template);
        }
        expansion.roles.push(role);
        if let Some(before) = task.depends_on.as_ref().filter(|needs| !needs.name.is_empty()) {
            let message = format!(
                "The pods of {name} are made after those of {}. They are planned beside them.",
                before.name.join(", ")
            );
            expansion.due(Severity::Info, &format!("spec.tasks[{index}].dependsOn"), message);
        }
    }
    expansion
}

/// What its webhook refuses.
fn refusals(job: &VolcanoJob, expansion: &mut Expansion<'_>) {
    let mut names = BTreeSet::new();
    let mut all: u64 = 0;
    for (index, task) in job.spec.tasks.iter().enumerate() {
        let at = format!("spec.tasks[{index}]");
        all += u64::from(count(task.replicas));
        if task.min_available.is_some_and(|least| least > task.replicas) {
            let message = format!(
                "A task of {} pods of which at least {} start together is refused.",
                task.replicas,
                task.min_available.unwrap_or_default()
            );
            expansion.refuse(&format!("{at}.minAvailable"), message);
        }
        if !task.name.is_empty() && !names.insert(task.name.as_str()) {
            let message =
                format!("Two tasks are called {}; a Job like this is refused.", task.name);
            expansion.refuse(&format!("{at}.name"), message);
        }
        if let Some(policy) = &task.partition_policy {
            let filled = i64::from(policy.total_partitions) * i64::from(policy.partition_size);
            if filled != i64::from(task.replicas) {
                let message = format!(
                    "{} parts of {} pods are not the {} pods of the task; a Job like this is refused.",
                    policy.total_partitions, policy.partition_size, task.replicas
                );
                expansion.refuse(&format!("{at}.partitionPolicy"), message);
            }
        }
    }
    let least = job.spec.min_available.map_or(0, count);
    if u64::from(least) > all {
        let message =
            format!("A Job of {all} pods of which at least {least} start together is refused.");
        expansion.refuse("spec.minAvailable", message);
    }
}
