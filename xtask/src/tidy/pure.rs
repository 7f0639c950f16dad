//! The pure crates touch nothing outside themselves, and one place calls the engine.

use super::Breach;
use super::arrows::PURE;
use crate::source::{Tree, line_of};

/// Words that reach outside, and what they reach for.
const REACHES: [(&str, &str); 15] = [
    ("std::fs", "files"),
    ("File::open", "files"),
    ("std::env", "the environment"),
    ("env::var", "the environment"),
    ("std::thread", "threads"),
    ("thread::spawn", "threads"),
    ("std::process", "processes"),
    ("std::net", "the network"),
    ("io::stdin", "the terminal"),
    ("io::stdout", "the terminal"),
    ("std::time::Instant", "the clock"),
    ("Instant::now", "the clock"),
    ("SystemTime", "the clock"),
    ("::now()", "the clock"),
    ("rand::", "chance"),
];

/// Where the engine is asked. Everything else goes through it.
const CALLER: &str = "crates/cluster/src/plan.rs";

/// Reaches of pure crates for the clock, chance, the environment, threads or files.
pub(super) fn purity(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for name in PURE {
        let dir = format!("crates/{}/src/", name.trim_start_matches("phalanx-"));
        for (path, code) in tree.product(&dir) {
            for (word, what) in REACHES {
                for (at, _) in code.match_indices(word) {
                    if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                        continue;
                    }
                    let message =
                        format!("`{word}` reaches for {what}; a pure crate is handed it.");
                    breaches.push(Breach::at(path, line_of(&code, at), message));
                }
            }
        }
    }
    breaches
}

/// Calls of `Engine::decide` outside the engine, tests and this tool's benchmark: one place only,
/// so that every user goes the same way from objects to a decision.
pub(super) fn one_caller(tree: &Tree) -> Vec<Breach> {
    let mut calls = Vec::new();
    for (path, code) in tree.product("crates/") {
        if !path.starts_with("crates/engine/") {
            calls.extend(code.match_indices(".decide(").map(|(at, _)| (path, line_of(&code, at))));
        }
    }
    let strangers = calls.iter().filter(|(path, _)| *path != CALLER);
    let mut breaches: Vec<Breach> = strangers
        .map(|(path, line)| {
            Breach::at(path, *line, format!("the engine is asked in {CALLER} only; go through it."))
        })
        .collect();
    let own = calls.iter().filter(|(path, _)| *path == CALLER).skip(1);
    breaches.extend(own.map(|(path, line)| {
        Breach::at(path, *line, "the engine is asked in one place; this is a second.")
    }));
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::File;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree::of(files.iter().map(|(p, t)| File { path: (*p).into(), text: (*t).into() }).collect())
    }

    #[test]
    fn a_clock_in_the_engine_is_named_and_one_in_its_tests_is_not() {
        let text = "// std::fs\nfn a() { Instant::now(); }\n#[cfg(test)]\nmod t { use std::fs; }\n";
        let breaches = purity(&tree(&[("crates/engine/src/a.rs", text)]));
        assert_eq!(breaches.len(), 1);
        assert_eq!(breaches[0].line, Some(2));
        assert_eq!(purity(&tree(&[("crates/cli/src/main.rs", "use std::fs;")])), []);
    }

    #[test]
    fn a_second_caller_of_the_engine_is_named() {
        let call = "fn a(e: Engine) { e.decide(x); }\n";
        assert_eq!(one_caller(&tree(&[(CALLER, call)])), []);
        assert_eq!(one_caller(&tree(&[(CALLER, call), ("crates/cli/src/a.rs", call)])).len(), 1);
        assert_eq!(one_caller(&tree(&[(CALLER, &call.repeat(2))])).len(), 1);
    }
}
