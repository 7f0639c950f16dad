//! What is wrong in the input, as a reader of a terminal wants it: with the line itself and a caret
//! where the reader of the file kept it.

use std::collections::{BTreeMap, BTreeSet};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use phalanx_cluster::edit::Target;
use phalanx_cluster::lint::{Lint, Refusal};
use phalanx_cluster::view::{Document, FindingView};
use phalanx_objects::ObjectRef;
use phalanx_objects::read::{Problem, Severity, Source, Spot};

use crate::screen::{BAD, DIM, WARN, clean, paint};

/// A line of a file, and the column in it that is meant.
#[derive(Clone, Debug)]
struct Excerpt {
    file: String,
    line: u64,
    message: String,
    text: String,
    column: usize,
}

/// Findings, and the lines that go with some of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    views: Vec<FindingView>,
    excerpts: Vec<Excerpt>,
    /// Findings that are drawn, by their place in `views`.
    drawn: BTreeMap<usize, String>,
    /// What another finding tells already.
    passed: BTreeSet<FindingView>,
}

impl Findings {
    /// Keeps what the reader of a file found.
    pub(crate) fn problem(&mut self, problem: &Problem) {
        // Of a long line only a part is kept: its columns are not the file's.
        if problem.text_column == problem.column {
            self.excerpts.push(Excerpt {
                file: problem.file.to_string(),
                line: u64::from(problem.line),
                message: problem.message.clone(),
                text: problem.text.clone(),
                column: problem.column as usize,
            });
        }
        let severity = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let object =
            problem.object.as_ref().map(|object| Target::from(&placed(object)).to_string());
        self.views.push(FindingView {
            severity: severity.to_owned(),
            object,
            file: Some(problem.file.to_string()),
            line: Some(u64::from(problem.line)),
            path: Some(problem.path.clone()).filter(|path| !path.is_empty()),
            message: problem.message.clone(),
        });
    }

    /// Keeps what the API server would refuse.
    pub(crate) fn refusal(
        &mut self,
        object: &ObjectRef,
        source: &Source,
        spot: &Spot,
        refusal: Refusal,
    ) {
        let view = FindingView {
            severity: refusal.rule.severity().as_str().to_owned(),
            object: Some(Target::from(&placed(object)).to_string()),
            file: Some(source.file.to_string()),
            line: Some(u64::from(spot.line)),
            path: Some(refusal.path),
            message: refusal.message,
        };
        self.spotted(view, Some(spot));
    }

    /// Keeps a finding of `lint`.
    pub(crate) fn lint(&mut self, lint: Lint) {
        self.views.push(FindingView {
            severity: lint.severity.as_str().to_owned(),
            object: lint.object.as_ref().map(|object| Target::from(object).to_string()),
            file: Some(lint.source.file.to_string()).filter(|file| !file.is_empty()),
            line: Some(u64::from(lint.source.line)).filter(|line| *line > 0),
            path: Some(lint.path).filter(|path| !path.is_empty()),
            message: lint.message,
        });
    }

    /// Keeps a finding whose place in its line is known, or not.
    pub(crate) fn spotted(&mut self, view: FindingView, spot: Option<&Spot>) {
        let whole = spot.filter(|spot| spot.text_column == spot.column);
        if let (Some(spot), Some(file)) = (whole, view.file.clone()) {
            self.excerpts.push(Excerpt {
                file,
                line: u64::from(spot.line),
                message: view.message.clone(),
                text: spot.text.clone(),
                column: spot.column as usize,
            });
        }
        self.views.push(view);
    }

    /// Keeps a warning about the command line.
    pub(crate) fn option(&mut self, message: &str) {
        self.views.push(FindingView {
            severity: "warning".to_owned(),
            object: None,
            file: None,
            line: None,
            path: None,
            message: message.to_owned(),
        });
    }

    /// Keeps a finding of others, and how it is drawn.
    pub(crate) fn push(&mut self, view: FindingView, drawn: Option<String>) {
        self.drawn.extend(drawn.map(|drawn| (self.views.len(), drawn)));
        self.views.push(view);
    }

    /// Takes what only the answer found into the list, and gives the document the whole of it.
    pub(crate) fn take(&mut self, document: &mut Document) {
        let told: BTreeSet<&FindingView> = self.views.iter().collect();
        let mut found = std::mem::take(&mut document.findings);
        found.retain(|view| !told.contains(view) && !self.passed.contains(view));
        self.views.extend(found);
        document.findings = self.views.clone();
    }

    /// Passes over what another finding tells already.
    pub(crate) fn pass(&mut self, view: FindingView) {
        self.passed.insert(view);
    }

