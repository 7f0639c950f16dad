//! What a group has beyond the members that must start together: parts of it, each whole or not at all,
//! and then single members as far as there is room.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::trial::{Opening, Trial};
use super::choose::{Choices, Guide, Way, Ways, of_group};
use super::revisit::PART;
use super::spans::Spans;
use super::{Arranged, Unplaced, is_among};
use crate::cost::Cost;
use crate::decision::{Proof, Short, Verdict, Why};
use crate::name::{GroupKey, Name};

/// Of the steps of a decision's effort, the part that goes into parts that find no place.
const SHARE: u64 = 16;

/// What is told of members beyond those that must start and are missing.
#[derive(Default)]
pub(super) struct Told {
    missing: u32,
    /// Who is missing, by role, and why; the first is told of the whole group.
    whys: Vec<(u16, Arc<Why>)>,
    parts: Vec<Name>,
    /// Why parts that are left out are, by index, where something is known of it.
    accounts: BTreeMap<u16, Arc<Why>>,
    unproven: bool,
    /// The parts that are there, by index.
    there: Vec<u16>,
}

impl Told {
    /// The parts that are there, by index.
    pub(super) fn parts_there(&self) -> Vec<u16> {
        self.there.clone()
    }

    /// What is missing finds no place, and is not merely not found.
    pub(super) fn is_proven(&self) -> bool {
        !self.unproven
    }

    /// Notes that a better start was not found, and is not shown not to be.
    pub(super) fn doubt(&mut self) {
        self.unproven = true;
    }

    /// Whether nobody who is missing would find a place in the healed and emptied cluster either.
    pub(super) fn is_never(&self) -> bool {
        self.whys.iter().all(|(_, why)| why.never.is_some())
    }

    /// How many parts and members are missing.
    pub(super) fn left_out(&self) -> (usize, u32) {
        (self.parts.len(), self.missing)
    }

    fn tells_of(&self, role: u16) -> bool {
        self.whys.iter().any(|(of, _)| *of == role)
    }

    /// Why the first of them is, if any is.
    pub(super) fn first(self) -> Option<Arc<Why>> {
        self.whys.into_iter().next().map(|(_, why)| why)
    }
}

/// Where a part goes: the parts that come with it, their seats, and what they cost where there is a choice.
struct Placed {
    way: Way,
    openings: Vec<Opening>,
    arranged: Arranged,
    cost: Cost,
}

