//! One request on one node: does it fit, at what cost, and if not, why not.
//!
//! The same function answers for columns, for the reference without caches, and for reports; only
//! what is remembered differs. Device choices are remembered per (what is wanted, what the node
//! looks like, which of its devices are taken), so equal nodes in equal states are searched once.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::check::around::Around;
use crate::check::claims::{Pinned, Resolved, Wanted, reachable};
use crate::check::fact::{self, Health};
use crate::check::volumes::{self, Mounts};
use crate::check::wishes::Wishes;
use crate::check::{Failing, features, ports, room};
use crate::cost::{Cost, Harm, TopologyCost};
use crate::decision::{DeviceFacts, Facts, Proof};
use crate::device::{self, Failure, Offer, Rivals, Shape, Usage, UsageKey, Want};
use crate::facts::{Fault, Node, Request};
use crate::name::{Name, Shared};
use crate::policy::{DeviceOrder, Effort, Policy};
use crate::reason::{DeviceStage, Reason, Status};
use crate::state::{Ledger, NodeDevices, State};
use crate::storage::VolumeGrant;

use super::column::{Answer as Column, fails};

/// A request with its claims resolved: what is asked of each node.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// Slot of the request.
    pub(crate) slot: u32,
    pub(crate) request: Shared<Request>,
    pub(crate) pinned: Vec<Pinned>,
    pub(crate) wanted: Shared<Wanted>,
    /// What pods on other nodes mean for it, where they mean anything.
    pub(crate) around: Option<Arc<Around>>,
    /// Its volumes, where they decide anything.
    pub(crate) mounts: Option<Arc<Mounts>>,
}

impl Ask {
    pub(crate) fn new(slot: u32, request: Shared<Request>, resolved: Resolved) -> Self {
        let Resolved { pinned, wanted, mounts } = resolved;
        Self { slot, request, pinned, wanted: Shared::new(wanted), around: None, mounts }
    }

    /// Whether other pods and volumes mean nothing to it.
    pub(super) fn is_alone(&self) -> bool {
        self.around.is_none() && self.mounts.is_none()
    }

    /// What refuses the pod on a node once the pods are there that the node is promised to.
    fn promised(&self, slot: u32) -> Option<&Failing> {
        self.around.as_ref()?.promised.get(&slot)
    }

    /// What pods on other nodes make of a node that passes the checks before: the wishes not met.
    pub(super) fn around(&self, state: &State, slot: u32) -> Result<u32, Failing> {
        self.around.as_ref().map_or(Ok(0), |around| around.on(state, &self.request, slot))
    }

    /// Whether pods on other nodes make a node more or less welcome.
    pub(super) fn wishes(&self) -> bool {
        self.wished().is_some()
    }

    fn wished(&self) -> Option<&Wishes> {
        self.around.as_ref()?.wished()
    }

    /// kube-scheduler's InterPodAffinity scores of the nodes that fit: from the least to the greatest
    /// sum of weights.
    pub(super) fn pod_affinity_scores(&self, state: &State, slots: &[u32]) -> Vec<i64> {
        let Some(wishes) = self.wished() else { return vec![0; slots.len()] };
        let rules = self.request.near.as_deref();
        let weight = |slot: &u32| {
            let node = state.nodes.at(*slot).fact.as_ref();
            node.map_or(0, |node| wishes.weight(rules, node))
        };
        let raw: Vec<i64> = slots.iter().map(weight).collect();
        let (least, most) = (raw.iter().min().copied(), raw.iter().max().copied());
        let (least, range) = (least.unwrap_or(0), most.unwrap_or(0) - least.unwrap_or(0));
        let score = |raw: i64| match range {
            0 => 0,
            _ => (100.0 * ((raw - least) as f64 / range as f64)) as i64,
        };
        raw.into_iter().map(score).collect()
    }

