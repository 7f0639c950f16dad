//! Interning: names that many objects share, and the names and values of device attributes as
//! numbers. What is interned once stays: a name costs tens of bytes and comes back often.

use std::hash::{Hash, Hasher};

use phalanx_engine::{AttributeValue, Name};
use phalanx_objects::Quantity;
use phalanx_objects::resource::DeviceAttribute;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet, FxHasher};

use super::place::{Tells, located};

/// How many entries what is interned has room for from its first on: the smallest world with devices
/// has some dozens of names and values, and tables that grow by doubling are filled anew each time.
const ROOM: usize = 56;

/// An empty table with room.
pub(crate) fn roomy<K, V>() -> FxHashMap<K, V> {
    FxHashMap::with_capacity_and_hasher(ROOM, FxBuildHasher)
}

/// Names that occur in many objects.
#[derive(Clone, Debug)]
pub(crate) struct Names(FxHashSet<Name>);

impl Default for Names {
    fn default() -> Self {
        Self(FxHashSet::with_capacity_and_hasher(2 * ROOM, FxBuildHasher))
    }
}

impl Names {
    /// The shared name with this text.
    pub(crate) fn get(&mut self, text: &str) -> Name {
        if let Some(name) = self.0.get(text) {
            return name.clone();
        }
        let name = Name::new(text);
        self.0.insert(name.clone());
        name
    }
}

/// Number of an attribute's fully qualified name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AttributeName(pub(crate) u32);

/// Number of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Value(pub(crate) u32);

/// Values numbered in the order of their first use.
#[derive(Clone, Debug)]
pub(crate) struct Numbers<T> {
    ids: FxHashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self { ids: FxHashMap::default(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbers<T> {
    /// The number of `value`, and whether it is new.
    pub(crate) fn add(&mut self, value: T) -> (u32, bool) {
        if let Some(id) = self.ids.get(&value) {
            return (*id, false);
        }
        if self.values.is_empty() {
            self.ids.reserve(ROOM);
            self.values.reserve(ROOM);
        }
        // A process that has seen four thousand million different values has ended long before.
        let id = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value.clone());
        self.ids.insert(value, id);
        (id, true)
    }

    /// The value with this number.
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.values.get(id as usize)
    }

    /// The number of `value`, where it has one.
    pub(crate) fn find(&self, value: &T) -> Option<u32> {
        self.ids.get(value).copied()
    }
}

/// A published value, and what follows from it alone.
#[derive(Clone, Debug)]
struct Published {
    value: DeviceAttribute,
    /// Whether it makes every selector fail on its device.
    broken: bool,
    /// Where a device is of which it says where it is, once somebody has asked.
    located: Option<Option<Name>>,
}

/// Names and values of attributes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    names: Numbers<Name>,
    /// By number of the name.
    tells: Vec<Tells>,
    /// By driver, the names as its devices spell them.
    spelled: FxHashMap<Name, FxHashMap<Box<str>, AttributeName>>,
    /// By hash; of values with one hash each stands at the next free number after the last.
    values: FxHashMap<u64, Value>,
    published: Vec<Published>,
}

impl Attributes {
    /// The number of the name that a device of the driver spells so: without a domain it is in the
    /// driver's.
    pub(crate) fn name(&mut self, driver: &Name, spelled: &str) -> AttributeName {
        let known = self.spelled.get(driver).and_then(|names| names.get(spelled));
        if let Some(id) = known {
            return *id;
        }
        let qualified = if spelled.contains('/') {
            Name::new(spelled)
        } else {
            Name::new(&[driver, "/", spelled].concat())
        };
        let tells = Tells::of(&qualified);
        let (id, new) = self.names.add(qualified);
        if new {
            self.tells.push(tells);
        }
        let id = AttributeName(id);
        self.spelled.entry(driver.clone()).or_insert_with(roomy).insert(spelled.into(), id);
        id
    }

    /// The number of a value.
    pub(crate) fn value(&mut self, value: &DeviceAttribute) -> Value {
        let mut hash = hash_of(value);
        while let Some(id) = self.values.get(&hash) {
            if self.value_of(*id) == Some(value) {
                return *id;
            }
            hash = hash.wrapping_add(1);
        }
        if self.published.is_empty() {
            self.values.reserve(ROOM);
            self.published.reserve(ROOM);
        }
        let id = Value(u32::try_from(self.published.len()).unwrap_or(u32::MAX));
        let broken = !phalanx_cel::is_seen(value);
        self.values.insert(hash, id);
        self.published.push(Published { value: value.clone(), broken, located: None });
        id
    }

