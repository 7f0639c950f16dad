//! Values of expressions. What a device or a program holds is borrowed; only what an expression
//! makes anew is allocated, so that a usual selector allocates nothing.

use core::net::IpAddr;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use phalanx_objects::Quantity;
use semver::Version;

use crate::cost::Meter;
use crate::device::{AttributeValue, Device, Entry};
use crate::error::EvalErrorKind;
use crate::functions::net;
use crate::functions::signatures::NamedFormat;
use crate::functions::time::{self, Timestamp};
use crate::functions::url::Url;

/// Something borrowed for the evaluation, or made by it.
#[derive(Debug)]
pub(crate) enum Shared<'a, T: ?Sized> {
    Borrowed(&'a T),
    Owned(Arc<T>),
}

impl<T: ?Sized> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        match self {
            Shared::Borrowed(value) => Shared::Borrowed(value),
            Shared::Owned(value) => Shared::Owned(Arc::clone(value)),
        }
    }
}

impl<T: ?Sized> Deref for Shared<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Shared::Borrowed(value) => value,
            Shared::Owned(value) => value,
        }
    }
}

impl<T> Shared<'_, T> {
    pub(crate) fn new(value: T) -> Self {
        Shared::Owned(Arc::new(value))
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Str(Shared<'a, str>),
    Bytes(Shared<'a, [u8]>),
    /// The second part tells results of `add` and `sub`, to which nothing is equal upstream.
    Quantity(Shared<'a, Quantity>, bool),
    Version(Shared<'a, Version>),
    /// In nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    Ip(IpAddr),
    /// An address and the bits of its prefix.
    Cidr(IpAddr, u8),
    Url(Shared<'a, Url>),
    Format(NamedFormat),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Arc<Value<'a>>>),
    Type(&'static str),
    Device(&'a Device<'a>),
}

#[derive(Clone, Debug)]
pub(crate) enum List<'a> {
    Values(Shared<'a, [Value<'a>]>),
    Ints(&'a [i64]),
    Bools(&'a [bool]),
    Strings(&'a [String]),
    Versions(&'a [Version]),
}

#[derive(Clone, Debug)]
pub(crate) enum Map<'a> {
    Pairs(Shared<'a, [(Value<'a>, Value<'a>)]>),
    /// `device.attributes`: all entries.
    AttributeDomains(&'a [Entry<'a, AttributeValue<'a>>]),
    /// One domain's entries.
    Attributes(&'a [Entry<'a, AttributeValue<'a>>]),
    CapacityDomains(&'a [Entry<'a, &'a Quantity>]),
    Capacities(&'a [Entry<'a, &'a Quantity>]),
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: &str) -> Value<'a> {
        Value::Str(Shared::Owned(Arc::from(text)))
    }

    pub(crate) fn list(values: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::Values(Shared::Owned(Arc::from(values))))
    }

    pub(crate) fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Arc::new(value)))
    }

    /// The same value, borrowing what this one owns.
    pub(crate) fn borrow(&'a self) -> Value<'a> {
        match self {
            Value::Str(s) => Value::Str(Shared::Borrowed(s)),
            Value::Bytes(b) => Value::Bytes(Shared::Borrowed(b)),
            Value::Quantity(q, computed) => Value::Quantity(Shared::Borrowed(q), *computed),
            Value::Version(v) => Value::Version(Shared::Borrowed(v)),
            Value::List(List::Values(values)) => {
                Value::List(List::Values(Shared::Borrowed(values)))
            }
            Value::Map(Map::Pairs(pairs)) => Value::Map(Map::Pairs(Shared::Borrowed(pairs))),
            Value::Url(url) => Value::Url(Shared::Borrowed(url)),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::Ip(_)
            | Value::Cidr(..)
            | Value::Format(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Optional(_)
            | Value::Type(_)
            | Value::Device(_) => self.clone(),
        }
    }

    pub(crate) fn attribute(value: &'a AttributeValue<'a>) -> Value<'a> {
        match value {
            AttributeValue::Int(i) => Value::Int(*i),
            AttributeValue::Bool(b) => Value::Bool(*b),
            AttributeValue::Str(s) => Value::Str(Shared::Borrowed(s)),
            AttributeValue::Version(v) => Value::Version(Shared::Borrowed(v)),
            AttributeValue::Ints(values) => Value::List(List::Ints(values)),
            AttributeValue::Bools(values) => Value::List(List::Bools(values)),
            AttributeValue::Strings(values) => Value::List(List::Strings(values)),
            AttributeValue::Versions(values) => Value::List(List::Versions(values)),
        }
    }

    /// The type's name, as `type(x)` and error texts have it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::Str(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Quantity(..) => "kubernetes.Quantity",
            Value::Version(_) => "kubernetes.Semver",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Ip(_) => "net.IP",
            Value::Cidr(..) => "net.CIDR",
            Value::Url(_) => "kubernetes.URL",
            Value::Format(_) => "kubernetes.NamedFormat",
            Value::List(_) => "list",
            Value::Map(_) | Value::Device(_) => "map",
            Value::Optional(_) => "optional_type",
            Value::Type(_) => "type",
        }
    }

    /// Size as Kubernetes' cost model has it: characters, bytes, elements, or 1.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Value::Str(s) => s.chars().count() as u64,
            Value::Bytes(b) => b.len() as u64,
            Value::List(list) => list.len() as u64,
            Value::Map(map) => map.len() as u64,
            Value::Optional(Some(inner)) => inner.size(),
            Value::Ip(ip) => net::bytes(*ip),
            Value::Cidr(_, bits) => u64::from(*bits).div_ceil(8),
            Value::Device(_) => 4,
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Quantity(..)
            | Value::Version(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::Url(_)
            | Value::Format(_)
            | Value::Optional(None)
            | Value::Type(_) => 1,
        }
    }

    /// Cost of walking through the value once, texts inside lists included. Elements are looked
    /// at until their number is beyond any cost limit.
    pub(crate) fn traversal_cost(&self) -> u64 {
        self.traverse(&mut (2 * crate::COST_LIMIT))
    }

    fn traverse(&self, left: &mut u64) -> u64 {
        let Some(rest) = left.checked_sub(1) else { return crate::COST_LIMIT };
        *left = rest;
        match self {
            Value::Str(s) => s.len() as u64 / 10,
            Value::Bytes(b) => b.len() as u64 / 10,
            Value::List(list) => {
                let mut sum = 0u64;
                for element in list.iter() {
                    sum = sum.saturating_add(element.traverse(left));
                    if *left == 0 {
                        break;
                    }
                }
                sum
            }
            Value::Map(map) => {
                let mut sum = 0u64;
                for key in map.keys() {
                    let value = map.get(&key, &mut Meter::unlimited());
                    let cost =
                        key.traverse(left).saturating_add(value.map_or(0, |v| v.traverse(left)));
                    sum = sum.saturating_add(cost);
                    if *left == 0 {
                        break;
                    }
                }
                sum
            }
            _ => 1,
        }
    }
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            List::Values(values) => values.len(),
            List::Ints(values) => values.len(),
            List::Bools(values) => values.len(),
            List::Strings(values) => values.len(),
            List::Versions(values) => values.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<Value<'a>> {
        match self {
            List::Values(Shared::Borrowed(values)) => values.get(at).map(Value::borrow),
            List::Values(Shared::Owned(values)) => values.get(at).cloned(),
            List::Ints(values) => values.get(at).map(|i| Value::Int(*i)),
            List::Bools(values) => values.get(at).map(|b| Value::Bool(*b)),
            List::Strings(values) => values.get(at).map(|s| Value::Str(Shared::Borrowed(s))),
            List::Versions(values) => values.get(at).map(|v| Value::Version(Shared::Borrowed(v))),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Map::Pairs(pairs) => pairs.len(),
            Map::AttributeDomains(entries) => domains(entries).count(),
            Map::CapacityDomains(entries) => domains(entries).count(),
            Map::Attributes(entries) => entries.len(),
            Map::Capacities(entries) => entries.len(),
        }
    }

    /// Whether a lookup finds something whatever the key: an unknown domain is an empty map.
    pub(crate) fn has_default(&self) -> bool {
        matches!(self, Map::AttributeDomains(_) | Map::CapacityDomains(_))
    }

    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        let text = |s: &'a str| Value::Str(Shared::Borrowed(s));
        match self {
            Map::Pairs(pairs) => pairs.iter().map(|(key, _)| key.clone()).collect(),
            Map::AttributeDomains(entries) => domains(entries).map(text).collect(),
            Map::CapacityDomains(entries) => domains(entries).map(text).collect(),
            Map::Attributes(entries) => entries.iter().map(|e| text(e.id)).collect(),
            Map::Capacities(entries) => entries.iter().map(|e| text(e.id)).collect(),
        }
    }

    /// The value under a key that is there.
    pub(crate) fn get(&self, key: &Value<'_>, meter: &mut Meter) -> Option<Value<'a>> {
        if let Value::Str(key) = key {
            return self.get_text(key, meter);
        }
        let Map::Pairs(pairs) = self else { return None };
        meter.work(pairs.len());
        pairs.iter().find(|(k, _)| equal(k, key, meter) == Ok(true)).map(|(_, value)| value.clone())
    }

    pub(crate) fn get_text(&self, key: &str, meter: &mut Meter) -> Option<Value<'a>> {
        let amount = |q: &'a Quantity| Value::Quantity(Shared::Borrowed(q), false);
        match self {
            Map::Pairs(pairs) => {
                meter.work(pairs.len());
                let mut found = pairs.iter();
                found
                    .find(|(k, _)| matches!(k, Value::Str(k) if **k == *key))
                    .map(|(_, value)| value.clone())
            }
            Map::AttributeDomains(entries) => {
                let found = crate::device::domain(entries, key);
                (!found.is_empty()).then_some(Value::Map(Map::Attributes(found)))
            }
            Map::CapacityDomains(entries) => {
                let found = crate::device::domain(entries, key);
                (!found.is_empty()).then_some(Value::Map(Map::Capacities(found)))
            }
            Map::Attributes(entries) => {
                entries.iter().find(|e| e.id == key).map(|e| Value::attribute(&e.value))
            }
            Map::Capacities(entries) => {
                entries.iter().find(|e| e.id == key).map(|e| amount(e.value))
            }
        }
    }

    /// [`Self::get`], with the empty map of an unknown domain.
    pub(crate) fn lookup(&self, key: &Value<'_>, meter: &mut Meter) -> Option<Value<'a>> {
        let found = self.get(key, meter);
        match self {
            Map::AttributeDomains(_) if found.is_none() => Some(Value::Map(Map::Attributes(&[]))),
            Map::CapacityDomains(_) if found.is_none() => Some(Value::Map(Map::Capacities(&[]))),
            Map::Pairs(_)
            | Map::AttributeDomains(_)
            | Map::Attributes(_)
            | Map::CapacityDomains(_)
            | Map::Capacities(_) => found,
        }
    }
}

fn domains<'a, T>(entries: &'a [Entry<'a, T>]) -> impl Iterator<Item = &'a str> + 'a {
    let mut last = None;
    entries.iter().filter_map(move |e| {
        let new = last != Some(e.domain);
        last = Some(e.domain);
        new.then_some(e.domain)
    })
}

/// `==`. Values of different types are unequal, numbers are compared across their types, and a
/// quantity or version on the left takes nothing but its like: an error then, as upstream.
pub(crate) fn equal(
    left: &Value<'_>,
    right: &Value<'_>,
    meter: &mut Meter,
) -> Result<bool, EvalErrorKind> {
    meter.work(1);
    if let Some(order) = numeric_order(left, right) {
        return Ok(order == Some(Ordering::Equal));
    }
    match (left, right) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Null, _) | (_, Value::Null) => Ok(false),
        (Value::Quantity(a, _), Value::Quantity(b, false)) => Ok(**a == **b),
        (Value::Version(a), Value::Version(b)) => Ok(a.cmp_precedence(b) == Ordering::Equal),
        (Value::Ip(a), Value::Ip(b)) => Ok(a == b),
        (Value::Cidr(a, n), Value::Cidr(b, m)) => Ok((a, n) == (b, m)),
        (Value::Url(a), Value::Url(b)) => {
            meter.work(a.text().len() / 16);
            Ok(a.text() == b.text())
        }
        (Value::Format(a), Value::Format(b)) => Ok(a == b),
        (
            Value::Quantity(..)
            | Value::Version(_)
            | Value::Ip(_)
            | Value::Cidr(..)
            | Value::Url(_)
            | Value::Format(_),
            _,
        ) => Err(EvalErrorKind::NoSuchOverload),
        (Value::Duration(a), Value::Duration(b)) => Ok(a == b),
        (Value::Timestamp(a), Value::Timestamp(b)) => Ok(a.instant() == b.instant()),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Str(a), Value::Str(b)) => {
            meter.work(a.len() / 16);
            Ok(**a == **b)
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            meter.work(a.len() / 16);
            Ok(**a == **b)
        }
        (Value::Type(a), Value::Type(b)) => Ok(a == b),
        (Value::Optional(None), Value::Optional(None)) => Ok(true),
        (Value::Optional(Some(a)), Value::Optional(Some(b))) => equal(a, b, meter),
        (Value::List(a), Value::List(b)) => equal_lists(a, b, meter),
        (Value::Map(a), Value::Map(b)) => equal_maps(a, b, meter),
        (Value::Device(a), Value::Device(b)) => Ok(std::ptr::eq(*a, *b)),
        _ => Ok(false),
    }
}

