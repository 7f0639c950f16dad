//! Volumes that pin a workload to nodes without room, while others have it: a PersistentVolumeClaim
//! is bound to a volume that can be used from some nodes only.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{GroupKey, Name, NodeReport, Scoped, Verdict};
use phalanx_objects::core::{Node, ResourceList};
use phalanx_objects::storage::{PersistentVolume, PersistentVolumeClaim};
use phalanx_objects::{Kind, Object, ObjectRef, Quantity};

use super::bench::Bench;
use super::claims::Waiting;
use super::near::{cut, quoted};
use super::nodes::{Fleet, bears_taints, meets, term_holds};
use super::{Lint, Rule};
use crate::edit::kind_word;
use crate::lower::{ZONES, node_of, pod_requests};
use crate::plan::{PlanOptions, why};
use crate::words::list;
use crate::world::World;

/// What stands between the zones of a volume that is in several.
const ZONES_APART: &str = "__";

/// How many nodes a finding names.
const NODES_SHOWN: usize = 3;

pub(super) fn find(
    bench: &Bench<'_>,
    options: &PlanOptions,
    fleet: &Fleet<'_>,
    found: &mut Vec<Lint>,
) {
    let (mut room, mut fork) = (None, None);
    for waiting in &bench.waiting {
        let pins = pins(bench.world, fleet, waiting);
        if pins.is_empty() {
            continue;
        }
        let room = room.get_or_insert_with(|| Room::of(bench.world, fleet));
        let told = told(fleet, waiting, &pins, room);
        if told.is_none() && !waiting.spec.resource_claims.is_empty() {
            // Devices of claims are in no sum of the nodes: the plan knows them.
            let fork = fork.get_or_insert_with(|| bench.world.clone());
            found.extend(devices_elsewhere(fork, options, waiting, &pins));
        }
        found.extend(told);
    }
}

/// A pod whose volume is on nodes where the devices that its claims ask for are in use, while other
/// nodes fail it for the volume alone.
fn devices_elsewhere(
    fork: &mut World,
    options: &PlanOptions,
    waiting: &Waiting<'_>,
    pins: &[Pin<'_>],
) -> Option<Lint> {
    let ObjectRef { kind, namespace, name } = &waiting.reference;
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    let object = Scoped { namespace: Name::new(namespace), name: Name::new(name) };
    let group = GroupKey { object, kind: Name::new(kind_word(*kind)) };
    let report = why(fork, &group, None, options)?;
    let Verdict::Waits(_) = report.verdict else { return None };
    let (reached, others): (Vec<&NodeReport>, Vec<&NodeReport>) = report
        .nodes
        .iter()
        .partition(|node| pins.iter().all(|pin| pin.nodes.contains(node.node.0.as_str())));
    // What stands in the way there is of these plugins, and nothing else.
    let fails = |node: &NodeReport, by: &[&str]| {
        let mut checks = node.checks.iter();
        !node.checks.is_empty() && checks.all(|(reason, ..)| by.contains(&reason.check()))
    };
    let names = |nodes: Vec<&NodeReport>, by: &[&str]| -> Vec<String> {
        let nodes = nodes.into_iter().filter(|node| fails(node, by));
        nodes.map(|node| node.node.0.to_string()).collect()
    };
    let fits = reached.iter().any(|node| node.offer.is_some());
    let full = names(reached, &["DynamicResources"]);
    let free = names(others, &["VolumeBinding", "VolumeZone"]);
    let first = full.first().filter(|_| !fits && !free.is_empty())?;
    let only = match full.len() {
        1 => format!("{first} alone"),
        several => format!("{several} nodes alone, such as {first}"),
    };
    let free: Vec<&str> = free.iter().map(String::as_str).collect();
    let message = format!(
        "The pods are pinned by the volume of PersistentVolumeClaim {}: of the nodes that can take them \
         it can be used from {only}, where the devices that their claims ask for are in use. Other nodes \
         have such devices free ({}), and the volume is not there. Use a volume that those nodes reach, \
         or copy the data.",
        list(&bound(pins)),
        quoted(&free, NODES_SHOWN),
    );
    let path = format!("{}.volumes", waiting.at);
    let place = (&waiting.reference, waiting.source);
    Some(Lint::new(Rule::VolumePinsPods, place, &path, message))
}

/// The claims that pin, each with its volume.
fn bound(pins: &[Pin<'_>]) -> Vec<String> {
    let named =
        |pin: &Pin<'_>| format!("{} (PersistentVolume {})", cut(pin.claim), cut(pin.volume));
    pins.iter().map(named).collect()
}

/// A claim with its volume, and the nodes from which that can be used.
struct Pin<'w> {
    claim: &'w str,
    volume: &'w str,
    nodes: BTreeSet<&'w str>,
}

/// The claims of a pod whose volumes can't be used from every node.
fn pins<'w>(world: &'w World, fleet: &Fleet<'w>, waiting: &Waiting<'w>) -> Vec<Pin<'w>> {
    let volumes = waiting.spec.volumes.placed.iter();
    let named = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    named
        .filter_map(|source| {
            let claim = claim(world, &waiting.reference.namespace, &source.claim_name)?;
            let volume = volume(world, &claim.spec.volume_name)?;
            let usable = |node: &&&Node| is_usable(volume, node);
            let nodes = fleet.nodes.iter().filter(usable);
            let nodes: BTreeSet<&str> = nodes.map(|node| node.metadata.name.as_str()).collect();
            let pinned = nodes.len() < fleet.nodes.len();
            let volume = claim.spec.volume_name.as_str();
            pinned.then_some(Pin { claim: &source.claim_name, volume, nodes })
        })
        .collect()
}

