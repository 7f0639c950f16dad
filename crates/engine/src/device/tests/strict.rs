//! Errors of selectors where they end the pod's attempt, against a plain search that goes upstream's
//! way device by device.

use crate::change::Match;
use crate::device::{Failure, Pick, Want, choose, lawful};
use crate::facts::{Amount, ClaimSpec};
use crate::policy::{DeviceOrder, Policy};

use super::world::{Chance, World, counted_out, random};

#[derive(Debug, PartialEq, Eq)]
enum Walk {
    Found(Vec<Pick>),
    Nothing,
    Fatal(u16),
}

/// Goes on from `picks`: the line, its alternative, the next device to look at.
struct At {
    line: usize,
    alternative: usize,
    from: usize,
    left: u32,
}

fn walk_line(world: &World, want: &Want<'_>, line: usize, picks: &mut Vec<Pick>) -> Walk {
    let all: Vec<_> = want.claims.iter().flat_map(|(_, spec)| &spec.requests).collect();
    let Some(request) = all.get(line) else { return Walk::Found(picks.clone()) };
    for (alternative, asked) in request.alternatives.iter().enumerate() {
        let Amount::Count(left) = asked.amount else { panic!("left out before") };
        match walk(world, want, &At { line, alternative, from: 0, left }, picks) {
            Walk::Nothing => {}
            end @ (Walk::Found(_) | Walk::Fatal(_)) => return end,
        }
    }
    Walk::Nothing
}

fn walk(world: &World, want: &Want<'_>, at: &At, picks: &mut Vec<Pick>) -> Walk {
    if at.left == 0 {
        return walk_line(world, want, at.line + 1, picks);
    }
    let claims = (0..).zip(want.claims);
    let mut lines = claims.flat_map(|(c, (_, spec))| (0..spec.requests.len()).map(move |r| (c, r)));
    let (claim, request) = lines.nth(at.line).unwrap();
    let asked = &want.claims[usize::from(claim)].1.requests[request].alternatives[at.alternative];
    for device in at.from..world.shape.devices.len() {
        let traits = &world.shape.devices[device].traits;
        let held = |p: &Pick| usize::from(p.device) == device && (!asked.admin || p.claim == claim);
        let in_use = world.usage.is_taken(device) && !asked.admin
            || !traits.shareable && picks.iter().any(held);
        if world.shape.trouble(device).is_some() || in_use || traits.hidden().is_some() {
            continue;
        }
        let verdicts = asked.selectors.iter().map(|s| want.matches.get(*s, traits.profile));
        match verdicts.into_iter().find(|v| *v != Match::Yes) {
            Some(Match::Error) => return Walk::Fatal(u16::try_from(device).unwrap()),
            Some(Match::No) => continue,
            Some(Match::Yes) | None => {}
        }
        let Some(draws) = counted_out(traits, &asked.capacity) else { continue };
        let names = traits.capacity.iter().map(|c| c.name.clone());
        picks.push(Pick {
            claim,
            request: u16::try_from(request).unwrap(),
            alternative: u16::try_from(at.alternative).unwrap(),
            device: u16::try_from(device).unwrap(),
            admin: asked.admin,
            share: traits.shareable.then(|| names.zip(draws).collect()),
        });
        if holds_so_far(world, want, picks) {
            let next = At { from: device + 1, left: at.left - 1, ..*at };
            match walk(world, want, &next, picks) {
                Walk::Nothing => {}
                end @ (Walk::Found(_) | Walk::Fatal(_)) => return end,
            }
        }
        picks.pop();
    }
    Walk::Nothing
}

/// Whether the picks are lawful for what was asked up to here.
fn holds_so_far(world: &World, want: &Want<'_>, picks: &[Pick]) -> bool {
    let mut claims: Vec<ClaimSpec> = Vec::new();
    for (claim, spec) in want.claims {
        let of = |request: usize| {
            let is = |p: &&Pick| p.claim == *claim && usize::from(p.request) == request;
            picks.iter().filter(is).count()
        };
        let mut cut = (*spec).clone();
        let mut requests = spec.requests.to_vec();
        requests.retain({
            let mut at = 0;
            move |_| {
                at += 1;
                of(at - 1) > 0
            }
        });
        for (at, request) in requests.iter_mut().enumerate() {
            for alternative in &mut request.alternatives {
                alternative.amount = Amount::Count(u32::try_from(of(at)).unwrap());
            }
        }
        cut.requests = requests.into();
        claims.push(cut);
    }
    let claims: Vec<(u16, &ClaimSpec)> = (0..).zip(&claims).collect();
    lawful(&world.shape, &world.usage, &Want { claims: &claims, ..*want }, picks).is_ok()
}

#[test]
fn errors_end_the_attempt_exactly_where_upstream_meets_them() {
    let mut chance = Chance::new(31_337);
    let policy =
        Policy { device_order: DeviceOrder::Upstream, strict_cel: true, ..Policy::default() };
    let (mut fatal, mut found) = (0, 0);
    for n in 0..6_000 {
        let world = random(&mut chance);
        let mut aligns = world.claims.iter().flat_map(|c| &c.align).chain(&world.align);
        let requests = world.claims.iter().flat_map(|c| &c.requests);
        let mut alternatives = requests.flat_map(|r| &r.alternatives);
        if alternatives.any(|a| a.amount == Amount::All) || aligns.any(|a| a.required) {
            continue;
        }
        world.with(|want| {
            let answer = choose(&world.shape, &world.usage, want, &policy, &mut 1_000_000);
            let own = match answer {
                Ok(offer) => Walk::Found(offer.picks),
                Err(Failure::Fatal { device: Some(device), .. }) => Walk::Fatal(device),
                Err(Failure::Fatal { device: None, .. }) => panic!("no limit is passed"),
                Err(Failure::Reason { .. } | Failure::Bounded) => Walk::Nothing,
            };
            let plain = walk_line(&world, want, 0, &mut Vec::new());
            fatal += u32::from(matches!(plain, Walk::Fatal(_)));
            found += u32::from(matches!(plain, Walk::Found(_)));
            assert_eq!(own, plain, "world {n}: {world:?}");
        });
    }
    assert!(fatal > 200 && found > 200, "{fatal} {found}");
}
