//! The one caller of [`decide`](phalanx_engine::Engine::decide): commands, what-if questions, cures,
//! simulations and the controller all plan here.

use phalanx_engine::{
    Change, Decision, Effort, FlightId, Group, GroupKey, NodeKey, Policy, Report, Seat, Timestamp,
    Verdict,
};

use crate::world::World;

/// What a plan is asked with, besides the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanOptions {
    /// The time of the question; none where none was given or read.
    pub now: Option<Timestamp>,
    /// How to choose.
    pub policy: Policy,
    /// Bound of the search.
    pub effort: Effort,
}

/// A decision with what it was asked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it was asked with.
    pub options: PlanOptions,
    /// What was decided.
    pub decision: Decision,
}

/// Decides everything that is pending. The world is as before, but for what the engine remembers.
pub fn plan(world: &mut World, options: &PlanOptions) -> Plan {
    let PlanOptions { now, policy, effort } = *options;
    let decision = world.engine().decide(&policy, now.unwrap_or_default(), effort);
    Plan { options: *options, decision }
}

/// The whole account for one group: every node, every check, as the first pod of this role meets them, else as
/// its first does. None if nothing of it is pending.
pub fn why(
    world: &mut World,
    group: &GroupKey,
    role: Option<u16>,
    options: &PlanOptions,
) -> Option<Report> {
    let now = options.now.unwrap_or_default();
    world.engine().probe(&options.policy, (group, role), now, options.effort)
}

/// What would become of a group now if groups had these priorities, none of which is changed for good;
/// none where nothing of it is pending.
fn verdict_with(
    world: &mut World,
    group: &GroupKey,
    priorities: &[(&GroupKey, i32)],
    options: &PlanOptions,
) -> Option<Verdict> {
    let found = |(key, priority): &(&GroupKey, i32)| {
        let own = world.state().group(key)?.clone();
        Some(((*key).clone(), own, *priority))
    };
    let all: Vec<(GroupKey, Group, i32)> = priorities.iter().filter_map(found).collect();
    let other = |(key, own, priority): &(GroupKey, Group, i32)| {
        Change::Group(key.clone(), Some(Group { priority: *priority, ..own.clone() }))
    };
    world.engine().apply(all.iter().map(other).collect::<Vec<_>>());
    let report = why(world, group, None, options);
    let back = |(key, own, _): (GroupKey, Group, i32)| Change::Group(key, Some(own));
    world.engine().apply(all.into_iter().map(back).collect::<Vec<_>>());
    report.map(|report| report.verdict)
}

/// What would become of a group now if it came before all others; none where nothing of it is pending.
/// The world is as before.
pub(crate) fn verdict_first(
    world: &mut World,
    group: &GroupKey,
    options: &PlanOptions,
) -> Option<Verdict> {
    verdict_with(world, group, &[(group, i32::MAX)], options)
}

/// What would become of a group in its turn if this other one came after all others; none where nothing of
/// it is pending. The world is as before.
pub(crate) fn verdict_before(
    world: &mut World,
    group: &GroupKey,
    other: &GroupKey,
    options: &PlanOptions,
) -> Option<Verdict> {
    verdict_with(world, group, &[(other, i32::MIN)], options)
}

/// The account of one node: what it is to every pending group, in queue order and role by role.
pub fn why_node(world: &mut World, node: &NodeKey, options: &PlanOptions) -> Vec<Report> {
    let now = options.now.unwrap_or_default();
    world.engine().probe_node(&options.policy, node, now, options.effort)
}

/// The account for what is missing of a group that is placed in part: as [`why`], with the seats
/// that it gets counted as taken.
pub fn why_short(
    world: &World,
    group: &GroupKey,
    role: Option<u16>,
    seats: &[Seat],
    options: &PlanOptions,
) -> Option<Report> {
    let mut fork = world.clone();
    let flight = FlightId(u64::MAX);
    fork.engine().apply([Change::Assume(flight, group.clone(), seats.to_vec())]);
    why(&mut fork, group, role, options)
}
