//! All ways to seat a group, one member after the other: every node, and on it every set of devices,
//! as long as what was taken so far can still win. It is exact, and for small questions only.

use std::collections::BTreeMap;

use super::super::search::Fit;
use super::super::trial::{Opening, Trial};
use super::spans::Spans;
use crate::cost::Cost;
use crate::name::NodeKey;
use crate::storage::VolumeGrant;

/// Most of what was gone into that is remembered.
const SEEN_MAX: usize = 1 << 16;

/// A seat: the place of its opening among all, its node and what it gets there.
pub(super) type JointSeat = (usize, u32, Fit);

/// What was found.
pub(super) struct Outcome {
    /// The best arrangement, in the order in which seats are taken, with its cost.
    pub(super) best: Option<(Cost, Vec<JointSeat>)>,
    /// How many of the members fitted together at most.
    pub(super) most: usize,
    /// The bound ended it.
    pub(super) cut: bool,
}

/// Who sits where: by seat the class of the member, the node, the devices and the volumes.
type Sitting = Vec<(usize, u32, Vec<[u16; 4]>, Vec<VolumeGrant>)>;

/// A search under way.
pub(super) struct Joint<'o, 'f> {
    group: u32,
    openings: &'o [Opening],
    spans: Spans<'f>,
    /// Steps that may be spent.
    steps: u64,
    /// Where pods of one role mean something to those of another, who comes next is a choice as well: by
    /// opening the first that is like it. Else they come as they stand.
    classes: Option<Vec<usize>>,
    /// What members that sat so cost at least, in whatever order they had come.
    seen: BTreeMap<Sitting, Cost>,
    seats: Vec<JointSeat>,
    outcome: Outcome,
}

impl<'o, 'f> Joint<'o, 'f> {
    pub(super) fn new(group: u32, openings: &'o [Opening], spans: Spans<'f>, steps: u64) -> Self {
        let outcome = Outcome { best: None, most: 0, cut: false };
        let (classes, seen) = (None, BTreeMap::new());
        Self { group, openings, spans, steps, classes, seen, seats: Vec::new(), outcome }
    }

    /// The same in every order of roles.
    pub(super) fn in_any_order(mut self, trial: &Trial<'_>) -> Self {
        let mut classes: Vec<usize> = (0..self.openings.len()).collect();
        for at in 1..classes.len() {
            let (one, other) = (&self.openings[at - 1], &self.openings[at]);
            if self.spans.alike(one, other) && trial.is_plain(one) && trial.is_plain(other) {
                classes[at] = classes[at - 1];
            }
        }
        self.classes = Some(classes);
        self
    }

    /// Goes through all of them.
    pub(super) fn search(mut self, trial: &mut Trial<'_>) -> Outcome {
        self.seat(trial, Cost::default());
        self.outcome
    }

    /// Fills a next opening in every way; `so_far` is what the seats before it cost.
    fn seat(&mut self, trial: &mut Trial<'_>, so_far: Cost) {
        self.outcome.most = self.outcome.most.max(self.seats.len());
        let spanned = self.spans.priced(so_far);
        if self.outcome.best.as_ref().is_some_and(|(best, _)| spanned >= *best) {
            return;
        }
        if self.seats.len() == self.openings.len() {
            self.outcome.best = Some((spanned, self.seats.clone()));
            return;
        }
        if self.is_known(so_far) {
            return;
        }
        for at in self.next() {
            self.seat_next(trial, at, so_far);
        }
    }

    /// Who may come next: of each role the first without a seat; in a given order the first of all.
    fn next(&self) -> Vec<usize> {
        if self.classes.is_none() {
            return vec![self.seats.len()];
        }
        let mut next: Vec<usize> = Vec::new();
        for (at, opening) in self.openings.iter().enumerate() {
            let comes = |other: &usize| self.openings[*other].role == opening.role;
            if !next.iter().any(comes) && !self.seats.iter().any(|(seated, ..)| *seated == at) {
                next.push(at);
            }
        }
        next
    }

