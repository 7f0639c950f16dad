//! Where a group is as a whole: its ranks in order, and per level of each tree the domains that it uses
//! and how many neighbours in rank are in different ones. Deciding where it goes is the engine's.

use std::collections::BTreeMap;

use phalanx_engine::{Decision, Fragmentation, GroupKey, Name, NodeKey, Scoped, by_number};

use phalanx_objects::{Kind, Object, ObjectRef};

use super::build::{counters_of, most};
use super::schema::{
    FragmentationView, GroupView, LevelView, PlaceView, PodView, RankView, VerdictWord,
};
use crate::lower::{RunningMember, TreeInfo};
use crate::world::World;

/// The node as the last level of every tree.
const NODE: &str = "node";

/// Adds to groups that start whole where they are.
pub(super) fn place(world: &World, decision: &Decision, pods: &[PodView], views: &mut [GroupView]) {
    let broken = decision.fragmentation.iter().map(|(key, trees)| (key, trees.as_slice()));
    let broken: BTreeMap<&GroupKey, &[Fragmentation]> = broken.collect();
    let mut trees = None;
    let mut placed: Option<Placed<'_>> = None;
    for view in views {
        let object = Scoped { namespace: Name::new(&view.namespace), name: Name::new(&view.name) };
        let key = GroupKey { object, kind: Name::new(&view.kind) };
        if !world.lowering().is_gang(&key) {
            continue;
        }
        let trees = trees.get_or_insert_with(|| world.lowering().tree_infos());
        let placed = placed.get_or_insert_with(|| by_group(pods));
        let name = format!("{}/{}", view.kind, view.name);
        let mine = placed.get(&(view.namespace.as_str(), name.as_str()));
        let mine = mine.cloned().unwrap_or_default();
        view.ranks = ranks(world, &key, view, &mine);
        let broken = broken.get(&key).copied().unwrap_or_default();
        view.places = trees.iter().filter_map(|tree| in_tree(tree, broken, &view.ranks)).collect();
    }
}

/// Pods that are placed, by namespace and group.
type Placed<'p> = BTreeMap<(&'p str, &'p str), Vec<&'p PodView>>;

fn by_group(pods: &[PodView]) -> Placed<'_> {
    let mut placed = Placed::new();
    for pod in pods.iter().filter(|pod| pod.verdict == VerdictWord::Placed) {
        if let Some(group) = &pod.group {
            placed.entry((pod.namespace.as_str(), group.as_str())).or_default().push(pod);
        }
    }
    placed
}

/// The members that have nodes, in order of rank: that which their workload gives them, where all of
/// them have one and no two the same; else in the order of roles and indexes.
fn ranks(world: &World, key: &GroupKey, view: &GroupView, mine: &[&PodView]) -> Vec<RankView> {
    let planned = mine.iter().filter_map(|pod| {
        let claimed = u32::try_from(pod.devices.len()).unwrap_or(u32::MAX);
        let devices = if claimed > 0 { claimed } else { pod.counted };
        let role = pod.role.clone().unwrap_or_default();
        let (rank, index, name) = (pod.rank, pod.index, pod.name.clone());
        Some(RunningMember { role, rank, index, pod: name, node: pod.node.clone()?, devices })
    });
    let running = world.lowering().running_members(key).into_iter().map(|mut member| {
        let pod = ObjectRef {
            kind: Kind::Pod,
            namespace: view.namespace.clone(),
            name: member.pod.clone(),
        };
        let pod = world.objects().and_then(|objects| objects.get(&pod));
        if let (0, Some(Object::Pod(pod))) = (member.devices, pod) {
            member.devices = most(&counters_of(&pod.spec));
        }
        member
    });
    let mut all: Vec<_> = planned.chain(running).collect();
    let mut given: Vec<u32> = all.iter().filter_map(|member| member.rank).collect();
    given.sort_unstable();
    given.dedup();
    let numbered = given.len() == all.len();
    all.sort_by(|a, b| {
        let by_rank = if numbered { a.rank.cmp(&b.rank) } else { a.role.cmp(&b.role) };
        by_rank.then_with(|| a.index.cmp(&b.index)).then_with(|| by_number(&a.pod, &b.pod))
    });
    let view = |(at, member): (usize, RunningMember)| {
        let RunningMember { rank, pod, node, devices, .. } = member;
        let order = u32::try_from(at).unwrap_or(u32::MAX);
        let rank = rank.filter(|_| numbered).unwrap_or(order);
        RankView { rank, pod, node, devices }
    };
    all.into_iter().enumerate().map(view).collect()
}

