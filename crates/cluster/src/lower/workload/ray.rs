//! `ray.io`: RayCluster, and the clusters that RayJob and RayService make. What the operator adds to
//! the pods is added here, for it takes room.

use std::borrow::Cow;
use std::collections::BTreeMap;

use phalanx_objects::Quantity;
use phalanx_objects::core::{Container, PodTemplateSpec, ResourceRequirements};
use phalanx_objects::workload::{
    RayCluster, RayClusterSpec, RayJob, RayService, SubmissionMode, WorkerGroupSpec, WorkloadKind,
};

use super::record::{Numbers, Places, Rank, StandsFor};
use super::{Declared, Expansion, RolePlan, count};
use crate::finding::Severity;

const OPERATOR: &str = "ray.io/kuberay-operator";

/// A RayCluster.
pub(super) fn cluster(cluster: &RayCluster) -> Expansion<'_> {
    let mut expansion = Expansion { keeps_leaving: true, ..Expansion::default() };
    expansion.suspended(cluster.spec.suspend, "spec.suspend", "RayCluster");
    let by = cluster.spec.managed_by.as_deref();
    expansion.managed(by, &[OPERATOR], "spec.managedBy", "RayCluster");
    if cluster.metadata.labels.contains_key("ray.io/gang-scheduling-enabled") {
        let field = "metadata.labels[\"ray.io/gang-scheduling-enabled\"]";
        expansion.gang = Some(Declared::by(field));
    }
    add_groups(&cluster.metadata.name, "spec", &cluster.spec, &mut expansion);
    expansion
}

/// The head and the groups of workers.
fn add_groups<'a>(base: &str, at: &str, spec: &'a RayClusterSpec, expansion: &mut Expansion<'a>) {
    let scales = spec.enable_in_tree_autoscaling == Some(true);
    let mut head = RolePlan {
        sign: "headgroup".to_owned(),
        rank: Rank::None,
        ..RolePlan::numbered(
            "head",
            &format!("{base}-head"),
            &spec.head_group_spec.template,
            &format!("{at}.headGroupSpec.template.spec"),
            1,
        )
    };
    if scales {
        with(&mut head.template).containers.push(container("autoscaler", "500m", "512Mi"));
    }
    expansion.roles.push(head);
    for (index, group) in spec.worker_group_specs.iter().enumerate() {
        let at = format!("{at}.workerGroupSpecs[{index}]");
        let least = group.min_replicas.map_or(0, count);
        let most = group.max_replicas.map_or(u32::MAX, count);
        if least > most {
            let message =
                format!("A group of at least {least} and at most {most} workers is refused.");
            expansion.refuse(&format!("{at}.minReplicas"), message);
        }
        expansion.roles.push(workers(base, &at, group, least.min(most), most));
    }
}

fn workers<'a>(
    base: &str,
    at: &str,
    group: &'a WorkerGroupSpec,
    least: u32,
    most: u32,
) -> RolePlan<'a> {
    let replicas = group.replicas.map_or(least, count).clamp(least, most);
    let hosts = group.num_of_hosts.map_or(1, count).max(1);
    let wanted = if group.suspend { 0 } else { replicas.saturating_mul(hosts) };
    let name = &group.group_name;
    let base = format!("{base}-{name}-worker");
    let at = format!("{at}.template.spec");
    let numbers = if hosts > 1 { Numbers::PartAndOwn(0) } else { Numbers::Part };
    let mut role = RolePlan {
        places: Places { numbers, per: Some(hosts), ..Places::plain(&base) },
        rank: Rank::None,
        ..RolePlan::numbered(name, &base, &group.template, &at, wanted)
    };
    // On by default (`ENABLE_INIT_CONTAINER_INJECTION`).
    with(&mut role.template).init_containers.push(container("wait-gcs-ready", "200m", "256Mi"));
    role
}

/// The template's spec, to be added to.
fn with<'t>(template: &'t mut Cow<'_, PodTemplateSpec>) -> &'t mut phalanx_objects::core::PodSpec {
    &mut template.to_mut().spec
}

fn container(name: &str, cpu: &str, memory: &str) -> Container {
    let mut requests = BTreeMap::new();
    for (resource, amount) in [("cpu", cpu), ("memory", memory)] {
        if let Ok(amount) = amount.parse::<Quantity>() {
            requests.insert(resource.to_owned(), amount);
        }
    }
    Container {
        name: name.to_owned(),
        resources: ResourceRequirements { requests, ..ResourceRequirements::default() },
        ..Container::default()
    }
}

