//! Which text of an object is a name that is hidden, and which stays.
//!
//! What stays: kinds, words of the API, keys of labels and taints, names of resources, drivers,
//! DeviceClasses, devices, attributes, requests and counters, expressions, the facts of hardware, and
//! the values of attributes that an expression reads, for it would answer otherwise. Numbers, times
//! and UIDs are no names. A text in a field that is not listed here is hidden.

use std::collections::BTreeSet;

use phalanx_cel::ReadSet;
use phalanx_objects::Quantity;
use serde_json::Value;

/// What becomes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It is a name.
    Mask,
    /// It stays.
    Keep,
}

/// Fields that hold a name, whatever they stand in.
const NAMES: [&str; 12] = [
    "generateName",
    "namespace",
    "namespaces",
    "nodeName",
    "nominatedNodeName",
    "podGroupName",
    "pool",
    "priorityClassName",
    "resourceClaimName",
    "resourceClaimTemplateName",
    "runtimeClassName",
    "volumeName",
];

/// Fields that hold no name, whatever they stand in.
const WORDS: [&str; 90] = [
    "a",
    "accessModes",
    "adminAccess",
    "allocationMode",
    "allocationTimestamp",
    "apiGroup",
    "apiVersion",
    "attacher",
    "b",
    "bindingConditions",
    "bindingFailureConditions",
    "class",
    "compatibilityGroups",
    "completedIndexes",
    "completionMode",
    "containerName",
    "counterSet",
    "creationTimestamp",
    "declaredFeatures",
    "deletionTimestamp",
    "device",
    "deviceClassName",
    "distinctAttribute",
    "driver",
    "effect",
    "expression",
    "extendedResourceName",
    "fabric",
    "failed",
    "failedIndexes",
    "finalizers",
    "hostIP",
    "jobDeploymentStatus",
    "key",
    "kind",
    "kubeletVersion",
    "lastTransitionTime",
    "launcherCreationPolicy",
    "managedBy",
    "matchAttribute",
    "matchLabelKeys",
    "members",
    "mismatchLabelKeys",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "operator",
    "partitionTypeAttribute",
    "path",
    "pciBusID",
    "pcieRoot",
    "pcieSwitch",
    "phase",
    "podManagementPolicy",
    "podReplacementPolicy",
    "preemptionPolicy",
    "protocol",
    "provisioner",
    "rail",
    "reason",
    "request",
    "requestName",
    "requests",
    "resource",
    "resourceName",
    "resourceVersion",
    "restartPolicy",
    "schedulerName",
    "scopeName",
    "scopes",
    "shareID",
    "skipNodeOperations",
    "source",
    "startTime",
    "startupPolicy",
    "startupPolicyOrder",
    "status",
    "subGroupPolicyType",
    "submissionMode",
    "succeeded",
    "successPolicy",
    "terminalState",
    "timeAdded",
    "topologyKey",
    "topologyKeys",
    "type",
    "uid",
    "uuid",
    "volumeBindingMode",
    "volumeMode",
    "whenUnsatisfiable",
];

/// Lists whose entries have a name that stays.
const OPEN_LISTS: [&str; 14] = [
    "containerStatuses",
    "containers",
    "derivedAttributes",
    "devices",
    "drivers",
    "firstAvailable",
    "initContainerStatuses",
    "initContainers",
    "islands",
    "requests",
    "schedulingGates",
    "sharedCounters",
    "subrequests",
    "switches",
];

/// Maps whose values are quantities.
const QUANTITIES: [&str; 10] = [
    "allocatable",
    "allocatedResources",
    "capacity",
    "consumedCapacity",
    "counters",
    "hard",
    "limits",
    "overhead",
    "requests",
    "used",
];

/// Maps whose values are values of labels, and whose keys are their keys.
const LABELS: [&str; 3] = ["labels", "matchLabels", "nodeSelector"];

/// Labels that state facts of a machine, by the beginning of their key.
const MACHINE: [&str; 9] = [
    "amd.com/",
    "beta.amd.com/",
    "feature.node.kubernetes.io/",
    "habana.ai/",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/",
    "nvidia.com/",
    "resource.kubernetes.io/",
];

