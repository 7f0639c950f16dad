//! The best set: in which order a question is gone through so that the search ends soon.
//!
//! Requests for network cards come after all others, whose places decide theirs, and where requests
//! have many alternatives, one of each is looked at a time. The answer is the same in any order.

use crate::decision::Proof;

use super::choose::{Offer, Pick, Standing, offer};
use super::names::first_by_name;
use super::problem::{Lens, Problem};
use super::search::{Aim, Outcome, search};

/// Steps after which requests with several alternatives are looked at one of each at a time.
const TOGETHER_STEPS: u64 = 20_000;
/// Ways to take one alternative of each request that are looked at one by one.
const WAYS_MAX: usize = 1_000;

/// What was found.
pub(super) struct Found {
    /// The best set; where the bound ended the search, one of those seen.
    pub(super) offer: Option<Offer>,
    /// Whether the bound ended it.
    pub(super) cut: bool,
}

/// The best set of a question.
pub(super) fn best(problem: &Problem<'_>, steps: &mut u64) -> Found {
    let Some(ways) = ways(problem) else { return of_each(problem, steps) };
    let mut few = (*steps).min(TOGETHER_STEPS);
    *steps -= few;
    let all = in_order(problem, &mut few);
    *steps += few;
    if all.cut { way_by_way(problem, &ways, all, steps) } else { all }
}

/// The alternatives that can be taken together, the least sum of places first; none where there is
/// nothing to choose, or too much.
fn ways(problem: &Problem<'_>) -> Option<Vec<Vec<usize>>> {
    let mut ways: Vec<Vec<usize>> = vec![Vec::new()];
    for line in &problem.lines {
        let longer = |way: &Vec<usize>| {
            let way = way.clone();
            line.choices.iter().map(move |choice| [&way[..], &[choice.alternative]].concat())
        };
        ways = ways.iter().flat_map(longer).collect();
        if ways.len() > WAYS_MAX {
            return None;
        }
    }
    ways.sort_by_key(|way| way.iter().sum::<usize>());
    (ways.len() > 1).then_some(ways)
}

/// Way by way, as long as another could be as good. `all` was seen before.
fn way_by_way(problem: &Problem<'_>, ways: &[Vec<usize>], all: Found, steps: &mut u64) -> Found {
    let mut best: Option<(Standing, Offer)> = None;
    let mut cut = false;
    for way in ways {
        let places: usize = way.iter().sum();
        let worse = |(of, _): &(Standing, Offer)| (of.price.alternatives as usize) < places;
        if cut || best.as_ref().is_some_and(worse) {
            break;
        }
        let one = Problem::new(Lens { pins: way, ..problem.lens });
        if one.hopeless {
            continue;
        }
        let found = of_each(&one, steps);
        cut = found.cut;
        best = better(problem, best, found.offer);
    }
    if cut {
        best = better(problem, best, all.offer);
    }
    let offer = best.map(|(_, offer)| match cut {
        true => Offer { proof: Proof::Bounded, ..offer },
        false => offer,
    });
    Found { offer, cut }
}

fn better(
    problem: &Problem<'_>,
    best: Option<(Standing, Offer)>,
    other: Option<Offer>,
) -> Option<(Standing, Offer)> {
    let Some(other) = other else { return best };
    let rank = |pick: &Pick| problem.lens.shape.devices[usize::from(pick.device)].rank;
    let standing = Standing {
        price: other.price,
        ranks: other.picks.iter().map(rank).collect(),
        order: other.picks.iter().map(|pick| pick.alternative).collect(),
    };
    match best {
        Some((before, best)) if before <= standing => Some((before, best)),
        Some(_) | None => Some((standing, other)),
    }
}

/// The best set where each request has one alternative.
fn of_each(problem: &Problem<'_>, steps: &mut u64) -> Found {
    let several = problem.lines.iter().any(|line| line.choices.len() > 1);
    if several || !problem.could_put_cards_last() {
        return in_order(problem, steps);
    }
    let turned = Problem::new(Lens { cards_last: true, ..problem.lens });
    let Outcome { best, cut, .. } = search(&turned, Aim::Best, steps);
    let Some(best) = best else { return Found { offer: None, cut } };
    let first = if cut { None } else { first_by_name(&turned, &best, steps) };
    let (cut, proof) = match first {
        Some(_) => (false, Proof::Proven),
        None => (true, Proof::Bounded),
    };
    let (standing, found) = best;
    let mut offer = offer(&turned, (standing, first.unwrap_or(found)), proof);
    offer.picks.sort_by_key(|pick| (pick.claim, pick.request));
    Found { offer: Some(offer), cut }
}

/// The best set, request by request as they are asked.
fn in_order(problem: &Problem<'_>, steps: &mut u64) -> Found {
    let Outcome { best, cut, .. } = search(problem, Aim::Best, steps);
    let proof = if cut { Proof::Bounded } else { Proof::Proven };
    Found { offer: best.map(|best| offer(problem, best, proof)), cut }
}
