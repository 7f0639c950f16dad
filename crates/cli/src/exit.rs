//! What a command comes back with: what to print where, and the exit code.

use phalanx_cluster::view::FindingView;

use crate::findings::Findings;
use crate::screen::{BAD, clean, paint};

/// Everything is placed and nothing is wrong with the input.
pub(crate) const FINE: u8 = 0;
/// Something is not placed, or something in the input is wrong.
pub(crate) const NOT_ALL: u8 = 1;
/// The command line is wrong, or nothing could be read.
pub(crate) const MISUSE: u8 = 2;

/// What a command answers.
#[derive(Debug)]
pub(crate) struct Answer {
    /// For standard output: a text with colours, or a document.
    pub(crate) out: Printed,
    /// For standard error, with colours.
    pub(crate) messages: String,
    /// The exit code.
    pub(crate) code: u8,
}

/// What goes to standard output.
#[derive(Debug)]
pub(crate) enum Printed {
    /// A text for people, with colours.
    Text(String),
    /// A document for programs, as it is.
    Document(String),
}

/// Why a command has no answer. The exit code is [`MISUSE`].
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// What is wrong and what to do, in whole sentences.
    message: String,
    /// The file that it is about.
    file: Option<String>,
    /// The same with its place in a text, drawn with colours.
    drawn: Option<String>,
    /// What was found wrong before, as text and as data.
    before: (String, Vec<FindingView>),
}

impl Failure {
    /// A failure with this message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            file: None,
            drawn: None,
            before: (String::new(), Vec::new()),
        }
    }

    /// It is about this file.
    pub(crate) fn of_file(self, file: String) -> Self {
        Self { file: Some(file), ..self }
    }

    /// Draws it so on a terminal.
    pub(crate) fn drawn(self, drawn: String) -> Self {
        Self { drawn: Some(drawn), ..self }
    }

    /// Shows these findings before it.
    pub(crate) fn after(self, findings: &Findings) -> Self {
        Self { before: (findings.render(), findings.views().to_vec()), ..self }
    }

    /// What a terminal shows.
    pub(crate) fn render(&self) -> String {
        let error = paint(BAD, "error:");
        let sentence = || format!("{error} {}", clean(self.message.trim_end()));
        let text = self.drawn.clone().unwrap_or_else(sentence);
        format!("{}{}\n", self.before.0, text.trim_end())
    }

    /// The failure as findings of a document, itself the first.
    pub(crate) fn findings(&self) -> Vec<FindingView> {
        let own = FindingView {
            severity: "error".to_owned(),
            object: None,
            file: self.file.clone(),
            line: None,
            path: None,
            message: self.message.trim().to_owned(),
        };
        std::iter::once(own).chain(self.before.1.iter().cloned()).collect()
    }
}
