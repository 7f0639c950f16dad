//! The documents: links lead somewhere, the map names every crate, decisions are numbered through.

use super::Breach;
use crate::source::{File, Tree, line_of};

/// Breaches in the documents.
pub(super) fn docs(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.files.iter().filter(|f| f.path.ends_with(".md")) {
        breaches.extend(links(tree, file));
    }
    breaches.extend(map(tree));
    breaches.extend(decisions(tree));
    breaches
}

fn links(tree: &Tree, file: &File) -> Vec<Breach> {
    let dir = file.path.rsplit_once('/').map_or("", |(dir, _)| dir);
    let mut breaches = Vec::new();
    for (at, mark) in file.text.match_indices("](") {
        let rest = &file.text[at + mark.len()..];
        let target = rest.split([')', ' ', '\n']).next().unwrap_or_default();
        let path = target.split('#').next().unwrap_or_default();
        if path.is_empty() || target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let path = resolve(dir, path);
        let there =
            tree.files.iter().any(|f| f.path == path || f.path.starts_with(&format!("{path}/")));
        if !there {
            let message = format!("the link to `{target}` leads nowhere.");
            breaches.push(Breach::at(&file.path, line_of(&file.text, at), message));
        }
    }
    breaches
}

/// `path` from `dir`, with `.` and `..` worked off.
fn resolve(dir: &str, path: &str) -> String {
    let mut parts: Vec<&str> = dir.split('/').filter(|p| !p.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn map(tree: &Tree) -> Vec<Breach> {
    const MAP: &str = "docs/ARCHITECTURE.md";
    let Some(file) = tree.get(MAP) else { return vec![Breach::of(MAP, "is missing.")] };
    let manifests = tree.files.iter().filter_map(|f| f.path.strip_suffix("/Cargo.toml"));
    manifests
        .filter(|dir| !file.text.contains(&format!("`{dir}`")))
        .map(|dir| Breach::of(MAP, format!("does not name `{dir}`.")))
        .collect()
}

fn decisions(tree: &Tree) -> Vec<Breach> {
    let names = tree.files.iter().filter_map(|f| f.path.strip_prefix("docs/decisions/"));
    let mut breaches = Vec::new();
    for (i, name) in names.enumerate() {
        let want = format!("{:04}-", i + 1);
        if !name.starts_with(&want) {
            breaches.push(Breach::of(
                &format!("docs/decisions/{name}"),
                format!("is decision {} in order; its name must begin with `{want}`.", i + 1),
            ));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree::of(files.iter().map(|(p, t)| File { path: (*p).into(), text: (*t).into() }).collect())
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named() {
        let text = "[a](b.md#x) [b](../README.md) [c](https://x.y) [d](#here) [e](gone.md)\n";
        let files = tree(&[("docs/a.md", text), ("docs/b.md", ""), ("README.md", "")]);
        let breaches = links(&files, &files.files[1]);
        assert_eq!(breaches.len(), 1, "{breaches:?}");
        assert!(breaches[0].message.contains("gone.md"));
    }

    #[test]
    fn the_map_names_every_crate_and_decisions_are_numbered_through() {
        let files = tree(&[
            ("docs/ARCHITECTURE.md", "`crates/a`\n"),
            ("crates/a/Cargo.toml", ""),
            ("crates/b/Cargo.toml", ""),
            ("docs/decisions/0001-x.md", ""),
            ("docs/decisions/0003-y.md", ""),
        ]);
        assert_eq!(docs(&files).len(), 2);
    }
}
