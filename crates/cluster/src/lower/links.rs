//! Links inside a node: from a `NodeTopology` to the engine's `Links`.
//!
//! Domains are numbered per level in the order of the members. Islands are those that the object
//! names; where it names none but gives NVLinks, a set that is linked all to all is one. Which
//! published device a member is, is looked up by name, then by bus address, then by UUID.

use std::collections::BTreeMap;

use phalanx_engine::{Level, Link, LinkClass, LinkMember, Links, Name, NodeKey, UNNAMED_DOMAIN};
use phalanx_objects::topology::{
    LinkClass as ObjectClass, NodeTopology, NodeTopologySpec, TopologyDevice, TopologyDeviceKind,
    TopologyLink,
};

use super::intern::Names;
use super::place::{nvlink_gbps, pcie_root};
use super::record::{Header, Hint, TopologyRecord};
use super::slice::Note;
use crate::finding::Severity;
use crate::words::class_word;

/// Most members of one node that are looked at: far more than any machine holds, and few enough
/// that a hostile object costs nobody's time.
const MEMBERS_MAX: usize = 4096;

/// Places in `LinkMember::domains`, which are as `Level::ALL` orders them: island, switch, root,
/// NUMA node, rail.
const ISLAND: usize = 0;
const SWITCH: usize = 1;
const ROOT: usize = 2;
const NUMA: usize = 3;

/// What joins a domain that classes of paths tell of, and that nobody names.
const BY_CLASS: &str = "joined by paths ";

/// Reads a `NodeTopology`.
pub(crate) fn read(
    object: &NodeTopology,
    header: Header,
    names: &mut Names,
    notes: &mut Vec<Note>,
) -> TopologyRecord {
    let (members, places) = (Vec::new(), BTreeMap::new());
    let mut reader = TopologyReader { spec: &object.spec, names, notes, members, places };
    reader.collect();
    let (links, hints, nvlinks) = reader.finish();
    let rates = object.spec.links.iter().filter_map(rate);
    TopologyRecord {
        header,
        node: NodeKey(names.get(object.node_name())),
        links,
        nvlinks: nvlinks.into(),
        nvlink_gbps: rates.reduce(f64::max),
        hints: hints.into(),
    }
}

struct TopologyReader<'a> {
    spec: &'a NodeTopologySpec,
    names: &'a mut Names,
    notes: &'a mut Vec<Note>,
    members: Vec<Member<'a>>,
    /// Where each label stands among the members.
    places: BTreeMap<&'a str, usize>,
}

/// A member while it is read: domains by their names.
struct Member<'a> {
    label: &'a str,
    declared: Option<&'a TopologyDevice>,
    domains: [Option<String>; 5],
}

impl<'a> TopologyReader<'a> {
    fn collect(&mut self) {
        for device in &self.spec.devices {
            self.member(&device.name, Some(device));
        }
        self.note_twins();
        for link in &self.spec.links {
            self.member(&link.a, None);
            self.member(&link.b, None);
        }
        let islands = self.spec.islands.iter().map(|i| &i.members);
        let switches = self.spec.switches.iter().map(|s| &s.members);
        for name in islands.chain(switches).flatten() {
            self.member(name, None);
        }
        if self.places.len() > MEMBERS_MAX {
            let message = format!(
                "{} devices are named, and Phalanx looks at {MEMBERS_MAX} a node. The rest is left \
                 out.",
                self.places.len()
            );
            self.note(Severity::Error, "spec", message);
            self.places.retain(|_, at| *at < MEMBERS_MAX);
            self.members.truncate(MEMBERS_MAX);
        }
        for (i, island) in self.spec.islands.iter().enumerate() {
            let path = format!("spec.islands[{i}].members");
            self.place(ISLAND, "island", &island.name, &island.members, &path);
        }
        for (i, switch) in self.spec.switches.iter().enumerate() {
            let path = format!("spec.switches[{i}].members");
            self.place(SWITCH, "switch", &switch.name, &switch.members, &path);
        }
    }

