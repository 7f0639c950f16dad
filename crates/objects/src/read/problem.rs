//! What is wrong, where, in words; and the lines of the file that are shown with it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use memchr::{memchr, memchr_iter};

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
    /// Where every [`STRIDE`]th line begins.
    marks: OnceCell<Vec<usize>>,
}

/// Of so many lines one is noted, so that the lines of a large file need little memory.
const STRIDE: usize = 64;

/// How much of a long line is shown, in bytes.
const SHOWN: usize = 160;

/// Up to this distance from the start of its line a column counts characters.
const COUNTED: usize = 4096;

impl<'a> Report<'a> {
    pub(super) fn new(file: &str, bytes: &'a [u8]) -> Self {
        Self { file: file.into(), bytes, marks: OnceCell::new() }
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
        let marks = self.marks();
        let mark = marks.partition_point(|start| *start <= offset).saturating_sub(1);
        let from = marks.get(mark).copied().unwrap_or(0);
        let (mut line, mut start) = (mark * STRIDE + 1, from);
        for end in memchr_iter(b'\n', self.bytes.get(from..offset).unwrap_or_default()) {
            line += 1;
            start = from + end + 1;
        }
        Place { line: narrow(line), column: column(self.bytes, start, offset) }
    }

    fn marks(&self) -> &[usize] {
        self.marks.get_or_init(|| {
            let ends = memchr_iter(b'\n', self.bytes).skip(STRIDE - 1).step_by(STRIDE);
            std::iter::once(0).chain(ends.map(|end| end + 1)).collect()
        })
    }

    /// A line, counted from 0; none behind the last.
    fn line(&self, line: usize) -> Option<&'a [u8]> {
        let from = self.marks().get(line / STRIDE).copied()?;
        let rest = self.bytes.get(from..)?;
        let start = match (line % STRIDE).checked_sub(1) {
            Some(skipped) => memchr_iter(b'\n', rest).nth(skipped)? + 1,
            None => 0,
        };
        let rest = rest.get(start..)?;
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        rest.get(..end)
    }

    /// The line of a place, cut around the column, and the column in what is left.
    fn excerpt(&self, place: Place) -> (String, u32) {
        let line = self.line((place.line as usize).saturating_sub(1));
        let Some(line) = line else { return (String::new(), 1) };
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
