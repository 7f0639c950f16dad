//! Why a group does not fit whole: the place that comes nearest, how many fit there, and what stands in
//! the way of the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::search::{Ask, Fit};
use super::super::trial::{Emptied, Opening, Trial};
use super::choose::Choices;
use super::counted::{allowed, tightest_of};
use super::place::classes;
use super::revisit::PART_OF_ALL;
use super::spans::{Named, Spans};
use super::start::ways_with_hope;
use crate::check::fact::label;
use crate::decide::Caches;
use crate::decision::{Example, Facts, GroupFacts, Segment, Tally, Verdict, Why};
use crate::facts::Phase;
use crate::name::Name;
use crate::reason::Reason;
use crate::state::State;

/// Places that are looked at one by one for how many members fit.
const PLACES_MAX: usize = 16;

/// By opening the node and what it gets there; none where it finds no seat.
type Seats = Vec<Option<(u32, Fit)>>;

/// Nodes that a group may be on.
struct Place {
    name: Named,
    nodes: Arc<Vec<u32>>,
    /// Roles whose members must be near each other, with those of the nodes that are in one domain.
    near: Option<(Arc<Vec<u16>>, Vec<u32>)>,
}

impl Place {
    /// The nodes for members of a role.
    fn of(&self, role: u16) -> &[u32] {
        match &self.near {
            Some((roles, nodes)) if roles.contains(&role) => nodes.as_slice(),
            Some(_) | None => self.nodes.as_slice(),
        }
    }
}

/// A place, with the members that fit there and what the first of the others meets.
pub(super) struct Nearest {
    place: Named,
    /// There is no place that it may be in.
    nowhere: bool,
    fit: u32,
    /// More may fit there in another arrangement.
    at_least: bool,
    /// Members that run already.
    running: u32,
    /// Role of the first that finds no seat.
    role: u16,
    /// The segment that it is of.
    segment: Option<Segment>,
    why: Option<Arc<Why>>,
}

