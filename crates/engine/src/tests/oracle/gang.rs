//! A group that starts whole, by brute force: every node for each member, and on it every assignment
//! of devices.

use super::{Asker, Board, Fate, Found};
use crate::cost::LEVELS_MAX;
use crate::*;

use std::collections::{BTreeMap, BTreeSet};

/// A member to be seated: role, index in it, and its pod.
type Wanted = (u16, u32, Option<PodKey>);

/// One beyond those that must start, with its role and its place among those of it that are missing.
type Next = (Wanted, (usize, u32));

/// The best so far: its cost, its seats, and the board with them.
type Best<'w> = Option<(Cost, Vec<(Seat, Cost)>, Board<'w>)>;

/// Of each its role, and how many of that role stand before it.
fn places(wanted: &[Wanted]) -> impl Iterator<Item = (usize, u32)> + '_ {
    wanted.iter().enumerate().map(|(at, (role, ..))| {
        let before = wanted[..at].iter().filter(|one| one.0 == *role).count();
        (usize::from(*role), before as u32)
    })
}

impl<'w> Board<'w> {
    /// The cheapest way to seat all that must start together, of equals the first by name, and then
    /// as many more as find a seat one by one; or how many fit.
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
        let mut best: Option<((usize, u32, Cost), Fate, Board<'w>)> = None;
        let (mut most, mut tallies) = (0, Vec::new());
        for with in self.starts(&fate.group, None) {
            let starts = |(at, next): &(usize, &Next)| {
                *at < wanted.len()
                    || with.iter().any(|part| self.is_lacking(&fate.group, *part, next))
            };
            let (first, rest): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(starts);
            let plain = |some: Vec<(usize, &Next)>| -> Vec<Next> {
                some.into_iter().map(|(_, next)| next.clone()).collect()
            };
            let (mut first, rest) = (plain(first), plain(rest));
            first.sort_by_key(|(_, place)| *place);
            if first.iter().any(|(_, place)| kept_out(*place)) {
                continue;
            }
            let mut board = self.clone();
            match board.begin(fate.clone(), &with, (first, rest), &kept_out, &mut most) {
                Ok((left_out, found)) => {
                    let standing = (left_out, found.missing, found.cost);
                    if best.as_ref().is_none_or(|(least, ..)| standing < *least) {
                        best = Some((standing, found, board));
                    }
                }
                Err(tally) => tallies.push(tally),
            }
        }
        let fit = most + self.running(&fate.group).len() as u32;
        if let Some((_, found, board)) = best {
            *self = board;
            return Fate { fit, ..found };
        }
        let is_out = all.iter().any(|(_, place)| kept_out(*place));
        let none = if is_out { Reason::QuotaExceeded } else { Reason::GroupIncomplete };
        let told = tallies.iter().all(|tally| !tally.is_empty()) && fit == 0;
        let first = tallies.into_iter().next().unwrap_or_else(|| BTreeMap::from([(none, 0)]));
        (fate.fit, fate.tally) = (fit, if told { first } else { BTreeMap::new() });
        fate
    }

    /// Whether a member is one that a part lacks.
    fn is_lacking(&self, key: &GroupKey, part: u16, ((role, ..), (_, at)): &Next) -> bool {
        let here = self.world.bound(key, usize::from(*role)) + at;
        let mut least = self.world.groups[key].parts.all[usize::from(part)].least.iter();
        least.any(|(of, least)| of == role && here < *least)
    }

    /// The parts that are whole once the members of these are there.
    fn whole_with(&self, key: &GroupKey, with: &BTreeSet<u16>) -> BTreeSet<u16> {
        let group = &self.world.groups[key];
        let parts = &group.parts.all;
        let has = |(role, least): &(u16, u32)| {
            let role = usize::from(*role);
            self.world.bound(key, role) >= (*least).min(group.roles[role].max)
        };
        let mut whole: BTreeSet<u16> = BTreeSet::new();
        for at in (0..parts.len() as u16).rev() {
            let part = &parts[usize::from(at)];
            let is_under = |below: &&u16| parts[usize::from(**below)].under == Some(at);
            let under = whole.iter().filter(is_under).count() as u32;
            let own = with.contains(&at) || part.least.iter().all(has);
            if own && !part.held && under >= part.fewest {
                whole.insert(at);
            }
        }
        whole
    }

