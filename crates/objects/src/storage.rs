//! Volumes: what a pod mounts (`v1`), PersistentVolumes and claims (`v1`), and the classes, drivers,
//! capacities and attachments behind them (`storage.k8s.io/v1`). Of a volume's source only what tells
//! one disk from another is kept; whether a volume can be used is decided elsewhere.

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::core::{ImageName, LabelSelector, NodeSelector, ResourceList, ResourceRequirements};
use crate::macros::{Field, object, words};
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;

/// The annotation, before the field, that names the class of a volume or claim.
pub const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// The annotation of a claim whose binding is complete.
pub const BIND_COMPLETED_ANNOTATION: &str = "pv.kubernetes.io/bind-completed";
/// The annotation of a volume that a controller bound, rather than a user.
pub const BOUND_BY_CONTROLLER_ANNOTATION: &str = "pv.kubernetes.io/bound-by-controller";
/// The annotation of a claim for which a volume is to be made on a node.
pub const SELECTED_NODE_ANNOTATION: &str = "volume.kubernetes.io/selected-node";
/// The annotation of a CSINode: the in-tree plugins that its drivers stand in for.
pub const MIGRATED_PLUGINS_ANNOTATION: &str = "storage.alpha.kubernetes.io/migrated-plugins";
/// The annotation of the class that claims without one get.
pub const DEFAULT_CLASS_ANNOTATION: &str = "storageclass.kubernetes.io/is-default-class";
/// The same by its older name.
pub const BETA_DEFAULT_CLASS_ANNOTATION: &str = "storageclass.beta.kubernetes.io/is-default-class";

object! {
    /// A volume of a pod.
    pub struct Volume {
        /// Name in the pod.
        pub name: String,
        /// A claim in the pod's namespace.
        pub persistent_volume_claim: Option<PersistentVolumeClaimVolumeSource>,
        /// A claim that is made for the pod and goes with it.
        pub ephemeral: Option<EphemeralVolumeSource>,
        /// A disk of Google Compute Engine that the pod names itself.
        pub gce_persistent_disk: Option<GcePersistentDisk>,
        /// A disk of Amazon EC2 that the pod names itself.
        pub aws_elastic_block_store: Option<ElasticBlockStore>,
        /// A disk of Azure that the pod names itself.
        pub azure_disk: Option<AzureDisk>,
        /// A disk of OpenStack that the pod names itself.
        pub cinder: Option<NumberedVolume>,
        /// A volume of Portworx that the pod names itself.
        pub portworx_volume: Option<NumberedVolume>,
        /// An iSCSI disk.
        pub iscsi: Option<IscsiVolumeSource>,
        /// A Ceph block device.
        pub rbd: Option<RbdVolumeSource>,
        /// A path of the node.
        pub host_path: Option<HostPathVolumeSource>,
        /// The files of an image.
        pub image: Option<ImageVolumeSource>,
    }

    /// The files of an image.
    pub struct ImageVolumeSource {
        /// The image.
        pub reference: ImageName,
    }

    /// A path of the node.
    pub struct HostPathVolumeSource {
        /// The path.
        pub path: String,
    }

    /// The use of a claim.
    pub struct PersistentVolumeClaimVolumeSource {
        /// Name of the claim.
        pub claim_name: String,
    }

    /// A claim that is made for a pod.
    pub struct EphemeralVolumeSource {
        /// What the claim asks for.
        pub volume_claim_template: Option<PersistentVolumeClaimTemplate>,
    }

    /// What a claim that is made for a pod asks for.
    pub struct PersistentVolumeClaimTemplate {
        /// Labels and annotations of the claim.
        pub metadata: ObjectMeta,
        /// What it asks for.
        pub spec: PersistentVolumeClaimSpec,
    }

    /// A persistent disk of Google Compute Engine.
    pub struct GcePersistentDisk {
        /// Its name.
        pub pd_name: String,
        /// Mounted for reading alone.
        pub read_only: bool,
    }

    /// A volume of Amazon's Elastic Block Store.
    pub struct ElasticBlockStore {
        /// Its id.
        #[serde(rename = "volumeID")]
        pub volume_id: String,
    }

    /// A disk of Azure.
    pub struct AzureDisk {
        /// Its address.
        #[serde(rename = "diskURI")]
        pub disk_uri: String,
        /// How it is kept: `Managed`, or older ways that no CSI driver knows.
        pub kind: String,
    }

