//! Objects as users write them: older versions become the newest, unions keep what they are, what is
//! written reads back, and no text whatever ends in a panic.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test panics")]

use phalanx_objects::core::TaintEffect;
use phalanx_objects::resource::{
    Device, DeviceAllocationMode, DeviceAttribute, ResourceClaim, ResourceSlice,
};
use phalanx_objects::topology::{Fabric, LinkClass, NodeTopology};
use phalanx_objects::workload::Workload;
use phalanx_objects::{Item, Kind, Object, read};
use proptest::prelude::*;

/// The objects of a text, which has no problems.
fn objects(text: &str) -> Vec<Object> {
    let mut objects = Vec::new();
    read("text", text.as_bytes(), &mut |item| match item {
        Item::Object(object, _) => objects.push(object),
        Item::Gone(..) | Item::Unknown { .. } | Item::Problem(_) => panic!("{item:?}"),
    });
    objects
}

fn slice(text: &str) -> ResourceSlice {
    let object = objects(text).remove(0);
    let Object::ResourceSlice(slice) = object else { panic!("{object:?}") };
    slice.as_ref().clone()
}

fn claim(text: &str) -> ResourceClaim {
    let object = objects(text).remove(0);
    let Object::ResourceClaim(claim) = object else { panic!("{object:?}") };
    claim.as_ref().clone()
}

fn topology(text: &str) -> NodeTopology {
    let object = objects(text).remove(0);
    let Object::NodeTopology(topology) = object else { panic!("{object:?}") };
    topology.as_ref().clone()
}

const DEVICE: &str = "attributes: {type: {string: gpu}}, capacity: {memory: {value: 24Gi}}, \
    taints: [{key: broken, effect: NoSchedule}]";

#[test]
fn devices_of_v1beta1_are_those_of_v1() {
    let old = format!(
        "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceSlice\nmetadata: {{name: s}}\n\
         spec: {{driver: d, pool: {{name: p, resourceSliceCount: 1}}, nodeName: n1, \
         devices: [{{name: a, basic: {{{DEVICE}}}}}]}}"
    );
    let new = |version: &str| {
        format!(
            "apiVersion: resource.k8s.io/{version}\nkind: ResourceSlice\nmetadata: {{name: s}}\n\
             spec: {{driver: d, pool: {{name: p, resourceSliceCount: 1}}, nodeName: n1, \
             devices: [{{name: a, {DEVICE}}}]}}"
        )
    };
    let expected = slice(&new("v1"));
    assert_eq!(expected.spec.devices[0].taints[0].effect, TaintEffect::NoSchedule);
    assert_eq!(slice(&new("v1beta2")), expected);
    assert_eq!(slice(&old), expected);
}

#[test]
fn flat_requests_of_v1beta1_become_exact_ones() {
    let text = |version: &str, requests: &str| {
        format!(
            "apiVersion: resource.k8s.io/{version}\nkind: ResourceClaim\nmetadata: {{name: c}}\n\
             spec: {{devices: {{requests: [{requests}], constraints: [{{matchAttribute: d/x}}]}}}}"
        )
    };
    let exact = "deviceClassName: gpu, count: 2, selectors: [{cel: {expression: \"true\"}}]";
    let alternatives = "firstAvailable: [{name: big, deviceClassName: gpu}]";
    let old = format!("{{name: a, {exact}}}, {{name: b, {alternatives}}}");
    let new = format!("{{name: a, exactly: {{{exact}}}}}, {{name: b, {alternatives}}}");
    assert_eq!(claim(&text("v1beta1", &old)), claim(&text("v1", &new)));
    let request = claim(&text("v1", &new)).spec.devices.requests.remove(0).exactly.unwrap();
    assert_eq!(request.device_count(), 2);
}

#[test]
fn a_missing_count_is_one_where_it_counts() {
    let count = |request: &str| {
        let text = format!(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: c}}\n\
             spec: {{devices: {{requests: [{{name: r, exactly: {{{request}}}}}]}}}}"
        );
        let request = claim(&text).spec.devices.requests.remove(0).exactly.unwrap();
        (request.device_count(), request.allocation_mode)
    };
    assert_eq!(count("deviceClassName: g"), (1, DeviceAllocationMode::ExactCount));
    assert_eq!(count("allocationMode: All"), (0, DeviceAllocationMode::All));
    assert_eq!(count("allocationMode: Most"), (0, DeviceAllocationMode::Other("Most".into())));
}

