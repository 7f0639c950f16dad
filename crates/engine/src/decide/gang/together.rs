//! Members that are alike on one node: how many it takes, and with which devices.
//!
//! One after the other, each with what is best for it, does for most. Where that leaves one out who
//! might find a place, or gives one something worse than the first got, their devices are chosen
//! together.

use rustc_hash::FxHashMap;

use super::super::search::{Ask, Fit};
use super::super::trial::{Found, Opening, Trial};
use super::Class;
use super::rooms::is_countable;
use crate::check::Failing;
use crate::cost::Cost;
use crate::device::{self, UsageKey};
use crate::facts::Seat;
use crate::reason::{Reason, Scope};

/// Looks at one node that choosing devices together may take.
pub(super) const LOOKS_MAX: u32 = 256;

/// The same where it is to be told how many members a node takes at most, once for all nodes of a kind.
const PROOF_MAX: u32 = 1024;

/// How many members a node takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Taking {
    /// What one, two, three members cost there together, as far as they find room.
    pub(super) costs: Vec<Cost>,
    /// More than these it does not take, whatever devices each gets.
    pub(super) most: u32,
    /// It ends for another reason than what the node counts (CPU, memory, extended resources).
    pub(super) ends: bool,
}

/// A choice of devices for several members under way.
struct Together<'o> {
    group: u32,
    slot: u32,
    openings: &'o [Opening],
    /// What each costs at least.
    least: Cost,
    /// Any set will do.
    any: bool,
    /// They share claims.
    shared: bool,
    looks: u32,
    /// Islands of the node that the group uses, one for each that uses it.
    islands: Vec<u32>,
    /// By members seated and what is held, the least that it took to get there.
    known: FxHashMap<(usize, UsageKey), Cost>,
    fits: Vec<Fit>,
    best: Option<(Cost, Vec<Fit>)>,
}

