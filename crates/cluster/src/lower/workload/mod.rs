//! Workloads: what pods each makes, as roles with counts, indexes and ranks, and which of the pods
//! that exist are which of them. One module a family turns an object into its roles, a pure function;
//! which pods are missing is worked out when all objects are there.

mod absorb;
mod apps;
mod appwrapper;
mod batch;
mod exclusive;
mod grove;
mod jobset;
mod kubeflow;
mod labels;
mod lws;
mod marks;
mod names;
mod numbered;
mod pods;
mod ray;
mod read;
mod recognise;
mod record;
mod template;
mod volcano;
mod volumes;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use phalanx_engine::Name;
use phalanx_objects::core::PodTemplateSpec;
use phalanx_objects::storage::PersistentVolumeClaim;
use phalanx_objects::workload::{TrainingRuntime, Workload, WorkloadKind};
use phalanx_objects::{Kind, ObjectRef};

use super::slice::Note;
use super::valid;
use crate::finding::Severity;
use record::{Indexes, Places, Rank};

pub(crate) use marks::{BOUND, LevelName, Marks, TOGETHER, UNDECLARED, Wish, marks};
pub(in crate::lower) use numbered::is_number;
pub(crate) use pods::Seat;
pub(crate) use recognise::{absorbs, manager, recognise};
pub(crate) use record::{RoleRecord, StandsFor, WorkloadRecord};
pub(crate) use template::{metas, pod_spec};
pub(crate) use volcano::task_name;
pub(in crate::lower) use volcano::wish as volcano_wish;

/// Most pods of one workload that are planned at a time: more than a cluster holds.
const PODS_MAX: u32 = 100_000;

/// Most roles of one workload: of each the make of its pods is kept.
const ROLES_MAX: usize = 1000;

/// What a workload comes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expansion<'a> {
    /// Its roles, in the object's order.
    pub(crate) roles: Vec<RolePlan<'a>>,
    /// No pod of it is made: it has ended, or another controller makes them.
    pub(crate) aside: bool,
    /// A pod that is being deleted keeps its place until it is gone.
    pub(crate) keeps_leaving: bool,
    /// A pod that has ended keeps its place: it is not made anew.
    pub(crate) keeps_ended: bool,
    /// The attempt that counts; pods of earlier ones are about to go.
    pub(crate) attempt: u32,
    /// That it is a gang, where it says so.
    pub(crate) gang: Option<Declared>,
    /// What is to be said of it.
    pub(crate) notes: Vec<Note>,
    /// What the API server, or a webhook before it, would not let pass.
    pub(crate) refused: Vec<Note>,
    /// What is to be said while pods of it are to be placed.
    pub(crate) while_due: Vec<Note>,
}

/// A role: pods that are alike.
#[derive(Clone, Debug)]
pub(crate) struct RolePlan<'a> {
    /// Its name; empty where there is but one.
    pub(crate) name: String,
    /// How its pods say that they are of it; empty where every pod is.
    pub(crate) sign: String,
    /// The pods.
    pub(crate) template: Cow<'a, PodTemplateSpec>,
    /// Where the template's spec stands in the object.
    pub(crate) at: String,
    /// Limit of the run in seconds, beside the template's own.
    pub(crate) deadline_seconds: Option<i64>,
    /// Pods at a time.
    pub(crate) wanted: u32,
    /// The indexes that pods may have; none where pods have none.
    pub(crate) indexes: Option<Indexes>,
    /// The indexes that are of this role, where pods of several say the same of theirs.
    pub(crate) span: Option<Range<u32>>,
    /// How index and name belong together.
    pub(crate) places: Places,
    /// How index and rank belong together.
    pub(crate) rank: Rank,
    /// The objects between the workload and these pods.
    pub(crate) stands_for: Option<StandsFor>,
    /// The role that must have ended before.
    pub(crate) after: Option<u16>,
    /// The claims on volumes that each pod gets.
    pub(crate) volume_claims: &'a [PersistentVolumeClaim],
    /// Why its pods are never made.
    pub(crate) refused: Vec<Note>,
    /// The labels that the controller gives its pods.
    pub(crate) labels: Vec<(&'static str, String)>,
    /// Fewest of them that start at once, where they are of a gang that says so role by role.
    pub(crate) least: Option<u32>,
    /// So many of them at a time start beyond those, or none.
    pub(crate) part_size: Option<u32>,
    /// Where they are to be, beside what their template says.
    pub(crate) wishes: Vec<Wish>,
    /// Kueue makes one pod set of it and the other such roles of its group.
    pub(crate) is_of_one_set: bool,
    /// The gang that its pods are of without naming it, and the field by which they are: one of several
    /// gangs of the workload.
    pub(crate) gang: Option<(String, String)>,
}

