//! Older versions of `resource.k8s.io`, made into `v1` as they are read. `v1beta2` has the shapes of
//! `v1`. `v1beta1` has flat requests and keeps what a device is under `basic`. `DeviceTaintRule` was
//! `v1alpha3` and `v1beta2` before it was `v1`; in `v1alpha3` it could select by class and by CEL.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::{
    CapacityRequirements, CounterSet, DerivedAttribute, Device, DeviceAllocationMode,
    DeviceAttribute, DeviceCapacity, DeviceClaim, DeviceClaimConfiguration, DeviceConstraint,
    DeviceCounterConsumption, DeviceRequest, DeviceSelector, DeviceSubRequest, DeviceTaint,
    DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector, DeviceToleration,
    ExactDeviceRequest, ResourceClaim, ResourceClaimSpec, ResourceClaimStatus,
    ResourceClaimTemplate, ResourceClaimTemplateSpec, ResourcePool, ResourceSlice,
    ResourceSliceSpec,
};
use crate::core::NodeSelector;
use crate::macros::object;
use crate::meta::ObjectMeta;

object! {
    /// A slice as `v1beta1` has it.
    pub(crate) struct ResourceSliceBeta1 {
        pub(crate) metadata: ObjectMeta,
        pub(crate) spec: ResourceSliceSpecBeta1,
    }

    /// The spec of a slice as `v1beta1` has it.
    pub(crate) struct ResourceSliceSpecBeta1 {
        pub(crate) driver: String,
        pub(crate) pool: ResourcePool,
        /// Empty where it is not set.
        pub(crate) node_name: String,
        pub(crate) node_selector: Option<NodeSelector>,
        pub(crate) all_nodes: bool,
        pub(crate) per_device_node_selection: Option<bool>,
        pub(crate) devices: Vec<DeviceBeta1>,
        pub(crate) shared_counters: Vec<CounterSet>,
    }

    /// A device as `v1beta1` has it.
    pub(crate) struct DeviceBeta1 {
        pub(crate) name: String,
        pub(crate) basic: Option<BasicDevice>,
    }

    /// What a device is.
    pub(crate) struct BasicDevice {
        pub(crate) attributes: BTreeMap<String, DeviceAttribute>,
        pub(crate) capacity: BTreeMap<String, DeviceCapacity>,
        pub(crate) consumes_counters: Vec<DeviceCounterConsumption>,
        pub(crate) node_name: Option<String>,
        pub(crate) node_selector: Option<NodeSelector>,
        pub(crate) all_nodes: Option<bool>,
        pub(crate) taints: Vec<DeviceTaint>,
        pub(crate) binds_to_node: Option<bool>,
        pub(crate) binding_conditions: Vec<String>,
        pub(crate) binding_failure_conditions: Vec<String>,
        pub(crate) allow_multiple_allocations: Option<bool>,
    }

    /// A claim as `v1beta1` has it; the status is that of `v1`.
    pub(crate) struct ResourceClaimBeta1 {
        pub(crate) metadata: ObjectMeta,
        pub(crate) spec: ResourceClaimSpecBeta1,
        pub(crate) status: ResourceClaimStatus,
    }

    /// A template as `v1beta1` has it.
    pub(crate) struct ResourceClaimTemplateBeta1 {
        pub(crate) metadata: ObjectMeta,
        pub(crate) spec: ResourceClaimTemplateSpecBeta1,
    }

    /// The claims that a `v1beta1` template makes.
    pub(crate) struct ResourceClaimTemplateSpecBeta1 {
        pub(crate) metadata: ObjectMeta,
        pub(crate) spec: ResourceClaimSpecBeta1,
    }

    /// What a `v1beta1` claim asks.
    pub(crate) struct ResourceClaimSpecBeta1 {
        pub(crate) devices: DeviceClaimBeta1,
    }

    /// The devices that a `v1beta1` claim asks.
    pub(crate) struct DeviceClaimBeta1 {
        pub(crate) requests: Vec<DeviceRequestBeta1>,
        pub(crate) constraints: Vec<DeviceConstraint>,
        pub(crate) config: Vec<DeviceClaimConfiguration>,
    }

    /// A flat request.
    pub(crate) struct DeviceRequestBeta1 {
        pub(crate) name: String,
        pub(crate) device_class_name: String,
        pub(crate) selectors: Vec<DeviceSelector>,
        pub(crate) allocation_mode: DeviceAllocationMode,
        pub(crate) count: i64,
        pub(crate) admin_access: Option<bool>,
        pub(crate) first_available: Vec<DeviceSubRequest>,
        pub(crate) tolerations: Vec<DeviceToleration>,
        pub(crate) capacity: Option<CapacityRequirements>,
        pub(crate) derived_attributes: Vec<DerivedAttribute>,
    }

