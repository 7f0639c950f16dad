//! What each node takes of members that are alike, one after the other, and what so many of them cost
//! there: worked out once for all nodes that are alike, kept up to date for the nodes that changed, and
//! summed up by domain.
//!
//! Members are alike and mean nothing to each other here ([`is_countable`]); others are seated one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::column::{Ranks, drop_oldest};
use super::super::search::{Ask, Fit};
use super::super::trial::{Opening, Trial};
use super::Class;
use super::together::Taking;
use crate::cost::Cost;
use crate::device::{Shape, UsageKey};
use crate::policy::{Effort, Policy};
use crate::state::{Charge, Forest, Ledger, State};

/// Fewest members that a node is asked about: more than nodes take of pods, so that what was asked
/// before by larger groups makes no difference.
const LEAST_MOST: u32 = 1024;

/// Kinds of nodes that are remembered; beyond them all is worked out anew each time.
const KINDS_MAX: usize = 1 << 17;

/// What a node takes of members that are alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The node.
    pub(super) slot: u32,
    /// How many it takes, if it takes no others.
    pub(super) count: u32,
    /// More than these it does not take: the count, but where too much would have to be searched.
    pub(super) most: u32,
    /// Where the first of them stands among all when they are in order of cost.
    pub(super) grade: u32,
}

/// The rooms of all nodes for one request.
#[derive(Clone, Debug)]
pub(crate) struct Rooms {
    ask: Ask,
    policy: Policy,
    effort: Effort,
    /// Members that a node is asked about at most.
    most: u32,
    /// Versions of the set of nodes and of what selectors say.
    versions: (u64, u64),
    /// How far the log of touched nodes was read.
    read: u64,
    cells: Vec<Cell>,
    /// Numbers of shapes, by their addresses and by what they are.
    shapes: (FxHashMap<usize, u32>, FxHashMap<Arc<Shape>, u32>),
    kinds: FxHashMap<Kind, u32>,
    fills: Vec<Fill>,
    /// Nodes by how many they take and by their kind: rank of the name, then slot.
    buckets: BTreeMap<(u32, u32), BTreeSet<(u32, u32)>>,
    sums: Option<Sums>,
    /// When it was last asked, for throwing out the oldest.
    used: u64,
}

/// One node's answer.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// Version of the node that it was taken at; 0 is never.
    version: u64,
    count: u32,
    most: u32,
    fill: u32,
}

/// Nodes that take the same members at the same cost, as far as CPU, memory and the like allow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kind {
    soft: u32,
    /// Number of the shape of its devices.
    shape: Option<u32>,
    usage: Option<UsageKey>,
    /// Of each scarce or asked scalar what is allocatable and used.
    scalars: Box<[(u16, i64, i64)]>,
}

/// How a node of a kind fills up.
#[derive(Clone, Debug)]
struct Fill {
    /// What it takes, CPU and the like aside.
    taking: Taking,
}

/// Rooms by domain of a tree.
#[derive(Clone, Debug)]
struct Sums {
    forest: Arc<Forest>,
    tree: usize,
    by_domain: Vec<u64>,
    /// By level, the domains by their room.
    by_room: Vec<BTreeSet<(u64, u32)>>,
}

impl Rooms {
    fn new(ask: &Ask, policy: &Policy) -> Self {
        Self {
            ask: ask.clone(),
            policy: *policy,
            effort: Effort::default(),
            most: 0,
            versions: (0, 0),
            read: 0,
            cells: Vec::new(),
            shapes: <_>::default(),
            kinds: FxHashMap::default(),
            fills: Vec::new(),
            buckets: BTreeMap::new(),
            sums: None,
            used: 0,
        }
    }

    /// What so many members cost on a node that takes them.
    pub(super) fn cost(&self, slot: u32, count: u32) -> Cost {
        let cell = self.cells.get(slot as usize).copied().unwrap_or_default();
        let costs = self.fills.get(cell.fill as usize).map(|fill| &fill.taking.costs);
        let at = count.checked_sub(1).map(|at| at as usize);
        costs.zip(at).and_then(|(costs, at)| costs.get(at)).copied().unwrap_or_default()
    }

    /// Nodes that take at least so many, those together that cost the same: what it costs, and the
    /// nodes in order of name.
    pub(super) fn taking(
        &self,
        count: u32,
    ) -> impl Iterator<Item = (Cost, impl Iterator<Item = (u32, u32)>)> {
        let at = count.saturating_sub(1) as usize;
        self.buckets.range((count, 0)..).filter_map(move |((_, fill), nodes)| {
            let cost = self.fills.get(*fill as usize)?.taking.costs.get(at)?;
            Some((*cost, nodes.iter().copied()))
        })
    }

