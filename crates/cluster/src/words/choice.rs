//! What another choice would have cost more, term by term in the order in which costs are compared.

use phalanx_engine::{Cost, DeviceCost, Harm, Link, NicCost};

use super::place::{Nodes, link_words};
use super::{count, list};

/// What `other` costs more than `best`: of the terms in which they differ those that are worse, the
/// deciding one first. None where they cost the same. `nodes` are those whose links are named.
pub fn costs_more(best: &Cost, other: &Cost, nodes: Nodes<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let more = |a: u32, b: u32| b.saturating_sub(a);
    let mut add = |text: Option<String>| all.extend(text);
    let later = more(best.alternatives, other.alternatives);
    add((later > 0).then(|| {
        let places = count(u64::from(later), "place", "places");
        format!("a choice that stands {places} later in a firstAvailable list")
    }));
    devices(&best.devices, &other.devices, nodes, &mut add);
    let soft = more(best.soft, other.soft);
    add((soft > 0).then(|| format!("wishes about nodes and pods are met less, by {soft}")));
    harm(&best.harm, &other.harm, &mut add);
    all
}

fn devices(
    best: &DeviceCost,
    other: &DeviceCost,
    nodes: Nodes<'_>,
    add: &mut impl FnMut(Option<String>),
) {
    let slower = |what: &str, best: Link, other: Link| {
        let (worse, better) = (link(other, nodes), link(best, nodes));
        (other > best).then(|| format!("{what} {worse} instead of {better}"))
    };
    let more = |a: u16, b: u16| u64::from(b.saturating_sub(a));
    let term = |by: u64, text: &dyn Fn(u64) -> String| (by > 0).then(|| text(by));
    add(term(more(best.unaligned, other.unaligned), &|n| {
        let levels = count(n, "more level", "more levels");
        format!("{levels} of phalanx.dev/align can't be kept")
    }));
    add(term(more(best.islands, other.islands), &|n| {
        count(n, "island more is crossed", "islands more are crossed")
    }));
    add(slower("the slowest link that must be used is", best.slowest, other.slowest));
    if best.slowest == other.slowest {
        add(slower("the slowest pair is joined by", best.farthest, other.farthest));
    }
    let NicCost { off_switch, off_root, off_numa } = best.nics;
    for (was, is, place) in [
        (off_switch, other.nics.off_switch, "under the same PCIe switch"),
        (off_root, other.nics.off_root, "under the same PCIe root"),
        (off_numa, other.nics.off_numa, "on the same NUMA node"),
    ] {
        add(term(more(was, is), &|n| {
            let them = count(n, "GPU or NIC more is", "GPUs and NICs more are");
            format!("{them} without a partner {place}")
        }));
    }
    add(term(more(best.numa, other.numa), &|n| {
        count(n, "NUMA node more is used", "NUMA nodes more are used")
    }));
}

/// A path as it is named everywhere, where a link needs to be used at all.
fn link(link: Link, nodes: Nodes<'_>) -> String {
    if link == Link::IDEAL { "none".to_owned() } else { link_words(link, nodes) }
}

fn harm(best: &Harm, other: &Harm, add: &mut impl FnMut(Option<String>)) {
    let more = |a: u32, b: u32| u64::from(b.saturating_sub(a));
    let term = |by: u64, text: &dyn Fn(u64) -> String| (by > 0).then(|| text(by));
    add(term(more(best.islands_broken.into(), other.islands_broken.into()), &|n| {
        count(n, "whole island more is broken", "whole islands more are broken")
    }));
    add(term(more(best.wholes_used.into(), other.wholes_used.into()), &|n| {
        count(n, "whole device more is used", "whole devices more are used")
    }));
    add(term(more(best.lost_mi, other.lost_mi), &|n| {
        format!("devices of {} more are lost to later requests", mebibytes(n))
    }));
    add(term(more(best.shared_mi, other.shared_mi), &|n| {
        format!("shared devices with {} more of room are drawn on", mebibytes(n))
    }));
    add(term(more(best.fragmentation, other.fragmentation), &|n| {
        count(n, "node more is put to use", "nodes more are put to use")
    }));
    add(term(more(best.nodes_broken.into(), other.nodes_broken.into()), &|_| {
        "a whole node is broken".to_owned()
    }));
    add(term(more(best.scarce_left, other.scarce_left), &|n| {
        let left = count(n, "device or extended resource", "devices and extended resources");
        format!("it is a looser fit, by {left}")
    }));
}

fn mebibytes(mi: u64) -> String {
    if mi.is_multiple_of(1024) { format!("{}Gi", mi / 1024) } else { format!("{mi}Mi") }
}

/// What is said of the sets of one node: how many are as good as the chosen one.
pub fn equal_sets(node: &str, equal: Option<u32>, second: bool) -> Option<String> {
    match (equal, second) {
        (Some(0 | 1), true) => None,
        (Some(0 | 1), false) => Some(format!("no other set of devices of {node} would do")),
        (Some(sets), false) => Some(format!(
            "the choice is indifferent: {sets} sets of devices of {node} would do and cost the \
             same; the first by name is taken"
        )),
        (Some(sets), true) => Some(format!(
            "{sets} sets of devices of {node} cost the same; the first by name is taken"
        )),
        (None, _) => Some(format!(
            "more than a thousand sets of devices of {node} cost the same; the first by name is \
             taken"
        )),
    }
}

/// The sentence on a choice that was not taken: what it is, and what it costs more.
pub fn rival(devices: &[String], node: &str, more: &[String]) -> String {
    let on =
        if devices.is_empty() { node.to_owned() } else { format!("{} on {node}", list(devices)) };
    match more {
        [] => format!("{on}: costs the same, and comes later by name"),
        [..] => format!("{on}: {}", more.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phalanx_engine::LinkClass;

    #[test]
    fn the_deciding_term_comes_first_and_better_ones_are_left_out() {
        let best = Cost {
            devices: DeviceCost {
                slowest: LinkClass::Nvlink.into(),
                numa: 1,
                ..DeviceCost::default()
            },
            ..Cost::default()
        };
        let other = Cost {
            devices: DeviceCost {
                islands: 1,
                slowest: LinkClass::System.into(),
                ..DeviceCost::default()
            },
            harm: Harm { lost_mi: 2048, ..Harm::default() },
            ..Cost::default()
        };
        let more = costs_more(&best, &other, &[]);
        assert_eq!(
            more,
            [
                "1 island more is crossed",
                "the slowest link that must be used is the link between NUMA nodes (SYS) instead \
                 of NVLink",
                "devices of 2Gi more are lost to later requests",
            ]
        );
        assert_eq!(costs_more(&best, &best, &[]), Vec::<String>::new());
    }

    #[test]
    fn equal_sets_are_counted() {
        assert_eq!(equal_sets("n1", Some(1), true), None);
        let said = |equal, second| equal_sets("n1", equal, second).expect("a sentence");
        assert!(said(Some(6), false).starts_with("the choice is indifferent: 6 sets"));
        assert!(said(Some(6), true).starts_with("6 sets of devices of n1 cost the same"));
        assert!(said(None, true).starts_with("more than a thousand"));
        assert!(said(Some(1), false).starts_with("no other set"));
    }
}
