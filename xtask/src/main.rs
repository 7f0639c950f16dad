//! The one entry point for developers: `cargo xtask test`, `tidy`, `accept`, `bench`,
//! `fuzz`, `peers`, `kubernetes`, `e2e`, `mutants`.
//!
//! It starts the tools and holds the repository to its rules. What the rules are for stands in
//! `docs/ARCHITECTURE.md`; how to test in `docs/TESTING.md`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]
#![expect(
    clippy::disallowed_methods,
    reason = "it stands at the rim: it reads files and variables"
)]

mod accept;
mod bench;
mod fuzz;
mod kubernetes;
mod mutants;
mod peers;
mod run;
mod source;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kubernetes::Full;

/// Lowering makes and drops many small values: this allocator takes about half the time of the
/// system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Developer tasks of Phalanx.",
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Everything that must pass: tidy, formatting, clippy, documentation, tests.
    Test,
    /// Hold the repository to its rules; print every breach with its file and line.
    Tidy,
    /// Write what scenarios say into their files; read the difference before you commit it.
    Accept {
        /// Only scenarios whose path has this in it.
        part: Option<String>,
    },
    /// Measure decisions in release, beside the figures to reach.
    Bench {
        /// Which figures; all without it.
        parts: Vec<bench::Part>,
        /// How often each is taken, of which the median counts: 11 times, and 3 times on a real API server.
        #[arg(long)]
        runs: Option<usize>,
        /// Nodes of the dump that is read, each with 30 pods.
        #[arg(long, default_value_t = bench::NODES)]
        nodes: u32,
        /// Pods that are bound on a real API server.
        #[arg(long, default_value_t = bench::PODS)]
        pods: u32,
    },
    /// Measure one part in this process; `bench` starts it in release.
    #[command(hide = true)]
    Measure {
        /// Which figures.
        part: bench::Part,
        /// How often each is taken.
        #[arg(long, default_value_t = bench::RUNS)]
        runs: usize,
        /// Nodes of the dump that is read, each with 30 pods.
        #[arg(long, default_value_t = bench::NODES)]
        nodes: u32,
    },
    /// Try texts and worlds that are made by chance, beyond those of the tests.
    Fuzz {
        /// What is tried.
        target: fuzz::Target,
        /// How many texts or worlds.
        #[arg(long, default_value_t = 1_000_000)]
        runs: u64,
        /// Where chance begins.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Ask the real kube-scheduler, too, about worlds that are made by chance; needs Go.
    Peers {
        /// How many worlds.
        #[arg(long, default_value_t = 1_000)]
        runs: u64,
        /// The seed of the first; the next has the next.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Prepare the real control plane that `tests/kubernetes` starts; needs Go.
    Kubernetes {
        #[command(subcommand)]
        task: Kubernetes,
    },
    /// Run the suite against a real control plane of one version; needs Go, or ready programs where
    /// KUBEBUILDER_ASSETS says.
    E2e {
        /// Which Kubernetes.
        #[arg(long, value_enum, default_value = "1.37")]
        kubernetes: kubernetes::Version,
        /// Only kill the controller, after each of its writes in turn: minutes.
        #[arg(long)]
        crash: bool,
        /// Only put 200 recorded worlds on the server, for plan, controller and kube-scheduler to answer;
        /// needs the shared data.
        #[arg(long)]
        worlds: bool,
        /// Only write down what the server answers to the recorded requests; read the difference before
        /// you commit it.
        #[arg(long, conflicts_with_all = ["crash", "worlds"])]
        record: bool,
    },
    /// Run cargo-mutants over the checks, the device allocator and the CEL evaluator.
    Mutants {
        /// Handed on to cargo-mutants, such as `--shard 1/8` or `-F allocate`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        more: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
enum Kubernetes {
    /// Build its programs, if they are not there yet: minutes the first time.
    Build {
        /// Which Kubernetes.
        #[arg(long, value_enum, default_value = "1.37")]
        kubernetes: kubernetes::Version,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Test => test::run(),
        Task::Tidy => tidy::run(),
        Task::Accept { part } => accept::run_all(part.as_deref()),
        Task::Bench { parts, runs, nodes, pods } => bench::run(&parts, runs, (nodes, pods)),
        Task::Measure { part, runs, nodes } => bench::measure(part, runs, nodes),
        Task::Fuzz { target, runs, seed } => fuzz::run(target, runs, seed),
        Task::Peers { runs, seed } => peers::run(runs, seed),
        Task::Kubernetes { task: Kubernetes::Build { kubernetes } } => {
            kubernetes::build(kubernetes)
        }
        Task::E2e { kubernetes, record: true, .. } => kubernetes::record(kubernetes),
        Task::E2e { kubernetes, crash, worlds, record: false } => {
            let asked = [(crash, Full::Crash), (worlds, Full::Worlds)];
            let full = asked.into_iter().filter(|(asked, _)| *asked).map(|(_, full)| full);
            kubernetes::suite(kubernetes, &full.collect::<Vec<_>>())
        }
        Task::Mutants { more } => mutants::run(&more),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
