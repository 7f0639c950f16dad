//! What the API server would refuse and what would otherwise be misread: names that are missing,
//! counts below zero, links to nowhere. The rest of the API server's checks is left to it.

use std::collections::BTreeSet;

use super::problem::Severity;
use super::tree::{Path, Step, parse_path};
use crate::core::{
    Container, NodeAffinity, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm,
    PodSpec, ResourceList,
};
use crate::meta::ObjectMeta;
use crate::object::Object;
use crate::resource::{DeviceAllocationMode, DeviceClaim, ResourceClaimSpec, ResourceSlice};
use crate::topology::{NodeTopology, Placement};
use crate::workload::Workload;

/// Something wrong with an object.
#[derive(Debug)]
pub(super) struct Issue {
    pub(super) severity: Severity,
    pub(super) path: Path,
    pub(super) message: String,
}

/// Checks an object.
pub(super) fn check(object: &Object) -> Vec<Issue> {
    let mut issues = Issues { found: Vec::new(), path: Path::new() };
    issues.metadata(object.metadata(), object.kind().is_namespaced());
    match object {
        Object::Node(node) => {
            let lists =
                [("allocatable", &node.status.allocatable), ("capacity", &node.status.capacity)];
            issues.within("status", |issues| {
                for (name, list) in lists {
                    issues.within(name, |issues| issues.not_negative(list));
                }
            });
        }
        Object::Pod(pod) => issues.within("spec", |issues| issues.pod(&pod.spec)),
        Object::Namespace(_)
        | Object::Service(_)
        | Object::ReplicationController(_)
        | Object::ServiceAccount(_)
        | Object::PriorityClass(_)
        | Object::RuntimeClass(_)
        | Object::LimitRange(_)
        | Object::ResourceQuota(_)
        | Object::DeviceClass(_)
        | Object::DeviceTaintRule(_)
        | Object::PersistentVolume(_)
        | Object::PersistentVolumeClaim(_)
        | Object::StorageClass(_)
        | Object::CSINode(_)
        | Object::CSIDriver(_)
        | Object::CSIStorageCapacity(_)
        | Object::VolumeAttachment(_)
        | Object::Scheduling(_) => {}
        Object::ResourceSlice(slice) => issues.within("spec", |issues| issues.slice(slice)),
        Object::ResourceClaim(claim) => {
            issues.within("spec", |issues| issues.claim(&claim.spec));
        }
        Object::ResourceClaimTemplate(template) => issues.within("spec", |issues| {
            issues.within("spec", |issues| issues.claim(&template.spec.spec));
        }),
        Object::Workload(workload) => issues.workload(workload),
        Object::NodeTopology(topology) => issues.within("spec", |issues| issues.topology(topology)),
        Object::Placement(placement) => issues.within("spec", |issues| issues.placement(placement)),
    }
    issues.found
}

/// The issues found so far, and the path to what is looked at.
struct Issues {
    found: Vec<Issue>,
    path: Path,
}

impl Issues {
    fn within(&mut self, key: &'static str, look: impl FnOnce(&mut Self)) {
        self.step(Step::Key(key.into()), look);
    }

    fn step(&mut self, step: Step, look: impl FnOnce(&mut Self)) {
        self.path.push(step);
        look(self);
        self.path.pop();
    }

    fn each<'t, T>(
        &mut self,
        key: &'static str,
        items: &'t [T],
        mut look: impl FnMut(&mut Self, &'t T),
    ) {
        self.within(key, |issues| {
            for (index, item) in items.iter().enumerate() {
                issues.step(Step::Index(index), |issues| look(issues, item));
            }
        });
    }

    fn error(&mut self, message: String) {
        let path = self.path.clone();
        self.found.push(Issue { severity: Severity::Error, path, message });
    }

    fn warning(&mut self, message: String) {
        let path = self.path.clone();
        self.found.push(Issue { severity: Severity::Warning, path, message });
    }

    fn named(&mut self, name: &str) {
        if name.is_empty() {
            self.within("name", |issues| issues.error("The name is missing.".to_owned()));
        }
    }

    fn count(&mut self, key: &'static str, count: i64) {
        if count < 0 {
            let message = format!("The count is {count}; it cannot be negative.");
            self.within(key, |issues| issues.error(message));
        }
    }

    fn metadata(&mut self, metadata: &ObjectMeta, namespaced: bool) {
        self.within("metadata", |issues| {
            if metadata.generate_name.is_empty() {
                issues.named(&metadata.name);
            }
            if !namespaced && !metadata.namespace.is_empty() {
                let message = format!(
                    "The object belongs to no namespace; the namespace {} is ignored.",
                    metadata.namespace
                );
                issues.within("namespace", |issues| issues.warning(message));
            }
        });
    }

    fn not_negative(&mut self, list: &ResourceList) {
        for (name, quantity) in list {
            if quantity.sign() < 0 {
                let message = format!("The quantity is {quantity}; it cannot be negative.");
                self.step(Step::Key(name.clone().into()), |issues| issues.error(message));
            }
        }
    }

