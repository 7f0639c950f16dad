//! What is wrong with pools as wholes, and with what claims hold of them. What a node can use of a
//! pool is the engine's to decide; here it is only said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_engine::{Allocation, CounterUse, DeviceKey, Name, NodeKey, PoolKey, Reach};
use phalanx_objects::Kind;

use super::absorb::findings;
use super::record::{ClaimRecord, SliceRecord};
use super::settle::{cluster_object, object};
use super::slice::Note;
use super::{Lowering, absorb};
use crate::finding::{Finding, Severity};

impl Lowering {
    /// Enters the devices that a claim holds for itself, or takes them out.
    pub(super) fn index_held(
        &mut self,
        key: &phalanx_engine::ClaimKey,
        record: &ClaimRecord,
        enter: bool,
    ) {
        let held = record.held.iter().flat_map(|held| &held.devices);
        for device in held.filter(|device| !device.admin) {
            let holder = (key.clone(), device.share);
            absorb::change(&mut self.index.holders, device.device.clone(), holder, enter);
        }
    }

    /// Marks the claims that hold devices of a pool whose devices take counters: what they took is
    /// told with them where the slices don't say it any more.
    pub(super) fn mark_holders(&mut self, key: &PoolKey) {
        let Some(record) = self.objects.pools.get(key) else { return };
        if record.slices.values().all(|slice| slice.counters.is_empty()) {
            return;
        }
        let first = DeviceKey { pool: key.clone(), device: Name::new("") };
        let held = self.index.holders.range(first..).take_while(|(d, _)| d.pool == *key);
        let claims = held.flat_map(|(_, holders)| holders.iter().map(|(claim, _)| claim.clone()));
        self.dirty.claims.extend(claims);
    }

    /// An allocation with what its devices took of counters, where the newest slices don't have
    /// them any more.
    pub(super) fn with_vanished(&self, held: &Allocation) -> Allocation {
        let mut held = held.clone();
        for device in held.devices.iter_mut().filter(|device| !device.admin) {
            if let Some(took) = self.took(&device.device) {
                device.consumes = took;
            }
        }
        held
    }

    /// What a device took of counters when a slice last published it; none where the newest slices
    /// do, or none ever did.
    fn took(&self, key: &DeviceKey) -> Option<Box<[CounterUse]>> {
        let record = self.objects.pools.get(&key.pool)?;
        if self.current(&key.pool).any(|slice| slice.devices.iter().any(|d| d.name == key.device)) {
            return None;
        }
        let mut older: Vec<&Arc<SliceRecord>> = record.slices.values().collect();
        older.sort_by_key(|slice| std::cmp::Reverse(slice.generation));
        let mut devices = older.into_iter().flat_map(|slice| &slice.devices);
        let left = devices.find(|device| device.name == key.device);
        left.map(|device| device.kind.counters.clone()).or_else(|| self.vanished.get(key).cloned())
    }

    /// What is wrong with the selectors of classes.
    pub(super) fn of_classes(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for (name, class) in &self.objects.classes {
            let mut notes = Vec::new();
            for (i, selector) in class.object.spec.selectors.iter().enumerate() {
                let error = selector.cel.as_ref();
                let error = error.and_then(|cel| self.selectors.error_of(&cel.expression));
                notes.extend(error.map(|error| {
                    let message = format!("The selector does not compile: {error}");
                    (Severity::Error, format!("spec.selectors[{i}].cel.expression"), message)
                }));
            }
            let reference = cluster_object(Kind::DeviceClass, name);
            found.extend(findings(&reference, &class.header.source, notes));
        }
        found
    }

    /// What is wrong with pools as wholes, and with what claims hold of them.
    pub(crate) fn of_pools(&self) -> impl Iterator<Item = (&PoolKey, Finding)> {
        let published = self.objects.pools.keys();
        let held = self.index.holders.keys().map(|device| &device.pool);
        let pools: BTreeSet<&PoolKey> = published.chain(held).collect();
        let of = |key| self.of_slices(key).into_iter().chain(self.of_holders(key));
        pools.into_iter().flat_map(move |key| of(key).map(move |finding| (key, finding)))
    }

    /// What is wrong with the slices of a pool that count.
    fn of_slices(&self, key: &PoolKey) -> Option<Finding> {
        let slices: Vec<&SliceRecord> =
            self.current(key).map(|slice| &**slice).filter(|slice| !slice.opaque).collect();
        let older = self.objects.pools.get(key).is_some_and(|pool| {
            pool.slices
                .values()
                .any(|s| slices.first().is_some_and(|n| s.generation < n.generation))
        });
        let (slice, trouble) = lacking(&slices, older).or_else(|| contradiction(&slices))?;
        let message = format!("Pool {} of driver {} {trouble}", key.pool, key.driver);
        let note = (Severity::Warning, "spec".to_owned(), message);
        let reference = cluster_object(Kind::ResourceSlice, &slice.name);
        findings(&reference, &slice.header.source, vec![note]).pop()
    }

