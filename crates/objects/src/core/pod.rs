//! Pods and the pod templates of workloads: what scheduling reads of them. Probes, commands and all
//! but one word of the environment never are.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ImageName, LabelSelector, NodeAffinity, PreemptionPolicy, ResourceList, TaintEffect};
use crate::macros::{Field, flags, object, words};
use crate::meta::{Condition, Labels, ObjectMeta};
use crate::storage::PodVolumes;

object! {
    /// A pod.
    pub struct Pod {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PodSpec,
        /// What is.
        pub status: PodStatus,
    }

    /// The pod that a workload makes.
    pub struct PodTemplateSpec {
        /// Labels and annotations of the pods.
        pub metadata: ObjectMeta,
        /// Spec of the pods.
        pub spec: PodSpec,
    }

    /// What a pod wants.
    pub struct PodSpec {
        /// Who places the pod; empty means `default-scheduler`.
        pub scheduler_name: String,
        /// Where the pod is; empty while it waits.
        pub node_name: String,
        /// Labels that the node must have.
        pub node_selector: Labels,
        /// Affinity.
        pub affinity: Option<Affinity>,
        /// Tolerations.
        pub tolerations: Vec<Toleration>,
        /// Priority as admission resolved it; none in raw manifests.
        pub priority: Option<i32>,
        /// Name of the priority class.
        pub priority_class_name: String,
        /// Whether the pod may preempt; none in raw manifests.
        pub preemption_policy: Option<PreemptionPolicy>,
        /// While there is any, the pod is not scheduled.
        pub scheduling_gates: Vec<PodSchedulingGate>,
        /// The group that the pod is scheduled with.
        pub scheduling_group: Option<PodSchedulingGroup>,
        /// The same in Kubernetes 1.35: a group that stands in a Workload.
        pub workload_ref: Option<PodWorkloadRef>,
        /// Containers.
        pub containers: Vec<Container>,
        /// Init containers; those that always restart are sidecars.
        pub init_containers: Vec<Container>,
        /// What the runtime class adds.
        pub overhead: ResourceList,
        /// Requests of the pod as a whole.
        pub resources: Option<ResourceRequirements>,
        /// Claims that the pod uses.
        pub resource_claims: Vec<PodResourceClaim>,
        /// Grace at deletion in seconds; none means 30.
        pub termination_grace_period_seconds: Option<i64>,
        /// Limit of the run in seconds.
        pub active_deadline_seconds: Option<i64>,
        /// When containers restart.
        pub restart_policy: RestartPolicy,
        /// Name of the runtime class.
        pub runtime_class_name: Option<String>,
        /// Whom it runs as; empty is the account `default`.
        pub service_account_name: String,
        /// Whether the pod has the node's network, and each port of a container is one of the node.
        pub host_network: bool,
        /// Whether the pod sees the processes of its node.
        #[serde(rename = "hostPID")]
        pub host_pid: bool,
        /// Whether the pod shares memory and signals with the processes of its node.
        #[serde(rename = "hostIPC")]
        pub host_ipc: bool,
        /// What its containers may do, where they do not say it themselves.
        pub security_context: PodSecurityContext,
        /// How pods are spread over domains.
        pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
        /// The volumes that decide where the pod can be.
        pub volumes: PodVolumes,
        /// Whether the pod's users are those of the node; none is that they are.
        pub host_users: Option<bool>,
    }

    /// Affinity of a pod.
    pub struct Affinity {
        /// To nodes.
        pub node_affinity: Option<NodeAffinity>,
        /// To nodes with other pods.
        pub pod_affinity: PodAffinity,
        /// Away from nodes with other pods.
        pub pod_anti_affinity: PodAffinity,
    }

    /// Affinity to pods, or anti-affinity.
    pub struct PodAffinity {
        /// What must hold, all of it.
        pub required_during_scheduling_ignored_during_execution: Vec<PodAffinityTerm>,
        /// What is preferred.
        pub preferred_during_scheduling_ignored_during_execution: Vec<WeightedPodAffinityTerm>,
    }

