//! What a set of devices is worth to a ring collective: its best ring's worst edge.
//!
//! Exact up to 16 devices. Beyond that a ring through all over links that are no worse than some
//! class is looked for within a fixed effort, and counts as absent where it isn't found: the answer
//! is never better than the truth, may be worse, and may depend on the order in which the devices
//! are named. [`best_ring`] therefore names them in ascending order, so that one set has one answer
//! whoever asks.

use crate::facts::Link;

/// Up to so many devices the answer is exact by dynamic programming over subsets.
const EXACT: usize = 16;
/// Devices looked at beyond that before a threshold counts as not met.
const EFFORT: u32 = 20_000;

/// The bottleneck edge of the best ring through these devices, in whatever order they are named;
/// `link` is symmetric. One device needs no link, two have their own. Beyond 16 devices a ring that
/// can't be found within a fixed effort counts as absent.
pub fn best_ring(devices: &[usize], link: impl Fn(usize, usize) -> Link) -> Link {
    // Up to there the order tells nothing.
    if devices.len() <= EXACT {
        return ring_in_order(devices.len(), |a, b| link(devices[a], devices[b]));
    }
    let mut sorted = devices.to_vec();
    sorted.sort_unstable();
    ring_in_order(sorted.len(), |a, b| link(sorted[a], sorted[b]))
}

/// [`best_ring`] through `0..n`: beyond 16 devices what is found may depend on their order.
fn ring_in_order(n: usize, link: impl Fn(usize, usize) -> Link) -> Link {
    match n {
        0 | 1 => Link::IDEAL,
        2 => link(0, 1),
        _ => {
            let floor = (0..n).map(|a| second_best(n, a, &link)).max().unwrap_or(Link::UNKNOWN);
            let worse = |than: Link| {
                let pairs = (1..n).flat_map(|a| (0..a).map(move |b| (a, b)));
                pairs.map(|(a, b)| link(a, b)).filter(|edge| *edge > than).min()
            };
            let mut at = floor;
            while !has_ring(n, |a, b| link(a, b) <= at) {
                match worse(at) {
                    Some(next) => at = next,
                    // Every edge is allowed: what the search beyond 16 devices can't find.
                    None => return at,
                }
            }
            at
        }
    }
}

/// A ring enters and leaves each device, so none is better than the second best link of any.
fn second_best(n: usize, a: usize, link: &impl Fn(usize, usize) -> Link) -> Link {
    let (mut best, mut second) = (Link::UNKNOWN, Link::UNKNOWN);
    for b in (0..n).filter(|&b| b != a) {
        let class = link(a, b);
        if class < best {
            (best, second) = (class, best);
        } else if class < second {
            second = class;
        }
    }
    second
}

/// Whether the graph on `0..n`, `n` at least 3, has a ring through all.
fn has_ring(n: usize, edge: impl Fn(usize, usize) -> bool) -> bool {
    let degree = |a: usize| (0..n).filter(|&b| b != a && edge(a, b)).count();
    let least = (0..n).map(degree).min().unwrap_or(0);
    if least < 2 {
        return false;
    }
    // Dirac: enough neighbours everywhere make a ring certain.
    if least * 2 >= n {
        return true;
    }
    if n <= EXACT { ring_by_subsets(n, &edge) } else { ring_by_search(n, &edge) }
}

/// `ends[s]`: the devices at which a path from device `n - 1` through exactly the set `s` can end.
fn ring_by_subsets(n: usize, edge: &impl Fn(usize, usize) -> bool) -> bool {
    let home = n - 1;
    let row = |a: usize| (0..home).filter(|&b| b != a && edge(a, b)).fold(0u32, |m, b| m | 1 << b);
    let rows: Vec<u32> = (0..n).map(row).collect();
    let full = (1usize << home) - 1;
    let mut ends = vec![0u32; full + 1];
    for b in 0..home {
        ends[1 << b] = rows[home] & 1 << b;
    }
    for set in 1..=full {
        for (b, row) in rows[..home].iter().enumerate() {
            let rest = set & !(1 << b);
            if rest != set && rest != 0 && ends[rest] & row != 0 {
                ends[set] |= 1 << b;
            }
        }
    }
    ends[full] & rows[home] != 0
}

fn ring_by_search(n: usize, edge: &impl Fn(usize, usize) -> bool) -> bool {
    let mut path = vec![0];
    let mut on = vec![false; n];
    on[0] = true;
    let mut effort = EFFORT;
    extend(n, edge, &mut path, &mut on, &mut effort)
}

