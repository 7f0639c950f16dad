//! The search: depth first through requests, alternatives and devices, upstream's way.
//!
//! Positions are tried in ascending order, so sets come in the order of their names and the first of
//! equal cost is the one that wins. A branch is left when the rules leave too few devices, when all
//! it could still give costs as much as what was found, or when it only exchanges interchangeable
//! devices or requests: of such sets the first is the smallest. With `first` the first set is taken.

use std::cmp::Ordering;

use crate::cost::DeviceCost;
use crate::facts::LinkClass;

use super::bits::{self, Mask};
use super::charge::Charges;
use super::choose::{Price, Standing, free_left};
use super::problem::{Axis, CODES, Choice, IDLE, Kind, LACK, Line, MOST, ODD, OUT, Problem, SOLO};
use super::ring::best_ring;
use super::sets::{Members, SetRule};

/// One device chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) line: usize,
    pub(super) choice: usize,
    pub(super) position: usize,
}

/// How a search ended.
pub(super) struct Outcome {
    /// The best set found, and its cost.
    pub(super) best: Option<(Standing, Vec<Chosen>)>,
    /// Whether the bound ended it.
    pub(super) cut: bool,
}

#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Stop,
}

/// Searches `problem`; with `first` it stops at the first set. `steps` is what may be spent.
pub(super) fn search(problem: &Problem<'_>, first: bool, steps: &mut u64) -> Outcome {
    let mut search = Search::new(problem, first, steps);
    if !problem.hopeless {
        let _ended = search.line(0);
    }
    Outcome { best: search.best, cut: search.cut }
}

