//! VolumeBinding: volumes that claims have, volumes that are there for claims that wait for their
//! pod, and room to make them one.

use std::collections::BTreeMap;

use super::{Binding, Failing, Mount, Mounts, NEVER, Waiting, failing};
use crate::check::fact::on_labels;
use crate::decision::VolumeLack;
use crate::facts::{NodeRequirement, NodeTerm};
use crate::name::{Name, VolumeClaimKey, VolumeKey};
use crate::reason::Reason;
use crate::state::{State, selects};
use crate::storage::{StorageClass, StorageRoom, Volume, VolumeClaim, VolumeGrant};

/// The volumes that would do for a claim, nodes aside: smallest first, then by name. Those that one
/// label confines (local disks, zones) are found by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidates {
    /// Volumes kept for this very claim: the first is the only one that it may have.
    kept: Option<VolumeKey>,
    all: Vec<VolumeKey>,
    /// Those of `all`, by index, that no single label confines.
    wide: Vec<u32>,
    /// The others, by label and value.
    by_label: BTreeMap<Name, BTreeMap<Name, Vec<u32>>>,
}

impl Candidates {
    /// `key`: the claim's name, where it has one.
    pub(super) fn new(
        state: &State,
        key: Option<&VolumeClaimKey>,
        claim: &VolumeClaim,
        class: &str,
        emptied: bool,
    ) -> Self {
        let mut found = Self::default();
        for (name, volume) in state.storage.of_class(class) {
            let given = state.storage.is_given(name, emptied);
            if given || !would_do(claim, volume) {
                continue;
            }
            match &volume.claim {
                Some((of, uid)) => {
                    let kept = Some(of) == key && (uid.is_empty() || *uid == claim.uid);
                    if kept && found.kept.is_none() {
                        found.kept = Some(name.clone());
                    }
                }
                None => {
                    let selected =
                        claim.selector.as_ref().is_none_or(|term| selects(term, &volume.labels));
                    if volume.available && selected && volume.modes.covers(claim.modes) {
                        found.add(name, volume);
                    }
                }
            }
        }
        found
    }

    fn add(&mut self, key: &VolumeKey, volume: &Volume) {
        let at = self.all.len() as u32;
        self.all.push(key.clone());
        match volume.nodes.as_deref() {
            Some([term]) => {
                let label = term.iter().find_map(|requirement| match requirement {
                    NodeRequirement::In(label, values) => Some((label, values)),
                    NodeRequirement::NotIn(..)
                    | NodeRequirement::Exists(_)
                    | NodeRequirement::DoesNotExist(_)
                    | NodeRequirement::Gt(..)
                    | NodeRequirement::Lt(..)
                    | NodeRequirement::NameIs(_)
                    | NodeRequirement::NameIsNot(_)
                    | NodeRequirement::Never => None,
                });
                let Some((label, values)) = label else { return self.wide.push(at) };
                for value in values {
                    let by_value = self.by_label.entry(label.clone()).or_default();
                    by_value.entry(value.clone()).or_default().push(at);
                }
            }
            Some(_) | None => self.wide.push(at),
        }
    }

    /// The smallest that can be used from a node with these labels and that is not chosen yet.
    fn best(
        &self,
        state: &State,
        labels: &[(Name, Name)],
        chosen: &[VolumeGrant],
    ) -> Option<&VolumeKey> {
        let confined = self.by_label.iter().filter_map(|(label, by_value)| {
            by_value.get(crate::check::fact::label(labels, label)?)
        });
        let lists = confined.chain([&self.wide]);
        let is_free = |key: &VolumeKey| !chosen.iter().any(|g| g.volume.as_ref() == Some(key));
        let fits = |at: &&u32| {
            let key = &self.all[**at as usize];
            is_free(key) && state.storage.volume(key).is_some_and(|v| reaches(&v.nodes, labels))
        };
        let first = lists.filter_map(|list| list.iter().find(fits)).min()?;
        self.all.get(*first as usize)
    }
}

/// Whether a volume is of the size and kind that a claim asks for.
fn would_do(claim: &VolumeClaim, volume: &Volume) -> bool {
    volume.size_nanos >= claim.size_nanos.unwrap_or(0)
        && volume.block == claim.block
        && volume.attributes == claim.attributes
        && !volume.deleting
}

