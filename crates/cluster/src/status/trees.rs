//! Trees of topology, counted: what sources say of them is lowering's.

use std::collections::BTreeMap;

use super::document::{TopologyLevelView, TopologyView};
use crate::lower::TreeInfo;
use crate::world::World;

/// The trees that there are, by name.
pub(super) fn trees(world: &World) -> Vec<TopologyView> {
    let nodes = world.nodes_len() as u64;
    let trees = world.lowering().tree_infos().into_iter();
    trees.map(|tree| tree_view(&tree, nodes)).collect()
}

fn tree_view(tree: &TreeInfo, nodes: u64) -> TopologyView {
    let level = |(at, level): (usize, &phalanx_engine::Name)| {
        let mut domains: BTreeMap<String, u64> = BTreeMap::new();
        let paths = tree.nodes.values().filter_map(|domains| domains.get(..=at));
        for path in paths.filter(|path| path.last().is_some_and(Option::is_some)) {
            *domains.entry(crate::words::path_of(path)).or_default() += 1;
        }
        let within: u64 = domains.values().sum();
        TopologyLevelView {
            level: level.to_string(),
            domains,
            without: nodes.saturating_sub(within),
        }
    };
    TopologyView {
        name: tree.key.0.to_string(),
        source: tree.source.clone(),
        levels: tree.levels.iter().enumerate().map(level).collect(),
    }
}
