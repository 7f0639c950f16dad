//! What admission makes of one pod by itself, in the API server's order: defaults of the API,
//! LimitRanger, ServiceAccount, PodNodeSelector, Priority, DefaultTolerationSeconds, ExtendedResourceToleration,
//! RuntimeClass, PodSecurity.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::Name;
use phalanx_objects::core::{
    Container, PodSpec, PreemptionPolicy, ResourceList, TaintEffect, Toleration, TolerationOperator,
};
use phalanx_objects::meta::Labels;
use phalanx_objects::{Kind, ObjectRef, Quantity};

use super::{Admission, Level, Violations, limits, security};
use crate::compat::{Compat, Plugin};
use crate::lower::amount::is_extended;
use crate::lower::record::{NamespaceRecord, PriorityRecord};
use crate::lower::settle::{cluster_object, default_class, default_priority, priority_of};
use crate::lower::valid::Invalid;

/// Taints of a node's health that every pod tolerates for five minutes.
const HEALTH: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const HEALTH_SECONDS: i64 = 300;

/// Namespaces that the API server makes itself.
const ALWAYS: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Something that admission adds to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// Requests or limits of a container, by a LimitRange.
    Container { range: String, container: String, what: &'static str, amounts: ResourceList },
    /// What the runtime takes.
    Overhead { class: String, amounts: ResourceList },
    /// Labels that the node must have.
    NodeSelector { by: String, labels: Labels },
    /// Tolerations, by their keys.
    Tolerations { by: String, keys: Vec<String> },
}

/// Why the API server would not make a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There are RuntimeClasses, and not this one; or it stands there and could not be read.
    RuntimeClassMissing { class: String, unread: bool },
    /// The overhead is given, and is not that of the class; of no class where it has none.
    Overhead { class: Option<String> },
    /// Two node selectors contradict each other.
    Selector { by: String, key: String, adds: String, own: String },
    /// There are PriorityClasses, and not this one; or it stands there and could not be read.
    PriorityClassMissing { class: String, unread: bool },
    /// The priority is given, and the class says another.
    Priority { given: i32, class: String, value: i32 },
    /// The same of whether it preempts.
    Preemption { given: String, class: String, policy: String },
    /// A container requests more than it is limited to.
    AboveLimit { container: String, resource: String, request: Quantity, limit: Quantity },
    /// A bound of a LimitRange.
    Bound(Bound),
    /// The namespace enforces a level of PodSecurity.
    Insecure { namespace: String, level: Level, broken: Violations },
    /// There are Namespaces, and not this one; or it is being deleted.
    Namespace { name: String, going: bool },
    /// There are ServiceAccounts in its namespace, and not this one; or it stands there and could not
    /// be read.
    AccountMissing { account: String, unread: bool },
    /// A field that is refused whatever else there is.
    Invalid(Invalid),
}

/// A bound of a LimitRange that a container or the pod does not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) range: String,
    /// `container main`, or `the pod`.
    pub(crate) of: String,
    /// `min`, `max` or `maxLimitRequestRatio`.
    pub(crate) bound: &'static str,
    pub(crate) resource: String,
    pub(crate) amount: Quantity,
    /// What it has: `no limit`, `a request of 8Gi`.
    pub(crate) has: String,
}

impl Refusal {
    /// The field that it is about.
    pub(crate) fn field(&self) -> &str {
        match self {
            Self::RuntimeClassMissing { .. } => "spec.runtimeClassName",
            Self::Overhead { .. } => "spec.overhead",
            Self::Selector { .. } => "spec.nodeSelector",
            Self::PriorityClassMissing { .. } => "spec.priorityClassName",
            Self::Priority { .. } => "spec.priority",
            Self::Preemption { .. } => "spec.preemptionPolicy",
            Self::AboveLimit { .. } | Self::Bound(_) | Self::Insecure { .. } => "spec",
            Self::Namespace { .. } => "metadata.namespace",
            Self::AccountMissing { .. } => "spec.serviceAccountName",
            Self::Invalid(invalid) => &invalid.field,
        }
    }
}

