//! From the command line to objects: which rules hold, which texts are read, and what is wrong with
//! them. What the objects mean is left to the crates below.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use phalanx_cluster::lint::{Rule, refusals, refused_admin_access};
use phalanx_cluster::view::{CompatView, FindingView};
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Finding, Gone, Lowering, ObjectEvent, Plugin, Source, Version};
use phalanx_live::Connection;
use phalanx_objects::read::{self, Item, Problem};
use phalanx_objects::{Kind, Object, ObjectRef};

use crate::args::InputArgs;
use crate::cel;
use crate::cluster;
use crate::exit::Failure;
use crate::files::{Came, Files, Left, Text, Unreadable};
use crate::findings::{Findings, placed};
use crate::foreign::Foreign;
use crate::progress::{Passing, Progress};

/// The version and the gates that are asked for, or the version of the cluster.
fn compat(args: &InputArgs, cluster: Option<&Connection>) -> Result<Compat, Failure> {
    let version = match (&args.kubernetes_version, cluster) {
        (Some(text), _) => Version::parse(text).map_err(|error| Failure::new(error.to_string()))?,
        (None, Some(cluster)) => cluster.cluster().version().map_err(cluster::failure)?,
        (None, None) => Version::default(),
    };
    let compat = Compat::new(version);
    let gates = args.feature_gates.as_deref().unwrap_or_default();
    let plugins = args.enable_admission_plugins.as_deref().unwrap_or_default();
    let compat = compat.with_gates(gates).and_then(|compat| compat.with_plugins(plugins));
    compat.map_err(|error| Failure::new(error.to_string()))
}

/// What an answer depends on beside the objects, as data.
pub(crate) fn compat_view(compat: &Compat, now: Option<jiff::Timestamp>) -> CompatView {
    let gates = compat.changed().into_iter().map(|(gate, on)| (gate.to_owned(), on));
    CompatView {
        now: now.map(|now| now.to_string()),
        kubernetes_version: compat.version().to_string(),
        feature_gates: gates.collect(),
        admission_plugins: compat.plugins().map(Plugin::as_str).collect(),
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
    /// How many objects are of a kind or version that is not read.
    pub(crate) passed_over: u64,
    /// Whether something that was to be read could not be, and is missing.
    pub(crate) lost: bool,
}

/// What was read, and what the reader itself found: for who says what is wrong in words of his own.
#[derive(Debug)]
pub(crate) struct Held {
    /// The objects, lowered.
    pub(crate) world: World,
    /// What is wrong with the command line.
    pub(crate) options: Findings,
    /// What the reader found.
    pub(crate) problems: Vec<Problem>,
}

/// Texts that are held, to be looked at more than once.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    held: Vec<(String, Vec<u8>, Came)>,
    left: Left,
    cluster: Option<Connection>,
}

impl Texts {
    /// All that the command line names.
    pub(crate) fn of(args: &InputArgs) -> Result<Self, Failure> {
        let mut held = Vec::new();
        let cluster = cluster::of(args)?;
        let keep = |text: Text<'_>, _: &Passing| {
            held.push((text.name.to_owned(), text.bytes.to_owned(), text.came));
        };
        let left = each_text(args, cluster.as_ref(), keep)?;
        Ok(Self { held, left, cluster })
    }

    /// Each, in the order of the input.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Text<'_>> {
        self.held.iter().map(|(name, bytes, came)| Text { name, bytes, came: *came })
    }

    /// Their size in bytes.
    fn size(&self) -> u64 {
        self.held.iter().map(|(_, bytes, _)| bytes.len() as u64).sum()
    }

    /// Which in the order of the input a text is.
    pub(crate) fn place(&self, name: &str) -> usize {
        self.held.iter().position(|(held, ..)| held == name).unwrap_or(self.held.len())
    }
}

/// What a question asks of reading.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    /// Only pods of this scheduler are decided; none is every scheduler's.
    pub(crate) scheduler: Option<&'a str>,
    /// Nodes are scored, and what only scores look at is kept.
    pub(crate) scored: bool,
}

