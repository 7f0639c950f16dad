//! A given set of devices, judged by the rules alone: is it lawful, what does it cost.
//!
//! Written from the rules and not from the search, which never calls it: what the search finds is
//! held against it. (Upstream's walk asks it what a set costs, which is no part of walking.)

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{Derived, Match};
use crate::cost::DeviceCost;
use crate::facts::{
    Align, Alternative, Amount, AttributeValue, ClaimSpec, Constraint, Effect, Level, LinkClass,
};

use super::capacity::{draw, is_plain};
use super::choose::{Pick, Price, Standing, Want, free_left};
use super::ring::best_ring;
use super::shape::Shape;
use super::usage::Usage;

/// What makes a set unlawful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Breach {
    /// A pick names a claim, request, alternative or device that is not there, or the picks are not
    /// in the order of claims and requests, or mix alternatives.
    Shape,
    /// A device of a pool that can't be allocated from.
    Pool,
    /// A selector does not say yes.
    Selector,
    /// It is not given out, for want of a gate or of a feature of the node.
    KeptBack,
    /// A taint is not tolerated.
    Taint,
    /// The device is held.
    Taken,
    /// The device is given twice.
    Twice,
    /// More or fewer devices than asked for.
    Count,
    /// A claim with more devices than an allocation holds.
    TooMany,
    /// Capacity that is not there, or a share that is not what it must be.
    Capacity,
    /// Counters below zero.
    Counters,
    /// Two that no compatibility group joins consume from one counter set.
    Groups,
    /// A constraint.
    Constraint,
    /// A required level.
    Align,
}

/// Whether `picks` may be given for `want`.
pub(crate) fn lawful(
    shape: &Shape,
    usage: &Usage,
    want: &Want<'_>,
    picks: &[Pick],
) -> Result<(), Breach> {
    let place = |p: &Pick| {
        let claim = want.claims.iter().position(|(index, _)| *index == p.claim);
        (claim, p.request, p.alternative)
    };
    if !picks.is_sorted_by_key(place) {
        return Err(Breach::Shape);
    }
    for (at, pick) in picks.iter().enumerate() {
        each(shape, usage, want, &picks[..at], pick)?;
    }
    sums(shape, usage, want, picks)?;
    for (claim, spec) in want.claims {
        let of: Vec<&Pick> = picks.iter().filter(|p| p.claim == *claim).collect();
        if of.len() > 32 {
            return Err(Breach::TooMany);
        }
        for request in 0..spec.requests.len() {
            let of: Vec<&Pick> =
                of.iter().copied().filter(|p| usize::from(p.request) == request).collect();
            counted(shape, want, spec, request, &of)?;
        }
        for constraint in &spec.constraints {
            constrained(shape, want, spec, constraint, &of)?;
        }
        required(shape, &spec.align, &of)?;
    }
    required(shape, want.align, &picks.iter().collect::<Vec<_>>())
}

fn asked<'a>(want: &Want<'a>, pick: &Pick) -> Result<&'a Alternative, Breach> {
    let claim = want.claims.iter().find(|(index, _)| *index == pick.claim);
    let request = claim.and_then(|(_, spec)| spec.requests.get(usize::from(pick.request)));
    request.and_then(|r| r.alternatives.get(usize::from(pick.alternative))).ok_or(Breach::Shape)
}

fn selected(shape: &Shape, want: &Want<'_>, alternative: &Alternative, at: usize) -> bool {
    let profile = shape.devices[at].traits.profile;
    shape.trouble(at).is_none()
        && alternative.selectors.iter().all(|s| want.matches.get(*s, profile) == Match::Yes)
}

