//! What a pod asks of the pods around it, as values: host ports, affinity and anti-affinity, spread.
//!
//! Manifests that the API server has not seen are read as it would store them: ports of a pod on the
//! node's network are the node's, and `matchLabelKeys` are merged into selectors.

use phalanx_engine::{
    Fault, HostPort, Name, PodAffinity, PodRules, PodTerm, PodWish, Reason, Shared, SpreadRule,
};
use phalanx_objects::core::{
    Affinity, Container, LabelSelector, NodeInclusionPolicy, PodAffinityTerm, PodSpec,
    RestartPolicy, TopologySpreadConstraint, UnsatisfiableConstraintAction,
};

use super::intern::Names;
use super::meant::{LabelRule, PodLabels, PodSelectors, PodSet, Requirement, label_rule};

/// Whether pods are wished near or away.
#[derive(Clone, Copy)]
enum Sign {
    Near,
    Away,
}

/// What reading a pod's rules about other pods needs and fills.
pub(crate) struct AroundReader<'a> {
    pub(crate) names: &'a mut Names,
    pub(crate) selectors: &'a mut PodSelectors,
    pub(crate) pod: &'a PodLabels,
    /// The API server has seen the pod.
    pub(crate) created: bool,
}

/// The host ports of a pod: those of containers and of sidecars, each once.
pub(crate) fn host_ports(spec: &PodSpec, names: &mut Names) -> Box<[HostPort]> {
    let sidecar = |c: &&Container| c.restart_policy == Some(RestartPolicy::Always);
    let all = spec.containers.iter().chain(spec.init_containers.iter().filter(sidecar));
    let mut ports: Vec<HostPort> = Vec::new();
    for port in all.flat_map(|container| &container.ports) {
        let number = match port.host_port {
            0 if spec.host_network => port.container_port,
            number => number,
        };
        if number <= 0 {
            continue;
        }
        let or = |text: &'_ str, default: &'static str| -> String {
            if text.is_empty() { default.to_owned() } else { text.to_owned() }
        };
        let protocol = names.get(&or(&port.protocol, "TCP"));
        let address = names.get(&or(&port.host_ip, HostPort::EVERY_ADDRESS));
        ports.push(HostPort { port: number, protocol, address });
    }
    ports.sort();
    ports.dedup();
    ports.into()
}

