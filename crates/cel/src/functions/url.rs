//! URLs, taken apart as upstream's language does it (RFC 3986 with its liberties).

use core::net::Ipv6Addr;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::signatures::{Function, UrlPart};
use super::{NO_OVERLOAD, Outcome, failed, make_map};
use crate::cost::Meter;
use crate::value::{Shared, Value};

/// A URL that was parsed. Texts hold bytes as they were written, or after unescaping.
#[derive(Debug, Default)]
pub(crate) struct Url {
    scheme: String,
    host: String,
    path: Vec<u8>,
    /// The path as it was written, if that is not how it would be written by default.
    raw_path: Option<String>,
    query: String,
    text: String,
}

/// Where a text stands in a URL: it decides which characters are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

pub(crate) fn call<'a>(function: Function, args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    match (function, args) {
        (Function::Url, [Value::Str(text)]) => {
            meter.reserve(text.len())?;
            match Url::parse(text) {
                Ok(url) => Ok(Value::Url(Shared::new(url))),
                Err(message) => failed(format!(
                    "URL parse error during conversion from string: parse {text:?}: {message}"
                )),
            }
        }
        (Function::IsUrl, [Value::Str(text)]) => {
            meter.reserve(text.len())?;
            Ok(Value::Bool(is_url(text).is_ok()))
        }
        (Function::UrlPart(part), [Value::Url(url)]) => url.part(part, meter),
        _ => Err(NO_OVERLOAD),
    }
}

/// Whether a text is a URL as a request may have it.
pub(crate) fn is_url(text: &str) -> Result<(), String> {
    Parts::parse(text, true).map(|_| ())
}

/// A URL taken apart.
#[derive(Debug, Default)]
struct Parts<'t> {
    scheme: String,
    opaque: &'t str,
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: String,
    omit_host: bool,
    path: Vec<u8>,
    raw_path: Option<String>,
    force_query: bool,
    query: &'t str,
}

impl<'t> Parts<'t> {
    fn parse(text: &'t str, request: bool) -> Result<Self, String> {
        if text.bytes().any(|b| b < b' ' || b == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && request {
            return Err("empty url".to_owned());
        }
        let mut parts = Parts::default();
        if text == "*" {
            parts.path = b"*".to_vec();
            return Ok(parts);
        }
        let (scheme, mut rest) = scheme(text)?;
        parts.scheme = scheme.to_ascii_lowercase();
        if rest.ends_with('?') && rest.matches('?').count() == 1 {
            parts.force_query = true;
            rest = &rest[..rest.len() - 1];
        } else {
            (rest, parts.query) = rest.split_once('?').unwrap_or((rest, ""));
        }
        if !rest.starts_with('/') {
            if !parts.scheme.is_empty() {
                parts.opaque = rest;
                return Ok(parts);
            }
            if request {
                return Err("invalid URI for request".to_owned());
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let authority = !parts.scheme.is_empty() || !request && !rest.starts_with("///");
        if authority && rest.starts_with("//") {
            let after = &rest[2..];
            let end = after.find('/').unwrap_or(after.len());
            rest = &after[end..];
            parts.authority(&after[..end])?;
        } else if !parts.scheme.is_empty() && rest.starts_with('/') {
            parts.omit_host = true;
        }
        parts.path = unescape(rest, Place::Path)?;
        parts.raw_path = (escape(&parts.path, Place::Path) != rest).then(|| rest.to_owned());
        Ok(parts)
    }

    fn authority(&mut self, text: &str) -> Result<(), String> {
        let Some((user, host)) = text.rsplit_once('@') else {
            self.host = host(text)?;
            return Ok(());
        };
        self.host = self::host(host)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(fits) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        self.user = Some(match user.split_once(':') {
            None => (unescape(user, Place::User)?, None),
            Some((name, password)) => {
                (unescape(name, Place::User)?, Some(unescape(password, Place::User)?))
            }
        });
        Ok(())
    }

    fn escaped_path(&self) -> String {
        escaped_path(&self.path, self.raw_path.as_deref())
    }

    /// The whole, written as upstream writes it.
    fn text(&self, fragment: &str) -> Result<String, String> {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            out.push_str(&self.scheme);
            out.push(':');
        }
        if self.opaque.is_empty() {
            let named = !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some();
            let omitted = self.omit_host && self.host.is_empty() && self.user.is_none();
            if named && !omitted {
                if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                    out.push_str("//");
                }
                if let Some((name, password)) = &self.user {
                    out.push_str(&escape(name, Place::User));
                    if let Some(password) = password {
                        out.push(':');
                        out.push_str(&escape(password, Place::User));
                    }
                    out.push('@');
                }
                out.push_str(&escape(self.host.as_bytes(), Place::Host));
            }
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                out.push('/');
            }
            if out.is_empty() && path.split('/').next().is_some_and(|first| first.contains(':')) {
                out.push_str("./");
            }
            out.push_str(&path);
        } else {
            out.push_str(self.opaque);
        }
        if self.force_query || !self.query.is_empty() {
            out.push('?');
            out.push_str(self.query);
        }
        if !fragment.is_empty() {
            let bytes = unescape(fragment, Place::Fragment)?;
            out.push('#');
            match valid_encoded(fragment, Place::Fragment) {
                true => out.push_str(fragment),
                false => out.push_str(&escape(&bytes, Place::Fragment)),
            }
        }
        Ok(out)
    }
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        is_url(text)?;
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let parts = Parts::parse(before, false)?;
        Ok(Url {
            text: parts.text(fragment)?,
            scheme: parts.scheme,
            host: parts.host,
            path: parts.path,
            raw_path: parts.raw_path,
            query: parts.query.to_owned(),
        })
    }

    /// The whole; two URLs are equal if these are.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn part<'a>(&self, part: UrlPart, meter: &mut Meter) -> Outcome<'a> {
        meter.reserve_text(self.text.len())?;
        Ok(match part {
            UrlPart::Scheme => Value::text(&self.scheme),
            UrlPart::Host => Value::text(&self.host),
            UrlPart::Hostname => Value::text(self.name_and_port().0),
            UrlPart::Port => Value::text(self.name_and_port().1),
            UrlPart::EscapedPath => {
                Value::text(&escaped_path(&self.path, self.raw_path.as_deref()))
            }
            UrlPart::Query => return self.queried(meter),
        })
    }

    /// Brackets around an IPv6 address belong to neither.
    fn name_and_port(&self) -> (&str, &str) {
        let (name, port) = match self.host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, port),
            _ => (self.host.as_str(), ""),
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        (bare.unwrap_or(name), port)
    }

    fn queried<'a>(&self, meter: &mut Meter) -> Outcome<'a> {
        meter.reserve(self.query.len())?;
        let mut found: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
        let text = |escaped: &str| {
            let bytes = unescape(escaped, Place::Query)?;
            Ok::<_, String>(String::from_utf8_lossy(&bytes).into_owned())
        };
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Ok(key), Ok(value)) = (text(key), text(value)) {
                found.entry(key).or_default().push(Value::text(&value));
            }
        }
        let pairs = found
            .into_iter()
            .map(|(key, values)| (Value::Str(Shared::Owned(Arc::from(key))), Value::list(values)));
        make_map(pairs.collect(), meter)
    }
}

