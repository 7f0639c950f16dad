//! What would place a group that is not placed, or one of its pods: candidates from the closed vocabulary of
//! edits, each tried on a fork of the world and kept only if it works there and nothing smaller of its kind does.
//! Of a gang more is to be placed than is, or that pod which is asked about; of any other group all.
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

use phalanx_engine::{
    Decision, GroupFacts, GroupKey, NodeKey, NodeReport, PodKey, Report, Verdict,
};
use phalanx_objects::ObjectRef;

use crate::edit::{Edit, Setting};
use crate::plan::{Plan, plan};
use crate::view::{seats_of, who_sits};
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
    /// Of a gang, the pods that find no place.
    pub(crate) open: Vec<PodKey>,
    /// The objects that declare it: its own, and of a group of groups those below.
    pub(crate) declared: Vec<ObjectRef>,
}

/// For whom a cure is.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    /// A group that is no gang: all of it is to be placed.
    All,
    /// A gang: more of it is to be placed than is. One that has not started starts then.
    More,
    /// One of the pods of a gang that find no place, by its number among these, and what it is like: it is to be
    /// placed.
    Pod(usize, Part),
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

    /// The part of one where so many still wait for theirs: what it leaves the next may take.
    pub(crate) fn part(self, waiting: usize) -> Self {
        Self(self.0.div_ceil(u32::try_from(waiting).unwrap_or(u32::MAX)))
    }

    /// Takes off what is gone of a part.
    pub(crate) fn spend(&mut self, part: Self, left: Self) {
        self.0 -= part.0 - left.0;
    }

    fn of(world: &World, work: usize, least: usize, most: usize) -> Self {
        let size = world.objects().map_or(0, Objects::len);
        Self(u32::try_from((work / size.max(1)).clamp(least, most)).unwrap_or(u32::MAX))
    }
}

/// Steps of a plan that count as one trial more, in a small world; in a large one a plan takes some for each
/// object.
const STEPS_OF_TRIAL: u64 = 250;
const STEPS_OF_OBJECT: u64 = 4;

/// The fork in which edits are tried; made when the first is.
#[derive(Debug, Default)]
pub(crate) struct Bench(Option<World>);

/// What became of a group in a trial.
#[derive(Clone, Debug, Default)]
struct Outcome {
    /// All of it is placed, or nothing of it waits any more.
    whole: bool,
    /// How many of its pods are placed.
    seats: u32,
    /// How many wait.
    waiting: u32,
    /// Effort of the plan.
    steps: u64,
    /// Of [`Subject::open`], who is placed.
    placed: Box<[bool]>,
}

/// One group's search for cures.
pub(crate) struct Lab<'a> {
    objects: &'a Objects,
    world: &'a World,
    bench: &'a mut Bench,
    plan: &'a Plan,
    subject: &'a Subject,
    /// For whom they are.
    ask: &'a Ask,
    /// The pods of it that are looked at.
    part: &'a Part,
    report: &'a Report,
    trials: Trials,
    /// What was tried already, for whomever; none where it can't be done.
    tried: BTreeMap<Edit, Option<Outcome>>,
    /// Something that may be a cure was not tried.
    cut: bool,
}

impl Lab<'_> {
    /// Whether the edit does what is asked of it. None if it can't be told: the trials are spent.
    fn works(&mut self, edit: &Edit) -> Option<bool> {
        if !self.tried.contains_key(edit) {
            if self.trials.0 == 0 {
                self.cut = true;
                return None;
            }
            let outcome = self.attempt(edit);
            // A plan that searches long is as dear as several.
            let steps = outcome.as_ref().map_or(0, |outcome| outcome.steps);
            let each = STEPS_OF_TRIAL.max(STEPS_OF_OBJECT * self.objects.len() as u64);
            let dear = u32::try_from(1 + steps / each).unwrap_or(u32::MAX);
            self.trials.0 = self.trials.0.saturating_sub(dear);
            self.tried.insert(edit.clone(), outcome);
        }
        let outcome = self.tried.get(edit).and_then(Option::as_ref);
        Some(outcome.is_some_and(|outcome| self.helps(edit, outcome)))
    }

    /// What becomes of the group with an edit; none where that can't be done, which cures nothing.
    fn attempt(&mut self, edit: &Edit) -> Option<Outcome> {
        let bench = self.bench.0.get_or_insert_with(|| self.world.clone());
        let (options, subject) = (&self.plan.options, self.subject);
        let outcome = bench.with_edit(edit, "", |world| {
            let decision = plan(world, options).decision;
            outcome(world, &decision, subject)
        });
        outcome.ok()
    }

    /// Whether a group that this became of has what an edit promises: what is asked of it, but of fewer pods of
    /// a workload that all of them are placed.
    fn helps(&self, edit: &Edit, outcome: &Outcome) -> bool {
        let fewer = matches!(edit, Edit::Set { what: Setting::Replicas(_), .. });
        let helps = match self.ask {
            Ask::All => outcome.whole,
            Ask::More => outcome.seats > self.subject.placed,
            Ask::Pod(at, _) => outcome.placed.get(*at) == Some(&true),
        };
        helps && (outcome.whole || !fewer)
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
    /// Pods of the group that are placed with it, beyond those that are now.
    pub(crate) more: u32,
    /// Pods of the group that wait all the same.
    pub(crate) waiting: u32,
    /// Of [`Subject::open`], who is placed.
    pub(crate) placed: Box<[bool]>,
}

