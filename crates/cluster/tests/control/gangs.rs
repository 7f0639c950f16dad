//! Groups that start whole: in two phases, and what becomes of one that is bound and does not run.

use phalanx_engine::Timestamp;
use phalanx_objects::core::Pod;
use phalanx_objects::topology::PlacementPhase;
use phalanx_objects::{Kind, Object};

use super::board::{Board, named};
use super::chance::Chance;
use super::client::{Client, Faults, options, run};
use super::worlds::{fleet, gang, member, template};

const START: Timestamp = Timestamp(1_000_000);
const END: Timestamp = Timestamp(2_000_000);

pub(crate) fn record(board: &Board, name: &str) -> Option<PlacementPhase> {
    match board.objects.get(&named(Kind::Placement, "default", name)) {
        Some(Object::Placement(placement)) => placement.spec.phase,
        Some(_) | None => None,
    }
}

fn running(board: &Board, of: &str) -> usize {
    let of = |pod: &&Pod| pod.metadata.name.starts_with(of);
    board.pods().filter(of).filter(|pod| pod.status.phase.as_str() == "Running").count()
}

/// A gang of 8 with room for all, of which the last is refused by its kubelet.
fn one_of_eight_refused() -> (Board, [Client; 1], Faults) {
    let yaml = fleet(4, 2) + &template("one", 1) + &gang("g", 8, "phalanx", "one");
    let board = Board::new(&yaml);
    let faults = Faults { refuses: |pod: &Pod| pod.metadata.name == "g-7", ..Faults::NONE };
    let clients = [Client::new(options("phalanx"), &board, START)];
    (board, clients, faults)
}

#[test]
fn a_gang_is_held_then_committed_then_bound() {
    let yaml = fleet(3, 1) + &template("one", 1) + &gang("g", 3, "phalanx", "one");
    let mut board = Board::new(&yaml);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    run(&mut board, &mut clients, (&mut Chance::new(3), &Faults::NONE), (START, END), |_| false);
    let at = |word: &str| {
        let found = board.written.iter().enumerate().filter(|(_, write)| write.starts_with(word));
        found.map(|(at, _)| at).collect::<Vec<_>>()
    };
    let (create, update) = (at("create Placement"), at("update Placement"));
    let (allocate, bind) = (at("allocate"), at("bind"));
    assert_eq!((create.len(), update.len()), (1, 2), "{:#?}", board.written);
    assert_eq!((allocate.len(), bind.len()), (3, 3), "{:#?}", board.written);
    let order = [create[0], allocate[0], allocate[2], update[0], bind[0], bind[2], update[1]];
    assert!(order.is_sorted(), "{:#?}", board.written);
    assert_eq!(record(&board, "podgroup-g"), Some(PlacementPhase::Done));
}

#[test]
fn a_placement_that_has_no_pods_any_more_goes() {
    let yaml = fleet(3, 1) + &template("one", 1) + &gang("g", 3, "phalanx", "one");
    let mut board = Board::new(&yaml);
    let mut chance = Chance::new(3);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    assert_eq!(record(&board, "podgroup-g"), Some(PlacementPhase::Done));
    for at in 0..3 {
        board.delete(&named(Kind::Pod, "default", &format!("g-{at}")));
    }
    run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    assert_eq!(record(&board, "podgroup-g"), None);
    assert!(board.claims().all(|claim| claim.status.allocation.is_none()));
}

/// Member 7 of 8 is refused by its kubelet, and nobody makes another: within the bound none holds anything.
#[test]
fn a_gang_of_which_a_member_never_runs_is_released_whole() {
    for seed in 0..12 {
        let (mut board, mut clients, faults) = one_of_eight_refused();
        let mut chance = Chance::new(seed);
        let bound = Timestamp(START.0 + 65_000);
        let now = run(&mut board, &mut clients, (&mut chance, &faults), (START, bound), |_| false);
        assert!(now <= bound, "seed {seed}");
        assert_eq!(running(&board, "g-"), 0, "seed {seed}: {:#?}", board.written);
        let held = board.claims().filter(|claim| claim.status.allocation.is_some()).count();
        assert_eq!(held, 0, "seed {seed}");
        assert_eq!(record(&board, "podgroup-g"), None, "seed {seed}");
        let released: Vec<_> =
            board.events.iter().filter(|event| event.reason == "Released").collect();
        assert_eq!(released.len(), 7, "seed {seed}");
        assert!(
            released[0].note.contains("only 7 of the 8 pods")
                && released[0].note.contains("pod g-7 has failed"),
            "{}",
            released[0].note
        );
    }
}

