//! Groups that started in part and can't go on: what each holds without progress, whether they wait
//! for each other, and the cheapest release of whole groups that lets another start.
//!
//! Who waits for whom is not guessed from what lies on which node: pods are ended in a fork of the
//! world, and the group is tried there before all others, so that what a plan starts takes no room. It
//! waits for each other group in part whose end alone lets it start; where none does, for all of a set of
//! them of which none can be left out. Groups that wait for each other in a circle are a deadlock; one that
//! waits for pods that run whole merely waits, and so does one for which there is room now, which others
//! that come before it take.

use std::collections::BTreeSet;

use phalanx_engine::{GroupKey, Name, PodKey, Short, Verdict};
use phalanx_objects::core::PodPhase;
use phalanx_objects::{Kind, Object, ObjectRef};

use crate::edit::{Edit, Target};
use crate::finding::{Finding, Severity};
use crate::lower::RunningMember;
use crate::plan::{Plan, verdict_before, verdict_first, why};
use crate::words;
use crate::world::World;

/// Nodes looked at and pods ended in all tries of one question; a try that would begin beyond it is not made.
const STEPS_MAX: u64 = 2_000_000;

/// Most of the pods that run whole which are tried one by one, to name the one that is waited for.
const NAMED_MAX: usize = 16;

/// A group of which some members run, and too few for it to start; or a part of it that need not start, and
/// of which as little runs.
#[derive(Clone, Debug)]
pub(crate) struct Half {
    pub(crate) group: GroupKey,
    /// The part, where it is one.
    pub(crate) part: Option<Name>,
    /// Members on nodes, those that are being deleted left out.
    pub(crate) holds: u32,
    /// Members without which it does not start.
    pub(crate) needs: u32,
    /// Devices that its members hold by their claims.
    pub(crate) devices: u32,
    /// Pods of it wait; else nobody is there who could make it whole.
    pub(crate) waits: bool,
    pub(crate) priority: i32,
    pods: Vec<String>,
}

impl Half {
    /// Whether it starts by what became of its group; none where the search gave up.
    fn starts_by(&self, verdict: Option<&Verdict>) -> Option<bool> {
        match verdict {
            Some(Verdict::Placed { short, .. }) => {
                Some(self.part.as_ref().is_none_or(|part| {
                    short.as_ref().is_none_or(|short| !short.parts.contains(part))
                }))
            }
            Some(Verdict::GaveUp(..)) => None,
            Some(Verdict::Waits(_) | Verdict::Refused(_)) | None => Some(false),
        }
    }
}

#[cfg(test)]
impl Half {
    /// A group of two pods of which one runs.
    pub(crate) fn of_test(group: GroupKey) -> Self {
        Self {
            group,
            part: None,
            holds: 1,
            needs: 2,
            devices: 0,
            waits: true,
            priority: 0,
            pods: Vec::new(),
        }
    }
}

/// For whose end a group waits.
#[derive(Clone, Debug, Default)]
struct Waits {
    /// Groups in part of which each alone is enough, or all together.
    others: BTreeSet<usize>,
    /// One of the others is enough.
    any: bool,
    /// Beside those it waits for the end of these, which run whole: none can be left out, unless they are many.
    beside: Vec<Target>,
    /// It starts anew if its own pods are ended.
    own: bool,
    /// It would start now, but for those that come before it.
    ahead: Option<Ahead>,
    /// Not all was tried.
    cut: bool,
}

/// What runs whole and would let a group start by its end.
#[derive(Clone, Debug)]
pub(crate) enum Whole {
    /// Nothing would.
    Nothing,
    /// This pod would; others that come before the group take the room that it leaves, where that is so.
    Pod(String, bool),
    /// Several pods together would.
    Several,
    /// It was not tried.
    Unknown,
}

/// Why nothing that runs outside its group would let one that started in part start by its end.
#[derive(Clone, Debug)]
pub(crate) enum Stuck {
    /// Other pods of its own group have the room, or get it by the plan: without these it starts.
    Siblings(Vec<String>),
    /// Something else.
    Otherwise,
}

/// Who comes before a group and takes the room that there is for it.
#[derive(Clone, Debug)]
pub(crate) enum Ahead {
    /// This one alone: if it came after, the group would start.
    One(GroupKey, i32),
    /// Several together, or it was not found out who: all that are placed before it, the first first.
    Several(Vec<GroupKey>),
}

/// A release that breaks a circle.
pub(crate) struct Release<'h> {
    /// The groups that are ended, whole.
    pub(crate) gone: Vec<&'h Half>,
    /// One that then can start.
    pub(crate) starts: &'h Half,
    /// Others that come before it take the room that this gives.
    pub(crate) taken: bool,
}

