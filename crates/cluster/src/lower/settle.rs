//! Lowering what is marked, in the order of what depends on what: classes and specs, then what live
//! specs read, pools and verdicts, then claims, pods, workloads and links.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{
    Admits, Change, Claim, ClaimKey, Derived, Gate, Group, GroupKey, Match, Member, Minimum, Name,
    NodeKey, NodeRequirement, NodeTerm, Phase, PodKey, PoolKey, ProfileId, Reason, Request, Role,
    Scoped, SelectorId, Shared, User,
};
use phalanx_objects::workload::WorkloadKind;
use phalanx_objects::{Kind, ObjectRef};

use super::absorb::findings;
use super::claim::{Problem, Resolver, SpecId};
use super::found::counted_note;
use super::links::{Matching, Published};
use super::record::{ClaimRecord, Life, PodRecord, PriorityFrom, PriorityRecord};
use super::selector::{Live, seen};
use super::slice::{Note, PoolLowering};
use super::workload::{Seat, WorkloadRecord};
use super::{Dependent, Findings, Interned, Lowering};
use crate::finding::{Severity, UNREAD};

/// PriorityClasses that every cluster has (`scheduling.SystemPriorityClasses`).
const SYSTEM_PRIORITIES: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// A role of a workload as the engine sees it: what is to be made of it.
#[derive(Clone)]
pub(super) struct Planned {
    /// Its number in the workload.
    pub(super) at: u16,
    pub(super) role: Role,
    /// The gates of its pods.
    pub(super) gates: Box<[Name]>,
    /// The indexes of its pods; those of a DaemonSet have none.
    pub(super) indexes: Vec<u32>,
}

/// A pod that exists, as a role of one.
pub(super) struct PodParts {
    pub(super) request: Shared<Request>,
    /// As [`Member::claims`] has them.
    pub(super) claims: Box<[Option<ClaimKey>]>,
    /// The workload that it counts for, and its seat there.
    pub(super) parent: Option<GroupKey>,
    pub(super) seat: Option<Seat>,
    pub(super) priority: i32,
    pub(super) admits: Option<Box<Admits>>,
}

/// New verdicts.
type Told = Vec<(SelectorId, ProfileId, Match)>;

impl Lowering {
    /// Lowers what is marked, each thing once. The changes are sorted by kind and key; applying
    /// them brings the engine's state to what the objects say now.
    pub fn settle(&mut self) -> Vec<Change> {
        let mut changes = Vec::with_capacity(self.dirty.changes());
        self.settle_admission();
        self.settle_served();
        self.settle_specs();
        self.settle_templates();
        let new_chains = self.settle_live();
        self.settle_pools(&mut changes);
        self.settle_verdicts(&new_chains, &mut changes);
        let moved = self.settle_nodes(&mut changes);
        self.settle_storage(&mut changes);
        self.settle_links(&mut changes);
        self.settle_claims(&mut changes);
        self.settle_sharing(&mut changes);
        self.settle_spreading();
        self.settle_meant();
        self.settle_quotas();
        self.settle_pods(&mut changes);
        self.settle_workloads(&mut changes);
        let said = self.settle_gangs(&mut changes);
        self.settle_trees(said, &moved, &mut changes);
        changes
    }

    /// Marks who has a spec that means something else now.
    fn settle_specs(&mut self) {
        let mut resolver = Resolver {
            classes: &self.objects.classes,
            selectors: &mut self.selectors,
            names: &mut self.interned.names,
            compat: &self.compat,
            unread: &self.unread,
        };
        for spec in self.specs.settle(&mut resolver) {
            let claims = self.index.spec_claims.get(&spec).into_iter().flatten();
            self.dirty.claims.extend(claims.cloned());
            let templates = self.index.spec_templates.get(&spec).into_iter().flatten();
            self.dirty.templates.extend(templates.cloned());
            let askers = self.index.spec_served.get(&spec).cloned().unwrap_or_default();
            self.mark(askers);
        }
        for key in &self.dirty.claims {
            // A claim that changes is asked for anew by the pod that it was made for.
            let owner = self.objects.claims.get(key).and_then(|claim| claim.owner.as_ref());
            self.dirty.pods.extend(owner.map(|(pod, _)| pod.clone()));
        }
    }

