//! What pods mount, and the claims on volumes that a workload has each of its pods given
//! (`volumeClaimTemplates`): one that is there is used, one that is not is made with its pod.

use phalanx_engine::{
    Ephemeral, GroupKey, Name, PodKey, Scoped, VolumeClaim, VolumeClaimKey, VolumeUse,
};
use phalanx_objects::workload::WorkloadKind;

use super::super::Lowering;
use super::super::record::{Life, PodRecord};
use super::super::volumes::{Mounter, uses};
use super::names::is_fixed;
use super::record::RoleRecord;

impl Lowering {
    /// The pods of a role that are to be made, in runs that are alike: one for which a claim is there,
    /// whose name something else has, or whose number a rule selects by, stands alone. Each run is a role
    /// to the engine.
    pub(crate) fn runs<'d>(
        &self,
        key: &GroupKey,
        kind: WorkloadKind,
        role: &RoleRecord,
        due: &'d [u32],
    ) -> Vec<&'d [u32]> {
        let is_numbered = self.is_numbered(key, kind, role, due.len());
        let alike = role.volume_claims.is_empty() && !is_fixed(kind) && !is_numbered;
        if due.is_empty() || alike {
            return vec![due];
        }
        let namespace = &key.object.namespace;
        let is_there = |index: &u32| {
            let mut claims = role.volume_claims.iter();
            claims.any(|(template, _)| {
                self.has_volume_claim(&claim(namespace, template, role, *index))
            })
        };
        let is_alone = |index: &u32| {
            is_numbered || is_there(index) || self.taken(key, kind, role, *index).is_some()
        };
        due.chunk_by(|one, next| !is_alone(one) && !is_alone(next)).collect()
    }

    /// Why the API server would refuse a claim that is made for each pod of a run, for a sentence.
    pub(in crate::lower) fn unclaimed(
        &self,
        namespace: &Name,
        role: &RoleRecord,
        run: &[u32],
    ) -> Option<String> {
        role.volume_claims.iter().find_map(|(template, asks)| {
            let first = claim(namespace, template, role, *run.first()?);
            let there = run.len() == 1 && self.has_volume_claim(&first);
            if there { None } else { self.claim_refused(namespace, template, asks) }
        })
    }

    /// What a pod mounts.
    pub(in crate::lower) fn mounted(&self, key: &PodKey, record: &PodRecord) -> Box<[VolumeUse]> {
        let volumes = &record.shape.volumes;
        if volumes.is_empty() {
            return Box::default();
        }
        let (pod, uid) = (&key.0.name, &record.header.uid);
        let known = || Name::new(&uid.to_string());
        let exists = !uid.is_none() || record.header.created.is_some();
        let mounter = match record.life {
            Life::Pending => Mounter::Pod(pod, exists.then(known)),
            Life::Bound(_)
            | Life::Terminating(..)
            | Life::Foreign
            | Life::Leaving
            | Life::Ended => Mounter::OnNode(pod, known()),
        };
        let namespace = &key.0.namespace;
        let refused = |asks: &VolumeClaim| self.claim_refused(namespace, "", asks).is_some();
        uses(volumes, namespace, &mounter, &refused)
    }

    /// What the pods of a run mount.
    pub(crate) fn volumes_of(
        &self,
        namespace: &Name,
        role: &RoleRecord,
        run: &[u32],
    ) -> Box<[VolumeUse]> {
        let refused = |asks: &VolumeClaim| self.claim_refused(namespace, "", asks).is_some();
        let shared = uses(&role.shape.volumes, namespace, &Mounter::Planned, &refused);
        if role.volume_claims.is_empty() {
            return shared;
        }
        let own = role.volume_claims.iter().map(|(template, asks)| {
            let alone = match run {
                [index] => Some(claim(namespace, template, role, *index)),
                _ => None,
            };
            match alone.filter(|key| self.has_volume_claim(key)) {
                Some(key) => VolumeUse::Claim(key),
                None => VolumeUse::Ephemeral(Ephemeral {
                    claim: None,
                    pod: (Name::default(), Name::default()),
                    planned: Some(asks.clone()),
                }),
            }
        });
        shared.into_iter().chain(own).collect()
    }
}

/// The claim of a pod: the template's name, and the pod's.
fn claim(namespace: &Name, template: &Name, role: &RoleRecord, index: u32) -> VolumeClaimKey {
    let name = Name::new(&format!("{template}-{}", role.places.name(index)));
    VolumeClaimKey(Scoped { namespace: namespace.clone(), name })
}
