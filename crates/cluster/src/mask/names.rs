//! Words and their codes.
//!
//! A name is cut into words, which are runs of letters, and what stands between them: digits, dots,
//! dashes, slashes. Only words are replaced. Each has one code, codes have the order of the words,
//! and every letter sorts after whatever is no letter; so names keep their order, what is equal stays
//! equal, a name that begins as another still does, and a number at the end is the same number.
//!
//! A UUID is one word wherever it stands in a name, and an address of a machine is one where its field
//! says so: of those the digits go as well.

use std::collections::{BTreeMap, BTreeSet};

/// What codes are spelled with: no vowel, so that no code is a word of a sentence. In order.
const LETTERS: &[u8; 20] = b"bcdfghjklmnpqrstvwxz";

/// Words by which controllers know what a job of theirs is for, and what devices and what is made
/// for a container are called everywhere. They stay; codes are in order with them.
const KNOWN: [&str; 10] = [
    "container",
    "dataset",
    "gpu",
    "initializer",
    "launcher",
    "mig",
    "model",
    "nic",
    "node",
    "request",
];

/// How codes begin, by how many known words come before their own word: in order with those.
const FIRST: [&str; 11] = ["ax", "cx", "dx", "gx", "ix", "lx", "mj", "mx", "nj", "nx", "rx"];

/// Where a UUID has its dashes.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// Its length, in bytes.
const UUID_BYTES: usize = 36;

/// Fewest letters behind that.
const WIDTH_MIN: usize = 3;

/// Whether a character belongs to a word. What comes before `A` does not: digits and most signs. Nor
/// does `_`, which parts zones; it comes before the small letters of which names are made.
fn is_letter(c: char) -> bool {
    c >= 'A' && c != '_'
}

/// The parts of a text: words of such letters, and what stands between them.
fn parts(text: &str, is_letter: fn(char) -> bool) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let letters = is_letter(rest.chars().next()?);
        let end = rest.find(|c| is_letter(c) != letters).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        Some((letters, part))
    })
}

/// The UUIDs of a text, and what stands between them.
fn wholes(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let starts = rest.char_indices().map(|(at, _)| at);
        let (part, after, whole) = match starts.into_iter().find(|at| is_uuid(&rest[*at..])) {
            Some(0) => (&rest[..UUID_BYTES], &rest[UUID_BYTES..], true),
            Some(at) => (&rest[..at], &rest[at..], false),
            None => (rest, "", false),
        };
        rest = after;
        Some((whole, part))
    })
}