/// What becomes of a pod.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) spec: PodSpec,
    pub(super) added: Vec<Added>,
    pub(super) refused: Vec<Refusal>,
    /// The field, and the RuntimeClass that may or may not be there.
    pub(super) unknown: Option<(&'static str, String)>,
}

/// What admission goes by.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) admission: &'a Admission,
    /// The namespaces, where the input has those that there are.
    pub(crate) namespaces: Option<&'a BTreeMap<Name, NamespaceRecord>>,
    pub(crate) priorities: &'a BTreeMap<Name, PriorityRecord>,
    pub(crate) compat: &'a Compat,
    pub(crate) unread: &'a BTreeSet<ObjectRef>,
}

impl Rules<'_> {
    /// Plays admission for a pod.
    pub(super) fn admit(&self, namespace: &str, spec: &PodSpec) -> Outcome {
        let mut outcome = Outcome { spec: spec.clone(), ..Outcome::default() };
        for container in containers_mut(&mut outcome.spec) {
            let resources = &mut container.resources;
            for (name, amount) in &resources.limits {
                resources.requests.entry(name.clone()).or_insert(*amount);
            }
        }
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        self.namespace(namespace, &mut outcome);
        let ranges: Vec<_> = self.admission.limits_of(namespace).collect();
        for (name, items) in &ranges {
            limits::add_defaults(name, items, &mut outcome);
        }
        let account = outcome.spec.service_account_name.clone();
        if self.admission.lacks_account(namespace, &account) {
            let (kind, name) = (Kind::ServiceAccount, account.clone());
            let named = ObjectRef { kind, namespace: namespace.to_owned(), name };
            let unread = self.unread.contains(&named);
            outcome.refused.push(Refusal::AccountMissing { account, unread });
        }
        if self.compat.has_plugin(Plugin::PodNodeSelector) {
            self.node_selector(namespace, &mut outcome);
        }
        self.priority(&mut outcome);
        tolerate_health(&mut outcome.spec);
        if self.compat.has_plugin(Plugin::ExtendedResourceToleration) {
            tolerate_extended(&mut outcome);
        }
        self.runtime_class(&mut outcome);
        above_limits(&mut outcome);
        if let Some(level) = self.admission.levels.get(namespace)
            && let Some(broken) = security::violations(*level, &outcome.spec, self.compat)
        {
            let namespace = namespace.to_owned();
            outcome.refused.push(Refusal::Insecure { namespace, level: *level, broken });
        }
        for (name, items) in &ranges {
            limits::hold(name, items, &mut outcome);
        }
        outcome
    }

    /// NamespaceLifecycle: nothing is made in a namespace that is not there, or is being deleted.
    fn namespace(&self, name: &str, outcome: &mut Outcome) {
        let Some(namespaces) = self.namespaces else { return };
        let going = namespaces.get(name).map(|namespace| namespace.going);
        if going.unwrap_or(!ALWAYS.contains(&name)) {
            let (name, going) = (name.to_owned(), going.is_some());
            outcome.refused.push(Refusal::Namespace { name, going });
        }
    }

    /// The labels that the namespace's annotation demands of nodes.
    fn node_selector(&self, namespace: &str, outcome: &mut Outcome) {
        let Some(text) = self.admission.node_selectors.get(namespace) else { return };
        let pairs = text.split(',').filter_map(|pair| pair.trim().split_once('='));
        let labels: Labels =
            pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect();
        select(format!("namespace {namespace}"), &labels, outcome);
    }

    fn priority(&self, outcome: &mut Outcome) {
        let class = outcome.spec.priority_class_name.as_str();
        // Without a single class nobody knows which there are.
        if self.priorities.is_empty() {
            return;
        }
        let known = match class {
            "" => Some(default_priority(self.priorities)),
            class => priority_of(self.priorities, class),
        };
        let class = class.to_owned();
        let record = match class.as_str() {
            "" => default_class(self.priorities),
            class => self.priorities.get(class),
        };
        let policy = match record {
            Some(record) => Some(&record.preemption_policy),
            None => known.map(|_| &PreemptionPolicy::PreemptLowerPriority),
        };
        if let (Some(policy), Some(given)) = (policy, &outcome.spec.preemption_policy)
            && policy != given
        {
            let (given, policy) = (given.to_string(), policy.to_string());
            let class = class.clone();
            outcome.refused.push(Refusal::Preemption { given, class, policy });
        }
        match (known, outcome.spec.priority) {
            (None, _) => {
                let unread = self.is_unread(Kind::PriorityClass, &class);
                outcome.refused.push(Refusal::PriorityClassMissing { class, unread });
            }
            (Some(value), Some(given)) if value != given => {
                outcome.refused.push(Refusal::Priority { given, class, value });
            }
            (Some(_), _) => {}
        }
    }

    /// What can't be read is as what is not there, so that harm to an object changes no plan more
    /// than its absence does; only the words differ.
    fn is_unread(&self, kind: Kind, name: &str) -> bool {
        !self.unread.is_empty() && self.unread.contains(&cluster_object(kind, name))
    }

    fn runtime_class(&self, outcome: &mut Outcome) {
        let name = outcome.spec.runtime_class_name.clone().filter(|name| !name.is_empty());
        let classes = &self.admission.runtime_classes;
        let class = match &name {
            None => None,
            Some(name) => match classes.get(name.as_str()) {
                Some(kept) => Some(&kept.object),
                None if classes.is_empty() => {
                    outcome.unknown = Some(("spec.runtimeClassName", name.clone()));
                    return;
                }
                None => {
                    let unread = self.is_unread(Kind::RuntimeClass, name);
                    let class = name.clone();
                    outcome.refused.push(Refusal::RuntimeClassMissing { class, unread });
                    return;
                }
            },
        };
        let overhead = class.and_then(|class| class.overhead.as_ref()).map(|o| &o.pod_fixed);
        let given = &outcome.spec.overhead;
        match overhead {
            Some(overhead) if given.is_empty() => {
                let class = name.clone().unwrap_or_default();
                outcome.spec.overhead.clone_from(overhead);
                outcome.added.push(Added::Overhead { class, amounts: overhead.clone() });
            }
            Some(overhead) if overhead == given => {}
            None if given.is_empty() => {}
            Some(_) | None => outcome.refused.push(Refusal::Overhead { class: name.clone() }),
        }
        let Some(scheduling) = class.and_then(|class| class.scheduling.as_ref()) else { return };
        let by = format!("RuntimeClass {}", name.unwrap_or_default());
        select(by.clone(), &scheduling.node_selector, outcome);
        let before = std::mem::take(&mut outcome.spec.tolerations);
        outcome.spec.tolerations = united(&before, &scheduling.tolerations);
        let new = |t: &&Toleration| !before.contains(t);
        let new = outcome.spec.tolerations.iter().filter(new).map(|t| t.key.clone());
        let keys: Vec<String> = new.collect();
        if !keys.is_empty() {
            outcome.added.push(Added::Tolerations { by, keys });
        }
    }
}

