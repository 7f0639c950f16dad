//! How many pods of each role of a gang must start, what of it comes in parts beyond them, and what is not
//! there.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{Name, Part as Beyond};

use super::Draft;
use super::spec::{Part, Spec, total};

/// Parts of so many pods each that one gang may have beyond those that must start.
const PARTS_MAX: u32 = 4096;

/// How many must start.
pub(super) struct Minima {
    /// Of each role.
    pub(super) least: Vec<u32>,
    /// Of all of them, those on nodes included.
    pub(super) needed: u64,
    /// How many there are for that, of parts no more than these need.
    there: u64,
    /// What need not start, as the engine has it.
    pub(super) parts: Vec<Beyond>,
    /// By role, why none of it can come: too few pods of its part exist.
    pub(super) lacking: BTreeMap<usize, String>,
    /// Parts that need not start and started in part.
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

/// How many of each role must start, those on nodes counted as long as they stay: first what each part
/// needs, then what all of it does, role by role.
pub(super) fn minima(spec: &Spec, drafts: &[Draft]) -> Minima {
    let mut minima = Minima {
        least: vec![0; drafts.len()],
        needed: 0,
        there: 0,
        parts: Vec::new(),
        lacking: BTreeMap::new(),
        halves: Vec::new(),
    };
    if spec.min.is_none() && spec.parts.iter().all(|part| part.min.is_none()) {
        minima.by_role(drafts);
        return minima;
    }
    for part in spec.parts.iter().filter(|part| part.unit.is_none()) {
        let Some(min) = part.min else { continue };
        let is = |draft: &Draft| is_of(part, draft);
        let on_nodes = running(drafts, is).min(min);
        let left = take(&mut minima.least, drafts, min - on_nodes, is);
        minima.needed += u64::from(min);
        minima.there += u64::from(min - left);
    }
    if let Some(min) = spec.min {
        let so_far = running(drafts, |_| true).saturating_add(total(minima.least.iter().copied()));
        let optional = spec.parts.iter().filter(|part| part.unit.is_some()).collect::<Vec<_>>();
        let must = |draft: &Draft| !optional.iter().any(|part| is_of(part, draft));
        let left = take(&mut minima.least, drafts, min.saturating_sub(so_far), must);
        // Where those that must are too few, others fill up.
        let left = take(&mut minima.least, drafts, left, |_| true);
        let of_all = u64::from(min);
        let has = of_all - u64::from(left);
        if of_all > minima.needed {
            minima.there = has.min(minima.there + (of_all - minima.needed));
            minima.needed = of_all;
        }
    }
    minima.by_unit(spec, drafts);
    minima.by_segment(spec, drafts);
    minima
}

/// Whether a role is of a part.
fn is_of(part: &Part, draft: &Draft) -> bool {
    draft.part.as_ref().is_some_and(|name| part.names.contains(name))
}

/// How many pods of some roles are on nodes.
fn running(drafts: &[Draft], is: impl Fn(&Draft) -> bool) -> u32 {
    total(drafts.iter().filter(|draft| draft.counts() && is(draft)).map(Draft::len))
}

/// Raises what roles must start with until so many more do; answers how many there are not for that.
fn take(least: &mut [u32], drafts: &[Draft], wanted: u32, is: impl Fn(&Draft) -> bool) -> u32 {
    let mut left = wanted;
    for (least, draft) in least.iter_mut().zip(drafts).filter(|(_, d)| !d.line.running && is(d)) {
        let more = left.min(draft.len() - *least);
        *least += more;
        left -= more;
    }
    left
}

impl Minima {
    /// Where neither the gang nor a part of it says how many: what roles say, or all.
    fn by_role(&mut self, drafts: &[Draft]) {
        for (least, draft) in self.least.iter_mut().zip(drafts) {
            if draft.line.running {
                continue;
            }
            let of = &draft.line.of;
            let on_nodes = running(drafts, |other| of.is_some() && other.line.of == *of);
            *least = match draft.least {
                Some(own) => own.saturating_sub(on_nodes).min(draft.len()),
                None => draft.len(),
            };
        }
        let more: u64 = self.least.iter().map(|n| u64::from(*n)).sum();
        let all = more + u64::from(running(drafts, |_| true));
        (self.needed, self.there) = (all, all);
    }