/// Whether a volume with these terms can be used from a node with these labels.
fn reaches(nodes: &Option<Box<[NodeTerm]>>, labels: &[(Name, Name)]) -> bool {
    nodes.as_ref().is_none_or(|terms| terms.iter().any(|term| on_labels(term, labels)))
}

/// What becomes of the claims that wait, or every reason against the node.
pub(super) fn check(
    state: &State,
    mounts: &Mounts,
    slot: u32,
) -> Result<Vec<VolumeGrant>, Vec<Failing>> {
    let mut failing: Vec<Failing> = Vec::new();
    let bound = bound(state, mounts, slot).err();
    let (gone, elsewhere): (Vec<_>, Vec<_>) =
        bound.into_iter().partition(|failing| failing.reason == Reason::VolumeGone);
    failing.extend(elsewhere);
    let grants = match waiting(state, mounts, slot) {
        Ok(grants) => grants,
        Err(one) => {
            failing.push(one);
            Vec::new()
        }
    };
    failing.extend(gone);
    if failing.is_empty() { Ok(grants) } else { Err(failing) }
}

/// The claims that have their volume: the first whose volume is gone or out of reach.
fn bound(state: &State, mounts: &Mounts, slot: u32) -> Result<(), Failing> {
    let Some(node) = &state.nodes.at(slot).fact else { return Ok(()) };
    let storage = state.storage.node(state.nodes.key(slot));
    for mount in &mounts.claims {
        let Binding::Bound(key) = &mount.state else { continue };
        let of_volume = |reason| {
            failing(reason, NEVER, &mount.name, |facts| facts.volume = Some(key.0.clone()))
        };
        let Some(volume) = state.storage.volume(key) else {
            return Err(of_volume(Reason::VolumeGone));
        };
        let migrated = volume.migrated.as_ref().filter(|migrated| {
            storage.is_some_and(|storage| storage.migrated.contains(&migrated.plugin))
        });
        let nodes = migrated.map_or(&volume.nodes, |migrated| &migrated.nodes);
        if !reaches(nodes, &node.labels) {
            return Err(of_volume(Reason::VolumeElsewhere));
        }
    }
    Ok(())
}

/// The claims that wait for their pod. Those for which a volume is being made are made one; of the
/// others the smallest chooses first, none is asked twice, and what finds no volume is made one.
fn waiting(state: &State, mounts: &Mounts, slot: u32) -> Result<Vec<VolumeGrant>, Failing> {
    let Some(node) = &state.nodes.at(slot).fact else { return Ok(Vec::new()) };
    let key = state.nodes.key(slot);
    let mut to_make: Vec<(&Mount, &Waiting)> = Vec::new();
    let mut to_match: Vec<(&Mount, &Waiting)> = Vec::new();
    for mount in &mounts.claims {
        let Binding::Waits(waiting) = &mount.state else { continue };
        match &waiting.selected {
            None => to_match.push((mount, waiting)),
            Some(selected) if selected == key => to_make.push((mount, waiting)),
            Some(selected) => {
                return Err(failing(Reason::NoVolume, NEVER, &mount.name, |facts| {
                    facts.node = Some(selected.0.clone());
                    facts.lack = Some(VolumeLack::MadeElsewhere);
                }));
            }
        }
    }
    to_match.sort_by_key(|(_, waiting)| waiting.size_nanos);
    let mut grants = Vec::new();
    for (mount, waiting) in to_match {
        let candidates = &waiting.candidates;
        let free = |key: &&VolumeKey| !grants.iter().any(|g| is_granted(g, key));
        let found = match candidates.kept.as_ref().filter(free) {
            Some(kept) => {
                let volume = state.storage.volume(kept);
                volume.filter(|volume| reaches(&volume.nodes, &node.labels)).map(|_| kept)
            }
            None => candidates.best(state, &node.labels, &grants),
        };
        match found {
            Some(volume) => {
                grants.push(VolumeGrant { at: mount.at, volume: Some(volume.clone()) });
            }
            None => to_make.push((mount, waiting)),
        }
    }
    for (mount, waiting) in to_make {
        provides(state, mount, waiting, &node.labels)?;
        grants.push(VolumeGrant { at: mount.at, volume: None });
    }
    grants.sort_unstable();
    Ok(grants)
}

