//! Volumes by chance: a few classes, volumes, claims in every state, and pods that mount them.

use super::chance::Chance;
use super::make::scoped;
use super::world::World;
use crate::*;

const GI: i128 = 1_000_000_000;
const DRIVER: &str = "disk.example.com";
const PLUGIN: &str = "kubernetes.io/gce-pd";
const ZONE: &str = "topology.kubernetes.io/zone";
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";

fn name(text: &str) -> Name {
    Name::new(text)
}

fn claim_key(text: &str) -> VolumeClaimKey {
    VolumeClaimKey(scoped(text))
}

fn volume_key(text: &str) -> VolumeKey {
    VolumeKey(name(text))
}

fn in_zone(c: &mut Chance) -> NodeTerm {
    let label = c.word(&["zone", "zone", ZONE]);
    [NodeRequirement::In(name(label), [name(c.word(&["a", "b"]))].into())].into()
}

/// Fills a world with volumes, a third of the time.
pub(super) fn storage(c: &mut Chance, world: &mut World) {
    if !c.percent(27) {
        return;
    }
    let facts = &mut world.storage;
    for class in ["fast", "now", "static"] {
        if c.percent(96) {
            facts.classes.insert(name(class), storage_class(c, class));
        }
    }
    facts.drivers.insert(name(DRIVER), StorageDriver { must_be_there: c.percent(15) });
    for node in world.nodes.keys() {
        if c.percent(75) {
            facts.nodes.insert(node.clone(), node_storage(c));
        }
    }
    for node in world.nodes.values_mut() {
        // As clouds label their nodes, some of them.
        if c.percent(75) {
            let mut labels = node.labels.to_vec();
            labels.push((name(ZONE), name(c.word(&["a", "b"]))));
            labels.sort();
            node.labels = labels.into();
        }
    }
    for at in 0..1 + c.below(3) {
        facts.volumes.insert(volume_key(&format!("v{at}")), volume(c));
    }
    for at in 0..2 + c.below(3) {
        facts.claims.insert(claim_key(&format!("d{at}")), claim(c));
    }
}

fn storage_class(c: &mut Chance, class: &str) -> StorageClass {
    let makes = class != "static";
    let room = makes && c.percent(30);
    StorageClass {
        waits: class != "now",
        default: class == "now" && c.percent(50),
        provisions: makes,
        driver: Some((name(DRIVER), c.percent(20))),
        scored: true,
        topologies: (makes && c.percent(25)).then(|| [in_zone(c)].into()),
        room: room.then(|| {
            let nodes = if c.percent(50) { NodeTerm::default() } else { in_zone(c) };
            let (bytes, capacity_bytes) = (c.between(0, 3), c.between(0, 6));
            [StorageRoom { nodes, bytes, capacity_bytes }].into()
        }),
    }
}

fn node_storage(c: &mut Chance) -> NodeStorage {
    let limit = c.percent(50).then(|| c.between(0, 2));
    let csi = c.percent(90);
    NodeStorage {
        csi,
        drivers: if csi && c.percent(75) { [(name(DRIVER), limit)].into() } else { [].into() },
        migrated: if c.percent(50) { [name(PLUGIN)].into() } else { [].into() },
        attached: if c.percent(20) {
            [(name(DRIVER), volume_key(c.word(&["v0", "v1"])))].into()
        } else {
            [].into()
        },
    }
}

fn volume(c: &mut Chance) -> Volume {
    let in_tree = c.percent(20);
    let zone = c.percent(75);
    let key = name(c.word(&[ZONE, OLD_ZONE]));
    let kept = c.percent(15);
    Volume {
        class: name(c.word(&["static", "static", "fast"])),
        size_nanos: i128::from(c.between(1, 4)) * GI,
        block: c.percent(5),
        attributes: name(if c.percent(5) { "gold" } else { "" }),
        modes: AccessModes::ONCE.and(if c.percent(80) {
            AccessModes::ONCE_POD
        } else {
            AccessModes::READ_MANY
        }),
        labels: if c.percent(50) { [(name("disk"), name("nvme"))].into() } else { [].into() },
        available: c.percent(85),
        deleting: c.percent(4),
        claim: kept.then(|| {
            let uid = if c.percent(50) { "" } else { "u" };
            (claim_key(c.word(&["d0", "d1", "other"])), name(uid))
        }),
        nodes: c.percent(50).then(|| [in_zone(c)].into()),
        migrated: in_tree.then(|| {
            let nodes = c.percent(70).then(|| [in_zone(c)].into());
            Box::new(Migrated { plugin: name(PLUGIN), nodes })
        }),
        zones: if zone { [(key, [name(c.word(&["a", "b"]))].into())].into() } else { [].into() },
        attach: c.percent(70).then(|| {
            let handle = name(c.word(&["h0", "h1", "h2"]));
            Attach { driver: name(DRIVER), handle, in_tree }
        }),
    }
}

