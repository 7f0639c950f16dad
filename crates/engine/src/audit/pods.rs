//! A node among the pods around it: NodePorts, PodTopologySpread and InterPodAffinity as plain rules,
//! by going through all pods each time.

use std::collections::BTreeMap;

use super::rules;
use crate::facts::{Effect, Node, NodeRules, Request};
use crate::name::{Name, NodeKey, Shared};
use crate::pods::{PodSelectorId, SpreadRule};
use crate::reason::Reason;

/// A pod on a node.
#[derive(Clone, Debug)]
pub(crate) struct Seated {
    pub(crate) node: NodeKey,
    pub(crate) request: Shared<Request>,
    /// It is not being deleted.
    pub(crate) staying: bool,
}

impl Seated {
    pub(crate) fn is_meant(&self, pods: PodSelectorId) -> bool {
        self.request.matched.contains(&pods)
    }
}

/// NodePorts: no port of the node's pods is in the way of one that is asked for.
pub(crate) fn ports<'a>(
    asked: &Request,
    mut others: impl Iterator<Item = &'a Seated>,
) -> Result<(), Reason> {
    let all = "0.0.0.0";
    let clash = others.any(|other| {
        other.request.ports.iter().any(|had| {
            asked.ports.iter().any(|port| {
                let same = port.address == had.address;
                let address = same || &*port.address == all || &*had.address == all;
                (port.port, &port.protocol) == (had.port, &had.protocol) && address
            })
        })
    });
    if clash { Err(Reason::PortsTaken) } else { Ok(()) }
}

/// The nodes that there are, and the pods on them.
pub(crate) struct Scene<'a> {
    pub(crate) nodes: &'a BTreeMap<NodeKey, Node>,
    pub(crate) pods: &'a [Seated],
    /// Pods that wait with this node promised to them, and for which room is kept.
    pub(crate) promised: &'a [Seated],
}

impl Scene<'_> {
    /// What a node comes to, first without those that it is promised to: PodTopologySpread, then
    /// InterPodAffinity.
    pub(crate) fn admits(&self, asked: &Request, on: &NodeKey) -> Result<(), Reason> {
        self.spread(asked, on)?;
        self.near(asked, on)
    }

    fn all(&self) -> impl Iterator<Item = &Seated> {
        self.pods.iter().chain(self.promised)
    }

    /// A node's value of a label.
    pub(crate) fn value(&self, node: &NodeKey, key: &Name) -> Option<&Name> {
        let labels = &self.nodes.get(node)?.labels;
        labels.iter().find(|(label, _)| label == key).map(|(_, value)| value)
    }

    fn spread(&self, asked: &Request, on: &NodeKey) -> Result<(), Reason> {
        let rules = asked.near.as_ref().map_or(&[][..], |near| &near.spread);
        for rule in rules {
            let Some(here) = self.value(on, &rule.key) else {
                return Err(Reason::SpreadKeyMissing);
            };
            let counts = |node: &NodeKey| self.counts(&asked.node, rules, rule, node);
            let mut pods: BTreeMap<&Name, i64> = BTreeMap::new();
            for node in self.nodes.keys().filter(|node| counts(node)) {
                pods.extend(self.value(node, &rule.key).map(|value| (value, 0)));
            }
            for pod in self.all().filter(|pod| pod.staying && counts(&pod.node)) {
                let meant = rule.pods.is_some_and(|pods| pod.is_meant(pods));
                let value = self.value(&pod.node, &rule.key).filter(|_| meant);
                if let Some(sum) = value.and_then(|value| pods.get_mut(value)) {
                    *sum += 1;
                }
            }
            let few = (pods.len() as i64) < i64::from(rule.min_domains);
            let least = if few { 0 } else { pods.values().min().copied().unwrap_or(0) };
            let mut most = pods.get(here).copied().unwrap_or(0);
            if rule.own {
                most += 1;
            }
            if most - least > i64::from(rule.max_skew) {
                return Err(Reason::SpreadUnmet);
            }
        }
        Ok(())
    }

    /// Whether a node counts for a constraint.
    pub(crate) fn counts(
        &self,
        of_pod: &NodeRules,
        all: &[SpreadRule],
        rule: &SpreadRule,
        key: &NodeKey,
    ) -> bool {
        let Some(node) = self.nodes.get(key) else { return false };
        let plain = NodeRules {
            selector: of_pod.selector.clone(),
            required: of_pod.required.clone(),
            ..NodeRules::default()
        };
        let bare = Node { taints: [].into(), unschedulable: false, ..node.clone() };
        let hard = |effect: Effect| effect != Effect::PreferNoSchedule;
        let borne = node.taints.iter().all(|taint| {
            !hard(taint.effect) || of_pod.tolerations.iter().any(|t| t.tolerates(taint))
        });
        all.iter().all(|rule| self.value(key, &rule.key).is_some())
            && (!rule.honors_affinity || rules::admits(&plain, key, &bare).is_ok())
            && (!rule.honors_taints || borne)
    }

    fn near(&self, asked: &Request, on: &NodeKey) -> Result<(), Reason> {
        let near = asked.near.as_deref();
        let affinity = near.and_then(|near| near.affinity.as_ref());
        let anti = near.map_or(&[][..], |near| &near.anti);
        // Whether any of it is asked is decided without those that the node is promised to.
        let refusing = |pod: &Seated, key: &Name, pods: PodSelectorId| {
            self.value(&pod.node, key).filter(|_| asked.matched.contains(&pods))
        };
        let anti_of = |pod: &Seated| {
            let rules = pod.request.near.clone();
            rules.map(|rules| rules.anti.to_vec()).unwrap_or_default()
        };
        let refused_somewhere = self.pods.iter().any(|pod| {
            anti_of(pod).iter().any(|term| refusing(pod, &term.key, term.pods).is_some())
        });
        if affinity.is_none() && anti.is_empty() && !refused_somewhere {
            return Ok(());
        }
        let same = |pod: &Seated, key: &Name| {
            let here = self.value(on, key);
            here.is_some() && self.value(&pod.node, key) == here
        };
        if let Some(affinity) = affinity {
            let meant = || self.all().filter(|pod| pod.is_meant(affinity.pods));
            let counted = meant()
                .any(|pod| affinity.keys.iter().any(|key| self.value(&pod.node, key).is_some()));
            let first = !counted && asked.matched.contains(&affinity.pods);
            for key in &affinity.keys {
                let there =
                    self.value(on, key).is_some() && (first || meant().any(|pod| same(pod, key)));
                if !there {
                    return Err(Reason::PodAffinityUnmet);
                }
            }
        }
        if anti.iter().any(|t| self.all().any(|pod| pod.is_meant(t.pods) && same(pod, &t.key))) {
            return Err(Reason::PodAntiAffinityUnmet);
        }
        let refused = self.all().any(|pod| {
            anti_of(pod)
                .iter()
                .any(|term| asked.matched.contains(&term.pods) && same(pod, &term.key))
        });
        if refused { Err(Reason::RepelledByPod) } else { Ok(()) }
    }
}