    /// Whether the same was gone into, and cost no more, in another order.
    fn is_known(&mut self, so_far: Cost) -> bool {
        let Some(classes) = &self.classes else { return false };
        let sits = |(at, slot, fit): &JointSeat| {
            let picks = fit.offer.iter().flat_map(|offer| &offer.picks);
            let picks = picks.map(|p| [p.claim, p.request, p.alternative, p.device]);
            (classes[*at], *slot, picks.collect(), fit.volumes.to_vec())
        };
        let mut sitting: Sitting = self.seats.iter().map(sits).collect();
        sitting.sort_unstable();
        match self.seen.get_mut(&sitting) {
            Some(known) if *known <= so_far => true,
            Some(known) => {
                *known = so_far;
                false
            }
            None => {
                if self.seen.len() < SEEN_MAX {
                    self.seen.insert(sitting, so_far);
                }
                false
            }
        }
    }

    fn seat_next(&mut self, trial: &mut Trial<'_>, at: usize, so_far: Cost) {
        let opening = &self.openings[at];
        let Some(ask) = trial.ask_of(self.group, opening) else { return };
        for slot in trial.ranks.slots().to_vec() {
            if self.is_mirrored(trial, slot) || !self.spans.allows(opening, slot) {
                continue;
            }
            if self.steps == 0 {
                self.outcome.cut = true;
                return;
            }
            let before = trial.spent;
            // Nobody comes after the last: of its sets the best will do, unless the others' islands
            // count.
            let is_last = self.seats.len() + 1 == self.openings.len() && !trial.has_islands(slot);
            let (fits, more) = trial.searched(|search, state| match is_last {
                true => (search.node(state, &ask, slot).into_iter().collect(), false),
                false => search.fits(state, &ask, slot),
            });
            self.outcome.cut |= more;
            self.steps = self.steps.saturating_sub((trial.spent - before).max(1));
            for fit in fits {
                self.take(trial, at, slot, fit, so_far);
            }
        }
    }

    fn take(&mut self, trial: &mut Trial<'_>, at: usize, slot: u32, fit: Fit, so_far: Cost) {
        let (start, opening) = (trial.mark(), &self.openings[at]);
        let cost = so_far.and(fit.cost);
        let (alone, islands) = (fit.cost, trial.islands_of(slot, &fit));
        self.spans.hold(slot, &islands, true);
        self.spans.seat(opening, slot, &alone, true);
        trial.take(self.group, opening, slot, fit.clone());
        self.seats.push((at, slot, fit));
        self.seat(trial, cost);
        self.seats.pop();
        trial.roll_back(start);
        self.spans.seat(opening, slot, &alone, false);
        self.spans.hold(slot, &islands, false);
    }

    /// Whether a seat there only exchanges two members that are alike: the nodes of such stand in
    /// order of name. Where nodes see the same devices, what one is given costs the others, and where
    /// members are spread, each must keep the skew when it comes: there it matters who comes first.
    fn is_mirrored(&self, trial: &Trial<'_>, slot: u32) -> bool {
        let at = self.seats.len();
        let Some((_, before, _)) = self.seats.last().filter(|_| self.classes.is_none()) else {
            return false;
        };
        let (one, other) = (&self.openings[at - 1], &self.openings[at]);
        let key = |slot: u32| -> &NodeKey { trial.state.nodes.key(slot) };
        let alike = self.spans.alike(one, other) && trial.is_plain(one) && trial.is_plain(other);
        alike
            && trial.state.wide_pools.is_empty()
            && !trial.is_spread(self.group, one)
            && key(slot) < key(*before)
    }
}

impl Trial<'_> {
    /// Whether members of the opening's role must be spread.
    fn is_spread(&self, group: u32, opening: &Opening) -> bool {
        let request = self.state.groups.at(group).requests[usize::from(opening.role)];
        self.state.request(request).near.as_ref().is_some_and(|near| !near.spread.is_empty())
    }

    /// Whether an opening is as any other of its role: no node is promised to its pod, and no claim
    /// is made for it.
    pub(super) fn is_plain(&self, opening: &Opening) -> bool {
        let member = opening.pod.as_ref().and_then(|pod| self.state.members.find(pod));
        member
            .and_then(|row| row.fact.as_ref())
            .is_none_or(|fact| fact.nominated.is_none() && fact.claims.iter().all(Option::is_none))
    }
}