/// Containers that a controller finds by these names.
const CONTAINERS: [&str; 6] = ["jax", "node", "paddle", "pytorch", "tensorflow", "xgboost"];

/// Labels by which a controller tells roles that it knows by a word, or an owner by its UID.
const ROLES: [&str; 6] = [
    "jobset.sigs.k8s.io/jobset-uid",
    "ray.io/node-type",
    "ray.io/originated-from-crd",
    "trainer.kubeflow.org/trainjob-ancestor-step",
    "training.kubeflow.org/job-role",
    "training.kubeflow.org/replica-type",
];

/// The annotation of a namespace that gives its pods a node selector: `KEY=VALUE,KEY=VALUE`.
const NODE_SELECTOR: &str = "scheduler.alpha.kubernetes.io/node-selector";

/// Attributes that state facts of a device, without their domain.
const DEVICE: [&str; 19] = [
    "addressingMode",
    "architecture",
    "brand",
    "cudaComputeCapability",
    "family",
    "linkType",
    "numaNode",
    "parentUUID",
    "partitionProfile",
    "pciAddress",
    "pciBusID",
    "pciVendor",
    "pcieRoot",
    "productName",
    "profile",
    "rdma",
    "sliceModel",
    "type",
    "uuid",
];

/// Where a text stands.
struct At<'a> {
    /// The field, or the key in a map; lists are passed over.
    name: &'a str,
    up: Option<&'a At<'a>>,
    /// The key of the label or the taint that the object around the text is about.
    about: Option<&'a str>,
}

impl At<'_> {
    /// The name of what is so many levels further up.
    fn above(&self, levels: usize) -> &str {
        let mut at = Some(self);
        for _ in 0..levels {
            at = at.and_then(|at| at.up);
        }
        at.map_or("", |at| at.name)
    }

    fn is_within(&self, name: &str) -> bool {
        let mut at = self.up;
        while let Some(here) = at {
            if here.name == name {
                return true;
            }
            at = here.up;
        }
        false
    }
}

/// Knows what expressions read.
#[derive(Debug)]
pub(super) struct Reading {
    reads: Vec<ReadSet>,
}

impl Reading {
    pub(super) fn new(reads: Vec<ReadSet>) -> Self {
        Self { reads }
    }

    /// Shows each text of an object to `sink`, with what becomes of it.
    pub(super) fn each(&self, object: &mut Value, sink: &mut impl FnMut(Act, &mut String)) {
        let text =
            |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = text(object.get("kind"));
        let driver = text(object.pointer("/spec/driver"));
        let walk = Walk { reading: self, kind: &kind, driver: &driver };
        walk.value(object, &At { name: "", up: None, about: None }, sink);
    }

    /// Whether an expression reads the attribute of a driver's device.
    fn is_read(&self, driver: &str, attribute: &str) -> bool {
        let (domain, id) = attribute.split_once('/').unwrap_or((driver, attribute));
        self.reads.iter().any(|reads| reads.contains(domain, id))
    }
}

/// One object while its texts are shown.
struct Walk<'a> {
    reading: &'a Reading,
    kind: &'a str,
    driver: &'a str,
}

