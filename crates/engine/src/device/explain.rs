//! Why no set fits: the first request that fails by itself, at the check that leaves it too few; or
//! that the requests can't be met together.
//!
//! What no count shows is asked of the search: the same question with one request, with only the
//! first few rules, with fewer devices, with every device free.

use std::collections::BTreeMap;

use crate::decision::DeviceFacts;
use crate::facts::{Alternative, Amount, AttributeValue, DeviceRequest, Level, Traits};
use crate::name::{Name, SelectorId};
use crate::reason::Reason;

use super::choose::{Failure, Want, index};
use super::joint::{Asked, Taken, named, needed};
use super::problem::{Lens, MOST, Problem, Rule, covers, rules};
use super::search::{Aim, search};
use super::sets::{Lack, value_of};
use super::shape::{PoolTrouble, Shape};
use super::sieve::{Stage, sieve, untolerated, verdict};
use super::usage::Usage;

/// The bound ended a search.
pub(super) struct Cut;

/// Why one alternative fails.
struct Failed {
    reason: Reason,
    device: Option<usize>,
    facts: Box<DeviceFacts>,
}

impl Failed {
    fn new(reason: Reason, device: Option<usize>, facts: DeviceFacts) -> Self {
        Self { reason, device, facts: Box::new(facts) }
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        let Failed { reason, device, facts } = failed;
        Self::Reason { reason, device: device.map(index), facts }
    }
}

/// Says why the question of `lens` has no answer.
pub(super) fn explain(lens: &Lens<'_>, steps: &mut u64) -> Failure {
    let lens = &Lens { by_rank: true, strict: false, ..*lens };
    for line in lens.lines.0..lens.lines.1 {
        match line_alone(lens, line, steps) {
            Ok(None) => {}
            Ok(Some(failed)) => return failed.into(),
            Err(Cut) => return Failure::Bounded,
        }
    }
    match together(lens, steps) {
        Ok(failed) => failed.into(),
        Err(Cut) => Failure::Bounded,
    }
}

/// The request of a line, with the index of its claim in the want and its own in the claim.
fn request<'a>(want: &Want<'a>, line: usize) -> (usize, usize, &'a DeviceRequest) {
    let mut first = 0;
    let mut of = 0;
    for (_, spec) in want.claims {
        if line < first + spec.requests.len() {
            break;
        }
        first += spec.requests.len();
        of += 1;
    }
    (of, line - first, &want.claims[of].1.requests[line - first])
}

/// An alternative of a line.
pub(super) fn alternative<'a>(want: &Want<'a>, line: usize, at: usize) -> &'a Alternative {
    &request(want, line).2.alternatives[at]
}

/// How many alternatives a line has.
pub(super) fn alternatives(want: &Want<'_>, line: usize) -> usize {
    request(want, line).2.alternatives.len()
}

