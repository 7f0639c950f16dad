//! Taking a seat: what a placed member adds to the ledger, the pools and the claims before the
//! board shows it, and how all of it is given back. Trials and flights both go this way.

use super::{Charged, Decided, OnTrial, State};
use crate::check::claims::is_named;
use crate::facts::{
    Allocation, ClaimUse, HeldDevice, NodeRequirement, NodeTerm, Reach, Seat, User,
};
use crate::name::{ClaimKey, FlightId, NodeKey, PodKey, VolumeClaimKey};

/// What a seat took, for giving it back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    /// What is charged, and to which node.
    charged: Option<Charged>,
    /// The pod that sits here.
    pod: Option<PodKey>,
    /// Devices held for claims that exist nowhere yet, or that only this pod uses.
    held: Allocation,
    /// Claims that it allocated by name.
    allocated: Vec<ClaimKey>,
    /// Claims that it joined.
    joined: Vec<ClaimKey>,
    /// What it decided on claims on volumes; none is a claim that does not exist yet by name.
    pub(super) volumes: Vec<(Option<VolumeClaimKey>, (OnTrial, Decided))>,
}

impl State {
    /// Takes a seat for a member of the group in `group`. What the board shows already (a pod that
    /// is bound, a claim that is allocated) is not taken twice.
    pub(crate) fn take(&mut self, group: u32, seat: &Seat) -> Taken {
        let mut taken = Taken::default();
        let Some(request) = self.groups.at(group).requests.get(usize::from(seat.role)).copied()
        else {
            return taken;
        };
        let bound = seat.pod.as_ref().and_then(|pod| self.members.find(pod));
        if bound.is_none_or(|m| m.node().is_none()) {
            let node = self.nodes.slot_or_new(&seat.node);
            let charged = Charged { node, request, staying: true };
            self.charge(charged, 1);
            taken.charged = Some(charged);
        }
        if let Some(slot) = seat.pod.as_ref().and_then(|pod| self.members.slot(pod)) {
            self.members.at_mut(slot).seats += 1;
            taken.pod.clone_from(&seat.pod);
        }
        if !seat.volumes.is_empty() {
            let fact = self.request(request).clone();
            self.take_volumes(&fact.volumes, seat, &mut taken);
        }
        self.take_claims(request, seat, &mut taken);
        self.hold_devices(&taken.held.clone(), 1);
        taken
    }

    fn take_claims(&mut self, request: u32, seat: &Seat, taken: &mut Taken) {
        let request = self.request(request).clone();
        let mut own = Vec::new();
        for (at, claim) in request.claims.iter().enumerate() {
            let grants = seat.grants.iter().filter(|g| usize::from(g.claim) == at);
            let devices: Box<[HeldDevice]> = grants.clone().map(HeldDevice::granted).collect();
            match claim {
                ClaimUse::Named(key) | ClaimUse::PerGroup(key) => {
                    if is_named(&request.claims[..at], key) {
                        continue;
                    }
                    let given = grants.map(crate::scored::place).collect();
                    self.take_named(key, (devices, given), seat, taken);
                }
                ClaimUse::Own(_) => {
                    if !self.own_claim_is_held(seat, at) {
                        own.extend(devices);
                    }
                }
            }
        }
        let extended = request.claims.len();
        if !self.own_claim_is_held(seat, extended) {
            let grants = seat.grants.iter().filter(|g| usize::from(g.claim) == extended);
            own.extend(grants.map(HeldDevice::granted));
        }
        taken.held.devices = own.into();
    }

    /// Whether the board shows the allocation of the claim that was made for the seat's pod.
    fn own_claim_is_held(&self, seat: &Seat, at: usize) -> bool {
        let made = seat
            .pod
            .as_ref()
            .and_then(|pod| self.members.find(pod)?.fact.as_ref()?.claims.get(at)?.as_ref());
        made.and_then(|key| self.claims.find(key)).is_some_and(|c| c.held().is_some())
    }

    fn take_named(
        &mut self,
        key: &ClaimKey,
        (devices, given): (Box<[HeldDevice]>, Vec<(u16, u16)>),
        seat: &Seat,
        taken: &mut Taken,
    ) {
        let slot = self.claims.slot_or_new(key);
        if self.claims.at(slot).held().is_none() && !devices.is_empty() {
            let nodes = self.reach_of(&seat.node, &devices);
            let early = self.claims.at(slot).fact.as_ref().map_or(0, |fact| fact.spec.early(given));
            let allocation = Allocation { devices, nodes, early };
            self.hold_devices(&allocation, 1);
            self.claims.at_mut(slot).assumed = Some(allocation);
            taken.allocated.push(key.clone());
        }
        let fact = self.claims.at(slot).fact.as_ref();
        let shown = |pod: &PodKey| fact.is_some_and(|c| c.users.contains(&User::Pod(pod.clone())));
        if !seat.pod.as_ref().is_some_and(shown) {
            self.claims.at_mut(slot).assumed_users += 1;
            taken.joined.push(key.clone());
        }
    }

    /// Gives back what a seat took. Undo in the reverse order of taking.
    pub(crate) fn give_back(&mut self, taken: &Taken) {
        self.hold_devices(&taken.held, -1);
        for (claim, decided) in taken.volumes.iter().rev() {
            self.decide_volume(claim.as_ref(), decided, false);
        }
        for key in &taken.allocated {
            let slot = self.claims.slot_or_new(key);
            if let Some(allocation) = self.claims.at_mut(slot).assumed.take() {
                self.hold_devices(&allocation, -1);
            }
        }
        for key in &taken.joined {
            let slot = self.claims.slot_or_new(key);
            let row = self.claims.at_mut(slot);
            row.assumed_users -= 1;
            if row.fact.is_none() && row.assumed.is_none() && row.assumed_users == 0 {
                self.claims.remove(slot);
            }
        }
        if let Some(charged) = taken.charged {
            self.charge(charged, -1);
            self.drop_idle_node(charged.node);
        }
        if let Some(slot) = taken.pod.as_ref().and_then(|pod| self.members.slot(pod)) {
            let row = self.members.at_mut(slot);
            row.seats = row.seats.saturating_sub(1);
        }
    }

