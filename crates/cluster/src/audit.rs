//! What a decision's writes do to the objects, judged from API objects alone, so that lowering's
//! mistakes are seen too.
//!
//! Short and dumb, and written from the rules: no device twice, no counter and no shared device's
//! capacity given beyond what there is, requests met, constraints kept,
//! taints tolerated, claims usable from the node and reserved for the pod, no node promised more
//! than it has. Whether a selector holds is left to the CEL crate's own tests. What was wrong before
//! is not charged: reality has over-committed nodes and devices allocated twice.

mod claims;
mod ledger;
mod sums;
mod volumes;

pub(crate) use sums::breaches;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use phalanx_objects::core::{Node, Taint, TaintEffect, Toleration, TolerationOperator};
use phalanx_objects::resource::{DeviceRequestAllocationResult, ResourceClaim};
use phalanx_objects::{Kind, Object, ObjectRef};

use crate::raise::{Bind, EXTENDED_CLAIM, Effect, PodStatusWrite, Write, reference};
use crate::world::Objects;

/// A rule that the writes break.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The object whose write breaks it.
    pub object: ObjectRef,
    /// The sentence.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.message)
    }
}

/// Everything that the writes, made in their order on `before`, do wrong. Sorted.
pub fn audit_objects(before: &Objects, effects: &[Effect]) -> Vec<Violation> {
    let mut audit = Audit::new(before);
    for effect in effects {
        match &effect.write {
            Write::CreateClaim(claim)
            | Write::Finalize(claim)
            | Write::Unprotect(claim)
            | Write::ClaimStatus(claim) => audit.claim(claim),
            Write::DeleteClaim(claim) => audit.gone(claim),
            Write::PodStatus(status) => audit.pod_status(status),
            Write::KeepVolume(write) => audit.volume(write),
            Write::SelectNode(write) => audit.select_node(write),
            Write::Bind(bind) => audit.bind(bind),
        }
    }
    let bound: Vec<&Bind> = effects
        .iter()
        .filter_map(|effect| if let Write::Bind(bind) = &effect.write { Some(bind) } else { None })
        .collect();
    audit.violations.extend(ledger::overcommitted(before, &bound));
    audit.violations.sort();
    audit.violations.dedup();
    audit.violations
}

/// Who holds a device: driver, pool and name.
type DeviceName = (String, String, String);

fn name(result: &DeviceRequestAllocationResult) -> DeviceName {
    (result.driver.clone(), result.pool.clone(), result.device.clone())
}

fn shown((driver, pool, device): &DeviceName) -> String {
    format!("{driver}/{pool}/{device}")
}

struct Audit<'a> {
    objects: &'a Objects,
    claims: BTreeMap<ObjectRef, ResourceClaim>,
    bound: BTreeSet<ObjectRef>,
    /// Pods of whose status a claim for extended resources is written.
    extended: BTreeSet<ObjectRef>,
    /// Volumes that are kept for a claim.
    kept: BTreeSet<ObjectRef>,
    violations: Vec<Violation>,
}

impl<'a> Audit<'a> {
    fn new(objects: &'a Objects) -> Self {
        let mut claims = BTreeMap::new();
        for object in objects.of_kind(Kind::ResourceClaim) {
            if let Object::ResourceClaim(claim) = object {
                claims.insert(object.reference(), (**claim).clone());
            }
        }
        Self {
            objects,
            claims,
            bound: BTreeSet::new(),
            extended: BTreeSet::new(),
            kept: BTreeSet::new(),
            violations: Vec::new(),
        }
    }

    fn wrong(&mut self, object: &ObjectRef, message: String) {
        self.violations.push(Violation { object: object.clone(), message });
    }

    fn claim(&mut self, claim: &ResourceClaim) {
        let of = reference(claim);
        let had = self.claims.get(&of).and_then(|claim| claim.status.allocation.as_ref());
        let has = claim.status.allocation.as_ref();
        match (had, has) {
            (None, Some(allocation)) => {
                let wrong = claims::allocation(claim, allocation, &self.claims, self.objects);
                for message in wrong {
                    self.wrong(&of, message);
                }
            }
            (Some(old), Some(new)) if old != new => {
                self.wrong(&of, "its allocation changes in place, which the API forbids".into());
            }
            (Some(_), None) if !claim.status.reserved_for.is_empty() => {
                self.wrong(&of, "it is deallocated while it is reserved".to_owned());
            }
            (None | Some(_), None | Some(_)) => {}
        }
        if has.is_some() && claim.status.reserved_for.is_empty() {
            self.wrong(&of, "it is allocated and reserved for nobody".to_owned());
        }
        if claim.status.reserved_for.len() > 256 {
            self.wrong(&of, "it has more than 256 users".to_owned());
        }
        self.claims.insert(of, claim.clone());
    }

    /// A claim that is deleted holds nothing any more.
    fn gone(&mut self, claim: &ResourceClaim) {
        let of = reference(claim);
        if !claim.metadata.finalizers.is_empty() {
            self.wrong(&of, "it is deleted while finalizers keep it".to_owned());
        }
        self.claims.remove(&of);
    }

