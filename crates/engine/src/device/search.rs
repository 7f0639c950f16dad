//! The search: depth first through requests, alternatives and devices, upstream's way.
//!
//! Positions are tried in ascending order, so sets come in the order of their names and the first of
//! equal cost is the one that wins. A branch is left when the rules leave too few devices, when all
//! it could still give costs as much as what was found, or when it only exchanges interchangeable
//! devices or requests: of such sets the first is the smallest.

mod deep;
mod price;

use std::collections::BTreeSet;

use crate::facts::Link;

use super::bits::{self, Mask};
use super::charge::Charges;
use super::choose::{Price, Standing, free_left};
use super::packing::{Load, Packing};
use super::problem::{Axis, CODES, Choice, IDLE, Kind, Least, MOST, ODD, OUT, Problem, SOLO};
use super::ring::best_ring;
use super::rivals::SETS_MAX;
use super::sets::{Members, SetRule};
use super::spans::CardTally;
use super::wear::{Taking, Wear};
use deep::Deep;

/// One device chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) line: usize,
    pub(super) choice: usize,
    pub(super) position: usize,
}

/// Which set is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// The best.
    Best,
    /// The first, in the order of positions.
    First,
    /// The best of those that cost more than this.
    Above(Price),
    /// All that cost this, up to a number.
    Equal(Price),
    /// The first, in the order of positions, that costs this: there is none better.
    FirstAt(Price),
    /// Every one, up to a number.
    All,
}

/// How a search ended.
#[derive(Default)]
pub(super) struct Outcome {
    /// The best set found, and its cost.
    pub(super) best: Option<(Standing, Vec<Chosen>)>,
    /// The sets of devices that cost what was asked for.
    pub(super) equal: BTreeSet<Vec<usize>>,
    /// All sets, where those were asked for, in the order of positions.
    pub(super) all: Vec<(Standing, Vec<Chosen>)>,
    /// Whether the bound ended it.
    pub(super) cut: bool,
}

#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Stop,
}

/// Searches `problem`. `steps` is what may be spent.
pub(super) fn search(problem: &Problem<'_>, aim: Aim, steps: &mut u64) -> Outcome {
    search_from(problem, aim, &[], steps)
}

/// As [`search`], among the sets of which each line's devices begin with these positions.
pub(super) fn search_from(
    problem: &Problem<'_>,
    aim: Aim,
    firsts: &[Vec<usize>],
    steps: &mut u64,
) -> Outcome {
    if problem.hopeless {
        return Outcome::default();
    }
    let packed = if aim == Aim::Best { packed(problem, steps) } else { None };
    let mut search = Search::new(problem, aim, steps);
    search.best = packed;
    search.firsts = firsts;
    let _ended = search.line(0);
    let Search { best, equal, all, cut, .. } = search;
    Outcome { best, equal, all, cut }
}

/// Steps spent at most on finding a set that is packed as well as can be.
const PACK_STEPS: u64 = 20_000;

/// A set of partitions that are packed as well as can be: a good one to begin with.
fn packed(problem: &Problem<'_>, steps: &mut u64) -> Option<(Standing, Vec<Chosen>)> {
    let packing = problem.packing.as_ref()?;
    let mut few = (*steps).min(PACK_STEPS);
    *steps -= few;
    let mut search = Search::new(problem, Aim::First, &mut few);
    search.goal = Some(packing.root());
    let _ended = search.line(0);
    let best = search.best;
    *steps += few;
    best
}

/// How often each value is among the chosen.
#[derive(Clone, Debug, Default)]
struct Tally {
    counts: Vec<u16>,
    distinct: usize,
    /// Chosen whose driver has part in the level.
    joined: usize,
}

impl Tally {
    fn new(values: usize) -> Self {
        Self { counts: vec![0; values], ..Self::default() }
    }

    fn add(&mut self, value: u16) {
        self.joined += usize::from(value != OUT);
        match value {
            SOLO => self.distinct += 1,
            OUT | IDLE | ODD => {}
            v => {
                let count = &mut self.counts[usize::from(v)];
                self.distinct += usize::from(*count == 0);
                *count += 1;
            }
        }
    }

