//! Which kinds in which versions are read, and into what: older versions become the newest.

use serde::{Deserialize, Deserializer};

use crate::admission::{LimitRange, ResourceQuota, RuntimeClass};
use crate::core::{
    Namespace, Node, Pod, PriorityClass, ReplicationController, Service, ServiceAccount,
};
use crate::object::{Kind, Object};
use crate::resource::{
    DeviceClass, DeviceTaintRule, DeviceTaintRuleAlpha, ResourceClaim, ResourceClaimBeta1,
    ResourceClaimTemplate, ResourceClaimTemplateBeta1, ResourceSlice, ResourceSliceBeta1,
};
use crate::storage::{
    CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
    VolumeAttachment,
};
use crate::topology::{NodeTopology, Placement};

/// A kind in the version in which it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    kind: Kind,
    layout: Layout,
}

/// In which of its layouts a kind is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// As the types have it.
    Current,
    /// `resource.k8s.io/v1beta1`.
    Beta1,
    /// `resource.k8s.io/v1alpha3`.
    Alpha3,
}

impl Shape {
    /// The shape of a group, version and kind; none if it is not read.
    pub(super) fn find(api_version: &str, kind: &str) -> Option<Self> {
        let mut named = Kind::ALL.iter().copied().filter(|known| known.as_str() == kind);
        named.find_map(|kind| Some(Self { kind, layout: Layout::find(kind, api_version)? }))
    }

    pub(super) const fn kind(self) -> Kind {
        self.kind
    }

    /// Reads an object of this shape.
    pub(super) fn read<'de, D: Deserializer<'de>>(self, from: D) -> Result<Object, D::Error> {
        let beta = self.layout == Layout::Beta1;
        match self.kind {
            Kind::Node => typed::<Node, D>(from).map(Object::from),
            Kind::Pod => typed::<Pod, D>(from).map(Object::from),
            Kind::Namespace => typed::<Namespace, D>(from).map(Object::from),
            Kind::Service => typed::<Service, D>(from).map(Object::from),
            Kind::ReplicationController => {
                typed::<ReplicationController, D>(from).map(Object::from)
            }
            Kind::ServiceAccount => typed::<ServiceAccount, D>(from).map(Object::from),
            Kind::PriorityClass => typed::<PriorityClass, D>(from).map(Object::from),
            Kind::RuntimeClass => typed::<RuntimeClass, D>(from).map(Object::from),
            Kind::LimitRange => typed::<LimitRange, D>(from).map(Object::from),
            Kind::ResourceQuota => typed::<ResourceQuota, D>(from).map(Object::from),
            Kind::PersistentVolume => typed::<PersistentVolume, D>(from).map(Object::from),
            Kind::PersistentVolumeClaim => {
                typed::<PersistentVolumeClaim, D>(from).map(Object::from)
            }
            Kind::StorageClass => typed::<StorageClass, D>(from).map(Object::from),
            Kind::CSINode => typed::<CSINode, D>(from).map(Object::from),
            Kind::CSIDriver => typed::<CSIDriver, D>(from).map(Object::from),
            Kind::CSIStorageCapacity => typed::<CSIStorageCapacity, D>(from).map(Object::from),
            Kind::VolumeAttachment => typed::<VolumeAttachment, D>(from).map(Object::from),
            Kind::Workload(kind) => kind.read(from).map(Object::from),
            Kind::Scheduling(kind) => kind.read(from).map(Object::from),
            Kind::NodeTopology => typed::<NodeTopology, D>(from).map(Object::from),
            Kind::Placement => typed::<Placement, D>(from).map(Object::from),
            Kind::DeviceClass => typed::<DeviceClass, D>(from).map(Object::from),
            Kind::ResourceSlice if beta => {
                let old = typed::<ResourceSliceBeta1, D>(from)?;
                Ok(ResourceSlice::from(old).into())
            }
            Kind::ResourceSlice => typed::<ResourceSlice, D>(from).map(Object::from),
            Kind::ResourceClaim if beta => {
                let old = typed::<ResourceClaimBeta1, D>(from)?;
                Ok(ResourceClaim::from(old).into())
            }
            Kind::ResourceClaim => typed::<ResourceClaim, D>(from).map(Object::from),
            Kind::ResourceClaimTemplate if beta => {
                let old = typed::<ResourceClaimTemplateBeta1, D>(from)?;
                Ok(ResourceClaimTemplate::from(old).into())
            }
            Kind::ResourceClaimTemplate => {
                typed::<ResourceClaimTemplate, D>(from).map(Object::from)
            }
            Kind::DeviceTaintRule if self.layout == Layout::Alpha3 => {
                let old = typed::<DeviceTaintRuleAlpha, D>(from)?;
                Ok(DeviceTaintRule::from(old).into())
            }
            Kind::DeviceTaintRule => typed::<DeviceTaintRule, D>(from).map(Object::from),
        }
    }
}

/// Reads a value by the trait: the function of its own that serde derives takes a list as well.
fn typed<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::deserialize(from)
}

impl Layout {
    /// The layout of a kind in a group and version; none if it is not read.
    fn find(kind: Kind, api_version: &str) -> Option<Self> {
        let read = kind.versions().iter().find(|version| **version == api_version)?;
        Some(match *read {
            "resource.k8s.io/v1beta1" => Self::Beta1,
            "resource.k8s.io/v1alpha3" => Self::Alpha3,
            _ => Self::Current,
        })
    }
}
