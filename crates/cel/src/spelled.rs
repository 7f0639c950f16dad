//! The texts that are written out in an expression, and the expression with others in their place.
//! Which text may be replaced, others know: here it is told in what place each stands, and whether
//! the expression only compares texts or takes them apart.

use crate::functions::strings::quoted;
use crate::lexer::{Token, TokenKind, lex};

/// Functions and macros to which a text is a whole: an expression of these and of comparisons for
/// equality answers alike when each text is replaced by another.
const WHOLE: [&str; 22] = [
    "all",
    "bind",
    "compareTo",
    "exists",
    "exists_one",
    "existsOne",
    "filter",
    "has",
    "hasValue",
    "includes",
    "isGreaterThan",
    "isLessThan",
    "isQuantity",
    "map",
    "none",
    "of",
    "ofNonZeroValue",
    "optFlatMap",
    "optMap",
    "orValue",
    "quantity",
    "value",
];

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In brackets behind a value, or asked for in a table: the name of an entry.
    Entry,
    /// Compared with `device.driver`.
    Driver,
    /// Elsewhere.
    Other,
}

/// An expression as it is written.
#[derive(Debug)]
pub struct Spelled<'a> {
    source: &'a str,
    tokens: Vec<Token>,
}

impl<'a> Spelled<'a> {
    /// None where a token is none that the language has.
    #[must_use]
    pub fn new(source: &'a str) -> Option<Self> {
        let (tokens, error) = lex(source);
        error.is_none().then_some(Self { source, tokens })
    }

    /// Whether texts are only compared for equality, so that it answers alike when equal texts are
    /// replaced by equal ones and others by others.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        (0..self.tokens.len()).all(|at| match &self.tokens[at].kind {
            TokenKind::Ident(name) => {
                !self.is(at + 1, "(") || WHOLE.contains(&name.as_str()) || name == "semver"
            }
            TokenKind::Symbol("+") | TokenKind::Bytes(_) => false,
            // Whether one text comes before another.
            TokenKind::Symbol("<" | "<=" | ">" | ">=") => {
                !self.is_text(at + 1) && !at.checked_sub(1).is_some_and(|at| self.is_text(at))
            }
            TokenKind::Quoted(_)
            | TokenKind::Symbol(_)
            | TokenKind::End
            | TokenKind::Int(_)
            | TokenKind::Uint(_)
            | TokenKind::Double(_)
            | TokenKind::Str(_)
            | TokenKind::Null
            | TokenKind::True
            | TokenKind::False
            | TokenKind::In => true,
        })
    }

    /// Each text that is written out, and where it stands.
    pub fn texts(&self) -> impl Iterator<Item = (Place, &str)> {
        self.tokens.iter().enumerate().filter_map(|(at, token)| match &token.kind {
            TokenKind::Str(text) => Some((self.place(at), text.as_str())),
            TokenKind::End
            | TokenKind::Ident(_)
            | TokenKind::Quoted(_)
            | TokenKind::Int(_)
            | TokenKind::Uint(_)
            | TokenKind::Double(_)
            | TokenKind::Bytes(_)
            | TokenKind::Null
            | TokenKind::True
            | TokenKind::False
            | TokenKind::In
            | TokenKind::Symbol(_) => None,
        })
    }

    /// The expression without its comments, and with another text where `other` gives one.
    pub fn with(&self, mut other: impl FnMut(Place, &str) -> Option<String>) -> String {
        let mut out = String::with_capacity(self.source.len());
        let mut end = 0;
        for (at, token) in self.tokens.iter().enumerate() {
            let (start, stop) = (token.start as usize, token.end as usize);
            out += &blank(self.source.get(end..start).unwrap_or_default());
            let new = if let TokenKind::Str(text) = &token.kind {
                other(self.place(at), text)
            } else {
                None
            };
            match new {
                Some(new) => out += &quoted(&new),
                None => out += self.source.get(start..stop).unwrap_or_default(),
            }
            end = stop;
        }
        out
    }

    fn place(&self, at: usize) -> Place {
        let before = |n: usize| at.checked_sub(n);
        let is_before = |n: usize, symbol: &str| before(n).is_some_and(|at| self.is(at, symbol));
        let indexed = before(2).is_some_and(|at| match &self.tokens[at].kind {
            TokenKind::Ident(_) | TokenKind::Quoted(_) => true,
            TokenKind::Symbol(symbol) => matches!(*symbol, ")" | "]" | "?"),
            _ => false,
        });
        let driver = |at: usize| self.name(at) == Some("driver");
        let equal = |at: usize| self.is(at, "==") || self.is(at, "!=");
        if is_before(1, "[") && indexed && self.is(at + 1, "]") || self.asks_for_entry(at) {
            Place::Entry
        } else if before(2).is_some_and(driver) && before(1).is_some_and(equal)
            || equal(at + 1) && self.name(at + 2) == Some("device") && driver(at + 4)
        {
            Place::Driver
        } else {
            Place::Other
        }
    }

    /// Whether a table is asked whether it has the text: `"a" in device.attributes["b"]`.
    fn asks_for_entry(&self, at: usize) -> bool {
        let in_device = self.tokens.get(at + 1).is_some_and(|t| t.kind == TokenKind::In)
            && self.name(at + 2) == Some("device")
            && self.is(at + 3, ".")
            && matches!(self.name(at + 4), Some("attributes" | "capacity"));
        let end = if self.is(at + 5, "[") { at + 8 } else { at + 5 };
        let closed = end == at + 5 || self.is_text(at + 6) && self.is(at + 7, "]");
        in_device && closed && !self.is(end, ".") && !self.is(end, "[")
    }

    fn is(&self, at: usize, symbol: &str) -> bool {
        self.tokens.get(at).is_some_and(|t| matches!(t.kind, TokenKind::Symbol(s) if s == symbol))
    }

    fn is_text(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| matches!(token.kind, TokenKind::Str(_)))
    }

    fn name(&self, at: usize) -> Option<&str> {
        let TokenKind::Ident(name) = &self.tokens.get(at)?.kind else { return None };
        Some(name)
    }
}

