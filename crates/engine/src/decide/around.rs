//! What an ask is told of the pods around: those on nodes, and those that wait with a node promised to
//! them (`status.nominatedNodeName`).
//!
//! A pod is tried first on the node that was promised to it, and goes there if it fits. Everybody else
//! of no higher priority must fit on that node with it and without it (kube-scheduler's two passes).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::search::{Ask, Fit, Search};
use super::trial::{Opening, Trial};
use crate::check::Failing;
use crate::check::around::{Around, Grids};
use crate::check::claims::Resolved;
use crate::decision::Proof;
use crate::state::Charged;

impl Trial<'_> {
    /// What is asked of each node for an opening, as things are now.
    pub(super) fn ask(&mut self, group: u32, opening: &Opening, resolved: Resolved) -> Ask {
        let request = self.state.groups.at(group).requests[usize::from(opening.role)];
        let mut ask = Ask::new(request, self.state.request(request).clone(), resolved);
        let grids = self.grids(&ask);
        let around = Around::of(self.state, &ask.request, &grids);
        ask.around = around.map(Arc::new);
        let others = self.others(group, opening);
        if !others.is_empty() {
            let promised = self.first_pass(&ask, &others);
            // Promises that refuse nothing mean nothing.
            if !promised.is_empty() {
                let mut around = ask.around.as_deref().cloned().unwrap_or_default();
                around.promised = promised;
                ask.around = Some(Arc::new(around));
            }
        }
        ask
    }

    /// The domains of the request, where it is spread.
    fn grids(&mut self, ask: &Ask) -> Grids {
        if !Grids::are_asked(&ask.request) {
            return Grids::default();
        }
        let hardware = self.state.clock.hardware;
        let Some(caches) = self.caches.as_deref_mut() else {
            return Grids::new(self.state, &ask.request);
        };
        if let Some((version, grids)) = caches.grids.get(&ask.request)
            && *version == hardware
        {
            return grids.clone();
        }
        let grids = Grids::new(self.state, &ask.request);
        caches.grids.retain(|_, (version, _)| *version == hardware);
        caches.grids.insert(ask.request.clone(), (hardware, grids.clone()));
        grids
    }

    /// Of the nodes that are promised to others, those that refuse the pod once these are there.
    fn first_pass(
        &mut self,
        ask: &Ask,
        others: &BTreeMap<u32, Vec<u32>>,
    ) -> BTreeMap<u32, Failing> {
        let mut refusing = BTreeMap::new();
        for (node, requests) in others {
            let failing = self.among(ask, *node, requests, |search, state, ask, node| {
                search.node(state, ask, node).err()
            });
            if let Some(failing) = failing {
                refusing.insert(*node, failing);
            }
        }
        refusing
    }

    /// Every check that fails on a node once the pods are there that it is promised to; none where
    /// it is promised to nobody or refuses nothing then.
    pub(super) fn with_promised(
        &mut self,
        ask: &Ask,
        group: u32,
        opening: &Opening,
        node: u32,
    ) -> Option<Vec<Failing>> {
        ask.around.as_ref()?.promised.get(&node)?;
        let requests = self.others(group, opening).remove(&node)?;
        let failing = self.among(ask, node, &requests, |search, state, ask, node| {
            search.all_checks(state, ask, node)
        });
        Some(failing)
    }

    /// By node, the requests of the pods that it is promised to and that count for this one.
    fn others(&self, group: u32, opening: &Opening) -> BTreeMap<u32, Vec<u32>> {
        let priority = self.state.groups.at(group).fact.as_ref().map_or(0, |fact| fact.priority);
        self.state.promised(priority, opening.pod.as_ref())
    }

    /// Asks of a node with pods of these requests on it.
    fn among<T>(
        &mut self,
        ask: &Ask,
        node: u32,
        requests: &[u32],
        look: impl FnOnce(&mut Search<'_>, &mut crate::state::State, &Ask, u32) -> T,
    ) -> T {
        let grids = self.grids(ask);
        let charged = |request: &u32| Charged { node, request: *request, staying: true };
        for request in requests {
            self.state.charge(charged(request), 1);
        }
        let around =
            ask.around.as_ref().map(|a| Arc::new(a.again(self.state, &ask.request, &grids)));
        let with = Ask { around, ..ask.clone() };
        let answer = self.searched(|search, state| look(search, state, &with, node));
        for request in requests {
            self.state.charge(charged(request), -1);
        }
        answer
    }

    /// The seat on the node that is promised to the pod, if it fits there: no other is looked at.
    pub(super) fn promised_seat(&mut self, ask: &Ask, opening: &Opening) -> Option<(u32, Fit)> {
        let node = self.state.promised_to(opening.pod.as_ref()?)?;
        let fit = self.searched(|search, state| search.node(state, ask, node)).ok()?;
        Some((node, Fit { proof: Proof::FirstFit, ..fit }))
    }
}
