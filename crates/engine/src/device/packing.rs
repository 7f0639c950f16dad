//! How well GPUs that are given out in partitions can still be packed: the least that all requests to
//! come must take from later ones, whichever partitions they get.
//!
//! Each GPU (a counter set) is a bin of its own. All ways in which the requests could share one GPU
//! are written down once for GPUs that are alike; what several GPUs do together is the least sum. It
//! minds counters and who fits where, and leaves all other rules to the search: what it says is never
//! more than what a set costs.

use std::cell::OnceCell;

use super::bits;
use super::problem::{CODES, Least, OUT, Problem};

/// Different kinds of requests that are looked at.
const KINDS: usize = 4;
/// Amounts of each kind, in all their combinations.
const AMOUNTS_MAX: usize = 1024;
/// Ways to share one GPU; where there are more, nothing is said.
const WAYS_MAX: usize = 2000;
/// No way at all.
pub(super) const NEVER: Least = Least { wholes: u16::MAX, lost_mi: u32::MAX };

/// What can be said of a question.
#[derive(Debug)]
pub(super) struct Packing {
    /// The kind of each line; none for one that draws on no counters.
    kinds: Vec<Option<usize>>,
    /// Amounts of all kinds as one number, each kind with its stride.
    strides: Vec<usize>,
    digits: Vec<[usize; KINDS]>,
    wanted: usize,
    /// For each kind and position: the GPU, and the bit that says that it was taken.
    spots: Vec<Vec<Option<(usize, u64)>>>,
    /// The GPUs: what each is like, and its NUMA node.
    gpus: Vec<(usize, u16)>,
    sorts: Vec<Sort>,
    /// The sort that most GPUs are of, and the least that so many fresh ones lose to each amount.
    main: usize,
    fresh: Vec<Vec<Least>>,
    /// Whole islands that no set uses up: who uses one breaks it.
    pub(super) breaks: Vec<bool>,
}

/// GPUs that are alike.
#[derive(Debug)]
struct Sort {
    gpu: Gpu,
    /// By their bits, the empty one first.
    ways: Vec<Way>,
    /// Amounts that leave nothing of it.
    exhausting: Vec<usize>,
}

/// Counters of one GPU, and how much of each is drawn.
type Draws = Vec<(usize, i128)>;

/// What a GPU is to the requests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Gpu {
    left: Vec<i128>,
    untouched: bool,
    /// Size of each device, none where it can't be had as things are; and what it draws.
    devices: Vec<(Option<u32>, Draws)>,
    /// Device and kind.
    items: Vec<(usize, usize)>,
    /// Bits of items that can stand for each other: of these the first are taken first.
    alike: Vec<u64>,
}

/// A way to share a GPU.
#[derive(Debug)]
struct Way {
    bits: u64,
    amount: usize,
    cost: Least,
    /// What can be added, and what the GPU has lost then at least.
    then: OnceCell<Vec<(usize, Least)>>,
}

/// What is taken of each GPU, and what is still wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    /// Bits by GPU.
    taken: Vec<u64>,
    left: usize,
}

impl Packing {
    /// None where it can't tell more than the search sees by itself.
    pub(super) fn of(p: &Problem<'_>) -> Option<Self> {
        let asked: usize = p.lines.iter().flat_map(|l| &l.choices).map(|c| c.count).sum();
        if !p.lens.shape.stock.counted || asked < 2 {
            return None;
        }
        let mut packing = Self::with_kinds(p)?;
        let sets = packing.add_gpus(p)?;
        packing.break_islands(p, &sets);
        let of_sort = |sort: &usize| packing.gpus.iter().filter(|(own, _)| own == sort).count();
        packing.main = (0..packing.sorts.len()).rev().max_by_key(of_sort)?;
        packing.fresh = packing.fill(of_sort(&packing.main));
        Some(packing)
    }

