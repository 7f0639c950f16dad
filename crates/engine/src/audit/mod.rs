//! The audit: does a decision keep the rules? Short and dumb, written from the rules and not from
//! the search. Reality may break them already (one device in two allocations, a node over-committed):
//! only what the decision adds is judged.
//!
//! It shares with the search how seats are taken and what a node sees of devices; the rules of nodes
//! stand in [`rules`], those of the pods around a node in [`pods`], those of volumes in [`volumes`],
//! those of devices in the device module's judge, and the pods of a node are added up here from the
//! facts, not read from its ledger.

mod levels;
pub(crate) mod pods;
pub(crate) mod rules;
pub(crate) mod volumes;

use std::collections::BTreeMap;

use crate::cost::Cost;
use crate::decision::{Act, Decision, Verdict};
use crate::device::{self, Pick, Toll, Want};
use crate::facts::{ClaimSpec, ClaimUse, Minimum, Node, Phase, Request, Role, Seat};
use crate::name::{GroupKey, NodeKey, PodKey, Shared};
use crate::part::AnyOf;
use crate::state::State;
use crate::storage::VolumeGrant;
use pods::{Scene, Seated};
use volumes::mounted;

/// A rule that a decision breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The group whose act breaks it.
    pub group: GroupKey,
    /// The node, where one is concerned.
    pub node: Option<NodeKey>,
    /// Which rule, in words for developers.
    pub rule: String,
}

/// Every rule that the decision breaks, act by act, each judged on what the acts before it left.
pub fn audit(state: &State, decision: &Decision) -> Vec<Violation> {
    let facts = state.nodes.iter().filter_map(|(_, key, row)| Some((key, row.fact.clone()?)));
    let mut audit = Audit {
        state: state.clone(),
        nodes: facts.map(|(key, node)| (key.clone(), node)).collect(),
        seated: seated(state),
        promised: promised(state),
        violations: Vec::new(),
    };
    audit.verdicts(decision);
    for act in &decision.acts {
        match act {
            Act::Place(group, seats, cost) => audit.place(group, seats, cost),
            Act::Release(_, claim) => audit.state.release(claim, true),
            Act::Evict { beneficiary, victim, .. } if victim == beneficiary => {
                audit.broken(victim, None, "an eviction benefits somebody else");
            }
            Act::Admit(_) | Act::Hold(..) | Act::Evict { .. } => {}
        }
    }
    audit.violations
}

/// The request of a role.
fn request_of(state: &State, group: &GroupKey, role: u16) -> Option<Shared<Request>> {
    let fact = state.groups.find(group)?.fact.as_ref()?;
    Some(fact.roles.get(usize::from(role))?.request.clone())
}

/// The pods on nodes: those that are bound, and seats in flight.
fn seated(state: &State) -> Vec<Seated> {
    let mut all = Vec::new();
    for (_, _, member) in state.members.iter() {
        let (Some(fact), Some(node)) = (&member.fact, member.node()) else { continue };
        let Some(request) = request_of(state, &fact.group, fact.role) else { continue };
        let staying = matches!(fact.phase, Phase::Bound(_));
        all.push(Seated { node: node.clone(), request, staying });
    }
    for flight in state.flights.values() {
        for seat in &flight.seats {
            let shown = seat.pod.as_ref().and_then(|pod| state.members.find(pod)?.node());
            let request = request_of(state, &flight.group, seat.role);
            if let (None, Some(request)) = (shown, request) {
                all.push(Seated { node: seat.node.clone(), request, staying: true });
            }
        }
    }
    all
}

/// The pods that wait with a node promised to them, with their priority.
fn promised(state: &State) -> BTreeMap<PodKey, (i32, Seated)> {
    let waiting = |(_, key, member): (u32, &PodKey, &crate::state::MemberState)| {
        let fact = member.fact.as_ref().filter(|fact| fact.phase.is_pending())?;
        let node = fact.nominated.clone().filter(|_| !state.flight_pods.contains_key(key))?;
        let priority = state.groups.find(&fact.group)?.fact.as_ref()?.priority;
        let request = request_of(state, &fact.group, fact.role)?;
        Some((key.clone(), (priority, Seated { node, request, staying: true })))
    };
    state.members.iter().filter_map(waiting).collect()
}

