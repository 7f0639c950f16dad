//! Groups that are placed whole or not at all: where, with the devices of all members chosen together.
//!
//! Small questions are gone through one by one ([`joint`](joint)), which finds whatever there is and the
//! cheapest of it. For others [`place`](place) finds an arrangement by counting: the lowest domain that
//! holds the group, tightest first. Where counting neither finds one nor tells that there is none,
//! [`revisit`](revisit) searches, and takes back what leaves no place for the rest. What a rule of
//! topology means for a seat, and what all seats span, is [`spans`](spans)'s; who sits together on one
//! node [`together`](together)'s; with whom it starts, where not all must, [`start`](start)'s; in which order
//! roles are seated [`turns`](turns)'s; what comes beyond those with whom it starts [`grow`](grow)'s.

mod alike;
mod choose;
mod counted;
mod fill;
mod fragments;
mod grow;
mod joint;
mod kinds;
mod place;
mod proof;
mod revisit;
mod rooms;
mod short;
mod slices;
mod spans;
mod start;
mod sums;
mod together;
mod turns;

use std::sync::Arc;

use super::search::{Ask, Fit};
use super::trial::{Found, Opening, Trial};
use crate::cost::Cost;
use crate::decision::{Act, Proof, Verdict, Why};
use crate::name::GroupKey;
use crate::reason::Reason;
use crate::state::Forest;
use choose::{Choices, Way};
pub(super) use fragments::Fragments;
use grow::Told;
use joint::{Joint, Outcome};
use revisit::{PART_OF_ALL, Revisited};
pub(super) use rooms::Rooms;
use spans::Spans;

/// Members that are gone through in every way, however few the nodes: each is a step deeper.
const JOINT_MAX: u32 = 64;

/// The members that must start together, each with its seat, which is taken, and its node.
struct Arranged {
    found: Vec<(Found, u32)>,
    proof: Proof,
}

impl Arranged {
    /// The sum of what its seats cost.
    fn cost(&self) -> Cost {
        self.found.iter().fold(Cost::default(), |sum, (one, _)| sum.and(one.cost))
    }

    /// Whether something cheaper is possible, seat by seat and in the whole.
    fn proof(&self) -> Proof {
        self.found.iter().map(|(one, _)| one.proof).fold(self.proof, Proof::max)
    }
}

/// A group that has started, with what it spans and what is told of those that are missing.
struct Begun<'f> {
    arranged: Arranged,
    spans: Spans<'f>,
    told: Told,
}

/// How good a way to start is: parts and members left out, and what it costs. Less is better.
/// What is left out is no block of [`Cost`]: that is the price of the seats that are given, and of the same
/// members it alone decides. It is compared only among ways that start with others.
type Standing = (usize, u32, Cost);

impl Begun<'_> {
    /// Whether nobody is placed, and it is shown that nobody can be.
    fn is_none(&self) -> bool {
        self.arranged.found.is_empty() && self.told.is_proven()
    }

    /// The way in which it has started: of what came beyond no more is told than how many of each role.
    fn has(&self, way: &Way) -> Way {
        let mut seats = vec![0; way.seats.len()];
        for (one, _) in &self.arranged.found {
            if let Some(count) = seats.get_mut(usize::from(one.seat.role)) {
                *count += 1;
            }
        }
        Way { parts: self.told.parts_there(), seats }
    }

    fn standing(&self) -> Standing {
        let (parts, members) = self.told.left_out();
        (parts, members, self.spans.priced(self.arranged.cost()))
    }
}

/// Openings that are alike, with what each of them asks of nodes.
struct Class<'o> {
    group: u32,
    openings: &'o [Opening],
    first: &'o Opening,
    /// How many nodes are asked about.
    wanted: u32,
    ask: Ask,
}

impl<'o> Class<'o> {
    /// Any of them.
    fn opening(&self) -> &'o Opening {
        self.first
    }

    /// How many they are.
    fn wanted(&self) -> u32 {
        self.wanted
    }
}

/// Why no arrangement was found, and whether there is none.
struct Unplaced {
    why: Arc<Why>,
    proven: bool,
}

