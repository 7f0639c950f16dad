//! Names near a name that is not there.

use std::borrow::Cow;

use crate::compat::distance;

/// How many names a finding lists.
const NAMES_SHOWN: usize = 8;

/// Longest name that is compared, in bytes: what is longer is nobody's typing mistake.
const COMPARED: usize = 300;

/// The names, nearest first: by the edits that lead from one to the other, where another domain
/// before the same last part counts as one edit.
pub fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let mut ranked: Vec<(usize, &str)> =
        names.into_iter().map(|name| (edits(wanted, name), name)).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().map(|(_, name)| name).collect()
}

/// The nearest name, if it is near enough to be the one that is meant.
pub(super) fn meant<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let nearest = nearest(wanted, names).into_iter().next()?;
    (edits(wanted, nearest) <= 2.max(last(wanted).len() / 3)).then_some(nearest)
}

/// What may be meant instead, or what there is.
pub(super) fn suggestion(wanted: &str, known: &[&str], what: &str) -> String {
    match (meant(wanted, known.iter().copied()), known) {
        (Some(near), _) => format!("If `{}` is meant, name that.", cut(near)),
        (None, []) => format!("It has no {what} at all: add those of the cluster."),
        (None, known) => {
            let names = nearest(wanted, known.iter().copied());
            format!("It has {}.", quoted(&names, NAMES_SHOWN))
        }
    }
}

fn edits(a: &str, b: &str) -> usize {
    let capped = |name: &str| name.len() > COMPARED;
    if capped(a) || capped(b) {
        return usize::MAX;
    }
    let parts = distance(last(a), last(b)) + usize::from(domain(a) != domain(b));
    parts.min(distance(a, b))
}

/// What follows the last slash.
fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// What stands before the last slash.
fn domain(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(domain, _)| domain)
}

/// Most bytes of a name that a sentence repeats.
const SHOWN_BYTES: usize = 80;

/// A name of the user's as a sentence repeats it: of a long one its beginning.
pub(super) fn cut(name: &str) -> Cow<'_, str> {
    if name.len() <= SHOWN_BYTES {
        return name.into();
    }
    let start: String = name.chars().take(SHOWN_BYTES / 2).collect();
    format!("{start}… ({} bytes)", name.len()).into()
}

/// Names as a list in code quotes, cut after `max`.
pub(super) fn quoted(names: &[&str], max: usize) -> String {
    let shown: Vec<String> =
        names.iter().take(max).map(|name| format!("`{}`", cut(name))).collect();
    match names.len().saturating_sub(max) {
        0 => crate::words::list(&shown),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{meant, nearest};

    #[test]
    fn the_same_last_part_in_another_domain_is_near() {
        let names =
            ["gpu.nvidia.com/uuid", "resource.kubernetes.io/pcieRoot", "gpu.nvidia.com/brand"];
        let found = nearest("gpu.nvidia.com/pcieRoot", names);
        assert_eq!(found.first(), Some(&"resource.kubernetes.io/pcieRoot"));
    }

    #[test]
    fn only_a_near_name_is_meant() {
        assert_eq!(meant("gpu.nvidea.com", ["gpu.nvidia.com"]), Some("gpu.nvidia.com"));
        assert_eq!(meant("tpu", ["gpu.nvidia.com"]), None);
        assert_eq!(meant("x", []), None);
        let long = "x".repeat(100_000);
        assert_eq!(meant(&long, ["x"]), None);
    }
}
