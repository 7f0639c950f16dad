//! `cargo xtask tidy`: the rules of the repository, held by a tool and not by memory.
//!
//! Each submodule holds rules of one kind and returns every breach that it finds; nothing stops at
//! the first. It also runs as a test, so that `cargo test` alone notices.

mod arrows;
mod docs;
mod manifests;
mod pure;
mod scenarios;
mod text;
mod words;

use std::fmt;

use crate::run::{Done, root};
use crate::source::Tree;

/// A rule that is broken, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Breach {
    /// Path from the root, or what else it is about.
    place: String,
    /// Line, where there is one.
    line: Option<usize>,
    /// What is wrong and what to do, as a sentence.
    message: String,
}

impl Breach {
    /// A breach in a line of a file.
    fn at(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self { place: place.to_owned(), line: Some(line), message: message.into() }
    }

    /// A breach of a file, a crate or the whole.
    fn of(place: &str, message: impl Into<String>) -> Self {
        Self { place: place.to_owned(), line: None, message: message.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.message),
            None => write!(f, "{}: {}", self.place, self.message),
        }
    }
}

/// Prints every breach; fails if there is one.
pub(crate) fn run() -> Done {
    println!("── tidy");
    let breaches = breaches()?;
    for breach in &breaches {
        println!("{breach}");
    }
    match breaches.len() {
        0 => Ok(()),
        1 => Err("tidy found one breach.".to_owned()),
        n => Err(format!("tidy found {n} breaches.")),
    }
}

fn breaches() -> Result<Vec<Breach>, String> {
    let tree = Tree::read(&root())?;
    let metadata = manifests::Metadata::read()?;
    let mut all = Vec::new();
    all.extend(arrows::arrows(&metadata));
    all.extend(arrows::outside()?);
    all.extend(manifests::inherited(&tree));
    all.extend(manifests::licences(&tree, &metadata)?);
    all.extend(manifests::lock_file(&tree));
    all.extend(pure::purity(&tree));
    all.extend(pure::one_caller(&tree));
    all.extend(text::text(&tree));
    all.extend(docs::docs(&tree));
    all.extend(words::glossary(&tree));
    all.extend(scenarios::scenarios(&tree));
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let breaches = breaches().expect("tidy runs");
        let list: Vec<String> = breaches.iter().map(ToString::to_string).collect();
        assert!(list.is_empty(), "\n{}", list.join("\n"));
    }
}
