//! `diff`: reads two plans, prints in what they differ. What counts as a difference is decided below.

use std::fs;
use std::io;
use std::path::Path;

use phalanx_cluster::diff::{
    ChangeView, ChangeWord, DIFF_API_VERSION, DiffDocument, DiffSummary, PlanRead, SideView, diff,
};

use crate::args::{DiffArgs, Output};
use crate::document;
use crate::exit::{Answer, FINE, Failure, NOT_ALL, Printed};
use crate::files::{Came, Text};
use crate::packed;
use crate::screen::{BAD, Cell, DIM, GOOD, Grid, PLAIN, WARN, paint};

/// Answers the command.
pub(crate) fn run(args: &DiffArgs) -> Result<Answer, Failure> {
    if args.before == args.after && args.before.as_os_str() == "-" {
        return Err(Failure::new("Standard input can be one of the two plans, not both."));
    }
    let found = diff(&read(&args.before)?, &read(&args.after)?);
    let code = if found.changes.is_empty() { FINE } else { NOT_ALL };
    let out = match args.output {
        Output::Table => Printed::Text(render(&found)),
        Output::Json => Printed::Document(document::json(&found)?),
        Output::Yaml => Printed::Document(document::yaml(&found)?),
    };
    Ok(Answer { out, messages: String::new(), code })
}

/// The document where there is no answer: empty, but for what is wrong.
pub(crate) fn no_answer(failure: &Failure) -> DiffDocument {
    DiffDocument {
        api_version: DIFF_API_VERSION,
        settings: Vec::new(),
        changes: Vec::new(),
        findings: failure.findings(),
        summary: DiffSummary::default(),
    }
}

/// Reads a plan, JSON or YAML.
fn read(path: &Path) -> Result<PlanRead, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        let path = path.display().to_string();
        let error = error.to_string();
        let error = error.trim_end_matches('.');
        Failure::new(format!("{path} is no plan: {error}.")).of_file(path)
    };
    let mut bytes = Vec::new();
    let mut keep = |text: Text<'_>| text.bytes.clone_into(&mut bytes);
    let found = if path.as_os_str() == "-" {
        packed::read(path, io::stdin().lock(), 0, Came::Found, &mut keep)
    } else {
        fs::File::open(path).and_then(|file| packed::read(path, file, 0, Came::Found, &mut keep))
    };
    found.map_err(|error| {
        let path = path.display().to_string();
        Failure::new(format!("{path} can't be read: {error}.")).of_file(path)
    })?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is no text in UTF-8"))?;
    let plan: PlanRead = if text.trim_start().starts_with('{') {
        let at = |error: &serde_json::Error| (error.line() as u64, error.column() as u64);
        serde_json::from_str(&text).map_err(|error| wrong(&misread(Some(at(&error)))))?
    } else {
        let at = |error: &serde_saphyr::Error| error.location().map(|at| (at.line(), at.column()));
        serde_saphyr::from_str(&text).map_err(|error| wrong(&misread(at(&error))))?
    };
    plan.check().map_err(|error| wrong(&error))?;
    Ok(plan)
}

/// Where a text is no plan, and what to give instead.
fn misread(at: Option<(u64, u64)>) -> String {
    let place =
        at.map_or_else(String::new, |(line, column)| format!(" from line {line}, column {column}"));
    format!("it can't be read as one{place}; give what `phalanx plan -o json` prints")
}

fn render(found: &DiffDocument) -> String {
    let mut out = String::new();
    if !found.changes.is_empty() {
        let mut grid = Grid::new(&["CHANGE", "POD", "BEFORE", "AFTER"]);
        for change in &found.changes {
            grid.row(vec![
                word(change.change),
                format!("{}/{}", change.namespace, change.name).into(),
                side(change, change.before.as_ref()),
                side(change, change.after.as_ref()),
            ]);
        }
        out += &grid.render();
        out += "\n";
    }
    for setting in &found.settings {
        let line = format!("{}: {} before, {} after", setting.name, setting.before, setting.after);
        out += &format!("{}\n", paint(DIM, &line));
    }
    out + &summary(&found.summary) + "\n"
}

fn word(word: ChangeWord) -> Cell {
    let style = match word {
        ChangeWord::Starts => GOOD,
        ChangeWord::Stops => BAD,
        ChangeWord::Moves | ChangeWord::Devices => WARN,
        ChangeWord::Reason | ChangeWord::New | ChangeWord::Gone => PLAIN,
    };
    Cell::styled(style, word.as_str())
}

fn side(change: &ChangeView, side: Option<&SideView>) -> Cell {
    let Some(side) = side else { return "-".into() };
    let Some(node) = &side.node else {
        let reason = match change.change {
            // Of other reasons the codes tell more than two long sentences.
            ChangeWord::Reason => side.reasons.join(", "),
            ChangeWord::Starts
            | ChangeWord::Stops
            | ChangeWord::Moves
            | ChangeWord::Devices
            | ChangeWord::New
            | ChangeWord::Gone => side.message.clone().unwrap_or_default(),
        };
        let verdict = if side.verdict == "gaveUp" { "gave up" } else { side.verdict.as_str() };
        return format!("{verdict}: {reason}").into();
    };
    if side.devices.is_empty() {
        return node.as_str().into();
    }
    format!("{node} {}", side.devices.join(", ")).into()
}

fn summary(summary: &DiffSummary) -> String {
    let parts = [
        (summary.starts, "start now"),
        (summary.stops, "start no more"),
        (summary.moves, "on another node"),
        (summary.devices, "with other devices"),
        (summary.reason, "waiting for other reasons"),
        (summary.new, "new"),
        (summary.gone, "gone"),
    ];
    let told: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{n} {words}")).collect();
    if told.is_empty() {
        return format!("The plans are the same: {} pods.", summary.same);
    }
    format!("{}; {} the same", told.join(", "), summary.same)
}
