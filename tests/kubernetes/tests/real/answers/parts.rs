//! What else takes part in binding a pod, played by the test: the controller that binds volumes to claims,
//! the one that makes volumes, and the drivers whose devices have binding conditions.

use kube::Client;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::board::{RESOURCE, api, object, text};

/// Does what is due for the objects of a namespace.
pub(crate) async fn play(client: &Client, namespace: &str) -> Result<(), kube::Error> {
    let claims = list(client, "v1", "PersistentVolumeClaim", namespace).await?;
    if !claims.is_empty() {
        let volumes = list(client, "v1", "PersistentVolume", "").await?;
        for claim in claims.iter().filter(|claim| text(claim, "/spec/volumeName").is_empty()) {
            volume(client, claim, &volumes).await?;
        }
    }
    for claim in list(client, RESOURCE, "ResourceClaim", namespace).await? {
        driver(client, &claim).await?;
    }
    Ok(())
}

async fn list(
    client: &Client,
    of: &str,
    kind: &str,
    namespace: &str,
) -> Result<Vec<Value>, kube::Error> {
    let all = api(client, of, kind, namespace).list(&ListParams::default()).await?;
    let value = |object: &DynamicObject| serde_json::to_value(object).expect("an object");
    Ok(all.items.iter().map(value).collect())
}

/// Binds the claim to the volume that is kept for it, or to one that is made where it was to be made.
async fn volume(client: &Client, claim: &Value, volumes: &[Value]) -> Result<(), kube::Error> {
    let (namespace, name) = (text(claim, "/metadata/namespace"), text(claim, "/metadata/name"));
    let is_kept = |volume: &&Value| {
        let kept = |field: &str| text(volume, &format!("/spec/claimRef/{field}"));
        (kept("namespace"), kept("name")) == (namespace, name)
    };
    let annotations = claim.pointer("/metadata/annotations");
    let selected =
        annotations.is_some_and(|all| all.get("volume.kubernetes.io/selected-node").is_some());
    let of = match volumes.iter().find(is_kept) {
        Some(volume) => text(volume, "/metadata/name").to_owned(),
        None if selected => make(client, claim).await?,
        None => return Ok(()),
    };
    let params = PatchParams::default();
    let claims = api(client, "v1", "PersistentVolumeClaim", namespace);
    let bound = json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": of},
    });
    claims.patch(name, &params, &Patch::Merge(bound)).await?;
    let status = Patch::Merge(json!({"status": {"phase": "Bound"}}));
    claims.patch_status(name, &params, &status).await?;
    api(client, "v1", "PersistentVolume", "").patch_status(&of, &params, &status).await?;
    Ok(())
}

async fn make(client: &Client, claim: &Value) -> Result<String, kube::Error> {
    let (namespace, name) = (text(claim, "/metadata/namespace"), text(claim, "/metadata/name"));
    let made = format!("made-{name}");
    let volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": made},
        "spec": {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": claim["spec"]["resources"]["requests"],
            "storageClassName": claim["spec"]["storageClassName"],
            "volumeMode": claim["spec"]["volumeMode"],
            "csi": {"driver": "made.example.com", "volumeHandle": made},
            "claimRef": {"namespace": namespace, "name": name, "uid": claim["metadata"]["uid"]},
        },
    });
    let volumes = api(client, "v1", "PersistentVolume", "");
    volumes.create(&PostParams::default(), &object(&volume)).await?;
    Ok(made)
}

/// Says that devices are ready which a claim has been given.
async fn driver(client: &Client, claim: &Value) -> Result<(), kube::Error> {
    let results = claim.pointer("/status/allocation/devices/results").and_then(Value::as_array);
    let waited = |result: &&Value| result.get("bindingConditions").is_some();
    let devices: Vec<Value> = results.into_iter().flatten().filter(waited).map(ready).collect();
    if devices.is_empty() || claim.pointer("/status/devices").is_some() {
        return Ok(());
    }
    let claims = api(client, RESOURCE, "ResourceClaim", text(claim, "/metadata/namespace"));
    let status = Patch::Merge(json!({"status": {"devices": devices}}));
    claims.patch_status(text(claim, "/metadata/name"), &PatchParams::default(), &status).await?;
    Ok(())
}

fn ready(result: &Value) -> Value {
    let conditions = result["bindingConditions"].as_array();
    let is_true = |of: &Value| {
        json!({"type": of, "status": "True", "reason": "Ready", "message": "It is ready.",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let conditions: Vec<Value> = conditions.into_iter().flatten().map(is_true).collect();
    let mut device = json!({"conditions": conditions});
    for field in ["driver", "pool", "device", "shareID"] {
        if let Some(part) = result.get(field) {
            device[field] = part.clone();
        }
    }
    device
}
