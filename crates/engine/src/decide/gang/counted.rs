//! Members that are alike are counted, not searched: how many of them each node takes, what that comes
//! to for each domain, and from that the lowest domain that holds them all and the fewest below it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::search::{Ask, Fit};
use super::super::trial::{Opening, Trial};
use super::spans::Spans;
use crate::cost::Cost;
use crate::device::UsageKey;
use crate::state::{Charge, Ledger, Tree};

/// What a node takes of members that are alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The node.
    pub(super) slot: u32,
    /// How many it takes, if it takes no others.
    pub(super) count: u32,
    /// What the first of them costs.
    pub(super) cost: Cost,
}

/// Of nodes whose devices are alike and held alike, how many members they take.
type Known = FxHashMap<(usize, UsageKey), u32>;

impl Trial<'_> {
    /// What each of these nodes takes of members like `opening`, at most `most` each. Nodes that take
    /// none are left out.
    pub(super) fn rooms(
        &mut self,
        group: u32,
        opening: &Opening,
        ask: &Ask,
        nodes: &[u32],
        most: u32,
    ) -> Vec<Room> {
        let mut known = Known::default();
        let of = |slot: &u32| self.room(group, opening, ask, *slot, most, &mut known);
        nodes.iter().filter_map(of).collect()
    }

    fn room(
        &mut self,
        group: u32,
        opening: &Opening,
        ask: &Ask,
        slot: u32,
        most: u32,
        known: &mut Known,
    ) -> Option<Room> {
        let fit = self.searched(|search, state| search.node(state, ask, slot)).ok()?;
        let cost = fit.cost;
        let row = self.state.nodes.at(slot);
        let charge = &self.state.requests.at(ask.slot).charge;
        let by_ledger = match &row.fact {
            Some(node) => {
                let allocatable = &node.allocatable;
                let plain = [
                    (charge.pods, allocatable.pods, row.ledger.pods),
                    (charge.cpu_milli, allocatable.cpu_milli, row.ledger.cpu_milli),
                    (charge.memory_bytes, allocatable.memory_bytes, row.ledger.memory_bytes),
                    (
                        charge.ephemeral_bytes,
                        allocatable.ephemeral_bytes,
                        row.ledger.ephemeral_bytes,
                    ),
                ];
                plain.into_iter().fold(most, times).min(scalars(charge, &row.ledger, most))
            }
            None => 0,
        };
        if !ask.request.ports.is_empty() {
            return Some(Room { slot, count: 1, cost });
        }
        let counted = fit.offer.is_none() && ask.mounts.is_none() && ask.around.is_none();
        if counted {
            return Some(Room { slot, count: by_ledger, cost });
        }
        let devices = row.devices.as_deref();
        let kind = devices.and_then(|devices| {
            let usage = devices.usage.as_ref()?;
            Some((Arc::as_ptr(devices.shape()) as usize, UsageKey::of(usage)))
        });
        let alone = ask.mounts.is_none() && ask.around.is_none() && ask.request.extended.is_empty();
        let kind = kind.filter(|_| alone && ask.pinned.is_empty());
        if let Some(count) = kind.as_ref().and_then(|kind| known.get(kind)) {
            return Some(Room { slot, count: (*count).min(by_ledger), cost });
        }
        let count = self.fill(group, opening, slot, most);
        if let Some(kind) = kind
            && count < by_ledger.min(most)
        {
            known.insert(kind, count);
        }
        Some(Room { slot, count, cost })
    }

    /// How many like `opening` a node takes one after the other, each with the devices that are best
    /// for it. All of it is given back.
    fn fill(&mut self, group: u32, opening: &Opening, slot: u32, most: u32) -> u32 {
        let start = self.mark();
        let mut count = 0;
        // Pods that exist are others' claims' users; one that does not stands for each.
        let opening = Opening { pod: None, ..opening.clone() };
        while count < most
            && let Some(fit) = self.fit_there(group, &opening, slot)
        {
            self.take(group, &opening, slot, fit);
            count += 1;
        }
        self.roll_back(start);
        count
    }

    /// The best seat on this very node, if there is one.
    pub(super) fn fit_there(&mut self, group: u32, opening: &Opening, slot: u32) -> Option<Fit> {
        let ask = self.ask_of(group, opening)?;
        self.searched(|search, state| search.node(state, &ask, slot)).ok()
    }
}

/// How many times an amount fits, no more than `most`. What is not asked for fits as often as need be.
fn times(most: u32, (asked, allocatable, used): (i64, i64, i64)) -> u32 {
    if asked <= 0 {
        return most;
    }
    let times = allocatable.saturating_sub(used).max(0) / asked;
    most.min(u32::try_from(times).unwrap_or(u32::MAX))
}

