//! Where the shared data is, and worlds made of it.

use std::path::{Path, PathBuf};

use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Lowering, ObjectEvent, Source};
use phalanx_objects::{Item, Severity, read};
use serde_json::Value;

/// A path under the folder of the shared data: `PHALANX_SHARED`, relative to the repository, else
/// `../shared`. None where it is not there, which `PHALANX_REQUIRE_SHARED` makes a failure.
pub(crate) fn path(of: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "a test is told where its data is")]
    let (given, required) =
        (std::env::var("PHALANX_SHARED").ok(), std::env::var("PHALANX_REQUIRE_SHARED").ok());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(given.as_deref().unwrap_or("../shared")).join("data").join(of);
    if path.exists() {
        return Some(path);
    }
    let required = required.is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!required, "PHALANX_REQUIRE_SHARED is set, and there is no {}", path.display());
    println!("left out: there is no {}; set PHALANX_SHARED", path.display());
    None
}

/// The lines of a file of JSON; none where it is not there.
pub(crate) fn lines(of: &str) -> Option<Vec<Value>> {
    let path = path(of)?;
    #[expect(clippy::disallowed_methods, reason = "a test reads its data")]
    let text = std::fs::read_to_string(&path).expect("a readable file");
    let value = |line: &str| serde_json::from_str(line).expect("a line of JSON");
    Some(text.lines().map(value).collect())
}

/// The world of these objects, in order. Kinds that are not read are left out.
pub(crate) fn world<'a>(compat: Compat, objects: impl IntoIterator<Item = &'a Value>) -> World {
    world_of(Lowering::new(compat), objects)
}

/// The same, lowered so.
pub(crate) fn world_of<'a>(
    lowering: Lowering,
    objects: impl IntoIterator<Item = &'a Value>,
) -> World {
    let mut world = World::new(lowering);
    for (ordinal, object) in (0..).zip(objects) {
        read("test.json", object.to_string().as_bytes(), &mut |item| match item {
            Item::Object(object, source) => {
                let source = Source { file: source.file, line: source.line, ordinal };
                world.absorb(ObjectEvent::Applied(Box::new(object), source));
            }
            Item::Gone(..) | Item::Unknown { .. } => {}
            Item::Problem(problem) => {
                assert!(problem.severity != Severity::Error, "{problem:?}: {object}");
            }
        });
    }
    world.settle();
    world
}

/// A text of an object, by pointer; empty where it has none.
pub(crate) fn text<'a>(of: &'a Value, pointer: &str) -> &'a str {
    of.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The elements of a list; none where there is no list.
pub(crate) fn list<'a>(of: &'a Value, pointer: &str) -> &'a [Value] {
    of.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
