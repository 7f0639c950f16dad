//! LimitRanges: the defaults that containers get, and the bounds that containers and pods must keep.

use phalanx_objects::Quantity;
use phalanx_objects::admission::{LimitRangeItem, LimitType};
use phalanx_objects::core::ResourceList;

use super::pod::{Added, Bound, Outcome, Refusal, containers, containers_mut};
use crate::lower::amount;

/// Adds the defaults of a range to each container that lacks them.
pub(super) fn add_defaults(range: &str, items: &[LimitRangeItem], outcome: &mut Outcome) {
    let (mut requests, mut limits) = (ResourceList::new(), ResourceList::new());
    for item in items.iter().filter(|item| item.r#type == LimitType::Container) {
        requests.extend(item.default_request.clone());
        limits.extend(item.default.clone());
    }
    let mut added = Vec::new();
    for container in containers_mut(&mut outcome.spec) {
        let resources = &mut container.resources;
        for (what, own, defaults) in [
            ("limits", &mut resources.limits, &limits),
            ("requests", &mut resources.requests, &requests),
        ] {
            let lacks = |(name, _): &(&String, &Quantity)| !own.contains_key(*name);
            let new = defaults.iter().filter(lacks);
            let amounts: ResourceList = new.map(|(name, amount)| (name.clone(), *amount)).collect();
            if !amounts.is_empty() {
                own.extend(amounts.clone());
                let (range, container) = (range.to_owned(), container.name.clone());
                added.push(Added::Container { range, container, what, amounts });
            }
        }
    }
    outcome.added.extend(added);
}

/// Holds a pod to the bounds of a range. Overhead does not count.
pub(super) fn hold(range: &str, items: &[LimitRangeItem], outcome: &mut Outcome) {
    let mut broken = Vec::new();
    for item in items {
        match item.r#type {
            LimitType::Container => {
                for container in containers(&outcome.spec) {
                    let of = format!("container {}", container.name);
                    let resources = &container.resources;
                    bounds(range, item, &of, &resources.requests, &resources.limits, &mut broken);
                }
            }
            LimitType::Pod => {
                let bare = phalanx_objects::core::PodSpec {
                    overhead: ResourceList::new(),
                    ..outcome.spec.clone()
                };
                let (requests, limits) = (amount::requests(&bare), amount::limits(&bare));
                bounds(range, item, "the pod", &requests, &limits, &mut broken);
            }
            LimitType::Unset | LimitType::PersistentVolumeClaim | LimitType::Other(_) => {}
        }
    }
    outcome.refused.extend(broken.into_iter().map(Refusal::Bound));
}

fn bounds(
    range: &str,
    item: &LimitRangeItem,
    of: &str,
    requests: &ResourceList,
    limits: &ResourceList,
    broken: &mut Vec<Bound>,
) {
    let lists = [
        ("min", &item.min),
        ("max", &item.max),
        ("maxLimitRequestRatio", &item.max_limit_request_ratio),
    ];
    for (bound, list) in lists {
        for (resource, amount) in list {
            let (request, limit) = (requests.get(resource), limits.get(resource));
            let has = match bound {
                "min" => below(amount, request, limit),
                "max" => above(amount, request, limit),
                _ => apart(amount, request, limit),
            };
            if let Some(has) = has {
                broken.push(Bound {
                    range: range.to_owned(),
                    of: of.to_owned(),
                    bound,
                    resource: resource.clone(),
                    amount: *amount,
                    has,
                });
            }
        }
    }
}

/// What is less than the minimum, or missing.
fn below(least: &Quantity, request: Option<&Quantity>, limit: Option<&Quantity>) -> Option<String> {
    match (request, limit) {
        (None, _) => Some("no request".to_owned()),
        (Some(request), _) if request < least => Some(format!("a request of {request}")),
        (Some(_), Some(limit)) if limit < least => Some(format!("a limit of {limit}")),
        (Some(_), Some(_) | None) => None,
    }
}

/// What is more than the maximum, or missing.
fn above(most: &Quantity, request: Option<&Quantity>, limit: Option<&Quantity>) -> Option<String> {
    match (request, limit) {
        (_, None) => Some("no limit".to_owned()),
        (_, Some(limit)) if limit > most => Some(format!("a limit of {limit}")),
        (Some(request), Some(_)) if request > most => Some(format!("a request of {request}")),
        (Some(_) | None, Some(_)) => None,
    }
}

/// A limit that is too many times its request, or one of them that is missing.
fn apart(most: &Quantity, request: Option<&Quantity>, limit: Option<&Quantity>) -> Option<String> {
    let set = |quantity: Option<&Quantity>| quantity.filter(|q| !q.is_zero()).copied();
    let Some(request) = set(request) else { return Some("no request".to_owned()) };
    let Some(limit) = set(limit) else { return Some("no limit".to_owned()) };
    // Upstream divides so too.
    (limit.as_f64() / request.as_f64() > most.as_f64())
        .then(|| format!("a limit of {limit} for a request of {request}"))
}
