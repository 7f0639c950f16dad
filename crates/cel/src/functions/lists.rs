//! Lists, and lists as sets.

use std::cmp::Ordering;
use std::sync::Arc;

use super::signatures::Function;
use super::{NO_OVERLOAD, Outcome, failed};
use crate::ast::Arithmetic;
use crate::cost::Meter;
use crate::error::EvalErrorKind;
use crate::ops;
use crate::value::{List, Value, compare, equal};

/// Elements that `lists.range` makes at most.
const RANGE_LIMIT: i64 = 1_000_000;

pub(crate) fn call<'a>(function: Function, args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    if let [Value::List(list)] = args
        && !takes(function, list)
    {
        return Err(NO_OVERLOAD);
    }
    match (function, args) {
        (Function::IsSorted, [Value::List(list)]) => is_sorted(list, meter),
        (Function::Sum, [Value::List(list)]) => sum(list, meter),
        (Function::Min, [Value::List(list)]) => extreme(list, "min", Ordering::Greater, meter),
        (Function::Max, [Value::List(list)]) => extreme(list, "max", Ordering::Less, meter),
        (Function::Includes, [target, item]) => includes(target, item, meter),
        (Function::Slice, [Value::List(list), Value::Int(start), Value::Int(end)]) => {
            slice(list, *start, *end, meter)
        }
        (Function::Flatten, [Value::List(list)]) => flatten(list, 1, meter),
        (Function::Flatten, [Value::List(_), Value::Int(depth)]) if *depth < 0 => {
            failed("level must be non-negative")
        }
        (Function::Flatten, [Value::List(list), Value::Int(depth)]) => flatten(list, *depth, meter),
        (Function::Distinct, [Value::List(list)]) => distinct(list, meter),
        (Function::Sort, [Value::List(list)]) => sort(list, list, meter),
        (Function::SortByKeys, [Value::List(list), Value::List(keys)]) => sort(list, keys, meter),
        (Function::First, [Value::List(list)]) => Ok(Value::Optional(list.get(0).map(Arc::new))),
        (Function::Last, [Value::List(list)]) => {
            let last = list.len().checked_sub(1).and_then(|at| list.get(at));
            Ok(Value::Optional(last.map(Arc::new)))
        }
        (Function::OptionalUnwrap, [Value::List(list)]) => unwrapped(list, meter),
        (Function::Reverse, [Value::List(list)]) => {
            let mut values = values(list, meter)?;
            values.reverse();
            Ok(Value::list(values))
        }
        (Function::Range, [Value::Int(count)]) if *count < 0 => {
            failed(format!("lists.range: size must be non-negative, got {count}"))
        }
        (Function::Range, [Value::Int(count)]) => {
            if *count > RANGE_LIMIT {
                return failed(format!(
                    "lists.range: size {count} exceeds maximum allowed ({RANGE_LIMIT})"
                ));
            }
            meter.reserve(usize::try_from(*count).unwrap_or(0))?;
            Ok(Value::list((0..*count).map(Value::Int).collect()))
        }
        _ => Err(NO_OVERLOAD),
    }
}

/// Whether a function over elements with an order, or with a sum, takes a list. Upstream looks at
/// the first element.
fn takes(function: Function, list: &List<'_>) -> bool {
    let Some(first) = list.get(0) else { return true };
    match function {
        Function::IsSorted | Function::Min | Function::Max => {
            matches!(first, Value::Double(_)) || compare(&first, &first).is_ok()
        }
        Function::Sum => {
            matches!(first, Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_))
        }
        _ => true,
    }
}

fn values<'a>(list: &List<'a>, meter: &mut Meter) -> Result<Vec<Value<'a>>, EvalErrorKind> {
    meter.reserve(list.len())?;
    Ok(list.iter().collect())
}

fn is_sorted<'a>(list: &List<'_>, meter: &mut Meter) -> Outcome<'a> {
    meter.reserve(list.len())?;
    for (a, b) in list.iter().zip(list.iter().skip(1)) {
        if order(&a, &b)? == Some(Ordering::Greater) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(list: &List<'a>, meter: &mut Meter) -> Outcome<'a> {
    meter.reserve(list.len())?;
    let mut elements = list.iter();
    let Some(mut sum) = elements.next() else { return Ok(Value::Int(0)) };
    for element in elements {
        sum = ops::arithmetic(Arithmetic::Add, &sum, &element, meter)?;
    }
    match sum {
        Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_) => Ok(sum),
        _ => Err(NO_OVERLOAD),
    }
}

/// Order of two elements, `None` if their types differ: upstream then keeps the first.
fn order(a: &Value<'_>, b: &Value<'_>) -> Result<Option<Ordering>, EvalErrorKind> {
    for value in [a, b] {
        // A value that has no order with itself has none at all.
        if !matches!(value, Value::Double(_)) {
            compare(value, value)?;
        }
    }
    Ok(compare(a, b).unwrap_or(None))
}

/// The element that is replaced by others whenever it compares to them as `worse`.
fn extreme<'a>(list: &List<'a>, name: &str, worse: Ordering, meter: &mut Meter) -> Outcome<'a> {
    meter.reserve(list.len())?;
    let mut elements = list.iter();
    let Some(mut best) = elements.next() else {
        return failed(format!("{name} called on empty list"));
    };
    for element in elements {
        if order(&best, &element)? == Some(worse) {
            best = element;
        }
    }
    Ok(best)
}

