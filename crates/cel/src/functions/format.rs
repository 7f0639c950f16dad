//! `"%s and %d".format([…])`: the clauses, what they take, and, where the text is a constant and
//! the arguments are written out, whether they fit, before anything is evaluated.

use std::fmt::Write as _;

use super::strings::escape;
use super::{NO_OVERLOAD, Outcome, convert};
use crate::ast::{Ast, Kind, NodeId};
use crate::check::Checker;
use crate::cost::Meter;
use crate::error::EvalErrorKind;
use crate::types::Type;
use crate::value::{List, Map, Value};

/// Digits after the point where none are asked for.
const PRECISION: usize = 6;

/// Most digits that are made; no text of a device needs more, and zeros cost memory.
const MAX_PRECISION: usize = 10_000;

/// What a clause makes of its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clause {
    Text,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

/// A text with clauses, taken apart.
enum Piece<'t> {
    Plain(&'t str),
    Clause(Result<Clause, String>),
    /// A lone `%` at the end.
    End,
}

/// Takes a text apart, up to the first fault in it.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        pieces.push(Piece::Plain(&rest[..at]));
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            pieces.push(Piece::Plain("%"));
            rest = after;
            continue;
        }
        if rest.is_empty() {
            pieces.push(Piece::End);
            return pieces;
        }
        match clause(rest) {
            Ok((clause, after)) => {
                pieces.push(Piece::Clause(Ok(clause)));
                rest = after;
            }
            Err(message) => {
                let message = format!("could not parse formatting clause: {message}");
                pieces.push(Piece::Clause(Err(message)));
                return pieces;
            }
        }
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

/// The clause after its `%`, and what follows it.
fn clause(text: &str) -> Result<(Clause, &str), String> {
    let mut rest = text;
    let mut precision = PRECISION;
    if let Some(after) = text.strip_prefix('.') {
        let end = after.find(|c: char| !c.is_ascii_digit());
        let Some(end) = end else {
            return Err("error while parsing precision: could not find end of precision specifier"
                .to_owned());
        };
        precision = after[..end].parse().map_err(|_| {
            format!("error while parsing precision: {:?} is no number", &after[..end])
        })?;
        rest = &after[end..];
    }
    let letter = rest.chars().next().unwrap_or(' ');
    let clause = match letter {
        's' => Clause::Text,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision),
        'e' => Clause::Scientific(precision),
        'b' => Clause::Binary,
        'x' | 'X' => Clause::Hex { upper: letter == 'X' },
        'o' => Clause::Octal,
        // Upstream looks at one byte, which need not be a character.
        other => return Err(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((clause, &rest[1..]))
}

impl Clause {
    /// What it can be used on, for the fault of something else.
    fn misused(self, given: &str) -> String {
        let what = match self {
            Clause::Text => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
                 lists, types, durations, and timestamps"
            }
            Clause::Decimal => "decimal clause can only be used on integers",
            Clause::Fixed(_) => "fixed-point clause can only be used on doubles",
            Clause::Scientific(_) => "scientific clause can only be used on doubles",
            Clause::Binary => "only integers and bools can be formatted as binary",
            Clause::Hex { .. } => {
                "only integers, byte buffers, and strings can be formatted as hex"
            }
            Clause::Octal => "octal clause can only be used on integers",
        };
        format!("error during formatting: {what}, was given {given}")
    }

    fn takes(self, t: &Type) -> bool {
        let number = matches!(t, Type::Int | Type::Uint);
        match self {
            _ if *t == Type::Dyn => true,
            Clause::Text => {
                number
                    || matches!(
                        t,
                        Type::List(_)
                            | Type::Map(_)
                            | Type::Double
                            | Type::Bool
                            | Type::Str
                            | Type::Timestamp
                            | Type::Bytes
                            | Type::Duration
                            | Type::Meta(_)
                            | Type::Null
                    )
            }
            Clause::Decimal | Clause::Octal => number,
            Clause::Fixed(_) | Clause::Scientific(_) => matches!(t, Type::Double | Type::Str),
            Clause::Binary => number || *t == Type::Bool,
            Clause::Hex { .. } => number || matches!(t, Type::Str | Type::Bytes),
        }
    }
}

