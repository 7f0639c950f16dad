//! A group that starts whole, by brute force: every node for each member, and on it every assignment
//! of devices.

use super::{Asker, Board, Fate, Found};
use crate::cost::LEVELS_MAX;
use crate::*;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A member to be seated: role, index in it, and its pod.
type Wanted = (u16, u32, Option<PodKey>);

/// One beyond those that must start, with its role and its place among those of it that are missing.
type Next = (Wanted, (usize, u32));

/// The best so far: its cost, its seats, and the board with them.
type Best<'w> = Option<(Cost, Vec<(Seat, Cost)>, Board<'w>)>;

/// Parts and members left out, and what it costs.
type Standing = ((usize, usize), Cost);

/// Members with which a group may start.
pub(in crate::tests) struct Start {
    /// How many parts are not there then.
    left_out: usize,
    /// The parts that come.
    with: BTreeSet<u16>,
    /// By role, how many of its members that are missing.
    counts: Vec<u32>,
}

impl Start {
    /// Whether none of these is a part of it.
    fn is_least(&self, all: &[Self]) -> bool {
        !all.iter().any(|other| {
            let fewer = other.counts.iter().zip(&self.counts).all(|(one, other)| one <= other);
            let same = other.with == self.with && other.counts == self.counts;
            !same && fewer && other.with.is_subset(&self.with)
        })
    }
}

/// Of each its role, and how many of that role stand before it.
fn places(wanted: &[Wanted]) -> impl Iterator<Item = (usize, u32)> + '_ {
    wanted.iter().enumerate().map(|(at, (role, ..))| {
        let before = wanted[..at].iter().filter(|one| one.0 == *role).count();
        (usize::from(*role), before as u32)
    })
}

