//! Three groups with claims and with counters, and one thing that goes wrong: the controller is killed
//! after its n-th write, or the answer to the n-th is lost, be it written or not; for every n. Another
//! controller begins on the same board. In the end no gang is half, no device is had twice, nothing is
//! stuck and nothing is held for nobody. Judged from the objects alone.

use phalanx_cluster::control::{Answer, ControlOptions};
use phalanx_engine::Timestamp;
use phalanx_objects::Kind;
use phalanx_objects::topology::PlacementPhase;

use super::board::Board;
use super::chance::Chance;
use super::client::{Client, Faults, options, run};
use super::gangs::record;
use super::worlds::{node, of_template, pod, template};

const START: Timestamp = Timestamp(1_000_000);
const END: Timestamp = Timestamp(5_000_000);

/// What goes wrong at the n-th write.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    /// It is made, and the controller is killed.
    Killed,
    /// It is made, its answer is lost, and the controller goes on.
    Unanswered,
    /// It is not made, and that is not said either; the controller goes on.
    Unmade,
}

/// A gang of three that has one claim for all of it and one for each; a pod with a claim; and a gang of two
/// that counts on a device plugin. All of them fit, and just so.
fn yaml() -> String {
    let counted = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}\n\
             status: {{allocatable: {{cpu: '16', memory: 64Gi, pods: '110', old.example.com/gpu: '1'}}}}\n"
        )
    };
    let group = |name: &str, pods: usize, more: &str| {
        format!(
            "---\napiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}, namespace: default}}\n\
             spec: {{schedulingPolicy: {{gang: {{minCount: {pods}}}}}{more}}}\n"
        )
    };
    let class =
        "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n";
    let mut yaml = class.to_owned() + &node("n0", 5) + &counted("n1") + &counted("n2");
    yaml += &template("one", 1);
    yaml += &group("shared", 3, ", resourceClaims: [{name: all, resourceClaimTemplateName: one}]");
    for at in 0..3 {
        let more = "  schedulingGroup: {podGroupName: shared}\n  resourceClaims: [{name: all, \
                    resourceClaimTemplateName: one}, {name: own, resourceClaimTemplateName: one}]\n";
        yaml += &pod(&format!("shared-{at}"), "phalanx", more);
    }
    yaml += &pod("alone", "phalanx", &of_template("one"));
    yaml += &group("counts", 2, "");
    for at in 0..2 {
        let asks = "resources: {requests: {cpu: '1', old.example.com/gpu: '1'}, limits: \
                    {old.example.com/gpu: '1'}}";
        yaml +=
            &pod(&format!("counts-{at}"), "phalanx", "  schedulingGroup: {podGroupName: counts}\n")
                .replace("resources: {requests: {cpu: '1'}}", asks);
    }
    yaml
}

/// What is wrong with the board once all is at rest.
fn wrong(board: &Board) -> Vec<String> {
    let mut wrong = board.devices_twice();
    for pod in board.pods().filter(|pod| pod.status.phase.as_str() != "Running") {
        wrong.push(format!("pod {} is {}", pod.metadata.name, pod.status.phase.as_str()));
    }
    if board.pods().count() != 6 {
        wrong.push(format!("there are {} pods", board.pods().count()));
    }
    for name in ["podgroup-shared", "podgroup-counts"] {
        let phase = record(board, name);
        if phase != Some(PlacementPhase::Done) {
            wrong.push(format!("{name} says {phase:?}"));
        }
    }
    for claim in board.claims() {
        let on_nodes = board.users(claim).iter().all(|pod| !pod.spec.node_name.is_empty());
        if claim.status.allocation.is_none() || board.users(claim).is_empty() || !on_nodes {
            wrong.push(format!("claim {} is held for nobody", claim.metadata.name));
        }
    }
    let placements = board.objects.keys().filter(|of| of.kind == Kind::Placement).count();
    if placements != 2 {
        wrong.push(format!("there are {placements} Placements"));
    }
    wrong
}

/// The next controller of the same name.
fn next() -> ControlOptions {
    let mut options = options("phalanx");
    options.epoch = 1;
    options
}

/// Runs with one thing that goes wrong at the n-th write. Answers how many writes there were.
fn at(n: usize, what: Wrong, seed: u64) -> usize {
    let mut board = Board::new(&yaml());
    let mut chance = Chance::new(seed);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    let come = |board: &Board| board.written.len() >= n;
    let faults = &Faults::NONE;
    let now = run(&mut board, &mut clients, (&mut chance, faults), (START, END), come);
    match what {
        Wrong::Killed => clients = [Client::new(next(), &board, now)],
        Wrong::Unanswered => clients[0].lose_answers(|answer| match answer {
            Answer::Written(_) => Answer::Unknown,
            Answer::Conflict | Answer::Missing | Answer::Refused { .. } | Answer::Unknown => answer,
        }),
        Wrong::Unmade => clients[0].lose_effect(),
    }
    run(&mut board, &mut clients, (&mut chance, faults), (now, END), |_| false);
    let wrong = wrong(&board);
    assert!(wrong.is_empty(), "{what:?} {n}, seed {seed}: {wrong:#?}\n{:#?}", board.written);
    assert_eq!(clients[0].controller.flights_len(), 0, "{what:?} {n}, seed {seed}");
    board.written.len()
}

#[test]
fn a_kill_or_a_lost_answer_at_any_write_leaves_nothing_half_twice_or_stuck() {
    for seed in 0..1 {
        let all = at(usize::MAX, Wrong::Killed, seed);
        // Two Placements of three phases, five claims of two writes, six bindings with their events.
        assert!(all >= 6 + 10 + 12, "{all}");
        for what in [Wrong::Killed, Wrong::Unanswered, Wrong::Unmade] {
            for n in 0..=all {
                at(n, what, seed);
            }
        }
    }
}
