//! What else could have been chosen: how many sets are exactly as good as the best, and the best of
//! those that are not.
//!
//! Accounts ask for the runner-up; the search for groups asks for every set.

use std::collections::BTreeSet;

use super::choose::{Offer, Want, offer};
use super::problem::{Lens, Problem};
use super::search::{Aim, search};
use super::shape::Shape;
use super::usage::Usage;
use crate::decision::Proof;

/// Sets that are counted at most.
pub(super) const SETS_MAX: usize = 1000;

/// What stands beside the best set of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rivals {
    /// Sets that cost as much, the chosen one included; none where they are too many to count.
    pub(crate) equal: Option<u32>,
    /// The best of the sets that cost more.
    pub(crate) second: Option<Offer>,
}

/// What stands beside `best`, which [`choose`](super::choose()) gave for the same question.
pub(crate) fn rivals(
    shape: &Shape,
    usage: &Usage,
    want: &Want<'_>,
    best: &Offer,
    steps: &mut u64,
) -> Rivals {
    let mut problem = Problem::new(Lens::whole(shape, usage, want));
    let outcome = search(&problem, Aim::Above(best.price), steps);
    let proof = if outcome.cut { Proof::Bounded } else { Proof::Proven };
    let second = outcome.best.map(|found| offer(&problem, found, proof));
    // Each of several that are alike counts.
    problem.before.fill(None);
    problem.units.clear();
    let outcome = search(&problem, Aim::Equal(best.price), steps);
    let sets: BTreeSet<Vec<usize>> = outcome.equal;
    let counted = !outcome.cut && sets.len() < SETS_MAX;
    Rivals { equal: u32::try_from(sets.len()).ok().filter(|_| counted), second }
}

/// Every set that a pod can be given, best first, and whether there may be more than these.
pub(crate) fn sets(
    shape: &Shape,
    usage: &Usage,
    want: &Want<'_>,
    steps: &mut u64,
) -> (Vec<Offer>, bool) {
    let mut problem = Problem::new(Lens::whole(shape, usage, want));
    // To those who come after, those that are alike to this pod may not be.
    problem.before.fill(None);
    problem.units.clear();
    let outcome = search(&problem, Aim::All, steps);
    let more = outcome.cut || outcome.all.len() >= SETS_MAX;
    let mut all = outcome.all;
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    let proof = if more { Proof::Bounded } else { Proof::Proven };
    (all.into_iter().map(|found| offer(&problem, found, proof)).collect(), more)
}
