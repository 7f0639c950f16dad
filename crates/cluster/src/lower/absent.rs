//! Kinds of objects that what was read refers to and of which nothing was read: a dump that lacks
//! them tells less than a cluster without them, and the answer says so. That a single object is
//! missing is said where it is looked up.

use std::sync::Arc;

use phalanx_engine::Name;
use phalanx_objects::{Kind, ObjectRef};

use super::Lowering;
use super::record::{Life, PodClaimSource, PodRecord, PodShape};
use super::settle::{object, workload_kind};
use super::volumes::PodVolume;
use crate::finding::{Finding, Severity, Source};

/// Why a kind is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// Pods wait.
    Nodes,
    /// Pods that wait use claims.
    Slices,
    /// Pods that wait use claims, and a claim or a template that was read names a class.
    Classes,
    /// Pods name a claim, or their status does.
    Claims,
    /// Pods that wait name a template.
    Templates,
    /// Pods that wait mount claims on volumes.
    VolumeClaims,
    /// Pods that wait mount claims on volumes, and a claim that was read has a volume.
    Volumes,
    /// Pods that wait mount claims on volumes, and a claim that was read has a class and no volume.
    StorageClasses,
}

impl Need {
    const ALL: [Self; 8] = [
        Self::Nodes,
        Self::Slices,
        Self::Classes,
        Self::Claims,
        Self::Templates,
        Self::VolumeClaims,
        Self::Volumes,
        Self::StorageClasses,
    ];

    fn kind(self) -> Kind {
        match self {
            Self::Nodes => Kind::Node,
            Self::Slices => Kind::ResourceSlice,
            Self::Classes => Kind::DeviceClass,
            Self::Claims => Kind::ResourceClaim,
            Self::Templates => Kind::ResourceClaimTemplate,
            Self::VolumeClaims => Kind::PersistentVolumeClaim,
            Self::Volumes => Kind::PersistentVolume,
            Self::StorageClasses => Kind::StorageClass,
        }
    }

    /// What one pod does, what several do, and what can't be told without the kind.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Nodes => (
                "is to be placed",
                "are to be placed",
                "where they could go is not known, and so they are refused",
            ),
            Self::Slices => ("uses claims", "use claims", "which devices there are is not known"),
            Self::Classes => ("uses claims", "use claims", "which devices they mean is not known"),
            Self::Claims => (
                "names a claim",
                "name claims",
                "what they ask for is not known, and devices that they hold count as free",
            ),
            Self::Templates => {
                ("names a template", "name templates", "what they ask for is not known")
            }
            Self::VolumeClaims => (
                "mounts a PersistentVolumeClaim",
                "mount PersistentVolumeClaims",
                "which volumes those have is not known",
            ),
            Self::Volumes => (
                "mounts a PersistentVolumeClaim",
                "mount PersistentVolumeClaims",
                "where their volumes can be used is not known",
            ),
            Self::StorageClasses => (
                "mounts a PersistentVolumeClaim",
                "mount PersistentVolumeClaims",
                "how those get a volume is not known",
            ),
        }
    }

    /// Whether a pod of this shape needs the kind.
    fn is_of(self, shape: &PodShape, waits: bool) -> bool {
        let mut sources = shape.claims.iter().map(|claim| &claim.source);
        match self {
            Self::Nodes => waits,
            Self::Slices | Self::Classes => waits && sources.next().is_some(),
            Self::Claims => sources.any(|source| matches!(source, PodClaimSource::Claim(_))),
            Self::Templates => {
                waits && sources.any(|source| matches!(source, PodClaimSource::Template(_)))
            }
            Self::VolumeClaims | Self::Volumes | Self::StorageClasses => {
                waits && shape.volumes.iter().any(|volume| matches!(volume, PodVolume::Claim(_)))
            }
        }
    }
}

/// Who needs a kind: how many pods, and the first by name.
#[derive(Debug, Default)]
struct Users<'a> {
    pods: u64,
    first: Option<(ObjectRef, &'a Source)>,
}

impl<'a> Users<'a> {
    fn add(&mut self, pods: u64, object: impl Fn() -> ObjectRef, source: &'a Source) {
        if pods == 0 {
            return;
        }
        self.pods += pods;
        let before = self.first.as_ref().map(|(_, first)| first.ordinal);
        if before.is_none_or(|before| source.ordinal < before) {
            self.first = Some((object(), source));
        }
    }
}

impl Lowering {
    /// Each kind that is needed and of which nothing was read, once.
    pub(crate) fn absent(&self) -> Vec<Finding> {
        let kinds = Need::ALL.into_iter().filter_map(|need| self.absent_of(need));
        let others =
            self.no_pods().into_iter().chain(self.pods_nowhere()).chain(self.no_services());
        kinds.chain(others).collect()
    }

    /// The first node, where the nodes are those of a cluster: what was written by hand says no UID,
    /// and may mean what it says.
    fn node_of_cluster(&self) -> Option<(ObjectRef, &Source)> {
        let nodes = self.objects.nodes.iter().filter(|(_, node)| !node.header.uid.is_none());
        let (name, node) = nodes.min_by_key(|(_, node)| node.header.source.ordinal)?;
        let (namespace, name) = (String::new(), name.to_string());
        Some((ObjectRef { kind: Kind::Node, namespace, name }, &node.header.source))
    }