/// Whether a text begins with a UUID.
fn is_uuid(text: &str) -> bool {
    text.as_bytes().get(..UUID_BYTES).is_some_and(|bytes| {
        bytes.iter().enumerate().all(|(at, byte)| match DASHES.contains(&at) {
            true => *byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
    })
}

/// The words of a text and what stands between them, UUIDs aside.
pub(super) fn parts_of(text: &str) -> impl Iterator<Item = (bool, &str)> {
    parts(text, is_letter)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    parts(text, is_letter).filter(|(is_word, _)| *is_word).map(|(_, word)| word)
}

/// The words that were seen.
#[derive(Debug, Default)]
pub(super) struct Words {
    hidden: BTreeSet<String>,
    uuids: BTreeSet<String>,
    addresses: BTreeSet<String>,
    /// Words that stay and could be taken for codes.
    like_codes: BTreeSet<String>,
}

impl Words {
    /// The words of a text are to be replaced.
    pub(super) fn hide(&mut self, text: &str) {
        for (whole, part) in wholes(text) {
            if whole {
                self.uuids.insert(part.to_owned());
                continue;
            }
            for word in words(part).filter(|word| !KNOWN.contains(word)) {
                if !self.hidden.contains(word) {
                    self.hidden.insert(word.to_owned());
                }
            }
        }
    }

    /// The address of a machine is to be replaced.
    pub(super) fn hide_address(&mut self, address: &str) {
        self.addresses.insert(address.to_owned());
    }

    /// The words of a text stay.
    pub(super) fn keep(&mut self, text: &str) {
        let is_code = |word: &&str| {
            let rest = FIRST.iter().find_map(|first| word.strip_prefix(first));
            rest.is_some_and(|rest| rest.bytes().all(|letter| LETTERS.contains(&letter)))
        };
        self.like_codes.extend(words(text).filter(is_code).map(str::to_owned));
    }

    /// Gives each word its code: spread over all that there are, so that two are easily told apart.
    pub(super) fn codes(self) -> Codes {
        let mut groups: [Vec<String>; FIRST.len()] = Default::default();
        for word in self.hidden {
            let before = KNOWN.iter().filter(|known| **known < word.as_str()).count();
            if let Some(group) = groups.get_mut(before) {
                group.push(word);
            }
        }
        let most = groups.iter().map(Vec::len).max().unwrap_or(0) + self.like_codes.len() + 1;
        let mut width = WIDTH_MIN;
        while count(width) < most.saturating_mul(4) {
            width += 1;
        }
        let mut codes = BTreeMap::new();
        for (first, group) in FIRST.into_iter().zip(groups) {
            let step = count(width) / (group.len() + self.like_codes.len() + 1);
            let mut next = 0;
            for word in group {
                let mut code = spell(first, next, width);
                while self.like_codes.contains(&code) {
                    next += 1;
                    code = spell(first, next, width);
                }
                codes.insert(word, code);
                next += step;
            }
        }
        let uuids = (0_usize..).zip(self.uuids).map(|(rank, uuid)| {
            // Its first letter keeps it on its side of names that are none.
            // That of zeros alone says that there is none.
            let none = uuid.bytes().all(|byte| matches!(byte, b'0' | b'-'));
            let code = match none {
                true => uuid.clone(),
                false => format!("{}{rank:07x}-0000-4000-8000-{:012}", &uuid[..1], 0),
            };
            (uuid, code)
        });
        codes.extend(uuids);
        codes.extend((0_usize..).zip(self.addresses).map(|(rank, address)| {
            let part = |unit: usize| 100 + rank / unit % 100;
            (address, format!("198.{}.{}.{}", part(10_000), part(100), part(1)))
        }));
        let of_code = codes.iter().map(|(word, code)| (code.clone(), word.clone())).collect();
        Codes { of_word: codes, of_code }
    }
}

/// How many codes of a width there are.
fn count(width: usize) -> usize {
    let exponent = u32::try_from(width).unwrap_or(u32::MAX);
    LETTERS.len().saturating_pow(exponent)
}

/// The code with a number: codes are in the order of their numbers.
fn spell(first: &str, number: usize, width: usize) -> String {
    let mut rest = number;
    let mut letters = Vec::new();
    for _ in 0..width {
        letters.extend(LETTERS.get(rest % LETTERS.len()).map(|letter| char::from(*letter)));
        rest /= LETTERS.len();
    }
    first.chars().chain(letters.into_iter().rev()).collect()
}

/// The code of each word.
#[derive(Debug, Default)]
pub(super) struct Codes {
    of_word: BTreeMap<String, String>,
    of_code: BTreeMap<String, String>,
}

impl Codes {
    /// A text with codes for its words.
    pub(super) fn mask(&self, text: &str) -> String {
        Self::replaced(text, is_letter, &self.of_word)
    }

    /// The code of an address.
    pub(super) fn address(&self, address: &str) -> String {
        self.of_word.get(address).map_or_else(|| address.to_owned(), String::clone)
    }

    /// A text with words for its codes.
    pub(super) fn reveal(&self, text: &str) -> String {
        // In a sentence a name may stand in brackets or quotes.
        let is_address = |part: &str| part.starts_with("198.") && self.of_code.contains_key(part);
        let signs = |c: char| c != '.' && !c.is_ascii_alphanumeric();
        let addresses = text.split_inclusive(signs).map(|part| {
            let bare = part.trim_end_matches(signs);
            match is_address(bare).then(|| self.of_code.get(bare)).flatten() {
                Some(address) => part.replacen(bare, address, 1),
                None => part.to_owned(),
            }
        });
        Self::replaced(&addresses.collect::<String>(), char::is_alphabetic, &self.of_code)
    }

    fn replaced(text: &str, is_letter: fn(char) -> bool, by: &BTreeMap<String, String>) -> String {
        let mut out = String::new();
        let mut push = |known: bool, part: &str| {
            let other = if known { by.get(part) } else { None };
            out.push_str(other.map_or(part, String::as_str));
        };
        for (whole, part) in wholes(text) {
            if whole {
                push(true, part);
            } else {
                parts(part, is_letter).for_each(|(is_word, part)| push(is_word, part));
            }
        }
        out
    }

    /// The word of each code.
    pub(super) fn meanings(&self) -> &BTreeMap<String, String> {
        &self.of_code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(texts: &[&str], kept: &[&str]) -> Codes {
        let mut words = Words::default();
        texts.iter().for_each(|text| words.hide(text));
        kept.iter().for_each(|text| words.keep(text));
        words.codes()
    }

    #[test]
    fn names_keep_their_order_their_beginnings_and_their_numbers() {
        let mut names = vec![
            "a",
            "a-b",
            "a.b",
            "a1",
            "a10",
            "a2",
            "ab",
            "ab-1",
            "abc",
            "b",
            "B",
            "B-9",
            "ab_c",
            "10",
            "1a",
            "node-7.rack-2",
            "node-7",
            "nodes",
            "node",
            "ä",
            "äb-1",
        ];
        names.sort_unstable();
        let codes = codes(&names, &[]);
        let masked: Vec<String> = names.iter().map(|name| codes.mask(name)).collect();
        assert!(masked.is_sorted(), "{masked:?}");
        assert_eq!(masked.iter().collect::<BTreeSet<_>>().len(), names.len());
        let of = |name: &str| codes.mask(name);
        assert!(of("node-7.rack-2").starts_with(&of("node-7")));
        assert_eq!(of("ab-1").strip_prefix(&of("ab")), Some("-1"));
        assert_eq!((of("10"), of("node-7")), ("10".to_owned(), "node-7".to_owned()));
    }

    #[test]
    fn a_code_is_no_word_that_stays_and_can_be_read_back() {
        let texts: Vec<String> =
            (b'a'..=b'z').map(|letter| char::from(letter).to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let free = codes(&texts, &[]);
        let taken = free.mask("a");
        let codes = codes(&texts, &[&format!("gpu/{taken}")]);
        assert_ne!(codes.mask("a"), taken);
        for (code, word) in codes.meanings() {
            assert_eq!(codes.mask(word), *code);
            assert_eq!(
                codes.reveal(&format!("`{code}-1` [{code}]")),
                format!("`{word}-1` [{word}]")
            );
        }
    }

    #[test]
    fn many_words_have_as_many_codes() {
        let names: Vec<String> =
            (0..9000).map(|number| spell("", number, 3).to_uppercase()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let names: BTreeSet<&str> = names.into_iter().take(8000).collect();
        let all: Vec<&str> = names.iter().copied().collect();
        assert_eq!(codes(&all, &[]).meanings().len(), all.len());
    }
}
