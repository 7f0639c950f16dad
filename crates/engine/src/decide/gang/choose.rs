//! Which parts of a group start with it, where not all of them must: every choice that is enough, and of
//! parts that are alike only the first ones.

use std::sync::Arc;

use super::super::trial::{Opening, Trial};
use crate::decision::{Facts, GroupFacts, Why};
use crate::facts::{Admits, LevelRule};
use crate::name::Name;
use crate::part::{Part, Parts};

/// Choices that are tried at most.
const WAYS_MAX: usize = 64;

/// Members of all choices together, beyond which only a few are tried.
const MEMBERS_MAX: usize = 65_536;

/// Choices that are tried however many members each has.
const FEW: usize = 4;

/// Steps that writing down the choices takes at most.
const STEPS_MAX: usize = 4096;

/// Parts that start together, by index and in order.
pub(super) type Way = Vec<u16>;

/// What is to be chosen among.
#[derive(Default)]
pub(super) struct Choices {
    parts: Parts,
    /// By part, how many members each of its roles lacks.
    lacks: Vec<Vec<(u16, u32)>>,
    /// By part, whether it is there already.
    there: Vec<bool>,
    /// By part, whether nothing but room may keep it out.
    open: Vec<bool>,
    /// By part, its kind: one of those that are like it stands for all.
    kinds: Vec<usize>,
    /// Members that wait.
    members: usize,
}

/// What was found of them.
#[derive(Default)]
pub(super) struct Ways {
    /// Each is enough, and none of its parts can be left out; in order.
    pub(super) all: Vec<Way>,
    /// There are more.
    pub(super) cut: bool,
}

/// Choices under way.
struct Listing<'c> {
    choices: &'c Choices,
    /// Who may be chosen, each with what it then consists of.
    candidates: Vec<(u16, Vec<Way>)>,
    chosen: Way,
    /// Kinds of which one was left out: later ones of them would only stand for it.
    left_out: Vec<usize>,
    steps: usize,
    most: usize,
    ways: Ways,
}

/// What a part is to every rule. Equal ones may stand for each other.
#[derive(PartialEq)]
struct Kind {
    /// It is like no other.
    own: Option<usize>,
    fewest: u32,
    open: bool,
    roles: Vec<RoleKind>,
    /// Rules on some roles: the rule, its other roles, and which of these it is on.
    rules: Vec<(LevelRule, Vec<usize>)>,
    under: Vec<usize>,
}

/// What a role of a part is.
#[derive(PartialEq)]
struct RoleKind {
    request: u32,
    /// How many of it are missing, and how many of those the part lacks.
    missing: u32,
    lacks: u32,
    admits: Option<Box<Admits>>,
    /// Where some rule asks for them.
    indexes: Vec<u32>,
}

impl Choices {
    /// All parts, in order.
    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// How many members of each role these parts lack together.
    pub(super) fn lacks(&self, way: &[u16]) -> Vec<(u16, u32)> {
        way.iter().filter_map(|at| self.lacks.get(usize::from(*at))).flatten().copied().collect()
    }

    /// By part, whether it is there with these.
    pub(super) fn there_with(&self, way: &[u16]) -> Vec<bool> {
        let mut there = self.there.clone();
        for at in way {
            if let Some(there) = there.get_mut(usize::from(*at)) {
                *there = true;
            }
        }
        there
    }

    /// Whether the parts are there without which one is not placed.
    pub(super) fn may_come(&self, at: u16, there: &[bool]) -> bool {
        let Some(part) = self.parts.all.get(usize::from(at)) else { return false };
        let is_there = |at: usize| there.get(at).copied().unwrap_or(false);
        let before = self.parts.all.iter().take(usize::from(at)).enumerate();
        part.under.is_none_or(|under| is_there(usize::from(under)))
            && before.filter(|(_, other)| other.shares_role(part)).all(|(at, _)| is_there(at))
    }

