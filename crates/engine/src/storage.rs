//! What is of volumes: PersistentVolumes and their claims, storage classes, what nodes can attach,
//! and what a pod mounts. Label selectors and topologies have become terms over labels, in-tree disks
//! the volumes of the CSI drivers that stand in for them.

use crate::facts::NodeTerm;
use crate::name::{Name, NodeKey, Shared, VolumeClaimKey, VolumeKey};

/// How a volume can be mounted, or is to be: a set of access modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessModes(u8);

impl AccessModes {
    /// `ReadWriteOnce`: by one node.
    pub const ONCE: Self = Self(1);
    /// `ReadOnlyMany`: by many nodes, to read.
    pub const READ_MANY: Self = Self(2);
    /// `ReadWriteMany`: by many nodes.
    pub const MANY: Self = Self(4);
    /// `ReadWriteOncePod`: by one pod.
    pub const ONCE_POD: Self = Self(8);

    /// Both sets together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every mode of `other` is in this set.
    pub fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Its class; empty is none.
    pub class: Name,
    /// Its size, in billionths of a byte.
    pub size_nanos: i128,
    /// A block device, without file system.
    pub block: bool,
    /// Its class of attributes; empty is none.
    pub attributes: Name,
    /// How it can be mounted.
    pub modes: AccessModes,
    /// Labels, sorted by key: what a claim's selector sees.
    pub labels: Box<[(Name, Name)]>,
    /// Its phase is `Available`.
    pub available: bool,
    /// It is being deleted.
    pub deleting: bool,
    /// `spec.claimRef`: the claim that has it or for which it is kept, and that claim's UID where it
    /// is said.
    pub claim: Option<(VolumeClaimKey, Name)>,
    /// From where it can be used; none is everywhere. Terms see labels alone.
    pub nodes: Option<Box<[NodeTerm]>>,
    /// The in-tree plugin that it is of, and from where it can be used on nodes where a CSI driver
    /// stands in for that plugin.
    pub migrated: Option<Box<Migrated>>,
    /// The zones and regions that its labels name, by label.
    pub zones: Box<[(Name, Box<[Name]>)]>,
    /// What attaching it comes to, where it is of a CSI driver.
    pub attach: Option<Attach>,
}

/// What becomes of an in-tree volume where a CSI driver stands in for its plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migrated {
    /// The plugin, such as `kubernetes.io/gce-pd`.
    pub plugin: Name,
    /// As [`Volume::nodes`], in the driver's own labels.
    pub nodes: Option<Box<[NodeTerm]>>,
}

/// A volume as a driver counts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attach {
    /// The CSI driver.
    pub driver: Name,
    /// What the driver calls the volume.
    pub handle: Name,
    /// It is of an in-tree plugin that the driver stands in for: it counts where there is a CSINode.
    pub in_tree: bool,
}

/// A PersistentVolumeClaim, or what one will ask that is to be made with its pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VolumeClaim {
    /// Its UID; empty if it is not created.
    pub uid: Name,
    /// Name and UID of the pod that controls it.
    pub owner: Option<(Name, Name)>,
    /// What it asks for, in billionths of a byte.
    pub size_nanos: Option<i128>,
    /// It asks for a block device.
    pub block: bool,
    /// The class of attributes that it asks for; empty is none.
    pub attributes: Name,
    /// How it is to be mounted.
    pub modes: AccessModes,
    /// Which volumes will do, by their labels; none and an empty one are all.
    pub selector: Option<NodeTerm>,
    /// The class; an empty name is none, and none is the default class.
    pub class: Option<Name>,
    /// `spec.volumeName`.
    pub volume: Option<VolumeKey>,
    /// The binding to [`volume`](Self::volume) is complete.
    pub bound: bool,
    /// Its volume is gone.
    pub lost: bool,
    /// It is being deleted.
    pub deleting: bool,
    /// It does not exist yet. Where its class binds at once and makes volumes, it will have one before
    /// its pods are placed; that it is one that their nodes can use is assumed.
    pub to_come: bool,
    /// The node on which a volume is being made for it.
    pub selected_node: Option<NodeKey>,
}

/// A StorageClass, with the room that its driver reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageClass {
    /// Claims get their volume when a pod is placed (`WaitForFirstConsumer`).
    pub waits: bool,
    /// Claims without a class get this one.
    pub default: bool,
    /// Whether volumes are made where none is there.
    pub provisions: bool,
    /// The driver that makes volumes, and whether it stands in for the in-tree plugin that the class
    /// names.
    pub driver: Option<(Name, bool)>,
    /// Where volumes may be made; none is everywhere.
    pub topologies: Option<Box<[NodeTerm]>>,
    /// The room that the driver reports (CSIStorageCapacity), by name of the object; none where it
    /// reports none.
    pub room: Option<Box<[StorageRoom]>>,
    /// Nodes are scored by what is left of its room and of its volumes (`StorageCapacityScoring`).
    pub scored: bool,
}

/// Room for volumes of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageRoom {
    /// The nodes that have it, by their labels; an empty term is all.
    pub nodes: NodeTerm,
    /// The largest volume that can be made, in bytes.
    pub bytes: i64,
    /// Room in all, in bytes; 0 where that is not said.
    pub capacity_bytes: i64,
}

/// What a node can attach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStorage {
    /// There is a CSINode.
    pub csi: bool,
    /// The drivers installed, sorted, and how many volumes each can attach; none is any number.
    pub drivers: Box<[(Name, Option<i64>)]>,
    /// The in-tree plugins that drivers stand in for.
    pub migrated: Box<[Name]>,
    /// VolumeAttachments: driver and volume.
    pub attached: Box<[(Name, VolumeKey)]>,
}

/// A CSIDriver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageDriver {
    /// Pods that need it stay away from nodes that lack it (`preventPodSchedulingIfMissing`).
    pub must_be_there: bool,
}

/// A volume that a pod mounts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum VolumeUse {
    /// A claim by its name.
    Claim(VolumeClaimKey),
    /// A claim that is made for the pod and goes with it.
    Ephemeral(Ephemeral),
    /// A disk that the pod names itself.
    Disk {
        /// The disk, where two pods may not have it on one node.
        disk: Option<Disk>,
        /// What attaching it comes to.
        attach: Option<Attach>,
    },
}

impl VolumeUse {
    /// The claim, where it has a name.
    pub fn claim(&self) -> Option<&VolumeClaimKey> {
        match self {
            Self::Claim(key) => Some(key),
            Self::Ephemeral(made) => made.claim.as_ref(),
            Self::Disk { .. } => None,
        }
    }
}

/// A claim that is made for a pod and goes with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ephemeral {
    /// Its name; none where that of the pod is not known.
    pub claim: Option<VolumeClaimKey>,
    /// Name and UID of the pod; empty where they are not known.
    pub pod: (Name, Name),
    /// What it will ask, where it is yet to be made with its pod.
    pub planned: Option<Shared<VolumeClaim>>,
}

/// A disk that pods on one node may not share (VolumeRestrictions), and whether the pod mounts it to
/// read alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Disk {
    /// A disk of Google Compute Engine, by its name.
    Gce(Name, bool),
    /// A volume of Amazon's EBS, by its id.
    Ebs(Name),
    /// An iSCSI disk, by its qualified name.
    Iscsi(Name, bool),
    /// A Ceph image: monitors, pool and image.
    Rbd(Box<[Name]>, Name, Name, bool),
}

/// What becomes of a claim that a seat gives a volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeGrant {
    /// Index into the request's volumes.
    pub at: u16,
    /// The volume that it gets; none where one is made for it.
    pub volume: Option<VolumeKey>,
}
