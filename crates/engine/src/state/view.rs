//! What a node sees of devices: its shape (which never changes with use) and who holds what.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{PoolState, State};
use crate::check::fact::term_matches;
use crate::device::{self, Held, Here, Shape, Usage, View};
use crate::facts::{Consumption, Pool, Reach, Slice};
use crate::name::{ClaimKey, DeviceKey, Name, NodeKey, PoolKey, Shared};

/// The devices that one node sees.
#[derive(Clone, Debug)]
pub(crate) struct NodeDevices {
    /// All but the holders, and where the devices live. Equal nodes share one shape.
    view: View,
    /// Slots of the pools that the view was gathered from, in order of key.
    pools: Vec<u32>,
    /// Who holds them, where that was worked out since it last changed. Shared, for answers of many
    /// requests are remembered under it.
    pub(crate) usage: Option<Shared<Usage>>,
}

impl NodeDevices {
    /// All but the holders.
    pub(crate) fn shape(&self) -> &Arc<Shape> {
        &self.view.shape
    }

    /// The shape, with who holds its devices, where that is known.
    pub(crate) fn held(&self) -> Option<(&Shape, &Usage)> {
        Some((&self.view.shape, self.usage.as_deref()?))
    }

    /// Slots of the pools that it sees.
    pub(crate) fn pools(&self) -> &[u32] {
        &self.pools
    }

    /// Pool (index among those gathered) and name of each of the shape's devices.
    pub(crate) fn places(&self) -> &[(u32, Name)] {
        &self.view.places
    }
}

impl State {
    /// Works out what the node in `slot` sees, where that is not known. `share` finds an equal
    /// shape that exists already.
    pub(crate) fn refresh_devices(
        &mut self,
        slot: u32,
        share: impl FnOnce(Arc<Shape>) -> Arc<Shape>,
    ) {
        if self.nodes.at(slot).devices.is_none() {
            let devices = Some(Box::new(self.gather(slot, share)));
            self.nodes.at_mut(slot).devices = devices;
        }
        if self.nodes.at(slot).devices.as_ref().is_some_and(|d| d.usage.is_none()) {
            let node = self.nodes.at(slot).devices.as_ref();
            let usage = node.map(|devices| Shared::new(self.usage_of(devices, |_, _, _| {})));
            if let Some(devices) = &mut self.nodes.at_mut(slot).devices {
                devices.usage = usage;
            }
        }
    }

    pub(super) fn gather(
        &self,
        slot: u32,
        share: impl FnOnce(Arc<Shape>) -> Arc<Shape>,
    ) -> NodeDevices {
        let node = self.nodes.at(slot);
        let mut slots: Vec<u32> = node.pools.iter().chain(&self.wide_pools).copied().collect();
        slots.retain(|pool| self.pools.at(*pool).fact.is_some());
        slots.sort_unstable_by_key(|pool| self.pools.key(*pool));
        slots.dedup();
        let labels = node.fact.as_ref().map_or(&[][..], |n| &n.labels);
        let features = node.fact.as_ref().map_or(&[][..], |n| &n.features);
        let here = Here { node: self.nodes.key(slot), labels, features };
        let pools = self.pool_facts(&slots);
        let mut view = device::gather(here, &pools, node.links.as_ref());
        view.shape = share(view.shape);
        NodeDevices { view, pools: slots, usage: None }
    }

    fn pool_facts(&self, slots: &[u32]) -> Vec<(&PoolKey, &Pool)> {
        let fact = |slot: &u32| Some((self.pools.key(*slot), self.pools.at(*slot).fact.as_ref()?));
        slots.iter().filter_map(fact).collect()
    }

    /// Who holds the devices that a node sees; `more` adds what others than the state's take.
    pub(super) fn usage_of(
        &self,
        devices: &NodeDevices,
        more: impl Fn(&PoolKey, &Name, &mut Held),
    ) -> Usage {
        let pools = self.pool_facts(&devices.pools);
        let there = |row: &&PoolState| row.fact.is_some();
        let rows = devices.pools.iter().map(|slot| self.pools.at(*slot)).filter(there);
        let rows: Vec<&PoolState> = rows.collect();
        let mut usage = Usage::gather(&devices.view, &pools, |pool, name| {
            let holders = rows.get(pool as usize).and_then(|row| row.holders(name));
            let mut held = holders.map_or_else(Held::default, |h| Held {
                whole: h.exclusive > 0,
                shares: h.shares,
                consumed: h.consumed.clone(),
            });
            if let Some((key, _)) = pools.get(pool as usize) {
                more(key, name, &mut held);
            }
            held
        });
        for (ordinal, sight) in devices.view.pools.iter().enumerate() {
            let at = sight.input as usize;
            let (Some((_, pool)), Some(row)) = (pools.get(at), rows.get(at)) else { continue };
            for uses in vanished(row, pool, sight.generation) {
                usage.charge(&devices.view.shape, ordinal, &uses.counters);
                let groups = |set: &Name| uses.groups(set);
                usage.join(&devices.view.shape, ordinal, &uses.counters, groups);
            }
        }
        usage
    }

