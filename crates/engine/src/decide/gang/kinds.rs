//! Which parts of a group are alike: where there is a choice, the first of them stands for all.

use super::super::trial::{Opening, Trial};
use super::choose::Choices;
use crate::facts::{Admits, LevelRule};
use crate::part::AnyOf;

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
    /// Minima over some roles: the fewest members, the other roles, and which of these it is over.
    any: Vec<(u32, Vec<u16>, Vec<usize>)>,
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

impl Trial<'_> {
    /// By part its kind: one of those that are like it stands for all.
    pub(super) fn kinds(
        &self,
        slot: u32,
        openings: &[Opening],
        choices: &Choices,
        missing: &[u32],
    ) -> Vec<usize> {
        let parts = &choices.parts().all;
        let mut kinds: Vec<usize> = (0..parts.len()).collect();
        // By part its roles and those of the parts under it.
        let mut roles: Vec<Vec<u16>> = vec![Vec::new(); parts.len()];
        let mut known: Vec<(Kind, usize)> = Vec::new();
        let by_role = by_role(openings, missing.len());
        for at in (0..parts.len()).rev() {
            let own = parts[at].least.iter().map(|(role, _)| *role);
            let under: Vec<u16> =
                choices.parts().under(u16::try_from(at).ok()).map(|u| u.0).collect();
            let below = under.iter().flat_map(|under| roles[usize::from(*under)].clone());
            roles[at] = own.chain(below).collect();
            let under = under.iter().map(|under| kinds[usize::from(*under)]).collect();
            let kind = self.kind(slot, &by_role, choices, (at, &roles[at], under), missing);
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
        by_role: &[&[Opening]],
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
        let of = |role: u16| by_role.get(usize::from(role)).copied().unwrap_or_default().iter();
        let begun = |role: &u16| {
            facts.get(usize::from(*role)).is_none_or(|fact| fact.max != missing(*role))
                || of(*role).any(|opening| !self.is_plain(opening))
        };
        let own = &choices.parts().all[at].least;
        let shared = own.iter().any(|(role, _)| choices.is_shared(usize::from(*role)));
        let alone = shared || roles.iter().any(begun);
        let role = |(role, lacks): &(u16, u32)| {
            let at = usize::from(*role);
            let admits = facts.get(at).and_then(|fact| fact.admits.clone());
            let indexes = of(*role).filter(|_| by_index).map(|opening| opening.index).collect();
            let request = group.requests.get(at).copied().unwrap_or(u32::MAX);
            RoleKind { request, missing: missing(*role), lacks: *lacks, admits, indexes }
        };
        let any = |any: &AnyOf| {
            let on: Vec<usize> =
                (0..roles.len()).filter(|at| any.roles.contains(&roles[*at])).collect();
            let others = any.roles.iter().copied().filter(|role| !roles.contains(role)).collect();
            (!on.is_empty()).then_some((any.least, others, on))
        };
        let of_all = choices.parts().any.iter();
        let partial = rules.iter().filter(|rule| !rule.roles.is_empty());
        let rule = |rule: &LevelRule| {
            let on: Vec<usize> =
                (0..roles.len()).filter(|at| rule.roles.contains(&roles[*at])).collect();
            let others = rule.roles.iter().copied().filter(|role| !roles.contains(role)).collect();
            (!on.is_empty()).then_some((LevelRule { roles: others, ..rule.clone() }, on))
        };
        Kind {
            own: alone.then_some(at),
            fewest: choices.parts().all[at].fewest,
            open: choices.is_open(at as u16),
            roles: choices.lacks_of(at).iter().map(role).collect(),
            rules: partial.filter_map(rule).collect(),
            any: of_all.chain(&choices.parts().all[at].any).filter_map(any).collect(),
            under,
        }
    }
}

/// By role its openings, which stand role by role.
fn by_role(openings: &[Opening], roles: usize) -> Vec<&[Opening]> {
    let mut by_role: Vec<&[Opening]> = vec![&[]; roles];
    for of in openings.chunk_by(|one, other| one.role == other.role) {
        let role = of.first().map_or(0, |opening| usize::from(opening.role));
        if let Some(by_role) = by_role.get_mut(role) {
            *by_role = of;
        }
    }
    by_role
}
