//! The claims on volumes that a workload has each of its pods given (`volumeClaimTemplates`): one that
//! is there is used, one that is not is made with its pod.

use phalanx_engine::{Ephemeral, Name, Scoped, VolumeClaimKey, VolumeUse};

use super::super::Lowering;
use super::super::volumes::{Mounter, uses};
use super::record::RoleRecord;

impl Lowering {
    /// The pods of a role that are to be made, in runs that are alike: one for which a claim is there
    /// stands alone. Each run is a role to the engine.
    pub(crate) fn runs<'d>(
        &self,
        namespace: &Name,
        role: &RoleRecord,
        due: &'d [u32],
    ) -> Vec<&'d [u32]> {
        if role.volume_claims.is_empty() || due.is_empty() {
            return vec![due];
        }
        let is_there = |index: &u32| {
            let mut claims = role.volume_claims.iter();
            claims.any(|(template, _)| {
                self.has_volume_claim(&claim(namespace, template, role, *index))
            })
        };
        due.chunk_by(|one, next| !is_there(one) && !is_there(next)).collect()
    }

    /// What the pods of a run mount.
    pub(crate) fn volumes_of(
        &self,
        namespace: &Name,
        role: &RoleRecord,
        run: &[u32],
    ) -> Box<[VolumeUse]> {
        let shared = uses(&role.shape.volumes, namespace, &Mounter::Planned);
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
