//! With whom a group starts, where not all of it must: of all ways that find a place the one that leaves out
//! the fewest parts, then the fewest members, and then the cheapest.
//!
//! All is tried first, for most often there is room. Where there is none, each way that is just enough is
//! tried until one finds a place; if one does, all ways are gone through from the largest down, where they
//! are few. Else what fits in the roomiest place is tried, and what is just enough; the rest is added by
//! [`grow`](super::grow).

use std::sync::Arc;

use super::super::trial::{Opening, Trial};
use super::choose::{Choices, Way, Ways};
use super::fragments::Fragments;
use super::proof::Sums;
use super::revisit::PART;
use super::spans::Spans;
use super::{Begun, Standing, Unplaced, is_among};
use crate::decision::{Example, Facts, Proof, Why};
use crate::name::Name;
use crate::reason::Reason;

/// Ways that are just enough which are tried beside what fits in the roomiest place.
const BESIDE_MAX: usize = 16;

/// Ways that are asked of which comes nearest.
const ACCOUNTS_MAX: usize = 16;

/// Of the steps of a decision's effort, the part that goes into trying ways.
const SHARE: u64 = 8;

/// And the part that goes into those that are tried roughly, and again into parts that are added one by one.
const ROUGHLY: u64 = 16;

/// And the part that goes into leaving out what counting shows to be without hope.
const COUNTING: u64 = 8;

/// Which group it is about.
#[derive(Clone, Copy)]
struct Asked<'a, 'f> {
    slot: u32,
    openings: &'a [Opening],
    choices: &'a Choices,
    fragments: &'f Fragments,
}

/// What came of the ways that were tried.
struct Tries<'f> {
    /// Steps that may be spent.
    left: u64,
    /// Each that found no place has none.
    proven: bool,
    /// What has a place has one with less: with no more of another role does a member find a place that it
    /// would not find by itself.
    any_less: bool,
    /// Ways that have no place.
    dead: Vec<Way>,
    /// Ways of which there is an account.
    told: Vec<Way>,
    /// The account of the one that came nearest, with the members that it lacked.
    nearest: Option<(u32, Arc<Why>)>,
    /// What is tried is just enough: of what is more than that no account is given.
    just_enough: bool,
    best: Option<(Standing, Begun<'f>)>,
    /// Had one of those that found a place been gone through, it might be better.
    exact: bool,
}

impl<'f> Tries<'f> {
    fn new(left: u64, any_less: bool) -> Self {
        let (dead, told, nearest, best) = (Vec::new(), Vec::new(), None, None);
        let (proven, exact, just_enough) = (true, true, false);
        Self { left, proven, any_less, dead, told, nearest, just_enough, best, exact }
    }

    fn is_dead(&self, way: &Way) -> bool {
        let beyond = |dead: &Way| self.any_less && Choices::is_beyond(way, dead);
        self.dead.iter().any(|dead| dead == way || beyond(dead))
    }

    fn tell(&mut self, way: &Way, why: Arc<Why>) {
        self.told.push(way.clone());
        let facts = why.group();
        let lacks = facts.map_or(u32::MAX, |facts| facts.of.saturating_sub(facts.fit));
        if self.nearest.as_ref().is_none_or(|(fewest, _)| lacks < *fewest) {
            self.nearest = Some((lacks, why));
        }
    }

