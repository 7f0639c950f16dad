//! What a set takes from later requests: whole things touched, partitions lost, room on shared
//! devices used, whole islands broken. Kept up to date device by device, and given back.
//!
//! All of it only grows as a set grows (islands aside, whose last free device may go), so that what a
//! part of a set comes to is a bound for the set.

use crate::cost::Harm;

use super::shape::Shape;
use super::usage::Usage;

/// What sets are compared by of their harm, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Toll {
    /// Whole islands that are used in part.
    pub(crate) islands_broken: u16,
    /// Untouched wholes that are touched.
    pub(crate) wholes_used: u16,
    /// Size of what can't be had any more.
    pub(crate) lost_mi: u32,
    /// Room that was left on the shared devices drawn on.
    pub(crate) shared_mi: u32,
}

impl From<Toll> for Harm {
    fn from(toll: Toll) -> Self {
        let Toll { islands_broken, wholes_used, lost_mi, shared_mi } = toll;
        Self { islands_broken, wholes_used, lost_mi, shared_mi, ..Self::default() }
    }
}

impl From<Harm> for Toll {
    fn from(harm: Harm) -> Self {
        let Harm { islands_broken, wholes_used, lost_mi, shared_mi, .. } = harm;
        Self { islands_broken, wholes_used, lost_mi, shared_mi }
    }
}

/// How a device is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taking<'a> {
    /// Not only looked at.
    pub(super) earnest: bool,
    /// Nobody else can have it then.
    pub(super) gives: bool,
    /// It is a share for those that come later to draw on counters, where it is a shared device.
    pub(super) shares: bool,
    /// It draws on its counters, of which so much is left now.
    pub(super) left: Option<&'a [i128]>,
    /// What a share takes of each capacity.
    pub(super) draws: &'a [i128],
}

/// The islands of which every device is untouched.
#[derive(Clone, Debug, Default)]
pub(super) struct WholeIslands {
    /// The island of each device, as an index into `sizes`.
    pub(super) of: Vec<Option<usize>>,
    /// How many devices each has.
    pub(super) sizes: Vec<usize>,
}

/// The harm of what is chosen so far.
pub(super) struct Wear<'a> {
    shape: &'a Shape,
    usage: &'a Usage,
    islands: &'a WholeIslands,
    /// Of each whole island: whether no set uses it up.
    breaks: &'a [bool],
    toll: Toll,
    /// Devices that can't be had, whether or not that is the set's doing.
    gone: Vec<bool>,
    /// Those of them that were so before anything was chosen: who only looks can still use them.
    before: Vec<bool>,
    /// How often each is chosen, and how often in earnest.
    held: Vec<u16>,
    used: Vec<u16>,
    /// How often each is chosen not only to look.
    drawn: Vec<u16>,
    /// How often each counter set is drawn on.
    set_uses: Vec<u16>,
    /// Of each whole island: devices in use, and devices in use or gone.
    in_use: Vec<usize>,
    out: Vec<usize>,
    /// Devices that went, in order.
    trail: Vec<usize>,
    marks: Vec<Mark>,
}

/// What was before a device was taken.
struct Mark {
    device: usize,
    earnest: bool,
    charged: bool,
    shares: bool,
    trail: usize,
    toll: Toll,
}

impl<'a> Wear<'a> {
    pub(super) fn new(
        shape: &'a Shape,
        usage: &'a Usage,
        islands: &'a WholeIslands,
        breaks: &'a [bool],
    ) -> Self {
        let n = shape.devices.len();
        let mut wear = Self {
            shape,
            usage,
            islands,
            breaks,
            toll: Toll::default(),
            gone: vec![false; n],
            before: vec![false; n],
            held: vec![0; n],
            used: vec![0; n],
            drawn: vec![0; n],
            set_uses: vec![0; shape.stock.counters_of.len()],
            in_use: vec![0; islands.sizes.len()],
            out: vec![0; islands.sizes.len()],
            trail: Vec::new(),
            marks: Vec::new(),
        };
        if shape.stock.counted {
            let gone = |at| {
                usage.is_taken(at)
                    || shape.trouble(at).is_some()
                    || wear.is_short(at, &usage.counters_left)
            };
            wear.before = (0..n).map(gone).collect();
            wear.gone.clone_from(&wear.before);
        }
        wear
    }

    /// Whether the counters leave too little for a device that still has to draw on them.
    fn is_short(&self, at: usize, left: &[i128]) -> bool {
        let drawn = self.shape.devices[at].traits.shareable
            && (self.drawn[at] > 0 || self.usage.shares.get(at).is_some_and(|s| *s > 0));
        let mut draws = self.shape.stock.draws.get(at).into_iter().flatten();
        !drawn && draws.any(|(counter, amount)| left.get(*counter).is_none_or(|l| amount > l))
    }

