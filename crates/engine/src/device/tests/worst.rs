//! The largest questions that are answered to the end.

use crate::change::Match;
use crate::decision::Proof;
use crate::device::shape::{ShapeCounter, ShapeDevice};
use crate::device::{Failure, Matches, Offer, Shape, Usage, choose};
use crate::facts::{Amount, Capacity, CounterSet, Level, Link, LinkClass, Traits};
use crate::name::{Name, ProfileId, SelectorId};
use crate::policy::{Effort, Policy};

use super::world::{Chance, World, ask, claim, device, plain_traits, request};

/// The best set, and the steps that it took.
fn solve(world: &World) -> (Offer, u64) {
    let bound = Effort::default().steps;
    let mut steps = bound;
    let answer =
        world.with(|want| choose(&world.shape, &world.usage, want, &Policy::default(), &mut steps));
    (answer.unwrap(), bound - steps)
}

/// A request of so many devices that a selector knows.
fn wanted(name: &str, selector: u32, count: u32) -> crate::facts::DeviceRequest {
    let mut one = ask(Amount::Count(count));
    one.selectors = [SelectorId(selector)].into();
    request(name, vec![one])
}

/// Sixteen GPUs, each joined to the others in its own way, and sixteen network cards, one under the
/// switch of each GPU.
fn sixteen(seed: u64, cards_first: bool) -> World {
    let mut chance = Chance::new(seed);
    let mut devices = Vec::new();
    for rank in 0..32u16 {
        let at = if rank < 16 { rank } else { (rank * 7 + 3) % 16 };
        let mut traits = plain_traits();
        traits.profile = ProfileId(u32::from(rank >= 16));
        let mut one = device(rank, traits);
        one.accelerator = Some(rank < 16);
        one.nic = rank >= 16;
        one.driver = Name::new(if rank < 16 { "gpu.example.com" } else { "nic.example.com" });
        one.domains[Level::Switch as usize] = Some(at);
        one.domains[Level::Root as usize] = Some(at / 2);
        one.domains[Level::Numa as usize] = Some(at / 8);
        devices.push(one);
    }
    let classes = [LinkClass::Nvlink, LinkClass::Switch, LinkClass::Numa, LinkClass::System];
    let mut pairs = vec![Link::UNKNOWN; 32 * 32];
    for (a, b) in (0..16).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let link = Link::new(*chance.pick(&classes), *chance.pick(&[0, 25, 50]));
        pairs[a * 32 + b] = link;
        pairs[b * 32 + a] = link;
    }
    let shape = Shape::new(devices, Vec::new(), 1, pairs, Vec::new());
    let mut requests = vec![wanted("gpus", 0, 8), wanted("nics", 1, 8)];
    if cards_first {
        requests.reverse();
    }
    world(shape, claim(requests))
}

fn world(shape: Shape, spec: crate::facts::ClaimSpec) -> World {
    let usage = Usage::free(&shape);
    let mut matches = Matches::default();
    for kind in 0..8 {
        matches.set(SelectorId(kind), ProfileId(kind), Match::Yes);
    }
    World { shape, usage, claims: vec![spec], align: Vec::new(), fixed: Vec::new(), matches }
}

#[test]
fn eight_gpus_and_eight_cards_of_sixteen_each_are_searched_to_the_end() {
    for (seed, cards_first) in [(1, false), (2, false), (3, true), (4, true)] {
        let (offer, steps) = solve(&sixteen(seed, cards_first));
        println!("{seed} {cards_first}: {steps} steps, {:?}", offer.price.devices);
        assert_eq!(offer.proof, Proof::Proven, "{seed}: {steps} steps");
        assert_eq!(offer.price.devices.nics.off_switch, 0);
    }
}

/// Profiles of an H100 with 80 GB: memory in Mi, slices, multiprocessors, the selector that knows
/// it, and where it may start.
type Profile = (&'static str, i128, usize, i128, u32, &'static [usize]);
const PROFILES: [Profile; 7] = [
    ("1g10gb", 9984, 1, 16, 1, &[0, 1, 2, 3, 4, 5, 6]),
    ("1g10gb-me", 9984, 1, 16, 2, &[0, 1, 2, 3, 4, 5, 6]),
    ("1g20gb", 20096, 2, 26, 3, &[0, 2, 4, 6]),
    ("2g20gb", 20096, 2, 32, 4, &[0, 2, 4]),
    ("3g40gb", 40448, 4, 60, 5, &[0, 4]),
    ("4g40gb", 40448, 4, 64, 6, &[0]),
    ("7g80gb", 81152, 8, 132, 7, &[0]),
];
const UNIT: i128 = 1_000_000_000;

