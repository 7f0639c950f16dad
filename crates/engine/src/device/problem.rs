//! A question made ready for the search: devices as positions, rules as values of positions.
//!
//! A position is a device that at least one alternative could use, in the order in which sets are
//! compared: by name rank, or by upstream's order. Every rule and every part of the cost that looks
//! at several devices is an [`Axis`]: a small number for each position, of which the chosen ones must
//! be equal, must differ, or are counted.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::facts::{
    Align, Alternative, Amount, AttributeValue, ClaimSpec, Constraint, Level, Traits,
};

use super::bits::{self, Mask};
use super::choose::Want;
use super::packing::Packing;
use super::sets::{Link, SetRule, value_of};
use super::shape::Shape;
use super::sieve::{Stage, sieve};
use super::spans::Spans;
use super::unions::Unions;
use super::usage::Usage;

/// Devices that one claim's allocation can hold.
pub(super) const MOST: usize = 32;

/// The rule has nothing to do with the device; a constraint: the device lacks the attribute.
pub(super) const OUT: u16 = u16::MAX;
/// Its driver has part in the level, the device has not (a NIC and islands).
pub(super) const IDLE: u16 = u16::MAX - 1;
/// It has part in the level and no known domain.
pub(super) const LACK: u16 = u16::MAX - 2;
/// Its attribute has a value that upstream can't compare.
pub(super) const ODD: u16 = u16::MAX - 3;
/// It is a domain of its own.
pub(super) const SOLO: u16 = u16::MAX - 4;

/// Values from here on are the codes above.
pub(super) const CODES: u16 = SOLO;

/// What is asked of whom, and how much of it.
#[derive(Clone, Copy)]
pub(super) struct Lens<'a> {
    pub(super) shape: &'a Shape,
    pub(super) usage: &'a Usage,
    pub(super) want: &'a Want<'a>,
    /// Positions by name rank rather than by upstream's order.
    pub(super) by_rank: bool,
    /// Errors end the pod's attempt where upstream's search reaches them.
    pub(super) strict: bool,
    /// The requests looked at, counted over all claims.
    pub(super) lines: (usize, usize),
    /// The one alternative looked at of each of them; empty where all are.
    pub(super) pins: &'a [usize],
    /// Another number of devices than the alternative says.
    pub(super) ask: Option<usize>,
    /// Only so many of the hard rules.
    pub(super) rules: usize,
    /// Requests for network cards after all others, whatever the order of the claims: their places
    /// depend on what they serve.
    pub(super) cards_last: bool,
}

impl<'a> Lens<'a> {
    /// The whole question.
    pub(super) fn whole(shape: &'a Shape, usage: &'a Usage, want: &'a Want<'a>) -> Self {
        let lines = (0, want.claims.iter().map(|(_, c)| c.requests.len()).sum());
        let rules = usize::MAX;
        let (by_rank, strict, pins, ask) = (true, false, &[][..], None);
        let cards_last = false;
        Self { shape, usage, want, by_rank, strict, lines, pins, ask, rules, cards_last }
    }
}

/// A hard rule over several devices.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule<'a> {
    /// A constraint of the claim of this index in the want.
    Constraint(usize, &'a Constraint),
    /// A required level, of a claim or (none) of the pod.
    Align(Option<usize>, Level),
}

/// All hard rules in the order in which they are named: claim by claim its constraints and levels,
/// then the pod's levels.
pub(super) fn rules<'a>(want: &Want<'a>) -> Vec<Rule<'a>> {
    let required = |aligns: &'a [Align], claim: Option<usize>| {
        aligns.iter().filter(|a| a.required).map(move |a| Rule::Align(claim, a.level))
    };
    let mut rules = Vec::new();
    for (at, (_, spec)) in want.claims.iter().enumerate() {
        rules.extend(spec.constraints.iter().map(|c| Rule::Constraint(at, c)));
        rules.extend(required(&spec.align, Some(at)));
    }
    rules.extend(required(want.align, None));
    rules
}