/// Elements that cannot be compared do not make lists unequal, nor maps: so upstream.
fn equal_lists(a: &List<'_>, b: &List<'_>, meter: &mut Meter) -> Result<bool, EvalErrorKind> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (x, y) in a.iter().zip(b.iter()) {
        if meter.exhausted() || equal(&x, &y, meter) == Ok(false) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(a: &Map<'_>, b: &Map<'_>, meter: &mut Meter) -> Result<bool, EvalErrorKind> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for key in a.keys() {
        if meter.exhausted() {
            return Ok(false);
        }
        match (a.get(&key, meter), b.get(&key, meter)) {
            (Some(x), Some(y)) if equal(&x, &y, meter) != Ok(false) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Order of two numbers of any types, a double with an integer as doubles; the outer `None` if one is no number, the inner for NaN.
fn numeric_order(left: &Value<'_>, right: &Value<'_>) -> Option<Option<Ordering>> {
    let order = match (left, right) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Int(a), Value::Double(b)) => (*a as f64).partial_cmp(b),
        (Value::Uint(a), Value::Double(b)) => (*a as f64).partial_cmp(b),
        (Value::Double(a), Value::Int(b)) => a.partial_cmp(&(*b as f64)),
        (Value::Double(a), Value::Uint(b)) => a.partial_cmp(&(*b as f64)),
        _ => return None,
    };
    Some(order)
}

/// Order of two values that have one, `None` where NaN is involved.
pub(crate) fn compare(
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<Option<Ordering>, EvalErrorKind> {
    if let Some(order) = numeric_order(left, right) {
        return Ok(order);
    }
    match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => Ok(Some(a.cmp(b))),
        (Value::Str(a), Value::Str(b)) => Ok(Some((**a).cmp(&**b))),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Some((**a).cmp(&**b))),
        (Value::Duration(a), Value::Duration(b)) => Ok(Some(a.cmp(b))),
        (Value::Timestamp(a), Value::Timestamp(b)) => Ok(Some(a.instant().cmp(&b.instant()))),
        _ => Err(EvalErrorKind::NoSuchOverload),
    }
}

