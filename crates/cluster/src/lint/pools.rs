//! Pools that are not whole, that contradict themselves, or that are out of date.

use std::collections::BTreeMap;

use phalanx_engine::{Name, PoolKey};
use phalanx_objects::resource::ResourceSlice;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::{Lint, Rule};
use crate::lower::PoolTrouble;
use crate::world::World;

/// Driver and pool.
type Key<'w> = (&'w str, &'w str);

pub(super) fn find(world: &World, found: &mut Vec<Lint>) {
    let mut pools: BTreeMap<Key<'_>, Vec<(&Object, &ResourceSlice)>> = BTreeMap::new();
    for object in world.objects().into_iter().flat_map(|o| o.of_kind(Kind::ResourceSlice)) {
        if let Object::ResourceSlice(slice) = object {
            let key = (slice.spec.driver.as_str(), slice.spec.pool.name.as_str());
            pools.entry(key).or_default().push((object, slice));
        }
    }
    for (key, slices) in &pools {
        let newest = slices.iter().map(|(_, slice)| slice.spec.pool.generation).max().unwrap_or(0);
        let (current, mut stale): (Vec<_>, Vec<_>) =
            slices.iter().partition(|(_, slice)| slice.spec.pool.generation == newest);
        if !stale.is_empty() {
            let pool = PoolKey { driver: Name::new(key.0), pool: Name::new(key.1) };
            let used = world.lowering().used_alone(&pool);
            stale.retain(|(object, _)| !used.iter().any(|name| name.as_str() == object.name()));
        }
        for (object, slice) in stale {
            let reference = object.reference();
            let Some(source) = world.lowering().source(&reference) else { continue };
            let newer = current.first().map_or("", |(object, _)| object.name());
            let message = format!(
                "The slice is of generation {} and its pool {} of driver {} is at generation {newest} \
                 (ResourceSlice {newer}): none of its {} devices counts. A driver deletes old slices \
                 when it has published the new ones; if this one stays, look whether the driver runs, \
                 and delete it.",
                slice.spec.pool.generation,
                key.1,
                key.0,
                slice.spec.devices.len(),
            );
            found.push(Lint::new(
                Rule::SliceStale,
                (&reference, source),
                "spec.pool.generation",
                message,
            ));
        }
    }
    homeless(world, pools.values().flatten(), found);
    for (trouble, finding) in world.lowering().of_pools() {
        let Some(object) = &finding.object else { continue };
        let Some(source) = world.lowering().source(object) else { continue };
        let count = "spec.pool.resourceSliceCount";
        let (rule, path, advice) = match trouble {
            PoolTrouble::Lacking => (
                Rule::PoolIncomplete,
                count,
                " If the cluster has the missing slices, the dump is not whole; if it has not, the \
                 driver is still publishing or has stopped in the middle.",
            ),
            PoolTrouble::Surplus => (
                Rule::PoolIncomplete,
                count,
                " Delete the slices that are left over, or let the driver publish a new generation.",
            ),
            PoolTrouble::Invalid => (Rule::PoolInvalid, finding.path.as_str(), ""),
            PoolTrouble::Held => (Rule::AllocationDoubtful, finding.path.as_str(), ""),
        };
        let message = format!("{}{advice}", finding.message);
        found.push(Lint::new(rule, (object, source), path, message));
    }
}

/// Slices of nodes that are not in the input, told once.
fn homeless<'w>(
    world: &World,
    slices: impl Iterator<Item = &'w (&'w Object, &'w ResourceSlice)>,
    found: &mut Vec<Lint>,
) {
    // Of an input without any node nothing is placed, and that is no fault of a slice.
    if world.nodes_len() == 0 {
        return;
    }
    let mut homeless: BTreeMap<&str, &Object> = BTreeMap::new();
    for (object, slice) in slices {
        let Some(node) = slice.spec.node_name.as_deref().filter(|node| !node.is_empty()) else {
            continue;
        };
        let name = node.to_owned();
        let of = ObjectRef { kind: Kind::Node, namespace: String::new(), name };
        if world.lowering().source(&of).is_none() {
            homeless.entry(node).or_insert(object);
        }
    }
    let Some((node, object)) = homeless.first_key_value() else { return };
    let reference = object.reference();
    let Some(source) = world.lowering().source(&reference) else { return };
    let more = match homeless.len() {
        1 => String::new(),
        2 => " So it is with the slices of 1 more node.".to_owned(),
        all => format!(" So it is with the slices of {} more nodes.", all - 1),
    };
    let message = format!(
        "The slice is of node {node}, which the input does not have, so that nothing can be placed on \
         its devices. Add the node, or leave the slice out if the node is gone.{more}"
    );
    found.push(Lint::new(Rule::SliceNodeMissing, (&reference, source), "spec.nodeName", message));
}
