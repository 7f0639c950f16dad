//! Why an expression does not select a device: the innermost parts that decided, with the values
//! that they read.
//!
//! Of a conjunction these are the conjuncts that are false, of a disjunction all its terms, of
//! `all` the first element for which it does not hold. The parts are evaluated again, one by one.

use std::fmt;

use crate::COST_LIMIT;
use crate::ast::{FoldKind, Kind, NodeId};
use crate::device::Device;
use crate::error::EvalError;
use crate::eval::{Evaluator, Outcome};
use crate::ir::{Op, StepId};
use crate::program::{Program, as_bool};
use crate::reads::operands;
use crate::value::Value;

/// One part of an expression that is false, or fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The part, as it was written.
    pub text: String,
    /// Its byte range in the expression.
    pub range: (usize, usize),
    /// Why it has no value; `None` if it is false.
    pub error: Option<EvalError>,
    /// What it read of the device, and the variables of macros that it used.
    pub reads: Vec<Read>,
}

/// Something that was read, and what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The path as it was written, such as `device.attributes["gpu.example.com"].model`.
    pub path: String,
    /// Its last part, such as `model`.
    pub name: String,
    /// Its value as one would write it in an expression; `None` if the device has none.
    pub value: Option<String>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(f, "`{}` has no value: {error}", self.text)?,
            None => write!(f, "`{}` is false", self.text)?,
        }
        let mut separator = if self.error.is_some() { "; " } else { ": " };
        for read in &self.reads {
            match &read.value {
                Some(value) => write!(f, "{separator}{} is {value}", read.name)?,
                None => write!(f, "{separator}the device has no {}", read.name)?,
            }
            separator = ", ";
        }
        Ok(())
    }
}

/// Longest text of a part that is shown whole, in characters.
const MAX_TEXT: usize = 240;

/// Explains a verdict; nothing if the device is selected.
pub(crate) fn explain(program: &Program, device: &Device<'_>) -> Vec<Step> {
    let root = program.ir.root;
    let outcome = Evaluator::new(&program.ir, device, COST_LIMIT).eval(root);
    let evaluator = Evaluator::new(&program.ir, device, COST_LIMIT.saturating_mul(4));
    let mut explainer = Explainer { program, evaluator, steps: Vec::new() };
    match outcome {
        Ok(value) if as_bool(&value) == Some(true) => {}
        Err(fault) if fault.kind.is_fatal() => explainer.leaf(root, Err(fault)),
        outcome => explainer.explain(root, outcome),
    }
    explainer.steps
}

struct Explainer<'e> {
    program: &'e Program,
    evaluator: Evaluator<'e>,
    steps: Vec<Step>,
}

impl<'e> Explainer<'e> {
    /// Explains a step that gave something else than true.
    fn explain(&mut self, id: StepId, outcome: Outcome<'e>) {
        let ir = self.evaluator.ir;
        match &ir.step(id).op {
            Op::And(terms) | Op::Or(terms) => self.terms(terms, &outcome),
            Op::Conditional { condition, then, other } => {
                let branch = match self.evaluator.eval(*condition) {
                    Ok(Value::Bool(true)) => *then,
                    Ok(Value::Bool(false)) => *other,
                    failed => return self.explain(*condition, failed),
                };
                self.explain(branch, outcome);
            }
            Op::Bind { init, body } => {
                self.evaluator.enter(*init);
                self.explain(*body, outcome);
                self.evaluator.leave();
            }
            Op::Fold(fold) if fold.kind == FoldKind::All => {
                let Ok(turns) = self.evaluator.turns(id, fold) else {
                    return self.leaf(id, outcome);
                };
                for turn in turns {
                    let variables = self.evaluator.enter_turn(turn);
                    let body = self.evaluator.eval(fold.body);
                    let decides =
                        !matches!(body, Ok(Value::Bool(true))) && body.is_err() == outcome.is_err();
                    if decides {
                        self.explain(fold.body, body);
                    }
                    (0..variables).for_each(|_| self.evaluator.leave());
                    if decides {
                        return;
                    }
                }
                self.leaf(id, outcome);
            }
            _ => self.leaf(id, outcome),
        }
    }

