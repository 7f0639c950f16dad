//! Worlds made by chance, about which the real kube-scheduler is asked as well. It is a program in Go
//! (`xtask/scheduler`), which `cargo xtask peers` builds and names to the test.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::chance::Chance;
use super::predicates::{Outcome, chosen, compare};
use super::shared::text;

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
    let worlds: Vec<Value> = (seed..seed + runs).map(world_of).collect();
    let mut outcome = Outcome::default();
    let mut scored = 0;
    for (mut recorded, answer) in worlds.clone().into_iter().zip(answers(&program, &worlds)) {
        if !text(&answer, "/error").is_empty() {
            outcome.wrong.push(format!("{}: {}", text(&recorded, "/name"), answer["error"]));
            continue;
        }
        recorded["answer"] = answer;
        compare(&recorded, &mut outcome);
        scored += usize::from(score(&recorded, &mut outcome.wrong));
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

/// Whether nodes were scored; the node chosen by score is then one of the highest total.
fn score(recorded: &Value, wrong: &mut Vec<String>) -> bool {
    let gated = recorded["answer"].get("preenqueue").is_some();
    let Some(scores) = recorded["answer"]["scores"].as_object().filter(|_| !gated) else {
        return false;
    };
    let total = |node: &Value| {
        let plugins = node.as_object().into_iter().flat_map(|all| all.values());
        plugins.map(|score| score["weighted"].as_i64().unwrap_or(0)).sum::<i64>()
    };
    let most = scores.values().map(total).max().unwrap_or(0);
    let ours = chosen(recorded).unwrap_or_default();
    if scores.get(&ours).map(total) != Some(most) {
        let all: Vec<String> =
            scores.iter().map(|(n, s)| format!("{n}: {} {s}", total(s))).collect();
        wrong.push(format!("{}: chose {ours:?} of {all:?}", text(recorded, "/name")));
    }
    scores.len() > 1
}

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// The world of a seed.
fn world_of(seed: u64) -> Value {
    let chance = &mut Chance::new(seed);
    let mut objects = Vec::new();
    for (name, team) in [("a", "x"), ("b", "y")] {
        let labels = json!({"kubernetes.io/metadata.name": name, "team": team});
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels}}));
    }
    let nodes = 2 + chance.below(5);
    objects.extend((1..=nodes).map(|at| node(chance, at)));
    for at in 0..chance.below(12) {
        let mut other = pod(chance, &format!("p{at}"));
        other["spec"]["nodeName"] = json!(format!("n{}", 1 + chance.below(nodes)));
        let phase = chance.pick(&["Running", "Running", "Running", "Pending", "Succeeded"]);
        other["status"] = json!({"phase": phase});
        if chance.one_in(8) {
            other["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            other["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        }
        objects.push(other);
    }
    let mut pending = pod(chance, "pending");
    if chance.one_in(40) {
        pending["spec"]["schedulingGates"] = json!([{"name": "wait"}]);
    }
    json!({"name": format!("chance-{seed}"), "objects": objects, "pod": pending})
}

fn node(chance: &mut Chance, at: u64) -> Value {
    let name = format!("n{at}");
    let mut labels = json!({});
    if !chance.one_in(6) {
        labels[HOST] = json!(name);
    }
    if !chance.one_in(5) {
        labels[ZONE] = json!(chance.pick(&["za", "zb", "zc"]));
    }
    if chance.one_in(2) {
        labels["disk"] = json!(chance.pick(&["ssd", "hdd", "10", "7"]));
    }
    let mut taints = Vec::new();
    for key in ["gpu", "soft", "health"] {
        if chance.one_in(5) {
            let effect = chance.pick(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
            taints.push(json!({"key": key, "value": chance.pick(&["", "x"]), "effect": effect}));
        }
    }
    let mut allocatable = json!({
        "cpu": chance.pick(&["2", "3500m", "8", "1999m"]),
        "memory": chance.pick(&["4Gi", "8Gi", "7999999999", "16Gi"]),
        "ephemeral-storage": "100Gi",
        "pods": chance.pick(&["110", "3", "110", "1"]),
    });
    if chance.one_in(2) {
        allocatable["nvidia.com/gpu"] = json!(chance.pick(&["0", "1", "4"]));
    }
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": chance.one_in(10)},
        "status": {"allocatable": allocatable}})
}

