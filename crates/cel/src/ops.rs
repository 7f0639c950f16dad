//! The arithmetic operators. Integers do not wrap: what does not fit is an error.

use crate::ast::{Arithmetic, Comparison};
use crate::cost::Meter;
use crate::error::EvalErrorKind;
use crate::functions::{Outcome, time};
use crate::value::{Shared, Value, compare};

const INTEGER: EvalErrorKind = EvalErrorKind::Overflow("integer");
const UNSIGNED: EvalErrorKind = EvalErrorKind::Overflow("unsigned integer");

pub(crate) fn arithmetic<'a>(
    operator: Arithmetic,
    left: &Value<'a>,
    right: &Value<'a>,
    meter: &mut Meter,
) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => int(operator, *a, *b).map(Value::Int),
        (Value::Uint(a), Value::Uint(b)) => uint(operator, *a, *b).map(Value::Uint),
        (Value::Double(a), Value::Double(b)) => double(operator, *a, *b).map(Value::Double),
        (Value::Str(a), Value::Str(b)) if operator == Arithmetic::Add => {
            meter.reserve_text(a.len() + b.len())?;
            let text = [&**a, &**b].concat();
            Ok(Value::Str(Shared::Owned(text.into())))
        }
        (Value::Bytes(a), Value::Bytes(b)) if operator == Arithmetic::Add => {
            meter.reserve_text(a.len() + b.len())?;
            Ok(Value::Bytes(Shared::Owned([&**a, &**b].concat().into())))
        }
        (Value::List(a), Value::List(b)) if operator == Arithmetic::Add => {
            meter.reserve(a.len() + b.len())?;
            Ok(Value::list(a.iter().chain(b.iter()).collect()))
        }
        (Value::Duration(_) | Value::Timestamp(_), _) => time::arithmetic(operator, left, right),
        _ => Err(EvalErrorKind::NoSuchOverload),
    }
}

fn int(operator: Arithmetic, a: i64, b: i64) -> Result<i64, EvalErrorKind> {
    match operator {
        Arithmetic::Add => a.checked_add(b).ok_or(INTEGER),
        Arithmetic::Sub => a.checked_sub(b).ok_or(INTEGER),
        Arithmetic::Mul => a.checked_mul(b).ok_or(INTEGER),
        Arithmetic::Div if b == 0 => Err(EvalErrorKind::DivisionByZero),
        Arithmetic::Mod if b == 0 => Err(EvalErrorKind::ModulusByZero),
        Arithmetic::Div => a.checked_div(b).ok_or(INTEGER),
        Arithmetic::Mod => a.checked_rem(b).ok_or(INTEGER),
    }
}

fn uint(operator: Arithmetic, a: u64, b: u64) -> Result<u64, EvalErrorKind> {
    match operator {
        Arithmetic::Add => a.checked_add(b).ok_or(UNSIGNED),
        Arithmetic::Sub => a.checked_sub(b).ok_or(UNSIGNED),
        Arithmetic::Mul => a.checked_mul(b).ok_or(UNSIGNED),
        Arithmetic::Div => a.checked_div(b).ok_or(EvalErrorKind::DivisionByZero),
        Arithmetic::Mod => a.checked_rem(b).ok_or(EvalErrorKind::ModulusByZero),
    }
}

fn double(operator: Arithmetic, a: f64, b: f64) -> Result<f64, EvalErrorKind> {
    match operator {
        Arithmetic::Add => Ok(a + b),
        Arithmetic::Sub => Ok(a - b),
        Arithmetic::Mul => Ok(a * b),
        Arithmetic::Div => Ok(a / b),
        Arithmetic::Mod => Err(EvalErrorKind::NoSuchOverload),
    }
}

pub(crate) fn negate<'a>(value: &Value<'a>) -> Outcome<'a> {
    match value {
        Value::Int(i) => i.checked_neg().map(Value::Int).ok_or(INTEGER),
        Value::Double(d) => Ok(Value::Double(-d)),
        Value::Duration(nanos) => nanos.checked_neg().map(Value::Duration).ok_or(INTEGER),
        _ => Err(EvalErrorKind::NoSuchOverload),
    }
}

pub(crate) fn relation(
    operator: Comparison,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<bool, EvalErrorKind> {
    let Some(order) = compare(left, right)? else {
        return Err(EvalErrorKind::Failed("NaN values cannot be ordered".to_owned()));
    };
    Ok(match operator {
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    })
}
