//! An arrangement by counting, and one more seat beside those that are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::search::{Ask, Fit};
use super::super::trial::{Found, Opening, Trial};
use super::counted::{Counted, Room, allowed};
use super::spans::{Spans, Width};
use crate::cost::Cost;
use crate::decision::Why;
use crate::facts::ClaimUse;

/// Domains of one level that are tried, tightest first, before the next wider level.
const TRIED_MAX: usize = 16;

/// Seats that are tried over all domains of one level, but for the first domain.
const SEATS_MAX: usize = 256;

impl Trial<'_> {
    /// A seat for one member more, where it adds least.
    pub(super) fn one_more(
        &mut self,
        slot: u32,
        opening: &Opening,
        spans: &mut Spans<'_>,
    ) -> Result<(Found, u32), Arc<Why>> {
        let all = self.ranks.slots().to_vec();
        let request = self.state.groups.at(slot).requests[usize::from(opening.role)];
        let resolved = match self.resolve(request, opening) {
            Ok(resolved) => resolved,
            Err(stopped) => return Err(self.object(request, opening, *stopped)),
        };
        let ask = self.ask(slot, opening, resolved);
        match self.nearest(&ask, opening, spans, &all) {
            Some((node, fit)) => {
                spans.seat(opening, node, true);
                Ok((self.take(slot, opening, node, fit), node))
            }
            None => Err(self.no_more(slot, &ask, opening, spans)),
        }
    }

    /// Of these nodes the one on which a seat adds least to what the group spans, and then costs least.
    fn nearest(
        &mut self,
        ask: &Ask,
        opening: &Opening,
        spans: &mut Spans<'_>,
        nodes: &[u32],
    ) -> Option<(u32, Fit)> {
        let mut best: Option<(_, u32, Fit)> = None;
        for node in allowed(spans, opening, nodes) {
            let fit = self.searched(|search, state| search.node(state, ask, node));
            let Ok(fit) = fit else { continue };
            spans.seat(opening, node, true);
            let standing = Cost { topology: spans.cost(), ..fit.cost };
            spans.seat(opening, node, false);
            if best.as_ref().is_none_or(|(least, ..)| standing < *least) {
                best = Some((standing, node, fit));
            }
        }
        best.map(|(_, node, fit)| (node, fit))
    }

    /// Takes the nearest seat on these nodes.
    pub(super) fn next_seat(
        &mut self,
        slot: u32,
        opening: &Opening,
        spans: &mut Spans<'_>,
        nodes: &[u32],
    ) -> Option<(u32, Fit)> {
        let ask = self.ask_of(slot, opening)?;
        let (node, fit) = self.nearest(&ask, opening, spans, nodes)?;
        spans.seat(opening, node, true);
        self.take(slot, opening, node, fit.clone());
        Some((node, fit))
    }

    /// An arrangement of all openings: in the lowest domain in which one is found, the cheapest of
    /// those that are tried there. All of it is given back.
    pub(super) fn by_counting(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &Spans<'_>,
    ) -> Option<(Cost, Vec<(u32, Fit)>)> {
        let classes = classes(openings, |one, other| one.role == other.role);
        let counts = self.counts(slot, &classes, spans)?;
        let orders = orders(&classes, &counts);
        for level in spans.levels() {
            let mut best: Option<(Cost, Vec<(u32, Fit)>)> = None;
            let places = spans.places(level, self.ranks.slots());
            let tries = (SEATS_MAX / openings.len().max(1)).clamp(1, TRIED_MAX);
            for place in tightest(places, &classes, &counts, tries) {
                let mut in_order = orders.iter();
                let seats = in_order.find_map(|order| {
                    let mut here = spans.clone();
                    let start = self.mark();
                    let seats = self.fill_in_order(slot, (&classes, order), &mut here, &place);
                    self.roll_back(start);
                    Some((here.cost(), seats?))
                });
                let Some((topology, seats)) = seats else { continue };
                let cost = seats.iter().fold(Cost::default(), |sum, (_, fit)| sum.and(fit.cost));
                let cost = Cost { topology, ..cost };
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, seats));
                }
            }
            if best.is_some() {
                return best;
            }
        }
        None
    }

    /// Whether counting settles that there is no arrangement: members that are alike and mean nothing to
    /// each other, or some that no place has room for even by themselves.
    pub(super) fn is_counted(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &Spans<'_>,
    ) -> bool {
        // Roles may ask for the same.
        let mut alike: BTreeMap<u32, (u32, &Opening)> = BTreeMap::new();
        for opening in openings {
            let request = self.state.groups.at(slot).requests[usize::from(opening.role)];
            alike.entry(request).or_insert((0, opening)).0 += 1;
        }
        let all = self.ranks.slots().to_vec();
        let places = spans.places(Width::Anywhere, &all);
        let one_kind = alike.len() == 1;
        for (wanted, opening) in alike.into_values() {
            let Some(ask) = self.ask_of(slot, opening) else { return true };
            let rooms = self.rooms(slot, opening, &ask, &allowed(spans, opening, &all), wanted);
            let room: FxHashMap<u32, u32> = rooms.iter().map(|r| (r.slot, r.count)).collect();
            let holds = |place: &Vec<u32>| {
                let counts = place.iter().filter_map(|node| room.get(node));
                counts.map(|count| u64::from(*count)).sum::<u64>() >= u64::from(wanted)
            };
            if one_kind && !is_coupled(&ask) || !places.iter().any(holds) {
                return true;
            }
        }
        false
    }

    /// Takes seats for all classes in an order; the seats stand in the order of the openings.
    fn fill_in_order(
        &mut self,
        slot: u32,
        (classes, order): (&[&[Opening]], &[usize]),
        spans: &mut Spans<'_>,
        place: &[u32],
    ) -> Option<Vec<(u32, Fit)>> {
        let mut by_class: Vec<Vec<(u32, Fit)>> = vec![Vec::new(); classes.len()];
        for at in order {
            by_class[*at] = self.fill_place(slot, classes.get(*at)?, spans, place)?;
        }
        Some(by_class.into_iter().flatten().collect())
    }

    /// By class and node slot, how many of the class a node takes if it takes no others. None where
    /// a member can't be placed at all, whatever the node.
    pub(super) fn counts(
        &mut self,
        slot: u32,
        classes: &[&[Opening]],
        spans: &Spans<'_>,
    ) -> Option<Vec<Vec<u32>>> {
        let all = self.ranks.slots().to_vec();
        let mut counts = Vec::with_capacity(classes.len());
        for class in classes {
            let opening = class.first()?;
            let ask = self.ask_of(slot, opening)?;
            let rooms = self.rooms(slot, opening, &ask, &allowed(spans, opening, &all), len(class));
            let mut by_slot = vec![0; self.state.nodes.slots() as usize];
            for Room { slot, count, .. } in rooms {
                by_slot[slot as usize] = count;
            }
            counts.push(by_slot);
        }
        Some(counts)
    }

    /// Takes seats on these nodes for members of one role.
    fn fill_place(
        &mut self,
        slot: u32,
        role: &[Opening],
        spans: &mut Spans<'_>,
        place: &[u32],
    ) -> Option<Vec<(u32, Fit)>> {
        let mut seats = Vec::new();
        for part in classes(role, |one, other| spans.alike(one, other)) {
            self.fill_part(slot, part, spans, place, &mut seats)?;
        }
        Some(seats)
    }

    /// Takes seats for members that are alike and that the same rules keep together.
    fn fill_part(
        &mut self,
        slot: u32,
        part: &[Opening],
        spans: &mut Spans<'_>,
        place: &[u32],
        seats: &mut Vec<(u32, Fit)>,
    ) -> Option<()> {
        let opening = part.first()?;
        let ask = self.ask_of(slot, opening)?;
        if is_coupled(&ask) {
            for opening in part {
                seats.push(self.next_seat(slot, opening, spans, place)?);
            }
            return Some(());
        }
        let nodes = allowed(spans, opening, place);
        let rooms = self.rooms(slot, opening, &ask, &nodes, len(part));
        let pieces = spans.pieces(opening, rooms);
        let spread =
            |rooms: &Vec<Room>| Counted::new(spans.tree(), rooms.clone()).spread(len(part));
        let sum = |rooms: &Vec<Room>| rooms.iter().map(|room| u64::from(room.count)).sum::<u64>();
        // Of the domains that the rules allow the tightest.
        let tightest = pieces.iter().filter(|rooms| sum(rooms) >= part.len() as u64);
        let mut taken = spread(tightest.min_by_key(|rooms| sum(rooms))?)?;
        taken.sort_by_key(|(node, _)| spans.path(*node, self.state.nodes.key(*node)));
        let mut rest = part.iter();
        for (node, count) in taken {
            for opening in rest.by_ref().take(count as usize) {
                let fit = self.fit_there(slot, opening, node)?;
                spans.seat(opening, node, true);
                self.take(slot, opening, node, fit.clone());
                seats.push((node, fit));
            }
        }
        rest.next().is_none().then_some(())
    }
}

