//! Names that lead nowhere: classes, claims and templates that do not exist, and extended resources
//! that neither a node nor a class has.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{GroupKey, Name, Scoped};
use phalanx_objects::core::{PodResourceClaim, PodSpec};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::resource::DeviceClaim;
use phalanx_objects::workload::PodPart;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::asked::asks;
use super::bench::Bench;
use super::near::{cut, meant, suggestion};
use super::{Lint, Rule};
use crate::compat::Gate;
use crate::edit::kind_word;
use crate::finding::Source;
use crate::lower::IMPLICIT_RESOURCE;
use crate::world::World;

/// A pod that waits, or a workload that is to make pods.
pub(super) struct Waiting<'w> {
    pub(super) reference: ObjectRef,
    pub(super) source: &'w Source,
    pub(super) spec: &'w PodSpec,
    /// Where the spec stands in the object.
    pub(super) at: String,
    /// The metadata on which wishes stand, each with its place.
    pub(super) metadata: Vec<(&'w ObjectMeta, String)>,
}

/// What is not placed yet. Pods of a workload that is to make more are left out: what is wrong with
/// them stands in the workload.
pub(super) fn waiting(world: &World) -> Vec<Waiting<'_>> {
    let objects = world.objects().into_iter();
    let all = [Kind::Pod].into_iter().chain(Kind::workloads());
    let all = all.flat_map(|kind| objects.clone().flat_map(move |o| o.of_kind(kind)));
    let mut due = BTreeMap::new();
    all.flat_map(|object| parts(world, object, &mut due)).collect()
}

/// Workloads, and whether pods of theirs are still to come.
type Due = BTreeMap<GroupKey, bool>;

/// The parts of an object that say how pods are which are still to be placed.
fn parts<'w>(world: &'w World, object: &'w Object, due: &mut Due) -> Vec<Waiting<'w>> {
    let reference = object.reference();
    let key = GroupKey {
        object: Scoped {
            namespace: Name::new(&reference.namespace),
            name: Name::new(&reference.name),
        },
        kind: Name::new(kind_word(reference.kind)),
    };
    let (Some(source), Some(group)) =
        (world.lowering().source(&reference), world.lowering().group(&key))
    else {
        return Vec::new();
    };
    if let Object::Pod(pod) = object {
        let waits = crate::lower::node_of(pod).is_none()
            && pod.metadata.deletion_timestamp.is_none()
            && !pod.status.phase.is_terminal();
        let owned = group.owner.as_ref().is_some_and(|owner| is_due(world, owner.clone(), due));
        if !waits || owned {
            return Vec::new();
        }
    }
    if !has_pods(world, &key) {
        return Vec::new();
    }
    let is_pod = reference.kind == Kind::Pod;
    let waiting = |part: PodPart<'w>| {
        let own = Some((object.metadata(), "metadata".to_owned())).filter(|_| !is_pod);
        let beside = part.metadata.map(|meta| (meta, part.metadata_at()));
        let metadata = own.into_iter().chain(beside).collect();
        let reference = reference.clone();
        Waiting { reference, source, spec: part.spec, at: part.at, metadata }
    };
    object.pod_parts().into_iter().map(waiting).collect()
}

/// Whether pods of the workload are still to come.
fn is_due(world: &World, workload: GroupKey, known: &mut Due) -> bool {
    if let Some(due) = known.get(&workload) {
        return *due;
    }
    let due = has_pods(world, &workload);
    known.insert(workload, due);
    due
}

/// Whether a group has pods to place, or makes some that are of another's group.
fn has_pods(world: &World, key: &GroupKey) -> bool {
    let group = world.lowering().group(key);
    group.is_some_and(|group| group.roles.iter().any(|role| !role.pods.is_empty()))
        || world.lowering().has_due(key)
}

pub(super) fn find(bench: &Bench<'_>, found: &mut Vec<Lint>) {
    let world = bench.world;
    classes(bench, found);
    let resources = resources(world);
    super::quotas::find(world, &resources, found);
    for waiting in &bench.waiting {
        named_claims(world, waiting, found);
        used_claims(world, waiting, found);
        if world.nodes_len() > 0 {
            unknown_resources(world, waiting, &resources, found);
        }
    }
}