impl<'w> Board<'w> {
    /// Of all sets of members with which the group may start, and that find seats together, the one that
    /// leaves out the fewest parts, then the fewest members, then the cheapest, of equals the first by
    /// name; or how many fit.
    pub(super) fn gang(&mut self, mut fate: Fate) -> Fate {
        let world = self.world;
        let group = &world.groups[&fate.group];
        let (wanted, more) = self.wanted(&fate.group);
        fate.missing = (wanted.len() + more.len()) as u32;
        let kept_out = |(role, at): (usize, u32)| {
            group.roles[role].admits.as_ref().is_some_and(|admits| at >= admits.most)
        };
        if places(&wanted).any(kept_out) {
            fate.tally = BTreeMap::from([(Reason::QuotaExceeded, 0)]);
            return fate;
        }
        let nodes = world.nodes.keys();
        self.before = nodes.filter(|node| self.in_use(node)).cloned().collect();
        let all: Vec<Wanted> = wanted.iter().chain(&more).cloned().collect();
        let all: Vec<Next> = all.iter().cloned().zip(places(&all)).collect();
        let starts = self.starts(&fate.group);
        let split = |start: &Start| -> (Vec<Next>, Vec<Next>) {
            all.iter().cloned().partition(|(_, (role, at))| *at < start.counts[*role])
        };
        let mut best: Option<(Standing, Best<'w>, &Start)> = None;
        for start in &starts {
            let (mut first, rest) = split(start);
            let level = (start.left_out, rest.len());
            if best.as_ref().is_some_and(|((left, ..), ..)| *left < level) {
                break;
            }
            first.sort_by_key(|(_, place)| *place);
            let first: Vec<Wanted> = first.into_iter().map(|(wanted, _)| wanted).collect();
            let mut found = None;
            let of = first.len();
            self.clone().fill(&fate.group, (&first, of), &mut Vec::new(), &mut found, &mut 0);
            let Some((cost, ..)) = &found else { continue };
            let standing = (level, *cost);
            if best.as_ref().is_none_or(|(least, ..)| standing < *least) {
                best = Some((standing, found, start));
            }
        }
        if let Some((_, Some((cost, seats, board)), start)) = best {
            *self = board;
            let (_, rest) = split(start);
            return self.begun(fate, (start, &rest), (cost, seats), &kept_out);
        }
        let (mut most, mut tallies) = (0, Vec::new());
        for start in starts.iter().filter(|start| start.is_least(&starts)) {
            let first: Vec<Wanted> = split(start).0.into_iter().map(|(wanted, _)| wanted).collect();
            let (mut fit, of) = (0, first.len());
            self.clone().fill(&fate.group, (&first, of), &mut Vec::new(), &mut None, &mut fit);
            most = most.max(fit);
            let first = first.first().filter(|_| fit == 0);
            tallies.push(first.and_then(|one| self.alone(group, one).err()).unwrap_or_default());
        }
        let fit = most + self.running(&fate.group).len() as u32;
        let is_out = all.iter().any(|(_, place)| kept_out(*place));
        let none = if is_out { Reason::QuotaExceeded } else { Reason::GroupIncomplete };
        let told = tallies.iter().all(|tally| !tally.is_empty()) && fit == 0;
        let first = tallies.into_iter().next().unwrap_or_else(|| BTreeMap::from([(none, 0)]));
        (fate.fit, fate.tally) = (fit, if told { first } else { BTreeMap::new() });
        fate
    }

    /// The fate of a group that starts so.
    fn begun(
        &self,
        mut fate: Fate,
        (start, rest): (&Start, &[Next]),
        (cost, seats): (Cost, Vec<(Seat, Cost)>),
        kept_out: &dyn Fn((usize, u32)) -> bool,
    ) -> Fate {
        let group = &self.world.groups[&fate.group];
        // What is told of a part is not asked here.
        if start.left_out == 0
            && let Some((next, place)) = rest.first()
        {
            fate.tally = match kept_out(*place) {
                true => BTreeMap::from([(Reason::QuotaExceeded, 0)]),
                false => self.alone(group, next).err().unwrap_or_default(),
            };
        }
        fate.missing = rest.len() as u32;
        fate.fit = (seats.len() + self.running(&fate.group).len()) as u32;
        fate.cost = if seats.is_empty() { Cost::default() } else { cost };
        fate.seats = seats.into_iter().map(|(seat, _)| seat).collect();
        fate
    }

    /// The parts that are whole once the members of these are there.
    fn whole_with(&self, key: &GroupKey, with: &BTreeSet<u16>) -> BTreeSet<u16> {
        let group = &self.world.groups[key];
        let parts = &group.parts.all;
        let bound = |role: &u16| self.world.bound(key, usize::from(*role));
        let has = |(role, least): &(u16, u32)| {
            bound(role) >= (*least).min(group.roles[usize::from(*role)].max)
        };
        let mut whole: BTreeSet<u16> = BTreeSet::new();
        for at in (0..parts.len() as u16).rev() {
            let part = &parts[usize::from(at)];
            let is_under = |below: &&u16| parts[usize::from(**below)].under == Some(at);
            let under = whole.iter().filter(is_under).count() as u32;
            let any = |any: &AnyOf| any.roles.iter().map(bound).sum::<u32>() >= any.least;
            let own = with.contains(&at) || part.least.iter().all(has) && part.any.iter().all(any);
            if own && !part.held && under >= part.fewest {
                whole.insert(at);
            }
        }
        whole
    }

    /// Every set of members with which the group may start: the parts that are whole then, and how many of
    /// each role come. Those that leave out the fewest parts and then members come first, and of those the
    /// first by name.
    pub(in crate::tests) fn starts(&self, key: &GroupKey) -> Vec<Start> {
        let group = &self.world.groups[key];
        let parts = &group.parts.all;
        let part = |at: u16| &parts[usize::from(at)];
        let there = self.whole_with(key, &BTreeSet::new());
        let lawful = |with: &BTreeSet<u16>| {
            let whole = self.whole_with(key, with);
            let own = whole.iter().filter(|at| part(**at).under.is_none()).count();
            let is_there = |at: u16| with.contains(&at) || there.contains(&at);
            let each = with.iter().all(|at| {
                let shared = |other: &u16| part(*other).shares_role(part(*at));
                !there.contains(at)
                    && whole.contains(at)
                    && part(*at).under.is_none_or(is_there)
                    && (0..*at).filter(shared).all(is_there)
            });
            each && own as u32 >= group.parts.fewest
        };
        let of_bits =
            |bits: u32| (0..parts.len() as u16).filter(|at| bits >> at & 1 == 1).collect();
        let sets = (0..1 << parts.len()).map(of_bits);
        let sets = sets.filter(|with: &BTreeSet<u16>| lawful(with));
        let mut starts: Vec<Start> =
            sets.flat_map(|with| self.counts(key, &with, &(&there | &with))).collect();
        starts.sort_by_key(|start| {
            let counts: Vec<Reverse<u32>> = start.counts.iter().copied().map(Reverse).collect();
            let come: u32 = start.counts.iter().sum();
            (start.left_out, Reverse(come), start.with.clone(), counts)
        });
        starts
    }

    /// How many of each role may come with these parts, of which and with which these are there.
    fn counts(&self, key: &GroupKey, with: &BTreeSet<u16>, there: &BTreeSet<u16>) -> Vec<Start> {
        let group = &self.world.groups[key];
        let parts = &group.parts.all;
        let bound = |role: u16| self.world.bound(key, usize::from(role));
        let mut all: Vec<Vec<u32>> = vec![Vec::new()];
        for (role, fact) in (0_u16..).zip(&group.roles) {
            let of = with.iter().flat_map(|at| &parts[usize::from(*at)].least);
            let of = of.filter(|(of, _)| *of == role).map(|(_, least)| (*least).min(fact.max));
            let least = of.chain([fact.min]).max().unwrap_or(0).saturating_sub(bound(role));
            let is_closed = (0_u16..).zip(parts).any(|(at, part)| {
                let base = part.under.is_none_or(|under| there.contains(&under));
                part.has(role) && !(there.contains(&at) && base)
            });
            let missing = fact.max.saturating_sub(bound(role));
            let admitted = fact.admits.as_ref().map_or(missing, |a| a.most.min(missing));
            let most = if is_closed { least.min(admitted) } else { admitted };
            let with = |counts: &Vec<u32>| {
                let counts = counts.clone();
                (least..=most).map(move |count| [counts.clone(), vec![count]].concat())
            };
            all = all.iter().flat_map(with).collect();
        }
        let any = || {
            let of_parts = with.iter().flat_map(|at| &parts[usize::from(*at)].any);
            of_parts.chain(&group.parts.any)
        };
        let enough = |counts: &[u32]| {
            any().all(|any| {
                let of = |role: &u16| bound(*role) + counts[usize::from(*role)];
                any.roles.iter().map(of).sum::<u32>() >= any.least
            })
        };
        let left_out = parts.len() - there.len();
        let all = all.into_iter().filter(|counts| enough(counts));
        all.map(|counts| Start { left_out, with: with.clone(), counts }).collect()
    }

    /// Who must start together, and who may come beyond.
    fn wanted(&self, key: &GroupKey) -> (Vec<Wanted>, Vec<Wanted>) {
        let world = self.world;
        let (mut wanted, mut more) = (Vec::new(), Vec::new());
        for (role, fact) in world.groups[key].roles.iter().enumerate() {
            let of = |m: &Member| m.group == *key && usize::from(m.role) == role;
            let taken = world.members.values().filter(|m| of(m)).count() as u32;
            let pods = world.members.iter().filter(|(_, m)| of(m) && m.phase.is_pending());
            let mut pods: Vec<_> = pods.map(|(k, m)| (m.index, k.clone())).collect();
            pods.sort();
            let bound = world.bound(key, role);
            let (least, missing) = (fact.min.saturating_sub(bound), fact.max.saturating_sub(bound));
            for at in 0..missing {
                let one = match pods.get(at as usize) {
                    Some((index, pod)) => (role as u16, index.unwrap_or(at), Some(pod.clone())),
                    None => (role as u16, taken + at - pods.len() as u32, None),
                };
                if at < least { wanted.push(one) } else { more.push(one) }
            }
        }
        (wanted, more)
    }

    /// Whether a member fits if it is looked at by itself; else each node under its reason.
    fn alone(&self, group: &Group, (role, _, pod): &Wanted) -> Result<(), BTreeMap<Reason, u32>> {
        let request = &group.roles[usize::from(*role)].request;
        let asker = Asker { request, priority: group.priority, pod: pod.as_ref() };
        let (asked, pinned) =
            self.resolve(request, pod.as_ref()).map_err(|reason| BTreeMap::from([(reason, 0)]))?;
        self.anywhere(asker, &asked, &pinned).map(|_| ())
    }

    /// Fills what is wanted in every way; and leaves it out, which tells how many fit.
    fn fill(
        self,
        group: &GroupKey,
        (wanted, of): (&[Wanted], usize),
        seats: &mut Vec<(Seat, Cost)>,
        best: &mut Best<'w>,
        most: &mut u32,
    ) {
        *most = (*most).max(seats.len() as u32);
        let fact = &self.world.groups[group];
        if wanted.is_empty() {
            if seats.len() < of {
                return;
            }
            let cost = seats.iter().fold(Cost::default(), |sum, (_, cost)| sum.and(*cost));
            let Some(cost) = self.priced(group, seats, cost) else { return };
            if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                *best = Some((cost, seats.clone(), self));
            }
            return;
        }
        for next in self.next(group, wanted) {
            let mut rest = wanted.to_vec();
            let (role, index, pod) = rest.remove(next);
            let request = &fact.roles[usize::from(role)].request;
            let asker = Asker { request, priority: fact.priority, pod: pod.as_ref() };
            let resolved = self.resolve(request, pod.as_ref()).ok();
            for node in self.world.nodes.keys() {
                let Some((asked, pinned)) = &resolved else { break };
                let Ok(ways) = self.ways(asker, asked, pinned, node) else { continue };
                for (cost, grants, volumes) in ways {
                    let mut with = self.clone();
                    let found = Found { node: node.clone(), grants, volumes, cost };
                    let (mut seat, cost) = with.take(request, pod.clone(), found);
                    (seat.role, seat.index) = (role, index);
                    seats.push((seat, cost));
                    if with.spans(group, seats).is_some() {
                        with.fill(group, (&rest, of), seats, best, most);
                    }
                    seats.pop();
                }
            }
        }
        self.fill(group, (&wanted[1..], of), seats, best, most);
    }

