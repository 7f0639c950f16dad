//! VolumeRestrictions: disks that pods of one node may not share, and claims for one pod alone.

use super::{Failing, Mounts, failing};
use crate::decision::Facts;
use crate::facts::Request;
use crate::name::Name;
use crate::reason::{Reason, Status};
use crate::state::State;
use crate::storage::{Disk, VolumeUse};

pub(super) fn check(
    state: &State,
    request: &Request,
    mounts: &Mounts,
    slot: u32,
) -> Result<(), Failing> {
    if mounts.emptied {
        return Ok(());
    }
    let disk = |mounted: &VolumeUse| match mounted {
        VolumeUse::Disk { disk, .. } => disk.clone(),
        VolumeUse::Claim(_) | VolumeUse::Ephemeral(_) => None,
    };
    let there = &state.nodes.at(slot).volumes.uses;
    for own in request.volumes.iter().filter_map(disk) {
        let there = there.iter().filter_map(|(mounted, _)| disk(mounted));
        if there.into_iter().any(|other| conflict(&own, &other)) {
            let facts = Facts::Subject { subject: name(&own).clone(), detail: Name::default() };
            return Err(Failing::new(Reason::DiskInUse, Status::Unschedulable).with(facts));
        }
    }
    match &mounts.in_use {
        Some(claim) => {
            let claim = &claim.0.name;
            Err(failing(Reason::VolumeClaimInUse, Status::Unschedulable, claim, |_| {}))
        }
        None => Ok(()),
    }
}

/// Whether two pods on one node can't both have these.
fn conflict(one: &Disk, other: &Disk) -> bool {
    match (one, other) {
        (Disk::Gce(a, a_reads), Disk::Gce(b, b_reads))
        | (Disk::Iscsi(a, a_reads), Disk::Iscsi(b, b_reads)) => a == b && !(*a_reads && *b_reads),
        (Disk::Ebs(a), Disk::Ebs(b)) => a == b,
        (Disk::Rbd(a_at, a_pool, a, a_reads), Disk::Rbd(b_at, b_pool, b, b_reads)) => {
            a_pool == b_pool
                && a == b
                && a_at.iter().any(|monitor| b_at.contains(monitor))
                && !(*a_reads && *b_reads)
        }
        (Disk::Gce(..) | Disk::Ebs(_) | Disk::Iscsi(..) | Disk::Rbd(..), _) => false,
    }
}

fn name(disk: &Disk) -> &Name {
    match disk {
        Disk::Gce(name, _) | Disk::Ebs(name) | Disk::Iscsi(name, _) | Disk::Rbd(_, _, name, _) => {
            name
        }
    }
}
