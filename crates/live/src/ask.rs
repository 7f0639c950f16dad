//! A write as a request: method, path and body, exactly as they go on the wire. What an object's lean type
//! does not hold must stay, so what exists is patched and never replaced; each patch carries the UID, and
//! where the guard has it the `resourceVersion`, on which the server answers 409 if it is another.

use http::{Method, Request};
use jiff::Timestamp;
use kube::client::Body;
use phalanx_cluster::control::{
    Effect, EffectId, EventWrite, Guard, PodConditionWrite, PodName, Write,
};
use phalanx_cluster::raise::{self, Bind, FINALIZER, PLANNED, PodStatusWrite};
use phalanx_objects::meta::OwnerReference;
use phalanx_objects::resource::{ResourceClaim, ResourceClaimStatus};
use phalanx_objects::storage::{BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION};
use phalanx_objects::topology::Placement;
use phalanx_objects::{Kind, Object, ObjectRef};
use serde_json::{Value, json};

use crate::discover::{Board, Served};

/// Lists of known kinds are merged entry by entry, others replaced.
const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// Fields are merged, lists replaced.
const MERGE: &str = "application/merge-patch+json";
/// One operation after the other.
const STEPS: &str = "application/json-patch+json";
const PLAIN: &str = "application/json";

/// What a write needs to know beside itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    /// What is served, and so under which path.
    pub board: &'a Board,
    /// The time that conditions and events carry.
    pub now: Timestamp,
    /// The scheduler, by the name that pods ask for it.
    pub scheduler: &'a str,
    /// The process that writes.
    pub instance: &'a str,
    /// Whether the pod's condition stood before as it is written, so that it has not changed now; whether
    /// the claim's allocation did, so that it need not be written.
    pub stands: bool,
}

/// A request that is not sent yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ask {
    method: Method,
    path: String,
    content: &'static str,
    body: Value,
}

impl Ask {
    fn new(method: Method, path: String, content: &'static str, body: Value) -> Self {
        Self { method, path, content, body }
    }

    /// The request for a client.
    pub(crate) fn request(&self) -> Result<Request<Body>, kube::Error> {
        let builder = Request::builder().method(&self.method).uri(&self.path);
        let builder = builder.header(http::header::CONTENT_TYPE, self.content);
        let body = Body::from(self.body.to_string().into_bytes());
        builder.body(body).map_err(kube::Error::HttpError)
    }
}

/// What kind of a write it is, for metrics and the log.
pub(crate) fn name(write: &Write) -> &'static str {
    match write {
        Write::Seat(raise::Write::CreateClaim(_)) => "createClaim",
        Write::Seat(raise::Write::Finalize(_)) => "finalizeClaim",
        Write::Seat(raise::Write::Unprotect(_)) => "unprotectClaim",
        Write::Seat(raise::Write::DeleteClaim(_)) => "deleteClaim",
        Write::Seat(raise::Write::ClaimStatus(_)) => "claimStatus",
        Write::Seat(raise::Write::PodStatus(_)) => "podClaimStatus",
        Write::Seat(raise::Write::KeepVolume(_)) => "keepVolume",
        Write::Seat(raise::Write::SelectNode(_)) => "selectNode",
        Write::Seat(raise::Write::Bind(_)) => "bind",
        Write::CreatePlacement(_) => "createPlacement",
        Write::UpdatePlacement(_) => "updatePlacement",
        Write::DeletePlacement(_) => "deletePlacement",
        Write::DeletePod(_) => "deletePod",
        Write::PodCondition(_) => "podCondition",
        Write::Event(_) => "event",
    }
}

/// The request of an effect; none where the server does not serve what it is about.
pub(crate) fn ask(effect: &Effect, scene: Scene<'_>) -> Option<Ask> {
    let guard = &effect.guard;
    match &effect.write {
        Write::Seat(write) => seat(write, guard, scene),
        Write::CreatePlacement(placement) => create_placement(placement, scene),
        Write::UpdatePlacement(placement) => update_placement(placement, guard, scene),
        Write::DeletePlacement(placement) => delete(placement, guard, scene),
        Write::DeletePod(pod) => delete(&pod_of(pod), guard, scene),
        Write::PodCondition(condition) => pod_condition(condition, guard, scene),
        Write::Event(event) => Some(create_event(effect.id, event, scene)),
    }
}