    /// Domains of a level with room for at least so many, tightest first.
    pub(super) fn domains(
        &self,
        level: usize,
        wanted: u32,
    ) -> impl DoubleEndedIterator<Item = u32> {
        let sums = self.sums.as_ref().and_then(|sums| sums.by_room.get(level));
        let from = (u64::from(wanted), 0);
        sums.into_iter().flat_map(move |sums| sums.range(from..)).map(|(_, domain)| *domain)
    }

    /// The rooms of some nodes; those that take none are left out.
    pub(super) fn of(&self, nodes: &[u32], most: u32) -> Vec<Room> {
        let taking = |slot: &u32| {
            let cell = self.cells.get(*slot as usize).filter(|cell| cell.count > 0)?;
            Some((*slot, *cell))
        };
        let taking: Vec<(u32, Cell)> = nodes.iter().filter_map(taking).collect();
        let mut fills: Vec<u32> = taking.iter().map(|(_, cell)| cell.fill).collect();
        fills.sort_unstable();
        fills.dedup();
        let first = |fill: &u32| {
            let fill = self.fills.get(*fill as usize);
            fill.and_then(|fill| fill.taking.costs.first()).copied().unwrap_or_default()
        };
        let of: FxHashMap<u32, u32> =
            fills.iter().copied().zip(grades(fills.iter().map(first))).collect();
        let room = |(slot, cell): (u32, Cell)| Room {
            slot,
            count: cell.count.min(most),
            most: cell.most.min(most),
            grade: of.get(&cell.fill).copied().unwrap_or_default(),
        };
        taking.into_iter().map(room).collect()
    }

    /// The number of a shape: equal ones have one, wherever they are.
    fn number_of(&mut self, shape: &Arc<Shape>) -> u32 {
        let (by_address, by_content) = &mut self.shapes;
        let address = Arc::as_ptr(shape) as usize;
        if let Some(number) = by_address.get(&address) {
            return *number;
        }
        let next = by_content.len() as u32;
        let number = *by_content.entry(Arc::clone(shape)).or_insert(next);
        // Only those that are held keep their address.
        if number == next {
            by_address.insert(address, number);
        }
        number
    }

    /// Raises how many members nodes are asked about. Nodes that took as many as were asked about are
    /// to be asked again.
    fn ask_for_more(&mut self, most: u32) -> Vec<u32> {
        if most <= self.most {
            return Vec::new();
        }
        let took_all = |cell: &Cell| cell.count.max(cell.most) >= self.most;
        let cells = (0..).zip(&self.cells).filter(|(_, cell)| took_all(cell));
        let again: Vec<u32> = cells.map(|(slot, _)| slot).collect();
        self.most = most;
        for slot in &again {
            self.cells[*slot as usize].version = 0;
        }
        again
    }

    fn forget(&mut self, slots: u32) {
        self.cells.clear();
        self.cells.resize(slots as usize, Cell::default());
        self.shapes = <_>::default();
        self.kinds.clear();
        self.fills.clear();
        self.buckets.clear();
        self.sums = None;
        self.read = 0;
    }

    fn set(&mut self, slot: u32, rank: u32, new: Cell) {
        let Some(cell) = self.cells.get_mut(slot as usize) else { return };
        let old = std::mem::replace(cell, new);
        if (old.count, old.fill) == (new.count, new.fill) {
            return;
        }
        if old.count > 0 {
            let key = (old.count, old.fill);
            if let Some(bucket) = self.buckets.get_mut(&key) {
                bucket.remove(&(rank, slot));
                if bucket.is_empty() {
                    self.buckets.remove(&key);
                }
            }
        }
        if new.count > 0 {
            self.buckets.entry((new.count, new.fill)).or_default().insert((rank, slot));
        }
        if let Some(sums) = &mut self.sums {
            sums.change(slot, old.count, new.count);
        }
    }

    /// Sums rooms up by the domains of a tree, where that is not done yet.
    fn sum_up(&mut self, forest: &Arc<Forest>, tree: usize) {
        let same = |sums: &Sums| sums.tree == tree && Arc::ptr_eq(&sums.forest, forest);
        if !self.sums.as_ref().is_some_and(same) {
            self.sums = Sums::new(forest, tree, &self.cells);
        }
    }
}