    fn settle_templates(&mut self) {
        for key in distinct(&mut self.dirty.templates) {
            for group in self.index.shared_templates.get(&key).cloned().unwrap_or_default() {
                self.mark_sharers(&group);
            }
            let users = self.index.template.get(&key).cloned().unwrap_or_default();
            for user in users {
                match user {
                    Dependent::Pod(pod) => self.dirty.pods.push(pod),
                    Dependent::Role(group, _) => self.dirty.workloads.push(group),
                }
            }
            let spec = self.objects.templates.get(&key).map(|record| record.spec);
            let reference = || object(Kind::ResourceClaimTemplate, &key);
            self.report_spec(reference, spec, "spec.spec.devices");
        }
    }

    /// Says on a template or claim what is wrong with its spec.
    fn report_spec(
        &mut self,
        reference: impl FnOnce() -> ObjectRef,
        spec: Option<SpecId>,
        at: &str,
    ) {
        let problem = spec.and_then(|id| self.specs.get(id)).and_then(|spec| spec.problem());
        let note = problem.and_then(|problem| spec_note(problem, at));
        self.report(reference, note.into_iter().collect());
    }

    /// Replaces what was said of an object among the others.
    fn report(&mut self, reference: impl FnOnce() -> ObjectRef, notes: Vec<Note>) {
        if notes.is_empty() && self.findings.lowered.is_empty() {
            return;
        }
        let reference = reference();
        let source = self.header(&reference).map(|header| header.source.clone());
        let found = source.map(|source| findings(&reference, &source, notes));
        Findings::set(&mut self.findings.lowered, &reference, found.unwrap_or_default());
    }

    /// What live specs read now. Answers the rows of selectors that were not live before.
    fn settle_live(&mut self) -> Vec<Box<[SelectorId]>> {
        if !std::mem::take(&mut self.specs.moved) {
            return Vec::new();
        }
        let live = Live::of(&self.specs, &self.selectors);
        if !live.reads_like(&self.live) {
            self.dirty.all_pools = true;
            self.interned.traits.clear();
        }
        let new = live.chains().difference(self.live.chains()).cloned().collect();
        self.live = live;
        new
    }

    fn settle_pools(&mut self, changes: &mut Vec<Change>) {
        self.live.learn(&self.interned.attributes);
        let mut dirty = distinct(&mut self.dirty.pools);
        if std::mem::take(&mut self.dirty.all_pools) {
            dirty = self.objects.pools.keys().cloned().collect();
        }
        for key in &dirty {
            self.mark_holders(key);
        }
        let mut lowering = PoolLowering {
            names: &mut self.interned.names,
            attributes: &self.interned.attributes,
            live: &self.live,
            compat: &self.compat,
            profiles: &mut self.profiles,
            traits: &mut self.interned.traits,
            rules: &self.objects.taint_rules,
            compared: self.live.compared_of(&self.interned.attributes),
        };
        for key in dirty {
            let Some(record) = self.objects.pools.get_mut(&key) else { continue };
            let old = std::mem::take(&mut record.profiles);
            if record.slices.is_empty() {
                self.objects.pools.remove(&key);
                changes.push(Change::Pool(key, None));
            } else {
                let (pool, profiles) = lowering.pool(&key, &record.slices);
                profiles.keys().for_each(|id| lowering.profiles.take(*id));
                record.profiles = profiles;
                changes.push(Change::Pool(key, Some(pool)));
            }
            old.into_keys().for_each(|id| lowering.profiles.give(id));
        }
    }

    /// Asks the selectors of each alternative about each live profile, in order and up to the first
    /// that does not say yes: no search comes to those behind it. Each pair is asked once.
    fn settle_verdicts(&mut self, new: &[Box<[SelectorId]>], changes: &mut Vec<Change>) {
        let fresh = std::mem::take(&mut self.profiles.fresh);
        let mut told = Told::new();
        for profile in fresh {
            self.judge(profile, None, &mut told);
            self.derive(profile, None, changes);
        }
        if !new.is_empty() {
            for profile in self.profiles.live() {
                self.judge(profile, Some(new), &mut told);
                self.derive(profile, Some(new), changes);
            }
        }
        told.sort_unstable_by_key(|(selector, profile, _)| (*selector, *profile));
        changes.extend(told.into_iter().map(|(s, p, verdict)| Change::Match(s, p, verdict)));
    }

