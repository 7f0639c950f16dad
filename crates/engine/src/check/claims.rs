//! What a request's claims come to, before and on a node (kube-scheduler's DynamicResources).
//!
//! [`resolve`] is its PreFilter: which claims are allocated already and pin the pod to nodes, which
//! are still to be allocated, and what makes all of it impossible. The choice of devices is
//! [`device`](crate::device)'s.

use std::sync::Arc;

use super::Failing;
use super::volumes::Mounts;
use crate::check::fact::{any_term, names};
use crate::decision::{Example, Facts};
use crate::facts::{Align, BindingFailure, ClaimSpec, ClaimUse, NodeTerm, Request, User};
use crate::name::{ClaimKey, Name, NodeKey, PodKey, Shared, Timestamp};
use crate::reason::{Reason, Status};
use crate::state::{ClaimState, State};

/// Most users of one claim (`status.reservedFor`, resource.k8s.io/v1). kube-scheduler does not look
/// and the API server refuses the write.
pub(crate) const USERS_MAX: usize = 256;

/// What a request's claims come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Claims that are allocated: the pod must go where all of them can be used.
    pub(crate) pinned: Vec<Pinned>,
    /// Claims still to be allocated.
    pub(crate) wanted: Wanted,
    /// What its volumes come to, where it has any.
    pub(crate) mounts: Option<Arc<Mounts>>,
}

/// A claim that is allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pinned {
    pub(crate) claim: ClaimKey,
    /// From where it can be used; none is everywhere.
    pub(crate) nodes: Option<Box<[NodeTerm]>>,
    /// Nobody but this pod uses it: it may be given up and allocated anew.
    pub(crate) movable: bool,
    /// Why its allocation is of no use anywhere, if that is so.
    pub(crate) failed: Option<BindingFailure>,
    /// How early in its lists the alternatives stand that it was given.
    pub(crate) early: u32,
}

/// What devices are asked for, all claims together. Equal ones share their answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    /// Index into the request's claims, and the spec.
    pub(crate) claims: Vec<(u16, Shared<ClaimSpec>)>,
    /// The pod's own wishes for nearness.
    pub(crate) align: Box<[Align]>,
}

/// Who asks, where it exists, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) pod: Option<&'a PodKey>,
    pub(crate) now: Timestamp,
}

/// What makes a request impossible before any node is looked at.
pub(crate) type Stopped = Box<(Reason, Example)>;

/// Sorts a request's claims into those that pin it and those that it still wants; or says what
/// makes it impossible. `emptied`: as if every other pod were gone, so that what only pods use is
/// free.
pub(crate) fn resolve(
    state: &State,
    request: &Request,
    asker: Asker<'_>,
    emptied: bool,
) -> Result<Resolved, Stopped> {
    let mut resolved = Resolved::default();
    resolved.wanted.align = request.align.clone();
    for (at, claim) in request.claims.iter().enumerate() {
        match claim {
            ClaimUse::Own(spec) => want(&mut resolved, at, spec)?,
            ClaimUse::Named(key) | ClaimUse::PerGroup(key) => {
                // A claim that is named twice is one claim.
                if !is_named(&request.claims[..at], key) {
                    let alone = matches!(claim, ClaimUse::Named(_));
                    named(state, &mut resolved, (at, key), alone, asker, emptied)?;
                }
            }
        }
    }
    Ok(resolved)
}

/// Whether one of these uses is of this claim.
pub(crate) fn is_named(uses: &[ClaimUse], claim: &ClaimKey) -> bool {
    uses.iter().any(|other| other.shared() == Some(claim))
}

pub(crate) fn object(reason: Reason, subject: &Name, detail: &Name) -> Stopped {
    let facts = Facts::Subject { subject: subject.clone(), detail: detail.clone() };
    Box::new((reason, Example { facts, ..Example::default() }))
}

fn want(resolved: &mut Resolved, at: usize, spec: &Shared<ClaimSpec>) -> Result<(), Stopped> {
    if let Some(fault) = &spec.fault {
        return Err(object(fault.reason, &fault.subject, &fault.detail));
    }
    resolved.wanted.claims.push((at as u16, spec.clone()));
    Ok(())
}

/// Looks up a claim by name. `alone`: each pod is a user of it, rather than their group.
fn named(
    state: &State,
    resolved: &mut Resolved,
    (at, key): (usize, &ClaimKey),
    alone: bool,
    asker: Asker<'_>,
    emptied: bool,
) -> Result<(), Stopped> {
    let about = |reason, detail: &str| object(reason, &key.0.name, &Name::new(detail));
    let Some(row) = state.claims.find(key) else { return Err(about(Reason::ClaimMissing, "")) };
    let Some(fact) = &row.fact else { return Err(about(Reason::ClaimMissing, "")) };
    if fact.deleting {
        return Err(about(Reason::ClaimDeleting, ""));
    }
    let mine = |user: &User| asker.pod.is_some_and(|p| *user == User::Pod(p.clone()));
    let others = fact.users.iter().filter(|u| !mine(u)).count() + row.assumed_users as usize;
    if alone && others >= USERS_MAX && !emptied {
        return Err(about(Reason::TooManyUsers, &USERS_MAX.to_string()));
    }
    let failed = fact.failed.as_ref().filter(|f| row.assumed.is_none() && f.holds(asker.now));
    match row.held() {
        Some(held) if !emptied => resolved.pinned.push(Pinned {
            claim: key.clone(),
            nodes: held.nodes.clone(),
            movable: alone && is_movable(row, others),
            failed: failed.cloned(),
            early: held.early,
        }),
        Some(_) | None => want(resolved, at, &fact.spec)?,
    }
    Ok(())
}

/// An allocation that the board shows and that nobody else uses may be given up.
fn is_movable(row: &ClaimState, others: usize) -> bool {
    others == 0 && row.assumed.is_none() && !row.released
}

/// Whether the claims that are allocated can be used from a node.
pub(crate) fn reachable(
    pinned: &[Pinned],
    key: &NodeKey,
    labels: &[(Name, Name)],
) -> Result<(), Failing> {
    for claim in pinned {
        let here = claim.nodes.as_ref().is_none_or(|terms| any_term(terms, key, labels));
        if !here {
            let facts = Facts::Claim { claim: claim.claim.clone(), at: bound_to(claim) };
            return Err(Failing::new(Reason::ClaimElsewhere, Status::UnschedulableAndUnresolvable)
                .with(facts));
        }
        if let Some(failure) = &claim.failed {
            let facts =
                Facts::Binding { claim: claim.claim.clone(), failure: Box::new(failure.clone()) };
            return Err(Failing::new(Reason::BindingFailed, Status::UnschedulableAndUnresolvable)
                .with(facts));
        }
    }
    Ok(())
}

/// The one node that an allocation is bound to.
fn bound_to(claim: &Pinned) -> Option<Name> {
    let [term] = claim.nodes.as_deref()? else { return None };
    names(term).next().cloned()
}
