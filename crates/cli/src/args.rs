//! The command line: what can be asked and how it is explained. What is done with it is left to the
//! modules of the commands.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// Colours of the help text.
const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const ABOUT: &str = "\
Decides which pods run on which nodes with exactly which GPUs, and says why the others can't.

Phalanx reads what a cluster and its users already have, as YAML or JSON, and needs no cluster:

  kubectl get nodes,pods,resourceslices,resourceclaims,deviceclasses -A -o yaml > dump.yaml
  phalanx plan -f dump.yaml -f job.yaml";

const EXIT_CODES: &str = "\
Exit codes:
  0  everything is placed, and nothing is wrong with the input
  1  something is not placed, or something in the input is wrong
  2  the command line is wrong, or nothing could be read";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "phalanx",
    version,
    about = "GPU scheduling for Kubernetes: the placement, and the reason",
    long_about = ABOUT,
    after_help = EXIT_CODES,
    styles = STYLES,
    max_term_width = 100,
)]
pub(crate) struct Cli {
    /// When to use colours
    ///
    /// `auto` uses them on a terminal, and not where NO_COLOR is set.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    /// What is asked.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Plan(PlanArgs),
    Why(WhyArgs),
    Devices(DevicesArgs),
    Lint(LintArgs),
    Status(StatusArgs),
    Diff(DiffArgs),
    Mask(MaskArgs),
    Dump(DumpArgs),
    Controller(ControllerArgs),
    Completion(CompletionArgs),
}

impl Command {
    /// Its name on the command line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Plan(_) => "plan",
            Self::Why(_) => "why",
            Self::Devices(_) => "devices",
            Self::Lint(_) => "lint",
            Self::Status(_) => "status",
            Self::Diff(_) => "diff",
            Self::Mask(_) => "mask",
            Self::Dump(_) => "dump",
            Self::Controller(_) => "controller",
            Self::Completion(_) => "completion",
        }
    }
}

/// Decide every pending pod: pod → node → devices
///
/// Pods that have a node count against it, and allocated claims hold their devices. Every pod that
/// has no node yet is decided, as are the pods that Jobs and Deployments would make: by priority,
/// then by age (what is not created yet comes last, in the order of the input), then by name.
#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) question: QuestionArgs,
    /// Print the plan as a table, as a document for programs, or as the objects that a scheduler
    /// would write
    ///
    /// `json` and `yaml` are one document of the schema in docs/schema.md, whatever the exit code.
    /// `manifests` are the writes themselves: each claim with the status that kube-scheduler would
    /// give it, and each pod's binding.
    #[arg(short, long, value_enum, default_value_t = PlanOutput::Table, value_name = "FORMAT")]
    pub(crate) output: PlanOutput,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  A dump of the cluster and a job that is not submitted yet:
    phalanx plan -f dump/ -f job.yaml
  Straight from the cluster:
    kubectl get nodes,pods,resourceslices,resourceclaims,deviceclasses -A -o yaml | phalanx plan -f -
  The same question in a changed world:
    phalanx plan -f dump/ --if '+2 nodes like n1' --if 'without pod/notebook'
  For a script, what would start each pod that waits:
    phalanx plan -f dump/ -o json | jq '.pods[] | select(.verdict == \"waits\") | {name, cures}'";

/// Say why something is placed where it is, or why it is not
///
/// The answer is a funnel: how many nodes fell at which check of kube-scheduler, with one example
/// each; how far the devices of the nearest miss got; and the smallest changes that would start it,
/// each as an `--if` to try.
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES)]
pub(crate) struct WhyArgs {
    /// What to explain, such as pod/trainer, job/sweep or deployment/chat
    #[arg(value_name = "KIND/NAME")]
    pub(crate) target: String,
    /// List every node with every check that it fails
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) question: QuestionArgs,
    /// Print a text, or a document for programs (docs/schema.md)
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub(crate) output: Output,
}

const WHY_EXAMPLES: &str = "\
Examples:
  Why does it wait?
    phalanx why -f dump/ -n research pod/finetune
  Every node, every check:
    phalanx why -f dump/ pod/quad --all
  Would it start if another pod ended?
    phalanx why -f dump/ -n research pod/finetune --if 'without pod/eval-nightly'";

/// Show devices as rows, their attributes and capacities as columns
///
/// With --class or --where each device is put to the test, and for one that fails the value that
/// failed is shown. Expressions are CEL as in a DeviceClass or a ResourceClaim.
#[derive(Debug, Args)]
#[command(after_help = DEVICES_EXAMPLES)]
pub(crate) struct DevicesArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Put each device to the selectors of this DeviceClass
    #[arg(long, value_name = "CLASS")]
    pub(crate) class: Option<String>,
    /// Put each device to this CEL expression
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) filter: Option<String>,
    /// Show every attribute and capacity, not only those that differ between devices
    #[arg(long)]
    pub(crate) wide: bool,
    /// Print a table, or a document for programs (docs/guide/devices.md)
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub(crate) output: Output,
}