fn claim(c: &mut Chance) -> VolumeClaim {
    let bound = c.percent(35);
    let half = c.percent(3);
    let class = match c.below(28) {
        0 => Some(name("")),
        1 => None,
        2 => Some(name("now")),
        3..=11 => Some(name("fast")),
        _ => Some(name("static")),
    };
    let uid = name(c.word(&["", "u"]));
    VolumeClaim {
        to_come: uid.is_empty() && !bound,
        uid,
        owner: c.percent(85).then(|| (name("pod"), name("p"))),
        size_nanos: c.percent(85).then(|| i128::from(c.between(1, 4)) * GI),
        block: c.percent(5),
        attributes: name(if c.percent(4) { "gold" } else { "" }),
        modes: if c.percent(45) { AccessModes::ONCE_POD } else { AccessModes::ONCE },
        selector: c.percent(15).then(|| {
            let one = NodeRequirement::In(name("disk"), [name("nvme")].into());
            if c.percent(80) { [one].into() } else { NodeTerm::default() }
        }),
        class,
        volume: (bound || half).then(|| volume_key(c.word(&["v0", "v0", "v1", "v2"]))),
        bound,
        lost: bound && c.percent(5),
        deleting: c.percent(2),
        selected_node: c.percent(8).then(|| NodeKey(name(c.word(&["n0", "n1"])))),
    }
}

/// What a pod on a node mounts.
pub(super) fn held(c: &mut Chance, world: &World) -> Box<[VolumeUse]> {
    if world.storage == Default::default() || c.percent(30) {
        return Box::default();
    }
    if c.percent(60) {
        return [VolumeUse::Disk { disk: Some(disk(c)), attach: None }].into();
    }
    [one(c, world)].into()
}

/// What a pod mounts.
pub(super) fn volumes(c: &mut Chance, world: &World) -> Box<[VolumeUse]> {
    if world.storage == Default::default() || c.percent(65) {
        return Box::default();
    }
    let mut all: Vec<VolumeUse> = Vec::new();
    for _ in 0..1 + c.below(2) {
        let one = one(c, world);
        if !all.contains(&one)
            && !all.iter().any(|v| v.claim().is_some() && v.claim() == one.claim())
        {
            all.push(one);
        }
    }
    all.into()
}

fn one(c: &mut Chance, world: &World) -> VolumeUse {
    let known: Vec<VolumeClaimKey> = world.storage.claims.keys().cloned().collect();
    let key = if c.percent(2) { claim_key("missing") } else { c.pick(&known).clone() };
    match c.below(20) {
        0 => VolumeUse::Ephemeral(Ephemeral {
            claim: Some(claim_key("missing")),
            pod: (name("pod"), name("p")),
            planned: c.percent(75).then(|| Shared::new(claim(c))).map(unbound),
        }),
        1..=3 => VolumeUse::Ephemeral(Ephemeral {
            claim: Some(key),
            pod: (name("pod"), name(c.word(&["p", "p", "p", "p", "p", "q"]))),
            planned: None,
        }),
        4 | 5 => VolumeUse::Ephemeral(Ephemeral {
            claim: None,
            pod: Default::default(),
            planned: Some(unbound(Shared::new(claim(c)))),
        }),
        6..=10 => VolumeUse::Disk {
            disk: Some(disk(c)),
            attach: c.percent(50).then(|| {
                let handle = name(c.word(&["h0", "h1", "h2"]));
                Attach { driver: name(DRIVER), handle, in_tree: c.percent(70) }
            }),
        },
        _ => VolumeUse::Claim(key),
    }
}

/// What a claim to come asks is no more than that.
fn unbound(claim: Shared<VolumeClaim>) -> Shared<VolumeClaim> {
    Shared::new(VolumeClaim {
        uid: Name::default(),
        owner: None,
        volume: None,
        bound: false,
        lost: false,
        deleting: false,
        selected_node: None,
        ..(*claim).clone()
    })
}

fn disk(c: &mut Chance) -> Disk {
    let reads = c.percent(40);
    match c.below(7) {
        0..=3 => Disk::Gce(name("data"), reads),
        4 => Disk::Ebs(name("vol-1")),
        5 => Disk::Iscsi(name("iqn.2026-01.com.example:data"), reads),
        _ => {
            let monitors =
                if c.percent(50) { [name("m0"), name("m1")] } else { [name("m1"), name("m2")] };
            Disk::Rbd(monitors.into(), name("rbd"), name("image"), reads)
        }
    }
}