    /// Two declarations under one address or one UUID: they would be the same device.
    fn note_twins(&mut self) {
        let mut seen: BTreeMap<(&str, String), &str> = BTreeMap::new();
        let mut notes = Vec::new();
        for (i, device) in self.spec.devices.iter().enumerate() {
            let bus = device.pci_bus_id.as_deref().map(|bus| ("pciBusID", bus_address(bus)));
            let uuid = device.uuid.as_deref().map(|uuid| ("uuid", uuid.to_ascii_lowercase()));
            for (field, value) in bus.into_iter().chain(uuid) {
                let message = |other: &str| {
                    format!(
                        "Devices {other} and {} have the same {field}, {value}, so that they would \
                         be one device. Correct one of them.",
                        device.name
                    )
                };
                match seen.get(&(field, value.clone())) {
                    Some(other) if *other != device.name => {
                        notes.push((format!("spec.devices[{i}].{field}"), message(other)));
                    }
                    Some(_) => {}
                    None => {
                        seen.insert((field, value), &device.name);
                    }
                }
            }
        }
        for (path, message) in notes {
            self.note(Severity::Warning, &path, message);
        }
    }

    fn find(&self, label: &str) -> Option<usize> {
        self.places.get(label).copied()
    }

    fn member(&mut self, label: &'a str, declared: Option<&'a TopologyDevice>) {
        if self.find(label).is_some() {
            if declared.is_some() {
                self.note(
                    Severity::Warning,
                    "spec.devices",
                    format!("Device {label} is declared twice. The first declaration is used."),
                );
            }
            return;
        }
        let of = |get: fn(&TopologyDevice) -> Option<String>| declared.and_then(get);
        let domains = [
            None,
            of(|d| d.pcie_switch.clone()),
            of(|d| d.pcie_root.as_deref().map(pcie_root)),
            of(|d| d.numa_node.map(|node| node.to_string())),
            of(|d| d.rail.clone()),
        ];
        self.places.insert(label, self.members.len());
        self.members.push(Member { label, declared, domains });
    }

    /// Puts the members of an island or switch into its domain; one is in one domain a level.
    fn place(&mut self, level: usize, word: &str, name: &str, members: &[String], path: &str) {
        for label in members {
            let Some(at) = self.find(label) else { continue };
            let Some(slot) = self.members.get_mut(at).and_then(|m| m.domains.get_mut(level)) else {
                continue;
            };
            match slot {
                Some(other) if other != name => {
                    let message = format!(
                        "Device {label} is on {word} {other} and on {word} {name}. {other} is used."
                    );
                    self.note(Severity::Warning, path, message);
                }
                Some(_) => {}
                None => *slot = Some(name.to_owned()),
            }
        }
    }

    fn note(&mut self, severity: Severity, path: &str, message: String) {
        self.notes.push((severity, path.to_owned(), message));
    }

    fn finish(mut self) -> (Links, Vec<Hint>, Vec<u32>) {
        let (pairs, nvlinks) = self.pairs();
        self.derive_islands(&pairs);
        self.complete_islands(&pairs);
        for (level, worst) in
            [(SWITCH, LinkClass::Switch), (ROOT, LinkClass::HostBridge), (NUMA, LinkClass::Numa)]
        {
            self.derive_domains(level, worst, &pairs);
        }
        let mut numbers: [BTreeMap<String, u16>; 5] = Default::default();
        let mut links = Links { pairs, ..Links::default() };
        let mut hints = Vec::new();
        for member in &self.members {
            let mut domains = [None; 5];
            for ((slot, name), seen) in domains.iter_mut().zip(&member.domains).zip(&mut numbers) {
                let Some(name) = name else { continue };
                let unnamed = if name.starts_with(BY_CLASS) { UNNAMED_DOMAIN } else { 0 };
                let next = u16::try_from(seen.len()).unwrap_or(u16::MAX) | unnamed;
                *slot = Some(*seen.entry(name.clone()).or_insert(next));
            }
            links.members.push(LinkMember {
                label: self.names.get(member.label),
                device: None,
                accelerator: is_accelerator(member.declared),
                nic: member.declared.is_some_and(|d| d.kind == Some(TopologyDeviceKind::Nic)),
                domains,
            });
            hints.push(hint(member, self.names));
        }
        for (level, at) in [(Level::Root, ROOT), (Level::Numa, NUMA)] {
            for (name, number) in numbers[at].iter().filter(|(_, n)| **n < UNNAMED_DOMAIN) {
                links.names.push((level, self.names.get(name), *number));
            }
        }
        links.island_gbps = vec![0; numbers[ISLAND].len()];
        for island in &self.spec.islands {
            let number = numbers[ISLAND].get(&island.name);
            let slot = number.and_then(|n| links.island_gbps.get_mut(usize::from(*n)));
            slot.into_iter().for_each(|slot| *slot = steps(island.gbps));
        }
        (links, hints, nvlinks)
    }

