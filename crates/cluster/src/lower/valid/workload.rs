//! Workloads of Kubernetes itself (`apps/validation`, `batch/validation`): selectors, names, restart
//! policies and schedules. Counts and indexes of Jobs stand where Jobs are expanded.

use phalanx_objects::core::{LabelSelector, LabelSelectorOperator, PodTemplateSpec, RestartPolicy};
use phalanx_objects::meta::{Labels, ObjectMeta};
use phalanx_objects::workload::{
    CompletionMode, JobSpec, PodManagementPolicy, StatefulSet, Workload,
};

use super::name::{LABEL_MAX, bad_object_name, is_label};
use super::{Found, Invalid, cron};

/// Longest name of a CronJob: its Jobs' names are eleven longer.
const CRON_NAME_MAX: usize = 52;

/// What is refused of a workload, in whole sentences. Other kinds than Kubernetes' own are checked
/// for their name alone.
pub(crate) fn workload(workload: &Workload) -> Vec<Invalid> {
    let mut found = Found::default();
    let kind = workload.kind().as_str();
    let name = &workload.metadata().name;
    if let Some(why) = bad_object_name(name).filter(|_| !name.is_empty()) {
        found.add("metadata.name", format!("A {kind} with the name {name} is refused: {why}."));
    }
    match workload {
        Workload::Deployment(of) => {
            selected(kind, &of.spec.selector, &of.spec.template, &mut found)
        }
        Workload::ReplicaSet(of) => {
            selected(kind, &of.spec.selector, &of.spec.template, &mut found)
        }
        Workload::DaemonSet(of) => selected(kind, &of.spec.selector, &of.spec.template, &mut found),
        Workload::StatefulSet(of) => stateful_set(of, &mut found),
        Workload::Job(of) => {
            job(&of.spec, "spec", &mut found);
            job_name(&of.metadata, &of.spec, &mut found);
        }
        Workload::CronJob(of) => {
            job(&of.spec.job_template.spec, "spec.jobTemplate.spec", &mut found);
            if let Some(why) = cron::wrong(&of.spec.schedule) {
                let why = format!(
                    "A CronJob with the schedule {:?} is refused: {why}.",
                    of.spec.schedule
                );
                found.add("spec.schedule", why);
            }
            if name.len() > CRON_NAME_MAX {
                let why = format!(
                    "A CronJob whose name has more than {CRON_NAME_MAX} characters is refused."
                );
                found.add("metadata.name", why);
            }
        }
        Workload::JobSet(_)
        | Workload::LeaderWorkerSet(_)
        | Workload::MpiJob(_)
        | Workload::PyTorchJob(_)
        | Workload::TfJob(_)
        | Workload::XgBoostJob(_)
        | Workload::PaddleJob(_)
        | Workload::JaxJob(_)
        | Workload::TrainJob(_)
        | Workload::TrainingRuntime(_)
        | Workload::ClusterTrainingRuntime(_)
        | Workload::RayCluster(_)
        | Workload::RayJob(_)
        | Workload::RayService(_)
        | Workload::VolcanoJob(_)
        | Workload::PodCliqueSet(_)
        | Workload::AppWrapper(_) => {}
    }
    found.0
}

/// A kind with a selector of its pods: it must select what the template makes, and they run for ever.
fn selected(
    kind: &str,
    selector: &Option<LabelSelector>,
    template: &PodTemplateSpec,
    found: &mut Found,
) {
    match selector {
        None => found.add("spec.selector", format!("A {kind} without `spec.selector` is refused.")),
        Some(s) if s.match_labels.is_empty() && s.match_expressions.is_empty() => {
            found.add(
                "spec.selector",
                format!("A {kind} whose `spec.selector` is empty is refused."),
            );
        }
        Some(selector) => {
            let labels = &template.metadata.labels;
            if let Some(unmet) = unmet(selector, labels) {
                let why = format!(
                    "A {kind} that does not select its own pods is refused: its `spec.selector` asks \
                     for {unmet}, which the labels of `spec.template.metadata` do not meet."
                );
                found.add("spec.selector", why);
            }
        }
    }
    let spec = &template.spec;
    if matches!(spec.restart_policy, RestartPolicy::Never | RestartPolicy::OnFailure) {
        let why = format!(
            "The pods of a {kind} run for ever; one with the `restartPolicy` {} is refused.",
            spec.restart_policy
        );
        found.add("spec.template.spec.restartPolicy", why);
    }
    if spec.active_deadline_seconds.is_some() {
        let why = format!("A {kind} with `activeDeadlineSeconds` in its template is refused.");
        found.add("spec.template.spec.activeDeadlineSeconds", why);
    }
}

