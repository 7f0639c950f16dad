//! LeaderWorkerSet: groups of a leader and its workers, all of whose names are known beforehand.

use phalanx_objects::workload::{LeaderStartupPolicy, LeaderWorkerSet};

use super::record::{Numbers, Places, Rank};
use super::{Expansion, RolePlan, count};
use crate::finding::Severity;

const EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";
const SUBGROUP_EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology";

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
    let claims = &template.volume_claim_templates;
    let roles = std::mem::take(&mut expansion.roles).into_iter();
    expansion.roles = roles.map(|role| role.with_volume_claims(claims)).collect();
    for name in [EXCLUSIVE, SUBGROUP_EXCLUSIVE] {
        if let Some(key) = set.metadata.annotations.get(name) {
            let message = format!(
                "Each group, or part of one, is to have a domain of {key} for itself. Phalanx does \
                 not keep that yet: its pods are placed wherever they fit."
            );
            expansion.due(Severity::Warning, &format!("metadata.annotations[{name:?}]"), message);
        }
    }
    if set.spec.startup_policy == LeaderStartupPolicy::LeaderReady && workers > 0 {
        let message = "Workers are made once their leader is ready. They are planned beside it.";
        expansion.due(Severity::Info, "spec.startupPolicy", message);
    }
    expansion
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
