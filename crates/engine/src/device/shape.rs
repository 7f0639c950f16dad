//! What a node sees of devices, apart from who holds them: pools gathered. Laying links over them is
//! left to [`overlay`](super::overlay).
//!
//! A shape names no node, pool or device, so that nodes of one build share it: attribute values and
//! link domains are numbered in order of their first appearance, which keeps what constraints can
//! tell (equal or not) and drops the rest. Where each device lives is handed back beside it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::check::fact::term_matches;
use crate::facts::{
    Access, AttributeValue, CounterUse, Effect, Granting, Level, Link, Links, Pool, Reach, Slice,
    Traits, UNNAMED_DOMAIN,
};
use crate::name::{Name, NodeKey, PoolKey, Shared};

use super::overlay::overlay;
use super::stock::Stock;

/// The devices that a node sees. Its hash is taken once.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    hash: u64,
    /// The devices in upstream's order: pools by driver and name, those with binding conditions
    /// last; slices by name; devices as the slice has them.
    pub(crate) devices: Vec<ShapeDevice>,
    /// Pools that can't be allocated from.
    pub(crate) faults: Vec<PoolFault>,
    /// How many pools there are.
    pub(crate) pools: usize,
    /// Links between devices, row by row; empty where nothing is known.
    pub(crate) pairs: Vec<Link>,
    /// Counters of the pools' counter sets.
    pub(crate) counters: Vec<ShapeCounter>,
    /// For each device and level, whether its driver has part in that level.
    joins: Vec<[bool; 5]>,
    /// Sizes, and who draws on the same counters.
    pub(super) stock: Stock,
    /// For each device the counters that it takes from, and how much.
    takes: Vec<Box<[(usize, i128)]>>,
}

/// A device of a shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShapeDevice {
    /// The driver.
    pub(crate) driver: Name,
    /// Ordinal of its pool.
    pub(crate) pool: u16,
    /// The rest of it; attribute values are numbers of first appearance.
    pub(crate) traits: Shared<Traits>,
    /// Its place among the shape's devices by driver, pool and name.
    pub(crate) rank: u16,
    /// Its domain at each level of [`Level::ALL`], where links or attributes tell; numbers of
    /// narrower domains that stand for one are marked.
    pub(crate) domains: [Option<u16>; 5],
    /// Whether it is a network card (NIC).
    pub(crate) nic: bool,
    /// Whether links call it an accelerator (or a NIC); none where they don't know it.
    pub(crate) accelerator: Option<bool>,
    /// Whether an allocation of it can be used from this node only.
    pub(crate) node_local: bool,
    /// What must be there before it is given out on this node: a feature of the node, or a gate.
    pub(crate) barred: Option<Name>,
}

/// A counter of a counter set of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShapeCounter {
    /// Ordinal of the pool.
    pub(crate) pool: u16,
    /// The set.
    pub(crate) set: Name,
    /// The counter.
    pub(crate) name: Name,
    /// All there is, in billionths of a unit.
    pub(crate) total: i128,
    /// Whether compatibility groups say which devices may consume from the set together.
    pub(crate) grouped: bool,
}

impl ShapeCounter {
    /// What a device of its pool takes from it.
    pub(crate) fn used_by(&self, uses: &[CounterUse]) -> i128 {
        let of_set = uses.iter().filter(|u| u.name == self.set).flat_map(|u| &u.counters);
        of_set
            .filter(|(name, _)| *name == self.name)
            .fold(0, |sum, (_, amount)| sum.saturating_add(*amount))
    }
}

/// A pool that can't be allocated from on this node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PoolFault {
    /// Ordinal of the pool.
    pub(crate) pool: u16,
    /// What is wrong.
    pub(crate) trouble: PoolTrouble,
}

/// What is wrong with a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PoolTrouble {
    /// Slices of its generation are missing: it is being republished.
    Incomplete,
    /// It contradicts itself over this name: a device or a counter set that is there twice, or one
    /// that a device counts on and that is not there.
    Invalid(Name),
}

