//! What is there and has no effect: tolerations that nothing needs, limits in time that nothing
//! keeps, wishes for nearness of which nothing is known.

use std::collections::BTreeSet;

use phalanx_objects::core::TaintEffect;
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::topology::{
    ALIGN_ANNOTATION, Align, AlignLevel, LinkClass, NodeTopology, Strength,
};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::asked::asks;
use super::bench::Bench;
use super::near::{nearest, quoted};
use super::{Lint, Rule};
use crate::finding::{Severity, Source};
use crate::world::World;

/// How many names a finding lists.
const NAMES_SHOWN: usize = 4;

pub(super) fn find(bench: &Bench<'_>, found: &mut Vec<Lint>) {
    tolerations(bench, found);
    let levels = known_levels(bench);
    // Without devices there is nothing whose links could be known.
    if !bench.alike.is_empty() {
        wishes(bench, &levels, found);
    }
}

fn tolerations(bench: &Bench<'_>, found: &mut Vec<Lint>) {
    let keys = taint_keys(bench.world);
    for holder in &bench.holders {
        for ask in asks(holder.devices, holder.at) {
            for (index, toleration) in ask.tolerations.iter().enumerate() {
                let path = format!("{}.tolerations[{index}]", ask.path);
                let key = toleration.key.as_str();
                if !key.is_empty() && !keys.is_empty() && !keys.contains(key) {
                    let near = nearest(key, keys.iter().map(String::as_str));
                    let message = format!(
                        "No device of the input has a taint with the key {key}, so that the toleration \
                         tolerates nothing now. Device taints have, nearest first: {}.",
                        quoted(&near, NAMES_SHOWN)
                    );
                    let path = format!("{path}.key");
                    found.push(Lint::new(
                        Rule::TolerationUnmatched,
                        holder.place(),
                        &path,
                        message,
                    ));
                }
                let lasting =
                    matches!(toleration.effect, TaintEffect::NoSchedule | TaintEffect::None);
                if let Some(seconds) = toleration.toleration_seconds.filter(|_| lasting) {
                    let message = format!(
                        "The toleration has tolerationSeconds {seconds} for the effect {}: only \
                         NoExecute evicts, so that the time has no effect. Leave it out, or tolerate \
                         NoExecute.",
                        toleration.effect
                    );
                    let path = format!("{path}.tolerationSeconds");
                    let rule = Rule::TolerationSecondsUnused;
                    found.push(Lint::new(rule, holder.place(), &path, message));
                }
            }
        }
    }
}

/// The keys of all taints that devices have, or may get by a rule.
fn taint_keys(world: &World) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let Some(objects) = world.objects() else { return keys };
    for object in objects.of_kind(Kind::ResourceSlice) {
        let Object::ResourceSlice(slice) = object else { continue };
        let taints = slice.spec.devices.iter().flat_map(|device| &device.taints);
        keys.extend(taints.map(|taint| taint.key.clone()));
    }
    for object in objects.of_kind(Kind::DeviceTaintRule) {
        let Object::DeviceTaintRule(rule) = object else { continue };
        keys.insert(rule.spec.taint.key.clone());
    }
    keys
}

fn wishes(bench: &Bench<'_>, levels: &BTreeSet<&str>, found: &mut Vec<Lint>) {
    let world = bench.world;
    for waiting in &bench.waiting {
        for (metadata, at) in &waiting.metadata {
            wish(metadata, at, (&waiting.reference, waiting.source), levels, found);
        }
    }
    let Some(objects) = world.objects() else { return };
    for holder in &bench.holders {
        match objects.get(&holder.reference) {
            Some(Object::ResourceClaimTemplate(template)) => {
                wish(&template.metadata, "metadata", holder.place(), levels, found);
                wish(&template.spec.metadata, "spec.metadata", holder.place(), levels, found);
            }
            Some(Object::ResourceClaim(claim)) => {
                wish(&claim.metadata, "metadata", holder.place(), levels, found);
            }
            Some(_) | None => {}
        }
    }
}

fn wish(
    metadata: &ObjectMeta,
    at: &str,
    place: (&ObjectRef, &Source),
    levels: &BTreeSet<&str>,
    found: &mut Vec<Lint>,
) {
    let Some(text) = metadata.annotations.get(ALIGN_ANNOTATION) else { return };
    // One that can't be read is told where it is read.
    let Ok(align): Result<Align, _> = phalanx_objects::topology::AlignRule::parse(text) else {
        return;
    };
    for rule in align.iter().filter(|rule| !levels.contains(rule.level.as_str())) {
        let (then, severity) = match rule.strength {
            Strength::Required => ("no node can hold the devices", Severity::Error),
            Strength::Preferred => ("the wish has no effect", Severity::Warning),
        };
        let message = format!(
            "{ALIGN_ANNOTATION} wishes for one {} and nothing is known of any on any node, so that \
             {then}. {}{}",
            level_words(rule.level),
            source_words(rule.level),
            instead(rule.level, levels, rule.strength),
        );
        let path = format!("{at}.annotations[{ALIGN_ANNOTATION:?}]");
        found.push(Lint::new(Rule::AlignLevelUnknown, place, &path, message).graded(severity));
    }
}

