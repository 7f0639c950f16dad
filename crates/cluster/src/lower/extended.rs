//! Extended resources that a DeviceClass serves (KEP-5004): which class serves which name, and what
//! a claim for them asks. Whether a node counts the resource or gives devices for it is the
//! engine's to see.

use std::cmp::Reverse;
use std::sync::Arc;

use phalanx_engine::{ClaimKey, GroupKey, Name, NodeKey, PodKey, Resources, Scoped};
use phalanx_objects::core::{Container, PodSpec, RestartPolicy};
use phalanx_objects::resource::{
    DeviceAllocationMode, DeviceClaim, DeviceClass, DeviceRequest, ExactDeviceRequest,
};

use super::absorb::change;
use super::amount::is_extended;
use super::claim::{SpecId, SpecText};
use super::intern::Names;
use super::look::{ClaimInfo, ClaimName, PodInfo};
use super::record::{ExtendedAsk, Life, PodShape};
use super::{Dependent, Lowering};
use crate::compat::Gate;

/// Before the name of a class, the extended resource that every class serves.
pub(crate) const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/";

/// What is asked under a name of the extended form, with how much.
pub(super) fn extended(resources: &Resources) -> impl Iterator<Item = &Name> {
    let asked = |(name, amount): &&(Name, i64)| *amount > 0 && name.contains('/');
    resources.scalars.iter().filter(asked).map(|(name, _)| name)
}

/// Whether devices may serve the name (`schedutil.IsDRAExtendedResourceName`).
pub(crate) fn may_be_served(name: &str) -> bool {
    name.starts_with(IMPLICIT) || is_extended(name)
}

/// The requests that stand for one extended resource of a pod in a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asks {
    /// Its name.
    pub(crate) resource: String,
    /// Name and count of each request.
    pub(crate) requests: Vec<(String, i64)>,
    /// Which request serves which container: container and request.
    pub(crate) mappings: Vec<(String, String)>,
}