    /// What an attribute tells of where its device sits.
    pub(crate) fn tells(&self, id: AttributeName) -> Tells {
        self.tells.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// Where a device is of which this value says where it is.
    pub(crate) fn located(&mut self, id: Value, names: &mut Names) -> Option<Name> {
        let published = self.published.get_mut(id.0 as usize)?;
        let Published { value, located: known, .. } = published;
        known.get_or_insert_with(|| located(value, names)).clone()
    }

    /// The number of a fully qualified name, where some device has it.
    pub(crate) fn find(&self, qualified: &Name) -> Option<AttributeName> {
        self.names.find(qualified).map(AttributeName)
    }

    /// The fully qualified name.
    pub(crate) fn name_of(&self, id: AttributeName) -> Option<&Name> {
        self.names.get(id.0)
    }

    /// The names from this number on.
    pub(crate) fn names_from(&self, first: usize) -> impl Iterator<Item = &Name> {
        self.names.values.iter().skip(first)
    }

    /// Whether the value makes every selector fail on its device: one without a known kind, a
    /// version that does not parse.
    pub(crate) fn is_broken(&self, id: Value) -> bool {
        self.published.get(id.0 as usize).is_some_and(|published| published.broken)
    }

    /// The value.
    pub(crate) fn value_of(&self, id: Value) -> Option<&DeviceAttribute> {
        self.published.get(id.0 as usize).map(|published| &published.value)
    }
}

fn hash_of(value: &DeviceAttribute) -> u64 {
    let mut state = FxHasher::default();
    value.kind().hash(&mut state);
    match value {
        DeviceAttribute::Int(value) => value.hash(&mut state),
        DeviceAttribute::Bool(value) => value.hash(&mut state),
        DeviceAttribute::String(value) | DeviceAttribute::Version(value) => value.hash(&mut state),
        DeviceAttribute::Ints(values) => values.hash(&mut state),
        DeviceAttribute::Bools(values) => values.hash(&mut state),
        DeviceAttribute::Strings(values) | DeviceAttribute::Versions(values) => {
            values.hash(&mut state);
        }
        DeviceAttribute::Empty | DeviceAttribute::Unknown(_) => {}
    }
    state.finish()
}

/// A value as constraints compare it.
pub(crate) fn comparable(value: &DeviceAttribute, names: &mut Names) -> AttributeValue {
    use AttributeValue as V;
    let list = |all: Vec<AttributeValue>| V::List(all.into());
    match value {
        DeviceAttribute::Int(value) => V::Int(*value),
        DeviceAttribute::Bool(value) => V::Bool(*value),
        DeviceAttribute::String(value) => V::String(names.get(value)),
        DeviceAttribute::Version(value) => V::Version(names.get(value)),
        DeviceAttribute::Ints(all) => list(all.iter().map(|v| V::Int(*v)).collect()),
        DeviceAttribute::Bools(all) => list(all.iter().map(|v| V::Bool(*v)).collect()),
        DeviceAttribute::Strings(all) => {
            list(all.iter().map(|v| V::String(names.get(v))).collect())
        }
        DeviceAttribute::Versions(all) => {
            list(all.iter().map(|v| V::Version(names.get(v))).collect())
        }
        DeviceAttribute::Empty | DeviceAttribute::Unknown(_) => V::Unset,
    }
}

/// A quantity as it was written: equal only if it also prints alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written(pub(crate) Quantity);

impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        self.0.parts() == other.0.parts() && self.0.format() == other.0.format()
    }
}

impl Eq for Written {}

impl Hash for Written {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.parts().hash(state);
        self.0.format().hash(state);
    }
}

/// The amount in billionths of a unit, at the type's bounds where it is beyond them.
pub(crate) fn nanos(quantity: &Quantity) -> i128 {
    let (mantissa, scale) = quantity.parts();
    let power = usize::try_from(scale + 9).unwrap_or(0);
    match POWERS.get(power) {
        Some(factor) => mantissa.saturating_mul(*factor),
        None if mantissa == 0 => 0,
        None => i128::MAX * mantissa.signum(),
    }
}

/// The powers of ten that the type holds.
const POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};
