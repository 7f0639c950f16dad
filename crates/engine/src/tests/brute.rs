//! The engine places exactly what brute force places, at the same cost and on the same seat; and
//! names the same reason for every node where it does not.

use std::collections::BTreeMap;

use super::oracle::{Board, Fate};
use super::world::World;
use super::{
    BEST, Outcome, POLICIES, UPSTREAM, decide, engine_of, for_worlds, fresh, probes, same,
};
use crate::*;

/// What was seen over all worlds, so that an empty promise shows.
#[derive(Default)]
struct Counts {
    placed: u32,
    in_part: u32,
    not: u32,
    devices: u32,
    released: u32,
    first: BTreeMap<Reason, u32>,
    per_node: BTreeMap<Reason, u32>,
}

impl Counts {
    fn add(&mut self, fates: &[Fate]) {
        for fate in fates {
            match (fate.seats.is_empty(), fate.missing) {
                (false, 0) => self.placed += 1,
                (false, _) => self.in_part += 1,
                (true, _) => self.not += 1,
            }
            self.devices += fate.seats.iter().map(|s| s.grants.len() as u32).sum::<u32>();
            self.released += fate.released.len() as u32;
            if let Some(first) = fate.tally.keys().max() {
                *self.first.entry(*first).or_default() += 1;
            }
            for (reason, nodes) in &fate.tally {
                *self.per_node.entry(*reason).or_default() += (*nodes).max(1);
            }
        }
    }
}

fn tally_of(why: &Why) -> BTreeMap<Reason, u32> {
    why.tally.iter().map(|t| (t.reason, t.nodes)).collect()
}

/// Holds a decision against brute force's.
fn agree(decision: &Decision, fates: &[Fate]) -> Outcome {
    let queue: Vec<&GroupKey> = fates.iter().map(|f| &f.group).collect();
    if !decision.verdicts.iter().map(|(g, _)| g).eq(queue) {
        return Err(format!("queue order: {:?}", decision.verdicts));
    }
    for (fate, (group, verdict)) in fates.iter().zip(&decision.verdicts) {
        let mut place = None;
        let mut released: Vec<&ClaimKey> = Vec::new();
        for act in &decision.acts {
            match act {
                Act::Place(g, seats, cost) if g == group => place = Some((seats, cost)),
                Act::Release(g, claim) if g == group => released.push(claim),
                Act::Place(..) | Act::Release(..) => {}
                Act::Admit(_) | Act::Hold(..) | Act::Evict { .. } => {
                    return Err(format!("an act that nothing asks for: {act:?}"));
                }
            }
        }
        let (cost, short) = match verdict {
            Verdict::Placed { optimal: Proof::Bounded, .. } => {
                return Err(format!("{group}: bounded"));
            }
            Verdict::Placed { cost, short, .. } => (*cost, short.clone()),
            Verdict::Waits(why) | Verdict::Refused(why) if fate.tally.is_empty() => {
                // Of a part that need not start its own are counted.
                let told = why.group().filter(|facts| facts.part.is_none());
                let told = told.map(|facts| facts.fit);
                // Of several roles a greedy count may miss the most that fit.
                let wrong = |fit| fit > fate.fit || fate.alike && fit != fate.fit;
                if !fate.seats.is_empty() || told.is_some_and(wrong) {
                    return Err(format!("{group} is not placed: {why:?}\nbrute force: {fate:?}"));
                }
                continue;
            }
            Verdict::Waits(why) | Verdict::Refused(why) => {
                if !fate.seats.is_empty() || tally_of(why) != fate.tally {
                    return Err(format!("{group} is not placed: {why:?}\nbrute force: {fate:?}"));
                }
                continue;
            }
            Verdict::GaveUp(..) => return Err(format!("{group} gave up")),
        };
        let Some((seats, act_cost)) = place else { return Err(format!("{group}: no act")) };
        let plain = |s: &Seat| (s.pod.clone(), s.node.clone(), s.grants.clone(), s.volumes.clone());
        let same = cost == *act_cost
            && cost == fate.cost
            && seats.iter().map(plain).eq(fate.seats.iter().map(plain))
            && released.iter().copied().eq(&fate.released)
            && short.as_ref().map_or(0, |s| s.missing) == fate.missing
            && short.is_none_or(|s| fate.tally.is_empty() || tally_of(&s.why) == fate.tally);
        if !same {
            return Err(format!("{group} is placed: {cost:?} {seats:#?}\nbrute force: {fate:#?}"));
        }
    }
    Ok(())
}

