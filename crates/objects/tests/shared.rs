//! Reads real slices and the worlds of other tests, where they are at hand: no panic, no problem.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test panics, and says what it left out"
)]

use std::path::{Path, PathBuf};

use phalanx_objects::{Item, Object, read};

/// The folder of shared test data; none if it is not there.
fn shared() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "a test is told where its data is")]
    let (given, required) =
        (std::env::var("PHALANX_SHARED").ok(), std::env::var("PHALANX_REQUIRE_SHARED").ok());
    let required = required.is_some_and(|value| !value.is_empty() && value != "0");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join(given.as_deref().unwrap_or("../shared")).join("data");
    let found = folder.is_dir();
    if !found {
        assert!(!required, "PHALANX_REQUIRE_SHARED: there is no {}", folder.display());
        println!("left out: there is no {}; set PHALANX_SHARED", folder.display());
    }
    found.then_some(folder)
}

fn bytes(path: &Path) -> Vec<u8> {
    #[expect(clippy::disallowed_methods, reason = "tests read their data")]
    std::fs::read(path).unwrap()
}

/// Reads a text; gives its objects, and its problems in words.
fn all(name: &str, text: &[u8]) -> (Vec<Object>, Vec<String>) {
    let (mut objects, mut problems) = (Vec::new(), Vec::new());
    read(name, text, &mut |item| match item {
        Item::Object(object, _) => objects.push(object),
        Item::Gone(..) | Item::Unknown { .. } => {}
        Item::Problem(problem) => problems.push(format!(
            "{:?} {}:{}:{} {}: {}",
            problem.severity,
            problem.file,
            problem.line,
            problem.column,
            problem.path,
            problem.message
        )),
    });
    (objects, problems)
}

#[test]
fn slices_of_real_drivers_are_read() {
    let Some(folder) = shared() else { return };
    let mut read_objects = 0;
    for entry in folder.join("slices").read_dir().unwrap() {
        let path = entry.unwrap().path();
        if !path.is_file() || path.extension().is_some_and(|extension| extension == "md") {
            continue;
        }
        let (objects, problems) = all(&path.display().to_string(), &bytes(&path));
        assert_eq!(problems, [""; 0]);
        read_objects += objects.len();
        for object in objects {
            let text = serde_json::to_vec(&object).unwrap();
            let (again, problems) = all("written", &text);
            assert_eq!((again, problems), (vec![object], Vec::new()));
        }
    }
    assert!(read_objects > 0);
}

/// Every object anywhere in a value, each as one text.
fn objects_in(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            if map.contains_key("apiVersion") && map.contains_key("kind") {
                found.push(value.to_string());
            } else {
                map.values().for_each(|value| objects_in(value, found));
            }
        }
        serde_json::Value::Array(values) => {
            values.iter().for_each(|value| objects_in(value, found))
        }
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
}

#[test]
fn worlds_of_other_tests_are_read_the_same_from_json_and_yaml() {
    let Some(folder) = shared() else { return };
    let files = ["predicates/worlds.jsonl", "dra/allocator-cases.jsonl"];
    for path in files.map(|file| folder.join(file)) {
        if !path.is_file() {
            println!("left out: there is no {}", path.display());
            continue;
        }
        let mut texts = Vec::new();
        for line in String::from_utf8(bytes(&path)).unwrap().lines() {
            objects_in(&serde_json::from_str(line).unwrap(), &mut texts);
        }
        assert!(texts.len() > 100, "{}: {} objects", path.display(), texts.len());
        let (objects, mut problems) = all("json", texts.join("\n").as_bytes());
        assert!(!objects.is_empty());
        // They go past the API server, which would refuse some; only what is lost counts.
        problems.retain(|problem| problem.starts_with("Error"));
        assert_eq!(problems, [""; 0], "{}", path.display());
        // A comment in front makes a text YAML; one object in ten is enough.
        for text in texts.iter().step_by(10) {
            let yaml = all("yaml", format!("# as YAML\n{text}").as_bytes());
            let json = all("yaml", format!("\n{text}").as_bytes());
            assert_eq!(yaml, json, "{text}");
        }
    }
}
