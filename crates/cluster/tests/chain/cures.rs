//! Brute force over cures: in many small worlds every edit of the closed vocabulary, up to a size, is
//! made in a clone of the world and all of it planned. A cure of a kind is named exactly when one of
//! the kind exists; what is named works as it is printed and can spare nothing.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cluster::edit::{Edit, Ill, Minimum, Setting};
use phalanx_cluster::plan::plan;
use phalanx_cluster::view::{Document, PodView};
use phalanx_cluster::world::World;
use phalanx_engine::GroupKey;
use phalanx_objects::core::PodSpec;
use phalanx_objects::resource::DeviceClaim;
use phalanx_objects::workload::{Workload, WorkloadKind};
use phalanx_objects::{Kind, Object, Quantity};

use super::properties::any_world;
use super::support::{
    add, cpu_pod, document, document_of, gpus, job, node, options, pod, shared_claim, user_of, why,
    world,
};

/// A kind of cure, as it is counted here.
fn kind(edit: &Edit) -> &'static str {
    match edit {
        Edit::AddNodes { .. } => "nodes",
        Edit::Heal { .. } => "heal",
        Edit::Without { .. } => "without",
        Edit::Relax { .. } => "relax",
        Edit::Set { what: Setting::Count { .. }, .. } => "count",
        Edit::Set { what: Setting::Replicas(_), .. } => "replicas",
        Edit::Set { what: Setting::Minimum(_), .. } => "minimum",
        Edit::Set { what: Setting::Resource { .. }, .. } => "resource",
        // No world here has counters of devices.
        Edit::Set { what: Setting::Name { .. }, .. } => "name",
    }
}

const KINDS: [&str; 7] = ["heal", "without", "relax", "count", "resource", "replicas", "nodes"];

/// How many things an edit touches.
fn size(edit: &Edit) -> usize {
    match edit {
        Edit::AddNodes { count, .. } => *count as usize,
        Edit::Heal { ills } => ills.len(),
        Edit::Without { objects } => objects.len(),
        Edit::Relax { .. } | Edit::Set { .. } => 1,
    }
}

/// Whether the edit, by its words, places all of the group in a clone of the world.
fn helps(world: &World, group: &GroupKey, edit: &str) -> bool {
    let edit: Edit = edit.parse().unwrap_or_else(|error| panic!("{edit}: {error}"));
    let mut fork = world.clone();
    if fork.edit(&edit, "default").is_err() {
        return false;
    }
    let decision = plan(&mut fork, &options()).decision;
    decision.verdicts.iter().find(|(of, _)| of == group).is_none_or(|(_, v)| v.is_whole())
}

/// Sizes of the smallest set of these that helps, up to two.
fn smallest(world: &World, group: &GroupKey, verb: &str, things: &[String]) -> Option<usize> {
    if things.iter().any(|one| helps(world, group, &format!("{verb} {one}"))) {
        return Some(1);
    }
    let pair = things.iter().enumerate().any(|(at, one)| {
        things[..at].iter().any(|other| helps(world, group, &format!("{verb} {one}, {other}")))
    });
    pair.then_some(2)
}

const JOB: Kind = Kind::Workload(WorkloadKind::Job);

/// Everything that could be ended but for the group itself.
fn ends(world: &World, group: &GroupKey) -> Vec<String> {
    let objects = world.objects().expect("objects");
    let own = |kind: &str, name: &str| group.kind.as_str() == kind && *group.object.name == *name;
    let of = |kind: Kind, word: &'static str| {
        let names = objects.of_kind(kind).map(|object| object.name().to_owned());
        names.filter(move |name| !own(word, name)).map(move |name| format!("{word}/{name}"))
    };
    let unused = objects.of_kind(Kind::ResourceClaim).filter_map(|object| {
        let Object::ResourceClaim(claim) = object else { return None };
        let unused = claim.status.allocation.is_some() && claim.status.reserved_for.is_empty();
        unused.then(|| format!("resourceclaim/{}", object.name()))
    });
    of(Kind::Pod, "pod").chain(of(JOB, "job")).chain(unused).collect()
}

/// Every node and device that is ill.
fn ills(world: &World) -> Vec<String> {
    let objects = world.objects().expect("objects");
    let mut ills = Vec::new();
    for object in objects.of_kind(Kind::Node) {
        let Object::Node(node) = object else { continue };
        let ill =
            |taint: &phalanx_objects::core::Taint| taint.key.starts_with("node.kubernetes.io");
        if node.spec.unschedulable || node.spec.taints.iter().any(ill) {
            ills.push(object.name().to_owned());
        }
    }
    for object in objects.of_kind(Kind::ResourceSlice) {
        let Object::ResourceSlice(slice) = object else { continue };
        let node = slice.spec.node_name.as_deref().expect("a node");
        let ill = slice.spec.devices.iter().filter(|device| !device.taints.is_empty());
        ills.extend(ill.map(|device| format!("{node}/{}", device.name)));
    }
    ills
}

