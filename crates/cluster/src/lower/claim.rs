//! What claims ask: from `spec.devices` to the engine's `ClaimSpec`.
//!
//! Equal specs are one entry, for a workload's claims are all alike. An entry is resolved against
//! the DeviceClasses anew when one of its classes changes. What can't be granted whatever the
//! devices becomes a `Fault` on the spec; whether devices serve it is the engine's work.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use phalanx_engine::{
    Align, Alternative, Amount, ClaimSpec, Constraint, DeviceRequest, Fault, Name, Reason,
    SelectorId, Shared, Toleration,
};
use phalanx_objects::resource::{
    CapacityRequirements, DerivedAttribute, DeviceAllocationMode, DeviceClaim, DeviceClass,
    DeviceConstraint, DeviceRequest as ObjectRequest, DeviceSelector, DeviceToleration,
    ResourceClaim, ResourceClaimTemplate,
};
use phalanx_objects::topology::ALIGN_ANNOTATION;
use phalanx_objects::{Kind, ObjectRef};
use rustc_hash::{FxHashMap, FxHasher};

use super::intern::{Names, nanos};
use super::selector::Selectors;
use crate::compat::{Allocator, Compat, Gate};
use crate::finding::UNREAD;

/// Most devices that one allocation can hold (`resource.k8s.io`: `AllocationResultsMaxSize`).
pub(crate) const DEVICES_MAX: u64 = 32;

/// Number of a spec as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SpecId(u32);

/// A wish for nearness as it was written, or what is wrong with it.
pub(crate) type Wish = Result<Box<[Align]>, Name>;

/// `spec.devices` as an object has it, which is shared and not copied.
#[derive(Clone, Debug)]
pub enum SpecText {
    /// Of a claim.
    Claim(Arc<ResourceClaim>),
    /// Of a template.
    Template(Arc<ResourceClaimTemplate>),
    /// Of a claim for extended resources, which is made here.
    Made(Arc<DeviceClaim>),
}

impl Deref for SpecText {
    type Target = DeviceClaim;
    fn deref(&self) -> &DeviceClaim {
        match self {
            Self::Claim(claim) => &claim.spec.devices,
            Self::Template(template) => &template.spec.spec.devices,
            Self::Made(devices) => devices,
        }
    }
}

/// A spec as it was written, and what it means now.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// The object's own form: what raising an allocation needs.
    pub(crate) devices: SpecText,
    align: Wish,
    /// How many claims and templates have it.
    owners: u32,
    resolved: Option<Shared<ClaimSpec>>,
    /// What to say on the object that has it.
    problem: Option<Problem>,
}

/// A fault, and the field under `spec.devices` that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) fault: Fault,
    /// Such as `requests[0].exactly.selectors[0].cel.expression`.
    pub(crate) path: String,
    /// Whether the fault is in a DeviceClass and said there.
    pub(crate) elsewhere: bool,
}

/// All specs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specs {
    /// By a hash of what tells most specs apart.
    ids: FxHashMap<u64, Vec<SpecId>>,
    entries: Vec<Spec>,
    by_class: BTreeMap<Name, BTreeSet<SpecId>>,
    /// Entries whose resolution must be made or made anew.
    dirty: BTreeSet<SpecId>,
    /// Whether the set of specs that somebody has, or what one of them means, may have changed.
    pub(crate) moved: bool,
}

/// A DeviceClass, as far as it is read.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) header: super::record::Header,
    /// The class's own form: what raising an allocation needs.
    pub(crate) object: Arc<DeviceClass>,
}

/// What resolving a spec reads and fills.
pub(crate) struct Resolver<'a> {
    pub(crate) classes: &'a BTreeMap<Name, Class>,
    pub(crate) selectors: &'a mut Selectors,
    pub(crate) names: &'a mut Names,
    pub(crate) compat: &'a Compat,
    /// Objects that are there and could not be read.
    pub(crate) unread: &'a BTreeSet<ObjectRef>,
}