/// What is said of every group that started in part.
pub(crate) fn findings(world: &World, asked: &Plan) -> Vec<Finding> {
    let half = half(world, asked);
    if half.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let tries = half.iter().any(|one| one.waits);
    let whole = if tries { running_beside(world, &half) } else { Vec::new() };
    let nodes = world.nodes_len() as u64;
    let mut bench = Bench { fork: None, world, asked, whole, nodes, steps: STEPS_MAX, open: false };
    let waits: Vec<Waits> = (0..half.len()).map(|at| bench.waits(&half, at)).collect();
    let circles = circles(&waits);
    let mut told: BTreeSet<usize> = BTreeSet::new();
    for at in 0..half.len() {
        if told.contains(&at) {
            continue;
        }
        let circle = circles.iter().find(|circle| circle.contains(&at));
        let message = match circle {
            Some(circle) => {
                told.extend(circle);
                bench.circle(&half, &waits, circle)
            }
            None => {
                let stuck = waits[at].others.iter().any(|o| circles.iter().any(|c| c.contains(o)));
                let of = &waits[at];
                let asks = of.ahead.is_none() && of.others.is_empty();
                let freed = if asks { bench.freed_by(&half[at]) } else { Whole::Nothing };
                let cause = match freed {
                    Whole::Nothing if asks && !of.cut => Some(bench.cause(&half[at])),
                    Whole::Nothing | Whole::Pod(..) | Whole::Several | Whole::Unknown => None,
                };
                let of = waits_for(&half, &waits, at);
                words::half_started(&of, stuck, &freed, cause.as_ref())
            }
        };
        findings.extend(finding(world, &half[at], message));
    }
    findings
}

fn waits_for<'h>(half: &'h [Half], waits: &'h [Waits], at: usize) -> words::WaitsFor<'h> {
    let of = &waits[at];
    words::WaitsFor {
        half: &half[at],
        others: of.others.iter().map(|other| &half[*other]).collect(),
        any: of.any,
        beside: of.beside.iter().map(|pod| pod.name.as_str()).collect(),
        own: of.own,
        ahead: of.ahead.as_ref(),
        cut: of.cut,
    }
}

fn finding(world: &World, half: &Half, message: String) -> Option<Finding> {
    let lowering = world.lowering();
    let info = lowering.group(&half.group)?;
    let object = lowering.object_of_group(&half.group);
    let source = lowering.source(&object).cloned().unwrap_or(info.source);
    Some(Finding {
        severity: Severity::Warning,
        object: Some(object),
        file: source.file,
        line: source.line,
        path: String::new(),
        message,
    })
}

/// The groups that started in part: those that wait in queue order, then those of which no pod waits by
/// name. After each its parts that need not start, where it has started itself.
fn half(world: &World, asked: &Plan) -> Vec<Half> {
    let lowering = world.lowering();
    let verdicts = &asked.decision.verdicts;
    let judged: BTreeSet<&GroupKey> = verdicts.iter().map(|(group, _)| group).collect();
    let waiting = verdicts.iter().map(|(group, verdict)| (group, Some(verdict)));
    let idle = lowering.gangs().filter(|group| !judged.contains(group)).map(|group| (group, None));
    let mut all = Vec::new();
    for (group, verdict) in waiting.chain(idle) {
        if !lowering.is_gang(group) {
            continue;
        }
        let (short, needs): (Option<&Short>, u32) = match verdict {
            Some(Verdict::Placed { short, .. }) => (short.as_ref(), 0),
            Some(Verdict::Waits(why) | Verdict::Refused(why) | Verdict::GaveUp(why, _)) => {
                let told = why.group().filter(|facts| facts.part.is_none() && !facts.beyond);
                (None, told.map_or_else(|| lowering.needed(group), |facts| facts.of))
            }
            None => (None, lowering.needed(group)),
        };
        let members = lowering.running_members(group);
        let one = |part: Option<&Name>, members: &[&RunningMember], needs: u32, waits: bool| Half {
            group: group.clone(),
            part: part.cloned(),
            holds: u32::try_from(members.len()).unwrap_or(u32::MAX),
            needs,
            devices: members.iter().fold(0, |sum, member| member.devices.saturating_add(sum)),
            waits,
            priority: world.state().priority(group).unwrap_or_default(),
            pods: members.iter().map(|member| member.pod.clone()).collect(),
        };
        // Who has ended well, or is another scheduler's, may have been all that is missing.
        let others = if verdict.is_none() { elsewhere(world, group) } else { 0 };
        if (1..needs as usize).contains(&members.len()) {
            if members.len() + others >= needs as usize {
                continue;
            }
            all.push(one(None, &members.iter().collect::<Vec<_>>(), needs, verdict.is_some()));
            continue;
        }
        let placed = matches!(verdict, Some(Verdict::Placed { .. }));
        for part in lowering.halves(group).into_iter().filter(|_| others == 0) {
            // What is placed now makes it whole.
            let missing = short.is_some_and(|short| short.parts.contains(&part.name));
            if part.waits && placed && !missing {
                continue;
            }
            let of = members.iter().filter(|member| part.pods.contains(&member.pod));
            let of: Vec<&RunningMember> = of.collect();
            all.push(one(Some(&part.name), &of, part.needs, part.waits));
        }
    }
    all
}