/// Each controller is stopped before the time is over: the next does not begin it anew.
#[test]
fn a_gang_is_released_though_no_controller_lives_as_long_as_it_may_take() {
    let (mut board, _, faults) = one_of_eight_refused();
    let (mut chance, mut now) = (Chance::new(4), START);
    let end = Timestamp(START.0 + 60_000 + 2 * 15_000);
    while now < end {
        let mut clients = [Client::new(options("phalanx"), &board, now)];
        let stopped = Timestamp(now.0 + 15_000);
        run(&mut board, &mut clients, (&mut chance, &faults), (now, stopped), |_| false);
        now = stopped;
    }
    assert_eq!(running(&board, "g-"), 0, "{:#?}", board.written);
    assert_eq!(record(&board, "podgroup-g"), None);
}

/// The members that ran are deleted and take their time; of those that come for them one never runs. That
/// the others ran keeps the new ones from nothing: they are released.
#[test]
fn those_that_ran_and_are_being_deleted_do_not_count_for_those_that_follow() {
    for seed in 0..6 {
        let yaml = fleet(4, 2) + &template("one", 1) + &gang("g", 4, "phalanx", "one");
        let mut board = Board::new(&yaml);
        let faults = Faults { refuses: |pod: &Pod| pod.metadata.name == "g-7", ..Faults::NONE };
        let mut chance = Chance::new(seed);
        let mut clients = [Client::new(options("phalanx"), &board, START)];
        let done = |board: &Board| record(board, "podgroup-g") == Some(PlacementPhase::Done);
        let now = run(&mut board, &mut clients, (&mut chance, &faults), (START, END), done);
        board.lingers = true;
        (0..4).for_each(|at| board.delete(&named(Kind::Pod, "default", &format!("g-{at}"))));
        (4..8).for_each(|at| board.add(&member("g", at, "phalanx", "one")));
        let end = Timestamp(now.0 + 70_000);
        run(&mut board, &mut clients, (&mut chance, &faults), (now, end), |_| false);
        let stays = |at: &usize| {
            let pod = board.pod(&format!("g-{at}"));
            pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none())
        };
        let stay: Vec<usize> = (4..7).filter(stays).collect();
        assert!(stay.is_empty(), "seed {seed}: {stay:?} of {:#?}", board.written);
    }
}

/// What gives a gang back is refused: it is tried again, each time later, and done once it may be.
#[test]
fn what_is_refused_while_a_gang_is_given_back_is_tried_again_later() {
    for forbidden in ["delete Pod", "update Placement", "release ResourceClaim"] {
        let (mut board, mut clients, faults) = one_of_eight_refused();
        let mut chance = Chance::new(5);
        let bound = |board: &Board| board.pods().all(|pod| !pod.spec.node_name.is_empty());
        let now = run(&mut board, &mut clients, (&mut chance, &faults), (START, END), bound);
        board.forbidden = Some(forbidden);
        let later = Timestamp(now.0 + 200_000);
        let now = run(&mut board, &mut clients, (&mut chance, &faults), (now, later), |_| false);
        // 140 s after the bound of 60: at 0, 1, 3, 7, 15, 31, 63 and 123 s, of at most 7 pods.
        assert!(board.refused <= 8 * 7, "{forbidden}: {}", board.refused);
        assert!(board.refused > 0, "{forbidden}");
        board.forbidden = None;
        run(&mut board, &mut clients, (&mut chance, &faults), (now, END), |_| false);
        assert_eq!(running(&board, "g-"), 0, "{forbidden}: {:#?}", board.written);
        assert_eq!(record(&board, "podgroup-g"), None, "{forbidden}");
    }
}