/// What a node sees, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The devices, without names.
    pub(crate) shape: Arc<Shape>,
    /// For each device its pool, as an index into the pools given, and its name.
    pub(crate) places: Vec<(u32, Name)>,
    /// How the node sees each pool of the shape.
    pub(crate) pools: Vec<Sight>,
}

/// Which slices of a pool count for a node.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    /// Index into the pools given.
    pub(crate) input: u32,
    /// The generation that counts.
    pub(crate) generation: i64,
    /// The places of the slices that the node sees, where these are complete by themselves and there
    /// are others of their generation: then the others are nothing to it.
    alone: Option<Box<[u32]>>,
}

impl Sight {
    /// The slices that count: what they say of devices and counters must fit together, and what is
    /// held of their devices takes from their counters.
    pub(crate) fn current<'a>(&'a self, pool: &'a Pool) -> impl Iterator<Item = &'a Slice> {
        let counts = |at: u32, slice: &Slice| match &self.alone {
            Some(own) => own.binary_search(&at).is_ok(),
            None => slice.generation == self.generation && !slice.opaque,
        };
        let slices = (0..=u32::MAX).zip(&pool.slices);
        slices.filter(move |(at, slice)| counts(*at, slice)).map(|(_, slice)| slice)
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && self.pools == other.pools
            && self.faults == other.faults
            && self.counters == other.counters
            && self.pairs == other.pairs
            && self.devices == other.devices
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Shape {
    /// A shape of these parts.
    pub(crate) fn new(
        devices: Vec<ShapeDevice>,
        faults: Vec<PoolFault>,
        pools: usize,
        pairs: Vec<Link>,
        counters: Vec<ShapeCounter>,
    ) -> Self {
        let mut hasher = rustc_hash::FxHasher::default();
        (&devices, &faults, pools, &pairs, &counters).hash(&mut hasher);
        let mut drivers: Vec<(&Name, [bool; 5])> = Vec::new();
        for device in &devices {
            let own = Level::ALL.map(|level| device.takes_part(level));
            match drivers.iter_mut().find(|(driver, _)| **driver == device.driver) {
                Some((_, all)) => all.iter_mut().zip(own).for_each(|(a, o)| *a |= o),
                None => drivers.push((&device.driver, own)),
            }
        }
        let join = |device: &ShapeDevice| {
            drivers.iter().find(|(driver, _)| **driver == device.driver).map(|(_, all)| *all)
        };
        let joins = devices.iter().map(|d| join(d).unwrap_or_default()).collect();
        let stock = Stock::new(&devices, &counters);
        let takes = devices.iter().map(|d| d.takes(&counters)).collect();
        Self { hash: hasher.finish(), devices, faults, pools, pairs, counters, joins, stock, takes }
    }

    /// Whether slices of a pool are missing, so that nobody can say what it will hold.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.faults.iter().any(|fault| fault.trouble == PoolTrouble::Incomplete)
    }

    /// Whether no device has a taint.
    pub(crate) fn is_healthy(&self) -> bool {
        self.devices.iter().all(|device| device.traits.taints.is_empty())
    }

    /// The shape with every device in health: without taints.
    pub(crate) fn healed(&self) -> Self {
        let mut devices = self.devices.clone();
        for device in devices.iter_mut().filter(|d| !d.traits.taints.is_empty()) {
            device.traits =
                Shared::new(Traits { taints: Box::default(), ..(*device.traits).clone() });
        }
        let Self { faults, pools, pairs, counters, .. } = self.clone();
        Self::new(devices, faults, pools, pairs, counters)
    }

    /// Whether links tell nothing of accelerators here: then whatever joins several devices is
    /// unknown, and no better than any link that is known.
    pub(crate) fn is_silent(&self) -> bool {
        !(0..self.devices.len()).any(|at| self.is_accelerator(at))
    }

    /// The link between two devices.
    pub(crate) fn link(&self, a: usize, b: usize) -> Link {
        self.pairs.get(a * self.devices.len() + b).copied().unwrap_or(Link::UNKNOWN)
    }

    /// Whether the driver of device `at` has part in `level`: links name a device of it (for islands
    /// as an accelerator), or an attribute that stands in for the level does.
    pub(crate) fn joins(&self, at: usize, level: Level) -> bool {
        self.joins[at][level as usize]
    }

    /// Whether device `at` counts as an accelerator: links say so, or they name accelerators of its
    /// driver and don't know it.
    pub(crate) fn is_accelerator(&self, at: usize) -> bool {
        self.devices[at].accelerator.unwrap_or_else(|| self.joins(at, Level::Island))
    }

    /// Whether device `at` must be near others at `level`: only accelerators have islands.
    pub(crate) fn must_align(&self, at: usize, level: Level) -> bool {
        self.joins(at, level) && (level != Level::Island || self.is_accelerator(at))
    }

    /// The domain of device `at` at `level`.
    pub(crate) fn domain(&self, at: usize, level: Level) -> Option<u16> {
        self.devices[at].domains[level as usize]
    }

    /// The NUMA node of device `at`, where it is known and not only stood for by what is on it.
    pub(crate) fn numa(&self, at: usize) -> Option<u16> {
        self.domain(at, Level::Numa).filter(|number| *number < UNNAMED_DOMAIN)
    }

    /// Whether device `at` is a network card of which something tells where it sits.
    pub(crate) fn is_nic(&self, at: usize) -> bool {
        self.devices[at].nic
            && [Level::Switch, Level::Root, Level::Numa].iter().any(|l| self.joins(at, *l))
    }

    /// Whether network cards serve device `at`: an accelerator, or what links call nothing else and
    /// of which something tells where it sits.
    pub(crate) fn is_served(&self, at: usize) -> bool {
        let device = &self.devices[at];
        let located = || [Level::Root, Level::Numa].iter().any(|l| self.joins(at, *l));
        !device.nic && device.accelerator != Some(false) && (self.is_accelerator(at) || located())
    }

    /// The counters that device `at` takes from, and how much.
    pub(crate) fn takes(&self, at: usize) -> &[(usize, i128)] {
        &self.takes[at]
    }

    /// What is lacking for device `at` to be given out here: a gate, or a feature of the node.
    pub(crate) fn kept_back(&self, at: usize) -> Option<&Name> {
        self.devices[at].traits.hidden().or(self.devices[at].barred.as_ref())
    }

    /// The place among the counters that stands for a counter set, where its compatibility groups are
    /// to be kept.
    pub(crate) fn grouped(&self, pool: u16, set: &Name) -> Option<usize> {
        let first = self.counters.iter().position(|c| c.pool == pool && c.set == *set)?;
        self.counters[first].grouped.then_some(first)
    }

    /// What is wrong with the pool of device `at`, if anything.
    pub(crate) fn trouble(&self, at: usize) -> Option<&PoolTrouble> {
        let pool = self.devices[at].pool;
        self.faults.iter().find(|f| f.pool == pool).map(|f| &f.trouble)
    }
}

impl ShapeDevice {
    fn takes(&self, counters: &[ShapeCounter]) -> Box<[(usize, i128)]> {
        let uses = &self.traits.counters;
        if uses.is_empty() {
            return Box::default();
        }
        let of_pool = counters.iter().enumerate().filter(|(_, c)| c.pool == self.pool);
        of_pool.map(|(at, c)| (at, c.used_by(uses))).filter(|(_, used)| *used != 0).collect()
    }

