//! Pools that are not whole, that contradict themselves, or that are out of date.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::resource::ResourceSlice;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::near::quoted;
use super::{Lint, Rule};
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
    let mut incomplete = BTreeSet::new();
    for (key, slices) in &pools {
        let newest = slices.iter().map(|(_, slice)| slice.spec.pool.generation).max().unwrap_or(0);
        let (current, stale): (Vec<_>, Vec<_>) =
            slices.iter().partition(|(_, slice)| slice.spec.pool.generation == newest);
        if lacking(world, *key, &current, stale.len(), found) {
            incomplete.insert(*key);
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
    for (pool, finding) in world.lowering().of_pools() {
        let Some(object) = &finding.object else { continue };
        let Some(source) = world.lowering().source(object) else { continue };
        let of_slice = object.kind == Kind::ResourceSlice;
        if of_slice && incomplete.contains(&(&pool.driver, &pool.pool)) {
            continue;
        }
        let rule = if of_slice { Rule::PoolInvalid } else { Rule::AllocationDoubtful };
        found.push(Lint::new(rule, (object, source), &finding.path, finding.message.clone()));
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

/// Says of a pool that slices are missing, or that there are too many.
fn lacking(
    world: &World,
    (driver, pool): Key<'_>,
    current: &[&(&Object, &ResourceSlice)],
    stale: usize,
    found: &mut Vec<Lint>,
) -> bool {
    let Some((object, first)) = current.first() else { return false };
    let wanted = first.spec.pool.resource_slice_count;
    let there = i64::try_from(current.len()).unwrap_or(i64::MAX);
    // A count below one is no count: what the API server says of it is said there.
    if wanted < 1 || there == wanted {
        return false;
    }
    let names: Vec<&str> = current.iter().map(|(object, _)| object.name()).collect();
    let names = quoted(&names, 4);
    let generation = first.spec.pool.generation;
    let trouble = if there < wanted {
        let missing = wanted - there;
        let (is, them) = if missing == 1 { ("is", "it") } else { ("are", "them") };
        let old = match stale {
            0 => String::new(),
            1 => " 1 slice of an older generation is still there and does not count.".to_owned(),
            more => {
                format!(" {more} slices of older generations are still there and do not count.")
            }
        };
        format!(
            "is incomplete: of the {wanted} slices of generation {generation} the input has {there} \
             ({names}), and {missing} {is} missing.{old} Until all are there, no device of the pool is \
             allocated. If the cluster has {them}, the dump is not whole; if it has not, the driver is \
             still publishing or has stopped in the middle."
        )
    } else {
        format!(
            "says that it has {wanted} slices of generation {generation}, and the input has {there}: \
             {names}. Until the numbers agree, no device of the pool is allocated; delete the slices \
             that are left over, or let the driver publish a new generation."
        )
    };
    let reference = object.reference();
    let Some(source) = world.lowering().source(&reference) else { return false };
    let message = format!("Pool {pool} of driver {driver} {trouble}");
    let place = (&reference, source);
    found.push(Lint::new(Rule::PoolIncomplete, place, "spec.pool.resourceSliceCount", message));
    true
}
