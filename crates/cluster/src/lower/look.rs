//! Looking things up by name: what sentences, writes and the command's other questions need beside
//! the decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_cel::{Device, DeviceError, Environment, Step};
use phalanx_engine::{
    Binding, ClaimKey, DeviceKey, GroupKey, Name, NodeKey, Place, PodKey, PodSelectorId, PoolKey,
    Reach, Scoped, SelectorId, Taint, Timestamp, by_number,
};
use phalanx_objects::resource::{DeviceAttribute, DeviceClass};
use phalanx_objects::workload::WorkloadKind;
use phalanx_objects::{Kind, ObjectRef, Quantity};

use super::Lowering;
use super::claim::SpecText;
use super::found::Found;
use super::links::{Published, bus_address};
use super::meant::PodSet;
use super::record::{ClaimRecord, DeviceRecord, Header, PodClaimSource, PodShape, SliceRecord};
use super::selector;
use super::settle::workload_kind;
use super::sharing::GroupOwner;
use super::workload::{Marks, WorkloadRecord};
use crate::finding::Source;

/// A group: where it comes from, and its pods with their claims.
#[derive(Clone, Debug)]
pub struct GroupInfo {
    /// Its key.
    pub key: GroupKey,
    /// Kind of the object that declares it.
    pub kind: Kind,
    /// Where that object was read.
    pub source: Source,
    /// Whether the API server has created that object.
    pub created: bool,
    /// The workload that a pod counts for.
    pub owner: Option<GroupKey>,
    /// The workloads that it is part of, and those above them, itself left out.
    pub above: Vec<GroupKey>,
    /// Its pods start together.
    pub gang: bool,
    /// Its roles, as the engine numbers them.
    pub roles: Vec<RoleInfo>,
}

/// A role of a group.
#[derive(Clone, Debug)]
pub struct RoleInfo {
    /// Its pods, by index: those of a workload are planned, that of a pod is the pod itself.
    pub pods: Vec<PodInfo>,
}

/// A pod of a role.
#[derive(Clone, Debug)]
pub struct PodInfo {
    /// Its key. A planned pod's name is ours: the real one ends in five random letters.
    pub key: PodKey,
    /// Whether its name is ours: it does not exist yet and leaves its name to the API server, or
    /// its workload does.
    pub planned: bool,
    /// UID; empty if there is none.
    pub uid: String,
    /// The pod itself, or the workload that makes it: which says what it is like.
    pub home: GroupKey,
    /// Number of the role that does, among those of that object.
    pub role: u16,
    /// Name of its role in the workload; empty where there is but one.
    pub role_name: Name,
    /// Its index in its role, where it has one.
    pub index: Option<u32>,
    /// Its rank, where the workload gives one.
    pub rank: Option<u32>,
    /// For each claim of the role's request, in its order.
    pub claims: Vec<ClaimInfo>,
}

/// A claim of a pod's request.
#[derive(Clone, Debug)]
pub struct ClaimInfo {
    /// Its name in the pod (`spec.resourceClaims[].name`).
    pub pod_claim: Name,
    /// The template that it is made from, if any.
    pub template: Option<Name>,
    /// The claim.
    pub claim: ClaimName,
    /// What it asks for, with class names, configuration and tolerations.
    pub spec: SpecText,
    /// The PodGroup that it is reserved for, rather than for the pod.
    pub group: Option<GroupOwner>,
}

/// The name of a claim that there is, or is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimName {
    /// The claim exists.
    Real(ClaimKey),
    /// It does not exist yet: the name is ours, the real one ends in five random letters.
    Planned(ClaimKey),
}

impl ClaimName {
    /// The key, real or planned.
    #[must_use]
    pub fn key(&self) -> &ClaimKey {
        match self {
            Self::Real(key) | Self::Planned(key) => key,
        }
    }
}

/// Why a selector does not select a device: the part of the expression that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The part of the expression, as written.
    pub part: String,
    /// What it read of the device, and the values: `device.capacity["x"].memory` and `24Gi`; the
    /// value is `absent` where the device has none.
    pub values: Vec<(String, String)>,
    /// The error in which it ended, if it did not simply say no.
    pub error: Option<String>,
}

