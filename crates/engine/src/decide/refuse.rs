//! Would it fit the same cluster with every other pod gone, every node and device healed, every
//! gate lifted and every quota free? If not, the verdict is `Refused`.
//!
//! A node's health is its cordon and its `node.kubernetes.io/` taints; a device's is its taints, and
//! where a device plugin counts it, that it is allocatable.
//! While a pool that a node sees is being republished, nobody can say what it will hold, so nothing
//! is refused on that node's account. And pods that the pod must be near may come anywhere: of what it
//! asks of other pods only the labels that its domains need stay in the way.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::search::{Ask, Search, device_failing, room_failing};
use super::trial::{Opening, Trial};
use super::why::{Rows, count};
use crate::check::around;
use crate::check::claims::Wanted;
use crate::check::fact::{self, Health};
use crate::check::{Failing, before_nodes, features, volumes};
use crate::decision::Tally;
use crate::device::{Failure, Shape, Usage};
use crate::name::Shared;
use crate::policy::{Effort, Policy};
use crate::reason::Reason;
use crate::state::State;

/// What stays in the way in the healed and emptied cluster; nothing if it would fit there.
pub(crate) type Never = Option<Arc<Tally>>;

/// An answer that is remembered, with all that it holds for: version of the hardware, policy and
/// effort.
pub(super) type Remembered = (u64, Policy, Effort, Never);

impl Trial<'_> {
    /// What stays in the way of the request in the healed and emptied cluster.
    pub(super) fn never(&mut self, request: u32, opening: &Opening) -> Never {
        let fact = self.state.request(request).clone();
        let resolved = match before_nodes(self.state, &fact, self.asker(opening), true) {
            Ok(resolved) => resolved,
            Err(stopped) => {
                let (reason, example) = *stopped;
                return Some(Arc::new(Tally { reason, nodes: 0, devices: 0, example }));
            }
        };
        // A claim that is named can change without the hardware, and so can what is decided on
        // volumes; only requests without both are remembered.
        let steady = !fact.shares_claims() && fact.volumes.is_empty();
        let hardware = self.state.clock.hardware;
        if let Some(caches) = self.caches.as_deref().filter(|_| steady)
            && let Some((version, policy, effort, never)) = caches.never.get(&fact)
            && *version == hardware
            && policy == self.policy
            && *effort == self.effort
        {
            return never.clone();
        }
        let ask = Ask::new(request, fact.clone(), resolved);
        let never = self.never_of(&ask);
        if let Some(caches) = self.caches.as_deref_mut().filter(|_| steady) {
            caches.never.retain(|_, (version, ..)| *version == hardware);
            caches.never.insert(fact, (hardware, *self.policy, self.effort, never.clone()));
        }
        never
    }

    fn never_of(&mut self, ask: &Ask) -> Never {
        let memo = self.caches.as_deref_mut().map(|c| &mut c.memo);
        let mut ideal = Ideal {
            search: Search::new(self.policy, self.effort, memo),
            seen: FxHashMap::default(),
        };
        let mut rows = Rows::new();
        // The nearest miss of the highest reason, for the example.
        let mut nearest: Option<(u32, Failing)> = None;
        for slot in self.ranks.slots() {
            let Err(failing) = ideal.node(self.state, ask, *slot) else {
                self.spent += ideal.search.spent;
                return None;
            };
            count(&mut rows, failing.reason, failing.close, failing.fallen, *slot);
            let closer = |(_, best): &(u32, Failing)| {
                (failing.reason.progress(), failing.close) > (best.reason.progress(), best.close)
            };
            if nearest.as_ref().is_none_or(closer) {
                nearest = Some((*slot, failing));
            }
        }
        self.spent += ideal.search.spent;
        let Some((slot, failing)) = nearest else {
            let reason = Reason::NoNodes;
            return Some(Arc::new(Tally { reason, nodes: 0, devices: 0, example: <_>::default() }));
        };
        let example = self.example(&failing, slot);
        let row = rows.get(&failing.reason);
        let (nodes, devices) = row.map_or((0, 0), |row| (row.nodes, row.devices));
        Some(Arc::new(Tally { reason: failing.reason, nodes, devices, example }))
    }
}

/// Nodes looked at as if they were healed and empty.
struct Ideal<'a> {
    search: Search<'a>,
    /// Equal nodes share a shape: each is asked once, for each thing that is wanted of it.
    seen: FxHashMap<(Shared<Wanted>, *const Shape), Result<(), Failing>>,
}

impl Ideal<'_> {
    fn node(&mut self, state: &mut State, ask: &Ask, slot: u32) -> Result<(), Failing> {
        let row = state.nodes.at(slot);
        let Some(node) = &row.fact else { return Ok(()) };
        fact::first(&ask.request.node, state.nodes.key(slot), node, Health::Healed)?;
        let more = node.unhealthy.iter();
        let more = more.filter_map(|(name, more)| Some((*state.scalar_index.get(name)?, *more)));
        let empty = row.ledger.emptied(more);
        let whole = (!node.unhealthy.is_empty()).then(|| fact::healed(node));
        let whole = whole.as_ref().unwrap_or(node);
        if let Some(failing) = room_failing(state, ask, whole, &empty).into_iter().next() {
            return Err(failing);
        }
        let (apart, undeclared) = (
            around::when_empty(&ask.request, node),
            features::declared(&ask.request.features, node),
        );
        if let Some(mounts) = &ask.mounts {
            volumes::first(state, &ask.request, mounts, slot)?;
        }
        apart?;
        let wanted = self.search.wanted(state, ask, &empty)?;
        self.search.look_at_devices(state, slot);
        let Some(devices) = state.nodes.at(slot).devices.as_deref() else { return undeclared };
        let key = (wanted, Arc::as_ptr(devices.shape()));
        if let Some(known) = self.seen.get(&key) {
            return known.clone().and(undeclared);
        }
        let answer = self.devices(state, &key.0, devices.shape());
        self.seen.insert(key, answer.clone());
        answer.and(undeclared)
    }

    fn devices(
        &mut self,
        state: &State,
        wanted: &Shared<Wanted>,
        shape: &Arc<Shape>,
    ) -> Result<(), Failing> {
        if wanted.claims.is_empty() || shape.is_incomplete() {
            return Ok(());
        }
        let healed = match shape.is_healthy() {
            true => Arc::clone(shape),
            false => self.search.share(Arc::new(shape.healed())),
        };
        let usage = Shared::new(Usage::free(&healed));
        // In the emptied cluster no claim of the pod is allocated.
        match self.search.choose(state, wanted, &[], &healed, &usage) {
            Ok(_) => Ok(()),
            Err(failure) => match &*failure {
                Failure::Bounded => Ok(()),
                Failure::Reason { .. } | Failure::Fatal { .. } => Err(device_failing(&failure)),
            },
        }
    }
}
