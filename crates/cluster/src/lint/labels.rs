//! Labels of nodes that their ResourceSlices or their counters contradict, and devices that both offer.
//! The labels are those of NVIDIA's GPU feature discovery, the slices those of NVIDIA's DRA driver, the
//! counters those of its device plugin.

use std::collections::BTreeMap;

use phalanx_engine::Reach;
use phalanx_objects::core::Node;
use phalanx_objects::resource::DeviceAttribute;
use phalanx_objects::{Kind, Object, ObjectRef, Quantity};

use super::{Lint, Rule};
use crate::finding::Source;
use crate::lower::DeviceInfo;
use crate::words::{attribute, count};
use crate::world::World;

const DRIVER: &str = "gpu.nvidia.com";

/// How far the memory of a label may be from that of the slices, in percent: the two count what the
/// driver keeps for itself in different ways.
const MEMORY_PERCENT: u128 = 2;

/// A label, and what the slices publish in its place.
struct Row {
    label: &'static str,
    /// What is published, as a sentence names it.
    what: &'static str,
    published: fn(&DeviceInfo) -> Option<String>,
    /// Whether the label says what is published.
    agrees: fn(&str, &str) -> bool,
}

const ROWS: [Row; 8] = [
    Row {
        label: "nvidia.com/gpu.product",
        what: "productName",
        published: |device| text(device, "productName"),
        agrees: |label, product| {
            let bare = label.strip_suffix("-SHARED").unwrap_or(label);
            let bare = bare.split("-MIG-").next().unwrap_or(bare);
            bare.eq_ignore_ascii_case(&product.replace(' ', "-"))
        },
    },
    Row {
        label: "nvidia.com/gpu.memory",
        what: "capacity memory",
        published: |device| memory(device).map(|memory| memory.to_string()),
        agrees: near_memory,
    },
    Row {
        label: "nvidia.com/gpu.family",
        what: "architecture",
        published: |device| text(device, "architecture"),
        agrees: |label, family| label.eq_ignore_ascii_case(&family.replace(' ', "-")),
    },
    Row {
        label: "nvidia.com/gpu.compute.major",
        what: "cudaComputeCapability",
        published: |device| text(device, "cudaComputeCapability"),
        agrees: |label, version| parts(version).first() == parts(label).first(),
    },
    Row {
        label: "nvidia.com/gpu.compute.minor",
        what: "cudaComputeCapability",
        published: |device| text(device, "cudaComputeCapability"),
        agrees: |label, version| parts(version).get(1) == parts(label).first(),
    },
    Row {
        label: "nvidia.com/cuda.driver-version.full",
        what: "driverVersion",
        published: |device| text(device, "driverVersion"),
        agrees: |label, version| parts(label) == parts(version),
    },
    Row {
        label: "nvidia.com/cuda.driver.major",
        what: "driverVersion",
        published: |device| text(device, "driverVersion"),
        agrees: |label, version| parts(version).first() == parts(label).first(),
    },
    Row {
        label: "nvidia.com/cuda.runtime-version.full",
        what: "cudaDriverVersion",
        published: |device| text(device, "cudaDriverVersion"),
        agrees: |label, version| {
            let (label, version) = (parts(label), parts(version));
            label.get(..2) == version.get(..2)
        },
    },
];