/// Whether `constraint` is about this alternative of this request.
pub(super) fn covers(
    constraint: &Constraint,
    spec: &ClaimSpec,
    request: usize,
    alt: usize,
) -> bool {
    let request = &spec.requests[request];
    let sub = request.alternatives[alt].name.as_ref();
    constraint.requests.is_empty()
        || constraint.requests.iter().any(|name| match name.split_once('/') {
            None => *name == request.name,
            Some((main, wanted)) => *main == *request.name && sub.is_some_and(|s| **s == *wanted),
        })
}

/// How an axis judges the values of the chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All have the attribute, with one value.
    Match,
    /// All have the attribute, each with its own value.
    Distinct,
    /// Those who have part in the level have one domain.
    Near,
    /// As `Near`, but only a wish.
    Wish,
}

/// Values of positions, by which the chosen are judged.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) kind: Kind,
    pub(super) value: Vec<u16>,
    /// Values from here on are of one device each, which has no domain that is known.
    pub(super) alone: u16,
    /// It is about all of the pod's devices, also those that are not chosen here.
    pub(super) of_pod: bool,
    /// Positions by value; for `Near` and `Match`, those that may stand beside one of that value.
    pub(super) same: Vec<Mask>,
    /// Some value can't be compared: the order of the devices matters, and the whole set is judged.
    pub(super) loose: bool,
    /// Somebody chosen must have part in the level.
    pub(super) known: bool,
}

/// One request.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Index into the want's claims.
    pub(super) claim: usize,
    /// Index into the claim's requests.
    pub(super) request: usize,
    pub(super) choices: Vec<Choice<'a>>,
    /// The line before that asks for the same, or that begins a claim that does: what the two get
    /// may be taken in order.
    pub(super) twin: Option<usize>,
}

impl Line<'_> {
    /// Whether no alternative has the devices that it asks for.
    fn is_short(&self) -> bool {
        self.choices.iter().all(|choice| bits::count(&choice.fit) < choice.count)
    }
}

/// One alternative of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice<'a> {
    pub(super) alternative: usize,
    pub(super) count: usize,
    pub(super) admin: bool,
    /// Positions that fit by themselves.
    pub(super) fit: Mask,
    /// What a share of each position takes; empty where nothing is shareable.
    pub(super) draws: Vec<Vec<i128>>,
    /// The axes that judge it.
    pub(super) axes: Vec<usize>,
    /// The least that so many devices of it add, from none to all that it asks for.
    pub(super) least: Vec<Least>,
    /// The rules over sets that judge it.
    pub(super) sets: Vec<Link<'a>>,
}

/// The least that a number of devices adds to what a set takes from later requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Least {
    /// Untouched wholes touched.
    pub(super) wholes: u16,
    /// Size lost, in Mi.
    pub(super) lost_mi: u32,
}

impl Least {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            wholes: self.wholes.saturating_add(other.wholes),
            lost_mi: self.lost_mi.saturating_add(other.lost_mi),
        }
    }

    /// The lesser of both, part by part.
    fn or(self, other: Self) -> Self {
        Self { wholes: self.wholes.min(other.wholes), lost_mi: self.lost_mi.min(other.lost_mi) }
    }
}

/// The question.
pub(super) struct Problem<'a> {
    pub(super) lens: Lens<'a>,
    /// The device at each position.
    pub(super) order: Vec<usize>,
    /// Devices of the pod's claims that were allocated before.
    pub(super) fixed: Vec<usize>,
    pub(super) words: usize,
    pub(super) lines: Vec<Line<'a>>,
    pub(super) axes: Vec<Axis>,
    pub(super) sets: Vec<SetRule>,
    pub(super) spans: Spans,
    /// The position before, of those that are interchangeable with this one.
    pub(super) before: Vec<Option<usize>>,
    /// Of positions on a GPU that is given out in partitions: its counter set, and the one before that
    /// is alike.
    pub(super) units: Vec<Option<(usize, usize)>>,
    /// How GPUs that are given out in partitions can be packed.
    pub(super) packing: Option<Packing>,
    /// What all sets of its devices come to, once a search has asked for it.
    pub(super) unions: OnceCell<Option<Unions>>,
    /// Most devices that the lines from here on can take.
    pub(super) rest: Vec<usize>,
    /// The least that the lines from here on add.
    pub(super) rest_least: Vec<Least>,
    /// It was seen at once that nothing fits; what only a search needs was left out then.
    pub(super) hopeless: bool,
}

