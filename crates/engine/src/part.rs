//! What a group has beyond the members that it starts with and is there whole or not at all.

use crate::name::Name;

/// A part of a group that need not start (a subgroup beyond those that must): of each of its roles so many
/// members are there, or none beyond the role's own minimum and the parts before. What its roles have
/// beyond that comes one by one, once the part is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name, for output.
    pub name: Name,
    /// Roles by index, each with the fewest members that make the part whole, those of the role's minimum
    /// included; of a role that has fewer members all of them.
    pub least: Box<[(u16, u32)]>,
    /// The part, by index, without which this one is not placed: it stands before it. So it is of those
    /// before it that have a role of it as well.
    pub after: Option<u16>,
}

impl Part {
    /// Whether it has a role of the other.
    #[must_use]
    pub fn shares_role(&self, other: &Self) -> bool {
        self.least.iter().any(|(role, _)| other.least.iter().any(|(of, _)| of == role))
    }
}
