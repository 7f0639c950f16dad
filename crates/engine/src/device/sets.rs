//! Constraints whose values are lists, or differ from request to request.
//!
//! `matchAttribute` asks for an element that all devices have in common, `distinctAttribute` for no
//! element that two have in common; a scalar is a list of one (KEP-5491). A derived attribute stands
//! for the device's own in the constraints of its claim (KEP-6080).

use crate::change::Derived;
use crate::facts::{Alternative, AttributeValue, Traits};
use crate::name::SelectorId;

use super::matches::Matches;

/// Why a device has no value for a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// It lacks the attribute.
    Absent,
    /// The expression ends in an error.
    Error(SelectorId),
}

/// The value of an attribute for the constraints of a claim.
pub(super) fn value_of<'a>(
    matches: &'a Matches,
    alternative: &Alternative,
    traits: &'a Traits,
    attribute: &str,
) -> Result<&'a AttributeValue, Lack> {
    let Some(expression) = alternative.derives(attribute) else {
        return traits.attribute(attribute).ok_or(Lack::Absent);
    };
    match matches.derived(expression, traits.profile) {
        Some(Derived::Value(value)) => Ok(value),
        Some(Derived::Error) => Err(Lack::Error(expression)),
        None => Err(Lack::Absent),
    }
}

/// The scalars of a value: none where it can't be compared.
fn elements(value: &AttributeValue) -> &[AttributeValue] {
    match value {
        AttributeValue::List(all) => all,
        AttributeValue::Unset => &[],
        AttributeValue::Int(_)
        | AttributeValue::Bool(_)
        | AttributeValue::String(_)
        | AttributeValue::Version(_) => std::slice::from_ref(value),
    }
}

/// Whether a device of this value may come after those of the values `before`. A value that can't be
/// compared stands first or nowhere.
pub(super) fn accepts(distinct: bool, before: &[&AttributeValue], value: &AttributeValue) -> bool {
    let Some((first, others)) = before.split_first() else { return true };
    if *value == AttributeValue::Unset {
        return false;
    }
    let has = |of: &AttributeValue, one: &AttributeValue| elements(of).contains(one);
    let own = elements(value);
    if distinct {
        return before.iter().all(|other| !own.iter().any(|one| has(other, one)));
    }
    own.iter().any(|one| has(first, one) && others.iter().all(|other| has(other, one)))
}

/// What one alternative has to do with a rule over sets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link<'a> {
    /// Which rule.
    pub(super) rule: usize,
    /// The value of each position; none does not fit.
    pub(super) values: Vec<Option<&'a AttributeValue>>,
}

/// A rule over sets.
#[derive(Debug)]
pub(super) struct SetRule {
    pub(super) distinct: bool,
    /// Some value can't be compared: the order of the devices matters.
    pub(super) loose: bool,
}

/// Those chosen under a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Members<'a>(Vec<Member<'a>>);

#[derive(Clone, Copy, Debug)]
struct Member<'a> {
    /// Line and device: upstream's order.
    place: (usize, usize),
    value: &'a AttributeValue,
}

impl<'a> Members<'a> {
    /// Adds one, if the rule allows it; `in_order` where they come in upstream's order. Else what
    /// can't be compared is let in until [`stand`](Self::stand) is asked.
    pub(super) fn add(
        &mut self,
        rule: &SetRule,
        place: (usize, usize),
        value: &'a AttributeValue,
        in_order: bool,
    ) -> bool {
        let comparable = |value: &AttributeValue| in_order || *value != AttributeValue::Unset;
        let before: Vec<&AttributeValue> =
            self.0.iter().map(|m| m.value).filter(|v| comparable(v)).collect();
        let fits = !comparable(value) || accepts(rule.distinct, &before, value);
        if fits {
            self.0.push(Member { place, value });
        }
        fits
    }

    /// Takes out the last.
    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    /// Whether the whole set stands in upstream's order.
    pub(super) fn stand(&self, rule: &SetRule) -> bool {
        let mut sorted = self.0.clone();
        sorted.sort_by_key(|member| member.place);
        let values: Vec<&AttributeValue> = sorted.iter().map(|m| m.value).collect();
        (0..values.len()).all(|at| accepts(rule.distinct, &values[..at], values[at]))
    }
}
