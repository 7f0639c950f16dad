//! The ledger of a node: what its pods asked for, never what they use (kube-scheduler's
//! NodeInfo: integer sums of each pod's rounded requests).

use std::collections::{BTreeMap, BTreeSet};

use crate::decision::{Act, Decision};
use crate::facts::{Request, Resources};
use crate::name::{Name, NodeKey};

/// What a request takes from a ledger, with scalars by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) cpu_milli: i64,
    pub(crate) memory_bytes: i64,
    pub(crate) ephemeral_bytes: i64,
    pub(crate) pods: i64,
    pub(crate) scalars: Box<[(u16, i64)]>,
    /// CPU and memory as kube-scheduler scores them.
    pub(crate) padded: (i64, i64),
    /// Of these, the extended resources that devices serve where the node has none allocatable.
    pub(crate) served: Box<[u16]>,
}

/// Sums over the pods of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) cpu_milli: i64,
    pub(crate) memory_bytes: i64,
    pub(crate) ephemeral_bytes: i64,
    pub(crate) pods: i64,
    /// CPU and memory as kube-scheduler scores them.
    pub(crate) padded: (i64, i64),
    /// Allocatable and used of each scalar that the node offers or a pod on it asked for, by index.
    pub(crate) scalars: Vec<Scalar>,
}

/// One scalar resource of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) id: u16,
    pub(crate) allocatable: i64,
    pub(crate) used: i64,
}

impl Ledger {
    /// Adds (`sign` 1) or takes back (`sign` -1) a charge. Wraps rather than fails: absurd sums
    /// are reality's, and adding and taking back must cancel exactly.
    pub(crate) fn add(&mut self, charge: &Charge, sign: i64) {
        let Charge { cpu_milli, memory_bytes, ephemeral_bytes, pods, scalars, padded, served: _ } =
            charge;
        let step = |sum: &mut i64, amount: i64| {
            *sum = sum.wrapping_add(amount.wrapping_mul(sign));
        };
        step(&mut self.cpu_milli, *cpu_milli);
        step(&mut self.memory_bytes, *memory_bytes);
        step(&mut self.ephemeral_bytes, *ephemeral_bytes);
        step(&mut self.pods, *pods);
        step(&mut self.padded.0, padded.0);
        step(&mut self.padded.1, padded.1);
        for (id, amount) in scalars {
            let at = self.scalar_or_new(*id);
            step(&mut self.scalars[at].used, *amount);
            self.drop_if_idle(at);
        }
    }

    /// The same with nobody on the node, and with so much more on offer.
    pub(crate) fn emptied(&self, more: impl Iterator<Item = (u16, i64)>) -> Self {
        let mut empty = Self { scalars: self.scalars.clone(), ..Self::default() };
        for scalar in &mut empty.scalars {
            scalar.used = 0;
        }
        for (id, amount) in more {
            let at = empty.scalar_or_new(id);
            let offered = &mut empty.scalars[at].allocatable;
            *offered = offered.saturating_add(amount);
        }
        empty
    }

    /// Sets what the node offers.
    pub(crate) fn offer(&mut self, scalars: &[(u16, i64)]) {
        for scalar in &mut self.scalars {
            scalar.allocatable = 0;
        }
        for (id, amount) in scalars {
            let at = self.scalar_or_new(*id);
            self.scalars[at].allocatable = *amount;
        }
        self.scalars.retain(|s| s.allocatable != 0 || s.used != 0);
    }

    /// Allocatable and used of a scalar; absent is none of it.
    pub(crate) fn scalar(&self, id: u16) -> (i64, i64) {
        match self.scalars.binary_search_by_key(&id, |s| s.id) {
            Ok(at) => (self.scalars[at].allocatable, self.scalars[at].used),
            Err(_) => (0, 0),
        }
    }

    fn scalar_or_new(&mut self, id: u16) -> usize {
        match self.scalars.binary_search_by_key(&id, |s| s.id) {
            Ok(at) => at,
            Err(at) => {
                self.scalars.insert(at, Scalar { id, allocatable: 0, used: 0 });
                at
            }
        }
    }

    fn drop_if_idle(&mut self, at: usize) {
        if self.scalars[at].allocatable == 0 && self.scalars[at].used == 0 {
            self.scalars.remove(at);
        }
    }
}

