//! The evaluator: walks the steps of a program over one device, with fuel.
//!
//! It recurses as deep as the expression is nested, which the parser limits. Errors are values:
//! `&&`, `||` and the macros built on them pass over an error if the other side decides. The
//! exceptions are the end of the fuel and what breaks upstream's evaluator: they end everything.

mod folds;

use crate::cost::{self, Meter, tenth};
use crate::device::{Device, find};
use crate::error::EvalErrorKind;
use crate::functions::signatures::Function;
use crate::functions::{self, is_unhashable, lists, regex};
use crate::ir::{InCost, Ir, Op, Step, StepId, Table, Variant};
use crate::ops;
use crate::value::{Map, Shared, Value, equal};

/// An error and the step in which it arose.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: EvalErrorKind,
    pub(crate) step: StepId,
}

/// A variable of a macro.
#[derive(Clone, Debug)]
enum Local<'e> {
    Known(Outcome<'e>),
    /// That of a `cel.bind`, computed and paid for where it is used first.
    Unused(StepId),
    /// That of an `optMap`: what its target has, looked up again where it is used first.
    Inside(StepId),
}

/// What a step gives. Errors are boxed so that values stay small to return.
pub(crate) type Outcome<'e> = Result<Value<'e>, Box<Fault>>;

#[derive(Debug)]
pub(crate) struct Evaluator<'e> {
    pub(crate) ir: &'e Ir,
    device: &'e Device<'e>,
    /// Variables of the macros around the current step. One whose value failed fails where it is
    /// used.
    locals: Vec<Local<'e>>,
    pub(crate) meter: Meter,
}

impl<'e> Evaluator<'e> {
    pub(crate) fn new(ir: &'e Ir, device: &'e Device<'e>, limit: u64) -> Self {
        Evaluator { ir, device, locals: Vec::new(), meter: Meter::new(limit) }
    }

    pub(crate) fn fault<T>(&self, step: StepId, kind: EvalErrorKind) -> Result<T, Box<Fault>> {
        Err(Box::new(Fault { kind, step }))
    }

    fn charge(&mut self, step: StepId, cost: u64) -> Result<(), Box<Fault>> {
        self.meter.charge(cost).map_err(|kind| Box::new(Fault { kind, step }))
    }

