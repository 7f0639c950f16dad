//! Regular expressions in RE2's dialect, as Kubernetes has them, on Rust's engine.
//!
//! The two agree in most of their syntax. What differs is rewritten in the text, or refused: `\d`,
//! `\s`, `\w` and `\b` know ASCII only, `\Q…\E` quotes, brackets nest in no class, a brace that
//! begins no count stands for itself. A compiled program is limited in size.

use regex::{Regex, RegexBuilder};

use super::signatures::Function;
use super::{NO_OVERLOAD, Outcome, failed};
use crate::cost::Meter;
use crate::error::EvalErrorKind;
use crate::value::Value;

/// Bytes of a compiled expression. RE2 as Kubernetes uses it refuses at a similar size.
const SIZE_LIMIT: usize = 256 << 10;

/// Nesting of groups in a pattern.
const NEST_LIMIT: u32 = 250;

/// Greatest count in a repetition.
const REPEAT_LIMIT: u32 = 1000;

/// Compiles a pattern, or says in a sentence why that cannot be.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let pattern = Rewriter::rewrite(pattern).map_err(|e| format!("error parsing regexp: {e}"))?;
    RegexBuilder::new(&pattern)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .nest_limit(NEST_LIMIT)
        .build()
        .map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or("it does not parse");
            format!("error parsing regexp: {}", last.trim_start_matches("error: "))
        })
}

/// A regular expression in RE2's dialect, for others than expressions.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Says in a sentence why it does not compile.
    pub fn new(pattern: &str) -> Result<Self, String> {
        compile(pattern).map(Self)
    }

    /// Whether it matches any part of a text.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Names of classes inside brackets.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Translates a pattern to the dialect of the engine.
struct Rewriter<'p> {
    rest: &'p str,
    out: String,
    /// Whether what was read last is a repetition, which cannot be repeated again.
    repeated: bool,
    /// How often the innermost of what was read last can be repeated by counts.
    last: u32,
    /// The greatest of these in the current group, the last, and in those around it.
    groups: Vec<u32>,
}

