//! Seats that are held and wait for others: for drivers to prepare devices, for volumes to be made. They
//! are given up when their node goes or is shut, and when it takes too long.

use std::sync::Arc;

use phalanx_engine::Timestamp;
use phalanx_objects::storage::SELECTED_NODE_ANNOTATION;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::board::{Board, named};
use super::chance::Chance;
use super::client::{Client, Faults, options, run};
use super::worlds::{fleet, gang, of_template, pod, template};

const START: Timestamp = Timestamp(1_000_000);
const END: Timestamp = Timestamp(5_000_000);

/// Each node has one device that is to be prepared before a pod is bound to it.
fn prepared(nodes: usize) -> String {
    fleet(nodes, 1).replace("{name: gpu-0}", "{name: gpu-0, bindingConditions: [Attached]}")
}

/// The nodes on which claims hold devices.
fn held(board: &Board) -> Vec<&str> {
    let claims = board.claims().filter_map(|claim| claim.status.allocation.as_ref());
    let mut pools: Vec<&str> =
        claims.flat_map(|held| &held.devices.results).map(|result| result.pool.as_str()).collect();
    pools.sort_unstable();
    pools
}

fn shut(board: &mut Board, node: &str) {
    board.change(&named(Kind::Node, "", node), |object| {
        let Object::Node(node) = object else { panic!("a node") };
        Arc::make_mut(node).spec.unschedulable = true;
    });
}

#[test]
fn a_seat_that_waits_is_given_up_when_its_node_is_cordoned_or_goes() {
    for goes in [false, true] {
        for more in ["", "  tolerations: [{operator: Exists}]\n"] {
            let more = of_template("one") + more;
            let yaml = prepared(2) + &template("one", 1) + &pod("p", "phalanx", &more);
            let mut board = Board::new(&yaml);
            let mut chance = Chance::new(1);
            let mut clients = [Client::new(options("phalanx"), &board, START)];
            let faults = &Faults::NONE;
            let end = Timestamp(START.0 + 10_000);
            run(&mut board, &mut clients, (&mut chance, faults), (START, end), |_| false);
            assert_eq!(held(&board), ["n0"]);
            if goes {
                board.delete(&named(Kind::Node, "", "n0"));
            } else {
                shut(&mut board, "n0");
            }
            run(&mut board, &mut clients, (&mut chance, faults), (end, end), |_| false);
            let end = Timestamp(end.0 + 10_000);
            run(&mut board, &mut clients, (&mut chance, faults), (end, end), |_| false);
            let stays = !goes && more.contains("Exists");
            assert_eq!(held(&board), [if stays { "n0" } else { "n1" }], "{:#?}", board.written);
        }
    }
}

#[test]
fn a_gang_that_is_held_is_decided_again_when_a_node_of_it_is_cordoned() {
    let yaml = prepared(4) + &template("one", 1) + &gang("g", 3, "phalanx", "one");
    let mut board = Board::new(&yaml);
    let mut chance = Chance::new(1);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    let faults = &Faults::NONE;
    let end = Timestamp(START.0 + 10_000);
    run(&mut board, &mut clients, (&mut chance, faults), (START, end), |_| false);
    assert_eq!(held(&board), ["n0", "n1", "n2"]);
    shut(&mut board, "n1");
    let later = Timestamp(end.0 + 10_000);
    run(&mut board, &mut clients, (&mut chance, faults), (end, later), |_| false);
    assert_eq!(held(&board), ["n0", "n2", "n3"], "{:#?}", board.written);
}

/// Nobody prepares the devices: after ten minutes they are given up, and why is told.
#[test]
fn who_waits_too_long_gives_up_what_it_holds() {
    for yaml in [pod("p", "phalanx", &of_template("one")), gang("p", 2, "phalanx", "one")] {
        let mut board = Board::new(&(prepared(2) + &template("one", 1) + &yaml));
        let mut chance = Chance::new(1);
        let mut clients = [Client::new(options("phalanx"), &board, START)];
        let faults = &Faults::NONE;
        let released = |board: &Board| board.written.iter().any(|w| w.starts_with("release"));
        let now = run(&mut board, &mut clients, (&mut chance, faults), (START, END), released);
        assert!((600_000..610_000).contains(&(now.0 - START.0)), "{}", now.0 - START.0);
        run(&mut board, &mut clients, (&mut chance, faults), (now, now), |_| false);
        let told: Vec<&str> = board.events.iter().map(|event| event.note.as_str()).collect();
        assert!(told.iter().any(|note| note.contains("did not report in time")), "{told:?}");
    }
}

/// A pod whose volume is still to be made, on the node that is told.
fn without_volume() -> (Board, ObjectRef) {
    let volume = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: cloud}\n\
        provisioner: disk.example.com\nvolumeBindingMode: WaitForFirstConsumer\n\
        ---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\n\
        spec: {storageClassName: cloud, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    let more = "  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n";
    let board = Board::new(&(fleet(2, 0) + volume + &pod("p", "phalanx", more)));
    (board, named(Kind::PersistentVolumeClaim, "default", "data"))
}

/// Nobody makes the volume: after ten minutes the place is given up, and why is told.
#[test]
fn who_waits_too_long_for_a_volume_is_told_so() {
    let (mut board, _) = without_volume();
    let mut chance = Chance::new(1);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    let told =
        |board: &Board| board.events.iter().any(|event| event.note.contains("more than 600 s"));
    let faults = &Faults::NONE;
    let now = run(&mut board, &mut clients, (&mut chance, faults), (START, END), told);
    assert!((600_000..610_000).contains(&(now.0 - START.0)), "{}", now.0 - START.0);
}

/// No volume can be made on the node that was told: the annotation is taken away again each time. It is
/// tried ever later, and not over and over.
#[test]
fn a_node_that_is_taken_back_from_a_volume_s_claim_is_not_told_over_and_over() {
    let (mut board, of) = without_volume();
    let mut chance = Chance::new(1);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    let faults = &Faults::NONE;
    let selected = |board: &Board| {
        board.objects[&of].metadata().annotations.contains_key(SELECTED_NODE_ANNOTATION)
    };
    let (mut now, end) = (START, Timestamp(START.0 + 100_000));
    let mut times = 0;
    while now < end {
        now = run(&mut board, &mut clients, (&mut chance, faults), (now, end), selected);
        if !selected(&board) {
            break;
        }
        times += 1;
        assert!(times < 50, "over and over");
        board.change(&of, |object| {
            object.metadata_mut().annotations = Default::default();
        });
    }
    // Pauses of 1, 2, 4, 8, 16 and 32 s, each up to twice as long by the name.
    assert!((5..=8).contains(&times), "{times}: {:#?}", board.written);
    let told: Vec<&str> = board.events.iter().map(|event| event.note.as_str()).collect();
    assert!(told.iter().any(|note| note.contains("no volume could be made")), "{told:?}");
}
