//! Lines that kubectl writes beside the objects: warnings, errors and logs, which go to standard error
//! and are in a dump where both streams were sent to one file. They are passed over, and said.

use super::Reader;
use super::tree::Place;

/// What a line that is no object says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    /// Something about what was got.
    Remark,
    /// That something was not got.
    Failure,
}

impl Notice {
    fn sentence(self) -> &'static str {
        match self {
            Self::Remark => "This line is a message of kubectl and no object; it is passed over.",
            Self::Failure => {
                "Here kubectl says that it could not get something, which is missing from the input \
                 then; the line itself is passed over."
            }
        }
    }
}

/// How the lines begin.
const BEGINNINGS: [(&str, Notice); 9] = [
    ("Warning: ", Notice::Remark),
    ("No resources found", Notice::Remark),
    ("Flag --", Notice::Remark),
    ("Defaulted container ", Notice::Remark),
    ("Error from server", Notice::Failure),
    ("error: ", Notice::Failure),
    ("Error: ", Notice::Failure),
    ("Unable to connect to the server", Notice::Failure),
    ("The connection to the server", Notice::Failure),
];

fn notice(line: &[u8]) -> Option<Notice> {
    let known = BEGINNINGS.iter().find(|(begins, _)| line.starts_with(begins.as_bytes()));
    known.map(|(_, notice)| *notice).or_else(|| is_log(line).then_some(Notice::Remark))
}

/// Whether a line is one of a log of Kubernetes' programs: `W1130 08:45:29.123456    1234 file.go:56]`.
fn is_log(line: &[u8]) -> bool {
    let mut bytes = line.iter();
    let shape = b"0000 00:00:00.";
    bytes.next().is_some_and(|level| b"IWEF".contains(level))
        && shape.iter().all(|want| match (want, bytes.next()) {
            (b'0', Some(found)) => found.is_ascii_digit(),
            (want, Some(found)) => want == found,
            (_, None) => false,
        })
}

/// Whether a line is no object but what kubectl says beside them.
#[must_use]
pub fn is_notice(line: &[u8]) -> bool {
    notice(line).is_some()
}

/// The byte behind the notices, and the empty lines among them, that stand at a byte.
pub(super) fn end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut end) = (start, start);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let line = line(rest);
        at += line.len();
        if is_notice(line) {
            end = at;
        } else if !line.trim_ascii().is_empty() {
            break;
        }
    }
    end
}

/// The first line with its end.
pub(super) fn line(rest: &[u8]) -> &[u8] {
    let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
    rest.get(..length).unwrap_or_default()
}

impl Reader<'_> {
    /// Says of a line that it is passed over, if it is a notice.
    pub(super) fn notice(&mut self, line: &[u8], place: Place) -> bool {
        let found = notice(line);
        if let Some(notice) = found {
            let message = notice.sentence().to_owned();
            self.reported(super::Severity::Warning, place, &[], None, message);
        }
        found.is_some()
    }

    /// Says of each notice of a part of the text that it is passed over.
    pub(super) fn notices(&mut self, bytes: &[u8], start: usize, end: usize) {
        let mut at = start;
        while let Some(rest) = bytes.get(at..end).filter(|rest| !rest.is_empty()) {
            let line = line(rest);
            let place = self.report.place(at);
            self.notice(line, place);
            at += line.len();
        }
    }
}
