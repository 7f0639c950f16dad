//! Volumes: the facts about them, who uses them on which node, and what seats on trial or in flight
//! do to claims that wait for their pod.
//!
//! What a node's pods mount is kept as they mount it; which volumes that comes to is looked up when
//! somebody asks, so that facts may come in any order.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::{State, Taken};
use crate::facts::{NodeTerm, Seat};
use crate::name::{Name, NodeKey, Scoped, VolumeClaimKey, VolumeKey};
use crate::storage::{
    Attach, NodeStorage, StorageClass, StorageDriver, Volume, VolumeClaim, VolumeUse,
};

/// All that is known of volumes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage {
    volumes: FxHashMap<VolumeKey, VolumeState>,
    /// By class, the volumes by size and name: the order in which claims look for one.
    by_class: BTreeMap<Name, BTreeSet<(i128, VolumeKey)>>,
    claims: FxHashMap<VolumeClaimKey, VolumeClaimState>,
    pub(crate) classes: BTreeMap<Name, StorageClass>,
    pub(crate) drivers: BTreeMap<Name, StorageDriver>,
    nodes: FxHashMap<NodeKey, NodeStorage>,
}

/// A volume's row.
#[derive(Clone, Debug, Default)]
struct VolumeState {
    fact: Option<Volume>,
    /// Seats that give it to a claim before the board shows it: in flight, and on trial.
    given: [u32; 2],
}

/// A claim's row.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeClaimState {
    pub(crate) fact: Option<VolumeClaim>,
    /// What seats make of it before the board shows it, in order; those in flight before those on
    /// trial.
    decided: Vec<(OnTrial, Decided)>,
    /// Nodes whose pods use it, and how often.
    users: Vec<(u32, u32)>,
}

/// Whether a seat is only tried, and not in flight.
pub(crate) type OnTrial = bool;

/// What a seat makes of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Decided {
    /// It gets this volume.
    Volume(VolumeKey),
    /// A volume is made for it on this node.
    Made(NodeKey),
}

/// What the pods of a node mount, each with how many mount it, and what that comes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeVolumes {
    pub(crate) uses: Vec<(VolumeUse, u32)>,
    /// The volumes attached for these pods, with the version of the facts that it was worked out
    /// from.
    attached: Option<(u64, Attached)>,
}

/// Volumes that count against a node's limits: driver and handle.
pub(crate) type Attached = BTreeSet<(Name, Handle)>;

/// What tells a driver's volumes apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Handle {
    /// The driver's own.
    Volume(Name),
    /// Of a volume that is yet to be made for a claim.
    Of(VolumeClaimKey),
    /// Of a volume that is yet to be made for a pod that does not exist: which of its volumes, and
    /// of how many equal pods.
    Planned(u64, u32),
}

impl VolumeState {
    fn is_idle(&self) -> bool {
        self.fact.is_none() && self.given == [0, 0]
    }
}

impl VolumeClaimState {
    /// What the first seat that decides on it makes of it.
    pub(crate) fn decided(&self) -> Option<&Decided> {
        self.decided.first().map(|(_, decided)| decided)
    }

    fn is_idle(&self) -> bool {
        self.fact.is_none() && self.decided.is_empty() && self.users.is_empty()
    }
}

impl Storage {
    /// A volume that there is.
    pub(crate) fn volume(&self, key: &VolumeKey) -> Option<&Volume> {
        self.volumes.get(key)?.fact.as_ref()
    }

    /// Whether a seat gives the volume to somebody; `emptied` is as if nothing were tried.
    pub(crate) fn is_given(&self, key: &VolumeKey, emptied: bool) -> bool {
        let given = |row: &VolumeState| row.given[0] > 0 || (row.given[1] > 0 && !emptied);
        self.volumes.get(key).is_some_and(given)
    }

