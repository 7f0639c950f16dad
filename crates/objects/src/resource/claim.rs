//! What pods ask of devices, and what they got.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::DeviceToleration;
use crate::core::NodeSelector;
use crate::macros::{object, words};
use crate::meta::{Condition, ObjectMeta};
use crate::quantity::Quantity;

object! {
    /// A claim of devices.
    pub struct ResourceClaim {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is asked; immutable.
        pub spec: ResourceClaimSpec,
        /// What was given.
        pub status: ResourceClaimStatus,
    }

    /// A template from which each pod gets a claim of its own.
    pub struct ResourceClaimTemplate {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// The claims.
        pub spec: ResourceClaimTemplateSpec,
    }

    /// The claims that a template makes.
    pub struct ResourceClaimTemplateSpec {
        /// Labels and annotations of the claims.
        pub metadata: ObjectMeta,
        /// Spec of the claims.
        pub spec: ResourceClaimSpec,
    }

    /// What a claim asks.
    pub struct ResourceClaimSpec {
        /// Devices.
        pub devices: DeviceClaim,
    }

    /// The devices that a claim asks.
    pub struct DeviceClaim {
        /// Requests, all to be met.
        pub requests: Vec<DeviceRequest>,
        /// Relations between the devices of requests.
        pub constraints: Vec<DeviceConstraint>,
        /// Configuration for drivers.
        pub config: Vec<DeviceClaimConfiguration>,
    }

    /// A request; exactly one of `exactly` and `first_available` is set.
    pub struct DeviceRequest {
        /// Name in the claim.
        pub name: String,
        /// One kind of device.
        pub exactly: Option<ExactDeviceRequest>,
        /// Alternatives, best first.
        pub first_available: Vec<DeviceSubRequest>,
    }

    /// A request of one kind of device.
    pub struct ExactDeviceRequest {
        /// The class.
        pub device_class_name: String,
        /// All must accept a device.
        pub selectors: Vec<DeviceSelector>,
        /// How many devices are meant.
        pub allocation_mode: DeviceAllocationMode,
        /// Number of devices as written, see [`ExactDeviceRequest::device_count`].
        pub count: i64,
        /// Whether devices in use may be watched over.
        pub admin_access: Option<bool>,
        /// Tolerations of device taints.
        pub tolerations: Vec<DeviceToleration>,
        /// The share of a device that may be shared.
        pub capacity: Option<CapacityRequirements>,
        /// Attributes computed for constraints (alpha).
        pub derived_attributes: Vec<DerivedAttribute>,
    }

    /// An alternative of a request.
    pub struct DeviceSubRequest {
        /// Name in the request; results name it `request/name`.
        pub name: String,
        /// The class.
        pub device_class_name: String,
        /// All must accept a device.
        pub selectors: Vec<DeviceSelector>,
        /// How many devices are meant.
        pub allocation_mode: DeviceAllocationMode,
        /// Number of devices as written, see [`DeviceSubRequest::device_count`].
        pub count: i64,
        /// Tolerations of device taints.
        pub tolerations: Vec<DeviceToleration>,
        /// The share of a device that may be shared.
        pub capacity: Option<CapacityRequirements>,
        /// Attributes computed for constraints (alpha).
        pub derived_attributes: Vec<DerivedAttribute>,
    }

    /// A selector of devices.
    pub struct DeviceSelector {
        /// The expression; none is a kind of selector that this version does not know.
        pub cel: Option<CelDeviceSelector>,
    }

    /// A selector in CEL.
    pub struct CelDeviceSelector {
        /// An expression over `device`.
        pub expression: String,
    }

    /// Amounts asked of a device's capacities.
    pub struct CapacityRequirements {
        /// Amounts by capacity, compared by the letter of the name.
        pub requests: BTreeMap<String, Quantity>,
    }

    /// An attribute that is computed for constraints (alpha).
    pub struct DerivedAttribute {
        /// Fully qualified name.
        pub name: String,
        /// CEL over `device`.
        pub expression: String,
    }

    /// A relation between the devices of requests; exactly one of the attributes is set.
    pub struct DeviceConstraint {
        /// Requests as `request` or `request/subrequest`; empty means all.
        pub requests: Vec<String>,
        /// All devices have the same value of this attribute.
        pub match_attribute: Option<String>,
        /// No two devices have the same value of this attribute.
        pub distinct_attribute: Option<String>,
    }

    /// Configuration in a claim.
    pub struct DeviceClaimConfiguration {
        /// Requests that it is for; empty means all.
        pub requests: Vec<String>,
        /// For the driver alone.
        pub opaque: Option<OpaqueDeviceConfiguration>,
    }

