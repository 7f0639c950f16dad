//! The controller is stopped after its n-th write, for every n, and another begins from a list: in the end
//! no gang is half, no device is had twice, and nothing is stuck. Judged from the objects alone.

use phalanx_engine::Timestamp;
use phalanx_objects::Kind;
use phalanx_objects::topology::PlacementPhase;

use super::board::Board;
use super::chance::Chance;
use super::client::{Client, Faults, options, run};
use super::gangs::record;
use super::worlds::{fleet, gang, of_template, pod, template};

const START: Timestamp = Timestamp(1_000_000);
const END: Timestamp = Timestamp(5_000_000);

/// Three gangs of three with a claim each, of which two fit; and a pod with a claim.
fn yaml() -> String {
    let mut yaml = fleet(7, 1) + &template("one", 1);
    for name in ["a", "b", "c"] {
        yaml += &gang(name, 3, "phalanx", "one");
    }
    yaml + &pod("alone", "phalanx", &of_template("one"))
}

/// What is wrong with the board once all is at rest.
fn wrong(board: &Board) -> Vec<String> {
    let mut wrong = board.devices_twice();
    let mut whole = 0;
    for name in ["a", "b", "c"] {
        let of =
            |pod: &&phalanx_objects::core::Pod| pod.metadata.name.starts_with(&format!("{name}-"));
        let bound = board.pods().filter(of).filter(|pod| !pod.spec.node_name.is_empty()).count();
        if !matches!(bound, 0 | 3) {
            wrong.push(format!("{bound} of {name} are bound"));
        }
        whole += bound / 3;
        let phase = record(board, &format!("podgroup-{name}"));
        let right = if bound == 3 { PlacementPhase::Done } else { PlacementPhase::Waiting };
        if phase != Some(right) {
            wrong.push(format!("the Placement of {name} says {phase:?}"));
        }
    }
    if whole != 2 {
        wrong.push(format!("{whole} gangs run"));
    }
    for claim in board.claims().filter(|claim| claim.status.allocation.is_some()) {
        let used =
            claim.status.reserved_for.iter().all(|user| {
                board.pod(&user.name).is_some_and(|pod| !pod.spec.node_name.is_empty())
            });
        if !used || claim.status.reserved_for.is_empty() {
            wrong.push(format!("claim {} is held for nobody", claim.metadata.name));
        }
    }
    for pod in board.pods().filter(|pod| !pod.spec.node_name.is_empty()) {
        if pod.status.phase.as_str() != "Running" {
            wrong.push(format!("pod {} does not run", pod.metadata.name));
        }
    }
    wrong
}

/// Runs with a stop after the n-th write. Answers how many writes there were.
fn stopped_after(n: usize, seed: u64, faults: &Faults) -> usize {
    let mut board = Board::new(&yaml());
    let mut chance = Chance::new(seed);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    let now = run(&mut board, &mut clients, (&mut chance, faults), (START, END), |board| {
        board.written.len() >= n
    });
    let mut options = options("phalanx");
    options.epoch = 1;
    let mut clients = [Client::new(options, &board, now)];
    run(&mut board, &mut clients, (&mut chance, faults), (now, END), |_| false);
    let wrong = wrong(&board);
    assert!(wrong.is_empty(), "after {n}, seed {seed}: {wrong:#?}\n{:#?}", board.written);
    assert_eq!(clients[0].controller.flights_len(), 0, "after {n}, seed {seed}");
    board.written.len()
}

#[test]
fn a_stop_after_any_write_leaves_no_half_gang_no_device_twice_and_nothing_stuck() {
    for seed in 0..1 {
        let all = stopped_after(usize::MAX, seed, &Faults::NONE);
        assert!(all > 20);
        for n in 0..=all {
            stopped_after(n, seed, &Faults::NONE);
        }
    }
}