/// Whether a volume can be used from a node, by its node affinity and by its labels of zones.
fn is_usable(volume: &PersistentVolume, node: &Node) -> bool {
    let required = volume.spec.node_affinity.as_ref().and_then(|all| all.required.as_ref());
    let reached = required.is_none_or(|required| {
        required.node_selector_terms.iter().any(|term| term_holds(term, node))
    });
    // A node without any such label is taken (VolumeZone).
    let placed = ZONES.iter().any(|key| node.metadata.labels.contains_key(*key));
    let near = ZONES.iter().all(|key| match volume.metadata.labels.get(*key) {
        Some(zones) => {
            let here = node
                .metadata
                .labels
                .get(*key)
                .or_else(|| node.metadata.labels.get(newer(key).unwrap_or_default()));
            here.is_some_and(|here| zones.split(ZONES_APART).any(|zone| zone == here))
        }
        None => true,
    });
    reached && (!placed || near)
}

/// The key that has replaced an old one of a zone or a region.
fn newer(key: &str) -> Option<&str> {
    let at = ZONES.iter().position(|old| *old == key)?;
    ZONES.get(at + 2).copied()
}

fn claim<'w>(world: &'w World, namespace: &str, name: &str) -> Option<&'w PersistentVolumeClaim> {
    let kind = Kind::PersistentVolumeClaim;
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    match world.objects()?.get(&ObjectRef { kind, namespace, name }) {
        Some(Object::PersistentVolumeClaim(claim)) => Some(claim),
        Some(_) | None => None,
    }
}

fn volume<'w>(world: &'w World, name: &str) -> Option<&'w PersistentVolume> {
    let kind = Kind::PersistentVolume;
    let (namespace, name) = (String::new(), name.to_owned());
    match world.objects()?.get(&ObjectRef { kind, namespace, name }) {
        Some(Object::PersistentVolume(volume)) => Some(volume),
        Some(_) | None => None,
    }
}

/// What is free on each node: allocatable minus the sum of requests.
struct Room<'w> {
    nodes: BTreeMap<&'w str, (&'w ResourceList, ResourceList)>,
}

/// What a node lacks.
struct Lack {
    resource: String,
    free: Quantity,
    allocatable: Quantity,
    asked: Quantity,
}

