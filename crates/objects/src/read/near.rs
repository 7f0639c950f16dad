//! Fields of manifests that are not known, with the known ones that they are nearly: kubectl has the API
//! server refuse an object with such a field (strict field validation). Where a kind is a custom
//! resource, whose fields differ from version to version, one that is like none is left alone. What the
//! API server has made holds no such field and is not looked at.

use super::tree::{Node, Path, Place, Step, Value, parse_path};
use crate::object::{Kind, Object};
use crate::workload::WorkloadKind;

/// A field that is nearly a known one.
pub(super) struct Near {
    pub(super) place: Place,
    pub(super) path: Path,
    pub(super) message: String,
}

/// A map whose fields are known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Object,
    Meta,
    Template,
    JobTemplate,
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    JobSet,
    ReplicatedJob,
    LeaderWorkerSet,
    LeaderWorkerTemplate,
    Kubeflow,
    RunPolicy,
    Roles,
    Replicas,
    Pod,
    Container,
    Resources,
    PodClaim,
    Claim,
    Devices,
    Request,
    Exactly,
    Alternative,
}

impl Form {
    /// The names of all its fields (Kubernetes 1.37).
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn fields(self) -> &'static str {
        match self {
            Self::Pod => {
                "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig \
                 dnsPolicy enableServiceLinks ephemeralContainers evictionResponders hostAliases hostIPC hostNetwork \
                 hostPID hostUsers hostname hostnameOverride imagePullSecrets initContainers \
                 nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName \
                 readinessGates resourceClaims resources restartPolicy runtimeClassName \
                 schedulerName schedulingGates schedulingGroup securityContext serviceAccount \
                 serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain \
                 terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes \
                 workloadRef"
            }
            Self::Container => {
                "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports \
                 readinessProbe resizePolicy resources restartPolicy restartPolicyRules \
                 securityContext startupProbe stdin stdinOnce terminationMessagePath \
                 terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
            }
            Self::Object => "apiVersion kind metadata spec status",
            Self::Meta => {
                "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp \
                 finalizers generateName generation labels managedFields name namespace \
                 ownerReferences resourceVersion selfLink uid"
            }
            Self::Template | Self::JobTemplate => "metadata spec",
            Self::Deployment => {
                "minReadySeconds paused progressDeadlineSeconds replicas revisionHistoryLimit \
                 selector strategy template"
            }
            Self::ReplicaSet => "minReadySeconds replicas selector template",
            Self::StatefulSet => {
                "minReadySeconds ordinals persistentVolumeClaimRetentionPolicy podManagementPolicy \
                 replicas revisionHistoryLimit selector serviceName template updateStrategy \
                 volumeClaimTemplates"
            }
            Self::DaemonSet => {
                "minReadySeconds revisionHistoryLimit selector template updateStrategy"
            }
            Self::Job => {
                "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions \
                 failedPodsLimit managedBy manualSelector maxFailedIndexes parallelism podFailurePolicy \
                 podReplacementPolicy scheduling selector successPolicy suspend template \
                 ttlSecondsAfterFinished"
            }
            Self::CronJob => {
                "concurrencyPolicy failedJobsHistoryLimit jobTemplate schedule \
                 startingDeadlineSeconds successfulJobsHistoryLimit suspend timeZone"
            }
            Self::JobSet => {
                "coordinator failurePolicy managedBy network replicatedJobs startupPolicy \
                 successPolicy suspend ttlSecondsAfterFinished volumeClaimPolicies"
            }
            Self::ReplicatedJob => "dependsOn groupName name replicas template",
            Self::LeaderWorkerSet => {
                "leaderWorkerTemplate networkConfig replicas rolloutStrategy startupPolicy"
            }
            Self::LeaderWorkerTemplate => {
                "leaderTemplate persistentVolumeClaimRetentionPolicy restartPolicy size \
                 subGroupPolicy volumeClaimTemplates workerTemplate"
            }
            Self::Kubeflow => {
                "elasticPolicy enableDynamicWorker jaxReplicaSpecs launcherCreationPolicy \
                 mpiImplementation mpiReplicaSpecs nprocPerNode paddleReplicaSpecs \
                 pytorchReplicaSpecs runLauncherAsWorker runPolicy slotsPerWorker \
                 sshAuthMountPath successPolicy tfReplicaSpecs xgbReplicaSpecs"
            }
            Self::RunPolicy => {
                "activeDeadlineSeconds backoffLimit cleanPodPolicy managedBy schedulingPolicy \
                 suspend ttlSecondsAfterFinished"
            }
            Self::Replicas => "replicas restartPolicy template",
            // Its keys are the names of roles.
            Self::Roles => "",
            Self::Resources => "claims limits requests",
            Self::PodClaim => "name resourceClaimName resourceClaimTemplateName source",
            Self::Claim => "controller devices",
            Self::Devices => "config constraints requests",
            Self::Request => "exactly firstAvailable name",
            Self::Exactly => {
                "adminAccess allocationMode capacity count derivedAttributes deviceClassName \
                 selectors tolerations"
            }
            Self::Alternative => {
                "allocationMode capacity count derivedAttributes deviceClassName name selectors \
                 tolerations"
            }
        }
    }

    /// What has these fields, as a sentence names it.
    fn words(self) -> &'static str {
        match self {
            Self::Pod => "the spec of a pod",
            Self::Container => "a container",
            Self::Object => "an object",
            Self::Meta => "`metadata`",
            Self::Template => "the template of a pod",
            Self::JobTemplate => "the template of a Job",
            Self::Deployment => "the spec of a Deployment",
            Self::ReplicaSet => "the spec of a ReplicaSet",
            Self::StatefulSet => "the spec of a StatefulSet",
            Self::DaemonSet => "the spec of a DaemonSet",
            Self::Job => "the spec of a Job",
            Self::CronJob => "the spec of a CronJob",
            Self::JobSet => "the spec of a JobSet",
            Self::ReplicatedJob => "an entry of `replicatedJobs`",
            Self::LeaderWorkerSet => "the spec of a LeaderWorkerSet",
            Self::LeaderWorkerTemplate => "`leaderWorkerTemplate`",
            Self::Kubeflow => "the spec of the job",
            Self::RunPolicy => "`runPolicy`",
            Self::Replicas | Self::Roles => "a role of the job",
            Self::Resources => "`resources` of a container",
            Self::PodClaim => "an entry of `resourceClaims`",
            Self::Claim => "the spec of a claim",
            Self::Devices => "`devices` of a claim",
            Self::Request => "a request",
            Self::Exactly => "`exactly` of a request",
            Self::Alternative => "an alternative of `firstAvailable`",
        }
    }

    /// The forms among which a field may stand at the wrong place.
    fn family(self) -> &'static [Self] {
        match self {
            Self::Pod | Self::Container | Self::Resources | Self::PodClaim => {
                &[Self::Pod, Self::Container, Self::Resources, Self::PodClaim, Self::Job]
            }
            Self::Template => &[Self::Template, Self::Pod, Self::Meta],
            Self::JobTemplate => &[Self::JobTemplate, Self::Job, Self::Meta],
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet | Self::DaemonSet => {
                &[Self::Pod, Self::Meta, Self::Deployment, Self::StatefulSet, Self::Container]
            }
            Self::Job | Self::CronJob | Self::JobSet | Self::ReplicatedJob => {
                &[Self::Job, Self::CronJob, Self::Pod, Self::ReplicatedJob]
            }
            Self::LeaderWorkerSet | Self::LeaderWorkerTemplate => {
                &[Self::LeaderWorkerSet, Self::LeaderWorkerTemplate]
            }
            Self::Kubeflow | Self::RunPolicy | Self::Replicas => {
                &[Self::Kubeflow, Self::RunPolicy, Self::Replicas]
            }
            Self::Object | Self::Meta | Self::Roles => &[],
            Self::Claim | Self::Devices | Self::Request | Self::Exactly | Self::Alternative => {
                &[Self::Claim, Self::Devices, Self::Request, Self::Exactly, Self::Alternative]
            }
        }
    }

    /// Whether its fields are all that the API server knows, so that another is none.
    fn is_whole(self) -> bool {
        matches!(
            self,
            Self::Object
                | Self::Meta
                | Self::Template
                | Self::JobTemplate
                | Self::Deployment
                | Self::ReplicaSet
                | Self::StatefulSet
                | Self::DaemonSet
                | Self::Job
                | Self::CronJob
                | Self::Pod
                | Self::Container
                | Self::Resources
                | Self::PodClaim
                | Self::Claim
                | Self::Devices
                | Self::Request
                | Self::Exactly
                | Self::Alternative
        )
    }

    /// The form of a workload's spec, where it is known.
    fn of_spec(kind: WorkloadKind) -> Option<Self> {
        match kind {
            WorkloadKind::Job => Some(Self::Job),
            WorkloadKind::CronJob => Some(Self::CronJob),
            WorkloadKind::Deployment => Some(Self::Deployment),
            WorkloadKind::ReplicaSet => Some(Self::ReplicaSet),
            WorkloadKind::StatefulSet => Some(Self::StatefulSet),
            WorkloadKind::DaemonSet => Some(Self::DaemonSet),
            WorkloadKind::JobSet => Some(Self::JobSet),
            WorkloadKind::LeaderWorkerSet => Some(Self::LeaderWorkerSet),
            WorkloadKind::MpiJob
            | WorkloadKind::PyTorchJob
            | WorkloadKind::TfJob
            | WorkloadKind::XgBoostJob
            | WorkloadKind::PaddleJob
            | WorkloadKind::JaxJob => Some(Self::Kubeflow),
            WorkloadKind::TrainJob
            | WorkloadKind::TrainingRuntime
            | WorkloadKind::ClusterTrainingRuntime
            | WorkloadKind::RayCluster
            | WorkloadKind::RayJob
            | WorkloadKind::RayService
            | WorkloadKind::VolcanoJob
            | WorkloadKind::PodCliqueSet
            | WorkloadKind::AppWrapper => None,
        }
    }

    /// The form of a field, or of the entries of its list.
    fn of(self, field: &str) -> Option<Self> {
        match (self, field) {
            (
                Self::Deployment
                | Self::ReplicaSet
                | Self::StatefulSet
                | Self::DaemonSet
                | Self::Job
                | Self::Replicas,
                "template",
            )
            | (Self::LeaderWorkerTemplate, "leaderTemplate" | "workerTemplate") => {
                Some(Self::Template)
            }
            // The spec in a template of a pod is looked at by itself.
            (Self::Object | Self::Template | Self::JobTemplate, "metadata") => Some(Self::Meta),
            (Self::CronJob, "jobTemplate") | (Self::ReplicatedJob, "template") => {
                Some(Self::JobTemplate)
            }
            (Self::JobTemplate, "spec") => Some(Self::Job),
            (Self::JobSet, "replicatedJobs") => Some(Self::ReplicatedJob),
            (Self::LeaderWorkerSet, "leaderWorkerTemplate") => Some(Self::LeaderWorkerTemplate),
            (Self::Kubeflow, "runPolicy") => Some(Self::RunPolicy),
            (Self::Kubeflow, of) if of.ends_with("ReplicaSpecs") => Some(Self::Roles),
            (Self::Roles, _) => Some(Self::Replicas),
            (Self::Pod, "containers" | "initContainers") => Some(Self::Container),
            (Self::Pod | Self::Container, "resources") => Some(Self::Resources),
            (Self::Pod, "resourceClaims") => Some(Self::PodClaim),
            (Self::Claim, "devices") => Some(Self::Devices),
            (Self::Devices, "requests") => Some(Self::Request),
            (Self::Request, "exactly") => Some(Self::Exactly),
            (Self::Request, "firstAvailable") => Some(Self::Alternative),
            _ => None,
        }
    }
}

