//! Cures as they are shown: for whom they are looked for, and what is said of those for whom they are not.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{GroupKey, PodKey, Report, Verdict};
use phalanx_objects::{Kind, ObjectRef};

use super::ViewOptions;
use super::build::{account, culprit, home_of, seats_of, who_sits};
use super::schema::CureView;
use crate::cure::{Ask, Bench, Cure, Cures, Part, Subject, Trials, cures};
use crate::lower::{ClaimName, GroupInfo, PodInfo};
use crate::plan::Plan;
use crate::words::{self, Cured};
use crate::world::World;

/// Most kinds of pods of one gang for each of which cures are looked for.
const KINDS_MAX: usize = 8;

/// What is said of the cures of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) cures: Vec<CureView>,
    /// What to say where not all were tried.
    pub(super) note: Option<String>,
}

/// What could be found of a group's cures.
#[derive(Clone, Debug, Default)]
pub(super) struct CuresFound {
    /// Of the group; of one that is no gang that is of each of its pods.
    pub(super) of_group: Told,
    /// Of the pods of a gang that find no place.
    of_pods: BTreeMap<PodKey, Told>,
}

impl CuresFound {
    /// Of a group for which none was looked for: because there are so many beside it, or the trials are spent.
    pub(super) fn untried(group: &GroupKey) -> Self {
        let note = words::cures_cut(Some((group.object.namespace.as_str(), &group.to_string())));
        let of_group = Told { cures: Vec::new(), note: Some(note) };
        Self { of_group, ..Self::default() }
    }

    /// What is said of a pod.
    pub(super) fn of(&self, pod: &PodKey) -> &Told {
        self.of_pods.get(pod).unwrap_or(&self.of_group)
    }
}

/// The cures of these groups, with the trials shared out evenly; what one leaves the next may take. Where a pod
/// is asked about, those for it; else for each group, and of a gang for each kind of its pods that find no place.
/// `known` holds accounts that were asked for already.
pub(super) fn cures_of_all(
    (world, plan): (&mut World, &Plan),
    groups: &[GroupKey],
    asked: Option<&PodKey>,
    known: &BTreeMap<GroupKey, Report>,
    options: &ViewOptions,
) -> BTreeMap<GroupKey, CuresFound> {
    let mut all = BTreeMap::new();
    let Some(mut left) = options.trials else { return all };
    let mut bench = Bench::default();
    for (at, group) in groups.iter().enumerate() {
        let part = left.part(groups.len() - at);
        let mut trials = part;
        // Asked alone, it has all the trials that there are.
        let alone = groups.len() == 1 && options.alone;
        let of = Of { plan, group, asked, alone };
        if let Some(found) = of.cures(world, &mut bench, known.get(group), &mut trials) {
            all.insert(group.clone(), found);
        }
        left.spend(part, trials);
    }
    all
}

/// A group whose cures are looked for.
struct Of<'a> {
    plan: &'a Plan,
    group: &'a GroupKey,
    asked: Option<&'a PodKey>,
    /// There is no smaller question.
    alone: bool,
}

