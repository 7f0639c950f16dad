//! Pods: from the object to its compact form, and from that to the engine's request.
//!
//! A pod that waits is asked for by its spec; one on a node stands in the ledger by what it holds,
//! and its rules about nodes have done their work. Which claims it has been given is looked up in
//! the claims that are there, as the resourceclaim controller would have made them.

use std::sync::Arc;

use phalanx_engine::{
    Align, Effect, Fault, GroupKey, Level, Name, NodeKey, NodeRules, PodKey, Reason, Scoped,
    Shared, Timestamp, Toleration,
};
use phalanx_objects::core::{Pod, PodSpec, PodStatus};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::topology::{ALIGN_ANNOTATION, AlignLevel, AlignRule, Strength};
use rustc_hash::FxHashSet;

use super::admission::{Made, Rules};
use super::amount;
use super::around::{AroundReader, host_ports};
use super::claim::Wish;
use super::intern::Names;
use super::meant::{Labels, PodLabels, PodSelectors};
use super::record::{
    Header, Life, Owner, PodClaim, PodClaimSource, PodRecord, PodShape, PriorityFrom, Uid,
    timestamp,
};
use super::rules;
use super::volumes::pod_volumes;
use crate::compat::{Compat, Gate, Version};
use crate::finding::Severity;
use crate::lower::slice::Note;

/// What reading a pod or a pod template needs and fills.
pub(crate) struct PodReader<'a> {
    pub(crate) names: &'a mut Names,
    pub(crate) shapes: &'a mut FxHashSet<Shared<PodShape>>,
    pub(crate) selectors: &'a mut PodSelectors,
    pub(crate) compat: &'a Compat,
    /// Only pods of this scheduler are ours; none is every scheduler.
    pub(crate) scheduler: Option<&'a str>,
    /// Nodes are scored: images are kept.
    pub(crate) scored: bool,
    /// What admission goes by.
    pub(crate) rules: Rules<'a>,
    pub(crate) notes: Vec<Note>,
}

/// Reads the wish of an annotation.
pub(crate) fn wish(meta: &ObjectMeta, names: &mut Names) -> Wish {
    let Some(text) = meta.annotations.get(ALIGN_ANNOTATION) else { return Ok(Box::default()) };
    match AlignRule::parse(text) {
        Ok(rules) => Ok(rules.iter().map(align).collect()),
        Err(error) => Err(names.get(&error.to_string())),
    }
}

fn align(rule: &AlignRule) -> Align {
    let level = match rule.level {
        AlignLevel::Island => Level::Island,
        AlignLevel::Switch => Level::Switch,
        AlignLevel::Root => Level::Root,
        AlignLevel::Numa => Level::Numa,
        AlignLevel::Rail => Level::Rail,
    };
    Align { level, required: rule.strength == Strength::Required }
}

/// The node that a pod is on. A manifest that names its node (`spec.nodeName`) is on none: the API
/// server has not made it, no controller either, and no kubelet says anything of it.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    let is_there = || {
        super::admission::exists(&pod.metadata)
            || !pod.metadata.owner_references.is_empty()
            || pod.status != PodStatus::default()
    };
    Some(pod.spec.node_name.as_str()).filter(|node| !node.is_empty() && is_there())
}

