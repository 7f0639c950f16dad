//! What a node sees of devices (GatherPools, structured allocator), and who holds them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::world::World;
use crate::audit::rules;
use crate::*;

pub(super) struct Seen<'w> {
    /// In upstream's order.
    pub(super) devices: Vec<Dev<'w>>,
    pub(super) pools: Vec<PoolSeen>,
    links: Option<&'w Links>,
}

/// A device that the node sees.
pub(super) struct Dev<'w> {
    pub(super) key: DeviceKey,
    pub(super) traits: &'w Traits,
    /// Index into the pools seen.
    pub(super) pool: usize,
    /// Index into the links' members.
    member: Option<usize>,
    /// Not given out on this node.
    pub(super) barred: bool,
    /// Held whole.
    pub(super) taken: bool,
    /// Shares of it that are held.
    pub(super) shares: usize,
    /// What they consume.
    pub(super) consumed: BTreeMap<Name, i128>,
}

pub(super) struct PoolSeen {
    pub(super) trouble: Option<Reason>,
    /// Totals of each counter, and what is left.
    pub(super) totals: BTreeMap<(Name, Name), i128>,
    pub(super) left: BTreeMap<(Name, Name), i128>,
    /// The compatibility groups of the devices in use, by counter set.
    pub(super) members: BTreeMap<Name, Vec<Vec<Name>>>,
}

fn reaches(reach: &Reach, key: &NodeKey, node: &Node) -> bool {
    match reach {
        Reach::Node(name) => name == key,
        Reach::All => true,
        Reach::Selector(term) => rules::matches(term, key, node),
        Reach::PerDevice | Reach::Unknown => false,
    }
}

fn device_reaches(slice: &Slice, device: &Device, key: &NodeKey, node: &Node) -> bool {
    if slice.reach == Reach::PerDevice {
        return device.traits.reach.as_ref().is_some_and(|r| reaches(r, key, node));
    }
    reaches(&slice.reach, key, node)
}

fn relevant(slice: &Slice, key: &NodeKey, node: &Node) -> bool {
    if slice.reach == Reach::PerDevice {
        return slice.devices.iter().any(|d| device_reaches(slice, d, key, node));
    }
    reaches(&slice.reach, key, node)
}

impl<'w> Seen<'w> {
    pub(super) fn new(world: &'w World, key: &NodeKey, node: &Node, held: &[&HeldDevice]) -> Self {
        let links = world.links.get(key);
        let mut seen = Self { devices: Vec::new(), pools: Vec::new(), links };
        let conditional = |pool: &&(&PoolKey, &Pool)| {
            let here = pool.1.slices.iter().filter(|s| relevant(s, key, node));
            let newest = here.clone().map(|s| s.generation).max();
            here.filter(|s| Some(s.generation) == newest)
                .flat_map(|s| &s.devices)
                .any(|d| d.traits.binding.as_ref().is_some_and(|b| !b.conditions.is_empty()))
        };
        let sound = |pool: &&(&'w PoolKey, &'w Pool)| {
            let mut alone = Self { devices: Vec::new(), pools: Vec::new(), links };
            alone.pool(pool.0, pool.1, key, node, held);
            alone.pools.iter().all(|pool| pool.trouble.is_none())
        };
        let conditional = |pool: &&(&'w PoolKey, &'w Pool)| conditional(pool) && sound(pool);
        let pools: Vec<(&PoolKey, &Pool)> = world.pools.iter().collect();
        let first = pools.iter().filter(|p| !conditional(p));
        let last = pools.iter().filter(conditional);
        for (name, pool) in first.chain(last) {
            seen.pool(name, pool, key, node, held);
        }
        seen
    }

