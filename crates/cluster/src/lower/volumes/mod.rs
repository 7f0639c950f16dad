//! Volumes: from PersistentVolumes, claims, classes, drivers and attachments to the engine's facts.
//!
//! Each object becomes its fact when it is read; only what several objects say together (a class with
//! its driver's room, a node with its attachments) is put together again when one of them changes.
//! What a pod mounts stands in its shape as the pod says it, and gets its names with the pod.

mod claim;
mod mount;
mod translate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_engine::{
    AccessModes, Change, Migrated, Name, NodeKey, NodeRequirement, NodeStorage, NodeTerm, Scoped,
    StorageClass, StorageDriver, StorageRoom, Volume, VolumeClaim, VolumeClaimKey, VolumeKey,
};
use phalanx_objects::core::{LabelSelector, LabelSelectorOperator, LabelSelectorRequirement};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::storage::{
    BETA_DEFAULT_CLASS_ANNOTATION, CLASS_ANNOTATION, CSIDriver, CSINode, CSIStorageCapacity,
    DEFAULT_CLASS_ANNOTATION, MIGRATED_PLUGINS_ANNOTATION, PersistentVolume, TopologySelectorTerm,
    VolumeAttachment, VolumeBindingMode, VolumeMode, VolumePhase,
};
use phalanx_objects::{Kind, Quantity};

use super::Dependent;
use super::Lowering;
use super::intern::{Names, nanos};
use super::record::Header;
use super::rules;
use super::settle::object;
use crate::compat::Gate;
use crate::finding::{Finding, Severity};
use translate::Translated;

pub(crate) use mount::{Mounter, PodVolume, pod_volumes, uses, volume_claim};

/// The resource that says how large a volume is.
const STORAGE: &str = "storage";
/// The provisioner of classes whose volumes nobody makes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Labels of a volume that say in which zones and regions it is.
pub(crate) const ZONES: [&str; 4] = [
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// What is kept of the objects about volumes.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub(super) volumes: BTreeMap<Name, (Header, Volume)>,
    pub(super) claims: BTreeMap<VolumeClaimKey, (Header, VolumeClaim)>,
    pub(super) classes: BTreeMap<Name, ClassRecord>,
    pub(super) csi_nodes: BTreeMap<Name, (Header, NodeStorage)>,
    pub(super) drivers: BTreeMap<Name, DriverRecord>,
    pub(super) capacities: BTreeMap<Scoped, RoomRecord>,
    pub(super) attachments: BTreeMap<Name, AttachmentRecord>,
    dirty: Dirty,
    /// The classes that the engine has been told of.
    shown: BTreeSet<Name>,
}

/// What must be told again.
#[derive(Clone, Debug, Default)]
struct Dirty {
    volumes: BTreeSet<Name>,
    claims: BTreeSet<VolumeClaimKey>,
    classes: bool,
    drivers: BTreeSet<Name>,
    nodes: BTreeSet<Name>,
}

/// A StorageClass.
#[derive(Clone, Debug)]
pub(super) struct ClassRecord {
    pub(super) header: Header,
    /// Without the room that its driver reports.
    class: StorageClass,
    provisioner: Name,
    /// Claims without a class get this one, as far as the object says.
    default: bool,
}

/// A CSIDriver.
#[derive(Clone, Debug)]
pub(super) struct DriverRecord {
    pub(super) header: Header,
    /// It reports its room.
    reports: bool,
    fact: StorageDriver,
}

/// A CSIStorageCapacity.
#[derive(Clone, Debug)]
pub(super) struct RoomRecord {
    pub(super) header: Header,
    class: Name,
    /// None where nobody can use it.
    room: Option<StorageRoom>,
}

/// A VolumeAttachment.
#[derive(Clone, Debug)]
pub(super) struct AttachmentRecord {
    pub(super) header: Header,
    node: Name,
    attached: Option<(Name, VolumeKey)>,
}

impl Lowering {
    pub(super) fn volume(&mut self, volume: &PersistentVolume, header: Header) {
        let names = &mut self.interned.names;
        let fact = read_volume(volume, names);
        let name = names.get(&volume.metadata.name);
        self.storage.dirty.volumes.insert(name.clone());
        self.storage.volumes.insert(name, (header, fact));
    }

