//! What else is free that might do for a counter: other names of the same vendor that count devices
//! of the same kind, such as a partition's, and devices that are asked for by a claim.
//!
//! It is a fact beside the reason, and no promise: what works when it is asked for is a cure's.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use phalanx_engine::{Name, NodeKey, ScalarLeft};

use crate::lower::{device_kind, is_device_counter};
use crate::plan::Plan;
use crate::words;
use crate::world::World;

/// Most names that a sentence lists.
const NAMES_MAX: usize = 3;

/// What is free once the plan is carried out, looked up when it is first asked about.
pub(super) struct Others<'a> {
    world: &'a World,
    plan: &'a Plan,
    left: OnceCell<Vec<ScalarLeft>>,
    /// Sentences by resource and amount: many pods ask for the same.
    said: RefCell<BTreeMap<(String, i64), Option<String>>>,
    /// Free devices by resource: looking through all devices is dear.
    devices: RefCell<BTreeMap<String, Vec<words::OtherDevices>>>,
}

impl<'a> Others<'a> {
    pub(super) fn new(world: &'a World, plan: &'a Plan) -> Self {
        let (left, said, devices) = Default::default();
        Self { world, plan, left, said, devices }
    }

    /// What is free in place of so much of a resource, in words; none where nothing is.
    pub(super) fn in_place_of(&self, resource: &str, asked: i64) -> Option<String> {
        if !is_device_counter(resource) {
            return None;
        }
        let key = (resource.to_owned(), asked);
        if let Some(known) = self.said.borrow().get(&key) {
            return known.clone();
        }
        let names = self.names(resource, asked);
        let mut known = self.devices.borrow_mut();
        let devices =
            known.entry(resource.to_owned()).or_insert_with(|| self.free_devices(resource));
        let said = words::others(&names, devices);
        self.said.borrow_mut().insert(key, said.clone());
        said
    }

    /// What a node has of a resource, and what is free of it once the plan is carried out.
    pub(super) fn left(&self, resource: &str, node: &NodeKey) -> Option<(i64, i64)> {
        let left = self.scalars();
        let of =
            |one: &ScalarLeft| (one.node.cmp(node)).then_with(|| (*one.resource).cmp(resource));
        let found = &left[left.binary_search_by(of).ok()?];
        Some((found.allocatable, found.free))
    }

    /// What is left of each resource on each node, by node and name.
    fn scalars(&self) -> &[ScalarLeft] {
        self.left.get_or_init(|| self.world.state().scalars_left(&self.plan.decision))
    }

    /// Other names that are free on some node, each with the node that has most of it.
    fn names(&self, resource: &str, asked: i64) -> Vec<words::OtherName> {
        let mut best: BTreeMap<&str, &ScalarLeft> = BTreeMap::new();
        for one in self.scalars().iter().filter(|one| one.free >= asked.max(1)) {
            if !is_alike(resource, &one.resource) {
                continue;
            }
            let known = best.entry(&one.resource).or_insert(one);
            if one.free > known.free {
                *known = one;
            }
        }
        let named = |one: &&ScalarLeft| words::OtherName {
            name: one.resource.to_string(),
            free: one.free,
            allocatable: one.allocatable,
            node: one.node.0.to_string(),
        };
        best.values().take(NAMES_MAX).map(named).collect()
    }

    /// Devices of the vendor that are still to be had, by driver: one of them and how many there
    /// are.
    fn free_devices(&self, resource: &str) -> Vec<words::OtherDevices> {
        let is_meant = |driver: &Name| is_alike(resource, driver);
        let mut found: BTreeMap<Name, words::OtherDevices> = BTreeMap::new();
        for free in self.world.state().devices_free(&self.plan.decision, is_meant) {
            let driver = &free.device.pool.driver;
            let entry = found.entry(driver.clone()).or_insert_with(|| words::OtherDevices {
                driver: driver.to_string(),
                first: free.device.device.to_string(),
                node: free.node.map(|node| node.0.to_string()),
                number: 0,
                shared: 0,
            });
            entry.number += 1;
            entry.shared += u64::from(free.shareable);
        }
        found.into_values().collect()
    }
}

/// Whether a name is another of the same vendor for the same kind of device: a resource's, or a
/// driver's.
pub(crate) fn is_alike(resource: &str, other: &str) -> bool {
    let Some((vendor, _)) = resource.split_once('/') else { return false };
    let of_vendor = match other.split_once('/') {
        Some((domain, _)) => domain == vendor,
        None => other == vendor || other.ends_with(&format!(".{vendor}")),
    };
    let kind = device_kind(resource);
    resource != other && of_vendor && kind.is_some() && device_kind(other) == kind
}

#[cfg(test)]
mod tests {
    use super::is_alike;

    #[test]
    fn another_name_is_of_the_same_vendor_and_kind() {
        for other in ["nvidia.com/mig-3g.40gb", "nvidia.com/gpu.shared", "gpu.nvidia.com"] {
            assert!(is_alike("nvidia.com/gpu", other), "{other}");
        }
        for other in [
            "nvidia.com/gpu",
            "amd.com/gpu",
            "nvidia.com/rdma-nic",
            "nvidia.com/licence",
            "compute-domain.nvidia.com",
            "gpu.notnvidia.com",
        ] {
            assert!(!is_alike("nvidia.com/gpu", other), "{other}");
        }
    }
}
