//! `resource.k8s.io/v1` (DRA): what drivers publish and what claims ask. Older versions become these
//! types when they are read (`legacy`). Whether a device serves a request is decided elsewhere.

mod attribute;
mod claim;
mod legacy;
mod slice;

use crate::core::{TaintEffect, Toleration};
use crate::macros::object;
use crate::meta::ObjectMeta;

pub use attribute::DeviceAttribute;
pub use claim::{
    AllocatedDeviceStatus, AllocationConfigSource, AllocationResult, CapacityRequirements,
    CelDeviceSelector, DerivedAttribute, DeviceAllocationConfiguration, DeviceAllocationMode,
    DeviceAllocationResult, DeviceClaim, DeviceClaimConfiguration, DeviceConstraint, DeviceRequest,
    DeviceRequestAllocationResult, DeviceSelector, DeviceSubRequest, ExactDeviceRequest,
    OpaqueDeviceConfiguration, ResourceClaim, ResourceClaimConsumerReference, ResourceClaimSpec,
    ResourceClaimStatus, ResourceClaimTemplate, ResourceClaimTemplateSpec,
};
pub(crate) use legacy::{
    DeviceTaintRuleAlpha, ResourceClaimBeta1, ResourceClaimTemplateBeta1, ResourceSliceBeta1,
};
pub use slice::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, Counter, CounterSet, Device, DeviceCapacity,
    DeviceCounterConsumption, DeviceTaint, ResourcePool, ResourceSlice, ResourceSliceSpec,
};

/// The effect of a device taint: `NoSchedule`, `NoExecute` or `None`; an unknown one acts like
/// `None`.
pub type DeviceTaintEffect = TaintEffect;

/// A toleration of device taints; it has the shape of a pod's toleration.
pub type DeviceToleration = Toleration;

object! {
    /// A class of devices, cluster-scoped.
    pub struct DeviceClass {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What the class means.
        pub spec: DeviceClassSpec,
    }

    /// What a class means.
    pub struct DeviceClassSpec {
        /// All must accept a device.
        pub selectors: Vec<DeviceSelector>,
        /// Configuration that is copied to the claim at allocation.
        pub config: Vec<DeviceClassConfiguration>,
        /// The extended resource that the class serves.
        pub extended_resource_name: Option<String>,
    }

    /// Configuration of a class.
    pub struct DeviceClassConfiguration {
        /// For the driver alone.
        pub opaque: Option<OpaqueDeviceConfiguration>,
    }

    /// A rule by which an administrator taints devices, cluster-scoped.
    pub struct DeviceTaintRule {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// The rule.
        pub spec: DeviceTaintRuleSpec,
    }

    /// Which devices get which taint.
    pub struct DeviceTaintRuleSpec {
        /// Which devices: none matches nothing, an empty one every device.
        pub device_selector: Option<DeviceTaintSelector>,
        /// The taint.
        pub taint: DeviceTaint,
    }

    /// Devices by identity; what is named must all match.
    pub struct DeviceTaintSelector {
        /// Driver.
        pub driver: Option<String>,
        /// Pool.
        pub pool: Option<String>,
        /// Device.
        pub device: Option<String>,
    }
}
