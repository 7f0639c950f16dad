//! Taking objects in and out: the compact forms, the indices, and the marks of what must be
//! lowered again. Nothing is lowered here.

use std::sync::Arc;

use phalanx_engine::{
    Allocation, BindingFailure, ClaimKey, Consumption, DeviceKey, GroupKey, HeldDevice, Name,
    Node as EngineNode, PodKey, PoolKey, Scoped, Timestamp, User, VolumeClaimKey,
};
use phalanx_objects::core::{ContainerImage, Namespace, Node, Pod, PriorityClass};
use phalanx_objects::meta::{Condition, ObjectMeta};
use phalanx_objects::resource::{
    AllocatedDeviceStatus, AllocationResult, DeviceClass, DeviceRequest,
    DeviceRequestAllocationResult, ResourceClaim, ResourceClaimTemplate,
};
use phalanx_objects::topology::ALIGN_ANNOTATION;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::admission::Rules;
use super::claim::{Class, SpecText, Wish};
use super::intern::nanos;
use super::meant::PodLabels;
use super::pod::{self, PodReader, wish};
use super::record::{
    ClaimRecord, Header, Life, NamespaceRecord, NodeRecord, PodClaimSource, PodRecord, PodShape,
    PriorityFrom, PriorityRecord, TemplateRecord, Uid,
};
use super::slice::Note;
use super::{Dependent, Findings, Lowering, amount, rules};
use crate::finding::{Finding, Severity, Source};

/// The annotation of a claim that was made for a pod: the claim's name in that pod.
const POD_CLAIM_ANNOTATION: &str = "resource.kubernetes.io/pod-claim-name";

/// The annotation of the claim that was made for a pod's extended resources.
const EXTENDED_CLAIM_ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";

/// Most alternatives of a list (`FirstAvailableDeviceRequestMaxSize`).
const FIRST_AVAILABLE_MAX: u32 = 8;

/// How long kube-scheduler waits for binding conditions (`DynamicResourcesArgs.bindingTimeout`).
const BINDING_TIMEOUT_MILLIS: i64 = 600_000;

impl Lowering {
    /// Takes in an object that is named in full and supersedes what is known of it.
    pub(crate) fn applied(&mut self, reference: &ObjectRef, object: &Object, header: Header) {
        if self.unread.remove(reference) {
            self.mark_namers(reference);
        }
        let source = header.source.clone();
        let notes = match object {
            Object::Node(node) => self.node(node, header),
            Object::Pod(pod) => self.pod(pod, header),
            Object::Namespace(namespace) => {
                self.namespace(namespace, header);
                self.namespace_rules(namespace);
                Vec::new()
            }
            Object::Service(service) => {
                self.service(service, header);
                Vec::new()
            }
            Object::ReplicationController(controller) => {
                self.replication_controller(controller, header);
                Vec::new()
            }
            Object::ServiceAccount(account) => {
                self.service_account(account, header);
                Vec::new()
            }
            Object::PriorityClass(class) => self.priority_class(class, header),
            Object::RuntimeClass(class) => {
                self.runtime_class(class, header);
                Vec::new()
            }
            Object::LimitRange(range) => {
                self.limit_range(range, header);
                Vec::new()
            }
            Object::ResourceQuota(quota) => {
                self.quota(quota, header);
                Vec::new()
            }
            Object::ResourceSlice(slice) => self.slice(slice, header),
            Object::ResourceClaim(claim) => self.claim(claim, header),
            Object::ResourceClaimTemplate(template) => self.template(template, header),
            Object::DeviceClass(class) => {
                self.device_class(class, header);
                Vec::new()
            }
            Object::DeviceTaintRule(rule) => self.taint_rule(rule, header),
            Object::PersistentVolume(_)
            | Object::PersistentVolumeClaim(_)
            | Object::StorageClass(_)
            | Object::CSINode(_)
            | Object::CSIDriver(_)
            | Object::CSIStorageCapacity(_)
            | Object::VolumeAttachment(_) => {
                self.of_storage(object, header);
                Vec::new()
            }
            Object::Workload(workload) => self.workload(workload, source.clone()),
            Object::NodeTopology(topology) => self.topology(topology, header),
            Object::Placement(placement) => {
                self.placement(placement, header);
                Vec::new()
            }
            Object::Scheduling(object) => self.scheduling(object, header),
        };
        let found = findings(reference, &source, notes);
        Findings::set(&mut self.findings.read, reference, found);
    }