    /// Pods in whose domain a pod is to be, or not to be.
    pub struct PodAffinityTerm {
        /// Which pods; none is no pod, an empty one every pod.
        pub label_selector: Option<LabelSelector>,
        /// In which namespaces; none of both fields is the pod's own.
        pub namespaces: Vec<String>,
        /// In which other namespaces, by their labels.
        pub namespace_selector: Option<LabelSelector>,
        /// The node label whose values are the domains.
        pub topology_key: String,
        /// Labels whose values the API server adds to the selector from the pod's own.
        pub match_label_keys: Vec<String>,
        /// Labels whose values the API server excludes likewise.
        pub mismatch_label_keys: Vec<String>,
    }

    /// A term with its weight.
    pub struct WeightedPodAffinityTerm {
        /// 1 to 100.
        pub weight: i32,
        /// The term.
        pub pod_affinity_term: PodAffinityTerm,
    }

    /// How evenly pods are spread over the domains of a node label.
    pub struct TopologySpreadConstraint {
        /// How many pods more than in the emptiest domain there may be.
        pub max_skew: i32,
        /// The node label whose values are the domains.
        pub topology_key: String,
        /// Whether it is required or a wish.
        pub when_unsatisfiable: UnsatisfiableConstraintAction,
        /// Which pods of the namespace are counted.
        pub label_selector: Option<LabelSelector>,
        /// With fewer domains the emptiest counts as empty; none means 1.
        pub min_domains: Option<i32>,
        /// Whether nodes outside the pod's node selector and affinity count; none means `Honor`.
        pub node_affinity_policy: Option<NodeInclusionPolicy>,
        /// Whether nodes with taints that the pod does not tolerate count; none means `Ignore`.
        pub node_taints_policy: Option<NodeInclusionPolicy>,
        /// Labels whose values are added to the selector from the pod's own.
        pub match_label_keys: Vec<String>,
    }

    /// A gate that keeps a pod from being scheduled.
    pub struct PodSchedulingGate {
        /// Name.
        pub name: String,
    }

    /// The group of a Workload that the pod is scheduled with (Kubernetes 1.35).
    pub struct PodWorkloadRef {
        /// Name of the Workload.
        pub name: String,
        /// Name of the group in it.
        pub pod_group: String,
        /// Which of several groups of that name.
        pub pod_group_replica_key: String,
    }

    /// Membership of a pod in a `PodGroup`.
    pub struct PodSchedulingGroup {
        /// Name of the `PodGroup` in the pod's namespace.
        pub pod_group_name: Option<String>,
    }

    /// A toleration of a node's or a device's taint.
    pub struct Toleration {
        /// Key; empty with `Exists` means every key.
        pub key: String,
        /// Relation.
        pub operator: TolerationOperator,
        /// Value.
        pub value: String,
        /// Effect; unset means every effect.
        pub effect: TaintEffect,
        /// How long a `NoExecute` taint is borne, in seconds; no part of scheduling.
        pub toleration_seconds: Option<i64>,
    }

    /// A container or an init container.
    pub struct Container {
        /// Name.
        pub name: String,
        /// Its image.
        pub image: ImageName,
        /// Of an init container `Always` makes a sidecar.
        pub restart_policy: Option<RestartPolicy>,
        /// Resources.
        pub resources: ResourceRequirements,
        /// Its ports.
        pub ports: Vec<ContainerPort>,
        /// Whether its exit may restart all containers.
        pub restart_policy_rules: RestartsAll,
        /// The volumes that it mounts.
        pub volume_mounts: VolumeMounts,
        /// The volumes that it has as devices.
        pub volume_devices: VolumeMounts,
        /// What it may do.
        pub security_context: ContainerSecurity,
        /// Whether its environment asks for devices past all counting.
        pub env: DeviceEnvironment,
    }

    /// A port of a container, perhaps one of the node too.
    pub struct ContainerPort {
        /// Port of the container.
        pub container_port: i32,
        /// Port of the node; 0 is none.
        pub host_port: i32,
        /// Address of the node; empty is every one.
        #[serde(rename = "hostIP")]
        pub host_ip: String,
        /// `TCP`, `UDP` or `SCTP`; empty is `TCP`.
        pub protocol: String,
        /// What others call it; empty is nothing.
        pub name: String,
    }

