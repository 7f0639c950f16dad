//! `phalanx why` as a text: a funnel from all nodes to none, the nearest miss, and the smallest
//! changes that would help, each to be pasted.

use phalanx_cluster::view::{CureView, Document, GroupView, PodView, ReasonView, VerdictWord};
use phalanx_cluster::words::EVEN_THEN;
use phalanx_engine::Reason;
use phalanx_objects::{Kind, ObjectRef};

use crate::nearest::Account;
use crate::plan;
use crate::screen::{Cell, DIM, GOOD, Grid, HEAD, PLAIN, TYPE, WARN, clean, count, paint};

/// The answer about an object, with the nearest miss of the pod that is explained in full. `all` lists every
/// node.
pub(crate) fn render(
    document: &Document,
    account: Option<&Account>,
    object: &ObjectRef,
    all: bool,
) -> String {
    if document.pods.is_empty() {
        return format!(
            "No pod that waits has to do with {object}: there is nothing to explain.\n"
        );
    }
    let mut parts: Vec<String> = Vec::new();
    // A lone pod says it all itself.
    parts.extend(document.groups.iter().filter(|group| group.kind != "pod").map(group_text));
    if document.pods.len() > 1 {
        parts.push(plan::table(document));
    }
    if let Some(pod) = in_full(document) {
        // Asked about a group, what would place more of it is said.
        let mut asked = document.groups.iter().filter(|_| object.kind != Kind::Pod);
        let group = asked.find(|group| {
            let name = format!("{}/{}", group.kind, group.name);
            group.namespace == pod.namespace && pod.group.as_ref() == Some(&name)
        });
        parts.push(pod_text(pod, (group, account), all));
    }
    parts.join("\n")
}

/// The pod that is explained in full: the only one, or of several the first that is not placed and
/// has an account.
pub(crate) fn in_full(document: &Document) -> Option<&PodView> {
    if let [pod] = document.pods.as_slice() {
        return Some(pod);
    }
    let open = |pod: &&PodView| pod.verdict != VerdictWord::Placed && pod.nodes.is_some();
    document.pods.iter().find(open)
}

fn group_text(group: &GroupView) -> String {
    let name = format!("{} {}/{}", group.kind, group.namespace, group.name);
    let pods = count(u64::from(group.wanted), "pod", "pods");
    let mut out = format!("{}: {} of {pods} placed", paint(HEAD, &name), group.placed);
    if group.short > 0 {
        out += &format!(", {} missing", group.short);
    }
    out.push('\n');
    out
}

fn pod_text(
    pod: &PodView,
    (group, account): (Option<&GroupView>, Option<&Account>),
    all: bool,
) -> String {
    let mut out = headline(pod);
    // What the headline says is not said again.
    let reason = plan::first_reason(pod);
    for check in pod.checks.iter().flatten().filter(|check| check.message != reason) {
        out += &format!("  {}: {}\n", label(check.check, check.code), clean(&check.message));
    }
    if pod.reasons.iter().any(|reason| reason.nodes > 0) {
        out += &funnel(pod);
    }
    if let Some(text) = &pod.fit_error {
        out += &format!("  kube-scheduler would say: {}\n", clean(text));
    }
    if pod.verdict != VerdictWord::Placed {
        out += &account.map_or_else(String::new, nearest_miss);
        out += &match group {
            Some(group) => cures(&group_change(group), &group.cures, &group.notes),
            None => cures("What would place it", &pod.cures, &pod.notes),
        };
    }
    if all {
        out += &nodes(pod);
    }
    out
}

fn headline(pod: &PodView) -> String {
    let name = paint(HEAD, &format!("pod {}", plan::named(pod)));
    if let (VerdictWord::Placed, Some(node)) = (pod.verdict, &pod.node) {
        let devices = plan::devices(pod);
        let devices = if devices.is_empty() { String::new() } else { format!(" with {devices}") };
        let mut out = format!("{name} is {} on {node}{devices}.\n", paint(GOOD, "placed"));
        out.extend(pod.notes.iter().map(|note| format!("  {}\n", clean(note))));
        if let Some(how) = optimal(pod) {
            out += &format!("  {how}\n");
        }
        return out + &choice(pod);
    }
    let state = match pod.verdict {
        VerdictWord::Placed | VerdictWord::Waits => "waits".to_owned(),
        VerdictWord::Refused => "is refused".to_owned(),
        VerdictWord::GaveUp => {
            let steps = pod.effort.unwrap_or_default();
            format!("is undecided after {}", count(steps, "step of search", "steps of search"))
        }
    };
    let style = if pod.verdict == VerdictWord::Waits { WARN } else { crate::screen::BAD };
    let reason = clean(plan::first_reason(pod));
    let mut out = format!("{name} {}: {reason}\n", paint(style, &state));
    if pod.verdict == VerdictWord::Refused && !reason.starts_with(EVEN_THEN) {
        out += "  It would not fit either if every other pod ended and every node and device were \
                healthy.\n";
    }
    out
}

/// What else could have been chosen.
fn choice(pod: &PodView) -> String {
    let Some(choice) = &pod.choice else { return String::new() };
    let mut out = String::new();
    if let Some(message) = &choice.message {
        out += &format!("  {}\n", clean(&capital(message)));
    }
    for (what, rival) in [("Runner-up", &choice.runner_up), ("Elsewhere", &choice.elsewhere)] {
        if let Some(rival) = rival {
            out += &format!("  {}: {}\n", paint(TYPE, what), clean(&rival.message));
        }
    }
    out
}

