//! The schemas of our own kinds in `deploy/crds` have the fields of the types, each of its kind: a field
//! that a schema lacks would be dropped by the API server.

use std::collections::BTreeMap;

use phalanx_objects::read::{Item, read};
use phalanx_objects::{Kind, Object};
use serde_json::Value;

/// Every field of each kind, set to something that is no default.
const FULL: &str = "
{apiVersion: phalanx.dev/v1alpha1, kind: NodeTopology, metadata: {name: n1}, spec: {nodeName: m, source: measured, devices: [{name: a, kind: gpu, driver: d, pool: p, device: x, pciBusID: b, uuid: u, index: 1, numaNode: 1, pcieRoot: r, pcieSwitch: s, rail: l, source: driver}, {name: b}], links: [{a: a, b: b, class: NVL, links: 2, gbps: 1.5, source: driver}], islands: [{name: i, members: [a, b], fabric: bridge, gbps: 1.5, source: driver}], switches: [{name: s, members: [a], source: driver}]}}
---
{apiVersion: phalanx.dev/v1alpha1, kind: Placement, metadata: {name: p, namespace: n1}, spec: {group: {kind: podgroup, name: g}, schedulerName: s, epoch: 1, phase: Held, committedAt: '2026-01-01T00:00:00Z', ran: true, pools: [{driver: d, name: p}, {driver: d, name: q}], seats: [{role: 1, index: 1, pod: p, uid: u, node: n1, grants: [{claim: c, request: r, pool: 1, devices: [x], consumed: {any: 1Gi}}]}]}, status: {verdict: waits, reason: r, message: m, tally: [{reason: r, nodes: 1, devices: 1}], nearest: n1, expectedStart: '2026-01-01T00:00:00Z'}}
";

/// Paths of fields, with the type of each.
type Paths = BTreeMap<String, String>;

fn of_value(value: &Value, at: &str, paths: &mut Paths) {
    let kind = match value {
        Value::Object(map) => {
            map.iter().for_each(|(name, value)| of_value(value, &format!("{at}.{name}"), paths));
            "object"
        }
        Value::Array(items) => {
            items.iter().for_each(|item| of_value(item, &format!("{at}[]"), paths));
            "array"
        }
        Value::String(_) => "string",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Bool(_) => "boolean",
        Value::Null => return,
    };
    paths.insert(at.to_owned(), kind.to_owned());
}

fn of_schema(schema: &Value, at: &str, paths: &mut Paths) {
    let kind = schema["type"].as_str().unwrap_or("string");
    paths.insert(at.to_owned(), kind.to_owned());
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        of_schema(schema, &format!("{at}.{name}"), paths);
    }
    for (field, end) in [("items", "[]"), ("additionalProperties", ".any")] {
        if schema[field].is_object() {
            of_schema(&schema[field], &format!("{at}{end}"), paths);
        }
    }
}

fn of_crd(text: &str) -> Paths {
    let crd: Value = serde_saphyr::from_str(text).expect("YAML");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut paths = Paths::new();
    for part in ["spec", "status"] {
        if schema["properties"][part].is_object() {
            of_schema(&schema["properties"][part], part, &mut paths);
        }
    }
    paths
}

#[test]
fn the_schemas_of_our_kinds_have_the_fields_of_their_types() {
    let mut seen = 0;
    read("full.yaml", FULL.as_bytes(), &mut |item| {
        let Item::Object(object, _) = item else { panic!("{item:?}") };
        let text = if object.kind() == Kind::Placement {
            include_str!("../../../deploy/crds/placements.yaml")
        } else {
            include_str!("../../../deploy/crds/nodetopologies.yaml")
        };
        let written = serde_json::to_value::<Object>(object).expect("JSON");
        let mut own = Paths::new();
        for part in ["spec", "status"] {
            of_value(&written[part], part, &mut own);
        }
        assert_eq!(own, of_crd(text));
        seen += 1;
    });
    assert_eq!(seen, 2);
}