impl<'p> Rewriter<'p> {
    fn rewrite(pattern: &'p str) -> Result<String, String> {
        let mut rewriter = Rewriter {
            rest: pattern,
            out: String::new(),
            repeated: false,
            last: 1,
            groups: vec![1],
        };
        while let Some(c) = rewriter.next() {
            rewriter.item(c)?;
        }
        Ok(rewriter.out)
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn accept(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn item(&mut self, c: char) -> Result<(), String> {
        let repetition = match c {
            '*' | '+' | '?' => Some(c.to_string()),
            '{' => self.counts()?,
            _ => None,
        };
        if let Some(repetition) = repetition {
            if self.repeated {
                return Err("invalid nested repetition operator".to_owned());
            }
            self.out.push_str(&repetition);
            if self.accept("?") {
                self.out.push('?');
            }
            self.repeated = true;
            return Ok(());
        }
        self.repeated = false;
        self.last = 1;
        match c {
            ')' => {
                self.out.push(')');
                if self.groups.len() > 1 {
                    self.last = self.groups.pop().unwrap_or(1);
                }
                self.note();
            }
            '{' => self.out.push_str("\\{"),
            '}' => self.out.push_str("\\}"),
            '[' => self.class()?,
            '\\' => self.escape(false)?,
            '(' => self.group()?,
            _ => self.out.push(c),
        }
        Ok(())
    }

    /// Takes the count of what was read last into that of its group.
    fn note(&mut self) {
        if let Some(group) = self.groups.last_mut() {
            *group = (*group).max(self.last);
        }
    }

    /// `{2}`, `{2,}` or `{2,3}` after its brace; nothing if the brace stands for itself.
    fn counts(&mut self) -> Result<Option<String>, String> {
        let Some((inside, after)) = self.rest.split_once('}') else { return Ok(None) };
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        if !number(least) || !(most.is_empty() || number(most)) {
            return Ok(None);
        }
        let count = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
        let greatest = if most.is_empty() { count(least) } else { count(most) };
        // Counts multiply where they are nested.
        self.last = self.last.saturating_mul(greatest.max(1));
        if count(least) > REPEAT_LIMIT || self.last > REPEAT_LIMIT {
            return Err(format!("invalid repeat count: {{{inside}}}"));
        }
        self.note();
        self.rest = after;
        Ok(Some(format!("{{{inside}}}")))
    }

    /// What follows `(`: flags are limited to those that RE2 has.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        self.groups.push(1);
        if !self.rest.starts_with('?') {
            return Ok(());
        }
        // Nothing refers to a group by its name, and the engine takes fewer names.
        for open in ["?P<", "?<"] {
            let Some((name, after)) = self.rest.strip_prefix(open).and_then(|r| r.split_once('>'))
            else {
                continue;
            };
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(word) {
                return Err(format!("invalid named capture: ({open}{name}>"));
            }
            self.rest = after;
            return Ok(());
        }
        let end = self.rest.find([':', ')']).unwrap_or(self.rest.len());
        match self.rest[1..end].chars().find(|c| !"imsU-".contains(*c)) {
            Some(_) => Err(format!("invalid or unsupported Perl syntax: (?{}", &self.rest[1..end])),
            None => {
                self.out.push_str(&self.rest[..end]);
                self.rest = &self.rest[end..];
                Ok(())
            }
        }
    }

    /// A bracketed class after its bracket. In RE2 a bracket inside is a member, and so are the
    /// signs that the engine takes for operations on sets.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.accept("^") {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let named = if self.rest.starts_with("[:") { self.rest[2..].find(":]") } else { None };
            if let Some(length) = named {
                let name = &self.rest[2..2 + length];
                if !CLASSES.contains(&name.trim_start_matches('^')) {
                    return Err(format!("invalid character class range: [:{name}:]"));
                }
                self.out.push_str(&self.rest[..length + 4]);
                self.rest = &self.rest[length + 4..];
                first = false;
                continue;
            }
            match self.next() {
                None => return Err("missing closing ]".to_owned()),
                Some(']') if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                Some('\\') => self.escape(true)?,
                Some('-') if self.accept("-") => self.out.push_str("-\\-"),
                Some(c @ (']' | '[' | '&' | '~')) => self.out.extend(['\\', c]),
                Some(c) => self.out.push(c),
            }
            first = false;
        }
    }

    /// A code or a class by its name, whose braces are no count; `{^…}` turns a class round.
    fn named(&mut self, c: char) {
        let negated = c != 'x' && self.accept("{^");
        let letter = match (negated, c) {
            (true, 'p') => 'P',
            (true, _) => 'p',
            (false, c) => c,
        };
        self.out.extend(['\\', letter]);
        if negated || self.accept("{") {
            let (name, after) = self.rest.split_once('}').unwrap_or((self.rest, ""));
            self.out.push_str(&format!("{{{name}}}"));
            self.rest = after;
        }
    }

    /// An escape after its backslash.
    fn escape(&mut self, class: bool) -> Result<(), String> {
        let invalid = |c: char| Err(format!("invalid escape sequence: \\{c}"));
        let Some(c) = self.next() else {
            return Err("trailing backslash at end of expression".to_owned());
        };
        match c {
            'd' => self.out.push_str(if class { "0-9" } else { "[0-9]" }),
            'D' => self.out.push_str("[^0-9]"),
            's' => self.out.push_str(if class { "\\t\\n\\x0c\\r " } else { "[\\t\\n\\x0c\\r ]" }),
            'S' => self.out.push_str("[^\\t\\n\\x0c\\r ]"),
            'w' => self.out.push_str(if class { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            'b' | 'B' if !class => self.out.push_str(&format!("(?-u:\\{c})")),
            'Q' if !class => {
                let (quoted, after) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.rest = after;
                regex_syntax::escape_into(quoted, &mut self.out);
            }
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => self.out.extend(['\\', c]),
            'x' | 'p' | 'P' => self.named(c),
            'A' | 'z' if !class => self.out.extend(['\\', c]),
            '0'..='7' => {
                let octal = |c: char| c.is_digit(8);
                if c != '0' && !self.rest.starts_with(octal) {
                    return invalid(c);
                }
                let mut code = c.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    if let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(8)) {
                        self.next();
                        code = code * 8 + digit;
                    }
                }
                self.out.push_str(&format!("\\x{{{code:x}}}"));
            }
            _ if c.is_ascii_punctuation() => {
                regex_syntax::escape_into(c.encode_utf8(&mut [0; 4]), &mut self.out);
            }
            _ => return invalid(c),
        }
        Ok(())
    }
}

/// A call whose pattern is known only now.
pub(crate) fn dynamic<'a>(
    function: Function,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Outcome<'a> {
    let [text, Value::Str(pattern), rest @ ..] = args else { return Err(NO_OVERLOAD) };
    // Compiling takes far longer than its cost of one unit says.
    meter.reserve(10_000 + pattern.len() * 16)?;
    match compile(pattern) {
        Ok(regex) => apply(function, &regex, text, rest, meter),
        Err(message) => failed(message),
    }
}

/// A call with a compiled pattern.
pub(crate) fn apply<'a>(
    function: Function,
    regex: &Regex,
    text: &Value<'a>,
    rest: &[Value<'a>],
    meter: &mut Meter,
) -> Outcome<'a> {
    let Value::Str(text) = text else { return Err(NO_OVERLOAD) };
    match (function, rest) {
        (Function::Matches, []) => Ok(Value::Bool(regex.is_match(text))),
        (Function::Find, []) => Ok(Value::text(regex.find(text).map_or("", |m| m.as_str()))),
        (Function::FindAll, [] | [Value::Int(_)]) => {
            let limit = match rest {
                [Value::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            find_all(regex, text, limit, meter)
        }
        _ => Err(EvalErrorKind::NoSuchOverload),
    }
}

/// All matches that do not overlap. As in Go, an empty match next to the one before does not count.
fn find_all<'a>(regex: &Regex, text: &str, limit: usize, meter: &mut Meter) -> Outcome<'a> {
    let mut found = Vec::new();
    let mut previous_end = None;
    for m in regex.find_iter(text) {
        if found.len() >= limit {
            break;
        }
        let repeats = m.is_empty() && previous_end == Some(m.end());
        previous_end = Some(m.end());
        if !repeats {
            meter.reserve(1)?;
            found.push(Value::text(m.as_str()));
        }
    }
    Ok(Value::list(found))
}
