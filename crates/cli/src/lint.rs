//! `lint`: reads, asks what will fail, finds the lines, prints. What is wrong is decided below.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use phalanx_cluster::edit::Target;
use phalanx_cluster::lint::{
    AdviceView, LINT_API_VERSION, Lint, LintDocument, LintFindingView, LintSummary, PositionView,
    Rule, advise, lint,
};
use phalanx_cluster::plan::PlanOptions;
use phalanx_cluster::view::{CompatView, FindingView};
use phalanx_cluster::{Compat, Severity};
use phalanx_objects::read::{self, Problem, Spot};
use phalanx_objects::{Object, ObjectRef};

use crate::args::{Level, LintArgs, LintOutput};
use crate::document;
use crate::exit::{Answer, FINE, Failure, NOT_ALL, Printed};
use crate::findings::{Findings, placed};
use crate::input;
use crate::screen::{GOOD, count, paint};

/// A finding, with its line where that is known.
struct Shown {
    severity: Severity,
    /// The file's place in the input, the line, and the place in the object's findings.
    order: (usize, u64, usize),
    view: LintFindingView,
    spot: Option<Spot>,
}

/// Answers `lint`.
pub(crate) fn run(args: &LintArgs) -> Result<Answer, Failure> {
    let texts = input::Texts::of(&args.input)?;
    let input = input::read_held(&args.input, &texts)?;
    let options = PlanOptions { now: input.world.newest_time(), ..PlanOptions::default() };
    let found = lint(&input.world, &options);
    let mut all = placed_in(&texts, found);
    all.extend(input.problems.iter().map(|problem| of_problem(&texts, problem)));
    let mut shown = once(all);
    shown.sort_by(|a, b| (a.order, &a.view.code).cmp(&(b.order, &b.view.code)));
    let compat = input.world.lowering().compat();
    let compat = input::compat_view(compat, input::newest_time(&input.world));
    let summary = summary(&shown, input.world.objects().map_or(0, |objects| objects.len()));
    let fine = summary.errors == 0 && !input.options.any_error();
    let code = if fine { FINE } else { NOT_ALL };
    shown.retain(|one| one.severity <= severity(args.severity));
    let warnings = input.options.render();
    let advice: Option<Vec<AdviceView>> =
        args.advise.then(|| advise(&input.world).iter().map(AdviceView::of).collect());
    let out = match args.output {
        LintOutput::Table => {
            let advice = advice.map(|advice| advised(&advice)).unwrap_or_default();
            Printed::Text(advice + &text(&shown, &summary, &compat))
        }
        LintOutput::Json => {
            let findings = shown.into_iter().map(|one| one.view).collect();
            let api_version = LINT_API_VERSION;
            let whole = LintDocument { api_version, compat, findings, advice, summary };
            Printed::Document(document::json(&whole)?)
        }
    };
    Ok(Answer { out, messages: warnings, code })
}

fn severity(level: Level) -> Severity {
    match level {
        Level::Error => Severity::Error,
        Level::Warning => Severity::Warning,
        Level::Info => Severity::Info,
    }
}

fn summary(shown: &[Shown], objects: usize) -> LintSummary {
    let number = |severity| {
        let of = shown.iter().filter(|one| one.severity == severity).count();
        u64::try_from(of).unwrap_or(u64::MAX)
    };
    LintSummary {
        errors: number(Severity::Error),
        warnings: number(Severity::Warning),
        infos: number(Severity::Info),
        objects: u64::try_from(objects).unwrap_or(u64::MAX),
    }
}

/// Findings by file, the line at which their object begins, and the object.
type Waiting = BTreeMap<(String, u32, Option<ObjectRef>), Vec<Lint>>;

/// Reads the texts of objects with findings again, for the lines of the fields.
fn placed_in(texts: &input::Texts, found: Vec<Lint>) -> Vec<Shown> {
    let mut waiting = Waiting::new();
    for one in found {
        let key = (one.source.file.to_string(), one.source.line, one.object.clone());
        waiting.entry(key).or_default().push(one);
    }
    let waiting = RefCell::new(waiting);
    let located: RefCell<Vec<(Lint, Option<Spot>)>> = RefCell::new(Vec::new());
    for text in texts.iter() {
        let any = waiting.borrow().keys().any(|(file, ..)| file == text.name);
        if !any {
            continue;
        }
        let mut observe = |object: &Object, source: &read::Source, locate: &read::Locate<'_>| {
            let key = (source.file.to_string(), source.line, Some(placed(&object.reference())));
            for one in waiting.borrow_mut().remove(&key).into_iter().flatten() {
                let spot = (!one.path.is_empty()).then(|| locate(&one.path));
                located.borrow_mut().push((one, spot));
            }
        };
        read::read_observed(text.name, text.bytes, Some(&mut observe), &mut |_| {});
    }
    let rest = waiting.into_inner().into_values().flatten().map(|one| (one, None));
    let all = located.into_inner().into_iter().chain(rest);
    all.enumerate().map(|(at, (one, spot))| of_lint(texts, at, one, spot)).collect()
}

