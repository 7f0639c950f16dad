//! Texts that are made by chance out of good ones, seeded, so that each run makes the same.
//! `cargo xtask fuzz read --runs N --seed S` makes more of them; what was found to do harm is kept in
//! `corpus/kept.txt` and replayed first.
//!
//! Of every text: no panic, the same answer twice, each problem at a place that the text has; and the
//! objects beside it are read, whatever it is.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use std::ops::Range;

use phalanx_objects::{Item, Object, read};

/// Objects of every kind that is read, document by document.
const WORLD: &str = include_str!("../corpus/world.yaml");

/// Pieces that do harm to readers.
const PIECES: &str = include_str!("../corpus/pieces.txt");

/// Values that are well formed, and that few fields expect.
const VALUES: &str = include_str!("../corpus/values.txt");

/// Kept texts, one each line; `\\n`, `\\r`, `\\t`, `\\0`, `\\xNN` and `\\\\` stand for what they do in Rust.
const KEPT: &str = include_str!("../corpus/kept.txt");

/// Runs without further word: the texts of a second or two.
const RUNS: u64 = 4_000;

/// Of so many texts one holds an object still, and one a problem, at least: else they would be too
/// wild, or too tame, to hold anything.
const TOLD_LEAST: u64 = 12;

/// A small generator of chance (SplitMix64), so that the texts depend on the seed alone.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// The documents that texts are made of: as they are written, and as one line of JSON each.
struct Seeds {
    yaml: Vec<Vec<u8>>,
    json: Vec<Vec<u8>>,
    pieces: Vec<Vec<u8>>,
    values: Vec<&'static str>,
}

impl Seeds {
    fn new() -> Self {
        let yaml = WORLD.split("\n---\n").map(|document| document.as_bytes().to_vec()).collect();
        let objects = items(WORLD.as_bytes()).into_iter().filter_map(|item| match item {
            Item::Object(object, _) => Some(serde_json::to_vec(&object).unwrap()),
            Item::Gone(..) | Item::Unknown { .. } | Item::Problem(_) => None,
        });
        let pieces = PIECES.lines().map(unescaped).collect();
        Self { yaml, json: objects.collect(), pieces, values: VALUES.lines().collect() }
    }

    /// A document with some harm done to it: to its values alone, or to its text.
    fn text(&self, chance: &mut Chance, json: bool) -> Vec<u8> {
        let documents = if json { &self.json } else { &self.yaml };
        let mut text = chance.pick(documents).clone();
        let gently = chance.below(2) == 0;
        for _ in 0..=chance.below(3) {
            if gently {
                self.harm_value(chance, &mut text);
            } else {
                self.harm_text(chance, &mut text, documents);
            }
        }
        text
    }

    fn harm_value(&self, chance: &mut Chance, text: &mut Vec<u8>) {
        let values = values(text);
        if !values.is_empty() {
            let range = chance.pick(&values).clone();
            text.splice(range, chance.pick(&self.values).bytes());
        }
    }

    fn harm_text(&self, chance: &mut Chance, text: &mut Vec<u8>, documents: &[Vec<u8>]) {
        let at = chance.below(text.len() + 1);
        let end = (at + chance.below(16)).min(text.len());
        match chance.below(6) {
            0 => drop(text.drain(at..end)),
            1 => text.truncate(at),
            2 => {
                let part = text[at..end].to_vec();
                let to = chance.below(text.len() + 1);
                text.splice(to..to, part);
            }
            3 => text.insert(at, (chance.next() & 0xff) as u8),
            4 => {
                let other = chance.pick(documents);
                let from = chance.below(other.len() + 1);
                text.splice(at.., other[from..].iter().copied());
            }
            _ => drop(text.splice(at..end, chance.pick(&self.pieces).iter().copied())),
        }
    }
}

/// Where a text's plain values stand, roughly: what follows a colon on its line, up to what ends it.
fn values(text: &[u8]) -> Vec<Range<usize>> {
    let colons = text.iter().enumerate().filter(|(_, byte)| **byte == b':');
    let value = |(colon, _): (usize, &u8)| {
        let start = colon + 1 + text[colon + 1..].iter().take_while(|byte| **byte == b' ').count();
        let rest = &text[start..];
        let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b'\n'));
        let nests = matches!(rest.first(), Some(b'{' | b'[' | b'\n') | None);
        (!nests).then(|| start..length.map_or(text.len(), |length| start + length))
    };
    colons.filter_map(value).collect()
}