    /// A volume that its id names.
    pub struct NumberedVolume {
        /// Its id.
        #[serde(rename = "volumeID")]
        pub volume_id: String,
    }

    /// An iSCSI disk.
    pub struct IscsiVolumeSource {
        /// Qualified name of the target.
        pub iqn: String,
        /// Mounted for reading alone.
        pub read_only: bool,
    }

    /// A Ceph block device.
    pub struct RbdVolumeSource {
        /// Ceph's monitors.
        pub monitors: Vec<String>,
        /// Pool; empty is `rbd`.
        pub pool: String,
        /// Image.
        pub image: String,
        /// Mounted for reading alone.
        pub read_only: bool,
    }

    /// A volume, cluster-scoped.
    pub struct PersistentVolume {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What it is.
        pub spec: PersistentVolumeSpec,
        /// What is known of it.
        pub status: PersistentVolumeStatus,
    }

    /// What a volume is.
    pub struct PersistentVolumeSpec {
        /// Its size.
        pub capacity: ResourceList,
        /// How it can be mounted.
        pub access_modes: Vec<String>,
        /// The claim that has it, or for which it is kept.
        pub claim_ref: Option<ObjectReference>,
        /// Class.
        pub storage_class_name: String,
        /// Whether it has a file system; none is that it has.
        pub volume_mode: Option<VolumeMode>,
        /// Class of attributes.
        pub volume_attributes_class_name: Option<String>,
        /// The nodes from which it can be used.
        pub node_affinity: Option<VolumeNodeAffinity>,
        /// The volume of a CSI driver.
        pub csi: Option<CsiVolumeSource>,
        /// A disk of Google Compute Engine.
        pub gce_persistent_disk: Option<GcePersistentDisk>,
        /// A disk of Amazon EC2.
        pub aws_elastic_block_store: Option<ElasticBlockStore>,
        /// A disk of Azure.
        pub azure_disk: Option<AzureDisk>,
        /// A disk of OpenStack.
        pub cinder: Option<NumberedVolume>,
        /// A volume of Portworx.
        pub portworx_volume: Option<NumberedVolume>,
    }

    /// The nodes from which a volume can be used.
    pub struct VolumeNodeAffinity {
        /// What must hold; none is no condition.
        pub required: Option<NodeSelector>,
    }

    /// A volume of a CSI driver.
    pub struct CsiVolumeSource {
        /// Driver.
        pub driver: String,
        /// What the driver calls the volume.
        pub volume_handle: String,
    }

    /// What is known of a volume.
    pub struct PersistentVolumeStatus {
        /// Where in its life it is.
        pub phase: VolumePhase,
    }

    /// A pointer to an object.
    pub struct ObjectReference {
        /// API group and version.
        pub api_version: String,
        /// Kind.
        pub kind: String,
        /// Namespace.
        pub namespace: String,
        /// Name.
        pub name: String,
        /// UID; empty for any object of that name.
        pub uid: String,
        /// Version of the object.
        pub resource_version: String,
    }

    /// A claim of a volume.
    pub struct PersistentVolumeClaim {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PersistentVolumeClaimSpec,
        /// What is.
        pub status: PersistentVolumeClaimStatus,
    }

    /// What a claim asks for.
    pub struct PersistentVolumeClaimSpec {
        /// How it is to be mounted.
        pub access_modes: Vec<String>,
        /// Which volumes will do; none is every one.
        pub selector: Option<LabelSelector>,
        /// How large it must be.
        pub resources: ResourceRequirements,
        /// The volume that it has, or that it wants.
        pub volume_name: String,
        /// Class; none is the default, and an empty one that it wants none.
        pub storage_class_name: Option<String>,
        /// Whether it needs a file system; none is that it does.
        pub volume_mode: Option<VolumeMode>,
        /// Class of attributes.
        pub volume_attributes_class_name: Option<String>,
    }

    /// What is known of a claim.
    pub struct PersistentVolumeClaimStatus {
        /// Where in its life it is.
        pub phase: ClaimPhase,
    }