impl Sums {
    fn new(forest: &Arc<Forest>, at: usize, cells: &[Cell]) -> Option<Self> {
        let tree = forest.trees.get(at)?;
        let sum = |nodes: &Vec<u32>| {
            let cells = nodes.iter().filter_map(|slot| cells.get(*slot as usize));
            cells.map(|cell| u64::from(cell.count)).sum::<u64>()
        };
        let by_domain: Vec<u64> = tree.nodes.iter().map(sum).collect();
        let level = |level: usize| {
            tree.level(level).map(|domain| (by_domain[domain as usize], domain)).collect()
        };
        let by_room = (0..tree.levels).map(level).collect();
        Some(Self { forest: Arc::clone(forest), tree: at, by_domain, by_room })
    }

    fn change(&mut self, slot: u32, old: u32, new: u32) {
        let Some(tree) = self.forest.trees.get(self.tree) else { return };
        for (level, by_room) in self.by_room.iter_mut().enumerate() {
            let domain = tree.domain(slot, level);
            let Some(sum) = self.by_domain.get_mut(domain as usize) else { continue };
            by_room.remove(&(*sum, domain));
            *sum = (*sum + u64::from(new)).saturating_sub(u64::from(old));
            by_room.insert((*sum, domain));
        }
    }
}

impl Trial<'_> {
    /// What nodes take of members of a class that [`is_countable`]: all that is kept of it, brought up
    /// to date. Where a tree is named, rooms are summed up by its domains.
    pub(super) fn with_rooms<T>(
        &mut self,
        class: &Class<'_>,
        tree: Option<usize>,
        read: impl FnOnce(&Rooms, &mut Self) -> T,
    ) -> T {
        let request = &class.ask.request;
        let known = self.caches.as_deref_mut().and_then(|caches| caches.rooms.remove(request));
        let mut rooms = known.unwrap_or_else(|| Rooms::new(&class.ask, self.policy));
        self.refresh_rooms(&mut rooms, class);
        if let Some(tree) = tree {
            let forest = self.forest();
            rooms.sum_up(&forest, tree);
        }
        let result = read(&rooms, self);
        if let Some(caches) = self.caches.as_deref_mut() {
            caches.asked += 1;
            rooms.used = caches.asked;
            caches.rooms.insert(request.clone(), rooms);
            drop_oldest(&mut caches.rooms, |rooms| (rooms.cells.len(), rooms.used));
        }
        result
    }

    fn refresh_rooms(&mut self, rooms: &mut Rooms, class: &Class<'_>) {
        let versions = (self.state.clock.node_set, self.state.clock.selectors);
        let same = rooms.ask.wanted == class.ask.wanted
            && rooms.policy == *self.policy
            && rooms.effort == self.effort
            && rooms.versions == versions
            && rooms.kinds.len() <= KINDS_MAX;
        if !same {
            rooms.policy = *self.policy;
            rooms.effort = self.effort;
            rooms.versions = versions;
            rooms.forget(self.state.nodes.slots());
        }
        rooms.ask = class.ask.clone();
        let larger = rooms.ask_for_more(class.wanted().max(LEAST_MOST));
        let ranks = std::mem::take(&mut self.ranks);
        let (log_start, log_end) = self.state.clock.log();
        if !same || rooms.read < log_start {
            for slot in ranks.slots() {
                self.renew_room(rooms, class, &ranks, *slot);
            }
        } else {
            // Looking at a node may add to the log.
            let touched: Vec<u32> =
                (rooms.read..log_end).map(|at| self.state.clock.log_at(at)).collect();
            for slot in touched {
                self.renew_room(rooms, class, &ranks, slot);
            }
        }
        for slot in larger {
            self.renew_room(rooms, class, &ranks, slot);
        }
        self.ranks = ranks;
        // What was tried out on nodes was given back, and stands in the log.
        rooms.read = self.state.clock.log().1;
        self.state.clock.log_read();
    }

    fn renew_room(&mut self, rooms: &mut Rooms, class: &Class<'_>, ranks: &Ranks, slot: u32) {
        let Some(row) = self.state.nodes.get(slot) else { return };
        let (rank, version) = (ranks.rank(slot), row.version);
        let known = rooms.cells.get(slot as usize);
        if rank == u32::MAX || known.is_none_or(|cell| cell.version == version) {
            return;
        }
        let (count, most, fill) = self.look_at_room(rooms, class, slot).unwrap_or_default();
        let version = self.state.nodes.at(slot).version;
        rooms.set(slot, rank, Cell { version, count, most, fill });
    }

    /// How many members a node takes, the bound on that, and its kind; none where it takes none.
    fn look_at_room(
        &mut self,
        rooms: &mut Rooms,
        class: &Class<'_>,
        slot: u32,
    ) -> Option<(u32, u32, u32)> {
        let fit = self.fit(&class.ask, slot)?;
        let by_ledger = by_ledger(self.state, &class.ask, slot, rooms.most);
        let kind = self.kind_of(rooms, &class.ask, slot, fit.cost.soft);
        let at = match rooms.kinds.get(&kind) {
            Some(at) => *at,
            None => {
                let at = rooms.fills.len() as u32;
                rooms.kinds.insert(kind, at);
                rooms.fills.push(Fill { taking: Taking::default() });
                at
            }
        };
        let fill = rooms.fills.get_mut(at as usize)?;
        if !fill.taking.ends && (fill.taking.costs.len() as u32) < by_ledger {
            fill.taking = self.taking(class, slot, by_ledger);
        }
        let Taking { costs, most, ends } = &fill.taking;
        let count = by_ledger.min(costs.len() as u32);
        let most = if *ends { by_ledger.min(*most) } else { count };
        Some((count, most, at))
    }

    fn kind_of(&self, rooms: &mut Rooms, ask: &Ask, slot: u32, soft: u32) -> Kind {
        let row = self.state.nodes.at(slot);
        let charge = &self.state.requests.at(ask.slot).charge;
        let is_asked = |id: u16| charge.scalars.iter().any(|(asked, _)| *asked == id);
        let counts = |id: u16| self.state.is_scarce(id) || is_asked(id);
        let scalars = row.ledger.scalars.iter().filter(|s| counts(s.id));
        let devices = row.devices.as_deref();
        Kind {
            soft,
            shape: devices.map(|devices| rooms.number_of(devices.shape())),
            usage: devices.and_then(|devices| devices.usage.as_ref()).map(UsageKey::of),
            scalars: scalars.map(|s| (s.id, s.allocatable, s.used)).collect(),
        }
    }

    /// The best seat on this very node, if there is one.
    pub(super) fn fit_there(&mut self, group: u32, opening: &Opening, slot: u32) -> Option<Fit> {
        let ask = self.ask_of(group, opening)?;
        self.fit(&ask, slot)
    }

    /// The best seat on a node for who asks this, if there is one.
    pub(super) fn fit(&mut self, ask: &Ask, slot: u32) -> Option<Fit> {
        self.searched(|search, state| search.node(state, ask, slot)).ok()
    }
}

