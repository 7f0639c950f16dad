//! The parts of a set's cost that look at where devices sit, as small numbers for each position.
//!
//! After the positions come the pod's devices of claims that were allocated before: they are never
//! chosen and always count.

use super::problem::{CODES, Line, OUT, Problem, SOLO, number};
use super::wear::WholeIslands;
use crate::facts::{Level, Link};

/// What the search reads of each position.
#[derive(Debug, Default)]
pub(super) struct Spans {
    /// Nothing is known of any accelerator's links.
    pub(super) silent: bool,
    pub(super) island: Vec<u16>,
    pub(super) numa: Vec<u16>,
    pub(super) accelerator: Vec<bool>,
    /// Whether the device at the position is one of those that always count.
    pub(super) fixed: Vec<bool>,
    /// Best and second best link to another accelerator that could be in the set.
    pub(super) links: Vec<(Link, Link)>,
    pub(super) whole: WholeIslands,
    /// Network cards and what they serve, where a set could have both.
    pub(super) cards: Option<Cards>,
    /// How many accelerators every set has, where that is sure.
    pub(super) accelerators: Option<usize>,
}

/// Network cards and what they serve.
#[derive(Debug)]
pub(super) struct Cards {
    pub(super) side: Vec<Side>,
    /// Domain at the PCIe switch, the root, the NUMA node; [`OUT`] is unknown.
    pub(super) near: [Vec<u16>; 3],
    /// How many of both every set has, where that is sure.
    pub(super) totals: Option<(usize, usize)>,
}

/// Which part a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A network card.
    Nic,
    /// Served by network cards.
    Served,
    Neither,
}

impl Spans {
    pub(super) fn of(p: &Problem<'_>) -> Self {
        let (shape, order) = (p.lens.shape, &p.order);
        let mut spans = Self { silent: shape.is_silent(), ..Self::default() };
        let island = |at: usize| shape.domain(at, Level::Island);
        let islands =
            (0..shape.devices.len()).any(|at| shape.is_accelerator(at) && island(at).is_some());
        let (mut known, mut numas) = (Vec::new(), Vec::new());
        let all: Vec<usize> = order.iter().chain(&p.fixed).copied().collect();
        for &device in &all {
            let accelerator = shape.is_accelerator(device);
            spans.accelerator.push(accelerator);
            spans.island.push(match island(device) {
                _ if !accelerator || !islands => OUT,
                Some(domain) => number(&mut known, domain),
                None => SOLO,
            });
            spans.numa.push(shape.numa(device).map_or(OUT, |numa| number(&mut numas, numa)));
        }
        spans.fixed = order.iter().map(|at| p.fixed.contains(at)).collect();
        if !shape.pairs.is_empty() {
            spans.links = nearest_links(p, &all);
        }
        spans.whole = whole_islands(p);
        spans.cards = Cards::of(p, &all);
        spans.accelerators = total(p, |at| spans.accelerator[at]);
        spans
    }

    /// Whether a request asks for network cards and for nothing else.
    pub(super) fn is_for_cards(&self, line: &Line) -> bool {
        let Some(cards) = &self.cards else { return false };
        let mut fits = line.choices.iter().flat_map(|choice| super::bits::iter(&choice.fit));
        fits.all(|at| cards.side[at] == Side::Nic)
    }

    /// Whether two positions are alike.
    pub(super) fn alike(&self, a: usize, b: usize) -> bool {
        self.island[a] == self.island[b]
            && self.numa[a] == self.numa[b]
            && self.accelerator[a] == self.accelerator[b]
            && self.fixed[a] == self.fixed[b]
            && self.cards.as_ref().is_none_or(|cards| {
                cards.side[a] == cards.side[b] && cards.near.iter().all(|of| of[a] == of[b])
            })
    }
}

/// Best and second best link of each to another accelerator.
fn nearest_links(p: &Problem<'_>, all: &[usize]) -> Vec<(Link, Link)> {
    let shape = p.lens.shape;
    let mut gpus: Vec<usize> = all.iter().copied().filter(|at| shape.is_accelerator(*at)).collect();
    gpus.sort_unstable();
    gpus.dedup();
    let nearest = |&a: &usize| {
        let (mut best, mut second) = (Link::UNKNOWN, Link::UNKNOWN);
        for &b in gpus.iter().filter(|&&b| b != a) {
            let link = shape.link(a, b);
            if link < best {
                (best, second) = (link, best);
            } else {
                second = second.min(link);
            }
        }
        (best, second)
    };
    all.iter().map(nearest).collect()
}

