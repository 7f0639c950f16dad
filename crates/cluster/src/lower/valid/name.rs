//! Names, as the API server takes them.

use crate::lower::rules::is_subdomain;

/// Longest label of a DNS name.
pub(super) const LABEL_MAX: usize = 63;

/// Whether the text is a label of a DNS name (RFC 1123): what containers and ports are called.
pub(super) fn is_label(text: &str) -> bool {
    text.len() <= LABEL_MAX && !text.contains('.') && is_subdomain(text)
}

/// What is wrong with an object's name, for the end of a sentence; none if it is a DNS subdomain.
pub(super) fn bad_object_name(name: &str) -> Option<String> {
    if is_subdomain(name) {
        return None;
    }
    Some(format!(
        "its name {name:?} (`metadata.name`) is no DNS name: at most 253 lower case letters, digits, \
         `-` and `.`, with a letter or digit at both ends of each part"
    ))
}
