//! A control plane that runs: its parts started, waited for and ended.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tempfile::TempDir;

use crate::audit::{self, Asked};
use crate::failure::Failure;
use crate::guard::Guard;
use crate::identity::{self, Identity};
use crate::kubernetes::Kubernetes;
use crate::parts::{Part, Place};
use crate::ports;
use crate::programs::Programs;
use crate::until::until;

/// The controller, as deploy/ runs it.
pub const CONTROLLER: &str = "system:serviceaccount:phalanx-system:phalanx";

/// What a control plane is to be like.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Feature gates that are switched on in every part, by their names; `Name=false` is off.
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
    /// From which byte on the audit log counts: while it starts, the server forbids what it allows later.
    audited_from: u64,
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
    /// programs that is said aloud, and the test is left out. What is asked of the server is written
    /// down.
    ///
    /// # Panics
    /// When the control plane does not start, when the test fails, when a part has ended by itself
    /// meanwhile, and when Phalanx asked for what its role does not allow: with the reason, and with the
    /// folder of the logs.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn test(setup: Setup, test: impl AsyncFnOnce(&mut Self) -> Result<(), Failure>) {
        let tested = async {
            let Some(programs) = Programs::or_left_out(Kubernetes::of_this_run())? else {
                return Ok(());
            };
            let mut cluster = Self::start_audited(programs, setup, true).await?;
            let tested = test(&mut cluster).await.and_then(|()| cluster.still_running());
            let tested = tested.and_then(|()| cluster.nothing_was_forbidden());
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
        Self::start_audited(programs, setup, false).await
    }

    async fn start_audited(
        programs: Programs,
        setup: Setup,
        audits: bool,
    ) -> Result<Self, Failure> {
        let mut cluster = Self::empty(programs, &setup, audits)?;
        let started = cluster.start_parts(&setup).await;
        cluster.failed = started.is_err();
        started.map(|()| cluster)
    }

    fn empty(programs: Programs, setup: &Setup, audits: bool) -> Result<Self, Failure> {
        let made = tempfile::Builder::new().prefix("phalanx-kubernetes-").tempdir();
        let folder = made.map_err(Failure::io("A temporary folder can't be made"))?;
        let on = |names: &[String]| {
            let on = |name: &String| match name.contains('=') {
                true => name.clone(),
                false => format!("{name}=true"),
            };
            names.iter().map(on).collect::<Vec<_>>().join(",")
        };
        let place = Place {
            folder: folder.path().to_owned(),
            etcd: ports::free(),
            etcd_peers: ports::free(),
            api_server: ports::free(),
            gates: on(&setup.gates),
            apis: on(&setup.apis),
            audits,
        };
        identity::write(&place.folder, place.api_server)?;
        let guard = Guard::start()?;
        let (running, folder) = (Vec::new(), Some(folder));
        let (failed, audited_from) = (false, 0);
        Ok(Self { programs, place, running, failed, audited_from, guard, folder })
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
        self.nothing_was_forbidden()?;
        let (ends, runs) =
            std::mem::take(&mut self.running).into_iter().partition(|r| r.part == part);
        self.running = runs;
        for Running { mut child, .. } in ends {
            let failed = || Failure::io(format!("{part} could not be ended"));
            child.kill().map_err(failed())?;
            child.wait().map_err(failed())?;
        }
        self.start_part(part)?;
        self.ready().await?;
        if self.place.audits {
            let failed = Failure::io("The audit log can't be looked at");
            self.audited_from = self.place.audit_log().metadata().map_err(failed)?.len();
        }
        Ok(())
    }

    /// What was asked of the API server about its resources so far, where a test runs on it.
    ///
    /// # Errors
    /// When its audit log can't be read.
    pub fn asked(&self) -> Result<Vec<Asked>, Failure> {
        if self.place.audits {
            audit::read(&self.place.audit_log(), self.audited_from)
        } else {
            Ok(Vec::new())
        }
    }

    /// Whether all that Phalanx asked for was allowed.
    ///
    /// # Errors
    /// [`Failure::Forbidden`] with the first that was not.
    fn nothing_was_forbidden(&self) -> Result<(), Failure> {
        let of_ours = |asked: &Asked| asked.user == CONTROLLER && asked.was_forbidden();
        match self.asked()?.into_iter().find(of_ours) {
            None => Ok(()),
            Some(Asked { user, verb, resource, .. }) => {
                Err(Failure::Forbidden { user, verb, resource })
            }
        }
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

    /// Applies a folder of manifests, as the administrator does with kubectl.
    ///
    /// # Errors
    /// When kubectl can't be started, or the server does not take them.
    pub fn apply(&self, folder: &Path) -> Result<(), Failure> {
        let mut kubectl = self.kubectl();
        kubectl.args(["apply", "--server-side", "-k"]).arg(folder);
        let done = kubectl.output().map_err(Failure::io("kubectl could not be started"))?;
        let said = || String::from_utf8_lossy(&done.stderr).into_owned();
        let failed = || Failure::Apply { folder: folder.to_owned(), said: said() };
        done.status.success().then_some(()).ok_or_else(failed)
    }

    /// The kubeconfig of a service account that is there.
    ///
    /// # Errors
    /// When the server gives it no token.
    pub async fn account(
        &self,
        admin: &Client,
        namespace: &str,
        name: &str,
    ) -> Result<PathBuf, Failure> {
        let accounts = Api::<ServiceAccount>::namespaced(admin.clone(), namespace);
        let params = PostParams::default();
        let token = accounts.create_token_request(name, &params, &TokenRequest::default()).await?;
        let token = token.status.and_then(|status| status.token).unwrap_or_default();
        let file = format!("{namespace}-{name}.kubeconfig");
        identity::write_kubeconfig(&self.place.folder, self.place.api_server, &file, &token)
    }

    /// The processes of its parts.
    #[must_use]
    pub fn processes(&self) -> Vec<(Part, u32)> {
        self.running.iter().map(|running| (running.part, running.child.id())).collect()
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
        self.client_of(&self.kubeconfig(identity)).await
    }

    /// A client of the API server, by a kubeconfig.
    ///
    /// # Errors
    /// When the client does not take the kubeconfig.
    pub async fn client_of(&self, kubeconfig: &Path) -> Result<Client, Failure> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        // What the server answers is what a test is about.
        config.default_retry = false;
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