struct Audit {
    state: State,
    nodes: BTreeMap<NodeKey, Node>,
    /// The pods on nodes, those placed by the acts before included.
    seated: Vec<Seated>,
    /// The pods for which room is kept, without those.
    promised: BTreeMap<PodKey, (i32, Seated)>,
    violations: Vec<Violation>,
}

impl Audit {
    fn broken(&mut self, group: &GroupKey, node: Option<&NodeKey>, rule: impl Into<String>) {
        let (group, node) = (group.clone(), node.cloned());
        self.violations.push(Violation { group, node, rule: rule.into() });
    }

    /// Every pending group has one verdict, placed ones have one act, and nobody else has either.
    fn verdicts(&mut self, decision: &Decision) {
        let pending: Vec<GroupKey> =
            self.state.pending.values().map(|slot| self.state.groups.key(*slot).clone()).collect();
        let told: Vec<&GroupKey> = decision.verdicts.iter().map(|(group, _)| group).collect();
        let differ = !pending.iter().eq(told.iter().copied());
        if let Some(group) = pending.first().or(told.first().copied()).filter(|_| differ).cloned() {
            self.broken(&group, None, "every pending group has exactly one verdict, in order");
        }
        for (group, verdict) in &decision.verdicts {
            let acts =
                decision.acts.iter().filter(|a| matches!(a, Act::Place(g, ..) if g == group));
            let placed = matches!(verdict, Verdict::Placed { .. });
            if acts.count() != usize::from(placed) {
                self.broken(
                    group,
                    None,
                    "a group is placed by one act, and only if its verdict says so",
                );
            }
            if let Verdict::Waits(why) | Verdict::Refused(why) | Verdict::GaveUp(why, _) = verdict
                && why.tally.is_empty()
            {
                self.broken(group, None, "a verdict that is not Placed says why");
            }
        }
    }

    /// Whether each role has the fewest members that it starts with, those on nodes counted.
    fn is_whole(&self, slot: u32, seats: &[Seat]) -> bool {
        let roles = self.state.groups.at(slot).fact.iter().flat_map(|group| &group.roles);
        roles.enumerate().all(|(at, role)| {
            let there = role.max.saturating_sub(self.state.missing_in_role(slot, at));
            let given = seats.iter().filter(|seat| usize::from(seat.role) == at).count();
            given >= role.min.saturating_sub(there) as usize
        })
    }

    /// Whether each part of a group that is given members is whole with them, and the part that it is
    /// under; and whether as many are as the group starts with.
    fn has_whole_parts(&self, slot: u32, seats: &[Seat]) -> bool {
        let Some(fact) = &self.state.groups.at(slot).fact else { return true };
        // By role: members there already, and with those that come.
        let there =
            |at: usize, role: &Role| role.max.saturating_sub(self.state.missing_in_role(slot, at));
        let before: Vec<u32> = fact.roles.iter().enumerate().map(|(at, r)| there(at, r)).collect();
        let mut after = before.clone();
        for seat in seats {
            if let Some(count) = after.get_mut(usize::from(seat.role)) {
                *count += 1;
            }
        }
        let of = |counts: &[u32], role: u16| counts.get(usize::from(role)).copied().unwrap_or(0);
        let most: Vec<u32> = fact.roles.iter().map(|role| role.max).collect();
        let parts = &fact.parts.all;
        // How many are whole under each, and at last under none; those under a part stand behind it.
        let (mut whole, mut under) = (vec![false; parts.len()], vec![0_u32; parts.len() + 1]);
        for (at, part) in parts.iter().enumerate().rev() {
            let has =
                |(role, least): &(u16, u32)| of(&after, *role) >= of(&most, *role).min(*least);
            let enough = part.any.iter().all(|any| has_any(any, &after));
            whole[at] =
                !part.held && enough && part.least.iter().all(has) && under[at] >= part.fewest;
            let base = part.under.map_or(parts.len(), usize::from);
            if let (true, Some(count)) = (whole[at], under.get_mut(base)) {
                *count += 1;
            }
        }
        let mut kept: Vec<u32> = fact.roles.iter().map(|role| role.min).collect();
        let each = parts.iter().zip(&whole).all(|(part, is_whole)| {
            let mut roles = part.least.iter().map(|(role, _)| *role);
            let comes = roles.any(|role| of(&after, role) > of(&before, role).max(of(&kept, role)));
            for (role, least) in &part.least {
                if let Some(kept) = kept.get_mut(usize::from(*role)) {
                    *kept = (*kept).max(*least);
                }
            }
            let base = part.under.and_then(|at| whole.get(usize::from(at)));
            !comes || *is_whole && base.is_none_or(|base| *base)
        });
        each && under.last().is_some_and(|count| *count >= fact.parts.fewest)
            && fact.parts.any.iter().all(|any| has_any(any, &after))
    }

