//! The functions at run time, chosen by name and by the values they meet, and what each call
//! costs. Which types they take is in [`signatures`].

pub(crate) mod convert;
pub(crate) mod lists;
pub(crate) mod quantity;
pub(crate) mod regex;
pub(crate) mod semver;
pub(crate) mod signatures;
pub(crate) mod strings;

use std::cmp::Ordering;
use std::sync::Arc;

use crate::cost::{self, Meter, tenth};
use crate::error::EvalErrorKind;
use crate::value::{Map, Shared, Value, equal};
use signatures::Function;

/// What a function gives.
pub(crate) type Outcome<'a> = Result<Value<'a>, EvalErrorKind>;

/// A fault in the function's own words.
pub(crate) fn failed<T>(message: impl Into<String>) -> Result<T, EvalErrorKind> {
    Err(EvalErrorKind::Failed(message.into()))
}

const NO_OVERLOAD: EvalErrorKind = EvalErrorKind::NoSuchOverload;

/// Calls a function; the receiver, if there is one, is the first argument.
pub(crate) fn call<'a>(function: Function, args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    match function {
        Function::Size => convert::size(args),
        Function::ToInt => convert::int(args),
        Function::ToUint => convert::uint(args),
        Function::ToDouble => convert::double(args),
        Function::ToStr => convert::string(args),
        Function::ToBytes => convert::bytes(args),
        Function::ToBool => convert::bool(args),
        Function::Dyn => args.first().cloned().ok_or(NO_OVERLOAD),
        Function::TypeOf => args.first().map(|v| Value::Type(v.type_name())).ok_or(NO_OVERLOAD),
        Function::StartsWith | Function::EndsWith | Function::Contains => {
            strings::test(function, args)
        }
        Function::Matches | Function::Find | Function::FindAll => {
            regex::dynamic(function, args, meter)
        }
        Function::IndexOf | Function::LastIndexOf => match args {
            [Value::List(list), item] => lists::index_of(function, list, item, meter),
            _ => strings::index_of(function, args, meter),
        },
        Function::CharAt => strings::char_at(args),
        Function::Join => strings::join(args, meter),
        Function::LowerAscii | Function::UpperAscii => strings::ascii_case(function, args, meter),
        Function::Replace => strings::replace(args, meter),
        Function::Split => strings::split(args, meter),
        Function::Substring => strings::substring(args, meter),
        Function::Trim => strings::trim(args, meter),
        Function::Quote => strings::quote(args, meter),
        Function::Quantity
        | Function::IsQuantity
        | Function::Sign
        | Function::IsInteger
        | Function::AsInteger
        | Function::AsApproximateFloat
        | Function::Add
        | Function::Sub => quantity::call(function, args),
        Function::IsLessThan => order(args).map(|o| Value::Bool(o == Ordering::Less)),
        Function::IsGreaterThan => order(args).map(|o| Value::Bool(o == Ordering::Greater)),
        Function::CompareTo => order(args).map(|o| Value::Int(o as i64)),
        Function::Semver
        | Function::IsSemver
        | Function::Major
        | Function::Minor
        | Function::Patch => semver::call(function, args),
        Function::IsSorted
        | Function::Sum
        | Function::Min
        | Function::Max
        | Function::Includes
        | Function::Slice
        | Function::Flatten
        | Function::Distinct
        | Function::Sort
        | Function::Reverse
        | Function::Range => lists::call(function, args, meter),
        Function::SetContains | Function::SetEquivalent | Function::SetIntersects => {
            lists::sets(function, args, meter)
        }
        Function::OptionalOf
        | Function::OptionalOfNonZero
        | Function::OptionalNone
        | Function::HasValue
        | Function::Value => optional(function, args),
        // Evaluated where their argument can be left out.
        Function::OrElse | Function::OrValue => Err(NO_OVERLOAD),
    }
}

/// Making optional values, and asking them.
fn optional<'a>(function: Function, args: &[Value<'a>]) -> Outcome<'a> {
    match (function, args) {
        (Function::OptionalNone, []) => Ok(Value::Optional(None)),
        (Function::OptionalOfNonZero, [value]) if is_zero(value) => Ok(Value::Optional(None)),
        (Function::OptionalOf | Function::OptionalOfNonZero, [value]) => {
            Ok(Value::some(value.clone()))
        }
        (Function::HasValue, [Value::Optional(inner)]) => Ok(Value::Bool(inner.is_some())),
        (Function::Value, [Value::Optional(Some(inner))]) => Ok((**inner).clone()),
        (Function::Value, [Value::Optional(None)]) => failed("optional.none() dereference"),
        _ => Err(NO_OVERLOAD),
    }
}

