//! Worlds with one object that is harmed by chance, seeded, so that each run makes the same.
//! `cargo xtask fuzz world --runs N --seed S` makes more of them.
//!
//! Of every one: whatever is asked ends without a panic, what is decided passes both audits, and
//! nothing but the object changes. A world in which it can't be read is one without it; a world from
//! which it is taken again is the one before. Of worlds in which everything is harmed, and in which
//! amounts add up to more than any number holds, the first half is asked.
#![expect(clippy::unwrap_used, reason = "a test panics")]

#[path = "../chance/mod.rs"]
mod chance;
mod harm;

use std::collections::BTreeSet;

use phalanx_cluster::audit::audit_objects;
use phalanx_cluster::diff::{PlanRead, diff};
use phalanx_cluster::lint::{AdviceView, advise, lint, refusals};
use phalanx_cluster::mask::Mask;
use phalanx_cluster::plan::{PlanOptions, plan};
use phalanx_cluster::raise::raise;
use phalanx_cluster::status::status;
use phalanx_cluster::view::{Document, ViewOptions, plan_document, why_document};
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Finding, Lowering, ObjectEvent, Source, Version};
use phalanx_engine::{DeviceOrder, NodeOrder, Policy};
use phalanx_objects::{Item, Kind, Object, ObjectRef, Severity, read};

/// Objects of every kind that is read, with what they refer to.
const WORLD: &str = include_str!("../../../objects/corpus/world.yaml");

/// Harmed objects, a line of JSON each: they did harm once.
const KEPT: &str = include_str!("kept.jsonl");

/// Runs without further word: the worlds of a few seconds.
const RUNS: u64 = 150;

/// Of so many runs one harms a whole world.
const WHOLE_EVERY: u64 = 15;

/// Of so many harmed objects one is read still, and one is not, at least.
const TOLD_LEAST: u64 = 10;

/// What reading a text gives: objects, and what can't be read.
#[derive(Default)]
struct Reading {
    objects: Vec<Object>,
    unread: Vec<ObjectRef>,
}

impl Reading {
    fn of(text: &str) -> Self {
        let mut all = Self::default();
        read("test", text.as_bytes(), &mut |item| match item {
            Item::Object(object, _) => all.objects.push(object),
            Item::Gone(..) | Item::Unknown { .. } => {}
            Item::Problem(problem) => {
                let lost = problem.severity == Severity::Error;
                all.unread.extend(problem.object.filter(|_| lost));
            }
        });
        all
    }
}

fn absorb(world: &mut World, object: &Object, ordinal: u64) {
    let source = Source { file: "test".into(), line: 1, ordinal };
    world.absorb(ObjectEvent::Applied(Box::new(object.clone()), source));
}

fn remove(world: &mut World, reference: &ObjectRef) {
    world.absorb(ObjectEvent::Deleted(reference.clone().into()));
}

/// Every feature is on, so that what reads its fields is reached.
fn compat() -> Compat {
    Compat::new(Version::default()).with_gates("AllAlpha=true,AllBeta=true").unwrap()
}

/// All that may be asked of a world: none of it panics, and what is decided is legal. `text` is the
/// object that was harmed.
fn ask(world: &mut World, harmed: &ObjectRef, text: &str) -> Document {
    let options = PlanOptions::default();
    let decided = plan(world, &options);
    let violations = phalanx_engine::audit(world.state(), &decided.decision);
    assert!(violations.is_empty(), "{violations:?}: {text}");
    let effects = raise(world, &decided);
    let violations = audit_objects(world.objects().unwrap(), &effects);
    assert!(violations.is_empty(), "{violations:?}: {text}");
    for lint in lint(world, &options) {
        assert!(!lint.message.is_empty(), "{lint:?}");
    }
    why_document(world, harmed, &options, &ViewOptions::default());
    plan_document(world, &decided, &ViewOptions::default())
}

/// What else may be asked of a world: how it stands, what would be better, what differs between its
/// plan and itself, and its objects without their names, which are read again.
fn survey(world: &mut World, planned: &Document, text: &str) {
    let options = PlanOptions::default();
    let found = serde_json::to_value(status(world, &options)).unwrap();
    assert!(found.is_object(), "{text}");
    for advice in advise(world) {
        assert!(!AdviceView::of(&advice).message.is_empty(), "{advice:?}");
    }
    let scored = Policy {
        node_order: NodeOrder::Scores,
        device_order: DeviceOrder::Upstream,
        ..Policy::default()
    };
    let decided = plan(world, &PlanOptions { policy: scored, ..options });
    let violations = phalanx_engine::audit(world.state(), &decided.decision);
    assert!(violations.is_empty(), "{violations:?}: {text}");
    let plan: PlanRead = serde_json::from_value(serde_json::to_value(planned).unwrap()).unwrap();
    assert!(diff(&plan, &plan).changes.is_empty(), "{text}");
    let mask = Mask::new(world).unwrap().unwrap();
    let masked: Vec<String> = mask.objects().map(|object| object.unwrap().to_string()).collect();
    let again = Reading::of(&masked.join("\n"));
    assert_eq!((again.objects.len(), again.unread), (masked.len(), Vec::new()), "{text}");
}

/// Each pod with what became of it and where.
fn outcome(document: &Document) -> Vec<String> {
    let line = |pod: &phalanx_cluster::view::PodView| {
        format!("{}/{} {} {:?}", pod.namespace, pod.name, pod.verdict.as_str(), pod.node)
    };
    document.pods.iter().map(line).collect()
}

