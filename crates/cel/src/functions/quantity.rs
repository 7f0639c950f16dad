//! `quantity(…)` and what quantities can do. The arithmetic itself is
//! [`phalanx_objects::Quantity`]'s.

use phalanx_objects::Quantity;

use super::signatures::Function;
use super::{NO_OVERLOAD, Outcome, failed};
use crate::value::{Shared, Value};

pub(crate) fn call<'a>(function: Function, args: &[Value<'a>]) -> Outcome<'a> {
    match (function, args) {
        (Function::Quantity, [Value::Str(text)]) => match text.parse::<Quantity>() {
            Ok(quantity) => Ok(Value::Quantity(Shared::new(quantity), false)),
            Err(error) => failed(error.to_string()),
        },
        (Function::IsQuantity, [Value::Str(text)]) => {
            Ok(Value::Bool(text.parse::<Quantity>().is_ok()))
        }
        (Function::Sign, [Value::Quantity(q, _)]) => Ok(Value::Int(i64::from(q.sign()))),
        (Function::IsInteger, [Value::Quantity(q, _)]) => Ok(Value::Bool(q.as_i64().is_some())),
        (Function::AsInteger, [Value::Quantity(q, _)]) => match q.as_i64() {
            Some(value) => Ok(Value::Int(value)),
            None => failed("cannot convert value to integer"),
        },
        (Function::AsApproximateFloat, [Value::Quantity(q, _)]) => Ok(Value::Double(q.as_f64())),
        (Function::Add | Function::Sub, [Value::Quantity(a, _), other]) => {
            let b = match other {
                Value::Quantity(b, _) => **b,
                Value::Int(b) => Quantity::from_int(*b),
                _ => return Err(NO_OVERLOAD),
            };
            // Upstream negates what it takes away, and the least integer is its own negative where the
            // sum is still an integer.
            let wraps = b == Quantity::from_int(i64::MIN) && a.as_i64().is_some_and(|a| a >= 0);
            let add = function == Function::Add || wraps;
            let result = if add { a.checked_add(&b) } else { a.checked_sub(&b) };
            match result {
                Some(quantity) => Ok(Value::Quantity(Shared::new(quantity), true)),
                None => failed("the quantity is too great to be computed exactly"),
            }
        }
        _ => Err(NO_OVERLOAD),
    }
}