const DEVICES_EXAMPLES: &str = "\
Examples:
  What differs between the devices:
    phalanx devices -f dump/
  Which of them have 40 GiB or more:
    phalanx devices -f dump/ --class gpu.nvidia.com \\
      --where 'device.capacity[\"gpu.nvidia.com\"].memory.compareTo(quantity(\"40Gi\")) >= 0'";

/// Find what will fail before it is submitted
///
/// Selectors that match no device or end in an error, constraints on attributes that nobody
/// publishes, names that lead nowhere, pools that are not whole, labels that the slices contradict,
/// what no node could ever hold, and what the API server would refuse. Give the cluster's objects
/// beside what is to be submitted. Every rule is explained in docs/guide/lint.md.
#[derive(Debug, Args)]
#[command(after_help = LINT_EXAMPLES)]
pub(crate) struct LintArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Show findings of this severity and graver ones
    ///
    /// The exit code depends on errors alone, and counts are of all.
    #[arg(long, value_enum, default_value_t = Level::Info, value_name = "SEVERITY")]
    pub(crate) severity: Level,
    /// Say of each workload whether counts suffice, or what only DRA can express
    ///
    /// Counts suffice where every set of devices that a node could give is as good as any other.
    /// Where nothing speaks for it no move is recommended, either way.
    #[arg(long)]
    pub(crate) advise: bool,
    /// Print findings for people, or a document for programs (docs/schema.md)
    #[arg(short, long, value_enum, default_value_t = LintOutput::Table, value_name = "FORMAT")]
    pub(crate) output: LintOutput,
}

const LINT_EXAMPLES: &str = "\
Examples:
  A manifest against what the cluster publishes:
    phalanx lint -f dump/ -f job.yaml
  Straight from the cluster:
    kubectl get nodes,resourceslices,deviceclasses -o yaml | phalanx lint -f - -f job.yaml
  Which workloads have a ground to move from counts to claims:
    phalanx lint -f dump/ --advise
  In a pipeline, where only errors matter:
    phalanx lint -f dump/ -f manifests/ --severity error
  For a script, each finding's rule and place:
    phalanx lint -f dump/ -o json | jq -r '.findings[] | \"\\(.file):\\(.line) \\(.code)\"'

Exit codes:
  0  nothing is an error
  1  something is
  2  the command line is wrong, or nothing could be read";

/// Show the fleet at a glance: nodes, GPUs, what is free of them, who holds them, who waits
///
/// Devices of ResourceSlices are counted by product, those of device plugins by resource and by the
/// product that their nodes' labels name. What is free counts only on nodes that take pods. How far
/// it is in pieces is said by size: free devices that a request for so many on one node, or in one
/// NVLink island, can't get (docs/guide/status.md).
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Print a text, or a document for programs (docs/schema.md)
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub(crate) output: Output,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  The fleet:
    phalanx status -f dump/
  What waits longest, for a script:
    phalanx status -f dump/ -o json | jq '.waiting[0] | {namespace, name, seconds, code}'

Exit codes:
  0  nothing in the input is wrong
  1  something is
  2  the command line is wrong, or nothing could be read";

/// Compare two plans: who starts now, who no more, who moves, and other reasons
///
/// Both are what `plan -o json` or `plan -o yaml` printed. A reason is another one if its code is;
/// amounts in its sentence may differ.
#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The plan from before; - is standard input
    pub(crate) before: PathBuf,
    /// The plan from after
    pub(crate) after: PathBuf,
    /// Print a text, or a document for programs (docs/schema.md)
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub(crate) output: Output,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  What two more nodes would change:
    phalanx plan -f dump/ -o json > now.json
    phalanx plan -f dump/ --if '+2 nodes like n1' -o json > then.json
    phalanx diff now.json then.json

Exit codes:
  0  the plans are the same
  1  they differ
  2  the command line is wrong, or a plan could not be read";

/// Write a dump without names and secrets, which is planned alike
///
/// Environment, arguments, commands and images are not in it, nor are annotations and kinds that a
/// plan does not read. Each word of a name and of a label's value is replaced by a code; codes have
/// the order of the words, so that ties fall as before. Some things stay readable, for a plan needs
/// them or because they are not masked yet: docs/guide/mask.md lists them, read it before you hand a
/// dump on.
#[derive(Debug, Args)]
#[command(after_help = MASK_EXAMPLES)]
pub(crate) struct MaskArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Write here what each code stands for; keep that file to yourself
    #[arg(long, value_name = "FILE")]
    pub(crate) names: Option<PathBuf>,
    /// Print the objects one after the other, or as one list
    #[arg(short, long, value_enum, default_value_t = MaskOutput::Yaml, value_name = "FORMAT")]
    pub(crate) output: MaskOutput,
}