impl Specs {
    /// The number of a spec. Its text is its identity.
    pub(crate) fn add(&mut self, devices: SpecText, align: Wish, names: &mut Names) -> SpecId {
        let hash = hash_of(&devices);
        let alike = self.ids.entry(hash).or_default();
        let same = |id: &&SpecId| {
            self.entries.get(id.0 as usize).is_some_and(|spec| spec.is(&devices, &align))
        };
        if let Some(id) = alike.iter().find(same) {
            return *id;
        }
        let id = SpecId(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        alike.push(id);
        for class in class_names(&devices) {
            self.by_class.entry(names.get(class)).or_default().insert(id);
        }
        self.entries.push(Spec { devices, align, owners: 0, resolved: None, problem: None });
        self.dirty.insert(id);
        id
    }

    /// One more object has the spec.
    pub(crate) fn take(&mut self, id: SpecId) {
        if let Some(spec) = self.entries.get_mut(id.0 as usize) {
            spec.owners += 1;
            self.moved |= spec.owners == 1;
        }
    }

    /// One object fewer has the spec.
    pub(crate) fn give(&mut self, id: SpecId) {
        if let Some(spec) = self.entries.get_mut(id.0 as usize) {
            spec.owners = spec.owners.saturating_sub(1);
            self.moved |= spec.owners == 0;
        }
    }

    /// Whether what somebody has names a class.
    pub(crate) fn name_a_class(&self) -> bool {
        let is_live =
            |id: &SpecId| self.entries.get(id.0 as usize).is_some_and(|spec| spec.owners > 0);
        let named = self.by_class.iter().filter(|(class, _)| !class.is_empty());
        named.flat_map(|(_, specs)| specs).any(is_live)
    }

    /// A class has changed: the specs that name it mean something else.
    pub(crate) fn class_changed(&mut self, class: &str) {
        self.dirty.extend(self.by_class.get(class).into_iter().flatten());
    }

    /// Resolves what is dirty; answers which specs mean something else now.
    pub(crate) fn settle(&mut self, resolver: &mut Resolver<'_>) -> BTreeSet<SpecId> {
        let dirty = std::mem::take(&mut self.dirty);
        let mut changed = BTreeSet::new();
        for id in dirty {
            let Some(spec) = self.entries.get_mut(id.0 as usize) else { continue };
            let (resolved, problem) = resolver.resolve(&spec.devices, &spec.align);
            let resolved = Shared::new(resolved);
            if spec.resolved.as_ref() != Some(&resolved) || spec.problem != problem {
                spec.resolved = Some(resolved);
                spec.problem = problem;
                changed.insert(id);
                self.moved |= spec.owners > 0;
            }
        }
        changed
    }

    /// The spec as it was written.
    pub(crate) fn get(&self, id: SpecId) -> Option<&Spec> {
        self.entries.get(id.0 as usize)
    }

    /// What the spec means, once settled.
    pub(crate) fn resolved(&self, id: SpecId) -> Option<&Shared<ClaimSpec>> {
        self.get(id)?.resolved.as_ref()
    }

    /// What every spec that somebody has means.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Shared<ClaimSpec>> {
        self.entries.iter().filter(|spec| spec.owners > 0).filter_map(|spec| spec.resolved.as_ref())
    }
}

/// A hash of names, classes and selectors: specs that agree in these seldom differ.
fn hash_of(devices: &DeviceClaim) -> u64 {
    let mut state = FxHasher::default();
    let mut asked = |class: &str, selectors: &[DeviceSelector], count: i64| {
        (class, count).hash(&mut state);
        let texts = selectors.iter().filter_map(|selector| selector.cel.as_ref());
        texts.for_each(|cel| cel.expression.hash(&mut state));
    };
    for request in &devices.requests {
        asked(&request.name, &[], 0);
        if let Some(exactly) = &request.exactly {
            asked(&exactly.device_class_name, &exactly.selectors, exactly.count);
        }
        for sub in &request.first_available {
            asked(&sub.name, &[], 0);
            asked(&sub.device_class_name, &sub.selectors, sub.count);
        }
    }
    devices.constraints.len().hash(&mut state);
    state.finish()
}

