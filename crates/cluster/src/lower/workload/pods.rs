//! Which pods of a workload exist, and which are still to be made: the question that its controller
//! asks, over the objects that there are.

use std::collections::BTreeSet;

use phalanx_engine::{GroupKey, Name, NodeKey, NodeRequirement, PodKey, Scoped, admits};
use phalanx_objects::workload::WorkloadKind;

use super::super::Lowering;
use super::super::record::{Life, Owner, PodRecord, Uid};
use super::record::{Indexes, RoleRecord, StandsFor, WorkloadRecord};
use super::{PODS_MAX, absorbs};

/// How far owners are followed. The longest chain is AppWrapper, TrainJob, JobSet, Job.
const CLIMB_MAX: usize = 8;

/// Most pods of a DaemonSet that are planned: each is a role of its own, for its node is its own.
const DAEMONS_MAX: usize = 10_000;

/// A pod that exists, as one of a workload's.
struct Held<'a> {
    /// The number of the part of its role that it is in.
    outer: Option<u32>,
    index: Option<u32>,
    record: &'a PodRecord,
}

/// Which of a workload's pods a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Number of its role.
    pub(crate) role: u16,
    /// Name of its role; empty where there is but one.
    pub(crate) name: Name,
    pub(crate) index: Option<u32>,
    pub(crate) rank: Option<u32>,
}

/// The pods of a role that are to be made, by index.
pub(crate) type Due = Vec<u32>;

impl Lowering {
    /// The workload that a pod counts for: the nearest that is there, or that which absorbs it.
    pub(crate) fn root_of_pod(&self, record: &PodRecord) -> Option<GroupKey> {
        let owner = record.owner.as_ref()?;
        let there = |(key, uid): &&(GroupKey, Uid)| {
            let found = self.objects.workloads.get(key);
            found.is_some_and(|workload| !uid.differs(&workload.header.uid))
        };
        let (nearest, _) = owner.chain.iter().find(there)?;
        Some(self.root(nearest))
    }

    /// The workload that is asked for the pods of this one: itself, or that which absorbs it.
    pub(crate) fn root(&self, key: &GroupKey) -> GroupKey {
        let mut key = key;
        for _ in 0..CLIMB_MAX {
            let Some(record) = self.objects.workloads.get(key) else { break };
            match self.manager_of(record) {
                Some((above, by)) if absorbs(by.kind, record.kind) => key = above,
                Some(_) | None => break,
            }
        }
        key.clone()
    }

