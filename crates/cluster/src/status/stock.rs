//! Devices by what they are: how many there are, are held, are free, and in which pieces.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{Decision, DeviceKey, Level, Name, NodeKey, Reach};
use phalanx_objects::core::Node;
use phalanx_objects::resource::DeviceAttribute;

use super::document::{FreeIslands, FreeNodes, StockView, StrandedView};
use super::{all_nodes, holders, takes_pods};
use crate::lower::{DeviceInfo, is_device_counter};
use crate::world::World;

/// Labels of nodes that name the product of their GPUs, by vendor.
const PRODUCT_LABELS: [&str; 4] = [
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "gpu.intel.com/product",
];

/// What is counted together: the driver or the resource, and the product.
type Key = (String, Option<String>);

/// Devices of one kind while they are counted.
#[derive(Debug, Default)]
struct Stock {
    total: u64,
    used: u64,
    unhealthy: u64,
    closed: u64,
    /// By node, all that it has.
    of_node: BTreeMap<NodeKey, u64>,
    /// By node, what is free there.
    free: BTreeMap<NodeKey, u64>,
    /// Free ones that no node has to itself.
    free_of_many: u64,
    /// What each island has free, where links are known.
    islands: Vec<u64>,
}

/// Devices of slices by driver and product, then counters by resource and product.
pub(super) fn stock(world: &World, now: &Decision) -> Vec<StockView> {
    let of_name = all_nodes(world).map(|node| (node.metadata.name.as_str(), node)).collect();
    let nodes = Nodes { of_name, full: world.state().full_nodes() };
    let published = of_slices(world, now, &nodes);
    let counted = of_counters(world, now, &nodes);
    let of_slices = published.into_iter().map(|(key, stock)| view("slices", key, stock));
    of_slices.chain(counted.into_iter().map(|(key, stock)| view("counter", key, stock))).collect()
}

/// Nodes of the dump, and those of them that are full.
struct Nodes<'a> {
    of_name: BTreeMap<&'a str, &'a Node>,
    full: BTreeSet<NodeKey>,
}

impl Nodes<'_> {
    fn takes(&self, key: &NodeKey, name: &str) -> bool {
        let node = self.of_name.get(key.0.as_str());
        !self.full.contains(key) && node.is_some_and(|node| takes_pods(node, name))
    }
}

fn of_slices(world: &World, now: &Decision, nodes: &Nodes<'_>) -> BTreeMap<Key, Stock> {
    let held = holders::held_devices(world);
    let mut kinds: BTreeMap<DeviceKey, Key> = BTreeMap::new();
    let mut all: BTreeMap<Key, Stock> = BTreeMap::new();
    for info in world.lowering().devices() {
        let key = (info.key.pool.driver.to_string(), model(&info));
        let stock = all.entry(key.clone()).or_default();
        stock.total += 1;
        stock.used += u64::from(held.contains(&info.key));
        if let Reach::Node(node) = &info.reach {
            *stock.of_node.entry(node.clone()).or_default() += 1;
        }
        kinds.insert(info.key, key);
    }
    let mut free: BTreeSet<DeviceKey> = BTreeSet::new();
    for one in world.state().devices_free(now, |_| true) {
        // A device that is shared has room, and somebody on it.
        if held.contains(&one.device) {
            continue;
        }
        let Some(stock) = kinds.get(&one.device).and_then(|key| all.get_mut(key)) else { continue };
        let driver = &one.device.pool.driver;
        if one.node.as_ref().is_some_and(|node| !nodes.takes(node, driver)) {
            stock.closed += 1;
            continue;
        }
        match one.node {
            Some(node) => *stock.free.entry(node).or_default() += 1,
            None => stock.free_of_many += 1,
        }
        free.insert(one.device);
    }
    islands(world, &kinds, &free, &mut all);
    all
}

/// Counts what islands have free, on nodes whose links are known.
fn islands(
    world: &World,
    kinds: &BTreeMap<DeviceKey, Key>,
    free: &BTreeSet<DeviceKey>,
    all: &mut BTreeMap<Key, Stock>,
) {
    let island = Level::ALL.iter().position(|level| *level == Level::Island).unwrap_or_default();
    for node in world.lowering().nodes_with_links() {
        let Some(links) = world.links(node) else { continue };
        let mut of_island: BTreeMap<(&Key, u16), u64> = BTreeMap::new();
        for member in links.members.iter().filter(|member| member.accelerator) {
            let Some(device) = &member.device else { continue };
            let Some(key) = kinds.get(device) else { continue };
            let count = u64::from(free.contains(device));
            match member.domains.get(island).copied().flatten() {
                Some(domain) => *of_island.entry((key, domain)).or_default() += count,
                None => push(all, key, count),
            }
        }
        for ((key, _), count) in of_island {
            push(all, key, count);
        }
    }
}

fn push(all: &mut BTreeMap<Key, Stock>, key: &Key, count: u64) {
    if let Some(stock) = all.get_mut(key) {
        stock.islands.push(count);
    }
}

