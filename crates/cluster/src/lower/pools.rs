//! What is wrong with pools as wholes, and with what claims hold of them. What a node can use of a
//! pool is the engine's to decide; here it is only said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_engine::{Allocation, Consumption, DeviceKey, Name, NodeKey, PoolKey, Reach};
use phalanx_objects::Kind;

use super::absorb::findings;
use super::record::{ClaimRecord, SliceRecord};
use super::settle::{cluster_object, object};
use super::slice::Note;
use super::{Lowering, absorb};
use crate::finding::{Finding, Severity};

/// What a finding about a pool says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolTrouble {
    /// Slices are missing.
    Lacking,
    /// There are more slices than the pool says.
    Surplus,
    /// It contradicts itself.
    Invalid,
    /// What a claim holds of it can't be.
    Held,
}

/// How nodes see a pool.
#[derive(Debug, Default)]
struct Sighted<'a> {
    /// Slices that are complete by themselves for the nodes beside them: these look at no others.
    alone: Vec<(Vec<&'a SliceRecord>, Vec<&'a Name>)>,
    /// Whether a node sees it, or may, and its own slices are not complete.
    others: bool,
}

impl Sighted<'_> {
    /// The nodes that use it by themselves, in words; none where there are none.
    fn users(&self) -> Option<String> {
        let mut nodes: Vec<&Name> =
            self.alone.iter().flat_map(|(_, nodes)| nodes).copied().collect();
        nodes.sort_unstable();
        words(&nodes)
    }
}

