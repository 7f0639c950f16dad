//! From the command line to objects: which rules hold, which texts are read, and what is wrong with
//! them. What the objects mean is left to the crates below.

use std::path::PathBuf;

use phalanx_cluster::view::{CompatView, FindingView};
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Lowering, ObjectEvent, Source, Version};
use phalanx_objects::read::{self, Item};

use crate::args::InputArgs;
use crate::cel;
use crate::exit::Failure;
use crate::files::{Files, Unreadable};
use crate::findings::Findings;

/// The version and the gates that are asked for.
fn compat(args: &InputArgs) -> Result<Compat, Failure> {
    let version = match &args.kubernetes_version {
        Some(text) => Version::parse(text).map_err(|error| Failure::new(error.to_string()))?,
        None => Version::default(),
    };
    let compat = Compat::new(version);
    match &args.feature_gates {
        Some(gates) => compat.with_gates(gates).map_err(|error| Failure::new(error.to_string())),
        None => Ok(compat),
    }
}

/// What an answer depends on beside the objects, as data.
pub(crate) fn compat_view(compat: &Compat, now: Option<jiff::Timestamp>) -> CompatView {
    let gates = compat.changed().into_iter().map(|(gate, on)| (gate.to_owned(), on));
    CompatView {
        now: now.map(|now| now.to_string()),
        kubernetes_version: compat.version().to_string(),
        feature_gates: gates.collect(),
    }
}

/// The newest time stamp that was read.
pub(crate) fn newest_time(world: &World) -> Option<jiff::Timestamp> {
    world.newest_time().and_then(|time| jiff::Timestamp::from_millisecond(time.0).ok())
}

/// What expressions may use in that version.
pub(crate) fn cel_environment(compat: &Compat) -> phalanx_cel::Environment {
    let minor = match compat.version() {
        Version::V1_34 => 34,
        Version::V1_35 => 35,
        Version::V1_36 => 36,
        Version::V1_37 => 37,
    };
    phalanx_cel::Environment::stored(phalanx_cel::Version::new(1, minor))
}

/// What was read.
#[derive(Debug)]
pub(crate) struct Input {
    /// The objects, lowered.
    pub(crate) world: World,
    /// What is wrong with them, in the order of the input.
    pub(crate) findings: Findings,
}

/// Reads all that the command line names. Where a scheduler is named, only its pods are decided.
///
/// # Errors
/// When the version, a gate or a path is wrong, or when nothing in any of the files is an object.
pub(crate) fn read(args: &InputArgs, scheduler: Option<&str>) -> Result<Input, Failure> {
    let compat = compat(args)?;
    let mut findings = Findings::default();
    for warning in compat.warnings() {
        findings.option(&format!("--feature-gates: {warning}"));
    }
    let mut lowering = Lowering::new(compat);
    if let Some(scheduler) = scheduler {
        lowering = lowering.for_scheduler(scheduler);
    }
    let mut world = World::new(lowering);
    let files = Files::find(&args.filenames).map_err(unreadable)?;
    let mut ordinal = 0;
    let mut found = false;
    let mut take = |file: &str, bytes: &[u8]| {
        read::read(file, bytes, &mut |item| {
            ordinal += 1;
            match item {
                Item::Object(object, source) => {
                    found = true;
                    let event = ObjectEvent::Applied(Box::new(object), place(&source, ordinal));
                    world.absorb(event);
                }
                Item::Unknown { api_version, kind, source } => {
                    found = true;
                    world.skip(&api_version, &kind, place(&source, ordinal));
                }
                Item::Problem(problem) => {
                    let lost = problem.severity == read::Severity::Error;
                    if let Some(object) = problem.object.as_ref().filter(|_| lost) {
                        world.unread(object.clone());
                    }
                    findings.problem(&problem);
                }
            }
        });
    };
    files.read(&mut take).map_err(unreadable)?;
    if !found {
        let name = |path: &PathBuf| match path.to_str() {
            Some("-") => "standard input".to_owned(),
            Some(_) | None => path.display().to_string(),
        };
        let names = args.filenames.iter().map(name).collect::<Vec<_>>().join(", ");
        let message = format!("There is nothing to answer from: {names} holds no object.");
        return Err(Failure::new(message).after(&findings));
    }
    world.settle();
    for finding in world.findings() {
        findings.push(FindingView::from(finding), cel::of_finding(&world, finding));
    }
    Ok(Input { world, findings })
}

/// The place of an object in the whole input.
fn place(source: &read::Source, ordinal: u64) -> Source {
    Source { file: source.file.clone(), line: source.line, ordinal }
}

fn unreadable(unreadable: Unreadable) -> Failure {
    let message = format!("{} can't be read: {}.", unreadable.path, unreadable.error);
    Failure::new(message).of_file(unreadable.path)
}
