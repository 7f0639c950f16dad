//! What is said of objects that are not read: of a kind that nobody looks at, of a version that is
//! not known, or of a kind that is misspelt and would be read under its own name.

use std::collections::BTreeSet;

use phalanx_objects::Kind;

use crate::compat::distance;
use crate::finding::Severity;

/// Groups of Kubernetes itself that have no dot; the others end in `.k8s.io`.
const OWN_GROUPS: [&str; 6] = ["", "apps", "autoscaling", "batch", "extensions", "policy"];

/// The domain of all other groups of Kubernetes itself; `x-k8s.io` is that of others.
const OWN_DOMAIN: &str = ".k8s.io";

/// Kinds of the groups "", `apps` and `batch` that nobody reads here: with those that are read all that
/// there are, for nobody can add to these groups (`kubectl api-resources` of 1.34 to 1.37). `Config` is a
/// kubeconfig, `List` and `Status` are answers of the API server.
const UNREAD: [&str; 12] = [
    "Binding",
    "ComponentStatus",
    "Config",
    "ConfigMap",
    "ControllerRevision",
    "Endpoints",
    "Event",
    "List",
    "PodTemplate",
    "Scale",
    "Secret",
    "Status",
];

/// Most letters of a group or a kind in which a mistake is looked for.
const COMPARED: usize = 80;

