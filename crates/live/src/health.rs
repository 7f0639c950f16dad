//! Answers `/healthz`, `/readyz` and `/metrics`: three pages of text, by HTTP/1 without anything kept open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::metrics::Metrics;

/// Longest head of a request that is looked at, in bytes.
const HEAD: usize = 4096;
/// How long one may take to ask and to take the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Who may ask at once.
const AT_ONCE: usize = 16;

/// How the process fares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    alive: Arc<AtomicBool>,
    ready: Arc<AtomicBool>,
}

impl Health {
    /// Whether the controller runs.
    pub(crate) fn set_alive(&self, alive: bool) {
        self.alive.store(alive, Ordering::Relaxed);
    }

    /// Whether all that a decision needs is known.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }
}

/// Answers who asks, for ever.
pub(crate) async fn serve(listener: TcpListener, health: Health, metrics: Metrics) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        // It is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, or the like: it passes.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (health, metrics) = (health.clone(), metrics.clone());
        tokio::spawn(async move {
            // Who asks and goes away has no answer; that is his concern.
            let _ = timeout(PATIENCE, answer(stream, &health, &metrics)).await;
            drop(place);
        });
    }
}

async fn answer(mut stream: TcpStream, health: &Health, metrics: &Metrics) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD {
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            length => head.extend_from_slice(part.get(..length).unwrap_or_default()),
        }
    }
    let (code, kind, body) = page(&head, health, metrics);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn page(head: &[u8], health: &Health, metrics: &Metrics) -> (&'static str, &'static str, String) {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let is = |flag: &AtomicBool, what: &str| match flag.load(Ordering::Relaxed) {
        true => ("200 OK", TEXT, "ok\n".to_owned()),
        false => ("503 Service Unavailable", TEXT, format!("{what}\n")),
    };
    match (method, path) {
        ("GET", "/healthz" | "/livez") => is(&health.alive, "The controller does not run."),
        ("GET", "/readyz") => is(&health.ready, "Not every kind of object was listed yet."),
        ("GET", "/metrics") => ("200 OK", METRICS, metrics.text()),
        ("GET", _) => ("404 Not Found", TEXT, "There is no such page.\n".to_owned()),
        _ => ("405 Method Not Allowed", TEXT, "Only GET is answered.\n".to_owned()),
    }
}

/// Listens where it is asked to.
pub(crate) async fn listen(at: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(at).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(request: &str, health: &Health) -> &'static str {
        page(request.as_bytes(), health, &Metrics::new()).0
    }

    #[test]
    fn each_page_says_what_it_is_asked_for() {
        let health = Health::default();
        health.set_alive(true);
        assert_eq!(code("GET /healthz HTTP/1.1\r\n\r\n", &health), "200 OK");
        assert_eq!(
            code("GET /readyz?verbose HTTP/1.1\r\n\r\n", &health),
            "503 Service Unavailable"
        );
        health.set_ready(true);
        assert_eq!(code("GET /readyz?verbose HTTP/1.1\r\n\r\n", &health), "200 OK");
        assert_eq!(code("POST /metrics HTTP/1.1\r\n\r\n", &health), "405 Method Not Allowed");
        assert_eq!(code("nonsense", &health), "405 Method Not Allowed");
    }
}
