//! What a group asks for in sum and what there is: one look at the nodes, from which it is told of every
//! choice of its members whether counting leaves it any hope.
//!
//! It says only of what there is no place for. What pods mean to each other is not counted here but by
//! [`is_counted`](Trial::is_counted), choice by choice.

use std::cmp::Reverse;

use super::super::trial::{Opening, Trial};
use super::Class;
use super::choose::Choices;
use super::counted::allowed;
use super::proof::Amounts;
use super::spans::{Bound, Reach, Spans, Together};
use crate::facts::{NodeRules, Padded, Request, Resources};
use crate::part::AnyOf;

/// Roles, those that ask most, for whose room by number is asked beside what they ask in sum.
const ROOMS_MAX: usize = 64;

/// Groups of roles that are kept together whose sums are made.
const SCOPES_MAX: usize = 64;

/// The whole of what there is of something, in which what a member takes of it is measured.
const WHOLE: i128 = 1_000_000;

/// So much of each thing that is counted: first of what nodes count, then of the room for each of some roles.
type Row = Vec<i64>;

/// What is known of a group's members and of nodes by counting.
pub(super) struct Sums {
    /// By role, what one member asks. Of the room for a role one that asks no less takes a seat.
    asked: Vec<Row>,
    /// By role, how much of all that there is one member takes.
    sizes: Vec<u64>,
    /// Roles by what they ask: those of one ladder differ in amounts alone, and each step asks no less than
    /// those before it.
    ladders: Vec<Vec<Vec<u16>>>,
    scopes: Vec<Scope>,
}

/// Members that must be in one domain, all of the group or those of some roles.
struct Scope {
    /// By role, whether it is about it.
    about: Vec<bool>,
    /// What is free in each domain; those are left out that have no more of anything than another.
    free: Vec<Row>,
}

/// What the members of a role ask.
struct Asking {
    /// Amounts and where they may go aside.
    anywhere: Request,
    /// To which nodes they are let by themselves; none where they differ in that.
    may_go: Option<(NodeRules, Vec<Reach>)>,
    /// By which rules they are kept together with others.
    bounds: Vec<Bound>,
    /// Segment by segment.
    in_segments: bool,
    amounts: Amounts,
}

impl Sums {
    /// Whether so many of each role may find a place together.
    pub(super) fn hold(&self, seats: &[u32]) -> bool {
        self.scopes
            .iter()
            .all(|scope| scope.is_empty(seats) || scope.holds(&self.sum(scope, seats)))
    }

    /// Whether it may be that a group starts, going by those of its members that ask least.
    pub(super) fn may_start(&self, choices: &Choices) -> bool {
        let out = self.parts_that_are_out(choices);
        let must = choices.must();
        self.scopes.iter().all(|scope| {
            let Some(parts) = self.least_under(scope, choices, None, &out) else { return false };
            let mut least = parts;
            for any in &choices.parts().any {
                most_of(&mut least, &self.least_of_any(scope, choices, any, &must, &[]));
            }
            add(&mut least, &self.sum(scope, &must));
            least.iter().all(|amount| *amount == 0) || scope.holds(&least)
        })
    }

    /// How many domains are compared to tell whether so many hold.
    pub(super) fn domains(&self) -> u64 {
        self.scopes.iter().map(|scope| scope.free.len() as u64).sum()
    }

    /// How much a member of a role takes, by role.
    pub(super) fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Whether for each of some members there is another of the others that asks no less and may go nowhere
    /// else: where the first find no place, the others find none.
    pub(super) fn ask_no_less(&self, others: &[u32], than: &[u32]) -> bool {
        let count = |of: &[u32], step: &[u16]| -> u64 {
            step.iter()
                .map(|role| u64::from(of.get(usize::from(*role)).copied().unwrap_or(0)))
                .sum()
        };
        self.ladders.iter().all(|ladder| {
            let (mut first, mut second) = (0, 0);
            ladder.iter().rev().all(|step| {
                first += count(than, step);
                second += count(others, step);
                first <= second
            })
        })
    }

