//! `NodeTopology`, an object of ours: how the devices of one node are linked, which no driver
//! publishes. It serves choice, alignment and explanations; selectors never see it.
//!
//! A node with eight GPUs behind NVSwitch, by hand:
//! ```yaml
//! apiVersion: phalanx.dev/v1alpha1
//! kind: NodeTopology
//! metadata: {name: hgx-1}           # the node's name
//! spec:
//!   source: assumed                 # holds for every fact below that names no source of its own
//!   islands:
//!   - {name: nvswitch, fabric: nvswitch, members: [gpu-0, gpu-1, gpu-2, gpu-3, gpu-4, gpu-5, gpu-6, gpu-7]}
//! ```
//! Members are names of DRA devices, unless `devices` declares the name. Two RTX 3090 with a bridge:
//! ```yaml
//! spec:
//!   devices:
//!   - {name: left, uuid: GPU-1c1f…, pciBusID: "0000:01:00.0", index: 0}
//!   - {name: right, uuid: GPU-9a0e…, pciBusID: "0000:41:00.0", index: 1}
//!   links:
//!   - {a: left, b: right, class: NVL, links: 4, gbps: 56.25, source: measured}
//!   islands:
//!   - {name: bridge, fabric: bridge, members: [left, right]}
//! ```

mod align;
mod placement;

use crate::macros::{closed_words, object};
use crate::meta::ObjectMeta;

pub use align::{ALIGN_ANNOTATION, Align, AlignError, AlignLevel, AlignRule, Strength};
pub use placement::{
    Placement, PlacementGrant, PlacementGroup, PlacementPhase, PlacementPool, PlacementSeat,
    PlacementSpec, PlacementStatus, PlacementTally,
};

/// The API group of our own objects.
pub const API_GROUP: &str = "phalanx.dev";

/// The version of our own objects.
pub const VERSION: &str = "v1alpha1";

object! {
    /// The links of one node, cluster-scoped.
    pub struct NodeTopology {
        /// Metadata; the name is the node's, unless `spec.node_name` says otherwise.
        pub metadata: ObjectMeta,
        /// The facts.
        pub spec: NodeTopologySpec,
    }

    /// The facts about a node.
    #[serde(deny_unknown_fields)]
    pub struct NodeTopologySpec {
        /// The node, where it is not the object's name.
        pub node_name: Option<String>,
        /// Where the facts come from that name no source of their own.
        pub source: Option<FactSource>,
        /// Devices. A name used below that is not declared here is the name of a DRA device.
        pub devices: Vec<TopologyDevice>,
        /// Links between pairs.
        pub links: Vec<TopologyLink>,
        /// Sets of which every pair is linked directly or through one switch fabric.
        pub islands: Vec<TopologyIsland>,
        /// PCIe switches, with the devices under them.
        pub switches: Vec<TopologySwitch>,
    }

    /// A device, and the names under which others know it.
    #[serde(deny_unknown_fields)]
    pub struct TopologyDevice {
        /// Name in this object.
        pub name: String,
        /// What it is; a GPU where it is not said.
        pub kind: Option<TopologyDeviceKind>,
        /// Its DRA driver.
        pub driver: Option<String>,
        /// Its DRA pool; the node's name where it is not given.
        pub pool: Option<String>,
        /// Its name in the DRA pool; `name` where it is not given.
        pub device: Option<String>,
        /// Extended bus address, such as `0000:0f:00.0`.
        #[serde(rename = "pciBusID")]
        pub pci_bus_id: Option<String>,
        /// UUID of a GPU, such as `GPU-…`.
        pub uuid: Option<String>,
        /// Index of a GPU as nvidia-smi and the device plugin count.
        pub index: Option<u32>,
        /// NUMA node.
        pub numa_node: Option<u32>,
        /// PCIe root complex, such as `pci0000:07`.
        pub pcie_root: Option<String>,
        /// PCIe switch above it.
        pub pcie_switch: Option<String>,
        /// Rail of a NIC, and the rail that a GPU uses.
        pub rail: Option<String>,
        /// Where these facts come from.
        pub source: Option<FactSource>,
    }

    /// A link between two devices.
    #[serde(deny_unknown_fields)]
    pub struct TopologyLink {
        /// One end.
        pub a: String,
        /// The other end.
        pub b: String,
        /// The path between them; see [`TopologyLink::class`] where it is not said.
        pub class: Option<LinkClass>,
        /// NVLinks between them.
        pub links: Option<u32>,
        /// Bandwidth each way in 10^9 bytes a second.
        pub gbps: Option<f64>,
        /// Where this fact comes from.
        pub source: Option<FactSource>,
    }

    /// A set of devices of which every pair is linked directly or through one fabric.
    #[serde(deny_unknown_fields)]
    pub struct TopologyIsland {
        /// Name in this object.
        pub name: String,
        /// Members.
        pub members: Vec<String>,
        /// What joins them.
        pub fabric: Option<Fabric>,
        /// Bandwidth of one member into the fabric, each way, in 10^9 bytes a second.
        pub gbps: Option<f64>,
        /// Where this fact comes from.
        pub source: Option<FactSource>,
    }

    /// A PCIe switch.
    #[serde(deny_unknown_fields)]
    pub struct TopologySwitch {
        /// Name in this object.
        pub name: String,
        /// Devices under it.
        pub members: Vec<String>,
        /// Where this fact comes from.
        pub source: Option<FactSource>,
    }
}

closed_words! {
    /// Where a fact comes from.
    pub enum FactSource {
        /// Bandwidth or links were measured.
        Measured = "measured",
        /// The driver says so.
        Driver = "driver",
        /// The product's data sheet says so.
        Assumed = "assumed",
    }

    /// What a device is.
    pub enum TopologyDeviceKind {
        /// A GPU.
        Gpu = "gpu",
        /// A network card.
        Nic = "nic",
        /// Something else.
        Other = "other",
    }

    /// What joins the members of an island.
    pub enum Fabric {
        /// NVSwitch: all to all at full speed.
        NvSwitch = "nvswitch",
        /// An NVLink bridge.
        Bridge = "bridge",
        /// NVLinks from card to card.
        NvLink = "nvlink",
        /// AMD's links from card to card.
        Xgmi = "xgmi",
    }

    /// The path between two devices, as the legend of `nvidia-smi topo -m` orders it: best first.
    pub enum LinkClass {
        /// NVLinks through NVSwitch.
        NvSwitch = "NVSwitch",
        /// NVLinks from card to card (`NV#`).
        Nvl = "NVL",
        /// At most one PCIe bridge.
        Pix = "PIX",
        /// Several PCIe bridges, without the host bridge.
        Pxb = "PXB",
        /// The PCIe host bridge.
        Phb = "PHB",
        /// Between host bridges of one NUMA node.
        Node = "NODE",
        /// Between NUMA nodes.
        Sys = "SYS",
    }
}

impl NodeTopology {
    /// The node that the facts are about.
    #[must_use]
    pub fn node_name(&self) -> &str {
        match &self.spec.node_name {
            Some(name) if !name.is_empty() => name,
            Some(_) | None => &self.metadata.name,
        }
    }
}

impl TopologyLink {
    /// The path between the ends: NVLink where only a number of links is given, and the longest
    /// path where nothing is.
    #[must_use]
    pub fn class(&self) -> LinkClass {
        let nvlinks = self.links.is_some_and(|links| links > 0);
        self.class.unwrap_or(if nvlinks { LinkClass::Nvl } else { LinkClass::Sys })
    }
}
