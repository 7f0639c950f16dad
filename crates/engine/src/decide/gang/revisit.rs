//! An arrangement where counting finds none: members one after the other, each on every node and with
//! every set of devices in turn, and what was seated is taken back where it leaves no place for the
//! rest.
//!
//! It asks only whether there is a place, not what it costs. Members that are alike stand in order of
//! their nodes, of nodes and devices that are alike one is tried for all, and what can't hold the
//! rest by counting is not gone into.

use rustc_hash::FxHashSet;

use super::super::search::{Ask, Fit};
use super::super::trial::{Opening, Trial};
use super::alike::{Alike, Holding};
use super::rooms::by_ledger;
use super::spans::{Spans, Width};
use super::together::own_devices;
use crate::cost::Cost;

/// Of the steps, the part that may go into one place that is not the widest.
const SHARE: u64 = 64;

/// Places of one level, the widest aside, that are searched.
const PLACES_MAX: usize = 4;

/// Of the steps of a decision's effort, the part that one search takes at most: its steps are dearer than
/// those of a choice of devices, and a plan may hold many groups.
pub(super) const PART: u64 = 32;

/// The part that all searches for one group take together, whatever choices it has.
pub(super) const PART_OF_ALL: u64 = 16;

/// Members that are searched for: each is a step deeper.
const MEMBERS_MAX: usize = 512;

/// What a search came to.
pub(super) enum Revisited {
    /// Where each opening goes.
    Found(Vec<(u32, Fit)>),
    /// There is no arrangement; so many of the members were seated together.
    None(usize),
    /// The bound ended it.
    Cut(usize),
}

/// Members that are alike to every rule, and ask the same.
struct Class {
    /// Where it begins in the order of the search, and where it ends.
    from: usize,
    to: usize,
    /// Whether how many of them a node takes can be told by counting.
    counted: bool,
    /// What each asks, as of the beginning.
    ask: Ask,
    /// By node slot, no more of them than these fit; 0 where it is not counted.
    room: Vec<u32>,
}

/// A state that was gone into before: members seated, the place of the last, and by node who is there
/// and what is held.
type Gone = (usize, usize, Vec<(u32, Vec<u16>, Holding)>);

struct Revisit<'o, 'f> {
    group: u32,
    /// In the order of the search.
    openings: Vec<&'o Opening>,
    classes: Vec<Class>,
    alike: Alike,
    spans: Spans<'f>,
    /// The nodes of the place, neighbours beside each other.
    nodes: Vec<u32>,
    /// By class, for how many there is room on these nodes.
    left: Vec<u64>,
    /// Members must come in their own order, for pods mean something to each other.
    apart: bool,
    /// Claims are shared, so that what is held does not tell all.
    shared: bool,
    /// Seats, each with the place of its node among the nodes.
    seats: Vec<(usize, Fit)>,
    gone: FxHashSet<Gone>,
    steps: u64,
    cut: bool,
    most: usize,
}

impl Trial<'_> {
    /// Searches for an arrangement of all openings. All of it is given back.
    pub(super) fn revisit(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &Spans<'_>,
    ) -> Revisited {
        let steps = (self.effort.steps / PART).min(self.searching);
        if openings.len() > MEMBERS_MAX || steps == 0 {
            return Revisited::Cut(0);
        }
        let Some((order, classes)) = self.ordered(slot, openings, spans) else {
            return Revisited::None(0);
        };
        let apart = classes.iter().any(|class| !class.ask.is_alone());
        let asks: Vec<(Ask, u32)> = classes
            .iter()
            .map(|class| (class.ask.clone(), (class.to - class.from) as u32))
            .collect();
        let mut search = Revisit {
            group: slot,
            openings: order.iter().map(|at| &openings[*at]).collect(),
            alike: Alike::new(self, spans, &asks, apart),
            classes,
            spans: spans.clone(),
            nodes: Vec::new(),
            left: Vec::new(),
            apart,
            shared: asks.iter().any(|(ask, _)| ask.request.shares_claims()),
            seats: Vec::new(),
            gone: FxHashSet::default(),
            steps,
            cut: false,
            most: 0,
        };
        let found = search.everywhere(self);
        self.searching = self.searching.saturating_sub(steps - search.steps);
        match found {
            Some(seats) => {
                let mut of: Vec<(usize, (u32, Fit))> = order.into_iter().zip(seats).collect();
                of.sort_by_key(|(at, _)| *at);
                Revisited::Found(of.into_iter().map(|(_, seat)| seat).collect())
            }
            None if search.cut => Revisited::Cut(search.most),
            None => Revisited::None(search.most),
        }
    }

    /// The order in which openings are filled, and the classes that they then stand in: who has least to
    /// choose from first. None where one can't be placed at all.
    fn ordered(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &Spans<'_>,
    ) -> Option<(Vec<usize>, Vec<Class>)> {
        let all = self.ranks.slots().to_vec();
        let mut parts: Vec<(u64, Vec<usize>, Class)> = Vec::new();
        let mut from = 0;
        let alike = |one: &Opening, other: &Opening| {
            spans.alike(one, other) && self.is_plain(one) && self.is_plain(other)
        };
        for part in openings.chunk_by(alike).collect::<Vec<_>>() {
            let opening = part.first()?;
            let ask = self.ask_of(slot, opening)?;
            let mut class = Class {
                from: 0,
                to: 0,
                counted: ask.is_alone(),
                ask,
                room: vec![0; self.state.nodes.slots() as usize],
            };
            let mut slack = 0;
            if class.counted {
                let nodes: Vec<u32> =
                    all.iter().copied().filter(|node| spans.allows(opening, *node)).collect();
                let asked = self.class(slot, part)?;
                let rooms = self.rooms(&asked, &nodes);
                for room in rooms {
                    class.room[room.slot as usize] = room.most;
                    slack += u64::from(room.most);
                }
                slack = slack.saturating_sub(part.len() as u64);
            }
            parts.push((slack, (from..from + part.len()).collect(), class));
            from += part.len();
        }
        if parts.iter().all(|(.., class)| class.counted) {
            parts.sort_by_key(|(slack, ..)| *slack);
        }
        let (mut order, mut classes) = (Vec::new(), Vec::new());
        for (_, of, mut class) in parts {
            class.from = order.len();
            order.extend(of);
            class.to = order.len();
            classes.push(class);
        }
        Some((order, classes))
    }
}