    /// Asks about one profile: the live rows of selectors, or these.
    fn judge(&mut self, profile: ProfileId, rows: Option<&[Box<[SelectorId]>]>, told: &mut Told) {
        let Some(projection) = self.profiles.get(profile) else { return };
        let mut device = None;
        let live = self.live.chains().iter().filter(|_| rows.is_none());
        for row in rows.into_iter().flatten().chain(live) {
            for selector in row.iter().filter(|id| !self.selectors.is_derived(**id)) {
                let known = self.shown.verdicts.entry((*selector, profile));
                let verdict = *known.or_insert_with(|| {
                    let device =
                        device.get_or_insert_with(|| seen(projection, &self.interned.attributes));
                    let verdict = self.selectors.judge(*selector, device);
                    told.push((*selector, profile, verdict));
                    verdict
                });
                match verdict {
                    Match::Yes => {}
                    Match::Error => {
                        self.shown.erring.entry(*selector).or_default().insert(profile);
                        break;
                    }
                    Match::No => break,
                }
            }
        }
    }

    /// Works out the derived attributes of one profile: the live ones, or those of these rows.
    fn derive(
        &mut self,
        profile: ProfileId,
        rows: Option<&[Box<[SelectorId]>]>,
        changes: &mut Vec<Change>,
    ) {
        if !self.live.derives() {
            return;
        }
        let Some(projection) = self.profiles.get(profile) else { return };
        let lists = self.compat.is_on(crate::compat::Gate::DRAListTypeAttributes);
        let Interned { attributes, names, .. } = &mut self.interned;
        let live = self.live.chains().iter().filter(|_| rows.is_none());
        let ids = rows.into_iter().flatten().chain(live).flatten();
        for &id in ids.filter(|id| self.selectors.is_derived(**id)) {
            // To be told once is enough, and what is lacking need not be told.
            if self.shown.verdicts.insert((id, profile), Match::Yes).is_some() {
                continue;
            }
            let value = self.selectors.derive(id, projection, attributes, lists, names);
            if value == Some(Derived::Error) {
                self.shown.erring.entry(id).or_default().insert(profile);
            }
            changes.push(Change::Derived(id, profile, value));
        }
    }

    /// Tells of nodes that changed, and which they are, sorted.
    fn settle_nodes(&mut self, changes: &mut Vec<Change>) -> Vec<Name> {
        if !self.dirty.nodes.is_empty() {
            self.mark_daemons();
        }
        let nodes = distinct(&mut self.dirty.nodes);
        for name in &nodes {
            let node = self.objects.nodes.get(name).map(|record| record.node.clone());
            changes.push(Change::Node(NodeKey(name.clone()), node));
        }
        nodes
    }

    /// Which nodes a DaemonSet is for is asked anew when nodes change.
    fn mark_daemons(&mut self) {
        let daemons = self.objects.workloads.iter();
        let daemons = daemons.filter(|(_, record)| record.kind == WorkloadKind::DaemonSet);
        self.dirty.workloads.extend(daemons.map(|(key, _)| key.clone()));
    }

    fn settle_links(&mut self, changes: &mut Vec<Change>) {
        for node in distinct(&mut self.dirty.links) {
            let names = self.index.topologies.get(&node).cloned().unwrap_or_default();
            // The object that is named as the node speaks for it, else the first by name.
            let chosen = names.get(&node.0).or_else(|| names.first()).cloned();
            for name in names.iter().filter(|name| Some(*name) != chosen.as_ref()) {
                let message = format!(
                    "NodeTopology {} speaks of node {} too and is used instead.",
                    chosen.as_deref().unwrap_or_default(),
                    node.0
                );
                let note = (Severity::Warning, "spec.nodeName".to_owned(), message);
                self.report(|| cluster_object(Kind::NodeTopology, name), vec![note]);
            }
            let record =
                chosen.as_ref().and_then(|name| self.objects.topologies.get(name)).cloned();
            let (Some(name), Some(record)) = (chosen, record) else {
                if self.shown.links.remove(&node) {
                    changes.push(Change::Links(node, None));
                }
                continue;
            };
            let devices = self.published(&node, &super::published::named_pools(&record));
            let mut notes = Vec::new();
            let links = Matching { devices: &devices }.fill(&record, &mut notes);
            self.report(|| cluster_object(Kind::NodeTopology, &name), notes);
            self.shown.links.insert(node.clone());
            changes.push(Change::Links(node, Some(links)));
        }
    }

