//! The face of the crate: an expression, compiled, and what can be asked of it.

use crate::ast::Ast;
use crate::check::check;
use crate::device::Device;
use crate::error::{CompileError, EvalError, EvalErrorKind};
use crate::eval::{Evaluator, Fault};
use crate::explain::{Step, explain};
use crate::ir::Ir;
use crate::lower::lower;
use crate::parse::parse;
use crate::reads::{Reads, reads};
use crate::value::Value;

/// A minor version of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    /// The oldest version that is told apart from its predecessors.
    pub const OLDEST: Version = Version::new(1, 34);
    /// The newest version that is known.
    pub const NEWEST: Version = Version::new(1, 37);

    /// `Version::new(1, 37)` is 1.37.
    pub const fn new(major: u32, minor: u32) -> Self {
        Version { major, minor }
    }
}

/// What an expression may use: what a scheduler of this version accepts in stored objects, where
/// feature gates do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Version of Kubernetes.
    pub version: Version,
}

impl Default for Environment {
    fn default() -> Self {
        Environment { version: Version::NEWEST }
    }
}

/// An expression that compiles.
#[derive(Debug)]
pub struct Program {
    pub(crate) source: String,
    pub(crate) ast: Ast,
    pub(crate) ir: Ir,
    reads: Reads,
}

/// The answer for one device.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The device is selected.
    Yes,
    /// It is not.
    No,
    /// There is no answer.
    Error(EvalError),
}

/// An answer, and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The answer.
    pub verdict: Verdict,
    /// Kubernetes' cost units used.
    pub cost: u64,
}

impl Program {
    /// Compiles an expression.
    pub fn compile(source: &str, environment: &Environment) -> Result<Program, CompileError> {
        let ast = parse(source)?;
        let checked = check(source, &ast, environment)?;
        let ir = lower(source, &ast, &checked)?;
        let reads = reads(&ir);
        Ok(Program { source: source.to_owned(), ast, ir, reads })
    }

    /// The expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What of a device the answer can depend on.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Whether the device is selected. A limit of [`COST_LIMIT`](crate::COST_LIMIT) is
    /// Kubernetes'.
    pub fn evaluate(&self, device: &Device<'_>, cost_limit: u64) -> Evaluation {
        let mut evaluator = Evaluator::new(&self.ir, device, cost_limit);
        let verdict = match evaluator.eval(self.ir.root) {
            Ok(Value::Bool(true)) => Verdict::Yes,
            Ok(Value::Bool(false)) => Verdict::No,
            Ok(other) => {
                let kind = EvalErrorKind::NotBool(other.type_name());
                Verdict::Error(self.error(&Fault { kind, step: self.ir.root }))
            }
            Err(fault) => Verdict::Error(self.error(&fault)),
        };
        Evaluation { verdict, cost: evaluator.meter.cost() }
    }

    /// Why the device is not selected: the innermost parts that decided, each with the values of
    /// the device that they read. Empty if it is selected.
    pub fn explain(&self, device: &Device<'_>) -> Vec<Step> {
        explain(self, device)
    }

    pub(crate) fn error(&self, fault: &Fault) -> EvalError {
        let node = self.ast.node(self.ir.step(fault.step).node);
        EvalError { kind: fault.kind.clone(), range: (node.start as usize, node.end as usize) }
    }
}
