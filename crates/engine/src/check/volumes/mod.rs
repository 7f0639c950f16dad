//! What a pod's volumes come to, before and on a node: VolumeRestrictions, NodeVolumeLimits,
//! VolumeBinding and VolumeZone, in this order.
//!
//! [`resolve`] is their PreFilter: which claims have their volume, which wait for their pod to be
//! placed, and what makes all of it impossible.

mod bind;
mod limits;
mod restrict;
mod zone;

use std::sync::Arc;

use super::Failing;
use super::claims::Stopped;
use crate::decision::{Example, Facts, VolumeFacts, VolumeLack};
use crate::facts::Request;
use crate::name::{Name, NodeKey, VolumeClaimKey, VolumeKey};
use crate::reason::{Reason, Status};
use crate::state::{Decided, State};
use crate::storage::{Ephemeral, VolumeClaim, VolumeGrant, VolumeUse};
use bind::Candidates;

/// Removing pods can't help.
const NEVER: Status = Status::UnschedulableAndUnresolvable;

/// What a request's volumes come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mounts {
    /// A claim for one pod alone that another pod uses.
    in_use: Option<VolumeClaimKey>,
    claims: Vec<Mount>,
    /// As if every other pod were gone.
    emptied: bool,
}

/// A claim among a request's volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// Index into the request's volumes.
    at: u16,
    /// Its name, where it has one.
    name: Name,
    /// VolumeZone looks at it: it was not made for the pod.
    zoned: bool,
    state: Binding,
}

/// How far a claim is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Binding {
    /// It has its volume.
    Bound(VolumeKey),
    /// It waits for its pod to be placed.
    Waits(Box<Waiting>),
    /// Nobody can say which volume it will have.
    Open,
}

/// A claim that waits for its pod.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiting {
    size_nanos: i128,
    class: Name,
    /// A volume is being made for it on this node.
    selected: Option<NodeKey>,
    /// It says how large it must be: room is asked for it.
    sized: bool,
    candidates: Candidates,
}

/// What a request's volumes come to, or what makes it impossible.
pub(crate) fn resolve(
    state: &State,
    request: &Request,
    emptied: bool,
) -> Result<Option<Arc<Mounts>>, Stopped> {
    if request.volumes.is_empty() {
        return Ok(None);
    }
    let stopped = stopped(state, request, emptied);
    if let Some(first) = stopped.into_iter().next() {
        return Err(first);
    }
    let mut mounts = Mounts { in_use: None, claims: Vec::new(), emptied };
    for (at, mounted) in request.volumes.iter().enumerate() {
        if let VolumeUse::Claim(key) = mounted
            && mounts.in_use.is_none()
            && !emptied
            && state.storage.claim(key).is_some_and(|(claim, _)| claim.is_for_one_pod())
            && state.is_mounted(key)
        {
            mounts.in_use = Some(key.clone());
        }
        let found = find(state, mounted, emptied);
        let binding = match &found {
            Found::None => continue,
            Found::Missing(_) | Found::NotMade(_) => Binding::Open,
            Found::Claim(claim, decided) => {
                binding(state, mounted.claim(), claim, *decided, emptied)
            }
        };
        let name = mounted.claim().map(|key| key.0.name.clone()).unwrap_or_default();
        let zoned = matches!(mounted, VolumeUse::Claim(_));
        mounts.claims.push(Mount { at: at as u16, name, zoned, state: binding });
    }
    Ok(Some(Arc::new(mounts)))
}

/// Everything that makes the request impossible before any node, in the order of the plugins:
/// VolumeRestrictions, VolumeBinding, VolumeZone.
pub(crate) fn stopped(state: &State, request: &Request, emptied: bool) -> Vec<Stopped> {
    let mut all = Vec::new();
    let missing = request.volumes.iter().find_map(|mounted| match find(state, mounted, emptied) {
        Found::Missing(name) => Some(stop(Reason::VolumeClaimMissing, &name, |_| {})),
        Found::None | Found::NotMade(_) | Found::Claim(..) => None,
    });
    all.extend(missing);
    let unusable = request.volumes.iter().find_map(|m| unusable(state, m, emptied));
    let unbound = || request.volumes.iter().find_map(|m| unbound(state, m, emptied));
    all.extend(unusable.or_else(unbound));
    all.extend(request.volumes.iter().find_map(|m| volume_missing(state, m)));
    all
}

