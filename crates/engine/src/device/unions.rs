//! What all sets of a few devices come to, whoever gets which of them: the least that any set is worth
//! that holds what is chosen already.
//!
//! Most of a set's cost is that of its devices together, and does not ask which request has which. Of
//! up to [`DEVICES_MAX`] devices every set is worked out once, with its best ring, and what it is
//! worth is handed down to the sets within it: a search of many requests over the same devices sees at
//! its first choice what can still come of it. Rules that judge all requests, and who fits where, are
//! minded as far as the set alone tells; the rest is left to the search, so that what is said here is
//! never more than what a set costs.

use std::cell::RefCell;
use std::rc::Rc;

use crate::cost::{DeviceCost, NicCost};
use crate::facts::Link;

use super::bits::{self, Mask};
use super::choose::Price;
use super::problem::{CODES, Choice, Kind, Line, Problem, SOLO};
use super::spans::CardTally;

/// Devices whose sets are worked out: one more would double the sets.
const DEVICES_MAX: usize = 16;
/// Different requests of which every group is looked at.
const GROUPS_MAX: usize = 6;
/// Sets that are worked out in the time that a step of a search takes.
const SETS_PER_STEP: u64 = 8;
/// No set.
const NEVER: u32 = u32::MAX;

/// What a set is worth, wishes aside: those are asked claim by claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    devices: DeviceCost,
    islands_broken: u16,
    lost_mi: u32,
}

/// How many devices, at least and at most.
type Sizes = (usize, usize);

/// All sets of a few devices; each device is a bit.
#[derive(Debug)]
pub(super) struct Unions {
    /// By position, and then by device that the pod has already.
    bit_of: Vec<u32>,
    /// The bits of what the pod has already.
    always: u32,
    /// All devices that a set could have are among them, and not only its accelerators.
    whole: bool,
    /// Lines whose devices nobody else can have, here or before.
    alone: Vec<bool>,
    /// What the lines from each on add: at least that of those alone.
    rest: Vec<Sizes>,
    /// What sets are worth, ascending.
    worths: Vec<Worth>,
    /// By set: the place of its worth.
    own: Vec<u32>,
    /// By set: the place of the least worth among the sets of some sizes that hold it.
    least: RefCell<Vec<(Sizes, Rc<[u32]>)>>,
}

