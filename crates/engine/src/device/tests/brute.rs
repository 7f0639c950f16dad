//! Every set of devices of small random worlds, judged by the plain rules, against the search.

use std::collections::{BTreeMap, BTreeSet};

use crate::decision::DeviceFacts;
use crate::device::choose::{Price, Standing};
use crate::device::judge::Breach;
use crate::device::{Failure, Offer, Pick, Rivals, Shape, Want, choose, lawful, price, rivals};
use crate::facts::{Amount, ClaimSpec};
use crate::policy::{DeviceOrder, Policy};
use crate::reason::Reason;

use super::world::{Chance, World, counted_out, random};

const WORLDS: usize = 15_000;
const STEPS: u64 = 1_000_000;

/// What enumeration finds: the first lawful set in upstream's order, the best, and the devices of
/// each with its price.
#[derive(Default)]
pub(super) struct Found {
    first: Option<Vec<Pick>>,
    pub(super) best: Option<(Standing, Vec<Pick>)>,
    prices: Vec<(Price, BTreeSet<u16>)>,
}

/// Tries every set, requests and alternatives in order, devices in upstream's order.
pub(super) fn enumerate(
    world: &World,
    want: &Want<'_>,
    line: usize,
    picks: &mut Vec<Pick>,
    found: &mut Found,
) {
    let claims = want.claims.iter();
    let mut lines = claims.flat_map(|(c, spec)| (0..).zip(&spec.requests).map(move |r| (*c, r)));
    let Some((claim, (request, of))) = lines.nth(line) else {
        if lawful(&world.shape, &world.usage, want, picks).is_ok() {
            let (standing, _) = price(&world.shape, &world.usage, want, picks);
            found.first.get_or_insert_with(|| picks.clone());
            found.prices.push((standing.price, picks.iter().map(|p| p.device).collect()));
            if found.best.as_ref().is_none_or(|(best, _)| standing < *best) {
                found.best = Some((standing, picks.clone()));
            }
        }
        return;
    };
    for (alternative, asked) in (0..).zip(&of.alternatives) {
        let mut able = Vec::new();
        for (at, device) in (0..).zip(&world.shape.devices) {
            let names = device.traits.capacity.iter().map(|c| c.name.clone());
            let draws = counted_out(&device.traits, &asked.capacity).unwrap_or_default();
            let share = device.traits.shareable.then(|| names.zip(draws).collect());
            let admin = asked.admin;
            let pick = Pick { claim, request, alternative, device: at, admin, share };
            let alone = lawful(&world.shape, &world.usage, want, std::slice::from_ref(&pick));
            let never = [
                Breach::Pool,
                Breach::Selector,
                Breach::KeptBack,
                Breach::Taint,
                Breach::Taken,
                Breach::Capacity,
            ];
            if !alone.is_err_and(|breach| never.contains(&breach)) {
                able.push(pick);
            }
        }
        let count = match asked.amount {
            Amount::Count(count) => count as usize,
            Amount::All => able.len(),
        };
        subsets(&able, count, picks, &mut |picks| enumerate(world, want, line + 1, picks, found));
    }
}

fn subsets(able: &[Pick], left: usize, picks: &mut Vec<Pick>, see: &mut dyn FnMut(&mut Vec<Pick>)) {
    if left == 0 {
        return see(picks);
    }
    for at in 0..able.len() {
        picks.push(able[at].clone());
        subsets(&able[at + 1..], left - 1, picks, see);
        picks.pop();
    }
}

/// Whether the counts show what the reason says, and no earlier one.
fn tells(reason: Reason, facts: &DeviceFacts) -> bool {
    let asked = facts.asked.max(1);
    let DeviceFacts { seen, selected, tolerated, free, together, .. } = *facts;
    let funnel = seen >= selected && selected >= tolerated && tolerated >= free;
    let ruled = together < asked && (facts.attribute.is_some() || facts.level.is_some());
    let shown = [
        (Reason::NoDevices, seen == 0),
        (Reason::SelectorError, selected < asked && facts.selector.is_some()),
        (Reason::SelectorFalse, selected == 0 && facts.selector.is_some()),
        (Reason::TooFewDevices, selected > 0 && selected < asked),
        (Reason::DevicesKeptBack, tolerated < asked && facts.resource.is_some()),
        (Reason::DeviceTainted, tolerated < asked && asked <= selected && facts.taint.is_some()),
        (Reason::DevicesTaken, free < asked && asked <= tolerated),
        (Reason::CapacityShort, asked <= free && facts.resource.is_some()),
        (Reason::CountersShort, asked <= free),
        (Reason::AttributeMissing, ruled),
        (Reason::MatchUnmet, ruled),
        (Reason::DistinctUnmet, ruled),
        (Reason::LinksUnknown, ruled),
        (Reason::AlignUnmet, ruled),
    ];
    funnel && facts.request.is_some() && shown.iter().all(|(of, so)| *of != reason || *so)
}