    /// Whether all of these roles are on one ladder: of so many of them those that ask least find a place, if
    /// any find one.
    pub(super) fn are_one_ladder(&self, roles: &[u16]) -> bool {
        self.ladders
            .iter()
            .any(|ladder| roles.iter().all(|role| ladder.iter().any(|step| step.contains(role))))
    }

    /// What so many of each role ask, those aside that a scope is not about.
    fn sum(&self, scope: &Scope, seats: &[u32]) -> Row {
        let mut sum = self.nothing();
        for (role, count) in
            seats.iter().enumerate().filter(|(at, n)| **n > 0 && scope.is_about(*at))
        {
            for (sum, amount) in sum.iter_mut().zip(self.asked.get(role).into_iter().flatten()) {
                *sum = sum.saturating_add(amount.saturating_mul(i64::from(*count)));
            }
        }
        sum
    }

    fn nothing(&self) -> Row {
        vec![0; self.asked.first().map_or(0, Vec::len)]
    }

    /// By part, whether it finds no place even alone with those that start whatever is chosen.
    fn parts_that_are_out(&self, choices: &Choices) -> Vec<bool> {
        let all = &choices.parts().all;
        let mut out = vec![false; all.len()];
        // Who is under a part stands behind it.
        for at in (0..all.len()).rev() {
            let roles = choices.roles_with_those_below(at as u16);
            let about =
                |scope: &&Scope| roles.iter().any(|role| scope.is_about(usize::from(*role)));
            out[at] = !self.scopes.iter().filter(about).all(|scope| {
                let Some(mut least) = self.least_of(scope, choices, at as u16, &out) else {
                    return false;
                };
                let nothing = least.iter().all(|amount| *amount == 0);
                add(&mut least, &self.sum(scope, &choices.must()));
                nothing || scope.holds(&least)
            });
        }
        out
    }

    /// The least that the parts ask beyond what starts whatever is chosen that must come under one, or under
    /// none; nothing where too few may come.
    fn least_under(
        &self,
        scope: &Scope,
        choices: &Choices,
        of: Option<u16>,
        out: &[bool],
    ) -> Option<Row> {
        let count = choices.lacking_of(of);
        if count == 0 {
            return Some(self.nothing());
        }
        let open = choices.may_join(of).filter(|at| !out[usize::from(*at)]);
        let parts: Vec<Row> =
            open.filter_map(|at| self.least_of(scope, choices, at, out)).collect();
        (parts.len() >= count).then(|| {
            let of = |key: usize| {
                let mut of: Vec<i64> = parts.iter().map(|part| part[key]).collect();
                of.sort_unstable();
                of.into_iter().take(count).fold(0, i64::saturating_add)
            };
            (0..self.nothing().len()).map(of).collect()
        })
    }

    /// The same of one part with those under it. Members of roles that several parts have are not counted: who
    /// comes with one is there for the other.
    fn least_of(&self, scope: &Scope, choices: &Choices, at: u16, out: &[bool]) -> Option<Row> {
        let must = choices.must();
        let mut own = vec![0; must.len()];
        for (role, lacks) in choices.lacks_of(usize::from(at)) {
            let role = usize::from(*role);
            if let (Some(own), Some(must)) = (own.get_mut(role), must.get(role))
                && !choices.is_shared(role)
            {
                *own = lacks.saturating_sub(*must);
            }
        }
        let mut least = self.nothing();
        let with: Vec<u32> = own.iter().zip(&must).map(|(own, must)| own + must).collect();
        for any in choices.parts().all.get(usize::from(at)).into_iter().flat_map(|part| &part.any) {
            let shared: Vec<u16> = any
                .roles
                .iter()
                .copied()
                .filter(|role| choices.is_shared(usize::from(*role)))
                .collect();
            most_of(&mut least, &self.least_of_any(scope, choices, any, &with, &shared));
        }
        add(&mut least, &self.sum(scope, &own));
        add(&mut least, &self.least_under(scope, choices, Some(at), out)?);
        Some(least)
    }

