//! The answer by brute force, from the rules: every pending group in queue order, every node, every
//! assignment of devices. It calls nothing of the engine's checks, allocator or search, and keeps
//! what was decided before as plain lists.

mod devices;
mod gang;
mod node;
mod seen;

use std::collections::{BTreeMap, BTreeSet};

use super::world::World;
use crate::audit::pods::{self, Scene, Seated};
use crate::audit::{rules, volumes};
use crate::state::{Decided, StorageFacts};
use crate::*;
use devices::Asked;

/// What becomes of one pending group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) group: GroupKey,
    /// Seats found, with their cost together.
    pub(super) seats: Vec<Seat>,
    pub(super) cost: Cost,
    /// Seats not found.
    pub(super) missing: u32,
    /// Of a group that starts whole, how many of its members fit together at most, those that run
    /// included.
    pub(super) fit: u32,
    /// Its members are all alike.
    pub(super) alike: bool,
    /// Why the next is not: an object's reason with 0 nodes, or every node under its first.
    pub(super) tally: BTreeMap<Reason, u32>,
    /// Allocations given up.
    pub(super) released: Vec<ClaimKey>,
}

/// What a node can offer, or the first check that fails there.
pub(super) type Answer = Result<(Cost, Vec<Grant>, Vec<VolumeGrant>), Reason>;

/// Every way in which a node can take a pod, the cheapest first, or the first check that fails.
type Ways = Result<Vec<(Cost, Vec<Grant>, Vec<VolumeGrant>)>, Reason>;

/// The world with what was decided so far.
#[derive(Clone)]
pub(super) struct Board<'w> {
    world: &'w World,
    claims: BTreeMap<ClaimKey, Claim>,
    seated: Vec<Seated>,
    /// Pods that were seated.
    decided: BTreeSet<PodKey>,
    held: Vec<HeldDevice>,
    storage: StorageFacts,
    upstream: bool,
    /// Nodes that were in use before the group that is being seated.
    before: BTreeSet<NodeKey>,
}

/// Who asks.
#[derive(Clone, Copy)]
struct Asker<'a> {
    request: &'a Request,
    priority: i32,
    pod: Option<&'a PodKey>,
}

/// A place that was found.
struct Found {
    node: NodeKey,
    grants: Vec<Grant>,
    volumes: Vec<VolumeGrant>,
    cost: Cost,
}

/// A claim that is allocated, and whether it may be given up.
struct Pinned {
    key: ClaimKey,
    nodes: Option<Box<[NodeTerm]>>,
    movable: bool,
    failed: bool,
}

impl<'w> Board<'w> {
    pub(super) fn new(world: &'w World, policy: &Policy) -> Self {
        let mut seated = Vec::new();
        for member in world.members.values() {
            let (Phase::Bound(node) | Phase::Terminating(node, _)) = &member.phase else {
                continue;
            };
            let staying = matches!(member.phase, Phase::Bound(_));
            if let Some(request) = world.request_of(member) {
                seated.push(Seated { node: node.clone(), request, staying });
            }
        }
        Self {
            world,
            claims: world.claims.clone(),
            seated,
            decided: BTreeSet::new(),
            before: BTreeSet::new(),
            held: Vec::new(),
            storage: world.storage.clone(),
            upstream: policy.device_order == DeviceOrder::Upstream,
        }
    }

    /// Decides every pending group.
    pub(super) fn decide(mut self) -> Vec<Fate> {
        self.world.queue().into_iter().map(|group| self.group(group)).collect()
    }

    fn group(&mut self, key: GroupKey) -> Fate {
        let group = &self.world.groups[&key];
        let role = &group.roles[0];
        let mut fate = Fate {
            group: key.clone(),
            seats: Vec::new(),
            cost: Cost::default(),
            missing: role.max - self.world.bound(&key, 0),
            fit: 0,
            alike: group.roles.len() == 1,
            tally: BTreeMap::new(),
            released: Vec::new(),
        };
        if group.gate != Gate::Open {
            fate.tally.insert(Reason::Gated, 0);
            return fate;
        }
        let of = self.world.members.iter().filter(|(_, m)| m.group == key && m.phase.is_pending());
        let mut pods: Vec<_> = of.map(|(k, m)| (m.index, k.clone())).collect();
        pods.sort();
        let mut pods = pods.into_iter().map(|(_, pod)| pod);
        let most = role.admits.as_ref().map_or(u32::MAX, |admits| admits.most);
        if group.minimum == Minimum::Gang {
            return self.gang(fate);
        }
        while fate.missing > 0 {
            if fate.seats.len() as u32 >= most {
                fate.tally = BTreeMap::from([(Reason::QuotaExceeded, 0)]);
                break;
            }
            match self.seat(&role.request, group.priority, pods.next(), &mut fate.released) {
                Ok((seat, cost)) => {
                    fate.seats.push(seat);
                    fate.cost = fate.cost.and(cost);
                    fate.missing -= 1;
                }
                Err(tally) => {
                    fate.tally = tally;
                    break;
                }
            }
        }
        fate
    }

