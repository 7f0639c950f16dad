//! Worlds for tests: parts by hand, and whole ones by chance.

use crate::change::Match;
use crate::facts::{
    Access, Align, Alternative, Amount, AttributeValue, Capacity, CapacityPolicy, ClaimSpec,
    Constraint, CounterSet, DeviceRequest, Effect, Level, Link, LinkClass, Place, Taint,
    Toleration, Traits,
};
use crate::name::{Name, ProfileId, SelectorId, Shared};

use crate::device::shape::{PoolFault, PoolTrouble, ShapeCounter, ShapeDevice};
use crate::device::{Matches, Shape, Usage, Want};

/// A Mi in billionths.
const MI: i128 = 1_000_000_000 << 20;

/// A tiny deterministic source of chance.
pub(in crate::device) struct Chance(u64);

impl Chance {
    pub(in crate::device) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number below `n`.
    pub(in crate::device) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Whether a chance of so many in a hundred comes true.
    pub(in crate::device) fn percent(&mut self, n: usize) -> bool {
        self.below(100) < n
    }

    /// One of these.
    pub(in crate::device) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// All that a question needs.
#[derive(Debug)]
pub(super) struct World {
    pub(super) shape: Shape,
    pub(super) usage: Usage,
    pub(super) claims: Vec<ClaimSpec>,
    pub(super) align: Vec<Align>,
    pub(super) fixed: Vec<u16>,
    pub(super) matches: Matches,
}

impl World {
    /// Asks `ask` with the question of this world.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&Want<'_>) -> T) -> T {
        let claims: Vec<(u16, &ClaimSpec)> = (0..).zip(&self.claims).collect();
        let Self { align, fixed, matches, .. } = self;
        ask(&Want { claims: &claims, align, fixed, matches })
    }
}

pub(in crate::device) fn plain_traits() -> Traits {
    Traits {
        profile: ProfileId(0),
        attributes: [].into(),
        capacity: [].into(),
        counters: [].into(),
        taints: [].into(),
        place: Place::default(),
        shareable: false,
        binds_to_node: false,
        binding: None,
        reach: None,
        access: Access::Open,
        groups: [].into(),
    }
}

pub(super) fn device(rank: u16, traits: Traits) -> ShapeDevice {
    ShapeDevice {
        driver: Name::new("gpu.example.com"),
        pool: 0,
        traits: Shared::new(traits),
        rank,
        domains: [None; 5],
        nic: false,
        accelerator: None,
        node_local: true,
        barred: None,
    }
}

pub(super) fn ask(amount: Amount) -> Alternative {
    Alternative {
        name: None,
        class: Name::new("gpu"),
        selectors: [SelectorId(0)].into(),
        class_selectors: 1,
        amount,
        admin: false,
        tolerations: [].into(),
        capacity: [].into(),
        derived: [].into(),
    }
}

pub(super) fn request(name: &str, alternatives: Vec<Alternative>) -> DeviceRequest {
    DeviceRequest { name: Name::new(name), alternatives: alternatives.into() }
}

pub(super) fn claim(requests: Vec<DeviceRequest>) -> ClaimSpec {
    ClaimSpec { requests: requests.into(), constraints: [].into(), align: [].into(), fault: None }
}

pub(super) fn constraint(attribute: &str, distinct: bool) -> Constraint {
    Constraint { attribute: Name::new(attribute), distinct, requests: [].into() }
}

/// A world by chance: up to 6 devices, 2 claims and 3 requests.
pub(super) fn random(chance: &mut Chance) -> World {
    let shape = random_shape(chance);
    let mut usage = Usage::free(&shape);
    for at in 0..shape.devices.len() {
        if chance.percent(15) {
            usage.taken[0] |= 1 << at;
        }
        let traits = &shape.devices[at].traits;
        if traits.shareable && chance.percent(40) {
            usage.shares[at] = 1;
            usage.consumed[at].iter_mut().for_each(|sum| *sum = MI);
        }
    }
    for left in &mut usage.counters_left {
        *left -= chance.below(3) as i128;
    }
    let mut matches = Matches::default();
    for (selector, profile) in (0..3).flat_map(|s| (0..3).map(move |p| (s, p))) {
        let verdict = match chance.below(20) {
            0..2 => Match::No,
            2 => Match::Error,
            _ => Match::Yes,
        };
        matches.set(SelectorId(selector), ProfileId(profile), verdict);
    }
    let mut claims = vec![random_claim(chance, 2)];
    if chance.percent(40) {
        claims.push(random_claim(chance, 3 - claims[0].requests.len()));
        if chance.percent(if claims[0].requests.len() == 1 { 20 } else { 10 }) {
            claims[1] = claims[0].clone();
        }
    }
    let align = random_aligns(chance, 15);
    // Devices that the pod has already: others hold them too, or look at them.
    let n = shape.devices.len();
    let fixed = match n > 0 && chance.percent(15) {
        true => {
            (0..n).filter(|_| chance.percent(30)).filter_map(|at| u16::try_from(at).ok()).collect()
        }
        false => Vec::new(),
    };
    fixed.iter().filter(|_| chance.percent(80)).for_each(|at| usage.taken[0] |= 1 << at);
    World { shape, usage, claims, align, fixed, matches }
}