pub(super) fn find(world: &World, found: &mut Vec<Lint>) {
    let mut of_nodes: BTreeMap<String, Vec<DeviceInfo>> = BTreeMap::new();
    for device in world.lowering().devices().filter(|device| *device.key.pool.driver == *DRIVER) {
        if let Reach::Node(node) = &device.reach {
            of_nodes.entry(node.0.to_string()).or_default().push(device);
        }
    }
    for object in world.objects().into_iter().flat_map(|objects| objects.of_kind(Kind::Node)) {
        let Object::Node(node) = object else { continue };
        let reference = object.reference();
        let Some(source) = world.lowering().source(&reference) else { continue };
        let place = (&reference, source);
        let devices = of_nodes.get(&node.metadata.name);
        counters(node, devices.is_some(), place, found);
        let Some(devices) = devices else { continue };
        // Partitions say what they are a part of, in words of their own.
        let whole: Vec<&DeviceInfo> = devices
            .iter()
            .filter(|device| text(device, "type").as_deref() == Some("gpu"))
            .collect();
        found.extend(offered_twice(node, whole.len(), place));
        for row in &ROWS {
            if let Some(label) = node.metadata.labels.get(row.label) {
                found.extend(row.contradicted(label, &whole, place));
            }
        }
        if let Some(label) = node.metadata.labels.get(COUNT) {
            let is_split = node.metadata.labels.get("nvidia.com/gpu.product");
            let is_split = is_split.is_some_and(|product| product.contains("-MIG-"));
            if !is_split && !whole.is_empty() {
                found.extend(counted(label, whole.len(), place));
            }
        }
    }
}

const COUNT: &str = "nvidia.com/gpu.count";

/// The names under which the device plugin counts whole GPUs, time-sliced ones included.
const COUNTERS: [&str; 2] = ["nvidia.com/gpu", "nvidia.com/gpu.shared"];

/// What the device plugin counts of these resources; none where it counts none of them at all.
fn capacity(node: &Node, names: &[&str]) -> Option<i128> {
    let counted = names.iter().filter_map(|name| node.status.capacity.get(*name));
    let mut counted = counted.map(|amount| i128::from(amount.value_ceil())).peekable();
    counted.peek()?;
    Some(counted.fold(0, i128::saturating_add))
}

/// Labels that say how many GPUs or partitions there are, held against what the plugin counts.
fn counters(node: &Node, published: bool, place: (&ObjectRef, &Source), found: &mut Vec<Lint>) {
    let labels = &node.metadata.labels;
    let number = |key: &str| labels.get(key)?.trim().parse::<i128>().ok();
    // GPUs that are split under the strategy `mixed` are counted by their partitions.
    let parts = labels.keys().filter_map(|key| {
        let name = key.strip_suffix(".count")?;
        name.starts_with("nvidia.com/mig-").then_some(name)
    });
    let parts: Vec<&str> = parts.collect();
    let whole = Some("nvidia.com/gpu").filter(|_| parts.is_empty());
    for name in parts.into_iter().chain(whole) {
        let label = format!("{name}.count");
        let Some(there) = number(&label) else { continue };
        let shares = number(&format!("{name}.replicas")).filter(|n| *n > 0).unwrap_or(1);
        let shared = format!("{name}.shared");
        let names = [name, shared.as_str()];
        let expected = there.saturating_mul(shares);
        let counted = capacity(node, &names);
        if counted.unwrap_or(0) == expected || (counted.is_none() && published) {
            continue;
        }
        let times =
            if shares > 1 { format!(" with {shares} replicas each") } else { String::new() };
        let what = match counted {
            Some(counted) => format!("the device plugin counts {counted} {name}"),
            None => format!("the node counts no {name}"),
        };
        let then = match counted {
            None => "Look whether the device plugin runs on the node.",
            Some(counted) if counted < expected => {
                "Either a GPU is lost to the device plugin (look at its log on the node, and at \
                 `nvidia-smi`), or the label is out of date."
            }
            Some(_) => {
                "The label is out of date: look whether GPU feature discovery runs on the node."
            }
        };
        let message = format!("Label {label} says {there}{times}, and {what}. {then}");
        let path = format!("metadata.labels[{label:?}]");
        found.push(Lint::new(Rule::LabelContradictsCounter, place, &path, message));
    }
}

/// GPUs that the device plugin counts while the DRA driver publishes them as well.
fn offered_twice(node: &Node, whole: usize, place: (&ObjectRef, &Source)) -> Option<Lint> {
    let counted = capacity(node, &COUNTERS).filter(|counted| *counted > 0 && whole > 0)?;
    let published = u64::try_from(whole).unwrap_or(u64::MAX);
    let message = format!(
        "The device plugin counts {counted} nvidia.com/gpu on the node, and the DRA driver {DRIVER} \
         publishes {}. Neither knows what the other gives out, so that a GPU may be held twice. Let one \
         of them serve the node.",
        count(published, "GPU", "GPUs"),
    );
    let path = "status.capacity";
    Some(Lint::new(Rule::DevicesOfferedTwice, place, path, message))
}