impl Trial<'_> {
    /// Places what a group may have beyond the parts and members that it starts with: parts in their order,
    /// each together, then member by member. Once parts that find no place have taken too many steps, no
    /// further part is tried.
    pub(super) fn grow(
        &mut self,
        slot: u32,
        (choices, way): (&Choices, &Way),
        more: &[Opening],
        spans: &mut Spans<'_>,
        arranged: &mut Arranged,
    ) -> Told {
        let mut left = self.effort.steps / SHARE;
        let mut told = Told::default();
        let (mut there, mut seated) = (choices.there_with(&way.parts), way.seats.clone());
        let mut rest = more.to_vec();
        for (at, part) in (0_u16..).zip(&choices.parts().all) {
            if there[usize::from(at)] {
                continue;
            }
            let may = choices.may_come(at, &there);
            if may && (left > 0 || told.whys.is_empty()) {
                match self.part(slot, (choices, at, &seated), &rest, spans, &mut told) {
                    Ok(placed) => {
                        placed.way.parts.iter().for_each(|at| there[usize::from(*at)] = true);
                        seated.clone_from(&placed.way.seats);
                        rest.retain(|opening| !is_among(opening, &seated));
                        self.grown(slot, placed, spans, arranged);
                        continue;
                    }
                    Err(steps) => left = left.saturating_sub(steps),
                }
            } else {
                told.unproven |= may;
            }
            self.left_out(slot, (choices, at), &rest, &mut told);
            let before = rest.len();
            rest.retain(|opening| !is_among(opening, &choices.lacks(&[at])));
            told.missing += (before - rest.len()) as u32;
            told.parts.push(part.name.clone());
        }
        told.there = (0_u16..).zip(&there).filter(|(_, is)| **is).map(|(at, _)| at).collect();
        let lacking = lacking(choices, &there);
        let mut full: Vec<u16> = lacking.iter().map(|(role, _)| *role).collect();
        for opening in &rest {
            let of_part = lacking.iter().find(|(role, _)| *role == opening.role);
            if let Some((_, part)) = of_part.filter(|_| !told.tells_of(opening.role)) {
                let account = told.accounts.get(part).cloned();
                let one = std::slice::from_ref(opening);
                let why = account.unwrap_or_else(|| self.none_to_choose(slot, one));
                told.whys.push((opening.role, why));
            }
            if !full.contains(&opening.role) {
                let kept_out = self.kept_out(slot, opening);
                match kept_out.map_or_else(|| self.one_more(slot, opening, spans), Err) {
                    Ok(one) => {
                        arranged.found.push(one);
                        continue;
                    }
                    Err(why) => {
                        full.push(opening.role);
                        told.whys.push((opening.role, why));
                    }
                }
            }
            told.missing += 1;
        }
        told
    }

    /// Notes why a part is left out: what keeps one of its members out, else what the part that it is under
    /// is left out for, else what keeps out one below it. Each of its roles is told of.
    fn left_out(
        &mut self,
        slot: u32,
        (choices, at): (&Choices, u16),
        rest: &[Opening],
        told: &mut Told,
    ) {
        let lacks = choices.lacks(&[at]);
        let own: Vec<&Opening> = rest.iter().filter(|one| is_among(one, &lacks)).collect();
        let under = choices.parts().all.get(usize::from(at)).and_then(|part| part.under);
        let known = told.accounts.get(&at).cloned();
        let known = known.or_else(|| own.iter().find_map(|one| self.kept_out(slot, one)));
        let known = known.or_else(|| told.accounts.get(&under?).cloned()).or_else(|| {
            let below = choices.lacks(&choices.below(at));
            let below = rest.iter().filter(|one| is_among(one, &below));
            below.into_iter().find_map(|one| self.kept_out(slot, one))
        });
        for one in own {
            if !told.tells_of(one.role) {
                let why = self.kept_out(slot, one).or_else(|| known.clone());
                let why = why.unwrap_or_else(|| self.none_to_choose(slot, rest));
                told.whys.push((one.role, why));
            }
        }
        told.accounts.extend(known.map(|why| (at, why)));
    }

    /// Where a part goes together with as many of those under it as it needs: of all choices the cheapest.
    /// Nothing of it is taken. Where it finds no place, the steps that it is charged for trying.
    fn part(
        &mut self,
        slot: u32,
        (choices, at, seated): (&Choices, u16, &[u32]),
        rest: &[Opening],
        spans: &Spans<'_>,
        told: &mut Told,
    ) -> Result<Placed, u64> {
        let (before, start) = (self.spent, self.mark());
        let ways = match choices.is_open(at) {
            true => choices.ways(Some(at), seated, &Guide::NONE),
            false => Ways::default(),
        };
        let (mut best, mut first): (Option<Placed>, Option<(Vec<Opening>, Unplaced)>) =
            (None, None);
        let (mut proven, only) = (!ways.cut, ways.all.len() == 1);
        for way in ways.all {
            let of = rest.iter().filter(|opening| is_among(opening, &way.seats)).cloned();
            let mut openings: Vec<Opening> = of.collect();
            match self.arrange(slot, &mut openings, spans) {
                Ok(arranged) => {
                    proven &= arranged.proof() == Proof::Proven;
                    let cost = match only {
                        true => Cost::default(),
                        false => self.cost_of_part(&openings, &arranged, spans),
                    };
                    if best.as_ref().is_none_or(|best| cost < best.cost) {
                        best = Some(Placed { way, openings, arranged, cost });
                    }
                }
                Err(none) => {
                    proven &= none.proven;
                    first.get_or_insert((openings, none));
                }
            }
            self.roll_back(start);
        }
        if let Some(mut best) = best {
            if !proven {
                best.arranged.proof = best.arranged.proof.max(Proof::Bounded);
            }
            return Ok(best);
        }
        told.unproven |= !proven;
        let (openings, why) = match first {
            Some((openings, none)) => (openings, Some(none.why)),
            None => {
                let lacks = choices.lacks(&[at]);
                let of = rest.iter().filter(|opening| is_among(opening, &lacks)).cloned();
                let openings: Vec<Opening> = of.collect();
                let why = self.none_to_choose(slot, &openings);
                (openings, Some(why))
            }
        };
        if let (Some(opening), Some(why), Some(part)) =
            (openings.first(), why, choices.parts().all.get(usize::from(at)))
        {
            let why = of_part(&why, &part.name, spans.seats());
            told.accounts.insert(at, why.clone());
            let mut roles: Vec<u16> = openings.iter().map(|opening| opening.role).collect();
            roles.dedup();
            // The one that stands in the way is told of first.
            roles.sort_by_key(|role| (*role != opening.role, *role));
            told.whys.extend(roles.into_iter().map(|role| (role, why.clone())));
        }
        // Not all steps of a search look at a node.
        let least = if proven { openings.len() as u64 } else { self.effort.steps / PART };
        Err(self.spent.saturating_sub(before).max(least))
    }

    /// What a part costs beside what is spanned already.
    fn cost_of_part(&self, openings: &[Opening], arranged: &Arranged, spans: &Spans<'_>) -> Cost {
        let mut with = spans.clone();
        self.seated(openings, &arranged.found, &mut with);
        with.priced(arranged.cost())
    }

    /// Takes a part's seats.
    fn grown(&mut self, slot: u32, placed: Placed, spans: &mut Spans<'_>, arranged: &mut Arranged) {
        let Arranged { found, proof } = placed.arranged;
        self.seated(&placed.openings, &found, spans);
        found.iter().for_each(|(one, _)| self.take_again(slot, one));
        arranged.found.extend(found);
        arranged.proof = arranged.proof.max(proof);
    }

    /// Notes of the roles after the first what stands in their way; what is told of the group.
    pub(super) fn told(&mut self, key: &GroupKey, told: Told) -> Option<Short> {
        let Told { missing, whys, parts, .. } = told;
        let mut whys = whys.into_iter();
        whys.next().map(|(first, why)| {
            for (role, other) in whys.filter(|(role, other)| *role != first && *other != why) {
                self.role_waits(key, role, Verdict::Waits(other));
            }
            Short { missing, why, parts: parts.into() }
        })
    }
}

/// The roles of parts that are not there, or that are under one that is not, each with that part.
fn lacking(choices: &Choices, there: &[bool]) -> Vec<(u16, u16)> {
    let closed = choices.closed(there);
    closed.flat_map(|(at, part)| part.least.iter().map(move |(role, _)| (*role, at))).collect()
}

/// The account of a part beside so many members that are seated.
fn of_part(why: &Why, name: &Name, seated: u32) -> Arc<Why> {
    Arc::new(of_group(why, |facts| {
        facts.fit = facts.fit.saturating_sub(seated);
        facts.of = facts.of.saturating_sub(seated);
        facts.running = 0;
        facts.beyond = true;
        facts.part = Some(name.clone());
    }))
}