/// Reads all that the command line names.
///
/// # Errors
/// When the version, a gate or a path is wrong, or when nothing in any of the files is an object.
pub(crate) fn read(args: &InputArgs, asked: Asked<'_>) -> Result<Input, Failure> {
    let cluster = cluster::of(args)?;
    let mut reading = Reading::new(args, asked, cluster.as_ref())?;
    let mut findings = reading.options.clone();
    let refused = RefCell::new(Vec::new());
    let compat = reading.world.lowering().compat().clone();
    let mut said = BTreeSet::new();
    // What does not compile is told, and drawn, where it is lowered, if it is the worst of its claim.
    let mut late = Vec::new();
    let mut foreign = Foreign::default();
    let take = |text: Text<'_>, passing: &Passing| {
        foreign.begin(&text);
        let mut observe = |object: &Object, source: &read::Source, locate: &read::Locate<'_>| {
            for refusal in refusals(object, &compat) {
                let at = (source.clone(), locate(&refusal.path));
                refused.borrow_mut().push((object.reference(), at, refusal));
            }
        };
        read::read_observed(text.name, text.bytes, Some(&mut observe), &mut |item| {
            passing.item(&item);
            for (object, at, refusal) in refused.take() {
                if refusal.rule == Rule::SelectorInvalid {
                    late.push((object, at, refusal));
                    continue;
                }
                said.insert((placed(&object), refusal.path.clone()));
                findings.refusal(&object, &at.0, &at.1, refusal);
            }
            for problem in foreign.sift(item).filter_map(|item| reading.take(item)) {
                let object = problem.object.as_ref().map(placed);
                // Of a field that is refused that is enough.
                if !object.is_some_and(|object| said.contains(&(object, problem.path.clone()))) {
                    findings.problem(&problem);
                }
            }
        });
    };
    let left = each_text(args, cluster.as_ref(), take)?;
    foreign.tell(&left, reading.has_nodes(), &mut findings);
    let passed_over = reading.passed_over;
    let lost = reading.lost || !left.lost.is_empty();
    let world = reading.end(args, &findings)?;
    for finding in world.findings() {
        let drawn = cel::of_finding(&world, finding);
        if drawn.is_some() || !field(finding).is_some_and(|field| said.contains(&field)) {
            findings.push(FindingView::from(finding), drawn);
        } else {
            findings.pass(FindingView::from(finding));
        }
    }
    let told: BTreeSet<_> = world.findings().iter().filter_map(field).collect();
    for (object, at, refusal) in late {
        if !told.contains(&(placed(&object), refusal.path.clone())) {
            findings.refusal(&object, &at.0, &at.1, refusal);
        }
    }
    for lint in refused_admin_access(&world) {
        findings.lint(lint);
    }
    Ok(Input { world, findings, passed_over, lost })
}

/// Hands out each text: what the cluster holds, then what the files say.
fn each_text(
    args: &InputArgs,
    cluster: Option<&Connection>,
    mut sink: impl FnMut(Text<'_>, &Passing),
) -> Result<Left, Failure> {
    let files = Files::find(&args.filenames).map_err(unreadable)?;
    if let Some(cluster) = cluster {
        let mut progress = Progress::over(0);
        let mut page = |name: &str, text: &str| {
            let text = Text { name, bytes: text.as_bytes(), came: Came::Named };
            sink(text, &progress.text(text.bytes));
        };
        cluster.read(&mut page).map_err(cluster::failure)?;
    }
    files.read(sink).map_err(unreadable)
}

/// The object and the field of a finding.
fn field(finding: &Finding) -> Option<(ObjectRef, String)> {
    Some((finding.object.clone()?, finding.path.clone()))
}

/// Reads texts that are held.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_held(args: &InputArgs, texts: &Texts) -> Result<Held, Failure> {
    let mut reading = Reading::new(args, Asked::default(), texts.cluster.as_ref())?;
    let mut options = reading.options.clone();
    let mut findings = options.clone();
    let mut problems = Vec::new();
    let mut foreign = Foreign::default();
    let mut progress = Progress::over(texts.size());
    for text in texts.iter() {
        foreign.begin(&text);
        progress.file(text.name, text.bytes.len() as u64);
        let passing = progress.text(text.bytes);
        read::read(text.name, text.bytes, &mut |item| {
            passing.item(&item);
            for problem in foreign.sift(item).filter_map(|item| reading.take(item)) {
                findings.problem(&problem);
                problems.push(*problem);
            }
        });
    }
    foreign.tell(&texts.left, reading.has_nodes(), &mut options);
    let world = reading.end(args, &findings)?;
    Ok(Held { world, options, problems })
}

