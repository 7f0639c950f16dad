//! The value of a device's attribute: a union of which the API allows exactly one member.

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The value of a device's attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceAttribute {
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// A string of at most 64 bytes.
    String(String),
    /// A semantic version 2.0.0, not yet parsed.
    Version(String),
    /// Integers (alpha).
    Ints(Vec<i64>),
    /// Truth values (alpha).
    Bools(Vec<bool>),
    /// Strings (alpha).
    Strings(Vec<String>),
    /// Versions (alpha).
    Versions(Vec<String>),
    /// No value: no selector can be evaluated on the device.
    #[default]
    Empty,
    /// A kind that this version does not know, by its name. Upstream cannot tell it from `Empty`.
    Unknown(String),
}

impl DeviceAttribute {
    /// The member of the union that is set, as the API spells it; empty if none is.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Int(_) => "int",
            Self::Bool(_) => "bool",
            Self::String(_) => "string",
            Self::Version(_) => "version",
            Self::Ints(_) => "ints",
            Self::Bools(_) => "bools",
            Self::Strings(_) => "strings",
            Self::Versions(_) => "versions",
            Self::Empty => "",
            Self::Unknown(kind) => kind,
        }
    }
}

impl<'de> Deserialize<'de> for DeviceAttribute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Union;
        impl<'de> Visitor<'de> for Union {
            type Value = DeviceAttribute;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an attribute such as {\"string\": \"H100\"} or {\"int\": 4}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DeviceAttribute, A::Error> {
                let mut found = DeviceAttribute::Empty;
                while let Some(kind) = map.next_key::<String>()? {
                    let next = member(&kind, &mut map)?;
                    found = match (found, next) {
                        (found, DeviceAttribute::Empty) => found,
                        (DeviceAttribute::Empty | DeviceAttribute::Unknown(_), next) => next,
                        (found, DeviceAttribute::Unknown(_)) => found,
                        (found, next) => {
                            return Err(A::Error::custom(format_args!(
                                "An attribute has one value, and this one has `{}` and `{}`.",
                                found.kind(),
                                next.kind()
                            )));
                        }
                    };
                }
                Ok(found)
            }
        }
        deserializer.deserialize_map(Union)
    }
}

/// Reads the value of one member; a null is no value.
fn member<'de, A: MapAccess<'de>>(kind: &str, map: &mut A) -> Result<DeviceAttribute, A::Error> {
    use DeviceAttribute as Attribute;
    let value = match kind {
        "int" => map.next_value::<Option<i64>>()?.map(Attribute::Int),
        "bool" => map.next_value::<Option<bool>>()?.map(Attribute::Bool),
        "string" => map.next_value::<Option<String>>()?.map(Attribute::String),
        "version" => map.next_value::<Option<String>>()?.map(Attribute::Version),
        "ints" => map.next_value::<Option<Vec<i64>>>()?.map(Attribute::Ints),
        "bools" => map.next_value::<Option<Vec<bool>>>()?.map(Attribute::Bools),
        "strings" => map.next_value::<Option<Vec<String>>>()?.map(Attribute::Strings),
        "versions" => map.next_value::<Option<Vec<String>>>()?.map(Attribute::Versions),
        unknown => {
            map.next_value::<Option<IgnoredAny>>()?.map(|_| Attribute::Unknown(unknown.to_owned()))
        }
    };
    Ok(value.unwrap_or(Attribute::Empty))
}

impl Serialize for DeviceAttribute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Int(value) => map.serialize_entry("int", value)?,
            Self::Bool(value) => map.serialize_entry("bool", value)?,
            Self::String(value) => map.serialize_entry("string", value)?,
            Self::Version(value) => map.serialize_entry("version", value)?,
            Self::Ints(values) => map.serialize_entry("ints", values)?,
            Self::Bools(values) => map.serialize_entry("bools", values)?,
            Self::Strings(values) => map.serialize_entry("strings", values)?,
            Self::Versions(values) => map.serialize_entry("versions", values)?,
            // The value of an unknown kind is not kept; its name still tells it from no value.
            Self::Unknown(kind) => map.serialize_entry(kind, &true)?,
            Self::Empty => {}
        }
        map.end()
    }
}
