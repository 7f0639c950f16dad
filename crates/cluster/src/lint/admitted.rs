//! What the API server would refuse to make, as admission is played when objects are lowered.

use super::{Lint, Rule};
use crate::lower::Kept;
use crate::world::World;

/// Rules that say what validation says too, and more of what to do.
const SAID: [Rule; 7] = [
    Rule::ResourceFraction,
    Rule::ResourceLimitMissing,
    Rule::ResourceLimitDiffers,
    Rule::FieldValueRequired,
    Rule::FieldValueInvalid,
    Rule::FieldValueDuplicate,
    Rule::FieldValueNotFound,
];

/// What one of those has said of the same field is not said again.
pub(super) fn find(world: &World, found: &mut Vec<Lint>) {
    for (kept, finding) in world.lowering().admission_findings() {
        let rule = match kept {
            Kept::Refused => Rule::AdmissionRefused,
            Kept::ByQuota => Rule::QuotaExceeded,
        };
        let Some(object) = &finding.object else { continue };
        let Some(source) = world.lowering().source(object) else { continue };
        let same = |lint: &Lint| {
            SAID.contains(&lint.rule)
                && lint.object.as_ref() == Some(object)
                && lint.path == finding.path
        };
        if found.iter().any(same) {
            continue;
        }
        let lint = Lint::new(rule, (object, source), &finding.path, finding.message);
        found.push(lint.graded(finding.severity));
    }
}