    pub(crate) fn deleted(&mut self, reference: &ObjectRef) {
        let (namespace, name) = (reference.namespace.as_str(), reference.name.as_str());
        let scoped = self.scoped(namespace, name);
        match reference.kind {
            Kind::Node => {
                if let Some(old) = self.objects.nodes.remove(name) {
                    self.node_moves(Some(&old), None);
                    self.dirty.nodes.push(scoped.name);
                }
            }
            Kind::Pod => self.pod_gone(&PodKey(scoped)),
            Kind::Namespace => {
                let said = self.objects.says_namespaces();
                self.objects.namespaces.remove(name);
                self.namespace_stands(&scoped.name, said);
                self.meant.namespace_changed(&scoped.name);
                self.namespace_rules_gone(name);
            }
            Kind::Service => self.service_gone(&scoped),
            Kind::ReplicationController => self.replication_controller_gone(&scoped),
            Kind::ServiceAccount => self.service_account_gone(&scoped),
            Kind::RuntimeClass => self.runtime_class_gone(name),
            Kind::LimitRange => self.limit_range_gone(&scoped),
            Kind::ResourceQuota => self.quota_gone(&scoped),
            Kind::PriorityClass => {
                if let Some(old) = self.objects.priorities.remove(name) {
                    self.priority_changed(name, old.global_default);
                }
            }
            Kind::ResourceSlice => self.slice_gone(name),
            Kind::ResourceClaim => self.claim_gone(&ClaimKey(scoped)),
            Kind::ResourceClaimTemplate => self.template_gone(&scoped),
            Kind::DeviceClass => {
                if let Some(old) = self.objects.classes.remove(name) {
                    self.mark_served(&old.object);
                }
                self.specs.class_changed(name);
            }
            Kind::DeviceTaintRule => {
                if let Some(old) = self.objects.taint_rules.remove(name) {
                    self.taint_rule_changed(&old);
                }
            }
            Kind::PersistentVolume => self.volume_gone(scoped.name),
            Kind::PersistentVolumeClaim => self.volume_claim_gone(VolumeClaimKey(scoped)),
            Kind::StorageClass => self.storage_class_gone(name),
            Kind::CSINode => self.csi_node_gone(scoped.name),
            Kind::CSIDriver => self.csi_driver_gone(scoped.name),
            Kind::CSIStorageCapacity => self.storage_capacity_gone(&scoped),
            Kind::VolumeAttachment => self.volume_attachment_gone(name),
            Kind::Workload(_) => self.workload_gone(reference),
            Kind::NodeTopology => self.topology_gone(name),
            Kind::Placement => {
                self.objects.placements.remove(&scoped);
            }
            Kind::Scheduling(kind) => self.scheduling_gone(kind, &scoped),
        }
        self.findings.read.remove(reference);
        self.findings.lowered.remove(reference);
        self.findings.repeated.remove(reference);
        if self.unread.remove(reference) {
            self.mark_namers(reference);
        }
    }