/// The known level that comes nearest: the next wider one, else the widest.
fn instead(level: AlignLevel, known: &BTreeSet<&str>, strength: Strength) -> String {
    let is_known = |other: &&AlignLevel| known.contains(other.as_str());
    // Rails are about networks: no other level stands for one.
    let places = || AlignLevel::ALL.iter().filter(|other| **other != AlignLevel::Rail);
    let wider = places().skip_while(|other| **other != level).find(is_known);
    let near = wider.or_else(|| places().rfind(is_known)).filter(|_| level != AlignLevel::Rail);
    near.map_or_else(String::new, |near| {
        format!(
            " What is known is the {} of devices: `{ALIGN_ANNOTATION}: {}={}` keeps them {}.",
            level_words(*near),
            near.as_str(),
            strength.as_str(),
            keeps(*near),
        )
    })
}

/// What a wish for a level means.
fn keeps(level: AlignLevel) -> &'static str {
    match level {
        AlignLevel::Island => "in one island",
        AlignLevel::Switch => "under one PCIe switch",
        AlignLevel::Root => "under one PCIe root",
        AlignLevel::Numa => "on one NUMA node",
        AlignLevel::Rail => "on one rail",
    }
}

fn level_words(level: AlignLevel) -> &'static str {
    match level {
        AlignLevel::Island => "island",
        AlignLevel::Switch => "PCIe switch",
        AlignLevel::Root => "PCIe root",
        AlignLevel::Numa => "NUMA node",
        AlignLevel::Rail => "rail",
    }
}

/// Where the knowledge comes from.
fn source_words(level: AlignLevel) -> &'static str {
    match level {
        AlignLevel::Island => {
            "Give the links or islands of the nodes as NodeTopology objects; no driver publishes them."
        }
        AlignLevel::Switch => "Give the switches of the nodes as NodeTopology objects.",
        AlignLevel::Root => {
            "Drivers publish it as resource.kubernetes.io/pcieRoot; else give pcieRoot in NodeTopology \
             objects."
        }
        AlignLevel::Numa => {
            "Drivers publish it as resource.kubernetes.io/numaNode; else give numaNode in NodeTopology \
             objects."
        }
        AlignLevel::Rail => "Give the rail of NICs and GPUs in NodeTopology objects.",
    }
}

/// The levels of which anything is known on any node.
fn known_levels(bench: &Bench<'_>) -> BTreeSet<&'static str> {
    let mut levels = BTreeSet::new();
    let objects = bench.world.objects().into_iter();
    for object in objects.flat_map(|objects| objects.of_kind(Kind::NodeTopology)) {
        if let Object::NodeTopology(topology) = object {
            levels.extend(
                AlignLevel::ALL.iter().filter(|l| tells(topology, **l)).map(|l| l.as_str()),
            );
        }
    }
    let ends = |wanted: &str| {
        let mut names = bench.alike.iter().flat_map(|alike| alike.published.keys());
        names.any(|name| name.rsplit('/').next() == Some(wanted))
    };
    for (level, attribute) in [(AlignLevel::Root, "pcieRoot"), (AlignLevel::Numa, "numaNode")] {
        if ends(attribute) {
            levels.insert(level.as_str());
        }
    }
    levels
}

fn tells(topology: &NodeTopology, level: AlignLevel) -> bool {
    let spec = &topology.spec;
    let link = |wanted: &[LinkClass]| spec.links.iter().any(|link| wanted.contains(&link.class()));
    match level {
        AlignLevel::Island => {
            !spec.islands.is_empty() || link(&[LinkClass::NvSwitch, LinkClass::Nvl])
        }
        AlignLevel::Switch => {
            let device = spec.devices.iter().any(|device| device.pcie_switch.is_some());
            device || !spec.switches.is_empty() || link(&[LinkClass::Pix])
        }
        AlignLevel::Root => spec.devices.iter().any(|device| device.pcie_root.is_some()),
        AlignLevel::Numa => spec.devices.iter().any(|device| device.numa_node.is_some()),
        AlignLevel::Rail => spec.devices.iter().any(|device| device.rail.is_some()),
    }
}
