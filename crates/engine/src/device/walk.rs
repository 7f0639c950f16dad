//! Upstream's search to the letter: device after device, check after check, for where an error on the
//! way ends the pod's attempt.
//!
//! Which errors are met depends on every step that came before, so that nothing is left out and
//! nothing is taken together here. Where no error could be met, [`search`](super::search) finds the
//! same set.

use crate::decision::DeviceFacts;
use crate::facts::{Alternative, Amount, AttributeValue, Constraint};
use crate::name::Name;
use crate::reason::Reason;

use super::charge::Charges;
use super::choose::{Failure, Pick, index};
use super::explain::stage_facts;
use super::judge::keeps_levels;
use super::problem::{Lens, MOST, covers};
use super::sets::{Lack, accepts, value_of};
use super::sieve::{Stage, sieve};

/// How a branch ends.
enum End {
    /// All is chosen.
    Done,
    /// It has no set.
    Nothing,
    /// A claim would pass the limit of devices.
    Exceeded,
    /// The attempt is over.
    Over(Failure),
}

/// A device for an alternative of a line.
#[derive(Clone, Copy)]
struct Chosen {
    line: usize,
    alternative: usize,
    device: usize,
}

/// One alternative of one line.
#[derive(Clone, Copy)]
struct At {
    line: usize,
    alternative: usize,
}

struct Walk<'l, 'a> {
    lens: &'l Lens<'a>,
    /// Claim and request of each line.
    lines: Vec<(usize, usize)>,
    /// By line, alternative and device.
    stages: Vec<Vec<Vec<Stage>>>,
    charges: Charges<'a>,
    chosen: Vec<Chosen>,
    steps: &'l mut u64,
}

/// Whether upstream's search could meet an error.
pub(super) fn may_err(lens: &Lens<'_>) -> bool {
    let requests = lens.want.claims.iter().flat_map(|(_, spec)| {
        spec.requests.iter().flat_map(move |r| r.alternatives.iter().map(move |a| (*spec, a)))
    });
    requests.into_iter().any(|(spec, alternative)| {
        let all = alternative.amount == Amount::All && !spec.constraints.is_empty();
        all || !alternative.derived.is_empty()
            || (0..lens.shape.devices.len()).any(|at| errs(&see(lens, alternative, at)))
    })
}

fn see(lens: &Lens<'_>, alternative: &Alternative, at: usize) -> Stage {
    sieve(lens.shape, lens.usage, lens.want.matches, alternative, at)
}

fn errs(stage: &Stage) -> bool {
    match stage {
        Stage::Error(_) => true,
        Stage::Unfit(unfit) => unfit.is_absurd(),
        Stage::Faulty
        | Stage::Hidden
        | Stage::No(_)
        | Stage::Barred
        | Stage::Tainted(_)
        | Stage::Taken
        | Stage::Short(_)
        | Stage::Fits(_) => false,
    }
}

/// The first set in upstream's order: none where there is none.
///
/// # Errors
/// The error that upstream meets, or that the bound is reached.
pub(super) fn walk(lens: &Lens<'_>, steps: &mut u64) -> Result<Option<Vec<Pick>>, Failure> {
    let claims = lens.want.claims.iter().enumerate();
    let lines: Vec<(usize, usize)> =
        claims.flat_map(|(c, (_, spec))| (0..spec.requests.len()).map(move |r| (c, r))).collect();
    let stages = lines.iter().map(|(claim, request)| {
        let alternatives = &lens.want.claims[*claim].1.requests[*request].alternatives;
        let of =
            |a: &Alternative| (0..lens.shape.devices.len()).map(|at| see(lens, a, at)).collect();
        alternatives.iter().map(of).collect()
    });
    let stages = stages.collect();
    let charges = Charges::new(lens.shape, lens.usage);
    let mut walk = Walk { lens, lines, stages, charges, chosen: Vec::new(), steps };
    match walk.line(0) {
        End::Done => Ok(Some(walk.chosen.iter().map(|c| walk.pick(*c)).collect())),
        End::Nothing | End::Exceeded => Ok(None),
        End::Over(failure) => Err(failure),
    }
}

