//! `cargo xtask bench`: how fast decisions are, beside the figures to reach.
//!
//! Each figure is the median of 11 runs and stands beside its target; on a noisy machine the ratio
//! to our own first fit without caches, measured in the same run, is what to quote. Nothing here is
//! asserted: a test that depends on the clock tells nothing.

mod dra;
mod fleet;
mod gangs;
mod kinds;
mod live;
mod load;
mod objects;
// The same questions as the tests put, so that both speak of the same worlds.
#[path = "../../crates/cluster/tests/peers/question.rs"]
mod question;
mod rest;
mod rows;
mod upstream;
mod world;
mod worst;

use std::time::{Duration, Instant};

use crate::run::{Done, cargo, show};

/// How often a figure is taken.
pub(crate) const RUNS: usize = 11;

/// Nodes of the dump that is read; fewer where time is short.
pub(crate) const NODES: u32 = 5_000;

/// Pods of each measurement on a real API server.
pub(crate) const PODS: u32 = 1_000;

/// How often each is measured there: it takes minutes.
const LIVE_RUNS: usize = 3;

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// 500 nodes with ten devices each.
    Small,
    /// 5,000 nodes with eight devices each.
    Large,
    /// Requests that no node can meet.
    Never,
    /// 100,000 nodes with 400,000 pods.
    Fleet,
    /// 500 nodes with ten devices of three kinds, claims of six.
    SmallKinds,
    /// 5,000 nodes with eight devices of three kinds, claims of six.
    LargeKinds,
    /// Groups that start whole, on trees of topology.
    Gangs,
    /// Upstream's recorded cases and worlds, beside upstream's allocator.
    Dra,
    /// What is hard for a search, beside upstream's allocator.
    Worst,
    /// A dump of 5,000 nodes and 150,000 pods in JSON, read.
    LoadJson,
    /// The same in YAML.
    LoadYaml,
    /// A controller with 5,000 nodes and 150,000 pods: memory at rest and with a new list, and the first
    /// decision.
    Rest,
    /// A real API server, beside kube-scheduler and a client that only writes; needs Go.
    Live,
}

impl Part {
    const ALL: [Self; 13] = [
        Self::Small,
        Self::Large,
        Self::Never,
        Self::Fleet,
        Self::SmallKinds,
        Self::LargeKinds,
        Self::Gangs,
        Self::Dra,
        Self::Worst,
        Self::LoadJson,
        Self::LoadYaml,
        Self::Rest,
        Self::Live,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
            Self::Never => "never",
            Self::Fleet => "fleet",
            Self::SmallKinds => "small-kinds",
            Self::LargeKinds => "large-kinds",
            Self::Gangs => "gangs",
            Self::Dra => "dra",
            Self::Worst => "worst",
            Self::LoadJson => "load-json",
            Self::LoadYaml => "load-yaml",
            Self::Rest => "rest",
            Self::Live => "live",
        }
    }
}

/// Builds in release and measures each part in a process of its own, so that memory is its own too.
pub(crate) fn run(parts: &[Part], runs: Option<usize>, (nodes, pods): (u32, u32)) -> Done {
    let parts = if parts.is_empty() { &Part::ALL[..] } else { parts };
    for part in parts {
        if *part == Part::Live {
            live::measure(pods, runs.unwrap_or(LIVE_RUNS))?;
            continue;
        }
        let runs = runs.unwrap_or(RUNS);
        let (runs, nodes) = (runs.to_string(), nodes.to_string());
        let args = [
            "run",
            "--release",
            "--quiet",
            "--locked",
            "-p",
            "xtask",
            "--",
            "measure",
            part.name(),
        ];
        show(
            &format!("bench {}", part.name()),
            cargo(&args).args(["--runs", &runs, "--nodes", &nodes]),
        )?;
    }
    Ok(())
}

/// Measures one part, in this process.
pub(crate) fn measure(part: Part, runs: usize, nodes: u32) -> Done {
    match part {
        Part::Small => rows::fill_and_churn(500, 10, &rows::SMALL, runs)?,
        Part::Large => rows::fill_and_churn(5_000, 8, &rows::LARGE, runs)?,
        Part::Never => rows::never(runs),
        Part::Fleet => fleet::measure()?,
        Part::SmallKinds => rows::every_kind(500, 10, &rows::SMALL, runs)?,
        Part::LargeKinds => rows::every_kind(5_000, 8, &rows::LARGE, runs)?,
        Part::Gangs => gangs::measure(runs)?,
        Part::Dra => dra::measure(runs)?,
        Part::Worst => worst::measure(runs)?,
        Part::LoadJson => load::measure(load::Format::Json, runs, nodes)?,
        Part::LoadYaml => load::measure(load::Format::Yaml, runs, nodes)?,
        Part::Rest => rest::measure(nodes)?,
        Part::Live => live::measure(PODS, runs)?,
    }
    Ok(())
}

/// The time that `work` takes, and what it returns.
fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// The median.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Most resident memory of this process so far, in bytes (Linux).
fn resident_bytes() -> Result<f64, String> {
    memory_bytes("VmHWM:")
}

/// Memory of this process as the kernel tells it under a name, in bytes (Linux).
fn memory_bytes(name: &str) -> Result<f64, String> {
    let status =
        std::fs::read_to_string("/proc/self/status").map_err(|e| format!("memory: {e}."))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map(|kib| kib * 1024.0).ok_or_else(|| "memory: the kernel does not tell it.".to_owned())
}

/// So many a second.
fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

/// `123,456`.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_at_a_glance() {
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(thousands(999.4), "999");
        let seconds = |n: &[u64]| median(n.iter().map(|s| Duration::from_secs(*s)).collect());
        assert_eq!(seconds(&[9, 1, 5]), Duration::from_secs(5));
    }
}
