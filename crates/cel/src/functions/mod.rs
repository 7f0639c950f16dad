//! The functions at run time, chosen by name and by the values they meet, and what each call
//! costs. Which types they take is in [`signatures`].

pub(crate) mod convert;
pub(crate) mod format;
pub(crate) mod lists;
pub(crate) mod named;
pub(crate) mod net;
pub(crate) mod quantity;
pub(crate) mod regex;
pub(crate) mod semver;
pub(crate) mod signatures;
pub(crate) mod strings;
pub(crate) mod time;
pub(crate) mod url;

use std::cmp::Ordering;
use std::sync::Arc;

use crate::cost::{self, Meter, tenth};
use crate::error::EvalErrorKind;
use crate::ir::Variant;
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
#[expect(clippy::too_many_lines, reason = "a table: a row for each function, and no more to it")]
pub(crate) fn call<'a>(function: Function, args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    match function {
        Function::Size => convert::size(args),
        Function::ToInt => convert::int(args),
        Function::ToUint => convert::uint(args),
        Function::ToDouble => convert::double(args),
        Function::ToStr => convert::string(args),
        Function::ToBytes => convert::bytes(args),
        Function::ToBool => convert::bool(args),
        Function::ToDuration | Function::ToTimestamp => time::convert(function, args),
        Function::TimePart(part) => time::part(part, args, meter),
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
        Function::Format => format::call(args, meter),
        Function::Url | Function::IsUrl | Function::UrlPart(_) => url::call(function, args, meter),
        Function::Ip
        | Function::IsIp
        | Function::IsCanonical
        | Function::Family
        | Function::IpTest(_)
        | Function::Cidr
        | Function::IsCidr
        | Function::ContainsIp
        | Function::ContainsCidr
        | Function::PrefixLength
        | Function::Masked => net::call(function, args),
        Function::NamedFormat(_) | Function::FormatNamed | Function::Validate => {
            named::call(function, args, meter)
        }
        // No value can be made that one of these would take.
        Function::Authorization
        | Function::AuthorizationSelector
        | Function::AuthorizationCheck => Err(NO_OVERLOAD),
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
        | Function::SortByKeys
        | Function::Reverse
        | Function::First
        | Function::Last
        | Function::OptionalUnwrap
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
        Value::Duration(nanos) => *nanos == 0,
        Value::Timestamp(timestamp) => timestamp.instant() == (time::MIN_SECONDS, 0),
        // Not even an optional value that is absent.
        Value::Ip(_) | Value::Cidr(..) | Value::Url(_) | Value::Format(_) | Value::Optional(_) => {
            false
        }
        Value::Quantity(..) | Value::Version(_) | Value::Type(_) | Value::Device(_) => false,
    }
}

/// Whether upstream's maps and sets break down over a value, for its language can't hash it.
pub(crate) fn is_unhashable(value: &Value<'_>) -> bool {
    matches!(value, Value::Version(_) | Value::Format(_) | Value::Bytes(_))
}

/// A map of entries; of entries with equal keys the last counts.
pub(crate) fn make_map<'a>(pairs: Vec<(Value<'a>, Value<'a>)>, meter: &mut Meter) -> Outcome<'a> {
    let mut kept: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        if is_unhashable(&key) {
            return Err(EvalErrorKind::Internal);
        }
        meter.reserve(kept.len())?;
        match kept.iter_mut().find(|(other, _)| equal(other, &key, meter) == Ok(true)) {
            Some(entry) => entry.1 = value,
            None => kept.push((key, value)),
        }
    }
    Ok(Value::Map(Map::Pairs(Shared::Owned(Arc::from(kept)))))
}

