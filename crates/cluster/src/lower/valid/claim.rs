//! Claims on volumes (`core/validation`, `ValidatePersistentVolumeClaimSpec`): how they are to be mounted,
//! and how much they ask for. Their classes, selectors and sources are not checked.

use phalanx_engine::AccessModes;

/// Where a claim says how much it asks for.
pub(crate) const CLAIM_SIZE: &str = "resources.requests.storage";

/// The field of a claim's spec that is refused, and why, for a sentence about the claim. The size is in
/// billionths of a byte.
pub(crate) fn volume_claim(
    size_nanos: Option<i128>,
    modes: AccessModes,
) -> Option<(&'static str, &'static str)> {
    if modes == AccessModes::default() {
        return Some(("accessModes", "it names no access mode, such as ReadWriteOnce"));
    }
    if modes.covers(AccessModes::ONCE_POD) && modes != AccessModes::ONCE_POD {
        let why = "it names another access mode beside ReadWriteOncePod, which stands alone";
        return Some(("accessModes", why));
    }
    match size_nanos {
        Some(1..) => None,
        Some(_) => Some((CLAIM_SIZE, "it asks for no storage at all")),
        None => Some((CLAIM_SIZE, "it does not say how much storage it asks for")),
    }
}
