//! Quotas that count nothing: names that ResourceQuota takes and no evaluator knows, and classes or
//! resources that are not there.

use std::collections::BTreeSet;

use phalanx_objects::{Kind, Object, ObjectRef};

use super::near::{cut, meant};
use super::{Lint, Rule};
use crate::lower::{QUOTA_DEVICES, may_be_served};
use crate::world::World;

pub(super) fn find(world: &World, resources: &BTreeSet<String>, found: &mut Vec<Lint>) {
    let objects = world.objects().into_iter();
    for object in objects.flat_map(|objects| objects.of_kind(Kind::ResourceQuota)) {
        let Object::ResourceQuota(quota) = object else { continue };
        let reference: ObjectRef = object.reference();
        let Some(source) = world.lowering().source(&reference) else { continue };
        for name in quota.spec.hard.keys() {
            let Some(message) = uncounted(world, name, resources) else { continue };
            let path = format!("spec.hard[{name:?}]");
            found.push(Lint::new(Rule::QuotaCountsNothing, (&reference, source), &path, message));
        }
    }
}

/// Why nothing is ever charged under a name; none where something is, or might be.
fn uncounted(world: &World, name: &str, resources: &BTreeSet<String>) -> Option<String> {
    if name.starts_with("count/") || name.contains(".storageclass.storage.k8s.io/") {
        return None;
    }
    if let Some(class) = name.strip_suffix(QUOTA_DEVICES) {
        let known: Vec<&str> = world.lowering().classes().map(|class| class.as_str()).collect();
        let near = meant(class, known.iter().copied()).filter(|_| !known.contains(&class))?;
        return Some(format!(
            "The quota counts devices of DeviceClass {}, which does not exist. If `{}` is meant, name \
             that.",
            cut(class),
            cut(near)
        ));
    }
    let bare = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits."));
    let bare = bare.unwrap_or(name);
    if !bare.contains('/') {
        return None;
    }
    let is_requests = name.starts_with("requests.");
    if !is_requests && may_be_served(bare) {
        return Some(format!(
            "The quota counts nothing under {}: extended resources are charged under requests.{} alone. \
             The API server takes the name, and pods use as much as they like. Write it so.",
            cut(name),
            cut(bare)
        ));
    }
    if resources.is_empty() || resources.contains(bare) || !is_requests {
        return None;
    }
    let near = meant(bare, resources.iter().map(String::as_str))?;
    Some(format!(
        "The quota counts {}, which no node and no class has. If `requests.{}` is meant, name that.",
        cut(bare),
        cut(near)
    ))
}