/// A RayJob: a cluster, and a pod that hands the job in once the cluster is up.
pub(super) fn job(job: &RayJob) -> Expansion<'_> {
    let ended = ["Complete", "Failed"].contains(&job.status.job_deployment_status.as_str());
    let mut expansion = Expansion { aside: ended, keeps_leaving: true, ..Expansion::default() };
    expansion.suspended(job.spec.suspend, "spec.suspend", "RayJob");
    let by = job.spec.managed_by.as_deref();
    expansion.managed(by, &[OPERATOR], "spec.managedBy", "RayJob");
    refusals(job, &mut expansion);
    let name = &job.metadata.name;
    let sidecar = job.spec.submission_mode == SubmissionMode::SidecarMode;
    if let Some(spec) = job.spec.ray_cluster_spec.as_ref().filter(|_| !selects(job)) {
        add_groups(name, "spec.rayClusterSpec", spec, &mut expansion);
        stand_for_cluster(&mut expansion);
        if let Some(head) = expansion.roles.first_mut().filter(|_| sidecar) {
            with(&mut head.template).containers.push(submitter());
        }
    }
    if job.spec.submission_mode == SubmissionMode::K8sJobMode {
        let at = "spec.submitterPodTemplate.spec";
        let mut template = Cow::Owned(PodTemplateSpec::default());
        match &job.spec.submitter_pod_template {
            Some(own) => template = Cow::Borrowed(own),
            None => with(&mut template).containers.push(submitter()),
        }
        let base = Some(StandsFor::Jobs { base: name.as_str().into(), number: None, each: 1 });
        let bare = PodTemplateSpec::default();
        let role = RolePlan::numbered("submitter", &format!("{name}-submitter"), &bare, at, 1);
        let role = role.into_owned();
        expansion.roles.push(RolePlan { template, rank: Rank::None, stands_for: base, ..role });
        let message = "Its submitter is made once the cluster is up. It is planned beside it.";
        expansion.due(Severity::Info, "spec.submissionMode", message);
    }
    expansion
}

fn submitter() -> Container {
    container("ray-job-submitter", "500m", "200Mi")
}

fn selects(job: &RayJob) -> bool {
    !job.spec.cluster_selector.is_empty()
}

/// Its operator's validation.
fn refusals(job: &RayJob, expansion: &mut Expansion<'_>) {
    let spec = &job.spec;
    let sidecar = spec.submission_mode == SubmissionMode::SidecarMode;
    if spec.suspend && (selects(job) || !spec.shutdown_after_job_finishes) {
        let message = "A RayJob that is suspended without `shutdownAfterJobFinishes`, or on a cluster \
                       that it selects, is refused.";
        expansion.refuse("spec.suspend", message);
    }
    if sidecar && (selects(job) || spec.submitter_pod_template.is_some()) {
        let message = "A RayJob in SidecarMode with a submitter's template, or on a cluster that it \
                       selects, is refused.";
        expansion.refuse("spec.submissionMode", message);
    }
    if spec.ray_cluster_spec.is_none() && !selects(job) {
        let message = "A RayJob with neither `rayClusterSpec` nor `clusterSelector` is refused.";
        expansion.refuse("spec.rayClusterSpec", message);
    }
}

/// A RayService.
pub(super) fn service(service: &RayService) -> Expansion<'_> {
    let mut expansion = Expansion { keeps_leaving: true, ..Expansion::default() };
    let by = service.spec.managed_by.as_deref();
    expansion.managed(by, &[OPERATOR], "spec.managedBy", "RayService");
    let config = &service.spec.ray_cluster_config;
    expansion.suspended(config.suspend, "spec.rayClusterConfig.suspend", "RayService");
    add_groups(&service.metadata.name, "spec.rayClusterConfig", config, &mut expansion);
    stand_for_cluster(&mut expansion);
    expansion
}

/// The cluster has a name of its own, and is asked itself once it exists.
fn stand_for_cluster(expansion: &mut Expansion<'_>) {
    for role in &mut expansion.roles {
        role.stands_for = Some(StandsFor::Object(WorkloadKind::RayCluster, None));
    }
}
