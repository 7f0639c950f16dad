//! `status.allocation` of a claim, as kube-scheduler's allocator fills it (`Allocate` and
//! `createNodeSelector` of the structured allocator: results, config, node selector).

use std::collections::BTreeSet;

use phalanx_engine::{DeviceKey, Grant, PoolKey};
use phalanx_objects::core::{
    NodeSelector, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm,
};
use phalanx_objects::resource::{
    AllocationConfigSource, AllocationResult, Device, DeviceAllocationConfiguration,
    DeviceAllocationResult, DeviceClaim, DeviceClass, DeviceRequest, DeviceRequestAllocationResult,
    DeviceToleration, ResourceSlice,
};
use phalanx_objects::{Kind, Object, ObjectRef, Quantity};

use crate::compat::{Allocator, Gate};
use crate::lower::Lowering;
use crate::world::Objects;

/// Published slices, looked up pool by pool: the cost of a write does not depend on how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices<'a> {
    lowering: &'a Lowering,
    objects: &'a Objects,
    /// `skipNodeOperations` is copied into results.
    skips: bool,
    /// Binding conditions are.
    binds: bool,
    /// `bindsToNode` is heeded: the stable allocator does not know it.
    ties: bool,
}

impl<'a> Slices<'a> {
    /// The slices of a world.
    pub(crate) fn new(lowering: &'a Lowering, objects: &'a Objects) -> Self {
        let compat = lowering.compat();
        Self {
            lowering,
            objects,
            skips: compat.is_on(Gate::DRAOptionalNodeOperations),
            binds: compat.is_on(Gate::DRADeviceBindingConditions),
            ties: compat.allocator() != Allocator::Stable,
        }
    }

    /// The slices of a pool, by name.
    pub(crate) fn of(&self, pool: &PoolKey) -> impl Iterator<Item = &'a ResourceSlice> {
        let objects = self.objects;
        self.lowering.slices_of(pool).filter_map(move |name| {
            let name = name.to_string();
            let slice = ObjectRef { kind: Kind::ResourceSlice, namespace: String::new(), name };
            if let Some(Object::ResourceSlice(slice)) = objects.get(&slice) {
                Some(&**slice)
            } else {
                None
            }
        })
    }

    /// The device with the slice that it stands in, of the newest generation that has it and may be
    /// for the node: slices of other nodes may have devices of one name.
    pub(crate) fn find(
        &self,
        key: &DeviceKey,
        node: &str,
    ) -> Option<(&'a ResourceSlice, &'a Device)> {
        let with = |slice: &'a ResourceSlice| {
            let here = |name: &Option<String>| {
                name.as_deref().is_none_or(|name| name == node || name.is_empty())
            };
            let devices = slice.spec.devices.iter().filter(|_| here(&slice.spec.node_name));
            let mut named = devices.filter(|device| device.name == *key.device);
            Some((slice, named.find(|device| here(&device.node_name))?))
        };
        self.of(&key.pool).filter_map(with).max_by_key(|(slice, _)| slice.spec.pool.generation)
    }
}

/// What a claim is given: the grants of one seat that are its own.
#[derive(Debug)]
pub(crate) struct Granted<'a> {
    /// What the claim asks.
    pub asks: &'a DeviceClaim,
    /// Namespace and name of the claim, from which the IDs of shares are made.
    pub claim: &'a ObjectRef,
    /// Its UID, for the same; empty where it does not exist yet.
    pub uid: &'a str,
    /// The grants, in the order of the requests.
    pub grants: Vec<&'a Grant>,
    /// The node.
    pub node: &'a str,
    /// The time of the allocation, recorded where this Kubernetes has binding conditions, whether or
    /// not a device has any.
    pub now: Option<jiff::Timestamp>,
}

/// The allocation of a claim.
pub(crate) fn allocate(
    granted: &Granted<'_>,
    slices: &Slices<'_>,
    objects: &Objects,
) -> AllocationResult {
    let results: Vec<DeviceRequestAllocationResult> = granted
        .grants
        .iter()
        .enumerate()
        .map(|(index, grant)| result(granted, index, grant, slices))
        .collect();
    AllocationResult {
        devices: DeviceAllocationResult { config: config(granted, objects), results },
        node_selector: node_selector(granted, slices),
        allocation_timestamp: granted.now,
    }
}

