//! What is counted and measured, for Prometheus. Reasons are labels: they are a closed list.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use phalanx_cluster::control::{Step, Told};
use phalanx_objects::Kind;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

type Labelled<L> = Family<L, Counter<u64, AtomicU64>>;
type Times<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfWrite {
    write: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfAnswer {
    write: &'static str,
    answer: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfVerdict {
    verdict: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfWatch {
    kind: &'static str,
    why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: &'static str,
}

#[derive(Debug)]
struct Held {
    registry: Registry,
    pods_bound: Counter,
    verdicts: Labelled<OfVerdict>,
    placed: Gauge,
    waiting: Gauge,
    differences: Counter,
    steps: Histogram,
    decision_steps: Counter,
    events: Counter,
    flights: Gauge,
    synced: Gauge,
    watches: Labelled<OfWatch>,
    unread: Labelled<OfKind>,
    writes: Labelled<OfAnswer>,
    write_times: Times<OfWrite>,
}

/// All of it, shared.
#[derive(Clone, Debug)]
pub(crate) struct Metrics(Arc<Held>);

/// A tenth of a millisecond to a quarter of a minute, each bound twice the one before.
fn times() -> Histogram {
    Histogram::new((0..18).map(|power| 0.0001 * f64::from(1 << power)))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut held = Held {
            registry: Registry::with_prefix("phalanx"),
            pods_bound: Counter::default(),
            verdicts: Family::default(),
            placed: Gauge::default(),
            waiting: Gauge::default(),
            differences: Counter::default(),
            steps: times(),
            decision_steps: Counter::default(),
            events: Counter::default(),
            flights: Gauge::default(),
            synced: Gauge::default(),
            watches: Family::default(),
            unread: Family::default(),
            writes: Family::default(),
            write_times: Family::new_with_constructor(times),
        };
        held.register();
        Self(Arc::new(held))
    }

    /// As Prometheus reads it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode(&mut text, &self.0.registry);
        text
    }

    /// A step was made.
    pub(crate) fn stepped(&self, step: &Step, events: usize, flights: usize, took: Duration) {
        let held = &self.0;
        held.steps.observe(took.as_secs_f64());
        held.events.inc_by(u64::try_from(events).unwrap_or(u64::MAX));
        held.flights.set(signed(flights));
        held.synced.set(i64::from(step.synced));
        held.differences.inc_by(u64::try_from(step.differences.len()).unwrap_or(u64::MAX));
        if let Some(decided) = &step.decided {
            held.placed.set(signed(decided.placed));
            held.waiting.set(signed(decided.waiting));
            held.decision_steps.inc_by(decided.steps);
        }
        for Told { verdict, code, .. } in &step.told {
            held.verdicts.get_or_create(&OfVerdict { verdict, reason: code }).inc();
        }
    }

    /// A write was answered.
    pub(crate) fn written(&self, write: &'static str, answer: &'static str, took: Duration) {
        let held = &self.0;
        held.writes.get_or_create(&OfAnswer { write, answer }).inc();
        held.write_times.get_or_create(&OfWrite { write }).observe(took.as_secs_f64());
        if (write, answer) == ("bind", "written") {
            held.pods_bound.inc();
        }
    }

    /// A watch has ended.
    pub(crate) fn watch_ended(&self, kind: Kind, why: &'static str) {
        self.0.watches.get_or_create(&OfWatch { kind: kind.as_str(), why }).inc();
    }

    /// An object can't be read.
    pub(crate) fn unread(&self, kind: Kind) {
        self.0.unread.get_or_create(&OfKind { kind: kind.as_str() }).inc();
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Held {
    /// Names each. Counters get `_total`.
    fn register(&mut self) {
        let r = &mut self.registry;
        r.register("pods_bound", "Pods that were bound", self.pods_bound.clone());
        r.register("verdicts", "Verdicts that changed, by reason", self.verdicts.clone());
        r.register("groups_placed", "Groups that the last decision placed", self.placed.clone());
        r.register(
            "groups_waiting",
            "Groups that wait after the last decision",
            self.waiting.clone(),
        );
        r.register("differences", "Differences to another scheduler", self.differences.clone());
        r.register("step_seconds", "How long a step took", self.steps.clone());
        r.register("decision_steps", "Effort of decisions", self.decision_steps.clone());
        r.register("events", "Events taken in", self.events.clone());
        r.register("flights", "Decisions on their way to the board", self.flights.clone());
        r.register("synced", "Whether every kind was listed", self.synced.clone());
        r.register("watch_ends", "Watches that ended, by kind and why", self.watches.clone());
        r.register("unread_objects", "Objects that could not be read", self.unread.clone());
        r.register("writes", "Writes, by kind and answer", self.writes.clone());
        r.register("write_seconds", "How long writes took", self.write_times.clone());
    }
}
