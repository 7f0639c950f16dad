//! How many pods of each role of a gang must start, what of it comes in parts beyond them, and what is not
//! there.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{AnyOf, GroupKey, Name, Part as Beyond, Parts, Reason};

use super::Draft;
use super::spec::{Part, Spec, total};
use super::volcano::subgroup;
use crate::words;

/// Parts of so many pods each that one gang may have beyond those that must start.
const PARTS_MAX: u32 = 4096;

/// How many must start.
pub(super) struct Minima {
    /// Of each role.
    pub(super) least: Vec<u32>,
    /// Of all of them, those on nodes included; where there is a choice of parts, of those of which the fewest
    /// are missing.
    pub(super) needed: u64,
    /// How many there are for that, of parts no more than these need; parts among which there is a choice
    /// left out.
    there: u64,
    /// How many of those that are needed are not on nodes.
    missing: u64,
    /// What is there whole or not at all, as the engine has it.
    pub(super) parts: Parts,
    /// By role, why none of it can come, in words: its part lacks pods or is gated.
    pub(super) kept_out: BTreeMap<usize, (Reason, String)>,
    /// Too few pods are there, in words.
    few: Option<String>,
    /// Too few parts are without gates: so those of all pods hold.
    pub(super) is_gated: bool,
    /// Parts among which there is a choice and that started in part.
    pub(super) halves: Vec<HalfPart>,
}

/// A part of which some pods run, and fewer than make it whole.
#[derive(Clone, Debug)]
pub(super) struct HalfPart {
    pub(super) name: Name,
    pub(super) needs: u32,
    /// Its roles, as the engine numbers them.
    pub(super) roles: Vec<usize>,
}

/// What there is of a unit.
#[derive(Clone, Default)]
struct Standing {
    /// Pods that make it whole, those on nodes included, and those of them that are not on nodes.
    needs: u64,
    missing: u64,
    /// What it lacks, in words, where too few pods are there.
    lack: Option<String>,
    /// A gate keeps some that are missing.
    gated: bool,
}

impl Standing {
    /// Whether it may start, gates aside or not.
    fn may_start(&self, gates: bool) -> bool {
        self.lack.is_none() && !(gates && self.gated)
    }
}

/// How many of each role must start, those on nodes counted as long as they stay: first what each part
/// needs, then what all of it does. Where pods of several roles may count for that, it is any so many of
/// them.
pub(super) fn minima(spec: &Spec, drafts: &[Draft]) -> Minima {
    let mut minima = Minima {
        least: vec![0; drafts.len()],
        needed: 0,
        there: 0,
        missing: 0,
        parts: Parts::default(),
        kept_out: BTreeMap::new(),
        few: None,
        is_gated: false,
        halves: Vec::new(),
    };
    if spec.min.is_none() && spec.parts.iter().all(|part| part.min.is_none()) {
        minima.by_role(drafts);
        minima.by_segment(spec, drafts);
        minima.hold_gated(spec, drafts);
        return minima;
    }
    for part in spec.parts.iter().filter(|part| part.unit.is_none()) {
        let Some(min) = part.min else { continue };
        let is = |draft: &Draft| is_of(part, draft);
        let on_nodes = running(drafts, is).min(min);
        let left = minima.need(drafts, min, is);
        minima.needed += u64::from(min);
        minima.there += u64::from(min - left);
        minima.missing += u64::from(min - on_nodes);
        if left > 0 {
            let name = part.names.first().map_or("", Name::as_str);
            let few = words::too_few(Some(name), u64::from(min), u64::from(min - left));
            minima.few.get_or_insert(few);
        }
    }
    if let Some(min) = spec.min {
        let so_far = running(drafts, |_| true).saturating_add(minima.to_start(drafts));
        let optional = spec.parts.iter().filter(|part| part.unit.is_some()).collect::<Vec<_>>();
        let must = |draft: &Draft| !optional.iter().any(|part| is_of(part, draft));
        let more = min.saturating_sub(so_far);
        let left = minima.need_of_all(drafts, (min, more), must);
        // Where those that must are too few, others fill up.
        let waiting = (0..).zip(drafts).filter(|(_, draft)| !draft.line.running);
        let left = take(&mut minima.least, drafts, left, waiting.map(|(role, _)| role));
        let of_all = u64::from(min);
        let has = of_all - u64::from(left);
        minima.missing += u64::from(more);
        if of_all > minima.needed {
            minima.there = has.min(minima.there + (of_all - minima.needed));
            minima.needed = of_all;
        }
    }
    if minima.there < minima.needed {
        minima.few.get_or_insert_with(|| words::too_few(None, minima.needed, minima.there));
    }
    minima.by_unit(spec, drafts);
    minima.by_segment(spec, drafts);
    minima.hold_gated(spec, drafts);
    if minima.missing > 0 {
        let runs = u64::from(running(drafts, |_| true));
        minima.needed = minima.needed.max(runs + minima.missing);
    }
    minima
}