/// What is there of something that a pod mounts.
enum Found<'a> {
    /// It is no claim.
    None,
    /// A claim that does not exist.
    Missing(Name),
    /// A claim that is yet to be made for the pod.
    NotMade(Name),
    /// A claim, and what seats make of it.
    Claim(&'a VolumeClaim, Option<&'a Decided>),
}

fn find<'a>(state: &'a State, mounted: &'a VolumeUse, emptied: bool) -> Found<'a> {
    let claim = |key| {
        let storage = &state.storage;
        let found = if emptied { storage.claim_untried(key) } else { storage.claim(key) };
        found.map(|(claim, decided)| Found::Claim(claim, decided))
    };
    match mounted {
        VolumeUse::Disk { .. } => Found::None,
        VolumeUse::Claim(key) => claim(key).unwrap_or_else(|| Found::Missing(key.0.name.clone())),
        VolumeUse::Ephemeral(made) => {
            let found = made.claim.as_ref().and_then(claim);
            match (&made.planned, found) {
                (_, Some(found)) => found,
                (Some(planned), None) => Found::Claim(planned, None),
                (None, None) => {
                    let name = made.claim.as_ref().map(|key| key.0.name.clone());
                    Found::NotMade(name.unwrap_or_default())
                }
            }
        }
    }
}

/// VolumeBinding's PreFilter: a claim that can't be used whatever it is bound to.
fn unusable(state: &State, mounted: &VolumeUse, emptied: bool) -> Option<Stopped> {
    let claim = match find(state, mounted, emptied) {
        Found::None | Found::Missing(_) => return None,
        Found::NotMade(_) if emptied => return None,
        Found::NotMade(name) => return Some(stop(Reason::VolumeClaimNotMade, &name, |_| {})),
        Found::Claim(claim, _) => claim,
    };
    let name = mounted.claim().map(|key| key.0.name.clone()).unwrap_or_default();
    if claim.lost {
        let volume = claim.volume.as_ref().map(|volume| volume.0.clone());
        return Some(stop(Reason::VolumeClaimLost, &name, |facts| facts.volume = volume));
    }
    if claim.deleting {
        return Some(stop(Reason::VolumeClaimDeleting, &name, |_| {}));
    }
    match mounted {
        VolumeUse::Ephemeral(made) if !is_of(claim, made) => {
            Some(stop(Reason::VolumeClaimOfOther, &name, |_| {}))
        }
        VolumeUse::Ephemeral(_) | VolumeUse::Claim(_) | VolumeUse::Disk { .. } => None,
    }
}

/// Whether the claim was made for this very pod.
fn is_of(claim: &VolumeClaim, made: &Ephemeral) -> bool {
    let (name, uid) = &made.pod;
    let planned = made.planned.as_deref().is_some_and(|planned| std::ptr::eq(planned, claim));
    planned
        || claim.owner.as_ref().is_some_and(|(owner, of)| {
            owner == name && (of == uid || of.is_empty() || uid.is_empty())
        })
}

/// VolumeBinding's PreFilter: a claim that does not wait for its pod and has no volume yet. In the
/// emptied cluster it may have any.
fn unbound(state: &State, mounted: &VolumeUse, emptied: bool) -> Option<Stopped> {
    let Found::Claim(claim, decided) = find(state, mounted, emptied) else { return None };
    let class = state.storage.class(claim);
    let bound = claim.volume.is_some() && claim.bound;
    let waits = state.storage.waits(claim);
    if emptied || bound || waits || decided.is_some() {
        return None;
    }
    let name = mounted.claim().map(|key| key.0.name.clone()).unwrap_or_default();
    let class_name = state.storage.class_name(claim);
    let lack = match (&claim.volume, class) {
        (Some(_), _) => VolumeLack::HalfBound,
        (None, Some(_)) => VolumeLack::Immediate,
        (None, None) if class_name.is_empty() => VolumeLack::NoClass,
        (None, None) => VolumeLack::ClassMissing,
    };
    Some(stop(Reason::VolumeClaimUnbound, &name, |facts| {
        facts.volume = claim.volume.as_ref().map(|volume| volume.0.clone());
        facts.class = (!class_name.is_empty()).then(|| Name::new(class_name));
        facts.lack = Some(lack);
    }))
}

