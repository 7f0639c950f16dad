//! A given set of devices, judged by the rules alone: is it lawful, what does it cost.
//!
//! How sets are judged is written from the rules and not from the search, which never calls it: what
//! the search finds is held against it. (Upstream's walk asks it what a set costs, which is no part
//! of walking.) The two share a few functions that answer for one device or one set, and a mistake
//! in these it would not see: what an allocation draws of capacities ([`draw`]), which compatibility
//! groups may join ([`Members`](super::charge::Members)), how many devices stay free
//! ([`free_left`]), and a set's best ring ([`best_ring`]). The brute force of the tests counts
//! draws without policies out by itself, rings are held by trying all orders, and the oracle of the
//! engine's tests, which is written from facts, has its own of draws, policies, groups and rings.
//! [`free_left`] only counts; scenarios hold it.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{Derived, Match};
use crate::cost::{DeviceCost, NicCost};
use crate::facts::{
    Align, Alternative, Amount, AttributeValue, Capacity, ClaimSpec, Constraint, Effect, Level,
    Link,
};
use crate::name::Name;

use super::capacity::{draw, is_plain};
use super::choose::{Pick, Price, Standing, Want, free_left};
use super::ring::best_ring;
use super::shape::Shape;
use super::usage::Usage;
use super::wear::Toll;

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
    if pod_keeps_levels(shape, want, picks) { Ok(()) } else { Err(Breach::Align) }
}

/// Whether all of the pod's devices are as near to each other as the pod requires, if it gets any.
fn pod_keeps_levels(shape: &Shape, want: &Want<'_>, picks: &[Pick]) -> bool {
    let of_pod = pods_devices(want, picks);
    picks.is_empty() || want.align.iter().all(|a| !a.required || aligned(shape, a.level, &of_pod))
}

/// All of the pod's devices, those of claims that were allocated before included.
fn pods_devices(want: &Want<'_>, picks: &[Pick]) -> BTreeSet<usize> {
    let chosen = picks.iter().map(|p| p.device);
    chosen.chain(want.fixed.iter().copied()).map(usize::from).collect()
}

