//! How many pods of a group find room together by their rules about each other: affinity,
//! anti-affinity and spread, each against its number by hand.

use std::sync::Arc;

use super::make::{lone, pod, scoped};
use crate::check::near;
use crate::check::spread::{Grid, HOSTNAME, Lacking, Spread};
use crate::*;

pub(super) const ZONE: &str = "zone";

/// The pods that all rules here are about.
pub(super) const MEANT: PodSelectorId = PodSelectorId(0);

pub(super) fn name(text: &str) -> Name {
    Name::new(text)
}

pub(super) fn key(at: usize) -> NodeKey {
    NodeKey(name(&format!("n{at}")))
}

pub(super) fn slots(engine: &Engine, nodes: usize) -> Vec<u32> {
    (0..nodes).map(|at| engine.state().nodes.slot(&key(at)).expect("a node")).collect()
}

pub(super) fn rule(key: &str, max_skew: i32) -> SpreadRule {
    SpreadRule {
        pods: Some(MEANT),
        own: true,
        key: name(key),
        max_skew,
        min_domains: 1,
        honors_affinity: true,
        honors_taints: false,
    }
}

/// A node: its host, its zone if it has one, and how many of the pods meant are on it.
pub(super) type Stand<'a> = (&'a str, Option<&'a str>, u32);