/// Whether specs that are equal are written alike too: amounts and configuration need not be.
fn is_plain(devices: &DeviceClaim) -> bool {
    devices.config.is_empty()
        && devices.requests.iter().all(|request| {
            request.exactly.iter().all(|exactly| exactly.capacity.is_none())
                && request.first_available.iter().all(|sub| sub.capacity.is_none())
        })
}

impl Spec {
    /// Whether it is written so.
    fn is(&self, devices: &DeviceClaim, align: &Wish) -> bool {
        let text = |of: &DeviceClaim| serde_json::to_string(of).ok();
        self.align == *align
            && *self.devices == *devices
            && (is_plain(devices) || text(&self.devices) == text(devices))
    }

    /// Whether the spec itself wishes for nearness, or tries to.
    pub(crate) fn wishes(&self) -> bool {
        self.align.as_ref().map_or(true, |wish| !wish.is_empty())
    }

    /// Whether the wish could be read.
    pub(crate) fn is_readable(&self) -> bool {
        self.align.is_ok()
    }

    /// What is wrong with it whatever the devices, if anything is.
    pub(crate) fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }
}

/// The classes that a claim names, in order.
fn class_names(devices: &DeviceClaim) -> impl Iterator<Item = &str> {
    devices.requests.iter().flat_map(|request| {
        let exactly = request.exactly.iter().map(|e| e.device_class_name.as_str());
        exactly.chain(request.first_available.iter().map(|s| s.device_class_name.as_str()))
    })
}

/// The parts that `exactly` and a subrequest have in common.
struct Asked<'a> {
    /// `main` or `main/sub`, for messages.
    label: &'a dyn Display,
    /// Its field under `spec.devices`.
    path: &'a dyn Display,
    name: Option<&'a str>,
    class: &'a str,
    selectors: &'a [DeviceSelector],
    mode: &'a DeviceAllocationMode,
    count: i64,
    admin: Option<bool>,
    tolerations: &'a [DeviceToleration],
    capacity: Option<&'a CapacityRequirements>,
    derived: &'a [DerivedAttribute],
}

/// What was found wrong with one spec.
type Problems = Vec<Problem>;