/// How often each value is among the chosen.
#[derive(Clone, Debug, Default)]
struct Tally {
    counts: Vec<u16>,
    distinct: usize,
    lacking: usize,
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
            LACK => self.lacking += 1,
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
            LACK => self.lacking -= 1,
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

struct Search<'p, 'a> {
    p: &'p Problem<'a>,
    first: bool,
    steps: &'p mut u64,
    chosen: Vec<Chosen>,
    /// The ranks chosen, in the same order.
    positions: Vec<u16>,
    /// Where each line begun so far starts in `chosen`.
    starts: Vec<usize>,
    alternatives: u32,
    /// How often each position is chosen.
    held: Vec<u16>,
    /// How often each position is chosen in earnest: not only looked at.
    used: Vec<u16>,
    tallies: Vec<Tally>,
    islands: Tally,
    roots: Tally,
    numa: Tally,
    nics: usize,
    accelerators: usize,
    /// Exclusive devices that nobody holds, and how many of them are given.
    free: u32,
    given: u32,
    /// How many devices of each whole island are chosen in earnest.
    broken: Vec<usize>,
    charges: Charges<'a>,
    /// Those chosen under each rule over sets.
    members: Vec<Members<'a>>,
    /// Masks of what is left, one for each device chosen and line begun, the innermost last.
    masks: Vec<u64>,
    best: Option<(Standing, Vec<Chosen>)>,
    /// How often a better set was found.
    found: u32,
    cut: bool,
}

fn values(of: &[u16]) -> usize {
    of.iter().filter(|v| **v < CODES).map(|v| usize::from(*v) + 1).max().unwrap_or(0)
}

impl<'p, 'a> Search<'p, 'a> {
    fn new(p: &'p Problem<'a>, first: bool, steps: &'p mut u64) -> Self {
        let n = p.order.len();
        let usage = p.lens.usage;
        Self {
            p,
            first,
            steps,
            chosen: Vec::new(),
            positions: Vec::new(),
            starts: Vec::new(),
            alternatives: 0,
            held: vec![0; n],
            used: vec![0; n],
            tallies: p.axes.iter().map(|a| Tally::new(values(&a.value))).collect(),
            islands: Tally::new(values(&p.spans.island)),
            roots: Tally::new(values(&p.spans.root)),
            numa: Tally::new(values(&p.spans.numa)),
            nics: 0,
            accelerators: 0,
            free: free_left(p.lens.shape, usage, &[]),
            given: 0,
            broken: vec![0; p.spans.whole_sizes.len()],
            charges: Charges::new(p.lens.shape, usage),
            members: vec![Members::default(); p.sets.len()],
            masks: Vec::with_capacity(p.words * 8),
            best: None,
            found: 0,
            cut: false,
        }
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
            self.begin(line, choice);
            let enough = bits::count(&self.masks[base..]) >= choice.count;
            if enough && !self.hopeless(choice.count + p.rest[at + 1]) {
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
    fn begin(&mut self, line: &Line<'a>, choice: &Choice<'a>) {
        let p = self.p;
        let base = self.masks.len();
        self.masks.extend_from_slice(&choice.fit);
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
            let Some(next) = next else { return Flow::On };
            let rest = &self.masks[base..base + p.words];
            if !self.room(choice, rest, next, left) {
                return Flow::On;
            }
            if *self.steps == 0 {
                self.cut = true;
                return Flow::Stop;
            }
            *self.steps -= 1;
            let found = self.found;
            if self.try_one(at, c, next, left) == Flow::Stop {
                return Flow::Stop;
            }
            // Devices further on have greater names: only a lower cost could still win.
            if self.found > found && self.at_best(left + p.rest[at + 1]) {
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
        let chosen = Chosen { line: at, choice: c, position };
        if !self.charge(choice, chosen) {
            return Flow::On;
        }
        self.push(choice, chosen);
        let mut flow = Flow::On;
        let orderly = p.lens.by_rank || self.in_order(choice);
        if orderly && !self.hopeless(left - 1 + p.rest[at + 1]) {
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

    fn push(&mut self, choice: &Choice<'a>, chosen: Chosen) {
        let p = self.p;
        let position = chosen.position;
        self.chosen.push(chosen);
        self.positions.push(u16::try_from(position).unwrap_or(u16::MAX));
        for axis in &choice.axes {
            self.tallies[*axis].add(p.axes[*axis].value[position]);
        }
        self.held[position] += 1;
        if self.held[position] == 1 {
            self.islands.add(p.spans.island[position]);
            self.roots.add(p.spans.root[position]);
            self.numa.add(p.spans.numa[position]);
            self.nics += usize::from(p.spans.nic[position]);
            self.accelerators += usize::from(p.spans.accelerator[position]);
        }
        self.given += u32::from(self.gives(choice, position));
        if self.earnest(choice, position) {
            self.used[position] += 1;
            if let (1, Some(island)) = (self.used[position], p.spans.whole[position]) {
                self.broken[island] += 1;
            }
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
        if self.held[position] == 0 {
            self.islands.remove(p.spans.island[position]);
            self.roots.remove(p.spans.root[position]);
            self.numa.remove(p.spans.numa[position]);
            self.nics -= usize::from(p.spans.nic[position]);
            self.accelerators -= usize::from(p.spans.accelerator[position]);
        }
        self.given -= u32::from(self.gives(choice, position));
        if self.earnest(choice, position) {
            self.used[position] -= 1;
            if let (0, Some(island)) = (self.used[position], p.spans.whole[position]) {
                self.broken[island] -= 1;
            }
        }
        self.discharge(choice, position);
    }

    fn earnest(&self, choice: &Choice<'a>, position: usize) -> bool {
        !choice.admin || self.p.lens.shape.devices[self.p.order[position]].traits.shareable
    }

    /// Whether nobody else can have the device then.
    fn gives(&self, choice: &Choice<'a>, position: usize) -> bool {
        !choice.admin && !self.p.lens.shape.devices[self.p.order[position]].traits.shareable
    }

    /// Exclusive devices that stay free whatever the `more` devices are.
    fn free_left(&self, more: usize) -> u32 {
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        self.free.saturating_sub(self.given).saturating_sub(more)
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

    /// The least that a set with what is chosen can cost; `more` devices at most can follow.
    fn floor(&self, more: usize) -> Price {
        Price {
            alternatives: self.alternatives,
            devices: self.device_cost(false),
            islands_broken: self.islands_broken(more),
            free_left: self.free_left(more),
        }
    }

    /// Whether no set with what is chosen can cost less than what was found.
    fn at_best(&self, more: usize) -> bool {
        self.best.as_ref().is_some_and(|(best, _)| self.floor(more) >= best.price)
    }

    /// Whether nothing below can beat what was found.
    fn hopeless(&self, more: usize) -> bool {
        let Some((best, _)) = &self.best else { return false };
        match self.floor(more).cmp(&best.price) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => {
                let shown = self.positions.len().min(best.ranks.len());
                self.positions[..] > best.ranks[..shown]
            }
        }
    }

    /// The cost of the devices chosen: of these alone where they are `all`, else the least that any
    /// set with them can cost.
    fn device_cost(&self, all: bool) -> DeviceCost {
        let p = self.p;
        let unmet = |(axis, tally): &(&Axis, &Tally)| {
            axis.kind == Kind::Wish
                && (tally.distinct > 1 || tally.lacking > 0 || all && tally.joined == 0)
        };
        let unaligned = p.axes.iter().zip(&self.tallies).filter(unmet).count();
        let slowest = if all { self.slowest() } else { self.slowest_at_least() };
        DeviceCost {
            unaligned: u16::try_from(unaligned).unwrap_or(u16::MAX),
            islands: self.islands.beyond_first(),
            slowest,
            roots: if self.nics > 0 { self.roots.beyond_first() } else { 0 },
            numa: self.numa.beyond_first(),
        }
    }

    /// Whether several devices are chosen of whose links nothing is known.
    fn is_in_the_dark(&self) -> bool {
        let first = self.chosen.first().map(|c| c.position);
        self.p.spans.silent && self.chosen.iter().any(|c| Some(c.position) != first)
    }

    fn slowest(&self) -> LinkClass {
        if self.is_in_the_dark() {
            return LinkClass::Unknown;
        }
        if self.accelerators < 2 {
            return LinkClass::Nvlink;
        }
        let p = self.p;
        let mut of: Vec<usize> = Vec::with_capacity(self.accelerators);
        for chosen in &self.chosen {
            let at = p.order[chosen.position];
            if p.spans.accelerator[chosen.position] && !of.contains(&at) {
                of.push(at);
            }
        }
        best_ring(of.len(), |a, b| p.lens.shape.link(of[a], of[b]))
    }

    /// Each accelerator of two or more uses a link of its own, of three or more two.
    fn slowest_at_least(&self) -> LinkClass {
        let mut least = LinkClass::Nvlink;
        if self.is_in_the_dark() {
            return LinkClass::Unknown;
        }
        if self.accelerators < 2 {
            return least;
        }
        for chosen in &self.chosen {
            if self.p.spans.accelerator[chosen.position] {
                let (best, second) = self.p.spans.links[chosen.position];
                least = least.max(if self.accelerators > 2 { second } else { best });
            }
        }
        least
    }

    /// Whole islands that are used in part, and stay so whatever the `more` devices are.
    fn islands_broken(&self, more: usize) -> u16 {
        let sizes = &self.p.spans.whole_sizes;
        let broken = |(used, size): &(&usize, &usize)| **used > 0 && *size - *used > more;
        let count = self.broken.iter().zip(sizes).filter(broken).count();
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    fn leaf(&mut self) -> Flow {
        let p = self.p;
        for (at, (axis, tally)) in p.axes.iter().zip(&self.tallies).enumerate() {
            let unknown = axis.kind == Kind::Near && axis.known && tally.joined == 0;
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
        let standing = Standing {
            price: Price {
                alternatives: self.alternatives,
                devices: self.device_cost(true),
                islands_broken: self.islands_broken(0),
                free_left: self.free_left(0),
            },
            ranks: self.positions.clone(),
            order: self.chosen.iter().map(alternative).collect(),
        };
        if self.best.as_ref().is_none_or(|(best, _)| standing < *best) {
            self.best = Some((standing, self.chosen.clone()));
            self.found += 1;
        }
        if self.first { Flow::Stop } else { Flow::On }
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

/// For each position the one before that is interchangeable with it: the same to every alternative,
/// rule and part of the cost, held alike, and linked alike to all others.
pub(super) fn twins(p: &Problem<'_>) -> Vec<Option<usize>> {
    // Where the order of the devices matters, none can stand for another.
    if p.is_loose() {
        return vec![None; p.order.len()];
    }
    let marks: Vec<u64> = (0..p.order.len()).map(|at| mark(p, at)).collect();
    let linked: Vec<usize> = (0..p.order.len()).filter(|at| p.spans.accelerator[*at]).collect();
    let twin = |a: usize, b: usize| {
        marks[a] == marks[b] && same_kind(p, a, b) && same_links(p, &linked, a, b)
    };
    (0..p.order.len()).map(|at| (0..at).rev().find(|before| twin(*before, at))).collect()
}

/// A number that interchangeable positions share.
fn mark(p: &Problem<'_>, at: usize) -> u64 {
    let fits = p.lines.iter().flat_map(|l| &l.choices).map(|c| u64::from(bits::has(&c.fit, at)));
    let values = p.axes.iter().map(|a| u64::from(a.value[at]));
    let spans = [p.spans.island[at], p.spans.root[at], p.spans.numa[at]].map(u64::from);
    fits.chain(values)
        .chain(spans)
        .fold(0, |mark, v| mark.wrapping_mul(0x9e37_79b9).wrapping_add(v))
}

fn same_kind(p: &Problem<'_>, a: usize, b: usize) -> bool {
    let (shape, usage, spans) = (p.lens.shape, p.lens.usage, &p.spans);
    let (x, y) = (p.order[a], p.order[b]);
    let (one, other) = (&shape.devices[x], &shape.devices[y]);
    let choices = || p.lines.iter().flat_map(|l| &l.choices);
    choices().all(|c| bits::has(&c.fit, a) == bits::has(&c.fit, b))
        && choices().all(|c| c.draws.get(a) == c.draws.get(b))
        && choices().all(|c| c.sets.iter().all(|link| link.values[a] == link.values[b]))
        && p.axes.iter().all(|axis| axis.value[a] == axis.value[b])
        && spans.island[a] == spans.island[b]
        && spans.root[a] == spans.root[b]
        && spans.numa[a] == spans.numa[b]
        && spans.accelerator[a] == spans.accelerator[b]
        && spans.nic[a] == spans.nic[b]
        && spans.whole[a] == spans.whole[b]
        && usage.is_taken(x) == usage.is_taken(y)
        && usage.shares.get(x) == usage.shares.get(y)
        && usage.consumed.get(x) == usage.consumed.get(y)
        && one.traits.shareable == other.traits.shareable
        && one.traits.counters == other.traits.counters
        && one.traits.groups == other.traits.groups
        && (one.traits.counters.is_empty() || one.pool == other.pool)
        && (!one.traits.shareable || one.traits.capacity == other.traits.capacity)
}

fn same_links(p: &Problem<'_>, linked: &[usize], a: usize, b: usize) -> bool {
    !p.spans.accelerator[a]
        || linked.iter().filter(|c| **c != a && **c != b).all(|c| {
            let link = |at: usize| p.lens.shape.link(p.order[at], p.order[*c]);
            link(a) == link(b)
        })
}
