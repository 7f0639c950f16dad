//! Which text of an object is a name that is hidden, and which stays.
//!
//! What is not known here is hidden. A text stays by one of these rules alone: it is a word of the API
//! in a field of such words; it names a kind, a driver, an attribute or a DeviceClass; it
//! is a number, a time or a PCI address; it says what a product is ([`Reading`] tells); or an expression
//! takes it apart. In a field that names another object it never stays, whatever it looks like. Of keys of
//! labels and names of resources some words stay ([`keys`](super::keys)). Other keys of maps stay, but for
//! annotations that nothing reads and StorageClasses in the keys of quotas.

use phalanx_cel::{Place, Spelled};
use phalanx_objects::Quantity;
use phalanx_objects::topology::AlignRule;
use serde_json::{Map, Value};

use super::keys::key;
use super::reading::Reading;
use super::vocabulary::{API_WORDS, ROLE_WORDS};
use crate::lower::{ENFORCE_LABEL, Level};

/// What becomes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It is a name.
    Mask,
    /// It is the address of a machine.
    Address,
    /// It stays.
    Keep,
}

/// Fields that say what something is, in words of the API or in names that its drivers gave.
const OPEN: [&str; 10] = [
    "apiGroup",
    "apiVersion",
    "attacher",
    "deviceClassName",
    "distinctAttribute",
    "driver",
    "kind",
    "matchAttribute",
    "partitionTypeAttribute",
    "provisioner",
];

/// Fields that hold the key of a label or a taint, or the name of a resource.
const KEYS: [&str; 13] = [
    "extendedResourceName",
    "key",
    "matchLabelKeys",
    "mismatchLabelKeys",
    "nodeLabel",
    "podSetSliceRequiredTopology",
    "preferred",
    "preferredTopologyLevel",
    "required",
    "requiredTopologyLevel",
    "resourceName",
    "topologyKey",
    "topologyKeys",
];

/// Maps whose keys are names of resources, wherever they stand.
const RESOURCES: [&str; 6] =
    ["allocatable", "allocatedResources", "hard", "overhead", "podFixed", "used"];

/// The same in a LimitRange.
const RANGES: [&str; 5] = ["default", "defaultRequest", "max", "maxLimitRequestRatio", "min"];

/// Lists whose entries have a name that stays: of an attribute, of a driver.
const OPEN_LISTS: [&str; 2] = ["derivedAttributes", "drivers"];

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
const LABELS: [&str; 4] = ["labels", "matchLabels", "nodeSelector", "selector"];

/// Fields that name another object, or a part of one.
const REFERENCES: [&str; 17] = [
    "claimName",
    "cliqueNames",
    "nodeName",
    "nominatedNodeName",
    "parentCompositePodGroupName",
    "persistentVolumeName",
    "podGroupName",
    "podGroupNames",
    "podSetGroupName",
    "requestName",
    "resourceClaimName",
    "resourceClaimTemplateName",
    "runtimeClassName",
    "serviceAccountName",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeName",
];

/// Containers that a controller finds by these names.
const CONTAINERS: [&str; 6] = ["jax", "node", "paddle", "pytorch", "tensorflow", "xgboost"];

/// Annotations that are read, of those whose prefix alone is asked for when an object is read.
const ANNOTATIONS: [&str; 5] = [
    "batch.kubernetes.io/job-completion-index",
    "phalanx.dev/align",
    "resource.kubernetes.io/admin-access",
    "resource.kubernetes.io/extended-resource-claim",
    "resource.kubernetes.io/pod-claim-name",
];

/// The prefixes of those.
const PREFIXES: [&str; 3] = ["batch.kubernetes.io/", "phalanx.dev/", "resource.kubernetes.io/"];

/// What stands behind a StorageClass in the key of a quota.
const OF_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Labels by which a controller tells roles that it knows by a word.
const ROLES: [&str; 5] = [
    "ray.io/node-type",
    "ray.io/originated-from-crd",
    "trainer.kubeflow.org/trainjob-ancestor-step",
    "training.kubeflow.org/job-role",
    "training.kubeflow.org/replica-type",
];

