//! What would place a group that is not placed: candidates from the closed vocabulary of edits, each
//! tried on a fork of the world and kept only if it works there and nothing smaller of its kind does. A gang
//! that has not started is to start; of any other group all is to be placed.
//!
//! A cure is an [`Edit`], so that what is printed can be asked with `--if`. A trial is a whole plan of
//! the edited fork, after which the edit is taken back: there is one fork for a whole document, so a
//! trial costs what the edit touches and not what the world holds. The work is bounded by a number of
//! trials; what the bound cuts off is not offered, nothing untried is, and that it cut is told.
//! `docs/what-if.md` says what is looked for.

mod candidates;
mod ends;
mod names;
mod reduce;
mod relax;

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{GroupFacts, GroupKey, NodeKey, NodeReport, PodKey, Report, Verdict};
use phalanx_objects::ObjectRef;

use crate::edit::{Edit, Setting};
use crate::plan::{Plan, plan};
use crate::world::{Objects, World};

/// Most nodes that are tried for each kind of cure that is about nodes: those that are missed by
/// least.
const NODES_MAX: usize = 4;

/// Most kinds of pods of one group for which cures are looked for.
const PARTS_MAX: usize = 8;

/// Most cures that are named, which is one of each kind at least, and most of one kind.
const CURES_MAX: usize = 8;
const KIND_MAX: usize = 4;

/// What a group is made of, as far as cures change it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The group.
    pub(crate) group: GroupKey,
    /// What its pods are like, kind by kind, those that are short first; never empty.
    pub(crate) parts: Vec<Part>,
    /// Pods of the group that are placed already, where they are some.
    pub(crate) placed: u32,
    /// All of them start at once.
    pub(crate) gang: bool,
    /// Its pods that exist.
    pub(crate) own: BTreeSet<PodKey>,
    /// The objects that declare it: its own, and of a group of groups those below.
    pub(crate) declared: Vec<ObjectRef>,
}

/// Pods that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The object that says what they are like: the pod itself, or the workload.
    pub(crate) spec_of: ObjectRef,
    /// The role in that object.
    pub(crate) role: u16,
    /// For each of their claims, the claim or the template that says what is asked.
    pub(crate) claims: Vec<Option<ObjectRef>>,
}

/// How many trial plans may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trials(pub u32);

impl Trials {
    /// What a plan may take, for all groups together: less where each trial is dear, for a trial
    /// plans everything that waits.
    pub fn for_plan(world: &World) -> Self {
        Self::of(world, 40_000_000, 400, 10_000)
    }

    /// What a question about one object may take: all that a group needs.
    pub fn for_why(world: &World) -> Self {
        Self::of(world, 40_000_000, 2_000, 10_000)
    }

    fn of(world: &World, work: usize, least: usize, most: usize) -> Self {
        let size = world.objects().map_or(0, Objects::len);
        Self(u32::try_from((work / size.max(1)).clamp(least, most)).unwrap_or(u32::MAX))
    }
}

/// The fork in which edits are tried; made when the first is.
#[derive(Debug, Default)]
pub(crate) struct Bench(Option<World>);

/// One group's search for cures.
pub(crate) struct Lab<'a> {
    objects: &'a Objects,
    world: &'a World,
    bench: &'a mut Bench,
    plan: &'a Plan,
    subject: &'a Subject,
    /// The pods of it that are looked at.
    part: &'a Part,
    report: &'a Report,
    trials: &'a mut Trials,
    /// What was tried already: of what works how many pods of the group wait all the same.
    tried: BTreeMap<Edit, Option<u32>>,
    /// Something that may be a cure was not tried.
    cut: bool,
}

