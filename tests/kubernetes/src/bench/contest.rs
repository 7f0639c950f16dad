//! One measurement: a control plane made ready, who is measured let loose on it, and what it took.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use phalanx_kubernetes::{Cluster, Failure, Identity, Part, Programs, Setup};

use super::observe::Observer;
use super::{Bench, Contestant, Load, world, writer};

/// What a measurement showed.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// From the first write to the last binding.
    pub writing: Duration,
    /// From the start of who was measured to each binding, ascending.
    pub waits: Vec<Duration>,
    /// Processor time of each that took part, from the start to the last binding.
    pub used: BTreeMap<&'static str, Duration>,
    /// What `/metrics` of Phalanx said at the end.
    pub metrics: String,
}

/// Who is measured, as a process; it ends with the control plane.
#[derive(Debug, Default)]
struct Measured {
    process: Option<u32>,
    metrics: Option<u16>,
}

pub(super) async fn contest(
    programs: &Programs,
    bench: &Bench,
    load: Load,
    contestant: Contestant,
) -> Result<Outcome, Failure> {
    let (gates, apis) = match load {
        Load::Plain | Load::Claims => (Vec::new(), Vec::new()),
        Load::Gangs => (vec!["GenericWorkload".to_owned()], vec![world::SCHEDULING.to_owned()]),
    };
    let setup = Setup { gates, apis, ..Setup::default() };
    let mut cluster = Cluster::start(programs.clone(), setup).await?;
    let admin = cluster.client(Identity::Admin).await?;
    cluster.apply(&root().join("deploy"))?;
    let kubeconfig = cluster.account(&admin, "phalanx-system", "phalanx").await?;
    let scheduler = match contestant {
        Contestant::KubeScheduler => "default-scheduler",
        Contestant::Phalanx | Contestant::Writer => "phalanx",
    };
    world::put(&admin, load, (bench.nodes, bench.pods), scheduler).await?;
    let observer = Observer::start(&admin);
    // What was created is shown to it first, and the server comes to rest.
    tokio::time::sleep(Duration::from_secs(2)).await;
    observer.begin();

    let mut used = usage(&cluster, None);
    let began = Instant::now();
    let (mut measured, mut writes) = (Measured::default(), None);
    match contestant {
        Contestant::KubeScheduler => cluster.start_scheduler()?,
        Contestant::Phalanx => measured = phalanx(&cluster, bench, &kubeconfig)?,
        Contestant::Writer => {
            let (client, at_once) = (cluster.client_of(&kubeconfig).await?, bench.writes.into());
            writes = Some(tokio::spawn(writer::run(client, load, bench.nodes, at_once)));
        }
    }
    let (first, bound) = observer.until(usize::try_from(bench.pods).unwrap_or(usize::MAX)).await?;
    for (name, time) in usage(&cluster, measured.process) {
        let before = used.entry(name).or_default();
        *before = time.saturating_sub(*before);
    }
    // What is left to be told is no part of it; what has failed is.
    if let Some(writes) = writes
        && let Ok(written) = writes.await
    {
        written?;
    }
    let metrics = match measured.metrics {
        Some(port) => page(port, "/metrics").await,
        None => String::new(),
    };
    let mut waits: Vec<Duration> = bound.iter().map(|at| *at - began).collect();
    waits.sort_unstable();
    let writing = waits.last().copied().unwrap_or_default().saturating_sub(first - began);
    Ok(Outcome { writing, waits, used, metrics })
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Starts the controller with the rights of its service account.
fn phalanx(cluster: &Cluster, bench: &Bench, kubeconfig: &Path) -> Result<Measured, Failure> {
    let port = phalanx_kubernetes::free_port();
    let log = cluster.folder().join("phalanx.log");
    let failed = |source| Failure::Io { what: "The log can't be written".to_owned(), source };
    let mut command = Command::new(&bench.phalanx);
    command.arg("controller").arg("--kubeconfig").arg(kubeconfig);
    command.arg(format!("--listen=127.0.0.1:{port}")).arg(format!("--writes={}", bench.writes));
    // Nothing runs here: what is bound is not to be released.
    command.arg("--start-within=3600").arg("--snapshots").arg(cluster.folder());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(File::create(log).map_err(failed)?);
    let child = cluster.spawn(&mut command)?;
    Ok(Measured { process: Some(child.id()), metrics: Some(port) })
}

/// Processor time so far of the server, the store, and who is measured.
fn usage(cluster: &Cluster, measured: Option<u32>) -> BTreeMap<&'static str, Duration> {
    let mut used = BTreeMap::new();
    for (part, process) in cluster.processes() {
        match part {
            Part::Etcd | Part::ApiServer | Part::Scheduler | Part::ControllerManager => {
                used.insert(part.as_str(), processor_time(process));
            }
            Part::Kwok => {}
        }
    }
    used.extend(measured.map(|process| ("phalanx", processor_time(process))));
    used
}

/// Processor time of a process (Linux): none where it is gone.
fn processor_time(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Its name, in brackets, may hold blanks. Times are the 14th and 15th field, in hundredths.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let hundredths: u64 =
        fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(hundredths * 10)
}

/// A page that the controller serves; empty where it does not answer.
async fn page(port: u16, path: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let asked = async {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    asked.await.unwrap_or_default()
}