/// Whether the request named is the first that fails by itself. (Levels are left out: by itself a
/// request says nothing about one that others may know.)
fn names_the_first(world: &World, want: &Want<'_>, reason: Reason, facts: &DeviceFacts) {
    if !world.align.is_empty() || world.claims.iter().any(|c| !c.align.is_empty()) {
        return;
    }
    for (claim, spec) in want.claims {
        for request in &spec.requests {
            let one = ClaimSpec { requests: [request.clone()].into(), ..(*spec).clone() };
            let mut found = Found::default();
            let alone = Want { claims: &[(*claim, &one)], ..*want };
            enumerate(world, &alone, 0, &mut Vec::new(), &mut found);
            let named = facts.request.as_deref().unwrap_or_default().split('/').next();
            if facts.claim == *claim && named == Some(request.name.as_str()) {
                let by_itself = reason <= Reason::CountersShort;
                assert!(!by_itself || found.first.is_none(), "{reason:?} {facts:?} {world:?}");
                return;
            }
            assert!(found.first.is_some(), "{reason:?} {facts:?} {world:?}");
        }
    }
}

pub(super) fn by_index(mut picks: Vec<Pick>) -> Vec<Pick> {
    picks.sort_by_key(|p| (p.claim, p.request, p.device));
    picks
}

fn check(world: &World, want: &Want<'_>, order: DeviceOrder) -> (Found, Result<Offer, Failure>) {
    let policy = Policy { device_order: order, ..Policy::default() };
    let answer = choose(&world.shape, &world.usage, want, &policy, &mut STEPS.clone());
    let mut found = Found::default();
    let asks_all = |a: &crate::facts::Alternative| a.amount == Amount::All;
    let mut alternatives =
        world.claims.iter().flat_map(|c| &c.requests).flat_map(|r| &r.alternatives);
    // A pool in trouble keeps a claim that could ask for all from anything, whatever else it asks.
    if world.shape.faults.is_empty() || !alternatives.any(asks_all) {
        enumerate(world, want, 0, &mut Vec::new(), &mut found);
    }
    (found, answer)
}

#[test]
fn the_best_set_is_the_best_of_all() {
    let mut chance = Chance::new(20_261);
    let mut reasons: BTreeMap<Reason, usize> = BTreeMap::new();
    let mut placed = 0;
    for n in 0..WORLDS {
        let world = random(&mut chance);
        world.with(|want| {
            let (found, answer) = check(&world, want, DeviceOrder::Best);
            match (found.best, answer) {
                (Some((standing, picks)), Ok(offer)) => {
                    let (own, free) = price(&world.shape, &world.usage, want, &offer.picks);
                    assert_eq!(offer.price, own.price, "world {n}: {offer:?} {world:?}");
                    assert_eq!(offer.free_left, free, "{n}");
                    assert_eq!(own, standing, "world {n}: {picks:?} {offer:?} {world:?}");
                    second_best(&world, want, &offer, &found.prices);
                    assert_eq!(by_index(offer.picks), by_index(picks), "world {n}: {world:?}");
                    placed += 1;
                }
                (None, Err(Failure::Reason { reason, facts, .. })) => {
                    assert!(tells(reason, &facts), "world {n}: {reason:?} {facts:?} {world:?}");
                    if world.shape.faults.is_empty() {
                        names_the_first(&world, want, reason, &facts);
                    }
                    *reasons.entry(reason).or_default() += 1;
                }
                (best, answer) => panic!("world {n}: {best:?} but {answer:?} in {world:?}"),
            }
        });
    }
    println!("{placed} of {WORLDS} placed; the others: {reasons:?}");
    assert!(placed > WORLDS / 5 && placed < WORLDS * 3 / 4);
    let could = Reason::ALL.iter().skip_while(|r| **r < Reason::PoolIncomplete);
    for reason in could.take_while(|r| **r < Reason::SearchBound) {
        assert!(reasons.get(reason).is_some_and(|n| *n >= 50), "{reason:?} is rare");
    }
}