/// A device as published.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    /// Its key.
    pub key: DeviceKey,
    /// The slice that publishes it.
    pub slice: Name,
    /// Who can use it.
    pub reach: Reach,
    /// Attributes by fully qualified name, sorted.
    pub attributes: Vec<(Name, DeviceAttribute)>,
    /// Capacities by name as the device spells it, sorted.
    pub capacity: Vec<(Name, Quantity)>,
    /// Taints that have an effect, those of DeviceTaintRules included.
    pub taints: Vec<Taint>,
    /// Whether several claims may share it.
    pub shareable: bool,
}

impl Lowering {
    /// The UID of an object; empty where it has none or is not there.
    pub(crate) fn uid_of(&self, object: &ObjectRef) -> String {
        self.header(object).map(|header| header.uid.to_string()).unwrap_or_default()
    }

    /// The node that is promised to a pod while it waits.
    pub(crate) fn nominated(&self, pod: &PodKey) -> Option<&NodeKey> {
        self.objects.pods.get(pod)?.nominated.as_ref()
    }

    /// The pods that a number stands for.
    pub(crate) fn pods_meant(&self, id: PodSelectorId) -> Option<&[PodSet]> {
        self.meant.selectors.get(id).map(|sets| &**sets)
    }

    /// The group with this key, where there is one: a pod, or a workload with pods to come.
    #[must_use]
    pub fn group(&self, key: &GroupKey) -> Option<GroupInfo> {
        if key.kind.as_str() == "pod" {
            return self.pod_info(key);
        }
        if let Some(shown) = self.shown.gangs.get(key) {
            return Some(self.gang_info(key, shown));
        }
        let record = self.objects.workloads.get(key)?;
        Some(GroupInfo {
            key: key.clone(),
            kind: workload_kind(key),
            source: record.header.source.clone(),
            created: record.header.created.is_some(),
            owner: None,
            above: self.lineage(key).into_iter().skip(1).collect(),
            gang: false,
            roles: self.planned(key, record),
        })
    }

    /// The pods of a workload that are to be made, role by role as the engine numbers them.
    fn planned(&self, key: &GroupKey, record: &WorkloadRecord) -> Vec<RoleInfo> {
        let pod = |role: u16, name: &str, index: Option<u32>| {
            self.planned_pod(key, record, role, name, index)
        };
        if record.kind == WorkloadKind::DaemonSet {
            let (nodes, _) = self.daemon_nodes(key, record);
            let on = |node: &Name| pod(0, &format!("{}-{node}", key.object.name), None);
            return nodes.iter().map(|n| RoleInfo { pods: on(n).into_iter().collect() }).collect();
        }
        let mut roles = Vec::with_capacity(record.roles.len());
        for (at, due) in self.due(key, record).into_iter().enumerate() {
            let Some(of) = record.roles.get(at) else { continue };
            if self.gang_of_role(key, record, at).is_some() {
                continue;
            }
            for run in self.runs(key, record.kind, of, &due) {
                let pods = run.iter();
                let pods = pods.filter_map(|i| pod(at as u16, &of.places.name(*i), Some(*i)));
                roles.push(RoleInfo { pods: pods.collect() });
            }
        }
        roles
    }

    /// A pod of a workload that is to be made.
    fn planned_pod(
        &self,
        key: &GroupKey,
        record: &WorkloadRecord,
        role: u16,
        name: &str,
        index: Option<u32>,
    ) -> Option<PodInfo> {
        let of = record.roles.get(usize::from(role))?;
        let name = self.planned_name(key, record.kind, name);
        let pod = PodKey(Scoped { namespace: key.object.namespace.clone(), name });
        let claims = self.planned_claims(&pod, of.marks.as_deref(), &of.shape);
        let rank = index.and_then(|index| of.rank.of(index));
        let index = index.filter(|_| of.indexes.is_some());
        let (uid, role_name, home) = (String::new(), of.name.clone(), key.clone());
        Some(PodInfo { key: pod, home, planned: true, uid, role, role_name, index, rank, claims })
    }

