//! The glossary: every term of the field that our sentences use is explained there.
//!
//! What is a term and what is plain English, no tool can know. So each word that a sentence can
//! say must stand in one of two lists: as a heading of `docs/glossary.md`, or in
//! `xtask/plain-words.txt`. A new word is a question to whoever writes it.

use std::collections::BTreeSet;

use super::Breach;
use crate::source::{Piece, Tree, code, pieces};

/// Where the sentences of verdicts are made.
const SENTENCES: &str = "crates/cluster/src/words";
/// Where anything is said at all: errors and findings too.
const SPEECH: &str = "crates/";
const GLOSSARY: &str = "docs/glossary.md";
const PLAIN: &str = "xtask/plain-words.txt";

/// Words that no list has, and headings that no sentence uses.
pub(super) fn glossary(tree: &Tree) -> Vec<Breach> {
    let text = |path: &str| tree.get(path).map(|f| f.text.as_str()).unwrap_or_default();
    let terms = terms(text(GLOSSARY));
    let plain: BTreeSet<&str> = text(PLAIN).split_whitespace().collect();
    let mut breaches = Vec::new();
    let mut said = BTreeSet::new();
    for file in tree.rust().filter(|f| f.path.starts_with(SPEECH) && !tree.is_test(&f.path)) {
        for (line, sentence) in literals(&file.text) {
            said.insert(sentence.to_lowercase());
            let judged = file.path.starts_with(SENTENCES) && sentence.trim().contains(' ');
            for word in words(&sentence).into_iter().filter(|_| judged) {
                if !plain.contains(word.to_lowercase().as_str()) && !is_term(&word, &terms) {
                    let message = format!(
                        "`{word}` is in no list: explain it in {GLOSSARY} if it is a term of the \
                         field, else add it to {PLAIN}."
                    );
                    breaches.push(Breach::at(&file.path, line, message));
                }
            }
        }
    }
    if !said.is_empty() {
        let unused = terms.iter().filter(|names| !names.iter().any(|n| says(&said, n)));
        breaches.extend(unused.map(|names| {
            Breach::of(GLOSSARY, format!("no sentence says `{}`; take it out.", names.join("`, `")))
        }));
    }
    breaches.sort();
    let mut seen = BTreeSet::new();
    breaches.retain(|breach| seen.insert(breach.message.clone()));
    breaches
}

/// The headings below the first: a term, then after commas its other forms.
fn terms(glossary: &str) -> Vec<Vec<String>> {
    glossary
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|heading| heading.split(',').map(|name| name.trim().to_owned()).collect())
        .collect()
}

/// Whether `word` is a word of some term, or its plural. Names in mixed case are compared as they
/// are written, other words in lower case.
fn is_term(word: &str, terms: &[Vec<String>]) -> bool {
    let same = |part: &str| {
        let (word, part) = if word.chars().skip(1).any(char::is_uppercase) {
            (word.to_owned(), part.to_owned())
        } else {
            (word.to_lowercase(), part.to_lowercase())
        };
        word == part || word.strip_suffix('s') == Some(part.as_str())
    };
    terms.iter().flatten().any(|name| name.split(' ').any(same))
}

fn says(said: &BTreeSet<String>, name: &str) -> bool {
    let name = name.to_lowercase();
    said.iter().any(|sentence| sentence.contains(&name))
}

/// String literals of product code, each with its line.
fn literals(text: &str) -> Vec<(usize, String)> {
    let product = crate::source::without_tests(&code(text));
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    for piece in pieces(text) {
        let (inside, literal) = match piece {
            Piece::Code(s) | Piece::Comment(s) => (s, false),
            Piece::Literal(s) => (s, true),
        };
        // Its opening quote is gone from `product` where it stands in tests.
        let kept = at > 0 && product.as_bytes().get(at - 1) == Some(&b'"');
        if literal && kept {
            found.push((line, inside.to_owned()));
        }
        at += inside.len();
        line += inside.matches('\n').count();
    }
    found
}

/// The words of a sentence, without placeholders and code in backticks.
fn words(sentence: &str) -> Vec<String> {
    let mut plain = String::new();
    let (mut depth, mut quoted) = (0_usize, false);
    for c in sentence.chars() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                // What touches a placeholder is no word of its own: `{n}th`.
                plain.push('0');
            }
            '`' => quoted = !quoted,
            _ if depth == 0 && !quoted => plain.push(c),
            _ => {}
        }
    }
    plain
        .replace("\\n", " ")
        .split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '-' || c == '/' || c == '.'))
        .map(|word| word.trim_matches(['\'', '-', '.', '/']))
        .flat_map(|word| word.split('/'))
        .map(|word| word.trim_end_matches("'s"))
        .filter(|word| word.len() > 1 && !word.contains(|c: char| c.is_numeric()))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::File;

    fn tree(sentence: &str, glossary: &str, plain: &str) -> Tree {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let code = format!(
            "fn a() {{ format!(\"{sentence}\") }}\n#[cfg(test)]\nmod t {{ const X: &str = \"no such word\"; }}\n"
        );
        Tree::of(vec![
            file("crates/cluster/src/words.rs", &code),
            file(GLOSSARY, glossary),
            file(PLAIN, plain),
        ])
    }

    #[test]
    fn every_word_is_plain_or_a_term() {
        let glossary = "# Glossary\n\n## NVLink island, island\n\nText.\n";
        let breaches = super::glossary(&tree("{n} islands of the rack", glossary, "of the"));
        assert_eq!(breaches.len(), 1, "{breaches:?}");
        assert!(breaches[0].message.contains("`rack`"));
        assert_eq!(breaches[0].line, Some(1));
    }

    #[test]
    fn a_term_that_no_sentence_says_is_named() {
        let breaches = super::glossary(&tree("of the", "## rail\n", "of the"));
        assert_eq!(breaches.len(), 1, "{breaches:?}");
        assert!(breaches[0].message.contains("`rail`"));
    }
}
