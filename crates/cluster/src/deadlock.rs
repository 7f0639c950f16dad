//! Groups that started in part and can't go on: what each holds without progress, whether they wait
//! for each other, and the cheapest release of whole groups that lets another start.
//!
//! Who waits for whom is not guessed from what lies on which node: pods are ended in a fork of the
//! world, and the group is tried there before all others. It waits for each other group in part whose
//! end alone lets it start; where none does, for all of a set of them of which none can be left out.
//! Groups that wait for each other in a circle are a deadlock; one that waits for pods that run whole
//! merely waits.

use std::collections::BTreeSet;

use phalanx_engine::{GroupKey, Verdict};
use phalanx_objects::{Kind, Object, ObjectRef};

use crate::edit::{Edit, Target};
use crate::finding::{Finding, Severity};
use crate::plan::{Plan, starts_first};
use crate::words;
use crate::world::World;

/// Most groups that started in part of which every two are tried.
const HALF_MAX: usize = 12;

/// Most pods that run whole which are ended all at once to see whether a group waits for one.
const WHOLE_MAX: usize = 4_000;

/// Most of them that are tried one by one, to name the one that is waited for.
const NAMED_MAX: usize = 16;

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

/// For whose end a group waits.
#[derive(Clone, Debug, Default)]
struct Waits {
    /// Groups in part of which each alone is enough, or all together.
    others: BTreeSet<usize>,
    /// One of the others is enough.
    any: bool,
    /// Beside those it waits for pods that run whole.
    whole_too: bool,
    /// It starts anew if its own pods are ended.
    own: bool,
}

/// What runs whole and would let a group start by its end.
#[derive(Clone, Debug)]
pub(crate) enum Whole {
    /// Nothing would.
    Nothing,
    /// This pod would.
    Pod(String),
    /// Several pods together would.
    Several,
    /// There are too many to try.
    Unknown,
}

/// What is said of every group that started in part.
pub(crate) fn findings(world: &World, asked: &Plan) -> Vec<Finding> {
    let mut half = half(world, asked);
    if half.is_empty() {
        return Vec::new();
    }
    let cut = half.len() > HALF_MAX;
    half.truncate(HALF_MAX);
    let mut bench = Bench { fork: world.clone(), asked, whole: whole(world, &half) };
    let waits: Vec<Waits> = (0..half.len()).map(|at| bench.waits(&half, at)).collect();
    let circles = circles(&waits);
    let mut told: BTreeSet<usize> = BTreeSet::new();
    let mut findings = Vec::new();
    for at in 0..half.len() {
        if told.contains(&at) {
            continue;
        }
        let circle = circles.iter().find(|circle| circle.contains(&at));
        let message = match circle {
            Some(circle) => {
                told.extend(circle);
                let each = circle.iter().map(|one| words::WaitsFor {
                    half: &half[*one],
                    others: waits[*one].others.iter().map(|other| &half[*other]).collect(),
                    any: waits[*one].any,
                });
                let freed = circle.iter().map(|one| bench.freed_by(&half[*one]));
                let freed = freed.into_iter().find(|freed| !matches!(freed, Whole::Nothing));
                let freed = freed.unwrap_or(Whole::Nothing);
                words::deadlock(&each.collect::<Vec<_>>(), &freed, release(&half, &waits, circle))
            }
            None => {
                let others = waits[at].others.iter();
                let stuck = waits[at].others.iter().any(|o| circles.iter().any(|c| c.contains(o)));
                let of = words::WaitsFor {
                    half: &half[at],
                    others: others.map(|other| &half[*other]).collect(),
                    any: waits[at].any,
                };
                let freed = match waits[at].others.is_empty() || waits[at].whole_too {
                    true => bench.freed_by(&half[at]),
                    false => Whole::Nothing,
                };
                words::half_started(&of, stuck, &freed, waits[at].own)
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
        let needs = match why.group() {
            Some(facts) => facts.of,
            None => world.lowering().needed(group),
        };
        Some(Half {
            group: group.clone(),
            holds,
            needs: Some(needs).filter(|needs| *needs > holds)?,
            devices: members.iter().fold(0, |sum, member| member.devices.saturating_add(sum)),
            priority: world.state().priority(group).unwrap_or_default(),
            pods: members.into_iter().map(|member| member.pod).collect(),
        })
    });
    half.collect()
}

/// The pods on nodes that are of no group in part.
fn whole(world: &World, half: &[Half]) -> Vec<Target> {
    let Some(objects) = world.objects() else { return Vec::new() };
    let in_part: BTreeSet<(&str, &str)> = half
        .iter()
        .flat_map(|one| one.pods.iter().map(|pod| (one.group.object.namespace.as_str(), &**pod)))
        .collect();
    let runs = |object: &&Object| {
        let Object::Pod(pod) = object else { return false };
        let name = (pod.metadata.namespace.as_str(), pod.metadata.name.as_str());
        crate::lower::node_of(pod).is_some()
            && !pod.status.phase.is_terminal()
            && !in_part.contains(&name)
    };
    let pods = objects.of_kind(Kind::Pod).filter(runs);
    pods.map(|object| Target::from(&object.reference())).collect()
}

/// Where pods are ended to see who starts then.
struct Bench<'a> {
    fork: World,
    asked: &'a Plan,
    whole: Vec<Target>,
}

