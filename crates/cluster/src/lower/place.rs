//! Where a device sits, as its own attributes say, spelled alike whoever published it; and how fast an
//! NVLink is, by product.
//!
//! All of it serves nearness alone: selectors and constraints see attributes as they are written.

use phalanx_engine::{Name, Place};
use phalanx_objects::resource::DeviceAttribute;

use super::intern::{Attributes, Names, Value};

/// The domain of Kubernetes' standard attributes: where they stand beside a driver's own, they count.
const STANDARD: &str = "resource.kubernetes.io";

/// Attributes that only network cards have: those of DRANET and of the SR-IOV driver, without their
/// domains.
const OF_NICS: [&str; 8] =
    ["ifName", "interfaceName", "mac", "PFName", "rdma", "rdmaCapable", "rdmaDevice", "sriovVfs"];

/// NVLink bandwidth by product, in 10^9 bytes a second for one link each way: NVIDIA's data sheets of
/// each generation (NVLink 1 to 5), and the GA102 whitepaper for the bridged cards.
const NVLINK_GBPS: [(f64, &[&str]); 4] = [
    (20.0, &["P100"]),
    (25.0, &["V100", "A100", "A800", "A30", "H100", "H200", "H800", "GH200"]),
    (50.0, &["B200", "B300", "GB200", "GB300"]),
    (14.0625, &["3090", "A40", "A6000"]),
];

/// What an attribute tells of where its device sits, by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tells {
    /// Nothing.
    #[default]
    Nothing,
    /// The PCIe root complex; whether under Kubernetes' standard name.
    Root(bool),
    /// The NUMA node; whether under Kubernetes' standard name.
    Numa(bool),
    /// That it is a network card.
    Nic,
}

impl Tells {
    /// What an attribute of this fully qualified name tells.
    pub(crate) fn of(name: &str) -> Self {
        let (domain, bare) = name.rsplit_once('/').unwrap_or(("", name));
        match bare {
            "pcieRoot" => Self::Root(domain == STANDARD),
            "numaNode" => Self::Numa(domain == STANDARD),
            other if OF_NICS.contains(&other) => Self::Nic,
            _ => Self::Nothing,
        }
    }
}

/// Where a device sits, gathered from its attributes in the order of their names as it spells them.
#[derive(Default)]
pub(crate) struct Seat {
    root: Option<(bool, Value)>,
    numa: Option<(bool, Value)>,
    nic: bool,
}

impl Seat {
    /// Takes in one of its attributes: of several the standard one counts, else the first.
    pub(crate) fn see(&mut self, tells: Tells, value: Value) {
        let (known, standard) = match tells {
            Tells::Nothing => return,
            Tells::Nic => {
                self.nic = true;
                return;
            }
            Tells::Root(standard) => (&mut self.root, standard),
            Tells::Numa(standard) => (&mut self.numa, standard),
        };
        if known.is_none_or(|(before, _)| standard && !before) {
            *known = Some((standard, value));
        }
    }

    /// Where it sits, and whether it is a network card.
    pub(crate) fn place(&self, attributes: &mut Attributes, names: &mut Names) -> Place {
        let mut of = |seen: Option<(bool, Value)>, is: fn(&DeviceAttribute) -> bool| {
            let (_, value) = seen?;
            let fits = attributes.value_of(value).is_some_and(is);
            if fits { attributes.located(value, names) } else { None }
        };
        let root = of(self.root, |value| matches!(value, DeviceAttribute::String(_)));
        let number =
            |v: &DeviceAttribute| matches!(v, DeviceAttribute::Int(_) | DeviceAttribute::Ints(_));
        let numa = of(self.numa, number);
        Place { root, numa, nic: self.nic }
    }
}