/// One pick by itself and beside those before it.
fn each(
    shape: &Shape,
    usage: &Usage,
    want: &Want<'_>,
    before: &[Pick],
    pick: &Pick,
) -> Result<(), Breach> {
    let alternative = asked(want, pick)?;
    let at = usize::from(pick.device);
    let device = shape.devices.get(at).ok_or(Breach::Shape)?;
    if pick.admin != alternative.admin {
        return Err(Breach::Shape);
    }
    if shape.trouble(at).is_some() {
        return Err(Breach::Pool);
    }
    if !selected(shape, want, alternative, at) {
        return Err(Breach::Selector);
    }
    if shape.kept_back(at).is_some() {
        return Err(Breach::KeptBack);
    }
    let bad = device.traits.taints.iter().any(|taint| {
        taint.effect != Effect::PreferNoSchedule
            && !alternative.tolerations.iter().any(|t| t.tolerates(taint))
    });
    if bad {
        return Err(Breach::Taint);
    }
    if usage.is_taken(at) && !pick.admin {
        return Err(Breach::Taken);
    }
    let clash = |other: &Pick| {
        let same_claim = other.claim == pick.claim;
        let same_request = same_claim && other.request == pick.request;
        other.device == pick.device
            && (same_request || !device.traits.shareable && (same_claim || !pick.admin))
    };
    if before.iter().any(clash) { Err(Breach::Twice) } else { Ok(()) }
}

/// Capacity and counters of all picks together.
fn sums(shape: &Shape, usage: &Usage, want: &Want<'_>, picks: &[Pick]) -> Result<(), Breach> {
    let mut consumed = usage.consumed.clone();
    for pick in picks {
        let at = usize::from(pick.device);
        let traits = &shape.devices[at].traits;
        let asked = asked(want, pick)?;
        if !is_plain(traits) || !asked.capacity.is_empty() {
            let draws = draw(traits, &asked.capacity).map_err(|_| Breach::Capacity)?;
            let names = traits.capacity.iter().map(|c| c.name.clone());
            let share = names.zip(draws.iter().copied()).collect();
            if pick.share != traits.shareable.then_some(share) {
                return Err(Breach::Capacity);
            }
            if traits.shareable {
                for ((sum, draw), capacity) in
                    consumed[at].iter_mut().zip(draws).zip(&traits.capacity)
                {
                    *sum += draw;
                    if *sum > capacity.nanos {
                        return Err(Breach::Capacity);
                    }
                }
            }
        }
    }
    counters(shape, usage, picks)
}

/// Counters and compatibility groups of all picks that take what they look at.
fn counters(shape: &Shape, usage: &Usage, picks: &[Pick]) -> Result<(), Breach> {
    let mut left = usage.counters_left.clone();
    let mut groups = usage.groups.clone();
    let takes: Vec<&Pick> = picks.iter().filter(|p| !p.admin).collect();
    for (n, pick) in takes.iter().enumerate() {
        let at = usize::from(pick.device);
        let traits = &shape.devices[at].traits;
        let again = takes[..n].iter().any(|p| p.device == pick.device)
            || usage.shares.get(at).is_some_and(|s| *s > 0);
        if traits.shareable && again {
            continue;
        }
        for (left, counter) in left.iter_mut().zip(&shape.counters) {
            let used = counter.used_by(&traits.counters);
            if counter.pool == shape.devices[at].pool && used > 0 {
                *left -= used;
                if *left < 0 {
                    return Err(Breach::Counters);
                }
            }
        }
        for used in &traits.counters {
            let Some(place) = shape.grouped(shape.devices[at].pool, &used.name) else { continue };
            let own = traits.groups(&used.name);
            if !groups[place].admits(own) {
                return Err(Breach::Groups);
            }
            groups[place] = groups[place].with(own);
        }
    }
    Ok(())
}

/// The right number of devices, of one alternative.
fn counted(
    shape: &Shape,
    want: &Want<'_>,
    spec: &ClaimSpec,
    request: usize,
    of: &[&Pick],
) -> Result<(), Breach> {
    let Some(first) = of.first() else { return Err(Breach::Count) };
    let alternative = &spec.requests[request].alternatives[usize::from(first.alternative)];
    if of.iter().any(|p| p.alternative != first.alternative) {
        return Err(Breach::Shape);
    }
    let count = match alternative.amount {
        Amount::Count(count) => count as usize,
        Amount::All => {
            if !shape.faults.is_empty() {
                return Err(Breach::Pool);
            }
            let able = |at: &usize| {
                let traits = &shape.devices[*at].traits;
                let plain = alternative.capacity.is_empty() && is_plain(traits);
                traits.hidden().is_none()
                    && selected(shape, want, alternative, *at)
                    && (plain || draw(traits, &alternative.capacity).is_ok())
            };
            (0..shape.devices.len()).filter(able).count()
        }
    };
    if of.len() == count { Ok(()) } else { Err(Breach::Count) }
}