    /// A pod's status names a claim that is made for it, and requests that the claim has.
    fn pod_status(&mut self, write: &PodStatusWrite) {
        let of = |kind, name: &String| ObjectRef {
            kind,
            namespace: write.namespace.clone(),
            name: name.clone(),
        };
        let pod = of(Kind::Pod, &write.pod);
        let claim = self.claims.get(&of(Kind::ResourceClaim, &write.status.resource_claim_name));
        let Some(claim) = claim else {
            return self.wrong(&pod, "its status names a claim that does not exist".to_owned());
        };
        let owner = claim.metadata.controller().is_some_and(|owner| owner.uid == write.uid);
        let marked = claim.metadata.annotations.get(EXTENDED_CLAIM).map(String::as_str);
        let requests: Vec<String> =
            claim.spec.devices.requests.iter().map(|request| request.name.clone()).collect();
        if !owner || marked != Some("true") {
            self.wrong(&pod, "the claim in its status is not made for it".to_owned());
        }
        let mapped = &write.status.request_mappings;
        let named = |request: &String| mapped.iter().any(|m| m.request_name == *request);
        if !requests.iter().all(named) || mapped.iter().any(|m| !requests.contains(&m.request_name))
        {
            self.wrong(&pod, "its status does not name each request of its claim".to_owned());
        }
        self.extended.insert(pod);
    }

    fn bind(&mut self, bind: &Bind) {
        let namespace = bind.namespace.clone();
        let pod = ObjectRef { kind: Kind::Pod, namespace, name: bind.pod.clone() };
        if !self.bound.insert(pod.clone()) {
            self.wrong(&pod, "it is bound twice".to_owned());
        }
        if let Some(Object::Pod(known)) = self.objects.get(&pod)
            && !known.spec.node_name.is_empty()
        {
            self.wrong(&pod, format!("it is on {} already", known.spec.node_name));
        }
        let reference =
            ObjectRef { kind: Kind::Node, namespace: String::new(), name: bind.node.clone() };
        let Some(Object::Node(node)) = self.objects.get(&reference) else {
            self.wrong(&pod, format!("it is bound to {}, which is no node", bind.node));
            return;
        };
        if let Some(spec) = crate::lower::pod_spec(self.objects, &bind.spec_of, bind.role) {
            let mut tolerations = spec.tolerations.clone();
            tolerations.extend(ledger::added_tolerations(self.objects, &bind.spec_of, &spec));
            for message in node_refuses(node, &tolerations) {
                self.wrong(&pod, message);
            }
        }
        let used: Vec<ResourceClaim> = self
            .claims
            .iter()
            .filter(|(of, claim)| of.namespace == bind.namespace && self.serves(claim, bind))
            .map(|(_, claim)| claim.clone())
            .collect();
        for claim in &used {
            if let Some(message) = claims::out_of_reach(claim, node) {
                self.wrong(&pod, message);
            }
        }
        let extended = ledger::by_devices(self.objects, bind, node);
        if extended != self.extended.contains(&pod) {
            let message = "its extended resources are served by devices or counted, not both";
            self.wrong(&pod, message.to_owned());
        }
        let asks = claims::asked_by(self.objects, bind) + usize::from(extended);
        if used.len() < asks {
            let message = format!("it needs {asks} claims, and {} are reserved for it", used.len());
            self.wrong(&pod, message);
        }
    }

    /// Whether a claim is allocated for a pod: reserved for itself, or for its PodGroup where the pod
    /// has a claim of that name.
    fn serves(&self, claim: &ResourceClaim, bind: &Bind) -> bool {
        let users = &claim.status.reserved_for;
        if claim.status.allocation.is_none() || users.iter().any(|user| user.uid == bind.uid) {
            return claim.status.allocation.is_some();
        }
        let spec = crate::lower::pod_spec(self.objects, &bind.spec_of, bind.role);
        let made_for = claim.metadata.annotations.get(crate::raise::POD_CLAIM_NAME);
        spec.is_some_and(|spec| {
            let group = spec.scheduling_group.iter().find_map(|of| of.pod_group_name.as_ref());
            let is_group = |name: &str| group.is_some_and(|group| group == name);
            let uses = spec.resource_claims.iter().any(|entry| {
                entry.resource_claim_name.as_ref() == Some(&claim.metadata.name)
                    || entry.resource_claim_template_name.is_some() && made_for == Some(&entry.name)
            });
            uses && users.iter().any(|user| user.resource == "podgroups" && is_group(&user.name))
        })
    }
}

/// Why a node repels a pod with these tolerations.
fn node_refuses(node: &Node, tolerations: &[Toleration]) -> Vec<String> {
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: TaintEffect::NoSchedule,
        ..Taint::default()
    };
    let cordon = node.spec.unschedulable.then_some(&cordon);
    node.spec
        .taints
        .iter()
        .chain(cordon)
        .filter(|taint| repels(&taint.effect))
        .filter(|taint| {
            !tolerations.iter().any(|t| tolerates(t, &taint.key, &taint.value, &taint.effect))
        })
        .map(|taint| {
            let name = &node.metadata.name;
            format!("it does not tolerate the taint {} of {name}", taint.key)
        })
        .collect()
}

fn repels(effect: &TaintEffect) -> bool {
    matches!(effect, TaintEffect::NoSchedule | TaintEffect::NoExecute)
}

/// `Toleration.ToleratesTaint` of Kubernetes, without the alpha operators.
fn tolerates(toleration: &Toleration, key: &str, value: &str, effect: &TaintEffect) -> bool {
    let of_effect = toleration.effect == TaintEffect::Unset || toleration.effect == *effect;
    let of_key = toleration.key.is_empty() || toleration.key == key;
    let of_value = match toleration.operator {
        TolerationOperator::Exists => true,
        TolerationOperator::Equal => toleration.value == value,
        TolerationOperator::Gt | TolerationOperator::Lt | TolerationOperator::Other(_) => false,
    };
    of_effect && of_key && of_value
}

#[cfg(test)]
mod tests;
