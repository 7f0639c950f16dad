//! Every assignment of a node's devices to a pod's requests; the best, or why there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::node::Scarce;
use super::seen::{Dev, Seen, charge, groups_of};
use crate::*;

/// A claim that is to be allocated.
#[derive(Clone)]
pub(super) struct Asked {
    /// Index into the pod's claims.
    pub(super) claim: usize,
    pub(super) spec: Shared<ClaimSpec>,
}

/// What a pod asks of one node's devices.
pub(super) struct Ask<'a> {
    pub(super) seen: &'a Seen<'a>,
    pub(super) wanted: &'a [Asked],
    pub(super) align: &'a [Align],
    /// Devices of the pod's claims that are allocated already.
    pub(super) fixed: &'a [usize],
    pub(super) matches: &'a BTreeMap<(SelectorId, ProfileId), Match>,
    pub(super) upstream: bool,
}

/// One device for one request. Requests are counted over all claims.
#[derive(Clone, Copy, Debug)]
struct Pick {
    line: usize,
    alternative: usize,
    device: usize,
}

/// A part of the question, or what it would be with every device free.
#[derive(Clone)]
struct Part {
    lines: Range<usize>,
    alternative: Option<usize>,
    rules: usize,
    free: bool,
}

#[derive(Clone, Copy)]
enum Rule<'a> {
    Constraint(usize, &'a Constraint),
    /// Of a claim, or of the pod.
    Near(Option<usize>, Level),
}

/// How far a device gets by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Faulty,
    Error,
    No,
    Hidden,
    Unfit,
    KeptBack,
    Tainted,
    Taken,
    Short,
    Fits,
}

/// What decides between equals: devices that may have to be waited for or left come last, then names.
type Names = Vec<(bool, DeviceKey)>;

impl<'a> Ask<'a> {
    /// Every assignment, the cheapest first (of equals the smallest names); or upstream's first.
    pub(super) fn all(
        &self,
        soft: u32,
        scarce: &Scarce,
    ) -> Result<Vec<(Cost, Vec<Grant>)>, Reason> {
        if self.wanted.is_empty() {
            return Ok(vec![(self.cost(&[], soft, scarce), Vec::new())]);
        }
        self.all_checked()?;
        let mut all: Vec<(Cost, Names, Vec<Grant>)> = Vec::new();
        self.search(&self.whole(), &mut |picks| {
            let grants = self.grants(picks);
            let late = picks.iter().map(|pick| self.is_late(pick.device));
            let names: Names = late.zip(grants.iter().map(|g| g.device.clone())).collect();
            all.push((self.cost(picks, soft, scarce), names, grants));
            self.upstream
        });
        if all.is_empty() {
            return Err(self.why());
        }
        all.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        Ok(all.into_iter().map(|(cost, _, grants)| (cost, grants)).collect())
    }

    /// Whether a pod may have to wait for the device, or to leave it.
    fn is_late(&self, device: usize) -> bool {
        let traits = self.seen.devices[device].traits;
        let awaits = traits.binding.as_ref().is_some_and(|b| !b.conditions.is_empty());
        awaits || traits.taints.iter().any(|taint| taint.effect == Effect::NoExecute)
    }

    fn whole(&self) -> Part {
        let lines = 0..self.wanted.iter().map(|a| a.spec.requests.len()).sum();
        Part { lines, alternative: None, rules: usize::MAX, free: false }
    }

    /// A request for all is refused where a pool is not sound, whatever other alternatives there are.
    fn all_checked(&self) -> Result<(), Reason> {
        let requests = self.wanted.iter().flat_map(|a| &a.spec.requests);
        let all = requests.flat_map(|r| &r.alternatives).any(|a| a.amount == Amount::All);
        let trouble = self.seen.pools.iter().find_map(|p| p.trouble);
        trouble.filter(|_| all).map_or(Ok(()), Err)
    }

    /// Claim (index in the wanted), request and its index in the claim.
    fn line(&self, line: usize) -> (usize, usize, &'a DeviceRequest) {
        let mut all = self.wanted.iter().enumerate().flat_map(|(at, asked)| {
            asked.spec.requests.iter().enumerate().map(move |(r, request)| (at, r, request))
        });
        all.nth(line).unwrap()
    }

