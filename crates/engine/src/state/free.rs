//! The devices that are still to be had once a decision is carried out.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::decision::{Act, Decision};
use crate::device::{self, Held};
use crate::facts::Grant;
use crate::name::{DeviceKey, Name, NodeKey, PoolKey};

/// A device that is still to be had, asked for without tolerations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFree {
    /// The device.
    pub device: DeviceKey,
    /// The node, where only one can have it.
    pub node: Option<NodeKey>,
    /// Whether several allocations may share it.
    pub shareable: bool,
}

/// What a decision gives, by pool and device.
type Granted<'a> = BTreeMap<(&'a PoolKey, &'a Name), Vec<&'a Grant>>;

impl super::State {
    /// The devices of such drivers that some node can have once a decision's seats are taken: nobody
    /// holds anything of them, what they take of counters is left, and the node sees them in a
    /// sound pool, in health and given out. Each once, in the order of nodes and of what they see.
    pub fn devices_free(
        &self,
        decision: &Decision,
        is_meant: impl Fn(&Name) -> bool,
    ) -> Vec<DeviceFree> {
        let granted = granted(decision);
        let more = |pool: &PoolKey, device: &Name, held: &mut Held| {
            for grant in granted.get(&(pool, device)).into_iter().flatten() {
                add(grant, held);
            }
        };
        let mut nodes: Vec<(&NodeKey, u32)> = self
            .nodes
            .iter()
            .filter(|(_, _, node)| node.fact.is_some())
            .map(|(slot, key, _)| (key, slot))
            .collect();
        nodes.sort_unstable();
        let mut free: Vec<DeviceFree> = Vec::new();
        let mut known: BTreeMap<DeviceKey, usize> = BTreeMap::new();
        for (node, slot) in nodes {
            let gathered;
            let devices = if let Some(devices) = &self.nodes.at(slot).devices {
                devices
            } else {
                gathered = self.gather(slot, |shape| shape);
                &gathered
            };
            let shape = devices.shape();
            if !shape.devices.iter().any(|device| is_meant(&device.driver)) {
                continue;
            }
            let usage = self.usage_of(devices, more);
            for at in device::free(shape, &usage) {
                if !is_meant(&shape.devices[at].driver) {
                    continue;
                }
                let device = self.device_key(devices, at);
                match known.entry(device.clone()) {
                    Entry::Occupied(entry) => free[*entry.get()].node = None,
                    Entry::Vacant(entry) => {
                        entry.insert(free.len());
                        let shareable = shape.devices[at].traits.shareable;
                        free.push(DeviceFree { device, node: Some(node.clone()), shareable });
                    }
                }
            }
        }
        free
    }
}

/// All that a decision's seats are given, but for what is only looked at.
fn granted(decision: &Decision) -> Granted<'_> {
    let mut granted = Granted::new();
    for act in &decision.acts {
        let seats = match act {
            Act::Place(_, seats, _) => seats.as_slice(),
            Act::Admit(_) | Act::Hold(..) | Act::Release(..) | Act::Evict { .. } => &[],
        };
        for grant in seats.iter().flat_map(|seat| &seat.grants).filter(|grant| !grant.admin) {
            let DeviceKey { pool, device } = &grant.device;
            granted.entry((pool, device)).or_default().push(grant);
        }
    }
    granted
}

fn add(grant: &Grant, held: &mut Held) {
    match &grant.share {
        None => held.whole = true,
        Some(share) => {
            held.shares = held.shares.saturating_add(1);
            held.consumed.extend(share.iter().cloned());
        }
    }
}
