//! PodSecurity: what the level that a namespace enforces forbids of a pod, and what it demands.
//!
//! The rules are those of the Pod Security Standards, newest version (`pod-security-admission`), as
//! far as what is read of a pod tells: AppArmor, SELinux, sysctls, `procMount`, probes and Windows are
//! not looked at, nor are volumes of kinds that are not kept, such as `nfs`.

use phalanx_objects::core::{Container, PodSecurityContext, PodSpec, SeccompProfile};

use super::pod::containers;
use crate::compat::{Compat, Version};

/// The label of a namespace that names the level.
pub(crate) const ENFORCE_LABEL: &str = "pod-security.kubernetes.io/enforce";

/// Capabilities that a container may add at the level `baseline`.
const BASELINE: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The one that it may add at the level `restricted`.
const RESTRICTED: [&str; 1] = ["NET_BIND_SERVICE"];

/// What a namespace enforces; what enforces nothing has no level here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// What would lead to the node is forbidden.
    Baseline,
    /// Hardening is demanded as well.
    Restricted,
}

impl Level {
    /// The level of a label; none where it enforces nothing.
    pub(crate) fn parse(label: &str) -> Option<Self> {
        match label {
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }

    /// The label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// What a pod breaks of a level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Violations {
    /// What it has and may not have: `hostNetwork`, `the hostPath volume scratch`.
    pub(crate) forbidden: Vec<String>,
    /// What it lacks: `seccompProfile RuntimeDefault or Localhost (container c)`.
    pub(crate) demanded: Vec<String>,
}

/// What a pod breaks; none where it keeps the level.
pub(super) fn violations(level: Level, spec: &PodSpec, compat: &Compat) -> Option<Violations> {
    let mut broken = Violations::default();
    baseline(level, spec, &mut broken.forbidden);
    if level == Level::Restricted {
        restricted(spec, compat, &mut broken);
    }
    (broken != Violations::default()).then_some(broken)
}

fn baseline(level: Level, spec: &PodSpec, forbidden: &mut Vec<String>) {
    let host = [
        ("hostNetwork", spec.host_network),
        ("hostPID", spec.host_pid),
        ("hostIPC", spec.host_ipc),
    ];
    forbidden.extend(host.iter().filter(|(_, is)| *is).map(|(name, _)| (*name).to_owned()));
    let of_node = spec.volumes.of_node.iter();
    forbidden.extend(of_node.map(|volume| format!("the hostPath volume {}", volume.name)));
    let allowed: &[&str] = match level {
        Level::Baseline => &BASELINE,
        Level::Restricted => &RESTRICTED,
    };
    for container in containers(spec) {
        let Container { name, security_context, ports, .. } = container;
        if security_context.privileged {
            forbidden.push(format!("the privileged container {name}"));
        }
        let ports = ports.iter().map(|port| port.host_port).filter(|port| *port != 0);
        forbidden.extend(ports.map(|port| format!("the host port {port} of container {name}")));
        let added = security_context.capabilities.add.iter();
        let added = added.filter(|capability| !allowed.contains(&capability.as_str()));
        forbidden.extend(added.map(|one| format!("the capability {one} of container {name}")));
    }
}

fn restricted(spec: &PodSpec, compat: &Compat, broken: &mut Violations) {
    let disks = spec.volumes.placed.iter();
    let disks = disks.filter(|v| v.persistent_volume_claim.is_none() && v.ephemeral.is_none());
    broken.forbidden.extend(disks.map(|volume| {
        format!("the volume {}, which is neither a claim nor made for the pod", volume.name)
    }));
    // Root in a user namespace is nobody outside it.
    let own_users = spec.host_users == Some(false) && compat.version() >= Version::V1_35;
    let pod = &spec.security_context;
    for container in containers(spec) {
        let own = &container.security_context;
        let mut demand = |what: &str| {
            broken.demanded.push(format!("{what} (container {})", container.name));
        };
        if own.allow_privilege_escalation != Some(false) {
            demand("allowPrivilegeEscalation: false");
        }
        if !own.capabilities.drop.iter().any(|capability| capability == "ALL") {
            demand("capabilities.drop: [ALL]");
        }
        if !own_users && !is_no_root(pod, own.run_as_non_root) {
            demand("runAsNonRoot: true");
        }
        let seccomp = own.seccomp_profile.as_ref().or(pod.seccomp_profile.as_ref());
        if !seccomp.is_some_and(is_confined) {
            demand("a seccompProfile of type RuntimeDefault or Localhost");
        }
        if !own_users && own.run_as_user.or(pod.run_as_user) == Some(0) {
            broken.forbidden.push(format!("runAsUser 0 of container {}", container.name));
        }
    }
}

/// A pod that says no may not be outvoted by its containers.
fn is_no_root(pod: &PodSecurityContext, own: Option<bool>) -> bool {
    pod.run_as_non_root != Some(false) && own.or(pod.run_as_non_root) == Some(true)
}

fn is_confined(profile: &SeccompProfile) -> bool {
    matches!(profile.r#type.as_str(), "RuntimeDefault" | "Localhost")
}