/// The first requirement of a selector that labels do not meet; none where it selects them.
pub(crate) fn unmet(selector: &LabelSelector, labels: &Labels) -> Option<String> {
    use LabelSelectorOperator as Op;
    let mut pairs = selector.match_labels.iter();
    if let Some((key, value)) = pairs.find(|(key, value)| labels.get(*key) != Some(*value)) {
        return Some(format!("{key}={value}"));
    }
    let mut all = selector.match_expressions.iter();
    let of = all.find(|of| {
        let value = labels.get(&of.key);
        let among = value.is_some_and(|value| of.values.contains(value));
        !match &of.operator {
            Op::In => among,
            Op::NotIn => !among,
            Op::Exists => value.is_some(),
            Op::DoesNotExist => value.is_none(),
            Op::Unset | Op::Other(_) => false,
        }
    })?;
    Some(format!("{} {} [{}]", of.key, of.operator.as_str(), of.values.join(", ")))
}

fn stateful_set(set: &StatefulSet, found: &mut Found) {
    let name = &set.metadata.name;
    if !name.is_empty() && bad_object_name(name).is_none() && !is_label(name) {
        let why = format!(
            "A StatefulSet whose name has a `.` or more than {LABEL_MAX} characters is refused."
        );
        found.add("metadata.name", why);
    }
    if let PodManagementPolicy::Other(word) = &set.spec.pod_management_policy {
        let why = format!(
            "{word} is no `podManagementPolicy`, OrderedReady or Parallel; a StatefulSet with it is \
             refused."
        );
        found.add("spec.podManagementPolicy", why);
    }
    for (index, claim) in set.spec.volume_claim_templates.iter().enumerate() {
        let at = format!("spec.volumeClaimTemplates[{index}]");
        if !claim.spec.resources.requests.contains_key("storage") {
            let why = "A StatefulSet with a claim that does not request `storage` is refused.";
            found.add(format!("{at}.spec.resources"), why);
        }
    }
    selected("StatefulSet", &set.spec.selector, &set.spec.template, found);
}

/// A Job, or that of another object.
fn job(spec: &JobSpec, at: &str, found: &mut Found) {
    if spec.template.spec.restart_policy == RestartPolicy::Always {
        let why = "The pods of a Job end; one whose template does not say `restartPolicy: Never` or \
                   `OnFailure` is refused.";
        found.add(format!("{at}.template.spec.restartPolicy"), why);
    }
    if let Some(CompletionMode::Other(word)) = &spec.completion_mode {
        let why = format!(
            "{word} is no `completionMode`, NonIndexed or Indexed; a Job with it is refused."
        );
        found.add(format!("{at}.completionMode"), why);
    }
}

/// A Job's name is a label of its pods, and with an index the name of their host.
fn job_name(meta: &ObjectMeta, spec: &JobSpec, found: &mut Found) {
    let indexed = spec.completion_mode == Some(CompletionMode::Indexed);
    let last = spec.completions.filter(|count| indexed && *count > 0);
    let host =
        last.map_or_else(|| meta.name.clone(), |count| format!("{}-{}", meta.name, count - 1));
    let label = !indexed || is_label(&host) || meta.name.is_empty();
    if host.len() > LABEL_MAX || !label {
        let why = format!(
            "A Job whose pods would be called {host}, which is no DNS label of at most {LABEL_MAX} \
             characters, is refused."
        );
        found.add("metadata.name", why);
    }
}
