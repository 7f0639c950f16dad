//! What a driver publishes: slices of pools of devices.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{DeviceAttribute, DeviceTaintEffect};
use crate::core::NodeSelector;
use crate::macros::object;
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;

object! {
    /// A slice of a pool, cluster-scoped.
    pub struct ResourceSlice {
        /// Metadata; slices of a pool are searched by name.
        pub metadata: ObjectMeta,
        /// What is published.
        pub spec: ResourceSliceSpec,
    }

    /// What a slice publishes. Exactly one of `node_name`, `node_selector`, `all_nodes` and
    /// `per_device_node_selection` is set; with none of them the slice is for no node.
    pub struct ResourceSliceSpec {
        /// Driver.
        pub driver: String,
        /// Pool that the slice belongs to.
        pub pool: ResourcePool,
        /// The one node that reaches the devices.
        pub node_name: Option<String>,
        /// The nodes that reach the devices.
        pub node_selector: Option<NodeSelector>,
        /// Every node reaches the devices.
        pub all_nodes: Option<bool>,
        /// Each device says which nodes reach it.
        pub per_device_node_selection: Option<bool>,
        /// Devices, in the order of upstream's search.
        pub devices: Vec<Device>,
        /// Counters of the whole pool.
        pub shared_counters: Vec<CounterSet>,
        /// The string attribute that names a partition's kind (alpha).
        pub partition_type_attribute: Option<String>,
        /// Calls to the driver on the node that are left out (alpha).
        pub skip_node_operations: Vec<String>,
    }

    /// The pool of a slice, and how many slices make it whole.
    pub struct ResourcePool {
        /// Name; unique only together with the driver.
        pub name: String,
        /// Only slices of the highest generation count.
        pub generation: i64,
        /// Slices of this generation.
        pub resource_slice_count: i64,
    }

    /// A device; its identity is (driver, pool, name).
    pub struct Device {
        /// Name in the pool.
        pub name: String,
        /// Attributes; a name without a domain belongs to the driver's.
        pub attributes: BTreeMap<String, DeviceAttribute>,
        /// Capacities; a name without a domain belongs to the driver's.
        pub capacity: BTreeMap<String, DeviceCapacity>,
        /// What the device takes from counters of its pool.
        pub consumes_counters: Vec<DeviceCounterConsumption>,
        /// The one node that reaches the device (with per device node selection).
        pub node_name: Option<String>,
        /// The nodes that reach the device (with per device node selection).
        pub node_selector: Option<NodeSelector>,
        /// Every node reaches the device (with per device node selection).
        pub all_nodes: Option<bool>,
        /// Taints that the driver sets.
        pub taints: Vec<DeviceTaint>,
        /// Whether an allocation is bound to the chosen node even if others reach the device.
        pub binds_to_node: Option<bool>,
        /// Conditions that must be true before the pod is bound.
        pub binding_conditions: Vec<String>,
        /// Conditions that end the wait.
        pub binding_failure_conditions: Vec<String>,
        /// Whether several allocations may share the device.
        pub allow_multiple_allocations: Option<bool>,
    }

    /// A capacity of a device.
    pub struct DeviceCapacity {
        /// The whole amount.
        pub value: Quantity,
        /// What a share of it may be.
        pub request_policy: Option<CapacityRequestPolicy>,
    }

    /// What a share of a capacity may be.
    pub struct CapacityRequestPolicy {
        /// The share where none is asked.
        pub default: Option<Quantity>,
        /// The only shares, ascending.
        pub valid_values: Vec<Quantity>,
        /// The range of shares.
        pub valid_range: Option<CapacityRequestPolicyRange>,
    }

    /// A range of shares.
    pub struct CapacityRequestPolicyRange {
        /// Least.
        pub min: Option<Quantity>,
        /// Greatest.
        pub max: Option<Quantity>,
        /// Shares are `min` plus a multiple of it.
        pub step: Option<Quantity>,
    }

    /// A named set of counters.
    pub struct CounterSet {
        /// Name in the pool.
        pub name: String,
        /// Counters.
        pub counters: BTreeMap<String, Counter>,
    }

    /// A counter.
    pub struct Counter {
        /// The amount.
        pub value: Quantity,
    }

    /// What a device takes from a set of counters.
    pub struct DeviceCounterConsumption {
        /// The set.
        pub counter_set: String,
        /// Amounts.
        pub counters: BTreeMap<String, Counter>,
        /// Only devices that share a group may be in use together (alpha).
        pub compatibility_groups: Vec<String>,
    }

    /// A taint of a device.
    pub struct DeviceTaint {
        /// Key.
        pub key: String,
        /// Value.
        pub value: String,
        /// Effect.
        pub effect: DeviceTaintEffect,
        /// When it was added.
        pub time_added: Option<Timestamp>,
    }
}
