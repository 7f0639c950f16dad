//! Groups that started in part and can't go on: what each holds without progress, whether they wait
//! for each other, and the cheapest release of a whole group that lets another start.
//!
//! Who waits for whom is not guessed from what lies on which node: for every two such groups the pods
//! of one are ended in a fork of the world and the other is planned there. A cycle of groups each of
//! which would start if the next gave up what it holds is a deadlock; a group that waits for one that
//! runs whole merely waits.

use phalanx_engine::{GroupKey, Verdict};
use phalanx_objects::{Kind, ObjectRef};

use crate::edit::{Edit, Target};
use crate::finding::{Finding, Severity};
use crate::plan::{Plan, plan};
use crate::words;
use crate::world::World;

/// Most groups that started in part of which every two are tried.
const HALF_MAX: usize = 12;

/// A group of which some members run, and too few for it to start.
#[derive(Clone, Debug)]
pub(crate) struct Half {
    pub(crate) group: GroupKey,
    /// Members on nodes, those that are being deleted left out.
    pub(crate) holds: u32,
    /// Members without which it does not start.
    pub(crate) needs: u32,
    /// Devices that its members hold by their claims.
    pub(crate) devices: u32,
    priority: i32,
    pods: Vec<String>,
}

/// What is said of every group that started in part.
pub(crate) fn findings(world: &World, asked: &Plan) -> Vec<Finding> {
    let mut half = half(world, asked);
    let cut = half.len() > HALF_MAX;
    half.truncate(HALF_MAX);
    let waits = waits_for(world, asked, &half);
    let mut told = vec![false; half.len()];
    let mut findings = Vec::new();
    for at in 0..half.len() {
        if told[at] {
            continue;
        }
        let message = match cycle(&waits, at) {
            Some(cycle) => {
                cycle.iter().for_each(|one| told[*one] = true);
                let of: Vec<&Half> = cycle.iter().map(|one| &half[*one]).collect();
                words::deadlock(&of, release(&half, &waits, &cycle))
            }
            None => {
                let for_whom = (0..half.len()).find(|other| *other != at && waits[at][*other]);
                let own = waits[at][at];
                words::half_started(&half[at], for_whom.map(|other| &half[other]), own)
            }
        };
        findings.extend(finding(world, &half[at], message));
    }
    if cut && let Some(first) = half.first() {
        findings.extend(finding(world, first, words::more_started_in_part(HALF_MAX)));
    }
    findings
}

fn finding(world: &World, half: &Half, message: String) -> Option<Finding> {
    let info = world.lowering().group(&half.group)?;
    let object = ObjectRef {
        kind: info.kind,
        namespace: half.group.object.namespace.to_string(),
        name: half.group.object.name.to_string(),
    };
    Some(Finding {
        severity: Severity::Warning,
        object: Some(object),
        file: info.source.file.clone(),
        line: info.source.line,
        path: String::new(),
        message,
    })
}

/// The groups that started in part, in queue order.
fn half(world: &World, asked: &Plan) -> Vec<Half> {
    let waiting = asked.decision.verdicts.iter().filter_map(|(group, verdict)| match verdict {
        Verdict::Waits(why) | Verdict::Refused(why) | Verdict::GaveUp(why, _) => Some((group, why)),
        Verdict::Placed { .. } => None,
    });
    let half = waiting.filter_map(|(group, why)| {
        let members = world.lowering().running_members(group);
        if members.is_empty() {
            return None;
        }
        let holds = u32::try_from(members.len()).unwrap_or(u32::MAX);
        Some(Half {
            group: group.clone(),
            holds,
            needs: why.group().map(|facts| facts.of).filter(|needs| *needs > holds)?,
            devices: members.iter().fold(0, |sum, member| member.devices.saturating_add(sum)),
            priority: world.state().priority(group).unwrap_or_default(),
            pods: members.into_iter().map(|member| member.pod).collect(),
        })
    });
    half.collect()
}

/// By group and other group, whether the one would start if the other's pods were ended; by a group
/// and itself, whether it would start whole if it began anew.
fn waits_for(world: &World, asked: &Plan, half: &[Half]) -> Vec<Vec<bool>> {
    let mut waits = vec![vec![false; half.len()]; half.len()];
    let mut fork = world.clone();
    for (gone, other) in half.iter().enumerate() {
        let edit = Edit::Without { objects: targets(other) };
        let decided = fork.with_edit(&edit, "", |world| plan(world, &asked.options).decision);
        let Ok(decision) = decided else { continue };
        for (group, verdict) in &decision.verdicts {
            let at = half.iter().position(|one| one.group == *group);
            if let Some(at) = at {
                waits[at][gone] = matches!(verdict, Verdict::Placed { .. });
            }
        }
    }
    waits
}

fn targets(half: &Half) -> Vec<Target> {
    let namespace = half.group.object.namespace.to_string();
    let pod = |name: &String| {
        Target::from(&ObjectRef {
            kind: Kind::Pod,
            namespace: namespace.clone(),
            name: name.clone(),
        })
    };
    half.pods.iter().map(pod).collect()
}

/// The shortest way from a group over those that it waits for back to itself.
fn cycle(waits: &[Vec<bool>], from: usize) -> Option<Vec<usize>> {
    let mut before: Vec<Option<usize>> = vec![None; waits.len()];
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        if at != from && waits[at][from] {
            let mut way = vec![at];
            while way.last() != Some(&from) {
                way.push(before[*way.last()?]?);
            }
            way.reverse();
            return Some(way);
        }
        for next in (0..waits.len()).filter(|next| waits[at][*next]) {
            if next != from && before[next].is_none() {
                before[next] = Some(at);
                queue.push_back(next);
            }
        }
    }
    None
}

/// Of a cycle, the group that costs least to end, and one that then starts.
fn release<'h>(
    half: &'h [Half],
    waits: &[Vec<bool>],
    cycle: &[usize],
) -> Option<(&'h Half, &'h Half)> {
    let harm = |at: &&usize| {
        let one = &half[**at];
        (one.priority, one.holds, one.devices, &one.group)
    };
    let gone = *cycle.iter().min_by_key(harm)?;
    let starts = cycle.iter().find(|at| **at != gone && waits[**at][gone])?;
    Some((&half[gone], &half[*starts]))
}
