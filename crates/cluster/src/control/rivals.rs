//! Two writers on one pool of devices: two claims are two objects, so that no version guards a device.
//! Each writes its allocation, waits until the watch of claims has come to that version, and looks who else
//! holds what it was given. Who finds that another came first takes its allocation back before anything is
//! bound to it. Whoever came last has seen all others, so at most one stays.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::resource::{DeviceRequestAllocationResult, ResourceClaim};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::watch::number;
use crate::audit::breaches;
use crate::world::Objects;

/// A device: driver, pool and name.
type Device = (String, String, String);

/// Who holds which devices, and since which version.
#[derive(Clone, Debug, Default)]
pub(super) struct Rivals {
    claims: BTreeMap<ObjectRef, Holding>,
    holders: BTreeMap<Device, BTreeSet<ObjectRef>>,
}

/// What a claim holds.
#[derive(Clone, Debug)]
struct Holding {
    uid: String,
    version: u64,
    /// The version at which the allocation appeared; none where that was not seen.
    appeared: Option<u64>,
    /// The devices, but for those that are only looked at.
    devices: Vec<Device>,
}

/// How a state of a claim became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// By a list: what was before it is not known.
    Listed,
    /// By the watch, which leaves nothing out, or by the answer to a write that was guarded by the state
    /// before it.
    Followed,
}

/// Whether a claim's devices are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// They are.
    Clear,
    /// The watch of claims has not come to it yet.
    NotYet,
    /// Another claim came first.
    Second {
        /// The device.
        device: String,
        /// The other claim; none where it is not one alone.
        other: Option<ObjectRef>,
    },
}

impl Rivals {
    /// A claim is in this state now.
    pub(super) fn seen(&mut self, claim: &ResourceClaim, how: Seen) {
        let of = crate::raise::reference(claim);
        let old = self.remove(&of).filter(|old| old.uid == claim.metadata.uid);
        if claim.status.allocation.is_none() {
            return;
        }
        let version = number(&claim.metadata.resource_version).unwrap_or_default();
        let mut devices: Vec<Device> = taken(claim).map(device).collect();
        devices.sort();
        let appeared = match (&old, how) {
            // In between it may have been given up and given again.
            (_, Seen::Listed) => None,
            (Some(old), Seen::Followed) if old.devices == devices => old.appeared,
            (Some(_) | None, Seen::Followed) => Some(version),
        };
        for device in &devices {
            self.holders.entry(device.clone()).or_default().insert(of.clone());
        }
        let uid = claim.metadata.uid.clone();
        self.claims.insert(of, Holding { uid, version, appeared, devices });
    }

    /// A claim is gone.
    pub(super) fn gone(&mut self, claim: &ObjectRef) {
        self.remove(claim);
    }

    fn remove(&mut self, claim: &ObjectRef) -> Option<Holding> {
        let old = self.claims.remove(claim)?;
        for device in &old.devices {
            if let Some(holders) = self.holders.get_mut(device) {
                holders.remove(claim);
                if holders.is_empty() {
                    self.holders.remove(device);
                }
            }
        }
        Some(old)
    }

    /// Whether what a claim holds is its own, with the watch of claims come to `passed`. `gives_way` says of
    /// a claim that its writer keeps to the same rule: whose pods are ours, and wait. `counts` says of a
    /// pool that its devices take from counters.
    pub(super) fn standing(
        &self,
        claim: &ObjectRef,
        passed: u64,
        objects: &Objects,
        gives_way: impl Fn(&ResourceClaim) -> bool,
        counts: impl Fn(&str, &str) -> bool,
    ) -> Standing {
        let (Some(own), Some(object)) = (self.claims.get(claim), held(objects, claim)) else {
            return Standing::Clear;
        };
        if passed < own.version {
            return Standing::NotYet;
        }
        let before = |of: &ObjectRef| {
            let (Some(other), Some(object)) = (self.claims.get(of), held(objects, of)) else {
                return false;
            };
            let later = own.appeared.zip(other.appeared).is_some_and(|(own, other)| own < other);
            of != claim && !(later && gives_way(object))
        };
        for result in taken(object) {
            let name = device(result);
            let others = self.holders.get(&name).into_iter().flatten();
            let whole = |other: &&ObjectRef| {
                result.share_id.is_none()
                    || held(objects, other).is_none_or(|other| {
                        taken(other).any(|one| device(one) == name && one.share_id.is_none())
                    })
            };
            if let Some(other) = others.filter(|other| before(other)).find(whole) {
                return Standing::Second { device: name.2, other: Some(other.clone()) };
            }
        }
        self.room(object, objects, before, counts)
    }

    /// Whether counters and shared devices have room for a claim beside all that came before it.
    fn room(
        &self,
        claim: &ResourceClaim,
        objects: &Objects,
        before: impl Fn(&ObjectRef) -> bool,
        counts: impl Fn(&str, &str) -> bool,
    ) -> Standing {
        let Some(allocation) = &claim.status.allocation else { return Standing::Clear };
        let pools: BTreeSet<(&str, &str)> = taken(claim)
            .filter(|one| one.share_id.is_some() || counts(&one.driver, &one.pool))
            .map(|one| (one.driver.as_str(), one.pool.as_str()))
            .collect();
        let mut others: BTreeSet<&ObjectRef> = BTreeSet::new();
        for (driver, pool) in pools {
            let first = (driver.to_owned(), pool.to_owned(), String::new());
            let of_pool = self.holders.range(first..);
            let of_pool = of_pool.take_while(|((d, p, _), _)| d == driver && p == pool);
            others.extend(of_pool.flat_map(|(_, holders)| holders).filter(|of| before(of)));
        }
        if others.is_empty() {
            return Standing::Clear;
        }
        let others = others.into_iter().filter_map(|of| held(objects, of));
        match breaches(allocation, others, objects).is_empty() {
            true => Standing::Clear,
            false => {
                let device = taken(claim).next().map(|one| one.device.clone()).unwrap_or_default();
                Standing::Second { device, other: None }
            }
        }
    }
}

fn held<'a>(objects: &'a Objects, claim: &ObjectRef) -> Option<&'a ResourceClaim> {
    debug_assert_eq!(claim.kind, Kind::ResourceClaim, "{claim}");
    if let Some(Object::ResourceClaim(claim)) = objects.get(claim) { Some(claim) } else { None }
}

/// What a claim takes: what it only looks at stays free.
fn taken(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    let results = claim.status.allocation.iter().flat_map(|held| &held.devices.results);
    results.filter(|result| result.admin_access != Some(true))
}

fn device(result: &DeviceRequestAllocationResult) -> Device {
    (result.driver.clone(), result.pool.clone(), result.device.clone())
}