fn is_granted(grant: &VolumeGrant, key: &VolumeKey) -> bool {
    grant.volume.as_ref() == Some(key)
}

/// Whether a volume can be made for a claim on a node with these labels.
fn provides(
    state: &State,
    mount: &Mount,
    waiting: &Waiting,
    labels: &[(Name, Name)],
) -> Result<(), Failing> {
    // One that is kept for the claim and can be used here is another mount's.
    let elsewhere = |kept: &&VolumeKey| {
        state.storage.volume(kept).is_none_or(|volume| !reaches(&volume.nodes, labels))
    };
    let no = |reason, lack| {
        Err(failing(reason, NEVER, &mount.name, |facts| {
            let kept = waiting.candidates.kept.as_ref().filter(elsewhere);
            facts.class = Some(waiting.class.clone());
            facts.volume = kept.map(|kept| kept.0.clone());
            facts.lack = Some(lack);
        }))
    };
    let Some(class) = state.storage.classes.get(&waiting.class).filter(|c| c.provisions) else {
        return no(Reason::NoVolume, VolumeLack::NotMade);
    };
    if !reaches(&class.topologies, labels) {
        return no(Reason::NoVolume, VolumeLack::Topology);
    }
    let Some(room) = class.room.as_ref().filter(|_| waiting.sized) else { return Ok(()) };
    let enough = room.iter().any(|room| has_room(room, waiting, labels));
    if enough { Ok(()) } else { no(Reason::StorageShort, VolumeLack::Room) }
}

/// What volumes of one class come to on a node: what is asked for, and what there is, in bytes.
type Share = (i128, i128);

/// kube-scheduler's VolumeBinding score of a node that takes the claims that wait: the fuller their
/// volumes will be, or what is left where none is there yet, the less it is worth.
pub(super) fn score(state: &State, mounts: &Mounts, slot: u32) -> i64 {
    let Ok(grants) = waiting(state, mounts, slot) else { return 0 };
    let mut there: BTreeMap<&Name, Share> = BTreeMap::new();
    let mut to_make: BTreeMap<&Name, Share> = BTreeMap::new();
    for grant in &grants {
        let of = |mount: &&Mount| mount.at == grant.at;
        let Some(Binding::Waits(waiting)) = mounts.claims.iter().find(of).map(|m| &m.state) else {
            continue;
        };
        let Some(class) = state.storage.classes.get(&waiting.class).filter(|c| c.scored) else {
            continue;
        };
        let asked = bytes(waiting.size_nanos);
        match grant.volume.as_ref().and_then(|key| state.storage.volume(key)) {
            Some(volume) => {
                let share = there.entry(&waiting.class).or_default();
                *share = (share.0 + asked, share.1 + bytes(volume.size_nanos));
            }
            None => {
                let Some(room) = room(state, class, waiting, slot) else { continue };
                let share = to_make.entry(&waiting.class).or_default();
                *share = (share.0 + asked, i128::from(room.capacity_bytes));
            }
        }
    }
    let shares = if there.is_empty() { to_make } else { there };
    let free = |(asked, all): &Share| match *all {
        0 => 0,
        all if *asked > all => 0,
        all => 100 - (asked * 100 / all) as i64,
    };
    let sum: i64 = shares.values().map(free).sum();
    match shares.len() {
        0 => 0,
        classes => (sum as f64 / classes as f64).round() as i64,
    }
}

/// The first room that is enough for a claim on a node.
fn room<'a>(
    state: &State,
    class: &'a StorageClass,
    waiting: &Waiting,
    slot: u32,
) -> Option<&'a StorageRoom> {
    let labels = &state.nodes.at(slot).fact.as_ref()?.labels;
    let all = class.room.as_ref().filter(|_| waiting.sized)?;
    all.iter().find(|room| has_room(room, waiting, labels))
}

fn has_room(room: &StorageRoom, waiting: &Waiting, labels: &[(Name, Name)]) -> bool {
    i128::from(room.bytes) >= bytes(waiting.size_nanos) && selects(&room.nodes, labels)
}

/// Whole bytes, rounded up.
fn bytes(nanos: i128) -> i128 {
    nanos.saturating_add(NANOS - 1) / NANOS
}

/// Billionths in a unit.
const NANOS: i128 = 1_000_000_000;
