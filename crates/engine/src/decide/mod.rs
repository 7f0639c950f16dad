//! Deciding: who is tried first, where each goes, and what becomes of the rest.
//!
//! Groups are taken in queue order. Each is placed on trial, so that the next sees what is left;
//! at the end everything is given back and the state is as it was. The reference without caches
//! goes the same way with nothing remembered.

mod around;
mod column;
mod gang;
mod probe;
mod refuse;
mod scores;
mod search;
mod trial;
mod why;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::change::Change;
use crate::check::around::Grids;
use crate::decision::{Decision, Report, Revision};
use crate::facts::Request;
use crate::name::{GroupKey, NodeKey, Shared, Timestamp};
use crate::policy::{Effort, Policy};
use crate::state::{Forest, State};
use column::{Column, Ranks};
use search::Memo;
use trial::Trial;

/// The state and what was worked out from it. Cloning is forking: what-if is a fork, some changes
/// and a decision.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    state: State,
    caches: Caches,
}

/// All that could be thrown away at any time without a different answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caches {
    memo: Memo,
    ranks: Ranks,
    columns: FxHashMap<Shared<Request>, Column>,
    /// Whether a request would fit the healed and emptied cluster, with the version, policy and
    /// effort that it holds for.
    never: FxHashMap<Shared<Request>, refuse::Remembered>,
    /// The domains of requests that are spread, with the version of the hardware that they hold for.
    grids: FxHashMap<Shared<Request>, (u64, Grids)>,
    /// Topology trees, with the versions of trees and nodes that they hold for.
    forest: Option<((u64, u64), Arc<Forest>)>,
    /// Which nodes and domains are in use.
    fragments: Option<Arc<gang::Fragments>>,
    /// What nodes take of the members of groups.
    rooms: FxHashMap<Shared<Request>, gang::Rooms>,
    asked: u64,
}

impl Engine {
    /// An engine that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// What it knows.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Takes in changes, in any order and as often as they come.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Revision {
        let selectors = self.state.clock.selectors;
        let revision = self.state.apply(changes);
        if selectors != self.state.clock.selectors {
            self.caches.memo.clear();
        }
        revision
    }

    /// Decides everything that is pending. The state is as before.
    pub fn decide(&mut self, policy: &Policy, now: Timestamp, effort: Effort) -> Decision {
        Trial::new(&mut self.state, Some(&mut self.caches), policy, now, effort).decide()
    }

    /// The whole account for one group, as of its turn: nodes as the first opening of this role finds them,
    /// else as its first does. None if the group is not pending.
    pub fn probe(
        &mut self,
        policy: &Policy,
        (group, role): (&GroupKey, Option<u16>),
        now: Timestamp,
        effort: Effort,
    ) -> Option<Report> {
        Trial::new(&mut self.state, Some(&mut self.caches), policy, now, effort).probe(group, role)
    }

    /// What one node is to every pending group, role by role, each as of its turn and in queue order. One pass,
    /// whatever the number of groups: of other nodes no more is worked out than a decision needs.
    pub fn probe_node(
        &mut self,
        policy: &Policy,
        node: &NodeKey,
        now: Timestamp,
        effort: Effort,
    ) -> Vec<Report> {
        Trial::new(&mut self.state, Some(&mut self.caches), policy, now, effort).probe_node(node)
    }

    /// An engine for trying changes on.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.clone()
    }
}

/// The reference: the same decision with nothing remembered between nodes, groups or calls.
pub fn decide_fresh(state: &State, policy: &Policy, now: Timestamp, effort: Effort) -> Decision {
    let mut state = state.clone();
    Trial::new(&mut state, None, policy, now, effort).decide()
}
