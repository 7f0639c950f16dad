//! What goes to the screen: colours, aligned columns, and a standard output that may be closed at
//! any time. What the words say is left to the commands.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};

use anstyle::{AnsiColor, Style};

use crate::args::Color;

/// Something that is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Something that waits, a warning.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// Something that can't be, an error.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// A heading.
pub(crate) const HEAD: Style = Style::new().bold();
/// Of less weight.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Something to type.
pub(crate) const TYPE: Style = AnsiColor::Cyan.on_default();
/// No colour.
pub(crate) const PLAIN: Style = Style::new();

/// Sets for the whole process when colours are used.
pub(crate) fn choose_colors(when: Color) {
    match when {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Writes a text with colours to standard output. Where nobody reads any more (`| head`), that is
/// no error: what was asked for has been answered.
pub(crate) fn print(text: &str) -> io::Result<()> {
    quiet(anstream::stdout().lock().write_all(text.as_bytes()))
}

/// Writes a text with colours to standard error. A standard error that is closed is nobody's
/// concern: there is no place left to say so.
pub(crate) fn complain(text: &str) {
    drop(anstream::stderr().lock().write_all(text.as_bytes()));
}

/// Writes bytes as they are to standard output.
pub(crate) fn print_raw(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    quiet(out.write_all(bytes).and_then(|()| out.flush()))
}

fn quiet(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Ok(()) | Err(_) => result,
    }
}

/// A text of the input without what a terminal would obey: names and values are written by others.
/// Line breaks stay.
pub(crate) fn clean(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', " ")
}

/// A text in a style.
pub(crate) fn paint(style: Style, text: &str) -> String {
    if style.is_plain() { text.to_owned() } else { format!("{style}{text}{style:#}") }
}

/// A cell of a [`Grid`].
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    right: bool,
}

impl Cell {
    /// A cell in a style.
    pub(crate) fn styled(style: Style, text: impl Into<String>) -> Self {
        // A line break in a value would break the grid.
        Self { text: clean(&text.into()).replace('\n', " "), style, right: false }
    }

    /// A number: aligned right.
    pub(crate) fn number(count: u64) -> Self {
        Self { text: count.to_string(), style: PLAIN, right: true }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::styled(PLAIN, text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::styled(PLAIN, text)
    }
}

/// Columns as `kubectl` prints them: aligned with spaces, no frames, the last one of any length.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    rows: Vec<Vec<Cell>>,
    indent: usize,
}

impl Grid {
    /// A grid with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let head = headings.iter().map(|h| Cell::styled(HEAD, *h)).collect();
        Self { rows: vec![head], indent: 0 }
    }

    /// Moves the whole grid to the right.
    pub(crate) fn indented(mut self, columns: usize) -> Self {
        self.indent = columns;
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The grid as lines.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(width_of).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        // A heading stands over its numbers.
        let right: Vec<bool> = (0..columns)
            .map(|c| self.rows.iter().filter_map(|r| r.get(c)).any(|cell| cell.right))
            .collect();
        let mut out = String::new();
        for row in &self.rows {
            let last = row.iter().rposition(|cell| !cell.text.is_empty());
            out.push_str(&" ".repeat(self.indent));
            for (c, cell) in row.iter().enumerate().take(last.map_or(0, |l| l + 1)) {
                let gap = widths[c].saturating_sub(width_of(cell));
                let (before, after) = if right[c] { (gap, 0) } else { (0, gap) };
                let after = if Some(c) == last { 0 } else { after + 2 };
                let (before, after) = (" ".repeat(before), " ".repeat(after));
                // Writing to a String can't fail.
                let _ = write!(out, "{before}{}{after}", paint(cell.style, &cell.text));
            }
            out.push('\n');
        }
        out
    }
}

fn width_of(cell: &Cell) -> usize {
    cell.text.chars().count()
}

/// A word in singular or plural with its number: `1 node`, `2 nodes`.
pub(crate) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_without_spaces() {
        let mut grid = Grid::new(&["POD", "N", "WHY"]);
        grid.row(vec!["default/a".into(), Cell::number(7), "".into()]);
        grid.row(vec!["b".into(), Cell::number(12), Cell::styled(BAD, "no\nroom")]);
        let plain = anstream::adapter::strip_str(&grid.render()).to_string();
        assert_eq!(plain, "POD         N  WHY\ndefault/a   7\nb          12  no room\n");
    }

    #[test]
    fn a_value_can_not_command_the_terminal() {
        let mut grid = Grid::default();
        grid.row(vec!["\u{1b}[2Jx\u{9b}y".into()]);
        assert_eq!(grid.render(), " [2Jx y\n");
    }

    #[test]
    fn a_grid_may_be_indented() {
        let grid = Grid::new(&["A", "B"]).indented(2);
        assert_eq!(anstream::adapter::strip_str(&grid.render()).to_string(), "  A  B\n");
    }
}