    /// Evaluates a step.
    pub(crate) fn eval(&mut self, id: StepId) -> Outcome<'e> {
        let ir = self.ir;
        let step = ir.step(id);
        match &step.op {
            Op::Constant(value) => {
                self.charge(id, step.cost)?;
                Ok(value.borrow())
            }
            Op::Device => self.leaf(id, step, Value::Device(self.device)),
            Op::Driver => {
                let driver = Value::Str(Shared::Borrowed(self.device.driver));
                self.leaf(id, step, driver)
            }
            Op::AllowMultipleAllocations => {
                self.leaf(id, step, Value::Bool(self.device.allow_multiple_allocations))
            }
            Op::Local(slot) => self.local(id, step, *slot as usize),
            Op::Domains(_) | Op::Domain(..) | Op::Entry(..) => self.path(id, step),
            Op::Select { operand, field, optional } => {
                let operand = self.operand(id, step, *operand)?;
                let key = Value::Str(Shared::Borrowed(field));
                self.access(id, operand, &key, *optional)
            }
            Op::Has { operand, field } => {
                let operand = self.bound(*operand)?;
                self.has(id, step, operand, field)
            }
            Op::Index { operand, index, optional } => {
                self.index(id, step, *operand, *index, *optional)
            }
            Op::And(terms) => self.logical(id, terms, false),
            Op::Or(terms) => self.logical(id, terms, true),
            Op::Conditional { condition, then, other } => match self.eval(*condition)? {
                Value::Bool(true) => self.eval(*then),
                Value::Bool(false) => self.eval(*other),
                _ => self.fault(id, EvalErrorKind::NoSuchOverload),
            },
            Op::Not(operand) | Op::Negate(operand) => self.unary(id, step, *operand),
            Op::Arithmetic(..)
            | Op::Compare(..)
            | Op::Equal(..)
            | Op::NotEqual(..)
            | Op::In { .. } => self.binary(id, step),
            Op::Call(function, variant, arguments) => {
                self.call(id, (*function, *variant), arguments)
            }
            Op::Regex { .. } => self.regex(id, step),
            Op::List(_) | Op::Map(_) => self.literal(id, step),
            Op::OrElse { optional, other } | Op::OrValue { optional, other } => {
                self.alternative(id, step, *optional, *other)
            }
            Op::Fold(fold) => self.fold(id, fold),
            Op::Bind { init, body } => self.with_local(Local::Unused(*init), *body),
            Op::OptMap { target, body, flat } => self.opt_map(id, *target, *body, *flat),
        }
    }

    fn index(
        &mut self,
        id: StepId,
        step: &Step,
        operand: StepId,
        index: StepId,
        optional: bool,
    ) -> Outcome<'e> {
        let operand = self.operand(id, step, operand)?;
        match self.bound(index)? {
            Ok(index) if is_key(&index) => self.access(id, operand, &index, optional),
            Ok(value) => {
                self.charge(id, step.cost - u64::from(optional))?;
                let message = format!("invalid qualifier type: {}", value.type_name());
                self.fault(id, EvalErrorKind::Failed(message))
            }
            Err(fault) => {
                self.charge(id, step.cost - u64::from(optional))?;
                Err(fault)
            }
        }
    }

    /// What a field or an element is taken of. That something new is looked into is paid for even
    /// if it could not be made.
    fn operand(&mut self, id: StepId, step: &Step, operand: StepId) -> Outcome<'e> {
        let operand = self.bound(operand)?;
        if operand.is_err() {
            self.charge(id, step.cost - 1)?;
        }
        operand
    }

    fn leaf(&mut self, id: StepId, step: &Step, value: Value<'e>) -> Outcome<'e> {
        self.charge(id, step.cost)?;
        Ok(value)
    }

    /// The value of a `cel.bind`, or its error for later; the end of the fuel is not put off.
    pub(crate) fn bound(&mut self, init: StepId) -> Result<Outcome<'e>, Box<Fault>> {
        match self.eval(init) {
            Err(fault) if fault.kind.is_fatal() => Err(fault),
            outcome => Ok(outcome),
        }
    }

    fn local(&mut self, id: StepId, step: &Step, slot: usize) -> Outcome<'e> {
        let known = match self.locals.get(slot) {
            None => return self.fault(id, EvalErrorKind::NoSuchOverload),
            Some(Local::Known(known)) => known.clone(),
            Some(Local::Unused(init)) => {
                let init = *init;
                self.late(slot, |evaluator| evaluator.bound(init))?
            }
            Some(Local::Inside(target)) => {
                let target = *target;
                self.late(slot, |evaluator| {
                    let target = evaluator.bound(target)?;
                    evaluator.charge(id, 1)?;
                    Ok(match target {
                        Ok(Value::Optional(Some(inner))) => Ok((*inner).clone()),
                        Ok(_) => evaluator.fault(id, EvalErrorKind::NoSuchOverload),
                        Err(fault) => Err(fault),
                    })
                })?
            }
        };
        self.charge(id, step.cost)?;
        known
    }

    /// Computes a variable. What it is made of sees the variables around it alone, and its own take
    /// the places after those.
    fn late(
        &mut self,
        slot: usize,
        compute: impl FnOnce(&mut Self) -> Result<Outcome<'e>, Box<Fault>>,
    ) -> Result<Outcome<'e>, Box<Fault>> {
        // Mostly it is the innermost, and nothing has to make room.
        let last = slot + 1 == self.locals.len();
        let own = if last { self.locals.pop() } else { None };
        let inner = if last { Vec::new() } else { self.locals.split_off(slot) };
        let known = compute(self);
        self.locals.truncate(slot);
        self.locals.extend(own);
        self.locals.extend(inner);
        let known = known?;
        self.locals[slot] = Local::Known(known.clone());
        Ok(known)
    }

    fn with_local(&mut self, value: Local<'e>, body: StepId) -> Outcome<'e> {
        self.locals.push(value);
        let result = self.eval(body);
        self.locals.pop();
        result
    }

    /// Declares the variable of a `cel.bind` for as long as the caller looks into its scope.
    pub(crate) fn enter(&mut self, init: StepId) {
        self.locals.push(Local::Unused(init));
    }

    /// Ends the scope of the variable that was declared last.
    pub(crate) fn leave(&mut self) {
        self.locals.pop();
    }

    fn unary(&mut self, id: StepId, step: &Step, operand: StepId) -> Outcome<'e> {
        let operand = self.bound(operand)?;
        self.charge(id, step.cost)?;
        let result = match (&step.op, operand?) {
            (Op::Negate(_), value) => ops::negate(&value),
            (_, Value::Bool(b)) => Ok(Value::Bool(!b)),
            _ => Err(EvalErrorKind::NoSuchOverload),
        };
        result.or_else(|kind| self.fault(id, kind))
    }

    /// `or` and `orValue`.
    fn alternative(
        &mut self,
        id: StepId,
        step: &Step,
        optional: StepId,
        other: StepId,
    ) -> Outcome<'e> {
        match self.eval(optional)? {
            Value::Optional(None) => self.eval(other),
            Value::Optional(Some(inner)) if matches!(step.op, Op::OrValue { .. }) => {
                Ok((*inner).clone())
            }
            found @ Value::Optional(_) => Ok(found),
            _ => self.fault(id, EvalErrorKind::NoSuchOverload),
        }
    }

    #[inline(never)]
    fn path(&mut self, id: StepId, step: &'e Step) -> Outcome<'e> {
        self.charge(id, step.cost)?;
        let device = self.device;
        let value = match &step.op {
            Op::Domains(Table::Attributes) => {
                Some(Value::Map(Map::AttributeDomains(&device.attributes)))
            }
            Op::Domains(Table::Capacity) => {
                Some(Value::Map(Map::CapacityDomains(&device.capacity)))
            }
            Op::Domain(Table::Attributes, domain) => {
                let entries = crate::device::domain(&device.attributes, domain);
                Some(Value::Map(Map::Attributes(entries)))
            }
            Op::Domain(Table::Capacity, domain) => {
                let entries = crate::device::domain(&device.capacity, domain);
                Some(Value::Map(Map::Capacities(entries)))
            }
            Op::Entry(Table::Attributes, domain, name) => {
                find(&device.attributes, domain, name).map(Value::attribute)
            }
            Op::Entry(Table::Capacity, domain, name) => find(&device.capacity, domain, name)
                .map(|quantity| Value::Quantity(Shared::Borrowed(quantity), false)),
            _ => None,
        };
        match (value, &step.op) {
            (Some(value), _) => Ok(value),
            (None, Op::Entry(_, _, name)) => {
                self.fault(id, EvalErrorKind::NoSuchKey(name.to_string()))
            }
            (None, _) => self.fault(id, EvalErrorKind::NoSuchOverload),
        }
    }

    /// A field or an element; of an optional value, an optional one. What is optional and absent
    /// costs one less.
    #[inline(never)]
    fn access(
        &mut self,
        id: StepId,
        operand: Value<'e>,
        key: &Value<'e>,
        optional: bool,
    ) -> Outcome<'e> {
        let cost = self.ir.step(id).cost;
        let absent = cost.saturating_sub(1);
        let (operand, optional) = match operand {
            Value::Optional(None) => {
                self.charge(id, absent)?;
                return Ok(Value::Optional(None));
            }
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, optional),
        };
        let found = self.element(id, &operand, key);
        let present = matches!(found, Ok(Some(_)));
        self.charge(id, if optional && !present { absent } else { cost })?;
        let found = found?;
        match (found, optional) {
            (Some(value), true) => Ok(Value::some(value)),
            (Some(value), false) => Ok(value),
            (None, true) => Ok(Value::Optional(None)),
            (None, false) => {
                let shown = shown(key);
                let kind = match operand {
                    Value::List(_) => EvalErrorKind::IndexOutOfBounds(shown),
                    _ => EvalErrorKind::NoSuchKey(shown),
                };
                self.fault(id, kind)
            }
        }
    }

    fn element(
        &mut self,
        id: StepId,
        operand: &Value<'e>,
        key: &Value<'e>,
    ) -> Result<Option<Value<'e>>, Box<Fault>> {
        match (operand, key) {
            (Value::Map(map), _) => Ok(map.lookup(key, &mut self.meter)),
            (Value::List(list), _) => {
                let place = match key {
                    Value::Int(place) => Some(*place),
                    Value::Uint(place) => i64::try_from(*place).ok().or(Some(-1)),
                    Value::Double(place) if place.fract() == 0.0 => Some(*place as i64),
                    _ => None,
                };
                let Some(place) = place else {
                    let message = match key {
                        Value::Double(place) => format!("unsupported index value {place} in list"),
                        _ => format!("unsupported index type '{}' in list", key.type_name()),
                    };
                    return self.fault(id, EvalErrorKind::Failed(message));
                };
                Ok(usize::try_from(place).ok().and_then(|place| list.get(place)))
            }
            (Value::Device(device), Value::Str(field)) => Ok(device_field(device, field)),
            _ => Ok(None),
        }
    }

    /// The question itself is free. Where it is not come to, and where an optional value has no
    /// such field, a look less is paid for.
    fn has(
        &mut self,
        id: StepId,
        step: &Step,
        operand: Outcome<'e>,
        field: &'e str,
    ) -> Outcome<'e> {
        let key = Value::Str(Shared::Borrowed(field));
        let present = match &operand {
            Err(_) | Ok(Value::Optional(None)) => Ok(false),
            Ok(Value::Optional(Some(inner))) => {
                self.element(id, inner, &key).map(|found| found.is_some())
            }
            Ok(Value::Map(map)) if map.has_default() => Ok(true),
            Ok(other) => self.element(id, other, &key).map(|found| found.is_some()),
        };
        let optional = matches!(operand, Ok(Value::Optional(_)));
        let less = operand.is_err() || optional && !matches!(present, Ok(true));
        match step.cost.checked_sub(u64::from(less)) {
            Some(cost) => self.charge(id, cost)?,
            None => self.meter.refund(1),
        }
        operand?;
        present.map(Value::Bool)
    }

    /// `&&` (deciding on false) and `||` (deciding on true).
    #[inline(never)]
    fn logical(&mut self, id: StepId, terms: &[StepId], deciding: bool) -> Outcome<'e> {
        let mut fault = None;
        for term in terms {
            match self.eval(*term) {
                Ok(Value::Bool(b)) if b == deciding => return Ok(Value::Bool(b)),
                Ok(Value::Bool(_)) => {}
                Err(f) if f.kind.is_fatal() => return Err(f),
                Err(f) => fault = fault.or(Some(f)),
                Ok(_) => {
                    let kind = EvalErrorKind::NoSuchOverload;
                    fault = fault.or(Some(Box::new(Fault { kind, step: id })));
                }
            }
        }
        fault.map_or(Ok(Value::Bool(!deciding)), Err)
    }

    /// Both sides, whether or not the first failed: upstream charges for both.
    fn both(
        &mut self,
        left: StepId,
        right: StepId,
    ) -> Result<(Outcome<'e>, Outcome<'e>), Box<Fault>> {
        let left = self.bound(left)?;
        Ok((left, self.bound(right)?))
    }

    #[inline(never)]
    fn binary(&mut self, id: StepId, step: &'e Step) -> Outcome<'e> {
        let (left, right) = match &step.op {
            Op::Arithmetic(_, _, left, right)
            | Op::Compare(_, _, left, right)
            | Op::Equal(left, right)
            | Op::NotEqual(left, right)
            | Op::In { value: left, within: right, .. } => self.both(*left, *right)?,
            _ => return self.fault(id, EvalErrorKind::NoSuchOverload),
        };
        if let (Op::In { .. }, Ok(value), Ok(Value::Map(Map::Pairs(pairs)))) =
            (&step.op, &left, &right)
            && !pairs.is_empty()
            && is_unhashable(value)
        {
            // Upstream's maps break down over keys that it can't hash.
            return self.fault(id, EvalErrorKind::Internal);
        }
        if let (Op::In { cost: InCost::Free, .. }, Ok(value)) = (&step.op, &left)
            && is_unhashable(value)
        {
            return self.fault(id, EvalErrorKind::Internal);
        }
        let cost = binary_cost(&step.op, left.as_ref().ok(), right.as_ref().ok());
        self.charge(id, cost)?;
        let (left, right) = (left?, right?);
        let meter = &mut self.meter;
        let result = match &step.op {
            Op::Arithmetic(operator, ..) => ops::arithmetic(*operator, &left, &right, meter),
            Op::Compare(operator, ..) => ops::relation(*operator, &left, &right).map(Value::Bool),
            Op::Equal(..) => equal(&left, &right, meter).map(Value::Bool),
            // Upstream asks whether they are equal, and takes an error for a no.
            Op::NotEqual(..) => Ok(Value::Bool(equal(&left, &right, meter) != Ok(true))),
            _ => match &right {
                Value::List(list) => lists::has(list, &left, meter).map(Value::Bool),
                Value::Map(map) => Ok(Value::Bool(map.get(&left, meter).is_some())),
                _ => Err(EvalErrorKind::NoSuchOverload),
            },
        };
        result.or_else(|kind| self.fault(id, kind))
    }

    /// With one or two arguments upstream evaluates and charges all of them even if one fails;
    /// with more, or where it chooses the variant by the values, it stops at the failure.
    #[inline(never)]
    fn call(
        &mut self,
        id: StepId,
        function: (Function, Variant),
        arguments: &[StepId],
    ) -> Outcome<'e> {
        match arguments {
            [] => self.apply(id, function, []),
            _ if function.0 == Function::Format
                || function.1 == Variant::Open && !function.0.is_singleton() =>
            {
                self.dispatch(id, function, arguments)
            }
            [only] => {
                let only = self.bound(*only)?;
                self.apply(id, function, [only])
            }
            [first, second] => {
                let (first, second) = self.both(*first, *second)?;
                self.apply(id, function, [first, second])
            }
            _ => self.dispatch(id, function, arguments),
        }
    }

    fn dispatch(
        &mut self,
        id: StepId,
        function: (Function, Variant),
        arguments: &[StepId],
    ) -> Outcome<'e> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            match self.bound(*argument)? {
                Ok(value) => values.push(value),
                Err(fault) => {
                    // The call is charged once all of its arguments were looked at.
                    if values.len() + 1 == arguments.len() {
                        values.push(Value::Null);
                        self.charge(id, functions::cost(function.0, function.1, &values, None))?;
                    }
                    return Err(fault);
                }
            }
        }
        self.finish(id, function, &values)
    }

    fn apply<const N: usize>(
        &mut self,
        id: StepId,
        function: (Function, Variant),
        arguments: [Outcome<'e>; N],
    ) -> Outcome<'e> {
        let failed = |at: usize| arguments.get(at).is_some_and(Result::is_err);
        if function.0.is_broken_by(function.1 != Variant::Open, failed)
            || function.0 == Function::Flatten && failed(1)
        {
            return self.fault(id, EvalErrorKind::Internal);
        }
        let mut fault = None;
        let values = arguments.map(|argument| {
            argument.unwrap_or_else(|f| {
                fault.get_or_insert(f);
                Value::Null
            })
        });
        match fault {
            None => self.finish(id, function, &values),
            Some(fault) => {
                self.charge(id, functions::cost(function.0, function.1, &values, None))?;
                Err(fault)
            }
        }
    }

    fn finish(
        &mut self,
        id: StepId,
        (function, variant): (Function, Variant),
        values: &[Value<'e>],
    ) -> Outcome<'e> {
        let result = functions::call(function, values, &mut self.meter);
        let other = |at: usize| values.get(at).is_some_and(|v| !matches!(v, Value::List(_)));
        let no_depth = || values.get(1).is_some_and(|depth| !matches!(depth, Value::Int(_)));
        let broken = function.is_broken_by(variant != Variant::Open, other)
            || function == Function::Flatten && no_depth();
        if result.is_err() && broken {
            return self.fault(id, EvalErrorKind::Internal);
        }
        let cost = functions::cost(function, variant, values, result.as_ref().ok());
        self.charge(id, cost)?;
        result.or_else(|kind| self.fault(id, kind))
    }

    #[inline(never)]
    fn regex(&mut self, id: StepId, step: &'e Step) -> Outcome<'e> {
        let Op::Regex { function, arguments, regex, length } = &step.op else {
            return self.fault(id, EvalErrorKind::NoSuchOverload);
        };
        let [text, rest @ ..] = &**arguments else {
            return self.fault(id, EvalErrorKind::NoSuchOverload);
        };
        let text = self.eval(*text)?;
        let limit = rest.first().map(|limit| self.eval(*limit)).transpose()?;
        self.charge(id, cost::regex(text.size(), *length))?;
        regex::apply(*function, regex, &text, limit.as_slice(), &mut self.meter)
            .or_else(|kind| self.fault(id, kind))
    }

    #[inline(never)]
    fn literal(&mut self, id: StepId, step: &'e Step) -> Outcome<'e> {
        let made = match &step.op {
            Op::List(elements) => self.list(elements),
            Op::Map(entries) => self.map(id, entries),
            _ => self.fault(id, EvalErrorKind::NoSuchOverload),
        };
        if !is_fatal(&made) {
            self.charge(id, step.cost)?;
        }
        made
    }

    /// An element of a literal; `None` if it is optional and absent.
    fn optional(&mut self, id: StepId, optional: bool) -> Result<Option<Value<'e>>, Box<Fault>> {
        match (self.eval(id)?, optional) {
            (Value::Optional(inner), true) => Ok(inner.map(|inner| (*inner).clone())),
            (_, true) => self.fault(id, EvalErrorKind::NoSuchOverload),
            (value, false) => Ok(Some(value)),
        }
    }

    fn list(&mut self, elements: &[(StepId, bool)]) -> Outcome<'e> {
        let mut values = Vec::with_capacity(elements.len());
        for (element, optional) in elements {
            values.extend(self.optional(*element, *optional)?);
        }
        self.meter.work(values.len());
        Ok(Value::list(values))
    }

    fn map(&mut self, id: StepId, entries: &[(StepId, StepId, bool)]) -> Outcome<'e> {
        let mut pairs = Vec::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.eval(*key)?;
            if let Some(value) = self.optional(*value, *optional)? {
                pairs.push((key, value));
            }
        }
        functions::make_map(pairs, &mut self.meter).or_else(|kind| self.fault(id, kind))
    }

    /// `target.optMap(x, …)` evaluates its target twice, the second time where the variable is used
    /// first: so upstream expands it.
    #[inline(never)]
    fn opt_map(&mut self, id: StepId, target: StepId, body: StepId, flat: bool) -> Outcome<'e> {
        let found = self.bound(target)?;
        self.charge(id, 1)?;
        match found? {
            Value::Optional(None) => {
                self.charge(id, 1)?;
                Ok(Value::Optional(None))
            }
            Value::Optional(Some(_)) => {
                let result = self.with_local(Local::Inside(target), body);
                if flat || is_fatal(&result) {
                    return result;
                }
                self.charge(id, 1)?;
                result.map(Value::some)
            }
            _ => self.fault(id, EvalErrorKind::NoSuchOverload),
        }
    }
}

