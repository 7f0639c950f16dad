//! Asking for less: fewer devices, less of a resource, fewer pods.

use std::collections::BTreeSet;

use phalanx_engine::Facts;
use phalanx_objects::resource::{DeviceAllocationMode, DeviceRequest};
use phalanx_objects::{Kind, ObjectRef, Quantity};

use super::Lab;
use crate::edit::{Edit, Minimum, Setting, Target};
use crate::lower::is_extended;
use crate::world::Objects;

/// Requests of a claim or a template.
pub(super) fn requests<'a>(objects: &'a Objects, claim: &ObjectRef) -> Option<&'a [DeviceRequest]> {
    objects.get(claim)?.device_claim().map(|(claim, _)| claim.requests.as_slice())
}

/// For each request of several devices, the most that can be had.
pub(super) fn counts(lab: &mut Lab<'_>) -> Vec<Edit> {
    let mut counted = Vec::new();
    let claims: BTreeSet<&ObjectRef> = lab.part.claims.iter().flatten().collect();
    for claim in claims {
        let is_counted = |mode: &DeviceAllocationMode| *mode == DeviceAllocationMode::ExactCount;
        for request in requests(lab.objects, claim).unwrap_or_default() {
            if let Some(one) = request.exactly.as_ref().filter(|e| is_counted(&e.allocation_mode)) {
                counted.push((claim, request.name.clone(), one.count));
            }
            for sub in request.first_available.iter().filter(|s| is_counted(&s.allocation_mode)) {
                counted.push((claim, format!("{}/{}", request.name, sub.name), sub.count));
            }
        }
    }
    let most = |(claim, request, count): (&ObjectRef, String, i64)| {
        largest(lab, count - 1, &[], |count| {
            let count = u32::try_from(count).ok()?;
            let what = Setting::Count { request: request.clone(), count };
            Some(Edit::Set { object: Target::from(claim), what })
        })
    };
    counted.into_iter().filter_map(most).collect()
}

/// The edit for the greatest number up to `most` that works: one more does not, or is more than
/// `most`. The guesses save trials where they are right.
fn largest(
    lab: &mut Lab<'_>,
    most: i64,
    guesses: &[i64],
    edit: impl Fn(i64) -> Option<Edit>,
) -> Option<Edit> {
    if most < 1 || !lab.works(&edit(1)?)? {
        return None;
    }
    // `best` works and `not` does not, or is what is asked now.
    let (mut best, mut not) = (1, most + 1);
    for guess in guesses {
        for near in [*guess, guess.saturating_add(1)] {
            if near <= best || near >= not {
                continue;
            }
            if lab.works(&edit(near)?)? {
                best = near;
            } else {
                not = near;
            }
        }
    }
    while not - best > 1 {
        let middle = best + (not - best) / 2;
        if lab.works(&edit(middle)?)? {
            best = middle;
        } else {
            not = middle;
        }
    }
    edit(best)
}

/// For each resource that one container requests, the most that the pods can have of it.
pub(super) fn resources(lab: &mut Lab<'_>) -> Vec<Edit> {
    let on = &lab.part.spec_of;
    let Some(spec) = crate::lower::pod_spec(lab.objects, on, lab.part.role) else {
        return Vec::new();
    };
    let of_pod = spec.resources.as_ref().into_iter();
    let of_containers =
        spec.containers.iter().chain(&spec.init_containers).map(|container| &container.resources);
    let lists: Vec<_> = of_pod.clone().chain(of_containers).collect();
    let names: BTreeSet<&String> =
        lists.iter().flat_map(|list| list.requests.keys().chain(list.limits.keys())).collect();
    let mut edits = Vec::new();
    for name in names {
        let asked = |list: &phalanx_objects::core::ResourceRequirements| {
            list.requests.get(name).or_else(|| list.limits.get(name)).copied()
        };
        let of_pod = of_pod.clone().find_map(asked);
        let mut of_containers = lists.iter().filter_map(|list| asked(list));
        let one = match (of_pod, of_containers.next(), of_containers.next()) {
            (Some(pod), ..) => pod,
            (None, Some(one), None) => one,
            (None, Some(_) | None, Some(_)) | (None, None, None) => continue,
        };
        if is_extended(name) && one.milli_ceil() % 1000 != 0 {
            edits.extend(whole(lab, name, one));
        } else {
            edits.extend(most_of(lab, name, one));
        }
    }
    edits
}