impl<'w> Room<'w> {
    fn of(world: &'w World, fleet: &Fleet<'w>) -> Self {
        let nodes = fleet.nodes.iter().map(|node| {
            let status = &node.status;
            let all = match status.allocatable.is_empty() {
                true => &status.capacity,
                false => &status.allocatable,
            };
            (node.metadata.name.as_str(), (all, ResourceList::new()))
        });
        let mut nodes: BTreeMap<&str, (&ResourceList, ResourceList)> = nodes.collect();
        for object in world.objects().into_iter().flat_map(|objects| objects.of_kind(Kind::Pod)) {
            let Object::Pod(pod) = object else { continue };
            let on = node_of(pod).and_then(|node| nodes.get_mut(node));
            let Some((_, used)) = on else { continue };
            if pod.status.phase.is_terminal() {
                continue;
            }
            for (name, amount) in pod_requests(&pod.spec) {
                let slot = used.entry(name).or_default();
                *slot = slot.checked_add(&amount).unwrap_or((*slot).max(amount));
            }
        }
        Self { nodes }
    }

    /// The first resource of which the node has too little free; the device first.
    fn lack(&self, node: &str, asked: &ResourceList) -> Option<Lack> {
        let (all, used) = self.nodes.get(node)?;
        let of = |list: &ResourceList, name: &str| list.get(name).copied().unwrap_or_default();
        let lacks =
            asked.iter().filter(|(_, amount)| amount.sign() > 0).filter_map(|(resource, asked)| {
                let (allocatable, used) = (of(all, resource), of(used, resource));
                let free = allocatable.checked_sub(&used).unwrap_or_default();
                let resource = resource.clone();
                (free < *asked).then_some(Lack { resource, free, allocatable, asked: *asked })
            });
        // Devices are what is scarce; their names have a domain, which sorts after `cpu`.
        lacks.max_by_key(|lack| lack.resource.contains('/'))
    }
}

fn told(
    fleet: &Fleet<'_>,
    waiting: &Waiting<'_>,
    pins: &[Pin<'_>],
    room: &Room<'_>,
) -> Option<Lint> {
    let asked = pod_requests(waiting.spec);
    let open = fleet.nodes.iter().filter(|node| meets(node, waiting.spec));
    let open: Vec<&str> = open
        .filter(|node| bears_taints(node, waiting.spec))
        .map(|node| node.metadata.name.as_str())
        .collect();
    let within = |node: &&&str| pins.iter().all(|pin| pin.nodes.contains(**node));
    let (reached, others): (Vec<&str>, Vec<&str>) = open.iter().partition(|node| within(node));
    let lacks: Vec<(&str, Lack)> =
        reached.iter().filter_map(|node| Some((*node, room.lack(node, &asked)?))).collect();
    // Where a node that the volume reaches has room, or no other would have any, the volume is not
    // what keeps the pod waiting. What no node could ever hold is told elsewhere.
    let could = lacks.iter().any(|(_, lack)| lack.allocatable >= lack.asked);
    let free: Vec<&str> =
        others.into_iter().filter(|node| room.lack(node, &asked).is_none()).collect();
    if lacks.len() < reached.len() || !could || free.is_empty() {
        return None;
    }
    let (node, lack) = lacks.first()?;
    let only = match reached.as_slice() {
        [one] => format!("{one} alone"),
        several => format!("{} nodes alone, such as {node}", several.len()),
    };
    let has = match reached.as_slice() {
        [_] => "which has".to_owned(),
        _ => format!("none of which has room: {node} has"),
    };
    let message = format!(
        "The pods are pinned by the volume of PersistentVolumeClaim {}: it can be used from {only}, \
         {has} {} of {} {} free where a pod asks for {}. Other nodes have room ({}), and the volume \
         is not there. Use a volume that those nodes reach, or copy the data.",
        list(&bound(pins)),
        lack.free,
        lack.allocatable,
        cut(&lack.resource),
        lack.asked,
        quoted(&free, NODES_SHOWN),
    );
    let path = format!("{}.volumes", waiting.at);
    let place = (&waiting.reference, waiting.source);
    Some(Lint::new(Rule::VolumePinsPods, place, &path, message))
}
