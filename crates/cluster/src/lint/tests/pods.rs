//! Cases of what admission refuses, and of what pods want of nodes and take of them.

use super::super::Rule;
use super::Case;
use super::rules::{POD, case, clean};

pub(super) fn cases() -> Vec<Case> {
    [admission(), quotas(), amounts(), uncounted(), paths(), nodes(), taints(), ports()]
        .into_iter()
        .flatten()
        .collect()
}

/// The clean world with a pod of its own, and more objects.
fn beside(spec: &str, more: &str) -> String {
    format!(
        "{}---\napiVersion: v1\nkind: Pod\nmetadata: {{name: other}}\nspec:\n{spec}{more}",
        clean()
    )
}

const LIMITS: &str = "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: usual}\nspec: {limits: \
                      [{type: Container, max: {cpu: 2}}]}\n";
const RUNTIME: &str =
    "---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: nvidia}\n";
const QUOTA: &str = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small}\nspec: {hard: \
                     {requests.cpu: 4}}\nstatus: {used: {requests.cpu: 2}}\n";

fn admission() -> Vec<Case> {
    let claimed = clean()
        + "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: devices}\nspec: {hard: \
           {gpu.example.com.deviceclass.resource.k8s.io/devices: 3}}\nstatus: {used: \
           {gpu.example.com.deviceclass.resource.k8s.io/devices: 2}}\n";
    vec![
        case(
            Rule::AdmissionRefused,
            "spec.runtimeClassName",
            &["The API server would refuse the pod", "RuntimeClass nvidea does not exist"],
            beside("  runtimeClassName: nvidea\n  containers: [{name: c}]\n", RUNTIME),
            ("nvidea", "nvidia"),
        ),
        case(
            Rule::AdmissionRefused,
            "spec",
            &["LimitRange usual allows at most 2 of cpu", "container c has a limit of 3"],
            beside("  containers: [{name: c, resources: {limits: {cpu: 3}}}]\n", LIMITS),
            ("cpu: 3", "cpu: 2"),
        ),
        case(
            Rule::QuotaExceeded,
            "",
            &["ResourceQuota default/small", "it allows 4 of requests.cpu: 2 in use", "asks for 2"],
            beside("  containers: [{name: c, resources: {limits: {cpu: 2}}}]\n", QUOTA),
            ("cpu: 2}}}]", "cpu: 1}}}]"),
        ),
        case(
            Rule::QuotaExceeded,
            "",
            &[
                "would refuse a claim of the pod, and the pod would wait",
                "claims that are still to be made ask for 2",
            ],
            claimed,
            (
                "used: {gpu.example.com.deviceclass.resource.k8s.io/devices: 2",
                "used: {gpu.example.com.deviceclass.resource.k8s.io/devices: 1",
            ),
        ),
    ]
}

fn amounts() -> Vec<Case> {
    let with = |resources: &str| {
        beside(&format!("  containers: [{{name: c, resources: {{{resources}}}}}]\n"), "")
    };
    vec![
        case(
            Rule::ResourceFraction,
            "spec.containers[0].resources.limits[\"example.com/gpu\"]",
            &["asks for 500m of example.com/gpu", "whole units", "a share"],
            with("limits: {example.com/gpu: 0.5}"),
            ("0.5", "1"),
        ),
        case(
            Rule::ResourceFraction,
            "spec.containers[0].resources.requests[\"example.com/gpu\"]",
            &["asks for 1500m of example.com/gpu"],
            with("requests: {example.com/gpu: 1500m}, limits: {example.com/gpu: 2}"),
            ("1500m", "2"),
        ),
        case(
            Rule::ResourceLimitMissing,
            "spec.containers[0].resources.requests[\"example.com/gpu\"]",
            &["requests 1 of example.com/gpu and sets no limit"],
            with("requests: {example.com/gpu: 1}"),
            ("requests: {example", "limits: {example"),
        ),
        case(
            Rule::ResourceLimitMissing,
            "spec.containers[0].resources.requests[\"example.com/gpu\"]",
            &["can't be overcommitted"],
            with("requests: {example.com/gpu: 1}, limits: {memory: 1Gi}"),
            ("limits: {memory: 1Gi}", "limits: {example.com/gpu: 1}"),
        ),
        case(
            Rule::ResourceLimitDiffers,
            "spec.containers[0].resources.requests[\"example.com/gpu\"]",
            &["requests 1 of example.com/gpu and is limited to 2", "must be equal"],
            with("requests: {example.com/gpu: 1}, limits: {example.com/gpu: 2}"),
            ("limits: {example.com/gpu: 2}", "limits: {example.com/gpu: 1}"),
        ),
        case(
            Rule::ResourceLimitDiffers,
            "spec.containers[0].resources.requests[\"example.com/gpu\"]",
            &["requests 0 of example.com/gpu and is limited to 1"],
            with("requests: {example.com/gpu: 0}, limits: {example.com/gpu: 1}"),
            ("requests: {example.com/gpu: 0}, ", ""),
        ),
    ]
}

