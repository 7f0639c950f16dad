//! Upstream's own cases and random expressions, with the answers that Kubernetes gave in each
//! environment, where that data is at hand: faults and their places, types, estimates, verdicts,
//! derived attributes, errors and costs.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::resource::{self, DeviceAttribute};
use serde_json::{Value, json};

use crate::device::qualified;
use crate::{
    COST_LIMIT, Device, Environment, EvalError, EvalErrorKind, Gates, Program, ReadSet, Verdict,
    Version,
};

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

/// What is compared of one expression in one environment, by name; what upstream does not give is
/// not there.
type Answer = BTreeMap<&'static str, Value>;

/// The first fault of upstream's compiler: its place, if it has one, and its text.
fn compile_error(text: &str) -> (Option<Value>, String) {
    let first = text.lines().next().unwrap_or("");
    let Some(rest) = first.strip_prefix("compilation failed: ERROR: <input>:") else {
        return (None, first.to_owned());
    };
    let mut parts = rest.splitn(3, ':');
    let mut number = || parts.next().unwrap().parse::<u64>().unwrap();
    let place = json!([number(), number()]);
    (Some(place), parts.next().unwrap().trim().to_owned())
}

fn upstream(answer: &Value) -> Answer {
    let mut known = Answer::new();
    let mut take = |name: &'static str, key: &str| {
        if let Some(value) = answer.get(key).filter(|value| !value.is_null()) {
            known.insert(name, value.clone());
        }
    };
    take("type", "outputType");
    take("match", "match");
    take("attribute", "attribute");
    take("cost", "actualCost");
    take("error", "matchError");
    if answer["compileError"].is_null() {
        take("estimate", "maxCost");
    } else {
        let (place, text) = compile_error(answer["compileError"].as_str().unwrap());
        known.extend(place.map(|place| ("place", place)));
        known.insert("refused", json!(text));
    }
    if answer.get("enhancedError").is_some_and(|error| *error != answer["matchError"]) {
        known.insert("hinted", json!(true));
    }
    known
}

fn environment(of: &Value) -> Environment {
    let (name, features) = (of["env"].as_str().unwrap(), of["features"].as_array().unwrap());
    let on = |gate: &str| features.iter().any(|feature| feature == gate);
    let gates = Gates {
        consumable_capacity: on("DRAConsumableCapacity"),
        list_type_attributes: on("DRAListTypeAttributes"),
    };
    match name {
        "StoredExpressions" => Environment::stored(Version::NEWEST),
        _ => Environment::new_expressions(Version::NEWEST, gates),
    }
}

fn attribute_json(value: &DeviceAttribute) -> Value {
    match value {
        DeviceAttribute::Int(i) => json!({"int": i}),
        DeviceAttribute::Bool(b) => json!({"bool": b}),
        DeviceAttribute::String(s) => json!({"string": s}),
        DeviceAttribute::Version(v) => json!({"version": v}),
        DeviceAttribute::Ints(ints) => json!({"ints": ints}),
        DeviceAttribute::Bools(bools) => json!({"bools": bools}),
        DeviceAttribute::Strings(strings) => json!({"strings": strings}),
        DeviceAttribute::Versions(versions) => json!({"versions": versions}),
        DeviceAttribute::Empty | DeviceAttribute::Unknown(_) => Value::Null,
    }
}

fn failed(answer: &mut Answer, error: &EvalError) {
    answer.insert("error", json!(error.to_string()));
}