impl Trial<'_> {
    /// How many members of a class a node takes, no more than `bound`. All of it is given back.
    pub(super) fn taking(&mut self, class: &Class<'_>, slot: u32, bound: u32) -> Taking {
        // Pods that exist are others' claims' users; one that does not stands for each.
        let opening = Opening { pod: None, ..class.opening().clone() };
        let (mut costs, last, stopped) = self.one_by_one(class, &opening, slot, bound);
        let count = costs.len() as u32;
        let (Some((ask, failing)), Some(last)) = (stopped, last) else {
            return Taking { costs, most: count, ends: false };
        };
        let ends = !(Reason::TooManyPods..=Reason::InsufficientScalar).contains(&failing.reason);
        if failing.reason.scope() != Scope::Device || settles(&ask, &last) {
            return Taking { costs, most: count, ends };
        }
        while (costs.len() as u32) < bound {
            let openings = vec![opening.clone(); costs.len() + 1];
            match self.sets_for(class.group, &openings, (slot, &[]), None, &mut { PROOF_MAX }) {
                (Some(fits), _) => costs.push(sum(fits.iter())),
                (None, cut) => {
                    let most = if cut { u32::MAX } else { costs.len() as u32 };
                    return Taking { costs, most, ends };
                }
            }
        }
        Taking { costs, most: bound, ends: false }
    }

    /// Seats members on a node one after the other, each with the devices that are best for it: what so
    /// many cost, the last of them, and what stopped it. All of it is given back.
    fn one_by_one(
        &mut self,
        class: &Class<'_>,
        opening: &Opening,
        slot: u32,
        bound: u32,
    ) -> (Vec<Cost>, Option<Fit>, Option<(Ask, Failing)>) {
        let start = self.mark();
        let counted = is_countable(&class.ask);
        let (mut costs, mut last, mut stopped) = (Vec::<Cost>::new(), None, None);
        while (costs.len() as u32) < bound {
            // What sits there may change what is asked.
            let ask = match counted {
                true => Some(class.ask.clone()),
                false => self.ask_of(class.group, opening),
            };
            let Some(ask) = ask else { break };
            match self.searched(|search, state| search.node(state, &ask, slot)) {
                Ok(fit) => {
                    costs.push(costs.last().map_or(fit.cost, |before| before.and(fit.cost)));
                    last = Some(fit.clone());
                    self.take(class.group, opening, slot, fit);
                }
                Err(failing) => {
                    stopped = Some((ask, failing));
                    break;
                }
            }
        }
        self.roll_back(start);
        (costs, last, stopped)
    }

    /// Takes seats for these members of a class on one node: one after the other, or together where that
    /// is better and `looks` are left. `islands` are those of the node that others of the group use.
    pub(super) fn seats_on(
        &mut self,
        class: &Class<'_>,
        openings: &[Opening],
        (slot, islands): (u32, &[u32]),
        looks: &mut u32,
    ) -> Option<Vec<(Fit, Found)>> {
        let start = self.mark();
        let mut seats: Vec<(Fit, Found)> = Vec::with_capacity(openings.len());
        for opening in openings {
            let Some(fit) = self.fit(&class.ask, slot) else { break };
            let found = self.take(class.group, opening, slot, fit.clone());
            seats.push((fit, found));
        }
        let first = seats.first()?.0.cost;
        let all = seats.len() == openings.len();
        let as_good = |(fit, _): &(Fit, Found)| {
            fit.cost.alternatives == first.alternatives && fit.cost.devices == first.devices
        };
        let mut used = islands.to_vec();
        used.extend(seats.iter().flat_map(|(fit, _)| self.islands_of(slot, fit)));
        let apart = apart(&used);
        if all && apart == 0 && seats.iter().all(as_good) {
            return Some(seats);
        }
        self.roll_back(start);
        let fits: Vec<Fit> = seats.into_iter().map(|(fit, _)| fit).collect();
        let known = all.then(|| (sum(fits.iter()).with_islands(apart), fits));
        let place = (slot, islands);
        let fits = match self.sets_for(class.group, openings, place, known.clone(), looks) {
            (Some(fits), _) => fits,
            (None, _) => known?.1,
        };
        let seats = openings.iter().zip(fits).map(|(opening, fit)| {
            let found = self.take(class.group, opening, slot, fit.clone());
            (fit, found)
        });
        Some(seats.collect())
    }

    /// Sets of devices for all of these members on one node, and whether the bound ended the search:
    /// any where none are known, else cheaper ones than the known. All of it is given back.
    fn sets_for(
        &mut self,
        group: u32,
        openings: &[Opening],
        (slot, islands): (u32, &[u32]),
        known: Option<(Cost, Vec<Fit>)>,
        looks: &mut u32,
    ) -> (Option<Vec<Fit>>, bool) {
        let Some(first) = openings.first().and_then(|one| self.fit_there(group, one, slot)) else {
            return (None, false);
        };
        let Cost { alternatives, devices, .. } = first.cost;
        let role = openings.first().map_or(0, |one| usize::from(one.role));
        let request = self.state.request(self.state.groups.at(group).requests[role]);
        let shared = request.shares_claims();
        let mut search = Together {
            group,
            slot,
            openings,
            least: Cost { alternatives, devices, ..Cost::default() },
            any: known.is_none(),
            shared,
            looks: *looks,
            islands: islands.to_vec(),
            known: FxHashMap::default(),
            fits: Vec::new(),
            best: known,
        };
        let cut = !search.seat(self, Cost::default());
        *looks = search.looks;
        (search.best.map(|(_, fits)| fits), cut)
    }
}

impl Together<'_> {
    /// Fills the next opening in every way that can still win. False where the bound ended it.
    fn seat(&mut self, trial: &mut Trial<'_>, so_far: Cost) -> bool {
        let at = self.fits.len();
        let Some(opening) = self.openings.get(at) else {
            if self.best.as_ref().is_none_or(|(best, _)| so_far < *best) {
                self.best = Some((so_far, self.fits.clone()));
            }
            return true;
        };
        if self.any && self.best.is_some() || self.is_lost(so_far) {
            return true;
        }
        if self.is_known(trial, at, so_far) {
            return true;
        }
        let Some(looks) = self.looks.checked_sub(1) else { return false };
        self.looks = looks;
        let Some(ask) = trial.ask_of(self.group, opening) else { return true };
        let (fits, more) = trial.searched(|search, state| search.fits(state, &ask, self.slot));
        let mut whole = !more;
        for fit in fits {
            let start = trial.mark();
            let before = self.islands.len();
            self.islands.extend(trial.islands_of(self.slot, &fit));
            let cost = so_far.and(fit.cost).with_islands(apart(&self.islands));
            trial.take(self.group, opening, self.slot, fit.clone());
            self.fits.push(fit);
            whole &= self.seat(trial, cost);
            self.fits.pop();
            self.islands.truncate(before);
            trial.roll_back(start);
        }
        whole
    }

    /// Whether others led to the same before and cost no more; notes it where they did not. Whose a
    /// device is tells only where claims are shared.
    fn is_known(&mut self, trial: &mut Trial<'_>, at: usize, so_far: Cost) -> bool {
        let Some(key) = trial.usage_key(self.slot).filter(|_| !self.shared) else { return false };
        match self.known.get_mut(&(at, key.clone())) {
            Some(least) if self.any || *least <= so_far => return true,
            Some(least) => *least = so_far,
            None => _ = self.known.insert((at, key), so_far),
        }
        false
    }

    /// Whether no end of what was begun is cheaper than the best.
    fn is_lost(&self, so_far: Cost) -> bool {
        let Some((best, _)) = self.best.as_ref().filter(|_| !self.any) else { return false };
        let rest = self.openings.len() - self.fits.len();
        let ended = (0..rest).fold(so_far, |sum, _| sum.and(self.least));
        ended >= *best
    }
}