fn uncounted() -> Vec<Case> {
    let asks = "resources: {limits: {example.com/gpu: 1}}, ";
    let env = "env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]";
    let privileged = "securityContext: {privileged: true}";
    let with = |what: &str| beside(&format!("  containers: [{{name: c, {what}}}]\n"), "");
    vec![
        case(
            Rule::DevicesByEnvironment,
            "spec.containers[0].env",
            &["sets NVIDIA_VISIBLE_DEVICES", "nobody counts", "by a ResourceClaim"],
            with(env),
            ("value: all", "value: void"),
        ),
        case(
            Rule::DevicesByEnvironment,
            "spec.containers[0].env",
            &["the pod asks for devices", "the container's own value wins"],
            with(&format!("{asks}{env}")),
            ("value: all", "value: none"),
        ),
        case(
            Rule::DevicesByPrivilege,
            "spec.containers[0].securityContext.privileged",
            &["is privileged", "it sees every GPU of its node"],
            with(privileged),
            ("privileged: true", "privileged: false"),
        ),
        case(
            Rule::DevicesByPrivilege,
            "spec.containers[0].securityContext.privileged",
            &["ask for them by a ResourceClaim"],
            with(privileged),
            ("securityContext", &format!("{asks}securityContext")),
        ),
    ]
}

fn quotas() -> Vec<Case> {
    let of = |name: &str| {
        format!(
            "{}---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: gpus}}\nspec: {{hard: {{{name}: \
             8}}}}\n",
            clean()
        )
    };
    vec![
        case(
            Rule::QuotaCountsNothing,
            "spec.hard[\"example.com/gpu\"]",
            &["counts nothing under example.com/gpu", "requests.example.com/gpu alone"],
            of("example.com/gpu"),
            ("{example.com/gpu", "{requests.example.com/gpu"),
        ),
        case(
            Rule::QuotaCountsNothing,
            "spec.hard[\"limits.example.com/gpu\"]",
            &["requests.example.com/gpu alone"],
            of("limits.example.com/gpu"),
            ("{limits.", "{requests."),
        ),
        case(
            Rule::QuotaCountsNothing,
            "spec.hard[\"requests.example.com/gpus\"]",
            &["counts example.com/gpus", "`requests.example.com/gpu` is meant"],
            of("requests.example.com/gpus"),
            ("requests.example.com/gpus", "requests.example.com/gpu"),
        ),
        case(
            Rule::QuotaCountsNothing,
            "spec.hard[\"gpus.example.com.deviceclass.resource.k8s.io/devices\"]",
            &["DeviceClass gpus.example.com, which does not exist"],
            of("gpus.example.com.deviceclass.resource.k8s.io/devices"),
            ("gpus.example", "gpu.example"),
        ),
    ]
}

/// Device files of the node as volumes.
fn paths() -> Vec<Case> {
    let volume =
        "  volumes: [{name: tmp, emptyDir: {}}, {name: gpu, hostPath: {path: /dev/nvidia0}}]\n";
    let with = |what: &str| beside(&format!("  containers: [{{name: c{what}}}]\n{volume}"), "");
    vec![
        case(
            Rule::DevicesByHostPath,
            "spec.volumes[1].hostPath.path",
            &["Volume gpu is /dev/nvidia0 of the node", "gives no right to open it"],
            with(""),
            ("/dev/nvidia0", "/dev/shm"),
        ),
        case(
            Rule::DevicesByHostPath,
            "spec.volumes[1].hostPath.path",
            &["A privileged container opens it"],
            with(", securityContext: {privileged: true}"),
            ("/dev/nvidia0", "/dev/driver"),
        ),
    ]
}

