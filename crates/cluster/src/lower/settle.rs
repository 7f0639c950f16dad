//! Lowering what is marked, in the order of what depends on what: classes and specs, then what live
//! specs read, pools and verdicts, then claims, pods, workloads and links.

use std::collections::BTreeSet;

use phalanx_engine::{
    Change, Claim, ClaimKey, Derived, Gate, Group, GroupKey, Match, Member, Minimum, Name, NodeKey,
    Phase, PodKey, PoolKey, ProfileId, Reason, Role, Scoped, SelectorId, User,
};
use phalanx_objects::{Kind, ObjectRef};

use super::absorb::findings;
use super::claim::{Problem, Resolver, SpecId};
use super::found::counted_note;
use super::links::{Matching, Published};
use super::record::{ClaimRecord, Life, PodRecord, PriorityFrom, WorkloadRecord};
use super::selector::{Live, seen};
use super::slice::{Note, PoolLowering};
use super::{Dependent, Findings, Interned, Lowering};
use crate::finding::{Severity, UNREAD};

/// PriorityClasses that every cluster has (`scheduling.SystemPriorityClasses`).
const SYSTEM_PRIORITIES: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// New verdicts.
type Told = Vec<(SelectorId, ProfileId, Match)>;

impl Lowering {
    /// Lowers what is marked, each thing once. The changes are sorted by kind and key; applying
    /// them brings the engine's state to what the objects say now.
    pub fn settle(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        self.settle_served();
        self.settle_specs();
        self.settle_templates();
        let new_chains = self.settle_live();
        self.settle_pools(&mut changes);
        self.settle_verdicts(&new_chains, &mut changes);
        self.settle_nodes(&mut changes);
        self.settle_links(&mut changes);
        self.settle_claims(&mut changes);
        self.settle_pods(&mut changes);
        self.settle_workloads(&mut changes);
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
            let users = self.index.template.get(&key).cloned().unwrap_or_default();
            for user in users {
                match user {
                    Dependent::Pod(pod) => self.dirty.pods.push(pod),
                    Dependent::Workload(group) => self.dirty.workloads.push(group),
                }
            }
            let spec = self.objects.templates.get(&key).map(|record| record.spec);
            let reference = object(Kind::ResourceClaimTemplate, &key);
            self.report_spec(reference, spec, "spec.spec.devices");
        }
    }

    /// Says on a template or claim what is wrong with its spec.
    fn report_spec(&mut self, reference: ObjectRef, spec: Option<SpecId>, at: &str) {
        let problem = spec.and_then(|id| self.specs.get(id)).and_then(|spec| spec.problem());
        let note = problem.and_then(|problem| spec_note(problem, at));
        self.report(reference, note.into_iter().collect());
    }

    fn report(&mut self, reference: ObjectRef, notes: Vec<Note>) {
        let source = self.header(&reference).map(|header| header.source.clone());
        let found = source.map(|source| findings(&reference, &source, notes));
        Findings::set(&mut self.findings.lowered, reference, found.unwrap_or_default());
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

    fn settle_nodes(&mut self, changes: &mut Vec<Change>) {
        for name in distinct(&mut self.dirty.nodes) {
            let node = self.objects.nodes.get(&name).map(|record| record.node.clone());
            changes.push(Change::Node(NodeKey(name), node));
        }
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
                self.report(cluster_object(Kind::NodeTopology, name), vec![note]);
            }
            let record =
                chosen.as_ref().and_then(|name| self.objects.topologies.get(name)).cloned();
            let (Some(name), Some(record)) = (chosen, record) else {
                if self.shown.links.remove(&node) {
                    changes.push(Change::Links(node, None));
                }
                continue;
            };
            let devices = self.published(&node, &super::absorb::named_pools(&record));
            let mut notes = Vec::new();
            let links = Matching { devices: &devices }.fill(&record, &mut notes);
            self.report(cluster_object(Kind::NodeTopology, &name), notes);
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
            let reference = object(Kind::ResourceClaim, &key.0);
            let Some(record) = self.objects.claims.get(&key) else {
                self.findings.lowered.remove(&reference);
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
            self.report_spec(reference, open, "spec.devices");
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

    /// The claims that attempts which failed have left, and that hold devices.
    pub(crate) fn left_over(&self) -> Vec<ClaimKey> {
        let all = self.index.made.values().flatten();
        let held = |key: &&ClaimKey| {
            let claim = self.objects.claims.get(*key);
            claim.is_some_and(|claim| claim.held.is_some() && self.is_left_over(claim))
        };
        all.filter(held).cloned().collect()
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
                if self.shown.pods.remove(&key) {
                    changes.push(Change::Member(key, None));
                    changes.push(Change::Group(group, None));
                }
                continue;
            };
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
        let waits = record.life == Life::Pending;
        let served = if waits { self.served_of(&group).to_vec() } else { Vec::new() };
        let (priority, note) = self.priority(&record.priority);
        // For a pod that has its node the priority is only shown.
        let note =
            note.into_iter().chain(counted_note(&record.shape, &record.shape.align, &served));
        self.report(object(Kind::Pod, &key.0), note.filter(|_| waits).collect());
        let parent = self.parent(record);
        let wish = match (&record.life, &parent) {
            (Life::Pending, Some(parent)) => {
                self.objects.workloads.get(parent).map(|w| w.wish.clone())
            }
            _ => None,
        };
        let found = self.claims_of(key, record);
        let wish = wish.unwrap_or_else(|| Ok(Box::default()));
        let (request, claims) = self.request(&record.shape, &wish, found, &served);
        let claims = match self.extended_made(key, record) {
            Some(made) => claims.into_iter().chain([Some(made)]).collect(),
            None => claims,
        };
        let role = Role {
            name: self.interned.names.get(""),
            request,
            min: 1,
            max: 1,
            segment: None,
            first_rank: record.index.unwrap_or(0),
        };
        let gate = gate(&record.shape.gates);
        let lowered = Group {
            parent,
            gate: if record.life == Life::Pending { gate } else { Gate::Open },
            ..self.group_with(role, priority, record.header.since(), record.run_max_millis)
        };
        let expected_end = record.expected_end;
        let member = Member { group, role: 0, index: None, phase, claims, expected_end };
        (lowered, member)
    }

    fn group_with(
        &self,
        role: Role,
        priority: i32,
        since: phalanx_engine::Since,
        run_max_millis: Option<i64>,
    ) -> Group {
        Group {
            queue: None,
            priority,
            since,
            parent: None,
            roles: vec![role],
            minimum: Minimum::Each,
            rules: Vec::new(),
            shared: Vec::new(),
            run_max_millis,
            disruption: phalanx_engine::Disruption::default(),
            gate: Gate::Open,
        }
    }

    /// The workload that the pod is part of, where it is among the objects.
    fn parent(&self, record: &PodRecord) -> Option<GroupKey> {
        let owner = record.owner.as_ref()?;
        let workload = self.objects.workloads.get(&owner.group)?;
        (!owner.uid.differs(&workload.header.uid)).then(|| owner.group.clone())
    }

    /// The priority, and what to say where its class is not among the objects.
    fn priority(&self, from: &PriorityFrom) -> (i32, Option<Note>) {
        match from {
            PriorityFrom::Value(value) => (*value, None),
            PriorityFrom::Default => {
                // Of several defaults the API server takes the lowest.
                let defaults = self.objects.priorities.values().filter(|p| p.global_default);
                (defaults.map(|p| p.value).min().unwrap_or(0), None)
            }
            PriorityFrom::Class(name) => {
                let known = self.objects.priorities.get(name).map(|p| p.value);
                let system = SYSTEM_PRIORITIES.iter().find(|(n, _)| *n == name.as_str());
                match known.or(system.map(|(_, value)| *value)) {
                    Some(value) => (value, None),
                    None => {
                        let unread =
                            self.unread.contains(&cluster_object(Kind::PriorityClass, name));
                        (0, Some(missing_priority(name, unread)))
                    }
                }
            }
        }
    }

    fn settle_workloads(&mut self, changes: &mut Vec<Change>) {
        for key in distinct(&mut self.dirty.workloads) {
            let reference = object(workload_kind(&key), &key.object);
            let record = self.objects.workloads.get(&key).cloned();
            let missing = record.as_ref().map_or(0, |record| self.missing(&key, record));
            let (Some(record), 1..) = (record, missing) else {
                self.findings.lowered.remove(&reference);
                if self.shown.workloads.remove(&key) {
                    changes.push(Change::Group(key, None));
                }
                continue;
            };
            let group = self.lower_workload(&key, &record, missing, reference);
            self.shown.workloads.insert(key.clone());
            changes.push(Change::Group(key, Some(group)));
        }
    }

    fn lower_workload(
        &mut self,
        key: &GroupKey,
        record: &WorkloadRecord,
        missing: u32,
        reference: ObjectRef,
    ) -> Group {
        let (priority, note) = self.priority(&record.priority);
        let served = self.served_of(key).to_vec();
        let shape = &record.shape;
        let wish = match &record.wish {
            Ok(wish) if shape.align.is_empty() => wish,
            Ok(_) | Err(_) => &shape.align,
        };
        let note = note.into_iter().chain(counted_note(shape, wish, &served));
        self.report(reference, note.collect());
        let found = self.claims_planned(&key.object.namespace, &record.shape);
        let (request, _) = self.request(&record.shape, &record.wish, found, &served);
        let first = self.planned(key, record, 1).first().map_or(0, |(index, _)| *index);
        let role = Role {
            name: self.interned.names.get(""),
            request,
            min: 0,
            max: missing,
            segment: None,
            first_rank: first,
        };
        let since = record.header.since();
        let group = self.group_with(role, priority, since, record.run_max_millis);
        Group { gate: gate(&record.shape.gates), ..group }
    }

    /// How many pods of a workload do not exist yet and would be made now.
    pub(super) fn missing(&self, key: &GroupKey, record: &WorkloadRecord) -> u32 {
        if record.aside {
            return 0;
        }
        let holds = self.owned(key, record).filter(|(_, pod)| keeps_place(record, &pod.life));
        let missing =
            record.wanted.saturating_sub(u32::try_from(holds.count()).unwrap_or(u32::MAX));
        match &record.indexes {
            // Indexes may run out before the count does, for those that failed are given up.
            Some(_) => u32::try_from(self.planned(key, record, missing).len()).unwrap_or(missing),
            None => missing,
        }
    }

    /// The pods of a workload that exist.
    pub(super) fn owned<'a>(
        &'a self,
        key: &GroupKey,
        record: &'a WorkloadRecord,
    ) -> impl Iterator<Item = (&'a PodKey, &'a PodRecord)> {
        let keys = self.index.owned.get(key).into_iter().flatten();
        keys.filter_map(|key| Some((key, self.objects.pods.get(key)?))).filter(|(_, pod)| {
            pod.owner.as_ref().is_some_and(|owner| !owner.uid.differs(&record.header.uid))
        })
    }

    /// Index and name of the first `count` pods of a workload that do not exist yet. Indices are
    /// the lowest that no pod has; of an indexed Job, of those that have not ended. The API server
    /// would add five random letters, so the names are ours.
    pub(super) fn planned(
        &self,
        key: &GroupKey,
        record: &WorkloadRecord,
        count: u32,
    ) -> Vec<(u32, Name)> {
        let taken: BTreeSet<u32> = self
            .owned(key, record)
            .filter(|(_, pod)| keeps_place(record, &pod.life))
            .filter_map(|(_, pod)| pod.index)
            .collect();
        let name = |index: u32| Name::new(&format!("{}-{index}", key.object.name));
        let free = |(_, name): &(u32, Name)| {
            let pod = Scoped { namespace: key.object.namespace.clone(), name: name.clone() };
            !self.objects.pods.contains_key(&PodKey(pod))
        };
        let open: Box<dyn Iterator<Item = u32> + '_> = match &record.indexes {
            Some(indexes) => Box::new(indexes.open.iter().cloned().flatten()),
            None => Box::new(0..),
        };
        open.filter(|index| !taken.contains(index))
            .map(|index| (index, name(index)))
            .filter(free)
            .take(count as usize)
            .collect()
    }
}

/// Whether no other pod is made in the place of this one.
fn keeps_place(record: &WorkloadRecord, life: &Life) -> bool {
    match life {
        Life::Pending | Life::Foreign | Life::Bound(_) => true,
        Life::Leaving | Life::Terminating(..) => record.keeps_leaving,
        Life::Ended => false,
    }
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

pub(super) fn workload_kind(key: &GroupKey) -> Kind {
    if key.kind.as_str() == "job" { Kind::Job } else { Kind::Deployment }
}

fn gate(gates: &[Name]) -> Gate {
    if gates.is_empty() { Gate::Open } else { Gate::Gated(gates.into()) }
}

/// Where the engine sees a pod; none where it does not see it.
fn phase(life: &Life) -> Option<Phase> {
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
