//! Any one of the objects that are read, and how objects are referred to.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::admission::{LimitRange, ResourceQuota, RuntimeClass};
use crate::core::{
    Namespace, Node, Pod, PriorityClass, ReplicationController, Service, ServiceAccount,
};
use crate::meta::ObjectMeta;
use crate::resource::{
    DeviceClaim, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use crate::scheduling::{Scheduling, SchedulingKind};
use crate::storage::{
    CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
    VolumeAttachment,
};
use crate::topology::{NodeTopology, Placement};
use crate::workload::{Workload, WorkloadKind};

/// Declares the kinds that are read: the enums and their tables from one list.
macro_rules! kinds {
    ($( $(#[$meta:meta])* $name:ident: $api_version:literal $(| $older:literal)*, $scope:ident; )*) => {
        /// The kind of an object that is read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $( $(#[$meta])* $name, )*
            /// A workload.
            Workload(WorkloadKind),
            /// What a scheduler is told of groups and of places.
            Scheduling(SchedulingKind),
        }

        /// An object that is read. What is kept of it elsewhere shares it: a clone is a counter, and
        /// what is changed is copied first.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Object {
            $( $(#[$meta])* $name(Arc<$name>), )*
            /// A workload.
            Workload(Workload),
            /// What a scheduler is told of groups and of places.
            Scheduling(Scheduling),
        }

        impl Kind {
            /// The kinds that are read and are no workloads.
            const OTHERS: &'static [Self] = &[$( Self::$name, )*];

            /// All kinds that are read.
            pub const ALL: &'static [Self] = &Self::joined();

            /// The kind's name as manifests spell it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$name => stringify!($name), )*
                    Self::Workload(kind) => kind.as_str(),
                    Self::Scheduling(kind) => kind.as_str(),
                }
            }

            /// Group and version in which objects of the kind are kept and written.
            #[must_use]
            pub const fn api_version(self) -> &'static str {
                match self {
                    $( Self::$name => $api_version, )*
                    Self::Workload(kind) => kind.versions()[0],
                    Self::Scheduling(kind) => kind.versions()[0],
                }
            }

            /// Groups and versions in which objects of the kind are read, that of
            /// [`api_version`](Self::api_version) first.
            #[must_use]
            pub const fn versions(self) -> &'static [&'static str] {
                match self {
                    $( Self::$name => &[$api_version $(, $older)*], )*
                    Self::Workload(kind) => kind.versions(),
                    Self::Scheduling(kind) => kind.versions(),
                }
            }

            /// Whether objects of the kind live in a namespace.
            #[must_use]
            pub const fn is_namespaced(self) -> bool {
                match self {
                    $( Self::$name => kinds!(@$scope), )*
                    Self::Workload(kind) => kind.is_namespaced(),
                    Self::Scheduling(kind) => kind.is_namespaced(),
                }
            }
        }

        impl Object {
            /// The object's kind.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self {
                    $( Self::$name(_) => Kind::$name, )*
                    Self::Workload(workload) => Kind::Workload(workload.kind()),
                    Self::Scheduling(object) => Kind::Scheduling(object.kind()),
                }
            }

            /// The object's metadata.
            #[must_use]
            pub fn metadata(&self) -> &ObjectMeta {
                match self {
                    $( Self::$name(object) => &object.metadata, )*
                    Self::Workload(workload) => workload.metadata(),
                    Self::Scheduling(object) => object.metadata(),
                }
            }

            /// The object's metadata, to be changed.
            pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
                match self {
                    $( Self::$name(object) => &mut Arc::make_mut(object).metadata, )*
                    Self::Workload(workload) => workload.metadata_mut(),
                    Self::Scheduling(object) => object.metadata_mut(),
                }
            }
        }

        $(
            impl From<$name> for Object {
                fn from(object: $name) -> Self {
                    Self::$name(Arc::new(object))
                }
            }
        )*

        impl Serialize for Object {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$name(object) => typed(self.kind(), &**object, serializer), )*
                    Self::Workload(workload) => typed(self.kind(), workload, serializer),
                    Self::Scheduling(object) => typed(self.kind(), object, serializer),
                }
            }
        }
    };
    (@Namespaced) => { true };
    (@Cluster) => { false };
}

