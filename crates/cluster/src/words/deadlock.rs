//! Groups that started in part, in words.

use crate::deadlock::{Half, Whole};

use super::list;

/// A group in part, and those for whose end it waits: for any of them, or for all.
pub(crate) struct WaitsFor<'h> {
    pub(crate) half: &'h Half,
    pub(crate) others: Vec<&'h Half>,
    pub(crate) any: bool,
}

/// What a circle of groups comes to, what else would end it, and which release breaks it: the groups
/// that are ended and one that then starts.
pub(crate) fn deadlock(
    circle: &[WaitsFor<'_>],
    freed: &Whole,
    release: Option<(Vec<&Half>, &Half)>,
) -> String {
    let each = circle.iter().map(|one| format!("{} waits for what {}", part(one.half), holds(one)));
    let each: Vec<String> = each.collect();
    let cure = release.map_or_else(String::new, |(gone, starts)| {
        let names: Vec<String> = gone.iter().map(|one| one.group.to_string()).collect();
        let held = gone.iter().map(|one| one.holds).fold(0, u32::saturating_add);
        format!(
            " The least that breaks it is to end {}, whole ({}): {} starts then.",
            list(&names),
            pods(held),
            starts.group
        )
    });
    let beside = "Deadlock as long as the pods beside them run";
    let (what, then) = match freed {
        Whole::Nothing => ("Deadlock", "nothing else that ends would free one of them".to_owned()),
        Whole::Pod(pod) => {
            (beside, format!("the end of pod {pod} alone would free one, as may that of another"))
        }
        Whole::Several => {
            (beside, "only the end of several of those would free one of them".to_owned())
        }
        Whole::Unknown => (
            "Deadlock",
            "whether the end of pods beside them would free one was not tried".to_owned(),
        ),
    };
    format!(
        "{what}: {}. None of them can start while the others hold what they have, and {then}.{cure}",
        each.join("; ")
    )
}

/// A group that holds without progress and is in no circle: who is in its way, whether these wait for
/// each other, what that runs whole is, and whether it would start if it gave up what it holds itself.
pub(crate) fn half_started(of: &WaitsFor<'_>, stuck: bool, freed: &Whole, anew: bool) -> String {
    let mut said = match of.others.is_empty() {
        false => {
            let wait = if of.others.len() == 1 { "does" } else { "do" };
            let circle = if of.others.len() == 1 { "is" } else { "are" };
            match stuck {
                true => format!("It waits for what {}, which {circle} in a deadlock.", holds(of)),
                false => format!("It waits for what {}, which {wait} not wait for it.", holds(of)),
            }
        }
        true => "No other group that is not whole is in its way.".to_owned(),
    };
    match freed {
        Whole::Nothing | Whole::Unknown => {}
        Whole::Pod(pod) => said += &format!(" It starts once pod {pod} ends, which runs."),
        Whole::Several => said += " It starts once pods that run beside it have ended.",
    }
    if anew {
        said += " What it holds itself keeps it where it is: once its own pods are ended it starts \
                 whole.";
    }
    format!("{} does not start. {said}", part(of.half))
}

/// "podgroup/a or podgroup/b holds", "podgroup/a and podgroup/b hold".
fn holds(of: &WaitsFor<'_>) -> String {
    let names: Vec<String> = of.others.iter().map(|one| one.group.to_string()).collect();
    match (names.as_slice(), of.any) {
        ([one], _) => format!("{one} holds"),
        ([head @ .., last], true) => format!("{} or {last} holds", head.join(", ")),
        (all, _) => format!("{} hold", list(all)),
    }
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
        1 => " (1 device)".to_owned(),
        many => format!(" ({many} devices)"),
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
