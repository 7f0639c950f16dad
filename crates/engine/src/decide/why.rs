//! The account of a group that is not placed: each node once, under the check that fell first.

use std::collections::BTreeMap;

use super::column::{Answer, fails};
use super::refuse::Never;
use super::search::{Ask, Search};
use super::trial::Trial;
use crate::check::Failing;
use crate::decision::{Example, Facts, Tally, Why};
use crate::name::Name;
use crate::reason::Reason;

/// An object's own reason: it stands alone, with no node evaluated.
pub(super) fn object(reason: Reason, example: Example) -> Why {
    Why {
        first: reason,
        tally: vec![Tally { reason, nodes: 0, devices: 0, example }],
        nearest: None,
        never: None,
        role: None,
        parts: Box::default(),
    }
}

impl Why {
    /// The same account for what will never fit: that is what decides.
    pub(super) fn refused(mut self, never: Never) -> Self {
        self.first = never.as_ref().map_or(self.first, |never| never.reason);
        self.never = never;
        self
    }
}

/// The names of gates, for words.
pub(super) fn gates(names: &[Name]) -> Example {
    let list: Vec<&str> = names.iter().map(Name::as_str).collect();
    let facts = Facts::Subject { subject: Name::new(""), detail: Name::new(&list.join(", ")) };
    Example { facts, ..Example::default() }
}

/// One reason, while it is being tallied.
pub(super) struct Row {
    pub(super) nodes: u32,
    pub(super) devices: u32,
    /// The nearest miss: how close, and its slot. The first in order of name wins.
    nearest: (u32, u32),
}

/// Reasons and how many fell for each.
pub(super) type Rows = BTreeMap<Reason, Row>;

/// Counts a node that fell for a reason; the first of the closest is kept.
pub(super) fn count(rows: &mut Rows, reason: Reason, close: u32, fallen: u32, slot: u32) {
    let row = rows.entry(reason).or_insert(Row { nodes: 0, devices: 0, nearest: (close, slot) });
    row.nodes += 1;
    row.devices = row.devices.saturating_add(fallen);
    if close > row.nearest.0 {
        row.nearest = (close, slot);
    }
}

fn tally(answers: impl Iterator<Item = (u32, Answer)>) -> Rows {
    let mut rows = Rows::new();
    for (slot, answer) in answers {
        match answer {
            Answer::Fails { reason, close, fallen, .. } => {
                count(&mut rows, reason, close, fallen, slot);
            }
            Answer::Fits(_) | Answer::Gone => {}
        }
    }
    rows
}

impl Trial<'_> {
    /// Why an ask fits nowhere.
    pub(super) fn why(&mut self, ask: &Ask) -> Why {
        let rows = match self.caches.is_some() {
            true => self.with_column(ask, |column, ranks, state, _| {
                tally(column.answers(state, ask, ranks))
            }),
            false => self.tally_fresh(ask),
        };
        if rows.is_empty() {
            return object(Reason::NoNodes, Example::default());
        }
        self.sum_up(ask, rows)
    }

    fn tally_fresh(&mut self, ask: &Ask) -> Rows {
        let mut search = Search::new(self.policy, self.effort, None);
        let mut answers = Vec::new();
        for slot in self.ranks.slots() {
            let answer = match search.node(self.state, ask, *slot) {
                Ok(fit) => Answer::Fits(fit.cost),
                Err(failing) => fails(&failing),
            };
            answers.push((*slot, answer));
        }
        self.spent += search.spent;
        tally(answers.into_iter())
    }

    fn sum_up(&mut self, ask: &Ask, rows: Rows) -> Why {
        let nearest = rows
            .iter()
            .max_by_key(|(reason, _)| reason.progress())
            .map(|(reason, row)| (*reason, row.nearest.1));
        let mut tally = Vec::with_capacity(rows.len());
        for (reason, row) in rows {
            let example = match self.failing(ask, row.nearest.1) {
                Some(failing) => self.example(&failing, row.nearest.1),
                None => Example::default(),
            };
            tally.push(Tally { reason, nodes: row.nodes, devices: row.devices, example });
        }
        Why {
            first: nearest.map_or(Reason::NoNodes, |(reason, _)| reason),
            tally,
            nearest: nearest.map(|(_, slot)| self.state.nodes.key(slot).clone()),
            never: None,
            role: None,
            parts: Box::default(),
        }
    }

    /// The first check that fails on a node, with its names and numbers.
    fn failing(&mut self, ask: &Ask, slot: u32) -> Option<Failing> {
        self.searched(|search, state| search.node(state, ask, slot)).err()
    }

    /// A failing check as an example, with the names of its node and device.
    pub(super) fn example(&self, failing: &Failing, slot: u32) -> Example {
        let devices = self.state.nodes.at(slot).devices.as_deref();
        let name = |at: u16| devices.map(|d| self.state.device_key(d, usize::from(at)));
        let joint = failing.facts.devices().and_then(|facts| facts.joint.as_deref());
        let leaders = joint.iter().flat_map(|joint| &joint.groups);
        Example {
            node: Some(self.state.nodes.key(slot).clone()),
            device: failing.device.and_then(name),
            leaders: leaders.filter_map(|group| name(group.leader)).collect(),
            facts: failing.facts.clone(),
        }
    }
}
