//! With which parts and members a group may start, where not all of them must: the choices that are just
//! enough, all that there are where they are few, and the most that may come at all. Of parts that are alike
//! only the first ones are chosen.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::trial::{Opening, Trial};
use super::fill::Filling;
use crate::decision::{Facts, GroupFacts, Why};
use crate::name::Name;
use crate::part::{AnyOf, Part, Parts};

/// Members of all choices together, beyond which only a few are tried.
const MEMBERS_MAX: usize = 65_536;

/// Choices that are tried however many members each has, where so many are tried at all.
const FEW: usize = 4;

/// Of the choices that are tried, how many steps each may take to be written down.
const STEPS: usize = 16;

/// How deep writing them down goes: where more is to be chosen one by one only the first choice is.
pub(super) const DEPTH_MAX: usize = 512;

/// Members of a group of which more is asked than counting tells.
const SMALL: usize = 8;

/// Who starts together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// Parts, by index and in order.
    pub(super) parts: Vec<u16>,
    /// By role, how many of its members that are missing.
    pub(super) seats: Vec<u32>,
}

/// By what choices are written down.
pub(super) struct Guide<'g> {
    /// By role how much a member takes: who takes least comes first. None is: as they stand.
    pub(super) sizes: &'g [u64],
    /// Whether no way to start has all of these, by role the first so many that are missing.
    pub(super) hopeless: &'g dyn Fn(&[u32]) -> bool,
}

impl Guide<'_> {
    /// As they stand, whatever hope there is.
    pub(super) const NONE: Self = Self { sizes: &[], hopeless: &|_| false };

    pub(super) fn size(&self, role: u16) -> u64 {
        self.sizes.get(usize::from(role)).copied().unwrap_or(0)
    }
}

/// How many of a role there are.
#[derive(Clone, Copy, Default)]
struct OfRole {
    /// Those that are there.
    there: u32,
    /// Of those that are missing so many start whatever is chosen,
    must: u32,
    /// and nothing but room may keep out so many.
    may: u32,
}

/// What is to be chosen among.
#[derive(Clone, Default)]
pub(super) struct Choices {
    parts: Parts,
    roles: Vec<OfRole>,
    /// By part, how many members each of its roles lacks.
    lacks: Vec<Vec<(u16, u32)>>,
    /// By part, whether it is there already.
    there: Vec<bool>,
    /// By part, whether nothing but room may keep it out.
    open: Vec<bool>,
    /// By part, its kind: one of those that are like it stands for all.
    kinds: Vec<usize>,
    /// By part, those before it that have a role of it as well.
    after: Vec<Vec<u16>>,
    /// By role, whether several parts have it.
    shared: Vec<bool>,
    /// Members that wait.
    members: usize,
    /// Choices that are tried at most.
    most: usize,
}

/// What was found of them.
#[derive(Default)]
pub(super) struct Ways {
    /// Each is enough, and has no more than it needs, but where minima have roles in common; in order.
    pub(super) all: Vec<Way>,
    /// There are more.
    pub(super) cut: bool,
}

/// Choices of parts under way.
struct Listing<'c, 'g> {
    choices: &'c Choices,
    /// Who may be chosen, each with the sets of parts that it may then consist of.
    candidates: Vec<(u16, Vec<Vec<u16>>)>,
    chosen: Vec<u16>,
    /// Kinds of which one was left out: later ones of them would only stand for it.
    left_out: Vec<usize>,
    steps: usize,
    most: usize,
    all: Vec<Vec<u16>>,
    cut: bool,
    guide: &'c Guide<'g>,
}

impl Choices {
    /// All parts, in order.
    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// How many members of each of its roles a part lacks, by index.
    pub(super) fn lacks_of(&self, at: usize) -> &[(u16, u32)] {
        self.lacks.get(at).map_or(&[], Vec::as_slice)
    }

    /// By role, how many of the missing members start whatever is chosen.
    pub(super) fn must(&self) -> Vec<u32> {
        self.roles.iter().map(|role| role.must).collect()
    }

