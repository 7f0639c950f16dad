//! When who looks again: the next of many times, and who is due, without asking each.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::Timestamp;

/// Times by who waits for them; each waits for one at most.
#[derive(Clone, Debug)]
pub(super) struct Timers<K> {
    at: BTreeMap<K, Timestamp>,
    in_order: BTreeSet<(Timestamp, K)>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { at: BTreeMap::new(), in_order: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Timers<K> {
    /// Waits for this time in place of the one before; for none at all if there is none.
    pub(super) fn set(&mut self, who: &K, at: Option<Timestamp>) {
        if let Some(old) = self.at.remove(who) {
            self.in_order.remove(&(old, who.clone()));
        }
        if let Some(at) = at {
            self.at.insert(who.clone(), at);
            self.in_order.insert((at, who.clone()));
        }
    }

    /// Those whose time has come. They wait for none any more.
    pub(super) fn due(&mut self, now: Timestamp) -> Vec<K> {
        let mut due = Vec::new();
        while let Some((at, _)) = self.in_order.first()
            && *at <= now
        {
            let Some((_, who)) = self.in_order.pop_first() else { break };
            self.at.remove(&who);
            due.push(who);
        }
        due
    }

    /// The next time.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.in_order.first().map(|(at, _)| *at)
    }
}
