//! What a reason tells: the names and numbers that its sentence is made of.

use super::world::World;
use super::{BEST, Outcome, decide, engine_of, for_worlds, probes};
use crate::*;

/// Whether an example has what the sentence of its reason needs.
fn tells(world: &World, reason: Reason, facts: &Facts) -> bool {
    match facts {
        Facts::Taint(taint) => !taint.key.is_empty(),
        Facts::Amount { asked, free, .. } => asked > free,
        Facts::Label { asked, .. } => asked.contains('='),
        // A group before it may have been given the claim, or have moved it, in the same decision.
        Facts::Claim { claim, at } => {
            let held = world.claims[claim].held.as_ref();
            let terms = held.and_then(|held| held.nodes.as_deref()).unwrap_or_default();
            let one = |r: &NodeRequirement| matches!(r, NodeRequirement::NameIs(_));
            let bound = terms.len() == 1 && terms[0].iter().any(one);
            let named = at.as_ref().is_some_and(|node| !node.is_empty());
            if bound { named } else { at.is_none() || named }
        }
        Facts::Binding { claim, failure } => {
            world.claims[claim].failed.as_ref() == Some(&**failure)
        }
        Facts::Port { asked, taken } => asked.clashes_with(taken),
        Facts::Spread { value, here, least, max_skew, .. } => {
            value.is_none() || here + 1 > least.unwrap_or(0) + max_skew.unsigned_abs()
        }
        Facts::Pods { pods, value, .. } => {
            let own = reason != Reason::RepelledByPod;
            pods.is_some() == own && (value.is_some() || reason == Reason::PodAffinityUnmet)
        }
        Facts::Group(facts) => facts.fit < facts.of,
        Facts::Volume(facts) => tells_volume(reason, facts),
        Facts::Devices(facts) => facts.seen >= facts.selected && facts.request.is_some(),
        Facts::Subject { subject, detail } => !subject.is_empty() || !detail.is_empty(),
        Facts::None => matches!(
            reason,
            Reason::NodeName
                | Reason::NodeUnschedulable
                | Reason::NodeAffinity
                | Reason::NoNodes
                | Reason::SearchBound
        ),
    }
}

fn tells_volume(reason: Reason, facts: &VolumeFacts) -> bool {
    let volume = facts.volume.is_some();
    if reason == Reason::VolumeZone {
        volume && facts.label.is_some()
    } else if matches!(
        reason,
        Reason::VolumeClaimLost
            | Reason::VolumeMissing
            | Reason::VolumeGone
            | Reason::VolumeElsewhere
    ) {
        volume
    } else if matches!(reason, Reason::NoVolume | Reason::StorageShort | Reason::VolumeClaimUnbound)
    {
        facts.lack.is_some()
    } else {
        !facts.claim.is_empty()
    }
}

#[test]
fn every_check_that_fails_tells_its_names_and_numbers() {
    let mut told = 0;
    for_worlds(240_000..241_500, |world| {
        let queue = world.queue();
        for report in probes(&mut engine_of(world), &BEST, &queue).into_iter().flatten() {
            let of_nodes = report.nodes.iter().flat_map(|node| &node.checks);
            let all = report.object.iter().map(|(reason, example)| (reason, example));
            for (reason, example) in all.chain(of_nodes.map(|(r, _, example)| (r, example))) {
                if !tells(world, *reason, &example.facts) {
                    return Err(format!("{reason:?} tells {:?}", example.facts));
                }
                told += 1;
            }
        }
        Ok(())
    });
    assert!(told > 2_000, "{told} checks failed");
}

/// The same world with each claim that a request names named twice.
fn named_twice(world: &World) -> World {
    let mut twice = world.clone();
    for group in twice.groups.values_mut() {
        for role in &mut group.roles {
            let mut request = (*role.request).clone();
            if !request.extended.is_empty() {
                // The claim for them has the next number.
                continue;
            }
            let named = request.claims.iter().filter(|c| matches!(c, ClaimUse::Named(_)));
            request.claims = request.claims.iter().chain(named).cloned().collect();
            role.request = Shared::new(request);
        }
    }
    twice
}

#[test]
fn a_claim_that_is_named_twice_is_one_claim() {
    let mut placed = 0;
    for_worlds(242_000..243_500, |world| {
        let once = decide(&mut engine_of(world), &BEST);
        let twice = decide(&mut engine_of(&named_twice(world)), &BEST);
        placed += once.acts.len();
        let outcome: Outcome = super::same("named twice", &once, &twice);
        outcome
    });
    assert!(placed > 500, "{placed} placed");
}

/// A wait for binding conditions ends by itself: whoever waits is looked at again right after it.
#[test]
fn who_waits_is_woken_when_a_wait_for_binding_conditions_is_over() {
    const END: i64 = 500;
    let mut woken = 0;
    for_worlds(244_000..246_000, |world| {
        let mut world = world.clone();
        let mut awaited = false;
        for claim in world.claims.values_mut() {
            let held = claim.held.is_some();
            if let Some(failure) = claim.failed.as_mut().filter(|f| f.after.is_some()) {
                failure.after = Some(Timestamp(END));
                awaited |= held;
            }
        }
        let decision = decide(&mut engine_of(&world), &BEST);
        let waits = decision.verdicts.iter().any(|(_, v)| matches!(v, Verdict::Waits(_)));
        let in_time = decision.wake_at.is_some_and(|time| time <= Timestamp(END + 1));
        woken += usize::from(awaited && waits);
        if awaited && waits && !in_time { Err(format!("{:?}", decision.wake_at)) } else { Ok(()) }
    });
    assert!(woken > 10, "{woken} woken");
}
