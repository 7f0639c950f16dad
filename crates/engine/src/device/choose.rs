//! The question, the answer, and the order of answers.

use crate::cost::DeviceCost;
use crate::decision::{DeviceFacts, Proof};
use crate::facts::{Align, Amount, ClaimSpec};
use crate::name::Name;
use crate::policy::{DeviceOrder, Policy};
use crate::reason::Reason;

use super::best::{Found, best};
use super::explain::{self, explain, stage_facts};
use super::judge::price;
use super::matches::Matches;
use super::problem::{Lens, MOST, Problem};
use super::search::{Aim, Chosen, Outcome, search};
use super::shape::{PoolTrouble, Shape};
use super::sieve::sieve;
use super::usage::Usage;
use super::walk::{error_of, is_listed, may_err, walk};
use super::wear::Toll;

/// What one pod wants of a node's devices: its claims that are not allocated yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want<'a> {
    /// The claims, each with its index in the request's claims.
    pub(crate) claims: &'a [(u16, &'a ClaimSpec)],
    /// Nearness wished for over all of the pod's devices.
    pub(crate) align: &'a [Align],
    /// The pod's devices of claims that are allocated already, as indices in the shape's devices:
    /// they count for nearness, and nothing is decided about them.
    pub(crate) fixed: &'a [u16],
    /// What selectors say.
    pub(crate) matches: &'a Matches,
}

/// A set of devices that a pod can be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// What it is compared by.
    pub(crate) price: Price,
    /// The devices, in the order of claims and requests.
    pub(crate) picks: Vec<Pick>,
    /// Whether a better set was ruled out.
    pub(crate) proof: Proof,
    /// Devices, not shareable ones, that would stay free on the node.
    pub(crate) free_left: u32,
}

/// A device for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    /// Index in the request's claims.
    pub(crate) claim: u16,
    /// Index in the claim's requests.
    pub(crate) request: u16,
    /// Index in the request's alternatives.
    pub(crate) alternative: u16,
    /// Index in the shape's devices.
    pub(crate) device: u16,
    /// Only looked at.
    pub(crate) admin: bool,
    /// A share, with what it consumes of each capacity (billionths of a unit).
    pub(crate) share: Option<Box<[(Name, i128)]>>,
}

/// Why a node has no devices for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// For this reason.
    Reason {
        /// The reason.
        reason: Reason,
        /// A device that shows it, as an index in the shape's devices.
        device: Option<u16>,
        /// Names and numbers.
        facts: Box<DeviceFacts>,
    },
    /// An error that upstream's search met: the pod's attempt ends.
    Fatal {
        /// What the error is about.
        reason: Reason,
        /// The device on which it was met.
        device: Option<u16>,
        /// The request, the selector, names and numbers.
        facts: Box<DeviceFacts>,
    },
    /// The bound ended the search before it found a set or ruled all out.
    Bounded,
}

/// What sets are compared by, before names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Price {
    /// Sum of the indices chosen in prioritised lists.
    pub(crate) alternatives: u32,
    /// How far apart the devices are.
    pub(crate) devices: DeviceCost,
    /// What it takes from later requests.
    pub(crate) toll: Toll,
    /// Devices, not shareable ones, that stay free on the node: fewer is a tighter fit, and none
    /// leaves no node broken.
    pub(crate) free_left: u32,
}

/// The order of sets: the one place that has it. The smallest is the best.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Standing {
    /// The price.
    pub(crate) price: Price,
    /// Name ranks in the order of claims and requests, ascending within a request.
    pub(crate) ranks: Vec<u16>,
    /// The alternatives to which they belong.
    pub(crate) order: Vec<u16>,
}

/// The best set of devices for `want`, or the first in upstream's order, as `policy` says. `steps`
/// is what may be spent and counts down: at 0 the best found so far is offered as
/// [`Proof::Bounded`], or [`Failure::Bounded`] is all there is to say.
pub(crate) fn choose(
    shape: &Shape,
    usage: &Usage,
    want: &Want<'_>,
    policy: &Policy,
    steps: &mut u64,
) -> Result<Offer, Failure> {
    let upstream = match policy.device_order {
        DeviceOrder::Best => false,
        DeviceOrder::Upstream => true,
    };
    let strict = upstream && policy.strict_cel;
    let lens = Lens { by_rank: !upstream, strict, ..Lens::whole(shape, usage, want) };
    check_all(&lens)?;
    if strict && may_err(&lens) {
        return match walk(&lens, steps)? {
            Some(picks) => Ok(walked(&lens, picks)),
            None => Err(explain(&lens, steps)),
        };
    }
    let problem = Problem::new(lens);
    if problem.hopeless {
        return Err(explain(&lens, steps));
    }
    if !upstream {
        let Found { offer, cut } = best(&problem, steps);
        return offer.ok_or_else(|| if cut { Failure::Bounded } else { explain(&lens, steps) });
    }
    let Outcome { best, cut, .. } = search(&problem, Aim::First, steps);
    let Some(best) = best else {
        return Err(if cut { Failure::Bounded } else { explain(&lens, steps) });
    };
    Ok(offer(&problem, best, Proof::FirstFit))
}

