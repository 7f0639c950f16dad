//! Cases of all families but the limits.

use super::super::Rule;
use super::Case;

/// A world of one node with two devices, a class, a template and a pod, in which nothing is wrong.
pub(super) fn clean() -> String {
    CLEAN.join("---\n")
}

/// Its parts.
pub(super) const CLEAN: [&str; 5] = [NODE, SLICE, CLASS, TEMPLATE, POD];

const NODE: &str = "\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {a: b}}
status: {allocatable: {cpu: 8, memory: 8Gi, pods: 10, example.com/gpu: 4}}
";

const SLICE: &str = "\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpu}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: X1}, domain: {string: a}, driverVersion: {version: 580.1.2}, index: {int: 0}}
    capacity: {memory: {value: 80Gi}}
  - name: gpu-1
    attributes: {model: {string: X1}, domain: {string: a}, driverVersion: {version: 580.1.2}, index: {int: 1}}
    capacity: {memory: {value: 80Gi}}
";

const CLASS: &str = "\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {selectors: [{cel: {expression: 'device.driver == \"gpu.example.com\"'}}]}
";

const TEMPLATE: &str = "\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: pair}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly: {deviceClassName: gpu.example.com, count: 2}
      constraints:
      - matchAttribute: gpu.example.com/domain
";

pub(super) const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  containers: [{name: c, resources: {limits: {cpu: 1}, claims: [{name: gpus, request: gpus}]}}]
  resourceClaims: [{name: gpus, resourceClaimTemplateName: pair}]
";

/// A second driver of the same node, and a template that asks for both.
const NIC: &str = "\
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-nic}
spec:
  driver: nic.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: nic-0, attributes: {example.com/root: {string: '0000:00'}, model: {string: N1}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nic.example.com}
