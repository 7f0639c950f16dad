//! Every field of a written claim against what an API server of 1.37 accepts and what
//! kube-scheduler's allocator writes.
//!
//! The rules are written from upstream's validation (`pkg/apis/resource/validation`) and from the
//! claim's and the slices' objects; nothing here asks how the writes were made.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cluster::plan::{PlanOptions, plan};
use phalanx_cluster::raise::{Effect, FINALIZER, Write, manifests, raise};
use phalanx_cluster::world::World;
use phalanx_engine::Timestamp;
use phalanx_objects::core::NodeSelectorRequirement;
use phalanx_objects::resource::{
    AllocationConfigSource, AllocationResult, CapacityRequirements, Device, DeviceCapacity,
    DeviceRequest, DeviceRequestAllocationResult as Granted, ResourceClaim, ResourceSlice,
};
use phalanx_objects::{Kind, Object, ObjectRef, Quantity};
use serde_json::{Value, json};

/// What is wrong with the writes of a world, and how much was looked at.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) wrong: Vec<String>,
    pub(crate) seen: BTreeMap<&'static str, usize>,
}

impl Checked {
    fn hold(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(what());
        }
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }
}

/// Plans the world and holds its writes to the rules.
pub(crate) fn check(world: &mut World, into: &mut Checked) {
    let now = Some(Timestamp(1_790_000_000_000));
    let plan = plan(world, &PlanOptions { now, ..PlanOptions::default() });
    let effects = raise(world, &plan);
    let mut shares = BTreeSet::new();
    for (at, effect) in effects.iter().enumerate() {
        let earlier = effects.get(..at).unwrap_or_default();
        match &effect.write {
            Write::CreateClaim(claim) => {
                into.hold(claim.status == <_>::default(), || format!("{claim:?} has a status"));
            }
            Write::Finalize(claim) => {
                let has = claim.metadata.finalizers.iter().any(|f| f == FINALIZER);
                into.hold(has, || "an update without the finalizer".to_owned());
            }
            Write::Unprotect(claim) => {
                let has = claim.metadata.finalizers.iter().any(|f| f == FINALIZER);
                into.hold(!has, || "an update that leaves the finalizer".to_owned());
            }
            Write::DeleteClaim(claim) => {
                let kept = !claim.metadata.finalizers.is_empty();
                into.hold(!kept, || format!("{} is deleted and protected", claim.metadata.name));
            }
            Write::ClaimStatus(claim) => {
                status(world, claim, before(world, earlier, claim), into);
                for result in claim.status.allocation.iter().flat_map(|a| &a.devices.results) {
                    if let Some(id) = &result.share_id {
                        let of = (&claim.metadata.namespace, &claim.metadata.name);
                        let device = [&result.driver, &result.pool, &result.device];
                        shares.insert((id.clone(), format!("{of:?} {device:?}")));
                    }
                }
            }
            Write::PodStatus(pod) => {
                let made = &pod.status.resource_claim_name;
                let earlier = earlier.iter().any(|effect| match &effect.write {
                    Write::CreateClaim(claim) => claim.metadata.name == *made,
                    Write::Finalize(_)
                    | Write::Unprotect(_)
                    | Write::DeleteClaim(_)
                    | Write::ClaimStatus(_)
                    | Write::PodStatus(_)
                    | Write::KeepVolume(_)
                    | Write::SelectNode(_)
                    | Write::Bind(_) => false,
                });
                into.hold(earlier, || format!("{} names {made}, which is not made", pod.pod));
            }
            Write::KeepVolume(write) => {
                into.hold(!write.claim.name.is_empty(), || format!("{write:?} names no claim"));
            }
            Write::SelectNode(write) => {
                into.hold(!write.node.is_empty(), || format!("{write:?} names no node"));
            }
            Write::Bind(bind) => {
                let earlier = |id| effects.iter().position(|e| e.id == id).is_some_and(|p| p < at);
                into.hold(effect.after.iter().all(|id| earlier(*id)), || {
                    format!("{} is bound before its claims are written", bind.pod)
                });
            }
        }
    }
    let ids: BTreeSet<&String> = shares.iter().map(|(id, _)| id).collect();
    into.hold(ids.len() == shares.len(), || format!("shares with one ID: {shares:?}"));
    documents(&effects, into);
}

