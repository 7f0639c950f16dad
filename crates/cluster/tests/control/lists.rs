//! Watches that are lost: after a list anew all is as it is on the board, what is gone too.

use phalanx_engine::Timestamp;
use phalanx_objects::Kind;

use super::board::{Board, named};
use super::chance::Chance;
use super::client::{Client, Faults, options, run};
use super::worlds::{fleet, gang, of_template, pod, template};

const START: Timestamp = Timestamp(1_000_000);
const END: Timestamp = Timestamp(5_000_000);

#[test]
fn what_is_gone_when_a_list_comes_is_gone() {
    for seed in 0..40 {
        let mut yaml = fleet(2, 1) + &template("one", 1);
        for at in 0..3 {
            yaml += &pod(&format!("p{at}"), "phalanx", &of_template("one"));
        }
        let mut board = Board::new(&yaml);
        let mut chance = Chance::new(seed);
        let mut clients = [Client::new(options("phalanx"), &board, START)];
        run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
        let first = board.pods().find(|pod| !pod.spec.node_name.is_empty()).expect("one is bound");
        let first = named(Kind::Pod, "default", &first.metadata.name);
        board.delete(&first);
        for _ in 0..3 {
            board.kubelets(|_| false);
            board.controllers();
        }
        for kind in [Kind::Pod, Kind::ResourceClaim] {
            clients[0].lose_watch(kind, &board);
        }
        run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
        let bound =
            |board: &Board| board.pods().filter(|pod| !pod.spec.node_name.is_empty()).count();
        assert_eq!(bound(&board), 1, "nothing was heard");
        for kind in [Kind::ResourceClaim, Kind::Pod] {
            clients[0].list(kind, &board, START);
        }
        run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
        assert_eq!(bound(&board), 2, "seed {seed}: {:#?}", board.written);
        assert_eq!(board.devices_twice(), Vec::<String>::new());
    }
}

/// Lists of any kind at any time, in the midst of a gang's writes.
#[test]
fn lists_at_any_time_lead_to_the_same_end() {
    for seed in 0..60 {
        let yaml = fleet(3, 2)
            + &template("one", 1)
            + &gang("g", 4, "phalanx", "one")
            + &pod("p", "phalanx", &of_template("one"));
        let mut board = Board::new(&yaml);
        let mut chance = Chance::new(seed);
        let mut clients = [Client::new(options("phalanx"), &board, START)];
        let mut now = START;
        for n in 0..12 {
            now =
                run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (now, now), |board| {
                    board.written.len() >= 2 * n
                });
            let kind = chance.pick(&["Pod", "ResourceClaim", "Placement", "ResourceSlice"]);
            let kind = *Kind::ALL.iter().find(|of| of.as_str() == kind).expect("a kind");
            clients[0].lose_watch(kind, &board);
            clients[0].list(kind, &board, now);
        }
        run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (now, END), |_| false);
        let bound = board.pods().filter(|pod| !pod.spec.node_name.is_empty()).count();
        assert_eq!(bound, 5, "seed {seed}: {:#?}", board.written);
        assert_eq!(board.devices_twice(), Vec::<String>::new());
    }
}

#[test]
fn nothing_is_decided_before_every_kind_was_listed() {
    use phalanx_cluster::control::{Controller, Event, kinds};
    let board = Board::new(&(fleet(1, 1) + &pod("p", "phalanx", "")));
    let mut controller = Controller::new(options("phalanx"));
    let all: Vec<Kind> = kinds().collect();
    for (at, kind) in all.iter().enumerate() {
        let of_kind = board.objects.values().filter(|object| object.kind() == *kind);
        let mut events = vec![Event::Listing(*kind)];
        events.extend(of_kind.map(|object| Event::Found(Box::new(object.clone()))));
        events.push(Event::Listed { kind: *kind, version: "100".to_owned() });
        let step = controller.step(events, START);
        assert_eq!(step.synced, at + 1 == all.len());
        assert_eq!(step.effects.is_empty(), at + 1 < all.len(), "{kind}");
    }
}
