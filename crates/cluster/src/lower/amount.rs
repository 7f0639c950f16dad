//! The ledger's arithmetic: what a pod requests, what a node has.
//!
//! Quantities are added exactly and rounded up once, after the sum, as `resourcehelper.PodRequests`
//! and `framework.Resource` of kube-scheduler do. What the API server would have defaulted at
//! creation is defaulted here, so that a manifest and the pod made of it ask the same.

use std::collections::BTreeMap;

use phalanx_engine::{Padded, Resources};
use phalanx_objects::Quantity;
use phalanx_objects::core::{
    Container, ContainerStatus, PodSpec, PodStatus, ResourceList, RestartPolicy,
};

use super::intern::Names;
use crate::compat::Version;

/// Amounts by resource name, in exact quantities.
type Amounts<'a> = BTreeMap<&'a str, Quantity>;

/// What a container counts as where it asks for nothing: by name, how much.
type Padding = [(&'static str, Quantity)];

/// What a pod that waits asks for: its spec alone.
pub(crate) fn asked(spec: &PodSpec, names: &mut Names) -> Resources {
    of_pod(&asked_sum(spec), names)
}

/// What a pod on a node holds: the greatest of what its spec asks, what the node has granted and
/// what is in force (in-place resize, KEP-1287).
pub(crate) fn held(
    spec: &PodSpec,
    status: &PodStatus,
    version: Version,
    names: &mut Names,
) -> Resources {
    of_pod(&held_sum(spec, status, version, &[]), names)
}

fn asked_sum(spec: &PodSpec) -> Amounts<'_> {
    let mut sum = walk(spec, |container| defaulted(container));
    total(spec, &mut sum, None);
    sum
}

fn held_sum<'a>(
    spec: &'a PodSpec,
    status: &'a PodStatus,
    version: Version,
    padding: &Padding,
) -> Amounts<'a> {
    let of_spec = || walk(spec, |container| pad(defaulted(container), padding));
    if !resizes(status) {
        let mut sum = of_spec();
        total(spec, &mut sum, None);
        return sum;
    }
    let infeasible = infeasible(status);
    let mut sum = if version == Version::V1_34 {
        // 1.34 compares container by container.
        walk(spec, |container| {
            let mut most = granted(container, status, infeasible);
            raise(&mut most, &in_force(container, status, infeasible));
            if !infeasible {
                raise(&mut most, &defaulted(container));
            }
            pad(most, padding)
        })
    } else {
        let (allocated, actual) = totals_of_status(spec, status, infeasible, padding);
        let mut most = allocated;
        raise(&mut most, &actual);
        if !infeasible {
            raise(&mut most, &of_spec());
        }
        most
    };
    let in_force = status.resources.as_ref().map(|resources| InForce {
        lists: [&resources.requests, &status.allocated_resources],
        infeasible,
    });
    total(spec, &mut sum, in_force.as_ref());
    sum
}

/// What a container counts as where nodes are scored and it asks for nothing (`schedutil`'s
/// `DefaultMilliCPURequest` and `DefaultMemoryRequest`).
const PADDING: [(&str, Quantity); 2] =
    [("cpu", Quantity::from_milli(100)), ("memory", Quantity::from_int(200 << 20))];

/// CPU and memory of a pod as kube-scheduler scores them: while it is placed, and on its node with
/// this status.
pub(crate) fn padded(spec: &PodSpec, status: &PodStatus, version: Version) -> Padded {
    let of = |sum: &Amounts<'_>| {
        let cpu = sum.get("cpu").map_or(0, Quantity::milli_ceil);
        (cpu, sum.get("memory").map_or(0, Quantity::value_ceil))
    };
    let mut asked = walk(spec, |container| pad(defaulted(container), &PADDING));
    add(&mut asked, &borrowed(&spec.overhead));
    // Requests of the pod as a whole stand for themselves once it is on a node.
    let mut padding = PADDING.to_vec();
    if !pod_requests(spec).is_empty() {
        let bare = held_sum(spec, status, version, &[]);
        padding.retain(|(name, _)| !bare.contains_key(name));
    }
    let held = held_sum(spec, status, version, &padding);
    Padded { asked: of(&asked), held: of(&held) }
}