    /// By role, the members that these parts lack, beside those that have seats: of a choice the first.
    pub(super) fn lacks(&self, parts: &[u16]) -> Vec<u32> {
        let mut seats = self.least(parts, &vec![0; self.roles.len()]);
        let most = self.most(parts, &seats);
        let of_parts = parts.iter().filter_map(|at| self.parts.all.get(usize::from(*at)));
        for any in of_parts.flat_map(|part| &part.any) {
            for role in &any.roles {
                let lacking = self.lacking(any, &seats);
                let at = usize::from(*role);
                if let (Some(seats), Some(most)) = (seats.get_mut(at), most.get(at)) {
                    *seats += lacking.min(most.saturating_sub(*seats));
                }
            }
        }
        seats
    }

    /// By part, whether it is there with these.
    pub(super) fn there_with(&self, parts: &[u16]) -> Vec<bool> {
        let mut there = self.there.clone();
        for at in parts {
            if let Some(there) = there.get_mut(usize::from(*at)) {
                *there = true;
            }
        }
        there
    }

    /// Whether the parts are there without which one is not placed.
    pub(super) fn may_come(&self, at: u16, there: &[bool]) -> bool {
        let Some(part) = self.parts.all.get(usize::from(at)) else { return false };
        part.under.is_none_or(|under| self.is(there, under))
            && self.after(at).iter().all(|other| self.is(there, *other))
    }

    /// Whether the parts are there, or among themselves, without which these are not placed.
    pub(super) fn may_all_come(&self, chosen: &[u16], more: &[u16]) -> bool {
        let there = self.there_with(&[chosen, more].concat());
        more.iter().all(|at| self.may_come(*at, &there))
    }

    /// The parts before one that have a role of it as well.
    fn after(&self, at: u16) -> &[u16] {
        self.after.get(usize::from(at)).map_or(&[], Vec::as_slice)
    }

    /// Whether several parts have a role.
    pub(super) fn is_shared(&self, role: usize) -> bool {
        self.shared.get(role).copied().unwrap_or(false)
    }

    /// The roles of a part and of those below it.
    pub(super) fn roles_with_those_below(&self, at: u16) -> Vec<u16> {
        let of = [at].into_iter().chain(self.below(at));
        let of = of.filter_map(|at| self.parts.all.get(usize::from(at)));
        of.flat_map(|part| part.least.iter().map(|(role, _)| *role)).collect()
    }

    /// All parts below one, in order.
    pub(super) fn below(&self, at: u16) -> Vec<u16> {
        let mut below = Vec::new();
        for (part, of) in (0_u16..).zip(&self.parts.all) {
            if of.under.is_some_and(|under| under == at || below.contains(&under)) {
                below.push(part);
            }
        }
        below
    }

    /// Whether nothing but room may keep a part out, those under it aside.
    pub(super) fn is_open(&self, at: u16) -> bool {
        self.is(&self.open, at)
    }

    /// Who starts, where there is nothing to choose: that is who may come at all.
    pub(super) fn only(&self) -> Option<Way> {
        let fixed = self.parts.all.is_empty() && self.roles.iter().all(|of| of.must >= of.may);
        let way = Way { parts: Vec::new(), seats: self.must() };
        Some(way).filter(|way| fixed && self.is_enough(way))
    }

    /// Whether so few wait that, to tell why none of them starts, each way is searched.
    pub(super) fn is_small(&self) -> bool {
        self.members <= SMALL
    }

    /// Whether all that is chosen is how many of one role start.
    pub(super) fn is_chain(&self) -> bool {
        self.parts.all.is_empty() && self.roles.iter().filter(|of| of.must < of.may).count() < 2
    }

    /// All that may come, if that is enough.
    pub(super) fn everything(&self) -> Option<Way> {
        let seats: Vec<u32> = self.roles.iter().map(|of| of.must.max(of.may)).collect();
        self.with_seats(&seats)
    }

    /// The most that may start with so many of each role, if that is enough.
    pub(super) fn with_seats(&self, seats: &[u32]) -> Option<Way> {
        let mut out = vec![false; self.parts.all.len()];
        let parts = loop {
            let parts = self.with_all_but(&out, seats);
            let there = self.there_with(&parts);
            let lacks = |at: &&u16| self.lacking_under(Some(**at), &there) > 0;
            let lacking: Vec<u16> = parts.iter().filter(lacks).copied().collect();
            // With fewer parts none of these becomes whole.
            lacking.iter().for_each(|at| out[usize::from(*at)] = true);
            if lacking.is_empty() {
                break parts;
            }
        };
        let least = self.least(&parts, &self.must());
        let most = self.most(&parts, &least);
        let seats = seats.iter().zip(&most).map(|(one, other)| *one.min(other)).collect();
        Some(Way { parts, seats }).filter(|way| {
            way.seats.iter().zip(&least).all(|(has, least)| has >= least) && self.is_enough(way)
        })
    }

