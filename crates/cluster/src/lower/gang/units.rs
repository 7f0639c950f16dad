//! Which subgroups of a gang must start, and among which there is a choice: those are units, each of which is
//! there whole or not at all.
//!
//! A subgroup that has others under it starts with so many of them, whichever. Where that is all of them, they
//! are no units of their own but of what it is of itself; unless there is a choice below them.

use phalanx_engine::Name;

/// A subgroup: one that pods are in, or one of others.
pub(super) struct Node {
    pub(super) name: Name,
    /// The subgroup that it is under; none is the gang itself.
    pub(super) parent: Option<usize>,
    /// Of those under it so many must start, whichever; none is all.
    pub(super) fewest: Option<u32>,
}

/// A part that is there whole or not at all.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) name: Name,
    /// The unit that it is under.
    pub(super) under: Option<u16>,
    /// Of the units under it so many make it whole.
    pub(super) fewest: u32,
}

/// The units of a gang.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    pub(super) all: Vec<Unit>,
    /// Of those that are under no other so many start with the gang.
    pub(super) fewest: u32,
    /// By subgroup the unit that it is of; none for those that must start.
    pub(super) of: Vec<Option<u16>>,
}

/// The units of a gang that starts with `fewest` of its own subgroups. Who is under himself is under nobody,
/// and must.
pub(super) fn units(fewest: Option<u32>, nodes: &[Node]) -> Units {
    let mut units = Units { of: vec![None; nodes.len()], ..Units::default() };
    let mut open: Vec<(Option<usize>, Option<u32>, Option<u16>)> = vec![(None, fewest, None)];
    while let Some((parent, fewest, unit)) = open.pop() {
        let is_choice = |at: Option<usize>, fewest: Option<u32>| {
            let under = nodes.iter().filter(|node| node.parent == at).count();
            fewest.is_some_and(|fewest| (fewest as usize) < under)
        };
        let any = is_choice(parent, fewest);
        let mut below = Vec::new();
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.parent == parent) {
            let own = match u16::try_from(units.all.len()) {
                Ok(next) if any || is_choice(Some(at), node.fewest) => {
                    let name = node.name.clone();
                    units.all.push(Unit { name, under: unit, fewest: 0 });
                    if !any {
                        units.must(unit, 1);
                    }
                    Some(next)
                }
                Ok(_) | Err(_) => unit,
            };
            if let Some(of) = units.of.get_mut(at) {
                *of = own;
            }
            below.push((Some(at), node.fewest, own));
        }
        if any {
            units.must(unit, fewest.unwrap_or_default());
        }
        // In order: what is under the first comes before what is under the second.
        open.extend(below.into_iter().rev());
    }
    units
}

impl Units {
    /// Raises how many of the units under one must be there.
    fn must(&mut self, unit: Option<u16>, more: u32) {
        let fewest = match unit.and_then(|unit| self.all.get_mut(usize::from(unit))) {
            Some(unit) => &mut unit.fewest,
            None => &mut self.fewest,
        };
        *fewest = fewest.saturating_add(more);
    }

    /// All units below one, at whatever depth.
    pub(super) fn below(&self, of: u16) -> Vec<u16> {
        let mut all: Vec<u16> = Vec::new();
        // Each stands behind the one that it is under.
        for (at, unit) in (0_u16..).zip(&self.all) {
            if unit.under.is_some_and(|under| under == of || all.contains(&under)) {
                all.push(at);
            }
        }
        all
    }

    /// The units under one, or under none.
    pub(super) fn under(&self, of: Option<u16>) -> impl Iterator<Item = u16> {
        (0_u16..).zip(&self.all).filter(move |(_, unit)| unit.under == of).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, parent: Option<usize>, fewest: Option<u32>) -> Node {
        Node { name: Name::new(name), parent, fewest }
    }

    type Told = (u32, Vec<(String, Option<u16>, u32)>, Vec<Option<u16>>);

    fn of(fewest: Option<u32>, nodes: &[Node]) -> Told {
        let Units { all, fewest, of } = units(fewest, nodes);
        let unit = |unit: Unit| (unit.name.to_string(), unit.under, unit.fewest);
        (fewest, all.into_iter().map(unit).collect(), of)
    }

    #[test]
    fn of_more_than_must_start_each_is_a_unit() {
        let nodes = [node("a", None, None), node("b", None, None)];
        let told = vec![("a".to_owned(), None, 0), ("b".to_owned(), None, 0)];
        assert_eq!(of(Some(1), &nodes), (1, told, vec![Some(0), Some(1)]));
        assert_eq!(of(None, &nodes), (0, vec![], vec![None, None]));
        assert_eq!(of(Some(2), &nodes), (0, vec![], vec![None, None]));
    }

    #[test]
    fn what_is_under_a_unit_is_a_choice_of_its_own() {
        let nodes = [
            node("a", None, None),
            node("b", None, Some(1)),
            node("b1", Some(1), None),
            node("b2", Some(1), None),
        ];
        let told = vec![
            ("a".to_owned(), None, 0),
            ("b".to_owned(), None, 1),
            ("b1".to_owned(), Some(1), 0),
            ("b2".to_owned(), Some(1), 0),
        ];
        let of_nodes = vec![Some(0), Some(1), Some(2), Some(3)];
        assert_eq!(of(Some(1), &nodes), (1, told.clone(), of_nodes));
        // Where both must, b is a unit for the choice that it has.
        let below =
            told.into_iter().skip(1).map(|(name, under, fewest)| (name, under.map(|_| 0), fewest));
        let of_nodes = vec![None, Some(0), Some(1), Some(2)];
        assert_eq!(of(Some(2), &nodes), (1, below.collect(), of_nodes));
    }

    #[test]
    fn who_is_under_himself_must_start() {
        let nodes = [node("a", Some(1), None), node("b", Some(0), None)];
        assert_eq!(of(Some(0), &nodes), (0, vec![], vec![None, None]));
    }
}