#[test]
fn an_attribute_is_what_it_says() {
    let attribute = |text: &str| {
        let device: Device = serde_json::from_str(&format!("{{\"attributes\":{{\"a\":{text}}}}}"))?;
        Ok::<_, serde_json::Error>(device.attributes.into_values().next().unwrap())
    };
    let cases = [
        (r#"{"int":4}"#, DeviceAttribute::Int(4)),
        (r#"{"bool":false}"#, DeviceAttribute::Bool(false)),
        (r#"{"string":"x"}"#, DeviceAttribute::String("x".into())),
        (r#"{"version":"1.2.3"}"#, DeviceAttribute::Version("1.2.3".into())),
        (r#"{"ints":[0,1]}"#, DeviceAttribute::Ints(vec![0, 1])),
        (r#"{"bools":[true]}"#, DeviceAttribute::Bools(vec![true])),
        (r#"{"strings":[]}"#, DeviceAttribute::Strings(Vec::new())),
        (r#"{"versions":["1.0.0"]}"#, DeviceAttribute::Versions(vec!["1.0.0".into()])),
        (r#"{}"#, DeviceAttribute::Empty),
        (r#"{"string":null}"#, DeviceAttribute::Empty),
        (r#"{"float":1.5}"#, DeviceAttribute::Unknown("float".into())),
        (r#"{"float":1.5,"int":4}"#, DeviceAttribute::Int(4)),
    ];
    for (text, expected) in cases {
        let read = attribute(text).unwrap();
        assert_eq!(read, expected, "{text}");
        let again = attribute(&serde_json::to_string(&read).unwrap()).unwrap();
        assert_eq!(again, expected, "{text}");
    }
    let error = attribute(r#"{"int":4,"string":"x"}"#).unwrap_err().to_string();
    assert!(error.contains("has `int` and `string`"), "{error}");
    assert!(attribute(r#"{"int":"4"}"#).is_err());
}

#[test]
fn only_annotations_that_are_read_are_kept() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    \
        phalanx.dev/align: island=required\n    kubectl.kubernetes.io/last-applied: x\n    \
        resource.kubernetes.io/pod-claim-name: gpu\n";
    let pod = objects(text).remove(0);
    let kept: Vec<&str> = pod.metadata().annotations.keys().map(String::as_str).collect();
    assert_eq!(kept, ["phalanx.dev/align", "resource.kubernetes.io/pod-claim-name"]);
}

#[test]
fn a_topology_is_written_in_a_few_lines() {
    let hgx = topology(
        "apiVersion: phalanx.dev/v1alpha1\nkind: NodeTopology\nmetadata: {name: hgx-1}\nspec:\n  \
         source: assumed\n  islands:\n  - {name: all, fabric: nvswitch, gbps: 450, members: \
         [gpu-0, gpu-1, gpu-2, gpu-3, gpu-4, gpu-5, gpu-6, gpu-7]}\n",
    );
    assert_eq!(hgx.node_name(), "hgx-1");
    assert_eq!(hgx.spec.islands[0].members.len(), 8);
    assert_eq!(hgx.spec.islands[0].fabric, Some(Fabric::NvSwitch));
    let bridge = topology(
        "apiVersion: phalanx.dev/v1alpha1\nkind: NodeTopology\nmetadata: {name: lab}\nspec:\n  \
         nodeName: ws-1\n  devices:\n  - {name: left, pciBusID: \"0000:01:00.0\", index: 0}\n  \
         - {name: right, pciBusID: \"0000:41:00.0\", index: 1, pcieRoot: pci0000:40}\n  links:\n  \
         - {a: left, b: right, links: 4, gbps: 56.25, source: measured}\n",
    );
    assert_eq!(bridge.node_name(), "ws-1");
    assert_eq!(bridge.spec.devices[1].pci_bus_id.as_deref(), Some("0000:41:00.0"));
    assert_eq!(bridge.spec.links[0].class(), LinkClass::Nvl);
    assert!(LinkClass::NvSwitch < LinkClass::Pix && LinkClass::Node < LinkClass::Sys);
}

/// One text that holds every kind.
const EVERYTHING: &str = "\
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {zone: a}, creationTimestamp: '2026-11-29T08:00:00Z'}, \
spec: {unschedulable: true, taints: [{key: k, effect: NoExecute}]}, status: {allocatable: {cpu: 62, memory: 1.5Gi}, images: [{names: [a:1, a@sha256:0], sizeBytes: 5}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: t, ownerReferences: [{kind: Job, name: j, uid: u, controller: true}]}, \
spec: {priority: 0, containers: [{name: c, image: a, resources: {requests: {cpu: 100m}, claims: [{name: gpu}]}}], \
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}}, \
resourceClaims: [{name: gpu, resourceClaimTemplateName: g}], tolerations: [{operator: Exists}]}, status: {phase: Running}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: t}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: t}}
---
{apiVersion: v1, kind: Service, metadata: {name: s, namespace: t}, spec: {selector: {a: b}}}
---
{apiVersion: v1, kind: ReplicationController, metadata: {name: r, namespace: t}, spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}}}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000, globalDefault: true}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d, pool: {name: n1, resourceSliceCount: 1}, allNodes: true, \
devices: [{name: g, attributes: {x: {int: 1}}, capacity: {m: {value: 1Gi, requestPolicy: {validRange: {min: 1Mi}}}}, consumesCounters: [{counterSet: s, counters: {c: {value: 1}}}]}], \
sharedCounters: [{name: s, counters: {c: {value: 2}}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c, namespace: t}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}], \
config: [{opaque: {driver: d, parameters: {kind: X, list: [1, a, null]}}}]}}, \
status: {allocation: {devices: {results: [{request: r, driver: d, pool: n1, device: g, shareID: s1, consumedCapacity: {m: 1Mi}}]}}, reservedFor: [{resource: pods, name: p, uid: u}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: g, namespace: t}, spec: {spec: {devices: {requests: [{name: r, firstAvailable: [{name: a, deviceClassName: gpu}]}]}}}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {selectors: [{cel: {expression: 'true'}}], extendedResourceName: example.com/gpu}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceTaintRule, metadata: {name: r}, spec: {deviceSelector: {driver: d}, taint: {key: k, effect: NoSchedule}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: t}, spec: {parallelism: 0, completionMode: Indexed, template: {spec: {restartPolicy: Never}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: t}, spec: {replicas: 2, selector: {matchLabels: {a: b}}}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: sandbox}, overhead: {podFixed: {cpu: 250m}}, \
scheduling: {nodeSelector: {a: b}, tolerations: [{key: k, operator: Exists}]}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: t}, spec: {limits: [{type: Container, defaultRequest: {cpu: 1}, max: {memory: 4Gi}}]}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: t}, spec: {hard: {requests.cpu: 6}}, status: {used: {requests.cpu: 1}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {capacity: {storage: 100Gi}, accessModes: [ReadWriteOnce], storageClassName: s, \
claimRef: {namespace: t, name: c}, csi: {driver: d, volumeHandle: h}}, status: {phase: Bound}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: t}, spec: {storageClassName: s, accessModes: [ReadWriteOncePod], \
resources: {requests: {storage: 100Gi}}, volumeName: v}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: s}, provisioner: d, volumeBindingMode: WaitForFirstConsumer, \
allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a]}]}]}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n1}, spec: {drivers: [{name: d, nodeID: n1, topologyKeys: [zone], allocatable: {count: 2}}]}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: d}, spec: {storageCapacity: true}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: r, namespace: t}, storageClassName: s, nodeTopology: {matchLabels: {zone: a}}, capacity: 50Gi}
---
{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: a}, spec: {attacher: d, nodeName: n1, source: {persistentVolumeName: v}}, status: {attached: true}}
---
{apiVersion: phalanx.dev/v1alpha1, kind: NodeTopology, metadata: {name: n1}, spec: {links: [{a: x, b: z, class: PIX, gbps: 25.5, source: driver}]}}
---
{apiVersion: phalanx.dev/v1alpha1, kind: Placement, metadata: {name: podgroup-g, namespace: default}, spec: {group: {kind: podgroup, name: g}, phase: Committing, committedAt: '2026-01-01T00:00:00Z', ran: true, pools: [{driver: d, name: n1}], seats: [{role: 1, index: 2, pod: g-2, uid: u, node: n1, grants: [{claim: c, request: a/b, devices: [x], consumed: {memory: 1Gi}}]}]}, status: {verdict: waits, reason: GroupShort, message: m, tally: [{reason: r, nodes: 1, devices: 2}], nearest: n1}}
";

