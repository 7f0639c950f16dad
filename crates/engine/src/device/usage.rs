//! Who holds what of a shape's devices.

use crate::facts::{CounterUse, Pool, Traits};
use crate::name::{Name, PoolKey, Shared};

use super::bits;
use super::charge::Members;
use super::shape::{Shape, View};

/// What is held, device by device in the shape's order. Equal usages of equal shapes have equal
/// answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Usage {
    /// Bit i: device i is held whole.
    pub(crate) taken: Vec<u64>,
    /// How many shares of device i are held; empty where no device is shareable.
    pub(crate) shares: Vec<u32>,
    /// What the shares of device i consume, in the order of its capacities, in billionths of a
    /// unit; empty for one that is not shareable, and where none is.
    pub(crate) consumed: Vec<Box<[i128]>>,
    /// What is left of each of [`Shape::counters`], in billionths of a unit; below zero where more
    /// is held than there is.
    pub(crate) counters_left: Vec<i128>,
    /// Who consumes from the set of each of [`Shape::counters`], where its compatibility groups are
    /// to be kept; empty where there are none.
    pub(crate) groups: Vec<Members>,
}

/// A usage to remember answers under: the devices held whole, where that is all there is to it and
/// fits one word; else all of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum UsageKey {
    /// Bit i: device i is held whole.
    Word(u64),
    /// All of it.
    Whole(Shared<Usage>),
}

impl UsageKey {
    /// What answers can be remembered under.
    pub(crate) fn of(usage: &Shared<Usage>) -> Self {
        match (usage.taken.as_slice(), usage.shares.is_empty() && usage.counters_left.is_empty()) {
            ([], true) => Self::Word(0),
            ([word], true) => Self::Word(*word),
            _ => Self::Whole(usage.clone()),
        }
    }

    /// How much memory it takes, in units of a word's entry.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Word(_) => 1,
            Self::Whole(usage) => 2 + usage.consumed.len() / 2 + usage.counters_left.len() / 8,
        }
    }
}

/// What all allocations together hold of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Whether any holds it whole.
    pub(crate) whole: bool,
    /// Shares of it.
    pub(crate) shares: u32,
    /// What the shares consume, by capacity; names may come more than once.
    pub(crate) consumed: Vec<(Name, i128)>,
}

impl Usage {
    /// Everything free.
    pub(crate) fn free(shape: &Shape) -> Self {
        let (mut shares, mut consumed) = (Vec::new(), Vec::new());
        let grouped = shape.counters.iter().any(|c| c.grouped);
        if shape.devices.iter().any(|d| d.traits.shareable) {
            shares = vec![0; shape.devices.len()];
            let sums = |traits: &Traits| if traits.shareable { traits.capacity.len() } else { 0 };
            consumed = shape.devices.iter().map(|d| vec![0; sums(&d.traits)].into()).collect();
        }
        Self {
            taken: vec![0; bits::words(shape.devices.len())],
            shares,
            consumed,
            counters_left: shape.counters.iter().map(|c| c.total).collect(),
            groups: vec![Members::None; if grouped { shape.counters.len() } else { 0 }],
        }
    }

    /// What `held` says of each device of what a node sees; `pools` are those that were gathered,
    /// and it is asked by their index.
    /// Counters are charged by every device of the slices that count, also by those that this node
    /// does not see.
    pub(crate) fn gather(
        view: &View,
        pools: &[(&PoolKey, &Pool)],
        mut held: impl FnMut(u32, &Name) -> Held,
    ) -> Self {
        let shape = &view.shape;
        let mut usage = Self::free(shape);
        for (at, (pool, name)) in view.places.iter().enumerate() {
            let held = held(*pool, name);
            // Shares of a device that can't be shared any more keep it from being given whole.
            let shareable = shape.devices[at].traits.shareable;
            if held.whole || held.shares > 0 && !shareable {
                bits::set(&mut usage.taken, at);
            }
            if !shareable || usage.shares.is_empty() {
                continue;
            }
            usage.shares[at] = held.shares;
            let capacities = &shape.devices[at].traits.capacity;
            for (capacity, sum) in capacities.iter().zip(&mut usage.consumed[at]) {
                let of = held.consumed.iter().filter(|(name, _)| *name == capacity.name);
                *sum = of.fold(0i128, |sum, (_, amount)| sum.saturating_add(*amount));
            }
        }
        if !shape.counters.is_empty() {
            usage.charge_counters(view, pools, &mut held);
        }
        usage
    }

    fn charge_counters(
        &mut self,
        view: &View,
        pools: &[(&PoolKey, &Pool)],
        held: &mut impl FnMut(u32, &Name) -> Held,
    ) {
        for (ordinal, sight) in view.pools.iter().enumerate() {
            let Some((_, pool)) = pools.get(sight.input as usize) else { continue };
            if !view.shape.counters.iter().any(|c| usize::from(c.pool) == ordinal) {
                continue;
            }
            for device in sight.current(pool).flat_map(|s| &s.devices) {
                let uses = &device.traits.counters;
                if uses.is_empty() {
                    continue;
                }
                let held = held(sight.input, &device.name);
                if !held.whole && held.shares == 0 {
                    continue;
                }
                self.charge(&view.shape, ordinal, uses);
                let groups = |set: &Name| device.traits.groups(set);
                self.join(&view.shape, ordinal, uses, groups);
            }
        }
    }

    /// Takes what a device of a pool uses from the pool's counters.
    pub(crate) fn charge(&mut self, shape: &Shape, ordinal: usize, uses: &[CounterUse]) {
        for (left, counter) in self.counters_left.iter_mut().zip(&shape.counters) {
            if usize::from(counter.pool) == ordinal {
                *left = left.saturating_sub(counter.used_by(uses));
            }
        }
    }

    /// Notes the compatibility groups of a device that is held.
    pub(crate) fn join<'g>(
        &mut self,
        shape: &Shape,
        ordinal: usize,
        uses: &[CounterUse],
        groups: impl Fn(&Name) -> &'g [Name],
    ) {
        let pool = u16::try_from(ordinal).unwrap_or(u16::MAX);
        for used in uses {
            if let Some(place) = shape.grouped(pool, &used.name) {
                self.groups[place] = self.groups[place].with(groups(&used.name));
            }
        }
    }

    /// Whether device `at` is held whole.
    pub(crate) fn is_taken(&self, at: usize) -> bool {
        bits::has(&self.taken, at)
    }

    /// Whether nobody holds anything of device `at`.
    pub(crate) fn is_untouched(&self, at: usize) -> bool {
        !self.is_taken(at) && self.shares.get(at).is_none_or(|s| *s == 0)
    }

    /// Whether anything is held of any device.
    pub(crate) fn any_held(&self) -> bool {
        self.taken.iter().any(|word| *word != 0) || self.shares.iter().any(|shares| *shares != 0)
    }
}
