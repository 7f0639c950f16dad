//! `bench`: how many pods a second come to be bound on a real API server, by `phalanx controller`, by
//! kube-scheduler, and by a client that decides nothing and only makes the same writes with the same
//! watches open. Nothing here is asserted.
//!
//! Each measurement has a control plane of its own. All pods, and their claims, are there before the one
//! that is measured starts.

mod contest;
mod observe;
mod table;
mod wire;
mod world;
mod writer;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use phalanx_kubernetes::{Failure, Kubernetes, Programs};

use contest::{Outcome, contest};

/// What is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct Bench {
    /// The built command `phalanx`.
    #[arg(long, value_name = "FILE")]
    phalanx: PathBuf,
    /// Pods of each measurement.
    #[arg(long, default_value_t = 1_000)]
    pods: u32,
    /// Nodes, each with ten devices.
    #[arg(long, default_value_t = 500)]
    nodes: u32,
    /// How often each is measured; the median counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Writes of Phalanx, and of the client that only writes, that may be under way together.
    #[arg(long, default_value_t = 64)]
    writes: u16,
    /// Which pods; all kinds without it.
    #[arg(long = "load", value_enum)]
    loads: Vec<Load>,
    /// Who is measured; all without it.
    #[arg(long = "by", value_enum)]
    contestants: Vec<Contestant>,
}

/// Which pods are to be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Load {
    /// Pods that ask for CPU and memory.
    Plain,
    /// Pods with a claim of two devices that share an attribute.
    Claims,
    /// The same in gangs of eight.
    Gangs,
}

impl Load {
    /// How many pods start together.
    fn together(self) -> u32 {
        match self {
            Self::Plain | Self::Claims => 1,
            Self::Gangs => 8,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Plain => "plain pods",
            Self::Claims => "pods with a claim of two devices that share an attribute",
            Self::Gangs => "the same in gangs of eight",
        }
    }
}

/// Who binds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Contestant {
    /// The scheduler of Kubernetes.
    KubeScheduler,
    /// `phalanx controller`.
    Phalanx,
    /// Who only makes the writes.
    Writer,
}

impl Contestant {
    fn words(self) -> &'static str {
        match self {
            Self::KubeScheduler => "kube-scheduler",
            Self::Phalanx => "phalanx",
            Self::Writer => "the writes alone",
        }
    }
}

/// Measures all that was asked for, a kind of pods after the other, and prints a table of each.
pub(crate) async fn run(kubernetes: Kubernetes, bench: &Bench) -> Result<(), Failure> {
    let Some(programs) = Programs::or_left_out(kubernetes)? else { return Ok(()) };
    for load in chosen(&bench.loads, Load::value_variants()) {
        let contestants = chosen(&bench.contestants, Contestant::value_variants());
        let mut outcomes: Vec<(Contestant, Vec<Outcome>)> =
            contestants.into_iter().map(|contestant| (contestant, Vec::new())).collect();
        // In turns, so that what else the machine does falls on all alike.
        for _ in 0..bench.runs.max(1) {
            for (contestant, of) in &mut outcomes {
                of.push(contest(&programs, bench, load, *contestant).await?);
            }
        }
        table::print(bench, load, &outcomes);
    }
    Ok(())
}

fn chosen<T: Copy>(named: &[T], all: &[T]) -> Vec<T> {
    if named.is_empty() { all.to_vec() } else { named.to_vec() }
}