    fn place(&mut self, group: &GroupKey, seats: &[Seat], told: &Cost) {
        let Some(slot) = self.state.groups.slot(group) else {
            return self.broken(group, None, "only groups that exist are placed");
        };
        let missing = self.state.missing_seats(slot) as usize;
        let gang = self.state.groups.at(slot).fact.as_ref().map(|g| g.minimum);
        let whole = gang != Some(Minimum::Gang) || self.is_whole(slot, seats);
        if seats.len() > missing || !whole {
            self.broken(group, None, "no more seats than are missing, and a gang's all at once");
        }
        if gang == Some(Minimum::Gang) && !self.has_whole_parts(slot, seats) {
            self.broken(
                group,
                None,
                "so many parts as start are there, and each is placed whole or not at all",
            );
        }
        if !self.keeps_levels(slot, seats) {
            self.broken(group, None, "what must be together is in one domain of its level");
        }
        if !self.state.groups.at(slot).gates().is_empty() {
            self.broken(group, None, "a gated group is not placed");
        }
        let fact = self.state.groups.at(slot).fact.as_ref();
        let admits = |role: &Role| role.admits.as_ref().map_or(u32::MAX, |admits| admits.most);
        let most: Vec<u32> = fact.iter().flat_map(|g| &g.roles).map(admits).collect();
        for (role, most) in most.into_iter().enumerate() {
            let placed = seats.iter().filter(|seat| usize::from(seat.role) == role).count();
            if placed as u64 > u64::from(most) {
                self.broken(group, None, "no more members are placed than may be made");
            }
        }
        let mut cost = Cost::default();
        for seat in seats {
            match self.seat(slot, seat) {
                Ok(one) => cost = cost.and(one),
                Err(rule) => self.broken(group, Some(&seat.node), rule),
            }
            let _ = self.state.take(slot, seat);
        }
        // What a group spans is not judged here.
        let of_devices = |c: &Cost| (c.alternatives, c.with_islands(0).devices, Toll::from(c.harm));
        if of_devices(&cost) != of_devices(told) {
            self.broken(group, None, "a placement costs what its devices cost");
        }
    }

