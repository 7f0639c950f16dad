//! Where in a workload its pods are described.

use std::sync::Arc;

use super::{AppWrapperComponent, JobSpec, PodCliqueSet, RayClusterSpec, ReplicatedJob, Workload};
use crate::core::{PodSpec, PodTemplateSpec};
use crate::meta::ObjectMeta;
use crate::object::Object;

/// A description of pods in an object.
#[derive(Clone, Debug)]
pub struct PodPart<'a> {
    /// The path of the spec in the object, such as `spec.template.spec`.
    pub at: String,
    /// The metadata of the pods, where it stands beside the spec.
    pub metadata: Option<&'a ObjectMeta>,
    /// The spec.
    pub spec: &'a PodSpec,
}

/// The same, to be changed.
#[derive(Debug)]
pub struct PodPartMut<'a> {
    /// The path of the spec in the object.
    pub at: String,
    /// The metadata of the pods, where it stands beside the spec.
    pub metadata: Option<&'a mut ObjectMeta>,
    /// The spec.
    pub spec: &'a mut PodSpec,
}

/// Goes through the descriptions of pods in a workload, to look at them or to change them.
macro_rules! walk {
    ($name:ident, $part:ident, $iter:ident, $maps:ident, $as_ref:ident, $wrapped:ident,
        $template:ident, $jobs:ident, $ray:ident, $wrapped_in:ident, $own:path $(, $mut:tt)?) => {
        impl Workload {
            /// The descriptions of pods in it, in its order. A TrainJob has none: its pods are
            /// described in its runtime.
            pub fn $name(&$($mut)? self) -> Vec<$part<'_>> {
                match self {
                    Self::Job(of) => vec![$template("spec.template", & $($mut)? of.spec.template)],
                    Self::CronJob(of) => {
                        let job = & $($mut)? of.spec.job_template.spec;
                        vec![$template("spec.jobTemplate.spec.template", & $($mut)? job.template)]
                    }
                    Self::Deployment(of) => vec![$template("spec.template", & $($mut)? of.spec.template)],
                    Self::ReplicaSet(of) => vec![$template("spec.template", & $($mut)? of.spec.template)],
                    Self::StatefulSet(of) => vec![$template("spec.template", & $($mut)? of.spec.template)],
                    Self::DaemonSet(of) => vec![$template("spec.template", & $($mut)? of.spec.template)],
                    Self::JobSet(of) => $jobs("spec", & $($mut)? of.spec.replicated_jobs),
                    Self::TrainingRuntime(of) | Self::ClusterTrainingRuntime(of) => {
                        let spec = & $($mut)? of.spec.template.spec;
                        $jobs("spec.template.spec", & $($mut)? spec.replicated_jobs)
                    }
                    Self::TrainJob(_) => Vec::new(),
                    Self::LeaderWorkerSet(of) => {
                        let all = & $($mut)? of.spec.leader_worker_template;
                        let at = "spec.leaderWorkerTemplate";
                        let leader = all.leader_template.$as_ref().map(|of| $template(&format!("{at}.leaderTemplate"), of));
                        let at = format!("{at}.workerTemplate");
                        let worker = $template(&at, & $($mut)? all.worker_template);
                        leader.into_iter().chain([worker]).collect()
                    }
                    Self::MpiJob(of)
                    | Self::PyTorchJob(of)
                    | Self::TfJob(of)
                    | Self::XgBoostJob(of)
                    | Self::PaddleJob(of)
                    | Self::JaxJob(of) => {
                        let maps = of.spec.$maps().into_iter();
                        maps.flat_map(|(field, map)| {
                            map.$iter().map(move |(role, replicas)| {
                                let at = format!("spec.{field}.{role}.template");
                                $template(&at, & $($mut)? replicas.template)
                            })
                        })
                        .collect()
                    }
                    Self::RayCluster(of) => $ray("spec", & $($mut)? of.spec),
                    Self::RayJob(of) => {
                        let spec = & $($mut)? of.spec;
                        let cluster = spec.ray_cluster_spec.$as_ref();
                        let cluster = cluster.map(|of| $ray("spec.rayClusterSpec", of));
                        let submitter = spec.submitter_pod_template.$as_ref();
                        let submitter =
                            submitter.map(|of| $template("spec.submitterPodTemplate", of));
                        cluster.into_iter().flatten().chain(submitter).collect()
                    }
                    Self::RayService(of) => {
                        $ray("spec.rayClusterConfig", & $($mut)? of.spec.ray_cluster_config)
                    }
                    Self::VolcanoJob(of) => {
                        let tasks = of.spec.tasks.$iter().enumerate();
                        tasks.map(|(at, task)| {
                            $template(&format!("spec.tasks[{at}].template"), & $($mut)? task.template)
                        })
                        .collect()
                    }
                    Self::PodCliqueSet(of) => {
                        let cliques = of.spec.template.cliques.$iter().enumerate();
                        cliques.map(|(at, clique)| $part {
                            at: format!("spec.template.cliques[{at}].spec.podSpec"),
                            metadata: None,
                            spec: & $($mut)? clique.spec.pod_spec,
                        })
                        .collect()
                    }
                    Self::AppWrapper(of) => $wrapped_in(& $($mut)? of.spec.components),
                }
            }
        }

        impl Object {
            /// The descriptions of pods in it: itself of a pod, the templates of a workload.
            pub fn $wrapped(&$($mut)? self) -> Vec<$part<'_>> {
                match self {
                    Self::Pod(pod) => {
                        let pod = $own(pod);
                        vec![$part {
                            at: "spec".to_owned(),
                            metadata: Some(& $($mut)? pod.metadata),
                            spec: & $($mut)? pod.spec,
                        }]
                    }
                    Self::Workload(workload) => workload.$name(),
                    Self::Node(_)
                    | Self::Namespace(_)
                    | Self::Service(_)
                    | Self::ReplicationController(_)
                    | Self::ServiceAccount(_)
                    | Self::PriorityClass(_)
                    | Self::RuntimeClass(_)
                    | Self::LimitRange(_)
                    | Self::ResourceQuota(_)
                    | Self::ResourceSlice(_)
                    | Self::ResourceClaim(_)
                    | Self::ResourceClaimTemplate(_)
                    | Self::DeviceClass(_)
                    | Self::DeviceTaintRule(_)
                    | Self::PersistentVolume(_)
                    | Self::PersistentVolumeClaim(_)
                    | Self::StorageClass(_)
                    | Self::CSINode(_)
                    | Self::CSIDriver(_)
                    | Self::CSIStorageCapacity(_)
                    | Self::VolumeAttachment(_)
                    | Self::Scheduling(_)
                    | Self::NodeTopology(_)
                    | Self::Placement(_) => Vec::new(),
                }
            }
        }

        fn $jobs<'a>(at: &str, jobs: &'a $($mut)? [ReplicatedJob]) -> Vec<$part<'a>> {
            let jobs = jobs.$iter().enumerate();
            jobs.map(|(index, job)| {
                let at = format!("{at}.replicatedJobs[{index}].template.spec.template");
                $template(&at, & $($mut)? job.template.spec.template)
            })
            .collect()
        }

        fn $wrapped_in<'a>(components: &'a $($mut)? [AppWrapperComponent]) -> Vec<$part<'a>> {
            let mut all = Vec::new();
            for (at, component) in components.$iter().enumerate() {
                let Some(object) = component.template.object.$as_ref() else { continue };
                all.extend(object.$wrapped().into_iter().map(|part| $part {
                    at: format!("spec.components[{at}].template.{}", part.at),
                    ..part
                }));
            }
            all
        }

        fn $ray<'a>(at: &str, spec: &'a $($mut)? RayClusterSpec) -> Vec<$part<'a>> {
            let mut parts = vec![$template(
                &format!("{at}.headGroupSpec.template"),
                & $($mut)? spec.head_group_spec.template,
            )];
            for (index, group) in spec.worker_group_specs.$iter().enumerate() {
                let at = format!("{at}.workerGroupSpecs[{index}].template");
                parts.push($template(&at, & $($mut)? group.template));
            }
            parts
        }

        fn $template<'a>(at: &str, template: &'a $($mut)? PodTemplateSpec) -> $part<'a> {
            $part {
                at: format!("{at}.spec"),
                metadata: Some(& $($mut)? template.metadata),
                spec: & $($mut)? template.spec,
            }
        }
    };
}

