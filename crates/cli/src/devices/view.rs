//! The devices as data: what `--output json|yaml` prints, described in docs/guide/devices.md.

use std::collections::BTreeMap;

use phalanx_cluster::view::{CompatView, FindingView};
use phalanx_objects::Quantity;
use phalanx_objects::resource::DeviceAttribute;
use serde::Serialize;

use super::inventory::{Row, qualified};
use super::judge::Judgement;

/// The version of the schema. An addition is no new version; readers ignore what they don't know.
const API_VERSION: &str = "phalanx.dev/devices/v1";

/// What `devices` answers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DevicesDocument {
    /// Version of the schema.
    api_version: &'static str,
    /// What the answer depends on beside the objects.
    compat: CompatView,
    /// Every device.
    devices: Vec<DeviceRow>,
    /// What was found wrong while reading.
    findings: Vec<FindingView>,
    /// Counts.
    summary: DevicesSummary,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DevicesSummary {
    devices: usize,
    /// Devices that pass; `null` where nothing was asked.
    kept: Option<usize>,
    in_use: usize,
}

/// One device.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceRow {
    node: String,
    driver: String,
    pool: String,
    device: String,
    attributes: BTreeMap<String, DeviceAttribute>,
    capacity: BTreeMap<String, Quantity>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    /// As `key=value:effect`.
    taints: Vec<String>,
    /// Claims that hold it, as `namespace/name`.
    claims: Vec<String>,
    /// Why nobody is given it, where its pool's slices don't fit together.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    /// Whether it passes and its pool is sound; `null` where nothing was asked.
    kept: Option<bool>,
    /// The parts of the expression that are false.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<FailedPart>,
    /// Why the expression has no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct FailedPart {
    expression: String,
    values: BTreeMap<String, Option<String>>,
}

/// The document.
pub(crate) fn document(
    rows: &[(Row, Option<Judgement>)],
    compat: CompatView,
    findings: Vec<FindingView>,
) -> DevicesDocument {
    let asked = rows.iter().any(|(_, judgement)| judgement.is_some());
    let kept = rows.iter().filter(|(_, j)| *j == Some(Judgement::Kept)).count();
    DevicesDocument {
        api_version: API_VERSION,
        compat,
        devices: rows.iter().map(|(row, judgement)| device(row, judgement.as_ref())).collect(),
        findings,
        summary: DevicesSummary {
            devices: rows.len(),
            kept: asked.then_some(kept),
            in_use: rows.iter().filter(|(row, _)| !row.claims.is_empty()).count(),
        },
    }
}

fn device(row: &Row, judgement: Option<&Judgement>) -> DeviceRow {
    let driver = row.driver();
    let (failed, error) = match judgement {
        Some(Judgement::Dropped { parts }) => {
            let part = |part: &super::judge::Part| FailedPart {
                expression: part.text.clone(),
                values: part.values.iter().cloned().collect(),
            };
            (parts.iter().map(part).collect(), None)
        }
        Some(Judgement::Failed { message, hint, .. }) => {
            let hint = hint.map_or_else(String::new, |hint| format!(" {hint}."));
            (Vec::new(), Some(format!("{message}.{hint}")))
        }
        Some(Judgement::Kept | Judgement::Unused(_)) | None => (Vec::new(), None),
    };
    let attributes = row.info.attributes.iter();
    let capacity = row.info.capacity.iter();
    DeviceRow {
        node: row.node().to_owned(),
        driver: driver.to_owned(),
        pool: row.info.key.pool.pool.to_string(),
        device: row.info.key.device.to_string(),
        attributes: attributes.map(|(name, v)| (qualified(driver, name), v.clone())).collect(),
        capacity: capacity.map(|(name, v)| (qualified(driver, name), *v)).collect(),
        taints: row.taints(),
        claims: row.claims.clone(),
        trouble: row.trouble.clone(),
        kept: judgement.map(|j| *j == Judgement::Kept),
        failed,
        error,
    }
}
