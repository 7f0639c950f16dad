//! Whether counting alone shows that a group finds no arrangement.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::super::search::Ask;
use super::super::trial::{Opening, Trial};
use super::Class;
use super::counted::allowed;
use super::rooms::{Room, by_ledger};
use super::spans::{Bound, Spans, Width};
use crate::check::fact::{self, Health};
use crate::facts::{NodeRules, Request};
use crate::pods::PodSelectorId;

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
                let nodes = allowed(spans, opening, &all);
                let rooms = match class.ask.is_alone() {
                    true => self.rooms(&class, &nodes),
                    false => self.rooms_at_most(&class, &nodes),
                };
                for Room { slot, most, .. } in rooms {
                    let of = room.entry(slot).or_default();
                    *of = most.max(*of);
                }
                apart = apart.or_else(|| Some(class.ask).filter(|ask| only && !ask.is_alone()));
            }
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
        false
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