/// What stands between two tokens, its comments left out.
fn blank(text: &str) -> String {
    let line = |line: &str| match line.find("//") {
        None => line.to_owned(),
        Some(at) => {
            let end = if line.ends_with('\n') { "\n" } else { "" };
            format!("{}{end}", &line[..at])
        }
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_by_their_place_and_replaced_without_the_comments() {
        let source = "device.driver == 'd' && device.attributes['d'].a == \"x\\ny\" // who\n\
                      && 'b' in device.attributes['d'] && 'c' in device.attributes['d'].list";
        let spelled = Spelled::new(source).unwrap();
        assert!(spelled.is_plain());
        let places: Vec<_> = spelled.texts().collect();
        let expected = [
            (Place::Driver, "d"),
            (Place::Entry, "d"),
            (Place::Other, "x\ny"),
            (Place::Entry, "b"),
            (Place::Entry, "d"),
            (Place::Other, "c"),
            (Place::Entry, "d"),
        ];
        assert_eq!(places, expected);
        let other = |place, text: &str| (place == Place::Other).then(|| format!("{text}\""));
        assert_eq!(
            spelled.with(other),
            "device.driver == 'd' && device.attributes['d'].a == \"x\\ny\\\"\" \n\
             && 'b' in device.attributes['d'] && \"c\\\"\" in device.attributes['d'].list"
        );
    }

    #[test]
    fn an_expression_that_takes_texts_apart_is_not_plain() {
        for plain in ["a.b == 'x' || a.c in ['x', 'y']", "a.n > 3", "semver('1.2.3').major() < 1"] {
            let spelled = Spelled::new(plain).unwrap();
            assert_eq!(spelled.is_plain(), !plain.contains("major"), "{plain}");
        }
        for taken in ["a.b.startsWith('x')", "a.b == 'x' + 'y'", "a.b < 'x'", "size(a.b) == 1"] {
            assert!(!Spelled::new(taken).unwrap().is_plain(), "{taken}");
        }
        assert!(Spelled::new("'open").is_none());
    }
}