/// What the containers of a pod ask of extended resources, by name of the resource. Containers that
/// run one after the other share devices, as kube-scheduler has it (`createRequestsAndMappings`): an
/// init container takes those of the containers that start after it, and only what it needs beyond
/// them is asked for, once for all init containers.
pub(crate) fn asks(spec: &PodSpec) -> Vec<Asks> {
    let containers: Vec<Side<'_>> = spec
        .init_containers
        .iter()
        .map(|c| Side { container: c, brief: c.restart_policy != Some(RestartPolicy::Always) })
        .chain(spec.containers.iter().map(|container| Side { container, brief: false }))
        .collect();
    let mut names: Vec<&str> = containers
        .iter()
        .flat_map(|side| side.names())
        .filter(|name| may_be_served(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &&str| of_resource(&containers, name);
    names.iter().map(of).filter(|asks| !asks.requests.is_empty()).collect()
}

/// A container, and whether it ends before the others start.
struct Side<'a> {
    container: &'a Container,
    brief: bool,
}

impl<'a> Side<'a> {
    /// The names of what it requests, sorted; the API server copies limits where a request is
    /// missing.
    fn names(&self) -> Vec<&'a str> {
        let resources = &self.container.resources;
        let mut names: Vec<&str> =
            resources.requests.keys().chain(resources.limits.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn amount(&self, resource: &str) -> i64 {
        let resources = &self.container.resources;
        let asked = resources.requests.get(resource).or_else(|| resources.limits.get(resource));
        asked.map_or(0, phalanx_objects::Quantity::value_ceil)
    }

    /// The name of its request for a resource: its place, and that of the name among all that it
    /// requests.
    fn request(&self, at: usize, resource: &str) -> String {
        let place = self.names().iter().position(|name| *name == resource).unwrap_or_default();
        format!("container-{at}-request-{place}")
    }
}

fn of_resource(containers: &[Side<'_>], resource: &str) -> Asks {
    let mut asks = Asks { resource: resource.to_owned(), ..Asks::default() };
    let mut lasting: Vec<Option<(String, i64)>> = vec![None; containers.len()];
    for (at, side) in containers.iter().enumerate().filter(|(_, side)| !side.brief) {
        let amount = side.amount(resource);
        if amount > 0 {
            let request = side.request(at, resource);
            asks.mappings.push((side.container.name.clone(), request.clone()));
            lasting[at] = Some((request, amount));
        }
    }
    let mut most: Option<(String, i64)> = None;
    let mut brief: Vec<(String, String, bool)> = Vec::new();
    for (at, side) in containers.iter().enumerate().filter(|(_, side)| side.brief) {
        let mut missing = side.amount(resource);
        for (request, amount) in lasting[at..].iter().flatten() {
            if missing <= 0 {
                break;
            }
            brief.push((side.container.name.clone(), request.clone(), false));
            missing -= amount;
        }
        if missing > 0 {
            let request = side.request(at, resource);
            brief.push((side.container.name.clone(), request.clone(), true));
            if most.as_ref().is_none_or(|(_, least)| *least < missing) {
                most = Some((request, missing));
            }
        }
    }
    // Init containers run one after the other: the greatest of their own requests serves them all.
    let own = most.as_ref().map(|(request, _)| request.clone()).unwrap_or_default();
    let shared = brief.into_iter().map(|(container, request, is_own)| {
        (container, if is_own { own.clone() } else { request })
    });
    asks.mappings.extend(shared);
    asks.requests = most.into_iter().chain(lasting.into_iter().flatten()).collect();
    asks
}

/// The same, as it is kept of pods of one make.
pub(crate) fn kept(spec: &PodSpec, names: &mut Names) -> Box<[ExtendedAsk]> {
    let mut all = Vec::new();
    for asks in asks(spec) {
        let resource = names.get(&asks.resource);
        let request = |(name, count): &(String, i64)| (names.get(name), *count);
        all.push(ExtendedAsk { resource, requests: asks.requests.iter().map(request).collect() });
    }
    all.into()
}

/// An extended resource of a pod that a class serves, and what a claim asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) resource: Name,
    pub(super) class: Name,
    pub(super) spec: SpecId,
}

impl Lowering {
    /// Enters who asks for extended resources, or takes it out.
    pub(super) fn index_asks(&mut self, shape: &PodShape, dependent: &Dependent, enter: bool) {
        for ask in &shape.extended {
            change(&mut self.index.asks, ask.resource.clone(), dependent.clone(), enter);
        }
        if !shape.extended.is_empty() {
            self.dirty.served.push(dependent.clone());
        }
    }

    /// Marks who asks for an extended resource that the class serves.
    pub(super) fn mark_served(&mut self, class: &DeviceClass) {
        if self.index.asks.is_empty() {
            return;
        }
        let implicit = format!("{IMPLICIT}{}", class.metadata.name);
        for resource in class.spec.extended_resource_name.iter().chain([&implicit]) {
            let askers = self.index.asks.get(resource.as_str()).into_iter().flatten();
            self.dirty.served.extend(askers.cloned());
        }
    }

    /// Finds the classes that serve what is asked, and keeps what claims for it would ask.
    pub(super) fn settle_served(&mut self) {
        for dependent in super::settle::distinct(&mut self.dirty.served) {
            let shape = self.asking(&dependent);
            let mut now = Vec::new();
            for ask in shape.iter().flat_map(|shape| &shape.extended) {
                let Some(class) = self.class_serving(&ask.resource) else { continue };
                let names = &mut self.interned.names;
                let made = SpecText::Made(Arc::new(claim_for(ask, &class)));
                let spec = self.specs.add(made, Ok(Box::default()), names);
                now.push(Served { resource: ask.resource.clone(), class, spec });
            }
            for served in &now {
                self.specs.take(served.spec);
                change(&mut self.index.spec_served, served.spec, dependent.clone(), true);
            }
            let before = if now.is_empty() {
                self.index.served.remove(&dependent)
            } else {
                self.index.served.insert(dependent.clone(), now.clone())
            };
            for served in before.into_iter().flatten() {
                self.specs.give(served.spec);
                if !now.iter().any(|new| new.spec == served.spec) {
                    change(&mut self.index.spec_served, served.spec, dependent.clone(), false);
                }
            }
            self.mark([dependent]);
        }
    }

    /// The make of what waits, or is to be made.
    fn asking(&self, dependent: &Dependent) -> Option<phalanx_engine::Shared<PodShape>> {
        match dependent {
            Dependent::Pod(key) => {
                let record = self.objects.pods.get(key)?;
                (record.life == Life::Pending).then(|| record.shape.clone())
            }
            Dependent::Role(key, role) => {
                let record = self.objects.workloads.get(key)?;
                Some(record.roles.get(usize::from(*role))?.shape.clone())
            }
        }
    }

    /// The class that serves an extended resource: by its own name, else the newest that names it,
    /// and of equally old ones the first by name. None while the gate is off.
    fn class_serving(&self, resource: &Name) -> Option<Name> {
        if !self.compat.is_on(Gate::DRAExtendedResource) {
            return None;
        }
        if let Some(class) = resource.strip_prefix(IMPLICIT) {
            return Some(self.objects.classes.get_key_value(class)?.0.clone());
        }
        let serves = |(_, class): &(&Name, &super::claim::Class)| {
            class.object.spec.extended_resource_name.as_deref() == Some(resource.as_str())
        };
        let serving = self.objects.classes.iter().filter(serves);
        // What is not created yet would be the newest.
        let age =
            |class: &super::claim::Class| (class.header.created.is_none(), class.header.created);
        let newest = serving.max_by_key(|(name, class)| (age(class), Reverse((*name).clone())));
        newest.map(|(name, _)| name.clone())
    }

    /// What classes serve of the extended resources of a group's role.
    pub(super) fn served_of(&self, group: &GroupKey, role: u16) -> &[Served] {
        let dependent = if group.kind.as_str() == "pod" {
            Dependent::Pod(PodKey(group.object.clone()))
        } else {
            Dependent::Role(group.clone(), role)
        };
        self.index.served.get(&dependent).map_or(&[], Vec::as_slice)
    }

    /// The extended resources of a group that a node gives devices for: of these it has nothing
    /// allocatable.
    pub(crate) fn given_by(
        &self,
        group: &GroupKey,
        role: u16,
        node: &NodeKey,
    ) -> Vec<(Name, Name)> {
        let given = self.given(group, role, node);
        given.map(|served| (served.resource.clone(), served.class.clone())).collect()
    }

    fn given<'a>(
        &'a self,
        group: &GroupKey,
        role: u16,
        node: &NodeKey,
    ) -> impl Iterator<Item = &'a Served> + use<'a> {
        let has = self.objects.nodes.get(&node.0).map(|record| &record.node.allocatable.scalars);
        let counts = move |served: &Served| {
            let mut scalars = has.into_iter().flatten();
            scalars.any(|(name, amount)| *name == served.resource && *amount > 0)
        };
        self.served_of(group, role).iter().filter(move |served| !counts(served))
    }

    /// The claim that is made for a pod's extended resources once it is placed on a node; none where
    /// the node counts all of them. Its requests stand in the engine's order.
    pub(crate) fn extended_claim(
        &self,
        group: &GroupKey,
        pod: &PodInfo,
        node: &NodeKey,
    ) -> Option<ClaimInfo> {
        let specs =
            self.given(group, pod.role, node).filter_map(|served| self.specs.get(served.spec));
        let mut requests: Vec<DeviceRequest> =
            specs.flat_map(|spec| spec.devices.requests.iter().cloned()).collect();
        if requests.is_empty() {
            return None;
        }
        requests.sort_by(|a, b| a.name.cmp(&b.name));
        // The API server would add five random letters in place of the end.
        let pod = &pod.key;
        let base: String = format!("{}-extended-resources", pod.0.name).chars().take(57).collect();
        let name = Name::new(&format!("{}-plan", base.trim_end_matches('-')));
        let key = ClaimKey(Scoped { namespace: pod.0.namespace.clone(), name });
        Some(ClaimInfo {
            group: None,
            pod_claim: Name::new(""),
            template: None,
            claim: ClaimName::Planned(key),
            spec: SpecText::Made(Arc::new(DeviceClaim { requests, ..DeviceClaim::default() })),
        })
    }

    /// The extended resource that a request of such a claim stands for, and the class that serves
    /// it.
    pub(crate) fn request_stands_for(
        &self,
        group: &GroupKey,
        role: u16,
        request: &str,
    ) -> Option<(Name, Name)> {
        let has = |served: &&Served| {
            let spec = self.specs.get(served.spec);
            spec.is_some_and(|spec| spec.devices.requests.iter().any(|r| r.name == request))
        };
        let found = self.served_of(group, role).iter().find(has)?;
        Some((found.resource.clone(), found.class.clone()))
    }
}

/// What a claim asks for one extended resource of a pod.
fn claim_for(ask: &ExtendedAsk, class: &str) -> DeviceClaim {
    let request = |(name, count): &(Name, i64)| DeviceRequest {
        name: name.to_string(),
        exactly: Some(ExactDeviceRequest {
            device_class_name: class.to_owned(),
            allocation_mode: DeviceAllocationMode::ExactCount,
            count: *count,
            ..ExactDeviceRequest::default()
        }),
        ..DeviceRequest::default()
    };
    DeviceClaim { requests: ask.requests.iter().map(request).collect(), ..DeviceClaim::default() }
}
