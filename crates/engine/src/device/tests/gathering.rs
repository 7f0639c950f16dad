//! What a node sees of pools, by hand.

use crate::device::shape::PoolTrouble;
use crate::device::{Held, Here, Usage, View, gather};
use crate::facts::{
    AttributeValue, CounterSet, Device, Granting, Level, Link, LinkClass, LinkMember, Links,
    NodeRequirement, Place, Pool, Reach, Slice, Traits,
};
use crate::name::{DeviceKey, Name, NodeKey, PoolKey, Shared};

use super::world::plain_traits;

fn slice(name: &str, generation: i64, count: i64, reach: Reach, devices: &[&str]) -> Slice {
    let device =
        |name: &&str| Device { name: Name::new(name), traits: Shared::new(plain_traits()) };
    Slice {
        name: Name::new(name),
        generation,
        slice_count: count,
        reach,
        devices: devices.iter().map(device).collect(),
        counters: [].into(),
        granting: Granting::Always,
        opaque: false,
    }
}

fn on(node: &str) -> Reach {
    Reach::Node(NodeKey(Name::new(node)))
}

fn key(pool: &str) -> PoolKey {
    PoolKey { driver: Name::new("gpu.example.com"), pool: Name::new(pool) }
}

fn see(node: &str, pools: &[(PoolKey, Pool)], links: Option<&Links>) -> View {
    let pools: Vec<(&PoolKey, &Pool)> = pools.iter().map(|(k, p)| (k, p)).collect();
    let labels = [(Name::new("zone"), Name::new("a"))];
    let here = Here { node: &NodeKey(Name::new(node)), labels: &labels, features: &[] };
    gather(here, &pools, links)
}

fn names(view: &View) -> Vec<&str> {
    view.places.iter().map(|(_, name)| name.as_str()).collect()
}

#[test]
fn nodes_of_one_build_share_a_shape() {
    let pool = |node: &str| {
        (key(node), Pool { slices: vec![slice(node, 1, 1, on(node), &["gpu-0", "gpu-1"])] })
    };
    let (one, other) = (see("n1", &[pool("n1")], None), see("n2", &[pool("n2")], None));
    assert_eq!(one.shape, other.shape);
    assert_eq!(names(&one), ["gpu-0", "gpu-1"]);
    assert!(see("n3", &[pool("n1")], None).shape.devices.is_empty());
}

#[test]
fn values_are_told_apart_and_not_told() {
    let with = |values: [&str; 3]| {
        let mut of = slice("s", 1, 1, Reach::All, &["a", "b", "c"]);
        for (device, value) in of.devices.iter_mut().zip(values) {
            let value = AttributeValue::String(Name::new(value));
            let attributes = [(Name::new("x"), value)].into();
            device.traits = Shared::new(Traits { attributes, ..plain_traits() });
        }
        see("n1", &[(key("p"), Pool { slices: vec![of] })], None).shape
    };
    assert_eq!(with(["u", "v", "u"]), with(["p", "q", "p"]));
    assert_ne!(with(["u", "v", "u"]), with(["u", "u", "v"]));
}

#[test]
fn only_the_newest_generation_counts_and_it_must_be_whole() {
    let see_slices = |slices: Vec<Slice>| see("n1", &[(key("p"), Pool { slices })], None);
    let old = || slice("a", 1, 1, on("n1"), &["old"]);
    let whole = see_slices(vec![old(), slice("b", 2, 1, on("n1"), &["new"])]);
    assert_eq!((names(&whole), whole.shape.faults.len()), (vec!["new"], 0));
    // Half of it is missing.
    let half = see_slices(vec![old(), slice("b", 2, 2, on("n1"), &["new"])]);
    assert_eq!(half.shape.faults[0].trouble, PoolTrouble::Incomplete);
    // The other half is for another node.
    let shared =
        see_slices(vec![slice("b", 2, 2, on("n1"), &["x"]), slice("c", 2, 2, on("n2"), &["y"])]);
    assert_eq!((names(&shared), shared.shape.faults.len()), (vec!["x"], 0));
    // This node only sees an old half: the pool is not there.
    let gone =
        see_slices(vec![slice("b", 2, 2, on("n1"), &["x"]), slice("c", 3, 1, on("n2"), &["y"])]);
    assert_eq!(gone.shape.pools, 0);
    // Old, but whole by itself: upstream uses it.
    let stale = see_slices(vec![old(), slice("c", 3, 1, on("n2"), &["y"])]);
    assert_eq!(names(&stale), ["old"]);
    let twice = see_slices(vec![slice("a", 1, 1, on("n1"), &["x", "x"])]);
    assert_eq!(twice.shape.faults[0].trouble, PoolTrouble::Invalid(Name::new("x")));
}

