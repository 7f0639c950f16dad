//! `phalanx plan` as a table: every pod, where it goes, and what is to be known of it.

use phalanx_cluster::view::{Document, GroupView, PodView, VerdictWord};
use phalanx_cluster::words;

use crate::screen::{BAD, Cell, DIM, GOOD, Grid, HEAD, PLAIN, TYPE, WARN, count, paint};

/// The plan. `asked` is the command that asks about a pod in the same world.
pub(crate) fn render(
    document: &Document,
    findings: &str,
    asked: impl Fn(&PodView) -> String,
) -> String {
    let mut out = String::new();
    if document.pods.is_empty() {
        out += "No pod of the input is without a node: there is nothing to decide.\n";
    } else {
        out += &table(document);
        out += &groups(document);
    }
    if !findings.is_empty() {
        out += &format!("\n{}", paint(HEAD, "Findings"));
        out += &format!("\n{findings}");
    }
    out += &format!("\n{}\n{}", summary(document), exit_meaning(document));
    if let Some(pod) = document.pods.iter().find(|pod| pod.verdict != VerdictWord::Placed) {
        let command = asked(pod);
        out += &format!("{} {}\n", paint(DIM, "Why:"), paint(TYPE, &command));
    }
    out
}

/// Groups that start whole, where they are.
fn groups(document: &Document) -> String {
    let mut out = String::new();
    for group in document.groups.iter().filter(|group| !group.ranks.is_empty()) {
        let GroupView { kind, namespace, name, placed, wanted, .. } = group;
        let missing = words::missing_subgroups(&group.missing_subgroups);
        let missing = missing.map_or_else(String::new, |missing| format!("; {missing}"));
        out += &format!("\n{kind}/{namespace}/{name}: {placed} of {wanted} placed{missing}\n");
        let pairs = group.ranks.len().saturating_sub(1);
        for place in &group.places {
            out += &format!("  {}\n", words::place(place, pairs));
        }
    }
    out
}

/// So many rows or more that are alike but for a number are one.
const FOLDED_FROM: usize = 9;

/// Every pod, a row each; of many that are alike one row for all.
pub(crate) fn table(document: &Document) -> String {
    let mut grid = Grid::new(&["POD", "NODE", "DEVICES", "VERDICT", ""]);
    let mut rest = document.pods.as_slice();
    while let [pod, ..] = rest {
        let run = 1 + rest.windows(2).take_while(|pair| alike(&pair[0], &pair[1])).count();
        let folded = if run < FOLDED_FROM { 1 } else { run };
        let name = match rest.get(folded - 1).filter(|_| folded > 1) {
            Some(last) => {
                let of = pod.role.as_ref().map_or_else(String::new, |role| format!(" of {role}"));
                let PodView { namespace, name, .. } = pod;
                format!("{namespace}/{name}…{} ({folded} pods{of})", last.name)
            }
            None => named(pod),
        };
        let about = match pod.verdict {
            VerdictWord::Placed => Cell::styled(DIM, about(pod)),
            VerdictWord::Waits | VerdictWord::Refused | VerdictWord::GaveUp => {
                Cell::styled(PLAIN, about(pod))
            }
        };
        grid.row(vec![
            name.into(),
            pod.node.as_deref().unwrap_or("-").into(),
            devices(pod).into(),
            verdict(pod.verdict),
            about,
        ]);
        rest = rest.get(folded..).unwrap_or_default();
    }
    grid.render()
}

/// What is to be known of a pod beside its verdict.
fn about(pod: &PodView) -> String {
    match pod.verdict {
        VerdictWord::Placed => notes(pod).join("; "),
        VerdictWord::Waits | VerdictWord::Refused | VerdictWord::GaveUp => why_not(pod),
    }
}

/// Whether two pods have rows that are alike but for the number at the end of their names.
fn alike(a: &PodView, b: &PodView) -> bool {
    let same = (&a.namespace, &a.group, &a.role, &a.node, a.verdict)
        == (&b.namespace, &b.group, &b.role, &b.node, b.verdict);
    same && follows(&a.name, &b.name) && devices(a) == devices(b) && about(a) == about(b)
}

/// A pod by its name, and by its place in its workload where that has several roles.
pub(crate) fn named(pod: &PodView) -> String {
    let name = format!("{}/{}", pod.namespace, pod.name);
    match pod.seat() {
        Some(seat) => format!("{name} ({seat})"),
        None => name,
    }
}

/// What is to be known of a pod that is placed: first whether a better place may exist.
fn notes(pod: &PodView) -> Vec<&str> {
    let bounded = is_bounded(pod).then_some("bounded: a better place may exist");
    bounded.into_iter().chain(pod.notes.iter().map(String::as_str)).collect()
}

/// Whether the search for the pod's place ended at its bound.
fn is_bounded(pod: &PodView) -> bool {
    pod.optimal == Some("bounded")
}

/// The deciding reason as a sentence, and what else is in the way of the pod itself, such as a gate.
fn why_not(pod: &PodView) -> String {
    let own = pod.reasons.iter().skip(1).filter(|reason| reason.scope == "object");
    let own = own.map(|reason| reason.message.as_str());
    std::iter::once(first_reason(pod)).chain(own).collect::<Vec<_>>().join("; ")
}

