//! Two controllers that write to one pool of devices: in whatever order their writes and watches come, no
//! device is in the claims of two pods that are bound.

use phalanx_engine::Timestamp;

use super::board::Board;
use super::chance::Chance;
use super::client::{Client, Faults, options, run};
use super::worlds::{fleet, gang, of_template, pod, template};

const START: Timestamp = Timestamp(1_000_000);
const END: Timestamp = Timestamp(5_000_000);

fn bound(board: &Board) -> usize {
    board.pods().filter(|pod| !pod.spec.node_name.is_empty()).count()
}

fn with_two(yaml: &str, names: [&str; 2], seed: u64) -> Board {
    let mut board = Board::new(yaml);
    let mut chance = Chance::new(seed);
    let mut clients = names.map(|name| Client::new(options(name), &board, START));
    let faults = Faults { lost: 8, ..Faults::NONE };
    let mut seen = Vec::new();
    run(&mut board, &mut clients, (&mut chance, &faults), (START, END), |board| {
        seen.extend(board.devices_twice());
        false
    });
    assert!(seen.is_empty(), "seed {seed}: {seen:?}\n{:#?}", board.written);
    board
}

/// Both decide at once on the same devices, each for a pod of its own.
#[test]
fn of_two_pods_that_were_given_one_device_at_most_one_is_bound() {
    let mut overlaps = 0;
    for seed in 0..300 {
        let yaml = fleet(1, 2)
            + &template("one", 1)
            + &pod("p", "left", &of_template("one"))
            + &pod("q", "right", &of_template("one"));
        let board = with_two(&yaml, ["left", "right"], seed);
        overlaps += usize::from(board.written.iter().any(|write| write.starts_with("release")));
        assert_eq!(bound(&board), 2, "seed {seed}: {:#?}", board.written);
    }
    assert!(overlaps >= 50, "{overlaps}");
}

/// The one that came second, and is to give way, is stopped at any write; another goes on in its place.
#[test]
fn who_came_second_may_be_stopped_at_any_write() {
    let yaml = fleet(1, 2)
        + &template("one", 1)
        + &pod("p", "left", &of_template("one"))
        + &pod("q", "right", &of_template("one"));
    let mut overlaps = 0;
    for seed in 0..40 {
        for n in 0..12 {
            let mut board = Board::new(&yaml);
            let mut chance = Chance::new(seed);
            let mut clients =
                ["left", "right"].map(|name| Client::new(options(name), &board, START));
            let faults = Faults { lost: 8, ..Faults::NONE };
            let mut seen = Vec::new();
            let now =
                run(&mut board, &mut clients, (&mut chance, &faults), (START, END), |board| {
                    seen.extend(board.devices_twice());
                    board.written.len() >= n
                });
            let second = board.written.iter().any(|write| write.starts_with("release"));
            overlaps += usize::from(second);
            let mut again = options("right");
            again.epoch = 1;
            clients[1] = Client::new(again, &board, now);
            run(&mut board, &mut clients, (&mut chance, &faults), (now, END), |board| {
                seen.extend(board.devices_twice());
                false
            });
            assert!(seen.is_empty(), "seed {seed} after {n}: {seen:?}\n{:#?}", board.written);
            assert_eq!(bound(&board), 2, "seed {seed} after {n}: {:#?}", board.written);
            let held = board.claims().filter(|claim| claim.status.allocation.is_some()).count();
            assert_eq!(held, 2, "seed {seed} after {n}: {:#?}", board.written);
        }
    }
    // Stopped in the midst of giving way, or right after it.
    assert!(overlaps >= 50, "{overlaps}");
}

#[test]
fn gangs_of_two_controllers_do_not_hold_each_other_up_for_ever() {
    let mut overlaps = 0;
    for seed in 0..120 {
        let yaml = fleet(6, 1)
            + &template("one", 1)
            + &gang("g", 3, "left", "one")
            + &gang("h", 3, "right", "one");
        let board = with_two(&yaml, ["left", "right"], seed);
        overlaps += usize::from(board.written.iter().any(|write| write.starts_with("release")));
        assert_eq!(bound(&board), 6, "seed {seed}: {:#?}", board.written);
    }
    assert!(overlaps >= 50, "{overlaps}");
}

/// One device, two controllers of one name without an election: both act on both pods.
#[test]
fn two_of_one_name_do_not_undo_each_other() {
    for seed in 0..150 {
        let yaml = fleet(1, 2)
            + &template("one", 1)
            + &pod("p", "phalanx", &of_template("one"))
            + &pod("q", "phalanx", &of_template("one"))
            + &pod("r", "phalanx", &of_template("one"));
        let board = with_two(&yaml, ["phalanx", "phalanx"], seed);
        assert_eq!(bound(&board), 2, "seed {seed}: {:#?}", board.written);
        let waits = |pod: &&phalanx_objects::core::Pod| {
            !pod.spec.node_name.is_empty() && !board.has_claims(pod)
        };
        assert_eq!(board.pods().filter(waits).count(), 0, "seed {seed}: {:#?}", board.written);
    }
}
