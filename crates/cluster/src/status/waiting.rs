//! Who waits, for how long and why: the pods that a plan does not place, by workload.

use std::collections::BTreeMap;

use phalanx_engine::Timestamp;
use phalanx_objects::{Kind, ObjectRef};

use super::document::WaitingView;
use super::holders::workload;
use crate::edit::parse_target;
use crate::raise::api_time;
use crate::view::{Document, PodView, VerdictWord};
use crate::world::World;

/// One workload's pods that wait, while they are counted.
struct Waiting<'a> {
    /// The first of those with the gravest verdict: what is said of the workload is said of it.
    gravest: &'a PodView,
    pods: u64,
    since: Option<jiff::Timestamp>,
}

/// Those who wait, longest first, then in queue order.
pub(super) fn waiting(
    world: &World,
    document: &Document,
    now: Option<Timestamp>,
) -> Vec<WaitingView> {
    let mut places: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let mut all: Vec<(String, Waiting<'_>)> = Vec::new();
    for pod in document.pods.iter().filter(|pod| pod.verdict != VerdictWord::Placed) {
        let name = match &pod.group {
            Some(group) => group.clone(),
            None => workload(world, &pod.namespace, &pod.name),
        };
        let since = created(world, pod);
        let place = *places.entry((&pod.namespace, name.clone())).or_insert_with(|| {
            all.push((name, Waiting { gravest: pod, pods: 0, since: None }));
            all.len() - 1
        });
        let Some((_, waiting)) = all.get_mut(place) else { continue };
        waiting.pods += 1;
        waiting.since = waiting.since.into_iter().chain(since).min();
        if pod.verdict > waiting.gravest.verdict {
            waiting.gravest = pod;
        }
    }
    all.sort_by_key(|(_, waiting)| (waiting.since.is_none(), waiting.since));
    let now = now.and_then(api_time);
    all.into_iter().map(|(name, waiting)| view(name, &waiting, now)).collect()
}

/// When a pod was created, or the workload that is to make it.
fn created(world: &World, pod: &PodView) -> Option<jiff::Timestamp> {
    let objects = world.objects()?;
    let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
    let object = match &pod.group {
        Some(group) if pod.planned => parse_target(group).ok()?.reference(&pod.namespace),
        Some(_) | None => ObjectRef { kind: Kind::Pod, namespace, name },
    };
    objects.get(&object)?.metadata().creation_timestamp
}

fn view(workload: String, waiting: &Waiting<'_>, now: Option<jiff::Timestamp>) -> WaitingView {
    let reason = waiting.gravest.reasons.first();
    let seconds = now.zip(waiting.since).map(|(now, since)| now.as_second() - since.as_second());
    WaitingView {
        namespace: waiting.gravest.namespace.clone(),
        workload,
        pods: waiting.pods,
        since: waiting.since.map(|since| since.to_string()),
        seconds: seconds.map(|seconds| seconds.max(0)),
        verdict: waiting.gravest.verdict,
        code: reason.map_or("", |reason| reason.code).to_owned(),
        message: reason.map_or_else(String::new, |reason| reason.message.clone()),
    }
}
