//! Which devices of a node, and which nodes, are the same to all that a group asks: of such one is tried
//! for all.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::search::{Ask, Fit};
use super::super::trial::Trial;
use super::spans::Spans;
use crate::check::claims::reachable;
use crate::check::fact::{self, Health};
use crate::check::features;
use crate::device::{Shape, UsageKey};
use crate::facts::{Align, Node};
use crate::pods::HostPort;

/// What a node is to a group before any of it is seated there. Equal ones are interchangeable.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nature {
    /// Whether the node itself will do, class by class of the group.
    will_do: Vec<bool>,
    /// Its domains at the levels that are required.
    domains: Vec<u32>,
    /// What is free of what is asked for, no more than the whole group asks for.
    free: Vec<i64>,
    /// Extended resources of the group that it counts.
    counts: Vec<bool>,
    ports: Vec<(HostPort, u32)>,
    /// Number of its devices' shape; none where it has no devices.
    shape: Option<u32>,
    /// Pools that others see as well.
    wide: Vec<u32>,
    /// It is like no other.
    own: Option<u32>,
}

/// What is held of a node's devices, those that are alike taken for each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Holding {
    /// By kind, how many are held; and the others that are held.
    Kinds(Vec<u16>, u64),
    /// As it is.
    Whole(UsageKey),
    /// There are none.
    None,
}

/// What is known of nodes and devices that are alike.
pub(super) struct Alike {
    /// By node slot, the number of its nature.
    natures: Vec<u32>,
    /// By node slot, the number of its shape.
    shape_of: Vec<Option<u32>>,
    /// By shape, the kind of each device; none for those that are like no other.
    kinds: Vec<Vec<Option<u16>>>,
}

impl Alike {
    /// Of these nodes, for a group that asks these things, so many times each. `apart`: what pods mean
    /// to each other makes every node its own.
    pub(super) fn new(
        trial: &mut Trial<'_>,
        spans: &Spans<'_>,
        asks: &[(Ask, u32)],
        apart: bool,
    ) -> Self {
        let nodes = trial.ranks.slots().to_vec();
        let mut shapes: FxHashMap<std::sync::Arc<Shape>, u32> = FxHashMap::default();
        let aligned = asks.iter().any(|(ask, _)| is_aligned(ask));
        let slots = trial.state.nodes.slots() as usize;
        let (mut shape_of, mut kinds) = (vec![None; slots], Vec::new());
        for slot in &nodes {
            trial.searched(|search, state| search.look_at_devices(state, *slot));
            let Some(devices) = trial.state.nodes.at(*slot).devices.as_deref() else { continue };
            let next = shapes.len() as u32;
            let number = *shapes.entry(devices.shape().clone()).or_insert(next);
            if number == next {
                kinds.push(kinds_of(devices.shape(), aligned));
            }
            shape_of[*slot as usize] = Some(number);
        }
        let mut known: FxHashMap<Nature, u32> = FxHashMap::default();
        let mut natures = vec![u32::MAX; slots];
        for slot in nodes {
            let nature = nature(trial, spans, asks, slot, shape_of[slot as usize], apart);
            let next = known.len() as u32;
            natures[slot as usize] = *known.entry(nature).or_insert(next);
        }
        Self { natures, shape_of, kinds }
    }

    /// The number of a node's nature.
    pub(super) fn nature(&self, slot: u32) -> u32 {
        self.natures.get(slot as usize).copied().unwrap_or(u32::MAX)
    }

    /// What is held of a node's devices now.
    pub(super) fn holding(&self, trial: &mut Trial<'_>, slot: u32) -> Holding {
        trial.searched(|search, state| search.look_at_devices(state, slot));
        let devices = trial.state.nodes.at(slot).devices.as_deref();
        let usage = devices.and_then(|devices| devices.usage.as_ref());
        let (Some(usage), Some(kinds)) = (usage, self.kinds_on(slot)) else { return Holding::None };
        let key = UsageKey::of(usage);
        let UsageKey::Word(word) = key else { return Holding::Whole(key) };
        let (mut counts, mut others) = (Vec::new(), 0);
        for (at, kind) in kinds.iter().enumerate().filter(|(at, _)| word >> at & 1 == 1) {
            match kind {
                None => others |= 1 << at,
                Some(kind) => {
                    let kind = usize::from(*kind);
                    counts.resize(counts.len().max(kind + 1), 0);
                    counts[kind] += 1;
                }
            }
        }
        Holding::Kinds(counts, others)
    }

