//! `apps/v1`: Deployment and ReplicaSet, StatefulSet, DaemonSet.

use std::borrow::Cow;

use phalanx_objects::core::{TaintEffect, Toleration, TolerationOperator};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::workload::{DaemonSet, PodManagementPolicy, ReplicasSpec, StatefulSet};

use super::record::{Numbers, Places, Rank};
use super::{Expansion, RolePlan, count};
use crate::finding::Severity;

/// A Deployment, or a ReplicaSet of its own.
pub(super) fn replicas<'a>(meta: &ObjectMeta, spec: &'a ReplicasSpec) -> Expansion<'a> {
    let wanted = spec.replicas.map_or(1, count);
    let role = RolePlan::alike(&meta.name, &spec.template, "spec.template.spec", wanted);
    Expansion { roles: vec![role], ..Expansion::default() }
}

/// A StatefulSet. What has ended is made anew, under the same name.
pub(super) fn stateful_set(set: &StatefulSet) -> Expansion<'_> {
    let wanted = set.spec.replicas.map_or(1, count);
    let start = set.spec.ordinals.as_ref().map_or(0, |ordinals| count(ordinals.start));
    let base = &set.metadata.name;
    let role = RolePlan {
        sign: String::new(),
        places: Places { numbers: Numbers::Own(start), first_label: start, ..Places::plain(base) },
        rank: Rank::From(start),
        ..RolePlan::numbered("", base, &set.spec.template, "spec.template.spec", wanted)
    };
    let role = role.with_volume_claims(&set.spec.volume_claim_templates);
    // Its pod is made anew once the old one is gone.
    let mut expansion =
        Expansion { roles: vec![role], keeps_leaving: true, ..Expansion::default() };
    let one_by_one = match &set.spec.pod_management_policy {
        PodManagementPolicy::Parallel => false,
        PodManagementPolicy::OrderedReady | PodManagementPolicy::Other(_) => true,
    };
    if one_by_one && wanted > 1 {
        let message = "Its pods are made one after the other, each once those before it are ready: \
                       one that can't be placed keeps back those that follow. All are planned.";
        expansion.due(Severity::Info, "spec.podManagementPolicy", message);
    }
    expansion
}

/// Taints that every pod of a DaemonSet tolerates (daemon controller,
/// `AddOrUpdateDaemonPodTolerations`).
const TOLERATED: [(&str, TaintEffect); 6] = [
    ("node.kubernetes.io/not-ready", TaintEffect::NoExecute),
    ("node.kubernetes.io/unreachable", TaintEffect::NoExecute),
    ("node.kubernetes.io/disk-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/memory-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/pid-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/unschedulable", TaintEffect::NoSchedule),
];

/// A DaemonSet. Its one role says what each pod is like; how many there are, and on which nodes, is
/// worked out among the nodes.
pub(super) fn daemon_set(set: &DaemonSet) -> Expansion<'_> {
    let mut template = set.spec.template.clone();
    for (key, effect) in TOLERATED {
        template.spec.tolerations.push(Toleration {
            key: key.to_owned(),
            operator: TolerationOperator::Exists,
            effect,
            ..Toleration::default()
        });
    }
    // Its own required affinity chooses the nodes, and stands here for that; the pod's is replaced by
    // the name of its node.
    let role = RolePlan {
        template: Cow::Owned(template),
        ..RolePlan::alike(&set.metadata.name, &set.spec.template, "spec.template.spec", 1)
    };
    Expansion { roles: vec![role], keeps_leaving: true, ..Expansion::default() }
}