    /// The least that the members ask that such a minimum lacks beside so many of each role; those of some
    /// roles are taken to ask nothing.
    fn least_of_any(
        &self,
        scope: &Scope,
        choices: &Choices,
        any: &AnyOf,
        with: &[u32],
        free: &[u16],
    ) -> Row {
        let lacking = u64::from(choices.lacking(any, with));
        let open: Vec<(u16, u64)> = choices
            .may()
            .filter(|(role, _)| any.roles.contains(role))
            .map(|(role, may)| {
                let there = with.get(usize::from(role)).copied().unwrap_or(0);
                (role, u64::from(may.saturating_sub(there)))
            })
            .collect();
        let of = |key: usize| {
            let asks = |role: u16| match free.contains(&role) || !scope.is_about(usize::from(role))
            {
                true => 0,
                false => self.asked.get(usize::from(role)).map_or(0, |asked| asked[key]),
            };
            let mut all: Vec<(i64, u64)> = open.iter().map(|(role, n)| (asks(*role), *n)).collect();
            all.sort_unstable();
            let mut left = lacking;
            all.into_iter().fold(0_i64, |sum, (amount, count)| {
                let come = count.min(left);
                left -= come;
                sum.saturating_add(amount.saturating_mul(i64::try_from(come).unwrap_or(i64::MAX)))
            })
        };
        (0..self.nothing().len()).map(of).collect()
    }
}

impl Scope {
    fn is_about(&self, role: usize) -> bool {
        self.about.get(role).copied().unwrap_or(false)
    }

    /// Whether none of these is one of it.
    fn is_empty(&self, seats: &[u32]) -> bool {
        !seats.iter().enumerate().any(|(role, count)| *count > 0 && self.is_about(role))
    }

    /// Whether a domain has so much free. What is not asked for is enough, however little there is.
    fn holds(&self, asked: &Row) -> bool {
        let fits = |free: &Row| asked.iter().zip(free).all(|(n, free)| *n == 0 || n <= free);
        self.free.iter().any(fits)
    }

    /// Leaves out the domains that have no more of anything than another.
    fn thin_out(&mut self) {
        let mut free = std::mem::take(&mut self.free);
        free.sort_unstable_by(|one, other| other.cmp(one));
        for amounts in free {
            let within = |other: &Row| amounts.iter().zip(other).all(|(one, other)| one <= other);
            if !self.free.iter().any(within) {
                self.free.push(amounts);
            }
        }
    }
}

fn add(to: &mut Row, more: &Row) {
    to.iter_mut().zip(more).for_each(|(sum, amount)| *sum = sum.saturating_add(*amount));
}

fn most_of(of: &mut Row, other: &Row) {
    of.iter_mut().zip(other).for_each(|(one, other)| *one = (*one).max(*other));
}

/// Roles whose members ask the same wherever they may go: what one takes another may take.
struct Family {
    roles: Vec<usize>,
    /// By node slot, how many of them it takes.
    room: Vec<u32>,
}