/// What a search found, as it is offered.
pub(super) fn offer(
    problem: &Problem<'_>,
    (standing, chosen): (Standing, Vec<Chosen>),
    proof: Proof,
) -> Offer {
    let Lens { shape, usage, .. } = problem.lens;
    let picks: Vec<Pick> = chosen.iter().map(|c| pick(problem, *c)).collect();
    Offer { price: standing.price, free_left: free_left(shape, usage, &picks), picks, proof }
}

/// The offer of a set that was found step by step.
fn walked(lens: &Lens<'_>, picks: Vec<Pick>) -> Offer {
    let (standing, free_left) = price(lens.shape, lens.usage, lens.want, &picks);
    Offer { price: standing.price, picks, proof: Proof::FirstFit, free_left }
}

/// Indices of devices, requests and alternatives fit: the API's limits are far below.
pub(super) fn index(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

fn pick(problem: &Problem<'_>, chosen: Chosen) -> Pick {
    let line = &problem.lines[chosen.line];
    let choice = &line.choices[chosen.choice];
    let device = problem.order[chosen.position];
    let traits = &problem.lens.shape.devices[device].traits;
    let draws = choice.draws.get(chosen.position).map_or(&[][..], |d| d);
    let names = traits.capacity.iter().map(|c| c.name.clone());
    Pick {
        claim: problem.lens.want.claims[line.claim].0,
        request: index(line.request),
        alternative: index(choice.alternative),
        device: index(device),
        admin: choice.admin,
        share: traits.shareable.then(|| names.zip(draws.iter().copied()).collect()),
    }
}

/// Exclusive devices of sound pools that nobody holds and nobody is given.
pub(crate) fn free_left(shape: &Shape, usage: &Usage, picks: &[Pick]) -> u32 {
    let given = |at: usize| picks.iter().any(|p| !p.admin && usize::from(p.device) == at);
    let free = |at: &usize| {
        let whole = !shape.devices[*at].traits.shareable && shape.trouble(*at).is_none();
        whole && !usage.is_taken(*at) && !given(*at)
    };
    u32::try_from((0..shape.devices.len()).filter(free).count()).unwrap_or(u32::MAX)
}

/// What upstream checks before it searches, request by request and whatever other alternatives there
/// are: every pool that the node sees is sound where all devices are asked for, and no claim passes
/// the limit of devices.
fn check_all(lens: &Lens<'_>) -> Result<(), Failure> {
    let mut line = 0;
    for (_, spec) in lens.want.claims {
        let mut of_claim = 0_usize;
        for request in &spec.requests {
            let mut least = usize::MAX;
            let mut all = None;
            for (at, alternative) in request.alternatives.iter().enumerate() {
                least = least.min(match alternative.amount {
                    Amount::Count(count) => count as usize,
                    Amount::All => {
                        all = Some(at);
                        all_matching(lens, line, at)?
                    }
                });
            }
            of_claim = of_claim.saturating_add(if least == usize::MAX { 0 } else { least });
            // What numbers alone say was found where the claim was read.
            if of_claim > MOST && (all.is_some() || asks_all(spec)) {
                let mut facts = stage_facts(lens, line, all.unwrap_or(0));
                facts.asked = u32::try_from(of_claim).unwrap_or(u32::MAX);
                return Err(passes_limit(lens, facts));
            }
            line += 1;
        }
    }
    Ok(())
}

fn asks_all(spec: &ClaimSpec) -> bool {
    let mut alternatives = spec.requests.iter().flat_map(|r| &r.alternatives);
    alternatives.any(|a| a.amount == Amount::All)
}

/// A claim for all devices asks for more than an allocation holds.
fn passes_limit(lens: &Lens<'_>, facts: DeviceFacts) -> Failure {
    let (reason, device, facts) = (Reason::TooManyDevices, None, Box::new(facts));
    if lens.strict {
        Failure::Fatal { reason, device, facts }
    } else {
        Failure::Reason { reason, device, facts }
    }
}

/// How many devices a request for all asks for.
fn all_matching(lens: &Lens<'_>, line: usize, at: usize) -> Result<usize, Failure> {
    let Lens { shape, usage, want, .. } = *lens;
    // Upstream goes pool by pool, and ends at the first that is not sound.
    let fault = shape.faults.first();
    let reached = |device: &usize| fault.is_none_or(|f| shape.devices[*device].pool < f.pool);
    let alternative = explain::alternative(want, line, at);
    let mut count = 0;
    for device in (0..shape.devices.len()).filter(reached) {
        let stage = sieve(shape, usage, want.matches, alternative, device);
        if lens.strict
            && let Some(error) = error_of(lens, (line, at), device, &stage)
        {
            return Err(error);
        }
        count += usize::from(is_listed(&stage));
    }
    let Some(fault) = fault else { return Ok(count) };
    let reason = match fault.trouble {
        PoolTrouble::Incomplete => Reason::PoolIncomplete,
        PoolTrouble::Invalid(_) => Reason::PoolInvalid,
    };
    let device = shape.devices.iter().position(|d| d.pool == fault.pool).map(index);
    Err(Failure::Reason { reason, device, facts: Box::new(stage_facts(lens, line, at)) })
}
