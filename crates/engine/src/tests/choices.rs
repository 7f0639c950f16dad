//! Groups of unlike members of which not all must start, packed onto a few nodes: against every choice of them
//! on every node.

use super::chance::Chance;
use super::gangs::{of_one, of_three_roles};
use super::world::World;
use super::{BEST, NOW, Outcome, engine_of};
use crate::*;

/// CPU in thousandths, and memory.
type Amount = (i64, i64);

/// Whom a required level keeps in one rack.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kept {
    Nobody,
    All,
    EachUnit,
}

/// A small question: units of members, of which so many must start, each whole.
#[derive(Clone, Debug)]
struct Packed {
    /// What each node has free, and its rack.
    nodes: Vec<(Amount, usize)>,
    units: Vec<Vec<Amount>>,
    least: usize,
    /// Units are parts; else each is one member.
    parts: bool,
    kept: Kept,
}

impl Packed {
    fn by_chance(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let (parts, memory) = (chance.percent(35), chance.percent(35));
        let mut amount = |low: i64, high: i64| -> Amount {
            let cpu = chance.between(low, high);
            (cpu, if memory { chance.between(low, high) } else { cpu.min(1) })
        };
        let mut amounts = |count: usize, low, high| -> Vec<Amount> {
            (0..count).map(|_| amount(low, high)).collect()
        };
        let free = amounts(3, 4, 12);
        let asked = amounts(14, 1, 7);
        let mut chance = Chance::new(seed ^ 0x51);
        let nodes = free.into_iter().enumerate().map(|(at, free)| (free, at / 2));
        let nodes = nodes.take(1 + chance.below(3)).collect();
        let mut asked = asked.into_iter();
        let count = 4 + chance.below(if parts { 2 } else { 4 });
        let size = |chance: &mut Chance| if parts { 1 + chance.below(2) } else { 1 };
        let units: Vec<Vec<Amount>> =
            (0..count).map(|_| asked.by_ref().take(size(&mut chance)).collect()).collect();
        let least = 1 + chance.below(count - 1);
        let kept = *chance.pick(&[Kept::Nobody, Kept::Nobody, Kept::All, Kept::EachUnit]);
        Self { nodes, units, least, parts, kept }
    }

    /// The most units that find a place together, if any so many do that are enough.
    fn most(&self) -> Option<usize> {
        let all = 0..1_u32 << self.units.len();
        let enough = all.filter(|set| set.count_ones() as usize >= self.least);
        let fits = enough.filter(|set| {
            let of = (0..self.units.len()).filter(|at| set >> at & 1 == 1);
            let members = of.flat_map(|at| self.units[at].iter().map(move |one| (at, *one)));
            let free = self.nodes.iter().map(|(free, _)| *free).collect();
            self.packs(&members.collect::<Vec<_>>(), free, &mut vec![None; self.units.len()])
        });
        fits.map(|set| set.count_ones() as usize).max()
    }

    /// Whether these members, each of a unit, find a place beside others; by unit the rack where it is kept.
    fn packs(
        &self,
        members: &[(usize, Amount)],
        free: Vec<Amount>,
        racks: &mut Vec<Option<usize>>,
    ) -> bool {
        let Some(((unit, asked), rest)) = members.split_first() else { return true };
        let of = match self.kept {
            Kept::Nobody => None,
            Kept::All => Some(0),
            Kept::EachUnit => Some(*unit),
        };
        (0..free.len()).any(|at| {
            let rack = self.nodes[at].1;
            let before = of.and_then(|of| racks[of]);
            let left = (free[at].0 - asked.0, free[at].1 - asked.1);
            if left.0 < 0 || left.1 < 0 || before.is_some_and(|before| before != rack) {
                return false;
            }
            let mut with = free.clone();
            with[at] = left;
            if let Some(of) = of {
                racks[of] = Some(rack);
            }
            let packs = self.packs(rest, with, racks);
            if let Some(of) = of {
                racks[of] = before;
            }
            packs
        })
    }

