//! What edits do to the objects that declare groups: the levels that they require, and the fewest pods
//! and groups that start at once.

use std::collections::BTreeMap;

use phalanx_objects::Object;
use phalanx_objects::meta::{Annotations, ObjectMeta};
use phalanx_objects::scheduling::{
    GroupConstraints, GroveTopologyConstraint, KaiPodGroupSpec, KaiSubGroup, KaiTopologyConstraint,
    NetworkTopology, Scheduling,
};
use phalanx_objects::workload::Workload;

use super::super::{Minimum, kind_word};
use crate::lower::task_name;

/// Kueue's annotations that require a level, each with the one that takes its place: the wish for the
/// same level, and no wish at all.
const REQUIRED: &str = "kueue.x-k8s.io/podset-required-topology";
const PREFERRED: &str = "kueue.x-k8s.io/podset-preferred-topology";
const SLICES: &str = "kueue.x-k8s.io/podset-slice-required-topology";
const UNCONSTRAINED: &str = "kueue.x-k8s.io/podset-unconstrained-topology";

/// The levels that the object requires of groups, as edits name them.
pub(crate) fn levels(object: &Object) -> Vec<String> {
    let mut found = Vec::new();
    visit(&mut object.clone(), &mut |level| {
        found.push(level.to_owned());
        false
    });
    found.sort();
    found.dedup();
    found
}

/// Makes a level that the object requires one that is wished, where its API has wishes, else drops it.
pub(super) fn drop_level(object: &mut Object, level: &str) -> Result<(), String> {
    let mut found = false;
    visit(object, &mut |other| {
        found |= other == level;
        other == level
    });
    if found { Ok(()) } else { Err(format!("it requires no topology {level}")) }
}

/// Goes through the levels that an object requires; those of which `drop` says so are given up.
fn visit(object: &mut Object, drop: &mut dyn FnMut(&str) -> bool) {
    match object {
        Object::Scheduling(object) => of_group(object, drop),
        Object::Workload(_) => of_workload(object, drop),
        Object::Pod(_) => of_templates(object, drop),
        Object::Node(_)
        | Object::Namespace(_)
        | Object::Service(_)
        | Object::ReplicationController(_)
        | Object::ServiceAccount(_)
        | Object::PriorityClass(_)
        | Object::RuntimeClass(_)
        | Object::LimitRange(_)
        | Object::ResourceQuota(_)
        | Object::ResourceSlice(_)
        | Object::ResourceClaim(_)
        | Object::ResourceClaimTemplate(_)
        | Object::DeviceClass(_)
        | Object::DeviceTaintRule(_)
        | Object::PersistentVolume(_)
        | Object::PersistentVolumeClaim(_)
        | Object::StorageClass(_)
        | Object::CSINode(_)
        | Object::CSIDriver(_)
        | Object::CSIStorageCapacity(_)
        | Object::VolumeAttachment(_)
        | Object::NodeTopology(_)
        | Object::Placement(_) => {}
    }
}

fn of_group(object: &mut Scheduling, drop: &mut dyn FnMut(&str) -> bool) {
    match object {
        Scheduling::PodGroup(of) => upstream(of.spec.scheduling_constraints.as_mut(), drop),
        Scheduling::CompositePodGroup(of) => {
            upstream(of.spec.scheduling_constraints.as_mut(), drop);
        }
        Scheduling::VolcanoPodGroup(of) => {
            let parts = of.spec.sub_group_policy.iter_mut();
            let parts = parts.filter_map(|part| part.network_topology.as_mut());
            for one in of.spec.network_topology.iter_mut().chain(parts) {
                volcano(one, drop);
            }
        }
        Scheduling::KaiPodGroup(of) => {
            let parts = of.spec.sub_groups.iter_mut();
            let parts = parts.filter_map(|part| part.topology_constraint.as_mut());
            for one in of.spec.topology_constraint.iter_mut().chain(parts) {
                kai(one, drop);
            }
        }
        Scheduling::PodGang(of) => {
            let groups = of.spec.pod_groups.iter_mut();
            let groups = groups.filter_map(|part| part.topology_constraint.as_mut());
            let configs = of.spec.topology_constraint_group_configs.iter_mut();
            let configs = configs.filter_map(|part| part.topology_constraint.as_mut());
            for one in of.spec.topology_constraint.iter_mut().chain(groups).chain(configs) {
                grove(one, drop);
            }
        }
        Scheduling::Templates(_)
        | Scheduling::KueueWorkload(_)
        | Scheduling::Coscheduling(_)
        | Scheduling::KueueTopology(_)
        | Scheduling::KaiTopology(_)
        | Scheduling::HyperNode(_)
        | Scheduling::ComputeDomain(_) => {}
    }
}