impl Unions {
    /// None where there are too many devices, or too few to tell anything.
    pub(super) fn of(p: &Problem<'_>) -> Option<Self> {
        let (devices, whole) = devices(p)?;
        let bit = |at: &usize| devices.iter().position(|d| d == at).map_or(0, |bit| 1 << bit);
        let bit_of: Vec<u32> = p.order.iter().chain(&p.fixed).map(bit).collect();
        let always = bit_of[p.order.len()..].iter().fold(0, |all, bit| all | bit);
        let twice = |choice: &Choice<'_>, at: usize| {
            let shareable = p.lens.shape.devices[p.order[at]].traits.shareable;
            bit_of[at] != 0 && (choice.admin || shareable || bit_of[at] & always != 0)
        };
        let alone = |choice: &Choice<'_>| !bits::iter(&choice.fit).any(|at| twice(choice, at));
        let alone: Vec<bool> = p.lines.iter().map(|line| line.choices.iter().all(alone)).collect();
        let mut rest = vec![(0, 0); p.lines.len() + 1];
        for (at, line) in p.lines.iter().enumerate().rev() {
            let of = line.choices.iter().map(|c| sizes(c, c.count, alone[at], &bit_of));
            let (least, most) = of.fold((usize::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
            rest[at] = (rest[at + 1].0 + least, rest[at + 1].1 + most);
        }
        let (worths, own, least) = (Vec::new(), Vec::new(), RefCell::default());
        let mut unions = Self { bit_of, always, whole, alone, rest, worths, own, least };
        unions.work_out(p, &devices);
        Some(unions)
    }

    /// Steps that it takes to work them out: for one step of a search there is time for some sets.
    pub(super) fn steps(p: &Problem<'_>) -> Option<u64> {
        devices(p).map(|(devices, _)| (1 << devices.len()) / SETS_PER_STEP)
    }

    /// Raises the floor under all sets that hold what is chosen (lines and positions) and get `left`
    /// more devices of a choice of line `at`, and those of the lines after it. False where there is
    /// none.
    pub(super) fn raise(
        &self,
        floor: &mut Price,
        chosen: impl Iterator<Item = (usize, usize)>,
        (at, choice, left): (usize, &Choice<'_>, usize),
    ) -> bool {
        let (mut set, mut apart) = (self.always, self.always);
        for (line, position) in chosen {
            set |= self.bit_of[position];
            apart |= if self.alone[line] { self.bit_of[position] } else { 0 };
        }
        let own = sizes(choice, left, self.alone[at], &self.bit_of);
        let rest = self.rest.get(at + 1).copied().unwrap_or_default();
        let (held, apart) = (set.count_ones() as usize, apart.count_ones() as usize);
        let least = held.max(apart + own.0 + rest.0);
        let Some(worth) = self.least(set, (least, held + own.1 + rest.1)) else { return false };
        self.compare(floor, &worth);
        true
    }

    /// Part by part: each counts only where none before it is above what the set is worth, for then
    /// other sets could be meant.
    fn compare(&self, floor: &mut Price, worth: &Worth) {
        let (devices, least) = (&mut floor.devices, &worth.devices);
        if (devices.islands, devices.slowest, devices.farthest)
            > (least.islands, least.slowest, least.farthest)
        {
            return;
        }
        (devices.islands, devices.slowest, devices.farthest) =
            (least.islands, least.slowest, least.farthest);
        if self.whole {
            if devices.nics > least.nics {
                return;
            }
            devices.nics = least.nics;
        }
        if devices.numa > least.numa {
            return;
        }
        devices.numa = least.numa;
        let toll = &mut floor.toll;
        if toll.islands_broken > worth.islands_broken {
            return;
        }
        toll.islands_broken = worth.islands_broken;
        toll.lost_mi = toll.lost_mi.max(worth.lost_mi);
    }

    fn least(&self, set: u32, sizes: Sizes) -> Option<Worth> {
        let mut known = self.least.borrow_mut();
        let at = known.iter().position(|(of, _)| *of == sizes).unwrap_or_else(|| {
            known.push((sizes, self.handed_down(sizes)));
            known.len() - 1
        });
        let place = known[at].1.get(set as usize)?;
        self.worths.get(*place as usize).copied()
    }

    /// For each set the least of those of these sizes that hold it.
    fn handed_down(&self, (from, to): Sizes) -> Rc<[u32]> {
        let fits = |set: usize| (from..=to).contains(&(set.count_ones() as usize));
        let own = self.own.iter().enumerate();
        let mut least: Vec<u32> =
            own.map(|(set, own)| if fits(set) { *own } else { NEVER }).collect();
        let mut bit = 1;
        while bit < least.len() {
            for set in (0..least.len()).filter(|set| set & bit == 0) {
                least[set] = least[set].min(least[set | bit]);
            }
            bit <<= 1;
        }
        least.into()
    }

    fn work_out(&mut self, p: &Problem<'_>, devices: &[usize]) {
        let parts = Parts::of(self, p, devices);
        let held = self.always.count_ones() as usize;
        let (least, most) = (held + self.rest[0].0, held + self.rest[0].1);
        let rules = Rules::of(self, p, devices);
        let rings = Rings::of(p, devices, parts.accelerators, most);
        let mut all: Vec<(Worth, u32)> = Vec::new();
        for set in 0..1_u32 << devices.len() {
            let size = set.count_ones() as usize;
            let known = set & self.always == self.always;
            if known && (least..=most).contains(&size) && rules.allow(set, self.always) {
                all.push((parts.worth(p, set, &rings), set));
            }
        }
        all.sort_unstable();
        self.own = vec![NEVER; 1 << devices.len()];
        for (worth, set) in all {
            if self.worths.last() != Some(&worth) {
                self.worths.push(worth);
            }
            self.own[set as usize] = u32::try_from(self.worths.len() - 1).unwrap_or(NEVER);
        }
    }
}

/// The devices whose sets are worked out: all that a set could have, or only the accelerators.
fn devices(p: &Problem<'_>) -> Option<(Vec<usize>, bool)> {
    let mut all: Vec<usize> = p.order.iter().chain(&p.fixed).copied().collect();
    all.sort_unstable();
    all.dedup();
    let whole = all.len() <= DEVICES_MAX;
    if !whole {
        all.retain(|at| p.lens.shape.is_accelerator(*at));
    }
    (2..=DEVICES_MAX).contains(&all.len()).then_some((all, whole))
}

/// How many of `count` devices of a choice have a bit; none for sure where others can have them too.
fn sizes(choice: &Choice<'_>, count: usize, alone: bool, bit_of: &[u32]) -> Sizes {
    let (mut any, mut all) = (false, true);
    for at in bits::iter(&choice.fit) {
        any |= bit_of[at] != 0;
        all &= bit_of[at] != 0;
    }
    (if all && alone { count } else { 0 }, if any { count } else { 0 })
}

/// What each device adds to what a set is worth.
struct Parts {
    /// By bit: a position, or what comes after them.
    at: Vec<usize>,
    accelerators: u32,
    /// Network cards are among them.
    cards: bool,
    /// Whole islands, each with how many devices it has; none where not all that use them are known.
    islands: Vec<(u32, usize)>,
    sizes_mi: Vec<u32>,
}

impl Parts {
    fn of(unions: &Unions, p: &Problem<'_>, devices: &[usize]) -> Self {
        let bits = || (0..devices.len()).map(|bit| 1_u32 << bit);
        let first = |bit: u32| unions.bit_of.iter().position(|of| *of == bit).unwrap_or(0);
        let at: Vec<usize> = bits().map(first).collect();
        let accelerator = |bit: &usize| p.spans.accelerator[at[*bit]];
        let accelerators = (0..at.len()).filter(accelerator).fold(0, |all, bit| all | 1 << bit);
        // What counters take with a device is left to the search.
        let plain = unions.alone.iter().all(|alone| *alone) && !p.lens.shape.stock.counted;
        let size = |(device, bit): (&usize, u32)| match plain && unions.always & bit == 0 {
            true => p.lens.shape.stock.size[*device],
            false => 0,
        };
        let sizes_mi = devices.iter().zip(bits()).map(size).collect();
        let whole = &p.spans.whole;
        let in_island = |island: usize| {
            let of = devices.iter().zip(bits());
            let of = of.filter(|(d, _)| whole.of.get(**d) == Some(&Some(island)));
            of.fold(0, |all, (_, bit)| all | bit) & !unions.always
        };
        let islands = (0..whole.sizes.len()).map(|island| (in_island(island), whole.sizes[island]));
        let islands = if plain && unions.whole { islands.collect() } else { Vec::new() };
        let cards = unions.whole && p.spans.cards.is_some();
        Self { at, accelerators, cards, islands, sizes_mi }
    }

    fn worth(&self, p: &Problem<'_>, set: u32, rings: &Rings) -> Worth {
        let spans = &p.spans;
        let members = || (0..self.at.len()).filter(|bit| set & 1 << bit != 0);
        let (slowest, farthest) = match spans.silent && set.count_ones() > 1 {
            true => (Link::UNKNOWN, Link::UNKNOWN),
            false => rings.of_set(set & self.accelerators),
        };
        let broken = |(of, size): &&(u32, usize)| {
            let used = (set & of).count_ones() as usize;
            used > 0 && used < *size
        };
        let broken = self.islands.iter().filter(broken).count();
        Worth {
            devices: DeviceCost {
                of_group: 0,
                unaligned: 0,
                islands: beyond_first(members().map(|bit| spans.island[self.at[bit]])),
                slowest,
                farthest: farthest.max(slowest),
                nics: self.nics(p, set),
                numa: beyond_first(members().map(|bit| spans.numa[self.at[bit]])),
            },
            islands_broken: u16::try_from(broken).unwrap_or(u16::MAX),
            lost_mi: members().map(|bit| self.sizes_mi[bit]).fold(0, u32::saturating_add),
        }
    }

    fn nics(&self, p: &Problem<'_>, set: u32) -> NicCost {
        let Some(cards) = p.spans.cards.as_ref().filter(|_| self.cards) else {
            return NicCost::default();
        };
        let mut tally = CardTally::new(cards);
        let members = self.at.iter().enumerate().filter(|(bit, _)| set & 1 << bit != 0);
        members.for_each(|(_, at)| tally.add(cards, *at, false));
        let [off_switch, off_root, off_numa] = tally.off(tally.chosen());
        NicCost { off_switch, off_root, off_numa }
    }
}

/// How many different domains beyond the first.
fn beyond_first(codes: impl Iterator<Item = u16>) -> u16 {
    let (mut known, mut alone) = (Vec::new(), 0_usize);
    for code in codes {
        match code {
            SOLO => alone += 1,
            code if code > CODES || known.contains(&code) => {}
            code => known.push(code),
        }
    }
    u16::try_from((alone + known.len()).saturating_sub(1)).unwrap_or(u16::MAX)
}

/// The best ring's worst link of each set of accelerators, and the slowest of all pairs.
struct Rings {
    slowest: Vec<Link>,
    farthest: Vec<Link>,
}

impl Rings {
    /// Of sets of up to `most`.
    fn of(p: &Problem<'_>, devices: &[usize], accelerators: u32, most: usize) -> Self {
        let n = devices.len();
        let link = |a: usize, b: usize| p.lens.shape.link(devices[a], devices[b]);
        let links: Vec<Vec<Link>> = (0..n).map(|a| (0..n).map(|b| link(a, b)).collect()).collect();
        let mut rings =
            Self { slowest: vec![Link::IDEAL; 1 << n], farthest: vec![Link::IDEAL; 1 << n] };
        // The best path from the first of a set through all others, by where it ends.
        let mut paths = vec![Link::UNKNOWN; n << n];
        for set in 1..1_usize << n {
            let stranger = set & !(accelerators as usize) != 0;
            if stranger || set.count_ones() as usize > most {
                continue;
            }
            let first = set.trailing_zeros() as usize;
            let rest = set & (set - 1);
            if rest == 0 {
                paths[set * n + first] = Link::IDEAL;
                continue;
            }
            let mut ring = Link::UNKNOWN;
            for last in ones(rest) {
                let before = set & !(1 << last);
                let through = if before & rest == 0 { before } else { before & rest };
                let step = |from: usize| paths[before * n + from].max(links[from][last]);
                let path = ones(through).map(step).min().unwrap_or(Link::UNKNOWN);
                paths[set * n + last] = path;
                ring = ring.min(path.max(links[last][first]));
            }
            rings.slowest[set] = ring;
            let own = ones(rest).map(|other| links[first][other]).max();
            rings.farthest[set] = rings.farthest[rest].max(own.unwrap_or(Link::IDEAL));
        }
        rings
    }

    fn of_set(&self, set: u32) -> (Link, Link) {
        (self.slowest[set as usize], self.farthest[set as usize])
    }
}

/// The bits of a number, ascending.
fn ones(mut set: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = set.trailing_zeros() as usize;
        (set != 0).then(|| {
            set &= set - 1;
            bit
        })
    })
}