    fn remove(&mut self, value: u16) {
        self.joined -= usize::from(value != OUT);
        match value {
            SOLO => self.distinct -= 1,
            OUT | IDLE | ODD => {}
            v => {
                let count = &mut self.counts[usize::from(v)];
                *count -= 1;
                self.distinct -= usize::from(*count == 0);
            }
        }
    }

    fn beyond_first(&self) -> u16 {
        u16::try_from(self.distinct.saturating_sub(1)).unwrap_or(u16::MAX)
    }
}

/// What can still follow what is chosen: `left` devices of a choice of line `at`, at position `from`
/// or after it, and the lines after it.
#[derive(Clone, Copy)]
struct Ahead<'p, 'a> {
    at: usize,
    choice: &'p Choice<'a>,
    from: usize,
    left: usize,
    /// Devices, at most.
    most: usize,
    /// What they add at least.
    least: Least,
}

struct Search<'p, 'a> {
    p: &'p Problem<'a>,
    aim: Aim,
    steps: &'p mut u64,
    /// Steps until it is looked at more deeply, and then what that takes.
    soon: u64,
    deep: Option<Deep<'p>>,
    /// With which positions each line's devices must begin.
    firsts: &'p [Vec<usize>],
    chosen: Vec<Chosen>,
    /// The ranks chosen, in the same order.
    positions: Vec<u16>,
    /// Where each line begun so far starts in `chosen`.
    starts: Vec<usize>,
    alternatives: u32,
    /// How often each position is chosen.
    held: Vec<u16>,
    tallies: Vec<Tally>,
    islands: Tally,
    numa: Tally,
    cards: CardTally,
    /// Accelerators of the pod, each once, as devices; with the slowest of their pairs and, once
    /// there are as many as every set has, their best ring.
    accelerators: Vec<usize>,
    links: Vec<(Link, Option<Link>)>,
    /// Exclusive devices that nobody holds, and how many of them are given.
    free: u32,
    given: u32,
    wear: Wear<'p>,
    /// How many devices of each counter set are chosen.
    begun: Vec<u16>,
    charges: Charges<'a>,
    /// What is taken of GPUs that are given out in partitions.
    load: Load,
    /// No more NUMA nodes beyond the first, and no greater loss, than this.
    goal: Option<(u16, Least)>,
    /// Those chosen under each rule over sets.
    members: Vec<Members<'a>>,
    /// Masks of what is left, one for each device chosen and line begun, the innermost last.
    masks: Vec<u64>,
    best: Option<(Standing, Vec<Chosen>)>,
    equal: BTreeSet<Vec<usize>>,
    all: Vec<(Standing, Vec<Chosen>)>,
    /// How often a better set was found.
    found: u32,
    cut: bool,
}

fn values(of: &[u16]) -> usize {
    of.iter().filter(|v| **v < CODES).map(|v| usize::from(*v) + 1).max().unwrap_or(0)
}

impl<'p, 'a> Search<'p, 'a> {
    fn new(p: &'p Problem<'a>, aim: Aim, steps: &'p mut u64) -> Self {
        let n = p.order.len();
        let (shape, usage) = (p.lens.shape, p.lens.usage);
        let mut search = Self {
            p,
            aim,
            steps,
            soon: match aim {
                // What was seen by another way is another set here.
                Aim::All => u64::MAX,
                Aim::Best | Aim::First | Aim::Above(_) | Aim::Equal(_) | Aim::FirstAt(_) => {
                    if p.unions.get().is_some() { 1 } else { deep::SOON }
                }
            },
            deep: None,
            firsts: &[],
            chosen: Vec::new(),
            positions: Vec::new(),
            starts: Vec::new(),
            alternatives: 0,
            held: vec![0; n],
            tallies: p.axes.iter().map(|a| Tally::new(values(&a.value))).collect(),
            islands: Tally::new(values(&p.spans.island)),
            numa: Tally::new(values(&p.spans.numa)),
            cards: p.spans.cards.as_ref().map(CardTally::new).unwrap_or_default(),
            accelerators: Vec::new(),
            links: Vec::new(),
            free: free_left(shape, usage, &[]),
            given: 0,
            wear: Wear::new(shape, usage, &p.spans.whole, p.breaks()),
            begun: vec![0; if p.units.is_empty() { 0 } else { shape.stock.devices_on.len() }],
            charges: Charges::new(shape, usage),
            load: p.packing.as_ref().map(Packing::load).unwrap_or_default(),
            goal: None,
            members: vec![Members::default(); p.sets.len()],
            masks: Vec::with_capacity(p.words * 8),
            best: None,
            equal: BTreeSet::new(),
            all: Vec::new(),
            found: 0,
            cut: false,
        };
        for at in n..n + p.fixed.len() {
            search.count_in(at);
            for (axis, tally) in p.axes.iter().zip(&mut search.tallies) {
                if axis.of_pod {
                    tally.add(axis.value[at]);
                }
            }
        }
        search
    }