spec: {selectors: [{cel: {expression: 'device.driver == \"nic.example.com\"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: near}
spec:
  spec:
    devices:
      requests:
      - {name: gpu, exactly: {deviceClassName: gpu.example.com}}
      - {name: nic, exactly: {deviceClassName: nic.example.com}}
      constraints: [{matchAttribute: example.com/root}]
";

const SELECTOR: &str = "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression";
const CONSTRAINT: &str = "spec.spec.devices.constraints[0].matchAttribute";
const TOLERATION: &str = "spec.spec.devices.requests[0].exactly.tolerations[0]";

pub(super) fn case(
    rule: Rule,
    path: &'static str,
    says: &'static [&'static str],
    text: String,
    (from, to): (&str, &str),
) -> Case {
    assert!(text.contains(from), "{from}");
    let mended = text.replacen(from, to, 1);
    Case { rule, path, says, text, mended }
}

/// The clean world with a selector in its request.
pub(super) fn selecting(expression: &str) -> String {
    let selector = format!("count: 2, selectors: [{{cel: {{expression: '{expression}'}}}}]");
    clean().replace("count: 2", &selector)
}

/// The clean world with something in place of something.
fn with(from: &str, to: &str) -> String {
    let text = clean();
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

pub(super) fn cases() -> Vec<Case> {
    let families = [
        selectors(),
        outcomes(),
        constraints(),
        pools(),
        claims(),
        fits(),
        labels(),
        hints(),
        input(),
    ];
    families.into_iter().flatten().collect()
}

fn selectors() -> Vec<Case> {
    vec![
        case(
            Rule::SelectorInvalid,
            SELECTOR,
            &["does not compile", "compareTo"],
            selecting("device.capacity[\"gpu.example.com\"].memory >= 40"),
            (".memory >= 40", ".memory.compareTo(quantity(\"40Gi\")) >= 0"),
        ),
        case(
            Rule::SelectorInvalid,
            SELECTOR,
            &["A selector sees one device; to relate devices use matchAttribute"],
            selecting(
                "device.attributes[\"gpu.example.com\"].domain == other.attributes[\"gpu.example.com\"].domain",
            ),
            ("other.attributes[\"gpu.example.com\"].domain", "\"a\""),
        ),
        case(
            Rule::SelectorTypesDiffer,
            SELECTOR,
            &[
                "always ends in an error (no such overload)",
                "driverVersion is a version on 2 devices",
                "compared with a string",
                ".isGreaterThan(semver(",
            ],
            selecting("device.attributes[\"gpu.example.com\"].driverVersion == \"580.1.2\""),
            ("\"580.1.2\"'", "semver(\"580.1.2\")'"),
        ),
        case(
            Rule::SelectorTooCostly,
            SELECTOR,
            &["in the worst case the selector costs", "at most 1000000"],
            selecting(&format!("{0}{0}{0}{0}true))))", "device.driver.split(\"\").all(x, ")),
            (
                "device.driver.split(\"\").all(x, device.driver.split(\"\").all(x, device.driver.split(\"\").all(x, ",
                "(((device.driver != \"\" && ",
            ),
        ),
        case(
            Rule::SelectorTypesDiffer,
            SELECTOR,
            &["is always true", "model is a string", "an int"],
            selecting("device.attributes[\"gpu.example.com\"].model != 3"),
            ("!= 3", "!= \"X2\""),
        ),
        case(
            Rule::SelectorTypesDiffer,
            SELECTOR,
            &["index is an int", "with a string", "without quotes"],
            selecting("device.attributes[\"gpu.example.com\"].index in [\"0\", \"1\"]"),
            ("[\"0\", \"1\"]", "[0, 1]"),
        ),
    ]
}

fn outcomes() -> Vec<Case> {
    vec![
        case(
            Rule::SelectorError,
            SELECTOR,
            &[
                "gpu.example.com/n1/gpu-0",
                "no such key: modell",
                "2 devices",
                "write `device.attributes[\"gpu.example.com\"].model`",
            ],
            selecting("device.attributes[\"gpu.example.com\"].modell == \"X1\""),
            ("modell", "model"),
        ),
        case(
            Rule::SelectorMatchesNone,
            SELECTOR,
            &["none of the 2 devices of class gpu.example.com", "gpu-0", "memory is 80Gi"],
            selecting(
                "device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"81Gi\")) >= 0",
            ),
            ("81Gi", "80Gi"),
        ),
        case(
            Rule::SelectorMatchesNone,
            "spec.selectors[0].cel.expression",
            &["none of the 2 devices of the input", "driver is \"gpu.example.com\""],
            with("device.driver == \"gpu.example.com\"", "device.driver == \"gpu.exampel.com\""),
            ("gpu.exampel.com", "gpu.example.com"),
        ),
    ]
}

fn constraints() -> Vec<Case> {
    let both = format!("{}{NIC}", clean());
    let rooted = |root: &str| {
        let attributes = format!("index: {{int: 0}}, example.com/root: {root}}}");
        both.replacen("index: {int: 0}}", &attributes, 1)
    };
    vec![
        case(
            Rule::AttributeNotPublished,
            CONSTRAINT,
            &[
                "No device of class gpu.example.com (2 devices) publishes",
                "gpu.example.com/nvlinkDomain",
                "nearest name first: `gpu.example.com/domain`",
                "a node agent that publishes the attribute",
                "NodeTopology",
                "phalanx.dev/align: island=required",
            ],
            with("gpu.example.com/domain", "gpu.example.com/nvlinkDomain"),
            ("gpu.example.com/nvlinkDomain", "gpu.example.com/domain"),
        ),
        case(
            Rule::AttributeTypesDiffer,
            CONSTRAINT,
            &[
                "is an int on devices of class gpu.example.com (request gpu)",
                "a string on devices of class nic",
            ],
            rooted("{int: 0}"),
            ("example.com/root: {int: 0}", "example.com/root: {string: '0000:00'}"),
        ),
        case(
            Rule::AttributeValuesApart,
            CONSTRAINT,
            &[
                "On no node",
                "On n1",
                "`pci0000:00 (string)`",
                "`0000:00 (string)`",
                "spelled in two ways",
            ],
            rooted("{string: 'pci0000:00'}"),
            ("pci0000:00", "0000:00"),
        ),
    ]
}

fn pools() -> Vec<Case> {
    let two = format!(
        "{}---\n{}",
        clean(),
        SLICE.replace("n1-gpu", "n1-gpu-old").replace("gpu-0", "gpu-2").replace("gpu-1", "gpu-3")
    );
    let held = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n\
                metadata: {name: held, uid: u}\nspec: {devices: {requests: [{name: r, exactly: \
                {deviceClassName: gpu.example.com}}]}}\nstatus: {allocation: {devices: {results: \
                [{request: r, driver: gpu.example.com, pool: n1, device: gpu-9}]}}}\n";
    vec![
        case(
            Rule::PoolIncomplete,
            "spec.pool.resourceSliceCount",
            &["has 1 of 2 slices of generation 1", "the dump is not whole"],
            with("resourceSliceCount: 1", "resourceSliceCount: 2"),
            ("resourceSliceCount: 2", "resourceSliceCount: 1"),
        ),
        case(
            Rule::SliceStale,
            "spec.pool.generation",
            &["generation 0", "at generation 1 (ResourceSlice n1-gpu)", "2 devices"],
            two.replace("name: n1-gpu-old}\nspec:\n  driver: gpu.example.com\n  nodeName: n1\n  pool: {name: n1, generation: 1",
                        "name: n1-gpu-old}\nspec:\n  driver: gpu.example.com\n  nodeName: n1\n  pool: {name: n1, generation: 0"),
            ("pool: {name: n1, generation: 0", "pool: {name: other, generation: 0"),
        ),
        case(
            Rule::SliceNodeMissing,
            "spec.nodeName",
            &["node n9, which the input does not have"],
            with("nodeName: n1", "nodeName: n9"),
            ("nodeName: n9", "nodeName: n1"),
        ),
        case(
            Rule::PoolInvalid,
            "spec",
            &["contradicts itself", "gpu-1"],
            format!("{}---\n{}", with("resourceSliceCount: 1", "resourceSliceCount: 2"),
                SLICE.replace("n1-gpu", "n1-more").replace("gpu-0", "gpu-7").replace("resourceSliceCount: 1", "resourceSliceCount: 2")),
            ("- name: gpu-1", "- name: gpu-8"),
        ),
        case(
            Rule::AllocationDoubtful,
            "status.allocation",
            &["gpu-9", "no ResourceSlice publishes"],
            format!("{}{held}", clean()),
            ("gpu-9", "gpu-1"),
        ),
    ]
}

fn claims() -> Vec<Case> {
    vec![
        case(
            Rule::DeviceClassMissing,
            "spec.spec.devices.requests[0].exactly.deviceClassName",
            &["Request gpus names DeviceClass gpu.exampel.com", "If `gpu.example.com` is meant"],
            with("deviceClassName: gpu.example.com", "deviceClassName: gpu.exampel.com"),
            ("deviceClassName: gpu.exampel.com", "deviceClassName: gpu.example.com"),
        ),
        case(
            Rule::ClaimTemplateMissing,
            "spec.resourceClaims[0].resourceClaimTemplateName",
            &["ResourceClaimTemplate default/pairs", "If `pair` is meant"],
            with("resourceClaimTemplateName: pair", "resourceClaimTemplateName: pairs"),
            ("resourceClaimTemplateName: pairs", "resourceClaimTemplateName: pair"),
        ),
        case(
            Rule::ClaimMissing,
            "spec.resourceClaims[0].resourceClaimName",
            &["ResourceClaim default/pair", "It has no ResourceClaim in namespace default at all"],
            with("resourceClaimTemplateName: pair", "resourceClaimName: pair"),
            ("resourceClaimName: pair", "resourceClaimTemplateName: pair"),
        ),
        case(
            Rule::FieldValueNotFound,
            "spec.containers[0].resources.claims[0].name",
            &["container c uses the claim gpu,", "If `gpus` is meant"],
            with("claims: [{name: gpus", "claims: [{name: gpu"),
            ("claims: [{name: gpu,", "claims: [{name: gpus,"),
        ),
        case(
            Rule::ClaimRequestMissing,
            "spec.containers[0].resources.claims[0].request",
            &["uses the request nic of claim gpus", "the kubelet can't start", "It has `gpus`"],
            with("request: gpus", "request: nic"),
            ("request: nic", "request: gpus"),
        ),
        case(
            Rule::ClaimUnused,
            "spec.resourceClaims[0]",
            &["No container uses the claim gpus"],
            with(", claims: [{name: gpus, request: gpus}]", ""),
            ("cpu: 1}", "cpu: 1}, claims: [{name: gpus}]"),
        ),
        case(
            Rule::ResourceUnknown,
            "spec.containers[0].resources.limits[\"example.com/gpus\"]",
            &["asks for 1 of example.com/gpus", "If `example.com/gpu` is meant"],
            with("limits: {cpu: 1}", "limits: {cpu: 1, example.com/gpus: 1}"),
            ("example.com/gpus: 1", "example.com/gpu: 1"),
        ),
        case(
            Rule::ResourceUnknown,
            "spec.containers[0].resources.limits[\"deviceclass.resource.kubernetes.io/gpu.exampel.com\"]",
            &["No node of the input has that resource, and no DeviceClass serves it"],
            with(
                "limits: {cpu: 1}",
                "limits: {cpu: 1, deviceclass.resource.kubernetes.io/gpu.exampel.com: 1}",
            ),
            ("gpu.exampel.com: 1", "gpu.example.com: 1"),
        ),
    ]
}

fn fits() -> Vec<Case> {
    let alone =
        clean().replace("resourceClaimTemplateName: pair", "resourceClaimTemplateName: one");
    let one = TEMPLATE.replace("name: pair", "name: one").replace("count: 2", "count: 1");
    let job = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: sweep}\nspec: {template: {spec: \
               {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 9}}}]}}}\n";
    vec![
        case(
            Rule::NeverFits,
            "spec",
            &["No node of the input could ever hold it", "n1"],
            with("cpu: 1}", "cpu: 9}"),
            ("cpu: 9}", "cpu: 8}"),
        ),
        case(
            Rule::NeverFits,
            "spec.template.spec",
            &["could ever hold it"],
            format!("{}{job}", clean()),
            ("cpu: 9}", "cpu: 8}"),
        ),
        case(
            Rule::NeverFits,
            "spec.spec.devices",
            &["could ever hold a pod that uses it", "3"],
            format!("{}---\n{one}", alone.replace("count: 2", "count: 3")),
            ("count: 3", "count: 2"),
        ),
    ]
}

