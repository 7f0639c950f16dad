//! Topology trees as a search uses them: which domain each node is in, level by level, and which nodes
//! are in each domain. A function of the facts about trees, domains and nodes, worked out when a group
//! first asks.
//!
//! A domain is its path from the widest level down: two racks of one name in two blocks are two.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::State;
use crate::facts::{Domains, Topology};
use crate::name::{Name, NodeKey, TopologyKey};

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
    /// Nodes of each domain, in order of name.
    pub(crate) nodes: Vec<Vec<u32>>,
    /// By level, the index of its first domain.
    starts: Vec<u32>,
}

/// The node is in no domain of that level.
pub(crate) const NOWHERE: u32 = u32::MAX;

impl Forest {
    /// The trees of a state.
    pub(crate) fn of(state: &State) -> Self {
        let mut placed: BTreeMap<&TopologyKey, Vec<(u32, &Domains)>> = BTreeMap::new();
        // In order of the nodes' names.
        for ((node, tree), domains) in &state.domains {
            if let Some(slot) = live(state, node) {
                placed.entry(tree).or_default().push((slot, domains));
            }
        }
        let tree = |(key, fact): (&TopologyKey, &Topology)| {
            let placed = placed.get(key).map_or(&[][..], Vec::as_slice);
            Tree::of(key, fact.levels.len(), state.nodes.slots(), placed)
        };
        Self { trees: state.topologies.iter().map(tree).collect() }
    }

    /// Where a tree stands among them.
    pub(crate) fn find(&self, key: &TopologyKey) -> Option<usize> {
        self.trees.binary_search_by(|tree| tree.key.cmp(key)).ok()
    }
}

fn live(state: &State, node: &NodeKey) -> Option<u32> {
    state.nodes.slot(node).filter(|slot| state.nodes.at(*slot).fact.is_some())
}

impl Tree {
    /// A tree of these nodes, which are in order of name.
    fn of(key: &TopologyKey, levels: usize, slots: u32, placed: &[(u32, &Domains)]) -> Self {
        // Paths get numbers as they come; a path that ends at no domain leads on to those below.
        let mut numbers: FxHashMap<(u32, Option<&Name>), u32> = FxHashMap::default();
        let mut found: Vec<Found<'_>> = Vec::new();
        for (slot, domains) in placed {
            let mut above = NOWHERE;
            for (level, name) in domains.iter().take(levels).enumerate() {
                let number = *numbers.entry((above, name.as_ref())).or_insert_with(|| {
                    found.push(Found { level, path: &domains[..=level], nodes: Vec::new() });
                    (found.len() - 1) as u32
                });
                if name.is_some() {
                    found[number as usize].nodes.push(*slot);
                }
                above = number;
            }
        }
        found.retain(|domain| !domain.nodes.is_empty());
        found.sort_unstable_by(|a, b| (a.level, a.path).cmp(&(b.level, b.path)));
        let mut tree = Self {
            key: key.clone(),
            levels,
            of: vec![NOWHERE; slots as usize * levels],
            paths: Vec::with_capacity(found.len()),
            nodes: Vec::with_capacity(found.len()),
            starts: Vec::with_capacity(levels + 1),
        };
        for (at, domain) in found.into_iter().enumerate() {
            tree.starts.resize(domain.level + 1, at as u32);
            for slot in &domain.nodes {
                tree.of[*slot as usize * levels + domain.level] = at as u32;
            }
            tree.paths.push(domain.path.into());
            tree.nodes.push(domain.nodes);
        }
        tree.starts.resize(levels + 1, tree.paths.len() as u32);
        tree
    }

    /// The domain of a node at a level, or [`NOWHERE`].
    pub(crate) fn domain(&self, slot: u32, level: usize) -> u32 {
        self.of.get(slot as usize * self.levels + level).copied().unwrap_or(NOWHERE)
    }

    /// The domains of a level, by index.
    pub(crate) fn level(&self, level: usize) -> Range<u32> {
        let start = |level: usize| self.starts.get(level).copied().unwrap_or_default();
        start(level)..start(level + 1)
    }
}

/// A domain with the nodes that were found in it.
struct Found<'s> {
    level: usize,
    path: &'s [Option<Name>],
    nodes: Vec<u32>,
}
