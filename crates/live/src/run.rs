//! The controller as a process: everything started, tied together, and ended in order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kube::Client;
use phalanx_cluster::Compat;
use phalanx_cluster::control::{ControlOptions, Controller, Event};
use phalanx_objects::Kind;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::access::{Access, Cluster};
use crate::carry::{Carrier, Parcel};
use crate::discover::{Board, discover};
use crate::failure::{Failure, cause};
use crate::health::{self, Health};
use crate::metrics::Metrics;
use crate::steer::Steering;
use crate::watch::Follower;

/// Events that may wait: watches are read no faster than they are taken in.
const EVENTS: usize = 16_384;
/// How often the server is asked what it serves: a CRD may come or go.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How long after that it is asked once more before something is thought gone.
const LOOK_TWICE: Duration = Duration::from_secs(15);
/// How long writes that are under way at the end are waited for. Kubernetes kills after 30 seconds.
const LAST_WRITES: Duration = Duration::from_secs(20);

/// What the controller is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub access: Access,
    /// The `spec.schedulerName` of the pods that it places.
    pub scheduler_name: String,
    /// Decides and writes nothing.
    pub shadow: bool,
    /// Feature gates of the cluster that are not as its version has them: `A=true,B=false`.
    pub feature_gates: String,
    /// Where health and metrics are answered; nowhere if none.
    pub listen: Option<SocketAddr>,
    /// Writes that may be under way together.
    pub writes_at_once: usize,
    /// Milliseconds that a gang may take from its first binding until all of it runs.
    pub start_within_millis: i64,
    /// Where a snapshot goes if a decision fails.
    pub snapshots: PathBuf,
}

/// A runtime with the threads that reading and writing need: deciding has one of its own.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let built = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    built.map_err(io("The runtime can't be started"))
}

fn io(what: &str) -> impl FnOnce(std::io::Error) -> Failure {
    let what = what.to_owned();
    move |source| Failure::Io { what, source }
}

/// Runs until it is told to stop (SIGTERM, SIGINT): then no more is begun, and what is under way is finished.
///
/// # Errors
/// When there is no way to the cluster at the start, or a decision fails.
pub fn run(options: Options) -> Result<(), Failure> {
    let runtime = runtime()?;
    let ended = runtime.block_on(follow(options, runtime.handle().clone()));
    // Watches are left as they are: the server finds out.
    runtime.shutdown_background();
    ended
}

async fn follow(options: Options, handle: Handle) -> Result<(), Failure> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(stop_on_signal(stop)?);
    let (health, metrics) = (Health::default(), Metrics::new());
    if let Some(at) = options.listen {
        let listener = listener(at).await?;
        tokio::spawn(health::serve(listener, health.clone(), metrics.clone()));
    }
    let cluster = Cluster::find(&options.access).await?;
    let control = control(&options, &cluster)?;
    let board = board(&cluster, &control.kinds).await?;
    say_start(&options, &cluster, &control, &board.borrow());
    let (events, waiting) = mpsc::channel::<Event>(EVENTS);
    for kind in control.kinds.iter().copied() {
        let follower = Follower {
            client: cluster.client.clone(),
            kind,
            board: board.clone(),
            events: events.clone(),
            metrics: metrics.clone(),
        };
        tokio::spawn(follower.follow());
    }
    let (parcels, given) = mpsc::unbounded_channel::<Parcel>();
    let carrier = Carrier {
        client: cluster.client,
        board,
        events,
        metrics: metrics.clone(),
        scheduler: Arc::from(options.scheduler_name.as_str()),
        instance: Arc::from(instance(&options.scheduler_name)),
        at_once: options.writes_at_once,
    };
    let carrying = tokio::spawn(carrier.carry(given));
    let steering = Steering {
        controller: Controller::new(control),
        events: waiting,
        parcels,
        stop: stopped,
        runtime: handle,
        health,
        metrics,
        snapshots: options.snapshots,
    };
    let ended = steer(steering).await;
    // With the thread the last sender of parcels is gone: carrying ends when all is answered.
    if timeout(LAST_WRITES, carrying).await.is_err() {
        tracing::warn!(
            "writes that were under way are not answered yet; a new start takes them up"
        );
    }
    tracing::info!("ended");
    ended
}