/// A key as messages have it: texts without quotes.
fn shown(key: &Value<'_>) -> String {
    match key {
        Value::Str(key) => key.to_string(),
        other => other.to_string(),
    }
}

/// Whether a value can be an index.
pub(crate) fn is_key(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Str(_)
    )
}

/// Whether a failure ends everything.
fn is_fatal(outcome: &Outcome<'_>) -> bool {
    outcome.as_ref().is_err_and(|fault| fault.kind.is_fatal())
}

fn device_field<'e>(device: &'e Device<'e>, field: &str) -> Option<Value<'e>> {
    match field {
        "driver" => Some(Value::Str(Shared::Borrowed(device.driver))),
        "allowMultipleAllocations" => Some(Value::Bool(device.allow_multiple_allocations)),
        "attributes" => Some(Value::Map(Map::AttributeDomains(&device.attributes))),
        "capacity" => Some(Value::Map(Map::CapacityDomains(&device.capacity))),
        _ => None,
    }
}

/// What a binary operator costs; a side that failed counts as a simple value.
fn binary_cost(op: &Op, left: Option<&Value<'_>>, right: Option<&Value<'_>>) -> u64 {
    let size = |value: Option<&Value<'_>>| value.map_or(1, Value::size);
    let lesser = || tenth(size(left).min(size(right)));
    match op {
        Op::Arithmetic(_, true, ..) => tenth(size(left) + size(right)),
        Op::Compare(_, true, ..) | Op::NotEqual(..) => lesser(),
        Op::Equal(..) => match left {
            Some(
                Value::Quantity(..)
                | Value::Version(_)
                | Value::Ip(_)
                | Value::Cidr(..)
                | Value::Url(_)
                | Value::Format(_),
            ) => 1,
            _ => lesser(),
        },
        Op::In { cost: InCost::Free, .. } => 0,
        Op::In { cost: InCost::Length, .. } => size(right),
        _ => 1,
    }
}