/// A line of a corpus with its escapes read.
fn unescaped(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = line.bytes();
    while let Some(byte) = rest.next() {
        match (byte, if byte == b'\\' { rest.next() } else { None }) {
            (_, Some(b'n')) => out.push(b'\n'),
            (_, Some(b'r')) => out.push(b'\r'),
            (_, Some(b't')) => out.push(b'\t'),
            (_, Some(b'0')) => out.push(0),
            (_, Some(b'x')) => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            (_, Some(other)) => out.push(other),
            (other, None) => out.push(other),
        }
    }
    out
}

fn items(text: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    read("text", text, &mut |item| items.push(item));
    items
}

fn has_node(items: &[Item], name: &str) -> bool {
    items.iter().any(|item| match item {
        Item::Object(object, _) => matches!(object, Object::Node(_)) && object.name() == name,
        Item::Gone(..) | Item::Unknown { .. } | Item::Problem(_) => false,
    })
}

/// What a text gave: whether there was an object, and whether there was a problem.
#[derive(Default)]
struct Told {
    objects: u64,
    problems: u64,
}

impl Told {
    /// Holds one text against all that is promised.
    fn hold(&mut self, text: &[u8]) {
        let shown = text.escape_ascii();
        let found = items(text);
        assert_eq!(found, items(text), "read twice: {shown}");
        let lines = text.split(|byte| *byte == b'\n').count() + 1;
        for item in &found {
            let Item::Problem(problem) = item else { continue };
            let line = usize::try_from(problem.line).unwrap();
            assert!((1..=lines).contains(&line), "{problem:?}: {shown}");
            assert!(problem.column > 0 && !problem.message.is_empty(), "{problem:?}: {shown}");
        }
        let is_object = |item: &&Item| matches!(item, Item::Object(..));
        self.objects += u64::from(found.iter().any(|item| is_object(&item)));
        self.problems += u64::from(found.iter().any(|item| matches!(item, Item::Problem(_))));
    }
}

/// Whatever stands between two documents of YAML, both are read.
fn hold_between_documents(text: &[u8]) {
    let node = |name: &str| format!("apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n");
    let (first, last) = (node("first"), node("last"));
    let whole = [first.as_bytes(), b"---\n", text, b"\n---\n", last.as_bytes()].concat();
    let found = items(&whole);
    let both = has_node(&found, "first") && has_node(&found, "last");
    assert!(both, "an object beside it is lost: {}", text.escape_ascii());
}

/// Whatever stands on a line between two lines of JSON, both are read.
fn hold_between_lines(text: &[u8]) {
    let node = |name: &str| {
        format!(r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{name}"}}}}"#)
    };
    let line: Vec<u8> =
        text.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let (first, last) = (node("first"), node("last"));
    let whole = [first.as_bytes(), b"\n", &line, b"\n", last.as_bytes(), b"\n"].concat();
    let found = items(&whole);
    let both = has_node(&found, "first") && has_node(&found, "last");
    assert!(both, "an object beside it is lost: {}", line.escape_ascii());
}

#[expect(
    clippy::disallowed_methods,
    reason = "seed and runs are handed over by `cargo xtask fuzz`"
)]
fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn kept_texts_keep_every_promise() {
    let mut told = Told::default();
    for line in KEPT.lines() {
        let text = unescaped(line);
        told.hold(&text);
        hold_between_documents(&text);
        hold_between_lines(&text);
    }
}

#[test]
fn texts_made_by_chance_keep_every_promise() {
    let (seed, runs) = (number("PHALANX_FUZZ_SEED", 1), number("PHALANX_FUZZ_RUNS", RUNS));
    let (seeds, mut told) = (Seeds::new(), Told::default());
    for run in 0..runs {
        let mut chance = Chance(seed.wrapping_mul(0x1_0000_0001).wrapping_add(run));
        let json = run % 2 == 0;
        let text = seeds.text(&mut chance, json);
        told.hold(&text);
        if json { hold_between_lines(&text) } else { hold_between_documents(&text) }
    }
    let Told { objects, problems } = told;
    println!("{objects} of {runs} texts hold an object, {problems} a problem (seed {seed})");
    let enough = runs < RUNS || (objects.min(problems) * TOLD_LEAST >= runs);
    assert!(enough, "{objects} of {runs} texts hold an object, {problems} a problem");
}