    /// Paths by members, each pair once, with the number of NVLinks; of contradicting facts the first
    /// is used.
    fn pairs(&mut self) -> (Vec<Pair>, Vec<u32>) {
        let mut pairs: BTreeMap<(u16, u16), (LinkClass, &TopologyLink)> = BTreeMap::new();
        for (i, link) in self.spec.links.iter().enumerate() {
            let (Some(a), Some(b)) = (self.find(&link.a), self.find(&link.b)) else { continue };
            let (Ok(a), Ok(b)) = (u16::try_from(a), u16::try_from(b)) else { continue };
            let path = format!("spec.links[{i}]");
            if a == b {
                let message = format!("The link joins {} with itself. It is left out.", link.a);
                self.note(Severity::Warning, &path, message);
                continue;
            }
            let class = class(link.class());
            let (known, _) = *pairs.entry((a.min(b), a.max(b))).or_insert((class, link));
            if known != class {
                let message = format!(
                    "The path between {} and {} is given twice and differently: {} and {}. The \
                     first is used.",
                    link.a,
                    link.b,
                    class_word(known),
                    class_word(class)
                );
                self.note(Severity::Warning, &path, message);
            }
        }
        let nvlinks = |class: LinkClass, link: &TopologyLink| match class {
            LinkClass::Nvlink => link.links.unwrap_or(0),
            LinkClass::Switch
            | LinkClass::Switches
            | LinkClass::HostBridge
            | LinkClass::Numa
            | LinkClass::System
            | LinkClass::Unknown => 0,
        };
        let all = pairs.into_iter().map(|((a, b), (class, link))| {
            ((a, b, Link::new(class, steps(link.gbps))), nvlinks(class, link))
        });
        all.unzip()
    }

    /// What classes of paths tell of domains: who is joined by one PCIe switch (PIX) is under it; by
    /// that, several switches (PXB) or one host bridge (PHB), under one root complex; by any path
    /// inside a NUMA node (NODE or better), on it. A worse class tells nothing, and neither does
    /// NVLink, which hides the PCIe path beside it.
    fn derive_domains(&mut self, level: usize, worst: LinkClass, pairs: &[Pair]) {
        let mut set: Vec<usize> = (0..self.members.len()).collect();
        for (a, b, link) in pairs {
            let class = link.class();
            if class == LinkClass::Nvlink || class > worst {
                continue;
            }
            let (from, to) = (root(&mut set, usize::from(*b)), root(&mut set, usize::from(*a)));
            if let Some(slot) = set.get_mut(from) {
                *slot = to;
            }
        }
        let mut named: BTreeMap<usize, (usize, Vec<String>)> = BTreeMap::new();
        for (index, member) in self.members.iter().enumerate() {
            let (size, names) = named.entry(root(&mut set, index)).or_default();
            *size += 1;
            names.extend(member.domains[level].clone().filter(|name| !names.contains(name)));
        }
        for (index, member) in self.members.iter_mut().enumerate() {
            let root = root(&mut set, index);
            let Some((2.., names)) = named.get(&root) else { continue };
            if member.domains[level].is_none() {
                member.domains[level] = match names.as_slice() {
                    [] => Some(format!("{BY_CLASS}{root}")),
                    [one] => Some(one.clone()),
                    // Which of them it is can't be told.
                    [..] => None,
                };
            }
        }
    }