fn seat(write: &raise::Write, guard: &Guard, scene: Scene<'_>) -> Option<Ask> {
    match write {
        raise::Write::CreateClaim(claim) => create_claim(claim, scene),
        raise::Write::Finalize(claim) => {
            let body = json!({"metadata": {"finalizers": [FINALIZER]}});
            patch(&raise_ref(claim), "", STRATEGIC, body, guard, scene)
        }
        raise::Write::Unprotect(claim) => {
            let body = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
            patch(&raise_ref(claim), "", STRATEGIC, body, guard, scene)
        }
        raise::Write::DeleteClaim(claim) => delete(&raise_ref(claim), guard, scene),
        raise::Write::ClaimStatus(claim) => {
            let body = json!({"status": claim_status(claim, scene.stands)});
            patch(&raise_ref(claim), "/status", MERGE, body, guard, scene)
        }
        raise::Write::PodStatus(status) => pod_status(status, guard, scene),
        raise::Write::KeepVolume(write) => {
            let of = of(Kind::PersistentVolume, "", &write.volume);
            let mut body = json!({"spec": {"claimRef": value(&write.claim)}});
            if !write.kept {
                body["metadata"] = json!({"annotations": {BOUND_BY_CONTROLLER_ANNOTATION: "yes"}});
            }
            patch(&of, "", MERGE, body, guard, scene)
        }
        raise::Write::SelectNode(write) => {
            let of = of(Kind::PersistentVolumeClaim, &write.namespace, &write.claim);
            let annotations = json!({SELECTED_NODE_ANNOTATION: write.node});
            patch(&of, "", MERGE, json!({"metadata": {"annotations": annotations}}), guard, scene)
        }
        raise::Write::Bind(bind) => bind_pod(bind, scene),
    }
}

/// A patch with what must still be so.
fn patch(
    of: &ObjectRef,
    part: &str,
    how: &'static str,
    mut body: Value,
    guard: &Guard,
    scene: Scene<'_>,
) -> Option<Ask> {
    if !guard.uid.is_empty() {
        body["metadata"]["uid"] = json!(guard.uid);
    }
    if let Some(version) = &guard.version {
        body["metadata"]["resourceVersion"] = json!(version);
    }
    let path = scene.board.get(&of.kind)?.one(of) + part;
    Some(Ask::new(Method::PATCH, path, how, body))
}

fn delete(of: &ObjectRef, guard: &Guard, scene: Scene<'_>) -> Option<Ask> {
    let mut only = json!({});
    if !guard.uid.is_empty() {
        only["uid"] = json!(guard.uid);
    }
    if let Some(version) = &guard.version {
        only["resourceVersion"] = json!(version);
    }
    let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": only});
    Some(Ask::new(Method::DELETE, scene.board.get(&of.kind)?.one(of), PLAIN, body))
}

fn create_claim(claim: &ResourceClaim, scene: Scene<'_>) -> Option<Ask> {
    let mut claim = claim.clone();
    // The server drops it, as of any object that is created.
    claim.status = ResourceClaimStatus::default();
    let annotations = claim.metadata.annotations.iter().filter(|(key, _)| *key != PLANNED);
    claim.metadata.annotations = annotations.map(|(k, v)| (k.clone(), v.clone())).collect();
    let path = scene.board.get(&Kind::ResourceClaim)?.within(&claim.metadata.namespace);
    let mut body = value(&Object::from(claim));
    let owners = body.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten().filter_map(Value::as_object_mut) {
        owner.insert("blockOwnerDeletion".to_owned(), Value::Bool(true));
    }
    Some(Ask::new(Method::POST, path, PLAIN, body))
}

/// A claim's status as a merge: an allocation is only ever set or taken away, never changed. What drivers
/// say of devices goes with the allocation and is left alone otherwise, for of it we keep a part only; so it
/// is with an allocation that stands.
fn claim_status(claim: &ResourceClaim, stands: bool) -> Value {
    let status = &claim.status;
    let users = match status.reserved_for.is_empty() {
        true => Value::Null,
        false => value(&status.reserved_for),
    };
    match &status.allocation {
        Some(_) if stands => json!({"reservedFor": users}),
        Some(allocation) => json!({"allocation": value(allocation), "reservedFor": users}),
        None => json!({"allocation": null, "reservedFor": users, "devices": null}),
    }
}

fn pod_status(write: &PodStatusWrite, guard: &Guard, scene: Scene<'_>) -> Option<Ask> {
    let body = json!({"status": {"extendedResourceClaimStatus": value(&write.status)}});
    let guard = of_uid(guard, &write.uid);
    patch(&of(Kind::Pod, &write.namespace, &write.pod), "/status", STRATEGIC, body, &guard, scene)
}

