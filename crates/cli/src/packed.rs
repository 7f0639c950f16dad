//! From a stream of bytes to texts: what is packed is unpacked (gzip), and an archive (tar) is read
//! as the directory that it holds; UTF-16, as Windows' shell writes it, becomes UTF-8, and lines that end
//! in a carriage return alone end as others do. What is packed otherwise, and what kubectl prints for
//! people, is refused with what to do instead. Opening files is left to others.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use phalanx_objects::read::is_notice;

use crate::files::{Came, Text, Unreadable};
use crate::gzip::{GZIP, Streams};

/// The endings of files that hold objects.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Endings of what is found in reports and never holds objects: not worth opening.
const OTHERS: [&str; 20] = [
    "adoc", "bin", "bz2", "conf", "css", "csv", "gz", "html", "js", "log", "md", "pem", "png",
    "sh", "svg", "tar", "tgz", "txt", "xz", "zip",
];

/// How the logs of a container begin and end in a dump that is printed as one text.
const LOGS_START: &str = "==== START logs for container ";
const LOGS_END: &str = "==== END logs for container ";

/// How often a text may be packed by gzip.
const GZIP_MOST: usize = 4;

/// How streams begin that are packed otherwise: with what, and what unpacks them.
const PACKED: [(&[u8], &str, &str); 4] = [
    (b"\xFD7zXZ\0", "xz", "xz -d"),
    (b"BZh", "bzip2", "bzip2 -d"),
    (b"PK\x03\x04", "zip", "unzip"),
    (b"\x28\xB5\x2F\xFD", "zstd", "zstd -d"),
];

/// Endings of archives.
const ARCHIVES: [&str; 9] =
    ["tar", "tgz", "zip", "tar.gz", "tar.xz", "tar.bz2", "tar.zst", "txz", "tbz2"];

/// Where a tar archive says what it is, and how.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// A block of a tar archive, in bytes.
const HEAD_BYTES: u64 = 512;

/// Beyond this size a text is not unpacked: a small file that explodes costs no more. In bytes.
const UNPACKED_MOST: u64 = 8 << 30;

/// What a file's name tells of what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// YAML or JSON, packed or not.
    Objects,
    /// Something else.
    Other,
    /// Nothing.
    Unknown,
}

/// What the name of a file in a directory or an archive tells.
pub(crate) fn form(path: &Path) -> Form {
    let is = |path: &Path, endings: &[&str]| {
        path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known))
    };
    let bare = path.file_name().unwrap_or_default().to_string_lossy();
    let bare = bare.strip_suffix(".gz").map(PathBuf::from);
    if is(path, &ENDINGS) || bare.is_some_and(|bare| is(&bare, &ENDINGS)) {
        Form::Objects
    } else if is(path, &OTHERS) {
        Form::Other
    } else {
        Form::Unknown
    }
}

/// Whether a file is an archive by its name.
pub(crate) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ARCHIVES.iter().any(|ending| {
        name.strip_suffix(ending).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    })
}

/// What a text is that kubectl prints for people, and what to run for one that can be read.
fn for_people(bytes: &[u8]) -> Option<&'static str> {
    let head = String::from_utf8_lossy(bytes.get(..4096).unwrap_or(bytes));
    let mut lines = head.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next()?;
    let mut columns = first.split_whitespace();
    let is_column = |column: &str| {
        column.bytes().all(|b| b.is_ascii_uppercase() || b"-()/%".contains(&b)) && column.len() > 1
    };
    let table = matches!(columns.next(), Some("NAME" | "NAMESPACE"))
        && !first.contains(':')
        && columns.next().is_some_and(is_column);
    let described = |line: &str| line.starts_with("Labels:") || line.starts_with("Namespace:");
    if table {
        Some("it is a table that kubectl printed; print the objects with `kubectl get … -o yaml`")
    } else if first.starts_with("Name:") && lines.any(described) {
        Some("it is what `kubectl describe` prints; print the objects with `kubectl get … -o yaml`")
    } else {
        None
    }
}

/// Whether an entry is an editor's or the kubelet's own (`..data`), which is not read.
pub(crate) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'))
}

/// A text that is UTF-16 with its mark in UTF-8; what is no character of it is told by the reader.
fn from_utf16(bytes: &[u8]) -> Option<Vec<u8>> {
    let number: fn([u8; 2]) -> u16 = match bytes.get(..2)? {
        // UTF-32 begins with the same two.
        [0xFF, 0xFE] if bytes.get(2..4) != Some(&[0, 0]) => u16::from_le_bytes,
        [0xFE, 0xFF] => u16::from_be_bytes,
        _ => return None,
    };
    let units = bytes.get(2..)?.as_chunks::<2>().0.iter().map(|pair| number(*pair));
    let text: String =
        char::decode_utf16(units).map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Some(text.into_bytes())
}

/// Ends lines by a line feed where all of them end by a carriage return alone, so that they are told apart
/// and counted.
fn end_lines(bytes: &mut [u8]) {
    if !bytes.contains(&b'\n') {
        bytes.iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
    }
}