impl Of<'_> {
    fn cures(
        &self,
        world: &mut World,
        bench: &mut Bench,
        known: Option<&Report>,
        trials: &mut Trials,
    ) -> Option<CuresFound> {
        if *trials == Trials(0) {
            let note = Some(self.cut(&self.group.to_string(), self.alone));
            let of_group = Told { cures: Vec::new(), note };
            return Some(CuresFound { of_group, ..CuresFound::default() });
        }
        let info = world.lowering().group(self.group)?;
        let made = if known.is_some() { None } else { account(world, self.plan, self.group, None) };
        let report = known.or(made.as_ref())?;
        let subject = self.subject(world, &info, report);
        let asks = self.asks(&info, &subject);
        let found = cures(world, bench, self.plan, &subject, (report, &asks), trials);
        let started = self.has_started(world);
        let name = self.group.to_string();
        let mut told = CuresFound::default();
        let mut by_part: Vec<(&Part, &Cures, usize)> = Vec::new();
        for (ask, found) in asks.iter().zip(&found) {
            match ask {
                Ask::All => told.of_group = self.told(found, |_| Cured::All, &name),
                Ask::More => {
                    let more = |cure: &Cure| Cured::Group { started, more: cure.more };
                    told.of_group = self.told(found, more, &name);
                }
                Ask::Pod(at, part) => by_part.push((part, found, *at)),
            }
        }
        if let [(_, found, at)] = by_part.as_slice()
            && self.asked.is_some()
        {
            told.of_group = self.told(found, |_| Cured::Pod, &pod_name(&subject.open[*at]));
            return Some(told);
        }
        self.tell_pods(&info, &subject, &by_part, &mut told);
        Some(told)
    }

    /// What is said of each pod of a gang that finds no place: what was found for the first that is like it, as
    /// far as that places it.
    fn tell_pods(
        &self,
        info: &GroupInfo,
        subject: &Subject,
        by_part: &[(&Part, &Cures, usize)],
        told: &mut CuresFound,
    ) {
        let roles: BTreeMap<&PodKey, usize> = info
            .roles
            .iter()
            .enumerate()
            .flat_map(|(at, role)| role.pods.iter().map(move |pod| (&pod.key, at)))
            .collect();
        for (at, pod) in subject.open.iter().enumerate() {
            let role = roles.get(pod);
            let like =
                |(_, _, first): &&(&Part, &Cures, usize)| roles.get(&subject.open[*first]) == role;
            let name = pod_name(pod);
            let of_pod = by_part.iter().find(like).map(|(_, found, first)| {
                let here = |cure: &&Cure| cure.placed.get(at) == Some(&true);
                let placing: Vec<Cure> = found.found.iter().filter(here).cloned().collect();
                let fewer = placing.len() < found.found.len();
                let placing = Cures { found: placing, cut: found.cut };
                let mut told = self.told(&placing, |_| Cured::Pod, &name);
                if fewer {
                    // The next may take more of the same than the first.
                    let first = &subject.open[*first].0.name;
                    told.note = Some(words::cures_of_like(first, (self.namespace(), &name)));
                }
                told
            });
            let untried = || Told { cures: Vec::new(), note: Some(self.cut(&name, false)) };
            told.of_pods.insert(pod.clone(), of_pod.unwrap_or_else(untried));
        }
    }

    fn told(&self, found: &Cures, whom: impl Fn(&Cure) -> Cured, name: &str) -> Told {
        let view = |cure: &Cure| CureView {
            edit: cure.edit.to_string(),
            message: words::cure_sentence(&cure.edit, whom(cure), cure.waiting),
            waiting: cure.waiting,
        };
        Told {
            cures: found.found.iter().map(view).collect(),
            note: found.cut.then(|| self.cut(name, self.alone)),
        }
    }

    /// That not all was tried, and where there is more: in a question about this alone, unless it is that.
    fn cut(&self, name: &str, alone: bool) -> String {
        words::cures_cut((!alone).then_some((self.namespace(), name)))
    }

    fn namespace(&self) -> &str {
        self.group.object.namespace.as_str()
    }

    /// Whether the group runs whole, or starts by the plan.
    fn has_started(&self, world: &World) -> bool {
        let mut verdicts = self.plan.decision.verdicts.iter();
        let own = verdicts.find(|(group, _)| group == self.group);
        let lowering = world.lowering();
        let (runs, needed) = (lowering.running(self.group), lowering.needed(self.group));
        own.is_some_and(|(_, verdict)| matches!(verdict, Verdict::Placed { .. }))
            || (runs > 0 && runs >= needed)
    }

    /// For whom cures are looked for.
    fn asks(&self, info: &GroupInfo, subject: &Subject) -> Vec<Ask> {
        if !info.gang {
            return vec![Ask::All];
        }
        let number = |pod: &PodKey| subject.open.iter().position(|open| open == pod);
        let ask = |pod: &PodInfo| Some(Ask::Pod(number(&pod.key)?, part_of(info, pod)));
        let pods = || info.roles.iter().flat_map(|role| &role.pods);
        if let Some(asked) = self.asked {
            let own = pods().find(|pod| pod.key == *asked);
            return own.and_then(ask).into_iter().collect();
        }
        // The first of each kind: pods of a role get their seats in their order.
        let firsts = info.roles.iter().filter_map(|role| role.pods.iter().find_map(ask));
        std::iter::once(Ask::More).chain(firsts.take(KINDS_MAX)).collect()
    }

    /// What a cure is looked for: the first role of a group that is short; of one that starts whole all that
    /// are, the one that stands in the way first.
    fn subject(&self, world: &World, info: &GroupInfo, report: &Report) -> Subject {
        let seats = seats_of(&self.plan.decision, self.group);
        let given = |at: usize| seats.iter().filter(|seat| usize::from(seat.role) == at).count();
        let short = info.roles.iter().enumerate().filter(|(at, role)| role.pods.len() > given(*at));
        let in_the_way = culprit(&report.verdict);
        let mut roles: Vec<usize> = short.map(|(at, _)| at).collect();
        roles.sort_by_key(|at| Some(*at) != in_the_way);
        let sit: BTreeSet<&PodKey> = seats.iter().filter_map(|seat| who_sits(seat, info)).collect();
        let is_open = |pod: &&PodInfo| !info.gang || !sit.contains(&pod.key);
        let pods = roles.iter().filter_map(|at| info.roles.get(*at)?.pods.iter().find(is_open));
        let mut parts: Vec<Part> = Vec::new();
        for part in pods.map(|pod| part_of(info, pod)) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        if parts.is_empty() {
            let any = info.roles.iter().find_map(|role| role.pods.first());
            let spec_of = crate::lower::declaring(&info.key);
            let none = Part { spec_of, role: 0, claims: Vec::new() };
            parts.push(any.map_or(none, |pod| part_of(info, pod)));
        }
        if !info.gang {
            parts.truncate(1);
        }
        let pods = info.roles.iter().flat_map(|role| &role.pods);
        let open = pods.filter(|pod| info.gang && is_open(pod)).map(|pod| pod.key.clone());
        let open = open.collect();
        Subject {
            group: info.key.clone(),
            parts,
            placed: u32::try_from(seats.len()).unwrap_or(u32::MAX),
            gang: info.gang,
            own: world.lowering().pods_in_gang(&info.key),
            open,
            declared: world.lowering().objects_of_group(&info.key),
        }
    }
}

fn pod_name(pod: &PodKey) -> String {
    format!("pod/{}", pod.0.name)
}

/// What a pod of a group is like.
fn part_of(info: &GroupInfo, pod: &PodInfo) -> Part {
    let of_claim = |claim: &crate::lower::ClaimInfo| {
        let (kind, name) = match (&claim.claim, &claim.template) {
            (ClaimName::Planned(_), Some(template)) => (Kind::ResourceClaimTemplate, template),
            (ClaimName::Planned(key) | ClaimName::Real(key), _) => {
                (Kind::ResourceClaim, &key.0.name)
            }
        };
        let namespace = info.key.object.namespace.to_string();
        Some(ObjectRef { kind, namespace, name: name.to_string() })
    };
    let claims = pod.claims.iter().map(of_claim).collect();
    Part { spec_of: home_of(pod), role: pod.role, claims }
}
