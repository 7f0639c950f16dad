//! From a plan to its document.

use std::collections::BTreeMap;

use phalanx_engine::{
    Act, ClaimKey, Cost, Decision, DeviceFacts, DeviceKey, DeviceOrder, Example, Facts, Grant,
    GroupKey, Name, NodeOrder, PodKey, Report, Seat, Short, Tally, Timestamp, Verdict, Why,
};
use phalanx_objects::core::PodSpec;
use phalanx_objects::resource::DeviceClaim;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::align;
use super::cures::{CuresFound, Told, cures_of_all};
use super::groups::groups;
use super::members::{gates_of_group, has_choice, name_gates, name_member};
use super::others::Others;
use super::schema::{
    API_VERSION, CompatView, DeviceView, Document, ExampleView, FindingView, PodView, PolicyView,
    ReasonView, Summary, VerdictWord, proof, scope,
};
use super::stay::{self, Evicting, Tolerated};
use crate::cure::Trials;
use crate::finding::{Finding, Severity};
use crate::lint::partitions::Partitions;
use crate::lower::{GroupInfo, PodInfo, is_device_counter};
use crate::plan::{Plan, why, why_short};
use crate::raise::{quantity, share_id};
use crate::words::{self, PartWords, Words};
use crate::world::World;

/// What is shown beside the plan itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewOptions {
    /// Trials that may be spent on cures, for all groups together; none names none.
    pub trials: Option<Trials>,
    /// Whether these are the trials of a question about one object: there is no smaller one.
    pub alone: bool,
}

/// The document of a plan.
pub fn plan_document(world: &mut World, plan: &Plan, options: &ViewOptions) -> Document {
    let held = crate::deadlock::findings(world, plan);
    document_with(world, plan, options, &held)
}

/// The document of a plan, with what is said of groups that started in part.
pub(crate) fn document_with(
    world: &mut World,
    plan: &Plan,
    options: &ViewOptions,
    held: &[Finding],
) -> Document {
    let open =
        |(group, verdict): &(GroupKey, Verdict)| (!verdict.is_whole()).then(|| group.clone());
    let groups: Vec<GroupKey> = plan.decision.verdicts.iter().filter_map(open).collect();
    let healing = cures_of_all((world, plan), &groups, None, &BTreeMap::new(), options);
    let mut builder = Builder::new(world, plan, healing);
    for (group, verdict) in &plan.decision.verdicts {
        builder.group(group, verdict);
    }
    builder.finish(held, |_| true)
}

/// The account of what is not placed of a group, or of its first seat where all is: nodes as a pod of this role
/// meets them, where one is named.
pub fn account(
    world: &mut World,
    plan: &Plan,
    group: &GroupKey,
    role: Option<u16>,
) -> Option<Report> {
    let short = plan.decision.verdicts.iter().any(|(of, verdict)| {
        of == group && matches!(verdict, Verdict::Placed { short: Some(_), .. })
    });
    if short {
        return why_short(world, group, role, seats_of(&plan.decision, group), &plan.options);
    }
    why(world, group, role, &plan.options)
}

/// The role of a group that stands in its way, where it is one.
pub fn culprit(verdict: &Verdict) -> Option<usize> {
    let why = match verdict {
        Verdict::Waits(why) | Verdict::Refused(why) | Verdict::GaveUp(why, _) => why,
        Verdict::Placed { short: Some(short), .. } => &short.why,
        Verdict::Placed { short: None, .. } => return None,
    };
    why.role.or_else(|| why.group().map(|facts| facts.role)).map(usize::from)
}

/// The object that says what a pod is like: itself, or the workload that makes it.
pub(crate) fn home_of(pod: &PodInfo) -> ObjectRef {
    crate::lower::declaring(&pod.home)
}

/// The seats that a decision gives to a group.
pub(crate) fn seats_of<'a>(decision: &'a Decision, group: &GroupKey) -> &'a [Seat] {
    let acts = decision.acts.iter();
    let mut placed = acts.filter_map(|act| match act {
        Act::Place(of, seats, _) if of == group => Some(seats.as_slice()),
        Act::Place(..) | Act::Admit(_) | Act::Hold(..) | Act::Release(..) | Act::Evict { .. } => {
            None
        }
    });
    placed.next().unwrap_or_default()
}

