//! Limits of ResourceSlices.

use phalanx_objects::core::{NodeSelector, NodeSelectorOperator, NodeSelectorRequirement};
use phalanx_objects::resource::{
    Counter, CounterSet, Device, DeviceAttribute, DeviceCounterConsumption, ResourceSliceSpec,
};

use super::form::{Form, shown};
use super::{
    ATTRIBUTE_VALUES, COMPATIBILITY_GROUPS, CONDITIONS, CONSUMED_SETS, COUNTER_SETS, COUNTERS,
    Check, DEVICES, DEVICES_ADVANCED, PUBLISHED, TAINTS,
};
use crate::compat::Gate;
use crate::lint::Rule;

impl Check<'_> {
    pub(super) fn slice(&mut self, spec: &ResourceSliceSpec) {
        self.form("driver", Form::Driver, &spec.driver);
        self.within("pool", |check| {
            check.form("name", Form::Pool, &spec.pool.name);
            if spec.pool.resource_slice_count <= 0 {
                let what = format!(
                    "the pool says that it has {} slices, and has to say at least 1.",
                    spec.pool.resource_slice_count
                );
                check.refuse_at("resourceSliceCount", Rule::FieldValueInvalid, &what);
            }
            if spec.pool.generation < 0 {
                let what = format!("the generation is {}, below 0.", spec.pool.generation);
                check.refuse_at("generation", Rule::FieldValueInvalid, &what);
            }
        });
        self.ways(spec);
        if !spec.devices.is_empty() && !spec.shared_counters.is_empty() {
            let what = "a slice has either devices or sharedCounters. Publish the counters in a slice \
                        of their own in the same pool.";
            self.refuse_at("sharedCounters", Rule::FieldValueInvalid, what);
        }
        let partitions = Gate::DRAPartitionableDevices;
        let counted = self.gated("sharedCounters", partitions, !spec.shared_counters.is_empty());
        let each = spec.per_device_node_selection == Some(true);
        let left = "a slice without it is of no node";
        self.needed("perDeviceNodeSelection", partitions, each, left);
        let limit = if spec.devices.iter().any(is_advanced) { DEVICES_ADVANCED } else { DEVICES };
        self.each_of("devices", limit, &spec.devices, |check, device| check.device(device, each));
        if spec.devices.len() <= limit.entries {
            let names = spec.devices.iter().map(|device| device.name.as_str()).enumerate();
            self.distinct("devices", names, "name");
        }
        if counted {
            self.counter_sets(&spec.shared_counters);
        }
        let partitions = spec.partition_type_attribute.is_some();
        if self.gated("partitionTypeAttribute", Gate::DRAPartitionableDevicesType, partitions) {
            self.partition_type(spec);
        }
        let skips = !spec.skip_node_operations.is_empty();
        if self.gated("skipNodeOperations", Gate::DRAOptionalNodeOperations, skips) {
            self.skipped(&spec.skip_node_operations);
        }
    }

    fn counter_sets(&mut self, sets: &[CounterSet]) {
        self.each_of("sharedCounters", COUNTER_SETS, sets, |check, set| {
            check.form("name", Form::Label, &set.name);
            check.counters(&set.counters);
        });
        if sets.len() <= COUNTER_SETS.entries {
            let names = sets.iter().map(|set| set.name.as_str()).enumerate();
            self.distinct("sharedCounters", names, "name");
        }
    }

    /// Which nodes the slice is of.
    fn ways(&mut self, spec: &ResourceSliceSpec) {
        let mut given = Vec::new();
        match spec.node_name.as_deref() {
            Some("") => {
                let what = "nodeName is empty: leave it out or name a node.";
                self.refuse_at("nodeName", Rule::FieldValueInvalid, what);
            }
            Some(name) => {
                given.push("nodeName");
                self.form("nodeName", Form::Subdomain, name);
            }
            None => {}
        }
        if let Some(selector) = &spec.node_selector {
            given.push("nodeSelector");
            self.within("nodeSelector", |check| check.node_selector(selector, true));
        }
        for (key, value) in [
            ("allNodes", spec.all_nodes),
            ("perDeviceNodeSelection", spec.per_device_node_selection),
        ] {
            match value {
                Some(true) => given.push(key),
                Some(false) => {
                    let what = format!("{key} is false: leave it out or set it to true.");
                    self.refuse_at(key, Rule::FieldValueInvalid, &what);
                }
                None => {}
            }
        }
        let one = "a slice says with exactly one of `nodeName`, `nodeSelector`, `allNodes` and \
                   `perDeviceNodeSelection` which nodes it is of";
        match given.as_slice() {
            [_] => {}
            [] => self.refuse(Rule::FieldValueRequired, &format!("{one}, and this one has none.")),
            many => {
                let what = format!("{one}, and this one has {}.", many.join(" and "));
                self.refuse(Rule::FieldValueInvalid, &what);
            }
        }
    }

    fn node_selector(&mut self, selector: &NodeSelector, one: bool) {
        let terms = &selector.node_selector_terms;
        if terms.is_empty() || (one && terms.len() > 1) {
            let what = format!(
                "a slice's node selector has exactly 1 term, and this one has {}.",
                terms.len()
            );
            self.refuse_at("nodeSelectorTerms", Rule::FieldValueInvalid, &what);
        }
        self.each("nodeSelectorTerms", terms, |check, term| {
            check.each("matchExpressions", &term.match_expressions, Self::requirement);
            check.each("matchFields", &term.match_fields, Self::field_requirement);
        });
    }

    fn requirement(&mut self, requirement: &NodeSelectorRequirement) {
        self.form("key", Form::LabelKey, &requirement.key);
        let values = requirement.values.len();
        let (wrong, wanted) = match &requirement.operator {
            NodeSelectorOperator::In | NodeSelectorOperator::NotIn => {
                (values == 0, "at least one value")
            }
            NodeSelectorOperator::Exists | NodeSelectorOperator::DoesNotExist => {
                (values != 0, "no value")
            }
            NodeSelectorOperator::Gt | NodeSelectorOperator::Lt => {
                (values != 1, "exactly one value")
            }
            NodeSelectorOperator::Unset | NodeSelectorOperator::Other(_) => {
                self.operator(&requirement.operator, "In, NotIn, Exists, DoesNotExist, Gt and Lt");
                return;
            }
        };
        if wrong {
            let what =
                format!("the operator {} takes {wanted}, and has {values}.", requirement.operator);
            self.refuse_at("values", Rule::FieldValueInvalid, &what);
        }
        self.each("values", &requirement.values, |check, value| {
            if let Some(rule) = Form::LabelValue.broken_by(value).filter(|_| !value.is_empty()) {
                let words = Form::LabelValue.words();
                check.refuse(rule, &format!("{} has to be {words}.", shown(value)));
            }
        });
    }

    /// A requirement on a field of the node, of which there is only its name.
    fn field_requirement(&mut self, requirement: &NodeSelectorRequirement) {
        if requirement.key != "metadata.name" {
            let what =
                format!("the only field is metadata.name, and not {}.", shown(&requirement.key));
            self.refuse_at("key", Rule::FieldValueInvalid, &what);
        }
        match &requirement.operator {
            NodeSelectorOperator::In | NodeSelectorOperator::NotIn => {}
            NodeSelectorOperator::Exists
            | NodeSelectorOperator::DoesNotExist
            | NodeSelectorOperator::Gt
            | NodeSelectorOperator::Lt
            | NodeSelectorOperator::Unset
            | NodeSelectorOperator::Other(_) => {
                self.operator(&requirement.operator, "In and NotIn");
                return;
            }
        }
        if requirement.values.len() != 1 {
            let what =
                format!("a field takes exactly one value, and has {}.", requirement.values.len());
            self.refuse_at("values", Rule::FieldValueInvalid, &what);
        }
        self.each("values", &requirement.values, |check, value| {
            if let Some(rule) = Form::Subdomain.broken_by(value) {
                let words = Form::Subdomain.words();
                check.refuse(rule, &format!("{} has to be {words}.", shown(value)));
            }
        });
    }

    fn operator(&mut self, operator: &NodeSelectorOperator, known: &str) {
        let what = format!("{} is no operator here; these are {known}.", shown(operator.as_str()));
        self.refuse_at("operator", Rule::FieldValueInvalid, &what);
    }

    fn counters(&mut self, counters: &std::collections::BTreeMap<String, Counter>) {
        if counters.is_empty() {
            let what = "the counters are missing.";
            self.refuse_at("counters", Rule::FieldValueRequired, what);
        } else if self.at_most("counters", COUNTERS, counters.len()) {
            self.within("counters", |check| check.keys(Form::Label, counters.keys()));
        }
    }

    fn device(&mut self, device: &Device, each: bool) {
        self.form("name", Form::Label, &device.name);
        self.at_most("attributes", PUBLISHED, device.attributes.len() + device.capacity.len());
        self.at_most("attributes", ATTRIBUTE_VALUES, device.attributes.values().map(values).sum());
        self.within("attributes", |check| {
            check.keys(Form::Qualified, device.attributes.keys());
            for (name, attribute) in &device.attributes {
                check.within(name, |check| check.attribute(attribute));
            }
        });
        self.within("capacity", |check| check.keys(Form::Qualified, device.capacity.keys()));
        self.capacities(device);
        if self.gated("taints", Gate::DRADeviceTaints, !device.taints.is_empty()) {
            self.each_of("taints", TAINTS, &device.taints, Self::taint);
        }
        let consumes = &device.consumes_counters;
        if self.gated("consumesCounters", Gate::DRAPartitionableDevices, !consumes.is_empty()) {
            self.each_of("consumesCounters", CONSUMED_SETS, consumes, Self::consumption);
            let sets = consumes.iter().map(|used| used.counter_set.as_str()).enumerate();
            self.distinct("consumesCounters", sets, "counterSet");
            self.device_nodes(device, each);
        }
        self.conditions(device);
    }

    fn attribute(&mut self, attribute: &DeviceAttribute) {
        let lists = Gate::DRAListTypeAttributes;
        match attribute {
            DeviceAttribute::Int(_) | DeviceAttribute::Bool(_) | DeviceAttribute::Unknown(_) => {}
            DeviceAttribute::String(text) => {
                if !text.is_empty() {
                    self.form("string", Form::Text, text);
                }
            }
            DeviceAttribute::Version(text) => self.form("version", Form::Version, text),
            DeviceAttribute::Ints(all) => self.list("ints", all.len(), lists),
            DeviceAttribute::Bools(all) => self.list("bools", all.len(), lists),
            DeviceAttribute::Strings(all) => self.list("strings", all.len(), lists),
            DeviceAttribute::Versions(all) => self.list("versions", all.len(), lists),
            DeviceAttribute::Empty => {
                let what = "an attribute has exactly one value, such as `string: …` or `int: …`, and this \
                            one has none.";
                self.refuse(Rule::FieldValueInvalid, what);
            }
        }
    }

    fn list(&mut self, key: &str, entries: usize, gate: Gate) {
        let left = "an attribute without it has no value";
        if self.needed(key, gate, true, left) && entries == 0 {
            let what = "a list has at least one value.";
            self.refuse_at(key, Rule::FieldValueInvalid, what);
        }
    }

    fn consumption(&mut self, used: &DeviceCounterConsumption) {
        self.form("counterSet", Form::Label, &used.counter_set);
        self.counters(&used.counters);
        let groups = &used.compatibility_groups;
        if self.gated("compatibilityGroups", Gate::DRADeviceCompatibilityGroups, !groups.is_empty())
        {
            self.at_most("compatibilityGroups", COMPATIBILITY_GROUPS, groups.len());
        }
    }

    fn device_nodes(&mut self, device: &Device, each: bool) {
        let ways = [
            ("nodeName", device.node_name.is_some()),
            ("nodeSelector", device.node_selector.is_some()),
            ("allNodes", device.all_nodes.is_some()),
        ];
        let given: Vec<&str> = ways.iter().filter(|(_, is)| *is).map(|(key, _)| *key).collect();
        if each {
            if given.len() != 1 {
                let has = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
                let what = format!(
                    "with `perDeviceNodeSelection` each device has exactly one of `nodeName`, \
                     `nodeSelector` and `allNodes`, and {} has {has}.",
                    device.name
                );
                self.refuse(Rule::FieldValueInvalid, &what);
            }
            self.optional("nodeName", Form::Subdomain, device.node_name.as_deref());
            if device.all_nodes == Some(false) {
                let what = "allNodes is false: leave it out or set it to true.";
                self.refuse_at("allNodes", Rule::FieldValueInvalid, what);
            }
            if let Some(selector) = &device.node_selector {
                self.within("nodeSelector", |check| check.node_selector(selector, false));
            }
        } else if let Some(first) = given.first() {
            let what = "a device says which nodes it is of only where the slice has \
                        `perDeviceNodeSelection: true`.";
            self.refuse_at(first, Rule::FieldValueInvalid, what);
        }
    }

    fn conditions(&mut self, device: &Device) {
        let (wait, fail) = (&device.binding_conditions, &device.binding_failure_conditions);
        let any = !wait.is_empty() || !fail.is_empty();
        if !self.gated("bindingConditions", Gate::DRADeviceBindingConditions, any) {
            return;
        }
        for (key, all) in [("bindingConditions", wait), ("bindingFailureConditions", fail)] {
            self.each_of(key, CONDITIONS, all, |check, condition| {
                if let Some(rule) = Form::LabelKey.broken_by(condition) {
                    let words = Form::LabelKey.words();
                    check.refuse(rule, &format!("{} has to be {words}.", shown(condition)));
                }
            });
            self.distinct(key, all.iter().map(String::as_str).enumerate(), "");
        }
        if let Some(both) = fail.iter().find(|condition| wait.contains(condition)) {
            let what = format!("{} is among the bindingConditions too.", shown(both));
            self.refuse_at("bindingFailureConditions", Rule::FieldValueInvalid, &what);
        }
        if wait.is_empty() != fail.is_empty() {
            let (has, lacks) = if fail.is_empty() {
                ("bindingConditions", "bindingFailureConditions")
            } else {
                ("bindingFailureConditions", "bindingConditions")
            };
            let what = format!("a device that has {has} needs {lacks} as well.");
            self.refuse_at(lacks, Rule::FieldValueInvalid, &what);
        }
    }

    fn partition_type(&mut self, spec: &ResourceSliceSpec) {
        let Some(name) = spec.partition_type_attribute.as_deref() else { return };
        let key = "partitionTypeAttribute";
        self.form(key, Form::FullyQualified, name);
        let consuming = |device: &&Device| !device.consumes_counters.is_empty();
        if !spec.devices.iter().any(|device| consuming(&device)) {
            let what = "it is only for slices with devices that consume counters.";
            self.refuse_at(key, Rule::FieldValueInvalid, what);
        }
        let bare = name.strip_prefix(&spec.driver).and_then(|rest| rest.strip_prefix('/'));
        for device in spec.devices.iter().filter(consuming) {
            let attribute = device.attributes.get(name);
            let attribute = attribute.or_else(|| device.attributes.get(bare?));
            if !matches!(attribute, Some(DeviceAttribute::String(_))) {
                let what = format!(
                    "device {} consumes counters and does not publish {} as a string.",
                    device.name,
                    shown(name)
                );
                self.refuse_at(key, Rule::FieldValueInvalid, &what);
            }
        }
    }

    fn skipped(&mut self, operations: &[String]) {
        let has = |name: &str| operations.iter().any(|operation| operation == name);
        if has("NodePrepareResources") && !has("NodeUnprepareResources") && !has("*") {
            let what =
                "NodePrepareResources can only be left out together with NodeUnprepareResources.";
            self.refuse_at("skipNodeOperations", Rule::FieldValueInvalid, what);
        }
    }
}

