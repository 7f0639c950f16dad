//! Every scenario of the repository, each run all ways; all that fail are named.

#![expect(
    clippy::disallowed_methods,
    reason = "the crate is handed text; its tests read the files"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use phalanx_cluster::mask::Mask;
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Lowering, ObjectEvent, Source};
use phalanx_objects::read::{Item, read};
use phalanx_objects::{Object, Quantity};
use phalanx_sim::{Scenario, run};
use serde_json::Value;

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("scenarios can be listed") {
        let path = entry.expect("scenarios can be listed").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// What is wrong with one, a line each.
fn judge(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a scenario can be read");
    let scenario = match Scenario::parse(&text) {
        Ok(scenario) => scenario,
        Err(error) => return vec![error.to_string()],
    };
    match run(&scenario) {
        Ok(outcome) => {
            let mut wrong = outcome.wrong;
            if outcome.says != scenario.says {
                wrong.push(format!(
                    "what is said has changed; `cargo xtask accept` accepts it:\n{}",
                    outcome.says
                ));
            }
            wrong
        }
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn every_scenario_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut all = Vec::new();
    files(&root, &mut all);
    all.sort();
    assert!(all.len() >= 76, "only {} scenarios were found", all.len());
    let mut failed = Vec::new();
    for path in &all {
        let wrong = judge(path);
        if !wrong.is_empty() {
            let name = path.strip_prefix(&root).unwrap_or(path).display();
            failed.push(format!("{name}:\n  {}", wrong.join("\n  ")));
        }
    }
    println!("{} scenarios", all.len());
    assert!(failed.is_empty(), "{} fail\n\n{}", failed.len(), failed.join("\n"));
}

/// A word that stands in no scenario.
const SECRET: &str = "zqsecretqz";

/// Fields whose texts a masked dump keeps, as docs/guide/mask.md lists them.
const KEPT: [&str; 17] = [
    "apiGroup",
    "apiVersion",
    "attacher",
    "deviceClassName",
    "distinctAttribute",
    "driver",
    "extendedResourceName",
    "key",
    "kind",
    "matchAttribute",
    "matchLabelKeys",
    "mismatchLabelKeys",
    "partitionTypeAttribute",
    "provisioner",
    "resourceName",
    "topologyKey",
    "topologyKeys",
];

/// Whether docs/guide/mask.md says that the text at a path stays.
fn stays(path: &[String], kind: &str) -> bool {
    let up = |levels: usize| path.iter().rev().nth(levels).map_or("", String::as_str);
    let product = ["architecture", "brand", "family", "productName", "profile", "type"];
    let product_label =
        ["gpu.product", "gpu.family", "product-name", "kubernetes.io/arch", "kubernetes.io/os"];
    KEPT.contains(&up(0)) && !["labels", "matchLabels", "nodeSelector"].contains(&up(1))
        || up(0) == "name" && ["derivedAttributes", "drivers"].contains(&up(1))
        || up(0) == "name" && path.len() == 2 && ["DeviceClass", "CSIDriver"].contains(&kind)
        || up(2) == "attributes" && product.iter().any(|name| up(1).ends_with(name))
        || product_label.iter().any(|label| up(0).ends_with(label))
        || up(0).ends_with("exclusive-topology")
}

/// Puts the secret into every text below, or into the one with this number.
fn plant(
    value: &mut Value,
    path: &mut Vec<String>,
    kind: &str,
    only: Option<usize>,
    at: &mut usize,
) {
    match value {
        Value::String(text) => {
            let number = text.parse::<Quantity>().is_ok() || text.contains("T00:");
            if stays(path, kind) || number {
                return;
            }
            let expression = path.last().is_some_and(|name| name == "expression");
            if only.is_none_or(|only| only == *at) {
                *text = if expression {
                    format!("{text} // {SECRET}")
                } else {
                    format!("{text}{SECRET}")
                };
            }
            *at += 1;
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| plant(item, path, kind, only, at));
        }
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                path.push(name.clone());
                plant(value, path, kind, only, at);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn object_of(value: &Value) -> Option<Object> {
    let mut found = None;
    read("planted.json", value.to_string().as_bytes(), &mut |item| {
        if let Item::Object(object, _) = item {
            found = Some(object);
        }
    });
    found
}

/// The object with the secret in all of its texts; where it can't be read so, once for each text
/// that can have it.
fn planted(manifest: &Value) -> Vec<Object> {
    let Some(object) = object_of(manifest) else { return Vec::new() };
    let Ok(whole) = serde_json::to_value(&object) else { return Vec::new() };
    let kind = object.kind().as_str();
    let with = |only: Option<usize>| {
        let mut value = whole.clone();
        let mut count = 0;
        plant(&mut value, &mut Vec::new(), kind, only, &mut count);
        (object_of(&value), count)
    };
    match with(None) {
        (Some(object), _) => vec![object],
        (None, count) => (0..count).filter_map(|only| with(Some(only)).0).collect(),
    }
}

fn leak(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::String(text) => text.contains(SECRET).then(|| format!("{path}: {text}")),
        Value::Array(items) => items.iter().find_map(|item| leak(item, path)),
        Value::Object(map) => map.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            if name.contains(SECRET) { Some(path) } else { leak(value, &path) }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[test]
fn no_text_of_any_field_is_in_a_masked_dump_but_what_the_guide_lists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut all = Vec::new();
    files(&root, &mut all);
    let mut objects = Vec::new();
    for path in &all {
        let text = std::fs::read_to_string(path).expect("a scenario can be read");
        let Ok(manifests) = Scenario::parse(&text).and_then(|scenario| scenario.manifests()) else {
            continue;
        };
        objects.extend(manifests.iter().flat_map(planted));
    }
    let mut leaks = std::collections::BTreeSet::new();
    for object in &objects {
        let mut world = World::new(Lowering::new(Compat::default()));
        let source = Source { file: Arc::from(""), line: 0, ordinal: 0 };
        world.absorb(ObjectEvent::Applied(Box::new(object.clone()), source));
        world.settle();
        let mask = Mask::new(&world).expect("it is written").expect("objects are kept");
        for masked in mask.objects() {
            let kind = object.kind().as_str();
            leaks.extend(leak(&masked.expect("it is written"), kind));
        }
    }
    assert!(objects.len() > 2000, "only {} objects were read", objects.len());
    assert!(leaks.is_empty(), "{leaks:#?}");
}