/// The API server refuses requests above their limits, those that were added included.
fn above_limits(outcome: &mut Outcome) {
    let mut above = Vec::new();
    for container in containers(&outcome.spec) {
        let Container { name, resources, .. } = container;
        for (resource, limit) in &resources.limits {
            let request = resources.requests.get(resource).filter(|request| *request > limit);
            above.extend(request.map(|request| Refusal::AboveLimit {
                container: name.clone(),
                resource: resource.clone(),
                request: *request,
                limit: *limit,
            }));
        }
    }
    outcome.refused.extend(above);
}

/// Every container of a pod.
pub(super) fn containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.containers.iter().chain(&spec.init_containers)
}

pub(super) fn containers_mut(spec: &mut PodSpec) -> impl Iterator<Item = &mut Container> {
    spec.containers.iter_mut().chain(&mut spec.init_containers)
}

/// Merges labels into the node selector; one that the pod has with another value refuses it.
fn select(by: String, labels: &Labels, outcome: &mut Outcome) {
    let mut new = Labels::new();
    for (key, value) in labels {
        match outcome.spec.node_selector.get(key) {
            Some(own) if own != value => outcome.refused.push(Refusal::Selector {
                by: by.clone(),
                key: key.clone(),
                adds: value.clone(),
                own: own.clone(),
            }),
            Some(_) => {}
            None => {
                new.insert(key.clone(), value.clone());
            }
        }
    }
    if !new.is_empty() {
        outcome.spec.node_selector.extend(new.clone());
        outcome.added.push(Added::NodeSelector { by, labels: new });
    }
}

