//! The format of a scenario file.
//!
//! ```yaml
//! rule: A pod goes where what is free covers what it requests.   # one sentence
//! decides: [InsufficientCPU]      # reasons that come first for some pod here
//! spares: [TooManyPods]           # reasons that all but come, and don't
//! now: 2026-03-01T12:00:00Z       # optional, and so are the next two
//! policy: {deviceOrder: upstream, strictCel: true, effort: 100}
//! compat: {version: "1.36", gates: "DRAConsumableCapacity=true", plugins: PodNodeSelector}
//! world:                          # the compact notation, see `notation`
//!   nodes:
//!     n1: {cpu: 62}
//!   pods:
//!     busy: {cpu: 40, node: n1}
//!     small: {cpu: 22}
//!     large: {cpu: 23}
//! objects: []                     # manifests, after those of the world
//! expect:                         # every pod that has no node, by hand
//!   small: {node: n1}
//!   large: {waits: [InsufficientCPU]}
//! findings: []                    # a part of the message of each finding
//! says: |                         # written by `cargo xtask accept`
//!   …
//! ```
//! An unknown key is an error with its line.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::notation::{Ordered, World, expand};

/// A scenario, as its file gives it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// The rule, a sentence.
    pub rule: String,
    /// Codes of the reasons that come first for some pod or group here.
    #[serde(default)]
    pub decides: Vec<String>,
    /// Codes of the reasons that all but come here: one unit or word more and they would.
    #[serde(default)]
    pub spares: Vec<String>,
    /// The time of the decision, RFC 3339; the newest time stamp of the objects where it is none.
    #[serde(default)]
    pub now: Option<String>,
    /// How to choose.
    #[serde(default)]
    pub policy: PolicyNote,
    /// Which Kubernetes is meant.
    #[serde(default)]
    pub compat: CompatNote,
    /// The world in compact notation.
    #[serde(default)]
    world: World,
    /// Manifests.
    #[serde(default)]
    objects: Vec<Value>,
    /// What becomes of each pod or group that is to be decided.
    pub expect: Ordered<Expect>,
    /// A part of the message of each finding, in order.
    #[serde(default)]
    pub findings: Vec<String>,
    /// What is said, as accepted.
    #[serde(default)]
    pub says: String,
}

/// How to choose.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct PolicyNote {
    /// `best` or `kube-scheduler`.
    pub node_order: NodeOrderNote,
    /// `best` or `upstream`.
    pub device_order: DeviceOrderNote,
    /// A CEL error ends the attempt, as upstream.
    pub strict_cel: bool,
    /// Steps that the search may take.
    pub effort: Option<u64>,
}

/// Which of the nodes that fit is taken.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum NodeOrderNote {
    /// The one of least cost.
    #[default]
    Best,
    /// The one that kube-scheduler scores highest.
    KubeScheduler,
}

/// Which feasible set of devices is taken.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum DeviceOrderNote {
    /// The one of least cost.
    #[default]
    Best,
    /// The first in upstream's order.
    Upstream,
}

/// Which Kubernetes is meant.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompatNote {
    /// Its version, such as `"1.36"`.
    pub version: Option<String>,
    /// Its gates, as kube-scheduler's flag takes them.
    pub gates: Option<String>,
    /// Admission plugins that are enabled beside the defaults.
    pub plugins: Option<String>,
}

/// What becomes of a pod, or of a group where the key is `KIND/NAME`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Expect {
    /// It is placed there.
    pub node: Option<String>,
    /// With these devices, in the order of its claims: `DEVICE`, or `POOL/DEVICE` where the pool is
    /// not named as the node.
    pub devices: Option<Vec<String>>,
    /// `proven`, `firstFit` or `bounded`.
    pub optimal: Option<String>,
    /// It waits, for these codes, all of them, in the order of the output.
    pub waits: Option<Vec<String>>,
    /// It is refused, for these codes.
    pub refused: Option<Vec<String>>,
    /// The search gave up, for these codes.
    pub gave_up: Option<Vec<String>>,
    /// Edits that are among its cures. (What is said has them all.)
    pub cures: Option<Vec<String>>,
    /// Of a group: how many of its seats are placed.
    pub placed: Option<u32>,
    /// Of a group: how many are missing.
    pub short: Option<u32>,
}

/// Why a scenario can't be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError(pub String);

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScenarioError {}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// Where the text is no scenario: what is wrong, with its line.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self =
            serde_saphyr::from_str(text).map_err(|error| ScenarioError(error.to_string()))?;
        scenario.check()?;
        Ok(scenario)
    }

    /// All objects of the scenario as manifests, those of the world first.
    ///
    /// # Errors
    /// Where the notation contradicts itself.
    pub fn manifests(&self) -> Result<Vec<Value>, ScenarioError> {
        expand(&self.world, &self.objects)
    }

    fn check(&self) -> Result<(), ScenarioError> {
        if !self.rule.trim_end().ends_with('.') || self.rule.contains('\n') {
            return Err(ScenarioError("`rule` is one sentence on one line.".to_owned()));
        }
        if let Some(code) = self.decides.iter().find(|code| self.spares.contains(code)) {
            return Err(ScenarioError(format!("`{code}` can't both decide and be spared.")));
        }
        for (name, expect) in self.expect.iter() {
            let verdicts = [
                expect.node.is_some() || expect.placed.is_some(),
                expect.waits.is_some(),
                expect.refused.is_some(),
                expect.gave_up.is_some(),
            ];
            // A group may be placed in part and wait for the rest.
            let group = name.contains('/');
            let count = verdicts.iter().filter(|v| **v).count();
            if count == 0 || (count > 1 && !group) {
                return Err(ScenarioError(format!(
                    "`expect.{name}` needs one of `node`, `waits`, `refused` and `gaveUp`."
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_an_error_with_its_line() {
        let text = "rule: A.\nworld:\n  nodes:\n    n1: {cpus: 3}\nexpect: {}\n";
        let error = Scenario::parse(text).unwrap_err().to_string();
        assert!(error.contains("cpus") && error.contains("line 4"), "{error}");
    }

    #[test]
    fn a_pod_has_one_verdict() {
        for expect in ["{}", "{node: n1, waits: [X]}"] {
            let text = format!("rule: A.\nexpect:\n  p: {expect}\n");
            let error = Scenario::parse(&text).unwrap_err().to_string();
            assert!(error.contains("expect.p"), "{error}");
        }
        assert!(Scenario::parse("rule: A\nexpect: {}\n").is_err());
        assert!(Scenario::parse("rule: A.\ndecides: [X]\nspares: [X]\nexpect: {}\n").is_err());
    }
}