/// Whether a role is of a part.
fn is_of(part: &Part, draft: &Draft) -> bool {
    draft.is_of(&part.names)
}

/// How many pods of some roles are on nodes.
fn running(drafts: &[Draft], is: impl Fn(&Draft) -> bool) -> u32 {
    total(drafts.iter().filter(|draft| draft.counts() && is(draft)).map(Draft::len))
}

/// Raises what these roles must start with until so many more do; answers how many there are not for that.
fn take(
    least: &mut [u32],
    drafts: &[Draft],
    wanted: u32,
    roles: impl Iterator<Item = usize>,
) -> u32 {
    let mut left = wanted;
    for at in roles {
        if let (Some(least), Some(draft)) = (least.get_mut(at), drafts.get(at)) {
            let more = left.min(draft.len() - *least);
            *least += more;
            left -= more;
        }
    }
    left
}

/// The roles of which members that wait may start.
struct Pool {
    /// By index, each with how many of its members are not taken yet.
    of: Vec<(u16, u32)>,
    /// Too few of them are without a gate: so those that have one are among them.
    is_gated: bool,
}

impl Pool {
    /// Of some roles, of which so many members are wanted beside those that are taken.
    fn of(drafts: &[Draft], least: &[u32], wanted: u32, is: impl Fn(&Draft) -> bool) -> Self {
        let waiting = (0_u16..).zip(drafts.iter().zip(least));
        let waiting = waiting.filter(|(_, (draft, _))| !draft.line.running && is(draft));
        let waiting: Vec<(u16, &Draft, u32)> =
            waiting.map(|(role, (draft, least))| (role, draft, draft.len() - *least)).collect();
        let free = waiting.iter().filter(|(_, draft, _)| draft.gates.is_empty());
        let enough = total(free.map(|(.., open)| *open)) >= wanted;
        let is_gated = !enough && waiting.iter().any(|(_, draft, _)| !draft.gates.is_empty());
        let of = waiting.into_iter().filter(|(_, draft, _)| is_gated || draft.gates.is_empty());
        Self { of: of.map(|(role, _, open)| (role, open)).collect(), is_gated }
    }

    /// Whether it is a matter of choice which so many of them are.
    fn is_choice(&self, wanted: u32) -> bool {
        let open = || self.of.iter().map(|(_, open)| *open).filter(|open| *open > 0);
        wanted > 0 && open().count() > 1 && total(open()) > wanted
    }

    /// Any so many of them, and of those of these roles that run.
    fn any(&self, drafts: &[Draft], least: u32, is: impl Fn(&Draft) -> bool) -> AnyOf {
        let runs = (0_u16..).zip(drafts).filter(|(_, draft)| draft.counts() && is(draft));
        let roles = self.of.iter().map(|(role, _)| *role).chain(runs.map(|(role, _)| role));
        AnyOf { roles: roles.collect(), least }
    }