/// A document under way.
pub(super) struct Builder<'a> {
    pub(super) world: &'a World,
    pub(super) plan: &'a Plan,
    seats: BTreeMap<&'a GroupKey, (&'a [Seat], &'a Cost)>,
    cures: BTreeMap<GroupKey, CuresFound>,
    /// Devices of the claims that the plan allocates, for the pods that share them.
    allocated: BTreeMap<ClaimKey, Vec<DeviceView>>,
    /// What else is free than what a counter is short of.
    others: Others<'a>,
    evicting: Evicting,
    /// What is wrong with placements that were made.
    findings: Vec<FindingView>,
    /// What is said of groups as a whole, by namespace and group.
    told: BTreeMap<(String, String), Vec<ReasonView>>,
    /// Groups that ask for partitions of GPUs.
    partitions: Partitions<'a>,
    pub(super) pods: Vec<PodView>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        world: &'a World,
        plan: &'a Plan,
        cures: BTreeMap<GroupKey, CuresFound>,
    ) -> Self {
        let mut seats: BTreeMap<&GroupKey, (&[Seat], &Cost)> = BTreeMap::new();
        for act in &plan.decision.acts {
            if let Act::Place(group, placed, cost) = act {
                seats.insert(group, (placed, cost));
            }
        }
        Self {
            world,
            plan,
            seats,
            cures,
            allocated: BTreeMap::new(),
            others: Others::new(world, plan),
            evicting: Evicting::default(),
            findings: Vec::new(),
            told: BTreeMap::new(),
            partitions: Partitions::new(world),
            pods: Vec::new(),
        }
    }

    /// Adds the pods of one group.
    pub(super) fn group(&mut self, group: &GroupKey, verdict: &Verdict) {
        let Some(info) = self.world.lowering().group(group) else { return };
        let apart = self.partitions.of(&info);
        self.findings.extend(apart.as_ref().map(FindingView::from));
        let placed = self.seats.get(group).copied();
        let seats: BTreeMap<&PodKey, &Seat> = placed
            .iter()
            .flat_map(|(seats, _)| seats.iter())
            .filter_map(|seat| Some((who_sits(seat, &info)?, seat)))
            .collect();
        let beside = self.plan.decision.roles.iter().filter(|(of, ..)| of == group);
        let beside: BTreeMap<usize, &Verdict> =
            beside.map(|(_, role, verdict)| (usize::from(*role), verdict)).collect();
        let all = info.roles.iter().enumerate();
        let all = all.flat_map(|(at, role)| role.pods.iter().map(move |pod| (at, pod)));
        for (at, pod) in all {
            let view = match (seats.get(&pod.key), verdict) {
                (Some(seat), Verdict::Placed { optimal, .. }) => {
                    let view = self.bare(&info, pod, VerdictWord::Placed);
                    let mut view = self.placed(view, (&info, pod), seat, proof(*optimal));
                    // The cost is the group's: of one pod it can be told whose it is.
                    let cost = placed.map(|(_, cost)| cost.devices.unaligned);
                    let unaligned = cost.filter(|all| seats.len() == 1 || *all == 0);
                    view.notes.extend(align::notes(self.world, &info, pod, &view, unaligned));
                    // For members of a group that starts whole a promise decides nothing.
                    let lowering = self.world.lowering();
                    let promised =
                        lowering.nominated(&pod.key).filter(|_| !lowering.is_gang(group));
                    let goes = promised.filter(|node| **node == seat.node);
                    view.notes.extend(goes.map(|node| words::promised_note(&node.0)));
                    view
                }
                (Some(_) | None, verdict) => {
                    let verdict = beside.get(&at).copied().unwrap_or(verdict);
                    self.not_placed(&info, (at, pod), verdict)
                }
            };
            self.pods.push(view);
        }
    }

    /// A pod of which nothing but its verdict is known.
    pub(super) fn bare(&self, info: &GroupInfo, pod: &PodInfo, verdict: VerdictWord) -> PodView {
        let workload = match (&info.owner, info.kind) {
            (Some(owner), _) => Some(owner.to_string()),
            (None, Kind::Pod) => None,
            (None, _) => Some(info.key.to_string()),
        };
        PodView {
            namespace: pod.key.0.namespace.to_string(),
            name: pod.key.0.name.to_string(),
            planned: pod.planned,
            group: workload,
            role: Some(pod.role_name.to_string()).filter(|name| !name.is_empty()),
            index: pod.index,
            counted: most(&counters(self.world, pod)),
            rank: pod.rank,
            verdict,
            node: None,
            devices: Vec::new(),
            optimal: None,
            stays_until: None,
            reasons: Vec::new(),
            cures: Vec::new(),
            effort: None,
            notes: Vec::new(),
            choice: None,
            fit_error: None,
            checks: None,
            nodes: None,
        }
    }

    /// Says until when the pod may stay, where a taint that evicts is tolerated for a time.
    fn stay(&mut self, view: &mut PodView, info: &GroupInfo, pod: &PodInfo, seat: &Seat) {
        let now = self.plan.options.now;
        let Some(objects) = self.world.objects() else { return };
        let extended = self.world.lowering().extended_claim(&pod.home, pod, &seat.node);
        let mut devices = Vec::new();
        for (at, claim) in pod.claims.iter().chain(&extended).enumerate() {
            let before = devices.len();
            devices.extend(seat.grants.iter().filter(|g| usize::from(g.claim) == at).map(
                |grant| {
                    let tolerations = tolerations_of(claim, grant);
                    Tolerated { device: grant.device.clone(), tolerations }
                },
            ));
            let reference = claim_reference(claim.claim.key());
            if let Some(Object::ResourceClaim(claim)) = objects.get(&reference)
                && devices.len() == before
            {
                let held = claim.status.allocation.iter().flat_map(|a| &a.devices.results);
                devices.extend(held.map(stay::held));
            }
        }
        let of_devices = self.evicting.of_devices(self.world, &devices, now);
        let spec = crate::lower::pod_spec(objects, &home_of(pod), pod.role);
        let of_node = spec.and_then(|spec| stay::of_node(self.world, &seat.node.0, &spec, now));
        let stays = of_devices.into_iter().chain(of_node);
        let Some(first) = stays.min_by_key(|s| s.until.map_or(i64::MAX, |until| until.0)) else {
            return;
        };
        view.stays_until =
            first.until.and_then(crate::raise::api_time).map(|time| time.to_string());
        let over = first.until.zip(now).is_some_and(|(until, now)| until <= now);
        let sentence = words::stay_note(&first.words(view.stays_until.clone()), over);
        if over {
            self.findings.push(FindingView {
                severity: Severity::Warning.as_str().to_owned(),
                object: Some(format!("pod/{}/{}", view.namespace, view.name)),
                file: Some(info.source.file.to_string()).filter(|file| !file.is_empty()),
                line: (info.source.line > 0).then_some(u64::from(info.source.line)),
                path: None,
                message: words::evicted_at_once(&seat.node.0, &sentence),
            });
        }
        view.notes.push(sentence);
    }

    /// What the devices that the kubelet will choose may span, where the node's links are known.
    fn spread(&self, resource: &str, amount: i64, seat: &Seat) -> Option<String> {
        let links = self.world.links(&seat.node)?;
        let (allocatable, free) = self.others.left(resource, &seat.node)?;
        words::spread_note(&words::Counted {
            amount: usize::try_from(amount).ok()?,
            allocatable: usize::try_from(allocatable).ok()?,
            all_free: free + amount >= allocatable,
            links,
            topology: self.world.topology(&seat.node),
            node: &seat.node.0,
        })
    }

    /// The devices that the node gives for extended resources, by a claim to be made.
    fn extended(&self, view: &mut PodView, pod: &PodInfo, seat: &Seat) {
        let lowering = self.world.lowering();
        let Some(claim) = lowering.extended_claim(&pod.home, pod, &seat.node) else { return };
        let at = pod.claims.len();
        let grants = seat.grants.iter().filter(|grant| usize::from(grant.claim) == at);
        let devices = grants.enumerate();
        view.devices
            .extend(devices.map(|(index, grant)| granted_device(self.world, &claim, index, grant)));
        for (resource, class) in lowering.given_by(&pod.home, pod.role, &seat.node) {
            view.notes.push(words::extended_note(&resource, &class, &seat.node.0));
        }
    }

    fn placed(
        &mut self,
        mut view: PodView,
        (info, pod): (&GroupInfo, &PodInfo),
        seat: &Seat,
        optimal: &'static str,
    ) -> PodView {
        let node = seat.node.0.to_string();
        for (at, claim) in pod.claims.iter().enumerate() {
            let key = claim.claim.key();
            if pod.claims[..at].iter().any(|other| other.claim.key() == key) {
                // A claim that is named twice is one claim.
                continue;
            }
            let grants: Vec<&Grant> =
                seat.grants.iter().filter(|grant| usize::from(grant.claim) == at).collect();
            let devices = if grants.is_empty() {
                let known = self.allocated.get(key).cloned();
                known.unwrap_or_else(|| held_devices(self.world, key))
            } else {
                if self.released(key) {
                    view.notes.push(words::release_note(&key.0.name));
                }
                let devices = grants.iter().enumerate();
                let devices: Vec<DeviceView> = devices
                    .map(|(index, grant)| granted_device(self.world, claim, index, grant))
                    .collect();
                self.allocated.insert(key.clone(), devices.clone());
                devices
            };
            view.notes.extend(alternatives(&claim.spec, &devices));
            view.devices.extend(devices);
        }
        self.extended(&mut view, pod, seat);
        let chosen: Vec<_> = seat.grants.iter().map(|grant| grant.device.clone()).collect();
        let links = self.world.links(&seat.node);
        view.notes.extend(words::choice_note(
            &chosen,
            links,
            self.world.topology(&seat.node),
            &node,
        ));
        let given = self.world.lowering().given_by(&pod.home, pod.role, &seat.node);
        for (resource, amount) in counters(self.world, pod) {
            if given.iter().all(|(by_devices, _)| **by_devices != *resource) {
                view.notes.push(words::counter_note(&resource, amount, &node));
                view.notes.extend(self.spread(&resource, amount, seat));
            }
        }
        view.notes.extend(words::awaits_note(&awaited(&view.devices)));
        self.stay(&mut view, info, pod, seat);
        view.node = Some(node);
        view.optimal = Some(optimal);
        view
    }

    /// Whether the plan takes back what the claim holds.
    fn released(&self, claim: &ClaimKey) -> bool {
        let acts = &self.plan.decision.acts;
        acts.iter().any(|act| matches!(act, Act::Release(_, released) if released == claim))
    }

    fn not_placed(
        &mut self,
        info: &GroupInfo,
        (at, pod): (usize, &PodInfo),
        verdict: &Verdict,
    ) -> PodView {
        let (word, why, effort) = match verdict {
            Verdict::Placed { short: Some(Short { why, .. }), .. } => {
                (VerdictWord::Waits, Some(why), None)
            }
            Verdict::Placed { short: None, .. } => (VerdictWord::Placed, None, None),
            Verdict::Waits(why) => (VerdictWord::Waits, Some(why), None),
            Verdict::Refused(why) => (VerdictWord::Refused, Some(why), None),
            Verdict::GaveUp(why, effort) => (VerdictWord::GaveUp, Some(why), Some(effort.steps)),
        };
        let mut view = self.bare(info, pod, word);
        let other = if info.gang { culprit(verdict) } else { None };
        let other = other.and_then(|role| Some((role, info.roles.get(role)?.pods.first()?)));
        let about = other.map_or(pod, |(_, other)| other);
        view.reasons = why.map_or_else(Vec::new, |why| reasons(self.world, info, about, why));
        if let (Some(steps), Some(first)) = (effort.filter(|_| info.gang), view.reasons.first_mut())
        {
            let choice = has_choice(self.world, info);
            first.message = words::undecided(steps, choice, &first.message);
        }
        if let Some(why) = why {
            self.name_others(&mut view.reasons, why);
            if info.gang && other.is_none() {
                let own = view.group.clone().map(|group| (view.namespace.clone(), group));
                if let Some(own) = own.filter(|own| !self.told.contains_key(own)) {
                    self.told.insert(own, gates_of_group(self.world, info, pod, &view.reasons));
                }
                name_gates(self.world, info, pod, &mut view.reasons);
            }
            if let Some((role, first)) = other {
                let said = name_member(info, (role, first), why, &view.reasons);
                if role != at {
                    view.reasons.clone_from(&said);
                }
                if let Some(group) = &view.group {
                    self.told.insert((view.namespace.clone(), group.clone()), said);
                }
            }
        }
        if let Some(found) = self.cures.get(&info.key) {
            let Told { cures, note } = found.of(&pod.key).clone();
            view.cures = cures;
            view.notes.extend(note);
        }
        view.effort = effort;
        view
    }

    /// Adds to what is said of a counter that is short what else is free.
    fn name_others(&self, rows: &mut [ReasonView], why: &Why) {
        for row in rows {
            let of = |tally: &&Tally| tally.reason.code() == row.code;
            let tally = why.never.as_deref().into_iter().chain(&why.tally).find(of);
            let Some(tally) = tally else { continue };
            let others = match &tally.example.facts {
                Facts::Amount { resource, asked, .. } => self.others.in_place_of(resource, *asked),
                Facts::Subject { subject, .. } => {
                    words::part_of(subject).and_then(|of| self.others.in_place_of(of, 1))
                }
                Facts::None
                | Facts::Label { .. }
                | Facts::Taint(_)
                | Facts::Claim { .. }
                | Facts::Volume(_)
                | Facts::Binding { .. }
                | Facts::Port { .. }
                | Facts::Spread { .. }
                | Facts::Pods { .. }
                | Facts::Group(_)
                | Facts::Devices(_) => None,
            };
            if let Some(others) = others {
                row.message = format!("{}; {others}", row.message);
            }
        }
    }

    /// The document of those pods that are to be shown; workloads are the sum of all their pods.
    pub(super) fn finish(mut self, held: &[Finding], shown: impl Fn(&PodView) -> bool) -> Document {
        let groups = groups((self.world, &self.plan.decision), &self.pods, &self.told, &self.cures);
        let found = self.world.findings().iter().chain(held).map(FindingView::from);
        let findings = found.chain(std::mem::take(&mut self.findings)).collect();
        let shown: Vec<PodView> =
            std::mem::take(&mut self.pods).into_iter().filter(|pod| shown(pod)).collect();
        let mut summary = Summary {
            nodes: self.world.nodes_len() as u64,
            devices: self.world.devices_len() as u64,
            effort: self.plan.decision.spent.steps,
            ..Summary::default()
        };
        for pod in &shown {
            match pod.verdict {
                VerdictWord::Placed => summary.placed += 1,
                VerdictWord::Waits => summary.waits += 1,
                VerdictWord::Refused => summary.refused += 1,
                VerdictWord::GaveUp => summary.gave_up += 1,
            }
        }
        Document {
            api_version: API_VERSION,
            compat: compat(self.world, self.plan.options.now),
            policy: policy(self.plan),
            groups,
            pods: shown,
            findings,
            unanswered: false,
            summary,
        }
    }
}

