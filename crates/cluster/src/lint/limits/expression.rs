//! Expressions as the API server compiles those that users send: with what its compatibility version
//! and its gates allow, and within the limit of estimated cost.

use phalanx_cel::{COST_LIMIT, CompileError, CompileErrorKind, Environment, Gates, Program};
use phalanx_objects::Object;
use phalanx_objects::resource::{DeviceClaim, DeviceSelector};

use crate::compat::{Compat, Gate, Version};
use crate::lint::asked::asks;
use crate::lint::bench::texts;
use crate::lint::{Refusal, Rule};

/// What is wrong with an expression: rule, sentence, line and column.
pub(in crate::lint) type Fault = (Rule, String, Option<(usize, usize)>);

/// What expressions may use that are new to the API server.
pub(in crate::lint) fn environment(compat: &Compat) -> Environment {
    let minor = match compat.version() {
        Version::V1_34 => 34,
        Version::V1_35 => 35,
        Version::V1_36 => 36,
        Version::V1_37 => 37,
    };
    let gates = Gates {
        consumable_capacity: compat.is_on(Gate::DRAConsumableCapacity),
        list_type_attributes: compat.is_on(Gate::DRAListTypeAttributes),
    };
    Environment::new_expressions(phalanx_cel::Version::new(1, minor), gates)
}

/// Why the API server would refuse a selector's expression, if it would.
pub(in crate::lint) fn fault(expression: &str, environment: &Environment) -> Option<Fault> {
    match Program::compile(expression, environment) {
        Err(error) => Some(invalid(&error)),
        Ok(program) if program.estimate() > COST_LIMIT => {
            let message = format!(
                "The API server refuses it: in the worst case the selector costs {}, and at most \
                 {COST_LIMIT} is allowed. Nest fewer macros such as all() and exists(), or write shorter \
                 lists and texts.",
                match program.estimate() {
                    u64::MAX => "more than can be counted".to_owned(),
                    cost => format!("{cost} units"),
                }
            );
            Some((Rule::SelectorTooCostly, message, None))
        }
        Ok(_) => None,
    }
}

/// What to say of an expression that does not compile.
pub(in crate::lint) fn invalid(error: &CompileError) -> Fault {
    let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!(" {hint}."));
    let message = format!("The selector does not compile: {}.{hint}", error.message);
    let rule = match error.kind {
        CompileErrorKind::TooLong => Rule::FieldValueTooLong,
        CompileErrorKind::Syntax
        | CompileErrorKind::UndeclaredReference
        | CompileErrorKind::Unsupported
        | CompileErrorKind::UndefinedField
        | CompileErrorKind::NoSuchOverload
        | CompileErrorKind::WrongType
        | CompileErrorKind::NotBool
        | CompileErrorKind::NotAttribute
        | CompileErrorKind::TooDeep
        | CompileErrorKind::BadConstant => Rule::SelectorInvalid,
    };
    (rule, message, Some((error.line, error.column)))
}

/// What is wrong with the derived attributes of a claim, each with its field: their expressions, and
/// what they may cost together (`DeviceClaimDerivedAttributeCELMaxCost`).
pub(in crate::lint) fn derived(
    claim: &DeviceClaim,
    at: &str,
    environment: &Environment,
) -> Vec<(String, Fault)> {
    let mut found = Vec::new();
    let mut total = 0_u64;
    for ask in asks(claim, at) {
        for (index, derived) in ask.derived.iter().enumerate() {
            let path = format!("{}.derivedAttributes[{index}].expression", ask.path);
            if derived.expression.is_empty() {
                continue;
            }
            match Program::compile_attribute(&derived.expression, environment) {
                Ok(program) => total = total.saturating_add(program.estimate()),
                Err(error) => {
                    let (rule, message, place) = invalid(&error);
                    let message = message.replacen("The selector", "The derived attribute", 1);
                    found.push((path, (rule, message, place)));
                }
            }
        }
    }
    if total > COST_LIMIT {
        let message = format!(
            "The API server refuses it: in the worst case the derived attributes of the claim cost more \
             together than the {COST_LIMIT} units that are allowed. Use fewer, or simpler ones."
        );
        found.push((at.to_owned(), (Rule::FieldValueForbidden, message, None)));
    }
    found
}

/// The selectors of an object that the API server would refuse.
pub(in crate::lint) fn refusals(object: &Object, compat: &Compat) -> Vec<Refusal> {
    let lists: Vec<(String, &[DeviceSelector])> = if let Object::DeviceClass(class) = object {
        vec![("spec".to_owned(), class.spec.selectors.as_slice())]
    } else {
        let asks = object.device_claim().map(|(claim, at)| asks(claim, at));
        asks.unwrap_or_default().into_iter().map(|ask| (ask.path, ask.selectors)).collect()
    };
    let new = environment(compat);
    let mut found = Vec::new();
    for (path, selectors) in lists {
        for (index, text) in texts(selectors) {
            let Some((rule, message, at)) = fault(text, &new) else { continue };
            let message = match at {
                Some((line, column)) => format!("{message} (line {line}, column {column})"),
                None => message,
            };
            let path = format!("{path}.selectors[{index}].cel.expression");
            found.push(Refusal { rule, path, message });
        }
    }
    found
}