pub(super) fn against_brute_force(policy: &Policy, world: &World) -> Result<Vec<Fate>, String> {
    let fates = Board::new(world, policy).decide();
    let mut engine = engine_of(world);
    agree(&decide(&mut engine, policy), &fates)?;
    // What is remembered from one policy is of no use to another, and does no harm.
    let other = &POLICIES[(world.claims.len() + world.members.len()) % 4];
    let (known, fresh) = (decide(&mut engine, other), fresh(engine.state(), other));
    same("without caches", &known, &fresh)?;
    Ok(fates)
}

#[test]
fn decisions_are_those_of_brute_force() {
    let mut counts = Counts::default();
    for_worlds(0..20_000, |world| {
        counts.add(&against_brute_force(&BEST, world)?);
        Ok(())
    });
    println!(
        "brute force: {} placed, {} in part, {} not; {} devices, {} claims moved",
        counts.placed, counts.in_part, counts.not, counts.devices, counts.released
    );
    for reason in Reason::ALL {
        let of = |map: &BTreeMap<Reason, u32>| map.get(&reason).copied().unwrap_or(0);
        println!("  {reason:?}: first {}, nodes {}", of(&counts.first), of(&counts.per_node));
    }
    let all = counts.placed + counts.in_part + counts.not;
    let placed = counts.placed + counts.in_part;
    assert!(placed * 4 >= all && counts.not * 4 >= all);
    assert!(counts.in_part > 100 && counts.released > 40);
    for reason in Reason::ALL {
        // Nothing bounds a search over so few devices; and groups have worlds of their own.
        let elsewhere =
            matches!(reason, Reason::SearchBound | Reason::GroupShort | Reason::GroupIncomplete);
        let least = if elsewhere { 0 } else { 20 };
        let seen = counts.first.get(&reason).copied().unwrap_or(0);
        assert!(seen >= least, "{reason:?} came first only {seen} times");
    }
}

#[test]
fn upstreams_order_gives_the_first_set_that_fits() {
    for_worlds(100_000..103_000, |world| against_brute_force(&UPSTREAM, world).map(|_| ()));
}

/// A report on the group that goes first says of every node what brute force says.
#[test]
fn reports_are_those_of_brute_force() {
    for_worlds(120_000..122_000, |world| {
        let Some(first) = world.queue().into_iter().next() else { return Ok(()) };
        let report = probes(&mut engine_of(world), &BEST, std::slice::from_ref(&first)).remove(0);
        let Some(report) = report else { return Err("no report".into()) };
        let answers = match Board::new(world, &BEST).first_look(&first) {
            Ok(answers) => answers,
            Err(reason) if report.object.iter().any(|(r, _)| *r == reason) => return Ok(()),
            Err(reason) => return Err(format!("{reason:?} but {:?}", report.object)),
        };
        if answers.len() != report.nodes.len() {
            return Err(format!("{} nodes of {}", report.nodes.len(), answers.len()));
        }
        for (answer, node) in answers.into_iter().zip(&report.nodes) {
            let offer = node
                .offer
                .as_ref()
                .map(|(cost, seat, _)| (*cost, seat.grants.clone(), seat.volumes.clone()));
            let told = offer.ok_or(node.counted);
            if told != answer.clone().map_err(Some) || told.is_ok() != node.checks.is_empty() {
                return Err(format!("{node:#?}\nbrute force: {answer:#?}"));
            }
        }
        Ok(())
    });
}

/// Devices of an allocation that are apart by themselves, and a promised node beside members without.
#[test]
fn they_agree_where_they_once_did_not() {
    for seed in [44_058, 65_114] {
        for_worlds(seed..seed + 1, |world| against_brute_force(&BEST, world).map(|_| ()));
    }
}
