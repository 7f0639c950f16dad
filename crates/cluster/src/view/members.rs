//! What is said of a group by one of its members: whose fault it is, and of which choice of parts.

use phalanx_engine::{Part, Reason, Why};

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

/// Where a role is of a part and any so many of several such parts start what they are under.
fn choice_of(world: &World, info: &GroupInfo, role: usize) -> Option<words::Choice> {
    let parts = &world.state().group(&info.key)?.parts;
    let has = |part: &&Part| part.least.iter().any(|of| usize::from(of.0) == role);
    let part = parts.all.iter().find(has)?;
    let (fewest, of) = (parts.fewest_under(part.under), parts.under(part.under).count());
    let under = part.under.and_then(|at| parts.all.get(usize::from(at)));
    let choice = words::Choice {
        part: part.name.clone(),
        under: under.map(|under| under.name.clone()),
        fewest,
        of,
    };
    (1..of).contains(&(fewest as usize)).then_some(choice)
}

/// The same rows where they are said of others: each names the member that it is about, where there are
/// others.
pub(super) fn name_member(
    world: &World,
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
    // Below the row of the group it is plain of which choice it is said.
    let choice = choice_of(world, info, role);
    let choice = choice.as_ref().filter(|_| rows.first().is_some_and(|row| row.code != short));
    for row in &mut rows {
        if row.code == short {
            continue;
        }
        row.message = match (choice, why.group()) {
            (Some(choice), _) => format!("{}: {}", words::of_choice(&who, choice), row.message),
            (None, Some(_)) => format!("{who}: {}", row.message),
            (None, None) => words::waits_with(&who, &row.message),
        };
    }
    rows
}
