//! Edits of nodes and of their devices.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::core::{Node, NodeStatus, Taint};
use phalanx_objects::resource::{Device, DeviceTaintRule, DeviceTaintSelector, ResourceSlice};
use phalanx_objects::topology::NodeTopology;
use phalanx_objects::{Kind, Object, ObjectRef, Quantity};

use super::{Put, Puts, missing};
use crate::edit::{EditError, Ill};
use crate::lower::unhealthy;
use crate::world::Objects;

/// The label that names the node.
const HOSTNAME: &str = "kubernetes.io/hostname";

fn reference(kind: Kind, name: &str) -> ObjectRef {
    ObjectRef { kind, namespace: String::new(), name: name.to_owned() }
}

fn node<'a>(name: &str, objects: &'a Objects) -> Result<&'a Node, EditError> {
    let reference = reference(Kind::Node, name);
    if let Some(Object::Node(node)) = objects.get(&reference) {
        return Ok(node);
    }
    Err(missing(&reference, objects))
}

fn slices(objects: &Objects) -> impl Iterator<Item = &ResourceSlice> {
    objects.of_kind(Kind::ResourceSlice).filter_map(|object| {
        if let Object::ResourceSlice(slice) = object { Some(&**slice) } else { None }
    })
}

/// Whether the node lifecycle controller or a cordon put the taint there.
fn of_ill_node(taint: &Taint) -> bool {
    taint.key.starts_with("node.kubernetes.io/")
}

/// As the node would be in full health; what its device plugins count and call unhealthy is given out.
pub(crate) fn healthy(node: &mut Node) {
    node.spec.unschedulable = false;
    node.spec.taints.retain(|taint| !of_ill_node(taint));
    let NodeStatus { allocatable, capacity, .. } = &node.status;
    let all = unhealthy(allocatable, capacity).map(|(name, all, _)| (name.clone(), all));
    let all: Vec<(String, Quantity)> = all.collect();
    node.status.allocatable.extend(all);
}

/// Nodes and devices as they would be healthy. A rule that taints other devices than the healed
/// too is replaced by the taints themselves on those.
pub(super) fn heal(ills: &[Ill], objects: &Objects) -> Puts {
    let mut puts = Vec::new();
    let mut healed = BTreeSet::new();
    for ill in ills {
        match ill {
            Ill::Node(name) => {
                let mut node = node(name, objects)?.clone();
                healthy(&mut node);
                puts.push(Put::Object(Box::new(node.into())));
            }
            Ill::Device { node, device } => {
                let found = devices(node, device, objects);
                if found.is_empty() {
                    self::node(node, objects)?;
                    let says = format!("node {node} has no device {device} of its own");
                    return Err(EditError(says));
                }
                healed.extend(found);
            }
        }
    }
    heal_devices(&healed, objects, &mut puts);
    Ok(puts)
}

/// Healthy copies of a node: its labels, own taints and resources, the slices that name it, and its
/// links. Devices of pools that several nodes share stay as many as they are.
pub(super) fn add(count: u32, like: &str, objects: &Objects) -> Puts {
    let model = node(like, objects)?;
    let mut puts = Vec::new();
    let mut number = 0;
    for _ in 0..count {
        let name = loop {
            number += 1;
            let name = format!("{like}-like-{number}");
            if objects.get(&reference(Kind::Node, &name)).is_none() {
                break name;
            }
        };
        copy(model, &name, objects, &mut puts);
    }
    Ok(puts)
}