fn constrained(
    shape: &Shape,
    want: &Want<'_>,
    spec: &ClaimSpec,
    constraint: &Constraint,
    of: &[&Pick],
) -> Result<(), Breach> {
    let covered = |p: &&&Pick| {
        let request = &spec.requests[usize::from(p.request)];
        let sub = &request.alternatives[usize::from(p.alternative)].name;
        let full = sub.as_ref().map(|s| format!("{}/{s}", request.name));
        constraint.requests.is_empty()
            || constraint
                .requests
                .iter()
                .any(|name| *name == request.name || full.as_ref().is_some_and(|f| **f == **name))
    };
    // Upstream adds a request's devices in the order of pools and slices.
    let mut of: Vec<&&Pick> = of.iter().filter(covered).collect();
    of.sort_by_key(|p| (p.request, p.device));
    let mut common: Option<BTreeSet<&AttributeValue>> = None;
    for pick in of {
        let request = &spec.requests[usize::from(pick.request)];
        let alternative = &request.alternatives[usize::from(pick.alternative)];
        let value =
            compared(shape, want, alternative, constraint, pick).ok_or(Breach::Constraint)?;
        let own: BTreeSet<&AttributeValue> = match value {
            AttributeValue::List(all) => all.iter().collect(),
            AttributeValue::Unset => BTreeSet::new(),
            AttributeValue::Int(_)
            | AttributeValue::Bool(_)
            | AttributeValue::String(_)
            | AttributeValue::Version(_) => [value].into(),
        };
        common = Some(match common {
            None => own,
            // What can't be compared stands first or nowhere.
            Some(_) if own.is_empty() => return Err(Breach::Constraint),
            Some(all) if constraint.distinct && all.is_disjoint(&own) => &all | &own,
            Some(all) if !constraint.distinct && !all.is_disjoint(&own) => &all & &own,
            Some(_) => return Err(Breach::Constraint),
        });
    }
    Ok(())
}

/// The value that a constraint compares: the derived one where the request has it.
fn compared<'a>(
    shape: &'a Shape,
    want: &Want<'a>,
    alternative: &Alternative,
    constraint: &Constraint,
    pick: &Pick,
) -> Option<&'a AttributeValue> {
    let traits = &shape.devices[usize::from(pick.device)].traits;
    let Some(expression) = alternative.derives(&constraint.attribute) else {
        return traits.attribute(&constraint.attribute);
    };
    match want.matches.derived(expression, traits.profile)? {
        Derived::Value(value) => Some(value),
        Derived::Error => None,
    }
}

/// Whether `picks` are as near to each other as is required.
pub(super) fn keeps_levels(shape: &Shape, want: &Want<'_>, picks: &[Pick]) -> bool {
    let claims = want.claims.iter().all(|(claim, spec)| {
        let of: Vec<&Pick> = picks.iter().filter(|p| p.claim == *claim).collect();
        required(shape, &spec.align, &of).is_ok()
    });
    claims && required(shape, want.align, &picks.iter().collect::<Vec<_>>()).is_ok()
}

fn required(shape: &Shape, aligns: &[Align], of: &[&Pick]) -> Result<(), Breach> {
    let broken =
        !of.is_empty() && aligns.iter().any(|a| a.required && !aligned(shape, a.level, of));
    if broken { Err(Breach::Align) } else { Ok(()) }
}

/// Whether the devices are of one domain at `level`, and something is known of it.
fn aligned(shape: &Shape, level: Level, of: &[&Pick]) -> bool {
    let devices = || of.iter().map(|p| usize::from(p.device));
    let domains: BTreeSet<Option<u32>> = devices()
        .filter(|at| shape.must_align(*at, level))
        .map(|at| shape.domain(at, level))
        .collect();
    devices().any(|at| shape.joins(at, level)) && domains.len() <= 1 && !domains.contains(&None)
}

