//! One object as a tree with positions, and typed reading from it. The tree is strict like the API
//! server: the number 1 is no string. An error knows its path and its place in the file.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

/// A place in a file, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// A value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// A value as JSON knows it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    String(String),
    Sequence(Vec<Node>),
    /// In the order of the file; a key may occur twice, which is found when it is read.
    Map(Vec<(String, Node)>),
}

/// A step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(Cow<'static, str>),
    Index(usize),
}

/// Steps from the object to a value.
pub(super) type Path = Vec<Step>;

/// Writes a path as `spec.devices[3].attributes["example.com/model"]`.
pub(super) fn path_text(path: &[Step]) -> String {
    use fmt::Write;
    let mut text = String::new();
    for step in path {
        // Writing to a string does not fail.
        let _ = match step {
            Step::Index(index) => write!(text, "[{index}]"),
            Step::Key(key) => {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if !key.chars().all(plain) || key.is_empty() {
                    write!(text, "[{key:?}]")
                } else if text.is_empty() {
                    write!(text, "{key}")
                } else {
                    write!(text, ".{key}")
                }
            }
        };
    }
    text
}

/// Reads a path as [`path_text`] writes it. What it would not write ends the path.
pub(super) fn parse_path(text: &str) -> Path {
    let mut path = Path::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (step, after) = if let Some(quoted) = rest.strip_prefix("[\"") {
            let Some((key, after)) = quoted.split_once("\"]") else { return path };
            (Step::Key(key.to_owned().into()), after)
        } else if let Some(numbered) = rest.strip_prefix('[') {
            let Some((number, after)) = numbered.split_once(']') else { return path };
            let Ok(index) = number.parse() else { return path };
            (Step::Index(index), after)
        } else {
            let key = rest.strip_prefix('.').unwrap_or(rest);
            let end = key.find(['.', '[']).unwrap_or(key.len());
            let (key, after) = key.split_at(end);
            if key.is_empty() {
                return path;
            }
            (Step::Key(key.to_owned().into()), after)
        };
        path.push(step);
        rest = after;
    }
    path
}

/// Why a tree is not the object that it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeError {
    pub(super) message: String,
    pub(super) place: Option<Place>,
    /// Steps in reverse while the error rises; see [`TreeError::path`].
    steps: Vec<Step>,
}

impl TreeError {
    /// The path from the object to the value.
    pub(super) fn path(&self) -> Path {
        self.steps.iter().rev().cloned().collect()
    }

    /// An error about the value at a path.
    pub(super) fn placed(message: String, place: Place, mut path: Path) -> Self {
        path.reverse();
        Self { message, place: Some(place), steps: path }
    }

    fn new(message: String) -> Self {
        Self { message, place: None, steps: Vec::new() }
    }

    /// The error as seen from the parent: where it is, if no deeper value knew, and one step more.
    fn at(mut self, place: Place, step: impl FnOnce() -> Step) -> Self {
        self.place.get_or_insert(place);
        self.steps.push(step());
        self
    }
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TreeError {}

impl de::Error for TreeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        // Our own types speak in sentences; the error of a time stamp is another crate's.
        if message.ends_with('.') {
            return Self::new(message);
        }
        Self::new(format!("This cannot be read: {message}."))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (found_text, expected) = (describe(found), expectation(expected));
        let is_bool = matches!(found, Unexpected::Bool(_));
        let is_number =
            matches!(found, Unexpected::Signed(_) | Unexpected::Unsigned(_) | Unexpected::Float(_));
        let hint = match expected.as_str() {
            "a string" if is_bool => {
                "; put it in quotes, for y, n, yes, no, on and off are truth values in YAML"
            }
            "a string" if is_number => "; put it in quotes",
            _ => "",
        };
        Self::new(format!("This is {found_text}, and {expected} is expected here{hint}."))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (found, expected) = (describe(found), expectation(expected));
        Self::new(format!("This is {found}, and {expected} is expected here."))
    }

    fn unknown_field(found: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.join(", ");
        Self::new(format!("The field `{found}` is not known here; the fields are {known}."))
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.join(", ");
        Self::new(format!("`{found}` is not known here; write one of {known}."))
    }
}

/// What was found, in words.
fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("the truth value {value}"),
        Unexpected::Signed(value) => format!("the integer {value}"),
        Unexpected::Unsigned(value) => format!("the integer {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Str(value) => format!("the string {value:?}"),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a map".to_owned(),
        Unexpected::Char(_)
        | Unexpected::Bytes(_)
        | Unexpected::NewtypeStruct
        | Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant
        | Unexpected::Other(_) => found.to_string(),
    }
}

/// What is expected, in words instead of Rust's types.
fn expectation(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    match text.as_str() {
        "i32" => "an integer of 32 bits".to_owned(),
        "i64" => "an integer of 64 bits".to_owned(),
        "u32" => "an integer of 32 bits that is not negative".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        other if other.starts_with("struct ") => "a map of fields".to_owned(),
        _ => text,
    }
}

