//! Placements: seats that a controller has decided on and that the board does not show yet. Read back
//! they are the engine's seats, so that nobody else takes their places. Writing them is left to
//! `control`.

use std::sync::Arc;

use phalanx_engine::{DeviceKey, Grant, GroupKey, Name, NodeKey, PodKey, PoolKey, Scoped, Seat};
use phalanx_objects::ObjectRef;
use phalanx_objects::resource::DeviceClaim;
use phalanx_objects::topology::{Placement, PlacementGrant, PlacementPhase, PlacementSeat};

use super::intern::nanos;
use super::record::Header;
use super::{GroupInfo, Lowering, PodInfo};

/// What is kept of a Placement: all of it, for there is one to a group, and it is shared.
#[derive(Clone, Debug)]
pub(crate) struct PlacementRecord {
    pub(super) header: Header,
    object: Arc<Placement>,
}

impl Lowering {
    pub(super) fn placement(&mut self, placement: &Arc<Placement>, header: Header) {
        let meta = &placement.metadata;
        let key = self.scoped(&meta.namespace, &meta.name);
        let record = PlacementRecord { header, object: Arc::clone(placement) };
        self.objects.placements.insert(key, record);
    }

    /// Whether there is any Placement.
    pub(crate) fn has_placements(&self) -> bool {
        !self.objects.placements.is_empty()
    }

    /// Every Placement, by namespace and name.
    pub(crate) fn placements(&self) -> impl Iterator<Item = &Arc<Placement>> {
        self.objects.placements.values().map(|record| &record.object)
    }

    /// The group that a Placement is about.
    pub(crate) fn placed_group(&self, placement: &ObjectRef) -> Option<GroupKey> {
        let (namespace, name) = (Name::new(&placement.namespace), Name::new(&placement.name));
        let record = self.objects.placements.get(&Scoped { namespace, name })?;
        Some(group_of(&record.object))
    }

    /// The seats that a Placement keeps for pods that wait: of those whose pods are the ones that it names,
    /// by UID. Of one that gives up its seats, or has all its members running, there are none. What becomes
    /// of claims on volumes is not in it.
    pub(crate) fn promised(&self, placement: &Placement) -> Vec<Seat> {
        match placement.spec.phase {
            Some(PlacementPhase::Held | PlacementPhase::Committing) => {}
            Some(PlacementPhase::Waiting | PlacementPhase::Done | PlacementPhase::Releasing)
            | None => return Vec::new(),
        }
        self.kept(placement)
    }

    /// The seats of a Placement, whatever its phase, as far as their pods are known.
    pub(crate) fn kept(&self, placement: &Placement) -> Vec<Seat> {
        let Some(info) = self.group(&group_of(placement)) else { return Vec::new() };
        let seats = placement.spec.seats.iter();
        seats.filter_map(|seat| self.promised_seat(&info, placement, seat)).collect()
    }

    fn promised_seat(
        &self,
        info: &GroupInfo,
        placement: &Placement,
        seat: &PlacementSeat,
    ) -> Option<Seat> {
        let roles = info.roles.iter().enumerate();
        let mut pods = roles.flat_map(|(role, of)| of.pods.iter().map(move |pod| (role, pod)));
        let (role, pod) =
            pods.find(|(_, pod)| pod.key.0.name.as_str() == seat.pod && pod.uid == seat.uid)?;
        let node = NodeKey(Name::new(&seat.node));
        let mut grants = Vec::new();
        for grant in &seat.grants {
            self.granted(placement, (pod, &node), grant, &mut grants);
        }
        grants.sort();
        Some(Seat {
            role: u16::try_from(role).ok()?,
            index: u32::try_from(seat.index).ok()?,
            pod: Some(pod.key.clone()),
            node,
            grants,
            volumes: Vec::new(),
        })
    }

    /// The engine's grants of one entry; none where the claim or the request is not known any more.
    fn granted(
        &self,
        placement: &Placement,
        (pod, node): (&PodInfo, &NodeKey),
        grant: &PlacementGrant,
        into: &mut Vec<Grant>,
    ) {
        let own = pod.claims.iter().position(|claim| claim.pod_claim.as_str() == grant.claim);
        let made;
        let (at, spec): (usize, &DeviceClaim) = match own.filter(|_| !grant.claim.is_empty()) {
            Some(at) => (at, &pod.claims[at].spec),
            None => {
                let Some(claim) = self.extended_claim(&pod.home, pod, node) else { return };
                made = claim;
                (pod.claims.len(), &made.spec)
            }
        };
        let Some((request, alternative, admin)) = numbered(spec, &grant.request) else { return };
        let pool = usize::try_from(grant.pool).ok().and_then(|at| placement.spec.pools.get(at));
        let (Some(pool), Ok(claim)) = (pool, u16::try_from(at)) else { return };
        let share: Option<Box<[(Name, i128)]>> = grant.consumed.as_ref().map(|consumed| {
            consumed.iter().map(|(name, amount)| (Name::new(name), nanos(amount))).collect()
        });
        let pool = PoolKey { driver: Name::new(&pool.driver), pool: Name::new(&pool.name) };
        into.extend(grant.devices.iter().map(|device| Grant {
            claim,
            request,
            alternative,
            device: DeviceKey { pool: pool.clone(), device: Name::new(device) },
            admin,
            share: share.clone(),
        }));
    }
}

/// The group that a Placement is about.
pub(crate) fn group_of(placement: &Placement) -> GroupKey {
    let namespace = match placement.metadata.namespace.as_str() {
        "" => Name::new("default"),
        namespace => Name::new(namespace),
    };
    let group = &placement.spec.group;
    GroupKey {
        object: Scoped { namespace, name: Name::new(&group.name) },
        kind: Name::new(&group.kind),
    }
}

/// The numbers of a request and of its alternative, by the name that results give them, and whether it
/// only looks at devices.
fn numbered(spec: &DeviceClaim, name: &str) -> Option<(u16, u16, bool)> {
    let (main, sub) = name.split_once('/').map_or((name, None), |(main, sub)| (main, Some(sub)));
    let at = spec.requests.iter().position(|request| request.name == main)?;
    let request = spec.requests.get(at)?;
    let alternative = match sub {
        Some(sub) => request.first_available.iter().position(|one| one.name == sub)?,
        None => 0,
    };
    let admin = request.exactly.as_ref().is_some_and(|exactly| exactly.admin_access == Some(true));
    Some((u16::try_from(at).ok()?, u16::try_from(alternative).ok()?, admin))
}

/// A pod by its namespace and name.
pub(crate) fn pod_key(namespace: &str, name: &str) -> PodKey {
    PodKey(Scoped { namespace: Name::new(namespace), name: Name::new(name) })
}