    /// Gives up the allocation of a claim that nobody uses, or takes that back.
    pub(crate) fn release(&mut self, key: &ClaimKey, released: bool) {
        let Some(slot) = self.claims.slot(key) else { return };
        let held = self.claims.at(slot).fact.as_ref().and_then(|c| c.held.clone());
        let row = self.claims.at_mut(slot);
        if row.released == released {
            return;
        }
        row.released = released;
        if let Some(held) = held {
            self.hold_devices(&held, if released { -1 } else { 1 });
        }
    }

    /// From which nodes an allocation can be used: this one alone if any of its devices is local
    /// to a node or binds to it; else where all of its slices' selectors match (structured
    /// allocator, createNodeSelector); none is everywhere.
    pub(crate) fn reach_of(
        &self,
        node: &NodeKey,
        devices: &[HeldDevice],
    ) -> Option<Box<[NodeTerm]>> {
        let mut all: Vec<NodeRequirement> = Vec::new();
        for device in devices {
            match self.reach_of_device(device) {
                Some(Reach::Selector(term)) => {
                    for requirement in term {
                        if !all.contains(&requirement) {
                            all.push(requirement);
                        }
                    }
                }
                Some(Reach::All) => {}
                Some(Reach::Node(_) | Reach::PerDevice | Reach::Unknown) | None => {
                    let here: NodeTerm = Box::new([NodeRequirement::NameIs(node.0.clone())]);
                    return Some(Box::new([here]));
                }
            }
        }
        if all.is_empty() { None } else { Some(Box::new([all.into()])) }
    }

    /// The reach of a device of the newest generation; none if it is bound to its node anyway.
    fn reach_of_device(&self, held: &HeldDevice) -> Option<Reach> {
        let pool = self.pools.find(&held.device.pool)?.fact.as_ref()?;
        let newest = pool.slices.iter().map(|s| s.generation).max()?;
        for slice in pool.slices.iter().filter(|s| s.generation == newest) {
            let Some(device) = slice.devices.iter().find(|d| d.name == held.device.device) else {
                continue;
            };
            if device.traits.binds_to_node {
                return None;
            }
            return match &slice.reach {
                Reach::PerDevice => device.traits.reach.clone(),
                Reach::Node(_) | Reach::All | Reach::Selector(_) | Reach::Unknown => {
                    Some(slice.reach.clone())
                }
            };
        }
        None
    }

    /// The claims that the seats of a flight allocate or join: those that exist by name.
    fn claims_of_flight(&self, id: FlightId) -> Vec<ClaimKey> {
        let Some(flight) = self.flights.get(&id) else { return Vec::new() };
        let mut claims = Vec::new();
        for seat in &flight.seats {
            let member = seat.pod.as_ref().and_then(|pod| self.members.find(pod)?.fact.as_ref());
            claims.extend(member.iter().flat_map(|m| m.claims.iter().flatten().cloned()));
            let group = self.groups.find(&flight.group).and_then(|g| g.fact.as_ref());
            let role = group.and_then(|g| g.roles.get(usize::from(seat.role)));
            claims.extend(
                role.iter().flat_map(|r| &r.request.claims).filter_map(|c| c.shared().cloned()),
            );
        }
        claims
    }

    /// Lets a flight see changes of these claims, and of no others.
    pub(super) fn watch_claims(&mut self, id: FlightId, claims: Vec<ClaimKey>) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        for key in std::mem::replace(&mut flight.claims, claims.clone()) {
            if let Some(ids) = self.flight_claims.get_mut(&key) {
                ids.retain(|other| *other != id);
                if ids.is_empty() {
                    self.flight_claims.remove(&key);
                }
            }
        }
        for key in claims {
            let ids = self.flight_claims.entry(key).or_default();
            if let Err(at) = ids.binary_search(&id) {
                ids.insert(at, id);
            }
        }
    }

    /// Takes a flight's seats anew, after something that they depend on changed.
    pub(super) fn refresh_flight(&mut self, id: FlightId) {
        self.land(id);
        let Some(flight) = self.flights.get(&id) else { return };
        let (seats, key) = (flight.seats.clone(), flight.group.clone());
        let group = self.groups.slot_or_new(&key);
        let taken = seats.iter().map(|seat| self.take(group, seat)).collect();
        if let Some(flight) = self.flights.get_mut(&id) {
            flight.taken = taken;
        }
        // Which claims those are may have become known only now.
        self.watch_claims(id, self.claims_of_flight(id));
        self.requeue(group);
    }

    /// Gives back all that a flight holds.
    pub(super) fn land(&mut self, id: FlightId) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        for taken in std::mem::take(&mut flight.taken).iter().rev() {
            self.give_back(taken);
        }
    }

    /// Seats of a role in flight whose pods the board does not show as bound.
    pub(super) fn in_flight(&self, group: u32, role: usize) -> u32 {
        let flights = self.groups.at(group).flights.iter().filter_map(|id| self.flights.get(id));
        let shown = |seat: &Seat| {
            seat.pod.as_ref().and_then(|pod| self.members.find(pod)?.node()).is_some()
        };
        flights
            .flat_map(|f| &f.seats)
            .filter(|seat| usize::from(seat.role) == role && !shown(seat))
            .count() as u32
    }
}
