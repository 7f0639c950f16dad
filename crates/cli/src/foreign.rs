//! Which files of a directory hold no object of Kubernetes: a chart's values, a report's settings.
//! They are counted and said once, where a file that the user names has each fault told.

use std::mem;

use phalanx_cluster::view::FindingView;
use phalanx_objects::read::{Item, Severity};

use crate::files::{Came, Left, Text, Unreadable};
use crate::findings::Findings;
use crate::screen::count;

/// What was found of the files so far.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    /// The text that is being read, where it lies in a directory and nothing of it is an object yet.
    suspect: Option<String>,
    /// What is wrong with it so far, kept back until it is known whether it matters.
    held: Vec<Item>,
    /// Texts that hold none, how many, and the first.
    none: u64,
    first: Option<String>,
    /// Texts that lie in directories.
    found: u64,
}

impl Foreign {
    /// A text begins.
    pub(crate) fn begin(&mut self, text: &Text<'_>) {
        self.end();
        match text.came {
            Came::Named => {}
            Came::Found => {
                self.found += 1;
                self.suspect = Some(text.name.to_owned());
            }
        }
    }

    /// Lets through what is read of the text: of one in a directory only once it holds more than
    /// documents that are not Kubernetes'.
    pub(crate) fn sift(&mut self, item: Item) -> impl Iterator<Item = Item> + use<> {
        let mut passed = Vec::new();
        if self.suspect.is_some() && is_foreign(&item) {
            self.held.push(item);
        } else {
            self.suspect = None;
            passed = mem::take(&mut self.held);
            passed.push(item);
        }
        passed.into_iter()
    }

    fn end(&mut self) {
        // A list without items, of which there are many in dumps, is Kubernetes' and has no fault.
        let is_foreign = !mem::take(&mut self.held).is_empty();
        if let Some(name) = mem::take(&mut self.suspect).filter(|_| is_foreign) {
            self.none += 1;
            self.first.get_or_insert(name);
        }
    }

    /// Says what was left out, and what could not be opened; `nodes` is whether any node was read.
    pub(crate) fn tell(&mut self, left: &Left, nodes: bool, findings: &mut Findings) {
        self.end();
        for Unreadable { path, error } in &left.lost {
            let message = format!("This can't be read: {error}. The rest of the input is.");
            findings.push(of_file("error", path, message), None);
        }
        for path in &left.trailing {
            let message = "After the end of what gzip packed stands something that is not packed. It \
                           is left out, as `gzip -d` leaves it out. If it belongs to the file, pack \
                           it as well.";
            findings.push(of_file("warning", path, message.to_owned()), None);
        }
        // What is in one that lies in another lies nowhere else.
        if let Some(first) = left.nested.first() {
            let these = match left.nested.len() {
                1 => "This archive lies in another and is not opened".to_owned(),
                all => format!(
                    "{all} archives lie in other archives and are not opened; this is the first"
                ),
            };
            let message = format!(
                "{these}: what is in it is missing here. Unpack the outer one and name it with -f."
            );
            findings.push(of_file("warning", first, message), None);
        }
        if let Some(first) = left.archives.first() {
            let these = match left.archives.len() {
                1 => "This archive lies in a directory and is not opened".to_owned(),
                all => {
                    format!(
                        "{all} archives lie in directories and are not opened; this is the first"
                    )
                }
            };
            let message =
                format!("{these}. Name it with -f if it is no copy of what lies beside it.");
            // Without a node the nodes are there if anywhere.
            let severity = if nodes { "info" } else { "warning" };
            findings.push(of_file(severity, first, message), None);
        }
        let Some(first) = &self.first else { return };
        let (holds, are) = if self.none == 1 { ("holds", "is") } else { ("hold", "are") };
        let message = format!(
            "{} of {} in directories {holds} no object of Kubernetes and {are} left out{}.",
            self.none,
            count(self.found, "file", "files"),
            if self.none == 1 { "" } else { "; this is the first" },
        );
        findings.push(of_file("info", first, message), None);
    }
}

/// Something about a file as a whole.
fn of_file(severity: &str, file: &str, message: String) -> FindingView {
    FindingView {
        severity: severity.to_owned(),
        object: None,
        file: Some(file.to_owned()),
        line: None,
        path: None,
        message,
    }
}

/// Whether a document says nowhere what it is. One that says its kind alone is a manifest with a
/// mistake.
fn is_foreign(item: &Item) -> bool {
    match item {
        Item::Problem(problem) => {
            let is_notice = problem.severity == Severity::Warning;
            problem.object.is_none() && (problem.path == "kind" || is_notice)
        }
        Item::Object(..) | Item::Gone(..) | Item::Unknown { .. } => false,
    }
}
