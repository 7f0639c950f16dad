//! What a group has beyond the members that must start together: parts of it, each whole or not at all,
//! and then single members as far as there is room.

use std::sync::Arc;

use super::super::trial::{Opening, Trial};
use super::revisit::PART;
use super::spans::Spans;
use super::{Arranged, Unplaced};
use crate::decision::{Facts, Short, Verdict, Why};
use crate::name::{GroupKey, Name};
use crate::part::Part;

/// What became of the members beyond those that must start.
pub(super) struct Grown {
    /// What is missing, if anything is.
    pub(super) short: Option<Short>,
    /// What is missing finds no place, and is not merely not found.
    pub(super) proven: bool,
}

/// What is told of what is missing.
#[derive(Default)]
struct Told {
    missing: u32,
    /// Who is missing, by role, and why; the first is told of the whole group.
    whys: Vec<(u16, Arc<Why>)>,
    parts: Vec<Name>,
    unproven: bool,
}

impl Trial<'_> {
    /// Places what a group may have beyond those that must start: parts in their order, each together,
    /// then member by member. Once parts that find no place have taken the steps of one search, no
    /// further part is tried.
    pub(super) fn grow(
        &mut self,
        key: &GroupKey,
        slot: u32,
        more: &[Opening],
        spans: &mut Spans<'_>,
        arranged: &mut Arranged,
    ) -> Grown {
        let fact = self.state.groups.at(slot).fact.as_ref();
        let parts = fact.map_or_else(Vec::new, |fact| fact.parts.clone());
        let in_roles = self.in_roles(slot);
        let mut left = self.effort.steps;
        let mut told = Told::default();
        let mut there: Vec<bool> = Vec::with_capacity(parts.len());
        let mut rest = more.to_vec();
        for part in &parts {
            let lacks = lacks(part, &in_roles);
            let is_of = |opening: &Opening| {
                lacks.iter().any(|(role, count)| *role == opening.role && opening.before < *count)
            };
            // What a part before it took is missing of this one as well.
            let runs = !more.iter().any(is_of);
            let (of, others): (Vec<Opening>, Vec<Opening>) = rest.into_iter().partition(is_of);
            rest = others;
            let may = comes_after(&parts[..there.len()], &there, part);
            let whole = if runs || may && of.is_empty() {
                true
            } else if may && (left > 0 || told.whys.is_empty()) {
                let tried = self.part(slot, (part, &of), spans, arranged, &mut told);
                left = left.saturating_sub(tried.err().unwrap_or(0));
                tried.is_ok()
            } else {
                told.unproven |= may;
                false
            };
            if !whole {
                told.missing += of.len() as u32;
                told.parts.push(part.name.clone());
            }
            there.push(whole);
        }
        let is_there = |at: u16| there.get(usize::from(at)).is_none_or(|there| *there);
        let lacking = parts
            .iter()
            .zip(&there)
            .filter(|(part, there)| !**there || part.after.is_some_and(|at| !is_there(at)));
        let lacking = lacking.flat_map(|(part, _)| part.least.iter().map(|(role, _)| *role));
        let mut full: Vec<u16> = lacking.collect();
        for opening in &rest {
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
        self.told(key, told)
    }

    /// Places a part whole; where it finds no place, the steps that it is charged for trying.
    fn part(
        &mut self,
        slot: u32,
        (part, openings): (&Part, &[Opening]),
        spans: &mut Spans<'_>,
        arranged: &mut Arranged,
        told: &mut Told,
    ) -> Result<(), u64> {
        let Some(first) = openings.first() else { return Ok(()) };
        let before = self.spent;
        let kept_out = openings.iter().find_map(|opening| self.kept_out(slot, opening));
        let start = self.mark();
        let tried = match kept_out {
            Some(why) => Err(Unplaced { why, proven: true }),
            None => self.arrange(slot, openings, spans),
        };
        match tried {
            Ok(Arranged { found, proof }) => {
                self.seated(openings, &found, spans);
                arranged.found.extend(found);
                arranged.proof = arranged.proof.max(proof);
                Ok(())
            }
            Err(Unplaced { why, proven }) => {
                self.roll_back(start);
                let why = of_part(&why, &part.name, spans.seats());
                told.unproven |= !proven;
                let mut roles: Vec<u16> = openings.iter().map(|opening| opening.role).collect();
                roles.dedup();
                // The one that stands in the way is told of first.
                roles.sort_by_key(|role| (*role != first.role, *role));
                told.whys.extend(roles.into_iter().map(|role| (role, why.clone())));
                // Not all steps of a search look at a node.
                let least = if proven { openings.len() as u64 } else { self.effort.steps / PART };
                Err(self.spent.saturating_sub(before).max(least))
            }
        }
    }

    /// By role, how many members are there already.
    fn in_roles(&self, slot: u32) -> Vec<u32> {
        let roles = self.state.groups.at(slot).fact.as_ref().map_or(&[][..], |fact| &fact.roles);
        let there = roles
            .iter()
            .enumerate()
            .map(|(at, role)| role.max.saturating_sub(self.state.missing_in_role(slot, at)));
        there.collect()
    }

    /// Notes of the roles after the first what stands in their way.
    fn told(&mut self, key: &GroupKey, told: Told) -> Grown {
        let Told { missing, whys, parts, unproven } = told;
        let mut whys = whys.into_iter();
        let short = whys.next().map(|(first, why)| {
            for (role, other) in
                whys.filter(|(role, other)| *role != first && !Arc::ptr_eq(other, &why))
            {
                self.role_waits(key, role, Verdict::Waits(other));
            }
            Short { missing, why, parts: parts.into() }
        });
        Grown { short, proven: !unproven }
    }
}

/// How many members a part lacks of each of its roles, of which so many are there.
fn lacks(part: &Part, in_roles: &[u32]) -> Vec<(u16, u32)> {
    let there = |role: u16| in_roles.get(usize::from(role)).copied().unwrap_or(u32::MAX);
    part.least.iter().map(|(role, least)| (*role, least.saturating_sub(there(*role)))).collect()
}

/// Whether the parts are there after which this one comes; `there` says it of all before it.
fn comes_after(before: &[Part], there: &[bool], part: &Part) -> bool {
    (0_u16..)
        .zip(before)
        .zip(there)
        .all(|((at, one), there)| *there || part.after != Some(at) && !one.shares_role(part))
}

/// The account of a part beside so many members that are seated.
fn of_part(why: &Arc<Why>, name: &Name, seated: u32) -> Arc<Why> {
    let mut why = Why::clone(why);
    for tally in &mut why.tally {
        if let Facts::Group(facts) = &mut tally.example.facts {
            facts.fit = facts.fit.saturating_sub(seated);
            facts.of = facts.of.saturating_sub(seated);
            facts.running = 0;
            facts.beyond = true;
            facts.part = Some(name.clone());
        }
    }
    Arc::new(why)
}
