//! What is said of a group by one of its members: whose fault it is; and whether there is a
//! choice of parts.

use phalanx_engine::{Reason, Why};

use super::ReasonView;
use crate::lower::{GroupInfo, PodInfo};
use crate::words;
use crate::world::World;

/// Whether there is a choice of parts with which the group starts.
pub(super) fn has_choice(world: &World, info: &GroupInfo) -> bool {
    let Some(group) = world.state().group(&info.key) else { return false };
    let is_choice = |of: Option<u16>| {
        (1..group.parts.under(of).count()).contains(&(group.parts.fewest_under(of) as usize))
    };
    is_choice(None) || (0_u16..).zip(&group.parts.all).any(|(at, _)| is_choice(Some(at)))
}

/// The same rows where they are said of others: each names the member that it is about, where there are
/// others.
pub(super) fn name_member(
    info: &GroupInfo,
    (role, first): (usize, &PodInfo),
    why: &Why,
    rows: &[ReasonView],
) -> Vec<ReasonView> {
    let mut rows = rows.to_vec();
    let with_pods = info.roles.iter().filter(|role| !role.pods.is_empty()).count();
    if with_pods < 2 {
        return rows;
    }
    let pods = info.roles.get(role).map_or(0, |role| role.pods.len());
    let who = words::of_member(&first.key.0.name, &first.role_name, pods);
    let short = Reason::GroupShort.code();
    for row in rows.iter_mut().filter(|row| row.code != short) {
        row.message = match why.group() {
            Some(_) => format!("{who}: {}", row.message),
            None => words::waits_with(&who, &row.message),
        };
    }
    rows
}
