//! The audit finds nothing in what the engine decides, and finds what was tampered with.

use super::chance::Chance;
use super::world::World;
use super::{BEST, POLICIES, decide, engine_of, for_worlds};
use crate::*;

#[test]
fn decisions_pass_the_audit() {
    for_worlds(500_000..503_000, |world| {
        let mut engine = engine_of(world);
        for policy in POLICIES {
            let decision = decide(&mut engine, &policy);
            let violations = audit(engine.state(), &decision);
            if !violations.is_empty() {
                return Err(format!("{violations:?} in {:?}", decision.acts));
            }
        }
        Ok(())
    });
}

/// A way to spoil a decision; none where there is nothing to spoil.
type Tamper = fn(&World, Decision, &mut Chance) -> Option<Decision>;

fn seats(decision: &mut Decision) -> Option<&mut Vec<Seat>> {
    decision.acts.iter_mut().find_map(|act| placed(act).map(|(_, seats)| seats))
}

fn placed(act: &mut Act) -> Option<(&GroupKey, &mut Vec<Seat>)> {
    match act {
        Act::Place(group, seats, _) => Some((group, seats)),
        Act::Admit(_) | Act::Hold(..) | Act::Release(..) | Act::Evict { .. } => None,
    }
}

/// Gives a device that somebody holds whole.
fn give_a_taken_device(world: &World, mut decision: Decision, _: &mut Chance) -> Option<Decision> {
    let grant = seats(&mut decision)?.iter_mut().flat_map(|s| &mut s.grants).find(|g| !g.admin)?;
    let held = world.claims.iter().filter(|(key, _)| key.0.name.ends_with("-own"));
    let device = held
        .filter_map(|(_, c)| c.held.as_ref())
        .flat_map(|h| &h.devices)
        .find(|d| !d.admin && !d.share)?;
    grant.device = device.device.clone();
    Some(decision)
}

/// Gives one device twice.
fn give_a_device_twice(_: &World, mut decision: Decision, _: &mut Chance) -> Option<Decision> {
    let seat = seats(&mut decision)?.iter_mut().find(|s| s.grants.len() > 1)?;
    if seat.grants.iter().any(|g| g.admin || g.share.is_some()) {
        return None;
    }
    seat.grants[1].device = seat.grants[0].device.clone();
    Some(decision)
}

/// Leaves out a device.
fn forget_a_device(_: &World, mut decision: Decision, chance: &mut Chance) -> Option<Decision> {
    let seat = seats(&mut decision)?.iter_mut().find(|s| !s.grants.is_empty())?;
    seat.grants.remove(chance.below(seat.grants.len()));
    Some(decision)
}

/// Gives a device that is not there.
fn invent_a_device(_: &World, mut decision: Decision, _: &mut Chance) -> Option<Decision> {
    let grant = seats(&mut decision)?.iter_mut().flat_map(|s| &mut s.grants).next()?;
    grant.device.device = Name::new("nobody");
    Some(decision)
}

/// Sends a seat with devices of its node to another node.
fn move_a_seat(world: &World, mut decision: Decision, _: &mut Chance) -> Option<Decision> {
    let seat = seats(&mut decision)?
        .iter_mut()
        .find(|s| s.grants.iter().any(|g| g.device.pool.pool == s.node.0))?;
    seat.node = world.nodes.keys().find(|n| **n != seat.node)?.clone();
    Some(decision)
}

/// Sends a seat to a node that is not there.
fn lose_the_node(_: &World, mut decision: Decision, _: &mut Chance) -> Option<Decision> {
    seats(&mut decision)?[0].node = NodeKey(Name::new("nowhere"));
    Some(decision)
}

fn place_a_seat_twice(_: &World, mut decision: Decision, _: &mut Chance) -> Option<Decision> {
    let seats = seats(&mut decision)?;
    let again = seats[0].clone();
    // A group of several may have room for one more.
    seats.extend(std::iter::repeat_n(again, 3));
    Some(decision)
}