    /// kube-scheduler's PodTopologySpread scores of the nodes that fit.
    pub(super) fn spread_scores(&self, state: &State, slots: &[u32]) -> Vec<i64> {
        let spread = self.wished().and_then(Wishes::spread).zip(self.request.near.as_deref());
        match spread {
            Some((spread, rules)) => spread.scores(state, &rules.spread_wishes, slots),
            None => vec![0; slots.len()],
        }
    }

    /// A column's answer for a node, with what pods on other nodes make of it.
    pub(super) fn over(&self, state: &State, slot: u32, answer: Column) -> Column {
        let Some(around) = &self.around else { return answer };
        if let Some(failing) = self.promised(slot) {
            return fails(failing);
        }
        let before = match answer {
            Column::Gone => true,
            Column::Fits(_) => false,
            Column::Fails { reason, .. } => Around::comes_after(reason),
        };
        if before {
            return answer;
        }
        match (around.on(state, &self.request, slot), answer) {
            (Ok(unmet), Column::Fits(cost)) => {
                Column::Fits(Cost { soft: cost.soft.saturating_add(unmet), ..cost })
            }
            (Ok(_), Column::Fails { .. } | Column::Gone) => answer,
            (Err(failing), _) => fails(&failing),
        }
    }
}

/// A node that can take a seat.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub(crate) cost: Cost,
    pub(crate) proof: Proof,
    /// The devices, where any are wanted.
    pub(crate) offer: Option<Arc<Offer>>,
    /// What becomes of the claims on volumes that wait for their pod.
    pub(crate) volumes: Vec<VolumeGrant>,
}

/// A device choice that is remembered.
type Answer = Result<Arc<Offer>, Arc<Failure>>;

/// Shapes and device choices seen before. All of it can be thrown away.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memo {
    shapes: FxHashSet<Arc<Shape>>,
    /// By (what is wanted, address of the shape). The entry holds the shape, so that its address
    /// can't come to mean another.
    answers: FxHashMap<Shared<Wanted>, FxHashMap<usize, ShapeAnswers>>,
    policy: Policy,
    steps: u64,
    entries: usize,
}

#[derive(Clone, Debug)]
struct ShapeAnswers {
    _shape: Arc<Shape>,
    by_usage: FxHashMap<UsageKey, Answer>,
}

/// Most answers remembered before all are dropped.
const ENTRIES_MAX: usize = 1 << 20;

impl Memo {
    /// The shape that is equal to this one, if there was one.
    fn share(&mut self, shape: Arc<Shape>) -> Arc<Shape> {
        if let Some(known) = self.shapes.get(&shape) {
            return Arc::clone(known);
        }
        self.shapes.insert(Arc::clone(&shape));
        shape
    }

    /// Forgets everything: selectors say something else now, or the policy is another.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The search over nodes: policy, bounds, and what is remembered (nothing, for the reference).
#[derive(Debug)]
pub(crate) struct Search<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) effort: Effort,
    pub(crate) memo: Option<&'a mut Memo>,
    /// Steps taken so far.
    pub(crate) spent: u64,
    /// What the last ask with extended resources wants where these of them are served by devices.
    served: Option<Served>,
}

#[derive(Clone, Debug)]
struct Served {
    request: Shared<Request>,
    own: Shared<Wanted>,
    served: Vec<u16>,
    wanted: Shared<Wanted>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(policy: &'a Policy, effort: Effort, memo: Option<&'a mut Memo>) -> Self {
        let mut search = Self { policy, effort, memo, spent: 0, served: None };
        if let Some(memo) = search.memo.as_deref_mut()
            && (memo.policy != *policy || memo.steps != effort.steps || memo.entries > ENTRIES_MAX)
        {
            memo.clear();
            memo.policy = *policy;
            memo.steps = effort.steps;
        }
        search
    }

    /// The answer of one node.
    pub(crate) fn node(&mut self, state: &mut State, ask: &Ask, slot: u32) -> Result<Fit, Failing> {
        if let Some(failing) = ask.promised(slot) {
            return Err(failing.clone());
        }
        let row = state.nodes.at(slot);
        let Some(node) = &row.fact else {
            return Err(Failing::new(Reason::NodeName, Status::UnschedulableAndUnresolvable));
        };
        let soft = fact::first(&ask.request.node, state.nodes.key(slot), node, Health::AsIs)?;
        self.rest(state, ask, slot, soft, Ask::around)
    }

