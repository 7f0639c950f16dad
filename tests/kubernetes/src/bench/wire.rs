//! Requests as they go on the wire, and watches read line by line.

use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use phalanx_kubernetes::Failure;
use serde_json::Value;

/// Before a watch begins again.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(super) const STEPS: &str = "application/json-patch+json";

/// Sends a request; answers the object that comes back.
pub(super) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    content: &str,
    body: &Value,
) -> Result<Value, Failure> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(http::header::CONTENT_TYPE, content);
    let request = request.body(body.to_string().into_bytes()).map_err(kube::Error::HttpError)?;
    Ok(client.request::<Value>(request).await?)
}

/// Gets an object or a list.
pub(super) async fn get(client: &Client, path: &str) -> Result<Value, Failure> {
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    Ok(client.request::<Value>(request).await?)
}

/// Watches, the objects that are there first, and hands each line out. A watch that ends begins again: the
/// server ends those that do not keep up.
pub(super) async fn watch(client: Client, path: &str, mut line: impl FnMut(&[u8])) {
    loop {
        // What has failed fails again, and whoever waits for what it shows gives up.
        let _ = watch_once(&client, path, &mut line).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn watch_once(
    client: &Client,
    path: &str,
    line: &mut impl FnMut(&[u8]),
) -> Result<(), Failure> {
    let path = format!(
        "{path}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true\
         &resourceVersionMatch=NotOlderThan&timeoutSeconds=3600"
    );
    let request = Request::get(path).body(Body::empty()).map_err(kube::Error::HttpError)?;
    let mut body = client.send(request).await?.into_body();
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        rest.extend_from_slice(&data);
        let mut from = 0;
        while let Some(length) = rest[from..].iter().position(|byte| *byte == b'\n') {
            line(&rest[from..from + length]);
            from += length + 1;
        }
        rest.drain(..from);
    }
    Ok(())
}
