//! The control plane of the tests from the command line: its programs built beforehand, or one
//! started to try something by hand.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]
#![expect(
    clippy::disallowed_methods,
    reason = "it stands at the rim: it reads files and the clock"
)]

mod bench;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use phalanx_kubernetes::{Cluster, Failure, Identity, Kubernetes, Programs, Setup};

#[derive(Debug, Parser)]
#[command(name = "phalanx-kubernetes", about, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
    /// Which Kubernetes: 1.34 or 1.37.
    #[arg(long, global = true, default_value = "1.37", value_parser = version)]
    kubernetes: Kubernetes,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the programs with Go, if they are not there yet.
    Build,
    /// Measure how many pods a second come to be bound.
    Bench(bench::Bench),
    /// Start a control plane with nodes played by kwok; it ends with the input.
    Up {
        /// Start kube-scheduler as well.
        #[arg(long)]
        scheduler: bool,
    },
}

fn version(text: &str) -> Result<Kubernetes, String> {
    Kubernetes::parse(text).ok_or_else(|| "it may be 1.34 or 1.37".to_owned())
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.task {
        Task::Build => build(cli.kubernetes),
        Task::Bench(bench) => bench::run(cli.kubernetes, &bench).await,
        Task::Up { scheduler } => up(cli.kubernetes, scheduler).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn build(kubernetes: Kubernetes) -> Result<(), Failure> {
    if let Some(programs) = Programs::or_left_out(kubernetes)? {
        println!("The programs of Kubernetes are in {}.", programs.folder().display());
    }
    Ok(())
}

async fn up(kubernetes: Kubernetes, scheduler: bool) -> Result<(), Failure> {
    let setup = Setup { kubelets: true, ..Setup::default() };
    let mut cluster = Cluster::start(Programs::have(kubernetes)?, setup).await?;
    if scheduler {
        cluster.start_scheduler()?;
    }
    eprintln!("It ends with the input: Ctrl-D.");
    println!("KUBECONFIG={}", cluster.kubeconfig(Identity::Admin).display());
    // Whatever comes, also an error, ends it.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    Ok(())
}
