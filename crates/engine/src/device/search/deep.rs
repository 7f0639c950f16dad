//! What a search asks when it does not end soon: what all sets of its devices come to, where network
//! cards can still find a partner, and whether it has been here before by another way.
//!
//! All of it only leaves branches that can't win: what is found is the same with it and without.

use rustc_hash::FxHashSet;

use crate::cost::NicCost;
use crate::device::bits::{self, Mask};
use crate::device::choose::Price;
use crate::device::problem::{Axis, Choice, IDLE, Kind, Line, OUT, Problem};
use crate::device::unions::{Unions, crowds};

use super::{Ahead, Aim, Chosen, Search};

/// Steps after which a search is no longer a short one.
pub(super) const SOON: u64 = 1_000;
/// States that are remembered at most.
const SEEN_MAX: usize = 1 << 18;
/// Words of a set of positions that is remembered.
const WORDS_MAX: usize = 4;

/// What was worked out.
pub(super) struct Deep<'p> {
    unions: Option<&'p Unions>,
    seen: Option<Seen>,
    /// What fits some line from each on.
    fits: Vec<Mask>,
    /// What lines from each on need of what, where nobody else can have it too.
    needs: Vec<Vec<(Mask, usize)>>,
}

/// States that were looked at.
struct Seen {
    states: FxHashSet<Box<[u64]>>,
    /// Some line has several choices.
    choices: bool,
    /// Somebody only looks.
    admin: bool,
    /// Some device is shared.
    shared: bool,
    /// For each line whether rules ask which request of its claim has what.
    ruled: Vec<bool>,
    /// For each line the rules and wishes of claims that judge it or a line after it.
    axes: Vec<Vec<usize>>,
    /// For each line the last one that takes its devices in order after it.
    twins: Vec<usize>,
}

impl Seen {
    /// None where more decides what can follow than who holds what: the order of devices, or how often
    /// each is there where sets are counted.
    fn of(p: &Problem<'_>, aim: Aim) -> Option<Self> {
        if p.words > WORDS_MAX || p.axes.len() > 64 || p.is_loose() {
            return None;
        }
        let mut choices = p.lines.iter().flat_map(|line| &line.choices);
        let admin = choices.any(|choice| choice.admin);
        let shared = p.order.iter().any(|at| p.lens.shape.devices[*at].traits.shareable);
        if matches!(aim, Aim::Equal(_)) && (admin || shared) {
            return None;
        }
        let axes_of = |line: &Line<'_>| -> Vec<usize> {
            let axes = line.choices.iter().flat_map(|choice| &choice.axes).copied();
            axes.filter(|axis| !p.axes[*axis].of_pod).collect()
        };
        let rules = |line: &Line<'_>| {
            line.choices.iter().any(|choice| !choice.sets.is_empty())
                || (admin || shared) && !axes_of(line).is_empty()
        };
        let of_claim = |line: &Line<'_>| p.lines.iter().any(|l| l.claim == line.claim && rules(l));
        let from = |at: usize| {
            let mut axes: Vec<usize> = p.lines[at..].iter().flat_map(axes_of).collect();
            axes.sort_unstable();
            axes.dedup();
            axes
        };
        let after = |at: usize| p.lines.iter().rposition(|line| line.twin == Some(at));
        Some(Self {
            states: FxHashSet::default(),
            choices: p.lines.iter().any(|line| line.choices.len() > 1),
            admin,
            shared,
            ruled: p.lines.iter().map(of_claim).collect(),
            axes: (0..p.lines.len()).map(from).collect(),
            twins: (0..p.lines.len()).map(|at| after(at).unwrap_or(0)).collect(),
        })
    }
}

