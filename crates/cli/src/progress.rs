//! The bar on standard error while reading takes long: none where that is no terminal, and none for
//! what is read before anyone looks.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use phalanx_objects::Item;

/// Below this many bytes reading is over before anyone looks.
const BAR_FROM_BYTES: u64 = 16 << 20;

/// How far the reading of all that was named is.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Bytes of the files that are read.
    passed: u64,
    /// Where the file that is being read ends, in the same count.
    end: u64,
}

impl Progress {
    /// Of so many bytes nothing is read yet.
    pub(crate) fn over(total: u64) -> Self {
        let mut bar = ProgressBar::hidden();
        if total >= BAR_FROM_BYTES {
            bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        }
        let template = "reading {wide_bar} {bytes}/{total_bytes} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar, passed: 0, end: 0 }
    }

    /// A file of so many bytes begins, and the one before it has ended.
    pub(crate) fn file(&mut self, name: &str, size: u64) {
        self.passed = self.end;
        self.end = self.passed.saturating_add(size);
        self.bar.set_position(self.passed);
        self.bar.set_message(name.to_owned());
    }

    /// A text of the file begins; what it shows is not gone on with before it ends.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> Passing {
        let size = bytes.len() as u64;
        let from = self.passed;
        // What is packed is larger than its file.
        self.passed = self.end.min(self.passed.saturating_add(size));
        let bar = (!self.bar.is_hidden()).then(|| self.bar.clone());
        let lines =
            if bar.is_some() { memchr::memchr_iter(b'\n', bytes).count() as u64 } else { 0 };
        Passing { bar, from, size: self.passed - from, lines: lines.max(1) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How far the reading of a text is.
#[derive(Clone, Debug)]
pub(crate) struct Passing {
    bar: Option<ProgressBar>,
    from: u64,
    size: u64,
    lines: u64,
}

impl Passing {
    /// Something of the text is read: as far as its lines go, so far is its reading.
    pub(crate) fn item(&self, item: &Item) {
        let Some(bar) = &self.bar else { return };
        let line = match item {
            Item::Object(_, source) | Item::Gone(_, source) | Item::Unknown { source, .. } => {
                source.line
            }
            Item::Problem(problem) => problem.line,
        };
        let passed = self.size.saturating_mul(u64::from(line).min(self.lines)) / self.lines;
        bar.set_position(self.from.saturating_add(passed));
    }
}
