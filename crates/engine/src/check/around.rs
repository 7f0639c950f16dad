//! The rules of a request that are about other pods than those of one node: they are asked over the
//! columns, for a pod anywhere may change every node's answer. A request without such rules, meant
//! by no pod's, has none of this.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Failing;
use super::near::{self, Near};
use super::spread::{self, Grid, Lacking, Spread};
use super::wishes::Wishes;
use crate::facts::{Node, Request};
use crate::pods::{PodSelectorId, SpreadRule};
use crate::reason::Reason;
use crate::state::State;

/// The domains of a request's constraints on spread, required and wished for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grids {
    required: Arc<Grid>,
    wished: Arc<Grid>,
}

impl Grids {
    /// The grids of a request.
    pub(crate) fn new(state: &State, request: &Request) -> Self {
        let Some(rules) = &request.near else { return Self::default() };
        let grid =
            |rules: &[SpreadRule]| Arc::new(Grid::new(state, &request.node, rules, Lacking::Out));
        Self { required: grid(&rules.spread), wished: grid(&rules.spread_wishes) }
    }

    /// Whether the request has any.
    pub(crate) fn are_asked(request: &Request) -> bool {
        let any = |rules: &crate::pods::PodRules| {
            !rules.spread.is_empty() || !rules.spread_wishes.is_empty()
        };
        request.near.as_ref().is_some_and(|rules| any(rules))
    }
}

/// What the pods around a request's nodes mean for it now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around {
    spread: Option<Spread>,
    near: Option<Near>,
    wishes: Option<Wishes>,
    /// By node, what refuses the pod once the pods are there that the node is promised to.
    pub(crate) promised: BTreeMap<u32, Failing>,
}

impl Around {
    /// Looks around; none where there is nothing to look for.
    pub(crate) fn of(state: &State, request: &Request, grids: &Grids) -> Option<Self> {
        if request.near.is_none() && request.matched.is_empty() {
            return None;
        }
        let spread = Spread::of(state, required(request), &grids.required);
        let near = Near::of(state, request);
        let wishes = Wishes::of(state, request, &grids.wished);
        let any = spread.is_some() || near.is_some() || wishes.is_some();
        any.then(|| Self { spread, near, wishes, promised: BTreeMap::new() })
    }

    /// The same rules with pods that a node is promised to: whether they are asked at all is decided
    /// without these. Wishes are weighed without them too.
    pub(crate) fn again(&self, state: &State, request: &Request, grids: &Grids) -> Self {
        let again = |_: &Spread| Spread::of(state, required(request), &grids.required);
        let spread = self.spread.as_ref().and_then(again);
        let near = self.near.as_ref().and_then(|_| Near::of(state, request));
        Self { spread, near, wishes: None, promised: BTreeMap::new() }
    }

    /// Whether the checks here come after the one for which a node fails with this reason. The reasons
    /// that stand before all nodes are those of the claim that a node would make for extended resources,
    /// which is looked at with its devices.
    pub(crate) fn comes_after(reason: Reason) -> bool {
        (Reason::NodeName..Reason::SpreadKeyMissing).contains(&reason)
    }

    /// What a node that passes all checks before these comes to: the sum of the wishes not met.
    pub(crate) fn on(&self, state: &State, request: &Request, slot: u32) -> Result<u32, Failing> {
        if let Some(spread) = &self.spread {
            spread.on(state, required(request), slot)?;
        }
        let Some(node) = &state.nodes.at(slot).fact else { return Ok(0) };
        if let Some(near) = &self.near {
            near.on(request, node)?;
        }
        let rules = request.near.as_deref();
        Ok(self.wishes.as_ref().map_or(0, |wishes| wishes.unmet(rules, node, slot)))
    }

    /// How many pods of a request find room together at most, on nodes of which each takes so many by
    /// itself. What `others` of the group are meant by as well bounds nothing.
    pub(crate) fn most(
        &self,
        state: &State,
        request: &Request,
        rooms: &[(u32, u32)],
        others: &[PodSelectorId],
    ) -> u64 {
        let near = near::most(state, request, rooms, others);
        let spread = self.spread.as_ref();
        spread.map_or(near, |spread| spread.most(required(request), rooms, others).min(near))
    }

    /// What is wished for.
    pub(crate) fn wished(&self) -> Option<&Wishes> {
        self.wishes.as_ref()
    }

    /// Each of the two checks that fails.
    pub(crate) fn all(&self, state: &State, request: &Request, slot: u32) -> Vec<Failing> {
        let spread = self.spread.as_ref().map(|spread| spread.on(state, required(request), slot));
        let node = state.nodes.at(slot).fact.as_ref();
        let near = self.near.as_ref().zip(node).map(|(near, node)| near.on(request, node));
        spread.into_iter().chain(near).filter_map(Result::err).collect()
    }
}

fn required(request: &Request) -> &[SpreadRule] {
    request.near.as_ref().map_or(&[], |near| &near.spread)
}

/// What stays of these rules where no other pod is on any node.
pub(crate) fn when_empty(request: &Request, node: &Node) -> Result<(), Failing> {
    spread::when_empty(request, node)?;
    near::when_empty(request, node)
}