/// Where a member of an archive lies in it: nothing is written, so that a path from the root and one that
/// leaves the archive are names like others. None where it is hidden.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut inner = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) if is_hidden(Path::new(name)) => return None,
            Component::Normal(_) | Component::ParentDir => inner.push(part),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    Some(inner)
}

/// Whether a text begins as kubectl prints objects.
pub(crate) fn begins_like_objects(head: &[u8]) -> bool {
    let decoded = from_utf16(head);
    let text = String::from_utf8_lossy(decoded.as_deref().unwrap_or(head));
    let mut text = text.trim_start_matches('\u{FEFF}').trim_start();
    while let Some((line, rest)) = text.split_once('\n')
        && is_notice(line.as_bytes())
    {
        text = rest.trim_start();
    }
    if text.starts_with('{') {
        return text.contains("\"apiVersion\"") && !text.contains("\"audit.k8s.io/");
    }
    let first = text.lines().find(|line| !line.starts_with(['#', '-', '%']));
    let keys = ["apiVersion:", "kind:", "items:"];
    first.is_some_and(|line| keys.iter().any(|key| line.starts_with(key)))
}

/// What of a file is not read.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Archives in it, in order: they are not opened.
    pub(crate) archives: Vec<String>,
    /// What in it can't be read, and why: files in an archive, or what follows where it breaks off.
    pub(crate) lost: Vec<Unreadable>,
    /// What was unpacked but for something at its end that gzip did not make.
    pub(crate) trailing: Vec<String>,
}

impl Rest {
    fn add(&mut self, other: Self) {
        self.archives.extend(other.archives);
        self.lost.extend(other.lost);
        self.trailing.extend(other.trailing);
    }
}

/// Reads a stream to its end and hands out the texts in it. `size` is how many bytes it has, as far
/// as that is known: a text for which there is room need not be moved as it grows. Gives what of it is
/// not read.
pub(crate) fn read(
    path: &Path,
    mut stream: impl Read,
    size: u64,
    came: Came,
    sink: &mut impl FnMut(Text<'_>),
) -> io::Result<Rest> {
    let begins = head(&mut stream)?;
    let stream = begins.as_slice().chain(stream);
    if !begins.starts_with(&GZIP) {
        return plain(path, stream, size, came, sink);
    }
    let trailing = Cell::new(false);
    let unpack = |packed| Box::new(Streams::new(packed, &trailing)) as Box<dyn Read + '_>;
    let mut unpacked = unpack(Box::new(stream)).take(UNPACKED_MOST);
    for _ in 1..GZIP_MOST {
        let begins = head(&mut unpacked).map_err(|error| cut_off(path, error))?;
        let is_packed = begins.starts_with(&GZIP);
        let whole: Box<dyn Read + '_> = Box::new(io::Cursor::new(begins).chain(unpacked));
        unpacked = if is_packed { unpack(whole) } else { whole }.take(UNPACKED_MOST);
        if !is_packed {
            break;
        }
    }
    let mut rest =
        plain(path, &mut unpacked, 0, came, sink).map_err(|error| cut_off(path, error))?;
    if unpacked.limit() == 0 {
        return Err(io::Error::other(format!(
            "unpacked it is larger than {} GiB; unpack it and give the files",
            UNPACKED_MOST >> 30
        )));
    }
    if trailing.get() {
        rest.trailing.push(path.display().to_string());
    }
    Ok(rest)
}

/// An error of a stream that ends before what is packed in it, or is no whole one, in words.
fn cut_off(path: &Path, error: io::Error) -> io::Error {
    let kind = error.kind();
    let what = if kind == io::ErrorKind::UnexpectedEof {
        "it is cut off: it ends before the text that is packed in it does"
    } else if kind == io::ErrorKind::InvalidInput || kind == io::ErrorKind::InvalidData {
        "it is damaged: what gzip packed in it is not what it was"
    } else {
        return error;
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    io::Error::other(format!(
        "{what}, and nothing of it is read; get the whole file again (`gzip -t {name}` says whether it \
         is whole)"
    ))
}

/// Reads what is not packed, or not any more.
fn plain(
    path: &Path,
    mut stream: impl Read,
    size: u64,
    came: Came,
    sink: &mut impl FnMut(Text<'_>),
) -> io::Result<Rest> {
    let mut bytes = head(&mut stream)?;
    // An archive in a directory is as often as not a copy of what lies beside it.
    if came == Came::Named && is_tar(&bytes) {
        return archive(path, bytes.as_slice().chain(stream), sink);
    }
    if let Some((_, with, command)) = PACKED.iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        return Err(io::Error::other(format!(
            "it is packed with {with}, which is not unpacked here; run `{command} {name}` and give what \
             comes out"
        )));
    }
    let rest = usize::try_from(size).unwrap_or(0).saturating_sub(bytes.len());
    // The size may be wrong, and then it is read as it comes.
    if bytes.try_reserve_exact(rest).is_err() {
        bytes.shrink_to_fit();
    }
    stream.read_to_end(&mut bytes)?;
    if let Some(text) = from_utf16(&bytes) {
        bytes = text;
    }
    end_lines(&mut bytes);
    if let Some(what) = for_people(&bytes) {
        return Err(io::Error::other(what));
    }
    without_logs(&mut bytes);
    sink(Text { name: &path.display().to_string(), bytes: &bytes, came });
    Ok(Rest::default())
}

/// Empties the lines of logs that `kubectl cluster-info dump` prints between its lists; the lines
/// stay, so that what stands after them is where it was.
fn without_logs(bytes: &mut Vec<u8>) {
    let is_dump = bytes.starts_with(b"{");
    let logs = |text: &&str| text.contains(LOGS_START);
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|_| is_dump).filter(logs) else {
        return;
    };
    let mut inside = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        inside |= line.starts_with(LOGS_START);
        if !inside {
            kept.push_str(line);
        } else if line.ends_with('\n') {
            kept.push('\n');
        }
        inside &= !line.starts_with(LOGS_END);
    }
    *bytes = kept.into_bytes();
}