    /// The key of the shape's device `at` on a node.
    pub(crate) fn device_key(&self, devices: &NodeDevices, at: usize) -> DeviceKey {
        let (pool, name) = &devices.view.places[at];
        let pool = self.pools.key(devices.pools[*pool as usize]).clone();
        DeviceKey { pool, device: name.clone() }
    }

    /// Those of a node's devices that these claims hold, as indices in its shape, ascending.
    pub(crate) fn devices_of<'k>(
        &self,
        devices: &NodeDevices,
        claims: impl Iterator<Item = &'k ClaimKey>,
    ) -> Vec<u16> {
        let mut found = Vec::new();
        let held = claims.filter_map(|key| self.claims.find(key)?.held());
        for held in held.flat_map(|allocation| &allocation.devices) {
            let at = devices.view.places.iter().position(|(pool, name)| {
                *name == held.device.device
                    && *self.pools.key(devices.pools[*pool as usize]) == held.device.pool
            });
            found.extend(at.and_then(|at| u16::try_from(at).ok()));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// How many devices nodes see: of each pool what its newest slices publish, where of several
    /// generations each node counts the newest that reaches it.
    pub fn devices_len(&self) -> usize {
        self.pools.iter().filter_map(|(_, _, pool)| pool.fact.as_ref()).map(|p| self.seen(p)).sum()
    }

    fn seen(&self, pool: &Pool) -> usize {
        let mut of_node: BTreeMap<&NodeKey, i64> = BTreeMap::new();
        let mut of_many = None;
        for slice in &pool.slices {
            match &slice.reach {
                Reach::Node(node) => {
                    let newest = of_node.entry(node).or_insert(slice.generation);
                    *newest = slice.generation.max(*newest);
                }
                Reach::All | Reach::Selector(_) | Reach::PerDevice => {
                    of_many = of_many.max(Some(slice.generation));
                }
                Reach::Unknown => {}
            }
        }
        let of_slice = |slice: &Slice| {
            let own = match &slice.reach {
                Reach::Node(node) => of_node.get(node).copied(),
                Reach::All | Reach::Selector(_) | Reach::PerDevice | Reach::Unknown => None,
            };
            if own.max(of_many).is_some_and(|newest| slice.generation < newest) {
                return 0;
            }
            if slice.reach == Reach::PerDevice {
                let own = slice.devices.iter().filter_map(|d| d.traits.reach.as_ref());
                return own.filter(|reach| self.reaches_any(reach)).count();
            }
            if self.reaches_any(&slice.reach) { slice.devices.len() } else { 0 }
        };
        pool.slices.iter().map(of_slice).sum()
    }

    /// Whether there is a node that a reach includes.
    fn reaches_any(&self, reach: &Reach) -> bool {
        let mut nodes =
            self.nodes.iter().filter_map(|(_, key, node)| Some((key, node.fact.as_ref()?)));
        match reach {
            Reach::Node(node) => self.nodes.find(node).is_some_and(|node| node.fact.is_some()),
            Reach::All => nodes.next().is_some(),
            Reach::Selector(term) => nodes.any(|(key, node)| term_matches(term, key, &node.labels)),
            Reach::PerDevice | Reach::Unknown => false,
        }
    }
}

/// What devices take of a pool's counters that are held and that its slices of this generation don't
/// have any more.
fn vanished<'a>(
    row: &'a PoolState,
    pool: &'a Pool,
    generation: i64,
) -> impl Iterator<Item = &'a Consumption> {
    let published = move |name: &Name| {
        let mut current = pool.slices.iter().filter(|s| s.generation == generation);
        current.any(|s| s.devices.iter().any(|d| d.name == *name))
    };
    let gone = row.devices.iter().filter(|h| !h.consumes.counters.is_empty());
    gone.filter(move |h| !published(&h.name)).map(|h| &h.consumes)
}
