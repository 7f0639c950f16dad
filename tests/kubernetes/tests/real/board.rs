//! Objects on the API server: worlds put there, looked at, and dumped.

use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectList, Patch, PatchParams,
    PostParams,
};
use kube::core::TypeMeta;
use kube::{Api, Client};
use phalanx_kubernetes::{Failure, until};
use serde_json::{Value, json};

/// Group and version of devices and claims.
pub(crate) const RESOURCE: &str = "resource.k8s.io/v1";

/// Group and version of gangs, which not every server serves.
pub(crate) const SCHEDULING: &str = "scheduling.k8s.io/v1beta1";

/// What a dump holds: API version and kind.
const KINDS: [(&str, &str); 8] = [
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "Pod"),
    (RESOURCE, "DeviceClass"),
    (RESOURCE, "ResourceSlice"),
    (RESOURCE, "ResourceClaim"),
    (RESOURCE, "ResourceClaimTemplate"),
    (SCHEDULING, "PodGroup"),
];

/// The resource of a kind.
fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Where an object of this kind is asked for; `namespace` is empty for what has none.
pub(crate) fn api(
    client: &Client,
    api_version: &str,
    kind: &str,
    namespace: &str,
) -> Api<DynamicObject> {
    let resource = resource(api_version, kind);
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

/// Where a document's object is asked for.
pub(crate) fn api_of(client: &Client, document: &Value) -> Api<DynamicObject> {
    let namespace = text(document, "/metadata/namespace");
    api(client, text(document, "/apiVersion"), text(document, "/kind"), namespace)
}

/// A text in a document; empty where there is none.
pub(crate) fn text<'v>(document: &'v Value, pointer: &str) -> &'v str {
    document.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// An object as the client wants it.
pub(crate) fn object(document: &Value) -> DynamicObject {
    serde_json::from_value(document.clone()).expect("an object")
}

/// The documents of a world.
pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).expect("the world's YAML")
}

/// Creates the objects; a claim's status, which creation leaves out, is written after it.
pub(crate) async fn put(client: &Client, documents: &[Value]) {
    for document in documents {
        let name = text(document, "/metadata/name");
        let api = api_of(client, document);
        let created = api.create(&PostParams::default(), &object(document)).await;
        created.unwrap_or_else(|e| panic!("{name} is not created: {e}"));
        if text(document, "/kind") == "ResourceClaim" && document.get("status").is_some() {
            let status = Patch::Merge(json!({"status": document["status"]}));
            let written = api.patch_status(name, &PatchParams::default(), &status).await;
            written.unwrap_or_else(|e| panic!("{name}'s status is not written: {e}"));
        }
    }
}

/// An object as it stands there.
pub(crate) async fn get(client: &Client, of: (&str, &str), namespace: &str, name: &str) -> Value {
    let found = api(client, of.0, of.1, namespace).get(name).await;
    let found = found.unwrap_or_else(|e| panic!("{name} is not there: {e}"));
    serde_json::to_value(found).expect("an object")
}

/// A pod as it stands in `default`.
pub(crate) async fn pod(client: &Client, name: &str) -> Value {
    get(client, ("v1", "Pod"), "default", name).await
}

/// Waits until a pod of `default` is as is asked.
pub(crate) async fn until_pod(
    client: &Client,
    name: &str,
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Value, Failure> {
    until(&format!("{name} {what}"), async || {
        let pod = pod(client, name).await;
        Ok(is(&pod).then_some(pod))
    })
    .await
}

/// Waits until the claims of each pod that are made from templates are made, and named in its status.
pub(crate) async fn until_claims_are_made(client: &Client) -> Result<(), Failure> {
    until("claims are made from templates", async || {
        let pods = api(client, "v1", "Pod", "").list(&ListParams::default()).await?;
        let made = |pod: &DynamicObject| {
            let from_template = |claim: &&Value| claim.get("resourceClaimTemplateName").is_some();
            let claims = pod.data.pointer("/spec/resourceClaims").and_then(Value::as_array);
            let wanted = claims.into_iter().flatten().filter(from_template).count();
            let named = pod.data.pointer("/status/resourceClaimStatuses").and_then(Value::as_array);
            named.map_or(0, Vec::len) >= wanted
        };
        Ok(pods.items.iter().all(made).then_some(()))
    })
    .await
}

/// All that the API server holds and Phalanx reads, as `kubectl get … -o json` prints it.
pub(crate) async fn dump(client: &Client) -> Result<String, Failure> {
    let mut items = Vec::new();
    for (api_version, kind) in KINDS {
        let list = api(client, api_version, kind, "").list(&ListParams::default()).await;
        let found = match list {
            Ok(ObjectList { items, .. }) => items,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(error.into()),
        };
        for mut object in found {
            // The server says it once for the list; kubectl says it of each.
            object.types = Some(TypeMeta { api_version: api_version.into(), kind: kind.into() });
            items.push(serde_json::to_value(object).expect("an object"));
        }
    }
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
}
