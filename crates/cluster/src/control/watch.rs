//! How far the watch of each kind has come, and which kinds were listed.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::{Kind, ObjectRef};

/// The kinds that are watched.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    kinds: BTreeMap<Kind, Watched>,
}

/// One of them.
#[derive(Clone, Debug, Default)]
struct Watched {
    /// It was listed once.
    listed: bool,
    /// What a list that has not ended has had so far.
    listing: Option<BTreeSet<ObjectRef>>,
    /// The highest version up to which everything was shown.
    passed: u64,
}

impl Watch {
    /// Whether all of these were listed.
    pub(super) fn has_listed(&self, kinds: &[Kind]) -> bool {
        kinds.iter().all(|kind| self.kinds.get(kind).is_some_and(|watched| watched.listed))
    }

    /// A list begins.
    pub(super) fn begin(&mut self, kind: Kind) {
        self.kinds.entry(kind).or_default().listing = Some(BTreeSet::new());
    }

    /// The list has this object.
    pub(super) fn found(&mut self, object: ObjectRef) {
        let watched = self.kinds.entry(object.kind).or_default();
        watched.listing.get_or_insert_default().insert(object);
    }

    /// The list has ended. Answers what it had.
    pub(super) fn end(&mut self, kind: Kind, version: &str) -> BTreeSet<ObjectRef> {
        self.pass(kind, version);
        let watched = self.kinds.entry(kind).or_default();
        watched.listed = true;
        watched.listing.take().unwrap_or_default()
    }

    /// Everything up to this version was shown.
    pub(super) fn pass(&mut self, kind: Kind, version: &str) {
        let watched = self.kinds.entry(kind).or_default();
        watched.passed = watched.passed.max(number(version).unwrap_or_default());
    }

    /// The highest version up to which everything of a kind was shown.
    pub(super) fn passed(&self, kind: Kind) -> u64 {
        self.kinds.get(&kind).map_or(0, |watched| watched.passed)
    }
}

/// A `resourceVersion` as a number: those of one kind are in the order in which they were written.
pub(super) fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}