/// What keeps devices from being one set, whoever gets them.
struct Rules {
    /// For each device those that may be there with it.
    beside: Vec<u32>,
    /// Groups of requests: what they can have, and how many they need of it.
    groups: Vec<(u32, u32)>,
    /// Counters: what is left, and what each device takes.
    counters: Vec<(i128, Vec<i128>)>,
}

impl Rules {
    fn of(unions: &Unions, p: &Problem<'_>, devices: &[usize]) -> Self {
        let bits_of = |fit: &[u64]| bits::iter(fit).fold(0, |all, at| all | unions.bit_of[at]);
        let choices = p.lines.iter().flat_map(|line| &line.choices);
        let asking: Vec<&Choice<'_>> = choices.filter(|c| bits_of(&c.fit) != 0).collect();
        let (groups, counters) = (groups(unions, p), counters(unions, p, devices));
        let mut rules = Self { beside: vec![u32::MAX; devices.len()], groups, counters };
        for (at, axis) in p.axes.iter().enumerate().filter(|(_, axis)| !axis.loose) {
            if !asking.iter().all(|choice| choice.axes.contains(&at)) {
                continue;
            }
            for position in 0..p.order.len() {
                let own = unions.bit_of[position];
                let same = axis.same.get(usize::from(axis.value[position]));
                let (Some(same), true) = (same, own != 0) else { continue };
                let beside = match axis.kind {
                    Kind::Match | Kind::Near => bits_of(same) | unions.always,
                    Kind::Distinct => !bits_of(same) | own,
                    Kind::Wish => continue,
                };
                rules.beside[own.trailing_zeros() as usize] &= beside;
            }
        }
        rules
    }

