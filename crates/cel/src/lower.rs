//! From the checked tree to [`Ir`]: constants are computed here, once, and what cannot be
//! computed although it is constant makes the expression invalid where upstream says so.
//!
//! Static costs are fixed here too. They follow upstream's plan: a name costs 1, each field or
//! index 1, and a name that is only the branch of a conditional or an index costs nothing.

use std::sync::Arc;

use crate::ast::{Ast, Binary, Element, Entry, Fold as AstFold, FoldKind, Kind, NodeId};
use crate::check::{Checked, Meaning, is_only_a_name};
use crate::cost::{self, Meter};
use crate::error::{CompileError, CompileErrorKind, EvalError};
use crate::eval::is_key;
use crate::functions::signatures::Function;
use crate::functions::{self, regex};
use crate::ir::{Fold, InCost, Ir, Op, Step, StepId, Table, Variant};
use crate::types::Type;
use crate::value::{List, Shared, Value};

/// Lowers a checked tree.
pub(crate) fn lower(source: &str, ast: &Ast, checked: &Checked) -> Result<Ir, CompileError> {
    let mut lowering = Lowering { source, ast, checked, steps: Vec::new() };
    let root = lowering.step(ast.root, false)?;
    Ok(Ir { steps: lowering.steps, root })
}

struct Lowering<'a> {
    source: &'a str,
    ast: &'a Ast,
    checked: &'a Checked,
    steps: Vec<Step>,
}

type Lowered = Result<StepId, CompileError>;