    /// A claim that there is, and what the first seat that decides on it makes of it.
    pub(crate) fn claim(&self, key: &VolumeClaimKey) -> Option<(&VolumeClaim, Option<&Decided>)> {
        let row = self.claims.get(key)?;
        Some((row.fact.as_ref()?, row.decided()))
    }

    /// The same as if nothing were tried.
    pub(crate) fn claim_untried(
        &self,
        key: &VolumeClaimKey,
    ) -> Option<(&VolumeClaim, Option<&Decided>)> {
        let row = self.claims.get(key)?;
        let flown = row.decided.first().filter(|(on_trial, _)| !on_trial);
        Some((row.fact.as_ref()?, flown.map(|(_, decided)| decided)))
    }

    /// What the node can attach, where anything is known of it.
    pub(crate) fn node(&self, key: &NodeKey) -> Option<&NodeStorage> {
        self.nodes.get(key)
    }

    /// The volumes of a class, smallest first, then by name.
    pub(crate) fn of_class(&self, class: &str) -> impl Iterator<Item = (&VolumeKey, &Volume)> {
        let keys = self.by_class.get(class).into_iter().flatten();
        keys.filter_map(|(_, key)| Some((key, self.volume(key)?)))
    }

    /// Name of the class that a claim is of; empty is none.
    pub(crate) fn class_name<'a>(&'a self, claim: &'a VolumeClaim) -> &'a str {
        match &claim.class {
            Some(name) => name,
            None => {
                let mut classes = self.classes.iter();
                classes.find(|(_, class)| class.default).map_or("", |(name, _)| name)
            }
        }
    }

    /// The class that a claim is of.
    pub(crate) fn class(&self, claim: &VolumeClaim) -> Option<&StorageClass> {
        self.classes.get(self.class_name(claim))
    }

    /// Whether a claim gets its volume with its pod: its class waits for that, or nobody can know yet
    /// which volume a class that binds at once will give it.
    pub(crate) fn waits(&self, claim: &VolumeClaim) -> bool {
        let class = self.class(claim);
        class.is_some_and(|class| class.waits || (claim.to_come && class.provisions))
            && claim.volume.is_none()
    }

    /// What a claim's volume counts as on a node (NodeVolumeLimits' getCSIDriverInfo); none where it
    /// does not count. `csi`: the node has a CSINode.
    fn counts_as(
        &self,
        claim: &VolumeClaim,
        decided: Option<&Decided>,
        handle: Handle,
        csi: bool,
    ) -> Option<(Name, Handle)> {
        let given = decided.and_then(|decided| match decided {
            Decided::Volume(volume) => Some(volume),
            Decided::Made(_) => None,
        });
        let volume = claim.volume.as_ref().or(given);
        if let Some(volume) = volume.and_then(|key| self.volume(key)) {
            return counted(volume.attach.as_ref()?, csi);
        }
        let (driver, in_tree) = self.class(claim)?.driver.as_ref()?;
        (csi || !in_tree).then(|| (driver.clone(), handle))
    }

    /// What something that a pod mounts counts as on a node. `planned` tells volumes apart that are
    /// yet to be made for pods that do not exist.
    pub(crate) fn use_counts_as(
        &self,
        mounted: &VolumeUse,
        planned: impl Fn() -> Handle,
        csi: bool,
    ) -> Option<(Name, Handle)> {
        match mounted {
            VolumeUse::Disk { attach, .. } => counted(attach.as_ref()?, csi),
            VolumeUse::Claim(key) => {
                let (claim, decided) = self.claim(key)?;
                self.counts_as(claim, decided, Handle::Of(key.clone()), csi)
            }
            VolumeUse::Ephemeral(made) => {
                if let Some(key) = &made.claim
                    && let Some((claim, decided)) = self.claim(key)
                {
                    return self.counts_as(claim, decided, Handle::Of(key.clone()), csi);
                }
                let claim = made.planned.as_ref()?;
                let handle = made.claim.clone().map_or_else(planned, Handle::Of);
                self.counts_as(claim, None, handle, csi)
            }
        }
    }
}