    /// A class of volumes, cluster-scoped.
    pub struct StorageClass {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// Who makes volumes of the class.
        pub provisioner: String,
        /// When a claim gets its volume; none is at once.
        pub volume_binding_mode: Option<VolumeBindingMode>,
        /// Where volumes may be made; empty is everywhere.
        pub allowed_topologies: Vec<TopologySelectorTerm>,
    }

    /// Requirements on a node's labels that must all hold.
    pub struct TopologySelectorTerm {
        /// The requirements.
        pub match_label_expressions: Vec<TopologySelectorLabelRequirement>,
    }

    /// One requirement: the label's value is one of these.
    pub struct TopologySelectorLabelRequirement {
        /// Label.
        pub key: String,
        /// Values.
        pub values: Vec<String>,
    }

    /// The CSI drivers of a node, cluster-scoped and named as the node.
    pub struct CSINode {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// The drivers.
        pub spec: CsiNodeSpec,
    }

    /// The drivers of a node.
    pub struct CsiNodeSpec {
        /// The drivers.
        pub drivers: Vec<CsiNodeDriver>,
    }

    /// A driver of a node.
    pub struct CsiNodeDriver {
        /// Name.
        pub name: String,
        /// How many volumes it can attach there.
        pub allocatable: Option<VolumeNodeResources>,
    }

    /// How many volumes a driver can attach to a node.
    pub struct VolumeNodeResources {
        /// The number; none is that there is no limit.
        pub count: Option<i32>,
    }

    /// A CSI driver, cluster-scoped.
    pub struct CSIDriver {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What it can do.
        pub spec: CsiDriverSpec,
    }

    /// What a driver can do.
    pub struct CsiDriverSpec {
        /// Whether it says by CSIStorageCapacity how much room there is.
        pub storage_capacity: Option<bool>,
        /// Whether pods that need it stay away from nodes where it is not installed.
        pub prevent_pod_scheduling_if_missing: Option<bool>,
    }

    /// How much room there is for volumes of a class, on some of the nodes.
    pub struct CSIStorageCapacity {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// The nodes; none is that none can use it.
        pub node_topology: Option<LabelSelector>,
        /// Class.
        pub storage_class_name: String,
        /// Room in all.
        pub capacity: Option<Quantity>,
        /// The largest volume, where that is another limit.
        pub maximum_volume_size: Option<Quantity>,
    }

    /// A volume that is, or is to be, attached to a node, cluster-scoped.
    pub struct VolumeAttachment {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is attached to which node.
        pub spec: VolumeAttachmentSpec,
    }

    /// What is attached to which node.
    pub struct VolumeAttachmentSpec {
        /// The CSI driver that does it.
        pub attacher: String,
        /// The node.
        pub node_name: String,
        /// The volume.
        pub source: VolumeAttachmentSource,
    }

    /// The volume of an attachment.
    pub struct VolumeAttachmentSource {
        /// Name of the PersistentVolume.
        pub persistent_volume_name: Option<String>,
    }
}

words! {
    /// Where in its life a volume is.
    pub enum VolumePhase {
        /// Not made yet, or not known.
        Pending = "Pending",
        /// Nobody has it.
        Available = "Available",
        /// A claim has it.
        Bound = "Bound",
        /// Its claim is gone, and it was not cleaned up.
        Released = "Released",
        /// It could not be cleaned up.
        Failed = "Failed",
    }

    /// Where in its life a claim is.
    pub enum ClaimPhase {
        /// It has no volume yet.
        Pending = "Pending",
        /// It has a volume.
        Bound = "Bound",
        /// It had a volume that is gone.
        Lost = "Lost",
    }

    /// Whether a volume has a file system.
    pub enum VolumeMode {
        /// It has.
        Filesystem = "Filesystem",
        /// It is a block device.
        Block = "Block",
    }

    /// When a claim gets its volume.
    pub enum VolumeBindingMode {
        /// At once.
        Immediate = "Immediate",
        /// When a pod that uses it is placed.
        WaitForFirstConsumer = "WaitForFirstConsumer",
    }
}

/// The volumes of a pod that decide where it can be, those that are paths of its node, and those that
/// are images; of the others (`emptyDir`, `configMap`, …) only the names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodVolumes {
    /// Those that decide where the pod can be.
    pub placed: Vec<Volume>,
    /// Those that are paths of its node.
    pub of_node: Vec<HostPath>,
    /// Those that are the files of an image: nodes that have it are liked better.
    pub of_images: Vec<ImageVolume>,
    /// What the others are called.
    pub others: Vec<Box<str>>,
}

