//! Effects as manifests: each claim as all the writes leave it, what is said in a pod's status, and
//! each Binding. A claim that is given up first is two documents, for the API server refuses one
//! allocation in place of another. A claim that is deleted is a document that says so in an
//! annotation.
//!
//! A document of what exists is to be merged into it: what it does not name stays. So what drivers
//! say of devices is not in it, which a scheduler may not change and of which we keep a part only.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::resource::{ResourceClaim, ResourceClaimStatus};
use phalanx_objects::{Object, ObjectRef};
use serde_json::{Value, json};

use super::{Bind, DELETED, Effect, PLANNED, PodStatusWrite, Write, reference, volumes};

/// The documents: each claim where it is first written, as the last write leaves it, and so before
/// the Bindings of the pods that use it. A release stands alone, before what follows it.
pub fn manifests(effects: &[Effect]) -> Vec<Value> {
    let mut places: BTreeMap<ObjectRef, usize> = BTreeMap::new();
    let mut released: BTreeSet<ObjectRef> = BTreeSet::new();
    let mut documents = Vec::new();
    for effect in effects {
        match &effect.write {
            Write::CreateClaim(claim) | Write::Finalize(claim) | Write::ClaimStatus(claim) => {
                let mut document = claim_document(claim);
                let of = reference(claim);
                if released.contains(&of) {
                    // Its own document before this one leaves a version that only its answer tells.
                    remove(&mut document, "/metadata", "resourceVersion");
                }
                let is_release = is_release(&effect.write);
                if is_release {
                    document["status"] =
                        json!({"allocation": null, "reservedFor": null, "devices": null});
                }
                let place = *places.entry(of.clone()).or_insert(documents.len());
                match documents.get_mut(place) {
                    Some(earlier) => *earlier = document,
                    None => documents.push(document),
                }
                if is_release {
                    places.remove(&of);
                    released.insert(of);
                }
            }
            // What follows of it says it.
            Write::Unprotect(_) => {}
            Write::DeleteClaim(claim) => documents.push(deleted(claim)),
            Write::PodStatus(status) => documents.push(pod_status(status)),
            Write::KeepVolume(write) => documents.push(volumes::kept(write)),
            Write::SelectNode(write) => documents.push(volumes::selected(write)),
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
        Write::CreateClaim(_)
        | Write::Finalize(_)
        | Write::Unprotect(_)
        | Write::DeleteClaim(_)
        | Write::PodStatus(_)
        | Write::KeepVolume(_)
        | Write::SelectNode(_)
        | Write::Bind(_) => false,
    }
}

/// A claim that goes, as no manifest can say it: its name, marked, without finalizer and status.
fn deleted(claim: &ResourceClaim) -> Value {
    let mut claim = claim.clone();
    claim.status = ResourceClaimStatus::default();
    let mark = (DELETED.to_owned(), "true".to_owned());
    let annotations = claim.metadata.annotations.iter().map(|(k, v)| (k.clone(), v.clone()));
    claim.metadata.annotations = annotations.chain([mark]).collect();
    claim_document(&claim)
}

fn claim_document(claim: &ResourceClaim) -> Value {
    let object = Object::from(claim.clone());
    // The type has no map whose keys are not strings, and no number that JSON lacks.
    let mut document = serde_json::to_value(&object).unwrap_or(Value::Null);
    remove(&mut document, "/status", "devices");
    let owners = document.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten().filter_map(Value::as_object_mut) {
        // As the resourceclaim controller sets it; nothing here reads it.
        owner.insert("blockOwnerDeletion".to_owned(), Value::Bool(true));
    }
    document
}

fn remove(document: &mut Value, parent: &str, field: &str) {
    if let Some(parent) = document.pointer_mut(parent).and_then(Value::as_object_mut) {
        // What stands behind it keeps its order.
        parent.shift_remove(field);
    }
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