/// DefaultTolerationSeconds: for five minutes a pod stays on a node that is not ready or does not
/// answer, unless it says how long it would.
fn tolerate_health(spec: &mut PodSpec) {
    for key in HEALTH {
        let tolerates = |t: &Toleration| {
            (t.key == key || t.key.is_empty())
                && matches!(t.effect, TaintEffect::NoExecute | TaintEffect::Unset)
        };
        if !spec.tolerations.iter().any(tolerates) {
            spec.tolerations.push(Toleration {
                key: key.to_owned(),
                operator: TolerationOperator::Exists,
                effect: TaintEffect::NoExecute,
                toleration_seconds: Some(HEALTH_SECONDS),
                ..Toleration::default()
            });
        }
    }
}

/// ExtendedResourceToleration: who asks for an extended resource tolerates the taint of its name.
fn tolerate_extended(outcome: &mut Outcome) {
    let asked: BTreeSet<&String> = containers(&outcome.spec)
        .flat_map(|container| container.resources.requests.keys())
        .filter(|name| is_extended(name))
        .collect();
    let new: Vec<Toleration> = asked
        .into_iter()
        .map(|name| Toleration {
            key: name.clone(),
            operator: TolerationOperator::Exists,
            effect: TaintEffect::NoSchedule,
            ..Toleration::default()
        })
        .filter(|t| !outcome.spec.tolerations.contains(t))
        .collect();
    if new.is_empty() {
        return;
    }
    let keys = new.iter().map(|t| t.key.clone()).collect();
    outcome.spec.tolerations.extend(new);
    outcome.added.push(Added::Tolerations { by: "ExtendedResourceToleration".to_owned(), keys });
}

/// Both lists, without those that another one covers (`tolerations.MergeTolerations`).
fn united(first: &[Toleration], second: &[Toleration]) -> Vec<Toleration> {
    let all: Vec<&Toleration> = first.iter().chain(second).collect();
    let mut united: Vec<Toleration> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let covered = united.iter().any(|other| covers(other, one));
        let later = || all[at + 1..].iter().any(|other| *other != *one && covers(other, one));
        if !covered && !later() {
            united.push((*one).clone());
        }
    }
    united
}

/// Whether one tolerates all that the other does.
fn covers(wide: &Toleration, one: &Toleration) -> bool {
    if wide == one {
        return true;
    }
    let key =
        wide.key == one.key || (wide.key.is_empty() && wide.operator == TolerationOperator::Exists);
    let effect = wide.effect == one.effect || wide.effect == TaintEffect::Unset;
    let lasts = wide.effect != TaintEffect::NoExecute
        || wide
            .toleration_seconds
            .is_none_or(|most| one.toleration_seconds.is_some_and(|seconds| seconds <= most));
    let value = match wide.operator {
        TolerationOperator::Equal => {
            one.operator == TolerationOperator::Equal && wide.value == one.value
        }
        TolerationOperator::Exists => true,
        TolerationOperator::Gt | TolerationOperator::Lt | TolerationOperator::Other(_) => false,
    };
    key && effect && lasts && value
}