impl Trial<'_> {
    /// Places a group whole, or none of it; then as many more of its members as there is room for.
    pub(super) fn gang(&mut self, key: &GroupKey, slot: u32, openings: &[Opening]) -> Verdict {
        self.searching = self.effort.steps / PART_OF_ALL;
        let choices = self.choices(slot, openings);
        if let Some(why) = self.kept_back(slot, openings, &choices) {
            return self.not_whole(slot, why);
        }
        let fragments = self.fragments();
        let begun = match self.begun(slot, openings, &choices, &fragments) {
            Ok(begun) => begun,
            Err(Unplaced { why, proven }) => {
                return if proven { self.not_whole(slot, why) } else { self.gave_up(why) };
            }
        };
        let Begun { arranged, spans, told } = begun;
        let (proven, never) = (told.is_proven(), told.is_never());
        let short = self.told(key, told);
        if arranged.found.is_empty()
            && let Some(short) = short
        {
            let why = Why { parts: short.parts, ..Arc::unwrap_or_clone(short.why) };
            let why = Arc::new(if never { why } else { start::of_some(why) });
            return if proven { self.not_whole(slot, why) } else { self.gave_up(why) };
        }
        let (cost, optimal) = (arranged.cost(), arranged.proof());
        let fragmentation = spans.fragmentation(cost.harm.fragmentation);
        let cost = spans.priced(cost);
        let seats = arranged.found.into_iter().map(|(one, _)| one.seat).collect();
        self.act(Act::Place(key.clone(), seats, cost));
        self.broken_up(key, fragmentation);
        Verdict::Placed { cost, optimal, short }
    }

    /// Takes seats for who starts together in this way, and then for what comes beyond.
    fn begun_with<'f>(
        &mut self,
        slot: u32,
        openings: &[Opening],
        (choices, way): (&Choices, &Way),
        fragments: &'f Fragments,
    ) -> Result<Begun<'f>, Unplaced> {
        let (mut needed, more) = self.needed(openings, &way.seats);
        let start = self.mark();
        let spans = self.spans(fragments, slot);
        let mut arranged = self.arrange(slot, &mut needed, &spans).inspect_err(|_| {
            self.roll_back(start);
        })?;
        let mut spans = self.spans(fragments, slot);
        self.seated(&needed, &arranged.found, &mut spans);
        let told = self.grow(slot, (choices, way), &more, &mut spans, &mut arranged);
        Ok(Begun { arranged, spans, told })
    }

    /// Why a group is not tried at all, or could not be made whole.
    fn kept_back(
        &mut self,
        slot: u32,
        openings: &[Opening],
        choices: &Choices,
    ) -> Option<Arc<Why>> {
        self.gated(slot, openings).or_else(|| {
            let must = choices.must();
            openings.iter().filter(|opening| is_among(opening, &must)).find_map(|opening| {
                let why = self.kept_out(slot, opening)?;
                // That some are not there is nobody's own fault.
                let own = why.first != Reason::GroupIncomplete;
                let role = own.then_some(opening.role);
                Some(Arc::new(Why { role, ..Arc::unwrap_or_clone(why) }))
            })
        })
    }

    /// These openings, which are alike. None if there are none, or something stands in their way
    /// before any node is looked at.
    fn class<'o>(&mut self, group: u32, openings: &'o [Opening]) -> Option<Class<'o>> {
        let first = openings.first()?;
        let wanted = u32::try_from(openings.len()).unwrap_or(u32::MAX);
        Some(Class { group, openings, first, wanted, ask: self.ask_of(group, first)? })
    }

    /// Adds seats that were taken to what the group spans.
    fn seated(&self, openings: &[Opening], found: &[(Found, u32)], spans: &mut Spans<'_>) {
        for (opening, (one, node)) in openings.iter().zip(found) {
            spans.seat(opening, *node, &one.cost, true);
            spans.hold(*node, &self.islands_of_seat(*node, &one.seat), true);
        }
    }

    fn forest(&mut self) -> Arc<Forest> {
        let version = (self.state.clock.topology, self.state.clock.node_set);
        let Some(caches) = self.caches.as_deref_mut() else {
            return Arc::new(Forest::of(self.state));
        };
        if let Some((known, forest)) = &caches.forest
            && *known == version
        {
            return Arc::clone(forest);
        }
        let forest = Arc::new(Forest::of(self.state));
        caches.forest = Some((version, Arc::clone(&forest)));
        forest
    }

    fn spans<'f>(&self, fragments: &'f Fragments, slot: u32) -> Spans<'f> {
        let rules = self.state.groups.at(slot).fact.as_ref().map_or(&[][..], |fact| &fact.rules);
        spans::with_running(Spans::new(fragments, rules), self.state, slot)
    }

    /// The first so many of each role, and those beyond.
    fn needed(&self, openings: &[Opening], seats: &[u32]) -> (Vec<Opening>, Vec<Opening>) {
        openings.iter().cloned().partition(|opening| is_among(opening, seats))
    }

    /// Finds where all of these go, and takes it: they stand afterwards in the order in which their seats are
    /// taken. Where there is nothing, nothing is taken.
    fn arrange(
        &mut self,
        slot: u32,
        openings: &mut Vec<Opening>,
        spans: &Spans<'_>,
    ) -> Result<Arranged, Unplaced> {
        if openings.is_empty() {
            return Ok(Arranged { found: Vec::new(), proof: Proof::Proven });
        }
        let turns = self.turns(slot, openings);
        let mut found = None;
        if let Some(outcome) = self.in_every_way(slot, openings, spans, turns.matters) {
            let most = outcome.most;
            let best = outcome.best.map(|(cost, seats)| {
                let in_turn = seats.iter().map(|(at, ..)| openings[*at].clone()).collect();
                let seats = seats.into_iter().map(|(_, node, fit)| (node, fit)).collect();
                (cost, in_turn, seats)
            });
            match (outcome.cut, best) {
                (false, Some((_, in_turn, seats))) => {
                    *openings = in_turn;
                    return Ok(self.taken(slot, openings, seats, Proof::Proven));
                }
                (false, None) => {
                    if let Some(first) = turns.orders.first().filter(|_| turns.matters) {
                        *openings = first.iter().map(|at| openings[*at].clone()).collect();
                    }
                    let (near, _) = self.nearest_place(slot, openings, spans);
                    let why = self.whole_does_not_fit(openings, &near, most);
                    return Err(Unplaced { why, proven: true });
                }
                (true, best) => found = best,
            }
        }
        let mut none = None;
        let as_they_stand = if turns.matters { openings.clone() } else { Vec::new() };
        for order in &turns.orders {
            if turns.matters {
                *openings = order.iter().map(|at| as_they_stand[*at].clone()).collect();
            }
            match self.in_order(slot, openings, spans, found.as_ref().map(|(cost, ..)| *cost)) {
                Ok(Some(arranged)) => return Ok(arranged),
                Ok(None) => break,
                Err(unplaced) => {
                    // What counting settles holds in every order.
                    let proven =
                        unplaced.proven && (turns.enough || self.is_counted(slot, openings, spans));
                    let none = none.get_or_insert(unplaced);
                    none.proven = proven;
                    if proven {
                        break;
                    }
                }
            }
        }
        match (found, none) {
            (Some((_, in_turn, seats)), _) => {
                *openings = in_turn;
                Ok(self.taken(slot, openings, seats, Proof::Bounded))
            }
            (None, Some(none)) => Err(none),
            (None, None) => {
                let (near, _) = self.nearest_place(slot, openings, spans);
                let why = self.whole_does_not_fit(openings, &near, 0);
                Err(Unplaced { why, proven: false })
            }
        }
    }

    /// Every arrangement of these, where they are few.
    fn in_every_way(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &Spans<'_>,
        in_any_order: bool,
    ) -> Option<Outcome> {
        let nodes = self.ranks.slots().len() as u64;
        let few = u32::try_from(openings.len()).ok().filter(|n| *n <= JOINT_MAX)?;
        nodes.checked_pow(few).filter(|ways| *ways <= self.effort.ways)?;
        let joint = Joint::new(slot, openings, spans.clone(), self.effort.steps);
        let joint = if in_any_order { joint.in_any_order(self) } else { joint };
        Some(joint.search(self))
    }

    /// Finds where all of these go that come in this order, without going through everything, and takes it.
    /// None where it costs no less than what is known.
    fn in_order(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &Spans<'_>,
        known: Option<Cost>,
    ) -> Result<Option<Arranged>, Unplaced> {
        if known.is_none()
            && let Some(class) = self.one_class(slot, openings, spans)
        {
            let by_rooms = self.by_rooms(&class, spans);
            return match by_rooms {
                Some(found) => Ok(Some(Arranged { found, proof: Proof::Bounded })),
                None => self.by_the_nearest(slot, openings, spans).map(Some),
            };
        }
        // What was found before the bound may be dearer than what counting gives; of equals what
        // counting gives is taken.
        match (self.by_counting(slot, openings, spans), known) {
            (Some((cost, seats)), known) if known.is_none_or(|known| cost <= known) => {
                Ok(Some(self.taken(slot, openings, seats, Proof::Bounded)))
            }
            (_, Some(_)) => Ok(None),
            (_, None) => self.by_the_nearest(slot, openings, spans).map(Some),
        }
    }

    /// What the place that comes nearest gives: an arrangement after all, or why there is none.
    fn by_the_nearest(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &Spans<'_>,
    ) -> Result<Arranged, Unplaced> {
        let (near, seats) = self.nearest_place(slot, openings, spans);
        let all: Option<Vec<(u32, Fit)>> = seats.into_iter().collect();
        if let Some(seats) = all {
            return Ok(self.taken(slot, openings, seats, Proof::Bounded));
        }
        if self.is_counted(slot, openings, spans) {
            let why = self.whole_does_not_fit(openings, &near, 0);
            return Err(Unplaced { why, proven: true });
        }
        let (most, proven) = match self.revisit(slot, openings, spans) {
            Revisited::Found(seats) => {
                return Ok(self.taken(slot, openings, seats, Proof::Bounded));
            }
            Revisited::None(most) => (most, true),
            Revisited::Cut(most) => (most, false),
        };
        Err(Unplaced { why: self.whole_does_not_fit(openings, &near, most), proven })
    }

    /// Takes these seats.
    fn taken(
        &mut self,
        slot: u32,
        openings: &[Opening],
        seats: Vec<(u32, Fit)>,
        proof: Proof,
    ) -> Arranged {
        let mut found = Vec::with_capacity(seats.len());
        for (opening, (node, fit)) in openings.iter().zip(seats) {
            found.push((self.take(slot, opening, node, fit), node));
        }
        Arranged { found, proof }
    }
}

/// Whether an opening is one of the first so many of its role.
fn is_among(opening: &Opening, seats: &[u32]) -> bool {
    seats.get(usize::from(opening.role)).is_some_and(|least| opening.before < *least)
}
