//! Limits of claims and templates, and of what classes have in common with them.

use std::collections::BTreeSet;

use phalanx_objects::resource::{
    CapacityRequirements, DerivedAttribute, DeviceAllocationMode, DeviceClaim, DeviceConstraint,
    DeviceRequest, DeviceSelector, DeviceToleration, OpaqueDeviceConfiguration,
};

use super::form::{Form, shown};
use super::{
    ALTERNATIVES, CONFIGS, CONSTRAINTS, Check, DERIVED, PARAMETERS_BYTES, REQUESTS, SELECTORS,
    TOLERATIONS,
};
use crate::compat::Gate;
use crate::lint::Rule;
use crate::lint::near::meant;

/// What `exactly` and an alternative have in common.
struct Asked<'a> {
    label: &'a str,
    class: &'a str,
    selectors: &'a [DeviceSelector],
    mode: &'a DeviceAllocationMode,
    count: i64,
    tolerations: &'a [DeviceToleration],
    capacity: Option<&'a CapacityRequirements>,
    derived: &'a [DerivedAttribute],
}

impl Check<'_> {
    pub(super) fn claim(&mut self, claim: &DeviceClaim) {
        let names = claim.requests.iter().map(|request| request.name.as_str()).enumerate();
        self.each_of("requests", REQUESTS, &claim.requests, |check, request| {
            check.request(request, claim);
        });
        if claim.requests.len() <= REQUESTS.entries {
            self.distinct("requests", names, "name");
        }
        let known = known_names(claim);
        self.each_of("constraints", CONSTRAINTS, &claim.constraints, |check, constraint| {
            check.constraint(constraint, &known);
        });
        self.each_of("config", CONFIGS, &claim.config, |check, config| {
            check.references(&config.requests, &known);
            check.opaque(config.opaque.as_ref());
        });
    }

    fn request(&mut self, request: &DeviceRequest, claim: &DeviceClaim) {
        self.form("name", Form::Label, &request.name);
        let list = !request.first_available.is_empty();
        let left = "a request without it has neither `exactly` nor `firstAvailable`";
        let gate = Gate::DRAPrioritizedList;
        let only = list && request.exactly.is_none();
        if !self.needed("firstAvailable", gate, only, left) && only {
            return;
        }
        match (&request.exactly, list) {
            (None, false) => {
                let what = "a request has exactly one of `exactly` and `firstAvailable`, and this one \
                            has neither. In resource.k8s.io/v1 class and count stand under `exactly`.";
                self.refuse(Rule::FieldValueRequired, what);
            }
            (Some(_), true) => {
                let what = "a request has exactly one of `exactly` and `firstAvailable`, and this one \
                            has both.";
                self.refuse(Rule::FieldValueInvalid, what);
            }
            (Some(_), false) | (None, true) => {}
        }
        if let Some(exactly) = &request.exactly {
            let asked = Asked {
                label: &request.name,
                class: &exactly.device_class_name,
                selectors: &exactly.selectors,
                mode: &exactly.allocation_mode,
                count: exactly.count,
                tolerations: &exactly.tolerations,
                capacity: exactly.capacity.as_ref(),
                derived: &exactly.derived_attributes,
            };
            self.within("exactly", |check| {
                check.asked(&asked, claim);
                check.gated(
                    "adminAccess",
                    Gate::DRAAdminAccess,
                    exactly.admin_access == Some(true),
                );
            });
        }
        let alternatives = &request.first_available;
        self.each_of("firstAvailable", ALTERNATIVES, alternatives, |check, sub| {
            check.form("name", Form::Label, &sub.name);
            let asked = Asked {
                label: &format!("{}/{}", request.name, sub.name),
                class: &sub.device_class_name,
                selectors: &sub.selectors,
                mode: &sub.allocation_mode,
                count: sub.count,
                tolerations: &sub.tolerations,
                capacity: sub.capacity.as_ref(),
                derived: &sub.derived_attributes,
            };
            check.asked(&asked, claim);
        });
        if alternatives.len() <= ALTERNATIVES.entries {
            let names = alternatives.iter().map(|sub| sub.name.as_str()).enumerate();
            self.distinct("firstAvailable", names, "name");
        }
    }

    fn asked(&mut self, asked: &Asked<'_>, claim: &DeviceClaim) {
        self.form("deviceClassName", Form::Subdomain, asked.class);
        self.selectors(asked.selectors);
        self.mode(asked.mode, asked.count);
        if self.gated("tolerations", Gate::DRADeviceTaints, !asked.tolerations.is_empty()) {
            self.each_of("tolerations", TOLERATIONS, asked.tolerations, Self::toleration);
        }
        self.gated("capacity", Gate::DRAConsumableCapacity, asked.capacity.is_some());
        let gate = Gate::DRADerivedAttributes;
        if self.gated("derivedAttributes", gate, !asked.derived.is_empty()) {
            self.derived(asked, claim);
        }
    }

    fn derived(&mut self, asked: &Asked<'_>, claim: &DeviceClaim) {
        self.each_of("derivedAttributes", DERIVED, asked.derived, |check, derived| {
            check.form("name", Form::FullyQualified, &derived.name);
            if derived.expression.is_empty() {
                let what = "the expression is missing.";
                check.refuse_at("expression", Rule::FieldValueRequired, what);
            }
            if !derived.name.is_empty() && !is_compared(&derived.name, asked.label, claim) {
                let what = format!(
                    "no constraint on request {} compares {}; a derived attribute serves constraints \
                     alone.",
                    shown(asked.label),
                    shown(&derived.name)
                );
                check.refuse_at("name", Rule::FieldValueInvalid, &what);
            }
        });
        if asked.derived.len() <= DERIVED.entries {
            let names = asked.derived.iter().map(|derived| derived.name.as_str()).enumerate();
            self.distinct("derivedAttributes", names, "name");
        }
    }

    fn mode(&mut self, mode: &DeviceAllocationMode, count: i64) {
        match mode {
            DeviceAllocationMode::All if count != 0 => {
                let what = format!(
                    "the allocationMode All takes every device, and the count {count} contradicts it."
                );
                self.refuse_at("count", Rule::FieldValueInvalid, &what);
            }
            // A missing count is 1.
            DeviceAllocationMode::ExactCount if count < 0 => {
                let what =
                    format!("the count is {count}, and at least 1 device has to be asked for.");
                self.refuse_at("count", Rule::FieldValueInvalid, &what);
            }
            DeviceAllocationMode::All | DeviceAllocationMode::ExactCount => {}
            DeviceAllocationMode::Other(word) => {
                let what =
                    format!("the allocationMode {} is neither ExactCount nor All.", shown(word));
                self.refuse_at("allocationMode", Rule::FieldValueNotSupported, &what);
            }
        }
    }

    pub(super) fn selectors(&mut self, selectors: &[DeviceSelector]) {
        self.each_of("selectors", SELECTORS, selectors, |check, selector| {
            if selector.cel.is_none() {
                let what = "a selector is an expression under `cel.expression`.";
                check.refuse_at("cel", Rule::FieldValueRequired, what);
            }
        });
    }

    fn constraint(&mut self, constraint: &DeviceConstraint, known: &BTreeSet<String>) {
        self.references(&constraint.requests, known);
        let (same, distinct) = (&constraint.match_attribute, &constraint.distinct_attribute);
        let gate = Gate::DRAConsumableCapacity;
        let left = "a constraint without it has no attribute to compare";
        let only = distinct.is_some() && same.is_none();
        let kept = self.needed("distinctAttribute", gate, only, left);
        // Of both the API server looks at the first alone; what a scheduler makes of that is told
        // where the claim is lowered.
        if same.is_none() && distinct.is_none() {
            let what = "a constraint has exactly one of `matchAttribute` and `distinctAttribute`, and \
                        this one has neither.";
            self.refuse(Rule::FieldValueRequired, what);
        }
        self.optional("matchAttribute", Form::FullyQualified, same.as_deref());
        if kept && same.is_none() {
            self.optional("distinctAttribute", Form::FullyQualified, distinct.as_deref());
        }
    }

    /// Names of requests in a constraint or a configuration.
    fn references(&mut self, names: &[String], known: &BTreeSet<String>) {
        self.each_of("requests", REQUESTS, names, |check, name| {
            if known.contains(name) {
                return;
            }
            let near = match meant(name, known.iter().map(String::as_str)) {
                Some(near) => format!("If {} is meant, name that.", shown(near)),
                None => {
                    let all: Vec<&str> = known.iter().map(String::as_str).collect();
                    format!("It has {}.", crate::lint::near::quoted(&all, 8))
                }
            };
            let what = format!("the claim has no request {}. {near}", shown(name));
            check.refuse(Rule::FieldValueInvalid, &what);
        });
        self.distinct("requests", names.iter().map(String::as_str).enumerate(), "");
    }

    pub(super) fn opaque(&mut self, opaque: Option<&OpaqueDeviceConfiguration>) {
        let Some(opaque) = opaque else {
            let what = "a configuration has `opaque` with a driver and its parameters.";
            self.refuse_at("opaque", Rule::FieldValueRequired, what);
            return;
        };
        self.within("opaque", |check| {
            check.form("driver", Form::Driver, &opaque.driver);
            match &opaque.parameters {
                serde_json::Value::Null => {
                    let what = "the parameters for the driver are missing; an empty object {} is enough.";
                    check.refuse_at("parameters", Rule::FieldValueRequired, what);
                }
                serde_json::Value::Object(_) => {
                    let bytes = opaque.parameters.to_string().len();
                    if bytes > PARAMETERS_BYTES {
                        let what = format!(
                            "the parameters are {bytes} bytes long, and at most {PARAMETERS_BYTES} are \
                             allowed."
                        );
                        check.refuse_at("parameters", Rule::FieldValueTooLong, &what);
                    }
                }
                serde_json::Value::Bool(_)
                | serde_json::Value::Number(_)
                | serde_json::Value::String(_)
                | serde_json::Value::Array(_) => {
                    let what = "the parameters have to be an object with fields.";
                    check.refuse_at("parameters", Rule::FieldValueInvalid, what);
                }
            }
        });
    }
}

/// Every name under which constraints and configurations find a request.
fn known_names(claim: &DeviceClaim) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for request in &claim.requests {
        known.insert(request.name.clone());
        let subs = request.first_available.iter();
        known.extend(subs.map(|sub| format!("{}/{}", request.name, sub.name)));
    }
    known
}

/// Whether a constraint on the request, or on the list that it is an alternative of, compares the
/// attribute.
fn is_compared(attribute: &str, label: &str, claim: &DeviceClaim) -> bool {
    let main = label.split('/').next().unwrap_or(label);
    claim.constraints.iter().any(|constraint| {
        let compared =
            constraint.match_attribute.as_ref().or(constraint.distinct_attribute.as_ref());
        let names = &constraint.requests;
        let covers = names.is_empty() || names.iter().any(|name| name == label || name == main);
        covers && compared.is_some_and(|compared| compared == attribute)
    })
}
