//! Topology trees as a search uses them: which domain each node is in, level by level. A function of
//! the facts about trees, domains and nodes, worked out when a group first asks.
//!
//! A domain is its path from the widest level down: two racks of one name in two blocks are two.

use std::collections::BTreeMap;

use super::State;
use crate::facts::Domains;
use crate::name::TopologyKey;

/// Every tree that is known, in order of name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forest {
    pub(crate) trees: Vec<Tree>,
}

/// One tree.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) key: TopologyKey,
    /// How many levels it has, the nodes themselves aside.
    pub(crate) levels: usize,
    /// By node slot and level, the index of the domain; [`NOWHERE`] where the node is in none.
    of: Vec<u32>,
    /// Path of each domain, widest level first. In order: by level, then by name.
    pub(crate) paths: Vec<Domains>,
}

/// The node is in no domain of that level.
pub(crate) const NOWHERE: u32 = u32::MAX;

impl Forest {
    /// The trees of a state.
    pub(crate) fn of(state: &State) -> Self {
        let keys = state.topologies.iter();
        let trees = keys.map(|(key, fact)| Tree::of(state, key, fact.levels.len())).collect();
        Self { trees }
    }

    /// Where a tree stands among them.
    pub(crate) fn find(&self, key: &TopologyKey) -> Option<usize> {
        self.trees.binary_search_by(|tree| tree.key.cmp(key)).ok()
    }
}

impl Tree {
    fn of(state: &State, key: &TopologyKey, levels: usize) -> Self {
        let slots = state.nodes.slots() as usize;
        let mut nodes: BTreeMap<(usize, Domains), Vec<u32>> = BTreeMap::new();
        let live = state.nodes.iter().filter(|(_, _, node)| node.fact.is_some());
        for (slot, node, _) in live {
            let Some(domains) = state.domains.get(&(node.clone(), key.clone())) else { continue };
            for level in
                (0..levels).filter(|level| domains.get(*level).is_some_and(Option::is_some))
            {
                let path = domains[..=level].to_vec().into_boxed_slice();
                nodes.entry((level, path)).or_default().push(slot);
            }
        }
        let mut of = vec![NOWHERE; slots * levels];
        let mut paths = Vec::with_capacity(nodes.len());
        for ((level, path), slots) in nodes {
            for slot in slots {
                of[slot as usize * levels + level] = paths.len() as u32;
            }
            paths.push(path);
        }
        Self { key: key.clone(), levels, of, paths }
    }

    /// The domain of a node at a level, or [`NOWHERE`].
    pub(crate) fn domain(&self, slot: u32, level: usize) -> u32 {
        self.of.get(slot as usize * self.levels + level).copied().unwrap_or(NOWHERE)
    }
}
