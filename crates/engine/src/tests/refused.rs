//! Refused says: not even in this cluster emptied and healed. That very world is built and decided.

use super::gangs::for_gang_worlds;
use super::oracle::sees_incomplete;
use super::world::World;
use super::{BEST, Outcome, POLICIES, decide, engine_of, for_worlds};
use crate::*;

/// The world as it would be for one group with every other pod gone, every node and device healed,
/// every gate lifted and every quota free.
fn healed(world: &World, group: &GroupKey) -> World {
    let mut ideal = world.clone();
    ideal.groups.retain(|key, _| key == group);
    ideal.members.retain(|_, m| m.group == *group && m.phase.is_pending());
    for member in ideal.members.values_mut() {
        member.nominated = None;
    }
    // Pods that it must be near may come anywhere, as it may be one of them itself.
    for role in ideal.groups.values_mut().flat_map(|group| &mut group.roles) {
        let mut request = (*role.request).clone();
        let affinity = request.near.as_ref().and_then(|near| near.affinity.as_ref());
        let mut matched = request.matched.to_vec();
        matched.extend(affinity.map(|affinity| affinity.pods));
        matched.sort_unstable();
        matched.dedup();
        request.matched = matched.into();
        role.request = Shared::new(request);
    }
    for group in ideal.groups.values_mut() {
        group.gate = Gate::Open;
        group.roles.iter_mut().for_each(|role| role.admits = None);
    }
    for claim in ideal.claims.values_mut() {
        // Only pods hold; what nobody uses is given up for whoever needs it.
        claim.held = None;
        claim.users.clear();
    }
    for node in ideal.nodes.values_mut() {
        node.unschedulable = false;
        let sick = |t: &&Taint| t.key.starts_with("node.kubernetes.io/");
        node.taints = node.taints.iter().filter(|t| !sick(t)).cloned().collect();
        for (resource, more) in std::mem::take(&mut node.unhealthy) {
            let mut scalars = node.allocatable.scalars.to_vec();
            match scalars.iter_mut().find(|(name, _)| *name == resource) {
                Some((_, amount)) => *amount += more,
                None => scalars.push((resource, more)),
            }
            scalars.sort();
            node.allocatable.scalars = scalars.into();
        }
    }
    for storage in ideal.storage.nodes.values_mut() {
        storage.attached = Box::default();
    }
    for slice in ideal.pools.values_mut().flat_map(|p| &mut p.slices) {
        for device in &mut slice.devices {
            let healthy = Traits { taints: Box::default(), ..(*device.traits).clone() };
            device.traits = Shared::new(healthy);
        }
    }
    ideal
}

#[test]
fn refused_is_what_the_healed_and_emptied_cluster_refuses() {
    let (mut refused, mut waits) = (0, 0);
    for_worlds(400_000..404_000, |world| {
        let policy = POLICIES[world.claims.len() % 2];
        hold_against_the_ideal(world, &policy, [&mut refused, &mut waits])
    });
    println!("{refused} refused, {waits} wait");
    assert!(refused > 500 && waits > 500);
}

#[test]
fn groups_are_refused_by_the_healed_and_emptied_cluster_as_a_whole() {
    let (mut refused, mut waits) = (0, 0);
    for_gang_worlds(410_000..410_700, |world| {
        hold_against_the_ideal(world, &BEST, [&mut refused, &mut waits])
    });
    println!("groups: {refused} refused, {waits} wait");
    assert!(refused > 100 && waits > 100);
}

/// Builds the ideal world for every group that is not placed.
fn hold_against_the_ideal(world: &World, policy: &Policy, counts: [&mut u32; 2]) -> Outcome {
    let [refused, waits] = counts;
    for (group, verdict) in decide(&mut engine_of(world), policy).verdicts {
        let said = match verdict {
            Verdict::Placed { .. } => continue,
            Verdict::Waits(_) => false,
            Verdict::Refused(_) => true,
            Verdict::GaveUp(..) => return Err(format!("{group} gave up")),
        };
        let ideal = healed(world, &group);
        let decision = decide(&mut engine_of(&ideal), policy);
        let fits = matches!(decision.verdicts[..], [(_, Verdict::Placed { .. })]);
        if !fits && !said && (may_come(&ideal, &decision) || is_open(&ideal, &group)) {
            continue;
        }
        if said == fits {
            return Err(format!("{group}: refused is {said}, but there {:?}", decision.verdicts));
        }
        *refused += u32::from(said);
        *waits += u32::from(!said);
    }
    Ok(())
}

/// Of a group that starts whole, what depends on volumes or on other pods is not held against it; nor
/// is anything, where it asks for devices and some pool is being republished.
fn is_open(world: &World, group: &GroupKey) -> bool {
    let group = &world.groups[group];
    let mut requests = group.roles.iter().map(|role| &role.request);
    let incomplete = world.nodes.iter().any(|(key, node)| sees_incomplete(world, key, node));
    group.minimum == Minimum::Gang
        && requests.any(|request| {
            let of_devices = !request.claims.is_empty() || !request.extended.is_empty();
            !request.volumes.is_empty() || request.near.is_some() || of_devices && incomplete
        })
}

/// Nobody can say what a pool that is being republished will hold: a node that sees one, and would
/// do but for its devices, is no ground for a refusal.
fn may_come(ideal: &World, decision: &Decision) -> bool {
    let [(_, Verdict::Waits(why) | Verdict::Refused(why))] = &decision.verdicts[..] else {
        return false;
    };
    // So it is of a volume that a controller is yet to bind, or a claim that it is yet to make.
    let to_come = [Reason::VolumeClaimUnbound, Reason::VolumeClaimNotMade];
    if why.tally.iter().any(|t| to_come.contains(&t.reason)) {
        return true;
    }
    why.tally.iter().any(|t| t.reason.scope() == Scope::Device)
        && ideal.nodes.iter().any(|(key, node)| sees_incomplete(ideal, key, node))
}
