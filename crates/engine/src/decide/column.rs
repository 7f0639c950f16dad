//! Fit columns: for a request shape that is asked about, the answer of every node, kept up to date
//! for the nodes that changed, with the nodes that fit in order of cost.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::scores;
use super::search::{Ask, Search};
use crate::check::Failing;
use crate::check::fact::{self, Health};
use crate::cost::Cost;
use crate::decision::Why;
use crate::facts::Request;
use crate::name::Shared;
use crate::policy::{Effort, NodeOrder, Policy};
use crate::reason::{Reason, Status};
use crate::state::State;

/// The answers of all nodes to one ask.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    ask: Ask,
    policy: Policy,
    effort: Effort,
    cells: Vec<Cell>,
    /// Nodes that fit: cost, then rank of the name, then slot.
    ranked: BTreeSet<(Cost, u32, u32)>,
    /// Nodes whose answer ends the attempt on all nodes.
    fatal: u32,
    /// How far the log of touched nodes was read.
    read: u64,
    /// Versions of the set of nodes, of what selectors say, and of volumes where they matter.
    versions: (u64, u64, u64),
    /// The account of its refusal, with the point of the log that it holds for.
    why: Option<(u64, Arc<Why>)>,
    /// When it was last asked, for throwing out the oldest.
    pub(super) used: u64,
}

/// One node's answer.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// Version of the node that it was taken at; 0 is never.
    version: u64,
    /// Version of the node's fact that `fact` was taken at.
    fact_version: u64,
    /// What the node's fact alone comes to: a soft cost, or the answer already.
    fact: Fact,
    answer: Answer,
}

#[derive(Clone, Copy, Debug)]
enum Fact {
    Soft(u32),
    Answered(Answer),
}

impl Default for Fact {
    fn default() -> Self {
        Self::Answered(Answer::Gone)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answer {
    #[default]
    Gone,
    Fits(Cost),
    Fails {
        reason: Reason,
        close: u32,
        fallen: u32,
        fatal: bool,
    },
}

/// Where each node stands in the order of names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranks {
    node_set: u64,
    of: Vec<u32>,
    slots: Vec<u32>,
}

impl Ranks {
    pub(crate) fn refresh(&mut self, state: &State) {
        if self.node_set == state.clock.node_set && !self.of.is_empty() {
            return;
        }
        let mut nodes: Vec<_> = state
            .nodes
            .iter()
            .filter(|(_, _, n)| n.fact.is_some())
            .map(|(s, k, _)| (k, s))
            .collect();
        nodes.sort_unstable();
        self.of = vec![u32::MAX; state.nodes.slots() as usize];
        for (rank, (_, slot)) in nodes.iter().enumerate() {
            self.of[*slot as usize] = rank as u32;
        }
        self.slots = nodes.into_iter().map(|(_, slot)| slot).collect();
        self.node_set = state.clock.node_set;
    }

    /// Where the node in a slot stands; the greatest number where there is none.
    pub(crate) fn rank(&self, slot: u32) -> u32 {
        self.of.get(slot as usize).copied().unwrap_or(u32::MAX)
    }

    /// Slots of the nodes, in order of name.
    pub(crate) fn slots(&self) -> &[u32] {
        &self.slots
    }
}

impl Column {
    pub(crate) fn new(ask: Ask, policy: Policy, effort: Effort) -> Self {
        Self {
            ask,
            policy,
            effort,
            cells: Vec::new(),
            ranked: BTreeSet::new(),
            fatal: 0,
            read: 0,
            versions: (0, 0, 0),
            why: None,
            used: 0,
        }
    }

    /// The account of its refusal, if nothing has changed since it was made.
    pub(super) fn why(&self) -> Option<Arc<Why>> {
        self.why.as_ref().filter(|(read, _)| *read == self.read).map(|(_, why)| Arc::clone(why))
    }

    /// Keeps the account of its refusal.
    pub(super) fn keep_why(&mut self, why: &Arc<Why>) {
        self.why = Some((self.read, Arc::clone(why)));
    }

    /// How many answers it holds.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Brings it up to date for `ask`, which is the same request with its claims as they are now.
    pub(crate) fn refresh(
        &mut self,
        state: &mut State,
        search: &mut Search<'_>,
        ranks: &Ranks,
        ask: &Ask,
    ) {
        let volumes = if ask.mounts.is_some() { state.clock.volumes } else { 0 };
        let versions = (state.clock.node_set, state.clock.selectors, volumes);
        let same = self.ask.wanted == ask.wanted
            && self.ask.pinned == ask.pinned
            && self.policy == *search.policy
            && self.effort == search.effort
            && self.versions == versions;
        self.ask = Ask { around: None, ..ask.clone() };
        if !same {
            self.why = None;
            self.policy = *search.policy;
            self.effort = search.effort;
            self.versions = versions;
            self.cells.clear();
            self.cells.resize(state.nodes.slots() as usize, Cell::default());
            self.ranked.clear();
            self.fatal = 0;
        }
        let (log_start, log_end) = state.clock.log();
        if !same || self.read < log_start {
            for slot in ranks.slots() {
                self.renew(state, search, ranks, *slot);
            }
        } else {
            for at in self.read..log_end {
                let slot = state.clock.log_at(at);
                self.renew(state, search, ranks, slot);
            }
        }
        self.read = log_end;
        state.clock.log_read();
    }

