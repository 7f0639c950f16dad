//! Two plans side by side: who starts now, who no more, who moves, who gets other devices, who waits
//! for another reason. It compares documents and needs neither of the worlds; reading their text is
//! left to the command.

mod document;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

pub use document::{
    ChangeView, ChangeWord, DIFF_API_VERSION, DiffDocument, DiffSummary, SettingView, SideView,
};

use crate::view::API_VERSION;

/// A plan, as far as it is compared. Fields that a later version adds are passed over.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanRead {
    api_version: String,
    #[serde(default)]
    compat: BTreeMap<String, Value>,
    #[serde(default)]
    policy: BTreeMap<String, Value>,
    pods: Vec<PodRead>,
    #[serde(default)]
    unanswered: bool,
    #[serde(default)]
    findings: Vec<FindingRead>,
}

#[derive(Clone, Debug, Deserialize)]
struct FindingRead {
    #[serde(default)]
    message: String,
}

#[derive(Clone, Debug, Deserialize)]
struct PodRead {
    namespace: String,
    name: String,
    #[serde(default)]
    group: Option<String>,
    verdict: String,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    devices: Vec<DeviceRead>,
    #[serde(default)]
    reasons: Vec<ReasonRead>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct DeviceRead {
    driver: String,
    pool: String,
    device: String,
}

#[derive(Clone, Debug, Deserialize)]
struct ReasonRead {
    code: String,
    #[serde(default)]
    message: String,
}

impl PlanRead {
    /// Whether the document is a plan of the version that is compared, with an answer.
    ///
    /// # Errors
    /// Says what it is instead.
    pub fn check(&self) -> Result<(), String> {
        if self.api_version == API_VERSION {
            let why = self.findings.first().map_or("", |finding| finding.message.as_str());
            return match self.unanswered {
                true => Err(format!("the command that wrote it had no answer: {why}")),
                false => Ok(()),
            };
        }
        Err(format!(
            "its apiVersion is `{}`, and plans are of `{API_VERSION}`: give what `phalanx plan -o \
             json` prints",
            self.api_version
        ))
    }
}

/// What differs between two plans.
#[must_use]
pub fn diff(before: &PlanRead, after: &PlanRead) -> DiffDocument {
    let mut summary = DiffSummary::default();
    let mut changes = Vec::new();
    let old = by_name(before);
    let mut seen = BTreeSet::new();
    for pod in &after.pods {
        let key = (pod.namespace.as_str(), pod.name.as_str());
        seen.insert(key);
        let earlier = old.get(&key).copied();
        match word(earlier, Some(pod)) {
            Some(word) => {
                summary.count(word);
                changes.push(change(word, earlier, Some(pod), pod));
            }
            None => summary.same += 1,
        }
    }
    for pod in before.pods.iter().filter(|p| !seen.contains(&(p.namespace.as_str(), &*p.name))) {
        summary.count(ChangeWord::Gone);
        changes.push(change(ChangeWord::Gone, Some(pod), None, pod));
    }
    DiffDocument {
        api_version: DIFF_API_VERSION,
        settings: settings(before, after),
        changes,
        findings: Vec::new(),
        summary,
    }
}

fn by_name(plan: &PlanRead) -> BTreeMap<(&str, &str), &PodRead> {
    plan.pods.iter().map(|pod| ((pod.namespace.as_str(), pod.name.as_str()), pod)).collect()
}

/// In what a pod differs, the gravest first; none where it is as before.
fn word(before: Option<&PodRead>, after: Option<&PodRead>) -> Option<ChangeWord> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, Some(_)) => return Some(ChangeWord::New),
        (Some(_), None) => return Some(ChangeWord::Gone),
        (None, None) => return None,
    };
    match (before.is_placed(), after.is_placed()) {
        (false, true) => Some(ChangeWord::Starts),
        (true, false) => Some(ChangeWord::Stops),
        (true, true) if before.node != after.node => Some(ChangeWord::Moves),
        (true, true) => (before.devices() != after.devices()).then_some(ChangeWord::Devices),
        (false, false) => {
            let same = before.verdict == after.verdict && before.codes() == after.codes();
            (!same).then_some(ChangeWord::Reason)
        }
    }
}

impl PodRead {
    fn is_placed(&self) -> bool {
        self.verdict == "placed"
    }

    fn devices(&self) -> BTreeSet<&DeviceRead> {
        self.devices.iter().collect()
    }

    fn codes(&self) -> Vec<&str> {
        self.reasons.iter().map(|reason| reason.code.as_str()).collect()
    }

    fn side(&self) -> SideView {
        let node = self.node.as_deref().unwrap_or_default();
        let device = |device: &DeviceRead| {
            let own = device.pool == node;
            if own { device.device.clone() } else { format!("{}/{}", device.pool, device.device) }
        };
        SideView {
            verdict: self.verdict.clone(),
            node: self.node.clone(),
            devices: self.devices.iter().map(device).collect(),
            reasons: self.codes().into_iter().map(str::to_owned).collect(),
            message: self.reasons.first().map(|reason| reason.message.clone()),
        }
    }
}

fn change(
    change: ChangeWord,
    before: Option<&PodRead>,
    after: Option<&PodRead>,
    pod: &PodRead,
) -> ChangeView {
    ChangeView {
        change,
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        group: pod.group.clone(),
        before: before.map(PodRead::side),
        after: after.map(PodRead::side),
    }
}

/// In what the two questions differ beside the objects.
fn settings(before: &PlanRead, after: &PlanRead) -> Vec<SettingView> {
    let mut found = Vec::new();
    let parts =
        [("compat", &before.compat, &after.compat), ("policy", &before.policy, &after.policy)];
    for (part, before, after) in parts {
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (old, new) = (before.get(name), after.get(name));
            if old != new {
                found.push(SettingView {
                    name: format!("{part}.{name}"),
                    before: old.cloned().unwrap_or_default(),
                    after: new.cloned().unwrap_or_default(),
                });
            }
        }
    }
    found
}