impl<'a> Problem<'a> {
    pub(super) fn new(lens: Lens<'a>) -> Self {
        let mut problem = Self {
            lens,
            order: Vec::new(),
            fixed: Vec::new(),
            words: 0,
            lines: Vec::new(),
            axes: Vec::new(),
            sets: Vec::new(),
            spans: Spans::default(),
            before: Vec::new(),
            units: Vec::new(),
            packing: None,
            unions: OnceCell::new(),
            rest: Vec::new(),
            rest_least: Vec::new(),
            hopeless: false,
        };
        problem.fixed = lens.want.fixed.iter().map(|at| usize::from(*at)).collect();
        problem.fixed.sort_unstable();
        problem.fixed.dedup();
        let sieved = problem.sieve_all();
        problem.place(&sieved);
        problem.fill_lines(sieved);
        // Rules only take from what fits: without enough of it nothing more need be worked out.
        problem.hopeless = problem.lines.iter().any(|line| line.is_short());
        if problem.hopeless {
            return problem;
        }
        problem.add_axes();
        problem.narrow();
        if problem.hopeless {
            return problem;
        }
        problem.spans = Spans::of(&problem);
        if lens.cards_last {
            let spans = &problem.spans;
            problem.lines.sort_by_key(|line| spans.is_for_cards(line));
        }
        problem.before = super::twins::twins(&problem);
        problem.units = super::units::units(&problem);
        if lens.cards_last {
            problem.keep_names();
        }
        for at in 1..problem.lines.len() {
            problem.lines[at].twin = problem.twin(at);
        }
        problem.rest = vec![0; problem.lines.len() + 1];
        for at in (0..problem.lines.len()).rev() {
            let most = problem.lines[at].choices.iter().map(|c| c.count).max();
            problem.rest[at] = problem.rest[at + 1] + most.unwrap_or(0);
        }
        if lens.by_rank {
            problem.weigh();
            problem.packing = Packing::of(&problem);
        }
        problem
    }

    /// The requests looked at, as claim and request.
    fn asked(&self) -> Vec<(usize, usize)> {
        let claims = self.lens.want.claims.iter().enumerate();
        let all = claims.flat_map(|(at, (_, spec))| (0..spec.requests.len()).map(move |r| (at, r)));
        all.take(self.lens.lines.1).skip(self.lens.lines.0).collect()
    }

    fn sieve_all(&mut self) -> Vec<Vec<(usize, Vec<Stage>)>> {
        let Lens { shape, usage, want, pins, .. } = self.lens;
        let mut all = Vec::new();
        for (line, (claim, request)) in self.asked().into_iter().enumerate() {
            let alternatives = &want.claims[claim].1.requests[request].alternatives;
            let mut of_line = Vec::new();
            for (at, alternative) in alternatives.iter().enumerate() {
                if pins.get(line).is_some_and(|pin| *pin != at) {
                    continue;
                }
                let see = |device| sieve(shape, usage, want.matches, alternative, device);
                of_line.push((at, (0..shape.devices.len()).map(see).collect()));
            }
            all.push(of_line);
            self.lines.push(Line { claim, request, choices: Vec::new(), twin: None });
        }
        all
    }

    /// Gives a position to each device that fits somewhere.
    fn place(&mut self, sieved: &[Vec<(usize, Vec<Stage>)>]) {
        let shape = self.lens.shape;
        let useful = |at: usize| {
            sieved.iter().flatten().any(|(_, stages)| match stages[at] {
                Stage::Fits(_) => true,
                Stage::Faulty
                | Stage::Hidden
                | Stage::No(_)
                | Stage::Error(_)
                | Stage::Barred
                | Stage::Tainted(_)
                | Stage::Taken
                | Stage::Unfit(_)
                | Stage::Short(_) => false,
            })
        };
        let mut order: Vec<usize> = (0..shape.devices.len()).filter(|at| useful(*at)).collect();
        if self.lens.by_rank {
            order.sort_by_key(|at| shape.devices[*at].rank);
        }
        self.words = bits::words(order.len());
        self.order = order;
    }

