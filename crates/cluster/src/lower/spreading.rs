//! Spread by default: whom Services and controllers select, and by it which pods that say nothing of
//! spread are spread with which (kube-scheduler's `DefaultSelector` and PodTopologySpread's system
//! defaults). It is a matter of scores: nothing is worked out where nodes are not scored.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{GroupKey, Name, PodKey, PodSelectorId, Scored, Shared, SpreadRule};
use phalanx_objects::core::{LabelSelector, ReplicationController, Service};
use phalanx_objects::meta::{self, ObjectMeta};
use phalanx_objects::workload::{Workload, WorkloadKind};
use rustc_hash::FxHashMap;

use super::absorb::change;
use super::meant::{LabelRule, Labels, PodLabels, PodSet, Requirement, label_rule};
use super::pod::labels;
use super::record::{Header, PodShape};
use super::settle::{distinct, workload_kind};
use super::{Dependent, Lowering, Names};

/// The node labels over whose values pods are spread by default, and how unevenly they may be
/// (`systemDefaultConstraints`).
const DEFAULTS: [(&str, i32); 2] =
    [("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5)];

/// An object that selects pods by their labels; no label selects none.
#[derive(Clone, Debug)]
pub(super) struct Selecting {
    pub(super) header: Header,
    labels: Labels,
}

/// Who selects which pods, and which of these wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Spreading {
    pub(super) services: BTreeMap<super::Scoped, Selecting>,
    pub(super) controllers: BTreeMap<super::Scoped, Selecting>,
    /// Selectors of ReplicaSets, StatefulSets and Deployments.
    sets: BTreeMap<GroupKey, LabelRule>,
    /// Pods of replication controllers, with their names.
    controlled: BTreeMap<PodKey, Name>,
    /// By namespace, who waits and says nothing of spread.
    waiting: BTreeMap<Name, BTreeSet<Dependent>>,
    /// Whom each of them is spread with.
    given: BTreeMap<Dependent, PodSelectorId>,
    /// What is to be asked again: namespaces of which everybody is, and single ones.
    namespaces: BTreeSet<Name>,
    dirty: Vec<Dependent>,
}

/// Pods of these labels, and their controller.
type Kind<'a> = (&'a PodLabels, Option<Controller>);

/// What controls a pod, as far as it selects pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Controller {
    Set(GroupKey),
    Replication(Name),
}

impl Spreading {
    /// Whom somebody who waits is spread with by default.
    pub(super) fn given(&self, who: &Dependent) -> Option<PodSelectorId> {
        self.given.get(who).copied()
    }

    fn waits(&self, namespace: &Name, who: &Dependent) -> bool {
        self.waiting.get(namespace).is_some_and(|all| all.contains(who))
    }

    /// What selects pods of a kind: the labels of the Services that select them, and what their
    /// controller selects.
    fn rule(&self, (pod, controller): &Kind<'_>) -> LabelRule {
        let of =
            |namespace: &Name, name: Name| super::Scoped { namespace: namespace.clone(), name };
        let first = of(&pod.namespace, Name::default());
        let here = self.services.range(first..);
        let here = here.take_while(|(key, _)| key.namespace == pod.namespace);
        let selects = |(_, service): &(&super::Scoped, &Selecting)| {
            service.labels.iter().all(|(key, value)| pod.value(key) == Some(value))
        };
        let services = here.filter(selects).map(|(_, service)| &service.labels);
        let replication = match controller {
            Some(Controller::Replication(name)) => {
                self.controllers.get(&of(&pod.namespace, name.clone()))
            }
            Some(Controller::Set(_)) | None => None,
        };
        // A label has one value: that of the controller stands for those of Services.
        let by_labels = services.chain(replication.map(|controller| &controller.labels));
        let by_labels: BTreeMap<&Name, &Name> =
            by_labels.flat_map(|labels| labels.iter()).map(|(key, value)| (key, value)).collect();
        let mut all: Vec<Requirement> = by_labels
            .into_iter()
            .map(|(key, value)| Requirement::In(key.clone(), [value.clone()].into()))
            .collect();
        if let Some(Controller::Set(key)) = controller {
            all.extend(self.sets.get(key).into_iter().flatten().cloned());
        }
        all.sort();
        all.dedup();
        all.into()
    }
}