    /// Marks who names an object of which it has become known, or is no more, that it could not be
    /// read.
    pub(super) fn mark_namers(&mut self, object: &ObjectRef) {
        let scoped = self.scoped(&object.namespace, &object.name);
        match object.kind {
            Kind::ResourceClaimTemplate => self.dirty.templates.push(scoped),
            Kind::ResourceClaim => {
                let users = self.index.claim.get(&ClaimKey(scoped)).into_iter().flatten();
                self.dirty.pods.extend(users.cloned());
            }
            Kind::DeviceClass => self.specs.class_changed(&object.name),
            Kind::PriorityClass => self.priority_changed(&object.name, false),
            Kind::RuntimeClass => self.runtime_changed(&scoped.name, false),
            Kind::ServiceAccount => self.mark_drafts(&scoped.namespace),
            Kind::LimitRange
            | Kind::ResourceQuota
            | Kind::Node
            | Kind::Pod
            | Kind::Service
            | Kind::ReplicationController
            | Kind::Namespace
            | Kind::ResourceSlice
            | Kind::DeviceTaintRule
            | Kind::PersistentVolume
            | Kind::PersistentVolumeClaim
            | Kind::StorageClass
            | Kind::CSINode
            | Kind::CSIDriver
            | Kind::CSIStorageCapacity
            | Kind::VolumeAttachment
            | Kind::NodeTopology
            | Kind::Placement => {}
            Kind::Scheduling(kind) => {
                self.dirty.gangs.push(GroupKey { object: scoped, kind: Name::new(kind.word()) });
            }
            Kind::Workload(_) => {
                let needing = self.index.runtime.get(object).cloned().unwrap_or_default();
                needing.iter().for_each(|key| self.expand_again(key));
            }
        }
    }

    /// The API server gives each namespace a label of its name.
    fn namespace(&mut self, namespace: &Namespace, header: Header) {
        let names = &mut self.interned.names;
        let name = names.get(&namespace.metadata.name);
        let mut labels = pod::labels(&namespace.metadata.labels, names).into_vec();
        let own = names.get("kubernetes.io/metadata.name");
        if let Err(at) = labels.binary_search_by(|(label, _)| label.cmp(&own)) {
            labels.insert(at, (own, name.clone()));
        }
        self.meant.namespace_changed(&name);
        let labels = labels.into();
        let going = namespace.metadata.deletion_timestamp.is_some();
        let said = self.objects.says_namespaces();
        let record = NamespaceRecord { header, labels, going };
        let before = self.objects.namespaces.insert(name.clone(), record);
        if before.is_none_or(|before| before.going != going) {
            self.namespace_stands(&name, said);
        }
    }

    /// Takes in an object about volumes.
    fn of_storage(&mut self, object: &Object, header: Header) {
        match object {
            Object::PersistentVolume(volume) => self.volume(volume, header),
            Object::PersistentVolumeClaim(claim) => self.volume_claim(claim, header),
            Object::StorageClass(class) => self.storage_class(class, header),
            Object::CSINode(node) => self.csi_node(node, header),
            Object::CSIDriver(driver) => self.csi_driver(driver, header),
            Object::CSIStorageCapacity(capacity) => self.storage_capacity(capacity, header),
            Object::VolumeAttachment(attachment) => self.volume_attachment(attachment, header),
            Object::Node(_)
            | Object::Pod(_)
            | Object::Namespace(_)
            | Object::Service(_)
            | Object::ReplicationController(_)
            | Object::ServiceAccount(_)
            | Object::PriorityClass(_)
            | Object::RuntimeClass(_)
            | Object::LimitRange(_)
            | Object::ResourceQuota(_)
            | Object::ResourceSlice(_)
            | Object::ResourceClaim(_)
            | Object::ResourceClaimTemplate(_)
            | Object::DeviceClass(_)
            | Object::DeviceTaintRule(_)
            | Object::Workload(_)
            | Object::Scheduling(_)
            | Object::NodeTopology(_)
            | Object::Placement(_) => {}
        }
    }

