//! What is said of a plan, as a reader would be told: the text that a scenario accepts.

use std::fmt::Write as _;

use phalanx_cluster::view::{
    CureView, Document, FindingView, GroupView, PodView, ReasonView, VerdictWord,
};
use phalanx_cluster::words;

/// Pods, then workloads, then findings, in the order of the document.
pub(crate) fn says(document: &Document) -> String {
    let mut text = String::new();
    for one in &document.pods {
        pod(&mut text, one);
    }
    for one in &document.groups {
        group(&mut text, one);
    }
    for one in &document.findings {
        finding(&mut text, one);
    }
    text
}

/// Writing to a string can't fail.
macro_rules! line {
    ($text:expr, $($part:tt)*) => {{
        let _ = writeln!($text, $($part)*);
    }};
}

fn pod(text: &mut String, pod: &PodView) {
    let name = match pod.seat() {
        Some(seat) => format!("{} ({seat})", pod.name),
        None => pod.name.clone(),
    };
    match (pod.verdict, &pod.node) {
        (VerdictWord::Placed, Some(node)) => {
            let devices: Vec<&str> = pod.devices.iter().map(|d| d.device.as_str()).collect();
            let proof = pod.optimal.map(|proof| format!(" ({proof})")).unwrap_or_default();
            if devices.is_empty() {
                line!(text, "{name} is placed on {node}{proof}");
            } else {
                line!(text, "{name} is placed on {node} with {}{proof}", devices.join(", "));
            }
        }
        (VerdictWord::Placed, None) => line!(text, "{name} is placed nowhere"),
        (VerdictWord::Waits, _) => line!(text, "{name} waits"),
        (VerdictWord::Refused, _) => line!(text, "{name} is refused"),
        (VerdictWord::GaveUp, _) => line!(text, "{name} is given up"),
    }
    for note in &pod.notes {
        line!(text, "  {note}");
    }
    reasons(text, &pod.reasons);
    cures(text, &pod.cures);
}

fn group(text: &mut String, group: &GroupView) {
    let GroupView { kind, name, placed, wanted, .. } = group;
    let missing = words::missing_subgroups(&group.missing_subgroups);
    let missing = missing.map_or_else(String::new, |missing| format!("; {missing}"));
    line!(text, "{kind}/{name}: {placed} of {wanted} placed{missing}");
    for place in &group.places {
        line!(text, "  {}", words::place(place, group.ranks.len().saturating_sub(1)));
    }
    for note in &group.notes {
        line!(text, "  {note}");
    }
    reasons(text, &group.reasons);
    cures(text, &group.cures);
}

fn reasons(text: &mut String, reasons: &[ReasonView]) {
    for reason in reasons {
        line!(text, "  {}: {}", reason.code, reason.message);
    }
}

fn cures(text: &mut String, cures: &[CureView]) {
    for cure in cures {
        line!(text, "  if {}: {}", cure.edit, cure.message);
    }
}

fn finding(text: &mut String, finding: &FindingView) {
    let object = finding.object.as_ref().map(|o| format!(" {o}")).unwrap_or_default();
    let path = finding.path.as_ref().map(|p| format!(" {p}")).unwrap_or_default();
    line!(text, "{}{object}{path}: {}", finding.severity, finding.message);
}
