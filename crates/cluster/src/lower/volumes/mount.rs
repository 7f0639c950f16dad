//! What a pod mounts: as its shape has it, without the names of namespace and pod, and as the engine
//! gets it.

use phalanx_engine::{
    Attach, Disk, Ephemeral, Name, Scoped, Shared, VolumeClaim, VolumeClaimKey, VolumeUse,
};
use phalanx_objects::core::PodSpec;
use phalanx_objects::storage::{InTreeDisk, PersistentVolumeClaim, Volume};

use super::super::intern::Names;
use super::claim::asked;
use super::translate::inline;

/// A volume of a pod that decides where the pod can be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PodVolume {
    /// A claim in the pod's namespace.
    Claim(Name),
    /// A claim that is made for the pod: the volume's name, and what the claim asks.
    Ephemeral(Name, Shared<VolumeClaim>),
    /// A disk that the pod names itself.
    Disk(Option<Disk>, Option<Attach>),
}

/// The volumes of a pod or of a pod template.
pub(crate) fn pod_volumes(spec: &PodSpec, names: &mut Names) -> Box<[PodVolume]> {
    spec.volumes.placed.iter().map(|volume| pod_volume(volume, names)).collect()
}

fn pod_volume(volume: &Volume, names: &mut Names) -> PodVolume {
    if let Some(claim) = &volume.persistent_volume_claim {
        return PodVolume::Claim(names.get(&claim.claim_name));
    }
    if let Some(ephemeral) = &volume.ephemeral {
        let template = ephemeral.volume_claim_template.as_ref();
        let claim = template.map(|template| asked(&template.metadata, &template.spec, names));
        let claim = Shared::new(claim.unwrap_or_default());
        return PodVolume::Ephemeral(names.get(&volume.name), claim);
    }
    let pool = |pool: &str| if pool.is_empty() { Name::new("rbd") } else { Name::new(pool) };
    let disk = match (volume.disk(), &volume.iscsi, &volume.rbd) {
        (Some(InTreeDisk::Gce(disk)), _, _) => {
            Some(Disk::Gce(names.get(&disk.pd_name), disk.read_only))
        }
        (Some(InTreeDisk::Aws(disk)), _, _) => Some(Disk::Ebs(names.get(&disk.volume_id))),
        (
            Some(InTreeDisk::Azure(_) | InTreeDisk::Cinder(_) | InTreeDisk::Portworx(_)) | None,
            iscsi,
            rbd,
        ) => match (iscsi, rbd) {
            (Some(iscsi), _) => Some(Disk::Iscsi(names.get(&iscsi.iqn), iscsi.read_only)),
            (None, Some(rbd)) => Some(Disk::Rbd(
                rbd.monitors.iter().map(|monitor| names.get(monitor)).collect(),
                pool(&rbd.pool),
                names.get(&rbd.image),
                rbd.read_only,
            )),
            (None, None) => None,
        },
    };
    PodVolume::Disk(disk, volume.disk().and_then(|disk| inline(disk, names)))
}

/// A claim that a workload has each of its pods given: its name before the pod's, and what it asks.
pub(crate) fn volume_claim(
    template: &PersistentVolumeClaim,
    names: &mut Names,
) -> (Name, Shared<VolumeClaim>) {
    let claim = asked(&template.metadata, &template.spec, names);
    (names.get(&template.metadata.name), Shared::new(claim))
}

/// Who mounts: a pod by its name and UID, or a pod of a workload that has no name yet.
pub(crate) enum Mounter<'a> {
    /// A pod: its name, and its UID where it exists.
    Pod(&'a Name, Option<Name>),
    /// A pod on a node: what is not there for it by now will never be.
    OnNode(&'a Name, Name),
    /// A pod to come.
    Planned,
}

/// The volumes as the engine gets them; a claim that the API server would refuse is not made with its
/// pod.
pub(crate) fn uses(
    volumes: &[PodVolume],
    namespace: &Name,
    mounter: &Mounter<'_>,
    refused: &dyn Fn(&VolumeClaim) -> bool,
) -> Box<[VolumeUse]> {
    let key = |name: Name| VolumeClaimKey(Scoped { namespace: namespace.clone(), name });
    let one = |volume: &PodVolume| match volume {
        PodVolume::Claim(name) => VolumeUse::Claim(key(name.clone())),
        PodVolume::Disk(disk, attach) => {
            VolumeUse::Disk { disk: disk.clone(), attach: attach.clone() }
        }
        PodVolume::Ephemeral(volume, asks) => {
            // The name that the ephemeral volume controller gives (`ephemeral.VolumeClaimName`).
            let claim = |pod: &Name| key(Name::new(&format!("{pod}-{volume}")));
            let planned = Some(asks.clone()).filter(|asks| !refused(asks));
            VolumeUse::Ephemeral(match mounter {
                Mounter::Planned => {
                    Ephemeral { claim: None, pod: (Name::default(), Name::default()), planned }
                }
                Mounter::Pod(pod, Some(uid)) | Mounter::OnNode(pod, uid) => Ephemeral {
                    claim: Some(claim(pod)),
                    pod: ((*pod).clone(), uid.clone()),
                    planned: None,
                },
                Mounter::Pod(pod, None) => Ephemeral {
                    claim: Some(claim(pod)),
                    pod: ((*pod).clone(), Name::default()),
                    planned,
                },
            })
        }
    };
    volumes.iter().map(one).collect()
}
