//! A kind followed at a server that plays a script: one request a connection, in the order in which they
//! come.

use std::collections::VecDeque;

use kube::Config;
use phalanx_objects::Kind;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// What is asked for (a part of the path), and the answer: its code and its text, after which the
/// connection ends.
type Scene = (&'static str, u16, String);

/// A client of a server that plays these; what comes after them is not answered.
async fn play(scenes: Vec<Scene>) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let uri = format!("http://{}", listener.local_addr().expect("a port"));
    tokio::spawn(async move {
        let mut scenes = VecDeque::from(scenes);
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).await.expect("a request");
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let Some((wanted, code, text)) = scenes.pop_front() else {
                std::future::pending::<()>().await;
                return;
            };
            // What is asked otherwise gets no answer, and the test waits in vain for its event.
            assert!(
                head.lines().next().is_some_and(|line| line.contains(wanted)),
                "{wanted}: {head}"
            );
            let answer = format!("HTTP/1.1 {code} X\r\nConnection: close\r\n\r\n{text}");
            stream.write_all(answer.as_bytes()).await.expect("it is taken");
        }
    });
    let config = Config::new(uri.parse().expect("an address"));
    Client::try_from(config).expect("a client")
}

fn pod(name: &str, version: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "d", "uid": name, "resourceVersion": version.to_string()}})
}

fn page(version: u32, rest: &str, pods: &[Value]) -> String {
    let metadata = json!({"resourceVersion": version.to_string(), "continue": rest});
    json!({"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": pods}).to_string()
}

fn refusal(code: u16) -> String {
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "no", "code": code})
        .to_string()
}

fn lines(events: &[(&str, Value)]) -> String {
    let line = |(what, object): &(&str, Value)| json!({"type": what, "object": object}).to_string();
    events.iter().map(|event| line(event) + "\n").collect()
}

fn bookmark(version: u32, is_listed: bool) -> (&'static str, Value) {
    let annotations = match is_listed {
        true => json!({"k8s.io/initial-events-end": "true"}),
        false => json!({}),
    };
    let metadata = json!({"resourceVersion": version.to_string(), "annotations": annotations});
    ("BOOKMARK", json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}))
}

fn pods() -> Board {
    let served = Served { api_version: "v1".to_owned(), plural: "pods".to_owned() };
    Board::from([(Kind::Pod, served)])
}

fn word(event: &Event) -> String {
    match event {
        Event::Listing(_) => "listing".to_owned(),
        Event::Found(object) => format!("found {}", object.name()),
        Event::Listed { version, .. } => format!("listed {version}"),
        Event::Applied(object) => format!("applied {}", object.name()),
        Event::Deleted(gone) => format!("gone {}", gone.object.name),
        Event::Passed { version, .. } => format!("passed {version}"),
        Event::Answered(..) => "answered".to_owned(),
    }
}

/// The first events of pods at that server, as many as are expected.
async fn expect(client: Client, board: watch::Receiver<Board>, expected: &[&str]) {
    let (events, mut told) = mpsc::channel(100);
    let metrics = Metrics::new();
    tokio::spawn(Follower { client, kind: Kind::Pod, board, events, metrics }.follow());
    let mut words = Vec::new();
    while words.len() < expected.len() {
        let next = tokio::time::timeout(Duration::from_secs(20), told.recv()).await;
        let event = next.unwrap_or_else(|_| panic!("after {words:?} nothing came"));
        words.push(word(&event.expect("it follows on")));
    }
    assert_eq!(words, expected);
}

#[tokio::test]
async fn a_list_that_can_not_be_streamed_comes_in_pages_and_again_after_410() {
    let watched = lines(&[("ADDED", pod("c", 7)), bookmark(9, false), ("DELETED", pod("a", 10))]);
    let client = play(vec![
        ("sendInitialEvents=true", 422, refusal(422)),
        ("/api/v1/pods?limit=500 ", 200, page(5, "next", &[pod("a", 1)])),
        ("continue=next", 200, page(5, "", &[pod("b", 2)])),
        ("resourceVersion=5 ", 200, watched),
        // It ended as watches do: it goes on from where it was.
        ("resourceVersion=10 ", 410, refusal(410)),
        ("/api/v1/pods?limit=500 ", 200, page(20, "", &[pod("c", 7)])),
        ("resourceVersion=20 ", 200, lines(&[bookmark(21, false)])),
    ]);
    let expected = [
        "listing",
        "found a",
        "found b",
        "listed 5",
        "applied c",
        "passed 9",
        "gone a",
        "listing",
        "found c",
        "listed 20",
        "passed 21",
    ];
    let (_board, board) = watch::channel(pods());
    expect(client.await, board, &expected).await;
}

#[tokio::test]
async fn a_list_is_streamed_and_an_error_in_the_watch_begins_it_anew() {
    let error = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    let first =
        [("ADDED", pod("a", 3)), bookmark(4, true), ("MODIFIED", pod("a", 6)), ("ERROR", error)];
    let client = play(vec![
        // Cut off in the midst of it.
        ("sendInitialEvents=true", 200, lines(&[("ADDED", pod("a", 3))])),
        ("sendInitialEvents=true", 200, lines(&first)),
        ("sendInitialEvents=true", 200, lines(&[bookmark(8, true)])),
    ]);
    let expected = [
        "listing",
        "found a",
        "listing",
        "found a",
        "listed 4",
        "applied a",
        "listing",
        "listed 8",
    ];
    let (_board, board) = watch::channel(pods());
    expect(client.await, board, &expected).await;
}

#[tokio::test]
async fn a_server_that_fails_is_asked_again() {
    let client = play(vec![
        ("sendInitialEvents=true", 503, refusal(503)),
        // What it will serve it does not know yet.
        ("sendInitialEvents=true", 404, "404 page not found".to_owned()),
        ("sendInitialEvents=true", 200, lines(&[bookmark(4, true)])),
        ("resourceVersion=4 ", 500, refusal(500)),
        ("resourceVersion=4 ", 200, lines(&[("ADDED", pod("a", 5))])),
    ]);
    let (_board, board) = watch::channel(pods());
    expect(client.await, board, &["listing", "listed 4", "applied a"]).await;
}

#[tokio::test]
async fn a_kind_that_is_served_later_is_listed_then() {
    let client = play(vec![("sendInitialEvents=true", 200, lines(&[bookmark(4, true)]))]);
    let (told, board) = watch::channel(Board::new());
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        told.send_replace(pods());
        std::future::pending::<()>().await;
    });
    expect(client.await, board, &["listing", "listed ", "listing", "listed 4"]).await;
}