#[test]
fn so_it_is_when_answers_are_lost_and_watches_repeat_themselves() {
    let faults = Faults { lost: 5, repeats: true, ..Faults::NONE };
    for seed in 0..1 {
        for n in 0..=stopped_after(usize::MAX, seed, &faults) {
            stopped_after(n, seed, &faults);
        }
    }
}

/// One is stopped, and what it has sent last is taken only after another has begun.
#[test]
fn a_write_that_lands_after_another_has_taken_over_does_no_harm() {
    for seed in 0..40 {
        let mut board = Board::new(&yaml());
        let mut chance = Chance::new(seed);
        let mut clients = vec![Client::new(options("phalanx"), &board, START)];
        let n = 1 + chance.index(24);
        let now =
            run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |board| {
                board.written.len() >= n
            });
        let mut options = options("phalanx");
        options.epoch = 1;
        let mut next = Client::new(options, &board, now);
        next.late = clients.remove(0).into_sent();
        let mut clients = [next];
        run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (now, END), |_| false);
        let wrong = wrong(&board);
        assert!(wrong.is_empty(), "seed {seed} after {n}: {wrong:#?}\n{:#?}", board.written);
    }
}

/// Its clock was set back: it reigns after whoever was before it all the same.
#[test]
fn a_controller_whose_clock_is_behind_takes_up_what_another_left() {
    for n in [2, 5, 9, 13, 17] {
        let mut board = Board::new(&yaml());
        let mut chance = Chance::new(3);
        let mut ahead = options("phalanx");
        ahead.epoch = 1_000;
        let mut clients = [Client::new(ahead, &board, START)];
        let stops = |board: &Board| board.written.len() >= n;
        let faults = &Faults::NONE;
        let now = run(&mut board, &mut clients, (&mut chance, faults), (START, END), stops);
        let mut behind = options("phalanx");
        behind.epoch = 7;
        let mut clients = [Client::new(behind, &board, now)];
        run(&mut board, &mut clients, (&mut chance, faults), (now, END), |_| false);
        let wrong = wrong(&board);
        assert!(wrong.is_empty(), "after {n}: {wrong:#?}\n{:#?}", board.written);
    }
}

/// Placements come to light only after the start, as when their kind was not served yet.
#[test]
fn a_placement_that_comes_to_light_late_is_taken_up() {
    for n in 0..24 {
        let mut board = Board::new(&yaml());
        let mut chance = Chance::new(n);
        let mut clients = [Client::new(options("phalanx"), &board, START)];
        let stops = |board: &Board| board.written.len() as u64 >= n;
        let faults = &Faults::NONE;
        let now = run(&mut board, &mut clients, (&mut chance, faults), (START, END), stops);
        let mut without = board.clone();
        without.objects.retain(|of, _| of.kind != Kind::Placement);
        let mut late = options("phalanx");
        late.epoch = 1;
        let mut clients = [Client::new(late, &without, now)];
        clients[0].list(Kind::Placement, &board, now);
        run(&mut board, &mut clients, (&mut chance, faults), (now, END), |_| false);
        let wrong = wrong(&board);
        assert!(wrong.is_empty(), "after {n}: {wrong:#?}\n{:#?}", board.written);
        assert_eq!(clients[0].controller.flights_len(), 0, "after {n}");
    }
}

#[test]
fn one_of_an_earlier_reign_writes_nothing_more_of_what_another_has_taken_up() {
    let mut board = Board::new(&yaml());
    let mut chance = Chance::new(1);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    let mut earlier = [Client::new(options("phalanx"), &board, START)];
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    board.add(&gang("e", 1, "phalanx", "one"));
    run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    board.add(&gang("d", 1, "phalanx", "one"));
    run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    let written = board.written.len();
    board.delete(&super::board::named(Kind::Pod, "default", "d-0"));
    run(&mut board, &mut earlier, (&mut chance, &Faults::NONE), (START, END), |_| false);
    let more: Vec<&String> = board.written[written..]
        .iter()
        .filter(|write| write.contains("Placement default/podgroup-d"))
        .collect();
    assert!(more.is_empty(), "{more:?}");
}
