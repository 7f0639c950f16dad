//! Limits of capacities that may be shared: what a share may be has to fit the whole, and itself.

use phalanx_objects::Quantity;
use phalanx_objects::resource::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, Device, DeviceCapacity,
};

use super::{Check, VALID_VALUES};
use crate::compat::Gate;
use crate::lint::Rule;

impl Check<'_> {
    pub(super) fn capacities(&mut self, device: &Device) {
        let shared = device.allow_multiple_allocations == Some(true);
        let gate = Gate::DRAConsumableCapacity;
        if !self.gated(
            "allowMultipleAllocations",
            gate,
            device.allow_multiple_allocations.is_some(),
        ) {
            return;
        }
        self.within("capacity", |check| {
            for (name, capacity) in &device.capacity {
                let Some(policy) = &capacity.request_policy else { continue };
                check.within(name, |check| {
                    check.within("requestPolicy", |check| {
                        if shared {
                            check.policy(capacity, policy);
                        } else {
                            let what = "a requestPolicy is only for devices with \
                                        `allowMultipleAllocations: true`.";
                            check.refuse(Rule::FieldValueForbidden, what);
                        }
                    });
                });
            }
        });
    }

    fn policy(&mut self, capacity: &DeviceCapacity, policy: &CapacityRequestPolicy) {
        let (values, range) = (&policy.valid_values, policy.valid_range.as_ref());
        if !values.is_empty() && range.is_some() {
            let what = "a policy has one of `validValues` and `validRange`, and this one has both.";
            self.refuse(Rule::FieldValueForbidden, what);
            return;
        }
        let Some(default) = policy.default.as_ref() else {
            if !values.is_empty() || range.is_some() {
                let what = "a policy with validValues or validRange needs a default.";
                self.refuse_at("default", Rule::FieldValueRequired, what);
            }
            return;
        };
        if !values.is_empty() {
            self.valid_values(capacity, values, default);
        }
        if let Some(range) = range {
            self.within("validRange", |check| check.range(&capacity.value, default, range));
        }
    }

    fn valid_values(&mut self, capacity: &DeviceCapacity, values: &[Quantity], default: &Quantity) {
        let whole = &capacity.value;
        let mut before: Option<&Quantity> = None;
        self.each_of("validValues", VALID_VALUES, values, |check, value| {
            match before.map(|before| (before.cmp(value), before)) {
                Some((std::cmp::Ordering::Greater, before)) => {
                    let what = format!("the values have to ascend, and {value} follows {before}.");
                    check.refuse(Rule::FieldValueInvalid, &what);
                }
                Some((std::cmp::Ordering::Equal, _)) => {
                    check.refuse(Rule::FieldValueDuplicate, &format!("{value} is there twice."));
                }
                Some((std::cmp::Ordering::Less, _)) | None => {}
            }
            if value > whole {
                let what = format!("{value} is more than the whole capacity, {whole}.");
                check.refuse(Rule::FieldValueInvalid, &what);
            }
            before = Some(value);
        });
        if !values.contains(default) {
            let what = format!("the default {default} is none of the validValues.");
            self.refuse_at("default", Rule::FieldValueInvalid, &what);
        }
    }

    fn range(&mut self, whole: &Quantity, default: &Quantity, range: &CapacityRequestPolicyRange) {
        let Some(min) = range.min.as_ref() else {
            self.refuse_at("min", Rule::FieldValueRequired, "a range needs its least value.");
            return;
        };
        let invalid = Rule::FieldValueInvalid;
        if min > whole {
            let what = format!("min {min} is more than the whole capacity, {whole}.");
            self.refuse_at("min", invalid, &what);
        }
        if default < min {
            self.refuse_at("min", invalid, &format!("the default {default} is below min {min}."));
        }
        if let Some(max) = range.max.as_ref() {
            if min > max {
                self.refuse_at("max", invalid, &format!("max {max} is below min {min}."));
            }
            if max > whole {
                let what = format!("max {max} is more than the whole capacity, {whole}.");
                self.refuse_at("max", invalid, &what);
            }
            if default > max {
                self.refuse_at(
                    "max",
                    invalid,
                    &format!("the default {default} is above max {max}."),
                );
            }
        }
        if let Some(step) = range.step.as_ref() {
            self.within("step", |check| check.step(whole, default, range, min, step));
        }
    }

    fn step(
        &mut self,
        whole: &Quantity,
        default: &Quantity,
        range: &CapacityRequestPolicyRange,
        min: &Quantity,
        step: &Quantity,
    ) {
        if step.sign() <= 0 {
            let what = format!("step is {step}, and has to be above 0.");
            self.refuse(Rule::FieldValueInvalid, &what);
            return;
        }
        if min.checked_add(step).is_none_or(|first| first > *whole) {
            let what =
                format!("min {min} and one step {step} are more than the whole capacity, {whole}.");
            self.refuse(Rule::FieldValueInvalid, &what);
        }
        let fractional = self.compat.is_on(Gate::DRAFractionalCapacityRange);
        for (name, value) in [("default", Some(default)), ("max", range.max.as_ref())] {
            let Some(value) = value else { continue };
            if is_off_step(value, min, step, fractional) {
                let what = format!(
                    "{name} {value} is not min {min} and a whole number of steps of {step}."
                );
                self.refuse(Rule::FieldValueInvalid, &what);
            }
        }
    }
}

/// Whether a value is not min and a number of steps: in thousandths where fractions are allowed and
/// one of them has any, in whole units else. What does not fit 64 bits is told apart from nothing.
fn is_off_step(value: &Quantity, min: &Quantity, step: &Quantity, fractional: bool) -> bool {
    let units = |quantity: &Quantity| {
        if fractional { quantity.milli_ceil() } else { quantity.value_ceil() }
    };
    let (value, min, step) = (units(value), units(min), units(step));
    let Some(above) = value.checked_sub(min) else { return false };
    above.checked_rem(step).is_some_and(|rest| rest != 0)
}
