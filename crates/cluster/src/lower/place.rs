//! Where a device sits, as its own attributes say, spelled alike whoever published it; and how fast an
//! NVLink is, by product.
//!
//! All of it serves nearness alone: selectors and constraints see attributes as they are written.

use std::collections::BTreeMap;

use phalanx_engine::Place;
use phalanx_objects::resource::DeviceAttribute;

use super::intern::Names;

/// The domain of Kubernetes' standard attributes: where they stand beside a driver's own, they count.
const STANDARD: &str = "resource.kubernetes.io/";

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

/// Where a device with these attributes sits, and whether it is a network card.
pub(crate) fn place(attributes: &BTreeMap<String, DeviceAttribute>, names: &mut Names) -> Place {
    let (mut roots, mut nodes, mut nic) = (Found::default(), Found::default(), false);
    for (name, value) in attributes {
        match without_domain(name) {
            "pcieRoot" => roots.see(name, value),
            "numaNode" => nodes.see(name, value),
            other => nic |= OF_NICS.contains(&other),
        }
    }
    let root = match roots.counts() {
        Some(DeviceAttribute::String(root)) => Some(names.get(&pcie_root(root))),
        Some(_) | None => None,
    };
    let numa = match nodes.counts() {
        Some(DeviceAttribute::Int(node)) => Some(*node),
        // KEP-6072: the node that it is on stands first, those near it follow.
        Some(DeviceAttribute::Ints(nodes)) => nodes.first().copied(),
        Some(_) | None => None,
    };
    let numa = numa.filter(|node| *node >= 0).map(|node| names.get(&node.to_string()));
    Place { root, numa, nic }
}

/// The values under one name, whatever its domain.
#[derive(Default)]
struct Found<'a> {
    standard: Option<&'a DeviceAttribute>,
    first: Option<&'a DeviceAttribute>,
}

impl<'a> Found<'a> {
    fn see(&mut self, name: &str, value: &'a DeviceAttribute) {
        // With no other slash in it, the rest of a standard name is the name itself.
        if name.strip_prefix(STANDARD).is_some_and(|rest| !rest.contains('/')) {
            self.standard = Some(value);
        }
        self.first.get_or_insert(value);
    }

    fn counts(&self) -> Option<&'a DeviceAttribute> {
        self.standard.or(self.first)
    }
}

fn without_domain(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, bare)| bare)
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
            let all = all.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            place(&all.collect(), &mut Names::default())
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
