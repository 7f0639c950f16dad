//! An allocation against the claim that asks, the slices, and the claims that hold devices.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::core::{Node, NodeSelectorOperator, NodeSelectorRequirement};
use phalanx_objects::resource::{
    AllocationResult, Device, DeviceAllocationMode, DeviceAttribute, DeviceConstraint,
    DeviceRequest, DeviceRequestAllocationResult, ResourceClaim, ResourceSlice,
};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::{DeviceName, name, repels, shown, sums, tolerates};
use crate::raise::Bind;
use crate::world::Objects;

/// What is wrong with a new allocation.
pub(super) fn allocation(
    claim: &ResourceClaim,
    allocation: &AllocationResult,
    claims: &BTreeMap<ObjectRef, ResourceClaim>,
    objects: &Objects,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let results = &allocation.devices.results;
    if results.len() > 32 {
        wrong.push(format!("{} devices are more than an allocation can hold", results.len()));
    }
    let published = Published::new(objects, only_node(allocation));
    let mut own = BTreeSet::new();
    for result in results {
        let key = name(result);
        let Some((slice, device)) = published.find(&key) else {
            wrong.push(format!("device {} is published by no slice", shown(&key)));
            continue;
        };
        if result.admin_access != Some(true) {
            let shared = device.allow_multiple_allocations == Some(true);
            if !shared && !own.insert(key.clone()) {
                wrong.push(format!("device {} is given to it twice", shown(&key)));
            }
            wrong.extend(held(&key, result, claims));
        }
        wrong.extend(taints(result, slice, device, objects));
    }
    wrong.extend(sums::breaches(allocation, claims.values(), objects));
    wrong.extend(requests(&claim.spec.devices.requests, results));
    let derives = |constraint: &&DeviceConstraint| {
        claim.spec.devices.requests.iter().any(|request| derives(request, constraint))
    };
    // What CEL derives is left to the CEL crate's own tests.
    for constraint in claim.spec.devices.constraints.iter().filter(|c| !derives(c)) {
        wrong.extend(broken(constraint, results, &published));
    }
    wrong
}

/// The one node from which an allocation can be used, where it is one.
fn only_node(allocation: &AllocationResult) -> Option<&str> {
    let [term] = allocation.node_selector.as_ref()?.node_selector_terms.as_slice() else {
        return None;
    };
    let named = term.match_fields.iter().find(|field| field.key == "metadata.name")?;
    named.values.first().map(String::as_str)
}

/// Slices by pool, the newest first, but for those of other nodes than the one that is meant.
struct Published<'a>(BTreeMap<(&'a str, &'a str), Vec<&'a ResourceSlice>>);

impl<'a> Published<'a> {
    fn new(objects: &'a Objects, node: Option<&str>) -> Self {
        let mut pools: BTreeMap<(&str, &str), Vec<&ResourceSlice>> = BTreeMap::new();
        for object in objects.of_kind(Kind::ResourceSlice) {
            let Object::ResourceSlice(slice) = object else { continue };
            let other = |of: &String| node.is_some_and(|node| node != of && !of.is_empty());
            if !slice.spec.node_name.as_ref().is_some_and(other) {
                let pool = (slice.spec.driver.as_str(), slice.spec.pool.name.as_str());
                pools.entry(pool).or_default().push(slice);
            }
        }
        for slices in pools.values_mut() {
            slices.sort_by_key(|slice| std::cmp::Reverse(slice.spec.pool.generation));
        }
        Self(pools)
    }

    fn find(&self, (driver, pool, device): &DeviceName) -> Option<(&'a ResourceSlice, &'a Device)> {
        let slices = self.0.get(&(driver.as_str(), pool.as_str()))?;
        slices.iter().find_map(|slice| {
            let found = slice.spec.devices.iter().find(|d| d.name == *device)?;
            Some((*slice, found))
        })
    }
}

