//! The order of events does not matter: shuffled, stale, repeated, deleted and added again, with
//! other objects that come and go, settled at any time, they add up to the same facts and findings.

use phalanx_objects::{Object, ObjectRef};

use super::{Lowering, ObjectEvent, World, objects};
use crate::compat::Compat;
use crate::finding::Source;
use crate::lower::Gone;

/// xorshift64*: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(high).expect("31 bits") % bound
    }
}

const WORLD: &str = include_str!("../../../../objects/corpus/world.yaml");
/// Earlier states of objects of the world, and states of objects that are gone at the end.
const PAST: &str = include_str!("past.yaml");
/// Groups and places, and the same of what was before.
const GROUPS: &str = include_str!("groups.yaml");
const GROUPS_PAST: &str = include_str!("groups-past.yaml");

/// A world in which what only scores look at is kept as well.
fn scored(text: &str) -> World {
    let mut world = World::new(Lowering::new(Compat::default()).for_scores());
    world.add(text);
    world
}

fn version(object: &Object) -> u64 {
    object.metadata().resource_version.parse().expect("every object of the test has a version")
}

fn event(object: &Object, source: &Source) -> ObjectEvent {
    ObjectEvent::Applied(Box::new(object.clone()), source.clone())
}

/// The object's deletion, in that state.
fn gone(object: &Object) -> ObjectEvent {
    let meta = object.metadata();
    ObjectEvent::Deleted(Gone {
        object: object.reference(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
    })
}

/// One object's history that ends in its last state, or in its absence.
fn history(
    reference: &ObjectRef,
    last: Option<&(Object, Source)>,
    past: &[(Object, Source)],
    dice: &mut Dice,
) -> Vec<ObjectEvent> {
    let mut events = Vec::new();
    let earlier: Vec<_> = past.iter().filter(|(o, _)| o.reference() == *reference).collect();
    for _ in 0..dice.below(4) {
        match (dice.below(3), earlier.is_empty(), last) {
            (0, ..) => events.push(ObjectEvent::Deleted(reference.clone().into())),
            (1, false, _) | (2, false, None) => {
                let (object, source) = earlier[dice.below(earlier.len())];
                events.push(event(object, source));
            }
            (_, _, Some((object, source))) => events.push(event(object, source)),
            (_, _, None) => {}
        }
    }
    match last {
        None if earlier.is_empty() => {
            events.push(ObjectEvent::Deleted(reference.clone().into()));
        }
        None => {
            // Gone in its last state, of which states from before tell nothing new.
            events.extend(earlier.iter().max_by_key(|(o, _)| version(o)).map(|(o, _)| gone(o)));
            for _ in 0..dice.below(3) {
                let (object, source) = earlier[dice.below(earlier.len())];
                events.push(event(object, source));
            }
        }
        Some((object, source)) => {
            events.push(event(object, source));
            // What is older comes too late, and what is the same changes nothing.
            for _ in 0..dice.below(3) {
                events.push(event(object, source));
                let stale = earlier.iter().filter(|(o, _)| version(o) < version(object));
                let late =
                    |(object, source): &&(Object, Source)| [event(object, source), gone(object)];
                events.extend(stale.flat_map(late));
            }
        }
    }
    events
}

/// A shuffled run of all histories, each in its own order, settled now and then.
fn run(seed: u64, now: &[(Object, Source)], past: &[(Object, Source)]) -> World {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut references: Vec<ObjectRef> =
        now.iter().chain(past).map(|(object, _)| object.reference()).collect();
    references.sort();
    references.dedup();
    let mut queues: Vec<Vec<ObjectEvent>> = references
        .iter()
        .map(|reference| {
            let last = now.iter().find(|(object, _)| object.reference() == *reference);
            let mut events = history(reference, last, past, &mut dice);
            events.reverse();
            events
        })
        .collect();
    let often = 1 + dice.below(30);
    let mut world = World::new(Lowering::new(Compat::default()).for_scores());
    while !queues.is_empty() {
        let at = dice.below(queues.len());
        match queues[at].pop() {
            Some(event) => world.lowering.absorb(event),
            None => drop(queues.swap_remove(at)),
        }
        if dice.below(often) == 0 {
            world.settle();
        }
    }
    world.settle();
    world
}

#[test]
fn every_order_of_events_gives_the_same_facts_and_findings() {
    in_every_order(WORLD, PAST, 150);
}

#[test]
fn every_order_of_events_gives_the_same_groups_and_places() {
    in_every_order(GROUPS, GROUPS_PAST, 300);
}

fn in_every_order(now: &str, past: &str, seeds: u64) {
    let expected = scored(now);
    let (facts, findings) = (expected.canonical(), expected.said());
    assert!(facts.len() >= 20 && findings.len() >= 3, "{} {}", facts.len(), findings.len());
    let (now, past) = (objects(now), objects(past));
    for seed in 0..seeds {
        let world = run(seed, &now, &past);
        let actual = world.canonical();
        for (left, right) in facts.iter().zip(&actual) {
            assert_eq!(left, right, "seed {seed}");
        }
        assert_eq!(facts.len(), actual.len(), "seed {seed}");
        assert_eq!(findings, world.said(), "seed {seed}");
    }
}

#[test]
fn without_versions_the_later_place_in_the_input_counts() {
    let text = |cpu: u32| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: node}}, status: {{capacity: {{cpu: {cpu}}}}}}}"
        )
    };
    let node = |cpu: u32, ordinal: u64| {
        let (object, source) = objects(&text(cpu)).remove(0);
        ObjectEvent::Applied(Box::new(object), Source { ordinal, ..source })
    };
    for events in [[node(1, 3), node(2, 8)], [node(2, 8), node(1, 3)]] {
        let mut world = World::new(Lowering::new(Compat::default()).for_scores());
        events.into_iter().for_each(|event| world.lowering.absorb(event));
        world.settle();
        assert_eq!(world.node("node").expect("node").allocatable.cpu_milli, 2000);
    }
}

