//! Worlds made by chance, about which the real kube-scheduler is asked as well. It is a program in Go
//! (`xtask/scheduler`), which `cargo xtask peers` builds and names to the test.
//!
//! Several pods wait in a world: each is asked about once those before it have their node, here in one
//! plan, there with what each takes assumed.

mod devices;
mod owners;
mod storage;
mod world;

use std::io::Write as _;
use std::process::{Command, Stdio};

use phalanx_cluster::plan::PlanOptions;
use phalanx_cluster::view::{PodView, ViewOptions, why_document};
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Lowering, Version};
use phalanx_engine::{DeviceOrder, NodeOrder, Policy};
use phalanx_objects::{Kind, ObjectRef};
use serde_json::Value;

use super::predicates::{Outcome, compare};
use super::shared::{list, text, world_of};

/// As kube-scheduler decides.
const POLICY: Policy =
    Policy { node_order: NodeOrder::Scores, device_order: DeviceOrder::Upstream, strict_cel: true };

#[test]
fn worlds_made_by_chance_are_answered_as_kube_scheduler_answers_them() {
    #[expect(clippy::disallowed_methods, reason = "a test is told what to ask")]
    let told = |name: &str| std::env::var(name).ok();
    let Some(program) = told("PHALANX_PEER_SCHEDULER") else {
        println!("left out: `cargo xtask peers` asks the real kube-scheduler");
        return;
    };
    let number = |name: &str, or: u64| told(name).and_then(|n| n.parse().ok()).unwrap_or(or);
    let (runs, seed) = (number("PHALANX_PEER_RUNS", 100), number("PHALANX_PEER_SEED", 1));
    let worlds: Vec<Value> = (seed..seed + runs).map(world::world_of).collect();
    let mut outcome = Outcome::default();
    let mut scored = 0;
    for (asked, answers) in worlds.iter().zip(answers(&program, &worlds)) {
        if !text(&answers, "/error").is_empty() {
            outcome.wrong.push(format!("{}: {}", text(asked, "/name"), answers["error"]));
            continue;
        }
        scored += compare_all(asked, list(&answers, ""), &mut outcome);
    }
    println!("{:?}, {scored} choices by score", outcome.count);
    for wrong in outcome.wrong.iter().take(60) {
        println!("{wrong}");
    }
    assert!(outcome.wrong.is_empty(), "{} differences", outcome.wrong.len());
}

/// What the program answers, a line each.
fn answers(program: &str, worlds: &[Value]) -> Vec<Value> {
    let mut asked = Command::new(program);
    let mut asked =
        asked.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program");
    let mut input = asked.stdin.take().expect("its input");
    let lines: String = worlds.iter().map(|world| format!("{world}\n")).collect();
    #[expect(clippy::disallowed_methods, reason = "a pipe is filled while its other end is read")]
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = asked.wait_with_output().expect("its answers");
    writer.join().expect("a writer").expect("worlds are read");
    let line = |line: &str| serde_json::from_str(line).expect("an answer");
    let all: Vec<Value> = String::from_utf8_lossy(&output.stdout).lines().map(line).collect();
    assert_eq!(all.len(), worlds.len(), "an answer for each world");
    all
}

/// Compares the pods of a world in their turn, up to the first that differs: what comes after it sees
/// another world. Answers how many were chosen a node for by score.
fn compare_all(asked: &Value, answers: &[Value], outcome: &mut Outcome) -> usize {
    let pods = list(asked, "/pods");
    let objects = list(asked, "/objects");
    let lowering = Lowering::new(Compat::new(Version::V1_37)).for_scores();
    // Those that a node is promised to come last in the queue.
    let late = |object: &&Value| !text(object, "/status/nominatedNodeName").is_empty();
    let early = objects.iter().filter(|object| !late(object));
    let all = early.chain(pods).chain(objects.iter().filter(late));
    let mut world = world_of(lowering, all);
    let before = outcome.wrong.len();
    let mut scored = 0;
    for (pod, answer) in pods.iter().zip(answers) {
        let name = format!("{}/{}", text(asked, "/name"), text(pod, "/metadata/name"));
        let view = ask(&mut world, pod);
        compare(&name, &view, answer, outcome);
        scored += usize::from(chosen(&name, &view, answer, &mut outcome.wrong));
        if outcome.wrong.len() > before {
            break;
        }
    }
    scored
}

/// The account of a pod as of its turn.
fn ask(world: &mut World, pod: &Value) -> PodView {
    let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
    let of = ObjectRef { kind: Kind::Pod, namespace: namespace.into(), name: name.into() };
    let options = PlanOptions { policy: POLICY, ..PlanOptions::default() };
    let document = why_document(world, &of, &options, &ViewOptions::default());
    let mut pods = document.pods.into_iter();
    pods.find(|view| view.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Whether nodes were scored; the pod goes to the one that kube-scheduler's scores choose.
fn chosen(name: &str, view: &PodView, answer: &Value, wrong: &mut Vec<String>) -> bool {
    let (ours, theirs) = (view.node.as_deref().unwrap_or_default(), text(answer, "/chosen"));
    let error = text(answer, "/score_error");
    if !error.is_empty() {
        wrong.push(format!("{name}: chose {ours:?}, and kube-scheduler ends in an error: {error}"));
    }
    let Some(scores) = answer["scores"].as_object() else { return false };
    if ours != theirs {
        let all: Vec<String> = scores.iter().map(|(node, s)| format!("{node}: {s}")).collect();
        wrong.push(format!("{name}: chose {ours:?} and not {theirs:?} of {all:?}"));
    }
    scores.len() > 1
}