    /// All parts below one, in order.
    pub(super) fn below(&self, at: u16) -> Way {
        let mut below = Way::new();
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

    /// The choices by which a part becomes whole, that part with them; or the group can start.
    pub(super) fn ways(&self, of: Option<u16>) -> Ways {
        let lacking = self.lacking_under(of);
        let mut listing = Listing {
            choices: self,
            candidates: Vec::new(),
            chosen: of.filter(|at| !self.is(&self.there, *at)).into_iter().collect(),
            left_out: Vec::new(),
            steps: STEPS_MAX,
            most: (MEMBERS_MAX / self.members.max(1)).clamp(FEW, WAYS_MAX),
            ways: Ways::default(),
        };
        if lacking > 0 {
            for at in self.may_join(of) {
                let ways = self.ways(Some(at));
                listing.ways.cut |= ways.cut;
                listing.candidates.push((at, ways.all));
            }
            listing.candidates.retain(|(_, ways)| !ways.is_empty());
        }
        listing.from(0, lacking);
        let mut ways = listing.ways;
        ways.all.iter_mut().for_each(|way| way.sort_unstable());
        ways.all.sort();
        ways
    }

    /// How many more parts the group needs to start, and those that may be among them, each with what it then
    /// consists of: the smallest first.
    pub(super) fn one_by_one(&self) -> (usize, Vec<Way>) {
        let first = |at| self.ways(Some(at)).all.into_iter().next();
        let mut ways: Vec<Way> = self.may_join(None).filter_map(first).collect();
        ways.sort_by_key(|way| {
            self.lacks(way).iter().map(|(_, lacks)| u64::from(*lacks)).sum::<u64>()
        });
        (self.lacking_under(None), ways)
    }

    /// How many more of the parts under one must be there to make it whole, or of those under none to let the
    /// group start.
    fn lacking_under(&self, of: Option<u16>) -> usize {
        let fewest = self.parts.fewest_under(of) as usize;
        match fewest {
            0 => 0,
            _ => {
                let there = self.parts.under(of).filter(|(at, _)| self.is(&self.there, *at));
                fewest.saturating_sub(there.count())
            }
        }
    }

    /// The parts under one, or under none, that are not there and that nothing but room may keep out.
    fn may_join(&self, of: Option<u16>) -> impl Iterator<Item = u16> {
        let under = self.parts.under(of).map(|(at, _)| at);
        under.filter(|at| self.is_open(*at) && !self.is(&self.there, *at))
    }

    /// The account of a group that does not start with these parts.
    pub(super) fn told_of(&self, why: &Arc<Why>, way: &[u16]) -> Arc<Why> {
        let parts = way.iter().filter_map(|at| self.parts.all.get(usize::from(*at)));
        let with_roles = parts.filter(|part| !part.least.is_empty());
        let chosen: Box<[Name]> = with_roles.map(|part| part.name.clone()).collect();
        if chosen.is_empty() || why.group().is_none() {
            return Arc::clone(why);
        }
        Arc::new(of_group(why, |facts| facts.chosen.clone_from(&chosen)))
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

impl Listing<'_> {
    /// Adds every choice of so many more of the candidates from here on.
    fn from(&mut self, at: usize, lacking: usize) {
        if lacking == 0 {
            match self.ways.all.len() < self.most {
                true => self.ways.all.push(self.chosen.clone()),
                false => self.ways.cut = true,
            }
            return;
        }
        if self.candidates.len().saturating_sub(at) < lacking {
            return;
        }
        let Some(steps) = self.steps.checked_sub(1).filter(|_| self.ways.all.len() < self.most)
        else {
            self.ways.cut = true;
            return;
        };
        self.steps = steps;
        let (part, ways) = self.candidates[at].clone();
        let kind = self.choices.kinds.get(usize::from(part)).copied().unwrap_or_default();
        let there = self.choices.there_with(&self.chosen);
        if !self.left_out.contains(&kind) && self.choices.may_come(part, &there) {
            for way in &ways {
                let before = self.chosen.len();
                self.chosen.extend(way);
                self.from(at + 1, lacking - 1);
                self.chosen.truncate(before);
            }
        }
        self.left_out.push(kind);
        self.from(at + 1, lacking);
        self.left_out.pop();
    }
}

impl Trial<'_> {
    /// The parts of a group, of whose members these wait.
    pub(super) fn choices(&self, slot: u32, openings: &[Opening]) -> Choices {
        let group = self.state.groups.at(slot);
        let parts = group.fact.as_ref().map_or_else(Parts::default, |fact| fact.parts.clone());
        if parts.all.is_empty() {
            return Choices { parts, members: openings.len(), ..Choices::default() };
        }
        let roles = group.fact.as_ref().map_or(&[][..], |fact| &fact.roles);
        let missing = |at: u16| self.state.missing_in_role(slot, usize::from(at));
        let missing: Vec<u32> = (0..roles.len()).map(|at| missing(at as u16)).collect();
        let lacks_of = |(role, least): &(u16, u32)| {
            let at = usize::from(*role);
            let lacks = missing.get(at).map_or(0, |missing| {
                let there = roles[at].max.saturating_sub(*missing);
                least.saturating_sub(there).min(*missing)
            });
            (*role, lacks)
        };
        let lacks = parts.all.iter().map(|part| part.least.iter().map(lacks_of).collect());
        let lacks: Vec<Vec<(u16, u32)>> = lacks.collect();
        let kept_out =
            |(role, lacks): &(u16, u32)| *lacks > 0 && group.kept_out(*role, lacks - 1).is_some();
        let open = parts.all.iter().zip(&lacks);
        let open = open.map(|(part, lacks)| !part.held && !lacks.iter().any(kept_out)).collect();
        let mut there = vec![false; parts.all.len()];
        let mut under = vec![0_u32; parts.all.len()];
        // Who is under a part stands behind it.
        for (at, part) in parts.all.iter().enumerate().rev() {
            let lacks = lacks[at].iter().any(|(_, count)| *count > 0);
            there[at] = !part.held && !lacks && under[at] >= part.fewest;
            if there[at]
                && let Some(sum) = part.under.and_then(|of| under.get_mut(usize::from(of)))
            {
                *sum += 1;
            }
        }
        let kinds = (0..parts.all.len()).collect();
        let members = openings.len();
        let mut choices = Choices { parts, lacks, there, open, kinds, members };
        let chosen = |fewest: u32| fewest > 0;
        if chosen(choices.parts.fewest) || choices.parts.all.iter().any(|p| chosen(p.fewest)) {
            choices.kinds = self.kinds(slot, openings, &choices, &missing);
        }
        choices
    }

    /// By part its kind: one of those that are like it stands for all.
    fn kinds(
        &self,
        slot: u32,
        openings: &[Opening],
        choices: &Choices,
        missing: &[u32],
    ) -> Vec<usize> {
        let parts = &choices.parts.all;
        let mut kinds: Vec<usize> = (0..parts.len()).collect();
        // By part its roles and those of the parts under it.
        let mut roles: Vec<Vec<u16>> = vec![Vec::new(); parts.len()];
        let mut known: Vec<(Kind, usize)> = Vec::new();
        for at in (0..parts.len()).rev() {
            let own = parts[at].least.iter().map(|(role, _)| *role);
            let under: Vec<u16> =
                choices.parts.under(u16::try_from(at).ok()).map(|u| u.0).collect();
            let below = under.iter().flat_map(|under| roles[usize::from(*under)].clone());
            roles[at] = own.chain(below).collect();
            let under = under.iter().map(|under| kinds[usize::from(*under)]).collect();
            let kind = self.kind(slot, openings, choices, (at, &roles[at], under), missing);
            match known.iter().find(|(other, _)| *other == kind) {
                Some((_, of)) => kinds[at] = *of,
                None => known.push((kind, at)),
            }
        }
        kinds
    }

    fn kind(
        &self,
        slot: u32,
        openings: &[Opening],
        choices: &Choices,
        (at, roles, under): (usize, &[u16], Vec<usize>),
        missing: &[u32],
    ) -> Kind {
        let group = self.state.groups.at(slot);
        let fact = group.fact.as_ref();
        let facts = fact.map_or(&[][..], |fact| &fact.roles);
        let rules = fact.map_or(&[][..], |fact| &fact.rules);
        let by_index = rules.iter().any(|rule| rule.segment.is_some());
        let missing = |role: u16| missing.get(usize::from(role)).copied().unwrap_or(0);
        let of = |role: u16| openings.iter().filter(move |opening| opening.role == role);
        let begun = |role: &u16| {
            facts.get(usize::from(*role)).is_none_or(|fact| fact.max != missing(*role))
                || of(*role).any(|opening| !self.is_plain(opening))
        };
        let shared = |other: &Part| {
            !std::ptr::eq(other, &raw const choices.parts.all[at])
                && other.shares_role(&choices.parts.all[at])
        };
        let alone = roles.iter().any(begun) || choices.parts.all.iter().any(shared);
        let role = |(role, lacks): &(u16, u32)| {
            let at = usize::from(*role);
            let admits = facts.get(at).and_then(|fact| fact.admits.clone());
            let indexes = of(*role).filter(|_| by_index).map(|opening| opening.index).collect();
            let request = group.requests.get(at).copied().unwrap_or(u32::MAX);
            RoleKind { request, missing: missing(*role), lacks: *lacks, admits, indexes }
        };
        let partial = rules.iter().filter(|rule| !rule.roles.is_empty());
        let rule = |rule: &LevelRule| {
            let on: Vec<usize> =
                (0..roles.len()).filter(|at| rule.roles.contains(&roles[*at])).collect();
            let others = rule.roles.iter().copied().filter(|role| !roles.contains(role)).collect();
            (!on.is_empty()).then_some((LevelRule { roles: others, ..rule.clone() }, on))
        };
        Kind {
            own: alone.then_some(at),
            fewest: choices.parts.all[at].fewest,
            open: choices.open[at],
            roles: choices.lacks[at].iter().map(role).collect(),
            rules: partial.filter_map(rule).collect(),
            under,
        }
    }
}