    /// The terms that made a conjunction or disjunction what it is.
    fn terms(&mut self, terms: &[StepId], outcome: &Outcome<'e>) {
        for term in terms {
            let result = self.evaluator.eval(*term);
            let same = match (&result, outcome) {
                (Ok(Value::Bool(true)), _) => false,
                (result, outcome) => result.is_err() == outcome.is_err(),
            };
            if same {
                self.explain(*term, result);
            }
        }
    }

    fn leaf(&mut self, id: StepId, outcome: Outcome<'e>) {
        // What failed is inside; the rest of the part does not matter.
        let shown = outcome.as_ref().err().map_or(id, |fault| fault.step);
        let error = match &outcome {
            Err(fault) => Some(self.program.error(fault)),
            Ok(Value::Bool(_)) => None,
            Ok(other) => {
                let kind = crate::EvalErrorKind::NotBool(other.type_name());
                let step = id;
                Some(self.program.error(&crate::eval::Fault { kind, step }))
            }
        };
        let node = self.program.ir.step(shown).node;
        let mut reads = Vec::new();
        self.reads(if error.is_some() { shown } else { id }, &mut reads);
        if error.is_some() {
            // That something is missing is what the error says.
            reads.retain(|read| read.value.is_some());
        }
        let at = self.program.ast.node(node);
        let range = (at.start as usize, at.end as usize);
        let text = shortened(self.source(node));
        let step = Step { text, range, error, reads };
        if !self.steps.contains(&step) {
            self.steps.push(step);
        }
    }

    fn source(&self, node: NodeId) -> &'e str {
        let at = self.program.ast.node(node);
        self.program.source.get(at.start as usize..at.end as usize).unwrap_or("")
    }

    /// The paths that a step reads, and their values now.
    fn reads(&mut self, id: StepId, out: &mut Vec<Read>) {
        let ir = self.evaluator.ir;
        let step = ir.step(id);
        let name = match (&step.op, &self.program.ast.node(step.node).kind) {
            (Op::Driver, _) => Some("driver".to_owned()),
            (Op::AllowMultipleAllocations, _) => Some("allowMultipleAllocations".to_owned()),
            (Op::Entry(_, _, name), _) => Some(name.to_string()),
            (Op::Local(_), Kind::Ident(name)) => Some(name.clone()),
            (Op::Select { field, .. } | Op::Has { field, .. }, _) => Some(field.to_string()),
            (Op::Index { index, .. }, _) => match &ir.step(*index).op {
                Op::Constant(Value::Str(text)) => Some(text.to_string()),
                _ => None,
            },
            _ => None,
        };
        if let Some(name) = name {
            self.read(id, name, out);
            return;
        }
        // What a macro's body reads depends on its turn; only its range is told.
        if let Op::Fold(fold) = &step.op {
            return self.reads(fold.range, out);
        }
        if matches!(&step.op, Op::Bind { .. } | Op::OptMap { .. }) {
            return;
        }
        let mut below = Vec::new();
        operands(&step.op, &mut |operand| below.push(operand));
        below.into_iter().for_each(|operand| self.reads(operand, out));
    }

    fn read(&mut self, id: StepId, name: String, out: &mut Vec<Read>) {
        let present = match &self.evaluator.ir.step(id).op {
            // has() itself reads whether there is a value.
            Op::Has { .. } => match self.evaluator.eval(id) {
                Ok(Value::Bool(false)) => None,
                _ => return,
            },
            _ => self.evaluator.eval(id).ok(),
        };
        let value = match present {
            Some(Value::Map(_) | Value::Device(_)) => return,
            Some(Value::Optional(None)) | None => None,
            Some(value) => Some(value.to_string()),
        };
        let path = shortened(self.source(self.evaluator.ir.step(id).node));
        let read = Read { path, name, value };
        if !out.contains(&read) {
            out.push(read);
        }
    }
}

/// The text, or its beginning if it is long.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