fn random_shape(chance: &mut Chance) -> Shape {
    let n = if chance.percent(3) { 0 } else { 1 + chance.below(6) };
    let plain = chance.percent(50);
    let linked = chance.percent(70);
    let mut ranks: Vec<u16> = (0..6).take(n).collect();
    if chance.percent(50) {
        (1..n).for_each(|at| ranks.swap(at, chance.below(at + 1)));
    }
    let mut devices = Vec::new();
    for rank in ranks {
        let mut one = device(rank, random_traits(chance, plain));
        one.pool = u16::from(chance.percent(25));
        if chance.percent(20) {
            one.driver = Name::new("nic.example.com");
        }
        one.barred = chance.percent(4).then(|| Name::new("DRAOptionalNodeOperations"));
        if linked {
            let nic = *one.driver == *"nic.example.com";
            one.accelerator = if chance.percent(8) { None } else { Some(!nic) };
            for domain in &mut one.domains {
                *domain = (!chance.percent(12)).then(|| chance.below(2) as u16);
            }
            if nic {
                one.domains[0] = None;
            }
            one.nic = one.accelerator == Some(false) && chance.percent(80);
        } else {
            let nic = *one.driver == *"nic.example.com" && chance.percent(80);
            one.nic = nic;
            for level in [Level::Root, Level::Numa] {
                let known = chance.percent(80).then(|| chance.below(2) as u16);
                one.domains[level as usize] = known;
            }
        }
        devices.push(one);
    }
    let classes = [
        Link::new(LinkClass::Nvlink, 50),
        Link::new(LinkClass::Nvlink, 25),
        LinkClass::Switch.into(),
        LinkClass::System.into(),
        Link::UNKNOWN,
    ];
    let mut pairs = Vec::new();
    if linked {
        let few = 1 + chance.below(5);
        let links: Vec<Link> = (0..n * n).map(|_| *chance.pick(&classes[..few])).collect();
        pairs =
            (0..n * n).map(|at| links[(at / n).min(at % n) * n + (at / n).max(at % n)]).collect();
    }
    let mut faults = Vec::new();
    if chance.percent(8) {
        let invalid = PoolTrouble::Invalid(Name::new("gpu-0"));
        let trouble = if chance.percent(50) { PoolTrouble::Incomplete } else { invalid };
        faults.push(PoolFault { pool: u16::from(chance.percent(50)), trouble });
    }
    let grouped = chance.percent(50);
    Shape::new(devices, faults, 2, pairs, counters(plain, grouped))
}

/// Counter sets of both pools, one with two counters.
fn counters(plain: bool, grouped: bool) -> Vec<ShapeCounter> {
    if plain {
        return Vec::new();
    }
    let counter = |pool, set: &str, name: &str, total| ShapeCounter {
        pool,
        set: Name::new(set),
        name: Name::new(name),
        total,
        grouped,
    };
    vec![
        counter(0, "left", "memory", 4),
        counter(0, "left", "slots", 2),
        counter(0, "right", "memory", 4),
        counter(1, "left", "memory", 4),
        counter(1, "left", "slots", 3),
        counter(1, "right", "memory", 3),
    ]
}

fn random_traits(chance: &mut Chance, plain: bool) -> Traits {
    let mut traits = plain_traits();
    traits.profile = ProfileId(if chance.percent(60) { 0 } else { chance.below(3) as u32 });
    let mut attributes = Vec::new();
    for name in ["x", "y"] {
        if chance.percent(6) {
            continue;
        }
        let mut number = || AttributeValue::Int(chance.below(2 + attributes.len()) as i64);
        let value = match [number(), number()] {
            [one, _] if one == AttributeValue::Int(0) => one,
            [one, two] if name == "y" => AttributeValue::List([one, two].into()),
            [_, two] => two,
        };
        let value = if chance.percent(3) { AttributeValue::Unset } else { value };
        attributes.push((Name::new(name), value));
    }
    traits.attributes = attributes.into();
    if chance.percent(12) {
        traits.taints = [taint()].into();
    }
    if chance.percent(3) {
        traits.access = Access::Hidden(Name::new("DRADeviceBindingConditions"));
    }
    if plain {
        return traits;
    }
    if chance.percent(40) {
        let mut counters = vec![(Name::new("memory"), 1 + chance.below(3) as i128)];
        let set = ["left", "right"][chance.below(2)];
        if set == "left" && chance.percent(60) {
            counters.push((Name::new("slots"), chance.below(3) as i128));
        }
        traits.counters = [CounterSet { name: Name::new(set), counters: counters.into() }].into();
        let groups: &[&str] = [&[][..], &["a"], &["b"], &["a", "b"]][chance.below(4)];
        if !groups.is_empty() {
            let groups = groups.iter().map(|group| Name::new(group)).collect();
            traits.groups = [(Name::new(set), groups)].into();
        }
    }
    if chance.percent(40) {
        traits.shareable = chance.percent(45);
        let nanos = (1 + chance.below(4) as i128) * MI;
        let policy = chance.percent(35).then(|| Box::new(random_policy(chance)));
        traits.capacity = [Capacity { name: Name::new("memory"), nanos, policy }].into();
    }
    traits
}