    /// The parts that come with so many of each role, some left out.
    fn with_all_but(&self, out: &[bool], seats: &[u32]) -> Vec<u16> {
        let (mut parts, mut there) = (Vec::new(), self.there.clone());
        for (at, part) in (0_u16..).zip(&self.parts.all) {
            let index = usize::from(at);
            let has = |(role, lacks): &(u16, u32)| {
                seats.get(usize::from(*role)).is_some_and(|seats| seats >= lacks)
            };
            if !there[index]
                && !out[index]
                && self.is_open(at)
                && self.may_come(at, &there)
                && self.lacks_of(index).iter().all(has)
                && part.any.iter().all(|any| self.lacking(any, seats) == 0)
            {
                there[index] = true;
                parts.push(at);
            }
        }
        parts
    }

    /// Every way to start, those with the most parts and then members first; none where they are too many to
    /// try them all.
    pub(super) fn all(&self) -> Option<Vec<Way>> {
        let mut sets = Vec::new();
        let mut steps = self.steps();
        self.sets(0, &mut Vec::new(), &mut Vec::new(), (&mut sets, &mut steps))?;
        let mut all = Vec::new();
        for parts in sets {
            let least = self.least(&parts, &self.must());
            let most = self.most(&parts, &least);
            let mut seats = vec![least.clone()];
            for at in 0..least.len() {
                let more = |seats: Vec<u32>| {
                    (least[at]..=most[at]).map(move |count| {
                        let mut with = seats.clone();
                        with[at] = count;
                        with
                    })
                };
                let room = usize::try_from(most[at] - least[at]).unwrap_or(usize::MAX);
                if seats.len().saturating_mul(room.saturating_add(1)) > self.steps() {
                    return None;
                }
                seats = seats.into_iter().flat_map(more).collect();
            }
            let ways = seats.into_iter().map(|seats| Way { parts: parts.clone(), seats });
            all.extend(ways.filter(|way| self.is_enough(way)));
            if all.len() > self.tries() {
                return None;
            }
        }
        all.sort_by_cached_key(|way| {
            let seats: Vec<Reverse<u32>> = way.seats.iter().copied().map(Reverse).collect();
            (self.left_out(way), way.parts.clone(), seats)
        });
        Some(all)
    }

    /// Adds every set of the parts from here on with which a group may start, those that are alike in their
    /// order. None where that takes too many steps.
    fn sets(
        &self,
        at: u16,
        chosen: &mut Vec<u16>,
        left_out: &mut Vec<(Option<u16>, usize)>,
        (sets, steps): (&mut Vec<Vec<u16>>, &mut usize),
    ) -> Option<()> {
        *steps = steps.checked_sub(1).filter(|_| left_out.len() + chosen.len() < DEPTH_MAX)?;
        let there = self.there_with(chosen);
        // What can't come is no step deeper.
        let may = |at: &u16| {
            let kind = (self.parts.all[usize::from(*at)].under, self.kind(*at));
            let open = self.is_open(*at) && !self.is(&self.there, *at);
            open && self.may_come(*at, &there) && !left_out.contains(&kind)
        };
        let end = u16::try_from(self.parts.all.len()).unwrap_or(u16::MAX);
        let Some(at) = (at..end).find(may) else {
            let whole = |of: Option<u16>| self.lacking_under(of, &there) == 0;
            if whole(None) && chosen.iter().all(|at| whole(Some(*at))) {
                sets.push(chosen.clone());
            }
            return Some(());
        };
        chosen.push(at);
        self.sets(at + 1, chosen, left_out, (sets, steps))?;
        chosen.pop();
        left_out.push((self.parts.all[usize::from(at)].under, self.kind(at)));
        self.sets(at + 1, chosen, left_out, (sets, steps))?;
        left_out.pop();
        Some(())
    }

