//! Worked examples, by hand.

use crate::change::Match;
use crate::cost::DeviceCost;
use crate::decision::{DeviceFacts, Proof};
use crate::device::shape::{ShapeCounter, ShapeDevice};
use crate::device::{Failure, Offer, Shape, Usage, choose, price};
use crate::facts::{
    Align, Amount, AttributeValue, Capacity, ClaimSpec, CounterSet, Level, Link, LinkClass,
};
use crate::name::{Name, ProfileId, SelectorId, Shared};
use crate::policy::{DeviceOrder, Policy};
use crate::reason::Reason;

use super::world::{Chance, World, ask, claim, constraint, device, plain_traits, request};

const NVLINK_DOMAIN: &str = "gpu.nvidia.com/nvlinkDomain";

fn shape(devices: Vec<ShapeDevice>, link: impl Fn(usize, usize) -> LinkClass) -> Shape {
    let n = devices.len();
    let link = |a: usize, b: usize| link(a.min(b), a.max(b)).into();
    let pairs = (0..n * n).map(|at| link(at / n, at % n)).collect();
    Shape::new(devices, Vec::new(), 1, pairs, Vec::new())
}

/// Accelerators with their islands.
fn gpus(islands: &[Option<u16>]) -> Vec<ShapeDevice> {
    let one = |(rank, island): (u16, &Option<u16>)| {
        let mut gpu = device(rank, plain_traits());
        gpu.accelerator = Some(true);
        gpu.domains[Level::Island as usize] = *island;
        gpu
    };
    (0..).zip(islands).map(one).collect()
}

/// A node of accelerators in islands, with PCIe across host bridges between them.
fn islands(islands: &[u16]) -> Shape {
    let known: Vec<Option<u16>> = islands.iter().map(|i| Some(*i)).collect();
    shape(gpus(&known), |a, b| {
        if islands[a] == islands[b] { LinkClass::Nvlink } else { LinkClass::HostBridge }
    })
}

fn world(shape: Shape, spec: ClaimSpec) -> World {
    let usage = Usage::free(&shape);
    let mut matches = super::super::Matches::default();
    matches.set(SelectorId(0), ProfileId(0), Match::Yes);
    let (align, fixed) = (Vec::new(), Vec::new());
    World { shape, usage, claims: vec![spec], align, fixed, matches }
}

fn count(n: u32) -> ClaimSpec {
    claim(vec![request("gpus", vec![ask(Amount::Count(n))])])
}

fn aligned(mut spec: ClaimSpec, level: Level, required: bool) -> ClaimSpec {
    spec.align = [Align { level, required }].into();
    spec
}

fn ask_with(world: &World, device_order: DeviceOrder, strict_cel: bool) -> Result<Offer, Failure> {
    let policy = Policy { device_order, strict_cel, ..Policy::default() };
    world.with(|want| choose(&world.shape, &world.usage, want, &policy, &mut 100_000))
}

fn best(world: &World) -> Result<Offer, Failure> {
    ask_with(world, DeviceOrder::Best, false)
}

fn devices(offer: &Offer) -> Vec<u16> {
    offer.picks.iter().map(|p| p.device).collect()
}

fn reason(answer: Result<Offer, Failure>) -> (Reason, DeviceFacts) {
    match answer {
        Err(Failure::Reason { reason, facts, .. }) => (reason, *facts),
        other => panic!("{other:?}"),
    }
}

/// Four GPUs, the last too small for the selector, in two domains of two.
fn trainer(n: u32) -> World {
    let gpu = |rank: u16| {
        let mut traits = plain_traits();
        traits.profile = ProfileId(u32::from(rank == 3));
        let domain = AttributeValue::Int(i64::from(rank / 2));
        traits.attributes = [(Name::new(NVLINK_DOMAIN), domain)].into();
        device(rank, traits)
    };
    let mut spec = count(n);
    spec.constraints = [constraint(NVLINK_DOMAIN, false)].into();
    world(Shape::new((0..4).map(gpu).collect(), Vec::new(), 1, Vec::new(), Vec::new()), spec)
}

#[test]
fn the_pair_comes_from_one_domain() {
    let offer = best(&trainer(2)).unwrap();
    assert_eq!(devices(&offer), [0, 1]);
    assert_eq!((offer.proof, offer.free_left), (Proof::Proven, 2));
}

