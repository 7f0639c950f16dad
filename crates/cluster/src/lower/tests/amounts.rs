//! The ledger's arithmetic: cases of kube-scheduler's own rules.

use phalanx_engine::Resources;

use super::World;
use crate::compat::{Compat, Version};

fn pod(body: &str) -> Resources {
    let text = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n{body}");
    let world = World::of(&text);
    world.group("pod", "p").expect("the pod").roles[0].request.resources.clone()
}

fn scalar(resources: &Resources, name: &str) -> i64 {
    resources.scalars.iter().find(|(n, _)| n.as_str() == name).map_or(0, |(_, amount)| *amount)
}

#[test]
fn sidecars_count_beside_containers_and_for_later_init_containers() {
    let resources = pod("
spec:
  initContainers:
  - {name: a, resources: {requests: {cpu: 2500m}}}
  - {name: b, restartPolicy: Always, resources: {requests: {cpu: 1}}}
  - {name: c, resources: {requests: {cpu: 2}}}
  - {name: d, restartPolicy: Always, resources: {requests: {cpu: 1}}}
  containers:
  - {name: main, resources: {requests: {cpu: 500m}}}
");
    assert_eq!(resources.cpu_milli, 3000);
    assert_eq!(resources.pods, 1);
}

#[test]
fn sums_are_exact_and_rounded_up_once() {
    let resources = pod("
spec:
  containers:
  - {name: a, resources: {requests: {cpu: 0.3m, example.com/x: 1500m, memory: 1.5}}}
  - {name: b, resources: {requests: {cpu: 0.3m, example.com/x: 1500m, memory: 1.5}}}
");
    assert_eq!(resources.cpu_milli, 1);
    assert_eq!(resources.memory_bytes, 3);
    assert_eq!(scalar(&resources, "example.com/x"), 3);
}

#[test]
fn limits_stand_for_missing_requests() {
    let resources = pod("
spec:
  containers:
  - {name: a, resources: {limits: {cpu: 2, nvidia.com/gpu: 4}, requests: {cpu: 1}}}
");
    assert_eq!(resources.cpu_milli, 1000);
    assert_eq!(scalar(&resources, "nvidia.com/gpu"), 4);
}

#[test]
fn names_without_a_domain_are_not_tracked() {
    let resources = pod("
spec:
  containers:
  - name: a
    resources: {requests: {foo: 1, storage: 1Gi, hugepages-2Mi: 4Mi, kubernetes.io/batch-cpu: 5}}
");
    assert_eq!(resources.scalars.len(), 2, "{resources:?}");
    assert_eq!(scalar(&resources, "hugepages-2Mi"), 4 << 20);
}

#[test]
fn requests_of_the_pod_replace_the_sum_and_overhead_comes_on_top() {
    let resources = pod("
spec:
  overhead: {cpu: 100m, memory: 1Mi}
  resources: {requests: {cpu: 1, ephemeral-storage: 1Gi}}
  containers:
  - {name: a, resources: {requests: {cpu: 2, memory: 2Mi, ephemeral-storage: 3Mi}}}
");
    assert_eq!(resources.cpu_milli, 1100);
    assert_eq!(resources.memory_bytes, 3 << 20);
    assert_eq!(resources.ephemeral_bytes, 3 << 20);
}

const RESIZED: &str = "
spec:
  nodeName: n1
  containers:
  - {name: a, resources: {requests: {cpu: 1}}}
  - {name: b, resources: {requests: {cpu: 3}}}
status:
  phase: Running
  containerStatuses:
  - {name: a, allocatedResources: {cpu: 3}, resources: {requests: {cpu: 3}}}
  - {name: b, allocatedResources: {cpu: 1}, resources: {requests: {cpu: 1}}}
";

#[test]
fn a_resize_counts_the_greatest_of_the_pods_totals() {
    assert_eq!(pod(RESIZED).cpu_milli, 4000);
}

#[test]
fn in_1_34_a_resize_counts_container_by_container() {
    let text = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n{RESIZED}");
    let world = World::with(Compat::new(Version::V1_34), &text);
    let request = &world.group("pod", "p").expect("the pod").roles[0].request;
    assert_eq!(request.resources.cpu_milli, 6000);
}

#[test]
fn an_infeasible_resize_drops_the_spec() {
    let resources = pod("
spec:
  nodeName: n1
  containers:
  - {name: a, resources: {requests: {cpu: 8}}}
status:
  phase: Running
  conditions: [{type: PodResizePending, status: 'True', reason: Infeasible}]
  containerStatuses:
  - {name: a, allocatedResources: {cpu: 2}, resources: {requests: {cpu: 1}}}
");
    assert_eq!(resources.cpu_milli, 2000);
    let nothing_said = pod("
spec:
  nodeName: n1
  containers:
  - {name: a, resources: {requests: {cpu: 8}}}
status:
  phase: Running
  conditions: [{type: PodResizePending, status: 'True', reason: Infeasible}]
");
    assert_eq!(nothing_said.cpu_milli, 0);
}

#[test]
fn a_node_is_read_from_allocatable_else_from_capacity() {
    let world = World::of(
        "
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
spec: {taints: [{key: x, effect: NoSchedule}, {key: z, effect: Unheard}], unschedulable: true}
status: {allocatable: {cpu: 3920m, memory: 1.5, pods: 110, nvidia.com/gpu: 8}, capacity: {cpu: 9}}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {capacity: {cpu: 4}}
",
    );
    let node = world.node("n1").expect("n1");
    assert_eq!((node.allocatable.cpu_milli, node.allocatable.memory_bytes), (3920, 2));
    assert_eq!((node.allocatable.pods, scalar(&node.allocatable, "nvidia.com/gpu")), (110, 8));
    assert_eq!(node.taints.len(), 1, "an unknown effect is none");
    assert!(node.unschedulable);
    assert_eq!(world.node("n2").expect("n2").allocatable.cpu_milli, 4000);
    assert!(world.says(&["warning Node n2", "allows no pods"]), "{:?}", world.said());
}

#[test]
fn an_infeasible_resize_of_the_pod_counts_its_spec_until_its_status_speaks() {
    let text = |status: &str| {
        format!(
            "
spec:
  nodeName: n1
  resources: {{requests: {{cpu: 8}}}}
  containers: [{{name: a}}]
status:
  phase: Running
  conditions: [{{type: PodResizePending, status: 'True', reason: Infeasible}}]
{status}
"
        )
    };
    assert_eq!(pod(&text("")).cpu_milli, 8000);
    assert_eq!(pod(&text("  allocatedResources: {cpu: 9}")).cpu_milli, 8000);
    assert_eq!(pod(&text("  resources: {requests: {cpu: 3}}")).cpu_milli, 3000);
    let both = "  resources: {requests: {cpu: 3}}\n  allocatedResources: {cpu: 4}";
    assert_eq!(pod(&text(both)).cpu_milli, 4000);
}

#[test]
fn a_device_counter_names_a_kind_of_device() {
    for name in [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.10gb",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "google.com/tpu",
        "aws.amazon.com/neuroncore",
        "habana.ai/gaudi",
        "huawei.com/Ascend910",
        "rdma/hca_shared_devices_a",
    ] {
        assert!(crate::lower::is_device_counter(name), "{name}");
    }
    for name in [
        "example.com/licence",
        "example.com/migration",
        "nice.com/seats",
        "cpu",
        "hugepages-2Mi",
        "gpu",
        "kubernetes.io/gpu",
    ] {
        assert!(!crate::lower::is_device_counter(name), "{name}");
    }
}

/// kube-scheduler's `CalculateResource`: what a container counts as for scores is what its status says,
/// and a little where that says nothing, as of a resize that the node can't grant.
#[test]
fn what_is_scored_of_a_pod_on_a_node_is_what_its_status_says() {
    let padded = |status: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, uid: u}}\nspec:\n  nodeName: n1\n  \
             containers:\n  - {{name: a, resources: {{requests: {{cpu: 2}}}}}}\n  - {{name: b}}\n{status}"
        );
        let world = World::of(&text);
        world.group("pod", "p").expect("the pod").roles[0].request.padded.held
    };
    let mi = |mi: i64| mi << 20;
    assert_eq!(padded(""), (2100, mi(400)));
    let pending = "conditions: [{type: PodResizePending, status: 'True', reason: Infeasible}]";
    assert_eq!(padded(&format!("status: {{{pending}}}\n")), (200, mi(400)));
    let granted = "containerStatuses: [{name: a, allocatedResources: {cpu: 3, memory: 1Gi}}]";
    assert_eq!(padded(&format!("status: {{{granted}}}\n")), (3100, mi(1224)));
    let empty = "containerStatuses: [{name: a, allocatedResources: {cpu: 3}, resources: {}}]";
    assert_eq!(padded(&format!("status: {{{empty}}}\n")), (3100, mi(400)));
}