    fn allow(&self, set: u32, always: u32) -> bool {
        let own = set & !always;
        let enough = |(left, takes): &(i128, Vec<i128>)| {
            let taken = ones(own as usize).map(|bit| takes[bit]);
            taken.fold(0_i128, i128::saturating_add) <= *left
        };
        ones(own as usize).all(|bit| own & !self.beside[bit] == 0)
            && self.groups.iter().all(|(of, needed)| (own & of).count_ones() >= *needed)
            && self.counters.iter().all(enough)
    }
}

/// Requests for nothing but these devices, which they share with nobody, one by one and together: as
/// many as they ask for must be there.
fn groups(unions: &Unions, p: &Problem<'_>) -> Vec<(u32, u32)> {
    let fits = |line: &Line<'_>| -> Vec<usize> {
        line.choices.iter().flat_map(|choice| bits::iter(&choice.fit)).collect()
    };
    let own = |line: &Line<'_>| fits(line).iter().all(|at| unions.bit_of[*at] != 0);
    let lines = p.lines.iter().zip(&unions.alone).filter(|(line, alone)| **alone && own(line));
    let asked = lines.map(|(line, _)| {
        let of = fits(line).iter().fold(0, |all, at| all | unions.bit_of[*at]);
        (vec![u64::from(of)], line.choices.iter().map(|choice| choice.count).min().unwrap_or(0))
    });
    let narrow = |(of, count): (Mask, usize)| {
        let of = of.first().and_then(|word| u32::try_from(*word).ok()).unwrap_or(u32::MAX);
        (of, u32::try_from(count).unwrap_or(u32::MAX))
    };
    crowds(asked).into_iter().map(narrow).collect()
}