fn everything() -> String {
    format!("{EVERYTHING}---{WORKLOADS}---{TRAINING}---{SCHEDULING}")
}

/// What schedulers are told beside pods.
const SCHEDULING: &str = "
{apiVersion: scheduling.k8s.io/v1alpha3, kind: CompositePodGroup, metadata: {name: serve, namespace: default}, spec: {schedulingPolicy: {gang: {minGroupCount: 1}}, schedulingConstraints: {topology: [{key: example.com/block}]}}}
---
{apiVersion: scheduling.k8s.io/v1alpha3, kind: PodGroup, metadata: {name: decode, namespace: default}, spec: {parentCompositePodGroupName: serve, schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: example.com/rack}]}}}
---
{apiVersion: scheduling.k8s.io/v1alpha1, kind: Workload, metadata: {name: early, namespace: default}, spec: {podGroups: [{name: all, policy: {gang: {minCount: 1}}}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: admitted, namespace: default}, spec: {podSets: [{name: main, count: 1, topologyRequest: {preferred: example.com/rack}, template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}}]}}
---
{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: co, namespace: default}, spec: {minMember: 1}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: vc, namespace: default}, spec: {minMember: 1, networkTopology: {mode: soft, highestTierAllowed: 1}}}
---
{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, metadata: {name: kai, namespace: default}, spec: {minMember: 1, topologyConstraint: {topology: kai, preferredTopologyLevel: example.com/rack}, subGroups: [{name: one, minMember: 1}]}}
---
{apiVersion: scheduler.grove.io/v1alpha1, kind: PodGang, metadata: {name: gang, namespace: default}, spec: {podgroups: [{name: front, minReplicas: 1}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: racks}, spec: {levels: [{nodeLabel: example.com/block}, {nodeLabel: example.com/rack}]}}
---
{apiVersion: kai.scheduler/v1alpha1, kind: Topology, metadata: {name: kai}, spec: {levels: [{nodeLabel: example.com/rack}]}}
---
{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, metadata: {name: leaf}, spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: n1}}}]}}
---
{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomain, metadata: {name: domain, namespace: default}, spec: {numNodes: 1, channel: {resourceClaimTemplate: {name: channel}}}}
";