fn of_counters(world: &World, now: &Decision, nodes: &Nodes<'_>) -> BTreeMap<Key, Stock> {
    let mut all: BTreeMap<Key, Stock> = BTreeMap::new();
    let left = world.state().scalars_left(now);
    for one in left.into_iter().filter(|one| is_device_counter(&one.resource)) {
        let node = nodes.of_name.get(one.node.0.as_str());
        let key = (one.resource.to_string(), node.and_then(|node| product(node, &one.resource)));
        let stock = all.entry(key).or_default();
        let (total, free) = (amount(one.allocatable), amount(one.free));
        let all_there = node.and_then(|node| node.status.capacity.get(&*one.resource));
        let all_there = all_there.map_or(0, |capacity| amount(capacity.value_ceil()));
        let unhealthy = all_there.saturating_sub(total);
        stock.total = stock.total.saturating_add(total).saturating_add(unhealthy);
        stock.unhealthy = stock.unhealthy.saturating_add(unhealthy);
        // More may be held than there is.
        let used = amount(one.allocatable.saturating_sub(one.free));
        stock.used = stock.used.saturating_add(used);
        stock.of_node.insert(one.node.clone(), total);
        let free = free.min(total);
        if nodes.takes(&one.node, &one.resource) {
            stock.free.insert(one.node, free);
        } else {
            stock.closed = stock.closed.saturating_add(free);
        }
    }
    all
}

fn amount(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The product of a device, and the profile of a partition.
fn model(device: &DeviceInfo) -> Option<String> {
    let text = |id: &str| {
        let is = |name: &Name| name.rsplit('/').next() == Some(id);
        device.attributes.iter().find_map(|(name, value)| match value {
            DeviceAttribute::String(text) if is(name) => Some(text.clone()),
            DeviceAttribute::String(_)
            | DeviceAttribute::Int(_)
            | DeviceAttribute::Bool(_)
            | DeviceAttribute::Version(_)
            | DeviceAttribute::Ints(_)
            | DeviceAttribute::Bools(_)
            | DeviceAttribute::Strings(_)
            | DeviceAttribute::Versions(_)
            | DeviceAttribute::Empty
            | DeviceAttribute::Unknown(_) => None,
        })
    };
    let product = text("productName")?;
    Some(match text("profile") {
        Some(profile) => format!("{product} {profile}"),
        None => product,
    })
}

/// The product that a node's label names for a resource of its vendor.
fn product(node: &Node, resource: &str) -> Option<String> {
    let (vendor, _) = resource.split_once('/')?;
    let of_vendor =
        |label: &&&str| label.split('/').next().is_some_and(|domain| domain.ends_with(vendor));
    let mut labels = PRODUCT_LABELS.iter().filter(of_vendor);
    labels.find_map(|label| node.metadata.labels.get(*label).cloned())
}

fn view(source: &'static str, (name, model): Key, stock: Stock) -> StockView {
    let free = sum(stock.free.values()).saturating_add(stock.free_of_many);
    let unlinked = free.saturating_sub(sum(stock.islands.iter()));
    let most = stock.of_node.values().copied().max().unwrap_or(0);
    let sizes = std::iter::successors(Some(2_u64), |size| size.checked_mul(2));
    let stranded = sizes.take_while(|size| *size <= most).map(|size| StrandedView {
        size,
        on_nodes: below(stock.free.values(), size),
        in_islands: (unlinked == 0).then(|| below(stock.islands.iter(), size)),
    });
    let stranded = stranded.collect();
    let islands = histogram(stock.islands.iter()).into_iter();
    let nodes = histogram(stock.free.values()).into_iter();
    StockView {
        source,
        name,
        model,
        nodes: stock.of_node.len() as u64,
        total: stock.total,
        used: stock.used,
        free,
        unavailable: stock.total.saturating_sub(stock.used).saturating_sub(free),
        unhealthy: stock.unhealthy,
        closed: stock.closed,
        free_nodes: nodes.map(|(free, nodes)| FreeNodes { free, nodes }).collect(),
        free_islands: islands.map(|(free, islands)| FreeIslands { free, islands }).collect(),
        unlinked,
        stranded,
    }
}

/// What pieces that are too small hold together.
fn below<'a>(pieces: impl Iterator<Item = &'a u64>, size: u64) -> u64 {
    sum(pieces.filter(|free| **free < size))
}

/// A sum of what nodes say that they have, which may be anything.
fn sum<'a>(amounts: impl Iterator<Item = &'a u64>) -> u64 {
    amounts.fold(0, |sum, amount| sum.saturating_add(*amount))
}

/// How many pieces there are of each size, largest first; empty ones are none.
fn histogram<'a>(pieces: impl Iterator<Item = &'a u64>) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for free in pieces.filter(|free| **free > 0) {
        *counts.entry(*free).or_default() += 1;
    }
    counts.into_iter().rev().collect()
}
