//! Whether counting alone shows that a group finds no arrangement.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::search::Ask;
use super::super::trial::{Opening, Trial};
use super::Class;
use super::counted::allowed;
use super::rooms::{Room, by_ledger};
use super::spans::{Bound, Spans, Width};
use crate::check::fact::{self, Health};
use crate::facts::{NodeRules, Request};
use crate::pods::PodSelectorId;

/// Amounts of what nodes count: pods, CPU, memory and ephemeral storage, then scalars by their number.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Amounts(BTreeMap<u32, i64>);

/// How many amounts are no scalars.
const PLAIN: u32 = 4;

impl Amounts {
    /// What is over-drawn does not make up for what is free elsewhere.
    fn add(&mut self, of: u32, amount: i64) {
        let sum = self.0.entry(of).or_default();
        *sum = sum.saturating_add(amount.max(0));
    }

    pub(super) fn of(&self, of: u32) -> i64 {
        self.0.get(&of).copied().unwrap_or(0)
    }

    /// Of what there is any.
    pub(super) fn keys(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter(|(_, amount)| **amount > 0).map(|(of, _)| *of)
    }

    /// Whether so much is free. What is not asked for is enough, however little there is.
    fn fits(&self, free: &Self) -> bool {
        self.0.iter().all(|(of, asked)| *asked == 0 || *asked <= free.of(*of))
    }
}