    /// Counts the device at a position, or one that is the pod's already, among those whose places
    /// are compared.
    fn count_in(&mut self, at: usize) {
        let p = self.p;
        self.islands.add(p.spans.island[at]);
        self.numa.add(p.spans.numa[at]);
        if let Some(cards) = &p.spans.cards {
            self.cards.add(cards, at, false);
        }
        if !p.spans.accelerator[at] {
            return;
        }
        let device = p.order.get(at).or_else(|| p.fixed.get(at - p.order.len())).copied();
        let Some(device) = device else { return };
        let shape = p.lens.shape;
        let before = self.links.last().map_or(Link::IDEAL, |(farthest, _)| *farthest);
        let own = self.accelerators.iter().map(|other| shape.link(*other, device));
        let farthest = own.fold(before, Link::max);
        self.accelerators.push(device);
        let all = p.spans.accelerators == Some(self.accelerators.len());
        self.links.push((farthest, all.then(|| self.best_ring())));
    }

    fn count_out(&mut self, at: usize) {
        let p = self.p;
        self.islands.remove(p.spans.island[at]);
        self.numa.remove(p.spans.numa[at]);
        if let Some(cards) = &p.spans.cards {
            self.cards.add(cards, at, true);
        }
        if p.spans.accelerator[at] {
            self.accelerators.pop();
            self.links.pop();
        }
    }

    fn best_ring(&self) -> Link {
        best_ring(&self.accelerators, |a, b| self.p.lens.shape.link(a, b))
    }

    fn ahead(&self, at: usize, choice: &'p Choice<'a>, from: usize, left: usize) -> Ahead<'p, 'a> {
        let own = choice.least.get(left).copied().unwrap_or_default();
        let rest = self.p.rest_least.get(at + 1).copied().unwrap_or_default();
        let (most, least) = (left + self.p.rest[at + 1], own.and(rest));
        Ahead { at, choice, from, left, most, least }
    }

    fn line(&mut self, at: usize) -> Flow {
        let p = self.p;
        let Some(line) = p.lines.get(at) else { return self.leaf() };
        self.starts.push(self.chosen.len());
        let mut flow = Flow::On;
        for (c, choice) in line.choices.iter().enumerate() {
            let of_claim =
                self.chosen.iter().filter(|o| p.lines[o.line].claim == line.claim).count();
            if of_claim + choice.count > MOST {
                continue;
            }
            self.alternatives += u32::try_from(choice.alternative).unwrap_or(u32::MAX);
            let base = self.masks.len();
            self.begin(at, choice);
            let enough = bits::count(&self.masks[base..]) >= choice.count;
            if enough && !self.hopeless(self.ahead(at, choice, 0, choice.count)) {
                let from = self.start(at, c);
                flow = self.slots(at, c, from, choice.count);
            }
            self.masks.truncate(base);
            self.alternatives -= u32::try_from(choice.alternative).unwrap_or(u32::MAX);
            if flow == Flow::Stop {
                break;
            }
        }
        self.starts.pop();
        flow
    }

