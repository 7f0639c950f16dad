//! Cures of gangs by brute force: in many small worlds of two racks, with gangs that wait or started in
//! part, some of their pods gated, what is named for a gang places more of it and what is named for a pod that
//! pod, and one unit less does not; of the kinds that are counted here there is one
//! named exactly when there is one, the least; and no cure ends a member of its own gang. The same of groups
//! of which so many parts start, whichever: of CompositePodGroups and of KAI's subgroups.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cluster::edit::{Edit, Minimum, Relaxation, Setting};
use phalanx_cluster::plan::plan;
use phalanx_cluster::view::{CureView, GroupView, PodView, ViewOptions, plan_document};
use phalanx_cluster::world::World;
use phalanx_engine::GroupKey;

use super::chance::Chance;
use super::support::{document, options, why, world};

/// The gate that holds some pods.
const GATE: &str = "example.com/hold";

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
        let alike = chance.one_in(2).then(|| chance.pick(&["1", "2", "3"]));
        let running = if chance.one_in(2) { chance.below(pods) } else { 0 };
        for at in 0..pods {
            let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
            let on = (at < running).then(|| chance.pick(&names));
            let cpu = alike.unwrap_or_else(|| chance.pick(&["1", "2", "3"]));
            let member = pod(&format!("{gang}-{at}"), cpu, Some(gang), on);
            yaml += &match on.is_none() && chance.one_in(5) {
                true => member
                    .replace("spec: {", &format!("spec: {{schedulingGates: [{{name: {GATE}}}], ")),
                false => member,
            };
        }
    }
    for (at, name) in nodes.iter().enumerate() {
        if chance.one_in(3) {
            yaml += &pod(&format!("busy{at}"), chance.pick(&["1", "2", "4"]), None, Some(name));
        }
    }
    world(&yaml)
}

/// Of whom a cure is asked: of a group of which so many pods get a place, or of one of its pods.
type For<'a> = (&'a GroupKey, Whom<'a>);

#[derive(Clone, Copy)]
enum Whom<'a> {
    Group(usize),
    Pod(&'a str),
}

/// The pods of a group that get a place.
fn placed(world: &mut World, group: &GroupKey) -> BTreeSet<String> {
    let name = group.to_string();
    let plan = plan(world, &options());
    let document = plan_document(world, &plan, &ViewOptions::default());
    let of = |pod: &&PodView| pod.group.as_ref() == Some(&name) && pod.node.is_some();
    document.pods.iter().filter(of).map(|pod| pod.name.clone()).collect()
}

/// Whether an edit places the pod, or more of the group than is placed, in a clone of the world.
fn works(world: &World, (group, pod): For<'_>, edit: &Edit) -> bool {
    let mut fork = world.clone();
    if fork.edit(edit, "default").is_err() {
        return false;
    }
    let then = placed(&mut fork, group);
    match pod {
        Whom::Pod(pod) => then.contains(pod),
        Whom::Group(now) => then.len() > now,
    }
}