/// How bad it is that objects are not read, and what is said of it.
pub(super) fn unread(api_version: &str, kind: &str) -> (Severity, String) {
    let group = group_of(api_version);
    let aside = "these take no part in the answer";
    let named = || Kind::ALL.iter().copied().filter(|known| known.as_str() == kind);
    if let Some(known) = named().find(|known| group_of(known.api_version()) == group) {
        let message = format!(
            "Objects of kind {kind} are read in {}, and not in {api_version}: {aside}.",
            known.versions().join(" and ")
        );
        return (Severity::Warning, message);
    }
    let meant: Vec<Kind> = if named().next().is_none() {
        Kind::ALL.iter().copied().filter(|known| is_misspelt(group, kind, *known)).collect()
    } else if is_own(group) {
        named().collect()
    } else {
        let near = |known: &Kind| is_near(group, group_of(known.api_version()));
        named().filter(near).collect()
    };
    if meant.is_empty() && has_no(group, kind) {
        let message = format!(
            "Kubernetes has no kind {kind} in {api_version}, and refuses it: {aside}. `kubectl \
             api-resources` lists the kinds that there are."
        );
        return (Severity::Error, message);
    }
    if meant.is_empty() {
        let message = format!(
            "Objects of kind {kind} ({api_version}) are not read: they take no part in the answer."
        );
        return (Severity::Info, message);
    }
    let write = |known: &Kind| {
        let (version, name) = (known.api_version(), known.as_str());
        match (group_of(version) == group, name == kind) {
            (true, _) => format!("`kind: {name}`"),
            (false, true) => format!("`apiVersion: {version}`"),
            (false, false) => format!("`apiVersion: {version}` and `kind: {name}`"),
        }
    };
    let instead: BTreeSet<String> = meant.iter().map(write).collect();
    let instead = instead.into_iter().collect::<Vec<_>>().join(", or ");
    let (severity, what) = if is_own(group) {
        let what = format!("Kubernetes has no kind {kind} in {api_version}, and refuses it");
        (Severity::Error, what)
    } else {
        (Severity::Warning, format!("Objects of kind {kind} ({api_version}) are not read"))
    };
    (severity, format!("{what}: {aside}. Write {instead}, if that is meant."))
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether a group is of Kubernetes itself, so that what it does not have nobody can add.
fn is_own(group: &str) -> bool {
    OWN_GROUPS.contains(&group) || group.ends_with(OWN_DOMAIN)
}

/// Whether a group is known whole, and has no such kind.
fn has_no(group: &str, kind: &str) -> bool {
    let one = kind.strip_suffix("List").filter(|one| !one.is_empty()).unwrap_or(kind);
    let is_read = Kind::ALL.iter().any(|known| known.as_str() == one);
    matches!(group, "" | "apps" | "batch") && !is_read && !UNREAD.contains(&one)
}

/// Whether a group is another by a mistake.
fn is_near(group: &str, known: &str) -> bool {
    group.len() <= COMPARED && known.contains('.') && distance(group, known) <= 2
}

/// Whether a kind of a group is one that is known by a mistake: in small letters, in the plural, or
/// with a letter or two that are wrong.
fn is_misspelt(group: &str, kind: &str, known: Kind) -> bool {
    let of = group_of(known.api_version());
    let name = known.as_str();
    if (of != group && !(is_own(of) && is_own(group))) || kind.len() > COMPARED {
        return false;
    }
    let plural = kind.strip_suffix("es").into_iter().chain(kind.strip_suffix('s'));
    let is_plural = plural.into_iter().any(|one| one.eq_ignore_ascii_case(name));
    let most = if name.len() < 8 { 1 } else { 2 };
    // A kind of four letters is one letter away from too much.
    is_plural || kind.eq_ignore_ascii_case(name) || name.len() > 4 && distance(kind, name) <= most
}

#[cfg(test)]
mod tests {
    use super::unread;
    use crate::finding::Severity::{Error, Info, Warning};

    #[test]
    fn a_kind_that_is_misspelt_is_told_with_its_own_name() {
        let cases = [
            ("v1", "Pods", Error, "`kind: Pod`"),
            ("v1", "pod", Error, "`kind: Pod`"),
            ("apps/v1", "Job", Error, "`apiVersion: batch/v1`"),
            ("apps/v1", "Deployement", Error, "`kind: Deployment`"),
            ("apps/v1", "Jobs", Error, "`apiVersion: batch/v1` and `kind: Job`"),
            ("extensions/v1beta1", "DaemonSet", Error, "`apiVersion: apps/v1`"),
            ("v1", "ResourceClaim", Error, "`apiVersion: resource.k8s.io/v1`"),
            ("jobset.x-k8s.io/v1alpha2", "Jobset", Warning, "`kind: JobSet`"),
            ("jobset.x-k8s.oi/v1alpha2", "JobSet", Warning, "`apiVersion: jobset.x-k8s.io/"),
            ("jobset.x-k8s.io/v1", "JobSet", Warning, "jobset.x-k8s.io/v1alpha2"),
            ("v2", "Pod", Warning, "are read in v1"),
            ("v1", "Pdo", Error, "no kind Pdo in v1"),
            ("batch/v1", "Jbo", Error, "no kind Jbo in batch/v1"),
        ];
        for (api_version, kind, severity, part) in cases {
            let (told, message) = unread(api_version, kind);
            assert_eq!(told, severity, "{message}");
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_kind_of_others_is_only_told() {
        let others = [
            ("v1", "ConfigMap"),
            ("v1", "Secret"),
            ("v1", "Event"),
            ("v1", "PodTemplate"),
            ("v1", "PodTemplateList"),
            ("v1", "Endpoints"),
            ("v1", "Config"),
            ("rbac.authorization.k8s.io/v1", "Role"),
            ("metrics.k8s.io/v1beta1", "NodeMetrics"),
            ("config.openshift.io/v1", "Node"),
            ("apps/v1", "ControllerRevision"),
            ("events.k8s.io/v1", "Event"),
            ("networking.k8s.io/v1", "Ingress"),
            ("storage.k8s.io/v1", "VolumeAttributesClass"),
            ("example.com/v1", "Job"),
            ("kubeflow.org/v1", "MXJob"),
        ];
        for (api_version, kind) in others {
            let (told, message) = unread(api_version, kind);
            assert_eq!(told, Info, "{message}");
        }
    }
}
