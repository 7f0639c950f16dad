//! Who looks on: when the first write was seen, and when each pod was bound, by a watch of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;
use phalanx_kubernetes::Failure;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::wire;

/// How long a measurement may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often is looked whether it has ended: the times themselves are those of the watch.
const PAUSE: Duration = Duration::from_millis(20);

/// What was seen so far.
#[derive(Debug, Default)]
struct Seen {
    /// The first change of any object after the start.
    first: Option<Instant>,
    /// Whether changes count yet.
    counts: bool,
    /// When each pod was bound.
    bound: BTreeMap<String, Instant>,
}

/// A look at pods, claims and Placements.
#[derive(Debug)]
pub(super) struct Observer {
    seen: Arc<Mutex<Seen>>,
    // Ends with it.
    _watches: JoinSet<()>,
}

impl Observer {
    pub(super) fn start(client: &Client) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut watches = JoinSet::new();
        for path in [
            "/api/v1/pods",
            "/apis/resource.k8s.io/v1/resourceclaims",
            "/apis/phalanx.dev/v1alpha1/placements",
        ] {
            let (seen, client) = (Arc::clone(&seen), client.clone());
            watches.spawn(wire::watch(client, path, move |line| see(&seen, line)));
        }
        Self { seen, _watches: watches }
    }

    /// From now on changes count.
    pub(super) fn begin(&self) {
        lock(&self.seen).counts = true;
    }

    /// Waits until so many pods are bound; answers when the first write was seen and when each pod was
    /// bound.
    pub(super) async fn until(&self, pods: usize) -> Result<(Instant, Vec<Instant>), Failure> {
        let began = Instant::now();
        loop {
            let seen = lock(&self.seen).bound.len();
            if seen >= pods {
                break;
            }
            if began.elapsed() > PATIENCE {
                let what = format!("{pods} pods are bound ({seen} are)");
                return Err(Failure::Late { what, seconds: PATIENCE.as_secs() });
            }
            sleep(PAUSE).await;
        }
        let seen = lock(&self.seen);
        let bound: Vec<Instant> = seen.bound.values().copied().collect();
        Ok((seen.first.unwrap_or(began), bound))
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn see(seen: &Mutex<Seen>, line: &[u8]) {
    let now = Instant::now();
    let Ok(event) = serde_json::from_slice::<Value>(line) else { return };
    let text = |at: &str| event.pointer(at).and_then(Value::as_str).unwrap_or_default();
    if text("/type") == "BOOKMARK" {
        return;
    }
    let mut seen = lock(seen);
    if !seen.counts {
        return;
    }
    seen.first.get_or_insert(now);
    if text("/object/kind") == "Pod" && !text("/object/spec/nodeName").is_empty() {
        seen.bound.entry(text("/object/metadata/name").to_owned()).or_insert(now);
    }
}