/// A TrainJob leaves its pods to its runtime.
const TRAINING: &str = "
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: a}, spec: {runtimeRef: {name: r}, trainer: {numNodes: 2, resourcesPerNode: {requests: {cpu: 1}}}}}
";

#[test]
fn every_kind_is_read_and_written() {
    let first = objects(&everything());
    let kinds: std::collections::BTreeSet<Kind> = first.iter().map(Object::kind).collect();
    assert_eq!(kinds, Kind::ALL.iter().copied().collect());
    let json: Vec<String> = first.iter().map(|o| serde_json::to_string(o).unwrap()).collect();
    assert_eq!(objects(&json.join("\n")), first);
    let list =
        format!("{{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{}]}}", json.join(","));
    assert_eq!(objects(&list), first);
    assert_eq!(objects(&format!("# YAML\n{list}")), first);
    assert!(json[0].contains(r#""allocatable":{"cpu":"62","memory":"1536Mi"}"#), "{}", json[0]);
}

/// A text with some of its bytes replaced, left out or doubled.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let json: Vec<String> =
        objects(&everything()).iter().map(|o| serde_json::to_string(o).unwrap()).collect();
    let list = format!("{{\"items\":[{}],\"kind\":\"List\"}}", json.join(",\n"));
    let texts =
        vec![EVERYTHING.to_owned(), json.join("\n"), list.clone(), format!("# YAML\n{list}")];
    let byte = prop::sample::select(b"{}[],:\"'\\\n \t-#&*!|>%@`\0\xFF\xC3a0".to_vec());
    let damage = prop::collection::vec((any::<prop::sample::Index>(), byte, 0..3_u8), 0..6);
    (prop::sample::select(texts), damage, any::<prop::sample::Index>()).prop_map(
        |(text, damage, end)| {
            let mut bytes = text.into_bytes();
            for (index, byte, how) in damage {
                let at = index.index(bytes.len());
                match how {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => drop(bytes.remove(at)),
                }
            }
            // One text in a few is cut off.
            let cut = end.index(bytes.len() * 4);
            bytes.truncate(cut.max(1));
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics_or_is_passed_over_in_silence(bytes in damaged()) {
        let mut found = 0;
        read("damaged", &bytes, &mut |item| {
            found += 1;
            if let Item::Problem(problem) = item {
                assert!(problem.line >= 1 && problem.column >= 1, "{problem:?}");
                assert!(problem.message.ends_with('.'), "{problem:?}");
            }
        });
        prop_assert!(found > 0 || bytes.len() < 10, "{:?}", String::from_utf8_lossy(&bytes));
    }
}

/// One object of each kind of workload, with something in its parts.
const WORKLOADS: &str = "
{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {nodeName: n1}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {spec: {nodeName: n1}}}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {nodeName: n1}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {template: {spec: {nodeName: n1}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {template: {spec: {nodeName: n1}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {template: {spec: {nodeName: n1}}}}
---
{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: a}, spec: {replicatedJobs: [{template: {spec: {template: {spec: {nodeName: n1}}}}}]}}
---
{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: a}, spec: {leaderWorkerTemplate: {workerTemplate: {spec: {nodeName: n1}}}}}
---
{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: a}, spec: {mpiReplicaSpecs: {Worker: {template: {spec: {nodeName: n1}}}}}}
---
{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: a}, spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {nodeName: n1}}}}}}
---
{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, spec: {tfReplicaSpecs: {Worker: {template: {spec: {nodeName: n1}}}}}}
---
{apiVersion: kubeflow.org/v1, kind: XGBoostJob, metadata: {name: a}, spec: {xgbReplicaSpecs: {Worker: {template: {spec: {nodeName: n1}}}}}}
---
{apiVersion: kubeflow.org/v1, kind: PaddleJob, metadata: {name: a}, spec: {paddleReplicaSpecs: {Worker: {template: {spec: {nodeName: n1}}}}}}
---
{apiVersion: kubeflow.org/v1, kind: JAXJob, metadata: {name: a}, spec: {jaxReplicaSpecs: {Worker: {template: {spec: {nodeName: n1}}}}}}
---
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: a}, spec: {template: {spec: {replicatedJobs: [{template: {spec: {template: {spec: {nodeName: n1}}}}}]}}}}
---
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: a}, spec: {template: {spec: {replicatedJobs: [{template: {spec: {template: {spec: {nodeName: n1}}}}}]}}}}
---
{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a}, spec: {headGroupSpec: {template: {spec: {nodeName: n1}}}}}
---
{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: a}, spec: {rayClusterSpec: {headGroupSpec: {template: {spec: {nodeName: n1}}}}}}
---
{apiVersion: ray.io/v1, kind: RayService, metadata: {name: a}, spec: {rayClusterConfig: {headGroupSpec: {template: {spec: {nodeName: n1}}}}}}
---
{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: a}, spec: {tasks: [{template: {spec: {nodeName: n1}}}]}}
---
{apiVersion: grove.io/v1alpha1, kind: PodCliqueSet, metadata: {name: a}, spec: {template: {cliques: [{name: c, spec: {podSpec: {nodeName: n1}}}]}}}
---
{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a}, spec: {components: [{template: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: n1}}}]}}
";