/// A workload that says itself that its pods start at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    /// The field that says so.
    pub(crate) field: Name,
    /// Fewest pods; none is what its roles say, or all.
    pub(crate) min: Option<u32>,
    /// Where all of them are to be.
    pub(crate) wishes: Box<[Wish]>,
}

impl Declared {
    /// At once with all its pods, or the fewest that its roles say.
    pub(super) fn by(field: &str) -> Self {
        Self { field: Name::new(field), min: None, wishes: Box::default() }
    }
}

impl<'a> RolePlan<'a> {
    /// The same with a template of its own.
    fn into_owned<'b>(self) -> RolePlan<'b> {
        let template = Cow::Owned(self.template.into_owned());
        RolePlan { template, volume_claims: &[], ..self }
    }

    /// The one role of a workload whose pods have no index.
    fn alike(base: &str, template: &'a PodTemplateSpec, at: &str, wanted: u32) -> Self {
        Self {
            name: String::new(),
            sign: String::new(),
            template: Cow::Borrowed(template),
            at: at.to_owned(),
            deadline_seconds: None,
            wanted,
            indexes: None,
            span: None,
            places: Places::plain(base),
            rank: Rank::None,
            stands_for: None,
            after: None,
            volume_claims: &[],
            refused: Vec::new(),
            labels: Vec::new(),
            least: None,
            part_size: None,
            wishes: Vec::new(),
            is_of_one_set: false,
            gang: None,
        }
    }

    /// The same with claims on volumes for each pod. They stand in the place of volumes that are called
    /// as they are.
    fn with_volume_claims(mut self, claims: &'a [PersistentVolumeClaim]) -> Self {
        if !claims.is_empty() {
            let replaced = |name: &str| claims.iter().any(|claim| claim.metadata.name == name);
            let volumes = &mut self.template.to_mut().spec.volumes;
            volumes.placed.retain(|volume| !replaced(&volume.name));
            volumes.of_node.retain(|volume| !replaced(&volume.name));
            volumes.of_images.retain(|volume| !replaced(&volume.name));
            volumes.others.retain(|name| !replaced(name));
            volumes.others.extend(claims.iter().map(|claim| claim.metadata.name.as_str().into()));
        }
        self.volume_claims = claims;
        self
    }

    /// A role whose pods are numbered from 0.
    fn numbered(
        name: &str,
        base: &str,
        template: &'a PodTemplateSpec,
        at: &str,
        wanted: u32,
    ) -> Self {
        Self {
            name: name.to_owned(),
            sign: name.to_owned(),
            indexes: Some(Indexes::all(wanted)),
            rank: Rank::From(0),
            ..Self::alike(base, template, at, wanted)
        }
    }
}

/// What an expansion may look up.
pub(crate) struct Context<'c, 'a> {
    /// Whether the API server has created the object.
    pub(crate) created: bool,
    /// The runtime of a TrainJob.
    pub(crate) runtime: &'c dyn Fn(&ObjectRef) -> Option<&'a TrainingRuntime>,
}

