//! Groups that are placed whole or not at all: where, with the devices of all members chosen together.
//!
//! Small questions are gone through one by one ([`joint`](joint)), which finds whatever there is and the
//! cheapest of it. For others [`place`](place) finds an arrangement by counting: the lowest domain that
//! holds the group, tightest first. Where counting neither finds one nor tells that there is none,
//! [`revisit`](revisit) searches, and takes back what leaves no place for the rest. What a rule of
//! topology means for a seat, and what all seats span, is [`spans`](spans)'s; who sits together on one
//! node [`together`](together)'s; what comes beyond the members that must start [`grow`](grow)'s.

mod alike;
mod counted;
mod fragments;
mod grow;
mod joint;
mod place;
mod proof;
mod revisit;
mod rooms;
mod short;
mod slices;
mod spans;
mod together;

use std::sync::Arc;

use super::search::{Ask, Fit};
use super::trial::{Found, Opening, Trial};
use crate::cost::Cost;
use crate::decision::{Act, Proof, Short, Verdict, Why};
use crate::name::GroupKey;
use crate::reason::Reason;
use crate::state::Forest;
pub(super) use fragments::Fragments;
use grow::Grown;
use joint::Joint;
use revisit::Revisited;
pub(super) use rooms::Rooms;
use spans::Spans;

/// Members that are gone through in every way, however few the nodes: each is a step deeper.
const JOINT_MAX: u32 = 64;

/// The members that must start together, each with its seat, which is taken, and its node.
struct Arranged {
    found: Vec<(Found, u32)>,
    proof: Proof,
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
        let (needed, more) = self.needed(slot, openings);
        if let Some(why) = self.kept_back(slot, openings, &needed) {
            return self.not_whole(slot, why);
        }
        let fragments = self.fragments();
        let spans = self.spans(&fragments, slot);
        let start = self.mark();
        let mut arranged = match self.arrange(slot, &needed, &spans) {
            Ok(arranged) => arranged,
            Err(Unplaced { why, proven }) => {
                self.roll_back(start);
                return if proven { self.not_whole(slot, why) } else { self.gave_up(why) };
            }
        };
        let mut spans = self.spans(&fragments, slot);
        self.seated(&needed, &arranged.found, &mut spans);
        let Grown { short, proven } = self.grow(key, slot, &more, &mut spans, &mut arranged);
        let Arranged { found, proof } = arranged;
        if found.is_empty()
            && let Some(Short { why, parts, .. }) = short
        {
            let why = Arc::new(Why { parts, ..Arc::unwrap_or_clone(why) });
            return if proven { self.not_whole(slot, why) } else { self.gave_up(why) };
        }
        let cost = found.iter().fold(Cost::default(), |sum, (one, _)| sum.and(one.cost));
        let fragmentation = spans.fragmentation(cost.harm.fragmentation);
        let cost = spans.priced(cost);
        let optimal = found.iter().map(|(one, _)| one.proof).fold(proof, Proof::max);
        let seats = found.into_iter().map(|(one, _)| one.seat).collect();
        self.act(Act::Place(key.clone(), seats, cost));
        self.broken_up(key, fragmentation);
        Verdict::Placed { cost, optimal, short }
    }

    /// Why a group is not tried at all, or could not be made whole.
    fn kept_back(
        &mut self,
        slot: u32,
        openings: &[Opening],
        needed: &[Opening],
    ) -> Option<Arc<Why>> {
        self.gated(slot, openings).or_else(|| {
            needed.iter().find_map(|opening| {
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

    /// The members without which the group does not start, and those that it may have beyond.
    fn needed(&self, slot: u32, openings: &[Opening]) -> (Vec<Opening>, Vec<Opening>) {
        let roles = self.state.groups.at(slot).fact.as_ref().map_or(&[][..], |fact| &fact.roles);
        let least = roles.iter().enumerate().map(|(at, role)| {
            role.min.saturating_sub(role.max.saturating_sub(self.state.missing_in_role(slot, at)))
        });
        let least: Vec<u32> = least.collect();
        let is_needed = |opening: &Opening| {
            least.get(usize::from(opening.role)).is_some_and(|least| opening.before < *least)
        };
        openings.iter().cloned().partition(is_needed)
    }

    /// Finds where all of these go, and takes it. Where there is nothing, nothing is taken.
    fn arrange(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &Spans<'_>,
    ) -> Result<Arranged, Unplaced> {
        let nodes = self.ranks.slots().len() as u64;
        let few = u32::try_from(openings.len()).ok().filter(|n| *n <= JOINT_MAX);
        let ways = few.and_then(|n| nodes.checked_pow(n));
        let mut found = None;
        if ways.is_some_and(|ways| ways <= self.effort.ways) {
            let joint = Joint::new(slot, openings, spans.clone(), self.effort.steps);
            let outcome = joint.search(self);
            if !outcome.cut {
                return match outcome.best {
                    Some((_, seats)) => Ok(self.taken(slot, openings, seats, Proof::Proven)),
                    None => {
                        let (near, _) = self.nearest_place(slot, openings, spans);
                        let why = self.whole_does_not_fit(openings, &near, outcome.most);
                        Err(Unplaced { why, proven: true })
                    }
                };
            }
            found = outcome.best;
        }
        if found.is_none()
            && let Some(class) = self.one_class(slot, openings, spans)
        {
            let by_rooms = self.by_rooms(&class, spans);
            return match by_rooms {
                Some(found) => Ok(Arranged { found, proof: Proof::Bounded }),
                None => self.by_the_nearest(slot, openings, spans),
            };
        }
        // What was found before the bound may be dearer than what counting gives; of equals that is
        // kept.
        let counted = self.by_counting(slot, openings, spans);
        match counted.into_iter().chain(found).min_by_key(|(cost, _)| *cost) {
            Some((_, seats)) => Ok(self.taken(slot, openings, seats, Proof::Bounded)),
            None => self.by_the_nearest(slot, openings, spans),
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
