//! Follows one kind: a list, then the watch from where the list ended, until the process ends. What comes
//! is made into lean objects at once; the texts are not kept.
//!
//! Where the server can, the list comes as the beginning of the watch (`sendInitialEvents`, KEP-3157): the
//! server need not hold the list, and neither need we. Else it comes in pages.
//!
//! A watch that ends is taken up from the version that it came to; after 410, and after what leaves it open
//! what was missed, the kind is listed again.

pub(crate) mod lines;
pub(crate) mod page;

use std::time::Duration;

use kube::Client;
use phalanx_cluster::Gone;
use phalanx_cluster::control::Event;
use phalanx_objects::read::{self, Item};
use phalanx_objects::{Kind, Object};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::discover::{Board, Served};
use crate::failure::cause;
use crate::metrics::Metrics;
use lines::{Line, Lines};
use page::Page;

/// How long a watch is asked for, in seconds. The server ends it then, and it is taken up again: so the
/// load of many watchers spreads over the servers that there are.
const WATCH_SECONDS: u32 = 360;
/// How long nothing may come of a watch before it is thought dead. The server sends a bookmark about once
/// a minute.
const SILENCE: Duration = Duration::from_secs(150);
/// How long the server may take until it begins to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pauses after failures: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// Who follows a kind.
#[derive(Clone)]
pub(crate) struct Follower {
    pub client: Client,
    pub kind: Kind,
    /// What the server serves, as it was asked last.
    pub board: watch::Receiver<Board>,
    pub events: mpsc::Sender<Event>,
    pub metrics: Metrics,
}

/// Why a watch or a list came to its end.
#[derive(Debug)]
enum End {
    /// The connection ended where it may: the watch goes on from its version.
    Closed,
    /// What the version stands for is not kept any more (410), or not there yet: the kind is listed anew.
    Gone(String),
    /// The kind is not served, for now or for good (404).
    Unserved,
    /// The server can't begin a watch with a list.
    CannotStream,
    /// It failed.
    Failed(String),
    /// Nobody listens any more: the process ends.
    Over,
}

impl From<kube::Error> for End {
    fn from(error: kube::Error) -> Self {
        if let kube::Error::Api(status) = &error {
            return Self::of_status(status.code, &status.reason, cause(&error));
        }
        Self::Failed(cause(&error))
    }
}

impl End {
    /// What the server's refusal means, in an answer or in the midst of a watch.
    fn of_status(code: u16, reason: &str, message: String) -> Self {
        match (code, reason) {
            (410, _) | (_, "Expired" | "Gone") => Self::Gone(message),
            // The store was set back: it knows no such version yet.
            (504, _) if message.contains("Too large resource version") => Self::Gone(message),
            (404, _) => Self::Unserved,
            _ => Self::Failed(message),
        }
    }
}

impl Follower {
    /// Follows the kind until nobody listens.
    pub(crate) async fn follow(mut self) {
        let mut streams = true;
        let mut pause = Pause::default();
        loop {
            let Some(served) = self.served().await else { return };
            match self.list_and_watch(&served, &mut streams, &mut pause).await {
                End::Over => return,
                // Also a server that starts says so of what it will serve: who asks for all that is
                // served finds out whether it is gone for good.
                End::Unserved => {
                    self.metrics.watch_ended(self.kind, "unserved");
                    pause.take().await;
                }
                End::CannotStream => {
                    tracing::debug!(kind = %self.kind, "the server can't stream lists; they come in pages");
                    streams = false;
                }
                End::Gone(why) => {
                    tracing::info!(kind = %self.kind, why, "the kind is listed again");
                    self.metrics.watch_ended(self.kind, "gone");
                }
                End::Closed => {}
                End::Failed(why) => {
                    tracing::warn!(kind = %self.kind, why, "the kind can't be listed; tried again soon");
                    self.metrics.watch_ended(self.kind, "failed");
                    pause.take().await;
                }
            }
        }
    }

    /// How the kind is served. Where it is not, that is told, and waited until it is.
    async fn served(&mut self) -> Option<Served> {
        let mut told = false;
        loop {
            let served = self.board.borrow_and_update().get(&self.kind).cloned();
            match served {
                Some(served) => return Some(served),
                None if !told => {
                    self.tell_absent().await.ok()?;
                    told = true;
                }
                None => self.board.changed().await.ok()?,
            }
        }
    }

    async fn tell_absent(&self) -> Result<(), End> {
        self.send(Event::Listing(self.kind)).await?;
        self.send(Event::Listed { kind: self.kind, version: String::new() }).await
    }

    async fn send(&self, event: Event) -> Result<(), End> {
        self.events.send(event).await.map_err(|_| End::Over)
    }

    async fn list_and_watch(&self, served: &Served, streams: &mut bool, pause: &mut Pause) -> End {
        let listed = match *streams {
            true => self.stream_list(served).await,
            false => self.page_list(served).await.map(|version| (version, None)),
        };
        let (mut version, mut lines) = match listed {
            Ok(listed) => listed,
            Err(end) => return end,
        };
        pause.over();
        loop {
            let end = self.watch(served, &mut version, lines.take(), pause).await;
            match end {
                End::Closed => self.metrics.watch_ended(self.kind, "closed"),
                End::Failed(why) => {
                    tracing::info!(kind = %self.kind, why, "the watch ended; it is taken up again");
                    self.metrics.watch_ended(self.kind, "failed");
                    pause.take().await;
                }
                End::Gone(_) | End::Unserved | End::CannotStream | End::Over => return end,
            }
        }
    }

