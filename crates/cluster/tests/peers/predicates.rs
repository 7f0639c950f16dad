//! kube-scheduler's verdict on every node, for recorded worlds: which filters refuse, in what order
//! and how finally, and which stop the pod before any node.

use phalanx_cluster::plan::PlanOptions;
use phalanx_cluster::view::{CheckView, PodView, ViewOptions, why_document};
use phalanx_cluster::{Compat, Version};
use phalanx_objects::workload::WorkloadKind;
use phalanx_objects::{Kind, ObjectRef};
use serde_json::{Value, json};

use super::shared::{lines, list, text, world};

/// Refusals of one node: plugin and status, in order.
type Refusals = Vec<(String, String)>;

/// What came out, over all worlds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Worlds that are compared node by node.
    worlds: usize,
    nodes: usize,
    /// Of them those where the pod fits.
    nodes_fit: usize,
    gated: usize,
    /// Worlds that a PreFilter ends before any node.
    stopped: usize,
    /// Of the worlds those whose pod names its node. A running kube-scheduler never sees such a pod,
    /// and Phalanx takes it as bound; the recording says what it would have answered, and so does
    /// Phalanx of a workload that is to make it.
    named: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) count: Count,
    pub(crate) wrong: Vec<String>,
}

#[test]
fn every_node_is_refused_by_the_filters_by_which_kube_scheduler_refuses_it() {
    let Some(worlds) = lines("predicates/worlds.jsonl") else { return };
    let mut outcome = Outcome::default();
    for recorded in &worlds {
        outcome.count.named += usize::from(!text(&recorded["pod"], "/spec/nodeName").is_empty());
        let view = ask(recorded, &PlanOptions::default());
        compare(text(recorded, "/name"), &view, &recorded["answer"], &mut outcome);
    }
    println!("{:?}", outcome.count);
    assert_eq!(outcome.wrong, [""; 0]);
    let count =
        Count { worlds: 572, nodes: 2831, nodes_fit: 983, gated: 22, stopped: 28, named: 17 };
    assert_eq!(outcome.count, count);
}

/// Compares what is said of a pod with what kube-scheduler answers.
pub(crate) fn compare(name: &str, view: &PodView, answer: &Value, outcome: &mut Outcome) {
    let Outcome { count, wrong } = outcome;
    let gated = view.checks.iter().flatten().any(|check| check.check == "SchedulingGates");
    if gated != answer.get("preenqueue").is_some() {
        wrong.push(format!("{name}: gated is {gated}"));
    }
    count.gated += usize::from(gated);
    let said = view.fit_error.as_deref().unwrap_or_default();
    if !gated && said != text(answer, "/message") {
        wrong.push(format!("{name}: says {said:?}, expected {:?}", text(answer, "/message")));
    }
    let early = text(answer, "/prefilter/plugin");
    let before: Vec<&str> = before_nodes(view);
    let theirs: Vec<&str> = stopping(answer).collect();
    // A plugin that says the same of the same object again is not repeated here.
    if !before.iter().all(|plugin| theirs.contains(plugin)) {
        wrong.push(format!("{name}: {before:?} stop it, expected {theirs:?}"));
    }
    if !early.is_empty() && before.first() != Some(&early) {
        wrong.push(format!("{name}: stopped by {before:?}, expected {early}"));
    }
    if before.first() == Some(&early) {
        count.stopped += 1;
        return;
    }
    let nodes = view.nodes.as_deref().unwrap_or_default();
    let recorded_nodes = answer["nodes"].as_object().expect("nodes");
    if nodes.len() != recorded_nodes.len() {
        wrong.push(format!("{name}: {} nodes", nodes.len()));
    }
    for node in nodes {
        let theirs = &recorded_nodes[&node.name];
        let mut ours = refusals(&node.checks);
        // A filter whose PreFilter has failed is not asked about nodes.
        ours.retain(|(plugin, _)| plugin != early);
        let expected = refused(theirs);
        if ours != expected {
            wrong.push(format!("{name}/{}: {ours:?}, expected {expected:?}", node.name));
        }
        // Of a gated pod the recording says what would come after.
        if !gated && node.fits != (theirs["fits"] == true) {
            wrong.push(format!("{name}/{}: fits is {}", node.name, node.fits));
        }
        count.nodes += 1;
        count.nodes_fit += usize::from(node.fits);
    }
    count.worlds += 1;
}

/// The plugins that stop the pod before any node, gates aside.
fn before_nodes(view: &PodView) -> Vec<&str> {
    let checks = view.checks.iter().flatten().map(|check| check.check);
    checks.filter(|plugin| *plugin != "SchedulingGates").collect()
}

/// The plugins whose PreFilter fails, those that kube-scheduler does not come to included.
fn stopping(answer: &Value) -> impl Iterator<Item = &str> {
    let later = list(answer, "/prefilter_later").iter();
    answer.get("prefilter").into_iter().chain(later).map(|failure| text(failure, "/plugin"))
}

/// The whole account of the world's pod.
fn ask(recorded: &Value, options: &PlanOptions) -> PodView {
    let pod = &recorded["pod"];
    // Another pod that waits, or is still to be made, counts for nothing; a plan would seat it first.
    let counts = |object: &&Value| match text(object, "/kind") {
        "Pod" => !text(object, "/spec/nodeName").is_empty(),
        kind => kind != "ReplicaSet",
    };
    let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
    let names_node = !text(pod, "/spec/nodeName").is_empty();
    let (asked, kind) = match names_node {
        true => (in_a_replica_set(pod), Kind::Workload(WorkloadKind::ReplicaSet)),
        false => (pod.clone(), Kind::Pod),
    };
    let objects = list(recorded, "/objects").iter().filter(counts).chain([&asked]);
    let mut world = world(Compat::new(Version::V1_37), objects);
    let of = ObjectRef { kind, namespace: namespace.into(), name: name.into() };
    let document = why_document(&mut world, &of, options, &ViewOptions::default());
    let asked = |view: &PodView| names_node && view.group.is_some() || view.name == name;
    let mut pods = document.pods.into_iter();
    pods.find(asked).unwrap_or_else(|| panic!("no {name} in {recorded}"))
}

/// A workload that is to make one such pod.
fn in_a_replica_set(pod: &Value) -> Value {
    let metadata = &pod["metadata"];
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": metadata["labels"]},
            "template": {"metadata": {"labels": metadata["labels"]}, "spec": pod["spec"]},
        },
    })
}

/// The refusals of a recorded node.
fn refused(node: &Value) -> Refusals {
    let fails = list(node, "/fails").iter();
    fails.map(|f| (text(f, "/plugin").to_owned(), text(f, "/code").to_owned())).collect()
}

/// The refusals of a node as shown, each plugin once.
fn refusals(checks: &[CheckView]) -> Refusals {
    let mut all = Refusals::new();
    for check in checks {
        let refusal = (check.check.to_owned(), check.status.to_owned());
        if !all.contains(&refusal) {
            all.push(refusal);
        }
    }
    all
}