impl super::State {
    /// The index of a scalar's name.
    pub(crate) fn scalar_id(&mut self, name: &Name) -> u16 {
        if let Some(id) = self.scalar_index.get(name) {
            return *id;
        }
        // 65,535 different resource names in one cluster: beyond it they are counted as one.
        let id = u16::try_from(self.scalars.len()).unwrap_or(u16::MAX);
        if id < u16::MAX {
            self.scalars.push(name.clone());
            self.scarce.push(is_extended(name));
            self.scalar_index.insert(name.clone(), id);
        }
        id
    }

    pub(crate) fn scalar_ids(&mut self, resources: &Resources) -> Box<[(u16, i64)]> {
        let mut ids: Vec<_> = resources
            .scalars
            .iter()
            .map(|(name, amount)| (self.scalar_id(name), *amount))
            .collect();
        ids.sort_unstable_by_key(|(id, _)| *id);
        ids.into()
    }

    pub(crate) fn charge_of(&mut self, request: &Request) -> Charge {
        let resources = &request.resources;
        Charge {
            served: request.extended.iter().map(|e| self.scalar_id(&e.resource)).collect(),
            cpu_milli: resources.cpu_milli,
            memory_bytes: resources.memory_bytes,
            ephemeral_bytes: resources.ephemeral_bytes,
            pods: resources.pods,
            padded: request.padded.held,
            scalars: self.scalar_ids(resources),
        }
    }
}

/// What is left of a scalar resource on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarLeft {
    /// The node.
    pub node: NodeKey,
    /// The resource.
    pub resource: Name,
    /// What the node has of it.
    pub allocatable: i64,
    /// What is free of it, possibly negative.
    pub free: i64,
}

impl super::State {
    /// What is left of the scalar resources that nodes have once a decision's seats are taken, by
    /// node.
    pub fn scalars_left(&self, decision: &Decision) -> Vec<ScalarLeft> {
        let mut taken: BTreeMap<(&NodeKey, u16), i64> = BTreeMap::new();
        for act in &decision.acts {
            let Act::Place(group, seats, _) = act else { continue };
            let Some(group) = self.groups.find(group) else { continue };
            for seat in seats {
                let Some(request) = group.requests.get(usize::from(seat.role)) else { continue };
                for (id, asked) in &self.requests.at(*request).charge.scalars {
                    let taken = taken.entry((&seat.node, *id)).or_default();
                    *taken = taken.saturating_add(*asked);
                }
            }
        }
        let mut left = Vec::new();
        for (_, key, node) in self.nodes.iter().filter(|(_, _, node)| node.fact.is_some()) {
            for scalar in node.ledger.scalars.iter().filter(|scalar| scalar.allocatable > 0) {
                let taken = taken.get(&(key, scalar.id)).copied().unwrap_or_default();
                let free = scalar.allocatable.saturating_sub(scalar.used).saturating_sub(taken);
                let Some(resource) = self.scalars.get(usize::from(scalar.id)).cloned() else {
                    continue;
                };
                let (node, allocatable) = (key.clone(), scalar.allocatable);
                left.push(ScalarLeft { node, resource, allocatable, free });
            }
        }
        left.sort_by(|a, b| (&a.node, &a.resource).cmp(&(&b.node, &b.resource)));
        left
    }

    /// Nodes on which no pod has room, whatever little it asks for: no place for one, or no CPU or
    /// no memory that is not asked for.
    pub fn full_nodes(&self) -> BTreeSet<NodeKey> {
        let full = self.nodes.iter().filter(|(_, _, node)| {
            node.fact.as_ref().is_some_and(|fact| {
                let has = &fact.allocatable;
                node.ledger.pods >= has.pods
                    || node.ledger.cpu_milli >= has.cpu_milli && has.cpu_milli > 0
                    || node.ledger.memory_bytes >= has.memory_bytes && has.memory_bytes > 0
            })
        });
        full.map(|(_, key, _)| key.clone()).collect()
    }
}

/// Whether a resource is extended (kube-scheduler's IsExtendedResourceName, near enough for an
/// order: a domain that isn't Kubernetes' own).
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}
