//! A trial: groups placed one after the other on the state itself, and all of it given back.

use std::sync::Arc;

use super::column::{Column, Ranks, drop_oldest};
use super::search::{Ask, Fit, Search};
use super::{Caches, scores, why};
use crate::check::claims::{self, Resolved, Stopped};
use crate::check::{Asker, before_nodes};
use crate::cost::Cost;
use crate::decision::{Act, Decision, Example, Fragmentation, Proof, Short, Verdict, Why};
use crate::facts::{Grant, Minimum, Seat};
use crate::name::{ClaimKey, GroupKey, PodKey, Timestamp, by_number};
use crate::policy::{Effort, NodeOrder, Policy};
use crate::reason::Reason;
use crate::state::{State, Taken};

pub(super) struct Trial<'a> {
    pub(super) state: &'a mut State,
    pub(super) caches: Option<&'a mut Caches>,
    pub(super) ranks: Ranks,
    pub(super) policy: &'a Policy,
    pub(super) effort: Effort,
    pub(super) now: Timestamp,
    journal: Vec<Undo>,
    acts: Vec<Act>,
    /// What becomes of further roles that find no seat.
    roles: Vec<(GroupKey, u16, Verdict)>,
    /// How broken up trees are by groups that were placed.
    fragmentation: Vec<(GroupKey, Vec<Fragmentation>)>,
    pub(super) spent: u64,
    /// Steps that searches for the group at hand may still take.
    pub(super) searching: u64,
    /// The healed and emptied cluster, once a group was asked about there.
    pub(super) emptied: Emptied,
}

/// What a trial has of the healed and emptied cluster.
#[derive(Default)]
pub(super) enum Emptied {
    /// Nothing yet.
    #[default]
    Unknown,
    /// Nodes and devices alone, with what is remembered of them.
    Built(Box<(State, Caches)>),
    /// This trial is in it.
    Here,
}

/// What has to be given back.
#[derive(Debug)]
enum Undo {
    Taken(Taken),
    Released(ClaimKey),
}

/// A seat that was found.
pub(super) struct Found {
    pub(super) seat: Seat,
    pub(super) cost: Cost,
    pub(super) proof: Proof,
}

/// Everything is given back whichever way a trial ends, so that a panic in the middle of one costs
/// no more than its answer.
impl Drop for Trial<'_> {
    fn drop(&mut self) {
        self.roll_back(0);
        self.state.end_trial();
        if let Some(caches) = self.caches.as_deref_mut() {
            caches.ranks = std::mem::take(&mut self.ranks);
        }
    }
}