/// The pod of a seat.
pub(crate) fn who_sits<'a>(seat: &'a Seat, info: &'a GroupInfo) -> Option<&'a PodKey> {
    match &seat.pod {
        Some(pod) => Some(pod),
        None => {
            let at = usize::try_from(seat.index).ok()?;
            Some(&info.roles.get(usize::from(seat.role))?.pods.get(at)?.key)
        }
    }
}

/// The time as RFC 3339.
pub(super) fn compat(world: &World, now: Option<Timestamp>) -> CompatView {
    let compat = world.lowering().compat();
    let now = now.and_then(crate::raise::api_time).map(|time| time.to_string());
    let gates = compat.changed().into_iter().map(|(gate, on)| (gate.to_owned(), on));
    CompatView {
        now,
        kubernetes_version: compat.version().to_string(),
        feature_gates: gates.collect(),
        admission_plugins: compat.plugins().map(crate::compat::Plugin::as_str).collect(),
    }
}

/// The order of nodes as documents say it.
pub fn node_order(order: NodeOrder) -> &'static str {
    match order {
        NodeOrder::Best => "best",
        NodeOrder::Scores => "kube-scheduler",
    }
}

fn policy(plan: &Plan) -> PolicyView {
    let options = &plan.options;
    PolicyView {
        node_order: node_order(options.policy.node_order),
        device_order: match options.policy.device_order {
            DeviceOrder::Best => "best",
            DeviceOrder::Upstream => "upstream",
        },
        strict_cel: options.policy.strict_cel,
        effort_steps: options.effort.steps,
    }
}