/// Whether the fields of objects of a kind are known.
pub(super) const fn knows(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Pod | Kind::ResourceClaim | Kind::ResourceClaimTemplate | Kind::Workload(_)
    )
}

/// The fields of an object that are not known.
pub(super) fn misspelt(object: &Object, tree: &Node) -> Vec<Near> {
    let mut found = Vec::new();
    let mut at = |path: Path, form: Form| {
        let place = path.iter().try_fold(tree, |node, step| node.step(step));
        if let Some(node) = place {
            let mut path = path;
            look(form, node, &mut path, &mut found);
        }
    };
    if object.device_claim().is_some() {
        let way = if object.kind() == Kind::ResourceClaimTemplate { "spec.spec" } else { "spec" };
        at(parse_path(way), Form::Claim);
    }
    if let Object::Workload(workload) = object {
        at(Path::new(), Form::Object);
        if let Some(form) = Form::of_spec(workload.kind()) {
            at(parse_path("spec"), form);
        }
    } else if object.kind() == Kind::Pod {
        at(Path::new(), Form::Object);
    }
    for part in object.pod_parts() {
        at(parse_path(&part.at), Form::Pod);
    }
    let version = tree.get("apiVersion").and_then(Node::as_str);
    if version.is_some_and(|version| version.ends_with("/v1beta1")) {
        found.retain(|near| !is_old(&near.path));
    }
    found
}