/// Words that a hostile or careless hand may write in place of others.
const WORDS: [&str; 14] = [
    "-1",
    "0",
    "2147483647",
    "9223372036854775807",
    "\"\"",
    "null",
    "{}",
    "[]",
    "n1",
    "gpu",
    "c",
    "waits",
    "1e30",
    "\"1n\"",
];

#[test]
fn no_object_that_can_be_read_makes_lowering_panic() {
    let mut dice = Dice(11);
    let mut read_ones = 0;
    for _ in 0..300 {
        let mut words: Vec<&str> = WORLD.split_inclusive([' ', ',', '}', ']', '\n']).collect();
        for _ in 0..40 {
            let at = dice.below(words.len());
            let end =
                words[at].len() - words[at].trim_end_matches([' ', ',', '}', ']', '\n']).len();
            if end < words[at].len() && !words[at].contains([':', '-']) {
                words[at] = WORDS[dice.below(WORDS.len())];
                words.insert(at + 1, " ");
            }
        }
        let mut lowering = Lowering::new(Compat::default()).for_scores();
        let mut ordinal = 0;
        phalanx_objects::read("x", words.concat().as_bytes(), &mut |item| {
            if let phalanx_objects::Item::Object(object, _) = item {
                ordinal += 1;
                let source = Source { ordinal, ..Source::default() };
                lowering.absorb(ObjectEvent::Applied(Box::new(object), source));
            }
        });
        read_ones += ordinal;
        lowering.settle();
        let pods = lowering.all(phalanx_objects::Kind::Pod);
        assert!(lowering.devices().count() <= 100 && pods.len() < 30);
    }
    assert!(read_ones > 1000, "{read_ones}");
}

#[test]
fn settling_again_says_nothing_new() {
    let mut world = run(7, &objects(WORLD), &objects(PAST));
    let changes = world.lowering.settle();
    assert_eq!(changes, []);
}

#[test]
fn a_fork_does_not_touch_what_it_came_from() {
    let mut world = scored(WORLD);
    let before = world.canonical();
    let mut fork = world.clone();
    for (object, _) in objects(WORLD) {
        fork.lowering.absorb(ObjectEvent::Deleted(object.reference().into()));
    }
    fork.settle();
    assert_eq!(fork.canonical(), Vec::<String>::new());
    assert_eq!(fork.findings, []);
    world.settle();
    assert_eq!(world.canonical(), before);
}

fn node(uid: &str, version: &str, created: &str) -> Object {
    let text = format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: node, uid: '{uid}', resourceVersion: \
         '{version}', creationTimestamp: '{created}'}}, status: {{capacity: {{cpu: 1, pods: 9}}}}}}"
    );
    objects(&text).remove(0).0
}

/// Which node stands at the end of these events; its UID.
fn standing(events: impl IntoIterator<Item = ObjectEvent>) -> Option<String> {
    let mut lowering = Lowering::new(Compat::default()).for_scores();
    events.into_iter().for_each(|event| lowering.absorb(event));
    let reference = node("", "", "2026-01-01T00:00:00Z").reference();
    lowering.header(&reference).map(|header| header.uid.to_string())
}

#[test]
fn a_deletion_counts_for_what_was_before_it_and_for_nothing_else() {
    let day = "2026-01-01T00:00:00Z";
    let put = |uid: &str, version: &str| event(&node(uid, version, day), &Source::default());
    let end = |uid: &str, version: &str| gone(&node(uid, version, day));
    assert_eq!(standing([put("a", "3"), end("a", "5"), put("a", "4")]), None);
    assert_eq!(standing([end("a", "5"), put("a", "4")]), None);
    assert_eq!(standing([put("a", ""), end("a", "5"), put("a", "")]), None);
    let again = Some("b".to_owned());
    assert_eq!(standing([put("a", "3"), end("a", "5"), put("b", "7")]), again);
    assert_eq!(standing([put("a", "3"), put("b", "7"), end("a", "5")]), again);
    assert_eq!(standing([put("b", "7"), end("a", "5"), put("a", "4")]), again);
    assert_eq!(standing([put("b", ""), end("a", "")]), again);
    assert_eq!(standing([put("a", "3"), end("b", "9")]), None, "the first must be gone too");
    assert_eq!(
        standing([put("a", "3"), ObjectEvent::Deleted(node("", "", day).reference().into())]),
        None
    );
}

#[test]
fn the_newest_time_goes_with_the_object_that_gave_it() {
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-05-01T00:00:00Z");
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, creationTimestamp: '2026-01-02T00:00:00Z'}, \
               spec: {nodeName: n1, containers: [{name: c}]}, status: {startTime: '2026-03-01T00:00:00Z'}}";
    let (pod, source) = objects(pod).remove(0);
    let time = |text: &str| text.parse().ok().map(crate::lower::record::timestamp);
    let mut lowering = Lowering::new(Compat::default()).for_scores();
    lowering.absorb(event(&pod, &source));
    lowering.absorb(event(&node("a", "1", late), &source));
    assert_eq!(lowering.newest_time(), time(late));
    lowering.absorb(event(&node("b", "2", early), &source));
    assert_eq!(lowering.newest_time(), time("2026-03-01T00:00:00Z"));
    lowering.absorb(gone(&pod));
    assert_eq!(lowering.newest_time(), time(early));
    lowering.absorb(gone(&node("b", "3", early)));
    assert_eq!(lowering.newest_time(), None);
}
