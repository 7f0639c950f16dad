//! The forms that names and values have to have, and each in words.

use super::{Rule, VALUE_BYTES};
use crate::lint::near::cut;

/// A form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A DNS label (RFC 1123).
    Label,
    /// A DNS subdomain (RFC 1123).
    Subdomain,
    /// A driver: a DNS subdomain of at most 63 bytes, capitals allowed.
    Driver,
    /// A pool: DNS subdomains joined by slashes.
    Pool,
    /// A C identifier of at most 32 bytes, with a domain before it or without.
    Qualified,
    /// The same with a domain.
    FullyQualified,
    /// The key of a label or taint.
    LabelKey,
    /// The value of a label or taint.
    LabelValue,
    /// An extended resource.
    ExtendedResource,
    /// A semantic version.
    Version,
    /// A text attribute.
    Text,
}

/// Bytes of a DNS label, of a driver and of the domain of a name.
const LABEL_BYTES: usize = 63;
/// Bytes of a DNS subdomain.
const SUBDOMAIN_BYTES: usize = 253;
/// Bytes of the last part of an attribute's name.
const IDENTIFIER_BYTES: usize = 32;

impl Form {
    /// What the text has to be.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Label => {
                "a DNS label: at most 63 small letters, digits and hyphens, with no hyphen at the ends"
            }
            Self::Subdomain => {
                "a DNS subdomain: at most 253 bytes of parts joined by dots, each of small letters, \
                 digits and hyphens, with no hyphen at its ends"
            }
            Self::Driver => "a DNS subdomain of at most 63 bytes, such as gpu.example.com",
            Self::Pool => "one or more DNS subdomains joined by slashes, at most 253 bytes",
            Self::Qualified => {
                "an identifier of at most 32 letters, digits and underscores, such as model, with a \
                 domain of at most 63 bytes before it or without, as in gpu.example.com/model"
            }
            Self::FullyQualified => {
                "a name with its domain, such as gpu.example.com/model: a DNS subdomain of at most 63 \
                 bytes, a slash, and an identifier of at most 32 letters, digits and underscores"
            }
            Self::LabelKey => {
                "a label's key: at most 63 letters, digits, `-`, `_` and `.` that begin and end with a \
                 letter or digit, with a DNS subdomain and a slash before them or without"
            }
            Self::LabelValue => {
                "a label's value: at most 63 letters, digits, `-`, `_` and `.` that begin and end with \
                 a letter or digit"
            }
            Self::ExtendedResource => {
                "an extended resource such as example.com/gpu: a domain that is not kubernetes.io's, a \
                 slash, and a name"
            }
            Self::Version => {
                "a semantic version as in 1.2.3 or 1.2.3-rc.1: three numbers without leading zeros, at \
                 most 64 bytes"
            }
            Self::Text => "at most 64 bytes long",
        }
    }

    /// How a text breaks the form, if it does.
    pub(super) fn broken_by(self, text: &str) -> Option<Rule> {
        let (longest, fits) = match self {
            Self::Label => (LABEL_BYTES, is_label(text)),
            Self::Subdomain => (SUBDOMAIN_BYTES, is_subdomain(text)),
            Self::Driver => (LABEL_BYTES, is_subdomain(&text.to_ascii_lowercase())),
            Self::Pool => (SUBDOMAIN_BYTES, text.split('/').all(is_subdomain)),
            Self::Qualified => (LABEL_BYTES + 1 + IDENTIFIER_BYTES, is_qualified(text)),
            Self::FullyQualified => {
                let domain = text.split('/').next().unwrap_or_default();
                let fits = text.contains('/') && is_qualified(text) && is_subdomain(domain);
                (LABEL_BYTES + 1 + IDENTIFIER_BYTES, fits)
            }
            Self::LabelKey => (SUBDOMAIN_BYTES + 1 + LABEL_BYTES, is_label_key(text)),
            Self::LabelValue => (LABEL_BYTES, is_label_name(text)),
            Self::ExtendedResource => {
                (SUBDOMAIN_BYTES + 1 + LABEL_BYTES, is_extended_resource(text))
            }
            Self::Version => (VALUE_BYTES, is_semver(text)),
            Self::Text => (VALUE_BYTES, true),
        };
        if text.len() > longest {
            Some(Rule::FieldValueTooLong)
        } else if fits {
            None
        } else {
            Some(Rule::FieldValueInvalid)
        }
    }
}

/// A text of the user in a sentence.
pub(super) fn shown(text: &str) -> String {
    format!("`{}`", cut(text))
}

fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let hyphen = text.starts_with('-') || text.ends_with('-');
    !text.is_empty() && text.bytes().all(inner) && !hyphen
}

/// Its parts may be longer than 63 bytes: the API server counts only the whole.
fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_identifier(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|c| c.is_ascii_alphabetic() || c == b'_');
    let rest = text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    first && rest && text.len() <= IDENTIFIER_BYTES
}

/// Of a name with several slashes the API server looks at nothing.
fn is_qualified(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    match parts.as_slice() {
        [id] => is_identifier(id),
        [domain, id] => {
            let domain = domain.to_ascii_lowercase();
            is_subdomain(&domain) && domain.len() <= LABEL_BYTES && is_identifier(id)
        }
        _ => true,
    }
}

fn is_label_name(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    let end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= LABEL_BYTES
        && text.bytes().all(inner)
        && end(text.chars().next())
        && end(text.chars().next_back())
}

fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_label_name(text),
        Some((domain, name)) => {
            is_subdomain(domain) && domain.len() <= SUBDOMAIN_BYTES && is_label_name(name)
        }
    }
}

fn is_extended_resource(text: &str) -> bool {
    let Some((domain, _)) = text.split_once('/') else { return false };
    let own = text.contains("kubernetes.io/");
    !own && !text.starts_with("requests.")
        && is_label_key(text)
        && domain.len() + "requests.".len() <= SUBDOMAIN_BYTES
}

fn is_semver(text: &str) -> bool {
    let (rest, build) = match text.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (text, None),
    };
    let (core, pre) = match rest.split_once('-') {
        Some((core, pre)) => (core, Some(pre)),
        None => (rest, None),
    };
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
    };
    let digits = |part: &str| part.bytes().all(|c| c.is_ascii_digit());
    let number =
        |part: &str| !part.is_empty() && digits(part) && (part == "0" || !part.starts_with('0'));
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre.is_none_or(|pre| pre.split('.').all(|p| word(p) && (!digits(p) || number(p))))
        && build.is_none_or(|build| build.split('.').all(word))
}

#[cfg(test)]
mod tests {
    use super::Form::*;
    use super::Rule;

    #[test]
    fn each_form_takes_and_refuses() {
        for (form, good, bad) in [
            (Label, vec!["a", "gpu-0", "0"], vec!["-a", "a-", "A", "a.b", "a_b", "ä"]),
            (Subdomain, vec!["a.b-c", "0"], vec![".a", "a..b", "A.b", "a/b", "-a.b"]),
            (Driver, vec!["gpu.example.com", "GPU.example.com"], vec!["a_b", "a/b"]),
            (Pool, vec!["n1", "a.b/c"], vec!["a//b", "/a", "N1"]),
            (
                Qualified,
                vec!["model", "_x", "d.e/model", "a/b/c"],
                vec!["0x", "a-b", "d_e/x", "d/"],
            ),
            (FullyQualified, vec!["d.e/model"], vec!["model", "/model", "d.e/mo-del", "D.e/model"]),
            (LabelKey, vec!["a", "a.b/c_d", "A.b"], vec!["-a", "a/b/c", "A/b", "/b", "a/"]),
            (LabelValue, vec!["a", "A_b.c-1"], vec!["-a", "a b", "a/"]),
            (
                ExtendedResource,
                vec!["example.com/gpu"],
                vec!["gpu", "kubernetes.io/x", "requests.a/b"],
            ),
            (
                Version,
                vec!["1.2.3", "0.0.0-rc.1+b.7", "1.2.3-x-0"],
                vec!["1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.3-01", "v1.2.3", "1.2.3+", ""],
            ),
            (Text, vec!["", "anything goes"], vec![]),
        ] {
            for text in good {
                assert_eq!(form.broken_by(text), None, "{form:?} {text}");
            }
            for text in bad {
                assert_eq!(form.broken_by(text), Some(Rule::FieldValueInvalid), "{form:?} {text}");
            }
        }
    }

    #[test]
    fn what_is_too_long_is_said_to_be() {
        let long = |n: usize| "a".repeat(n);
        for (form, bytes) in
            [(Label, 63), (Subdomain, 253), (Driver, 63), (LabelValue, 63), (Text, 64)]
        {
            assert_eq!(form.broken_by(&long(bytes)), None, "{form:?}");
            assert_eq!(form.broken_by(&long(bytes + 1)), Some(Rule::FieldValueTooLong), "{form:?}");
        }
        assert_eq!(Qualified.broken_by(&long(32)), None);
        assert_eq!(Qualified.broken_by(&long(33)), Some(Rule::FieldValueInvalid));
    }
}