impl<'a> Walk<'_, 'a> {
    fn asked(&self, at: At) -> &'a Alternative {
        let (claim, request) = self.lines[at.line];
        &self.lens.want.claims[claim].1.requests[request].alternatives[at.alternative]
    }

    fn line(&mut self, line: usize) -> End {
        let Some((claim, request)) = self.lines.get(line).copied() else {
            return if self.keeps_levels() { End::Done } else { End::Nothing };
        };
        let alternatives = &self.lens.want.claims[claim].1.requests[request].alternatives;
        let mut exceeded = !alternatives.is_empty();
        let mut end = End::Nothing;
        for alternative in 0..alternatives.len() {
            match self.alternative(At { line, alternative }) {
                End::Exceeded => {}
                End::Nothing => exceeded = false,
                over @ (End::Done | End::Over(_)) => return over,
            }
        }
        // A claim that passes the limit has no set; those before it may go another way.
        if exceeded && (request > 0 || claim == 0) {
            end = End::Exceeded;
        }
        end
    }

    fn alternative(&mut self, at: At) -> End {
        match self.asked(at).amount {
            Amount::Count(count) => self.slots(at, 0, count as usize),
            Amount::All => {
                let stages = &self.stages[at.line][at.alternative];
                let all: Vec<usize> =
                    (0..stages.len()).filter(|device| is_listed(&stages[*device])).collect();
                if all.is_empty() { End::Nothing } else { self.each(at, &all) }
            }
        }
    }

    /// Whether so many more devices would pass the limit of the claim.
    fn passes_limit(&self, at: At, more: usize) -> bool {
        let claim = self.lines[at.line].0;
        let of_claim = self.chosen.iter().filter(|c| self.lines[c.line].0 == claim).count();
        more + of_claim > MOST
    }

    /// Takes a step, if one is left.
    fn step(&mut self) -> bool {
        let left = *self.steps > 0;
        *self.steps = self.steps.saturating_sub(1);
        left
    }

    /// The devices of a request for all, one after the other.
    fn each(&mut self, at: At, devices: &[usize]) -> End {
        let Some((device, rest)) = devices.split_first() else { return self.line(at.line + 1) };
        if self.passes_limit(at, devices.len()) {
            return End::Exceeded;
        }
        if !self.step() {
            return End::Over(Failure::Bounded);
        }
        match self.take(at, *device, true) {
            Ok(true) => {}
            Ok(false) => return End::Nothing,
            Err(failure) => return End::Over(failure),
        }
        let end = self.each(at, rest);
        if !matches!(end, End::Done) {
            self.give(at, *device);
        }
        end
    }

    fn slots(&mut self, at: At, from: usize, left: usize) -> End {
        if left == 0 {
            return self.line(at.line + 1);
        }
        if self.passes_limit(at, left) {
            return End::Exceeded;
        }
        for device in from..self.lens.shape.devices.len() {
            if self.lens.shape.trouble(device).is_some() || self.in_use(at, device) {
                continue;
            }
            let stage = &self.stages[at.line][at.alternative][device];
            if errs(stage) {
                return End::Over(self.met(at, device));
            }
            let room = self.charges.has_room(device, self.draws(at, device));
            if !is_listed(stage) || matches!(stage, Stage::Short(_)) || !room {
                continue;
            }
            if !self.step() {
                return End::Over(Failure::Bounded);
            }
            match self.take(at, device, false) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(failure) => return End::Over(failure),
            }
            let end = self.slots(at, device + 1, left - 1);
            if let End::Done = end {
                return end;
            }
            self.give(at, device);
            if !matches!(end, End::Nothing) {
                return end;
            }
        }
        End::Nothing
    }

    /// Whether the device is held, or given by this very set; who only looks minds what his own
    /// claim looks at.
    fn in_use(&self, at: At, device: usize) -> bool {
        let admin = self.asked(at).admin;
        let claim = self.lines[at.line].0;
        let given = |c: &Chosen| c.device == device && (!admin || self.lines[c.line].0 == claim);
        !admin && self.lens.usage.is_taken(device)
            || !self.lens.shape.devices[device].traits.shareable && self.chosen.iter().any(given)
    }

    fn draws(&self, at: At, device: usize) -> &[i128] {
        match &self.stages[at.line][at.alternative][device] {
            Stage::Fits(draws) => draws,
            Stage::Faulty
            | Stage::Hidden
            | Stage::No(_)
            | Stage::Error(_)
            | Stage::Unfit(_)
            | Stage::Barred
            | Stage::Tainted(_)
            | Stage::Taken
            | Stage::Short(_) => &[],
        }
    }

    /// Takes a device that is selected, if nothing else is in its way.
    fn take(&mut self, at: At, device: usize, must: bool) -> Result<bool, Failure> {
        let admin = self.asked(at).admin;
        let stage = &self.stages[at.line][at.alternative][device];
        let stays = matches!(stage, Stage::Barred | Stage::Taken);
        if stays || self.in_use(at, device) || !self.charges.admits(device, admin) {
            return Ok(false);
        }
        if matches!(stage, Stage::Tainted(_)) {
            return Ok(false);
        }
        if !self.keeps_constraints(at, device, must)? {
            return Ok(false);
        }
        if matches!(self.stages[at.line][at.alternative][device], Stage::Short(_)) {
            return Ok(false);
        }
        let draws = self.draws(at, device).to_vec();
        if !self.charges.take(device, &draws, admin) {
            return Ok(false);
        }
        self.chosen.push(Chosen { line: at.line, alternative: at.alternative, device });
        Ok(true)
    }

    fn give(&mut self, at: At, device: usize) {
        self.chosen.pop();
        let draws = self.draws(at, device).to_vec();
        let admin = self.asked(at).admin;
        self.charges.give(device, &draws, admin);
    }

    fn keeps_constraints(&self, at: At, device: usize, must: bool) -> Result<bool, Failure> {
        let (claim, request) = self.lines[at.line];
        let spec = self.lens.want.claims[claim].1;
        for constraint in &spec.constraints {
            if !covers(constraint, spec, request, at.alternative) {
                continue;
            }
            let kept = match self.value(at, device, &constraint.attribute) {
                Ok(value) => accepts(constraint.distinct, &self.before(claim, constraint), value),
                Err(Lack::Absent) => false,
                Err(Lack::Error(expression)) => {
                    let mut facts = stage_facts(self.lens, at.line, at.alternative);
                    facts.selector = Some(expression);
                    facts.attribute = Some(constraint.attribute.clone());
                    return Err(fatal(Reason::SelectorError, device, facts));
                }
            };
            if !kept && must {
                return Err(self.broken(at, device, constraint));
            }
            if !kept {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn value(&self, at: At, device: usize, attribute: &Name) -> Result<&'a AttributeValue, Lack> {
        let traits = &self.lens.shape.devices[device].traits;
        value_of(self.lens.want.matches, self.asked(at), traits, attribute)
    }

    /// Whether those chosen are as near to each other as is required.
    fn keeps_levels(&self) -> bool {
        let picks: Vec<Pick> = self.chosen.iter().map(|c| self.pick(*c)).collect();
        keeps_levels(self.lens.shape, self.lens.want, &picks)
    }

    /// The values of those chosen that a constraint is about, in order.
    fn before(&self, claim: usize, constraint: &Constraint) -> Vec<&'a AttributeValue> {
        let spec = self.lens.want.claims[claim].1;
        let under = |c: &&Chosen| {
            let (of, request) = self.lines[c.line];
            of == claim && covers(constraint, spec, request, c.alternative)
        };
        let at = |c: &Chosen| At { line: c.line, alternative: c.alternative };
        let value = |c: &Chosen| self.value(at(c), c.device, &constraint.attribute).ok();
        self.chosen.iter().filter(under).filter_map(value).collect()
    }

    /// The error of a device that must be taken and breaks a constraint.
    fn broken(&self, at: At, device: usize, constraint: &Constraint) -> Failure {
        let mut facts = stage_facts(self.lens, at.line, at.alternative);
        facts.attribute = Some(constraint.attribute.clone());
        facts.together = facts.asked.saturating_sub(1);
        facts.together_if_free = facts.together;
        let reason = match self.value(at, device, &constraint.attribute) {
            Err(_) => Reason::AttributeMissing,
            Ok(_) if constraint.distinct => Reason::DistinctUnmet,
            Ok(_) => Reason::MatchUnmet,
        };
        fatal(reason, device, facts)
    }

    fn met(&self, at: At, device: usize) -> Failure {
        let stage = &self.stages[at.line][at.alternative][device];
        error_of(self.lens, (at.line, at.alternative), device, stage).unwrap_or(Failure::Bounded)
    }

    fn pick(&self, chosen: Chosen) -> Pick {
        let Chosen { line, alternative, device } = chosen;
        let (claim, request) = self.lines[line];
        let traits = &self.lens.shape.devices[device].traits;
        let names = traits.capacity.iter().map(|c| c.name.clone());
        let at = At { line, alternative };
        let draws = self.draws(at, device).iter().copied();
        Pick {
            claim: self.lens.want.claims[claim].0,
            request: index(request),
            alternative: index(alternative),
            device: index(device),
            admin: self.asked(at).admin,
            share: traits.shareable.then(|| names.zip(draws).collect()),
        }
    }
}

