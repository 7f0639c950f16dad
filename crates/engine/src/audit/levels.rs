//! Rules of topology, from the facts alone: what must be together is in one domain.

use std::collections::{BTreeMap, BTreeSet};

use super::Audit;
use crate::facts::{LevelRule, Phase, Seat};
use crate::name::{Name, NodeKey};

/// The members that a rule keeps together: role and segment.
type Part = (u16, u32);

impl Audit {
    /// Whether every required rule of a group holds for its seats, together with its members that run.
    pub(super) fn keeps_levels(&self, slot: u32, seats: &[Seat]) -> bool {
        let row = self.state.groups.at(slot);
        let running = row.members.iter().filter_map(|member| {
            let fact = self.state.members.at(*member).fact.as_ref()?;
            let Phase::Bound(node) = &fact.phase else { return None };
            let here = self.state.nodes.find(node).is_some_and(|row| row.fact.is_some());
            here.then(|| (fact.role, fact.index.unwrap_or(0), node))
        });
        let running: Vec<(u16, u32, &NodeKey)> = running.collect();
        let rules = row.fact.iter().flat_map(|fact| &fact.rules).filter(|rule| rule.required);
        rules.into_iter().all(|rule| self.keeps(rule, seats, &running))
    }

    fn keeps(&self, rule: &LevelRule, seats: &[Seat], running: &[(u16, u32, &NodeKey)]) -> bool {
        let part = |role: u16, index: u32| -> Option<Part> {
            let about = rule.roles.is_empty() || rule.roles.contains(&role);
            about.then(|| rule.segment.map_or((0, 0), |size| (role, index / size.max(1))))
        };
        let mut domains: BTreeMap<Part, BTreeSet<Option<Vec<Name>>>> = BTreeMap::new();
        for seat in seats {
            if let Some(part) = part(seat.role, seat.index) {
                domains.entry(part).or_default().insert(self.domain(rule, &seat.node));
            }
        }
        // What runs already may break a rule; what comes may not.
        for (role, index, node) in running {
            if let Some(all) = part(*role, *index).and_then(|part| domains.get_mut(&part)) {
                all.insert(self.domain(rule, node));
            }
        }
        domains.values().all(|all| all.len() == 1 && !all.contains(&None))
    }

    /// A node's domain, as its path from the widest level down; none where it is in none.
    fn domain(&self, rule: &LevelRule, node: &NodeKey) -> Option<Vec<Name>> {
        let level = usize::from(rule.level);
        self.state.topologies.get(&rule.topology)?.levels.get(level)?;
        let domains = self.state.domains.get(&(node.clone(), rule.topology.clone()))?;
        domains.get(level)?.as_ref()?;
        let none = || Name::new("");
        Some(domains[..=level].iter().map(|name| name.clone().unwrap_or_else(none)).collect())
    }
}