fn pad<'a>(mut amounts: Amounts<'a>, padding: &Padding) -> Amounts<'a> {
    for (name, quantity) in padding {
        amounts.entry(name).or_insert(*quantity);
    }
    amounts
}

/// Whether anything in the status could differ from the spec.
fn resizes(status: &PodStatus) -> bool {
    let moved = |s: &ContainerStatus| s.allocated_resources.is_some() || s.resources.is_some();
    status.container_statuses.iter().any(moved)
        || status.init_container_statuses.iter().any(moved)
        || status.resources.is_some()
        || !status.allocated_resources.is_empty()
        || infeasible(status)
}

/// Whether the node has said that it can't grant the resize: the first such condition counts.
fn infeasible(status: &PodStatus) -> bool {
    status
        .conditions
        .iter()
        .find(|condition| condition.kind == "PodResizePending")
        .is_some_and(|condition| condition.reason == "Infeasible")
}

/// What the node has granted and what is in force, as totals of the pod.
fn totals_of_status<'a>(
    spec: &'a PodSpec,
    status: &'a PodStatus,
    infeasible: bool,
    padding: &Padding,
) -> (Amounts<'a>, Amounts<'a>) {
    if let Some(resources) = &status.resources
        && !status.allocated_resources.is_empty()
        && !resources.requests.is_empty()
    {
        return (borrowed(&status.allocated_resources), borrowed(&resources.requests));
    }
    (
        walk(spec, |container| pad(granted(container, status, infeasible), padding)),
        walk(spec, |container| pad(in_force(container, status, infeasible), padding)),
    )
}

fn status_of<'a>(container: &Container, status: &'a PodStatus) -> Option<&'a ContainerStatus> {
    let mut all = status.container_statuses.iter().chain(&status.init_container_statuses);
    all.find(|s| s.name == container.name)
}

fn granted<'a>(c: &'a Container, status: &'a PodStatus, infeasible: bool) -> Amounts<'a> {
    match status_of(c, status).and_then(|s| s.allocated_resources.as_ref()) {
        Some(list) => borrowed(list),
        None if infeasible => Amounts::new(),
        None => defaulted(c),
    }
}

fn in_force<'a>(c: &'a Container, status: &'a PodStatus, infeasible: bool) -> Amounts<'a> {
    let resources = status_of(c, status).and_then(|s| s.resources.as_ref());
    match resources.filter(|resources| !resources.requests.is_empty()) {
        Some(resources) => borrowed(&resources.requests),
        None => granted(c, status, infeasible),
    }
}

fn borrowed(list: &ResourceList) -> Amounts<'_> {
    list.iter().map(|(name, quantity)| (name.as_str(), *quantity)).collect()
}

/// A container's requests, with limits where a request is missing (API server's defaulting).
fn defaulted(container: &Container) -> Amounts<'_> {
    let mut amounts = borrowed(&container.resources.limits);
    amounts.extend(borrowed(&container.resources.requests));
    amounts
}

/// Adds up containers and raises the sum to what the init containers need at their time.
fn walk<'a>(spec: &'a PodSpec, of: impl Fn(&'a Container) -> Amounts<'a>) -> Amounts<'a> {
    let mut regular = Amounts::new();
    for container in &spec.containers {
        add(&mut regular, &of(container));
    }
    let mut sidecars = Amounts::new();
    let mut init = Amounts::new();
    for container in &spec.init_containers {
        let own = of(container);
        if container.restart_policy == Some(RestartPolicy::Always) {
            add(&mut regular, &own);
            add(&mut sidecars, &own);
            raise(&mut init, &sidecars);
        } else {
            let mut together = own;
            add(&mut together, &sidecars);
            raise(&mut init, &together);
        }
    }
    raise(&mut regular, &init);
    regular
}

