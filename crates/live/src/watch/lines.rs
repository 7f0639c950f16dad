//! The lines of a watch: one event each.

use bytes::{Buf, BytesMut};
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{End, PATIENCE, SILENCE};

/// The annotation of the bookmark that ends a list at the beginning of a watch.
const LISTED: &str = "k8s.io/initial-events-end";

/// One event of a watch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// An object that exists in this state.
    Exists(&'a str),
    /// An object that is gone, in its last state.
    Gone(&'a str),
    /// A bookmark.
    Passed {
        /// Its version.
        version: String,
        /// Whether it ends the list that the watch began with.
        is_listed: bool,
    },
}

#[derive(Deserialize)]
struct Told<'a> {
    #[serde(rename = "type")]
    what: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

/// The lines of a watch that is open.
pub(super) struct Lines {
    body: Body,
    held: BytesMut,
    /// The length of the line that was handed out, which goes when the next is asked for.
    used: usize,
    /// How far there is no end of line.
    searched: usize,
}

impl Lines {
    /// Opens a watch.
    ///
    /// # Errors
    /// When the server refuses it, or does not answer.
    pub(super) async fn open(client: &Client, path: &str) -> Result<Self, kube::Error> {
        let request = Request::get(path).body(Body::empty()).map_err(kube::Error::HttpError)?;
        let late = || kube::Error::Service("the server does not answer".into());
        let response = timeout(PATIENCE, client.send(request)).await.map_err(|_| late())??;
        let (code, body) = (response.status(), response.into_body());
        if !code.is_success() {
            let text = body.collect_bytes().await?;
            return Err(kube::Error::Api(Box::new(status(code, &text))));
        }
        Ok(Self { body, held: BytesMut::new(), used: 0, searched: 0 })
    }

    /// The next line; none where the watch has ended.
    pub(super) async fn next(&mut self) -> Result<Option<Line<'_>>, End> {
        self.held.advance(self.used);
        self.used = 0;
        let length = loop {
            let unseen = self.held.get(self.searched..).unwrap_or_default();
            if let Some(at) = memchr(b'\n', unseen) {
                break self.searched + at;
            }
            self.searched = self.held.len();
            let frame = timeout(SILENCE, self.body.frame()).await;
            match frame.map_err(|_| End::Failed("nothing came for long".to_owned()))? {
                // A line that is cut off says nothing.
                None => return Ok(None),
                Some(Err(error)) => return Err(End::Failed(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.held.extend_from_slice(&data);
                    }
                }
            }
        };
        (self.used, self.searched) = (length + 1, 0);
        line(self.held.get(..length).unwrap_or_default()).map(Some)
    }
}

fn line(bytes: &[u8]) -> Result<Line<'_>, End> {
    let unread = |error: serde_json::Error| End::Failed(format!("a line can't be read: {error}"));
    let told: Told<'_> = serde_json::from_slice(bytes).map_err(unread)?;
    let text = told.object.get();
    match told.what {
        "ADDED" | "MODIFIED" => Ok(Line::Exists(text)),
        "DELETED" => Ok(Line::Gone(text)),
        "BOOKMARK" => {
            let Bookmark { metadata } = serde_json::from_str(text).map_err(unread)?;
            let is_listed = metadata.annotations.get(LISTED).is_some_and(|is| is == "true");
            Ok(Line::Passed { version: metadata.resource_version, is_listed })
        }
        "ERROR" => {
            let status: Status = serde_json::from_str(text).map_err(unread)?;
            Err(End::of_status(status.code, &status.reason, status.message))
        }
        other => Err(End::Failed(format!("an event of the type {other} is not known"))),
    }
}

/// What the server says in place of what it was asked for.
pub(crate) fn status(code: http::StatusCode, text: &[u8]) -> Status {
    let status = serde_json::from_slice::<Status>(text).unwrap_or_else(|_| {
        let message = String::from_utf8_lossy(text).into_owned();
        Status { message, ..Status::default() }
    });
    Status { code: code.as_u16(), ..status }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bookmark_tells_whether_the_list_is_whole() {
        let whole =
            br#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"7",
            "annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        let passed = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}"#;
        let is = |line: Line<'_>, v: &str, is: bool| {
            assert_eq!(line, Line::Passed { version: v.to_owned(), is_listed: is });
        };
        is(line(whole).expect("a bookmark"), "7", true);
        is(line(passed).expect("a bookmark"), "8", false);
    }

    #[test]
    fn an_error_in_a_watch_says_whether_to_list_again() {
        let of = |code: u16, reason: &str| {
            let object = serde_json::json!({"kind": "Status", "code": code, "reason": reason,
                "message": "too old resource version: 1 (5)", "status": "Failure"});
            let text = serde_json::json!({"type": "ERROR", "object": object}).to_string();
            line(text.as_bytes()).map(|_| ()).expect_err("an end")
        };
        assert!(matches!(of(410, "Expired"), End::Gone(_)));
        assert!(matches!(of(500, "InternalError"), End::Failed(_)));
    }
}