    /// The devices that members of a node's topology may be: those of its own slices, and of the
    /// pools that the topology names.
    fn published(&self, node: &NodeKey, named: &[PoolKey]) -> Vec<Published> {
        let own = self.index.node_pools.get(node).into_iter().flat_map(|pools| pools.keys());
        let pools: BTreeSet<&PoolKey> = own.chain(named).collect();
        let mut devices = Vec::new();
        for key in pools {
            let Some(pool) = self.objects.pools.get(key) else { continue };
            let newest = pool.slices.values().map(|slice| slice.generation).max();
            for slice in pool.slices.values().filter(|s| Some(s.generation) == newest) {
                devices.extend(slice.devices.iter().map(|device| self.publish(key, device)));
            }
        }
        devices.sort_by(|a, b| a.key.cmp(&b.key));
        devices.dedup_by(|a, b| a.key == b.key);
        devices
    }

    fn settle_claims(&mut self, changes: &mut Vec<Change>) {
        for key in distinct(&mut self.dirty.claims) {
            let Some(record) = self.objects.claims.get(&key) else {
                self.findings.lowered.remove(&object(Kind::ResourceClaim, &key.0));
                changes.push(Change::Claim(key, None));
                continue;
            };
            let (spec, made) = (record.spec, record.pod_claim.is_some() || record.extended);
            let resolved = self.specs.resolved(spec).cloned();
            let stale = self.is_left_over(record);
            let claim = resolved.map(|spec| Claim {
                spec,
                held: record.held.as_ref().filter(|_| !stale).map(|held| self.with_vanished(held)),
                users: if stale { Vec::new() } else { self.users_of(&key, record) },
                failed: record.failed.clone().filter(|_| !stale),
                deleting: record.deleting,
            });
            // What is wrong with a claim made from a template is said on the template.
            let open = (record.held.is_none() && !made).then_some(spec);
            self.report_spec(|| object(Kind::ResourceClaim, &key.0), open, "spec.devices");
            changes.push(Change::Claim(key, claim));
        }
    }

    /// Who a claim is reserved for. A pod that is gone is another than the one that has its name now
    /// and waits for the claim.
    fn users_of(&self, claim: &ClaimKey, record: &ClaimRecord) -> Vec<User> {
        let waiting = |key: &PodKey| {
            let pod = self.objects.pods.get(key).filter(|pod| pod.life == Life::Pending)?;
            self.index.claim.get(claim)?.contains(key).then_some(pod)
        };
        let user = |(user, uid): &(User, super::record::Uid)| match user {
            User::Pod(key) if waiting(key).is_some_and(|pod| uid.differs(&pod.header.uid)) => {
                User::Other(Name::new(&format!("pods/{}/{uid}", key.0.name)))
            }
            User::Pod(_) | User::Other(_) => user.clone(),
        };
        record.users.iter().map(user).collect()
    }

    /// Whether a claim for extended resources was left by an attempt that failed: while its pod waits,
    /// kube-scheduler deletes it before it tries again.
    fn is_left_over(&self, claim: &ClaimRecord) -> bool {
        let Some((owner, uid)) = claim.owner.as_ref().filter(|_| claim.extended) else {
            return false;
        };
        self.objects
            .pods
            .get(owner)
            .is_some_and(|pod| pod.life == Life::Pending && !uid.differs(&pod.header.uid))
    }

    /// The claims that attempts which failed have left, whether or not they hold devices.
    pub(crate) fn left_over(&self) -> Vec<ClaimKey> {
        let all = self.index.made.values().flatten();
        let stale = |key: &&ClaimKey| {
            self.objects.claims.get(*key).is_some_and(|claim| self.is_left_over(claim))
        };
        all.filter(stale).cloned().collect()
    }

    /// Marks the claim that was made for a pod's extended resources: what it is depends on whether
    /// the pod waits.
    pub(super) fn mark_extended(&mut self, pod: &PodKey) {
        let Some(made) = self.index.made.get(pod) else { return };
        let of = |key: &&ClaimKey| self.objects.claims.get(*key).is_some_and(|c| c.extended);
        self.dirty.claims.extend(made.iter().filter(of).cloned());
    }