impl fmt::Display for Value<'_> {
    /// The value as one would write it in an expression, texts in quotes; shortened if it is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        match text.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => write!(f, "{}…", &text[..end]),
            None => f.write_str(&text),
        }
    }
}

/// Characters of a value that are written out.
const MAX_SHOWN: usize = 240;

impl Value<'_> {
    /// Writes the value, and stops soon after there is enough: a value that holds another twice,
    /// and that one a third twice, can be longer than any memory.
    fn write(&self, out: &mut String) {
        if out.len() > MAX_SHOWN * 4 {
            return;
        }
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(b) => out.push_str(&b.to_string()),
            Value::Int(i) => out.push_str(&i.to_string()),
            Value::Uint(u) => out.push_str(&format!("{u}u")),
            Value::Double(d) => out.push_str(&format!("{d:?}")),
            Value::Str(s) => out.push_str(&format!("{:?}", &**s)),
            Value::Bytes(b) => out.push_str(&format!("{} bytes", b.len())),
            Value::Quantity(q, _) => out.push_str(&q.to_string()),
            Value::Version(v) => out.push_str(&v.to_string()),
            Value::Type(name) => out.push_str(name),
            Value::Duration(nanos) => out.push_str(&time::duration_text(*nanos)),
            Value::Timestamp(timestamp) => out.push_str(&timestamp.text()),
            Value::Ip(ip) => out.push_str(&ip.to_string()),
            Value::Cidr(ip, bits) => out.push_str(&format!("{ip}/{bits}")),
            Value::Url(url) => out.push_str(url.text()),
            Value::Format(format) => out.push_str(&format!("the format {format:?}")),
            Value::Device(_) => out.push_str("the device"),
            Value::Optional(None) => out.push_str("nothing"),
            Value::Optional(Some(inner)) => inner.write(out),
            Value::List(list) => {
                out.push('[');
                for (at, element) in list.iter().enumerate() {
                    if out.len() > MAX_SHOWN * 4 {
                        break;
                    }
                    out.push_str(if at == 0 { "" } else { ", " });
                    element.write(out);
                }
                out.push(']');
            }
            Value::Map(map) => {
                out.push('{');
                for (at, key) in map.keys().into_iter().enumerate() {
                    if out.len() > MAX_SHOWN * 4 {
                        break;
                    }
                    out.push_str(if at == 0 { "" } else { ", " });
                    key.write(out);
                    out.push_str(": …");
                }
                out.push('}');
            }
        }
    }
}
