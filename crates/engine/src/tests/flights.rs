//! What is on its way counts once: from the moment it is sent until the board shows it, in whatever
//! pieces and order the board does.

use std::collections::BTreeMap;

use super::chance::Chance;
use super::world::World;
use super::{BEST, Outcome, decide, engine_of, for_worlds, make, same};
use crate::state::{Decided, StorageFacts};
use crate::*;

/// The first group of the queue, where it is placed whole in pods that exist, without moving claims.
fn sent(world: &World, decision: &Decision) -> Option<(GroupKey, Vec<Seat>)> {
    let (group, Verdict::Placed { short: None, .. }) = decision.verdicts.first()? else {
        return None;
    };
    let Act::Place(of, seats, _) = decision.acts.first()? else { return None };
    let exist = seats.iter().all(|s| s.pod.as_ref().is_some_and(|p| world.members.contains_key(p)));
    (of == group && exist).then(|| (group.clone(), seats.clone()))
}

/// A decision without what can never be. A volume stays with the claim that gets it, whatever becomes
/// of pods: while seats are only decided on it could be another's, and once they are sent it can't.
fn for_now(decision: &Decision, seats: &[Seat]) -> Decision {
    let mut now = decision.clone();
    if seats.iter().all(|seat| seat.volumes.is_empty()) {
        return now;
    }
    for (_, verdict) in &mut now.verdicts {
        let why = match verdict {
            Verdict::Waits(why) | Verdict::Refused(why) => why,
            Verdict::Placed { short: Some(short), .. } => &mut short.why,
            Verdict::Placed { short: None, .. } | Verdict::GaveUp(..) => continue,
        };
        let first = why.tally[0].reason;
        let why = Why { first, never: None, ..(**why).clone() };
        match verdict {
            Verdict::Placed { short: Some(short), .. } => short.why = why.into(),
            Verdict::Placed { .. } | Verdict::GaveUp(..) => {}
            Verdict::Waits(_) | Verdict::Refused(_) => *verdict = Verdict::Waits(why.into()),
        }
    }
    now
}

/// The decision about all but the first group.
fn rest(decision: &Decision) -> Decision {
    let mut rest = decision.clone();
    rest.verdicts.remove(0);
    rest.acts.remove(0);
    rest
}

/// What the board will show once the seats are written: claims as made, allocated and reserved,
/// pods as bound. A pod's status names the claims made for it before anybody can allocate them.
fn shown(world: &World, group: &GroupKey, seats: &[Seat]) -> Vec<Change> {
    let before = &mut (world.claims.clone(), world.storage.clone());
    shown_after(before, world, group, seats)
}

/// The same, with claims and volumes as the board shows them before and after.
fn shown_after(
    (claims, storage): &mut (BTreeMap<ClaimKey, Claim>, StorageFacts),
    world: &World,
    group: &GroupKey,
    seats: &[Seat],
) -> Vec<Change> {
    let request = &world.groups[group].roles[0].request;
    let mut changes = Vec::new();
    for seat in seats {
        let pod = seat.pod.clone().unwrap();
        let mut member = world.members[&pod].clone();
        let mut written = Vec::new();
        for (at, claim) in request.claims.iter().enumerate() {
            let of = seat.grants.iter().filter(|g| usize::from(g.claim) == at);
            let devices: Box<[HeldDevice]> = of.clone().map(HeldDevice::granted).collect();
            let per_group = matches!(claim, ClaimUse::PerGroup(_));
            let key = match claim {
                ClaimUse::Named(key) | ClaimUse::PerGroup(key) => key.clone(),
                ClaimUse::Own(spec) => {
                    let key = ClaimKey(make::scoped(&format!("{}-{at}", pod.0.name)));
                    let made = Claim {
                        spec: spec.clone(),
                        held: None,
                        users: vec![],
                        failed: None,
                        deleting: false,
                    };
                    changes.push(Change::Claim(key.clone(), Some(made.clone())));
                    claims.insert(key.clone(), made);
                    member.claims[at] = Some(key.clone());
                    key
                }
            };
            let claim = claims.get_mut(&key).unwrap();
            if claim.held.is_none() {
                let nodes = super::oracle::reach(world, &seat.node, &devices);
                let given = of.map(|g| (g.request, g.alternative));
                let early = claim.spec.early(given);
                claim.held = Some(Allocation { devices, nodes, early });
            }
            let user = match per_group {
                true => User::Other(group.object.name.clone()),
                false => User::Pod(pod.clone()),
            };
            if !claim.users.contains(&user) {
                claim.users.push(user);
            }
            written.push(Change::Claim(key, Some(claim.clone())));
        }
        written.extend(shown_extended(world, request, seat, &mut member));
        changes.extend(shown_volumes(storage, request, seat));
        changes.push(Change::Member(pod.clone(), Some(member.clone())));
        changes.extend(written);
        member.phase = Phase::Bound(seat.node.clone());
        changes.push(Change::Member(pod, Some(member)));
    }
    changes
}

