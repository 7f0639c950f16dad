//! A device as an expression sees it: driver, sharing, attributes and capacities, converted once
//! per device instead of once per evaluation.
//!
//! Upstream converts all attributes before each evaluation, and one that cannot be converted fails
//! every expression on that device, even `true`. Here [`Device::new`] fails instead, with the
//! attribute's name; what that means for the device is the caller's to say.

use std::fmt;

use phalanx_objects::Quantity;
use phalanx_objects::resource::{self, DeviceAttribute};
use semver::Version;

/// A device, borrowed from the object that describes it.
#[derive(Debug)]
pub struct Device<'a> {
    pub(crate) driver: &'a str,
    pub(crate) allow_multiple_allocations: bool,
    /// Sorted by domain and identifier.
    pub(crate) attributes: Vec<Entry<'a, AttributeValue<'a>>>,
    /// Sorted by domain and identifier.
    pub(crate) capacity: Vec<Entry<'a, &'a Quantity>>,
}

/// An attribute or a capacity by its qualified name.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry<'a, T> {
    pub(crate) domain: &'a str,
    pub(crate) id: &'a str,
    pub(crate) value: T,
}

#[derive(Debug, PartialEq)]
pub(crate) enum AttributeValue<'a> {
    Int(i64),
    Bool(bool),
    Str(&'a str),
    Version(Version),
    Ints(&'a [i64]),
    Bools(&'a [bool]),
    Strings(&'a [String]),
    Versions(Vec<Version>),
}

/// An attribute that has no value an expression could see: no expression can be evaluated on its
/// device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// The attribute, as the device spells it.
    pub attribute: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attribute {}: {}", self.attribute, self.message)
    }
}

impl std::error::Error for DeviceError {}

impl<'a> Device<'a> {
    /// The device of a slice of the given driver.
    pub fn new(driver: &'a str, device: &'a resource::Device) -> Result<Self, DeviceError> {
        Self::from_parts(
            driver,
            device.allow_multiple_allocations.unwrap_or(false),
            device.attributes.iter().map(|(name, value)| (name.as_str(), value)),
            device.capacity.iter().map(|(name, capacity)| (name.as_str(), &capacity.value)),
        )
    }

    /// A device from its parts. Names without a domain belong to the driver's; where that makes
    /// two of them equal, the one that was written with its domain counts (upstream takes either).
    pub fn from_parts(
        driver: &'a str,
        allow_multiple_allocations: bool,
        attributes: impl IntoIterator<Item = (&'a str, &'a DeviceAttribute)>,
        capacity: impl IntoIterator<Item = (&'a str, &'a Quantity)>,
    ) -> Result<Self, DeviceError> {
        let mut converted = Vec::new();
        for (name, value) in attributes {
            let value = convert(value)
                .map_err(|message| DeviceError { attribute: name.to_owned(), message })?;
            converted.push((name, value));
        }
        Ok(Device {
            driver,
            allow_multiple_allocations,
            attributes: sorted(driver, converted),
            capacity: sorted(driver, capacity),
        })
    }
}

/// Domain and identifier of a name; without a domain it is the driver's.
pub(crate) fn qualified<'a>(driver: &'a str, name: &'a str) -> (&'a str, &'a str) {
    name.split_once('/').unwrap_or((driver, name))
}

fn sorted<'a, T>(
    driver: &'a str,
    values: impl IntoIterator<Item = (&'a str, T)>,
) -> Vec<Entry<'a, T>> {
    let mut entries: Vec<(bool, Entry<'a, T>)> = values
        .into_iter()
        .map(|(name, value)| {
            let (domain, id) = qualified(driver, name);
            (!name.contains('/'), Entry { domain, id, value })
        })
        .collect();
    entries.sort_by(|a, b| (a.1.domain, a.1.id, a.0).cmp(&(b.1.domain, b.1.id, b.0)));
    let mut entries: Vec<Entry<'a, T>> = entries.into_iter().map(|(_, entry)| entry).collect();
    entries.dedup_by(|later, first| later.domain == first.domain && later.id == first.id);
    entries
}

/// Whether an expression could see the value: if not, none can be evaluated on its device.
pub fn is_seen(attribute: &DeviceAttribute) -> bool {
    convert(attribute).is_ok()
}

fn convert(attribute: &DeviceAttribute) -> Result<AttributeValue<'_>, String> {
    let version = |text: &str| {
        crate::functions::semver::parse(text).map_err(|e| format!("parse semantic version: {e}"))
    };
    Ok(match attribute {
        DeviceAttribute::Int(value) => AttributeValue::Int(*value),
        DeviceAttribute::Bool(value) => AttributeValue::Bool(*value),
        DeviceAttribute::String(value) => AttributeValue::Str(value),
        DeviceAttribute::Version(value) => AttributeValue::Version(version(value)?),
        DeviceAttribute::Ints(values) => AttributeValue::Ints(values),
        DeviceAttribute::Bools(values) => AttributeValue::Bools(values),
        DeviceAttribute::Strings(values) => AttributeValue::Strings(values),
        DeviceAttribute::Versions(values) => {
            let versions: Result<_, String> = values.iter().map(|text| version(text)).collect();
            AttributeValue::Versions(versions?)
        }
        DeviceAttribute::Empty | DeviceAttribute::Unknown(_) => {
            return Err("unsupported attribute value".to_owned());
        }
    })
}

/// The entries of one domain.
pub(crate) fn domain<'a, 'b, T>(entries: &'b [Entry<'a, T>], name: &str) -> &'b [Entry<'a, T>] {
    let start = entries.partition_point(|e| e.domain < name);
    let length = entries[start..].iter().take_while(|e| e.domain == name).count();
    &entries[start..start + length]
}

/// One entry by domain and identifier.
pub(crate) fn find<'b, T>(entries: &'b [Entry<'_, T>], domain: &str, id: &str) -> Option<&'b T> {
    entries.iter().find(|e| e.id == id && e.domain == domain).map(|e| &e.value)
}
