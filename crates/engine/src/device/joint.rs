//! What is missing where devices must go together: which rules are to blame beside the one that
//! fails, how many devices of each value or domain there are for each request, and which counter
//! ends what the others leave.
//!
//! Nothing here decides a reason: that is known already. A search that its own bound ends leaves out
//! what it would have told.

use std::collections::{BTreeMap, BTreeSet};

use crate::decision::{Beside, DeviceFacts, Joint, JointGroup, Proof, Unmet};
use crate::facts::{Align, Alternative, AttributeValue, ClaimSpec};

use super::charge::Charges;
use super::choose::{Want, index, offer};
use super::explain::{Sifted, about, alternative, feasible, number, stage_facts, value};
use super::problem::{Lens, Problem, Rule, rules};
use super::search::{Aim, search};
use super::sieve::{Stage, sieve};

/// Most values or domains that a reason tells of.
const GROUPS_MAX: usize = 2;

/// Most rules of which each is left out once.
const RULES_MAX: usize = 12;

/// Most values of one device, over all rules, that are told apart: lists multiply.
const KEYS_MAX: usize = 64;

/// Steps of a search that is only for words: a part of what is left.
fn few(steps: u64) -> u64 {
    steps / 8
}

/// Whether the question of `lens` has an answer where only the rules `keep` count; none where the
/// bound ends the search.
fn keeps(lens: &Lens<'_>, keep: &[usize], steps: &mut u64) -> Option<bool> {
    let mut at = 0;
    let mut kept = || {
        at += 1;
        keep.contains(&(at - 1))
    };
    let mut specs: Vec<(u16, ClaimSpec)> = Vec::new();
    let required = |aligns: &[Align], kept: &mut dyn FnMut() -> bool| -> Box<[Align]> {
        aligns.iter().filter(|align| align.required && kept()).copied().collect()
    };
    for (claim, spec) in lens.want.claims {
        let constraints = spec.constraints.iter().filter(|_| kept()).cloned().collect();
        let align = required(&spec.align, &mut kept);
        specs.push((*claim, ClaimSpec { constraints, align, ..(*spec).clone() }));
    }
    let align = required(lens.want.align, &mut kept);
    let claims: Vec<(u16, &ClaimSpec)> = specs.iter().map(|(at, spec)| (*at, spec)).collect();
    let want = Want { claims: &claims, align: &align, ..*lens.want };
    let mut own = few(*steps);
    let before = own;
    let found = feasible(Lens { want: &want, rules: usize::MAX, ..*lens }, &mut own);
    *steps -= before - own;
    found.ok()
}

/// The rules before the `n`th without which that could be kept, as indices, in their order.
pub(super) fn needed(lens: &Lens<'_>, n: usize, steps: &mut u64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    if n == 0 || keeps(lens, &[n], steps) == Some(false) {
        return Vec::new();
    }
    for rule in 0..n.min(RULES_MAX) {
        let without: Vec<usize> = all.iter().copied().filter(|one| *one != rule).collect();
        let tried: Vec<usize> = without.iter().copied().chain([n]).collect();
        if keeps(lens, &tried, steps) == Some(false) {
            all = without;
        }
    }
    all
}

/// The rules of these indices, as words name them.
pub(super) fn named(want: &Want<'_>, of: &[usize]) -> Box<[Beside]> {
    let all = rules(want);
    let name = |at: &usize| match all[*at] {
        Rule::Constraint(_, c) if c.distinct => Beside::Distinct(c.attribute.clone()),
        Rule::Constraint(_, c) => Beside::Match(c.attribute.clone()),
        Rule::Align(_, level) => Beside::Level(level),
    };
    let mut named: Vec<Beside> = Vec::new();
    for one in of.iter().map(name) {
        if !named.contains(&one) {
            named.push(one);
        }
    }
    named.into()
}

/// One request of several, with an alternative that can be met alone.
struct Part<'a> {
    line: usize,
    at: usize,
    alternative: &'a Alternative,
    facts: DeviceFacts,
    /// Devices that would do and are free.
    free: Vec<usize>,
    /// Devices that would do were all free.
    all: Vec<usize>,
}