/// Volumes as kept for their claims, and the claims as bound, or told their node.
fn shown_volumes(storage: &mut StorageFacts, request: &Request, seat: &Seat) -> Vec<Change> {
    let mut changes = Vec::new();
    for grant in &seat.volumes {
        let claim = request.volumes[usize::from(grant.at)].claim();
        let decided = match &grant.volume {
            Some(volume) => Decided::Volume(volume.clone()),
            None => Decided::Made(seat.node.clone()),
        };
        storage.decide(claim, &decided);
        let volume = grant.volume.as_ref();
        changes.extend(
            volume.map(|key| Change::Volume(key.clone(), storage.volumes.get(key).cloned())),
        );
        let fact = claim.and_then(|key| Some((key, storage.claims.get(key)?)));
        changes
            .extend(fact.map(|(key, fact)| Change::VolumeClaim(key.clone(), Some(fact.clone()))));
    }
    changes
}

/// The claim that is made for what a node gives by devices of a pod's extended resources.
fn shown_extended(
    world: &World,
    request: &Request,
    seat: &Seat,
    member: &mut Member,
) -> Option<Change> {
    let of = seat.grants.iter().filter(|g| usize::from(g.claim) == request.claims.len());
    let devices: Box<[HeldDevice]> = of.map(HeldDevice::granted).collect();
    if devices.is_empty() {
        return None;
    }
    let pod = seat.pod.clone().unwrap();
    let key = ClaimKey(make::scoped(&format!("{}-extended", pod.0.name)));
    member.claims = member.claims.iter().cloned().chain([Some(key.clone())]).collect();
    let nodes = super::oracle::reach(world, &seat.node, &devices);
    let claim = Claim {
        spec: Shared::new(request.claim_for(&[0])),
        held: Some(Allocation { devices, nodes, early: 0 }),
        users: vec![User::Pod(pod)],
        failed: None,
        deleting: false,
    };
    Some(Change::Claim(key, Some(claim)))
}

#[test]
fn what_is_in_flight_counts_once() {
    let mut flown = 0;
    for_worlds(600_000..606_000, |world| {
        let mut engine = engine_of(world);
        let before = decide(&mut engine, &BEST);
        let Some((group, seats)) = sent(world, &before) else { return Ok(()) };
        flown += 1;
        let after = for_now(&rest(&before), &seats);
        let decide = |engine: &mut Engine| for_now(&decide(engine, &BEST), &seats);
        let id = FlightId(7);
        engine.apply([Change::Assume(id, group.clone(), seats.clone())]);
        same("sent", &after, &decide(&mut engine))?;
        failed(&engine, &before)?;
        let shown = shown(world, &group, &seats);
        for (at, change) in shown.iter().enumerate() {
            engine.apply([change.clone()]);
            let what = format!("after {} of {}: {change:?}", at + 1, shown.len());
            same(&what, &after, &decide(&mut engine))?;
        }
        engine.apply([Change::Settle(id)]);
        same("settled", &after, &decide(&mut engine))?;
        let mut never = engine_of(world);
        never.apply(shown);
        same("never sent", &super::decide(&mut never, &BEST), &super::decide(&mut engine, &BEST))
    });
    println!("{flown} flights");
    assert!(flown > 500);
}

/// A flight that fails leaves the state as if it had never been sent.
fn failed(engine: &Engine, before: &Decision) -> Outcome {
    let mut engine = engine.fork();
    engine.apply([Change::Settle(FlightId(7))]);
    same("failed", before, &decide(&mut engine, &BEST))
}