    /// Lists as the beginning of a watch; answers the version that it came to, and the watch.
    async fn stream_list(&self, served: &Served) -> Result<(String, Option<Lines>), End> {
        let path = format!(
            "{}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
             &allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}",
            served.all()
        );
        let mut lines = match Lines::open(&self.client, &path).await {
            Ok(lines) => lines,
            // A server that does not know the parameter, or has it switched off, finds it invalid.
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => {
                return Err(End::CannotStream);
            }
            Err(error) => return Err(error.into()),
        };
        self.send(Event::Listing(self.kind)).await?;
        loop {
            match lines.next().await? {
                None => return Err(End::Failed("the list ended before it was whole".to_owned())),
                Some(Line::Exists(text)) => {
                    for object in self.objects(text) {
                        self.send(Event::Found(Box::new(object))).await?;
                    }
                }
                // What goes while the list is told was told as being there, or is later than the list.
                Some(Line::Gone(text)) => self.gone(text, &mut String::new()).await?,
                Some(Line::Passed { version, is_listed: false }) => {
                    self.send(Event::Passed { kind: self.kind, version }).await?;
                }
                Some(Line::Passed { version, is_listed: true }) => {
                    let listed = Event::Listed { kind: self.kind, version: version.clone() };
                    self.send(listed).await?;
                    return Ok((version, Some(lines)));
                }
            }
        }
    }

    /// Lists page by page; answers the version of the list.
    async fn page_list(&self, served: &Served) -> Result<String, End> {
        self.send(Event::Listing(self.kind)).await?;
        let mut rest = String::new();
        loop {
            let page = Page::get(&self.client, &served.all(), &rest).await?;
            for object in self.objects(page.text()) {
                self.send(Event::Found(Box::new(object))).await?;
            }
            if page.rest.is_empty() {
                let version = page.version;
                self.send(Event::Listed { kind: self.kind, version: version.clone() }).await?;
                return Ok(version);
            }
            rest = page.rest;
        }
    }

    /// Watches from a version, which is kept up to what was seen.
    async fn watch(
        &self,
        served: &Served,
        version: &mut String,
        lines: Option<Lines>,
        pause: &mut Pause,
    ) -> End {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}",
            served.all()
        );
        let mut lines = match lines {
            Some(lines) => lines,
            None => match Lines::open(&self.client, &path).await {
                Ok(lines) => lines,
                Err(error) => return error.into(),
            },
        };
        let mut came = false;
        loop {
            let told = match lines.next().await {
                Err(end) => return end,
                // A server that closes at once is not asked again at once.
                Ok(None) if !came => {
                    return End::Failed("it ended before anything came".to_owned());
                }
                Ok(None) => return End::Closed,
                Ok(Some(Line::Exists(text))) => self.exists(text, version).await,
                Ok(Some(Line::Gone(text))) => self.gone(text, version).await,
                Ok(Some(Line::Passed { version: passed, .. })) => {
                    version.clone_from(&passed);
                    self.send(Event::Passed { kind: self.kind, version: passed }).await
                }
            };
            if let Err(end) = told {
                return end;
            }
            came = true;
            pause.over();
        }
    }

    async fn exists(&self, text: &str, version: &mut String) -> Result<(), End> {
        for object in self.objects(text) {
            version.clone_from(&object.metadata().resource_version);
            self.send(Event::Applied(Box::new(object))).await?;
        }
        Ok(())
    }

    async fn gone(&self, text: &str, version: &mut String) -> Result<(), End> {
        for object in self.objects(text) {
            let (uid, resource_version) =
                (object.metadata().uid.clone(), object.metadata().resource_version.clone());
            version.clone_from(&resource_version);
            let gone = Gone { object: object.reference(), uid, resource_version };
            self.send(Event::Deleted(gone)).await?;
        }
        Ok(())
    }

    /// The objects in a text. One that can't be read costs only itself; the log names it.
    fn objects(&self, text: &str) -> Vec<Object> {
        let mut objects = Vec::new();
        decode(text, &mut |item| match item {
            Item::Object(object, _) | Item::Gone(object, _) => {
                if object.kind() == self.kind {
                    objects.push(object);
                }
            }
            Item::Unknown { api_version, kind, .. } => {
                tracing::debug!(api_version, kind, "an object of a kind that is not read");
            }
            Item::Problem(problem) => {
                let object = problem.object.as_ref().map(ToString::to_string);
                let object = object.unwrap_or_else(|| self.kind.to_string());
                if problem.severity == read::Severity::Error {
                    self.metrics.unread(self.kind);
                    tracing::warn!(object, path = problem.path, "{}", problem.message);
                } else {
                    tracing::debug!(object, path = problem.path, "{}", problem.message);
                }
            }
        });
        objects
    }
}

/// Reads what the server sent.
pub(crate) fn decode(text: &str, sink: &mut dyn FnMut(Item)) {
    read::read("the cluster", text.as_bytes(), sink);
}

/// Pauses between attempts, longer and longer.
#[derive(Debug, Default)]
struct Pause {
    times: u32,
}

impl Pause {
    async fn take(&mut self) {
        let (first, longest) = PAUSES;
        let pause = first.saturating_mul(1 << self.times.min(10)).min(longest);
        self.times += 1;
        sleep(pause).await;
    }

    /// It went well: the next pause is short again.
    fn over(&mut self) {
        self.times = 0;
    }
}

#[cfg(test)]
mod tests;