fn whole_islands(p: &Problem<'_>) -> WholeIslands {
    let (shape, usage) = (p.lens.shape, p.lens.usage);
    let domain = |at: usize| shape.domain(at, Level::Island);
    let mut islands: Vec<(u16, usize, bool)> = Vec::new();
    for at in 0..shape.devices.len() {
        let Some(own) = domain(at) else { continue };
        let free = usage.is_untouched(at);
        match islands.iter_mut().find(|(island, ..)| *island == own) {
            Some((_, size, whole)) => {
                *size += 1;
                *whole &= free;
            }
            None => islands.push((own, 1, free)),
        }
    }
    islands.retain(|(.., whole)| *whole);
    if islands.is_empty() {
        return WholeIslands::default();
    }
    let of = |at: usize| {
        let own = domain(at)?;
        islands.iter().position(|(island, ..)| *island == own)
    };
    let of = (0..shape.devices.len()).map(of).collect();
    WholeIslands { of, sizes: islands.iter().map(|(_, size, _)| *size).collect() }
}

/// How many devices of a kind every set has, those that always count included; none where that
/// depends on what is chosen.
fn total(p: &Problem<'_>, is: impl Fn(usize) -> bool) -> Option<usize> {
    let shape = p.lens.shape;
    let n = p.order.len();
    let mut sum = (n..n + p.fixed.len()).filter(|at| is(*at)).count();
    for line in &p.lines {
        let mut of_line = None;
        for choice in &line.choices {
            let mut fit = super::bits::iter(&choice.fit);
            let first = fit.next().is_some_and(&is);
            // A device that may be there twice counts once.
            let twice = |at: usize| {
                choice.admin || shape.devices[p.order[at]].traits.shareable || p.is_fixed(at)
            };
            if super::bits::iter(&choice.fit).any(|at| is(at) != first || is(at) && twice(at)) {
                return None;
            }
            let count = if first { choice.count } else { 0 };
            if of_line.is_some_and(|known| known != count) {
                return None;
            }
            of_line = Some(count);
        }
        sum += of_line.unwrap_or(0);
    }
    Some(sum)
}

impl Cards {
    fn of(p: &Problem<'_>, all: &[usize]) -> Option<Self> {
        let shape = p.lens.shape;
        if !shape.devices.iter().any(|d| d.nic) {
            return None;
        }
        let side = |at: &usize| {
            if shape.is_nic(*at) {
                Side::Nic
            } else if shape.is_served(*at) {
                Side::Served
            } else {
                Side::Neither
            }
        };
        let side: Vec<Side> = all.iter().map(side).collect();
        if !side.contains(&Side::Nic) || !side.contains(&Side::Served) {
            return None;
        }
        let near = [Level::Switch, Level::Root, Level::Numa].map(|level| {
            let mut known = Vec::new();
            let code = |at: &usize| shape.domain(*at, level).map_or(OUT, |d| number(&mut known, d));
            all.iter().map(code).collect()
        });
        let of = |side_of: Side| total(p, |at| side[at] == side_of);
        let totals = of(Side::Served).zip(of(Side::Nic));
        Some(Self { side, near, totals })
    }
}

/// How many of both sides are in each domain of a level.
#[derive(Clone, Debug, Default)]
struct Shares {
    /// Served devices and network cards, by domain.
    domains: Vec<(u16, u16)>,
    /// Of those whose domain is unknown.
    unknown: (u16, u16),
}

/// The network cards and served devices of what is chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct CardTally {
    levels: [Shares; 3],
    served: usize,
    nics: usize,
}

impl CardTally {
    pub(super) fn new(cards: &Cards) -> Self {
        let mut tally = Self::default();
        for (shares, codes) in tally.levels.iter_mut().zip(&cards.near) {
            let most = codes.iter().filter(|c| **c < CODES).max();
            shares.domains = vec![(0, 0); most.map_or(0, |m| usize::from(*m) + 1)];
        }
        tally
    }

    /// Counts a position in, or out.
    pub(super) fn add(&mut self, cards: &Cards, at: usize, out: bool) {
        let (served, nic) = match cards.side[at] {
            Side::Neither => return,
            Side::Served => (1, 0),
            Side::Nic => (0, 1),
        };
        let step = |to: &mut u16, by: u16| *to = if out { *to - by } else { *to + by };
        for (shares, codes) in self.levels.iter_mut().zip(&cards.near) {
            let of = shares.domains.get_mut(usize::from(codes[at]));
            let of = of.unwrap_or(&mut shares.unknown);
            step(&mut of.0, served);
            step(&mut of.1, nic);
        }
        if out {
            self.served -= usize::from(served);
            self.nics -= usize::from(nic);
        } else {
            self.served += usize::from(served);
            self.nics += usize::from(nic);
        }
    }