    /// Raises what its roles must start with until so many more do; answers how many there are not for that.
    fn take(&self, least: &mut [u32], drafts: &[Draft], wanted: u32) -> u32 {
        take(least, drafts, wanted, self.of.iter().map(|(role, _)| usize::from(*role)))
    }
}

impl Minima {
    /// Where neither the gang nor a part of it says how many: what roles say, or all.
    fn by_role(&mut self, drafts: &[Draft]) {
        let mut known: BTreeSet<&Option<(GroupKey, u16)>> = BTreeSet::new();
        for (role, draft) in drafts.iter().enumerate().filter(|(_, draft)| !draft.line.running) {
            let of = &draft.line.of;
            match draft.least {
                // Pods of one role that are unlike are of one minimum.
                Some(own) if of.is_some() => {
                    if known.insert(of) {
                        self.need(drafts, own, |other| other.line.of == *of);
                    }
                }
                Some(own) => self.least[role] = own.min(draft.len()),
                None => self.least[role] = draft.len(),
            }
        }
        let all = u64::from(self.to_start(drafts)) + u64::from(running(drafts, |_| true));
        (self.needed, self.there) = (all, all);
    }

    /// Lets so many members of some roles start, those on nodes counted: any so many, where they are unlike
    /// and not all must. Answers how many there are not for that.
    fn need(&mut self, drafts: &[Draft], min: u32, is: impl Fn(&Draft) -> bool) -> u32 {
        let wanted = min.saturating_sub(running(drafts, &is));
        let pool = Pool::of(drafts, &self.least, wanted, &is);
        if pool.is_choice(wanted) {
            self.parts.any = [&self.parts.any[..], &[pool.any(drafts, min, &is)]].concat().into();
            return 0;
        }
        pool.take(&mut self.least, drafts, wanted)
    }

    /// The same of all that must start, which lack so many more than parts of them say.
    fn need_of_all(
        &mut self,
        drafts: &[Draft],
        (min, more): (u32, u32),
        must: impl Fn(&Draft) -> bool,
    ) -> u32 {
        let none = vec![0; drafts.len()];
        let wanted = self.to_start(drafts).saturating_add(more);
        let pool = Pool::of(drafts, &none, wanted, &must);
        let open = Pool::of(drafts, &self.least, more, &must);
        let is_choice = match self.parts.any.is_empty() {
            true => open.is_choice(more),
            false => pool.is_choice(wanted),
        };
        if more > 0 && is_choice {
            let mut any = pool.any(drafts, min, &must);
            let runs = (0_u16..).zip(drafts).filter(|(_, draft)| draft.counts() && !must(draft));
            any.roles = any.roles.iter().copied().chain(runs.map(|(role, _)| role)).collect();
            self.parts.any = [&self.parts.any[..], &[any]].concat().into();
            return 0;
        }
        // Where minima of parts leave a choice and all must, all it is.
        let so_far = total(self.least.iter().copied());
        let left = pool.take(&mut self.least, drafts, if more > 0 { wanted - so_far } else { 0 });
        left.min(more)
    }

    /// How many of those that wait must start.
    fn to_start(&self, drafts: &[Draft]) -> u32 {
        let any = self.parts.any.iter().map(|any| {
            let role = |role: &u16| drafts.get(usize::from(*role)).filter(|d| d.counts());
            any.least.saturating_sub(total(any.roles.iter().filter_map(role).map(Draft::len)))
        });
        total(self.least.iter().copied()).saturating_add(total(any))
    }

    /// Keeps out those that a gate holds and that nobody needs; others are held by a gate on what is needed.
    fn hold_gated(&mut self, spec: &Spec, drafts: &[Draft]) {
        let of_unit =
            |draft: &Draft| spec.parts.iter().any(|part| part.unit.is_some() && is_of(part, draft));
        for (role, draft) in (0_u16..).zip(drafts).filter(|(_, draft)| !draft.line.running) {
            let at = usize::from(role);
            let needed = self.least.get(at).is_some_and(|least| *least > 0)
                || self.parts.any.iter().any(|any| any.roles.contains(&role));
            if !draft.gates.is_empty() && !needed && !of_unit(draft) {
                self.kept_out.insert(at, (Reason::Gated, joined(&draft.gates)));
            }
        }
    }

