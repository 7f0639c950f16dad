//! The face of the crate: an expression, compiled, and what can be asked of it.

use phalanx_objects::resource::DeviceAttribute;

use crate::ast::Ast;
use crate::attribute;
use crate::check::{Use, check};
use crate::device::Device;
use crate::error::{CompileError, EvalError, EvalErrorKind};
use crate::estimate::estimate;
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
    /// Before all that are told apart.
    pub(crate) const ANY: Version = Version::new(0, 0);
    /// The oldest version that is told apart from its predecessors.
    pub const OLDEST: Version = Version::new(1, 34);
    /// The newest version that is known.
    pub const NEWEST: Version = Version::new(1, 37);

    /// `Version::new(1, 37)` is 1.37.
    pub const fn new(major: u32, minor: u32) -> Self {
        Version { major, minor }
    }

    const fn before(self) -> Self {
        Version { major: self.major, minor: self.minor.saturating_sub(1) }
    }
}

/// Whose expressions these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expressions {
    /// Those of stored objects, as a scheduler compiles them: whatever any version so far allowed,
    /// and gates do not matter.
    Stored,
    /// Those that a user sends, as an API server accepts them: what its compatibility version (one
    /// minor before its own) allows, as far as gates are on.
    New(Gates),
}

/// The feature gates of Kubernetes on which new expressions depend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// `DRAConsumableCapacity`: `device.allowMultipleAllocations`.
    pub consumable_capacity: bool,
    /// `DRAListTypeAttributes`: macros over attributes, and `includes()`.
    pub list_type_attributes: bool,
}

/// What an expression may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Version of Kubernetes.
    pub version: Version,
    /// Whose expressions.
    pub expressions: Expressions,
}

impl Default for Environment {
    fn default() -> Self {
        Environment::stored(Version::NEWEST)
    }
}

impl Environment {
    /// That of a scheduler of the version.
    pub const fn stored(version: Version) -> Self {
        Environment { version, expressions: Expressions::Stored }
    }

    /// That of an API server of the version, with the gates.
    pub const fn new_expressions(version: Version, gates: Gates) -> Self {
        Environment { version, expressions: Expressions::New(gates) }
    }

    /// Whether `device.allowMultipleAllocations` is there.
    pub(crate) fn knows_sharing(&self) -> bool {
        match self.expressions {
            Expressions::Stored => true,
            Expressions::New(gates) => gates.consumable_capacity,
        }
    }

    /// Whether attributes may hold lists, so that their type is `dyn` and not `Any`.
    pub(crate) fn knows_lists(&self) -> bool {
        let known = self.version >= Version::new(1, 36);
        known
            && match self.expressions {
                Expressions::Stored => true,
                Expressions::New(gates) => gates.list_type_attributes,
            }
    }

    /// The version whose functions count.
    pub(crate) fn functions(&self) -> Version {
        match self.expressions {
            Expressions::Stored => self.version,
            Expressions::New(_) => self.version.before(),
        }
    }
}

/// An expression that compiles.
#[derive(Debug)]
pub struct Program {
    pub(crate) source: String,
    pub(crate) ast: Ast,
    pub(crate) ir: Ir,
    reads: Reads,
    output: String,
    /// What it was compiled in, and for.
    environment: Environment,
    wanted: Use,
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

/// What a derived attribute is on one device, and what that cost.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeEvaluation {
    /// The value; a list without elements is one of texts.
    pub value: Result<DeviceAttribute, EvalError>,
    /// Kubernetes' cost units used.
    pub cost: u64,
}

/// An answer, and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The answer.
    pub verdict: Verdict,
    /// Kubernetes' cost units used.
    pub cost: u64,
}

/// A bool, also in an optional value.
pub(crate) fn as_bool(value: &Value<'_>) -> Option<bool> {
    match value {
        Value::Bool(b) => Some(*b),
        Value::Optional(Some(inner)) => as_bool(inner),
        _ => None,
    }
}

impl Program {
    /// Compiles a selector: an expression that gives a bool, or an attribute that may be one.
    pub fn compile(source: &str, environment: &Environment) -> Result<Program, CompileError> {
        Self::compiled(source, environment, Use::Selector)
    }

    /// Compiles a derived attribute (`DRADerivedAttributes`): an expression that gives a bool, an
    /// integer, a text, a version, a list of these, or what is not known in advance.
    pub fn compile_attribute(
        source: &str,
        environment: &Environment,
    ) -> Result<Program, CompileError> {
        Self::compiled(source, environment, Use::Attribute)
    }

    fn compiled(
        source: &str,
        environment: &Environment,
        wanted: Use,
    ) -> Result<Program, CompileError> {
        let ast = parse(source)?;
        let checked = check(source, &ast, environment, wanted)?;
        let ir = lower(source, &ast, &checked)?;
        let reads = reads(&ir);
        let output = checked.types[ast.root as usize].declared();
        let (source, environment) = (source.to_owned(), environment.clone());
        Ok(Program { source, ast, ir, reads, output, environment, wanted })
    }

    /// The expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The most that an evaluation can cost, in Kubernetes' cost units; `u64::MAX` where there is
    /// no bound. An API server refuses a selector for which this is above
    /// [`COST_LIMIT`](crate::COST_LIMIT). It is worked out each time: who evaluates does not ask.
    pub fn estimate(&self) -> u64 {
        let checked = check(&self.source, &self.ast, &self.environment, self.wanted);
        // What was compiled passes the check.
        checked.map_or(u64::MAX, |checked| estimate(&self.ast, &checked))
    }

    /// The type of its value, as Kubernetes writes it.
    pub fn output_type(&self) -> &str {
        &self.output
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
            Ok(value) => match as_bool(&value) {
                Some(true) => Verdict::Yes,
                Some(false) => Verdict::No,
                None => {
                    let kind = EvalErrorKind::NotBool(value.type_name());
                    Verdict::Error(self.error(&Fault { kind, step: self.ir.root }))
                }
            },
            Err(fault) => Verdict::Error(self.error(&fault)),
        };
        Evaluation { verdict, cost: evaluator.meter.cost() }
    }

    /// The value of a derived attribute on the device. A limit of
    /// [`COST_LIMIT`](crate::COST_LIMIT) is Kubernetes'.
    pub fn evaluate_attribute(&self, device: &Device<'_>, cost_limit: u64) -> AttributeEvaluation {
        let mut evaluator = Evaluator::new(&self.ir, device, cost_limit);
        let root = self.ir.root;
        let value = match evaluator.eval(root) {
            Ok(value) => attribute::of(&value).map_err(|message| Fault {
                kind: EvalErrorKind::NotAttribute(message),
                step: root,
            }),
            Err(fault) => Err(*fault),
        };
        let value = value.map_err(|fault| self.error(&fault));
        AttributeEvaluation { value, cost: evaluator.meter.cost() }
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
