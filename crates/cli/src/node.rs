//! `phalanx why` of a node as a text: its devices with who holds them, and what it is to each
//! pending pod, a line each.

use std::collections::BTreeMap;

use phalanx_cluster::view::{Document, NodeView, PodView, VerdictWord};
use phalanx_cluster::world::World;

use crate::devices::inventory::{self, Row};
use crate::plan;
use crate::screen::{Cell, DIM, GOOD, Grid, HEAD, WARN, count, paint};

/// The answer about the node of this name.
pub(crate) fn render(document: &Document, world: &World, node: &str) -> String {
    let mut out = devices(document, world, node);
    if document.pods.is_empty() {
        return out + "\nNo pod is pending: there is nothing to explain.\n";
    }
    let fits = |pod: &&PodView| {
        pod.node.as_deref() == Some(node) || pod.nodes.iter().flatten().any(|view| view.fits)
    };
    let fit = document.pods.iter().filter(fits).count();
    let pods = count(document.pods.len() as u64, "pending pod", "pending pods");
    out += &format!("\n{pods} on {}, {fit} of which fit there:\n", paint(HEAD, node));
    out += &pods_table(document, node);
    out
}

fn devices(document: &Document, world: &World, node: &str) -> String {
    let rows = inventory::rows_of(world, node);
    let held = rows.iter().filter(|row| !row.claims.is_empty()).count();
    let name = paint(HEAD, &format!("node {node}"));
    if rows.is_empty() {
        return format!("{name} has no devices of its own in ResourceSlices.\n");
    }
    let devices = count(rows.len() as u64, "device", "devices");
    let mut out = format!("{name} has {devices}, {held} held:\n");
    let promised = promised(document);
    let mut grid = Grid::new(&["DEVICE", "DRIVER", "TAINTS", "HELD BY", "PLANNED FOR"]).indented(2);
    for row in &rows {
        grid.row(device_row(row, &promised));
    }
    out += &grid.render();
    out
}

type Promised<'a> = BTreeMap<(&'a str, &'a str, &'a str), Vec<String>>;

/// By driver, pool and device, the pods of the plan that get it.
fn promised(document: &Document) -> Promised<'_> {
    let mut promised: Promised<'_> = BTreeMap::new();
    for pod in &document.pods {
        for device in pod.devices.iter().filter(|device| !device.admin_access) {
            let key = (device.driver.as_str(), device.pool.as_str(), device.device.as_str());
            promised.entry(key).or_default().push(format!("{}/{}", pod.namespace, pod.name));
        }
    }
    promised
}

fn device_row(row: &Row, promised: &Promised<'_>) -> Vec<Cell> {
    let key = &row.info.key;
    let planned = promised.get(&(&*key.pool.driver, &*key.pool.pool, &*key.device));
    vec![
        (&*key.device).into(),
        Cell::styled(DIM, row.driver()),
        Cell::styled(WARN, row.taints().join(", ")),
        row.claims
            .iter()
            .map(|claim| format!("claim {claim}"))
            .collect::<Vec<_>>()
            .join(", ")
            .into(),
        planned.map_or_else(String::new, |pods| pods.join(", ")).into(),
    ]
}

/// One line per pod: whether the node does for it, where it goes, and what is in the way here.
fn pods_table(document: &Document, node: &str) -> String {
    let mut grid = Grid::new(&["POD", "FITS", "PLACED ON", "VERDICT", ""]).indented(2);
    for pod in &document.pods {
        let here = pod.nodes.iter().flatten().next();
        let fits = match here {
            Some(view) if view.fits => Cell::styled(GOOD, "yes"),
            Some(_) => Cell::styled(DIM, "no"),
            None if pod.node.as_deref() == Some(node) => Cell::styled(GOOD, "yes"),
            None => "".into(),
        };
        let why = here.map_or_else(String::new, |view| in_the_way(pod, view));
        grid.row(vec![
            format!("{}/{}", pod.namespace, pod.name).into(),
            fits,
            pod.node.as_deref().unwrap_or("-").into(),
            plan::verdict(pod.verdict),
            why.into(),
        ]);
    }
    grid.render()
}

/// All that is in the way on the node, the pod's own first. Of a pod that is placed nothing is.
fn in_the_way(pod: &PodView, view: &NodeView) -> String {
    if view.fits && pod.verdict == VerdictWord::Placed {
        return String::new();
    }
    let own = pod.checks.iter().flatten();
    let all = own.chain(&view.checks).map(|check| check.message.as_str());
    all.collect::<Vec<_>>().join("; ")
}
