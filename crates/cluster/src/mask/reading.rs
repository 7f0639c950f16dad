//! What of a whole dump decides on its texts: what its drivers and attributes are called, what its
//! products are, and which expressions take texts apart, so that other texts would be other answers.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cel::{Environment, Place, Program, ReadSet, Spelled};
use phalanx_objects::Object;
use phalanx_objects::resource::DeviceAttribute;
use serde_json::Value;

/// Labels of nodes that say what their machine or its devices are, by whoever made them.
const PRODUCT_LABELS: [&str; 9] = [
    "amd.com/gpu.family",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.family",
    "beta.amd.com/gpu.product-name",
    "gpu.intel.com/product",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "nvidia.com/gpu.family",
    "nvidia.com/gpu.product",
];

/// Attributes that say what a device is, without their domain.
const PRODUCT_ATTRIBUTES: [&str; 6] =
    ["architecture", "brand", "family", "productName", "profile", "type"];

/// An expression, as far as texts go.
#[derive(Debug)]
struct Expression {
    reads: Option<ReadSet>,
    /// It takes texts apart, or is compared with what one reads that does.
    open: bool,
}

/// What is known of a dump.
#[derive(Debug, Default)]
pub(super) struct Reading {
    names: BTreeSet<String>,
    facts: BTreeSet<String>,
    expressions: BTreeMap<String, Expression>,
    /// Attributes that an open expression reads.
    open: BTreeSet<(String, String)>,
}

impl Reading {
    pub(super) fn new(
        objects: &[&Object],
        environment: &Environment,
    ) -> Result<Self, serde_json::Error> {
        let mut reading = Self::default();
        let mut attributes = BTreeSet::new();
        let mut found = BTreeMap::new();
        for object in objects {
            reading.look(object, &mut attributes);
            expressions(&serde_json::to_value(object)?, false, &mut found);
        }
        for (text, derives) in found {
            let selector = Program::compile(&text, environment);
            let program = selector.or_else(|_| Program::compile_attribute(&text, environment)).ok();
            let reads = program.map(|program| program.reads().attributes.clone());
            // A derived attribute may be compared with one of another device.
            let open = reads.is_some() && (derives || !reading.is_plain(&text));
            reading.expressions.insert(text, Expression { reads, open });
        }
        reading.spread(attributes);
        Ok(reading)
    }

    /// Whether a text is the name of a driver, an attribute, a capacity, or their domain.
    pub(super) fn is_name(&self, text: &str) -> bool {
        self.names.contains(text)
    }

    /// Whether a text says what a product is.
    pub(super) fn is_fact(&self, text: &str) -> bool {
        self.facts.contains(text)
    }

    /// Whether the texts of an expression stay.
    pub(super) fn is_open(&self, expression: &str) -> bool {
        self.expressions.get(expression).is_some_and(|expression| expression.open)
    }

    /// Whether an expression whose texts stay reads the attribute.
    pub(super) fn takes_apart(&self, domain: &str, id: &str) -> bool {
        self.open.contains(&(domain.to_owned(), id.to_owned()))
    }

    /// How many expressions keep their texts.
    pub(super) fn open_expressions(&self) -> usize {
        self.expressions.values().filter(|expression| expression.open).count()
    }

    fn look(&mut self, object: &Object, attributes: &mut BTreeSet<(String, String)>) {
        if let Object::Node(node) = object {
            let labels = PRODUCT_LABELS.iter().filter_map(|key| node.metadata.labels.get(*key));
            self.facts.extend(labels.cloned());
        }
        let Object::ResourceSlice(slice) = object else { return };
        let driver = &slice.spec.driver;
        self.names.insert(driver.clone());
        for device in &slice.spec.devices {
            for name in device.attributes.keys().chain(device.capacity.keys()) {
                let (domain, id) = name.split_once('/').unwrap_or((driver, name));
                self.names.extend([name, domain, id].map(str::to_owned));
            }
            for (name, value) in &device.attributes {
                let (domain, id) = name.split_once('/').unwrap_or((driver, name));
                attributes.insert((domain.to_owned(), id.to_owned()));
                if let DeviceAttribute::String(text) = value
                    && PRODUCT_ATTRIBUTES.contains(&id)
                {
                    self.facts.insert(text.clone());
                }
            }
        }
    }

    /// Whether the texts of an expression may be replaced: it compares them and no more, and none of
    /// them that does not name an entry could be taken for a name.
    fn is_plain(&self, text: &str) -> bool {
        let Some(spelled) = Spelled::new(text) else { return true };
        let named = |(place, text): (Place, &str)| place == Place::Other && self.is_name(text);
        spelled.is_plain() && !spelled.texts().any(named)
    }

    /// What an open expression reads is open, and so is what else is compared with that.
    fn spread(&mut self, attributes: BTreeSet<(String, String)>) {
        let mut closed: Vec<(String, String)> = attributes.into_iter().collect();
        loop {
            let before = self.open.len();
            let read = |(domain, id): &(String, String)| {
                let open = self.expressions.values().filter(|expression| expression.open);
                open.filter_map(|e| e.reads.as_ref()).any(|reads| reads.contains(domain, id))
            };
            let (opened, rest): (Vec<_>, Vec<_>) = closed.into_iter().partition(read);
            self.open.extend(opened);
            closed = rest;
            if self.open.len() == before {
                return;
            }
            for expression in self.expressions.values_mut() {
                let reads = expression.reads.as_ref();
                expression.open |= reads.is_some_and(|reads| {
                    self.open.iter().any(|(domain, id)| reads.contains(domain, id))
                });
            }
        }
    }
}

/// The expressions in an object, and whether one derives an attribute.
fn expressions(value: &Value, derives: bool, found: &mut BTreeMap<String, bool>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let ("expression", Value::String(text)) = (name.as_str(), value) {
                    let known = found.entry(text.clone()).or_insert(false);
                    *known |= derives;
                } else {
                    expressions(value, name == "derivedAttributes", found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, derives, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