impl Lab<'_> {
    /// Whether the edit does what is asked of it. None if it can't be told: the trials are spent.
    fn works(&mut self, edit: &Edit) -> Option<bool> {
        if let Some(known) = self.tried.get(edit) {
            return Some(known.is_some());
        }
        let Some(left) = self.trials.0.checked_sub(1) else {
            self.cut = true;
            return None;
        };
        self.trials.0 = left;
        let bench = self.bench.0.get_or_insert_with(|| self.world.clone());
        let decision = bench.with_edit(edit, "", |world| plan(world, &self.plan.options).decision);
        // What can't be done cures nothing; a group that is no longer pending has nothing left to
        // place.
        let aim = aim(self.plan, self.subject);
        let left = decision.ok().and_then(|decision| {
            let own = decision.verdicts.iter().find(|(group, _)| *group == self.subject.group);
            let Some((_, verdict)) = own else { return Some(0) };
            helps(edit, aim, verdict).then(|| waiting(verdict))
        });
        self.tried.insert(edit.clone(), left);
        Some(left.is_some())
    }

    /// The nodes of the place that comes nearest to holding the group, where it must be in one.
    fn nearest_place(&self) -> BTreeSet<NodeKey> {
        let facts = group_facts(&self.report.verdict);
        let Some((topology, path)) = facts.and_then(|facts| facts.place.as_ref()) else {
            return BTreeSet::new();
        };
        let places = self.world.lowering().places_in(topology);
        let inside = places.into_iter().filter(|(_, own)| own.starts_with(path));
        inside.map(|(node, _)| node).collect()
    }

    /// Whether nothing that pods hold and nothing that is ill is in the way.
    fn is_refused(&self) -> bool {
        match &self.report.verdict {
            Verdict::Refused(_) => true,
            Verdict::Placed { .. } | Verdict::Waits(_) | Verdict::GaveUp(..) => false,
        }
    }

    /// The first nodes of these, and that the others were not tried if none of the first helps.
    fn few<T>(&mut self, mut nodes: Vec<T>, mut try_one: impl FnMut(&mut Self, &T) -> bool) {
        // Of a gang every member may be short of another node.
        let most = if self.subject.gang { 2 * NODES_MAX } else { NODES_MAX };
        let more = nodes.len() > most;
        nodes.truncate(most);
        let mut found = false;
        for node in &nodes {
            found |= try_one(self, node);
        }
        self.cut |= more && !found;
    }
}

/// A change that does what is asked of it.
#[derive(Clone, Debug)]
pub(crate) struct Cure {
    pub(crate) edit: Edit,
    /// Pods of the group that wait all the same.
    pub(crate) waiting: u32,
}

/// What a cure is to do for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// It starts, which it does not now: some of it may still wait.
    Start,
    /// All of it is placed.
    Whole,
}