    /// Parts among which there is a choice: of each so many pods, beside those on nodes, or none.
    fn by_unit(&mut self, spec: &Spec, drafts: &[Draft]) {
        let mut standings: Vec<Standing> = Vec::with_capacity(spec.units.all.len());
        let mut roles: Vec<Vec<usize>> = Vec::with_capacity(spec.units.all.len());
        for (at, unit) in (0_u16..).zip(&spec.units.all) {
            let mut standing = Standing::default();
            let (mut least, mut of, mut any) = (self.least.clone(), Vec::new(), Vec::new());
            for part in spec.parts.iter().filter(|part| part.unit == Some(at)) {
                let Some(min) = part.min else { continue };
                of.extend((0..).zip(drafts).filter(|(_, d)| is_of(part, d)).map(|(role, _)| role));
                by_leaf((part, min), drafts, (&mut least, &mut any), &mut standing);
            }
            let of_role = |role: &usize| {
                Some((u16::try_from(*role).ok()?, least.get(*role).copied().unwrap_or_default()))
            };
            self.parts.all.push(Beyond {
                name: unit.name.clone(),
                least: of.iter().filter_map(of_role).collect(),
                any: any.into(),
                under: unit.under,
                fewest: unit.fewest,
                held: false,
            });
            standings.push(standing);
            roles.push(of);
        }
        self.parts.fewest = spec.units.fewest;
        // Who is under a unit stands behind it.
        for at in (0..standings.len()).rev() {
            let Some(unit) = u16::try_from(at).ok() else { continue };
            let chosen = chosen(spec, &standings, Some(unit));
            standings[at].needs += chosen.needs;
            standings[at].missing += chosen.missing;
            standings[at].gated |= chosen.gated;
            standings[at].lack = standings[at].lack.take().or(chosen.lack);
        }
        self.tell_halves(spec, &standings, &roles);
        let all = chosen(spec, &standings, None);
        self.needed += all.needs;
        self.missing += all.missing;
        self.is_gated = all.lack.is_none() && all.gated;
        self.few = self.few.take().or(all.lack);
        self.keep_out(spec, drafts, &standings, &roles);
    }

    /// Units of which some pods run, and fewer than make them whole. Of one that is above another that is told
    /// of nothing is.
    fn tell_halves(&mut self, spec: &Spec, standings: &[Standing], roles: &[Vec<usize>]) {
        let is_half = |at: u16| {
            let standing = standings.get(usize::from(at));
            standing.is_some_and(|of| of.missing > 0 && of.missing < of.needs)
        };
        for (at, (unit, standing)) in (0_u16..).zip(spec.units.all.iter().zip(standings)) {
            let below = spec.units.below(at);
            if !is_half(at) || below.iter().any(|of| is_half(*of)) {
                continue;
            }
            let all = std::iter::once(at).chain(below);
            let roles = all.filter_map(|of| roles.get(usize::from(of))).flatten().copied();
            let needs = u32::try_from(standing.needs).unwrap_or(u32::MAX);
            self.halves.push(HalfPart { name: unit.name.clone(), needs, roles: roles.collect() });
        }
    }

