//! The resources of a container (`validateContainerResourceName`, `ValidateContainerResourceRequirements`).

use phalanx_objects::Quantity;
use phalanx_objects::core::Container;

use super::Found;
use crate::lower::is_extended;
use crate::lower::rules::is_qualified_name;

/// What a container may ask for besides extended resources and huge pages.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

const HUGE_PAGES: &str = "hugepages-";

/// Checks the resources of a container; `at` is the path of the container.
pub(super) fn check(container: &Container, at: &str, found: &mut Found) {
    let resources = &container.resources;
    let name = &container.name;
    let lists = [("limits", &resources.limits), ("requests", &resources.requests)];
    let mut named: Vec<&str> = Vec::new();
    for (list, amounts) in lists {
        for resource in amounts.keys() {
            // Requests that are not given are the limits.
            if named.contains(&resource.as_str()) {
                continue;
            }
            if let Some(why) = bad_name(resource) {
                named.push(resource);
                let field = format!("{at}.resources.{list}[{resource:?}]");
                found
                    .add(field, format!("container {name} asks in `{list}` for {resource}, {why}"));
            }
        }
    }
    amounts(container, at, found);
    for (resource, request) in &resources.requests {
        let whole = is_extended(resource) || resource.starts_with(HUGE_PAGES);
        if !whole || named.contains(&resource.as_str()) {
            continue;
        }
        let why = match resources.limits.get(resource) {
            Some(limit) if limit == request => continue,
            Some(limit) => format!(
                "container {name} requests {request} of {resource} and is limited to {limit}; of \
                 {resource} `requests` and `limits` must be equal"
            ),
            None => format!(
                "container {name} requests {request} of {resource} without a limit; give as much \
                 of it in `limits`"
            ),
        };
        found.add(format!("{at}.resources.requests[{resource:?}]"), why);
    }
    let all = || resources.limits.keys().chain(resources.requests.keys());
    let huge = all().any(|resource| resource.starts_with(HUGE_PAGES));
    if huge && !all().any(|resource| resource == "cpu" || resource == "memory") {
        let why = format!("container {name} asks for huge pages, and for neither cpu nor memory");
        found.add(format!("{at}.resources"), why);
    }
}

/// Amounts are not below zero, and huge pages are whole pages. That extended resources are whole units
/// is said where they are read.
fn amounts(container: &Container, at: &str, found: &mut Found) {
    let Container { name, resources, .. } = container;
    for (list, amounts) in [("limits", &resources.limits), ("requests", &resources.requests)] {
        for (resource, amount) in amounts {
            let why = if amount.sign() < 0 {
                format!(
                    "container {name} asks in `{list}` for {amount} of {resource}, less than none"
                )
            } else if let Some(size) = page_of(resource)
                && size.value_ceil() > 0
                && amount.value_ceil() % size.value_ceil() != 0
            {
                format!(
                    "container {name} asks in `{list}` for {amount} of {resource}, which is no whole \
                     number of pages"
                )
            } else {
                continue;
            };
            found.add(format!("{at}.resources.{list}[{resource:?}]"), why);
        }
    }
}

/// The size of the huge pages that a resource counts.
fn page_of(resource: &str) -> Option<Quantity> {
    resource.strip_prefix(HUGE_PAGES)?.parse().ok()
}

/// What is wrong with a resource's name, for the end of a sentence.
fn bad_name(resource: &str) -> Option<String> {
    if !is_qualified_name(resource) {
        return Some("which is no name of a resource".to_owned());
    }
    let Some((domain, _)) = resource.split_once('/') else {
        let known = STANDARD.contains(&resource) || resource.starts_with(HUGE_PAGES);
        let hint = if resource == "gpu" { ", such as nvidia.com/gpu" } else { "" };
        return (!known).then(|| {
            format!("which needs the domain of whoever provides it before its name{hint}")
        });
    };
    // What has Kubernetes' own domain is taken as it is.
    let own = domain.ends_with("kubernetes.io");
    (!own && !is_extended(resource)).then(|| "which is no name of an extended resource".to_owned())
}
