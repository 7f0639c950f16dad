//! Constraints that can be given up: all that the group's objects have, and all taints that there
//! are.

use std::collections::BTreeSet;

use phalanx_objects::core::{PodAffinity, PodSpec, UnsatisfiableConstraintAction};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::topology::{ALIGN_ANNOTATION, AlignLevel};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::candidates::HEALTH;
use super::reduce::requests;
use super::{Lab, Part};
use crate::edit::{Edit, Relaxation, Target};
use crate::world::Objects;

/// Most keys of taints that are tried, of nodes and of devices.
const KEYS_MAX: usize = 16;

fn relax(object: &ObjectRef, what: Relaxation) -> Edit {
    Edit::Relax { object: Target::from(object), what }
}

/// The one scheduling gate that keeps the pods back.
pub(super) fn gates(lab: &mut Lab<'_>) -> Vec<Edit> {
    let on = &lab.part.spec_of;
    let spec = crate::lower::pod_spec(lab.objects, on, lab.part.role);
    let gates = spec.iter().flat_map(|spec| &spec.scheduling_gates);
    let edits: BTreeSet<Edit> =
        gates.map(|gate| relax(on, Relaxation::Gate(gate.name.clone()))).collect();
    that_work(lab, edits)
}

fn that_work(lab: &mut Lab<'_>, edits: BTreeSet<Edit>) -> Vec<Edit> {
    edits.into_iter().filter(|edit| lab.works(edit) == Some(true)).collect()
}

/// Each level of topology that alone is in the way: of what declares the group and of its pods.
pub(super) fn levels(lab: &mut Lab<'_>) -> Vec<Edit> {
    if !lab.subject.gang {
        return Vec::new();
    }
    let parts = lab.subject.parts.iter().take(super::PARTS_MAX).map(|part| &part.spec_of);
    let objects: BTreeSet<&ObjectRef> = parts.chain(&lab.subject.declared).collect();
    let mut edits = BTreeSet::new();
    for object in objects {
        let levels = lab.objects.get(object).map(crate::edit::levels).unwrap_or_default();
        edits.extend(levels.into_iter().map(|level| relax(object, Relaxation::Topology(level))));
    }
    that_work(lab, edits)
}

/// Each other constraint that alone is in the way.
pub(super) fn constraints(lab: &mut Lab<'_>) -> Vec<Edit> {
    let mut edits = BTreeSet::new();
    let (of_nodes, of_devices) = taints(lab);
    of_pod(lab.part, lab.objects, &of_nodes, &mut edits);
    let claims: BTreeSet<&ObjectRef> = lab.part.claims.iter().flatten().collect();
    for claim in claims {
        of_claim(lab.objects, claim, &of_devices, &mut edits);
    }
    that_work(lab, edits)
}

/// Keys of the taints of nodes (a cordon counts as its own) and of devices.
fn taints(lab: &mut Lab<'_>) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut of_nodes, mut of_devices) = (BTreeSet::new(), BTreeSet::new());
    for object in lab.objects.of_kind(Kind::Node) {
        let Object::Node(node) = object else { continue };
        of_nodes.extend(node.spec.taints.iter().map(|taint| taint.key.clone()));
        if node.spec.unschedulable {
            of_nodes.insert(format!("{HEALTH}unschedulable"));
        }
    }
    for object in lab.objects.of_kind(Kind::ResourceSlice) {
        let Object::ResourceSlice(slice) = object else { continue };
        let taints = slice.spec.devices.iter().flat_map(|device| &device.taints);
        of_devices.extend(taints.map(|taint| taint.key.clone()));
    }
    for object in lab.objects.of_kind(Kind::DeviceTaintRule) {
        let Object::DeviceTaintRule(rule) = object else { continue };
        of_devices.insert(rule.spec.taint.key.clone());
    }
    for keys in [&mut of_nodes, &mut of_devices] {
        while keys.len() > KEYS_MAX {
            keys.pop_last();
            lab.cut = true;
        }
    }
    (of_nodes, of_devices)
}