fn place_a_group_twice(_: &World, mut decision: Decision, _: &mut Chance) -> Option<Decision> {
    let act = decision.acts.iter().find(|a| matches!(a, Act::Place(..)))?.clone();
    decision.acts.push(act);
    Some(decision)
}

fn drop_a_verdict(_: &World, mut decision: Decision, chance: &mut Chance) -> Option<Decision> {
    let at = chance.below(decision.verdicts.len().max(1));
    (at < decision.verdicts.len()).then(|| decision.verdicts.remove(at))?;
    Some(decision)
}

fn drop_an_act(_: &World, mut decision: Decision, _: &mut Chance) -> Option<Decision> {
    let at = decision.acts.iter().position(|a| matches!(a, Act::Place(..)))?;
    decision.acts.remove(at);
    Some(decision)
}

fn empty_an_account(_: &World, mut decision: Decision, _: &mut Chance) -> Option<Decision> {
    let why = decision.verdicts.iter_mut().find_map(|(_, verdict)| match verdict {
        Verdict::Waits(why) | Verdict::Refused(why) => Some(why),
        Verdict::Placed { .. } | Verdict::GaveUp(..) => None,
    })?;
    std::sync::Arc::make_mut(why).tally.clear();
    Some(decision)
}

/// Sends a pod to a node that has too little CPU left.
fn crowd_a_node(world: &World, mut decision: Decision, _: &mut Chance) -> Option<Decision> {
    let mut places = decision.acts.iter_mut().filter_map(placed);
    let (group, crowd) =
        places.find(|(group, _)| world.groups[*group].roles[0].request.claims.is_empty())?;
    let asked = &world.groups[group].roles[0].request.resources;
    let cpu_on = |node: &NodeKey| -> i64 {
        let bound = world.members.values().filter(|m| match &m.phase {
            Phase::Pending => false,
            Phase::Bound(on) | Phase::Terminating(on, _) => on == node,
        });
        bound.map(|m| world.groups[&m.group].roles[0].request.resources.cpu_milli).sum()
    };
    let full = |key: &NodeKey, node: &Node| {
        asked.cpu_milli > 0 && node.allocatable.cpu_milli - cpu_on(key) < asked.cpu_milli
    };
    crowd[0].node = world.nodes.iter().find(|(key, node)| full(key, node))?.0.clone();
    Some(decision)
}

const TAMPERS: [(&str, Tamper); 12] = [
    ("give a taken device", give_a_taken_device),
    ("give a device twice", give_a_device_twice),
    ("forget a device", forget_a_device),
    ("invent a device", invent_a_device),
    ("move a seat", move_a_seat),
    ("lose the node", lose_the_node),
    ("place a seat twice", place_a_seat_twice),
    ("place a group twice", place_a_group_twice),
    ("drop a verdict", drop_a_verdict),
    ("drop an act", drop_an_act),
    ("empty an account", empty_an_account),
    ("crowd a node", crowd_a_node),
];

#[test]
fn the_audit_finds_what_is_tampered_with() {
    let mut found = [0u32; TAMPERS.len()];
    for_worlds(510_000..513_000, |world| {
        let mut engine = engine_of(world);
        let decision = decide(&mut engine, &BEST);
        let mut chance = Chance::new(decision.acts.len() as u64);
        for (at, (name, tamper)) in TAMPERS.iter().enumerate() {
            let Some(bad) = tamper(world, decision.clone(), &mut chance) else { continue };
            if audit(engine.state(), &bad).is_empty() {
                return Err(format!("{name}: nothing found in {:#?}", bad.acts));
            }
            found[at] += 1;
        }
        Ok(())
    });
    for ((name, _), found) in TAMPERS.iter().zip(found) {
        println!("{name}: {found} times");
        assert!(found > 20, "{name}: only {found} times");
    }
}