/// What `picks`, lawful ones, cost, and how many exclusive devices stay free.
pub(crate) fn price(
    shape: &Shape,
    usage: &Usage,
    want: &Want<'_>,
    picks: &[Pick],
) -> (Standing, u32) {
    let chosen: BTreeMap<(u16, u16), u16> =
        picks.iter().map(|p| ((p.claim, p.request), p.alternative)).collect();
    let alternatives = chosen.values().map(|a| u32::from(*a)).sum();
    let devices = device_cost(shape, want, picks);
    let islands_broken = broken(shape, usage, picks);
    let free_left = free_left(shape, usage, picks);
    let price = Price { alternatives, devices, islands_broken, free_left };
    let rank = |p: &Pick| shape.devices[usize::from(p.device)].rank;
    let mut sorted: Vec<(usize, u16, u16, u16)> = Vec::new();
    for (at, (claim, _)) in want.claims.iter().enumerate() {
        let of = picks.iter().filter(|p| p.claim == *claim);
        sorted.extend(of.map(|p| (at, p.request, rank(p), p.alternative)));
    }
    sorted.sort_unstable();
    let ranks = sorted.iter().map(|s| s.2).collect();
    let order = sorted.iter().map(|s| s.3).collect();
    (Standing { price, ranks, order }, free_left)
}

fn device_cost(shape: &Shape, want: &Want<'_>, picks: &[Pick]) -> DeviceCost {
    let mut unaligned = 0;
    let mut wish = |aligns: &[Align], of: &[&Pick]| {
        let unmet = aligns.iter().filter(|a| !a.required && !aligned(shape, a.level, of));
        unaligned += unmet.count();
    };
    for (claim, spec) in want.claims {
        wish(&spec.align, &picks.iter().filter(|p| p.claim == *claim).collect::<Vec<_>>());
    }
    wish(want.align, &picks.iter().collect::<Vec<_>>());
    let devices: BTreeSet<usize> = picks.iter().map(|p| usize::from(p.device)).collect();
    let beyond_first = |n: usize| u16::try_from(n.saturating_sub(1)).unwrap_or(u16::MAX);
    let domains = |level: Level| {
        let known: BTreeSet<u32> =
            devices.iter().filter_map(|at| shape.domain(*at, level)).collect();
        beyond_first(known.len())
    };
    let gpus: Vec<usize> = devices.iter().copied().filter(|at| shape.is_accelerator(*at)).collect();
    let nics = devices.iter().any(|at| shape.devices[*at].accelerator == Some(false));
    DeviceCost {
        unaligned: u16::try_from(unaligned).unwrap_or(u16::MAX),
        islands: beyond_first(islands(shape, &gpus)),
        slowest: if shape.is_silent() && devices.len() > 1 {
            LinkClass::Unknown
        } else {
            best_ring(gpus.len(), |a, b| shape.link(gpus[a], gpus[b]))
        },
        roots: if nics { domains(Level::Root) } else { 0 },
        numa: domains(Level::Numa),
    }
}

/// Islands among accelerators; one whose island is unknown is its own, where any are known.
fn islands(shape: &Shape, gpus: &[usize]) -> usize {
    let island = |at: usize| shape.domain(at, Level::Island);
    let any = (0..shape.devices.len()).any(|at| shape.is_accelerator(at) && island(at).is_some());
    if !any {
        return 0;
    }
    let known: BTreeSet<u32> = gpus.iter().filter_map(|at| island(*at)).collect();
    known.len() + gpus.iter().filter(|at| island(**at).is_none()).count()
}

/// Islands whose devices were all untouched, of which some are used and some are not.
fn broken(shape: &Shape, usage: &Usage, picks: &[Pick]) -> u16 {
    let mut islands: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for at in 0..shape.devices.len() {
        if let Some(domain) = shape.domain(at, Level::Island) {
            islands.entry(domain).or_default().push(at);
        }
    }
    let used = |at: &&usize| {
        let shareable = shape.devices[**at].traits.shareable;
        picks.iter().any(|p| usize::from(p.device) == **at && (!p.admin || shareable))
    };
    let is_broken = |of: &&Vec<usize>| {
        let count = of.iter().filter(used).count();
        of.iter().all(|at| usage.is_untouched(*at)) && count > 0 && count < of.len()
    };
    u16::try_from(islands.values().filter(is_broken).count()).unwrap_or(u16::MAX)
}