    fn node(&mut self, node: &Node, header: Header) -> Vec<Note> {
        let names = &mut self.interned.names;
        let taint = |t: &phalanx_objects::core::Taint, names: &mut super::Names| {
            rules::taint(&t.key, &t.value, &t.effect, names)
        };
        let mut features: Vec<Name> =
            node.status.declared_features.iter().map(|f| names.get(f)).collect();
        features.sort();
        let engine = EngineNode {
            allocatable: amount::allocatable(
                &node.status.allocatable,
                &node.status.capacity,
                names,
            ),
            unhealthy: amount::unhealthy(&node.status.allocatable, &node.status.capacity)
                .map(|(name, _, more)| (names.get(name), more))
                .collect(),
            labels: node
                .metadata
                .labels
                .iter()
                .map(|(k, v)| (names.get(k), names.get(v)))
                .collect(),
            taints: node.spec.taints.iter().filter_map(|t| taint(t, names)).collect(),
            unschedulable: node.spec.unschedulable,
            features: features.into(),
            images: images(if self.scored { &node.status.images } else { &[] }, names),
        };
        let name = names.get(&node.metadata.name);
        self.dirty.nodes.push(name.clone());
        let empty = engine.allocatable.pods == 0;
        let record = NodeRecord { header, node: engine };
        let old = self.objects.nodes.remove(&name);
        self.node_moves(old.as_ref(), Some(&record));
        self.objects.nodes.insert(name, record);
        if !empty {
            return Vec::new();
        }
        vec![(
            Severity::Warning,
            "status.allocatable.pods".to_owned(),
            "The node allows no pods. Where `status.allocatable` has no `pods`, Kubernetes places \
             nothing on it."
                .to_owned(),
        )]
    }

