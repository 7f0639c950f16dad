//! The cluster as it would be with every pod gone, and every node and device healed: what a group as
//! a whole is refused by.
//!
//! What a single request meets there is worked out without building it
//! ([`decide::refuse`](crate::decide)).

use std::collections::BTreeSet;

use super::State;
use crate::change::Change;
use crate::check::fact::healed;
use crate::facts::{Claim, ClaimUse, Gate, Group, Member, Phase, Pool, Traits};
use crate::name::{ClaimKey, Shared};
use crate::part::Part;

impl State {
    /// Nodes and devices alone, healed.
    pub(crate) fn emptied(&self) -> Self {
        let mut ideal = Self {
            matches: self.matches.clone(),
            topologies: self.topologies.clone(),
            domains: self.domains.clone(),
            ..Self::default()
        };
        let mut changes: Vec<Change> = Vec::new();
        for (_, key, row) in self.nodes.iter() {
            let Some(fact) = &row.fact else { continue };
            changes.push(Change::Node(key.clone(), Some(healed(fact))));
            changes.push(Change::Links(key.clone(), row.links.clone()));
        }
        let pools = self.pools.iter().filter_map(|(_, key, row)| Some((key, row.fact.as_ref()?)));
        changes.extend(pools.map(|(key, fact)| Change::Pool(key.clone(), Some(healthy(fact)))));
        ideal.apply(changes);
        ideal
    }

    /// A group with its pods that wait, free to start, and its claims, which hold nothing: what an
    /// emptied state is asked about. Then the changes that take it away again.
    pub(crate) fn of_group(&self, slot: u32) -> (Vec<Change>, Vec<Change>) {
        let row = self.groups.at(slot);
        let Some(fact) = &row.fact else { return <_>::default() };
        let key = self.groups.key(slot);
        let mut group = Group { gate: Gate::Open, ..fact.clone() };
        // What no pod is of, and no part, stays as it is: there is no gate to lift.
        let is_empty = |part: &Part| part.least.is_empty() && part.fewest == 0;
        group.parts.all.iter_mut().for_each(|part| part.held &= is_empty(part));
        for (at, role) in group.roles.iter_mut().enumerate() {
            role.admits = None;
            // Members that run may be a role of which nothing is missing: they are needed as well, but
            // not those that are on their way out, nor those that others may stand for.
            let parts = group.parts.all.iter().flat_map(|part| &part.least).map(|(of, _)| of);
            let any = group.parts.any.iter().flat_map(|any| &any.roles);
            if role.min == 0 && !parts.chain(any).any(|of| usize::from(*of) == at) {
                let members = row.members.iter().filter_map(|m| self.members.at(*m).fact.as_ref());
                let of_role = members.filter(|fact| usize::from(fact.role) == at);
                role.min = of_role.filter(|m| matches!(m.phase, Phase::Bound(_))).count() as u32;
            }
        }
        let mut there = vec![Change::Group(key.clone(), Some(group))];
        let mut gone = vec![Change::Group(key.clone(), None)];
        let mut claims: BTreeSet<&ClaimKey> = BTreeSet::new();
        for member in &row.members {
            let Some(fact) = &self.members.at(*member).fact else { continue };
            if fact.phase.is_pending() {
                let key = self.members.key(*member);
                let free = Member { nominated: None, ..fact.clone() };
                there.push(Change::Member(key.clone(), Some(free)));
                gone.push(Change::Member(key.clone(), None));
                claims.extend(fact.claims.iter().flatten());
            }
        }
        for request in &row.requests {
            claims.extend(self.request(*request).claims.iter().filter_map(ClaimUse::shared));
        }
        for key in claims {
            let Some(fact) = self.claims.find(key).and_then(|row| row.fact.as_ref()) else {
                continue;
            };
            let free = Claim { held: None, users: Vec::new(), failed: None, ..fact.clone() };
            there.push(Change::Claim(key.clone(), Some(free)));
            gone.push(Change::Claim(key.clone(), None));
        }
        (there, gone)
    }
}

fn healthy(pool: &Pool) -> Pool {
    let mut pool = pool.clone();
    for device in pool.slices.iter_mut().flat_map(|slice| &mut slice.devices) {
        if !device.traits.taints.is_empty() {
            let healthy = Traits { taints: Box::default(), ..(*device.traits).clone() };
            device.traits = Shared::new(healthy);
        }
    }
    pool
}