/// A group's pods, and the claims that they ask for, as edits name them.
struct Asks {
    of: String,
    spec: PodSpec,
    wanted: u32,
    claims: Vec<(String, DeviceClaim)>,
}

fn asks(world: &World, group: &GroupKey) -> Asks {
    let objects = world.objects().expect("objects");
    let name = group.object.name.as_str();
    let named = |kind: Kind, name: &str| objects.of_kind(kind).find(|object| object.name() == name);
    let (of, spec, wanted) = match (named(Kind::Pod, name), named(JOB, name)) {
        (Some(Object::Pod(pod)), None) => (format!("pod/{name}"), pod.spec.clone(), 1),
        (None, Some(Object::Workload(Workload::Job(job)))) => {
            let wanted = job.spec.parallelism.expect("a number").unsigned_abs();
            (format!("job/{name}"), job.spec.template.spec.clone(), wanted)
        }
        other => panic!("{group}: {other:?}"),
    };
    let claim = |claim: &phalanx_objects::core::PodResourceClaim| {
        if let Some(template) = &claim.resource_claim_template_name {
            let found = named(Kind::ResourceClaimTemplate, template)?;
            let Object::ResourceClaimTemplate(found) = found else { return None };
            let word = format!("resourceclaimtemplate/{template}");
            return Some((word, found.spec.spec.devices.clone()));
        }
        let name = claim.resource_claim_name.as_ref()?;
        let Object::ResourceClaim(found) = named(Kind::ResourceClaim, name)? else { return None };
        Some((format!("resourceclaim/{name}"), found.spec.devices.clone()))
    };
    let claims = spec.resource_claims.iter().filter_map(claim).collect();
    Asks { of, spec, wanted, claims }
}

/// Every constraint that could be given up, whether or not there is one.
fn relaxations(asks: &Asks) -> Vec<String> {
    let on = &asks.of;
    let mut edits = Vec::new();
    for what in [
        "gate g",
        "nodeName",
        "nodeAffinity",
        "nodeSelector zone",
        "taint example.com/dedicated",
        "taint node.kubernetes.io/not-ready",
        "taint node.kubernetes.io/unschedulable",
        "align island",
    ] {
        edits.push(format!("relax {on} {what}"));
    }
    for (claim, _) in &asks.claims {
        for what in [
            "matchAttribute gpu.nvidia.com/nvlinkDomain",
            "selectors of gpu",
            "taint xid of gpu",
            "align island",
        ] {
            edits.push(format!("relax {claim} {what}"));
        }
    }
    edits
}

/// What cures there are: by kind the smallest size, up to two.
fn brute(world: &World, group: &GroupKey) -> BTreeMap<&'static str, usize> {
    let asks = asks(world, group);
    let mut found = BTreeMap::new();
    let mut note = |kind, size: Option<usize>| {
        if let Some(size) = size {
            found.insert(kind, size);
        }
    };
    let any = |edits: Vec<String>| edits.iter().any(|edit| helps(world, group, edit)).then_some(1);
    note("heal", smallest(world, group, "heal", &ills(world)));
    note("without", smallest(world, group, "without", &ends(world, group)));
    note("relax", any(relaxations(&asks)));
    let counts = asks.claims.iter().flat_map(|(claim, spec)| {
        let count = spec.requests[0].exactly.as_ref().map_or(0, |exactly| exactly.count);
        (1..count).map(move |count| format!("set {claim} count of gpu to {count}"))
    });
    note("count", any(counts.collect()));
    note("resource", any(cpu(&asks).map(|m| format!("set {} cpu to {m}m", asks.of)).collect()));
    let replicas = (1..asks.wanted).map(|count| format!("set {} replicas to {count}", asks.of));
    note("replicas", any(replicas.collect()));
    let nodes: Vec<&str> =
        world.objects().expect("objects").of_kind(Kind::Node).map(Object::name).collect();
    let more = (1..=2_usize).find(|count| {
        nodes.iter().any(|like| helps(world, group, &format!("+{count} nodes like {like}")))
    });
    note("nodes", more);
    found
}

/// Amounts of CPU, in thousandths, below what is asked.
fn cpu(asks: &Asks) -> impl Iterator<Item = i64> + use<> {
    let asked = asks.spec.containers[0].resources.requests.get("cpu");
    let asked = asked.map_or(0, |asked| asked.milli_ceil());
    std::iter::once(1)
        .chain((1..=64).map(|n| n * 1000))
        .chain([asked - 1])
        .filter(move |m| *m < asked)
}

