//! With whom a group starts, where not all of it must: of all ways that find a place the one that leaves out
//! the fewest parts, then the fewest members, and then the cheapest.
//!
//! All is tried first, for most often there is room. Where there is none, each way that is just enough is
//! tried until one finds a place; if one does, all ways are gone through from the largest down, where they
//! are few. Else what fits in the roomiest place is tried, and what is just enough; the rest is added by
//! [`grow`](super::grow).

use std::cell::Cell;
use std::sync::Arc;

use super::super::trial::{Opening, Trial};
use super::choose::{Choices, Guide, Way, Ways};
use super::fragments::Fragments;
use super::revisit::PART;
use super::spans::Spans;
use super::sums::Sums;
use super::{Begun, Standing, Unplaced, is_among};
use crate::decision::{Example, Facts, Proof, Why};
use crate::name::Name;
use crate::part::AnyOf;
use crate::reason::Reason;

/// Ways that are just enough which are tried beside what fits in the roomiest place.
const BESIDE_MAX: usize = 16;

/// Ways that are asked of which comes nearest.
const ACCOUNTS_MAX: usize = 16;

/// Of the steps of a decision's effort, the part that goes into trying ways.
const SHARE: u64 = 8;

/// And the part that goes into those that are tried roughly, and again into parts that are added one by one.
const ROUGHLY: u64 = 16;

/// Nodes that counting looks at in a step: it only sums them up.
const COUNTED: u64 = 8;

/// Domains whose sums are compared while ways are written down.
const DOMAINS_MAX: u64 = 4_000_000;

/// Which group it is about.
#[derive(Clone, Copy)]
struct Asked<'a, 'f> {
    slot: u32,
    openings: &'a [Opening],
    choices: &'a Choices,
    fragments: &'f Fragments,
    sums: &'a Sums,
}

/// What came of the ways that were tried.
struct Tries<'f> {
    /// Steps that may be spent.
    left: u64,
    /// What has a place has one with less: with no more of another role does a member find a place that it
    /// would not find by itself.
    any_less: bool,
    /// Ways that have no place, by how many of each role.
    dead: Vec<Vec<u32>>,
    /// Accounts of ways that have no place or none that was found, each with the members that it lacked.
    told: Vec<(Way, u32, Arc<Why>)>,
    best: Option<(Standing, Way, Begun<'f>)>,
    /// Each of those that found a place is the cheapest of its way.
    exact: bool,
}

impl<'f> Tries<'f> {
    fn new(left: u64, any_less: bool) -> Self {
        Self { left, any_less, dead: Vec::new(), told: Vec::new(), best: None, exact: true }
    }

    /// Whether it is known that so many of each role find no place.
    fn is_dead(&self, sums: &Sums, seats: &[u32]) -> bool {
        let beyond = |dead: &[u32]| self.any_less && sums.ask_no_less(seats, dead);
        !sums.hold(seats) || self.dead.iter().any(|dead| dead == seats || beyond(dead))
    }

    /// Whether it is known of all ways that they find no place, going by those that are just enough.
    fn is_none(&self, asked: Asked<'_, '_>, least: &Ways) -> bool {
        let sums = asked.sums;
        let is_dead = |way: &Way| self.is_dead(sums, &way.seats);
        // Of members on one ladder those that ask least stand for all.
        let first = || {
            let any = asked.choices.any_of_all();
            let waits = |role: &u16| asked.openings.iter().any(|one| one.role == *role);
            let of = |any: &AnyOf| any.roles.iter().copied().filter(waits).collect::<Vec<u16>>();
            any.is_some_and(|any| sums.are_one_ladder(&of(any)))
                && least.all.first().is_some_and(is_dead)
        };
        self.any_less && (!least.cut && least.all.iter().all(is_dead) || first())
    }

    fn tell(&mut self, way: &Way, why: Arc<Why>) {
        let lacks = why.group().map_or(u32::MAX, |facts| facts.of.saturating_sub(facts.fit));
        self.told.push((way.clone(), lacks, why));
    }