/// Kueue's annotation with slices within slices.
const LAYERS: &str = "kueue.x-k8s.io/podset-slice-required-topology-constraints";

/// Koordinator's annotation that binds gangs together.
const GANGS: &str = "gang.scheduling.koordinator.sh/groups";

/// The annotation of a namespace that gives its pods a node selector: `KEY=VALUE,KEY=VALUE`.
const NODE_SELECTOR: &str = "scheduler.alpha.kubernetes.io/node-selector";

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

    /// Whether it is an expression of CEL.
    fn is_expression(&self) -> bool {
        self.name == "expression" && matches!(self.above(1), "cel" | "derivedAttributes")
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

/// Shows each text of an object to `sink`, with what becomes of it.
pub(super) fn each(reading: &Reading, object: &mut Value, sink: &mut impl FnMut(Act, &mut String)) {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = text(object.get("kind"));
    let driver = text(object.pointer("/spec/driver"));
    let walk = Walk { reading, kind: &kind, driver: &driver };
    walk.value(object, &At { name: "", up: None, about: None }, sink);
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
            Value::String(text) if at.name == NODE_SELECTOR && at.above(1) == "annotations" => {
                self.pairs(text, sink);
            }
            Value::String(text) if at.name == GANGS && at.above(1) == "annotations" => {
                gangs(text, sink);
            }
            Value::String(text) if at.name == LAYERS && at.above(1) == "annotations" => {
                layers(text, sink);
            }
            Value::String(text) if KEYS.contains(&at.name) => key(text, sink),
            // The key of a label, in an annotation that is read.
            Value::String(text) if names_a_label(at.name) && at.above(1) == "annotations" => {
                key(text, sink);
            }
            Value::String(text) if at.name == "kubeletVersion" => release(text),
            Value::String(text) if at.is_expression() => self.expression(text, sink),
            Value::String(text) => sink(self.act(at, text), text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, at, sink)),
            Value::Object(map) => {
                match at.name {
                    "annotations" => map.retain(|key, _| is_read(key)),
                    "hard" | "used" if self.kind == "ResourceQuota" => quota_keys(map, sink),
                    _ => {}
                }
                let about = map.get("key").and_then(Value::as_str).map(str::to_owned);
                for (name, value) in map.iter_mut() {
                    let at = At { name, up: Some(at), about: about.as_deref() };
                    self.value(value, &at, sink);
                }
                // A selector of nodes is such a map in a pod, and in a slice an object.
                if self.has_keys(at) && map.values().all(Value::is_string) {
                    rename(map, sink);
                }
                if map.get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty) {
                    map.remove("annotations");
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether the keys of a map are keys of labels or names of resources.
    fn has_keys(&self, at: &At<'_>) -> bool {
        LABELS.contains(&at.name)
            || RESOURCES.contains(&at.name)
            || matches!(at.name, "limits" | "requests")
                && matches!(at.above(1), "resources" | "resourcesPerNode")
            || at.name == "capacity" && self.kind == "Node"
            || RANGES.contains(&at.name) && self.kind == "LimitRange"
    }

    fn act(&self, at: &At<'_>, text: &str) -> Act {
        let above = at.above(1);
        if LABELS.contains(&above) {
            return self.of_label(at.name, text);
        }
        if above == "annotations" {
            return self.of_annotation(at.name, text);
        }
        if at.above(2) == "attributes" {
            return self.of_attribute(above, text);
        }
        match (at.name, at.about) {
            ("value" | "values", Some(_)) if at.is_within("matchFields") => return Act::Mask,
            ("value" | "values", Some(key)) => return self.of_label(key, text),
            // Of a quota's scope.
            ("values", None) => return of_priority(text),
            _ => {}
        }
        // A LimitRange has a list of limits, each with its type.
        let amount = QUANTITIES.contains(&above) && !matches!(at.name, "name" | "type");
        if amount || at.name == "value" {
            return self.of_value(text);
        }
        match at.name {
            "name" => self.of_name(at, text),
            "priorityClassName" => of_priority(text),
            "hostIP" => of_address(text),
            name if OPEN.contains(&name) => Act::Keep,
            // As the name of what they name, whatever it looks like.
            name if REFERENCES.contains(&name) => Act::Mask,
            "parent" if above == "subGroups" => Act::Mask,
            _ if API_WORDS.contains(&text) => Act::Keep,
            _ => self.of_value(text),
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

    fn of_attribute(&self, attribute: &str, text: &str) -> Act {
        let (domain, id) = attribute.split_once('/').unwrap_or((self.driver, attribute));
        if self.reading.takes_apart(domain, id) { Act::Keep } else { self.of_value(text) }
    }

    fn of_label(&self, key: &str, value: &str) -> Act {
        let role = ROLES.contains(&key) && ROLE_WORDS.contains(&value);
        // The levels of PodSecurity.
        let level =
            key == ENFORCE_LABEL && (value == "privileged" || Level::parse(value).is_some());
        if role || level { Act::Keep } else { self.of_value(value) }
    }

    /// A value: numbers, times and what is known of products are no names; controllers tell yes from
    /// no by two words.
    fn of_value(&self, text: &str) -> Act {
        // Kubernetes reads `e1` and `k` as quantities, too, of nothing.
        let is_number = text.bytes().any(|byte| byte.is_ascii_digit())
            && !text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.parse::<Quantity>().is_ok();
        let plain = matches!(text, "true" | "false")
            || is_number
            || text.parse::<jiff::Timestamp>().is_ok()
            || is_pci(text)
            || self.reading.is_fact(text);
        if plain { Act::Keep } else { Act::Mask }
    }

    /// An annotation that is read: what is no setting is a name.
    fn of_annotation(&self, key: &str, value: &str) -> Act {
        let setting = match key {
            "phalanx.dev/align" => AlignRule::parse(value).is_ok(),
            // Names of plugins of the API's own.
            _ if key.ends_with("migrated-plugins") => {
                value.split(',').all(|plugin| plugin.starts_with("kubernetes.io/"))
            }
            // Names of groups, whatever they look like.
            _ if key.ends_with("group-name") => return Act::Mask,
            _ => matches!(value, "yes" | "no"),
        };
        if setting { Act::Keep } else { self.of_value(value) }
    }

    /// Shows the keys and the values of `KEY=VALUE,KEY=VALUE`.
    fn pairs(&self, text: &mut String, sink: &mut impl FnMut(Act, &mut String)) {
        let mut pair = |pair: &str| match pair.split_once('=') {
            Some((name, value)) => {
                let mut value = value.to_owned();
                sink(self.of_label(name.trim(), value.trim()), &mut value);
                let mut name = name.to_owned();
                key(&mut name, sink);
                format!("{name}={value}")
            }
            None => {
                let mut value = pair.to_owned();
                sink(Act::Mask, &mut value);
                value
            }
        };
        *text = text.split(',').map(&mut pair).collect::<Vec<_>>().join(",");
    }

    /// Shows the texts that are written out in an expression; its comments go.
    fn expression(&self, text: &mut String, sink: &mut impl FnMut(Act, &mut String)) {
        let Some(spelled) = Spelled::new(text) else {
            // It is no expression, whatever it says.
            return sink(Act::Mask, text);
        };
        let open = self.reading.is_open(text);
        *text = spelled.with(|place, literal| {
            let named = match place {
                Place::Entry | Place::Driver => self.reading.is_name(literal),
                Place::Other => false,
            };
            if open || named {
                sink(Act::Keep, &mut literal.to_owned());
                return None;
            }
            let mut other = literal.to_owned();
            sink(self.of_value(literal), &mut other);
            (other != literal).then_some(other)
        });
    }
}

/// Shows the names in a list of gangs, `["NAMESPACE/NAME"]`; what is no such list goes.
fn gangs(text: &mut String, sink: &mut impl FnMut(Act, &mut String)) {
    let Ok(mut all) = serde_json::from_str::<Vec<String>>(text) else {
        return sink(Act::Mask, text);
    };
    for entry in &mut all {
        let mut parts: Vec<String> = entry.split('/').map(str::to_owned).collect();
        parts.iter_mut().for_each(|part| sink(Act::Mask, part));
        *entry = parts.join("/");
    }
    *text = Value::from(all).to_string();
}

/// Shows the keys of labels in a list of levels, `[{"topology": "KEY", "size": 4}]`; what is no such list
/// goes.
fn layers(text: &mut String, sink: &mut impl FnMut(Act, &mut String)) {
    let Ok(mut all) = serde_json::from_str::<Vec<Map<String, Value>>>(text) else {
        return sink(Act::Mask, text);
    };
    for layer in &mut all {
        layer.retain(|name, _| name == "topology" || name == "size");
        if let Some(Value::String(label)) = layer.get_mut("topology") {
            key(label, sink);
        }
    }
    *text = Value::from(all.into_iter().map(Value::Object).collect::<Vec<_>>()).to_string();
}

/// Leaves of a kubelet's version what is Kubernetes': who built it says the rest.
fn release(version: &mut String) {
    let end = version.find(|c: char| c != 'v' && c != '.' && !c.is_ascii_digit());
    version.truncate(end.unwrap_or(version.len()));
}

/// Whether an annotation's value is the key of a label; that of `podset-unconstrained-topology` is true or
/// false.
fn names_a_label(annotation: &str) -> bool {
    if annotation.ends_with("-unconstrained-topology") {
        return false;
    }
    annotation.ends_with("exclusive-topology")
        || annotation.starts_with("kueue.x-k8s.io/podset-") && annotation.ends_with("-topology")
        || annotation == "kueue.x-k8s.io/pod-group-pod-index-label"
}

/// Whether anything reads an annotation.
fn is_read(key: &str) -> bool {
    ANNOTATIONS.contains(&key) || !PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// Shows the keys of a map.
fn rename(map: &mut Map<String, Value>, sink: &mut impl FnMut(Act, &mut String)) {
    let entries = std::mem::take(map).into_iter();
    *map = entries
        .map(|(mut name, value)| {
            key(&mut name, sink);
            (name, value)
        })
        .collect();
}

/// Shows the names of StorageClasses in the keys of a quota.
fn quota_keys(map: &mut Map<String, Value>, sink: &mut impl FnMut(Act, &mut String)) {
    let entries = std::mem::take(map).into_iter();
    *map = entries
        .map(|(key, value)| match key.split_once(OF_STORAGE_CLASS) {
            Some((class, rest)) => {
                let mut class = class.to_owned();
                sink(Act::Mask, &mut class);
                (format!("{class}{OF_STORAGE_CLASS}{rest}"), value)
            }
            None => (key, value),
        })
        .collect();
}

/// The priority classes that every cluster has are known by their names.
fn of_priority(text: &str) -> Act {
    let known = ["system-cluster-critical", "system-node-critical"].contains(&text);
    if known { Act::Keep } else { Act::Mask }
}

/// An address, but for those that mean all of a machine's, or itself.
fn of_address(text: &str) -> Act {
    let any = ["0.0.0.0", "127.0.0.1", "::", "::1"].contains(&text);
    if any { Act::Keep } else { Act::Address }
}

/// Whether a text is where a device sits: `0000:1b:00.0`, `pci0000:17`.
fn is_pci(text: &str) -> bool {
    let text = text.strip_prefix("pci").unwrap_or(text);
    let digits = |part: &str, most: usize| {
        !part.is_empty() && part.len() <= most && part.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let parts: Vec<&str> = text.split([':', '.']).collect();
    text.contains(':')
        && (2..=4).contains(&parts.len())
        && parts.iter().zip([8, 2, 2, 1]).all(|(part, most)| digits(part, most))
}