    /// A taint rule as `v1alpha3` has it.
    pub(crate) struct DeviceTaintRuleAlpha {
        pub(crate) metadata: ObjectMeta,
        pub(crate) spec: DeviceTaintRuleSpecAlpha,
    }

    /// The spec of a `v1alpha3` taint rule.
    pub(crate) struct DeviceTaintRuleSpecAlpha {
        pub(crate) device_selector: Option<Identity>,
        pub(crate) taint: DeviceTaint,
    }

    /// The selector of a `v1alpha3` taint rule.
    pub(crate) struct DeviceTaintSelectorAlpha {
        pub(crate) device_class_name: Option<String>,
        pub(crate) driver: Option<String>,
        pub(crate) pool: Option<String>,
        pub(crate) device: Option<String>,
        pub(crate) selectors: Vec<DeviceSelector>,
    }
}

impl From<ResourceSliceBeta1> for ResourceSlice {
    fn from(old: ResourceSliceBeta1) -> Self {
        let spec = old.spec;
        Self {
            metadata: old.metadata,
            spec: ResourceSliceSpec {
                driver: spec.driver,
                pool: spec.pool,
                node_name: Some(spec.node_name).filter(|name| !name.is_empty()),
                node_selector: spec.node_selector,
                all_nodes: Some(spec.all_nodes).filter(|all| *all),
                per_device_node_selection: spec.per_device_node_selection,
                devices: spec.devices.into_iter().map(Device::from).collect(),
                shared_counters: spec.shared_counters,
                partition_type_attribute: None,
                skip_node_operations: Vec::new(),
            },
        }
    }
}

impl From<DeviceBeta1> for Device {
    fn from(old: DeviceBeta1) -> Self {
        let basic = old.basic.unwrap_or_default();
        Self {
            name: old.name,
            attributes: basic.attributes,
            capacity: basic.capacity,
            consumes_counters: basic.consumes_counters,
            node_name: basic.node_name,
            node_selector: basic.node_selector,
            all_nodes: basic.all_nodes,
            taints: basic.taints,
            binds_to_node: basic.binds_to_node,
            binding_conditions: basic.binding_conditions,
            binding_failure_conditions: basic.binding_failure_conditions,
            allow_multiple_allocations: basic.allow_multiple_allocations,
        }
    }
}

impl From<ResourceClaimBeta1> for ResourceClaim {
    fn from(old: ResourceClaimBeta1) -> Self {
        Self { metadata: old.metadata, spec: old.spec.into(), status: old.status }
    }
}

impl From<ResourceClaimTemplateBeta1> for ResourceClaimTemplate {
    fn from(old: ResourceClaimTemplateBeta1) -> Self {
        Self {
            metadata: old.metadata,
            spec: ResourceClaimTemplateSpec {
                metadata: old.spec.metadata,
                spec: old.spec.spec.into(),
            },
        }
    }
}

impl From<ResourceClaimSpecBeta1> for ResourceClaimSpec {
    fn from(old: ResourceClaimSpecBeta1) -> Self {
        let DeviceClaimBeta1 { requests, constraints, config } = old.devices;
        let requests = requests.into_iter().map(DeviceRequest::from).collect();
        Self { devices: DeviceClaim { requests, constraints, config } }
    }
}

impl From<DeviceRequestBeta1> for DeviceRequest {
    fn from(old: DeviceRequestBeta1) -> Self {
        // The API server's own conversion: a request with alternatives has no part of its own.
        let exactly = old.first_available.is_empty().then_some(ExactDeviceRequest {
            device_class_name: old.device_class_name,
            selectors: old.selectors,
            allocation_mode: old.allocation_mode,
            count: old.count,
            admin_access: old.admin_access,
            tolerations: old.tolerations,
            capacity: old.capacity,
            derived_attributes: old.derived_attributes,
        });
        Self { name: old.name, exactly, first_available: old.first_available }
    }
}

/// A `v1alpha3` selector that selects by identity alone. One that selects by class or CEL is
/// refused: without that part it would taint more devices.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub(crate) struct Identity(DeviceTaintSelector);

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let old = DeviceTaintSelectorAlpha::deserialize(deserializer)?;
        if old.device_class_name.is_some() || !old.selectors.is_empty() {
            return Err(D::Error::custom(
                "The rule selects by class or by CEL, which v1alpha3 alone could; select by driver, \
                 pool and device instead.",
            ));
        }
        let (driver, pool, device) = (old.driver, old.pool, old.device);
        Ok(Self(DeviceTaintSelector { driver, pool, device }))
    }
}

impl From<DeviceTaintRuleAlpha> for DeviceTaintRule {
    fn from(old: DeviceTaintRuleAlpha) -> Self {
        let device_selector = old.spec.device_selector.map(|Identity(selector)| selector);
        let spec = DeviceTaintRuleSpec { device_selector, taint: old.spec.taint };
        Self { metadata: old.metadata, spec }
    }
}