    fn world(&self) -> World {
        let mut world = of_three_roles(&[&[0]], [&[0], &[0], &[0]]);
        world.members.clear();
        world.pools.clear();
        let (_, node) = world.nodes.pop_first().unwrap();
        let tree = TopologyKey(Name::new("racks"));
        world.topologies.insert(tree.clone(), Topology { levels: vec![Name::new("rack")] });
        for (at, ((cpu, memory), rack)) in self.nodes.iter().enumerate() {
            let key = NodeKey(Name::new(&format!("n{at}")));
            let mut node = node.clone();
            node.allocatable.pods = 1000;
            (node.allocatable.cpu_milli, node.allocatable.memory_bytes) = (*cpu, *memory);
            world.nodes.insert(key.clone(), node);
            let rack = Name::new(&format!("r{rack}"));
            world.domains.insert((key, tree.clone()), [Some(rack)].into());
        }
        let group = world.groups.values_mut().next().unwrap();
        let role = |(cpu_milli, memory_bytes): &Amount| {
            let resources = Resources {
                pods: 1,
                cpu_milli: *cpu_milli,
                memory_bytes: *memory_bytes,
                ..Resources::default()
            };
            of_one("", resources)
        };
        group.roles = self.units.iter().flatten().map(role).collect();
        let mut next = 0_u16..;
        let units: Vec<Vec<u16>> =
            self.units.iter().map(|unit| next.by_ref().take(unit.len()).collect()).collect();
        let least = self.least as u32;
        group.parts = match self.parts {
            false => {
                let roles = units.iter().flatten().copied().collect();
                Parts { any: [AnyOf { roles, least }].into(), ..Parts::default() }
            }
            true => {
                let part = |(at, roles): (usize, &Vec<u16>)| Part {
                    name: Name::new(&format!("p{at}")),
                    least: roles.iter().map(|role| (*role, 1)).collect(),
                    ..Part::default()
                };
                let all = units.iter().enumerate().map(part).collect();
                Parts { fewest: least, all, ..Parts::default() }
            }
        };
        let rule = |roles: &[u16]| LevelRule {
            topology: tree.clone(),
            level: 0,
            required: true,
            roles: roles.into(),
            segment: None,
        };
        match self.kept {
            Kept::Nobody => {}
            Kept::All => group.rules.push(rule(&[])),
            Kept::EachUnit => group.rules.extend(units.iter().map(|roles| rule(roles))),
        }
        world
    }
}

/// How many of so many may be chosen in how many ways.
fn choose(of: usize, count: usize) -> u64 {
    (1..=count).fold(1, |ways, at| ways * (of - count + at) as u64 / at as u64)
}

/// What came of the questions.
#[derive(Default, Debug)]
struct Counts {
    placed: u32,
    none: u32,
    gave_up: u32,
    short: u32,
    proven: u32,
}

