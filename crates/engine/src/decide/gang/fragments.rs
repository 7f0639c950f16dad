//! How broken up the trees are: which nodes are in use, and which domains are free of such.
//!
//! The measure is that of Slurm's topology/block plugin: the sizes of all domains in which any node is in
//! use, over all levels, and the nodes in use. A node is in use where anything scarce of it is (devices,
//! extended resources).

use std::sync::Arc;

use super::super::trial::Trial;
use crate::state::{Forest, NOWHERE};

/// Nodes in use, by domain.
#[derive(Clone, Debug)]
pub(crate) struct Fragments {
    forest: Arc<Forest>,
    /// How far the log of touched nodes was read.
    read: u64,
    /// By slot, whether the node is in use.
    in_use: Vec<bool>,
    /// By tree and domain, how many of its nodes are in use.
    nodes: Vec<Vec<u32>>,
    /// By tree, what the measure comes to.
    sums: Vec<u64>,
}

impl Fragments {
    fn new(forest: &Arc<Forest>, slots: u32) -> Self {
        let nodes = forest.trees.iter().map(|tree| vec![0; tree.nodes.len()]);
        Self {
            forest: Arc::clone(forest),
            read: 0,
            in_use: vec![false; slots as usize],
            nodes: nodes.collect(),
            sums: vec![0; forest.trees.len()],
        }
    }

    /// The trees.
    pub(super) fn forest(&self) -> &Forest {
        &self.forest
    }

    /// Whether no node of a domain is in use.
    pub(super) fn is_free(&self, tree: usize, domain: u32) -> bool {
        let nodes = self.nodes.get(tree).and_then(|nodes| nodes.get(domain as usize));
        nodes == Some(&0)
    }

    /// What the measure comes to for a tree.
    pub(super) fn sum(&self, tree: usize) -> u64 {
        self.sums.get(tree).copied().unwrap_or_default()
    }

    fn set(&mut self, slot: u32, in_use: bool) {
        let Some(known) = self.in_use.get_mut(slot as usize).filter(|known| **known != in_use)
        else {
            return;
        };
        *known = in_use;
        let change = |sum: &mut u64, by: u64| match in_use {
            true => *sum += by,
            false => *sum = sum.saturating_sub(by),
        };
        for ((tree, nodes), sum) in
            self.forest.trees.iter().zip(&mut self.nodes).zip(&mut self.sums)
        {
            change(sum, 1);
            for level in 0..tree.levels {
                let domain = tree.domain(slot, level);
                let Some(count) = nodes.get_mut(domain as usize).filter(|_| domain != NOWHERE)
                else {
                    continue;
                };
                let was_free = *count == 0;
                *count = if in_use { *count + 1 } else { count.saturating_sub(1) };
                if was_free != (*count == 0) {
                    change(sum, tree.nodes[domain as usize].len() as u64);
                }
            }
        }
    }
}

impl Trial<'_> {
    /// Which nodes and domains are in use now.
    pub(super) fn fragments(&mut self) -> Arc<Fragments> {
        let forest = self.forest();
        let known = self.caches.as_deref_mut().and_then(|caches| caches.fragments.take());
        let known = known.filter(|known| Arc::ptr_eq(&known.forest, &forest));
        let is_new = known.is_none();
        let mut all =
            known.unwrap_or_else(|| Arc::new(Fragments::new(&forest, self.state.nodes.slots())));
        let (log_start, log_end) = self.state.clock.log();
        let fragments = Arc::make_mut(&mut all);
        if is_new || fragments.read < log_start {
            for at in 0..self.ranks.slots().len() {
                let slot = self.ranks.slots()[at];
                let in_use = self.is_in_use(slot);
                fragments.set(slot, in_use);
            }
        } else {
            for at in fragments.read..log_end {
                let slot = self.state.clock.log_at(at);
                if self.ranks.rank(slot) != u32::MAX {
                    let in_use = self.is_in_use(slot);
                    fragments.set(slot, in_use);
                }
            }
        }
        fragments.read = log_end;
        self.state.clock.log_read();
        if let Some(caches) = self.caches.as_deref_mut() {
            caches.fragments = Some(Arc::clone(&all));
        }
        all
    }

    /// Whether anything scarce of a node is in use, with what it sees worked out.
    fn is_in_use(&mut self, slot: u32) -> bool {
        self.searched(|search, state| search.look_at_devices(state, slot));
        self.state.is_in_use(slot)
    }
}
