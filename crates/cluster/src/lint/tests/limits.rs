//! Cases of the limits: a manifest that the API server takes, with one thing put in its place.

use super::super::Rule;
use super::Case;

const CLAIM: &str = "\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: claim, namespace: team-a, labels: {app: train}}
spec:
  devices:
    requests:
    - name: main
      exactly:
        deviceClassName: gpu.example.com
        selectors: [{cel: {expression: 'true'}}]
        count: 1
        tolerations: [{key: example.com/a, operator: Equal, value: b, effect: NoExecute}]
        capacity: {requests: {memory: 1Gi}}
    - name: other
      firstAvailable: [{name: big, deviceClassName: gpu.example.com}, {name: small, deviceClassName: gpu.example.com}]
    constraints: [{requests: [main, other/big], matchAttribute: example.com/model}]
    config: [{requests: [other], opaque: {driver: gpu.example.com, parameters: {mode: fast}}}]
";

const SLICE: &str = "\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1/a, generation: 0, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    allowMultipleAllocations: true
    attributes: {model: {string: X1}, example.com/version: {version: 1.2.3}}
    capacity:
      memory: {value: 80Gi, requestPolicy: {default: 8Gi, validRange: {min: 4Gi, max: 80Gi, step: 4Gi}}}
      slices: {value: '8', requestPolicy: {default: '1', validValues: ['1', '2', '4']}}
    taints: [{key: example.com/a, value: b, effect: NoSchedule}]
    consumesCounters: [{counterSet: a, counters: {c: {value: '1'}}}]
    bindingConditions: [example.com/ready]
    bindingFailureConditions: [example.com/failed]
";

const COUNTERS: &str = "\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: counters}
spec:
  driver: gpu.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}], matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}
  pool: {name: n1, generation: 0, resourceSliceCount: 1}
  sharedCounters: [{name: a, counters: {c: {value: '8'}}}]
";

const EACH: &str = "\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: each}
spec:
  driver: gpu.example.com
  perDeviceNodeSelection: true
  pool: {name: n1, generation: 0, resourceSliceCount: 1}
  devices: [{name: gpu-0, nodeName: n1}]
";

const CLASS: &str = "\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: 'true'}}]
  config: [{opaque: {driver: gpu.example.com, parameters: {}}}]
";

const TAINT: &str = "\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: rule}
spec:
  deviceSelector: {driver: gpu.example.com, pool: n1, device: gpu-0}
  taint: {key: example.com/a, value: b, effect: NoExecute}
";

const ADMIN: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: team-a, labels: {resource.kubernetes.io/admin-access: 'true'}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: claim, namespace: team-a}
spec: {devices: {requests: [{name: main, exactly: {deviceClassName: gpu.example.com, adminAccess: true}}]}}
";

