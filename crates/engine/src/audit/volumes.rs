//! Volumes by plain rules, in kube-scheduler's order of filters: from the reference, over lists of
//! facts, and without a word of the checks that the search uses.

use std::collections::{BTreeMap, BTreeSet};

use super::pods::Seated;
use super::rules;
use crate::facts::{Node, NodeTerm};
use crate::name::{Name, NodeKey, VolumeClaimKey, VolumeKey};
use crate::reason::Reason;
use crate::state::StorageFacts;
use crate::storage::{
    AccessModes, Disk, NodeStorage, StorageClass, Volume, VolumeClaim, VolumeGrant, VolumeUse,
};

/// A pod that is on a node: what it mounts there.
pub(crate) type Mounted<'a> = (&'a NodeKey, &'a [VolumeUse]);

/// What these pods mount.
pub(crate) fn mounted<'a>(pods: impl IntoIterator<Item = &'a Seated>) -> Vec<Mounted<'a>> {
    pods.into_iter().map(|pod| (&pod.node, &*pod.request.volumes)).collect()
}

/// The claim behind something that a pod mounts, where there is one.
fn claim_of<'a>(facts: &'a StorageFacts, mounted: &'a VolumeUse) -> Option<&'a VolumeClaim> {
    match mounted {
        VolumeUse::Disk { .. } => None,
        VolumeUse::Claim(key) => facts.claims.get(key),
        VolumeUse::Ephemeral(made) => {
            let found = made.claim.as_ref().and_then(|key| facts.claims.get(key));
            found.or(made.planned.as_deref())
        }
    }
}

fn class_name(facts: &StorageFacts, claim: &VolumeClaim) -> Name {
    let default = || facts.classes.iter().find(|(_, c)| c.default).map(|(name, _)| name.clone());
    claim.class.clone().or_else(default).unwrap_or_default()
}

fn waits(facts: &StorageFacts, claim: &VolumeClaim) -> bool {
    let class = facts.classes.get(&class_name(facts, claim));
    let to_come = |class: &StorageClass| claim.to_come && class.provisions;
    claim.volume.is_none() && class.is_some_and(|class| class.waits || to_come(class))
}

fn is_bound(claim: &VolumeClaim) -> bool {
    claim.volume.is_some() && claim.bound
}

/// Before any node: VolumeRestrictions, VolumeBinding, VolumeZone.
pub(crate) fn before_nodes(facts: &StorageFacts, volumes: &[VolumeUse]) -> Result<(), Reason> {
    for mounted in volumes {
        if let VolumeUse::Claim(key) = mounted
            && !facts.claims.contains_key(key)
        {
            return Err(Reason::VolumeClaimMissing);
        }
    }
    for mounted in volumes {
        if matches!(mounted, VolumeUse::Disk { .. }) {
            continue;
        }
        let claim = claim_of(facts, mounted).ok_or(Reason::VolumeClaimNotMade)?;
        if claim.lost {
            return Err(Reason::VolumeClaimLost);
        }
        if claim.deleting {
            return Err(Reason::VolumeClaimDeleting);
        }
        let VolumeUse::Ephemeral(made) = mounted else { continue };
        let there = made.claim.as_ref().is_some_and(|key| facts.claims.contains_key(key));
        let (pod, uid) = &made.pod;
        let mine = |(name, of): &(Name, Name)| {
            name == pod && (of == uid || of.is_empty() || uid.is_empty())
        };
        if there && !claim.owner.as_ref().is_some_and(mine) {
            return Err(Reason::VolumeClaimOfOther);
        }
    }
    for claim in volumes.iter().filter_map(|mounted| claim_of(facts, mounted)) {
        if !is_bound(claim) && !waits(facts, claim) {
            return Err(Reason::VolumeClaimUnbound);
        }
    }
    for mounted in volumes {
        if let (VolumeUse::Claim(_), Some(claim)) = (mounted, claim_of(facts, mounted))
            && claim.volume.as_ref().is_some_and(|volume| !facts.volumes.contains_key(volume))
        {
            return Err(Reason::VolumeMissing);
        }
    }
    Ok(())
}