    /// The answer of one node whose own fact passed with this soft cost. `around` says what pods on
    /// other nodes make of it, where that is asked here.
    pub(crate) fn rest(
        &mut self,
        state: &mut State,
        ask: &Ask,
        slot: u32,
        mut soft: u32,
        around: impl Fn(&Ask, &State, u32) -> Result<u32, Failing>,
    ) -> Result<Fit, Failing> {
        self.spent += 1;
        let row = state.nodes.at(slot);
        if let Some(node) = &row.fact {
            ports::free(&ask.request.ports, &row.ports)?;
            if !room::fits(&state.requests.at(ask.slot).charge, node, &row.ledger) {
                let failing = room_failing(state, ask, node, &row.ledger);
                return Err(failing.into_iter().next().unwrap_or_else(no_room));
            }
        }
        let grants = match &ask.mounts {
            Some(mounts) => volumes::first(state, &ask.request, mounts, slot)?,
            None => Vec::new(),
        };
        if let Some(node) = &state.nodes.at(slot).fact {
            soft = soft.saturating_add(around(ask, state, slot)?);
            reachable(&ask.pinned, state.nodes.key(slot), &node.labels)?;
        }
        let wanted = self.wanted(state, ask, &state.nodes.at(slot).ledger)?;
        self.look_at_devices(state, slot);
        let offer = self.devices(state, ask, &wanted, slot)?;
        if let Some(node) = &state.nodes.at(slot).fact {
            features::declared(&ask.request.features, node)?;
        }
        let cost = price(state, ask, &wanted, slot, soft, offer.as_deref());
        let proof = offer.as_ref().map_or(Proof::Proven, |o| o.proof);
        Ok(Fit { cost, proof, offer, volumes: grants })
    }

    /// What devices are wanted of a node: the pod's own claims, and one more for the extended
    /// resources of which the node has none allocatable.
    pub(crate) fn wanted(
        &mut self,
        state: &State,
        ask: &Ask,
        ledger: &Ledger,
    ) -> Result<Shared<Wanted>, Failing> {
        let request = &ask.request;
        if request.extended.is_empty() {
            return Ok(ask.wanted.clone());
        }
        let served = request
            .served(|name| state.scalar_index.get(name).map_or(0, |id| ledger.scalar(*id).0));
        if served.is_empty() && ask.wanted.claims.is_empty() {
            return counted(ask).map(|()| ask.wanted.clone());
        }
        if let Some(last) = &self.served
            && last.served == served
            && last.request.same(request)
            && last.own == ask.wanted
        {
            return Ok(last.wanted.clone());
        }
        let spec = request.claim_for(&served);
        if let Some(Fault { reason, subject, detail }) = &spec.fault {
            let facts = Facts::Subject { subject: subject.clone(), detail: detail.clone() };
            return Err(Failing::new(*reason, UNRESOLVABLE).with(facts));
        }
        let mut wanted = Wanted::clone(&ask.wanted);
        if !spec.requests.is_empty() {
            wanted.claims.push((request.claims.len() as u16, Shared::new(spec)));
        }
        let wanted = Shared::new(wanted);
        let (request, own) = (request.clone(), ask.wanted.clone());
        self.served = Some(Served { request, own, served, wanted: wanted.clone() });
        Ok(wanted)
    }

    /// Works out what the node sees, if that is not known.
    pub(crate) fn look_at_devices(&mut self, state: &mut State, slot: u32) {
        state.refresh_devices(slot, |shape| self.share(shape));
    }

    /// The shape that is equal to this one, if one is remembered.
    pub(super) fn share(&mut self, shape: Arc<Shape>) -> Arc<Shape> {
        match self.memo.as_deref_mut() {
            Some(memo) => memo.share(shape),
            None => shape,
        }
    }

