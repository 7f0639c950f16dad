//! A proxy between the controller and the API server that counts writes and lets through no more than it is
//! told to.
//!
//! Writes pass one at a time, each answered before the next, so that after the n-th exactly n stand on the
//! server. Events are no part of the count: nothing is ever read from them, and they go by at any time. What
//! reads goes by as well. Requests are told apart on the wire: the controller speaks HTTP/1.1 with one
//! request at a time on a connection, and says how long each body is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use phalanx_kubernetes::Cluster;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::board::text;

/// What the controller knows of the last write when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It has the answer to it.
    Answered,
    /// The write stands, and the answer has not come back.
    Unheard,
    /// It has sent one more, which reaches the server only when another controller has begun.
    Late,
}

impl Moment {
    pub(crate) const ALL: [Self; 3] = [Self::Answered, Self::Unheard, Self::Late];
}

/// Where the writes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) after: usize,
    pub(crate) moment: Moment,
}

/// A proxy that listens, until the test's runtime ends.
#[derive(Debug)]
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    /// The way to the server through it.
    pub(crate) kubeconfig: PathBuf,
}

struct Shared {
    port: u16,
    connector: TlsConnector,
    tally: Mutex<Tally>,
    /// Whose write is under way.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Tally {
    /// Writes that the server has answered, and the first line of each.
    answered: Vec<String>,
    stop: Option<Stop>,
    /// The write that came first after the stop.
    held: Option<Vec<u8>>,
}

impl Tally {
    fn is_shut(&self) -> bool {
        self.stop.is_some_and(|stop| self.answered.len() >= stop.after)
    }
}

impl Proxy {
    /// Listens before the server of a kubeconfig, for the user of that kubeconfig.
    pub(crate) async fn before(cluster: &Cluster, kubeconfig: &Path) -> Self {
        let config = fs::read_to_string(kubeconfig).expect("a kubeconfig");
        let mut config: Value = serde_json::from_str(&config).expect("JSON");
        let server = config["clusters"][0]["cluster"].clone();
        let port = text(&server, "/server").rsplit(':').next().and_then(|port| port.parse().ok());
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(text(&server, "/certificate-authority"));
        roots.add(ca.expect("the server's CA")).expect("a certificate");
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let tls =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = tls.expect("versions").with_root_certificates(roots).with_no_client_auth();
        let shared = Arc::new(Shared {
            port: port.expect("a port"),
            connector: TlsConnector::from(Arc::new(tls)),
            tally: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        });

        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("a port").port();
        config["clusters"][0]["cluster"] = json!({"server": format!("http://127.0.0.1:{port}")});
        let kubeconfig = cluster.folder().join("proxy.kubeconfig");
        fs::write(&kubeconfig, config.to_string()).expect("it can be written");
        tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { shared, kubeconfig }
    }

    /// Counts from nothing, up to the stop if there is one.
    pub(crate) fn count(&self, stop: Option<Stop>) {
        *self.shared.tally() = Tally { stop, ..Tally::default() };
    }

    /// The writes that were answered since it counts.
    pub(crate) fn answered(&self) -> Vec<String> {
        self.shared.tally().answered.clone()
    }

    /// Whether nothing more is let through, and what is to be had by then has come.
    pub(crate) fn is_shut(&self) -> bool {
        let tally = self.shared.tally();
        let late = tally.stop.is_some_and(|stop| stop.moment == Moment::Late);
        tally.is_shut() && (!late || tally.held.is_some())
    }

    /// Lets everything through again. Answers the write that was held back, if one was.
    pub(crate) fn open(&self) -> Option<Vec<u8>> {
        let mut tally = self.shared.tally();
        let (stop, held) = (tally.stop.take(), tally.held.take());
        held.filter(|_| stop.is_some_and(|stop| stop.moment == Moment::Late))
    }

    /// Sends a write that was held back. What is answered goes to nobody: who asked is gone.
    pub(crate) async fn send(&self, request: &[u8]) {
        let mut server = self.shared.connect().await.expect("the server listens");
        server.write_all(request).await.expect("the server reads");
        let answered = server.read(&mut [0; 4096]).await.expect("an answer");
        assert!(answered > 0, "the server has answered");
    }
}

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().expect("nobody panics with it")
    }

    async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("127.0.0.1").map_err(io::Error::other)?;
        self.connector.connect(name, stream).await
    }

    /// A write is answered. Answers whether the controller is told.
    fn answer(&self, line: &str) -> bool {
        let mut tally = self.tally();
        tally.answered.push(line.to_owned());
        let unheard = tally.stop.is_some_and(|stop| stop.moment == Moment::Unheard);
        !(tally.is_shut() && unheard)
    }

    /// Whether a write ends here, which then is kept if it is the first.
    fn holds(&self, request: &[u8]) -> bool {
        let mut tally = self.tally();
        if !tally.is_shut() {
            return false;
        }
        tally.held.get_or_insert_with(|| request.to_vec());
        true
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        // One that breaks off is the end of that connection alone.
        tokio::spawn(async move { pass(client, &shared).await });
    }
}

/// Passes on what comes on one connection, request by request.
async fn pass(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut server = shared.connect().await?;
    let (asks, mut hears) = client.split();
    let mut asks = BufReader::new(asks);
    while let Some(request) = Request::read(&mut asks).await? {
        let turn = match request.is_counted() {
            true => Some(shared.turn.lock().await),
            false => None,
        };
        if turn.is_some() && shared.holds(&request.bytes) {
            return until_gone(&mut asks).await;
        }
        server.write_all(&request.bytes).await?;
        let mut answer = [0; 16 * 1024];
        let mut waits = turn;
        loop {
            let read = tokio::select! {
                read = server.read(&mut answer) => read?,
                // The next request: the answer to the last one has been read to its end.
                more = asks.fill_buf() => match more?.is_empty() {
                    true => return Ok(()),
                    false => break,
                },
            };
            let told = waits.take().is_none_or(|_| shared.answer(&request.line));
            if !told {
                return until_gone(&mut asks).await;
            }
            if read == 0 {
                return Ok(());
            }
            hears.write_all(answer.get(..read).unwrap_or_default()).await?;
        }
    }
    Ok(())
}

/// Answers nothing any more, until who asks is gone.
async fn until_gone(asks: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
    while !asks.fill_buf().await?.is_empty() {
        let read = asks.fill_buf().await?.len();
        asks.consume(read);
    }
    Ok(())
}

/// A request as it came.
struct Request {
    /// Method and path.
    line: String,
    bytes: Vec<u8>,
}

impl Request {
    /// The next one; none when the connection has ended.
    async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Self>> {
        let (mut bytes, mut length) = (Vec::new(), 0);
        loop {
            let start = bytes.len();
            if from.read_until(b'\n', &mut bytes).await? == 0 {
                return Ok(None);
            }
            let line =
                String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).to_lowercase();
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            assert!(!line.starts_with("transfer-encoding:"), "a body whose length is not said");
        }
        let first = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(first).trim_end_matches(" HTTP/1.1").to_owned();
        let head = bytes.len();
        bytes.resize(head + length, 0);
        from.read_exact(bytes.get_mut(head..).unwrap_or_default()).await?;
        Ok(Some(Self { line, bytes }))
    }

    fn is_counted(&self) -> bool {
        let (method, path) = self.line.split_once(' ').unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        matches!(method, "POST" | "PUT" | "PATCH" | "DELETE") && !path.ends_with("/events")
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("port", &self.port).finish_non_exhaustive()
    }
}
