//! Fields of manifests that are not known, with the known ones that they are nearly: kubectl has the API
//! server refuse an object with such a field (strict field validation). Where a kind is a custom
//! resource, whose fields differ from version to version, one that is like none is left alone. What the
//! API server has made holds no such field and is not looked at.

use super::tree::{Node, Path, Place, Step, Value, parse_path};
use crate::object::{Kind, Object};
use crate::scheduling::SchedulingKind;
use crate::workload::{Workload, WorkloadKind};

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
    PodGroup,
    CompositePodGroup,
    Templates,
    PodGroupTemplate,
    CompositePodGroupTemplate,
    Policy,
    CompositePolicy,
    Gang,
    CompositeGang,
    Constraints,
    Level,
    PeerPodGroup,
    VolcanoJob,
    VolcanoTask,
    RayCluster,
    RayHead,
    RayWorkers,
    TrainJob,
    Trainer,
    Clique,
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
            Self::PodGroup => {
                "disruptionMode parentCompositePodGroupName preemptionPolicy priority \
                 priorityClassName resourceClaims schedulingConstraints schedulingPolicy workloadRef"
            }
            Self::CompositePodGroup => {
                "disruptionMode parentCompositePodGroupName preemptionPolicy priority \
                 priorityClassName schedulingConstraints schedulingPolicy workloadRef"
            }
            // Its first version had `podGroups`, and is written as the newest.
            Self::Templates => {
                "compositePodGroupTemplates controllerRef podGroupTemplates podGroups"
            }
            Self::PodGroupTemplate => {
                "disruptionMode name preemptionPolicy priority priorityClassName resourceClaims \
                 schedulingConstraints schedulingPolicy"
            }
            Self::CompositePodGroupTemplate => {
                "compositePodGroupTemplates disruptionMode name podGroupTemplates preemptionPolicy \
                 priority priorityClassName schedulingConstraints schedulingPolicy"
            }
            Self::Policy | Self::CompositePolicy => "basic gang",
            Self::Gang => "minCount",
            Self::CompositeGang => "minGroupCount",
            Self::Constraints => "topology",
            Self::Level => "key",
            // Of the coscheduling plugin, Volcano and KAI.
            Self::PeerPodGroup => {
                "markUnschedulable minMember minResources minSubGroup minTaskMember \
                 networkTopology preemptibility priorityClassName queue scheduleTimeoutSeconds \
                 schedulingBackoff subGroupPolicy subGroups topologyConstraint"
            }
            Self::VolcanoJob => {
                "maxRetry minAvailable minSuccess networkTopology plugins policies priorityClassName \
                 queue runningEstimate schedulerName tasks ttlSecondsAfterFinished volumes"
            }
            Self::VolcanoTask => {
                "dependsOn maxRetry minAvailable name partitionPolicy policies replicas template \
                 topologyPolicy"
            }
            Self::RayCluster => {
                "authOptions autoscalerOptions enableInTreeAutoscaling gcsFaultToleranceOptions \
                 headGroupSpec headServiceAnnotations managedBy rayVersion suspend upgradeStrategy \
                 workerGroupSpecs"
            }
            Self::RayHead => {
                "enableIngress headService labels rayStartParams resources serviceType template"
            }
            Self::RayWorkers => {
                "groupName idleTimeoutSeconds labels maxReplicas minReplicas numOfHosts \
                 rayStartParams replicas resources scaleStrategy suspend template"
            }
            Self::TrainJob => {
                "activeDeadlineSeconds annotations initializer labels managedBy podSpecOverrides \
                 podTemplateOverrides runtimePatches runtimeRef suspend trainer"
            }
            Self::Trainer => "args command env image numNodes numProcPerNode resourcesPerNode",
            Self::Clique => "autoScalingConfig minAvailable podSpec replicas roleName startsAfter",
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
            Self::PodGroup | Self::PeerPodGroup => "the spec of a PodGroup",
            Self::CompositePodGroup => "the spec of a CompositePodGroup",
            Self::Templates => "the spec of a Workload",
            Self::PodGroupTemplate => "a template of a PodGroup",
            Self::CompositePodGroupTemplate => "a template of a CompositePodGroup",
            Self::Policy | Self::CompositePolicy => "`schedulingPolicy`",
            Self::Gang | Self::CompositeGang => "`gang`",
            Self::Constraints => "`schedulingConstraints`",
            Self::Level => "an entry of `topology`",
            Self::VolcanoJob => "the spec of the job",
            Self::VolcanoTask => "a task of the job",
            Self::RayCluster => "the spec of a RayCluster",
            Self::RayHead => "`headGroupSpec`",
            Self::RayWorkers => "an entry of `workerGroupSpecs`",
            Self::TrainJob => "the spec of a TrainJob",
            Self::Trainer => "`trainer`",
            Self::Clique => "the spec of a clique",
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
            Self::PodGroup | Self::Policy | Self::Gang | Self::Constraints | Self::Level => {
                &[Self::PodGroup, Self::Policy, Self::Gang, Self::Constraints, Self::Level]
            }
            Self::CompositePodGroup | Self::CompositePolicy | Self::CompositeGang => &[
                Self::CompositePodGroup,
                Self::CompositePolicy,
                Self::CompositeGang,
                Self::Constraints,
            ],
            Self::Object
            | Self::Meta
            | Self::Roles
            | Self::Templates
            | Self::PodGroupTemplate
            | Self::CompositePodGroupTemplate
            | Self::PeerPodGroup
            | Self::VolcanoJob
            | Self::VolcanoTask
            | Self::RayCluster
            | Self::RayHead
            | Self::RayWorkers
            | Self::TrainJob
            | Self::Trainer
            | Self::Clique => &[],
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
                | Self::PodGroup
                | Self::CompositePodGroup
                | Self::Templates
                | Self::PodGroupTemplate
                | Self::CompositePodGroupTemplate
                | Self::Policy
                | Self::CompositePolicy
                | Self::Gang
                | Self::CompositeGang
                | Self::Constraints
                | Self::Level
        )
    }

    /// The form of the spec of an object about groups or places, where it is known. Versions that are
    /// gone had other fields.
    fn of_scheduling(kind: SchedulingKind, version: &str) -> Option<Self> {
        let is_new = version.ends_with("/v1beta1") || version.ends_with("/v1alpha3");
        match kind {
            SchedulingKind::PodGroup => is_new.then_some(Self::PodGroup),
            SchedulingKind::CompositePodGroup => is_new.then_some(Self::CompositePodGroup),
            SchedulingKind::Templates => is_new.then_some(Self::Templates),
            SchedulingKind::Coscheduling
            | SchedulingKind::VolcanoPodGroup
            | SchedulingKind::KaiPodGroup => Some(Self::PeerPodGroup),
            SchedulingKind::KueueWorkload
            | SchedulingKind::PodGang
            | SchedulingKind::KueueTopology
            | SchedulingKind::KaiTopology
            | SchedulingKind::HyperNode
            | SchedulingKind::ComputeDomain => None,
        }
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
            WorkloadKind::TrainJob => Some(Self::TrainJob),
            WorkloadKind::RayCluster => Some(Self::RayCluster),
            WorkloadKind::VolcanoJob => Some(Self::VolcanoJob),
            WorkloadKind::TrainingRuntime
            | WorkloadKind::ClusterTrainingRuntime
            | WorkloadKind::RayJob
            | WorkloadKind::RayService
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
            (
                Self::PodGroup
                | Self::CompositePodGroup
                | Self::PodGroupTemplate
                | Self::CompositePodGroupTemplate,
                "schedulingConstraints",
            ) => Some(Self::Constraints),
            (Self::PodGroup | Self::PodGroupTemplate, "schedulingPolicy") => Some(Self::Policy),
            (Self::CompositePodGroup | Self::CompositePodGroupTemplate, "schedulingPolicy") => {
                Some(Self::CompositePolicy)
            }
            (Self::Policy, "gang") => Some(Self::Gang),
            (Self::CompositePolicy, "gang") => Some(Self::CompositeGang),
            (Self::Constraints, "topology") => Some(Self::Level),
            (Self::PodGroup | Self::PodGroupTemplate, "resourceClaims") => Some(Self::PodClaim),
            (Self::Templates | Self::CompositePodGroupTemplate, "podGroupTemplates") => {
                Some(Self::PodGroupTemplate)
            }
            (Self::Templates | Self::CompositePodGroupTemplate, "compositePodGroupTemplates") => {
                Some(Self::CompositePodGroupTemplate)
            }
            (Self::VolcanoJob, "tasks") => Some(Self::VolcanoTask),
            (Self::RayCluster, "headGroupSpec") => Some(Self::RayHead),
            (Self::RayCluster, "workerGroupSpecs") => Some(Self::RayWorkers),
            (Self::VolcanoTask | Self::RayHead | Self::RayWorkers, "template") => {
                Some(Self::Template)
            }
            (Self::TrainJob, "trainer") => Some(Self::Trainer),
            _ => None,
        }
    }
}

