//! Volcano's Job: tasks of pods whose names are known beforehand. They do not exist until Volcano lets
//! the job in, so that it is always read from its spec.

use std::borrow::Cow;
use std::collections::BTreeSet;

use phalanx_engine::Name;
use phalanx_objects::scheduling::NetworkTopology;
use phalanx_objects::workload::{VolcanoJob, VolcanoTask};

use super::{Declared, Expansion, LevelName, RolePlan, Wish, count};
use crate::finding::Severity;
use crate::words;

/// A job of Volcano.
pub(super) fn job(job: &VolcanoJob) -> Expansion<'_> {
    let phase = job.status.state.phase.as_str();
    let mut expansion = Expansion {
        aside: ["Completed", "Failed", "Terminated"].contains(&phase),
        keeps_leaving: true,
        keeps_ended: true,
        gang: Some(gang(job)),
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
        let name = task_name(task, index);
        let base = format!("{}-{name}", job.metadata.name);
        let wanted = count(task.replicas);
        let mut role = RolePlan::numbered(&name, &base, &task.template, &at, wanted);
        if task.template.spec.scheduler_name.is_empty() {
            let own = job.spec.scheduler_name.as_str();
            let mut template = task.template.clone();
            template.spec.scheduler_name = if own.is_empty() { "volcano" } else { own }.to_owned();
            role.template = Cow::Owned(template);
        }
        role.least = Some(least(task));
        role.part_size = task.partition_policy.as_ref().map(|policy| count(policy.partition_size));
        role.wishes.extend(partition(task, index));
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

/// The fewest pods that start at once: of a job that asks for all of its tasks' fewest, those of each.
fn gang(job: &VolcanoJob) -> Declared {
    let by_task = job.spec.tasks.iter().map(least).fold(0, u32::saturating_add);
    let own = job.spec.min_available.map_or(0, count);
    let wishes = job.spec.network_topology.as_ref().and_then(|of| wish(of, "spec.networkTopology"));
    let min = Some(own).filter(|own| *own > 0 && *own != by_task);
    Declared { min, wishes: wishes.into_iter().collect(), ..Declared::by("spec.minAvailable") }
}

/// The name of a task, which Volcano numbers where it has none.
pub(crate) fn task_name(task: &VolcanoTask, index: usize) -> String {
    match task.name.as_str() {
        "" => format!("default{index}"),
        name => name.to_owned(),
    }
}

/// The fewest pods of a task.
fn least(task: &VolcanoTask) -> u32 {
    let by_parts = task.partition_policy.as_ref().filter(|policy| policy.min_partitions > 0);
    let by_parts = by_parts
        .map(|policy| count(policy.min_partitions).saturating_mul(count(policy.partition_size)));
    task.min_available.map(count).or(by_parts).unwrap_or_else(|| count(task.replicas))
}

/// Where each part of a task is to be.
fn partition(task: &VolcanoTask, index: usize) -> Option<Wish> {
    let policy = task.partition_policy.as_ref()?;
    let field = format!("spec.tasks[{index}].partitionPolicy.networkTopology");
    let wish = wish(policy.network_topology.as_ref()?, &field)?;
    Some(Wish { segment: Some(count(policy.partition_size)), ..wish })
}

/// What `networkTopology` asks: one HyperNode of at most a tier.
pub(in crate::lower) fn wish(of: &NetworkTopology, field: &str) -> Option<Wish> {
    let level = match of.highest_tier_allowed {
        Some(tier) => LevelName::Tier(tier),
        None if of.highest_tier_name.is_empty() => return None,
        None => LevelName::TierName(Name::new(&of.highest_tier_name)),
    };
    // Nothing is as `hard` is.
    Some(Wish { level, required: of.mode != "soft", segment: None, field: Name::new(field) })
}

/// What its webhook refuses.
fn refusals(job: &VolcanoJob, expansion: &mut Expansion<'_>) {
    let mut names = BTreeSet::new();
    let mut all: u64 = 0;
    for (index, task) in job.spec.tasks.iter().enumerate() {
        let at = format!("spec.tasks[{index}]");
        all += u64::from(count(task.replicas));
        if task.min_available.is_some_and(|least| least > task.replicas || least < 0) {
            let message = format!(
                "A task of {} pods of which at least {} start together is refused.",
                task.replicas,
                task.min_available.unwrap_or_default()
            );
            expansion.refuse(&format!("{at}.minAvailable"), message);
        }
        if !task.name.is_empty() && !names.insert(task.name.as_str()) {
            let message = format!("A Job with two tasks that are called {} is refused.", task.name);
            expansion.refuse(&format!("{at}.name"), message);
        }
        if let Some(policy) = &task.partition_policy {
            let filled = i64::from(policy.total_partitions) * i64::from(policy.partition_size);
            if filled != i64::from(task.replicas) {
                let message = format!(
                    "A Job is refused whose task is cut into {} parts of {} pods and has {} pods.",
                    policy.total_partitions, policy.partition_size, task.replicas
                );
                expansion.refuse(&format!("{at}.partitionPolicy"), message);
            }
        }
    }
    let least = job.spec.min_available.unwrap_or(0);
    if least < 0 || u64::from(count(least)) > all {
        let pods = words::count(all, "pod", "pods");
        let message =
            format!("A Job of {pods} of which at least {least} start together is refused.");
        expansion.refuse("spec.minAvailable", message);
    }
}