/// The first block of a stream.
fn head(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    stream.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether a first block is that of a tar archive.
fn is_tar(head: &[u8]) -> bool {
    let (at, word) = TAR;
    head.get(at..).is_some_and(|rest| rest.starts_with(word))
}

/// The files of an archive, as far as it goes.
#[derive(Debug, Default)]
struct Archive {
    texts: Vec<(PathBuf, Vec<u8>)>,
    archives: Vec<String>,
    /// The file that is being read.
    current: Option<PathBuf>,
}

impl Archive {
    fn unpack(&mut self, path: &Path, stream: impl Read) -> io::Result<()> {
        for entry in tar::Archive::new(stream).entries()? {
            let mut entry = entry?;
            let inner = entry.path()?.into_owned();
            self.current = Some(inner.clone());
            let is_file = entry.header().entry_type().is_file();
            let Some(inner) = inside(&inner).filter(|_| is_file) else { continue };
            if form(&inner) == Form::Other {
                if is_archive(&inner) {
                    self.archives.push(path.join(inner).display().to_string());
                }
                continue;
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            // The end of an archive that was cut off need not be an error to who unpacks it.
            if (bytes.len() as u64) < entry.size() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if form(&inner) == Form::Objects || begins_like_objects(&bytes) {
                self.texts.push((inner, bytes));
            }
        }
        Ok(())
    }

    /// Why it can't be read further, in words.
    fn broken(&self, ended: bool) -> io::Error {
        let at = match &self.current {
            Some(file) => format!("at {}", file.display()),
            None => "at its beginning".to_owned(),
        };
        let read = match self.texts.len() {
            0 => "nothing of it is read".to_owned(),
            1 => "1 file before that is read".to_owned(),
            files => format!("{files} files before that are read"),
        };
        let what = if ended { "the archive is cut off" } else { "the archive is damaged" };
        let todo = "what follows is missing: get the whole archive again (`tar -tf` lists it to its end \
                    if it is whole)";
        io::Error::other(format!("{what} {at}; {read}, and {todo}"))
    }
}

/// A stream, and whether it has come to its end.
#[derive(Debug)]
struct Ending<R> {
    stream: R,
    ended: bool,
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(into);
        self.ended |= match &read {
            Ok(count) => *count == 0 && !into.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
        };
        read
    }
}

/// Reads the files of an archive in the order in which a directory would be read, and of one that is
/// broken those before that; a file that can't be read costs only itself. Archives in it are not opened
/// there either.
fn archive(path: &Path, stream: impl Read, sink: &mut impl FnMut(Text<'_>)) -> io::Result<Rest> {
    let mut archive = Archive::default();
    let mut stream = Ending { stream, ended: false };
    let cut = archive.unpack(path, &mut stream).err();
    let cut = cut.map(|_| archive.broken(stream.ended));
    let Archive { mut texts, mut archives, .. } = archive;
    archives.sort();
    if texts.is_empty() {
        if let Some(cut) = cut {
            return Err(cut);
        }
        let but = archives.first().map_or_else(String::new, |inner| {
            format!(" but an archive, {inner}; unpack this one and name that with -f")
        });
        let message = format!("the archive holds no .yaml, .yml or .json file{but}");
        return Err(io::Error::other(message));
    }
    texts.sort();
    let mut rest = Rest { archives, ..Rest::default() };
    for (inner, bytes) in texts {
        let inner = path.join(inner);
        match read(&inner, bytes.as_slice(), bytes.len() as u64, Came::Found, sink) {
            Ok(of) => rest.add(of),
            Err(error) => rest.lost.push(lost(&inner, error)),
        }
    }
    rest.lost.extend(cut.map(|error| lost(path, error)));
    Ok(rest)
}

fn lost(path: &Path, error: io::Error) -> Unreadable {
    Unreadable { path: path.display().to_string(), error }
}
