//! Several requests over the same devices: answered to the end, and as without what is worked out for
//! it.

use crate::change::Match;
use crate::decision::Proof;
use crate::device::problem::{Lens, Problem};
use crate::device::search::{Aim, search};
use crate::device::shape::ShapeCounter;
use crate::device::unions::Unions;
use crate::device::{Failure, Matches, Offer, Shape, Usage, choose};
use crate::facts::{
    Align, Amount, AttributeValue, Capacity, ClaimSpec, CounterSet, DeviceRequest, Level, Link,
    LinkClass,
};
use crate::name::{Name, ProfileId, SelectorId};
use crate::policy::{Effort, Policy};

use super::brute::{Found, by_index, enumerate};
use super::world::{Chance, World, ask, claim, constraint, device, plain_traits, random, request};

/// GPUs of two kinds, each joined to the others in its own way.
fn gpus(chance: &mut Chance, n: u16) -> Shape {
    let mut devices = Vec::new();
    for rank in 0..n {
        let mut traits = plain_traits();
        traits.profile = ProfileId(u32::from(rank % 4 == 3));
        let value = AttributeValue::Int(chance.below(3) as i64);
        traits.attributes = [(Name::new("x"), value)].into();
        let mut one = device(rank, traits);
        one.accelerator = Some(true);
        one.domains[Level::Numa as usize] = Some(chance.below(2) as u16);
        devices.push(one);
    }
    let pairs = links(chance, devices.len(), 4);
    Shape::new(devices, Vec::new(), 1, pairs, Vec::new())
}

/// Links by chance, of a few classes and as many bandwidths.
fn links(chance: &mut Chance, n: usize, few: usize) -> Vec<Link> {
    let classes = [LinkClass::Nvlink, LinkClass::Switch, LinkClass::Numa, LinkClass::System];
    let mut pairs = vec![Link::UNKNOWN; n * n];
    for (a, b) in (0..n).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let link = Link::new(*chance.pick(&classes[..few]), *chance.pick(&[0, 25, 50, 100][..few]));
        pairs[a * n + b] = link;
        pairs[b * n + a] = link;
    }
    pairs
}

/// Selector 0 knows GPUs, selector 1 those of the first kind, selector 2 the others, selector 3 network
/// cards.
fn world(shape: Shape, claims: Vec<ClaimSpec>) -> World {
    let usage = Usage::free(&shape);
    let mut matches = Matches::default();
    for (selector, kind) in [(0, 0), (0, 1), (1, 0), (2, 1), (3, 2)] {
        matches.set(SelectorId(selector), ProfileId(kind), Match::Yes);
    }
    World { shape, usage, claims, align: Vec::new(), fixed: Vec::new(), matches }
}

fn wanted(name: &str, selector: u32, count: u32) -> DeviceRequest {
    let mut one = ask(Amount::Count(count));
    one.selectors = [SelectorId(selector)].into();
    request(name, vec![one])
}

/// A claim with a request for each of these.
fn wants(all: &[(u32, u32)]) -> ClaimSpec {
    let names = ["a", "b", "c", "d", "e"];
    claim(names.iter().zip(all).map(|(name, (selector, n))| wanted(name, *selector, *n)).collect())
}

/// The best set, or that there is none, and the steps that it took.
fn solve(world: &World) -> (Option<Offer>, u64) {
    let bound = Effort::default().steps;
    let mut steps = bound;
    let answer =
        world.with(|want| choose(&world.shape, &world.usage, want, &Policy::default(), &mut steps));
    let answer = match answer {
        Ok(offer) => {
            assert_eq!(offer.proof, Proof::Proven, "{} steps", bound - steps);
            Some(offer)
        }
        Err(Failure::Reason { .. }) => None,
        Err(other) => panic!("{other:?} after {} steps", bound - steps),
    };
    (answer, bound - steps)
}

#[test]
fn several_requests_over_sixteen_gpus_are_answered_to_the_end() {
    let asked: [&[&[(u32, u32)]]; 9] = [
        &[&[(0, 5), (0, 5)]],
        &[&[(0, 3), (0, 3), (0, 3)]],
        &[&[(0, 2), (0, 2), (0, 2), (0, 2)]],
        &[&[(0, 1), (0, 2), (0, 3), (0, 4)]],
        &[&[(0, 5)], &[(0, 5)]],
        &[&[(0, 4)], &[(0, 3), (0, 2)]],
        &[&[(0, 5), (1, 5)]],
        &[&[(1, 4), (0, 3), (2, 2)]],
        &[&[(0, 2)], &[(1, 2)], &[(0, 2)], &[(2, 2)]],
    ];
    for (seed, claims) in (0..).zip(asked).flat_map(|(s, c)| (0..2).map(move |m| (s + 100 * m, c)))
    {
        for ruled in [false, true] {
            let mut claims: Vec<ClaimSpec> = claims.iter().map(|claim| wants(claim)).collect();
            if ruled {
                claims.iter_mut().for_each(|c| c.constraints = [constraint("x", false)].into());
            }
            let world = world(gpus(&mut Chance::new(seed), 16), claims);
            let (offer, steps) = solve(&world);
            println!("{seed} {ruled}: {steps} steps, {:?}", offer.map(|o| o.price.devices));
        }
    }
}