    fn takes_part(&self, level: Level) -> bool {
        match level {
            Level::Island => self.accelerator == Some(true),
            Level::Switch | Level::Rail => self.accelerator.is_some(),
            Level::Root | Level::Numa => {
                self.accelerator.is_some() || self.domains[level as usize].is_some()
            }
        }
    }
}

impl Traits {
    /// Whether a pod that has it may have to wait for it or leave it: it has binding conditions, or
    /// a NoExecute taint.
    pub(crate) fn is_late(&self) -> bool {
        let conditions = |b: &crate::facts::Binding| !b.conditions.is_empty();
        self.binding.as_deref().is_some_and(conditions)
            || self.taints.iter().any(|taint| taint.effect == Effect::NoExecute)
    }

    /// The gate for want of which it is never given out.
    pub(super) fn barred(&self) -> Option<&Name> {
        match &self.access {
            Access::Barred(gate) => Some(gate),
            Access::Open | Access::Hidden(_) => None,
        }
    }

    /// The gate for want of which no request selects it.
    pub(crate) fn hidden(&self) -> Option<&Name> {
        match &self.access {
            Access::Hidden(gate) => Some(gate),
            Access::Open | Access::Barred(_) => None,
        }
    }

    /// Its compatibility groups for a counter set; none is a group by itself.
    pub(crate) fn groups(&self, set: &Name) -> &[Name] {
        self.groups.iter().find(|(name, _)| name == set).map_or(&[], |(_, groups)| groups)
    }