    fn rules(&self) -> Vec<Rule<'a>> {
        let mut rules = Vec::new();
        for (at, asked) in self.wanted.iter().enumerate() {
            rules.extend(asked.spec.constraints.iter().map(|c| Rule::Constraint(at, c)));
            let required = asked.spec.align.iter().filter(|a| a.required);
            rules.extend(required.map(|a| Rule::Near(Some(at), a.level)));
        }
        rules.extend(self.align.iter().filter(|a| a.required).map(|a| Rule::Near(None, a.level)));
        rules
    }

    fn selects(&self, alternative: &Alternative, traits: &Traits) -> Match {
        for selector in &alternative.selectors {
            match self.matches.get(&(*selector, traits.profile)).copied().unwrap_or(Match::No) {
                Match::Yes => {}
                no @ (Match::No | Match::Error) => return no,
            }
        }
        Match::Yes
    }

    fn stage(&self, alternative: &Alternative, at: usize, free: bool) -> Stage {
        let device = &self.seen.devices[at];
        if self.seen.pools[device.pool].trouble.is_some() {
            return Stage::Faulty;
        }
        match self.selects(alternative, device.traits) {
            Match::Yes => {}
            Match::No => return Stage::No,
            Match::Error => return Stage::Error,
        }
        if matches!(device.traits.access, Access::Hidden(_)) {
            return Stage::Hidden;
        }
        let policies = device.traits.capacity.iter().any(|c| c.policy.is_some());
        let asks = !alternative.capacity.is_empty() || device.traits.shareable || policies;
        let draws = if asks { draws(device, alternative) } else { Some(Vec::new()) };
        let Some(draws) = draws else { return Stage::Unfit };
        if device.barred {
            return Stage::KeptBack;
        }
        let tainted = device.traits.taints.iter().any(|taint| {
            taint.effect != Effect::PreferNoSchedule
                && !alternative.tolerations.iter().any(|t| t.tolerates(taint))
        });
        if tainted {
            return Stage::Tainted;
        }
        if device.taken && !alternative.admin && !free {
            return Stage::Taken;
        }
        let short = device.traits.capacity.iter().zip(draws).any(|(capacity, draw)| {
            let held = device.consumed.get(&capacity.name).copied().unwrap_or(0);
            draw + if free { 0 } else { held } > capacity.nanos
        });
        if device.traits.shareable && short { Stage::Short } else { Stage::Fits }
    }

    fn stages(&self, alternative: &Alternative, free: bool) -> Vec<Stage> {
        (0..self.seen.devices.len()).map(|at| self.stage(alternative, at, free)).collect()
    }

    /// Visits every lawful assignment of a part until the visitor has seen enough.
    fn search(&self, part: &Part, visit: &mut dyn FnMut(&[Pick]) -> bool) {
        let mut order: Vec<usize> = (0..self.seen.devices.len()).collect();
        if !self.upstream {
            order.sort_by_key(|at| (self.is_late(*at), &self.seen.devices[*at].key));
        }
        let mut picks = Vec::new();
        self.next_line(part, &order, part.lines.start, &mut picks, visit);
    }

    fn next_line(
        &self,
        part: &Part,
        order: &[usize],
        line: usize,
        picks: &mut Vec<Pick>,
        visit: &mut dyn FnMut(&[Pick]) -> bool,
    ) -> bool {
        if line == part.lines.end {
            return self.lawful(part, picks) && visit(picks);
        }
        let (_, _, request) = self.line(line);
        for (at, alternative) in request.alternatives.iter().enumerate() {
            if part.alternative.is_some_and(|only| only != at) {
                continue;
            }
            let stages = self.stages(alternative, part.free);
            let count = match alternative.amount {
                Amount::Count(count) => count as usize,
                Amount::All => {
                    let all = stages.iter().filter(|s| **s >= Stage::KeptBack).count();
                    let fit = stages.iter().filter(|s| **s == Stage::Fits).count();
                    if fit < all || all == 0 {
                        continue;
                    }
                    all
                }
            };
            let fit: Vec<usize> =
                order.iter().copied().filter(|d| stages[*d] == Stage::Fits).collect();
            if self.next_device(part, order, (line, at, &fit, count), picks, visit) {
                return true;
            }
        }
        false
    }

    /// Combinations of `count` of `fit`, ascending.
    fn next_device(
        &self,
        part: &Part,
        order: &[usize],
        (line, alternative, fit, count): (usize, usize, &[usize], usize),
        picks: &mut Vec<Pick>,
        visit: &mut dyn FnMut(&[Pick]) -> bool,
    ) -> bool {
        if count == 0 {
            return self.next_line(part, order, line + 1, picks, visit);
        }
        for (n, device) in fit.iter().enumerate() {
            let pick = Pick { line, alternative, device: *device };
            if picks.iter().any(|before| self.clash(before, &pick)) {
                continue;
            }
            picks.push(pick);
            let rest = (line, alternative, &fit[n + 1..], count - 1);
            if self.next_device(part, order, rest, picks, visit) {
                return true;
            }
            picks.pop();
        }
        false
    }

    fn alternative(&self, pick: &Pick) -> &'a Alternative {
        &self.line(pick.line).2.alternatives[pick.alternative]
    }

    /// An exclusive device is given once; who only looks may look at what another claim is given.
    fn clash(&self, before: &Pick, pick: &Pick) -> bool {
        before.device == pick.device
            && !self.seen.devices[pick.device].traits.shareable
            && (!self.alternative(pick).admin || self.line(before.line).0 == self.line(pick.line).0)
    }

    fn lawful(&self, part: &Part, picks: &[Pick]) -> bool {
        self.counters(part, picks)
            && self.capacities(part, picks)
            && self.rules().iter().take(part.rules).all(|rule| match rule {
                Rule::Constraint(claim, constraint) => self.constrained(*claim, constraint, picks),
                Rule::Near(claim, level) => {
                    let scope = |line: usize| claim.is_none_or(|c| c == self.line(line).0);
                    let of: Vec<usize> =
                        picks.iter().filter(|p| scope(p.line)).map(|p| p.device).collect();
                    let fixed = if claim.is_none() { self.fixed } else { &[] };
                    let all: BTreeSet<usize> = of.iter().chain(fixed).copied().collect();
                    // A part that leaves out a request can't know that nothing is known.
                    let whole = (0..self.whole().lines.end)
                        .all(|line| !scope(line) || part.lines.contains(&line));
                    of.is_empty() || self.near(&all, *level, whole)
                }
            })
    }

    fn counters(&self, part: &Part, picks: &[Pick]) -> bool {
        let pools = self.seen.pools.iter();
        let mut left: Vec<_> =
            pools.map(|p| if part.free { p.totals.clone() } else { p.left.clone() }).collect();
        let pools = self.seen.pools.iter();
        let mut members: Vec<_> =
            pools.map(|p| if part.free { BTreeMap::new() } else { p.members.clone() }).collect();
        // Who only looks takes nothing.
        let takes: Vec<&Pick> = picks.iter().filter(|p| !self.alternative(p).admin).collect();
        for (n, pick) in takes.iter().enumerate() {
            let device = &self.seen.devices[pick.device];
            let again = takes[..n].iter().any(|p| p.device == pick.device)
                || device.shares > 0 && !part.free;
            if device.traits.counters.is_empty() || device.traits.shareable && again {
                continue;
            }
            let uses = &device.traits.counters;
            charge(&mut left[device.pool], uses);
            // A counter that is overdrawn by others is no matter to who does not use it.
            let takes = |set: &CounterUse, (counter, amount): &(Name, i128)| {
                *amount > 0
                    && left[device.pool]
                        .get(&(set.name.clone(), counter.clone()))
                        .is_some_and(|l| *l < 0)
            };
            if uses.iter().any(|set| set.counters.iter().any(|c| takes(set, c))) {
                return false;
            }
            for set in uses {
                let own = groups_of(device.traits, &set.name);
                let of = members[device.pool].entry(set.name.clone()).or_default();
                if !admits(of, &own) {
                    return false;
                }
                of.push(own);
            }
        }
        true
    }

    fn capacities(&self, part: &Part, picks: &[Pick]) -> bool {
        (0..self.seen.devices.len()).all(|at| {
            let device = &self.seen.devices[at];
            if !device.traits.shareable {
                return true;
            }
            let of: Vec<Vec<i128>> = picks
                .iter()
                .filter(|p| p.device == at)
                .filter_map(|p| draws(device, self.alternative(p)))
                .collect();
            of.is_empty()
                || device.traits.capacity.iter().enumerate().all(|(n, capacity)| {
                    let held = device.consumed.get(&capacity.name).copied().unwrap_or(0);
                    let sum: i128 = of.iter().map(|d| d[n]).sum();
                    sum + if part.free { 0 } else { held } <= capacity.nanos
                })
        })
    }

    fn covers(&self, constraint: &Constraint, line: usize, alternative: usize) -> bool {
        let (_, _, request) = self.line(line);
        let main = request.name.to_string();
        let sub = request.alternatives[alternative].name.as_ref().map(|s| format!("{main}/{s}"));
        constraint.requests.is_empty()
            || constraint
                .requests
                .iter()
                .any(|r| **r == *main || sub.as_ref().is_some_and(|s| **r == **s))
    }

    fn constrained(&self, claim: usize, constraint: &Constraint, picks: &[Pick]) -> bool {
        let mut of: Vec<(usize, usize)> = picks
            .iter()
            .filter(|p| self.line(p.line).0 == claim)
            .filter(|p| self.covers(constraint, p.line, p.alternative))
            .map(|p| (p.line, p.device))
            .collect();
        // Upstream adds the devices of a request in the order of pools and slices, which matters
        // only to values that can't be compared.
        of.sort_unstable();
        let mut values: Vec<&AttributeValue> = Vec::new();
        for (_, device) in of {
            let Some(value) = self.seen.attribute(device, &constraint.attribute) else {
                return false;
            };
            let both =
                |a: &AttributeValue, b: &AttributeValue| parts(a).any(|x| parts(b).any(|y| x == y));
            if !values.is_empty() && *value == AttributeValue::Unset {
                return false;
            }
            if constraint.distinct && values.iter().any(|v| both(v, value)) {
                return false;
            }
            values.push(value);
        }
        let shared = |one: &AttributeValue| values.iter().all(|v| parts(v).any(|x| x == one));
        values.len() < 2 || constraint.distinct || parts(values[0]).any(shared)
    }

    /// Whether devices are of one domain, and (if that is asked) something is known of it.
    /// One device alone always is.
    fn near(&self, of: &BTreeSet<usize>, level: Level, known: bool) -> bool {
        let must: Vec<usize> =
            of.iter().copied().filter(|d| self.seen.must_align(*d, level)).collect();
        let domains: BTreeSet<_> = must.iter().map(|d| self.seen.domain(*d, level)).collect();
        of.len() < 2
            || (!known || of.iter().any(|d| self.seen.joins(*d, level)))
                && (must.len() < 2 || domains.len() == 1 && !domains.contains(&None))
    }

    fn grants(&self, picks: &[Pick]) -> Vec<Grant> {
        let grant = |pick: &Pick| {
            let (asked, request, _) = self.line(pick.line);
            let device = &self.seen.devices[pick.device];
            let alternative = self.alternative(pick);
            let share = device.traits.shareable.then(|| {
                let names = device.traits.capacity.iter().map(|c| c.name.clone());
                names.zip(draws(device, alternative).unwrap()).collect()
            });
            Grant {
                claim: self.wanted[asked].claim as u16,
                request: request as u16,
                alternative: pick.alternative as u16,
                device: device.key.clone(),
                admin: alternative.admin,
                share,
            }
        };
        picks.iter().map(grant).collect()
    }

    fn cost(&self, picks: &[Pick], soft: u32, scarce: &Scarce) -> Cost {
        let seen = self.seen;
        let lines: BTreeMap<usize, usize> = picks.iter().map(|p| (p.line, p.alternative)).collect();
        let mut unaligned = 0;
        let mut wish = |align: &Align, of: BTreeSet<usize>| {
            unaligned += u16::from(!align.required && !self.near(&of, align.level, true));
        };
        for (at, asked) in self.wanted.iter().enumerate() {
            for align in &asked.spec.align {
                let of = picks.iter().filter(|p| self.line(p.line).0 == at);
                wish(align, of.map(|p| p.device).collect());
            }
        }
        let chosen = picks.iter().map(|p| p.device);
        let devices: BTreeSet<usize> = chosen.chain(self.fixed.iter().copied()).collect();
        if self.wanted.is_empty() {
            // Nothing is decided about devices.
            let harm = self.harm(picks, scarce);
            return Cost { soft, harm, ..Cost::default() };
        }
        self.align.iter().for_each(|a| wish(a, devices.clone()));
        let numa: BTreeSet<_> = devices.iter().filter_map(|d| seen.numa(*d)).collect();
        let gpus: Vec<usize> = devices.iter().copied().filter(|d| seen.accelerator(*d)).collect();
        let known = (0..seen.devices.len()).any(|d| seen.accelerator(d));
        let dark = !known && devices.len() > 1;
        let mut farthest = Link::IDEAL;
        for a in &gpus {
            for b in gpus.iter().filter(|b| *b != a) {
                farthest = farthest.max(seen.link(*a, *b));
            }
        }
        let ring = || ring(&gpus, |a, b| seen.link(a, b));
        let off = |level| self.without_partner(&devices, level);
        Cost {
            alternatives: lines.values().map(|a| *a as u32).sum(),
            topology: TopologyCost::default(),
            devices: DeviceCost {
                of_group: 0,
                unaligned,
                islands: self.islands(&gpus),
                slowest: if dark { Link::UNKNOWN } else { ring() },
                farthest: if dark { Link::UNKNOWN } else { farthest },
                nics: NicCost {
                    off_switch: off(Level::Switch),
                    off_root: off(Level::Root),
                    off_numa: off(Level::Numa),
                },
                numa: numa.len().saturating_sub(1) as u16,
            },
            soft,
            harm: self.harm(picks, scarce),
        }
    }

    /// NICs and what they serve, that don't find each other in their domains: each has its share of
    /// the others, and what goes beyond all shares of its domain is left over.
    fn without_partner(&self, devices: &BTreeSet<usize>, level: Level) -> u16 {
        let nics: Vec<usize> = devices.iter().copied().filter(|d| self.seen.nic(*d)).collect();
        let served: Vec<usize> = devices.iter().copied().filter(|d| self.seen.served(*d)).collect();
        if nics.is_empty() || served.is_empty() {
            return 0;
        }
        let left_over = |these: &[usize], those: &[usize]| {
            let share = these.len().div_ceil(those.len());
            let mut room: BTreeMap<String, usize> = BTreeMap::new();
            for domain in those.iter().filter_map(|d| self.seen.domain(*d, level)) {
                *room.entry(domain).or_default() += share;
            }
            let mut left = 0;
            for d in these {
                let room = self.seen.domain(*d, level).and_then(|d| room.get_mut(&d));
                match room {
                    Some(some) if *some > 0 => *some -= 1,
                    Some(_) | None => left += 1,
                }
            }
            left
        };
        left_over(&served, &nics) + left_over(&nics, &served)
    }

    /// What is taken from others, by looking at the node before and after.
    fn harm(&self, picks: &[Pick], scarce: &Scarce) -> Harm {
        let seen = self.seen;
        let shareable = |d: usize| seen.devices[d].traits.shareable;
        // Taken are devices that nobody else can have now; a share leaves the rest to others.
        let earnest: BTreeSet<usize> = picks
            .iter()
            .filter(|p| !self.alternative(p).admin || shareable(p.device))
            .map(|p| p.device)
            .collect();
        let exclusive = |p: &&Pick| !self.alternative(p).admin && !shareable(p.device);
        let given: BTreeSet<usize> = picks.iter().filter(exclusive).map(|p| p.device).collect();
        let before: Vec<_> = seen.pools.iter().map(|p| p.left.clone()).collect();
        let after = self.counters_after(picks);
        let had = |d: usize, left: &[BTreeMap<(Name, Name), i128>], by: &[Pick]| {
            let device = &seen.devices[d];
            let taken = |p: &Pick| p.device == d && !self.alternative(p).admin;
            let shared = device.shares > 0 || by.iter().any(taken);
            let enough = device.traits.counters.iter().all(|set| {
                set.counters.iter().all(|(counter, amount)| {
                    let key = (set.name.clone(), counter.clone());
                    *amount == 0 || left[device.pool].get(&key).is_some_and(|l| l >= amount)
                })
            });
            !device.taken
                && seen.pools[device.pool].trouble.is_none()
                && (enough || shareable(d) && shared)
        };
        let all = 0..seen.devices.len();
        let has = |d: usize| had(d, &after, picks) && !given.contains(&d);
        let lost: Vec<usize> = all.clone().filter(|d| had(*d, &before, &[]) && !has(*d)).collect();
        let mut harm = Harm { islands_broken: self.broken(&earnest, &lost), ..Harm::default() };
        harm.lost_mi = lost.iter().map(|d| self.size(*d, |c| c.nanos)).sum();
        for pick in picks.iter().filter(|p| shareable(p.device)) {
            let device = &seen.devices[pick.device];
            let draws = draws(device, self.alternative(pick)).unwrap();
            let names = device.traits.capacity.iter().map(|c| c.name.clone());
            let drawn: BTreeMap<Name, i128> = names.zip(draws).collect();
            harm.lost_mi += self.size(pick.device, |c| drawn[&c.name]);
        }
        for d in earnest {
            let device = &seen.devices[d];
            let untouched = !device.taken && device.shares == 0;
            harm.wholes_used += u16::from(device.traits.counters.is_empty() && untouched);
            if shareable(d) {
                let used = |c: &Capacity| device.consumed.get(&c.name).copied().unwrap_or(0);
                harm.shared_mi += self.size(d, |c| c.nanos - used(c));
            }
        }
        for (pool, after) in seen.pools.iter().zip(&after) {
            let sets: BTreeSet<&Name> = pool.totals.keys().map(|(set, _)| set).collect();
            for set in sets {
                let of = || pool.totals.iter().filter(|((s, _), _)| s == set);
                let whole = of().all(|(key, total)| pool.left[key] == *total);
                let used = of().any(|(key, _)| pool.left[key] != after[key]);
                harm.wholes_used += u16::from(whole && used);
            }
        }
        let free = (0..seen.devices.len())
            .filter(|d| !shareable(*d) && !seen.devices[*d].taken && !given.contains(d))
            .filter(|d| seen.pools[seen.devices[*d].pool].trouble.is_none());
        harm.scarce_left = scarce.left + free.count() as u32;
        let used = scarce.used || seen.devices.iter().any(|d| d.taken || d.shares > 0);
        let requests = self.wanted.iter().flat_map(|asked| &asked.spec.requests);
        let looks = |r: &DeviceRequest| r.alternatives.iter().all(|a| a.admin);
        let taking = scarce.taking || !requests.into_iter().all(looks);
        harm.fragmentation = u32::from(taking && !used);
        harm.nodes_broken = u16::from(taking && !used && harm.scarce_left > 0);
        harm
    }

    /// An amount of what tells a device's size, in whole Mi.
    fn size(&self, at: usize, amount: impl Fn(&Capacity) -> i128) -> u32 {
        // Devices of these worlds have one capacity at most.
        let capacity = self.seen.devices[at].traits.capacity.first();
        capacity.map_or(0, |c| (amount(c) as f64 / 1e9 / 1048576.0).ceil().max(0.0) as u32)
    }

    fn counters_after(&self, picks: &[Pick]) -> Vec<BTreeMap<(Name, Name), i128>> {
        let mut left: Vec<_> = self.seen.pools.iter().map(|p| p.left.clone()).collect();
        // Who only looks takes nothing.
        let takes: Vec<&Pick> = picks.iter().filter(|p| !self.alternative(p).admin).collect();
        for (n, pick) in takes.iter().enumerate() {
            let device = &self.seen.devices[pick.device];
            let again = takes[..n].iter().any(|p| p.device == pick.device) || device.shares > 0;
            if !(device.traits.counters.is_empty() || device.traits.shareable && again) {
                charge(&mut left[device.pool], &device.traits.counters);
            }
        }
        left
    }

    /// Islands beyond the first; one that is unknown is its own, where any is known.
    fn islands(&self, gpus: &[usize]) -> u16 {
        let island = |d: usize| self.seen.domain(d, Level::Island);
        let all = 0..self.seen.devices.len();
        if !all.into_iter().any(|d| self.seen.accelerator(d) && island(d).is_some()) {
            return 0;
        }
        let own = |d: usize| island(d).unwrap_or(format!("own {d}"));
        let islands: BTreeSet<String> = gpus.iter().map(|d| own(*d)).collect();
        islands.len().saturating_sub(1) as u16
    }

    /// Islands that were whole and free, of which some devices are used and some are left.
    fn broken(&self, used: &BTreeSet<usize>, lost: &[usize]) -> u16 {
        let mut islands: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for at in 0..self.seen.devices.len() {
            if let Some(island) = self.seen.domain(at, Level::Island) {
                islands.entry(island).or_default().push(at);
            }
        }
        let untouched =
            |d: &usize| !self.seen.devices[*d].taken && self.seen.devices[*d].shares == 0;
        let is_broken = |of: &&Vec<usize>| {
            of.iter().all(untouched)
                && of.iter().any(|d| used.contains(d))
                && of.iter().any(|d| !used.contains(d) && !lost.contains(d))
        };
        islands.values().filter(is_broken).count() as u16
    }

    fn feasible(&self, part: &Part) -> bool {
        let mut found = false;
        self.search(part, &mut |_| {
            found = true;
            true
        });
        found
    }

    /// Why there is no assignment: the first request that fails by itself, of its alternatives the
    /// one that gets furthest; else that they don't go together.
    fn why(&self) -> Reason {
        let whole = self.whole();
        for line in whole.lines.clone() {
            let (_, _, request) = self.line(line);
            let parts = (0..request.alternatives.len()).map(|at| Part {
                lines: line..line + 1,
                alternative: Some(at),
                ..whole.clone()
            });
            let parts: Vec<Part> = parts.collect();
            if parts.iter().any(|part| self.feasible(part)) {
                continue;
            }
            let furthest = parts.iter().enumerate().map(|(at, part)| self.alone(line, at, part));
            return furthest.max().unwrap();
        }
        self.not_together(&whole)
    }

    fn faulty(&self, alternative: &Alternative) -> Option<Reason> {
        let of =
            self.seen.devices.iter().filter(|d| self.selects(alternative, d.traits) == Match::Yes);
        let trouble = of.filter_map(|d| self.seen.pools[d.pool].trouble).next();
        // Where the node sees no device at all, any pool in trouble could have had one.
        let any = || self.seen.pools.iter().find_map(|p| p.trouble);
        trouble.or_else(|| if self.seen.devices.is_empty() { any() } else { None })
    }

    /// The check at which one alternative is left with too few devices.
    fn alone(&self, line: usize, at: usize, part: &Part) -> Reason {
        let (_, _, request) = self.line(line);
        let alternative = &request.alternatives[at];
        if let Some(trouble) = self.faulty(alternative) {
            return trouble;
        }
        let stages = self.stages(alternative, false);
        let count = |at_least: Stage| stages.iter().filter(|s| **s >= at_least).count();
        let errors = stages.iter().filter(|s| **s == Stage::Error).count();
        let selected = count(Stage::Hidden);
        let asked = match alternative.amount {
            Amount::Count(n) => n as usize,
            // All that match, also those that can't give the capacity asked.
            Amount::All => count(Stage::Unfit).max(1),
        };
        if stages.is_empty() {
            return Reason::NoDevices;
        }
        if selected < asked {
            return if errors > 0 && (selected == 0 || selected + errors >= asked) {
                Reason::SelectorError
            } else if selected == 0 {
                Reason::SelectorFalse
            } else {
                Reason::TooFewDevices
            };
        }
        self.alone_with_enough(line, at, part, &stages, asked)
    }

    fn alone_with_enough(
        &self,
        line: usize,
        at: usize,
        part: &Part,
        stages: &[Stage],
        asked: usize,
    ) -> Reason {
        // Capacity is named after taints and holders, so those are counted without it.
        let alternative = &self.line(line).2.alternatives[at];
        let is = |d: usize, bad: &dyn Fn(&Dev<'_>) -> bool| {
            stages[d] > Stage::No && !bad(&self.seen.devices[d])
        };
        let tainted = |d: &Dev<'_>| {
            d.traits.taints.iter().any(|taint| {
                taint.effect != Effect::PreferNoSchedule
                    && !alternative.tolerations.iter().any(|t| t.tolerates(taint))
            })
        };
        let devices = || 0..self.seen.devices.len();
        let kept = |d: &Dev<'_>| d.barred || matches!(d.traits.access, Access::Hidden(_));
        if devices().filter(|d| is(*d, &kept)).count() < asked {
            return Reason::DevicesKeptBack;
        }
        let tainted = |d: &Dev<'_>| kept(d) || tainted(d);
        if devices().filter(|d| is(*d, &tainted)).count() < asked {
            return Reason::DeviceTainted;
        }
        let held = |d: &Dev<'_>| tainted(d) || d.taken && !alternative.admin;
        if devices().filter(|d| is(*d, &held)).count() < asked {
            return Reason::DevicesTaken;
        }
        let fits: Vec<usize> = devices().filter(|d| stages[*d] == Stage::Fits).collect();
        if fits.len() < asked {
            return Reason::CapacityShort;
        }
        if !self.feasible(&Part { rules: 0, ..part.clone() }) {
            return Reason::CountersShort;
        }
        for (n, rule) in self.rules().iter().enumerate() {
            let about = self.about(rule, line, at);
            if about && !self.feasible(&Part { rules: n + 1, ..part.clone() }) {
                return self.broken_rule(rule, &fits, asked);
            }
        }
        Reason::NotTogether
    }

    fn about(&self, rule: &Rule<'_>, line: usize, at: usize) -> bool {
        let claim = self.line(line).0;
        match rule {
            Rule::Constraint(of, constraint) => *of == claim && self.covers(constraint, line, at),
            Rule::Near(of, _) => of.is_none_or(|of| of == claim),
        }
    }

    fn broken_rule(&self, rule: &Rule<'_>, fits: &[usize], asked: usize) -> Reason {
        match rule {
            Rule::Constraint(_, constraint) => {
                let has = |d: &&usize| self.seen.attribute(**d, &constraint.attribute).is_some();
                if fits.iter().filter(has).count() < asked {
                    Reason::AttributeMissing
                } else if constraint.distinct {
                    Reason::DistinctUnmet
                } else {
                    Reason::MatchUnmet
                }
            }
            Rule::Near(_, level) if fits.iter().any(|d| self.seen.joins(*d, *level)) => {
                Reason::AlignUnmet
            }
            Rule::Near(..) => Reason::LinksUnknown,
        }
    }

    /// A rule that no set would keep with every device free; or they are in each other's way.
    fn not_together(&self, whole: &Part) -> Reason {
        let free = Part { free: true, ..whole.clone() };
        let with = |rules: usize| Part { rules, ..free.clone() };
        if !self.feasible(&free) && self.feasible(&with(0)) {
            for (n, rule) in self.rules().iter().enumerate() {
                if !self.feasible(&with(n + 1)) {
                    return self.broken_joint_rule(rule, whole);
                }
            }
        }
        let prefix = |end: usize| Part { lines: 0..end, ..whole.clone() };
        let last = (1..whole.lines.end).find(|end| !self.feasible(&prefix(*end)));
        let last = last.unwrap_or(whole.lines.end) - 1;
        let (_, _, request) = self.line(last);
        request.alternatives.iter().find_map(|a| self.faulty(a)).unwrap_or(Reason::NotTogether)
    }

    fn broken_joint_rule(&self, rule: &Rule<'_>, whole: &Part) -> Reason {
        let mut fits = BTreeSet::new();
        let mut asked = 0;
        for line in whole.lines.clone().filter(|line| self.about(rule, *line, 0)) {
            let alternative = &self.line(line).2.alternatives[0];
            let stages = self.stages(alternative, true);
            fits.extend((0..stages.len()).filter(|d| stages[*d] == Stage::Fits));
            asked += match alternative.amount {
                Amount::Count(n) => n as usize,
                Amount::All => stages.iter().filter(|s| **s >= Stage::Unfit).count(),
            };
        }
        self.broken_rule(rule, &fits.into_iter().collect::<Vec<_>>(), asked)
    }
}