    fn pool(
        &mut self,
        name: &PoolKey,
        pool: &'w Pool,
        key: &NodeKey,
        node: &Node,
        held: &[&HeldDevice],
    ) {
        let here: Vec<&Slice> = pool.slices.iter().filter(|s| relevant(s, key, node)).collect();
        let Some(newest) = here.iter().map(|s| s.generation).max() else { return };
        let kept: Vec<&Slice> = here.into_iter().filter(|s| s.generation == newest).collect();
        let mut current: Vec<&Slice> =
            pool.slices.iter().filter(|s| s.generation == newest).collect();
        let own = kept.iter().find(|s| matches!(s.reach, Reach::Node(_)));
        let count = own.unwrap_or(&kept[0]).slice_count;
        let mut trouble = None;
        if kept.len() as i64 != count {
            if pool.slices.iter().any(|s| s.generation > newest) {
                return;
            }
            if current.len() as i64 != count {
                trouble = Some(Reason::PoolIncomplete);
            }
        } else {
            // Complete by itself: slices of other nodes are not looked at.
            current.clone_from(&kept);
        }
        if trouble.is_none() && contradicts(&kept, &current) {
            trouble = Some(Reason::PoolInvalid);
        }
        let of = |device: &Name| held_of(held, name, device).into_iter();
        let mut totals = BTreeMap::new();
        for set in current.iter().flat_map(|s| &s.counters) {
            for (counter, amount) in &set.counters {
                totals.insert((set.name.clone(), counter.clone()), *amount);
            }
        }
        let mut left = totals.clone();
        let mut consumers: BTreeMap<Name, Vec<Vec<Name>>> = BTreeMap::new();
        for device in current.iter().flat_map(|s| &s.devices) {
            if of(&device.name).next().is_some() {
                charge(&mut left, &device.traits.counters);
                for set in &device.traits.counters {
                    let groups = groups_of(&device.traits, &set.name);
                    consumers.entry(set.name.clone()).or_default().push(groups);
                }
            }
        }
        let members = self.links.map_or(&[][..], |l| &l.members);
        for slice in &kept {
            for device in slice.devices.iter().filter(|d| device_reaches(slice, d, key, node)) {
                let full = DeviceKey { pool: name.clone(), device: device.name.clone() };
                let member = members.iter().position(|m| m.device.as_ref() == Some(&full));
                let mut consumed = BTreeMap::new();
                for (capacity, amount) in of(&device.name).flat_map(|h| &h.consumed) {
                    *consumed.entry(capacity.clone()).or_insert(0) += amount;
                }
                self.devices.push(Dev {
                    key: full,
                    traits: &device.traits,
                    pool: self.pools.len(),
                    member,
                    barred: matches!(device.traits.access, Access::Barred(_))
                        || match &slice.granting {
                            Granting::Always => false,
                            Granting::IfDeclared(feature) => !node.features.contains(feature),
                            Granting::Never(_) => true,
                        },
                    // A device that is not shared any more is held whole by its old shares.
                    taken: of(&device.name).any(|h| !h.share || !device.traits.shareable),
                    shares: of(&device.name).filter(|h| h.share).count(),
                    consumed,
                });
            }
        }
        self.pools.push(PoolSeen { trouble, totals, left, members: consumers });
    }

    fn member(&self, at: usize) -> Option<&LinkMember> {
        self.devices[at].member.map(|m| &self.links.unwrap().members[m])
    }

    /// Whether the device's driver has part in a level: links name a device of it (for islands an
    /// accelerator), or a device of it has the standard attribute.
    pub(super) fn joins(&self, at: usize, level: Level) -> bool {
        let driver = &self.devices[at].key.pool.driver;
        let siblings =
            (0..self.devices.len()).filter(|d| self.devices[*d].key.pool.driver == *driver);
        siblings.into_iter().any(|d| match (level, self.member(d)) {
            (Level::Island, member) => member.is_some_and(|m| m.accelerator),
            (Level::Switch | Level::Rail, member) => member.is_some(),
            (Level::Root | Level::Numa, member) => {
                member.is_some() || self.domain(d, level).is_some()
            }
        })
    }