#[test]
fn what_workloads_say_of_their_pods_is_found_changed_and_written_back() {
    let mut kinds = std::collections::BTreeSet::new();
    for mut object in objects(WORKLOADS) {
        kinds.insert(object.kind());
        let parts = object.pod_parts();
        assert!(parts.iter().any(|part| part.spec.node_name == "n1"), "{object:?}");
        for part in &parts {
            let way = format!("/{}", part.at.replace(['.', '['], "/").replace(']', ""));
            let written = serde_json::to_value(&object).unwrap();
            let there = written.pointer(&way).is_some();
            assert!(there || *part.spec == phalanx_objects::core::PodSpec::default(), "{way}");
        }
        let text = serde_json::to_string(&object).unwrap();
        assert_eq!(objects(&text), [object.clone()]);
        for part in object.pod_parts_mut() {
            part.spec.node_name.clear();
        }
        assert!(object.pod_parts().iter().all(|part| part.spec.node_name.is_empty()));
    }
    let missing: Vec<Kind> = Kind::workloads().filter(|kind| !kinds.contains(kind)).collect();
    assert_eq!(missing, objects(TRAINING).iter().map(Object::kind).collect::<Vec<_>>());
}

#[test]
fn a_wrong_object_in_a_wrapper_costs_no_other() {
    let text = "
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a}
spec:
  components:
  - template: {apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: many}}
  - template: {apiVersion: example.com/v1, kind: Odd, metadata: {name: o}}
  - template: {apiVersion: batch/v1, kind: Job, metadata: {name: k}, spec: {}}
";
    let Object::Workload(Workload::AppWrapper(wrapper)) = objects(text).remove(0) else {
        panic!("no wrapper")
    };
    let components: Vec<_> = wrapper.spec.components.iter().map(|c| &c.template).collect();
    assert!(components[0].object.is_none() && !components[0].problem.is_empty());
    assert!(components[1].object.is_none() && components[1].problem.is_empty());
    assert!(components[2].object.is_some());
}

#[test]
fn a_count_below_zero_is_found_where_it_stands() {
    let text = "
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a}
spec: {pytorchReplicaSpecs: {Worker: {replicas: -2}}}
";
    let mut said = Vec::new();
    read("text", text.as_bytes(), &mut |item| {
        if let Item::Problem(problem) = item {
            said.push(format!("{}: {}", problem.path, problem.message));
        }
    });
    let path = "spec.pytorchReplicaSpecs.Worker.replicas";
    assert_eq!(said, [format!("{path}: The count is -2; it cannot be negative.")]);
}
