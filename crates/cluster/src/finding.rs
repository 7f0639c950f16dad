//! Findings: what is wrong or noteworthy in the input, each on one object, in whole sentences.
//!
//! A finding never stops anything: the object it is about is lowered as far as it can be, and all
//! others as if it were not there. How findings are printed is left to the command.

use std::sync::Arc;

use phalanx_objects::ObjectRef;

/// Detail of a fault over an object that is missing: it is in the input and could not be read.
pub(crate) const UNREAD: &str = "could not be read";

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The answer may be wrong or an object was left out: the exit code says so.
    Error,
    /// The answer holds, under an assumption that is named.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// The word in output: `error`, `warning`, `info`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// Where an object was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// Name of the file as the user gave it; `-` is the standard input; empty if there is none.
    pub file: Arc<str>,
    /// Line of the file at which the object begins, from 1; 0 if unknown.
    pub line: u32,
    /// Place of the object in the whole input: it orders what is not created yet, and of two
    /// versions that the API server has not numbered the one with the higher place counts.
    pub ordinal: u64,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The object; none where the input could not be read as one.
    pub object: Option<ObjectRef>,
    /// The file.
    pub file: Arc<str>,
    /// The line at which the object begins; 0 if unknown.
    pub line: u32,
    /// The field, such as `spec.devices.requests[0].exactly.selectors[0].cel.expression`; empty
    /// where it is the whole object.
    pub path: String,
    /// A sentence, or several.
    pub message: String,
}
