//! What pods ask for and nothing checks yet. Each kind is said once, with how many pods ask for it,
//! so that an answer that leaves it out says so.

use std::sync::Arc;

use phalanx_objects::Kind;
use phalanx_objects::core::PodSpec;

use super::settle::{object, workload_kind};
use super::{Dependent, Lowering};
use crate::finding::{Finding, Severity, Source};

/// A check of kube-scheduler that is not done here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Unchecked {
    /// NodePorts.
    HostPorts,
    /// InterPodAffinity: what the pod asks.
    PodAffinity,
    /// InterPodAffinity: what the pod refuses.
    PodAntiAffinity,
    /// InterPodAffinity: what a pod on a node refuses.
    Repels,
    /// PodTopologySpread.
    Spread,
    /// The node that was promised to the pod.
    Nominated,
}

impl Unchecked {
    const ALL: [Self; 6] = [
        Self::HostPorts,
        Self::PodAffinity,
        Self::PodAntiAffinity,
        Self::Repels,
        Self::Spread,
        Self::Nominated,
    ];

    /// What several pods do, what one does, and what may come of it.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        let refuse = "a node may refuse";
        match self {
            Self::HostPorts => ("ask for host ports", "asks for host ports", refuse),
            Self::PodAffinity => {
                ("require affinity to other pods", "requires affinity to other pods", refuse)
            }
            Self::PodAntiAffinity => (
                "require anti-affinity to other pods",
                "requires anti-affinity to other pods",
                refuse,
            ),
            Self::Repels => (
                "on nodes require anti-affinity to other pods",
                "on a node requires anti-affinity to other pods",
                "a pod may be refused beside",
            ),
            Self::Spread => (
                "have topologySpreadConstraints with DoNotSchedule",
                "has topologySpreadConstraints with DoNotSchedule",
                refuse,
            ),
            Self::Nominated => (
                "have a nominatedNodeName",
                "has a nominatedNodeName",
                "kube-scheduler tries that node first and keeps room there for",
            ),
        }
    }
}

/// Several of them, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct UncheckedSet(u8);

impl UncheckedSet {
    fn with(self, kind: Unchecked, is: bool) -> Self {
        Self(self.0 | u8::from(is) << kind as u8)
    }

    /// What a pod asks for that is not on a node.
    pub(crate) fn of_waiting(spec: &PodSpec) -> Self {
        let ports = spec.containers.iter().chain(&spec.init_containers).any(|c| c.ports.0);
        let affinity = spec.affinity.as_ref();
        let near = |a: &phalanx_objects::core::PodAffinity| {
            a.required_during_scheduling_ignored_during_execution.0
        };
        Self::default()
            .with(Unchecked::HostPorts, ports)
            .with(Unchecked::PodAffinity, affinity.is_some_and(|a| near(&a.pod_affinity)))
            .with(Unchecked::PodAntiAffinity, affinity.is_some_and(|a| near(&a.pod_anti_affinity)))
            .with(Unchecked::Spread, spec.topology_spread_constraints.0)
    }

    /// As it is, and that a node was promised to the pod where one was.
    pub(crate) fn nominated(self, node: &str) -> Self {
        self.with(Unchecked::Nominated, !node.is_empty())
    }

    /// What a pod on a node still asks of others.
    pub(crate) fn of_held(spec: &PodSpec) -> Self {
        let terms = spec.affinity.as_ref().map(|a| &a.pod_anti_affinity);
        let repels = terms.is_some_and(|a| a.required_during_scheduling_ignored_during_execution.0);
        Self::default().with(Unchecked::Repels, repels)
    }

    /// Each of them.
    pub(crate) fn iter(self) -> impl Iterator<Item = Unchecked> {
        Unchecked::ALL.into_iter().filter(move |kind| self.0 & 1 << *kind as u8 != 0)
    }
}

impl Lowering {
    /// What is not checked, each kind once, on the first pod that asks for it.
    pub(crate) fn unchecked(&self) -> Vec<Finding> {
        let kinds = self.index.unchecked.iter();
        kinds.filter_map(|(kind, askers)| self.unchecked_of(*kind, askers.iter())).collect()
    }

    fn unchecked_of<'a>(
        &self,
        kind: Unchecked,
        askers: impl Iterator<Item = &'a Dependent>,
    ) -> Option<Finding> {
        let mut pods = 0_u64;
        let mut first = None;
        for asker in askers {
            let (count, source) = self.pods_of(asker)?;
            pods += u64::from(count);
            if count > 0 && first.is_none() {
                first = Some((asker, source.clone()));
            }
        }
        let (first, source) = first?;
        let (name, object) = match first {
            Dependent::Pod(pod) => (pod.0.to_string(), object(Kind::Pod, &pod.0)),
            Dependent::Role(key, _) => {
                let object = object(workload_kind(key), &key.object);
                (format!("of {object}"), object)
            }
        };
        let (many, one, then) = kind.words();
        let message = if pods == 1 {
            format!("1 pod, {name}, {one}, which Phalanx does not check yet: {then} it.")
        } else {
            format!(
                "{pods} pods, the first {name}, {many}, which Phalanx does not check yet: {then} \
                 them."
            )
        };
        Some(Finding {
            severity: Severity::Warning,
            object: Some(object),
            file: Arc::clone(&source.file),
            line: source.line,
            path: String::new(),
            message,
        })
    }

    /// How many pods that are to be placed, or are on a node, it stands for.
    fn pods_of(&self, asker: &Dependent) -> Option<(u32, &Source)> {
        match asker {
            Dependent::Pod(key) => Some((1, &self.objects.pods.get(key)?.header.source)),
            Dependent::Role(key, role) => {
                let record = self.objects.workloads.get(key)?;
                Some((self.missing(key, record, *role), &record.header.source))
            }
        }
    }
}
