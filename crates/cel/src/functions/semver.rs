//! `semver(…)` and what semantic versions can do. Order and equality ignore build metadata.

use semver::Version;

use super::signatures::Function;
use super::{NO_OVERLOAD, Outcome, failed};
use crate::value::{Shared, Value};

pub(crate) fn call<'a>(function: Function, args: &[Value<'a>]) -> Outcome<'a> {
    match (function, args) {
        (Function::Semver | Function::IsSemver, [Value::Str(text), rest @ ..]) => {
            let parsed = match rest {
                [] | [Value::Bool(false)] => parse(text),
                [Value::Bool(true)] => normalized(text).and_then(|text| parse(&text)),
                _ => return Err(NO_OVERLOAD),
            };
            match (function, parsed) {
                (Function::IsSemver, parsed) => Ok(Value::Bool(parsed.is_ok())),
                (_, Ok(version)) => Ok(Value::Version(Shared::new(version))),
                (_, Err(message)) => failed(message),
            }
        }
        // Versions count in 64 bits without a sign; so does upstream wrap them.
        (Function::Major, [Value::Version(v)]) => Ok(Value::Int(v.major as i64)),
        (Function::Minor, [Value::Version(v)]) => Ok(Value::Int(v.minor as i64)),
        (Function::Patch, [Value::Version(v)]) => Ok(Value::Int(v.patch as i64)),
        _ => Err(NO_OVERLOAD),
    }
}

/// A version as the specification 2.0.0 has it.
pub(crate) fn parse(text: &str) -> Result<Version, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    if text.splitn(3, '.').count() < 3 {
        return Err("No Major.Minor.Patch elements found".to_owned());
    }
    Version::parse(text).map_err(|error| format!("{text:?} is not a semantic version: {error}"))
}

/// The text with what people leave out or add mended: a leading `v`, leading zeros, missing parts.
fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        trimmed.to_owned()
    } else {
        format!("0{trimmed}")
    }
}
