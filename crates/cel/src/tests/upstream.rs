//! Upstream's own cases and random expressions, with the answers that Kubernetes gave, where that
//! data is at hand: agreement is counted, what is left is listed by kind, and a floor is kept.

use std::collections::BTreeMap;

use phalanx_objects::resource;
use serde_json::Value;

use crate::device::qualified;
use crate::{COST_LIMIT, Device, Environment, Program, ReadSet, Verdict};

/// The cases of a file, or nothing if the shared data is absent.
#[expect(
    clippy::disallowed_methods,
    reason = "the place of the shared data comes from the environment, and it is in files"
)]
fn cases(file: &str) -> Option<Vec<Value>> {
    let root = std::env::var("PHALANX_SHARED")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").to_owned());
    let path = format!("{root}/data/dra/{file}");
    let Ok(text) = std::fs::read_to_string(&path) else {
        let required = std::env::var("PHALANX_REQUIRE_SHARED");
        let required = required.is_ok_and(|value| !value.is_empty() && value != "0");
        assert!(!required, "PHALANX_REQUIRE_SHARED: there is no {path}");
        println!("left out: there is no {file} under PHALANX_SHARED");
        return None;
    };
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// What was answered, in a form that upstream and this crate share.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Match(bool),
    /// The first line of the message without position, and line and column where known.
    CompileError(String, Option<(usize, usize)>),
    MatchError(String),
}

/// The first fault of upstream's compiler: its place and its text.
fn compile_error(text: &str) -> Answer {
    let first = text.lines().next().unwrap_or("");
    let Some(rest) = first.strip_prefix("compilation failed: ERROR: <input>:") else {
        return Answer::CompileError(first.to_owned(), None);
    };
    let mut parts = rest.splitn(3, ':');
    let line = parts.next().unwrap().parse().unwrap();
    let column = parts.next().unwrap().parse().unwrap();
    Answer::CompileError(parts.next().unwrap().trim().to_owned(), Some((line, column)))
}

fn upstream(answer: &Value) -> Answer {
    let text = |key: &str| answer.get(key).and_then(Value::as_str);
    match (text("compileError"), text("matchError"), answer.get("match")) {
        (Some(error), _, _) => compile_error(error),
        (None, Some(error), _) => Answer::MatchError(error.to_owned()),
        (None, None, Some(found)) => Answer::Match(found.as_bool().unwrap()),
        (None, None, None) => panic!("a case without an answer: {answer}"),
    }
}

fn ours(expression: &str, device: &Value) -> (Answer, Option<u64>) {
    let program = match Program::compile(expression, &Environment::default()) {
        Ok(program) => program,
        Err(e) => return (Answer::CompileError(e.message, Some((e.line, e.column))), None),
    };
    let driver = device["driver"].as_str().unwrap();
    let mut object: resource::Device = serde_json::from_value(device.clone()).unwrap();
    let device = match Device::new(driver, &object) {
        Ok(device) => device,
        Err(e) => return (Answer::MatchError(e.to_string()), None),
    };
    let evaluation = program.evaluate(&device, COST_LIMIT);
    // Explaining must never fail, whatever the verdict.
    let steps = program.explain(&device);
    assert_eq!(steps.is_empty(), evaluation.verdict == Verdict::Yes, "{expression}");
    // What is not read does not matter.
    let reads = program.reads();
    let read = |set: &ReadSet, name: &str| {
        let (domain, id) = qualified(driver, name);
        set.contains(domain, id)
    };
    let projection = reads.project(&device);
    object.attributes.retain(|name, _| read(&reads.attributes, name));
    object.capacity.retain(|name, _| read(&reads.capacity, name));
    let rest = Device::new(driver, &object).unwrap();
    assert_eq!(reads.project(&rest), projection, "{expression}");
    assert_eq!(program.evaluate(&rest, COST_LIMIT), evaluation, "{expression}");
    let answer = match evaluation.verdict {
        Verdict::Yes => Answer::Match(true),
        Verdict::No => Answer::Match(false),
        Verdict::Error(e) => Answer::MatchError(e.to_string()),
    };
    (answer, Some(evaluation.cost))
}

