//! What an edit does to the objects: which are put in a new form, which are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_objects::core::{
    Affinity, PodAffinity, PodSpec, TaintEffect, Toleration, TolerationOperator,
    UnsatisfiableConstraintAction,
};
use phalanx_objects::meta::{Annotations, ObjectMeta};
use phalanx_objects::resource::{
    DeviceSelector, DeviceToleration, ResourceClaim, ResourceClaimSpec,
};
use phalanx_objects::topology::AlignLevel;
use phalanx_objects::topology::{ALIGN_ANNOTATION, AlignRule};
use phalanx_objects::workload::{Workload, WorkloadKind};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::{Edit, EditError, Relaxation, Setting, Target, kind_word};
use crate::lower::{manager, recognise};
use crate::world::Objects;

mod groups;
mod nodes;

pub(crate) use groups::{levels, minima};
pub(crate) use nodes::healthy;

/// One object's change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Put {
    /// It now looks like this.
    Object(Box<Object>),
    /// It is gone.
    Gone(ObjectRef),
}

type Puts = Result<Vec<Put>, EditError>;

/// What `edit` does to `objects`, where it is asked in `namespace`.
pub(crate) fn apply(edit: &Edit, objects: &Objects, namespace: &str) -> Puts {
    match edit {
        Edit::AddNodes { count, like } => nodes::add(*count, like, objects),
        Edit::Heal { ills } => nodes::heal(ills, objects),
        Edit::Without { objects: gone } => without(gone, objects, namespace),
        Edit::Relax { object, what } => {
            let mut changed = find(object, objects, namespace)?.clone();
            relax(&mut changed, what)
                .map_err(|says| EditError(format!("`{edit}` can't be done: {says}")))?;
            Ok(vec![Put::Object(Box::new(changed))])
        }
        Edit::Set { object, what } => {
            let mut changed = find(object, objects, namespace)?.clone();
            set(&mut changed, what)
                .map_err(|says| EditError(format!("`{edit}` can't be done: {says}")))?;
            Ok(vec![Put::Object(Box::new(changed))])
        }
    }
}

fn find<'a>(
    target: &Target,
    objects: &'a Objects,
    namespace: &str,
) -> Result<&'a Object, EditError> {
    let reference = target.reference(namespace);
    objects.get(&reference).ok_or_else(|| missing(&reference, objects))
}

/// There is no such object; names a few that there are.
fn missing(reference: &ObjectRef, objects: &Objects) -> EditError {
    let word = kind_word(reference.kind);
    let known: Vec<String> = objects
        .of_kind(reference.kind)
        .take(8)
        .map(|object| {
            if object.namespace().is_empty() {
                object.name().to_owned()
            } else {
                format!("{}/{}", object.namespace(), object.name())
            }
        })
        .collect();
    let hint = if known.is_empty() {
        format!("no {word} was read")
    } else if let [only] = known.as_slice() {
        format!("there is only {only}")
    } else {
        format!("there are {}", known.join(", "))
    };
    let place = if reference.namespace.is_empty() {
        reference.name.clone()
    } else {
        format!("{}/{}", reference.namespace, reference.name)
    };
    EditError(format!("there is no {word} {place}: {hint}"))
}

/// The objects go, and with them what they own; claims lose the pods that go as users, and those
/// that nobody uses then are deallocated, as the resourceclaim controller does.
fn without(targets: &[Target], objects: &Objects, namespace: &str) -> Puts {
    let mut gone = BTreeSet::new();
    let mut open = Vec::new();
    for target in targets {
        open.push(find(target, objects, namespace)?.reference());
    }
    while let Some(reference) = open.pop() {
        open.extend(owned_by(&reference, objects).filter(|owned| !gone.contains(owned)));
        gone.insert(reference);
    }
    let mut puts = Vec::new();
    for object in objects.of_kind(Kind::ResourceClaim) {
        let Object::ResourceClaim(claim) = object else { continue };
        if gone.contains(&object.reference()) {
            continue;
        }
        let leaves = |name: &str| {
            let namespace = object.namespace().to_owned();
            gone.contains(&ObjectRef { kind: Kind::Pod, namespace, name: name.to_owned() })
        };
        let mut claim = ResourceClaim::clone(claim);
        let before = claim.status.reserved_for.len();
        claim.status.reserved_for.retain(|user| user.resource != "pods" || !leaves(&user.name));
        if claim.status.reserved_for.len() == before {
            continue;
        }
        if claim.status.reserved_for.is_empty() {
            claim.status.allocation = None;
            claim.status.devices.clear();
        }
        puts.push(Put::Object(Box::new(claim.into())));
    }
    puts.extend(gone.into_iter().map(Put::Gone));
    Ok(puts)
}