    /// Pushes the mask of what `choice` can take, given what is chosen.
    fn begin(&mut self, at: usize, choice: &Choice<'a>) {
        let p = self.p;
        let line = &p.lines[at];
        let base = self.masks.len();
        self.masks.extend(self.within(at, &choice.fit));
        for chosen in &self.chosen {
            let other = &p.lines[chosen.line];
            let device = &p.lens.shape.devices[p.order[chosen.position]];
            let same_claim = other.claim == line.claim;
            if !device.traits.shareable && (!choice.admin || same_claim) {
                bits::clear(&mut self.masks[base..], chosen.position);
            }
            for axis in &choice.axes {
                if other.choices[chosen.choice].axes.contains(axis) {
                    keep(&mut self.masks[base..], &p.axes[*axis], chosen.position);
                }
            }
        }
    }

    /// Lines and claims that ask for the same take their devices in order.
    fn start(&self, at: usize, choice: usize) -> usize {
        let Some(twin) = self.p.lines[at].twin else { return 0 };
        match self.chosen.get(self.starts[twin]) {
            Some(first) if first.line == twin && first.choice == choice => first.position,
            Some(_) | None => 0,
        }
    }

    fn slots(&mut self, at: usize, c: usize, from: usize, left: usize) -> Flow {
        if left == 0 {
            return self.line(at + 1);
        }
        let p = self.p;
        let base = self.masks.len() - p.words;
        let choice = &p.lines[at].choices[c];
        let mut position = from;
        loop {
            let next = bits::next(&self.masks[base..base + p.words], position);
            let Some(next) = next.filter(|next| self.may_come(at, choice.count - left, *next))
            else {
                return Flow::On;
            };
            let rest = &self.masks[base..base + p.words];
            if !self.room(choice, rest, next, left) {
                return Flow::On;
            }
            if *self.steps == 0 {
                self.cut = true;
                return Flow::Stop;
            }
            *self.steps -= 1;
            self.deepen();
            let found = self.found;
            if self.try_one(at, c, next, left) == Flow::Stop {
                return Flow::Stop;
            }
            // Devices further on have greater names: only a lower cost could still win.
            if self.found > found && self.at_best(self.ahead(at, choice, next + 1, left)) {
                return Flow::On;
            }
            position = next + 1;
        }
    }

    /// Takes `position`, and looks at all that can follow.
    fn try_one(&mut self, at: usize, c: usize, position: usize, left: usize) -> Flow {
        let p = self.p;
        let choice = &p.lines[at].choices[c];
        // Of interchangeable devices the first ones are taken first.
        if p.before[position].is_some_and(|twin| self.held[twin] == 0) {
            return Flow::On;
        }
        // And so of GPUs that are alike.
        if let Some(Some((own, twin))) = p.units.get(position)
            && self.begun[*own] == 0
            && self.begun[*twin] == 0
        {
            return Flow::On;
        }
        let chosen = Chosen { line: at, choice: c, position };
        let charged = self.charges.counts(p.order[position], choice.admin);
        if !self.charge(choice, chosen) {
            return Flow::On;
        }
        self.push(choice, chosen, charged);
        let mut flow = Flow::On;
        let orderly = p.lens.by_rank || self.in_order(choice);
        if orderly
            && !self.hopeless(self.ahead(at, choice, position + 1, left - 1))
            && !self.was_seen(at, position, left - 1)
        {
            let base = self.masks.len();
            self.masks.extend_from_within(base - p.words..);
            for axis in &choice.axes {
                keep(&mut self.masks[base..], &p.axes[*axis], position);
            }
            flow = self.slots(at, c, position + 1, left - 1);
            self.masks.truncate(base);
        }
        self.pop(choice, chosen);
        flow
    }

    /// Whether `left` more devices could be in `rest` from position `from` on.
    fn room(&self, choice: &Choice<'a>, rest: &[u64], from: usize, left: usize) -> bool {
        if bits::count_from(rest, from) < left {
            return false;
        }
        choice.axes.iter().map(|a| &self.p.axes[*a]).all(|axis| {
            if axis.kind != Kind::Distinct || axis.loose {
                return true;
            }
            let there = |s: &&Mask| bits::iter(s).any(|p| p >= from && bits::has(rest, p));
            axis.same.iter().filter(there).count() >= left
        })
    }