/// Cures of which each alone does, cheapest kind first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cures {
    pub(crate) found: Vec<Cure>,
    /// Something that may be one was not tried.
    pub(crate) cut: bool,
}

/// The cures for each that is asked about, who share the trials.
pub(crate) fn cures(
    world: &World,
    bench: &mut Bench,
    plan: &Plan,
    subject: &Subject,
    (report, asks): (&Report, &[Ask]),
    trials: &mut Trials,
) -> Vec<Cures> {
    let none = || asks.iter().map(|_| Cures::default()).collect();
    // A report on what is missing of a group does not know where the rest of it is kept.
    let mut verdicts = plan.decision.verdicts.iter();
    let own = verdicts.find(|(group, _)| *group == subject.group);
    if own.is_none_or(|(_, verdict)| verdict.is_whole()) {
        return none();
    }
    let (Some(objects), Some(part), Some(ask)) =
        (world.objects(), subject.parts.first(), asks.first())
    else {
        return none();
    };
    let (tried, cut, share) = (BTreeMap::new(), false, Trials(0));
    let mut lab =
        Lab { objects, world, bench, plan, subject, ask, part, report, trials: share, tried, cut };
    let mut all = Vec::with_capacity(asks.len());
    for (at, ask) in asks.iter().enumerate() {
        let part = trials.part(asks.len() - at);
        (lab.ask, lab.trials) = (ask, part);
        all.push(lab.cures());
        trials.spend(part, lab.trials);
    }
    all
}

impl<'a> Lab<'a> {
    /// The cures for whom is asked about.
    fn cures(&mut self) -> Cures {
        self.cut = self.subject.parts.len() > PARTS_MAX;
        let place = self.nearest_place();
        let nearest = nearest(self.report, &place);
        let healed = candidates::heal(self, &nearest);
        let mut ungated = Vec::new();
        let mut relaxed = relax::levels(self);
        let (mut counts, mut resources, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let mut replicas: Vec<Edit> = reduce::minima(self);
        for part in self.parts() {
            self.part = part;
            ungated.extend(relax::gates(self));
            relaxed.extend(relax::constraints(self));
            counts.extend(reduce::counts(self));
            resources.extend(reduce::resources(self));
            names.extend(names::names(self));
            replicas.extend(reduce::replicas(self));
        }
        let more = candidates::more_nodes(self, &nearest).into_iter().collect();
        // Last, for it may take many trials.
        let ended = ends::ends(self, &nearest, &place).into_iter().collect();
        let kinds = vec![healed, ungated, ended, relaxed, names, counts, resources, replicas, more];
        let kinds = kinds.into_iter().map(each_once).collect();
        let found = named(kinds).into_iter().filter_map(|edit| self.cure(edit)).collect();
        Cures { found, cut: self.cut }
    }

    /// The kinds of pods that are looked at: that of the pod that is asked about first.
    fn parts(&self) -> Vec<&'a Part> {
        let own = match self.ask {
            Ask::Pod(_, part) => Some(part),
            Ask::All | Ask::More => None,
        };
        let others = self.subject.parts.iter().filter(|part| Some(*part) != own);
        own.into_iter().chain(others).take(PARTS_MAX).collect()
    }

    /// An edit that works, with what it does.
    fn cure(&self, edit: Edit) -> Option<Cure> {
        let outcome = self.tried.get(&edit)?.as_ref()?;
        let more = outcome.seats.saturating_sub(self.subject.placed);
        let (waiting, placed) = (outcome.waiting, outcome.placed.clone());
        Some(Cure { edit, more, waiting, placed })
    }
}

/// What a decision makes of a group in a world.
fn outcome(world: &World, decision: &Decision, subject: &Subject) -> Outcome {
    let steps = decision.spent.steps;
    let mut verdicts = decision.verdicts.iter().filter(|(group, _)| *group == subject.group);
    let Some((_, verdict)) = verdicts.next() else {
        // What is no longer pending has nothing left to place.
        return Outcome { whole: true, steps, ..Outcome::default() };
    };
    let waiting = match verdict {
        Verdict::Placed { short: Some(short), .. } => short.missing,
        Verdict::Placed { short: None, .. }
        | Verdict::Waits(_)
        | Verdict::Refused(_)
        | Verdict::GaveUp(..) => 0,
    };
    let seats = seats_of(decision, &subject.group);
    let info = world.lowering().group(&subject.group).filter(|_| !subject.open.is_empty());
    let sit: BTreeSet<&PodKey> = match &info {
        Some(info) => seats.iter().filter_map(|seat| who_sits(seat, info)).collect(),
        None => BTreeSet::new(),
    };
    Outcome {
        whole: verdict.is_whole(),
        seats: u32::try_from(seats.len()).unwrap_or(u32::MAX),
        waiting,
        steps,
        placed: subject.open.iter().map(|pod| sit.contains(pod)).collect(),
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
