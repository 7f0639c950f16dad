//! Which cluster a command is about, if any. Reading it is left to `phalanx-live`.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction};
use phalanx_live::{Access, Connection};

use crate::args::{ClusterArgs, InputArgs};
use crate::exit::Failure;

/// Whether this was called as a plugin of kubectl: by the name that it looks for.
pub(crate) fn is_plugin() -> bool {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_stem().unwrap_or_default().to_string_lossy();
    name == "kubectl-phalanx"
}

/// `-f` of a plugin, which has kubectl's cluster to read without it. What clap requires of an argument can't
/// be taken back, so it is made anew.
pub(crate) fn optional(arg: Arg) -> Arg {
    let fresh = Arg::new(arg.get_id().clone())
        .short('f')
        .long("filename")
        .value_name("PATH")
        .value_parser(clap::value_parser!(PathBuf))
        .action(ArgAction::Append);
    let fresh = fresh.help(arg.get_help().cloned().unwrap_or_default());
    let fresh = fresh.long_help(arg.get_long_help().cloned().unwrap_or_default());
    fresh.help_heading("Input")
}

/// The cluster that the command line names; none where it names only files.
pub(crate) fn of(args: &InputArgs) -> Result<Option<Connection>, Failure> {
    let access = access(&args.cluster);
    // Without a file it is a plugin's, for any other's command line must name something.
    if access == Access::default() && !args.filenames.is_empty() {
        return Ok(None);
    }
    Connection::open(&access).map(Some).map_err(failure)
}

/// The way to the cluster.
pub(crate) fn access(args: &ClusterArgs) -> Access {
    Access { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() }
}

/// What went wrong with the cluster.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub(crate) fn failure(failure: phalanx_live::Failure) -> Failure {
    Failure::new(failure.to_string())
}