impl Trial<'_> {
    /// Whether counting settles that there is no arrangement: some members find no place with room for
    /// all of them, even if they have it to themselves. Of what pods mean to each other only that is
    /// counted which members that ask the same mean to each other.
    pub(super) fn is_counted(
        &mut self,
        slot: u32,
        openings: &[Opening],
        spans: &Spans<'_>,
    ) -> bool {
        let all = self.ranks.slots().to_vec();
        let places = spans.places(Width::Anywhere, &all);
        let mut usable: FxHashSet<u32> = FxHashSet::default();
        for kinds in self.families(slot, openings, spans) {
            let wanted: u32 = kinds.iter().map(|(wanted, _)| wanted).sum();
            let mut room: FxHashMap<u32, u32> = FxHashMap::default();
            let request =
                |opening: &Opening| self.state.groups.at(slot).requests[usize::from(opening.role)];
            let only = kinds.windows(2).all(|two| request(two[0].1) == request(two[1].1));
            let mut apart: Option<Ask> = None;
            for (_, opening) in kinds {
                let one = std::slice::from_ref(opening);
                let Some(class) = self.class(slot, one) else { return true };
                let class = Class { wanted, ..class };
                let rooms = self.rooms_of(&class, &allowed(spans, opening, &all));
                for Room { slot, most, .. } in rooms {
                    let of = room.entry(slot).or_default();
                    *of = most.max(*of);
                }
                apart = apart.or_else(|| Some(class.ask).filter(|ask| only && !ask.is_alone()));
            }
            usable.extend(room.keys());
            let others = apart.as_ref().map_or_else(Vec::new, |ask| self.means_others(slot, ask));
            let holds = |place: &Vec<u32>| {
                let rooms = place.iter().filter_map(|node| Some((*node, *room.get(node)?)));
                let rooms: Vec<(u32, u32)> = rooms.collect();
                let counts = rooms.iter().map(|(_, count)| u64::from(*count));
                let around = apart.as_ref().and_then(|ask| Some((ask, ask.around.as_ref()?)));
                let most = around.map_or(u64::MAX, |(ask, around)| {
                    around.most(self.state, &ask.request, &rooms, &others)
                });
                counts.sum::<u64>().min(most) >= u64::from(wanted)
            };
            if !places.iter().any(holds) {
                return true;
            }
        }
        let asked = self.asked(slot, openings);
        let keys: Vec<u32> = asked.0.keys().copied().collect();
        !places.iter().any(|place| {
            let here = place.iter().copied().filter(|node| usable.contains(node));
            asked.fits(&self.free(here, &keys))
        })
    }

    /// What these ask of nodes in sum.
    fn asked<'o>(&self, slot: u32, openings: impl IntoIterator<Item = &'o Opening>) -> Amounts {
        let requests = &self.state.groups.at(slot).requests;
        let mut sum = Amounts::default();
        for opening in openings {
            let one = self.charged(requests[usize::from(opening.role)]);
            one.0.into_iter().for_each(|(of, amount)| sum.add(of, amount));
        }
        sum
    }

    /// What one that makes this request asks of a node.
    pub(super) fn charged(&self, request: u32) -> Amounts {
        let charge = &self.state.requests.at(request).charge;
        let plain = [charge.pods, charge.cpu_milli, charge.memory_bytes, charge.ephemeral_bytes];
        // What devices may serve is not counted.
        let scalars = charge.scalars.iter().filter(|(id, _)| !charge.served.contains(id));
        let scalars = scalars.map(|(id, amount)| (PLAIN + u32::from(*id), *amount));
        let mut of_one = Amounts::default();
        for (of, amount) in (0..PLAIN).zip(plain).chain(scalars) {
            of_one.add(of, amount);
        }
        of_one
    }

    /// What these nodes have free in sum of these things.
    pub(super) fn free(&self, nodes: impl IntoIterator<Item = u32>, keys: &[u32]) -> Amounts {
        let mut sum = Amounts::default();
        for slot in nodes {
            let row = self.state.nodes.at(slot);
            let (Some(node), used) = (&row.fact, &row.ledger) else { continue };
            let has = &node.allocatable;
            let plain = [
                (has.pods, used.pods),
                (has.cpu_milli, used.cpu_milli),
                (has.memory_bytes, used.memory_bytes),
                (has.ephemeral_bytes, used.ephemeral_bytes),
            ];
            for of in keys {
                let (has, used) = match plain.get(*of as usize) {
                    Some(plain) => *plain,
                    None => used.scalar((*of - PLAIN) as u16),
                };
                sum.add(*of, has.saturating_sub(used));
            }
        }
        sum
    }

    /// How many of a class each of these nodes takes at most.
    pub(super) fn rooms_of(&mut self, class: &Class<'_>, nodes: &[u32]) -> Vec<Room> {
        match class.ask.is_alone() {
            true => self.rooms(class, nodes),
            false => self.rooms_at_most(class, nodes),
        }
    }

    /// Of members that other pods or volumes mean something to: more than these a node does not take.
    fn rooms_at_most(&self, class: &Class<'_>, nodes: &[u32]) -> Vec<Room> {
        let nodes = nodes.iter().copied().filter(|slot| {
            let row = self.state.nodes.at(*slot);
            let key = self.state.nodes.key(*slot);
            row.fact.as_ref().is_some_and(|node| {
                fact::first(&class.ask.request.node, key, node, Health::AsIs).is_ok()
            })
        });
        let room = |slot: u32| {
            let most = by_ledger(self.state, &class.ask, slot, class.wanted());
            Room { slot, count: most, most, grade: 0 }
        };
        nodes.map(room).collect()
    }

    /// The pods that members of the group are meant by which ask something else.
    fn means_others(&self, slot: u32, ask: &Ask) -> Vec<PodSelectorId> {
        let others = self.state.groups.at(slot).requests.iter().filter(|other| **other != ask.slot);
        others.flat_map(|other| self.state.request(*other).matched.to_vec()).collect()
    }

    /// Members by what they ask of a node, with how many want the same and are let by the group's rules to
    /// the same nodes: roles may ask for the same, and what differs in nothing but where it may go takes
    /// the same room wherever it goes.
    fn families<'o>(
        &self,
        slot: u32,
        openings: &'o [Opening],
        spans: &Spans<'_>,
    ) -> Vec<Vec<(u32, &'o Opening)>> {
        let mut kinds: BTreeMap<(u32, Vec<Bound>), (u32, &Opening)> = BTreeMap::new();
        for opening in openings {
            let request = self.state.groups.at(slot).requests[usize::from(opening.role)];
            kinds.entry((request, spans.bounds(opening))).or_insert((0, opening)).0 += 1;
        }
        let mut families: Vec<(Request, Vec<(u32, &Opening)>)> = Vec::new();
        for ((request, _), kind) in kinds {
            let anywhere = Request {
                node: NodeRules::default(),
                scored: None,
                ..Request::clone(self.state.request(request))
            };
            match families.iter_mut().find(|(of, _)| *of == anywhere) {
                Some((_, family)) => family.push(kind),
                None => families.push((anywhere, vec![kind])),
            }
        }
        families.into_iter().map(|(_, family)| family).collect()
    }
}