/// Whether members that ask this are counted: what one takes of a node says what all take. Not so
/// where claims are shared or allocated already, or where volumes and pods matter that they must be
/// near or away from.
pub(super) fn is_countable(ask: &Ask) -> bool {
    ask.is_alone() && ask.pinned.is_empty() && !ask.request.shares_claims()
}

/// Where each of these stands when they are in order; equals stand together.
pub(super) fn grades(costs: impl Iterator<Item = Cost>) -> Vec<u32> {
    let costs: Vec<Cost> = costs.collect();
    let mut sorted = costs.clone();
    sorted.sort_unstable();
    sorted.dedup();
    costs.iter().map(|cost| sorted.partition_point(|one| one < cost) as u32).collect()
}

/// How many members a node takes going by what it counts, no more than `most`.
pub(super) fn by_ledger(state: &State, ask: &Ask, slot: u32, most: u32) -> u32 {
    let row = state.nodes.at(slot);
    let charge = &state.requests.at(ask.slot).charge;
    let Some(node) = &row.fact else { return 0 };
    let (has, used) = (&node.allocatable, &row.ledger);
    let plain = [
        (charge.pods, has.pods, used.pods),
        (charge.cpu_milli, has.cpu_milli, used.cpu_milli),
        (charge.memory_bytes, has.memory_bytes, used.memory_bytes),
        (charge.ephemeral_bytes, has.ephemeral_bytes, used.ephemeral_bytes),
    ];
    plain.into_iter().fold(most, times).min(scalars(charge, &row.ledger, most))
}

/// How many times an amount fits, no more than `most`. What is not asked for fits as often as need be.
fn times(most: u32, (asked, allocatable, used): (i64, i64, i64)) -> u32 {
    if asked <= 0 {
        return most;
    }
    let times = allocatable.saturating_sub(used).max(0) / asked;
    most.min(u32::try_from(times).unwrap_or(u32::MAX))
}

fn scalars(charge: &Charge, ledger: &Ledger, most: u32) -> u32 {
    let lines = charge.scalars.iter().filter_map(|(id, asked)| {
        let (allocatable, used) = ledger.scalar(*id);
        let by_devices = allocatable <= 0 && charge.served.contains(id);
        (!by_devices).then_some((*asked, allocatable, used))
    });
    lines.fold(most, times)
}