fn of_lint(texts: &input::Texts, at: usize, one: Lint, spot: Option<Spot>) -> Shown {
    let line = spot.as_ref().map_or(one.source.line, |spot| spot.line);
    let view = LintFindingView {
        code: one.rule.code(),
        severity: one.severity.as_str(),
        object: one.object.as_ref().map(name),
        file: Some(one.source.file.to_string()).filter(|file| !file.is_empty()),
        line: (line > 0).then_some(u64::from(line)),
        path: Some(one.path).filter(|path| !path.is_empty()),
        position: one.position.map(|(line, column)| PositionView { line, column }),
        message: one.message,
    };
    let order = (texts.place(&one.source.file), u64::from(line), at);
    Shown { severity: one.severity, order, view, spot }
}

fn of_problem(texts: &input::Texts, problem: &Problem) -> Shown {
    let (rule, severity) = match problem.severity {
        read::Severity::Error => (Rule::ObjectUnreadable, Severity::Error),
        read::Severity::Warning => (Rule::InputDoubtful, Severity::Warning),
    };
    let view = LintFindingView {
        code: rule.code(),
        severity: severity.as_str(),
        object: problem.object.as_ref().map(|object| name(&placed(object))),
        file: Some(problem.file.to_string()),
        line: Some(u64::from(problem.line)),
        path: Some(problem.path.clone()).filter(|path| !path.is_empty()),
        position: None,
        message: problem.message.clone(),
    };
    let spot = Spot {
        line: problem.line,
        column: problem.column,
        text: problem.text.clone(),
        text_column: problem.text_column,
    };
    let order = (texts.place(&problem.file), u64::from(problem.line), usize::MAX);
    Shown { severity, order, view, spot: Some(spot) }
}

fn name(object: &ObjectRef) -> String {
    Target::from(object).to_string()
}

/// What the reader says of a field of which a rule says more is left out.
fn once(all: Vec<Shown>) -> Vec<Shown> {
    let field = |one: &Shown| Some((one.view.object.clone()?, one.view.path.clone()?));
    let is_rule = |one: &Shown| one.view.code != Rule::InputDoubtful.code();
    let said: BTreeSet<_> = all.iter().filter(|one| is_rule(one)).filter_map(field).collect();
    let keeps = |one: &Shown| is_rule(one) || field(one).is_none_or(|field| !said.contains(&field));
    all.into_iter().filter(|one| keeps(one)).collect()
}

/// What is said of each workload, with its grounds below it.
fn advised(all: &[AdviceView]) -> String {
    let mut out = String::new();
    for one in all {
        out += &format!("{} asks for {}: {}\n", one.object, one.asks.join(", "), one.message);
        for ground in &one.grounds {
            out += &format!("  {}: {}\n", ground.code, ground.message);
        }
        if let Some(unknown) = &one.unknown {
            out += &format!("  not known: {unknown}\n");
        }
    }
    if all.is_empty() {
        out += "No pod that is to be placed asks for devices: there is nothing to advise.\n";
    }
    out + "\n"
}

fn text(shown: &[Shown], summary: &LintSummary, compat: &CompatView) -> String {
    let mut findings = Findings::default();
    for one in shown {
        let view = &one.view;
        let position = view.position.map_or_else(String::new, |position| {
            let line =
                if position.line > 1 { format!("line {}, ", position.line) } else { String::new() };
            format!(" ({line}column {} of the expression)", position.column)
        });
        let view = FindingView {
            severity: view.severity.to_owned(),
            object: view.object.clone(),
            file: view.file.clone(),
            line: view.line,
            path: view.path.clone(),
            message: format!("[{}] {}{position}", view.code, view.message),
        };
        findings.spotted(view, one.spot.as_ref());
    }
    let mut out = findings.render_apart();
    let objects = count(summary.objects, "object", "objects");
    let version = format!("Kubernetes {}", compat.kubernetes_version);
    let numbers = [
        (summary.errors, "error", "errors"),
        (summary.warnings, "warning", "warnings"),
        (summary.infos, "hint", "hints"),
    ];
    let said: Vec<String> = numbers
        .iter()
        .filter(|n| n.0 > 0)
        .map(|(number, one, many)| count(*number, one, many))
        .collect();
    if said.is_empty() {
        let fine = paint(GOOD, "Nothing is wrong");
        out += &format!("{fine}: {objects} read, {version}\n");
    } else {
        out += &format!("{}; {objects} read; {version}\n", said.join(", "));
    }
    if summary.errors > 0 {
        out += "exit code 1: something would fail\n";
    }
    out
}

/// The document where there is no answer: empty, but for what is wrong.
pub(crate) fn no_answer(failure: &Failure) -> LintDocument {
    let view = |finding: FindingView| LintFindingView {
        code: "",
        severity: match finding.severity.as_str() {
            "error" => "error",
            "warning" => "warning",
            _ => "info",
        },
        object: finding.object,
        file: finding.file,
        line: finding.line,
        path: finding.path,
        position: None,
        message: finding.message,
    };
    let findings: Vec<LintFindingView> = failure.findings().into_iter().map(view).collect();
    let number = |severity: &str| {
        let of = findings.iter().filter(|finding| finding.severity == severity).count();
        u64::try_from(of).unwrap_or(u64::MAX)
    };
    let (errors, warnings, infos) = (number("error"), number("warning"), number("info"));
    LintDocument {
        api_version: LINT_API_VERSION,
        compat: input::compat_view(&Compat::default(), None),
        advice: None,
        summary: LintSummary { errors, warnings, infos, objects: 0 },
        findings,
    }
}