/// Sixteen GPUs and sixteen network cards of which only the PCIe root is known.
fn rooted(chance: &mut Chance, roots: usize, (gpus, nics): (u32, u32), nics_first: bool) -> World {
    let mut devices = Vec::new();
    for rank in 0..32u16 {
        let mut traits = plain_traits();
        traits.profile = ProfileId(if rank >= 16 { 2 } else { 0 });
        let mut one = device(rank, traits);
        one.nic = rank >= 16;
        one.driver = Name::new(if one.nic { "nic.example.com" } else { "gpu.example.com" });
        one.domains[Level::Root as usize] = Some(chance.below(roots) as u16);
        devices.push(one);
    }
    let shape = Shape::new(devices, Vec::new(), 1, Vec::new(), Vec::new());
    let mut all = [(0, gpus), (3, nics)];
    if nics_first {
        all.reverse();
    }
    world(shape, vec![wants(&all)])
}

#[test]
fn cards_that_are_paired_by_their_root_alone_are_answered_to_the_end() {
    for seed in 0..12 {
        let mut chance = Chance::new(seed);
        let roots = [4, 8, 16, 32][chance.below(4)];
        let asked = *chance.pick(&[(6, 6), (6, 3), (8, 4), (4, 8), (8, 8)]);
        let nics_first = chance.percent(50);
        let (offer, steps) = solve(&rooted(&mut chance, roots, asked, nics_first));
        println!(
            "{seed} {roots} {asked:?} {nics_first}: {steps} steps, {:?}",
            offer.map(|offer| offer.price.devices.nics)
        );
    }
}

#[test]
fn what_is_worked_out_for_a_long_search_changes_no_answer() {
    let mut chance = Chance::new(77);
    let mut sets = 0;
    for n in 0..6_000 {
        let world = random(&mut chance);
        world.with(|want| {
            let lens = Lens::whole(&world.shape, &world.usage, want);
            let plain = Problem::new(lens);
            let deep = Problem::new(lens);
            if plain.hopeless {
                return;
            }
            let unions = Unions::of(&deep);
            sets += usize::from(unions.is_some());
            deep.unions.set(unions).unwrap();
            let ask = |p: &Problem<'_>, aim| search(p, aim, &mut 1_000_000);
            let (one, two) = (ask(&plain, Aim::Best), ask(&deep, Aim::Best));
            assert_eq!(one.best, two.best, "world {n}: {world:?}");
            let Some((standing, _)) = one.best else { return };
            for aim in [Aim::Above, Aim::Equal, Aim::FirstAt] {
                let (one, two) =
                    (ask(&plain, aim(standing.price)), ask(&deep, aim(standing.price)));
                assert_eq!((one.best, one.equal), (two.best, two.equal), "world {n}: {world:?}");
            }
        });
    }
    assert!(sets > 1_500, "{sets}");
}

#[test]
fn cards_that_are_alike_are_given_out_in_the_order_of_requests() {
    let mut devices = Vec::new();
    for rank in 0..3 {
        let mut traits = plain_traits();
        traits.profile = ProfileId(if rank > 0 { 2 } else { 0 });
        let mut one = device(rank, traits);
        one.nic = rank > 0;
        one.driver = Name::new(if one.nic { "nic.example.com" } else { "gpu.example.com" });
        one.domains[Level::Root as usize] = Some(0);
        devices.push(one);
    }
    let shape = Shape::new(devices, Vec::new(), 1, Vec::new(), Vec::new());
    // A card, a card or a GPU, and the GPU.
    let mut world = world(shape, vec![wants(&[(3, 1), (4, 1), (0, 1)])]);
    world.matches.set(SelectorId(4), ProfileId(0), Match::Yes);
    world.matches.set(SelectorId(4), ProfileId(2), Match::Yes);
    let picks = solve(&world).0.unwrap().picks;
    assert_eq!(picks.iter().map(|pick| pick.device).collect::<Vec<_>>(), [1, 2, 0]);
}

/// What a world is made of.
struct Size {
    gpus: u16,
    nics: u16,
    /// Requests of a claim, and devices of a request, at most.
    requests: usize,
    count: usize,
    /// Devices of all requests, at most.
    all: usize,
}