const MASK_EXAMPLES: &str = "\
Examples:
  A dump to attach to a question:
    phalanx mask -f dump/ > masked.yaml
  With a key to read the answer by:
    phalanx mask -f dump/ --names names.json > masked.yaml

Exit codes:
  0  every object of a kind that is read is in it
  1  something could not be read, and is left out
  2  the command line is wrong, or nothing could be read";

/// Write what `plan`, `why` and `status` read of a cluster
///
/// Objects of every kind that is read and that the cluster serves, with the fields that are read:
/// environment, arguments and annotations that decide nothing are not in it, and secrets are not
/// asked for. `mask` makes it anonymous.
#[derive(Debug, Args)]
#[command(after_help = DUMP_EXAMPLES)]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Print the objects one after the other, or as one list
    #[arg(short, long, value_enum, default_value_t = MaskOutput::Yaml, value_name = "FORMAT")]
    pub(crate) output: MaskOutput,
}

const DUMP_EXAMPLES: &str = "\
Examples:
  What the cluster is like now, to ask about it later:
    phalanx dump > state.yaml
    phalanx why -f state.yaml job/llama
  Anonymous, to attach to a question:
    phalanx dump -o json | phalanx mask -f - > masked.yaml

Exit codes:
  0  every object of a kind that is read is in it
  1  something could not be read, and is left out
  2  the command line is wrong, or the cluster could not be read";

/// Place pods in a cluster: those that name this scheduler, and groups of them whole
///
/// Runs until it is told to stop (SIGTERM or Ctrl-C), and finishes then what is under way. Stopped at
/// any point it goes on where it was, for all that it knows stands in the cluster. What it does and
/// which rights it needs is told in docs/guide/controller.md.
#[derive(Debug, Args)]
#[command(after_help = CONTROLLER_EXAMPLES)]
pub(crate) struct ControllerArgs {
    /// The kubeconfig of the cluster
    ///
    /// Without it, that of KUBECONFIG or the one at home, and in a pod its service account.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig; without it, the current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Place the pods whose spec.schedulerName is this
    #[arg(long, default_value = "phalanx", value_name = "NAME")]
    pub(crate) scheduler_name: String,
    /// Decide and write nothing: report where the cluster's scheduler does otherwise
    #[arg(long)]
    pub(crate) shadow: bool,
    /// Feature gates that the cluster does not have as its version does: A=true,B=false
    #[arg(long, value_name = "GATES")]
    pub(crate) feature_gates: Option<String>,
    /// Answer /healthz, /readyz and /metrics at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Seconds that a group may take from its first binding until all that it needs runs
    ///
    /// After it the group is released whole.
    #[arg(long, default_value_t = 60, value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) start_within: u32,
    /// Writes that may be under way together
    #[arg(long, default_value_t = 64, value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) writes: u16,
    /// Write the objects here if a decision fails; without it, to the folder for temporary files
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) snapshots: Option<PathBuf>,
    /// How lines of the log are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
    /// How grave a line must be to be written
    #[arg(long, value_enum, default_value_t = LogLevel::Info, value_name = "LEVEL")]
    pub(crate) log_level: LogLevel,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// How grave a line of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What failed for good
    Error,
    /// What should not be, and is tried again or left out
    Warn,
    /// What happens: starts, verdicts, watches that end
    Info,
    /// Each write
    Debug,
    /// All
    Trace,
}

const CONTROLLER_EXAMPLES: &str = "\
Examples:
  In the cluster, with its rights and its service account:
    kubectl apply -k deploy/
  From here, for a try:
    phalanx controller --kubeconfig ~/.kube/config
  Beside kube-scheduler, to see where it would do otherwise:
    phalanx controller --shadow --scheduler-name default-scheduler

Exit codes:
  0  it was told to stop
  2  the command line is wrong, there is no way to the cluster, or a decision failed";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = COMPLETION_EXAMPLES)]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  phalanx completion bash > /etc/bash_completion.d/phalanx
  phalanx completion zsh > \"${fpath[1]}/_phalanx\"
  phalanx completion fish > ~/.config/fish/completions/phalanx.fish";

/// A time as Kubernetes writes it.
fn time(text: &str) -> Result<jiff::Timestamp, String> {
    text.parse().map_err(|_| {
        "it is no time with a zone: write it as Kubernetes does, such as 2026-11-28T10:00:00Z"
            .to_owned()
    })
}