    fn settle_pods(&mut self, changes: &mut Vec<Change>) {
        let kind = self.interned.names.get("pod");
        for key in distinct(&mut self.dirty.pods) {
            let group = super::pod::group_of(&key, &kind);
            let record = self.objects.pods.get(&key).cloned();
            let phase = record.as_ref().and_then(|record| phase(&record.life));
            let (Some(record), Some(phase)) = (record, phase) else {
                self.findings.lowered.remove(&object(Kind::Pod, &key.0));
                let gang = self.shown.gang_of.remove(&key);
                let alone = self.shown.pods.remove(&key);
                if alone || gang.is_some() {
                    self.dirty.gangs.extend(gang);
                    changes.push(Change::Member(key, None));
                }
                if alone {
                    changes.push(Change::Group(group, None));
                }
                continue;
            };
            let gang = self.gang_of_pod(&key, &record);
            let before = match &gang {
                Some(gang) => self.shown.gang_of.insert(key.clone(), gang.clone()),
                None => self.shown.gang_of.remove(&key),
            };
            self.dirty.gangs.extend(before);
            if let Some(gang) = gang {
                // It is told of with the others of its gang.
                self.dirty.gangs.push(gang);
                if self.shown.pods.remove(&key) {
                    changes.push(Change::Group(group, None));
                }
                continue;
            }
            let (lowered, member) = self.lower_pod(&key, &record, group.clone(), phase);
            self.shown.pods.insert(key.clone());
            changes.push(Change::Group(group, Some(lowered)));
            changes.push(Change::Member(key, Some(member)));
        }
    }

    fn lower_pod(
        &mut self,
        key: &PodKey,
        record: &PodRecord,
        group: GroupKey,
        phase: Phase,
    ) -> (Group, Member) {
        let parts = self.pod_parts(key, record);
        let role = Role {
            name: parts.seat.as_ref().map_or_else(|| Name::new(""), |seat| seat.name.clone()),
            request: parts.request,
            min: 1,
            max: 1,
            segment: None,
            first_rank: parts.seat.and_then(|seat| seat.rank).unwrap_or(0),
            admits: parts.admits,
        };
        let gate = gate(&record.shape.gates);
        let since = record.header.since();
        let lowered = Group {
            parent: parts.parent,
            gate: if record.life == Life::Pending { gate } else { Gate::Open },
            ..self.group_with(vec![role], parts.priority, since, record.run_max_millis)
        };
        let expected_end = record.expected_end;
        let nominated = record.nominated.clone();
        let claims = parts.claims;
        let member = Member { group, role: 0, index: None, phase, claims, expected_end, nominated };
        (lowered, member)
    }

    /// What a pod that exists asks for and is of; says what is wrong with it.
    pub(super) fn pod_parts(&mut self, key: &PodKey, record: &PodRecord) -> PodParts {
        let waits = record.life == Life::Pending;
        let group = super::pod::group_of(key, &self.interned.names.get("pod"));
        let served = if waits { self.served_of(&group, 0).to_vec() } else { Vec::new() };
        let (priority, note) = self.priority(&record.priority);
        let dependent = Dependent::Pod(key.clone());
        let (admits, never) = (self.admits(&dependent), self.never_admitted(&dependent));
        // For a pod that has its node the priority is only shown.
        let note =
            note.into_iter().chain(counted_note(&record.shape, &record.shape.align, &served));
        let note = note.chain(self.admission_notes(record.draft.as_deref(), &dependent));
        self.report(|| object(Kind::Pod, &key.0), note.filter(|_| waits).collect());
        let parent = self.root_of_pod(record);
        let seat = parent.as_ref().and_then(|parent| self.seat_of(parent, record));
        let wish = match (&record.life, &parent) {
            (Life::Pending, Some(parent)) => {
                self.objects.workloads.get(parent).map(|w| w.wish.clone())
            }
            _ => None,
        };
        let found = self.claims_of(key, record);
        let wish = wish.filter(|wish| wish.as_ref().map_or(true, |wish| !wish.is_empty()));
        let of_groups = || self.wish_of_groups(&key.0.namespace, record.marks.as_deref());
        let wish = wish.or_else(|| waits.then(of_groups)?).unwrap_or_else(|| Ok(Box::default()));
        let of = (&*record.shape, &record.labels, self.spreading.given(&dependent));
        let volumes = self.mounted(key, record);
        let (request, claims) = self.request(of, &wish, found, &served, never, volumes);
        let claims = match self.extended_made(key, record) {
            Some(made) => claims.into_iter().chain([Some(made)]).collect(),
            None => claims,
        };
        let admits = admits.filter(|_| waits);
        PodParts { request, claims, parent, seat, priority, admits }
    }