/// A place to be filled: role, index in it, and the pod where it exists.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) role: u16,
    pub(super) index: u32,
    /// How many of its role are to be filled before it.
    pub(super) before: u32,
    pub(super) pod: Option<PodKey>,
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        state: &'a mut State,
        mut caches: Option<&'a mut Caches>,
        policy: &'a Policy,
        now: Timestamp,
        effort: Effort,
    ) -> Self {
        let mut ranks =
            caches.as_deref_mut().map(|c| std::mem::take(&mut c.ranks)).unwrap_or_default();
        ranks.refresh(state);
        state.begin_trial();
        Self {
            state,
            caches,
            ranks,
            policy,
            effort,
            now,
            journal: Vec::new(),
            acts: Vec::new(),
            roles: Vec::new(),
            fragmentation: Vec::new(),
            spent: 0,
            searching: 0,
            emptied: Emptied::Unknown,
        }
    }

    /// Decides every pending group, in queue order.
    pub(super) fn decide(mut self) -> Decision {
        let order: Vec<u32> = self.state.pending.values().copied().collect();
        let mut verdicts = Vec::with_capacity(order.len());
        for group in order {
            let key = self.state.groups.key(group).clone();
            let verdict = self.group(&key, group);
            verdicts.push((key, verdict));
        }
        let acts = std::mem::take(&mut self.acts);
        let roles = std::mem::take(&mut self.roles);
        let fragmentation = std::mem::take(&mut self.fragmentation);
        let (on, spent) = (self.state.revision, Effort { steps: self.spent, ..self.effort });
        let wake_at = self.wake_at(&verdicts);
        Decision { on, acts, verdicts, roles, fragmentation, wake_at, spent }
    }

    /// The next time at which something that waits may find room by itself: a pod is expected to be
    /// gone, or the wait for a claim's binding conditions ends, after which its allocation has failed.
    fn wake_at(&self, verdicts: &[(GroupKey, Verdict)]) -> Option<Timestamp> {
        let waits = |verdict: &Verdict| match verdict {
            Verdict::Waits(_) | Verdict::GaveUp(..) => true,
            Verdict::Placed { short, .. } => short.is_some(),
            Verdict::Refused(_) => false,
        };
        let later = |time: &Timestamp| time.0.saturating_add(1);
        let after = Timestamp(later(&self.now));
        let gone = self.state.ends.range(after..).next().map(|(end, _)| *end);
        // A wait is over after its end, and not at it.
        let over =
            self.state.deadlines.range(self.now..).next().map(|(end, _)| Timestamp(later(end)));
        let next = gone.into_iter().chain(over).min();
        next.filter(|_| verdicts.iter().any(|(_, verdict)| waits(verdict)))
    }

    /// A point to which what is taken can be rolled back.
    pub(super) fn mark(&self) -> usize {
        self.journal.len()
    }

    /// Gives back all that was taken since a mark.
    pub(super) fn roll_back(&mut self, to: usize) {
        while self.journal.len() > to {
            match self.journal.pop() {
                Some(Undo::Taken(taken)) => self.state.give_back(&taken),
                Some(Undo::Released(claim)) => self.state.release(&claim, false),
                None => {}
            }
        }
    }

    /// Places one group, as far as it goes.
    pub(super) fn group(&mut self, key: &GroupKey, slot: u32) -> Verdict {
        let openings = self.openings(slot);
        let mut found: Vec<Found> = Vec::new();
        let minimum = self.state.groups.at(slot).fact.as_ref().map(|g| g.minimum);
        if minimum == Some(Minimum::Gang) {
            return self.gang(key, slot, &openings);
        }
        let mut missing = self.gated(slot, &openings);
        let gated = missing.is_some();
        // Members of a role are alike: where one finds no seat, the rest of the role finds none.
        let mut full: Option<u16> = None;
        for opening in &openings {
            if gated || full == Some(opening.role) {
                continue;
            }
            let seat = match self.kept_out(slot, opening) {
                Some(why) => Err(why),
                None => self.seat(key, slot, opening),
            };
            match seat {
                Ok(one) => found.push(one),
                Err(why) => {
                    full = Some(opening.role);
                    if missing.is_some() {
                        let verdict = self.not_placed(why);
                        self.roles.push((key.clone(), opening.role, verdict));
                    } else {
                        missing = Some(why);
                    }
                }
            }
        }
        self.verdict(key, openings.len(), found, missing)
    }

    fn verdict(
        &mut self,
        key: &GroupKey,
        wanted: usize,
        found: Vec<Found>,
        missing: Option<Arc<Why>>,
    ) -> Verdict {
        let placed = found.len();
        let short = match missing {
            Some(not) if placed == 0 => return self.not_placed(not),
            Some(not) => {
                Some(Short { missing: (wanted - placed) as u32, why: not, parts: Box::default() })
            }
            None => None,
        };
        let cost = found.iter().fold(Cost::default(), |sum, one| sum.and(one.cost));
        let optimal = found.iter().map(|one| one.proof).max().unwrap_or(Proof::Proven);
        let seats = found.into_iter().map(|one| one.seat).collect();
        self.acts.push(Act::Place(key.clone(), seats, cost));
        Verdict::Placed { cost, optimal, short }
    }

    pub(super) fn not_placed(&self, why: Arc<Why>) -> Verdict {
        if why.never.is_some() {
            return Verdict::Refused(why);
        }
        if why.tally.iter().any(|t| t.reason == Reason::SearchBound) {
            return Verdict::GaveUp(why, self.effort);
        }
        Verdict::Waits(why)
    }

    /// What is to be filled: pods that exist first, by index and name, then what is not made yet.
    pub(super) fn openings(&self, slot: u32) -> Vec<Opening> {
        let group = self.state.groups.at(slot);
        let mut openings = Vec::new();
        for role in 0..group.requests.len() {
            let mut pods: Vec<(Option<u32>, &PodKey)> = Vec::new();
            let mut taken = 0;
            for member in &group.members {
                let row = self.state.members.at(*member);
                let Some(fact) = row.fact.as_ref().filter(|f| usize::from(f.role) == role) else {
                    continue;
                };
                taken += 1;
                let pod = self.state.members.key(*member);
                if fact.phase.is_pending() && !self.state.flight_pods.contains_key(pod) {
                    pods.push((fact.index, pod));
                }
            }
            pods.sort_unstable_by(|(one, a), (other, b)| {
                let by_name = || by_number(&a.0.name, &b.0.name).then_with(|| a.cmp(b));
                one.cmp(other).then_with(by_name)
            });
            let missing = self.state.missing_in_role(slot, role);
            for at in 0..missing {
                let pod = pods.get(at as usize);
                let index = match pod {
                    Some((index, _)) => index.unwrap_or(at),
                    None => taken + at - pods.len() as u32,
                };
                let pod = pod.map(|(_, pod)| (*pod).clone());
                openings.push(Opening { role: role as u16, index, before: at, pod });
            }
        }
        openings
    }

    /// Finds and takes a seat.
    fn seat(&mut self, key: &GroupKey, group: u32, opening: &Opening) -> Result<Found, Arc<Why>> {
        let request = self.state.groups.at(group).requests[usize::from(opening.role)];
        let resolved = match self.resolve(request, opening) {
            Ok(resolved) => resolved,
            Err(stopped) => return Err(self.object(request, opening, *stopped)),
        };
        let movable = resolved.pinned.iter().filter(|p| p.movable);
        let movable: Vec<ClaimKey> = movable.map(|p| p.claim.clone()).collect();
        let ask = self.ask(group, opening, resolved);
        if let Some((node, fit)) = self.chosen(&ask, opening) {
            return Ok(self.take(group, opening, node, fit));
        }
        if !movable.is_empty()
            && let Some(found) = self.moved(key, group, opening, &movable)
        {
            return Ok(found);
        }
        Err(self.not_found(&ask, opening))
    }

    pub(super) fn asker<'o>(&self, opening: &'o Opening) -> Asker<'o> {
        Asker { pod: opening.pod.as_ref(), now: self.now }
    }

    pub(super) fn resolve(&self, request: u32, opening: &Opening) -> Result<Resolved, Stopped> {
        before_nodes(self.state, self.state.request(request), self.asker(opening), false)
    }

    /// What an opening asks of nodes; none where something stands in its way before any is looked at.
    pub(super) fn ask_of(&mut self, group: u32, opening: &Opening) -> Option<Ask> {
        let request = self.state.groups.at(group).requests[usize::from(opening.role)];
        let resolved = self.resolve(request, opening).ok()?;
        Some(self.ask(group, opening, resolved))
    }

    /// Searches with what is remembered of nodes, and counts the steps.
    pub(super) fn searched<T>(&mut self, look: impl FnOnce(&mut Search<'_>, &mut State) -> T) -> T {
        let memo = self.caches.as_deref_mut().map(|caches| &mut caches.memo);
        let mut search = Search::new(self.policy, self.effort, memo);
        let answer = look(&mut search, self.state);
        self.spent += search.spent;
        answer
    }

    /// An account that stands before any node was looked at.
    pub(super) fn object(
        &mut self,
        request: u32,
        opening: &Opening,
        (reason, example): (Reason, Example),
    ) -> Arc<Why> {
        let never = self.never(request, opening);
        Arc::new(why::object(reason, example).refused(never))
    }

    pub(super) fn gated(&mut self, slot: u32, openings: &[Opening]) -> Option<Arc<Why>> {
        let opening = openings.first()?;
        let group = self.state.groups.at(slot);
        if group.gates().is_empty() {
            return None;
        }
        let example = why::gates(group.gates());
        let request = group.requests[usize::from(opening.role)];
        Some(self.object(request, opening, (Reason::Gated, example)))
    }

    /// Notes an act.
    pub(super) fn act(&mut self, act: Act) {
        self.acts.push(act);
    }

    /// Notes what becomes of a further role of a group.
    pub(super) fn role_waits(&mut self, key: &GroupKey, role: u16, verdict: Verdict) {
        self.roles.push((key.clone(), role, verdict));
    }

    /// Notes how broken up trees are before and after a group.
    pub(super) fn broken_up(&mut self, key: &GroupKey, trees: Vec<Fragmentation>) {
        if !trees.is_empty() {
            self.fragmentation.push((key.clone(), trees));
        }
    }

    /// Why an opening is not to be filled because its pod would not be made.
    pub(super) fn kept_out(&mut self, slot: u32, opening: &Opening) -> Option<Arc<Why>> {
        let group = self.state.groups.at(slot);
        let request = group.requests[usize::from(opening.role)];
        let fault = group.kept_out(opening.role, opening.before)?;
        let stopped = claims::object(fault.reason, &fault.subject, &fault.detail);
        Some(self.object(request, opening, *stopped))
    }

    pub(super) fn not_found(&mut self, ask: &Ask, opening: &Opening) -> Arc<Why> {
        // What is promised to others is a question of who asks.
        let lasting = ask.around.as_ref().is_none_or(|around| around.promised.is_empty());
        if lasting && let Some(known) = self.with_column(ask, |column, _, _, _| column.why()) {
            return known;
        }
        let never = self.never(ask.slot, opening);
        let why = Arc::new(self.why(ask).refused(never));
        if let Some(caches) = self.caches.as_deref_mut()
            && let Some(column) = caches.columns.get_mut(&ask.request)
            && lasting
        {
            column.keep_why(&why);
        }
        why
    }

    /// The node that is taken for an opening: the promised one, else the best.
    fn chosen(&mut self, ask: &Ask, opening: &Opening) -> Option<(u32, Fit)> {
        if let Some(promised) = self.promised_seat(ask, opening) {
            return Some(promised);
        }
        let (node, fit) = self.best(ask)?;
        let proof = match self.policy.node_order {
            NodeOrder::Best => fit.proof,
            // Of scores nobody proves that they are the best.
            NodeOrder::Scores => Proof::FirstFit,
        };
        Some((node, Fit { proof, ..fit }))
    }

    /// The best node for an ask.
    pub(super) fn best(&mut self, ask: &Ask) -> Option<(u32, Fit)> {
        match self.caches.is_some() {
            true => self.best_by_column(ask),
            false => self.best_by_scan(ask),
        }
    }

    fn best_by_column(&mut self, ask: &Ask) -> Option<(u32, Fit)> {
        self.with_column(ask, |column, _, state, search| {
            let node = column.best(state, ask)?;
            let fit = search.node(state, ask, node).ok()?;
            Some((node, fit))
        })
    }

    /// Brings the ask's column up to date and hands it out.
    pub(super) fn with_column<T>(
        &mut self,
        ask: &Ask,
        read: impl FnOnce(&Column, &Ranks, &mut State, &mut Search<'_>) -> T,
    ) -> T
    where
        T: Default,
    {
        let Some(caches) = self.caches.as_deref_mut() else { return T::default() };
        caches.asked += 1;
        let mut column = caches
            .columns
            .remove(&ask.request)
            .unwrap_or_else(|| Column::new(ask.clone(), *self.policy, self.effort));
        column.used = caches.asked;
        let mut search = Search::new(self.policy, self.effort, Some(&mut caches.memo));
        column.refresh(self.state, &mut search, &self.ranks, ask);
        let result = read(&column, &self.ranks, self.state, &mut search);
        self.spent += search.spent;
        caches.columns.insert(ask.request.clone(), column);
        drop_oldest(&mut caches.columns, |column| (column.len(), column.used));
        result
    }

    fn best_by_scan(&mut self, ask: &Ask) -> Option<(u32, Fit)> {
        let mut search = Search::new(self.policy, self.effort, None);
        let mut best: Option<(u32, Fit)> = None;
        let mut fatal = false;
        let scored = self.policy.node_order == NodeOrder::Scores;
        let mut fits: Vec<(u32, Fit)> = Vec::new();
        for slot in self.ranks.slots() {
            match search.node(self.state, ask, *slot) {
                Ok(fit) if scored => fits.push((*slot, fit)),
                Ok(fit) if best.as_ref().is_none_or(|(_, b)| fit.cost < b.cost) => {
                    best = Some((*slot, fit));
                }
                Ok(_) => {}
                Err(failing) => fatal |= failing.status == crate::reason::Status::Error,
            }
        }
        self.spent += search.spent;
        if scored {
            let nodes = fits.iter().zip(0..).map(|((slot, fit), rank)| (rank, *slot, fit.cost));
            let chosen = scores::best(self.state, ask, &nodes.collect::<Vec<_>>());
            best = fits.into_iter().find(|(slot, _)| Some(*slot) == chosen);
        }
        if fatal { None } else { best }
    }

    pub(super) fn take(&mut self, group: u32, opening: &Opening, node: u32, fit: Fit) -> Found {
        let seat = self.seat_on(opening, node, &fit);
        let taken = self.state.take(group, &seat);
        self.journal.push(Undo::Taken(taken));
        Found { seat, cost: fit.cost, proof: fit.proof }
    }

    /// Takes a seat that was found before, where the state is as it was then.
    pub(super) fn take_again(&mut self, group: u32, found: &Found) {
        let taken = self.state.take(group, &found.seat);
        self.journal.push(Undo::Taken(taken));
    }

    /// The seat that a fit comes to.
    pub(super) fn seat_on(&self, opening: &Opening, node: u32, fit: &Fit) -> Seat {
        let row = self.state.nodes.at(node);
        let picks = fit.offer.iter().flat_map(|offer| &offer.picks);
        let grants = row.devices.as_deref().map_or_else(Vec::new, |devices| {
            picks
                .map(|pick| Grant {
                    claim: pick.claim,
                    request: pick.request,
                    alternative: pick.alternative,
                    device: self.state.device_key(devices, usize::from(pick.device)),
                    admin: pick.admin,
                    share: pick.share.clone(),
                })
                .collect()
        });
        Seat {
            role: opening.role,
            index: opening.index,
            pod: opening.pod.clone(),
            node: self.state.nodes.key(node).clone(),
            grants,
            volumes: fit.volumes.clone(),
        }
    }

    /// A second try with the pod's unused allocations given up, so that its claims can be
    /// allocated where it fits (kube-scheduler's PostFilter deallocates for the same end).
    fn moved(
        &mut self,
        key: &GroupKey,
        group: u32,
        opening: &Opening,
        claims: &[ClaimKey],
    ) -> Option<Found> {
        let start = self.journal.len();
        for claim in claims {
            self.state.release(claim, true);
            self.journal.push(Undo::Released(claim.clone()));
        }
        let request = self.state.groups.at(group).requests[usize::from(opening.role)];
        let found = self.resolve(request, opening).ok().and_then(|resolved| {
            let ask = self.ask(group, opening, resolved);
            self.chosen(&ask, opening)
        });
        match found {
            Some((node, fit)) => {
                let releases = claims.iter().map(|c| Act::Release(key.clone(), c.clone()));
                self.acts.extend(releases);
                Some(self.take(group, opening, node, fit))
            }
            None => {
                self.roll_back(start);
                None
            }
        }
    }
}