impl AroundReader<'_> {
    /// What a pod asks that waits; or what is wrong with it.
    pub(crate) fn asked(&mut self, spec: &PodSpec) -> Result<Option<Shared<PodRules>>, Fault> {
        let of = spec.affinity.as_ref();
        let near = "spec.affinity.podAffinity";
        let away = "spec.affinity.podAntiAffinity";
        let spread = "spec.topologySpreadConstraints";
        let rules = PodRules {
            affinity: self.affinity(of).map_err(|m| self.fault(near, &m))?,
            welcomes: self.welcomes(of, false).map_err(|m| self.fault(near, &m))?,
            anti: self.anti(of, false).map_err(|m| self.fault(away, &m))?,
            wishes: self.wishes(of, false).map_err(|m| self.fault("spec.affinity", &m))?,
            spread: self.spreads(spec, true).map_err(|m| self.fault(spread, &m))?,
            spread_wishes: self.spreads(spec, false).map_err(|m| self.fault(spread, &m))?,
        };
        Ok(shared(rules))
    }

    /// What a pod on a node still asks of those that come, and would rather have. A list that can't be
    /// read is dropped, as kube-scheduler drops it.
    pub(crate) fn held(&mut self, affinity: Option<&Affinity>) -> Option<Shared<PodRules>> {
        let anti = self.anti(affinity, true).unwrap_or_default();
        let welcomes = self.welcomes(affinity, true).unwrap_or_default();
        let near = self.preferred(affinity, true, Sign::Near).unwrap_or_default();
        let away = self.preferred(affinity, true, Sign::Away).unwrap_or_default();
        let wishes = near.into_iter().chain(away).collect();
        shared(PodRules { anti, welcomes, wishes, ..PodRules::default() })
    }

    /// The pod's constraints on spread, those that are required or those that are wished for.
    fn spreads(&mut self, spec: &PodSpec, required: bool) -> Result<Box<[SpreadRule]>, String> {
        let hard = UnsatisfiableConstraintAction::DoNotSchedule;
        let all = spec.topology_spread_constraints.iter();
        let these = all.filter(|rule| (rule.when_unsatisfiable == hard) == required);
        these.map(|rule| self.spread(rule)).collect()
    }

    /// The wishes to be near pods or away from them.
    fn wishes(&mut self, of: Option<&Affinity>, there: bool) -> Result<Box<[PodWish]>, String> {
        let near = self.preferred(of, there, Sign::Near)?;
        let away = self.preferred(of, there, Sign::Away)?;
        Ok(near.into_iter().chain(away).collect())
    }

    fn preferred(
        &mut self,
        of: Option<&Affinity>,
        there: bool,
        sign: Sign,
    ) -> Result<Vec<PodWish>, String> {
        let terms = of.map_or(&[][..], |affinity| {
            let of = match sign {
                Sign::Near => &affinity.pod_affinity,
                Sign::Away => &affinity.pod_anti_affinity,
            };
            &of.preferred_during_scheduling_ignored_during_execution
        });
        let mut all = Vec::new();
        for wish in terms.iter().filter(|wish| wish.weight > 0) {
            let set = self.set(&wish.pod_affinity_term, there)?;
            let weight = match sign {
                Sign::Near => wish.weight,
                Sign::Away => -wish.weight,
            };
            let key = self.names.get(&wish.pod_affinity_term.topology_key);
            all.push(PodWish { pods: self.selectors.id(vec![set]), key, weight });
        }
        Ok(all)
    }

    /// The terms of the required affinity, each by itself.
    fn welcomes(&mut self, of: Option<&Affinity>, there: bool) -> Result<Box<[PodTerm]>, String> {
        let terms = of.map_or(&[][..], |affinity| {
            &affinity.pod_affinity.required_during_scheduling_ignored_during_execution
        });
        self.terms(terms, there)
    }

    fn fault(&mut self, field: &str, message: &str) -> Fault {
        let detail = format!("{message}, and the API server refuses the pod");
        let (subject, detail) = (self.names.get(field), self.names.get(&detail));
        Fault { reason: Reason::RequestUnsupported, subject, detail }
    }

    fn affinity(&mut self, of: Option<&Affinity>) -> Result<Option<PodAffinity>, String> {
        let terms = of.map_or(&[][..], |affinity| {
            &affinity.pod_affinity.required_during_scheduling_ignored_during_execution
        });
        if terms.is_empty() {
            return Ok(None);
        }
        let (mut sets, mut keys) = (Vec::new(), Vec::new());
        for term in terms {
            sets.push(self.set(term, false)?);
            keys.push(self.names.get(&term.topology_key));
        }
        keys.sort();
        keys.dedup();
        Ok(Some(PodAffinity { pods: self.selectors.id(sets), keys: keys.into() }))
    }

    fn anti(&mut self, of: Option<&Affinity>, there: bool) -> Result<Box<[PodTerm]>, String> {
        let terms = of.map_or(&[][..], |affinity| {
            &affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
        });
        self.terms(terms, there)
    }

    fn terms(&mut self, of: &[PodAffinityTerm], there: bool) -> Result<Box<[PodTerm]>, String> {
        let mut all = Vec::new();
        for term in of {
            let set = self.set(term, there)?;
            let pods = self.selectors.id(vec![set]);
            all.push(PodTerm { pods, key: self.names.get(&term.topology_key) });
        }
        Ok(all.into())
    }

    /// The pods that a term means. `there` is that of a pod on a node.
    fn set(&mut self, term: &PodAffinityTerm, there: bool) -> Result<PodSet, String> {
        let mut namespaces: Vec<Name> =
            term.namespaces.iter().map(|name| self.names.get(name)).collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(self.pod.namespace.clone());
        }
        namespaces.sort();
        namespaces.dedup();
        let rule = |selector: &LabelSelector, names: &mut Names| label_rule(selector, names);
        let by_labels = term.namespace_selector.as_ref().map(|s| rule(s, self.names));
        let namespace_rule = by_labels.transpose()?.map(sorted);
        let mut pods = match &term.label_selector {
            Some(selector) => Some(rule(selector, self.names)?),
            None => None,
        };
        if let Some(rule) = pods.as_mut().filter(|_| !self.created) {
            self.merge(&term.match_label_keys, rule, Requirement::In);
            self.merge(&term.mismatch_label_keys, rule, Requirement::NotIn);
        }
        let unlisted = there && namespace_rule.as_ref().is_some_and(|rule| !rule.is_empty());
        Ok(PodSet {
            namespaces: namespaces.into(),
            namespace_rule,
            unlisted,
            pods: pods.map(sorted),
        })
    }

    /// Adds the pod's own values of these labels to a rule.
    fn merge(
        &mut self,
        keys: &[String],
        rule: &mut Vec<Requirement>,
        make: fn(Name, Box<[Name]>) -> Requirement,
    ) {
        for key in keys {
            if let Some(value) = self.pod.value(key) {
                rule.push(make(self.names.get(key), [value.clone()].into()));
            }
        }
    }

    fn spread(&mut self, of: &TopologySpreadConstraint) -> Result<SpreadRule, String> {
        let mut rule = match &of.label_selector {
            Some(selector) => Some(label_rule(selector, self.names)?),
            None => None,
        };
        // The scheduler merges these itself, whether or not the API server has.
        if let Some(rule) = &mut rule {
            self.merge(&of.match_label_keys, rule, Requirement::In);
        }
        let rule = rule.map(sorted);
        let own = rule.as_ref().is_some_and(|rule| super::meant::holds(rule, &self.pod.labels));
        let namespaces = [self.pod.namespace.clone()].into();
        let pods = rule.filter(|rule| !rule.is_empty()).map(|rule| {
            let (namespace_rule, unlisted) = (None, false);
            self.selectors.id(vec![PodSet {
                namespaces,
                namespace_rule,
                unlisted,
                pods: Some(rule),
            }])
        });
        let honors = |policy: &Option<NodeInclusionPolicy>, default: bool| {
            policy.as_ref().map_or(default, |policy| *policy == NodeInclusionPolicy::Honor)
        };
        Ok(SpreadRule {
            pods,
            own,
            key: self.names.get(&of.topology_key),
            max_skew: of.max_skew,
            min_domains: of.min_domains.unwrap_or(1),
            honors_affinity: honors(&of.node_affinity_policy, true),
            honors_taints: honors(&of.node_taints_policy, false),
        })
    }
}

fn sorted(mut rule: Vec<Requirement>) -> LabelRule {
    rule.sort();
    rule.dedup();
    rule.into()
}

fn shared(rules: PodRules) -> Option<Shared<PodRules>> {
    (rules != PodRules::default()).then(|| Shared::new(rules))
}
