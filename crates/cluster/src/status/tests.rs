//! A small fleet, and what is counted of it.

use phalanx_objects::{Item, read};
use serde_json::{Value, json};

use super::status;
use crate::compat::Compat;
use crate::finding::Source;
use crate::lower::{Lowering, ObjectEvent};
use crate::plan::PlanOptions;
use crate::world::World;

/// Four linked GPUs in two islands, one of them held; two on a cordoned node; four counted ones, one
/// of them held; a pod that waits for five of the first kind, and a Job that is not created yet.
const FLEET: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1, creationTimestamp: 2026-03-01T00:00:00Z}
status: {allocatable: {cpu: '64', memory: 64Gi, pods: '110'}}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {unschedulable: true}
status: {allocatable: {cpu: '64', memory: 64Gi, pods: '110'}, conditions: [{type: Ready, status: 'False'}]}
---
apiVersion: v1
kind: Node
metadata: {name: c1, labels: {nvidia.com/gpu.product: Tesla-T4}}
status: {allocatable: {cpu: '64', memory: 64Gi, pods: '110', nvidia.com/gpu: '4'}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpus}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: g0, attributes: {productName: {string: Big}}}
  - {name: g1, attributes: {productName: {string: Big}}}
  - {name: g2, attributes: {productName: {string: Big}}}
  - {name: g3, attributes: {productName: {string: Big}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n2-gpus}
spec:
  driver: gpu.example.com
  nodeName: n2
  pool: {name: n2, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: g0, attributes: {productName: {string: Big}}}
  - {name: g1, attributes: {productName: {string: Big}}}
---
apiVersion: phalanx.dev/v1alpha1
kind: NodeTopology
metadata: {name: n1}
spec:
  source: assumed
  islands:
  - {name: a, fabric: bridge, members: [g0, g1]}
  - {name: b, fabric: bridge, members: [g2, g3]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held, namespace: team, uid: c-1}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
status:
  allocation: {devices: {results: [{request: r, driver: gpu.example.com, pool: n1, device: g0}]}}
  reservedFor: [{resource: pods, name: busy, uid: p-1}]
---
apiVersion: v1
kind: Pod
metadata: {name: busy, namespace: team, uid: p-1, ownerReferences: [{apiVersion: x/v1, kind: Notebook, name: nb, controller: true}]}
spec: {nodeName: n1, containers: [{name: c, resources: {claims: [{name: d}]}}], resourceClaims: [{name: d, resourceClaimName: held}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: counted, namespace: team, uid: p-2}
spec: {nodeName: c1, containers: [{name: c, resources: {limits: {nvidia.com/gpu: '1'}}}]}
status: {phase: Running}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: five, namespace: team}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 5}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: wants, namespace: team, uid: p-3, creationTimestamp: 2026-03-01T10:00:00Z}
spec: {containers: [{name: c, resources: {claims: [{name: d}]}}], resourceClaims: [{name: d, resourceClaimTemplateName: five}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: later, namespace: team}
spec: {parallelism: 2, completions: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: '100'}}}]}}}
"#;

fn status_of(text: &str) -> Value {
    let mut world = World::new(Lowering::new(Compat::default()));
    let mut ordinal = 0;
    read("test.yaml", text.as_bytes(), &mut |item| {
        let Item::Object(object, source) = item else { panic!("{item:?}") };
        ordinal += 1;
        let source = Source { file: source.file, line: source.line, ordinal };
        world.absorb(ObjectEvent::Applied(Box::new(object), source));
    });
    world.settle();
    let now: jiff::Timestamp = "2026-03-01T12:00:00Z".parse().expect("a time");
    let now = Some(phalanx_engine::Timestamp(now.as_millisecond()));
    let document = status(&mut world, &PlanOptions { now, ..PlanOptions::default() });
    serde_json::to_value(document).expect("a document")
}

#[test]
fn what_is_free_counts_on_nodes_that_take_pods_and_in_its_pieces() {
    let status = status_of(FLEET);
    assert_eq!(
        status["nodes"],
        json!({"total": 3, "ready": 0, "notReady": 1, "unsaid": 2, "cordoned": 1})
    );
    assert_eq!(
        status["devices"][0],
        json!({
            "source": "slices", "name": "gpu.example.com", "model": "Big", "nodes": 2,
            "total": 6, "used": 1, "free": 3, "unavailable": 2, "unhealthy": 0, "closed": 2,
            "freeNodes": [{"free": 3, "nodes": 1}],
            "freeIslands": [{"free": 2, "islands": 1}, {"free": 1, "islands": 1}],
            "unlinked": 0,
            "stranded": [
                {"size": 2, "onNodes": 0, "inIslands": 1},
                {"size": 4, "onNodes": 3, "inIslands": 3},
            ],
        })
    );
}

#[test]
fn counters_go_by_the_product_that_their_nodes_are_labelled_with() {
    let status = status_of(FLEET);
    let row = &status["devices"][1];
    assert_eq!((&row["source"], &row["name"]), (&"counter".into(), &"nvidia.com/gpu".into()));
    assert_eq!(row["model"], "Tesla-T4");
    assert_eq!((&row["total"], &row["used"], &row["free"]), (&4.into(), &1.into(), &3.into()));
    assert_eq!(row["stranded"][1], json!({"size": 4, "onNodes": 3, "inIslands": null}));
    let unlabelled = status_of(&FLEET.replace("labels: {nvidia.com/gpu.product: Tesla-T4}", ""));
    assert_eq!(unlabelled["devices"][1]["model"], Value::Null);
}

