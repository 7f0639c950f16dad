//! The parts of a control plane, and the command line of each.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::audit;
use crate::failure::Failure;
use crate::identity::{Identity, files};

/// A part of a control plane; its text is the name of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers that make claims from templates and pods from Jobs, and that clean up.
    ControllerManager,
    /// The scheduler of Kubernetes.
    Scheduler,
    /// What plays the kubelets of all nodes.
    Kwok,
}

impl Part {
    /// Each, in the order in which they are started.
    pub const ALL: [Self; 5] =
        [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Kwok];

    /// The name of its program.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Controllers that the tests need. The one for a node's life is left out: it would taint each node
/// whose kubelet says nothing.
const CONTROLLERS: &str = "resourceclaim-controller,job-controller,garbage-collector-controller,\
                           namespace-controller";

/// One would ask for a service account in each namespace before the first pod; the other taints each
/// new node, and only the controller for a node's life would take that away.
const NOT_ADMITTING: &str = "ServiceAccount,TaintNodesByCondition";

/// Requests a second that clients of the API server may make: never what a test waits for.
const QPS: u32 = 2_000;
const BURST: u32 = 4_000;

/// What kwok does with nodes and bound pods.
const STAGES: &str = include_str!("../stages/stages.yaml");

/// Where the parts of one control plane keep their files and listen.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) etcd: u16,
    pub(crate) etcd_peers: u16,
    pub(crate) api_server: u16,
    /// `Gate=true,…`, of every part.
    pub(crate) gates: String,
    /// `group/version=true,…`: what the server serves beside its defaults.
    pub(crate) apis: String,
    /// Whether the server writes down what is asked of it.
    pub(crate) audits: bool,
}

impl Place {
    /// The arguments of a part. Files that it reads are written first.
    pub(crate) fn arguments(&self, part: Part) -> Result<Vec<String>, Failure> {
        let mut arguments = match part {
            Part::Etcd => self.etcd(),
            Part::ApiServer => self.api_server()?,
            Part::ControllerManager => self.controller_manager(),
            Part::Scheduler => self.scheduler()?,
            Part::Kwok => self.kwok()?,
        };
        let has_gates = match part {
            Part::ApiServer | Part::ControllerManager | Part::Scheduler => true,
            Part::Etcd | Part::Kwok => false,
        };
        if has_gates && !self.gates.is_empty() {
            arguments.push(format!("--feature-gates={}", self.gates));
        }
        Ok(arguments)
    }

    fn etcd(&self) -> Vec<String> {
        let clients = format!("http://127.0.0.1:{}", self.etcd);
        let peers = format!("http://127.0.0.1:{}", self.etcd_peers);
        vec![
            format!("--data-dir={}", self.file("etcd")),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            // What is written need not outlive the machine.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }

    fn api_server(&self) -> Result<Vec<String>, Failure> {
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd),
            format!("--secure-port={}", self.api_server),
            "--bind-address=127.0.0.1".to_owned(),
            // Kept for documentation: loopback is refused here, and a machine may have no other.
            "--advertise-address=192.0.2.1".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--tls-cert-file={}", self.file(files::CERTIFICATE)),
            format!("--tls-private-key-file={}", self.file(files::KEY)),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.file(files::ACCOUNTS_PUBLIC)),
            format!("--service-account-signing-key-file={}", self.file(files::ACCOUNTS_KEY)),
            format!("--token-auth-file={}", self.file(files::TOKENS)),
            "--authorization-mode=RBAC".to_owned(),
            format!("--disable-admission-plugins={NOT_ADMITTING}"),
        ];
        if !self.apis.is_empty() {
            arguments.push(format!("--runtime-config={}", self.apis));
        }
        if self.audits {
            let policy = self.put("audit.json", &audit::policy().to_string())?;
            arguments.push(format!("--audit-policy-file={policy}"));
            arguments.push(format!("--audit-log-path={}", self.audit_log().display()));
        }
        Ok(arguments)
    }

    fn controller_manager(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.kubeconfig(Identity::Admin)),
            format!("--controllers={CONTROLLERS}"),
            format!("--service-account-private-key-file={}", self.file(files::ACCOUNTS_KEY)),
            "--leader-elect=false".to_owned(),
            format!("--kube-api-qps={QPS}"),
            format!("--kube-api-burst={BURST}"),
            "--secure-port=0".to_owned(),
        ]
    }

    fn scheduler(&self) -> Result<Vec<String>, Failure> {
        let config = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": self.kubeconfig(Identity::KubeScheduler),
                "qps": QPS,
                "burst": BURST,
            },
            "leaderElection": {"leaderElect": false},
        });
        let config = self.put("scheduler.json", &config.to_string())?;
        Ok(vec![format!("--config={config}"), "--secure-port=0".to_owned()])
    }

    fn kwok(&self) -> Result<Vec<String>, Failure> {
        let stages = self.put("stages.yaml", STAGES)?;
        Ok(vec![
            format!("--kubeconfig={}", self.kubeconfig(Identity::Admin)),
            format!("--config={stages}"),
            "--manage-all-nodes=true".to_owned(),
        ])
    }

    fn kubeconfig(&self, identity: Identity) -> String {
        identity.kubeconfig(&self.folder).display().to_string()
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn put(&self, name: &str, text: &str) -> Result<String, Failure> {
        let path = self.file(name);
        fs::write(&path, text).map_err(Failure::io(format!("{path} can't be written")))?;
        Ok(path)
    }

    /// Where a part writes its log.
    pub(crate) fn log(&self, part: Part) -> PathBuf {
        self.folder.join(format!("{part}.log"))
    }

    /// Where the API server writes down what is asked of it.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// The last lines of a part's log.
    pub(crate) fn end_of_log(&self, part: Part) -> String {
        const LINES: usize = 15;
        let text = read(&self.log(part));
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

/// A log, however far it was written: a program that is killed ends within a character.
fn read(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
