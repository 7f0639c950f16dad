//! Cures that are about nodes: healing them and their devices, and having more of them.

use std::collections::BTreeSet;

use phalanx_engine::NodeReport;
use phalanx_objects::core::Node;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::Lab;
use super::ends::{PAIRS_MAX, Thorough, smallest};
use crate::edit::{Edit, Ill, healthy};
use crate::lower::unhealthy;
use crate::world::Objects;

/// The prefix of taints that stand for a node's health.
pub(super) const HEALTH: &str = "node.kubernetes.io/";

/// Most copies of a node that are tried, but for a larger group.
const COPIES_MAX: u32 = 64;

/// Most ill nodes that are healed together for a gang.
const GANG_NODES_MAX: usize = 64;

/// Most that are tried for a larger group.
const GROUP_COPIES_MAX: u32 = 1024;

/// For each of the nearest ill nodes, it and its tainted devices healed, as few of them as do; where
/// no node alone is enough, some of all of these.
pub(super) fn heal(lab: &mut Lab<'_>, nearest: &[&NodeReport]) -> Vec<Edit> {
    if lab.is_refused() {
        return Vec::new();
    }
    let all = ills(lab.objects);
    let of_node = |node: &&NodeReport| {
        let name = node.node.0.as_str();
        let own = |ill: &&Ill| match ill {
            Ill::Node(of) => of == name,
            Ill::Device { node: of, .. } => of == name,
        };
        all.iter().filter(own).cloned().collect::<Vec<Ill>>()
    };
    let mut sets: Vec<Vec<Ill>> = nearest.iter().map(of_node).filter(|s| !s.is_empty()).collect();
    // Devices of pools that are no node's are called by their pools.
    let placed: BTreeSet<&Ill> = sets.iter().flatten().collect();
    let shared: Vec<Ill> = all.iter().filter(|ill| !placed.contains(ill)).cloned().collect();
    if !shared.is_empty() {
        sets.push(shared);
    }
    let most = if lab.subject.gang { GANG_NODES_MAX } else { super::NODES_MAX };
    let some: Vec<Ill> = sets.iter().take(most).flatten().cloned().collect();
    let make = |ills: &[Ill]| {
        let mut ills = ills.to_vec();
        ills.sort();
        Edit::Heal { ills }
    };
    let thorough = if all.len() <= PAIRS_MAX { Thorough::Yes } else { Thorough::No };
    let mut edits = Vec::new();
    let several = sets.len() > 1;
    lab.few(sets, |lab, ills| {
        let found = smallest(lab, ills, thorough, make);
        edits.extend(found);
        !edits.is_empty()
    });
    if edits.is_empty() && several {
        edits.extend(smallest(lab, &some, thorough, make));
    }
    edits
}

/// Whether the node is cordoned, has a taint of its health, or does not give out all that it counts.
fn is_ill(node: &Node) -> bool {
    node.spec.unschedulable
        || node.spec.taints.iter().any(|taint| taint.key.starts_with(HEALTH))
        || unhealthy(&node.status.allocatable, &node.status.capacity).next().is_some()
}

/// Everything that could be healed: nodes, and devices with a taint of their own or by a rule.
fn ills(objects: &Objects) -> BTreeSet<Ill> {
    let mut ills = BTreeSet::new();
    for object in objects.of_kind(Kind::Node) {
        if let Object::Node(node) = object
            && is_ill(node)
        {
            ills.insert(Ill::Node(node.metadata.name.clone()));
        }
    }
    for object in objects.of_kind(Kind::ResourceSlice) {
        let Object::ResourceSlice(slice) = object else { continue };
        for device in &slice.spec.devices {
            let by_rule = objects.of_kind(Kind::DeviceTaintRule).any(|object| {
                let Object::DeviceTaintRule(rule) = object else { return false };
                let Some(selector) = &rule.spec.device_selector else { return false };
                let is = |w: &Option<String>, name: &str| w.as_ref().is_none_or(|w| w == name);
                is(&selector.driver, &slice.spec.driver)
                    && is(&selector.pool, &slice.spec.pool.name)
                    && is(&selector.device, &device.name)
            });
            if by_rule || !device.taints.is_empty() {
                let of = slice.spec.node_name.as_ref().or(device.node_name.as_ref());
                let node = of.unwrap_or(&slice.spec.pool.name).clone();
                ills.insert(Ill::Device { node, device: device.name.clone() });
            }
        }
    }
    ills
}

/// The fewest copies of one of the nearest nodes of different make that give the group room.
pub(super) fn more_nodes(lab: &mut Lab<'_>, nearest: &[&NodeReport]) -> Option<Edit> {
    let mut makes = BTreeSet::new();
    let models: Vec<String> = nearest
        .iter()
        .map(|node| node.node.0.to_string())
        .filter(|name| nearest.len() <= super::NODES_MAX || makes.insert(make_of(lab, name)))
        .collect();
    let mut found: Option<(u32, String)> = None;
    lab.few(models, |lab, like| {
        let fewer_than = found.as_ref().map_or(u32::MAX, |(count, _)| *count);
        if let Some(count) = fewest_copies(lab, like, fewer_than) {
            found = Some((count, like.clone()));
        }
        found.is_some()
    });
    found.map(|(count, like)| Edit::AddNodes { count, like })
}

/// What copies of the node would be like: its resources, taints, and labels but for its own name.
fn make_of(lab: &Lab<'_>, name: &str) -> String {
    let node = ObjectRef { kind: Kind::Node, namespace: String::new(), name: name.to_owned() };
    let Some(Object::Node(node)) = lab.objects.get(&node) else { return name.to_owned() };
    let labels = node.metadata.labels.iter().filter(|(_, value)| *value != name);
    let mut healed = Node::clone(node);
    healthy(&mut healed);
    let (taints, given) = (healed.spec.taints, healed.status.allocatable);
    format!("{given:?} {taints:?} {:?}", labels.collect::<Vec<_>>())
}

/// The fewest copies of the node that do, if they are fewer than that.
fn fewest_copies(lab: &mut Lab<'_>, like: &str, fewer_than: u32) -> Option<u32> {
    let with = |count| Edit::AddNodes { count, like: like.to_owned() };
    if fewer_than < 2 {
        return None;
    }
    if lab.works(&with(1))? {
        return Some(1);
    }
    // More than one helps only if others take the first, or it is many pods.
    let most = copies_of_use(lab).min(fewer_than - 1);
    let (mut low, mut high) = (2, 2);
    loop {
        high = high.min(most);
        if high < low {
            return None;
        }
        if lab.works(&with(high))? {
            break;
        }
        (low, high) = (high + 1, high.saturating_mul(2));
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if lab.works(&with(middle))? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

/// A node for each pod that waits, as far as the group's own turn: more are of no use.
fn copies_of_use(lab: &Lab<'_>) -> u32 {
    let (mut pods, mut most) = (0, COPIES_MAX);
    for (group, _) in &lab.plan.decision.verdicts {
        let info = lab.world.lowering().group(group);
        let own: usize = info.map_or(0, |info| info.roles.iter().map(|role| role.pods.len()).sum());
        pods += own;
        if *group == lab.subject.group {
            most = COPIES_MAX.max(u32::try_from(own).unwrap_or(u32::MAX)).min(GROUP_COPIES_MAX);
            break;
        }
    }
    u32::try_from(pods).unwrap_or(most).min(most)
}