fn counted(attach: &Attach, csi: bool) -> Option<(Name, Handle)> {
    let handle = || (attach.driver.clone(), Handle::Volume(attach.handle.clone()));
    (csi || !attach.in_tree).then(handle)
}

impl State {
    /// Something about volumes that any node's answer may depend on has changed.
    fn volumes_changed(&mut self) {
        self.clock.volumes = self.clock.next();
    }

    fn volume_facts_changed(&mut self) {
        self.clock.volume_facts = self.clock.next();
        self.volumes_changed();
        self.hardware_changed();
    }

    pub(super) fn set_volume(&mut self, key: &VolumeKey, fact: Option<Volume>) {
        if self.storage.volume(key) == fact.as_ref() {
            return;
        }
        let row = self.storage.volumes.entry(key.clone()).or_default();
        let old = std::mem::replace(&mut row.fact, fact.clone());
        if row.is_idle() {
            self.storage.volumes.remove(key);
        }
        if let Some(old) = old
            && let Some(all) = self.storage.by_class.get_mut(&old.class)
        {
            all.remove(&(old.size_nanos, key.clone()));
            if all.is_empty() {
                self.storage.by_class.remove(&old.class);
            }
        }
        if let Some(new) = fact {
            let of = self.storage.by_class.entry(new.class).or_default();
            of.insert((new.size_nanos, key.clone()));
        }
        self.volume_facts_changed();
    }

    pub(super) fn set_volume_claim(&mut self, key: &VolumeClaimKey, fact: Option<VolumeClaim>) {
        if self.storage.claims.get(key).and_then(|row| row.fact.as_ref()) == fact.as_ref() {
            return;
        }
        let row = self.storage.claims.entry(key.clone()).or_default();
        row.fact = fact;
        self.drop_idle_volume_claim(key);
        self.volume_facts_changed();
    }

    pub(super) fn set_storage_class(&mut self, key: Name, fact: Option<StorageClass>) {
        if self.storage.classes.get(&key) != fact.as_ref() {
            super::apply::set(&mut self.storage.classes, key, fact);
            self.volume_facts_changed();
        }
    }

    pub(super) fn set_storage_driver(&mut self, key: Name, fact: Option<StorageDriver>) {
        if self.storage.drivers.get(&key) != fact.as_ref() {
            super::apply::set(&mut self.storage.drivers, key, fact);
            self.volume_facts_changed();
        }
    }

    pub(super) fn set_node_storage(&mut self, key: &NodeKey, fact: Option<NodeStorage>) {
        if self.storage.nodes.get(key) == fact.as_ref() {
            return;
        }
        match fact {
            Some(fact) => self.storage.nodes.insert(key.clone(), fact),
            None => self.storage.nodes.remove(key),
        };
        self.volume_facts_changed();
    }

    /// Adds what a request mounts to a node, or takes it back.
    pub(super) fn mount(&mut self, node: u32, volumes: &[VolumeUse], add: bool) {
        if volumes.is_empty() {
            return;
        }
        let held = &mut self.nodes.at_mut(node).volumes;
        held.attached = None;
        for mounted in volumes {
            count(&mut held.uses, mounted, add);
        }
        let mut waits = false;
        for key in volumes.iter().filter_map(VolumeUse::claim) {
            let row = self.storage.claims.entry(key.clone()).or_default();
            count(&mut row.users, &node, add);
            waits |= row.fact.as_ref().is_some_and(VolumeClaim::is_for_one_pod);
            self.drop_idle_volume_claim(key);
        }
        if waits {
            self.volumes_changed();
        }
    }

    fn drop_idle_volume_claim(&mut self, key: &VolumeClaimKey) {
        if self.storage.claims.get(key).is_some_and(VolumeClaimState::is_idle) {
            self.storage.claims.remove(key);
        }
    }