/// What `owner` manages, in its namespace. Only workloads and pods own what is read.
fn owned_by<'a>(
    owner: &'a ObjectRef,
    objects: &'a Objects,
) -> impl Iterator<Item = ObjectRef> + 'a {
    let kinds: Vec<Kind> = match owner.kind {
        Kind::Workload(_) => Kind::workloads().chain([Kind::Pod]).collect(),
        Kind::Pod => vec![Kind::ResourceClaim, Kind::PersistentVolumeClaim],
        Kind::Node
        | Kind::Namespace
        | Kind::Service
        | Kind::ReplicationController
        | Kind::ServiceAccount
        | Kind::PriorityClass
        | Kind::RuntimeClass
        | Kind::LimitRange
        | Kind::ResourceQuota
        | Kind::ResourceSlice
        | Kind::ResourceClaim
        | Kind::ResourceClaimTemplate
        | Kind::DeviceClass
        | Kind::DeviceTaintRule
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::StorageClass
        | Kind::CSINode
        | Kind::CSIDriver
        | Kind::CSIStorageCapacity
        | Kind::VolumeAttachment
        | Kind::Scheduling(_)
        | Kind::NodeTopology
        | Kind::Placement => Vec::new(),
    };
    let all = kinds.into_iter().flat_map(|kind| objects.in_namespace(kind, &owner.namespace));
    all.filter(|object| is_of(object, owner)).map(Object::reference)
}

/// Whether `owner` manages the object, if need be through others that need not be among the objects.
pub(crate) fn is_of(object: &Object, owner: &ObjectRef) -> bool {
    let is = |(kind, name, _): &(WorkloadKind, String, String)| {
        Kind::Workload(*kind) == owner.kind && *name == owner.name
    };
    let meta = object.metadata();
    match object {
        Object::Pod(_) => recognise(meta).is_some_and(|found| found.chain.iter().any(is)),
        Object::Workload(workload) => manager(workload.kind(), meta).as_ref().is_some_and(is),
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
        | Object::Scheduling(_)
        | Object::NodeTopology(_)
        | Object::Placement(_) => meta.controller().is_some_and(|controller| {
            controller.kind == owner.kind.as_str() && controller.name == owner.name
        }),
    }
}

/// The parts of an object that say how its pods are, and the metadata that may carry wishes.
fn pod_specs(object: &mut Object) -> Result<Vec<&mut PodSpec>, String> {
    let word = kind_word(object.kind());
    let makes = matches!(object, Object::Workload(_));
    let parts = object.pod_parts_mut();
    if parts.is_empty() {
        return Err(if makes {
            format!("a {word} does not say what its pods are like; name the object that does")
        } else {
            format!("a {word} makes no pods; name a pod or a workload")
        });
    }
    Ok(parts.into_iter().map(|part| part.spec).collect())
}

/// Does `act` to each part of an object that says how its pods are; whether it did anything.
fn in_pods(object: &mut Object, mut act: impl FnMut(&mut PodSpec) -> bool) -> Result<bool, String> {
    let mut done = false;
    for spec in pod_specs(object)? {
        done |= act(spec);
    }
    Ok(done)
}

fn claim_spec(
    object: &mut Object,
) -> Result<(Vec<&mut ObjectMeta>, &mut ResourceClaimSpec), String> {
    match object {
        Object::ResourceClaim(claim) => {
            let claim = Arc::make_mut(claim);
            Ok((vec![&mut claim.metadata], &mut claim.spec))
        }
        Object::ResourceClaimTemplate(template) => {
            let template = Arc::make_mut(template);
            Ok((vec![&mut template.metadata, &mut template.spec.metadata], &mut template.spec.spec))
        }
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
        | Object::DeviceClass(_)
        | Object::DeviceTaintRule(_)
        | Object::PersistentVolume(_)
        | Object::PersistentVolumeClaim(_)
        | Object::StorageClass(_)
        | Object::CSINode(_)
        | Object::CSIDriver(_)
        | Object::CSIStorageCapacity(_)
        | Object::VolumeAttachment(_)
        | Object::Workload(_)
        | Object::Scheduling(_)
        | Object::NodeTopology(_)
        | Object::Placement(_) => Err(format!(
            "a {} asks for no devices itself; name the resourceclaim or resourceclaimtemplate",
            kind_word(object.kind())
        )),
    }
}