/// Which alternatives of firstAvailable lists these devices are given for, request by request.
pub(super) fn alternatives(spec: &DeviceClaim, devices: &[DeviceView]) -> Vec<String> {
    let listed = spec.requests.iter().filter(|request| !request.first_available.is_empty());
    let note = |request: &phalanx_objects::resource::DeviceRequest| {
        let of_request = |device: &DeviceView| {
            let (main, sub) = device.request.split_once('/')?;
            (main == request.name).then(|| sub.to_owned())
        };
        let taken = devices.iter().find_map(of_request)?;
        let at = request.first_available.iter().position(|sub| sub.name == taken)?;
        let of = request.first_available.len();
        Some(words::alternative_note(&request.name, &taken, at, of))
    };
    listed.filter_map(note).collect()
}

fn granted_device(
    world: &World,
    claim: &crate::lower::ClaimInfo,
    index: usize,
    grant: &Grant,
) -> DeviceView {
    let shared = grant.share.as_ref().and_then(|_| world.lowering().device(&grant.device));
    let like = |name: &Name| {
        let found = shared.as_ref()?.capacity.iter().find(|(own, _)| own == name);
        found.map(|(_, quantity)| quantity)
    };
    let key = claim.claim.key();
    let request = claim.spec.requests.get(usize::from(grant.request));
    let request = request.map_or_else(String::new, |request| {
        let sub = request.first_available.get(usize::from(grant.alternative));
        sub.map_or_else(|| request.name.clone(), |sub| format!("{}/{}", request.name, sub.name))
    });
    let consumed = grant.share.iter().flat_map(|share| share.iter());
    let reference = claim_reference(key);
    DeviceView {
        claim: key.0.name.to_string(),
        request,
        driver: grant.device.pool.driver.to_string(),
        pool: grant.device.pool.pool.to_string(),
        device: grant.device.device.to_string(),
        share_id: grant.share.as_ref().map(|_| {
            let uid = world.lowering().uid_of(&reference);
            share_id(&reference, &uid, &grant.device, index)
        }),
        consumed_capacity: consumed
            .map(|(name, nanos)| (name.to_string(), quantity(*nanos, like(name)).to_string()))
            .collect(),
        admin_access: grant.admin,
        binding_conditions: awaited_of(world, &grant.device),
    }
}