impl Lowering {
    pub(super) fn service(&mut self, service: &Service, header: Header) {
        let key = self.scoped(&service.metadata.namespace, &service.metadata.name);
        let labels = labels(&service.spec.selector, &mut self.interned.names);
        self.spreading.namespaces.insert(key.namespace.clone());
        self.spreading.services.insert(key, Selecting { header, labels });
    }

    pub(super) fn service_gone(&mut self, key: &super::Scoped) {
        self.spreading.services.remove(key);
        self.spreading.namespaces.insert(key.namespace.clone());
    }

    pub(super) fn replication_controller(&mut self, of: &ReplicationController, header: Header) {
        let key = self.scoped(&of.metadata.namespace, &of.metadata.name);
        let template: &meta::Labels = &of.spec.template.metadata.labels;
        let own = &of.spec.selector;
        let selector = if own.is_empty() { template } else { own };
        let labels = labels(selector, &mut self.interned.names);
        self.spreading.namespaces.insert(key.namespace.clone());
        self.spreading.controllers.insert(key, Selecting { header, labels });
    }

    pub(super) fn replication_controller_gone(&mut self, key: &super::Scoped) {
        self.spreading.controllers.remove(key);
        self.spreading.namespaces.insert(key.namespace.clone());
    }

    /// Whether anybody waits who says nothing of spread.
    pub(super) fn spreads_by_default(&self) -> bool {
        !self.spreading.waiting.is_empty()
    }

    /// Takes note of a pod's replication controller.
    pub(super) fn controlled(&mut self, pod: &PodKey, of: &ObjectMeta) {
        if !self.scored {
            return;
        }
        let controller = of.controller();
        match controller.filter(|c| c.kind == "ReplicationController" && c.api_version == "v1") {
            Some(controller) => {
                let name = self.interned.names.get(&controller.name);
                self.spreading.controlled.insert(pod.clone(), name);
            }
            None => drop(self.spreading.controlled.remove(pod)),
        }
    }

    /// Takes note of whom a workload selects.
    pub(super) fn selects(&mut self, key: &GroupKey, workload: &Workload) {
        if let (true, Some(selector)) = (self.scored, selector_of(workload)) {
            let mut rule = label_rule(selector, &mut self.interned.names).unwrap_or_default();
            rule.sort();
            self.spreading.sets.insert(key.clone(), rule.into());
            self.spreading.namespaces.insert(key.object.namespace.clone());
        }
    }

    pub(super) fn selects_none(&mut self, key: &GroupKey) {
        if self.spreading.sets.remove(key).is_some() {
            self.spreading.namespaces.insert(key.object.namespace.clone());
        }
    }

    /// Enters somebody who waits among those who are spread by default, if it says nothing of spread
    /// itself; or takes it out.
    pub(super) fn index_spread(
        &mut self,
        of: &PodLabels,
        shape: &PodShape,
        who: &Dependent,
        enter: bool,
    ) {
        let says = shape
            .near
            .as_ref()
            .is_some_and(|rules| !rules.spread.is_empty() || !rules.spread_wishes.is_empty());
        if self.scored && !says {
            change(&mut self.spreading.waiting, of.namespace.clone(), who.clone(), enter);
            self.spreading.dirty.push(who.clone());
        }
    }

    /// Finds anew whom those are spread with of whom that may have changed.
    pub(super) fn settle_spreading(&mut self) {
        let namespaces = std::mem::take(&mut self.spreading.namespaces);
        let mut dirty = std::mem::take(&mut self.spreading.dirty);
        for namespace in &namespaces {
            dirty.extend(self.spreading.waiting.get(namespace).into_iter().flatten().cloned());
        }
        // Pods of one kind are many.
        let mut known: FxHashMap<(Shared<PodLabels>, Option<Controller>), Option<PodSelectorId>> =
            FxHashMap::default();
        for who in distinct(&mut dirty) {
            let kind = self.kind_of(&who);
            let now = kind.and_then(|kind| match known.get(&kind) {
                Some(found) => *found,
                None => {
                    let found = self.spread_with(&kind.0, kind.1.clone());
                    known.insert(kind, found);
                    found
                }
            });
            let before = self.spreading.given(&who);
            if before == now {
                continue;
            }
            for (id, more) in [(before, false), (now, true)] {
                id.into_iter().for_each(|id| self.meant.count(id, more));
            }
            match now {
                Some(id) => self.spreading.given.insert(who.clone(), id),
                None => self.spreading.given.remove(&who),
            };
            self.mark([who]);
        }
    }

