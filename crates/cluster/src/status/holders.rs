//! Who holds devices: the workloads of the pods that use claims, and of those that were counted.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{DeviceKey, GroupKey, Name, PoolKey, Scoped};
use phalanx_objects::core::Pod;
use phalanx_objects::resource::{DeviceRequestAllocationResult, ResourceClaim};
use phalanx_objects::{Kind, Object, ObjectRef, Quantity};

use super::document::HolderView;
use crate::world::World;

/// Pods and devices of one workload under one name.
#[derive(Debug, Default)]
struct Held {
    pods: BTreeSet<String>,
    devices: u64,
    shared: u64,
    unpublished: u64,
}

/// Everyone who holds devices, those with most first.
pub(super) fn holders(world: &World) -> Vec<HolderView> {
    let mut all: BTreeMap<(String, String, String), Held> = BTreeMap::new();
    let published: BTreeSet<DeviceKey> =
        world.lowering().devices().map(|device| device.key).collect();
    for claim in claims(world) {
        let namespace = &claim.metadata.namespace;
        let users = claim.status.reserved_for.iter().filter(|user| user.resource == "pods");
        let mut workloads: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for pod in users.map(|user| &user.name) {
            workloads.entry(workload(world, namespace, pod)).or_default().insert(pod.clone());
        }
        if workloads.is_empty() {
            workloads.insert(format!("resourceclaim/{}", claim.metadata.name), BTreeSet::new());
        }
        let is_shared = workloads.len() > 1;
        for (workload, pods) in workloads {
            for held in results(claim) {
                let key = (namespace.clone(), workload.clone(), held.driver.clone());
                let entry = all.entry(key).or_default();
                entry.devices += 1;
                entry.shared += u64::from(is_shared);
                entry.unpublished += u64::from(!published.contains(&device(held)));
                entry.pods.extend(pods.iter().cloned());
            }
        }
    }
    for pod in bound(world) {
        let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
        let key = crate::lower::pod_key(namespace, name);
        for (resource, count) in world.lowering().counted(&key) {
            // Where the node counts none, a claim of the pod holds them.
            if !counts(world, &pod.spec.node_name, resource) {
                continue;
            }
            let key = (namespace.clone(), workload(world, namespace, name), resource.to_string());
            let entry = all.entry(key).or_default();
            entry.devices = entry.devices.saturating_add(u64::try_from(count).unwrap_or(0));
            entry.pods.insert(name.clone());
        }
    }
    let view = |((namespace, workload, name), held): ((String, String, String), Held)| HolderView {
        namespace,
        workload,
        name,
        pods: held.pods.len() as u64,
        devices: held.devices,
        shared: held.shared,
        unpublished: held.unpublished,
    };
    let mut views: Vec<HolderView> = all.into_iter().map(view).collect();
    views.sort_by_key(|view| std::cmp::Reverse(view.devices));
    views
}

/// Whether a node has a counter for a resource.
fn counts(world: &World, node: &str, resource: &str) -> bool {
    let (kind, namespace, name) = (Kind::Node, String::new(), node.to_owned());
    let found = world.objects().and_then(|o| o.get(&ObjectRef { kind, namespace, name }));
    let Some(Object::Node(node)) = found else { return false };
    let given = &node.status.allocatable;
    let given = if given.is_empty() { &node.status.capacity } else { given };
    given.get(resource).is_some_and(|amount| *amount > Quantity::default())
}

/// Every device that some claim holds.
pub(super) fn held_devices(world: &World) -> BTreeSet<DeviceKey> {
    claims(world).flat_map(results).map(device).collect()
}

fn device(held: &DeviceRequestAllocationResult) -> DeviceKey {
    DeviceKey {
        pool: PoolKey { driver: Name::new(&held.driver), pool: Name::new(&held.pool) },
        device: Name::new(&held.device),
    }
}

fn claims(world: &World) -> impl Iterator<Item = &ResourceClaim> {
    let objects = world.objects().into_iter();
    let of_kind = objects.flat_map(|objects| objects.of_kind(Kind::ResourceClaim));
    of_kind.filter_map(|object| {
        if let Object::ResourceClaim(claim) = object { Some(&**claim) } else { None }
    })
}

/// What a claim holds, but for what it only looks at.
fn results(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    let results = claim.status.allocation.iter().flat_map(|a| &a.devices.results);
    results.filter(|held| held.admin_access != Some(true))
}

/// Pods on nodes that have not ended.
pub(super) fn bound(world: &World) -> impl Iterator<Item = &Pod> {
    let objects = world.objects().into_iter();
    let pods = objects.flat_map(|objects| objects.of_kind(Kind::Pod));
    let pods =
        pods.filter_map(|object| if let Object::Pod(pod) = object { Some(&**pod) } else { None });
    pods.filter(|pod| crate::lower::node_of(pod).is_some() && !pod.status.phase.is_terminal())
}

/// What a pod is of, as `KIND/NAME`: the workload that was read, or what its owner is called, or
/// itself.
pub(super) fn workload(world: &World, namespace: &str, pod: &str) -> String {
    let object = Scoped { namespace: Name::new(namespace), name: Name::new(pod) };
    let group = GroupKey { object, kind: Name::new("pod") };
    if let Some(owner) = world.lowering().group(&group).and_then(|group| group.owner) {
        return owner.to_string();
    }
    let (kind, namespace, name) = (Kind::Pod, namespace.to_owned(), pod.to_owned());
    let found = world.objects().and_then(|o| o.get(&ObjectRef { kind, namespace, name }));
    match found.and_then(|object| object.metadata().controller()) {
        Some(owner) => format!("{}/{}", owner.kind.to_ascii_lowercase(), owner.name),
        None => format!("pod/{pod}"),
    }
}
