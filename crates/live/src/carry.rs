//! Carries effects out: a bounded number at once, each answered. Each may be made at once, for the controller
//! gives out only what may be made now; which comes first is told by [`queue`](crate::queue).

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use kube::Client;
use phalanx_cluster::control::{Answer, Effect, Event};
use phalanx_objects::Object;
use phalanx_objects::read::Item;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::ask::{self, Ask, Scene};
use crate::discover::Board;
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::watch::decode;
use crate::watch::lines::status;

/// How long the server may take to answer a write.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a write is made again that the server had no time for (429): it was not looked at.
const BUSY_TRIES: u32 = 4;
/// Longest pause before that.
const BUSY_PAUSE: Duration = Duration::from_secs(5);

/// An effect on its way.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub effect: Effect,
    /// Whether what it writes stood before: the condition with the same status, the allocation of the claim.
    pub stands: bool,
}

/// Who carries effects out.
#[derive(Clone)]
pub(crate) struct Carrier {
    pub client: Client,
    pub board: watch::Receiver<Board>,
    pub events: mpsc::Sender<Event>,
    pub metrics: Metrics,
    pub scheduler: Arc<str>,
    pub instance: Arc<str>,
    /// Writes that may be under way together.
    pub at_once: usize,
}

impl Carrier {
    /// Carries out what comes, and ends when all of it is answered and no more can come.
    pub(crate) async fn carry(self, mut parcels: mpsc::UnboundedReceiver<Parcel>) {
        let mut queue = Queue::default();
        let mut under_way = JoinSet::new();
        let mut ends = false;
        loop {
            while under_way.len() < self.at_once
                && let Some(parcel) = queue.pop()
            {
                let carrier = self.clone();
                under_way.spawn(async move { carrier.one(parcel).await });
            }
            tokio::select! {
                biased;
                // All that was given out is known before the next is chosen.
                given = parcels.recv(), if !ends => match given {
                    Some(parcel) => queue.push(parcel),
                    None => ends = true,
                },
                _ = under_way.join_next(), if !under_way.is_empty() => {}
                else => return,
            }
        }
    }

    async fn one(&self, parcel: Parcel) {
        let (effect, name) = (&parcel.effect, ask::name(&parcel.effect.write));
        let asked = {
            let board = self.board.borrow();
            let scene = Scene {
                board: &board,
                now: jiff::Timestamp::now(),
                scheduler: &self.scheduler,
                instance: &self.instance,
                stands: parcel.stands,
            };
            ask::ask(effect, scene)
        };
        let began = Instant::now();
        let answer = match &asked {
            Some(ask) => self.send(ask).await,
            None => unserved(effect),
        };
        self.metrics.written(name, word(&answer), began.elapsed());
        let of = effect.target().map(|of| of.to_string()).unwrap_or_default();
        match &answer {
            Answer::Refused { code, message } => {
                tracing::warn!(write = name, of, code, why = message, "the server refuses a write");
            }
            Answer::Written(_) | Answer::Conflict | Answer::Missing | Answer::Unknown => {
                tracing::debug!(write = name, of, answer = word(&answer));
            }
        }
        // Nobody listens when the process ends.
        let _ = self.events.send(Event::Answered(effect.id, answer)).await;
    }

    async fn send(&self, ask: &Ask) -> Answer {
        for tries in 1.. {
            let Ok(request) = ask.request() else { return Answer::Unknown };
            let sent = timeout(PATIENCE, async {
                let response = self.client.send(request).await?;
                let (head, body) = response.into_parts();
                Ok::<_, kube::Error>((head, body.collect_bytes().await?))
            });
            let (head, body) = match sent.await {
                Err(_) => return Answer::Unknown,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a write has no answer");
                    return Answer::Unknown;
                }
                Ok(Ok(answered)) => answered,
            };
            if head.status == StatusCode::TOO_MANY_REQUESTS && tries < BUSY_TRIES {
                sleep(pause(&head.headers)).await;
                continue;
            }
            return answer(head.status, &body);
        }
        Answer::Unknown
    }
}

fn pause(headers: &HeaderMap) -> Duration {
    let header = headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let seconds = header.and_then(|text| text.parse().ok()).unwrap_or(1);
    Duration::from_secs(seconds).min(BUSY_PAUSE)
}

/// What an answer of the server means.
fn answer(code: StatusCode, body: &[u8]) -> Answer {
    match code.as_u16() {
        200..=299 => Answer::Written(object(body)),
        404 => Answer::Missing,
        409 => Answer::Conflict,
        // The credentials are renewed, the server has no time, or it does not know itself.
        401 | 408 | 429 => Answer::Unknown,
        code @ 400..=499 => {
            let status = status(StatusCode::from_u16(code).unwrap_or_default(), body);
            Answer::Refused { code, message: status.message }
        }
        _ => Answer::Unknown,
    }
}

/// The object that the server answered with; none where it is none of those that are read.
fn object(body: &[u8]) -> Option<Box<Object>> {
    let mut found = None;
    decode(std::str::from_utf8(body).ok()?, &mut |item| {
        if let Item::Object(object, _) = item {
            found = Some(Box::new(object));
        }
    });
    found
}

fn unserved(effect: &Effect) -> Answer {
    let kind = effect.target().map(|target| target.kind.to_string()).unwrap_or_default();
    let message = format!("The API server does not serve {kind}; apply deploy/crds.");
    Answer::Refused { code: StatusCode::NOT_FOUND.as_u16(), message }
}

/// An answer as a label.
fn word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Written(_) => "written",
        Answer::Conflict => "conflict",
        Answer::Missing => "missing",
        Answer::Refused { .. } => "refused",
        Answer::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mean_what_the_controller_asks_of_them() {
        let status =
            br#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","code":422}"#;
        let of = |code: u16| word(&answer(StatusCode::from_u16(code).expect("a code"), status));
        assert_eq!(of(409), "conflict");
        assert_eq!(of(404), "missing");
        assert_eq!([of(400), of(403), of(422)], ["refused"; 3]);
        assert_eq!([of(401), of(429), of(500), of(503), of(504)], ["unknown"; 5]);
        let refused = answer(StatusCode::UNPROCESSABLE_ENTITY, status);
        assert!(matches!(refused, Answer::Refused { code: 422, message } if message == "no"));
    }

    #[test]
    fn a_binding_is_written_though_only_a_status_comes_back() {
        let done =
            br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}"#;
        assert!(matches!(answer(StatusCode::CREATED, done), Answer::Written(None)));
        let pod = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"d"}}"#;
        let Answer::Written(Some(pod)) = answer(StatusCode::OK, pod) else { panic!("an object") };
        assert_eq!(pod.name(), "p");
    }
}
