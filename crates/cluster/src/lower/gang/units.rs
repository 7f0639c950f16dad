//! Which subgroups of a gang must start and which need not: those that need not are units, each of which
//! is there whole or not at all.
//!
//! A subgroup that has others under it starts with so many of them, the first in order; each of the rest
//! is a unit of its own, which comes only once what it is under is there.

use phalanx_engine::Name;

/// A subgroup: one that pods are in, or one of others.
pub(super) struct Node {
    pub(super) name: Name,
    /// The subgroup that it is under; none is the gang itself.
    pub(super) parent: Option<usize>,
    /// Of those under it so many must start; none is all.
    pub(super) fewest: Option<u32>,
}

/// A part that need not start.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) name: Name,
    /// The unit that must be there before.
    pub(super) after: Option<u16>,
}

/// The units of a gang that starts with `fewest` of its own subgroups, and the unit of each subgroup; none
/// for those that must start. Who is under himself is under nobody, and must.
pub(super) fn units(fewest: Option<u32>, nodes: &[Node]) -> (Vec<Unit>, Vec<Option<u16>>) {
    let mut units = Vec::new();
    let mut of = vec![None; nodes.len()];
    let mut open: Vec<(Option<usize>, Option<u32>, Option<u16>)> = vec![(None, fewest, None)];
    while let Some((parent, fewest, unit)) = open.pop() {
        let under = nodes.iter().enumerate().filter(|(_, node)| node.parent == parent);
        let mut below = Vec::new();
        for (nth, (at, node)) in under.enumerate() {
            let must = fewest.is_none_or(|fewest| nth < fewest as usize);
            let own = match u16::try_from(units.len()) {
                Ok(next) if !must => {
                    units.push(Unit { name: node.name.clone(), after: unit });
                    Some(next)
                }
                Ok(_) | Err(_) => unit,
            };
            if let Some(of) = of.get_mut(at) {
                *of = own;
            }
            below.push((Some(at), node.fewest, own));
        }
        // In order: what is under the first comes before what is under the second.
        open.extend(below.into_iter().rev());
    }
    (units, of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, parent: Option<usize>, fewest: Option<u32>) -> Node {
        Node { name: Name::new(name), parent, fewest }
    }

    type Told = (Vec<(String, Option<u16>)>, Vec<Option<u16>>);

    fn of(fewest: Option<u32>, nodes: &[Node]) -> Told {
        let (units, of) = units(fewest, nodes);
        (units.into_iter().map(|unit| (unit.name.to_string(), unit.after)).collect(), of)
    }

    #[test]
    fn the_first_must_and_the_rest_need_not() {
        let nodes = [node("a", None, None), node("b", None, None)];
        assert_eq!(of(Some(1), &nodes), (vec![("b".to_owned(), None)], vec![None, Some(0)]));
        assert_eq!(of(None, &nodes), (vec![], vec![None, None]));
    }

    #[test]
    fn what_is_under_a_unit_comes_with_it_or_after_it() {
        let nodes = [
            node("a", None, None),
            node("b", None, Some(1)),
            node("b1", Some(1), None),
            node("b2", Some(1), None),
        ];
        let told = vec![("b".to_owned(), None), ("b2".to_owned(), Some(0))];
        assert_eq!(of(Some(1), &nodes), (told, vec![None, Some(0), Some(0), Some(1)]));
    }

    #[test]
    fn who_is_under_himself_must_start() {
        let nodes = [node("a", Some(1), None), node("b", Some(0), None)];
        assert_eq!(of(Some(0), &nodes), (vec![], vec![None, None]));
    }
}