/// Edits that are one unit less than this one; none where there is no less.
fn less(edit: &Edit) -> Vec<Edit> {
    match edit {
        Edit::AddNodes { count, like } if *count > 1 => {
            vec![Edit::AddNodes { count: count - 1, like: like.clone() }]
        }
        Edit::AddNodes { .. } | Edit::Relax { .. } => Vec::new(),
        Edit::Heal { ills } => {
            let but = |at: usize| -> Vec<Ill> { but(ills, at) };
            (0..ills.len())
                .filter(|_| ills.len() > 1)
                .map(|at| Edit::Heal { ills: but(at) })
                .collect()
        }
        Edit::Without { objects } => (0..objects.len())
            .filter(|_| objects.len() > 1)
            .map(|at| Edit::Without { objects: but(objects, at) })
            .collect(),
        Edit::Set { object, what } => {
            let what = match what {
                Setting::Count { request, count } => {
                    Setting::Count { request: request.clone(), count: count + 1 }
                }
                Setting::Replicas(count) => Setting::Replicas(count + 1),
                Setting::Minimum(of) => {
                    Setting::Minimum(Minimum { count: of.count + 1, ..of.clone() })
                }
                // A name has no smaller one.
                Setting::Name { .. } => return Vec::new(),
                Setting::Resource { resource, quantity } => {
                    let now: Quantity = quantity.parse().expect("a quantity");
                    let is_cpu = resource == "cpu";
                    let one = Quantity::from_milli(if is_cpu { 1 } else { 1000 });
                    let quantity = now.checked_add(&one).expect("a sum").to_string();
                    Setting::Resource { resource: resource.clone(), quantity }
                }
            };
            vec![Edit::Set { object: object.clone(), what }]
        }
    }
}

fn but<T: Clone>(all: &[T], left_out: usize) -> Vec<T> {
    let kept = all.iter().enumerate().filter(|(at, _)| *at != left_out);
    kept.map(|(_, one)| one.clone()).collect()
}

/// What is named for a group: on each pod of it that is not placed.
fn named<'a>(said: &'a Document, group: &GroupKey) -> &'a PodView {
    let name = group.object.name.as_str();
    let of = |pod: &&PodView| match group.kind.as_str() {
        "pod" => pod.name == name && pod.group.is_none(),
        _ => pod.group.as_ref().is_some_and(|of| of.ends_with(name)),
    };
    let mut waiting = said.pods.iter().filter(of).filter(|p| p.verdict.as_str() != "placed");
    waiting.next().unwrap_or_else(|| panic!("no pod of {group} waits"))
}

/// Sizes of the cures by kind. Each must do what it says, and one unit less must not.
fn sizes_of_what_is_right(
    world: &World,
    group: &GroupKey,
    pod: &PodView,
    seed: u64,
) -> BTreeMap<&'static str, usize> {
    let mut sizes = BTreeMap::new();
    for cure in &pod.cures {
        let edit: Edit = cure.edit.parse().expect("a cure is an edit");
        assert!(helps(world, group, &cure.edit), "seed {seed}: {group}: {edit} does not");
        for smaller in less(&edit) {
            let smaller = smaller.to_string();
            let does = helps(world, group, &smaller);
            assert!(!does, "seed {seed}: {group}: {smaller} does, and {edit} is named");
        }
        let least = sizes.entry(kind(&edit)).or_insert(usize::MAX);
        *least = size(&edit).min(*least);
    }
    sizes
}

/// Where there is too much to try every two, what is named is right all the same.
#[test]
fn in_crowded_worlds_cures_work_and_can_spare_nothing() {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 5_000..5_060 {
        let mut world = any_world(seed);
        let crowd = (0..30).map(|n| cpu_pod(&format!("crowd{n}"), "250m", &format!("n{}", n % 2)));
        add(&mut world, &crowd.collect::<String>());
        let before = document_of(&mut world);
        let said = document(&mut world);
        assert_eq!(document_of(&mut world).pods, before.pods, "seed {seed}");
        let verdicts = plan(&mut world, &options()).decision.verdicts;
        for (group, _) in verdicts.iter().filter(|(_, verdict)| !verdict.is_whole()) {
            for kind in sizes_of_what_is_right(&world, group, named(&said, group), seed).into_keys()
            {
                *counts.entry(kind).or_default() += 1;
            }
        }
    }
    println!("60 crowded worlds; cures by kind: {counts:?}");
    assert!(
        ["heal", "without", "relax", "nodes"].iter().all(|kind| counts[kind] >= 10),
        "{counts:?}"
    );
}

