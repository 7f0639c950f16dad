//! Deciding is a function of the state: what is remembered changes nothing, and nothing is changed.

use super::{POLICIES, decide, engine_of, for_worlds, fresh, probes, same};
use crate::*;

#[test]
fn caches_change_no_decision() {
    for_worlds(200_000..201_000, |world| {
        let mut engine = engine_of(world);
        for policy in POLICIES {
            let first = decide(&mut engine, &policy);
            same("without caches", &first, &fresh(engine.state(), &policy))?;
            same("again", &first, &decide(&mut engine, &policy))?;
            same("a new engine", &first, &decide(&mut engine_of(world), &policy))?;
        }
        Ok(())
    });
}

/// A long-lived engine that sees the world change fact by fact answers as a new one would.
#[test]
fn caches_hold_while_the_world_changes() {
    for_worlds(210_000..211_000, |world| {
        let mut engine = Engine::new();
        let mut changes = world.changes();
        super::chance::Chance::new(changes.len() as u64).shuffle(&mut changes);
        for (at, change) in changes.iter().enumerate() {
            engine.apply([change.clone()]);
            if at % 3 == 0 || at + 1 == changes.len() {
                let policy = POLICIES[at % 4];
                let known = decide(&mut engine, &policy);
                same("on the way", &known, &fresh(engine.state(), &policy))?;
            }
        }
        Ok(())
    });
}

/// A bound is kept whatever is remembered of other bounds; a decision says where one was met.
#[test]
fn bounds_change_no_decision_but_their_own() {
    let mut gave_up = 0;
    for_worlds(240_000..241_500, |world| {
        let mut engine = engine_of(world);
        for steps in [1, 1_000_000, 3, 0, 1_000_000, 1] {
            let effort = Effort::of_steps(steps);
            let known = super::plain(engine.decide(&super::BEST, super::NOW, effort));
            let fresh = decide_fresh(engine.state(), &super::BEST, super::NOW, effort);
            same("bounded", &known, &super::plain(fresh))?;
            gave_up += known.verdicts.iter().filter(|v| matches!(v.1, Verdict::GaveUp(..))).count();
        }
        Ok(())
    });
    println!("gave up {gave_up} times");
    assert!(gave_up > 100);
}

#[test]
fn every_node_counts_once_and_the_account_is_never_empty() {
    for_worlds(220_000..222_000, |world| {
        let decision = decide(&mut engine_of(world), &super::BEST);
        let mut whys = Vec::new();
        for (_, verdict) in &decision.verdicts {
            if let Verdict::Waits(why) | Verdict::Refused(why) = verdict {
                let refused = matches!(verdict, Verdict::Refused(_));
                if why.never.is_some() != refused {
                    return Err(format!("only a refusal says what never goes away: {why:?}"));
                }
            }
            match verdict {
                Verdict::Placed { short, .. } => whys.extend(short.iter().map(|s| &s.why)),
                Verdict::Waits(why) | Verdict::Refused(why) => whys.push(why),
                Verdict::GaveUp(..) => return Err("gave up".into()),
            }
        }
        for why in whys {
            let lone = why.tally.len() == 1 && why.tally[0].nodes == 0;
            let nodes: usize = why.tally.iter().map(|t| t.nodes as usize).sum();
            let expected = if lone { 0 } else { world.nodes.len() };
            let sorted = why.tally.windows(2).all(|w| w[0].reason < w[1].reason);
            // What is wrong with a class is a node's matter where another node counts the resource.
            let of_node =
                |t: &Tally| t.reason.scope() != Scope::Object || may_stand(world, t.reason);
            let about_nodes = lone || why.tally.iter().all(of_node);
            let near = why.nearest.is_some() != lone;
            let named = match &why.never {
                Some(never) => never.reason == why.first,
                None => why.tally.iter().any(|t| t.reason == why.first),
            };
            if why.tally.is_empty()
                || nodes != expected
                || !(sorted && about_nodes && near && named)
            {
                return Err(format!("of {} nodes: {why:?}", world.nodes.len()));
            }
        }
        Ok(())
    });
}

/// Whether some extended resource has this fault.
fn may_stand(world: &super::world::World, reason: Reason) -> bool {
    let roles = world.groups.values().flat_map(|group| &group.roles);
    let mut faults = roles.flat_map(|role| &role.request.extended).filter_map(|e| e.fault.as_ref());
    faults.any(|fault| fault.reason == reason)
}

/// The report's verdict is the decision's, and its nodes add up to the account.
#[test]
fn reports_agree_with_decisions() {
    for_worlds(230_000..231_000, |world| {
        let mut engine = engine_of(world);
        let decision = decide(&mut engine, &super::BEST);
        for (group, verdict) in &decision.verdicts {
            let report = probes(&mut engine, &super::BEST, std::slice::from_ref(group)).remove(0);
            let Some(report) = report else { return Err(format!("no report on {group}")) };
            if report.verdict != *verdict {
                return Err(format!("{group}: {:?} but {verdict:?}", report.verdict));
            }
            let (Verdict::Waits(why) | Verdict::Refused(why)) = verdict else { continue };
            // A report looks at nodes for the first member; a gang may have failed at a later one.
            if world.groups[group].minimum == Minimum::Gang
                && report.nodes.iter().any(|n| n.offer.is_some())
            {
                continue;
            }
            for tally in &why.tally {
                let first = |n: &&NodeReport| n.counted == Some(tally.reason);
                let nodes = report.nodes.iter().filter(first).count();
                let gone = report.object.iter().any(|(reason, _)| *reason == tally.reason);
                let none = tally.reason == Reason::NoNodes && world.nodes.is_empty();
                if nodes != tally.nodes as usize || tally.nodes == 0 && !gone && !none {
                    return Err(format!("{group}: {tally:?} but {report:#?}"));
                }
            }
        }
        same("probing", &decision, &decide(&mut engine, &super::BEST))
    });
}