    fn keep(&mut self, begun: Begun<'f>) {
        self.exact &= begun.arranged.proof() == Proof::Proven && begun.told.is_proven();
        let standing = begun.standing();
        if self.best.as_ref().is_none_or(|(least, _)| standing < *least) {
            self.best = Some((standing, begun));
        }
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
        let asked = Asked { slot, openings, choices, fragments };
        let any_less = !self.turns(slot, openings).matters;
        let mut tries = Tries::new(self.effort.steps / SHARE, any_less);
        let all = choices.everything();
        let spans = self.spans(fragments, slot);
        if let Some(all) = &all
            && !self.is_out((slot, openings, &spans), &all.seats)
            && let Some(begun) = self.tried(asked, all, &mut tries)
        {
            return Ok(self.take_begun(slot, begun));
        }
        let (sums, lacking) =
            (self.sums(slot, openings, choices, &spans), choices.lacking_of_all());
        if !sums.hold(lacking) {
            return Err(Unplaced { why: self.account(asked, tries), proven: true });
        }
        let least = self.ways_with_hope(slot, openings, choices, &spans);
        tries.proven &= !least.cut;
        tries.just_enough = true;
        let starts = least.all.iter().any(|way| self.starts(asked, way, &mut tries));
        tries.just_enough = false;
        let ways = choices.all().filter(|_| starts || !any_less);
        let few = ways.is_some();
        for way in ways.into_iter().flatten() {
            let level = choices.left_out(&way);
            if tries
                .best
                .as_ref()
                .is_some_and(|((parts, members, _), _)| (*parts, *members) < level)
            {
                break;
            }
            if tries.left > 0
                && !self.is_known_out((slot, openings, &spans), &way, &mut tries)
                && let Some(begun) = self.tried(asked, &way, &mut tries)
            {
                tries.keep(begun);
            }
        }
        // Where pods mean something to those of other roles, more of these may find a place where fewer do not.
        tries.proven &= few || any_less;
        if tries.best.is_none() && (starts || !tries.proven) {
            self.roughly(asked, (all.as_ref(), &least), &sums, &mut tries);
        }
        self.outcome(asked, tries)
    }