/// What one member means to others can't be told by counting: claims that they share, volumes, ports
/// and pods that they must be near or away from.
pub(super) fn is_coupled(ask: &Ask) -> bool {
    let named = |claim: &ClaimUse| matches!(claim, ClaimUse::Named(_) | ClaimUse::PerGroup(_));
    ask.around.is_some() || ask.mounts.is_some() || ask.request.claims.iter().any(named)
}

/// Openings next to each other that are alike.
pub(super) fn classes(
    openings: &[Opening],
    alike: impl Fn(&Opening, &Opening) -> bool,
) -> Vec<&[Opening]> {
    openings.chunk_by(alike).collect()
}

pub(super) fn len(openings: &[Opening]) -> u32 {
    u32::try_from(openings.len()).unwrap_or(u32::MAX)
}

/// Orders in which classes are seated: who has least to choose from first, as they stand, and last to
/// first.
fn orders(classes: &[&[Opening]], counts: &[Vec<u32>]) -> Vec<Vec<usize>> {
    let plain: Vec<usize> = (0..classes.len()).collect();
    if classes.len() < 2 {
        return vec![plain];
    }
    let nodes = |at: &usize| counts[*at].iter().filter(|count| **count > 0).count();
    let mut scarce = plain.clone();
    scarce.sort_by_key(nodes);
    let mut orders = vec![scarce];
    for order in [plain.clone(), plain.into_iter().rev().collect()] {
        if !orders.contains(&order) {
            orders.push(order);
        }
    }
    orders
}

/// Of these places those with room for each class by itself, so many of the tightest; and at the end
/// the roomiest.
fn tightest(
    places: Vec<Vec<u32>>,
    classes: &[&[Opening]],
    counts: &[Vec<u32>],
    most: usize,
) -> Vec<Vec<u32>> {
    let mut with_room: Vec<(u64, Vec<u32>)> = Vec::new();
    for place in places {
        let mut spare = 0_u64;
        let fits = classes.iter().zip(counts).all(|(class, counts)| {
            let room: u64 = place.iter().map(|slot| u64::from(counts[*slot as usize])).sum();
            let left = room.checked_sub(class.len() as u64);
            spare += left.unwrap_or(0);
            left.is_some()
        });
        if fits {
            with_room.push((spare, place));
        }
    }
    // Stable: of equal ones the first by name.
    with_room.sort_by_key(|(spare, _)| *spare);
    if with_room.len() > most {
        let roomiest = with_room.len() - 1;
        with_room.swap(most, roomiest);
        with_room.truncate(most + 1);
    }
    with_room.into_iter().map(|(_, place)| place).collect()
}