    fn fill_lines(&mut self, sieved: Vec<Vec<(usize, Vec<Stage>)>>) {
        let want = self.lens.want;
        for (line, of_line) in self.lines.iter_mut().zip(sieved) {
            let request = &want.claims[line.claim].1.requests[line.request];
            for (at, mut stages) in of_line {
                let alternative = &request.alternatives[at];
                let Some(count) = count(alternative, &stages, self.lens.ask) else { continue };
                let mut choice = Choice {
                    alternative: at,
                    count,
                    admin: alternative.admin,
                    fit: vec![0; self.words],
                    draws: Vec::new(),
                    axes: Vec::new(),
                    least: Vec::new(),
                    sets: Vec::new(),
                };
                for (position, device) in self.order.iter().enumerate() {
                    let stage = std::mem::replace(&mut stages[*device], Stage::Taken);
                    let Stage::Fits(draws) = stage else { continue };
                    bits::set(&mut choice.fit, position);
                    if !draws.is_empty() {
                        choice.draws.resize(self.order.len(), Vec::new());
                        choice.draws[position] = draws;
                    }
                }
                line.choices.push(choice);
            }
        }
    }

    /// Hard rules and wishes become axes of the choices that they are about.
    fn add_axes(&mut self) {
        let want = self.lens.want;
        for rule in rules(want).into_iter().take(self.lens.rules) {
            match rule {
                Rule::Constraint(claim, constraint) => self.add_constraint(claim, constraint),
                Rule::Align(claim, level) => self.add_level(Kind::Near, claim, level),
            }
        }
        let wished = |aligns: &'a [Align]| aligns.iter().filter(|a| !a.required);
        for (at, (_, spec)) in want.claims.iter().enumerate() {
            for align in wished(&spec.align) {
                self.add_level(Kind::Wish, Some(at), align.level);
            }
        }
        for align in wished(want.align) {
            self.add_level(Kind::Wish, None, align.level);
        }
    }

    fn add_constraint(&mut self, claim: usize, constraint: &Constraint) {
        let spec = self.lens.want.claims[claim].1;
        if self.is_of_sets(spec, constraint) {
            self.add_set(claim, constraint);
            return;
        }
        let mut known: Vec<&AttributeValue> = Vec::new();
        let mut value = Vec::with_capacity(self.order.len());
        for device in &self.order {
            let traits: &Traits = &self.lens.shape.devices[*device].traits;
            value.push(match traits.attribute(&constraint.attribute) {
                None => OUT,
                Some(v) if !v.is_scalar() => ODD,
                Some(v) => number(&mut known, v),
            });
        }
        let kind = if constraint.distinct { Kind::Distinct } else { Kind::Match };
        let at = self.axes.len();
        let lacking = mask_of(self.words, &value, |v| v == OUT);
        let mut loose = false;
        for line in self.lines.iter_mut().filter(|l| l.claim == claim) {
            for choice in &mut line.choices {
                if !covers(constraint, spec, line.request, choice.alternative) {
                    continue;
                }
                choice.axes.push(at);
                choice.fit.iter_mut().zip(&lacking).for_each(|(fit, lack)| *fit &= !lack);
                loose |= bits::iter(&choice.fit).any(|p| value[p] == ODD);
            }
        }
        let same = masks(self.words, &value, known.len(), |_| false);
        let (alone, of_pod) = (CODES, false);
        self.axes.push(Axis { kind, value, alone, of_pod, same, loose, known: false });
    }

    /// Whether a constraint compares more than one scalar a device.
    fn is_of_sets(&self, spec: &ClaimSpec, constraint: &Constraint) -> bool {
        let list = |device: &usize| {
            let traits: &Traits = &self.lens.shape.devices[*device].traits;
            matches!(traits.attribute(&constraint.attribute), Some(AttributeValue::List(_)))
        };
        let mut alternatives = spec.requests.iter().flat_map(|r| &r.alternatives);
        alternatives.any(|a| a.derives(&constraint.attribute).is_some())
            || self.order.iter().any(list)
    }