fn add<'a>(sum: &mut Amounts<'a>, more: &Amounts<'a>) {
    for (name, quantity) in more {
        let slot = sum.entry(name).or_default();
        // Beyond 127 bits nothing fits anywhere, whichever of the two is kept.
        *slot = slot.checked_add(quantity).unwrap_or((*slot).max(*quantity));
    }
}

fn raise<'a>(most: &mut Amounts<'a>, other: &Amounts<'a>) {
    for (name, quantity) in other {
        let slot = most.entry(name).or_insert(*quantity);
        *slot = (*slot).max(*quantity);
    }
}

/// Whether requests of the pod as a whole may name the resource.
fn pod_level(name: &str) -> bool {
    name == "cpu" || name == "memory" || name.starts_with("hugepages-")
}

/// The requests of the pod as a whole, with the API server's defaults.
fn pod_requests(spec: &PodSpec) -> Amounts<'_> {
    let Some(own) = &spec.resources else { return Amounts::new() };
    if own.requests.is_empty() && own.limits.is_empty() {
        return Amounts::new();
    }
    let sum = walk(spec, |container| defaulted(container));
    let mut requests = borrowed(&own.requests);
    for name in ["cpu", "memory"] {
        if let Some(quantity) = sum.get(name) {
            requests.entry(name).or_insert(*quantity);
        }
    }
    for (name, quantity) in &own.limits {
        requests.entry(name).or_insert(*quantity);
    }
    requests.retain(|name, _| pod_level(name));
    requests
}

/// What a pod's status says of the pod as a whole.
struct InForce<'a> {
    /// What is in force, and what the node has granted.
    lists: [&'a ResourceList; 2],
    /// The node can't grant the resize: what the spec asks counts for nothing.
    infeasible: bool,
}

/// What a pod comes to, rounded.
fn of_pod(sum: &Amounts<'_>, names: &mut Names) -> Resources {
    let mut resources = rounded(sum, names);
    resources.pods = 1;
    resources.scalars = resources.scalars.into_iter().filter(|(_, amount)| *amount != 0).collect();
    resources
}

/// Puts the pod's own requests in place of the sum and the overhead on top. Where the status says
/// nothing of the pod as a whole the spec alone counts, infeasible or not.
fn total<'a>(spec: &'a PodSpec, sum: &mut Amounts<'a>, in_force: Option<&InForce<'a>>) {
    let own = pod_requests(spec);
    if !own.is_empty() {
        let mut effective = own;
        if let Some(InForce { lists, infeasible }) = in_force {
            if *infeasible {
                effective.clear();
            }
            for list in lists {
                raise(&mut effective, &borrowed(list));
            }
        }
        sum.extend(effective.into_iter().filter(|(name, _)| pod_level(name)));
    }
    add(sum, &borrowed(&spec.overhead));
}

/// The requests of a pod, exact (`resourcehelper.PodRequests`).
pub(crate) fn requests(spec: &PodSpec) -> ResourceList {
    owned(&asked_sum(spec))
}

/// The limits of a pod, exact (`resourcehelper.PodLimits`): overhead counts where there is a limit.
pub(crate) fn limits(spec: &PodSpec) -> ResourceList {
    let mut sum = walk(spec, |container| borrowed(&container.resources.limits));
    let own = spec.resources.iter().flat_map(|own| &own.limits);
    for (name, quantity) in own.filter(|(name, _)| pod_level(name)) {
        sum.insert(name, *quantity);
    }
    let mut overhead = borrowed(&spec.overhead);
    overhead.retain(|name, _| sum.contains_key(name));
    add(&mut sum, &overhead);
    owned(&sum)
}

fn owned(amounts: &Amounts<'_>) -> ResourceList {
    amounts.iter().map(|(name, quantity)| ((*name).to_owned(), *quantity)).collect()
}

/// What is allocatable on a node. The API server copies the capacity where `allocatable` is
/// missing.
pub(crate) fn allocatable(
    allocatable: &ResourceList,
    capacity: &ResourceList,
    names: &mut Names,
) -> Resources {
    let list = if allocatable.is_empty() { capacity } else { allocatable };
    rounded(&borrowed(list), names)
}