impl Walk<'_> {
    fn value(&self, value: &mut Value, at: &At<'_>, sink: &mut impl FnMut(Act, &mut String)) {
        match value {
            Value::String(text) if at.name == NODE_SELECTOR => pairs(text, sink),
            Value::String(text) => sink(self.act(at, text), text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, at, sink)),
            Value::Object(map) => {
                let about = map.get("key").and_then(Value::as_str).map(str::to_owned);
                for (name, value) in map.iter_mut() {
                    let at = At { name, up: Some(at), about: about.as_deref() };
                    self.value(value, &at, sink);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn act(&self, at: &At<'_>, text: &str) -> Act {
        let above = at.above(1);
        if LABELS.contains(&above) {
            return of_label(at.name, text);
        }
        if above == "annotations" {
            return of_annotation(at.name, text);
        }
        if at.above(2) == "attributes" {
            return self.of_attribute(at.name, above);
        }
        match (at.name, at.about) {
            ("value" | "values", Some(_)) if at.is_within("matchFields") => return Act::Mask,
            ("value" | "values", Some(key)) => return of_label(key, text),
            // Of a quota's scope.
            ("values", None) => return of_priority(text),
            _ => {}
        }
        // The bounds of a LimitRange are called as the limits of a container.
        if self.kind == "LimitRange" && at.name == "type" {
            return Act::Keep;
        }
        // A LimitRange has a list of limits, each with its type.
        let amount = QUANTITIES.contains(&above) && !matches!(at.name, "name" | "type");
        if amount || at.name == "value" {
            return of_other(text);
        }
        if at.name == "name" {
            return self.of_name(at, text);
        }
        if at.name == "priorityClassName" {
            return of_priority(text);
        }
        if NAMES.contains(&at.name) {
            Act::Mask
        } else if WORDS.contains(&at.name) {
            Act::Keep
        } else {
            of_other(text)
        }
    }

    /// A field that is called `name`: what it names is told by what it stands in.
    fn of_name(&self, at: &At<'_>, text: &str) -> Act {
        let above = at.above(1);
        let open_kind = matches!(self.kind, "DeviceClass" | "CSIDriver");
        let open = above == "metadata" && at.above(2).is_empty() && open_kind;
        if above == "metadata" && self.kind == "PriorityClass" {
            of_priority(text)
        } else if open
            || OPEN_LISTS.contains(&above)
            || above == "containers" && CONTAINERS.contains(&text)
        {
            Act::Keep
        } else {
            Act::Mask
        }
    }

    fn of_attribute(&self, kind: &str, attribute: &str) -> Act {
        let bare = attribute.rsplit_once('/').map_or(attribute, |(_, bare)| bare);
        let open = matches!(kind, "version" | "versions")
            || DEVICE.contains(&bare)
            || self.reading.is_read(self.driver, attribute);
        if open { Act::Keep } else { Act::Mask }
    }
}

/// The priority classes that every cluster has are known by their names.
fn of_priority(text: &str) -> Act {
    if text.starts_with("system-") { Act::Keep } else { Act::Mask }
}

fn of_label(key: &str, value: &str) -> Act {
    let fact = MACHINE.iter().any(|known| key.starts_with(known)) || ROLES.contains(&key);
    // UIDs are no names, wherever they stand; controllers tell yes from no by two words.
    let uid = key.ends_with("uid");
    if fact || uid || matches!(value, "true" | "false") { Act::Keep } else { Act::Mask }
}

/// An annotation that is read: what is no setting is a name.
fn of_annotation(key: &str, value: &str) -> Act {
    let ours = ["phalanx.dev/", "resource.kubernetes.io/", "batch.kubernetes.io/"];
    let setting = ours.iter().any(|prefix| key.starts_with(prefix))
        || key.ends_with("exclusive-topology")
        || key.ends_with("migrated-plugins")
        || matches!(value, "true" | "false" | "yes" | "no");
    if setting && key != "resource.kubernetes.io/pod-claim-name" { Act::Keep } else { Act::Mask }
}

/// Shows the keys and the values of `KEY=VALUE,KEY=VALUE`.
fn pairs(text: &mut String, sink: &mut impl FnMut(Act, &mut String)) {
    let pair = |pair: &str| match pair.split_once('=') {
        Some((key, value)) => {
            let mut value = value.to_owned();
            sink(of_label(key.trim(), value.trim()), &mut value);
            format!("{key}={value}")
        }
        None => pair.to_owned(),
    };
    *text = text.split(',').map(pair).collect::<Vec<_>>().join(",");
}

/// A text of which nothing is known: quantities and times are no names.
fn of_other(text: &str) -> Act {
    let plain = text.parse::<Quantity>().is_ok() || text.parse::<jiff::Timestamp>().is_ok();
    if plain { Act::Keep } else { Act::Mask }
}

/// The expressions in an object.
pub(super) fn expressions(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::String(text) if name == "expression" => {
                        if !found.contains(text) {
                            found.insert(text.clone());
                        }
                    }
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_)
                    | Value::Object(_) => expressions(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
