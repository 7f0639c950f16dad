//! What `-f` names: files, directories and standard input, read in a fixed order, with a bar on the
//! terminal while that takes long. What the bytes mean is left to the objects' reader.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The endings of files that are read in a directory.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Below this many bytes reading is over before anyone looks.
const BAR_FROM_BYTES: u64 = 16 << 20;

/// Something to read.
#[derive(Debug)]
enum Input {
    /// Standard input.
    Stdin,
    /// A file, and its size in bytes.
    File(PathBuf, u64),
}

/// What can't be read: what it is called, and why.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The path as it was given.
    pub(crate) path: String,
    /// Why.
    pub(crate) error: io::Error,
}

/// The texts that the user names, in order.
#[derive(Debug, Default)]
pub(crate) struct Files {
    inputs: Vec<Input>,
}

impl Files {
    /// Finds what the paths name: of directories every file with a known ending, by name.
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
                files.walk(path, &mut BTreeSet::new())?;
                if files.inputs.len() == before {
                    let error =
                        io::Error::other("the directory holds no .yaml, .yml or .json file");
                    return at(path, Err(error));
                }
            } else {
                files.inputs.push(Input::File(path.clone(), meta.len()));
            }
        }
        Ok(files)
    }

    /// Adds what is in a directory. `seen` keeps links that lead in a circle from being followed
    /// for ever.
    fn walk(&mut self, directory: &Path, seen: &mut BTreeSet<PathBuf>) -> Result<(), Unreadable> {
        if !seen.insert(at(directory, fs::canonicalize(directory))?) {
            return Ok(());
        }
        let mut entries = Vec::new();
        for entry in at(directory, fs::read_dir(directory))? {
            entries.push(at(directory, entry)?.path());
        }
        entries.sort();
        for path in entries {
            // Hidden entries are editors' and the kubelet's own (`..data`).
            let hidden = path.file_name().is_none_or(|n| n.to_string_lossy().starts_with('.'));
            if hidden {
                continue;
            }
            let meta = at(&path, fs::metadata(&path))?;
            if meta.is_dir() {
                self.walk(&path, seen)?;
            } else if path.extension().is_some_and(|e| ENDINGS.iter().any(|known| e == *known)) {
                self.inputs.push(Input::File(path, meta.len()));
            }
        }
        Ok(())
    }

    /// Hands out each text with the name that the user knows it by.
    #[expect(clippy::disallowed_methods, reason = "the command is the rim: it reads what -f names")]
    pub(crate) fn read(&self, mut sink: impl FnMut(&str, &[u8])) -> Result<(), Unreadable> {
        let bar = self.bar();
        for input in &self.inputs {
            match input {
                Input::Stdin => {
                    let mut bytes = Vec::new();
                    at(Path::new("-"), io::stdin().lock().read_to_end(&mut bytes))?;
                    sink("-", &bytes);
                }
                Input::File(path, size) => {
                    let name = path.display().to_string();
                    bar.set_message(name.clone());
                    let bytes = at(path, fs::read(path))?;
                    sink(&name, &bytes);
                    bar.inc(*size);
                }
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// A bar on standard error; nothing where that is no terminal or the input is small.
    fn bar(&self) -> ProgressBar {
        let size = |input: &Input| match input {
            Input::Stdin => 0,
            Input::File(_, size) => *size,
        };
        let total: u64 = self.inputs.iter().map(size).sum();
        if total < BAR_FROM_BYTES {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        if let Ok(style) =
            ProgressStyle::with_template("reading {wide_bar} {bytes}/{total_bytes} {msg}")
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, Unreadable> {
    result.map_err(|error| Unreadable { path: path.display().to_string(), error })
}
