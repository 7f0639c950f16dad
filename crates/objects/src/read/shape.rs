//! Which kinds in which versions are read, and into what: older versions become the newest.

use serde::Deserializer;

use crate::admission::{LimitRange, ResourceQuota, RuntimeClass};
use crate::core::{Namespace, Node, Pod, PriorityClass};
use crate::object::{Kind, Object};
use crate::resource::{
    DeviceClass, DeviceTaintRule, DeviceTaintRuleAlpha, ResourceClaim, ResourceClaimBeta1,
    ResourceClaimTemplate, ResourceClaimTemplateBeta1, ResourceSlice, ResourceSliceBeta1,
};
use crate::storage::{
    CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
    VolumeAttachment,
};
use crate::topology::{API_VERSION, NodeTopology};

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
            Kind::Node => Node::deserialize(from).map(Object::from),
            Kind::Pod => Pod::deserialize(from).map(Object::from),
            Kind::Namespace => Namespace::deserialize(from).map(Object::from),
            Kind::PriorityClass => PriorityClass::deserialize(from).map(Object::from),
            Kind::RuntimeClass => RuntimeClass::deserialize(from).map(Object::from),
            Kind::LimitRange => LimitRange::deserialize(from).map(Object::from),
            Kind::ResourceQuota => ResourceQuota::deserialize(from).map(Object::from),
            Kind::PersistentVolume => PersistentVolume::deserialize(from).map(Object::from),
            Kind::PersistentVolumeClaim => {
                PersistentVolumeClaim::deserialize(from).map(Object::from)
            }
            Kind::StorageClass => StorageClass::deserialize(from).map(Object::from),
            Kind::CSINode => CSINode::deserialize(from).map(Object::from),
            Kind::CSIDriver => CSIDriver::deserialize(from).map(Object::from),
            Kind::CSIStorageCapacity => CSIStorageCapacity::deserialize(from).map(Object::from),
            Kind::VolumeAttachment => VolumeAttachment::deserialize(from).map(Object::from),
            Kind::Workload(kind) => kind.read(from).map(Object::from),
            Kind::NodeTopology => NodeTopology::deserialize(from).map(Object::from),
            Kind::DeviceClass => DeviceClass::deserialize(from).map(Object::from),
            Kind::ResourceSlice if beta => {
                let old = ResourceSliceBeta1::deserialize(from)?;
                Ok(ResourceSlice::from(old).into())
            }
            Kind::ResourceSlice => ResourceSlice::deserialize(from).map(Object::from),
            Kind::ResourceClaim if beta => {
                let old = ResourceClaimBeta1::deserialize(from)?;
                Ok(ResourceClaim::from(old).into())
            }
            Kind::ResourceClaim => ResourceClaim::deserialize(from).map(Object::from),
            Kind::ResourceClaimTemplate if beta => {
                let old = ResourceClaimTemplateBeta1::deserialize(from)?;
                Ok(ResourceClaimTemplate::from(old).into())
            }
            Kind::ResourceClaimTemplate => {
                ResourceClaimTemplate::deserialize(from).map(Object::from)
            }
            Kind::DeviceTaintRule if self.layout == Layout::Alpha3 => {
                let old = DeviceTaintRuleAlpha::deserialize(from)?;
                Ok(DeviceTaintRule::from(old).into())
            }
            Kind::DeviceTaintRule => DeviceTaintRule::deserialize(from).map(Object::from),
        }
    }
}

impl Layout {
    /// The layout of a kind in a group and version; none if it is not read.
    fn find(kind: Kind, api_version: &str) -> Option<Self> {
        Some(match kind {
            Kind::ResourceSlice
            | Kind::ResourceClaim
            | Kind::ResourceClaimTemplate
            | Kind::DeviceClass => match api_version.strip_prefix("resource.k8s.io/")? {
                "v1" | "v1beta2" => Layout::Current,
                "v1beta1" => Layout::Beta1,
                _ => return None,
            },
            Kind::DeviceTaintRule => match api_version.strip_prefix("resource.k8s.io/")? {
                "v1" | "v1beta2" => Layout::Current,
                "v1alpha3" => Layout::Alpha3,
                _ => return None,
            },
            Kind::NodeTopology => (api_version == API_VERSION).then_some(Layout::Current)?,
            Kind::Node
            | Kind::Pod
            | Kind::Namespace
            | Kind::PriorityClass
            | Kind::RuntimeClass
            | Kind::LimitRange
            | Kind::ResourceQuota
            | Kind::PersistentVolume
            | Kind::PersistentVolumeClaim
            | Kind::StorageClass
            | Kind::CSINode
            | Kind::CSIDriver
            | Kind::CSIStorageCapacity
            | Kind::VolumeAttachment => {
                (api_version == kind.api_version()).then_some(Layout::Current)?
            }
            Kind::Workload(kind) => {
                kind.versions().contains(&api_version).then_some(Layout::Current)?
            }
        })
    }
}
