//! Who selects pods: Services and controllers, by which kube-scheduler spreads those that say nothing
//! of spread. The controllers want no pods, so that none are made.

use serde_json::{Value, json};

use super::super::chance::Chance;

/// The Services and controllers of a world.
pub(super) fn objects(chance: &mut Chance) -> Vec<Value> {
    let mut all = Vec::new();
    for (name, namespace, selector) in [
        ("web", "a", json!({"app": "web"})),
        ("front", "a", json!({"tier": "front"})),
        ("db", "b", json!({"app": "db"})),
        ("none", "a", json!(null)),
    ] {
        if chance.one_in(2) {
            all.push(json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"selector": selector}}));
        }
    }
    for kind in ["ReplicaSet", "StatefulSet"] {
        let expression = json!({"key": "tier", "operator": "NotIn", "values": ["back"]});
        let selector = json!({"matchLabels": {"app": "train"}, "matchExpressions": [expression]});
        let template = json!({"metadata": {"labels": {"app": "train"}},
            "spec": {"containers": [{"name": "c", "image": "a:1"}]}});
        if !chance.one_in(3) {
            all.push(json!({"apiVersion": "apps/v1", "kind": kind,
                "metadata": {"name": "set", "namespace": "a", "uid": kind},
                "spec": {"replicas": 0, "selector": selector, "template": template}}));
        }
    }
    if !chance.one_in(3) {
        all.push(json!({"apiVersion": "v1", "kind": "ReplicationController",
            "metadata": {"name": "set", "namespace": "a", "uid": "ReplicationController"},
            "spec": {"replicas": 0, "selector": {"app": "db"}}}));
    }
    all
}

/// Gives a pod a controller, perhaps.
pub(super) fn own(chance: &mut Chance, pod: &mut Value) {
    if !chance.one_in(3) {
        return;
    }
    let kind = chance.pick(&["ReplicaSet", "StatefulSet", "ReplicationController"]);
    let api_version = if kind == "ReplicationController" { "v1" } else { "apps/v1" };
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": api_version, "kind": kind,
        "name": "set", "uid": kind, "controller": true}]);
}
