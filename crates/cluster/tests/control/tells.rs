//! What is told of pods that wait, and how often.

use phalanx_cluster::control::Write;
use phalanx_engine::Timestamp;

use super::board::Board;
use super::chance::Chance;
use super::client::{Client, Faults, options, run};
use super::worlds::{fleet, node, of_template, pod, template};

const START: Timestamp = Timestamp(1_000_000);
const END: Timestamp = Timestamp(5_000_000);

fn conditions(client: &Client) -> Vec<String> {
    let effects = client.steps.iter().flat_map(|step| &step.effects);
    let written = effects.filter_map(|effect| {
        let Write::PodCondition(condition) = &effect.write else { return None };
        Some(condition.message.clone())
    });
    written.collect()
}

#[test]
fn a_pod_that_waits_is_told_why_once_for_each_sentence() {
    let mut board = Board::new(
        &(fleet(1, 1) + &template("two", 2) + &pod("p", "phalanx", &of_template("two"))),
    );
    let mut chance = Chance::new(1);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    let first = conditions(&clients[0]);
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(first[0].contains("n0"), "{first:?}");
    let condition = &board.pod("p").expect("the pod").status.conditions[0];
    assert_eq!(
        (&*condition.kind, &*condition.status, &*condition.reason),
        ("PodScheduled", "False", "Unschedulable")
    );
    // What changes nothing of the sentence is not told again.
    for at in 0..5 {
        board.add(&pod(&format!("q{at}"), "default-scheduler", ""));
        run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    }
    assert_eq!(conditions(&clients[0]), first);
    let failed = |board: &Board| {
        board.events.iter().filter(|event| event.reason == "FailedScheduling").count()
    };
    assert_eq!(failed(&board), 1);
    // Another sentence is.
    board.change_pod("p", |pod| {
        pod.metadata.labels.insert("a".to_owned(), "b".to_owned());
    });
    board.add(&node("cpuless", 0));
    run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    let told = conditions(&clients[0]);
    assert!(told.windows(2).all(|pair| pair[0] != pair[1]), "{told:?}");
    assert_eq!(failed(&board), told.len());
    board.add(&node("n9", 2));
    run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    assert_eq!(board.pod("p").expect("the pod").spec.node_name, "n9");
}

#[test]
fn in_the_shadow_nothing_is_written_and_differences_are_told() {
    let mut board = Board::new(&(fleet(2, 1) + &pod("p", "default-scheduler", "")));
    let mut shadow = options("default-scheduler");
    shadow.shadow = true;
    let mut clients = [Client::new(shadow, &board, START)];
    let mut chance = Chance::new(1);
    run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    assert!(board.written.is_empty(), "{:?}", board.written);
    board.change_pod("p", |pod| "n1".clone_into(&mut pod.spec.node_name));
    run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
    let differences: Vec<_> =
        clients[0].steps.iter().flat_map(|step| step.differences.clone()).collect();
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert_eq!(differences[0].ours.as_deref(), Some("n0"));
    assert_eq!(differences[0].message, "Pod p was bound to n1; Phalanx would have taken n0.");
}