impl Node {
    /// The value of a key; none if this is no map or has no such key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => {
                entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
            }
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Unsigned(_)
            | Value::Float(_)
            | Value::String(_)
            | Value::Sequence(_) => None,
        }
    }

    /// The text of a string.
    pub(super) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Unsigned(_)
            | Value::Float(_)
            | Value::Sequence(_)
            | Value::Map(_) => None,
        }
    }

    /// Moves the tree down by so many lines.
    pub(super) fn shift(&mut self, lines: usize) {
        if lines == 0 {
            return;
        }
        let down = u32::try_from(lines).unwrap_or(u32::MAX);
        self.place.line = self.place.line.saturating_add(down);
        match &mut self.value {
            Value::Map(entries) => entries.iter_mut().for_each(|(_, node)| node.shift(lines)),
            Value::Sequence(nodes) => nodes.iter_mut().for_each(|node| node.shift(lines)),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Unsigned(_)
            | Value::Float(_)
            | Value::String(_) => {}
        }
    }

    /// The place of the value at a path, or of the deepest value on the way to it.
    pub(super) fn locate(&self, path: &[Step]) -> Place {
        let mut node = self;
        for step in path {
            match node.step(step) {
                Some(next) => node = next,
                None => break,
            }
        }
        node.place
    }

    /// The value that a step leads to.
    pub(super) fn step(&self, step: &Step) -> Option<&Self> {
        match (step, &self.value) {
            (Step::Key(key), Value::Map(_)) => self.get(key),
            (Step::Index(index), Value::Sequence(nodes)) => nodes.get(*index),
            (Step::Key(_) | Step::Index(_), _) => None,
        }
    }

    /// A key that occurs twice in one map anywhere in the tree, with its path and place.
    pub(super) fn duplicate_key(&self) -> Option<(Path, Place)> {
        fn find(node: &Node, path: &mut Path) -> Option<Place> {
            match &node.value {
                Value::Map(entries) => {
                    let mut seen = std::collections::BTreeSet::new();
                    for (key, child) in entries {
                        path.push(Step::Key(key.clone().into()));
                        let place =
                            if seen.insert(key) { find(child, path) } else { Some(child.place) };
                        if place.is_some() {
                            return place;
                        }
                        path.pop();
                    }
                    None
                }
                Value::Sequence(nodes) => {
                    for (index, child) in nodes.iter().enumerate() {
                        path.push(Step::Index(index));
                        let place = find(child, path);
                        if place.is_some() {
                            return place;
                        }
                        path.pop();
                    }
                    None
                }
                Value::Null
                | Value::Bool(_)
                | Value::Int(_)
                | Value::Unsigned(_)
                | Value::Float(_)
                | Value::String(_) => None,
            }
        }
        let mut path = Path::new();
        find(self, &mut path).map(|place| (path, place))
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = TreeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => visitor.visit_i64(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Sequence(nodes) => visitor.visit_seq(Sequence { nodes, index: 0 }),
            Value::Map(entries) => visitor.visit_map(Entries { entries, next: None }),
        }
        .map_err(|mut error| {
            error.place.get_or_insert(self.place);
            error
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        if self.value == Value::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TreeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TreeError> {
        match self.as_str() {
            Some(word) => visitor.visit_enum(Word(word)),
            None => self.deserialize_any(visitor),
        }
        .map_err(|mut error| {
            error.place.get_or_insert(self.place);
            error
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

/// The items of a list.
struct Sequence<'de> {
    nodes: &'de [Node],
    index: usize,
}

impl<'de> SeqAccess<'de> for Sequence<'de> {
    type Error = TreeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, TreeError> {
        let index = self.index;
        let Some(node) = self.nodes.get(index) else { return Ok(None) };
        self.index += 1;
        seed.deserialize(node)
            .map(Some)
            .map_err(|error| error.at(node.place, || Step::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.nodes.len().saturating_sub(self.index))
    }
}

/// The entries of a map.
struct Entries<'de> {
    entries: &'de [(String, Node)],
    next: Option<&'de (String, Node)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = TreeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, TreeError> {
        let Some((entry, rest)) = self.entries.split_first() else { return Ok(None) };
        self.entries = rest;
        self.next = Some(entry);
        let key: StrDeserializer<'de, TreeError> =
            de::IntoDeserializer::into_deserializer(entry.0.as_str());
        let step = || Step::Key(entry.0.clone().into());
        seed.deserialize(key).map(Some).map_err(|error| error.at(entry.1.place, step))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, TreeError> {
        let Some((key, node)) = self.next.take() else {
            return Err(de::Error::custom("A value was asked before its key."));
        };
        let step = || Step::Key(key.clone().into());
        seed.deserialize(node).map_err(|error| error.at(node.place, step))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// A word of an enum.
struct Word<'de>(&'de str);

impl<'de> EnumAccess<'de> for Word<'de> {
    type Error = TreeError;
    type Variant = Unit;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Unit), TreeError> {
        let word: StrDeserializer<'de, TreeError> = de::IntoDeserializer::into_deserializer(self.0);
        Ok((seed.deserialize(word)?, Unit))
    }
}

/// What follows a word: nothing.
struct Unit;

impl<'de> VariantAccess<'de> for Unit {
    type Error = TreeError;

    fn unit_variant(self) -> Result<(), TreeError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, TreeError> {
        Err(de::Error::custom("A word has no value."))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, TreeError> {
        Err(de::Error::custom("A word has no values."))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, TreeError> {
        Err(de::Error::custom("A word has no fields."))
    }
}