    /// Every node's answer to the first opening of the group that goes first, or the object's own.
    pub(super) fn first_look(&self, group: &GroupKey) -> Result<Vec<Answer>, Reason> {
        let priority = self.world.groups[group].priority;
        let request = &self.world.groups[group].roles[0].request;
        let members = self.world.members.iter();
        if self.world.groups[group].roles[0].admits.as_ref().is_some_and(|a| a.most == 0) {
            return Err(Reason::QuotaExceeded);
        }
        let pods = members.filter(|(_, m)| m.group == *group && m.phase.is_pending());
        let pod = pods.map(|(key, m)| (m.index, key)).min().map(|(_, key)| key);
        let (wanted, pinned) = self.resolve(request, pod)?;
        let nodes = self.world.nodes.keys();
        let asker = Asker { request, priority, pod };
        Ok(nodes.map(|key| self.on(asker, &wanted, &pinned, key)).collect())
    }

    fn seat(
        &mut self,
        request: &Shared<Request>,
        priority: i32,
        pod: Option<PodKey>,
        released: &mut Vec<ClaimKey>,
    ) -> Result<(Seat, Cost), BTreeMap<Reason, u32>> {
        let asker = Asker { request, priority, pod: pod.as_ref() };
        let lone = |reason| BTreeMap::from([(reason, 0)]);
        let (wanted, pinned) = self.resolve(request, pod.as_ref()).map_err(lone)?;
        let tally = match self.anywhere(asker, &wanted, &pinned) {
            Ok(found) => return Ok(self.take(request, pod.clone(), found)),
            Err(tally) => tally,
        };
        let movable: Vec<ClaimKey> =
            pinned.iter().filter(|p| p.movable).map(|p| p.key.clone()).collect();
        if !movable.is_empty() {
            let before = self.claims.clone();
            for key in &movable {
                self.claims.get_mut(key).unwrap().held = None;
            }
            // A claim that can't be allocated anew stays where it is.
            let again = self.resolve(request, pod.as_ref()).ok();
            let found =
                again.and_then(|(wanted, pinned)| self.anywhere(asker, &wanted, &pinned).ok());
            if let Some(found) = found {
                released.extend(movable);
                return Ok(self.take(request, pod, found));
            }
            self.claims = before;
        }
        Err(if tally.is_empty() { lone(Reason::NoNodes) } else { tally })
    }

    /// What the pod's claims come to, in the pod's order.
    fn resolve(
        &self,
        request: &Request,
        pod: Option<&PodKey>,
    ) -> Result<(Vec<Asked>, Vec<Pinned>), Reason> {
        volumes::before_nodes(&self.storage, &request.volumes)?;
        if let Some(fault) = &request.fault {
            return Err(fault.reason);
        }
        let (mut wanted, mut pinned) = (Vec::new(), Vec::new());
        for (at, claim) in request.claims.iter().enumerate() {
            let spec = match claim {
                ClaimUse::Own(spec) => spec,
                ClaimUse::Named(key) | ClaimUse::PerGroup(key) => {
                    let alone = matches!(claim, ClaimUse::Named(_));
                    let claim = self.claims.get(key).ok_or(Reason::ClaimMissing)?;
                    if claim.deleting {
                        return Err(Reason::ClaimDeleting);
                    }
                    let mine = |u: &&User| pod.is_some_and(|p| **u == User::Pod(p.clone()));
                    let others = claim.users.iter().filter(|u| !mine(u)).count();
                    if alone && others >= 256 {
                        return Err(Reason::TooManyUsers);
                    }
                    if let Some(held) = &claim.held {
                        let (key, nodes) = (key.clone(), held.nodes.clone());
                        let decided = User::Other(Name::new("decided"));
                        let failed = claim.failed.as_ref().is_some_and(|f| f.holds(super::NOW))
                            && !claim.users.contains(&decided);
                        pinned.push(Pinned { key, nodes, movable: alone && others == 0, failed });
                        continue;
                    }
                    &claim.spec
                }
            };
            if let Some(fault) = &spec.fault {
                return Err(fault.reason);
            }
            wanted.push(Asked { claim: at, spec: spec.clone() });
        }
        Ok((wanted, pinned))
    }