    fn with_kinds(p: &Problem<'_>) -> Option<Self> {
        let stock = &p.lens.shape.stock;
        let mut kinds = Vec::new();
        let mut fits: Vec<(&bits::Mask, usize)> = Vec::new();
        for line in &p.lines {
            let [choice] = &line.choices[..] else { return None };
            let counted = |at: usize| !stock.sets_of[p.order[at]].is_empty();
            let of_counters = bits::iter(&choice.fit).filter(|at| counted(*at)).count();
            if of_counters == 0 {
                kinds.push(None);
                continue;
            }
            if choice.admin || of_counters < bits::count(&choice.fit) {
                return None;
            }
            let kind = fits.iter().position(|(fit, _)| **fit == choice.fit);
            let kind = kind.unwrap_or_else(|| {
                fits.push((&choice.fit, 0));
                fits.len() - 1
            });
            fits[kind].1 += choice.count;
            kinds.push(Some(kind));
        }
        let mut strides = Vec::new();
        let (mut all, mut wanted) = (1, 0);
        for (_, count) in &fits {
            strides.push(all);
            wanted += all * count;
            all *= count + 1;
            if all > AMOUNTS_MAX {
                return None;
            }
        }
        if fits.is_empty() || fits.len() > KINDS {
            return None;
        }
        let digit = |amount: usize, kind: usize| match (strides.get(kind), fits.get(kind)) {
            (Some(stride), Some((_, count))) => amount / stride % (count + 1),
            (None, _) | (_, None) => 0,
        };
        let digits = (0..all).map(|amount| std::array::from_fn(|kind| digit(amount, kind)));
        Some(Self {
            kinds,
            digits: digits.collect(),
            strides,
            wanted,
            spots: vec![vec![None; p.order.len()]; fits.len()],
            gpus: Vec::new(),
            sorts: Vec::new(),
            main: 0,
            fresh: Vec::new(),
            breaks: Vec::new(),
        })
    }

    /// Adds the GPUs that some request could use; returns their counter sets.
    fn add_gpus(&mut self, p: &Problem<'_>) -> Option<Vec<usize>> {
        let stock = &p.lens.shape.stock;
        let mut sets = Vec::new();
        let mut total = 0_u32;
        for set in 0..stock.devices_on.len() {
            let items = self.items(p, set);
            if items.is_empty() {
                continue;
            }
            let numas = || items.iter().map(|(position, _)| p.spans.numa[*position]);
            let numa = numas().next().filter(|own| numas().all(|numa| numa == *own));
            let gpu = Gpu::of(p, set, &items)?;
            let mut sizes = gpu.devices.iter().filter_map(|(size, _)| *size);
            total = sizes.try_fold(total, u32::checked_add)?;
            for (bit, (position, kind)) in items.iter().enumerate() {
                self.spots[*kind][*position] = Some((self.gpus.len(), 1 << bit));
            }
            let sort = match self.sorts.iter().position(|sort| sort.gpu == gpu) {
                Some(sort) => sort,
                None => {
                    let sort = self.sort(gpu)?;
                    self.sorts.push(sort);
                    self.sorts.len() - 1
                }
            };
            self.gpus.push((sort, numa.unwrap_or(OUT)));
            sets.push(set);
        }
        Some(sets)
    }

    /// Positions on a counter set, each with a kind that it fits, by device and kind.
    fn items(&self, p: &Problem<'_>, set: usize) -> Vec<(usize, usize)> {
        let stock = &p.lens.shape.stock;
        let on_set = |at: &usize| stock.sets_of[p.order[*at]].contains(&set);
        let mut items = Vec::new();
        for position in (0..p.order.len()).filter(on_set) {
            for kind in 0..self.strides.len() {
                let line = self.kinds.iter().position(|of| *of == Some(kind));
                let choice = line.and_then(|line| p.lines[line].choices.first());
                if choice.is_some_and(|choice| bits::has(&choice.fit, position)) {
                    items.push((position, kind));
                }
            }
        }
        items
    }

    /// Writes down all ways to share a GPU.
    fn sort(&self, gpu: Gpu) -> Option<Sort> {
        let mut ways = Vec::new();
        let mut exhausting = Vec::new();
        // Each way, with the counters that are left and the first item that may follow.
        let mut open = vec![(0_u64, 0_usize, gpu.left.clone(), 0_usize)];
        while let Some((bits, amount, left, from)) = open.pop() {
            let (cost, exhausts) = gpu.cost(bits, &left);
            if exhausts {
                exhausting.push(amount);
            }
            ways.push(Way { bits, amount, cost, then: OnceCell::new() });
            if ways.len() + open.len() > WAYS_MAX {
                return None;
            }
            for item in from..gpu.items.len() {
                let (device, kind) = gpu.items[item];
                let stride = self.strides[kind];
                let all = self.digits[amount][kind] == self.digits[self.wanted][kind];
                let draws = &gpu.devices[device].1;
                let short = draws.iter().any(|(counter, drawn)| left[*counter] < *drawn);
                let late = gpu.tidy(bits | 1 << item) != bits | 1 << item;
                if all || short || late || gpu.has(bits, device) {
                    continue;
                }
                let mut after = left.clone();
                draws.iter().for_each(|(counter, drawn)| after[*counter] -= drawn);
                open.push((bits | 1 << item, amount + stride, after, item + 1));
            }
        }
        ways.sort_unstable_by_key(|way| way.bits);
        exhausting.sort_unstable();
        exhausting.dedup();
        Some(Sort { gpu, ways, exhausting })
    }