/// The text as a sentence begins.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn optimal(pod: &PodView) -> Option<&'static str> {
    match pod.optimal? {
        "proven" => {
            Some("No better place exists: every other does not fit, or costs as much or more.")
        }
        "firstFit" => Some("It is the first place that fits, as --device-order upstream asks."),
        "bounded" => Some("The search was ended by its bound: a better place may exist."),
        _ => None,
    }
}

/// The node that the pod missed by least, and how far its devices got there; where devices are not
/// what it fell for, what it did fall for.
fn nearest_miss(account: &Account) -> String {
    let mut out = String::new();
    for funnel in &account.funnels {
        let asks = funnel.asked.map_or_else(
            || "all devices that match".to_owned(),
            |asked| count(u64::from(asked), "device", "devices"),
        );
        out += &format!("  {} asks {asks}\n", clean(&funnel.request));
        let mut grid = Grid::default().indented(4);
        for (stage, devices, meaning) in &funnel.stages {
            let short = *devices < funnel.asked.unwrap_or(1);
            let style = if short { WARN } else { PLAIN };
            grid.row(vec![
                Cell::styled(style, *stage),
                Cell::number(u64::from(*devices)),
                Cell::styled(DIM, meaning.as_str()),
            ]);
        }
        out += &grid.render();
    }
    if account.funnels.is_empty() {
        for check in &account.checks {
            out += &format!("  {}: {}\n", label(check.check, check.code), clean(&check.message));
        }
    }
    // Where it only lacks room beside others of its group, the node by itself says nothing.
    match out.is_empty() {
        true => out,
        false => {
            let of = account.of.as_ref().map_or_else(String::new, |pod| format!(" of pod {pod}"));
            format!("\nNearest miss{of}: {}\n{out}", paint(HEAD, &account.node.0))
        }
    }
}

/// kube-scheduler's name for a check, or ours.
fn label<'a>(check: &'a str, code: &'a str) -> &'a str {
    if check.is_empty() { code } else { check }
}

/// How many nodes fell at which check, with one example each.
fn funnel(pod: &PodView) -> String {
    let looked: u64 = pod.reasons.iter().map(|reason| u64::from(reason.nodes)).sum();
    let nodes = count(looked, "node falls", "nodes fall");
    let mut out = format!("\n{nodes}, each at the first check that it fails:\n");
    let mut grid = Grid::new(&["NODES", "CHECK", "REASON", "DEVICES", "FOR EXAMPLE"]).indented(2);
    // In the order of the checks.
    for code in Reason::ALL.map(Reason::code) {
        let of = pod.reasons.iter().filter(|reason| reason.nodes > 0 && reason.code == code);
        of.for_each(|reason| grid.row(row(reason)));
    }
    out += &grid.render();
    out
}

fn row(reason: &ReasonView) -> Vec<Cell> {
    let devices =
        if reason.devices > 0 { Cell::number(u64::from(reason.devices)) } else { "".into() };
    vec![
        Cell::number(u64::from(reason.nodes)),
        reason.check.into(),
        Cell::styled(WARN, reason.code),
        devices,
        reason.message.as_str().into(),
    ]
}

/// What changes of a group do of which some pods wait.
fn group_change(group: &GroupView) -> String {
    let more = if group.placed > 0 { "more of " } else { "" };
    format!("What would place {more}{}/{}", group.kind, group.name)
}

fn cures(what: &str, cures: &[CureView], notes: &[String]) -> String {
    let notes = notes.iter().map(|note| format!("  {}\n", clean(note))).collect::<String>();
    if cures.is_empty() {
        // Notes on a pod that is not placed are about its cures: that none was found says nothing.
        return match notes.as_str() {
            "" => "\nNo single change that Phalanx knows of would help.\n".to_owned(),
            notes => format!("\nNo change that would help was found.\n{notes}"),
        };
    }
    let mut out = format!("\n{what} (add one to the command to see):\n");
    for cure in cures {
        let option = format!("--if {}", quoted(&cure.edit));
        out += &format!("  {}\n      {}\n", paint(TYPE, &clean(&option)), clean(&cure.message));
    }
    out + &notes
}

/// A text as one word of a shell, in quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// As [`quoted`], bare where a shell takes it so.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { quoted(text) }
}

/// Every node with every check that it fails.
fn nodes(pod: &PodView) -> String {
    let nodes = pod.nodes.iter().flatten();
    if pod.checks.iter().flatten().next().is_some()
        && nodes.clone().all(|node| node.checks.is_empty())
    {
        return "\nNo node was looked at: what stands in the way is the pod's own.\n".to_owned();
    }
    let mut grid = Grid::new(&["NODE", "FITS", "CHECK", "REASON", "STATUS", ""]).indented(2);
    for node in nodes {
        let fits = if node.fits { Cell::styled(GOOD, "yes") } else { Cell::styled(DIM, "no") };
        if node.checks.is_empty() {
            grid.row(vec![node.name.as_str().into(), fits]);
            continue;
        }
        let mut first = Some((node.name.as_str(), fits));
        for check in &node.checks {
            let (name, fits) = first.take().unwrap_or(("", "".into()));
            grid.row(vec![
                name.into(),
                fits,
                check.check.into(),
                Cell::styled(WARN, check.code),
                check.status.into(),
                check.message.as_str().into(),
            ]);
        }
    }
    format!("\nEvery node, every check that it fails:\n{}", grid.render())
}