    pub(super) fn storage_class(
        &mut self,
        class: &phalanx_objects::storage::StorageClass,
        header: Header,
    ) {
        let names = &mut self.interned.names;
        let topologies = &class.allowed_topologies;
        let says = |annotation: &str| {
            class.metadata.annotations.get(annotation).is_some_and(|value| value == "true")
        };
        let provisioner = names.get(&class.provisioner);
        let record = ClassRecord {
            header,
            class: StorageClass {
                waits: class.volume_binding_mode == Some(VolumeBindingMode::WaitForFirstConsumer),
                default: false,
                provisions: !provisioner.is_empty() && provisioner.as_str() != NO_PROVISIONER,
                driver: translate::driver_of(&provisioner, names),
                topologies: (!topologies.is_empty())
                    .then(|| topologies.iter().map(|term| topology(term, names)).collect()),
                room: None,
                scored: self.compat.is_on(Gate::StorageCapacityScoring),
            },
            provisioner,
            default: says(DEFAULT_CLASS_ANNOTATION) || says(BETA_DEFAULT_CLASS_ANNOTATION),
        };
        let name = names.get(&class.metadata.name);
        self.storage.dirty.classes = true;
        self.storage.classes.insert(name, record);
    }

    pub(super) fn csi_driver(&mut self, driver: &CSIDriver, header: Header) {
        let gate = self.compat.is_on(Gate::VolumeLimitScaling);
        let must = gate && driver.spec.prevent_pod_scheduling_if_missing == Some(true);
        let record = DriverRecord {
            header,
            reports: driver.spec.storage_capacity == Some(true),
            fact: StorageDriver { must_be_there: must },
        };
        let name = self.interned.names.get(&driver.metadata.name);
        self.storage.dirty.classes = true;
        self.storage.dirty.drivers.insert(name.clone());
        self.storage.drivers.insert(name, record);
    }