#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    /// Yes, no, error at compile time, error at run time: the same.
    answers: usize,
    /// Of the errors: the same text, and place where there is one.
    errors: usize,
    same_errors: usize,
    costs: usize,
    same_costs: usize,
    left: BTreeMap<&'static str, Vec<String>>,
}

impl Tally {
    fn compare(&mut self, case: &Value, answer: &Value) {
        let expression = case["expression"].as_str().unwrap();
        let theirs = upstream(answer);
        let (ours, cost) = ours(expression, &case["device"]);
        self.cases += 1;
        let kind = match (&theirs, &ours) {
            (Answer::Match(a), Answer::Match(b)) if a == b => None,
            (Answer::CompileError(..), Answer::CompileError(..)) => None,
            (Answer::MatchError(_), Answer::MatchError(_)) => None,
            (Answer::Match(_), Answer::Match(_)) => Some("another verdict"),
            (Answer::CompileError(..), _) => Some("compiles here, not upstream"),
            (_, Answer::CompileError(..)) => Some("compiles upstream, not here"),
            (Answer::MatchError(_), _) => Some("fails upstream only"),
            (_, Answer::MatchError(_)) => Some("fails here only"),
        };
        if let Some(kind) = kind {
            let text = format!("{expression}\n    upstream {theirs:?}\n    here     {ours:?}");
            self.left.entry(kind).or_default().push(text);
            return;
        }
        self.answers += 1;
        if !matches!(theirs, Answer::Match(_)) {
            self.errors += 1;
            let same = match (&theirs, &ours) {
                (Answer::CompileError(a, None), Answer::CompileError(b, _)) => a == b,
                (Answer::MatchError(a), Answer::MatchError(b)) => a.starts_with(b.as_str()),
                (a, b) => a == b,
            };
            self.same_errors += usize::from(same);
            if !same {
                let text = format!("{expression}\n    upstream {theirs:?}\n    here     {ours:?}");
                self.left.entry("another error text or place").or_default().push(text);
            }
        }
        if let (Some(theirs), Some(ours)) = (answer.get("actualCost").and_then(Value::as_u64), cost)
        {
            self.costs += 1;
            self.same_costs += usize::from(theirs == ours);
            if theirs != ours {
                let text = format!("{expression}\n    upstream {theirs}, here {ours}");
                self.left.entry("another cost").or_default().push(text);
            }
        }
    }

    fn print(&self, name: &str) {
        println!(
            "{name}: {} of {} answers, {} of {} error texts, {} of {} costs agree",
            self.answers, self.cases, self.same_errors, self.errors, self.same_costs, self.costs
        );
        for (kind, cases) in &self.left {
            println!("  {}: {kind}", cases.len());
            for case in cases.iter().take(12) {
                println!("    {case}");
            }
        }
    }
}

/// Cases of a file in the scheduler's environment.
fn tally(file: &str) -> Option<Tally> {
    let mut tally = Tally::default();
    for case in cases(file)? {
        if case["kind"] != "selector" {
            continue;
        }
        for answer in case["answers"].as_array().unwrap() {
            let stored = |e: &Value| e.as_str().or(e["env"].as_str()) == Some("StoredExpressions");
            if answer["environments"].as_array().unwrap().iter().any(stored) {
                tally.compare(&case, answer);
            }
        }
    }
    tally.print(file);
    Some(tally)
}

#[test]
fn upstream_cases_agree() {
    let Some(tally) = tally("cel-cases.jsonl") else { return };
    assert_eq!((tally.cases, tally.answers), (49, 49), "agreement has fallen");
    // The one that differs is a syntax error, which upstream words by its parser's tokens.
    assert_eq!((tally.errors, tally.same_errors), (7, 6), "agreement has fallen");
    assert_eq!(tally.costs, tally.same_costs, "agreement has fallen");
}

#[test]
fn generated_expressions_agree() {
    let Some(tally) = tally("generated-cel.jsonl") else { return };
    assert_eq!((tally.cases, tally.answers), (600, 600), "agreement has fallen");
    assert_eq!(tally.errors, tally.same_errors, "agreement has fallen");
    assert_eq!(tally.costs, tally.same_costs, "agreement has fallen");
}
