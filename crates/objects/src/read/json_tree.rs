//! A JSON object as a tree with places: read only to say where an error is, never on the way of
//! objects that are fine.

use super::problem;
use super::tree::{Node, Place, Value};

/// How deep values may be nested, as in the scan before.
const DEPTH: usize = 128;

/// Reads one value; none if the text is not JSON.
pub(super) fn read(bytes: &[u8], start: Place) -> Option<Node> {
    let mut parser = Parser { bytes, at: 0, line: start.line, line_start: 0, first: start };
    let node = parser.value(0)?;
    Some(node)
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
    /// The place of the first byte.
    first: Place,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at).copied() {
            match byte {
                b'\n' => {
                    self.line = self.line.saturating_add(1);
                    self.line_start = self.at + 1;
                }
                b' ' | b'\r' | b'\t' => {}
                _ => return Some(byte),
            }
            self.at += 1;
        }
        None
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.at += 1)
    }

    fn place(&self) -> Place {
        let column = problem::column(self.bytes, self.line_start, self.at);
        if self.line == self.first.line {
            let column = self.first.column.saturating_add(column).saturating_sub(1);
            return Place { line: self.line, column };
        }
        Place { line: self.line, column }
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        if depth > DEPTH {
            return None;
        }
        let first = self.peek()?;
        let place = self.place();
        let value = match first {
            b'{' => self.map(depth)?,
            b'[' => self.sequence(depth)?,
            b'"' => Value::String(self.string()?),
            _ => self.scalar()?,
        };
        Some(Node { place, value })
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        self.take(b'{')?;
        let mut entries = Vec::new();
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(Value::Map(entries));
        }
        loop {
            self.peek()?;
            let key = self.string()?;
            self.take(b':')?;
            entries.push((key, self.value(depth + 1)?));
            match self.peek()? {
                b',' => self.at += 1,
                _ => break,
            }
        }
        self.take(b'}')?;
        Some(Value::Map(entries))
    }

    fn sequence(&mut self, depth: usize) -> Option<Value> {
        self.take(b'[')?;
        let mut nodes = Vec::new();
        if self.peek()? == b']' {
            self.at += 1;
            return Some(Value::Sequence(nodes));
        }
        loop {
            nodes.push(self.value(depth + 1)?);
            match self.peek()? {
                b',' => self.at += 1,
                _ => break,
            }
        }
        self.take(b']')?;
        Some(Value::Sequence(nodes))
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        let mut escaped = true;
        loop {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => break,
                _ => {}
            }
        }
        serde_json::from_slice(self.bytes.get(start..self.at)?).ok()
    }

    fn scalar(&mut self) -> Option<Value> {
        let rest = self.bytes.get(self.at..)?;
        let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let end = rest.iter().position(|byte| !inside(byte)).unwrap_or(rest.len());
        let text = rest.get(..end)?;
        self.at += end;
        Some(match serde_json::from_slice(text).ok()? {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(value),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Value::Int(value),
                (None, Some(value)) => Value::Unsigned(value),
                (None, None) => Value::Float(number.as_f64()?),
            },
            serde_json::Value::String(_)
            | serde_json::Value::Array(_)
            | serde_json::Value::Object(_) => return None,
        })
    }
}