impl Trial<'_> {
    /// The place in which most members fit, with the seats that they get there.
    pub(super) fn nearest_place(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &Spans<'_>,
    ) -> (Nearest, Seats) {
        let start = self.mark();
        let at_least = !self.fits_are_counted(slot, openings, spans);
        let mut best: Option<(Nearest, Seats)> = None;
        for place in self.roomiest(slot, openings, spans) {
            let seats = self.as_many_as_fit(slot, openings, &mut spans.clone(), &place);
            let fit = seats.iter().flatten().count() as u32;
            if best.as_ref().is_none_or(|(best, _)| fit > best.fit) {
                let next = seats.iter().position(Option::is_none).unwrap_or_default();
                let next = openings.get(next).cloned();
                let why = next.as_ref().map(|next| self.stands_in_the_way(slot, next));
                let role = next.as_ref().map_or(0, |next| next.role);
                let segment = next.as_ref().and_then(|next| self.segment(slot, next, spans));
                let running = spans.seats();
                let (place, nowhere) = (place.name, false);
                let near = Nearest { place, nowhere, fit, at_least, running, role, segment, why };
                best = Some((near, seats));
            }
            self.roll_back(start);
        }
        // Members that run may leave no place as well: where they are apart, or where no level is.
        let alone = spans.seats() == 0;
        let nowhere = best.is_none() && alone && !self.ranks.slots().is_empty();
        best.unwrap_or_else(|| {
            let why = openings.first().map(|next| self.stands_in_the_way(slot, next));
            let role = openings.first().map_or(0, |next| next.role);
            let (running, segment) = (spans.seats(), None);
            let (place, fit, at_least) = (None, 0, false);
            let near = Nearest { place, nowhere, fit, at_least, running, role, segment, why };
            (near, vec![None; openings.len()])
        })
    }

    /// The account for a group whose members don't fit together; `most` of its members were seen to,
    /// wherever.
    pub(super) fn whole_does_not_fit(
        &self,
        openings: &[Opening],
        near: &Nearest,
        most: usize,
    ) -> Arc<Why> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let of = near.running + u32::try_from(openings.len()).unwrap_or(u32::MAX);
        match &near.why {
            // Where none fits anywhere, or its object stands in the way, that says it all.
            Some(why) if is_of_object(why) => of_role(why, near.role),
            Some(why)
                if near.fit.max(most) == 0 && near.running == 0 && self.is_everywhere(why) =>
            {
                of_role(why, near.role)
            }
            why => {
                // More may fit elsewhere than counting sees here: that place has no name.
                let place = near.place.clone().filter(|_| near.fit >= most);
                let (fit, role) = (near.running + near.fit.max(most), near.role);
                let (running, nowhere) = (near.running, near.nowhere && most == 0);
                let segment = near.segment.clone().filter(|_| near.fit >= most);
                let facts = GroupFacts {
                    fit,
                    at_least: near.at_least,
                    running,
                    of,
                    place,
                    nowhere,
                    role,
                    segment,
                    ..GroupFacts::default()
                };
                Arc::new(short(facts, why.as_deref()))
            }
        }
    }

    /// The verdict on a group of which no arrangement was found, though there may be one.
    pub(super) fn gave_up(&self, why: Arc<Why>) -> Verdict {
        Verdict::GaveUp(why, self.effort)
    }

    /// The verdict on a group of which nothing is placed: whether it waits, or would not fit the
    /// emptied cluster either.
    pub(super) fn not_whole(&mut self, slot: u32, why: Arc<Why>) -> Verdict {
        let refused = match why.never {
            Some(_) => None,
            None => self.never_whole(slot),
        };
        self.not_placed(match refused {
            None => why,
            never => Arc::new(Arc::unwrap_or_clone(why).refused(never)),
        })
    }

    /// The account for a member beyond those that must start together. Where it is a rule of the
    /// group that keeps it out, the group's says so.
    pub(super) fn no_more(
        &mut self,
        slot: u32,
        ask: &Ask,
        opening: &Opening,
        spans: &Spans<'_>,
    ) -> Arc<Why> {
        let why = self.not_found(ask, opening);
        if is_of_object(&why) || self.is_everywhere(&why) {
            return why;
        }
        let roles = self.state.groups.at(slot).fact.as_ref().map_or(&[][..], |fact| &fact.roles);
        let all = roles.iter().map(|role| role.max).fold(0, u32::saturating_add);
        // Those that are being deleted do not come back.
        let members = self.state.groups.at(slot).members.iter();
        let leave = |member: &&u32| {
            let fact = self.state.members.at(**member).fact.as_ref();
            fact.is_some_and(|fact| matches!(fact.phase, Phase::Terminating(..)))
        };
        let going = u32::try_from(members.filter(leave).count()).unwrap_or(u32::MAX);
        let of = all.saturating_sub(going);
        let place =
            spans.widest(self.ranks.slots()).into_iter().next().and_then(|(place, _)| place);
        let segment = self.segment(slot, opening, spans);
        let (fit, role) = (spans.seats(), opening.role);
        let facts =
            GroupFacts { fit, of, place, role, segment, beyond: true, ..GroupFacts::default() };
        Arc::new(short(facts, Some(&why)))
    }

    /// The segment that an opening is of.
    fn segment(&self, slot: u32, opening: &Opening, spans: &Spans<'_>) -> Option<Segment> {
        let fact = self.state.groups.at(slot).fact.as_ref()?;
        let last = fact.roles.get(usize::from(opening.role))?.max.saturating_sub(1);
        let (size, topology, level) = spans.segment_of(opening)?;
        let first = opening.index / size * size;
        let last = first.saturating_add(size - 1).min(last.max(opening.index));
        Some(Segment { first, last, topology, level })
    }

    /// Whether an account speaks of every node.
    fn is_everywhere(&self, why: &Why) -> bool {
        let told: usize = why.tally.iter().map(|one| one.nodes as usize).sum();
        told == self.ranks.slots().len()
    }

    /// What stays in a group's way in the healed and emptied cluster; nothing if it would fit there
    /// whole. What depends on pods elsewhere, on volumes or on pools that are being republished is not
    /// held against it; but nobody else's pods are there, also where its pods mean them as they mean
    /// themselves.
    fn never_whole(&mut self, slot: u32) -> Option<Arc<Tally>> {
        let known = match std::mem::replace(&mut self.emptied, Emptied::Here) {
            Emptied::Here => return None,
            Emptied::Unknown => Box::new((self.state.emptied(), Caches::default())),
            Emptied::Built(known) => known,
        };
        let (mut state, mut caches) = *known;
        let told = self.never_in(&mut state, &mut caches, slot);
        self.emptied = Emptied::Built(Box::new((state, caches)));
        told
    }

    fn never_in(
        &mut self,
        state: &mut State,
        caches: &mut Caches,
        slot: u32,
    ) -> Option<Arc<Tally>> {
        let requests = &self.state.groups.at(slot).requests;
        let mut asked = requests.iter().map(|request| self.state.request(*request));
        if asked.any(|request| !request.volumes.is_empty()) {
            return None;
        }
        let mut asked = requests.iter().map(|request| self.state.request(*request));
        let by_number = asked.any(|request| request.near.is_some());
        let key = self.state.groups.key(slot).clone();
        let (there, gone) = self.state.of_group(slot);
        state.apply(there);
        let told = state.groups.slot(&key).and_then(|slot| {
            let mut trial = Trial::new(state, Some(caches), self.policy, self.now, self.effort);
            trial.emptied = Emptied::Here;
            trial.searching = trial.effort.steps / PART_OF_ALL;
            let told = trial.never_here(slot, by_number);
            self.spent += trial.spent;
            told
        });
        state.apply(gone);
        told
    }

    /// Why a group does not fit whole, in the emptied cluster; `by_number` where only counting may tell, for
    /// pods elsewhere mean something to it.
    fn never_here(&mut self, slot: u32, by_number: bool) -> Option<Arc<Tally>> {
        let openings = self.openings(slot);
        let choices = self.choices(slot, &openings);
        let fragments = self.fragments();
        if by_number && !self.is_counted_out(slot, &openings, &choices) {
            return None;
        }
        // What was not found may be there.
        let why = match self.begun(slot, &openings, &choices, &fragments) {
            Err(none) if none.proven => none.why,
            Ok(begun) if begun.is_none() => begun.told.first()?,
            Ok(_) | Err(_) => return None,
        };
        let requests = &self.state.groups.at(slot).requests;
        let asks = requests.iter().map(|request| self.state.request(*request));
        let of_devices = asks.into_iter().any(|r| !r.claims.is_empty() || !r.extended.is_empty());
        let to_come = of_devices
            && self.ranks.slots().iter().any(|node| {
                let devices = self.state.nodes.at(*node).devices.as_deref();
                devices.is_some_and(|devices| devices.shape().is_incomplete())
            });
        let first = why.tally.first().filter(|_| !to_come)?;
        Some(Arc::new(first.clone()))
    }

    /// Whether counting shows that a group starts with none of the parts that it may start with.
    fn is_counted_out(&mut self, slot: u32, openings: &[Opening], choices: &Choices) -> bool {
        let fragments = self.fragments();
        let spans = self.spans(&fragments, slot);
        let sums = self.sums(slot, openings, choices.must().len(), &spans);
        if !sums.may_start(choices) {
            return true;
        }
        let ways = ways_with_hope(choices, &sums);
        !ways.cut && ways.all.iter().all(|way| self.is_out((slot, openings, &spans), &way.seats))
    }

    /// The places that the whole group may be in, each with what names it; of many those with most
    /// room for it by counting.
    fn roomiest(&mut self, slot: u32, openings: &[Opening], spans: &Spans<'_>) -> Vec<Place> {
        let places = spans.widest(self.ranks.slots());
        let mut places = self.apart_by_affinity(slot, openings, places);
        if places.len() <= PLACES_MAX {
            return places;
        }
        let roles = classes(openings, |one, other| one.role == other.role);
        let counts = self.counts(slot, &roles, spans).unwrap_or_default();
        let room = |place: &Place| -> u64 {
            let of_role = roles.iter().zip(&counts).map(|(role, counts)| {
                let nodes = role.first().map_or(&[][..], |first| place.of(first.role));
                let room: u64 = nodes.iter().map(|node| u64::from(counts[*node as usize])).sum();
                room.min(role.len() as u64)
            });
            of_role.sum()
        };
        // Stable: of equal ones the first by name.
        places.sort_by_cached_key(|place| std::cmp::Reverse(room(place)));
        places.truncate(PLACES_MAX);
        places
    }

    /// The places, each cut into the domains in one of which those members must be that must be near each
    /// other: these have no name.
    fn apart_by_affinity(
        &self,
        slot: u32,
        openings: &[Opening],
        places: Vec<(Named, Vec<u32>)>,
    ) -> Vec<Place> {
        let near = self.near_each_other(slot, openings);
        let mut cut: Vec<Place> = Vec::new();
        for (name, nodes) in places {
            let nodes = Arc::new(nodes);
            let Some((key, roles)) = &near else {
                cut.push(Place { name, nodes, near: None });
                continue;
            };
            let mut domains: BTreeMap<Option<&Name>, Vec<u32>> = BTreeMap::new();
            for node in nodes.iter() {
                let fact = self.state.nodes.at(*node).fact.as_ref();
                domains
                    .entry(fact.and_then(|fact| label(&fact.labels, key)))
                    .or_default()
                    .push(*node);
            }
            cut.extend(domains.into_values().map(|domain| Place {
                name: name.clone(),
                nodes: Arc::clone(&nodes),
                near: Some((Arc::clone(roles), domain)),
            }));
        }
        cut
    }

    /// The label by whose domains members must be near each other, where no pod is anywhere yet that they
    /// must be near, and the roles of those members.
    fn near_each_other(&self, slot: u32, openings: &[Opening]) -> Option<(Name, Arc<Vec<u16>>)> {
        let requests = &self.state.groups.at(slot).requests;
        let mut roles: Vec<u16> = openings.iter().map(|opening| opening.role).collect();
        roles.dedup();
        let (key, own) = roles.iter().find_map(|role| {
            let request = self.state.request(requests[usize::from(*role)]);
            let affinity = request.near.as_ref()?.affinity.as_ref()?;
            let none_yet = self.state.around.meant(affinity.pods).next().is_none();
            let own = none_yet && request.matched.contains(&affinity.pods);
            own.then_some((affinity.keys.first()?.clone(), affinity.clone()))
        })?;
        roles.retain(|role| {
            let request = self.state.request(requests[usize::from(*role)]);
            request.near.as_ref().and_then(|near| near.affinity.as_ref()) == Some(&own)
        });
        Some((key, Arc::new(roles)))
    }

    /// Seats members in this place, those that are alike as far as it goes: the seat of each.
    fn as_many_as_fit(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &mut Spans<'_>,
        place: &Place,
    ) -> Seats {
        let mut seats = Vec::with_capacity(openings.len());
        let alike = spans.clone();
        for part in classes(openings, |one, other| alike.alike(one, other)) {
            let nodes = part.first().map_or(&[][..], |first| place.of(first.role));
            seats.extend(self.seat_some(slot, part, spans, nodes));
        }
        seats
    }

    /// Whether all of these are alike and counted, so that of no place more is to be had than is found.
    fn fits_are_counted(&mut self, slot: u32, openings: &[Opening], spans: &Spans<'_>) -> bool {
        let classes = classes(openings, |one, other| spans.alike(one, other));
        let [only] = classes.as_slice() else { return false };
        let apart = only.iter().any(|opening| self.stands_apart(opening));
        !apart && self.class(slot, only).is_some_and(|class| self.is_countable(&class))
    }

    /// Seats as many of these members, which are alike, as find a seat. Where one finds none, only those
    /// still may that stand apart.
    fn seat_some(
        &mut self,
        slot: u32,
        part: &[Opening],
        spans: &mut Spans<'_>,
        nodes: &[u32],
    ) -> Seats {
        let mut seats = Vec::with_capacity(part.len());
        if let Some(class) = self.class(slot, part) {
            let apart = part.iter().any(|opening| self.stands_apart(opening));
            if apart || !self.is_countable(&class) {
                let mut full = false;
                for opening in part {
                    let apart = self.stands_apart(opening);
                    let seat = match full && !apart {
                        true => None,
                        false => self.next_seat(slot, opening, spans, nodes),
                    };
                    full |= seat.is_none() && !apart;
                    seats.push(seat);
                }
                return seats;
            }
            let opening = class.opening();
            let rooms = self.rooms(&class, &allowed(spans, opening, nodes));
            let pieces = spans.pieces(opening, rooms);
            let piece = tightest_of(&pieces, part.len());
            let rooms = piece.into_iter().flatten();
            let places = rooms.flat_map(|room| (0..room.count).map(|_| room.slot));
            for (opening, node) in part.iter().zip(places) {
                let Some(fit) = self.fit_there(slot, opening, node) else { break };
                self.take(slot, opening, node, fit.clone());
                spans.seat(opening, node, &fit.cost, true);
                seats.push(Some((node, fit)));
            }
        }
        seats.resize_with(part.len(), || None);
        seats
    }

    fn stands_in_the_way(&mut self, slot: u32, opening: &Opening) -> Arc<Why> {
        let request = self.state.groups.at(slot).requests[usize::from(opening.role)];
        match self.resolve(request, opening) {
            Ok(resolved) => {
                let ask = self.ask(slot, opening, resolved);
                self.not_found(&ask, opening)
            }
            Err(stopped) => self.object(request, opening, *stopped),
        }
    }
}

/// The same account, as one of a member of this role.
fn of_role(why: &Why, role: u16) -> Arc<Why> {
    Arc::new(Why { role: Some(role), ..why.clone() })
}

/// Whether an account stands before any node was looked at.
fn is_of_object(why: &Why) -> bool {
    let of_places = [Reason::NoNodes, Reason::GroupShort];
    why.tally.iter().all(|one| one.nodes == 0 && !of_places.contains(&one.reason))
}

/// An account of a group, before what its next member meets on the nodes.
fn short(facts: GroupFacts, next: Option<&Why>) -> Why {
    let example = Example { facts: Facts::Group(Box::new(facts)), ..Example::default() };
    let mut tally = vec![Tally { reason: Reason::GroupShort, nodes: 0, devices: 0, example }];
    let met = next.iter().flat_map(|why| &why.tally);
    tally.extend(met.filter(|one| one.reason != Reason::NoNodes).cloned());
    Why {
        first: Reason::GroupShort,
        tally,
        nearest: next.and_then(|why| why.nearest.clone()),
        never: next.and_then(|why| why.never.clone()),
        role: None,
        parts: Box::default(),
    }
}