    /// The attribute of that fully qualified name.
    pub(crate) fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        let at = self.attributes.binary_search_by(|(n, _)| n.as_str().cmp(name)).ok()?;
        Some(&self.attributes[at].1)
    }
}

impl AttributeValue {
    /// Whether it is one value, which upstream can compare (without `DRAListTypeAttributes`).
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Int(_) | Self::Bool(_) | Self::String(_) | Self::Version(_) => true,
            Self::List(_) | Self::Unset => false,
        }
    }
}

/// Gathers what a node sees of `pools` (sorted by key): relevance of each slice and device,
/// generation, completeness and validity as kube-scheduler's GatherPools has them; then lays
/// `links` over it.
pub(crate) fn gather(here: Here<'_>, pools: &[(&PoolKey, &Pool)], links: Option<&Links>) -> View {
    let mut kept: Vec<Kept<'_>> = Vec::new();
    for (input, (key, pool)) in pools.iter().enumerate() {
        kept.extend(here.keep(u32::try_from(input).unwrap_or(u32::MAX), key, pool));
    }
    kept.sort_by_key(|k| k.binding);
    let mut found = Vec::new();
    let (mut faults, mut counters) = (Vec::new(), Vec::new());
    for (ordinal, of) in (0..=u16::MAX).zip(&kept) {
        if let Some(trouble) = &of.trouble {
            faults.push(PoolFault { pool: ordinal, trouble: trouble.clone() });
        }
        counters.extend(of.counters(ordinal));
        for slice in &of.slices {
            let per_device = slice.reach == Reach::PerDevice;
            let barred = here.bars(&slice.granting);
            for device in &slice.devices {
                let own = device.traits.reach.as_ref();
                if per_device && !own.is_some_and(|reach| here.reaches(reach)) {
                    continue;
                }
                let one_node = |reach: &Reach| matches!(reach, Reach::Node(_));
                let local = one_node(&slice.reach)
                    || per_device && own.is_some_and(one_node)
                    || device.traits.binds_to_node;
                found.push(Found {
                    ordinal,
                    of,
                    device: &device.name,
                    traits: &device.traits,
                    local,
                    barred,
                });
            }
        }
    }
    let places = found.iter().map(|f| (f.of.sight.input, f.device.clone())).collect();
    let (devices, pairs) = overlay(&found, links);
    let shape = Arc::new(Shape::new(devices, faults, kept.len(), pairs, counters));
    View { shape, places, pools: kept.into_iter().map(|k| k.sight).collect() }
}

/// A pool as far as a node sees it.
pub(super) struct Kept<'a> {
    sight: Sight,
    pub(super) key: &'a PoolKey,
    pool: &'a Pool,
    /// Those that the node sees, of the generation that counts.
    slices: Vec<&'a Slice>,
    binding: bool,
    trouble: Option<PoolTrouble>,
}

/// A device on its way into a shape.
pub(super) struct Found<'a> {
    pub(super) ordinal: u16,
    pub(super) of: &'a Kept<'a>,
    pub(super) device: &'a Name,
    pub(super) traits: &'a Shared<Traits>,
    pub(super) local: bool,
    pub(super) barred: Option<&'a Name>,
}

/// The node that looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here<'a> {
    /// Its name.
    pub(crate) node: &'a NodeKey,
    /// Its labels.
    pub(crate) labels: &'a [(Name, Name)],
    /// The features that it declares, sorted.
    pub(crate) features: &'a [Name],
}

