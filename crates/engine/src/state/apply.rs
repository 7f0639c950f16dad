//! How a change becomes part of the state: what the old fact contributed is taken back, the new
//! one's contribution is added, and whoever depends on it is told.

use std::cmp::Reverse;

use super::{Charged, Flight, QueuePlace, State};
use crate::change::Change;
use crate::decision::Revision;
use crate::facts::{
    Allocation, Claim, Consumption, Group, HeldDevice, Links, Member, Node, Phase, Pool, Reach,
    Request, Seat,
};
use crate::name::{ClaimKey, FlightId, GroupKey, Name, NodeKey, PodKey, PoolKey, Shared};

impl State {
    /// Applies changes, in any order and as often as they come. One that says what is known already
    /// changes nothing, and wakes nobody.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Revision {
        for change in changes {
            self.apply_one(change);
            self.revision = self.revision.next();
        }
        self.revision
    }

    fn apply_one(&mut self, change: Change) {
        match change {
            Change::Node(key, fact) => self.set_node(&key, fact),
            Change::Pool(key, fact) => self.set_pool(&key, fact),
            Change::Links(key, fact) => self.set_links(&key, fact),
            Change::Topology(key, fact) => {
                self.clock.topology = self.clock.next();
                set(&mut self.topologies, key, fact);
            }
            Change::Domains(node, key, fact) => {
                self.clock.topology = self.clock.next();
                set(&mut self.domains, (node, key), fact);
            }
            Change::Queue(key, fact) => set(&mut self.queues, key, fact),
            Change::Group(key, fact) => self.set_group(&key, fact),
            Change::Member(key, fact) => self.set_member(&key, fact),
            Change::Claim(key, fact) => self.set_claim(&key, fact),
            Change::Volume(key, fact) => self.set_volume(&key, fact),
            Change::VolumeClaim(key, fact) => self.set_volume_claim(&key, fact),
            Change::StorageClass(key, fact) => self.set_storage_class(key, fact),
            Change::StorageDriver(key, fact) => self.set_storage_driver(key, fact),
            Change::NodeStorage(key, fact) => self.set_node_storage(&key, fact),
            Change::Hold(key, fact) => set(&mut self.holds, key, fact),
            Change::Match(selector, profile, verdict) => {
                if self.matches.set(selector, profile, verdict) {
                    self.hardware_changed();
                    self.clock.selectors = self.clock.next();
                }
            }
            Change::Derived(of, profile, value) => {
                if self.matches.derive(of, profile, value) {
                    self.hardware_changed();
                    self.clock.selectors = self.clock.next();
                }
            }
            Change::Assume(id, group, seats) => self.assume(id, group, seats),
            Change::Settle(id) => self.settle(id),
        }
    }

    fn set_node(&mut self, key: &NodeKey, fact: Option<Node>) {
        if self.nodes.find(key).and_then(|n| n.fact.as_ref()) == fact.as_ref() {
            return;
        }
        let Some(slot) = self.slot_for(key, fact.is_some()) else { return };
        let scalars = fact.as_ref().map(|n| self.scalar_ids(&n.allocatable)).unwrap_or_default();
        for (name, _) in fact.iter().flat_map(|node| &node.unhealthy) {
            self.scalar_id(name);
        }
        let fresh = self.clock.next();
        let node = self.nodes.at_mut(slot);
        let was = node.fact.is_some();
        let seen = |n: &Node| (n.labels.clone(), n.features.clone());
        let sees_anew = node.fact.as_ref().map(seen) != fact.as_ref().map(seen);
        node.ledger.offer(&scalars);
        node.fact = fact;
        node.fact_version = fresh;
        if sees_anew {
            node.devices = None;
        }
        if was != node.fact.is_some() {
            self.clock.node_set = self.clock.next();
        }
        self.hardware_changed();
        self.touch_node(slot);
        self.drop_idle_node(slot);
    }

    fn slot_for(&mut self, key: &NodeKey, make: bool) -> Option<u32> {
        if make { Some(self.nodes.slot_or_new(key)) } else { self.nodes.slot(key) }
    }

    fn set_links(&mut self, key: &NodeKey, fact: Option<Links>) {
        if self.nodes.find(key).and_then(|n| n.links.as_ref()) == fact.as_ref() {
            return;
        }
        let Some(slot) = self.slot_for(key, fact.is_some()) else { return };
        let node = self.nodes.at_mut(slot);
        node.links = fact;
        node.devices = None;
        self.hardware_changed();
        self.touch_node(slot);
        self.drop_idle_node(slot);
    }

    fn set_pool(&mut self, key: &PoolKey, fact: Option<Pool>) {
        if self.pools.find(key).and_then(|p| p.fact.as_ref()) == fact.as_ref() {
            return;
        }
        let slot = self.pools.slot_or_new(key);
        self.detach_pool(slot);
        self.pools.at_mut(slot).fact = fact;
        self.attach_pool(slot);
        self.hardware_changed();
        self.drop_idle_pool(slot);
    }

    /// Takes the pool out of the nodes that see it.
    fn detach_pool(&mut self, slot: u32) {
        self.touch_pool(slot, true);
        for node in std::mem::take(&mut self.pools.at_mut(slot).nodes) {
            self.nodes.at_mut(node).pools.retain(|p| *p != slot);
            self.drop_idle_node(node);
        }
        self.wide_pools.remove(&slot);
    }

    /// Tells the nodes that can see the pool.
    fn attach_pool(&mut self, slot: u32) {
        let (mut names, mut wide) = (Vec::new(), false);
        if let Some(pool) = &self.pools.at(slot).fact {
            for slice in &pool.slices {
                wide |= note_reach(&slice.reach, &mut names);
                for device in &slice.devices {
                    if let (Reach::PerDevice, Some(reach)) = (&slice.reach, &device.traits.reach) {
                        wide |= note_reach(reach, &mut names);
                    }
                }
            }
        }
        names.sort();
        names.dedup();
        let nodes: Vec<u32> = names.iter().map(|name| self.nodes.slot_or_new(name)).collect();
        for node in &nodes {
            self.nodes.at_mut(*node).pools.push(slot);
        }
        self.pools.at_mut(slot).nodes = nodes;
        if wide {
            self.wide_pools.insert(slot);
        }
        self.touch_pool(slot, true);
    }

    fn set_group(&mut self, key: &GroupKey, fact: Option<Group>) {
        if self.groups.find(key).and_then(|g| g.fact.as_ref()) == fact.as_ref() {
            return;
        }
        let slot = self.groups.slot_or_new(key);
        let members = self.groups.at(slot).members.clone();
        for member in &members {
            self.uncharge_member(*member);
        }
        let requests: Vec<u32> = fact
            .iter()
            .flat_map(|g| &g.roles)
            .map(|role| self.request_in_use(&role.request))
            .collect();
        let old = std::mem::replace(&mut self.groups.at_mut(slot).requests, requests);
        self.groups.at_mut(slot).fact = fact;
        for member in &members {
            self.charge_member(*member);
        }
        for request in old {
            self.request_released(request);
        }
        for flight in self.groups.at(slot).flights.clone() {
            self.refresh_flight(flight);
        }
        self.requeue(slot);
        self.drop_idle_group(slot);
    }

    fn set_member(&mut self, key: &PodKey, fact: Option<Member>) {
        if self.members.find(key).and_then(|m| m.fact.as_ref()) == fact.as_ref() {
            return;
        }
        let known = self.members.slot(key);
        let slot = self.members.slot_or_new(key);
        if known.is_some() {
            self.leave_group(slot);
        }
        match fact {
            Some(member) => {
                let group = self.groups.slot_or_new(&member.group);
                self.groups.at_mut(group).members.push(slot);
                if member.phase.is_pending() && member.nominated.is_some() {
                    self.nominated.insert(slot);
                }
                let row = self.members.at_mut(slot);
                row.fact = Some(member);
                row.group = group;
                self.charge_member(slot);
                self.expect_end(slot, true);
                self.requeue(group);
            }
            None => self.members.remove(slot),
        }
        if let Some(flight) = self.flight_pods.get(key).copied() {
            self.refresh_flight(flight);
        }
    }

    fn leave_group(&mut self, member: u32) {
        self.uncharge_member(member);
        self.expect_end(member, false);
        self.nominated.remove(&member);
        let group = self.members.at(member).group;
        self.groups.at_mut(group).members.retain(|m| *m != member);
        self.members.at_mut(member).fact = None;
        self.requeue(group);
        self.drop_idle_group(group);
    }

    /// Notes when a member is expected to leave its node, or takes that back.
    fn expect_end(&mut self, member: u32, expected: bool) {
        let Some(end) = self.members.at(member).end() else { return };
        let count = self.ends.entry(end).or_default();
        *count = if expected { *count + 1 } else { *count - 1 };
        if *count == 0 {
            self.ends.remove(&end);
        }
    }

    /// Puts a bound member into the ledger of its node.
    fn charge_member(&mut self, slot: u32) {
        let member = self.members.at(slot);
        let Some(node) = member.node().cloned() else { return };
        let role = member.fact.as_ref().map_or(0, |m| m.role);
        let group = self.groups.at(member.group);
        let Some(request) = group.requests.get(usize::from(role)).copied() else { return };
        let phase = member.fact.as_ref().map(|m| &m.phase);
        let staying = matches!(phase, Some(Phase::Bound(_)));
        let node = self.nodes.slot_or_new(&node);
        let charged = Charged { node, request, staying };
        self.charge(charged, 1);
        self.members.at_mut(slot).charged = Some(charged);
    }

    fn uncharge_member(&mut self, slot: u32) {
        if let Some(charged) = self.members.at_mut(slot).charged.take() {
            self.charge(charged, -1);
            self.drop_idle_node(charged.node);
        }
    }

    /// Adds a request to a node's ledger and to what its pods mean to others, or takes it back.
    pub(crate) fn charge(&mut self, charged: Charged, sign: i64) {
        let Charged { node, request, staying } = charged;
        self.place_among(node, request, staying, sign);
        let row = self.requests.at_mut(request);
        let of_node = self.nodes.at_mut(node);
        of_node.ledger.add(&row.charge, sign);
        of_node.pods = if sign > 0 { of_node.pods + 1 } else { of_node.pods.saturating_sub(1) };
        let mounts = row.fact.as_ref().filter(|fact| !fact.volumes.is_empty()).cloned();
        if let Some(fact) = mounts {
            self.mount(node, &fact.volumes, sign > 0);
        }
        let row = self.requests.at_mut(request);
        if sign > 0 {
            row.users += 1;
        } else {
            self.request_released(request);
        }
        self.touch_node(node);
    }

    fn request_in_use(&mut self, request: &Shared<Request>) -> u32 {
        let slot = self.requests.slot_or_new(request);
        if self.requests.at(slot).fact.is_none() {
            let charge = self.charge_of(request);
            let row = self.requests.at_mut(slot);
            row.fact = Some(request.clone());
            row.charge = charge;
        }
        self.requests.at_mut(slot).users += 1;
        slot
    }

    fn request_released(&mut self, slot: u32) {
        let row = self.requests.at_mut(slot);
        row.users -= 1;
        if row.users == 0 {
            self.requests.remove(slot);
        }
    }

    fn set_claim(&mut self, key: &ClaimKey, fact: Option<Claim>) {
        if self.claims.find(key).and_then(|c| c.fact.as_ref()) == fact.as_ref() {
            return;
        }
        let slot = self.claims.slot_or_new(key);
        let old = self.claims.at_mut(slot).fact.take();
        self.await_binding(old.as_ref(), false);
        self.await_binding(fact.as_ref(), true);
        if let Some(held) = old.as_ref().and_then(|c| c.held.as_ref()) {
            self.hold_devices(held, -1);
        }
        if let Some(held) = fact.as_ref().and_then(|c| c.held.as_ref()) {
            self.hold_devices(held, 1);
        }
        self.claims.at_mut(slot).fact = fact;
        for flight in self.flight_claims.get(key).cloned().unwrap_or_default() {
            self.refresh_flight(flight);
        }
        let row = self.claims.at(slot);
        if row.fact.is_none() && row.assumed.is_none() && row.assumed_users == 0 {
            self.claims.remove(slot);
        }
    }

    /// Notes when the wait for a claim's binding conditions ends, or takes that back.
    fn await_binding(&mut self, claim: Option<&Claim>, awaited: bool) {
        let failure = claim.filter(|claim| claim.held.is_some()).and_then(|c| c.failed.as_ref());
        let Some(end) = failure.and_then(|failure| failure.after) else { return };
        let count = self.deadlines.entry(end).or_default();
        *count = if awaited { *count + 1 } else { *count - 1 };
        if *count == 0 {
            self.deadlines.remove(&end);
        }
    }

    /// Counts the devices of an allocation as held, or no longer.
    pub(super) fn hold_devices(&mut self, held: &Allocation, sign: i64) {
        for device in held.devices.iter().filter(|d| !d.admin) {
            self.hold_device(device, sign);
        }
    }

    fn hold_device(&mut self, held: &HeldDevice, sign: i64) {
        let pool = self.pools.slot_or_new(&held.device.pool);
        self.pools.at_mut(pool).hold(held, sign);
        self.touch_pool(pool, false);
        self.drop_idle_pool(pool);
    }

    fn assume(&mut self, id: FlightId, group: GroupKey, seats: Vec<Seat>) {
        self.settle(id);
        for pod in seats.iter().filter_map(|s| s.pod.as_ref()) {
            self.flight_pods.insert(pod.clone(), id);
        }
        let slot = self.groups.slot_or_new(&group);
        self.groups.at_mut(slot).flights.push(id);
        self.flights.insert(id, Flight { group, seats, taken: Vec::new(), claims: Vec::new() });
        self.refresh_flight(id);
    }

    fn settle(&mut self, id: FlightId) {
        if !self.flights.contains_key(&id) {
            return;
        }
        self.land(id);
        self.watch_claims(id, Vec::new());
        if let Some(flight) = self.flights.remove(&id) {
            for pod in flight.seats.iter().filter_map(|s| s.pod.as_ref()) {
                self.flight_pods.remove(pod);
            }
            if let Some(group) = self.groups.slot(&flight.group) {
                self.groups.at_mut(group).flights.retain(|f| *f != id);
                self.requeue(group);
                self.drop_idle_group(group);
            }
        }
    }

    /// Puts a group where it belongs in the queue, or out of it.
    pub(super) fn requeue(&mut self, slot: u32) {
        let key = self.groups.key(slot).clone();
        let wanted = self.missing_seats(slot) > 0;
        let group = self.groups.at_mut(slot);
        let place = group.fact.as_ref().filter(|_| wanted).map(|fact| QueuePlace {
            priority: Reverse(fact.priority),
            since: fact.since,
            object: key.object,
            kind: key.kind,
        });
        if group.place == place {
            return;
        }
        let old = std::mem::replace(&mut group.place, place.clone());
        if let Some(old) = old {
            self.pending.remove(&old);
        }
        if let Some(place) = place {
            self.pending.insert(place, slot);
        }
    }

    /// Seats of a group that are neither bound nor in flight, over all roles.
    pub(crate) fn missing_seats(&self, slot: u32) -> u32 {
        let group = self.groups.at(slot);
        let roles = group.fact.as_ref().map_or(0, |g| g.roles.len());
        (0..roles).map(|role| self.missing_in_role(slot, role)).sum()
    }

    /// Seats of one role that are neither bound nor in flight.
    pub(crate) fn missing_in_role(&self, slot: u32, role: usize) -> u32 {
        let group = self.groups.at(slot);
        let Some(max) = group.fact.as_ref().and_then(|g| g.roles.get(role)).map(|r| r.max) else {
            return 0;
        };
        let bound = group
            .members
            .iter()
            .map(|m| self.members.at(*m))
            .filter(|m| m.fact.as_ref().is_some_and(|f| usize::from(f.role) == role))
            .filter(|m| m.node().is_some())
            .count() as u32;
        max.saturating_sub(bound).saturating_sub(self.in_flight(slot, role))
    }

    pub(super) fn hardware_changed(&mut self) {
        self.clock.hardware = self.clock.next();
    }

    /// Gives a node a new version.
    pub(super) fn touch_node(&mut self, slot: u32) {
        let version = self.clock.next();
        let old = std::mem::replace(&mut self.nodes.at_mut(slot).version, version);
        if let Some(before) = &mut self.clock.before_trial {
            before.push((slot, old));
        }
        self.clock.note(slot);
    }

    /// Tells every node that sees the pool; `anew` where what it publishes changed.
    pub(super) fn touch_pool(&mut self, slot: u32, anew: bool) {
        if self.wide_pools.contains(&slot) {
            for node in 0..self.nodes.slots() {
                self.touch_devices(node, anew);
            }
            return;
        }
        for at in 0..self.pools.at(slot).nodes.len() {
            let node = self.pools.at(slot).nodes[at];
            self.touch_devices(node, anew);
        }
    }

    fn touch_devices(&mut self, node: u32, anew: bool) {
        if self.nodes.get(node).is_none() {
            return;
        }
        let row = self.nodes.at_mut(node);
        if anew {
            row.devices = None;
        } else if let Some(devices) = &mut row.devices {
            devices.usage = None;
        }
        self.touch_node(node);
    }

    pub(super) fn drop_idle_node(&mut self, slot: u32) {
        let Some(node) = self.nodes.get(slot) else { return };
        if node.fact.is_none()
            && node.links.is_none()
            && node.pools.is_empty()
            && node.pods == 0
            && node.volumes.uses.is_empty()
        {
            self.nodes.remove(slot);
        }
    }

    fn drop_idle_pool(&mut self, slot: u32) {
        let pool = self.pools.at(slot);
        if pool.fact.is_none() && pool.devices.is_empty() {
            self.pools.remove(slot);
        }
    }

    fn drop_idle_group(&mut self, slot: u32) {
        let Some(group) = self.groups.get(slot) else { return };
        if group.fact.is_none() && group.members.is_empty() && group.flights.is_empty() {
            self.groups.remove(slot);
        }
    }
}