    /// A gang with its pods: of each role those that exist, then those to be made.
    fn gang_info(&self, key: &GroupKey, shown: &super::gang::Shown) -> GroupInfo {
        let mut above: Vec<GroupKey> = Vec::new();
        let mut roles = Vec::with_capacity(shown.lines.len());
        for line in &shown.lines {
            let mut pods: Vec<PodInfo> = Vec::new();
            for pod in line.pods.iter().filter(|_| !line.running) {
                let kind = Name::new("pod");
                let Some(info) = self.pod_info(&GroupKey { object: pod.0.clone(), kind }) else {
                    continue;
                };
                above.extend(info.above);
                pods.extend(info.roles.into_iter().flat_map(|role| role.pods));
            }
            pods.sort_by(|one, other| {
                let place = |pod: &PodInfo| pod.rank.or(pod.index);
                let by_name = || by_number(&one.key.0.name, &other.key.0.name);
                let by_place = place(one).cmp(&place(other));
                by_place.then_with(by_name).then_with(|| one.key.cmp(&other.key))
            });
            if let Some((workload, role)) = &line.of
                && let Some(record) = self.objects.workloads.get(workload)
            {
                above.extend(self.lineage(workload));
                let of = record.roles.get(usize::from(*role));
                let planned = line.planned.iter().filter_map(|index| {
                    let name = of?.places.name(*index);
                    self.planned_pod(workload, record, *role, &name, Some(*index))
                });
                pods.extend(planned);
            }
            roles.push(RoleInfo { pods });
        }
        above.retain(|workload| workload != key);
        above.sort();
        above.dedup();
        let declaring = super::gang::declaring(key);
        let header = self.header(&declaring);
        let first = shown.lines.iter().flat_map(|line| &line.pods).min();
        let of_pod = first.and_then(|pod| self.objects.pods.get(pod)).map(|pod| &pod.header);
        let header = header.or(of_pod);
        GroupInfo {
            key: key.clone(),
            kind: declaring.kind,
            source: header.map(|header| header.source.clone()).unwrap_or_default(),
            created: header.is_some_and(|header| header.created.is_some()),
            owner: None,
            above,
            gang: true,
            roles,
        }
    }

    fn pod_info(&self, key: &GroupKey) -> Option<GroupInfo> {
        let pod = PodKey(key.object.clone());
        let record = self.objects.pods.get(&pod)?;
        let mut claims = Vec::new();
        for (claim, found) in record.shape.claims.iter().zip(self.claims_of(&pod, record)) {
            let (spec, name) = match found {
                Found::Nothing | Found::Fault(_) => continue,
                Found::Named(key) => (self.claim_spec(&key), ClaimName::Real(key)),
                Found::Own(_, Some(key)) => (self.claim_spec(&key), ClaimName::Real(key)),
                Found::Shared(key) => self.shared_name(key, (&pod, &claim.source)),
                Found::Own(_, None) => {
                    (self.template_spec(&pod, &claim.source), planned_claim(&pod, &claim.name))
                }
            };
            let group = self.reserved_for(&pod.0.namespace, record.marks.as_deref(), claim);
            let group = group.map(|group| self.group_owner(&group));
            let found = info(&claim.name, &claim.source, name, spec);
            claims.extend(found.map(|found| ClaimInfo { group, ..found }));
        }
        let owner = self.root_of_pod(record);
        let seat = owner.as_ref().and_then(|owner| self.seat_of(owner, record));
        let info = PodInfo {
            key: pod,
            home: key.clone(),
            planned: record.header.named_here,
            uid: record.header.uid.to_string(),
            role: 0,
            role_name: seat.as_ref().map_or_else(|| Name::new(""), |seat| seat.name.clone()),
            index: seat.as_ref().and_then(|seat| seat.index),
            rank: record
                .marks
                .as_deref()
                .and_then(|marks| marks.rank)
                .or_else(|| seat.as_ref().and_then(|seat| seat.rank)),
            claims,
        };
        Some(GroupInfo {
            key: key.clone(),
            kind: Kind::Pod,
            source: record.header.source.clone(),
            created: record.header.created.is_some(),
            above: self.lineage_of_pod(record),
            owner,
            gang: false,
            roles: vec![RoleInfo { pods: vec![info] }],
        })
    }

    /// The name of a group's claim, and what it asks.
    fn shared_name(
        &self,
        key: ClaimKey,
        (pod, source): (&PodKey, &PodClaimSource),
    ) -> (Option<SpecText>, ClaimName) {
        match self.claim_spec(&key) {
            Some(spec) => (Some(spec), ClaimName::Real(key)),
            None => (self.template_spec(pod, source), ClaimName::Planned(key)),
        }
    }

