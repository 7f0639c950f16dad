//! What is told of devices that can't be together, by hand.

use crate::change::Match;
use crate::decision::{Beside, DeviceFacts, Joint};
use crate::device::shape::{ShapeCounter, ShapeDevice};
use crate::device::{Failure, Matches, Shape, Usage, choose};
use crate::facts::{Amount, AttributeValue, ClaimSpec, CounterSet, DeviceRequest};
use crate::name::{Name, ProfileId, SelectorId};
use crate::policy::Policy;
use crate::reason::Reason;

use super::world::{World, ask, claim, constraint, device, plain_traits, request};

/// Devices by kind (0 is asked by `gpu`, 1 by `nic`) and by the values of `x` and `y`.
fn devices(of: &[(u32, i64, i64)]) -> Vec<ShapeDevice> {
    let one = |(rank, (kind, x, y)): (u16, &(u32, i64, i64))| {
        let mut traits = plain_traits();
        traits.profile = ProfileId(*kind);
        let value = |name: &str, n: i64| (Name::new(name), AttributeValue::Int(n));
        traits.attributes = [value("x", *x), value("y", *y)].into();
        device(rank, traits)
    };
    (0..).zip(of).map(one).collect()
}

fn asks(name: &str, kind: u32, n: u32) -> DeviceRequest {
    let mut alternative = ask(Amount::Count(n));
    alternative.selectors = [SelectorId(kind)].into();
    request(name, vec![alternative])
}

fn world(shape: Shape, spec: ClaimSpec) -> World {
    let usage = Usage::free(&shape);
    let mut matches = Matches::default();
    for kind in 0..2 {
        matches.set(SelectorId(kind), ProfileId(kind), Match::Yes);
    }
    World { shape, usage, claims: vec![spec], align: Vec::new(), fixed: Vec::new(), matches }
}

fn told(world: &World) -> (Reason, DeviceFacts) {
    let policy = Policy::default();
    let answer = world.with(|want| choose(&world.shape, &world.usage, want, &policy, &mut 100_000));
    match answer {
        Err(Failure::Reason { reason, facts, .. }) => (reason, *facts),
        other => panic!("{other:?}"),
    }
}

fn joint(facts: &DeviceFacts) -> &Joint {
    facts.joint.as_deref().expect("several requests")
}

/// Two of kind 0 and one of kind 1 that agree on `x`.
fn pair(of: &[(u32, i64, i64)], x: &[&str]) -> World {
    let mut spec = claim(vec![asks("gpu", 0, 2), asks("nic", 1, 1)]);
    spec.constraints = x.iter().map(|attribute| constraint(attribute, false)).collect();
    world(Shape::new(devices(of), Vec::new(), 1, Vec::new(), Vec::new()), spec)
}

#[test]
fn each_value_is_counted_for_each_request() {
    let of = [(0, 7, 0), (0, 8, 0), (0, 8, 0), (0, 8, 0), (1, 7, 0), (1, 7, 0), (1, 9, 0)];
    let mut world = pair(&of, &["x"]);
    let (reason, facts) = told(&world);
    assert_eq!((reason, facts.asked, facts.together), (Reason::MatchUnmet, 3, 2));
    let Joint { parts, kinds, groups, more, .. } = joint(&facts);
    let asked: Vec<(Option<&str>, u32)> =
        parts.iter().map(|part| (part.request.as_deref(), part.asked)).collect();
    assert_eq!(asked, [(Some("gpu"), 2), (Some("nic"), 1)]);
    assert_eq!((kinds.as_slice(), *more), (&[vec![0], vec![1]][..], 1));
    // 8 gives two of those asked, and so does 7: the first by name leads.
    let has = |at: usize| (groups[at].leader, groups[at].free.clone(), groups[at].all.clone());
    assert_eq!(has(0), (0, vec![1, 2], vec![1, 2]));
    assert_eq!(has(1), (1, vec![3, 0], vec![3, 0]));
    world.usage.taken[0] = 1 << 4;
    let (_, facts) = told(&world);
    let groups = &joint(&facts).groups;
    assert_eq!((&groups[0].free, &groups[0].all), (&vec![1, 1], &vec![1, 2]));
}

#[test]
fn a_value_in_use_is_told_where_it_would_do() {
    let mut world = pair(&[(0, 7, 0), (0, 7, 0), (1, 7, 0), (1, 8, 0)], &["x"]);
    world.usage.taken[0] = 1 << 2;
    let (reason, facts) = told(&world);
    assert_eq!((reason, facts.attribute.as_deref()), (Reason::NotTogether, Some("x")));
    let groups = &joint(&facts).groups;
    assert_eq!((&groups[0].free, &groups[0].all), (&vec![2, 0], &vec![2, 1]));
}

#[test]
fn the_rules_that_take_part_are_named() {
    // By `x` alone and by `y` alone there would be a set.
    let of = [(0, 7, 0), (0, 7, 1), (0, 8, 1), (1, 7, 1), (1, 8, 0)];
    let (reason, facts) = told(&pair(&of, &["x", "y"]));
    assert_eq!((reason, facts.attribute.as_deref()), (Reason::MatchUnmet, Some("y")));
    assert_eq!(*facts.beside, [Beside::Match(Name::new("x"))]);
    // A rule that is kept by every set takes no part.
    let of = [(0, 7, 0), (0, 7, 1), (1, 7, 1)];
    let (_, facts) = told(&pair(&of, &["x", "y"]));
    assert_eq!((facts.attribute.as_deref(), &*facts.beside), (Some("y"), &[][..]));
}

#[test]
fn counters_say_for_how_many_they_are_enough() {
    let part = |rank: u16| {
        let mut traits = plain_traits();
        let used = [(Name::new("memory"), 30)].into();
        traits.counters = [CounterSet { name: Name::new("set"), counters: used }].into();
        device(rank, traits)
    };
    let (set, name) = (Name::new("set"), Name::new("memory"));
    let counter = ShapeCounter { pool: 0, set, name, total: 80, grouped: false };
    let of = |requests: Vec<DeviceRequest>| {
        let parts = (0..4).map(part).collect();
        world(Shape::new(parts, Vec::new(), 1, Vec::new(), vec![counter.clone()]), claim(requests))
    };
    let (reason, facts) = told(&of(vec![asks("part", 0, 3)]));
    assert_eq!((reason, facts.together), (Reason::CountersShort, 2));
    assert_eq!((facts.set.as_deref(), facts.amount), (Some("set"), Some((30, 20))));
    let (reason, facts) = told(&of(vec![asks("one", 0, 2), asks("two", 0, 1)]));
    assert_eq!((reason, facts.amount), (Reason::NotTogether, Some((30, 20))));
    assert_eq!((joint(&facts).kinds.len(), joint(&facts).free), (1, 4));
}