    /// Nodes of a cluster that are scored, pods that say nothing of spread, and not a single Service: a
    /// cluster has one at least, that of its API server.
    fn no_services(&self) -> Option<Finding> {
        let kind = Kind::Service;
        let unread = self.unread.iter().any(|object| object.kind == kind);
        if !self.scored || unread || !self.has_none(kind) || !self.spreads_by_default() {
            return None;
        }
        let (node, source) = self.node_of_cluster()?;
        let message = format!(
            "There is no Service in the input, and the nodes are those of a cluster: pods of Services \
             are scored as if kube-scheduler did not spread them. Add what `{}` prints.",
            command(kind)
        );
        Some(warning(node, source, message))
    }

    /// Nodes of a cluster without a single pod: it has some, for Kubernetes itself runs there.
    fn no_pods(&self) -> Option<Finding> {
        let kind = Kind::Pod;
        if !self.has_none(kind) || self.unread.iter().any(|object| object.kind == kind) {
            return None;
        }
        let (node, source) = self.node_of_cluster()?;
        let message = format!(
            "There is no Pod in the input, and the nodes are those of a cluster: every node counts as \
             empty. Add what `{}` prints.",
            command(kind)
        );
        Some(warning(node, source, message))
    }

    /// Pods on nodes that were not read, once for all: what they hold is in no sum.
    fn pods_nowhere(&self) -> Option<Finding> {
        // Without any node that is said as such.
        if self.has_none(Kind::Node) {
            return None;
        }
        let mut users = Users::default();
        let mut first_node: Option<(u64, &Name)> = None;
        for (key, record) in &self.objects.pods {
            let (Life::Bound(node) | Life::Terminating(node, _)) = &record.life else { continue };
            if !self.objects.nodes.contains_key(&node.0) {
                let source = &record.header.source;
                users.add(1, || object(Kind::Pod, &key.0), source);
                if first_node.is_none_or(|(ordinal, _)| source.ordinal < ordinal) {
                    first_node = Some((source.ordinal, &node.0));
                }
            }
        }
        let (first, source) = users.first?;
        let (_, node) = first_node?;
        let name = format!("{}/{}", first.namespace, first.name);
        let message = match users.pods {
            1 => format!(
                "1 pod, {name}, is on node {node}, which is not in the input: what it holds is counted \
                 nowhere."
            ),
            pods => format!(
                "{pods} pods are on nodes that are not in the input, the first {name} on {node}: what \
                 they hold is counted nowhere."
            ),
        };
        let message = format!("{message} Add what `{}` prints.", command(Kind::Node));
        Some(warning(first, source, message))
    }

    fn absent_of(&self, need: Need) -> Option<Finding> {
        let kind = need.kind();
        let there = !self.has_none(kind) || self.unread.iter().any(|object| object.kind == kind);
        // A class that is named nowhere is missed by nobody.
        let named = match need {
            Need::Nodes | Need::Slices | Need::Claims | Need::Templates | Need::VolumeClaims => {
                true
            }
            Need::Classes => self.specs.name_a_class(),
            Need::Volumes => self.volume_claims().any(|claim| claim.volume.is_some()),
            Need::StorageClasses => self.volume_claims().any(|claim| {
                let class = claim.class.as_ref().is_some_and(|class| !class.is_empty());
                class && claim.volume.is_none()
            }),
        };
        if there || !named {
            return None;
        }
        let mut users = Users::default();
        for (key, record) in &self.objects.pods {
            if self.needs(need, record) {
                users.add(1, || object(Kind::Pod, &key.0), &record.header.source);
            }
        }
        for (key, record) in &self.objects.workloads {
            for (at, role) in (0..).zip(&record.roles) {
                if need.is_of(&role.shape, true) {
                    let pods = u64::from(self.missing(key, record, at));
                    let named = || object(workload_kind(key), &key.object);
                    users.add(pods, named, &record.header.source);
                }
            }
        }
        let (first, source) = users.first?;
        let (one, many, then) = need.words();
        let of_pod = first.kind == Kind::Pod;
        let name = if of_pod {
            format!("{}/{}", first.namespace, first.name)
        } else {
            format!("of {first}")
        };
        let pods = match users.pods {
            1 => format!("1 pod, {name}, {one}"),
            pods => format!("{pods} pods, the first {name}, {many}"),
        };
        let other = self.other_version(kind).map_or_else(String::new, |version| {
            format!(" Those of {version} are not read; get them as {}.", kind.api_version())
        });
        let message = format!(
            "There is no {kind} in the input, and {pods}: {then}. Add what `{}` prints.{other}",
            command(kind)
        );
        Some(warning(first, source, message))
    }

    fn needs(&self, need: Need, pod: &PodRecord) -> bool {
        let waits = match pod.life {
            Life::Pending => true,
            Life::Bound(_) | Life::Terminating(..) => false,
            Life::Foreign | Life::Leaving | Life::Ended => return false,
        };
        let made = || pod.claims_made.iter().any(|(_, claim)| claim.is_some());
        need.is_of(&pod.shape, waits) || need == Need::Claims && made()
    }

    /// The version in which objects of a kind stand in the input, where it is one that is not read.
    fn other_version(&self, kind: Kind) -> Option<&str> {
        let mut unknown = self.findings.unknown.keys();
        let found = unknown.find(|(_, name)| name == kind.as_str())?;
        Some(&found.0)
    }
}

fn warning(object: ObjectRef, source: &Source, message: String) -> Finding {
    Finding {
        severity: Severity::Warning,
        object: Some(object),
        file: Arc::clone(&source.file),
        line: source.line,
        path: String::new(),
        message,
    }
}

/// What prints the objects of a kind.
fn command(kind: Kind) -> String {
    let plural = kind.as_str().to_ascii_lowercase();
    let plural = if plural.ends_with('s') { plural + "es" } else { plural + "s" };
    let all = if kind.is_namespaced() { " -A" } else { "" };
    format!("kubectl get {plural}{all} -o yaml")
}