/// A count, as facts hold it.
pub(super) fn number(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// Whether the question has an answer.
pub(super) fn feasible(lens: Lens<'_>, steps: &mut u64) -> Result<bool, Cut> {
    let outcome = search(&Problem::new(lens), Aim::First, steps);
    if outcome.cut { Err(Cut) } else { Ok(outcome.best.is_some()) }
}

/// Why a request fails by itself: of its alternatives the one that gets furthest.
fn line_alone(lens: &Lens<'_>, line: usize, steps: &mut u64) -> Result<Option<Failed>, Cut> {
    let mut furthest: Option<Failed> = None;
    let (claim, _, request) = request(lens.want, line);
    if request.alternatives.is_empty() {
        let claim = lens.want.claims[claim].0;
        let request = Some(request.name.clone());
        let facts = DeviceFacts { claim, request, ..DeviceFacts::default() };
        return Ok(Some(Failed::new(Reason::RequestUnsupported, None, facts)));
    }
    for at in 0..request.alternatives.len() {
        let one = Lens { lines: (line, line + 1), pins: &[at], ..*lens };
        let sifted = Sifted::new(&one, &request.alternatives[at]);
        // Where too few fit by themselves no search is needed.
        let short = match request.alternatives[at].amount {
            Amount::Count(count) => sifted.fits.len() < count as usize,
            Amount::All => false,
        };
        if !short && feasible(one, steps)? {
            return Ok(None);
        }
        let failed = alone(&one, line, at, &sifted, steps)?;
        if furthest.as_ref().is_none_or(|f| failed.reason > f.reason) {
            furthest = Some(failed);
        }
    }
    Ok(furthest)
}

/// The counts of one alternative, check by check.
pub(super) fn stage_facts(lens: &Lens<'_>, line: usize, at: usize) -> DeviceFacts {
    counts(lens, line, at, &Sifted::new(lens, alternative(lens.want, line, at)))
}

fn counts(lens: &Lens<'_>, line: usize, at: usize, sifted: &Sifted) -> DeviceFacts {
    let (claim, _, request) = request(lens.want, line);
    let alternative = &request.alternatives[at];
    DeviceFacts {
        claim: lens.want.claims[claim].0,
        request: Some(match &alternative.name {
            None => request.name.clone(),
            Some(sub) => Name::new(&format!("{}/{sub}", request.name)),
        }),
        asked: match alternative.amount {
            Amount::Count(count) => count,
            Amount::All => {
                let hidden = |at: &&usize| lens.shape.devices[**at].traits.hidden().is_none();
                number(sifted.selected.iter().filter(hidden).count())
            }
        },
        all: alternative.amount == Amount::All,
        seen: number(lens.shape.devices.len()),
        selected: number(sifted.selected.len()),
        tolerated: number(sifted.tolerated.len()),
        free: number(sifted.free.len()),
        ..DeviceFacts::default()
    }
}

/// Devices by the check that they pass last.
pub(super) struct Sifted {
    /// In pools that can't be allocated from, and selected.
    faulty: Option<usize>,
    selected: Vec<usize>,
    /// Of these, those that are given out here at all.
    given: Vec<usize>,
    tolerated: Vec<usize>,
    free: Vec<usize>,
    pub(super) fits: Vec<usize>,
    no: Option<(usize, SelectorId)>,
    errors: Vec<(usize, SelectorId)>,
}

impl Sifted {
    pub(super) fn new(lens: &Lens<'_>, alternative: &Alternative) -> Self {
        let Lens { shape, usage, want, .. } = *lens;
        let all = 0..shape.devices.len();
        let traits = |at: usize| -> &Traits { &shape.devices[at].traits };
        let selects = |at: usize| verdict(want.matches, alternative, traits(at));
        let faulty = |at: &usize| shape.trouble(*at).is_some();
        let (mut selected, mut no, mut errors) = (Vec::new(), None, Vec::new());
        for at in all.clone() {
            match selects(at) {
                Ok(()) if faulty(&at) => {}
                Ok(()) => selected.push(at),
                Err(Stage::Error(selector)) if !faulty(&at) => errors.push((at, selector)),
                Err(Stage::Error(selector) | Stage::No(selector)) => {
                    no = no.or(Some((at, selector)));
                }
                Err(_) => {}
            }
        }
        let keep = |from: &[usize], is: &dyn Fn(usize) -> bool| -> Vec<usize> {
            from.iter().copied().filter(|at| is(*at)).collect()
        };
        let given = keep(&selected, &|at| shape.kept_back(at).is_none());
        let tolerated = keep(&given, &|at| untolerated(alternative, traits(at)).is_none());
        let free = keep(&tolerated, &|at| alternative.admin || !usage.is_taken(at));
        let fits = keep(&free, &|at| {
            matches!(sieve(shape, usage, want.matches, alternative, at), Stage::Fits(_))
        });
        let faulty = all.filter(faulty).find(|at| selects(*at).is_ok());
        Self { faulty, selected, given, tolerated, free, fits, no, errors }
    }
}

/// Why one alternative of one request fails; `lens` looks at nothing else.
fn alone(
    lens: &Lens<'_>,
    line: usize,
    at: usize,
    sifted: &Sifted,
    steps: &mut u64,
) -> Result<Failed, Cut> {
    let alternative = alternative(lens.want, line, at);
    let facts = counts(lens, line, at, sifted);
    if let Some(failed) = pool_failed(lens.shape, sifted, &facts) {
        return Ok(failed);
    }
    if facts.asked as usize > MOST {
        return Ok(Failed::new(Reason::TooManyDevices, None, facts));
    }
    match by_count(lens, alternative, sifted, facts) {
        Ok(facts) => by_rule(lens, line, at, sifted, facts, steps),
        Err(failed) => Ok(failed),
    }
}

/// A pool in trouble that could have helped: it has a device that is selected, or the node sees no
/// device at all.
fn pool_failed(shape: &Shape, sifted: &Sifted, facts: &DeviceFacts) -> Option<Failed> {
    let trouble = match sifted.faulty {
        Some(device) => shape.trouble(device)?,
        None if shape.devices.is_empty() => &shape.faults.first()?.trouble,
        None => return None,
    };
    let reason = match trouble {
        PoolTrouble::Incomplete => Reason::PoolIncomplete,
        PoolTrouble::Invalid(_) => Reason::PoolInvalid,
    };
    let of_pool = |at: &usize| shape.trouble(*at) == Some(trouble);
    let device = sifted.faulty.or_else(|| (0..shape.devices.len()).find(of_pool));
    Some(Failed::new(reason, device, facts.clone()))
}

/// The first check that leaves too few, where counting shows it.
fn by_count(
    lens: &Lens<'_>,
    alternative: &Alternative,
    sifted: &Sifted,
    mut facts: DeviceFacts,
) -> Result<DeviceFacts, Failed> {
    let Lens { shape, usage, want, .. } = *lens;
    let asked = facts.asked.max(1) as usize;
    let Sifted { selected, given, tolerated, free, fits, errors, .. } = sifted;
    if shape.devices.is_empty() {
        return Err(Failed::new(Reason::NoDevices, None, facts));
    }
    if selected.len() < asked {
        let error = errors
            .first()
            .filter(|_| selected.is_empty() || selected.len() + errors.len() >= asked);
        let reason = match (error, selected.is_empty()) {
            (Some(_), _) => Reason::SelectorError,
            (None, true) => Reason::SelectorFalse,
            (None, false) => Reason::TooFewDevices,
        };
        let example = error.copied().or(sifted.no);
        facts.selector = example.map(|(_, selector)| selector);
        return Err(Failed::new(reason, example.map(|(device, _)| device), facts));
    }
    let first = |from: &[usize], to: &[usize]| from.iter().copied().find(|at| !to.contains(at));
    if given.len() < asked {
        let device = first(selected, given);
        facts.resource = device.and_then(|at| shape.kept_back(at).cloned());
        return Err(Failed::new(Reason::DevicesKeptBack, device, facts));
    }
    if tolerated.len() < asked {
        let device = first(given, tolerated);
        facts.taint = device.and_then(|at| {
            let traits = &shape.devices[at].traits;
            Some(traits.taints[untolerated(alternative, traits)?].clone())
        });
        return Err(Failed::new(Reason::DeviceTainted, device, facts));
    }
    if free.len() < asked {
        return Err(Failed::new(Reason::DevicesTaken, first(tolerated, free), facts));
    }
    if fits.len() < asked {
        let device = first(free, fits);
        let stage = device.map(|at| sieve(shape, usage, want.matches, alternative, at));
        if let Some(Stage::Unfit(unfit) | Stage::Short(unfit)) = stage {
            facts.resource = Some(unfit.name);
            facts.amount = Some(unfit.amount);
            facts.unmet = Some(unfit.unmet);
        }
        return Err(Failed::new(Reason::CapacityShort, device, facts));
    }
    Ok(facts)
}

/// Whether a rule is about this alternative of this line.
pub(super) fn about(want: &Want<'_>, rule: Rule<'_>, line: usize, at: usize) -> bool {
    let (claim, request, _) = request(want, line);
    match rule {
        Rule::Constraint(of, constraint) => {
            of == claim && covers(constraint, want.claims[claim].1, request, at)
        }
        Rule::Align(of, _) => of.is_none_or(|of| of == claim),
    }
}

/// The first rule that, with those before it, leaves no set.
fn by_rule(
    lens: &Lens<'_>,
    line: usize,
    at: usize,
    sifted: &Sifted,
    mut facts: DeviceFacts,
    steps: &mut u64,
) -> Result<Failed, Cut> {
    if !feasible(Lens { rules: 0, ..*lens }, steps)? {
        return Ok(counters_failed(lens, line, at, &sifted.fits, facts, steps));
    }
    let rules = rules(lens.want);
    for (n, rule) in rules.iter().enumerate() {
        if !about(lens.want, *rule, line, at) {
            continue;
        }
        let some = Lens { rules: n + 1, ..*lens };
        if feasible(some, steps)? {
            continue;
        }
        facts.together = most(some, sifted.fits.len(), steps)?;
        let free = Usage::free(lens.shape);
        facts.together_if_free =
            most(Lens { usage: &free, ..some }, sifted.tolerated.len(), steps)?;
        facts.beside = named(lens.want, &needed(lens, n, steps));
        return Ok(rule_failed(lens, *rule, (line, at), &sifted.fits, facts));
    }
    // The request fails with all its rules, so one of them was the last straw.
    Ok(Failed::new(Reason::NotTogether, None, facts))
}

/// So many fit by themselves that shared counters, or their compatibility groups, must be to blame:
/// how many go together, and what one more falls for.
fn counters_failed(
    lens: &Lens<'_>,
    line: usize,
    at: usize,
    fits: &[usize],
    mut facts: DeviceFacts,
    steps: &mut u64,
) -> Failed {
    let bare = Lens { rules: 0, ..*lens };
    let mut own = *steps / 8;
    let before = own;
    let fewer = (facts.asked.saturating_sub(1) as usize).min(fits.len());
    facts.together = most(bare, fewer, &mut own).unwrap_or(0);
    *steps -= before - own;
    let some = Lens { ask: Some(facts.together as usize), ..bare };
    let taken = if facts.together > 0 { Taken::by(some, steps) } else { None };
    let taken = taken.unwrap_or_else(|| Taken::none(lens));
    let device = taken.shortage(lens, alternative(lens.want, line, at), fits, &mut facts);
    Failed::new(Reason::CountersShort, device, facts)
}

/// Most devices, of `free` at most, that the one alternative could be given under the rules of
/// `lens`. What fits a set fits its parts, so that halving finds it.
fn most(lens: Lens<'_>, free: usize, steps: &mut u64) -> Result<u32, Cut> {
    let (mut some, mut none) = (0, free + 1);
    while none - some > 1 {
        let middle = some.midpoint(none);
        if feasible(Lens { ask: Some(middle), ..lens }, steps)? {
            some = middle;
        } else {
            none = middle;
        }
    }
    Ok(u32::try_from(some).unwrap_or(u32::MAX))
}

/// The reason for which `rule` can't be kept, given those that fit by themselves.
fn rule_failed(
    lens: &Lens<'_>,
    rule: Rule<'_>,
    (line, at): (usize, usize),
    fits: &[usize],
    mut facts: DeviceFacts,
) -> Failed {
    let shape = lens.shape;
    let asked = alternative(lens.want, line, at);
    match rule {
        Rule::Constraint(_, constraint) => {
            facts.attribute = Some(constraint.attribute.clone());
            let value = |at: &usize| value(lens, asked, *at, &constraint.attribute);
            let errs = |at: &usize| matches!(value(at), Err(Lack::Error(_)));
            if let Some(device) = fits.iter().copied().find(errs)
                && let Err(Lack::Error(expression)) = value(&device)
            {
                facts.selector = Some(expression);
                return Failed::new(Reason::SelectorError, Some(device), facts);
            }
            let lacks = |at: &usize| value(at).is_err();
            let having = fits.iter().filter(|at| !lacks(at)).count();
            let device = fits.iter().copied().find(lacks);
            if having < facts.asked as usize {
                facts.published = Some((number(having), number(fits.len())));
                return Failed::new(Reason::AttributeMissing, device, facts);
            }
            let unmet =
                if constraint.distinct { Reason::DistinctUnmet } else { Reason::MatchUnmet };
            let device = leader(lens, rule, asked, fits, facts.together);
            Failed::new(unmet, device, facts)
        }
        Rule::Align(_, level) => {
            facts.level = Some(level);
            let known = fits.iter().any(|at| shape.joins(*at, level));
            let reason = if known { Reason::AlignUnmet } else { Reason::LinksUnknown };
            let device = fits.iter().copied().find(|at| lost(shape, *at, level));
            Failed::new(reason, device, facts)
        }
    }
}

/// The value that a constraint compares.
pub(super) fn value<'a>(
    lens: &Lens<'a>,
    asked: &Alternative,
    at: usize,
    attribute: &str,
) -> Result<&'a AttributeValue, Lack> {
    value_of(lens.want.matches, asked, &lens.shape.devices[at].traits, attribute)
}