fn relax(object: &mut Object, what: &Relaxation) -> Result<(), String> {
    match what {
        Relaxation::MatchAttribute(attribute) => {
            drop_constraint(object, |c| c.match_attribute.as_ref() == Some(attribute))
        }
        Relaxation::DistinctAttribute(attribute) => {
            drop_constraint(object, |c| c.distinct_attribute.as_ref() == Some(attribute))
        }
        Relaxation::Selectors(request) => {
            let mut dropped = 0;
            let found = in_request(object, request, |part| {
                dropped += part.selectors.len();
                part.selectors.clear();
            })?;
            match (found, dropped) {
                (false, _) => Err(no_request(request)),
                (true, 0) => Err(format!("request {request} has no selectors of its own")),
                (true, _) => Ok(()),
            }
        }
        Relaxation::DeviceTaint { key, request } => {
            // One that names no effect lets the pod in; only one that names NoExecute keeps it there.
            let stays = Toleration { effect: TaintEffect::NoExecute, ..tolerate(key) };
            let both = [tolerate(key), stays];
            let found = in_request(object, request, |part| part.tolerations.extend(both.clone()))?;
            if found { Ok(()) } else { Err(no_request(request)) }
        }
        Relaxation::Align(level) => drop_align(object, *level),
        Relaxation::Topology(level) => groups::drop_level(object, level),
        Relaxation::NodeSelector(key) => {
            let found = in_pods(object, |spec| spec.node_selector.remove(key).is_some())?;
            if found { Ok(()) } else { Err(format!("it selects nodes by no label {key}")) }
        }
        Relaxation::NodeAffinity => {
            let found = in_pods(object, |spec| {
                let affinity = spec.affinity.as_mut().and_then(|a| a.node_affinity.as_mut());
                let required = affinity
                    .and_then(|a| a.required_during_scheduling_ignored_during_execution.take());
                required.is_some()
            })?;
            if found { Ok(()) } else { Err("it has no required node affinity".to_owned()) }
        }
        Relaxation::HostPort(port) => drop_port(object, *port),
        Relaxation::PodAffinity => drop_terms(object, "affinity", |a| &mut a.pod_affinity),
        Relaxation::PodAntiAffinity => {
            drop_terms(object, "anti-affinity", |a| &mut a.pod_anti_affinity)
        }
        Relaxation::Spread(key) => drop_spread(object, key),
        Relaxation::NodeName => {
            let found = in_pods(object, |spec| !std::mem::take(&mut spec.node_name).is_empty())?;
            if found { Ok(()) } else { Err("it names no node itself".to_owned()) }
        }
        Relaxation::Gate(name) => {
            let found = in_pods(object, |spec| {
                let before = spec.scheduling_gates.len();
                spec.scheduling_gates.retain(|gate| gate.name != *name);
                spec.scheduling_gates.len() < before
            })?;
            if found { Ok(()) } else { Err(format!("it has no scheduling gate {name}")) }
        }
        Relaxation::Taint(key) => {
            in_pods(object, |spec| {
                spec.tolerations.push(tolerate(key));
                true
            })?;
            Ok(())
        }
    }
}

/// Takes a host port out of every container that asks for it.
fn drop_port(object: &mut Object, port: i32) -> Result<(), String> {
    let found = in_pods(object, |spec| {
        let network = spec.host_network;
        let mut dropped = false;
        for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
            let before = container.ports.len();
            container.ports.retain(|has| {
                let of_node = has.host_port == 0 && network;
                port != if of_node { has.container_port } else { has.host_port }
            });
            dropped |= container.ports.len() < before;
        }
        dropped
    })?;
    if found { Ok(()) } else { Err(format!("it asks for no host port {port}")) }
}

