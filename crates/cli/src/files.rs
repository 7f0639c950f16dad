//! What `-f` names: files, directories, archives and standard input, read in a fixed order, with a
//! bar on the terminal while that takes long. What the bytes mean is left to the objects' reader.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::packed::{self, Form, Rest};
use crate::progress::{Passing, Progress};

/// How much of a file is looked at where its name does not tell what it holds, in bytes.
const HEAD_BYTES: u64 = 4096;

/// Something to read.
#[derive(Debug)]
enum Input {
    /// Standard input.
    Stdin,
    /// A file, its size in bytes, and how it came.
    File(PathBuf, u64, Came),
}

impl Input {
    fn name(&self) -> String {
        match self {
            Self::Stdin => "-".to_owned(),
            Self::File(path, ..) => path.display().to_string(),
        }
    }

    /// In bytes, as far as it is known.
    fn size(&self) -> u64 {
        match self {
            Self::Stdin => 0,
            Self::File(_, size, _) => *size,
        }
    }
}

/// How a text came to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// The user named it: it is to hold objects.
    Named,
    /// It lies in a directory or an archive that the user named: it may be anything.
    Found,
}

/// A text that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    /// The name that the user knows it by.
    pub(crate) name: &'a str,
    /// All of it, unpacked.
    pub(crate) bytes: &'a [u8],
    /// How it came to be read.
    pub(crate) came: Came,
}

/// What can't be read: what it is called, and why.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The path as it was given.
    pub(crate) path: String,
    /// Why.
    pub(crate) error: io::Error,
}

/// What of the directories is not read.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// What can't be opened, which costs only itself.
    pub(crate) lost: Vec<Unreadable>,
    /// Archives in directories, in order: as often as not they are copies of what lies beside them.
    pub(crate) archives: Vec<String>,
    /// Archives in archives, in order.
    pub(crate) nested: Vec<String>,
    /// What gzip packed, with something at the end that it did not make, in order.
    pub(crate) trailing: Vec<String>,
}

impl Left {
    /// Takes over what of a file is not read.
    fn rest(&mut self, rest: Rest) {
        self.nested.extend(rest.archives);
        self.lost.extend(rest.lost);
        self.trailing.extend(rest.trailing);
    }
}

/// The texts that the user names, in order.
#[derive(Debug, Default)]
pub(crate) struct Files {
    inputs: Vec<Input>,
    left: Left,
}

impl Files {
    /// Finds what the paths name: of directories every file that may hold objects, by name.
    pub(crate) fn find(paths: &[PathBuf]) -> Result<Self, Unreadable> {
        let mut files = Self::default();
        for path in paths {
            if path.as_os_str() == "-" {
                files.inputs.push(Input::Stdin);
                continue;
            }
            let before = files.inputs.len();
            let meta = at(path, fs::metadata(path))?;
            if meta.is_dir() {
                // That the directory itself can't be opened is its user's concern.
                at(path, fs::read_dir(path))?;
                files.walk(path, &mut BTreeSet::new());
                if files.inputs.len() == before {
                    let error = match files.left.archives.first() {
                        None => "the directory holds no .yaml, .yml or .json file".to_owned(),
                        Some(archive) => format!(
                            "the directory holds no .yaml, .yml or .json file but an archive, \
                             {archive}; name that one with -f"
                        ),
                    };
                    return at(path, Err(io::Error::other(error)));
                }
            } else {
                files.inputs.push(Input::File(path.clone(), meta.len(), Came::Named));
            }
        }
        Ok(files)
    }

    /// Adds what is in a directory. `seen` keeps links that lead in a circle from being followed
    /// for ever.
    fn walk(&mut self, directory: &Path, seen: &mut BTreeSet<PathBuf>) {
        let entries = fs::canonicalize(directory).and_then(|real| {
            if !seen.insert(real) {
                return Ok(Vec::new());
            }
            let entries = fs::read_dir(directory)?;
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()
        });
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.lose(directory, error),
        };
        entries.sort();
        for path in entries {
            if packed::is_hidden(&path) {
                continue;
            }
            match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() => self.walk(&path, seen),
                Ok(meta) if !meta.is_file() => {}
                Ok(meta) => match may_hold_objects(&path) {
                    Ok(true) => self.inputs.push(Input::File(path, meta.len(), Came::Found)),
                    Ok(false) if packed::is_archive(&path) => {
                        self.left.archives.push(path.display().to_string());
                    }
                    Ok(false) => {}
                    Err(error) => self.lose(&path, error),
                },
                // Reports hold many links whose files stayed on their machine.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.lose(&path, error),
            }
        }
    }

    fn lose(&mut self, path: &Path, error: io::Error) {
        self.left.lost.push(Unreadable { path: path.display().to_string(), error });
    }

    /// Hands out each text, and whom to tell how far it is read; gives what of the directories is
    /// not read.
    pub(crate) fn read(self, mut sink: impl FnMut(Text<'_>, &Passing)) -> Result<Left, Unreadable> {
        let mut progress = Progress::over(self.inputs.iter().map(Input::size).sum());
        let mut left = self.left;
        for input in &self.inputs {
            progress.file(&input.name(), input.size());
            let mut sink = |text: Text<'_>| {
                let passing = progress.text(text.bytes);
                sink(text, &passing);
            };
            match input {
                Input::Stdin => {
                    let path = Path::new("-");
                    let read = packed::read(path, io::stdin().lock(), 0, Came::Named, &mut sink);
                    left.rest(at(path, read)?);
                }
                Input::File(path, size, came) => {
                    let read = fs::File::open(path)
                        .and_then(|file| packed::read(path, file, *size, *came, &mut sink));
                    match (at(path, read), came) {
                        (Ok(rest), _) => left.rest(rest),
                        (Err(unreadable), Came::Found) => left.lost.push(unreadable),
                        (Err(unreadable), Came::Named) => return Err(unreadable),
                    }
                }
            }
        }
        Ok(left)
    }
}

/// Whether a file of a directory is read: by its ending, or by how it begins where it has none that
/// tells. Reports name files after the command that wrote them, as `kubectl_get_-o_json_nodes`.
fn may_hold_objects(path: &Path) -> io::Result<bool> {
    match packed::form(path) {
        Form::Objects => Ok(true),
        Form::Other => Ok(false),
        Form::Unknown => {
            let mut head = Vec::new();
            fs::File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
            Ok(packed::begins_like_objects(&head))
        }
    }
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, Unreadable> {
    result.map_err(|error| Unreadable { path: path.display().to_string(), error })
}
