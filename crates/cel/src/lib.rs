//! CEL as Kubernetes uses it for the selectors of DRA: an expression over one device that says
//! whether a request may have it.
//!
//! [`Program::compile`] parses and checks as the API server does and as a scheduler does with what
//! is stored; [`Program::evaluate`] gives one of three answers within a limit of cost;
//! [`Program::reads`] says what of a device the answer depends on, so that it need not be asked
//! again for a device that is alike; [`Program::explain`] says which part of the expression made
//! it false, and by which values.
//!
//! What a selector means for an allocation (which requests, which order, what an error does) is
//! for others.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and types here are those of a dynamically typed language: an operation lists \
              what it takes, and all else is one and the same error"
)]

mod ast;
mod attribute;
mod check;
mod compared;
mod cost;
mod device;
mod error;
mod estimate;
mod eval;
mod explain;
mod functions;
mod hints;
mod ir;
mod lexer;
mod lower;
mod ops;
mod parse;
mod program;
mod reads;
mod spelled;
#[cfg(test)]
mod tests;
mod types;
mod value;

pub use compared::Compared;
pub use device::{Device, DeviceError, is_seen};
pub use error::{CompileError, CompileErrorKind, EvalError, EvalErrorKind};
pub use explain::{Read, Step};
pub use functions::regex::Pattern;
pub use program::{
    AttributeEvaluation, Environment, Evaluation, Expressions, Gates, Program, Verdict, Version,
};
pub use reads::{Projection, ReadSet, Reads};
pub use spelled::{Place, Spelled};

/// Bytes of the longest expression (`CELSelectorExpressionMaxLength`).
pub const MAX_LENGTH: usize = 10 * 1024;

/// Cost at which an evaluation is broken off (`CELSelectorExpressionMaxCost`).
pub const COST_LIMIT: u64 = 1_000_000;

/// Levels that an expression may be nested, as in cel-go's parser. A chain of `+` or of fields
/// nests by one level a link; `&&` and `||` chains are one level.
pub const MAX_DEPTH: usize = 250;