impl Here<'_> {
    /// What is lacking here for the devices of a slice to be given out.
    fn bars<'a>(&self, granting: &'a Granting) -> Option<&'a Name> {
        match granting {
            Granting::Always => None,
            Granting::IfDeclared(feature) if self.features.contains(feature) => None,
            Granting::IfDeclared(name) | Granting::Never(name) => Some(name),
        }
    }

    /// What the node sees of a pool; none where nothing, or where it only sees an old generation
    /// that is not whole by itself.
    fn keep<'a>(&self, input: u32, key: &'a PoolKey, pool: &'a Pool) -> Option<Kept<'a>> {
        let mut own: Vec<(u32, &Slice)> =
            (0..=u32::MAX).zip(&pool.slices).filter(|(_, s)| !s.opaque && self.sees(s)).collect();
        let generation = own.iter().map(|(_, s)| s.generation).max()?;
        own.retain(|(_, s)| s.generation == generation);
        let slices: Vec<&Slice> = own.iter().map(|(_, s)| *s).collect();
        // Upstream takes the count from the first in its input: slices of this node come first.
        let first = slices.iter().find(|s| matches!(s.reach, Reach::Node(_)));
        let wanted = first.or(slices.first())?.slice_count;
        let of_generation = |s: &&Slice| s.generation == generation && !s.opaque;
        let all = pool.slices.iter().filter(of_generation).count();
        let (mut alone, mut trouble) = (None, None);
        if is(slices.len(), wanted) {
            let places = || own.iter().map(|(at, _)| *at).collect();
            alone = (all > slices.len()).then(places);
        } else if pool.slices.iter().any(|s| s.generation > generation) {
            return None;
        } else if !is(all, wanted) {
            trouble = Some(PoolTrouble::Incomplete);
        }
        let sight = Sight { input, generation, alone };
        let mut kept = Kept { sight, key, pool, slices, binding: false, trouble };
        if kept.trouble.is_none() {
            kept.trouble = kept.contradiction().map(PoolTrouble::Invalid);
        }
        // Upstream puts a pool that it can't use where its name is, whatever its devices await.
        kept.binding = kept.trouble.is_none() && kept.binds();
        Some(kept)
    }

    fn sees(&self, slice: &Slice) -> bool {
        match &slice.reach {
            Reach::PerDevice => slice
                .devices
                .iter()
                .any(|d| d.traits.reach.as_ref().is_some_and(|reach| self.reaches(reach))),
            Reach::Node(_) | Reach::All | Reach::Selector(_) | Reach::Unknown => {
                self.reaches(&slice.reach)
            }
        }
    }

    fn reaches(&self, reach: &Reach) -> bool {
        reach.includes(self.node, self.labels)
    }
}

impl Reach {
    /// Whether a node with these labels is among those that it names itself.
    #[must_use]
    pub fn includes(&self, node: &NodeKey, labels: &[(Name, Name)]) -> bool {
        match self {
            Self::Node(one) => one == node,
            Self::All => true,
            Self::Selector(term) => term_matches(term, node, labels),
            Self::PerDevice | Self::Unknown => false,
        }
    }
}

fn is(count: usize, wanted: i64) -> bool {
    i64::try_from(count) == Ok(wanted)
}

