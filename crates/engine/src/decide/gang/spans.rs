//! Which domains an arrangement uses: whether one more seat keeps the rules, and what it all spans.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::super::trial::Opening;
use super::fragments::Fragments;
use super::rooms::Room;
use crate::cost::{Cost, Harm, LEVELS_MAX, TopologyCost};
use crate::decision::Fragmentation;
use crate::facts::{Domains, LevelRule, Phase};
use crate::name::{Name, NodeKey, TopologyKey, by_number};
use crate::state::{Forest, NOWHERE, State, Tree};

/// The domains of the seats so far.
#[derive(Clone)]
pub(super) struct Spans<'f> {
    forest: &'f Forest,
    /// What was in use before any of the seats was taken.
    fragments: &'f Fragments,
    /// Per tree that the group is judged by, nodes that were not in use, by the domains that were free.
    opened: Vec<Seats>,
    /// Per such tree, how many nodes those domains have.
    broken: Vec<u64>,
    /// By tree that the group is judged by and level, the domains with their seats.
    used: Vec<(usize, Vec<Seats>)>,
    nodes: Seats,
    /// By node and island of it, how many of the group's new devices are there.
    islands: FxHashMap<(u32, u32), u32>,
    rules: Vec<Rule>,
}

/// The name of a domain or a node, in the order in which numbers in names count as numbers; what has none
/// comes last.
#[derive(PartialEq, Eq)]
pub(super) struct Numbered(Result<Name, ()>);

impl Ord for Numbered {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Ok(one), Ok(other)) => by_number(one, other),
            (one, other) => one.cmp(other),
        }
    }
}

impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How widely a place is spread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Width {
    /// One node.
    Node,
    /// A domain of a level of the tree.
    Domain(usize),
    /// All nodes.
    Anywhere,
}

/// A domain by its tree and its path from the widest level down; none is anywhere.
pub(super) type Named = Option<(TopologyKey, Domains)>;

/// A rule that is required, and those of the group that it keeps together, where some of these sit.
pub(super) type Bound = (usize, Option<(u16, u32)>);

/// A level that is required, by its tree; and where some sit of those that a rule keeps together, which.
pub(super) type Reach = (Option<usize>, usize, Option<(usize, (u16, u32))>);

/// Roles that must be together (none is all), with the domains, as their nodes, in one of which they must be.
pub(super) type Together = (Box<[u16]>, Vec<Vec<u32>>);

/// Seats by domain.
type Seats = FxHashMap<u32, u32>;

/// A rule of the group, with the domains of those that it is about, part by part.
#[derive(Clone)]
struct Rule {
    /// None is a tree that does not exist.
    tree: Option<usize>,
    level: usize,
    required: bool,
    roles: Box<[u16]>,
    segment: Option<u32>,
    parts: FxHashMap<(u16, u32), Seats>,
}

impl<'f> Spans<'f> {
    /// Those of a group without a seat.
    pub(super) fn new(fragments: &'f Fragments, rules: &[LevelRule]) -> Self {
        let forest = fragments.forest();
        let rules: Vec<Rule> = rules
            .iter()
            .map(|rule| Rule {
                tree: forest.find(&rule.topology),
                level: usize::from(rule.level),
                required: rule.required,
                roles: rule.roles.clone(),
                segment: rule.segment,
                parts: FxHashMap::default(),
            })
            .collect();
        let mut judged: Vec<usize> = rules.iter().filter_map(|rule| rule.tree).collect();
        if judged.is_empty() {
            judged = (0..forest.trees.len()).collect();
        }
        judged.retain(|tree| forest.trees[*tree].levels > 0);
        judged.sort_unstable();
        judged.dedup();
        let used =
            judged.iter().map(|tree| (*tree, vec![Seats::default(); forest.trees[*tree].levels]));
        Self {
            forest,
            fragments,
            opened: vec![Seats::default(); judged.len()],
            broken: vec![0; judged.len()],
            used: used.collect(),
            nodes: Seats::default(),
            islands: FxHashMap::default(),
            rules,
        }
    }

    /// Whether a seat on a node keeps what is required.
    pub(super) fn allows(&self, opening: &Opening, slot: u32) -> bool {
        let concerned = self.rules.iter().filter(|rule| rule.required && rule.is_about(opening));
        concerned.into_iter().all(|rule| {
            let domain = rule.domain(self.forest, slot);
            let seats = rule.parts.get(&rule.part(opening));
            domain != NOWHERE && seats.is_none_or(|seats| seats.keys().all(|one| *one == domain))
        })
    }

