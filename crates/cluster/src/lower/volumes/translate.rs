//! In-tree disks as the volumes of the CSI drivers that stand in for them: driver, handle and the
//! labels that confine them (the CSI translation library of Kubernetes).

use phalanx_engine::{Attach, Name};
use phalanx_objects::core::{
    NodeSelector, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm,
};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::storage::InTreeDisk;

use super::super::intern::Names;

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const OLD_REGION: &str = "failure-domain.beta.kubernetes.io/region";
/// What stands in a handle for what is not known.
const UNKNOWN: &str = "UNSPECIFIED";

/// An in-tree plugin.
struct Plugin {
    name: &'static str,
    driver: &'static str,
    /// The driver's own label for zones.
    zone: Option<&'static str>,
}

const GCE: Plugin = Plugin {
    name: "kubernetes.io/gce-pd",
    driver: "pd.csi.storage.gke.io",
    zone: Some("topology.gke.io/zone"),
};
const AWS: Plugin = Plugin {
    name: "kubernetes.io/aws-ebs",
    driver: "ebs.csi.aws.com",
    zone: Some("topology.ebs.csi.aws.com/zone"),
};
/// The labels of Azure's disks are not translated.
const AZURE: Plugin =
    Plugin { name: "kubernetes.io/azure-disk", driver: "disk.csi.azure.com", zone: None };
const CINDER: Plugin = Plugin {
    name: "kubernetes.io/cinder",
    driver: "cinder.csi.openstack.org",
    zone: Some("topology.cinder.csi.openstack.org/zone"),
};
const PORTWORX: Plugin =
    Plugin { name: "kubernetes.io/portworx-volume", driver: "pxd.portworx.com", zone: None };

const PLUGINS: [&Plugin; 5] = [&GCE, &AWS, &AZURE, &CINDER, &PORTWORX];

/// Plugins that drivers have taken over and whose volumes nobody counts.
const UNCOUNTED: [&str; 2] = ["kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"];

/// The driver that makes the volumes of a class, and whether it stands in for the in-tree plugin that
/// the class names; none where nobody counts them.
pub(super) fn driver_of(provisioner: &Name, names: &mut Names) -> Option<(Name, bool)> {
    if provisioner.is_empty() || UNCOUNTED.contains(&provisioner.as_str()) {
        return None;
    }
    match PLUGINS.iter().find(|plugin| plugin.name == provisioner.as_str()) {
        Some(plugin) => Some((names.get(plugin.driver), true)),
        None => Some((provisioner.clone(), false)),
    }
}

/// What a disk that a pod names itself counts as.
pub(super) fn inline(disk: InTreeDisk<'_>, names: &mut Names) -> Option<Attach> {
    Translated::new(disk, &ObjectMeta::default(), None).attach(names)
}

/// An in-tree volume as a driver's.
pub(super) struct Translated {
    pub(super) plugin: &'static str,
    driver: &'static str,
    /// None where it can't be told.
    handle: Option<String>,
    /// The nodes from which it can be used, in the driver's labels.
    pub(super) required: Option<NodeSelector>,
}

impl Translated {
    pub(super) fn new(
        disk: InTreeDisk<'_>,
        meta: &ObjectMeta,
        required: Option<&NodeSelector>,
    ) -> Self {
        let (plugin, handle) = match disk {
            InTreeDisk::Gce(disk) => (&GCE, gce(&disk.pd_name, meta)),
            InTreeDisk::Aws(disk) => (&AWS, ebs(&disk.volume_id)),
            InTreeDisk::Azure(disk) => {
                let managed = disk.kind.is_empty() || disk.kind.eq_ignore_ascii_case("managed");
                (&AZURE, managed.then(|| disk.disk_uri.clone()))
            }
            InTreeDisk::Cinder(disk) => (&CINDER, Some(disk.volume_id.clone())),
            InTreeDisk::Portworx(disk) => (&PORTWORX, Some(disk.volume_id.clone())),
        };
        let required = match plugin.zone {
            Some(zone) => confined(required, meta, zone),
            None => required.cloned(),
        };
        Self { plugin: plugin.name, driver: plugin.driver, handle, required }
    }