/// What a device that is allocated now must report before the pod is bound.
fn awaited_of(world: &World, device: &phalanx_engine::DeviceKey) -> Vec<String> {
    let binding = world.lowering().binding(device);
    binding.map_or_else(Vec::new, |b| b.conditions.iter().map(ToString::to_string).collect())
}

/// What a device that was allocated before has not reported yet.
fn awaited_still(
    world: &World,
    claim: &phalanx_objects::resource::ResourceClaim,
    result: &phalanx_objects::resource::DeviceRequestAllocationResult,
) -> Vec<String> {
    if !world.lowering().compat().awaits_conditions() {
        return Vec::new();
    }
    let reported = crate::lower::conditions_of(claim, result).unwrap_or_default();
    let is_true = |name: &String| reported.iter().any(|c| c.kind == *name && c.status == "True");
    result.binding_conditions.iter().filter(|name| !is_true(name)).cloned().collect()
}

/// The devices that must report conditions before a pod is bound, with the conditions.
pub(super) fn awaited(devices: &[DeviceView]) -> Vec<(String, Vec<String>)> {
    let awaits = devices.iter().filter(|device| !device.binding_conditions.is_empty());
    awaits.map(|device| (device.device.clone(), device.binding_conditions.clone())).collect()
}

/// What the request of a grant tolerates.
fn tolerations_of<'c>(
    claim: &'c crate::lower::ClaimInfo,
    grant: &Grant,
) -> &'c [phalanx_objects::resource::DeviceToleration] {
    let request = claim.spec.requests.get(usize::from(grant.request));
    let of = request.map(|request| match &request.exactly {
        Some(exactly) => exactly.tolerations.as_slice(),
        None => {
            let sub = request.first_available.get(usize::from(grant.alternative));
            sub.map_or(&[][..], |sub| &sub.tolerations)
        }
    });
    of.unwrap_or_default()
}