/// Whether a field is one that a request had before `exactly` was.
fn is_old(path: &[Step]) -> bool {
    let key = |step: &Step| match step {
        Step::Key(key) => Some(key.to_string()),
        Step::Index(_) => None,
    };
    let [.., list, Step::Index(_), field] = path else { return false };
    let has = |field: &str| Form::Exactly.fields().split_ascii_whitespace().any(|f| f == field);
    key(list).as_deref() == Some("requests") && key(field).is_some_and(|field| has(&field))
}

fn look(form: Form, node: &Node, path: &mut Path, found: &mut Vec<Near>) {
    match &node.value {
        Value::Sequence(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                path.push(Step::Index(index));
                look(form, entry, path, found);
                path.pop();
            }
        }
        Value::Map(entries) => {
            for (key, value) in entries {
                path.push(Step::Key(key.clone().into()));
                if let Some(message) = unknown(form, key) {
                    found.push(Near { place: value.place, path: path.clone(), message });
                } else if let Some(form) = form.of(key) {
                    look(form, value, path, found);
                }
                path.pop();
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Unsigned(_)
        | Value::Float(_)
        | Value::String(_) => {}
    }
}

/// What to say of a field that is not known where it stands: that it is one of another place nearby,
/// or nearly a known one.
fn unknown(form: Form, key: &str) -> Option<String> {
    let has = |form: &Form| form.fields().split_ascii_whitespace().any(|field| field == key);
    if has(&form) {
        return None;
    }
    let others: Vec<&str> = form.family().iter().filter(|f| has(f)).map(|f| f.words()).collect();
    if let [first, ..] = others.as_slice() {
        return Some(format!(
            "The field `{key}` is not known here: {first} has it, {} has not. {REFUSED}",
            form.words()
        ));
    }
    if form == Form::Roles {
        return None;
    }
    let Some(meant) = meant(form, key) else {
        let message = format!(
            "The field `{key}` is not known here: {} has none that is nearly so. {REFUSED}",
            form.words()
        );
        return form.is_whole().then_some(message);
    };
    Some(format!(
        "The field `{key}` is not known here; write `{meant}` if that is meant. {REFUSED}"
    ))
}

/// What becomes of the object.
const REFUSED: &str = "`kubectl apply` would refuse the object, so it is left out.";

/// The known field that an unknown one is nearly.
fn meant(form: Form, key: &str) -> Option<&'static str> {
    let known = || form.fields().split_ascii_whitespace();
    let allowed = if key.len() < 6 { 1 } else { 2 };
    let near = known().map(|field| (distance(key, field), field));
    near.filter(|(distance, _)| *distance <= allowed).min().map(|(_, field)| field)
}

/// How many letters must be changed, added or left out; whether they are capitals does not count.
fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (above, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let change = corner + usize::from(!x.eq_ignore_ascii_case(&y));
            corner = *above;
            left = change.min(left + 1).min(*above + 1);
            *above = left;
        }
        row[0] = i + 1;
    }
    row.last().copied().unwrap_or(usize::MAX)
}
