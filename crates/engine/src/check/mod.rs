//! Checks: may this request go to this node? Each returns its reason.
//!
//! The order is kube-scheduler's default filter order: NodeName, NodeUnschedulable,
//! TaintToleration, NodeAffinity, NodeResourcesFit, DynamicResources. [`fact`] holds those that
//! depend on the node's fact alone, [`room`] the ledger's, [`claims`] those of claims and devices.

pub(crate) mod claims;
pub(crate) mod fact;
pub(crate) mod room;

use crate::decision::Facts;
use crate::facts::Request;
use crate::reason::{Reason, Status};
use crate::state::State;
pub(crate) use claims::Asker;
use claims::{Resolved, Stopped};

/// What can be said before any node is looked at (kube-scheduler's PreFilter): the claims sorted
/// out, or what makes the request impossible. `emptied` is as if every other pod were gone.
pub(crate) fn before_nodes(
    state: &State,
    request: &Request,
    asker: Asker<'_>,
    emptied: bool,
) -> Result<Resolved, Stopped> {
    if let Some(fault) = &request.fault {
        return Err(claims::object(fault.reason, &fault.subject, &fault.detail));
    }
    fact::terms_agree(&request.node)?;
    claims::resolve(state, request, asker, emptied)
}

/// One check that failed on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failing {
    pub(crate) reason: Reason,
    pub(crate) status: Status,
    pub(crate) facts: Facts,
    /// Index of the device in the node's shape that the facts are about.
    pub(crate) device: Option<u16>,
    /// Devices of the node that fell for it.
    pub(crate) fallen: u32,
    /// How close it came: more is nearer. Compared between nodes that fail for one reason.
    pub(crate) close: u32,
}

impl Failing {
    pub(crate) fn new(reason: Reason, status: Status) -> Self {
        Self { reason, status, facts: Facts::None, device: None, fallen: 0, close: 0 }
    }

    pub(crate) fn with(self, facts: Facts) -> Self {
        Self { facts, ..self }
    }
}