fn nodes() -> Vec<Case> {
    let plain = |what: &str| beside(&format!("  containers: [{{name: c}}]\n{what}"), "");
    let affine = |expression: &str| {
        plain(&format!(
            "  affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             {{nodeSelectorTerms: [{{matchExpressions: [{expression}]}}]}}}}}}\n"
        ))
    };
    let affinity = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    vec![
        case(
            Rule::NodeSelectorUnmet,
            "spec.nodeSelector[\"a\"]",
            &["No node of the input has the label a=c", "Nodes have `b`."],
            plain("  nodeSelector: {a: c}\n"),
            ("{a: c}", "{a: b}"),
        ),
        case(
            Rule::NodeSelectorUnmet,
            "spec.nodeSelector[\"zone\"]",
            &["None has the key zone"],
            plain("  nodeSelector: {zone: b}\n"),
            ("{zone: b}", "{}"),
        ),
        case(
            Rule::NodeAffinityUnmet,
            affinity,
            &["No node meets `a In c`", "Nodes have `b`."],
            affine("{key: a, operator: In, values: [c]}"),
            ("values: [c]", "values: [c, b]"),
        ),
        case(
            Rule::NodeAffinityUnmet,
            affinity,
            &["No node meets `a DoesNotExist`"],
            affine("{key: a, operator: DoesNotExist}"),
            ("DoesNotExist", "Exists"),
        ),
    ]
}

fn taints() -> Vec<Case> {
    let tainted = clean().replacen(
        "labels: {a: b}}",
        "labels: {a: b}}\nspec: {taints: [{key: example.com/dedicated, effect: PreferNoSchedule}]}",
        1,
    );
    let tolerating = |key: &str| {
        POD.replace(
            "spec:\n",
            &format!("spec:\n  tolerations: [{{key: {key}, operator: Exists}}]\n"),
        )
    };
    let tolerated = format!(
        "{tainted}---\n{}",
        tolerating("example.com/dedicatet").replace("trainer", "other")
    );
    vec![
        case(
            Rule::TolerationMisspelt,
            "spec.tolerations[0].key",
            &[
                "a taint with the key example.com/dedicatet",
                "nodes have the taint example.com/dedicated",
            ],
            tolerated.clone(),
            ("dedicatet", "dedicated"),
        ),
        case(
            Rule::TolerationMisspelt,
            "spec.tolerations[0].key",
            &["which is not tolerated"],
            tolerated,
            ("example.com/dedicatet", "another.example.com/thing"),
        ),
    ]
}

fn ports() -> Vec<Case> {
    let job = |count: u32, node: &str| {
        format!(
            "{}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {{replicas: \
             {count}, template: {{spec: {{nodeSelector: {{a: {node}}}, containers: [{{name: c, ports: \
             [{{containerPort: 80, hostPort: 80}}]}}]}}}}}}\n",
            clean()
        )
    };
    vec![
        case(
            Rule::HostPortLimitsReplicas,
            "spec.template.spec.containers[0].ports",
            &["it wants 2 pods, and 1 node of the input is open to it"],
            job(2, "b"),
            ("replicas: 2", "replicas: 1"),
        ),
        case(
            Rule::HostPortLimitsReplicas,
            "spec.template.spec.containers[0].ports",
            &["it wants 1 pod, and 0 nodes of the input are open to it"],
            job(1, "c"),
            ("{a: c}", "{a: b}"),
        ),
        case(
            Rule::HostPortLimitsReplicas,
            "spec.template.spec.containers[0].ports",
            &["it wants 2 pods, and 1 node of the input is open to it"],
            job(2, "b").replace(", hostPort: 80", "").replace(
                "containers: [{name: c, ports",
                "hostNetwork: true, containers: [{name: c, ports",
            ),
            ("hostNetwork: true", "hostNetwork: false"),
        ),
        case(
            Rule::HostPortLimitsReplicas,
            "spec.template.spec.initContainers[0].ports",
            &["it wants 2 pods, and 1 node of the input is open to it"],
            job(2, "b").replace(
                "containers: [{name: c, ports",
                "containers: [{name: m}], initContainers: [{name: c, restartPolicy: Always, ports",
            ),
            ("restartPolicy: Always, ", ""),
        ),
        case(
            Rule::HostPortLimitsReplicas,
            "spec.template.spec.containers[0].ports",
            &["it wants 2 pods, and 1 node of the input is open to it"],
            job(2, "b")
                + "---\napiVersion: v1\nkind: Node\nmetadata: {name: n9, labels: {a: b}}\nspec: {taints: \
                   [{key: own, effect: NoSchedule}]}\n",
            ("key: own", "key: node.kubernetes.io/not-ready"),
        ),
    ]
}