fn pod(chance: &mut Chance, name: &str) -> Value {
    let containers: Vec<Value> =
        (0..1 + chance.below(2)).map(|at| container(chance, &format!("c{at}"))).collect();
    let mut spec = json!({"containers": containers, "schedulerName": "default-scheduler"});
    if chance.one_in(4) {
        let mut first = container(chance, "i");
        if chance.one_in(2) {
            first["restartPolicy"] = json!("Always");
        }
        spec["initContainers"] = json!([first]);
    }
    if chance.one_in(6) {
        spec["nodeSelector"] = json!({"disk": chance.pick(&["ssd", "hdd"])});
    }
    if chance.one_in(8) {
        spec["overhead"] = json!({"cpu": "100m"});
    }
    spec["tolerations"] = tolerations(chance);
    let mut affinity = json!({});
    for (kind, make) in [
        ("nodeAffinity", node_affinity as fn(&mut Chance) -> Value),
        ("podAffinity", pod_affinity),
        ("podAntiAffinity", pod_affinity),
    ] {
        if chance.one_in(4) {
            affinity[kind] = make(chance);
        }
    }
    spec["affinity"] = affinity;
    if chance.one_in(3) {
        let rules: Vec<Value> = (0..1 + chance.below(2)).map(|_| spread(chance)).collect();
        // The API server refuses two constraints of one key and kind.
        let kind = |rule: &Value| (rule["topologyKey"].clone(), rule["whenUnsatisfiable"].clone());
        if rules.len() == 1 || kind(&rules[0]) != kind(&rules[1]) {
            spec["topologySpreadConstraints"] = json!(rules);
        }
    }
    let namespace = chance.pick(&["a", "a", "b"]);
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "uid": name, "namespace": namespace,
            "labels": {"app": chance.pick(&["web", "db", "train"])}},
        "spec": spec, "status": {"phase": "Pending"}})
}

fn container(chance: &mut Chance, name: &str) -> Value {
    let mut requests = json!({});
    if !chance.one_in(4) {
        requests["cpu"] = json!(chance.pick(&["100m", "0", "500m", "1", "2500m"]));
    }
    if !chance.one_in(4) {
        requests["memory"] = json!(chance.pick(&["64Mi", "1Gi", "3Gi", "1500m"]));
    }
    if chance.one_in(8) {
        requests["nvidia.com/gpu"] = json!(chance.pick(&["1", "2"]));
    }
    let image = chance.pick(&["a:1", "b", "reg.io/c:2", "d:1"]);
    let mut made = json!({"name": name, "image": image, "resources": {"requests": requests}});
    if requests.get("nvidia.com/gpu").is_some() {
        made["resources"]["limits"] = json!({"nvidia.com/gpu": requests["nvidia.com/gpu"]});
    }
    if chance.one_in(6) {
        let port = json!({"containerPort": 80, "hostPort": 8000 + chance.below(2),
            "protocol": chance.pick(&["TCP", "UDP"]), "hostIP": chance.pick(&["", "127.0.0.1"])});
        made["ports"] = json!([port]);
    }
    made
}

fn tolerations(chance: &mut Chance) -> Value {
    let mut all = Vec::new();
    for key in ["gpu", "soft", "health", "node.kubernetes.io/unschedulable"] {
        if chance.one_in(3) {
            let mut one = json!({"key": key, "operator": chance.pick(&["Exists", "Equal"])});
            if one["operator"] == "Equal" {
                one["value"] = json!(chance.pick(&["", "x"]));
            }
            one["effect"] = json!(chance.pick(&["", "NoSchedule", "PreferNoSchedule"]));
            all.push(one);
        }
    }
    json!(all)
}

