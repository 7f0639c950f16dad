//! How many members go where, going by how many each node takes: the lowest domain that holds them all
//! and the fewest below it.

use rustc_hash::FxHashMap;

use super::super::trial::{Opening, Trial};
use super::Class;
use super::rooms::{self, Room};
use super::spans::Spans;
use crate::state::{NOWHERE, Tree};

impl Trial<'_> {
    /// What each of these nodes takes of members of a class, at most as many as there are. Nodes that
    /// take none are left out.
    pub(super) fn rooms(&mut self, class: &Class<'_>, nodes: &[u32]) -> Vec<Room> {
        let wanted = class.wanted();
        if rooms::is_countable(&class.ask) {
            return self.with_rooms(class, None, |rooms, _| rooms.of(nodes, wanted));
        }
        let (mut found, mut costs) = (Vec::new(), Vec::new());
        for slot in nodes {
            let bound = rooms::by_ledger(self.state, &class.ask, *slot, wanted);
            let taking = self.taking(class, *slot, bound);
            if let Some(first) = taking.costs.first() {
                let (count, most) = (taking.costs.len() as u32, taking.most.min(bound));
                found.push(Room { slot: *slot, count, most, grade: 0 });
                costs.push(*first);
            }
        }
        for (room, grade) in found.iter_mut().zip(rooms::grades(costs.into_iter())) {
            room.grade = grade;
        }
        found
    }
}

/// How many members go where, so that few domains are used at each level, the widest first, and the
/// fullest of those that would do: node and number. None where there is no room for all. `rooms` are in
/// order of the nodes' names.
pub(super) fn spread(tree: Option<&Tree>, rooms: &[Room], wanted: u32) -> Option<Vec<(u32, u32)>> {
    if sum(rooms) < u64::from(wanted) {
        return None;
    }
    let mut taken = Vec::new();
    below(tree, rooms.to_vec(), 0, wanted, &mut taken);
    Some(taken)
}

/// How many members there is room for.
pub(super) fn sum(rooms: &[Room]) -> u64 {
    rooms.iter().map(|room| u64::from(room.count)).sum()
}

/// Of pieces the tightest with room for so many, else the one with most room.
pub(super) fn tightest_of(pieces: &[Vec<Room>], wanted: usize) -> Option<&Vec<Room>> {
    let room = |rooms: &&Vec<Room>| sum(rooms);
    let holding = pieces.iter().filter(|rooms| room(rooms) >= wanted as u64).min_by_key(room);
    holding.or_else(|| pieces.iter().max_by_key(room))
}

/// Fills domains of a level and below, of which there is room enough.
fn below(
    tree: Option<&Tree>,
    of: Vec<Room>,
    level: usize,
    wanted: u32,
    taken: &mut Vec<(u32, u32)>,
) {
    let Some(tree) = tree.filter(|tree| level < tree.levels) else {
        return fill(of, wanted, taken);
    };
    let mut domains = split(tree, of, level);
    let mut left = u64::from(wanted);
    while left > 0 {
        // The tightest that holds the rest, else the largest.
        let holds = domains.iter().enumerate().filter(|(_, (sum, _))| *sum >= left);
        let tightest = holds.min_by_key(|(at, (sum, _))| (*sum, *at));
        let largest =
            || domains.iter().enumerate().max_by_key(|(at, (sum, _))| (*sum, usize::MAX - at));
        let Some((at, _)) = tightest.or_else(largest) else { return };
        let (sum, rooms) = domains.remove(at);
        let here = sum.min(left);
        below(Some(tree), rooms, level + 1, here as u32, taken);
        left -= here;
    }
}

/// The domains of a level, by the first of their nodes. A node that is nowhere is one of its own.
fn split(tree: &Tree, of: Vec<Room>, level: usize) -> Vec<(u64, Vec<Room>)> {
    // Most often all are of one domain.
    let first = of.first().map_or(NOWHERE, |room| tree.domain(room.slot, level));
    if first != NOWHERE && of.iter().all(|room| tree.domain(room.slot, level) == first) {
        return vec![(sum(&of), of)];
    }
    let mut by_domain: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    let mut domains: Vec<(u64, Vec<Room>)> = Vec::new();
    for room in of {
        let domain = tree.domain(room.slot, level);
        let alone = if domain == NOWHERE { room.slot } else { 0 };
        let index = *by_domain.entry((domain, alone)).or_insert_with(|| {
            domains.push((0, Vec::new()));
            domains.len() - 1
        });
        domains[index].0 += u64::from(room.count);
        domains[index].1.push(room);
    }
    domains
}