fn escaped_path(path: &[u8], raw: Option<&str>) -> String {
    match raw {
        Some(raw) if valid_encoded(raw, Place::Path) => raw.to_owned(),
        _ if path == b"*" => "*".to_owned(),
        _ => escape(path, Place::Path),
    }
}

/// What stands before the first colon, if it can be a scheme.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn valid_port(port: &str) -> bool {
    port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

fn host(text: &str) -> Result<String, String> {
    let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let bracket = text.rfind('[');
    if bracket.is_some_and(|at| at > 0) {
        return Err("invalid IP-literal".to_owned());
    }
    if bracket == Some(0) {
        let Some(close) = text.rfind(']') else { return Err("missing ']' in host".to_owned()) };
        let port = &text[close + 1..];
        if !valid_port(port) {
            return Err(format!("invalid port {port:?} after host"));
        }
        let name = &text[1..close];
        let name = match name.find("%25") {
            Some(zone) => {
                let mut bytes = unescape(&name[..zone], Place::Host)?;
                bytes.extend(unescape(&name[zone..], Place::Zone)?);
                lossy(bytes)
            }
            None => lossy(unescape(name, Place::Host)?),
        };
        let (ip, zone) = name.split_once('%').unwrap_or((&name, "zone"));
        if ip.parse::<Ipv6Addr>().is_err() || zone.is_empty() {
            return Err(format!("invalid host: {name:?} is no IPv6 address"));
        }
        return Ok(format!("[{name}]{}", lossy(unescape(port, Place::Host)?)));
    }
    if let Some(colon) = text.find(':')
        && !valid_port(&text[colon..])
    {
        return Err(format!("invalid port {:?} after host", &text[colon..]));
    }
    Ok(lossy(unescape(text, Place::Host)?))
}

/// Whether a byte is written as `%XX` at a place.
fn escaped(byte: u8, place: Place) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return false;
    }
    let plain: &[u8] = match place {
        Place::Path => b"$&+,/:;=@",
        Place::Host | Place::Zone => b"!$&'()*+,;=:[]<>\"",
        Place::User => b"$&+,;=",
        Place::Query => b"",
        Place::Fragment => b"!$&'()*+,/:;=?@",
    };
    !plain.contains(&byte)
}

fn escape(bytes: &[u8], place: Place) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if escaped(*byte, place) {
            // Writing to a text cannot fail.
            let _ = write!(out, "%{byte:02X}");
        } else {
            out.push(char::from(*byte));
        }
    }
    out
}

/// Whether a text is a permitted way to write a path or a fragment.
fn valid_encoded(text: &str, place: Place) -> bool {
    text.bytes().all(|b| b"!$&'()*+,;=:@[]%".contains(&b) || !escaped(b, place))
}

fn unescape(text: &str, place: Place) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'%' => {
                let digits = bytes.get(at..at + 2).and_then(|d| std::str::from_utf8(d).ok());
                let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                let code = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
                let invalid = || {
                    let end = (at + 2).min(bytes.len());
                    let shown = String::from_utf8_lossy(&bytes[at - 1..end]);
                    format!("invalid URL escape {shown:?}")
                };
                let Some(code) = code else { return Err(invalid()) };
                let refused = match place {
                    Place::Host => code < 0x80 && code != b'%',
                    Place::Zone => code != b'%' && code != b' ' && escaped(code, Place::Host),
                    Place::Path | Place::User | Place::Query | Place::Fragment => false,
                };
                if refused {
                    return Err(invalid());
                }
                out.push(code);
                at += 2;
            }
            b'+' if place == Place::Query => out.push(b' '),
            _ => {
                let host = matches!(place, Place::Host | Place::Zone);
                if host && byte.is_ascii() && escaped(*byte, Place::Host) {
                    let shown = char::from(*byte).to_string();
                    return Err(format!("invalid character {shown:?} in host name"));
                }
                out.push(*byte);
            }
        }
    }
    Ok(out)
}