fn of_workload(object: &mut Object, drop: &mut dyn FnMut(&str) -> bool) {
    if let Object::Workload(Workload::Job(job)) = object
        && let Some(scheduling) = &mut job.spec.scheduling
    {
        upstream(scheduling.scheduling_constraints.as_mut(), drop);
    }
    if let Object::Workload(Workload::VolcanoJob(job)) = object
        && let Some(topology) = &mut job.spec.network_topology
    {
        volcano(topology, drop);
    }
    of_templates(object, drop);
}

/// What Kueue's annotations on pods and templates require.
fn of_templates(object: &mut Object, drop: &mut dyn FnMut(&str) -> bool) {
    let mut act = |meta: &mut ObjectMeta| {
        for (required, instead) in [(REQUIRED, PREFERRED), (SLICES, UNCONSTRAINED)] {
            let Some(level) = meta.annotations.get(required).cloned() else { continue };
            if !drop(&level) {
                continue;
            }
            let mut all: BTreeMap<String, String> = (*meta.annotations).clone();
            all.remove(required);
            let value = if instead == UNCONSTRAINED { "true".to_owned() } else { level };
            if instead == PREFERRED || !all.contains_key(PREFERRED) {
                all.entry(instead.to_owned()).or_insert(value);
            }
            meta.annotations = all.into_iter().collect::<Annotations>();
        }
    };
    if let Object::Pod(_) = object {
        act(object.metadata_mut());
        return;
    }
    object.pod_parts_mut().into_iter().filter_map(|part| part.metadata).for_each(act);
}

fn upstream(of: Option<&mut GroupConstraints>, drop: &mut dyn FnMut(&str) -> bool) {
    if let Some(of) = of {
        of.topology.retain(|one| !drop(&one.key));
    }
}

fn volcano(of: &mut NetworkTopology, drop: &mut dyn FnMut(&str) -> bool) {
    let level = match (of.highest_tier_allowed, of.highest_tier_name.as_str()) {
        (Some(tier), _) => format!("tier-{tier}"),
        (None, "") => return,
        (None, name) => name.to_owned(),
    };
    if of.mode != "soft" && drop(&level) {
        "soft".clone_into(&mut of.mode);
    }
}

fn kai(of: &mut KaiTopologyConstraint, drop: &mut dyn FnMut(&str) -> bool) {
    if !of.required_topology_level.is_empty() && drop(&of.required_topology_level) {
        let level = std::mem::take(&mut of.required_topology_level);
        if of.preferred_topology_level.is_empty() {
            of.preferred_topology_level = level;
        }
    }
}

fn grove(of: &mut GroveTopologyConstraint, drop: &mut dyn FnMut(&str) -> bool) {
    let Some(pack) = &mut of.pack_constraint else { return };
    if let Some(level) = pack.required.clone().filter(|level| drop(level)) {
        pack.required = None;
        pack.preferred.get_or_insert(level);
    }
}

/// What the object says of how much of a group starts at once: each number with what is counted, as it is
/// now.
pub(crate) fn minima(object: &Object) -> Vec<Minimum> {
    let mut found = Vec::new();
    each_minimum(&mut object.clone(), &mut |groups, of, fewest| {
        let now = match fewest {
            Fewest::Given(number) => Some(*number),
            Fewest::Maybe(number, all) => number.or(all),
        };
        let count = now.and_then(|number| u32::try_from(number).ok());
        let of = of.map(str::to_owned);
        found.extend(count.map(|count| Minimum { groups, of, count }));
    });
    found
}