fn against_every_choice(packed: &Packed, effort: Effort, counts: &mut Counts) -> Outcome {
    let most = packed.most();
    let mut engine = engine_of(&packed.world());
    let decision = engine.decide(&BEST, NOW, effort);
    let violations = audit(engine.state(), &decision);
    let [(_, verdict)] = &decision.verdicts[..] else {
        return Err(format!("{:?}", decision.verdicts));
    };
    if !violations.is_empty() {
        return Err(format!("{violations:?}"));
    }
    let all = packed.units.len();
    let least = choose(all, packed.least);
    let ways: u64 = (packed.least..=all).map(|count| choose(all, count)).sum();
    match verdict {
        Verdict::Placed { optimal, short, .. } => {
            counts.placed += 1;
            let [Act::Place(_, seats, _)] = &decision.acts[..] else {
                return Err(format!("{:?}", decision.acts));
            };
            let out = match (packed.parts, short) {
                (true, short) => short.as_ref().map_or(0, |short| short.parts.len()),
                (false, _) => all - seats.len(),
            };
            let (placed, most) = (all - out, most.unwrap_or(0));
            counts.short += u32::from(placed < most);
            counts.proven += u32::from(*optimal == Proof::Proven);
            let exact =
                *optimal == Proof::Proven || ways <= effort.choices && effort.steps > 10_000;
            if placed > most || placed < most && exact {
                return Err(format!("{placed} placed of {most}: {verdict:?}"));
            }
        }
        Verdict::Waits(_) | Verdict::Refused(_) => {
            counts.none += 1;
            if most.is_some() {
                return Err(format!("{most:?} find a place: {verdict:?}"));
            }
        }
        Verdict::GaveUp(..) => {
            counts.gave_up += 1;
            if least <= effort.choices && effort.steps > 10_000 {
                return Err(format!("{most:?}: {verdict:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn of_more_choices_than_are_tried_none_is_missed_that_is_said_not_to_be() {
    let efforts = [(256, 1_000_000), (64, 1_000_000), (8, 1_000_000), (1, 1_000_000), (8, 500)];
    for (choices, steps) in efforts {
        let effort = Effort { choices, steps, ..Effort::default() };
        let mut counts = Counts::default();
        for seed in 700_000..700_300 {
            let packed = Packed::by_chance(seed);
            if let Err(wrong) = against_every_choice(&packed, effort, &mut counts) {
                panic!("seed {seed}, {choices} choices, {steps} steps: {wrong}\nof {packed:?}");
            }
        }
        println!("{choices} choices, {steps} steps: {counts:?}");
        assert!(counts.placed > 100 && counts.none > 50);
    }
}

/// Six CPU and three: five and two smaller ones fit, but no three with the first of nine, of which three are
/// enough.
#[test]
fn the_choice_that_is_known_to_start_is_taken() {
    let nodes = vec![((600, 9), 0), ((300, 9), 0)];
    let units = [500].into_iter().chain((192..200).rev()).map(|cpu| vec![(cpu, 1)]).collect();
    let packed = Packed { nodes, units, least: 3, parts: false, kept: Kept::Nobody };
    against_every_choice(&packed, Effort::default(), &mut Counts::default()).unwrap();
    let mut counts = Counts::default();
    // With less than three small ones fill the two.
    let nodes = vec![((570, 9), 0), ((191, 9), 0)];
    let packed = Packed { nodes, ..packed };
    against_every_choice(&packed, Effort::default(), &mut counts).unwrap();
    assert_eq!(counts.none, 1);
}

/// Two parts have the same role: who comes with the first is there for the second.
#[test]
fn members_that_parts_share_are_counted_once() {
    let unit = |cpu: i64| vec![(cpu, 1)];
    let units = vec![unit(1), unit(100)];
    let packed =
        Packed { nodes: vec![((3, 9), 0)], units, least: 2, parts: true, kept: Kept::Nobody };
    let verdict = |free: i64| {
        let mut packed = packed.clone();
        packed.nodes[0].0.0 = free;
        let mut world = packed.world();
        let group = world.groups.values_mut().next().unwrap();
        group.roles[0].max = 3;
        let part = |least: u32| Part { least: [(0, least)].into(), ..Part::default() };
        group.parts.all.splice(0..1, [part(2), part(3)]);
        let decision = engine_of(&world).decide(&BEST, NOW, Effort::default());
        let seats = |act: &Act| if let Act::Place(_, seats, _) = act { seats.len() } else { 0 };
        decision.acts.first().map(seats)
    };
    assert_eq!((verdict(3), verdict(2)), (Some(3), None));
}

/// Parts of two pods each, of which twelve of twenty must start and sums tell nothing: what is spent on them
/// is bounded.
#[test]
fn many_choices_of_parts_take_no_more_steps_than_one_search_may() {
    let mut chance = Chance::new(5);
    let units =
        (0..20).map(|_| (0..2).map(|_| (2 * chance.between(13, 20), 1)).collect()).collect();
    let worlds = [
        (101, Kept::Nobody, "placed"),
        (49, Kept::Nobody, "refused"),
        (51, Kept::EachUnit, "refused"),
    ];
    for (free, kept, says) in worlds {
        let nodes = (0..16).map(|at| ((free, 99), at / 4)).collect();
        let units: Vec<Vec<Amount>> = Vec::clone(&units);
        let packed = Packed { nodes, units, least: 12, parts: true, kept };
        let mut engine = engine_of(&packed.world());
        let decision = engine.decide(&BEST, NOW, Effort::default());
        let word = match &decision.verdicts[0].1 {
            Verdict::Placed { .. } => "placed",
            Verdict::Waits(_) => "waits",
            Verdict::Refused(_) => "refused",
            Verdict::GaveUp(..) => "gave up",
        };
        assert_eq!(word, says, "{free} {kept:?}");
        assert!(decision.spent.steps < 100_000, "{free} {kept:?}: {}", decision.spent.steps);
    }
}

/// Of more unlike pods than choices are written down for one by one as many start as there is room for.
#[test]
fn of_hundreds_of_unlike_pods_as_many_start_as_fit() {
    let units = (1..=560).map(|cpu| vec![(cpu, 1)]).collect();
    let room = |count: i64| (1..=count).sum::<i64>();
    let nodes = vec![((room(557), 999), 0)];
    let packed = Packed { nodes, units, least: 550, parts: false, kept: Kept::Nobody };
    let placed = |free: i64| {
        let mut packed = packed.clone();
        packed.nodes[0].0.0 = free;
        let decision = engine_of(&packed.world()).decide(&BEST, NOW, Effort::default());
        match (&decision.acts[..], &decision.verdicts[..]) {
            ([Act::Place(_, seats, _)], _) => Some(seats.len()),
            (_, [(_, Verdict::Refused(_))]) => None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(placed(room(557)), Some(557));
    assert_eq!(placed(room(557) - 1), Some(556));
    assert_eq!(placed(room(550)), Some(550));
    assert_eq!(placed(room(550) - 1), None);
}