    pub(super) fn pod_reader(&mut self) -> PodReader<'_> {
        PodReader {
            rules: Rules {
                admission: &self.objects.admission,
                namespaces: self.objects.named_namespaces(),
                priorities: &self.objects.priorities,
                compat: &self.compat,
                unread: &self.unread,
            },
            names: &mut self.interned.names,
            shapes: &mut self.interned.shapes,
            selectors: &mut self.meant.selectors,
            compat: &self.compat,
            scheduler: self.scheduler.as_deref(),
            scored: self.scored,
            notes: Vec::new(),
        }
    }

    fn pod(&mut self, pod: &Arc<Pod>, header: Header) -> Vec<Note> {
        let key = PodKey(self.scoped(&pod.metadata.namespace, &pod.metadata.name));
        self.controlled(&key, &pod.metadata);
        let mut reader = self.pod_reader();
        let record = reader.pod(pod, header);
        let notes = std::mem::take(&mut reader.notes);
        self.pod_record(key, record);
        notes
    }

    /// Puts the record of a pod in place of the one that there is.
    pub(super) fn pod_record(&mut self, key: PodKey, record: PodRecord) {
        self.pod_gone(&key);
        self.index_pod(&key, &record, true);
        self.objects.pods.insert(key.clone(), Arc::new(record));
        self.dirty.pods.push(key);
    }

    fn pod_gone(&mut self, key: &PodKey) {
        if let Some(old) = self.objects.pods.remove(key) {
            self.index_pod(key, &old, false);
            self.dirty.pods.push(key.clone());
        }
    }

    /// Enters a pod into the indices, or takes it out.
    fn index_pod(&mut self, key: &PodKey, record: &PodRecord, enter: bool) {
        let dependent = Dependent::Pod(key.clone());
        self.mark_namesakes(&key.0.namespace, &key.0.name);
        self.index_shape(&record.labels, &record.shape, &dependent, enter);
        if record.life.is_seen() {
            let rules = record.shape.near.as_deref();
            self.meant.index(&record.labels, rules, &dependent, enter);
        }
        self.index_draft(&key.0.namespace, record.draft.as_deref(), &dependent, enter);
        if record.life == Life::Pending {
            self.index_asks(&record.shape, &dependent, enter);
            self.index_spread(&record.labels, &record.shape, &dependent, enter);
        }
        self.index_priority(&record.priority, dependent, enter);
        self.mark_extended(key);
        let mut claims: Vec<Name> =
            record.claims_made.iter().filter_map(|(_, claim)| claim.clone()).collect();
        for claim in &record.shape.claims {
            if let PodClaimSource::Claim(name) = &claim.source {
                claims.push(name.clone());
            }
        }
        for name in claims {
            let claim = ClaimKey(Scoped { namespace: key.0.namespace.clone(), name });
            // Whether a claim is reserved for this pod or for one of its name that is gone.
            let mine = |(user, _): &(User, Uid)| *user == User::Pod(key.clone());
            let found = self.objects.claims.get(&claim);
            if record.life == Life::Pending && found.is_some_and(|c| c.users.iter().any(mine)) {
                self.dirty.claims.push(claim.clone());
            }
            change(&mut self.index.claim, claim, key.clone(), enter);
        }
        for (workload, _) in record.owner.iter().flat_map(|owner| &owner.chain) {
            change(&mut self.index.owned, workload.clone(), key.clone(), enter);
            self.dirty.workloads.push(workload.clone());
        }
        if let Some(gang) =
            record.marks.as_deref().and_then(|marks| marks.group_in(&key.0.namespace))
        {
            change(&mut self.index.members, gang, key.clone(), enter);
        }
    }

    pub(super) fn index_shape(
        &mut self,
        labels: &PodLabels,
        shape: &PodShape,
        dependent: &Dependent,
        enter: bool,
    ) {
        for claim in &shape.claims {
            if let PodClaimSource::Template(name) = &claim.source {
                let namespace = labels.namespace.clone();
                let template = Scoped { namespace, name: name.clone() };
                change(&mut self.index.template, template, dependent.clone(), enter);
            }
        }
    }

    pub(super) fn index_priority(
        &mut self,
        from: &PriorityFrom,
        dependent: Dependent,
        enter: bool,
    ) {
        let class = match from {
            PriorityFrom::Value(_) => return,
            PriorityFrom::Class(class) => class.clone(),
            PriorityFrom::Default => self.interned.names.get(""),
        };
        change(&mut self.index.priority, class, dependent, enter);
    }

    pub(super) fn mark(&mut self, dependents: impl IntoIterator<Item = Dependent>) {
        for dependent in dependents {
            match dependent {
                Dependent::Pod(pod) => self.dirty.pods.push(pod),
                Dependent::Role(group, _) => self.dirty.workloads.push(group),
            }
        }
    }

    fn priority_class(&mut self, class: &PriorityClass, header: Header) -> Vec<Note> {
        let name = self.interned.names.get(&class.metadata.name);
        let record = PriorityRecord {
            header,
            value: class.value,
            global_default: class.global_default,
            preemption_policy: class.preemption_policy.clone(),
        };
        let old = self.objects.priorities.insert(name.clone(), record);
        let default = class.global_default || old.is_some_and(|old| old.global_default);
        self.priority_changed(&name, default);
        Vec::new()
    }

    fn priority_changed(&mut self, name: &str, default: bool) {
        let mut dependents = self.index.priority.get(name).cloned().unwrap_or_default();
        if default {
            dependents.extend(self.index.priority.get("").into_iter().flatten().cloned());
        }
        self.mark(dependents);
        self.mark_ranked();
    }

    fn template(&mut self, template: &Arc<ResourceClaimTemplate>, header: Header) -> Vec<Note> {
        let key = self.scoped(&template.metadata.namespace, &template.metadata.name);
        let names = &mut self.interned.names;
        // The wish on the claims that it makes, else the one on the template itself.
        let wish = match wish(&template.spec.metadata, names) {
            Ok(none) if none.is_empty() => wish(&template.metadata, names),
            own => own,
        };
        let notes = wish_notes(&wish);
        let devices = SpecText::Template(Arc::clone(template));
        let spec = self.specs.add(devices, wish, &mut self.interned.names);
        self.template_gone(&key);
        self.specs.take(spec);
        change(&mut self.index.spec_templates, spec, key.clone(), true);
        self.objects.templates.insert(key, TemplateRecord { header, spec });
        notes
    }

    fn template_gone(&mut self, key: &Scoped) {
        if let Some(old) = self.objects.templates.remove(key) {
            self.specs.give(old.spec);
            change(&mut self.index.spec_templates, old.spec, key.clone(), false);
        }
        self.dirty.templates.push(key.clone());
    }

    fn claim(&mut self, claim: &Arc<ResourceClaim>, header: Header) -> Vec<Note> {
        let key = ClaimKey(self.scoped(&claim.metadata.namespace, &claim.metadata.name));
        let wish = wish(&claim.metadata, &mut self.interned.names);
        let notes = wish_notes(&wish);
        let devices = SpecText::Claim(Arc::clone(claim));
        let spec = self.specs.add(devices, wish, &mut self.interned.names);
        let pod_claim = claim.metadata.annotations.get(POD_CLAIM_ANNOTATION);
        let record = ClaimRecord {
            header,
            spec,
            held: claim
                .status
                .allocation
                .as_ref()
                .map(|held| Allocation { early: early(claim, held), ..self.allocation(held) }),
            failed: self.failed(claim),
            users: self.users(claim),
            deleting: claim.metadata.deletion_timestamp.is_some(),
            owner: self.claim_owner(&claim.metadata),
            pod_claim: pod_claim.map(|name| self.interned.names.get(name)),
            extended: claim.metadata.annotations.get(EXTENDED_CLAIM_ANNOTATION).map(String::as_str)
                == Some("true"),
        };
        self.claim_gone(&key);
        self.specs.take(spec);
        self.index_claim(&key, &record, true);
        self.objects.claims.insert(key, record);
        notes
    }

    fn claim_gone(&mut self, key: &ClaimKey) {
        if let Some(old) = self.objects.claims.remove(key) {
            self.specs.give(old.spec);
            self.index_claim(key, &old, false);
        }
    }

    fn index_claim(&mut self, key: &ClaimKey, record: &ClaimRecord, enter: bool) {
        change(&mut self.index.spec_claims, record.spec, key.clone(), enter);
        self.index_held(key, record, enter);
        if let Some((pod, _)) = &record.owner
            && (record.pod_claim.is_some() || record.extended)
        {
            change(&mut self.index.made, pod.clone(), key.clone(), enter);
            self.dirty.pods.push(pod.clone());
        }
        let users = self.index.claim.get(key).into_iter().flatten().cloned();
        self.dirty.pods.extend(users);
        for group in self.index.shared_claims.get(key).cloned().unwrap_or_default() {
            self.mark_sharers(&group);
        }
        self.dirty.claims.push(key.clone());
    }

    fn claim_owner(&mut self, meta: &ObjectMeta) -> Option<(PodKey, Uid)> {
        let owner = meta.controller().filter(|owner| owner.kind == "Pod")?;
        Some((PodKey(self.scoped(&meta.namespace, &owner.name)), Uid::new(&owner.uid)))
    }

    fn allocation(&mut self, held: &AllocationResult) -> Allocation {
        let names = &mut self.interned.names;
        let mut devices = Vec::with_capacity(held.devices.results.len());
        for result in &held.devices.results {
            let pool = PoolKey { driver: names.get(&result.driver), pool: names.get(&result.pool) };
            devices.push(HeldDevice {
                device: DeviceKey { pool, device: names.get(&result.device) },
                admin: result.admin_access == Some(true),
                share: result.share_id.is_some(),
                consumed: result
                    .consumed_capacity
                    .iter()
                    .map(|(name, amount)| (names.get(name), nanos(amount)))
                    .collect(),
                consumes: Consumption::default(),
            });
        }
        let nodes = held.node_selector.as_ref().map(|selector| rules::terms(selector, names));
        Allocation { devices: devices.into(), nodes, early: 0 }
    }

    /// What kube-scheduler comes to of binding conditions: it goes through the devices in order, and
    /// stops at the first that is not ready (`isClaimReadyForBinding`).
    fn failed(&mut self, claim: &ResourceClaim) -> Option<BindingFailure> {
        if !self.compat.awaits_conditions() {
            return None;
        }
        let allocation = claim.status.allocation.as_ref()?;
        let end = allocation
            .allocation_timestamp
            .map(|at| Timestamp(at.as_millisecond().saturating_add(BINDING_TIMEOUT_MILLIS)));
        for result in allocation.devices.results.iter().filter(|r| !r.binding_conditions.is_empty())
        {
            let reported = conditions_of(claim, result).unwrap_or_default();
            let is_true =
                |name: &&String| reported.iter().any(|c| c.kind == **name && c.status == "True");
            let failed = result.binding_failure_conditions.iter().find(is_true);
            let missing = result.binding_conditions.iter().find(|name| !is_true(name));
            let (condition, after) = match (failed, missing) {
                (Some(condition), _) => (condition, None),
                (None, Some(condition)) => (condition, Some(end?)),
                (None, None) => continue,
            };
            let names = &mut self.interned.names;
            let pool = PoolKey { driver: names.get(&result.driver), pool: names.get(&result.pool) };
            let device = DeviceKey { pool, device: names.get(&result.device) };
            return Some(BindingFailure { device, condition: names.get(condition), after });
        }
        None
    }

    fn users(&mut self, claim: &ResourceClaim) -> Box<[(User, Uid)]> {
        let mut users = Vec::with_capacity(claim.status.reserved_for.len());
        for user in &claim.status.reserved_for {
            let key = if user.api_group.is_empty() && user.resource == "pods" {
                User::Pod(PodKey(self.scoped(&claim.metadata.namespace, &user.name)))
            } else {
                User::Other(Name::new(&format!("{}/{}", user.resource, user.name)))
            };
            users.push((key, Uid::new(&user.uid)));
        }
        users.into()
    }

    /// What is wrong with its selectors is said when somebody asks.
    fn device_class(&mut self, class: &Arc<DeviceClass>, header: Header) {
        let name = self.interned.names.get(&class.metadata.name);
        self.specs.class_changed(&name);
        self.mark_served(class);
        let class = Class { header, object: Arc::clone(class) };
        if let Some(old) = self.objects.classes.insert(name, class) {
            self.mark_served(&old.object);
        }
    }

    /// What is kept of the object's metadata, if it is there.
    pub(super) fn header(&self, reference: &ObjectRef) -> Option<&Header> {
        let name = reference.name.as_str();
        let scoped = || Scoped {
            namespace: Name::new(&reference.namespace),
            name: Name::new(&reference.name),
        };
        let group = |kind: &str| phalanx_engine::GroupKey { object: scoped(), kind: kind.into() };
        let objects = &self.objects;
        match reference.kind {
            Kind::Node => objects.nodes.get(name).map(|r| &r.header),
            Kind::Pod => objects.pods.get(&PodKey(scoped())).map(|r| &r.header),
            Kind::Namespace => objects.namespaces.get(name).map(|r| &r.header),
            Kind::Service => self.spreading.services.get(&scoped()).map(|kept| &kept.header),
            Kind::ReplicationController => {
                self.spreading.controllers.get(&scoped()).map(|kept| &kept.header)
            }
            Kind::ServiceAccount => objects.admission.accounts.get(&scoped()).map(|k| &k.header),
            Kind::PriorityClass => objects.priorities.get(name).map(|r| &r.header),
            Kind::RuntimeClass => objects.admission.runtime_classes.get(name).map(|k| &k.header),
            Kind::LimitRange => objects.admission.limit_ranges.get(&scoped()).map(|k| &k.header),
            Kind::ResourceQuota => objects.admission.quotas.get(&scoped()).map(|k| &k.header),
            Kind::ResourceSlice => objects.slices.get(name).map(|r| &r.header),
            Kind::ResourceClaim => objects.claims.get(&ClaimKey(scoped())).map(|r| &r.header),
            Kind::ResourceClaimTemplate => objects.templates.get(&scoped()).map(|r| &r.header),
            Kind::DeviceClass => objects.classes.get(name).map(|r| &r.header),
            Kind::DeviceTaintRule => objects.taint_rules.get(name).map(|r| &r.header),
            Kind::PersistentVolume => self.storage.volumes.get(name).map(|(header, _)| header),
            Kind::PersistentVolumeClaim => {
                self.storage.claims.get(&VolumeClaimKey(scoped())).map(|(header, _)| header)
            }
            Kind::StorageClass => self.storage.classes.get(name).map(|r| &r.header),
            Kind::CSINode => self.storage.csi_nodes.get(name).map(|(header, _)| header),
            Kind::CSIDriver => self.storage.drivers.get(name).map(|r| &r.header),
            Kind::CSIStorageCapacity => self.storage.capacities.get(&scoped()).map(|r| &r.header),
            Kind::VolumeAttachment => self.storage.attachments.get(name).map(|r| &r.header),
            Kind::Workload(kind) => objects.workloads.get(&group(kind.word())).map(|r| &r.header),
            Kind::NodeTopology => objects.topologies.get(name).map(|r| &r.header),
            Kind::Placement => objects.placements.get(&scoped()).map(|r| &r.header),
            Kind::Scheduling(kind) => objects.scheduling.get(&(kind, scoped())).map(|r| &r.header),
        }
    }
}