/// One or three Mi, as values or as a range, and mostly one where nothing is asked.
fn random_policy(chance: &mut Chance) -> CapacityPolicy {
    let default = chance.percent(70).then_some(MI);
    let exact = chance.percent(50);
    if chance.percent(50) {
        let valid = [MI, 3 * MI].into();
        return CapacityPolicy { default, valid, exact, ..CapacityPolicy::default() };
    }
    let range = Some((Some(MI), Some(3 * MI), Some(2 * MI)));
    CapacityPolicy { default, range, exact, ..CapacityPolicy::default() }
}

/// What a request for `asked` takes of each capacity of a device of these worlds: what is asked, or
/// all of it; under a policy one or three Mi, or what the policy has where nothing is asked. None where
/// that is more than there is or than the policy knows.
pub(super) fn counted_out(traits: &Traits, asked: &[(Name, i128)]) -> Option<Vec<i128>> {
    let has = |name: &Name| traits.capacity.iter().any(|capacity| capacity.name == *name);
    let of = |capacity: &Capacity| {
        let asked =
            asked.iter().find(|(name, _)| *name == capacity.name).map(|(_, amount)| *amount);
        let amount = match (&capacity.policy, asked) {
            (None, asked) => asked.unwrap_or(capacity.nanos),
            (Some(policy), None) => policy.default.unwrap_or(capacity.nanos),
            (Some(_), Some(asked)) if asked <= MI => MI,
            (Some(_), Some(asked)) => asked.max(3 * MI),
        };
        let known = capacity.policy.is_none() || [MI, 3 * MI].contains(&amount);
        (known && amount <= capacity.nanos).then_some(amount)
    };
    asked.iter().all(|(name, _)| has(name)).then(|| traits.capacity.iter().map(of).collect())?
}

fn taint() -> Taint {
    Taint { key: Name::new("sick"), value: Name::new(""), effect: Effect::NoSchedule }
}

fn random_aligns(chance: &mut Chance, percent: usize) -> Vec<Align> {
    let mut aligns = Vec::new();
    if chance.percent(percent) {
        let level = *chance.pick(&Level::ALL);
        aligns.push(Align { level, required: chance.percent(50) });
    }
    aligns
}

fn random_claim(chance: &mut Chance, most: usize) -> ClaimSpec {
    let n = 1 + chance.below(most.max(1));
    let mut requests = Vec::new();
    for at in 0..n {
        let mut alternatives = vec![random_alternative(chance)];
        if chance.percent(20) {
            alternatives.push(random_alternative(chance));
            alternatives[0].name = Some(Name::new("first"));
            alternatives[1].name = Some(Name::new("second"));
        }
        requests.push(request(["main", "side", "rear"][at], alternatives));
    }
    if n > 1 && chance.percent(30) {
        requests[1].alternatives = requests[0].alternatives.clone();
    }
    let mut spec = claim(requests);
    let mut constraints = Vec::new();
    while chance.percent(30) && constraints.len() < 2 {
        let mut one = constraint(["x", "y"][chance.below(2)], chance.percent(30));
        if chance.percent(30) {
            one.requests = [Name::new(["main", "side", "main/first"][chance.below(3)])].into();
        }
        constraints.push(one);
    }
    spec.constraints = constraints.into();
    spec.align = random_aligns(chance, 25).into();
    spec
}

fn random_alternative(chance: &mut Chance) -> Alternative {
    let amount = if chance.percent(8) {
        Amount::All
    } else {
        Amount::Count([1, 1, 2, 2, 3][chance.below(5)])
    };
    let mut alternative = ask(amount);
    alternative.selectors = [SelectorId(chance.below(3) as u32)].into();
    alternative.admin = chance.percent(8);
    if chance.percent(25) {
        let key = Some(Name::new("sick"));
        alternative.tolerations = [Toleration { key, equals: None, effect: None }].into();
    }
    if chance.percent(6) {
        alternative.capacity = [(Name::new("memory"), (1 + chance.below(4) as i128) * MI)].into();
    }
    alternative
}