    /// Looks whether what is wanted could leave nothing of all GPUs of an island.
    fn break_islands(&mut self, p: &Problem<'_>, sets: &[usize]) {
        let devices_on = &p.lens.shape.stock.devices_on;
        let whole = &p.spans.whole;
        // The amounts that use up all GPUs of each island that were looked at.
        let mut amounts = vec![vec![0]; whole.sizes.len()];
        for (set, (sort, _)) in sets.iter().zip(&self.gpus) {
            let mut islands =
                devices_on[*set].iter().map(|at| whole.of.get(*at).copied().flatten());
            let Some(Some(own)) = islands.next() else { continue };
            if islands.any(|island| island != Some(own)) {
                continue;
            }
            let exhausting = &self.sorts[*sort].exhausting;
            let before = amounts[own].iter();
            let pairs = before.flat_map(|a| exhausting.iter().map(move |b| (*a, *b)));
            let mut sums: Vec<usize> =
                pairs.filter(|(a, b)| self.fits(*a, *b, self.wanted)).map(|(a, b)| a + b).collect();
            sums.sort_unstable();
            sums.dedup();
            amounts[own] = sums;
        }
        self.breaks = amounts.iter().map(Vec::is_empty).collect();
    }

    /// Whether two amounts together are no more than a third.
    fn fits(&self, a: usize, b: usize, most: usize) -> bool {
        let [a, b, most] = [a, b, most].map(|amount| &self.digits[amount]);
        a.iter().zip(b).zip(most).all(|((a, b), most)| a + b <= *most)
    }

    /// The least that up to so many fresh GPUs of the main sort lose to each amount.
    fn fill(&self, gpus: usize) -> Vec<Vec<Least>> {
        let mut none = vec![NEVER; self.digits.len()];
        none[0] = Least::default();
        let mut fresh = vec![none];
        for n in 0..gpus {
            let then = self.sorts[self.main].then(0).unwrap_or_default();
            fresh.push(self.with(&fresh[n], then, self.wanted));
        }
        fresh
    }

    /// What is lost with one more GPU, which can take and lose so much, where no more than `most` is
    /// wanted.
    fn with(&self, lost: &[Least], then: &[(usize, Least)], most: usize) -> Vec<Least> {
        let mut with = vec![NEVER; lost.len()];
        for (amount, before) in lost.iter().enumerate().filter(|(_, before)| **before != NEVER) {
            for (more, own) in then {
                if self.fits(amount, *more, most) {
                    let sum = &mut with[amount + more];
                    *sum = (*sum).min(before.and(*own));
                }
            }
        }
        with
    }

    /// Nothing is taken yet.
    pub(super) fn load(&self) -> Load {
        Load { taken: vec![0; self.gpus.len()], left: self.wanted }
    }

    /// Takes a position for a line, or gives it back.
    pub(super) fn turn(&self, load: &mut Load, line: usize, position: usize, back: bool) {
        let Some(kind) = self.kinds[line] else { return };
        let Some((gpu, bit)) = self.spots[kind][position] else { return };
        load.taken[gpu] ^= bit;
        if back {
            load.left += self.strides[kind];
        } else {
            load.left -= self.strides[kind];
        }
    }

    /// The least that GPUs of NUMA nodes that are `near` lose to all that is taken and wanted;
    /// [`NEVER`] where it can't be had there.
    pub(super) fn least(&self, load: &Load, near: impl Fn(u16) -> bool) -> Least {
        let mut lost = vec![NEVER; self.digits.len()];
        lost[0] = Least::default();
        let mut fresh = 0;
        for ((sort, numa), bits) in self.gpus.iter().zip(&load.taken) {
            if *numa < CODES && !near(*numa) {
                continue;
            }
            if *bits == 0 && *sort == self.main {
                fresh += 1;
            } else {
                let Some(then) = self.sorts[*sort].then(*bits) else { return Least::default() };
                lost = self.with(&lost, then, load.left);
            }
        }
        let there = lost.iter().enumerate().filter(|(_, lost)| **lost != NEVER);
        let all = there.map(|(amount, lost)| lost.and(self.fresh[fresh][load.left - amount]));
        all.min().unwrap_or(NEVER)
    }

