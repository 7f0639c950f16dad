//! Groups that started in part, in words.

use crate::deadlock::Half;

/// What a cycle of groups comes to, and which release breaks it: the group that is ended and one that
/// then starts.
pub(crate) fn deadlock(cycle: &[&Half], release: Option<(&Half, &Half)>) -> String {
    let next = |at: usize| &cycle[(at + 1) % cycle.len()].group;
    let each = cycle
        .iter()
        .enumerate()
        .map(|(at, half)| format!("{} waits for what {} holds", part(half), next(at)));
    let each: Vec<String> = each.collect();
    let cure = release.map_or_else(String::new, |(gone, starts)| {
        format!(
            " The least that breaks it is to end {}, whole ({}): {} starts then.",
            gone.group,
            pods(gone.holds),
            starts.group
        )
    });
    format!(
        "Deadlock: {}. None of them can start while the next holds what it has.{cure}",
        each.join("; ")
    )
}

/// A group that holds without progress and is in no cycle; `anew` where it would start if it gave up
/// what it holds itself.
pub(crate) fn half_started(half: &Half, waits_for: Option<&Half>, anew: bool) -> String {
    let waits = match waits_for {
        Some(other) => {
            format!("It waits for what {} holds, which does not wait for it.", other.group)
        }
        None => "No other group that is not whole is in its way.".to_owned(),
    };
    let own = match anew {
        true => {
            " What it holds itself keeps it where it is: once its own pods are ended it starts whole."
        }
        false => "",
    };
    format!("{} does not start. {waits}{own}", part(half))
}

/// That not all were looked at.
pub(crate) fn more_started_in_part(most: usize) -> String {
    format!(
        "More than {most} groups are not whole: which of the rest wait for each other was not tried."
    )
}

/// "podgroup/a has 4 pods of the 8 it starts with, and"
fn part(half: &Half) -> String {
    let devices = match half.devices {
        0 => String::new(),
        1 => " with 1 device".to_owned(),
        many => format!(" with {many} devices"),
    };
    format!(
        "{} has {} of the {} it starts with{devices}, and",
        half.group,
        pods(half.holds),
        half.needs
    )
}

fn pods(count: u32) -> String {
    if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") }
}
