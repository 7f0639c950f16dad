//! Sizes, and how large what a device holds can be (the limits of `resource.k8s.io`).

use crate::types::Type;

/// Bounds of a size: characters, bytes or elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Size {
    pub(super) const UNKNOWN: Size = Size { min: 0, max: u64::MAX };
    /// Of nothing: what a union begins with.
    pub(super) const NONE: Size = Size { min: u64::MAX, max: 0 };

    pub(super) const fn exactly(size: u64) -> Size {
        Size { min: size, max: size }
    }

    pub(super) fn union(self, other: Size) -> Size {
        Size { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub(super) fn add(self, other: Size) -> Size {
        Size { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn multiply(self, other: Size) -> Size {
        Size { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }
}

/// A number times a factor, rounded up.
pub(super) fn times(number: u64, factor: f64) -> u64 {
    // The conversion saturates at both ends.
    (number as f64 * factor).ceil() as u64
}

/// The size of values that all are of one.
pub(super) fn of_type(t: &Type) -> Option<Size> {
    match t {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            Some(Size::exactly(1))
        }
        Type::Optional(inner) => of_type(inner),
        _ => None,
    }
}

/// A path into the device: parts in one of [`Paths`]' rooms, as far as its own length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    room: usize,
    length: usize,
}

impl Path {
    pub(super) const NOWHERE: Path = Path { room: 0, length: 0 };

    pub(super) fn is_nowhere(self) -> bool {
        self.length == 0
    }
}

/// Paths that grow in place, as slices do upstream: two that grow from one share a room while it
/// lasts, and the part of the later stands in both. That shows in costs.
#[derive(Debug, Default)]
pub(super) struct Paths {
    rooms: Vec<Room>,
}

#[derive(Debug)]
struct Room {
    parts: Vec<Part>,
    capacity: usize,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Device,
    Keys,
    Values,
    Items,
    Attributes,
    Capacity,
    Driver,
    Sharing,
    /// Any other field or variable.
    Name,
}

fn part(name: &str) -> Part {
    match name {
        "device" => Part::Device,
        "@keys" => Part::Keys,
        "@values" => Part::Values,
        "@items" => Part::Items,
        "attributes" => Part::Attributes,
        "capacity" => Part::Capacity,
        "driver" => Part::Driver,
        "allowMultipleAllocations" => Part::Sharing,
        _ => Part::Name,
    }
}

impl Paths {
    fn room(&mut self, parts: Vec<Part>, capacity: usize) -> Path {
        let length = parts.len();
        self.rooms.push(Room { parts, capacity });
        Path { room: self.rooms.len() - 1, length }
    }

    /// A path of one part.
    pub(super) fn start(&mut self, name: &str) -> Path {
        self.room(vec![part(name)], 1)
    }

    pub(super) fn append(&mut self, path: Path, name: &str) -> Path {
        if path.is_nowhere() {
            return self.start(name);
        }
        let room = &mut self.rooms[path.room];
        if path.length < room.capacity {
            match room.parts.get_mut(path.length) {
                Some(old) => *old = part(name),
                None => room.parts.push(part(name)),
            }
            return Path { room: path.room, length: path.length + 1 };
        }
        let mut parts = room.parts[..path.length].to_vec();
        parts.push(part(name));
        self.room(parts, path.length * 2)
    }

    /// A longer path in a room of its own.
    pub(super) fn append_copy(&mut self, path: Path, name: &str) -> Path {
        let mut parts = self.parts(path).to_vec();
        parts.push(part(name));
        let capacity = parts.len();
        self.room(parts, capacity)
    }

    fn parts(&self, path: Path) -> &[Part] {
        match self.rooms.get(path.room) {
            Some(room) => &room.parts[..path.length],
            None => &[],
        }
    }
}

/// How large what a device holds can be.
#[derive(Debug)]
pub(super) struct Device {
    driver: u64,
    domain: u64,
    id: u64,
    entries: u64,
    value: u64,
}

impl Default for Device {
    fn default() -> Self {
        // DriverNameMaxLength, DeviceMaxDomainLength, DeviceMaxIDLength,
        // ResourceSliceMaxAttributesAndCapacitiesPerDevice, DeviceAttributeMaxValueLength.
        Device { driver: 63, domain: 63, id: 32, entries: 32, value: 64 }
    }
}

/// What a path has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Device,
    Attributes,
    Capacity,
    AttributesOfDomain,
    CapacityOfDomain,
    Domain,
    Id,
    Value,
    Quantity,
    Driver,
    Sharing,
}

impl Device {
    /// The size at a path, if it leads into the device and upstream can follow it.
    pub(super) fn size(&self, paths: &Paths, path: Path) -> Option<Size> {
        let (first, rest) = paths.parts(path).split_first()?;
        if *first != Part::Device {
            return None;
        }
        let mut at = At::Device;
        for part in rest {
            at = match (at, part) {
                (At::Device, Part::Attributes) => At::Attributes,
                (At::Device, Part::Capacity) => At::Capacity,
                (At::Device, Part::Driver) => At::Driver,
                (At::Device, Part::Sharing) => At::Sharing,
                (At::Attributes | At::Capacity, Part::Keys) => At::Domain,
                (At::Attributes, Part::Values | Part::Items) => At::AttributesOfDomain,
                (At::Capacity, Part::Values | Part::Items) => At::CapacityOfDomain,
                (At::AttributesOfDomain | At::CapacityOfDomain, Part::Keys) => At::Id,
                // Any name leads to an attribute's value, but not to a capacity's.
                (At::AttributesOfDomain, _) => At::Value,
                (At::CapacityOfDomain, Part::Values | Part::Items) => At::Quantity,
                _ => return None,
            };
        }
        let max = match at {
            At::Device | At::Quantity => 0,
            At::Sharing => 1,
            At::Driver => self.driver,
            At::Domain => self.domain,
            At::Id => self.id,
            At::Value => self.value,
            At::Attributes | At::Capacity | At::AttributesOfDomain | At::CapacityOfDomain => {
                self.entries
            }
        };
        Some(Size { min: 0, max })
    }
}