    /// How many parts and members a way leaves out.
    pub(super) fn left_out(&self, way: &Way) -> (usize, u32) {
        let there = self.there_with(&way.parts).iter().filter(|there| **there).count();
        let seats = way.seats.iter().copied().fold(0, u32::saturating_add);
        let members = u32::try_from(self.members).unwrap_or(u32::MAX);
        (self.parts.all.len() - there, members.saturating_sub(seats))
    }

    /// The choices by which a part becomes whole beside so many members of each role, that part with them; or
    /// the group can start.
    pub(super) fn ways(&self, of: Option<u16>, seated: &[u32], guide: &Guide<'_>) -> Ways {
        let (sets, cut) = self.listed(of, guide);
        let mut ways = Ways { all: Vec::new(), cut };
        for parts in sets {
            let least = self.least(&parts, seated);
            let most = self.most(&parts, &least);
            let any = self.any(&parts).collect();
            let room = self.tries().saturating_sub(ways.all.len());
            let filling = Filling::new(self, any, (least, most), room, guide);
            let (seats, cut) = filling.all();
            ways.cut |= cut;
            ways.all.extend(seats.into_iter().map(|seats| Way { parts: parts.clone(), seats }));
        }
        ways
    }

    /// The sets of parts of these choices, and whether there are more.
    fn listed(&self, of: Option<u16>, guide: &Guide<'_>) -> (Vec<Vec<u16>>, bool) {
        let lacking = self.lacking_of(of);
        let (mut candidates, mut cut) = (Vec::new(), false);
        if lacking > 0 {
            for at in self.may_join(of) {
                let (sets, more) = self.listed(Some(at), guide);
                cut |= more;
                candidates.push((at, sets));
            }
            candidates.retain(|(_, sets)| !sets.is_empty());
        }
        let by_size = !guide.sizes.is_empty();
        if by_size {
            let sizes = self.sizes_of_parts(&candidates, guide);
            candidates.sort_by_key(|(at, _)| sizes.get(at).copied().unwrap_or(0));
        }
        let mut listing = Listing {
            choices: self,
            candidates,
            chosen: of.filter(|at| !self.is(&self.there, *at)).into_iter().collect(),
            left_out: Vec::new(),
            steps: self.steps(),
            most: self.tries(),
            all: Vec::new(),
            cut,
            guide,
        };
        match lacking > DEPTH_MAX {
            true => listing.first(lacking),
            false => listing.from(0, lacking),
        }
        let (mut all, cut) = (listing.all, listing.cut);
        all.iter_mut().for_each(|parts| parts.sort_unstable());
        if !by_size {
            all.sort();
        }
        (all, cut)
    }

    /// By part, how much the smallest of the sets takes by which it becomes whole; no less than those that
    /// must be there before it.
    fn sizes_of_parts(
        &self,
        candidates: &[(u16, Vec<Vec<u16>>)],
        guide: &Guide<'_>,
    ) -> BTreeMap<u16, u64> {
        let mut sizes: BTreeMap<u16, u64> = BTreeMap::new();
        for (at, sets) in candidates {
            let own = sets.iter().map(|parts| self.size_of(parts, guide)).min().unwrap_or(0);
            let before = self.after(*at).iter().filter_map(|other| sizes.get(other).copied());
            let size = before.fold(own, u64::max);
            sizes.insert(*at, size);
        }
        sizes
    }

    /// How much the members take that these parts lack.
    fn size_of(&self, parts: &[u16], guide: &Guide<'_>) -> u64 {
        let lacks = self.lacks(parts);
        let of = (0_u16..)
            .zip(lacks)
            .map(|(role, count)| guide.size(role).saturating_mul(u64::from(count)));
        of.fold(0, u64::saturating_add)
    }

    /// How many choices are tried at most.
    fn tries(&self) -> usize {
        (MEMBERS_MAX / self.members.max(1)).max(FEW).min(self.most)
    }

    /// How many steps writing them down takes at most.
    pub(super) fn steps(&self) -> usize {
        self.most.saturating_mul(STEPS)
    }

