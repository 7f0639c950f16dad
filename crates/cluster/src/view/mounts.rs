//! Whose pods a question about a volume, a claim on one, or its class and driver concerns.

use phalanx_objects::core::PodSpec;
use phalanx_objects::storage::{CLASS_ANNOTATION, PersistentVolumeClaim};
use phalanx_objects::{Kind, Object, ObjectRef};

use crate::lower::PodInfo;
use crate::world::World;

/// Whether a pod mounts what the question is about.
pub(super) fn mounts(world: &World, object: &ObjectRef, pod: &PodInfo, spec: &PodSpec) -> bool {
    let namespace = pod.key.0.namespace.as_str();
    let mut claims: Vec<String> = Vec::new();
    for volume in &spec.volumes.placed {
        if let Some(claim) = &volume.persistent_volume_claim {
            claims.push(claim.claim_name.clone());
        } else if volume.ephemeral.is_some() {
            claims.push(format!("{}-{}", pod.key.0.name, volume.name));
        }
    }
    let found = |name: &String| -> Option<&PersistentVolumeClaim> {
        let kind = Kind::PersistentVolumeClaim;
        let key = ObjectRef { kind, namespace: namespace.to_owned(), name: name.clone() };
        match world.objects()?.get(&key) {
            Some(Object::PersistentVolumeClaim(claim)) => Some(claim),
            Some(_) | None => None,
        }
    };
    match object.kind {
        Kind::PersistentVolumeClaim => {
            object.namespace == namespace && claims.contains(&object.name)
        }
        Kind::PersistentVolume => {
            claims.iter().filter_map(found).any(|claim| claim.spec.volume_name == object.name)
        }
        Kind::StorageClass => claims.iter().filter_map(found).any(|claim| {
            let named = claim.metadata.annotations.get(CLASS_ANNOTATION);
            named.or(claim.spec.storage_class_name.as_ref()) == Some(&object.name)
        }),
        Kind::CSIDriver | Kind::CSIStorageCapacity => !spec.volumes.placed.is_empty(),
        Kind::Node
        | Kind::Pod
        | Kind::Namespace
        | Kind::Service
        | Kind::ReplicationController
        | Kind::ServiceAccount
        | Kind::PriorityClass
        | Kind::RuntimeClass
        | Kind::LimitRange
        | Kind::ResourceQuota
        | Kind::ResourceSlice
        | Kind::ResourceClaim
        | Kind::ResourceClaimTemplate
        | Kind::DeviceClass
        | Kind::DeviceTaintRule
        | Kind::CSINode
        | Kind::VolumeAttachment
        | Kind::Workload(_)
        | Kind::Scheduling(_)
        | Kind::NodeTopology
        | Kind::Placement => false,
    }
}