/// However a flight and what the board shows interleave, the end is the same.
#[test]
fn flights_and_the_board_may_come_in_any_order() {
    for_worlds(610_000..612_000, |world| {
        let mut engine = engine_of(world);
        let before = decide(&mut engine, &BEST);
        let Some((group, seats)) = sent(world, &before) else { return Ok(()) };
        let mut chance = Chance::new(seats.len() as u64 + before.acts.len() as u64);
        let shown = shown(world, &group, &seats);
        let mut straight = engine_of(world);
        straight.apply(shown.clone());
        let mut late = shown.clone();
        // Each object's last state wins: its earlier ones must not come after it.
        late.retain(|c| !matches!(c, Change::Member(_, Some(m)) if m.phase.is_pending()));
        let mut seen: Vec<Change> = Vec::new();
        for change in late.into_iter().rev() {
            let again = |c: &Change| match (c, &change) {
                (Change::Claim(a, _), Change::Claim(b, _)) => a == b,
                (Change::Volume(a, _), Change::Volume(b, _)) => a == b,
                (Change::VolumeClaim(a, _), Change::VolumeClaim(b, _)) => a == b,
                _ => false,
            };
            if !seen.iter().any(again) {
                seen.push(change);
            }
        }
        chance.shuffle(&mut seen);
        seen.insert(chance.below(seen.len() + 1), Change::Assume(FlightId(1), group, seats));
        engine.apply(seen);
        same("in flight", &decide(&mut straight, &BEST), &decide(&mut engine, &BEST))?;
        engine.apply([Change::Settle(FlightId(1))]);
        same("settled", &decide(&mut straight, &BEST), &decide(&mut engine, &BEST))
    });
}

/// Several decisions in flight at once, some about one claim, and the board catching up with them.
#[test]
fn flights_count_once_beside_each_other() {
    let mut flown = 0;
    for_worlds(620_000..624_000, |world| {
        let mut engine = engine_of(world);
        let mut sent = Vec::new();
        for act in decide(&mut engine, &BEST).acts {
            let Act::Place(group, seats, _) = act else { return Ok(()) };
            // A seat without a pod is not sent, and others may share what it allocates.
            if seats.iter().any(|s| s.pod.is_none()) {
                return Ok(());
            }
            sent.push((FlightId(sent.len() as u64), group, seats));
        }
        if sent.len() < 2 {
            return Ok(());
        }
        flown += 1;
        for (id, group, seats) in &sent {
            engine.apply([Change::Assume(*id, group.clone(), seats.clone())]);
        }
        let all = decide(&mut engine, &BEST);
        let mut shown = (world.claims.clone(), world.storage.clone());
        let mut board = Vec::new();
        let late = world.claims.len() % 2 == 0;
        for (id, group, seats) in &sent {
            for change in shown_after(&mut shown, world, group, seats) {
                engine.apply([change.clone()]);
                same(&format!("{change:?}"), &all, &decide(&mut engine, &BEST))?;
                board.push(change);
            }
            if !late {
                engine.apply([Change::Settle(*id)]);
                same("settled", &all, &decide(&mut engine, &BEST))?;
            }
        }
        engine.apply(sent.iter().map(|(id, ..)| Change::Settle(*id)));
        let mut never = engine_of(world);
        never.apply(board);
        same("all settled", &all, &decide(&mut engine, &BEST))?;
        same("never sent", &decide(&mut never, &BEST), &all)
    });
    println!("{flown} decisions of several flights");
    assert!(flown > 200);
}

/// A user that the board shows is no user on its way.
#[test]
fn a_user_in_flight_counts_once() {
    let spec = ClaimSpec {
        requests: Box::default(),
        constraints: Box::default(),
        align: Box::default(),
        fault: None,
    };
    let key = ClaimKey(make::scoped("c"));
    let mut claim = Claim {
        spec: Shared::new(spec),
        held: Some(Allocation::default()),
        users: (0..254).map(|n| User::Other(Name::new(&n.to_string()))).collect(),
        failed: None,
        deleting: false,
    };
    let mut world = World::default();
    let (first, second) = (make::pod("p0"), make::pod("p1"));
    for pod in [&first, &second] {
        make::add_user(&mut world, pod, &key);
    }
    world.claims.insert(key.clone(), claim.clone());
    let mut engine = engine_of(&world);
    let before = decide(&mut engine, &BEST);
    let (group, seats) = sent(&world, &before).unwrap();
    engine.apply([Change::Assume(FlightId(1), group, seats)]);
    assert_eq!(decide(&mut engine, &BEST), rest(&before));
    claim.users.push(User::Pod(first));
    engine.apply([Change::Claim(key, Some(claim))]);
    assert_eq!(decide(&mut engine, &BEST), rest(&before));
}