/// What a claim is referred to by.
pub(crate) fn claim_reference(key: &ClaimKey) -> ObjectRef {
    ObjectRef {
        kind: Kind::ResourceClaim,
        namespace: key.0.namespace.to_string(),
        name: key.0.name.to_string(),
    }
}

/// The devices that a claim holds on the board.
pub(super) fn held_devices(world: &World, key: &ClaimKey) -> Vec<DeviceView> {
    let found = world.objects().and_then(|objects| objects.get(&claim_reference(key)));
    let Some(Object::ResourceClaim(claim)) = found else { return Vec::new() };
    let results = claim.status.allocation.iter().flat_map(|a| &a.devices.results);
    results
        .map(|result| DeviceView {
            claim: claim.metadata.name.clone(),
            request: result.request.clone(),
            driver: result.driver.clone(),
            pool: result.pool.clone(),
            device: result.device.clone(),
            share_id: result.share_id.clone(),
            consumed_capacity: result
                .consumed_capacity
                .iter()
                .map(|(name, quantity)| (name.clone(), quantity.to_string()))
                .collect(),
            admin_access: result.admin_access == Some(true),
            binding_conditions: awaited_still(world, claim, result),
        })
        .collect()
}

/// The device counters that the pod asks for, with their amounts.
fn counters(world: &World, pod: &PodInfo) -> BTreeMap<String, i64> {
    let Some(objects) = world.objects() else { return BTreeMap::new() };
    let spec = crate::lower::pod_spec(objects, &home_of(pod), pod.role);
    spec.map_or_else(BTreeMap::new, |spec| counters_of(&spec))
}

