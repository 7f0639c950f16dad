//! What packing tells of GPUs that are given out in partitions changes no answer.

use crate::change::Match;
use crate::device::problem::{Lens, Problem};
use crate::device::search::{Aim, search};
use crate::device::shape::ShapeCounter;
use crate::device::{Matches, Shape, Usage};
use crate::facts::{Amount, Capacity, CounterSet, Level, Link, LinkClass};
use crate::name::{Name, ProfileId, SelectorId};

use super::world::{Chance, World, ask, claim, device, plain_traits, request};

const WORLDS: usize = 300;
const SLICES: usize = 4;
const UNIT: i128 = 1_000_000_000;

/// Partitions of one GPU: what knows them, where they start and how many slices they have. Two are
/// one and the same to everybody.
const PARTS: [(u32, usize, usize); 8] =
    [(1, 0, 1), (1, 1, 1), (1, 2, 1), (1, 2, 1), (1, 3, 1), (2, 0, 2), (2, 2, 2), (3, 0, 4)];

/// Two or three GPUs in partitions, some of them used, and sometimes a network card.
fn random(chance: &mut Chance) -> World {
    let gpus = 2 + chance.below(2);
    let alike = chance.percent(60);
    let (mut devices, mut counters) = (Vec::new(), Vec::new());
    for gpu in 0..gpus {
        let set = Name::new(&format!("gpu-{gpu}"));
        let (island, numa) = (chance.below(2) as u16, chance.below(2) as u16);
        for (profile, start, slices) in PARTS {
            let mut traits = plain_traits();
            traits.profile = ProfileId(profile);
            let odd = if alike { 0 } else { chance.below(3) };
            let nanos = ((2 * slices + odd) as i128) * (UNIT << 20);
            traits.capacity = [Capacity { name: Name::new("memory"), nanos, policy: None }].into();
            let slices = (start..start + slices).map(|s| (Name::new(&format!("slice-{s}")), UNIT));
            traits.counters = [CounterSet { name: set.clone(), counters: slices.collect() }].into();
            let mut one = device(devices.len() as u16, traits);
            one.accelerator = Some(true);
            one.domains[Level::Island as usize] = Some(if alike { 0 } else { island });
            one.domains[Level::Numa as usize] = Some(numa);
            devices.push(one);
        }
        counters.extend((0..SLICES).map(|slice| ShapeCounter {
            pool: 0,
            set: set.clone(),
            name: Name::new(&format!("slice-{slice}")),
            total: UNIT,
            grouped: false,
        }));
    }
    if chance.percent(20) {
        let mut traits = plain_traits();
        traits.profile = ProfileId(4);
        devices.push(device(devices.len() as u16, traits));
    }
    let pairs = vec![Link::new(LinkClass::Nvlink, 450); devices.len() * devices.len()];
    let shape = Shape::new(devices, Vec::new(), 1, pairs, counters);
    let mut usage = Usage::free(&shape);
    for at in 0..gpus * PARTS.len() {
        let takes = shape.takes(at);
        if chance.percent(8) && takes.iter().all(|(c, n)| usage.counters_left[*c] >= *n) {
            usage.taken[0] |= 1 << at;
            takes.iter().for_each(|(c, n)| usage.counters_left[*c] -= n);
        }
    }
    let mut matches = Matches::default();
    for (selector, profiles) in [(1, 1..2), (2, 2..3), (3, 1..3), (4, 4..5)] {
        for profile in profiles {
            matches.set(SelectorId(selector), ProfileId(profile), Match::Yes);
        }
    }
    let lines = 1 + chance.below(3);
    let line = |at: usize| {
        let mut one = ask(Amount::Count(1 + chance.below(3) as u32));
        one.selectors = [SelectorId(*chance.pick(&[1, 1, 2, 2, 3, 4]))].into();
        request(&format!("parts-{at}"), vec![one])
    };
    let claims = vec![claim((0..lines).map(line).collect())];
    World { shape, usage, claims, align: Vec::new(), fixed: Vec::new(), matches }
}

#[test]
fn a_search_that_packs_finds_what_one_that_does_not_finds() {
    let mut chance = Chance::new(4_241);
    let (mut placed, mut before, mut after) = (0, 0, 0);
    for n in 0..WORLDS {
        let world = random(&mut chance);
        world.with(|want| {
            let mut problem = Problem::new(Lens::whole(&world.shape, &world.usage, want));
            let (mut steps, mut plain_steps) = (500_000, 500_000);
            let packed = search(&problem, Aim::Best, &mut steps);
            problem.packing = None;
            let plain = search(&problem, Aim::Best, &mut plain_steps);
            assert!(!packed.cut, "world {n}: {world:?}");
            if !plain.cut {
                assert_eq!(packed.best, plain.best, "world {n}: {world:?}");
            }
            placed += usize::from(packed.best.is_some());
            before += 500_000 - plain_steps;
            after += 500_000 - steps;
        });
    }
    println!("{placed} of {WORLDS} placed, in {after} steps rather than {before}");
    assert!(placed > WORLDS / 2);
}