    /// Devices and cards without a partner at each level: of what is chosen, or the least that any
    /// set with it and these totals has.
    pub(super) fn off(&self, totals: (usize, usize)) -> [u16; 3] {
        let (served, nics) = totals;
        if served == 0 || nics == 0 {
            return [0; 3];
        }
        let each = |share: usize| u64::try_from(share).unwrap_or(u64::MAX);
        let (per_nic, per_served) = (each(served.div_ceil(nics)), each(nics.div_ceil(served)));
        // Each that is still to come may serve so many.
        let mend_served = per_nic * each(nics.saturating_sub(self.nics));
        let mend_nics = per_served * each(served.saturating_sub(self.served));
        [0, 1, 2].map(|level| {
            let shares: &Shares = &self.levels[level];
            let (mut lone_served, mut lone_nics) = (0u64, 0u64);
            for (served, nics) in &shares.domains {
                let (served, nics) = (u64::from(*served), u64::from(*nics));
                lone_served += served.saturating_sub(per_nic * nics);
                lone_nics += nics.saturating_sub(per_served * served);
            }
            let off = lone_served.saturating_sub(mend_served)
                + lone_nics.saturating_sub(mend_nics)
                + u64::from(shares.unknown.0)
                + u64::from(shares.unknown.1);
            u16::try_from(off).unwrap_or(u16::MAX)
        })
    }

    /// [`off`](Self::off), minding what can still come: these positions and no others.
    pub(super) fn off_at_least(
        &self,
        cards: &Cards,
        totals: (usize, usize),
        open: impl Iterator<Item = usize>,
    ) -> [u16; 3] {
        let (served, nics) = totals;
        if served == 0 || nics == 0 {
            return [0; 3];
        }
        let mut ways: [Vec<Domain>; 3] = [0, 1, 2].map(|level: usize| {
            let domains = self.levels[level].domains.iter();
            domains.map(|(served, nics)| Domain::with(*served, *nics)).collect()
        });
        for at in open {
            for (domains, codes) in ways.iter_mut().zip(&cards.near) {
                match (domains.get_mut(usize::from(codes[at])), cards.side[at]) {
                    (Some(domain), Side::Served) => domain.served.open += 1,
                    (Some(domain), Side::Nic) => domain.nics.open += 1,
                    (Some(_), Side::Neither) | (None, _) => {}
                }
            }
        }
        let to_come = (served.saturating_sub(self.served), nics.saturating_sub(self.nics));
        let shares = (served.div_ceil(nics), nics.div_ceil(served));
        ways.map(|domains| {
            let sides = || domains.iter().map(|d| (d.served, d.nics));
            let swapped = || domains.iter().map(|d| (d.nics, d.served));
            let lone_served = served.saturating_sub(matched(sides(), shares.0, to_come));
            let back = (to_come.1, to_come.0);
            let lone_nics = nics.saturating_sub(matched(swapped(), shares.1, back));
            u16::try_from(lone_served + lone_nics).unwrap_or(u16::MAX)
        })
    }

    /// As many as are chosen.
    pub(super) fn chosen(&self) -> (usize, usize) {
        (self.served, self.nics)
    }
}

/// Devices of one side in one domain: chosen, and to be had.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    chosen: usize,
    open: usize,
}

/// Both sides in one domain.
#[derive(Clone, Copy, Debug, Default)]
struct Domain {
    served: Part,
    nics: Part,
}

impl Domain {
    fn with(served: u16, nics: u16) -> Self {
        let part = |chosen| Part { chosen: usize::from(chosen), open: 0 };
        Self { served: part(served), nics: part(nics) }
    }
}

/// How many of a side can find a share of the other in their own domain at most, where each of the
/// other serves `share`, and so many of both are to come. Twice it is looked at, each time as if one
/// side could have all that is open: the other then is taken where it helps most.
fn matched(
    domains: impl Iterator<Item = (Part, Part)> + Clone,
    share: usize,
    to_come: (usize, usize),
) -> usize {
    let all = domains.clone().map(|(own, other)| (own, share * (other.chosen + other.open)));
    let now: usize = all.clone().map(|(own, served)| own.chosen.min(served)).sum();
    let then: usize = all.map(|(own, served)| (own.chosen + own.open).min(served)).sum();
    let by_own = now + to_come.0.min(then - now);
    let mut by_other = 0;
    let mut gains = Vec::new();
    for (own, other) in domains {
        let most = own.chosen + own.open;
        by_other += most.min(share * other.chosen);
        let left = most.saturating_sub(share * other.chosen);
        gains.extend((0..other.open).map(|n| left.saturating_sub(share * n).min(share)));
    }
    gains.sort_unstable_by(|a, b| b.cmp(a));
    by_own.min(by_other + gains.iter().take(to_come.1).sum::<usize>())
}