    /// Whether a pod on a node that exists names the claim.
    pub(crate) fn is_mounted(&self, key: &VolumeClaimKey) -> bool {
        let by_name = |mounted: &VolumeUse| matches!(mounted, VolumeUse::Claim(of) if of == key);
        let on = |node: &u32| {
            let row = self.nodes.get(*node).filter(|row| row.fact.is_some());
            row.is_some_and(|row| row.volumes.uses.iter().any(|(mounted, _)| by_name(mounted)))
        };
        let row = self.storage.claims.get(key);
        row.is_some_and(|row| row.users.iter().any(|(node, _)| on(node)))
    }

    /// Works out which volumes are attached for the pods of a node, where that is not known.
    pub(crate) fn refresh_attached(&mut self, slot: u32) {
        let facts = self.clock.volume_facts;
        let known = &self.nodes.at(slot).volumes.attached;
        if known.as_ref().is_none_or(|(version, _)| *version != facts) {
            let attached = self.attached(slot);
            self.nodes.at_mut(slot).volumes.attached = Some((facts, attached));
        }
    }

    /// As [`refresh_attached`](Self::refresh_attached) left it.
    pub(crate) fn attached_to(&self, slot: u32) -> Option<&Attached> {
        self.nodes.at(slot).volumes.attached.as_ref().map(|(_, attached)| attached)
    }

    fn attached(&self, slot: u32) -> Attached {
        let csi = self.storage.node(self.nodes.key(slot)).is_some_and(|node| node.csi);
        let mut all = Attached::new();
        for (at, (mounted, times)) in self.nodes.at(slot).volumes.uses.iter().enumerate() {
            // Of pods that don't exist yet each has a volume of its own.
            for pod in 0..*times {
                let planned = || Handle::Planned(at as u64 + 1, pod);
                all.extend(self.storage.use_counts_as(mounted, planned, csi));
            }
        }
        all
    }

    /// Does to claims and volumes what a seat decides on them.
    pub(super) fn take_volumes(&mut self, volumes: &[VolumeUse], seat: &Seat, taken: &mut Taken) {
        for grant in &seat.volumes {
            let claim = volumes.get(usize::from(grant.at)).and_then(VolumeUse::claim);
            let decided = match &grant.volume {
                Some(volume) => Decided::Volume(volume.clone()),
                None => Decided::Made(seat.node.clone()),
            };
            if claim.is_some() || grant.volume.is_some() {
                let decided = (self.clock.before_trial.is_some(), decided);
                self.decide_volume(claim, &decided, true);
                taken.volumes.push((claim.cloned(), decided));
            }
        }
    }

    /// Notes what becomes of a claim, or takes that back.
    pub(super) fn decide_volume(
        &mut self,
        claim: Option<&VolumeClaimKey>,
        decided: &(OnTrial, Decided),
        add: bool,
    ) {
        if let (on_trial, Decided::Volume(volume)) = decided {
            let row = self.storage.volumes.entry(volume.clone()).or_default();
            let given = &mut row.given[usize::from(*on_trial)];
            *given = if add { *given + 1 } else { given.saturating_sub(1) };
            if row.is_idle() {
                self.storage.volumes.remove(volume);
            }
        }
        if let Some(key) = claim {
            let row = self.storage.claims.entry(key.clone()).or_default();
            match row.decided.binary_search(decided) {
                Ok(at) if !add => {
                    row.decided.remove(at);
                }
                Ok(at) | Err(at) if add => row.decided.insert(at, decided.clone()),
                Ok(_) | Err(_) => {}
            }
            // It counts against the limits of its nodes as the volume that it gets.
            for (node, _) in &row.users {
                self.nodes.at_mut(*node).volumes.attached = None;
            }
            self.drop_idle_volume_claim(key);
        }
        self.volumes_changed();
    }