/// Steps on a thread of its own, for a decision may take long.
async fn steer(steering: Steering) -> Result<(), Failure> {
    let (done, ended) = oneshot::channel();
    let started = thread::Builder::new().name("controller".to_owned()).spawn(move || {
        // Nobody asks any more if the process ends already.
        let _ = done.send(steering.steer());
    });
    started.map_err(io("The controller's thread can't be started"))?;
    ended.await.unwrap_or_else(|_| {
        let (message, snapshot) = ("its thread ended".to_owned(), "the log".to_owned());
        Err(Failure::Panicked { message, snapshot })
    })
}

fn stop_on_signal(
    stop: watch::Sender<bool>,
) -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let on = |kind| signal(kind).map_err(io("Signals can't be listened to"));
    let (mut term, mut interrupt) = (on(SignalKind::terminate())?, on(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("told to stop; what is under way is finished");
        stop.send_replace(true);
        // A second time it ends at once, as whoever asks twice expects.
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(130);
    })
}

async fn listener(at: SocketAddr) -> Result<TcpListener, Failure> {
    health::listen(at).await.map_err(io(&format!("{at} can't be listened at")))
}

fn control(options: &Options, cluster: &Cluster) -> Result<ControlOptions, Failure> {
    let compat = Compat::new(cluster.version()?).with_gates(&options.feature_gates)?;
    for warning in compat.warnings() {
        tracing::warn!("--feature-gates: {warning}");
    }
    Ok(ControlOptions {
        shadow: options.shadow,
        start_within_millis: options.start_within_millis,
        // The time at which a process began is higher than that of each before it.
        epoch: jiff::Timestamp::now().as_millisecond(),
        ..ControlOptions::new(&options.scheduler_name, compat)
    })
}

/// What is served, and asked again from time to time.
async fn board(cluster: &Cluster, kinds: &[Kind]) -> Result<watch::Receiver<Board>, Failure> {
    let board = discover(&cluster.client, kinds.iter().copied()).await.map_err(|source| {
        Failure::Server { server: cluster.server.clone(), what: "what it serves", source }
    })?;
    let (told, board) = watch::channel(board);
    tokio::spawn(look_again(cluster.client.clone(), kinds.to_vec(), told));
    Ok(board)
}

async fn look_again(client: Client, kinds: Vec<Kind>, told: watch::Sender<Board>) {
    while !told.is_closed() {
        sleep(LOOK_AGAIN).await;
        let before = told.borrow().clone();
        match look(&client, &kinds, &before).await {
            Ok(now) if now != before => {
                let differs = |kind: &&Kind| before.contains_key(kind) != now.contains_key(kind);
                for kind in kinds.iter().filter(differs) {
                    let is_served = now.contains_key(kind);
                    tracing::info!(%kind, is_served, "what is served has changed");
                }
                told.send_replace(now);
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(why = cause(&error), "it is not known what is served"),
        }
    }
}

/// What is served. A server that starts does not know each CRD at once: what it lacks is asked for again
/// before it is thought gone.
async fn look(client: &Client, kinds: &[Kind], before: &Board) -> Result<Board, kube::Error> {
    let mut now = discover(client, kinds.iter().copied()).await?;
    if before.keys().any(|kind| !now.contains_key(kind)) {
        sleep(LOOK_TWICE).await;
        now.extend(discover(client, kinds.iter().copied()).await?);
    }
    Ok(now)
}

fn say_start(options: &Options, cluster: &Cluster, control: &ControlOptions, board: &Board) {
    let (server, version) = (&cluster.server, &cluster.git_version);
    let rules = control.compat.version().as_str();
    let scheduler = &options.scheduler_name;
    let shadow = options.shadow;
    tracing::info!(server, version, rules, scheduler, shadow, "started");
    if !version.trim_start_matches('v').starts_with(rules) {
        tracing::warn!(
            "{version} is newer than the versions known here; the rules of {rules} hold"
        );
    }
    if !board.contains_key(&Kind::Placement) && !options.shadow {
        tracing::warn!(
            "The API server does not serve Placements, so groups that start whole can't be placed; apply \
             deploy/crds."
        );
    }
}

/// The name of this process in events: the pod's, else the machine's.
fn instance(scheduler: &str) -> String {
    let host = std::env::var("HOSTNAME").or_else(|_| {
        std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned())
    });
    format!("{scheduler}-{}", host.unwrap_or_else(|_| std::process::id().to_string()))
}