/// On a node: what becomes of the claims that wait, or the first check that fails. `others` are the
/// pods on nodes that exist.
pub(crate) fn on_node(
    facts: &StorageFacts,
    others: &[Mounted<'_>],
    promised: &[Mounted<'_>],
    volumes: &[VolumeUse],
    key: &NodeKey,
    node: &Node,
) -> Result<Vec<VolumeGrant>, Reason> {
    let on_nodes = others;
    let others = &[others, promised].concat();
    let here = || others.iter().filter(|(at, _)| *at == key).flat_map(|(_, all)| *all);
    for one in volumes {
        if here().any(|other| same_disk(one, other)) {
            return Err(Reason::DiskInUse);
        }
    }
    for mounted in volumes {
        let VolumeUse::Claim(_) = mounted else { continue };
        let alone =
            claim_of(facts, mounted).is_some_and(|claim| claim.modes.covers(AccessModes::ONCE_POD));
        // kube-scheduler looks who uses it before it thinks of pods with a promised node.
        if alone && on_nodes.iter().any(|(_, all)| all.contains(mounted)) {
            return Err(Reason::VolumeClaimInUse);
        }
    }
    limits(facts, others, volumes, key)?;
    let grants = binding(facts, volumes, key, node)?;
    for mounted in volumes {
        let VolumeUse::Claim(_) = mounted else { continue };
        let volume = claim_of(facts, mounted).and_then(|claim| claim.volume.as_ref());
        if volume.and_then(|v| facts.volumes.get(v)).is_some_and(|v| !in_zone(v, node)) {
            return Err(Reason::VolumeZone);
        }
    }
    Ok(grants)
}

fn same_disk(one: &VolumeUse, other: &VolumeUse) -> bool {
    let (VolumeUse::Disk { disk: Some(one), .. }, VolumeUse::Disk { disk: Some(other), .. }) =
        (one, other)
    else {
        return false;
    };
    match (one, other) {
        (Disk::Gce(a, reads), Disk::Gce(b, also)) => a == b && !(*reads && *also),
        (Disk::Ebs(a), Disk::Ebs(b)) => a == b,
        (Disk::Iscsi(a, reads), Disk::Iscsi(b, also)) => a == b && !(*reads && *also),
        (Disk::Rbd(at, pool, a, reads), Disk::Rbd(by, of, b, also)) => {
            let common = at.iter().any(|monitor| by.contains(monitor));
            common && pool == of && a == b && !(*reads && *also)
        }
        (Disk::Gce(..) | Disk::Ebs(..) | Disk::Iscsi(..) | Disk::Rbd(..), _) => false,
    }
}

/// What each volume of a pod counts as: driver, and what tells it from others.
fn counted(
    facts: &StorageFacts,
    volumes: &[VolumeUse],
    csi: bool,
    pod: usize,
) -> BTreeSet<(Name, String)> {
    let mut all = BTreeSet::new();
    for (at, mounted) in volumes.iter().enumerate() {
        let attach = match mounted {
            VolumeUse::Disk { attach, .. } => attach.clone(),
            VolumeUse::Claim(_) | VolumeUse::Ephemeral(_) => {
                let Some(claim) = claim_of(facts, mounted) else { continue };
                let volume = claim.volume.as_ref().and_then(|v| facts.volumes.get(v));
                if volume.is_none() {
                    let class = facts.classes.get(&class_name(facts, claim));
                    let Some((driver, in_tree)) = class.and_then(|c| c.driver.clone()) else {
                        continue;
                    };
                    let own =
                        mounted.claim().map_or(format!("new {pod} {at}"), |k| k.0.to_string());
                    if csi || !in_tree {
                        all.insert((driver, format!("of {own}")));
                    }
                    continue;
                }
                volume.and_then(|v| v.attach.clone())
            }
        };
        let counts = attach.filter(|attach| csi || !attach.in_tree);
        all.extend(counts.map(|attach| (attach.driver, format!("is {}", attach.handle))));
    }
    all
}

fn limits(
    facts: &StorageFacts,
    others: &[Mounted<'_>],
    volumes: &[VolumeUse],
    key: &NodeKey,
) -> Result<(), Reason> {
    let none = NodeStorage::default();
    let storage = facts.nodes.get(key).unwrap_or(&none);
    let mut new = counted(facts, volumes, storage.csi, 0);
    for (driver, _) in &new {
        let must = facts.drivers.get(driver).is_some_and(|driver| driver.must_be_there);
        if must && !storage.drivers.iter().any(|(name, _)| name == driver) {
            return Err(Reason::DriverMissing);
        }
    }
    let mut used = BTreeSet::new();
    for (pod, (_, all)) in others.iter().enumerate().filter(|(_, (at, _))| *at == key) {
        used.extend(counted(facts, all, storage.csi, pod + 1));
    }
    new.retain(|volume| !used.contains(volume));
    for (driver, volume) in &storage.attached {
        let attach = facts.volumes.get(volume).and_then(|v| v.attach.as_ref());
        if let Some(attach) = attach.filter(|attach| !attach.in_tree) {
            used.insert((driver.clone(), format!("is {}", attach.handle)));
        }
    }
    for (driver, limit) in &storage.drivers {
        let of = |all: &BTreeSet<(Name, String)>| all.iter().filter(|v| v.0 == *driver).count();
        let (asked, there) = (of(&new), of(&used));
        if limit.is_some_and(|limit| asked > 0 && (asked + there) as i64 > limit) {
            return Err(Reason::VolumeLimit);
        }
    }
    Ok(())
}

fn on_labels(terms: Option<&[NodeTerm]>, node: &Node) -> bool {
    terms.is_none_or(|terms| {
        // What a term says of the node's name is not looked at.
        let named = |term: &NodeTerm| -> NodeTerm {
            use crate::facts::NodeRequirement as R;
            let of_labels = |r: &&R| !matches!(r, R::NameIs(_) | R::NameIsNot(_));
            term.iter().filter(of_labels).cloned().collect()
        };
        let nobody = NodeKey(Name::default());
        terms.iter().any(|term| {
            let labels = named(term);
            !term.is_empty() && (labels.is_empty() || rules::matches(&labels, &nobody, node))
        })
    })
}

/// VolumeBinding: bound volumes first, in the pod's order; then the claims that wait.
fn binding(
    facts: &StorageFacts,
    volumes: &[VolumeUse],
    key: &NodeKey,
    node: &Node,
) -> Result<Vec<VolumeGrant>, Reason> {
    let migrated: &[Name] = facts.nodes.get(key).map_or(&[], |storage| &storage.migrated);
    let mut gone = false;
    let claims: Vec<(usize, &VolumeUse, &VolumeClaim)> = volumes
        .iter()
        .enumerate()
        .filter_map(|(at, mounted)| Some((at, mounted, claim_of(facts, mounted)?)))
        .collect();
    for (_, _, claim) in claims.iter().filter(|(_, _, claim)| is_bound(claim)) {
        let Some(volume) = claim.volume.as_ref().and_then(|v| facts.volumes.get(v)) else {
            gone = true;
            break;
        };
        let stood_in = volume.migrated.as_ref().filter(|m| migrated.contains(&m.plugin));
        let terms = stood_in.map_or(volume.nodes.as_deref(), |m| m.nodes.as_deref());
        if !on_labels(terms, node) {
            return Err(Reason::VolumeElsewhere);
        }
    }
    let waiting: Vec<_> = claims.into_iter().filter(|(_, _, claim)| !is_bound(claim)).collect();
    if waiting.iter().any(|(_, _, c)| c.selected_node.as_ref().is_some_and(|n| n != key)) {
        return Err(Reason::NoVolume);
    }
    let (mut to_make, mut to_match): (Vec<_>, Vec<_>) =
        waiting.into_iter().partition(|(_, _, claim)| claim.selected_node.is_some());
    to_match.sort_by_key(|(_, _, claim)| claim.size_nanos.unwrap_or(0));
    let mut grants: Vec<VolumeGrant> = Vec::new();
    for (at, mounted, claim) in to_match {
        match chosen(facts, mounted.claim(), claim, node, &grants) {
            Some(volume) => grants.push(VolumeGrant { at: at as u16, volume: Some(volume) }),
            None => to_make.push((at, mounted, claim)),
        }
    }
    for (at, _, claim) in to_make {
        made(facts, claim, node)?;
        grants.push(VolumeGrant { at: at as u16, volume: None });
    }
    if gone {
        return Err(Reason::VolumeGone);
    }
    grants.sort();
    Ok(grants)
}

/// The volume that a claim takes on the node: one that is kept for it, else the smallest that fits.
fn chosen(
    facts: &StorageFacts,
    key: Option<&VolumeClaimKey>,
    claim: &VolumeClaim,
    node: &Node,
    grants: &[VolumeGrant],
) -> Option<VolumeKey> {
    let class = class_name(facts, claim);
    let mut by_size: BTreeMap<(i128, &VolumeKey), &Volume> = BTreeMap::new();
    for (name, volume) in &facts.volumes {
        let taken = grants.iter().any(|grant| grant.volume.as_ref() == Some(name));
        if volume.class == class
            && !taken
            && volume.size_nanos >= claim.size_nanos.unwrap_or(0)
            && volume.block == claim.block
            && volume.attributes == claim.attributes
            && !volume.deleting
        {
            by_size.insert((volume.size_nanos, name), volume);
        }
    }
    let kept = by_size.iter().find(|(_, volume)| {
        let of = volume.claim.as_ref();
        of.is_some_and(|(k, uid)| Some(k) == key && (uid.is_empty() || *uid == claim.uid))
    });
    if let Some(((_, name), volume)) = kept {
        return on_labels(volume.nodes.as_deref(), node).then(|| (*name).clone());
    }
    let selected = |volume: &Volume| {
        let labelled = Node { labels: volume.labels.clone(), ..Node::default() };
        let nobody = NodeKey(Name::default());
        let term = claim.selector.as_ref();
        term.is_none_or(|term| term.is_empty() || rules::matches(term, &nobody, &labelled))
    };
    let fits = by_size.iter().find(|(_, volume)| {
        volume.claim.is_none()
            && volume.available
            && selected(volume)
            && volume.modes.covers(claim.modes)
            && on_labels(volume.nodes.as_deref(), node)
    });
    fits.map(|((_, name), _)| (*name).clone())
}

/// Whether a volume can be made for the claim on the node.
fn made(facts: &StorageFacts, claim: &VolumeClaim, node: &Node) -> Result<(), Reason> {
    let class = facts.classes.get(&class_name(facts, claim)).filter(|class| class.provisions);
    let class = class.ok_or(Reason::NoVolume)?;
    if !on_labels(class.topologies.as_deref(), node) {
        return Err(Reason::NoVolume);
    }
    let (Some(room), Some(size)) = (&class.room, claim.size_nanos) else { return Ok(()) };
    let bytes = (size + 999_999_999) / 1_000_000_000;
    let nobody = NodeKey(Name::default());
    let enough = room.iter().any(|room| {
        let here = room.nodes.is_empty() || rules::matches(&room.nodes, &nobody, node);
        here && i128::from(room.bytes) >= bytes
    });
    if enough { Ok(()) } else { Err(Reason::StorageShort) }
}

/// VolumeZone: every zone label of the volume has the node's value in it.
fn in_zone(volume: &Volume, node: &Node) -> bool {
    let value = |key: &str| node.labels.iter().find(|(k, _)| **k == *key).map(|(_, v)| v);
    let new = |key: &str| key.replace("failure-domain.beta.", "topology.");
    let zone = "topology.kubernetes.io/zone";
    let region = "topology.kubernetes.io/region";
    let old =
        ["failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"];
    let somewhere = [zone, region, old[0], old[1]].into_iter().any(|key| value(key).is_some());
    !somewhere
        || volume.zones.iter().all(|(key, values)| {
            let own = value(key).or_else(|| value(&new(key)));
            own.is_some_and(|own| values.contains(own))
        })
}
