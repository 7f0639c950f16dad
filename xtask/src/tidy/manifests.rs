//! The manifests: what every crate inherits, and under which licences its dependencies come.

use serde_json::Value;

use super::Breach;
use crate::run::{cargo, output};
use crate::source::Tree;

/// What cargo says of the packages.
#[derive(Debug)]
pub(super) struct Metadata {
    /// Our crates, each with those of ours that it is built on.
    pub(super) ours: Vec<(String, Vec<String>)>,
    /// Packages from outside: name with version, licence.
    pub(super) packages: Vec<(String, String)>,
}

impl Metadata {
    /// Asks cargo, for the platform that we build for. `--locked`: a lock file that is out of date
    /// is a failure here.
    pub(super) fn read() -> Result<Self, String> {
        let args = [
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ];
        let text = output("cargo metadata", &mut cargo(&args))?;
        let all: Value = serde_json::from_str(&text)
            .map_err(|e| format!("cargo metadata printed no JSON: {e}."))?;
        Ok(Self::of(&all))
    }

    fn of(all: &Value) -> Self {
        let in_graph: Vec<&str> = list(&all["resolve"]["nodes"]).map(|n| text(&n["id"])).collect();
        let mut metadata = Self { ours: Vec::new(), packages: Vec::new() };
        for package in list(&all["packages"]).filter(|p| in_graph.contains(&text(&p["id"]))) {
            let name = text(&package["name"]).to_owned();
            if package["source"].is_null() {
                // `kind` is null for normal dependencies; a path marks ours.
                let needs = list(&package["dependencies"])
                    .filter(|d| d["kind"] != "dev" && d["path"].is_string())
                    .map(|d| text(&d["name"]).to_owned());
                metadata.ours.push((name, needs.collect()));
            } else {
                let name = format!("{name} {}", text(&package["version"]));
                metadata.packages.push((name, text(&package["license"]).to_owned()));
            }
        }
        metadata
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Every crate inherits the lints and the fields of the workspace; a release checks for overflow.
pub(super) fn inherited(tree: &Tree) -> Vec<Breach> {
    const FIELDS: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];
    let mut breaches = Vec::new();
    for file in tree.files.iter().filter(|f| f.path.ends_with("/Cargo.toml")) {
        let lines: Vec<String> = file.text.lines().map(|l| l.replace(' ', "")).collect();
        for field in FIELDS {
            if !lines.contains(&format!("{field}.workspace=true")) {
                let message = format!("`{field}.workspace = true` is missing under [package].");
                breaches.push(Breach::of(&file.path, message));
            }
        }
        if !lines.windows(2).any(|w| w[0] == "[lints]" && w[1] == "workspace=true") {
            breaches.push(Breach::of(&file.path, "`workspace = true` is missing under [lints]."));
        }
    }
    let root = tree.get("Cargo.toml").map(|f| f.text.as_str()).unwrap_or_default();
    let release = root.split("[profile.release]").nth(1).unwrap_or_default();
    let release = release.split("\n[").next().unwrap_or_default();
    if !release.contains("overflow-checks = true") {
        breaches.push(Breach::of(
            "Cargo.toml",
            "[profile.release] must keep `overflow-checks = true`.",
        ));
    }
    breaches
}

/// The lock file is there and takes crates from one registry only.
pub(super) fn lock_file(tree: &Tree) -> Vec<Breach> {
    let Some(file) = tree.get("Cargo.lock") else {
        return vec![Breach::of(
            "Cargo.lock",
            "is missing; it is committed, and builds are `--locked`.",
        )];
    };
    let mut sources: Vec<&str> =
        file.text.lines().filter_map(|l| l.strip_prefix("source = ")).collect();
    sources.sort_unstable();
    sources.dedup();
    let one = sources.len() <= 1 && sources.iter().all(|s| s.starts_with("\"registry+"));
    if one {
        Vec::new()
    } else {
        vec![Breach::of(
            "Cargo.lock",
            format!("takes crates from more than one registry: {sources:?}."),
        )]
    }
}

/// Every dependency comes under a licence that `deny.toml` allows.
pub(super) fn licences(tree: &Tree, metadata: &Metadata) -> Result<Vec<Breach>, String> {
    let deny = tree.get("deny.toml").ok_or("deny.toml is missing.")?;
    let allowed = allowed(&deny.text);
    if allowed.is_empty() {
        return Err("deny.toml has no `allow` list under [licenses].".to_owned());
    }
    let refused = metadata.packages.iter().filter(|(_, l)| !acceptable(l, &allowed));
    Ok(refused
        .map(|(name, licence)| {
            let message = format!("its licence `{licence}` is not allowed by deny.toml.");
            Breach::of(name, message)
        })
        .collect())
}

/// The quoted words of `allow = […]` under `[licenses]`.
fn allowed(deny: &str) -> Vec<&str> {
    let section = deny.split("[licenses]").nth(1).unwrap_or_default();
    let list = section.split("allow = [").nth(1).unwrap_or_default();
    let list = list.split(']').next().unwrap_or_default();
    list.split('"').skip(1).step_by(2).collect()
}

/// Whether an SPDX expression can be met: `AND` binds closer than `OR`, and `/` is an old `OR`.
fn acceptable(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any_of(&words, &mut at, allowed);
    met && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut met = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        let other = all_of(words, at, allowed);
        met = met || other;
    }
    met
}

fn all_of(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut met = one_of(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        let other = one_of(words, at, allowed);
        met = met && other;
    }
    met
}

fn one_of(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let met = any_of(words, at, allowed);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return met && closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return allowed.contains(&format!("{word} WITH {exception}").as_str());
    }
    allowed.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::File;

    #[test]
    fn expressions_are_met_as_spdx_says() {
        let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"];
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "GPL-3.0/MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(acceptable(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "(MIT", "MIT MIT"] {
            assert!(!acceptable(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn a_crate_that_does_not_inherit_is_named() {
        let toml = "[package]\nname = \"x\"\nversion = \"1.0.0\"\n";
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let tree = Tree::of(vec![file("crates/x/Cargo.toml", toml), file("Cargo.toml", "")]);
        assert_eq!(inherited(&tree).len(), 7);
    }

    #[test]
    fn a_second_registry_is_named() {
        let lock = "source = \"registry+a\"\nsource = \"git+b\"\n";
        let tree = Tree::of(vec![File { path: "Cargo.lock".into(), text: lock.into() }]);
        assert_eq!(lock_file(&tree).len(), 1);
        assert_eq!(lock_file(&Tree::of(Vec::new())).len(), 1);
    }
}