/// Where a device is of which this is the PCIe root, if it is a text, or the NUMA node, if it is a
/// number.
pub(super) fn located(value: &DeviceAttribute, names: &mut Names) -> Option<Name> {
    let node = match value {
        DeviceAttribute::String(root) => return Some(names.get(&pcie_root(root))),
        DeviceAttribute::Int(node) => *node,
        // KEP-6072: the node that it is on stands first, those near it follow.
        DeviceAttribute::Ints(nodes) => *nodes.first()?,
        DeviceAttribute::Bool(_)
        | DeviceAttribute::Version(_)
        | DeviceAttribute::Bools(_)
        | DeviceAttribute::Strings(_)
        | DeviceAttribute::Versions(_)
        | DeviceAttribute::Empty
        | DeviceAttribute::Unknown(_) => return None,
    };
    (node >= 0).then(|| names.get(&node.to_string()))
}

/// A PCIe root complex as `0000:07`, however it is spelled: `pci0000:07` (the kernel's directory),
/// `PCI0000:07`, `0000:07`, `00000000:07:00.0`. What reads as none of these stays, in lower case.
pub(crate) fn pcie_root(text: &str) -> String {
    let lower = text.trim().to_ascii_lowercase();
    let bare = lower.strip_prefix("pci").unwrap_or(&lower);
    let parts: Vec<&str> = bare.split(':').collect();
    let hex = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_hexdigit());
    match parts.as_slice() {
        [domain, bus] | [domain, bus, _] if hex(domain) && hex(bus) => {
            format!("{:0>4}:{bus:0>2}", domain.trim_start_matches('0'))
        }
        [_] | [_, _] | [_, _, _] | [..] => lower,
    }
}

/// Bandwidth of one NVLink of a product, each way in 10^9 bytes a second, where its name tells.
pub(crate) fn nvlink_gbps(product: &str) -> Option<f64> {
    let words = || product.split(|c: char| !c.is_ascii_alphanumeric());
    let mut rows = NVLINK_GBPS.iter();
    rows.find(|(_, products)| words().any(|word| products.contains(&word))).map(|(gbps, _)| *gbps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_one_however_it_is_spelled() {
        for text in
            ["pci0000:07", "PCI0000:07", "0000:07", "00000000:07", " pci0000:7", "0000:07:00.0"]
        {
            assert_eq!(pcie_root(text), "0000:07", "{text}");
        }
        assert_eq!(pcie_root("pci0008:00"), "0008:00");
        assert_ne!(pcie_root("pci0000:07"), pcie_root("pci0001:07"));
        for text in ["", "socket-0", "pci", "a:b:c:d"] {
            assert_eq!(pcie_root(text), text);
        }
    }

    #[test]
    fn a_place_is_read_from_any_drivers_attributes() {
        let of = |all: &[(&str, DeviceAttribute)]| {
            let (mut attributes, mut names) = (Attributes::default(), Names::default());
            let mut seat = Seat::default();
            for (name, value) in all {
                let id = attributes.name(&Name::new("driver"), name);
                seat.see(attributes.tells(id), attributes.value(value));
            }
            seat.place(&mut attributes, &mut names)
        };
        let text = |text: &str| DeviceAttribute::String(text.to_owned());
        let gpu = of(&[
            ("pcieRoot", text("0000:07")),
            ("resource.kubernetes.io/pcieRoot", text("pci0000:25")),
            ("numaNode", DeviceAttribute::Ints(vec![1])),
        ]);
        assert_eq!((gpu.root.as_deref(), gpu.numa.as_deref()), (Some("0000:25"), Some("1")));
        assert!(!gpu.nic);
        let nic = of(&[("dra.net/rdma", DeviceAttribute::Bool(true)), ("numaNode", text("1"))]);
        assert_eq!((nic.root, nic.numa, nic.nic), (None, None, true));
        let both = of(&[("numaNode", DeviceAttribute::Ints(vec![2, 1]))]);
        assert_eq!(both.numa.as_deref(), Some("2"));
        assert_eq!(of(&[("numaNode", DeviceAttribute::Int(-1))]).numa, None);
    }

    #[test]
    fn products_tell_their_links() {
        assert_eq!(nvlink_gbps("NVIDIA GeForce RTX 3090"), Some(14.0625));
        assert_eq!(nvlink_gbps("NVIDIA A100-SXM4-40GB"), Some(25.0));
        assert_eq!(nvlink_gbps("NVIDIA GB200"), Some(50.0));
        assert_eq!(nvlink_gbps("NVIDIA RTX A4000"), None);
    }
}