    /// Who may come next of these: where pods of one role count for those of another, the first of each role.
    fn next(&self, group: &GroupKey, wanted: &[Wanted]) -> Vec<usize> {
        let roles = &self.world.groups[group].roles;
        let of = |at: usize| &roles[usize::from(wanted[at].0)].request;
        let means = |one: &Request, other: &Request| {
            let near = one.near.iter();
            let affinity =
                near.clone().flat_map(|near| &near.affinity).map(|affinity| affinity.pods);
            let spread = near.flat_map(|near| &near.spread).filter_map(|rule| rule.pods);
            affinity.chain(spread).any(|pods| other.matched.contains(&pods))
        };
        let apart = |(one, other): (usize, usize)| {
            wanted[one].0 != wanted[other].0 && means(of(one), of(other))
        };
        let mut pairs = (0..wanted.len()).flat_map(|one| (0..wanted.len()).map(move |o| (one, o)));
        let first = |at: &usize| !wanted[..*at].iter().any(|one| one.0 == wanted[*at].0);
        match pairs.any(apart) {
            true => (0..wanted.len()).filter(first).collect(),
            false => vec![0],
        }
    }

    /// The members that run on nodes that are there: role, index and node.
    fn running(&self, group: &GroupKey) -> Vec<(u16, u32, &'w NodeKey)> {
        let members = self.world.members.values().filter(|m| m.group == *group);
        let seat = |member: &'w Member| match &member.phase {
            Phase::Bound(node) => {
                let here = self.world.nodes.contains_key(node);
                here.then_some((member.role, member.index.unwrap_or(0), node))
            }
            Phase::Terminating(..) | Phase::Pending => None,
        };
        members.filter_map(seat).collect()
    }

    /// What seats cost that cost so much one by one: with what they span, and the domains in which
    /// nothing was in use before. None where a rule is broken.
    fn priced(&self, group: &GroupKey, seats: &[(Seat, Cost)], sum: Cost) -> Option<Cost> {
        let mut cost = Cost { topology: self.spans(group, seats)?, ..sum };
        let nodes: BTreeSet<&NodeKey> = seats.iter().map(|(seat, _)| &seat.node).collect();
        let islands = nodes.into_iter().map(|node| self.islands_beyond_first(node, seats));
        cost.devices.of_group = islands.sum();
        let mut broken: BTreeSet<(&TopologyKey, Vec<Option<Name>>)> = BTreeSet::new();
        let path = |node: &NodeKey, tree: &TopologyKey, level: usize| {
            let domains = self.world.domains.get(&(node.clone(), tree.clone()))?;
            domains.get(level)?.as_ref()?;
            Some(domains[..=level].to_vec())
        };
        let trees = self.judged(&self.world.groups[group]);
        for (seat, _) in seats.iter().filter(|(_, cost)| cost.harm.fragmentation > 0) {
            for tree in &trees {
                let levels = 0..self.world.topologies[*tree].levels.len();
                broken.extend(levels.filter_map(|l| Some((*tree, path(&seat.node, tree, l)?))));
            }
        }
        for (tree, domain) in broken {
            let inside =
                |node: &&NodeKey| path(node, tree, domain.len() - 1).as_ref() == Some(&domain);
            let nodes: Vec<&NodeKey> = self.world.nodes.keys().filter(inside).collect();
            if !nodes.iter().any(|node| self.before.contains(*node)) {
                cost.harm.fragmentation += nodes.len() as u32;
            }
        }
        Some(cost)
    }

    /// The trees that a group is judged by.
    fn judged(&self, group: &Group) -> BTreeSet<&'w TopologyKey> {
        let named = group.rules.iter().map(|rule| &rule.topology);
        let all = &self.world.topologies;
        let judged: BTreeSet<&TopologyKey> =
            named.filter_map(|key| all.get_key_value(key)).map(|(key, _)| key).collect();
        if judged.is_empty() { all.keys().collect() } else { judged }
    }

    /// What seats span together with the members that run; none where that breaks a rule.
    fn spans(&self, group: &GroupKey, seats: &[(Seat, Cost)]) -> Option<TopologyCost> {
        let fact = &self.world.groups[group];
        let mut places = self.running(group);
        let running = places.len();
        places.extend(seats.iter().map(|(seat, _)| (seat.role, seat.index, &seat.node)));
        let domain = |node: &NodeKey, tree: &TopologyKey, level: usize| -> Option<Domains> {
            let levels = &self.world.topologies.get(tree)?.levels;
            let domains = self.world.domains.get(&(node.clone(), tree.clone()))?;
            levels.get(level)?;
            domains.get(level)?.as_ref()?;
            Some(domains[..=level].into())
        };
        let beyond = |nodes: &[&NodeKey], tree: &TopologyKey, level: usize| -> u16 {
            let all: BTreeSet<(Option<Domains>, Option<&NodeKey>)> = nodes
                .iter()
                .map(|node| match domain(node, tree, level) {
                    Some(domain) => (Some(domain), None),
                    None => (None, Some(*node)),
                })
                .collect();
            all.len().saturating_sub(1) as u16
        };
        let mut cost = TopologyCost::default();
        for rule in &fact.rules {
            let mut parts: BTreeMap<(u16, u32), Vec<&NodeKey>> = BTreeMap::new();
            // What runs already may break a rule; what comes may not.
            let mut touched: BTreeSet<(u16, u32)> = BTreeSet::new();
            for (at, (role, index, node)) in places.iter().enumerate() {
                if !rule.roles.is_empty() && !rule.roles.contains(role) {
                    continue;
                }
                let part = rule.segment.map_or((0, 0), |size| (*role, index / size.max(1)));
                parts.entry(part).or_default().push(*node);
                if at >= running {
                    touched.insert(part);
                }
            }
            let level = usize::from(rule.level);
            for (part, nodes) in &parts {
                let apart = beyond(nodes, &rule.topology, level);
                if rule.required && touched.contains(part) {
                    let known = |n: &&NodeKey| domain(n, &rule.topology, level).is_some();
                    if apart > 0 || !nodes.iter().all(known) {
                        return None;
                    }
                } else if !rule.required && (!rule.roles.is_empty() || rule.segment.is_some()) {
                    cost.wishes += apart;
                }
            }
        }
        let all: Vec<&NodeKey> = places.iter().map(|(.., node)| *node).collect();
        let nodes: BTreeSet<&NodeKey> = all.iter().copied().collect();
        cost.beyond_first[LEVELS_MAX - 1] = nodes.len().saturating_sub(1) as u16;
        for tree in self.judged(fact) {
            let levels = self.world.topologies[tree].levels.len();
            for level in 0..levels {
                cost.beyond_first[LEVELS_MAX - 1 - (levels - level)] += beyond(&all, tree, level);
            }
        }
        Some(cost)
    }

    /// Islands of a node that the new seats there use beyond the first.
    fn islands_beyond_first(&self, node: &NodeKey, seats: &[(Seat, Cost)]) -> u16 {
        let seen = super::seen::Seen::new(self.world, node, &self.world.nodes[node], &[]);
        let island = |at: usize| seen.domain(at, Level::Island);
        let all = 0..seen.devices.len();
        if !all.into_iter().any(|at| seen.accelerator(at) && island(at).is_some()) {
            return 0;
        }
        let here = seats.iter().filter(|(seat, _)| seat.node == *node);
        let grants = here.flat_map(|(seat, _)| &seat.grants).filter(|grant| !grant.admin);
        let at = |grant: &Grant| seen.devices.iter().position(|d| d.key == grant.device);
        let gpus = grants.filter_map(at).filter(|at| seen.accelerator(*at));
        let islands: BTreeSet<String> =
            gpus.map(|at| island(at).unwrap_or(format!("own {at}"))).collect();
        islands.len().saturating_sub(1) as u16
    }
}