    /// Every fact about volumes, with what seats on trial and in flight make of them: what the audit
    /// judges by.
    pub(crate) fn storage_facts(&self) -> StorageFacts {
        let storage = &self.storage;
        let mut facts = StorageFacts {
            volumes: BTreeMap::new(),
            claims: BTreeMap::new(),
            classes: storage.classes.clone(),
            drivers: storage.drivers.clone(),
            nodes: storage.nodes.iter().map(|(key, fact)| (key.clone(), fact.clone())).collect(),
        };
        for (key, row) in &storage.volumes {
            facts.volumes.extend(row.fact.clone().map(|fact| (key.clone(), fact)));
        }
        for (key, row) in &storage.claims {
            facts.claims.extend(row.fact.clone().map(|fact| (key.clone(), fact)));
        }
        for (key, row) in &storage.claims {
            if let Some(decided) = row.decided() {
                facts.decide(Some(key), decided);
            }
        }
        for (key, row) in &storage.volumes {
            if row.given != [0, 0] && row.fact.as_ref().is_some_and(|fact| fact.claim.is_none()) {
                facts.give(key, None);
            }
        }
        facts
    }
}

/// Facts about volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StorageFacts {
    pub(crate) volumes: BTreeMap<VolumeKey, Volume>,
    pub(crate) claims: BTreeMap<VolumeClaimKey, VolumeClaim>,
    pub(crate) classes: BTreeMap<Name, StorageClass>,
    pub(crate) drivers: BTreeMap<Name, StorageDriver>,
    pub(crate) nodes: BTreeMap<NodeKey, NodeStorage>,
}

impl StorageFacts {
    /// Makes of a claim, where it has a name, and of a volume what was decided.
    pub(crate) fn decide(&mut self, claim: Option<&VolumeClaimKey>, decided: &Decided) {
        let fact = claim.and_then(|key| self.claims.get_mut(key));
        match decided {
            Decided::Volume(volume) => {
                if let Some(fact) = fact {
                    fact.volume.get_or_insert_with(|| volume.clone());
                    fact.bound = true;
                }
                self.give(volume, claim);
            }
            Decided::Made(node) => {
                if let Some(fact) = fact {
                    fact.selected_node.get_or_insert_with(|| node.clone());
                }
            }
        }
    }

    /// Gives a volume to a claim, or to one that has no name yet.
    fn give(&mut self, volume: &VolumeKey, claim: Option<&VolumeClaimKey>) {
        let uid = claim.and_then(|key| self.claims.get(key)).map(|fact| fact.uid.clone());
        let Some(volume) = self.volumes.get_mut(volume) else { return };
        let nobody = || VolumeClaimKey(Scoped::default());
        let claim = claim.cloned().unwrap_or_else(nobody);
        if volume.claim.as_ref().is_none_or(|(kept, _)| *kept != claim) {
            volume.claim = Some((claim, uid.unwrap_or_default()));
        }
        volume.available = false;
    }
}

impl VolumeClaim {
    /// Whether one pod alone may use it (`ReadWriteOncePod`).
    pub(crate) fn is_for_one_pod(&self) -> bool {
        self.modes.covers(crate::storage::AccessModes::ONCE_POD)
    }
}

/// Counts one more of a thing, or one less; what is not there is left out.
fn count<T: Clone + PartialEq>(all: &mut Vec<(T, u32)>, one: &T, add: bool) {
    match all.iter().position(|(known, _)| known == one) {
        Some(at) if add => all[at].1 += 1,
        Some(at) if all[at].1 > 1 => all[at].1 -= 1,
        Some(at) => {
            all.swap_remove(at);
        }
        None if add => all.push((one.clone(), 1)),
        None => {}
    }
}

/// Whether a term over labels holds; an empty one holds everywhere, as an empty label selector does.
pub(crate) fn selects(term: &NodeTerm, labels: &[(Name, Name)]) -> bool {
    term.is_empty() || crate::check::fact::on_labels(term, labels)
}
