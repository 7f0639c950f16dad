//! Nodes' allocatable amounts against the sum of their pods' requests.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::core::{
    Container, Node, Pod, PodSpec, RestartPolicy, TaintEffect, Toleration, TolerationOperator,
};
use phalanx_objects::{Kind, Object, ObjectRef, Quantity};

use super::Violation;
use crate::lower::{node_of, pod_spec};
use crate::raise::Bind;
use crate::world::Objects;

/// Thousandths of a core for cpu, whole units for all else; each pod is rounded up once. What is beyond
/// 64 bits wraps, in sums and in what is left of a node, as in kube-scheduler.
type Amounts = BTreeMap<String, i64>;

/// Nodes that the bindings fill beyond what they have, in a resource that the bound pods ask for.
pub(super) fn overcommitted(before: &Objects, bound: &[&Bind]) -> Vec<Violation> {
    let nodes: BTreeSet<&str> = bound.iter().map(|bind| bind.node.as_str()).collect();
    let mut used: BTreeMap<&str, Amounts> = BTreeMap::new();
    let mut unsure: BTreeSet<&str> = BTreeSet::new();
    for object in before.of_kind(Kind::Pod) {
        let Object::Pod(pod) = object else { continue };
        let on = node_of(pod).and_then(|node| nodes.get(node));
        if let Some(node) = on.filter(|_| !pod.status.phase.is_terminal()) {
            add(used.entry(node).or_default(), &requests(&pod.spec));
            if is_resizing(pod) {
                unsure.insert(node);
            }
        }
    }
    let mut violations = Vec::new();
    for bind in bound.iter().filter(|bind| !unsure.contains(bind.node.as_str())) {
        let node =
            ObjectRef { kind: Kind::Node, namespace: String::new(), name: bind.node.clone() };
        let Some(Object::Node(found)) = before.get(&node) else { continue };
        let Some(spec) = pod_spec(before, &bind.spec_of, bind.role) else { continue };
        let asks = requests(&spec);
        let used = used.entry(bind.node.as_str()).or_default();
        for (resource, asked) in asks.iter().filter(|(_, asked)| **asked > 0) {
            let list = &found.status.allocatable;
            let list = if list.is_empty() { &found.status.capacity } else { list };
            let has = list.get(resource).map_or(0, |quantity| rounded(resource, quantity));
            let were = used.get(resource).copied().unwrap_or_default();
            if *asked > has.wrapping_sub(were) && !(has <= 0 && is_served(before, resource)) {
                let namespace = bind.namespace.clone();
                violations.push(Violation {
                    object: ObjectRef { kind: Kind::Pod, namespace, name: bind.pod.clone() },
                    message: format!(
                        "it asks {asked} of {resource}, and {} has {were} of {has} promised already",
                        bind.node
                    ),
                });
            }
        }
        add(used, &asks);
    }
    violations
}

/// Whether a pod's status tells of other amounts than its spec. What it holds then is not known here,
/// and its node is not judged.
fn is_resizing(pod: &Pod) -> bool {
    let containers = || pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let mut statuses =
        pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
    let other = statuses.any(|status| {
        let spec = containers().find(|container| container.name == status.name);
        let asks = spec.map(|container| &container.resources.requests);
        let lists = [
            status.allocated_resources.as_ref(),
            status.resources.as_ref().map(|resources| &resources.requests),
        ];
        lists.into_iter().flatten().any(|list| Some(list) != asks)
    });
    let whole = !pod.status.allocated_resources.is_empty() || pod.status.resources.is_some();
    let pending = pod.status.conditions.iter().any(|c| c.kind == "PodResizePending");
    other || pending || whole && pod.spec.resources.is_some()
}

/// Whether some DeviceClass serves an extended resource. (Where a gate is off, no plan says so.)
fn is_served(objects: &Objects, resource: &str) -> bool {
    objects.of_kind(Kind::DeviceClass).any(|object| {
        let Object::DeviceClass(class) = object else { return false };
        let own = resource.strip_prefix("deviceclass.resource.kubernetes.io/");
        class.spec.extended_resource_name.as_deref() == Some(resource)
            || own == Some(class.metadata.name.as_str())
    })
}

/// Whether a pod asks for an extended resource that its node has none of and that a class serves.
pub(super) fn by_devices(objects: &Objects, bind: &Bind, node: &Node) -> bool {
    let Some(spec) = pod_spec(objects, &bind.spec_of, bind.role) else { return false };
    let list = &node.status.allocatable;
    let list = if list.is_empty() { &node.status.capacity } else { list };
    requests(&spec).iter().any(|(resource, asked)| {
        let none = list.get(resource).is_none_or(|has| has.value_ceil() <= 0);
        *asked > 0 && resource.contains('/') && none && is_served(objects, resource)
    })
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (resource, amount) in more {
        let sum = sum.entry(resource.clone()).or_default();
        *sum = sum.wrapping_add(*amount);
    }
}

