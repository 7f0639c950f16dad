//! In which order the roles of a group are seated, where pods of one mean something to those of another: a pod
//! that must be near others finds a place once these are there. Pods are seated in turn, as kube-scheduler
//! assumes them.

use super::super::trial::{Opening, Trial};
use crate::facts::Request;

/// The orders in which to try.
pub(super) struct Turns {
    /// Each as the openings in order, by their places, where the order matters. The first has every role after
    /// those that it must be near, as far as that goes.
    pub(super) orders: Vec<Vec<usize>>,
    /// Whether the order is any matter; else they come as they stand.
    pub(super) matters: bool,
    /// What finds no place in the first of them finds none in any other.
    pub(super) enough: bool,
}

impl Turns {
    /// The order is no matter.
    fn as_they_stand() -> Self {
        Self { orders: vec![Vec::new()], matters: false, enough: true }
    }
}

impl Trial<'_> {
    /// The orders in which to seat these, which stand role by role.
    pub(super) fn turns(&self, slot: u32, openings: &[Opening]) -> Turns {
        let mut roles: Vec<u16> = openings.iter().map(|opening| opening.role).collect();
        roles.dedup();
        let asks: Vec<&Request> = roles.iter().map(|role| self.of_role(slot, *role)).collect();
        if asks.iter().all(|ask| ask.near.is_none()) {
            return Turns::as_they_stand();
        }
        let pairs = || {
            let all = asks.iter().enumerate();
            all.flat_map(|(one, of)| {
                let others = asks.iter().enumerate().filter(move |(other, _)| *other != one);
                others.map(move |(other, to)| (one, *of, other, *to))
            })
        };
        let is_spread = pairs().any(|(_, of, _, to)| counts(of, to));
        let needs: Vec<(usize, usize)> = pairs()
            .filter(|(_, of, _, to)| must_be_near(of, to))
            .map(|(one, _, other, _)| (one, other))
            .collect();
        if needs.is_empty() && !is_spread {
            return Turns::as_they_stand();
        }
        let plain: Vec<usize> = (0..openings.len()).collect();
        let (order, is_circle) = after(asks.len(), &needs);
        let by_roles = |order: &[usize]| -> Vec<usize> {
            let of = |at: &usize| {
                let role = roles[*at];
                plain.iter().copied().filter(move |opening| openings[*opening].role == role)
            };
            order.iter().flat_map(of).collect()
        };
        // Who may be the first of those that are near each other, and may be near others as well, is let
        // alone only as long as none of these is anywhere.
        let first = needs.iter().any(|(one, _)| must_be_near(asks[*one], asks[*one]));
        let enough = !is_spread && !is_circle && !first;
        let mut orders = vec![by_roles(&order)];
        if !enough {
            let back: Vec<usize> = (0..asks.len()).rev().collect();
            for other in [plain.clone(), by_roles(&back)] {
                if !orders.contains(&other) {
                    orders.push(other);
                }
            }
        }
        Turns { orders, matters: true, enough }
    }

    fn of_role(&self, slot: u32, role: u16) -> &Request {
        self.state.request(self.state.groups.at(slot).requests[usize::from(role)])
    }
}

/// Whether pods that ask the one must be near pods that ask the other.
fn must_be_near(one: &Request, other: &Request) -> bool {
    let affinity = one.near.as_ref().and_then(|near| near.affinity.as_ref());
    affinity.is_some_and(|affinity| other.matched.contains(&affinity.pods))
}

/// Whether pods that ask the other count where those that ask the one are spread.
fn counts(one: &Request, other: &Request) -> bool {
    let mut spread = one.near.iter().flat_map(|near| &near.spread);
    spread.any(|rule| rule.pods.is_some_and(|pods| other.matched.contains(&pods)))
}

/// So many roles, each after those that it needs; of those in a circle the first comes first. And whether
/// there is one.
fn after(roles: usize, needs: &[(usize, usize)]) -> (Vec<usize>, bool) {
    // By role, how many it waits for, and who waits for it.
    let (mut waits, mut for_it) = (vec![0_u32; roles], vec![Vec::new(); roles]);
    for (one, other) in needs {
        waits[*one] += 1;
        for_it[*other].push(*one);
    }
    let mut order: Vec<usize> = Vec::with_capacity(roles);
    let (mut open, mut is_circle): (Vec<usize>, bool) = ((0..roles).collect(), false);
    while !open.is_empty() {
        let free = open.iter().position(|role| waits[*role] == 0);
        is_circle |= free.is_none();
        let next = open.remove(free.unwrap_or(0));
        for_it[next].iter().for_each(|role| waits[*role] = waits[*role].saturating_sub(1));
        order.push(next);
    }
    (order, is_circle)
}
