//! Cures of gangs by brute force: in many small worlds of two racks, with gangs that wait or started in
//! part, what is named works and one unit less does not; of the kinds that are counted here there is one
//! named exactly when there is one, the least; and no cure ends a member of its own gang.

use std::collections::BTreeMap;

use phalanx_cluster::cure::helps;
use phalanx_cluster::edit::{Edit, Relaxation, Setting};
use phalanx_cluster::plan::plan;
use phalanx_cluster::view::PodView;
use phalanx_cluster::world::World;
use phalanx_engine::{GroupKey, Verdict};

use super::chance::Chance;
use super::support::{document, options, world};

/// Most nodes more that are tried here.
const NODES_MAX: u32 = 8;

fn node(name: &str, cpu: &str, rack: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{example.com/rack: {rack}}}}}\n\
         status: {{allocatable: {{cpu: '{cpu}', memory: 64Gi, pods: '110'}}}}\n---\n"
    )
}

fn pod(name: &str, cpu: &str, group: Option<&str>, node: Option<&str>) -> String {
    let group = group
        .map_or(String::new(), |group| format!("schedulingGroup: {{podGroupName: {group}}}, "));
    let status = if node.is_some() { "status: {phase: Running}\n" } else { "" };
    let node = node.map_or(String::new(), |node| format!("nodeName: {node}, "));
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default}}\nspec: {{{group}{node}\
         containers: [{{name: main, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}\n{status}---\n"
    )
}

fn any_world(seed: u64) -> World {
    let mut chance = Chance::new(seed);
    let mut yaml = String::new();
    let mut nodes = Vec::new();
    for n in 0..=1 + chance.below(3) {
        let name = format!("n{n}");
        yaml += &node(&name, chance.pick(&["2", "4", "8"]), chance.pick(&["r1", "r2"]));
        nodes.push(name);
    }
    for gang in ["a", "b"] {
        let pods = 2 + chance.below(3);
        let least = pods - chance.below(2);
        let place = if chance.one_in(3) {
            ", schedulingConstraints: {topology: [{key: example.com/rack}]}"
        } else {
            ""
        };
        yaml += &format!(
            "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: {gang}, namespace: \
             default}}\nspec: {{schedulingPolicy: {{gang: {{minCount: {least}}}}}{place}}}\n---\n"
        );
        let cpu = chance.pick(&["1", "2", "3"]);
        let running = if chance.one_in(2) { chance.below(pods) } else { 0 };
        for at in 0..pods {
            let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
            let on = (at < running).then(|| chance.pick(&names));
            yaml += &pod(&format!("{gang}-{at}"), cpu, Some(gang), on);
        }
    }
    for (at, name) in nodes.iter().enumerate() {
        if chance.one_in(3) {
            yaml += &pod(&format!("busy{at}"), chance.pick(&["1", "2", "4"]), None, Some(name));
        }
    }
    world(&yaml)
}

fn verdict(world: &mut World, group: &GroupKey) -> Option<Verdict> {
    let decision = plan(world, &options()).decision;
    decision.verdicts.into_iter().find(|(of, _)| of == group).map(|(_, verdict)| verdict)
}

/// Whether an edit does what it promises, in a clone of the world.
fn works(world: &World, group: &GroupKey, edit: &Edit) -> bool {
    let mut fork = world.clone();
    if fork.edit(edit, "default").is_err() {
        return false;
    }
    verdict(&mut fork, group).is_none_or(|verdict| helps(edit, &verdict))
}

fn edit(text: &str) -> Edit {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// One unit less of an edit, where it has units.
fn less(of: &Edit) -> Option<Edit> {
    match of {
        Edit::AddNodes { count, like } if *count > 1 => {
            Some(Edit::AddNodes { count: count - 1, like: like.clone() })
        }
        Edit::Set { object, what: Setting::Minimum(count) } => {
            Some(Edit::Set { object: object.clone(), what: Setting::Minimum(count + 1) })
        }
        Edit::AddNodes { .. }
        | Edit::Heal { .. }
        | Edit::Without { .. }
        | Edit::Relax { .. }
        | Edit::Set { .. } => None,
    }
}

/// By kind what there is, looked for by trying all: the fewest nodes, the most pods of a minimum, and
/// whether it helps to require no rack.
fn brute(world: &mut World, group: &GroupKey) -> BTreeMap<&'static str, u32> {
    let mut found = BTreeMap::new();
    let names: Vec<String> = (0..5).map(|n| format!("n{n}")).collect();
    let more = (1..=NODES_MAX).find(|count| {
        let with = |name: &String| Edit::AddNodes { count: *count, like: name.clone() };
        names.iter().any(|name| works(world, group, &with(name)))
    });
    found.extend(more.map(|count| ("nodes", count)));
    let starts = matches!(verdict(world, group), Some(Verdict::Placed { .. }));
    let object = format!("podgroup/{}", group.object.name);
    let fewer = (1..8).rev().find(|count| {
        // What asks for no less than now is no change.
        let least = edit(&format!("set {object} minimum to {count}"));
        *count < minimum(world, group) && works(world, group, &least)
    });
    found.extend(fewer.filter(|_| !starts).map(|count| ("minimum", count)));
    let relaxed = edit(&format!("relax {object} topology example.com/rack"));
    found.extend(works(world, group, &relaxed).then_some(("relax", 1)));
    found
}

fn minimum(world: &World, group: &GroupKey) -> u32 {
    use phalanx_objects::scheduling::{Scheduling, SchedulingKind};
    let reference = phalanx_objects::ObjectRef {
        kind: phalanx_objects::Kind::Scheduling(SchedulingKind::PodGroup),
        namespace: "default".to_owned(),
        name: group.object.name.to_string(),
    };
    match world.objects().and_then(|objects| objects.get(&reference)) {
        Some(phalanx_objects::Object::Scheduling(Scheduling::PodGroup(of))) => {
            of.spec.min_count().and_then(|min| u32::try_from(min).ok()).expect("a minimum")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cure_of_a_gang_works_and_can_spare_nothing() {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let mut groups = 0;
    for seed in 0..150 {
        let mut world = any_world(seed);
        let said = document(&mut world);
        for name in ["a", "b"] {
            let group = format!("podgroup/{name}");
            let of = |pod: &&PodView| {
                pod.group.as_ref() == Some(&group) && pod.verdict.as_str() != "placed"
            };
            let Some(pod) = said.pods.iter().find(of) else { continue };
            let mut decided = plan(&mut world, &options()).decision.verdicts.into_iter();
            let key = decided.find(|(key, _)| *key.object.name == *name).expect("a verdict").0;
            groups += 1;
            let mut named: BTreeMap<&'static str, u32> = BTreeMap::new();
            for cure in &pod.cures {
                let context = format!("seed {seed}: {group}: {}", cure.edit);
                let edit = edit(&cure.edit);
                assert!(works(&world, &key, &edit), "{context} does not help");
                if let Some(less) = less(&edit) {
                    assert!(!works(&world, &key, &less), "{context}, and {less} does");
                }
                match &edit {
                    Edit::AddNodes { count, .. } => named.insert("nodes", *count),
                    Edit::Set { what: Setting::Minimum(count), .. } => {
                        named.insert("minimum", *count)
                    }
                    Edit::Relax { what: Relaxation::Topology(_), .. } => named.insert("relax", 1),
                    Edit::Without { objects } => {
                        let own = format!("{name}-");
                        let spared = objects.iter().all(|o| !o.name.starts_with(&own));
                        assert!(spared, "{context} ends its own");
                        named.insert("without", 1)
                    }
                    Edit::Heal { .. } | Edit::Relax { .. } | Edit::Set { .. } => {
                        named.insert("other", 1)
                    }
                };
            }
            let there_are = brute(&mut world, &key);
            for kind in ["nodes", "minimum", "relax"] {
                let context = format!("seed {seed}: {group}: {kind}: {:?}", pod.cures);
                assert_eq!(named.get(kind), there_are.get(kind), "{context}");
            }
            for kind in named.into_keys() {
                *counts.entry(kind).or_default() += 1;
            }
        }
    }
    println!("{groups} gangs of 150 worlds; cures by kind: {counts:?}");
    for kind in ["nodes", "minimum", "relax", "without"] {
        assert!(counts.get(kind).is_some_and(|count| *count >= 5), "{kind}: {counts:?}");
    }
}