impl Trial<'_> {
    /// What counting knows of a group's members, and of the nodes that they may be on.
    pub(super) fn sums(
        &mut self,
        slot: u32,
        openings: &[Opening],
        roles: usize,
        spans: &Spans<'_>,
    ) -> Sums {
        let first = self.first_of_their_kind(openings, roles, spans);
        let askings: Vec<Asking> =
            (0..roles).map(|role| self.asking(slot, role, &first[role], spans)).collect();
        let mut keys: Vec<u32> = askings.iter().flat_map(|one| one.amounts.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let all = self.ranks.slots().to_vec();
        let total = self.free_of(all.iter().copied(), &keys);
        let mut sizes: Vec<u64> = askings
            .iter()
            .map(|one| {
                let of =
                    keys.iter().zip(&total).map(|(key, sum)| share(one.amounts.of(*key), *sum));
                of.fold(0, u64::saturating_add)
            })
            .collect();
        let mut families = families(&askings);
        families.sort_by_key(|family| Reverse(family.roles.first().map(|role| sizes[*role])));
        let mut scopes = scopes(spans, &all, roles);
        let wanted = u32::try_from(openings.len()).unwrap_or(u32::MAX);
        let mut usable = vec![vec![false; self.state.nodes.slots() as usize]; scopes.len()];
        let mut rooms: Vec<Vec<Row>> =
            scopes.iter().map(|(_, domains)| vec![Row::new(); domains.len()]).collect();
        for (at, family) in families.iter_mut().enumerate() {
            let of_all = self.fill_room(slot, family, &first, (wanted, spans));
            for role in &family.roles {
                sizes[*role] = sizes[*role].saturating_add(share(1, of_all));
            }
            for (((scope, domains), usable), rooms) in
                scopes.iter().zip(&mut usable).zip(&mut rooms)
            {
                let about = family.roles.iter().any(|role| scope.is_about(*role));
                for (domain, room) in domains.iter().zip(rooms) {
                    let nodes = if about { domain.as_slice() } else { &[] };
                    let nodes =
                        nodes.iter().map(|node| (*node as usize, family.room[*node as usize]));
                    let mut sum = 0;
                    for (node, here) in nodes.filter(|(_, here)| *here > 0) {
                        usable[node] = true;
                        sum += i64::from(here);
                    }
                    if at < ROOMS_MAX {
                        // What is none of this scope's is not asked of it.
                        room.push(if about { sum } else { i64::MAX });
                    }
                }
            }
            family.room = Vec::new();
        }
        families.truncate(ROOMS_MAX);
        for (((scope, domains), usable), rooms) in scopes.iter_mut().zip(&usable).zip(rooms) {
            for (domain, room) in domains.iter().zip(rooms) {
                let nodes = domain.iter().copied().filter(|node| usable[*node as usize]);
                scope.free.push([self.free_of(nodes, &keys), room].concat());
            }
            scope.thin_out();
        }
        let asked = |one: &Asking| {
            let plain = keys.iter().map(|key| one.amounts.of(*key));
            let of = families.iter().filter_map(|family| askings.get(*family.roles.first()?));
            plain.chain(of.map(|of| i64::from(of.is_met_by(one)))).collect()
        };
        let asked = askings.iter().map(asked).collect();
        let scopes = scopes.into_iter().map(|(scope, _)| scope).collect();
        Sums { asked, ladders: ladders(&askings, &sizes), sizes, scopes }
    }

    /// By role, its openings; of those that are let to the same nodes and have nothing of their own the first.
    fn first_of_their_kind<'o>(
        &self,
        openings: &'o [Opening],
        roles: usize,
        spans: &Spans<'_>,
    ) -> Vec<Vec<&'o Opening>> {
        let mut first: Vec<Vec<&Opening>> = vec![Vec::new(); roles];
        for opening in openings {
            let Some(of) = first.get_mut(usize::from(opening.role)) else { continue };
            let plain = |one: &Opening| self.is_plain(one) && !self.stands_apart(one);
            let same = |one: &&&Opening| plain(one) && spans.bounds(one) == spans.bounds(opening);
            if !plain(opening) || !of.iter().any(|one| same(&one)) {
                of.push(opening);
            }
        }
        first
    }

    fn asking(&self, slot: u32, role: usize, first: &[&Opening], spans: &Spans<'_>) -> Asking {
        let request = self.state.groups.at(slot).requests[role];
        let fact: &Request = self.state.request(request);
        let anywhere = Request {
            resources: Resources::default(),
            node: NodeRules::default(),
            padded: Padded::default(),
            scored: None,
            ..fact.clone()
        };
        let may_go = match first {
            [only] if self.is_plain(only) && !self.stands_apart(only) => {
                Some((fact.node.clone(), spans.reach(only)))
            }
            [] | [_, ..] => None,
        };
        let bounds = first.first().map_or_else(Vec::new, |one| spans.bounds(one));
        let in_segments = first.iter().any(|one| spans.segment_of(one).is_some());
        Asking { anywhere, may_go, bounds, in_segments, amounts: self.charged(request) }
    }

    /// Counts how many of a family each node takes, and all of them together.
    fn fill_room(
        &mut self,
        slot: u32,
        family: &mut Family,
        first: &[Vec<&Opening>],
        (wanted, spans): (u32, &Spans<'_>),
    ) -> i64 {
        let all = self.ranks.slots().to_vec();
        family.room = vec![0; self.state.nodes.slots() as usize];
        for opening in family.roles.iter().flat_map(|role| &first[*role]) {
            let one = std::slice::from_ref(*opening);
            // Where something stands in its way before any node is looked at there is no room.
            let Some(class) = self.class(slot, one) else { continue };
            for room in self.rooms_of(&Class { wanted, ..class }, &allowed(spans, opening, &all)) {
                let of = &mut family.room[room.slot as usize];
                *of = room.most.max(*of);
            }
        }
        family.room.iter().map(|room| i64::from(*room)).sum()
    }

    fn free_of(&self, nodes: impl IntoIterator<Item = u32>, keys: &[u32]) -> Row {
        let free = self.free(nodes, keys);
        keys.iter().map(|key| free.of(*key)).collect()
    }
}