    fn devices(
        &mut self,
        state: &State,
        ask: &Ask,
        wanted: &Shared<Wanted>,
        slot: u32,
    ) -> Result<Option<Arc<Offer>>, Failing> {
        if wanted.claims.is_empty() {
            return Ok(None);
        }
        let Some(devices) = state.nodes.at(slot).devices.as_deref() else {
            return Err(Failing::new(Reason::NoDevices, UNRESOLVABLE));
        };
        let Some(usage) = &devices.usage else {
            return Err(device_failing(&Failure::Bounded));
        };
        let fixed = state.devices_of(devices, ask.pinned.iter().map(|pinned| &pinned.claim));
        match self.choose(state, wanted, &fixed, devices.shape(), usage) {
            Ok(offer) => Ok(Some(offer)),
            Err(failure) => Err(device_failing(&failure)),
        }
    }

    /// Chooses devices, or remembers.
    pub(super) fn choose(
        &mut self,
        state: &State,
        wanted: &Shared<Wanted>,
        fixed: &[u16],
        shape: &Arc<Shape>,
        usage: &Shared<Usage>,
    ) -> Answer {
        // What is remembered knows of no devices that were given before.
        let key = (self.memo.is_some() && fixed.is_empty()).then(|| UsageKey::of(usage));
        let at = Arc::as_ptr(shape) as usize;
        if let (Some(memo), Some(key)) = (self.memo.as_deref(), &key) {
            let known = memo.answers.get(wanted).and_then(|by| by.get(&at)?.by_usage.get(key));
            if let Some(answer) = known {
                return answer.clone();
            }
        }
        let mut steps = self.effort.steps;
        let claims: Vec<_> = wanted.claims.iter().map(|(at, spec)| (*at, &**spec)).collect();
        let (align, matches) = (&wanted.align, &state.matches);
        let want = Want { claims: &claims, align, fixed, matches };
        let answer = device::choose(shape, usage, &want, self.policy, &mut steps)
            .map(Arc::new)
            .map_err(Arc::new);
        self.spent += self.effort.steps - steps;
        if let (Some(memo), Some(key)) = (self.memo.as_deref_mut(), key) {
            let by_shape = memo.answers.entry(wanted.clone()).or_default();
            let entry = by_shape.entry(at).or_insert_with(|| ShapeAnswers {
                _shape: Arc::clone(shape),
                by_usage: FxHashMap::default(),
            });
            memo.entries += key.weight();
            entry.by_usage.insert(key, answer.clone());
        }
        answer
    }

    /// What else could have been chosen on a node that fits: the sets that cost as much, and the best
    /// of the others with its cost.
    pub(crate) fn rivals(
        &mut self,
        state: &State,
        ask: &Ask,
        slot: u32,
        fit: &Fit,
    ) -> (Option<u32>, Option<Fit>) {
        let found = state.nodes.at(slot).devices.as_deref();
        let found = found.and_then(|d| Some((d, d.held()?))).zip(fit.offer.as_deref());
        let Some(((devices, (shape, usage)), best)) = found else { return (Some(1), None) };
        let fixed = state.devices_of(devices, ask.pinned.iter().map(|pinned| &pinned.claim));
        let Ok(wanted) = self.wanted(state, ask, &state.nodes.at(slot).ledger) else {
            return (Some(1), None);
        };
        let claims: Vec<_> = wanted.claims.iter().map(|(at, spec)| (*at, &**spec)).collect();
        let (align, matches) = (&wanted.align, &state.matches);
        let want = Want { claims: &claims, align, fixed: &fixed, matches };
        let mut steps = self.effort.steps;
        let Rivals { equal, second } = device::rivals(shape, usage, &want, best, &mut steps);
        self.spent += self.effort.steps - steps;
        let second = second.map(|offer| Fit {
            cost: price(state, ask, &wanted, slot, fit.cost.soft, Some(&offer)),
            proof: offer.proof,
            offer: Some(Arc::new(offer)),
            volumes: fit.volumes.clone(),
        });
        (equal, second)
    }