/// Constraints of the pods on their nodes.
fn of_pod(part: &Part, objects: &Objects, taints: &BTreeSet<String>, edits: &mut BTreeSet<Edit>) {
    let on = &part.spec_of;
    let Some(spec) = crate::lower::pod_spec(objects, on, part.role) else { return };
    edits.extend(taints.iter().map(|key| relax(on, Relaxation::Taint(key.clone()))));
    edits.extend(
        spec.node_selector.keys().map(|key| relax(on, Relaxation::NodeSelector(key.clone()))),
    );
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    if affinity.is_some_and(|a| a.required_during_scheduling_ignored_during_execution.is_some()) {
        edits.insert(relax(on, Relaxation::NodeAffinity));
    }
    of_peers(&spec, on, edits);
    if !spec.node_name.is_empty() {
        edits.insert(relax(on, Relaxation::NodeName));
    }
    aligns(objects, on, edits);
}

/// Constraints of the pods on the pods around them.
fn of_peers(spec: &PodSpec, on: &ObjectRef, edits: &mut BTreeSet<Edit>) {
    let mut add = |what| edits.insert(relax(on, what));
    for container in spec.containers.iter().chain(&spec.init_containers) {
        for port in &container.ports {
            let on_node = port.host_port == 0 && spec.host_network;
            let port = if on_node { port.container_port } else { port.host_port };
            if port > 0 {
                add(Relaxation::HostPort(port));
            }
        }
    }
    if let Some(affinity) = &spec.affinity {
        let required =
            |of: &PodAffinity| !of.required_during_scheduling_ignored_during_execution.is_empty();
        if required(&affinity.pod_affinity) {
            add(Relaxation::PodAffinity);
        }
        if required(&affinity.pod_anti_affinity) {
            add(Relaxation::PodAntiAffinity);
        }
    }
    for rule in &spec.topology_spread_constraints {
        if rule.when_unsatisfiable == UnsatisfiableConstraintAction::DoNotSchedule {
            add(Relaxation::Spread(rule.topology_key.clone()));
        }
    }
}

/// Constraints of a claim on its devices.
fn of_claim(
    objects: &Objects,
    claim: &ObjectRef,
    taints: &BTreeSet<String>,
    edits: &mut BTreeSet<Edit>,
) {
    for constraint in constraints_of(objects, claim) {
        let same = constraint.match_attribute.iter().cloned().map(Relaxation::MatchAttribute);
        let other = constraint.distinct_attribute.iter().cloned();
        let other = other.map(Relaxation::DistinctAttribute);
        edits.extend(same.chain(other).map(|what| relax(claim, what)));
    }
    let mut part = |name: String, has_selectors: bool| {
        if has_selectors {
            edits.insert(relax(claim, Relaxation::Selectors(name.clone())));
        }
        for key in taints {
            let what = Relaxation::DeviceTaint { key: key.clone(), request: name.clone() };
            edits.insert(relax(claim, what));
        }
    };
    for request in requests(objects, claim).unwrap_or_default() {
        if let Some(exactly) = &request.exactly {
            part(request.name.clone(), !exactly.selectors.is_empty());
        }
        for sub in &request.first_available {
            part(format!("{}/{}", request.name, sub.name), !sub.selectors.is_empty());
        }
    }
    aligns(objects, claim, edits);
}

fn constraints_of<'a>(
    objects: &'a Objects,
    claim: &ObjectRef,
) -> &'a [phalanx_objects::resource::DeviceConstraint] {
    let asked = objects.get(claim).and_then(Object::device_claim);
    asked.map_or(&[], |(claim, _)| claim.constraints.as_slice())
}

/// The levels of nearness that the object wishes for itself or for what is made from it.
fn aligns(objects: &Objects, on: &ObjectRef, edits: &mut BTreeSet<Edit>) {
    let Some(object) = objects.get(on) else { return };
    let mut made: Vec<&ObjectMeta> =
        object.pod_parts().into_iter().filter_map(|part| part.metadata).collect();
    if let Object::ResourceClaimTemplate(template) = object {
        made.push(&template.spec.metadata);
    }
    for meta in made.into_iter().chain([object.metadata()]) {
        let Some(wish) = meta.annotations.get(ALIGN_ANNOTATION) else { continue };
        let named = AlignLevel::ALL.iter().filter(|level| wish.contains(level.as_str()));
        edits.extend(named.map(|level| relax(on, Relaxation::Align(*level))));
    }
}