impl Trial<'_> {
    /// The islands of a node in which a fit's devices are, where any are known: one that is in none that
    /// is known is in one of its own.
    pub(super) fn islands_of(&self, slot: u32, fit: &Fit) -> Vec<u32> {
        let Some(devices) = self.state.nodes.at(slot).devices.as_deref() else { return Vec::new() };
        let picks = fit.offer.iter().flat_map(|offer| &offer.picks).filter(|pick| !pick.admin);
        device::islands(devices.shape(), picks.map(|pick| usize::from(pick.device)))
    }

    /// The same of a seat.
    pub(super) fn islands_of_seat(&self, slot: u32, seat: &Seat) -> Vec<u32> {
        let Some(devices) = self.state.nodes.at(slot).devices.as_deref() else { return Vec::new() };
        if seat.grants.is_empty() || !device::knows_islands(devices.shape()) {
            return Vec::new();
        }
        let all = 0..devices.places().len();
        let keys: Vec<_> = all.map(|at| self.state.device_key(devices, at)).collect();
        let grants = seat.grants.iter().filter(|grant| !grant.admin);
        let at = grants.filter_map(|grant| keys.iter().position(|key| *key == grant.device));
        device::islands(devices.shape(), at)
    }

    /// Whether anything is known of islands on a node.
    pub(super) fn has_islands(&self, slot: u32) -> bool {
        let devices = self.state.nodes.at(slot).devices.as_deref();
        devices.is_some_and(|devices| device::knows_islands(devices.shape()))
    }

    /// What is held of a node's devices, where it has any.
    fn usage_key(&mut self, slot: u32) -> Option<UsageKey> {
        self.searched(|search, state| search.look_at_devices(state, slot));
        let devices = self.state.nodes.at(slot).devices.as_deref()?;
        devices.usage.as_ref().map(UsageKey::of)
    }
}

/// How many different islands there are beyond the first.
fn apart(islands: &[u32]) -> u16 {
    let mut all = islands.to_vec();
    all.sort_unstable();
    all.dedup();
    u16::try_from(all.len().saturating_sub(1)).unwrap_or(u16::MAX)
}

fn sum<'f>(fits: impl Iterator<Item = &'f Fit>) -> Cost {
    fits.fold(Cost::default(), |sum, fit| sum.and(fit.cost))
}

/// Whether other devices for those before would not have left room for one more either: fewer are free
/// than one takes.
fn settles(ask: &Ask, last: &Fit) -> bool {
    let Some(offer) = &last.offer else { return true };
    own_devices(ask, last).is_some_and(|own| offer.free_left < own)
}

/// How many devices each member takes for itself alone; none where that may differ.
pub(super) fn own_devices(ask: &Ask, fit: &Fit) -> Option<u32> {
    let mut requests = ask.wanted.claims.iter().flat_map(|(_, spec)| &spec.requests);
    if requests.any(|request| request.alternatives.len() > 1) {
        return None;
    }
    let picks = fit.offer.iter().flat_map(|offer| &offer.picks);
    let is_own = |claim: u16| {
        let of = ask.request.claims.get(usize::from(claim));
        of.is_none_or(|claim| claim.shared().is_none())
    };
    let own = picks.filter(|pick| !pick.admin && pick.share.is_none() && is_own(pick.claim));
    u32::try_from(own.count()).ok().filter(|own| *own > 0)
}
