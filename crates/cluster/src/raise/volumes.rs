//! What kube-scheduler writes about volumes before it binds a pod (VolumeBinding's PreBind): a volume
//! that is there is kept for its claim, and a claim that is to be made one is told the node. The
//! volume controller does the rest, and kube-scheduler waits for it.

use phalanx_engine::Seat;
use phalanx_objects::storage::{
    BOUND_BY_CONTROLLER_ANNOTATION, ObjectReference, PersistentVolumeClaim,
    SELECTED_NODE_ANNOTATION, Volume,
};
use phalanx_objects::{Kind, Object, ObjectRef};
use serde_json::{Value, json};

use super::{Draft, EffectId, Guard, GuardVersion, Write};
use crate::lower::PodInfo;
use crate::world::Objects;

/// A patch of a PersistentVolume: the claim that it is kept for.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeWrite {
    /// The volume.
    pub volume: String,
    /// Its UID; empty where it is not created yet.
    pub uid: String,
    /// `spec.claimRef`.
    pub claim: Box<ObjectReference>,
    /// Whether it was kept for the claim before: then who bound it is not said anew.
    pub kept: bool,
}

/// A patch of a PersistentVolumeClaim: the node on which a volume is to be made for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeClaimWrite {
    /// Namespace of the claim.
    pub namespace: String,
    /// The claim.
    pub claim: String,
    /// Its UID; empty where it is not created yet.
    pub uid: String,
    /// The node.
    pub node: String,
}

/// Writes what a seat decides on the claims of its pod. A claim that is made with its pod and does
/// not exist yet has no name to write to.
pub(super) fn write(
    draft: &mut Draft,
    objects: &Objects,
    pod: &PodInfo,
    seat: &Seat,
) -> Vec<EffectId> {
    let mut after = Vec::new();
    if seat.volumes.is_empty() {
        return after;
    }
    let Some(spec) = crate::lower::pod_spec(objects, &crate::view::home_of(pod), pod.role) else {
        return after;
    };
    for grant in &seat.volumes {
        let Some(mounted) = spec.volumes.placed.get(usize::from(grant.at)) else { continue };
        let name = match &mounted.persistent_volume_claim {
            Some(claim) => claim.claim_name.clone(),
            None => format!("{}-{}", pod.key.0.name, mounted.name),
        };
        let (kind, namespace) = (Kind::PersistentVolumeClaim, pod.key.0.namespace.to_string());
        let found = objects.get(&ObjectRef { kind, namespace, name });
        let Some(Object::PersistentVolumeClaim(claim)) = found else { continue };
        let of_claim = (&claim.metadata.uid, &claim.metadata.resource_version);
        match &grant.volume {
            None if is_selected(claim, &seat.node.0) => {}
            None => {
                let write = VolumeClaimWrite {
                    namespace: claim.metadata.namespace.clone(),
                    claim: claim.metadata.name.clone(),
                    uid: claim.metadata.uid.clone(),
                    node: seat.node.0.to_string(),
                };
                after.push(draft.push(Vec::new(), guard(of_claim), Write::SelectNode(write)));
            }
            Some(volume) => {
                let name = volume.0.to_string();
                let key =
                    ObjectRef { kind: Kind::PersistentVolume, namespace: String::new(), name };
                let Some(Object::PersistentVolume(volume)) = objects.get(&key) else { continue };
                if volume.spec.claim_ref.as_ref().is_some_and(|kept| is_kept_for(kept, claim)) {
                    continue;
                }
                let of_volume = (&volume.metadata.uid, &volume.metadata.resource_version);
                let write = VolumeWrite {
                    volume: key.name,
                    uid: volume.metadata.uid.clone(),
                    claim: Box::new(claim_ref(claim)),
                    kept: volume.spec.claim_ref.is_some(),
                };
                after.push(draft.push(Vec::new(), guard(of_volume), Write::KeepVolume(write)));
            }
        }
    }
    after
}

/// Whether a volume is kept for the claim, and not only for one of its name.
fn is_kept_for(kept: &ObjectReference, claim: &PersistentVolumeClaim) -> bool {
    !kept.uid.is_empty() && kept.uid == claim.metadata.uid
}

/// The claims on volumes of a pod.
pub(crate) fn mounted(objects: &Objects, pod: &PodInfo) -> Vec<ObjectRef> {
    let spec = crate::lower::pod_spec(objects, &crate::view::home_of(pod), pod.role);
    let namespace = pod.key.0.namespace.to_string();
    let name = |mounted: &Volume| match (&mounted.persistent_volume_claim, &mounted.ephemeral) {
        (Some(claim), _) => Some(claim.claim_name.clone()),
        (None, Some(_)) => Some(format!("{}-{}", pod.key.0.name, mounted.name)),
        (None, None) => None,
    };
    let claims = spec.iter().flat_map(|spec| &spec.volumes.placed).filter_map(name);
    let kind = Kind::PersistentVolumeClaim;
    claims.map(|name| ObjectRef { kind, namespace: namespace.clone(), name }).collect()
}

/// Those that have none yet: kube-scheduler binds no pod before they do.
pub(super) fn awaited(objects: &Objects, pod: &PodInfo) -> Vec<ObjectRef> {
    let waits = |claim: &ObjectRef| match objects.get(claim) {
        Some(Object::PersistentVolumeClaim(claim)) => claim.spec.volume_name.is_empty(),
        Some(_) | None => true,
    };
    let mut all = mounted(objects, pod);
    all.retain(waits);
    all
}

fn is_selected(claim: &PersistentVolumeClaim, node: &str) -> bool {
    claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION).is_some_and(|named| named == node)
}

fn guard((uid, version): (&String, &String)) -> Guard {
    let version = match version.as_str() {
        "" => GuardVersion::Any,
        version => GuardVersion::Read(version.to_owned()),
    };
    Guard { uid: uid.clone(), version }
}

fn claim_ref(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: "v1".to_owned(),
        kind: "PersistentVolumeClaim".to_owned(),
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
    }
}

/// The document of a volume that is kept for a claim.
pub(super) fn kept(write: &VolumeWrite) -> Value {
    let mut metadata = json!({"name": write.volume});
    if !write.uid.is_empty() {
        metadata["uid"] = json!(write.uid);
    }
    if !write.kept {
        metadata["annotations"] = json!({ BOUND_BY_CONTROLLER_ANNOTATION: "yes" });
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata,
        "spec": {"claimRef": serde_json::to_value(&write.claim).unwrap_or(Value::Null)},
    })
}

/// The document of a claim for which a volume is to be made.
pub(super) fn selected(write: &VolumeClaimWrite) -> Value {
    let mut metadata = json!({
        "name": write.claim,
        "namespace": write.namespace,
        "annotations": { SELECTED_NODE_ANNOTATION: write.node },
    });
    if !write.uid.is_empty() {
        metadata["uid"] = json!(write.uid);
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata})
}