/// Somebody deletes the Placement of a gang that is bound in part: it is written again, and the gang is
/// ended when it does not come to run.
#[test]
fn a_committed_gang_whose_placement_is_deleted_is_released_whole() {
    let (mut board, mut clients, faults) = one_of_eight_refused();
    let mut chance = Chance::new(5);
    let some = |board: &Board| board.pods().any(|pod| !pod.spec.node_name.is_empty());
    let now = run(&mut board, &mut clients, (&mut chance, &faults), (START, END), some);
    board.delete(&named(Kind::Placement, "default", "podgroup-g"));
    run(&mut board, &mut clients, (&mut chance, &faults), (now, END), |_| false);
    assert_eq!(running(&board, "g-"), 0, "{:#?}", board.written);
    assert_eq!(record(&board, "podgroup-g"), None);
}

/// That all runs is refused to be written: that is tried again, and what runs is left alone.
#[test]
fn a_gang_that_runs_is_not_ended_when_its_placement_can_t_be_written() {
    for seed in 0..12 {
        let yaml = fleet(3, 1) + &template("one", 1) + &gang("g", 3, "phalanx", "one");
        let mut board = Board::new(&yaml);
        let mut chance = Chance::new(seed);
        let mut clients = [Client::new(options("phalanx"), &board, START)];
        let bound = |board: &Board| board.pods().all(|pod| !pod.spec.node_name.is_empty());
        let faults = &Faults::NONE;
        let now = run(&mut board, &mut clients, (&mut chance, faults), (START, END), bound);
        board.forbidden = Some("update Placement");
        let later = Timestamp(now.0 + 200_000);
        let now = run(&mut board, &mut clients, (&mut chance, faults), (now, later), |_| false);
        assert!((3..=10).contains(&board.refused), "seed {seed}: {}", board.refused);
        assert_eq!(running(&board, "g-"), 3, "seed {seed}: {:#?}", board.written);
        board.forbidden = None;
        run(&mut board, &mut clients, (&mut chance, faults), (now, END), |_| false);
        assert_eq!(running(&board, "g-"), 3, "seed {seed}: {:#?}", board.written);
        assert_eq!(record(&board, "podgroup-g"), Some(PlacementPhase::Done), "seed {seed}");
        assert_eq!(clients[0].controller.flights_len(), 0, "seed {seed}");
    }
}

/// Somebody deletes the Placement of a gang that is released, after the controller that began it was
/// stopped: what is bound is ended all the same.
#[test]
fn a_gang_that_is_released_goes_on_being_so_though_its_placement_is_deleted() {
    for stopped in [false, true] {
        let (mut board, mut clients, faults) = one_of_eight_refused();
        let mut chance = Chance::new(5);
        let releasing =
            |board: &Board| record(board, "podgroup-g") == Some(PlacementPhase::Releasing);
        let now = run(&mut board, &mut clients, (&mut chance, &faults), (START, END), releasing);
        assert_eq!(running(&board, "g-"), 7, "{:#?}", board.written);
        if stopped {
            clients = [Client::new(options("phalanx"), &board, now)];
        }
        board.delete(&named(Kind::Placement, "default", "podgroup-g"));
        run(&mut board, &mut clients, (&mut chance, &faults), (now, END), |_| false);
        assert_eq!(running(&board, "g-"), 0, "{stopped}: {:#?}", board.written);
        assert_eq!(record(&board, "podgroup-g"), None, "{stopped}");
        assert_eq!(clients[0].controller.flights_len(), 0, "{stopped}");
    }
}

/// What was refused and is not any more begins with a short pause when something else is.
#[test]
fn a_write_that_is_taken_ends_the_growing_of_pauses() {
    let (mut board, mut clients, faults) = one_of_eight_refused();
    let mut chance = Chance::new(5);
    let bound = |board: &Board| board.pods().all(|pod| !pod.spec.node_name.is_empty());
    let now = run(&mut board, &mut clients, (&mut chance, &faults), (START, END), bound);
    board.forbidden = Some("update Placement");
    let later = Timestamp(now.0 + 125_000);
    let now = run(&mut board, &mut clients, (&mut chance, &faults), (now, later), |_| false);
    board.forbidden = Some("delete Pod");
    let released = |board: &Board| record(board, "podgroup-g") == Some(PlacementPhase::Releasing);
    let now = run(&mut board, &mut clients, (&mut chance, &faults), (now, END), released);
    board.refused = 0;
    let later = Timestamp(now.0 + 12_000);
    run(&mut board, &mut clients, (&mut chance, &faults), (now, later), |_| false);
    // At 0, 1, 3 and 7 s, each of 7 pods; it had come to pauses of half a minute before.
    assert_eq!(board.refused, 4 * 7);
}

