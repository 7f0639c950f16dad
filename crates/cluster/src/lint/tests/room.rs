//! Cases of spread constraints, of volumes that pin pods, and of what nodes say of their GPUs.

use super::super::Rule;
use super::Case;
use super::rules::case;

pub(super) fn cases() -> Vec<Case> {
    [spread(), volumes(), counters()].into_iter().flatten().collect()
}

const KEY: &str = "spec.template.spec.topologySpreadConstraints[0].topologyKey";
const DOMAINS: &str = "spec.template.spec.topologySpreadConstraints[0].minDomains";
const SKEW: &str = "spec.template.spec.topologySpreadConstraints[0].maxSkew";

fn node(name: &str, zone: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{zone: {zone}, name: {name}}}}}\nspec: \
         {{{spec}}}\nstatus: {{allocatable: {{cpu: 8, memory: 8Gi, pods: 10, example.com/gpu: 4}}}}\n---\n"
    )
}

/// Three zones of one node each, of which one is tainted.
fn fleet() -> String {
    let taint = "taints: [{key: control-plane, effect: NoSchedule}]";
    [node("n1", "a", ""), node("n2", "b", ""), node("n3", "c", taint)].concat()
}

fn spread() -> Vec<Case> {
    let with = |constraint: &str, replicas: u32| {
        format!(
            "{}apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: \
             {replicas}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      \
             topologySpreadConstraints:\n      - {{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: \
             {{matchLabels: {{app: web}}}}, {constraint}}}\n      containers: [{{name: c}}]\n",
            fleet()
        )
    };
    vec![
        case(
            Rule::SpreadUnmet,
            KEY,
            &["has the label zones", "If `zone` is meant"],
            with("topologyKey: zones", 1),
            ("topologyKey: zones", "topologyKey: zone"),
        ),
        case(
            Rule::SpreadUnmet,
            KEY,
            &["kept out by the node selector"],
            with("topologyKey: rack", 1)
                .replace("zone: c,", "zone: c, rack: r,")
                .replace("containers:", "nodeSelector: {zone: a}\n      containers:"),
            ("nodeSelector: {zone: a}", "nodeSelector: {zone: c}"),
        ),
        case(
            Rule::SpreadUnmet,
            DOMAINS,
            &["wants 4 domains of zone", "has 3 domains", "2 of the 3 pods"],
            with("topologyKey: zone, minDomains: 4", 3),
            ("replicas: 3", "replicas: 2"),
        ),
        case(
            Rule::SpreadUnmet,
            SKEW,
            &["The domain `c` of zone counts", "at most 1 pod", "2 of the 3 pods"],
            with("topologyKey: zone", 3),
            ("topologyKey: zone", "topologyKey: zone, nodeTaintsPolicy: Honor"),
        ),
        case(
            Rule::SpreadUnmet,
            SKEW,
            &["for its nodes are cordoned or tainted", "It stays as it is"],
            with("topologyKey: zone", 3),
            ("replicas: 3", "replicas: 2"),
        ),
        // Those that are there count: the zone a is full.
        case(
            Rule::SpreadUnmet,
            SKEW,
            &["1 of the 2 pods that are to be made fit beside the 1 pod that counts"],
            with("topologyKey: zone", 2)
                + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: old, uid: u, labels: {app: web}}\nspec: \
                   {nodeName: n1, containers: [{name: c}]}\n",
            ("labels: {app: web}}\nspec: {nodeName", "labels: {app: old}}\nspec: {nodeName"),
        ),
        // Pods that the constraint does not mean are kept apart by nothing.
        case(
            Rule::SpreadUnmet,
            SKEW,
            &["nodeTaintsPolicy: Honor"],
            with("topologyKey: zone", 3),
            ("matchLabels: {app: web}", "matchLabels: {app: other}"),
        ),
    ]
}

fn volumes() -> Vec<Case> {
    let pod = |name: &str, spec: &str, gpus: u32| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{spec}containers: [{{name: c, \
             resources: {{limits: {{example.com/gpu: {gpus}}}}}}}]}}\n"
        )
    };
    let volume = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk, uid: v}\nspec:\n  capacity: \
                  {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  storageClassName: local\n  claimRef: \
                  {namespace: default, name: data, uid: c}\n  nodeAffinity: {required: {nodeSelectorTerms: \
                  [{matchExpressions: [{key: name, operator: In, values: [n1]}]}]}}\n---\napiVersion: \
                  v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, uid: c, annotations: \
                  {pv.kubernetes.io/bind-completed: 'yes'}}\nspec: {volumeName: disk, storageClassName: \
                  local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    let mounts = "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}], ";
    let there = pod("there", "nodeName: n1, ", 2).replace("name: there", "name: there, uid: there");
    let world = fleet() + volume + &there + &pod("waits", mounts, 3);
    vec![
        case(
            Rule::VolumePinsPods,
            "spec.volumes",
            &[
                "PersistentVolumeClaim data (PersistentVolume disk)",
                "from n1 alone",
                "2 of 4 example.com/gpu free where a pod asks for 3",
                "Other nodes have room (`n2`)",
            ],
            world.clone(),
            ("example.com/gpu: 3", "example.com/gpu: 2"),
        ),
        case(
            Rule::VolumePinsPods,
            "spec.volumes",
            &["copy the data"],
            world.clone(),
            ("values: [n1]", "values: [n1, n2]"),
        ),
        // Devices of claims: the only one of n1 is held, and n2 has a free one.
        case(
            Rule::VolumePinsPods,
            "spec.volumes",
            &["from n1 alone", "devices that their claims ask for are in use", "(`n2`)"],
            fleet() + volume + &by_claims(mounts),
            ("device: gpu-0}]}}", "device: gpu-9}]}}"),
        ),
        // A volume that says its zone by a label alone.
        case(
            Rule::VolumePinsPods,
            "spec.volumes",
            &["from n1 alone"],
            world
                .replace("labels: {zone:", "labels: {topology.kubernetes.io/zone:")
                .replace(
                    "metadata: {name: disk, uid: v}",
                    "metadata: {name: disk, uid: v, labels: {topology.kubernetes.io/zone: a}}",
                )
                .replace("values: [n1]", "values: [n1, n2, n3]"),
            ("zone: a}}\nspec:\n  capacity", "zone: a__b}}\nspec:\n  capacity"),
        ),
    ]
}