    /// The best node and devices, or the first check that fails on each node.
    fn anywhere(
        &self,
        asker: Asker<'_>,
        wanted: &[Asked],
        pinned: &[Pinned],
    ) -> Result<Found, BTreeMap<Reason, u32>> {
        // A node that was promised to the pod is taken if it will do, whatever there is beside it.
        let own = asker.pod.and_then(|pod| self.world.members.get(pod)?.nominated.clone());
        if let Some(node) = own.filter(|node| self.world.nodes.contains_key(node))
            && let Ok((cost, grants, volumes)) = self.on(asker, wanted, pinned, &node)
        {
            return Ok(Found { node, grants, volumes, cost });
        }
        let mut best: Option<Found> = None;
        let mut tally = BTreeMap::new();
        for key in self.world.nodes.keys() {
            match self.on(asker, wanted, pinned, key) {
                // Nodes come in order of name: of equals the first stays.
                Ok((cost, grants, volumes)) if best.as_ref().is_none_or(|b| cost < b.cost) => {
                    best = Some(Found { node: key.clone(), grants, volumes, cost });
                }
                Ok(_) => {}
                Err(reason) => *tally.entry(reason).or_default() += 1,
            }
        }
        best.ok_or(tally)
    }

    /// A node's answer: where it is promised to others that go before or beside the pod, it must do
    /// with them there as well.
    fn on(&self, asker: Asker<'_>, wanted: &[Asked], pinned: &[Pinned], key: &NodeKey) -> Answer {
        self.ways(asker, wanted, pinned, key).map(|mut ways| ways.remove(0))
    }

    /// The same, with every way.
    fn ways(&self, asker: Asker<'_>, wanted: &[Asked], pinned: &[Pinned], key: &NodeKey) -> Ways {
        let others = self.world.members.iter().filter(|(pod, member)| {
            let priority = self.world.groups.get(&member.group).map(|g| g.priority);
            member.phase.is_pending()
                && member.nominated.as_ref() == Some(key)
                && asker.pod != Some(*pod)
                && priority.is_some_and(|of| of >= asker.priority)
                && !self.decided.contains(*pod)
        });
        let requests = others.filter_map(|(_, member)| self.world.request_of(member));
        let seat = |request| Seated { node: key.clone(), request, staying: true };
        let promised: Vec<Seated> = requests.map(seat).collect();
        if !promised.is_empty() {
            self.beside(asker.request, &promised, wanted, pinned, key)?;
        }
        self.beside(asker.request, &[], wanted, pinned, key)
    }

    /// A node's answer with these pods on it too.
    fn beside(
        &self,
        request: &Request,
        promised: &[Seated],
        wanted: &[Asked],
        pinned: &[Pinned],
        key: &NodeKey,
    ) -> Ways {
        let node = &self.world.nodes[key];
        rules::admits(&request.node, key, node)?;
        let here = self.seated.iter().chain(promised).filter(|pod| pod.node == *key);
        let here: Vec<&Seated> = here.collect();
        pods::ports(request, here.iter().copied())?;
        let used: Vec<&Resources> = here.iter().map(|pod| &pod.request.resources).collect();
        let served = rules::by_devices(request, node);
        rules::room(&request.resources, node, &used, &served)?;
        let granted = self.granted(request, promised, key, node)?;
        let scene = Scene { nodes: &self.world.nodes, pods: &self.seated, promised };
        scene.admits(request, key)?;
        let elsewhere = |p: &Pinned| {
            p.nodes
                .as_ref()
                .is_some_and(|terms| !terms.iter().any(|t| rules::matches(t, key, node)))
        };
        for one in pinned {
            if elsewhere(one) {
                return Err(Reason::ClaimElsewhere);
            }
            if one.failed {
                return Err(Reason::BindingFailed);
            }
        }
        let mut wanted = wanted.to_vec();
        let fault = served.iter().find_map(|asked| asked.fault.as_ref());
        if let Some(fault) = fault {
            return Err(fault.reason);
        }
        if let Ok(Some(spec)) = rules::extended(request, &served) {
            wanted.push(Asked { claim: request.claims.len(), spec: Shared::new(spec) });
        }
        let required = request.align.iter().any(|wish| wish.required);
        let amount = |one: &crate::Extended| rules::scalar(&request.resources, &one.resource);
        let devices: i64 = request.extended.iter().map(amount).sum();
        let several = devices > 1 || !pinned.is_empty();
        if required && wanted.is_empty() && !request.extended.is_empty() && several {
            return Err(Reason::AlignUnmet);
        }
        let held: Vec<&HeldDevice> = self
            .claims
            .values()
            .filter_map(|c| c.held.as_ref())
            .flat_map(|h| &h.devices)
            .chain(&self.held)
            .collect();
        let seen = seen::Seen::new(self.world, key, node, &held);
        let theirs = pinned.iter().filter_map(|p| self.claims[&p.key].held.as_ref());
        let theirs: Vec<&HeldDevice> = theirs.flat_map(|h| &h.devices).collect();
        // Of a name that is there twice, the first.
        let of = |h: &&HeldDevice| seen.devices.iter().position(|d| d.key == h.device);
        let fixed: Vec<usize> = theirs.iter().filter_map(of).collect();
        let soft = node::soft(&request.node, key, node) + node::wishes(&scene, request, key);
        let scarce = node::Scarce::new(&request.resources, node, &used);
        let ask = devices::Ask {
            seen: &seen,
            wanted: &wanted,
            align: &request.align,
            fixed: &fixed,
            matches: &self.world.matches,
            upstream: self.upstream,
        };
        let ways = ask.all(soft, &scarce)?;
        if request.features.iter().any(|feature| !node.features.contains(feature)) {
            return Err(Reason::FeatureMissing);
        }
        Ok(ways.into_iter().map(|(cost, grants)| (cost, grants, granted.clone())).collect())
    }