/// Whether a request for all asks for a device that got so far.
pub(super) fn is_listed(stage: &Stage) -> bool {
    match stage {
        Stage::Barred | Stage::Tainted(_) | Stage::Taken | Stage::Short(_) | Stage::Fits(_) => true,
        Stage::Faulty | Stage::Hidden | Stage::No(_) | Stage::Error(_) | Stage::Unfit(_) => false,
    }
}

/// The error that a stage is, if it is one.
pub(super) fn error_of(
    lens: &Lens<'_>,
    (line, alternative): (usize, usize),
    device: usize,
    stage: &Stage,
) -> Option<Failure> {
    let mut facts = stage_facts(lens, line, alternative);
    match stage {
        Stage::Error(selector) => {
            facts.selector = Some(*selector);
            Some(fatal(Reason::SelectorError, device, facts))
        }
        Stage::Unfit(unfit) if unfit.is_absurd() => {
            facts.resource = Some(unfit.name.clone());
            facts.amount = Some(unfit.amount);
            facts.unmet = Some(unfit.unmet);
            Some(fatal(Reason::CapacityShort, device, facts))
        }
        Stage::Unfit(_)
        | Stage::Faulty
        | Stage::Hidden
        | Stage::No(_)
        | Stage::Barred
        | Stage::Tainted(_)
        | Stage::Taken
        | Stage::Short(_)
        | Stage::Fits(_) => None,
    }
}

fn fatal(reason: Reason, device: usize, facts: DeviceFacts) -> Failure {
    Failure::Fatal { reason, device: Some(index(device)), facts: Box::new(facts) }
}
