//! JSON: objects one after the other (a single one, lines, or simply concatenated) and lists of any
//! size. A scan finds where each object ends and what it is; only then is it read into its type, so
//! that no more than one object is looked at, and the others survive a bad one.

use std::borrow::Cow;
use std::ops::Range;

use super::json_tree;
use super::shape::Shape;
use super::tree::{Node, Place, TreeError};
use super::{ListType, Reader, is_list, problem, read_tree};

/// How deep values may be nested.
const DEPTH: usize = 128;

/// Whether a text is JSON: an object that begins with a key in quotes, or a list of such.
pub(super) fn looks_like_json(bytes: &[u8]) -> bool {
    let mut visible = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
    match visible.next() {
        Some(b'{') => matches!(visible.next(), Some(b'"' | b'}')),
        Some(b'[') => matches!(visible.next(), Some(b'{' | b']')),
        Some(_) | None => false,
    }
}

/// What a scan over an object's own keys finds.
#[derive(Debug, Default)]
struct Outline {
    /// Behind the closing brace.
    end: usize,
    /// The value of `apiVersion`.
    api_version: Option<Range<usize>>,
    /// The value of `kind`.
    kind: Option<Range<usize>>,
    /// Where the list under `items` begins.
    items: Option<usize>,
    /// Whether `items` is null, as an empty list may be written.
    no_items: bool,
}

/// Why a scan ended early.
#[derive(Clone, Copy, Debug)]
struct Broken {
    at: usize,
    why: &'static str,
}

/// A place in the text that goes on forward.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at).copied() {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    fn broken(&self, why: &'static str) -> Broken {
        Broken { at: self.at, why }
    }

    /// Skips a string; the scan stands at its first quote.
    fn string(&mut self) -> Result<(), Broken> {
        let start = self.at;
        self.at += 1;
        while let Some(rest) = self.bytes.get(self.at..) {
            let special = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n'));
            match special.map(|step| (step, rest.get(step))) {
                Some((step, Some(b'"'))) => {
                    self.at += step + 1;
                    return Ok(());
                }
                // An escape does not carry a string over the end of its line either.
                Some((step, Some(b'\\'))) if rest.get(step + 1) != Some(&b'\n') => {
                    self.at += step + 2;
                }
                Some(_) | None => break,
            }
        }
        Err(Broken { at: start, why: "a string begins here and does not end on its line" })
    }

    /// Skips any value, looking only at strings and brackets.
    fn value(&mut self) -> Result<(), Broken> {
        let Some(first) = self.peek() else {
            return Err(self.broken("the text ends where a value is expected"));
        };
        match first {
            b'"' => self.string(),
            b'{' | b'[' => self.brackets(),
            b',' | b':' | b'}' | b']' => Err(self.broken("a value is expected here")),
            _ => {
                let rest = self.bytes.get(self.at..).unwrap_or_default();
                let ends = |byte: &u8| {
                    matches!(byte, b',' | b'}' | b']' | b':') || byte.is_ascii_whitespace()
                };
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
                Ok(())
            }
        }
    }

    /// Skips a list or an object by its brackets; the scan stands at the first.
    fn brackets(&mut self) -> Result<(), Broken> {
        let start = self.at;
        // One bit a level: whether it is an object.
        let (mut kinds, mut depth) = (0_u128, 0_usize);
        while let Some(byte) = self.bytes.get(self.at).copied() {
            match byte {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => {
                    if depth == DEPTH {
                        return Err(self.broken("values are nested more than 128 deep"));
                    }
                    kinds = kinds << 1 | u128::from(byte == b'{');
                    depth += 1;
                }
                b'}' | b']' => {
                    if (kinds & 1 == 1) != (byte == b'}') {
                        return Err(self.broken("this bracket closes what another kind opened"));
                    }
                    kinds >>= 1;
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Ok(());
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        Err(Broken { at: start, why: "a bracket opens here and is not closed" })
    }

    /// Goes over the keys of an object; the scan stands at its brace. What is found before an error
    /// is kept in `outline`.
    fn outline(&mut self, outline: &mut Outline) -> Result<(), Broken> {
        let start = self.at;
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            outline.end = self.at;
            return Ok(());
        }
        loop {
            match self.peek() {
                Some(b'"') => {}
                Some(_) => return Err(self.broken("a key in quotes is expected here")),
                None => {
                    return Err(Broken {
                        at: start,
                        why: "an object begins here and does not end",
                    });
                }
            }
            let key_start = self.at;
            self.string()?;
            let key = key_start..self.at;
            if self.peek() != Some(b':') {
                return Err(self.broken("a colon is expected here"));
            }
            self.at += 1;
            let first = self.peek();
            let value_start = self.at;
            let key = self.bytes.get(key).unwrap_or_default();
            if key == b"\"items\"" && first == Some(b'[') {
                outline.items = Some(value_start);
            }
            outline.no_items |= key == b"\"items\"" && first == Some(b'n');
            self.value()?;
            let value = Some(value_start..self.at);
            match key {
                b"\"apiVersion\"" => outline.api_version = value,
                b"\"kind\"" => outline.kind = value,
                _ => {}
            }
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    outline.end = self.at;
                    return Ok(());
                }
                Some(_) => return Err(self.broken("a comma or a closing brace is expected here")),
                None => {
                    return Err(Broken {
                        at: start,
                        why: "an object begins here and does not end",
                    });
                }
            }
        }
    }
}