/// Cures of which each alone does, cheapest kind first, and whether all that could were tried.
pub(crate) fn cures(
    world: &World,
    bench: &mut Bench,
    plan: &Plan,
    subject: &Subject,
    report: &Report,
    trials: &mut Trials,
) -> (Vec<Cure>, bool) {
    let Some(objects) = world.objects() else { return (Vec::new(), true) };
    // A report on what is missing of a group does not know where the rest of it is kept.
    let mut verdicts = plan.decision.verdicts.iter();
    let own = verdicts.find(|(group, _)| *group == subject.group);
    if own.is_none_or(|(_, verdict)| verdict.is_whole()) {
        return (Vec::new(), true);
    }
    let Some(part) = subject.parts.first() else { return (Vec::new(), true) };
    let (tried, cut) = (BTreeMap::new(), subject.parts.len() > PARTS_MAX);
    let mut lab = Lab { objects, world, bench, plan, subject, part, report, trials, tried, cut };
    let place = lab.nearest_place();
    let nearest = nearest(report, &place);
    let healed = candidates::heal(&mut lab, &nearest);
    let mut ungated = Vec::new();
    let mut relaxed = relax::levels(&mut lab);
    let (mut counts, mut resources, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let mut replicas: Vec<Edit> = reduce::minima(&mut lab);
    for part in subject.parts.iter().take(PARTS_MAX) {
        lab.part = part;
        ungated.extend(relax::gates(&mut lab));
        relaxed.extend(relax::constraints(&mut lab));
        counts.extend(reduce::counts(&mut lab));
        resources.extend(reduce::resources(&mut lab));
        names.extend(names::names(&mut lab));
        replicas.extend(reduce::replicas(&mut lab));
    }
    let more = candidates::more_nodes(&mut lab, &nearest).into_iter().collect();
    // Last, for it may take many trials.
    let ended = ends::ends(&mut lab, &nearest, &place).into_iter().collect();
    let kinds = vec![healed, ungated, ended, relaxed, names, counts, resources, replicas, more];
    let kinds = kinds.into_iter().map(each_once).collect();
    let cure = |edit: Edit| {
        let waiting = lab.tried.get(&edit).copied().flatten().unwrap_or_default();
        Cure { edit, waiting }
    };
    (named(kinds).into_iter().map(cure).collect(), !lab.cut)
}

/// What is asked of cures of a group: a gang that has not started is to start.
fn aim(plan: &Plan, subject: &Subject) -> Aim {
    let own = plan.decision.verdicts.iter().find(|(group, _)| *group == subject.group);
    let has_started = own.is_none_or(|(_, verdict)| matches!(verdict, Verdict::Placed { .. }));
    if subject.gang && !has_started { Aim::Start } else { Aim::Whole }
}

/// Pods that this verdict leaves without a place.
fn waiting(verdict: &Verdict) -> u32 {
    match verdict {
        Verdict::Placed { short: Some(short), .. } => short.missing,
        Verdict::Placed { short: None, .. }
        | Verdict::Waits(_)
        | Verdict::Refused(_)
        | Verdict::GaveUp(..) => 0,
    }
}

/// The cures that are named: as many of each kind as there is room for, each kind's first before any
/// kind's second.
fn named(kinds: Vec<Vec<Edit>>) -> Vec<Edit> {
    let mut room = CURES_MAX;
    let mut kept = vec![0_usize; kinds.len()];
    for round in 0..KIND_MAX {
        for (kind, kept) in kinds.iter().zip(&mut kept) {
            if kind.len() > round && room > 0 {
                *kept += 1;
                room -= 1;
            }
        }
    }
    let mut found = BTreeSet::new();
    let first = kinds.into_iter().zip(kept).flat_map(|(kind, kept)| kind.into_iter().take(kept));
    first.filter(|edit| found.insert(edit.clone())).collect()
}

/// Of several parts that name one object each finds the same.
fn each_once(edits: Vec<Edit>) -> Vec<Edit> {
    let mut found = BTreeSet::new();
    edits.into_iter().filter(|edit| found.insert(edit.clone())).collect()
}

/// Whether a group with this verdict has what an edit promises: what is asked of it, but of fewer pods of a
/// workload that all of them are placed.
#[must_use]
pub fn helps(edit: &Edit, aim: Aim, verdict: &Verdict) -> bool {
    let fewer = matches!(edit, Edit::Set { what: Setting::Replicas(_), .. });
    match (aim, verdict) {
        (Aim::Start, Verdict::Placed { .. }) if !fewer => true,
        (Aim::Start | Aim::Whole, verdict) => verdict.is_whole(),
    }
}

/// Nodes in the order in which they are missed: those of the place that comes nearest first, then by
/// the fewest checks, by the latest, by name.
fn nearest<'r>(report: &'r Report, place: &BTreeSet<NodeKey>) -> Vec<&'r NodeReport> {
    let latest = |node: &NodeReport| node.checks.iter().map(|(reason, ..)| *reason).min();
    let mut nodes: Vec<&NodeReport> = report.nodes.iter().collect();
    nodes.sort_by_cached_key(|node| {
        let missed = (node.checks.len(), std::cmp::Reverse(latest(node)));
        (!place.contains(&node.node), missed, node.node.clone())
    });
    nodes
}

/// What is said of the group as a whole, where it is not placed.
fn group_facts(verdict: &Verdict) -> Option<&GroupFacts> {
    match verdict {
        Verdict::Waits(why) | Verdict::Refused(why) | Verdict::GaveUp(why, _) => why.group(),
        Verdict::Placed { short: Some(short), .. } => short.why.group(),
        Verdict::Placed { short: None, .. } => None,
    }
}
