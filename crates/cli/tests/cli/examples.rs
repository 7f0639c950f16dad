//! The examples of the repository, through the command.

use crate::common::{devices, pod, run};
use serde_json::Value;

fn plan(more: &[&str]) -> Value {
    let mut args = vec!["plan", "-f", "examples", "-o", "json"];
    args.extend(more);
    run(&args).json()
}

#[test]
fn the_trainer_gets_the_one_pair_of_one_domain() {
    let plan = plan(&[]);
    let trainer = pod(&plan, "default/trainer");
    assert_eq!(trainer["verdict"], "placed");
    assert_eq!(trainer["node"], "lab-1");
    assert_eq!(devices(trainer), ["gpu-0", "gpu-1"]);
    assert_eq!(trainer["optimal"], "proven");
}

#[test]
fn a_plain_pair_lands_in_one_island_because_of_node_topology() {
    let best = plan(&[]);
    let pair = pod(&best, "default/pair");
    assert_eq!((&pair["node"], devices(pair)), (&"pcie-1".into(), vec!["gpu-0", "gpu-2"]));
    let upstream = plan(&["--device-order", "upstream"]);
    let pair = pod(&upstream, "default/pair");
    assert_eq!(devices(pair), ["gpu-0", "gpu-1"], "{pair:#}");
    assert_eq!(upstream["policy"]["deviceOrder"], "upstream");
}

#[test]
fn a_counter_leaves_the_choice_to_the_kubelet() {
    let plan = run(&["plan", "-f", "examples"]).code(1).says(&["the kubelet of t4-1 will choose"]);
    assert!(plan.out.contains("serving/transcode"));
}

#[test]
fn workloads_that_are_not_created_yet_are_planned_pod_by_pod() {
    let plan = plan(&[]);
    let of = |group: &str| {
        let pods = plan["pods"].as_array().unwrap();
        pods.iter().filter(|pod| pod["group"] == group).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of("job/sweep").len(), 3);
    let chat = of("deployment/chat");
    assert_eq!(chat.len(), 2);
    for pod in chat {
        assert_eq!(pod["verdict"], "placed");
        assert_eq!(devices(&pod).len(), 2);
    }
}

