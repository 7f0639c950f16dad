//! What is kept of a workload: of each role the make of its pods, how many, and how they are called.

use std::ops::Range;

use phalanx_engine::{GroupKey, Name, Shared, VolumeClaim};
use phalanx_objects::workload::WorkloadKind;

use super::super::admission::Draft;
use super::super::claim::Wish;
use super::super::meant::PodLabels;
use super::super::record::{Header, PodShape, PriorityFrom, Uid};
use super::super::slice::Note;
use super::{Declared, Marks};

/// A workload.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadRecord {
    pub(crate) header: Header,
    pub(crate) kind: WorkloadKind,
    /// The workload that manages it, with its UID.
    pub(crate) owner: Option<(GroupKey, Uid)>,
    pub(crate) roles: Box<[RoleRecord]>,
    /// A pod that is being deleted keeps its place until it is gone.
    pub(crate) keeps_leaving: bool,
    /// A pod that has ended keeps its place: it is not made anew.
    pub(crate) keeps_ended: bool,
    /// Another controller's, finished, or being deleted: no pod of it is planned.
    pub(crate) aside: bool,
    /// The attempt that counts; pods of earlier ones are about to go.
    pub(crate) attempt: u32,
    /// What is said while pods of it are to be placed.
    pub(crate) while_due: Box<[Note]>,
    /// Its own wish for nearness, for pods that have none.
    pub(crate) wish: Wish,
    /// That its pods start at once, where it says so.
    pub(crate) gang: Option<Declared>,
}

/// A role of a workload.
#[derive(Clone, Debug)]
pub(crate) struct RoleRecord {
    /// Its name; empty where there is but one.
    pub(crate) name: Name,
    /// How its pods say that they are of it; empty where every pod is.
    pub(crate) sign: Name,
    pub(crate) shape: Shared<PodShape>,
    /// The labels of its pods.
    pub(crate) labels: Shared<PodLabels>,
    /// Its pods as the template has them.
    pub(crate) draft: Draft,
    pub(crate) priority: PriorityFrom,
    pub(crate) run_max_millis: Option<i64>,
    /// How many pods it wants at a time, those that exist included.
    pub(crate) wanted: u32,
    /// The indexes that its pods may have, where they have some.
    pub(crate) indexes: Option<Indexes>,
    /// The indexes that are of this role, where pods of several say the same of theirs.
    pub(crate) span: Option<Range<u32>>,
    pub(crate) places: Places,
    pub(crate) rank: Rank,
    pub(crate) stands_for: Option<StandsFor>,
    /// The role that must have ended before.
    pub(crate) after: Option<u16>,
    /// The claims on volumes that each pod gets: the name before the pod's, and what is asked.
    pub(crate) volume_claims: Box<[(Name, Shared<VolumeClaim>)]>,
    /// What its template says of gang and place.
    pub(crate) marks: Option<Box<Marks>>,
    /// Its pods are of the gang of the marks without naming it.
    pub(crate) gang_is_own: bool,
    /// Fewest of its pods that start at once, where their gang says so role by role.
    pub(crate) least: Option<u32>,
    /// So many of them at a time start beyond those, or none.
    pub(crate) part_size: Option<u32>,
}

/// How a pod's index in its role goes with its name, and with the numbers that its labels say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The name before the numbers.
    pub(crate) base: Name,
    /// The numbers after it.
    pub(crate) numbers: Numbers,
    /// The number that the labels of index 0 say, or of the first pod of each part.
    pub(crate) first_label: u32,
    /// Pods of each part (a child Job, a group), where the role has parts.
    pub(crate) per: Option<u32>,
}

/// The numbers in a pod's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Numbers {
    /// None: there is but one pod.
    Bare,
    /// Its own, of which the first is this.
    Own(u32),
    /// That of its part.
    Part,
    /// That of its part, and its own in it, of which the first is this.
    PartAndOwn(u32),
}

impl Places {
    /// Numbers from 0 after the base.
    pub(super) fn plain(base: &str) -> Self {
        Self { base: Name::new(base), numbers: Numbers::Own(0), first_label: 0, per: None }
    }

    /// The name of a pod that does not exist yet. Where the API server would add random letters, the
    /// name is ours.
    pub(crate) fn name(&self, index: u32) -> String {
        let (base, per) = (&self.base, self.per.unwrap_or(1).max(1));
        let (part, inner) = (index / per, u64::from(index % per));
        match self.numbers {
            Numbers::Bare => base.to_string(),
            Numbers::Own(first) => format!("{base}-{}", u64::from(first) + u64::from(index)),
            Numbers::Part => format!("{base}-{part}"),
            Numbers::PartAndOwn(first) => format!("{base}-{part}-{}", u64::from(first) + inner),
        }
    }

    /// The index of a pod by what its labels say.
    pub(crate) fn index(&self, outer: Option<u32>, inner: Option<u32>) -> Option<u32> {
        let inner = inner?.checked_sub(self.first_label)?;
        match self.per {
            None => Some(inner),
            Some(per) => outer?.checked_mul(per)?.checked_add(inner),
        }
    }
}

/// How a pod's index in its role goes with its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Its pods have no order.
    None,
    /// The first pod has this one, and the next the next.
    From(u32),
    /// They are counted in each part of so many pods, from a first one.
    Within {
        /// Pods of a part.
        per: u32,
        /// Rank of the first of each.
        first: u32,
    },
}

impl Rank {
    /// The rank of an index.
    pub(crate) fn of(self, index: u32) -> Option<u32> {
        match self {
            Self::None => None,
            Self::From(first) => first.checked_add(index),
            Self::Within { per, first } => first.checked_add(index % per.max(1)),
        }
    }
}

/// What stands between a workload and the pods of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StandsFor {
    /// An object that is asked itself once it exists; without a name any of its kind that the
    /// workload manages.
    Object(WorkloadKind, Option<Name>),
    /// Jobs, numbered after the base, or one that is called so: what has ended of each counts.
    Jobs {
        /// Their name before the number.
        base: Name,
        /// How many; none is one without a number.
        number: Option<u32>,
        /// Pods that each wants at a time.
        each: u32,
    },
}

/// The indexes of a role's pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Indexes {
    /// How many have ended well.
    pub(crate) completed: u32,
    /// Those that have neither ended well nor been given up, in order.
    pub(crate) open: Vec<Range<u32>>,
}

impl Indexes {
    /// The first so many.
    pub(super) fn all(count: u32) -> Self {
        Self::new(count, &[], &[])
    }

    /// These.
    pub(super) fn some(span: Range<u32>) -> Self {
        Self { completed: 0, open: vec![span] }
    }

    /// Of the first `all`, with runs that have ended well or been given up: first and last of each.
    pub(super) fn new(all: u32, completed: &[(u32, u32)], failed: &[(u32, u32)]) -> Self {
        let long = |(first, last): &(u32, u32)| (last - first).saturating_add(1);
        let mut ended = [completed, failed].concat();
        ended.sort_unstable();
        let (mut open, mut from) = (Vec::new(), 0);
        for (first, last) in ended {
            open.push(from..first.min(all));
            from = from.max(last.saturating_add(1));
        }
        open.push(from..all);
        open.retain(|run| !run.is_empty());
        Self { completed: completed.iter().map(long).fold(0, u32::saturating_add), open }
    }
}
