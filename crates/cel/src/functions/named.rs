//! Named formats (`format.dns1123Label()`) and what a text must be to have one.
//!
//! How many faults `validate` finds is upstream's; the sentences are ours.

use std::sync::Arc;

use super::signatures::{Function, NamedFormat};
use super::{NO_OVERLOAD, Outcome, time, url};
use crate::cost::Meter;
use crate::value::Value;

/// Bytes of a label of DNS, of the name of a label, of the value of a label.
const MAX_LABEL: usize = 63;
/// Bytes of a domain name.
const MAX_SUBDOMAIN: usize = 253;

pub(crate) fn call<'a>(function: Function, args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    match (function, args) {
        (Function::NamedFormat(format), []) => Ok(Value::Format(format)),
        (Function::FormatNamed, [Value::Str(name)]) => {
            let found = NamedFormat::ALL.iter().find(|(short, _, _)| **name == **short);
            Ok(Value::Optional(found.map(|(_, _, format)| Arc::new(Value::Format(*format)))))
        }
        (Function::Validate, [Value::Format(format), Value::Str(text)]) => {
            meter.reserve_text(text.len())?;
            let faults = faults(*format, text);
            if faults.is_empty() {
                return Ok(Value::Optional(None));
            }
            Ok(Value::some(Value::list(faults.iter().map(|fault| Value::text(fault)).collect())))
        }
        _ => Err(NO_OVERLOAD),
    }
}

/// The size that upstream gives the pattern of a format, for the cost of holding a text against it.
pub(crate) fn pattern_size(format: NamedFormat) -> u64 {
    match format {
        NamedFormat::Dns1123Label
        | NamedFormat::Dns1035Label
        | NamedFormat::Dns1123LabelPrefix
        | NamedFormat::Dns1035LabelPrefix => 30,
        NamedFormat::Dns1123Subdomain
        | NamedFormat::QualifiedName
        | NamedFormat::Dns1123SubdomainPrefix => 60,
        NamedFormat::LabelValue => 40,
        NamedFormat::Uri => 1103,
        NamedFormat::Uuid => 70,
        NamedFormat::Byte => 84,
        NamedFormat::Date | NamedFormat::DateTime => 71,
    }
}

fn faults(format: NamedFormat, text: &str) -> Vec<String> {
    let prefix = matches!(
        format,
        NamedFormat::Dns1123LabelPrefix
            | NamedFormat::Dns1123SubdomainPrefix
            | NamedFormat::Dns1035LabelPrefix
    );
    let whole = if prefix { completed(text) } else { text.to_owned() };
    match format {
        NamedFormat::Dns1123Label | NamedFormat::Dns1123LabelPrefix => {
            let fits = label(&whole);
            shape(&whole, MAX_LABEL, fits, "a label of lower case letters, digits and dashes")
        }
        NamedFormat::Dns1035Label | NamedFormat::Dns1035LabelPrefix => {
            let fits = label(&whole) && whole.starts_with(|c: char| c.is_ascii_lowercase());
            shape(&whole, MAX_LABEL, fits, "a label that begins with a lower case letter")
        }
        NamedFormat::Dns1123Subdomain | NamedFormat::Dns1123SubdomainPrefix => subdomain(&whole),
        NamedFormat::QualifiedName => qualified(text),
        NamedFormat::LabelValue => {
            let fits = text.is_empty() || name(text);
            shape(text, MAX_LABEL, fits, "empty, or letters, digits, '-', '_' and '.'")
        }
        NamedFormat::Uri => url::is_url(text).err().into_iter().collect(),
        NamedFormat::Uuid => one(uuid(text), "a UUID"),
        NamedFormat::Byte => one(base64(text), "base64"),
        NamedFormat::Date => one(time::is_date(text), "a date such as 2026-01-31"),
        NamedFormat::DateTime => one(datetime(text), "a time such as 2026-01-31t12:00:00z"),
    }
}

fn one(fits: bool, wanted: &str) -> Vec<String> {
    if fits { Vec::new() } else { vec![format!("must be {wanted}")] }
}

fn shape(text: &str, longest: usize, fits: bool, wanted: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > longest {
        faults.push(format!("must have at most {longest} bytes"));
    }
    faults.extend(one(fits, wanted));
    faults
}

/// A prefix may end with a dash: upstream looks at it with something after it, but for one letter
/// too many that it takes away.
fn completed(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut kept = rest.to_owned();
            kept.pop();
            kept.push('a');
            kept
        }
        Some(_) | None => text.to_owned(),
    }
}

fn label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    !text.is_empty()
        && text.chars().all(|c| inner(c) || c == '-')
        && text.starts_with(inner)
        && text.ends_with(inner)
}

fn subdomain(text: &str) -> Vec<String> {
    let fits = text.split('.').all(label);
    shape(text, MAX_SUBDOMAIN, fits, "labels of lower case letters, digits and dashes, with dots")
}

/// Letters and digits, with dashes, underscores and dots between them.
fn name(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    text.chars().all(|c| edge(c) || "-_.".contains(c))
        && text.starts_with(edge)
        && text.ends_with(edge)
}

fn qualified(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (mut faults, base) = match parts[..] {
        [base] => (Vec::new(), base),
        ["", base] => (vec!["the part before the '/' must not be empty".to_owned()], base),
        [prefix, base] => (subdomain(prefix), base),
        _ => return one(false, "a name, or a domain, a '/' and a name"),
    };
    if base.is_empty() {
        faults.push("the name must not be empty".to_owned());
    }
    faults.extend(shape(base, MAX_LABEL, name(base), "letters, digits, '-', '_' and '.'"));
    faults
}

/// 32 digits in groups, with or without each dash.
fn uuid(text: &str) -> bool {
    let mut rest = text;
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((digits, after)) = rest.split_at_checked(length) else { return false };
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn base64(text: &str) -> bool {
    let body = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text);
    let sign = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && body.bytes().all(sign)
}

fn datetime(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(day), Some(clock)) = (parts.next(), parts.next()) else { return false };
    time::is_date(day) && is_clock(clock)
}

/// `12:00:00`, a part of the second after any sign, and `z` or an offset.
fn is_clock(text: &str) -> bool {
    let two = |text: &str, most: &str| {
        text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()) && text <= most
    };
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    if !(two(hour, "23") && two(minute, "59") && two(second, "59")) {
        return false;
    }
    let zone = |text: &str| {
        let offset = text.strip_prefix(['+', '-']).and_then(|offset| offset.split_once(':'));
        text == "z" || offset.is_some_and(|(a, b)| two(a, "99") && two(b, "99"))
    };
    let mut after = rest.chars();
    let sign = after.next();
    let digits = after.as_str();
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let fraction = sign.is_some_and(|sign| sign != '\n') && length > 0;
    zone(rest) || fraction && zone(&digits[length..])
}