/// The most that is asked for of one resource.
pub(super) fn most(counted: &BTreeMap<String, i64>) -> u32 {
    counted.values().max().map_or(0, |most| u32::try_from(*most).unwrap_or(u32::MAX))
}

/// Devices that a pod asks for as counters, by resource.
pub(crate) fn counters_of(spec: &PodSpec) -> BTreeMap<String, i64> {
    let mut counted = BTreeMap::new();
    for container in &spec.containers {
        let (requests, limits) = (&container.resources.requests, &container.resources.limits);
        let all = limits.iter().filter(|(name, _)| !requests.contains_key(*name)).chain(requests);
        for (resource, quantity) in all {
            if is_device_counter(resource) && quantity.value_ceil() > 0 {
                let sum: &mut i64 = counted.entry(resource.clone()).or_default();
                *sum = sum.saturating_add(quantity.value_ceil());
            }
        }
    }
    counted
}

/// The rows of a funnel, the deciding one first: of what is refused, what stays in the way whatever
/// is freed or healed; of what waits, what stands in the way on the nearest miss. The others follow
/// in order of precedence.
pub(super) fn reasons(
    world: &World,
    info: &GroupInfo,
    pod: &PodInfo,
    why: &Why,
) -> Vec<ReasonView> {
    let mut rows: Vec<ReasonView> =
        why.tally.iter().map(|tally| reason(world, info, pod, tally)).collect();
    // Of a group that is never placed one member may be the reason, and the group's own row stays.
    let first = why.never.as_ref().map_or(why.first, |never| never.reason);
    let of = |reason| why.tally.iter().position(|tally| tally.reason == reason);
    let at = of(first).or_else(|| of(why.first).filter(|_| why.group().is_none()));
    let now = at.map(|at| rows.remove(at));
    let first = match (&why.never, now) {
        (None, now) => now,
        (Some(never), Some(now)) => Some(ReasonView {
            nodes: now.nodes,
            devices: now.devices,
            ..reason(world, info, pod, never)
        }),
        (Some(never), None) => {
            let row = reason(world, info, pod, never);
            let message = words::even_then(&row.message);
            Some(ReasonView { nodes: 0, devices: 0, message, ..row })
        }
    };
    first.into_iter().chain(rows).collect()
}

fn reason(world: &World, info: &GroupInfo, pod: &PodInfo, tally: &Tally) -> ReasonView {
    let words = look_up(world, info, Some(pod), &tally.example);
    ReasonView {
        code: tally.reason.code(),
        check: tally.reason.check(),
        scope: scope(tally.reason.scope()),
        nodes: tally.nodes,
        devices: tally.devices,
        example: example(&tally.example),
        message: words::sentence_on_node(tally.reason, &tally.example, &words),
    }
}

fn example(example: &Example) -> Option<ExampleView> {
    let device = example.device.as_ref();
    let view = ExampleView {
        node: example.node.as_ref().map(|node| node.0.to_string()),
        driver: device.map(|device| device.pool.driver.to_string()),
        pool: device.map(|device| device.pool.pool.to_string()),
        device: device.map(|device| device.device.to_string()),
    };
    (view != ExampleView::default()).then_some(view)
}

