//! The files of the repository as text, and Rust text without what is no code: comments, literals,
//! tests. Not a parser: enough to look for words where they mean something.

use std::collections::BTreeSet;
use std::path::Path;

/// A file that is not ours to judge: built, fetched or written by a tool.
const SKIP: [&str; 4] = ["target", ".git", "mutants.out", "mutants.out.old"];

/// A text file.
#[derive(Debug)]
pub(crate) struct File {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

/// All text files of the repository, sorted by path.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The files.
    pub(crate) files: Vec<File>,
    /// Rust files that are only built for tests.
    tests: BTreeSet<String>,
}

impl Tree {
    /// Reads the tree under `root`; what is no UTF-8 is left out.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut files = Vec::new();
        walk(root, "", &mut files)?;
        Ok(Self::of(files))
    }

    /// A tree of these files.
    pub(crate) fn of(mut files: Vec<File>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut tests = BTreeSet::new();
        for file in files.iter().filter(|f| f.path.ends_with(".rs")) {
            let path = &file.path;
            if path.contains("/tests/") || path.contains("/benches/") || path.ends_with("/tests.rs")
            {
                tests.insert(path.clone());
            }
            tests.extend(test_modules(path, &code(&file.text)));
        }
        Self { files, tests }
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|f| f.path.ends_with(".rs"))
    }

    /// The file at `path`.
    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|f| f.path == path)
    }

    /// Whether the Rust file at `path` is only built for tests.
    pub(crate) fn is_test(&self, path: &str) -> bool {
        self.tests
            .iter()
            .any(|t| t == path || t.strip_suffix("/").is_some_and(|dir| path.starts_with(dir)))
    }

    /// The code of the Rust files under `dir` that goes into the product: no comments, no literals,
    /// no tests.
    pub(crate) fn product<'t>(
        &'t self,
        dir: &'t str,
    ) -> impl Iterator<Item = (&'t str, String)> + 't {
        self.rust()
            .filter(move |f| f.path.starts_with(dir) && !self.is_test(&f.path))
            .map(|f| (f.path.as_str(), without_tests(&code(&f.text))))
    }
}

fn walk(dir: &Path, prefix: &str, files: &mut Vec<File>) -> Result<(), String> {
    let entries = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}.", dir.display()))?;
    for entry in entries {
        let entry = entry.map_err(|e| format!("{}: {e}.", dir.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if SKIP.contains(&name.as_str()) {
            continue;
        }
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let kind = entry.file_type().map_err(|e| format!("{path}: {e}."))?;
        if kind.is_dir() {
            walk(&entry.path(), &path, files)?;
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).map_err(|e| format!("{path}: {e}."))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File { path, text });
            }
        }
    }
    Ok(())
}

/// Files of modules that `code` declares under `#[cfg(test)]`; a directory ends in `/`.
fn test_modules(path: &str, code: &str) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let dir = match stem.rsplit_once('/') {
        Some((dir, "lib" | "main" | "mod")) => dir,
        _ => stem,
    };
    let mut found = Vec::new();
    for (at, mark) in code.match_indices("#[cfg(test)]") {
        let rest = code[at + mark.len()..].trim_start();
        let rest = rest.strip_prefix("pub(crate)").unwrap_or(rest).trim_start();
        if let Some(rest) = rest.strip_prefix("mod ")
            && let Some(end) = rest.find([';', '{'])
            && rest[end..].starts_with(';')
        {
            let name = rest[..end].trim();
            found.push(format!("{dir}/{name}.rs"));
            found.push(format!("{dir}/{name}/"));
        }
    }
    found
}

/// The text with comments and the insides of literals turned into spaces; lines stay where they
/// are.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Code(s) => out.push_str(s),
            Piece::Comment(s) | Piece::Literal(s) => {
                out.extend(s.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            }
        }
    }
    out
}

/// A run of Rust text of one sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// Code.
    Code(&'t str),
    /// A comment.
    Comment(&'t str),
    /// The inside of a string or character literal.
    Literal(&'t str),
}

/// Cuts Rust text into code, comments and literals.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let bytes = text.as_bytes();
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        let Some((open, len, comment)) = special(text, at) else {
            at += 1;
            continue;
        };
        pieces.push(Piece::Code(&text[from..at + open]));
        let inside = &text[at + open..at + open + len];
        pieces.push(if comment { Piece::Comment(inside) } else { Piece::Literal(inside) });
        from = at + open + len;
        // Past the closing quote, so that it opens nothing.
        at = if comment { from } else { from + 1 };
    }
    pieces.push(Piece::Code(&text[from..]));
    pieces
}