/// GPUs and network cards with links, domains, sizes and counters by chance, and claims for many of
/// them: with constraints, wishes, alternatives, and what the pod has already.
fn crowded(chance: &mut Chance, size: &Size) -> World {
    let counted = chance.percent(20);
    let domains = 2 + chance.below(7);
    let mut devices = Vec::new();
    for rank in 0..size.gpus + size.nics {
        let nic = rank >= size.gpus;
        let mut traits = plain_traits();
        traits.profile = ProfileId(if nic { 2 } else { u32::from(chance.percent(30)) });
        let x = AttributeValue::Int(chance.below(3) as i64);
        let y = AttributeValue::Int(chance.below(12) as i64);
        traits.attributes = [(Name::new("x"), x), (Name::new("y"), y)].into();
        let nanos = (1 + chance.below(4) as i128) * (1_000_000_000 << 30);
        traits.capacity = [Capacity { name: Name::new("memory"), nanos, policy: None }].into();
        if counted && !nic {
            let counters = [(Name::new("slots"), 1 + chance.below(3) as i128)].into();
            traits.counters =
                [CounterSet { name: Name::new(SETS[chance.below(4)]), counters }].into();
        }
        let mut one = device(rank, traits);
        (one.nic, one.accelerator) = (nic, Some(!nic));
        one.driver = Name::new(if nic { "nic.example.com" } else { "gpu.example.com" });
        for level in [Level::Switch, Level::Root, Level::Numa] {
            let known = chance.percent(85);
            one.domains[level as usize] = known.then(|| chance.below(domains) as u16);
        }
        let island = !nic && chance.percent(50);
        one.domains[Level::Island as usize] = island.then(|| chance.below(3) as u16);
        devices.push(one);
    }
    let few = 2 + chance.below(3);
    let pairs = links(chance, devices.len(), few);
    let counter = |set| ShapeCounter {
        pool: 0,
        set: Name::new(set),
        name: Name::new("slots"),
        total: 6,
        grouped: false,
    };
    let counters = if counted { SETS.map(counter).to_vec() } else { Vec::new() };
    let shape = Shape::new(devices, Vec::new(), 1, pairs, counters);
    let claims = crowded_claims(chance, size);
    let mut world = world(shape, claims);
    for at in (0..size.gpus + size.nics).filter(|_| chance.percent(6)).collect::<Vec<_>>() {
        world.usage.taken[0] |= 1 << at;
        world.fixed.extend(chance.percent(30).then_some(at));
    }
    world
}

const SETS: [&str; 4] = ["a", "b", "c", "d"];

fn crowded_claims(chance: &mut Chance, size: &Size) -> Vec<ClaimSpec> {
    let mut left = size.all;
    let mut claims = Vec::new();
    for _ in 0..1 + chance.below(3) {
        let mut requests = Vec::new();
        for name in &["a", "b", "c"][..1 + chance.below(size.requests)] {
            let count = (1 + chance.below(size.count)).min(left);
            if count == 0 {
                break;
            }
            left -= count;
            let kinds: &[u32] = if size.nics > 0 { &[0, 0, 1, 2, 3, 3] } else { &[0, 0, 1, 2] };
            let mut one = wanted(name, *chance.pick(kinds), count as u32);
            if chance.percent(15) {
                let mut other = one.alternatives[0].clone();
                other.amount = Amount::Count(1 + chance.below(count) as u32);
                other.name = Some(Name::new("second"));
                one.alternatives[0].name = Some(Name::new("first"));
                one.alternatives = [one.alternatives[0].clone(), other].into();
            }
            requests.push(one);
        }
        let mut spec = claim(requests);
        if chance.percent(30) {
            let name = ["x", "y"][chance.below(2)];
            spec.constraints = [constraint(name, chance.percent(50))].into();
        }
        if chance.percent(30) {
            let level = *chance.pick(&Level::ALL);
            spec.align = [Align { level, required: chance.percent(20) }].into();
        }
        claims.push(spec);
    }
    claims
}

#[test]
fn all_of_sixteen_candidates_a_request_is_answered_to_the_end() {
    let mut chance = Chance::new(16);
    let (mut given, mut most) = (0, 0);
    for n in 0..40 {
        let nics = if n % 2 == 0 { 0 } else { 16 };
        let size = Size { gpus: 16, nics, requests: 3, count: 5, all: 12 };
        let (offer, steps) = solve(&crowded(&mut chance, &size));
        given += usize::from(offer.is_some());
        most = most.max(steps);
    }
    println!("{given} given, {most} steps at most");
    assert!(given >= 15, "{given}");
}

#[test]
fn of_many_requests_the_best_is_the_best_of_all() {
    let mut chance = Chance::new(9);
    let mut given = 0;
    for n in 0..400 {
        let (gpus, nics) = *chance.pick(&[(8, 0), (5, 4), (6, 2)]);
        let size = Size { gpus, nics, requests: 2, count: 3, all: 6 };
        let world = crowded(&mut chance, &size);
        let (offer, _) = solve(&world);
        world.with(|want| {
            let mut all = Found::default();
            enumerate(&world, want, 0, &mut Vec::new(), &mut all);
            let best = all.best.map(|(standing, picks)| (standing.price, by_index(picks)));
            let own = offer.map(|offer| (offer.price, by_index(offer.picks)));
            assert_eq!(own, best, "world {n}: {world:?}");
            given += usize::from(own.is_some());
            // And as a long search has it.
            let deep = Problem::new(Lens::whole(&world.shape, &world.usage, want));
            if !deep.hopeless {
                deep.unions.set(Unions::of(&deep)).unwrap();
                let found = search(&deep, Aim::Best, &mut 1_000_000).best;
                assert_eq!(found.map(|found| found.0.price), best.map(|b| b.0), "{n}: {world:?}");
            }
        });
    }
    println!("{given} given");
    assert!(given >= 180, "{given}");
}