    fn add_set(&mut self, claim: usize, constraint: &Constraint) {
        let Lens { shape, want, .. } = self.lens;
        let spec = want.claims[claim].1;
        let (rule, words) = (self.sets.len(), self.words);
        let mut loose = false;
        for line in self.lines.iter_mut().filter(|l| l.claim == claim) {
            let request = &spec.requests[line.request];
            for choice in &mut line.choices {
                if !covers(constraint, spec, line.request, choice.alternative) {
                    continue;
                }
                let alternative = &request.alternatives[choice.alternative];
                let value = |device: &usize| {
                    let traits: &'a Traits = &shape.devices[*device].traits;
                    value_of(want.matches, alternative, traits, &constraint.attribute).ok()
                };
                let values: Vec<Option<&AttributeValue>> = self.order.iter().map(value).collect();
                let lacking = mask_of(words, &values, |value| value.is_none());
                choice.fit.iter_mut().zip(&lacking).for_each(|(fit, lack)| *fit &= !lack);
                loose |= values.contains(&Some(&AttributeValue::Unset));
                choice.sets.push(Link { rule, values });
            }
        }
        self.sets.push(SetRule { distinct: constraint.distinct, loose });
    }

    /// Whether the order of the devices matters to some rule.
    pub(super) fn is_loose(&self) -> bool {
        self.axes.iter().any(|axis| axis.loose) || self.sets.iter().any(|rule| rule.loose)
    }

    fn add_level(&mut self, kind: Kind, claim: Option<usize>, level: Level) {
        let shape = self.lens.shape;
        let of_pod = claim.is_none();
        let mut known: Vec<u16> = Vec::new();
        let mut value = Vec::with_capacity(self.order.len() + self.fixed.len());
        let fixed = self.fixed.iter().filter(|_| of_pod);
        for device in self.order.iter().chain(fixed) {
            value.push(if !shape.joins(*device, level) {
                OUT
            } else if !shape.must_align(*device, level) {
                IDLE
            } else {
                shape.domain(*device, level).map_or(LACK, |domain| number(&mut known, domain))
            });
        }
        // A device whose domain is not known is in the domain of no other.
        let alone = u16::try_from(known.len()).unwrap_or(CODES);
        let mut next = alone;
        let devices: Vec<usize> = self.order.iter().chain(&self.fixed).copied().collect();
        for at in (0..value.len()).filter(|at| value[*at] == LACK).collect::<Vec<_>>() {
            // The pod may look at what it has already.
            let same = (0..at).find(|before| devices[*before] == devices[at]);
            value[at] = same.map_or(next.min(CODES - 1), |same| value[same]);
            next = next.saturating_add(u16::from(same.is_none()));
        }
        let at = self.axes.len();
        let of_order = &value[..self.order.len()];
        let same = masks(self.words, of_order, usize::from(next), |v| v == OUT || v == IDLE);
        // What the pod has already binds what it gets; where that is apart by itself, nothing will do.
        let of_fixed = value[self.order.len()..].iter().filter(|_| kind == Kind::Near);
        let mut bound: Vec<&Mask> = of_fixed.filter_map(|v| same.get(usize::from(*v))).collect();
        let nothing = vec![0; self.words];
        let of_fixed: BTreeSet<u16> = value[self.order.len()..].iter().copied().collect();
        if kind == Kind::Near && of_fixed.iter().filter(|v| **v < next).count() > 1 {
            bound.push(&nothing);
        }
        let mut inside = 0;
        for line in self.lines.iter_mut().filter(|l| claim.is_none_or(|c| c == l.claim)) {
            inside += 1;
            for choice in &mut line.choices {
                choice.axes.push(at);
                for allowed in &bound {
                    choice.fit.iter_mut().zip(*allowed).for_each(|(fit, may)| *fit &= may);
                }
            }
        }
        let claims = self.lens.want.claims.iter().enumerate();
        let scope = claims.filter(|(c, _)| claim.is_none_or(|claim| claim == *c));
        let wanted: usize = scope.map(|(_, (_, spec))| spec.requests.len()).sum();
        let known = inside == wanted && inside > 0;
        self.axes.push(Axis { kind, value, alone, of_pod, same, loose: false, known });
    }

    /// Whether it is worth while, and changes nothing but the order of names, to go through requests
    /// for network cards after all others.
    pub(super) fn could_put_cards_last(&self) -> bool {
        let cards = |line: &Line| self.spans.is_for_cards(line);
        let first = self.lines.iter().position(cards);
        let last = self.lines.iter().rposition(|line| !cards(line));
        let mut choices = self.lines.iter().flat_map(|line| &line.choices);
        self.spans.cards.is_some()
            && first.zip(last).is_some_and(|(first, last)| first < last)
            && choices.all(|choice| !choice.admin)
            && !self.is_loose()
    }