    /// Keeps out the roles of units that can't start: for want of pods, their own or those of what they are
    /// under; or for a gate, unless that holds for all.
    fn keep_out(
        &mut self,
        spec: &Spec,
        drafts: &[Draft],
        standings: &[Standing],
        roles: &[Vec<usize>],
    ) {
        let gates = gates_of(spec, drafts, standings, roles);
        // By unit what holds it, and the unit that lacks pods where that is why.
        let mut holds: Vec<Option<(Reason, String, Option<&Name>)>> =
            Vec::with_capacity(standings.len());
        for (at, (unit, standing)) in spec.units.all.iter().zip(standings).enumerate() {
            let base = unit.under.and_then(|base| holds.get(usize::from(base))?.as_ref());
            let gated = standing.gated && !self.is_gated;
            let hold = match (&standing.lack, base) {
                (Some(lack), _) => Some((Reason::GroupIncomplete, lack.clone(), Some(&unit.name))),
                (None, Some((reason, _, Some(lacking)))) => {
                    Some((*reason, words::comes_after(&unit.name, lacking), Some(*lacking)))
                }
                (None, Some((.., None)) | None) if gated => {
                    Some((Reason::Gated, joined(&gates[at]), None))
                }
                (None, base) => base.cloned(),
            };
            if let Some(part) = self.parts.all.get_mut(at) {
                let lacks = hold.as_ref().is_some_and(|(.., lacking)| lacking.is_some());
                part.held = gated || lacks;
            }
            for role in &roles[at] {
                let own = drafts.get(*role).map_or(&[][..], |draft| &draft.gates);
                let kept = match &hold {
                    Some((Reason::GroupIncomplete, lack, _)) => {
                        Some((Reason::GroupIncomplete, lack.clone()))
                    }
                    Some(_) | None if self.is_gated => None,
                    Some(_) | None if !own.is_empty() => Some((Reason::Gated, joined(own))),
                    Some((reason, text, _)) => Some((*reason, text.clone())),
                    None => None,
                };
                self.kept_out.extend(kept.map(|kept| (*role, kept)));
            }
            holds.push(hold);
        }
    }

    /// Parts of so many pods each in their order, beyond those that must start: of each role whose pods that
    /// wait are all alike. Those that run are whole parts as far as they go.
    fn by_segment(&mut self, spec: &Spec, drafts: &[Draft]) {
        if !spec.units.all.is_empty() {
            return;
        }
        let waiting = || (0_u16..).zip(drafts).filter(|(_, draft)| !draft.line.running);
        for (role, draft) in waiting() {
            let of = &draft.line.of;
            let is = |other: &Draft| spec.segment.is_some() || other.line.of == *of;
            let alone = waiting().filter(|(_, other)| is(other)).count() == 1;
            let own = draft.part_size.map(|size| (&draft.name, size));
            let all = spec.segment.as_ref().map(|segment| (&segment.name, segment.size));
            let Some((name, size)) = all.or(own).filter(|(_, size)| alone && *size > 1) else {
                continue;
            };
            let least = self.least.get(usize::from(role)).copied().unwrap_or_default();
            let runs = running(drafts, is);
            let (first, all) = (runs / size, runs.saturating_add(draft.len()));
            let indexes = if draft.part_size.is_some() { draft.indexes() } else { Vec::new() };
            let ends = (first + 1..=first.saturating_add(PARTS_MAX))
                .map_while(|nth| size.checked_mul(nth))
                .skip_while(|end| end - runs <= least)
                .take_while(|end| *end <= all);
            let part = |end: u32| {
                // By the number of its first pod, where pods have one; else which it is in order.
                let before = usize::try_from((end - size).saturating_sub(runs)).ok();
                let first = before.and_then(|at| indexes.get(at)).copied().unwrap_or(end - size);
                Beyond {
                    name: subgroup(name, &(first / size).to_string()),
                    least: [(role, end - runs)].into(),
                    ..Beyond::default()
                }
            };
            self.parts.all.extend(ends.map(part));
        }
    }
}

