//! Extended resources as the API server wants them: in whole units, with a limit, and requests equal
//! to it; and devices that a pod takes past all counting.

use phalanx_objects::Quantity;
use phalanx_objects::core::{Container, PodSpec};

use super::claims::Waiting;
use super::near::cut;
use super::{Lint, Rule};
use crate::lower::{device_kind, extended_asks, is_device_counter, may_be_served};
use crate::world::World;

/// The containers of a pod, each with its path.
pub(super) fn containers<'w>(
    waiting: &Waiting<'w>,
) -> impl Iterator<Item = (String, &'w Container)> + use<'w> {
    let (spec, at) = (waiting.spec, waiting.at.clone());
    let lists = [("containers", &spec.containers), ("initContainers", &spec.init_containers)];
    lists.into_iter().flat_map(move |(field, containers)| {
        let at = at.clone();
        let path = move |index: usize| format!("{at}.{field}[{index}]");
        containers.iter().enumerate().map(move |(index, container)| (path(index), container))
    })
}

/// Extended resources that the API server would refuse.
pub(super) fn amounts(waiting: &Waiting<'_>, found: &mut Vec<Lint>) {
    let place = (&waiting.reference, waiting.source);
    for (path, container) in containers(waiting) {
        let resources = &container.resources;
        let who = cut(&container.name);
        for (list, amounts) in [("limits", &resources.limits), ("requests", &resources.requests)] {
            // A request that is equal to its limit is told with that.
            let told = |name: &String, amount: &Quantity| {
                list == "requests" && resources.limits.get(name) == Some(amount)
            };
            let parts = amounts.iter().filter(|(name, amount)| {
                may_be_served(name) && in_part(amount) && !told(name, amount)
            });
            for (name, amount) in parts {
                let why = if amount.is_whole() {
                    "That is more than can be counted, and the API server refuses it."
                } else {
                    "Extended resources are counted in whole units, and the API server refuses it. A \
                     part of a GPU is a partition or a share: a resource with a name of its own, or a \
                     device that claims may share."
                };
                let asked = cut(name);
                let message = format!("Container {who} asks for {amount} of {asked}. {why}");
                let path = format!("{path}.resources.{list}[{name:?}]");
                found.push(Lint::new(Rule::ResourceFraction, place, &path, message));
            }
        }
        for (name, request) in resources.requests.iter().filter(|(name, _)| may_be_served(name)) {
            let path = format!("{path}.resources.requests[{name:?}]");
            match resources.limits.get(name) {
                None => {
                    let message = format!(
                        "Container {who} requests {request} of {} and sets no limit. Extended resources \
                         can't be overcommitted: the API server refuses it. Set the limit; the request \
                         follows it.",
                        cut(name)
                    );
                    found.push(Lint::new(Rule::ResourceLimitMissing, place, &path, message));
                }
                Some(limit) if limit != request => {
                    let message = format!(
                        "Container {who} requests {request} of {} and is limited to {limit}. For extended \
                         resources both must be equal: the API server refuses it.",
                        cut(name)
                    );
                    found.push(Lint::new(Rule::ResourceLimitDiffers, place, &path, message));
                }
                Some(_) => {}
            }
        }
    }
}

fn in_part(amount: &Quantity) -> bool {
    amount.milli_ceil() % 1000 != 0
}

/// Devices that are taken without a request for them: nobody counts these, and whoever holds them
/// shares them unasked.
pub(super) fn uncounted(world: &World, waiting: &Waiting<'_>, found: &mut Vec<Lint>) {
    paths(waiting, found);
    let asks = asks_for_devices(waiting.spec);
    let place = (&waiting.reference, waiting.source);
    let instead = "Ask for them by a ResourceClaim or an extended resource.";
    for (path, container) in containers(waiting) {
        let who = cut(&container.name);
        if container.env.0 {
            let message = if asks {
                format!(
                    "Container {who} sets NVIDIA_VISIBLE_DEVICES, and the pod asks for devices. Where a \
                     device plugin sets that variable for what it gives, the container's own value wins: \
                     it may see GPUs that other pods hold. Leave it out."
                )
            } else {
                format!(
                    "Container {who} sets NVIDIA_VISIBLE_DEVICES, and the pod asks for no device. The \
                     container runtime may inject GPUs that nobody counts and that other pods hold. \
                     {instead}"
                )
            };
            let path = format!("{path}.env");
            found.push(Lint::new(Rule::DevicesByEnvironment, place, &path, message));
        }
        if !asks && container.security_context.privileged && has_gpus(world) {
            let message = format!(
                "Container {who} is privileged, and the pod asks for no device: it sees every GPU of its \
                 node, whoever holds them. If it uses GPUs: {}",
                instead.replacen('A', "a", 1)
            );
            let path = format!("{path}.securityContext.privileged");
            found.push(Lint::new(Rule::DevicesByPrivilege, place, &path, message));
        }
    }
}

/// Volumes that are device files of GPUs on the node.
fn paths(waiting: &Waiting<'_>, found: &mut Vec<Lint>) {
    let privileged = containers(waiting).any(|(_, c)| c.security_context.privileged);
    for volume in &waiting.spec.volumes.of_node {
        if !is_gpu(&volume.path) {
            continue;
        }
        let then = if privileged {
            "A privileged container opens it, whoever holds the GPU, and nobody counts that."
        } else {
            "The file alone gives no right to open it: the container gets that with a device that it is \
             given, and else \"Operation not permitted\"."
        };
        let message = format!(
            "Volume {} is {} of the node, a device file of a GPU. {then} Leave the volume out, and ask for \
             the GPU by a ResourceClaim or an extended resource.",
            cut(&volume.name),
            cut(&volume.path),
        );
        let path = format!("{}.volumes[{}].hostPath.path", waiting.at, volume.index);
        let place = (&waiting.reference, waiting.source);
        found.push(Lint::new(Rule::DevicesByHostPath, place, &path, message));
    }
}

/// Whether a path is a device file of GPUs, or a folder of them: of NVIDIA's driver, of the kernel's
/// graphics drivers, of AMD's compute driver.
fn is_gpu(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    ["/dev/nvidia", "/dev/dri", "/dev/kfd"].iter().any(|known| {
        path.strip_prefix(known)
            .is_some_and(|rest| *known == "/dev/nvidia" || rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether a pod asks for devices: by a claim, or by an extended resource that counts some.
pub(super) fn asks_for_devices(spec: &PodSpec) -> bool {
    !spec.resource_claims.is_empty()
        || extended_asks(spec)
            .iter()
            .any(|asks| is_device_counter(&asks.resource) || device_kind(&asks.resource).is_some())
}

/// Whether any node has GPUs, as far as the input tells.
fn has_gpus(world: &World) -> bool {
    world.devices_len() > 0 || world.lowering().counts_devices()
}