/// The value of a device for each rule; none where the rule does not ask for one.
type Key = Vec<Option<String>>;

/// What is asked together, and what there is.
pub(super) struct Asked<'a> {
    lens: &'a Lens<'a>,
    parts: Vec<Part<'a>>,
    /// Parts that the same devices would do for.
    kinds: Vec<Vec<usize>>,
}

impl<'a> Asked<'a> {
    /// Those of `lines` that `rule` is about, each with the first alternative that can be met alone;
    /// all of them without a rule.
    pub(super) fn new(
        lens: &'a Lens<'a>,
        free: &Lens<'_>,
        lines: impl Iterator<Item = usize>,
        rule: Option<Rule<'_>>,
        steps: &mut u64,
    ) -> Self {
        let mut parts = Vec::new();
        for line in lines {
            let Some(at) = alone(lens, line, steps) else { continue };
            if rule.is_some_and(|rule| !about(lens.want, rule, line, at)) {
                continue;
            }
            let alternative = alternative(lens.want, line, at);
            let of = |lens: &Lens<'_>| Sifted::new(lens, alternative).fits;
            let facts = stage_facts(lens, line, at);
            parts.push(Part { line, at, alternative, facts, free: of(lens), all: of(free) });
        }
        let mut kinds: Vec<Vec<usize>> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let like = |kind: &&mut Vec<usize>| {
                kind.first().is_some_and(|first: &usize| parts[*first].all == part.all)
            };
            match kinds.iter_mut().find(like) {
                Some(kind) => kind.push(at),
                None => kinds.push(vec![at]),
            }
        }
        Self { lens, parts, kinds }
    }

    /// Whether several requests are asked together.
    pub(super) fn is_joint(&self) -> bool {
        self.parts.len() > 1
    }

    /// Whether these are the requests, each with its first alternative.
    pub(super) fn is_of(&self, lines: &[usize]) -> bool {
        self.parts.len() == lines.len()
            && self.parts.iter().zip(lines).all(|(part, line)| part.line == *line && part.at == 0)
    }

    /// The last of them: what it asks for, and what would do and is free.
    pub(super) fn last(&self) -> Option<(&'a Alternative, &[usize])> {
        self.parts.last().map(|part| (part.alternative, part.free.as_slice()))
    }

    /// How many devices they ask for.
    pub(super) fn asked(&self) -> u32 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.facts.asked))
    }

    /// What there is for them under these rules, the first of which names the groups; with the most
    /// that one group gives now, and with every device free.
    pub(super) fn joint(&self, rules: &[Rule<'_>]) -> (Joint, u32, u32) {
        let free: BTreeSet<usize> = self.parts.iter().flat_map(|p| &p.free).copied().collect();
        let mut groups = self.groups(rules);
        let most = |of: fn(&JointGroup) -> &Vec<u32>| {
            groups.iter().map(|group| self.useful(of(group))).max().unwrap_or(0)
        };
        let (now, if_free) = (most(|g| &g.free), most(|g| &g.all));
        let rank = |group: &JointGroup| self.lens.shape.devices[usize::from(group.leader)].rank;
        groups.sort_by_key(|group| {
            let near = (self.useful(&group.free), self.useful(&group.all));
            (std::cmp::Reverse(near), rank(group), group.element)
        });
        // Beside the nearest stands the first that has what that one lacks.
        let other = groups.first().and_then(|first| {
            let adds = |group: &JointGroup| {
                group.free.iter().zip(&first.free).any(|(has, had)| *has > 0 && *had == 0)
            };
            groups.iter().position(adds)
        });
        if let Some(other) = other {
            groups[1..=other].rotate_right(1);
        }
        let more = number(groups.len().saturating_sub(GROUPS_MAX));
        groups.truncate(GROUPS_MAX);
        let parts = self.parts.iter().map(|part| part.facts.clone()).collect();
        let free = number(free.len());
        (Joint { parts, kinds: self.kinds.clone(), groups, more, free }, now, if_free)
    }

    /// How many of the devices that are asked for these give, kind by kind.
    fn useful(&self, has: &[u32]) -> u32 {
        let mut sum = 0u32;
        for (kind, has) in self.kinds.iter().zip(has) {
            let asked = kind.iter().map(|at| self.parts[*at].facts.asked);
            sum = sum.saturating_add(asked.fold(0, u32::saturating_add).min(*has));
        }
        sum
    }

    /// The devices by what the rules read of them.
    fn groups(&self, rules: &[Rule<'_>]) -> Vec<JointGroup> {
        let mut keys: BTreeMap<Key, (usize, Option<u16>)> = BTreeMap::new();
        let rank = |at: usize| self.lens.shape.devices[at].rank;
        for part in &self.parts {
            for at in &part.all {
                let named = self.keys(part, *at, rules).into_iter().enumerate();
                for (element, key) in
                    named.filter(|(_, key)| key.first().is_some_and(Option::is_some))
                {
                    let element = self.is_list(part, *at, rules).then(|| index(element));
                    let leader = keys.entry(key).or_insert((*at, element));
                    if rank(*at) < rank(leader.0) {
                        *leader = (*at, element);
                    }
                }
            }
        }
        let group = |(key, (leader, element)): (&Key, &(usize, Option<u16>))| {
            let count = |of: for<'p> fn(&'p Part<'a>) -> &'p Vec<usize>| {
                let of_kind = |kind: &Vec<usize>| {
                    let Some(part) = kind.first().map(|at| &self.parts[*at]) else { return 0 };
                    let joins = |at: &&usize| {
                        let own = self.keys(part, **at, rules);
                        own.iter().any(|own| agree(own, key))
                    };
                    number(of(part).iter().filter(joins).count())
                };
                self.kinds.iter().map(of_kind).collect()
            };
            let (free, all) = (count(|part| &part.free), count(|part| &part.all));
            JointGroup { leader: index(*leader), element: *element, free, all }
        };
        keys.iter().map(group).collect()
    }

    /// Whether the first rule reads a list of the device, and no other rule takes part: then a key's
    /// place is that of its element.
    fn is_list(&self, part: &Part<'_>, at: usize, rules: &[Rule<'_>]) -> bool {
        let [Rule::Constraint(_, constraint)] = rules else { return false };
        let value = value(self.lens, part.alternative, at, &constraint.attribute);
        matches!(value, Ok(AttributeValue::List(_)))
    }

    /// The device's values for the rules: each way of taking one of each, where it has several.
    fn keys(&self, part: &Part<'_>, at: usize, rules: &[Rule<'_>]) -> Vec<Key> {
        let mut keys: Vec<Key> = vec![Vec::new()];
        for rule in rules {
            let Some(values) = self.values(part, at, *rule) else {
                keys.iter_mut().for_each(|key| key.push(None));
                continue;
            };
            let with = |key: Key| {
                values.iter().map(move |value| {
                    let mut key = key.clone();
                    key.push(Some(value.clone()));
                    key
                })
            };
            keys = keys.into_iter().flat_map(with).take(KEYS_MAX).collect();
        }
        keys
    }

    /// What the rule reads of the device; none where it asks nothing of it.
    fn values(&self, part: &Part<'_>, at: usize, rule: Rule<'_>) -> Option<Vec<String>> {
        let Lens { shape, want, .. } = *self.lens;
        if !about(want, rule, part.line, part.at) {
            return None;
        }
        let of_value = |value: &AttributeValue| match value {
            AttributeValue::List(all) => all.iter().map(|one| format!("{one:?}")).collect(),
            AttributeValue::Unset => Vec::new(),
            AttributeValue::Int(_)
            | AttributeValue::Bool(_)
            | AttributeValue::String(_)
            | AttributeValue::Version(_) => vec![format!("{value:?}")],
        };
        match rule {
            Rule::Constraint(_, constraint) if constraint.distinct => None,
            Rule::Constraint(_, constraint) => {
                let value = value(self.lens, part.alternative, at, &constraint.attribute);
                Some(value.map_or_else(|_| Vec::new(), of_value))
            }
            Rule::Align(_, level) if !shape.must_align(at, level) => None,
            Rule::Align(_, level) => {
                Some(shape.domain(at, level).iter().map(ToString::to_string).collect())
            }
        }
    }
}