    /// Every way in which a node can take a seat, best first, and whether there may be more of them.
    pub(crate) fn fits(&mut self, state: &mut State, ask: &Ask, slot: u32) -> (Vec<Fit>, bool) {
        let Ok(best) = self.node(state, ask, slot) else { return (Vec::new(), false) };
        let found = state.nodes.at(slot).devices.as_deref();
        let found = found.and_then(|d| Some((d, d.held()?)));
        let first = self.policy.device_order == DeviceOrder::Upstream || best.offer.is_none();
        let Some((devices, (shape, usage))) = found.filter(|_| !first) else {
            return (vec![best], false);
        };
        let fixed = state.devices_of(devices, ask.pinned.iter().map(|pinned| &pinned.claim));
        let Ok(wanted) = self.wanted(state, ask, &state.nodes.at(slot).ledger) else {
            return (vec![best], false);
        };
        let claims: Vec<_> = wanted.claims.iter().map(|(at, spec)| (*at, &**spec)).collect();
        let (align, matches) = (&wanted.align, &state.matches);
        let want = Want { claims: &claims, align, fixed: &fixed, matches };
        let mut steps = self.effort.steps;
        let (offers, more) = device::sets(shape, usage, &want, &mut steps);
        self.spent += self.effort.steps - steps;
        let fit = |offer: device::Offer| Fit {
            cost: price(state, ask, &wanted, slot, best.cost.soft, Some(&offer)),
            proof: offer.proof,
            offer: Some(Arc::new(offer)),
            volumes: best.volumes.clone(),
        };
        (offers.into_iter().map(fit).collect(), more)
    }

    /// Every check that fails on a node, in kube-scheduler's order.
    pub(crate) fn all_checks(&mut self, state: &mut State, ask: &Ask, slot: u32) -> Vec<Failing> {
        let row = state.nodes.at(slot);
        let Some(node) = &row.fact else { return Vec::new() };
        let mut failing = fact::all(&ask.request.node, state.nodes.key(slot), node);
        failing.extend(ports::free(&ask.request.ports, &row.ports).err());
        failing.extend(room_failing(state, ask, node, &row.ledger));
        let undeclared = features::declared(&ask.request.features, node).err();
        let elsewhere = reachable(&ask.pinned, state.nodes.key(slot), &node.labels).err();
        if let Some(mounts) = &ask.mounts {
            failing.extend(volumes::all(state, &ask.request, mounts, slot));
        }
        if let Some(around) = &ask.around {
            failing.extend(around.all(state, &ask.request, slot));
        }
        if let Some(elsewhere) = elsewhere {
            failing.push(elsewhere);
            failing.extend(undeclared);
            return failing;
        }
        match self.wanted(state, ask, &state.nodes.at(slot).ledger) {
            Ok(wanted) => {
                self.look_at_devices(state, slot);
                failing.extend(self.devices(state, ask, &wanted, slot).err());
            }
            Err(one) => failing.push(one),
        }
        failing.extend(undeclared);
        failing
    }
}

fn no_room() -> Failing {
    Failing::new(Reason::TooManyPods, Status::Unschedulable)
}

/// Every resource that is short on a node with this ledger.
pub(super) fn room_failing(state: &State, ask: &Ask, node: &Node, ledger: &Ledger) -> Vec<Failing> {
    room::all(&ask.request, node, ledger, |name| {
        state.scalar_index.get(name).map_or((0, 0), |id| ledger.scalar(*id))
    })
}

/// How kube-scheduler's DynamicResources answers whatever the matter (`statusUnschedulable`): to it
/// no eviction helps, since it can't simulate the release of devices.
const UNRESOLVABLE: Status = Status::UnschedulableAndUnresolvable;