/// Whether another claim holds the device: whole, or a share of what is given whole here.
fn held(
    key: &DeviceName,
    result: &DeviceRequestAllocationResult,
    claims: &BTreeMap<ObjectRef, ResourceClaim>,
) -> Option<String> {
    let holder = claims.iter().find(|(_, other)| {
        let results = other.status.allocation.iter().flat_map(|a| &a.devices.results);
        results.filter(|r| r.admin_access != Some(true)).any(|r| {
            let both_shares = r.share_id.is_some() && result.share_id.is_some();
            name(r) == *key && !both_shares
        })
    });
    holder.map(|(of, _)| format!("device {} is held by {of}", shown(key)))
}

fn taints(
    result: &DeviceRequestAllocationResult,
    slice: &ResourceSlice,
    device: &Device,
    objects: &Objects,
) -> Vec<String> {
    let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|w| w == name);
    let by_rule = objects.of_kind(Kind::DeviceTaintRule).filter_map(|object| {
        let Object::DeviceTaintRule(rule) = object else { return None };
        let selector = rule.spec.device_selector.as_ref()?;
        let selected = is(&selector.driver, &slice.spec.driver)
            && is(&selector.pool, &slice.spec.pool.name)
            && is(&selector.device, &device.name);
        selected.then_some(&rule.spec.taint)
    });
    device
        .taints
        .iter()
        .chain(by_rule)
        .filter(|taint| repels(&taint.effect))
        .filter(|taint| {
            let by = |t| tolerates(t, &taint.key, &taint.value, &taint.effect);
            !result.tolerations.iter().any(by)
        })
        .map(|taint| {
            format!("the taint {} of {} is not tolerated", taint.key, shown(&name(result)))
        })
        .collect()
}

/// Whether each request got what it counts, from one alternative.
fn requests(asked: &[DeviceRequest], results: &[DeviceRequestAllocationResult]) -> Vec<String> {
    let mut wrong = Vec::new();
    for request in asked {
        let main = |r: &&DeviceRequestAllocationResult| main_of(&r.request) == request.name;
        let of: Vec<&DeviceRequestAllocationResult> = results.iter().filter(main).collect();
        let wanted = match &request.exactly {
            Some(exactly) => Some((&exactly.allocation_mode, exactly.device_count())),
            None => {
                let chosen = of.first().and_then(|result| {
                    let sub = result.request.split_once('/')?.1;
                    request.first_available.iter().find(|s| s.name == sub)
                });
                chosen.map(|sub| (&sub.allocation_mode, sub.device_count()))
            }
        };
        let one = of.windows(2).all(|pair| pair[0].request == pair[1].request);
        let met = match wanted {
            Some((DeviceAllocationMode::ExactCount, count)) => i64::try_from(of.len()) == Ok(count),
            Some((DeviceAllocationMode::All, _)) => !of.is_empty(),
            Some((DeviceAllocationMode::Other(_), _)) | None => false,
        };
        if !met || !one {
            wrong.push(format!("request {} is not met by {} devices", request.name, of.len()));
        }
    }
    wrong
}

fn main_of(request: &str) -> &str {
    request.split_once('/').map_or(request, |(main, _)| main)
}

/// Whether a request derives the attribute that a constraint compares.
fn derives(request: &DeviceRequest, constraint: &DeviceConstraint) -> bool {
    let compared = [&constraint.match_attribute, &constraint.distinct_attribute];
    let exactly = request.exactly.iter().flat_map(|exactly| &exactly.derived_attributes);
    let subs = request.first_available.iter().flat_map(|sub| &sub.derived_attributes);
    let mut derived = exactly.chain(subs);
    derived.any(|one| compared.into_iter().flatten().any(|name| *name == one.name))
}