fn counters() -> Vec<Case> {
    let node = |labels: &str, capacity: &str| {
        format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: n1, labels: {{{labels}}}}}\nstatus: {{capacity: {{cpu: \
             8, pods: 10{capacity}}}}}\n"
        )
    };
    let gpus = "metadata.labels[\"nvidia.com/gpu.count\"]";
    let counted = node("nvidia.com/gpu.count: '8'", ", nvidia.com/gpu: 7");
    let parts = node(
        "nvidia.com/gpu.count: '8', nvidia.com/mig-1g.10gb.count: '14'",
        ", nvidia.com/mig-1g.10gb: 7",
    );
    let twice = counted.replace("8'", "2'").replace("gpu: 7", "gpu: 2")
        + "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: n1-gpu}\nspec:\n  driver: \
           gpu.nvidia.com\n  nodeName: n1\n  pool: {name: n1, generation: 1, resourceSliceCount: 1}\n  \
           devices:\n  - {name: gpu-0, attributes: {type: {string: gpu}}}\n  - {name: gpu-1, attributes: \
           {type: {string: gpu}}}\n";
    vec![
        case(
            Rule::LabelContradictsCounter,
            gpus,
            &["says 8", "the device plugin counts 7 nvidia.com/gpu", "a GPU is lost"],
            counted.clone(),
            ("gpu: 7", "gpu: 8"),
        ),
        case(
            Rule::LabelContradictsCounter,
            gpus,
            &["the node counts no nvidia.com/gpu", "whether the device plugin runs"],
            node("nvidia.com/gpu.count: '8'", ""),
            ("pods: 10", "pods: 10, nvidia.com/gpu.shared: 8"),
        ),
        case(
            Rule::LabelContradictsCounter,
            gpus,
            &["says 2 with 4 replicas each", "counts 2 nvidia.com/gpu"],
            node("nvidia.com/gpu.count: '2', nvidia.com/gpu.replicas: '4'", ", nvidia.com/gpu: 2"),
            ("gpu: 2}", "gpu: 8}"),
        ),
        case(
            Rule::LabelContradictsCounter,
            "metadata.labels[\"nvidia.com/mig-1g.10gb.count\"]",
            &["counts 7 nvidia.com/mig-1g.10gb"],
            parts,
            ("10gb: 7", "10gb: 14"),
        ),
        case(
            Rule::DevicesOfferedTwice,
            "status.capacity",
            &["counts 2 nvidia.com/gpu", "publishes 2 GPUs", "held twice"],
            twice,
            (", nvidia.com/gpu: 2", ""),
        ),
    ]
}

/// Two nodes with a device each, of which that of n1 is held, and a pod that asks for one by a claim.
fn by_claims(mounts: &str) -> String {
    let slice = |node: &str| {
        format!(
            "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: {node}, uid: \
             {node}}}\nspec: {{driver: gpu.example.com, nodeName: {node}, pool: {{name: {node}, generation: 1, \
             resourceSliceCount: 1}}, devices: [{{name: gpu-0}}]}}\n"
        )
    };
    let held = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: held, uid: \
                h}\nspec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: any}}]}}\nstatus: \
                {allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: n1, device: \
                gpu-0}]}}, reservedFor: [{resource: pods, name: there, uid: there}]}\n---\napiVersion: \
                v1\nkind: Pod\nmetadata: {name: there, uid: there}\nspec: {nodeName: n1, containers: [{name: \
                c, resources: {claims: [{name: g}]}}], resourceClaims: [{name: g, resourceClaimName: held}]}\n";
    let asks = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: any, uid: \
                a}\nspec: {}\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: \
                {name: one}\nspec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: \
                any}}]}}}\n";
    let pod = format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: waits}}\nspec: {{{mounts}containers: [{{name: c, \
         resources: {{claims: [{{name: g}}]}}}}], resourceClaims: [{{name: g, resourceClaimTemplateName: \
         one}}]}}\n"
    );
    [&slice("n1"), &slice("n2"), held, asks, &pod].concat()
}