/// `item in list`; what cannot be compared is not the item.
pub(crate) fn has(
    list: &List<'_>,
    item: &Value<'_>,
    meter: &mut Meter,
) -> Result<bool, EvalErrorKind> {
    for element in list.iter() {
        if equal(item, &element, meter) == Ok(true) {
            return Ok(true);
        }
        meter.reserve(0)?;
    }
    Ok(false)
}

/// The other way round than `in`, which shows with quantities that were computed.
fn includes<'a>(target: &Value<'_>, item: &Value<'_>, meter: &mut Meter) -> Outcome<'a> {
    Ok(Value::Bool(match target {
        Value::List(list) => {
            meter.reserve(list.len())?;
            list.iter().any(|element| equal(&element, item, meter) == Ok(true))
        }
        _ => equal(target, item, meter) == Ok(true),
    }))
}

/// `indexOf` and `lastIndexOf`.
pub(crate) fn index_of<'a>(
    function: Function,
    list: &List<'_>,
    item: &Value<'_>,
    meter: &mut Meter,
) -> Outcome<'a> {
    meter.reserve(list.len())?;
    let is_item =
        |at: &usize| list.get(*at).is_some_and(|element| equal(&element, item, meter) == Ok(true));
    let found = if function == Function::IndexOf {
        (0..list.len()).find(is_item)
    } else {
        (0..list.len()).rev().find(is_item)
    };
    Ok(Value::Int(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)))
}

fn slice<'a>(list: &List<'a>, start: i64, end: i64, meter: &mut Meter) -> Outcome<'a> {
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    if start < 0 || end < 0 {
        return failed(format!("cannot slice({start}, {end}), negative indexes not supported"));
    }
    if start > end {
        return failed(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        ));
    }
    if end > length {
        return failed(format!("cannot slice({start}, {end}), list is length {length}"));
    }
    let (start, end) = (usize::try_from(start).unwrap_or(0), usize::try_from(end).unwrap_or(0));
    meter.reserve(end - start)?;
    Ok(Value::list((start..end).filter_map(|at| list.get(at)).collect()))
}

fn flatten<'a>(list: &List<'a>, depth: i64, meter: &mut Meter) -> Outcome<'a> {
    let mut flat = values(list, meter)?;
    for _ in 0..depth {
        if !flat.iter().any(|value| matches!(value, Value::List(_))) {
            break;
        }
        let mut next = Vec::new();
        for value in flat {
            match value {
                Value::List(inner) => next.extend(values(&inner, meter)?),
                other => {
                    meter.reserve(1)?;
                    next.push(other);
                }
            }
        }
        flat = next;
    }
    Ok(Value::list(flat))
}

fn distinct<'a>(list: &List<'a>, meter: &mut Meter) -> Outcome<'a> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    for value in list.iter() {
        meter.reserve(kept.len())?;
        if !kept.iter().any(|other| equal(other, &value, meter) == Ok(true)) {
            kept.push(value);
        }
    }
    Ok(Value::list(kept))
}

/// Sorts by keys of one type each of which has an order.
fn sort<'a>(list: &List<'a>, keys: &List<'a>, meter: &mut Meter) -> Outcome<'a> {
    if list.len() != keys.len() {
        return failed("the keys to sort by are not as many as the elements");
    }
    let Some(first) = keys.get(0) else { return Ok(Value::List(list.clone())) };
    if compare(&first, &first).is_err() {
        return failed("list elements must be comparable");
    }
    let mut sorted = Vec::new();
    for (key, value) in values(keys, meter)?.into_iter().zip(values(list, meter)?) {
        if key.type_name() != first.type_name() {
            return failed("list elements must have the same type");
        }
        sorted.push((key, value));
    }
    meter.reserve(sorted.len() * 16)?;
    // Elements of one type, so only NaN has no order; it keeps its place as well as it can.
    sorted.sort_by(|a, b| total(&a.0, &b.0));
    Ok(Value::list(sorted.into_iter().map(|(_, value)| value).collect()))
}

/// The values of those elements that have one.
fn unwrapped<'a>(list: &List<'a>, meter: &mut Meter) -> Outcome<'a> {
    let mut found = Vec::new();
    for element in values(list, meter)? {
        match element {
            Value::Optional(Some(value)) => found.push((*value).clone()),
            Value::Optional(None) => {}
            _ => return Err(NO_OVERLOAD),
        }
    }
    Ok(Value::list(found))
}

/// A total order: NaN comes after all numbers.
fn total(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    let is_nan = |value: &Value<'_>| matches!(value, Value::Double(d) if d.is_nan());
    match compare(a, b) {
        Ok(Some(order)) => order,
        Ok(None) | Err(_) => is_nan(a).cmp(&is_nan(b)),
    }
}

/// `sets.contains`, `sets.equivalent`, `sets.intersects`.
pub(crate) fn sets<'a>(function: Function, args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    let [Value::List(a), Value::List(b)] = args else { return Err(NO_OVERLOAD) };
    let result = match function {
        Function::SetIntersects => {
            let mut found = false;
            for element in b.iter() {
                found = found || has(a, &element, meter)?;
            }
            found
        }
        Function::SetContains => covers(a, b, meter)?,
        _ => covers(a, b, meter)? && covers(b, a, meter)?,
    };
    Ok(Value::Bool(result))
}

/// Whether the first has all elements of the second.
fn covers(a: &List<'_>, b: &List<'_>, meter: &mut Meter) -> Result<bool, EvalErrorKind> {
    for element in b.iter() {
        if !has(a, &element, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}