/// A comment or literal that begins at `at`: (length of its opening, length of its inside, comment).
fn special(text: &str, at: usize) -> Option<(usize, usize, bool)> {
    let rest = text.as_bytes().get(at..)?;
    let before = |n: usize| at.checked_sub(n).map(|i| text.as_bytes()[i]);
    // `r` at the end of a word opens nothing, but that of `br` does.
    let word = match before(1) {
        Some(b'b') => before(2).is_some_and(is_word),
        Some(byte) => is_word(byte),
        None => false,
    };
    match rest {
        [b'/', b'/', ..] => {
            Some((0, rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()), true))
        }
        [b'/', b'*', ..] => Some((0, block_comment(rest), true)),
        [b'"', ..] => Some((1, quoted(&rest[1..], b'"'), false)),
        [b'r', b'"' | b'#', ..] if !word => {
            let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
            if rest.get(1 + hashes) != Some(&b'"') {
                return None;
            }
            let close = format!("\"{}", "#".repeat(hashes));
            let inside = text.get(at + 2 + hashes..)?;
            Some((2 + hashes, inside.find(&close).unwrap_or(inside.len()), false))
        }
        // A lifetime has no closing quote within one character.
        [b'\'', b'\\', ..] => Some((1, quoted(&rest[1..], b'\''), false)),
        [b'\'', ..] => {
            let c = text.get(at + 1..)?.chars().next()?;
            let closed = rest.get(1 + c.len_utf8()) == Some(&b'\'');
            (closed && c != '\'').then_some((1, c.len_utf8(), false))
        }
        _ => None,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Length up to the closing quote, escapes skipped.
fn quoted(inside: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while at < inside.len() && inside[at] != quote {
        at += if inside[at] == b'\\' { 2 } else { 1 };
    }
    at.min(inside.len())
}

/// Length of a block comment, nested ones included.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// `code` with every item under `#[cfg(test)]` turned into spaces.
pub(crate) fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(at) = out.find("#[cfg(test)]") {
        let end = item_end(&out, at);
        let blank: String =
            out[at..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        out.replace_range(at..end, &blank);
    }
    out
}

/// Where the item that begins at `at` ends: at its first `;` outside braces, or at the brace that
/// closes its first.
fn item_end(code: &str, at: usize) -> usize {
    let mut depth = 0_usize;
    for (i, c) in code[at..].char_indices() {
        match c {
            ';' if depth == 0 => return at + i + 1,
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + i + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// The line of the byte `at`, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code() {
        let text = "let a = \"x.y() \\\" z\"; // b.c()\nlet q = '\"'; d(r#\"e\"f\"#); /* g /* h */ i */ j::<'k>()";
        let code = code(text);
        assert_eq!(code.len(), text.len());
        for gone in ["x.y", "z", "b.c", "e\"f", "g", "i */"] {
            assert!(!code.contains(gone), "{gone} in {code}");
        }
        for kept in ["let a", "let q", "d(r#", "j::<'k>()"] {
            assert!(code.contains(kept), "{kept} not in {code}");
        }
    }

    #[test]
    fn tests_are_cut_out() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { c(); }\n}\nfn d() {}\n";
        let product = without_tests(code);
        assert!(product.contains("fn a") && product.contains("fn d") && !product.contains("fn b"));
        assert_eq!(line_of(&product, product.find("fn d").unwrap()), 6);
    }

    #[test]
    fn modules_of_tests_are_known_by_their_declaration() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let tree = Tree::of(vec![
            file("a/src/lib.rs", "mod x;\n#[cfg(test)]\nmod brute;\n"),
            file("a/src/brute.rs", ""),
            file("a/src/brute/more.rs", ""),
            file("a/src/x.rs", "#[cfg(test)] mod tests;"),
            file("a/src/x/tests.rs", ""),
            file("a/tests/t.rs", ""),
        ]);
        let product: Vec<_> = tree.product("a/").map(|(p, _)| p).collect();
        assert_eq!(product, ["a/src/lib.rs", "a/src/x.rs"]);
    }
}
