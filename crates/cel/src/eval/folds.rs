//! Macros over lists and maps: what each turn does, and what it costs.
//!
//! They cost as what upstream expands them to: an accumulator that is looked at before each turn
//! and changed in it. A turn that fails does not end a macro.

use super::{Evaluator, Fault, Local, Outcome, shown};
use crate::ast::FoldKind;
use crate::cost::Meter;
use crate::error::EvalErrorKind;
use crate::functions;
use crate::ir::{Fold, StepId};
use crate::value::{Map, Value, equal};

impl<'e> Evaluator<'e> {
    /// What a fold goes over: for each turn its one or two variables.
    pub(crate) fn turns(
        &mut self,
        id: StepId,
        fold: &Fold,
    ) -> Result<Vec<(Value<'e>, Option<Value<'e>>)>, Box<Fault>> {
        let range = self.eval(fold.range)?;
        let turns: Vec<_> = match &range {
            Value::List(list) => list
                .iter()
                .zip(0..)
                .map(|(value, at)| match fold.two {
                    true => (Value::Int(at), Some(value)),
                    false => (value, None),
                })
                .collect(),
            Value::Map(map) => {
                let value = |key: &Value<'e>, meter: &mut Meter| map.get(key, meter);
                let meter = &mut self.meter;
                map.keys()
                    .into_iter()
                    .map(|key| {
                        let second = if fold.two { value(&key, meter) } else { None };
                        (key, second)
                    })
                    .collect()
            }
            other => {
                let name = go_name(other);
                return self.fault(id, EvalErrorKind::NotIterable(name));
            }
        };
        self.meter.work(turns.len());
        Ok(turns)
    }

    pub(crate) fn enter_turn(&mut self, turn: (Value<'e>, Option<Value<'e>>)) -> usize {
        self.locals.push(Local::Known(Ok(turn.0)));
        match turn.1 {
            Some(second) => {
                self.locals.push(Local::Known(Ok(second)));
                2
            }
            None => 1,
        }
    }

    #[inline(never)]
    pub(super) fn fold(&mut self, id: StepId, fold: &'e Fold) -> Outcome<'e> {
        let turns = self.turns(id, fold)?;
        match fold.kind {
            FoldKind::All => self.quantifier(id, fold, turns, false),
            FoldKind::Exists => self.quantifier(id, fold, turns, true),
            FoldKind::ExistsOne
            | FoldKind::Map
            | FoldKind::Filter
            | FoldKind::MapValues
            | FoldKind::MapEntries => self.collect(id, fold, turns),
        }
    }

    /// `all` (deciding on false) and `exists` (deciding on true).
    fn quantifier(
        &mut self,
        id: StepId,
        fold: &'e Fold,
        turns: Vec<(Value<'e>, Option<Value<'e>>)>,
        deciding: bool,
    ) -> Outcome<'e> {
        let mut outcome = Ok(Value::Bool(!deciding));
        // Looking at the accumulator costs 2, one more where it is negated.
        let look = 2 + u64::from(deciding);
        for turn in turns {
            self.charge(id, look)?;
            if matches!(outcome, Ok(Value::Bool(b)) if b == deciding) {
                break;
            }
            self.charge(id, 1)?;
            let variables = self.enter_turn(turn);
            let body = self.bound(fold.body);
            self.locals.truncate(self.locals.len() - variables);
            match body? {
                Ok(Value::Bool(b)) if b == deciding => outcome = Ok(Value::Bool(b)),
                Ok(Value::Bool(_)) => {}
                Err(fault) => outcome = outcome.and(Err(fault)),
                Ok(_) => {
                    let fault = self.fault(id, EvalErrorKind::NoSuchOverload);
                    outcome = outcome.and(fault);
                }
            }
        }
        self.charge(id, 1)?;
        outcome
    }