/// Whether the fields of objects of a kind are known.
pub(super) const fn knows(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Pod
            | Kind::ResourceClaim
            | Kind::ResourceClaimTemplate
            | Kind::Workload(_)
            | Kind::Scheduling(_)
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
    let version = tree.get("apiVersion").and_then(Node::as_str);
    if let Object::Workload(workload) = object {
        at(Path::new(), Form::Object);
        if let Some(form) = Form::of_spec(workload.kind()) {
            at(parse_path("spec"), form);
        }
        if let Workload::RayJob(_) = workload {
            at(parse_path("spec.rayClusterSpec"), Form::RayCluster);
        } else if let Workload::RayService(_) = workload {
            at(parse_path("spec.rayClusterConfig"), Form::RayCluster);
        } else if let Workload::PodCliqueSet(set) = workload {
            for index in 0..set.spec.template.cliques.len() {
                let path = format!("spec.template.cliques[{index}].spec");
                at(parse_path(&path), Form::Clique);
            }
        }
    } else if object.kind() == Kind::Pod {
        at(Path::new(), Form::Object);
    } else if let Object::Scheduling(of) = object
        && let Some(form) = Form::of_scheduling(of.kind(), version.unwrap_or_default())
    {
        at(Path::new(), Form::Object);
        at(parse_path("spec"), form);
    }
    for part in object.pod_parts() {
        at(parse_path(&part.at), Form::Pod);
    }
    if version.is_some_and(|version| version == "resource.k8s.io/v1beta1") {
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
        let fields: Vec<&str> = form.fields().split_ascii_whitespace().collect();
        let has = match fields.as_slice() {
            [only] => format!("only `{only}`"),
            [one, other] => format!("only `{one}` and `{other}`"),
            _ => "none that is nearly so".to_owned(),
        };
        let message =
            format!("The field `{key}` is not known here: {} has {has}. {REFUSED}", form.words());
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
