//! YAML: documents one after the other. Each is parsed on its own, so that a syntax error costs one
//! document. The items of a list are handed out as they are parsed.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::options::{AliasLimits, DuplicateKeyPolicy};
use serde_saphyr::{Budget, Error, Options, Spanned};

use super::tree::{Node, Place, Value};
use super::{ListType, Reader, broken, is_list, notice, problem};

/// What serde names, in our words: ``integer `42` `` is the integer 42.
fn describe(unexpected: &str) -> String {
    match unexpected.split_once(" `") {
        Some((kind, value)) => {
            let kind = match kind {
                "boolean" => "truth value",
                "floating point" => "number",
                kind => kind,
            };
            format!("the {kind} {}", value.trim_end_matches('`'))
        }
        None => match unexpected {
            "sequence" => "a list".to_owned(),
            "unit value" => "no value".to_owned(),
            "map" => "a map".to_owned(),
            text => format!("the {text}"),
        },
    }
}

/// Reads a text from a byte on.
pub(super) fn read(reader: &mut Reader<'_>, bytes: &[u8], start: usize) {
    let documents = Documents { bytes, at: start, line: 0 };
    for Document { range, line } in documents {
        let text = bytes.get(range.clone()).unwrap_or_default();
        match std::str::from_utf8(text) {
            Ok(text) => {
                let text = without_notices(reader, text, range.start);
                if !is_empty(&text) {
                    read_document(reader, &text, line);
                }
            }
            Err(error) => {
                let place = reader.report.place(range.start + error.valid_up_to());
                let message = "This byte is not UTF-8; the document cannot be read.".to_owned();
                reader.problem(place, &[], None, message);
            }
        }
    }
}

/// A document whose lines are empty where kubectl said something; `start` is where it begins.
fn without_notices<'t>(reader: &mut Reader<'_>, text: &'t str, start: usize) -> Cow<'t, str> {
    if !text.lines().any(|line| notice::is_notice(line.as_bytes())) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut at = start;
    for line in text.split_inclusive('\n') {
        let place = reader.report.place(at);
        at += line.len();
        kept.push_str(if reader.notice(line.as_bytes(), place) { "\n" } else { line });
    }
    Cow::Owned(kept)
}

/// A document and how many lines come before it.
struct Document {
    range: Range<usize>,
    line: usize,
}

/// The documents of a text: `---` and `...` at the start of a line end one, whatever surrounds them.
struct Documents<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl Iterator for Documents<'_> {
    type Item = Document;

    fn next(&mut self) -> Option<Document> {
        let (start, first_line) = (self.at, self.line);
        if start >= self.bytes.len() {
            return None;
        }
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            let marker = is_marker(rest);
            // The marker at the very start opens this document; any later one ends it.
            if marker == Some(Marker::Start) && self.at > start {
                break;
            }
            let length =
                rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
            self.at += length;
            self.line += 1;
            if marker == Some(Marker::End) {
                break;
            }
        }
        Some(Document { range: start..self.at, line: first_line })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Marker {
    Start,
    End,
}

fn is_marker(line: &[u8]) -> Option<Marker> {
    let marker = match line.get(..3)? {
        b"---" => Marker::Start,
        b"..." => Marker::End,
        _ => return None,
    };
    matches!(line.get(3), None | Some(b' ' | b'\t' | b'\r' | b'\n')).then_some(marker)
}

/// Whether a document holds nothing but comments, directives and markers.
fn is_empty(text: &str) -> bool {
    text.lines().all(|line| {
        let line = line.trim();
        line.is_empty() || line.starts_with(['#', '%']) || matches!(line, "---" | "...")
    })
}

/// How deep values may be nested. Reading goes down with them, and the smallest stack that a thread
/// is given (2 MiB) must do; schemas of custom resources need about 40.
const DEPTH: usize = 48;

/// The parser's settings for a document of a size. What a text may cost grows with the text: the
/// parser's own limits would refuse a large dump, and none would let a small text explode.
fn options(size: usize) -> Options {
    let most = size.saturating_add(1024);
    let replayed = size.saturating_mul(4).saturating_add(10_000).min(1_000_000);
    let mut budget = Budget::default();
    budget.max_depth = DEPTH;
    budget.flow_nesting_limit = DEPTH;
    budget.max_events = most.saturating_mul(2).saturating_add(replayed);
    budget.max_nodes = most.saturating_add(replayed);
    budget.max_total_scalar_bytes = most.saturating_mul(8);
    budget.max_recorded_anchor_events = most;
    budget.max_recorded_anchor_bytes = most;
    budget.max_total_comment_bytes = most;
    budget.max_buffered_comment_events = most;
    let mut aliases = AliasLimits::default();
    aliases.max_total_replayed_events = replayed;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.alias_limits = aliases;
    // A repeated key is found in the tree, so that it costs one object and not the document.
    options.duplicate_keys = DuplicateKeyPolicy::PassThrough;
    // The API server's tools read YAML 1.1: 010 is eight.
    options.legacy_octal_numbers = true;
    options.emit_comments = false;
    options.with_snippet = false;
    options
}

