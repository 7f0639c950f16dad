//! Segments of like members that are each to be in one domain: which domains, so that all of them are in few
//! domains of the levels above and neighbours in rank are neighbours there.

use std::collections::BTreeMap;

use super::super::search::Fit;
use super::super::trial::{Opening, Trial};
use super::counted::{allowed, spread, sum};
use super::place::classes;
use super::rooms::Room;
use super::spans::Spans;

impl Trial<'_> {
    /// Takes seats on these nodes for members of one role that are kept together segment by segment: as
    /// members are counted on nodes, whole segments are on domains. None where that can't be counted, or
    /// finds no place for all; nothing is taken then.
    pub(super) fn fill_slices(
        &mut self,
        slot: u32,
        role: &[Opening],
        spans: &mut Spans<'_>,
        place: &[u32],
    ) -> Option<Vec<(u32, Fit)>> {
        let first = role.first()?;
        let size = spans.slice_size(first)? as usize;
        let parts = classes(role, |one, other| spans.alike(one, other));
        let whole: Vec<usize> = (0..parts.len()).filter(|at| parts[*at].len() == size).collect();
        let begun = |part: &&[Opening]| part.iter().any(|opening| spans.is_begun(opening));
        if whole.len() < 2 || parts.iter().any(begun) {
            return None;
        }
        let class = self.class(slot, role).filter(|class| self.is_countable(class))?;
        let rooms = self.rooms(&class, &allowed(spans, first, place));
        let mut domains: BTreeMap<u32, Vec<Room>> = BTreeMap::new();
        for room in rooms {
            domains.entry(spans.slice_domain(first, room.slot)?).or_default().push(room);
        }
        // One node stands for its domain.
        let stand = |rooms: &Vec<Room>| {
            let count = u32::try_from(sum(rooms) / size as u64).unwrap_or(u32::MAX);
            let one = rooms.iter().min_by_key(|room| room.grade).filter(|_| count > 0)?;
            Some(Room { count, most: count, ..*one })
        };
        let standing: Vec<Room> = domains.values().filter_map(stand).collect();
        let wanted = u32::try_from(whole.len()).ok()?;
        let mut taken = spread(spans.tree(), &standing, wanted)?;
        let nodes = &self.state.nodes;
        taken.sort_by_cached_key(|(node, _)| spans.path(*node, nodes.key(*node)));
        let (start, before) = (self.mark(), spans.clone());
        let seats = self.fill_domains(slot, (&parts, &whole), &taken, spans, place);
        if seats.is_none() {
            self.roll_back(start);
            *spans = before;
        }
        seats
    }

    /// Takes seats for segments: so many of the whole ones in the domain of each of these nodes, the others
    /// as near to them as there is room. The seats stand in the order of the openings.
    fn fill_domains(
        &mut self,
        slot: u32,
        (parts, whole): (&[&[Opening]], &[usize]),
        taken: &[(u32, u32)],
        spans: &mut Spans<'_>,
        place: &[u32],
    ) -> Option<Vec<(u32, Fit)>> {
        let mut by_part: Vec<Vec<(u32, Fit)>> = vec![Vec::new(); parts.len()];
        let each = taken.iter().flat_map(|(node, count)| (0..*count).map(|_| *node));
        for (at, node) in whole.iter().zip(each) {
            let opening = parts[*at].first()?;
            let domain = spans.slice_domain(opening, node);
            let here = |slot: &u32| spans.slice_domain(opening, *slot) == domain;
            let nodes: Vec<u32> = place.iter().copied().filter(here).collect();
            self.fill_part(slot, parts[*at], spans, &nodes, &mut by_part[*at])?;
        }
        for at in (0..parts.len()).filter(|at| !whole.contains(at)) {
            let beside = by_part[..at].iter().rev().find_map(|seats| seats.last());
            let beside = beside.or_else(|| by_part.iter().find_map(|seats| seats.first()));
            let mut near = beside.map_or_else(Vec::new, |(node, _)| spans.around(*node, place));
            near.push(place.to_vec());
            let (start, before) = (self.mark(), spans.clone());
            let found = near.iter().find_map(|nodes| {
                let mut seats = Vec::new();
                let found = self.fill_part(slot, parts[at], spans, nodes, &mut seats);
                if found.is_none() {
                    self.roll_back(start);
                    *spans = before.clone();
                }
                found.map(|()| seats)
            });
            by_part[at] = found?;
        }
        Some(by_part.into_iter().flatten().collect())
    }
}
