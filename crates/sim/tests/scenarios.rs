//! Every scenario of the repository, each run all ways; all that fail are named.

#![expect(
    clippy::disallowed_methods,
    reason = "the crate is handed text; its tests read the files"
)]

use std::path::{Path, PathBuf};

use phalanx_sim::{Scenario, run};

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