    /// Where no island is named: the sets that NVLinks join, if every pair of the set is linked.
    /// A set that is joined but not all to all is no island.
    fn derive_islands(&mut self, pairs: &[Pair]) {
        if !self.spec.islands.is_empty() {
            return;
        }
        let mut set: Vec<usize> = (0..self.members.len()).collect();
        let linked = |p: &&Pair| p.2.class() == LinkClass::Nvlink;
        for (a, b, _) in pairs.iter().filter(linked) {
            let (from, to) = (root(&mut set, usize::from(*b)), root(&mut set, usize::from(*a)));
            if let Some(slot) = set.get_mut(from) {
                *slot = to;
            }
        }
        let mut sizes: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for member in 0..self.members.len() {
            sizes.entry(root(&mut set, member)).or_default().0 += 1;
        }
        for (a, _, _) in pairs.iter().filter(linked) {
            sizes.entry(root(&mut set, usize::from(*a))).or_default().1 += 1;
        }
        for (index, member) in self.members.iter_mut().enumerate() {
            let root = root(&mut set, index);
            let Some((size, edges)) = sizes.get(&root) else { continue };
            if *size > 1 && *edges == size * (size - 1) / 2 {
                member.domains[ISLAND] = Some(format!("NVLink {root}"));
            }
        }
        for (root, (size, edges)) in sizes {
            self.note_partly_linked(root, size, edges);
        }
    }

    /// Says that a set which NVLinks join is no island.
    fn note_partly_linked(&mut self, root: usize, size: usize, edges: usize) {
        let pairs = size * size.saturating_sub(1) / 2;
        let Some(member) = self.members.get(root) else { return };
        if pairs == edges {
            return;
        }
        let message = format!(
            "NVLinks join {size} devices, {} among them, and {} of their {pairs} pairs {} no NVLink. \
             They are no island, for an island is linked all to all. Name the islands where you \
             know them.",
            member.label,
            pairs - edges,
            if pairs - edges == 1 { "has" } else { "have" },
        );
        self.note(Severity::Info, "spec.links", message);
    }

    /// An accelerator of which paths are known, and that is on no island, is alone on one: unless
    /// it has an NVLink, for then it is part of a set that is no island.
    fn complete_islands(&mut self, pairs: &[Pair]) {
        let named = !self.spec.islands.is_empty();
        let mut known = vec![named; self.members.len()];
        let mut linked = vec![false; self.members.len()];
        for (a, b, link) in pairs {
            for end in [usize::from(*a), usize::from(*b)] {
                known.get_mut(end).into_iter().for_each(|slot| *slot = true);
                let slot = linked.get_mut(end).into_iter();
                slot.for_each(|slot| *slot |= link.class() == LinkClass::Nvlink);
            }
        }
        for (index, member) in self.members.iter_mut().enumerate() {
            let open = member.domains[ISLAND].is_none() && is_accelerator(member.declared);
            if open && known[index] && !linked[index] {
                member.domains[ISLAND] = Some(format!("alone {index}"));
            }
        }
    }
}

/// Two members and the path between them.
type Pair = (u16, u16, Link);

/// A bandwidth that was given, in whole 10^9 bytes a second and in steps of five, so that what differs
/// by the noise of a measurement does not decide; 0 where none was given.
fn steps(gbps: Option<f64>) -> u16 {
    match gbps {
        Some(gbps) if gbps > 0.0 => whole((gbps / 5.0).round().max(1.0) * 5.0),
        Some(_) | None => 0,
    }
}

/// The nearest whole number that a link tells; what is beyond is the greatest.
fn whole(gbps: f64) -> u16 {
    let most = f64::from(u16::MAX);
    let text = format!("{:.0}", gbps.clamp(0.0, most));
    text.parse().unwrap_or(u16::MAX)
}

/// The bandwidth of one of a pair's NVLinks, where the object gives their number and sum.
fn rate(link: &TopologyLink) -> Option<f64> {
    let links = link.links.filter(|links| *links > 0)?;
    link.gbps.filter(|gbps| *gbps > 0.0).map(|gbps| gbps / f64::from(links))
}

/// The set that a member is in; the way there is shortened for the next who asks.
fn root(set: &mut [usize], mut at: usize) -> usize {
    while let Some(up) = set.get(at).copied().filter(|up| *up != at) {
        let top = set.get(up).copied().unwrap_or(up);
        set[at] = top;
        at = up;
    }
    at
}