/// Sets or removes a fact that nothing else depends on yet.
pub(super) fn set<K: Ord, V>(
    facts: &mut std::collections::BTreeMap<K, V>,
    key: K,
    fact: Option<V>,
) {
    match fact {
        Some(fact) => facts.insert(key, fact),
        None => facts.remove(&key),
    };
}

/// Notes the node that a reach names; says whether it may reach nodes that it doesn't name.
fn note_reach(reach: &Reach, names: &mut Vec<NodeKey>) -> bool {
    match reach {
        Reach::Node(node) => {
            names.push(node.clone());
            false
        }
        Reach::All | Reach::Selector(_) => true,
        Reach::PerDevice | Reach::Unknown => false,
    }
}

impl super::PoolState {
    /// Counts a holder of a device, or takes it back; a device that nobody holds is forgotten.
    fn hold(&mut self, held: &HeldDevice, sign: i64) {
        let name = &held.device.device;
        let at = self.devices.binary_search_by(|d| d.name.cmp(name)).unwrap_or_else(|at| {
            let fresh = super::Holders {
                name: name.clone(),
                exclusive: 0,
                shares: 0,
                consumed: Vec::new(),
                consumes: Consumption::default(),
            };
            self.devices.insert(at, fresh);
            at
        });
        let device = &mut self.devices[at];
        let count = if held.share { &mut device.shares } else { &mut device.exclusive };
        *count = if sign > 0 { *count + 1 } else { *count - 1 };
        if sign > 0 && !held.consumes.counters.is_empty() {
            device.consumes.clone_from(&held.consumes);
        }
        for (name, amount) in &held.consumed {
            device.consume(name, amount.wrapping_mul(i128::from(sign)));
        }
        if device.exclusive == 0 && device.shares == 0 && device.consumed.is_empty() {
            self.devices.remove(at);
        }
    }

    /// The holders of a device.
    pub(crate) fn holders(&self, device: &Name) -> Option<&super::Holders> {
        // Most names are one allocation, which is seen at once.
        self.devices.iter().find(|d| d.name.same(device)).or_else(|| {
            let at = self.devices.binary_search_by(|d| d.name.cmp(device)).ok()?;
            self.devices.get(at)
        })
    }
}

impl super::Holders {
    fn consume(&mut self, name: &crate::name::Name, amount: i128) {
        match self.consumed.iter().position(|(n, _)| n == name) {
            Some(at) => {
                let sum = self.consumed[at].1.wrapping_add(amount);
                if sum == 0 {
                    self.consumed.swap_remove(at);
                } else {
                    self.consumed[at].1 = sum;
                }
            }
            None => self.consumed.push((name.clone(), amount)),
        }
    }
}
