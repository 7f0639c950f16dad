//! Conversions between simple values, and `size`.

use std::sync::Arc;

use super::{NO_OVERLOAD, Outcome, failed};
use crate::error::EvalErrorKind;
use crate::value::{Shared, Value};

pub(crate) fn size<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [value @ (Value::Str(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            i64::try_from(value.size()).map(Value::Int).map_err(|_| NO_OVERLOAD)
        }
        _ => Err(NO_OVERLOAD),
    }
}

fn not_a<'a>(target: &str) -> Outcome<'a> {
    failed(format!("type conversion error from 'string' to '{target}'"))
}

const OVERFLOW: EvalErrorKind = EvalErrorKind::Overflow("integer");

pub(crate) fn int<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(i)] => Ok(Value::Int(*i)),
        [Value::Uint(u)] => i64::try_from(*u).map(Value::Int).map_err(|_| OVERFLOW),
        [Value::Double(d)] => {
            // Bounds are exclusive: the greatest integers are no doubles.
            if *d > i64::MIN as f64 && *d < i64::MAX as f64 {
                Ok(Value::Int(d.trunc() as i64))
            } else {
                Err(OVERFLOW)
            }
        }
        [Value::Str(s)] => s.parse().map_or_else(|_| not_a("int"), |i| Ok(Value::Int(i))),
        [Value::Duration(nanos)] => Ok(Value::Int(*nanos)),
        [Value::Timestamp(timestamp)] => Ok(Value::Int(timestamp.seconds)),
        _ => Err(NO_OVERLOAD),
    }
}

pub(crate) fn uint<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let overflow = EvalErrorKind::Overflow("unsigned integer");
    match args {
        [Value::Uint(u)] => Ok(Value::Uint(*u)),
        [Value::Int(i)] => u64::try_from(*i).map(Value::Uint).map_err(|_| overflow),
        [Value::Double(d)] => {
            if *d >= 0.0 && *d < u64::MAX as f64 {
                Ok(Value::Uint(d.trunc() as u64))
            } else {
                Err(overflow)
            }
        }
        [Value::Str(s)] if s.starts_with('+') => not_a("uint"),
        [Value::Str(s)] => s.parse().map_or_else(|_| not_a("uint"), |u| Ok(Value::Uint(u))),
        _ => Err(NO_OVERLOAD),
    }
}

pub(crate) fn double<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Double(d)] => Ok(Value::Double(*d)),
        [Value::Int(i)] => Ok(Value::Double(*i as f64)),
        [Value::Uint(u)] => Ok(Value::Double(*u as f64)),
        [Value::Str(s)] => s.parse().map_or_else(|_| not_a("double"), |d| Ok(Value::Double(d))),
        _ => Err(NO_OVERLOAD),
    }
}

pub(crate) fn string<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Str(s)] => Ok(Value::Str(s.clone())),
        [Value::Bool(b)] => Ok(Value::text(if *b { "true" } else { "false" })),
        [Value::Int(i)] => Ok(Value::text(&i.to_string())),
        [Value::Uint(u)] => Ok(Value::text(&u.to_string())),
        [Value::Double(d)] => Ok(Value::text(&double_text(*d))),
        [Value::Duration(nanos)] => Ok(Value::text(&super::time::duration_text(*nanos))),
        [Value::Timestamp(timestamp)] => Ok(Value::text(&timestamp.text())),
        [Value::Ip(ip)] => Ok(Value::text(&ip.to_string())),
        [Value::Cidr(ip, bits)] => Ok(Value::text(&format!("{ip}/{bits}"))),
        [Value::Bytes(b)] => match std::str::from_utf8(b) {
            Ok(text) => Ok(Value::text(text)),
            Err(_) => failed("invalid UTF-8 in bytes, cannot convert to string"),
        },
        _ => Err(NO_OVERLOAD),
    }
}

/// The shortest text of a double, with an exponent where Go's `%g` has one.
fn double_text(d: f64) -> String {
    if d.is_nan() {
        return "NaN".to_owned();
    }
    if d.is_infinite() {
        return if d > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{d:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        Ok(_) | Err(_) => d.to_string(),
    }
}

pub(crate) fn bytes<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Bytes(b)] => Ok(Value::Bytes(b.clone())),
        [Value::Str(s)] => Ok(Value::Bytes(Shared::Owned(Arc::from(s.as_bytes())))),
        _ => Err(NO_OVERLOAD),
    }
}

pub(crate) fn bool<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Bool(b)] => Ok(Value::Bool(*b)),
        [Value::Str(s)] => match &**s {
            "1" | "t" | "true" | "TRUE" | "True" | "T" => Ok(Value::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" | "F" => Ok(Value::Bool(false)),
            _ => not_a("bool"),
        },
        _ => Err(NO_OVERLOAD),
    }
}