    pub(super) fn group_with(
        &self,
        roles: Vec<Role>,
        priority: i32,
        since: phalanx_engine::Since,
        run_max_millis: Option<i64>,
    ) -> Group {
        Group {
            queue: None,
            priority,
            since,
            parent: None,
            roles,
            minimum: Minimum::Each,
            parts: phalanx_engine::Parts::default(),
            rules: Vec::new(),
            shared: Vec::new(),
            run_max_millis,
            disruption: phalanx_engine::Disruption::default(),
            gate: Gate::Open,
        }
    }

    /// The priority, and what to say where its class is not among the objects.
    pub(super) fn priority(&self, from: &PriorityFrom) -> (i32, Option<Note>) {
        match from {
            PriorityFrom::Value(value) => (*value, None),
            PriorityFrom::Default => (default_priority(&self.objects.priorities), None),
            PriorityFrom::Class(name) => {
                match priority_of(&self.objects.priorities, name) {
                    Some(value) => (value, None),
                    None => {
                        let unread =
                            self.unread.contains(&cluster_object(Kind::PriorityClass, name));
                        // Where there are classes the API server refuses the pod, which is said.
                        let unsure = unread || self.objects.priorities.is_empty();
                        (0, unsure.then(|| missing_priority(name, unread)))
                    }
                }
            }
        }
    }

    fn settle_workloads(&mut self, changes: &mut Vec<Change>) {
        // Who is absorbed is asked through the workload that absorbs it.
        let mut dirty = distinct(&mut self.dirty.workloads);
        let roots: Vec<GroupKey> = dirty.iter().map(|key| self.root(key)).collect();
        dirty.extend(roots);
        for key in distinct(&mut dirty) {
            let reference = object(workload_kind(&key), &key.object);
            let record = self.objects.workloads.get(&key).cloned();
            let lowered = record.as_ref().and_then(|record| {
                let (roles, notes) = self.roles(&key, record);
                let due = roles.iter().any(|planned| planned.role.max > 0);
                let waits = |(_, pod): (_, &PodRecord)| pod.life == Life::Pending;
                let said = due || self.owned(&key, record).any(waits);
                let mut notes = if said { notes } else { self.nowhere(&key, record) };
                if said {
                    notes.extend(self.doubts_of_none(&key, record));
                }
                self.report(|| reference.clone(), notes);
                // Those of gangs are told of with the others of their gang.
                let gang =
                    |planned: &Planned| self.gang_of_role(&key, record, usize::from(planned.at));
                let roles: Vec<Planned> =
                    roles.into_iter().filter(|planned| gang(planned).is_none()).collect();
                let due = roles.iter().any(|planned| planned.role.max > 0);
                due.then(|| self.group_of(record, roles))
            });
            let at = 0..record.as_ref().map_or(0, |record| record.roles.len());
            let gangs = record
                .iter()
                .flat_map(|record| at.clone().filter_map(|at| self.gang_of_role(&key, record, at)));
            let gangs: Vec<GroupKey> = gangs.collect();
            self.dirty.gangs.extend(gangs);
            if self.shown.gangs.contains_key(&key) {
                self.dirty.gangs.push(key.clone());
            }
            if record.is_none() {
                self.findings.lowered.remove(&reference);
            }
            if lowered.is_some() {
                self.shown.workloads.insert(key.clone());
            } else if !self.shown.workloads.remove(&key) {
                continue;
            }
            changes.push(Change::Group(key, lowered));
        }
    }

    /// What is odd in what roles that are of no gang say of places.
    fn doubts_of_none(&self, key: &GroupKey, record: &WorkloadRecord) -> Vec<Note> {
        let roles = record.roles.iter().enumerate();
        let of_none = roles.filter(|(at, _)| self.gang_of_role(key, record, *at).is_none());
        let marks = of_none.filter_map(|(_, role)| role.marks.as_deref());
        marks.flat_map(|marks| marks.doubts.iter().cloned()).collect()
    }

    /// What to say of a DaemonSet that has no pods and gets none.
    fn nowhere(&self, key: &GroupKey, record: &WorkloadRecord) -> Vec<Note> {
        let none = record.kind == WorkloadKind::DaemonSet
            && !record.aside
            && record.roles.iter().any(|role| role.wanted > 0)
            && self.owned(key, record).next().is_none();
        if !none || self.objects.nodes.is_empty() {
            return Vec::new();
        }
        let message = "No node is one that the DaemonSet's node selector, affinity and tolerations \
                       choose: it makes no pods.";
        vec![(Severity::Warning, "spec.template.spec".to_owned(), message.to_owned())]
    }

