//! The one command: words, colours, files and exit codes. Everything else comes from the crates
//! below; this one decides nothing.

mod args;
mod cel;
mod cluster;
mod controller;
mod devices;
mod diff;
mod document;
mod dump;
mod exit;
mod files;
mod findings;
mod foreign;
mod gzip;
mod input;
mod launch;
mod lint;
mod mask;
mod nearest;
mod node;
mod packed;
mod plan;
mod progress;
mod question;
mod screen;
mod status;
mod why;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};

use args::{Cli, Command, CompletionArgs, LintOutput, Output, PlanOutput};
use exit::{Answer, FINE, Failure, MISUSE, Printed};

/// Lowering makes and drops many small values: this allocator takes about half the time of the
/// system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    screen::choose_colors(cli.color);
    let (answer, format) = match &cli.command {
        Command::Plan(args) => (question::plan(args), plan_format(args.output)),
        Command::Why(args) => (question::why(args), format(args.output)),
        Command::Devices(args) => (devices::run(args), format(args.output)),
        Command::Lint(args) => (lint::run(args), lint_format(args.output)),
        Command::Status(args) => (status::run(args), format(args.output)),
        Command::Diff(args) => (diff::run(args), format(args.output)),
        // Objects are printed, or nothing: there is no document to say why.
        Command::Mask(args) => (mask::run(args), Format::Text),
        Command::Dump(args) => (dump::run(args), Format::Text),
        Command::Controller(args) => (controller::run(args), Format::Text),
        Command::Completion(args) => (completion(args), Format::Text),
    };
    match answer {
        Ok(answer) => finish(&answer),
        Err(failure) => {
            screen::complain(&failure.render());
            no_answer(cli.command.name(), &failure, format)
        }
    }
}

/// The command line. As a plugin of kubectl it asks about kubectl's cluster, unless it is told otherwise.
fn parse() -> Result<Cli, clap::Error> {
    if !cluster::is_plugin() {
        return Cli::try_parse();
    }
    let mut command = Cli::command().bin_name("kubectl phalanx");
    for name in ["plan", "why", "devices", "lint", "status", "mask"] {
        command =
            command.mut_subcommand(name, |command| command.mut_arg("filenames", cluster::optional));
    }
    Cli::from_arg_matches(&command.try_get_matches()?)
}

/// Prints the document that a command owes a program even where it has no answer.
fn no_answer(command: &str, failure: &Failure, format: Format) -> ExitCode {
    match command {
        "devices" => tell(&devices::no_answer(failure), format),
        "lint" => tell(&lint::no_answer(failure), format),
        "status" => tell(&status::no_answer(failure), format),
        "diff" => tell(&diff::no_answer(failure), format),
        "mask" | "dump" | "controller" | "completion" => ExitCode::from(MISUSE),
        _ => tell(&question::no_answer(failure), format),
    }
}

/// How a failure is told to a program that waits for a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Yaml,
}

fn format(output: Output) -> Format {
    match output {
        Output::Table => Format::Text,
        Output::Json => Format::Json,
        Output::Yaml => Format::Yaml,
    }
}

fn lint_format(output: LintOutput) -> Format {
    match output {
        LintOutput::Table => Format::Text,
        LintOutput::Json => Format::Json,
    }
}

fn plan_format(output: PlanOutput) -> Format {
    match output {
        PlanOutput::Table
        | PlanOutput::Manifests
        | PlanOutput::Hostfile
        | PlanOutput::Rankfile
        | PlanOutput::Env => Format::Text,
        PlanOutput::Json => Format::Json,
        PlanOutput::Yaml => Format::Yaml,
    }
}

/// Prints an answer.
fn finish(answer: &Answer) -> ExitCode {
    screen::complain(&answer.messages);
    let printed = match &answer.out {
        Printed::Text(text) => screen::print(text),
        Printed::Document(text) => screen::print_raw(text.as_bytes()),
    };
    written(printed, answer.code)
}

/// Prints the document that says why there is no answer, where a program waits for one.
fn tell(document: &impl serde::Serialize, format: Format) -> ExitCode {
    let text = match format {
        Format::Text => return ExitCode::from(MISUSE),
        Format::Json => document::json(document),
        Format::Yaml => document::yaml(document),
    };
    match text {
        Ok(text) => written(screen::print_raw(text.as_bytes()), MISUSE),
        Err(failure) => {
            screen::complain(&failure.render());
            ExitCode::from(MISUSE)
        }
    }
}

/// The exit code, where what was to be printed could be printed.
fn written(result: io::Result<()>, code: u8) -> ExitCode {
    match result {
        Ok(()) => ExitCode::from(code),
        Err(error) => {
            screen::complain(&format!("error: Standard output can't be written: {error}.\n"));
            ExitCode::from(MISUSE)
        }
    }
}

/// A command line that clap refuses, or that asks for help.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return written(screen::print(&error.render().ansi().to_string()), FINE);
    }
    screen::complain(&error.render().ansi().to_string());
    let failure = Failure::new(bare(&error.render().to_string()));
    let args: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let known = Cli::command();
    let is_command = |arg: &&String| known.find_subcommand(arg.as_str()).is_some();
    let command = args.iter().find(is_command).map_or("", String::as_str);
    no_answer(command, &failure, wanted(&args))
}

/// What clap says is wrong, without its heading and without its advice for people.
fn bare(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// The output that a command line asks for which is otherwise wrong: who reads a document gets one
/// even then.
fn wanted(args: &[String]) -> Format {
    let mut format = Format::Text;
    let mut before = "";
    for arg in args {
        let value = match before {
            "-o" | "--output" => arg,
            _ => {
                let long = arg.strip_prefix("--output=").or_else(|| arg.strip_prefix("-o="));
                long.or_else(|| arg.strip_prefix("-o")).unwrap_or_default()
            }
        };
        match value {
            "json" => format = Format::Json,
            "yaml" => format = Format::Yaml,
            _ => {}
        }
        before = arg;
    }
    format
}

fn completion(args: &CompletionArgs) -> Result<Answer, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "phalanx", &mut script);
    let script = String::from_utf8(script)
        .map_err(|error| Failure::new(format!("The script is no text: {error}.")))?;
    Ok(Answer { out: Printed::Document(script), messages: String::new(), code: FINE })
}
