//! All ways to seat a group, one member after the other: every node, and on it every set of devices,
//! as long as what was taken so far can still win. It is exact, and for small questions only.

use super::super::search::Fit;
use super::super::trial::{Opening, Trial};
use super::spans::Spans;
use crate::cost::Cost;
use crate::name::NodeKey;

/// What was found.
pub(super) struct Outcome {
    /// The best arrangement, a node and its fit for each opening, with its cost.
    pub(super) best: Option<(Cost, Vec<(u32, Fit)>)>,
    /// How many of the members fitted together at most.
    pub(super) most: usize,
    /// The bound ended it.
    pub(super) cut: bool,
}

/// A search under way.
pub(super) struct Joint<'o, 'f> {
    pub(super) group: u32,
    pub(super) openings: &'o [Opening],
    pub(super) spans: Spans<'f>,
    /// Steps that may be spent.
    pub(super) steps: u64,
    seats: Vec<(u32, Fit)>,
    outcome: Outcome,
}

impl<'o, 'f> Joint<'o, 'f> {
    pub(super) fn new(group: u32, openings: &'o [Opening], spans: Spans<'f>, steps: u64) -> Self {
        let outcome = Outcome { best: None, most: 0, cut: false };
        Self { group, openings, spans, steps, seats: Vec::new(), outcome }
    }

    /// Goes through all of them.
    pub(super) fn search(mut self, trial: &mut Trial<'_>) -> Outcome {
        self.seat(trial, Cost::default());
        self.outcome
    }

    /// Fills the next opening in every way; `so_far` is what the seats before it cost.
    fn seat(&mut self, trial: &mut Trial<'_>, so_far: Cost) {
        let at = self.seats.len();
        self.outcome.most = self.outcome.most.max(at);
        let spanned = self.spans.priced(so_far);
        if self.outcome.best.as_ref().is_some_and(|(best, _)| spanned >= *best) {
            return;
        }
        let Some(opening) = self.openings.get(at) else {
            self.outcome.best = Some((spanned, self.seats.clone()));
            return;
        };
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
            let is_last = at + 1 == self.openings.len() && !trial.has_islands(slot);
            let (fits, more) = trial.searched(|search, state| match is_last {
                true => (search.node(state, &ask, slot).into_iter().collect(), false),
                false => search.fits(state, &ask, slot),
            });
            self.outcome.cut |= more;
            self.steps = self.steps.saturating_sub((trial.spent - before).max(1));
            for fit in fits {
                self.take(trial, opening, slot, fit, so_far);
            }
        }
    }

    fn take(
        &mut self,
        trial: &mut Trial<'_>,
        opening: &Opening,
        slot: u32,
        fit: Fit,
        so_far: Cost,
    ) {
        let start = trial.mark();
        let cost = so_far.and(fit.cost);
        let (alone, islands) = (fit.cost, trial.islands_of(slot, &fit));
        self.spans.hold(slot, &islands, true);
        self.spans.seat(opening, slot, &alone, true);
        trial.take(self.group, opening, slot, fit.clone());
        self.seats.push((slot, fit));
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
        let Some((before, _)) = self.seats.last() else { return false };
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