#[test]
fn slices_name_their_nodes_in_their_own_ways() {
    let zone = |value: &str| {
        let values = [Name::new(value)].into();
        Reach::Selector([NodeRequirement::In(Name::new("zone"), values)].into())
    };
    let see_one = |slice| {
        let view = see("n1", &[(key("p"), Pool { slices: vec![slice] })], None);
        view.shape.devices.iter().map(|d| d.node_local).collect::<Vec<bool>>()
    };
    assert_eq!(see_one(slice("s", 1, 1, Reach::All, &["a"])), [false]);
    assert_eq!(see_one(slice("s", 1, 1, zone("a"), &["a"])), [false]);
    assert_eq!(see_one(slice("s", 1, 1, zone("b"), &["a"])), [false; 0]);
    assert_eq!(see_one(slice("s", 1, 1, Reach::Selector([].into()), &["a"])), [false; 0]);
    assert_eq!(see_one(slice("s", 1, 1, Reach::Unknown, &["a"])), [false; 0]);
    let mut each = slice("s", 1, 1, Reach::PerDevice, &["a", "b", "c"]);
    for (device, reach) in each.devices.iter_mut().zip([on("n2"), zone("a"), on("n1")]) {
        device.traits = Shared::new(Traits { reach: Some(reach), ..plain_traits() });
    }
    assert_eq!(see_one(each), [false, true]);
}

#[test]
fn links_are_laid_over_by_name() {
    let pool = Pool { slices: vec![slice("s", 1, 1, on("n1"), &["gpu-0", "gpu-1", "gpu-2"])] };
    let member = |name: &str, island: Option<u16>| LinkMember {
        label: Name::new(name),
        device: Some(DeviceKey { pool: key("p"), device: Name::new(name) }),
        accelerator: true,
        nic: false,
        domains: [island, None, None, None, None],
    };
    let members =
        vec![member("gpu-2", Some(7)), member("gpu-0", Some(7)), member("gpu-9", Some(7))];
    let pairs = vec![(0, 2, LinkClass::System.into())];
    let links = Links { members, pairs, ..Links::default() };
    let shape = see("n1", &[(key("p"), pool)], Some(&links)).shape;
    let islands: Vec<Option<u16>> = shape.devices.iter().map(|d| d.domains[0]).collect();
    assert_eq!(islands, [Some(0), None, Some(0)]);
    assert_eq!(shape.link(0, 2), LinkClass::Nvlink.into());
    assert_eq!(shape.link(0, 1), Link::UNKNOWN);
    assert_eq!(shape.devices[1].accelerator, None);
    assert!(shape.is_accelerator(1));
}

#[test]
fn names_of_attributes_and_of_links_are_one_and_narrow_domains_stand_for_wide_ones() {
    let mut of = slice("s", 1, 1, on("n1"), &["gpu-0", "gpu-1", "gpu-2", "nic-0", "nic-1"]);
    let places =
        [(None, None), (None, None), (None, None), (Some("0000:07"), None), (None, Some("1"))];
    for (device, (root, numa)) in of.devices.iter_mut().zip(places) {
        let place = Place { root: root.map(Name::new), numa: numa.map(Name::new), nic: false };
        device.traits = Shared::new(Traits { place, ..plain_traits() });
    }
    let member = |name: &str, switch: Option<u16>, root: Option<u16>| LinkMember {
        label: Name::new(name),
        device: Some(DeviceKey { pool: key("p"), device: Name::new(name) }),
        accelerator: true,
        nic: false,
        domains: [None, switch, root, None, None],
    };
    let members = vec![
        member("gpu-0", Some(0), Some(3)),
        member("gpu-1", Some(0), None),
        member("gpu-2", Some(1), None),
    ];
    let names = vec![(Level::Root, Name::new("0000:07"), 3)];
    let links = Links { members, names, ..Links::default() };
    let pool = Pool { slices: vec![of] };
    let shape = see("n1", &[(key("p"), pool)], Some(&links)).shape;
    let root = |at| shape.domain(at, Level::Root);
    assert!(root(0).is_some() && root(0) == root(1) && root(0) == root(3));
    assert!(root(2).is_some() && root(2) != root(0) && root(4).is_none());
    let numa = |at| shape.domain(at, Level::Numa);
    assert!(numa(0).is_some() && numa(0) == numa(3) && numa(0) != numa(2));
    assert_eq!((shape.numa(0), shape.numa(4).is_some()), (None, true), "stood for, and known");
    assert_eq!(shape.link(0, 1), LinkClass::Switch.into());
    assert_eq!(shape.link(0, 3), LinkClass::HostBridge.into());
    assert_eq!(shape.link(0, 4), Link::UNKNOWN);
}

#[test]
fn what_is_held_counts_also_beyond_the_node() {
    let set = |amount: i128| CounterSet {
        name: Name::new("gpu-0"),
        counters: [(Name::new("slices"), amount)].into(),
    };
    let mut own = slice("a", 1, 3, on("n1"), &["x", "y"]);
    let mut other = slice("b", 1, 3, on("n2"), &["z"]);
    for device in own.devices.iter_mut().chain(&mut other.devices) {
        device.traits = Shared::new(Traits { counters: [set(2)].into(), ..plain_traits() });
    }
    let mut counters = slice("c", 1, 3, Reach::All, &[]);
    counters.counters = [set(7)].into();
    let pools = [(key("p"), Pool { slices: vec![own, other, counters] })];
    let view = see("n1", &pools, None);
    let pools: Vec<(&PoolKey, &Pool)> = pools.iter().map(|(k, p)| (k, p)).collect();
    let usage =
        Usage::gather(&view, &pools, |_, name| Held { whole: **name != *"x", ..Held::default() });
    assert_eq!((usage.is_taken(0), usage.is_taken(1)), (false, true));
    assert_eq!(usage.counters_left, [3]);
    assert_eq!(Usage::free(&view.shape).counters_left, [7]);
}