/// A failure of the device search as a failing check.
pub(super) fn device_failing(failure: &Failure) -> Failing {
    match failure {
        Failure::Reason { reason, device, facts } => Failing {
            reason: *reason,
            status: UNRESOLVABLE,
            close: facts.together.max(facts.free.min(facts.asked)),
            device: *device,
            fallen: fallen(*reason, facts),
            facts: Facts::Devices(facts.clone()),
        },
        Failure::Fatal { reason, device, facts } => Failing {
            reason: *reason,
            status: Status::Error,
            close: 0,
            device: *device,
            fallen: 1,
            facts: Facts::Devices(facts.clone()),
        },
        Failure::Bounded => Failing::new(Reason::SearchBound, UNRESOLVABLE),
    }
}

/// A node that counts all that is asked keeps no wish for nearness that is required: the kubelet
/// chooses the devices of a counter. One device alone is near itself.
fn counted(ask: &Ask) -> Result<(), Failing> {
    let request = &ask.request;
    let required = request.align.iter().any(|wish| wish.required);
    let amount = |name: &Name| {
        let asked = request.resources.scalars.iter().find(|(scalar, _)| scalar == name);
        asked.map_or(0, |(_, amount)| *amount)
    };
    let sum = request.extended.iter().fold(0i64, |s, one| s.saturating_add(amount(&one.resource)));
    let alone = sum <= 1 && ask.pinned.is_empty();
    let Some(first) = request.extended.first().filter(|_| required && !alone) else {
        return Ok(());
    };
    let facts = Facts::Subject { subject: first.resource.clone(), detail: Name::new("") };
    Err(Failing::new(Reason::AlignUnmet, UNRESOLVABLE).with(facts))
}

/// What a seat on the node costs with these devices. The one place where a seat's [`Cost`] is made.
fn price(
    state: &State,
    ask: &Ask,
    wanted: &Wanted,
    slot: u32,
    soft: u32,
    offer: Option<&Offer>,
) -> Cost {
    let row = state.nodes.at(slot);
    let charge = &state.requests.at(ask.slot).charge;
    // Who only looks at devices takes nothing. The request says it, not the set: a node's sets are
    // compared before this is known.
    let requests = wanted.claims.iter().flat_map(|(_, spec)| &spec.requests);
    let mut taking = requests.flat_map(|r| &r.alternatives).any(|a| !a.admin);
    let mut left = 0i64;
    for scalar in row.ledger.scalars.iter().filter(|scalar| state.is_scarce(scalar.id)) {
        let asked = charge.scalars.iter().find(|(id, _)| *id == scalar.id).map_or(0, |(_, n)| *n);
        taking |= asked != 0;
        let free = scalar.allocatable.saturating_sub(scalar.used).saturating_sub(asked);
        left = left.saturating_add(free.max(0));
    }
    if let Some((shape, usage)) = row.devices.as_deref().and_then(NodeDevices::held) {
        let free = || device::free_left(shape, usage, &[]);
        left = left.saturating_add(offer.map_or_else(free, |o| o.free_left).into());
    }
    let scarce_left = u32::try_from(left).unwrap_or(u32::MAX);
    let opens = taking && !state.is_in_use(slot);
    let price = offer.map(|o| o.price);
    Cost {
        alternatives: price.map_or(0, |p| p.alternatives),
        topology: TopologyCost::default(),
        devices: price.map(|p| p.devices).unwrap_or_default(),
        soft,
        harm: Harm {
            fragmentation: u32::from(opens),
            nodes_broken: u16::from(opens && scarce_left > 0),
            scarce_left,
            ..price.map(|p| Harm::from(p.toll)).unwrap_or_default()
        },
    }
}

/// Devices that fell at the stage that a reason names.
fn fallen(reason: Reason, facts: &DeviceFacts) -> u32 {
    match reason.stage() {
        Some(DeviceStage::Selected) => facts.seen.saturating_sub(facts.selected),
        Some(DeviceStage::Tolerated) => facts.selected.saturating_sub(facts.tolerated),
        Some(DeviceStage::Free) => facts.tolerated.saturating_sub(facts.free),
        Some(DeviceStage::Fitting | DeviceStage::Together) => facts.free,
        None => 0,
    }
}