    /// A workload's roles with what is missing of each, and their gates; and what there is to say of
    /// it while pods of it are to be placed.
    pub(super) fn roles(
        &mut self,
        key: &GroupKey,
        record: &WorkloadRecord,
    ) -> (Vec<Planned>, Vec<Note>) {
        let mut notes = record.while_due.to_vec();
        let mut roles = Vec::with_capacity(record.roles.len());
        let due = self.due(key, record);
        for (at, role) in record.roles.iter().enumerate() {
            let served = self.served_of(key, at as u16).to_vec();
            let shape = &role.shape;
            let mut of_workload = record.wish.clone();
            if of_workload.as_ref().is_ok_and(|wish| wish.is_empty()) {
                let marks = role.marks.as_deref();
                let of_groups = self.wish_of_groups(&key.object.namespace, marks);
                of_workload = of_groups.unwrap_or(of_workload);
            }
            let wish = match &of_workload {
                Ok(wish) if shape.align.is_empty() => wish,
                Ok(_) | Err(_) => &shape.align,
            };
            notes.extend(self.priority(&role.priority).1);
            notes.extend(counted_note(shape, wish, &served));
            let dependent = Dependent::Role(key.clone(), at as u16);
            let (admits, never) = (self.admits(&dependent), self.never_admitted(&dependent));
            notes.extend(self.admission_notes(Some(&role.draft), &dependent));
            let missing = due.get(at).map_or(&[][..], Vec::as_slice);
            let marks = role.marks.as_deref();
            let found = self.claims_planned(&key.object.namespace, marks, shape);
            let mut before = 0_u32;
            for run in self.runs(key, record.kind, role, missing) {
                let labels = self.labels_of_run(key, record.kind, role, run);
                let of = (&**shape, &labels, self.spreading.given(&dependent));
                let volumes = self.volumes_of(&key.object.namespace, role, run);
                let (request, _) =
                    self.request(of, &of_workload, found.clone(), &served, never.clone(), volumes);
                let first = run.first().and_then(|index| role.rank.of(*index));
                let max = u32::try_from(run.len()).unwrap_or(u32::MAX);
                // Those that are admitted are the first.
                let admits = admits.as_ref().map(|admits| {
                    let most = admits.most.saturating_sub(before);
                    Box::new(Admits { most, fault: admits.fault.clone() })
                });
                before = before.saturating_add(max);
                let admits = self.unmade(key, record.kind, role, run).or(admits);
                let lowered = Role {
                    name: role.name.clone(),
                    request,
                    min: 0,
                    max,
                    segment: None,
                    first_rank: first.unwrap_or(0),
                    admits,
                };
                let indexes = run.to_vec();
                let gates = shape.gates.clone();
                roles.push(Planned { at: at as u16, role: lowered, gates, indexes });
            }
        }
        if record.kind == WorkloadKind::DaemonSet {
            let (nodes, more) = self.daemon_nodes(key, record);
            let each = roles.pop();
            roles = each.map_or_else(Vec::new, |each| on_each(&each, &nodes));
            notes.extend(more.then(|| too_many_nodes(nodes.len())));
        }
        notes.sort();
        notes.dedup();
        (roles, notes)
    }

    fn group_of(&self, record: &WorkloadRecord, roles: Vec<Planned>) -> Group {
        // Of roles that differ the highest priority counts, and any gate holds all.
        let priorities = record.roles.iter().map(|role| self.priority(&role.priority).0);
        let priority = priorities.max().unwrap_or(0);
        let run_max = record.roles.iter().filter_map(|role| role.run_max_millis).max();
        let gates = roles.iter().filter(|of| of.role.max > 0).flat_map(|of| &of.gates);
        let gates: BTreeSet<Name> = gates.cloned().collect();
        let gates: Vec<Name> = gates.into_iter().collect();
        let roles = roles.into_iter().map(|planned| planned.role).collect();
        let group = self.group_with(roles, priority, record.header.since(), run_max);
        Group { gate: gate(&gates), ..group }
    }
}

/// The priority of a pod that names no class: of several defaults the API server takes the lowest.
pub(super) fn default_priority(classes: &BTreeMap<Name, PriorityRecord>) -> i32 {
    default_class(classes).map_or(0, |class| class.value)
}