    /// The same choices, of which those are enough that have more than this way: of parts where there are any,
    /// else of members. Nothing where no more can be asked for.
    pub(super) fn beyond(&self, way: &Way) -> Option<Self> {
        let there = self.there_with(&way.parts);
        let mut more = self.clone();
        let own = self.parts.under(None).filter(|(at, _)| self.is(&there, *at)).count();
        match &mut *more.parts.any {
            _ if !self.parts.all.is_empty() && self.parts.fewest > 0 => {
                more.parts.fewest = u32::try_from(own).ok()?.checked_add(1)?;
            }
            [any] if self.parts.all.is_empty() => {
                let has = any.least.checked_add(self.spare(any, &way.seats))?;
                any.least = has.checked_add(1)?;
            }
            [] | [_, ..] => return None,
        }
        Some(more)
    }

    /// How many members more than it needs such a minimum has beside so many of each role.
    fn spare(&self, any: &AnyOf, seats: &[u32]) -> u32 {
        self.has(any, seats).saturating_sub(any.least)
    }

    /// Whether all that is chosen is which members of one minimum come.
    pub(super) fn any_of_all(&self) -> Option<&AnyOf> {
        let [any] = &*self.parts.any else { return None };
        self.parts.all.is_empty().then_some(any)
    }

    /// The parts that may be among those that a group needs to start, each with what it then consists of: those
    /// that take least first.
    pub(super) fn one_by_one(&self, guide: &Guide<'_>) -> Vec<Vec<u16>> {
        let first = |at| self.listed(Some(at), guide).0.into_iter().next();
        let mut sets: Vec<Vec<u16>> = self.may_join(None).filter_map(first).collect();
        sets.sort_by_cached_key(|parts| self.size_of(parts, guide));
        sets
    }

    /// How many more of the parts under one it needs to be whole, or of those under none the group to start.
    pub(super) fn lacking_of(&self, of: Option<u16>) -> usize {
        self.lacking_under(of, &self.there)
    }

    /// How many more of the parts under one must be there to make it whole, or of those under none to let the
    /// group start.
    pub(super) fn lacking_under(&self, of: Option<u16>, there: &[bool]) -> usize {
        let fewest = self.parts.fewest_under(of) as usize;
        match fewest {
            0 => 0,
            _ => {
                let under = self.parts.under(of).filter(|(at, _)| self.is(there, *at));
                fewest.saturating_sub(under.count())
            }
        }
    }

    /// The parts under one, or under none, that are not there and that nothing but room may keep out.
    pub(super) fn may_join(&self, of: Option<u16>) -> impl Iterator<Item = u16> {
        let under = self.parts.under(of).map(|(at, _)| at);
        under.filter(|at| self.is_open(*at) && !self.is(&self.there, *at))
    }

    /// Whether a group has enough members with this, its parts aside.
    pub(super) fn is_enough(&self, way: &Way) -> bool {
        let there = self.there_with(&way.parts);
        self.lacking_under(None, &there) == 0
            && self.any(&way.parts).all(|any| self.lacking(any, &way.seats) == 0)
    }

    /// The minima over several roles that hold for the group and for these parts.
    pub(super) fn any(&self, parts: &[u16]) -> impl Iterator<Item = &AnyOf> {
        let parts = parts.iter().filter_map(|at| self.parts.all.get(usize::from(*at)));
        parts.flat_map(|part| &part.any).chain(&self.parts.any)
    }

    /// How many members such a minimum lacks beside so many of each role that were missing.
    pub(super) fn lacking(&self, any: &AnyOf, seats: &[u32]) -> u32 {
        any.least.saturating_sub(self.has(any, seats))
    }

    /// How many members such a minimum has beside so many of each role that were missing.
    fn has(&self, any: &AnyOf, seats: &[u32]) -> u32 {
        let has = any.roles.iter().map(|role| {
            let at = usize::from(*role);
            let there = self.roles.get(at).map_or(0, |of| of.there);
            there.saturating_add(seats.get(at).copied().unwrap_or(0))
        });
        has.fold(0, u32::saturating_add)
    }

    /// By role, how many of those that are missing these parts have at least, beside so many.
    pub(super) fn least(&self, parts: &[u16], seated: &[u32]) -> Vec<u32> {
        let mut least = seated.to_vec();
        for (role, lacks) in parts.iter().flat_map(|at| self.lacks_of(usize::from(*at))) {
            if let Some(least) = least.get_mut(usize::from(*role)) {
                *least = (*least).max(*lacks);
            }
        }
        least
    }