/// Pods of a group that count neither as running nor as missing: that have not failed, and do not run here
/// or are about to go.
fn elsewhere(world: &World, group: &GroupKey) -> usize {
    let lowering = world.lowering();
    let failed = |pod: &PodKey| {
        let object = ObjectRef {
            kind: Kind::Pod,
            namespace: pod.0.namespace.to_string(),
            name: pod.0.name.to_string(),
        };
        let pod = world.objects().and_then(|objects| objects.get(&object));
        matches!(pod, Some(Object::Pod(pod)) if pod.status.phase == PodPhase::Failed)
    };
    let others = lowering.unseen_of_gang(group).into_iter().filter(|pod| !failed(pod));
    others.count() + lowering.leaving_members(group)
}

/// The pods on nodes that are of no group or part that is there in part, each with its group.
fn running_beside(world: &World, half: &[Half]) -> Vec<(Target, Option<GroupKey>)> {
    let Some(objects) = world.objects() else { return Vec::new() };
    let in_part: BTreeSet<Target> = half.iter().flat_map(targets).collect();
    let runs = |object: &&Object| {
        let Object::Pod(pod) = object else { return false };
        crate::lower::node_of(pod).is_some()
            && !pod.status.phase.is_terminal()
            && !in_part.contains(&Target::from(&object.reference()))
    };
    let of = |object: &Object| {
        let reference = object.reference();
        let pod = crate::lower::pod_key(&reference.namespace, &reference.name);
        (Target::from(&reference), world.lowering().gang_of(&pod).cloned())
    };
    objects.of_kind(Kind::Pod).filter(runs).map(of).collect()
}

/// Where pods are ended to see who starts then.
struct Bench<'a> {
    world: &'a World,
    /// Made when something is tried for the first time.
    fork: Option<Box<World>>,
    asked: &'a Plan,
    /// What runs and is there whole, each with its group.
    whole: Vec<(Target, Option<GroupKey>)>,
    nodes: u64,
    /// What may still be spent on tries.
    steps: u64,
    /// A try since this was last looked at has found no answer.
    open: bool,
}

