//! What all allocations together take of counters and of shared devices' capacities, against what
//! slices publish.
//!
//! Only pools are judged whose slices are all of one generation, and as many as it has: of one that is
//! being republished, and of one of which nodes have complete slices of their own, each node has a view
//! of its own. Devices that no slice has any more are not counted.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::resource::{
    AllocationResult, Device, DeviceRequestAllocationResult, ResourceClaim, ResourceSlice,
};
use phalanx_objects::{Kind, Object, Quantity};

use super::{DeviceName, name, shown};
use crate::world::Objects;

/// What a new allocation takes beyond what there is, beside those of `held`.
pub(crate) fn breaches<'a>(
    allocation: &'a AllocationResult,
    held: impl Iterator<Item = &'a ResourceClaim>,
    objects: &Objects,
) -> Vec<String> {
    let held = held.filter_map(|claim| claim.status.allocation.as_ref());
    let before: Vec<&DeviceRequestAllocationResult> = held.flat_map(takes).collect();
    let own: Vec<&DeviceRequestAllocationResult> = takes(allocation).collect();
    let pools: BTreeSet<(&str, &str)> =
        own.iter().map(|r| (r.driver.as_str(), r.pool.as_str())).collect();
    let mut wrong = Vec::new();
    for (driver, pool) in pools {
        let Some(slices) = settled(objects, driver, pool) else { continue };
        let of_pool = |all: &[&'a DeviceRequestAllocationResult]| {
            let of = all.iter().copied().filter(|r| r.driver == driver && r.pool == pool);
            of.collect::<Vec<_>>()
        };
        let (before, own) = (of_pool(&before), of_pool(&own));
        wrong.extend(counters(&slices, &before, &own).into_iter().map(|what| {
            let (set, counter) = what;
            format!("{driver}/{pool} has not that much of the counter {counter} of {set} left")
        }));
        wrong.extend(capacities(&slices, &before, &own));
    }
    wrong
}

/// Results that take something: who has admin access only looks.
fn takes(allocation: &AllocationResult) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    allocation.devices.results.iter().filter(|result| result.admin_access != Some(true))
}

/// The slices of a pool, where they are all of one generation and all that it has.
fn settled<'a>(objects: &'a Objects, driver: &str, pool: &str) -> Option<Vec<&'a ResourceSlice>> {
    let slices: Vec<&ResourceSlice> =
        objects
            .of_kind(Kind::ResourceSlice)
            .filter_map(|object| {
                if let Object::ResourceSlice(slice) = object { Some(&**slice) } else { None }
            })
            .filter(|slice| slice.spec.driver == driver && slice.spec.pool.name == pool)
            .collect();
    let generations: BTreeSet<i64> = slices.iter().map(|s| s.spec.pool.generation).collect();
    let whole = |slice: &&ResourceSlice| {
        i64::try_from(slices.len()) == Ok(slice.spec.pool.resource_slice_count)
    };
    (generations.len() == 1 && slices.iter().all(whole)).then_some(slices)
}

fn find<'a>(slices: &[&'a ResourceSlice], name: &str) -> Option<&'a Device> {
    slices.iter().flat_map(|slice| &slice.spec.devices).find(|device| device.name == name)
}

fn is_shared(device: &Device) -> bool {
    device.allow_multiple_allocations == Some(true)
}

/// Sums by counter set and counter; a sum beyond the limits of the type is none.
type Sums<'a> = BTreeMap<(&'a str, &'a str), Option<Quantity>>;

/// What results take of counters: a device that is shared takes once, however many share it.
fn sums<'a>(
    slices: &[&'a ResourceSlice],
    results: impl Iterator<Item = &'a DeviceRequestAllocationResult>,
) -> Sums<'a> {
    let mut paid = BTreeSet::new();
    let mut sums = Sums::new();
    for device in results.filter_map(|result| find(slices, &result.device)) {
        if is_shared(device) && !paid.insert(&device.name) {
            continue;
        }
        for consumed in &device.consumes_counters {
            for (counter, amount) in &consumed.counters {
                let key = (consumed.counter_set.as_str(), counter.as_str());
                let sum = sums.entry(key).or_insert(Some(Quantity::from_int(0)));
                *sum = sum.as_ref().and_then(|sum| sum.checked_add(&amount.value));
            }
        }
    }
    sums
}

/// Counters of which the results take more, and more than there is.
fn counters<'a>(
    slices: &[&'a ResourceSlice],
    before: &[&'a DeviceRequestAllocationResult],
    own: &[&'a DeviceRequestAllocationResult],
) -> Vec<(&'a str, &'a str)> {
    let were = sums(slices, before.iter().copied());
    let now = sums(slices, before.iter().chain(own).copied());
    let there = |(set, counter): (&str, &str)| {
        let mut sets = slices.iter().flat_map(|slice| &slice.spec.shared_counters);
        let set = sets.find(|one| one.name == set)?;
        Some(set.counters.get(counter)?.value)
    };
    let is_short = |key: (&str, &str), now: &Option<Quantity>| match (now, there(key)) {
        (Some(now), Some(there)) => *now > there,
        (None, _) | (_, None) => true,
    };
    now.iter()
        .filter(|(key, now)| {
            were.get(*key).unwrap_or(&Some(Quantity::from_int(0))) != *now && is_short(**key, now)
        })
        .map(|(key, _)| *key)
        .collect()
}

/// Shared devices of whose capacity the results take more than there is.
fn capacities(
    slices: &[&ResourceSlice],
    before: &[&DeviceRequestAllocationResult],
    own: &[&DeviceRequestAllocationResult],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let devices: BTreeSet<DeviceName> = own.iter().map(|result| name(result)).collect();
    for key in devices {
        let Some(device) = find(slices, &key.2).filter(|device| is_shared(device)) else {
            continue;
        };
        let taken = |all: &[&DeviceRequestAllocationResult], capacity: &str| {
            let of = all.iter().filter(|result| name(result) == key);
            of.filter_map(|result| result.consumed_capacity.get(capacity))
                .try_fold(Quantity::from_int(0), |sum, amount| sum.checked_add(amount))
        };
        for (capacity, has) in &device.capacity {
            let (were, adds) = (taken(before, capacity), taken(own, capacity));
            let now = were.zip(adds).and_then(|(were, adds)| were.checked_add(&adds));
            let adds = adds.is_none_or(|adds| !adds.is_zero());
            if adds && now.is_none_or(|now| now > has.value) {
                wrong.push(format!("device {} has not that much {capacity} left", shown(&key)));
            }
        }
    }
    wrong
}
