//! Every device of the input, with what is published of it and which claims hold it. Whether it
//! would do for anyone is left to the test.

use std::collections::BTreeMap;

use phalanx_cluster::DeviceInfo;
use phalanx_cluster::world::World;
use phalanx_engine::{Effect, Name, PoolKey, Reach, Taint};
use phalanx_objects::resource::DeviceAttribute;
use phalanx_objects::{Kind, Object};

/// The domain of attributes that mean the same for every driver.
const COMMON_DOMAIN: &str = "resource.kubernetes.io/";

/// A device.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What is published of it.
    pub(crate) info: DeviceInfo,
    /// Claims that hold it, as `namespace/name`.
    pub(crate) claims: Vec<String>,
    /// Why nobody is given it, where its pool's slices don't fit together.
    pub(crate) trouble: Option<String>,
}

/// Every device, by driver, pool and then in the order of the slices. Of each pool only the newest
/// generation counts, as for kube-scheduler.
pub(crate) fn rows(world: &World) -> Vec<Row> {
    let holders = holders(world);
    let mut troubles = Troubles::new();
    world.lowering().devices().map(|info| row(world, info, &holders, &mut troubles)).collect()
}

/// As [`rows`], those that are this node's own: what nodes see by label or all of them see is left
/// out.
pub(crate) fn rows_of(world: &World, node: &str) -> Vec<Row> {
    let holders = holders(world);
    let own = |info: &DeviceInfo| matches!(&info.reach, Reach::Node(of) if *of.0 == *node);
    let mut troubles = Troubles::new();
    let own = world.lowering().devices().filter(own);
    own.map(|info| row(world, info, &holders, &mut troubles)).collect()
}

/// What is wrong with a pool, by pool and slice.
type Troubles = BTreeMap<(PoolKey, Name), Option<String>>;

fn row(world: &World, info: DeviceInfo, holders: &Holders, troubles: &mut Troubles) -> Row {
    let key = &info.key;
    let slice = (key.pool.clone(), info.slice.clone());
    let unsound = || world.lowering().unsound(&key.pool, &info.slice);
    let trouble = troubles.entry(slice).or_insert_with(unsound).clone();
    let key = (key.pool.driver.to_string(), key.pool.pool.to_string(), key.device.to_string());
    let claims = holders.get(&key).cloned().unwrap_or_default();
    Row { info, claims, trouble }
}

/// Claims by driver, pool and device.
type Holders = BTreeMap<(String, String, String), Vec<String>>;

/// By driver, pool and device, the claims that hold it.
fn holders(world: &World) -> Holders {
    let mut holders = Holders::new();
    let objects = world.objects().into_iter();
    for object in objects.flat_map(|objects| objects.of_kind(Kind::ResourceClaim)) {
        let Object::ResourceClaim(claim) = object else { continue };
        let results = claim.status.allocation.iter().flat_map(|a| &a.devices.results);
        for held in results.filter(|held| held.admin_access != Some(true)) {
            let key = (held.driver.clone(), held.pool.clone(), held.device.clone());
            let name = format!("{}/{}", object.namespace(), object.name());
            holders.entry(key).or_default().push(name);
        }
    }
    holders
}

impl Row {
    /// The node that can use it, or in words which nodes.
    pub(crate) fn node(&self) -> &str {
        match &self.info.reach {
            Reach::Node(node) => &node.0,
            Reach::All => "(every node)",
            Reach::Selector(_) => "(nodes by label)",
            Reach::PerDevice | Reach::Unknown => "(no node)",
        }
    }

    /// Its driver.
    pub(crate) fn driver(&self) -> &str {
        &self.info.key.pool.driver
    }

    /// Attributes and capacities by full name, `domain/name`, each as text. Where an attribute and
    /// a capacity have one name, both values are there.
    pub(crate) fn values(&self) -> BTreeMap<String, String> {
        let mut values: BTreeMap<String, String> = BTreeMap::new();
        let mut add = |name: &str, text: String| {
            let value = values.entry(qualified(self.driver(), name)).or_default();
            *value = if value.is_empty() { text } else { format!("{value}, {text}") };
        };
        for (name, attribute) in &self.info.attributes {
            add(name, attribute_text(attribute));
        }
        for (name, quantity) in &self.info.capacity {
            add(name, quantity.to_string());
        }
        values
    }

    /// Its taints as `key=value:effect`.
    pub(crate) fn taints(&self) -> Vec<String> {
        self.info.taints.iter().map(taint_text).collect()
    }
}

fn taint_text(taint: &Taint) -> String {
    let equals = if taint.value.is_empty() { "" } else { "=" };
    let effect = match taint.effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::NoExecute => "NoExecute",
        Effect::PreferNoSchedule => "PreferNoSchedule",
    };
    format!("{}{equals}{}:{effect}", taint.key, taint.value)
}

/// A name with its domain; without one it is the driver's own.
pub(crate) fn qualified(driver: &str, name: &str) -> String {
    if name.contains('/') { name.to_owned() } else { format!("{driver}/{name}") }
}

/// A name as short as a reader understands it.
pub(crate) fn short<'a>(driver: &str, name: &'a str) -> &'a str {
    let own = name.strip_prefix(driver).and_then(|rest| rest.strip_prefix('/'));
    own.or_else(|| name.strip_prefix(COMMON_DOMAIN)).unwrap_or(name)
}

/// The value of an attribute as text.
fn attribute_text(attribute: &DeviceAttribute) -> String {
    fn list<T: ToString>(values: &[T]) -> String {
        let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        format!("[{}]", texts.join(", "))
    }
    match attribute {
        DeviceAttribute::Int(value) => value.to_string(),
        DeviceAttribute::Bool(value) => value.to_string(),
        DeviceAttribute::String(value) | DeviceAttribute::Version(value) => value.clone(),
        DeviceAttribute::Ints(values) => list(values),
        DeviceAttribute::Bools(values) => list(values),
        DeviceAttribute::Strings(values) | DeviceAttribute::Versions(values) => list(values),
        DeviceAttribute::Empty => String::new(),
        DeviceAttribute::Unknown(kind) => format!("({kind})"),
    }
}
