//! What the API server of Kubernetes 1.37 would refuse of an object that it has not seen: counts,
//! lengths, names, and fields that exclude or need each other.
//!
//! Sources: the validation of `resource.k8s.io`, the tags of its types, and the constants beside
//! these. Who may write what, and what an update may change, is left to the server.

mod capacity;
mod claim;
pub(super) mod expression;
mod form;
mod pod;
mod slice;

use std::collections::BTreeSet;

use phalanx_objects::core::{TaintEffect, TolerationOperator};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::resource::{DeviceClass, DeviceTaint, DeviceTaintRule, DeviceToleration};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::{Lint, Refusal, Rule};
use crate::compat::{Compat, Gate};
use crate::world::World;
use form::{Form, shown};

/// The label of a namespace in which requests may have admin access.
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

/// The most entries that a list or map may have.
#[derive(Clone, Copy, Debug)]
struct Most {
    entries: usize,
    /// What they are.
    of: &'static str,
}

const fn most(entries: usize, of: &'static str) -> Most {
    Most { entries, of }
}

const REQUESTS: Most = most(32, "requests");
const ALTERNATIVES: Most = most(8, "alternatives");
const SELECTORS: Most = most(32, "selectors");
const CONSTRAINTS: Most = most(32, "constraints");
const CONFIGS: Most = most(32, "configurations");
const TOLERATIONS: Most = most(16, "tolerations");
const DERIVED: Most = most(32, "derived attributes");
const DEVICES: Most = most(128, "devices");
const DEVICES_ADVANCED: Most =
    most(64, "devices, as any of them has taints, consumes counters or has lists as attributes");
const COUNTER_SETS: Most = most(8, "counter sets");
const COUNTERS: Most = most(32, "counters");
const CONSUMED_SETS: Most = most(2, "counter sets that one device consumes");
const COMPATIBILITY_GROUPS: Most = most(2, "compatibility groups");
const PUBLISHED: Most = most(32, "attributes and capacities of one device");
const ATTRIBUTE_VALUES: Most = most(48, "attribute values of one device");
const TAINTS: Most = most(16, "taints");
const CONDITIONS: Most = most(4, "conditions");
const VALID_VALUES: Most = most(10, "valid values");

/// Bytes of a driver's own configuration.
const PARAMETERS_BYTES: usize = 10 * 1024;
/// Bytes of a text or version attribute.
const VALUE_BYTES: usize = 64;

/// Whether the API server has not seen the object yet.
pub(super) fn is_new(object: &Object) -> bool {
    let metadata = object.metadata();
    metadata.uid.is_empty() && metadata.resource_version.is_empty()
}

/// What the API server would refuse of an object, made or not; expressions aside.
pub(super) fn refusals(object: &Object, compat: &Compat) -> Vec<Refusal> {
    let mut check = Check { compat, found: Vec::new(), path: String::new() };
    match object {
        Object::ResourceClaim(claim) => {
            check.metadata(&claim.metadata);
            check.within("spec", |check| {
                check.within("devices", |check| check.claim(&claim.spec.devices));
            });
        }
        Object::ResourceClaimTemplate(template) => {
            check.metadata(&template.metadata);
            check.within("spec", |check| {
                check.within("spec", |check| {
                    check.within("devices", |check| check.claim(&template.spec.spec.devices));
                });
            });
        }
        Object::DeviceClass(class) => {
            check.metadata(&class.metadata);
            check.within("spec", |check| check.class(class));
        }
        Object::ResourceSlice(slice) => {
            check.metadata(&slice.metadata);
            check.within("spec", |check| check.slice(&slice.spec));
        }
        Object::DeviceTaintRule(rule) => {
            check.metadata(&rule.metadata);
            check.within("spec", |check| check.taint_rule(rule));
        }
        Object::NodeTopology(topology) => check.metadata(&topology.metadata),
        Object::Placement(placement) => check.metadata(&placement.metadata),
        Object::Scheduling(object) => check.metadata(object.metadata()),
        Object::Pod(_) | Object::Workload(_) => {
            for part in object.pod_parts() {
                check.path.clone_from(&part.at);
                check.pod(part.spec);
            }
        }
        Object::Node(_)
        | Object::Namespace(_)
        | Object::Service(_)
        | Object::ReplicationController(_)
        | Object::ServiceAccount(_)
        | Object::PriorityClass(_)
        | Object::RuntimeClass(_)
        | Object::LimitRange(_)
        | Object::ResourceQuota(_)
        | Object::PersistentVolume(_)
        | Object::PersistentVolumeClaim(_)
        | Object::StorageClass(_)
        | Object::CSINode(_)
        | Object::CSIDriver(_)
        | Object::CSIStorageCapacity(_)
        | Object::VolumeAttachment(_) => {}
    }
    check.found
}