    /// What the tries came to.
    fn outcome<'f>(
        &mut self,
        asked: Asked<'_, 'f>,
        tries: Tries<'f>,
    ) -> Result<Begun<'f>, Unplaced> {
        let (proven, exact) = (tries.proven && tries.left > 0, tries.exact);
        let Some((_, mut begun)) = tries.best else {
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

    /// Where ways are too many to go through: what fits in the roomiest place, and ways that are just enough.
    fn roughly<'f>(
        &mut self,
        asked: Asked<'_, 'f>,
        (all, least): (Option<&Way>, &Ways),
        sums: &Sums,
        tries: &mut Tries<'f>,
    ) {
        (tries.exact, tries.left) = (false, self.effort.steps / ROUGHLY);
        let fullest = all.and_then(|all| self.fullest(asked, all, least.all.first()));
        if let Some(begun) = fullest.and_then(|way| self.tried(asked, &way, tries)) {
            let (left_out, _) = begun.told.left_out();
            tries.keep(begun);
            // One part more finds no room.
            let most = asked.choices.may_join(None).count();
            let parts = left_out > 0 && !sums.hold((most + 1).saturating_sub(left_out));
            if asked.choices.is_chain() || parts {
                return;
            }
        }
        for way in least.all.iter().take(BESIDE_MAX) {
            if let Some(begun) = self.tried(asked, way, tries) {
                tries.keep(begun);
            }
        }
        if tries.best.is_none()
            && let Some(way) = self.gathered(asked)
            && let Some(begun) = self.tried(asked, &way, tries)
        {
            tries.keep(begun);
        }
    }

    /// Starts in this way, and gives all of it back. Where it finds no place, that is noted.
    fn tried<'f>(
        &mut self,
        asked: Asked<'_, 'f>,
        way: &Way,
        tries: &mut Tries<'f>,
    ) -> Option<Begun<'f>> {
        let Asked { slot, openings, choices, fragments } = asked;
        self.noted(asked, way, tries, |trial| {
            trial.begun_with(slot, openings, (choices, way), fragments)
        })
    }

    /// Whether who starts in this way finds a place, whoever comes beyond.
    fn starts(&mut self, asked: Asked<'_, '_>, way: &Way, tries: &mut Tries<'_>) -> bool {
        let arranged = self.noted(asked, way, tries, |trial| {
            let (mut needed, _) = trial.needed(asked.openings, &way.seats);
            let spans = trial.spans(asked.fragments, asked.slot);
            trial.arrange(asked.slot, &mut needed, &spans)
        });
        arranged.is_some()
    }

    /// What is found for this way, which is given back. Where it is nothing, that is noted.
    fn noted<T>(
        &mut self,
        asked: Asked<'_, '_>,
        way: &Way,
        tries: &mut Tries<'_>,
        find: impl FnOnce(&mut Self) -> Result<T, Unplaced>,
    ) -> Option<T> {
        if tries.is_dead(way) {
            return None;
        }
        if tries.left == 0 {
            tries.proven = false;
            return None;
        }
        let (before, start) = (self.spent, self.mark());
        let mut least = asked.openings.len() as u64;
        let found = match find(self) {
            Ok(found) => Some(found),
            Err(none) => {
                // Not all steps of a search look at a node.
                least = if none.proven { least } else { least.max(self.effort.steps / PART) };
                tries.proven &= none.proven;
                if none.proven {
                    tries.dead.push(way.clone());
                }
                if tries.just_enough {
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

    /// The ways that are just enough, without those of which counting shows that they find no place.
    pub(super) fn ways_with_hope(
        &mut self,
        slot: u32,
        openings: &[Opening],
        choices: &Choices,
        spans: &Spans<'_>,
    ) -> Ways {
        let any_less = !self.turns(slot, openings).matters;
        let mut left = if any_less { self.effort.steps / COUNTING } else { 0 };
        let looks = self.ranks.slots().len() as u64 * choices.may().count() as u64;
        choices.ways(None, &choices.must(), &mut |seats| {
            let Some(rest) = left.checked_sub(looks.max(1)) else { return false };
            left = rest;
            self.is_out((slot, openings, spans), seats)
        })
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

    /// Whether a way has no place, as is known or counted.
    fn is_known_out(
        &mut self,
        of: (u32, &[Opening], &Spans<'_>),
        way: &Way,
        tries: &mut Tries<'_>,
    ) -> bool {
        if tries.is_dead(way) {
            return true;
        }
        let out = self.is_out(of, &way.seats);
        if out {
            tries.dead.push(way.clone());
        }
        out
    }

    /// The most that may start of what finds a seat in the roomiest place, what is just enough seated first.
    fn fullest(&mut self, asked: Asked<'_, '_>, all: &Way, least: Option<&Way>) -> Option<Way> {
        let (mut wanted, _) = self.needed(asked.openings, &all.seats);
        if let Some(least) = least {
            // Stable: those that come beyond stand behind, in their order.
            wanted.sort_by_key(|opening| !is_among(opening, &least.seats));
        }
        let seats = self.in_the_roomiest(asked, wanted);
        asked.choices.with_seats(&seats)
    }

    /// Parts with which a group can start, where there are too many choices to try: added one by one as they
    /// find room beside those before.
    fn gathered(&mut self, asked: Asked<'_, '_>) -> Option<Way> {
        let Asked { slot, openings, choices, fragments } = asked;
        let (lacking, sets) = choices.one_by_one();
        let (mut way, mut count, mut left) = (Way::default(), 0, self.effort.steps / ROUGHLY);
        for parts in sets {
            if count == lacking || left == 0 {
                break;
            }
            let before = self.spent;
            let mut with = [way.parts.clone(), parts].concat();
            with.sort_unstable();
            let seats = choices.least(&with, &choices.must());
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
        let Asked { slot, openings, choices, fragments } = asked;
        let mut ways = choices.ways(None, &choices.must(), &mut |_| false).all;
        let mut others = Tries::new(self.effort.steps / SHARE, false);
        (others.nearest, others.just_enough) = (tries.nearest, true);
        let is_choice = ways.len() > 1;
        ways.retain(|way| !tries.told.contains(way));
        if !choices.is_small() && ways.len() > ACCOUNTS_MAX {
            let found = self.in_the_roomiest(asked, openings.to_vec());
            let both = |way: &Way| -> u32 {
                way.seats.iter().zip(&found).map(|(one, other)| one.min(other)).sum()
            };
            ways.sort_by_cached_key(|way| std::cmp::Reverse(both(way)));
            ways.truncate(ACCOUNTS_MAX);
        }
        for way in &ways {
            if choices.is_small() {
                self.starts(asked, way, &mut others);
                continue;
            }
            let (needed, _) = self.needed(openings, &way.seats);
            let spans = self.spans(fragments, slot);
            let (near, _) = self.nearest_place(slot, &needed, &spans);
            let why = self.whole_does_not_fit(&needed, &near, 0);
            others.tell(way, choices.told_of(&why, &way.parts));
        }
        match others.nearest {
            Some((_, why)) if is_choice => Arc::new(of_some(Arc::unwrap_or_clone(why))),
            Some((_, why)) => why,
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

/// The account of some who may start: what these never find others may.
pub(super) fn of_some(why: Why) -> Why {
    let met = why.tally.iter().map(|one| one.reason).max().filter(|_| why.group().is_none());
    Why { first: met.unwrap_or(why.first), never: None, ..why }
}