    /// The labels of somebody who waits, and its controller; none if it does not wait, or says itself
    /// how it is spread.
    fn kind_of(&self, who: &Dependent) -> Option<(Shared<PodLabels>, Option<Controller>)> {
        let (labels, controller) = match who {
            Dependent::Pod(key) => {
                let record = self.objects.pods.get(key)?;
                let replication = self.spreading.controlled.get(key).cloned();
                let nearest = record.owner.as_ref().and_then(|owner| owner.chain.first());
                let set = nearest.map(|(key, _)| key).filter(|key| is_set(key));
                let set = set.map(|key| Controller::Set(key.clone()));
                (record.labels.clone(), set.or(replication.map(Controller::Replication)))
            }
            Dependent::Role(key, role) => {
                let role = self.objects.workloads.get(key)?.roles.get(usize::from(*role))?;
                (role.labels.clone(), Some(Controller::Set(key.clone())))
            }
        };
        self.spreading.waits(&labels.namespace, who).then_some((labels, controller))
    }

    fn spread_with(
        &mut self,
        pod: &PodLabels,
        controller: Option<Controller>,
    ) -> Option<PodSelectorId> {
        let rule = self.spreading.rule(&(pod, controller));
        if rule.is_empty() {
            return None;
        }
        let namespaces = [pod.namespace.clone()].into();
        let (namespace_rule, unlisted) = (None, false);
        let set = PodSet { namespaces, namespace_rule, unlisted, pods: Some(rule) };
        Some(self.meant.selectors.id(vec![set]))
    }

    /// What scores look at of pods of a shape that are spread with these.
    pub(super) fn scored_of(
        &mut self,
        shape: &PodShape,
        spread: Option<PodSelectorId>,
    ) -> Option<Shared<Scored>> {
        if !self.scored || (shape.images.is_empty() && spread.is_none()) {
            return None;
        }
        let names = &mut self.interned.names;
        let spread =
            spread.map(|pods| DEFAULTS.map(|(key, skew)| by_default(pods, key, skew, names)));
        let spread = spread.map_or_else(Box::default, Box::from);
        Some(Shared::new(Scored { images: shape.images.clone(), spread }))
    }
}

/// A default constraint for pods that are spread with these.
fn by_default(pods: PodSelectorId, key: &str, max_skew: i32, names: &mut Names) -> SpreadRule {
    SpreadRule {
        pods: Some(pods),
        own: false,
        key: names.get(key),
        max_skew,
        min_domains: 1,
        honors_affinity: true,
        honors_taints: false,
    }
}

/// Whether a workload is one by whose selector its pods are spread.
fn is_set(key: &GroupKey) -> bool {
    let kind = workload_kind(key);
    [WorkloadKind::ReplicaSet, WorkloadKind::StatefulSet]
        .into_iter()
        .any(|set| kind == phalanx_objects::Kind::Workload(set))
}

/// Whom a workload selects whose pods are spread by it. The pods of a Deployment are those of a
/// ReplicaSet of its own, which selects them by a label more.
fn selector_of(workload: &Workload) -> Option<&LabelSelector> {
    match workload {
        Workload::Deployment(of) => of.spec.selector.as_ref(),
        Workload::ReplicaSet(of) => of.spec.selector.as_ref(),
        Workload::StatefulSet(of) => of.spec.selector.as_ref(),
        Workload::Job(_)
        | Workload::CronJob(_)
        | Workload::DaemonSet(_)
        | Workload::JobSet(_)
        | Workload::LeaderWorkerSet(_)
        | Workload::MpiJob(_)
        | Workload::PyTorchJob(_)
        | Workload::TfJob(_)
        | Workload::XgBoostJob(_)
        | Workload::PaddleJob(_)
        | Workload::JaxJob(_)
        | Workload::TrainJob(_)
        | Workload::TrainingRuntime(_)
        | Workload::ClusterTrainingRuntime(_)
        | Workload::RayCluster(_)
        | Workload::RayJob(_)
        | Workload::RayService(_)
        | Workload::VolcanoJob(_)
        | Workload::PodCliqueSet(_)
        | Workload::AppWrapper(_) => None,
    }
}