/// Whether a device of the one key may stand in the group of the other.
fn agree(own: &Key, group: &Key) -> bool {
    own.iter().zip(group).all(|(own, of)| own.is_none() || of.is_none() || own == of)
}

/// The first alternative of a line that can be met alone.
fn alone(lens: &Lens<'_>, line: usize, steps: &mut u64) -> Option<usize> {
    let mut all = 0..super::explain::alternatives(lens.want, line);
    all.find(|at| {
        let one = Lens { lines: (line, line + 1), pins: &[*at], ..*lens };
        let mut own = few(*steps);
        let before = own;
        let found = feasible(one, &mut own);
        *steps -= before - own;
        matches!(found, Ok(true))
    })
}

/// What is left where devices are taken, and which.
pub(super) struct Taken<'a> {
    charges: Charges<'a>,
    devices: Vec<usize>,
}

impl<'a> Taken<'a> {
    /// The devices of an answer to `some`; none where it has none, or the bound ends the search.
    pub(super) fn by(some: Lens<'a>, steps: &mut u64) -> Option<Self> {
        let problem = Problem::new(some);
        let mut own = few(*steps);
        let before = own;
        let best = search(&problem, Aim::First, &mut own).best;
        *steps -= before - own;
        let mut taken = Self { charges: Charges::new(some.shape, some.usage), devices: Vec::new() };
        for pick in offer(&problem, best?, Proof::FirstFit).picks {
            let draws: Vec<i128> = pick.share.iter().flatten().map(|(_, draw)| *draw).collect();
            taken.charges.take(usize::from(pick.device), &draws, pick.admin);
            taken.devices.push(usize::from(pick.device));
        }
        Some(taken)
    }