/// The deciding reason, as a sentence.
pub(crate) fn first_reason(pod: &PodView) -> &str {
    pod.reasons.first().map_or("", |reason| reason.message.as_str())
}

/// A verdict as a cell.
pub(crate) fn verdict(verdict: VerdictWord) -> Cell {
    let style = match verdict {
        VerdictWord::Placed => GOOD,
        VerdictWord::Waits => WARN,
        VerdictWord::Refused | VerdictWord::GaveUp => BAD,
    };
    Cell::styled(style, words(verdict))
}

/// A verdict in words.
pub(crate) fn words(verdict: VerdictWord) -> &'static str {
    match verdict {
        VerdictWord::Placed => "placed",
        VerdictWord::Waits => "waits",
        VerdictWord::Refused => "refused",
        VerdictWord::GaveUp => "gave up",
    }
}

/// The devices of a pod in few words: `gpu-0…gpu-7`, `gpu-0, gpu-2`; with the pool where that is
/// not named as the node.
pub(crate) fn devices(pod: &PodView) -> String {
    let node = pod.node.as_deref().unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for device in &pod.devices {
        let pool = if device.pool == node { String::new() } else { format!("{}/", device.pool) };
        let admin = if device.admin_access { " (admin)" } else { "" };
        names.push(format!("{pool}{}{admin}", device.device));
    }
    ranges(&names).join(", ")
}

/// Names that end in consecutive numbers, three or more, as first…last.
fn ranges(names: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = names;
    while let [first, ..] = rest {
        let run = 1 + rest.windows(2).take_while(|pair| follows(&pair[0], &pair[1])).count();
        match (run, rest.get(run - 1)) {
            (3.., Some(last)) => out.push(format!("{first}…{last}")),
            _ => out.extend(rest.iter().take(run).cloned()),
        }
        rest = rest.get(run..).unwrap_or_default();
    }
    out
}

/// Whether `b` is named as `a` but for a number at its end, one higher.
fn follows(a: &str, b: &str) -> bool {
    let (stem_a, number_a) = numbered(a);
    let (stem_b, number_b) = numbered(b);
    stem_a == stem_b
        && matches!((number_a, number_b), (Some(a), Some(b)) if a.checked_add(1) == Some(b))
}

fn numbered(name: &str) -> (&str, Option<u64>) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, name.get(stem.len()..).and_then(|digits| digits.parse().ok()))
}

/// Counts, and what the answer depends on.
pub(crate) fn summary(document: &Document) -> String {
    let s = &document.summary;
    let counts = [
        (s.placed, VerdictWord::Placed),
        (s.waits, VerdictWord::Waits),
        (s.refused, VerdictWord::Refused),
        (s.gave_up, VerdictWord::GaveUp),
    ];
    let counts = counts.iter().filter(|(number, word)| *number > 0 || *word == VerdictWord::Placed);
    let bounded = document.pods.iter().filter(|pod| is_bounded(pod)).count();
    let counts: Vec<String> = counts
        .map(|(n, word)| match (word, bounded) {
            (VerdictWord::Placed, 1..) => format!("{n} {} ({bounded} bounded)", words(*word)),
            _ => format!("{n} {}", words(*word)),
        })
        .collect();
    let compat = &document.compat;
    let gates = compat.feature_gates.iter().map(|(gate, on)| format!(", {gate}={on}"));
    let now = compat.now.as_ref();
    let now = now.map_or_else(String::new, |now| format!(", now {now}"));
    format!(
        "{}; {}, {}; Kubernetes {}{}{now}",
        counts.join(", "),
        count(s.nodes, "node", "nodes"),
        count(s.devices, "device", "devices"),
        compat.kubernetes_version,
        gates.collect::<String>(),
    )
}

/// Whether every pod is placed.
pub(crate) fn all_placed(document: &Document) -> bool {
    let all = |verdict: VerdictWord| verdict == VerdictWord::Placed;
    document.pods.iter().all(|pod| all(pod.verdict))
        && document.groups.iter().all(|group| all(group.verdict) && group.short == 0)
}

/// Whether something in the input is wrong.
pub(crate) fn any_error(document: &Document) -> bool {
    document.findings.iter().any(|finding| finding.severity == "error")
}

/// What the exit code will be, in words.
fn exit_meaning(document: &Document) -> String {
    match (all_placed(document), any_error(document)) {
        (true, false) => String::new(),
        (false, false) => "exit code 1: not everything is placed\n".to_owned(),
        (true, true) => "exit code 1: something in the input is wrong\n".to_owned(),
        (false, true) => {
            "exit code 1: not everything is placed, and something in the input is wrong\n"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    fn names(names: &[&str]) -> Vec<String> {
        ranges(&names.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn three_consecutive_names_become_a_range() {
        assert_eq!(names(&["gpu-0", "gpu-1", "gpu-2", "gpu-5"]), ["gpu-0…gpu-2", "gpu-5"]);
        assert_eq!(names(&["gpu-0", "gpu-1"]), ["gpu-0", "gpu-1"]);
        assert_eq!(names(&["a", "b", "c"]), ["a", "b", "c"]);
        assert_eq!(
            names(&["g-18446744073709551615", "g-0", "g-1"]),
            ["g-18446744073709551615", "g-0", "g-1"]
        );
        assert_eq!(names(&[]), Vec::<String>::new());
    }
}