/// Nodes in words: up to three of them, and how many more.
fn words(nodes: &[&Name]) -> Option<String> {
    let more = nodes.len().saturating_sub(3);
    let names: Vec<&str> = nodes.iter().take(3).map(|node| node.as_str()).collect();
    match (names.as_slice(), more) {
        ([], _) => None,
        ([one], _) => Some(format!("node {one}")),
        (all, 0) => {
            let (last, first) = all.split_last()?;
            Some(format!("nodes {} and {last}", first.join(", ")))
        }
        (all, more) => Some(format!("nodes {} and {more} more", all.join(", "))),
    }
}

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
    fn took(&self, key: &DeviceKey) -> Option<Consumption> {
        let record = self.objects.pools.get(&key.pool)?;
        if self.current(&key.pool).any(|slice| slice.devices.iter().any(|d| d.name == key.device)) {
            return None;
        }
        let mut older: Vec<&Arc<SliceRecord>> = record.slices.values().collect();
        older.sort_by_key(|slice| std::cmp::Reverse(slice.generation));
        let mut devices = older.into_iter().flat_map(|slice| &slice.devices);
        let left = devices.find(|device| device.name == key.device);
        left.map(|device| device.kind.consumption()).or_else(|| self.vanished.get(key).cloned())
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
    pub(crate) fn of_pools(&self) -> impl Iterator<Item = (PoolTrouble, Finding)> {
        let published = self.objects.pools.keys();
        let held = self.index.holders.keys().map(|device| &device.pool);
        let pools: BTreeSet<&PoolKey> = published.chain(held).collect();
        pools.into_iter().flat_map(|key| {
            let of_holders = self.of_holders(key).into_iter();
            let held = of_holders.map(|finding| (PoolTrouble::Held, finding));
            self.of_slices(key).into_iter().chain(held)
        })
    }

    /// How the nodes that slices of a pool reach see it: the engine's rule, by node.
    fn sighted(&self, key: &PoolKey) -> Sighted<'_> {
        let all = self.objects.pools.get(key).into_iter().flat_map(|pool| pool.slices.values());
        let slices: Vec<&SliceRecord> = all.map(|s| &**s).filter(|s| !s.opaque).collect();
        let mut of_node: BTreeMap<&Name, Vec<usize>> = BTreeMap::new();
        let mut wide = Vec::new();
        for (at, slice) in slices.iter().enumerate() {
            match &slice.reach {
                Reach::Node(node) => of_node.entry(&node.0).or_default().push(at),
                Reach::All | Reach::Selector(_) | Reach::PerDevice | Reach::Unknown => {
                    wide.push(at)
                }
            }
        }
        if !wide.is_empty() {
            for node in self.objects.nodes.keys() {
                of_node.entry(node).or_default();
            }
        }
        let mut alone: BTreeMap<Vec<usize>, Vec<&Name>> = BTreeMap::new();
        let mut others = false;
        for (node, mut own) in of_node {
            let here = NodeKey(node.clone());
            let record = self.objects.nodes.get(node);
            let labels = record.map_or(&[][..], |record| &record.node.labels);
            // The count is that of one of the node's own slices, which come first.
            own.extend(wide.iter().filter(|at| slices[**at].is_for(&here, labels)));
            let newest = own.iter().map(|at| slices[*at].generation).max();
            own.retain(|at| Some(slices[*at].generation) == newest);
            let Some(first) = own.first() else { continue };
            if i64::try_from(own.len()) == Ok(slices[*first].slice_count) {
                own.sort_unstable();
                alone.entry(own).or_default().push(node);
            } else {
                others = true;
            }
        }
        others |= alone.is_empty();
        let of =
            |(own, nodes): (Vec<usize>, _)| (own.iter().map(|at| slices[*at]).collect(), nodes);
        Sighted { alone: alone.into_iter().map(of).collect(), others }
    }

    /// Why no device of this slice, one of the newest of its pool, is given out: what is wrong with
    /// the slices that are looked at together. None where a node uses them.
    #[must_use]
    pub fn unsound(&self, key: &PoolKey, slice: &Name) -> Option<String> {
        let slices: Vec<&SliceRecord> =
            self.current(key).map(|slice| &**slice).filter(|slice| !slice.opaque).collect();
        let invalid = |of: &[&SliceRecord]| {
            contradiction(of)
                .map(|(_, what)| format!("pool {} contradicts itself: {what}", key.pool))
        };
        let sighted = self.sighted(key);
        let mut alone = sighted.alone.iter().map(|(own, _)| own);
        if let Some(own) = alone.find(|own| own.iter().any(|one| one.name == *slice)) {
            return invalid(own);
        }
        let lacking = lacking(&slices).map(|(_, _, what)| format!("pool {} {what}", key.pool));
        lacking.or_else(|| invalid(&slices))
    }

    /// The slices of a pool by which a node uses it without looking at others: they count whatever
    /// their generation.
    pub(crate) fn used_alone(&self, key: &PoolKey) -> BTreeSet<&Name> {
        let alone = self.sighted(key).alone.into_iter();
        alone.flat_map(|(slices, _)| slices).map(|slice| &slice.name).collect()
    }

    /// What is wrong with the slices of a pool that count.
    fn of_slices(&self, key: &PoolKey) -> Option<(PoolTrouble, Finding)> {
        let slices: Vec<&SliceRecord> =
            self.current(key).map(|slice| &**slice).filter(|slice| !slice.opaque).collect();
        let (first, trouble, what) = lacking(&slices).or_else(|| {
            let (slice, what) = contradiction(&slices)?;
            Some((slice, PoolTrouble::Invalid, format!("contradicts itself: {what}")))
        })?;
        let sighted = self.sighted(key);
        let of_others = || {
            let users = sighted.users();
            let older = || {
                let pool = self.objects.pools.get(key);
                pool.is_some_and(|p| p.slices.values().any(|s| s.generation < first.generation))
            };
            let so = match (users, trouble) {
                (None, PoolTrouble::Invalid) => "No device of it is used.".to_owned(),
                (Some(nodes), PoolTrouble::Invalid) => {
                    format!(
                        "Devices of it are used only on {nodes}, whose own slices are complete."
                    )
                }
                (None, _) => {
                    let of = if older() { "that generation" } else { "it" };
                    format!("Until the numbers agree, no device of {of} is allocated.")
                }
                (Some(nodes), _) => format!(
                    "Until the numbers agree, devices of it are allocated only on {nodes}, whose own \
                     slices are complete."
                ),
            };
            (first, trouble, format!("{what}. {so}"))
        };
        let by_itself = || {
            let mut alone = sighted.alone.iter();
            alone.find_map(|(own, nodes)| {
                let (slice, what) = contradiction(own)?;
                // Where these are all slices that there are, it is the pool's own fault.
                let said = if own.len() == slices.len() && sighted.alone.len() == 1 {
                    format!("contradicts itself: {what}. No device of it is used.")
                } else {
                    let on = words(nodes)?;
                    format!("contradicts itself on {on}: {what}. No device of it is used there.")
                };
                Some((slice, PoolTrouble::Invalid, said))
            })
        };
        let (slice, trouble, said) = if sighted.others { of_others() } else { by_itself()? };
        let message = format!("Pool {} of driver {} {said}", key.pool, key.driver);
        let note = (Severity::Warning, "spec".to_owned(), message);
        let reference = cluster_object(Kind::ResourceSlice, &slice.name);
        let finding = findings(&reference, &slice.header.source, vec![note]).pop()?;
        Some((trouble, finding))
    }

    /// What is wrong with what claims hold of a pool.
    fn of_holders(&self, key: &PoolKey) -> Vec<Finding> {
        let first = DeviceKey { pool: key.clone(), device: Name::new("") };
        let held = || self.index.holders.range(first.clone()..).take_while(|(d, _)| d.pool == *key);
        if held().next().is_none() {
            return Vec::new();
        }
        let slices: Vec<&Arc<SliceRecord>> = self.current(key).collect();
        let mut published: BTreeSet<&Name> =
            slices.iter().flat_map(|slice| &slice.devices).map(|device| &device.name).collect();
        if held().any(|(device, _)| !published.contains(&device.device)) {
            let alone = self.sighted(key).alone.into_iter().flat_map(|(slices, _)| slices);
            published.extend(alone.flat_map(|slice| &slice.devices).map(|device| &device.name));
        }
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

impl SliceRecord {
    /// Whether a node with these labels sees it, or a device of it.
    fn is_for(&self, node: &NodeKey, labels: &[(Name, Name)]) -> bool {
        let mut devices = self.devices.iter().filter_map(|device| device.kind.reach.as_ref());
        self.reach.includes(node, labels)
            || self.reach == Reach::PerDevice && devices.any(|reach| reach.includes(node, labels))
    }
}

/// Whether slices are missing, or too many. A node may have all of its own nevertheless.
fn lacking<'a>(slices: &[&'a SliceRecord]) -> Option<(&'a SliceRecord, PoolTrouble, String)> {
    let first = *slices.first()?;
    let (wanted, generation) = (first.slice_count, first.generation);
    let count = i64::try_from(slices.len()).unwrap_or(i64::MAX);
    // That a pool has less than one slice is said where the slice is read.
    if wanted < 1 || count == wanted {
        return None;
    }
    let trouble = if count < wanted { PoolTrouble::Lacking } else { PoolTrouble::Surplus };
    let what = match trouble {
        PoolTrouble::Surplus => format!(
            "is incomplete: the input has {count} slices of generation {generation}, and the pool says \
             that it has {wanted}"
        ),
        PoolTrouble::Lacking | PoolTrouble::Invalid | PoolTrouble::Held => format!(
            "is incomplete: the input has {count} of {wanted} slices of generation {generation}"
        ),
    };
    Some((first, trouble, what))
}

/// Over what slices that are looked at together contradict each other.
fn contradiction<'a>(slices: &[&'a SliceRecord]) -> Option<(&'a SliceRecord, String)> {
    let mut seen: BTreeMap<&Name, Option<&NodeKey>> = BTreeMap::new();
    for slice in slices {
        let node = if let Reach::Node(node) = &slice.reach { Some(node) } else { None };
        for device in &slice.devices {
            // A node sees only its own slices: two nodes may have a device of one name.
            let before = seen.insert(&device.name, node);
            if before.is_some_and(|before| before.is_none() || node.is_none() || before == node) {
                return Some((slice, format!("device {} is there twice", device.name)));
            }
        }
    }
    let mut sets = BTreeMap::new();
    for slice in slices {
        for set in &slice.counters {
            if sets.insert(&set.name, set).is_some() {
                return Some((slice, format!("counter set {} is there twice", set.name)));
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
                return Some((slice, what));
            }
        }
    }
    None
}
