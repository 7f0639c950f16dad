//! What a group is made of beyond the members that always start with it: parts, each of which is there whole
//! or not at all, and of which so many must be there.

use crate::name::Name;

/// The parts of a group: a tree of which the group itself is the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Members beyond the roles' own minima without which the group does not start, whichever they are.
    pub any: Box<[AnyOf]>,
    /// Of the parts that are under no other so many start with the group, whichever.
    pub fewest: u32,
    /// All of them in order, each behind the one that it is under.
    pub all: Vec<Part>,
}

/// So many members of some roles together, whichever, those on nodes and those of the roles' own minima
/// counted: `minCount` of a PodGroup whose pods are unlike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyOf {
    /// The roles, by index.
    pub roles: Box<[u16]>,
    /// The fewest of their members.
    pub least: u32,
}

/// A part of a group (a subgroup): of each of its roles so many members are there, and so many of the parts
/// under it; or none beyond its roles' own minimum and the parts before. What it has beyond that comes
/// later, once the part is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Name, for output.
    pub name: Name,
    /// Its roles by index, each with the fewest members that make the part whole, those of the role's minimum
    /// included; of a role that has fewer members all of them. Each of its roles is named here, if with 0.
    pub least: Box<[(u16, u32)]>,
    /// Members of its roles that make it whole beside those, whichever they are.
    pub any: Box<[AnyOf]>,
    /// The part, by index, that it is under and without which it is not placed. Nor is it without those
    /// before it that have a role of it as well.
    pub under: Option<u16>,
    /// Of the parts under it so many make it whole, whichever.
    pub fewest: u32,
    /// It is not placed, whatever room there is: too few of its pods exist, or a gate keeps them back.
    pub held: bool,
}

impl Parts {
    /// The parts under one, or under none, with their indexes.
    pub fn under(&self, of: Option<u16>) -> impl Iterator<Item = (u16, &Part)> {
        (0_u16..).zip(&self.all).filter(move |(_, part)| part.under == of)
    }

    /// How many of the parts under one make it whole, or of those under none let the group start.
    #[must_use]
    pub fn fewest_under(&self, of: Option<u16>) -> u32 {
        let Some(at) = of else { return self.fewest };
        self.all.get(usize::from(at)).map_or(0, |part| part.fewest)
    }
}

impl Part {
    /// Whether a role is of it.
    #[must_use]
    pub fn has(&self, role: u16) -> bool {
        self.least.iter().any(|(of, _)| *of == role)
    }

    /// Whether it has a role of the other.
    #[must_use]
    pub fn shares_role(&self, other: &Self) -> bool {
        self.least.iter().any(|(role, _)| other.has(*role))
    }
}