/// Whether a device has part in `level` and no domain there.
fn lost(shape: &Shape, at: usize, level: Level) -> bool {
    shape.must_align(at, level) && shape.domain(at, level).is_none()
}

/// Each request could be met by itself: why not all. A rule is to blame where it would be broken
/// even with every device free.
fn together(lens: &Lens<'_>, steps: &mut u64) -> Result<Failed, Cut> {
    let usage = Usage::free(lens.shape);
    let free = Lens { usage: &usage, ..*lens };
    let count = rules(lens.want).len();
    if !feasible(free, steps)? && feasible(Lens { rules: 0, ..free }, steps)? {
        for n in 0..count {
            if !feasible(Lens { rules: n + 1, ..free }, steps)? {
                return Ok(joint_rule(lens, &free, n, steps));
            }
        }
    }
    let mut last = lens.lines.0;
    while last + 1 < lens.lines.1 && feasible(Lens { lines: (0, last + 1), ..*lens }, steps)? {
        last += 1;
    }
    let (_, _, request) = request(lens.want, last);
    let mut facts = stage_facts(lens, last, 0);
    for alternative in &request.alternatives {
        if let Some(failed) = pool_failed(lens.shape, &Sifted::new(lens, alternative), &facts) {
            return Ok(failed);
        }
    }
    let device = apart(lens, &free, last, &mut facts, steps);
    Ok(Failed::new(Reason::NotTogether, device, facts))
}

