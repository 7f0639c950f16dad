//! JSON: objects one after the other (a single one, lines, or simply concatenated) and lists of any
//! size. What says first what it is, as nearly all do, is read into its type at once. Where that does
//! not go well a scan finds where the object ends and what it is, so that it alone is looked at again
//! and the others survive it.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

use super::json_scan::{Broken, Head, Outline, Scan};
use super::once::{Once, Text as Borrowed};
use super::shape::Shape;
use super::tree::{Node, Place, Step, TreeError};
use super::watch::Event;
use super::{
    ListType, Reader, broken, is_list, is_manifest, is_status, json_tree, notice, problem,
    read_tree,
};
use crate::object::Object;

/// Whether a text is JSON: an object that begins with a key in quotes, or a list of such.
pub(super) fn looks_like_json(bytes: &[u8]) -> bool {
    let mut visible = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
    match visible.next() {
        Some(b'{') => matches!(visible.next(), Some(b'"' | b'}')),
        Some(b'[') => matches!(visible.next(), Some(b'{' | b']')),
        Some(_) | None => false,
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
        let passed = bytes.get(self.at..offset).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', passed).count();
        if let Some(last) = memchr::memrchr(b'\n', passed) {
            self.line_start = self.at + last + 1;
        }
        self.at = self.at.max(offset);
        let column = problem::column(bytes, self.line_start, offset);
        Place { line: problem::narrow(self.line), column }
    }
}

/// What a list says of its items.
struct Listed {
    said: ListType,
    /// Where the list's object begins, if it may say more behind its items.
    unseen: Option<usize>,
}