#[test]
fn three_of_one_domain_are_refused_with_the_nearest_miss() {
    let (reason, facts) = reason(best(&trainer(3)));
    assert_eq!(reason, Reason::MatchUnmet);
    assert_eq!((facts.asked, facts.seen, facts.selected, facts.free), (3, 4, 3, 3));
    assert_eq!((facts.together, facts.together_if_free), (2, 2));
    assert_eq!(facts.attribute.as_deref(), Some(NVLINK_DOMAIN));
    assert_eq!(facts.request.as_deref(), Some("gpus"));
}

#[test]
fn the_nearest_miss_of_a_match_is_named_by_its_first_device() {
    let missed = |domains: &[i64], n: u32| {
        let gpu = |(rank, domain): (u16, &i64)| {
            let mut traits = plain_traits();
            traits.attributes = [(Name::new("x"), AttributeValue::Int(*domain))].into();
            device(rank, traits)
        };
        let mut spec = count(n);
        spec.constraints = [constraint("x", false)].into();
        let gpus = (0..).zip(domains).map(gpu).collect();
        match best(&world(Shape::new(gpus, Vec::new(), 1, Vec::new(), Vec::new()), spec)) {
            Err(Failure::Reason { reason: Reason::MatchUnmet, device, .. }) => device,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(missed(&[7, 3, 7, 3, 3], 4), Some(1));
    assert_eq!(missed(&[7, 3, 7, 3], 3), Some(0), "of equal groups the one of the lower rank");
}

#[test]
fn four_of_one_island_are_refused_where_islands_hold_two() {
    let spec = aligned(count(4), Level::Island, true);
    let (reason, facts) = reason(best(&world(islands(&[0, 0, 1, 1]), spec)));
    assert_eq!(reason, Reason::AlignUnmet);
    assert_eq!((facts.asked, facts.together, facts.together_if_free), (4, 2, 2));
    assert_eq!(facts.level, Some(Level::Island));
}

#[test]
fn four_of_one_island_come_from_the_one_that_is_free() {
    let spec = aligned(count(4), Level::Island, true);
    let mut world = world(islands(&[0, 0, 0, 0, 1, 1, 1, 1]), spec);
    assert_eq!(devices(&best(&world).unwrap()), [0, 1, 2, 3]);
    world.usage.taken[0] = 1;
    assert_eq!(devices(&best(&world).unwrap()), [4, 5, 6, 7]);
    world.usage.taken[0] = 1 | 1 << 7;
    let (reason, facts) = reason(best(&world));
    assert_eq!(reason, Reason::AlignUnmet);
    assert_eq!((facts.free, facts.together, facts.together_if_free), (6, 3, 4));
}

#[test]
fn without_a_word_on_links_a_required_island_is_unknown() {
    let plain = (0..4).map(|rank| device(rank, plain_traits())).collect();
    let shape = Shape::new(plain, Vec::new(), 1, Vec::new(), Vec::new());
    let required = world(shape.clone(), aligned(count(2), Level::Island, true));
    assert_eq!(reason(best(&required)).0, Reason::LinksUnknown);
    let wished = world(shape, aligned(count(2), Level::Island, false));
    assert_eq!(best(&wished).unwrap().price.devices.unaligned, 1);
}

#[test]
fn two_of_three_selected_are_the_first_by_name_however_slices_are_shuffled() {
    for ranks in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let gpu = |rank: u16| {
            let mut traits = plain_traits();
            traits.profile = ProfileId(u32::from(rank == 3));
            device(rank, traits)
        };
        let devices: Vec<ShapeDevice> = ranks.map(gpu).into();
        let world = world(Shape::new(devices, Vec::new(), 1, Vec::new(), Vec::new()), count(2));
        let offer = best(&world).unwrap();
        let chosen: Vec<u16> =
            offer.picks.iter().map(|p| world.shape.devices[usize::from(p.device)].rank).collect();
        assert_eq!(chosen, [0, 1]);
        // Upstream takes them as the slices have them.
        let first = ask_with(&world, DeviceOrder::Upstream, false).unwrap();
        assert!(first.picks.is_sorted_by_key(|p| p.device));
        assert_eq!(first.proof, Proof::FirstFit);
    }
}

#[test]
fn a_plain_pair_lands_on_one_island() {
    // Names alternate between the islands.
    let mut world = world(islands(&[0, 1, 0, 1]), count(2));
    let offer = best(&world).unwrap();
    let nvlink = Link::from(LinkClass::Nvlink);
    let within = DeviceCost { slowest: nvlink, farthest: nvlink, ..DeviceCost::default() };
    assert_eq!((devices(&offer), offer.price.devices), (vec![0, 2], within));
    assert_eq!(offer.price.toll.islands_broken, 0);
    assert_eq!(devices(&ask_with(&world, DeviceOrder::Upstream, false).unwrap()), [0, 1]);
    // With one of each taken, only a pair across is left.
    world.usage.taken[0] = 0b11;
    let offer = best(&world).unwrap();
    let bridge = Link::from(LinkClass::HostBridge);
    let across =
        DeviceCost { islands: 1, slowest: bridge, farthest: bridge, ..DeviceCost::default() };
    assert_eq!((devices(&offer), offer.price.devices), (vec![2, 3], across));
}

#[test]
fn one_device_comes_from_the_island_that_is_broken_already() {
    let mut world = world(islands(&[0, 0, 1, 1]), count(1));
    assert_eq!(best(&world).unwrap().price.toll.islands_broken, 1);
    world.usage.taken[0] = 1 << 2;
    let offer = best(&world).unwrap();
    assert_eq!((devices(&offer), offer.price.toll.islands_broken), (vec![3], 0));
}

#[test]
fn on_equal_paths_the_choice_is_by_name_and_across_a_switch_by_link() {
    let offer = best(&world(islands(&[0; 4]), count(2))).unwrap();
    assert_eq!(
        (devices(&offer), offer.price.devices.slowest.class()),
        (vec![0, 1], LinkClass::Nvlink)
    );
    // No NVLink: 0-3 and 1-2 share a switch, the rest crosses sockets.
    let boxed =
        shape(
            gpus(&[None; 4]),
            |a, b| {
                if a + b == 3 { LinkClass::Switch } else { LinkClass::System }
            },
        );
    let offer = best(&world(boxed, count(2))).unwrap();
    assert_eq!(
        (devices(&offer), offer.price.devices.slowest.class()),
        (vec![0, 3], LinkClass::Switch)
    );
}

#[test]
fn a_ring_of_four_is_fast_where_three_are_slow() {
    // NVLink 0-1, 1-3, 3-2, 2-0; the other pairs cross sockets.
    let cross = |n| {
        let ring = shape(gpus(&[None; 4]), |a, b| match (a, b) {
            (0, 3) | (1, 2) => LinkClass::System,
            _ => LinkClass::Nvlink,
        });
        best(&world(ring, count(n))).unwrap().price.devices.slowest.class()
    };
    assert_eq!([cross(2), cross(3), cross(4)].map(|c| c == LinkClass::Nvlink), [true, false, true]);
}

#[test]
fn short_by_one_is_told_at_once() {
    // 32 devices, alike but for two attributes that each keep 31 of them together.
    let gpu = |rank: u16| {
        let mut traits = plain_traits();
        let x = AttributeValue::Int(i64::from(rank == 0));
        let y = AttributeValue::Int(i64::from(rank == 31));
        traits.attributes = [(Name::new("x"), x), (Name::new("y"), y)].into();
        device(rank, traits)
    };
    let shape = Shape::new((0..32).map(gpu).collect(), Vec::new(), 1, Vec::new(), Vec::new());
    let mut spec = count(31);
    spec.constraints = [constraint("x", false), constraint("y", false)].into();
    let world = world(shape, spec);
    let mut steps = 1_000;
    let answer =
        world.with(|want| choose(&world.shape, &world.usage, want, &Policy::default(), &mut steps));
    let named = |answer: &Result<Offer, Failure>| match answer {
        Err(Failure::Reason { device, .. }) => device.is_some(),
        Ok(_) | Err(_) => true,
    };
    assert!(!named(&answer), "no value has 30: two rules together leave that many");
    let (reason, facts) = reason(answer);
    assert_eq!((reason, facts.together), (Reason::MatchUnmet, 30));
    assert!(steps > 0);
}

#[test]
fn many_equal_requests_do_not_multiply() {
    let requests = (0..16).map(|n| request(&format!("gpu-{n}"), vec![ask(Amount::Count(1))]));
    let spec = claim(requests.collect());
    let none = [None; 15];
    let mut chance = Chance::new(3);
    let classes = [LinkClass::Switch, LinkClass::HostBridge, LinkClass::System];
    let links: Vec<LinkClass> = (0..256).map(|_| *chance.pick(&classes)).collect();
    let short = world(shape(gpus(&none), |a, b| links[a * 16 + b]), spec.clone());
    assert_eq!(reason(best(&short)).0, Reason::NotTogether);
    let exact = world(shape(gpus(&[None; 16]), |a, b| links[a * 16 + b]), spec);
    let offer = best(&exact).unwrap();
    assert_eq!((devices(&offer), offer.proof), ((0..16).collect(), Proof::Proven));
}

#[test]
fn sixteen_candidates_are_searched_to_the_end() {
    let mut chance = Chance::new(11);
    let classes = [LinkClass::Switch, LinkClass::HostBridge, LinkClass::Numa, LinkClass::System];
    for n in [2, 4, 8, 12, 16] {
        let links: Vec<LinkClass> = (0..256).map(|_| *chance.pick(&classes)).collect();
        let world = world(shape(gpus(&[None; 16]), |a, b| links[a * 16 + b]), count(n));
        assert_eq!(best(&world).unwrap().proof, Proof::Proven);
    }
}

#[test]
fn a_search_that_is_cut_offers_what_it_has() {
    let world = world(islands(&[0, 1, 2, 3, 3, 2, 1, 0]), count(4));
    let mut steps = 4;
    let offer =
        world.with(|want| choose(&world.shape, &world.usage, want, &Policy::default(), &mut steps));
    assert_eq!(offer.unwrap().proof, Proof::Bounded);
    let none =
        world.with(|want| choose(&world.shape, &world.usage, want, &Policy::default(), &mut 2));
    assert_eq!(none, Err(Failure::Bounded));
}

#[test]
fn strict_errors_count_where_upstream_meets_them() {
    let mut world = world(islands(&[0; 4]), count(2));
    let mut traits = plain_traits();
    traits.profile = ProfileId(1);
    world.matches.set(SelectorId(0), ProfileId(1), Match::Error);
    let mut devices = world.shape.devices.clone();
    devices[2] = device(2, traits);
    world.shape = Shape::new(devices, Vec::new(), 1, Vec::new(), Vec::new());
    let ask = |world: &World| ask_with(world, DeviceOrder::Upstream, true);
    // Two before it are enough.
    assert!(ask(&world).is_ok());
    world.usage.taken[0] = 1;
    assert!(matches!(ask(&world), Err(Failure::Fatal { device: Some(2), .. })));
    assert_eq!(best(&world).map(|o| o.picks.len()), Ok(2));
    // Nothing is asked of a device that is in use.
    world.usage.taken[0] = 1 | 1 << 2;
    assert!(ask(&world).is_ok());
    // All looks at every device, used or not, before the search.
    world.claims = vec![claim(vec![request("all", vec![ask_all()])])];
    assert!(matches!(ask(&world), Err(Failure::Fatal { device: Some(2), .. })));
}

fn ask_all() -> crate::facts::Alternative {
    ask(Amount::All)
}

#[test]
fn all_means_all_of_them_free_and_no_more_than_an_allocation_holds() {
    let all = || claim(vec![request("all", vec![ask_all()])]);
    let mut eight = world(islands(&[0; 8]), all());
    assert_eq!(best(&eight).unwrap().picks.len(), 8);
    eight.usage.taken[0] = 1;
    let (taken, facts) = reason(best(&eight));
    assert_eq!((taken, facts.asked, facts.free), (Reason::DevicesTaken, 8, 7));
    let many = world(islands(&[0; 33]), all());
    assert_eq!(reason(best(&many)).0, Reason::TooManyDevices);
}

#[test]
fn shares_fill_a_device_and_counters_a_pool() {
    let mut traits = plain_traits();
    traits.shareable = true;
    traits.capacity = [Capacity { name: Name::new("memory"), nanos: 10, policy: None }].into();
    let mut wanted = ask(Amount::Count(1));
    wanted.capacity = [(Name::new("memory"), 6)].into();
    let one = Shape::new(vec![device(0, traits)], Vec::new(), 1, Vec::new(), Vec::new());
    let mut shared = world(one, claim(vec![request("part", vec![wanted])]));
    let share = best(&shared).unwrap().picks[0].share.clone();
    assert_eq!(share.as_deref(), Some(&[(Name::new("memory"), 6)][..]));
    shared.usage.consumed[0][0] = 5;
    let (short, facts) = reason(best(&shared));
    assert_eq!((short, facts.amount), (Reason::CapacityShort, Some((6, 5))));

    let mut part = plain_traits();
    let slices = [(Name::new("slices"), 4)].into();
    part.counters = [CounterSet { name: Name::new("gpu-0"), counters: slices }].into();
    let counter = ShapeCounter {
        pool: 0,
        set: Name::new("gpu-0"),
        name: Name::new("slices"),
        total: 7,
        grouped: false,
    };
    let parts = vec![device(0, part.clone()), device(1, part)];
    let halves = world(Shape::new(parts, Vec::new(), 1, Vec::new(), vec![counter]), count(2));
    let (short, facts) = reason(best(&halves));
    assert_eq!(short, Reason::CountersShort);
    assert_eq!((facts.asked, facts.free), (2, 2));
}

#[test]
fn who_looks_at_a_device_that_nobody_could_take_breaks_no_island() {
    let mut traits = plain_traits();
    traits.shareable = true;
    let slices = |n| [(Name::new("slices"), n)].into();
    traits.counters = [CounterSet { name: Name::new("gpu-0"), counters: slices(4) }].into();
    let (set, name) = (Name::new("gpu-0"), Name::new("slices"));
    let counter = ShapeCounter { pool: 0, set, name, total: 3, grouped: false };
    let mut devices = gpus(&[Some(0)]);
    devices[0].traits = Shared::new(traits);
    let mut look = ask(Amount::Count(1));
    look.admin = true;
    let looking = claim(vec![request("look", vec![look])]);
    let shape = Shape::new(devices, Vec::new(), 1, Vec::new(), vec![counter]);
    let world = world(shape, looking);
    let offer = best(&world).unwrap();
    let judged = world.with(|want| price(&world.shape, &world.usage, want, &offer.picks));
    assert_eq!(offer.price.toll.islands_broken, 0);
    assert_eq!(offer.price, judged.0.price);
}

#[test]
fn nothing_asked_is_nothing_given() {
    let mut world = world(islands(&[0, 0]), claim(Vec::new()));
    world.align = vec![Align { level: Level::Island, required: true }];
    assert_eq!(best(&world).unwrap().picks, []);
    world.claims.clear();
    assert_eq!(best(&world).unwrap().free_left, 2);
    // A list without alternatives can't be granted.
    world.claims = vec![claim(vec![request("none", Vec::new())])];
    assert_eq!(reason(best(&world)).0, Reason::RequestUnsupported);
}

#[test]
fn more_than_an_allocation_holds_is_told_for_a_lone_alternative() {
    let alternatives = vec![ask(Amount::Count(33)), ask(Amount::Count(9))];
    let mut world = world(islands(&[0; 40]), claim(vec![request("gpus", alternatives)]));
    assert_eq!(best(&world).unwrap().picks.len(), 9);
    world.usage.taken[0] = u64::MAX >> 24;
    let (reason, facts) = reason(best(&world));
    assert_eq!((reason, facts.asked), (Reason::DevicesTaken, 9));
}

/// A GPU and a NIC that would rather share a switch.
fn pair() -> ClaimSpec {
    let of = |name: &str, selector| {
        let mut one = ask(Amount::Count(1));
        one.selectors = [SelectorId(selector)].into();
        request(name, vec![one])
    };
    aligned(claim(vec![of("gpu", 0), of("nic", 1)]), Level::Switch, false)
}

#[test]
fn each_gpu_gets_the_nic_of_its_switch_however_they_are_named() {
    let mut devices = gpus(&[Some(0); 8]);
    for (rank, switch) in (8u16..).zip([5, 3, 0, 7, 6, 1, 4, 2]) {
        let mut traits = plain_traits();
        traits.profile = ProfileId(1);
        let mut nic = device(rank, traits);
        nic.driver = Name::new("nic.example.com");
        nic.accelerator = Some(false);
        nic.domains[Level::Switch as usize] = Some(switch);
        devices[usize::from(rank - 8)].domains[Level::Switch as usize] = Some(rank - 8);
        devices.push(nic);
    }
    let mut world = world(shape(devices, |_, _| LinkClass::Nvlink), pair());
    world.matches.set(SelectorId(1), ProfileId(1), Match::Yes);
    world.claims = vec![world.claims[0].clone(); 8];
    let offer = best(&world).unwrap();
    assert_eq!((offer.price.devices.unaligned, offer.proof), (0, Proof::Proven));
    let switch = |at: u16| world.shape.devices[usize::from(at)].domains[Level::Switch as usize];
    assert!(offer.picks.chunks(2).all(|pair| switch(pair[0].device) == switch(pair[1].device)));
}
