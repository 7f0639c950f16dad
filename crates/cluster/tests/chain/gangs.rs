//! Cures of gangs by brute force: in many small worlds of two racks, with gangs that wait or started in
//! part, what is named works and one unit less does not; of the kinds that are counted here there is one
//! named exactly when there is one, the least; and no cure ends a member of its own gang. The same of groups
//! of which so many parts start, whichever: of CompositePodGroups and of KAI's subgroups.

use std::collections::BTreeMap;

use phalanx_cluster::cure::{Aim, helps};
use phalanx_cluster::edit::{Edit, Minimum, Relaxation, Setting};
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
    let aim = match verdict(&mut world.clone(), group) {
        Some(Verdict::Placed { .. }) => Aim::Whole,
        Some(Verdict::Waits(_) | Verdict::Refused(_) | Verdict::GaveUp(..)) | None => Aim::Start,
    };
    verdict(&mut fork, group).is_none_or(|verdict| helps(edit, aim, &verdict))
}

/// A cure that works, and of which one unit less does not.
fn holds((world, group): (&World, &GroupKey), cure: &str, context: &str) -> Edit {
    let edit = edit(cure);
    assert!(works(world, group, &edit), "{context} does not help");
    if let Some(less) = less(&edit) {
        assert!(!works(world, group, &less), "{context}, and {less} does");
    }
    edit
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
        Edit::Set { object, what: Setting::Minimum(of) } => {
            let what = Setting::Minimum(Minimum { count: of.count + 1, ..of.clone() });
            Some(Edit::Set { object: object.clone(), what })
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
                let edit = holds((&world, &key), &cure.edit, &context);
                match &edit {
                    Edit::AddNodes { count, .. } => named.insert("nodes", *count),
                    Edit::Set { what: Setting::Minimum(of), .. } => {
                        named.insert("minimum", of.count)
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

/// A number of a group that says how few start at once: the object, what of it in the words of edits, and the
/// number.
type Least = (String, String, u32);

/// A world with a group of two or three parts of which not all must start, the name of the group, and all
/// that it says of how few start.
fn world_of_parts(seed: u64) -> (World, &'static str, Vec<Least>) {
    let mut chance = Chance::new(seed);
    let is_kai = chance.one_in(2);
    let mut yaml = String::new();
    let mut busy = Vec::new();
    for n in 0..=chance.below(2) {
        let name = format!("n{n}");
        yaml += &node(&name, chance.pick(&["2", "4"]), "r1");
        busy.push(name);
    }
    let parts = 2 + chance.below(2);
    let fewest = u32::try_from(1 + chance.below(parts)).expect("a small number");
    let mut all: Vec<Least> = Vec::new();
    let group = if is_kai { "podgroup.scheduling.run.ai/serve" } else { "compositepodgroup/serve" };
    all.push((group.to_owned(), "minimum groups".to_owned(), fewest));
    let mut subs = Vec::new();
    for part in ["a", "b", "c"].into_iter().take(usize::try_from(parts).expect("a small number")) {
        let pods = 1 + chance.below(2);
        let cpu = chance.pick(&["1", "2", "3"]);
        let least = u32::try_from(1 + chance.below(pods)).expect("a small number");
        subs.push(format!("{{name: {part}, minMember: {least}}}"));
        match is_kai {
            true => all.push((group.to_owned(), format!("minimum of {part}"), least)),
            false => {
                all.push((format!("podgroup/{part}"), "minimum".to_owned(), least));
                yaml += &format!(
                    "apiVersion: scheduling.k8s.io/v1alpha3\nkind: PodGroup\nmetadata: {{name: {part}, namespace: \
                     default}}\nspec: {{parentCompositePodGroupName: serve, schedulingPolicy: {{gang: {{minCount: \
                     {least}}}}}}}\n---\n"
                );
            }
        }
        for at in 0..pods {
            let name = format!("{part}-{at}");
            let own = pod(&name, cpu, Some(part).filter(|_| !is_kai), None);
            let marks = format!(
                "name: {name}, labels: {{kai.scheduler/subgroup-name: {part}}}, annotations: {{pod-group-name: \
                 serve}}"
            );
            yaml += &if is_kai { own.replace(&format!("name: {name}"), &marks) } else { own };
        }
    }
    yaml += &match is_kai {
        true => format!(
            "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {{name: serve, namespace: default}}\n\
             spec: {{minSubGroup: {fewest}, subGroups: [{}]}}\n---\n",
            subs.join(", ")
        ),
        false => format!(
            "apiVersion: scheduling.k8s.io/v1alpha3\nkind: CompositePodGroup\nmetadata: {{name: serve, namespace: \
             default}}\nspec: {{schedulingPolicy: {{gang: {{minGroupCount: {fewest}}}}}}}\n---\n"
        ),
    };
    for (at, name) in busy.iter().enumerate() {
        if chance.one_in(2) {
            yaml += &pod(&format!("busy{at}"), chance.pick(&["1", "2"]), None, Some(name));
        }
    }
    (world(&yaml), group, all)
}

/// What there is for such a group, looked for by trying all: the fewest nodes, each number that is low enough,
/// and the smallest set of other pods to end.
fn brute_parts(world: &World, key: &GroupKey, all: &[Least]) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    let helps = |text: &str| works(world, key, &edit(text));
    let more = (1..=NODES_MAX).find(|count| {
        ["n0", "n1"].iter().any(|like| helps(&format!("+{count} nodes like {like}")))
    });
    found.extend(more.map(|count| ("nodes".to_owned(), count)));
    for (object, what, now) in all {
        let most = (1..*now).rev().find(|count| helps(&format!("set {object} {what} to {count}")));
        found.extend(most.map(|count| (format!("{object} {what}"), count)));
    }
    let ends = ["pod/busy0", "pod/busy1", "pod/busy0, pod/busy1"];
    let least = ends.iter().find(|objects| helps(&format!("without {objects}")));
    let size = least.map(|objects| u32::from(objects.contains(',')) + 1);
    found.extend(size.map(|size| ("without".to_owned(), size)));
    found
}

#[test]
fn a_cure_of_a_group_of_which_not_all_parts_must_start_works_and_can_spare_nothing() {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..120 {
        let (mut world, group, all) = world_of_parts(seed);
        let said = document(&mut world);
        let of = |pod: &&PodView| {
            pod.group.as_deref() == Some(group) && pod.verdict.as_str() != "placed"
        };
        let Some(pod) = said.pods.iter().find(of) else { continue };
        let decided = plan(&mut world, &options()).decision.verdicts;
        let own = decided.into_iter().find(|(key, _)| *key.object.name == *"serve");
        let (key, verdict) = own.expect("a verdict");
        // Of one that has started all are to be placed; that is the other test's.
        if matches!(verdict, Verdict::Placed { .. }) {
            continue;
        }
        let mut named: BTreeMap<String, u32> = BTreeMap::new();
        for cure in &pod.cures {
            let context = format!("seed {seed}: {group}: {}", cure.edit);
            let edit = holds((&world, &key), &cure.edit, &context);
            let (kind, size) = match &edit {
                Edit::AddNodes { count, .. } => ("nodes".to_owned(), *count),
                Edit::Without { objects } => {
                    ("without".to_owned(), u32::try_from(objects.len()).expect("few"))
                }
                Edit::Set { object, what: Setting::Minimum(of) } => {
                    let groups = if of.groups { " groups" } else { "" };
                    let part =
                        of.of.as_ref().map_or_else(String::new, |part| format!(" of {part}"));
                    let kind = if of.groups || of.of.is_some() {
                        group.to_owned()
                    } else {
                        format!("podgroup/{}", object.name)
                    };
                    (format!("{kind} minimum{groups}{part}"), of.count)
                }
                Edit::Heal { .. } | Edit::Relax { .. } | Edit::Set { .. } => continue,
            };
            let short = ["nodes", "without"].into_iter().find(|known| *known == kind);
            *counts.entry(short.unwrap_or("minimum")).or_default() += 1;
            named.insert(kind, size);
        }
        let there_are = brute_parts(&world, &key, &all);
        assert_eq!(named, there_are, "seed {seed}: {group}: {:?}", pod.cures);
    }
    println!("cures of groups of parts by kind: {counts:?}");
    for kind in ["nodes", "minimum", "without"] {
        assert!(counts.get(kind).is_some_and(|count| *count >= 10), "{kind}: {counts:?}");
    }
}