    /// Judges one seat; gives what its devices cost.
    fn seat(&mut self, group: u32, seat: &Seat) -> Result<Cost, String> {
        let request = self.state.groups.at(group).requests.get(usize::from(seat.role)).copied();
        let request = request.ok_or("a seat is of a role that exists")?;
        let request = self.state.request(request).clone();
        let slot = self.state.nodes.slot(&seat.node).ok_or("a seat is on a node that exists")?;
        self.state.refresh_devices(slot, |shape| shape);
        let node = self.state.nodes.at(slot).fact.as_ref();
        let node = node.ok_or("a seat is on a node that exists")?;
        rules::admits(&request.node, &seat.node, node)
            .map_err(|reason| format!("the node passes {}", reason.code()))?;
        let by_devices = rules::by_devices(&request, node);
        self.among_pods(group, seat, &request, node)?;
        if request.features.iter().any(|feature| !node.features.contains(feature)) {
            return Err("the node declares the features that are needed".to_owned());
        }
        let pod = Seated { node: seat.node.clone(), request: request.clone(), staying: true };
        self.seated.push(pod);
        if let Some(pod) = &seat.pod {
            self.promised.remove(pod);
        }
        let at = request.claims.len() as u16;
        let mut wanted = self.wanted(&request, seat)?;
        wanted.extend(rules::extended(&request, &by_devices)?.map(|spec| (at, Shared::new(spec))));
        let required = request.align.iter().any(|wish| wish.required);
        let amount =
            |one: &crate::facts::Extended| rules::scalar(&request.resources, &one.resource);
        let counted = request.extended.iter().map(amount).fold(0i64, i64::saturating_add);
        let several = counted > 1 || !request.claims.is_empty();
        if required && wanted.is_empty() && !request.extended.is_empty() && several {
            return Err("devices of a counter keep no required wish".to_owned());
        }
        self.devices(slot, seat, &request, &wanted)
    }

    /// Judges a seat among the pods on nodes, first with those that its node is promised to.
    fn among_pods(
        &self,
        group: u32,
        seat: &Seat,
        request: &Request,
        node: &Node,
    ) -> Result<(), String> {
        let priority = self.state.groups.at(group).fact.as_ref().map_or(0, |fact| fact.priority);
        let kept = self.promised.iter().filter(|(pod, (of, promised))| {
            seat.pod.as_ref() != Some(*pod) && *of >= priority && promised.node == seat.node
        });
        let kept: Vec<Seated> = kept.map(|(_, (_, promised))| promised.clone()).collect();
        let by_devices = rules::by_devices(request, node);
        let alone: &[Seated] = &[];
        let passes = if kept.is_empty() { vec![alone] } else { vec![&kept, alone] };
        for promised in passes {
            let all = self.seated.iter().chain(promised);
            let here: Vec<&Seated> = all.filter(|pod| pod.node == seat.node).collect();
            pods::ports(request, here.iter().copied())
                .map_err(|reason| format!("ports are free: {}", reason.code()))?;
            let used: Vec<_> = here.iter().map(|pod| &pod.request.resources).collect();
            rules::room(&request.resources, node, &used, &by_devices)
                .map_err(|reason| format!("there is room: {}", reason.code()))?;
            let scene = Scene { nodes: &self.nodes, pods: &self.seated, promised };
            scene
                .admits(request, &seat.node)
                .map_err(|reason| format!("other pods allow it: {}", reason.code()))?;
            let lawful = self.volumes(request, seat, promised)?;
            if promised.is_empty() && lawful != seat.volumes {
                return Err(format!("its claims get {lawful:?}, not {:?}", seat.volumes));
            }
        }
        Ok(())
    }

    /// What becomes of the claims on volumes on the seat's node, with these pods there too.
    fn volumes(
        &self,
        request: &Request,
        seat: &Seat,
        promised: &[Seated],
    ) -> Result<Vec<VolumeGrant>, String> {
        if request.volumes.is_empty() {
            return Ok(Vec::new());
        }
        let facts = self.state.storage_facts();
        let exists = |key: &NodeKey| self.state.nodes.find(key).and_then(|n| n.fact.as_ref());
        let broken = |reason: crate::Reason| format!("its volumes pass {}", reason.code());
        volumes::before_nodes(&facts, &request.volumes).map_err(broken)?;
        let node = exists(&seat.node).ok_or("a seat is on a node that exists")?;
        let there = self.seated.iter().filter(|pod| exists(&pod.node).is_some());
        let (others, promised) = (mounted(there), mounted(promised));
        volumes::on_node(&facts, &others, &promised, &request.volumes, &seat.node, node)
            .map_err(broken)
    }

