//! The claim for a pod's extended resources that devices serve (KEP-5004), as kube-scheduler makes
//! it once it has chosen the node, and what the pod's status says of it.

use std::collections::BTreeMap;

use phalanx_objects::core::{ContainerExtendedResourceRequest, PodExtendedResourceClaimStatus};
use phalanx_objects::meta::{Annotations, ObjectMeta, OwnerReference};
use phalanx_objects::resource::{ResourceClaim, ResourceClaimSpec};

use phalanx_engine::{ClaimKey, Name, Scoped};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::PLANNED;
use crate::lower::{ClaimInfo, PodInfo, extended_asks};
use crate::world::Objects;

/// Marks the claim that the scheduler makes for a pod's extended resources.
pub const EXTENDED_CLAIM: &str = "resource.kubernetes.io/extended-resource-claim";

/// What is written of a pod's status: the claim for its extended resources.
#[derive(Clone, Debug, PartialEq)]
pub struct PodStatusWrite {
    /// Namespace of the pod.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// Its UID; a placeholder where the pod is not created yet.
    pub uid: String,
    /// Whether the pod is not created yet.
    pub planned: bool,
    /// The claim, and which of its requests serves which container.
    pub status: PodExtendedResourceClaimStatus,
}

/// The claim before it is allocated.
pub(super) fn made(pod: &PodInfo, claim: &ClaimInfo, uid: &str) -> ResourceClaim {
    let key = claim.claim.key();
    let annotations = BTreeMap::from([
        (EXTENDED_CLAIM.to_owned(), "true".to_owned()),
        (PLANNED.to_owned(), "true".to_owned()),
    ]);
    ResourceClaim {
        metadata: ObjectMeta {
            name: key.0.name.to_string(),
            namespace: key.0.namespace.to_string(),
            annotations: annotations.into_iter().collect::<Annotations>(),
            owner_references: vec![owner(pod, uid)],
            ..ObjectMeta::default()
        },
        spec: ResourceClaimSpec { devices: (*claim.spec).clone() },
        ..ResourceClaim::default()
    }
}

/// The same as a controller creates it.
pub(super) fn created(pod: &PodInfo, claim: &ClaimInfo, uid: &str) -> ResourceClaim {
    let mut made = made(pod, claim, uid);
    let annotations = made.metadata.annotations.iter().filter(|(name, _)| *name != PLANNED);
    made.metadata.annotations = annotations.map(|(k, v)| (k.clone(), v.clone())).collect();
    made
}

/// The name of that claim: of each pod its own, and always the same, so that creating it twice is
/// creating it once. (kube-scheduler has the API server end it in five random letters.)
pub(super) fn named(pod: &PodInfo) -> ClaimKey {
    let base: String = format!("{}-extended-resources", pod.key.0.name).chars().take(57).collect();
    let hash = pod.uid.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let name = Name::new(&format!("{}-{:05x}", base.trim_end_matches('-'), hash >> 44));
    ClaimKey(Scoped { namespace: pod.key.0.namespace.clone(), name })
}

/// Whether the pod's status says so already.
pub(super) fn is_said(
    objects: &Objects,
    pod: &PodInfo,
    status: &PodExtendedResourceClaimStatus,
) -> bool {
    let (namespace, name) = (pod.key.0.namespace.to_string(), pod.key.0.name.to_string());
    let found = objects.get(&ObjectRef { kind: Kind::Pod, namespace, name });
    let Some(Object::Pod(found)) = found else { return false };
    found.status.extended_resource_claim_status.as_ref() == Some(status)
}

/// The pod as the controller of a claim that is made for it.
pub(super) fn owner(pod: &PodInfo, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: pod.key.0.name.to_string(),
        uid: uid.to_owned(),
        controller: Some(true),
    }
}

/// Which request of the claim serves which container of a pod with this spec.
pub(super) fn mappings(
    spec: &phalanx_objects::core::PodSpec,
    claim: &ClaimInfo,
) -> PodExtendedResourceClaimStatus {
    let asked = |request: &String| claim.spec.requests.iter().any(|r| r.name == *request);
    let mut request_mappings = Vec::new();
    for asks in extended_asks(spec) {
        for (container_name, request_name) in asks.mappings {
            if asked(&request_name) {
                let resource_name = asks.resource.clone();
                request_mappings.push(ContainerExtendedResourceRequest {
                    container_name,
                    resource_name,
                    request_name,
                });
            }
        }
    }
    let resource_claim_name = claim.claim.key().0.name.to_string();
    PodExtendedResourceClaimStatus { resource_claim_name, request_mappings }
}