/// The claim as the writes so far and the world leave it.
fn before(world: &World, earlier: &[Effect], claim: &ResourceClaim) -> Option<ResourceClaim> {
    let same = |other: &ResourceClaim| {
        other.metadata.name == claim.metadata.name
            && other.metadata.namespace == claim.metadata.namespace
    };
    let written = earlier.iter().rev().find_map(|effect| match &effect.write {
        Write::CreateClaim(c)
        | Write::Finalize(c)
        | Write::Unprotect(c)
        | Write::ClaimStatus(c) => same(c).then(|| (**c).clone()),
        Write::DeleteClaim(_)
        | Write::PodStatus(_)
        | Write::KeepVolume(_)
        | Write::SelectNode(_)
        | Write::Bind(_) => None,
    });
    let (kind, metadata) = (Kind::ResourceClaim, &claim.metadata);
    let (namespace, name) = (metadata.namespace.clone(), metadata.name.clone());
    let known = world.objects()?.get(&ObjectRef { kind, namespace, name });
    written.or_else(|| match known {
        Some(Object::ResourceClaim(claim)) => Some((**claim).clone()),
        Some(_) | None => None,
    })
}

/// One update of a status.
fn status(world: &World, claim: &ResourceClaim, before: Option<ResourceClaim>, into: &mut Checked) {
    let name = &claim.metadata.name;
    let Some(before) = before else {
        into.wrong.push(format!("the status of {name} is written before the claim is there"));
        return;
    };
    into.hold(claim.spec == before.spec, || format!("the spec of {name} is changed"));
    let (old, new) = (&before.status.allocation, &claim.status.allocation);
    let change = old.is_none() || new.is_none() || old == new;
    into.hold(change, || format!("the allocation of {name} is replaced"));
    let users = &claim.status.reserved_for;
    into.hold(users.is_empty() || new.is_some(), || format!("{name} is reserved, not allocated"));
    into.hold(users.len() <= 256, || format!("{name} has {} users", users.len()));
    let uids: BTreeSet<&String> = users.iter().map(|user| &user.uid).collect();
    into.hold(uids.len() == users.len(), || format!("{name} has a user twice"));
    for user in users {
        let whole = !user.resource.is_empty() && !user.name.is_empty() && !user.uid.is_empty();
        into.hold(whole, || format!("{name} has the user {user:?}"));
    }
    if old.is_none()
        && let Some(allocation) = new
    {
        into.saw("allocations");
        into.hold(!users.is_empty(), || format!("{name} is allocated for nobody"));
        let finalized = before.metadata.finalizers.iter().any(|f| f == FINALIZER);
        into.hold(finalized, || format!("{name} is allocated without its finalizer"));
        allocated(world, claim, allocation, into);
    }
}

/// A new allocation.
fn allocated(
    world: &World,
    claim: &ResourceClaim,
    allocation: &AllocationResult,
    into: &mut Checked,
) {
    let results = &allocation.devices.results;
    into.hold(results.len() <= 32, || format!("{} results", results.len()));
    let requests = &claim.spec.devices.requests;
    for result in results {
        let Some(asked) = Asked::find(requests, &result.request) else {
            into.wrong.push(format!("request {} does not exist", result.request));
            continue;
        };
        let Some((_, device)) = published(world, result, allocation) else {
            into.wrong.push(format!("{result:?} is of no published device"));
            continue;
        };
        copied(result, &asked, device, into);
    }
    let place = |result: &Granted| {
        requests.iter().position(|request| request.name == main(&result.request))
    };
    into.hold(results.is_sorted_by_key(place), || format!("the order of {results:?}"));
    // `bindClaim` records the time whether or not a device has conditions.
    let awaits = world.lowering().compat().awaits_conditions();
    let stamped = allocation.allocation_timestamp.is_some();
    into.hold(awaits == stamped, || format!("{awaits} {:?}", allocation.allocation_timestamp));
    configured(world, claim, allocation, into);
    reachable(world, allocation, into);
}

/// What results copy, from the request and from the device.
fn copied(result: &Granted, asked: &Asked<'_>, device: &Device, into: &mut Checked) {
    into.hold(result.tolerations == asked.tolerations, || format!("tolerations: {result:?}"));
    let conditions = result.binding_conditions == device.binding_conditions
        && result.binding_failure_conditions == device.binding_failure_conditions;
    into.hold(conditions, || format!("binding conditions: {result:?}"));
    into.hold(result.admin_access == asked.admin.then_some(true), || format!("{result:?}"));
    let shared = device.allow_multiple_allocations == Some(true);
    into.hold(result.share_id.is_some() == shared, || format!("a share: {result:?}"));
    if let Some(id) = &result.share_id {
        into.saw("shares");
        into.hold(is_uuid4(id), || format!("{id} is no UUID of version 4"));
    }
    let named: Vec<&String> = result.consumed_capacity.keys().collect();
    let all: Vec<&String> = if shared { device.capacity.keys().collect() } else { Vec::new() };
    into.hold(named == all, || format!("consumed capacity: {result:?}"));
    for (name, taken) in &result.consumed_capacity {
        let Some(capacity) = device.capacity.get(name) else { continue };
        let due = drawn(capacity, asked.capacity.and_then(|asks| asks.requests.get(name)));
        let lawful = *taken == due && due <= capacity.value;
        into.hold(lawful, || format!("{name} of {result:?}, of which {due} is due"));
    }
    for (what, is) in [
        ("admin access", result.admin_access.is_some()),
        ("binding conditions", !result.binding_conditions.is_empty()),
        ("tolerations", !result.tolerations.is_empty()),
        ("alternatives", result.request.contains('/')),
    ] {
        if is {
            into.saw(what);
        }
    }
}