/// Whether a constraint is broken by the devices given.
fn broken(
    constraint: &DeviceConstraint,
    results: &[DeviceRequestAllocationResult],
    published: &Published<'_>,
) -> Option<String> {
    let covered = |result: &&DeviceRequestAllocationResult| {
        let names = &constraint.requests;
        let by = |name: &String| *name == result.request || name == main_of(&result.request);
        names.is_empty() || names.iter().any(by)
    };
    let (attribute, distinct) = match (&constraint.match_attribute, &constraint.distinct_attribute)
    {
        (Some(attribute), _) => (attribute, false),
        (None, Some(attribute)) => (attribute, true),
        (None, None) => return None,
    };
    let values: Vec<Option<DeviceAttribute>> = results
        .iter()
        .filter(covered)
        .map(|result| {
            let (slice, device) = published.find(&name(result))?;
            value(attribute, &slice.spec.driver, device)
        })
        .collect();
    let scalars: Vec<&DeviceAttribute> =
        values.iter().flatten().filter(|value| is_scalar(value)).collect();
    if values.iter().any(Option::is_none) {
        return Some(format!("a device has no attribute {attribute}, which a constraint reads"));
    }
    if scalars.len() < values.len() {
        // Lists and empty values follow rules of their own, which the engine's tests hold.
        return None;
    }
    let bad = scalars
        .iter()
        .enumerate()
        .any(|(index, a)| scalars[index + 1..].iter().any(|b| (a == b) == distinct));
    bad.then(|| format!("the constraint on {attribute} is broken"))
}

fn is_scalar(value: &DeviceAttribute) -> bool {
    matches!(
        value,
        DeviceAttribute::Int(_)
            | DeviceAttribute::Bool(_)
            | DeviceAttribute::String(_)
            | DeviceAttribute::Version(_)
    )
}

/// By the full name, else without the domain where that is the driver's.
fn value(attribute: &str, driver: &str, device: &Device) -> Option<DeviceAttribute> {
    let short = attribute.strip_prefix(driver).and_then(|rest| rest.strip_prefix('/'));
    let found = device.attributes.get(attribute);
    found.or_else(|| device.attributes.get(short?)).cloned()
}

/// How many claims a pod needs: each that it names once, and one for each template but those that
/// its status says need none.
pub(super) fn asked_by(objects: &Objects, bind: &Bind) -> usize {
    let Some(spec) = crate::lower::pod_spec(objects, &bind.spec_of, bind.role) else { return 0 };
    let named: BTreeSet<&str> =
        spec.resource_claims.iter().filter_map(|c| c.resource_claim_name.as_deref()).collect();
    let made = spec.resource_claims.iter().filter(|c| c.resource_claim_template_name.is_some());
    let none_needed = match objects.get(&bind.spec_of) {
        Some(Object::Pod(pod)) => {
            let statuses = &pod.status.resource_claim_statuses;
            statuses.iter().filter(|status| status.resource_claim_name.is_none()).count()
        }
        Some(_) | None => 0,
    };
    (named.len() + made.count()).saturating_sub(none_needed)
}

/// Why a node can't use an allocated claim.
pub(super) fn out_of_reach(claim: &ResourceClaim, node: &Node) -> Option<String> {
    let selector = claim.status.allocation.as_ref()?.node_selector.as_ref()?;
    let admits = selector.node_selector_terms.iter().any(|term| {
        let labels = |key: &str| node.metadata.labels.get(key).map(String::as_str);
        let name = |_: &str| Some(node.metadata.name.as_str());
        term.match_expressions.iter().all(|r| holds(r, labels))
            && term.match_fields.iter().all(|r| holds(r, name))
    });
    let name = &claim.metadata.name;
    (!admits).then(|| format!("claim {name} can't be used from {}", node.metadata.name))
}

fn holds<'a>(
    requirement: &NodeSelectorRequirement,
    value: impl Fn(&str) -> Option<&'a str>,
) -> bool {
    let value = value(&requirement.key);
    let listed = value.is_some_and(|value| requirement.values.iter().any(|v| v == value));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let bound = number(requirement.values.first().map(String::as_str));
    match &requirement.operator {
        NodeSelectorOperator::In => listed,
        NodeSelectorOperator::NotIn => !listed,
        NodeSelectorOperator::Exists => value.is_some(),
        NodeSelectorOperator::DoesNotExist => value.is_none(),
        NodeSelectorOperator::Gt => number(value).zip(bound).is_some_and(|(v, b)| v > b),
        NodeSelectorOperator::Lt => number(value).zip(bound).is_some_and(|(v, b)| v < b),
        NodeSelectorOperator::Unset | NodeSelectorOperator::Other(_) => false,
    }
}
