//! The documents of `--output manifests`, applied as a scheduler writes: a claim's metadata first and
//! its status in a second call, a pod's status, then the binding.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use phalanx_kubernetes::Failure;
use serde_json::{Value, json};

use crate::board::{api, api_of, object, text};

/// Applies them one after the other. What the server refuses ends it.
pub(crate) async fn write(client: &Client, documents: &[Value]) -> Result<(), Failure> {
    for document in documents {
        match text(document, "/kind") {
            "ResourceClaim" => claim(client, document).await?,
            "Pod" => pod_status(client, document).await?,
            "Binding" => bind(client, document).await?,
            kind => panic!("nobody said how a {kind} is applied"),
        }
    }
    Ok(())
}

fn is_marked(document: &Value, mark: &str) -> bool {
    let annotations = document.pointer("/metadata/annotations");
    annotations.is_some_and(|all| all.get(mark).is_some())
}

async fn claim(client: &Client, document: &Value) -> Result<(), Failure> {
    let (api, name) = (api_of(client, document), text(document, "/metadata/name"));
    if is_marked(document, phalanx_cluster::raise::DELETED) {
        api.delete(name, &DeleteParams::default()).await?;
        return Ok(());
    }
    let params = PatchParams::default();
    let left = if is_marked(document, phalanx_cluster::raise::PLANNED) {
        api.create(&PostParams::default(), &object(document)).await?
    } else {
        // Its `resourceVersion` says what was read: another's write in between is refused.
        api.patch(name, &params, &Patch::Merge(without_status(document))).await?
    };
    if document.get("status").is_some() {
        let version = left.resource_version();
        let status = json!({
            "metadata": {"uid": left.uid(), "resourceVersion": version},
            "status": document["status"],
        });
        api.patch_status(name, &params, &Patch::Merge(status)).await?;
    }
    Ok(())
}

fn without_status(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(fields) = document.as_object_mut() {
        fields.remove("status");
    }
    document
}

async fn pod_status(client: &Client, document: &Value) -> Result<(), Failure> {
    let (api, name) = (api_of(client, document), text(document, "/metadata/name"));
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(document)).await?;
    Ok(())
}

async fn bind(client: &Client, document: &Value) -> Result<(), Failure> {
    let pods = api(client, "v1", "Pod", text(document, "/metadata/namespace"));
    let name = text(document, "/metadata/name");
    let _done: Value =
        pods.create_subresource("binding", name, &PostParams::default(), document).await?;
    Ok(())
}