    /// The parts that are not there, or that are under one that is not, by index.
    pub(super) fn closed(&self, there: &[bool]) -> impl Iterator<Item = (u16, &Part)> {
        let is_there = |at: u16| self.is(there, at);
        (0_u16..)
            .zip(&self.parts.all)
            .filter(move |(at, part)| !is_there(*at) || part.under.is_some_and(|of| !is_there(of)))
    }

    /// By role, how many may come with these parts: of a role of a part that is not there no more than others
    /// have at least of it.
    fn most(&self, parts: &[u16], least: &[u32]) -> Vec<u32> {
        let there = self.there_with(parts);
        let mut most: Vec<u32> =
            self.roles.iter().zip(least).map(|(of, least)| of.may.max(*least)).collect();
        for (role, _) in self.closed(&there).flat_map(|(_, part)| &part.least) {
            let at = usize::from(*role);
            if let (Some(most), Some(least)) = (most.get_mut(at), least.get(at)) {
                *most = *least;
            }
        }
        most
    }

    /// By role, how many of those that are missing may come.
    pub(super) fn may(&self) -> impl Iterator<Item = (u16, u32)> {
        (0_u16..).zip(&self.roles).map(|(role, of)| (role, of.must.max(of.may)))
    }

    /// The account of a group that does not start with these parts.
    pub(super) fn told_of(&self, why: &Arc<Why>, parts: &[u16]) -> Arc<Why> {
        let parts = parts.iter().filter_map(|at| self.parts.all.get(usize::from(*at)));
        let with_roles = parts.filter(|part| !part.least.is_empty());
        let chosen: Box<[Name]> = with_roles.map(|part| part.name.clone()).collect();
        if chosen.is_empty() || why.group().is_none() {
            return Arc::clone(why);
        }
        Arc::new(of_group(why, |facts| facts.chosen.clone_from(&chosen)))
    }

    fn kind(&self, at: u16) -> usize {
        self.kinds.get(usize::from(at)).copied().unwrap_or_default()
    }

    fn is(&self, of: &[bool], at: u16) -> bool {
        of.get(usize::from(at)).copied().unwrap_or(false)
    }
}

/// An account with something else said of the group in it.
pub(super) fn of_group(why: &Why, mut change: impl FnMut(&mut GroupFacts)) -> Why {
    let mut why = why.clone();
    for tally in &mut why.tally {
        if let Facts::Group(facts) = &mut tally.example.facts {
            change(facts);
        }
    }
    why
}

impl Listing<'_, '_> {
    /// Adds every choice of so many more of the candidates from here on.
    fn from(&mut self, from: usize, lacking: usize) {
        if lacking == 0 {
            match self.all.len() < self.most {
                true => self.all.push(self.chosen.clone()),
                false => self.cut = true,
            }
            return;
        }
        let kinds = self.left_out.len();
        for at in from..(self.candidates.len() + 1).saturating_sub(lacking) {
            if self.cut && self.all.len() >= self.most {
                break;
            }
            let Some(steps) = self.steps.checked_sub(1) else {
                self.cut = true;
                break;
            };
            self.steps = steps;
            let kind = self.choices.kind(self.candidates[at].0);
            if !self.left_out.contains(&kind) {
                self.with(at, lacking);
                self.left_out.push(kind);
            }
        }
        self.left_out.truncate(kinds);
    }

    /// Adds the first choice of so many alone, as far as one after the other leaves hope.
    fn first(&mut self, mut lacking: usize) {
        for at in 0..self.candidates.len() {
            if lacking == 0 {
                break;
            }
            let there = self.choices.there_with(&self.chosen);
            if !self.choices.may_come(self.candidates[at].0, &there) {
                continue;
            }
            let before = self.chosen.len();
            for parts in self.candidates[at].1.clone() {
                self.chosen.extend(parts);
                let seats = self.choices.least(&self.chosen, &self.choices.must());
                if !(self.guide.hopeless)(&seats) {
                    lacking -= 1;
                    break;
                }
                self.chosen.truncate(before);
            }
        }
        self.cut = true;
        if lacking == 0 {
            self.all.push(self.chosen.clone());
        }
    }