/// Takes the required terms out of the pod's affinity or anti-affinity to pods.
fn drop_terms(
    object: &mut Object,
    what: &str,
    of: impl Fn(&mut Affinity) -> &mut PodAffinity,
) -> Result<(), String> {
    let found = in_pods(object, |spec| {
        let affinity = spec.affinity.as_mut();
        let terms = affinity
            .map(|affinity| &mut of(affinity).required_during_scheduling_ignored_during_execution);
        terms.is_some_and(|terms| !std::mem::take(terms).is_empty())
    })?;
    if found { Ok(()) } else { Err(format!("it has no required {what} to pods")) }
}

/// Takes the required constraints out that spread the pods over the values of a label.
fn drop_spread(object: &mut Object, key: &str) -> Result<(), String> {
    let found = in_pods(object, |spec| {
        let rules = &mut spec.topology_spread_constraints;
        let before = rules.len();
        rules.retain(|rule| {
            rule.topology_key != key
                || rule.when_unsatisfiable != UnsatisfiableConstraintAction::DoNotSchedule
        });
        rules.len() < before
    })?;
    if found {
        return Ok(());
    }
    Err(format!("no topology spread constraint with DoNotSchedule is over {key}"))
}

fn no_request(request: &str) -> String {
    format!("it has no request {request}")
}

/// Tolerates every taint with this key.
fn tolerate(key: &str) -> Toleration {
    Toleration {
        key: key.to_owned(),
        operator: TolerationOperator::Exists,
        ..Toleration::default()
    }
}

fn drop_constraint(
    object: &mut Object,
    dropped: impl Fn(&phalanx_objects::resource::DeviceConstraint) -> bool,
) -> Result<(), String> {
    let (_, spec) = claim_spec(object)?;
    let before = spec.devices.constraints.len();
    spec.devices.constraints.retain(|constraint| !dropped(constraint));
    if spec.devices.constraints.len() < before {
        return Ok(());
    }
    Err("it has no such constraint".to_owned())
}

/// What a request and an alternative of one have in common.
struct Part<'a> {
    selectors: &'a mut Vec<DeviceSelector>,
    tolerations: &'a mut Vec<DeviceToleration>,
    count: &'a mut i64,
}

