//! kube-scheduler's verdict on every node, for recorded worlds: which filters refuse, in what order
//! and how finally. Filters that Phalanx does not have yet are counted by name and set aside.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cluster::plan::PlanOptions;
use phalanx_cluster::view::{CheckView, PodView, ViewOptions, why_document};
use phalanx_cluster::{Compat, Version};
use phalanx_objects::{Kind, ObjectRef};
use serde_json::Value;

use super::shared::{lines, list, text, world};

/// The filters that Phalanx has, and that these worlds try.
const BUILT: [&str; 10] = [
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "NodeDeclaredFeatures",
];

/// The filters that Phalanx does not have yet, with how many worlds each changes the answer of.
const UNBUILT: [(&str, usize); 3] =
    [("InterPodAffinity", 101), ("NodePorts", 41), ("PodTopologySpread", 52)];

/// Refusals of one node: plugin and status, in order.
type Refusals = Vec<(String, String)>;

/// What came out, over all worlds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    /// Worlds whose every answer is the same, and those that only unbuilt filters tell apart.
    worlds_equal: usize,
    worlds_unbuilt: usize,
    /// Nodes with the same refusals, unbuilt filters set aside.
    nodes: usize,
    /// Nodes with the same refusals altogether, and of them those where the pod fits.
    nodes_equal: usize,
    nodes_fit: usize,
    gated: usize,
    /// Worlds that a PreFilter that is built ends before any node, as it does here.
    stopped: usize,
    /// Worlds whose pod names its node: kube-scheduler never sees it, and Phalanx takes it as
    /// bound.
    bound: usize,
}

#[derive(Debug, Default)]
struct Outcome {
    count: Count,
    /// Worlds by what is not built that changes their answer.
    unbuilt: BTreeMap<String, Vec<String>>,
    wrong: Vec<String>,
}

#[test]
fn every_filter_that_is_built_refuses_the_nodes_that_kube_scheduler_refuses() {
    let Some(worlds) = lines("predicates/worlds.jsonl") else { return };
    let mut outcome = Outcome::default();
    for recorded in &worlds {
        compare(recorded, &mut outcome);
    }
    println!("{:?}", outcome.count);
    for (plugin, worlds) in &outcome.unbuilt {
        println!("{plugin} is not built: {}", worlds.join(", "));
    }
    assert_eq!(outcome.wrong, [""; 0]);
    let unbuilt: Vec<(&str, usize)> =
        outcome.unbuilt.iter().map(|(plugin, worlds)| (plugin.as_str(), worlds.len())).collect();
    assert_eq!(unbuilt, UNBUILT);
    // A filter that is built moves worlds and nodes from the one to the other: raise the figures.
    let count = Count {
        worlds_equal: 380,
        worlds_unbuilt: 176,
        nodes: 2748,
        nodes_equal: 2267,
        nodes_fit: 974,
        gated: 22,
        stopped: 27,
        bound: 17,
    };
    assert_eq!(outcome.count, count);
}

fn compare(recorded: &Value, outcome: &mut Outcome) {
    let pod = &recorded["pod"];
    if !text(pod, "/spec/nodeName").is_empty() {
        outcome.count.bound += 1;
        return;
    }
    let name = text(recorded, "/name");
    let answer = &recorded["answer"];
    let view = ask(recorded);
    let mut unbuilt: BTreeSet<String> = BTreeSet::new();
    let wrong = outcome.wrong.len();
    let gated = view.checks.iter().flatten().any(|check| check.check == "SchedulingGates");
    if gated != answer.get("preenqueue").is_some() {
        outcome.wrong.push(format!("{name}: gated is {gated}"));
    }
    outcome.count.gated += usize::from(gated);
    let early = text(answer, "/prefilter/plugin");
    if !early.is_empty() && !BUILT.contains(&early) {
        unbuilt.insert(early.to_owned());
    }
    let before: Vec<&str> = before_nodes(&view);
    let theirs: Vec<&str> = stopping(answer).collect();
    // A plugin that says the same of the same object again is not repeated here.
    if !before.iter().all(|plugin| theirs.contains(plugin)) {
        outcome.wrong.push(format!("{name}: {before:?} stop it, expected {theirs:?}"));
    }
    if BUILT.contains(&early) && before.first() != Some(&early) {
        outcome.wrong.push(format!("{name}: stopped by {before:?}, expected {early}"));
    }
    if before.first() == Some(&early) {
        outcome.count.stopped += 1;
        return;
    }
    let nodes = view.nodes.as_deref().unwrap_or_default();
    let recorded_nodes = answer["nodes"].as_object().expect("nodes");
    if nodes.len() != recorded_nodes.len() {
        outcome.wrong.push(format!("{name}: {} nodes", nodes.len()));
    }
    for node in nodes {
        let theirs = &recorded_nodes[&node.name];
        let all = refused(theirs);
        let (built, other): (Refusals, Refusals) =
            all.into_iter().partition(|(plugin, _)| BUILT.contains(&plugin.as_str()));
        let mut ours = refusals(&node.checks);
        // A filter whose PreFilter has failed is not asked about nodes.
        ours.retain(|(plugin, _)| plugin != early);
        if ours != built {
            outcome.wrong.push(format!("{name}/{}: {ours:?}, expected {built:?}", node.name));
            continue;
        }
        outcome.count.nodes += 1;
        // Of a gated pod the recording says what would come after.
        if (gated || node.fits == (theirs["fits"] == true)) && other.is_empty() {
            outcome.count.nodes_equal += 1;
            outcome.count.nodes_fit += usize::from(node.fits);
        } else if other.is_empty() && unbuilt.is_empty() {
            let text = format!("{name}/{}: fits is {}", node.name, node.fits);
            outcome.wrong.push(text);
        }
        unbuilt.extend(other.into_iter().map(|(plugin, _)| plugin));
    }
    if outcome.wrong.len() == wrong && unbuilt.is_empty() {
        outcome.count.worlds_equal += 1;
    } else if outcome.wrong.len() == wrong {
        outcome.count.worlds_unbuilt += 1;
    }
    for plugin in unbuilt {
        outcome.unbuilt.entry(plugin).or_default().push(name.to_owned());
    }
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
fn ask(recorded: &Value) -> PodView {
    let pod = &recorded["pod"];
    // Another pod that waits, or is still to be made, counts for nothing; a plan would seat it first.
    let counts = |object: &&Value| match text(object, "/kind") {
        "Pod" => !text(object, "/spec/nodeName").is_empty(),
        kind => kind != "ReplicaSet",
    };
    let objects = list(recorded, "/objects").iter().filter(counts).chain([pod]);
    let mut world = world(Compat::new(Version::V1_37), objects);
    let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
    let of = ObjectRef { kind: Kind::Pod, namespace: namespace.into(), name: name.into() };
    let document = why_document(&mut world, &of, &PlanOptions::default(), &ViewOptions::default());
    let mut pods = document.pods.into_iter();
    pods.find(|view| view.name == name).unwrap_or_else(|| panic!("no {name} in {recorded}"))
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