    pub(super) fn csi_node(&mut self, node: &CSINode, header: Header) {
        let names = &mut self.interned.names;
        let mut drivers: Vec<(Name, Option<i64>)> = Vec::new();
        for driver in &node.spec.drivers {
            let limit = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count);
            drivers.push((names.get(&driver.name), limit.map(i64::from)));
        }
        drivers.sort_unstable();
        let migrated = node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION);
        let migrated = migrated.into_iter().flat_map(|all| all.split(','));
        let fact = NodeStorage {
            csi: true,
            drivers: drivers.into(),
            migrated: migrated.filter(|one| !one.is_empty()).map(|one| names.get(one)).collect(),
            attached: Box::default(),
        };
        let name = names.get(&node.metadata.name);
        self.storage.dirty.nodes.insert(name.clone());
        self.storage.csi_nodes.insert(name, (header, fact));
    }

    pub(super) fn storage_capacity(&mut self, object: &CSIStorageCapacity, header: Header) {
        let key = self.scoped(&object.metadata.namespace, &object.metadata.name);
        let names = &mut self.interned.names;
        let limit = object.maximum_volume_size.as_ref().or(object.capacity.as_ref());
        let nodes = object.node_topology.as_ref().map(|selector| label_term(selector, names));
        let capacity_bytes = object.capacity.as_ref().map_or(0, Quantity::value_ceil);
        let room = nodes.zip(limit).map(|(nodes, limit)| {
            let bytes = limit.value_ceil();
            StorageRoom { nodes, bytes, capacity_bytes }
        });
        let class = names.get(&object.storage_class_name);
        self.storage.dirty.classes = true;
        self.storage.capacities.insert(key, RoomRecord { header, class, room });
    }

    pub(super) fn volume_attachment(&mut self, object: &VolumeAttachment, header: Header) {
        self.volume_attachment_gone(&object.metadata.name);
        let names = &mut self.interned.names;
        let spec = &object.spec;
        let volume = spec.source.persistent_volume_name.as_ref();
        let volume = volume.filter(|_| !spec.attacher.is_empty());
        let attached = volume.map(|name| (names.get(&spec.attacher), VolumeKey(names.get(name))));
        let node = names.get(&spec.node_name);
        let name = names.get(&object.metadata.name);
        self.storage.dirty.nodes.insert(node.clone());
        self.storage.attachments.insert(name, AttachmentRecord { header, node, attached });
    }

    /// The claims on volumes that there are.
    pub(super) fn volume_claims(&self) -> impl Iterator<Item = &VolumeClaim> {
        self.storage.claims.values().map(|(_, claim)| claim)
    }

    /// What is taken for granted of claims that are not made yet and whose class binds at once: where
    /// their volume will be is not known.
    pub(crate) fn volumes_assumed(&self) -> Vec<Finding> {
        let default = self.storage.default_class();
        let claims = self
            .storage
            .claims
            .iter()
            .filter(|(_, (_, claim))| claim.to_come && claim.volume.is_none());
        claims
            .filter_map(|(key, (header, claim))| {
                let name = claim.class.as_ref().or(default)?;
                let class = &self.storage.classes.get(name)?.class;
                if class.waits || !class.provisions {
                    return None;
                }
                let message = format!(
                    "The claim does not exist yet, and StorageClass {name} binds at once: its volume is \
                     made before its pods are placed, and without a look at them. It is assumed that the \
                     node of the pods can use it; a class with volumeBindingMode WaitForFirstConsumer \
                     makes it so."
                );
                Some(Finding {
                    severity: Severity::Info,
                    object: Some(object(Kind::PersistentVolumeClaim, &key.0)),
                    file: Arc::clone(&header.source.file),
                    line: header.source.line,
                    path: "spec.storageClassName".to_owned(),
                    message,
                })
            })
            .collect()
    }

    /// Marks the claims of a namespace that are not made yet, and whoever has some made: pods and
    /// workloads.
    pub(super) fn mark_claims_to_come(&mut self, namespace: &Name) {
        let claims = self.storage.claims.iter();
        let own = claims.filter(|(key, (_, fact))| key.0.namespace == *namespace && fact.to_come);
        self.storage.dirty.claims.extend(own.map(|(key, _)| key.clone()));
        let mounting = self.index.mounting.get(namespace).into_iter().flatten();
        self.dirty.workloads.extend(mounting.cloned());
        for dependent in self.played.drafts_in(namespace) {
            match dependent {
                Dependent::Pod(pod) => self.dirty.pods.push(pod.clone()),
                Dependent::Role(workload, _) => self.dirty.workloads.push(workload.clone()),
            }
        }
    }

    /// Whether there is this claim on a volume.
    pub(super) fn has_volume_claim(&self, key: &VolumeClaimKey) -> bool {
        self.storage.claims.contains_key(key)
    }

    pub(super) fn volume_attachment_gone(&mut self, name: &str) {
        if let Some(old) = self.storage.attachments.remove(name) {
            self.storage.dirty.nodes.insert(old.node);
        }
    }

    pub(super) fn volume_gone(&mut self, name: Name) {
        if self.storage.volumes.remove(&name).is_some() {
            self.storage.dirty.volumes.insert(name);
        }
    }

    pub(super) fn volume_claim_gone(&mut self, key: VolumeClaimKey) {
        if self.storage.claims.remove(&key).is_some() {
            self.storage.dirty.claims.insert(key);
        }
    }

    pub(super) fn storage_class_gone(&mut self, name: &str) {
        self.storage.dirty.classes |= self.storage.classes.remove(name).is_some();
    }

    pub(super) fn storage_capacity_gone(&mut self, key: &Scoped) {
        self.storage.dirty.classes |= self.storage.capacities.remove(key).is_some();
    }

    pub(super) fn csi_driver_gone(&mut self, name: Name) {
        if self.storage.drivers.remove(&name).is_some() {
            self.storage.dirty.classes = true;
            self.storage.dirty.drivers.insert(name);
        }
    }

    pub(super) fn csi_node_gone(&mut self, name: Name) {
        if self.storage.csi_nodes.remove(&name).is_some() {
            self.storage.dirty.nodes.insert(name);
        }
    }

    pub(super) fn settle_storage(&mut self, changes: &mut Vec<Change>) {
        let dirty = std::mem::take(&mut self.storage.dirty);
        for name in dirty.volumes {
            let fact = self.storage.volumes.get(&name).map(|(_, fact)| fact.clone());
            changes.push(Change::Volume(VolumeKey(name), fact));
        }
        // Workloads may have had them made for pods that are to come.
        let namespaces: BTreeSet<&Name> = dirty.claims.iter().map(|key| &key.0.namespace).collect();
        for namespace in namespaces {
            let mounting = self.index.mounting.get(namespace).into_iter().flatten();
            self.dirty.workloads.extend(mounting.cloned());
        }
        for key in dirty.claims {
            let fact = self.storage.claims.get(&key).map(|(_, fact)| fact.clone());
            // One that the API server refuses is not there.
            let refused = |fact: &VolumeClaim| {
                self.claim_refused(&key.0.namespace, &key.0.name, fact).is_some()
            };
            let fact = fact.filter(|fact| !refused(fact));
            changes.push(Change::VolumeClaim(key, fact));
        }
        let storage = &mut self.storage;
        if dirty.classes {
            storage.settle_classes(changes);
        }
        for name in dirty.drivers {
            let fact = storage.drivers.get(&name).map(|record| record.fact);
            changes.push(Change::StorageDriver(name, fact));
        }
        if dirty.nodes.is_empty() {
            return;
        }
        // One pass over the attachments, however many nodes changed.
        let mut attached: BTreeMap<&Name, Vec<(Name, VolumeKey)>> = BTreeMap::new();
        let here = storage.attachments.values().filter(|a| dirty.nodes.contains(&a.node));
        for record in here {
            attached.entry(&record.node).or_default().extend(record.attached.clone());
        }
        for name in &dirty.nodes {
            let csi = storage.csi_nodes.get(name).map(|(_, fact)| fact.clone());
            let volumes = attached.remove(name).unwrap_or_default();
            let known = csi.is_some() || !volumes.is_empty();
            let fact = NodeStorage { attached: volumes.into(), ..csi.unwrap_or_default() };
            changes.push(Change::NodeStorage(NodeKey(name.clone()), known.then_some(fact)));
        }
    }
}