fn is_accelerator(declared: Option<&TopologyDevice>) -> bool {
    match declared.and_then(|device| device.kind) {
        None | Some(TopologyDeviceKind::Gpu) => true,
        Some(TopologyDeviceKind::Nic | TopologyDeviceKind::Other) => false,
    }
}

fn class(class: ObjectClass) -> LinkClass {
    match class {
        ObjectClass::NvSwitch | ObjectClass::Nvl => LinkClass::Nvlink,
        ObjectClass::Pix => LinkClass::Switch,
        ObjectClass::Pxb => LinkClass::Switches,
        ObjectClass::Phb => LinkClass::HostBridge,
        ObjectClass::Node => LinkClass::Numa,
        ObjectClass::Sys => LinkClass::System,
    }
}

fn hint(member: &Member<'_>, names: &mut Names) -> Hint {
    let declared = member.declared;
    let mut name = |text: Option<&String>| text.map(|text| names.get(text));
    Hint {
        driver: name(declared.and_then(|d| d.driver.as_ref())),
        pool: name(declared.and_then(|d| d.pool.as_ref())),
        device: name(declared.and_then(|d| d.device.as_ref())),
        bus: declared.and_then(|d| d.pci_bus_id.as_deref()).map(|bus| bus_address(bus).into()),
        uuid: declared.and_then(|d| d.uuid.as_deref()).map(|u| u.to_ascii_lowercase().into()),
        numa: declared.and_then(|d| d.numa_node),
        root: name(declared.and_then(|d| d.pcie_root.as_ref())),
        nic: declared.is_some_and(|d| d.kind == Some(TopologyDeviceKind::Nic)),
    }
}

/// A bus address in its long form and in lower case: `0000:0f:00.0`. The domain is left out by
/// some tools and has eight digits in others.
pub(crate) fn bus_address(text: &str) -> String {
    let lower = text.trim().to_ascii_lowercase();
    match lower.split(':').collect::<Vec<_>>().as_slice() {
        [domain, bus, device] => {
            let digits = domain.trim_start_matches('0');
            format!("{digits:0>4}:{bus:0>2}:{device}")
        }
        [bus, device] => format!("0000:{bus:0>2}:{device}"),
        _ => lower,
    }
}

/// The device of each member among what is published, with what contradicts it.
pub(crate) struct Matching<'a> {
    /// Published devices that the node may reach, in order of name: key, attributes by identifier
    /// without their domain.
    pub(crate) devices: &'a [Published],
}

/// A published device, as far as members are matched with it.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) key: phalanx_engine::DeviceKey,
    pub(crate) bus: Option<String>,
    pub(crate) uuid: Option<String>,
    pub(crate) numa: Option<i64>,
    pub(crate) root: Option<Name>,
    pub(crate) product: Option<Name>,
}