/// Order of two quantities or two versions.
fn order(args: &[Value<'_>]) -> Result<Ordering, EvalErrorKind> {
    match args {
        [Value::Quantity(a, _), Value::Quantity(b, _)] => Ok((**a).cmp(b)),
        [Value::Version(a), Value::Version(b)] => Ok(a.cmp_precedence(b)),
        _ => Err(NO_OVERLOAD),
    }
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(i) => *i == 0,
        Value::Uint(u) => *u == 0,
        Value::Double(d) => *d == 0.0,
        Value::Str(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => value.size() == 0,
        Value::Optional(inner) => inner.is_none(),
        Value::Quantity(..) | Value::Version(_) | Value::Type(_) | Value::Device(_) => false,
    }
}

/// A map of entries; of entries with equal keys the last counts.
pub(crate) fn make_map<'a>(pairs: Vec<(Value<'a>, Value<'a>)>, meter: &mut Meter) -> Outcome<'a> {
    let mut kept: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        meter.reserve(kept.len())?;
        match kept.iter_mut().find(|(other, _)| equal(other, &key, meter) == Ok(true)) {
            Some(entry) => entry.1 = value,
            None => kept.push((key, value)),
        }
    }
    Ok(Value::Map(Map::Pairs(Shared::Owned(Arc::from(kept)))))
}

/// What a call costs. An argument that failed counts as a simple value.
pub(crate) fn cost(function: Function, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
    let size = |at: usize| args.get(at).map_or(1, Value::size);
    match function {
        Function::StartsWith | Function::EndsWith => tenth(size(1)),
        Function::Contains => cost::contains(size(0), size(1)),
        Function::Matches | Function::Find | Function::FindAll => cost::regex(size(0), size(1)),
        Function::IsSorted
        | Function::Sum
        | Function::Min
        | Function::Max
        | Function::IndexOf
        | Function::LastIndexOf
        | Function::Includes => args.first().map_or(1, Value::traversal_cost),
        Function::LowerAscii
        | Function::UpperAscii
        | Function::Substring
        | Function::Trim
        | Function::Quote
        | Function::Quantity
        | Function::IsQuantity
        | Function::Semver
        | Function::IsSemver => tenth(size(0)),
        Function::Replace | Function::Split => tenth(size(0) * 2),
        Function::Join => tenth(result.map_or(1, Value::size) * 2),
        Function::ToStr if matches!(args.first(), Some(Value::Bytes(_))) => tenth(size(0)),
        Function::ToBytes if matches!(args.first(), Some(Value::Str(_))) => tenth(size(0)),
        Function::SetContains
        | Function::SetIntersects
        | Function::SetEquivalent
        | Function::Slice
        | Function::Range
        | Function::Reverse
        | Function::Flatten
        | Function::Distinct
        | Function::Sort => list_cost(function, args, result),
        Function::Size
        | Function::ToInt
        | Function::ToUint
        | Function::ToDouble
        | Function::ToStr
        | Function::ToBytes
        | Function::ToBool
        | Function::Dyn
        | Function::TypeOf
        | Function::CharAt
        | Function::Sign
        | Function::IsInteger
        | Function::AsInteger
        | Function::AsApproximateFloat
        | Function::Add
        | Function::Sub
        | Function::IsLessThan
        | Function::IsGreaterThan
        | Function::CompareTo
        | Function::Major
        | Function::Minor
        | Function::Patch
        | Function::OptionalOf
        | Function::OptionalOfNonZero
        | Function::OptionalNone
        | Function::HasValue
        | Function::Value
        | Function::OrElse
        | Function::OrValue => 1,
    }
}

/// What a call costs that makes a list or compares two.
fn list_cost(function: Function, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
    let size = |at: usize| args.get(at).map_or(1, Value::size);
    let (factor, size) = match function {
        Function::SetContains | Function::SetIntersects => {
            return size(0).saturating_mul(size(1)).saturating_add(1);
        }
        Function::SetEquivalent => {
            return size(0).saturating_mul(size(1)).saturating_mul(2).saturating_add(1);
        }
        Function::Flatten => match args.get(1) {
            Some(Value::Int(depth)) => (u64::try_from(*depth).unwrap_or(1), size(0)),
            _ => (1, size(0)),
        },
        Function::Distinct | Function::Sort => (2, size(0).saturating_mul(size(0))),
        _ => (1, result.map_or(1, Value::size)),
    };
    size.saturating_mul(factor).saturating_add(1 + cost::LIST)
}
