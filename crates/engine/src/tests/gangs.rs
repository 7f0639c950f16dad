//! Groups that start whole, against brute force: placed exactly when there is an arrangement, and never
//! at a worse cost.

use super::brute::against_brute_force;
use super::chance::Chance;
use super::make;
use super::world::{World, shrink};
use super::{BEST, Outcome, decide, engine_of};
use crate::*;

/// A world of which a group or two start whole, over trees of topology.
fn gang_world(seed: u64) -> World {
    let mut world = make::world(seed);
    let mut chance = Chance::new(seed ^ 0x6a7e);
    let trees = *chance.pick(&[0, 1, 1, 1, 2]);
    for tree in 0..trees {
        let key = TopologyKey(Name::new(&format!("t{tree}")));
        let levels = 1 + chance.below(2);
        let names = (0..levels).map(|level| Name::new(&format!("level{level}"))).collect();
        world.topologies.insert(key.clone(), Topology { levels: names });
        for node in world.nodes.keys() {
            let domain = |chance: &mut Chance| {
                let name = *chance.pick(&["a", "a", "b"]);
                (!chance.percent(8)).then(|| Name::new(name))
            };
            let domains: Domains = (0..levels).map(|_| domain(&mut chance)).collect();
            world.domains.insert((node.clone(), key.clone()), domains);
        }
    }
    let keys: Vec<TopologyKey> = world.topologies.keys().cloned().collect();
    for group in world.groups.values_mut() {
        if !chance.percent(70) {
            continue;
        }
        group.minimum = Minimum::Gang;
        let role = &mut group.roles[0];
        role.max = role.max.max(1 + chance.below(3) as u32);
        role.min =
            if chance.percent(75) { role.max } else { 1 + chance.below(role.max as usize) as u32 };
        if chance.percent(30) && role.max < 3 {
            let mut other = role.clone();
            (other.min, other.max) = (1, 1);
            let mut request = (*other.request).clone();
            request.resources.cpu_milli = 1 - request.resources.cpu_milli.min(1);
            other.request = Shared::new(request);
            group.roles.push(other);
        }
        for _ in 0..*chance.pick(&[0, 1, 1, 2]) {
            let Some(topology) = (!keys.is_empty()).then(|| chance.pick(&keys).clone()) else {
                break;
            };
            let levels = world.topologies[&topology].levels.len();
            group.rules.push(LevelRule {
                topology,
                level: chance.below(levels) as u16,
                required: chance.percent(60),
                roles: if chance.percent(15) { [0].into() } else { Box::default() },
                segment: chance.percent(20).then_some(2),
            });
        }
    }
    world
}

/// Holds worlds against a property; what breaks it is told of in a world as small as possible.
pub(super) fn for_gang_worlds(
    seeds: std::ops::Range<u64>,
    mut property: impl FnMut(&World) -> Outcome,
) {
    for seed in seeds {
        let world = gang_world(seed);
        if let Err(wrong) = property(&world) {
            let (small, wrong) = shrink(world, wrong, &mut property);
            panic!("seed {seed}: {wrong}\nin the world\n{small}");
        }
    }
}

#[test]
fn gangs_are_placed_as_brute_force_places_them() {
    let (mut whole, mut short, mut none, mut ruled) = (0, 0, 0, 0);
    for_gang_worlds(600_000..601_400, |world| {
        for fate in against_brute_force(&BEST, world)? {
            let group = &world.groups[&fate.group];
            if group.minimum == Minimum::Gang {
                ruled += u32::from(!group.rules.is_empty());
                let count = match (fate.missing, fate.fit) {
                    (0, _) => &mut whole,
                    (_, 0) => &mut none,
                    _ => &mut short,
                };
                *count += 1;
            }
        }
        Ok(())
    });
    println!("gangs: {whole} whole, {short} short, {none} without any member; {ruled} with rules");
    assert!(whole > 300 && short > 100 && ruled > 300);
}

/// Moves a seat of a group that is kept in one domain to a node of another.
fn torn(world: &World, mut decision: Decision) -> Option<Decision> {
    for act in &mut decision.acts {
        let Act::Place(group, seats, _) = act else { continue };
        let rules = &world.groups[group].rules;
        let Some(rule) = rules.iter().find(|rule| {
            let known = world.topologies.contains_key(&rule.topology);
            known && rule.required && rule.roles.is_empty() && rule.segment.is_none()
        }) else {
            continue;
        };
        let domain = |node: &NodeKey| {
            let domains = world.domains.get(&(node.clone(), rule.topology.clone()));
            domains.map(|domains| domains[..=usize::from(rule.level)].to_vec())
        };
        let (Some(seat), true) = (seats.first().cloned(), seats.len() > 1) else { continue };
        if let Some(other) = world.nodes.keys().find(|node| domain(node) != domain(&seat.node)) {
            seats[0].node = other.clone();
            return Some(decision);
        }
    }
    None
}

#[test]
fn the_audit_sees_a_group_that_is_torn_apart() {
    let mut seen = 0;
    for_gang_worlds(620_000..620_600, |world| {
        let mut engine = engine_of(world);
        let decision = decide(&mut engine, &BEST);
        let violations = audit(engine.state(), &decision);
        if !violations.is_empty() {
            return Err(format!("{violations:?} in {:?}", decision.acts));
        }
        if let Some(torn) = torn(world, decision) {
            seen += 1;
            let violations = format!("{:?}", audit(engine.state(), &torn));
            if !violations.contains("one domain") {
                return Err(format!("{violations} in {:?}", torn.acts));
            }
        }
        Ok(())
    });
    assert!(seen > 5, "{seen}");
}
