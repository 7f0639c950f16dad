//! NodeVolumeLimits: how many volumes each CSI driver can attach to a node.

use std::collections::{BTreeMap, BTreeSet};

use super::{Failing, Mounts};
use crate::decision::Facts;
use crate::facts::Request;
use crate::name::Name;
use crate::reason::{Reason, Status};
use crate::state::{Attached, Handle, State};

pub(super) fn check(
    state: &mut State,
    request: &Request,
    mounts: &Mounts,
    slot: u32,
) -> Result<(), Failing> {
    let node = state.storage.node(state.nodes.key(slot));
    let csi = node.is_some_and(|node| node.csi);
    let mut new = Attached::new();
    for (at, mounted) in request.volumes.iter().enumerate() {
        let planned = || Handle::Planned(0, at as u32);
        new.extend(state.storage.use_counts_as(mounted, planned, csi));
    }
    let Some((first, _)) = new.first() else { return Ok(()) };
    let installed = node.map_or(&[][..], |node| &node.drivers);
    let mut drivers: Vec<&Name> = vec![first];
    drivers.extend(new.iter().map(|(driver, _)| driver));
    drivers.dedup();
    for driver in &drivers {
        let must = state.storage.drivers.get(*driver).is_some_and(|fact| fact.must_be_there);
        if must && !installed.iter().any(|(name, _)| name == *driver) {
            let facts = Facts::Subject { subject: (*driver).clone(), detail: Name::default() };
            return Err(Failing::new(Reason::DriverMissing, Status::Unschedulable).with(facts));
        }
    }
    let limit = |driver: &Name| {
        installed.iter().find(|(name, _)| name == driver).and_then(|(_, limit)| *limit)
    };
    let limits: BTreeMap<Name, i64> =
        drivers.iter().filter_map(|driver| Some(((*driver).clone(), limit(driver)?))).collect();
    if limits.is_empty() {
        return Ok(());
    }
    if !mounts.emptied {
        state.refresh_attached(slot);
    }
    let none = Attached::new();
    let attached = if mounts.emptied { &none } else { state.attached_to(slot).unwrap_or(&none) };
    let besides = if mounts.emptied { BTreeSet::new() } else { unused(state, slot, attached) };
    for (driver, limit) in limits {
        let of = |all: &Attached| all.iter().filter(|(name, _)| *name == driver).count() as i64;
        let used = of(attached) + of(&besides);
        let asked = of(&new.difference(attached).cloned().collect());
        // A pod whose volumes are all attached already asks for nothing.
        if asked > 0 && used + asked > limit {
            let free = limit.saturating_sub(used);
            let facts =
                Facts::Amount { resource: driver, asked, free, allocatable: limit, unhealthy: 0 };
            return Err(Failing::new(Reason::VolumeLimit, Status::Unschedulable).with(facts));
        }
    }
    Ok(())
}

/// Volumes that are attached to the node, and that no pod there mounts.
fn unused(state: &State, slot: u32, attached: &Attached) -> Attached {
    let node = state.storage.node(state.nodes.key(slot));
    let all = node.map_or(&[][..], |node| &node.attached);
    let volume = |(driver, key): &(Name, crate::name::VolumeKey)| {
        let attach = state.storage.volume(key)?.attach.as_ref().filter(|a| !a.in_tree)?;
        Some((driver.clone(), Handle::Volume(attach.handle.clone())))
    };
    all.iter().filter_map(volume).filter(|volume| !attached.contains(volume)).collect()
}