walk!(parts, PodPart, iter, maps, as_ref, pod_parts, template, jobs, ray, wrapped, AsRef::as_ref);
walk!(
    parts_mut,
    PodPartMut,
    iter_mut,
    maps_mut,
    as_mut,
    pod_parts_mut,
    template_mut,
    jobs_mut,
    ray_mut,
    wrapped_mut,
    Arc::make_mut,
    mut
);

impl PodPart<'_> {
    /// The path of the metadata beside the spec.
    #[must_use]
    pub fn metadata_at(&self) -> String {
        match self.at.strip_suffix("spec") {
            Some(before) => format!("{before}metadata"),
            None => String::new(),
        }
    }
}

impl Workload {
    /// The counts in it that are given, by path. None of them can be negative.
    #[must_use]
    pub fn counts(&self) -> Vec<(String, i64)> {
        let mut all = Counts(Vec::new());
        match self {
            Self::Job(of) => all.job("spec", &of.spec),
            Self::CronJob(of) => all.job("spec.jobTemplate.spec", &of.spec.job_template.spec),
            Self::Deployment(of) => all.add("spec.replicas", of.spec.replicas),
            Self::ReplicaSet(of) => all.add("spec.replicas", of.spec.replicas),
            Self::StatefulSet(of) => {
                all.add("spec.replicas", of.spec.replicas);
                all.add("spec.ordinals.start", of.spec.ordinals.as_ref().map(|o| o.start));
            }
            Self::DaemonSet(_) | Self::AppWrapper(_) => {}
            Self::JobSet(of) => all.jobs("spec", &of.spec.replicated_jobs),
            Self::TrainingRuntime(of) | Self::ClusterTrainingRuntime(of) => {
                all.jobs("spec.template.spec", &of.spec.template.spec.replicated_jobs);
                let policy = of.spec.ml_policy.as_ref();
                all.add("spec.mlPolicy.numNodes", policy.and_then(|policy| policy.num_nodes));
            }
            Self::TrainJob(of) => {
                let trainer = of.spec.trainer.as_ref();
                all.add("spec.trainer.numNodes", trainer.and_then(|trainer| trainer.num_nodes));
            }
            Self::LeaderWorkerSet(of) => {
                all.add("spec.replicas", of.spec.replicas);
                let template = &of.spec.leader_worker_template;
                all.add("spec.leaderWorkerTemplate.size", template.size);
            }
            Self::MpiJob(of)
            | Self::PyTorchJob(of)
            | Self::TfJob(of)
            | Self::XgBoostJob(of)
            | Self::PaddleJob(of)
            | Self::JaxJob(of) => {
                for (field, map) in of.spec.maps() {
                    for (role, spec) in map {
                        all.add(&format!("spec.{field}.{role}.replicas"), spec.replicas);
                    }
                }
            }
            Self::RayCluster(of) => all.ray("spec", &of.spec),
            Self::RayJob(of) => {
                let cluster = of.spec.ray_cluster_spec.iter();
                cluster.for_each(|cluster| all.ray("spec.rayClusterSpec", cluster));
            }
            Self::RayService(of) => all.ray("spec.rayClusterConfig", &of.spec.ray_cluster_config),
            Self::VolcanoJob(of) => {
                for (at, task) in of.spec.tasks.iter().enumerate() {
                    all.add(&format!("spec.tasks[{at}].replicas"), Some(task.replicas));
                }
            }
            Self::PodCliqueSet(of) => all.cliques(of),
        }
        all.0
    }
}