pub(super) fn board(nodes: &[Stand<'_>]) -> Engine {
    board_of(Request { matched: [MEANT].into(), ..Request::default() }, nodes)
}

/// As [`board`], with pods of this request.
pub(super) fn board_of(request: Request, nodes: &[Stand<'_>]) -> Engine {
    let mut engine = Engine::new();
    let group = GroupKey { object: scoped("meant"), kind: name("pod") };
    let mut changes = vec![Change::Group(group.clone(), Some(lone(request, 0, 0)))];
    for (at, (host, zone, pods)) in nodes.iter().enumerate() {
        let labels = [(HOSTNAME, Some(*host)), (ZONE, *zone)].into_iter();
        let labels = labels.filter_map(|(key, value)| Some((name(key), name(value?))));
        let node = Node { labels: labels.collect(), ..Node::default() };
        changes.push(Change::Node(key(at), Some(node)));
        changes.extend((0..*pods).map(|of_node| {
            let member = Member {
                group: group.clone(),
                role: 0,
                index: None,
                phase: Phase::Bound(key(at)),
                claims: Box::default(),
                expected_end: None,
                nominated: None,
            };
            Change::Member(pod(&format!("p{at}-{of_node}")), Some(member))
        }));
    }
    engine.apply(changes);
    engine
}

/// How many pods find room by a spread over zones with a skew of 1, where each node takes so many.
fn spread(nodes: &[Stand<'_>], rooms: &[u32], of_pod: &NodeRules, others: &[PodSelectorId]) -> u64 {
    let engine = board(nodes);
    let rules = [rule(ZONE, 1)];
    let grid = Arc::new(Grid::new(engine.state(), of_pod, &rules, Lacking::Out));
    let spread = Spread::of(engine.state(), &rules, &grid).expect("rules");
    let rooms: Vec<_> =
        slots(&engine, nodes.len()).into_iter().zip(rooms.iter().copied()).collect();
    spread.most(&rules, &rooms, others)
}

/// By hand: y comes to 1, so x to 2 at most; where y has 2 already it comes to 3 and x to 4.
#[test]
fn no_zone_comes_to_more_than_the_skew_beyond_the_emptiest() {
    let any = NodeRules::default();
    let nodes = |x, y| [("a", Some("x"), x), ("b", Some("x"), 0), ("c", Some("y"), y)];
    assert_eq!(spread(&nodes(0, 0), &[3, 2, 1], &any, &[]), 2 + 1);
    assert_eq!(spread(&nodes(1, 0), &[3, 2, 1], &any, &[]), 1 + 1);
    assert_eq!(spread(&nodes(0, 2), &[3, 2, 1], &any, &[]), 4 + 1);
    // What other pods of the group are meant by as well bounds nothing.
    assert_eq!(spread(&nodes(0, 0), &[3, 2, 1], &any, &[MEANT]), u64::MAX);
}

/// By hand: the hosts c and d do not count, for the pod may not be there; b and c bound a alone.
#[test]
fn nodes_that_do_not_count_are_not_held_against_the_skew() {
    let selector = [(name(HOSTNAME), name("a"))].into();
    let only_a = NodeRules { selector, ..NodeRules::default() };
    let nodes = [("a", Some("x"), 0), ("c", Some("y"), 0), ("d", Some("y"), 0), ("e", None, 0)];
    assert_eq!(spread(&nodes, &[3, 2, 1, 5], &only_a, &[]), 3 + 2 + 1);
}

/// How many pods with these rules find room, where each node takes so many.
fn near(nodes: &[Stand<'_>], rooms: &[u32], rules: PodRules, others: &[PodSelectorId]) -> u64 {
    near_of(nodes, rooms, rules, others, &[MEANT])
}

fn near_of(
    nodes: &[Stand<'_>],
    rooms: &[u32],
    rules: PodRules,
    others: &[PodSelectorId],
    matched: &[PodSelectorId],
) -> u64 {
    let engine = board(nodes);
    let rooms: Vec<_> =
        slots(&engine, nodes.len()).into_iter().zip(rooms.iter().copied()).collect();
    let near = Some(Shared::new(rules));
    let request = Request { near, matched: matched.into(), ..Request::default() };
    near::most(engine.state(), &request, &rooms, others)
}

fn together(key: &str) -> PodRules {
    let affinity = Some(PodAffinity { pods: MEANT, keys: [name(key)].into() });
    PodRules { affinity, ..PodRules::default() }
}

fn apart(key: &str) -> PodRules {
    PodRules { anti: [PodTerm { pods: MEANT, key: name(key) }].into(), ..PodRules::default() }
}

/// By hand: one in each zone that takes any, and as many as there is room for where no zone is.
#[test]
fn pods_that_refuse_each_other_find_room_once_in_a_domain() {
    let nodes = |x| {
        [
            ("a", Some("x"), x),
            ("b", Some("x"), 0),
            ("c", Some("y"), 0),
            ("d", Some("z"), 0),
            ("e", None, 0),
            ("f", None, 0),
        ]
    };
    let rooms = [3, 2, 4, 0, 2, 1];
    assert_eq!(near(&nodes(0), &rooms, apart(ZONE), &[]), 2 + 3);
    // One of them is in x already.
    assert_eq!(near(&nodes(1), &rooms, apart(ZONE), &[]), 1 + 3);
    // Those that they refuse are others.
    assert_eq!(near_of(&nodes(0), &rooms, apart(ZONE), &[], &[]), 12);
}

/// By hand: the first of them settles the zone for all, unless one is there that others may join.
#[test]
fn pods_that_must_be_together_find_room_in_one_domain() {
    let nodes = |x| [("a", Some("x"), x), ("b", Some("x"), 0), ("c", Some("y"), 0), ("d", None, 0)];
    let rooms = [1, 2, 2, 9];
    assert_eq!(near(&nodes(0), &rooms, together(ZONE), &[]), 3);
    let all = 14;
    assert_eq!(near(&nodes(1), &rooms, together(ZONE), &[]), all);
    assert_eq!(near(&nodes(0), &rooms, together(ZONE), &[MEANT]), all);
    assert_eq!(near_of(&nodes(0), &rooms, together(ZONE), &[], &[]), all);
    // One on each host of the zone.
    let both = PodRules { anti: apart(HOSTNAME).anti, ..together(ZONE) };
    assert_eq!(near(&nodes(0), &rooms, both, &[]), 2);
}