/// For each node, whether it stands somewhere inside a call of `format`: lists there may mix types.
pub(crate) fn arguments(ast: &Ast) -> Vec<bool> {
    let mut found = vec![false; ast.nodes.len()];
    // Nodes stand before those that they are part of.
    for (id, node) in ast.nodes.iter().enumerate().rev() {
        let call = matches!(&node.kind, Kind::Call { function, .. } if function == "format");
        if call || found[id] {
            node.kind.children(&mut |child| found[child as usize] = true);
        }
    }
    found
}

/// Holds the arguments of constant texts against their clauses.
pub(crate) fn check(checker: &mut Checker<'_>) {
    let ast = checker.ast();
    for (id, node) in ast.nodes.iter().enumerate() {
        let Kind::Call { target: Some(target), function, args } = &node.kind else { continue };
        let [argument] = args[..] else { continue };
        let target = *target;
        let (Kind::Str(text), Kind::List(elements)) =
            (&ast.node(target).kind, &ast.node(argument).kind)
        else {
            continue;
        };
        if function != "format" {
            continue;
        }
        let given: Vec<NodeId> = elements.iter().map(|element| element.value).collect();
        if let Err((at, message)) = fit(checker, id as NodeId, text, &given) {
            checker.bad_argument(at, message);
        }
    }
}

fn fit(
    checker: &Checker<'_>,
    call: NodeId,
    text: &str,
    given: &[NodeId],
) -> Result<(), (NodeId, String)> {
    let mut used = 0;
    for piece in pieces(text) {
        let clause = match piece {
            Piece::Plain(_) => continue,
            Piece::Clause(_) | Piece::End if used >= given.len() => {
                return Err((call, format!("index {used} out of range")));
            }
            Piece::End => return Err((call, "unexpected end of string".to_owned())),
            Piece::Clause(Err(message)) => return Err((call, message)),
            Piece::Clause(Ok(clause)) => clause,
        };
        let misused = misused(checker, clause, given[used]);
        if let Some(at) = misused {
            return Err((at, clause.misused(&runtime_name(checker.type_of(at)))));
        }
        used += 1;
    }
    if given.len() > used {
        let message = format!(
            "too many arguments supplied to string.format (expected {used}, got {})",
            given.len()
        );
        return Err((call, message));
    }
    Ok(())
}

/// The part of an argument that a clause can't take. Literals are looked into.
fn misused(checker: &Checker<'_>, clause: Clause, argument: NodeId) -> Option<NodeId> {
    if !clause.takes(checker.type_of(argument)) {
        return Some(argument);
    }
    if clause != Clause::Text {
        return None;
    }
    match &checker.ast().node(argument).kind {
        Kind::List(elements) => {
            elements.iter().find_map(|element| misused(checker, clause, element.value))
        }
        Kind::Map(entries) => entries.iter().find_map(|entry| {
            misused(checker, clause, entry.key).or_else(|| misused(checker, clause, entry.value))
        }),
        _ => None,
    }
}

/// The name of a type without its parts.
fn runtime_name(t: &Type) -> String {
    match t {
        Type::List(_) => "list".to_owned(),
        Type::Map(_) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        other => other.declared(),
    }
}

/// The call itself.
pub(crate) fn call<'a>(args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    let [Value::Str(text), Value::List(values)] = args else { return Err(NO_OVERLOAD) };
    meter.reserve_text(text.len())?;
    let mut writer = Writer { out: String::new(), meter };
    let mut used = 0;
    for piece in pieces(text) {
        let clause = match piece {
            Piece::Plain(plain) => {
                writer.push(plain)?;
                continue;
            }
            Piece::Clause(_) | Piece::End if used >= values.len() => {
                return super::failed(format!("index {used} out of range"));
            }
            Piece::End => return super::failed("unexpected end of string"),
            Piece::Clause(Err(message)) => return super::failed(message),
            Piece::Clause(Ok(clause)) => clause,
        };
        let value = values.get(used).ok_or(NO_OVERLOAD)?;
        writer.clause(clause, &value)?;
        used += 1;
    }
    Ok(Value::text(&writer.out))
}