impl Records {
    /// The class of claims that name none: of several defaults the newest, then the first by name.
    fn default_class(&self) -> Option<&Name> {
        let defaults = self.classes.iter().filter(|(_, record)| record.default);
        defaults
            .max_by_key(|(name, record)| (record.header.created, std::cmp::Reverse(*name)))
            .map(|(name, _)| name)
    }

    /// Every class, with the room that its driver reports. There are few of them.
    fn settle_classes(&mut self, changes: &mut Vec<Change>) {
        let newest = self.default_class().cloned();
        let shown = std::mem::take(&mut self.shown);
        for gone in shown.iter().filter(|name| !self.classes.contains_key(*name)) {
            changes.push(Change::StorageClass(gone.clone(), None));
        }
        for (name, record) in &self.classes {
            let reports = self.drivers.get(&record.provisioner).is_some_and(|d| d.reports);
            let rooms = self.capacities.values().filter(|room| room.class == *name);
            let room = reports.then(|| rooms.filter_map(|room| room.room.clone()).collect());
            let default = newest.as_ref() == Some(name);
            let fact = StorageClass { default, room, ..record.class.clone() };
            changes.push(Change::StorageClass(name.clone(), Some(fact)));
            self.shown.insert(name.clone());
        }
    }
}

fn read_volume(volume: &PersistentVolume, names: &mut Names) -> Volume {
    let (meta, spec) = (&volume.metadata, &volume.spec);
    let required = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let translated = spec.disk().map(|disk| Translated::new(disk, meta, required));
    let migrated = translated.as_ref().map(|found| {
        let nodes = found.required.as_ref().map(|selector| rules::terms(selector, names));
        Box::new(Migrated { plugin: names.get(found.plugin), nodes })
    });
    let attach = match &spec.csi {
        Some(csi) => Some(phalanx_engine::Attach {
            driver: names.get(&csi.driver),
            handle: Name::new(&csi.volume_handle),
            in_tree: false,
        }),
        None => translated.as_ref().and_then(|found| found.attach(names)),
    };
    let claim = spec.claim_ref.as_ref().map(|of| {
        let namespace = names.get(&of.namespace);
        let key = Scoped { namespace, name: Name::new(&of.name) };
        (VolumeClaimKey(key), Name::new(&of.uid))
    });
    Volume {
        class: names.get(class_of(meta).unwrap_or(&spec.storage_class_name)),
        size_nanos: spec.capacity.get(STORAGE).map_or(0, nanos),
        block: spec.volume_mode == Some(VolumeMode::Block),
        attributes: names.get(spec.volume_attributes_class_name.as_deref().unwrap_or_default()),
        modes: modes(&spec.access_modes),
        labels: meta.labels.iter().map(|(k, v)| (names.get(k), names.get(v))).collect(),
        available: volume.status.phase == VolumePhase::Available,
        deleting: meta.deletion_timestamp.is_some(),
        claim,
        nodes: required.map(|selector| rules::terms(selector, names)),
        migrated,
        zones: zones(meta, names),
        attach,
    }
}