    /// Adds every choice with this candidate.
    fn with(&mut self, at: usize, lacking: usize) {
        let there = self.choices.there_with(&self.chosen);
        if !self.choices.may_come(self.candidates[at].0, &there) {
            return;
        }
        let sets = self.candidates[at].1.clone();
        for parts in &sets {
            let before = self.chosen.len();
            self.chosen.extend(parts);
            let seats = self.choices.least(&self.chosen, &self.choices.must());
            if !(self.guide.hopeless)(&seats) {
                self.from(at + 1, lacking - 1);
            }
            self.chosen.truncate(before);
        }
    }
}

impl Trial<'_> {
    /// The parts of a group and its roles, of whose members these wait.
    pub(super) fn choices(&self, slot: u32, openings: &[Opening]) -> Choices {
        let most = usize::try_from(self.effort.choices).unwrap_or(usize::MAX).max(1);
        let group = self.state.groups.at(slot);
        let parts = group.fact.as_ref().map_or_else(Parts::default, |fact| fact.parts.clone());
        let facts = group.fact.as_ref().map_or(&[][..], |fact| &fact.roles);
        let of_role = |(at, fact): (usize, &crate::facts::Role)| {
            let missing = self.state.missing_in_role(slot, at);
            let there = fact.max.saturating_sub(missing);
            let admitted = fact.admits.as_ref().map_or(u32::MAX, |admits| admits.most);
            let must = fact.min.saturating_sub(there).min(missing);
            (OfRole { there, must, may: missing.min(admitted) }, missing)
        };
        let (roles, missing): (Vec<OfRole>, Vec<u32>) =
            facts.iter().enumerate().map(of_role).unzip();
        let members = openings.len();
        let mut choices = Choices { parts, roles, members, most, ..Choices::default() };
        if choices.parts.all.is_empty() {
            return choices;
        }
        let lacks_of = |(role, least): &(u16, u32)| {
            let at = usize::from(*role);
            let there = choices.roles.get(at).map_or(0, |of| of.there);
            let missing = missing.get(at).copied().unwrap_or(0);
            (*role, least.saturating_sub(there).min(missing))
        };
        let all = &choices.parts.all;
        let lacks: Vec<Vec<(u16, u32)>> =
            all.iter().map(|part| part.least.iter().map(lacks_of).collect()).collect();
        let may: Vec<u32> = choices.may().map(|(_, may)| may).collect();
        let enough = |(role, lacks): &(u16, u32)| {
            may.get(usize::from(*role)).is_some_and(|may| may >= lacks)
        };
        let open = all.iter().zip(&lacks).map(|(part, lacks)| {
            let any = part.any.iter().all(|any| choices.lacking(any, &may) == 0);
            !part.held && any && lacks.iter().all(enough)
        });
        let open = open.collect();
        let mut there = vec![false; all.len()];
        let mut under = vec![0_u32; all.len()];
        // Who is under a part stands behind it.
        for (at, part) in all.iter().enumerate().rev() {
            let lacks = lacks[at].iter().any(|(_, count)| *count > 0)
                || part.any.iter().any(|any| choices.lacking(any, &[]) > 0);
            there[at] = !part.held && !lacks && under[at] >= part.fewest;
            if there[at]
                && let Some(sum) = part.under.and_then(|of| under.get_mut(usize::from(of)))
            {
                *sum += 1;
            }
        }
        let kinds = (0..all.len()).collect();
        let (after, shared) = sharing(all, choices.roles.len());
        choices = Choices { lacks, there, open, kinds, after, shared, ..choices };
        choices.kinds = self.kinds(slot, openings, &choices, &missing);
        choices
    }
}

/// By part those before it that have a role of it as well, and by role whether several parts have it.
fn sharing(parts: &[Part], roles: usize) -> (Vec<Vec<u16>>, Vec<bool>) {
    let mut of_role: Vec<Vec<u16>> = vec![Vec::new(); roles];
    let mut after = Vec::with_capacity(parts.len());
    for (at, part) in (0_u16..).zip(parts) {
        let mut before = Vec::new();
        for (role, _) in &part.least {
            let Some(of_role) = of_role.get_mut(usize::from(*role)) else { continue };
            before.extend(of_role.iter().copied().filter(|other| *other != at));
            of_role.push(at);
        }
        before.sort_unstable();
        before.dedup();
        after.push(before);
    }
    (after, of_role.into_iter().map(|parts| parts.len() > 1).collect())
}
