//! A world put on the API server, and all of it taken away again.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::recorded::World;
use crate::board::{RESOURCE, api, api_of, object, text};

/// What a world consists of, in the order in which it is taken away. Namespaces stay.
const KINDS: [(&str, &str); 15] = [
    ("v1", "Pod"),
    (RESOURCE, "ResourceClaim"),
    (RESOURCE, "ResourceSlice"),
    (RESOURCE, "DeviceClass"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("storage.k8s.io/v1", "CSIStorageCapacity"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("apps/v1", "ReplicaSet"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("v1", "Service"),
    ("v1", "Node"),
];

/// Puts the world's objects there; the pod that asks is not one of them.
///
/// # Errors
/// What the server says to an object that it does not take.
pub(crate) async fn load(client: &Client, world: &World) -> Result<(), String> {
    let mut uids = BTreeMap::new();
    let mut statuses = Vec::new();
    for document in &world.objects {
        let made = match text(document, "/kind") {
            "Namespace" => label(client, document).await,
            _ => create(client, document, &uids).await,
        };
        let made = made.map_err(|e| told(document, &e))?;
        let uid = text(document, "/metadata/uid");
        if !uid.is_empty() {
            uids.insert(uid.to_owned(), made.metadata.uid.clone().unwrap_or_default());
        }
        statuses.push(document);
    }
    // A claim's status names its user, so that all must stand.
    for document in statuses {
        finish(client, document, &uids).await.map_err(|e| told(document, &e))?;
    }
    Ok(())
}

/// A refusal as a sentence.
pub(crate) fn told(document: &Value, error: &kube::Error) -> String {
    let said = if let kube::Error::Api(status) = error {
        status.message.clone()
    } else {
        error.to_string()
    };
    format!("{} is refused: {said}", text(document, "/kind"))
}

/// Gives a namespace its labels, and makes it if it is not there.
async fn label(client: &Client, document: &Value) -> Result<DynamicObject, kube::Error> {
    let (namespaces, name) = (api_of(client, document), text(document, "/metadata/name"));
    let Some(mut found) = namespaces.get_opt(name).await? else {
        return namespaces.create(&PostParams::default(), &object(document)).await;
    };
    found.metadata.labels = object(document).metadata.labels;
    namespaces.replace(name, &PostParams::default(), &found).await
}

async fn create(
    client: &Client,
    document: &Value,
    uids: &BTreeMap<String, String>,
) -> Result<DynamicObject, kube::Error> {
    let mut made = renamed(document, uids);
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"] {
        made["metadata"].as_object_mut().and_then(|fields| fields.remove(field));
    }
    api_of(client, document).create(&PostParams::default(), &object(&made)).await
}

/// Writes the status, which creation leaves out of all but nodes, and begins to delete what is being
/// deleted.
async fn finish(
    client: &Client,
    document: &Value,
    uids: &BTreeMap<String, String>,
) -> Result<(), kube::Error> {
    let (api, name) = (api_of(client, document), text(document, "/metadata/name"));
    let has_status = match text(document, "/kind") {
        "Pod"
        | "PersistentVolume"
        | "PersistentVolumeClaim"
        | "ResourceClaim"
        | "VolumeAttachment" => document["status"].is_object(),
        _ => false,
    };
    if has_status {
        let status = Patch::Merge(json!({"status": renamed(&document["status"], uids)}));
        api.patch_status(name, &PatchParams::default(), &status).await?;
    }
    if document.pointer("/metadata/deletionTimestamp").is_some() {
        api.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// With the UIDs that the server has chosen in the place of the recorded ones.
fn renamed(value: &Value, uids: &BTreeMap<String, String>) -> Value {
    let mut value = value.clone();
    let mut rest = vec![&mut value];
    while let Some(next) = rest.pop() {
        match next {
            Value::Array(all) => rest.extend(all.iter_mut()),
            Value::Object(fields) => {
                if let Some(uid) = fields.get_mut("uid")
                    && let Some(made) = uid.as_str().and_then(|uid| uids.get(uid))
                {
                    *uid = json!(made);
                }
                rest.extend(fields.values_mut());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    value
}

/// Takes away every object of these kinds.
pub(crate) async fn clear(client: &Client) -> Result<(), kube::Error> {
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    for (api_version, kind) in KINDS {
        let all = api(client, api_version, kind, "").list(&ListParams::default()).await?;
        for found in all.items {
            let (name, namespace) = (found.metadata.name, found.metadata.namespace);
            let (name, namespace) = (name.unwrap_or_default(), namespace.unwrap_or_default());
            if (kind, name.as_str()) == ("Service", "kubernetes") {
                continue;
            }
            let api = api(client, api_version, kind, &namespace);
            ignore_missing(api.delete(&name, &now).await.map(|_| ()))?;
            // The server may have added one of its own.
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            ignore_missing(api.patch(&name, &PatchParams::default(), &free).await.map(|_| ()))?;
        }
    }
    Ok(())
}

/// It may be gone already.
fn ignore_missing(done: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match done {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other,
    }
}