    fn workload(&mut self, workload: &Workload) {
        for (at, count) in workload.counts() {
            if count < 0 {
                let message = format!("The count is {count}; it cannot be negative.");
                let path = parse_path(&at);
                self.found.push(Issue { severity: Severity::Error, path, message });
            }
        }
        for part in workload.parts() {
            self.path = parse_path(&part.at);
            self.pod(part.spec);
        }
        self.path.clear();
    }

    fn pod(&mut self, spec: &PodSpec) {
        let container = |issues: &mut Self, container: &Container| {
            issues.within("resources", |issues| {
                let resources = &container.resources;
                issues.within("requests", |issues| issues.not_negative(&resources.requests));
                issues.within("limits", |issues| issues.not_negative(&resources.limits));
            });
        };
        self.each("containers", &spec.containers, container);
        self.each("initContainers", &spec.init_containers, container);
        if let Some(affinity) = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref()) {
            self.within("affinity", |issues| {
                issues.within("nodeAffinity", |issues| issues.node_affinity(affinity));
            });
        }
        self.within("overhead", |issues| issues.not_negative(&spec.overhead));
        if let Some(resources) = &spec.resources {
            self.within("resources", |issues| {
                issues.within("requests", |issues| issues.not_negative(&resources.requests));
            });
        }
        self.each("resourceClaims", &spec.resource_claims, |issues, claim| {
            issues.named(&claim.name);
            let both = match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
                (None, None) => "neither `resourceClaimName` nor",
                (Some(_), Some(_)) => "both `resourceClaimName` and",
                (Some(_), None) | (None, Some(_)) => return,
            };
            issues.error(format!(
                "The claim names {both} `resourceClaimTemplateName`; name exactly one."
            ));
        });
    }

    fn node_affinity(&mut self, affinity: &NodeAffinity) {
        if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
            self.within("requiredDuringSchedulingIgnoredDuringExecution", |issues| {
                issues.each("nodeSelectorTerms", &required.node_selector_terms, Self::term);
            });
        }
        let preferred = &affinity.preferred_during_scheduling_ignored_during_execution;
        self.each("preferredDuringSchedulingIgnoredDuringExecution", preferred, |issues, wish| {
            issues.within("preference", |issues| issues.term(&wish.preference));
        });
    }

    fn term(&mut self, term: &NodeSelectorTerm) {
        let operator = |issues: &mut Self, requirement: &NodeSelectorRequirement| {
            if let NodeSelectorOperator::Other(word) = &requirement.operator {
                let message = format!(
                    "The operator {word} is not known, so that no node matches the term. The \
                     operators are In, NotIn, Exists, DoesNotExist, Gt and Lt."
                );
                issues.within("operator", |issues| issues.warning(message));
            }
        };
        self.each("matchExpressions", &term.match_expressions, operator);
        self.each("matchFields", &term.match_fields, operator);
    }

    fn slice(&mut self, slice: &ResourceSlice) {
        let spec = &slice.spec;
        if spec.driver.is_empty() {
            self.within("driver", |issues| issues.error("The driver is missing.".to_owned()));
        }
        self.within("pool", |issues| {
            issues.named(&spec.pool.name);
            issues.count("generation", spec.pool.generation);
            issues.count("resourceSliceCount", spec.pool.resource_slice_count);
        });
        if spec.pool.resource_slice_count == 0 {
            let message = "The pool says that it has 0 slices, so that no node takes it for \
                           complete; a driver gives at least 1.";
            self.within("pool", |issues| {
                issues.within("resourceSliceCount", |issues| issues.warning(message.to_owned()));
            });
        }
        let ways = [
            ("nodeName", spec.node_name.as_deref().is_some_and(|name| !name.is_empty())),
            ("allNodes", spec.all_nodes == Some(true)),
            ("nodeSelector", spec.node_selector.is_some()),
            ("perDeviceNodeSelection", spec.per_device_node_selection == Some(true)),
        ];
        let given: Vec<&str> = ways.iter().filter(|(_, is)| *is).map(|(word, _)| *word).collect();
        match given.as_slice() {
            [_] => {}
            [] => self.warning(
                "The slice does not say which nodes it is of, so that no node sees its devices; \
                 give one of `nodeName`, `allNodes`, `nodeSelector` and `perDeviceNodeSelection`."
                    .to_owned(),
            ),
            [first, ..] => {
                let message = format!(
                    "The slice says with {} which nodes it is of, and the API server allows only \
                     one of them; {first} is used.",
                    given.join(" and ")
                );
                self.warning(message);
            }
        }
        self.each("devices", &spec.devices, |issues, device| issues.named(&device.name));
    }

    /// A number of devices, and the mode that it is for.
    fn devices(&mut self, mode: &DeviceAllocationMode, count: i64) {
        self.count("count", count);
        if *mode == DeviceAllocationMode::All && count > 0 {
            let message = format!(
                "The allocationMode All takes every device, so that the count {count} means \
                 nothing; the API server refuses the two together."
            );
            self.within("count", |issues| issues.warning(message));
        }
    }

    /// Requests that constraints name and that are not there.
    fn constraints(&mut self, devices: &DeviceClaim) {
        let mut known = BTreeSet::new();
        for request in &devices.requests {
            known.insert(request.name.clone());
            for sub in &request.first_available {
                known.insert(format!("{}/{}", request.name, sub.name));
            }
        }
        self.each("constraints", &devices.constraints, |issues, constraint| {
            issues.each("requests", &constraint.requests, |issues, name| {
                if !known.contains(name) {
                    issues.warning(format!(
                        "The constraint names the request {name}, which the claim does not have; \
                         the API server refuses it."
                    ));
                }
            });
        });
    }

    fn claim(&mut self, spec: &ResourceClaimSpec) {
        let mut names = BTreeSet::new();
        self.within("devices", |issues| {
            issues.constraints(&spec.devices);
            issues.each("requests", &spec.devices.requests, |issues, request| {
                issues.named(&request.name);
                if !request.name.is_empty() && !names.insert(request.name.as_str()) {
                    let message = format!(
                        "Two requests of the claim are named {}; the API server refuses it.",
                        request.name
                    );
                    issues.within("name", |issues| issues.warning(message));
                }
                if request.exactly.is_none() && request.first_available.is_empty() {
                    // A kind of request that a later version may add; the API server refuses it.
                    issues.warning(
                        "The request has neither `exactly` nor `firstAvailable`, so no device can \
                         meet it; in resource.k8s.io/v1 the class and the count stand under \
                         `exactly`."
                            .to_owned(),
                    );
                }
                if let Some(exactly) = &request.exactly {
                    issues.within("exactly", |issues| {
                        issues.devices(&exactly.allocation_mode, exactly.count);
                    });
                }
                issues.each("firstAvailable", &request.first_available, |issues, alternative| {
                    issues.devices(&alternative.allocation_mode, alternative.count);
                });
            });
        });
    }

    fn topology(&mut self, topology: &NodeTopology) {
        let spec = &topology.spec;
        let mut names = BTreeSet::new();
        self.each("devices", &spec.devices, |issues, device| {
            issues.named(&device.name);
            if !names.insert(device.name.as_str()) {
                let message = format!("The device {} is declared twice.", device.name);
                issues.within("name", |issues| issues.error(message));
            }
        });
        self.each("links", &spec.links, |issues, link| {
            if link.a.is_empty() || link.b.is_empty() {
                issues.error("A link has two ends; name them as `a` and `b`.".to_owned());
            } else if link.a == link.b {
                let message = format!("The link leads from {} to itself.", link.a);
                issues.within("b", |issues| issues.error(message));
            }
            if link.class.is_none() && link.links.is_none() {
                let message = "The link has neither `class` nor `links`; say what it is.";
                issues.error(message.to_owned());
            }
            issues.bandwidth(link.gbps);
        });
        self.each("islands", &spec.islands, |issues, island| {
            issues.named(&island.name);
            issues.members(&island.members);
            issues.bandwidth(island.gbps);
        });
        self.each("switches", &spec.switches, |issues, switch| {
            issues.named(&switch.name);
            issues.members(&switch.members);
        });
    }

    fn placement(&mut self, placement: &Placement) {
        let spec = &placement.spec;
        let group = &spec.group;
        if group.kind.is_empty() || group.name.is_empty() {
            let message = "The group is named by its kind and its name.".to_owned();
            self.within("group", |issues| issues.error(message));
        }
        self.each("seats", &spec.seats, |issues, seat| {
            if seat.pod.is_empty() || seat.node.is_empty() {
                issues.error("A seat names its pod and its node.".to_owned());
            }
            issues.each("grants", &seat.grants, |issues, grant| {
                let pool = usize::try_from(grant.pool).ok();
                if pool.and_then(|at| spec.pools.get(at)).is_none() {
                    let message = format!("There is no pool {} in spec.pools.", grant.pool);
                    issues.within("pool", |issues| issues.error(message));
                }
            });
        });
    }

    fn members(&mut self, members: &[String]) {
        let mut seen = BTreeSet::new();
        self.each("members", members, |issues, member| {
            if member.is_empty() {
                issues.error("The member has no name.".to_owned());
            } else if !seen.insert(member.as_str()) {
                issues.error(format!("The member {member} is named twice."));
            }
        });
    }

    fn bandwidth(&mut self, gbps: Option<f64>) {
        if gbps.is_some_and(|gbps| !gbps.is_finite() || gbps < 0.0) {
            let message = "The bandwidth is not a number of gigabytes a second.".to_owned();
            self.within("gbps", |issues| issues.error(message));
        }
    }
}