    pub(super) fn accelerator(&self, at: usize) -> bool {
        match self.member(at) {
            Some(member) => member.accelerator,
            None => self.joins(at, Level::Island),
        }
    }

    fn called_nic(&self, at: usize) -> bool {
        self.member(at).map_or(self.devices[at].traits.place.nic, |m| m.nic)
    }

    /// A network card of which something tells where it sits.
    pub(super) fn nic(&self, at: usize) -> bool {
        let levels = [Level::Switch, Level::Root, Level::Numa];
        self.called_nic(at) && levels.iter().any(|l| self.joins(at, *l))
    }

    /// What network cards serve.
    pub(super) fn served(&self, at: usize) -> bool {
        let located = self.joins(at, Level::Root) || self.joins(at, Level::Numa);
        let other = self.member(at).is_some_and(|m| !m.accelerator);
        !self.called_nic(at) && !other && (self.accelerator(at) || located)
    }

    /// What links, or the device itself, say of its domain.
    fn named(&self, at: usize, level: Level) -> Option<String> {
        let number = Level::ALL.iter().position(|l| *l == level).unwrap();
        if let Some(domain) = self.member(at).and_then(|m| m.domains[number]) {
            return Some(format!("links {domain}"));
        }
        let place = &self.devices[at].traits.place;
        let own = match level {
            Level::Numa => place.numa.as_ref()?,
            Level::Root => place.root.as_ref()?,
            Level::Island | Level::Switch | Level::Rail => return None,
        };
        let mut names = self.links.iter().flat_map(|l| &l.names);
        let known = names.find(|(l, name, _)| *l == level && name == own);
        Some(known.map_or_else(|| format!("own {own}"), |(.., n)| format!("links {n}")))
    }

    /// The domain of a device: as named, else that of the others in its narrower domain, else that
    /// narrower domain itself.
    pub(super) fn domain(&self, at: usize, level: Level) -> Option<String> {
        let named = self.named(at, level);
        let narrower = match level {
            Level::Root => Level::Switch,
            Level::Numa => Level::Root,
            Level::Island | Level::Switch | Level::Rail => return named,
        };
        if named.is_some() {
            return named;
        }
        let own = self.domain(at, narrower)?;
        let beside = (0..self.devices.len())
            .filter(|d| self.domain(*d, narrower).as_ref() == Some(&own))
            .filter_map(|d| self.named(d, level));
        let all: BTreeSet<String> = beside.collect();
        match all.len() {
            0 => Some(format!("within {own}")),
            1 => all.into_iter().next(),
            _ => None,
        }
    }

    /// The NUMA node, where it is one that somebody names.
    pub(super) fn numa(&self, at: usize) -> Option<String> {
        self.domain(at, Level::Numa).filter(|name| !name.starts_with("within"))
    }

    pub(super) fn attribute(&self, at: usize, name: &str) -> Option<&AttributeValue> {
        let attributes = &self.devices[at].traits.attributes;
        attributes.iter().find(|(n, _)| **n == *name).map(|(_, value)| value)
    }

    /// Whether the device must be near the others at a level.
    pub(super) fn must_align(&self, at: usize, level: Level) -> bool {
        self.joins(at, level) && (level != Level::Island || self.accelerator(at))
    }

    pub(super) fn link(&self, a: usize, b: usize) -> Link {
        if self.devices.iter().all(|d| d.member.is_none()) {
            return Link::UNKNOWN;
        }
        let links = self.links.unwrap();
        let ends = self.devices[a].member.zip(self.devices[b].member);
        let named = links.pairs.iter().rev().find(|(x, y, _)| {
            let (x, y) = (usize::from(*x), usize::from(*y));
            ends == Some((x, y)) || ends == Some((y, x))
        });
        if let Some((.., link)) = named {
            return *link;
        }
        let both =
            |level| self.domain(a, level).filter(|d| self.domain(b, level).as_ref() == Some(d));
        if both(Level::Island).is_some() {
            let island = self.member(a).unwrap().domains[0].unwrap();
            let gbps = links.island_gbps.get(usize::from(island)).copied().unwrap_or(0);
            return Link::new(LinkClass::Nvlink, gbps);
        }
        if both(Level::Switch).is_some() {
            LinkClass::Switch.into()
        } else if both(Level::Root).is_some() {
            LinkClass::HostBridge.into()
        } else if both(Level::Numa).is_some() {
            LinkClass::Numa.into()
        } else if self.numa(a).is_some() && self.numa(b).is_some() {
            LinkClass::System.into()
        } else {
            Link::UNKNOWN
        }
    }
}

