//! What was measured, as a table, beside the figures to reach, and where the time went.

use std::time::Duration;

use super::contest::Outcome;
use super::{Bench, Contestant, Load};

/// The ratios to reach, by what is to be bound: of kube-scheduler, and of the writes alone.
fn aims(load: Load) -> [(Contestant, Option<f64>); 2] {
    let (scheduler, writer) = match load {
        Load::Plain => (Some(0.95), None),
        Load::Claims => (Some(5.0), Some(0.8)),
        Load::Gangs => (None, None),
    };
    [(Contestant::KubeScheduler, scheduler), (Contestant::Writer, writer)]
}

/// Prints one.
pub(super) fn print(bench: &Bench, load: Load, outcomes: &[(Contestant, Vec<Outcome>)]) {
    let Bench { pods, nodes, writes, runs, .. } = bench;
    println!(
        "\n{pods} {} on {nodes} nodes; {writes} writes at once; medians of {runs}",
        load.words()
    );
    println!("{:<18} {:>8} {:>9} {:>9} {:>10}", "", "pods/s", "p50", "p99", "in all");
    for (contestant, of) in outcomes {
        let last = |outcome: &Outcome| at(outcome, 1.0);
        println!(
            "{:<18} {:>8.0} {:>9} {:>9} {:>10}",
            contestant.words(),
            rate(of),
            seconds(median(of.iter().map(|outcome| at(outcome, 0.5)).collect())),
            seconds(median(of.iter().map(|outcome| at(outcome, 0.99)).collect())),
            seconds(median(of.iter().map(last).collect())),
        );
    }
    ratios(load, outcomes);
    println!("Processor time, of the run that took longest:");
    for (contestant, of) in outcomes {
        let Some(longest) = of.iter().max_by_key(|outcome| outcome.waits.last()) else { continue };
        let used = longest.used.iter().filter(|(_, time)| !time.is_zero());
        let used: Vec<String> =
            used.map(|(name, time)| format!("{name} {}", seconds(*time))).collect();
        println!(
            "  {:<16} {} of {}",
            contestant.words(),
            used.join(", "),
            seconds(at(longest, 1.0))
        );
        told(&longest.metrics);
    }
}

fn ratios(load: Load, outcomes: &[(Contestant, Vec<Outcome>)]) {
    let of =
        |contestant| outcomes.iter().find(|(one, _)| *one == contestant).map(|(_, of)| rate(of));
    let Some(ours) = of(Contestant::Phalanx) else { return };
    for (contestant, aim) in aims(load) {
        let Some(theirs) = of(contestant) else { continue };
        let ratio = ours / theirs;
        let aim = aim.map(|aim| {
            let met = if ratio >= aim { "met" } else { "MISSED" };
            format!("  target {aim}  {met}")
        });
        println!("phalanx is {ratio:.2} times {}{}", contestant.words(), aim.unwrap_or_default());
    }
}

/// Pods a second from the first write to the last binding, in the median.
fn rate(of: &[Outcome]) -> f64 {
    let writing = median(of.iter().map(|outcome| outcome.writing).collect());
    let pods = of.first().map_or(0, |outcome| outcome.waits.len());
    pods as f64 / writing.as_secs_f64().max(1e-9)
}

/// The time by which this part of the pods was bound.
fn at(outcome: &Outcome, part: f64) -> Duration {
    let last = outcome.waits.len().saturating_sub(1);
    outcome.waits.get((last as f64 * part).round() as usize).copied().unwrap_or_default()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Steps and writes of Phalanx, from its metrics.
fn told(metrics: &str) {
    if metrics.is_empty() {
        return;
    }
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse::<f64>().ok()).unwrap_or_default()
    };
    let (steps, count) = (value("phalanx_step_seconds_sum"), value("phalanx_step_seconds_count"));
    println!("    {count} steps took {steps:.2} s");
    let sum = "phalanx_write_seconds_sum{write=\"";
    for line in metrics.lines().filter_map(|line| line.strip_prefix(sum)) {
        let Some((write, took)) = line.split_once("\"}") else { continue };
        let count = value(&format!("phalanx_write_seconds_count{{write=\"{write}\"}}"));
        let mean = took.trim().parse::<f64>().unwrap_or_default() / count.max(1.0);
        println!("    {count} writes {write}, {:.1} ms each", mean * 1e3);
    }
}