    /// Nothing beside what is in use.
    pub(super) fn none(lens: &Lens<'a>) -> Self {
        Self { charges: Charges::new(lens.shape, lens.usage), devices: Vec::new() }
    }

    /// The first of `devices` that is not taken and that a counter, a counter set's compatibility
    /// groups or the capacity left keeps away from the alternative; with what is short in the facts.
    pub(super) fn shortage(
        &self,
        lens: &Lens<'_>,
        alternative: &Alternative,
        devices: &[usize],
        facts: &mut DeviceFacts,
    ) -> Option<usize> {
        let shape = lens.shape;
        let others = devices
            .iter()
            .copied()
            .filter(|at| shape.devices[*at].traits.shareable || !self.devices.contains(at));
        for at in others {
            if !self.charges.admits(at, alternative.admin) {
                self.of_counters(lens, at, facts);
                return Some(at);
            }
            let stage = sieve(shape, lens.usage, lens.want.matches, alternative, at);
            if let Stage::Fits(draws) = stage
                && let Some((name, amount)) = self.charges.short(at, &draws)
            {
                facts.resource = Some(name);
                facts.amount = Some(amount);
                facts.unmet = Some(Unmet::Short);
                return Some(at);
            }
        }
        None
    }

    fn of_counters(&self, lens: &Lens<'_>, at: usize, facts: &mut DeviceFacts) {
        let shape = lens.shape;
        let left = self.charges.left();
        match shape.takes(at).iter().find(|(counter, used)| left[*counter] < *used) {
            Some((counter, used)) => {
                facts.resource = Some(shape.counters[*counter].name.clone());
                facts.set = Some(shape.counters[*counter].set.clone());
                facts.amount = Some((*used, left[*counter]));
            }
            None => {
                let device = &shape.devices[at];
                let mut sets = device.traits.counters.iter().map(|used| &used.name);
                facts.set = sets.find(|set| shape.grouped(device.pool, set).is_some()).cloned();
            }
        }
    }
}
