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

impl Trial<'_> {
    /// Places the groups that go before, then looks at every node for this one's first opening.
    pub(super) fn probe(mut self, group: &GroupKey) -> Option<Report> {
        let order: Vec<u32> = self.state.pending.values().copied().collect();
        let mut report = None;
        for slot in order {
            let key = self.state.groups.key(slot).clone();
            if key == *group {
                report = self.report(&key, slot);
                break;
            }
            self.group(&key, slot);
        }
        report
    }

    /// Looks at one node for each group in turn, in one pass over the queue: for its first opening,
    /// or where the group is placed in part, for what is missing of it.
    pub(super) fn probe_node(mut self, node: &NodeKey) -> Vec<Report> {
        let nodes: Vec<u32> = self.state.nodes.slot(node).into_iter().collect();
        let order: Vec<u32> = self.state.pending.values().copied().collect();
        let mut reports = Vec::with_capacity(order.len());
        for slot in order {
            let key = self.state.groups.key(slot).clone();
            let openings = self.openings(slot);
            let Some(last) = openings.len().checked_sub(1) else { continue };
            let (mut object, mut looked) = self.look(slot, &openings, 0, &nodes);
            let only = self.only(slot, &openings[0]);
            let verdict = self.group(&key, slot);
            if matches!(verdict, Verdict::Placed { short: Some(_), .. }) {
                (object, looked) = self.look(slot, &openings, last, &nodes);
            }
            reports.push(Report { group: key, verdict, object, only, nodes: looked, choice: None });
        }
        reports
    }

    fn report(&mut self, key: &GroupKey, slot: u32) -> Option<Report> {
        let openings = self.openings(slot);
        let opening = openings.first()?;
        let all = self.ranks.slots().to_vec();
        let (object, nodes) = self.look(slot, &openings, 0, &all);
        let choice = if object.is_empty() { self.choice(slot, opening, &nodes) } else { None };
        let only = self.only(slot, opening);
        let verdict = self.group(key, slot);
        Some(Report { group: key.clone(), verdict, object, only, nodes, choice })
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

    /// What stands before any node is looked at, and these nodes, for one of the openings.
    fn look(
        &mut self,
        slot: u32,
        openings: &[Opening],
        at: usize,
        on: &[u32],
    ) -> (Vec<(Reason, Example)>, Vec<NodeReport>) {
        let mut object: Vec<(Reason, Example)> = Vec::new();
        let opening = &openings[at];
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
