//! What no file may hold, and how long it may be.

use super::Breach;
use crate::source::{File, Tree, code, line_of};

/// Longest source file or document, in lines.
const LINES: usize = 1000;
/// Longest scenario: one screen.
const SCENARIO_LINES: usize = 80;
/// Longest `docs/ARCHITECTURE.md`.
const ARCHITECTURE_LINES: usize = 300;

/// Marks of unfinished or switched-off work.
const UNFINISHED: [&str; 4] = ["todo!", "unimplemented!", "#[ignore", "dbg!"];

/// Beginnings of paths that exist on one machine only.
const MACHINE: [&str; 6] = ["home", "root", "Users", "work", "tmp", "mnt"];

/// Hosts that packages are fetched from: which one is the machine's business.
const HOSTS: [&str; 6] =
    ["crates.io", "npmjs.org", "pypi.org", "pythonhosted.org", "proxy.golang.org", "artifactory"];

/// Breaches in the text of files.
pub(super) fn text(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in &tree.files {
        breaches.extend(length(file));
        breaches.extend(ending(file));
        // This file names what it looks for.
        if file.path != "xtask/src/tidy/text.rs" && !file.path.ends_with(".lock") {
            breaches.extend(machine_paths(file));
            breaches.extend(hosts(file));
        }
        if file.path.ends_with(".rs") {
            breaches.extend(unfinished(file));
        }
    }
    breaches
}

fn length(file: &File) -> Option<Breach> {
    let path = file.path.as_str();
    let (limit, what) = if path.starts_with("scenarios/") {
        (SCENARIO_LINES, "a scenario is one rule and one screen")
    } else if path == "docs/ARCHITECTURE.md" {
        (ARCHITECTURE_LINES, "it is a map and no atlas")
    } else if [".rs", ".md", ".toml"].iter().any(|end| path.ends_with(end)) {
        (LINES, "split it by meaning")
    } else {
        return None;
    };
    let lines = file.text.lines().count();
    (lines > limit)
        .then(|| Breach::of(path, format!("has {lines} lines of at most {limit}; {what}.")))
}

fn ending(file: &File) -> Option<Breach> {
    let good = file.text.is_empty() || file.text.ends_with('\n');
    (!good).then(|| Breach::of(&file.path, "does not end with a newline."))
}

fn unfinished(file: &File) -> Vec<Breach> {
    let code = code(&file.text);
    let mut breaches = Vec::new();
    for mark in UNFINISHED {
        for (at, _) in code.match_indices(mark) {
            let message = format!("`{mark}` marks what is not done; do it or take it out.");
            breaches.push(Breach::at(&file.path, line_of(&code, at), message));
        }
    }
    breaches
}

fn machine_paths(file: &File) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for dir in MACHINE {
        let path = format!("/{dir}/");
        for (at, _) in file.text.match_indices(&path) {
            let inside =
                file.text[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.~*})$/".contains(c));
            if !inside {
                let message = format!("`{path}…` is a path of one machine.");
                breaches.push(Breach::at(&file.path, line_of(&file.text, at), message));
            }
        }
    }
    breaches
}

fn hosts(file: &File) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for host in HOSTS {
        for (at, _) in file.text.match_indices(host) {
            let message = format!("`{host}` is a registry; only lock files name one.");
            breaches.push(Breach::at(&file.path, line_of(&file.text, at), message));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, text: &str) -> Vec<Breach> {
        super::text(&Tree::of(vec![File { path: path.into(), text: text.into() }]))
    }

    #[test]
    fn each_rule_finds_its_breach_and_spares_the_rest() {
        assert_eq!(one("a.md", "fine\n"), []);
        assert_eq!(one("a.md", "no end").len(), 1);
        assert_eq!(one("a.md", &"x\n".repeat(LINES + 1)).len(), 1);
        assert_eq!(one("scenarios/a.yaml", &"x\n".repeat(SCENARIO_LINES + 1)).len(), 1);
        assert_eq!(one("a.rs", "fn a() { todo!() }\n").len(), 1);
        assert_eq!(one("a.rs", "// todo!\n"), []);
        assert_eq!(one("a.md", "in /home/me/x\n").len(), 1);
        assert_eq!(one("a.md", "in crates/work/x and https://a/home/b\n"), []);
        assert_eq!(one("a.toml", "url = \"https://pypi.org\"\n").len(), 1);
        assert_eq!(one("Cargo.lock", "pypi.org\n"), []);
    }
}
