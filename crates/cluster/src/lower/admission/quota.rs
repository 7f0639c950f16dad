//! ResourceQuotas: what pods and claims that are not made yet would be charged, in the order in which
//! they would be made, and whom that keeps out. What is in use is what the quota's status says.
//!
//! Names and arithmetic are those of `pkg/quota/v1/evaluator/core`. A pod is charged together with
//! the claims that are made for it.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{Admits, ClaimKey, Fault, Name, Reason, Scoped, Since};
use phalanx_objects::Quantity;
use phalanx_objects::admission::{QuotaScope, ResourceQuota, ScopeOperator, ScopedRequirement};
use phalanx_objects::core::{Container, PodSpec, ResourceList};
use phalanx_objects::resource::{DeviceAllocationMode, DeviceClaim};

use super::pod::{Rules, containers};
use crate::compat::Gate;
use crate::finding::Severity;
use crate::lower::claim::{DEVICES_MAX, SpecId};
use crate::lower::extended::{IMPLICIT, may_be_served};
use crate::lower::found::Found;
use crate::lower::look::planned_for;
use crate::lower::record::{Life, PodClaimSource, PodShape};
use crate::lower::settle::distinct;
use crate::lower::workload::Marks;
use crate::lower::{Dependent, Lowering, amount};

/// After the name of a class, what counts its devices.
pub(crate) const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";

/// What counts claims.
const CLAIMS: &str = "count/resourceclaims.resource.k8s.io";

/// What every container must set where a quota counts it.
const DEMANDED: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// Whom a quota keeps out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuotaVerdict {
    pub(crate) namespace: Name,
    pub(crate) quota: Name,
    pub(crate) excess: Excess,
    /// So many of its pods would be made.
    pub(crate) open: u32,
    /// Of so many.
    pub(crate) wanted: u32,
    /// It is a workload, whose controller tries again.
    pub(crate) workload: bool,
}

/// What a quota lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// It counts what a container does not set.
    Unset { resource: String, container: String },
    /// It allows less than what is asked, or too little of it is left.
    Amount {
        resource: String,
        hard: Quantity,
        used: Quantity,
        /// What those take that are made before.
        before: Quantity,
        asked: Quantity,
        who: Asker,
    },
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The workload itself, as an object that is counted.
    Workload,
    /// A pod.
    Pod,
    /// The claims that are made for a pod, or that it names.
    Claims,
}

impl QuotaVerdict {
    /// Whether no pod that ends could make room.
    fn is_final(&self) -> bool {
        match &self.excess {
            Excess::Unset { .. } => true,
            Excess::Amount { hard, asked, .. } => asked > hard,
        }
    }

    /// Whether the pod itself is never made. One whose claims are refused is, and waits.
    fn is_never_made(&self) -> bool {
        let of_claims = match &self.excess {
            Excess::Unset { .. } => false,
            Excess::Amount { who, .. } => *who == Asker::Claims,
        };
        self.is_final() && !of_claims
    }

    pub(super) fn severity(&self) -> Severity {
        if self.is_final() || !self.workload { Severity::Error } else { Severity::Warning }
    }
}

/// A quota while it is being charged.
struct Line<'a> {
    name: &'a Name,
    quota: &'a ResourceQuota,
    used: ResourceList,
    before: ResourceList,
}