/// The names behind an example's numbers.
pub(super) fn look_up(
    world: &World,
    info: &GroupInfo,
    pod: Option<&PodInfo>,
    example: &Example,
) -> Words {
    let role = pod.map_or(0, |pod| pod.role);
    let home = || pod.map_or(&info.key, |pod| &pod.home);
    let lowering = world.lowering();
    if let Facts::Group(facts) = &example.facts {
        let role = info.roles.get(usize::from(facts.role)).filter(|_| info.roles.len() > 1);
        let role = role.and_then(|role| role.pods.first()).map(|pod| pod.role_name.to_string());
        let role = role.filter(|name| !name.is_empty());
        let level = facts.segment.as_ref();
        let level = level.and_then(|of| lowering.level_name(&of.topology, of.level));
        return Words { role, level: level.map(|name| name.to_string()), ..Words::default() };
    }
    let by = |pod: PodKey| format!("pod {}", pod.0.name);
    let pods = match &example.facts {
        Facts::Pods { pods: Some(id), .. } => lowering.pods_meant(*id).map(words::pods),
        Facts::Pods { pods: None, key, value } => {
            value.as_ref().and_then(|value| lowering.repelling(home(), role, key, value)).map(by)
        }
        Facts::Port { taken, .. } => {
            example.node.as_ref().and_then(|node| lowering.port_holder(node, taken)).map(by)
        }
        Facts::None
        | Facts::Subject { .. }
        | Facts::Amount { .. }
        | Facts::Label { .. }
        | Facts::Taint(_)
        | Facts::Claim { .. }
        | Facts::Binding { .. }
        | Facts::Spread { .. }
        | Facts::Group(_)
        | Facts::Volume(_)
        | Facts::Devices(_) => None,
    };
    if pods.is_some() {
        return Words { pods, ..Words::default() };
    }
    let Some(facts) = example.facts.devices() else { return Words::default() };
    let request = |facts: &DeviceFacts| request_words(world, info, pod, facts);
    let selector = facts.selector.zip(example.device.as_ref());
    let value = facts.attribute.as_ref().zip(example.device.as_ref());
    let joint = facts.joint.as_deref();
    let parts: Vec<(String, String)> = joint.map_or_else(Vec::new, |joint| {
        let long = |part: &DeviceFacts| words::request(part, &request(part));
        let short = |part: &DeviceFacts| {
            part.request.as_ref().map_or_else(|| long(part), ToString::to_string)
        };
        joint.parts.iter().map(|part| (long(part), short(part))).collect()
    });
    let twice = |name: &String| parts.iter().filter(|(_, short)| short == name).count() > 1;
    let parts = parts.iter().map(|(long, short)| PartWords {
        long: long.clone(),
        short: if twice(short) { long.clone() } else { short.clone() },
    });
    let value_of = |(device, element): (&DeviceKey, Option<u16>)| {
        world.attribute(facts.attribute.as_ref()?, device, element.map(usize::from))
    };
    let elements = joint.iter().flat_map(|joint| &joint.groups).map(|group| group.element);
    Words {
        selector: selector.and_then(|(selector, device)| world.explain(selector, device)),
        value: value.and_then(|(attribute, device)| world.attribute(attribute, device, None)),
        parts: parts.collect(),
        leaders: example.leaders.iter().map(|device| device.device.to_string()).collect(),
        values: example.leaders.iter().zip(elements).map(value_of).collect(),
        ..request(facts)
    }
}

/// A request of a group's pods of a role as a sentence names it: `request gpu of claim gpus`.
pub fn request_name(
    world: &World,
    group: &GroupKey,
    role: usize,
    facts: &DeviceFacts,
) -> Option<String> {
    let info = world.lowering().group(group)?;
    let pod = info.roles.get(role).and_then(|role| role.pods.first());
    Some(words::request(facts, &request_words(world, &info, pod, facts)))
}

/// The names of a request: its claim, where the pod has several, or the extended resource that it
/// stands for.
fn request_words(
    world: &World,
    info: &GroupInfo,
    pod: Option<&PodInfo>,
    facts: &DeviceFacts,
) -> Words {
    let role = pod.map_or(0, |pod| pod.role);
    let claims = pod.map_or(&[][..], |pod| &pod.claims);
    let claim = claims.get(usize::from(facts.claim)).filter(|_| claims.len() > 1);
    let extended = facts.request.as_ref().filter(|_| usize::from(facts.claim) == claims.len());
    let extended = extended.and_then(|request| {
        let (resource, class) = world.lowering().request_stands_for(
            pod.map_or(&info.key, |pod| &pod.home),
            role,
            request,
        )?;
        Some(words::served(&resource, &class))
    });
    Words { claim: claim.map(|claim| claim.pod_claim.to_string()), extended, ..Words::default() }
}

impl From<&Finding> for FindingView {
    fn from(finding: &Finding) -> Self {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            severity: finding.severity.as_str().to_owned(),
            object: finding
                .object
                .as_ref()
                .map(|object| crate::edit::Target::from(object).to_string()),
            file: text(&finding.file),
            line: (finding.line > 0).then_some(u64::from(finding.line)),
            path: text(&finding.path),
            message: finding.message.clone(),
        }
    }
}