/// A device that takes so much of the counters of a GPU.
fn part(
    gpu: usize,
    profile: u32,
    memory: i128,
    sms: i128,
    engines: i128,
    slices: &[usize],
) -> Traits {
    let mut traits = plain_traits();
    traits.profile = ProfileId(profile);
    let nanos = (memory << 20) * UNIT;
    traits.capacity = [Capacity { name: Name::new("memory"), nanos, policy: None }].into();
    let mut counters = vec![
        (Name::new("jpeg-engines"), engines * UNIT),
        (Name::new("memory"), nanos),
        (Name::new("multiprocessors"), sms * UNIT),
    ];
    let slices = slices.iter().map(|slice| (Name::new(&format!("slice-{slice}")), UNIT));
    counters.extend(slices);
    let name = Name::new(&format!("gpu-{gpu}-counter-set"));
    traits.counters = [CounterSet { name, counters: counters.into() }].into();
    traits
}

/// Eight H100 that publish every partition there can be: 26 devices each.
fn eight_partitioned() -> Shape {
    eight(false)
}

/// As they are, or with partitions that have an engine beside others as one more of each.
fn eight(doubled: bool) -> Shape {
    let mut devices: Vec<ShapeDevice> = Vec::new();
    let mut counters = Vec::new();
    for gpu in 0..8 {
        let all: Vec<usize> = (0..8).collect();
        let mut of_gpu = vec![part(gpu, 0, 81152, 132, 1, &all)];
        for (name, memory, slices, sms, selector, starts) in PROFILES {
            let me = name.ends_with("me");
            let engines = i128::from(me && !doubled || slices == 8);
            let selector = if me && doubled { 1 } else { selector };
            for start in starts {
                let slices: Vec<usize> = (*start..start + slices).collect();
                of_gpu.push(part(gpu, selector, memory, sms, engines, &slices));
            }
        }
        for traits in of_gpu {
            let mut one = device(u16::try_from(devices.len()).unwrap(), traits);
            one.accelerator = Some(true);
            one.domains[Level::Island as usize] = Some(0);
            one.domains[Level::Numa as usize] = Some(gpu as u16 / 4);
            devices.push(one);
        }
        let whole = &devices[devices.len() - 26].traits.counters[0];
        let set = whole.name.clone();
        let totals = whole.counters.iter().map(|(name, total)| ShapeCounter {
            pool: 0,
            set: set.clone(),
            name: name.clone(),
            total: *total,
            grouped: false,
        });
        counters.extend(totals);
    }
    let n = devices.len();
    let link = Link::new(LinkClass::Nvlink, 450);
    Shape::new(devices, Vec::new(), 1, vec![link; n * n], counters)
}

#[test]
fn partitions_of_eight_gpus_are_packed_soon() {
    let shape = eight_partitioned();
    assert_eq!(shape.devices.len(), 208);
    for (selector, count, gpus) in [
        (1, 1, 1),
        (1, 3, 1),
        (1, 7, 1),
        (1, 9, 2),
        (1, 16, 3),
        (1, 30, 5),
        (4, 4, 2),
        (5, 3, 2),
        (5, 16, 8),
        (0, 8, 8),
    ] {
        let spec = claim(vec![wanted("parts", selector, count)]);
        let (offer, steps) = solve(&world(shape.clone(), spec));
        println!("{count} of {selector}: {steps} steps, {:?}", offer.price.toll);
        assert_eq!(offer.proof, Proof::Proven, "{count} of {selector}: {steps} steps");
        assert_eq!(offer.price.toll.wholes_used, gpus, "{count} of {selector}");
        assert!(steps < 1_000, "{count} of {selector}: {steps} steps");
    }
}

#[test]
fn partitions_of_several_kinds_are_packed_together() {
    let kinds = [(1, 8), (4, 4), (5, 6)];
    let each = |order: [usize; 3]| {
        let one = |at: usize| wanted(&format!("parts-{at}"), kinds[at].0, kinds[at].1);
        claim(order.map(one).into())
    };
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        for doubled in [false, true] {
            let (offer, steps) = solve(&world(eight(doubled), each(order)));
            println!("{order:?} {doubled}: {steps} steps, {:?}", offer.price.toll);
            assert_eq!(offer.proof, Proof::Proven, "{order:?} {doubled}: {steps} steps");
            // Forty slices of eight each.
            assert_eq!(offer.price.toll.wholes_used, 5, "{order:?} {doubled}");
            assert!(steps < 1_000, "{order:?} {doubled}: {steps} steps");
        }
    }
}

#[test]
fn partitions_that_can_not_all_be_had_are_refused_at_once() {
    let world = world(eight_partitioned(), claim(vec![wanted("a", 5, 8), wanted("b", 7, 5)]));
    let mut steps = 1000;
    let answer =
        world.with(|want| choose(&world.shape, &world.usage, want, &Policy::default(), &mut steps));
    println!("{steps} steps left");
    assert!(matches!(answer, Err(Failure::Reason { .. })), "{answer:?}");
}

#[test]
fn a_small_partition_goes_to_the_end_that_keeps_the_largest() {
    let (offer, _) = solve(&world(eight_partitioned(), claim(vec![wanted("part", 1, 1)])));
    let slice = &world(eight_partitioned(), claim(Vec::new())).shape.devices
        [usize::from(offer.picks[0].device)];
    let counters = &slice.traits.counters[0].counters;
    assert!(counters.iter().any(|(name, _)| &**name == "slice-6"), "{counters:?}");
}