#[test]
fn who_holds_is_the_workload_and_without_one_the_pod() {
    let status = status_of(FLEET);
    let holder = |workload: &str, name: &str| json!({"namespace": "team", "workload": workload, "name": name, "pods": 1, "devices": 1, "shared": 0, "unpublished": 0});
    let expected =
        [holder("notebook/nb", "gpu.example.com"), holder("pod/counted", "nvidia.com/gpu")];
    assert_eq!(status["holders"], json!(expected));
}

#[test]
fn who_waits_is_said_longest_first_with_its_reason() {
    let status = status_of(FLEET);
    let waiting = &status["waiting"];
    assert_eq!(waiting[0]["workload"], "pod/wants");
    assert_eq!((&waiting[0]["seconds"], &waiting[0]["pods"]), (&7200.into(), &1.into()));
    assert!(!waiting[0]["message"].as_str().expect("a sentence").is_empty());
    assert_eq!(waiting[1]["workload"], "job/later");
    assert_eq!((&waiting[1]["since"], &waiting[1]["pods"]), (&Value::Null, &2.into()));
    assert_eq!(waiting[1]["code"], "InsufficientCPU");
    assert_eq!(status["summary"], json!({"running": 2, "starting": 0, "waiting": 3}));
}

#[test]
fn a_counter_has_its_capacity_and_what_is_not_given_out_is_unhealthy() {
    let eight = FLEET
        .replace("nvidia.com/gpu: '4'}}", "nvidia.com/gpu: '4'}, capacity: {nvidia.com/gpu: '7'}}");
    let row = &status_of(&eight)["devices"][1];
    let of = |field: &str| row[field].as_u64().unwrap_or(99);
    assert_eq!(
        (of("total"), of("used"), of("free"), of("unavailable"), of("unhealthy")),
        (7, 1, 3, 3, 3)
    );
}

#[test]
fn what_is_free_on_a_tainted_or_a_full_node_is_not_to_be_had() {
    let of = |text: &str| {
        let status = status_of(text);
        (status["devices"][1]["free"].clone(), status["devices"][1]["closed"].clone())
    };
    let tainted = |key: &str| {
        let spec = format!("spec: {{taints: [{{key: {key}, effect: NoSchedule}}]}}\nstatus: ");
        FLEET.replacen(
            "labels: {nvidia.com/gpu.product: Tesla-T4}}\nstatus: ",
            &format!("labels: {{nvidia.com/gpu.product: Tesla-T4}}}}\n{spec}"),
            1,
        )
    };
    assert_eq!(of(&tainted("ToBeDeletedByClusterAutoscaler")), (0.into(), 3.into()));
    // The taint that marks nodes with GPUs keeps away who asks for none.
    assert_eq!(of(&tainted("nvidia.com/gpu")), (3.into(), 0.into()));
    let full = FLEET.replace("pods: '110', nvidia.com/gpu", "pods: '1', nvidia.com/gpu");
    assert_eq!(of(&full), (0.into(), 3.into()));
}

#[test]
fn a_claim_that_two_workloads_use_is_held_by_both_and_a_device_of_no_slice_is_said() {
    let text = FLEET.replace(
        "reservedFor: [{resource: pods, name: busy, uid: p-1}]",
        "reservedFor: [{resource: pods, name: busy, uid: p-1}, {resource: pods, name: counted, uid: p-2}]",
    );
    let status = status_of(&text.replace("pool: n1, device: g0", "pool: n1, device: gone"));
    let holders = status["holders"].as_array().expect("a list");
    let of_driver = holders.iter().filter(|row| row["name"] == "gpu.example.com");
    let of_driver: Vec<_> = of_driver
        .map(|row| (&row["workload"], &row["devices"], &row["shared"], &row["unpublished"]))
        .collect();
    let one = serde_json::Value::from(1);
    let (first, second) = ("notebook/nb".into(), "pod/counted".into());
    assert_eq!(of_driver, [(&first, &one, &one, &one), (&second, &one, &one, &one)]);
}

#[test]
fn the_reason_of_a_workload_is_that_of_its_gravest_pod() {
    let pod = |name: &str, count: u32| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: team, uid: {name}, \
             ownerReferences: [{{apiVersion: batch/v1, kind: Sweep, name: s, uid: s, controller: true}}]}}\n\
             spec: {{containers: [{{name: c, resources: {{limits: {{nvidia.com/gpu: '{count}'}}}}}}]}}\n"
        )
    };
    // The first lacks one that is held, the second asks for more than there ever is.
    let status = status_of(&format!("{FLEET}{}{}", pod("a", 4), pod("b", 20)));
    let rows = status["waiting"].as_array().expect("a list");
    let row = rows.iter().find(|row| row["workload"] == "sweep/s").expect("it waits");
    assert_eq!(row["verdict"], "refused", "{row}");
    assert!(row["message"].as_str().expect("a sentence").contains("20"), "{row}");
}