    fn planned_claims(
        &self,
        pod: &PodKey,
        marks: Option<&Marks>,
        shape: &PodShape,
    ) -> Vec<ClaimInfo> {
        let mut claims = Vec::new();
        for claim in &shape.claims {
            if let Some(group) = self.reserved_for(&pod.0.namespace, marks, claim) {
                let Found::Shared(key) = self.of_group(&group, claim) else { continue };
                let (spec, name) = self.shared_name(key, (pod, &claim.source));
                let group = Some(self.group_owner(&group));
                let found = info(&claim.name, &claim.source, name, spec);
                claims.extend(found.map(|found| ClaimInfo { group, ..found }));
                continue;
            }
            let (spec, name) = match &claim.source {
                PodClaimSource::Claim(name) => {
                    let name = name.clone();
                    let key = ClaimKey(Scoped { namespace: pod.0.namespace.clone(), name });
                    (self.claim_spec(&key), ClaimName::Real(key))
                }
                PodClaimSource::Template(_) | PodClaimSource::Invalid => {
                    (self.template_spec(pod, &claim.source), planned_claim(pod, &claim.name))
                }
            };
            claims.extend(info(&claim.name, &claim.source, name, spec));
        }
        claims
    }

    /// What a claim asks for, as its object has it.
    #[must_use]
    pub fn claim_spec(&self, key: &ClaimKey) -> Option<SpecText> {
        let record: &ClaimRecord = self.objects.claims.get(key)?;
        Some(self.specs.get(record.spec)?.devices.clone())
    }

    fn template_spec(&self, pod: &PodKey, source: &PodClaimSource) -> Option<SpecText> {
        let PodClaimSource::Template(name) = source else { return None };
        let key = Scoped { namespace: pod.0.namespace.clone(), name: name.clone() };
        let record = self.objects.templates.get(&key)?;
        Some(self.specs.get(record.spec)?.devices.clone())
    }