impl Line<'_> {
    fn of(&self, list: &ResourceList, name: &str) -> Quantity {
        list.get(name).copied().unwrap_or_default()
    }

    /// What there is too little of.
    fn excess(&self, asked: &ResourceList, who: Asker) -> Option<Excess> {
        asked.iter().filter(|(_, amount)| amount.sign() > 0).find_map(|(name, amount)| {
            let hard = *self.quota.spec.hard.get(name)?;
            let (used, before) = (self.of(&self.used, name), self.of(&self.before, name));
            let sum = used.checked_add(&before).and_then(|sum| sum.checked_add(amount));
            if sum.is_some_and(|sum| sum <= hard) {
                return None;
            }
            let resource = name.clone();
            Some(Excess::Amount { resource, hard, used, before, asked: *amount, who })
        })
    }

    fn charge(&mut self, asked: &ResourceList) {
        for (name, amount) in asked {
            if self.quota.spec.hard.contains_key(name) {
                let slot = self.before.entry(name.clone()).or_default();
                *slot = slot.checked_add(amount).unwrap_or((*slot).max(*amount));
            }
        }
    }

    /// Whether it counts the pod.
    fn counts(&self, spec: &PodSpec) -> bool {
        let scopes = self.quota.spec.scopes.iter().all(|scope| {
            scope_holds(&ScopedRequirement { scope_name: scope.clone(), ..<_>::default() }, spec)
        });
        let selector = self.quota.spec.scope_selector.iter();
        scopes && selector.flat_map(|s| &s.match_expressions).all(|r| scope_holds(r, spec))
    }

    /// Whether it counts claims: those have no scopes.
    fn counts_claims(&self) -> bool {
        let selects = self
            .quota
            .spec
            .scope_selector
            .as_ref()
            .is_some_and(|s| !s.match_expressions.is_empty());
        self.quota.spec.scopes.is_empty() && !selects
    }

    /// The first container that does not set what the quota counts.
    fn unset(&self, spec: &PodSpec) -> Option<Excess> {
        let own = spec.resources.as_ref();
        if own.is_some_and(|own| !own.requests.is_empty() || !own.limits.is_empty()) {
            return None;
        }
        let demanded = || DEMANDED.into_iter().filter(|n| self.quota.spec.hard.contains_key(*n));
        let lacks = |container: &Container| demanded().find(|name| !sets(container, name));
        containers(spec).find_map(|container| {
            let resource = lacks(container)?.to_owned();
            Some(Excess::Unset { resource, container: container.name.clone() })
        })
    }
}

fn sets(container: &Container, name: &str) -> bool {
    match name.strip_prefix("limits.") {
        Some(resource) => container.resources.limits.contains_key(resource),
        None => {
            let resource = name.strip_prefix("requests.").unwrap_or(name);
            container.resources.requests.contains_key(resource)
        }
    }
}

fn scope_holds(requirement: &ScopedRequirement, spec: &PodSpec) -> bool {
    let limited = spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0);
    match requirement.scope_name {
        QuotaScope::Terminating => limited,
        QuotaScope::NotTerminating => !limited,
        QuotaScope::BestEffort => is_best_effort(spec),
        QuotaScope::NotBestEffort => !is_best_effort(spec),
        QuotaScope::PriorityClass => {
            let class = &spec.priority_class_name;
            let named = !class.is_empty();
            match requirement.operator {
                ScopeOperator::In => named && requirement.values.contains(class),
                ScopeOperator::NotIn => !named || !requirement.values.contains(class),
                ScopeOperator::Exists => named,
                ScopeOperator::DoesNotExist => !named,
                ScopeOperator::Unset | ScopeOperator::Other(_) => false,
            }
        }
        QuotaScope::CrossNamespacePodAffinity => looks_elsewhere(spec),
        QuotaScope::Unset | QuotaScope::Other(_) => false,
    }
}

/// Whether its affinity names other namespaces, be they its own alone (`usesCrossNamespacePodAffinity`).
fn looks_elsewhere(spec: &PodSpec) -> bool {
    let sides = spec.affinity.iter().flat_map(|a| [&a.pod_affinity, &a.pod_anti_affinity]);
    sides.into_iter().any(|side| {
        let required = side.required_during_scheduling_ignored_during_execution.iter();
        let wished = side.preferred_during_scheduling_ignored_during_execution.iter();
        required
            .chain(wished.map(|weighted| &weighted.pod_affinity_term))
            .any(|term| !term.namespaces.is_empty() || term.namespace_selector.is_some())
    })
}

/// Whether no container asks for CPU or memory (`qos.GetPodQOS`).
fn is_best_effort(spec: &PodSpec) -> bool {
    let asks = |list: &ResourceList| {
        ["cpu", "memory"].iter().any(|name| list.get(*name).is_some_and(|q| q.sign() > 0))
    };
    let own = spec.resources.iter();
    let all = containers(spec).map(|c| &c.resources).chain(own);
    !all.flat_map(|r| [&r.requests, &r.limits]).any(asks)
}

/// What a pod is charged.
fn of_pod(spec: &PodSpec) -> ResourceList {
    let mut charge = ResourceList::new();
    let one = Quantity::from_int(1);
    charge.insert("pods".to_owned(), one);
    charge.insert("count/pods".to_owned(), one);
    for (name, amount) in amount::requests(spec) {
        charge_request(&name, amount, &mut charge);
    }
    for (name, amount) in amount::limits(spec) {
        if ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str()) {
            charge.insert(format!("limits.{name}"), amount);
        }
    }
    charge
}