/// Who asks for so many of what, one by one and, where there are not too many, in every company.
pub(super) fn crowds(asked: impl Iterator<Item = (Mask, usize)>) -> Vec<(Mask, usize)> {
    let mut alone: Vec<(Mask, usize)> = Vec::new();
    for (of, count) in asked {
        match alone.iter_mut().find(|(other, _)| *other == of) {
            Some((_, sum)) => *sum += count,
            None => alone.push((of, count)),
        }
    }
    if alone.len() > GROUPS_MAX {
        return alone;
    }
    let mut all: Vec<(Mask, usize)> = Vec::new();
    for (of, count) in alone {
        for before in 0..all.len() {
            let (mut joint, sum) = all[before].clone();
            joint.iter_mut().zip(&of).for_each(|(word, own)| *word |= own);
            all.push((joint, sum + count));
        }
        all.push((of, count));
    }
    all
}

/// The counters that could run out, where every device takes its own.
fn counters(unions: &Unions, p: &Problem<'_>, devices: &[usize]) -> Vec<(i128, Vec<i128>)> {
    let (shape, left) = (p.lens.shape, &p.lens.usage.counters_left);
    if !shape.stock.counted || !unions.alone.iter().all(|alone| *alone) {
        return Vec::new();
    }
    let takes = |counter: usize, device: &usize| {
        let of = shape.takes(*device).iter().find(|(of, _)| *of == counter);
        of.map_or(0, |(_, amount)| *amount)
    };
    let of = |counter: usize| -> Vec<i128> {
        devices.iter().map(|device| takes(counter, device)).collect()
    };
    let all = left.iter().enumerate().map(|(counter, left)| (*left, of(counter)));
    let short = |(left, takes): &(i128, Vec<i128>)| {
        takes.iter().copied().fold(0_i128, i128::saturating_add) > *left
    };
    all.filter(short).collect()
}