impl PodVolumes {
    /// What they are called in the pod, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let placed = self.placed.iter().map(|volume| volume.name.as_str());
        let of_node = self.of_node.iter().map(|volume| &*volume.name);
        let of_images = self.of_images.iter().map(|volume| &*volume.name);
        placed.chain(of_node).chain(of_images).chain(self.others.iter().map(|name| &**name))
    }
}

/// A volume that is the files of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageVolume {
    /// Name in the pod.
    pub name: Box<str>,
    /// The image.
    pub image: ImageName,
}

/// A volume that is a path of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPath {
    /// Its place among the volumes of the pod.
    pub index: usize,
    /// Name in the pod.
    pub name: Box<str>,
    /// The path.
    pub path: Box<str>,
}

impl Field<'_> for PodVolumes {}

impl Serialize for PodVolumes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of_node = self.of_node.iter().map(|volume| Volume {
            name: volume.name.to_string(),
            host_path: Some(HostPathVolumeSource { path: volume.path.to_string() }),
            ..Volume::default()
        });
        let of_images = self.of_images.iter().map(|volume| Volume {
            name: volume.name.to_string(),
            image: Some(ImageVolumeSource { reference: volume.image.clone() }),
            ..Volume::default()
        });
        let others = self.others.iter();
        let others = others.map(|name| Volume { name: name.to_string(), ..Volume::default() });
        let all = self.placed.iter().cloned().chain(of_node).chain(of_images).chain(others);
        serializer.collect_seq(all)
    }
}

impl<'de> Deserialize<'de> for PodVolumes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keep;
        impl<'de> Visitor<'de> for Keep {
            type Value = PodVolumes;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<PodVolumes, A::Error> {
                let mut kept = PodVolumes::default();
                let mut index = 0;
                while let Some(volume) = entries.next_element::<Volume>()? {
                    if let Some(source) = volume.host_path {
                        let (name, path) = (volume.name.into(), source.path.into());
                        kept.of_node.push(HostPath { index, name, path });
                    } else if let Some(source) = volume.image {
                        let (name, image) = (volume.name.into(), source.reference);
                        kept.of_images.push(ImageVolume { name, image });
                    } else if volume.decides() {
                        kept.placed.push(volume);
                    } else {
                        kept.others.push(volume.name.into());
                    }
                    index += 1;
                }
                Ok(kept)
            }
        }
        deserializer.deserialize_seq(Keep)
    }
}

/// A disk of one of the in-tree plugins that a CSI driver stands in for.
#[derive(Clone, Copy, Debug)]
pub enum InTreeDisk<'a> {
    /// Google Compute Engine.
    Gce(&'a GcePersistentDisk),
    /// Amazon EC2.
    Aws(&'a ElasticBlockStore),
    /// Azure.
    Azure(&'a AzureDisk),
    /// OpenStack.
    Cinder(&'a NumberedVolume),
    /// Portworx.
    Portworx(&'a NumberedVolume),
}

macro_rules! disk {
    ($of:expr) => {
        None.or($of.gce_persistent_disk.as_ref().map(InTreeDisk::Gce))
            .or($of.aws_elastic_block_store.as_ref().map(InTreeDisk::Aws))
            .or($of.azure_disk.as_ref().map(InTreeDisk::Azure))
            .or($of.cinder.as_ref().map(InTreeDisk::Cinder))
            .or($of.portworx_volume.as_ref().map(InTreeDisk::Portworx))
    };
}

impl PersistentVolumeSpec {
    /// The disk of an in-tree plugin that it is.
    #[must_use]
    pub fn disk(&self) -> Option<InTreeDisk<'_>> {
        disk!(self)
    }
}

impl Volume {
    /// The disk of an in-tree plugin that it is.
    #[must_use]
    pub fn disk(&self) -> Option<InTreeDisk<'_>> {
        disk!(self)
    }

    /// Whether it is of a kind that decides where its pod can be.
    fn decides(&self) -> bool {
        self.persistent_volume_claim.is_some()
            || self.ephemeral.is_some()
            || self.disk().is_some()
            || self.iscsi.is_some()
            || self.rbd.is_some()
    }
}