/// What a group uses of a tree; none where none of its nodes is in it.
fn in_tree(tree: &TreeInfo, broken: &[Fragmentation], ranks: &[RankView]) -> Option<PlaceView> {
    let domains = |rank: &RankView, level: usize| -> Option<String> {
        let domains = tree.nodes.get(&NodeKey(Name::new(&rank.node)))?;
        let path = domains.get(..=level)?;
        path.last()?.as_ref()?;
        Some(crate::words::path_of(path))
    };
    let known = ranks.iter().any(|rank| tree.nodes.contains_key(&NodeKey(Name::new(&rank.node))));
    if !known {
        return None;
    }
    let of_level = |(at, level): (usize, &Name)| {
        let places: Vec<Option<String>> = ranks.iter().map(|rank| domains(rank, at)).collect();
        of_level(level, &places)
    };
    let mut levels: Vec<LevelView> = tree.levels.iter().enumerate().map(of_level).collect();
    if tree.levels.last().is_none_or(|level| level.as_str() != "kubernetes.io/hostname") {
        let nodes: Vec<Option<String>> = ranks.iter().map(|rank| Some(rank.node.clone())).collect();
        levels.push(self::of_level(NODE, &nodes));
    }
    let fragmentation = broken.iter().find(|one| one.topology == tree.key);
    Some(PlaceView {
        topology: tree.key.0.to_string(),
        source: tree.source.clone(),
        fragmentation: fragmentation.map(|one| {
            let Fragmentation { before, after, .. } = *one;
            FragmentationView { before, after }
        }),
        levels,
    })
}

/// What is used of a level: places by rank, none where a node is in no domain of it.
fn of_level(level: &str, places: &[Option<String>]) -> LevelView {
    let mut domains: Vec<String> = places.iter().flatten().cloned().collect();
    domains.sort();
    domains.dedup();
    let mut crossings = 0;
    let mut at: BTreeMap<&String, u32> = BTreeMap::new();
    for pair in places.windows(2) {
        let [one, other] = pair else { continue };
        if one == other && one.is_some() {
            continue;
        }
        crossings += 1;
        for domain in [one, other].into_iter().flatten() {
            *at.entry(domain).or_default() += 1;
        }
    }
    let busiest = at.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)));
    LevelView {
        level: level.to_owned(),
        without: u32::try_from(places.iter().filter(|p| p.is_none()).count()).unwrap_or(u32::MAX),
        domains,
        crossings,
        busiest: busiest.map(|(name, _)| name.clone()),
        busiest_crossings: busiest.map_or(0, |(_, count)| count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(places: &[&str]) -> LevelView {
        let places: Vec<Option<String>> =
            places.iter().map(|p| (!p.is_empty()).then(|| (*p).to_owned())).collect();
        of_level("rack", &places)
    }

    #[test]
    fn neighbours_in_two_domains_cross() {
        let view = level(&["a", "a", "b", "b", "a"]);
        assert_eq!((view.crossings, view.domains.len()), (2, 2));
        assert_eq!((view.busiest.as_deref(), view.busiest_crossings), (Some("a"), 2));
    }

    #[test]
    fn one_domain_is_crossed_by_none() {
        let view = level(&["a", "a"]);
        assert_eq!((view.crossings, view.busiest), (0, None));
    }

    #[test]
    fn a_node_in_no_domain_is_one_of_its_own() {
        let view = level(&["a", "", ""]);
        assert_eq!((view.crossings, view.without), (2, 2));
    }
}