    /// Those about one object.
    pub(crate) fn of(&self, object: &ObjectRef) -> Self {
        let name = Target::from(object).to_string();
        let mut own = Self { excerpts: self.excerpts.clone(), ..Self::default() };
        for (index, view) in self.views.iter().enumerate() {
            if view.object.as_ref() == Some(&name) {
                own.push(view.clone(), self.drawn.get(&index).cloned());
            }
        }
        own
    }

    /// Whether one of them is an error.
    pub(crate) fn any_error(&self) -> bool {
        self.views.iter().any(|view| view.severity == "error")
    }

    /// The findings as data.
    pub(crate) fn views(&self) -> &[FindingView] {
        &self.views
    }

    /// The findings as text, each with its line where that is known.
    pub(crate) fn render(&self) -> String {
        self.views.iter().enumerate().map(|(index, view)| self.one(index, view)).collect()
    }

    /// As [`render`](Self::render), with an empty line after each.
    pub(crate) fn render_apart(&self) -> String {
        let all = self.views.iter().enumerate();
        all.map(|(index, view)| self.one(index, view) + "\n").collect()
    }

    /// As [`render`](Self::render), the errors alone: for answers that don't depend on the rest.
    pub(crate) fn render_errors(&self) -> String {
        let all = self.views.iter().enumerate();
        let errors = all.filter(|(_, view)| view.severity == "error");
        errors.map(|(index, view)| self.one(index, view)).collect()
    }

    /// As [`render`](Self::render), without what is only worth knowing: for answers about
    /// something else.
    pub(crate) fn render_grave(&self) -> String {
        let all = self.views.iter().enumerate();
        let grave = all.filter(|(_, view)| view.severity != "info");
        grave.map(|(index, view)| self.one(index, view)).collect()
    }

    fn one(&self, index: usize, view: &FindingView) -> String {
        if let Some(drawn) = self.drawn.get(&index) {
            return format!("{drawn}\n");
        }
        let same = |excerpt: &&Excerpt| {
            Some(&excerpt.file) == view.file.as_ref()
                && Some(excerpt.line) == view.line
                && view.message.contains(&excerpt.message)
        };
        match self.excerpts.iter().find(same) {
            Some(excerpt) => picture(view, excerpt),
            None => line(view),
        }
    }
}

/// An object that names no namespace is in `default`, as kubectl has it.
pub(crate) fn placed(object: &ObjectRef) -> ObjectRef {
    let mut object = object.clone();
    if object.kind.is_namespaced() && object.namespace.is_empty() {
        "default".clone_into(&mut object.namespace);
    }
    object
}

/// A finding in one line: `warning: dump.yaml:12: Pod a/b, spec.x: what is wrong`.
fn line(view: &FindingView) -> String {
    let style = match view.severity.as_str() {
        "error" => BAD,
        "warning" => WARN,
        _ => DIM,
    };
    let mut place = String::new();
    if let Some(file) = view.file.as_ref().filter(|file| !file.is_empty()) {
        place += file;
        if let Some(line) = view.line.filter(|line| *line > 0) {
            place += &format!(":{line}");
        }
        place += ": ";
    }
    let parts = [view.object.as_deref(), view.path.as_deref()];
    let what = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let what = if what.is_empty() { String::new() } else { what.join(", ") + ": " };
    let text = clean(&format!("{place}{what}{}", view.message));
    format!("{} {text}\n", paint(style, &format!("{}:", view.severity)))
}

/// A finding with its line and a caret.
fn picture(view: &FindingView, excerpt: &Excerpt) -> String {
    let text = clean(&excerpt.text);
    let message = clean(&view.message);
    let at = |column: usize| {
        let offset = text.char_indices().nth(column).map(|(offset, _)| offset);
        offset.unwrap_or(text.len())
    };
    let from = at(excerpt.column.saturating_sub(1));
    let label = view.path.as_deref().unwrap_or_default();
    let line = usize::try_from(excerpt.line).unwrap_or(usize::MAX);
    let snippet = Snippet::source(text.as_str())
        .line_start(line)
        .path(excerpt.file.as_str())
        .annotation(AnnotationKind::Primary.span(from..at(excerpt.column)).label(label));
    let level = match view.severity.as_str() {
        "error" => Level::ERROR,
        "warning" => Level::WARNING,
        _ => Level::INFO,
    };
    let mut group = level.primary_title(message.as_str()).element(snippet);
    if let Some(object) = &view.object {
        group = group.element(Level::NOTE.message(object.as_str()));
    }
    Renderer::styled().render(&[group]) + "\n"
}
