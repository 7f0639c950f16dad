//! What must hold of every verdict, over many small worlds: a refused pod fits no healed and emptied
//! cluster, and any other does. The worlds are those of the cures' brute force too.

use std::collections::BTreeMap;

use phalanx_cluster::view::PodView;
use phalanx_cluster::world::World;
use phalanx_objects::workload::WorkloadKind;
use phalanx_objects::{Kind, Object};

use super::chance::Chance;
use super::support::{
    MATCH, carry_out, cpu_pod, decided, document_of, edited, gpu_pod, gpus, job, node,
    shared_claim, topology, user_of, world,
};

/// One to three nodes, some with devices, some ill; pods that run; allocations that nobody uses; one to
/// four pods and jobs that wait.
pub(crate) fn any_world(seed: u64) -> World {
    let mut chance = Chance::new(seed);
    let mut yaml = String::new();
    for n in 0..=chance.below(3) {
        let name = format!("n{n}");
        let mut part = if chance.one_in(3) { node(&name, "8") } else { gpus(&name) };
        if chance.one_in(4) {
            part = part.replace("status: {alloc", "spec: {unschedulable: true}\nstatus: {alloc");
        } else if chance.one_in(4) {
            let key = chance.pick(&["example.com/dedicated", "node.kubernetes.io/not-ready"]);
            let taint =
                format!("spec: {{taints: [{{key: {key}, effect: NoSchedule}}]}}\nstatus: {{alloc");
            part = part.replace("status: {alloc", &taint);
        }
        for gpu in 0..4 {
            if chance.one_in(6) {
                let (old, new) = (
                    format!("gpu-{gpu}, attributes"),
                    format!("gpu-{gpu}, taints: [{{key: xid, effect: NoExecute}}], attributes"),
                );
                part = part.replace(&old, &new);
            }
        }
        let zone = chance.pick(&["a", "a", "b"]);
        part = part.replace("labels: {", &format!("labels: {{zone: {zone}, "));
        if part.contains("gpu-0") && chance.one_in(4) {
            yaml += &unused_allocation(&name);
        }
        yaml += &part;
        if chance.one_in(2) {
            yaml += &topology(&name, &[&[0, 1], &[2, 3]]);
        }
        for b in 0..chance.below(4) {
            let cpu = chance.pick(&["1", "3", "7", "30", "60"]);
            yaml += &cpu_pod(&format!("busy{n}{b}"), cpu, &name);
        }
    }
    yaml += &shared_claim("shared");
    let mut before = world(&(yaml.clone() + &pods(&mut chance, "early", 2)));
    let plan = decided(&mut before);
    let effects = phalanx_cluster::raise::raise(&before, &plan);
    if chance.one_in(2) {
        carry_out(&mut before, &effects);
    }
    super::support::add(&mut before, &pods(&mut chance, "late", 2));
    before
}

/// A claim that holds a GPU of the node and that no pod uses.
fn unused_allocation(node: &str) -> String {
    shared_claim(&format!("unused-{node}"))
        + &format!(
            "status: {{allocation: {{devices: {{results: [{{request: gpu, driver: gpu.nvidia.com, \
             pool: {node}, device: gpu-1}}]}}}}}}\n"
        )
}

fn pods(chance: &mut Chance, name: &str, most: u64) -> String {
    let mut yaml = String::new();
    for n in 0..=chance.below(most) {
        let name = format!("{name}{n}");
        let constraint = if chance.one_in(2) { MATCH } else { "" };
        let align = if chance.one_in(3) { "island=required" } else { "" };
        let count = u32::try_from(1 + chance.below(4)).unwrap_or(1);
        let mut pod = match chance.below(6) {
            0 => cpu_pod(&name, chance.pick(&["2", "5", "9", "63"]), ""),
            1 => user_of(&name, chance.pick(&["shared", "shared", "nowhere"])),
            2 | 3 if !name.starts_with("early") => {
                job(&name, 3, chance.pick(&["2", "3", "20", "50"]))
            }
            _ => gpu_pod(&name, count, constraint, align),
        };
        if chance.one_in(8) {
            pod = pod.replace(
                "spec:\n  containers",
                "spec:\n  schedulingGates: [{name: g}]\n  containers",
            );
        }
        if chance.one_in(8) {
            pod = pod
                .replace("spec:\n  containers", "spec:\n  nodeSelector: {zone: b}\n  containers");
        }
        if chance.one_in(8) {
            let cpu = chance.pick(&["9", "70"]);
            pod = pod.replace("cpu: '1'", &format!("cpu: '{cpu}'"));
        }
        yaml += &pod;
    }
    yaml
}

/// The same world with every other pod gone and nothing allocated, every node and device healed,
/// every gate lifted.
fn ideal(world: &World, subject: &PodView) -> World {
    let mut fork = world.clone();
    let objects = fork.objects().expect("objects").clone();
    let mut edits = Vec::new();
    for kind in [Kind::Pod, Kind::Workload(WorkloadKind::Job)] {
        for object in objects.of_kind(kind) {
            if object.name() != subject.name {
                edits.push(format!(
                    "without {}/{}",
                    phalanx_cluster::edit::kind_word(kind),
                    object.name()
                ));
            }
        }
    }
    let claims = objects.of_kind(Kind::ResourceClaim).map(Object::name);
    let unused = claims.filter(|name| name.starts_with("unused"));
    edits.extend(unused.map(|name| format!("without resourceclaim/{name}")));
    edits.extend(objects.of_kind(Kind::Node).map(|node| format!("heal {}", node.name())));
    for object in objects.of_kind(Kind::ResourceSlice) {
        let Object::ResourceSlice(slice) = object else { continue };
        let node = slice.spec.node_name.as_deref().expect("a node");
        edits
            .extend(slice.spec.devices.iter().map(|device| format!("heal {node}/{}", device.name)));
    }
    if let Some(Object::Pod(pod)) =
        objects.of_kind(Kind::Pod).find(|pod| pod.name() == subject.name)
    {
        let gates = pod.spec.scheduling_gates.iter();
        edits.extend(gates.map(|gate| format!("relax pod/{} gate {}", subject.name, gate.name)));
    }
    for edit in edits {
        fork = edited(&fork, &edit);
    }
    fork
}

fn verdict(world: &mut World, name: &str) -> Option<String> {
    let said = document_of(world);
    said.pods.iter().find(|pod| pod.name == name).map(|pod| pod.verdict.as_str().to_owned())
}

#[test]
fn refused_is_what_no_healed_and_emptied_cluster_places() {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..300 {
        let mut world = any_world(seed);
        let said = document_of(&mut world);
        for pod in
            said.pods.iter().filter(|pod| pod.group.is_none() && pod.verdict.as_str() != "placed")
        {
            let mut ideal = ideal(&world, pod);
            let fits = verdict(&mut ideal, &pod.name).as_deref() == Some("placed");
            let word = pod.verdict.as_str();
            *counts.entry(word.to_owned()).or_default() += 1;
            assert_eq!(word == "refused", !fits, "seed {seed}: {pod:?}");
        }
    }
    println!("refused against the ideal world: {counts:?}");
    assert!(counts.get("waits").is_some_and(|count| *count >= 100), "{counts:?}");
    assert!(counts.get("refused").is_some_and(|count| *count >= 100), "{counts:?}");
}