/// What keeps the request of line `last` from those before it, as things stand: a rule over values,
/// too few devices for all, or what the others would leave of counters and capacity.
fn apart(
    lens: &Lens<'_>,
    free: &Lens<'_>,
    last: usize,
    facts: &mut DeviceFacts,
    steps: &mut u64,
) -> Option<usize> {
    let mut own = *steps / 4;
    let before = own;
    let mut fails = |lens: Lens<'_>| matches!(feasible(lens, &mut own), Ok(false));
    let mut first = lens.lines.0;
    while first < last && fails(Lens { lines: (first + 1, last + 1), ..*lens }) {
        first += 1;
    }
    let some = Lens { lines: (first, last + 1), ..*lens };
    let rules = rules(lens.want);
    let bare = fails(Lens { rules: 0, ..some });
    let broken = (0..rules.len()).find(|n| !bare && fails(Lens { rules: n + 1, ..some }));
    *steps -= before - own;
    let free = &Lens { lines: some.lines, ..*free };
    let asked = Asked::new(&some, free, first..last + 1, broken.map(|n| rules[n]), steps);
    if !asked.is_joint() {
        return None;
    }
    let mut of: Vec<Rule<'_>> = Vec::new();
    if let Some(n) = broken {
        match rules[n] {
            Rule::Constraint(_, constraint) => facts.attribute = Some(constraint.attribute.clone()),
            Rule::Align(_, level) => facts.level = Some(level),
        }
        let beside = needed(&some, n, steps);
        of.extend(std::iter::once(n).chain(beside.iter().copied()).map(|n| rules[n]));
        facts.beside = named(lens.want, &beside);
    }
    facts.joint = Some(Box::new(asked.joint(&of).0));
    if !bare {
        return None;
    }
    let others = Lens { lines: (first, last), rules: 0, ..*lens };
    let taken = Taken::by(others, steps)?;
    let (alternative, fits) = asked.last()?;
    taken.shortage(lens, alternative, fits, facts)
}