/// Adds what the pods of one part give its unit.
fn by_leaf(
    (part, min): (&Part, u32),
    drafts: &[Draft],
    (least, any): (&mut [u32], &mut Vec<AnyOf>),
    standing: &mut Standing,
) {
    let is = |draft: &Draft| is_of(part, draft);
    let on_nodes = running(drafts, is);
    // Those that fill up what the whole gang needs are there with it.
    let with_all = total(least.iter().zip(drafts).filter(|(_, d)| is(d)).map(|(n, _)| *n));
    let beyond = min.saturating_sub(on_nodes.saturating_add(with_all));
    let pool = Pool::of(drafts, least, beyond, is);
    let left = match pool.is_choice(beyond) {
        true => {
            any.push(pool.any(drafts, min, is));
            0
        }
        false => pool.take(least, drafts, beyond),
    };
    // Those that run are of it as well.
    let mut there = min;
    for (least, draft) in least.iter_mut().zip(drafts).filter(|(_, d)| d.counts() && is(d)) {
        *least = there.min(draft.len());
        there -= *least;
    }
    standing.needs += u64::from(min);
    standing.missing += u64::from(min.saturating_sub(on_nodes));
    if left > 0 {
        let name = part.names.first().map_or("", Name::as_str);
        let lack = words::too_few(Some(name), u64::from(min), u64::from(min - left));
        standing.lack.get_or_insert(lack);
    }
    standing.gated |= on_nodes < min && pool.is_gated;
}

/// By unit the gates of its pods that wait, and of those of the units under it that a gate holds.
fn gates_of(
    spec: &Spec,
    drafts: &[Draft],
    standings: &[Standing],
    roles: &[Vec<usize>],
) -> Vec<BTreeSet<Name>> {
    let own = |roles: &Vec<usize>| {
        let waiting = roles.iter().filter_map(|role| drafts.get(*role));
        let waiting = waiting.filter(|draft| !draft.line.running);
        waiting.flat_map(|draft| draft.gates.iter().cloned()).collect()
    };
    let mut gates: Vec<BTreeSet<Name>> = roles.iter().map(own).collect();
    for (at, (unit, standing)) in spec.units.all.iter().zip(standings).enumerate().rev() {
        let Some(base) = unit.under.filter(|_| standing.lack.is_none() && standing.gated) else {
            continue;
        };
        let of = gates.get(at).cloned().unwrap_or_default();
        if let Some(base) = gates.get_mut(usize::from(base)) {
            base.extend(of);
        }
    }
    gates
}

/// Gates by name.
fn joined<'n>(gates: impl IntoIterator<Item = &'n Name>) -> String {
    gates.into_iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

/// What those under a unit, or under none, come to: so many as are needed of them, those of which the fewest
/// pods are missing.
fn chosen(spec: &Spec, standings: &[Standing], of: Option<u16>) -> Standing {
    let fewest = match of {
        Some(at) => spec.units.all.get(usize::from(at)).map_or(0, |unit| unit.fewest),
        None => spec.units.fewest,
    };
    let under = || spec.units.under(of).filter_map(|at| standings.get(usize::from(at)));
    let mut chosen = Standing::default();
    if fewest == 0 {
        return chosen;
    }
    let mut may: Vec<&Standing> = under().filter(|one| one.may_start(false)).collect();
    may.sort_by_key(|one| (one.missing, one.needs));
    if may.len() < fewest as usize {
        let first = under().find_map(|one| one.lack.as_deref()).unwrap_or_default();
        let unit = of.and_then(|at| spec.units.all.get(usize::from(at)));
        let part = unit.map(|unit| unit.name.as_str());
        let (all, enough) = (under().count(), may.len());
        chosen.lack = Some(words::too_few_parts(part, (fewest, all, enough), first));
    }
    chosen.gated = may.iter().filter(|one| one.may_start(true)).count() < fewest as usize;
    // Those of which too few pods are there are missing all the same.
    let mut all = may;
    all.extend(under().filter(|one| !one.may_start(false)));
    for one in all.into_iter().take(fewest as usize) {
        chosen.needs += one.needs;
        chosen.missing += one.missing;
    }
    chosen
}

impl Spec {
    /// What to say where there are too few pods, or the object that declares it is not there.
    pub(super) fn incomplete(&self, minima: &Minima) -> Option<(String, String)> {
        if let Some(missing) = &self.missing {
            return Some((missing.clone(), String::new()));
        }
        if let Some(few) = &self.few {
            return Some((few.clone(), String::new()));
        }
        minima.few.clone().map(|few| (few, String::new()))
    }
}