/// Counts under way.
struct Counts(Vec<(String, i64)>);

impl Counts {
    fn add(&mut self, at: &str, count: Option<i32>) {
        self.0.extend(count.map(|count| (at.to_owned(), i64::from(count))));
    }

    fn job(&mut self, at: &str, spec: &JobSpec) {
        self.add(&format!("{at}.parallelism"), spec.parallelism);
        self.add(&format!("{at}.completions"), spec.completions);
    }

    fn jobs(&mut self, at: &str, jobs: &[ReplicatedJob]) {
        for (index, job) in jobs.iter().enumerate() {
            let at = format!("{at}.replicatedJobs[{index}]");
            self.add(&format!("{at}.replicas"), job.replicas);
            self.job(&format!("{at}.template.spec"), &job.template.spec);
        }
    }

    fn ray(&mut self, at: &str, spec: &RayClusterSpec) {
        for (index, group) in spec.worker_group_specs.iter().enumerate() {
            let at = format!("{at}.workerGroupSpecs[{index}]");
            self.add(&format!("{at}.replicas"), group.replicas);
            self.add(&format!("{at}.minReplicas"), group.min_replicas);
            self.add(&format!("{at}.maxReplicas"), group.max_replicas);
            self.add(&format!("{at}.numOfHosts"), group.num_of_hosts);
        }
    }

    fn cliques(&mut self, set: &PodCliqueSet) {
        self.add("spec.replicas", Some(set.spec.replicas));
        let template = &set.spec.template;
        for (at, clique) in template.cliques.iter().enumerate() {
            let at = format!("spec.template.cliques[{at}].spec.replicas");
            self.add(&at, Some(clique.spec.replicas));
        }
        for (at, group) in template.pod_clique_scaling_groups.iter().enumerate() {
            let at = format!("spec.template.podCliqueScalingGroups[{at}].replicas");
            self.add(&at, group.replicas);
        }
    }
}