impl Listed {
    fn said(said: ListType) -> Self {
        Self { said, unseen: None }
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
            b'[' => Some(match self.items(at, &mut Listed::said(ListType::default())) {
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
                let line = notice::line(self.bytes.get(at..).unwrap_or_default());
                let place = self.reader.report.place(at);
                if self.reader.notice(line, place) {
                    return Some(at + line.len());
                }
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
        if let Some(end) = self.at_once(start, &mut Listed::said(ListType::default())) {
            return end;
        }
        if let Some(end) = self.list_at_once(start) {
            return end;
        }
        let mut outline = Outline::default();
        let scanned = self.scan(start).outline(start, &mut outline);
        let kind = outline.kind.clone().and_then(|range| self.text(range));
        let list = kind.as_deref().is_none_or(is_list);
        if let Some(items) = outline.items.filter(|_| list) {
            let mut list = Listed::said(self.list_type(&outline));
            return match (self.items(items, &mut list), scanned) {
                (Ok(_), Ok(())) => {
                    self.said_twice(&outline);
                    outline.end
                }
                (Ok(end), Err(broken)) => {
                    self.syntax(broken);
                    self.resume(start, end)
                }
                (Err(broken), Ok(()) | Err(_)) => self.resume(start, broken),
            };
        }
        match scanned {
            Ok(()) if list && outline.no_items => outline.end,
            Ok(()) if self.event(start, &outline) => outline.end,
            Ok(()) => {
                self.item(start, &outline, &ListType::default());
                outline.end
            }
            Err(broken) => self.broken_object(start, broken),
        }
    }

    /// Reads the event of a watch; false if the object is none.
    fn event(&mut self, start: usize, outline: &Outline) -> bool {
        if outline.kind.is_some() || outline.api_version.is_some() {
            return false;
        }
        let word = outline.event.clone().and_then(|range| self.text(range));
        let event = word.and_then(|word| Event::find(&word));
        let Some((event, object)) = event.zip(outline.object) else { return false };
        match event {
            Event::Exists => self.event_object(object),
            Event::Gone => {
                self.reader.is_gone = true;
                self.event_object(object);
                self.reader.is_gone = false;
            }
            Event::Bookmark => {}
            Event::Error => {
                let place = self.lines.place(self.bytes, start);
                let bytes = self.bytes.get(start..outline.end).unwrap_or_default();
                let tree = json_tree::read(bytes, place);
                let why = tree.as_ref().and_then(|tree| tree.get("object")?.get("message"));
                self.reader.watch_error(place, why.and_then(Node::as_str));
            }
        }
        true
    }

    /// Reads the object of an event, whose brackets are whole.
    fn event_object(&mut self, start: usize) {
        if self.at_once(start, &mut Listed::said(ListType::default())).is_some() {
            return;
        }
        let mut outline = Outline::default();
        match self.scan(start).outline(start, &mut outline) {
            Ok(()) => self.item(start, &outline, &ListType::default()),
            Err(broken) => self.syntax(broken),
        }
    }

    /// Reads a list without looking at what stands behind its items: where it has said that it is
    /// one, or where the first item says what it is itself. Gives where to go on, and none where
    /// nothing was read.
    fn list_at_once(&mut self, start: usize) -> Option<usize> {
        let mut outline = Outline::default();
        let items = self.scan(start).until_items(&mut outline).ok()??;
        let list = self.list_type(&outline);
        let kind = outline.kind.clone();
        let unseen = match kind.and_then(|range| self.text(range)) {
            Some(kind) if is_list(&kind) => None,
            Some(_) => return None,
            None => {
                let mut first = self.scan(items + 1);
                first.peek();
                first.head()?.kind?;
                Some(start)
            }
        };
        let end = match self.items(items, &mut Listed { said: list, unseen }) {
            Ok(end) => end,
            Err(broken) => return Some(self.resume(start, broken)),
        };
        match self.scan(end).outline(start, &mut outline) {
            Ok(()) => {
                self.said_twice(&outline);
                Some(outline.end)
            }
            Err(broken) => {
                self.syntax(broken);
                Some(self.resume(start, end))
            }
        }
    }

    /// What an object says of its items, if it is a list.
    fn list_type(&self, outline: &Outline) -> ListType {
        let text = |range: &Option<Range<usize>>| range.clone().and_then(|range| self.text(range));
        let (api_version, kind) = (text(&outline.api_version), text(&outline.kind));
        ListType::new(api_version.as_deref(), kind.as_deref())
    }

    /// Whether an object says twice what it is, which is a problem then.
    fn said_twice(&mut self, outline: &Outline) -> bool {
        if let Some((key, at)) = outline.again {
            let place = self.reader.report.place(at);
            let path = [Step::Key(key.into())];
            self.reader.problem(place, &path, None, super::TWICE.to_owned());
        }
        outline.again.is_some()
    }

    /// Reads an object that says what it is before all else, and hands it out; gives its end. None
    /// where it must be looked at closely, and nothing was read.
    fn at_once(&mut self, start: usize, list: &mut Listed) -> Option<usize> {
        let head = self.scan(start).head()?;
        self.see(list, head);
        let api_version = head.api_version.or(list.said.api_version.as_deref())?;
        let shape = Shape::find(api_version, head.kind.or(list.said.kind.as_deref())?)?;
        let bytes = self.bytes.get(start..)?;
        let mut from = serde_json::Deserializer::from_slice(bytes);
        let object = shape.read(Once { from: &mut from, fields: head.fields() }).ok()?;
        let length = from.into_iter::<IgnoredAny>().byte_offset();
        let place = self.lines.place(self.bytes, start);
        let bytes = bytes.get(..length).unwrap_or_default();
        self.object(object, place, || json_tree::read(bytes, place));
        Some(start + length)
    }

    /// Hands out an object, or what of a manifest is not known.
    fn object(&mut self, object: Object, place: Place, tree: impl Fn() -> Option<Node>) {
        if is_manifest(&object)
            && let Some(tree) = tree()
            && self.reader.misspelt(&object, &tree)
        {
            return;
        }
        self.reader.object(object, place, tree);
    }

    /// Looks behind the items of a list where one of them leaves it to the list to say what it is.
    fn see(&self, list: &mut Listed, head: Head<'_>) {
        if head.kind.is_some() && head.api_version.is_some() {
            return;
        }
        if let Some(start) = list.unseen.take() {
            let mut outline = Outline::default();
            // What it says before it breaks off counts.
            let (Ok(()) | Err(_)) = self.scan(start).outline(start, &mut outline);
            list.said = self.list_type(&outline);
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
    fn items(&mut self, start: usize, list: &mut Listed) -> Result<usize, usize> {
        let mut at = start + 1;
        loop {
            let mut scan = self.scan(at);
            let first = scan.peek();
            at = scan.at;
            match first {
                Some(b']') => return Ok(at + 1),
                Some(b'{') => at = self.list_item(at, list)?,
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

    /// Reads an item of a list; gives its end, or where the list breaks off.
    fn list_item(&mut self, at: usize, list: &mut Listed) -> Result<usize, usize> {
        if let Some(end) = self.at_once(at, list) {
            return Ok(end);
        }
        let mut outline = Outline::default();
        if let Err(broken) = self.scan(at).outline(at, &mut outline) {
            return self.broken_item(at, broken);
        }
        self.see(list, Head::default());
        self.item(at, &outline, &list.said);
        Ok(outline.end)
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
        serde_json::from_slice::<Borrowed<'_>>(self.bytes.get(range)?).ok().map(|text| text.0)
    }

    /// Reads one object.
    fn item(&mut self, start: usize, outline: &Outline, list: &ListType) {
        if self.said_twice(outline) {
            return;
        }
        let place = self.lines.place(self.bytes, start);
        let text = |range: &Option<Range<usize>>| {
            range.clone().and_then(|range| self.text(range)).map(Cow::into_owned)
        };
        let (api_version, kind) = (text(&outline.api_version), text(&outline.kind));
        if let Some(items) = outline.items.filter(|_| kind.as_deref().is_some_and(is_list)) {
            let list = ListType::new(api_version.as_deref(), kind.as_deref());
            // The outline is whole, and so are the items: their end is known, wherever they break.
            let (Ok(_) | Err(_)) = self.items(items, &mut Listed::said(list));
            return;
        }
        if is_status(api_version.as_deref(), kind.as_deref()) {
            let tree =
                json_tree::read(self.bytes.get(start..outline.end).unwrap_or_default(), place);
            if tree.is_some_and(|tree| self.reader.refusal(&tree)) {
                return;
            }
        }
        let shape = self.reader.shape(api_version.as_deref(), kind.as_deref(), list, place);
        let Some(shape) = shape else { return };
        let bytes = self.bytes.get(start..outline.end).unwrap_or_default();
        let tree = || json_tree::read(bytes, place);
        match shape.read(&mut serde_json::Deserializer::from_slice(bytes)) {
            Ok(object) => self.object(object, place, tree),
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
        let place = self.reader.report.place(self.offset(start, error));
        let message = broken::of_json(&error.to_string());
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