/// What a share takes of a capacity (KEP-5075): what is asked, rounded up to what the policy allows,
/// or the policy's default, or all of it. Steps are counted in whole units.
fn drawn(capacity: &DeviceCapacity, asked: Option<&Quantity>) -> Quantity {
    let policy = capacity.request_policy.as_ref();
    let Some(asked) = asked else {
        return policy.and_then(|policy| policy.default).unwrap_or(capacity.value);
    };
    let Some(policy) = policy else { return *asked };
    if let Some(range) = &policy.valid_range {
        let Some(min) = range.min else { return *asked };
        let mut due = min;
        let Some(step) = range.step.filter(|step| step.sign() > 0) else {
            return if *asked < min { min } else { *asked };
        };
        while due < *asked {
            due = due.checked_add(&step).expect("a small sum");
        }
        return due;
    }
    policy.valid_values.iter().find(|value| *value >= asked).copied().unwrap_or(*asked)
}

/// `8-4-4-4-12` lower-case hexadecimal digits, of version 4 and the variant of RFC 4122.
fn is_uuid4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &&str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(hex)
        && parts[2].starts_with('4')
        && parts[3].starts_with(['8', '9', 'a', 'b'])
}

/// Configuration: that of classes in the order of requests, then the claim's own.
fn configured(
    world: &World,
    claim: &ResourceClaim,
    allocation: &AllocationResult,
    into: &mut Checked,
) {
    let (asks, config) = (&claim.spec.devices, &allocation.devices.config);
    into.hold(config.len() <= 64, || format!("{} configurations", config.len()));
    let chosen: Vec<Asked<'_>> =
        asks.requests.iter().map(|request| Asked::chosen(request, allocation)).collect();
    let mut expected = Vec::new();
    let mut classes: Vec<&str> = Vec::new();
    for asked in &chosen {
        if classes.contains(&asked.class) {
            continue;
        }
        classes.push(asked.class);
        let users = chosen.iter().filter(|other| other.class == asked.class);
        let users: Vec<String> = users.map(|other| other.name.clone()).collect();
        for own in class_config(world, asked.class) {
            expected.push((AllocationConfigSource::FromClass, users.clone(), own));
        }
    }
    for own in &asks.config {
        let concerns = chosen.iter().any(|asked| asked.is_named(&own.requests));
        if own.requests.is_empty() || concerns {
            let opaque = json!(own.opaque);
            expected.push((AllocationConfigSource::FromClaim, own.requests.clone(), opaque));
        }
    }
    for (_, requests, _) in &mut expected {
        if chosen.iter().all(|asked| asked.is_named(requests)) {
            requests.clear();
        }
    }
    let found: Vec<_> =
        config.iter().map(|c| (c.source.clone(), c.requests.clone(), json!(c.opaque))).collect();
    into.hold(found == expected, || format!("{found:?} where {expected:?} is due"));
    if !config.is_empty() {
        into.saw("configurations");
    }
}

fn class_config(world: &World, class: &str) -> Vec<Value> {
    let (kind, namespace, name) = (Kind::DeviceClass, String::new(), class.to_owned());
    match world.objects().and_then(|objects| objects.get(&ObjectRef { kind, namespace, name })) {
        Some(Object::DeviceClass(class)) => {
            class.spec.config.iter().map(|config| json!(config.opaque)).collect()
        }
        Some(_) | None => Vec::new(),
    }
}