    /// Takes what a device gives of counters and capacity, and joins it to the rules over sets;
    /// false, and nothing is done, where one of them forbids it.
    fn charge(&mut self, choice: &Choice<'a>, chosen: Chosen) -> bool {
        let p = self.p;
        let at = p.order[chosen.position];
        let draws = choice.draws.get(chosen.position).map_or(&[][..], |d| d);
        if !self.charges.take(at, draws, choice.admin) {
            return false;
        }
        for (n, link) in choice.sets.iter().enumerate() {
            let rule = &p.sets[link.rule];
            let place = (chosen.line, at);
            let joined = link.values[chosen.position].is_some_and(|value| {
                self.members[link.rule].add(rule, place, value, !p.lens.by_rank)
            });
            if !joined {
                choice.sets[..n].iter().for_each(|link| self.members[link.rule].pop());
                self.charges.give(at, draws, choice.admin);
                return false;
            }
        }
        true
    }

    fn discharge(&mut self, choice: &Choice<'a>, position: usize) {
        let draws = choice.draws.get(position).map_or(&[][..], |d| d);
        choice.sets.iter().for_each(|link| self.members[link.rule].pop());
        self.charges.give(self.p.order[position], draws, choice.admin);
    }

    /// Notes a device as chosen; `charged`: it drew on its counters.
    fn push(&mut self, choice: &Choice<'a>, chosen: Chosen, charged: bool) {
        let p = self.p;
        let position = chosen.position;
        self.chosen.push(chosen);
        self.positions.push(u16::try_from(position).unwrap_or(u16::MAX));
        for axis in &choice.axes {
            self.tallies[*axis].add(p.axes[*axis].value[position]);
        }
        self.held[position] += 1;
        if self.held[position] == 1 && !p.spans.fixed[position] {
            self.count_in(position);
        }
        let gives = self.gives(choice, position);
        self.given += u32::from(gives);
        let taking = Taking {
            earnest: self.earnest(choice, position),
            gives,
            left: charged.then(|| self.charges.left()),
            shares: !choice.admin,
            draws: choice.draws.get(position).map_or(&[][..], |d| d),
        };
        self.wear.push(p.order[position], taking);
        self.begin_sets(p.order[position], 1);
        if let Some(packing) = &p.packing {
            packing.turn(&mut self.load, chosen.line, position, false);
        }
    }

    fn pop(&mut self, choice: &Choice<'a>, chosen: Chosen) {
        let p = self.p;
        let position = chosen.position;
        self.chosen.pop();
        self.positions.pop();
        for axis in &choice.axes {
            self.tallies[*axis].remove(p.axes[*axis].value[position]);
        }
        self.held[position] -= 1;
        if self.held[position] == 0 && !p.spans.fixed[position] {
            self.count_out(position);
        }
        self.given -= u32::from(self.gives(choice, position));
        self.wear.pop();
        self.begin_sets(p.order[position], -1);
        if let Some(packing) = &p.packing {
            packing.turn(&mut self.load, chosen.line, position, true);
        }
        self.discharge(choice, position);
    }

    fn begin_sets(&mut self, device: usize, by: i16) {
        if self.begun.is_empty() {
            return;
        }
        for set in self.p.lens.shape.stock.sets_of.get(device).into_iter().flatten() {
            self.begun[*set] = self.begun[*set].saturating_add_signed(by);
        }
    }

    fn earnest(&self, choice: &Choice<'a>, position: usize) -> bool {
        !choice.admin || self.p.lens.shape.devices[self.p.order[position]].traits.shareable
    }

    /// Whether nobody else can have the device then.
    fn gives(&self, choice: &Choice<'a>, position: usize) -> bool {
        !choice.admin && !self.p.lens.shape.devices[self.p.order[position]].traits.shareable
    }

    /// Whether rules whose order matters hold so far, where devices come in upstream's order.
    fn in_order(&self, choice: &Choice<'a>) -> bool {
        choice.axes.iter().all(|a| !self.p.axes[*a].loose || self.holds_loosely(*a, false))
    }

