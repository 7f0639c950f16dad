//! Expressions that are made by chance: texts taken apart and put together again, seeded, so that
//! each run makes the same. `cargo xtask fuzz cel --runs N --seed S` makes more of them; what was
//! found to do harm is kept in the corpus and replayed first.
//!
//! Of every text: it does not panic, what costs more than the fuel is an error, compiling and
//! evaluating it twice gives the same, its explanation agrees with its verdict, what is read
//! decides; and what compiles is an expression to another parser too.

use std::fmt::Write as _;

use super::{DRIVER, object};
use crate::{COST_LIMIT, Device, Environment, Gates, Program, Verdict, Version};

/// Kept texts, one each line; a backslash before an `n` stands for a line break.
const CORPUS: &str = include_str!("../../corpus/expressions.txt");

/// Pieces that texts are made of.
const PIECES: &str = include_str!("../../corpus/pieces.txt");

/// Runs without further word: the texts of a few seconds.
const RUNS: u64 = 3_000;

/// One text in so many compiles at least, of enough of them to tell: about one in forty does.
const COMPILED_LEAST: u64 = 60;

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

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A text from a seed: the corpus mutated, or pieces put together.
fn text(chance: &mut Chance, seeds: &[String], pieces: &[&str]) -> String {
    if chance.below(4) == 0 {
        let mut out = String::new();
        for _ in 0..=chance.below(24) {
            let _ = write!(out, "{} ", chance.pick(pieces));
        }
        return out;
    }
    let mut characters: Vec<char> = seeds[chance.below(seeds.len())].chars().collect();
    for _ in 0..=chance.below(4) {
        let at = chance.below(characters.len() + 1);
        let end = (at + chance.below(12)).min(characters.len());
        match chance.below(6) {
            0 => drop(characters.drain(at..end)),
            1 => {
                let part: Vec<char> = characters[at..end].to_vec();
                let to = chance.below(characters.len() + 1);
                characters.splice(to..to, part);
            }
            2 => {
                let byte = char::from((chance.next() & 0x7f) as u8);
                characters.insert(at, byte);
            }
            3 => {
                let piece: Vec<char> = chance.pick(pieces).chars().collect();
                characters.splice(at..end, piece);
            }
            4 => {
                let other: Vec<char> = seeds[chance.below(seeds.len())].chars().collect();
                let from = chance.below(other.len() + 1);
                characters.splice(at.., other[from..].iter().copied());
            }
            _ => characters.insert(at, ['β', '\u{1F600}', '\n', '"', '\\', '`'][chance.below(6)]),
        }
    }
    characters.into_iter().take(2_000).collect()
}

/// What the other parser says; it recurses deeply, so texts that nest are not handed to it.
fn parses_elsewhere(source: &str) -> bool {
    let parser = cel::parser::PrattParser::new().enable_optional_syntax(true);
    parser.enable_ident_escape_syntax(true).max_recursion_depth(250).parse(source).is_ok()
}

/// Whether the other parser can be asked: it recurses as deep as a text nests.
fn is_comparable(source: &str) -> bool {
    source.matches(['(', '[', '{', '.', '+', '-', '!', '?']).count() <= 60
}

fn environments() -> [Environment; 3] {
    let gates = Gates { consumable_capacity: true, list_type_attributes: true };
    [
        Environment::default(),
        Environment::new_expressions(Version::NEWEST, gates),
        Environment::new_expressions(Version::OLDEST, Gates::default()),
    ]
}

/// Holds one text against all that is promised; gives whether it compiled.
fn hold(source: &str, device: &Device<'_>) -> bool {
    let mut compiled = false;
    for environment in environments() {
        let selector = Program::compile(source, &environment);
        let attribute = Program::compile_attribute(source, &environment);
        let again = Program::compile(source, &environment);
        match (&selector, &again) {
            (Err(a), Err(b)) => {
                assert_eq!(a, b, "{source}");
                assert!(a.range.0 <= a.range.1 && a.range.1 <= source.len(), "{source}: {a:?}");
            }
            (Ok(a), Ok(b)) => assert_eq!(a.estimate(), b.estimate(), "{source}"),
            _ => panic!("compiling twice differs: {source}"),
        }
        for fuel in [COST_LIMIT, 40] {
            if let (Ok(first), Ok(second)) = (&selector, &again) {
                let evaluation = first.evaluate(device, fuel);
                assert_eq!(evaluation, second.evaluate(device, fuel), "{source}");
                let within =
                    evaluation.cost <= fuel || matches!(evaluation.verdict, Verdict::Error(_));
                assert!(within, "{source}: {evaluation:?}");
                if fuel == COST_LIMIT {
                    let explained = first.explain(device).is_empty();
                    assert_eq!(explained, evaluation.verdict == Verdict::Yes, "{source}");
                }
            }
            if let Ok(attribute) = &attribute {
                let evaluation = attribute.evaluate_attribute(device, fuel);
                assert_eq!(evaluation, attribute.evaluate_attribute(device, fuel), "{source}");
            }
        }
        compiled |= selector.is_ok();
    }
    if compiled && is_comparable(source) {
        assert!(parses_elsewhere(source), "another parser refuses {source:?}");
    }
    compiled
}

#[expect(
    clippy::disallowed_methods,
    reason = "seed and runs are handed over by `cargo xtask fuzz`"
)]
fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// On a thread with the stack that runtimes give.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
    thread.join().unwrap();
}

#[test]
fn the_corpus_keeps_every_promise() {
    on_a_small_stack(|| {
        let object = object();
        let device = Device::new(DRIVER, &object).unwrap();
        let seeds = seeds();
        let compiled = seeds.iter().filter(|source| hold(source, &device)).count();
        assert!(compiled * 2 > seeds.len(), "{compiled} of {} compile", seeds.len());
    });
}

fn seeds() -> Vec<String> {
    CORPUS.lines().map(|line| line.replace("\\n", "\n")).collect()
}

#[test]
fn texts_made_by_chance_keep_every_promise() {
    on_a_small_stack(|| {
        let object = object();
        let device = Device::new(DRIVER, &object).unwrap();
        let (seed, runs) = (number("PHALANX_FUZZ_SEED", 1), number("PHALANX_FUZZ_RUNS", RUNS));
        let (seeds, pieces) = (seeds(), PIECES.lines().collect::<Vec<_>>());
        let mut compiled = 0;
        for run in 0..runs {
            let mut chance = Chance(seed.wrapping_mul(0x1_0000_0001).wrapping_add(run));
            let source = text(&mut chance, &seeds, &pieces);
            compiled += u64::from(hold(&source, &device));
        }
        println!("{compiled} of {runs} texts compile (seed {seed})");
        // Too few would mean that the texts reach no evaluation, and hold nothing.
        let enough = runs < RUNS || compiled * COMPILED_LEAST >= runs;
        assert!(enough, "{compiled} of {runs} compile");
    });
}