impl Bench<'_> {
    /// Whether a group starts once these are ended.
    fn starts(&mut self, half: &Half, mut objects: Vec<Target>) -> bool {
        let options = &self.asked.options;
        if objects.is_empty() {
            return starts_first(&mut self.fork, &half.group, options);
        }
        objects.sort();
        objects.dedup();
        let edit = Edit::Without { objects };
        let starts = |world: &mut World| starts_first(world, &half.group, options);
        self.fork.with_edit(&edit, "", starts).unwrap_or_default()
    }

    /// For whom one of the groups waits.
    fn waits(&mut self, half: &[Half], at: usize) -> Waits {
        let own = self.starts(&half[at], targets(&half[at]));
        let others: Vec<usize> = (0..half.len()).filter(|other| *other != at).collect();
        let alone = others.iter().copied();
        let alone: BTreeSet<usize> =
            alone.filter(|other| self.starts(&half[at], targets(&half[*other]))).collect();
        if !alone.is_empty() || others.is_empty() {
            return Waits { others: alone, any: true, whole_too: false, own };
        }
        let of = |some: &[usize]| some.iter().flat_map(|o| targets(&half[*o])).collect::<Vec<_>>();
        let mut beside = Vec::new();
        let mut whole_too = false;
        if !self.starts(&half[at], of(&others)) {
            if self.whole.len() > WHOLE_MAX {
                return Waits { own, ..Waits::default() };
            }
            beside.clone_from(&self.whole);
            whole_too = true;
            if !self.starts(&half[at], [of(&others), beside.clone()].concat()) {
                return Waits { own, ..Waits::default() };
            }
        }
        // Of those that are enough together, none that can be left out.
        let mut kept = others;
        let mut next = 0;
        while next < kept.len() {
            let mut fewer = kept.clone();
            fewer.remove(next);
            if self.starts(&half[at], [of(&fewer), beside.clone()].concat()) {
                kept = fewer;
            } else {
                next += 1;
            }
        }
        Waits { others: kept.into_iter().collect(), any: false, whole_too, own }
    }

    /// What runs whole and by its end alone lets a group start.
    fn freed_by(&mut self, half: &Half) -> Whole {
        if self.whole.len() > WHOLE_MAX {
            return Whole::Unknown;
        }
        let all = self.whole.clone();
        if all.is_empty() || !self.starts(half, all.clone()) {
            return Whole::Nothing;
        }
        let few = if all.len() <= NAMED_MAX { all.as_slice() } else { &[] };
        let one = few.iter().find(|one| self.starts(half, vec![(*one).clone()]));
        one.map_or(Whole::Several, |one| Whole::Pod(one.name.clone()))
    }
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

/// The groups that wait for each other, each set of them once.
fn circles(waits: &[Waits]) -> Vec<BTreeSet<usize>> {
    let all = 0..waits.len();
    let reach: Vec<BTreeSet<usize>> = all.clone().map(|from| reached(waits, from)).collect();
    let mut circles: Vec<BTreeSet<usize>> = Vec::new();
    for at in all.clone() {
        let with: BTreeSet<usize> =
            all.clone().filter(|o| reach[at].contains(o) && reach[*o].contains(&at)).collect();
        if with.len() > 1 && !circles.contains(&with) {
            circles.push(with);
        }
    }
    circles
}

/// Those for which a group waits, and for which they wait, and so on.
fn reached(waits: &[Waits], from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for next in &waits[at].others {
            if found.insert(*next) {
                open.push(*next);
            }
        }
    }
    found
}

/// The groups of a circle that cost least to end, and one that then starts: of each of its members what
/// it waits for is such a set.
fn release<'h>(
    half: &'h [Half],
    waits: &[Waits],
    circle: &BTreeSet<usize>,
) -> Option<(Vec<&'h Half>, &'h Half)> {
    let mut sets: Vec<(Vec<usize>, usize)> = Vec::new();
    for at in circle {
        let of = &waits[*at];
        if of.whole_too {
            continue;
        }
        match of.any {
            true => sets.extend(of.others.iter().map(|other| (vec![*other], *at))),
            false => sets.push((of.others.iter().copied().collect(), *at)),
        }
    }
    let harm = |(gone, starts): &(Vec<usize>, usize)| {
        let of = || gone.iter().map(|at| &half[*at]);
        let priority = of().map(|one| one.priority).max();
        let pods: u32 = of().map(|one| one.holds).fold(0, u32::saturating_add);
        let devices: u32 = of().map(|one| one.devices).fold(0, u32::saturating_add);
        let names: Vec<&GroupKey> = of().map(|one| &one.group).collect();
        (priority, pods, devices, names, *starts)
    };
    let least = sets.iter().min_by_key(|set| harm(set))?;
    Some((least.0.iter().map(|at| &half[*at]).collect(), &half[least.1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(of: &[&[usize]]) -> Vec<Waits> {
        let one = |others: &&[usize]| Waits {
            others: others.iter().copied().collect(),
            any: true,
            ..Waits::default()
        };
        of.iter().map(one).collect()
    }

    #[test]
    fn who_waits_for_one_of_a_circle_is_not_of_it() {
        assert_eq!(circles(&waits(&[&[1], &[0], &[0]])), [BTreeSet::from([0, 1])]);
    }

    #[test]
    fn three_in_a_ring_are_one_circle() {
        assert_eq!(circles(&waits(&[&[1], &[2], &[0]])), [BTreeSet::from([0, 1, 2])]);
    }

    #[test]
    fn a_chain_is_no_circle() {
        assert!(circles(&waits(&[&[1], &[2], &[]])).is_empty());
    }
}
