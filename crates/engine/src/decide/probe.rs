//! The whole account for one group, every node and every check, or for one node, every group: as of
//! the group's turn.

use super::search::Ask;
use super::trial::{Opening, Trial};
use crate::check::fact::only;
use crate::check::{all_before_nodes, claims};
use crate::decision::{Choice, Example, NodeReport, Offered, Only, Report, Verdict};
use crate::name::{GroupKey, NodeKey};
use crate::policy::{DeviceOrder, NodeOrder};
use crate::reason::Reason;

/// What stands before any node is looked at, and what nodes are.
type Look = (Vec<(Reason, Example)>, Vec<NodeReport>);

impl Trial<'_> {
    /// Places the groups that go before, then looks at every node for the first opening of a role of this one,
    /// or for its first.
    pub(super) fn probe(mut self, group: &GroupKey, role: Option<u16>) -> Option<Report> {
        let order: Vec<u32> = self.state.pending.values().copied().collect();
        let mut report = None;
        for slot in order {
            let key = self.state.groups.key(slot).clone();
            if key == *group {
                report = self.report(&key, slot, role);
                break;
            }
            self.group(&key, slot);
        }
        report
    }

    /// Looks at one node for each group in turn, in one pass over the queue: for the first opening of each of
    /// its roles, or where the group is placed in part, for the last.
    pub(super) fn probe_node(mut self, node: &NodeKey) -> Vec<Report> {
        let nodes: Vec<u32> = self.state.nodes.slot(node).into_iter().collect();
        let order: Vec<u32> = self.state.pending.values().copied().collect();
        let mut reports = Vec::with_capacity(order.len());
        for slot in order {
            let key = self.state.groups.key(slot).clone();
            let openings = self.openings(slot);
            let ends = ends_by_role(&openings);
            let first: Vec<usize> = ends.iter().map(|(first, _)| *first).collect();
            let mut looks = self.look_for(slot, &openings, &first, &nodes);
            let verdict = self.group(&key, slot);
            if matches!(verdict, Verdict::Placed { short: Some(_), .. }) {
                let last: Vec<usize> = ends.iter().map(|(_, last)| *last).collect();
                looks = self.look_for(slot, &openings, &last, &nodes);
            }
            let all = looks.into_iter().zip(first);
            reports.extend(all.map(|((object, nodes), at)| Report {
                group: key.clone(),
                role: openings[at].role,
                verdict: verdict.clone(),
                object,
                only: self.only(slot, &openings[at]),
                nodes,
                choice: None,
            }));
        }
        reports
    }

    fn report(&mut self, key: &GroupKey, slot: u32, role: Option<u16>) -> Option<Report> {
        let openings = self.openings(slot);
        let of_role = openings.iter().position(|opening| Some(opening.role) == role);
        let at = of_role.unwrap_or_default();
        let opening = openings.get(at)?;
        let all = self.ranks.slots().to_vec();
        let (object, nodes) = self.look(slot, opening, &all);
        let choice = if object.is_empty() { self.choice(slot, opening, &nodes) } else { None };
        let only = self.only(slot, opening);
        let verdict = self.group(key, slot);
        Some(Report {
            group: key.clone(),
            role: opening.role,
            verdict,
            object,
            only,
            nodes,
            choice,
        })
    }

    /// The nodes that an opening's request names.
    fn only(&self, slot: u32, opening: &Opening) -> Option<Only> {
        let request = self.state.groups.at(slot).requests[usize::from(opening.role)];
        only(&self.state.request(request).node)
    }

    /// What is chosen for an opening, beside what else there is.
    fn choice(&mut self, slot: u32, opening: &Opening, nodes: &[NodeReport]) -> Option<Choice> {
        if self.policy.device_order == DeviceOrder::Upstream
            || self.policy.node_order == NodeOrder::Scores
        {
            return None;
        }
        // Nodes come in order of name: of equals the first is taken.
        let offers = || nodes.iter().filter_map(|node| node.offer.as_ref());
        let (best_cost, best_seat, _) = offers().min_by_key(|(cost, ..)| *cost)?;
        let other = offers().filter(|(_, seat, _)| seat.node != best_seat.node);
        let elsewhere = other.min_by_key(|(cost, ..)| *cost);
        let elsewhere = elsewhere.map(|(cost, seat, proof)| Offered {
            seat: seat.clone(),
            cost: *cost,
            proof: *proof,
        });
        let node = self.state.nodes.slot(&best_seat.node)?;
        let ask = self.ask_of(slot, opening)?;
        let (fit, (equal, second)) = self.searched(|search, state| {
            let fit = search.node(state, &ask, node).ok()?;
            let rivals = search.rivals(state, &ask, node, &fit);
            Some((fit, rivals))
        })?;
        let second = second.map(|fit| Offered {
            seat: self.seat_on(opening, node, &fit),
            cost: fit.cost,
            proof: fit.proof,
        });
        let best =
            Offered { seat: self.seat_on(opening, node, &fit), cost: *best_cost, proof: fit.proof };
        Some(Choice { best, equal, second, elsewhere })
    }

    /// The same for some of these openings.
    fn look_for(
        &mut self,
        slot: u32,
        openings: &[Opening],
        some: &[usize],
        on: &[u32],
    ) -> Vec<Look> {
        some.iter().map(|at| self.look(slot, &openings[*at], on)).collect()
    }

    /// What stands before any node is looked at, and these nodes, for an opening.
    fn look(&mut self, slot: u32, opening: &Opening, on: &[u32]) -> Look {
        let mut object: Vec<(Reason, Example)> = Vec::new();
        if let Some(fault) = self.state.groups.at(slot).kept_out(opening.role, opening.before) {
            object.push(*claims::object(fault.reason, &fault.subject, &fault.detail));
        }
        let gates = self.state.groups.at(slot).gates();
        if !gates.is_empty() {
            object.push((Reason::Gated, super::why::gates(gates)));
        }
        let request = self.state.groups.at(slot).requests[usize::from(opening.role)];
        let mut nodes = Vec::new();
        match self.resolve(request, opening) {
            Ok(resolved) => {
                let ask = self.ask(slot, opening, resolved);
                nodes.extend(on.iter().map(|node| self.node_report(&ask, slot, opening, *node)));
            }
            Err(_) => {
                let (request, asker) = (self.state.request(request), self.asker(opening));
                let all = all_before_nodes(self.state, request, asker);
                object.extend(all.into_iter().map(|stopped| *stopped));
            }
        }
        (object, nodes)
    }

    fn node_report(&mut self, ask: &Ask, group: u32, opening: &Opening, node: u32) -> NodeReport {
        let (mut failing, first) = self.searched(|search, state| {
            (search.all_checks(state, ask, node), search.node(state, ask, node))
        });
        let (fit, counted) = match first {
            Ok(fit) => (Some(fit), None),
            Err(first) => (None, Some(first.reason)),
        };
        if let Some(before) = self.with_promised(ask, group, opening, node) {
            failing = before;
        }
        NodeReport {
            node: self.state.nodes.key(node).clone(),
            offer: fit.map(|fit| (fit.cost, self.seat_on(opening, node, &fit), fit.proof)),
            counted,
            checks: failing.iter().map(|f| (f.reason, f.status, self.example(f, node))).collect(),
        }
    }
}

/// The first and the last opening of each role, role by role.
fn ends_by_role(openings: &[Opening]) -> Vec<(usize, usize)> {
    let mut ends: Vec<(usize, usize)> = Vec::new();
    for (at, opening) in openings.iter().enumerate() {
        match ends.last_mut() {
            Some((first, last)) if openings[*first].role == opening.role => *last = at,
            Some(_) | None => ends.push((at, at)),
        }
    }
    ends
}
