//! Values as attributes of devices: what a derived attribute (`DRADerivedAttributes`) may be.

use phalanx_objects::resource::DeviceAttribute;

use crate::value::{List, Value};

/// The value as an attribute, or upstream's words why it is none.
pub(crate) fn of(value: &Value<'_>) -> Result<DeviceAttribute, String> {
    match value {
        Value::Bool(b) => Ok(DeviceAttribute::Bool(*b)),
        Value::Int(i) => Ok(DeviceAttribute::Int(*i)),
        Value::Str(s) => Ok(DeviceAttribute::String(s.to_string())),
        Value::Version(v) => Ok(DeviceAttribute::Version(v.to_string())),
        Value::List(list) => of_list(list),
        Value::Optional(Some(inner)) if !matches!(**inner, Value::List(_)) => of(inner),
        other => Err(format!("unsupported CEL return type: {}", go_type(other))),
    }
}

/// The kind of a list is that of its first element.
fn of_list(list: &List<'_>) -> Result<DeviceAttribute, String> {
    match list.get(0).map(plain) {
        None => Ok(DeviceAttribute::Strings(Vec::new())),
        Some(Value::Bool(_)) => {
            let bool = |value: &Value<'_>| match value {
                Value::Bool(b) => Some(*b),
                _ => None,
            };
            elements(list, "bool", bool).map(DeviceAttribute::Bools)
        }
        Some(Value::Int(_)) => {
            let int = |value: &Value<'_>| match value {
                Value::Int(i) => Some(*i),
                _ => None,
            };
            elements(list, "int", int).map(DeviceAttribute::Ints)
        }
        Some(Value::Str(_)) => {
            let text = |value: &Value<'_>| match value {
                Value::Str(s) => Some(s.to_string()),
                _ => None,
            };
            elements(list, "string", text).map(DeviceAttribute::Strings)
        }
        Some(Value::Version(_)) => {
            let version = |value: &Value<'_>| match value {
                Value::Version(v) => Some(v.to_string()),
                _ => None,
            };
            elements(list, "semver", version).map(DeviceAttribute::Versions)
        }
        Some(other) => Err(format!("unsupported list element type: {}", go_type(&other))),
    }
}

/// An element, out of its optional value if it is in one.
fn plain(element: Value<'_>) -> Value<'_> {
    match element {
        Value::Optional(Some(inner)) => plain((*inner).clone()),
        other => other,
    }
}

fn elements<T>(
    list: &List<'_>,
    wanted: &str,
    take: impl Fn(&Value<'_>) -> Option<T>,
) -> Result<Vec<T>, String> {
    let mut taken = Vec::with_capacity(list.len());
    for (at, element) in list.iter().enumerate() {
        let element = plain(element);
        taken.push(take(&element).ok_or_else(|| {
            format!("expected list element at index {at} to be {wanted}, got {}", go_type(&element))
        })?);
    }
    Ok(taken)
}

/// The name of the value's type in upstream's language, which its messages quote.
fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::Str(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::Quantity(..) => "*resource.Quantity",
        Value::Version(_) => "semver.Version",
        Value::Duration(_) => "time.Duration",
        Value::Timestamp(_) => "time.Time",
        Value::Ip(_) => "netip.Addr",
        Value::Cidr(..) => "netip.Prefix",
        Value::Url(_) => "*url.URL",
        Value::Format(_) => "cel.Format",
        Value::List(_) => "[]ref.Val",
        Value::Map(_) | Value::Device(_) => "map[ref.Val]ref.Val",
        Value::Optional(_) => "<nil>",
        Value::Type(_) => "string",
    }
}