    fn keep(&mut self, way: &Way, begun: Begun<'f>) {
        self.exact &= begun.arranged.proof() == Proof::Proven && begun.told.is_proven();
        let standing = begun.standing();
        if self.best.as_ref().is_none_or(|(least, ..)| standing < *least) {
            self.best = Some((standing, way.clone(), begun));
        }
    }

    /// How many parts and members the best of them leaves out.
    fn level(&self) -> Option<(usize, u32)> {
        self.best.as_ref().map(|((parts, members, _), ..)| (*parts, *members))
    }
}

impl Trial<'_> {
    /// Takes the best way to start a group. Where there is none, nothing is taken.
    pub(super) fn begun<'f>(
        &mut self,
        slot: u32,
        openings: &[Opening],
        choices: &Choices,
        fragments: &'f Fragments,
    ) -> Result<Begun<'f>, Unplaced> {
        if let Some(only) = choices.only() {
            return self.begun_with(slot, openings, (choices, &only), fragments);
        }
        let spans = self.spans(fragments, slot);
        let any_less = !self.turns(slot, openings).matters;
        let mut tries = Tries::new(self.effort.steps / SHARE, any_less);
        let all = choices.everything();
        if let Some(all) = &all
            && !self.is_out((slot, openings, &spans), &all.seats)
        {
            let before = self.spent;
            match self.begun_with(slot, openings, (choices, all), fragments) {
                Ok(begun) => return Ok(begun),
                Err(none) if none.proven => tries.dead.push(all.seats.clone()),
                Err(_) => {}
            }
            tries.left = tries.left.saturating_sub(self.spent.saturating_sub(before));
        }
        let sums = self.sums(slot, openings, choices.must().len(), &spans);
        let asked = Asked { slot, openings, choices, fragments, sums: &sums };
        if !sums.may_start(choices) {
            return Err(Unplaced { why: self.account(asked, tries), proven: true });
        }
        let least = ways_with_hope(choices, &sums);
        let first = least.all.iter().find(|way| self.starts(asked, way, &mut tries));
        if first.is_none() && tries.is_none(asked, &least) {
            return Err(Unplaced { why: self.account(asked, tries), proven: true });
        }
        // Where pods mean something to those of other roles, more of these may find a place where fewer do not.
        let ways = choices.all().filter(|_| first.is_some() || !any_less);
        let proven = ways.is_some_and(|ways| self.all_of(asked, ways, &mut tries));
        if tries.best.is_none() && !proven {
            self.roughly(asked, (all.as_ref(), &least, first), &mut tries);
        }
        self.outcome(asked, tries, proven)
    }

    /// Goes through all ways, those that leave out least first. False where one was not gone through, or found
    /// no place that may have one.
    fn all_of<'f>(&mut self, asked: Asked<'_, 'f>, ways: Vec<Way>, tries: &mut Tries<'f>) -> bool {
        let mut proven = true;
        for way in ways {
            if tries.level().is_some_and(|best| best < asked.choices.left_out(&way)) {
                break;
            }
            match self.tried(asked, &way, tries) {
                Some(begun) => tries.keep(&way, begun),
                None => proven &= tries.is_dead(asked.sums, &way.seats),
            }
        }
        proven
    }

    /// What the tries came to.
    fn outcome<'f>(
        &mut self,
        asked: Asked<'_, 'f>,
        tries: Tries<'f>,
        proven: bool,
    ) -> Result<Begun<'f>, Unplaced> {
        let exact = tries.exact;
        let Some((_, _, mut begun)) = tries.best else {
            return Err(Unplaced { why: self.account(asked, tries), proven });
        };
        if !proven {
            begun.told.doubt();
        }
        if !(proven && exact) {
            begun.arranged.proof = begun.arranged.proof.max(Proof::Bounded);
        }
        Ok(self.take_begun(asked.slot, begun))
    }

    /// Where ways are too many to go through: the one that is known to start, what fits in the roomiest place
    /// beside it, and others that are just enough; then with more and more, as long as that finds a place.
    fn roughly<'f>(
        &mut self,
        asked: Asked<'_, 'f>,
        (all, least, first): (Option<&Way>, &Ways, Option<&Way>),
        tries: &mut Tries<'f>,
    ) {
        tries.left = self.effort.steps / ROUGHLY;
        if let Some(first) = first {
            self.kept(asked, first, tries);
        }
        let base = first.or(least.all.first());
        let fullest = all.and_then(|all| self.fullest(asked, all, base));
        if let Some(way) = fullest
            && let Some(begun) = self.tried(asked, &way, tries)
        {
            tries.keep(&way, begun);
            if asked.choices.is_chain() {
                return;
            }
        }
        if tries.best.is_none() {
            let hopeful = |way: &&Way| !tries.is_dead(asked.sums, &way.seats);
            let beside: Vec<&Way> = least.all.iter().filter(hopeful).take(BESIDE_MAX).collect();
            for way in beside {
                if let Some(begun) = self.tried(asked, way, tries) {
                    tries.keep(way, begun);
                }
            }
        }
        if tries.best.is_none()
            && let Some(way) = self.gathered(asked)
        {
            self.kept(asked, &way, tries);
        }
        self.with_more(asked, tries);
    }

    /// Starts in ways that leave out less and less, as long as that finds a place.
    fn with_more<'f>(&mut self, asked: Asked<'_, 'f>, tries: &mut Tries<'f>) {
        while tries.left > 0
            && let Some((_, best, begun)) = &tries.best
            && let Some(more) = asked.choices.beyond(&begun.has(best))
            && asked.sums.may_start(&more)
        {
            let before = tries.level();
            for way in ways_with_hope(&more, asked.sums).all.iter().take(BESIDE_MAX) {
                if let Some(begun) = self.tried(asked, way, tries) {
                    tries.keep(way, begun);
                    break;
                }
            }
            if tries.level() == before {
                break;
            }
        }
    }

    /// Starts in this way, of which it is known that it finds a place, and keeps that.
    fn kept<'f>(&mut self, asked: Asked<'_, 'f>, way: &Way, tries: &mut Tries<'f>) {
        let Asked { slot, openings, choices, fragments, .. } = asked;
        let start = self.mark();
        if let Ok(begun) = self.begun_with(slot, openings, (choices, way), fragments) {
            tries.keep(way, begun);
        }
        self.roll_back(start);
    }

    /// Starts in this way, and gives all of it back. Where it finds no place, that is noted.
    fn tried<'f>(
        &mut self,
        asked: Asked<'_, 'f>,
        way: &Way,
        tries: &mut Tries<'f>,
    ) -> Option<Begun<'f>> {
        let Asked { slot, openings, choices, fragments, .. } = asked;
        if tries.left == 0 || tries.is_dead(asked.sums, &way.seats) {
            return None;
        }
        self.noted(asked, (way, false), tries, |trial| {
            trial.begun_with(slot, openings, (choices, way), fragments)
        })
    }

    /// Whether who starts in this way finds a place, whoever comes beyond; as far as that is not known.
    fn starts(&mut self, asked: Asked<'_, '_>, way: &Way, tries: &mut Tries<'_>) -> bool {
        tries.left > 0
            && !tries.is_dead(asked.sums, &way.seats)
            && self.is_arranged(asked, way, tries)
    }

    /// The same, and why not is told.
    fn is_arranged(&mut self, asked: Asked<'_, '_>, way: &Way, tries: &mut Tries<'_>) -> bool {
        let arranged = self.noted(asked, (way, true), tries, |trial| {
            let (mut needed, _) = trial.needed(asked.openings, &way.seats);
            let spans = trial.spans(asked.fragments, asked.slot);
            trial.arrange(asked.slot, &mut needed, &spans)
        });
        arranged.is_some()
    }

    /// What is found for this way, which is given back. Where it is nothing, that is noted; `tell`: with its
    /// account.
    fn noted<T>(
        &mut self,
        asked: Asked<'_, '_>,
        (way, tell): (&Way, bool),
        tries: &mut Tries<'_>,
        find: impl FnOnce(&mut Self) -> Result<T, Unplaced>,
    ) -> Option<T> {
        let (before, start) = (self.spent, self.mark());
        let mut least =
            (asked.openings.len() as u64).max(self.ranks.slots().len() as u64 / COUNTED);
        let found = match find(self) {
            Ok(found) => Some(found),
            Err(none) => {
                if none.proven {
                    tries.dead.push(way.seats.clone());
                } else {
                    // Not all steps of a search look at a node.
                    least = least.max(self.effort.steps / PART);
                }
                if tell {
                    tries.tell(way, asked.choices.told_of(&none.why, &way.parts));
                }
                None
            }
        };
        tries.left = tries.left.saturating_sub(self.spent.saturating_sub(before).max(least));
        self.roll_back(start);
        found
    }

    /// Takes the seats of a start that was given back.
    fn take_begun<'f>(&mut self, slot: u32, begun: Begun<'f>) -> Begun<'f> {
        begun.arranged.found.iter().for_each(|(one, _)| self.take_again(slot, one));
        begun
    }

    /// Whether counting shows that so many of each role find no place together.
    pub(super) fn is_out(
        &mut self,
        (slot, openings, spans): (u32, &[Opening], &Spans<'_>),
        seats: &[u32],
    ) -> bool {
        let (needed, _) = self.needed(openings, seats);
        !needed.is_empty() && self.is_counted(slot, &needed, spans)
    }

    /// The most that may start of what finds a seat in the roomiest place, what is just enough seated first.
    fn fullest(&mut self, asked: Asked<'_, '_>, all: &Way, least: Option<&Way>) -> Option<Way> {
        let (mut wanted, _) = self.needed(asked.openings, &all.seats);
        // Those that come beyond stand behind, who takes least first: it leaves room for most.
        let beyond = |opening: &Opening| {
            let is_beyond = least.is_some_and(|least| !is_among(opening, &least.seats));
            let size = asked.sums.sizes().get(usize::from(opening.role)).copied();
            is_beyond.then_some(size)
        };
        wanted.sort_by_key(beyond);
        let seats = self.in_the_roomiest(asked, wanted);
        asked.choices.with_seats(&seats)
    }

    /// Parts with which a group can start, where there are too many choices to try: added one by one as they
    /// find room beside those before.
    fn gathered(&mut self, asked: Asked<'_, '_>) -> Option<Way> {
        let Asked { slot, openings, choices, fragments, sums } = asked;
        let guide = Guide { sizes: sums.sizes(), ..Guide::NONE };
        let lacking = choices.lacking_of(None);
        let (mut way, mut count, mut left) = (Way::default(), 0, self.effort.steps / ROUGHLY);
        for parts in choices.one_by_one(&guide) {
            if count == lacking || left == 0 {
                break;
            }
            if !choices.may_all_come(&way.parts, &parts) {
                continue;
            }
            let before = self.spent;
            let mut with = [way.parts.clone(), parts].concat();
            with.sort_unstable();
            let seats = choices.least(&with, &choices.must());
            if !sums.hold(&seats) {
                continue;
            }
            let (mut needed, _) = self.needed(openings, &seats);
            let (start, spans) = (self.mark(), self.spans(fragments, slot));
            if self.arrange(slot, &mut needed, &spans).is_ok() {
                (way, count) = (Way { parts: with, seats }, count + 1);
            }
            self.roll_back(start);
            let least = needed.len() as u64;
            left = left.saturating_sub(self.spent.saturating_sub(before).max(least));
        }
        (count == lacking && lacking > 0 && choices.is_enough(&way)).then_some(way)
    }

    /// Why a group does not start: of the ways that are just enough the one that comes nearest, the first of
    /// equal ones. Of many those are looked at that have most of what finds a seat in the roomiest place.
    fn account(&mut self, asked: Asked<'_, '_>, tries: Tries<'_>) -> Arc<Why> {
        let Asked { slot, openings, choices, fragments, .. } = asked;
        let all = choices.ways(None, &choices.must(), &Guide::NONE).all;
        let mut others = Tries::new(self.effort.steps / SHARE, false);
        let is_told = |way: &&Way| tries.told.iter().any(|(told, ..)| told == *way);
        let mut ways: Vec<&Way> = all.iter().filter(|way| !is_told(way)).collect();
        if !choices.is_small() && ways.len() > ACCOUNTS_MAX {
            let mut wanted = openings.to_vec();
            // Of those that ask least most find a seat.
            wanted.sort_by_key(|opening| asked.sums.sizes().get(usize::from(opening.role)));
            let found = self.in_the_roomiest(asked, wanted);
            let both = |way: &&Way| -> u32 {
                way.seats.iter().zip(&found).map(|(one, other)| one.min(other)).sum()
            };
            ways.sort_by_cached_key(|way| std::cmp::Reverse(both(way)));
            ways.truncate(ACCOUNTS_MAX);
        }
        for way in ways {
            if choices.is_small() {
                self.is_arranged(asked, way, &mut others);
                continue;
            }
            let (needed, _) = self.needed(openings, &way.seats);
            let spans = self.spans(fragments, slot);
            let (near, _) = self.nearest_place(slot, &needed, &spans);
            let why = self.whole_does_not_fit(&needed, &near, 0);
            others.tell(way, choices.told_of(&why, &way.parts));
        }
        let place = |way: &Way| all.iter().position(|one| one == way).unwrap_or(usize::MAX);
        let told = tries.told.into_iter().chain(others.told);
        match told.min_by_key(|(way, lacks, _)| (*lacks, place(way))) {
            Some((.., why)) if all.len() > 1 => Arc::new(of_some(Arc::unwrap_or_clone(why))),
            Some((.., why)) => why,
            None => self.none_to_choose(slot, openings),
        }
    }

    /// By role, how many of these find a seat in the roomiest place, seated in their order.
    fn in_the_roomiest(&mut self, asked: Asked<'_, '_>, wanted: Vec<Opening>) -> Vec<u32> {
        let spans = self.spans(asked.fragments, asked.slot);
        let (_, found) = self.nearest_place(asked.slot, &wanted, &spans);
        let mut seats = vec![0; asked.choices.must().len()];
        for (opening, _) in wanted.iter().zip(found).filter(|(_, seat)| seat.is_some()) {
            if let Some(count) = seats.get_mut(usize::from(opening.role)) {
                *count += 1;
            }
        }
        seats
    }

    /// Why a group does not start of which too few can be chosen.
    pub(super) fn none_to_choose(&mut self, slot: u32, openings: &[Opening]) -> Arc<Why> {
        openings.iter().find_map(|opening| self.kept_out(slot, opening)).unwrap_or_else(|| {
            let facts = Facts::Subject { subject: Name::default(), detail: Name::default() };
            let example = Example { facts, ..Example::default() };
            Arc::new(super::super::why::object(Reason::GroupIncomplete, example))
        })
    }
}

/// The ways that are just enough, those that take least first, without those of which counting shows that they
/// find no place.
pub(super) fn ways_with_hope(choices: &Choices, sums: &Sums) -> Ways {
    let left = Cell::new(DOMAINS_MAX);
    let hopeless = |seats: &[u32]| {
        let Some(rest) = left.get().checked_sub(sums.domains()) else { return false };
        left.set(rest);
        !sums.hold(seats)
    };
    let guide = Guide { sizes: sums.sizes(), hopeless: &hopeless };
    choices.ways(None, &choices.must(), &guide)
}

/// The account of some who may start: what these never find others may.
pub(super) fn of_some(why: Why) -> Why {
    let met = why.tally.iter().map(|one| one.reason).max().filter(|_| why.group().is_none());
    Why { first: met.unwrap_or(why.first), never: None, ..why }
}
