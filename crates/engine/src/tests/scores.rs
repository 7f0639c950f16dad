//! kube-scheduler's scores of pods that are spread and of volumes, each against its value by hand.

use std::sync::Arc;

use super::counted::{MEANT, Stand, ZONE, board, board_of, key, name, rule, slots};
use super::make::scoped;
use crate::check::spread::{Grid, HOSTNAME, Lacking, Spread};
use crate::check::volumes;
use crate::check::wishes::Wishes;
use crate::*;

/// PodTopologySpread's scores of nodes.
fn spread(nodes: &[Stand<'_>], rules: &[SpreadRule], lacking: Lacking) -> Vec<i64> {
    let engine = board(nodes);
    let state = engine.state();
    let grid = Arc::new(Grid::new(state, &NodeRules::default(), rules, lacking));
    let spread = Spread::of(state, rules, &grid).expect("rules");
    spread.scores(state, rules, &slots(&engine, nodes.len()))
}

/// By hand, as `Score` and `NormalizeScore` do: two zones weigh ln 4, so that 2 pods come to
/// 2 ln 4 + 2 = 5 and 1 pod to 3; the node without a zone has 0.
#[test]
fn a_zone_with_fewer_pods_scores_higher() {
    let nodes = [("a", Some("x"), 1), ("b", Some("x"), 1), ("c", Some("y"), 1), ("d", None, 1)];
    assert_eq!(spread(&nodes, &[rule(ZONE, 3)], Lacking::Out), [60, 60, 100, 0]);
}

/// By hand: hosts are counted by nodes, of which there are 4, so that a pod weighs ln 6; 4, 1, 1 and 2
/// pods come to 7, 2, 2 and 4. Two nodes that say to be one host have their pods apart.
#[test]
fn hosts_are_scored_by_node() {
    let nodes = [("a", None, 4), ("a", None, 1), ("b", None, 1), ("c", None, 2)];
    assert_eq!(spread(&nodes, &[rule(HOSTNAME, 1)], Lacking::Out), [28, 100, 100, 71]);
}

/// By hand: 2 ln 4 + 2 ln 5 + 1, 2 ln 4 + 1 and ln 4 + ln 5 + 1 come to 7, 4 and 4.
#[test]
fn constraints_are_scored_together() {
    let nodes = [("a", Some("x"), 2), ("b", Some("x"), 0), ("c", Some("y"), 1)];
    let rules = [rule(ZONE, 1), rule(HOSTNAME, 2)];
    assert_eq!(spread(&nodes, &rules, Lacking::Out), [57, 100, 100]);
}

#[test]
fn where_none_of_the_pods_is_all_nodes_score_most() {
    let nodes = [("a", Some("x"), 0), ("b", Some("y"), 0)];
    assert_eq!(spread(&nodes, &[rule(ZONE, 1)], Lacking::Out), [100, 100]);
}

/// By hand: with the zone that has no name there are three, so that a pod weighs ln 5; but nothing is
/// counted on the node without one.
#[test]
fn by_default_a_node_without_a_zone_is_scored_by_the_rest() {
    let nodes = [("a", Some("x"), 2), ("b", Some("x"), 0), ("c", Some("y"), 1), ("d", None, 3)];
    assert_eq!(spread(&nodes, &[rule(ZONE, 1)], Lacking::Nameless), [0, 0, 33, 100]);
}

/// The weights of wishes on nodes before they are scaled, for a pod that is meant and wishes so, beside
/// pods that do the same.
fn wishes(nodes: &[Stand<'_>], own: i32, others: i32) -> Vec<i64> {
    let wishing = |weight| {
        let wish = PodWish { pods: MEANT, key: name(ZONE), weight };
        let wishes = if weight == 0 { Box::default() } else { [wish].into() };
        let near = Some(Shared::new(PodRules { wishes, ..PodRules::default() }));
        Request { matched: [MEANT].into(), near, ..Request::default() }
    };
    let engine = board_of(wishing(others), nodes);
    let (state, request) = (engine.state(), wishing(own));
    let grid = Arc::new(Grid::new(state, &NodeRules::default(), &[], Lacking::Out));
    let wishes = Wishes::of(state, &request, &grid).expect("wishes");
    let node = |slot: &u32| state.nodes.at(*slot).fact.as_ref().expect("a node");
    let slots = slots(&engine, nodes.len());
    slots.iter().map(|slot| wishes.weight(request.near.as_deref(), node(slot))).collect()
}

/// By hand: each pod in the node's zone counts by the weight of the wish, the pod's own and theirs.
#[test]
fn wishes_for_pods_count_once_for_each_of_them() {
    let nodes = [("a", Some("x"), 2), ("b", Some("x"), 1), ("c", Some("y"), 1), ("d", None, 4)];
    assert_eq!(wishes(&nodes, 5, 0), [15, 15, 5, 0]);
    assert_eq!(wishes(&nodes, 0, -2), [-6, -6, -2, 0]);
    assert_eq!(wishes(&nodes, 5, -2), [9, 9, 3, 0]);
}

const NANOS: i128 = 1_000_000_000;

fn in_zone(zone: &str) -> NodeTerm {
    [NodeRequirement::In(name(ZONE), [name(zone)].into())].into()
}

/// A class whose volumes are bound where the pod is, and for which each zone has so much room.
fn class(room: &[(&str, i64)], scored: bool) -> StorageClass {
    let room = room.iter().map(|(zone, bytes)| StorageRoom {
        nodes: in_zone(zone),
        bytes: *bytes,
        capacity_bytes: *bytes,
    });
    StorageClass {
        waits: true,
        default: false,
        provisions: true,
        driver: None,
        scored,
        topologies: None,
        room: Some(room.collect()),
    }
}

/// A volume of a class in a zone.
fn volume(class: &str, zone: &str, bytes: i128) -> Volume {
    Volume {
        class: name(class),
        size_nanos: bytes * NANOS,
        block: false,
        attributes: Name::default(),
        modes: AccessModes::ONCE,
        labels: Box::default(),
        available: true,
        deleting: false,
        claim: None,
        nodes: Some([in_zone(zone)].into()),
        migrated: None,
        zones: Box::default(),
        attach: None,
    }
}

fn claim(class: &str, bytes: i128) -> VolumeClaim {
    VolumeClaim {
        uid: Name::default(),
        owner: None,
        size_nanos: Some(bytes * NANOS),
        block: false,
        attributes: Name::default(),
        modes: AccessModes::ONCE,
        selector: None,
        class: Some(name(class)),
        volume: None,
        bound: false,
        lost: false,
        deleting: false,
        to_come: false,
        selected_node: None,
    }
}

/// VolumeBinding's scores of a node in zone x and of one in zone y, for a pod with these claims.
fn mounted(
    classes: &[(&str, StorageClass)],
    there: &[(&str, &str, i128)],
    claims: &[(&str, i128)],
) -> Vec<i64> {
    let mut engine = Engine::new();
    let zones = ["x", "y"];
    let mut changes: Vec<Change> = Vec::new();
    for (at, zone) in zones.iter().enumerate() {
        let node = Node { labels: [(name(ZONE), name(zone))].into(), ..Node::default() };
        changes.push(Change::Node(key(at), Some(node)));
    }
    let classes = classes.iter().cloned();
    changes.extend(classes.map(|(class, fact)| Change::StorageClass(name(class), Some(fact))));
    for (at, (class, zone, bytes)) in there.iter().enumerate() {
        let key = VolumeKey(name(&format!("v{at}")));
        changes.push(Change::Volume(key, Some(volume(class, zone, *bytes))));
    }
    let of_claim = |at: usize| VolumeClaimKey(scoped(&format!("d{at}")));
    for (at, (class, bytes)) in claims.iter().enumerate() {
        changes.push(Change::VolumeClaim(of_claim(at), Some(claim(class, *bytes))));
    }
    engine.apply(changes);
    let state = engine.state();
    let volumes = (0..claims.len()).map(|at| VolumeUse::Claim(of_claim(at))).collect();
    let request = Request { volumes, ..Request::default() };
    let mounts = volumes::resolve(state, &request, false).expect("nothing that stops");
    let mounts = mounts.expect("volumes");
    slots(&engine, zones.len()).iter().map(|slot| volumes::score(state, &mounts, *slot)).collect()
}

/// By hand: 30 of 40 bytes leave 25 of 100, 30 of 90 leave 67; room that is just enough leaves nothing.
#[test]
fn room_for_volumes_is_scored_by_what_is_left() {
    let one = |x, y| mounted(&[("c", class(&[("x", x), ("y", y)], true))], &[], &[("c", 30)]);
    assert_eq!(one(40, 90), [25, 67]);
    assert_eq!(one(30, 31), [0, 4]);
    // Without the gate nothing is scored.
    assert_eq!(mounted(&[("c", class(&[("x", 40)], false))], &[], &[("c", 30)]), [0, 0]);
}

/// By hand: two claims of one class ask 50 of one room of 80, which is counted once: 38 of 100. What
/// they ask of 45 is more than there is, though each finds room.
#[test]
fn claims_of_one_class_share_its_room() {
    let classes = [("c", class(&[("x", 80), ("y", 45)], true))];
    assert_eq!(mounted(&classes, &[], &[("c", 30), ("c", 20)]), [38, 0]);
}

/// By hand: 30 of 40 and 10 of 50 leave 25 and 80, which is 52.5, rounded up.
#[test]
fn classes_are_scored_by_their_mean() {
    let classes = [("c", class(&[("x", 40)], true)), ("d", class(&[("x", 50)], true))];
    assert_eq!(mounted(&classes, &[], &[("c", 30), ("d", 10)])[0], 53);
}

/// By hand: two volumes of 40 and 60 for claims of 30 and 45 leave 25 of 100, and room for a volume that
/// is to be made does not count beside them. A class that has no such volume is scored by its room.
#[test]
fn volumes_that_are_there_are_scored_before_room() {
    let classes = [("c", class(&[("y", 90)], true)), ("d", class(&[("x", 50), ("y", 50)], true))];
    let there = [("c", "x", 40), ("c", "x", 60)];
    let claims = [("c", 30), ("c", 45), ("d", 10)];
    // In zone y: 75 of 90 leave 17, 10 of 50 leave 80.
    assert_eq!(mounted(&classes, &there, &claims), [25, 49]);
}