fn charge_request(name: &str, amount: Quantity, charge: &mut ResourceList) {
    let native = ["cpu", "memory", "ephemeral-storage"].contains(&name);
    if native || name.starts_with("hugepages-") {
        charge.insert(name.to_owned(), amount);
    }
    if native || name.starts_with("hugepages-") || may_be_served(name) {
        charge.insert(format!("requests.{name}"), amount);
    }
}

fn add(charge: &mut ResourceList, name: String, amount: Quantity) {
    let slot = charge.entry(name).or_default();
    *slot = slot.checked_add(&amount).unwrap_or((*slot).max(amount));
}

/// How many devices a request may get.
fn devices(mode: &DeviceAllocationMode, count: i64) -> Quantity {
    match mode {
        // The API server fills in a count of one.
        DeviceAllocationMode::ExactCount => Quantity::from_int(count.max(1)),
        DeviceAllocationMode::All => {
            Quantity::from_int(i64::try_from(DEVICES_MAX).unwrap_or(i64::MAX))
        }
        DeviceAllocationMode::Other(_) => Quantity::default(),
    }
}

impl Lowering {
    /// Charges anew what is marked, and marks whose lot has changed.
    pub(crate) fn settle_quotas(&mut self) {
        let mut dirty: BTreeSet<Name> =
            distinct(&mut self.played.dirty_quotas).into_iter().collect();
        if self.objects.admission.quotas.is_empty() && self.played.verdicts.is_empty() {
            return;
        }
        let pods = self.dirty.pods.iter().map(|key| &key.0.namespace);
        let workloads = self.dirty.workloads.iter().map(|key| &key.object.namespace);
        let claims = self.dirty.claims.iter().map(|key| &key.0.namespace);
        dirty.extend(pods.chain(workloads).chain(claims).cloned());
        for namespace in dirty {
            let of = |dependent: &&Dependent| *namespace_of(dependent) == namespace;
            let before: BTreeMap<Dependent, QuotaVerdict> = self
                .played
                .verdicts
                .iter()
                .filter(|(dependent, _)| of(dependent))
                .map(|(dependent, verdict)| (dependent.clone(), verdict.clone()))
                .collect();
            let now = if self.objects.admission.has_quotas(&namespace) {
                self.charged(&namespace)
            } else {
                BTreeMap::new()
            };
            let changed: BTreeSet<Dependent> = before
                .keys()
                .chain(now.keys())
                .filter(|dependent| before.get(dependent) != now.get(dependent))
                .cloned()
                .collect();
            self.played.verdicts.retain(|dependent, _| !before.contains_key(dependent));
            self.played.verdicts.extend(now);
            self.mark(changed);
        }
    }

    /// Whom the quotas of a namespace keep out, each charged in turn.
    fn charged(&self, namespace: &Name) -> BTreeMap<Dependent, QuotaVerdict> {
        let mut lines: Vec<Line<'_>> = self
            .objects
            .admission
            .quotas_of(namespace)
            .map(|(name, quota)| Line {
                name,
                quota,
                used: self.used(namespace, quota),
                before: ResourceList::new(),
            })
            .collect();
        let lost = self.charge_claims(namespace, &mut lines);
        let mut verdicts = BTreeMap::new();
        for (_, dependent) in self.askers(namespace) {
            if let Some(verdict) = self.charge(namespace, &dependent, &lost, &mut lines) {
                verdicts.insert(dependent, verdict);
            }
        }
        verdicts
    }

    /// Who is to be made in a namespace or waits for claims that are, in the order in which that
    /// would be.
    fn askers(&self, namespace: &Name) -> BTreeSet<(Since, Dependent)> {
        let drafts = self.played.drafts.get(namespace).into_iter().flatten();
        let mut all: BTreeSet<(Since, Dependent)> = drafts
            .filter_map(|dependent| {
                let since = match dependent {
                    Dependent::Pod(key) => self.objects.pods.get(key)?.header.since(),
                    Dependent::Role(key, _) => self.objects.workloads.get(key)?.header.since(),
                };
                Some((since, dependent.clone()))
            })
            .collect();
        for (key, record) in &self.objects.pods {
            let waits = key.0.namespace == *namespace
                && record.draft.is_none()
                && record.life == Life::Pending;
            if waits && has_templates(&record.shape) {
                all.insert((record.header.since(), Dependent::Pod(key.clone())));
            }
        }
        all
    }