    /// A rule with values that can't be compared, judged over the devices in upstream's order.
    fn holds_loosely(&self, axis: usize, sort: bool) -> bool {
        let p = self.p;
        let under = |o: &&Chosen| p.lines[o.line].choices[o.choice].axes.contains(&axis);
        let mut of: Vec<&Chosen> = self.chosen.iter().filter(under).collect();
        if sort {
            of.sort_by_key(|o| (o.line, p.order[o.position]));
        }
        let value = |o: &Chosen| p.axes[axis].value[o.position];
        let distinct = p.axes[axis].kind == Kind::Distinct;
        of.iter().enumerate().all(|(at, o)| {
            let (own, before) = (value(o), &of[..at]);
            at == 0
                || own != ODD
                    && if distinct {
                        before.iter().all(|b| value(b) != own)
                    } else {
                        value(before[0]) == own
                    }
        })
    }

    fn leaf(&mut self) -> Flow {
        let p = self.p;
        for (at, (axis, tally)) in p.axes.iter().zip(&self.tallies).enumerate() {
            let unknown =
                axis.kind == Kind::Near && axis.known && tally.joined == 0 && self.are_several(at);
            let broken = axis.loose && p.lens.by_rank && !self.holds_loosely(at, true);
            if unknown || broken {
                return Flow::On;
            }
        }
        let stands = |(rule, members): (&SetRule, &Members<'_>)| {
            !p.lens.by_rank || !rule.loose || members.stand(rule)
        };
        if !p.sets.iter().zip(&self.members).all(stands) {
            return Flow::On;
        }
        let alternative = |o: &Chosen| {
            u16::try_from(p.lines[o.line].choices[o.choice].alternative).unwrap_or(u16::MAX)
        };
        let price = Price {
            alternatives: self.alternatives,
            devices: self.device_cost(true),
            toll: self.wear.toll(0),
            free_left: self.free_left(0),
        };
        match self.aim {
            Aim::Above(least) if price <= least => return Flow::On,
            Aim::Equal(wanted) => return self.add_equal(price == wanted),
            Aim::FirstAt(wanted) if price != wanted => return Flow::On,
            Aim::Best | Aim::First | Aim::Above(_) | Aim::FirstAt(_) | Aim::All => {}
        }
        let standing = Standing {
            price,
            ranks: self.positions.clone(),
            order: self.chosen.iter().map(alternative).collect(),
        };
        if self.aim == Aim::All {
            self.all.push((standing, self.chosen.clone()));
            return if self.all.len() < SETS_MAX { Flow::On } else { Flow::Stop };
        }
        if self.best.as_ref().is_none_or(|(best, _)| standing < *best) {
            self.best = Some((standing, self.chosen.clone()));
            self.found += 1;
        }
        match self.aim {
            Aim::First | Aim::FirstAt(_) => Flow::Stop,
            Aim::Best | Aim::Above(_) | Aim::Equal(_) | Aim::All => Flow::On,
        }
    }
}

impl Search<'_, '_> {
    /// Notes the set that is chosen as one of those that were asked for.
    fn add_equal(&mut self, is: bool) -> Flow {
        if is {
            let mut set: Vec<usize> =
                self.chosen.iter().map(|chosen| self.p.order[chosen.position]).collect();
            set.sort_unstable();
            self.equal.insert(set);
        }
        if self.equal.len() < SETS_MAX { Flow::On } else { Flow::Stop }
    }
}

/// Leaves in `mask` what may stand beside the device at `position` on this axis.
fn keep(mask: &mut [u64], axis: &Axis, position: usize) {
    let Some(same) = axis.same.get(usize::from(axis.value[position])) else { return };
    if axis.loose {
        return;
    }
    match axis.kind {
        Kind::Match | Kind::Near => mask.iter_mut().zip(same).for_each(|(m, s)| *m &= s),
        Kind::Distinct => mask.iter_mut().zip(same).for_each(|(m, s)| *m &= !s),
        Kind::Wish => {}
    }
}