fn devices_of(picks: &[&Pick]) -> BTreeSet<usize> {
    picks.iter().map(|p| usize::from(p.device)).collect()
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

/// The devices that take from counters, one for each pick that does: who only looks takes nothing,
/// and the shares of a device pay once.
fn payers(shape: &Shape, usage: &Usage, picks: &[Pick]) -> Vec<usize> {
    let takes: Vec<usize> =
        picks.iter().filter(|p| !p.admin).map(|p| usize::from(p.device)).collect();
    let again = |n: usize, at: usize| {
        takes[..n].contains(&at) || usage.shares.get(at).is_some_and(|shares| *shares > 0)
    };
    let pays = |(n, at): &(usize, usize)| !(shape.devices[*at].traits.shareable && again(*n, *at));
    takes.iter().copied().enumerate().filter(pays).map(|(_, at)| at).collect()
}

/// Counters and compatibility groups of all picks that take what they look at.
fn counters(shape: &Shape, usage: &Usage, picks: &[Pick]) -> Result<(), Breach> {
    let mut left = usage.counters_left.clone();
    let mut groups = usage.groups.clone();
    for at in payers(shape, usage, picks) {
        let traits = &shape.devices[at].traits;
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
    claims && pod_keeps_levels(shape, want, picks)
}

fn required(shape: &Shape, aligns: &[Align], of: &[&Pick]) -> Result<(), Breach> {
    let of = devices_of(of);
    let broken =
        !of.is_empty() && aligns.iter().any(|a| a.required && !aligned(shape, a.level, &of));
    if broken { Err(Breach::Align) } else { Ok(()) }
}

/// Whether the devices are of one domain at `level`, and something is known of it. One device alone
/// is in one domain, whatever is known.
fn aligned(shape: &Shape, level: Level, of: &BTreeSet<usize>) -> bool {
    if of.len() <= 1 {
        return true;
    }
    let must: Vec<usize> = of.iter().copied().filter(|at| shape.must_align(*at, level)).collect();
    let domains: BTreeSet<Option<u16>> = must.iter().map(|at| shape.domain(*at, level)).collect();
    of.iter().any(|at| shape.joins(*at, level))
        && (must.len() <= 1 || domains.len() == 1 && !domains.contains(&None))
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
    let toll = toll(shape, usage, picks);
    let free_left = free_left(shape, usage, picks);
    let price = Price { alternatives, devices, toll, free_left };
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
    let mut wish = |aligns: &[Align], of: &BTreeSet<usize>| {
        let unmet = aligns.iter().filter(|a| !a.required && !aligned(shape, a.level, of));
        unaligned += unmet.count();
    };
    for (claim, spec) in want.claims {
        let of: Vec<&Pick> = picks.iter().filter(|p| p.claim == *claim).collect();
        wish(&spec.align, &devices_of(&of));
    }
    let devices = pods_devices(want, picks);
    wish(want.align, &devices);
    let numa: BTreeSet<u16> = devices.iter().filter_map(|at| shape.numa(*at)).collect();
    let gpus: Vec<usize> = devices.iter().copied().filter(|at| shape.is_accelerator(*at)).collect();
    let dark = shape.is_silent() && devices.len() > 1;
    let link = |a: usize, b: usize| shape.link(a, b);
    let pairs = (0..gpus.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let farthest = pairs.map(|(a, b)| link(gpus[a], gpus[b])).max().unwrap_or(Link::IDEAL);
    let [off_switch, off_root, off_numa] = [Level::Switch, Level::Root, Level::Numa]
        .map(|level| without_partner(shape, level, &devices));
    DeviceCost {
        of_group: 0,
        unaligned: u16::try_from(unaligned).unwrap_or(u16::MAX),
        islands: beyond_first(distinct(islands(shape, gpus.iter().copied()))),
        slowest: if dark { Link::UNKNOWN } else { best_ring(&gpus, link) },
        farthest: if dark { Link::UNKNOWN } else { farthest },
        nics: NicCost { off_switch, off_root, off_numa },
        numa: beyond_first(numa.len()),
    }
}

fn beyond_first(n: usize) -> u16 {
    u16::try_from(n.saturating_sub(1)).unwrap_or(u16::MAX)
}

/// Network cards and served devices that find no fair share of each other in their own domain.
fn without_partner(shape: &Shape, level: Level, devices: &BTreeSet<usize>) -> u16 {
    let (nics, others): (Vec<usize>, Vec<usize>) =
        devices.iter().partition(|at| shape.is_nic(**at));
    let served: Vec<usize> = others.into_iter().filter(|at| shape.is_served(*at)).collect();
    if nics.is_empty() || served.is_empty() {
        return 0;
    }
    let of = |all: &[usize], domain: u16| {
        all.iter().filter(|at| shape.domain(**at, level) == Some(domain)).count()
    };
    let all: BTreeSet<Option<u16>> = devices.iter().map(|at| shape.domain(*at, level)).collect();
    let lone = |these: &[usize], those: &[usize]| {
        let share = these.len().div_ceil(those.len());
        let beyond = all
            .iter()
            .flatten()
            .map(|domain| of(these, *domain).saturating_sub(share * of(those, *domain)));
        let unknown = these.iter().filter(|at| shape.domain(**at, level).is_none()).count();
        beyond.sum::<usize>() + unknown
    };
    u16::try_from(lone(&served, &nics) + lone(&nics, &served)).unwrap_or(u16::MAX)
}

/// The island of each accelerator among these devices, where any are known; one whose island is unknown
/// is in its own.
pub(crate) fn islands(shape: &Shape, devices: impl Iterator<Item = usize>) -> Vec<u32> {
    if !knows_islands(shape) {
        return Vec::new();
    }
    let island = |at: usize| shape.domain(at, Level::Island);
    let own = |at: usize| u32::from(u16::MAX) + 1 + at as u32;
    let gpus = devices.filter(|at| shape.is_accelerator(*at));
    gpus.map(|at| island(at).map_or_else(|| own(at), u32::from)).collect()
}

/// Whether the island of any accelerator is known.
pub(crate) fn knows_islands(shape: &Shape) -> bool {
    let island = |at: usize| shape.domain(at, Level::Island);
    (0..shape.devices.len()).any(|at| shape.is_accelerator(at) && island(at).is_some())
}

fn distinct(of: Vec<u32>) -> usize {
    of.into_iter().collect::<BTreeSet<u32>>().len()
}

/// What is left of every counter after `picks`.
fn after(shape: &Shape, usage: &Usage, picks: &[Pick]) -> Vec<i128> {
    let mut left = usage.counters_left.clone();
    for at in payers(shape, usage, picks) {
        let device = &shape.devices[at];
        for (left, counter) in left.iter_mut().zip(&shape.counters) {
            if counter.pool == device.pool {
                *left = left.saturating_sub(counter.used_by(&device.traits.counters));
            }
        }
    }
    left
}

/// What `picks` take from later requests, by comparing before and after.
fn toll(shape: &Shape, usage: &Usage, picks: &[Pick]) -> Toll {
    let before = &usage.counters_left;
    let after = after(shape, usage, picks);
    let free = |at: usize, left: &[i128], picks: &[Pick]| {
        let device = &shape.devices[at];
        let of = || picks.iter().filter(|p| usize::from(p.device) == at);
        let shared = device.traits.shareable
            && (of().any(|p| !p.admin) || usage.shares.get(at).is_some_and(|s| *s > 0));
        let given = !device.traits.shareable && of().any(|p| !p.admin);
        let enough = left.iter().zip(&shape.counters).all(|(left, counter)| {
            let used = counter.used_by(&device.traits.counters);
            counter.pool != device.pool || used == 0 || used <= *left
        });
        !usage.is_taken(at) && !given && shape.trouble(at).is_none() && (shared || enough)
    };
    let all = 0..shape.devices.len();
    let lost = |at: &usize| free(*at, before, &[]) && !free(*at, &after, picks);
    let lost: Vec<usize> = all.clone().filter(lost).collect();
    let sizes = lost.iter().map(|at| size(shape, *at, |c| c.nanos));
    let mut lost_mi = sizes.fold(0, u32::saturating_add);
    let mut shared_mi = 0u32;
    let mut wholes_used = 0;
    for at in all.clone() {
        let traits = &shape.devices[at].traits;
        let of = picks.iter().filter(|p| usize::from(p.device) == at);
        let takes: Vec<&Pick> = of.filter(|p| traits.shareable || !p.admin).collect();
        if takes.is_empty() {
            continue;
        }
        wholes_used += u16::from(traits.counters.is_empty() && usage.is_untouched(at));
        if traits.shareable {
            let consumed = |c: &Capacity| {
                let position = traits.capacity.iter().position(|own| own.name == c.name);
                position.map_or(0, |p| usage.consumed[at][p])
            };
            let room = size(shape, at, |c| c.nanos.saturating_sub(consumed(c)));
            shared_mi = shared_mi.saturating_add(room);
            for pick in takes {
                let share = pick.share.iter().flatten();
                let draw = |c: &Capacity| {
                    share.clone().find(|(name, _)| *name == c.name).map_or(0, |(_, n)| *n)
                };
                lost_mi = lost_mi.saturating_add(size(shape, at, draw));
            }
        }
    }
    let mut sets: BTreeMap<(u16, &Name), (bool, bool)> = BTreeMap::new();
    for (counter, (before, after)) in shape.counters.iter().zip(before.iter().zip(&after)) {
        let set = sets.entry((counter.pool, &counter.set)).or_insert((true, false));
        set.0 &= *before == counter.total;
        set.1 |= before != after;
    }
    wholes_used += sets.values().filter(|(untouched, used)| *untouched && *used).count() as u16;
    Toll { islands_broken: broken(shape, usage, picks, &lost), wholes_used, lost_mi, shared_mi }
}

/// An amount of the capacity that tells a device's size, in Mi, rounded up.
fn size(shape: &Shape, at: usize, amount: impl Fn(&Capacity) -> i128) -> u32 {
    let capacity = &shape.devices[at].traits.capacity;
    let memory = capacity.iter().find(|c| &*c.name == "memory" || c.name.ends_with("/memory"));
    let most = capacity.iter().map(|c| c.nanos).max();
    let greatest = || capacity.iter().find(|c| Some(c.nanos) == most);
    let amount = memory.or_else(greatest).map_or(0, amount);
    let mi = 1_000_000_000 << 20;
    u32::try_from((amount.max(0) + (mi - 1)) / mi).unwrap_or(u32::MAX)
}

/// Islands whose devices were all untouched, of which some are used and some are neither used nor
/// lost.
fn broken(shape: &Shape, usage: &Usage, picks: &[Pick], lost: &[usize]) -> u16 {
    let mut islands: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for at in 0..shape.devices.len() {
        if let Some(domain) = shape.domain(at, Level::Island) {
            islands.entry(domain).or_default().push(at);
        }
    }
    let used = |at: &usize| {
        let shareable = shape.devices[*at].traits.shareable;
        picks.iter().any(|p| usize::from(p.device) == *at && (!p.admin || shareable))
    };
    let is_broken = |of: &&Vec<usize>| {
        of.iter().all(|at| usage.is_untouched(*at))
            && of.iter().any(used)
            && of.iter().any(|at| !used(at) && !lost.contains(at))
    };
    u16::try_from(islands.values().filter(is_broken).count()).unwrap_or(u16::MAX)
}