/// Sets one of them.
pub(super) fn set_minimum(object: &mut Object, to: &Minimum) -> Result<(), String> {
    let count = i32::try_from(to.count).map_err(|_| "that is more than a group can have")?;
    let word = kind_word(object.kind());
    let mut found = false;
    each_minimum(object, &mut |groups, of, fewest| {
        if groups != to.groups || of != to.of.as_deref() {
            return;
        }
        found = true;
        match fewest {
            Fewest::Given(number) => *number = count,
            Fewest::Maybe(number, _) => *number = Some(count),
        }
    });
    let what = if to.groups { "groups" } else { "pods" };
    let of = to.of.as_ref().map_or_else(String::new, |of| format!(" of {of}"));
    if found {
        Ok(())
    } else {
        Err(format!("this {word} does not say how many {what}{of} start at once"))
    }
}

/// Where an object says the fewest: always, or where it is not all of so many.
enum Fewest<'a> {
    Given(&'a mut i32),
    Maybe(&'a mut Option<i32>, Option<i32>),
}

/// What is done with a minimum: whether it counts groups, the part that it is of, and where it stands.
type Act<'a> = dyn FnMut(bool, Option<&str>, Fewest<'_>) + 'a;

fn each_minimum(object: &mut Object, act: &mut Act<'_>) {
    match object {
        Object::Scheduling(of) => of_object(of, act),
        Object::Workload(of) => in_workload(of, act),
        Object::Node(_)
        | Object::Pod(_)
        | Object::Namespace(_)
        | Object::Service(_)
        | Object::ReplicationController(_)
        | Object::ServiceAccount(_)
        | Object::PriorityClass(_)
        | Object::RuntimeClass(_)
        | Object::LimitRange(_)
        | Object::ResourceQuota(_)
        | Object::ResourceSlice(_)
        | Object::ResourceClaim(_)
        | Object::ResourceClaimTemplate(_)
        | Object::DeviceClass(_)
        | Object::DeviceTaintRule(_)
        | Object::PersistentVolume(_)
        | Object::PersistentVolumeClaim(_)
        | Object::StorageClass(_)
        | Object::CSINode(_)
        | Object::CSIDriver(_)
        | Object::CSIStorageCapacity(_)
        | Object::VolumeAttachment(_)
        | Object::NodeTopology(_)
        | Object::Placement(_) => {}
    }
}

fn of_object(object: &mut Scheduling, act: &mut Act<'_>) {
    match object {
        Scheduling::PodGroup(of) => {
            let gang = of.spec.scheduling_policy.gang.as_mut().or(of.spec.policy.gang.as_mut());
            gang.into_iter().for_each(|gang| act(false, None, Fewest::Given(&mut gang.min_count)));
        }
        Scheduling::CompositePodGroup(of) => {
            if let Some(gang) = &mut of.spec.scheduling_policy.gang {
                act(true, None, Fewest::Given(&mut gang.min_group_count));
            }
        }
        Scheduling::Coscheduling(of) if of.spec.min_member > 0 => {
            act(false, None, Fewest::Given(&mut of.spec.min_member));
        }
        Scheduling::VolcanoPodGroup(of) => {
            act(false, None, Fewest::Given(&mut of.spec.min_member));
            for (task, least) in &mut of.spec.min_task_member {
                act(false, Some(task), Fewest::Given(least));
            }
            for part in &mut of.spec.sub_group_policy {
                if let Some(least) = &mut part.min_sub_groups {
                    act(true, Some(&part.name), Fewest::Given(least));
                }
            }
        }
        Scheduling::KaiPodGroup(of) => of_kai(&mut of.spec, act),
        Scheduling::PodGang(of) => {
            for group in &mut of.spec.pod_groups {
                act(false, Some(&group.name), Fewest::Given(&mut group.min_replicas));
            }
        }
        Scheduling::Coscheduling(_)
        | Scheduling::Templates(_)
        | Scheduling::KueueWorkload(_)
        | Scheduling::KueueTopology(_)
        | Scheduling::KaiTopology(_)
        | Scheduling::HyperNode(_)
        | Scheduling::ComputeDomain(_) => {}
    }
}

