//! What is said first of a group that waits, without the rest of its document.

use phalanx_engine::Verdict;

use super::build::{culprit, reasons};
use super::members::name_member;
use crate::lower::{GroupInfo, PodInfo};
use crate::world::World;

/// What is said first of what is not placed of a group: the code of the reason and the sentence. Of a group
/// that starts whole it names the member that it is about.
pub(crate) fn first_reason(
    world: &World,
    info: &GroupInfo,
    (at, pod): (usize, &PodInfo),
    verdict: &Verdict,
) -> Option<(&'static str, String)> {
    let why = match verdict {
        Verdict::Waits(why) | Verdict::Refused(why) | Verdict::GaveUp(why, _) => why,
        Verdict::Placed { short: Some(short), .. } => &short.why,
        Verdict::Placed { short: None, .. } => return None,
    };
    let other = if info.gang { culprit(verdict) } else { None };
    let other = other.and_then(|role| Some((role, info.roles.get(role)?.pods.first()?)));
    let mut rows = reasons(world, info, other.map_or(pod, |(_, other)| other), why);
    if let Some((role, first)) = other.filter(|(role, _)| *role != at) {
        rows = name_member(info, (role, first), why, &rows);
    }
    rows.into_iter().next().map(|row| (row.code, row.message))
}
