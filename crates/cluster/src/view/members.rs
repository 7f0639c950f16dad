//! What is said of a group by one of its members: whose fault it is, and whose gates hold it; and whether there
//! is a choice of parts.

use phalanx_engine::{Gate, Reason, Why};

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

/// The scheduling gates that a pod has itself.
pub(super) fn gates_of(world: &World, pod: &PodInfo) -> Vec<String> {
    let spec = world
        .objects()
        .and_then(|objects| crate::lower::pod_spec(objects, &super::home_of(pod), pod.role));
    let gates = spec.iter().flat_map(|spec| &spec.scheduling_gates);
    gates.map(|gate| gate.name.clone()).collect()
}

/// Rows of one pod as they are said of it: where gates stand in its way, and it has none, whose these are.
pub(super) fn name_gates(world: &World, info: &GroupInfo, pod: &PodInfo, rows: &mut [ReasonView]) {
    for row in rows.iter_mut().filter(|row| row.code == Reason::Gated.code()) {
        row.message = match gates_of(world, pod).as_slice() {
            [] => held_by_gates(world, info),
            own => words::gated(own),
        };
    }
}

/// Rows of one pod as they are said of its group: gates are this pod's, or they hold the group.
pub(super) fn gates_of_group(
    world: &World,
    info: &GroupInfo,
    pod: &PodInfo,
    rows: &[ReasonView],
) -> Vec<ReasonView> {
    let gate = world.state().group(&info.key).map(|group| &group.gate);
    let own = match gate {
        Some(Gate::Gated(_)) => Vec::new(),
        Some(Gate::Open) | None => gates_of(world, pod),
    };
    let mut rows = rows.to_vec();
    for row in rows.iter_mut().filter(|row| row.code == Reason::Gated.code()) {
        row.message = match own.as_slice() {
            [] => held_by_gates(world, info),
            own => format!("pod {}: {}", pod.key.0.name, words::gated(own)),
        };
    }
    rows
}

fn held_by_gates(world: &World, info: &GroupInfo) -> String {
    let pods = info.roles.iter().flat_map(|role| &role.pods);
    let held = pods.map(|pod| (pod.key.0.name.to_string(), gates_of(world, pod)));
    words::held_by_gates(&held.filter(|(_, gates)| !gates.is_empty()).collect::<Vec<_>>())
}