fn node_term(chance: &mut Chance) -> Value {
    let asked = match chance.below(6) {
        0 => json!({"key": "disk", "operator": "In", "values": ["ssd", "10"]}),
        1 => json!({"key": "disk", "operator": "NotIn", "values": ["hdd"]}),
        2 => json!({"key": ZONE, "operator": "Exists"}),
        3 => json!({"key": ZONE, "operator": "DoesNotExist"}),
        4 => json!({"key": "disk", "operator": "Gt", "values": ["8"]}),
        _ => json!({"key": ZONE, "operator": "In", "values": ["za", "zb"]}),
    };
    let mut term = json!({"matchExpressions": [asked]});
    if chance.one_in(5) {
        let node = format!("n{}", 1 + chance.below(4));
        let operator = chance.pick(&["In", "In", "NotIn"]);
        let field = json!({"key": "metadata.name", "operator": operator, "values": [node]});
        term["matchFields"] = json!([field]);
    }
    term
}

fn node_affinity(chance: &mut Chance) -> Value {
    let mut rules = json!({});
    if chance.one_in(2) {
        let terms: Vec<Value> = (0..1 + chance.below(2)).map(|_| node_term(chance)).collect();
        rules["requiredDuringSchedulingIgnoredDuringExecution"] =
            json!({"nodeSelectorTerms": terms});
    }
    let wished: Vec<Value> = (0..chance.below(3))
        .map(|_| json!({"weight": 1 + chance.below(100), "preference": node_term(chance)}))
        .collect();
    rules["preferredDuringSchedulingIgnoredDuringExecution"] = json!(wished);
    rules
}

fn selector(chance: &mut Chance) -> Value {
    match chance.below(5) {
        0 => json!({}),
        1 => json!({"matchExpressions": [
            {"key": "app", "operator": "NotIn", "values": [chance.pick(&["web", "db"])]}]}),
        _ => json!({"matchLabels": {"app": chance.pick(&["web", "db", "train"])}}),
    }
}

fn pod_term(chance: &mut Chance) -> Value {
    let mut term = json!({"topologyKey": chance.pick(&[ZONE, HOST, "disk"]),
        "labelSelector": selector(chance)});
    match chance.below(5) {
        0 => term["namespaces"] = json!(["b"]),
        1 => term["namespaceSelector"] = json!({}),
        2 => term["namespaceSelector"] = json!({"matchLabels": {"team": "y"}}),
        _ => {}
    }
    term
}

fn pod_affinity(chance: &mut Chance) -> Value {
    let mut rules = json!({});
    if chance.one_in(2) {
        let terms: Vec<Value> = (0..1 + chance.below(2)).map(|_| pod_term(chance)).collect();
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = json!(terms);
    }
    let wished: Vec<Value> = (0..chance.below(3))
        .map(|_| json!({"weight": 1 + chance.below(100), "podAffinityTerm": pod_term(chance)}))
        .collect();
    rules["preferredDuringSchedulingIgnoredDuringExecution"] = json!(wished);
    rules
}

fn spread(chance: &mut Chance) -> Value {
    let when = chance.pick(&["DoNotSchedule", "ScheduleAnyway"]);
    let mut rule = json!({"maxSkew": 1 + chance.below(3), "whenUnsatisfiable": when,
        "topologyKey": chance.pick(&[ZONE, HOST, "disk"]), "labelSelector": selector(chance)});
    if when == "DoNotSchedule" && chance.one_in(4) {
        rule["minDomains"] = json!(1 + chance.below(4));
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if chance.one_in(3) {
            rule[policy] = json!(chance.pick(&["Honor", "Ignore"]));
        }
    }
    rule
}