/// The nodes of an allocation.
fn reachable(world: &World, allocation: &AllocationResult, into: &mut Checked) {
    let mut local = false;
    let (mut fields, mut expressions) = (Vec::new(), Vec::new());
    for result in &allocation.devices.results {
        let Some((slice, device)) = published(world, result, allocation) else { continue };
        let (node, selector) = match slice.spec.per_device_node_selection {
            Some(true) => (&device.node_name, &device.node_selector),
            Some(false) | None => (&slice.spec.node_name, &slice.spec.node_selector),
        };
        local |= node.is_some() || device.binds_to_node == Some(true);
        for term in selector.iter().flat_map(|selector| &selector.node_selector_terms) {
            add_new(&mut fields, &term.match_fields);
            add_new(&mut expressions, &term.match_expressions);
        }
    }
    let Some(selector) = &allocation.node_selector else {
        let free = !local && fields.is_empty() && expressions.is_empty();
        into.hold(free, || format!("no node selector: {allocation:?}"));
        into.saw("no node selector");
        return;
    };
    let [term] = selector.node_selector_terms.as_slice() else {
        into.wrong.push(format!("{} terms", selector.node_selector_terms.len()));
        return;
    };
    if local {
        let [field] = term.match_fields.as_slice() else {
            into.wrong.push(format!("{term:?} is not of one node"));
            return;
        };
        let one = field.key == "metadata.name"
            && field.operator.as_str() == "In"
            && field.values.len() == 1
            && term.match_expressions.is_empty();
        into.hold(one, || format!("{term:?} is not of one node"));
        into.saw("node-local selectors");
    } else {
        let union = term.match_fields == fields && term.match_expressions == expressions;
        into.hold(union, || format!("{term:?} is not the union of {fields:?} {expressions:?}"));
        into.saw("network selectors");
    }
}

fn add_new(to: &mut Vec<NodeSelectorRequirement>, from: &[NodeSelectorRequirement]) {
    for requirement in from {
        if !to.contains(requirement) {
            to.push(requirement.clone());
        }
    }
}

/// The documents: each claim before the Bindings that need it.
fn documents(effects: &[Effect], into: &mut Checked) {
    for document in manifests(effects) {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
        let (api, kind) = (text("/apiVersion"), text("/kind"));
        let known = matches!(
            (api, kind),
            (Some("resource.k8s.io/v1"), Some("ResourceClaim")) | (Some("v1"), Some("Binding"))
        );
        into.hold(known, || format!("{api:?} {kind:?}"));
        into.hold(text("/metadata/name").is_some(), || format!("{document} has no name"));
    }
}

/// A request, or the alternative of it that is meant.
struct Asked<'a> {
    name: String,
    class: &'a str,
    admin: bool,
    capacity: Option<&'a CapacityRequirements>,
    tolerations: &'a [phalanx_objects::resource::DeviceToleration],
}

impl<'a> Asked<'a> {
    fn find(requests: &'a [DeviceRequest], name: &str) -> Option<Self> {
        let request = requests.iter().find(|request| request.name == main(name))?;
        match (&request.exactly, name.split_once('/')) {
            (Some(exactly), None) => Some(Self {
                name: name.to_owned(),
                class: &exactly.device_class_name,
                admin: exactly.admin_access == Some(true),
                capacity: exactly.capacity.as_ref(),
                tolerations: &exactly.tolerations,
            }),
            (None, Some((_, sub))) => {
                let sub = request.first_available.iter().find(|s| s.name == sub)?;
                Some(Self {
                    name: name.to_owned(),
                    class: &sub.device_class_name,
                    admin: false,
                    capacity: sub.capacity.as_ref(),
                    tolerations: &sub.tolerations,
                })
            }
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// What was chosen of a request.
    fn chosen(request: &'a DeviceRequest, allocation: &AllocationResult) -> Self {
        let requests = std::slice::from_ref(request);
        let mut results = allocation.devices.results.iter().map(|result| &result.request);
        let name = results.find(|name| main(name) == request.name);
        name.and_then(|name| Self::find(requests, name)).unwrap_or(Self {
            name: request.name.clone(),
            class: "",
            admin: false,
            capacity: None,
            tolerations: &[],
        })
    }

    fn is_named(&self, requests: &[String]) -> bool {
        requests.iter().any(|name| *name == self.name || name == main(&self.name))
    }
}

fn main(name: &str) -> &str {
    name.split_once('/').map_or(name, |(main, _)| main)
}

/// The device of a result and its slice, of those that the allocation's node can see.
fn published<'w>(
    world: &'w World,
    result: &Granted,
    allocation: &AllocationResult,
) -> Option<(&'w ResourceSlice, &'w Device)> {
    let node = allocation.node_selector.iter().flat_map(|selector| &selector.node_selector_terms);
    let node = node.flat_map(|term| &term.match_fields).flat_map(|field| &field.values).next();
    let here = |name: &Option<String>| name.as_ref().is_none_or(|name| Some(name) == node);
    let slices = world.objects()?.of_kind(Kind::ResourceSlice).filter_map(|object| {
        if let Object::ResourceSlice(slice) = object { Some(&**slice) } else { None }
    });
    slices
        .filter(|slice| slice.spec.driver == result.driver && slice.spec.pool.name == result.pool)
        .filter(|slice| here(&slice.spec.node_name))
        .filter_map(|slice| {
            let mut devices = slice.spec.devices.iter().filter(|device| here(&device.node_name));
            Some((slice, devices.find(|device| device.name == result.device)?))
        })
        .max_by_key(|(slice, _)| slice.spec.pool.generation)
}