/// The claims that containers use, and those that none does.
fn used_claims(world: &World, waiting: &Waiting<'_>, found: &mut Vec<Lint>) {
    let place = (&waiting.reference, waiting.source);
    let spec = waiting.spec;
    let mut used = BTreeSet::new();
    for (field, containers) in
        [("containers", &spec.containers), ("initContainers", &spec.init_containers)]
    {
        for (index, container) in containers.iter().enumerate() {
            for (at, claim) in container.resources.claims.iter().enumerate() {
                used.insert(claim.name.as_str());
                let path = format!("{}.{field}[{index}].resources.claims[{at}]", waiting.at);
                let entry = spec.resource_claims.iter().find(|entry| entry.name == claim.name);
                // One that is not there is told with the limits of the API server; the one that may be
                // meant is then no more unused than misspelt.
                let Some(entry) = entry else {
                    let names = spec.resource_claims.iter().map(|entry| entry.name.as_str());
                    used.extend(meant(&claim.name, names));
                    continue;
                };
                let Some(devices) = devices_of(world, &waiting.reference.namespace, entry) else {
                    continue;
                };
                let requests: Vec<&str> =
                    devices.requests.iter().map(|r| r.name.as_str()).collect();
                if !claim.request.is_empty() && !requests.contains(&claim.request.as_str()) {
                    let near = suggestion(&claim.request, &requests, "request");
                    let message = format!(
                        "Container {} uses the request {} of claim {}, which the claim does not have: \
                         the kubelet can't start the container. {near}",
                        cut(&container.name),
                        cut(&claim.request),
                        cut(&claim.name)
                    );
                    let path = format!("{path}.request");
                    found.push(Lint::new(Rule::ClaimRequestMissing, place, &path, message));
                }
            }
        }
    }
    for (index, claim) in spec.resource_claims.iter().enumerate() {
        if !used.contains(claim.name.as_str()) {
            let message = format!(
                "No container uses the claim {}: its devices are allocated, and no container sees them. \
                 Name it in `resources.claims` of the containers that need it.",
                cut(&claim.name)
            );
            let path = format!("{}.resourceClaims[{index}]", waiting.at);
            found.push(Lint::new(Rule::ClaimUnused, place, &path, message));
        }
    }
}

/// What the claim of a pod asks for, where that is in the input.
pub(super) fn devices_of<'w>(
    world: &'w World,
    namespace: &str,
    entry: &PodResourceClaim,
) -> Option<&'w DeviceClaim> {
    holder_of(world, namespace, entry)?.device_claim().map(|(claim, _)| claim)
}

/// The claim or the template that a pod's claim comes from.
pub(super) fn holder_of<'w>(
    world: &'w World,
    namespace: &str,
    entry: &PodResourceClaim,
) -> Option<&'w Object> {
    let reference = |kind, name: &String| ObjectRef {
        kind,
        namespace: namespace.to_owned(),
        name: name.clone(),
    };
    let named = entry.resource_claim_name.as_ref();
    let named = named.map(|name| reference(Kind::ResourceClaim, name));
    let made = entry.resource_claim_template_name.as_ref();
    let made = made.map(|name| reference(Kind::ResourceClaimTemplate, name));
    world.objects()?.get(&named.or(made)?)
}

fn classes(bench: &Bench<'_>, found: &mut Vec<Lint>) {
    let lowering = bench.world.lowering();
    let known: Vec<&str> = lowering.classes().map(Name::as_str).collect();
    for holder in &bench.holders {
        for ask in asks(holder.devices, holder.at) {
            let reference = ObjectRef {
                kind: Kind::DeviceClass,
                namespace: String::new(),
                name: ask.class.to_owned(),
            };
            // A request without a class is for the limits to say, and one that can't be read
            // stands among what can't be read.
            if ask.class.is_empty()
                || lowering.class(ask.class).is_some()
                || lowering.is_unread(&reference)
            {
                continue;
            }
            let near = suggestion(ask.class, &known, "DeviceClass");
            let message = format!(
                "Request {} names DeviceClass {}, which the input does not have. {near}",
                cut(&ask.label),
                cut(ask.class)
            );
            let path = format!("{}.deviceClassName", ask.path);
            found.push(Lint::new(Rule::DeviceClassMissing, holder.place(), &path, message));
        }
    }
}

