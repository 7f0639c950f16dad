//! What can go wrong: an expression that cannot be used at all ([`CompileError`]), and one that
//! fails on a device ([`EvalError`]). Both say where in the expression, and read as sentences.
//!
//! The texts of evaluation errors are those of Kubernetes where a user would search for them
//! (`no such key: x`); what to do about an error stands apart from its text, as a hint.

use std::fmt;

/// Why an expression is refused before it sees a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompileErrorKind {
    /// The text is not CEL.
    Syntax,
    /// A name that is neither a variable, a field nor a function here.
    UndeclaredReference,
    /// Something that Kubernetes can do and this crate cannot: making messages of protocol buffers.
    Unsupported,
    /// A field which `device` does not have, or which the environment does not know yet.
    UndefinedField,
    /// A function or operator that has no variant for these types.
    NoSuchOverload,
    /// A value of another type than its place asks for, mixed literals included.
    WrongType,
    /// The whole expression gives something else than a bool.
    NotBool,
    /// The whole of a derived attribute gives something that no attribute can hold.
    NotAttribute,
    /// Nested deeper than [`MAX_DEPTH`](crate::MAX_DEPTH), or a type that is too large.
    TooDeep,
    /// Longer than [`MAX_LENGTH`](crate::MAX_LENGTH).
    TooLong,
    /// A constant that cannot be converted, or a regular expression that does not parse.
    BadConstant,
}

/// An expression that cannot be used, and where the fault is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// What kind of fault it is.
    pub kind: CompileErrorKind,
    /// What is wrong, in the words of Kubernetes' compiler where it has some.
    pub message: String,
    /// What to write instead, where that is known: a whole sentence.
    pub hint: Option<String>,
    /// Byte range in the expression of the part that is at fault.
    pub range: (usize, usize),
    /// Line of the fault in the expression, from 1.
    pub line: usize,
    /// Column of the fault in its line, from 1, counted in characters as Kubernetes counts.
    pub column: usize,
}

impl CompileError {
    pub(crate) fn new(
        kind: CompileErrorKind,
        source: &str,
        at: u32,
        range: (u32, u32),
        message: String,
    ) -> Self {
        let (line, column) = line_and_column(source, at as usize);
        let range = (range.0 as usize, range.1 as usize);
        CompileError { kind, message, hint: None, range, line, column }
    }

    pub(crate) fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, ". {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CompileError {}

/// Line and column of a byte offset, both from 1; columns count characters.
pub(crate) fn line_and_column(source: &str, offset: usize) -> (usize, usize) {
    let before = source.get(..offset).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// Why an expression has no answer for a device.
#[derive(Clone, Debug, PartialEq)]
pub enum EvalErrorKind {
    /// A map, an attribute domain for instance, has no such entry.
    NoSuchKey(String),
    /// A list has no such place.
    IndexOutOfBounds(String),
    /// A text has no such place.
    IndexOutOfRange(i64),
    /// The values have types that the function or operator does not take.
    NoSuchOverload,
    /// Division by zero.
    DivisionByZero,
    /// Remainder of a division by zero.
    ModulusByZero,
    /// A result that does not fit its integer type.
    Overflow(&'static str),
    /// A macro such as `exists` over something that is neither a list nor a map.
    NotIterable(&'static str),
    /// The whole expression gave something else than a bool.
    NotBool(&'static str),
    /// A derived attribute gave something that no attribute can hold.
    NotAttribute(String),
    /// Any other fault of a function, in its own words.
    Failed(String),
    /// Kubernetes' evaluator breaks down: a list that is to be sorted, flattened or rid of what it
    /// has twice could not be made, or a version is looked for in a map. Nothing around it can make
    /// up for that.
    Internal,
    /// The cost limit is used up.
    CostLimit,
}

impl EvalErrorKind {
    /// Whether it ends the evaluation, also inside `&&` and `||`.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self, EvalErrorKind::Internal | EvalErrorKind::CostLimit)
    }
}

/// An expression that has no answer for a device, and which part of it failed.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalError {
    /// What failed.
    pub kind: EvalErrorKind,
    /// Byte range in the expression of the part that failed.
    pub range: (usize, usize),
}

impl EvalError {
    /// The text in which a sentence tells it: Kubernetes' own, but where that names types of its
    /// language.
    pub fn in_words(&self) -> String {
        let EvalErrorKind::NotIterable(name) = &self.kind else { return self.to_string() };
        let name = name.rsplit('.').next().unwrap_or(name).to_lowercase();
        let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("a macro goes over a list or a map, and this is {article} {name}")
    }

    /// What to do about it, where that is known: a whole sentence.
    pub fn hint(&self) -> Option<&'static str> {
        match &self.kind {
            EvalErrorKind::NoSuchKey(_) => Some(
                "Guard the lookup with has(), or use optional chaining: `.?` followed by orValue()",
            ),
            EvalErrorKind::CostLimit => {
                Some("Nest fewer macros such as all() and exists(), or write shorter lists")
            }
            EvalErrorKind::NotBool(_) => Some("Compare the value with something"),
            EvalErrorKind::IndexOutOfBounds(_)
            | EvalErrorKind::IndexOutOfRange(_)
            | EvalErrorKind::NoSuchOverload
            | EvalErrorKind::DivisionByZero
            | EvalErrorKind::ModulusByZero
            | EvalErrorKind::Overflow(_)
            | EvalErrorKind::NotIterable(_)
            | EvalErrorKind::NotAttribute(_)
            | EvalErrorKind::Internal
            | EvalErrorKind::Failed(_) => None,
        }
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            EvalErrorKind::NoSuchKey(key) => write!(f, "no such key: {key}"),
            EvalErrorKind::IndexOutOfBounds(index) => write!(f, "index out of bounds: {index}"),
            EvalErrorKind::IndexOutOfRange(index) => write!(f, "index out of range: {index}"),
            EvalErrorKind::NoSuchOverload => f.write_str("no such overload"),
            EvalErrorKind::DivisionByZero => f.write_str("division by zero"),
            EvalErrorKind::ModulusByZero => f.write_str("modulus by zero"),
            EvalErrorKind::Overflow(what) => write!(f, "{what} overflow"),
            EvalErrorKind::NotIterable(name) => {
                write!(f, "got '{name}', expected iterable type")
            }
            EvalErrorKind::NotBool(name) => {
                write!(f, "CEL result of type {name} could not be converted to bool")
            }
            EvalErrorKind::NotAttribute(message) | EvalErrorKind::Failed(message) => {
                f.write_str(message)
            }
            EvalErrorKind::Internal => {
                f.write_str("internal error: the evaluator of Kubernetes fails here")
            }
            EvalErrorKind::CostLimit => {
                f.write_str("operation cancelled: actual cost limit exceeded")
            }
        }
    }
}

impl std::error::Error for EvalError {}
