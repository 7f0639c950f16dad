//! The built command as a process, and the cluster made ready for it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use kube::Client;
use kube::api::ListParams;
use phalanx_kubernetes::{Cluster, Failure, Identity, until};
use serde_json::Value;

use crate::board::{api, documents};

const DEPLOYMENT: &str = include_str!("../../../../../deploy/deployment.yaml");

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The built command: it lies beside the tests' own folder.
pub(crate) fn phalanx() -> Command {
    let tests = std::env::current_exe().expect("the program of the tests");
    let program = tests.ancestors().nth(2).expect("the folder of the build").join("phalanx");
    assert!(program.is_file(), "{} is not built: cargo build -p phalanx-cli", program.display());
    Command::new(program)
}

/// Applies a folder of deploy/ as the guide says.
pub(crate) fn apply(cluster: &Cluster, folder: &str) {
    cluster.apply(&root().join(folder)).unwrap_or_else(|failure| panic!("{failure}"));
}

/// A cluster in which deploy/ was applied, and our own objects are served.
pub(crate) async fn deployed(cluster: &Cluster) -> Result<Client, Failure> {
    apply(cluster, "deploy");
    let admin = cluster.client(Identity::Admin).await?;
    for kind in ["Placement", "NodeTopology"] {
        let ours = api(&admin, "phalanx.dev/v1alpha1", kind, "");
        until("our own objects are served", async || {
            Ok(ours.list(&ListParams::default()).await.ok().map(|_| ()))
        })
        .await?;
    }
    Ok(admin)
}

/// The kubeconfig of the service account that deploy/ makes.
pub(crate) async fn service_account(cluster: &Cluster, admin: &Client) -> PathBuf {
    let made = cluster.account(admin, "phalanx-system", "phalanx").await;
    made.unwrap_or_else(|failure| panic!("{failure}"))
}

/// A controller that runs.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
    port: u16,
}

impl Running {
    /// Starts it with the Deployment's arguments and the rights of its account, and waits until it is ready.
    pub(crate) async fn start(cluster: &Cluster, admin: &Client) -> Result<Self, Failure> {
        Self::start_with(cluster, admin, &[]).await
    }

    /// As [`start`](Self::start), with more arguments.
    pub(crate) async fn start_with(
        cluster: &Cluster,
        admin: &Client,
        more: &[&str],
    ) -> Result<Self, Failure> {
        let kubeconfig = service_account(cluster, admin).await;
        Self::start_by(cluster, &kubeconfig, more).await
    }

    /// The same for whom the kubeconfig names.
    pub(crate) async fn start_by(
        cluster: &Cluster,
        kubeconfig: &Path,
        more: &[&str],
    ) -> Result<Self, Failure> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr();
        let port = port.expect("a port").port();
        let log = cluster.folder().join(format!("phalanx-{port}.log"));
        let mut command = phalanx();
        command.args(arguments()).args(more).arg("--kubeconfig").arg(kubeconfig);
        command.arg(format!("--listen=127.0.0.1:{port}"));
        command.arg("--snapshots").arg(cluster.folder());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&log).expect("a file for its log"));
        let mut running = Self { child: cluster.spawn(&mut command)?, log, port };
        until("the controller is ready", async || {
            running.still_runs();
            Ok((running.page("/readyz").await.0 == 200).then_some(()))
        })
        .await?;
        Ok(running)
    }

    fn still_runs(&mut self) {
        let ended = self.child.try_wait().expect("it can be looked after");
        assert!(ended.is_none(), "it has ended: {}", self.log());
    }

    /// A page that it serves: the code and the text.
    pub(crate) async fn page(&self, path: &str) -> (u16, String) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let asked = async {
            let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await?;
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            std::io::Result::Ok(answer)
        };
        // Before it listens there is no answer.
        let answer = asked.await.unwrap_or_default();
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        (code, answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned())
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().expect("kill starts");
        assert!(asked.success());
        self.child.wait().expect("it can be waited for")
    }

    /// Nothing was asked that the shipped role does not allow.
    pub(crate) fn assert_rights_suffice(&self) {
        let log = self.log();
        let refused = log.lines().find(|line| {
            ["forbidden", "code 403", "\"code\":403"].iter().any(|word| line.contains(word))
        });
        assert_eq!(refused, None, "{log}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let end = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default();
            let _ = std::io::Write::write_all(&mut std::io::stderr(), end.join("\n").as_bytes());
        }
    }
}

/// The arguments of the Deployment, but for where it listens and keeps files.
fn arguments() -> Vec<String> {
    let all = documents(DEPLOYMENT);
    let arguments =
        all[0].pointer("/spec/template/spec/containers/0/args").and_then(Value::as_array);
    let arguments = arguments.expect("arguments").iter().filter_map(Value::as_str);
    let elsewhere = |a: &&str| !a.starts_with("--listen") && !a.starts_with("--snapshots");
    let arguments: Vec<String> = arguments.filter(elsewhere).map(str::to_owned).collect();
    assert_eq!(arguments.first().map(String::as_str), Some("controller"));
    arguments
}
