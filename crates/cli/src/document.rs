//! Documents for programs: one JSON or YAML text, exactly. Their fields are described in
//! docs/schema.md.

use serde::Serialize;

use crate::exit::Failure;

/// One JSON document.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => Ok(text + "\n"),
        Err(error) => Err(unwritable(&error)),
    }
}

/// One YAML document.
pub(crate) fn yaml(value: &impl Serialize) -> Result<String, Failure> {
    serde_saphyr::to_string(value).map_err(|error| unwritable(&error))
}

/// Several YAML documents, one after the other.
pub(crate) fn yaml_stream(values: &[impl Serialize]) -> Result<String, Failure> {
    let documents: Vec<String> = values.iter().map(yaml).collect::<Result<_, _>>()?;
    Ok(documents.join("---\n"))
}

fn unwritable(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("The answer can't be written: {error}."))
}