/// What a call costs; an argument that
/// failed counts as a simple value.
#[expect(clippy::too_many_lines, reason = "a table: a row for each function, and no more to it")]
pub(crate) fn cost(
    function: Function,
    variant: Variant,
    args: &[Value<'_>],
    result: Option<&Value<'_>>,
) -> u64 {
    let size = |at: usize| args.get(at).map_or(1, Value::size);
    let single = variant != Variant::Open;
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
        | Function::Format
        | Function::Quantity
        | Function::IsQuantity
        | Function::Semver
        | Function::IsSemver
        | Function::Url
        | Function::Cidr
        | Function::IsIp
        | Function::IsCidr => tenth(size(0)),
        Function::Ip => match args {
            [Value::Cidr(..)] => 1,
            _ => tenth(size(0)),
        },
        Function::Replace | Function::Split | Function::IsCanonical => tenth(size(0) * 2),
        Function::Join => tenth(result.map_or(1, Value::size) * 2),
        Function::ContainsIp | Function::ContainsCidr => network_cost(function, variant, args),
        Function::Validate => match args {
            [Value::Format(format), text] => cost::regex(text.size(), named::pattern_size(*format)),
            _ => 1,
        },
        Function::ToStr if single && matches!(args.first(), Some(Value::Bytes(_))) => {
            tenth(size(0))
        }
        Function::ToBytes if single && matches!(args.first(), Some(Value::Str(_))) => {
            tenth(size(0))
        }
        Function::AuthorizationCheck => 350_000,
        Function::AuthorizationSelector => cost::LIST + tenth(size(1)) + size(1).div_ceil(2) * 50,
        Function::Sort | Function::SortByKeys if !single => 1,
        Function::SetContains
        | Function::SetIntersects
        | Function::SetEquivalent
        | Function::Slice
        | Function::Range
        | Function::Reverse
        | Function::Flatten
        | Function::Distinct
        | Function::Sort
        | Function::SortByKeys => list_cost(function, args, result),
        Function::Size
        | Function::ToInt
        | Function::ToUint
        | Function::ToDouble
        | Function::ToStr
        | Function::ToBytes
        | Function::ToBool
        | Function::ToDuration
        | Function::ToTimestamp
        | Function::TimePart(_)
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
        | Function::IsUrl
        | Function::UrlPart(_)
        | Function::Family
        | Function::IpTest(_)
        | Function::PrefixLength
        | Function::Masked
        | Function::NamedFormat(_)
        | Function::FormatNamed
        | Function::Authorization
        | Function::First
        | Function::Last
        | Function::OptionalUnwrap
        | Function::OptionalOf
        | Function::OptionalOfNonZero
        | Function::OptionalNone
        | Function::HasValue
        | Function::Value
        | Function::OrElse
        | Function::OrValue => 1,
    }
}

/// What it costs to ask whether a network contains something.
fn network_cost(function: Function, variant: Variant, args: &[Value<'_>]) -> u64 {
    let size = |at: usize| args.get(at).map_or(1, Value::size);
    let text = if variant == Variant::Text { tenth(size(1)) } else { 0 };
    let inner = if function == Function::ContainsCidr { tenth(size(0)) + 1 } else { 0 };
    tenth(size(0) * 2) + inner + text
}

/// What a call costs that makes a list or compares two.
fn list_cost(function: Function, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
    let size = |at: usize| args.get(at).map_or(1, Value::size);
    let made = 1 + cost::LIST;
    let result = result.map_or(1, Value::size);
    match function {
        Function::SetContains | Function::SetIntersects => {
            size(0).saturating_mul(size(1)).saturating_add(1)
        }
        Function::SetEquivalent => {
            size(0).saturating_mul(size(1)).saturating_mul(2).saturating_add(1)
        }
        Function::Flatten => {
            let depth = match args.get(1) {
                Some(Value::Int(depth)) if *depth >= 0 => *depth as f64,
                _ => 1.0,
            };
            counted(size(0) as f64 * depth).saturating_add(made)
        }
        Function::Distinct | Function::Sort => compared(args.first()).saturating_add(made),
        Function::SortByKeys => compared(args.get(1)).saturating_add(made),
        _ => result.saturating_add(made),
    }
}

/// A number as upstream's language has it as an integer, which it is not beyond its range.
fn counted(number: f64) -> u64 {
    if number < u64::MAX as f64 { number as u64 } else { 1 << 63 }
}

/// Comparing each element of a list with each: twice, and a tenth more if they are texts.
fn compared(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else { return 2 };
    let size = list.len() as u64;
    let pairs = size.saturating_mul(size);
    match list.get(0) {
        Some(Value::Str(_) | Value::Bytes(_)) => (pairs as f64 * 2.1) as u64,
        _ => pairs.saturating_mul(2),
    }
}