/// The class that an annotation names: it stands before the field.
fn class_of(meta: &ObjectMeta) -> Option<&String> {
    meta.annotations.get(CLASS_ANNOTATION)
}

/// The zones and regions of a volume; a label that reads as no set is passed over
/// (`LabelZonesToSet`).
fn zones(meta: &ObjectMeta, names: &mut Names) -> Box<[(Name, Box<[Name]>)]> {
    let mut all = Vec::new();
    for key in ZONES {
        let Some(text) = meta.labels.get(key) else { continue };
        let values: Vec<&str> = text.split("__").map(str::trim).collect();
        if values.iter().all(|value| !value.is_empty()) {
            let values = values.into_iter().map(|value| names.get(value)).collect();
            all.push((names.get(key), values));
        }
    }
    all.into()
}

pub(super) fn modes(words: &[String]) -> AccessModes {
    let mode = |word: &String| match word.as_str() {
        "ReadWriteOnce" => AccessModes::ONCE,
        "ReadOnlyMany" => AccessModes::READ_MANY,
        "ReadWriteMany" => AccessModes::MANY,
        "ReadWriteOncePod" => AccessModes::ONCE_POD,
        _ => AccessModes::default(),
    };
    words.iter().map(mode).fold(AccessModes::default(), AccessModes::and)
}

fn topology(term: &TopologySelectorTerm, names: &mut Names) -> NodeTerm {
    let one = |key: &str, values: &[String], names: &mut Names| {
        let values = values.iter().map(|value| names.get(value)).collect();
        NodeRequirement::In(names.get(key), values)
    };
    term.match_label_expressions.iter().map(|r| one(&r.key, &r.values, names)).collect()
}

/// A label selector as a term; an empty one selects all.
fn label_term(selector: &LabelSelector, names: &mut Names) -> NodeTerm {
    let mut all: Vec<NodeRequirement> = Vec::new();
    for (key, value) in &selector.match_labels {
        all.push(NodeRequirement::In(names.get(key), Box::new([names.get(value)])));
    }
    all.extend(selector.match_expressions.iter().map(|r| label_requirement(r, names)));
    all.into()
}

fn label_requirement(r: &LabelSelectorRequirement, names: &mut Names) -> NodeRequirement {
    use LabelSelectorOperator as Op;
    let key = names.get(&r.key);
    let values = || -> Box<[Name]> { r.values.iter().map(|v| Name::new(v)).collect() };
    match (&r.operator, r.values.is_empty()) {
        (Op::In, false) => NodeRequirement::In(key, values()),
        (Op::NotIn, false) => NodeRequirement::NotIn(key, values()),
        (Op::Exists, true) => NodeRequirement::Exists(key),
        (Op::DoesNotExist, true) => NodeRequirement::DoesNotExist(key),
        (Op::In | Op::NotIn | Op::Exists | Op::DoesNotExist | Op::Unset | Op::Other(_), _) => {
            NodeRequirement::Never
        }
    }
}

/// The size that a claim asks for.
pub(super) fn size(requests: &phalanx_objects::core::ResourceList) -> Option<&Quantity> {
    requests.get(STORAGE)
}
