//! Effects as manifests: each claim as all the writes leave it, what is said in a pod's status, and
//! each Binding. A claim that is given up first is two documents, for the API server refuses one
//! allocation in place of another.

use std::collections::BTreeMap;

use phalanx_objects::{Object, ObjectRef};
use serde_json::{Value, json};

use super::{Bind, Effect, PLANNED, PodStatusWrite, Write, reference};

/// The documents: each claim where it is first written, as the last write leaves it, and so before
/// the Bindings of the pods that use it. A release stands alone, before what follows it.
pub fn manifests(effects: &[Effect]) -> Vec<Value> {
    let mut places: BTreeMap<ObjectRef, usize> = BTreeMap::new();
    let mut documents = Vec::new();
    for effect in effects {
        match &effect.write {
            Write::CreateClaim(claim) | Write::Finalize(claim) | Write::ClaimStatus(claim) => {
                let document = claim_document(claim);
                let of = reference(claim);
                let place = *places.entry(of.clone()).or_insert(documents.len());
                match documents.get_mut(place) {
                    Some(earlier) => *earlier = document,
                    None => documents.push(document),
                }
                if is_release(&effect.write) {
                    places.remove(&of);
                }
            }
            Write::PodStatus(status) => documents.push(pod_status(status)),
            Write::Bind(bind) => documents.push(binding(bind)),
        }
    }
    documents
}

/// Whether the write takes the allocation and the users of a claim away.
fn is_release(write: &Write) -> bool {
    match write {
        Write::ClaimStatus(claim) => {
            claim.status.allocation.is_none() && claim.status.reserved_for.is_empty()
        }
        Write::CreateClaim(_) | Write::Finalize(_) | Write::PodStatus(_) | Write::Bind(_) => false,
    }
}

fn claim_document(claim: &phalanx_objects::resource::ResourceClaim) -> Value {
    let object = Object::ResourceClaim(Box::new(claim.clone()));
    // The type has no map whose keys are not strings, and no number that JSON lacks.
    let mut document = serde_json::to_value(&object).unwrap_or(Value::Null);
    let owners = document.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten().filter_map(Value::as_object_mut) {
        // As the resourceclaim controller sets it; nothing here reads it.
        owner.insert("blockOwnerDeletion".to_owned(), Value::Bool(true));
    }
    document
}

/// The part of a pod's status that the scheduler writes: a patch of the subresource.
fn pod_status(write: &PodStatusWrite) -> Value {
    let status = serde_json::to_value(&write.status).unwrap_or(Value::Null);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(&write.pod, &write.namespace, &write.uid, write.planned),
        "status": {"extendedResourceClaimStatus": status},
    })
}

fn metadata(pod: &str, namespace: &str, uid: &str, planned: bool) -> Value {
    let mut metadata = json!({"name": pod, "namespace": namespace, "uid": uid});
    if planned {
        metadata["annotations"] = json!({ PLANNED: "true" });
    }
    metadata
}

fn binding(bind: &Bind) -> Value {
    let metadata = metadata(&bind.pod, &bind.namespace, &bind.uid, bind.planned);
    json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
    })
}
