//! What was asked of the API server, and by whom: its audit log, at the level that has no contents.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::failure::Failure;

/// A request that was answered, or a watch that began.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// Who asked.
    pub user: String,
    /// What for: `list`, `watch`, `create`, …
    pub verb: String,
    /// The API group; empty for the core.
    pub group: String,
    /// The resource, with its subresource: `pods/binding`.
    pub resource: String,
    /// HTTP status.
    pub code: u64,
}

impl Asked {
    /// Whether roles did not allow it.
    #[must_use]
    pub fn was_forbidden(&self) -> bool {
        self.code == 403
    }
}

/// The policy of the log.
pub(crate) fn policy() -> Value {
    json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}]})
}

/// What the log says from this byte on.
pub(crate) fn read(log: &Path, from: u64) -> Result<Vec<Asked>, Failure> {
    let failed = Failure::io(format!("{} can't be read", log.display()));
    let bytes = fs::read(log).map_err(failed)?;
    let rest = usize::try_from(from).ok().and_then(|from| bytes.get(from..)).unwrap_or_default();
    // The last line may be half written.
    let events =
        rest.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    Ok(events.filter_map(|event| asked(&event)).collect())
}

/// A request about resources; of others (versions, health) there is none.
fn asked(event: &Value) -> Option<Asked> {
    let text = |at: &str| event.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    event.get("objectRef")?;
    let mut resource = text("/objectRef/resource");
    let subresource = text("/objectRef/subresource");
    if !subresource.is_empty() {
        resource = format!("{resource}/{subresource}");
    }
    let code = event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default();
    let (user, verb, group) = (text("/user/username"), text("/verb"), text("/objectRef/apiGroup"));
    Some(Asked { user, verb, group, resource, code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_who_asked_for_what_and_how_it_was_answered() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("audit.log");
        let event = json!({"verb": "create", "user": {"username": "phalanx"}, "stage": "ResponseComplete",
            "objectRef": {"resource": "pods", "subresource": "binding", "namespace": "d", "name": "p"},
            "responseStatus": {"code": 403}});
        let other =
            json!({"verb": "get", "user": {"username": "phalanx"}, "requestURI": "/version"});
        fs::write(&log, format!("{event}\n{other}\n{{\"verb\":")).expect("a log");
        let all = read(&log, 0).expect("it is read");
        let asked = Asked {
            user: "phalanx".to_owned(),
            verb: "create".to_owned(),
            group: String::new(),
            resource: "pods/binding".to_owned(),
            code: 403,
        };
        assert_eq!(all, [asked]);
        assert!(all[0].was_forbidden());
        assert_eq!(read(&log, 1).expect("it is read"), [], "the first line is begun too late");
    }
}