/// Fills nodes: few, and the fullest that would do.
fn fill(mut open: Vec<Room>, wanted: u32, taken: &mut Vec<(u32, u32)>) {
    let mut left = wanted;
    // Largest first, the cheaper of equals, then by name: the sort is stable.
    open.sort_by_key(|room| (std::cmp::Reverse(room.count), room.grade));
    let mut from = 0;
    while left > 0 {
        // They are in order of count: the last that holds the rest is the tightest.
        let holds = open[from..].partition_point(|room| room.count >= left);
        let at = match holds {
            0 => from,
            last => first_like(&open, from, from + last - 1),
        };
        let Some(room) = open.get(at) else { return };
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
fn first_like(open: &[Room], from: usize, at: usize) -> usize {
    let count = open[at].count;
    from + open[from..=at].partition_point(|room| room.count > count)
}

/// The nodes on which the rules let an opening be.
pub(super) fn allowed(spans: &Spans<'_>, opening: &Opening, nodes: &[u32]) -> Vec<u32> {
    nodes.iter().copied().filter(|slot| spans.allows(opening, *slot)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Forest;
    use crate::{Change, Engine, Name, Node, NodeKey, Topology, TopologyKey};

    fn rooms(counts: &[u32]) -> Vec<Room> {
        let of = |(slot, count): (usize, &u32)| Room {
            slot: slot as u32,
            count: *count,
            most: *count,
            grade: slot as u32,
        };
        counts.iter().enumerate().map(of).collect()
    }

    fn taken(counts: &[u32], wanted: u32) -> Option<Vec<(u32, u32)>> {
        spread(None, &rooms(counts), wanted)
    }

    /// Of those that hold the rest the tightest, else the largest, and the first of equals.
    #[test]
    fn few_nodes_are_filled_and_the_fullest_that_would_do() {
        let counts = [4, 3, 3, 1];
        assert_eq!(taken(&counts, 1), Some(vec![(3, 1)]));
        assert_eq!(taken(&counts, 3), Some(vec![(1, 3)]));
        assert_eq!(taken(&counts, 5), Some(vec![(0, 4), (3, 1)]));
        assert_eq!(taken(&counts, 6), Some(vec![(0, 4), (1, 2)]));
        assert_eq!(taken(&counts, 9), Some(vec![(0, 4), (1, 3), (2, 2)]));
        assert_eq!(taken(&counts, 11), Some(vec![(0, 4), (1, 3), (2, 3), (3, 1)]));
        assert_eq!(taken(&counts, 12), None);
    }

    #[test]
    fn of_nodes_with_equal_room_the_cheaper_is_filled() {
        let mut all = rooms(&[2, 2, 2]);
        (all[0].grade, all[1].grade, all[2].grade) = (2, 0, 1);
        assert_eq!(spread(None, &all, 2), Some(vec![(1, 2)]));
        assert_eq!(spread(None, &all, 3), Some(vec![(1, 2), (2, 1)]));
    }

    /// Nodes in these racks, of which some have none, and how members are spread over them.
    fn in_racks(racks: &[Option<&str>], counts: &[u32], wanted: u32) -> Option<Vec<(u32, u32)>> {
        let key = |at: usize| NodeKey(Name::new(&format!("n{at}")));
        let tree = TopologyKey(Name::new("racks"));
        let mut engine = Engine::new();
        let levels = vec![Name::new("rack")];
        let mut changes = vec![Change::Topology(tree.clone(), Some(Topology { levels }))];
        for (at, rack) in racks.iter().enumerate() {
            changes.push(Change::Node(key(at), Some(Node::default())));
            let domains = rack.map(|rack| [Some(Name::new(rack))].into());
            changes.push(Change::Domains(key(at), tree.clone(), domains));
        }
        engine.apply(changes);
        let state = engine.state();
        let slots: Vec<u32> =
            (0..racks.len()).filter_map(|at| state.nodes.slot(&key(at))).collect();
        let mut all = rooms(counts);
        all.iter_mut().for_each(|room| room.slot = slots[room.slot as usize]);
        let taken = spread(Forest::of(state).trees.first(), &all, wanted)?;
        let at = |slot| slots.iter().position(|one| *one == slot).map(|at| at as u32);
        taken.into_iter().map(|(slot, count)| Some((at(slot)?, count))).collect()
    }

    /// The tightest rack that holds all, else the largest and the tightest for the rest; a node without
    /// a rack stands for itself.
    #[test]
    fn few_domains_are_used_and_the_tightest_that_would_do() {
        let racks = [Some("a"), Some("b"), Some("a"), None];
        let all = |wanted| in_racks(&racks, &[2, 3, 2, 1], wanted);
        assert_eq!(all(1), Some(vec![(3, 1)]));
        assert_eq!(all(3), Some(vec![(1, 3)]));
        assert_eq!(all(4), Some(vec![(0, 2), (2, 2)]));
        assert_eq!(all(5), Some(vec![(0, 2), (2, 2), (3, 1)]));
        assert_eq!(all(6), Some(vec![(0, 2), (2, 2), (1, 2)]));
        assert_eq!(all(8), Some(vec![(0, 2), (2, 2), (1, 3), (3, 1)]));
    }

    #[test]
    fn the_tightest_piece_that_holds_all_is_taken_else_the_largest() {
        let pieces = [rooms(&[2, 3]), rooms(&[4]), rooms(&[1])];
        let sum_of = |wanted| tightest_of(&pieces, wanted).map(|rooms| sum(rooms));
        assert_eq!([1, 2, 4, 5, 6].map(sum_of), [1, 4, 4, 5, 5].map(Some));
        assert!(tightest_of(&[], 1).is_none());
    }
}