/// Who holds a device; who only looks holds nothing.
fn held_of<'h>(held: &[&'h HeldDevice], pool: &PoolKey, device: &Name) -> Vec<&'h HeldDevice> {
    let of = |h: &&&HeldDevice| h.device.pool == *pool && h.device.device == *device && !h.admin;
    held.iter().filter(of).copied().collect()
}

/// A device's compatibility groups for a counter set.
pub(super) fn groups_of(traits: &Traits, set: &Name) -> Vec<Name> {
    let of = traits.groups.iter().find(|(name, _)| name == set);
    of.map_or_else(Vec::new, |(_, groups)| groups.to_vec())
}

/// Takes what a device uses from the counters.
pub(super) fn charge(left: &mut BTreeMap<(Name, Name), i128>, uses: &[CounterUse]) {
    for set in uses {
        for (counter, amount) in &set.counters {
            if let Some(left) = left.get_mut(&(set.name.clone(), counter.clone())) {
                *left -= amount;
            }
        }
    }
}

fn contradicts(kept: &[&Slice], current: &[&Slice]) -> bool {
    let devices: Vec<&Name> = kept.iter().flat_map(|s| &s.devices).map(|d| &d.name).collect();
    let sets: Vec<&CounterSet> = current.iter().flat_map(|s| &s.counters).collect();
    let twice = |names: &[&Name]| (1..names.len()).any(|at| names[..at].contains(&names[at]));
    let unknown = |set: &CounterUse, counter: &Name| {
        !sets.iter().any(|s| s.name == set.name && s.counters.iter().any(|(n, _)| n == counter))
    };
    twice(&devices)
        || twice(&sets.iter().map(|s| &s.name).collect::<Vec<_>>())
        || current.iter().flat_map(|s| &s.devices).flat_map(|d| &d.traits.counters).any(|set| {
            !sets.iter().any(|s| s.name == set.name)
                || set.counters.iter().any(|(counter, _)| unknown(set, counter))
        })
}

/// From which nodes an allocation can be used (createNodeSelector).
pub(super) fn reach(
    world: &World,
    node: &NodeKey,
    devices: &[HeldDevice],
) -> Option<Box<[NodeTerm]>> {
    let mut all: Vec<NodeRequirement> = Vec::new();
    for held in devices {
        let pool = &world.pools[&held.device.pool];
        let (slice, device) = pool
            .slices
            .iter()
            .rev()
            .flat_map(|s| s.devices.iter().map(move |d| (s, d)))
            .find(|(_, d)| d.name == held.device.device)
            .unwrap();
        let own = device.traits.reach.as_ref();
        let reach = if slice.reach == Reach::PerDevice { own.unwrap() } else { &slice.reach };
        match reach {
            Reach::Selector(term) if !device.traits.binds_to_node => {
                let new: Vec<_> = term.iter().filter(|r| !all.contains(r)).cloned().collect();
                all.extend(new);
            }
            Reach::All if !device.traits.binds_to_node => {}
            Reach::Node(_)
            | Reach::All
            | Reach::Selector(_)
            | Reach::PerDevice
            | Reach::Unknown => {
                return Some([[NodeRequirement::NameIs(node.0.clone())].into()].into());
            }
        }
    }
    (!all.is_empty()).then(|| [all.into()].into())
}