fn ours(case: &Value, environment: &Environment) -> Answer {
    let (expression, device) = (case["expression"].as_str().unwrap(), &case["device"]);
    let selector = case["kind"] == "selector";
    let program = match selector {
        true => Program::compile(expression, environment),
        false => Program::compile_attribute(expression, environment),
    };
    let program = match program {
        Ok(program) => program,
        Err(error) => {
            let place = json!([error.line, error.column]);
            return Answer::from([("refused", json!(error.message)), ("place", place)]);
        }
    };
    let mut answer = Answer::from([
        ("type", json!(program.output_type())),
        ("estimate", json!(program.estimate())),
    ]);
    if device.is_null() {
        return answer;
    }
    let driver = device["driver"].as_str().unwrap();
    let mut object: resource::Device = serde_json::from_value(device.clone()).unwrap();
    let device = match Device::new(driver, &object) {
        Ok(device) => device,
        Err(error) => {
            answer.insert("error", json!(error.to_string()));
            return answer;
        }
    };
    if !selector {
        let evaluation = program.evaluate_attribute(&device, COST_LIMIT);
        answer.insert("cost", json!(evaluation.cost));
        match &evaluation.value {
            Ok(value) => drop(answer.insert("attribute", attribute_json(value))),
            Err(error) => failed(&mut answer, error),
        }
        return answer;
    }
    let evaluation = program.evaluate(&device, COST_LIMIT);
    answer.insert("cost", json!(evaluation.cost));
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
    match &evaluation.verdict {
        Verdict::Yes => drop(answer.insert("match", json!(true))),
        Verdict::No => drop(answer.insert("match", json!(false))),
        Verdict::Error(error) => {
            failed(&mut answer, error);
            if matches!(error.kind, EvalErrorKind::NoSuchKey(_)) {
                assert!(error.hint().is_some());
                answer.insert("hinted", json!(true));
            }
        }
    }
    answer
}

/// Whether a fact agrees. Of the end of an error about a result that is no bool, upstream has
/// several versions; faults of syntax are worded by its parser's tokens.
fn agrees(name: &str, theirs: &Value, ours: Option<&Value>) -> bool {
    let texts = (theirs.as_str(), ours.and_then(Value::as_str));
    match (name, texts) {
        ("error", (Some(theirs), Some(ours))) if theirs.starts_with("CEL result of type") => {
            theirs.starts_with(ours)
        }
        ("refused", (Some(theirs), Some(ours))) if theirs.starts_with("Syntax error") => {
            ours.starts_with("Syntax error")
        }
        _ => Some(theirs) == ours,
    }
}

/// Compares a file: the number of answers in environments, and what differs.
fn compare(file: &str) -> Option<(usize, Vec<String>)> {
    let (mut count, mut different) = (0, Vec::new());
    for case in cases(file)? {
        for answer in case["answers"].as_array().unwrap() {
            for environment_of in answer["environments"].as_array().unwrap() {
                count += 1;
                let (theirs, ours) = (upstream(answer), ours(&case, &environment(environment_of)));
                // What has no value on one side must have none on the other.
                let whole = ["match", "attribute", "error", "refused", "cost", "hinted"];
                let mut names: BTreeSet<&str> = theirs.keys().copied().collect();
                names.extend(ours.keys().copied().filter(|name| whole.contains(name)));
                let wrong: Vec<String> = names
                    .into_iter()
                    .filter(|name| {
                        let theirs = theirs.get(name).unwrap_or(&Value::Null);
                        !agrees(name, theirs, ours.get(name))
                    })
                    .map(|name| {
                        format!(
                            "{name}: upstream {:?}, here {:?}",
                            theirs.get(name),
                            ours.get(name)
                        )
                    })
                    .collect();
                if !wrong.is_empty() {
                    let expression = &case["expression"];
                    different.push(format!("{expression} in {environment_of}: {wrong:#?}"));
                }
            }
        }
    }
    println!("{file}: {} of {count} answers agree", count - different.len());
    Some((count, different))
}

#[test]
fn upstream_cases_agree() {
    let Some((count, different)) = compare("cel-cases.jsonl") else { return };
    assert!(different.is_empty(), "{different:#?}");
    assert!(count >= 83, "{count} answers only");
}

#[test]
fn generated_expressions_agree() {
    let Some((count, different)) = compare("generated-cel.jsonl") else { return };
    assert!(different.is_empty(), "{different:#?}");
    assert_eq!(count, 600);
}