    /// NUMA nodes beyond the first, and what is lost, at least, before anything is chosen.
    pub(super) fn root(&self) -> (u16, Least) {
        let load = self.load();
        let numas = self.gpus.iter().map(|(_, numa)| *numa);
        let within = numas.map(|own| self.least(&load, |numa| own == OUT || numa == own));
        match within.min().filter(|least| *least != NEVER) {
            Some(least) => (0, least),
            None => (1, self.least(&load, |_| true)),
        }
    }
}

impl Sort {
    /// What can follow the way of these bits, and what is lost then.
    fn then(&self, bits: u64) -> Option<&[(usize, Least)]> {
        let bits = self.gpu.tidy(bits);
        let at = self.ways.binary_search_by_key(&bits, |way| way.bits).ok()?;
        let own = &self.ways[at];
        let gather = || {
            let with = self.ways[at..].iter().filter(|way| way.bits & bits == bits);
            let mut all: Vec<(usize, Least)> =
                with.map(|way| (way.amount - own.amount, way.cost)).collect();
            all.sort_unstable();
            all.dedup_by_key(|(amount, _)| *amount);
            all
        };
        Some(own.then.get_or_init(gather))
    }
}

impl Gpu {
    /// None where some device is shared or draws on other counters too.
    fn of(p: &Problem<'_>, set: usize, items: &[(usize, usize)]) -> Option<Self> {
        let (shape, usage) = (p.lens.shape, p.lens.usage);
        let (stock, range) = (&shape.stock, shape.stock.counters_of[set].clone());
        let left: Vec<i128> = usage.counters_left[range.clone()].to_vec();
        let untouched = range.clone().all(|c| usage.counters_left[c] == shape.counters[c].total);
        let mut gpu = Self { left, untouched, ..Self::default() };
        let devices = &stock.devices_on[set];
        for &at in devices {
            if shape.devices[at].traits.shareable || stock.sets_of[at].len() > 1 {
                return None;
            }
            let draws = stock.draws[at].iter();
            let draws: Draws = draws.map(|(c, amount)| (c - range.start, *amount)).collect();
            let short = draws.iter().any(|(counter, amount)| *amount > gpu.left[*counter]);
            let gone = usage.is_taken(at) || shape.trouble(at).is_some() || short;
            gpu.devices.push(((!gone).then_some(stock.size[at]), draws));
        }
        for (position, kind) in items {
            let device = devices.iter().position(|at| *at == p.order[*position])?;
            gpu.items.push((device, *kind));
        }
        if gpu.items.len() > 64 {
            return None;
        }
        gpu.alike = gpu.groups();
        Some(gpu)
    }

    /// Items of one kind whose devices are of one size, draw on the same and fit no other kind.
    fn groups(&self) -> Vec<u64> {
        let lone = |device: usize| self.items.iter().filter(|(of, _)| *of == device).count() == 1;
        let mut groups: Vec<(usize, u64)> = Vec::new();
        for (bit, (device, kind)) in self.items.iter().enumerate().filter(|(_, (d, _))| lone(*d)) {
            let same = |first: usize| {
                let (other, of) = self.items[first];
                of == *kind && self.devices[other] == self.devices[*device]
            };
            match groups.iter_mut().find(|(first, _)| same(*first)) {
                Some((_, group)) => *group |= 1 << bit,
                None => groups.push((bit, 1 << bit)),
            }
        }
        groups.retain(|(_, group)| group.count_ones() > 1);
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// The bits with the first of those that are alike.
    fn tidy(&self, bits: u64) -> u64 {
        self.alike.iter().fold(bits, |bits, group| {
            let (mut rest, mut first) = (*group, 0);
            for _ in 0..(bits & group).count_ones() {
                first |= rest & rest.wrapping_neg();
                rest &= rest - 1;
            }
            bits & !group | first
        })
    }

    fn has(&self, bits: u64, device: usize) -> bool {
        let mut items = self.items.iter().enumerate();
        items.any(|(bit, (of, _))| *of == device && bits & 1 << bit != 0)
    }

    /// What it loses where these are taken and so much is left, and whether that is all it had.
    fn cost(&self, bits: u64, left: &[i128]) -> (Least, bool) {
        let mut cost = Least { wholes: u16::from(self.untouched && bits != 0), lost_mi: 0 };
        let mut exhausts = true;
        for (device, (size, draws)) in self.devices.iter().enumerate() {
            let Some(size) = size else { continue };
            if self.has(bits, device) || draws.iter().any(|(c, amount)| *amount > left[*c]) {
                cost.lost_mi = cost.lost_mi.saturating_add(*size);
            } else {
                exhausts = false;
            }
        }
        (cost, exhausts)
    }
}