fn is_advanced(device: &Device) -> bool {
    let list = |attribute: &DeviceAttribute| match attribute {
        DeviceAttribute::Ints(_)
        | DeviceAttribute::Bools(_)
        | DeviceAttribute::Strings(_)
        | DeviceAttribute::Versions(_) => true,
        DeviceAttribute::Int(_)
        | DeviceAttribute::Bool(_)
        | DeviceAttribute::String(_)
        | DeviceAttribute::Version(_)
        | DeviceAttribute::Empty
        | DeviceAttribute::Unknown(_) => false,
    };
    !device.taints.is_empty()
        || !device.consumes_counters.is_empty()
        || device.attributes.values().any(list)
}

/// How many values an attribute counts as.
fn values(attribute: &DeviceAttribute) -> usize {
    let list = match attribute {
        DeviceAttribute::Ints(all) => all.len(),
        DeviceAttribute::Bools(all) => all.len(),
        DeviceAttribute::Strings(all) | DeviceAttribute::Versions(all) => all.len(),
        DeviceAttribute::Int(_)
        | DeviceAttribute::Bool(_)
        | DeviceAttribute::String(_)
        | DeviceAttribute::Version(_)
        | DeviceAttribute::Empty
        | DeviceAttribute::Unknown(_) => 1,
    };
    list.max(1)
}