fn bind_pod(bind: &Bind, scene: Scene<'_>) -> Option<Ask> {
    let path =
        scene.board.get(&Kind::Pod)?.one(&of(Kind::Pod, &bind.namespace, &bind.pod)) + "/binding";
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": bind.pod, "namespace": bind.namespace, "uid": bind.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
    });
    Some(Ask::new(Method::POST, path, PLAIN, body))
}

fn create_placement(placement: &Placement, scene: Scene<'_>) -> Option<Ask> {
    let path = scene.board.get(&Kind::Placement)?.within(&placement.metadata.namespace);
    let mut placement = placement.clone();
    for owner in &mut placement.metadata.owner_references {
        // The garbage collector looks for it under the version that is served.
        if let Some(served) = served(owner, scene.board) {
            owner.api_version = served;
        }
    }
    let body = value(&Object::from(placement));
    Some(Ask::new(Method::POST, path, PLAIN, body))
}

/// The version under which an owner's kind is served; none where that is not known.
fn served(owner: &OwnerReference, board: &Board) -> Option<String> {
    let group = |version: &str| version.rsplit_once('/').map(|(group, _)| group.to_owned());
    let of = |(kind, served): (&Kind, &Served)| {
        let same =
            kind.as_str() == owner.kind && group(&served.api_version) == group(&owner.api_version);
        same.then(|| served.api_version.clone())
    };
    board.iter().find_map(of)
}

/// Step by step, so that what is left out is gone, and what others wrote to the metadata stays.
fn update_placement(placement: &Placement, guard: &Guard, scene: Scene<'_>) -> Option<Ask> {
    let of = of(Kind::Placement, &placement.metadata.namespace, &placement.metadata.name);
    let step = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let mut steps = Vec::new();
    if !guard.uid.is_empty() {
        steps.push(step("/metadata/uid", json!(guard.uid)));
    }
    if let Some(version) = &guard.version {
        steps.push(step("/metadata/resourceVersion", json!(version)));
    }
    steps.push(step("/spec", value(&placement.spec)));
    steps.push(step("/status", value(&placement.status)));
    let path = scene.board.get(&of.kind)?.one(&of);
    Some(Ask::new(Method::PATCH, path, STEPS, Value::Array(steps)))
}

fn pod_condition(write: &PodConditionWrite, guard: &Guard, scene: Scene<'_>) -> Option<Ask> {
    let mut condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": write.reason,
        "message": write.message,
    });
    if !scene.stands {
        condition["lastTransitionTime"] = seconds(scene.now);
    }
    let body = json!({"status": {"conditions": [condition]}});
    let guard = of_uid(guard, &write.uid);
    patch(&pod_of(&write.pod), "/status", STRATEGIC, body, &guard, scene)
}

fn create_event(id: EffectId, write: &EventWrite, scene: Scene<'_>) -> Ask {
    let namespace = match write.regarding.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let kind = write.regarding.kind;
    let api_version = scene.board.get(&kind).map_or(kind.api_version(), |s| &s.api_version);
    // As client-go names events; the number keeps those of one moment apart.
    let moment = scene.now.as_nanosecond().wrapping_add(i128::from(id.0));
    let name = format!("{}.{moment:x}", write.regarding.name);
    let body = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": format!("{:.6}", scene.now),
        "reportingController": scene.scheduler,
        "reportingInstance": scene.instance,
        "action": write.action,
        "reason": write.reason,
        "regarding": {
            "apiVersion": api_version,
            "kind": kind.as_str(),
            "namespace": write.regarding.namespace,
            "name": write.regarding.name,
            "uid": write.uid,
        },
        "note": write.note,
        "type": write.of_type.as_str(),
    });
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    Ask::new(Method::POST, path, PLAIN, body)
}

/// The guard, with the UID that the write itself names where the guard has none.
fn of_uid(guard: &Guard, uid: &str) -> Guard {
    let mut guard = guard.clone();
    if guard.uid.is_empty() {
        uid.clone_into(&mut guard.uid);
    }
    guard
}

fn of(kind: Kind, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef { kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn pod_of(pod: &PodName) -> ObjectRef {
    of(Kind::Pod, &pod.namespace, &pod.name)
}

fn raise_ref(claim: &ResourceClaim) -> ObjectRef {
    of(Kind::ResourceClaim, &claim.metadata.namespace, &claim.metadata.name)
}

/// A time of metav1: whole seconds.
fn seconds(time: Timestamp) -> Value {
    json!(format!("{time:.0}"))
}

/// Our types have no map whose keys are not strings, and no number that JSON lacks.
fn value(of: &impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests;