fn copy(model: &Node, name: &str, objects: &Objects, puts: &mut Vec<Put>) {
    let like = &model.metadata.name;
    let mut node = model.clone();
    node.metadata.name = name.to_owned();
    node.metadata.uid.clear();
    node.metadata.resource_version.clear();
    // No pod has run there yet.
    node.status.images.clear();
    if let Some(hostname) = node.metadata.labels.get_mut(HOSTNAME) {
        *hostname = name.to_owned();
    }
    healthy(&mut node);
    puts.push(Put::Object(Box::new(node.into())));
    let own_pool = |pool: &str| {
        if pool == like { name.to_owned() } else { format!("{pool}-{name}") }
    };
    for slice in slices(objects).filter(|slice| slice.spec.node_name.as_ref() == Some(like)) {
        let mut slice = slice.clone();
        slice.metadata.name = format!("{}-{name}", slice.metadata.name);
        slice.metadata.uid.clear();
        slice.metadata.resource_version.clear();
        slice.metadata.owner_references.clear();
        slice.spec.node_name = Some(name.to_owned());
        slice.spec.pool.name = own_pool(&slice.spec.pool.name);
        for device in &mut slice.spec.devices {
            device.taints.clear();
        }
        puts.push(Put::Object(Box::new(slice.into())));
    }
    for object in objects.of_kind(Kind::NodeTopology) {
        let Object::NodeTopology(topology) = object else { continue };
        if topology.node_name() != like {
            continue;
        }
        let mut topology = NodeTopology::clone(topology);
        topology.metadata.name = name.to_owned();
        topology.metadata.uid.clear();
        topology.metadata.resource_version.clear();
        topology.spec.node_name = None;
        for device in &mut topology.spec.devices {
            device.pool = device.pool.as_deref().map(own_pool);
        }
        puts.push(Put::Object(Box::new(topology.into())));
    }
}

/// A device with the slice that it stands in.
fn matches(selector: &DeviceTaintSelector, slice: &ResourceSlice, device: &Device) -> bool {
    let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|w| w == name);
    is(&selector.driver, &slice.spec.driver)
        && is(&selector.pool, &slice.spec.pool.name)
        && is(&selector.device, &device.name)
}

/// A device by its slice and its place there.
type Place = (String, usize);

/// Where the device of this name is that is the node's own, or in the pool of this name.
fn devices(node: &str, name: &str, objects: &Objects) -> Vec<Place> {
    let mut found = Vec::new();
    for slice in slices(objects) {
        for (index, device) in slice.spec.devices.iter().enumerate() {
            let own = [slice.spec.node_name.as_deref(), device.node_name.as_deref()];
            let there = own.contains(&Some(node)) || slice.spec.pool.name == node;
            if there && device.name == name {
                found.push((slice.metadata.name.clone(), index));
            }
        }
    }
    found
}

/// The devices lose the taints that their drivers set, and those of rules.
fn heal_devices(healed: &BTreeSet<Place>, objects: &Objects, puts: &mut Vec<Put>) {
    let mut changed: BTreeMap<String, ResourceSlice> = BTreeMap::new();
    for slice in slices(objects) {
        for index in 0..slice.spec.devices.len() {
            if healed.contains(&(slice.metadata.name.clone(), index)) {
                let name = slice.metadata.name.clone();
                let copy = changed.entry(name).or_insert_with(|| slice.clone());
                copy.spec.devices[index].taints.clear();
            }
        }
    }
    for object in objects.of_kind(Kind::DeviceTaintRule) {
        let Object::DeviceTaintRule(rule) = object else { continue };
        if replace_rule(rule, objects, healed, &mut changed) {
            puts.push(Put::Gone(object.reference()));
        }
    }
    puts.extend(changed.into_values().map(|slice| Put::Object(Box::new(slice.into()))));
}

/// Whether the rule taints a device that is healed and so must go; its taint then moves to the
/// other devices that it taints.
fn replace_rule(
    rule: &DeviceTaintRule,
    objects: &Objects,
    healed: &BTreeSet<Place>,
    changed: &mut BTreeMap<String, ResourceSlice>,
) -> bool {
    let Some(selector) = &rule.spec.device_selector else { return false };
    let mut others = Vec::new();
    let mut concerns = false;
    for slice in slices(objects) {
        for (index, device) in slice.spec.devices.iter().enumerate() {
            if matches(selector, slice, device) {
                if healed.contains(&(slice.metadata.name.clone(), index)) {
                    concerns = true;
                } else {
                    others.push((slice, index));
                }
            }
        }
    }
    if !concerns {
        return false;
    }
    for (slice, index) in others {
        let copy = changed.entry(slice.metadata.name.clone()).or_insert_with(|| slice.clone());
        copy.spec.devices[index].taints.push(rule.spec.taint.clone());
    }
    true
}