    /// The macros that count or make something. A turn that fails does not end them: upstream goes
    /// on with an accumulator that holds the error.
    fn collect(
        &mut self,
        id: StepId,
        fold: &'e Fold,
        turns: Vec<(Value<'e>, Option<Value<'e>>)>,
    ) -> Outcome<'e> {
        let mut made = Made::default();
        for turn in turns {
            let first = turn.0.clone();
            let variables = self.enter_turn(turn);
            let result = self.turn(id, fold, first, &mut made);
            self.locals.truncate(self.locals.len() - variables);
            result?;
        }
        self.charge(id, if fold.kind == FoldKind::ExistsOne { 2 } else { 1 })?;
        if let Some(fault) = made.fault {
            return Err(fault);
        }
        match fold.kind {
            FoldKind::ExistsOne => Ok(Value::Bool(made.kept.len() == 1)),
            FoldKind::MapValues | FoldKind::MapEntries => {
                functions::make_map(made.pairs, &mut self.meter)
                    .or_else(|kind| self.fault(id, kind))
            }
            FoldKind::All | FoldKind::Exists | FoldKind::Map | FoldKind::Filter => {
                Ok(Value::list(made.kept))
            }
        }
    }

    /// Whether a turn counts; a condition that fails is the new state of the accumulator.
    fn condition(
        &mut self,
        id: StepId,
        fold: &'e Fold,
        made: &mut Made<'e>,
    ) -> Result<bool, Box<Fault>> {
        let condition = match fold.kind {
            FoldKind::ExistsOne | FoldKind::Filter => Some(fold.body),
            _ => fold.filter,
        };
        let Some(condition) = condition else { return Ok(true) };
        match self.bound(condition)? {
            Ok(Value::Bool(counts)) => return Ok(counts),
            Ok(_) => {
                let kind = EvalErrorKind::NoSuchOverload;
                made.fault = Some(Box::new(Fault { kind, step: id }));
            }
            Err(fault) => made.fault = Some(fault),
        }
        Ok(false)
    }

    fn turn(
        &mut self,
        id: StepId,
        fold: &'e Fold,
        first: Value<'e>,
        made: &mut Made<'e>,
    ) -> Result<(), Box<Fault>> {
        if !self.condition(id, fold, made)? {
            return Ok(());
        }
        match fold.kind {
            FoldKind::ExistsOne => {
                self.charge(id, 2)?;
                made.kept.push(Value::Bool(true));
            }
            // The name of the variable costs one here, beside list and sum.
            FoldKind::Filter => {
                self.charge(id, 3 + fold.element_cost)?;
                made.kept.push(first);
            }
            // With three arguments the call ends at the first that fails.
            FoldKind::MapValues if made.fault.is_some() => self.charge(id, 1)?,
            FoldKind::MapValues => {
                let value = self.bound(fold.body)?;
                self.charge(id, 3)?;
                match value {
                    Ok(value) => made.pairs.push((first, value)),
                    Err(fault) => made.fault = Some(fault),
                }
            }
            FoldKind::MapEntries => {
                let value = self.bound(fold.body)?;
                self.charge(id, 2)?;
                let inserted = match value {
                    Ok(Value::Map(entries)) if made.fault.is_none() => {
                        self.insert(id, &entries, &mut made.pairs)
                    }
                    Ok(Value::Map(_)) => Ok(()),
                    Ok(_) => self.fault(id, EvalErrorKind::NoSuchOverload),
                    Err(fault) => Err(fault),
                };
                made.note(inserted.err())?;
            }
            FoldKind::All | FoldKind::Exists | FoldKind::Map => {
                let value = self.bound(fold.body)?;
                self.charge(id, 2 + fold.element_cost)?;
                match value {
                    Ok(value) => made.kept.push(value),
                    Err(fault) => made.note(Some(fault))?,
                }
            }
        }
        Ok(())
    }

    /// Adds the entries of a map to others; keys must be new.
    fn insert(
        &mut self,
        id: StepId,
        made: &Map<'e>,
        pairs: &mut Vec<(Value<'e>, Value<'e>)>,
    ) -> Result<(), Box<Fault>> {
        for key in made.keys() {
            self.meter.work(pairs.len());
            self.charge(id, 0)?;
            let meter = &mut self.meter;
            if pairs.iter().any(|(other, _)| equal(other, &key, meter) == Ok(true)) {
                let message = format!("insert failed: key {} already exists", shown(&key));
                return self.fault(id, EvalErrorKind::Failed(message));
            }
            if let Some(value) = made.get(&key, meter) {
                pairs.push((key, value));
            }
        }
        Ok(())
    }
}

/// What a macro has made so far.
#[derive(Debug, Default)]
struct Made<'e> {
    kept: Vec<Value<'e>>,
    pairs: Vec<(Value<'e>, Value<'e>)>,
    fault: Option<Box<Fault>>,
}

impl Made<'_> {
    /// Keeps the first fault; the end of the fuel is not put off.
    fn note(&mut self, fault: Option<Box<Fault>>) -> Result<(), Box<Fault>> {
        match fault {
            Some(fault) if fault.kind.is_fatal() => Err(fault),
            fault => {
                self.fault = self.fault.take().or(fault);
                Ok(())
            }
        }
    }
}

/// The name of a value's type in upstream's complaint about a range.
fn go_name(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::Str(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Quantity(..) => "cel.Quantity",
        Value::Version(_) => "cel.Semver",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Ip(_) => "cel.IP",
        Value::Cidr(..) => "cel.CIDR",
        Value::Url(_) => "cel.URL",
        Value::Format(_) => "cel.Format",
        Value::List(_) => "types.List",
        Value::Map(_) | Value::Device(_) => "types.Map",
        Value::Optional(_) => "*types.Optional",
        Value::Type(_) => "*types.Type",
    }
}