/// A rule, the field, words, and what stands in the manifest in place of what.
type Row = (Rule, &'static str, &'static [&'static str], &'static str, &'static str);

use Rule::{
    FieldDropped, FieldValueDuplicate as Duplicate, FieldValueForbidden as Forbidden,
    FieldValueInvalid as Invalid, FieldValueNotSupported as NotSupported,
    FieldValueRequired as Required, FieldValueTooLong as TooLong, FieldValueTooMany as TooMany,
};

const CLAIMS: [Row; 24] = [
    (Invalid, "metadata.name", &["`Claim`", "DNS subdomain"], "name: claim", "name: Claim"),
    (Invalid, "metadata.namespace", &["DNS label"], "namespace: team-a", "namespace: team.a"),
    (Invalid, "metadata.labels.app", &["label's value"], "app: train", "app: -train"),
    (Invalid, "spec.devices.requests[0].name", &["`main_1`"], "name: main\n", "name: main_1\n"),
    (
        Duplicate,
        "spec.devices.requests[1].name",
        &["two entries have the name `main`"],
        "name: other",
        "name: main",
    ),
    (
        Required,
        "spec.devices.requests[1]",
        &["has neither"],
        "firstAvailable: [{name: big, deviceClassName: gpu.example.com}, {name: small, deviceClassName: gpu.example.com}]",
        "firstAvailable: []",
    ),
    (
        Invalid,
        "spec.devices.requests[1]",
        &["has both"],
        "firstAvailable: [",
        "exactly: {deviceClassName: gpu.example.com}\n      firstAvailable: [",
    ),
    (
        Duplicate,
        "spec.devices.requests[1].firstAvailable[1].name",
        &["`big`"],
        "name: small",
        "name: big",
    ),
    (
        TooMany,
        "spec.devices.requests[1].firstAvailable",
        &["there are 9", "at most 8 alternatives"],
        "firstAvailable: [",
        "firstAvailable: [{name: a, deviceClassName: c}, {name: b, deviceClassName: c}, {name: c, deviceClassName: c}, {name: d, deviceClassName: c}, {name: e, deviceClassName: c}, {name: f, deviceClassName: c}, {name: g, deviceClassName: c}, ",
    ),
    (
        Required,
        "spec.devices.requests[0].exactly.deviceClassName",
        &["is missing"],
        "deviceClassName: gpu.example.com\n",
        "deviceClassName: ''\n",
    ),
    (
        Invalid,
        "spec.devices.requests[0].exactly.deviceClassName",
        &["`gpu_x`"],
        "deviceClassName: gpu.example.com\n",
        "deviceClassName: gpu_x\n",
    ),
    (
        Required,
        "spec.devices.requests[0].exactly.selectors[0].cel",
        &["cel.expression"],
        "{cel: {expression: 'true'}}",
        "{}",
    ),
    (
        Invalid,
        "spec.devices.requests[0].exactly.count",
        &["All", "count 1"],
        "count: 1",
        "count: 1\n        allocationMode: All",
    ),
    (
        NotSupported,
        "spec.devices.requests[0].exactly.allocationMode",
        &["`Some`"],
        "count: 1",
        "allocationMode: Some",
    ),
    (
        Invalid,
        "spec.devices.requests[0].exactly.tolerations[0].value",
        &["Exists"],
        "operator: Equal",
        "operator: Exists",
    ),
    (
        NotSupported,
        "spec.devices.requests[0].exactly.tolerations[0].operator",
        &["`Gt`"],
        "operator: Equal",
        "operator: Gt",
    ),
    (
        NotSupported,
        "spec.devices.requests[0].exactly.tolerations[0].effect",
        &["`PreferNoSchedule`"],
        "NoExecute",
        "PreferNoSchedule",
    ),
    (
        Invalid,
        "spec.devices.requests[0].exactly.tolerations[0].key",
        &["label's key"],
        "key: example.com/a",
        "key: example.com/a/b",
    ),
    (
        FieldDropped,
        "spec.devices.requests[0].exactly.derivedAttributes",
        &["DRADerivedAttributes"],
        "count: 1",
        "derivedAttributes: [{name: example.com/model, expression: '1'}]",
    ),
    (
        Invalid,
        "spec.devices.constraints[0].requests[1]",
        &["no request `other/bigg`", "If `other/big` is meant"],
        "other/big",
        "other/bigg",
    ),
    (
        Invalid,
        "spec.devices.constraints[0].matchAttribute",
        &["name with its domain"],
        "matchAttribute: example.com/model",
        "matchAttribute: model",
    ),
    (
        Required,
        "spec.devices.constraints[0]",
        &["has neither"],
        ", matchAttribute: example.com/model",
        "",
    ),
    (
        Invalid,
        "spec.devices.config[0].requests[0]",
        &["no request `others`", "`other`"],
        "requests: [other]",
        "requests: [others]",
    ),
    (
        Invalid,
        "spec.devices.config[0].opaque.parameters",
        &["an object"],
        "parameters: {mode: fast}",
        "parameters: [fast]",
    ),
];

const SLICES: [Row; 27] = [
    (
        TooLong,
        "spec.driver",
        &["at most 63"],
        "driver: gpu.example.com",
        "driver: gpu.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example.com",
    ),
    (Invalid, "spec.pool.name", &["slashes"], "name: n1/a", "name: n1//a"),
    (
        Invalid,
        "spec.pool.resourceSliceCount",
        &["0 slices"],
        "resourceSliceCount: 1",
        "resourceSliceCount: 0",
    ),
    (Required, "spec", &["has none"], "nodeName: n1\n", "bindsToNode: true\n"),
    (
        Invalid,
        "spec",
        &["nodeName and allNodes"],
        "nodeName: n1\n",
        "nodeName: n1\n  allNodes: true\n",
    ),
    (
        Invalid,
        "spec.allNodes",
        &["is false"],
        "nodeName: n1\n",
        "nodeName: n1\n  allNodes: false\n",
    ),
    (Invalid, "spec.devices[0].name", &["`gpu_0`"], "name: gpu-0", "name: gpu_0"),
    (
        Invalid,
        "spec.devices[0].nodeName",
        &["perDeviceNodeSelection: true"],
        "name: gpu-0",
        "name: gpu-0\n    nodeName: n1",
    ),
    (Invalid, "spec.devices[0].attributes.mod-el", &["identifier"], "model: {", "mod-el: {"),
    (
        Invalid,
        "spec.devices[0].attributes[\"example.com/version\"].version",
        &["`1.2`", "semantic version"],
        "version: 1.2.3",
        "version: '1.2'",
    ),
    (
        TooLong,
        "spec.devices[0].attributes.model.string",
        &["64 bytes"],
        "string: X1",
        "string: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ),
    (Invalid, "spec.devices[0].attributes.model", &["exactly one value"], "{string: X1}", "{}"),
    (
        Required,
        "spec.devices[0].attributes.model.strings",
        &["DRAListTypeAttributes"],
        "{string: X1}",
        "{strings: [X1]}",
    ),
    (
        Forbidden,
        "spec.devices[0].capacity.memory.requestPolicy",
        &["allowMultipleAllocations: true"],
        "allowMultipleAllocations: true",
        "allNodes: false",
    ),
    (
        Invalid,
        "spec.devices[0].capacity.memory.requestPolicy.validRange.step",
        &["default 6Gi", "steps of 4Gi"],
        "default: 8Gi",
        "default: 6Gi",
    ),
    (
        Invalid,
        "spec.devices[0].capacity.memory.requestPolicy.validRange.max",
        &["max 88Gi", "80Gi"],
        "max: 80Gi",
        "max: 88Gi",
    ),
    (
        Invalid,
        "spec.devices[0].capacity.memory.requestPolicy.validRange.min",
        &["default 8Gi is below min 12Gi"],
        "min: 4Gi",
        "min: 12Gi",
    ),
    (
        Required,
        "spec.devices[0].capacity.memory.requestPolicy.default",
        &["needs a default"],
        "default: 8Gi, ",
        "",
    ),
    (
        Invalid,
        "spec.devices[0].capacity.slices.requestPolicy.validValues[1]",
        &["ascend"],
        "['1', '2', '4']",
        "['4', '2', '1']",
    ),
    (
        Invalid,
        "spec.devices[0].capacity.slices.requestPolicy.default",
        &["default 3"],
        "default: '1'",
        "default: '3'",
    ),
    (Required, "spec.devices[0].taints[0].effect", &["NoSchedule"], ", effect: NoSchedule", ""),
    (
        Invalid,
        "spec.devices[0].consumesCounters[0].counterSet",
        &["DNS label"],
        "counterSet: a",
        "counterSet: A",
    ),
    (
        TooMany,
        "spec.devices[0].consumesCounters",
        &["at most 2"],
        "consumesCounters: [",
        "consumesCounters: [{counterSet: b, counters: {c: {value: '1'}}}, {counterSet: d, counters: {c: {value: '1'}}}, ",
    ),
    (
        Invalid,
        "spec.devices[0].bindingFailureConditions",
        &["needs bindingFailureConditions"],
        "bindingFailureConditions: [example.com/failed]",
        "nodeSelector: null",
    ),
    (
        Duplicate,
        "spec.devices[0].bindingConditions[1]",
        &["twice"],
        "[example.com/ready]",
        "[example.com/ready, example.com/ready]",
    ),
    (
        FieldDropped,
        "spec.skipNodeOperations",
        &["DRAOptionalNodeOperations"],
        "nodeName: n1\n",
        "nodeName: n1\n  skipNodeOperations: ['*']\n",
    ),
    (
        FieldDropped,
        "spec.partitionTypeAttribute",
        &["DRAPartitionableDevicesType"],
        "nodeName: n1\n",
        "nodeName: n1\n  partitionTypeAttribute: example.com/profile\n",
    ),
];

const OTHERS: [(&str, Row); 17] = [
    (
        COUNTERS,
        (
            Invalid,
            "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].operator",
            &["`Is` is no operator"],
            "operator: In",
            "operator: Is",
        ),
    ),
    (
        COUNTERS,
        (
            Invalid,
            "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values[0]",
            &["label's value"],
            "values: [b]",
            "values: ['-b']",
        ),
    ),
    (
        COUNTERS,
        (
            Invalid,
            "spec.nodeSelector.nodeSelectorTerms[0].matchFields[0].key",
            &["the only field is metadata.name"],
            "matchFields: [{key: metadata.name",
            "matchFields: [{key: spec.name",
        ),
    ),
    (
        EACH,
        (
            Invalid,
            "spec.devices[0].allNodes",
            &["allNodes is false"],
            "nodeName: n1}",
            "allNodes: false}",
        ),
    ),
    (
        COUNTERS,
        (
            Invalid,
            "spec.nodeSelector.nodeSelectorTerms",
            &["exactly 1 term"],
            "nodeSelectorTerms: [",
            "nodeSelectorTerms: [{}, ",
        ),
    ),
    (
        COUNTERS,
        (
            Invalid,
            "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values",
            &["In takes at least one value"],
            ", values: [b]",
            "",
        ),
    ),
    (
        COUNTERS,
        (
            Required,
            "spec.sharedCounters[0].counters",
            &["missing"],
            ", counters: {c: {value: '8'}}",
            "",
        ),
    ),
    (
        COUNTERS,
        (
            Invalid,
            "spec.sharedCounters",
            &["slice of their own"],
            "sharedCounters:",
            "devices: [{name: gpu-0}]\n  sharedCounters:",
        ),
    ),
    (
        COUNTERS,
        (
            Duplicate,
            "spec.sharedCounters[1].name",
            &["`a`"],
            "sharedCounters: [",
            "sharedCounters: [{name: a, counters: {c: {value: '8'}}}, ",
        ),
    ),
    (EACH, (Invalid, "spec.devices[0]", &["gpu-0 has none"], ", nodeName: n1", "")),
    (
        CLASS,
        (
            Invalid,
            "spec.extendedResourceName",
            &["extended resource"],
            "Name: example.com/gpu",
            "Name: gpu",
        ),
    ),
    (
        CLASS,
        (
            Required,
            "spec.config[0].opaque",
            &["`opaque`"],
            "opaque: {driver: gpu.example.com, parameters: {}}",
            "",
        ),
    ),
    (CLASS, (Required, "spec.config[0].opaque.parameters", &["missing"], ", parameters: {}", "")),
    (CLASS, (Invalid, "metadata.name", &["`gpu_x`"], "name: gpu.example.com", "name: gpu_x")),
    (
        TAINT,
        (Invalid, "spec.deviceSelector.device", &["`gpu_0`"], "device: gpu-0", "device: gpu_0"),
    ),
    (
        TAINT,
        (NotSupported, "spec.taint.effect", &["`Never`"], "effect: NoExecute", "effect: Never"),
    ),
    (
        ADMIN,
        (
            Forbidden,
            "spec.devices.requests[0].exactly.adminAccess",
            &["namespace team-a", "admin-access: \"true\""],
            "resource.kubernetes.io/admin-access: 'true'",
            "a: b",
        ),
    ),
];

pub(super) fn cases() -> Vec<Case> {
    let claims = CLAIMS.into_iter().map(|row| (CLAIM, row));
    let slices = SLICES.into_iter().map(|row| (SLICE, row));
    let all = claims.chain(slices).chain(OTHERS);
    let case = |(manifest, (rule, path, says, good, bad)): (&str, Row)| {
        assert!(manifest.contains(good), "{good}");
        let text = manifest.replacen(good, bad, 1);
        Case { rule, path, says, text, mended: manifest.to_owned() }
    };
    all.map(case).collect()
}

#[test]
fn the_manifests_themselves_break_no_limit() {
    for manifest in [CLAIM, SLICE, COUNTERS, EACH, CLASS, TAINT, ADMIN] {
        let all = super::found(manifest);
        let limit = |one: &&super::Lint| one.message.starts_with("The API server");
        let refused: Vec<_> = all.iter().filter(limit).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }
}

#[test]
fn a_list_that_is_full_is_taken_and_one_more_is_not() {
    let many = |number: usize, one: &str, sep: &str| {
        (0..number).map(|at| one.replace('#', &at.to_string())).collect::<Vec<_>>().join(sep)
    };
    let claim = |requests: usize| {
        let one = "{name: r#, exactly: {deviceClassName: c}}";
        format!(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: c}}\nspec: {{devices: \
             {{requests: [{}]}}}}\n",
            many(requests, one, ", ")
        )
    };
    let slice = |devices: usize, extra: &str| {
        let one = format!("{{name: d#{extra}}}");
        format!(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: c}}\nspec: {{driver: d, \
             nodeName: n1, pool: {{name: p, resourceSliceCount: 1}}, devices: [{}]}}\n",
            many(devices, &one, ", ")
        )
    };
    let attributes =
        |number: usize| format!(", attributes: {{{}}}", many(number, "a#: {int: 1}", ", "));
    let taint = ", taints: [{key: a, effect: NoSchedule}]";
    for (text, refused) in [
        (claim(32), false),
        (claim(33), true),
        (slice(128, ""), false),
        (slice(129, ""), true),
        (slice(64, taint), false),
        (slice(65, taint), true),
        (slice(1, &attributes(32)), false),
        (slice(1, &attributes(33)), true),
    ] {
        let is = super::found(&text).iter().any(|one| one.rule == TooMany);
        assert_eq!(is, refused, "{}", text.chars().take(200).collect::<String>());
    }
}