    /// Parts that need not start: of each so many pods, beside those on nodes, or none.
    fn by_unit(&mut self, spec: &Spec, drafts: &[Draft]) {
        let mut lacking: BTreeSet<u16> = BTreeSet::new();
        for (at, unit) in (0_u16..).zip(&spec.units) {
            let mut least = self.least.clone();
            let mut of = Vec::new();
            let mut lack = unit.after.filter(|base| lacking.contains(base)).map(|base| {
                let base = spec.units.get(usize::from(base));
                let base = base.map_or_else(String::new, |base| base.name.to_string());
                format!(
                    "its subgroup {} comes after {base}, of which too few pods are there",
                    unit.name
                )
            });
            for part in spec.parts.iter().filter(|part| part.unit == Some(at)) {
                let Some(min) = part.min else { continue };
                let is = |draft: &Draft| is_of(part, draft);
                let on_nodes = running(drafts, is);
                // Those that fill up what the whole gang needs are there with it.
                let with_all =
                    total(least.iter().zip(drafts).filter(|(_, draft)| is(draft)).map(|(n, _)| *n));
                let beyond = min.saturating_sub(on_nodes.saturating_add(with_all));
                let left = take(&mut least, drafts, beyond, is);
                let name = part.names.first().map_or("", Name::as_str);
                if left > 0 {
                    let verb = if min - left == 1 { "is" } else { "are" };
                    let said = format!(
                        "its subgroup {name}, which need not start, needs {min} pods, of which {} {verb} there",
                        min - left
                    );
                    lack.get_or_insert(said);
                }
                let roles = || (0..).zip(drafts).filter(|(_, draft)| is(draft));
                of.extend(roles().map(|(role, _)| role));
                if (1..min).contains(&on_nodes) {
                    self.halves.push(HalfPart {
                        name: unit.name.clone(),
                        needs: min,
                        roles: roles().map(|(role, _)| role).collect(),
                    });
                }
            }
            if let Some(lack) = lack {
                lacking.insert(at);
                self.lacking.extend(of.iter().map(|role: &usize| (*role, lack.clone())));
            }
            let grown = least.iter().zip(&self.least).enumerate();
            let grown = grown.filter(|(_, (new, old))| new > old);
            let least =
                grown.filter_map(|(role, (new, _))| Some((u16::try_from(role).ok()?, *new)));
            self.parts.push(Beyond {
                name: unit.name.clone(),
                least: least.collect(),
                after: unit.after,
            });
        }
    }

    /// Parts of so many pods of consecutive index each, beyond those that must start: of a gang whose pods
    /// are of one role, none of which runs yet.
    fn by_segment(&mut self, spec: &Spec, drafts: &[Draft]) {
        let (Some(size), [draft], [least]) = (spec.segment, drafts, &*self.least) else { return };
        if draft.line.running || !spec.units.is_empty() {
            return;
        }
        let ends = (1..=PARTS_MAX).map_while(|nth| size.checked_mul(nth));
        let ends = ends.filter(|end| end > least).take_while(|end| *end <= draft.len());
        self.parts = ends
            .map(|end| Beyond {
                name: Name::new(&format!("{}", end / size)),
                least: [(0, end)].into(),
                after: None,
            })
            .collect();
    }
}

impl Spec {
    /// What to say where there are too few pods, or the object that declares it is not there.
    pub(super) fn incomplete(&self, minima: &Minima) -> Option<(String, String)> {
        if let Some(missing) = &self.missing {
            return Some((format!("{missing} does not exist"), String::new()));
        }
        if let Some(few) = &self.few {
            return Some((few.clone(), String::new()));
        }
        (minima.there < minima.needed).then(|| {
            let verb = if minima.there == 1 { "is" } else { "are" };
            let text =
                format!("it needs {} pods, of which {} {verb} there", minima.needed, minima.there);
            (text, String::new())
        })
    }
}