impl Revisit<'_, '_> {
    /// Level by level, narrow places first for a little while; and at last wherever it may be.
    fn everywhere(&mut self, trial: &mut Trial<'_>) -> Option<Vec<(u32, Fit)>> {
        let all = trial.ranks.slots().to_vec();
        for width in self.spans.levels() {
            let mut places = self.spans.places(width, &all);
            let last = matches!(width, Width::Anywhere);
            if !last {
                places.sort_by_cached_key(|place| self.room(place).map_or(u64::MAX, |r| r.1));
                places.retain(|place| self.room(place).is_some_and(|(holds, _)| holds));
                places.truncate(PLACES_MAX);
            }
            for place in places {
                let steps = self.steps;
                if !last {
                    self.steps = steps.min(trial.effort.steps / PART / SHARE);
                }
                let budget = self.steps;
                self.begin(trial, place);
                let found = self.holds() && self.seat(trial);
                if !last {
                    self.steps = steps.saturating_sub(budget - self.steps);
                    self.cut = false;
                }
                if found {
                    let seats = std::mem::take(&mut self.seats);
                    return Some(seats.into_iter().map(|(at, f)| (self.nodes[at], f)).collect());
                }
            }
        }
        None
    }

    /// Whether a place has room for each class by itself, and how much in all.
    fn room(&self, place: &[u32]) -> Option<(bool, u64)> {
        let mut sum = 0;
        let mut holds = true;
        for class in self.classes.iter().filter(|class| class.counted) {
            let room: u64 = place.iter().map(|slot| u64::from(class.room[*slot as usize])).sum();
            holds &= room >= (class.to - class.from) as u64;
            sum += room;
        }
        Some((holds, sum))
    }

    fn begin(&mut self, trial: &Trial<'_>, mut place: Vec<u32>) {
        place.sort_by_cached_key(|slot| self.spans.path(*slot, trial.state.nodes.key(*slot)));
        let room = |class: &Class| place.iter().map(|s| u64::from(class.room[*s as usize])).sum();
        self.left = self.classes.iter().map(room).collect();
        self.nodes = place;
        self.gone.clear();
        self.seats.clear();
    }

    /// Whether every class that is not seated yet has room left, as far as counting tells.
    fn holds(&self) -> bool {
        let at = self.seats.len();
        self.classes.iter().zip(&self.left).all(|(class, left)| {
            let rest = class.to.saturating_sub(at.max(class.from));
            !class.counted || *left >= rest as u64
        })
    }

    fn class_of(&self, at: usize) -> usize {
        self.classes.partition_point(|class| class.to <= at)
    }