    /// What a container may do.
    pub struct ContainerSecurity {
        /// It may do all that the node may, and sees all its devices.
        pub privileged: bool,
        /// Whether it may get more rights than it was started with; none is that it may.
        pub allow_privilege_escalation: Option<bool>,
        /// Rights of root, one by one.
        pub capabilities: Capabilities,
        /// Whether its user must not be root.
        pub run_as_non_root: Option<bool>,
        /// Its user.
        pub run_as_user: Option<i64>,
        /// Which calls of the kernel it may make.
        pub seccomp_profile: Option<SeccompProfile>,
    }

    /// Rights of root that a container gets and loses.
    pub struct Capabilities {
        /// Those that it gets.
        pub add: Vec<String>,
        /// Those that it loses.
        pub drop: Vec<String>,
    }

    /// What the containers of a pod may do.
    pub struct PodSecurityContext {
        /// Whether their user must not be root.
        pub run_as_non_root: Option<bool>,
        /// Their user.
        pub run_as_user: Option<i64>,
        /// Which calls of the kernel they may make.
        pub seccomp_profile: Option<SeccompProfile>,
    }

    /// Which calls of the kernel a container may make.
    pub struct SeccompProfile {
        /// `RuntimeDefault`, `Localhost` or `Unconfined`.
        pub r#type: String,
    }

    /// Requests, limits and claims of a container, or of the pod as a whole.
    pub struct ResourceRequirements {
        /// What is reserved.
        pub requests: ResourceList,
        /// What may be used.
        pub limits: ResourceList,
        /// Which of the pod's claims the container uses.
        pub claims: Vec<ResourceClaimUse>,
    }

    /// The use of one of the pod's claims by a container (`ResourceClaim` in `core/v1`).
    pub struct ResourceClaimUse {
        /// Name in `spec.resourceClaims`.
        pub name: String,
        /// The request in it; empty means all.
        pub request: String,
    }

    /// A claim of a pod; exactly one of the two names is set.
    pub struct PodResourceClaim {
        /// Name in the pod.
        pub name: String,
        /// A claim in the pod's namespace.
        pub resource_claim_name: Option<String>,
        /// A template in the pod's namespace, from which the pod gets a claim of its own.
        pub resource_claim_template_name: Option<String>,
    }

    /// What is known of a pod.
    pub struct PodStatus {
        /// Where in its life the pod is.
        pub phase: PodPhase,
        /// The node that is promised to the pod.
        pub nominated_node_name: String,
        /// Conditions.
        pub conditions: Vec<Condition>,
        /// Containers.
        pub container_statuses: Vec<ContainerStatus>,
        /// Init containers.
        pub init_container_statuses: Vec<ContainerStatus>,
        /// Resources of the pod as a whole that are in force.
        pub resources: Option<ResourceRequirements>,
        /// Resources of the pod as a whole that the node has granted.
        pub allocated_resources: ResourceList,
        /// The claims made from templates.
        pub resource_claim_statuses: Vec<PodResourceClaimStatus>,
        /// The claim made for extended resources that a device class serves.
        pub extended_resource_claim_status: Option<PodExtendedResourceClaimStatus>,
        /// When the kubelet took the pod.
        pub start_time: Option<Timestamp>,
    }

    /// What is known of a container.
    pub struct ContainerStatus {
        /// Name.
        pub name: String,
        /// What the node has granted; none if the kubelet does not say.
        pub allocated_resources: Option<ResourceList>,
        /// What is in force; none if the kubelet does not say.
        pub resources: Option<ResourceRequirements>,
    }

    /// The claim that was made for an entry of `spec.resourceClaims`.
    pub struct PodResourceClaimStatus {
        /// Name in the pod.
        pub name: String,
        /// Name of the claim; none if no claim is needed.
        pub resource_claim_name: Option<String>,
    }

    /// The claim that was made for the pod's extended resources.
    pub struct PodExtendedResourceClaimStatus {
        /// Name of the claim.
        pub resource_claim_name: String,
        /// Which request serves which container.
        pub request_mappings: Vec<ContainerExtendedResourceRequest>,
    }