/// A node whose labels and slices are NVIDIA's.
fn labelled(label: &str) -> String {
    let node = NODE.replace("a: b", label);
    let slice = SLICE.replace("gpu.example.com", "gpu.nvidia.com").replace(
        "model: {string: X1}",
        "type: {string: gpu}, productName: {string: NVIDIA H100 80GB HBM3}, architecture: {string: Hopper}, \
         cudaComputeCapability: {version: 9.0.0}, cudaDriverVersion: {version: 13.0.0}",
    );
    format!("{node}---\n{slice}")
}

fn labels() -> Vec<Case> {
    let label = |path, says, wrong: &str, mended: (&str, &str)| {
        case(Rule::LabelContradictsSlices, path, says, labelled(wrong), mended)
    };
    vec![
        label(
            "metadata.labels[\"nvidia.com/gpu.product\"]",
            &["says NVIDIA-A100-SXM4-80GB", "NVIDIA H100 80GB HBM3 on 2 devices"],
            "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB",
            ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3-SHARED"),
        ),
        label(
            "metadata.labels[\"nvidia.com/gpu.count\"]",
            &["says 8", "2 devices", "lost"],
            "nvidia.com/gpu.count: '8'",
            ("'8'", "'2'"),
        ),
        label(
            "metadata.labels[\"nvidia.com/gpu.memory\"]",
            &["says 40960", "80Gi on 2 devices"],
            "nvidia.com/gpu.memory: '40960'",
            ("'40960'", "'81559'"),
        ),
        label(
            "metadata.labels[\"nvidia.com/gpu.family\"]",
            &["ampere", "Hopper"],
            "nvidia.com/gpu.family: ampere",
            ("ampere", "hopper"),
        ),
        label(
            "metadata.labels[\"nvidia.com/gpu.compute.major\"]",
            &["says 8", "9.0.0"],
            "nvidia.com/gpu.compute.major: '8'",
            ("'8'", "'9'"),
        ),
        label(
            "metadata.labels[\"nvidia.com/gpu.compute.minor\"]",
            &["says 6", "9.0.0"],
            "nvidia.com/gpu.compute.minor: '6'",
            ("'6'", "'0'"),
        ),
        label(
            "metadata.labels[\"nvidia.com/cuda.driver-version.full\"]",
            &["570.86.15", "580.1.2"],
            "nvidia.com/cuda.driver-version.full: 570.86.15",
            ("570.86.15", "580.01.02"),
        ),
        label(
            "metadata.labels[\"nvidia.com/cuda.driver.major\"]",
            &["570", "580.1.2"],
            "nvidia.com/cuda.driver.major: '570'",
            ("'570'", "'580'"),
        ),
        label(
            "metadata.labels[\"nvidia.com/cuda.runtime-version.full\"]",
            &["12.8", "13.0.0"],
            "nvidia.com/cuda.runtime-version.full: '12.8'",
            ("'12.8'", "'13.0'"),
        ),
    ]
}