    /// A DeviceClass.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&Arc<DeviceClass>> {
        self.objects.classes.get(name).map(|class| &class.object)
    }

    /// The names of all DeviceClasses, sorted.
    pub fn classes(&self) -> impl Iterator<Item = &Name> {
        self.objects.classes.keys()
    }

    /// The expression of a selector.
    #[must_use]
    pub fn selector_text(&self, selector: SelectorId) -> Option<&str> {
        self.selectors.text(selector)
    }

    /// The first part of a selector that makes it refuse a device, with the values that it reads.
    /// None if the device is selected or not published.
    #[must_use]
    pub fn explain(&self, selector: SelectorId, device: &DeviceKey) -> Option<Failing> {
        let explain = |seen: Result<Device<'_>, DeviceError>| match seen {
            Ok(seen) => self.selectors.explain(selector, &seen).into_iter().next().map(failing),
            Err(error) => self.selector_text(selector).map(|text| Failing {
                part: text.to_owned(),
                values: Vec::new(),
                error: Some(error.to_string()),
            }),
        };
        self.with_device(device, explain)?
    }

    /// Shows a published device to `ask` as expressions see it, or why none can. None if it is not
    /// published.
    pub fn with_device<T>(
        &self,
        key: &DeviceKey,
        ask: impl FnOnce(Result<Device<'_>, DeviceError>) -> T,
    ) -> Option<T> {
        let (_, record) = self.device_record(key)?;
        Some(ask(selector::device(&key.pool.driver, record, &self.interned.attributes)))
    }

    /// Whether the object is in the input and could not be read.
    #[must_use]
    pub fn is_unread(&self, object: &ObjectRef) -> bool {
        self.unread.contains(object)
    }

    /// The first object of this kind and name, in whatever namespace, that could not be read.
    #[must_use]
    pub fn unread_by_name(&self, kind: Kind, name: &str) -> Option<ObjectRef> {
        let mut of = self.unread.iter().filter(|o| o.kind == kind && o.name == name);
        of.next().cloned()
    }

    /// What an expression may use in this version of Kubernetes.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        self.selectors.environment()
    }

    /// The UID of a pod; none if it does not exist or has none.
    #[must_use]
    pub fn pod_uid(&self, pod: &PodKey) -> Option<String> {
        let record = self.objects.pods.get(pod)?;
        (!record.header.uid.is_none()).then(|| record.header.uid.to_string())
    }

    /// The newest time stamp read: creation of any object, or start of a pod.
    #[must_use]
    pub fn newest_time(&self) -> Option<Timestamp> {
        let started = self.objects.pods.values().filter_map(|pod| pod.started);
        self.headers().filter_map(|header| header.created).chain(started).max()
    }

    /// What is kept of every object's metadata.
    fn headers(&self) -> impl Iterator<Item = &Header> {
        let objects = &self.objects;
        let nodes = objects.nodes.values().map(|record| &record.header);
        let pods = objects.pods.values().map(|record| &record.header);
        let workloads = objects.workloads.values().map(|record| &record.header);
        let claims = objects.claims.values().map(|record| &record.header);
        let templates = objects.templates.values().map(|record| &record.header);
        let classes = objects.classes.values().map(|record| &record.header);
        let priorities = objects.priorities.values().map(|record| &record.header);
        let slices = objects.slices.values().map(|record| &record.header);
        let rules = objects.taint_rules.values().map(|record| &record.header);
        let of_admission = objects.admission.headers();
        let topologies = objects.topologies.values().map(|record| &record.header);
        let of_pods = nodes
            .chain(pods)
            .chain(workloads)
            .chain(objects.namespaces.values().map(|r| &r.header));
        let of_claims = claims.chain(templates).chain(classes).chain(priorities);
        let placements = objects.placements.values().map(|record| &record.header);
        let others = rules.chain(topologies).chain(placements).chain(of_admission);
        of_pods.chain(of_claims).chain(slices).chain(others)
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.objects.nodes.len()
    }

    /// Whether any node counts devices of a device plugin.
    #[must_use]
    pub(crate) fn counts_devices(&self) -> bool {
        let scalars = self.objects.nodes.values().flat_map(|r| &r.node.allocatable.scalars);
        scalars.into_iter().any(|(name, amount)| *amount > 0 && super::is_device_counter(name))
    }

    /// The counters of devices of each node that has some.
    pub(crate) fn device_counters(&self) -> impl Iterator<Item = (NodeKey, BTreeMap<String, i64>)> {
        self.objects.nodes.iter().filter_map(|(name, record)| {
            let scalars = record.node.allocatable.scalars.iter();
            let own = scalars.filter(|(name, n)| *n > 0 && super::is_device_counter(name));
            let own: BTreeMap<String, i64> =
                own.map(|(n, count)| (n.to_string(), *count)).collect();
            (!own.is_empty()).then(|| (NodeKey(name.clone()), own))
        })
    }

    /// How many devices are published, each of a pool's highest generation.
    #[must_use]
    pub fn devices_published(&self) -> usize {
        self.objects
            .pools
            .keys()
            .map(|pool| self.current(pool).map(|s| s.devices.len()).sum::<usize>())
            .sum()
    }

    /// Where an object was read, if it is there.
    #[must_use]
    pub fn source(&self, object: &ObjectRef) -> Option<&Source> {
        self.header(object).map(|header| &header.source)
    }

    /// How many objects of each kind there are; kinds without one are left out.
    #[must_use]
    pub fn kinds(&self) -> Vec<(Kind, usize)> {
        let count = |kind: &Kind| (*kind, self.count(*kind));
        Kind::ALL.iter().map(count).filter(|(_, count)| *count > 0).collect()
    }

    /// Whether no object of a kind was read.
    pub(super) fn has_none(&self, kind: Kind) -> bool {
        self.count(kind) == 0
    }

    fn count(&self, kind: Kind) -> usize {
        let objects = &self.objects;
        match kind {
            Kind::Node => objects.nodes.len(),
            Kind::Pod => objects.pods.len(),
            Kind::Namespace => objects.namespaces.len(),
            Kind::Service => self.spreading.services.len(),
            Kind::ReplicationController => self.spreading.controllers.len(),
            Kind::ServiceAccount => objects.admission.accounts.len(),
            Kind::PriorityClass => objects.priorities.len(),
            Kind::RuntimeClass => objects.admission.runtime_classes.len(),
            Kind::LimitRange => objects.admission.limit_ranges.len(),
            Kind::ResourceQuota => objects.admission.quotas.len(),
            Kind::ResourceSlice => objects.slices.len(),
            Kind::ResourceClaim => objects.claims.len(),
            Kind::ResourceClaimTemplate => objects.templates.len(),
            Kind::DeviceClass => objects.classes.len(),
            Kind::DeviceTaintRule => objects.taint_rules.len(),
            Kind::PersistentVolume => self.storage.volumes.len(),
            Kind::PersistentVolumeClaim => self.storage.claims.len(),
            Kind::StorageClass => self.storage.classes.len(),
            Kind::CSINode => self.storage.csi_nodes.len(),
            Kind::CSIDriver => self.storage.drivers.len(),
            Kind::CSIStorageCapacity => self.storage.capacities.len(),
            Kind::VolumeAttachment => self.storage.attachments.len(),
            Kind::Workload(_) => {
                objects.workloads.keys().filter(|key| workload_kind(key) == kind).count()
            }
            Kind::NodeTopology => objects.topologies.len(),
            Kind::Placement => objects.placements.len(),
            Kind::Scheduling(_) => self.scoped_of(kind).count(),
        }
    }

    /// The objects of a kind with this name, in every namespace or in one, sorted.
    #[must_use]
    pub fn find(&self, kind: Kind, name: &str, namespace: Option<&str>) -> Vec<ObjectRef> {
        let of = |namespace: &str| ObjectRef {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        if !kind.is_namespaced() {
            return Some(of("")).filter(|found| self.header(found).is_some()).into_iter().collect();
        }
        if let Some(namespace) = namespace {
            let found = Some(of(namespace));
            return found.filter(|found| self.header(found).is_some()).into_iter().collect();
        }
        let here = |scoped: &&Scoped| scoped.name.as_str() == name;
        let mut found: Vec<ObjectRef> =
            self.scoped_of(kind).filter(here).map(|s| of(&s.namespace)).collect();
        found.sort();
        found
    }

    /// Whether pods or an object declare a gang of this name.
    #[must_use]
    pub fn has_gang(&self, namespace: &str, name: &str) -> bool {
        let is = |key: &GroupKey| *key.object.namespace == *namespace && *key.object.name == *name;
        self.shown.gangs.keys().any(is)
    }

    /// The names of the gangs of a namespace, whatever declares them.
    pub fn gang_names(&self, namespace: &str) -> impl Iterator<Item = &str> {
        let here = move |key: &&GroupKey| *key.object.namespace == *namespace;
        self.shown.gangs.keys().filter(here).map(|key| key.object.name.as_str())
    }

    /// The names of all objects of a kind, sorted.
    #[must_use]
    pub fn all(&self, kind: Kind) -> Vec<ObjectRef> {
        let objects = &self.objects;
        let of = |name: &Name| ObjectRef { kind, namespace: String::new(), name: name.to_string() };
        let mut all: Vec<ObjectRef> = match kind {
            Kind::Node => objects.nodes.keys().map(of).collect(),
            Kind::Namespace => objects.namespaces.keys().map(of).collect(),
            Kind::PriorityClass => objects.priorities.keys().map(of).collect(),
            Kind::RuntimeClass => objects.admission.runtime_classes.keys().map(of).collect(),
            Kind::ResourceSlice => objects.slices.keys().map(of).collect(),
            Kind::DeviceClass => objects.classes.keys().map(of).collect(),
            Kind::DeviceTaintRule => objects.taint_rules.keys().map(of).collect(),
            Kind::PersistentVolume => self.storage.volumes.keys().map(of).collect(),
            Kind::StorageClass => self.storage.classes.keys().map(of).collect(),
            Kind::CSINode => self.storage.csi_nodes.keys().map(of).collect(),
            Kind::CSIDriver => self.storage.drivers.keys().map(of).collect(),
            Kind::VolumeAttachment => self.storage.attachments.keys().map(of).collect(),
            Kind::NodeTopology => objects.topologies.keys().map(of).collect(),
            Kind::Pod
            | Kind::Service
            | Kind::ReplicationController
            | Kind::ServiceAccount
            | Kind::LimitRange
            | Kind::ResourceQuota
            | Kind::ResourceClaim
            | Kind::ResourceClaimTemplate
            | Kind::PersistentVolumeClaim
            | Kind::CSIStorageCapacity
            | Kind::Placement
            | Kind::Scheduling(_)
            | Kind::Workload(_) => self
                .scoped_of(kind)
                .map(|s| ObjectRef {
                    kind,
                    namespace: s.namespace.to_string(),
                    name: s.name.to_string(),
                })
                .collect(),
        };
        all.sort();
        all
    }

    fn scoped_of(&self, kind: Kind) -> Box<dyn Iterator<Item = &Scoped> + '_> {
        let objects = &self.objects;
        match kind {
            Kind::Pod => Box::new(objects.pods.keys().map(|key| &key.0)),
            Kind::ResourceClaim => Box::new(objects.claims.keys().map(|key| &key.0)),
            Kind::ResourceClaimTemplate => Box::new(objects.templates.keys()),
            Kind::Service => Box::new(self.spreading.services.keys()),
            Kind::ReplicationController => Box::new(self.spreading.controllers.keys()),
            Kind::ServiceAccount => Box::new(objects.admission.accounts.keys()),
            Kind::LimitRange => Box::new(objects.admission.limit_ranges.keys()),
            Kind::Placement => Box::new(objects.placements.keys()),
            Kind::ResourceQuota => Box::new(objects.admission.quotas.keys()),
            Kind::PersistentVolumeClaim => Box::new(self.storage.claims.keys().map(|key| &key.0)),
            Kind::CSIStorageCapacity => Box::new(self.storage.capacities.keys()),
            Kind::Workload(_) => Box::new(
                objects
                    .workloads
                    .keys()
                    .filter(move |k| workload_kind(k) == kind)
                    .map(|k| &k.object),
            ),
            Kind::Scheduling(of) => {
                let all = objects.scheduling.keys().filter(move |(kind, _)| *kind == of);
                Box::new(all.map(|(_, scoped)| scoped))
            }
            Kind::Node
            | Kind::Namespace
            | Kind::PriorityClass
            | Kind::RuntimeClass
            | Kind::ResourceSlice
            | Kind::DeviceClass
            | Kind::DeviceTaintRule
            | Kind::PersistentVolume
            | Kind::StorageClass
            | Kind::CSINode
            | Kind::CSIDriver
            | Kind::VolumeAttachment
            | Kind::NodeTopology => Box::new(std::iter::empty()),
        }
    }

    /// The slices of a pool that count: those of the highest generation.
    pub(super) fn current(&self, pool: &PoolKey) -> impl Iterator<Item = &Arc<SliceRecord>> {
        let slices = self.objects.pools.get(pool).map(|record| &record.slices);
        let newest = slices.and_then(|all| all.values().map(|slice| slice.generation).max());
        let all = slices.into_iter().flat_map(|all| all.values());
        all.filter(move |slice| Some(slice.generation) == newest)
    }

    /// The device with this key, if it is published.
    #[must_use]
    pub fn device(&self, key: &DeviceKey) -> Option<DeviceInfo> {
        let (slice, device) = self.device_record(key)?;
        Some(self.device_info(&key.pool, slice, device))
    }

    /// The conditions that a published device awaits before a pod may be bound, and those that say
    /// that it can't be.
    pub(crate) fn binding(&self, key: &DeviceKey) -> Option<&Binding> {
        let (_, record) = self.device_record(key)?;
        record.kind.binding.as_deref().filter(|_| self.compat.awaits_conditions())
    }

    /// Where a published device sits, as far as its attributes tell.
    pub(crate) fn place(&self, key: &DeviceKey) -> Option<&Place> {
        self.device_record(key).map(|(_, record)| &record.kind.place)
    }

    pub(super) fn device_record(&self, key: &DeviceKey) -> Option<(&SliceRecord, &DeviceRecord)> {
        self.current(&key.pool).find_map(|slice| {
            let device = slice.devices.iter().find(|device| device.name == key.device)?;
            Some((&**slice, device))
        })
    }

    /// All devices that are published, in order of pool, slice and place.
    pub fn devices(&self) -> impl Iterator<Item = DeviceInfo> + '_ {
        let pools = self.objects.pools.keys();
        pools.flat_map(move |pool| {
            let slices = self.current(pool);
            slices.flat_map(move |slice| {
                slice.devices.iter().map(move |device| self.device_info(pool, slice, device))
            })
        })
    }

    fn device_info(&self, pool: &PoolKey, slice: &SliceRecord, d: &DeviceRecord) -> DeviceInfo {
        let attributes = &self.interned.attributes;
        let mut named: Vec<(Name, DeviceAttribute)> = d
            .attributes
            .iter()
            .filter_map(|(name, value)| {
                Some((attributes.name_of(*name)?.clone(), attributes.value_of(*value)?.clone()))
            })
            .collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        let mut taints = d.kind.taints.to_vec();
        let rules = self.objects.taint_rules.values().filter(|rule| rule.may_touch(pool));
        let touching = rules.filter(|rule| rule.device.as_ref().is_none_or(|n| *n == d.name));
        taints.extend(touching.filter_map(|rule| rule.taint.clone()));
        let capacity = d.kind.capacity.iter().zip(&d.kind.written);
        DeviceInfo {
            key: DeviceKey { pool: pool.clone(), device: d.name.clone() },
            slice: slice.name.clone(),
            reach: d.kind.reach.clone().unwrap_or_else(|| slice.reach.clone()),
            attributes: named,
            capacity: capacity.map(|(c, written)| (c.name.clone(), written.0)).collect(),
            taints,
            shareable: d.kind.shareable,
        }
    }

    /// What a member of a topology is matched with.
    pub(super) fn publish(&self, pool: &PoolKey, device: &DeviceRecord) -> Published {
        let attributes = &self.interned.attributes;
        let mut published = Published {
            key: DeviceKey { pool: pool.clone(), device: device.name.clone() },
            bus: None,
            uuid: None,
            numa: None,
            root: None,
            product: None,
        };
        for (name, value) in &device.attributes {
            let (Some(name), Some(value)) =
                (attributes.name_of(*name), attributes.value_of(*value))
            else {
                continue;
            };
            let id = name.rsplit('/').next().unwrap_or_default();
            match (id, value) {
                ("pciBusID", DeviceAttribute::String(bus)) => {
                    published.bus = Some(bus_address(bus))
                }
                ("uuid", DeviceAttribute::String(uuid)) => {
                    published.uuid = Some(uuid.to_ascii_lowercase());
                }
                ("numaNode", DeviceAttribute::Int(node)) => published.numa = Some(*node),
                ("pcieRoot", DeviceAttribute::String(root)) => {
                    published.root = Some(Name::new(root));
                }
                ("productName", DeviceAttribute::String(product)) => {
                    published.product = Some(Name::new(product));
                }
                _ => {}
            }
        }
        published
    }

    /// What makes the allocation of a claim of no use, now or from a time on.
    pub(crate) fn claim_failure(
        &self,
        claim: &ClaimKey,
    ) -> Option<&phalanx_engine::BindingFailure> {
        self.objects.claims.get(claim)?.failed.as_ref()
    }

    /// The names of a pool's slices, of every generation, sorted.
    pub(crate) fn slices_of(&self, pool: &PoolKey) -> impl Iterator<Item = &Name> {
        self.objects.pools.get(pool).into_iter().flat_map(|record| record.slices.keys())
    }

    /// The nodes of which a NodeTopology speaks.
    pub fn nodes_with_links(&self) -> impl Iterator<Item = &NodeKey> {
        self.index.topologies.keys()
    }
}

