//! The JSON of `lint`, described in `docs/schema.md`.

use serde::Serialize;

use crate::view::CompatView;

/// The version of the schema.
pub const LINT_API_VERSION: &str = "phalanx.dev/lint/v1";

/// What `lint` answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LintDocument {
    /// Version of the schema.
    pub api_version: &'static str,
    /// What the answer depends on beside the objects.
    pub compat: CompatView,
    /// What was found, in the order of the input.
    pub findings: Vec<LintFindingView>,
    /// With `--advise`: what is said of each workload that asks for devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Vec<AdviceView>>,
    /// Counts.
    pub summary: LintSummary,
}

/// Whether counts suffice for a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdviceView {
    /// The pod or workload, as `KIND/NAMESPACE/NAME`.
    pub object: String,
    /// What each of its pods asks for.
    pub asks: Vec<String>,
    /// Whether it asks by claims now.
    pub by_claims: bool,
    /// `countsSuffice` or `needsDRA`.
    pub verdict: &'static str,
    /// What only DRA can express.
    pub grounds: Vec<GroundView>,
    /// What could not be known, and might be a ground.
    pub unknown: Option<String>,
    /// What to do.
    pub message: String,
}

/// Something that a count can't say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroundView {
    /// Stable name of its kind.
    pub code: &'static str,
    /// A sentence.
    pub message: String,
}

impl AdviceView {
    /// What is written of an advice.
    #[must_use]
    pub fn of(advice: &super::Advice) -> Self {
        let ground = |ground: &super::Ground| GroundView {
            code: ground.kind.code(),
            message: ground.message.clone(),
        };
        Self {
            object: crate::edit::Target::from(&advice.object).to_string(),
            asks: advice.asks.clone(),
            by_claims: advice.by_claims,
            verdict: advice.verdict(),
            grounds: advice.grounds.iter().map(ground).collect(),
            unknown: advice.unknown.clone(),
            message: advice.advice(),
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LintFindingView {
    /// Stable name of the rule; empty of what is wrong with the command line.
    pub code: &'static str,
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    /// The object, as `KIND/NAMESPACE/NAME`.
    pub object: Option<String>,
    /// The file.
    pub file: Option<String>,
    /// The line of the field, from 1.
    pub line: Option<u64>,
    /// The field's path.
    pub path: Option<String>,
    /// The place in the expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<PositionView>,
    /// The sentence.
    pub message: String,
}

/// A place in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PositionView {
    /// Line in the expression, from 1.
    pub line: u32,
    /// Column in that line, from 1, in characters.
    pub column: u32,
}

/// Counts, of everything that was found whether it is shown or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LintSummary {
    /// Findings that are errors.
    pub errors: u64,
    /// Warnings.
    pub warnings: u64,
    /// What is worth knowing.
    pub infos: u64,
    /// Objects read.
    pub objects: u64,
}