fn rounded(resource: &str, quantity: &Quantity) -> i64 {
    if resource == "cpu" { quantity.milli_ceil() } else { quantity.value_ceil() }
}

/// Whether kube-scheduler counts the resource at all.
fn is_counted(resource: &str) -> bool {
    let plain = ["cpu", "memory", "ephemeral-storage"].contains(&resource);
    let scalar = resource.contains('/') && !resource.starts_with("requests.");
    plain || scalar || resource.starts_with("hugepages-")
}

type Exact = BTreeMap<String, Quantity>;

/// `PodRequests` of Kubernetes: containers in sum, init containers at their peak with the sidecars
/// before them, what the pod as a whole requests in their place, and the overhead; one pod.
fn requests(spec: &PodSpec) -> Amounts {
    let mut regular = Exact::new();
    for container in &spec.containers {
        plus(&mut regular, &of(container));
    }
    let (mut side, mut peak) = (Exact::new(), Exact::new());
    for container in &spec.init_containers {
        let own = of(container);
        if container.restart_policy == Some(RestartPolicy::Always) {
            plus(&mut regular, &own);
            plus(&mut side, &own);
            most(&mut peak, &side);
        } else {
            let mut together = side.clone();
            plus(&mut together, &own);
            most(&mut peak, &together);
        }
    }
    most(&mut regular, &peak);
    if let Some(pod) = &spec.resources {
        for (resource, quantity) in with_limits(&pod.requests, &pod.limits) {
            if ["cpu", "memory"].contains(&resource.as_str()) || resource.starts_with("hugepages-")
            {
                regular.insert(resource, quantity);
            }
        }
    }
    plus(&mut regular, &spec.overhead);
    let mut amounts: Amounts = regular
        .iter()
        .filter(|(resource, _)| is_counted(resource))
        .map(|(resource, quantity)| (resource.clone(), rounded(resource, quantity)))
        .collect();
    amounts.insert("pods".to_owned(), 1);
    amounts
}

fn of(container: &Container) -> Exact {
    with_limits(&container.resources.requests, &container.resources.limits)
}

/// Requests, with those that the API server takes from limits.
fn with_limits(requests: &Exact, limits: &Exact) -> Exact {
    let mut all = limits.clone();
    all.extend(requests.clone());
    all
}

fn plus(sum: &mut Exact, more: &Exact) {
    for (resource, quantity) in more {
        let slot = sum.entry(resource.clone()).or_insert(Quantity::ZERO);
        *slot = slot.checked_add(quantity).unwrap_or(*quantity);
    }
}

fn most(of: &mut Exact, other: &Exact) {
    for (resource, quantity) in other {
        let slot = of.entry(resource.clone()).or_insert(Quantity::ZERO);
        if *quantity > *slot {
            *slot = *quantity;
        }
    }
}

/// The tolerations that admission adds to a pod that is not made yet: for its node's health, and those
/// of its RuntimeClass. Which plugins are enabled is not known here, so a taint with the name of an
/// extended resource that it asks for passes as well.
pub(super) fn added_tolerations(
    objects: &Objects,
    of: &ObjectRef,
    spec: &PodSpec,
) -> Vec<Toleration> {
    let made = |object: &Object| {
        let meta = object.metadata();
        of.kind == Kind::Pod && (!meta.uid.is_empty() || meta.creation_timestamp.is_some())
    };
    if objects.get(of).is_some_and(made) {
        return Vec::new();
    }
    let exists = |key: &str, effect| Toleration {
        key: key.to_owned(),
        operator: TolerationOperator::Exists,
        effect,
        ..Toleration::default()
    };
    let health = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let mut added: Vec<Toleration> =
        health.iter().map(|key| exists(key, TaintEffect::NoExecute)).collect();
    let containers = spec.containers.iter().chain(&spec.init_containers);
    let asked =
        containers.flat_map(|c| c.resources.requests.keys().chain(c.resources.limits.keys()));
    added.extend(asked.map(|name| exists(name, TaintEffect::NoSchedule)));
    let class = spec.runtime_class_name.iter().find_map(|name| {
        objects.get(&ObjectRef {
            kind: Kind::RuntimeClass,
            namespace: String::new(),
            name: name.clone(),
        })
    });
    if let Some(Object::RuntimeClass(class)) = class {
        added.extend(class.scheduling.iter().flat_map(|s| s.tolerations.iter().cloned()));
    }
    added
}