    /// The workload that manages this one, if it is there.
    fn manager_of<'a>(
        &'a self,
        record: &'a WorkloadRecord,
    ) -> Option<(&'a GroupKey, &'a WorkloadRecord)> {
        let (key, uid) = record.owner.as_ref()?;
        let found = self.objects.workloads.get(key)?;
        (!uid.differs(&found.header.uid)).then_some((key, found))
    }

    /// All workloads above this one, nearest first, and itself.
    pub(crate) fn lineage(&self, key: &GroupKey) -> Vec<GroupKey> {
        let mut all = vec![key.clone()];
        let mut next = self.objects.workloads.get(key);
        while let Some((above, record)) = next.and_then(|record| self.manager_of(record)) {
            if all.len() > CLIMB_MAX || all.contains(above) {
                break;
            }
            all.push(above.clone());
            next = Some(record);
        }
        all
    }

    /// The workloads that a pod is part of, and those above them.
    pub(crate) fn lineage_of_pod(&self, record: &PodRecord) -> Vec<GroupKey> {
        let mut all = Vec::new();
        for (key, uid) in record.owner.iter().flat_map(|owner| &owner.chain) {
            let found = self.objects.workloads.get(key);
            if found.is_some_and(|workload| !uid.differs(&workload.header.uid)) {
                all.extend(self.lineage(key));
            }
        }
        all.sort();
        all.dedup();
        all
    }

    /// What a workload manages that is there.
    fn children<'a>(
        &'a self,
        key: &GroupKey,
        record: &'a WorkloadRecord,
    ) -> impl Iterator<Item = (&'a GroupKey, &'a WorkloadRecord)> {
        let keys = self.index.children.get(key).into_iter().flatten();
        let all = keys.filter_map(|key| Some((key, self.objects.workloads.get(key)?)));
        all.filter(|(_, child)| {
            child.owner.as_ref().is_some_and(|(_, uid)| !uid.differs(&record.header.uid))
        })
    }

    /// The pods of a workload that exist.
    pub(crate) fn owned<'a>(
        &'a self,
        key: &'a GroupKey,
        record: &'a WorkloadRecord,
    ) -> impl Iterator<Item = (&'a PodKey, &'a PodRecord)> {
        let absorbed =
            self.children(key, record).filter(|(_, child)| absorbs(record.kind, child.kind));
        let keys = std::iter::once(key).chain(absorbed.map(|(key, _)| key));
        let pods: BTreeSet<&PodKey> =
            keys.flat_map(|key| self.index.owned.get(key).into_iter().flatten()).collect();
        let all = pods.into_iter().filter_map(|key| Some((key, &**self.objects.pods.get(key)?)));
        all.filter(move |(_, pod)| self.root_of_pod(pod).as_ref() == Some(key))
    }

    /// The pods of a workload that are of the attempt that counts, role by role.
    fn held<'a>(&'a self, key: &'a GroupKey, record: &'a WorkloadRecord) -> Vec<Vec<Held<'a>>> {
        let mut all: Vec<Vec<Held<'a>>> = record.roles.iter().map(|_| Vec::new()).collect();
        for (_, pod) in self.owned(key, record) {
            let Some(owner) = pod.owner.as_deref().filter(|o| o.attempt >= record.attempt) else {
                continue;
            };
            let found = role_of(record, owner);
            let place =
                found.and_then(|(role, index)| Some((all.get_mut(usize::from(role))?, index)));
            if let Some((of_role, index)) = place {
                of_role.push(Held { outer: owner.outer, index, record: pod });
            }
        }
        all
    }

    /// Which of a workload's pods a pod is; none where it has no such role any more.
    pub(crate) fn seat_of(&self, workload: &GroupKey, pod: &PodRecord) -> Option<Seat> {
        let record = self.objects.workloads.get(workload)?;
        let (role, index) = role_of(record, pod.owner.as_deref()?)?;
        let of = record.roles.get(usize::from(role))?;
        Some(Seat { role, name: of.name.clone(), index, rank: index.and_then(|i| of.rank.of(i)) })
    }

    /// The pods of a workload that do not exist yet and would be made now, role by role. Those of a
    /// DaemonSet have nodes instead of indexes, see [`Self::daemon_nodes`].
    pub(crate) fn due(&self, key: &GroupKey, record: &WorkloadRecord) -> Vec<Due> {
        let mut all: Vec<Due> = Vec::with_capacity(record.roles.len());
        if record.aside || record.kind == WorkloadKind::DaemonSet || self.root(key) != *key {
            return vec![Due::new(); record.roles.len()];
        }
        let held = self.held(key, record);
        for (role, mine) in record.roles.iter().zip(&held) {
            let early = role.after.is_some_and(|before| {
                let before = usize::from(before);
                let open = all.get(before).is_some_and(|due| !due.is_empty());
                let mut pods = held.get(before).into_iter().flatten();
                open || pods.any(|held| held.record.life != Life::Ended)
            });
            let due = if early {
                Due::new()
            } else {
                match &role.stands_for {
                    Some(StandsFor::Object(kind, name))
                        if self.stands(key, record, *kind, name.as_ref()) =>
                    {
                        Due::new()
                    }
                    Some(StandsFor::Jobs { base, number, each }) => {
                        let jobs = Jobs { base, number: *number, each: *each };
                        self.due_of_jobs(key, record, role, &jobs, mine)
                    }
                    Some(StandsFor::Object(..)) | None => {
                        let kept = mine.iter().filter(|held| record.keeps(&held.record.life));
                        missing(role.wanted, role.indexes.as_ref(), kept.map(|held| held.index))
                    }
                }
            };
            all.push(due);
        }
        all
    }

    /// Whether the object that a role stands for is there.
    fn stands(
        &self,
        key: &GroupKey,
        record: &WorkloadRecord,
        kind: WorkloadKind,
        name: Option<&Name>,
    ) -> bool {
        let is = |key: &GroupKey| name.is_none_or(|name| *name == key.object.name);
        self.children(key, record).any(|(key, child)| child.kind == kind && is(key))
    }

    /// The pods that Jobs still want: of one that is there, as it says itself.
    fn due_of_jobs(
        &self,
        key: &GroupKey,
        record: &WorkloadRecord,
        role: &RoleRecord,
        jobs: &Jobs<'_>,
        held: &[Held<'_>],
    ) -> Due {
        let per = role.places.per.unwrap_or(1);
        let (mut all, mut wanted) = (Due::new(), 0_u32);
        let manages = self.index.children.contains_key(key);
        let child_named = |name: Name| {
            let object = Scoped { namespace: key.object.namespace.clone(), name };
            let job = GroupKey { object, kind: Name::new(WorkloadKind::Job.word()) };
            let child = self.objects.workloads.get(&job)?;
            let (above, _) = self.manager_of(child)?;
            (above == key).then_some(child)
        };
        let parts = match (&role.span, jobs.number) {
            (Some(span), Some(_)) => span.start / per.max(1)..span.end / per.max(1),
            (Some(_) | None, number) => 0..number.unwrap_or(1),
        };
        for part in parts {
            if wanted >= role.wanted || jobs.each == 0 {
                break;
            }
            wanted = wanted.saturating_add(jobs.each);
            let child = match (manages, jobs.number) {
                (false, _) => None,
                (true, Some(_)) => child_named(Name::new(&format!("{}-{part}", jobs.base))),
                (true, None) => child_named(jobs.base.clone()),
            };
            if child.is_some_and(|child| child.aside) {
                continue;
            }
            let own = child.and_then(|child| Some((child, child.roles.first()?)));
            let (number, indexes) = match own {
                Some((_, of)) => (of.wanted, of.indexes.clone()),
                None => (jobs.each, Some(Indexes::all(per))),
            };
            let keeper = child.unwrap_or(record);
            let mine = held.iter().filter(|held| {
                let of_part = jobs.number.is_none() || held.outer == Some(part);
                of_part && keeper.keeps(&held.record.life)
            });
            let first = part.saturating_mul(per);
            let taken = mine.map(|held| held.index.and_then(|index| index.checked_sub(first)));
            // No more than can be planned, whatever one Job says.
            let due = missing(number.min(PODS_MAX), indexes.as_ref(), taken);
            all.extend(due.into_iter().filter_map(|index| first.checked_add(index)));
        }
        all.truncate(PODS_MAX as usize);
        all
    }

    /// The nodes on which a DaemonSet still wants a pod, sorted, and whether there are more than can
    /// be planned. Room is not asked for: its pod is made, and waits.
    pub(crate) fn daemon_nodes(
        &self,
        key: &GroupKey,
        record: &WorkloadRecord,
    ) -> (Vec<Name>, bool) {
        let role = record.roles.first().filter(|role| {
            record.kind == WorkloadKind::DaemonSet && !record.aside && role.wanted > 0
        });
        let Some(role) = role else { return (Vec::new(), false) };
        let held = self.held(key, record);
        let covered: BTreeSet<&Name> =
            held.iter().flatten().filter_map(|held| node_of(held.record)).collect();
        let open = |(name, node): &(&Name, &super::super::record::NodeRecord)| {
            !covered.contains(*name)
                && admits(&role.shape.node, &NodeKey((*name).clone()), &node.node)
        };
        let nodes = self.objects.nodes.iter().filter(open);
        let mut nodes: Vec<Name> = nodes.map(|(name, _)| name.clone()).collect();
        nodes.sort();
        let more = nodes.len() > DAEMONS_MAX;
        nodes.truncate(DAEMONS_MAX);
        (nodes, more)
    }

    /// How many pods of a role do not exist yet and would be made now.
    pub(crate) fn missing(&self, key: &GroupKey, record: &WorkloadRecord, role: u16) -> u32 {
        let number = if record.kind == WorkloadKind::DaemonSet {
            self.daemon_nodes(key, record).0.len()
        } else {
            self.due(key, record).get(usize::from(role)).map_or(0, Vec::len)
        };
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}

/// The Jobs of a role.
struct Jobs<'a> {
    base: &'a Name,
    number: Option<u32>,
    each: u32,
}