/// What the API server would refuse of the objects of a world that it has not seen.
pub(super) fn find(world: &World, found: &mut Vec<Lint>) {
    let Some(objects) = world.objects() else { return };
    let kinds = Kind::ALL.iter().flat_map(|kind| objects.of_kind(*kind));
    for object in kinds.filter(|object| is_new(object)) {
        let refusals = refusals(object, world.lowering().compat());
        let reference = object.reference();
        let Some(source) = world.lowering().source(&reference) else { continue };
        for Refusal { rule, path, message } in refusals {
            found.push(Lint::new(rule, (&reference, source), &path, message));
        }
    }
    found.extend(admin_access(world));
}

/// Admin access in a namespace that is not labelled for it.
pub(super) fn admin_access(world: &World) -> Vec<Lint> {
    let mut found = Vec::new();
    let Some(objects) = world.objects() else { return found };
    for holder in super::asked::holders(world) {
        let namespace = ObjectRef {
            kind: Kind::Namespace,
            namespace: String::new(),
            name: holder.reference.namespace.clone(),
        };
        // Of a namespace that is not in the input nothing is known.
        let Some(Object::Namespace(namespace)) = objects.get(&namespace) else { continue };
        let created = !objects.get(&holder.reference).is_some_and(is_new);
        if created || namespace.metadata.labels.get(ADMIN_LABEL).is_some_and(|v| v == "true") {
            continue;
        }
        for (index, request) in holder.devices.requests.iter().enumerate() {
            if request.exactly.as_ref().is_some_and(|exactly| exactly.admin_access == Some(true)) {
                let message = format!(
                    "The API server refuses it: admin access is only for namespaces with the label \
                     {ADMIN_LABEL}: \"true\", and namespace {} does not have it. Label the namespace, \
                     or make the claim in one that has the label.",
                    namespace.metadata.name
                );
                let path = format!("{}.requests[{index}].exactly.adminAccess", holder.at);
                found.push(Lint::new(Rule::FieldValueForbidden, holder.place(), &path, message));
            }
        }
    }
    found
}

/// What is checked against, and what was found so far.
struct Check<'a> {
    compat: &'a Compat,
    found: Vec<Refusal>,
    path: String,
}