    /// A request of that claim.
    pub struct ContainerExtendedResourceRequest {
        /// Container.
        pub container_name: String,
        /// Extended resource.
        pub resource_name: String,
        /// Request in the claim.
        pub request_name: String,
    }
}

flags! {
    /// Whether `NVIDIA_VISIBLE_DEVICES` names devices: the container runtime injects them, whoever
    /// holds them. Nothing else of the environment is kept.
    pub struct DeviceEnvironment: Variable, |variable| {
        let named = variable.value.as_deref().is_some_and(|v| !["", "none", "void"].contains(&v));
        variable.name == "NVIDIA_VISIBLE_DEVICES" && named
    };
    /// Whether a rule restarts all containers of the pod.
    pub struct RestartsAll: RestartRule, |rule| {
        rule.action.as_deref() == Some("RestartAllContainers")
    };
}

/// A variable of a container's environment.
#[derive(Deserialize)]
struct Variable {
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: Option<String>,
}

/// A rule on how a container restarts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RestartRule {
    #[serde(default)]
    action: Option<String>,
}

/// The volumes that a container uses, by their names in the pod. Where it has them is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeMounts {
    /// Their names, in the container's order.
    pub names: Box<[Box<str>]>,
    /// Whether one is mounted with options of the bind mount.
    pub bind_options: bool,
}

/// A volume mounted by a container.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mount {
    #[serde(default)]
    name: Box<str>,
    #[serde(default)]
    bind_mount_options: Option<Vec<IgnoredAny>>,
}

impl Field<'_> for VolumeMounts {}

impl Serialize for VolumeMounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names.iter().map(|name| BTreeMap::from([("name", name)])))
    }
}

impl<'de> Deserialize<'de> for VolumeMounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keep;
        impl<'de> Visitor<'de> for Keep {
            type Value = VolumeMounts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut entries: A,
            ) -> Result<VolumeMounts, A::Error> {
                let (mut names, mut bind_options) = (Vec::new(), false);
                while let Some(mount) = entries.next_element::<Mount>()? {
                    bind_options |= mount.bind_mount_options.is_some_and(|all| !all.is_empty());
                    names.push(mount.name);
                }
                Ok(VolumeMounts { names: names.into(), bind_options })
            }
        }
        deserializer.deserialize_seq(Keep)
    }
}

words! {
    /// Where in its life a pod is.
    pub enum PodPhase {
        /// Not all containers have started; also pods that wait for a node.
        Pending = "Pending",
        /// At least one container runs.
        Running = "Running",
        /// All ended well; holds no resources.
        Succeeded = "Succeeded",
        /// All ended, one badly; holds no resources.
        Failed = "Failed",
        /// The node does not answer.
        Unknown = "Unknown",
    }

    /// When a container restarts.
    pub enum RestartPolicy {
        /// Always.
        Always = "Always",
        /// If it failed.
        OnFailure = "OnFailure",
        /// Never.
        Never = "Never",
    }

    /// What becomes of a pod that can't be spread as asked.
    pub enum UnsatisfiableConstraintAction {
        /// It waits.
        DoNotSchedule = "DoNotSchedule",
        /// It goes where it skews least.
        ScheduleAnyway = "ScheduleAnyway",
    }

    /// Whether a rule decides which nodes count for spreading.
    pub enum NodeInclusionPolicy {
        /// It does.
        Honor = "Honor",
        /// It does not.
        Ignore = "Ignore",
    }

    /// How a toleration compares with a taint's value.
    pub enum TolerationOperator {
        /// The values are equal.
        Equal = "Equal",
        /// Any value.
        Exists = "Exists",
        /// The taint's integer is greater (alpha).
        Gt = "Gt",
        /// The taint's integer is less (alpha).
        Lt = "Lt",
    }
}

impl PodPhase {
    /// Whether the pod has ended and holds nothing.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Succeeded | Self::Failed => true,
            Self::Pending | Self::Running | Self::Unknown | Self::Other(_) => false,
        }
    }
}
