//! What the devices chosen cost, and the least that any set with them can cost. A branch whose least
//! is no less than what was found is left.

use std::cmp::Ordering;

use crate::cost::{DeviceCost, NicCost};
use crate::device::choose::Price;
use crate::device::packing::NEVER;
use crate::device::problem::{Axis, Kind, Least};
use crate::facts::Link;

use super::{Ahead, Aim, Chosen, Search, Tally};

impl<'a> Search<'_, 'a> {
    /// Exclusive devices that stay free whatever the `more` devices are.
    pub(super) fn free_left(&self, more: usize) -> u32 {
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        self.free.saturating_sub(self.given).saturating_sub(more)
    }

    /// The least that a set with what is chosen can cost.
    pub(super) fn floor(&self, ahead: Ahead<'_, 'a>) -> Price {
        let mut toll = self.wear.toll(ahead.most);
        toll.wholes_used = toll.wholes_used.saturating_add(ahead.least.wholes);
        toll.lost_mi = toll.lost_mi.saturating_add(ahead.least.lost_mi);
        Price {
            alternatives: self.alternatives,
            devices: self.device_cost(false),
            toll,
            free_left: self.free_left(ahead.most),
        }
    }

    /// Whether no set with what is chosen can cost less than what was found.
    pub(super) fn at_best(&self, ahead: Ahead<'_, 'a>) -> bool {
        let Some((best, _)) = &self.best else { return false };
        let Some(floor) = self.deep_floor(ahead) else { return true };
        let at_best = |(apart, least)| self.raised(floor, apart, least) >= best.price;
        floor >= best.price || self.packed().is_some_and(at_best)
    }

    /// Whether nothing below can beat what was found.
    pub(super) fn hopeless(&self, ahead: Ahead<'_, 'a>) -> bool {
        let Some(floor) = self.deep_floor(ahead) else { return true };
        if self.is_beyond(&floor) {
            return true;
        }
        let Some((apart, least)) = self.packed() else { return false };
        let floor = self.raised(floor, apart, least);
        let missed = self.goal.is_some_and(|goal| (floor.devices.numa, least) > goal);
        least == NEVER || missed || self.is_beyond(&floor)
    }

    /// Whether no set that costs this at least can be what is looked for.
    fn is_beyond(&self, floor: &Price) -> bool {
        match self.aim {
            Aim::Equal(price) | Aim::FirstAt(price) => return *floor > price,
            Aim::All => return false,
            Aim::Best | Aim::First | Aim::Above(_) => {}
        }
        let Some((best, _)) = &self.best else { return false };
        match floor.cmp(&best.price) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => {
                let shown = self.positions.len().min(best.ranks.len());
                self.positions[..] > best.ranks[..shown]
            }
        }
    }

    /// What packing tells of all that can follow: NUMA nodes beyond those in use, and what is lost,
    /// at least. Who goes to another NUMA node costs more whatever is lost.
    fn packed(&self) -> Option<(u16, Least)> {
        let packing = self.p.packing.as_ref()?;
        let used = |numa: u16| self.numa.counts.get(usize::from(numa)).is_some_and(|n| *n > 0);
        if self.numa.distinct > 0 {
            let near = packing.least(&self.load, used);
            if near != NEVER {
                return Some((0, near));
            }
        }
        Some((u16::from(self.numa.distinct > 0), packing.least(&self.load, |_| true)))
    }

    /// A floor, with what packing tells: where more NUMA nodes are needed than it has looked at, nothing.
    fn raised(&self, mut floor: Price, apart: u16, least: Least) -> Price {
        let numa = self.numa.beyond_first().saturating_add(apart);
        if floor.devices.numa > numa {
            return floor;
        }
        floor.devices.numa = numa;
        let toll = &mut floor.toll;
        (toll.wholes_used, toll.lost_mi) =
            (toll.wholes_used, toll.lost_mi).max((least.wholes, least.lost_mi));
        floor
    }

    /// The cost of the devices chosen: of these alone where they are `all`, else the least that any
    /// set with them can cost.
    pub(super) fn device_cost(&self, all: bool) -> DeviceCost {
        let p = self.p;
        let unmet = |(at, (axis, tally)): &(usize, (&Axis, &Tally))| {
            axis.kind == Kind::Wish
                && (tally.distinct > 1 || all && tally.joined == 0 && self.are_several(*at))
        };
        let unaligned = p.axes.iter().zip(&self.tallies).enumerate().filter(unmet).count();
        let (slowest, farthest) = self.slowest(all);
        DeviceCost {
            of_group: 0,
            unaligned: u16::try_from(unaligned).unwrap_or(u16::MAX),
            islands: self.islands.beyond_first(),
            slowest,
            farthest,
            nics: self.off_nics(all),
            numa: self.numa.beyond_first(),
        }
    }

    /// Whether several devices are under an axis: one alone is near itself, whatever is known.
    pub(super) fn are_several(&self, axis: usize) -> bool {
        let p = self.p;
        let fixed = p.fixed.iter().copied().filter(|_| p.axes[axis].of_pod);
        let under = |o: &&Chosen| p.lines[o.line].choices[o.choice].axes.contains(&axis);
        let chosen = self.chosen.iter().filter(under).map(|o| p.order[o.position]);
        let mut devices = fixed.chain(chosen);
        let first = devices.next();
        devices.any(|device| Some(device) != first)
    }

    fn off_nics(&self, all: bool) -> NicCost {
        let Some(cards) = &self.p.spans.cards else { return NicCost::default() };
        let totals = if all { Some(self.cards.chosen()) } else { cards.totals };
        let Some(totals) = totals else { return NicCost::default() };
        let [off_switch, off_root, off_numa] = self.cards.off(totals);
        NicCost { off_switch, off_root, off_numa }
    }

    /// Whether several devices are the pod's and nothing is known of links.
    fn is_in_the_dark(&self) -> bool {
        let p = self.p;
        if !p.spans.silent {
            return false;
        }
        let chosen = self.chosen.iter().map(|c| p.order[c.position]);
        let mut devices = p.fixed.iter().copied().chain(chosen);
        let first = devices.next();
        devices.any(|device| Some(device) != first)
    }

    /// The slowest link that must be used, and the slowest of all pairs: of what is chosen where that
    /// is `all`, else no worse than that of any set with it.
    fn slowest(&self, all: bool) -> (Link, Link) {
        if self.is_in_the_dark() {
            return (Link::UNKNOWN, Link::UNKNOWN);
        }
        let (farthest, ring) = self.links.last().copied().unwrap_or((Link::IDEAL, None));
        let slowest = match ring {
            Some(ring) => ring,
            None if all => self.best_ring(),
            None => self.slowest_at_least(),
        };
        // The bottleneck of a ring is one of its pairs.
        (slowest, farthest.max(slowest))
    }

    /// Each accelerator of two or more uses a link of its own, of three or more two.
    fn slowest_at_least(&self) -> Link {
        let spans = &self.p.spans;
        let many = spans.accelerators.unwrap_or(0).max(self.accelerators.len());
        if many < 2 || spans.links.is_empty() {
            return Link::IDEAL;
        }
        let n = self.p.order.len();
        let chosen = self.chosen.iter().map(|c| c.position).chain(n..n + self.p.fixed.len());
        let used = chosen.filter(|at| spans.accelerator[*at]).map(|at| {
            let (best, second) = spans.links[at];
            if many > 2 { second } else { best }
        });
        used.max().unwrap_or(Link::IDEAL)
    }
}