impl<'p, 'a> Search<'p, 'a> {
    /// Counts a step; after some, looks deeper.
    pub(super) fn deepen(&mut self) {
        if self.soon == 0 {
            return;
        }
        self.soon -= 1;
        if self.soon > 0 {
            return;
        }
        let p = self.p;
        let mut fits = vec![vec![0; p.words]; p.lines.len() + 1];
        for at in (0..p.lines.len()).rev() {
            fits[at] = fits[at + 1].clone();
            for choice in &p.lines[at].choices {
                fits[at].iter_mut().zip(self.within(at, &choice.fit)).for_each(|(a, b)| *a |= b);
            }
        }
        let shareable = |at: usize| p.lens.shape.devices[p.order[at]].traits.shareable;
        let alone = |choice: &Choice<'_>| !choice.admin && !bits::iter(&choice.fit).any(shareable);
        let asked = |line: &Line<'_>| {
            let mut of = vec![0; p.words];
            for choice in &line.choices {
                of.iter_mut().zip(&choice.fit).for_each(|(of, fit)| *of |= fit);
            }
            (of, line.choices.iter().map(|choice| choice.count).min().unwrap_or(0))
        };
        let needs = |at: usize| {
            let lines = p.lines[at..].iter().filter(|line| line.choices.iter().all(alone));
            crowds(lines.map(asked))
        };
        let needs = (0..=p.lines.len()).map(needs).collect();
        let (unions, seen) = (self.unions(), Seen::of(p, self.aim));
        self.deep = Some(Deep { unions, seen, fits, needs });
    }

    /// What all sets come to, where there are steps enough to work it out.
    fn unions(&mut self) -> Option<&'p Unions> {
        let p = self.p;
        if p.unions.get().is_none() {
            let takes = Unions::steps(p).unwrap_or(0);
            *self.steps = self.steps.checked_sub(takes)?;
        }
        p.unions.get_or_init(|| Unions::of(p)).as_ref()
    }

    /// What of a line's candidates it can have, where it must begin with some.
    pub(super) fn within(&self, at: usize, fit: &Mask) -> Mask {
        let firsts = self.firsts.get(at).map_or(&[][..], |firsts| firsts);
        let mut within = fit.clone();
        if let Some(last) = firsts.last() {
            (0..*last)
                .filter(|at| !firsts.contains(at))
                .for_each(|at| bits::clear(&mut within, at));
        }
        within
    }

    /// Whether a line's device of this number may be at `position`.
    pub(super) fn may_come(&self, at: usize, number: usize, position: usize) -> bool {
        let must = self.firsts.get(at).and_then(|firsts| firsts.get(number));
        must.is_none_or(|must| *must == position)
    }

    /// The least that a set with what is chosen can cost; none where there is no such set.
    pub(super) fn deep_floor(&self, ahead: Ahead<'_, 'a>) -> Option<Price> {
        let mut floor = self.floor(ahead);
        let Some(deep) = &self.deep else { return Some(floor) };
        let there = |of: &Mask| bits::iter(of).filter(|at| self.held[*at] == 0).count();
        let mut needs = deep.needs.get(ahead.at + 1).into_iter().flatten();
        if needs.any(|(of, count)| there(of) < *count) {
            return None;
        }
        floor.devices.unaligned = floor.devices.unaligned.saturating_add(self.unmet_to_come(ahead));
        floor.devices.nics = floor.devices.nics.max(self.nics_at_least(deep, ahead));
        let Some(unions) = deep.unions else { return Some(floor) };
        let chosen = self.chosen.iter().map(|chosen| (chosen.line, chosen.position));
        let there = unions.raise(&mut floor, chosen, (ahead.at, ahead.choice, ahead.left));
        there.then_some(floor)
    }

    /// Wishes that are not broken yet and can't be kept any more.
    fn unmet_to_come(&self, ahead: Ahead<'_, 'a>) -> u16 {
        let wishes = self.p.axes.iter().enumerate().filter(|(_, axis)| axis.kind == Kind::Wish);
        let unbroken = wishes.filter(|(at, _)| self.tallies[*at].distinct <= 1);
        let lost = unbroken.filter(|(at, _)| !self.could_keep(*at, ahead));
        u16::try_from(lost.count()).unwrap_or(u16::MAX)
    }

    /// Whether some domain has enough for all who are still to come under a wish.
    fn could_keep(&self, axis: usize, ahead: Ahead<'_, 'a>) -> bool {
        let p = self.p;
        let Axis { same, value, .. } = &p.axes[axis];
        let under = |choice: &&Choice<'_>| choice.axes.contains(&axis);
        let own = Some(ahead.choice).filter(under).map_or(0, |_| ahead.left);
        let later = || p.lines.iter().skip(ahead.at + 1).flat_map(|l| l.choices.iter().find(under));
        // One device alone is near itself.
        let devices = self.tallies[axis].joined + own + later().map(|c| c.count).sum::<usize>();
        if own == 0 && later().next().is_none() || devices <= 1 {
            return true;
        }
        let mask = &self.masks[self.masks.len() - p.words..];
        let there = |fit: &[u64], same: &[u64], from: usize| {
            bits::iter(same).filter(|at| *at >= from && bits::has(fit, *at)).count()
        };
        let enough = |line: &Line<'a>, same: &[u64]| {
            let mut choices = line.choices.iter();
            choices.any(|choice| !under(&choice) || there(&choice.fit, same, 0) >= choice.count)
        };
        let used = self.tallies[axis].counts.iter().position(|count| *count > 0);
        let domains = same.iter().enumerate().filter(|(v, _)| used.is_none_or(|used| used == *v));
        domains.into_iter().any(|(_, same)| {
            there(mask, same, ahead.from) >= own
                && p.lines.iter().skip(ahead.at + 1).all(|line| enough(line, same))
        }) || used.is_none() && value.iter().any(|v| *v == OUT || *v == IDLE)
    }

    fn nics_at_least(&self, deep: &Deep<'_>, ahead: Ahead<'_, 'a>) -> NicCost {
        let p = self.p;
        let Some((cards, totals)) = p.spans.cards.as_ref().and_then(|c| Some((c, c.totals?)))
        else {
            return NicCost::default();
        };
        let later = deep.fits.get(ahead.at + 1).map_or(&[][..], |fits| fits);
        let own = &self.masks[self.masks.len() - p.words..];
        let open = (0..p.order.len()).filter(|at| {
            let of_line = ahead.left > 0 && *at >= ahead.from && bits::has(own, *at);
            self.held[*at] == 0 && (of_line || bits::has(later, *at))
        });
        let [off_switch, off_root, off_numa] = self.cards.off_at_least(cards, totals, open);
        NicCost { off_switch, off_root, off_numa }
    }

    /// Whether what can follow was looked at before: the same devices are taken, and who has which of
    /// them changes nothing any more. What was found then comes first by name.
    pub(super) fn was_seen(&mut self, at: usize, position: usize, left: usize) -> bool {
        let Some(Deep { seen: Some(seen), .. }) = &self.deep else { return false };
        let state = self.state(seen, at, if left == 0 { 0 } else { position + 1 }, left);
        let Some(Deep { seen: Some(seen), .. }) = &mut self.deep else { return false };
        if seen.states.len() < SEEN_MAX {
            !seen.states.insert(state)
        } else {
            seen.states.contains(&state)
        }
    }

    /// All that decides what can follow.
    fn state(&self, seen: &Seen, at: usize, from: usize, left: usize) -> Box<[u64]> {
        let p = self.p;
        let word = |n: usize| n as u64;
        let first = |line: usize| {
            let first = self.chosen.get(*self.starts.get(line)?)?;
            (first.line == line).then_some(first)
        };
        // What rules make of claims that have all their devices.
        let judged = p.axes.iter().zip(&self.tallies).enumerate().filter(|(at, (axis, tally))| {
            matches!(axis.kind, Kind::Wish | Kind::Near)
                && (tally.distinct > 1 || tally.joined == 0 && self.are_several(*at))
        });
        let judged = judged.fold(0, |bits, (at, _)| bits | 1 << at);
        let place = word(at) | word(left) << 16 | word(from) << 32;
        let mut state = vec![place, u64::from(self.alternatives), judged];
        self.add_mask(&mut state, |_| true);
        if seen.admin {
            self.add_mask(&mut state, |c| !p.lines[c.line].choices[c.choice].admin);
            self.add_mask(&mut state, |c| p.lines[c.line].claim == p.lines[at].claim);
        }
        if seen.shared {
            self.add_shares(&mut state);
        }
        for axis in &seen.axes[at] {
            self.add_axis(&mut state, *axis);
        }
        for line in 0..=at {
            if seen.choices {
                state.push(first(line).map_or(u64::MAX, |first| word(first.choice)));
            }
            if seen.ruled[at] && p.lines[line].claim == p.lines[at].claim {
                self.add_mask(&mut state, |c| c.line == line);
            }
            if seen.twins[line] > at {
                state.push(first(line).map_or(u64::MAX, |first| word(first.position)));
            }
        }
        state.into()
    }

    fn add_mask(&self, state: &mut Vec<u64>, which: impl Fn(&Chosen) -> bool) {
        let from = state.len();
        state.resize(from + self.p.words, 0);
        for chosen in self.chosen.iter().filter(|chosen| which(chosen)) {
            bits::set(&mut state[from..], chosen.position);
        }
    }

    /// What an axis has seen: its one value, or that there are several; of values that must differ all.
    fn add_axis(&self, state: &mut Vec<u64>, axis: usize) {
        let tally = &self.tallies[axis];
        let mut used = (0_u64..).zip(&tally.counts).filter(|(_, count)| **count > 0);
        match self.p.axes[axis].kind {
            Kind::Distinct => {
                state.push(tally.distinct as u64);
                state.extend(used.map(|(value, _)| value));
            }
            Kind::Match | Kind::Near | Kind::Wish => {
                let value = used.next().filter(|_| tally.distinct == 1);
                state.push(tally.distinct.min(2) as u64);
                state.push(value.map_or(0, |(value, _)| value));
                state.push(u64::from(tally.joined > 0));
            }
        }
    }

    /// Who has shares of what, and what is lost by them: each is rounded by itself.
    fn add_shares(&self, state: &mut Vec<u64>) {
        let toll = self.wear.toll(0);
        state.extend([toll.lost_mi, toll.shared_mi].map(u64::from));
        let mut shares: Vec<(usize, bool, &[i128])> = Vec::new();
        for chosen in &self.chosen {
            let choice = &self.p.lines[chosen.line].choices[chosen.choice];
            if let Some(draws) = choice.draws.get(chosen.position) {
                shares.push((chosen.position, choice.admin, draws));
            }
        }
        shares.sort_unstable();
        for (position, admin, draws) in shares {
            state.extend([position as u64, u64::from(admin), draws.len() as u64]);
            state.extend(draws.iter().flat_map(|draw| [*draw as u64, (*draw >> 64) as u64]));
        }
    }
}
