//! What edits do to the objects that declare groups: the levels that they require, and the fewest pods
//! that start at once.

use std::collections::BTreeMap;

use phalanx_objects::Object;
use phalanx_objects::meta::{Annotations, ObjectMeta};
use phalanx_objects::scheduling::{
    GroupConstraints, GroveTopologyConstraint, KaiTopologyConstraint, NetworkTopology, Scheduling,
};
use phalanx_objects::workload::Workload;

use super::super::kind_word;

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
        | Object::NodeTopology(_) => {}
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

/// The fewest pods of a group that start at once, where the object says it.
pub(crate) fn minimum(object: &Object) -> Option<u32> {
    let mut copy = object.clone();
    let number = match minimum_of(&mut copy)? {
        Fewest::Given(number) => Some(*number),
        Fewest::Maybe(number, all) => number.or(all),
    };
    number.and_then(|number| u32::try_from(number).ok())
}

/// Sets it.
pub(super) fn set_minimum(object: &mut Object, count: u32) -> Result<(), String> {
    let count = i32::try_from(count).map_err(|_| "that is more than a group can have")?;
    let word = kind_word(object.kind());
    match minimum_of(object) {
        Some(Fewest::Given(number)) => *number = count,
        Some(Fewest::Maybe(number, _)) => *number = Some(count),
        None => return Err(format!("this {word} does not say how many pods start at once")),
    }
    Ok(())
}

/// Where an object says the fewest pods: always, or where it is not all of so many.
enum Fewest<'a> {
    Given(&'a mut i32),
    Maybe(&'a mut Option<i32>, Option<i32>),
}

fn minimum_of(object: &mut Object) -> Option<Fewest<'_>> {
    match object {
        Object::Scheduling(Scheduling::PodGroup(of)) => {
            let gang = of.spec.scheduling_policy.gang.as_mut().or(of.spec.policy.gang.as_mut());
            gang.map(|gang| Fewest::Given(&mut gang.min_count))
        }
        Object::Scheduling(Scheduling::Coscheduling(of)) => {
            (of.spec.min_member > 0).then_some(Fewest::Given(&mut of.spec.min_member))
        }
        Object::Scheduling(Scheduling::VolcanoPodGroup(of)) => {
            of.spec.min_task_member.is_empty().then_some(Fewest::Given(&mut of.spec.min_member))
        }
        Object::Scheduling(Scheduling::KaiPodGroup(of)) => {
            let whole = of.spec.sub_groups.is_empty() && of.spec.min_member.is_some();
            whole.then_some(Fewest::Maybe(&mut of.spec.min_member, None))
        }
        Object::Workload(Workload::Job(job)) => {
            let all = job.spec.parallelism;
            let gang = job.spec.scheduling.as_mut()?.scheduling_policy.gang.as_mut();
            gang.map(|gang| Fewest::Maybe(&mut gang.min_count, all))
        }
        Object::Workload(Workload::VolcanoJob(job)) => job
            .spec
            .min_available
            .is_some()
            .then_some(Fewest::Maybe(&mut job.spec.min_available, None)),
        Object::Workload(_)
        | Object::Scheduling(_)
        | Object::Node(_)
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
        | Object::NodeTopology(_) => None,
    }
}