impl PodReader<'_> {
    /// The compact form of a pod.
    pub(crate) fn pod(&mut self, pod: &Arc<Pod>, header: Header) -> PodRecord {
        let life = self.life(pod);
        let on_node = matches!(life, Life::Bound(_) | Life::Terminating(..));
        let labels = self.labels(&pod.metadata.namespace, &pod.metadata.labels);
        let is_made = super::admission::exists(&pod.metadata);
        let (shape, draft) = if on_node {
            (self.held(pod, &labels), None)
        } else if is_made || life == Life::Ended {
            (self.asked(&pod.metadata, &pod.spec, (&labels, is_made)), None)
        } else {
            let made = Made::Itself(Arc::clone(pod));
            let (shape, draft) = self.admitted(&labels, "", made, Arc::default());
            (shape, Some(Box::new(draft)))
        };
        let nominated = Some(pod.status.nominated_node_name.as_str());
        let nominated = nominated.filter(|node| !node.is_empty() && life == Life::Pending);
        let nominated = nominated.map(|node| NodeKey(self.names.get(node)));
        let deadline = pod.spec.active_deadline_seconds.map(|s| s.saturating_mul(1000));
        let start = pod.status.start_time.map(timestamp);
        PodRecord {
            header,
            life,
            shape,
            labels,
            nominated,
            priority: self.priority(&pod.spec, is_made),
            owner: self.owner(&pod.metadata),
            marks: super::workload::marks(&pod.metadata, &pod.spec, self.names),
            run_max_millis: deadline,
            started: start,
            expected_end: start
                .zip(deadline)
                .map(|(start, millis)| Timestamp(start.0.saturating_add(millis))),
            claims_made: pod
                .status
                .resource_claim_statuses
                .iter()
                .map(|made| {
                    let claim = made.resource_claim_name.as_ref();
                    (self.names.get(&made.name), claim.map(|name| Name::new(name)))
                })
                .collect(),
            draft,
        }
    }

    fn life(&mut self, pod: &Pod) -> Life {
        if pod.status.phase.is_terminal() {
            return Life::Ended;
        }
        let deleted = pod.metadata.deletion_timestamp.map(timestamp);
        let Some(node) = node_of(pod) else {
            // One that names its node is no scheduler's, and comes all the same.
            let comes = self.is_ours(&pod.spec) || !pod.spec.node_name.is_empty();
            return match deleted {
                Some(_) => Life::Leaving,
                None if comes => Life::Pending,
                None => Life::Foreign,
            };
        };
        let node = NodeKey(self.names.get(node));
        match deleted {
            Some(at) => Life::Terminating(node, at),
            None => Life::Bound(node),
        }
    }

    /// Whether the scheduler that the answer is about places the pod.
    pub(crate) fn is_ours(&self, spec: &PodSpec) -> bool {
        let name = match spec.scheduler_name.as_str() {
            "" => "default-scheduler",
            name => name,
        };
        self.scheduler.is_none_or(|scheduler| scheduler == name)
    }

    /// What a pod on a node holds.
    fn held(&mut self, pod: &Pod, labels: &PodLabels) -> Shared<PodShape> {
        let version = self.compat.version();
        let mut reader = self.around(labels, true);
        let near = reader.held(pod.spec.affinity.as_ref());
        let resources = amount::held(&pod.spec, &pod.status, version, self.names);
        let shape = PodShape {
            padded: amount::padded(&pod.spec, &pod.status, version),
            resources,
            node: NodeRules::default(),
            claims: self.claims(&pod.spec),
            extended: Box::default(),
            align: Box::default(),
            gates: Box::default(),
            ports: host_ports(&pod.spec, self.names),
            near,
            volumes: pod_volumes(&pod.spec, self.names),
            features: Box::default(),
            images: Box::default(),
            fault: None,
        };
        self.share(shape)
    }

    /// The labels of a pod, by which others may mean it.
    pub(crate) fn labels(
        &mut self,
        namespace: &str,
        labels: &phalanx_objects::meta::Labels,
    ) -> Shared<PodLabels> {
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        let namespace = self.names.get(namespace);
        Shared::new(PodLabels { namespace, labels: self::labels(labels, self.names) })
    }

    fn around<'r>(&'r mut self, pod: &'r PodLabels, created: bool) -> AroundReader<'r> {
        AroundReader { names: self.names, selectors: self.selectors, pod, created }
    }

    /// What a pod asks for that is not on a node, or does not exist yet. The API server has seen one
    /// that is `created`.
    pub(crate) fn asked(
        &mut self,
        meta: &ObjectMeta,
        spec: &PodSpec,
        (labels, created): (&PodLabels, bool),
    ) -> Shared<PodShape> {
        let (near, around) = match self.around(labels, created).asked(spec) {
            Ok(near) => (near, None),
            Err(fault) => (None, Some(fault)),
        };
        let (align, fault) = match wish(meta, self.names) {
            Ok(wish) => (wish, self.in_part(spec)),
            Err(message) => (Box::default(), Some(self.bad_wish(message))),
        };
        let node = rules::node_rules(spec, self.names);
        self.note_preferred(&node);
        let resources = amount::asked(spec, self.names);
        let shape = PodShape {
            padded: amount::padded(spec, &PodStatus::default(), self.compat.version()),
            resources,
            node,
            claims: self.claims(spec),
            extended: super::extended::kept(spec, self.names),
            align,
            gates: spec.scheduling_gates.iter().map(|gate| self.names.get(&gate.name)).collect(),
            ports: host_ports(spec, self.names),
            near,
            volumes: pod_volumes(spec, self.names),
            features: self.features(spec),
            images: self.images(spec),
            fault: fault.or(around),
        };
        self.share(shape)
    }

    /// The features of the kubelet that the pod needs, where kube-scheduler looks at them
    /// (component-helpers' `nodedeclaredfeatures`).
    fn features(&mut self, spec: &PodSpec) -> Box<[Name]> {
        if !self.compat.is_on(Gate::NodeDeclaredFeatures) {
            return Box::default();
        }
        let containers = || spec.containers.iter().chain(&spec.init_containers);
        let own_users = spec.host_network && spec.host_users == Some(false);
        let needs = [
            (
                "RestartAllContainersOnContainerExits",
                containers().any(|c| c.restart_policy_rules.0),
            ),
            ("UserNamespacesHostNetworkSupport", own_users),
            ("VolumeBindMountOptions", containers().any(|c| c.volume_mounts.bind_options)),
        ];
        needs.into_iter().filter(|(_, is)| *is).map(|(name, _)| self.names.get(name)).collect()
    }

    /// The images of init containers, containers and, but in 1.34, volumes.
    fn images(&mut self, spec: &PodSpec) -> Box<[Name]> {
        if !self.scored {
            return Box::default();
        }
        let of_volumes = spec.volumes.of_images.iter().map(|volume| &volume.image);
        let of_volumes = of_volumes.filter(|_| self.compat.version() > Version::V1_34);
        let containers = spec.init_containers.iter().chain(&spec.containers);
        let all = containers.map(|container| &container.image).chain(of_volumes);
        let names = &mut *self.names;
        all.map(|image| names.get(image.as_str())).collect()
    }

    /// An amount of an extended resource that the API server refuses of the pod: less than a whole unit,
    /// or more than it can count.
    fn in_part(&mut self, spec: &PodSpec) -> Option<Fault> {
        let lists = [("containers", &spec.containers), ("initContainers", &spec.init_containers)];
        let containers = lists.into_iter().flat_map(|(field, containers)| {
            containers.iter().enumerate().map(move |(at, of)| ((field, at), &of.resources))
        });
        let mut amounts = containers.flat_map(|(at, resources)| {
            let lists = [("limits", &resources.limits), ("requests", &resources.requests)];
            lists.into_iter().flat_map(move |(list, amounts)| {
                amounts.iter().map(move |(name, amount)| (at, list, name, amount))
            })
        });
        let ((field, at), list, name, amount) = amounts.find(|(.., name, amount)| {
            super::extended::may_be_served(name) && amount.milli_ceil() % 1000 != 0
        })?;
        let path = format!("spec.{field}[{at}].resources.{list}[{name:?}]");
        let part = crate::words::part(name, &amount.to_string());
        let why = crate::words::uncountable(amount);
        self.notes.push((Severity::Error, path, format!("{part} can't be granted: {why}.")));
        let (subject, detail) = (self.names.get(&part), self.names.get(why));
        Some(Fault { reason: Reason::RequestUnsupported, subject, detail })
    }

    fn bad_wish(&mut self, message: Name) -> Fault {
        self.notes.push((
            Severity::Error,
            format!("metadata.annotations[{ALIGN_ANNOTATION}]"),
            format!("{message} The pod is not placed, for the wish might be required."),
        ));
        let subject = self.names.get(ALIGN_ANNOTATION);
        Fault { reason: Reason::RequestUnsupported, subject, detail: message }
    }

    fn note_preferred(&mut self, node: &NodeRules) {
        let never = |(_, term): &&(i32, phalanx_engine::NodeTerm)| {
            term.contains(&phalanx_engine::NodeRequirement::Never)
        };
        if node.preferred.iter().any(|wish| never(&wish)) {
            self.notes.push((
                Severity::Warning,
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
                    .to_owned(),
                "A preferred term can't be evaluated. Phalanx leaves it out; kube-scheduler ends \
                 the attempt with an error when more than one node fits."
                    .to_owned(),
            ));
        }
    }

    fn claims(&mut self, spec: &PodSpec) -> Box<[PodClaim]> {
        let mut claims = Vec::with_capacity(spec.resource_claims.len());
        for claim in &spec.resource_claims {
            let source = match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
                (Some(name), None) => PodClaimSource::Claim(self.names.get(name)),
                (None, Some(name)) => PodClaimSource::Template(self.names.get(name)),
                (None, None) | (Some(_), Some(_)) => PodClaimSource::Invalid,
            };
            claims.push(PodClaim { name: self.names.get(&claim.name), source });
        }
        claims.into()
    }

    /// The shape of a pod that names its node, as the kubelet there looks at it (`AdmissionCheck`): room,
    /// host ports, the rules about nodes but for cordons and taints that only keep away, and features.
    /// Of claims that would be made for it, no scheduler allocates any.
    pub(super) fn seen_by_kubelet(&mut self, shape: &PodShape) -> Shared<PodShape> {
        let no_schedule = Toleration { key: None, equals: None, effect: Some(Effect::NoSchedule) };
        let tolerations = shape.node.tolerations.iter().cloned().chain([no_schedule]).collect();
        let node = NodeRules { preferred: Box::default(), tolerations, ..shape.node.clone() };
        let made = shape.claims.iter().find(|claim| match claim.source {
            PodClaimSource::Template(_) => true,
            PodClaimSource::Claim(_) | PodClaimSource::Invalid => false,
        });
        let unmade = made.map(|claim| {
            let detail = self.names.get(
                "the pod names its node, so that no scheduler allocates the claims that are made for \
                 it, and it never starts; ask for the node by a node selector instead",
            );
            let subject = claim.name.clone();
            Fault { reason: Reason::RequestUnsupported, subject, detail }
        });
        let fault = shape.fault.clone().or(unmade);
        self.share(PodShape { node, near: None, fault, ..shape.clone() })
    }

    pub(super) fn share(&mut self, shape: PodShape) -> Shared<PodShape> {
        let shape = Shared::new(shape);
        if let Some(shared) = self.shapes.get(&shape) {
            return shared.clone();
        }
        self.shapes.insert(shape.clone());
        shape
    }

    /// A pod that the API server has created has its priority; without one it is 0.
    pub(crate) fn priority(&mut self, spec: &PodSpec, created: bool) -> PriorityFrom {
        if let Some(value) = spec.priority {
            return PriorityFrom::Value(value);
        }
        match spec.priority_class_name.as_str() {
            "" if created => PriorityFrom::Value(0),
            "" => PriorityFrom::Default,
            class => PriorityFrom::Class(self.names.get(class)),
        }
    }

    /// The workloads that it may be part of, and which of their pods it is.
    fn owner(&mut self, meta: &ObjectMeta) -> Option<Box<Owner>> {
        let found = super::workload::recognise(meta)?;
        let mut chain = Vec::with_capacity(found.chain.len());
        for (kind, name, uid) in &found.chain {
            let object = self.scoped(&meta.namespace, name);
            chain.push((GroupKey { object, kind: self.names.get(kind.word()) }, Uid::new(uid)));
        }
        Some(Box::new(Owner {
            chain: chain.into(),
            role: self.names.get(&found.role),
            outer: found.outer,
            inner: found.inner,
            attempt: found.attempt,
        }))
    }

    pub(super) fn scoped(&mut self, namespace: &str, name: &str) -> Scoped {
        Scoped { namespace: self.names.get(namespace), name: self.names.get(name) }
    }
}

/// Labels as pairs, sorted by key.
pub(crate) fn labels(labels: &phalanx_objects::meta::Labels, names: &mut Names) -> Labels {
    labels.iter().map(|(key, value)| (names.get(key), names.get(value))).collect()
}

/// A level as the annotation spells it.
pub(super) fn level_word(level: Level) -> &'static str {
    let level = match level {
        Level::Island => AlignLevel::Island,
        Level::Switch => AlignLevel::Switch,
        Level::Root => AlignLevel::Root,
        Level::Numa => AlignLevel::Numa,
        Level::Rail => AlignLevel::Rail,
    };
    level.as_str()
}

/// The group of one that a pod is.
pub(crate) fn group_of(pod: &PodKey, kind: &Name) -> GroupKey {
    GroupKey { object: pod.0.clone(), kind: kind.clone() }
}
