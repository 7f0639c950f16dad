//! Which devices are interchangeable: exchanging two changes neither what fits nor what it costs, so
//! that of sets which only exchange them the first is the smallest. The search leaves out the rest.

use super::bits;
use super::problem::{Axis, CODES, Problem};

/// For each position the one before that is interchangeable with it: the same to every alternative,
/// rule and part of the cost, held alike, and linked alike to all others.
pub(super) fn twins(p: &Problem<'_>) -> Vec<Option<usize>> {
    // Where the order of the devices matters, none can stand for another.
    if p.is_loose() {
        return vec![None; p.order.len()];
    }
    let marks: Vec<u64> = (0..p.order.len()).map(|at| mark(p, at)).collect();
    // Devices that the pod has already are joined to those that it gets.
    let all = p.order.iter().chain(&p.fixed).copied();
    let linked: Vec<usize> = all.filter(|at| p.lens.shape.is_accelerator(*at)).collect();
    let twin = |a: usize, b: usize| {
        marks[a] == marks[b] && same_kind(p, a, b) && same_links(p, &linked, a, b)
    };
    (0..p.order.len()).map(|at| (0..at).rev().find(|before| twin(*before, at))).collect()
}

/// A number that interchangeable positions share.
fn mark(p: &Problem<'_>, at: usize) -> u64 {
    let fits = p.lines.iter().flat_map(|l| &l.choices).map(|c| u64::from(bits::has(&c.fit, at)));
    let values = p.axes.iter().map(|a| u64::from(a.value[at].min(a.alone)));
    let spans = [p.spans.island[at], p.spans.numa[at]].map(u64::from);
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
        && p.axes.iter().all(|axis| same_value(axis, a, b))
        && spans.alike(a, b)
        && spans.whole.of.get(x) == spans.whole.of.get(y)
        && shape.stock.size[x] == shape.stock.size[y]
        && usage.is_taken(x) == usage.is_taken(y)
        && usage.shares.get(x) == usage.shares.get(y)
        && usage.consumed.get(x) == usage.consumed.get(y)
        && one.traits.shareable == other.traits.shareable
        && one.traits.counters == other.traits.counters
        && one.traits.groups == other.traits.groups
        && (one.traits.counters.is_empty() || one.pool == other.pool)
        && (!one.traits.shareable || one.traits.capacity == other.traits.capacity)
}

/// Whether exchanging two positions changes nothing for an axis: values of one device each are all
/// alike.
pub(super) fn same_value(axis: &Axis, a: usize, b: usize) -> bool {
    let (a, b) = (axis.value[a], axis.value[b]);
    a == b || (axis.alone..CODES).contains(&a) && (axis.alone..CODES).contains(&b)
}

fn same_links(p: &Problem<'_>, linked: &[usize], a: usize, b: usize) -> bool {
    let (x, y) = (p.order[a], p.order[b]);
    let link = |at: usize, other: usize| p.lens.shape.link(at, other);
    !p.spans.accelerator[a]
        || linked.iter().filter(|c| **c != x && **c != y).all(|c| link(x, *c) == link(y, *c))
}