    /// Whether any device or extended resource of a node is in use.
    fn in_use(&self, key: &NodeKey) -> bool {
        let node = &self.world.nodes[key];
        let here = self.seated.iter().filter(|pod| pod.node == *key);
        let used: Vec<&Resources> = here.map(|pod| &pod.request.resources).collect();
        let claims = self.claims.values().filter_map(|claim| claim.held.as_ref());
        let held: Vec<&HeldDevice> = claims.flat_map(|h| &h.devices).chain(&self.held).collect();
        let seen = seen::Seen::new(self.world, key, node, &held);
        let counted = node::Scarce::new(&Resources::default(), node, &used).used;
        counted || seen.devices.iter().any(|device| device.taken || device.shares > 0)
    }

    /// What becomes of the pod's claims on volumes on a node, with these pods there too.
    fn granted(
        &self,
        request: &Request,
        promised: &[Seated],
        key: &NodeKey,
        node: &Node,
    ) -> Result<Vec<VolumeGrant>, Reason> {
        let there = self.seated.iter().filter(|pod| self.world.nodes.contains_key(&pod.node));
        let (others, promised) = (volumes::mounted(there), volumes::mounted(promised));
        volumes::on_node(&self.storage, &others, &promised, &request.volumes, key, node)
    }

    fn take(
        &mut self,
        request: &Shared<Request>,
        pod: Option<PodKey>,
        found: Found,
    ) -> (Seat, Cost) {
        let Found { node, grants, volumes, cost } = found;
        for grant in &volumes {
            let claim = request.volumes[usize::from(grant.at)].claim();
            let decided = match &grant.volume {
                Some(volume) => Decided::Volume(volume.clone()),
                None => Decided::Made(node.clone()),
            };
            self.storage.decide(claim, &decided);
        }
        let seated = Seated { node: node.clone(), request: request.clone(), staying: true };
        self.seated.push(seated);
        self.decided.extend(pod.clone());
        let holds = |g: &Grant| HeldDevice {
            device: g.device.clone(),
            admin: g.admin,
            share: g.share.is_some(),
            consumed: g.share.clone().unwrap_or_default(),
            consumes: Consumption::default(),
        };
        let extended = grants.iter().filter(|g| usize::from(g.claim) == request.claims.len());
        self.held.extend(extended.map(holds));
        for (at, claim) in request.claims.iter().enumerate() {
            let of = grants.iter().filter(|g| usize::from(g.claim) == at);
            let devices: Vec<HeldDevice> = of.map(holds).collect();
            match claim {
                ClaimUse::Own(_) => self.held.extend(devices),
                ClaimUse::Named(key) | ClaimUse::PerGroup(key) => {
                    let nodes = seen::reach(self.world, &node, &devices);
                    let claim = self.claims.get_mut(key).unwrap();
                    if claim.held.is_none() {
                        claim.held = Some(Allocation { devices: devices.into(), nodes, early: 0 });
                    }
                    claim.users.push(User::Other(Name::new("decided")));
                }
            }
        }
        (Seat { role: 0, index: 0, pod, node, grants, volumes }, cost)
    }
}

/// From which nodes an allocation can be used.
pub(super) fn reach(
    world: &World,
    node: &NodeKey,
    devices: &[HeldDevice],
) -> Option<Box<[NodeTerm]>> {
    seen::reach(world, node, devices)
}

/// Whether some pool that the node sees is being republished.
pub(super) fn sees_incomplete(world: &World, key: &NodeKey, node: &Node) -> bool {
    seen::Seen::new(world, key, node, &[])
        .pools
        .iter()
        .any(|p| p.trouble == Some(Reason::PoolIncomplete))
}