#[test]
fn four_of_one_island_are_refused_where_islands_hold_two() {
    let plan = plan(&[]);
    let quad = pod(&plan, "default/quad");
    assert_eq!(quad["verdict"], "refused");
    let reasons = quad["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason["code"] == "AlignUnmet"), "{quad:#}");
    let text = run(&["why", "-f", "examples", "pod/quad"]).code(1);
    text.says(&[
        "is refused: pcie-1: no island holds 4 for request gpus",
        "Nearest miss: pcie-1",
        "in one island, where most are",
        "--if 'relax pod/default/quad align island'",
    ]);
}

#[test]
fn what_is_refused_says_what_never_goes_away_and_not_who_is_there_now() {
    let last = include_str!("../../../../examples/jobs/2-quad.yaml")
        .replace("name: quad", "name: last")
        .replace("spec:\n  restartPolicy", "spec:\n  priorityClassName: batch\n  restartPolicy")
        .replace("four-of-one-island", "four-again");
    let said = "even with every other pod gone and everything healed, pcie-1: no island holds 4 for \
                request gpus: the largest has 2";
    let plan = ["plan", "-f", "examples", "-f", "-"];
    crate::common::run_with(&plan, &last).code(1).says(&[said]);
    let json = crate::common::run_with(&[&plan[..], &["-o", "json"]].concat(), &last).json();
    let row = &pod(&json, "default/last")["reasons"][0];
    assert_eq!((&row["code"], &row["nodes"]), (&"AlignUnmet".into(), &0.into()), "{row:#}");
    let why = ["why", "-f", "examples", "-f", "-", "pod/last"];
    let why = crate::common::run_with(&why, &last).code(1);
    assert!(why.out.contains(&format!("is refused: {said}")), "{}", why.out);
    assert!(!why.out.contains("It would not fit either"), "{}", why.out);
    let gated =
        last.replace("priorityClassName: batch", "schedulingGates: [{name: example.com/quota}]");
    let gated = crate::common::run_with(&plan, &gated).code(1);
    gated.says(&[
        "no island holds 4 for request gpus: the largest has 2; scheduling gates keep it back",
    ]);
}

#[test]
fn every_cure_is_accepted_as_it_is_printed_and_works() {
    let plan = plan(&[]);
    let mut tried = 0;
    for waiting in plan["pods"].as_array().unwrap() {
        let name = format!(
            "{}/{}",
            waiting["namespace"].as_str().unwrap(),
            waiting["name"].as_str().unwrap()
        );
        for cure in waiting["cures"].as_array().unwrap() {
            let edit = cure["if"].as_str().unwrap();
            let cured = self::plan(&["--if", edit]);
            assert_eq!(pod(&cured, &name)["verdict"], "placed", "{name} with --if '{edit}'");
            tried += 1;
        }
    }
    assert!(tried >= 2, "the examples show cures");
}

#[test]
fn why_prints_cures_that_a_shell_takes_as_they_are() {
    let why = run(&["why", "-f", "examples", "-n", "research", "pod/finetune"]).code(1);
    let line = why.out.lines().find(|line| line.trim_start().starts_with("--if "));
    let edit = line.expect("a cure").trim().trim_start_matches("--if '").trim_end_matches('\'');
    let cured = plan(&["-n", "research", "--if", edit]);
    assert_eq!(pod(&cured, "research/finetune")["verdict"], "placed", "--if '{edit}'");
}

#[test]
fn why_counts_each_node_once() {
    let document = run(&["why", "-f", "examples", "pod/quad", "-o", "json"]).code(1).json();
    let quad = pod(&document, "default/quad");
    let reasons = quad["reasons"].as_array().unwrap();
    let counted: u64 = reasons.iter().map(|reason| reason["nodes"].as_u64().unwrap()).sum();
    let nodes = quad["nodes"].as_array().unwrap();
    assert_eq!(counted, nodes.len() as u64);
    assert!(nodes.iter().all(|node| node["fits"] == false));
    assert!(nodes.iter().all(|node| !node["checks"].as_array().unwrap().is_empty()));
}

#[test]
fn why_all_lists_every_node() {
    let why = run(&["why", "-f", "examples", "pod/quad", "--all"]).code(1);
    why.says(&["cp-1", "hgx-1", "hgx-2", "lab-1", "pcie-1", "t4-1", "ws-1", "TaintToleration"]);
}

#[test]
fn why_of_what_is_placed_says_where_and_exits_with_zero() {
    run(&["why", "-f", "examples", "pod/trainer"]).code(0).says(&["is placed", "lab-1", "gpu-0"]);
}

#[test]
fn why_takes_a_workload() {
    run(&["why", "-f", "examples", "-n", "research", "job/sweep"]).code(0).says(&["job"]);
}

#[test]
fn the_same_question_in_a_changed_world() {
    let changed = plan(&["--if", "+1 node like hgx-1"]);
    let before = plan(&[]);
    assert_eq!(
        changed["summary"]["nodes"].as_u64(),
        before["summary"]["nodes"].as_u64().map(|nodes| nodes + 1)
    );
    assert_eq!(pod(&changed, "research/finetune")["verdict"], "placed");
}

#[test]
fn manifests_are_the_writes_of_a_scheduler() {
    let out = run(&["plan", "-f", "examples", "-o", "manifests"]).code(1).out;
    for part in ["kind: ResourceClaim", "allocation:", "reservedFor:", "kind: Binding"] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    // Read again, they are objects: the plan's writes are manifests like any other.
    let again =
        crate::common::run_with(&["devices", "-f", "examples", "-f", "-", "-o", "json"], &out);
    let held = again.code(0).json();
    assert!(held["summary"]["inUse"].as_u64() > Some(11), "{held:#}");
}

#[test]
fn json_and_yaml_say_the_same() {
    let json = plan(&[]);
    let yaml = run(&["plan", "-f", "examples", "-o", "yaml"]).code(1).out;
    let read: Value = serde_saphyr::from_str(&yaml).expect("YAML");
    assert_eq!(json, read);
}