impl Asking {
    /// Whether a member of the other takes a seat of the room for members of this one.
    fn is_met_by(&self, other: &Self) -> bool {
        let asks_no_less =
            || self.amounts.keys().all(|key| self.amounts.of(key) <= other.amounts.of(key));
        let goes_where = || self.may_go.is_some() && self.may_go == other.may_go;
        self.is_like(other) || asks_no_less() && goes_where() && self.anywhere == other.anywhere
    }

    /// Whether they ask the same wherever they may go.
    fn is_like(&self, other: &Self) -> bool {
        self.amounts == other.amounts && self.anywhere == other.anywhere
    }
}

/// Who must be together, with the domains in one of which they must be; what is free there is still to be told.
fn scopes(spans: &Spans<'_>, nodes: &[u32], roles: usize) -> Vec<(Scope, Vec<Vec<u32>>)> {
    let all = spans.scopes(nodes, SCOPES_MAX).into_iter();
    let scope = |(of, domains): Together| {
        let about = |role: usize| of.is_empty() || of.contains(&(role as u16));
        (Scope { about: (0..roles).map(about).collect(), free: Vec::new() }, domains)
    };
    all.map(scope).collect()
}

/// Roles that ask the same, in order.
fn families(askings: &[Asking]) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for (role, one) in askings.iter().enumerate() {
        let is_of = |family: &&mut Family| {
            family.roles.first().is_some_and(|first| askings[*first].is_like(one))
        };
        match families.iter_mut().find(is_of) {
            Some(family) => family.roles.push(role),
            None => families.push(Family { roles: vec![role], room: Vec::new() }),
        }
    }
    families
}

/// Roles by what they ask, each ladder from those that ask least. Roles of which neither asks no less than
/// the other are on two.
fn ladders(askings: &[Asking], sizes: &[u64]) -> Vec<Vec<Vec<u16>>> {
    let mut order: Vec<usize> = (0..askings.len()).collect();
    order.sort_by_key(|role| sizes[*role]);
    let mut ladders: Vec<Vec<Vec<u16>>> = Vec::new();
    for role in order {
        let one = &askings[role];
        let last = |ladder: &Vec<Vec<u16>>| ladder.last()?.first().map(|role| usize::from(*role));
        let below = |ladder: &&mut Vec<Vec<u16>>| {
            let below = last(ladder).map(|last| &askings[last]);
            below.is_some_and(|below| {
                one.may_go.is_some()
                    && below.may_go == one.may_go
                    && below.bounds == one.bounds
                    && !one.in_segments
                    && below.is_met_by(one)
            })
        };
        match ladders.iter_mut().find(below) {
            Some(ladder) => {
                let same = last(ladder).is_some_and(|last| askings[last].is_like(one));
                match ladder.last_mut().filter(|_| same) {
                    Some(step) => step.push(role as u16),
                    None => ladder.push(vec![role as u16]),
                }
            }
            None => ladders.push(vec![vec![role as u16]]),
        }
    }
    ladders
}

/// How much of all that there is so much is.
fn share(amount: i64, total: i64) -> u64 {
    if amount <= 0 {
        return 0;
    }
    let share = (i128::from(amount) * WHOLE).checked_div(i128::from(total.max(0)));
    share.and_then(|share| u64::try_from(share).ok()).unwrap_or(u64::MAX / 1024)
}
