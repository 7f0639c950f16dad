//! An arrangement by counting, and one more seat beside those that are there.

use std::sync::Arc;

use super::super::search::{Ask, Fit};
use super::super::trial::{Found, Opening, Trial};
use super::Class;
use super::counted::{allowed, spread, tightest_of};
use super::rooms::{Room, Rooms, is_countable};
use super::spans::{Spans, Width};
use super::together::LOOKS_MAX;
use crate::cost::Cost;
use crate::decision::Why;
use crate::name::ClaimKey;

/// Domains of one level that are tried, tightest first, before the next wider level.
const TRIED_MAX: usize = 16;

/// Nodes that are counted over all domains of one level, but for the first domain.
const NODES_MAX: usize = 4096;

/// Looks at a node that seating roles in turn may take: members times nodes.
const TURNS_MAX: usize = 1_000_000;

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
                spans.seat(opening, node, &fit.cost, true);
                spans.hold(node, &self.islands_of(node, &fit), true);
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
            let islands = self.islands_of(node, &fit);
            spans.seat(opening, node, &fit.cost, true);
            spans.hold(node, &islands, true);
            let standing = spans.priced(fit.cost);
            spans.hold(node, &islands, false);
            spans.seat(opening, node, &fit.cost, false);
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
        spans.seat(opening, node, &fit.cost, true);
        spans.hold(node, &self.islands_of(node, &fit), true);
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
                let in_order = orders.iter().map(|order| Some(order.as_slice()));
                let seats = in_order.chain([None]).find_map(|order| {
                    let mut here = spans.clone();
                    let start = self.mark();
                    let seats = match order {
                        Some(of) => self.fill_in_order(slot, (&classes, of), &mut here, &place),
                        None => self.fill_in_turn(slot, &classes, &mut here, &place),
                    };
                    self.roll_back(start);
                    let sum = |sum: Cost, (_, fit): &(u32, Fit)| sum.and(fit.cost);
                    Some((here.priced(seats.as_ref()?.iter().fold(Cost::default(), sum)), seats?))
                });
                let Some((cost, seats)) = seats else { continue };
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

    /// All openings as one class, if they are all alike, no rule tells them apart and nobody sits yet.
    pub(super) fn one_class<'o>(
        &mut self,
        slot: u32,
        openings: &'o [Opening],
        spans: &Spans<'_>,
    ) -> Option<Class<'o>> {
        let [only] = classes(openings, |one, other| one.role == other.role)[..] else {
            return None;
        };
        let class = self.class(slot, only).filter(|_| spans.is_plain())?;
        self.is_countable(&class).then_some(class)
    }

    /// Takes seats for one class in the lowest domain that holds it, off the rooms that are kept of
    /// nodes; of the domains that are looked at there the cheapest.
    pub(super) fn by_rooms(
        &mut self,
        class: &Class<'_>,
        spans: &Spans<'_>,
    ) -> Option<Vec<(Found, u32)>> {
        let (_, mut places) = self.with_rooms(class, spans.tree_at(), |rooms, trial| {
            let nodes = trial.ranks.slots();
            spans.levels().find_map(|width| match width {
                Width::Node => on_one_node(rooms, class, spans),
                Width::Domain(level) => in_one_domain(rooms, class, spans, level),
                Width::Anywhere if spans.is_bound() => None,
                Width::Anywhere => seated(rooms, class, spans, nodes),
            })
        })?;
        let nodes = &self.state.nodes;
        places.sort_by_cached_key(|(node, _)| spans.path(*node, nodes.key(*node)));
        let start = self.mark();
        let found = self.take_places(class, &places);
        if found.is_none() {
            self.roll_back(start);
        }
        found
    }

    /// Takes so many seats on each of these nodes.
    fn take_places(
        &mut self,
        class: &Class<'_>,
        places: &[(u32, u32)],
    ) -> Option<Vec<(Found, u32)>> {
        let (mut rest, mut looks) = (class.openings, LOOKS_MAX);
        let mut found = Vec::with_capacity(class.openings.len());
        for (node, count) in places {
            let (here, others) = rest.split_at_checked(*count as usize)?;
            let taken = self.seats_on(class, here, (*node, &[]), &mut looks)?;
            found.extend(taken.into_iter().map(|(_, found)| (found, *node)));
            rest = others;
        }
        rest.is_empty().then_some(found)
    }

    /// Whether what one member asks says what all ask, and what a node takes of them is told by
    /// counting.
    pub(super) fn is_countable(&self, class: &Class<'_>) -> bool {
        is_countable(&class.ask) && !class.openings.iter().any(|opening| self.is_pinned(opening))
    }

    /// Whether an opening may find a seat where others of its role find none: a node is promised to its
    /// pod, or a claim of it is allocated already.
    pub(super) fn stands_apart(&self, opening: &Opening) -> bool {
        let promised = || self.state.promised_to(opening.pod.as_ref()?);
        self.is_pinned(opening) || promised().is_some()
    }

    /// Whether a claim of the opening's pod is allocated already.
    fn is_pinned(&self, opening: &Opening) -> bool {
        let member = opening.pod.as_ref().and_then(|pod| self.state.members.find(pod));
        let claims = member.and_then(|row| row.fact.as_ref()).map(|fact| &fact.claims);
        let held = |key: &ClaimKey| self.state.claims.find(key).is_some_and(|c| c.held().is_some());
        claims.is_some_and(|claims| claims.iter().flatten().any(held))
    }

    /// Takes seats for members of a class: so many on each node.
    fn fill_nodes(
        &mut self,
        class: &Class<'_>,
        places: &[(u32, u32)],
        spans: &mut Spans<'_>,
        seats: &mut Vec<(u32, Fit)>,
    ) -> Option<()> {
        let (mut rest, mut looks) = (class.openings, LOOKS_MAX);
        for (node, count) in places {
            let (here, later) = rest.split_at_checked(*count as usize)?;
            let others = spans.islands_on(*node);
            let taken = self.seats_on(class, here, (*node, &others), &mut looks)?;
            for (opening, (fit, _)) in here.iter().zip(taken) {
                spans.seat(opening, *node, &fit.cost, true);
                spans.hold(*node, &self.islands_of(*node, &fit), true);
                seats.push((*node, fit));
            }
            rest = later;
        }
        rest.is_empty().then_some(())
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

    /// Takes seats for members of the classes in turn, who is furthest behind next, each where it adds
    /// least: so that nodes are filled with what goes together. Not where that is too much to look at.
    fn fill_in_turn(
        &mut self,
        slot: u32,
        classes: &[&[Opening]],
        spans: &mut Spans<'_>,
        place: &[u32],
    ) -> Option<Vec<(u32, Fit)>> {
        let members: usize = classes.iter().map(|class| class.len()).sum();
        if classes.len() < 2 || members.saturating_mul(place.len()) > TURNS_MAX {
            return None;
        }
        let mut by_class: Vec<Vec<(u32, Fit)>> = vec![Vec::new(); classes.len()];
        for _ in 0..members {
            let open = (0..classes.len()).filter(|at| by_class[*at].len() < classes[*at].len());
            let behind = |at: &usize| (by_class[*at].len() + 1) * members / classes[*at].len();
            let at = open.min_by_key(behind)?;
            let opening = classes[at].get(by_class[at].len())?;
            by_class[at].push(self.next_seat(slot, opening, spans, place)?);
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
            let class = self.class(slot, class)?;
            let rooms = self.rooms(&class, &allowed(spans, class.opening(), &all));
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
        if let Some(seats) = self.fill_slices(slot, role, spans, place) {
            return Some(seats);
        }
        let mut seats = Vec::new();
        for part in classes(role, |one, other| spans.alike(one, other)) {
            self.fill_part(slot, part, spans, place, &mut seats)?;
        }
        Some(seats)
    }

    /// Takes seats for members that are alike and that the same rules keep together.
    pub(super) fn fill_part(
        &mut self,
        slot: u32,
        part: &[Opening],
        spans: &mut Spans<'_>,
        place: &[u32],
        seats: &mut Vec<(u32, Fit)>,
    ) -> Option<()> {
        let class = self.class(slot, part)?;
        if !self.is_countable(&class) {
            for opening in part {
                seats.push(self.next_seat(slot, opening, spans, place)?);
            }
            return Some(());
        }
        let opening = class.opening();
        let rooms = self.rooms(&class, &allowed(spans, opening, place));
        let pieces = spans.pieces(opening, rooms);
        // Of the domains that the rules allow the tightest; where none holds them, none is spread over.
        let tightest = tightest_of(&pieces, part.len())?;
        let mut taken = spread(spans.tree(), tightest, class.wanted())?;
        let nodes = &self.state.nodes;
        taken.sort_by_cached_key(|(node, _)| spans.path(*node, nodes.key(*node)));
        self.fill_nodes(&class, &taken, spans, seats)
    }
}

/// The node that takes all at the least cost.
fn on_one_node(rooms: &Rooms, class: &Class<'_>, spans: &Spans<'_>) -> Option<Chosen> {
    let opening = class.opening();
    let mut alone = spans.clone();
    let best = rooms.taking(class.wanted()).filter_map(|(cost, nodes)| {
        let mut best: Option<(Cost, u32, u32)> = None;
        let mut before = None;
        for (rank, slot) in nodes {
            // What is alike but for its domains costs the same in the same domains, and never less.
            let same = before.is_some_and(|before| spans.are_neighbours(before, slot));
            if same || !spans.allows(opening, slot) {
                continue;
            }
            before = Some(slot);
            alone.seat(opening, slot, &cost, true);
            let with = alone.priced(cost);
            alone.seat(opening, slot, &cost, false);
            if best.is_none_or(|(least, ..)| with < least) {
                best = Some((with, rank, slot));
            }
            if with == cost {
                break;
            }
        }
        best
    });
    best.min().map(|(cost, _, slot)| (cost, vec![(slot, class.wanted())]))
}

/// Where all go in one domain of a level: of the tightest the cheapest.
fn in_one_domain(
    rooms: &Rooms,
    class: &Class<'_>,
    spans: &Spans<'_>,
    level: usize,
) -> Option<Chosen> {
    let tree = spans.tree().filter(|_| spans.is_within(level))?;
    let mut domains = rooms.domains(level, class.wanted());
    let mut left = NODES_MAX;
    let mut best: Option<Chosen> = None;
    for at in 0..=TRIED_MAX {
        // The roomiest at the end.
        let next = if at < TRIED_MAX { domains.next() } else { domains.next_back() };
        let Some(nodes) = next.and_then(|domain| tree.nodes.get(domain as usize)) else { break };
        if let Some(found) = seated(rooms, class, spans, nodes)
            && best.as_ref().is_none_or(|(least, _)| found.0 < *least)
        {
            best = Some(found);
        }
        match left.checked_sub(nodes.len()) {
            Some(rest) => left = rest,
            None => break,
        }
    }
    best
}

/// What it costs that so many members go to each of these nodes.
type Chosen = (Cost, Vec<(u32, u32)>);

/// How all go to some of these nodes, if there is room for them.
fn seated(rooms: &Rooms, class: &Class<'_>, spans: &Spans<'_>, nodes: &[u32]) -> Option<Chosen> {
    let opening = class.opening();
    let mut here = rooms.of(nodes, class.wanted());
    here.retain(|room| spans.allows(opening, room.slot));
    let taken = spread(spans.tree(), &here, class.wanted())?;
    let mut spans = spans.clone();
    let mut cost = Cost::default();
    for (slot, count) in &taken {
        let here = rooms.cost(*slot, *count);
        spans.seat(opening, *slot, &here, true);
        cost = cost.and(here);
    }
    Some((spans.priced(cost), taken))
}

/// Openings next to each other that are alike.
pub(super) fn classes(
    openings: &[Opening],
    alike: impl Fn(&Opening, &Opening) -> bool,
) -> Vec<&[Opening]> {
    openings.chunk_by(alike).collect()
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