/// A rule over several requests that no set keeps, with counts over all that it is about.
fn joint_rule(lens: &Lens<'_>, free: &Lens<'_>, n: usize, steps: &mut u64) -> Failed {
    let all = rules(lens.want);
    let rule = all[n];
    let under = |line: &usize| about(lens.want, rule, *line, 0);
    let lines: Vec<usize> = (lens.lines.0..lens.lines.1).filter(under).collect();
    let first = lines.first().copied().unwrap_or(lens.lines.0);
    let mut facts = stage_facts(lens, first, 0);
    let asked = lines.iter().map(|line| stage_facts(lens, *line, 0).asked);
    facts.asked = asked.fold(0, u32::saturating_add);
    let fits = |lens: &Lens<'_>| -> Vec<usize> {
        let mut all: Vec<usize> = lines
            .iter()
            .flat_map(|line| Sifted::new(lens, alternative(lens.want, *line, 0)).fits)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    // Other rules may split a group that is large enough for this one.
    let most = facts.asked.saturating_sub(1);
    let asked = alternative(lens.want, first, 0);
    facts.together = group(lens, rule, asked, &fits(lens)).min(most);
    facts.together_if_free = group(lens, rule, asked, &fits(free)).min(most);
    let mut failed = rule_failed(lens, rule, (first, 0), &fits(free), facts);
    let beside = needed(free, n, steps);
    failed.facts.beside = named(lens.want, &beside);
    let asked = Asked::new(lens, free, lens.lines.0..lens.lines.1, Some(rule), steps);
    // How many publish an attribute was counted over the first alternatives.
    let counted = failed.reason != Reason::AttributeMissing || asked.is_of(&lines);
    if asked.is_joint() && counted {
        let of: Vec<Rule<'_>> = std::iter::once(n).chain(beside).map(|n| all[n]).collect();
        let (joint, now, if_free) = asked.joint(&of);
        failed.facts.asked = asked.asked();
        let facts = &mut failed.facts;
        if !joint.groups.is_empty() {
            (facts.together, facts.together_if_free) = (now, if_free);
        }
        let most = facts.asked.saturating_sub(1);
        facts.together = facts.together.min(most);
        facts.together_if_free = facts.together_if_free.min(most);
        failed.facts.joint = Some(Box::new(joint));
    }
    failed
}