/// The world before anything is harmed.
struct Base {
    world: World,
    objects: Vec<Object>,
    answer: Vec<String>,
    findings: Vec<Finding>,
}

/// Where a harmed object stands: after all others.
const LAST: u64 = 1_000;

impl Base {
    fn new() -> Self {
        let mut world = World::new(Lowering::new(compat()).for_scores());
        let objects = Reading::of(WORLD).objects;
        let kinds: BTreeSet<Kind> = objects.iter().map(Object::kind).collect();
        assert_eq!(kinds, Kind::ALL.iter().copied().collect(), "each kind is harmed");
        for (ordinal, object) in (0..).zip(&objects) {
            absorb(&mut world, object, ordinal);
        }
        world.settle();
        let answer = outcome(&ask(&mut world, &objects[0].reference(), WORLD));
        let findings = world.findings().to_vec();
        Self { world, objects, answer, findings }
    }

    /// Holds one text in place of an object against all that is promised; gives whether it is read.
    fn hold(&self, text: &str, at: usize) -> bool {
        let before = &self.objects[at];
        let reading = Reading::of(text);
        let compat = compat();
        for object in &reading.objects {
            let told = refusals(object, &compat);
            assert!(told.iter().all(|refusal| !refusal.message.is_empty()), "{told:?}");
        }
        let mut world = self.world.clone();
        remove(&mut world, &before.reference());
        for gone in &reading.unread {
            world.unread(gone.clone());
        }
        world.settle();
        let without = outcome(&ask(&mut world, &before.reference(), text));
        for object in &reading.objects {
            absorb(&mut world, object, LAST);
        }
        world.settle();
        let planned = ask(&mut world, &before.reference(), text);
        survey(&mut world, &planned, text);
        let with = outcome(&planned);
        if reading.objects.is_empty() {
            let mut plain = self.world.clone();
            remove(&mut plain, &before.reference());
            plain.settle();
            let plain = outcome(&ask(&mut plain, &before.reference(), text));
            assert_eq!((&without, &with), (&plain, &plain), "{text}");
            return false;
        }
        if reading.unread.is_empty() {
            self.holds_again(world, &reading, at, text);
        }
        true
    }

    /// With the harmed object gone and the good one back, all is as before.
    fn holds_again(&self, mut world: World, reading: &Reading, at: usize, text: &str) {
        for object in &reading.objects {
            remove(&mut world, &object.reference());
            let stood = self
                .objects
                .iter()
                .enumerate()
                .find(|(_, stood)| stood.reference() == object.reference());
            if let Some((ordinal, stood)) = stood {
                absorb(&mut world, stood, ordinal as u64);
            }
        }
        absorb(&mut world, &self.objects[at], at as u64);
        world.settle();
        let again = outcome(&ask(&mut world, &self.objects[at].reference(), text));
        assert_eq!(again, self.answer, "{text}");
        assert_eq!(world.findings(), self.findings, "{text}");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "seed and runs are handed over by `cargo xtask fuzz`"
)]
fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn kept_objects_harm_nothing_but_themselves() {
    let base = Base::new();
    for text in KEPT.lines() {
        let reference = Reading::of(text).objects.first().map(Object::reference);
        let stands = base.objects.iter().position(|object| Some(object.reference()) == reference);
        base.hold(text, stands.unwrap_or(0));
    }
}

#[test]
fn objects_harmed_by_chance_harm_nothing_but_themselves() {
    let (seed, runs) = (number("PHALANX_FUZZ_SEED", 1), number("PHALANX_FUZZ_RUNS", RUNS));
    let base = Base::new();
    let mut read = 0;
    for run in 0..runs {
        let mut chance = chance::Chance::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(run));
        let at = chance.index(base.objects.len());
        let mut object = serde_json::to_value(&base.objects[at]).unwrap();
        harm::object(&mut object, &mut chance);
        read += u64::from(base.hold(&object.to_string(), at));
    }
    println!("{read} of {runs} objects are read (seed {seed})");
    let enough = runs < RUNS || read.min(runs - read) * TOLD_LEAST >= runs;
    assert!(enough, "{read} of {runs} objects are read");
}

#[test]
fn worlds_harmed_by_chance_all_over_are_answered() {
    let (seed, runs) = (number("PHALANX_FUZZ_SEED", 1), number("PHALANX_FUZZ_RUNS", RUNS));
    let objects = Reading::of(WORLD).objects;
    for run in 0..runs / WHOLE_EVERY {
        let mut chance = chance::Chance::new(seed.wrapping_mul(0x1_0000_0003).wrapping_add(run));
        let absurd = chance.one_in(2);
        let mut text = String::new();
        for object in &objects {
            let mut value = serde_json::to_value(object).unwrap();
            if absurd {
                harm::amounts(&mut value, &mut chance);
            } else if chance.one_in(6) {
                harm::object(&mut value, &mut chance);
            }
            text += &value.to_string();
            text.push('\n');
        }
        let mut world = World::new(Lowering::new(compat()).for_scores());
        for (ordinal, object) in (0..).zip(&Reading::of(&text).objects) {
            absorb(&mut world, object, ordinal);
        }
        world.settle();
        let planned = ask(&mut world, &objects[0].reference(), &text);
        survey(&mut world, &planned, &text);
    }
}
