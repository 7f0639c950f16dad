//! How many of each role start, where any so many of several roles do.

use super::choose::{Choices, DEPTH_MAX, Guide};
use crate::part::AnyOf;

/// Counts under way.
pub(super) struct Filling<'c, 'g> {
    choices: &'c Choices,
    /// Minima, each with its roles in the order in which they come.
    any: Vec<(&'c AnyOf, Vec<u16>)>,
    /// By role, how many may start.
    may: Vec<u32>,
    /// By role, how many do.
    seats: Vec<u32>,
    steps: usize,
    most: usize,
    all: Vec<Vec<u32>>,
    cut: bool,
    guide: &'c Guide<'g>,
}

impl<'c, 'g> Filling<'c, 'g> {
    /// From the least to the most of each role, until each of these minima is met. No more than so many.
    pub(super) fn new(
        choices: &'c Choices,
        any: Vec<&'c AnyOf>,
        (seats, may): (Vec<u32>, Vec<u32>),
        most: usize,
        guide: &'c Guide<'g>,
    ) -> Self {
        let in_order = |any: &'c AnyOf| {
            let mut roles = any.roles.to_vec();
            roles.sort_by_key(|role| guide.size(*role));
            (any, roles)
        };
        let (any, all, steps) =
            (any.into_iter().map(in_order).collect(), Vec::new(), choices.steps());
        Self { choices, any, may, seats, steps, most, all, cut: false, guide }
    }

    /// All that are just enough, those with most of the first roles first; and whether there are more.
    pub(super) fn all(mut self) -> (Vec<Vec<u32>>, bool) {
        match self.any.iter().map(|(_, roles)| roles.len()).sum::<usize>() > DEPTH_MAX {
            true => self.first(),
            false => self.fill(0, 0),
        }
        (self.all, self.cut)
    }

    /// The first alone.
    fn first(&mut self) {
        self.cut = true;
        for next in 0..self.any.len() {
            let (any, roles) = self.any[next].clone();
            for role in roles {
                let lacking = self.choices.lacking(any, &self.seats);
                let (at, open) = (usize::from(role), self.open(role));
                let more = self.most_hopeful(at, open.min(lacking));
                self.set(at, self.seats.get(at).copied().unwrap_or(0) + more);
            }
            if self.choices.lacking(any, &self.seats) > 0 {
                return;
            }
        }
        self.all.push(self.seats.clone());
    }

    /// Meets the minima from this one on, with the roles of this one from there on.
    fn fill(&mut self, next: usize, from: usize) {
        let Some((any, roles)) = self.any.get(next) else {
            match self.all.len() < self.most {
                true => self.all.push(self.seats.clone()),
                false => self.cut = true,
            }
            return;
        };
        let lacking = self.choices.lacking(any, &self.seats);
        if lacking == 0 {
            return self.fill(next + 1, 0);
        }
        let rest = roles.get(from..).unwrap_or_default();
        let room = rest.iter().map(|role| self.open(*role)).fold(0, u32::saturating_add);
        let (Some(role), true) = (rest.first().copied(), room >= lacking) else { return };
        if self.cut && self.all.len() >= self.most {
            return;
        }
        let Some(steps) = self.steps.checked_sub(1) else {
            self.cut = true;
            return;
        };
        self.steps = steps;
        let (at, open) = (usize::from(role), self.open(role));
        let before = self.seats.get(at).copied().unwrap_or(0);
        for more in (0..=self.most_hopeful(at, open.min(lacking))).rev() {
            // Those that come after must still be enough.
            if room - open + more < lacking {
                break;
            }
            self.set(at, before + more);
            self.fill(next, from + 1);
        }
        self.set(at, before);
    }

    fn set(&mut self, at: usize, count: u32) {
        if let Some(seats) = self.seats.get_mut(at) {
            *seats = count;
        }
    }

    /// How many more of a role may start.
    fn open(&self, role: u16) -> u32 {
        let of = |counts: &[u32]| counts.get(usize::from(role)).copied().unwrap_or(0);
        of(&self.may).saturating_sub(of(&self.seats))
    }

    /// The most members more of a role, up to so many, that are not without hope: more of them never have
    /// more hope.
    fn most_hopeful(&self, at: usize, most: u32) -> u32 {
        let before = self.seats.clone();
        let (mut hopeful, mut end) = (0, most + 1);
        let mut next = most;
        while hopeful + 1 < end {
            let mut with = before.clone();
            if let Some(seats) = with.get_mut(at) {
                *seats += next;
            }
            match (self.guide.hopeless)(&with) {
                true => end = next,
                false => hopeful = next,
            }
            next = hopeful + (end - hopeful) / 2;
        }
        hopeful
    }
}