impl Lowering<'_> {
    fn add(&mut self, op: Op, node: NodeId, cost: u64) -> StepId {
        self.steps.push(Step { op, node, cost });
        (self.steps.len() - 1) as StepId
    }

    fn op(&self, id: StepId) -> &Op {
        &self.steps[id as usize].op
    }

    fn t(&self, id: NodeId) -> &Type {
        &self.checked.types[id as usize]
    }

    fn variant(&self, id: NodeId) -> Variant {
        match self.checked.candidates[id as usize][..] {
            [one] if one.arguments.last() == Some(&Type::Str) => Variant::Text,
            [_] => Variant::One,
            _ => Variant::Open,
        }
    }

    fn error(&self, id: NodeId, at: u32, message: String) -> CompileError {
        let node = self.ast.node(id);
        let range = (node.start, node.end);
        CompileError::new(CompileErrorKind::BadConstant, self.source, at, range, message)
    }

    /// Lowers a node. `bare`: it is a branch of a conditional, or an index, where upstream does
    /// not charge for the name at the root of a path.
    fn step(&mut self, id: NodeId, bare: bool) -> Lowered {
        let ast = self.ast;
        let name_cost = u64::from(!bare);
        let op = match &ast.node(id).kind {
            Kind::Null => Op::Constant(Value::Null),
            Kind::Bool(b) => Op::Constant(Value::Bool(*b)),
            Kind::Int(i) => Op::Constant(Value::Int(*i)),
            Kind::Uint(u) => Op::Constant(Value::Uint(*u)),
            Kind::Double(d) => Op::Constant(Value::Double(*d)),
            Kind::Str(s) => Op::Constant(Value::text(s)),
            Kind::Bytes(b) => Op::Constant(Value::Bytes(Shared::Owned(Arc::from(b.as_slice())))),
            Kind::Ident(_) => return Ok(self.name(id, name_cost)),
            Kind::Select { .. } if self.names_type(id) => return self.type_value(id),
            Kind::Select { operand, field, optional } => {
                return self.select(id, *operand, field, *optional, bare);
            }
            Kind::Has { operand, field } => {
                let (operand, cost) = self.operand(*operand, false)?;
                let op = Op::Has { operand, field: field.as_str().into() };
                return Ok(self.add(op, id, cost - 1));
            }
            Kind::Index { operand, index, optional } => {
                return self.index(id, *operand, *index, *optional, bare);
            }
            Kind::Call { target, args, .. } => return self.call(id, *target, args),
            Kind::Not(operand) => {
                let operand = self.step(*operand, false)?;
                return Ok(self.add(Op::Not(operand), id, 1));
            }
            Kind::Negate(operand) => {
                let operand = self.step(*operand, false)?;
                return Ok(self.add(Op::Negate(operand), id, 1));
            }
            Kind::Binary(operator, left, right) => self.binary(*operator, *left, *right)?,
            Kind::And(terms) => Op::And(self.all(terms)?),
            Kind::Or(terms) => Op::Or(self.all(terms)?),
            Kind::Conditional { condition, then, other } => Op::Conditional {
                condition: self.step(*condition, false)?,
                then: self.step(*then, true)?,
                other: self.step(*other, true)?,
            },
            Kind::List(elements) => return self.list(id, elements),
            Kind::Map(entries) => return self.map(id, entries),
            Kind::Fold(fold) => return self.fold(id, fold),
            Kind::Bind { init, body, .. } => {
                Op::Bind { init: self.step(*init, false)?, body: self.step(*body, false)? }
            }
            Kind::OptMap { target, body, flat, .. } => {
                let target = self.step(*target, false)?;
                Op::OptMap { target, body: self.step(*body, false)?, flat: *flat }
            }
        };
        Ok(self.add(op, id, 0))
    }

    fn all(&mut self, ids: &[NodeId]) -> Result<Box<[StepId]>, CompileError> {
        ids.iter().map(|id| self.step(*id, false)).collect()
    }

    fn names_type(&self, id: NodeId) -> bool {
        matches!(self.checked.meanings[id as usize], Meaning::Type(_))
    }

    /// A type by its path, such as `net.IP`.
    fn type_value(&mut self, id: NodeId) -> Lowered {
        match self.checked.meanings[id as usize] {
            Meaning::Type(name) if is_only_a_name(name) => {
                let message =
                    format!("program instantiation failed: reference to undefined type: {name}");
                Err(self.error(id, self.ast.node(id).at, message))
            }
            Meaning::Type(name) => Ok(self.add(Op::Constant(Value::Type(name)), id, 0)),
            Meaning::None | Meaning::Device | Meaning::Local(_) | Meaning::Call(..) => {
                Ok(self.name(id, 1))
            }
        }
    }

    fn name(&mut self, id: NodeId, cost: u64) -> StepId {
        match self.checked.meanings[id as usize] {
            Meaning::Local(slot) => self.add(Op::Local(slot), id, cost),
            Meaning::Type(name) => self.add(Op::Constant(Value::Type(name)), id, 0),
            Meaning::Device | Meaning::None | Meaning::Call(..) => self.add(Op::Device, id, cost),
        }
    }

    /// Lowers what a field or an index is taken of, and gives what the access costs: values that
    /// are no path themselves cost one more.
    fn operand(&mut self, operand: NodeId, bare: bool) -> Result<(StepId, u64), CompileError> {
        let path = matches!(
            self.ast.node(operand).kind,
            Kind::Ident(_) | Kind::Select { .. } | Kind::Index { .. } | Kind::Conditional { .. }
        );
        let step = self.step(operand, bare && path)?;
        Ok((step, if path || bare { 1 } else { 2 }))
    }

    fn select(
        &mut self,
        id: NodeId,
        operand: NodeId,
        field: &str,
        optional: bool,
        bare: bool,
    ) -> Lowered {
        let (step, cost) = self.operand(operand, bare)?;
        let op = match (self.op(step), optional) {
            (Op::Device, false) => match field {
                "driver" => Op::Driver,
                "allowMultipleAllocations" => Op::AllowMultipleAllocations,
                "attributes" => Op::Domains(Table::Attributes),
                _ => Op::Domains(Table::Capacity),
            },
            (Op::Domains(table), false) => Op::Domain(*table, field.into()),
            (Op::Domain(table, domain), false) => Op::Entry(*table, domain.clone(), field.into()),
            _ => {
                let op = Op::Select { operand: step, field: field.into(), optional };
                return Ok(self.add(op, id, cost));
            }
        };
        Ok(self.replace(step, op, id, cost))
    }

    /// A path that has grown by a step: its cost is that of the whole.
    fn replace(&mut self, last: StepId, op: Op, node: NodeId, cost: u64) -> StepId {
        let before = self.steps[last as usize].cost;
        self.add(op, node, before + cost)
    }

    fn index(
        &mut self,
        id: NodeId,
        operand: NodeId,
        index: NodeId,
        optional: bool,
        bare: bool,
    ) -> Lowered {
        if let (Kind::Str(text), false) = (&self.ast.node(index).kind, optional) {
            let text = text.clone();
            let (step, cost) = self.operand(operand, bare)?;
            let op = match self.op(step) {
                Op::Domains(table) => Some(Op::Domain(*table, text.as_str().into())),
                Op::Domain(table, domain) => {
                    Some(Op::Entry(*table, domain.clone(), text.as_str().into()))
                }
                _ => None,
            };
            if let Some(op) = op {
                return Ok(self.replace(step, op, id, cost));
            }
            let index = self.step(index, true)?;
            return Ok(self.add(Op::Index { operand: step, index, optional }, id, cost));
        }
        let (operand, cost) = self.operand(operand, bare)?;
        let key = self.step(index, true)?;
        if self.constant(key).is_some_and(|key| !is_key(key)) {
            let message = "program instantiation failed: invalid qualifier type".to_owned();
            return Err(self.error(index, self.ast.node(index).at, message));
        }
        Ok(self.add(Op::Index { operand, index: key, optional }, id, cost))
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: NodeId,
        right: NodeId,
    ) -> Result<Op, CompileError> {
        let a = self.step(left, false)?;
        let b = self.step(right, false)?;
        // Texts are charged by their size where the types settle on them: one side is enough.
        let sized = |t: &Type| matches!(t, Type::Str | Type::Bytes);
        let by_size = sized(self.t(left)) || sized(self.t(right));
        Ok(match operator {
            Binary::Arithmetic(operator) => Op::Arithmetic(operator, by_size, a, b),
            Binary::Compare(operator) => Op::Compare(operator, by_size, a, b),
            Binary::Equal => Op::Equal(a, b),
            Binary::NotEqual => Op::NotEqual(a, b),
            Binary::In => {
                let empty =
                    matches!(self.op(b), Op::Constant(Value::List(list)) if list.len() == 0);
                if empty && matches!(self.t(right), Type::List(_)) {
                    return Ok(Op::Constant(Value::Bool(false)));
                }
                let cost = match (self.t(right), self.op(b)) {
                    (Type::List(_), Op::Constant(Value::List(list))) if simple(list) => {
                        InCost::Free
                    }
                    (Type::List(_), _) => InCost::Length,
                    _ => InCost::One,
                };
                Op::In { value: a, within: b, cost }
            }
        })
    }

    /// The value of a step that upstream folds: a literal, or made of literals.
    fn constant(&self, id: StepId) -> Option<&Value<'static>> {
        match &self.steps[id as usize] {
            Step { op: Op::Constant(value), cost: 0, .. } => Some(value),
            _ => None,
        }
    }

    /// Values and cost of steps which are all constant, be it only to us.
    fn constants(&self, ids: impl Iterator<Item = StepId>) -> Option<(Vec<Value<'static>>, u64)> {
        let mut cost = 0;
        let mut values = Vec::new();
        for id in ids {
            let step = &self.steps[id as usize];
            let Op::Constant(value) = &step.op else { return None };
            values.push(value.clone());
            cost += step.cost;
        }
        Some((values, cost))
    }

    fn list(&mut self, id: NodeId, elements: &[Element]) -> Lowered {
        let mut steps = Vec::with_capacity(elements.len());
        for element in elements {
            steps.push((self.step(element.value, false)?, element.optional));
        }
        let plain = steps.iter().all(|(_, optional)| !optional);
        let free = plain && steps.iter().all(|(step, _)| self.constant(*step).is_some());
        let making = if free { 0 } else { cost::LIST };
        match self.constants(steps.iter().map(|(step, _)| *step)).filter(|_| plain) {
            Some((values, cost)) => {
                Ok(self.add(Op::Constant(Value::list(values)), id, making + cost))
            }
            None => Ok(self.add(Op::List(steps.into()), id, making)),
        }
    }

    fn map(&mut self, id: NodeId, entries: &[Entry]) -> Lowered {
        let mut steps = Vec::with_capacity(entries.len());
        for e in entries {
            steps.push((self.step(e.key, false)?, self.step(e.value, false)?, e.optional));
        }
        let free = steps.iter().all(|(key, value, optional)| {
            !optional && self.constant(*key).is_some() && self.constant(*value).is_some()
        });
        let keys = self.constants(steps.iter().map(|(key, _, _)| *key));
        let values = self.constants(steps.iter().map(|(_, value, _)| *value));
        if let (true, Some((keys, _)), Some((values, _))) = (free, keys, values) {
            let pairs = keys.into_iter().zip(values).collect();
            // A failure, such as a key that occurs twice, is left to the evaluation.
            if let Ok(map) = functions::make_map(pairs, &mut Meter::unlimited()) {
                return Ok(self.add(Op::Constant(map), id, 0));
            }
        }
        Ok(self.add(Op::Map(steps.into()), id, cost::MAP))
    }

    fn fold(&mut self, id: NodeId, fold: &AstFold) -> Lowered {
        let range = self.step(fold.range, false)?;
        let filter = fold.filter.map(|filter| self.step(filter, false)).transpose()?;
        let body = self.step(fold.body, false)?;
        let free = fold.kind == FoldKind::Map && self.constant(body).is_some();
        let element_cost = if free { 0 } else { cost::LIST };
        let two = fold.var2.is_some();
        let fold = Fold { kind: fold.kind, range, two, filter, body, element_cost };
        Ok(self.add(Op::Fold(Box::new(fold)), id, 0))
    }

    fn call(&mut self, id: NodeId, target: Option<NodeId>, args: &[NodeId]) -> Lowered {
        let Meaning::Call(function, receiver) = self.checked.meanings[id as usize] else {
            let message = "this call was not resolved".to_owned();
            return Err(self.error(id, self.ast.node(id).at, message));
        };
        let nodes: Vec<NodeId> =
            target.filter(|_| receiver).into_iter().chain(args.iter().copied()).collect();
        let steps = self.all(&nodes)?;
        match (function, &*steps) {
            (Function::OrElse, &[optional, other]) => {
                Ok(self.add(Op::OrElse { optional, other }, id, 0))
            }
            (Function::OrValue, &[optional, other]) => {
                Ok(self.add(Op::OrValue { optional, other }, id, 0))
            }
            (
                Function::Matches | Function::Find | Function::FindAll,
                [text, pattern, rest @ ..],
            ) => {
                let arguments: Box<[StepId]> =
                    [*text].into_iter().chain(rest.iter().copied()).collect();
                match self.constant(*pattern) {
                    Some(Value::Str(source)) => {
                        let source = source.clone();
                        self.regex(id, function, &nodes, arguments, &source)
                    }
                    _ => Ok(self.add(Op::Call(function, self.variant(id), steps), id, 0)),
                }
            }
            _ => self.folded(id, function, steps),
        }
    }

    fn regex(
        &mut self,
        id: NodeId,
        function: Function,
        nodes: &[NodeId],
        arguments: Box<[StepId]>,
        source: &str,
    ) -> Lowered {
        let pattern = nodes.get(1).copied().unwrap_or(id);
        match regex::compile(source) {
            Ok(regex) => {
                let length = source.chars().count() as u64;
                let regex = Box::new(regex);
                Ok(self.add(Op::Regex { function, arguments, regex, length }, id, 0))
            }
            Err(message) => {
                let what = match function {
                    Function::Matches => "invalid matches argument".to_owned(),
                    _ => format!("program instantiation failed: {message}"),
                };
                let at = self.ast.node(pattern).at;
                Err(self.error(pattern, at, what).with_hint(Some(message)))
            }
        }
    }

    /// A call, computed now if it is a conversion of a constant, or only saves time later.
    fn folded(&mut self, id: NodeId, function: Function, steps: Box<[StepId]>) -> Lowered {
        let conversion =
            function.is_conversion() && steps.iter().all(|step| self.constant(*step).is_some());
        let prepared = matches!(function, Function::Quantity | Function::Semver);
        let constants = self.constants(steps.iter().copied()).filter(|_| conversion || prepared);
        let Some((values, inner)) = constants else {
            return Ok(self.add(Op::Call(function, self.variant(id), steps), id, 0));
        };
        let variant = self.variant(id);
        let result = functions::call(function, &values, &mut Meter::unlimited());
        match result {
            Ok(value) if conversion => Ok(self.add(Op::Constant(value), id, 0)),
            Ok(value) => {
                let cost = functions::cost(function, variant, &values, Some(&value)) + inner;
                Ok(self.add(Op::Constant(value), id, cost))
            }
            Err(kind) if conversion => {
                let error = EvalError { kind, range: (0, 0) };
                let message = format!("program instantiation failed: {error}");
                Err(self.error(id, self.ast.node(id).at, message))
            }
            Err(_) => Ok(self.add(Op::Call(function, self.variant(id), steps), id, 0)),
        }
    }
}

/// Whether a constant list becomes a set upstream.
fn simple(list: &List<'_>) -> bool {
    list.iter().all(|value| {
        matches!(
            value,
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Str(_)
        )
    })
}