/// What a workload comes to: the table of kinds.
pub(crate) fn expand<'a>(workload: &'a Workload, context: &Context<'_, 'a>) -> Expansion<'a> {
    let mut expansion = match workload {
        Workload::Job(of) => batch::job(of),
        Workload::CronJob(of) => batch::cron_job(of, context.created),
        Workload::Deployment(of) => apps::replicas(&of.metadata, &of.spec),
        Workload::ReplicaSet(of) => apps::replicas(&of.metadata, &of.spec),
        Workload::StatefulSet(of) => apps::stateful_set(of),
        Workload::DaemonSet(of) => apps::daemon_set(of),
        Workload::JobSet(of) => jobset::job_set(of),
        Workload::LeaderWorkerSet(of) => lws::leader_worker_set(of),
        Workload::MpiJob(of) => kubeflow::mpi_job(of),
        Workload::PyTorchJob(of) => kubeflow::training_job(&kubeflow::PYTORCH, of),
        Workload::TfJob(of) => kubeflow::training_job(&kubeflow::TENSORFLOW, of),
        Workload::XgBoostJob(of) => kubeflow::training_job(&kubeflow::XGBOOST, of),
        Workload::PaddleJob(of) => kubeflow::training_job(&kubeflow::PADDLE, of),
        Workload::JaxJob(of) => kubeflow::training_job(&kubeflow::JAX, of),
        Workload::TrainJob(of) => jobset::train_job(of, context),
        // They make nothing themselves.
        Workload::TrainingRuntime(_) | Workload::ClusterTrainingRuntime(_) => Expansion::default(),
        Workload::RayCluster(of) => ray::cluster(of),
        Workload::RayJob(of) => ray::job(of),
        Workload::RayService(of) => ray::service(of),
        Workload::VolcanoJob(of) => volcano::job(of),
        Workload::PodCliqueSet(of) => grove::pod_clique_set(of),
        Workload::AppWrapper(of) => appwrapper::app_wrapper(of, context),
    };
    for role in &mut expansion.roles {
        let labels = labels::of_role(workload, role);
        role.labels.extend(labels);
    }
    // What the API server has made, it has not refused.
    let unseen = !context.created;
    for invalid in unseen.then(|| valid::workload(workload)).into_iter().flatten() {
        expansion.refuse(&invalid.field, invalid.why);
    }
    expansion.bound();
    expansion.mark(workload.kind(), context.created);
    expansion
}

/// The runtimes that a workload needs to be expanded.
pub(crate) fn runtimes_of(workload: &Workload) -> Vec<ObjectRef> {
    match workload {
        Workload::TrainJob(of) => vec![jobset::runtime_of(of)],
        Workload::AppWrapper(of) => appwrapper::workloads(of)
            .flat_map(|(_, inner)| runtimes_of(inner))
            .map(|mut runtime| {
                if runtime.kind.is_namespaced() {
                    runtime.namespace.clone_from(&of.metadata.namespace);
                }
                runtime
            })
            .collect(),
        Workload::Job(_)
        | Workload::CronJob(_)
        | Workload::Deployment(_)
        | Workload::ReplicaSet(_)
        | Workload::StatefulSet(_)
        | Workload::DaemonSet(_)
        | Workload::JobSet(_)
        | Workload::LeaderWorkerSet(_)
        | Workload::MpiJob(_)
        | Workload::PyTorchJob(_)
        | Workload::TfJob(_)
        | Workload::XgBoostJob(_)
        | Workload::PaddleJob(_)
        | Workload::JaxJob(_)
        | Workload::TrainingRuntime(_)
        | Workload::ClusterTrainingRuntime(_)
        | Workload::RayCluster(_)
        | Workload::RayJob(_)
        | Workload::RayService(_)
        | Workload::VolcanoJob(_)
        | Workload::PodCliqueSet(_) => Vec::new(),
    }
}