/// Of what is counted in whole units, the next whole one.
fn whole(lab: &mut Lab<'_>, resource: &str, asked: Quantity) -> Option<Edit> {
    let quantity = asked.value_ceil().to_string();
    let what = Setting::Resource { resource: resource.to_owned(), quantity };
    let edit = Edit::Set { object: Target::from(&lab.part.spec_of), what };
    (lab.works(&edit) == Some(true)).then_some(edit)
}

/// The most of a resource, in thousandths of `cpu` and in units of anything else.
fn most_of(lab: &mut Lab<'_>, resource: &str, asked: Quantity) -> Option<Edit> {
    let is_cpu = resource == "cpu";
    let units = if is_cpu { asked.milli_ceil() } else { asked.value_ceil() };
    let object = Target::from(&lab.part.spec_of);
    // Short by so much on a node: right where one pod is to be placed there.
    let short = |node: &phalanx_engine::NodeReport| {
        let amounts = node.checks.iter().filter_map(|(_, _, example)| match &example.facts {
            Facts::Amount { resource: of, asked, free, .. } if of.as_str() == resource => {
                Some(asked.saturating_sub(*free))
            }
            Facts::Amount { .. }
            | Facts::None
            | Facts::Subject { .. }
            | Facts::Label { .. }
            | Facts::Taint(_)
            | Facts::Claim { .. }
            | Facts::Binding { .. }
            | Facts::Port { .. }
            | Facts::Spread { .. }
            | Facts::Pods { .. }
            | Facts::Group(_)
            | Facts::Devices(_)
            | Facts::Volume(_) => None,
        });
        amounts.max().filter(|_| node.checks.len() == 1)
    };
    let least = lab.report.nodes.iter().filter_map(short).min();
    let guess = least.map(|short| units.saturating_sub(short));
    largest(lab, units.saturating_sub(1), guess.as_slice(), |value| {
        let value = if is_cpu { Quantity::from_milli(value) } else { Quantity::from_int(value) };
        let quantity = value.with_format(asked.format()).to_string();
        let what = Setting::Resource { resource: resource.to_owned(), quantity };
        Some(Edit::Set { object: object.clone(), what })
    })
}

/// Most minima of a gang, of its own and of its parts, that are tried.
const MINIMA_MAX: usize = 32;

/// For each minimum of a gang, of pods and of groups, the most with which it starts, or more of it is placed.
pub(super) fn minima(lab: &mut Lab<'_>) -> Vec<Edit> {
    if !lab.subject.gang {
        return Vec::new();
    }
    let mut all = Vec::new();
    for object in &lab.subject.declared {
        let own = lab.objects.get(object).map(crate::edit::minima).unwrap_or_default();
        all.extend(own.into_iter().map(|minimum| (object.clone(), minimum)));
    }
    lab.cut |= all.len() > MINIMA_MAX;
    all.truncate(MINIMA_MAX);
    let fit = super::group_facts(&lab.report.verdict).map(|facts| i64::from(facts.fit));
    let mut edits = Vec::new();
    for (object, now) in all {
        // How many fit is about the pods of all of it.
        let fit = fit.filter(|_| !now.groups && now.of.is_none());
        edits.extend(largest(lab, i64::from(now.count) - 1, fit.as_slice(), |count| {
            let what =
                Setting::Minimum(Minimum { count: u32::try_from(count).ok()?, ..now.clone() });
            Some(Edit::Set { object: Target::from(&object), what })
        }));
    }
    edits
}

/// The most pods of a workload that are placed, with those that it has.
pub(super) fn replicas(lab: &mut Lab<'_>) -> Option<Edit> {
    let object = lab.part.spec_of.clone();
    let found = lab.objects.get(&object)?;
    let wanted = crate::edit::replicas(found)?;
    let exist = lab.objects.in_namespace(Kind::Pod, &object.namespace);
    let exist = exist.filter(|pod| crate::edit::is_of(pod, &object));
    let placed = i64::from(lab.subject.placed);
    let guesses = [placed, placed.saturating_add(i64::try_from(exist.count()).unwrap_or(0))];
    // Kueue places whole slices: other numbers are no cure there.
    let step = i64::from(lab.world.lowering().slice_size(&lab.subject.group).unwrap_or(1).max(1));
    let most = (i64::from(wanted) - 1).div_euclid(step);
    largest(lab, most, &guesses.map(|guess| guess.div_euclid(step)), |count| {
        let what = Setting::Replicas(u32::try_from(count.checked_mul(step)?).ok()?);
        Some(Edit::Set { object: Target::from(&object), what })
    })
}
