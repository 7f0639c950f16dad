//! `status` as a text: nodes, devices with what is free of them in which pieces, holders, and who
//! waits. The numbers come from below.

use phalanx_cluster::Compat;
use phalanx_cluster::plan::PlanOptions;
use phalanx_cluster::status::{
    NodeCounts, STATUS_API_VERSION, StatusDocument, StatusSummary, StockView, WaitingView, status,
};
use phalanx_engine::Timestamp;

use crate::args::{Output, StatusArgs};
use crate::document;
use crate::exit::{Answer, FINE, Failure, NOT_ALL, Printed};
use crate::input::{self, Input};
use crate::plan::words;
use crate::screen::{Cell, DIM, Grid, HEAD, WARN, clean, count, paint};

/// Most rows of holders, and of those who wait, that a terminal is given.
const ROWS_MAX: usize = 20;

/// Answers the command.
pub(crate) fn run(args: &StatusArgs) -> Result<Answer, Failure> {
    let Input { mut world, findings, .. } = input::read(&args.input, input::Asked::default())?;
    let now = args.input.now.map(|now| Timestamp(now.as_millisecond()));
    let options = PlanOptions { now: now.or_else(|| world.newest_time()), ..Default::default() };
    let mut document = status(&mut world, &options);
    document.findings = findings.views().to_vec();
    let code = if findings.any_error() { NOT_ALL } else { FINE };
    let out = match args.output {
        Output::Table => Printed::Text(render(&document)),
        Output::Json => Printed::Document(document::json(&document)?),
        Output::Yaml => Printed::Document(document::yaml(&document)?),
    };
    Ok(Answer { out, messages: findings.render_grave(), code })
}

/// The document where there is no answer: empty, but for what is wrong.
pub(crate) fn no_answer(failure: &Failure) -> StatusDocument {
    StatusDocument {
        api_version: STATUS_API_VERSION,
        compat: input::compat_view(&Compat::default(), None),
        nodes: NodeCounts::default(),
        devices: Vec::new(),
        topologies: Vec::new(),
        holders: Vec::new(),
        stalled: Vec::new(),
        waiting: Vec::new(),
        findings: failure.findings(),
        summary: StatusSummary::default(),
    }
}

fn render(document: &StatusDocument) -> String {
    let mut out = nodes(document);
    if document.devices.is_empty() {
        out += "\nNo device was read, neither of ResourceSlices nor as a resource of a node.\n";
    } else {
        out += &format!("\n{}", devices(document));
        out += &format!("\n{}", pieces(document));
    }
    if !document.topologies.is_empty() {
        out += &format!("\n{}", topologies(document));
    }
    if !document.holders.is_empty() {
        out += &format!("\n{}", holders(document));
    }
    for row in &document.stalled {
        let head = paint(WARN, "HELD WITHOUT PROGRESS");
        out += &format!("\n{head} {}\n{}\n", clean(&row.group), clean(&row.message));
    }
    if !document.waiting.is_empty() {
        out += &format!("\n{}", waiting(document));
    }
    out + &format!("\n{}", last(document))
}

fn nodes(document: &StatusDocument) -> String {
    let NodeCounts { total, ready, not_ready, unsaid, cordoned } = document.nodes;
    let mut parts = Vec::new();
    parts.extend((ready > 0 || unsaid == 0).then(|| format!("{ready} ready")));
    parts.extend((unsaid > 0).then(|| format!("{unsaid} without a condition Ready")));
    parts.extend((not_ready > 0).then(|| format!("{not_ready} not ready")));
    parts.extend((cordoned > 0).then(|| format!("{cordoned} cordoned")));
    format!("{}: {}\n", paint(HEAD, &count(total, "node", "nodes")), parts.join(", "))
}

/// What a kind of device is called: its product, else its driver or resource.
fn name(stock: &StockView) -> String {
    match &stock.model {
        Some(model) => format!("{model} ({})", stock.name),
        None => stock.name.clone(),
    }
}

fn devices(document: &StatusDocument) -> String {
    let mut grid = Grid::new(&["DEVICES", "NODES", "TOTAL", "USED", "FREE", "UNAVAILABLE"]);
    for stock in &document.devices {
        grid.row(vec![
            name(stock).into(),
            Cell::number(stock.nodes),
            Cell::number(stock.total),
            Cell::number(stock.used),
            Cell::number(stock.free),
            unavailable(stock).into(),
        ]);
    }
    grid.render()
}

/// Trees of topology, a row for each level.
fn topologies(document: &StatusDocument) -> String {
    let mut grid = Grid::new(&["TOPOLOGY", "FROM", "LEVEL", "DOMAINS", "NODES IN EACH", "IN NONE"]);
    for tree in &document.topologies {
        for level in &tree.levels {
            let least = level.domains.values().min().copied().unwrap_or(0);
            let most = level.domains.values().max().copied().unwrap_or(0);
            let each = if least == most { most.to_string() } else { format!("{least} to {most}") };
            grid.row(vec![
                tree.name.clone().into(),
                tree.source.clone().into(),
                level.level.clone().into(),
                Cell::number(level.domains.len() as u64),
                each.into(),
                Cell::number(level.without),
            ]);
        }
    }
    grid.render()
}