    fn renew(&mut self, state: &mut State, search: &mut Search<'_>, ranks: &Ranks, slot: u32) {
        let Some(row) = state.nodes.get(slot) else { return };
        let rank = ranks.rank(slot);
        if rank == u32::MAX
            || self.cells.get(slot as usize).is_none_or(|c| c.version == row.version)
        {
            return;
        }
        let version = row.version;
        let answer = self.answer(state, search, slot);
        let cell = &mut self.cells[slot as usize];
        let old = std::mem::replace(&mut cell.answer, answer);
        cell.version = version;
        if old == answer {
            return;
        }
        match old {
            Answer::Fits(cost) => {
                self.ranked.remove(&(cost, rank, slot));
            }
            Answer::Fails { fatal, .. } => self.fatal -= u32::from(fatal),
            Answer::Gone => {}
        }
        match answer {
            Answer::Fits(cost) => {
                self.ranked.insert((cost, rank, slot));
            }
            Answer::Fails { fatal, .. } => self.fatal += u32::from(fatal),
            Answer::Gone => {}
        }
    }

    fn answer(&mut self, state: &mut State, search: &mut Search<'_>, slot: u32) -> Answer {
        let row = state.nodes.at(slot);
        let Some(node) = &row.fact else { return Answer::Gone };
        let cell = &mut self.cells[slot as usize];
        if cell.fact_version != row.fact_version {
            let rules = &self.ask.request.node;
            cell.fact = match fact::first(rules, state.nodes.key(slot), node, Health::AsIs) {
                Ok(soft) => Fact::Soft(soft),
                Err(failing) => Fact::Answered(fails(&failing)),
            };
            cell.fact_version = row.fact_version;
        }
        let soft = match cell.fact {
            Fact::Soft(soft) => soft,
            Fact::Answered(answer) => return answer,
        };
        // What pods on other nodes make of it is asked over the column.
        match search.rest(state, &self.ask, slot, soft, |_, _, _| Ok(0)) {
            Ok(fit) => Answer::Fits(fit.cost),
            Err(failing) => fails(&failing),
        }
    }

    /// The node to take: least cost, then name. None if nothing fits, or if an error on some node
    /// ends the attempt on all of them.
    pub(crate) fn best(&self, state: &State, ask: &Ask) -> Option<u32> {
        let answer = |slot| ask.over(state, slot, self.cells[slot as usize].answer);
        let is_fatal = |slot| matches!(answer(slot), Answer::Fails { fatal: true, .. });
        let fatal =
            self.fatal > 0 && (ask.around.is_none() || (0..self.cells.len() as u32).any(is_fatal));
        if fatal {
            return None;
        }
        if self.policy.node_order == NodeOrder::Scores {
            let fits = self.ranked.iter().filter_map(|(_, rank, slot)| match answer(*slot) {
                Answer::Fits(cost) => Some((*rank, *slot, cost)),
                Answer::Fails { .. } | Answer::Gone => None,
            });
            return scores::best(state, ask, &fits.collect::<Vec<_>>());
        }
        if ask.wishes() {
            return self.best_by_wishes(answer);
        }
        let mut fit = self.ranked.iter().map(|(_, _, slot)| *slot);
        fit.find(|slot| matches!(answer(*slot), Answer::Fits(_)))
    }

    /// The node to take where wishes about pods come on top of what each costs by itself.
    fn best_by_wishes(&self, answer: impl Fn(u32) -> Answer) -> Option<u32> {
        let mut best: Option<(Cost, u32, u32)> = None;
        for (cost, rank, slot) in &self.ranked {
            // Wishes only add: what costs more without them costs more.
            if best.is_some_and(|(least, ..)| *cost > least) {
                break;
            }
            if let Answer::Fits(with) = answer(*slot) {
                let one = (with, *rank, *slot);
                best = Some(best.map_or(one, |known| known.min(one)));
            }
        }
        best.map(|(_, _, slot)| slot)
    }

    /// The answer of each node, in order of name.
    pub(super) fn answers(
        &self,
        state: &State,
        ask: &Ask,
        ranks: &Ranks,
    ) -> impl Iterator<Item = (u32, Answer)> {
        let of = |slot: &u32| (*slot, ask.over(state, *slot, self.cells[*slot as usize].answer));
        ranks.slots().iter().map(of)
    }
}

/// A failing check as far as a column keeps it.
pub(super) fn fails(failing: &Failing) -> Answer {
    let Failing { reason, status, close, fallen, .. } = *failing;
    Answer::Fails { reason, close, fallen, fatal: status == Status::Error }
}

/// Answers kept by request, over all of them, before those that were asked longest ago go.
const CELLS_MAX: usize = 4_000_000;

/// Drops what was asked longest ago while there are too many answers; `of` says of each how many it
/// holds, and when it was last asked.
pub(super) fn drop_oldest<V>(
    all: &mut FxHashMap<Shared<Request>, V>,
    of: impl Fn(&V) -> (usize, u64),
) {
    let mut cells: usize = all.values().map(|one| of(one).0).sum();
    while cells > CELLS_MAX && all.len() > 1 {
        let oldest = all.iter().min_by_key(|(_, one)| of(one).1).map(|(key, _)| key.clone());
        let Some(oldest) = oldest else { return };
        cells -= all.remove(&oldest).map_or(0, |one| of(&one).0);
    }
}