fn read_document(reader: &mut Reader<'_>, text: &str, lines_before: usize) {
    let mut top = Top { reader, lines_before };
    let parsed = serde_saphyr::with_deserializer_from_str_with_options(
        text,
        options(text.len()),
        |deserializer| deserializer.deserialize_any(&mut top),
    );
    match parsed {
        Ok(node) => {
            if let Some(node) = node {
                top.reader.tree_object(&node, &ListType::default());
            }
        }
        Err(error) => top.syntax(&error),
    }
}

/// Reads a document: gives its object, or none if it was a list whose items are handed out.
struct Top<'r, 'a> {
    reader: &'r mut Reader<'a>,
    lines_before: usize,
}

impl Top<'_, '_> {
    fn syntax(&mut self, error: &Error) {
        let location = error.location();
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let (line, column) =
            location.map_or((1, 1), |at| (number(at.line()).max(1), number(at.column()).max(1)));
        let place = Place {
            line: problem::narrow(self.lines_before.saturating_add(line)),
            column: problem::narrow(column),
        };
        self.reader.problem(place, &[], None, sentence(error));
    }

    fn place(&self, place: Place) -> Place {
        Place { line: place.line.saturating_add(problem::narrow(self.lines_before)), ..place }
    }
}

/// The parser's message as a sentence.
fn sentence(error: &Error) -> String {
    let mut error = error.without_snippet();
    while let Error::AliasError { error: inner, .. } = error {
        error = inner;
    }
    let costly = matches!(
        error,
        Error::Budget { .. }
            | Error::AliasReplayLimitExceeded { .. }
            | Error::AliasExpansionLimitExceeded { .. }
            | Error::AliasReplayStackDepthExceeded { .. }
    );
    if let Error::SerdeInvalidType { unexpected, expected, .. } = error {
        let found = describe(&unexpected.to_string());
        return format!("This is {found}, and {expected} is expected here.");
    }
    if let Error::NonFiniteFloat { value, .. } = error {
        return format!("The number {value} is not finite; quantities and counts are.");
    }
    let text = if let Error::Message { msg, .. } = error { msg.clone() } else { error.to_string() };
    let text = text.split(" at line ").next().unwrap_or_default().trim();
    if costly || text == "recursion limit exceeded" {
        return "This document costs more to read than its size allows (aliases that multiply, or \
                values nested more than 48 deep), so it is not read."
            .to_owned();
    }
    broken::of_yaml(text)
}

impl<'de> Visitor<'de> for &mut Top<'_, '_> {
    type Value = Option<Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Option<Node>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Option<Node>, A::Error> {
        let list = ListType::default();
        let mut untyped = Vec::new();
        Items { top: &mut *self, list: &list, untyped: &mut untyped }.visit_seq(items)?;
        for item in &untyped {
            self.reader.tree_object(item, &list);
        }
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Node>, A::Error> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        let mut untyped = Vec::new();
        let mut is_list_of_items = false;
        let mut start = None;
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            start.get_or_insert_with(|| self.place(place_of(&key)));
            let text = |name: &str| {
                let entry = entries.iter().find(|(key, _)| key == name);
                entry.and_then(|(_, node)| node.as_str())
            };
            if key.value == "items" && text("kind").is_none_or(is_list) {
                let list = ListType::new(text("apiVersion"), text("kind"));
                map.next_value_seed(Items { top: &mut *self, list: &list, untyped: &mut untyped })?;
                is_list_of_items = true;
                continue;
            }
            let Placed(mut node) = map.next_value()?;
            node.shift(self.lines_before);
            entries.push((key.value, node));
        }
        let place =
            start.unwrap_or(Place { line: problem::narrow(self.lines_before + 1), column: 1 });
        let node = Node { place, value: Value::Map(entries) };
        if !is_list_of_items {
            return Ok(Some(node));
        }
        // kubectl writes the list's kind behind its items.
        let text = |name| node.get(name).and_then(Node::as_str);
        let list = ListType::new(text("apiVersion"), text("kind"));
        for item in &untyped {
            self.reader.tree_object(item, &list);
        }
        Ok(None)
    }
}

/// Reads the items of a list and hands them out. Those that do not say what they are, and whose list
/// has not said it yet, are kept in `untyped`.
struct Items<'t, 'r, 'a> {
    top: &'t mut Top<'r, 'a>,
    list: &'t ListType,
    untyped: &'t mut Vec<Node>,
}

impl<'de> DeserializeSeed<'de> for Items<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects under `items`")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(Placed(mut node)) = items.next_element()? {
            node.shift(self.top.lines_before);
            if node.get("kind").is_none() && self.list.kind.is_none() {
                self.untyped.push(node);
            } else {
                self.top.reader.tree_object(&node, self.list);
            }
        }
        Ok(())
    }
}

/// Where a value begins in its document.
fn place_of<T>(spanned: &Spanned<T>) -> Place {
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Place { line: narrow(spanned.referenced.line()), column: narrow(spanned.referenced.column()) }
}

/// A value with its place in the document.
struct Placed(Node);

impl<'de> Deserialize<'de> for Placed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Plain>::deserialize(deserializer)?;
        let place = place_of(&spanned);
        Ok(Self(Node { place, value: spanned.value.0 }))
    }
}

/// A value without a place.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor).map(Self)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Unsigned(value), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(Placed(node)) = items.next_element()? {
            nodes.push(node);
        }
        Ok(Value::Sequence(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let Placed(node) = map.next_value()?;
            entries.push((key, node));
        }
        Ok(Value::Map(entries))
    }
}