/// The part of a request that a grant is for: class, tolerations, and its name in results.
struct Part<'a> {
    name: String,
    class: &'a str,
    tolerations: &'a [DeviceToleration],
}

fn part<'a>(request: &'a DeviceRequest, alternative: u16) -> Part<'a> {
    if let Some(exactly) = &request.exactly {
        return Part {
            name: request.name.clone(),
            class: &exactly.device_class_name,
            tolerations: &exactly.tolerations,
        };
    }
    match request.first_available.get(usize::from(alternative)) {
        Some(chosen) => Part {
            name: format!("{}/{}", request.name, chosen.name),
            class: &chosen.device_class_name,
            tolerations: &chosen.tolerations,
        },
        None => Part { name: request.name.clone(), class: "", tolerations: &[] },
    }
}

fn result(
    granted: &Granted<'_>,
    index: usize,
    grant: &Grant,
    slices: &Slices<'_>,
) -> DeviceRequestAllocationResult {
    let part = granted
        .asks
        .requests
        .get(usize::from(grant.request))
        .map(|request| part(request, grant.alternative));
    let found = slices.find(&grant.device, granted.node);
    let device = found.map(|(_, device)| device);
    let bound = device.filter(|_| slices.binds);
    let consumed = grant.share.iter().flat_map(|share| share.iter());
    DeviceRequestAllocationResult {
        request: part.as_ref().map(|part| part.name.clone()).unwrap_or_default(),
        driver: grant.device.pool.driver.to_string(),
        pool: grant.device.pool.pool.to_string(),
        device: grant.device.device.to_string(),
        admin_access: grant.admin.then_some(true),
        tolerations: part.map(|part| part.tolerations.to_vec()).unwrap_or_default(),
        binding_conditions: bound.map(|d| d.binding_conditions.clone()).unwrap_or_default(),
        binding_failure_conditions: bound
            .map(|d| d.binding_failure_conditions.clone())
            .unwrap_or_default(),
        share_id: grant
            .share
            .as_ref()
            .map(|_| share_id(granted.claim, granted.uid, &grant.device, index)),
        consumed_capacity: consumed
            .map(|(name, nanos)| {
                let own = device.and_then(|device| device.capacity.get(name.as_str()));
                (name.to_string(), quantity(*nanos, own.map(|own| &own.value)))
            })
            .collect(),
        skip_node_operations: found
            .filter(|_| slices.skips)
            .map(|(slice, _)| slice.spec.skip_node_operations.clone())
            .unwrap_or_default(),
    }
}

/// Billionths as a quantity, spelt as the device's own capacity is.
pub(crate) fn quantity(nanos: i128, like: Option<&Quantity>) -> Quantity {
    let whole = nanos % 1_000_000_000 == 0;
    let text = if whole { format!("{}", nanos / 1_000_000_000) } else { format!("{nanos}n") };
    let quantity: Quantity = text.parse().unwrap_or_default();
    like.map_or(quantity, |like| quantity.with_format(like.format()))
}

