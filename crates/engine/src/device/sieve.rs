//! One device against one alternative of a request, apart from all other devices.

use crate::change::Match;
use crate::decision::Unmet;
use crate::facts::{Alternative, Effect, Taint, Traits};
use crate::name::SelectorId;

use super::capacity::{Unfit, draw, is_plain};
use super::matches::Matches;
use super::shape::Shape;
use super::usage::Usage;

/// How far a device gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its pool can't be allocated from.
    Faulty,
    /// This selector says no.
    No(SelectorId),
    /// This selector ends in an error.
    Error(SelectorId),
    /// No selector is asked about it, for want of a gate.
    Hidden,
    /// It could never give the capacity asked: `All` does not ask for it.
    Unfit(Unfit),
    /// It is selected and not given out on this node.
    Barred,
    /// It is selected and its taint of this index is not tolerated.
    Tainted(usize),
    /// It would do, but somebody holds it.
    Taken,
    /// It could, but too little is left.
    Short(Unfit),
    /// It fits; as a shareable device it would give so much of each capacity.
    Fits(Vec<i128>),
}

/// The first selector that does not say yes, in order: the class's, then the request's.
pub(super) fn verdict(
    matches: &Matches,
    alternative: &Alternative,
    traits: &Traits,
) -> Result<(), Stage> {
    for selector in &alternative.selectors {
        match matches.get(*selector, traits.profile) {
            Match::Yes => {}
            Match::No => return Err(Stage::No(*selector)),
            Match::Error => return Err(Stage::Error(*selector)),
        }
    }
    Ok(())
}

/// Index of the first taint that keeps the device from an alternative.
pub(super) fn untolerated(alternative: &Alternative, traits: &Traits) -> Option<usize> {
    let repels = |taint: &Taint| match taint.effect {
        Effect::NoSchedule | Effect::NoExecute => {
            !alternative.tolerations.iter().any(|t| t.tolerates(taint))
        }
        Effect::PreferNoSchedule => false,
    };
    traits.taints.iter().position(repels)
}

/// How far device `at` gets by itself.
pub(super) fn sieve(
    shape: &Shape,
    usage: &Usage,
    matches: &Matches,
    alternative: &Alternative,
    at: usize,
) -> Stage {
    if shape.trouble(at).is_some() {
        return Stage::Faulty;
    }
    let traits: &Traits = &shape.devices[at].traits;
    if traits.hidden().is_some() {
        return Stage::Hidden;
    }
    if let Err(stage) = verdict(matches, alternative, traits) {
        return stage;
    }
    let plain = alternative.capacity.is_empty() && is_plain(traits);
    let draws = if plain { Ok(Vec::new()) } else { draw(traits, &alternative.capacity) };
    let draws = match draws {
        Ok(draws) => draws,
        Err(unfit) => return Stage::Unfit(unfit),
    };
    if shape.devices[at].barred.is_some() {
        return Stage::Barred;
    }
    if let Some(taint) = untolerated(alternative, traits) {
        return Stage::Tainted(taint);
    }
    if usage.is_taken(at) && !alternative.admin {
        return Stage::Taken;
    }
    if !traits.shareable {
        return Stage::Fits(Vec::new());
    }
    let held = usage.consumed.get(at).map_or(&[][..], |c| c);
    for ((capacity, draw), held) in traits.capacity.iter().zip(&draws).zip(held) {
        let left = capacity.nanos.saturating_sub(*held);
        if *draw > left {
            let (name, amount) = (capacity.name.clone(), (*draw, left));
            return Stage::Short(Unfit { name, amount, unmet: Unmet::Short });
        }
    }
    Stage::Fits(draws)
}