/// How early in its lists the alternatives stand that an allocation has (DynamicResources'
/// `computeScore`).
fn early(claim: &ResourceClaim, held: &AllocationResult) -> u32 {
    let given = |request: &str, alternative: &str| {
        let of = |result: &DeviceRequestAllocationResult| {
            result.request.split_once('/') == Some((request, alternative))
        };
        held.devices.results.iter().any(of)
    };
    let of_request = |request: &DeviceRequest| {
        let list = request.first_available.iter().enumerate();
        let chosen = list.filter(|(_, one)| given(&request.name, &one.name));
        let early = |(at, _)| {
            FIRST_AVAILABLE_MAX.saturating_sub(u32::try_from(at).unwrap_or(FIRST_AVAILABLE_MAX))
        };
        chosen.map(early).sum::<u32>()
    };
    claim.spec.devices.requests.iter().map(of_request).sum()
}

/// What the driver reports of a device of an allocation; none where it has not reported yet.
pub(crate) fn conditions_of<'c>(
    claim: &'c ResourceClaim,
    result: &DeviceRequestAllocationResult,
) -> Option<&'c [Condition]> {
    let of = |status: &&AllocatedDeviceStatus| {
        status.driver == result.driver
            && status.pool == result.pool
            && status.device == result.device
            && status.share_id == result.share_id
    };
    claim.status.devices.iter().find(of).map(|status| status.conditions.as_slice())
}