/// The class of pods that name none: of several the one of the lowest value.
pub(super) fn default_class(classes: &BTreeMap<Name, PriorityRecord>) -> Option<&PriorityRecord> {
    classes.values().filter(|class| class.global_default).min_by_key(|class| class.value)
}

/// The priority of a class, if there is one of that name.
pub(super) fn priority_of(classes: &BTreeMap<Name, PriorityRecord>, name: &str) -> Option<i32> {
    let system = || SYSTEM_PRIORITIES.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
    classes.get(name).map(|class| class.value).or_else(system)
}

/// A pod on each of these nodes: a role of its own each, for its node is its own.
fn on_each(planned: &Planned, nodes: &[Name]) -> Vec<Planned> {
    let role = &planned.role;
    let on = |(at, node): (u32, &Name)| {
        let mut request = Request::clone(&role.request);
        // The controller puts the node's name in the place of the required terms.
        let term: NodeTerm = [NodeRequirement::NameIs(node.clone())].into();
        request.node.required = Some([term].into());
        // Those that are admitted are the first.
        let out = role.admits.as_ref().filter(|admits| at >= admits.most);
        let admits = out.map(|admits| Box::new(Admits { most: 0, fault: admits.fault.clone() }));
        let role = Role { request: Shared::new(request), max: 1, admits, ..role.clone() };
        Planned { role, ..planned.clone() }
    };
    (0..).zip(nodes).map(on).collect()
}

fn too_many_nodes(planned: usize) -> Note {
    let message = format!("It wants a pod on more nodes. The first {planned} are planned.");
    (Severity::Warning, "spec".to_owned(), message)
}

/// Sorted, each once; the list is left empty.
pub(super) fn distinct<T: Ord>(list: &mut Vec<T>) -> Vec<T> {
    let mut all = std::mem::take(list);
    all.sort_unstable();
    all.dedup();
    all
}

pub(super) fn object(kind: Kind, scoped: &Scoped) -> ObjectRef {
    ObjectRef {
        kind,
        namespace: scoped.namespace.as_str().to_owned(),
        name: scoped.name.as_str().to_owned(),
    }
}

pub(super) fn cluster_object(kind: Kind, name: &str) -> ObjectRef {
    ObjectRef { kind, namespace: String::new(), name: name.to_owned() }
}

pub(crate) fn workload_kind(key: &GroupKey) -> Kind {
    let word = key.kind.as_str();
    let found = WorkloadKind::ALL.iter().copied().find(|kind| kind.word() == word);
    Kind::Workload(found.unwrap_or(WorkloadKind::Job))
}

fn gate(gates: &[Name]) -> Gate {
    if gates.is_empty() { Gate::Open } else { Gate::Gated(gates.into()) }
}

/// Where the engine sees a pod; none where it does not see it.
pub(super) fn phase(life: &Life) -> Option<Phase> {
    match life {
        Life::Pending => Some(Phase::Pending),
        Life::Bound(node) => Some(Phase::Bound(node.clone())),
        Life::Terminating(node, at) => Some(Phase::Terminating(node.clone(), *at)),
        Life::Foreign | Life::Leaving | Life::Ended => None,
    }
}

fn missing_priority(class: &str, unread: bool) -> Note {
    let message = if unread {
        format!("PriorityClass {class} could not be read. Priority 0 is assumed.")
    } else {
        format!(
            "PriorityClass {class} is not in the input. Priority 0 is assumed; a cluster without \
             the class refuses the pod."
        )
    };
    (Severity::Warning, "spec.priorityClassName".to_owned(), message)
}

/// What to say of a spec's problem on the object that has it.
fn spec_note(problem: &Problem, at: &str) -> Option<Note> {
    let (subject, detail) = (&problem.fault.subject, &problem.fault.detail);
    if problem.elsewhere || detail.as_str() == UNREAD {
        return None;
    }
    let (severity, message) = if problem.fault.reason == Reason::ClassMissing {
        let message =
            format!("Request {detail} names DeviceClass {subject}, which is not in the input.");
        (Severity::Warning, message)
    } else if problem.fault.reason == Reason::SelectorInvalid {
        (Severity::Error, format!("The selector of {subject} does not compile: {detail}"))
    } else if subject.as_str() == "constraints" {
        (Severity::Error, format!("The constraint can't be kept: {detail}."))
    } else {
        (Severity::Error, format!("Request {subject} can't be granted: {detail}."))
    };
    Some((severity, format!("{at}.{}", problem.path), message))
}