    /// The claims that are still to be allocated; those that are must be usable from the node.
    fn wanted(
        &self,
        request: &Request,
        seat: &Seat,
    ) -> Result<Vec<(u16, Shared<ClaimSpec>)>, String> {
        if let Some(fault) = &request.fault {
            return Err(format!("its claims stand: {}", fault.reason.code()));
        }
        let mut wanted = Vec::new();
        let node = self.state.nodes.find(&seat.node).and_then(|n| n.fact.as_ref());
        for (at, claim) in request.claims.iter().enumerate() {
            let key = match claim {
                ClaimUse::Own(spec) => {
                    wanted.push((at as u16, spec.clone()));
                    continue;
                }
                ClaimUse::Named(key) | ClaimUse::PerGroup(key) => key,
            };
            if request.claims[..at].iter().any(|other| other.shared() == Some(key)) {
                continue;
            }
            let row = self.state.claims.find(key);
            let fact = row.and_then(|r| Some((r.held(), r.fact.as_ref()?)));
            let (held, fact) = fact.ok_or_else(|| format!("claim {} exists", key.0))?;
            let Some(held) = held else {
                wanted.push((at as u16, fact.spec.clone()));
                continue;
            };
            let usable = held.nodes.as_ref().is_none_or(|terms| {
                node.is_some_and(|n| terms.iter().any(|t| rules::matches(t, &seat.node, n)))
            });
            // A wait that ends is a question of when the decision was taken.
            let failed = fact.failed.as_ref().is_some_and(|f| f.after.is_none())
                && row.is_some_and(|r| r.assumed.is_none());
            if fact.deleting || failed || !usable {
                return Err(format!("claim {} can be used from the node", key.0));
            }
        }
        Ok(wanted)
    }

    fn devices(
        &self,
        slot: u32,
        seat: &Seat,
        request: &Request,
        wanted: &[(u16, Shared<ClaimSpec>)],
    ) -> Result<Cost, String> {
        if wanted.is_empty() && seat.grants.is_empty() {
            // A wish for nearness is about devices that are given now: here there are none.
            return Ok(Cost::default());
        }
        let devices = self.state.nodes.at(slot).devices.as_deref();
        let Some((devices, (shape, usage))) = devices.and_then(|d| Some((d, d.held()?))) else {
            return Ok(Cost::default());
        };
        let mut picks = Vec::new();
        for grant in &seat.grants {
            let at = (0..devices.places().len())
                .find(|at| self.state.device_key(devices, *at) == grant.device)
                .ok_or_else(|| format!("{} is seen by the node", grant.device.device))?;
            picks.push(Pick {
                claim: grant.claim,
                request: grant.request,
                alternative: grant.alternative,
                device: at as u16,
                admin: grant.admin,
                share: grant.share.clone(),
            });
        }
        let claims: Vec<_> = wanted.iter().map(|(at, spec)| (*at, &**spec)).collect();
        let named = request.claims.iter().filter_map(ClaimUse::shared);
        let fixed = self.state.devices_of(devices, named);
        let (align, matches) = (&request.align, &self.state.matches);
        let want = Want { claims: &claims, align, fixed: &fixed, matches };
        device::lawful(shape, usage, &want, &picks)
            .map_err(|breach| format!("devices: {breach:?}"))?;
        let price = device::price(shape, usage, &want, &picks).0.price;
        Ok(Cost {
            alternatives: price.alternatives,
            devices: price.devices,
            harm: price.toll.into(),
            ..Cost::default()
        })
    }
}

/// Whether enough members of the roles are there, by role so many.
fn has_any(any: &AnyOf, counts: &[u32]) -> bool {
    let of = |role: &u16| counts.get(usize::from(*role)).copied().unwrap_or(0);
    any.roles.iter().map(of).fold(0, u32::saturating_add) >= any.least
}