/// Of KAI's PodGroup; one of subgroups starts with all of them where it names neither minimum.
fn of_kai(spec: &mut KaiPodGroupSpec, act: &mut Act<'_>) {
    let under = |name: &str, subs: &[KaiSubGroup]| {
        let under = subs.iter().filter(|sub| sub.parent.as_deref().unwrap_or_default() == name);
        i32::try_from(under.count()).ok().filter(|count| *count > 0)
    };
    let tops = under("", &spec.sub_groups);
    if let Some(least) = spec.min_member.as_mut().filter(|least| **least > 0) {
        act(false, None, Fewest::Given(least));
    } else if tops.is_some() {
        act(true, None, Fewest::Maybe(&mut spec.min_sub_group, tops));
    }
    let below: Vec<Option<i32>> =
        spec.sub_groups.iter().map(|sub| under(&sub.name, &spec.sub_groups)).collect();
    for (sub, below) in spec.sub_groups.iter_mut().zip(below) {
        if below.is_some() {
            act(true, Some(&sub.name), Fewest::Maybe(&mut sub.min_sub_group, below));
        } else if let Some(least) = sub.min_member.as_mut().filter(|least| **least > 0) {
            act(false, Some(&sub.name), Fewest::Given(least));
        }
    }
}

fn in_workload(object: &mut Workload, act: &mut Act<'_>) {
    match object {
        Workload::Job(job) => {
            let all = job.spec.parallelism;
            if let Some(gang) =
                job.spec.scheduling.as_mut().and_then(|of| of.scheduling_policy.gang.as_mut())
            {
                act(false, None, Fewest::Maybe(&mut gang.min_count, all));
            }
        }
        Workload::VolcanoJob(job) => {
            if job.spec.min_available.is_some() {
                act(false, None, Fewest::Maybe(&mut job.spec.min_available, None));
            }
            for (index, task) in job.spec.tasks.iter_mut().enumerate() {
                let name = task_name(task, index);
                let parts = task.partition_policy.as_mut().filter(|of| of.min_partitions > 0);
                match parts.filter(|_| task.min_available.is_none()) {
                    Some(parts) => {
                        act(true, Some(&name), Fewest::Given(&mut parts.min_partitions));
                    }
                    None => {
                        let all = Some(task.replicas);
                        act(false, Some(&name), Fewest::Maybe(&mut task.min_available, all));
                    }
                }
            }
        }
        Workload::PodCliqueSet(set) => {
            for clique in &mut set.spec.template.cliques {
                let all = Some(clique.spec.replicas.max(1));
                let least = Fewest::Maybe(&mut clique.spec.min_available, all);
                act(false, Some(&clique.name), least);
            }
        }
        Workload::MpiJob(job)
        | Workload::PyTorchJob(job)
        | Workload::TfJob(job)
        | Workload::XgBoostJob(job)
        | Workload::PaddleJob(job)
        | Workload::JaxJob(job) => {
            let policy = job.spec.run_policy.scheduling_policy.as_mut();
            if let Some(policy) = policy.filter(|policy| policy.min_available.is_some()) {
                act(false, None, Fewest::Maybe(&mut policy.min_available, None));
            }
        }
        Workload::CronJob(_)
        | Workload::Deployment(_)
        | Workload::ReplicaSet(_)
        | Workload::StatefulSet(_)
        | Workload::DaemonSet(_)
        | Workload::JobSet(_)
        | Workload::LeaderWorkerSet(_)
        | Workload::TrainJob(_)
        | Workload::TrainingRuntime(_)
        | Workload::ClusterTrainingRuntime(_)
        | Workload::RayCluster(_)
        | Workload::RayJob(_)
        | Workload::RayService(_)
        | Workload::AppWrapper(_) => {}
    }
}