impl Bench<'_> {
    /// What runs whole and is not of a group.
    fn whole_beside(&self, half: &Half) -> Vec<Target> {
        let others = self.whole.iter().filter(|(_, of)| of.as_ref() != Some(&half.group));
        others.map(|(pod, _)| pod.clone()).collect()
    }

    /// Why a group does not start by the end of anything outside it.
    fn cause(&mut self, half: &Half) -> Stuck {
        let own = self.whole.iter().filter(|(_, of)| of.as_ref() == Some(&half.group));
        let mut own: Vec<Target> = own.map(|(pod, _)| pod.clone()).collect();
        // Those that the plan seats take room as well.
        let seated = crate::view::seats_of(&self.asked.decision, &half.group).iter();
        let seated = seated.filter_map(|seat| seat.pod.as_ref()).map(|pod| {
            let (namespace, name) = (pod.0.namespace.to_string(), pod.0.name.to_string());
            Target::from(&ObjectRef { kind: Kind::Pod, namespace, name })
        });
        own.extend(seated);
        if own.is_empty() || self.starts(half, own.clone()) != Some(true) {
            return Stuck::Otherwise;
        }
        let least = self.fewest_pods(own, |bench, some| bench.starts(half, some.to_vec()));
        Stuck::Siblings(least.into_iter().map(|pod| pod.name).collect())
    }

    /// Of pods that are enough together, some of which none can be left out; all where they are many, or not
    /// all of that can be tried.
    fn fewest_pods(
        &mut self,
        all: Vec<Target>,
        enough: impl FnMut(&mut Self, &[Target]) -> Option<bool>,
    ) -> Vec<Target> {
        if all.len() > NAMED_MAX {
            return all;
        }
        self.none_to_spare(all.clone(), enough).unwrap_or(all)
    }

    /// Of what is enough together, some of which nothing can be left out; none where not all of that can be tried.
    fn none_to_spare<T: Clone>(
        &mut self,
        mut all: Vec<T>,
        mut enough: impl FnMut(&mut Self, &[T]) -> Option<bool>,
    ) -> Option<Vec<T>> {
        let mut next = 0;
        while next < all.len() {
            let mut fewer = all.clone();
            fewer.remove(next);
            if enough(self, &fewer)? {
                all = fewer;
            } else {
                next += 1;
            }
        }
        Some(all)
    }

    /// Whether a group starts once these are ended; none where that is not tried any more.
    fn starts(&mut self, half: &Half, mut objects: Vec<Target>) -> Option<bool> {
        objects.sort();
        objects.dedup();
        if self.steps == 0 {
            return None;
        }
        // Pods are ended and put back, each node is looked at for each member.
        let looks = self.nodes.saturating_mul(u64::from(half.needs));
        let steps = looks.saturating_add(2 * objects.len() as u64);
        self.steps = self.steps.saturating_sub(steps);
        let options = &self.asked.options;
        let fork = self.fork.get_or_insert_with(|| Box::new(self.world.clone()));
        let starts =
            |world: &mut World| half.starts_by(verdict_first(world, &half.group, options).as_ref());
        let found = match objects.is_empty() {
            true => starts(fork),
            false => {
                let edit = Edit::Without { objects };
                fork.with_edit(&edit, "", starts).unwrap_or(Some(false))
            }
        };
        self.open |= found.is_none();
        // What is not known is not said, and others are tried.
        Some(found.unwrap_or_default())
    }

    /// For whom one of the groups waits.
    fn waits(&mut self, half: &[Half], at: usize) -> Waits {
        let mut waits = Waits::default();
        self.open = false;
        waits.cut = half[at].waits && self.find_waits(half, at, &mut waits).is_none();
        waits.cut |= self.open;
        waits
    }

    /// Finds it out as far as it is tried; none where not all was.
    fn find_waits(&mut self, half: &[Half], at: usize, waits: &mut Waits) -> Option<()> {
        if self.starts(&half[at], Vec::new())? {
            waits.ahead = Some(self.ahead(&half[at]));
            return Some(());
        }
        waits.own = self.starts(&half[at], targets(&half[at]))?;
        let others: Vec<usize> = (0..half.len()).filter(|other| *other != at).collect();
        waits.any = true;
        for other in &others {
            if self.starts(&half[at], targets(&half[*other]))? {
                waits.others.insert(*other);
            }
        }
        if !waits.others.is_empty() || others.is_empty() {
            return Some(());
        }
        waits.any = false;
        let of = |some: &[usize]| some.iter().flat_map(|o| targets(&half[*o])).collect::<Vec<_>>();
        let mut beside = Vec::new();
        if !self.starts(&half[at], of(&others))? {
            beside = self.whole_beside(&half[at]);
            if !self.starts(&half[at], [of(&others), beside.clone()].concat())? {
                return Some(());
            }
        }
        let kept = self.none_to_spare(others, |bench, some| {
            bench.starts(&half[at], [of(some), beside.clone()].concat())
        })?;
        let held = of(&kept);
        waits.others = kept.into_iter().collect();
        waits.beside = self.fewest_pods(beside, |bench, some| {
            bench.starts(&half[at], [held.as_slice(), some].concat())
        });
        Some(())
    }

    /// Who comes before a group for which there is room now, and takes it.
    fn ahead(&mut self, half: &Half) -> Ahead {
        let verdicts = &self.asked.decision.verdicts;
        let before = verdicts.iter().take_while(|(group, _)| *group != half.group);
        let placed = before.filter(|(_, verdict)| matches!(verdict, Verdict::Placed { .. }));
        let before: Vec<&GroupKey> = placed.map(|(group, _)| group).collect();
        // Each try plans all of them.
        let looks = self.nodes.saturating_mul(before.len() as u64 + u64::from(half.needs));
        for other in before.iter().copied().take(NAMED_MAX) {
            if self.steps == 0 {
                break;
            }
            self.steps = self.steps.saturating_sub(looks);
            let options = &self.asked.options;
            let fork = self.fork.get_or_insert_with(|| Box::new(self.world.clone()));
            let verdict = verdict_before(fork, &half.group, other, options);
            if half.starts_by(verdict.as_ref()) == Some(true) {
                let priority = fork.state().priority(other).unwrap_or_default();
                return Ahead::One(other.clone(), priority);
            }
        }
        Ahead::Several(before.into_iter().cloned().collect())
    }

    /// Whether a group starts in its turn once these are ended, as far as that may still be tried.
    fn starts_in_turn(&mut self, half: &Half, mut objects: Vec<Target>) -> bool {
        if self.steps == 0 {
            return true;
        }
        objects.sort();
        objects.dedup();
        let waiting = self.asked.decision.verdicts.len() as u64;
        self.steps = self.steps.saturating_sub(self.nodes.saturating_mul(waiting));
        let options = &self.asked.options;
        let fork = self.fork.get_or_insert_with(|| Box::new(self.world.clone()));
        let starts = |world: &mut World| {
            let verdict = why(world, &half.group, None, options).map(|report| report.verdict);
            half.starts_by(verdict.as_ref()) == Some(true)
        };
        fork.with_edit(&Edit::Without { objects }, "", starts).unwrap_or_default()
    }

    /// What groups that wait for each other come to.
    fn circle(&mut self, half: &[Half], waits: &[Waits], circle: &BTreeSet<usize>) -> String {
        let each: Vec<_> = circle.iter().map(|one| waits_for(half, waits, *one)).collect();
        let freed = circle.iter().map(|one| self.freed_by(&half[*one]));
        let freed = freed.into_iter().find(|freed| !matches!(freed, Whole::Nothing));
        let freed = freed.unwrap_or(Whole::Nothing);
        let release = release(half, waits, circle).map(|(gone, starts)| {
            let ended = gone.iter().flat_map(|one| targets(one)).collect();
            Release { taken: !self.starts_in_turn(starts, ended), gone, starts }
        });
        words::deadlock(&each, &freed, release.as_ref())
    }

    /// What runs whole and by its end alone lets a group start.
    fn freed_by(&mut self, half: &Half) -> Whole {
        if !half.waits {
            return Whole::Nothing;
        }
        let all = self.whole_beside(half);
        if all.is_empty() {
            return Whole::Nothing;
        }
        self.open = false;
        match self.starts(half, all.clone()) {
            None => return Whole::Unknown,
            Some(false) if self.open => return Whole::Unknown,
            Some(false) => return Whole::Nothing,
            Some(true) => {}
        }
        let few = if all.len() <= NAMED_MAX { all.as_slice() } else { &[] };
        let one = few.iter().find(|one| self.starts(half, vec![(*one).clone()]) == Some(true));
        match one.cloned() {
            Some(pod) => {
                let taken = !self.starts_in_turn(half, vec![pod.clone()]);
                Whole::Pod(pod.name, taken)
            }
            None => Whole::Several,
        }
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

/// The groups that wait for each other, each set of them once, in order of the first: the strongly
/// connected components of more than one in the graph of who waits for whom.
fn circles(waits: &[Waits]) -> Vec<BTreeSet<usize>> {
    let mut back: Vec<Vec<usize>> = vec![Vec::new(); waits.len()];
    for (at, of) in waits.iter().enumerate() {
        for other in &of.others {
            back[*other].push(at);
        }
    }
    // Who is left last by one walk begins a walk back that stays within its component.
    let mut left_last = Vec::with_capacity(waits.len());
    let mut seen = vec![false; waits.len()];
    for from in 0..waits.len() {
        let mut open = vec![(from, false)];
        while let Some((at, left)) = open.pop() {
            if left {
                left_last.push(at);
            } else if !std::mem::replace(&mut seen[at], true) {
                open.push((at, true));
                open.extend(waits[at].others.iter().map(|next| (*next, false)));
            }
        }
    }
    let mut circles: Vec<BTreeSet<usize>> = Vec::new();
    for from in left_last.into_iter().rev() {
        let mut circle = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], false) {
                circle.insert(at);
                open.extend(&back[at]);
            }
        }
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles.sort();
    circles
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
        if !of.beside.is_empty() {
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
    fn circles_are_told_apart_however_many_wait() {
        // Twenty in a ring, of whom one waits for a pair.
        let ring: Vec<Vec<usize>> = (0..20).map(|at| vec![(at + 1) % 20]).collect();
        let mut of: Vec<&[usize]> = ring.iter().map(Vec::as_slice).collect();
        of[3] = &[4, 20];
        of.extend([&[21][..], &[20]]);
        assert_eq!(circles(&waits(&of)), [(0..20).collect(), BTreeSet::from([20, 21])]);
    }

    #[test]
    fn a_chain_is_no_circle() {
        assert!(circles(&waits(&[&[1], &[2], &[]])).is_empty());
    }
}
