//! Slices as real drivers publish them are lowered without a complaint.

use std::path::PathBuf;

use phalanx_cluster::{Compat, Lowering, ObjectEvent, Severity, Source};
use phalanx_engine::Change;
use phalanx_objects::{Item, read};

use super::shared::path;

#[expect(clippy::disallowed_methods, reason = "a test reads its data")]
fn files() -> Option<Vec<(String, Vec<u8>)>> {
    let entries = std::fs::read_dir(path("slices")?).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let yaml = paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    let bytes = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("a readable file");
        (path.display().to_string(), bytes)
    };
    Some(yaml.map(bytes).collect())
}

#[test]
fn published_slices_are_lowered_whole() {
    let Some(files) = files() else { return };
    assert!(!files.is_empty());
    for (file, bytes) in files {
        let mut lowering = Lowering::new(Compat::default());
        let mut ordinal = 0;
        read(&file, &bytes, &mut |item| match item {
            Item::Object(object, source) => {
                let source = Source { file: source.file, line: source.line, ordinal };
                ordinal += 1;
                lowering.absorb(ObjectEvent::Applied(Box::new(object), source));
            }
            Item::Gone(object, _) => panic!("{file}: {} is gone", object.reference()),
            Item::Unknown { kind, .. } => println!("{file}: {kind} is not read"),
            Item::Problem(problem) => panic!("{file}:{}: {}", problem.line, problem.message),
        });
        let changes = lowering.settle();
        let findings = lowering.findings();
        let mut devices = 0;
        for change in &changes {
            if let Change::Pool(_, Some(pool)) = change {
                devices += pool.slices.iter().map(|slice| slice.devices.len()).sum::<usize>();
            }
        }
        assert!(devices > 0, "{file}");
        assert_eq!(devices, lowering.devices().count(), "{file}");
        assert!(findings.iter().all(|f| f.severity != Severity::Error), "{file}: {findings:?}");
    }
}