fn failing(step: Step) -> Failing {
    let value =
        |read: phalanx_cel::Read| (read.path, read.value.unwrap_or_else(|| "absent".to_owned()));
    Failing {
        part: step.text,
        values: step.reads.into_iter().map(value).collect(),
        error: step.error.map(|error| error.to_string()),
    }
}

fn info(
    pod_claim: &Name,
    source: &PodClaimSource,
    claim: ClaimName,
    spec: Option<SpecText>,
) -> Option<ClaimInfo> {
    let template = match source {
        PodClaimSource::Template(name) => Some(name.clone()),
        PodClaimSource::Claim(_) | PodClaimSource::Invalid => None,
    };
    Some(ClaimInfo { pod_claim: pod_claim.clone(), template, claim, spec: spec?, group: None })
}

/// The name of a claim to come: as the resourceclaim controller builds it, but for the end. Its
/// five random letters never hold a vowel, so that this name can't be one of its.
fn planned_claim(pod: &PodKey, pod_claim: &Name) -> ClaimName {
    ClaimName::Planned(planned_for(&pod.0, pod_claim))
}

/// The same for a pod or a PodGroup.
pub(super) fn planned_for(owner: &Scoped, pod_claim: &Name) -> ClaimKey {
    let base: String = format!("{}-{pod_claim}", owner.name).chars().take(57).collect();
    let name = Name::new(&format!("{}-plan", base.trim_end_matches('-')));
    ClaimKey(Scoped { namespace: owner.namespace.clone(), name })
}

/// The group of an object's pods.
pub(super) fn group_of(object: &ObjectRef) -> GroupKey {
    GroupKey {
        object: Scoped { namespace: Name::new(&object.namespace), name: Name::new(&object.name) },
        kind: Name::new(crate::edit::kind_word(object.kind)),
    }
}
