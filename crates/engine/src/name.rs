//! Names and keys: how every fact of the state is called.
//!
//! A key is the name that the cluster knows a thing by, so that a [`Change`](crate::Change) means
//! the same in whatever order and however often it comes. Dense slots exist only inside the engine.
//! Order is by bytes, field by field: it is what breaks every last tie.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A shared, immutable name. Cloning is one counter; equal pointers compare at once.
#[derive(Clone)]
pub struct Name(Arc<str>);

impl Name {
    /// A name with this text.
    pub fn new(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are one allocation, which implies equality.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Name {
    fn default() -> Self {
        Self::new("")
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || *self.0 == *other.0
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        if Arc::ptr_eq(&self.0, &other.0) {
            return std::cmp::Ordering::Equal;
        }
        self.0.cmp(&other.0)
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A node, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey(pub Name);

/// The namespace and name of a namespaced thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scoped {
    /// Namespace.
    pub namespace: Name,
    /// Name.
    pub name: Name,
}

impl fmt::Display for Scoped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey(pub Scoped);

/// A ResourceClaim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimKey(pub Scoped);

/// A PersistentVolume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeKey(pub Name);

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeClaimKey(pub Scoped);

/// A group: what is admitted, placed and explained as one. A pod that belongs to no gang is a
/// group of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// Namespace and name of the object that declares the group.
    pub object: Scoped,
    /// Its kind in lower case, as users type it: `pod`, `job`, `deployment`.
    pub kind: Name,
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.object.name)
    }
}

/// A pool of devices. A pool's name alone is not unique across drivers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolKey {
    /// The DRA driver, such as `gpu.nvidia.com`.
    pub driver: Name,
    /// `spec.pool.name` of its slices.
    pub pool: Name,
}

/// A device: (driver, pool, name).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKey {
    /// Its pool.
    pub pool: PoolKey,
    /// Its name in the pool.
    pub device: Name,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueKey(pub Name);

/// One tree of the topology forest, by the name of its source object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologyKey(pub Name);

/// A CEL selector, numbered by lowering: equal numbers are equal expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectorId(pub u32);

/// What selectors can tell apart about devices, numbered by lowering: two devices with one number
/// get the same verdict from every live selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileId(pub u32);

/// A decision that was sent to the board and has not been seen there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlightId(pub u64);

/// A point in time, in milliseconds since the Unix epoch. The engine is told it and has no clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A value with its hash taken once, shared by all who are equal: requests, claim specs and device
/// traits come in few shapes and many copies.
pub struct Shared<T>(Arc<(u64, T)>);

impl<T: Hash> Shared<T> {
    /// Shares `value`.
    pub fn new(value: T) -> Self {
        let mut hasher = rustc_hash::FxHasher::default();
        value.hash(&mut hasher);
        Self(Arc::new((hasher.finish(), value)))
    }
}

impl<T> Shared<T> {
    /// Whether both are one allocation, which implies equality.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0.1
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.same(other) || (self.0.0 == other.0.0 && self.0.1 == other.0.1)
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.0);
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.1.fmt(f)
    }
}

/// The order of names in which numbers in them count as numbers: `a-2` before `a-10`. Of names that are
/// the same so far (`a-1`, `a-01`) the first by its characters.
#[must_use]
pub fn by_number(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one, other);
    while !left.is_empty() && !right.is_empty() {
        let ((a, rest_a), (b, rest_b)) = (piece(left), piece(right));
        let order = match (digits(a), digits(b)) {
            (Some(a), Some(b)) => (a.len(), a).cmp(&(b.len(), b)),
            (None, _) | (_, None) => a.cmp(b),
        };
        if order.is_ne() {
            return order;
        }
        (left, right) = (rest_a, rest_b);
    }
    left.cmp(right).then_with(|| one.cmp(other))
}

/// The first run of digits, or of what are none, and the rest.
fn piece(text: &str) -> (&str, &str) {
    let is_digit = text.starts_with(|c: char| c.is_ascii_digit());
    text.split_at(text.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(text.len()))
}

/// A number without the zeros before it.
fn digits(piece: &str) -> Option<&str> {
    piece.starts_with(|c: char| c.is_ascii_digit()).then(|| piece.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names =
            ["a-10", "a-2", "a-1", "b-1", "a", "a-01", "a-x", "a-2-b", "a-18446744073709551616"];
        names.sort_by(|one, other| by_number(one, other));
        let order =
            ["a", "a-01", "a-1", "a-2", "a-2-b", "a-10", "a-18446744073709551616", "a-x", "b-1"];
        assert_eq!(names, order);
    }
}
