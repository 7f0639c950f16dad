//! Small boards.

/// A class of GPUs, and nodes with so many of them each.
pub(crate) fn fleet(nodes: usize, gpus: usize) -> String {
    let class =
        "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n";
    (0..nodes).fold(class.to_owned(), |all, at| all + &node(&format!("n{at}"), gpus))
}

pub(crate) fn node(name: &str, gpus: usize) -> String {
    let devices: String = (0..gpus).map(|at| format!("  - {{name: gpu-{at}}}\n")).collect();
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}\n\
         status: {{allocatable: {{cpu: '16', memory: 64Gi, pods: '110'}}}}\n\
         ---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: {name}-gpus}}\n\
         spec:\n  driver: gpu.example.com\n  nodeName: {name}\n\
         \x20 pool: {{name: {name}, generation: 1, resourceSliceCount: 1}}\n  devices:\n{devices}"
    )
}

/// A template for so many GPUs.
pub(crate) fn template(name: &str, count: usize) -> String {
    format!(
        "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n\
         metadata: {{name: {name}, namespace: default}}\n\
         spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu, count: {count}}}}}]}}}}}}\n"
    )
}

/// A pod of a scheduler; `more` are further fields of its spec.
pub(crate) fn pod(name: &str, scheduler: &str, more: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default}}\n\
         spec:\n  schedulerName: {scheduler}\n  priority: 0\n\
         \x20 containers: [{{name: c, resources: {{requests: {{cpu: '1'}}}}}}]\n{more}"
    )
}

pub(crate) fn of_template(template: &str) -> String {
    format!("  resourceClaims: [{{name: gpus, resourceClaimTemplateName: {template}}}]\n")
}

/// A gang of so many pods, each with a claim from a template.
pub(crate) fn gang(name: &str, pods: usize, scheduler: &str, template: &str) -> String {
    let group = format!(
        "---\napiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}, namespace: default}}\n\
         spec: {{schedulingPolicy: {{gang: {{minCount: {pods}}}}}}}\n"
    );
    (0..pods).fold(group, |all, at| all + &member(name, at, scheduler, template))
}

pub(crate) fn member(name: &str, at: usize, scheduler: &str, template: &str) -> String {
    let more = format!("  schedulingGroup: {{podGroupName: {name}}}\n{}", of_template(template));
    pod(&format!("{name}-{at}"), scheduler, &more)
}
