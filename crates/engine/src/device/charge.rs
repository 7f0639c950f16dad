//! What is left of counters, capacities and compatibility groups while a set is put together.
//!
//! Who only looks at a device (`adminAccess`) takes nothing of counters and groups: the device's
//! holder has them. Of a device with shares the first share takes them for all. Capacity is taken
//! by every share, for the shares of one call can't tell who only looks.

use crate::facts::{CounterUse, Effect, Traits};
use crate::name::Name;

use super::shape::Shape;
use super::usage::Usage;

/// The compatibility groups of those that consume from a counter set (KEP-5963).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Members {
    /// Nobody does.
    #[default]
    None,
    /// Devices without groups.
    Plain,
    /// Devices with groups: those that all of them have.
    Grouped(Vec<Name>),
}

impl Members {
    /// Whether a device with these groups may join.
    pub(crate) fn admits(&self, groups: &[Name]) -> bool {
        match self {
            Self::None => true,
            Self::Plain => groups.is_empty(),
            Self::Grouped(all) => groups.iter().any(|group| all.contains(group)),
        }
    }

    /// With a device of these groups. What reality has mixed stays as its first member made it.
    #[must_use]
    pub(crate) fn with(&self, groups: &[Name]) -> Self {
        match self {
            Self::None if groups.is_empty() => Self::Plain,
            Self::None => Self::Grouped(groups.to_vec()),
            Self::Plain => Self::Plain,
            Self::Grouped(all) if groups.is_empty() => Self::Grouped(all.clone()),
            Self::Grouped(all) => {
                Self::Grouped(all.iter().filter(|group| groups.contains(group)).cloned().collect())
            }
        }
    }
}

/// What is left, and what was taken in which order.
pub(super) struct Charges<'a> {
    shape: &'a Shape,
    counters: Vec<i128>,
    consumed: Vec<Box<[i128]>>,
    /// Shares by device that count: those held, and those taken not only to look.
    shares: Vec<u32>,
    groups: Vec<Members>,
    /// For each device that was charged for groups: places and what stood there before.
    before: Vec<Vec<(usize, Members)>>,
}

impl<'a> Charges<'a> {
    pub(super) fn new(shape: &'a Shape, usage: &Usage) -> Self {
        let mut shares = usage.shares.clone();
        shares.resize(shape.devices.len(), 0);
        Self {
            shape,
            counters: usage.counters_left.clone(),
            consumed: usage.consumed.clone(),
            shares,
            groups: usage.groups.clone(),
            before: Vec::new(),
        }
    }

    /// Takes what device `at` gives; false, and nothing is taken, where too little is left or those
    /// in use don't admit it. What is taken last is given back first.
    pub(super) fn take(&mut self, at: usize, draws: &[i128], admin: bool) -> bool {
        if !self.has_room(at, draws) {
            return false;
        }
        if !self.admits(at, admin) {
            return false;
        }
        if self.counts(at, admin) {
            self.join(at);
        }
        if let Some(sums) = self.consumed.get_mut(at) {
            sums.iter_mut().zip(draws).for_each(|(sum, draw)| *sum = sum.saturating_add(*draw));
        }
        self.shares[at] += u32::from(!admin);
        true
    }

    /// Gives back what was taken last.
    pub(super) fn give(&mut self, at: usize, draws: &[i128], admin: bool) {
        self.shares[at] -= u32::from(!admin);
        if let Some(sums) = self.consumed.get_mut(at) {
            sums.iter_mut().zip(draws).for_each(|(sum, draw)| *sum = sum.saturating_sub(*draw));
        }
        if self.counts(at, admin) {
            self.leave(at);
        }
    }

    /// What is left of each counter.
    pub(super) fn left(&self) -> &[i128] {
        &self.counters
    }

    /// Whether enough capacity is left for a share of device `at`.
    pub(super) fn has_room(&self, at: usize, draws: &[i128]) -> bool {
        let Some(sums) = self.consumed.get(at) else { return true };
        let capacity = &self.shape.devices[at].traits.capacity;
        let mut all = sums.iter().zip(draws).zip(capacity);
        all.all(|((sum, draw), capacity)| sum.saturating_add(*draw) <= capacity.nanos)
    }

    /// The first capacity of device `at` of which too little is left for a share: what it would take,
    /// and what is left.
    pub(super) fn short(&self, at: usize, draws: &[i128]) -> Option<(Name, (i128, i128))> {
        let sums = self.consumed.get(at)?;
        let capacity = &self.shape.devices[at].traits.capacity;
        let mut all = sums.iter().zip(draws).zip(capacity);
        all.find_map(|((sum, draw), capacity)| {
            let left = capacity.nanos.saturating_sub(*sum);
            (*draw > left).then(|| (capacity.name.clone(), (*draw, left)))
        })
    }

    /// Whether taking the device takes counters, as things stand.
    pub(super) fn counts(&self, at: usize, admin: bool) -> bool {
        let traits: &Traits = &self.shape.devices[at].traits;
        let again = traits.shareable && self.shares[at] > 0;
        !admin && !again && !traits.counters.is_empty()
    }

    /// Whether counters and compatibility groups let the device be taken.
    pub(super) fn admits(&self, at: usize, admin: bool) -> bool {
        if !self.counts(at, admin) {
            return true;
        }
        let enough = |(counter, used): &(usize, i128)| self.counters[*counter] >= *used;
        self.shape.takes(at).iter().all(enough)
            && self.of_groups(at).all(|(place, groups)| self.groups[place].admits(groups))
    }

    fn join(&mut self, at: usize) {
        let joined: Vec<(usize, Members)> = self
            .of_groups(at)
            .map(|(place, groups)| (place, self.groups[place].with(groups)))
            .collect();
        let before = joined
            .into_iter()
            .map(|(place, after)| (place, std::mem::replace(&mut self.groups[place], after)));
        let before = before.collect();
        self.before.push(before);
        self.charge(at, i128::saturating_sub);
    }

    /// The device's compatibility groups, with the places where those of others stand.
    fn of_groups(&self, at: usize) -> impl Iterator<Item = (usize, &'a [Name])> {
        let shape = self.shape;
        let device = &shape.devices[at];
        let place = |used: &'a CounterUse| {
            let place = shape.grouped(device.pool, &used.name)?;
            Some((place, device.traits.groups(&used.name)))
        };
        device.traits.counters.iter().filter_map(place)
    }

    fn leave(&mut self, at: usize) {
        for (place, before) in self.before.pop().into_iter().flatten().rev() {
            self.groups[place] = before;
        }
        self.charge(at, i128::saturating_add);
    }

    fn charge(&mut self, at: usize, by: impl Fn(i128, i128) -> i128) {
        for (counter, used) in self.shape.takes(at) {
            self.counters[*counter] = by(self.counters[*counter], *used);
        }
    }
}

/// The devices of which nobody holds anything and that a request without tolerations could still be
/// given: of sound pools, in health, not kept back, and with what they take of counters and
/// compatibility groups left.
pub(crate) fn free<'a>(shape: &'a Shape, usage: &'a Usage) -> impl Iterator<Item = usize> + 'a {
    let charges = Charges::new(shape, usage);
    let sound = |at: usize| shape.trouble(at).is_none() && shape.kept_back(at).is_none();
    let healthy = |at: usize| {
        let taints = &shape.devices[at].traits.taints;
        taints.iter().all(|taint| taint.effect == Effect::PreferNoSchedule)
    };
    (0..shape.devices.len()).filter(move |at| {
        usage.is_untouched(*at) && sound(*at) && healthy(*at) && charges.admits(*at, false)
    })
}