/// The cluster that is read or followed.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Read the cluster that this kubeconfig names, as well as what -f names
    ///
    /// Objects of every kind that is read and that the cluster serves; secrets are none of them. Its
    /// version is the one whose rules hold.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig; without it, the current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// What is read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// File, directory, archive or - (standard input) to read; may be given several times
    ///
    /// YAML or JSON, as manifests or as `kubectl get -o yaml|json` prints them, also packed (.gz).
    /// Of a directory every .yaml, .yml and .json in it and below it is read, in the order of their
    /// names, and what else begins as kubectl prints objects; links are followed, and what is hidden
    /// (its name begins with a dot) is left out. So folders of `kubectl cluster-info dump`,
    /// must-gather and sosreport can be given as they are, also as one .tar or .tar.gz.
    #[arg(
        short,
        long = "filename",
        required_unless_present_any = ["kubeconfig", "context"],
        value_name = "PATH"
    )]
    pub(crate) filenames: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// The present, as in 2026-11-28T10:00:00Z
    ///
    /// Without it, the newest time stamp that is read.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) now: Option<jiff::Timestamp>,
    /// The Kubernetes version whose rules hold, 1.34 to 1.37
    ///
    /// Without it, that of the cluster that is read, else the newest that we know.
    #[arg(long, value_name = "VERSION")]
    pub(crate) kubernetes_version: Option<String>,
    /// Feature gates as kube-scheduler spells them: A=true,B=false
    ///
    /// Gates that no answer depends on are named in a warning and change nothing.
    #[arg(long, value_name = "GATES")]
    pub(crate) feature_gates: Option<String>,
    /// Admission plugins of the cluster that are off by default, as kube-apiserver spells them
    ///
    /// ExtendedResourceToleration and PodNodeSelector are known. Those that are on by default are
    /// always played for what is not submitted yet.
    #[arg(long, value_name = "PLUGINS")]
    pub(crate) enable_admission_plugins: Option<String>,
}

/// What is decided and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Decision")]
pub(crate) struct QuestionArgs {
    /// Ask in a changed world; may be given several times, in order
    ///
    /// '+2 nodes like n1', 'heal n1/gpu-5', 'without pod/x'. `why` prints the changes that would
    /// help in this form.
    #[arg(long = "if", value_name = "CHANGE")]
    pub(crate) changes: Vec<String>,
    /// Namespace of the objects that KIND/NAME and --if name
    #[arg(short, long, default_value = "default")]
    pub(crate) namespace: String,
    /// Decide only pods that name this scheduler
    #[arg(long, value_name = "NAME")]
    pub(crate) scheduler_name: Option<String>,
    /// Which of the nodes that would do is taken
    ///
    /// `kube-scheduler` scores nodes as its default profile does, for comparison; which devices are
    /// taken on the node is a question of `--device-order`.
    #[arg(long, value_enum, default_value_t = NodeOrder::Best, value_name = "POLICY")]
    pub(crate) policy: NodeOrder,
    /// Which of the devices that would do are taken
    #[arg(long, value_enum, default_value_t = DeviceOrder::Best, value_name = "ORDER")]
    pub(crate) device_order: DeviceOrder,
    /// Let a CEL error on one device end the pod's attempt, as kube-scheduler does
    ///
    /// So do an amount of a capacity that can't be counted, and devices for `All` that break a
    /// constraint or are more than an allocation holds. Only with `--device-order upstream`, for it
    /// depends on the order in which devices are looked at. Without it, such a device is left out
    /// and the error is reported.
    #[arg(long)]
    pub(crate) strict_cel: bool,
}

/// Which of the nodes that would do is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodeOrder {
    /// The one of least cost: best devices, wishes met, most left to later pods
    Best,
    /// The one with kube-scheduler's highest score
    KubeScheduler,
}

/// Which of the devices that would do are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceOrder {
    /// The set with the best links that leaves most to later pods
    Best,
    /// The first that fits, as kube-scheduler takes it
    Upstream,
}

/// How `plan` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanOutput {
    /// For people
    Table,
    /// For programs
    Json,
    /// For programs
    Yaml,
    /// The writes that a scheduler would make
    Manifests,
    /// The ranks of groups that start whole, as a hostfile of MPI
    Hostfile,
    /// The same as a rank file of Open MPI
    Rankfile,
    /// The same as variables of each process, such as RANK and WORLD_SIZE
    Env,
}

/// How the other commands print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
    /// For programs
    Yaml,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// It would fail
    Error,
    /// It may fail, or does something else than it seems to
    Warning,
    /// Worth knowing
    Info,
}

/// How `lint` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintOutput {
    /// For people
    Table,
    /// For programs
    Json,
}

/// How `mask` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MaskOutput {
    /// One document for each object
    Yaml,
    /// One List
    Json,
}

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        super::Cli::command().debug_assert();
    }
}
