//! Texts. Places in them count characters, not bytes.

use super::signatures::Function;
use super::{NO_OVERLOAD, Outcome, failed};
use crate::cost::Meter;
use crate::error::EvalErrorKind;
use crate::value::{Shared, Value};

/// `startsWith`, `endsWith`, `contains`.
pub(crate) fn test<'a>(function: Function, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Str(text), Value::Str(part)] = args else { return Err(NO_OVERLOAD) };
    Ok(Value::Bool(match function {
        Function::StartsWith => text.starts_with(&**part),
        Function::EndsWith => text.ends_with(&**part),
        _ => text.contains(&**part),
    }))
}

/// Byte offset of a place from 0 to the number of characters.
fn offset(text: &str, place: i64) -> Result<usize, EvalErrorKind> {
    let error = EvalErrorKind::IndexOutOfRange(place);
    let place = usize::try_from(place).map_err(|_| error.clone())?;
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(place).ok_or(error)
}

fn made<'a>(text: String, meter: &mut Meter) -> Outcome<'a> {
    meter.reserve_text(text.len())?;
    Ok(Value::Str(Shared::Owned(text.into())))
}

pub(crate) fn char_at<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Str(text), Value::Int(place)] = args else { return Err(NO_OVERLOAD) };
    let start = offset(text, *place)?;
    let found = text[start..].chars().next();
    Ok(Value::text(found.map_or("", |c| &text[start..start + c.len_utf8()])))
}

pub(crate) fn substring<'a>(args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    let (text, start, end) = match args {
        [Value::Str(text), Value::Int(start)] => (text, offset(text, *start)?, text.len()),
        [Value::Str(_), Value::Int(start), Value::Int(end)] if start > end => {
            return failed(format!("invalid substring range. start: {start}, end: {end}"));
        }
        [Value::Str(text), Value::Int(start), Value::Int(end)] => {
            (text, offset(text, *start)?, offset(text, *end)?)
        }
        _ => return Err(NO_OVERLOAD),
    };
    made(text[start..end].to_owned(), meter)
}

/// `indexOf` and `lastIndexOf`, from an offset if there is one.
pub(crate) fn index_of<'a>(
    function: Function,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Outcome<'a> {
    let [Value::Str(text), Value::Str(part), rest @ ..] = args else { return Err(NO_OVERLOAD) };
    let offset = match rest {
        [] => None,
        [Value::Int(offset)] => Some(*offset),
        _ => return Err(NO_OVERLOAD),
    };
    if let Some(offset) = offset.filter(|offset| *offset < 0) {
        return Err(EvalErrorKind::IndexOutOfRange(offset));
    }
    let offset = offset.map(|offset| usize::try_from(offset).unwrap_or(usize::MAX));
    let text: Vec<char> = text.chars().collect();
    let part: Vec<char> = part.chars().collect();
    meter.reserve(text.len() + text.len().saturating_mul(part.len()) / 64)?;
    let place = if function == Function::IndexOf {
        first_place(&text, &part, offset.unwrap_or(0))
    } else {
        last_place(&text, &part, offset)
    };
    Ok(Value::Int(place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1)))
}

fn first_place(text: &[char], part: &[char], offset: usize) -> Option<usize> {
    if part.is_empty() {
        return Some(offset.min(text.len()));
    }
    let found = text.get(offset..)?.windows(part.len()).position(|window| window == part)?;
    Some(found + offset)
}

fn last_place(text: &[char], part: &[char], offset: Option<usize>) -> Option<usize> {
    if part.is_empty() {
        return Some(offset.unwrap_or(text.len()).min(text.len()));
    }
    let last = text.len().checked_sub(1)?;
    let offset = offset.unwrap_or(last);
    if offset > last {
        return None;
    }
    let end = offset.saturating_add(part.len()).min(text.len());
    text[..end].windows(part.len()).rposition(|window| window == part)
}

pub(crate) fn join<'a>(args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::Str(separator)] => (list, &**separator),
        _ => return Err(NO_OVERLOAD),
    };
    let mut out = String::new();
    for (at, element) in list.iter().enumerate() {
        let Value::Str(text) = &element else {
            return failed(format!("join: invalid input: {element}"));
        };
        if at > 0 {
            out.push_str(separator);
        }
        out.push_str(text);
        meter.reserve_text(out.len().min(text.len() + separator.len() + 16))?;
    }
    made(out, meter)
}

/// `lowerAscii` and `upperAscii`.
pub(crate) fn ascii_case<'a>(
    function: Function,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Outcome<'a> {
    let [Value::Str(text)] = args else { return Err(NO_OVERLOAD) };
    let lower = function == Function::LowerAscii;
    made(if lower { text.to_ascii_lowercase() } else { text.to_ascii_uppercase() }, meter)
}

pub(crate) fn replace<'a>(args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    let (text, old, new, limit) = match args {
        [Value::Str(text), Value::Str(old), Value::Str(new)] => (text, old, new, -1),
        [Value::Str(text), Value::Str(old), Value::Str(new), Value::Int(limit)] => {
            (text, old, new, *limit)
        }
        _ => return Err(NO_OVERLOAD),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = text.matches(&**old).count().min(limit);
    // An upper bound of the result, before it is made.
    meter.reserve_text(text.len().saturating_add(count.saturating_mul(new.len())))?;
    made(text.replacen(&**old, new, limit), meter)
}

pub(crate) fn split<'a>(args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    let (text, separator, limit) = match args {
        [Value::Str(text), Value::Str(separator)] => (text, separator, -1),
        [Value::Str(text), Value::Str(separator), Value::Int(limit)] => (text, separator, *limit),
        _ => return Err(NO_OVERLOAD),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    meter.reserve(text.len())?;
    let parts: Vec<&str> = if separator.is_empty() {
        // Each character by itself, the rest with the last.
        let ends = text.char_indices().skip(1).map(|(at, _)| at).take(limit - 1);
        let mut parts = Vec::new();
        let mut start = 0;
        for end in ends {
            parts.push(&text[start..end]);
            start = end;
        }
        if start < text.len() {
            parts.push(&text[start..]);
        }
        parts
    } else {
        text.splitn(limit, &**separator).collect()
    };
    Ok(Value::list(parts.into_iter().map(Value::text).collect()))
}

pub(crate) fn trim<'a>(args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    let [Value::Str(text)] = args else { return Err(NO_OVERLOAD) };
    made(text.trim().to_owned(), meter)
}

/// The text as a literal that gives it.
pub(crate) fn quote<'a>(args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    let [Value::Str(text)] = args else { return Err(NO_OVERLOAD) };
    made(quoted(text), meter)
}

/// A text as a literal in double quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match escape(c) {
            Some(escape) => out.push_str(escape),
            None => out.push(c),
        }
    }
    out.push('"');
    out
}

/// How a literal in double quotes writes a character that has a short escape.
pub(super) fn escape(c: char) -> Option<&'static str> {
    Some(match c {
        '\x07' => "\\a",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\x0b' => "\\v",
        '\\' => "\\\\",
        '"' => "\\\"",
        _ => return None,
    })
}
