//! What is wrong, where, in words; and the lines of the file that are shown with it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use super::Spot;
use super::tree::Place;
use crate::object::ObjectRef;

/// Something that cannot be read, or that is read but looks wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whether the object is lost.
    pub severity: Severity,
    /// The object, if its kind is known; the name may be empty.
    pub object: Option<ObjectRef>,
    /// The file as it was named to [`super::read`].
    pub file: Arc<str>,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1 (in bytes far down very long lines).
    pub column: u32,
    /// The path of the field in the object, such as `spec.devices[3].capacity.memory.value`; empty
    /// where no field is meant.
    pub path: String,
    /// What is wrong and what to do, in whole sentences.
    pub message: String,
    /// The line itself, or the part of it around the column if it is long.
    pub text: String,
    /// Where the column is in `text`, in characters counted from 1.
    pub text_column: u32,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The object is dropped.
    Error,
    /// The object is used.
    Warning,
}

/// The file's name and text, and the lines in it once they are needed.
pub(super) struct Report<'a> {
    pub(super) file: Arc<str>,
    bytes: &'a [u8],
    line_starts: OnceCell<Vec<usize>>,
}

/// How much of a long line is shown, in bytes.
const SHOWN: usize = 160;

/// Up to this distance from the start of its line a column counts characters.
const COUNTED: usize = 4096;

impl<'a> Report<'a> {
    pub(super) fn new(file: &str, bytes: &'a [u8]) -> Self {
        Self { file: file.into(), bytes, line_starts: OnceCell::new() }
    }

    pub(super) fn problem(
        &self,
        severity: Severity,
        place: Place,
        path: String,
        object: Option<ObjectRef>,
        message: String,
    ) -> Problem {
        let (text, text_column) = self.excerpt(place);
        let (file, Place { line, column }) = (Arc::clone(&self.file), place);
        Problem { severity, object, file, line, column, path, message, text, text_column }
    }

    /// A place with its line.
    pub(super) fn spot(&self, place: Place) -> Spot {
        let (text, text_column) = self.excerpt(place);
        Spot { line: place.line, column: place.column, text, text_column }
    }

    /// The place of a byte.
    pub(super) fn place(&self, offset: usize) -> Place {
        let starts = self.line_starts();
        let line = starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|index| starts.get(index)).copied().unwrap_or(0);
        Place { line: narrow(line.max(1)), column: column(self.bytes, start, offset) }
    }

    fn line_starts(&self) -> &[usize] {
        self.line_starts.get_or_init(|| {
            let ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            std::iter::once(0).chain(ends.map(|(index, _)| index + 1)).collect()
        })
    }

    /// The line of a place, cut around the column, and the column in what is left.
    fn excerpt(&self, place: Place) -> (String, u32) {
        let starts = self.line_starts();
        let line = (place.line as usize).saturating_sub(1);
        let Some(start) = starts.get(line).copied() else { return (String::new(), 1) };
        let end = starts.get(line + 1).map_or(self.bytes.len(), |next| next - 1);
        let line = self.bytes.get(start..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let before = (place.column as usize).saturating_sub(1);
        if line.len() <= SHOWN {
            let text = String::from_utf8_lossy(line);
            let text = text.trim_start_matches('\u{FEFF}').to_owned();
            return (text, place.column);
        }
        let target = offset_of_column(line, before);
        let from = boundary(line, target.saturating_sub(SHOWN / 2));
        let to = boundary(line, (from + SHOWN).min(line.len()));
        let shown = line.get(from..to).unwrap_or_default();
        let column = column(line, from, target);
        (String::from_utf8_lossy(shown).into_owned(), column)
    }
}

/// The column of a byte in a line that begins at `start`.
pub(super) fn column(bytes: &[u8], start: usize, offset: usize) -> u32 {
    let before = bytes.get(start..offset).unwrap_or_default();
    if before.len() > COUNTED {
        return narrow(before.len() + 1);
    }
    let text: Cow<'_, str> = String::from_utf8_lossy(before);
    let marked = start == 0 && text.starts_with('\u{FEFF}');
    narrow(text.chars().count() + 1 - usize::from(marked))
}

/// The byte at which a column begins, the reverse of [`column`].
fn offset_of_column(line: &[u8], before: usize) -> usize {
    if before >= COUNTED {
        return before.min(line.len());
    }
    let near = line.get(..COUNTED.min(line.len())).unwrap_or_default();
    let starts = near.iter().enumerate().filter(|(_, byte)| !is_continuation(**byte));
    let found = starts.map(|(index, _)| index).nth(before);
    found.unwrap_or(before).min(line.len())
}

/// The nearest start of a character at or before a byte.
fn boundary(line: &[u8], mut at: usize) -> usize {
    while at > 0 && line.get(at).copied().is_some_and(is_continuation) {
        at -= 1;
    }
    at
}

/// Whether a byte goes on with a character.
const fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// A line or a column; files of more than 2^32 lines show the last number.
pub(super) fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