    /// Devices that stand for each other are taken in order by those who come first. Where requests
    /// for network cards do not come as they are named, the others must not have them in order too.
    fn keep_names(&mut self) {
        let fits = |line: &Line<'_>, at| line.choices.iter().any(|c| bits::has(&c.fit, at));
        let (cards, others): (Vec<&Line<'_>>, Vec<&Line<'_>>) =
            self.lines.iter().partition(|line| self.spans.is_for_cards(line));
        for at in 0..self.order.len() {
            let both = [&cards, &others].iter().all(|of| of.iter().any(|line| fits(line, at)));
            if both {
                self.before[at] = None;
                self.units.clear();
            }
        }
    }

    /// Of each whole island: whether no set uses it up.
    pub(super) fn breaks(&self) -> &[bool] {
        self.packing.as_ref().map_or(&[], |packing| &packing.breaks)
    }

    /// Whether the device at a position is the pod's already.
    pub(super) fn is_fixed(&self, position: usize) -> bool {
        !self.fixed.is_empty() && self.fixed.contains(&self.order[position])
    }

    /// Works out the least that each choice, and all lines from each on, take from later requests.
    fn weigh(&mut self) {
        let shape = self.lens.shape;
        for choice in self.lines.iter_mut().flat_map(|l| &mut l.choices) {
            let mut each: Vec<Least> = Vec::with_capacity(self.order.len());
            for position in bits::iter(&choice.fit) {
                let device = self.order[position];
                let traits = &shape.devices[device].traits;
                each.push(match choice.admin || traits.shareable {
                    true => Least::default(),
                    false => Least {
                        wholes: u16::from(traits.counters.is_empty()),
                        lost_mi: shape.stock.size[device],
                    },
                });
            }
            each.sort_unstable_by_key(|least| least.lost_mi);
            let wholes = each.iter().map(|least| least.wholes).min().unwrap_or(0);
            let mut sum = Least::default();
            choice.least = vec![sum];
            for one in each.iter().take(choice.count) {
                sum = sum.and(Least { wholes, lost_mi: one.lost_mi });
                choice.least.push(sum);
            }
        }
        self.rest_least = vec![Least::default(); self.lines.len() + 1];
        for at in (0..self.lines.len()).rev() {
            let all = self.lines[at].choices.iter().filter_map(|c| c.least.last().copied());
            self.rest_least[at] =
                self.rest_least[at + 1].and(all.reduce(Least::or).unwrap_or_default());
        }
    }

    /// Strikes out values whose group is too small for what is asked of it, and sees at once where
    /// nothing can fit. Only lines of exclusive devices, which can't overlap, are counted.
    fn narrow(&mut self) {
        let shape = self.lens.shape;
        let shareable = mask_of(self.words, &self.order, |d| shape.devices[d].traits.shareable);
        let takes =
            |choice: &Choice<'_>| !choice.admin && bits::count_both(&choice.fit, &shareable) == 0;
        for axis in 0..self.axes.len() + 1 {
            let mut needed = 0;
            let mut group = vec![0; self.words];
            for line in &self.lines {
                let of_axis = |c: &Choice<'_>| axis == self.axes.len() || c.axes.contains(&axis);
                if line.choices.iter().all(|c| takes(c) && of_axis(c)) {
                    needed += line.choices.iter().map(|c| c.count).min().unwrap_or(0);
                    for choice in &line.choices {
                        group.iter_mut().zip(&choice.fit).for_each(|(g, fit)| *g |= fit);
                    }
                }
            }
            self.hopeless |= bits::count(&group) < needed;
            let Some(Axis { kind, same, loose: false, .. }) = self.axes.get(axis) else { continue };
            match kind {
                Kind::Wish => {}
                Kind::Distinct => {
                    let there = same.iter().filter(|s| bits::count_both(s, &group) > 0).count();
                    self.hopeless |= there < needed;
                }
                Kind::Match | Kind::Near => {
                    let small = |v: u16| {
                        same.get(usize::from(v))
                            .is_some_and(|s| bits::count_both(s, &group) < needed)
                    };
                    let gone =
                        mask_of(self.words, &self.axes[axis].value[..self.order.len()], small);
                    let choices = self.lines.iter_mut().flat_map(|l| &mut l.choices);
                    for choice in choices.filter(|c| c.axes.contains(&axis)) {
                        choice.fit.iter_mut().zip(&gone).for_each(|(fit, gone)| *fit &= !gone);
                    }
                }
            }
        }
        for line in &mut self.lines {
            line.choices.retain(|c| bits::count(&c.fit) >= c.count);
        }
        self.hopeless |= self.lines.iter().any(|l| l.choices.is_empty());
    }