/// Holds what stands beside the best against all sets.
fn second_best(world: &World, want: &Want<'_>, best: &Offer, prices: &[(Price, BTreeSet<u16>)]) {
    let Rivals { equal, second } =
        rivals(&world.shape, &world.usage, want, best, &mut STEPS.clone());
    let second = second.map(|offer| {
        let (own, _) = price(&world.shape, &world.usage, want, &offer.picks);
        assert_eq!(own.price, offer.price, "{world:?}");
        offer.price
    });
    let dearer = prices.iter().map(|(price, _)| *price).filter(|price| *price > best.price);
    assert_eq!(second, dearer.min(), "{world:?}");
    let same: BTreeSet<&BTreeSet<u16>> =
        prices.iter().filter(|(price, _)| *price == best.price).map(|(_, set)| set).collect();
    // A set is named with its devices as often as it has them.
    assert!(equal.is_some_and(|n| n as usize >= same.len()), "{equal:?} {same:?} {world:?}");
    let once = world.claims.iter().flat_map(|c| &c.requests).flat_map(|r| &r.alternatives);
    if once.clone().all(|a| !a.admin) && world.shape.devices.iter().all(|d| !d.traits.shareable) {
        assert_eq!(equal, u32::try_from(same.len()).ok(), "{world:?}");
    }
}

#[test]
fn upstreams_order_is_the_first_of_a_plain_search() {
    let mut chance = Chance::new(1_729);
    for n in 0..WORLDS / 2 {
        let world = random(&mut chance);
        world.with(|want| {
            let (found, answer) = check(&world, want, DeviceOrder::Upstream);
            match (found.first, answer) {
                (Some(picks), Ok(offer)) => assert_eq!(offer.picks, picks, "world {n}: {world:?}"),
                (None, Err(Failure::Reason { .. })) => {}
                (first, answer) => panic!("world {n}: {first:?} but {answer:?} in {world:?}"),
            }
        });
    }
}

/// The same world with its devices in the opposite order of slices.
fn reversed(world: &mut World) {
    let Shape { mut devices, faults, pools, mut pairs, counters, .. } = world.shape.clone();
    devices.reverse();
    pairs.reverse();
    let n = devices.len();
    let usage = &mut world.usage;
    let taken = (0..n).filter(|at| usage.is_taken(n - 1 - at)).fold(0, |mask, at| mask | 1 << at);
    usage.taken = vec![taken; usage.taken.len()];
    usage.shares.reverse();
    usage.consumed.reverse();
    world.fixed.iter_mut().for_each(|at| *at = n as u16 - 1 - *at);
    world.shape = Shape::new(devices, faults, pools, pairs, counters);
}

#[test]
fn the_best_set_does_not_depend_on_the_order_of_slices() {
    let mut chance = Chance::new(577);
    for n in 0..WORLDS / 5 {
        let mut world = random(&mut chance);
        let mut attributes = world.shape.devices.iter().flat_map(|d| &d.traits.attributes);
        // Of values that can't be compared, upstream takes the first in the order of slices.
        if attributes.any(|(_, value)| !value.is_scalar()) {
            continue;
        }
        let ask = |world: &World| {
            world.with(|want| {
                let (policy, mut steps) = (Policy::default(), STEPS);
                let answer = choose(&world.shape, &world.usage, want, &policy, &mut steps);
                match answer {
                    Ok(offer) => Ok(price(&world.shape, &world.usage, want, &offer.picks).0),
                    Err(Failure::Reason { reason, .. }) => Err(Some(reason)),
                    Err(Failure::Fatal { .. } | Failure::Bounded) => Err(None),
                }
            })
        };
        let answer = ask(&world);
        reversed(&mut world);
        assert_eq!(ask(&world), answer, "world {n}: {world:?}");
    }
}
