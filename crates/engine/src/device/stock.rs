//! What a shape's devices are worth to later requests: how large each is, and which of them draw on
//! the same counters, so that giving one takes others with it.
//!
//! It knows no use: who holds what, and what a set would take, is left to [`wear`](super::wear).

use crate::facts::Capacity;

use super::shape::{ShapeCounter, ShapeDevice};

/// The capacity by which a device's size is told, where it has one of that name.
const MEMORY: &str = "memory";

/// Sizes and counters of a shape's devices, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stock {
    /// Index of the capacity that tells each device's size.
    measure: Vec<Option<usize>>,
    /// Size in Mi.
    pub(super) size: Vec<u32>,
    /// What each device takes of the shape's counters: index and amount.
    pub(super) draws: Vec<Box<[(usize, i128)]>>,
    /// The counter sets that each draws on.
    pub(super) sets_of: Vec<Box<[usize]>>,
    /// The devices that draw on each counter set.
    pub(super) devices_on: Vec<Vec<usize>>,
    /// Where the counters of each set are among the shape's.
    pub(super) counters_of: Vec<std::ops::Range<usize>>,
    /// Whether some device draws on counters.
    pub(super) counted: bool,
    /// Devices that giving one can take with it at most, itself included.
    pub(super) takes_most: usize,
}

impl Stock {
    pub(super) fn new(devices: &[ShapeDevice], counters: &[ShapeCounter]) -> Self {
        let mut stock = Self {
            measure: devices.iter().map(|d| measure(&d.traits.capacity)).collect(),
            counted: devices.iter().any(|d| !d.traits.counters.is_empty()),
            ..Self::default()
        };
        let sizes = devices.iter().zip(&stock.measure);
        let size = |capacity: &Capacity| mi(capacity.nanos);
        stock.size = sizes.map(|(d, at)| at.map_or(0, |at| size(&d.traits.capacity[at]))).collect();
        stock.takes_most = 1;
        if !stock.counted {
            return stock;
        }
        // The counters of a set stand together.
        for (at, counter) in counters.iter().enumerate() {
            let same = at > 0
                && counters[at - 1].pool == counter.pool
                && counters[at - 1].set == counter.set;
            match stock.counters_of.last_mut().filter(|_| same) {
                Some(range) => range.end = at + 1,
                None => stock.counters_of.push(at..at + 1),
            }
        }
        stock.devices_on = vec![Vec::new(); stock.counters_of.len()];
        for (at, device) in devices.iter().enumerate() {
            let (mut draws, mut sets) = (Vec::new(), Vec::new());
            for (set, range) in stock.counters_of.iter().enumerate() {
                let first = &counters[range.start];
                let uses = &device.traits.counters;
                if first.pool != device.pool || !uses.iter().any(|u| u.name == first.set) {
                    continue;
                }
                let before = draws.len();
                let of_set = counters[range.clone()].iter().zip(range.clone());
                let drawn = of_set.map(|(counter, n)| (n, counter.used_by(uses)));
                draws.extend(drawn.filter(|(_, amount)| *amount != 0));
                if draws.len() > before {
                    sets.push(set);
                    stock.devices_on[set].push(at);
                }
            }
            stock.draws.push(draws.into());
            stock.sets_of.push(sets.into());
        }
        let takes = |sets: &[usize]| sets.iter().map(|set| stock.devices_on[*set].len()).sum();
        let most = stock.sets_of.iter().map(|sets| takes(sets)).max();
        stock.takes_most = most.unwrap_or(0).max(1);
        stock
    }

    /// The size, in Mi, of what one share takes, as its draws of each capacity tell, or of what is
    /// left of a device after what is consumed.
    pub(super) fn measured(&self, device: usize, amounts: &[i128]) -> u32 {
        let amount = self.measure[device].and_then(|at| amounts.get(at));
        amount.map_or(0, |amount| mi(*amount))
    }

    /// The size, in Mi, of what is left of a shared device.
    pub(super) fn room(&self, device: usize, capacity: &[Capacity], consumed: &[i128]) -> u32 {
        let Some(at) = self.measure[device] else { return 0 };
        let used = consumed.get(at).copied().unwrap_or(0);
        capacity.get(at).map_or(0, |c| mi(c.nanos.saturating_sub(used)))
    }
}

/// The capacity that tells a device's size: `memory`, with or without a domain, else the greatest.
fn measure(capacity: &[Capacity]) -> Option<usize> {
    let named = |c: &Capacity| c.name.rsplit('/').next() == Some(MEMORY);
    let greatest = || (0..capacity.len()).rev().max_by_key(|at| capacity[*at].nanos);
    capacity.iter().position(named).or_else(greatest)
}

/// Billionths of a unit as Mi, rounded up. Without a division of 128 bits, which is slow.
fn mi(nanos: i128) -> u32 {
    const BILLION: u64 = 1_000_000_000;
    let nanos = nanos.max(0);
    let (units, rest) = (nanos >> 20, nanos & ((1 << 20) - 1));
    let Ok(units) = u64::try_from(units) else { return u32::MAX };
    let whole = units / BILLION + u64::from(units % BILLION != 0 || rest != 0);
    u32::try_from(whole).unwrap_or(u32::MAX)
}