impl Check<'_> {
    fn within(&mut self, key: &str, look: impl FnOnce(&mut Self)) {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let before = self.path.len();
        if !key.chars().all(plain) || key.is_empty() {
            self.path.push_str(&format!("[{key:?}]"));
        } else {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(key);
        }
        look(self);
        self.path.truncate(before);
    }

    fn each<'t, T>(&mut self, key: &str, items: &'t [T], mut look: impl FnMut(&mut Self, &'t T)) {
        self.within(key, |check| {
            for (index, item) in items.iter().enumerate() {
                let before = check.path.len();
                check.path.push_str(&format!("[{index}]"));
                look(check, item);
                check.path.truncate(before);
            }
        });
    }

    /// The same for a list that has a limit: one that is too long is not looked at, as the API
    /// server does it.
    fn each_of<'t, T>(
        &mut self,
        key: &str,
        limit: Most,
        items: &'t [T],
        look: impl FnMut(&mut Self, &'t T),
    ) {
        if self.at_most(key, limit, items.len()) {
            self.each(key, items, look);
        }
    }

    /// Something that the API server refuses here.
    fn refuse(&mut self, rule: Rule, what: &str) {
        let message = format!("The API server refuses it: {what}");
        self.found.push(Refusal { rule, path: self.path.clone(), message });
    }

    fn refuse_at(&mut self, key: &str, rule: Rule, what: &str) {
        self.within(key, |check| check.refuse(rule, what));
    }

    fn at_most(&mut self, key: &str, limit: Most, entries: usize) -> bool {
        let within = entries <= limit.entries;
        if !within {
            let what = format!(
                "there are {entries}, and it allows at most {} {}.",
                limit.entries, limit.of
            );
            self.refuse_at(key, Rule::FieldValueTooMany, &what);
        }
        within
    }

    /// A text of a certain form. An empty one is missing.
    fn form(&mut self, key: &str, form: Form, text: &str) {
        if text.is_empty() {
            let what = format!("{key} is missing; it is {}.", form.words());
            self.refuse_at(key, Rule::FieldValueRequired, &what);
        } else if let Some(rule) = form.broken_by(text) {
            let what = format!("{key} is {}, and has to be {}.", shown(text), form.words());
            self.refuse_at(key, rule, &what);
        }
    }

    fn optional(&mut self, key: &str, form: Form, text: Option<&str>) {
        if let Some(text) = text {
            self.form(key, form, text);
        }
    }

    /// The keys of a map.
    fn keys<'k>(&mut self, form: Form, keys: impl Iterator<Item = &'k String>) {
        for key in keys {
            if let Some(rule) = form.broken_by(key) {
                let what = format!("the name {} has to be {}.", shown(key), form.words());
                self.refuse_at(key, rule, &what);
            }
        }
    }

    /// Entries that are there twice.
    fn distinct<'k>(
        &mut self,
        key: &str,
        names: impl Iterator<Item = (usize, &'k str)>,
        field: &str,
    ) {
        let mut seen = BTreeSet::new();
        let dot = if field.is_empty() { "" } else { "." };
        for (index, name) in names {
            if !name.is_empty() && !seen.insert(name) {
                let before = self.path.len();
                let stop = if before == 0 { "" } else { "." };
                self.path.push_str(&format!("{stop}{key}[{index}]{dot}{field}"));
                let what = match field {
                    "" => format!("{} is there twice.", shown(name)),
                    field => format!("two entries have the {field} {}.", shown(name)),
                };
                self.refuse(Rule::FieldValueDuplicate, &what);
                self.path.truncate(before);
            }
        }
    }

    /// A field that the API server drops while its gate is off; answers whether it is kept, and so
    /// to be looked at.
    fn gated(&mut self, key: &str, gate: Gate, is_set: bool) -> bool {
        if is_set && !self.compat.is_on(gate) {
            let message = format!(
                "The API server drops the field {key} without a word, for it needs the feature gate \
                 {}, which is off in Kubernetes {}. Leave it out, or switch the gate on.",
                gate.as_str(),
                self.compat.version()
            );
            self.within(key, |check| {
                let path = check.path.clone();
                check.found.push(Refusal { rule: Rule::FieldDropped, path, message });
            });
        }
        self.compat.is_on(gate)
    }

    /// A field that the API server drops while its gate is off, and without which it refuses what is
    /// left; answers whether it is kept.
    fn needed(&mut self, key: &str, gate: Gate, is_set: bool, left: &str) -> bool {
        let kept = self.compat.is_on(gate);
        if is_set && !kept {
            let what = format!(
                "the field {key} is dropped, for it needs the feature gate {}, which is off in Kubernetes \
                 {}, and {left}.",
                gate.as_str(),
                self.compat.version()
            );
            self.refuse_at(key, Rule::FieldValueRequired, &what);
        }
        kept
    }

    fn metadata(&mut self, metadata: &ObjectMeta) {
        self.within("metadata", |check| {
            if !metadata.name.is_empty() {
                check.form("name", Form::Subdomain, &metadata.name);
            } else if !metadata.generate_name.is_empty() {
                // The letters that the API server adds are such that a hyphen may stand before them.
                check.form(
                    "generateName",
                    Form::Subdomain,
                    &format!("{}x", metadata.generate_name),
                );
            }
            if !metadata.namespace.is_empty() {
                check.form("namespace", Form::Label, &metadata.namespace);
            }
            check.within("labels", |check| {
                check.keys(Form::LabelKey, metadata.labels.keys());
                for (key, value) in &metadata.labels {
                    if !value.is_empty() {
                        check.form(key, Form::LabelValue, value);
                    }
                }
            });
        });
    }

    fn class(&mut self, class: &DeviceClass) {
        let spec = &class.spec;
        self.selectors(&spec.selectors);
        self.each_of("config", CONFIGS, &spec.config, |check, config| {
            check.opaque(config.opaque.as_ref());
        });
        let resource = spec.extended_resource_name.as_deref();
        if self.gated("extendedResourceName", Gate::DRAExtendedResource, resource.is_some()) {
            self.optional("extendedResourceName", Form::ExtendedResource, resource);
        }
    }

    fn taint_rule(&mut self, rule: &DeviceTaintRule) {
        if let Some(selector) = &rule.spec.device_selector {
            self.within("deviceSelector", |check| {
                check.optional("driver", Form::Driver, selector.driver.as_deref());
                check.optional("pool", Form::Pool, selector.pool.as_deref());
                check.optional("device", Form::Label, selector.device.as_deref());
            });
        }
        self.within("taint", |check| check.taint(&rule.spec.taint));
    }

    fn taint(&mut self, taint: &DeviceTaint) {
        self.form("key", Form::LabelKey, &taint.key);
        if !taint.value.is_empty() {
            self.form("value", Form::LabelValue, &taint.value);
        }
        if taint.effect == TaintEffect::Unset {
            let what = "a taint has an effect: NoSchedule, NoExecute or None.";
            self.refuse_at("effect", Rule::FieldValueRequired, what);
        }
        self.effect(&taint.effect);
    }

    fn effect(&mut self, effect: &TaintEffect) {
        match effect {
            TaintEffect::Unset
            | TaintEffect::NoSchedule
            | TaintEffect::NoExecute
            | TaintEffect::None => {}
            TaintEffect::PreferNoSchedule | TaintEffect::Other(_) => {
                let what = format!(
                    "the effect {} is none of a device taint; these are NoSchedule, NoExecute and None.",
                    shown(effect.as_str())
                );
                self.refuse_at("effect", Rule::FieldValueNotSupported, &what);
            }
        }
    }

    fn toleration(&mut self, toleration: &DeviceToleration) {
        if !toleration.key.is_empty() {
            self.form("key", Form::LabelKey, &toleration.key);
        }
        match &toleration.operator {
            TolerationOperator::Exists => {
                if !toleration.value.is_empty() {
                    let what = format!(
                        "the operator Exists takes every value, and the value {} contradicts it.",
                        shown(&toleration.value)
                    );
                    self.refuse_at("value", Rule::FieldValueInvalid, &what);
                }
            }
            TolerationOperator::Equal => {
                if !toleration.value.is_empty() {
                    self.form("value", Form::LabelValue, &toleration.value);
                }
            }
            other @ (TolerationOperator::Gt
            | TolerationOperator::Lt
            | TolerationOperator::Other(_)) => {
                let what = format!(
                    "the operator {} is none of a device toleration; these are Exists and Equal.",
                    shown(other.as_str())
                );
                self.refuse_at("operator", Rule::FieldValueNotSupported, &what);
            }
        }
        self.effect(&toleration.effect);
    }
}