fn hints() -> Vec<Case> {
    let tainted = "capacity: {memory: {value: 80Gi}}\n    taints: [{key: example.com/broken, effect: NoSchedule}]\n  - name: gpu-1";
    let tolerating = |toleration: &str| {
        let count = format!("count: 1, tolerations: [{toleration}]");
        with("capacity: {memory: {value: 80Gi}}\n  - name: gpu-1", tainted)
            .replace("count: 2", &count)
    };
    let topology = "---\napiVersion: phalanx.dev/v1alpha1\nkind: NodeTopology\nmetadata: {name: n1}\n\
                    spec: {switches: [{name: s, members: [gpu-0, gpu-1]}]}\n";
    let key = "spec.spec.devices.requests[0].exactly.tolerations[0].key";
    let seconds = "spec.spec.devices.requests[0].exactly.tolerations[0].tolerationSeconds";
    assert!(key.starts_with(TOLERATION) && seconds.starts_with(TOLERATION));
    vec![
        case(
            Rule::TolerationUnmatched,
            key,
            &["example.com/brocken", "nearest first: `example.com/broken`"],
            tolerating("{key: example.com/brocken, operator: Exists}"),
            ("example.com/brocken", "example.com/broken"),
        ),
        case(
            Rule::TolerationSecondsUnused,
            seconds,
            &["tolerationSeconds 60", "NoSchedule"],
            tolerating(
                "{key: example.com/broken, operator: Exists, effect: NoSchedule, tolerationSeconds: 60}",
            ),
            ("effect: NoSchedule, tolerationSeconds", "effect: NoExecute, tolerationSeconds"),
        ),
        case(
            Rule::AlignLevelUnknown,
            "metadata.annotations[\"phalanx.dev/align\"]",
            &["one island", "no node can hold the devices", "NodeTopology"],
            format!(
                "{}{topology}",
                with(
                    "{name: trainer}",
                    "{name: trainer, annotations: {phalanx.dev/align: island=required}}"
                )
            ),
            ("island=required", "switch=required"),
        ),
        case(
            Rule::AlignLevelUnknown,
            "metadata.annotations[\"phalanx.dev/align\"]",
            &["one NUMA node", "the wish has no effect", "resource.kubernetes.io/numaNode"],
            with("{name: pair}", "{name: pair, annotations: {phalanx.dev/align: numa=preferred}}"),
            ("index: {int: 0}", "resource.kubernetes.io/numaNode: {int: 0}"),
        ),
    ]
}

fn input() -> Vec<Case> {
    vec![case(
        Rule::InputDoubtful,
        "status.allocatable.pods",
        &["The node allows no pods"],
        with("pods: 10, ", ""),
        ("memory: 8Gi, ", "memory: 8Gi, pods: 10, "),
    )]
}