impl Kept<'_> {
    fn current(&self) -> impl Iterator<Item = &Slice> {
        self.sight.current(self.pool)
    }

    /// Whether a device that the node may see has binding conditions.
    fn binds(&self) -> bool {
        let conditions = |b: &crate::facts::Binding| !b.conditions.is_empty();
        let devices = self.slices.iter().flat_map(|s| &s.devices);
        devices.into_iter().any(|d| d.traits.binding.as_deref().is_some_and(conditions))
    }

    /// Whether any device has compatibility groups for a counter set.
    fn groups(&self, set: &Name) -> bool {
        let devices = self.current().flat_map(|s| &s.devices);
        devices.into_iter().any(|d| d.traits.groups.iter().any(|(name, _)| name == set))
    }

    /// The name over which the pool contradicts itself.
    fn contradiction(&self) -> Option<Name> {
        let mut names: Vec<&Name> =
            self.slices.iter().flat_map(|s| &s.devices).map(|d| &d.name).collect();
        names.sort_unstable();
        let twice = |names: &[&Name]| names.windows(2).find(|w| w[0] == w[1]).map(|w| w[0].clone());
        if let Some(name) = twice(&names) {
            return Some(name);
        }
        let mut sets: Vec<&Name> =
            self.current().flat_map(|s| &s.counters).map(|c| &c.name).collect();
        sets.sort_unstable();
        if let Some(name) = twice(&sets) {
            return Some(name);
        }
        let uses = self.current().flat_map(|s| &s.devices).flat_map(|d| &d.traits.counters);
        for used in uses {
            let Some(set) =
                self.current().flat_map(|s| &s.counters).find(|set| set.name == used.name)
            else {
                return Some(used.name.clone());
            };
            let known = |name: &Name| set.counters.iter().any(|(n, _)| n == name);
            if let Some((name, _)) = used.counters.iter().find(|(name, _)| !known(name)) {
                return Some(name.clone());
            }
        }
        None
    }

    fn counters(&self, ordinal: u16) -> Vec<ShapeCounter> {
        let mut all = Vec::new();
        for set in self.current().flat_map(|s| &s.counters) {
            let grouped = self.groups(&set.name);
            for (name, total) in &set.counters {
                let (set, name) = (set.name.clone(), name.clone());
                all.push(ShapeCounter { pool: ordinal, set, name, total: *total, grouped });
            }
        }
        all
    }
}

/// Index of a value among those known, where it is put if it is new.
pub(super) fn first_seen<T: PartialEq>(known: &mut Vec<T>, value: T) -> usize {
    known.iter().position(|k| *k == value).unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    })
}

/// Each device's place by driver, pool and name. Those that may not be there for long or must be
/// made ready first come after all others, so that of equal sets the one that can run is taken.
pub(super) fn ranks(found: &[Found<'_>]) -> Vec<u16> {
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|&a, &b| {
        let key = |at: usize| (found[at].traits.is_late(), found[at].of.key, found[at].device, at);
        key(a).cmp(&key(b))
    });
    let mut ranks = vec![u16::MAX; found.len()];
    for (rank, at) in (0..=u16::MAX).zip(order) {
        ranks[at] = rank;
    }
    ranks
}

/// Numbers for the values of attributes, attribute by attribute.
#[derive(Default)]
struct Numbers<'a> {
    of: FxHashMap<(&'a Name, &'a AttributeValue), i64>,
    counts: FxHashMap<&'a Name, i64>,
}

impl<'a> Numbers<'a> {
    /// The value with each scalar in it replaced by its number.
    fn of(&mut self, name: &'a Name, value: &'a AttributeValue) -> AttributeValue {
        match value {
            AttributeValue::Unset => AttributeValue::Unset,
            AttributeValue::List(all) => {
                AttributeValue::List(all.iter().map(|one| self.of(name, one)).collect())
            }
            AttributeValue::Int(_)
            | AttributeValue::Bool(_)
            | AttributeValue::String(_)
            | AttributeValue::Version(_) => {
                let next = self.counts.entry(name).or_default();
                let seen = *self.of.entry((name, value)).or_insert_with(|| {
                    *next += 1;
                    *next - 1
                });
                AttributeValue::Int(seen)
            }
        }
    }
}

/// Traits with each scalar attribute value, also in lists, replaced by the number of its first
/// appearance.
pub(super) fn canonical(found: &[Found<'_>]) -> Vec<Shared<Traits>> {
    let mut numbers = Numbers::default();
    let mut out: Vec<Shared<Traits>> = Vec::with_capacity(found.len());
    for (at, f) in found.iter().enumerate() {
        let mut traits = f.traits.clone();
        if at > 0 && found[at - 1].traits.same(f.traits) {
            traits = out[at - 1].clone();
        } else if !f.traits.attributes.is_empty() {
            let mut attributes = Vec::with_capacity(f.traits.attributes.len());
            for (name, value) in &f.traits.attributes {
                attributes.push((name.clone(), numbers.of(name, value)));
            }
            if *attributes != *f.traits.attributes {
                let own: &Traits = f.traits;
                traits = Shared::new(Traits { attributes: attributes.into(), ..own.clone() });
            }
        }
        out.push(traits);
    }
    out
}