    /// Charges the claims that are not made yet; answers those that would be refused.
    fn charge_claims(
        &self,
        namespace: &Name,
        lines: &mut [Line<'_>],
    ) -> BTreeMap<ClaimKey, (Name, Excess)> {
        let new = self
            .objects
            .claims
            .iter()
            .filter(|(key, record)| key.0.namespace == *namespace && !record.header.is_made());
        let mut new: Vec<(Since, ClaimKey, SpecId)> =
            new.map(|(key, record)| (record.header.since(), key.clone(), record.spec)).collect();
        // One for a PodGroup, however many pods use it.
        new.extend(self.claims_to_come_of_groups(namespace));
        new.sort();
        let mut lost = BTreeMap::new();
        for (_, key, spec) in new {
            let Some(spec) = self.specs.get(spec) else { continue };
            let asked = self.claim_charge(&spec.devices);
            match first_excess(lines, &[], &asked) {
                Some(excess) => {
                    lost.insert(key, excess);
                }
                None => charge_all(lines, &[], &asked),
            }
        }
        lost
    }

    /// Charges the pods of one asker as far as there is room.
    fn charge(
        &self,
        namespace: &Name,
        dependent: &Dependent,
        lost: &BTreeMap<ClaimKey, (Name, Excess)>,
        lines: &mut [Line<'_>],
    ) -> Option<QuotaVerdict> {
        let (shape, draft, marks, wanted) = match dependent {
            Dependent::Pod(key) => {
                let record = self.objects.pods.get(key)?;
                let wanted = u32::from(record.life == Life::Pending);
                (&record.shape, record.draft.as_deref(), record.marks.as_deref(), wanted)
            }
            Dependent::Role(key, at) => {
                let record = self.objects.workloads.get(key)?;
                let role = record.roles.get(usize::from(*at))?;
                let wanted = self.missing(key, record, *at);
                (&role.shape, Some(&role.draft), role.marks.as_deref(), wanted)
            }
        };
        if wanted == 0 {
            return None;
        }
        let workload = matches!(dependent, Dependent::Role(..));
        let kept_out = |(quota, excess): (Name, Excess), open: u32| {
            let namespace = namespace.clone();
            Some(QuotaVerdict { namespace, quota, excess, open, wanted, workload })
        };
        if let Some(excess) = self.charge_object(dependent, lines) {
            return kept_out(excess, 0);
        }
        for claim in &shape.claims {
            let key = match (&claim.source, self.reserved_for(namespace, marks, claim)) {
                (PodClaimSource::Template(_), Some(group)) => planned_for(&group, &claim.name),
                (PodClaimSource::Claim(name), _) => {
                    ClaimKey(Scoped { namespace: namespace.clone(), name: name.clone() })
                }
                (PodClaimSource::Template(_), None) | (PodClaimSource::Invalid, _) => continue,
            };
            if let Some(excess) = lost.get(&key) {
                return kept_out(excess.clone(), 0);
            }
        }
        let (mut own, mut counting) = (ResourceList::new(), Vec::new());
        if let Some(draft) = draft {
            let spec = self.rules().admit(namespace, draft.made.spec()).spec;
            counting = (0..lines.len()).filter(|at| lines[*at].counts(&spec)).collect();
            for line in counting.iter().map(|at| &lines[*at]) {
                if let Some(excess) = line.unset(&spec) {
                    return kept_out((line.name.clone(), excess), 0);
                }
            }
            own = of_pod(&spec);
        }
        let claims = self.claims_to_make(namespace, dependent, (shape, marks));
        let own = (counting.as_slice(), &own);
        (0..wanted).find_map(|open| match first_excess(lines, &[own], &claims) {
            Some(excess) => kept_out(excess, open),
            None => {
                charge_all(lines, &[own], &claims);
                None
            }
        })
    }

    /// Charges a workload that is not made yet, as an object.
    fn charge_object(&self, of: &Dependent, lines: &mut [Line<'_>]) -> Option<(Name, Excess)> {
        // It is charged once, with its first role.
        let Dependent::Role(key, 0) = of else { return None };
        let record = self.objects.workloads.get(key)?;
        if record.header.is_made() {
            return None;
        }
        let (group, _) = record.kind.versions().first()?.split_once('/')?;
        let name = format!("count/{}s.{group}", record.kind.as_str().to_ascii_lowercase());
        let asked = ResourceList::from([(name, Quantity::from_int(1))]);
        let mut counting = lines.iter_mut().filter(|line| line.counts_claims());
        let excess = counting.find_map(|line| {
            let excess = line.excess(&asked, Asker::Workload)?;
            Some((line.name.clone(), excess))
        });
        if excess.is_none() {
            lines.iter_mut().filter(|l| l.counts_claims()).for_each(|line| line.charge(&asked));
        }
        excess
    }

    fn rules(&self) -> Rules<'_> {
        Rules {
            namespaces: self.objects.named_namespaces(),
            admission: &self.objects.admission,
            priorities: &self.objects.priorities,
            compat: &self.compat,
            unread: &self.unread,
        }
    }

    /// What the claims are charged that are made for one pod.
    fn claims_to_make(
        &self,
        namespace: &Name,
        dependent: &Dependent,
        (shape, marks): (&PodShape, Option<&Marks>),
    ) -> ResourceList {
        let mut charge = ResourceList::new();
        let made: Vec<bool> = match dependent {
            Dependent::Pod(key) => self.objects.pods.get(key).map_or_else(Vec::new, |record| {
                let found = self.claims_of(key, record).into_iter();
                found.map(|found| !matches!(found, Found::Own(_, None))).collect()
            }),
            Dependent::Role(..) => Vec::new(),
        };
        for (at, claim) in shape.claims.iter().enumerate() {
            let PodClaimSource::Template(name) = &claim.source else { continue };
            let is_shared = || self.reserved_for(namespace, marks, claim).is_some();
            if made.get(at).copied().unwrap_or(false) || is_shared() {
                continue;
            }
            let key = Scoped { namespace: namespace.clone(), name: name.clone() };
            let Some(template) = self.objects.templates.get(&key) else { continue };
            let Some(spec) = self.specs.get(template.spec) else { continue };
            for (name, amount) in self.claim_charge(&spec.devices) {
                add(&mut charge, name, amount);
            }
        }
        charge
    }

    /// What a claim is charged.
    fn claim_charge(&self, claim: &DeviceClaim) -> ResourceList {
        let mut charge = ResourceList::new();
        charge.insert(CLAIMS.to_owned(), Quantity::from_int(1));
        let mut by_class: BTreeMap<&str, Quantity> = BTreeMap::new();
        for request in &claim.requests {
            let mut most: BTreeMap<&str, Quantity> = BTreeMap::new();
            if let Some(exactly) = &request.exactly {
                let asked = devices(&exactly.allocation_mode, exactly.count);
                most.insert(&exactly.device_class_name, asked);
            }
            for sub in &request.first_available {
                let asked = devices(&sub.allocation_mode, sub.count);
                let slot = most.entry(&sub.device_class_name).or_default();
                *slot = (*slot).max(asked);
            }
            for (class, asked) in most {
                let slot = by_class.entry(class).or_default();
                *slot = slot.checked_add(&asked).unwrap_or(asked);
            }
        }
        for (class, asked) in by_class {
            add(&mut charge, format!("{class}{DEVICES}"), asked);
            if !self.compat.is_on(Gate::DRAExtendedResource) {
                continue;
            }
            add(&mut charge, format!("requests.{IMPLICIT}{class}"), asked);
            let class = self.objects.classes.get(class);
            let served = class.and_then(|class| class.object.spec.extended_resource_name.as_ref());
            if let Some(name) = served {
                add(&mut charge, format!("requests.{name}"), asked);
            }
        }
        charge
    }

    /// What is in use: as the status says, or what the pods and claims of the input ask for, whichever
    /// is more: a status that is missing or older than the pods says too little, and an input that
    /// lacks pods too. (Limits of pods on nodes are not kept, and which scopes count them is not
    /// either: of these the status alone tells.)
    fn used(&self, namespace: &Name, quota: &ResourceQuota) -> ResourceList {
        let mut used = quota.status.used.clone();
        let bare = quota.spec.scopes.is_empty() && quota.spec.scope_selector.is_none();
        if bare {
            for (name, counted) in self.charged_to(namespace) {
                let slot = used.entry(name).or_default();
                *slot = (*slot).max(counted);
            }
        }
        used
    }

    /// What the pods and claims that exist in a namespace are charged.
    fn charged_to(&self, namespace: &Name) -> ResourceList {
        let mut used = ResourceList::new();
        for (_, record) in self.objects.pods.iter().filter(|(key, _)| key.0.namespace == *namespace)
        {
            if record.draft.is_some() {
                continue;
            }
            add(&mut used, "count/pods".to_owned(), Quantity::from_int(1));
            if record.life == Life::Ended {
                continue;
            }
            let resources = &record.shape.resources;
            let mut charge = ResourceList::new();
            charge.insert("pods".to_owned(), Quantity::from_int(1));
            charge_request("cpu", Quantity::from_milli(resources.cpu_milli), &mut charge);
            charge_request("memory", Quantity::from_int(resources.memory_bytes), &mut charge);
            let ephemeral = Quantity::from_int(resources.ephemeral_bytes);
            charge_request("ephemeral-storage", ephemeral, &mut charge);
            for (name, amount) in &resources.scalars {
                charge_request(name, Quantity::from_int(*amount), &mut charge);
            }
            charge.into_iter().for_each(|(name, amount)| add(&mut used, name, amount));
        }
        let claims = self
            .objects
            .claims
            .iter()
            .filter(|(key, record)| key.0.namespace == *namespace && record.header.is_made());
        for (_, record) in claims {
            let Some(spec) = self.specs.get(record.spec) else { continue };
            for (name, amount) in self.claim_charge(&spec.devices) {
                // What was made for a pod's extended resources was charged with the pod.
                if !(record.extended && name.starts_with("requests.")) {
                    add(&mut used, name, amount);
                }
            }
        }
        used
    }

    /// What keeps some of a role's pods from being made.
    pub(in crate::lower) fn admits(&mut self, dependent: &Dependent) -> Option<Box<Admits>> {
        let verdict = self.played.verdicts.get(dependent).filter(|v| !v.is_never_made())?;
        let (most, subject) = (verdict.open, verdict.quota.clone());
        let detail = self.interned.names.get(&crate::words::why_exceeded(&verdict.excess));
        let fault = Fault { reason: Reason::QuotaExceeded, subject, detail };
        Some(Box::new(Admits { most, fault }))
    }

    /// A quota that would never let the pod be made.
    pub(in crate::lower) fn never_admitted(&mut self, dependent: &Dependent) -> Option<Fault> {
        let verdict = self.played.verdicts.get(dependent).filter(|v| v.is_never_made())?;
        let detail = crate::words::why_never(verdict);
        let (subject, detail) = (Name::new(""), self.interned.names.get(&detail));
        Some(Fault { reason: Reason::AdmissionRefused, subject, detail })
    }
}

fn has_templates(shape: &PodShape) -> bool {
    shape.claims.iter().any(|claim| matches!(claim.source, PodClaimSource::Template(_)))
}

fn namespace_of(dependent: &Dependent) -> &Name {
    match dependent {
        Dependent::Pod(key) => &key.0.namespace,
        Dependent::Role(key, _) => &key.object.namespace,
    }
}

/// What there is too little of for a pod, by the quotas that count it, or for its claims.
fn first_excess(
    lines: &[Line<'_>],
    pods: &[(&[usize], &ResourceList)],
    claims: &ResourceList,
) -> Option<(Name, Excess)> {
    for (counting, asked) in pods {
        for line in counting.iter().filter_map(|at| lines.get(*at)) {
            if let Some(excess) = line.excess(asked, Asker::Pod) {
                return Some((line.name.clone(), excess));
            }
        }
    }
    lines.iter().filter(|line| line.counts_claims()).find_map(|line| {
        let excess = line.excess(claims, Asker::Claims)?;
        Some((line.name.clone(), excess))
    })
}

fn charge_all(lines: &mut [Line<'_>], pods: &[(&[usize], &ResourceList)], claims: &ResourceList) {
    for (counting, asked) in pods {
        for at in *counting {
            if let Some(line) = lines.get_mut(*at) {
                line.charge(asked);
            }
        }
    }
    for line in lines.iter_mut().filter(|line| line.counts_claims()) {
        line.charge(claims);
    }
}
