//! A control plane that runs: its parts started, waited for and ended.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use k8s_openapi::api::core::v1::Namespace;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tempfile::TempDir;

use crate::failure::Failure;
use crate::guard::Guard;
use crate::identity::{self, Identity};
use crate::kubernetes::Kubernetes;
use crate::parts::{Part, Place};
use crate::ports;
use crate::programs::Programs;
use crate::until::until;

/// What a control plane is to be like.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Feature gates that are switched on in every part, by their names.
    pub gates: Vec<String>,
    /// Group and version of APIs that are served beside the defaults.
    pub apis: Vec<String>,
    /// Whether nodes are ready and bound pods run (kwok).
    pub kubelets: bool,
}

/// A control plane of a test: etcd, the API server and its controllers, and what was asked for beside
/// them. It ends when it is dropped, and with the process at the latest. When a test fails, its folder
/// with the logs stays and is named.
#[derive(Debug)]
pub struct Cluster {
    programs: Programs,
    place: Place,
    running: Vec<Running>,
    /// Whether what was written is worth a look although no test fails.
    failed: bool,
    // Dropped in this order, after the parts have ended.
    guard: Guard,
    folder: Option<TempDir>,
}

#[derive(Debug)]
struct Running {
    part: Part,
    child: Child,
}

impl Cluster {
    /// Runs a test on a control plane of the version that this run is about. Where there are no
    /// programs that is said aloud, and the test is left out.
    ///
    /// # Panics
    /// When the control plane does not start, when the test fails, and when a part has ended by itself
    /// meanwhile: with the reason, and with the folder of the logs.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn test(setup: Setup, test: impl AsyncFnOnce(&mut Self) -> Result<(), Failure>) {
        let tested = async {
            let Some(programs) = Programs::or_left_out(Kubernetes::of_this_run())? else {
                return Ok(());
            };
            let mut cluster = Self::start(programs, setup).await?;
            let tested = test(&mut cluster).await.and_then(|()| cluster.still_running());
            cluster.failed = tested.is_err();
            tested
        };
        if let Err(failure) = tested.await {
            panic!("{failure}");
        }
    }

    /// Starts one and waits until it can be asked.
    ///
    /// # Errors
    /// When a program ends at once or is not ready in time; the folder with the logs stays.
    pub async fn start(programs: Programs, setup: Setup) -> Result<Self, Failure> {
        let mut cluster = Self::empty(programs, &setup)?;
        let started = cluster.start_parts(&setup).await;
        cluster.failed = started.is_err();
        started.map(|()| cluster)
    }

    fn empty(programs: Programs, setup: &Setup) -> Result<Self, Failure> {
        let made = tempfile::Builder::new().prefix("phalanx-kubernetes-").tempdir();
        let folder = made.map_err(Failure::io("A temporary folder can't be made"))?;
        let on = |names: &[String]| {
            names.iter().map(|name| format!("{name}=true")).collect::<Vec<_>>().join(",")
        };
        let place = Place {
            folder: folder.path().to_owned(),
            etcd: ports::free(),
            etcd_peers: ports::free(),
            api_server: ports::free(),
            gates: on(&setup.gates),
            apis: on(&setup.apis),
        };
        identity::write(&place.folder, place.api_server)?;
        let guard = Guard::start()?;
        let (running, folder) = (Vec::new(), Some(folder));
        Ok(Self { programs, place, running, failed: false, guard, folder })
    }

    async fn start_parts(&mut self, setup: &Setup) -> Result<(), Failure> {
        self.start_part(Part::Etcd)?;
        self.start_part(Part::ApiServer)?;
        self.ready().await?;
        self.start_part(Part::ControllerManager)?;
        if setup.kubelets {
            self.start_part(Part::Kwok)?;
        }
        Ok(())
    }

    /// Starts kube-scheduler. It decides at once about every pod that has no other scheduler's name.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start_scheduler(&mut self) -> Result<(), Failure> {
        self.start_part(Part::Scheduler)
    }

    /// Kills a part and starts it again: with its files, at its port.
    ///
    /// # Errors
    /// When it can't be started, or is not ready in time.
    pub async fn restart(&mut self, part: Part) -> Result<(), Failure> {
        let (ends, runs) =
            std::mem::take(&mut self.running).into_iter().partition(|r| r.part == part);
        self.running = runs;
        for Running { mut child, .. } in ends {
            let failed = || Failure::io(format!("{part} could not be ended"));
            child.kill().map_err(failed())?;
            child.wait().map_err(failed())?;
        }
        self.start_part(part)?;
        self.ready().await
    }

    /// Starts a program of the test, which ends with the control plane at the latest.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, Failure> {
        self.guard.guard(command);
        let name = command.get_program().display().to_string();
        command.spawn().map_err(Failure::io(format!("{name} could not be started")))
    }

    /// kubectl, for the administrator.
    #[must_use]
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(self.programs.folder().join("kubectl"));
        command.arg("--kubeconfig").arg(self.kubeconfig(Identity::Admin));
        command
    }

    fn start_part(&mut self, part: Part) -> Result<(), Failure> {
        let failed = || Failure::io(format!("{part} could not be started"));
        let log = File::create(self.place.log(part)).map_err(failed())?;
        let mut command = Command::new(self.programs.of(part));
        command.args(self.place.arguments(part)?).current_dir(&self.place.folder);
        command.stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(failed())?).stderr(log);
        self.guard.guard(&mut command);
        let child = command.spawn().map_err(failed())?;
        self.running.push(Running { part, child });
        Ok(())
    }

    /// Waits until the server says that it is ready and has made its first namespaces.
    async fn ready(&mut self) -> Result<(), Failure> {
        let client = self.client(Identity::Admin).await?;
        let namespaces: Api<Namespace> = Api::all(client);
        until("the API server answers", async || {
            self.still_running()?;
            // Until it listens it refuses, and until its roles are made it forbids.
            let Ok(Some(_)) = namespaces.get_opt("default").await else { return Ok(None) };
            Ok(Some(()))
        })
        .await?;
        let scheduler = Identity::KubeScheduler;
        let namespaces: Api<Namespace> = Api::all(self.client(scheduler).await?);
        until("the API server has made its roles", async || {
            self.still_running()?;
            Ok(namespaces.list(&kube::api::ListParams::default()).await.ok().map(|_| ()))
        })
        .await
    }

    /// Whether every part runs that was started.
    ///
    /// # Errors
    /// [`Failure::Ended`] with the end of the log of the first that has ended.
    pub fn still_running(&mut self) -> Result<(), Failure> {
        for Running { part, child } in &mut self.running {
            let asked = child.try_wait();
            let ended: Option<ExitStatus> =
                asked.map_err(Failure::io(format!("{part} can't be looked after")))?;
            if let Some(status) = ended {
                let log = self.place.end_of_log(*part);
                return Err(Failure::Ended { part: *part, status, log });
            }
        }
        Ok(())
    }

    /// A client of the API server.
    ///
    /// # Errors
    /// When the client does not take the kubeconfig.
    pub async fn client(&self, identity: Identity) -> Result<Client, Failure> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig(identity))?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(Client::try_from(config)?)
    }

    /// The kubeconfig of an identity.
    #[must_use]
    pub fn kubeconfig(&self, identity: Identity) -> PathBuf {
        identity.kubeconfig(&self.place.folder)
    }

    /// The folder with the logs and all that the parts keep.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.place.folder
    }

    /// Names the logs, and shows how each ends.
    #[expect(clippy::print_stderr, reason = "a test runner shows it with the test that fails")]
    fn show_logs(&self) {
        let mut text = format!("The control plane's folder is {}.\n", self.folder().display());
        for Running { part, .. } in &self.running {
            text.push_str(&format!(
                "The log of {part} ends so:\n{}\n",
                self.place.end_of_log(*part)
            ));
        }
        eprint!("{text}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Those who ask end before who is asked, so that no log ends in complaints.
        for Running { child, .. } in self.running.iter_mut().rev() {
            // It may have ended by itself; either way it is waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
        if self.failed || std::thread::panicking() {
            self.show_logs();
            self.folder.take().map(TempDir::keep);
        }
    }
}