impl Row {
    fn contradicted(
        &self,
        label: &str,
        devices: &[&DeviceInfo],
        place: (&ObjectRef, &Source),
    ) -> Option<Lint> {
        let mut values: BTreeMap<String, u64> = BTreeMap::new();
        for value in devices.iter().filter_map(|device| (self.published)(device)) {
            *values.entry(value).or_default() += 1;
        }
        if values.is_empty() || values.keys().all(|value| (self.agrees)(label, value)) {
            return None;
        }
        let shown: Vec<String> = values
            .iter()
            .take(4)
            .map(|(value, number)| format!("{value} on {}", count(*number, "device", "devices")))
            .collect();
        let some = values.keys().any(|value| (self.agrees)(label, value));
        let then = if some {
            "A label holds one value for the whole node: pods that select nodes by it may get the other \
             devices; select devices by the attribute instead."
        } else {
            "One of the two is out of date: look whether GPU feature discovery and the DRA driver run \
             on the node."
        };
        let message = format!(
            "Label {} says {label}, and the ResourceSlices of the node publish {}: {}. {then}",
            self.label,
            self.what,
            crate::words::list(&shown),
        );
        Some(lint(self.label, place, message))
    }
}

fn counted(label: &str, published: usize, place: (&ObjectRef, &Source)) -> Option<Lint> {
    if label.trim().parse() == Ok(published) {
        return None;
    }
    let number = u64::try_from(published).unwrap_or(u64::MAX);
    let fewer = label.trim().parse::<u64>().is_ok_and(|label| label > number);
    let then = if fewer {
        "If the label is right, a GPU is lost to the DRA driver: look at its log on the node, and at \
         `nvidia-smi`."
    } else {
        "The label is out of date: look whether GPU feature discovery runs on the node."
    };
    let message = format!(
        "Label {COUNT} says {label}, and the ResourceSlices of the node publish {} of type gpu. {then}",
        count(number, "device", "devices"),
    );
    Some(lint(COUNT, place, message))
}

fn lint(label: &str, place: (&ObjectRef, &Source), message: String) -> Lint {
    Lint::new(Rule::LabelContradictsSlices, place, &format!("metadata.labels[{label:?}]"), message)
}

/// A text or version that the driver publishes.
fn text(device: &DeviceInfo, id: &str) -> Option<String> {
    let name = format!("{DRIVER}/{id}");
    let (_, value) = device.attributes.iter().find(|(n, _)| **n == *name)?;
    match value {
        DeviceAttribute::String(_) | DeviceAttribute::Version(_) => Some(attribute(value)),
        DeviceAttribute::Int(_)
        | DeviceAttribute::Bool(_)
        | DeviceAttribute::Ints(_)
        | DeviceAttribute::Bools(_)
        | DeviceAttribute::Strings(_)
        | DeviceAttribute::Versions(_)
        | DeviceAttribute::Empty
        | DeviceAttribute::Unknown(_) => None,
    }
}

fn memory(device: &DeviceInfo) -> Option<&Quantity> {
    let qualified = format!("{DRIVER}/memory");
    let mut capacity = device.capacity.iter();
    capacity.find(|(name, _)| **name == *"memory" || **name == *qualified).map(|(_, amount)| amount)
}

/// Whether a number of MiB is what the slices publish. A label that is no number says nothing.
fn near_memory(label: &str, published: &str) -> bool {
    let Ok(label) = label.parse::<u128>() else { return true };
    let Ok(published) = published.parse::<Quantity>() else { return true };
    let published = u128::from(published.value_ceil().max(0).unsigned_abs());
    let label = label.saturating_mul(1 << 20);
    label.abs_diff(published).saturating_mul(100) <= published.saturating_mul(MEMORY_PERCENT)
}

/// The numbers of a version: `580.105.08` and `580.105.8` are one.
fn parts(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
}