fn named_claims(world: &World, waiting: &Waiting<'_>, found: &mut Vec<Lint>) {
    let lowering = world.lowering();
    let namespace = waiting.reference.namespace.as_str();
    for (index, claim) in waiting.spec.resource_claims.iter().enumerate() {
        let (kind, name, field, rule) =
            match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
                (Some(name), None) => {
                    (Kind::ResourceClaim, name, "resourceClaimName", Rule::ClaimMissing)
                }
                (None, Some(name)) => (
                    Kind::ResourceClaimTemplate,
                    name,
                    "resourceClaimTemplateName",
                    Rule::ClaimTemplateMissing,
                ),
                (None, None) | (Some(_), Some(_)) => continue,
            };
        let reference = ObjectRef { kind, namespace: namespace.to_owned(), name: name.clone() };
        if lowering.source(&reference).is_some() || lowering.is_unread(&reference) {
            continue;
        }
        let all = lowering.all(kind);
        let here: Vec<&str> =
            all.iter().filter(|o| o.namespace == namespace).map(|o| o.name.as_str()).collect();
        let elsewhere = all.iter().find(|other| other.name == *name);
        let near = match elsewhere {
            Some(other) => format!(
                "Namespace {} has one of that name; a pod can only use those of its own namespace.",
                other.namespace
            ),
            None => suggestion(name, &here, &format!("{kind} in namespace {namespace}")),
        };
        let message = format!(
            "The claim {} names {kind} {namespace}/{}, which the input does not have. {near}",
            cut(&claim.name),
            cut(name)
        );
        let path = format!("{}.resourceClaims[{index}].{field}", waiting.at);
        found.push(Lint::new(rule, (&waiting.reference, waiting.source), &path, message));
    }
}

/// Every extended resource that a node or a class has.
fn resources(world: &World) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let Some(objects) = world.objects() else { return all };
    for object in objects.of_kind(Kind::Node) {
        let Object::Node(node) = object else { continue };
        let lists = node.status.allocatable.keys().chain(node.status.capacity.keys());
        all.extend(lists.filter(|name| is_extended(name)).cloned());
    }
    if world.lowering().compat().is_on(Gate::DRAExtendedResource) {
        for object in objects.of_kind(Kind::DeviceClass) {
            let Object::DeviceClass(class) = object else { continue };
            all.extend(class.spec.extended_resource_name.clone());
            all.insert(format!("{IMPLICIT_RESOURCE}{}", class.metadata.name));
        }
    }
    all
}

/// Whether a name is of the extended form: with a domain that is not Kubernetes' own, but for that
/// of classes.
fn is_extended(name: &str) -> bool {
    let domain = name.split_once('/').map(|(domain, _)| domain);
    domain.is_some_and(|domain| {
        let own = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
        !own || name.starts_with(IMPLICIT_RESOURCE)
    })
}

fn unknown_resources(
    world: &World,
    waiting: &Waiting<'_>,
    known: &BTreeSet<String>,
    found: &mut Vec<Lint>,
) {
    let spec = waiting.spec;
    let mut said = BTreeSet::new();
    for (field, containers) in
        [("containers", &spec.containers), ("initContainers", &spec.init_containers)]
    {
        for (index, container) in containers.iter().enumerate() {
            let lists = [
                ("limits", &container.resources.limits),
                ("requests", &container.resources.requests),
            ];
            for (list, resources) in lists {
                let asked = resources
                    .iter()
                    .filter(|(name, amount)| is_extended(name) && amount.sign() > 0);
                for (name, amount) in asked {
                    if known.contains(name) || !said.insert(name.as_str()) {
                        continue;
                    }
                    let names: Vec<&str> = known.iter().map(String::as_str).collect();
                    let near = suggestion(name, &names, "extended resource");
                    let off = if world.lowering().compat().is_on(Gate::DRAExtendedResource) {
                        "no DeviceClass serves it"
                    } else {
                        "DeviceClasses serve none, for the feature gate DRAExtendedResource is off"
                    };
                    let message = format!(
                        "The container {} asks for {amount} of {}. No node of the input has that \
                         resource, and {off}. {near}",
                        cut(&container.name),
                        cut(name)
                    );
                    let path =
                        format!("{}.{field}[{index}].resources.{list}[{name:?}]", waiting.at);
                    let place = (&waiting.reference, waiting.source);
                    found.push(Lint::new(Rule::ResourceUnknown, place, &path, message));
                }
            }
        }
    }
}