kinds! {
    /// A node.
    Node: "v1", Cluster;
    /// A pod.
    Pod: "v1", Namespaced;
    /// A namespace.
    Namespace: "v1", Cluster;
    /// Pods behind one address.
    Service: "v1", Namespaced;
    /// Pods that are kept at a number.
    ReplicationController: "v1", Namespaced;
    /// Whom pods run as.
    ServiceAccount: "v1", Namespaced;
    /// A priority class.
    PriorityClass: "scheduling.k8s.io/v1", Cluster;
    /// A runtime class.
    RuntimeClass: "node.k8s.io/v1", Cluster;
    /// Bounds and defaults of a namespace's pods.
    LimitRange: "v1", Namespaced;
    /// What a namespace may use.
    ResourceQuota: "v1", Namespaced;
    /// A slice of a pool of devices.
    ResourceSlice: "resource.k8s.io/v1" | "resource.k8s.io/v1beta2" | "resource.k8s.io/v1beta1", Cluster;
    /// A claim of devices.
    ResourceClaim: "resource.k8s.io/v1" | "resource.k8s.io/v1beta2" | "resource.k8s.io/v1beta1", Namespaced;
    /// A template of claims.
    ResourceClaimTemplate: "resource.k8s.io/v1" | "resource.k8s.io/v1beta2" | "resource.k8s.io/v1beta1", Namespaced;
    /// A class of devices.
    DeviceClass: "resource.k8s.io/v1" | "resource.k8s.io/v1beta2" | "resource.k8s.io/v1beta1", Cluster;
    /// A rule that taints devices.
    DeviceTaintRule: "resource.k8s.io/v1" | "resource.k8s.io/v1beta2" | "resource.k8s.io/v1alpha3", Cluster;
    /// A volume.
    PersistentVolume: "v1", Cluster;
    /// A claim of a volume.
    PersistentVolumeClaim: "v1", Namespaced;
    /// A class of volumes.
    StorageClass: "storage.k8s.io/v1", Cluster;
    /// The CSI drivers of a node.
    CSINode: "storage.k8s.io/v1", Cluster;
    /// A CSI driver.
    CSIDriver: "storage.k8s.io/v1", Cluster;
    /// Room for volumes of a class.
    CSIStorageCapacity: "storage.k8s.io/v1", Namespaced;
    /// A volume attached to a node.
    VolumeAttachment: "storage.k8s.io/v1", Cluster;
    /// The links of a node.
    NodeTopology: "phalanx.dev/v1alpha1", Cluster;
    /// The seats of a group.
    Placement: "phalanx.dev/v1alpha1", Namespaced;
}

/// An object with the two fields that its type does not hold.
fn typed<T: Serialize, S: Serializer>(
    kind: Kind,
    object: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed<'a, T> {
        api_version: &'static str,
        kind: &'static str,
        #[serde(flatten)]
        object: &'a T,
    }
    Typed { api_version: kind.api_version(), kind: kind.as_str(), object }.serialize(serializer)
}

impl Kind {
    const fn joined() -> [Self; Self::KINDS] {
        let mut all = [Self::Node; Self::KINDS];
        let mut at = 0;
        while at < all.len() {
            all[at] = if at < Self::OTHERS.len() {
                Self::OTHERS[at]
            } else if at < Self::OTHERS.len() + WorkloadKind::ALL.len() {
                Self::Workload(WorkloadKind::ALL[at - Self::OTHERS.len()])
            } else {
                let before = Self::OTHERS.len() + WorkloadKind::ALL.len();
                Self::Scheduling(SchedulingKind::ALL[at - before])
            };
            at += 1;
        }
        all
    }

    /// How many there are.
    const KINDS: usize = Self::OTHERS.len() + WorkloadKind::ALL.len() + SchedulingKind::ALL.len();

    /// The kinds that make pods, or say how pods are made.
    pub fn workloads() -> impl Iterator<Item = Self> + Clone {
        WorkloadKind::ALL.iter().copied().map(Self::Workload)
    }
}

impl From<Workload> for Object {
    fn from(workload: Workload) -> Self {
        Self::Workload(workload)
    }
}

impl From<Scheduling> for Object {
    fn from(object: Scheduling) -> Self {
        Self::Scheduling(object)
    }
}

impl Object {
    /// The object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata().name
    }

    /// The object's namespace; empty for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.metadata().namespace
    }

    /// What a ResourceClaim or a ResourceClaimTemplate asks for, and the path of it in the object.
    #[must_use]
    pub fn device_claim(&self) -> Option<(&DeviceClaim, &'static str)> {
        match self {
            Self::ResourceClaim(claim) => Some((&claim.spec.devices, "spec.devices")),
            Self::ResourceClaimTemplate(template) => {
                Some((&template.spec.spec.devices, "spec.spec.devices"))
            }
            Self::Node(_)
            | Self::Pod(_)
            | Self::Namespace(_)
            | Self::Service(_)
            | Self::ReplicationController(_)
            | Self::ServiceAccount(_)
            | Self::PriorityClass(_)
            | Self::RuntimeClass(_)
            | Self::LimitRange(_)
            | Self::ResourceQuota(_)
            | Self::ResourceSlice(_)
            | Self::DeviceClass(_)
            | Self::DeviceTaintRule(_)
            | Self::PersistentVolume(_)
            | Self::PersistentVolumeClaim(_)
            | Self::StorageClass(_)
            | Self::CSINode(_)
            | Self::CSIDriver(_)
            | Self::CSIStorageCapacity(_)
            | Self::VolumeAttachment(_)
            | Self::NodeTopology(_)
            | Self::Placement(_)
            | Self::Scheduling(_)
            | Self::Workload(_) => None,
        }
    }

    /// What the object is referred to by.
    #[must_use]
    pub fn reference(&self) -> ObjectRef {
        ObjectRef {
            kind: self.kind(),
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
        }
    }
}

/// A reference to an object by kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Kind.
    pub kind: Kind,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl fmt::Display for ObjectRef {
    /// `Pod team-a/trainer`, `Node n1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            write!(f, "{} without a name", self.kind)
        } else if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
