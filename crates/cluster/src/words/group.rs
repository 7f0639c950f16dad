//! Sentences about groups that start whole: the place that comes nearest, and what is missing there.

use phalanx_engine::{GroupFacts, Name};

use super::sentence::Words;
use super::{count, list};
use crate::view::{LevelView, PlaceView};

/// Most domains that are named one by one.
const NAMED_MAX: usize = 6;

/// How many members of a group fit together, and where.
pub(super) fn short(facts: &GroupFacts, words: &Words) -> String {
    let pods = count(u64::from(facts.of), "pod", "pods");
    let pods = match &facts.part {
        Some(part) => format!("the {pods} that subgroup {part} lacks"),
        None => pods,
    };
    let beyond = facts.beyond && facts.part.is_none();
    let place =
        facts.place.as_ref().map(|(topology, path)| (path_of(path), topology.0.to_string()));
    let fit = match (place, fitting(facts)) {
        (Some((path, topology)), fit) if beyond => {
            format!("{fit} of {pods} have a place in {path} of topology {topology}")
        }
        (None, fit) if beyond => format!("{fit} of {pods} have a place"),
        (Some((path, topology)), fit) => format!(
            "best place is {path} of topology {topology}, where {fit} of {pods} fit together"
        ),
        (None, fit) => format!("{fit} of {pods} fit together"),
    };
    if facts.nowhere {
        let (whose, what) = match &facts.part {
            Some(_) => ("", "none of them is placed"),
            None => ("its ", "nothing of the group is placed"),
        };
        return format!(
            "no node is in a domain of the level that {whose}{pods} must be in, so that {what}"
        );
    }
    let fit = format!("{fit}{}{}", running(facts), chosen(facts));
    let role = words.role.as_ref().map(|role| format!(" (a {role})")).unwrap_or_default();
    // What the rows after this one say is of that pod, with the others where they would be.
    let slice = facts.segment.as_ref().map_or_else(String::new, |slice| {
        let level = words.level.as_deref().unwrap_or("level");
        let ranks = match slice.first == slice.last {
            true => format!("rank {}", slice.first),
            false => format!("ranks {}-{}", slice.first, slice.last),
        };
        format!(": its slice ({ranks}) must be in one {level}")
    });
    if let (Some(part), 1) = (&facts.part, facts.of) {
        return format!(
            "the pod that subgroup {part} lacks finds no place; the group runs without it{slice}"
        );
    }
    if facts.part.is_some() {
        return format!(
            "{fit}, and they start together or not at all; the group runs without them{slice}"
        );
    }
    if beyond {
        return format!(
            "{fit}; the group runs without this pod{role}, which is beyond those that it needs and \
             finds no place beside them{slice}"
        );
    }
    let next = match (facts.fit, slice.is_empty()) {
        (0, true) => String::new(),
        _ => format!("; with those seated, the next pod{role} finds no place{slice}"),
    };
    format!("{fit}, and the group starts whole or not at all{next}")
}

/// How many members fit. Where all do not, and but one is left over, that is the most, however it was found; and so
/// it is where not one finds a place.
fn fitting(facts: &GroupFacts) -> String {
    match facts.at_least && facts.fit > facts.running && facts.fit + 1 < facts.of {
        true => format!("at least {}", facts.fit),
        false => facts.fit.to_string(),
    }
}

/// Which of the members that fit together run already, for the end of a clause.
fn running(facts: &GroupFacts) -> String {
    let runs = if facts.running == 1 { "runs" } else { "run" };
    match facts.running {
        0 => String::new(),
        all if all == facts.fit && facts.place.is_some() => format!(", which {runs} there already"),
        all if all == facts.fit => format!(", which {runs} already"),
        some => format!(", of which {some} {runs} already"),
    }
}

/// With which subgroups so many members fit, for the end of a clause; nothing where there is no choice.
fn chosen(facts: &GroupFacts) -> String {
    let comma = if facts.running == 0 { "" } else { "," };
    match &*facts.chosen {
        [] => String::new(),
        [one] => {
            format!("{comma} if the group starts with subgroup {one}, the nearest that was tried")
        }
        all => {
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            format!(
                "{comma} if the group starts with subgroups {}, the nearest that were tried",
                list(&all)
            )
        }
    }
}

/// That too few pods of a group are there, or of a subgroup of it: `it needs 2 pods, of which 1 is there`.
pub(crate) fn too_few(part: Option<&str>, needs: u64, there: u64) -> String {
    format!("{} needs {}, {}", who(part), count(needs, "pod", "pods"), of_which(needs, there))
}

/// A group, or a subgroup of it, as it begins a clause.
fn who(part: Option<&str>) -> String {
    part.map_or_else(|| "it".to_owned(), |part| format!("its subgroup {part}"))
}

/// That a group of groups has too few of them: `it needs 2 groups, of which 1 is there`.
pub(crate) fn too_few_groups(needs: u32, there: usize) -> String {
    let groups = count(u64::from(needs), "group", "groups");
    format!("it needs {groups}, {}", of_which(u64::from(needs), there as u64))
}

/// That too few subgroups of a policy are there: `it needs 2 subgroups of p, of which 1 is there`.
pub(crate) fn too_few_subgroups(policy: &str, needs: u32, there: usize) -> String {
    let subgroups = count(u64::from(needs), "subgroup", "subgroups");
    format!("it needs {subgroups} of {policy}, {}", of_which(u64::from(needs), there as u64))
}