impl Resolver<'_> {
    fn resolve(&mut self, devices: &DeviceClaim, align: &Wish) -> (ClaimSpec, Option<Problem>) {
        let mut problems = Problems::new();
        if let Err(message) = align {
            // The annotation's finding is made where it is read.
            let subject = self.names.get(ALIGN_ANNOTATION);
            let reason = Reason::RequestUnsupported;
            let fault = Fault { reason, subject, detail: message.clone() };
            problems.push(Problem { fault, path: String::new(), elsewhere: true });
        }
        let mut requests = Vec::new();
        for (index, request) in devices.requests.iter().enumerate() {
            let path = &format_args!("requests[{index}]");
            requests.push(self.request(request, path, &mut problems));
        }
        let mut constraints = Vec::new();
        for (index, constraint) in devices.constraints.iter().enumerate() {
            let path = &format_args!("constraints[{index}]");
            constraints.extend(self.constraint(constraint, path, &mut problems));
        }
        self.complete(&mut requests, &constraints);
        self.check_total(&requests, &mut problems);
        // The fault of highest precedence; of equals, the first.
        let problem = problems.into_iter().min_by_key(|problem| problem.fault.reason);
        let spec = ClaimSpec {
            requests: requests.into(),
            constraints: constraints.into(),
            align: align.clone().unwrap_or_default(),
            fault: problem.as_ref().map(|problem| problem.fault.clone()),
        };
        (spec, problem)
    }

    fn problem(
        &mut self,
        reason: Reason,
        subject: &dyn Display,
        detail: &str,
        path: &dyn Display,
    ) -> Problem {
        let subject = self.names.get(&subject.to_string());
        let fault = Fault { reason, subject, detail: self.names.get(detail) };
        Problem { fault, path: path.to_string(), elsewhere: false }
    }

    fn unsupported(&mut self, subject: &dyn Display, detail: &str, path: &dyn Display) -> Problem {
        self.problem(Reason::RequestUnsupported, subject, detail, path)
    }

    fn request(
        &mut self,
        request: &ObjectRequest,
        path: &dyn Display,
        problems: &mut Problems,
    ) -> DeviceRequest {
        let name = self.names.get(&request.name);
        let mut alternatives = Vec::new();
        if let Some(exactly) = &request.exactly {
            let asked = &Asked {
                label: &request.name,
                path: &format_args!("{path}.exactly"),
                name: None,
                class: &exactly.device_class_name,
                selectors: &exactly.selectors,
                mode: &exactly.allocation_mode,
                count: exactly.device_count(),
                admin: exactly.admin_access,
                tolerations: &exactly.tolerations,
                capacity: exactly.capacity.as_ref(),
                derived: &exactly.derived_attributes,
            };
            alternatives.push(self.alternative(asked, problems));
        }
        for (index, sub) in request.first_available.iter().enumerate() {
            let asked = &Asked {
                label: &format_args!("{}/{}", request.name, sub.name),
                path: &format_args!("{path}.firstAvailable[{index}]"),
                name: Some(&sub.name),
                class: &sub.device_class_name,
                selectors: &sub.selectors,
                mode: &sub.allocation_mode,
                count: sub.device_count(),
                admin: None,
                tolerations: &sub.tolerations,
                capacity: sub.capacity.as_ref(),
                derived: &sub.derived_attributes,
            };
            alternatives.push(self.alternative(asked, problems));
        }
        self.check_form(request, path, problems);
        DeviceRequest { name, alternatives: alternatives.into() }
    }

    fn check_form(&mut self, request: &ObjectRequest, path: &dyn Display, problems: &mut Problems) {
        let list = !request.first_available.is_empty();
        let name = &request.name;
        match (&request.exactly, list) {
            (None, false) => {
                let detail = "it has neither `exactly` nor `firstAvailable`; a newer Kubernetes \
                              may know another form";
                problems.push(self.unsupported(name, detail, path));
            }
            (Some(_), true) => {
                let detail = "it has both `exactly` and `firstAvailable`, and only one is allowed";
                problems.push(self.unsupported(name, detail, path));
            }
            (None, true) => {
                self.gate(Gate::DRAPrioritizedList, name, "firstAvailable", path, problems);
            }
            (Some(_), false) => {}
        }
    }

    /// A field that needs a gate is a fault while the gate is off.
    fn gate(
        &mut self,
        gate: Gate,
        label: &dyn Display,
        field: &str,
        path: &dyn Display,
        problems: &mut Problems,
    ) {
        if !self.compat.is_on(gate) {
            let detail = format!(
                "`{field}` needs the feature gate {}, which is off in Kubernetes {}",
                gate.as_str(),
                self.compat.version()
            );
            let path = &format_args!("{path}.{field}");
            problems.push(self.unsupported(label, &detail, path));
        }
    }

    fn alternative(&mut self, asked: &Asked<'_>, problems: &mut Problems) -> Alternative {
        let (mut selectors, class_selectors) = self.class_selectors(asked, problems);
        for (index, selector) in asked.selectors.iter().enumerate() {
            let path = &format_args!("{}.selectors[{index}]", asked.path);
            let from = &format_args!("request {}", asked.label);
            selectors.extend(self.selector(selector, from, path, false, problems));
        }
        if asked.admin.is_some() {
            self.gate(Gate::DRAAdminAccess, asked.label, "adminAccess", asked.path, problems);
        }
        if !asked.derived.is_empty() {
            let gate = Gate::DRADerivedAttributes;
            self.gate(gate, asked.label, "derivedAttributes", asked.path, problems);
        }
        Alternative {
            name: asked.name.map(|name| self.names.get(name)),
            class: self.names.get(asked.class),
            selectors: selectors.into(),
            class_selectors,
            amount: self.amount(asked, problems),
            admin: asked.admin == Some(true),
            tolerations: self.tolerations(asked.tolerations),
            capacity: self.capacity(asked, problems),
            derived: self.derived(asked.derived),
        }
    }

    /// The expressions of derived attributes. One that does not compile is an error where it is
    /// evaluated.
    fn derived(&mut self, all: &[DerivedAttribute]) -> Box<[(Name, SelectorId)]> {
        let mut derived = Vec::with_capacity(all.len());
        for one in all {
            let id = self.selectors.intern_derived(&one.expression, self.names);
            derived.push((self.names.get(&one.name), id));
        }
        // Of two of one name the later counts.
        derived.reverse();
        derived.into()
    }

    /// Where one request derives an attribute that a constraint compares with another's, the other
    /// is asked for what its devices publish, so that all values of the constraint come one way.
    fn complete(&mut self, requests: &mut [DeviceRequest], constraints: &[Constraint]) {
        for constraint in constraints {
            let name = &constraint.attribute;
            let alternatives = || requests.iter().flat_map(|r| &r.alternatives);
            if !alternatives().any(|a| a.derives(name).is_some()) {
                continue;
            }
            let published = self.selectors.intern_published(name);
            for alternative in requests.iter_mut().flat_map(|r| &mut r.alternatives) {
                if alternative.derives(name).is_none() {
                    let mut derived = alternative.derived.to_vec();
                    derived.push((name.clone(), published));
                    alternative.derived = derived.into();
                }
            }
        }
    }

    fn class_selectors(
        &mut self,
        asked: &Asked<'_>,
        problems: &mut Problems,
    ) -> (Vec<SelectorId>, u16) {
        let mut ids = Vec::new();
        let path = &format_args!("{}.deviceClassName", asked.path);
        if asked.class.is_empty() {
            problems.push(self.unsupported(asked.label, "it names no DeviceClass", path));
            return (ids, 0);
        }
        let classes = self.classes;
        let Some(class) = classes.get(asked.class) else {
            let (namespace, name) = (String::new(), asked.class.to_owned());
            let class = ObjectRef { kind: Kind::DeviceClass, namespace, name };
            let unread = self.unread.contains(&class);
            let detail = if unread { UNREAD.to_owned() } else { asked.label.to_string() };
            problems.push(self.problem(Reason::ClassMissing, &asked.class, &detail, path));
            return (ids, 0);
        };
        for selector in &class.object.spec.selectors {
            let from = &format_args!("DeviceClass {}", asked.class);
            ids.extend(self.selector(selector, from, path, true, problems));
        }
        let count = u16::try_from(ids.len()).unwrap_or(u16::MAX);
        (ids, count)
    }

    fn selector(
        &mut self,
        selector: &DeviceSelector,
        from: &dyn Display,
        path: &dyn Display,
        of_class: bool,
        problems: &mut Problems,
    ) -> Option<SelectorId> {
        let Some(cel) = &selector.cel else {
            let detail = "a selector is not CEL; a newer Kubernetes may know its kind";
            problems.push(self.unsupported(from, detail, path));
            return None;
        };
        let id = self.selectors.intern(&cel.expression, self.names);
        if let Some(error) = self.selectors.error(id) {
            let (subject, detail) = (self.names.get(&from.to_string()), error.clone());
            let fault = Fault { reason: Reason::SelectorInvalid, subject, detail };
            let path = format!("{path}.cel.expression");
            problems.push(Problem { fault, path, elsewhere: of_class });
        }
        Some(id)
    }

    fn amount(&mut self, asked: &Asked<'_>, problems: &mut Problems) -> Amount {
        match asked.mode {
            DeviceAllocationMode::All => Amount::All,
            DeviceAllocationMode::ExactCount => {
                if asked.count < 0 {
                    let detail = format!("its count is {}, and at least 1 is needed", asked.count);
                    let path = &format_args!("{}.count", asked.path);
                    problems.push(self.unsupported(asked.label, &detail, path));
                }
                // Of a list's alternatives one that is too large is passed over.
                if asked.count > i64::from(u32::MAX) && asked.name.is_none() {
                    let detail = format!("its count is {}", asked.count);
                    let path = &format_args!("{}.count", asked.path);
                    let reason = Reason::TooManyDevices;
                    problems.push(self.problem(reason, asked.label, &detail, path));
                }
                Amount::Count(u32::try_from(asked.count.max(0)).unwrap_or(u32::MAX))
            }
            DeviceAllocationMode::Other(mode) => {
                let detail = format!("its allocationMode `{mode}` is not known");
                let path = &format_args!("{}.allocationMode", asked.path);
                problems.push(self.unsupported(asked.label, &detail, path));
                Amount::Count(0)
            }
        }
    }

    fn tolerations(&mut self, all: &[DeviceToleration]) -> Box<[Toleration]> {
        if !self.compat.is_on(Gate::DRADeviceTaints) {
            return Box::default();
        }
        super::rules::tolerations(all, self.names)
    }

    fn capacity(&mut self, asked: &Asked<'_>, problems: &mut Problems) -> Box<[(Name, i128)]> {
        let Some(capacity) = asked.capacity else { return Box::default() };
        self.gate(Gate::DRAConsumableCapacity, asked.label, "capacity", asked.path, problems);
        capacity.requests.iter().map(|(name, q)| (self.names.get(name), nanos(q))).collect()
    }

    fn constraint(
        &mut self,
        c: &DeviceConstraint,
        path: &dyn Display,
        problems: &mut Problems,
    ) -> Option<Constraint> {
        let (attribute, distinct) = match (&c.match_attribute, &c.distinct_attribute) {
            (Some(attribute), None) => (attribute, false),
            (None, Some(attribute)) => {
                // The newer allocators do not ask for the gate.
                if self.compat.allocator() == Allocator::Stable {
                    let gate = Gate::DRAConsumableCapacity;
                    self.gate(gate, &"constraints", "distinctAttribute", path, problems);
                }
                (attribute, true)
            }
            (None, None) | (Some(_), Some(_)) => {
                let detail = "a constraint has one of `matchAttribute` and `distinctAttribute`";
                problems.push(self.unsupported(&"constraints", detail, path));
                return None;
            }
        };
        Some(Constraint {
            attribute: self.names.get(attribute),
            distinct,
            requests: c.requests.iter().map(|name| self.names.get(name)).collect(),
        })
    }

    /// The limit on one allocation, as far as it is known before the devices are: the least of
    /// each request's alternatives, with nothing for `All`.
    fn check_total(&mut self, requests: &[DeviceRequest], problems: &mut Problems) {
        let mut total = 0_u64;
        for (index, request) in requests.iter().enumerate() {
            let least = request.alternatives.iter().map(|alternative| match alternative.amount {
                Amount::Count(count) => u64::from(count),
                Amount::All => 0,
            });
            let adds = least.min().unwrap_or(0);
            if total + adds > DEVICES_MAX {
                let detail = if total == 0 {
                    format!("it asks {adds} devices, and a claim can hold {DEVICES_MAX}")
                } else {
                    format!(
                        "it adds {adds} to the {total} that others ask, and a claim can hold \
                         {DEVICES_MAX} devices"
                    )
                };
                let path = &format_args!("requests[{index}]");
                let reason = Reason::TooManyDevices;
                problems.push(self.problem(reason, &request.name, &detail, path));
                return;
            }
            total += adds;
        }
    }
}