/// Adds to one of the sets of an index, or takes out of it.
pub(super) fn change<K: Ord, V: Ord>(
    index: &mut std::collections::BTreeMap<K, std::collections::BTreeSet<V>>,
    key: K,
    value: V,
    enter: bool,
) {
    if enter {
        index.entry(key).or_default().insert(value);
    } else if let Some(set) = index.get_mut(&key) {
        set.remove(&value);
        if set.is_empty() {
            index.remove(&key);
        }
    }
}

pub(super) fn wish_notes(wish: &Wish) -> Vec<Note> {
    match wish {
        Ok(_) => Vec::new(),
        Err(message) => vec![(
            Severity::Error,
            format!("metadata.annotations[{ALIGN_ANNOTATION}]"),
            format!("{message} No pod that needs it is placed, for the wish might be required."),
        )],
    }
}

/// The images of a node by name; of two of one name the first.
fn images(of: &[ContainerImage], names: &mut super::Names) -> Box<[(Name, i64)]> {
    let mut all = Vec::new();
    for image in of {
        all.extend(image.names.iter().map(|name| (names.get(name), image.size_bytes)));
    }
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.dedup_by(|later, first| later.0 == first.0);
    all.into()
}

/// Notes as findings on their object.
pub(super) fn findings(object: &ObjectRef, source: &Source, notes: Vec<Note>) -> Vec<Finding> {
    let finding = |(severity, path, message): Note| Finding {
        severity,
        object: Some(object.clone()),
        file: Arc::clone(&source.file),
        line: source.line,
        path,
        message,
    };
    notes.into_iter().map(finding).collect()
}