/// Lines are counted as the reading goes on, each byte once.
struct Lines {
    at: usize,
    line: usize,
    line_start: usize,
}

impl Lines {
    fn place(&mut self, bytes: &[u8], offset: usize) -> Place {
        for (index, byte) in bytes.get(self.at..offset).unwrap_or_default().iter().enumerate() {
            if *byte == b'\n' {
                self.line += 1;
                self.line_start = self.at + index + 1;
            }
        }
        self.at = self.at.max(offset);
        let column = problem::column(bytes, self.line_start, offset);
        Place { line: problem::narrow(self.line), column }
    }
}

/// Reads a text from a byte on.
pub(super) fn read(reader: &mut Reader<'_>, bytes: &[u8], start: usize) {
    let mut lines = Lines { at: 0, line: 1, line_start: 0 };
    let mut text = Text { recovering: false, reader, bytes, lines: &mut lines };
    let mut at = start;
    while let Some(next) = text.top(at) {
        at = next;
    }
}

/// The text while it is read.
struct Text<'r, 'a, 'b> {
    /// Whether a list broke off, so that its closing brackets may stand about.
    recovering: bool,
    reader: &'r mut Reader<'a>,
    bytes: &'b [u8],
    lines: &'r mut Lines,
}

impl Text<'_, '_, '_> {
    fn scan(&self, at: usize) -> Scan<'_> {
        Scan { bytes: self.bytes, at }
    }

    fn syntax(&mut self, broken: Broken) {
        let place = self.reader.report.place(broken.at);
        let message = format!("This is not valid JSON: {}.", broken.why);
        self.reader.problem(place, &[], None, message);
    }

    /// Reads what stands at the top of the file; gives where to go on, none at the end.
    fn top(&mut self, at: usize) -> Option<usize> {
        let mut scan = self.scan(at);
        let first = scan.peek()?;
        let at = scan.at;
        match first {
            b'{' => Some(self.top_object(at)),
            b'[' => Some(match self.items(at, &ListType::default()) {
                Ok(end) => end,
                Err(broken) => self.resume(at, broken),
            }),
            b',' | b']' | b'}' if self.recovering => Some(at + 1),
            // A separator of documents, or of records (RFC 7464).
            b'-' if self.bytes.get(at..).is_some_and(|rest| rest.starts_with(b"---")) => {
                Some(at + 3)
            }
            0x1E => Some(at + 1),
            _ => {
                self.syntax(Broken { at, why: "an object is expected here" });
                Some(self.resume(at, at))
            }
        }
    }

    /// Where reading can go on after an error at a byte in what begins at `start`: the next line that
    /// begins with a brace. It may be the byte itself, where what is before it lacks its end.
    fn resume(&self, start: usize, at: usize) -> usize {
        let from = at.max(start + 1) - 1;
        let rest = self.bytes.get(from..).unwrap_or_default();
        let found = rest.windows(2).position(|pair| pair == b"\n{");
        found.map_or(self.bytes.len(), |step| from + step + 1)
    }

    fn top_object(&mut self, start: usize) -> usize {
        let mut outline = Outline::default();
        let scanned = self.scan(start).outline(&mut outline);
        let kind = outline.kind.clone().and_then(|range| self.text(range));
        let list = kind.as_deref().is_none_or(is_list);
        if let Some(items) = outline.items.filter(|_| list) {
            let api_version = outline.api_version.clone().and_then(|range| self.text(range));
            let list = ListType::new(api_version.as_deref(), kind.as_deref());
            return match (self.items(items, &list), scanned) {
                (Ok(_), Ok(())) => outline.end,
                (Ok(end), Err(broken)) => {
                    self.syntax(broken);
                    self.resume(start, end)
                }
                (Err(broken), Ok(()) | Err(_)) => self.resume(start, broken),
            };
        }
        match scanned {
            Ok(()) if list && outline.no_items => outline.end,
            Ok(()) => {
                self.item(start, &outline, &ListType::default());
                outline.end
            }
            Err(broken) => self.broken_object(start, broken),
        }
    }

    /// Hands out the error of an object; gives its end if its brackets at least are whole.
    fn broken_object(&mut self, start: usize, broken: Broken) -> usize {
        let mut scan = self.scan(start);
        let end = scan.value().ok().map(|()| scan.at);
        self.syntax(broken);
        end.unwrap_or_else(|| self.resume(start, broken.at))
    }

    /// Reads the items of a list that begins at a byte; gives its end, or where it breaks off.
    fn items(&mut self, start: usize, list: &ListType) -> Result<usize, usize> {
        let mut at = start + 1;
        loop {
            let mut scan = self.scan(at);
            let first = scan.peek();
            at = scan.at;
            match first {
                Some(b']') => return Ok(at + 1),
                Some(b'{') => {
                    let mut outline = Outline::default();
                    match self.scan(at).outline(&mut outline) {
                        Ok(()) => {
                            self.item(at, &outline, list);
                            at = outline.end;
                        }
                        Err(broken) => at = self.broken_item(at, broken)?,
                    }
                }
                Some(_) => {
                    let end = scan.value().map(|()| scan.at);
                    self.syntax(Broken { at, why: "an object is expected here" });
                    at = end.map_err(|broken| broken.at.max(at))?;
                }
                None => {
                    self.syntax(Broken { at: start, why: "a list begins here and does not end" });
                    return Err(at);
                }
            }
            at = self.separator(at)?;
        }
    }

    /// Goes over the comma behind an item.
    fn separator(&mut self, at: usize) -> Result<usize, usize> {
        let mut scan = self.scan(at);
        let next = scan.peek();
        let at = scan.at;
        match next {
            Some(b',') => Ok(at + 1),
            Some(b']') | None => Ok(at),
            Some(_) => {
                self.syntax(Broken { at, why: "a comma is expected here" });
                if next == Some(b'{') { Ok(at) } else { Err(at) }
            }
        }
    }

    /// Hands out the error of an item; gives its end, or where the list breaks off.
    fn broken_item(&mut self, start: usize, broken: Broken) -> Result<usize, usize> {
        let mut scan = self.scan(start);
        if scan.value().is_ok() {
            let end = scan.at;
            self.syntax(broken);
            return Ok(end);
        }
        self.recovering = true;
        let place = self.reader.report.place(broken.at);
        let message = format!(
            "This is not valid JSON: {}. The list is lost from here to the next line that begins \
             with a brace.",
            broken.why
        );
        self.reader.problem(place, &[], None, message);
        Err(start.max(broken.at))
    }

    /// The text of a string value.
    fn text(&self, range: Range<usize>) -> Option<Cow<'_, str>> {
        serde_json::from_slice::<BorrowedText<'_>>(self.bytes.get(range)?).ok().map(|text| text.0)
    }

    /// Reads one object.
    fn item(&mut self, start: usize, outline: &Outline, list: &ListType) {
        let place = self.lines.place(self.bytes, start);
        let text = |range: &Option<Range<usize>>| {
            range.clone().and_then(|range| self.text(range)).map(Cow::into_owned)
        };
        let (api_version, kind) = (text(&outline.api_version), text(&outline.kind));
        if let Some(items) = outline.items.filter(|_| kind.as_deref().is_some_and(is_list)) {
            let list = ListType::new(api_version.as_deref(), kind.as_deref());
            // The outline is whole, and so are the items: their end is known, wherever they break.
            let (Ok(_) | Err(_)) = self.items(items, &list);
            return;
        }
        let shape = self.reader.shape(api_version.as_deref(), kind.as_deref(), list, place);
        let Some(shape) = shape else { return };
        let bytes = self.bytes.get(start..outline.end).unwrap_or_default();
        let tree = || json_tree::read(bytes, place);
        match shape.read(&mut serde_json::Deserializer::from_slice(bytes)) {
            Ok(object) => self.reader.object(object, place, tree),
            Err(error) => self.item_error(shape, tree(), start, &error),
        }
    }

    /// Says why an object cannot be read: by its tree, which knows paths, if there is one.
    fn item_error(
        &mut self,
        shape: Shape,
        tree: Option<Node>,
        start: usize,
        error: &serde_json::Error,
    ) {
        let found: Option<(&Node, TreeError)> =
            tree.as_ref().and_then(|tree| Some((tree, read_tree(shape, tree).err()?)));
        if let Some((tree, error)) = found {
            return self.reader.tree_error(shape.kind(), tree, &error);
        }
        let text = error.to_string();
        let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
        let place = self.reader.report.place(self.offset(start, error));
        let message = format!("This is not valid JSON: {text}.");
        self.reader.problem(place, &[], None, message);
    }

    /// The byte that an error means, which counts from the start of the object.
    fn offset(&self, start: usize, error: &serde_json::Error) -> usize {
        let bytes = self.bytes.get(start..).unwrap_or_default();
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let line = match error.line().checked_sub(2) {
            Some(skipped) => ends.map(|(index, _)| index + 1).nth(skipped).unwrap_or(0),
            None => 0,
        };
        (start + line + error.column().saturating_sub(1)).min(self.bytes.len())
    }
}

/// A string without a copy where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);