/// A cure that works, and of which one unit less does not.
fn holds(world: &World, of: For<'_>, cure: &str, context: &str) -> Edit {
    let edit = edit(cure);
    assert!(works(world, of, &edit), "{context} does not help");
    if let Some(less) = less(&edit) {
        assert!(!works(world, of, &less), "{context}, and {less} does");
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
/// whether it helps to require no rack, and to lift a gate.
fn brute(world: &World, of: For<'_>) -> BTreeMap<&'static str, u32> {
    let mut found = BTreeMap::new();
    let (group, _) = of;
    let names: Vec<String> = (0..5).map(|n| format!("n{n}")).collect();
    let more = (1..=NODES_MAX).find(|count| {
        let with = |name: &String| Edit::AddNodes { count: *count, like: name.clone() };
        names.iter().any(|name| works(world, of, &with(name)))
    });
    found.extend(more.map(|count| ("nodes", count)));
    let object = format!("podgroup/{}", group.object.name);
    let fewer = (1..8).rev().find(|count| {
        // What asks for no less than now is no change.
        let least = edit(&format!("set {object} minimum to {count}"));
        *count < minimum(world, group) && works(world, of, &least)
    });
    found.extend(fewer.map(|count| ("minimum", count)));
    let relaxed = edit(&format!("relax {object} topology example.com/rack"));
    found.extend(works(world, of, &relaxed).then_some(("relax", 1)));
    let ungated =
        (0..4).map(|at| edit(&format!("relax pod/{}-{at} gate {GATE}", group.object.name)));
    found.extend(ungated.into_iter().any(|edit| works(world, of, &edit)).then_some(("gate", 1)));
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

/// The cures that are named for a group or a pod of it, by kind; each holds.
fn named(
    world: &World,
    of: For<'_>,
    cures: &[CureView],
    context: &str,
) -> BTreeMap<&'static str, u32> {
    let mut named: BTreeMap<&'static str, u32> = BTreeMap::new();
    for cure in cures {
        let context = format!("{context}: {}", cure.edit);
        match &holds(world, of, &cure.edit, &context) {
            Edit::AddNodes { count, .. } => named.insert("nodes", *count),
            Edit::Set { what: Setting::Minimum(of), .. } => named.insert("minimum", of.count),
            Edit::Relax { what: Relaxation::Topology(_), .. } => named.insert("relax", 1),
            Edit::Relax { what: Relaxation::Gate(_), .. } => named.insert("gate", 1),
            Edit::Without { objects } => {
                let own = format!("{}-", of.0.object.name);
                let spared = objects.iter().all(|o| !o.name.starts_with(&own));
                assert!(spared, "{context} ends its own");
                named.insert("without", 1)
            }
            Edit::Heal { .. } | Edit::Relax { .. } | Edit::Set { .. } => named.insert("other", 1),
        };
    }
    named
}

#[test]
fn a_cure_of_a_gang_works_and_can_spare_nothing() {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut groups, mut pods) = (0, 0);
    let mut check = |world: &World, of: For<'_>, cures: &[CureView], context: &str| {
        let found = named(world, of, cures, context);
        let there_are = brute(world, of);
        for kind in ["nodes", "minimum", "relax", "gate"] {
            assert_eq!(found.get(kind), there_are.get(kind), "{context}: {kind}: {cures:?}");
        }
        for kind in found.into_keys() {
            *counts.entry(kind).or_default() += 1;
        }
    };
    for seed in 0..80 {
        let mut world = any_world(seed);
        let said = document(&mut world);
        let decided = plan(&mut world, &options()).decision.verdicts;
        for group in said.groups.iter().filter(|group| group.short > 0) {
            let key = decided.iter().find(|(key, _)| *key.object.name == *group.name);
            let key = &key.expect("a verdict").0;
            groups += 1;
            let now = placed(&mut world.clone(), key).len();
            check(&world, (key, Whom::Group(now)), &group.cures, &format!("seed {seed}: {key}"));
            let name = key.to_string();
            let open = |pod: &&PodView| pod.group.as_ref() == Some(&name) && pod.node.is_none();
            for pod in said.pods.iter().filter(open) {
                let (of, context) =
                    ((key, Whom::Pod(&pod.name)), format!("seed {seed}: {}", pod.name));
                // One that is like the first may need more.
                match pod.notes.is_empty() {
                    true => check(&world, of, &pod.cures, &context),
                    false => {
                        named(&world, of, &pod.cures, &context);
                        assert!(
                            pod.notes[0].contains("which is like it and comes first"),
                            "{context}"
                        );
                        let alone = why(&mut world, &format!("pod/{}", pod.name));
                        check(&world, of, &alone.pods[0].cures, &format!("{context} alone"));
                    }
                }
                pods += 1;
            }
        }
    }
    println!("{groups} gangs and {pods} pods of 80 worlds; cures by kind: {counts:?}");
    for kind in ["nodes", "minimum", "relax", "without", "gate"] {
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
fn brute_parts(world: &World, of: For<'_>, all: &[Least]) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    let helps = |text: &str| works(world, of, &edit(text));
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
        let of =
            |view: &&GroupView| format!("{}/{}", view.kind, view.name) == group && view.short > 0;
        let Some(view) = said.groups.iter().find(of) else { continue };
        let decided = plan(&mut world, &options()).decision.verdicts;
        let own = decided.into_iter().find(|(key, _)| *key.object.name == *"serve");
        let (key, _) = own.expect("a verdict");
        let of_group = (&key, Whom::Group(placed(&mut world.clone(), &key).len()));
        let mut named: BTreeMap<String, u32> = BTreeMap::new();
        for cure in &view.cures {
            let context = format!("seed {seed}: {group}: {}", cure.edit);
            let edit = holds(&world, of_group, &cure.edit, &context);
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
        let there_are = brute_parts(&world, of_group, &all);
        assert_eq!(named, there_are, "seed {seed}: {group}: {:?}", view.cures);
    }
    println!("cures of groups of parts by kind: {counts:?}");
    for kind in ["nodes", "minimum", "without"] {
        assert!(counts.get(kind).is_some_and(|count| *count >= 10), "{kind}: {counts:?}");
    }
}