/// Does `act` to the request `main`, all its alternatives, or the one `main/sub`; whether there is
/// any.
fn in_request(
    object: &mut Object,
    name: &str,
    mut act: impl FnMut(Part<'_>),
) -> Result<bool, String> {
    let (main, sub) = name.split_once('/').map_or((name, None), |(main, sub)| (main, Some(sub)));
    let (_, spec) = claim_spec(object)?;
    let mut found = false;
    for request in spec.devices.requests.iter_mut().filter(|request| request.name == main) {
        if let (Some(exactly), None) = (&mut request.exactly, sub) {
            let (selectors, tolerations) = (&mut exactly.selectors, &mut exactly.tolerations);
            act(Part { selectors, tolerations, count: &mut exactly.count });
            found = true;
        }
        let chosen = |name: &str| sub.is_none_or(|sub| sub == name);
        for part in request.first_available.iter_mut().filter(|part| chosen(&part.name)) {
            let (selectors, tolerations) = (&mut part.selectors, &mut part.tolerations);
            act(Part { selectors, tolerations, count: &mut part.count });
            found = true;
        }
    }
    Ok(found)
}

/// Takes a level out of the annotation wherever the object carries it.
fn drop_align(object: &mut Object, level: AlignLevel) -> Result<(), String> {
    let mut found = false;
    let mut drop = |meta: &mut ObjectMeta| found |= without_level(meta, level);
    if object.device_claim().is_some() {
        claim_spec(object)?.0.into_iter().for_each(&mut drop);
    } else if matches!(object, Object::Pod(_) | Object::Workload(_)) {
        drop(object.metadata_mut());
        object.pod_parts_mut().into_iter().filter_map(|part| part.metadata).for_each(&mut drop);
    }
    if found { Ok(()) } else { Err(format!("its {ALIGN_ANNOTATION} names no level {level}")) }
}

/// Takes a level out of an annotation; whether it was there.
fn without_level(meta: &mut ObjectMeta, level: AlignLevel) -> bool {
    let Some(text) = meta.annotations.get(ALIGN_ANNOTATION) else { return false };
    let Ok(rules) = AlignRule::parse(text) else { return false };
    let kept: Vec<String> = rules
        .iter()
        .filter(|rule| rule.level != level)
        .map(|rule| format!("{}={}", rule.level, rule.strength.as_str()))
        .collect();
    if kept.len() == rules.len() {
        return false;
    }
    let mut annotations: BTreeMap<String, String> = (*meta.annotations).clone();
    annotations.remove(ALIGN_ANNOTATION);
    if !kept.is_empty() {
        annotations.insert(ALIGN_ANNOTATION.to_owned(), kept.join(","));
    }
    meta.annotations = annotations.into_iter().collect::<Annotations>();
    true
}

fn set(object: &mut Object, what: &Setting) -> Result<(), String> {
    match what {
        Setting::Count { request, count } => {
            let found = in_request(object, request, |part| *part.count = i64::from(*count))?;
            if found { Ok(()) } else { Err(no_request(request)) }
        }
        Setting::Replicas(count) => set_replicas(object, *count),
        Setting::Minimum(minimum) => groups::set_minimum(object, minimum),
        Setting::Name { resource, other } => set_name(object, resource, other),
        Setting::Resource { resource, quantity } => set_resource(object, resource, quantity),
    }
}

fn set_replicas(object: &mut Object, count: u32) -> Result<(), String> {
    let count = i32::try_from(count).map_err(|_| "that is more than a workload can have")?;
    let word = kind_word(object.kind());
    match replicas_of(object) {
        Some(replicas) => {
            *replicas = Some(count);
            Ok(())
        }
        None => Err(format!(
            "a {word} has no replicas of its own; name a job, a deployment, a replicaset \
             or a statefulset, or change the manifest"
        )),
    }
}

/// The number of pods at a time of a workload of one role.
pub(crate) fn replicas(object: &Object) -> Option<i32> {
    replicas_of(&mut object.clone()).map(|replicas| replicas.unwrap_or(1))
}

/// The number of pods of a workload of one role.
fn replicas_of(object: &mut Object) -> Option<&mut Option<i32>> {
    let Object::Workload(workload) = object else { return None };
    match workload {
        Workload::Job(job) => Some(&mut job.spec.parallelism),
        Workload::Deployment(of) => Some(&mut of.spec.replicas),
        Workload::ReplicaSet(of) => Some(&mut of.spec.replicas),
        Workload::StatefulSet(of) => Some(&mut of.spec.replicas),
        Workload::CronJob(_)
        | Workload::DaemonSet(_)
        | Workload::JobSet(_)
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
        | Workload::AppWrapper(_) => None,
    }
}

/// Asks under another name for what every container asks of a resource.
fn set_name(object: &mut Object, resource: &str, other: &str) -> Result<(), String> {
    let mut found = false;
    let specs = pod_specs(object)?.into_iter();
    let all = specs.flat_map(|spec| spec.containers.iter_mut().chain(&mut spec.init_containers));
    for container in all {
        for list in [&mut container.resources.requests, &mut container.resources.limits] {
            let Some(quantity) = list.remove(resource) else { continue };
            if list.insert(other.to_owned(), quantity).is_some() {
                return Err(format!("a container requests {other} as well; change the manifest"));
            }
            found = true;
        }
    }
    if found { Ok(()) } else { Err(format!("no container requests {resource}")) }
}

/// Sets what the one container that requests the resource requests (or the pod as a whole).
fn set_resource(object: &mut Object, resource: &str, quantity: &str) -> Result<(), String> {
    let quantity: phalanx_objects::Quantity =
        quantity.parse().map_err(|error| format!("`{quantity}` is no quantity: {error}"))?;
    let names = |r: &phalanx_objects::core::ResourceRequirements| {
        r.requests.contains_key(resource) || r.limits.contains_key(resource)
    };
    let mut with = Vec::new();
    for spec in pod_specs(object)? {
        match spec.resources.as_mut().filter(|r| names(r)) {
            Some(pod) => with.push(pod),
            None => {
                let all = spec.containers.iter_mut().chain(spec.init_containers.iter_mut());
                with.extend(all.map(|c| &mut c.resources).filter(|r| names(r)));
            }
        }
    }
    let mut with = with.into_iter();
    let target = match (with.next(), with.next()) {
        (Some(one), None) => one,
        (None, _) => return Err(format!("no container requests {resource}")),
        (Some(_), Some(_)) => {
            return Err(format!("several containers request {resource}; change the manifest"));
        }
    };
    for list in [&mut target.requests, &mut target.limits] {
        if let Some(value) = list.get_mut(resource) {
            *value = quantity;
        }
    }
    Ok(())
}