    /// What decides on which nodes the rules let an opening be: what has the same may be on the same.
    pub(super) fn bounds(&self, opening: &Opening) -> Vec<Bound> {
        let rules = self.rules.iter().enumerate();
        let about = rules.filter(|(_, rule)| rule.required && rule.is_about(opening));
        let bound = about.map(|(at, rule)| {
            let part = rule.part(opening);
            (at, rule.parts.contains_key(&part).then_some(part))
        });
        bound.collect()
    }

    /// What decides on which nodes the rules let an opening be by itself: rules of several about the same level
    /// let to the same nodes, as long as none of those that they keep together sits.
    pub(super) fn reach(&self, opening: &Opening) -> Vec<Reach> {
        let rules = self.rules.iter().enumerate();
        let about = rules.filter(|(_, rule)| rule.required && rule.is_about(opening));
        let mut reach: Vec<Reach> = about
            .map(|(at, rule)| {
                let part = rule.part(opening);
                let held = rule.parts.contains_key(&part).then_some((at, part));
                (rule.tree, rule.level, held)
            })
            .collect();
        reach.sort_unstable();
        reach.dedup();
        reach
    }

    /// The tree by which members are kept near each other: that of the first rule, else the first.
    pub(super) fn tree(&self) -> Option<&'f Tree> {
        self.forest.trees.get(self.tree_at()?)
    }

    /// Where that tree stands in the forest.
    pub(super) fn tree_at(&self) -> Option<usize> {
        let (tree, _) = self.used.first()?;
        let levels = |tree: &usize| self.forest.trees[*tree].levels > 0;
        let ruled = self.rules.iter().find_map(|rule| rule.tree.filter(levels));
        Some(ruled.unwrap_or(*tree))
    }

    /// Whether nobody sits yet, and all that is required is required of all members by the one tree.
    pub(super) fn is_plain(&self) -> bool {
        let tree = self.tree_at();
        let of_all = |rule: &Rule| !rule.is_partial() && rule.tree.is_some() && rule.tree == tree;
        self.nodes.is_empty() && self.rules.iter().all(of_all)
    }

    /// Whether anything is required.
    pub(super) fn is_bound(&self) -> bool {
        self.rules.iter().any(|rule| rule.required)
    }

    /// Whether a domain of this level is within what is required, where [`is_plain`](Self::is_plain).
    pub(super) fn is_within(&self, level: usize) -> bool {
        self.rules.iter().all(|rule| !rule.required || level >= rule.level)
    }

    /// How widely a place may be spread, least first: one node, a domain of a level (0 the widest),
    /// anywhere.
    pub(super) fn levels(&self) -> impl Iterator<Item = Width> + use<> {
        let levels = self.tree().map_or(0, |tree| tree.levels);
        let domains = (0..levels).rev().map(Width::Domain);
        std::iter::once(Width::Node).chain(domains).chain([Width::Anywhere])
    }

    /// The places of a width, each as its nodes; within what rules require of the whole group.
    pub(super) fn places(&self, width: Width, nodes: &[u32]) -> Vec<Vec<u32>> {
        let tree = self.tree();
        let mut places = match (width, tree) {
            (Width::Node, _) => return nodes.iter().map(|slot| vec![*slot]).collect(),
            (Width::Domain(level), Some(tree)) => {
                split(&[nodes.to_vec()], |slot| tree.domain(slot, level))
            }
            (Width::Domain(_), None) | (Width::Anywhere, _) => vec![nodes.to_vec()],
        };
        for rule in self.rules.iter().filter(|rule| rule.required && !rule.is_partial()) {
            // Members that run anchor the rest.
            let seats = rule.parts.get(&(0, 0));
            let open = |domain: &u32| seats.is_none_or(|seats| seats.keys().all(|at| at == domain));
            places = split(&places, |slot| {
                Some(rule.domain(self.forest, slot)).filter(open).unwrap_or(NOWHERE)
            });
        }
        places
    }

    /// Who must be together: the whole group, and those roles that rules require to be by themselves.
    pub(super) fn scopes(&self, nodes: &[u32], most: usize) -> Vec<Together> {
        let places = self.places(Width::Anywhere, nodes);
        let of_roles =
            |rule: &&Rule| rule.required && rule.segment.is_none() && !rule.roles.is_empty();
        let domains = |rule: &Rule| {
            let domains = split(&places, |slot| rule.domain(self.forest, slot));
            (rule.roles.clone(), domains)
        };
        let partial = self.rules.iter().filter(of_roles).take(most.saturating_sub(1));
        let partial: Vec<_> = partial.map(domains).collect();
        [(Box::default(), places)].into_iter().chain(partial).collect()
    }

    /// The places that the whole group may be in, each with what names it.
    pub(super) fn widest(&self, nodes: &[u32]) -> Vec<(Named, Vec<u32>)> {
        let places = self.places(Width::Anywhere, nodes);
        let rule = self.rules.iter().find(|rule| rule.required && !rule.is_partial());
        let name = |place: &[u32]| {
            let (tree, rule) = (self.forest.trees.get(rule?.tree?)?, rule?);
            let path = tree.paths.get(tree.domain(*place.first()?, rule.level) as usize)?;
            Some((tree.key.clone(), path.clone()))
        };
        places.into_iter().map(|place| (name(&place), place)).collect()
    }

    /// Rooms by what rules require of the part of the group that an opening is in.
    pub(super) fn pieces(&self, opening: &Opening, rooms: Vec<Room>) -> Vec<Vec<Room>> {
        let mut pieces = vec![rooms];
        let about = |rule: &&Rule| rule.required && rule.is_partial() && rule.is_about(opening);
        for rule in self.rules.iter().filter(about) {
            let mut finer: BTreeMap<(usize, u32), Vec<Room>> = BTreeMap::new();
            for (at, piece) in pieces.iter().enumerate() {
                for room in piece {
                    let domain = rule.domain(self.forest, room.slot);
                    finer.entry((at, domain)).or_default().push(*room);
                }
            }
            pieces = finer.into_values().collect();
        }
        pieces
    }

    /// Where a node stands in the order of the tree: neighbours in it are neighbours in topology. Numbers in
    /// names count as numbers.
    pub(super) fn path(&self, slot: u32, key: &NodeKey) -> Vec<Numbered> {
        let tree = self.tree();
        let domain = |level| tree.map_or(NOWHERE, |tree| tree.domain(slot, level));
        // Being nowhere comes last.
        let name = |level| {
            let path = tree.and_then(|tree| tree.paths.get(domain(level) as usize))?;
            path.last().cloned().flatten()
        };
        let levels = 0..tree.map_or(0, |tree| tree.levels);
        let path = levels.map(|level| Numbered(name(level).ok_or(())));
        path.chain([Numbered(Ok(key.0.clone()))]).collect()
    }

    /// The one rule by which members like this one are kept together segment by segment, where its tree is
    /// the one by which all are kept near each other.
    fn slice_rule(&self, opening: &Opening) -> Option<&Rule> {
        let mut rules =
            self.rules.iter().filter(|rule| rule.segment.is_some() && rule.is_about(opening));
        let rule = rules.next().filter(|rule| rule.required && rule.tree == self.tree_at())?;
        rules.next().is_none().then_some(rule)
    }

    /// How many members a segment of that rule has.
    pub(super) fn slice_size(&self, opening: &Opening) -> Option<u32> {
        self.slice_rule(opening)?.segment.map(|size| size.max(1))
    }

    /// The domain of a node by that rule.
    pub(super) fn slice_domain(&self, opening: &Opening, slot: u32) -> Option<u32> {
        Some(self.slice_rule(opening)?.domain(self.forest, slot)).filter(|at| *at != NOWHERE)
    }

    /// Whether others of the opening's segment have seats.
    pub(super) fn is_begun(&self, opening: &Opening) -> bool {
        self.slice_rule(opening).is_some_and(|rule| rule.parts.contains_key(&rule.part(opening)))
    }

    /// Of these nodes those around one: in its domain of each level, the narrowest first.
    pub(super) fn around(&self, slot: u32, nodes: &[u32]) -> Vec<Vec<u32>> {
        let Some(tree) = self.tree() else { return Vec::new() };
        let of = |level| {
            let domain = tree.domain(slot, level);
            let here = |node: &u32| domain != NOWHERE && tree.domain(*node, level) == domain;
            nodes.iter().copied().filter(here).collect()
        };
        (0..tree.levels).rev().map(of).collect()
    }

    /// The size of the segment that an opening is of, and its tree and level.
    pub(super) fn segment_of(&self, opening: &Opening) -> Option<(u32, TopologyKey, u16)> {
        let mut rules = self.rules.iter().filter(|rule| rule.required && rule.is_about(opening));
        rules.find_map(|rule| {
            let tree = self.forest.trees.get(rule.tree?)?;
            let level = u16::try_from(rule.level).ok()?;
            Some((rule.segment?.max(1), tree.key.clone(), level))
        })
    }

    /// The domains of a node at the levels that rules require, rule by rule.
    pub(super) fn required_domains(&self, slot: u32) -> Vec<u32> {
        let required = self.rules.iter().filter(|rule| rule.required);
        required.map(|rule| rule.domain(self.forest, slot)).collect()
    }

    /// Whether two openings are the same to every rule.
    pub(super) fn alike(&self, one: &Opening, other: &Opening) -> bool {
        let same = |rule: &Rule| {
            rule.is_about(one) == rule.is_about(other) && rule.part(one) == rule.part(other)
        };
        one.role == other.role && self.rules.iter().all(same)
    }

    /// Adds a seat that costs so much by itself, or takes it back.
    pub(super) fn seat(&mut self, opening: &Opening, slot: u32, cost: &Cost, there: bool) {
        if cost.harm.fragmentation > 0 {
            self.open(slot, there);
        }
        for (tree, levels) in &mut self.used {
            for (level, seats) in levels.iter_mut().enumerate() {
                let domain = self.forest.trees[*tree].domain(slot, level);
                // Being nowhere is a place of one's own.
                let domain = if domain == NOWHERE { NOWHERE - 1 - slot } else { domain };
                count(seats, domain, there);
            }
        }
        count(&mut self.nodes, slot, there);
        for rule in &mut self.rules {
            if !rule.is_about(opening) {
                continue;
            }
            let (domain, part) = (rule.domain(self.forest, slot), rule.part(opening));
            let domain = if domain == NOWHERE { NOWHERE - 1 - slot } else { domain };
            let seats = rule.parts.entry(part).or_default();
            count(seats, domain, there);
            if seats.is_empty() {
                rule.parts.remove(&part);
            }
        }
    }

    /// Adds the islands of a seat's devices, or takes them back.
    pub(super) fn hold(&mut self, slot: u32, islands: &[u32], there: bool) {
        for island in islands {
            let key = (slot, *island);
            let of = self.islands.entry(key).or_default();
            *of = if there { *of + 1 } else { of.saturating_sub(1) };
            if *of == 0 {
                self.islands.remove(&key);
            }
        }
    }

    /// The islands of a node that the group's new members use.
    pub(super) fn islands_on(&self, slot: u32) -> Vec<u32> {
        let mut on: Vec<u32> =
            self.islands.keys().filter(|(at, _)| *at == slot).map(|(_, island)| *island).collect();
        on.sort_unstable();
        on
    }

    /// Islands beyond the first of each node.
    fn islands_apart(&self) -> u16 {
        let mut nodes: Vec<u32> = self.islands.keys().map(|(slot, _)| *slot).collect();
        let all = nodes.len();
        nodes.sort_unstable();
        nodes.dedup();
        u16::try_from(all - nodes.len()).unwrap_or(u16::MAX)
    }

    /// Whether two nodes are in the same domains of the trees by which the group is judged.
    pub(super) fn are_neighbours(&self, one: u32, other: u32) -> bool {
        self.used.iter().all(|(tree, levels)| {
            let tree = &self.forest.trees[*tree];
            (0..levels.len())
                .rev()
                .all(|level| tree.domain(one, level) == tree.domain(other, level))
        })
    }

    /// Puts a node to use that was not in use before, or no longer.
    fn open(&mut self, slot: u32, there: bool) {
        let trees = self.used.iter().map(|(tree, _)| *tree);
        for ((tree, opened), broken) in trees.zip(&mut self.opened).zip(&mut self.broken) {
            let fact = &self.forest.trees[tree];
            for level in 0..fact.levels {
                let domain = fact.domain(slot, level);
                if domain == NOWHERE || !self.fragments.is_free(tree, domain) {
                    continue;
                }
                let was_free = !opened.contains_key(&domain);
                count(opened, domain, there);
                let nodes = fact.nodes[domain as usize].len() as u64;
                match (was_free, opened.contains_key(&domain)) {
                    (true, true) => *broken += nodes,
                    (false, false) => *broken -= nodes,
                    (true, false) | (false, true) => {}
                }
            }
        }
    }

    /// What all seats cost that cost so much one by one.
    pub(super) fn priced(&self, sum: Cost) -> Cost {
        let broken = self.broken.iter().fold(0, |all: u64, one| all.saturating_add(*one));
        let broken = u32::try_from(broken).unwrap_or(u32::MAX);
        let fragmentation = sum.harm.fragmentation.saturating_add(broken);
        let sum = sum.with_islands(self.islands_apart());
        Cost { topology: self.cost(), harm: Harm { fragmentation, ..sum.harm }, ..sum }
    }

    /// How broken up each tree is before and after, by which the group is judged; `opened` nodes were
    /// not in use.
    pub(super) fn fragmentation(&self, opened: u32) -> Vec<Fragmentation> {
        let trees = self.used.iter().zip(&self.broken);
        let of = |((tree, _), broken): (&(usize, _), &u64)| {
            let before = self.fragments.sum(*tree);
            Fragmentation {
                topology: self.forest.trees[*tree].key.clone(),
                before,
                after: before + broken + u64::from(opened),
            }
        };
        trees.map(of).collect()
    }

    /// How many seats there are.
    pub(super) fn seats(&self) -> u32 {
        self.nodes.values().sum()
    }

    /// What it spans.
    fn cost(&self) -> TopologyCost {
        let mut cost = TopologyCost::default();
        let mut add = |from_last: usize, seats: &Seats| {
            if let Some(at) = (LEVELS_MAX - 1).checked_sub(from_last) {
                cost.beyond_first[at] = cost.beyond_first[at].saturating_add(beyond_first(seats));
            }
        };
        add(0, &self.nodes);
        for (_, levels) in &self.used {
            for (level, seats) in levels.iter().enumerate() {
                add(levels.len() - level, seats);
            }
        }
        let wishes = self.rules.iter().filter(|rule| !rule.required && rule.is_partial());
        let unmet = wishes.flat_map(|rule| rule.parts.values()).map(beyond_first);
        cost.wishes = unmet.fold(0, u16::saturating_add);
        cost
    }
}