impl WorkloadRecord {
    /// Whether no other pod is made in the place of one in this state.
    fn keeps(&self, life: &Life) -> bool {
        match life {
            Life::Pending | Life::Foreign | Life::Bound(_) => true,
            Life::Leaving | Life::Terminating(..) => self.keeps_leaving,
            Life::Ended => self.keeps_ended,
        }
    }
}

/// The role and index of a pod by what it says of itself.
fn role_of(record: &WorkloadRecord, owner: &Owner) -> Option<(u16, Option<u32>)> {
    let is = |role: &RoleRecord| {
        let of_object = match &role.stands_for {
            Some(StandsFor::Object(kind, Some(name))) => owner
                .chain
                .iter()
                .any(|(key, _)| key.kind.as_str() == kind.word() && key.object.name == *name),
            Some(StandsFor::Object(_, None) | StandsFor::Jobs { .. }) | None => true,
        };
        let of_span = role.span.as_ref().is_none_or(|span| {
            let index = role.places.index(owner.outer, owner.inner);
            index.is_some_and(|index| span.contains(&index))
        });
        of_object && of_span && (role.sign.is_empty() || role.sign == owner.role)
    };
    let at = record.roles.iter().position(is)?;
    let index = record.roles.get(at)?.places.index(owner.outer, owner.inner);
    Some((u16::try_from(at).ok()?, index))
}

/// The lowest indexes that nobody has, as many as are missing.
fn missing(wanted: u32, indexes: Option<&Indexes>, kept: impl Iterator<Item = Option<u32>>) -> Due {
    let kept: Vec<Option<u32>> = kept.collect();
    let number = usize::try_from(wanted).unwrap_or(usize::MAX).saturating_sub(kept.len());
    let taken: BTreeSet<u32> = kept.into_iter().flatten().collect();
    let free = |index: &u32| !taken.contains(index);
    match indexes {
        // Indexes may run out before the count does, for those that failed are given up.
        Some(indexes) => indexes.open.iter().cloned().flatten().filter(free).take(number).collect(),
        None => (0..u32::MAX).filter(free).take(number).collect(),
    }
}

/// The node that a DaemonSet's pod is on, or is for.
fn node_of(pod: &PodRecord) -> Option<&Name> {
    match &pod.life {
        Life::Bound(node) | Life::Terminating(node, _) => Some(&node.0),
        Life::Pending | Life::Foreign | Life::Leaving => {
            let terms = pod.shape.node.required.iter().flatten();
            terms.flatten().find_map(NodeRequirement::node_name)
        }
        Life::Ended => None,
    }
}
