//! LeaderWorkerSet: groups of a leader and its workers, all of whose names are known beforehand.

use std::ops::Range;

use phalanx_objects::workload::{LeaderStartupPolicy, LeaderWorkerSet};

use super::exclusive::{self, Alone};
use super::record::{Numbers, Places, Rank};
use super::{Expansion, RolePlan, count, marks};
use crate::finding::Severity;

const EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";
const SUBGROUP_EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology";
const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
const SET_NAME: &str = "leaderworkerset.sigs.k8s.io/name";
const SUBGROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/subgroup-index";

/// A LeaderWorkerSet.
pub(super) fn leader_worker_set(set: &LeaderWorkerSet) -> Expansion<'_> {
    let mut expansion = Expansion { keeps_leaving: true, ..Expansion::default() };
    let template = &set.spec.leader_worker_template;
    let groups = set.spec.replicas.map_or(1, count);
    let size = template.size.map_or(1, count);
    refusals(set, size, &mut expansion);
    let workers = size.saturating_sub(1);
    let base = &set.metadata.name;
    let worker_at = "spec.leaderWorkerTemplate.workerTemplate.spec";
    let (leader, leader_at) = match &template.leader_template {
        Some(leader) => (leader, "spec.leaderWorkerTemplate.leaderTemplate.spec"),
        None => (&template.worker_template, worker_at),
    };
    expansion.roles.push(RolePlan {
        // A leader's label says its group, and 0 as its number in it.
        places: Places { numbers: Numbers::Part, per: Some(1), ..Places::plain(base) },
        rank: Rank::Within { per: 1, first: 0 },
        ..RolePlan::numbered("leader", base, leader, leader_at, groups)
    });
    if workers > 0 {
        let wanted = groups.saturating_mul(workers);
        expansion.roles.push(RolePlan {
            places: Places {
                numbers: Numbers::PartAndOwn(1),
                first_label: 1,
                per: Some(workers),
                ..Places::plain(base)
            },
            rank: Rank::Within { per: workers, first: 1 },
            ..RolePlan::numbered("worker", base, &template.worker_template, worker_at, wanted)
        });
    }
    if template.leader_template.is_none() {
        // Kueue makes one pod set of a group whose pods are all alike.
        for role in &mut expansion.roles {
            role.is_of_one_set = true;
        }
    }
    let claims = &template.volume_claim_templates;
    let roles = std::mem::take(&mut expansion.roles).into_iter();
    expansion.roles = roles.map(|role| role.with_volume_claims(claims)).collect();
    keep_apart(set, (groups, size), &mut expansion);
    place_each(set, (groups, size), &mut expansion);
    if set.spec.startup_policy == LeaderStartupPolicy::LeaderReady && workers > 0 {
        let message = "Workers are made once their leader is ready. They are planned beside it.";
        expansion.due(Severity::Info, "spec.startupPolicy", message);
    }
    expansion
}

/// Makes each of several groups a gang of its own where its templates ask Kueue for places: it makes a
/// Workload of each group.
fn place_each(set: &LeaderWorkerSet, (groups, size): (u32, u32), expansion: &mut Expansion<'_>) {
    let asked = expansion.roles.iter().find_map(marks::of_template);
    let Some(field) = asked.filter(|_| groups > 1) else { return };
    let is_cut = expansion.roles.iter().all(|role| role.span.is_some());
    if !is_cut && !exclusive::can_be_cut(groups.saturating_mul(2)) {
        let message = format!(
            "{groups} groups are placed each for itself. That is not kept for so many: their pods are \
             placed one by one, wherever they fit."
        );
        expansion.due(Severity::Warning, &field, message);
        return;
    }
    let workers = size.saturating_sub(1);
    let whole = std::mem::take(&mut expansion.roles);
    for role in whole {
        if let Some(group) = group_of(&role) {
            let gang = Some((format!("{}-{group}", set.metadata.name), field.clone()));
            expansion.roles.push(RolePlan { gang, ..role });
            continue;
        }
        let each = if role.name == "leader" { 1 } else { workers };
        for group in 0..groups {
            let first = group.saturating_mul(each);
            let mut one = exclusive::part(&role, first..first.saturating_add(each));
            one.labels.push((GROUP_INDEX, group.to_string()));
            one.gang = Some((format!("{}-{group}", set.metadata.name), field.clone()));
            expansion.roles.push(one);
        }
    }
}

/// The group that a role is of, where it is of one.
fn group_of(role: &RolePlan<'_>) -> Option<String> {
    let own = role.labels.iter().find(|(label, _)| *label == GROUP_INDEX);
    own.map(|(_, group)| group.clone()).filter(|_| role.span.is_some())
}