impl Rule {
    fn is_about(&self, opening: &Opening) -> bool {
        self.roles.is_empty() || self.roles.contains(&opening.role)
    }

    /// It is about less than the whole group.
    fn is_partial(&self) -> bool {
        !self.roles.is_empty() || self.segment.is_some()
    }

    /// To which of those that must be together an opening belongs.
    fn part(&self, opening: &Opening) -> (u16, u32) {
        match self.segment {
            // Segments are of one role each.
            Some(size) => (opening.role, opening.index / size.max(1)),
            None => (0, 0),
        }
    }

    fn domain(&self, forest: &Forest, slot: u32) -> u32 {
        self.tree.map_or(NOWHERE, |tree| forest.trees[tree].domain(slot, self.level))
    }
}

/// Places by domain, those that are nowhere left out. Nodes keep their order.
fn split(places: &[Vec<u32>], domain: impl Fn(u32) -> u32) -> Vec<Vec<u32>> {
    let mut finer: BTreeMap<(usize, u32), Vec<u32>> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        for slot in place {
            let domain = domain(*slot);
            if domain != NOWHERE {
                finer.entry((at, domain)).or_default().push(*slot);
            }
        }
    }
    finer.into_values().collect()
}

fn count(seats: &mut Seats, domain: u32, there: bool) {
    let of = seats.entry(domain).or_default();
    *of = if there { *of + 1 } else { of.saturating_sub(1) };
    if *of == 0 {
        seats.remove(&domain);
    }
}

fn beyond_first(seats: &Seats) -> u16 {
    u16::try_from(seats.len().saturating_sub(1)).unwrap_or(u16::MAX)
}

/// Counts the members that run already into a group's spans.
pub(super) fn with_running<'f>(mut spans: Spans<'f>, state: &State, group: u32) -> Spans<'f> {
    for member in &state.groups.at(group).members {
        let row = state.members.at(*member);
        let Some(fact) = &row.fact else { continue };
        // A pod that is being deleted holds nobody; and of a node that is not there nobody knows where
        // it stands.
        let Phase::Bound(node) = &fact.phase else { continue };
        let here = |slot: &u32| state.nodes.at(*slot).fact.is_some();
        let slot = state.nodes.slot(node).filter(here);
        let Some(slot) = slot else { continue };
        let index = fact.index.unwrap_or(0);
        let opening = Opening { role: fact.role, index, before: 0, pod: None };
        spans.seat(&opening, slot, &Cost::default(), true);
    }
    spans
}
