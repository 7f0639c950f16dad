//! What will fail before it is submitted: a pure function over the world as it was read.
//!
//! Each family of rules has a module; each finding has a rule with a stable code. Reading files,
//! finding the lines of fields and printing are left to the command.

mod admitted;
mod advice;
mod asked;
mod bench;
mod claims;
mod constraints;
mod document;
mod fits;
mod hints;
mod labels;
mod limits;
mod near;
mod nodes;
pub(crate) mod partitions;
mod pools;
mod quotas;
mod resources;
mod rule;
mod selectors;
mod spread;
#[cfg(test)]
mod tests;
mod volumes;

use std::collections::BTreeSet;

use phalanx_objects::{Object, ObjectRef};

use crate::compat::Compat;
use crate::finding::{Severity, Source};
use crate::plan::PlanOptions;
use crate::world::World;
use bench::Bench;

pub use advice::{Advice, Ground, GroundKind, advise};
pub use document::{
    AdviceView, GroundView, LINT_API_VERSION, LintDocument, LintFindingView, LintSummary,
    PositionView,
};
pub use near::nearest as nearest_names;
pub use rule::Rule;

/// Where a rule is broken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// The rule.
    pub rule: Rule,
    /// How bad it is.
    pub severity: Severity,
    /// The object; none where the input could not be read as one.
    pub object: Option<ObjectRef>,
    /// Where the object was read.
    pub source: Source,
    /// The field; empty where it is the whole object.
    pub path: String,
    /// Line and column in the expression, both from 1, where the field is one.
    pub position: Option<(u32, u32)>,
    /// A sentence, or several.
    pub message: String,
}

impl Lint {
    fn new(
        rule: Rule,
        (object, source): (&ObjectRef, &Source),
        path: &str,
        message: String,
    ) -> Self {
        Self {
            rule,
            severity: rule.severity(),
            object: Some(object.clone()),
            source: source.clone(),
            path: path.to_owned(),
            position: None,
            message,
        }
    }

    /// Something about the input as a whole.
    fn of_input(rule: Rule, message: &str) -> Self {
        Self {
            rule,
            severity: rule.severity(),
            object: None,
            source: Source::default(),
            path: String::new(),
            position: None,
            message: message.to_owned(),
        }
    }

    fn graded(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    fn at(self, line: usize, column: usize) -> Self {
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { position: Some((narrow(line), narrow(column))), ..self }
    }
}

/// What the API server would refuse of an object that it has not seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule.
    pub rule: Rule,
    /// The field.
    pub path: String,
    /// A sentence, or several.
    pub message: String,
}

/// What the API server of this version would refuse of an object; nothing of one that it has made.
#[must_use]
pub fn refusals(object: &Object, compat: &Compat) -> Vec<Refusal> {
    if !limits::is_new(object) {
        return Vec::new();
    }
    let mut found = limits::refusals(object, compat);
    found.extend(limits::expression::refusals(object, compat));
    found
}

/// Admin access that the API server would refuse, for the namespace is not labelled for it.
#[must_use]
pub fn refused_admin_access(world: &World) -> Vec<Lint> {
    limits::admin_access(world)
}

/// Everything that is wrong in a world, in the order of the input, each cause once. The world is
/// as before. Of a world that keeps no objects nothing is said.
///
/// What the reader of the files found is not part of it.
#[must_use]
pub fn lint(world: &World, options: &PlanOptions) -> Vec<Lint> {
    let mut found = Vec::new();
    limits::find(world, &mut found);
    let bench = Bench::new(world);
    selectors::find(&bench, &mut found);
    constraints::find(&bench, &mut found);
    pools::find(world, &mut found);
    claims::find(&bench, &mut found);
    labels::find(world, &mut found);
    for waiting in &bench.waiting {
        resources::amounts(waiting, &mut found);
        resources::uncounted(world, waiting, &mut found);
    }
    admitted::find(world, &mut found);
    nodes::find(&bench, options, &mut found);
    hints::find(&bench, &mut found);
    levels(world, &mut found);
    let mut partitions = partitions::Partitions::new(world);
    let gangs = world.lowering().gangs().filter_map(|key| world.lowering().group(key));
    found.extend(gangs.filter_map(|info| {
        let finding = partitions.of(&info)?;
        let object = finding.object?;
        let source = world.lowering().source(&object)?;
        Some(Lint::new(Rule::PartitionsApart, (&object, source), "", finding.message))
    }));
    lowered(world, &mut found);
    fits::find(&bench, options, &mut found);
    ordered(found)
}

/// Levels that groups name and no node has a label for, with the one that may be meant.
fn levels(world: &World, found: &mut Vec<Lint>) {
    if world.nodes_len() == 0 {
        return;
    }
    let known = world.lowering().levels_in_use();
    for (object, label, field) in world.lowering().labels_of_no_node() {
        let Some(source) = world.lowering().source(&object) else { continue };
        let names: Vec<&str> = known.iter().map(phalanx_engine::Name::as_str).collect();
        let instead = match (near::meant(&label, names.iter().copied()), names.as_slice()) {
            (Some(near), _) => format!("If {near} is meant, name that."),
            (None, []) => "No other level is known.".to_owned(),
            (None, names) => format!("There are {}.", near::quoted(names, names.len())),
        };
        let message =
            format!("No node has the label {label}, which a group names as a level. {instead}");
        found.push(Lint::new(Rule::TopologyLevelUnknown, (&object, source), &field, message));
    }
}

/// What lowering found and no rule has said better.
fn lowered(world: &World, found: &mut Vec<Lint>) {
    let said: BTreeSet<(ObjectRef, String)> =
        found.iter().filter_map(|lint| Some((lint.object.clone()?, lint.path.clone()))).collect();
    // What was not read is a word about Phalanx's answers, and nothing to mend; what admission
    // refuses has rules of its own.
    let mut aside = world.lowering().absent();
    aside.extend(world.lowering().admission_findings().into_iter().map(|(_, finding)| finding));
    for finding in world.findings().iter().filter(|finding| !aside.contains(finding)) {
        let Some(object) = &finding.object else {
            found.push(Lint {
                source: Source { file: finding.file.clone(), line: finding.line, ordinal: 0 },
                ..Lint::of_input(Rule::KindNotRead, &finding.message).graded(finding.severity)
            });
            continue;
        };
        if finding.severity == Severity::Info || is_said(&said, object, &finding.path) {
            continue;
        }
        let source = Source { file: finding.file.clone(), line: finding.line, ordinal: 0 };
        let source = world.lowering().source(object).unwrap_or(&source);
        let lint = Lint::new(
            Rule::InputDoubtful,
            (object, source),
            &finding.path,
            finding.message.clone(),
        );
        found.push(lint.graded(finding.severity));
    }
}

/// Whether something was said of the field, or of one above or below it.
fn is_said(said: &BTreeSet<(ObjectRef, String)>, object: &ObjectRef, path: &str) -> bool {
    let of_object = |(other, _): &&(ObjectRef, String)| other == object;
    let near = |(_, other): &(ObjectRef, String)| {
        let (long, short) =
            if path.len() > other.len() { (path, &**other) } else { (&**other, path) };
        !short.is_empty() && long.starts_with(short)
    };
    said.iter().filter(of_object).any(near)
}

/// In the order of the input, each once.
fn ordered(mut found: Vec<Lint>) -> Vec<Lint> {
    let key = |lint: &Lint| {
        let place = (lint.source.ordinal, lint.path.clone(), lint.position);
        (place, lint.rule, lint.object.clone(), lint.message.clone())
    };
    found.sort_by_cached_key(key);
    found.dedup();
    found
}