    /// The line that asks for the same as line `at`, so that exchanging what they (or their claims)
    /// get changes nothing but the order of names.
    fn twin(&self, at: usize) -> Option<usize> {
        let lines = &self.lines;
        if self.is_loose() {
            return None;
        }
        if lines[at - 1].claim == lines[at].claim && lines[at - 1].choices == lines[at].choices {
            return Some(at - 1);
        }
        // Claims whose requests are not gone through in order are not taken in order either.
        if self.lens.cards_last {
            return None;
        }
        let claims = self.lens.want.claims;
        let (claim, spec) = (lines[at].claim, claims[lines[at].claim].1);
        let of = spec.requests.len();
        let before = at.checked_sub(of)?;
        let whole = lines[at].request == 0 && lines[before].request == 0 && at + of <= lines.len();
        let equal = claim > 0 && lines[before].claim == claim - 1 && claims[claim - 1].1 == spec;
        // One who only looks may come after one who takes, and not the other way round.
        let apart = |n: usize| of == 1 || lines[at + n].choices.iter().all(|c| !c.admin);
        let alike = |n: usize| alike(&lines[before + n].choices, &lines[at + n].choices);
        (whole && equal && (0..of).all(|n| apart(n) && alike(n))).then_some(before)
    }
}

/// Whether the choices differ in nothing but the axes of their own claims.
fn alike(a: &[Choice<'_>], b: &[Choice<'_>]) -> bool {
    let same = |(a, b): (&Choice<'_>, &Choice<'_>)| {
        a.alternative == b.alternative
            && a.count == b.count
            && a.fit == b.fit
            && a.draws == b.draws
            && a.sets.iter().map(|l| &l.values).eq(b.sets.iter().map(|l| &l.values))
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// How many devices the alternative asks for; none where it can't be met whatever is chosen.
fn count(alternative: &Alternative, stages: &[Stage], ask: Option<usize>) -> Option<usize> {
    match alternative.amount {
        Amount::Count(count) => Some(ask.unwrap_or(count as usize)),
        Amount::All => {
            let mut fits = 0;
            for stage in stages {
                match stage {
                    Stage::Fits(_) => fits += 1,
                    Stage::Barred | Stage::Tainted(_) | Stage::Taken | Stage::Short(_)
                        if ask.is_none() =>
                    {
                        return None;
                    }
                    Stage::Faulty
                    | Stage::Hidden
                    | Stage::No(_)
                    | Stage::Error(_)
                    | Stage::Barred
                    | Stage::Tainted(_)
                    | Stage::Taken
                    | Stage::Short(_)
                    | Stage::Unfit(_) => {}
                }
            }
            (fits > 0).then_some(ask.unwrap_or(fits))
        }
    }
}

/// The number of a value, by first appearance.
pub(super) fn number<T: PartialEq>(known: &mut Vec<T>, value: T) -> u16 {
    let at = known.iter().position(|k| *k == value).unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    });
    u16::try_from(at).unwrap_or(CODES).min(CODES - 1)
}

fn mask_of<T: Copy>(words: usize, values: &[T], is: impl Fn(T) -> bool) -> Mask {
    let mut mask = vec![0; words];
    for (at, value) in values.iter().enumerate() {
        if is(*value) {
            bits::set(&mut mask, at);
        }
    }
    mask
}

fn masks(words: usize, values: &[u16], n: usize, also: impl Fn(u16) -> bool) -> Vec<Mask> {
    (0..n).map(|own| mask_of(words, values, |v| usize::from(v) == own || also(v))).collect()
}
