//! One page of a list.

use http::Request;
use kube::Client;
use serde::Deserialize;

/// How many objects a page has.
const PAGE: u32 = 500;

/// A page as the server sent it.
pub(crate) struct Page {
    text: String,
    /// `resourceVersion` of the list.
    pub version: String,
    /// By which the next page is asked for; empty after the last.
    pub rest: String,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Meta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    resource_version: String,
    #[serde(rename = "continue")]
    rest: String,
}

impl Page {
    /// Asks for the page after the one that said `rest`; for the first where it is empty.
    pub(crate) async fn get(client: &Client, path: &str, rest: &str) -> Result<Self, kube::Error> {
        let rest = match rest {
            "" => String::new(),
            // The token is base64 for URLs: it needs no escape.
            rest => format!("&continue={rest}"),
        };
        let request = Request::get(format!("{path}?limit={PAGE}{rest}")).body(Vec::new());
        let text = client.request_text(request.map_err(kube::Error::HttpError)?).await?;
        let head: Head = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        Ok(Self { text, version: head.metadata.resource_version, rest: head.metadata.rest })
    }

    /// The list in JSON.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}