    /// Configuration that only a driver understands.
    pub struct OpaqueDeviceConfiguration {
        /// The driver.
        pub driver: String,
        /// Its parameters.
        pub parameters: serde_json::Value,
    }

    /// What a claim was given.
    pub struct ResourceClaimStatus {
        /// The devices; none while the claim waits.
        pub allocation: Option<AllocationResult>,
        /// Who may use the devices.
        pub reserved_for: Vec<ResourceClaimConsumerReference>,
        /// What drivers say of the devices.
        pub devices: Vec<AllocatedDeviceStatus>,
    }

    /// The allocation of a claim.
    pub struct AllocationResult {
        /// Devices and their configuration.
        pub devices: DeviceAllocationResult,
        /// Nodes that reach the devices; none means all.
        pub node_selector: Option<NodeSelector>,
        /// When the allocation was made.
        pub allocation_timestamp: Option<Timestamp>,
    }

    /// The devices of an allocation.
    pub struct DeviceAllocationResult {
        /// Devices in the order of the requests.
        pub results: Vec<DeviceRequestAllocationResult>,
        /// Configuration from classes and from the claim.
        pub config: Vec<DeviceAllocationConfiguration>,
    }

    /// A device of an allocation.
    pub struct DeviceRequestAllocationResult {
        /// `request` or `request/subrequest`.
        pub request: String,
        /// Driver.
        pub driver: String,
        /// Pool.
        pub pool: String,
        /// Device.
        pub device: String,
        /// Whether the device is only watched over and stays free for others.
        pub admin_access: Option<bool>,
        /// Copied from the request.
        pub tolerations: Vec<DeviceToleration>,
        /// Copied from the device.
        pub binding_conditions: Vec<String>,
        /// Copied from the device.
        pub binding_failure_conditions: Vec<String>,
        /// Which share of a shared device this is.
        #[serde(rename = "shareID")]
        pub share_id: Option<String>,
        /// How much of a shared device's capacities the share takes.
        pub consumed_capacity: BTreeMap<String, Quantity>,
        /// Copied from the slice (alpha).
        pub skip_node_operations: Vec<String>,
    }

    /// Configuration of an allocation.
    pub struct DeviceAllocationConfiguration {
        /// Where it comes from.
        pub source: AllocationConfigSource,
        /// Requests that it is for; empty means all.
        pub requests: Vec<String>,
        /// For the driver alone.
        pub opaque: Option<OpaqueDeviceConfiguration>,
    }

    /// A user of a claim in the claim's namespace.
    pub struct ResourceClaimConsumerReference {
        /// API group; empty for pods.
        pub api_group: String,
        /// Plural name of the kind, such as `pods`.
        pub resource: String,
        /// Name.
        pub name: String,
        /// UID.
        pub uid: String,
    }

    /// What a driver says of an allocated device.
    pub struct AllocatedDeviceStatus {
        /// Driver.
        pub driver: String,
        /// Pool.
        pub pool: String,
        /// Device.
        pub device: String,
        /// Which share of a shared device is meant.
        #[serde(rename = "shareID")]
        pub share_id: Option<String>,
        /// Conditions.
        pub conditions: Vec<Condition>,
    }
}

words! {
    /// How many devices a request means.
    pub enum DeviceAllocationMode {
        /// `count` of them.
        ExactCount = "ExactCount",
        /// All that match, and each must be free.
        All = "All",
    }

    /// Where the configuration of an allocation comes from.
    pub enum AllocationConfigSource {
        /// Not named: invalid.
        Unset = "",
        /// The device class.
        FromClass = "FromClass",
        /// The claim.
        FromClaim = "FromClaim",
    }
}

/// The API server sets a missing count to 1 where the mode counts.
fn device_count(mode: &DeviceAllocationMode, count: i64) -> i64 {
    match mode {
        DeviceAllocationMode::ExactCount if count == 0 => 1,
        DeviceAllocationMode::ExactCount
        | DeviceAllocationMode::All
        | DeviceAllocationMode::Other(_) => count,
    }
}

impl ExactDeviceRequest {
    /// Number of devices: a missing count is 1 for `ExactCount`. `All` has none (0).
    #[must_use]
    pub fn device_count(&self) -> i64 {
        device_count(&self.allocation_mode, self.count)
    }
}

impl DeviceSubRequest {
    /// Number of devices: a missing count is 1 for `ExactCount`. `All` has none (0).
    #[must_use]
    pub fn device_count(&self) -> i64 {
        device_count(&self.allocation_mode, self.count)
    }
}