fn scalars(charge: &Charge, ledger: &Ledger, most: u32) -> u32 {
    let lines = charge.scalars.iter().filter_map(|(id, asked)| {
        let (allocatable, used) = ledger.scalar(*id);
        let by_devices = allocatable <= 0 && charge.served.contains(id);
        (!by_devices).then_some((*asked, allocatable, used))
    });
    lines.fold(most, times)
}

/// Rooms as a tree sees them, for choosing where so many members go.
pub(super) struct Counted<'f> {
    tree: Option<&'f Tree>,
    rooms: Vec<Room>,
}

impl<'f> Counted<'f> {
    /// `rooms` in order of the nodes' names.
    pub(super) fn new(tree: Option<&'f Tree>, rooms: Vec<Room>) -> Self {
        Self { tree, rooms }
    }

    /// How many members go where, so that few domains are used at each level, the widest first, and
    /// the fullest of those that would do: node and number. None where there is no room for all.
    pub(super) fn spread(&self, wanted: u32) -> Option<Vec<(u32, u32)>> {
        let all: Vec<usize> = (0..self.rooms.len()).collect();
        if self.sum(&all) < u64::from(wanted) {
            return None;
        }
        let mut taken = Vec::new();
        self.below(&all, 0, wanted, &mut taken);
        Some(taken)
    }

    fn sum(&self, of: &[usize]) -> u64 {
        of.iter().map(|at| u64::from(self.rooms[*at].count)).sum()
    }

    /// Fills domains of a level and below, of which there is room enough.
    fn below(&self, of: &[usize], level: usize, wanted: u32, taken: &mut Vec<(u32, u32)>) {
        let levels = self.tree.map_or(0, |tree| tree.levels);
        if level >= levels {
            return self.nodes(of, wanted, taken);
        }
        let mut domains: Vec<(u64, Vec<usize>)> = self.split(of, level);
        let mut left = u64::from(wanted);
        while left > 0 {
            // The tightest that holds the rest, else the largest.
            let holds = domains.iter().enumerate().filter(|(_, (sum, _))| *sum >= left);
            let tightest = holds.min_by_key(|(at, (sum, _))| (*sum, *at));
            let largest =
                || domains.iter().enumerate().max_by_key(|(at, (sum, _))| (*sum, usize::MAX - at));
            let Some((at, _)) = tightest.or_else(largest) else { return };
            let (sum, nodes) = domains.remove(at);
            let here = sum.min(left);
            self.below(&nodes, level + 1, here as u32, taken);
            left -= here;
        }
    }

    /// The domains of a level, by the first of their nodes. A node that is nowhere is one of its own.
    fn split(&self, of: &[usize], level: usize) -> Vec<(u64, Vec<usize>)> {
        let mut by_domain: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        let mut domains: Vec<(u64, Vec<usize>)> = Vec::new();
        for at in of {
            let Room { slot, count, .. } = self.rooms[*at];
            let domain = self.tree.map_or(crate::state::NOWHERE, |tree| tree.domain(slot, level));
            let alone = if domain == crate::state::NOWHERE { slot } else { 0 };
            let index = *by_domain.entry((domain, alone)).or_insert_with(|| {
                domains.push((0, Vec::new()));
                domains.len() - 1
            });
            domains[index].0 += u64::from(count);
            domains[index].1.push(*at);
        }
        domains
    }

    /// The nodes to fill: few, and the fullest that would do.
    fn nodes(&self, of: &[usize], wanted: u32, taken: &mut Vec<(u32, u32)>) {
        let mut left = wanted;
        let mut open: Vec<usize> = of.to_vec();
        // Largest first, the cheaper of equals, then by name.
        open.sort_by_key(|at| {
            let Room { count, cost, .. } = self.rooms[*at];
            (std::cmp::Reverse(count), cost, *at)
        });
        let mut from = 0;
        while left > 0 {
            // They are in order of count: the last that holds the rest is the tightest.
            let holds = open[from..].partition_point(|at| self.rooms[*at].count >= left);
            let at = match holds {
                0 => from,
                last => self.first_like(&open, from, from + last - 1),
            };
            let Some(room) = open.get(at).map(|at| self.rooms[*at]) else { return };
            let here = room.count.min(left);
            taken.push((room.slot, here));
            left -= here;
            if holds > 0 {
                return;
            }
            from += 1;
        }
    }

    /// The first of those with as much room as the one at `at`: the cheapest of them.
    fn first_like(&self, open: &[usize], from: usize, at: usize) -> usize {
        let count = self.rooms[open[at]].count;
        from + open[from..=at].partition_point(|one| self.rooms[*one].count > count)
    }
}

/// The nodes on which the rules let an opening be.
pub(super) fn allowed(spans: &Spans<'_>, opening: &Opening, nodes: &[u32]) -> Vec<u32> {
    nodes.iter().copied().filter(|slot| spans.allows(opening, *slot)).collect()
}