/// A text that is made, with the fuel that it takes.
struct Writer<'m> {
    out: String,
    meter: &'m mut Meter,
}

type Written = Result<(), EvalErrorKind>;

impl Writer<'_> {
    fn push(&mut self, text: &str) -> Written {
        self.meter.reserve_text_growth(self.out.len(), text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn clause(&mut self, clause: Clause, value: &Value<'_>) -> Written {
        let made = match (clause, value) {
            (Clause::Text, value) => return self.text(value),
            (Clause::Decimal, Value::Int(i)) => i.to_string(),
            (Clause::Decimal, Value::Uint(u)) => u.to_string(),
            (Clause::Fixed(_) | Clause::Scientific(_), _) => {
                let Some(number) = number(value) else {
                    let given = value.type_name();
                    return super::failed(clause.misused(given));
                };
                match clause {
                    // Upstream keeps eight bits of it.
                    Clause::Fixed(precision) => fixed(number, precision % 256),
                    Clause::Scientific(precision) => scientific(number, self.precision(precision)?),
                    _ => return Err(NO_OVERLOAD),
                }
            }
            (Clause::Binary, Value::Int(i)) => signed(*i, |u| format!("{u:b}")),
            (Clause::Binary, Value::Uint(u)) => format!("{u:b}"),
            (Clause::Binary, Value::Bool(b)) => u8::from(*b).to_string(),
            (Clause::Octal, Value::Int(i)) => signed(*i, |u| format!("{u:o}")),
            (Clause::Octal, Value::Uint(u)) => format!("{u:o}"),
            (Clause::Hex { upper }, Value::Int(i)) => {
                cased(signed(*i, |u| format!("{u:x}")), upper)
            }
            (Clause::Hex { upper }, Value::Uint(u)) => cased(format!("{u:x}"), upper),
            (Clause::Hex { upper }, Value::Str(s)) => self.hex(s.as_bytes(), upper)?,
            (Clause::Hex { upper }, Value::Bytes(b)) => self.hex(b, upper)?,
            (_, value) => return super::failed(clause.misused(value.type_name())),
        };
        self.push(&made)
    }

    /// A number of signs that are made of nothing.
    fn precision(&mut self, digits: usize) -> Result<usize, EvalErrorKind> {
        if digits > MAX_PRECISION {
            return Err(EvalErrorKind::CostLimit);
        }
        self.meter.reserve_text(digits)?;
        Ok(digits)
    }

    fn hex(&mut self, bytes: &[u8], upper: bool) -> Result<String, EvalErrorKind> {
        self.meter.reserve_text(bytes.len().saturating_mul(2))?;
        let mut out = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            // Writing to a text cannot fail.
            let _ = write!(out, "{byte:02x}");
        }
        Ok(cased(out, upper))
    }

    /// A value as the clause `%s` has it.
    fn text(&mut self, value: &Value<'_>) -> Written {
        match value {
            Value::List(list) => self.list(list),
            Value::Map(map) => self.map(map),
            Value::Null => self.push("null"),
            Value::Type(name) => self.push(name),
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Bool(_)
            | Value::Str(_)
            | Value::Bytes(_)
            | Value::Duration(_)
            | Value::Timestamp(_) => match convert::string(std::slice::from_ref(value)) {
                Ok(Value::Str(text)) => self.push(&text),
                _ => super::failed("error during formatting: could not convert argument to string"),
            },
            other => super::failed(Clause::Text.misused(other.type_name())),
        }
    }

    /// A value inside a list or a map, where texts stand in quotes.
    fn inner(&mut self, value: &Value<'_>) -> Written {
        match value {
            Value::Str(text) => self.push(&quoted(text.as_bytes())),
            Value::Bytes(bytes) => {
                let text = quoted(bytes);
                self.push(&format!("b{text}"))
            }
            Value::Double(d) if d.is_finite() => self.push(&format!("{d:.PRECISION$}")),
            Value::Double(d) => {
                let text = if d.is_nan() {
                    "NaN"
                } else if *d > 0.0 {
                    "+Inf"
                } else {
                    "-Inf"
                };
                self.push(&format!("{text:?}"))
            }
            Value::Duration(_) | Value::Timestamp(_) => {
                let name =
                    if matches!(value, Value::Duration(_)) { "duration" } else { "timestamp" };
                match convert::string(std::slice::from_ref(value)) {
                    Ok(Value::Str(text)) => self.push(&format!("{name}({:?})", &*text)),
                    _ => Err(NO_OVERLOAD),
                }
            }
            Value::Quantity(..)
            | Value::Version(_)
            | Value::Optional(_)
            | Value::Device(_)
            | Value::Ip(_)
            | Value::Cidr(..)
            | Value::Url(_)
            | Value::Format(_) => super::failed(format!(
                "error during formatting: no formatting function for {}",
                value.type_name()
            )),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Type(_) => self.text(value),
        }
    }

    fn list(&mut self, list: &List<'_>) -> Written {
        self.push("[")?;
        for (at, element) in list.iter().enumerate() {
            if at > 0 {
                self.push(", ")?;
            }
            self.meter.reserve(1)?;
            self.inner(&element)?;
        }
        self.push("]")
    }

    /// Entries in the order of their keys' texts.
    fn map(&mut self, map: &Map<'_>) -> Written {
        let mut entries = Vec::new();
        for key in map.keys() {
            self.meter.reserve(1)?;
            let value = map.get(&key, self.meter).ok_or(NO_OVERLOAD)?;
            let before = std::mem::take(&mut self.out);
            match &key {
                Value::Str(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => {
                    self.inner(&key)?;
                }
                other => {
                    return super::failed(format!(
                        "error during formatting: no formatting function for map key of type {}",
                        other.type_name()
                    ));
                }
            }
            let name = std::mem::take(&mut self.out);
            self.inner(&value)?;
            entries.push((name, std::mem::replace(&mut self.out, before)));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        self.push("{")?;
        for (at, (key, value)) in entries.iter().enumerate() {
            let separator = if at > 0 { ", " } else { "" };
            self.push(&format!("{separator}{key}:{value}"))?;
        }
        self.push("}")
    }
}

fn signed(value: i64, show: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", show(value.unsigned_abs()))
}

fn cased(text: String, upper: bool) -> String {
    if upper { text.to_uppercase() } else { text }
}

/// A double, or one of the texts that stand for what no literal can write.
fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(d) => Some(*d),
        Value::Str(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// What is written for numbers that have no digits.
fn special(number: f64) -> Option<String> {
    let text = match number {
        _ if number.is_nan() => "NaN",
        f64::INFINITY => "∞",
        f64::NEG_INFINITY => "-∞",
        _ => return None,
    };
    Some(text.to_owned())
}

/// With a comma between each three digits, as in English.
fn fixed(number: f64, precision: usize) -> String {
    if let Some(text) = special(number) {
        return text;
    }
    let plain = format!("{:.precision$}", number.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut out = String::new();
    if number.is_sign_negative() {
        out.push('-');
    }
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// With the power of ten written out, as in English. Upstream takes the precision for a width.
fn scientific(number: f64, width: usize) -> String {
    let text = special(number).unwrap_or_else(|| {
        let plain = format!("{number:.PRECISION$e}");
        let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { "⁻" } else { "" };
        let power: String = format!("{:02}", exponent.abs())
            .bytes()
            .filter_map(|digit| SUPERSCRIPTS.get(usize::from(digit - b'0')))
            .collect();
        format!("{digits}×10{sign}{power}")
    });
    format!("{text:>width$}")
}

const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// A text in double quotes, with escapes for what can't be shown.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match escape(c) {
                Some(escape) => out.push_str(escape),
                // Writing to a text cannot fail, here and below.
                None if c < ' ' || c == '\x7f' => {
                    let _ = write!(out, "\\x{:02x}", u32::from(c));
                }
                None => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}