fn of_which(needs: u64, there: u64) -> String {
    match (needs, there) {
        (1, _) => "which is not there".to_owned(),
        (_, 0) => "of which none is there".to_owned(),
        (_, 1) => "of which 1 is there".to_owned(),
        (_, there) => format!("of which {there} are there"),
    }
}

/// That too few subgroups of a group, or of a subgroup of it, have the pods that they need: how many it needs,
/// of how many, and how many have enough. `first` says what one of them lacks.
pub(crate) fn too_few_parts(
    part: Option<&str>,
    (needs, of, enough): (u32, usize, usize),
    first: &str,
) -> String {
    let subgroups = count(of as u64, "subgroup", "subgroups");
    let enough = match enough {
        0 => "none has enough pods".to_owned(),
        1 => "1 has enough pods".to_owned(),
        some => format!("{some} have enough pods"),
    };
    let first = if first.is_empty() { String::new() } else { format!(": {first}") };
    format!("{} needs {needs} of its {subgroups}, of which {enough}{first}", who(part))
}

/// That a subgroup waits for one above it of which too few pods are there.
pub(crate) fn comes_after(part: &str, lacking: &str) -> String {
    format!("its subgroup {part} comes after {lacking}, of which too few pods are there")
}

/// Pods that are alike, as those of one role of a group: the first by name, or the role.
pub(crate) fn of_member(first: &str, role: &str, pods: usize) -> String {
    match (pods, role) {
        (0 | 1, _) => format!("pod {first}"),
        (_, "") => format!("pod {first} and {} like it", count(pods as u64 - 1, "pod", "pods")),
        (_, role) => format!("the {pods} pods of role {role}"),
    }
}

/// What a pod waits for that has no fault of its own: for another with which it starts.
pub(crate) fn waits_with(who: &str, message: &str) -> String {
    format!("the group starts whole and waits for {who}: {message}")
}

/// Most pods whose gates are named.
const GATED_MAX: usize = 4;

/// That gates keep a pod back: all of them.
pub(crate) fn gated(gates: &[String]) -> String {
    format!("scheduling gates keep it back: {}", gates.join(", "))
}

/// That gates of these pods keep back one that has none, or their group: each with its gates.
pub(crate) fn held_by_gates(held: &[(String, Vec<String>)]) -> String {
    let named = held.iter().take(GATED_MAX);
    let mut named: Vec<String> =
        named.map(|(pod, gates)| format!("pod {pod} has {}", list(gates))).collect();
    if let Some(more) = held.len().checked_sub(GATED_MAX).filter(|more| *more > 0) {
        named.push(format!("{more} more have some"));
    }
    format!(
        "it starts only together with others, and too few of those are without scheduling gates: {}",
        list(&named)
    )
}

/// A domain by its path from the widest level down: `block-1/rack-2`.
pub(crate) fn path_of(path: &[Option<Name>]) -> String {
    let parts = path.iter().map(|part| part.as_deref().unwrap_or("?"));
    parts.collect::<Vec<&str>>().join("/")
}

/// What a group uses of a tree: `racks: rack r2; node n3 and n4 (1 of 2 pairs of neighbours cross)`.
pub fn place(view: &PlaceView, pairs: usize) -> String {
    let level = |level: &LevelView| {
        let names = &level.domains;
        let domains = match names.len() {
            0 => "none".to_owned(),
            1..=NAMED_MAX => list(names),
            many => format!("{many} domains"),
        };
        let crossing = match &level.busiest {
            Some(busiest) if names.len() > 2 => format!(
                " ({} of {pairs} pairs of neighbours cross; most, {}, at {busiest})",
                level.crossings, level.busiest_crossings
            ),
            Some(_) => format!(" ({} of {pairs} pairs of neighbours cross)", level.crossings),
            None => String::new(),
        };
        format!("{} {domains}{crossing}", level.level)
    };
    let levels: Vec<String> = view.levels.iter().map(level).collect();
    let fragmentation = view
        .fragmentation
        .filter(|broken| broken.after > 0)
        .map(|broken| format!("; fragmentation {} before, {} after", broken.before, broken.after));
    let fragmentation = fragmentation.unwrap_or_default();
    format!("topology {}: {}{fragmentation}", view.topology, levels.join("; "))
}

/// The subgroups of a group that are not there: `subgroup b is not there`.
pub fn missing_subgroups(names: &[String]) -> Option<String> {
    let (what, are) = if names.len() == 1 { ("subgroup", "is") } else { ("subgroups", "are") };
    let named: Vec<String> = names.iter().take(NAMED_MAX).cloned().collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let all = if rest.is_empty() { list(&named) } else { named.join(", ") };
    (!names.is_empty()).then(|| format!("{what} {all}{rest} {are} not there"))
}

/// That the search for a place of a group ended before all was tried: `tried` is what came nearest by then.
/// Of a choice of parts so many are tried at most as well.
pub(crate) fn undecided(steps: u64, choice: bool, tried: &str) -> String {
    let steps = count(steps, "step", "steps");
    let (bound, fewer) = match choice {
        false => (format!("at its bound of {steps}"), "fewer pods"),
        true => {
            (format!("at its bound, of {steps} or of the choices of subgroups"), "fewer subgroups")
        }
    };
    format!(
        "undecided: the search ended {bound}, before every arrangement was tried, so that one may exist; \
         with {fewer}, pods that are more alike, or fewer rules between them it comes to its end; nearest so \
         far: {tried}"
    )
}