#[test]
fn a_cure_is_named_exactly_when_there_is_one_and_can_spare_nothing() {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut groups, mut without_any) = (0, 0);
    for seed in 1_000..1_250 {
        let mut world = any_world(seed);
        let before = document_of(&mut world);
        let said = document(&mut world);
        assert_eq!(
            document_of(&mut world).pods,
            before.pods,
            "seed {seed}: trials change the world"
        );
        let verdicts = plan(&mut world, &options()).decision.verdicts;
        for (group, _) in verdicts.iter().filter(|(_, verdict)| !verdict.is_whole()) {
            let pod = named(&said, group);
            let note = pod.notes.iter().find(|note| note.contains("not all tried"));
            assert_eq!(note, None, "seed {seed}: {group}");
            let there_are = brute(&world, group);
            groups += 1;
            without_any += u32::from(there_are.is_empty());
            let sizes = sizes_of_what_is_right(&world, group, pod, seed);
            for kind in KINDS {
                let named = sizes.get(kind);
                let small = named.filter(|size| **size <= 2);
                let context = format!("seed {seed}: {group}: {kind}: {:?}", pod.cures);
                assert_eq!(small, there_are.get(kind), "{context}");
                *counts.entry(kind).or_default() += u32::from(named.is_some());
            }
        }
    }
    println!(
        "{groups} groups of 250 worlds, {without_any} without a cure; cures by kind: {counts:?}"
    );
    for kind in KINDS {
        assert!(counts.get(kind).is_some_and(|count| *count >= 20), "{kind}: {counts:?}");
    }
    assert!(without_any >= 20, "{without_any}");
}

fn edits(said: &Document, name: &str) -> BTreeSet<String> {
    let of = said.pods.iter().filter(|pod| pod.name == name || pod.group.as_deref() == Some(name));
    of.flat_map(|pod| pod.cures.iter().map(|cure| cure.edit.clone())).collect()
}

#[test]
fn a_workload_is_offered_the_most_that_all_its_pods_can_have() {
    let mut world = world(&(node("n1", "22") + &job("j", 3, "10")));
    let said = document(&mut world);
    let all: BTreeSet<String> =
        said.pods.iter().flat_map(|pod| pod.cures.iter().map(|cure| cure.edit.clone())).collect();
    assert!(all.contains("set job/default/j cpu to 7333m"), "{all:?}");
    assert!(all.contains("set job/default/j replicas to 2"), "{all:?}");
}

#[test]
fn pods_that_this_plan_seats_can_be_ended_too() {
    let pods: String = (1..=3).map(|n| user_of(&format!("p{n}"), "shared")).collect();
    let mut world =
        world(&(gpus("n1").replace("cpu: '62'", "cpu: '2'") + &shared_claim("shared") + &pods));
    let said = document(&mut world);
    assert_eq!(pod(&said, "p3").verdict.as_str(), "waits");
    assert!(edits(&said, "p3").contains("without pod/default/p1"), "{:?}", edits(&said, "p3"));
}

#[test]
fn the_pod_that_is_missed_least_is_ended() {
    let running = cpu_pod("b1", "30", "n1") + &cpu_pod("b2", "10", "n1");
    let mut world = world(&(node("n1", "42") + &running + &cpu_pod("late", "10", "")));
    let said = document(&mut world);
    assert!(edits(&said, "late").contains("without pod/default/b2"), "{:?}", edits(&said, "late"));
}

#[test]
fn a_dump_of_thousands_leaves_room_for_cures() {
    let mut yaml = String::new();
    for n in 0..500 {
        yaml += &node(&format!("n{n:04}"), "9");
        for b in 0..4 {
            yaml += &cpu_pod(&format!("b{n:04}-{b}"), "2", &format!("n{n:04}"));
        }
    }
    let mut world = world(&yaml);
    let waiting: String = (0..40).map(|n| cpu_pod(&format!("late{n:02}"), "3", "")).collect();
    add(&mut world, &waiting);
    let said = document(&mut world);
    for n in 0..40_usize {
        // Those before it take the room that is made first.
        let late = pod(&said, &format!("late{n:02}"));
        let sizes: BTreeMap<&str, usize> = late
            .cures
            .iter()
            .map(|cure| cure.edit.parse().expect("an edit"))
            .map(|edit: Edit| (kind(&edit), size(&edit)))
            .collect();
        let expected = [("nodes", n / 3 + 1), ("resource", 1), ("without", n + 1)];
        assert_eq!(sizes, expected.into(), "{}: {:?}", late.name, late.cures);
        assert!(late.notes.is_empty(), "{:?}", late.notes);
    }
    let said = why(&mut world, "pod/late06");
    assert_eq!(pod(&said, "late06").cures.len(), 3);
}