    pub(super) fn attach(&self, names: &mut Names) -> Option<Attach> {
        let handle = Name::new(self.handle.as_ref()?);
        Some(Attach { driver: names.get(self.driver), handle, in_tree: true })
    }
}

/// A disk of Google's is of the zones that its labels name; of several, of their region.
fn gce(name: &str, meta: &ObjectMeta) -> Option<String> {
    let label = |key| meta.labels.get(key).filter(|zones| !zones.is_empty());
    let zones: Vec<&str> =
        label(OLD_ZONE).or(label(ZONE)).map_or_else(Vec::new, |zones| zones.split("__").collect());
    let of = |kind: &str, place: &str| format!("projects/{UNKNOWN}/{kind}/{place}/disks/{name}");
    match zones.as_slice() {
        [] => Some(of("zones", UNKNOWN)),
        [zone] => Some(of("zones", zone)),
        [first, rest @ ..] => {
            let region = |zone: &str| {
                let parts: Vec<&str> = zone.split('-').collect();
                let [one, two, _] = parts.as_slice() else { return None };
                Some(format!("{one}-{two}"))
            };
            let region_of_all = region(first)?;
            let same = rest.iter().all(|zone| region(zone).as_ref() == Some(&region_of_all));
            same.then(|| of("regions", &region_of_all))
        }
    }
}

/// `vol-1` of `aws://us-east-1a/vol-1`; other ids are as they are.
fn ebs(id: &str) -> Option<String> {
    let Some(rest) = id.strip_prefix("aws://") else { return Some(id.to_owned()) };
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    let bare = path.trim_matches('/');
    (bare.starts_with("vol-") && !bare.contains('/')).then(|| bare.to_owned())
}

/// The terms of a volume with the zone's label replaced by the driver's own; without such a label in
/// them, with the zones that the volume's labels name.
fn confined(
    required: Option<&NodeSelector>,
    meta: &ObjectMeta,
    driver_zone: &str,
) -> Option<NodeSelector> {
    let names = |key: &str| {
        required.is_some_and(|selector| {
            let mut all = selector.node_selector_terms.iter().flat_map(|t| &t.match_expressions);
            all.any(|r| r.key == key)
        })
    };
    let labelled = |key: &str| meta.labels.contains_key(key);
    let old = !names(ZONE) && (names(OLD_ZONE) || (!labelled(ZONE) && labelled(OLD_ZONE)));
    let zone = if old { OLD_ZONE } else { ZONE };
    let mut selector = required.cloned();
    let terms = || required.into_iter().flat_map(|s| &s.node_selector_terms);
    let has_values = |r: &NodeSelectorRequirement| r.key == zone && !r.values.is_empty();
    let named = terms().flat_map(|term| &term.match_expressions).any(has_values);
    let all = selector.iter_mut().flat_map(|s| &mut s.node_selector_terms);
    for r in all.flat_map(|term| &mut term.match_expressions) {
        if named && r.key == zone {
            driver_zone.clone_into(&mut r.key);
        } else if old && r.key == OLD_REGION {
            REGION.clone_into(&mut r.key);
        }
    }
    if named {
        return selector;
    }
    let zones = meta.labels.get(zone).into_iter().flat_map(|zones| zones.split("__"));
    let mut zones: Vec<String> =
        zones.map(str::trim).filter(|zone| !zone.is_empty()).map(str::to_owned).collect();
    if zones.is_empty() {
        return selector;
    }
    zones.sort();
    zones.dedup();
    let mut selector = selector.unwrap_or_default();
    if selector.node_selector_terms.is_empty() {
        selector.node_selector_terms.push(NodeSelectorTerm::default());
    }
    for term in &mut selector.node_selector_terms {
        term.match_expressions.push(NodeSelectorRequirement {
            key: driver_zone.to_owned(),
            operator: NodeSelectorOperator::In,
            values: zones.clone(),
        });
    }
    Some(selector)
}