/// Whether a device of these groups goes with those that are there: of the first it is said whether
/// they have groups, and then all of them have one in common.
fn admits(members: &[Vec<Name>], own: &[Name]) -> bool {
    let Some(first) = members.first() else { return true };
    let with_groups = || members.iter().filter(|groups| !groups.is_empty());
    first.is_empty() == own.is_empty()
        && (own.is_empty() || own.iter().any(|g| with_groups().all(|of| of.contains(g))))
}

/// The scalars of a value.
fn parts(value: &AttributeValue) -> Box<dyn Iterator<Item = &AttributeValue> + '_> {
    match value {
        AttributeValue::List(all) => Box::new(all.iter()),
        AttributeValue::Unset => Box::new(std::iter::empty()),
        AttributeValue::Int(_)
        | AttributeValue::Bool(_)
        | AttributeValue::String(_)
        | AttributeValue::Version(_) => Box::new(std::iter::once(value)),
    }
}

/// What a request takes of each capacity of a device; none where it never can.
fn draws(device: &Dev<'_>, alternative: &Alternative) -> Option<Vec<i128>> {
    let asked = |name: &Name| alternative.capacity.iter().find(|(n, _)| n == name).map(|(_, a)| *a);
    let known = |name: &Name| device.traits.capacity.iter().any(|c| c.name == *name);
    if !alternative.capacity.iter().all(|(name, _)| known(name)) {
        return None;
    }
    let draw = |capacity: &Capacity| {
        let policy = capacity.policy.as_deref();
        let taken = match (asked(&capacity.name), policy) {
            (None, Some(CapacityPolicy { default: Some(default), .. })) => *default,
            (None, _) => capacity.nanos,
            (Some(amount), None) => amount,
            (Some(amount), Some(policy)) if !policy.valid.is_empty() => {
                *policy.valid.iter().find(|v| **v >= amount)?
            }
            (Some(amount), Some(CapacityPolicy { range: Some((Some(min), max, step)), .. })) => {
                let mut rounded = amount.max(*min);
                while step.is_some_and(|step| (rounded - min) % step != 0) {
                    rounded += 1_000_000_000;
                }
                if max.is_some_and(|max| rounded > max) {
                    return None;
                }
                rounded
            }
            (Some(amount), Some(_)) => amount,
        };
        // Without a default all of it is asked for, which the policy may not allow.
        let all = asked(&capacity.name).is_none();
        let allowed = match policy.filter(|p| all && p.default.is_none()) {
            None => true,
            Some(policy) if !policy.valid.is_empty() => policy.valid.contains(&taken),
            Some(policy) => policy.range.is_none_or(|(min, max, step)| {
                let above = taken - min.unwrap_or(0);
                max.is_none_or(|max| taken <= max) && step.is_none_or(|step| above % step == 0)
            }),
        };
        (allowed && taken <= capacity.nanos).then_some(taken)
    };
    device.traits.capacity.iter().map(draw).collect()
}

/// The bottleneck of the best ring, over all orders.
fn ring(of: &[usize], link: impl Fn(usize, usize) -> Link) -> Link {
    fn orders(of: &mut Vec<usize>, from: usize, see: &mut dyn FnMut(&[usize])) {
        if from == of.len() {
            return see(of);
        }
        for at in from..of.len() {
            of.swap(from, at);
            orders(of, from + 1, see);
            of.swap(from, at);
        }
    }
    if of.len() < 2 {
        return Link::IDEAL;
    }
    let mut best = Link::UNKNOWN;
    orders(&mut of.to_vec(), 1, &mut |order| {
        let edges = (0..order.len()).map(|n| link(order[n], order[(n + 1) % order.len()]));
        best = best.min(edges.max().unwrap_or(Link::IDEAL));
    });
    best
}