/// Gives each group, or part of one, the domain that it is to have for itself, as the webhook does.
fn keep_apart(set: &LeaderWorkerSet, (groups, size): (u32, u32), expansion: &mut Expansion<'_>) {
    let annotations = &set.metadata.annotations;
    let of_group = annotations.get(EXCLUSIVE).map(String::as_str);
    let policy = set.spec.leader_worker_template.sub_group_policy.as_ref();
    let part = policy.and_then(|policy| policy.sub_group_size).map(count);
    let part = part.filter(|part| (1..=size).contains(part));
    let of_part = annotations.get(SUBGROUP_EXCLUSIVE).map(String::as_str).zip(part);
    let (named, key) = match (of_group, of_part) {
        (Some(key), _) => (EXCLUSIVE, key),
        (None, Some((key, _))) => (SUBGROUP_EXCLUSIVE, key),
        (None, None) => return,
    };
    let field = format!("metadata.annotations[{named:?}]");
    let parts = of_part.map_or(1, |(_, part)| size / part).saturating_add(1);
    if !exclusive::can_be_cut(groups.saturating_mul(parts)) {
        let message = format!(
            "{groups} groups are to have domains for themselves. That is not kept for so many: their \
             pods are placed wherever they fit."
        );
        expansion.due(Severity::Warning, &field, message);
        return;
    }
    let excluded = policy.is_some_and(|p| p.sub_group_policy_type == "LeaderExcluded");
    let workers = size.saturating_sub(1);
    let whole = std::mem::take(&mut expansion.roles);
    for group in 0..groups {
        for role in &whole {
            let leads = role.name == "leader";
            let first = if leads { group } else { group.saturating_mul(workers) };
            let spans = match of_part {
                _ if leads => vec![(Some(0).filter(|_| !excluded), group..group.saturating_add(1))],
                Some((_, part)) => parts_of(workers, size, part, first),
                None => vec![(None, first..first.saturating_add(workers))],
            };
            for (number, span) in spans {
                let mut one = exclusive::part(role, span);
                let own = [(SET_NAME, set.metadata.name.clone()), (GROUP_INDEX, group.to_string())];
                one.labels.push((GROUP_INDEX, group.to_string()));
                if let Some(topology) = of_group {
                    let (key, part) = (SET_NAME, own.as_slice());
                    one.keep_alone(&Alone { key, part, topology, everywhere: false });
                }
                if let (Some((topology, _)), Some(number)) = (of_part, number) {
                    let label = (SUBGROUP_INDEX, number.to_string());
                    one.labels.push(label.clone());
                    let (key, part) = (SUBGROUP_INDEX, [own.as_slice(), &[label]].concat());
                    one.keep_alone(&Alone { key, part: &part, topology, everywhere: false });
                }
                expansion.roles.push(one);
            }
        }
    }
    let (what, part) = match of_group {
        Some(_) => ("Each group", "a group"),
        None => ("Each part of a group", "a part"),
    };
    let message = exclusive::told(what, part, key, &expansion.roles);
    expansion.due(Severity::Info, &field, message);
}

/// The workers of a group by the number of their part; `first` is the index of the first of them.
fn parts_of(workers: u32, size: u32, part: u32, first: u32) -> Vec<(Option<u32>, Range<u32>)> {
    // Where the parts are filled without the leader, it is one more in the first.
    let beside = size.saturating_sub(1).is_multiple_of(part);
    let start = |number: u32| {
        let before = number.saturating_mul(part);
        if beside { before.saturating_add(1) } else { before.max(1) }
    };
    let spans = (0..).map_while(|number: u32| {
        let from = start(number);
        let to = start(number.saturating_add(1)).min(workers.saturating_add(1));
        let span = first.saturating_add(from - 1)..first.saturating_add(to.saturating_sub(1));
        (from <= workers).then_some((Some(number), span))
    });
    spans.collect()
}

/// What its webhook refuses.
fn refusals(set: &LeaderWorkerSet, size: u32, expansion: &mut Expansion<'_>) {
    let at = "spec.leaderWorkerTemplate";
    if size == 0 {
        let message = "A LeaderWorkerSet whose groups have no pods is refused.";
        expansion.refuse(&format!("{at}.size"), message);
    }
    let policy = set.spec.leader_worker_template.sub_group_policy.as_ref();
    let part = policy.and_then(|policy| policy.sub_group_size).map(count);
    if let Some(part) = part {
        let whole = part > 0 && size.is_multiple_of(part);
        let rest = part > 0 && size.saturating_sub(1).is_multiple_of(part);
        let excluded = policy.is_some_and(|p| p.sub_group_policy_type == "LeaderExcluded");
        if !(rest || whole && !excluded) {
            let message = format!(
                "Parts of {part} pods do not fill a group of {size}, with its leader or without: a \
                 LeaderWorkerSet with such a subGroupSize is refused."
            );
            expansion.refuse(&format!("{at}.subGroupPolicy.subGroupSize"), message);
        }
    }
    if policy.is_none() && set.metadata.annotations.contains_key(SUBGROUP_EXCLUSIVE) {
        let message = "A LeaderWorkerSet with this annotation and without a subGroupPolicy is \
                       refused.";
        let at = format!("metadata.annotations[{SUBGROUP_EXCLUSIVE:?}]");
        expansion.refuse(&at, message);
    }
}