/// A UUID for one share, in the form of version 4: upstream draws chance, we must not, and the same
/// decision must look the same twice. FNV-1a over claim, device and place, two streams of 64 bits.
pub(crate) fn share_id(claim: &ObjectRef, uid: &str, device: &DeviceKey, index: usize) -> String {
    let DeviceKey { pool, device } = device;
    let text = format!(
        "{}/{}/{uid}#{index}/{}/{}/{device}",
        claim.namespace, claim.name, pool.driver, pool.pool
    );
    let hash = |basis: u64| {
        text.bytes()
            .fold(basis, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let (a, b) = (hash(0xcbf2_9ce4_8422_2325), hash(0x9ae1_6a3b_2f90_404f));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        0x8000 | ((b >> 48) & 0x3fff),
        b & 0xffff_ffff_ffff
    )
}

/// Class configurations in the order of requests, each once, then the claim's own that concern what
/// was chosen. One that covers every request names none.
fn config(granted: &Granted<'_>, objects: &Objects) -> Vec<DeviceAllocationConfiguration> {
    let requests = &granted.asks.requests;
    let chosen: Vec<Part<'_>> = requests
        .iter()
        .enumerate()
        .map(|(index, request)| {
            let of_request = |grant: &&&Grant| usize::from(grant.request) == index;
            let grant = granted.grants.iter().find(of_request);
            part(request, grant.map_or(0, |grant| grant.alternative))
        })
        .collect();
    let mut configs = Vec::new();
    let mut classes: Vec<(&str, Vec<String>)> = Vec::new();
    for part in &chosen {
        match classes.iter_mut().find(|(class, _)| *class == part.class) {
            Some((_, names)) => names.push(part.name.clone()),
            None => classes.push((part.class, vec![part.name.clone()])),
        }
    }
    for (class, names) in classes {
        let Some(class) = class_of(class, objects) else { continue };
        for config in &class.spec.config {
            configs.push(DeviceAllocationConfiguration {
                source: AllocationConfigSource::FromClass,
                requests: names.clone(),
                opaque: config.opaque.clone(),
            });
        }
    }
    let concerns = |name: &String| {
        chosen.iter().any(|part| part.name == *name || main(&part.name) == name.as_str())
    };
    for config in &granted.asks.config {
        if config.requests.is_empty() || config.requests.iter().any(concerns) {
            configs.push(DeviceAllocationConfiguration {
                source: AllocationConfigSource::FromClaim,
                requests: config.requests.clone(),
                opaque: config.opaque.clone(),
            });
        }
    }
    for config in &mut configs {
        let covered = |part: &Part<'_>| {
            config.requests.iter().any(|name| *name == part.name || name == main(&part.name))
        };
        if chosen.iter().all(covered) {
            config.requests.clear();
        }
    }
    configs
}

fn main(name: &str) -> &str {
    name.split_once('/').map_or(name, |(main, _)| main)
}

fn class_of<'a>(name: &str, objects: &'a Objects) -> Option<&'a DeviceClass> {
    let reference =
        ObjectRef { kind: Kind::DeviceClass, namespace: String::new(), name: name.to_owned() };
    if let Some(Object::DeviceClass(class)) = objects.get(&reference) { Some(class) } else { None }
}

/// The nodes that can use the allocation: the one node where any device is of one node; else all
/// conditions of all slices and devices in one term; none where every node can.
fn node_selector(granted: &Granted<'_>, slices: &Slices<'_>) -> Option<NodeSelector> {
    let mut term = NodeSelectorTerm::default();
    for grant in &granted.grants {
        let Some((slice, device)) = slices.find(&grant.device, granted.node) else { continue };
        let per_device = slice.spec.per_device_node_selection == Some(true);
        let (local, selector) = if per_device {
            (device.node_name.is_some(), &device.node_selector)
        } else {
            (slice.spec.node_name.is_some(), &slice.spec.node_selector)
        };
        if local || slices.ties && device.binds_to_node == Some(true) {
            return Some(only(granted.node));
        }
        for found in selector.iter().flat_map(|selector| &selector.node_selector_terms) {
            add_new(&mut term.match_expressions, &found.match_expressions);
            add_new(&mut term.match_fields, &found.match_fields);
        }
    }
    if term == NodeSelectorTerm::default() {
        return None;
    }
    Some(NodeSelector { node_selector_terms: vec![term] })
}

fn add_new(to: &mut Vec<NodeSelectorRequirement>, from: &[NodeSelectorRequirement]) {
    let values = |of: &NodeSelectorRequirement| of.values.iter().cloned().collect::<BTreeSet<_>>();
    for requirement in from {
        let same = |other: &NodeSelectorRequirement| {
            other.key == requirement.key
                && other.operator == requirement.operator
                && values(other) == values(requirement)
        };
        if !to.iter().any(same) {
            to.push(requirement.clone());
        }
    }
}

/// One node, by the field that only it has.
fn only(node: &str) -> NodeSelector {
    let requirement = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: NodeSelectorOperator::In,
        values: vec![node.to_owned()],
    };
    let term = NodeSelectorTerm { match_fields: vec![requirement], ..NodeSelectorTerm::default() };
    NodeSelector { node_selector_terms: vec![term] }
}
