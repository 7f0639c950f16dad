//! Sequences of requests, and what the real server answers to them: kept as data, so that a server which
//! plays it can be held to them. Here the requests are made again, and the answers must be those that are
//! kept; `cargo xtask e2e --record` writes them anew.
//!
//! What the data means stands in `recorded/README.md`.

mod symbols;

use std::fs;
use std::path::{Path, PathBuf};

use http::{Method, Request, StatusCode};
use kube::Client;
use kube::client::Body;
use phalanx_kubernetes::{Cluster, Failure, Kubernetes, Part, Setup, until};
use serde_json::{Value, json};

use crate::board::text;
use crate::controls::deployed;
use symbols::Symbols;

#[tokio::test]
async fn the_server_answers_as_recorded() {
    Cluster::test(Setup::default(), answers_as_recorded).await;
}

async fn answers_as_recorded(cluster: &mut Cluster) -> Result<(), Failure> {
    deployed(cluster).await?;
    // What was written before is then too old for its watches.
    cluster.restart(Part::ApiServer).await?;
    let client = deployed(cluster).await?;
    let records = std::env::var("PHALANX_RECORD").is_ok_and(|value| value == "1");
    let mut differs = Vec::new();
    for path in sequences() {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let sequence: Value = serde_saphyr::from_str(&read(&path)).expect("a sequence in YAML");
        let answered = answered(&client, &name, &sequence).await?;
        let kept = folder().join(Kubernetes::of_this_run().as_str()).join(format!("{name}.yaml"));
        if records {
            let written = serde_saphyr::to_string(&answered).expect("YAML");
            fs::create_dir_all(kept.parent().expect("a folder")).expect("the folder");
            fs::write(&kept, written).expect("it can be written");
            continue;
        }
        let expected: Value = serde_saphyr::from_str(&read(&kept)).expect("what is kept, in YAML");
        differs.extend(difference(&name, &expected, &answered));
    }
    assert!(differs.is_empty(), "cargo xtask e2e --record\n{}", differs.join("\n"));
    Ok(())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded")
}

fn sequences() -> Vec<PathBuf> {
    let files = fs::read_dir(folder().join("sequences")).expect("the folder of sequences");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "there are sequences");
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Makes the requests of a sequence in a namespace of its own, one after the other.
async fn answered(client: &Client, name: &str, sequence: &Value) -> Result<Value, Failure> {
    let namespace = format!("seq-{name}");
    let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let mut symbols = Symbols::new(&namespace);
    let created = send(client, &json!({"post": "/api/v1/namespaces", "body": made})).await?;
    assert_eq!(created.0, StatusCode::CREATED, "{namespace}");
    let mut steps = Vec::new();
    for step in sequence["steps"].as_array().expect("steps") {
        let request = symbols.fill(step);
        assert!(!symbols::is_left_open(&request), "{name}: nothing was seen of it yet: {request}");
        let code = step["until"].as_u64();
        let (status, answer) = match code {
            None => send(client, &request).await?,
            Some(code) => {
                until(text(step, "/step"), async || {
                    let answer = send(client, &request).await?;
                    let has = |at: &str| {
                        let at = step[at].as_str();
                        at.map(|at| answer.1.iter().any(|object| object.pointer(at).is_some()))
                    };
                    let is = u64::from(answer.0.as_u16()) == code
                        && has("with").unwrap_or(true)
                        && !has("without").unwrap_or(false);
                    Ok(is.then_some(answer))
                })
                .await?
            }
        };
        let mut step = step.clone();
        step["code"] = status.as_u16().into();
        step["answer"] = answer.into_iter().map(|object| symbols.seen(object)).collect();
        steps.push(step);
    }
    let about = sequence["about"].clone();
    Ok(json!({"about": about, "steps": steps, "versions": symbols.versions_in_order()}))
}

/// Sends what a step says; answers the code, and the object or the events of a watch.
async fn send(client: &Client, step: &Value) -> Result<(StatusCode, Vec<Value>), Failure> {
    let (method, path) = request_line(step);
    let content = step["content"].as_str().unwrap_or("application/json");
    let body = match step["body"].as_str() {
        Some(text) => text.to_owned(),
        None => step.get("body").map(Value::to_string).unwrap_or_default(),
    };
    let body = body.into_bytes();
    let request = Request::builder().method(method).uri(path);
    let request = request.header(http::header::CONTENT_TYPE, content).body(Body::from(body));
    let response = client.send(request.map_err(kube::Error::HttpError)?).await?;
    let (head, body) = response.into_parts();
    let body = body.collect_bytes().await?;
    // Of a path that is not served the server speaks no JSON.
    let content = head.headers.get(http::header::CONTENT_TYPE).and_then(|of| of.to_str().ok());
    if !content.is_some_and(|content| content.starts_with("application/json")) {
        return Ok((head.status, Vec::new()));
    }
    let objects = serde_json::Deserializer::from_slice(&body).into_iter::<Value>();
    let objects = objects.map(|object| object.unwrap_or_else(|e| panic!("{path}: {e}")));
    Ok((head.status, objects.collect()))
}

fn request_line(step: &Value) -> (Method, &str) {
    let all = [
        ("get", Method::GET),
        ("post", Method::POST),
        ("put", Method::PUT),
        ("patch", Method::PATCH),
        ("delete", Method::DELETE),
    ];
    let found = all.into_iter().find_map(|(name, method)| Some((method, step[name].as_str()?)));
    found.unwrap_or_else(|| panic!("a step without a request: {step}"))
}

/// The first step that is answered otherwise than is kept, in words.
fn difference(name: &str, expected: &Value, found: &Value) -> Option<String> {
    if expected == found {
        return None;
    }
    let none = Vec::new();
    let steps = |of: &'_ Value| of["steps"].as_array().cloned().unwrap_or_default();
    let (expected_steps, found_steps) = (steps(expected), steps(found));
    let differs = expected_steps.iter().zip(&found_steps).find(|(kept, now)| kept != now);
    Some(match differs {
        Some((kept, now)) => {
            let step = text(now, "/step");
            let kept_answers = kept["answer"].as_array().unwrap_or(&none);
            let now_answers = now["answer"].as_array().unwrap_or(&none);
            let at = kept_answers.iter().zip(now_answers).position(|(kept, now)| kept != now);
            let of = |answers: &[Value], code: &Value| match at.and_then(|at| answers.get(at)) {
                Some(answer) => format!("{code} {answer}"),
                None => format!("{code} with {} objects", answers.len()),
            };
            format!(
                "{name}, \"{step}\":\n  kept {}\n  now  {}",
                of(kept_answers, &kept["code"]),
                of(now_answers, &now["code"])
            )
        }
        None => format!(
            "{name}: {} steps are kept, {} were made; versions {} and now {}",
            expected_steps.len(),
            found_steps.len(),
            expected["versions"],
            found["versions"]
        ),
    })
}