/// The extended resources of which a node has more than it gives out, with what it has and how much more
/// that is: the kubelet leaves out of `allocatable` what a device plugin calls unhealthy. Where
/// `allocatable` is missing it is the capacity.
pub(crate) fn unhealthy<'a>(
    allocatable: &'a ResourceList,
    capacity: &'a ResourceList,
) -> impl Iterator<Item = (&'a String, Quantity, i64)> {
    let extended = capacity.iter().filter(|(name, _)| is_extended(name));
    let more = extended.map(|(name, all)| {
        let given = allocatable.get(name).map_or(0, Quantity::value_ceil);
        (name, *all, all.value_ceil().saturating_sub(given.max(0)))
    });
    more.filter(|(_, _, more)| *more > 0 && !allocatable.is_empty())
}

fn rounded(amounts: &Amounts<'_>, names: &mut Names) -> Resources {
    let mut resources = Resources::default();
    let mut scalars = Vec::new();
    for (name, quantity) in amounts {
        match *name {
            "cpu" => resources.cpu_milli = quantity.milli_ceil(),
            "memory" => resources.memory_bytes = quantity.value_ceil(),
            "ephemeral-storage" => resources.ephemeral_bytes = quantity.value_ceil(),
            "pods" => resources.pods = quantity.value_ceil(),
            name if is_scalar(name) => scalars.push((names.get(name), quantity.value_ceil())),
            // Kubernetes does not track such a name either.
            _ => {}
        }
    }
    resources.scalars = scalars.into();
    resources
}

/// Whether kube-scheduler tracks the name beside cpu, memory, ephemeral-storage and pods
/// (`schedutil.IsScalarResourceName`).
pub(crate) fn is_scalar(name: &str) -> bool {
    is_extended(name)
        || name.starts_with("hugepages-")
        || name.contains("kubernetes.io/")
        || name.starts_with("attachable-volumes-")
}

/// Whether the name is an extended resource (`v1helper.IsExtendedResourceName`).
pub(crate) fn is_extended(name: &str) -> bool {
    name.contains('/')
        && !name.contains("kubernetes.io/")
        && !name.starts_with("requests.")
        && super::rules::is_qualified_name(&format!("requests.{name}"))
}

/// A kind of device that resources count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceKindWord {
    Accelerator,
    Network,
    Fpga,
    Qat,
}

/// Words of a resource's name that say that it counts devices, and of which kind.
const DEVICES: [(DeviceKindWord, &[&str]); 4] = [
    (
        DeviceKindWord::Accelerator,
        &[
            "gpu", "vgpu", "mig", "tpu", "npu", "xpu", "dcu", "mlu", "i915", "neuron", "gaudi",
            "ascend",
        ],
    ),
    (DeviceKindWord::Network, &["rdma", "hca", "roce", "infiniband", "sriov", "nic"]),
    (DeviceKindWord::Fpga, &["fpga"]),
    (DeviceKindWord::Qat, &["qat"]),
];

/// Whether an extended resource counts devices of a device plugin, which the kubelet chooses: one
/// word of its name is the name of a kind of device, such as `gpu` in `nvidia.com/gpu` and `mig` in
/// `nvidia.com/mig-1g.10gb`. A number or a plural may follow the word (`ascend910`, `gpus`). Other
/// extended resources (licences, quotas) are counted on the node and nothing is chosen.
pub(crate) fn is_device_counter(name: &str) -> bool {
    is_extended(name) && device_kind(name).is_some()
}

/// The kind of device that a word of a name says, if one does.
pub(crate) fn device_kind(name: &str) -> Option<DeviceKindWord> {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.find_map(|word| {
        let says = |kind: &str| {
            word.strip_prefix(kind).is_some_and(|rest| {
                rest.is_empty() || ["s", "core", "device"].contains(&rest) || is_number(rest)
            })
        };
        DEVICES.iter().find(|(_, kinds)| kinds.iter().any(|kind| says(kind))).map(|(k, _)| *k)
    })
}

fn is_number(text: &str) -> bool {
    text.bytes().next().is_some_and(|first| first.is_ascii_digit())
}
