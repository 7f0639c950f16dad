//! Asking for the same under another name: a partition's, a share's, or the one of a class.

use std::collections::BTreeSet;

use phalanx_objects::{Kind, Object};

use super::Lab;
use crate::edit::{Edit, Setting, Target};
use crate::view::is_alike;

/// Most names that are tried in place of one.
const NAMES_MAX: usize = 16;

/// For each counter of devices that the pods ask for, the names of the same vendor for devices of the
/// same kind.
pub(super) fn names(lab: &mut Lab<'_>) -> Vec<Edit> {
    let (on, role) = (&lab.part.spec_of, lab.part.role);
    let Some(spec) = crate::lower::pod_spec(lab.objects, on, role) else { return Vec::new() };
    let containers = spec.containers.iter().chain(&spec.init_containers);
    let lists = containers.flat_map(|c| [&c.resources.requests, &c.resources.limits]);
    let asked: BTreeSet<&String> = lists.flat_map(|list| list.keys()).collect();
    let asked: Vec<&String> =
        asked.into_iter().filter(|name| crate::lower::is_device_counter(name)).collect();
    if asked.is_empty() {
        return Vec::new();
    }
    let offered = offered(lab);
    let object = Target::from(&lab.part.spec_of);
    let mut edits = Vec::new();
    for resource in asked {
        let others: Vec<&String> =
            offered.iter().filter(|other| is_alike(resource, alike_name(other))).collect();
        lab.cut |= others.len() > NAMES_MAX;
        for other in others.into_iter().take(NAMES_MAX) {
            let what = Setting::Name { resource: resource.clone(), other: other.clone() };
            let edit = Edit::Set { object: object.clone(), what };
            if lab.works(&edit) == Some(true) {
                edits.push(edit);
            }
        }
    }
    edits
}

/// Before the name of a class, the extended resource that it serves.
const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/";

/// The part of a name that says vendor and kind: of a class' resource the class.
fn alike_name(name: &str) -> &str {
    name.strip_prefix(IMPLICIT).unwrap_or(name)
}

/// Every name under which devices can be asked for: what nodes count, and what classes serve.
fn offered(lab: &Lab<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for object in lab.objects.of_kind(Kind::Node) {
        if let Object::Node(node) = object {
            names.extend(node.status.allocatable.keys().cloned());
            names.extend(node.status.capacity.keys().cloned());
        }
    }
    names.retain(|name| crate::lower::is_device_counter(name));
    for object in lab.objects.of_kind(Kind::DeviceClass) {
        if let Object::DeviceClass(class) = object {
            match &class.spec.extended_resource_name {
                Some(name) => names.insert(name.clone()),
                None => names.insert(format!("{IMPLICIT}{}", class.metadata.name)),
            };
        }
    }
    names
}