/// A member of a committed gang whose binding is refused is tried again each time later, and the others
/// are left alone meanwhile.
#[test]
fn a_seat_of_a_committed_gang_that_is_refused_is_tried_again_ever_later() {
    for seed in 0..12 {
        let yaml = fleet(3, 1) + &template("one", 1) + &gang("g", 3, "phalanx", "one");
        let mut board = Board::new(&yaml);
        let mut chance = Chance::new(seed);
        let mut clients = [Client::new(options("phalanx"), &board, START)];
        board.forbidden = Some("bind Pod default/g-2");
        let later = Timestamp(START.0 + 20_000);
        let faults = &Faults::NONE;
        let now = run(&mut board, &mut clients, (&mut chance, faults), (START, later), |_| false);
        // The first pause is between one second and two, and each is twice as long as the one before.
        assert!((4..=5).contains(&board.refused), "seed {seed}: {}", board.refused);
        assert_eq!(running(&board, "g-"), 2, "seed {seed}: {:#?}", board.written);
        let why = board.pod("g-2").expect("the member").status.conditions.clone();
        assert_eq!(why[0].reason, "Unschedulable");
        board.forbidden = None;
        run(&mut board, &mut clients, (&mut chance, faults), (now, END), |_| false);
        assert_eq!(running(&board, "g-"), 3, "seed {seed}: {:#?}", board.written);
        assert_eq!(record(&board, "podgroup-g"), Some(PlacementPhase::Done), "seed {seed}");
    }
}

/// The same, and its workload makes another, which runs: all eight run, and the seven were left alone.
#[test]
fn a_member_that_comes_again_is_seated_beside_the_others() {
    for seed in 0..12 {
        let (mut board, mut clients, faults) = one_of_eight_refused();
        let mut chance = Chance::new(seed);
        let failed = |board: &Board| {
            board.pod("g-7").is_some_and(|pod| pod.status.phase.as_str() == "Failed")
        };
        let now = run(&mut board, &mut clients, (&mut chance, &faults), (START, END), failed);
        board.add(&member("g", 8, "phalanx", "one"));
        let end = Timestamp(now.0 + 60_000);
        run(&mut board, &mut clients, (&mut chance, &faults), (now, end), |_| false);
        assert_eq!(running(&board, "g-"), 8, "seed {seed}: {:#?}", board.written);
        assert_eq!(record(&board, "podgroup-g"), Some(PlacementPhase::Done), "seed {seed}");
        assert_eq!(board.devices_twice(), Vec::<String>::new(), "seed {seed}");
    }
}

/// A gang for which there is no room holds nothing, and its Placement says why.
#[test]
fn a_gang_that_waits_holds_nothing_and_its_placement_says_why() {
    let yaml = fleet(2, 1) + &template("one", 1) + &gang("g", 3, "phalanx", "one");
    let mut board = Board::new(&yaml);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    run(&mut board, &mut clients, (&mut Chance::new(1), &Faults::NONE), (START, END), |_| false);
    assert!(board.claims().all(|claim| claim.status.allocation.is_none()));
    let of = named(Kind::Placement, "default", "podgroup-g");
    let Some(Object::Placement(placement)) = board.objects.get(&of) else { panic!("no {of}") };
    assert_eq!(placement.spec.phase, Some(PlacementPhase::Waiting));
    assert_eq!(placement.status.reason, "GroupShort", "{:?}", placement.status);
    assert!(placement.status.message.contains('3'), "{}", placement.status.message);
    board.add(&super::worlds::node("late", 1));
    run(&mut board, &mut clients, (&mut Chance::new(1), &Faults::NONE), (START, END), |_| false);
    assert_eq!(running(&board, "g-"), 3, "{:#?}", board.written);
    assert_eq!(record(&board, "podgroup-g"), Some(PlacementPhase::Done));
}