impl Matching<'_> {
    /// Fills in the devices. A member of which several devices are parts (MIG) stands once for
    /// each.
    pub(crate) fn fill(&self, record: &TopologyRecord, notes: &mut Vec<Note>) -> Links {
        let mut links = record.links.clone();
        let mut lacking = Vec::new();
        set_speeds(&mut links, record, self.product(record));
        for (index, hint) in record.hints.iter().enumerate() {
            let Some(member) = links.members.get(index).cloned() else { continue };
            let found = self.find(&member.label, hint);
            let Some((first, parts)) = found.split_first() else {
                // That a NIC has no DRA driver is as it should be.
                if !hint.nic {
                    lacking.push(member.label.as_str().to_owned());
                }
                continue;
            };
            contradictions(&member.label, hint, first, notes);
            links.members[index].device = Some(first.key.clone());
            for part in parts {
                add_part(&mut links, index, part);
            }
        }
        links.pairs.sort_unstable();
        if !lacking.is_empty() {
            notes.push(self.note_lacking(&record.node, &lacking, record.hints.len()));
        }
        links
    }

    /// The product of the accelerators, as the first that is published names it.
    fn product(&self, record: &TopologyRecord) -> Option<&Name> {
        let members = record.links.members.iter().zip(&record.hints);
        let gpus = members.filter(|(member, _)| member.accelerator);
        let mut found = gpus.flat_map(|(member, hint)| self.find(&member.label, hint));
        found.find_map(|published| published.product.as_ref())
    }

    fn find(&self, label: &Name, hint: &Hint) -> Vec<&Published> {
        let fits = |p: &&Published| {
            hint.driver.as_ref().is_none_or(|driver| p.key.pool.driver == *driver)
                && hint.pool.as_ref().is_none_or(|pool| p.key.pool.pool == *pool)
        };
        let all: Vec<&Published> = self.devices.iter().filter(fits).collect();
        let by = |test: &dyn Fn(&Published) -> bool| -> Vec<&Published> {
            all.iter().copied().filter(|p| test(p)).collect()
        };
        if let Some(device) = &hint.device {
            return by(&|p| p.key.device == *device);
        }
        if let Some(bus) = &hint.bus {
            let found = by(&|p| p.bus.as_deref() == Some(bus));
            if !found.is_empty() {
                return found;
            }
        }
        if let Some(uuid) = &hint.uuid {
            let found = by(&|p| p.uuid.as_deref() == Some(uuid));
            if !found.is_empty() {
                return found;
            }
        }
        by(&|p| p.key.device == *label)
    }

    fn note_lacking(&self, node: &NodeKey, lacking: &[String], members: usize) -> Note {
        let node = &node.0;
        if self.devices.is_empty() {
            let message = format!(
                "No ResourceSlice publishes devices of node {node}: its {members} members are \
                 known here and can't be chosen one by one."
            );
            return (Severity::Info, String::new(), message);
        }
        let message = format!(
            "No ResourceSlice of node {node} has the device {}. Its links are not used. Name \
             the device as the slice does, or give its pciBusID or uuid.",
            lacking.join(", ")
        );
        (Severity::Warning, String::new(), message)
    }
}

/// Turns numbers of NVLinks into bandwidths: by the product where it is known, else by what the object
/// gives for one of them. Where neither is, numbers are compared as if each were one: all of a node
/// are alike.
fn set_speeds(links: &mut Links, record: &TopologyRecord, product: Option<&Name>) {
    let known = product.and_then(|product| nvlink_gbps(product)).or(record.nvlink_gbps);
    for ((_, _, link), nvlinks) in links.pairs.iter_mut().zip(&record.nvlinks) {
        if *nvlinks > 0 {
            *link = Link::new(link.class(), whole(f64::from(*nvlinks) * known.unwrap_or(1.0)));
        }
    }
    links.nominal = known.is_none();
}

/// One more device that is a part of member `index`: the same domains and the same links.
fn add_part(links: &mut Links, index: usize, part: &Published) {
    let at = links.members.len();
    let (Some(member), Ok(new)) = (links.members.get(index).cloned(), u16::try_from(at)) else {
        return;
    };
    links.members.push(LinkMember { device: Some(part.key.clone()), ..member });
    let copies: Vec<_> = links
        .pairs
        .iter()
        .filter_map(|(a, b, class)| match (usize::from(*a) == index, usize::from(*b) == index) {
            (true, _) => Some((*b, new, *class)),
            (_, true) => Some((*a, new, *class)),
            (false, false) => None,
        })
        .collect();
    links.pairs.extend(copies);
}

/// Two sources that disagree about a device.
fn contradictions(label: &Name, hint: &Hint, found: &Published, notes: &mut Vec<Note>) {
    let numa = hint.numa.map(i64::from).zip(found.numa).filter(|(a, b)| a != b);
    let root = hint.root.as_ref().zip(found.root.as_ref());
    let root = root.filter(|(a, b)| pcie_root(a) != pcie_root(b));
    let mut note = |what: &str, here: &str, there: &str| {
        let message = format!(
            "Device {label} is {what} {here} here and {what} {there} in its ResourceSlice \
             ({}). {here} is used for nearness, {there} for constraints.",
            found.key.device
        );
        notes.push((Severity::Warning, "spec.devices".to_owned(), message));
    };
    if let Some((here, there)) = numa {
        note("on NUMA node", &here.to_string(), &there.to_string());
    }
    if let Some((here, there)) = root {
        note("under PCIe root", here, there);
    }
}
