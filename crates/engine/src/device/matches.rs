//! What selectors say of profiles of devices, as lowering told it.

use rustc_hash::FxHashMap;

use crate::change::Match;
use crate::name::{ProfileId, SelectorId};

/// The verdicts known. What was never said is [`Match::No`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matches(FxHashMap<(SelectorId, ProfileId), Match>);

impl Matches {
    /// The verdict of a selector on a profile.
    pub(crate) fn get(&self, selector: SelectorId, profile: ProfileId) -> Match {
        self.0.get(&(selector, profile)).copied().unwrap_or_default()
    }

    /// Sets a verdict; says whether it is another one than before.
    pub(crate) fn set(&mut self, selector: SelectorId, profile: ProfileId, verdict: Match) -> bool {
        let before = match verdict {
            Match::No => self.0.remove(&(selector, profile)),
            Match::Yes | Match::Error => self.0.insert((selector, profile), verdict),
        };
        before.unwrap_or_default() != verdict
    }
}