    /// Of fits on a node the first of those whose devices are alike.
    pub(super) fn thinned(&self, slot: u32, fits: Vec<Fit>) -> Vec<Fit> {
        let Some(kinds) = self.kinds_on(slot) else { return fits };
        let mut seen: FxHashSet<Vec<[u16; 4]>> = FxHashSet::default();
        let of = |fit: &Fit| -> Vec<[u16; 4]> {
            let picks = fit.offer.iter().flat_map(|offer| &offer.picks);
            let mut of: Vec<[u16; 4]> = picks
                .map(|pick| {
                    let kind = kinds.get(usize::from(pick.device)).copied().flatten();
                    let device = kind.unwrap_or(u16::MAX - pick.device);
                    [pick.claim, pick.request, pick.alternative, device]
                })
                .collect();
            of.sort_unstable();
            of
        };
        fits.into_iter().filter(|fit| seen.insert(of(fit))).collect()
    }

    fn kinds_on(&self, slot: u32) -> Option<&Vec<Option<u16>>> {
        let shape = (*self.shape_of.get(slot as usize)?)?;
        self.kinds.get(shape as usize)
    }
}

/// Whether nearness is required: then it tells where devices sit.
fn is_aligned(ask: &Ask) -> bool {
    let required = |wishes: &[Align]| wishes.iter().any(|wish| wish.required);
    let mut specs = ask.wanted.claims.iter().map(|(_, spec)| spec);
    required(&ask.wanted.align) || specs.any(|spec| required(&spec.align))
}

/// The kind of each device: those of one kind are the same to every request. A device that other nodes
/// see, or that can be shared, is like no other.
fn kinds_of(shape: &Shape, aligned: bool) -> Vec<Option<u16>> {
    let mut kinds = FxHashMap::default();
    let of = shape.devices.iter().map(|device| {
        if !device.node_local || device.traits.shareable {
            return None;
        }
        let sits = aligned.then_some((device.domains, device.nic, device.accelerator));
        let kind = (&device.driver, device.pool, &device.traits, &device.barred, sits);
        let next = kinds.len();
        u16::try_from(*kinds.entry(kind).or_insert(next)).ok()
    });
    of.collect()
}

fn nature(
    trial: &Trial<'_>,
    spans: &Spans<'_>,
    asks: &[(Ask, u32)],
    slot: u32,
    shape: Option<u32>,
    apart: bool,
) -> Nature {
    let (state, row) = (&*trial.state, trial.state.nodes.at(slot));
    let key = state.nodes.key(slot);
    let will_do = |ask: &Ask, node: &Node| {
        fact::first(&ask.request.node, key, node, Health::AsIs).is_ok()
            && reachable(&ask.pinned, key, &node.labels).is_ok()
            && features::declared(&ask.request.features, node).is_ok()
    };
    let node = row.fact.as_ref();
    let mut nature = Nature {
        will_do: asks.iter().map(|(ask, _)| node.is_some_and(|n| will_do(ask, n))).collect(),
        domains: spans.required_domains(slot),
        free: Vec::new(),
        counts: Vec::new(),
        ports: row.ports.clone(),
        shape,
        wide: Vec::new(),
        own: apart.then_some(slot),
    };
    if let Some(devices) = row.devices.as_deref() {
        let pools = devices.pools().iter().copied();
        nature.wide = pools.filter(|pool| state.wide_pools.contains(pool)).collect();
    }
    let Some(node) = node else { return nature };
    let (offered, used) = (&node.allocatable, &row.ledger);
    let mut asked = [0_i64; 4];
    let mut scalars: FxHashMap<u16, i64> = FxHashMap::default();
    let mut names: Vec<u16> = Vec::new();
    for (ask, count) in asks {
        let charge = &state.requests.at(ask.slot).charge;
        let times = |amount: i64| amount.saturating_mul(i64::from(*count));
        let amounts = [charge.pods, charge.cpu_milli, charge.memory_bytes, charge.ephemeral_bytes];
        for (sum, amount) in asked.iter_mut().zip(amounts) {
            *sum = sum.saturating_add(times(amount));
        }
        for (id, amount) in &charge.scalars {
            names.push(*id);
            let sum = scalars.entry(*id).or_default();
            *sum = sum.saturating_add(times(*amount));
        }
    }
    let free = [
        offered.pods.saturating_sub(used.pods),
        offered.cpu_milli.saturating_sub(used.cpu_milli),
        offered.memory_bytes.saturating_sub(used.memory_bytes),
        offered.ephemeral_bytes.saturating_sub(used.ephemeral_bytes),
    ];
    // What is not asked for is enough, however little there is.
    let lines = free.into_iter().zip(asked).filter(|(_, asked)| *asked > 0);
    nature.free = lines.map(|(free, asked)| free.min(asked)).collect();
    names.sort_unstable();
    names.dedup();
    for id in names {
        let (allocatable, used) = row.ledger.scalar(id);
        let asked = scalars.get(&id).copied().unwrap_or(0);
        nature.free.push(allocatable.saturating_sub(used).min(asked));
        nature.counts.push(allocatable > 0);
    }
    nature
}