    /// Every set of parts with which the group has enough, or a part that is not there, and of which none can
    /// be left out; in order.
    fn starts(&self, key: &GroupKey, of: Option<u16>) -> Vec<BTreeSet<u16>> {
        let group = &self.world.groups[key];
        let parts = &group.parts.all;
        let all = || 0..parts.len() as u16;
        let part = |at: u16| &parts[usize::from(at)];
        let there = self.whole_with(key, &BTreeSet::new());
        let enough = |with: &BTreeSet<u16>| {
            let whole = self.whole_with(key, with);
            let own = whole.iter().filter(|at| part(**at).under.is_none()).count();
            of.map_or(own as u32 >= group.parts.fewest, |of| whole.contains(&of))
        };
        let lawful = |with: &BTreeSet<u16>| {
            with.iter().all(|at| {
                let with_it = |other: u16| with.contains(&other) || there.contains(&other);
                let shared = |other: &u16| part(*other).shares_role(part(*at));
                let comes =
                    part(*at).under.is_none_or(with_it) && (0..*at).filter(shared).all(with_it);
                !part(*at).held && !there.contains(at) && (of == Some(*at) || comes)
            }) && of.is_none_or(|of| with.contains(&of) && with.iter().all(|at| *at >= of))
        };
        let of_bits = |bits: u32| all().filter(|at| bits >> at & 1 == 1).collect();
        let sets = (0..1 << parts.len()).map(of_bits);
        let sets: Vec<BTreeSet<u16>> = sets.filter(|with| lawful(with) && enough(with)).collect();
        let least = |with: &&BTreeSet<u16>| {
            !sets.iter().any(|other| other != *with && other.is_subset(with))
        };
        let mut least: Vec<BTreeSet<u16>> = sets.iter().filter(least).cloned().collect();
        least.sort();
        least
    }