    /// Seats all that are not seated yet; the seats stay noted and are given back.
    fn seat(&mut self, trial: &mut Trial<'_>) -> bool {
        let at = self.seats.len();
        self.most = self.most.max(at);
        let Some(opening) = self.openings.get(at).copied() else { return true };
        let class = self.class_of(at);
        // Members that are alike stand in order of their nodes.
        let goes_on = at > self.classes[class].from;
        let first = match self.seats.last() {
            Some((place, _)) if goes_on => *place,
            Some(_) | None => 0,
        };
        if !self.apart && !self.shared && !self.is_new(trial, first) {
            return false;
        }
        let ask = match self.shared || self.apart {
            true => trial.ask_of(self.group, opening),
            false => Some(self.classes[class].ask.clone()),
        };
        let Some(ask) = ask else { return false };
        let mut tried: FxHashSet<(u32, Vec<u16>, Holding)> = FxHashSet::default();
        for place in first..self.nodes.len() {
            let slot = self.nodes[place];
            if self.classes[class].counted && self.classes[class].room[slot as usize] == 0
                || !self.spans.allows(opening, slot)
            {
                continue;
            }
            let Some(steps) = self.steps.checked_sub(1) else {
                self.cut = true;
                return false;
            };
            self.steps = steps;
            let who = (self.alike.nature(slot), self.who(slot), self.alike.holding(trial, slot));
            if !tried.insert(who) {
                continue;
            }
            if self.seat_at(trial, (at, class), place, &ask) {
                return true;
            }
        }
        false
    }

    /// Seats the next on a node in every way, and then all others.
    fn seat_at(
        &mut self,
        trial: &mut Trial<'_>,
        (at, class): (usize, usize),
        place: usize,
        ask: &Ask,
    ) -> bool {
        let (slot, opening) = (self.nodes[place], self.openings[at]);
        let is_last = at + 1 == self.openings.len();
        let any = is_last || ask.wanted.claims.is_empty() && ask.request.extended.is_empty();
        let (fits, more) = trial.searched(|search, state| match any {
            true => (search.node(state, ask, slot).into_iter().collect(), false),
            false => search.fits(state, ask, slot),
        });
        self.cut |= more;
        self.steps = self.steps.saturating_sub(fits.len() as u64);
        for fit in self.alike.thinned(slot, fits) {
            let start = trial.mark();
            // What it costs is not asked here.
            self.spans.seat(opening, slot, &Cost::default(), true);
            trial.take(self.group, opening, slot, fit.clone());
            self.seats.push((place, fit));
            let before = self.recount(trial, class, slot);
            let found = self.holds() && self.seat(trial);
            trial.roll_back(start);
            self.spans.seat(opening, slot, &Cost::default(), false);
            if found {
                return true;
            }
            self.seats.pop();
            for (class, count) in before {
                self.set_room(class, slot, count);
            }
        }
        false
    }

    /// Counts anew for how many of each class that is still to come there is room on a node. Returns
    /// what was counted before.
    fn recount(&mut self, trial: &mut Trial<'_>, from: usize, slot: u32) -> Vec<(usize, u32)> {
        let mut before = Vec::new();
        for at in from..self.classes.len() {
            let class = &self.classes[at];
            let known = class.room[slot as usize];
            // What a claim that is shared takes was taken from the first alone.
            if !class.counted || known == 0 || class.ask.request.shares_claims() {
                continue;
            }
            self.steps = self.steps.saturating_sub(1);
            let fit = trial.searched(|search, state| search.node(state, &class.ask, slot));
            let now = fit.map_or(0, |fit| {
                let own = own_devices(&class.ask, &fit);
                let by_devices = fit
                    .offer
                    .as_ref()
                    .zip(own)
                    .map_or(known, |(offer, own)| offer.free_left.saturating_add(own) / own);
                by_ledger(trial.state, &class.ask, slot, known).min(by_devices)
            });
            before.push((at, known));
            self.set_room(at, slot, now);
        }
        before
    }

    fn set_room(&mut self, class: usize, slot: u32, count: u32) {
        let room = &mut self.classes[class].room[slot as usize];
        self.left[class] = (self.left[class] + u64::from(count)).saturating_sub(u64::from(*room));
        *room = count;
    }

    /// How many of each class sit on a node.
    fn who(&self, slot: u32) -> Vec<u16> {
        let mut who = Vec::new();
        for (at, (place, _)) in self.seats.iter().enumerate() {
            if self.nodes[*place] == slot {
                let class = self.class_of(at);
                who.resize(who.len().max(class + 1), 0);
                who[class] += 1;
            }
        }
        who
    }

    /// Whether what is seated was not gone into before in another order.
    fn is_new(&mut self, trial: &mut Trial<'_>, first: usize) -> bool {
        let mut places: Vec<usize> = self.seats.iter().map(|(place, _)| *place).collect();
        places.sort_unstable();
        places.dedup();
        let mut there = Vec::with_capacity(places.len());
        for place in places {
            let slot = self.nodes[place];
            there.push((slot, self.who(slot), self.alike.holding(trial, slot)));
        }
        self.gone.insert((self.seats.len(), first, there))
    }
}