/// VolumeZone's PreFilter: the volume that a claim names does not exist.
fn volume_missing(state: &State, mounted: &VolumeUse) -> Option<Stopped> {
    let VolumeUse::Claim(key) = mounted else { return None };
    let (claim, _) = state.storage.claim(key)?;
    let volume = claim.volume.as_ref()?;
    if state.storage.volume(volume).is_some() {
        return None;
    }
    let volume = volume.0.clone();
    Some(stop(Reason::VolumeMissing, &key.0.name, |facts| facts.volume = Some(volume)))
}

fn stop(reason: Reason, claim: &Name, more: impl FnOnce(&mut VolumeFacts)) -> Stopped {
    let mut facts = VolumeFacts { claim: claim.clone(), ..VolumeFacts::default() };
    more(&mut facts);
    Box::new((reason, Example { facts: Facts::Volume(Box::new(facts)), ..Example::default() }))
}

fn binding(
    state: &State,
    key: Option<&VolumeClaimKey>,
    claim: &VolumeClaim,
    decided: Option<&Decided>,
    emptied: bool,
) -> Binding {
    if let Some(volume) = claim.volume.as_ref().filter(|_| claim.bound) {
        return Binding::Bound(volume.clone());
    }
    let mut selected = claim.selected_node.clone();
    match decided {
        Some(Decided::Volume(volume)) => return Binding::Bound(volume.clone()),
        Some(Decided::Made(node)) => selected = selected.or_else(|| Some(node.clone())),
        None => {}
    }
    if !state.storage.waits(claim) {
        return Binding::Open;
    }
    let class = Name::new(state.storage.class_name(claim));
    let candidates = match selected {
        Some(_) => Candidates::default(),
        None => Candidates::new(state, key, claim, &class, emptied),
    };
    Binding::Waits(Box::new(Waiting {
        size_nanos: claim.size_nanos.unwrap_or(0),
        sized: claim.size_nanos.is_some(),
        class,
        selected,
        candidates,
    }))
}

/// What a node makes of a request's volumes: what becomes of the claims that wait, or the first check
/// that fails.
pub(crate) fn first(
    state: &mut State,
    request: &Request,
    mounts: &Mounts,
    slot: u32,
) -> Result<Vec<VolumeGrant>, Failing> {
    restrict::check(state, request, mounts, slot)?;
    limits::check(state, request, mounts, slot)?;
    let first = |mut failing: Vec<Failing>| failing.swap_remove(0);
    let grants = bind::check(state, mounts, slot).map_err(first)?;
    zone::check(state, mounts, slot)?;
    Ok(grants)
}

/// kube-scheduler's VolumeBinding score of a node that fits.
pub(crate) fn score(state: &State, mounts: &Mounts, slot: u32) -> i64 {
    bind::score(state, mounts, slot)
}

/// Every one of these checks that fails on a node, in order.
pub(crate) fn all(
    state: &mut State,
    request: &Request,
    mounts: &Mounts,
    slot: u32,
) -> Vec<Failing> {
    let mut failing: Vec<Failing> = Vec::new();
    failing.extend(restrict::check(state, request, mounts, slot).err());
    failing.extend(limits::check(state, request, mounts, slot).err());
    failing.extend(bind::check(state, mounts, slot).err().into_iter().flatten());
    failing.extend(zone::check(state, mounts, slot).err());
    failing
}

/// A failing check of a claim or its volume.
fn failing(
    reason: Reason,
    status: Status,
    claim: &Name,
    more: impl FnOnce(&mut VolumeFacts),
) -> Failing {
    let mut facts = VolumeFacts { claim: claim.clone(), ..VolumeFacts::default() };
    more(&mut facts);
    Failing::new(reason, status).with(Facts::Volume(Box::new(facts)))
}