/// Most of `devices` that keep `rule`.
fn group(lens: &Lens<'_>, rule: Rule<'_>, asked: &Alternative, devices: &[usize]) -> u32 {
    let groups = groups(lens, rule, asked, devices);
    let distinct = match rule {
        Rule::Constraint(_, constraint) => constraint.distinct,
        Rule::Align(..) => false,
    };
    let most =
        if distinct { groups.len() } else { groups.values().map(Vec::len).max().unwrap_or(0) };
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// `devices` by what `rule` reads of them: by each element where that is a list.
fn groups(
    lens: &Lens<'_>,
    rule: Rule<'_>,
    asked: &Alternative,
    devices: &[usize],
) -> BTreeMap<String, Vec<usize>> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for at in devices {
        let values = match rule {
            Rule::Constraint(_, constraint) => {
                match value(lens, asked, *at, &constraint.attribute) {
                    Ok(AttributeValue::List(all)) if !constraint.distinct => {
                        all.iter().map(|v| format!("{v:?}")).collect()
                    }
                    Ok(value) => vec![format!("{value:?}")],
                    Err(_) => Vec::new(),
                }
            }
            Rule::Align(_, level) => {
                lens.shape.domain(*at, level).iter().map(ToString::to_string).collect()
            }
        };
        for value in values {
            let group = groups.entry(value).or_default();
            if group.last() != Some(at) {
                group.push(*at);
            }
        }
    }
    groups
}

/// The first device, by name rank, of the largest group that agrees: it names the nearest miss.
/// None where that group is not what `together` counts, for other rules split it, and none where
/// devices must differ.
fn leader(
    lens: &Lens<'_>,
    rule: Rule<'_>,
    asked: &Alternative,
    devices: &[usize],
    together: u32,
) -> Option<usize> {
    match rule {
        Rule::Constraint(_, constraint) if constraint.distinct => return None,
        Rule::Constraint(..) | Rule::Align(..) => {}
    }
    let rank = |at: &usize| lens.shape.devices[*at].rank;
    let first = |group: Vec<usize>| group.into_iter().min_by_key(rank);
    let groups = groups(lens, rule, asked, devices);
    let most = groups.values().map(Vec::len).max().filter(|most| *most == together as usize)?;
    let largest = groups.into_values().filter(|group| group.len() == most);
    largest.filter_map(first).min_by_key(rank)
}
