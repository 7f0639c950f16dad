//! Each way in which two plans can differ, and its just-not.

use serde_json::{Value, json};

use super::*;

fn pod(name: &str, verdict: &str, node: Option<&str>, devices: &[&str], codes: &[&str]) -> Value {
    let device = |name: &&str| json!({"claim": "c", "driver": "d", "pool": "n1", "device": name});
    let reason = |code: &&str| json!({"code": code, "message": format!("{code} of {name}")});
    json!({
        "namespace": "default", "name": name, "verdict": verdict, "node": node,
        "devices": devices.iter().map(device).collect::<Vec<_>>(),
        "reasons": codes.iter().map(reason).collect::<Vec<_>>(),
    })
}

fn plan(pods: &[Value]) -> PlanRead {
    let document = json!({"apiVersion": API_VERSION, "pods": pods, "compat": {}, "later": 1});
    serde_json::from_value(document).expect("a plan")
}

fn words(before: &[Value], after: &[Value]) -> Vec<&'static str> {
    let found = diff(&plan(before), &plan(after));
    found.changes.iter().map(|change| change.change.as_str()).collect()
}

#[test]
fn each_change_has_its_word_and_what_is_the_same_none() {
    let placed = |node: &str, devices: &[&str]| [pod("p", "placed", Some(node), devices, &[])];
    let waits = |verdict: &str, codes: &[&str]| [pod("p", verdict, None, &[], codes)];
    let on_n1 = placed("n1", &["a", "b"]);
    assert_eq!(words(&on_n1, &placed("n1", &["b", "a"])), [""; 0]);
    assert_eq!(words(&on_n1, &placed("n1", &["a", "c"])), ["devices"]);
    assert_eq!(words(&on_n1, &placed("n2", &["a", "b"])), ["moves"]);
    assert_eq!(words(&on_n1, &waits("waits", &["NoNodes"])), ["stops"]);
    assert_eq!(words(&waits("refused", &["NoNodes"]), &on_n1), ["starts"]);
    assert_eq!(words(&waits("waits", &["X", "Y"]), &waits("waits", &["X", "Y"])), [""; 0]);
    assert_eq!(words(&waits("waits", &["X"]), &waits("waits", &["Y"])), ["reason"]);
    assert_eq!(words(&waits("waits", &["X"]), &waits("refused", &["X"])), ["reason"]);
    assert_eq!(words(&on_n1, &[]), ["gone"]);
    assert_eq!(words(&[], &on_n1), ["new"]);
}

#[test]
fn the_sides_are_shown_and_counted() {
    let before = [pod("p", "waits", None, &[], &["X"]), pod("q", "placed", Some("n1"), &[], &[])];
    let mut placed = pod("p", "placed", Some("n2"), &["a"], &[]);
    placed["devices"][0]["pool"] = "shared".into();
    let found = diff(&plan(&before), &plan(&[placed, before[1].clone()]));
    let [change] = found.changes.as_slice() else { panic!("{found:#?}") };
    let (old, new) =
        (change.before.as_ref().expect("before"), change.after.as_ref().expect("after"));
    assert_eq!(old.message.as_deref(), Some("X of p"));
    assert_eq!(new.devices, ["shared/a"]);
    assert_eq!((found.summary.starts, found.summary.same), (1, 1));
}

#[test]
fn a_question_that_was_asked_otherwise_is_said_and_is_no_change() {
    let mut before = plan(&[]);
    let after = plan(&[]);
    before.compat.insert("kubernetesVersion".into(), "1.36".into());
    let found = diff(&before, &after);
    assert!(found.changes.is_empty());
    assert_eq!(found.settings[0].name, "compat.kubernetesVersion");
    assert_eq!(found.settings[0].after, Value::Null);
}

#[test]
fn another_document_is_refused() {
    let mut other = plan(&[]);
    assert_eq!(other.check(), Ok(()));
    other.api_version = "phalanx.dev/lint/v1".into();
    assert!(other.check().is_err_and(|error| error.contains("phalanx.dev/lint/v1")));
}
