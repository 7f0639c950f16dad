//! The JSON of `diff`, described in `docs/schema.md`.

use serde::Serialize;
use serde_json::Value;

use crate::view::FindingView;

/// The version of the schema.
pub const DIFF_API_VERSION: &str = "phalanx.dev/diff/v1";

/// What `diff` answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffDocument {
    /// Version of the schema.
    pub api_version: &'static str,
    /// In what the two questions differ beside the objects.
    pub settings: Vec<SettingView>,
    /// Every pod that differs, in the queue order of the plan from after; then those that are gone.
    pub changes: Vec<ChangeView>,
    /// What was found wrong while reading.
    pub findings: Vec<FindingView>,
    /// Counts.
    pub summary: DiffSummary,
}

/// A setting of the question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingView {
    /// Its path in a plan, such as `compat.kubernetesVersion`.
    pub name: String,
    /// Its value before; null where there was none.
    pub before: Value,
    /// Its value after.
    pub after: Value,
}

/// In what a pod differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChangeWord {
    /// It is placed, and was not.
    Starts,
    /// It was placed, and is not.
    Stops,
    /// It is placed on another node.
    Moves,
    /// It gets other devices on the same node.
    Devices,
    /// It is not placed, for other reasons or with another verdict.
    Reason,
    /// It was not in the plan.
    New,
    /// It is not in the plan any more.
    Gone,
}

impl ChangeWord {
    /// The word that stands in the JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starts => "starts",
            Self::Stops => "stops",
            Self::Moves => "moves",
            Self::Devices => "devices",
            Self::Reason => "reason",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

/// A pod that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangeView {
    /// In what.
    pub change: ChangeWord,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The workload that it is of, as `KIND/NAME`.
    pub group: Option<String>,
    /// What the plan from before says of it.
    pub before: Option<SideView>,
    /// What the plan from after says of it.
    pub after: Option<SideView>,
}

/// What one plan says of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SideView {
    /// Its verdict.
    pub verdict: String,
    /// Its node.
    pub node: Option<String>,
    /// Its devices, with the pool where that is not named as the node.
    pub devices: Vec<String>,
    /// Codes of the reasons, the deciding one first.
    pub reasons: Vec<String>,
    /// The sentence of the deciding reason.
    pub message: Option<String>,
}

/// Counts of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiffSummary {
    /// Placed now, and not before.
    pub starts: u64,
    /// Placed before, and not now.
    pub stops: u64,
    /// On another node.
    pub moves: u64,
    /// With other devices.
    pub devices: u64,
    /// Not placed, for other reasons.
    pub reason: u64,
    /// Not in the plan before.
    pub new: u64,
    /// Not in the plan now.
    pub gone: u64,
    /// The same in both.
    pub same: u64,
}

impl DiffSummary {
    /// One more.
    pub(super) fn count(&mut self, word: ChangeWord) {
        let number = match word {
            ChangeWord::Starts => &mut self.starts,
            ChangeWord::Stops => &mut self.stops,
            ChangeWord::Moves => &mut self.moves,
            ChangeWord::Devices => &mut self.devices,
            ChangeWord::Reason => &mut self.reason,
            ChangeWord::New => &mut self.new,
            ChangeWord::Gone => &mut self.gone,
        };
        *number += 1;
    }
}
