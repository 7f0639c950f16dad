//! The devices as a table: one row each; as columns what tells them apart.

use std::collections::{BTreeMap, BTreeSet};

use crate::screen::{BAD, Cell, DIM, GOOD, Grid, WARN, count, paint};

use super::inventory::{Row, short};
use super::judge::{Judgement, Part};

/// A table of all rows, and below it what was left out and what the test kept.
pub(crate) fn render(rows: &[(Row, Option<Judgement>)], wide: bool) -> String {
    if rows.is_empty() {
        return "No ResourceSlice of the input publishes a device.\n".to_owned();
    }
    let values: Vec<BTreeMap<String, String>> = rows.iter().map(|(row, _)| row.values()).collect();
    let columns = Columns::choose(&values, wide);
    let asked = rows.iter().any(|(_, judgement)| judgement.is_some());
    let drivers: BTreeSet<&str> = rows.iter().map(|(row, _)| row.driver()).collect();
    let tainted = rows.iter().any(|(row, _)| !row.info.taints.is_empty());
    let held = rows.iter().any(|(row, _)| !row.claims.is_empty());
    // Where something is asked, the answer says it.
    let unused = !asked && rows.iter().any(|(row, _)| row.trouble.is_some());

    let only = if drivers.len() == 1 { drivers.first().copied().unwrap_or("") } else { "" };
    let mut headings = vec!["NODE", "DEVICE"];
    let extra = [
        (drivers.len() > 1, "DRIVER"),
        (asked, "KEPT"),
        (asked, "WHY NOT"),
        (held, "HELD BY"),
        (tainted, "TAINTS"),
        (unused, "NOT GIVEN OUT"),
    ];
    headings.extend(extra.iter().filter(|(there, _)| *there).map(|(_, name)| *name));
    headings.extend(columns.shown.iter().map(|name| short(only, name)));
    let mut grid = Grid::new(&headings);
    for ((row, judgement), values) in rows.iter().zip(&values) {
        let mut cells: Vec<Cell> = vec![row.node().into(), row.info.key.device.as_str().into()];
        if drivers.len() > 1 {
            cells.push(row.driver().into());
        }
        if let Some(judgement) = judgement {
            cells.extend([kept(judgement), why_not(judgement)]);
        }
        if held {
            cells.push(Cell::styled(DIM, row.claims.join(", ")));
        }
        if tainted {
            cells.push(Cell::styled(WARN, row.taints().join(", ")));
        }
        if unused {
            cells.push(Cell::styled(WARN, row.trouble.as_deref().unwrap_or_default()));
        }
        let value = |name: &String| Cell::from(values.get(name).cloned().unwrap_or_default());
        cells.extend(columns.shown.iter().map(value));
        grid.row(cells);
    }
    grid.render() + &columns.left_out(only) + &summary(rows, asked)
}

fn kept(judgement: &Judgement) -> Cell {
    match judgement {
        Judgement::Kept => Cell::styled(GOOD, "yes"),
        Judgement::Dropped { .. } | Judgement::Unused(_) => Cell::styled(DIM, "no"),
        Judgement::Failed { .. } => Cell::styled(BAD, "error"),
    }
}

fn why_not(judgement: &Judgement) -> Cell {
    match judgement {
        Judgement::Kept => "".into(),
        Judgement::Dropped { parts } => {
            parts.iter().map(part).collect::<Vec<_>>().join("; ").into()
        }
        Judgement::Unused(trouble) => format!("it passes, and is not given out: {trouble}").into(),
        Judgement::Failed { message, .. } => Cell::styled(BAD, message.as_str()),
    }
}

/// The values that failed; the part itself where it read none.
fn part(part: &Part) -> String {
    if part.values.is_empty() {
        if part.text.trim() == "false" {
            return "false for every device".to_owned();
        }
        return format!("{} is false", part.text);
    }
    let value = |(name, value): &(String, Option<String>)| match value {
        Some(value) => format!("{name} is {value}"),
        None => format!("it has no {name}"),
    };
    part.values.iter().map(value).collect::<Vec<_>>().join(", ")
}

fn summary(rows: &[(Row, Option<Judgement>)], asked: bool) -> String {
    let devices = count(rows.len() as u64, "device", "devices");
    let used = rows.iter().filter(|(row, _)| !row.claims.is_empty()).count();
    let kept = rows.iter().filter(|(_, j)| *j == Some(Judgement::Kept)).count();
    let kept = if asked { format!("{kept} of ") } else { String::new() };
    let verb = if asked { " kept" } else { "" };
    format!("\n{kept}{devices}{verb}, {used} in use\n")
}

/// Which attributes and capacities become columns.
#[derive(Debug)]
struct Columns {
    shown: Vec<String>,
    /// The same on every device, with the value.
    same: Vec<(String, String)>,
    /// Different on every device: what names it rather than tells its kind.
    unique: Vec<String>,
}

impl Columns {
    fn choose(values: &[BTreeMap<String, String>], wide: bool) -> Self {
        let names: BTreeSet<&String> = values.iter().flat_map(BTreeMap::keys).collect();
        let mut columns = Self { shown: Vec::new(), same: Vec::new(), unique: Vec::new() };
        for name in names {
            let distinct: BTreeSet<Option<&String>> = values.iter().map(|v| v.get(name)).collect();
            let same = distinct.len() == 1;
            // Of two devices everything that differs is unique, and then it is what one looks for.
            let unique = values.len() > 2 && distinct.len() == values.len();
            match (wide, same, unique, distinct.first()) {
                (false, true, _, Some(Some(value))) => {
                    columns.same.push((name.clone(), (*value).clone()));
                }
                (false, false, true, _) => columns.unique.push(name.clone()),
                _ => columns.shown.push(name.clone()),
            }
        }
        columns
    }

    /// What is not shown, so that nobody looks for it.
    fn left_out(&self, driver: &str) -> String {
        let same = self.same.iter().map(|(name, value)| format!("{} {value}", short(driver, name)));
        let unique = self.unique.iter().map(|name| short(driver, name).to_owned());
        let lists: [(&str, Vec<String>); 2] = [
            ("the same on every device", same.collect()),
            ("different on every device", unique.collect()),
        ];
        let mut lines = String::new();
        for (what, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
            let text = format!("{what}: {} (--wide shows all)", items.join(", "));
            lines += &format!("\n{}", paint(DIM, &text));
        }
        if lines.is_empty() { lines } else { lines + "\n" }
    }
}