impl Expansion<'_> {
    fn note(&mut self, severity: Severity, at: &str, message: impl Into<String>) {
        self.notes.push((severity, at.to_owned(), message.into()));
    }

    /// What the API server, or a webhook before it, would not let pass.
    fn refuse(&mut self, at: &str, message: impl Into<String>) {
        self.refused.push((Severity::Error, at.to_owned(), message.into()));
    }

    fn due(&mut self, severity: Severity, at: &str, message: impl Into<String>) {
        self.while_due.push((severity, at.to_owned(), message.into()));
    }

    /// A workload that is suspended is planned as if it were resumed now.
    fn suspended(&mut self, is: bool, at: &str, kind: &str) {
        if is && !self.aside {
            let message = format!(
                "The {kind} is suspended and has no pods. It is planned as if it were resumed now."
            );
            self.due(Severity::Info, at, message);
        }
    }

    /// A workload whose pods another controller makes is not planned.
    fn managed(&mut self, by: Option<&str>, own: &[&str], at: &str, kind: &str) {
        let Some(who) = by.filter(|who| !who.is_empty() && !own.contains(who)) else { return };
        if !self.aside {
            let message = format!("{who} makes the pods of this {kind}. None is planned.");
            self.note(Severity::Info, at, message);
            self.aside = true;
        }
    }

    /// Nobody has more pods than can be planned.
    fn bound(&mut self) {
        let mut left = PODS_MAX;
        let mut cut = None;
        if self.roles.len() > ROLES_MAX {
            let message =
                format!("It has {} roles. The first {ROLES_MAX} are planned.", self.roles.len());
            self.note(Severity::Error, "spec", message);
            self.roles.truncate(ROLES_MAX);
        }
        self.tell_apart();
        let wanted = self.roles.iter().fold(0_u32, |sum, role| sum.saturating_add(role.wanted));
        for role in &mut self.roles {
            if role.wanted > left {
                cut.get_or_insert_with(|| role.at.clone());
                role.wanted = left;
            }
            left -= role.wanted;
        }
        if let Some(at) = cut {
            let message = format!(
                "It wants {wanted} pods at a time. Phalanx plans the first {PODS_MAX} of them."
            );
            self.note(Severity::Error, &at, message);
        }
    }

    /// No two pods have one name: of roles whose pods would, the first is planned.
    fn tell_apart(&mut self) {
        let mut seen = BTreeSet::new();
        let mut twice = None;
        for role in self.roles.iter_mut().filter(|role| role.wanted > 0) {
            let first = role.span.as_ref().map(|span| span.start);
            if !seen.insert((role.places.base.clone(), role.places.numbers, first)) {
                twice.get_or_insert_with(|| (role.at.clone(), role.places.base.clone()));
                role.wanted = 0;
            }
        }
        if let Some((at, base)) = twice {
            let message = format!(
                "Its pods would have the names of others of it, such as {base}-0. Only the first of \
                 them are planned."
            );
            self.note(Severity::Error, &at, message);
        }
    }

    /// What the pods' own marks say, and what becomes of what is refused.
    fn mark(&mut self, kind: WorkloadKind, created: bool) {
        // Kueue takes each pod of these for itself.
        let singly = matches!(
            kind,
            WorkloadKind::Deployment | WorkloadKind::ReplicaSet | WorkloadKind::DaemonSet
        );
        // Groups of a leader and its workers are placed each for itself.
        let leaders = self.roles.iter().filter(|role| role.name == "leader");
        let groups = leaders.fold(0_u32, |sum, role| sum.saturating_add(role.wanted));
        let several = kind == WorkloadKind::LeaderWorkerSet && groups > 1;
        if self.gang.is_none() && !singly && !several {
            self.gang = self.roles.iter().find_map(marks::of_template).map(|f| Declared::by(&f));
        }
        if !created && !self.aside {
            for role in &mut self.roles {
                role.refused.extend(self.refused.iter().cloned());
            }
        }
        self.notes.append(&mut self.refused);
    }
}

/// A count of the API, which is never negative in an object that was read.
fn count(n: i32) -> u32 {
    u32::try_from(n).unwrap_or(0)
}

/// The object that a kind and a name mean in a namespace.
fn reference(kind: WorkloadKind, namespace: &str, name: &str) -> ObjectRef {
    let namespace = if kind.is_namespaced() { namespace } else { "" };
    ObjectRef { kind: Kind::Workload(kind), namespace: namespace.to_owned(), name: name.to_owned() }
}