fn extend(
    n: usize,
    edge: &impl Fn(usize, usize) -> bool,
    path: &mut Vec<usize>,
    on: &mut [bool],
    effort: &mut u32,
) -> bool {
    let last = path[path.len() - 1];
    if path.len() == n {
        return edge(last, 0);
    }
    // Those with the fewest ways on go first: they are the ones that get stranded.
    let ways = |a: usize, on: &[bool]| (0..n).filter(|&b| b != a && !on[b] && edge(a, b)).count();
    let mut steps: Vec<(usize, usize)> =
        (0..n).filter(|&b| !on[b] && edge(last, b)).map(|b| (ways(b, on), b)).collect();
    steps.sort_unstable();
    for (_, b) in steps {
        if *effort == 0 {
            return false;
        }
        *effort -= 1;
        path.push(b);
        on[b] = true;
        if extend(n, edge, path, on, effort) {
            return true;
        }
        path.pop();
        on[b] = false;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::Chance;
    use crate::facts::LinkClass;

    /// A ring of so many devices with these links between neighbours and `rest` elsewhere.
    fn ring(edges: &[LinkClass], rest: LinkClass) -> LinkClass {
        best(edges.len(), |a, b| path(edges, rest, a, b))
    }

    fn best(n: usize, link: impl Fn(usize, usize) -> LinkClass) -> LinkClass {
        ring_in_order(n, |a, b| link(a, b).into()).class()
    }

    fn path(edges: &[LinkClass], rest: LinkClass, a: usize, b: usize) -> LinkClass {
        let n = edges.len();
        match (a.min(b), a.max(b)) {
            (low, high) if high == low + 1 => edges[low],
            (0, high) if high == n - 1 => edges[high],
            _ => rest,
        }
    }

    #[test]
    fn one_slow_edge_in_a_ring_of_eight_is_the_speed_of_all() {
        let mut edges = [LinkClass::Nvlink; 8];
        assert_eq!(ring(&edges, LinkClass::System), LinkClass::Nvlink);
        edges[5] = LinkClass::Switch;
        assert_eq!(ring(&edges, LinkClass::System), LinkClass::Switch);
    }

    #[test]
    fn four_devices_ring_over_nvlink_though_two_pairs_cross_sockets() {
        // The ring 0-1-3-2 avoids the pairs 0-3 and 1-2.
        let slow = [(0, 3), (1, 2)];
        let link = |a: usize, b: usize| {
            if slow.contains(&(a.min(b), a.max(b))) { LinkClass::System } else { LinkClass::Nvlink }
        };
        assert_eq!(best(4, link), LinkClass::Nvlink);
        // Three of them need the slow pair.
        let three = [0, 1, 2];
        assert_eq!(best(3, |a, b| link(three[a], three[b])), LinkClass::System);
    }

    #[test]
    fn a_long_ring_is_found_by_search() {
        let edges = [LinkClass::Nvlink; 20];
        assert_eq!(ring(&edges, LinkClass::System), LinkClass::Nvlink);
    }

    #[test]
    fn best_ring_is_the_best_over_all_orders() {
        let nvlinks = |gbps| Link::new(LinkClass::Nvlink, gbps);
        let system = LinkClass::System.into();
        let classes = [nvlinks(50), nvlinks(25), LinkClass::Nvlink.into(), system, Link::UNKNOWN];
        let mut chance = Chance::new(7);
        for _ in 0..2_000 {
            let n = 2 + chance.below(6);
            let links: Vec<Link> = (0..n * n).map(|_| *chance.pick(&classes)).collect();
            let link = |a: usize, b: usize| links[a.min(b) * n + a.max(b)];
            let mut order: Vec<usize> = (0..n).collect();
            let mut best = Link::UNKNOWN;
            permute(&mut order, 1, &mut |p| {
                let worst = (0..n).map(|i| link(p[i], p[(i + 1) % n])).max();
                best = best.min(worst.unwrap_or(Link::IDEAL));
            });
            assert_eq!(ring_in_order(n, link), best, "{n} {links:?}");
        }
    }

    /// So many devices that the search gives up on some of the orders.
    #[test]
    fn a_large_set_has_one_answer_in_any_order() {
        let mut chance = Chance::new(11);
        for _ in 0..20 {
            let n = 17 + chance.below(4);
            let links: Vec<Link> = (0..n * n)
                .map(|_| match chance.below(100) {
                    0..16 => LinkClass::Nvlink.into(),
                    16..50 => LinkClass::Switch.into(),
                    _ => LinkClass::System.into(),
                })
                .collect();
            let link = |a: usize, b: usize| links[a.min(b) * n + a.max(b)];
            let mut order: Vec<usize> = (0..n).collect();
            let expected = best_ring(&order, link);
            assert_eq!(expected, ring_in_order(n, link));
            for _ in 0..3 {
                (1..n).for_each(|at| order.swap(at, chance.below(at + 1)));
                assert_eq!(best_ring(&order, link), expected, "{order:?} {links:?}");
            }
        }
    }

    fn permute(order: &mut Vec<usize>, from: usize, see: &mut impl FnMut(&[usize])) {
        if from == order.len() {
            see(order);
            return;
        }
        for at in from..order.len() {
            order.swap(from, at);
            permute(order, from + 1, see);
            order.swap(from, at);
        }
    }
}