    pub(super) fn push(&mut self, at: usize, taking: Taking<'_>) {
        let Taking { earnest, gives, shares, left, draws } = taking;
        let charged = left.is_some();
        let (trail, toll) = (self.trail.len(), self.toll);
        self.marks.push(Mark { device: at, earnest, charged, shares, trail, toll });
        self.held[at] += 1;
        self.drawn[at] += u16::from(shares);
        if earnest {
            self.used[at] += 1;
            if let (1, Some(island)) = (self.used[at], self.whole(at)) {
                self.in_use[island] += 1;
                self.out[island] += usize::from(!self.gone[at] || self.before[at]);
            }
        }
        let traits = &self.shape.devices[at].traits;
        let counted = !traits.counters.is_empty();
        if gives {
            self.toll.wholes_used += u16::from(!counted);
            self.lose(at);
        }
        if traits.shareable {
            if self.held[at] == 1 {
                self.toll.wholes_used += u16::from(!counted && self.usage.is_untouched(at));
                let consumed = self.usage.consumed.get(at).map_or(&[][..], |c| c);
                let room = self.shape.stock.room(at, &traits.capacity, consumed);
                self.toll.shared_mi = self.toll.shared_mi.saturating_add(room);
            }
            let taken = self.shape.stock.measured(at, draws);
            self.toll.lost_mi = self.toll.lost_mi.saturating_add(taken);
        }
        if let Some(left) = left {
            self.charge(at, left);
        }
    }

    fn charge(&mut self, at: usize, left: &[i128]) {
        let shape = self.shape;
        for &set in shape.stock.sets_of.get(at).into_iter().flatten() {
            let counters = shape.stock.counters_of[set].clone();
            let untouched = counters
                .into_iter()
                .all(|c| self.usage.counters_left[c] == shape.counters[c].total);
            self.toll.wholes_used += u16::from(untouched && self.set_uses[set] == 0);
            self.set_uses[set] += 1;
            for &other in &shape.stock.devices_on[set] {
                if !self.gone[other] && self.is_short(other, left) {
                    self.lose(other);
                }
            }
        }
    }

    fn lose(&mut self, at: usize) {
        if std::mem::replace(&mut self.gone[at], true) {
            return;
        }
        self.toll.lost_mi = self.toll.lost_mi.saturating_add(self.shape.stock.size[at]);
        self.trail.push(at);
        if let (0, Some(island)) = (self.used[at], self.whole(at)) {
            self.out[island] += 1;
        }
    }

    fn whole(&self, at: usize) -> Option<usize> {
        self.islands.of.get(at).copied().flatten()
    }

    /// Takes back the last device.
    pub(super) fn pop(&mut self) {
        let Some(mark) = self.marks.pop() else { return };
        let at = mark.device;
        self.toll = mark.toll;
        while self.trail.len() > mark.trail {
            let Some(lost) = self.trail.pop() else { break };
            self.gone[lost] = false;
            if let (0, Some(island)) = (self.used[lost], self.whole(lost)) {
                self.out[island] -= 1;
            }
        }
        self.held[at] -= 1;
        self.drawn[at] -= u16::from(mark.shares);
        if mark.earnest {
            self.used[at] -= 1;
            if let (0, Some(island)) = (self.used[at], self.whole(at)) {
                self.in_use[island] -= 1;
                self.out[island] -= usize::from(!self.gone[at] || self.before[at]);
            }
        }
        if mark.charged {
            for &set in self.shape.stock.sets_of.get(at).into_iter().flatten() {
                self.set_uses[set] -= 1;
            }
        }
    }

    /// The toll of what is chosen; or, where `more` devices at most can follow, the least that any
    /// set with it can have.
    pub(super) fn toll(&self, more: usize) -> Toll {
        Toll { islands_broken: self.islands_broken(more), ..self.toll }
    }

    fn islands_broken(&self, more: usize) -> u16 {
        // A partition may take others with it.
        let more = more.saturating_mul(self.shape.stock.takes_most);
        let broken = |island: &usize| {
            let left = self.islands.sizes[*island] - self.out[*island];
            let breaks = self.breaks.get(*island).is_some_and(|breaks| *breaks);
            self.in_use[*island] > 0 && (left > more || breaks)
        };
        u16::try_from((0..self.in_use.len()).filter(broken).count()).unwrap_or(u16::MAX)
    }
}