    /// Starts with these parts, and takes what comes beyond. Answers how many parts are left out; or, where it
    /// does not start, what the first member meets that fits nowhere.
    fn begin(
        &mut self,
        mut fate: Fate,
        with: &BTreeSet<u16>,
        (first, rest): (Vec<Next>, Vec<Next>),
        kept_out: &dyn Fn((usize, u32)) -> bool,
        most: &mut u32,
    ) -> Result<(usize, Fate), BTreeMap<Reason, u32>> {
        let world = self.world;
        let group = &world.groups[&fate.group];
        let all = first.len() + rest.len();
        let wanted: Vec<Wanted> = first.into_iter().map(|(wanted, _)| wanted).collect();
        let (mut best, mut fit): (Best<'w>, u32) = (None, 0);
        let of = wanted.len();
        self.clone().fill(&fate.group, (&wanted, of, 0), &mut Vec::new(), &mut best, &mut fit);
        *most = (*most).max(fit);
        let Some((_, mut seats, board)) = best else {
            let first = wanted.first().filter(|_| fit == 0);
            return Err(first.and_then(|first| self.alone(group, first).err()).unwrap_or_default());
        };
        *self = board;
        let (left_out, rest, mut full) = self.parts(&fate.group, with, rest, &mut seats, kept_out);
        // What is told of a part is not asked here.
        let mut told = !full.is_empty();
        for (next, place) in rest {
            if full.contains(&next.0) {
                continue;
            }
            let tried = match kept_out(place) {
                true => Err(BTreeMap::from([(Reason::QuotaExceeded, 0)])),
                false => self.one_more(&fate.group, &next, &mut seats),
            };
            if let Err(tally) = tried {
                if !told {
                    fate.tally = tally;
                }
                told = true;
                full.push(next.0);
            }
        }
        fate.missing = (all - seats.len()) as u32;
        fate.cost = seats.iter().fold(Cost::default(), |sum, (_, cost)| sum.and(*cost));
        fate.cost = self.priced(&fate.group, &seats, fate.cost).unwrap_or_default();
        if seats.is_empty() {
            fate.cost = Cost::default();
        }
        fate.seats = seats.into_iter().map(|(seat, _)| seat).collect();
        Ok((left_out, fate))
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

    /// Seats the parts of a group beyond these, each of which is there whole or not at all. Answers how many
    /// are left out, who is left to come one by one, and the roles of which nobody comes.
    fn parts(
        &mut self,
        key: &GroupKey,
        with: &BTreeSet<u16>,
        mut more: Vec<Next>,
        seats: &mut Vec<(Seat, Cost)>,
        kept_out: &dyn Fn((usize, u32)) -> bool,
    ) -> (usize, Vec<Next>, Vec<u16>) {
        let parts = &self.world.groups[key].parts.all;
        let mut there = self.whole_with(key, &BTreeSet::new());
        there.extend(with);
        for (at, part) in (0..).zip(parts) {
            if there.contains(&at) {
                continue;
            }
            let shared = |other: &u16| parts[usize::from(*other)].shares_role(part);
            let comes = part.under.is_none_or(|under| there.contains(&under))
                && (0..at).filter(shared).all(|other| there.contains(&other));
            let mut best: Best<'w> = None;
            let mut chosen = BTreeSet::from([at]);
            let ways = if comes { self.starts(key, Some(at)) } else { Vec::new() };
            for way in ways {
                let lacks = |next: &&Next| way.iter().any(|at| self.is_lacking(key, *at, next));
                let of: Vec<&Next> = more.iter().filter(lacks).collect();
                if of.iter().any(|(_, place)| kept_out(*place)) {
                    continue;
                }
                let of: Vec<Wanted> = of.into_iter().map(|(wanted, _)| wanted.clone()).collect();
                let (mut found, base) = (None, seats.len());
                let members = of.len();
                self.clone().fill(
                    key,
                    (&of, members, base),
                    &mut seats.clone(),
                    &mut found,
                    &mut 0,
                );
                let cheaper = match (&found, &best) {
                    (Some((cost, ..)), Some((least, ..))) => cost < least,
                    (found, _) => found.is_some(),
                };
                if cheaper {
                    (best, chosen) = (found, way);
                }
            }
            more.retain(|next| !chosen.iter().any(|at| self.is_lacking(key, *at, next)));
            if let Some((_, with, board)) = best {
                (*seats, *self) = (with, board);
                there.extend(chosen);
            }
        }
        let left_out = |at: &u16| !there.contains(at);
        let closed = |at: &u16| {
            left_out(at) || parts[usize::from(*at)].under.is_some_and(|of| left_out(&of))
        };
        let all = || 0..parts.len() as u16;
        let roles = |at: u16| parts[usize::from(at)].least.iter().map(|(role, _)| *role);
        (all().filter(left_out).count(), more, all().filter(closed).flat_map(roles).collect())
    }

    /// Whether a member fits if it is looked at by itself; else each node under its reason.
    fn alone(&self, group: &Group, (role, _, pod): &Wanted) -> Result<(), BTreeMap<Reason, u32>> {
        let request = &group.roles[usize::from(*role)].request;
        let asker = Asker { request, priority: group.priority, pod: pod.as_ref() };
        let (asked, pinned) =
            self.resolve(request, pod.as_ref()).map_err(|reason| BTreeMap::from([(reason, 0)]))?;
        self.anywhere(asker, &asked, &pinned).map(|_| ())
    }

    /// Seats one member more where it adds least to what the group spans, and then costs least.
    fn one_more(
        &mut self,
        key: &GroupKey,
        next: &Wanted,
        seats: &mut Vec<(Seat, Cost)>,
    ) -> Result<(), BTreeMap<Reason, u32>> {
        let group = &self.world.groups[key];
        let (role, index, pod) = next;
        let request = &group.roles[usize::from(*role)].request;
        let asker = Asker { request, priority: group.priority, pod: pod.as_ref() };
        let (asked, pinned) =
            self.resolve(request, pod.as_ref()).map_err(|reason| BTreeMap::from([(reason, 0)]))?;
        let mut best: Option<(Cost, Board<'w>, (Seat, Cost))> = None;
        for node in self.world.nodes.keys() {
            let Ok((cost, grants, volumes)) = self.on(asker, &asked, &pinned, node) else {
                continue;
            };
            let mut with = self.clone();
            let found = Found { node: node.clone(), grants, volumes, cost };
            let (mut seat, cost) = with.take(request, pod.clone(), found);
            (seat.role, seat.index) = (*role, *index);
            seats.push((seat, cost));
            let standing = with.priced(key, seats, cost);
            if let (Some(seat), Some(standing)) = (seats.pop(), standing)
                && best.as_ref().is_none_or(|(least, ..)| standing < *least)
            {
                best = Some((standing, with, seat));
            }
        }
        let Some((_, with, seat)) = best else {
            return Err(self.anywhere(asker, &asked, &pinned).err().unwrap_or_default());
        };
        *self = with;
        seats.push(seat);
        Ok(())
    }

    /// Fills what is wanted in every way, beside the first `base` seats; and leaves it out, which tells how
    /// many fit.
    fn fill(
        self,
        group: &GroupKey,
        (wanted, of, base): (&[Wanted], usize, usize),
        seats: &mut Vec<(Seat, Cost)>,
        best: &mut Best<'w>,
        most: &mut u32,
    ) {
        *most = (*most).max(seats.len() as u32);
        let fact = &self.world.groups[group];
        if wanted.is_empty() {
            if seats.len() - base < of {
                return;
            }
            let new = seats[base..].iter();
            let cost = new.fold(Cost::default(), |sum, (_, cost)| sum.and(*cost));
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
                        with.fill(group, (&rest, of, base), seats, best, most);
                    }
                    seats.pop();
                }
            }
        }
        self.fill(group, (&wanted[1..], of, base), seats, best, most);
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