/// How many are unavailable, and why as far as a count tells.
fn unavailable(stock: &StockView) -> String {
    let parts = [
        (stock.unhealthy, "unhealthy"),
        (stock.closed, "on nodes that are not ready, cordoned, tainted or full"),
    ];
    let told = parts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, words)| format!("{count} {words}")).collect();
    let told = if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) };
    format!("{}{told}", stock.unavailable)
}

/// In which pieces devices are free, and what a request of each size can't get.
fn pieces(document: &StatusDocument) -> String {
    let mut grid = Grid::new(&["FREE", "ON A NODE", "IN AN ISLAND", "OUT OF REACH BY SIZE"]);
    for stock in document.devices.iter().filter(|stock| stock.free > 0) {
        let nodes: Vec<String> = stock
            .free_nodes
            .iter()
            .map(|piece| format!("{}×{}", piece.nodes, piece.free))
            .collect();
        let each = stock.free_islands.iter().map(|p| format!("{}×{}", p.islands, p.free));
        let mut islands: Vec<String> = each.collect();
        islands.extend((stock.unlinked > 0).then(|| match stock.unlinked == stock.free {
            true => "links unknown".to_owned(),
            false => format!("links of {} unknown", stock.unlinked),
        }));
        grid.row(vec![
            name(stock).into(),
            or_dash(nodes.join(", ")).into(),
            or_dash(islands.join(", ")).into(),
            or_dash(stranded(stock)).into(),
        ]);
    }
    let legend = "2×8: two nodes or islands with eight free each. Out of reach: the share of free \
                  devices that a request for so many on one node (in one island) can't get.";
    format!("{}{}\n", grid.render(), paint(DIM, legend))
}

fn stranded(stock: &StockView) -> String {
    let percent = |part: u64| format!("{} %", part.saturating_mul(100) / stock.free.max(1));
    let one = |row: &phalanx_cluster::status::StrandedView| {
        let islands = row.in_islands.map(|devices| format!(" ({})", percent(devices)));
        format!("{}: {}{}", row.size, percent(row.on_nodes), islands.unwrap_or_default())
    };
    stock.stranded.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

fn holders(document: &StatusDocument) -> String {
    let mut grid = Grid::new(&["HOLDS", "OF", "PODS", "NAMESPACE", "WORKLOAD"]);
    for holder in document.holders.iter().take(ROWS_MAX) {
        let parts = [(holder.shared, "shared"), (holder.unpublished, "in no slice")];
        let told = parts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told.map(|(count, words)| format!("{count} {words}")).collect();
        let name = match told.is_empty() {
            true => holder.name.clone(),
            false => format!("{} ({})", holder.name, told.join(", ")),
        };
        grid.row(vec![
            Cell::number(holder.devices),
            name.into(),
            Cell::number(holder.pods),
            holder.namespace.as_str().into(),
            holder.workload.as_str().into(),
        ]);
    }
    grid.render() + &more(document.holders.len())
}

fn waiting(document: &StatusDocument) -> String {
    let mut grid = Grid::new(&["WAITS", "PODS", "NAMESPACE", "WORKLOAD", "WHY"]);
    for row in document.waiting.iter().take(ROWS_MAX) {
        grid.row(vec![
            age(row).into(),
            Cell::number(row.pods),
            row.namespace.as_str().into(),
            row.workload.as_str().into(),
            format!("{}: {}", words(row.verdict), row.message).into(),
        ]);
    }
    grid.render() + &more(document.waiting.len())
}

/// How many rows are not shown.
fn more(all: usize) -> String {
    match all.saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("{}\n", paint(DIM, &format!("and {more} more (-o json lists all)"))),
    }
}

/// How long it waits, as kubectl shows ages: the two largest units.
fn age(row: &WaitingView) -> String {
    let Some(seconds) = row.seconds else { return "-".to_owned() };
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (size, unit) in units {
        if rest >= size || !parts.is_empty() {
            parts.push((rest / size, unit));
        }
        rest %= size;
    }
    let shown = parts.iter().take(2).filter(|(number, _)| *number > 0);
    let text: String = shown.map(|(number, unit)| format!("{number}{unit}")).collect();
    if text.is_empty() { "0s".to_owned() } else { text }
}

fn last(document: &StatusDocument) -> String {
    let StatusSummary { running, starting, waiting } = document.summary;
    let running = count(running, "pod runs", "pods run");
    let now = document.compat.now.as_ref().map_or_else(String::new, |now| format!("; now {now}"));
    format!("{running}, {starting} would start now, {waiting} wait{now}\n")
}
