//! Errors of CEL expressions, drawn: the expression, the part at fault, a caret at the place. What an
//! expression means is left to the CEL crate.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use phalanx_cel::{CompileError, Program};
use phalanx_cluster::Finding;
use phalanx_cluster::world::World;

use crate::exit::Failure;
use crate::input;
use crate::screen::clean;

/// How the paths of fields end that hold an expression.
const EXPRESSION: &str = ".cel.expression";

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawing<'a> {
    /// What the expression is called.
    pub(crate) origin: &'a str,
    /// The expression.
    pub(crate) expression: &'a str,
    /// The bytes of the part at fault.
    pub(crate) range: (usize, usize),
    /// The byte in it that is meant, where it is not the first.
    pub(crate) at: Option<usize>,
    /// What is wrong.
    pub(crate) message: &'a str,
    /// What to do about it.
    pub(crate) hint: Option<&'a str>,
    /// Where it stands.
    pub(crate) note: Option<&'a str>,
}

/// Draws a finding about an expression that does not compile; nothing for other findings.
pub(crate) fn of_finding(world: &World, finding: &Finding) -> Option<String> {
    if !finding.path.ends_with(EXPRESSION) {
        return None;
    }
    let reference = finding.object.as_ref()?;
    let tree = serde_json::to_value(world.objects()?.get(reference)?).ok()?;
    let pointer = format!("/{}", finding.path.replace(['.', '['], "/").replace(']', ""));
    let expression = tree.pointer(&pointer)?.as_str()?;
    let environment = input::cel_environment(world.lowering().compat());
    let error = Program::compile(expression, &environment).err()?;
    let note = format!("{reference}, {}:{}", finding.file, finding.line);
    Some(draw(&finding.path, expression, &error, Some(&note)))
}

/// Why an expression can't be used at all.
pub(crate) fn failure(origin: &str, expression: &str, error: &CompileError) -> Failure {
    let drawn = draw(origin, expression, error, None);
    Failure::new(format!("{origin}: {error}.")).drawn(drawn)
}

fn draw(origin: &str, expression: &str, error: &CompileError, note: Option<&str>) -> String {
    picture(Drawing {
        origin,
        expression,
        range: error.range,
        at: Some(offset(expression, error.line, error.column)),
        message: &error.message,
        hint: error.hint.as_deref(),
        note,
    })
}

/// The byte of a line and a column, both counted from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    start + rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>()
}

/// The expression with the part at fault underlined, and a caret at the place in it that is meant.
pub(crate) fn picture(drawing: Drawing<'_>) -> String {
    let expression = drawing.expression;
    // An expression that ends too early is at fault after its end: the caret needs a place.
    let end = expression.len();
    let from = drawing.range.0.min(end);
    let to = drawing.range.1.clamp(from, end);
    let (origin, message) = (clean(drawing.origin), clean(drawing.message));
    let mut snippet = Snippet::source(expression).path(origin.as_str());
    match drawing.at.map(|at| at.min(end)).filter(|at| *at > from) {
        Some(at) => {
            let next = expression.get(at..).and_then(|rest| rest.chars().next());
            let caret = at..at + next.map_or(0, char::len_utf8);
            snippet = snippet.annotation(AnnotationKind::Primary.span(caret));
            // Over several lines the frame would hide more than it shows.
            if expression.get(from..to).is_some_and(|part| !part.contains('\n')) {
                snippet = snippet.annotation(AnnotationKind::Context.span(from..to));
            }
        }
        None => snippet = snippet.annotation(AnnotationKind::Primary.span(from..to)),
    }
    let mut group = Level::ERROR.primary_title(message.as_str()).element(snippet);
    let note = drawing.note.map(clean);
    if let Some(note) = &note {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    if let Some(hint) = drawing.hint {
        group = group.element(Level::HELP.message(hint));
    }
    Renderer::styled().render(&[group])
}

#[cfg(test)]
mod tests {
    use super::offset;

    #[test]
    fn a_column_counts_characters_of_its_line() {
        assert_eq!(offset("a == 1", 1, 3), 2);
        assert_eq!(offset("'é' == 1", 1, 5), 5);
        assert_eq!(offset("a &&\nb == 1", 2, 3), 7);
        assert_eq!(offset("a", 9, 9), 1);
    }
}