    /// Whether a claim holds the device, or a share of it.
    pub(crate) fn is_held(&self, device: &DeviceKey) -> bool {
        self.index.holders.contains_key(device)
    }

    /// What is wrong with what claims hold of a pool.
    fn of_holders(&self, key: &PoolKey) -> Vec<Finding> {
        let first = DeviceKey { pool: key.clone(), device: Name::new("") };
        let held = || self.index.holders.range(first.clone()..).take_while(|(d, _)| d.pool == *key);
        if held().next().is_none() {
            return Vec::new();
        }
        let slices: Vec<&Arc<SliceRecord>> = self.current(key).collect();
        let published: BTreeSet<&Name> =
            slices.iter().flat_map(|slice| &slice.devices).map(|device| &device.name).collect();
        let mut found = Vec::new();
        let mut lost = held().filter(|(d, _)| !published.contains(&d.device));
        if let Some((device, holders)) = lost.next() {
            let more = match lost.count() {
                0 => String::new(),
                1 => " So it is with 1 more device of the pool.".to_owned(),
                more => format!(" So it is with {more} more devices of the pool."),
            };
            let counts = slices.iter().any(|slice| !slice.counters.is_empty());
            let took = match self.took(device) {
                _ if !counts => "",
                Some(_) => {
                    " What it took of the pool's counters when it was last published still counts."
                }
                None => " What it takes of the pool's counters is not known, and is not counted.",
            };
            let message = format!(
                "The claim holds device {} of pool {} (driver {}), which no ResourceSlice \
                 publishes.{took}{more}",
                device.device, key.pool, key.driver
            );
            found.extend(holders.first().and_then(|(claim, _)| self.of_claim(claim, message)));
        }
        for (device, holders) in held() {
            let mut alone = holders.iter().filter(|(_, share)| !share).map(|(claim, _)| claim);
            if let (Some(one), Some(other)) = (alone.next(), alone.next()) {
                let message = format!(
                    "The claim holds device {} of pool {}, and so does claim {}. One device can't \
                     be held by two claims; the cluster's state is wrong, or the input mixes two \
                     states.",
                    device.device, key.pool, one.0
                );
                found.extend(self.of_claim(other, message));
            }
        }
        found
    }

    fn of_claim(&self, claim: &phalanx_engine::ClaimKey, message: String) -> Option<Finding> {
        let source = &self.objects.claims.get(claim)?.header.source;
        let note: Note = (Severity::Warning, "status.allocation".to_owned(), message);
        findings(&object(Kind::ResourceClaim, &claim.0), source, vec![note]).pop()
    }
}

/// Whether slices are missing, or too many. An older generation may still be whole for some node.
fn lacking<'a>(slices: &[&'a SliceRecord], older: bool) -> Option<(&'a SliceRecord, String)> {
    let first = *slices.first()?;
    let (wanted, count, generation) = (first.slice_count, slices.len(), first.generation);
    // That a pool has less than one slice is said where the slice is read.
    if wanted < 1 || i64::try_from(count) == Ok(wanted) {
        return None;
    }
    let of = if older { "that generation" } else { "it" };
    let trouble = format!(
        "is incomplete: the input has {count} of {wanted} slices of generation {generation}. Until \
         the numbers agree, no device of {of} is allocated."
    );
    Some((first, trouble))
}

/// Over what a pool contradicts itself: then no device of it is used.
fn contradiction<'a>(slices: &[&'a SliceRecord]) -> Option<(&'a SliceRecord, String)> {
    let says = |what: &str| format!("contradicts itself: {what}. No device of it is used.");
    let mut seen: BTreeMap<&Name, Option<&NodeKey>> = BTreeMap::new();
    for slice in slices {
        let node = if let Reach::Node(node) = &slice.reach { Some(node) } else { None };
        for device in &slice.devices {
            // A node sees only its own slices: two nodes may have a device of one name.
            let before = seen.insert(&device.name, node);
            if before.is_some_and(|before| before.is_none() || node.is_none() || before == node) {
                return Some((slice, says(&format!("device {} is there twice", device.name))));
            }
        }
    }
    let mut sets = BTreeMap::new();
    for slice in slices {
        for set in &slice.counters {
            if sets.insert(&set.name, set).is_some() {
                return Some((slice, says(&format!("counter set {} is there twice", set.name))));
            }
        }
    }
    for slice in slices {
        for device in &slice.devices {
            for used in &device.kind.counters {
                let known = sets.get(&used.name);
                let has =
                    |name: &Name| known.is_some_and(|s| s.counters.iter().any(|c| c.0 == *name));
                let lacks = match known {
                    None => format!("counter set {}", used.name),
                    Some(_) => match used.counters.iter().find(|(name, _)| !has(name)) {
                        Some((name, _)) => format!("counter {name} of set {}", used.name),
                        None => continue,
                    },
                };
                let what = format!("device {} counts on {lacks}, which it lacks", device.name);
                return Some((slice, says(&what)));
            }
        }
    }
    None
}
