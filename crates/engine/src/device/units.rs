//! Whole GPUs that are alike: counter sets whose devices correspond one to one.
//!
//! A set that takes partitions of the second of two such GPUs and nothing of the first costs the same
//! as the one with both exchanged, whose names come first. So the second is begun only after the first:
//! what that leaves out is never the first of its cost by name.

use super::bits;
use super::problem::Problem;
use super::twins::same_value;

/// For each position that draws on one counter set: that set, and the set before that is alike. Empty
/// where that tells nothing.
pub(super) fn units(p: &Problem<'_>) -> Vec<Option<(usize, usize)>> {
    let stock = &p.lens.shape.stock;
    let several = p.lines.iter().flat_map(|l| &l.choices).any(|c| c.count > 1);
    if !stock.counted || !(several || p.lines.len() > 1) || p.is_loose() {
        return Vec::new();
    }
    let mut position_of: Vec<Option<usize>> = vec![None; p.lens.shape.devices.len()];
    for (position, device) in p.order.iter().enumerate() {
        position_of[*device] = Some(position);
    }
    let units: Vec<Option<Unit>> =
        (0..stock.devices_on.len()).map(|set| Unit::of(p, set, &position_of)).collect();
    let mut before: Vec<Option<usize>> = vec![None; units.len()];
    for at in 0..units.len() {
        let Some(own) = &units[at] else { continue };
        let alike =
            |other: &usize| units[*other].as_ref().is_some_and(|other| other.comes_before(p, own));
        // The nearest: what is alike is alike to all of its kind.
        before[at] = (0..at).rev().find(alike);
    }
    let of = |device: &usize| match stock.sets_of.get(*device).map(|sets| &**sets) {
        Some([set]) => Some((*set, before[*set]?)),
        Some(_) | None => None,
    };
    let all: Vec<Option<(usize, usize)>> = p.order.iter().map(of).collect();
    if all.iter().all(Option::is_none) { Vec::new() } else { all }
}

/// A counter set with its devices by name rank; their positions where they could be chosen.
struct Unit {
    set: usize,
    devices: Vec<usize>,
    positions: Vec<Option<usize>>,
}

impl Unit {
    /// None where some device draws on other counters too.
    fn of(p: &Problem<'_>, set: usize, position_of: &[Option<usize>]) -> Option<Self> {
        let shape = p.lens.shape;
        let mut devices = shape.stock.devices_on[set].clone();
        devices.sort_by_key(|at| shape.devices[*at].rank);
        let lone = devices.iter().all(|at| shape.stock.sets_of[*at].len() == 1);
        let positions = devices.iter().map(|at| position_of[*at]).collect();
        (lone && !devices.is_empty()).then_some(Self { set, devices, positions })
    }

    /// Whether exchanging the two changes nothing but names, and these come first.
    fn comes_before(&self, p: &Problem<'_>, other: &Self) -> bool {
        self.devices.len() == other.devices.len()
            && self.same_counters(p, other)
            && self
                .devices
                .iter()
                .zip(&other.devices)
                .all(|(a, b)| self.same_device(p, other, *a, *b))
            && self.positions.iter().zip(&other.positions).all(|ends| match ends {
                (Some(a), Some(b)) => a < b && same_position(p, *a, *b),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            })
            && self.same_links(p, other)
    }

    fn same_counters(&self, p: &Problem<'_>, other: &Self) -> bool {
        let (shape, left) = (p.lens.shape, &p.lens.usage.counters_left);
        let (a, b) = (&shape.stock.counters_of[self.set], &shape.stock.counters_of[other.set]);
        a.len() == b.len()
            && shape.counters[a.start].pool == shape.counters[b.start].pool
            && a.clone().zip(b.clone()).all(|(a, b)| {
                shape.counters[a].total == shape.counters[b].total && left[a] == left[b]
            })
    }

    fn same_device(&self, p: &Problem<'_>, other: &Self, a: usize, b: usize) -> bool {
        let (shape, usage) = (p.lens.shape, p.lens.usage);
        let (one, two) = (&shape.devices[a], &shape.devices[b]);
        let (from, to) =
            (shape.stock.counters_of[self.set].start, shape.stock.counters_of[other.set].start);
        let draws = |at: usize, start: usize| {
            shape.stock.draws[at].iter().map(move |(counter, amount)| (counter - start, *amount))
        };
        one.pool == two.pool
            && one.traits.shareable == two.traits.shareable
            && one.traits.capacity == two.traits.capacity
            && one.traits.groups.is_empty()
            && two.traits.groups.is_empty()
            && draws(a, from).eq(draws(b, to))
            && usage.is_taken(a) == usage.is_taken(b)
            && usage.shares.get(a) == usage.shares.get(b)
            && usage.consumed.get(a) == usage.consumed.get(b)
            && p.spans.whole.of.get(a) == p.spans.whole.of.get(b)
    }

    /// Whether both are joined alike to all others, among themselves, and to each other.
    fn same_links(&self, p: &Problem<'_>, other: &Self) -> bool {
        let shape = p.lens.shape;
        if shape.pairs.is_empty() {
            return true;
        }
        let pairs = || self.devices.iter().copied().zip(other.devices.iter().copied());
        let inside = |at: usize| self.devices.contains(&at) || other.devices.contains(&at);
        let outside: Vec<usize> = (0..shape.devices.len())
            .filter(|at| shape.is_accelerator(*at) && !inside(*at))
            .collect();
        pairs().all(|(a, b)| {
            outside.iter().all(|c| shape.link(a, *c) == shape.link(b, *c))
                && pairs().all(|(x, y)| {
                    shape.link(a, x) == shape.link(b, y) && shape.link(a, y) == shape.link(b, x)
                })
        })
    }
}

/// Whether two positions are the same to every request, rule and part of the cost.
fn same_position(p: &Problem<'_>, a: usize, b: usize) -> bool {
    let mut choices = p.lines.iter().flat_map(|l| &l.choices);
    choices.all(|c| {
        bits::has(&c.fit, a) == bits::has(&c.fit, b)
            && c.draws.get(a) == c.draws.get(b)
            && c.sets.iter().all(|link| link.values[a] == link.values[b])
    }) && p.axes.iter().all(|axis| same_value(axis, a, b))
        && p.spans.alike(a, b)
}
