//! What selectors say of profiles of devices, as lowering told it.

use rustc_hash::FxHashMap;

use crate::change::{Derived, Match};
use crate::name::{ProfileId, SelectorId};

/// The verdicts known. What was never said is [`Match::No`], and an attribute that devices lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matches {
    verdicts: FxHashMap<(SelectorId, ProfileId), Match>,
    derived: FxHashMap<(SelectorId, ProfileId), Derived>,
}

impl Matches {
    /// The verdict of a selector on a profile.
    pub(crate) fn get(&self, selector: SelectorId, profile: ProfileId) -> Match {
        self.verdicts.get(&(selector, profile)).copied().unwrap_or_default()
    }

    /// Sets a verdict; says whether it is another one than before.
    pub(crate) fn set(&mut self, selector: SelectorId, profile: ProfileId, verdict: Match) -> bool {
        let before = match verdict {
            Match::No => self.verdicts.remove(&(selector, profile)),
            Match::Yes | Match::Error => self.verdicts.insert((selector, profile), verdict),
        };
        before.unwrap_or_default() != verdict
    }

    /// The value of a derived attribute on a profile; none where its devices lack it.
    pub(crate) fn derived(&self, of: SelectorId, profile: ProfileId) -> Option<&Derived> {
        self.derived.get(&(of, profile))
    }

    /// Sets the value of a derived attribute; says whether it is another one than before.
    pub(crate) fn derive(
        &mut self,
        of: SelectorId,
        profile: ProfileId,
        value: Option<Derived>,
    ) -> bool {
        let before = match value.clone() {
            Some(value) => self.derived.insert((of, profile), value),
            None => self.derived.remove(&(of, profile)),
        };
        before != value
    }
}