/// A world that is being read.
struct Reading {
    world: World,
    options: Findings,
    ordinal: u64,
    found: bool,
    passed_over: u64,
    lost: bool,
}

impl Reading {
    fn new(
        args: &InputArgs,
        asked: Asked<'_>,
        cluster: Option<&Connection>,
    ) -> Result<Self, Failure> {
        let compat = compat(args, cluster)?;
        let mut options = Findings::default();
        for warning in compat.warnings() {
            options.option(&format!("--feature-gates: {warning}"));
        }
        let mut lowering = Lowering::new(compat);
        if let Some(scheduler) = asked.scheduler {
            lowering = lowering.for_scheduler(scheduler);
        }
        if asked.scored {
            lowering = lowering.for_scores();
        }
        let world = World::new(lowering);
        Ok(Self { world, options, ordinal: 0, found: false, passed_over: 0, lost: false })
    }

    /// Takes one thing in; hands back what is wrong with it.
    fn take(&mut self, item: Item) -> Option<Box<Problem>> {
        self.ordinal += 1;
        match item {
            Item::Object(object, source) => {
                self.found = true;
                let event = ObjectEvent::Applied(Box::new(object), place(&source, self.ordinal));
                self.world.absorb(event);
                None
            }
            Item::Gone(object, _) => {
                self.found = true;
                let meta = object.metadata();
                let (uid, resource_version) =
                    (meta.uid.to_string(), meta.resource_version.to_string());
                let gone = Gone { object: object.reference(), uid, resource_version };
                self.world.absorb(ObjectEvent::Deleted(gone));
                None
            }
            Item::Unknown { api_version, kind, source } => {
                self.found = true;
                self.passed_over += 1;
                self.world.skip(&api_version, &kind, place(&source, self.ordinal));
                None
            }
            Item::Problem(problem) => {
                let lost = problem.severity == read::Severity::Error;
                self.lost |= lost;
                if let Some(object) = problem.object.as_ref().filter(|_| lost) {
                    self.world.unread(object.clone());
                }
                Some(problem)
            }
        }
    }

    /// Whether any node was read.
    fn has_nodes(&self) -> bool {
        !self.world.lowering().all(Kind::Node).is_empty()
    }

    /// The world, settled.
    fn end(self, args: &InputArgs, findings: &Findings) -> Result<World, Failure> {
        if !self.found {
            let name = |path: &PathBuf| match path.to_str() {
                Some("-") => "standard input".to_owned(),
                Some(_) | None => path.display().to_string(),
            };
            let cluster = (args.filenames.is_empty()).then(|| "the cluster".to_owned());
            let names = args.filenames.iter().map(name).chain(cluster);
            let names = names.collect::<Vec<_>>().join(", ");
            let message = format!("There is nothing to answer from: {names} holds no object.");
            return Err(Failure::new(message).after(findings));
        }
        let mut world = self.world;
        world.settle();
        Ok(world)
    }
}

/// The place of an object in the whole input.
fn place(source: &read::Source, ordinal: u64) -> Source {
    Source { file: source.file.clone(), line: source.line, ordinal }
}

fn unreadable(unreadable: Unreadable) -> Failure {
    let message = format!("{} can't be read: {}.", unreadable.path, unreadable.error);
    Failure::new(message).of_file(unreadable.path)
}
