//! Checks: may this request go to this node? Each returns its reason.
//!
//! The order is kube-scheduler's default filter order: NodeName, NodeUnschedulable,
//! TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, VolumeRestrictions, NodeVolumeLimits,
//! VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity, DynamicResources,
//! NodeDeclaredFeatures. [`fact`] holds those that depend on the node's fact alone, [`ports`] and
//! [`room`] those of what its pods have, [`volumes`] those of volumes, [`around`] those of pods on all
//! nodes ([`spread`], [`near`]; [`wishes`] only weigh), [`claims`] those of claims and devices,
//! [`features`] the last.

pub(crate) mod around;
pub(crate) mod claims;
pub(crate) mod fact;
pub(crate) mod features;
pub(crate) mod near;
pub(crate) mod ports;
pub(crate) mod room;
pub(crate) mod spread;
pub(crate) mod volumes;
pub(crate) mod wishes;

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
    fact::terms_agree(&request.node)?;
    let mounts = volumes::resolve(state, request, emptied)?;
    faultless(request)?;
    let mut resolved = claims::resolve(state, request, asker, emptied)?;
    resolved.mounts = mounts;
    Ok(resolved)
}

/// All that makes a request impossible before any node is looked at, in the order of the plugins.
pub(crate) fn all_before_nodes(state: &State, request: &Request, asker: Asker<'_>) -> Vec<Stopped> {
    let mut all: Vec<Stopped> = fact::terms_agree(&request.node).err().into_iter().collect();
    all.extend(volumes::stopped(state, request, false));
    let claims = claims::resolve(state, request, asker, false).map(|_| ());
    all.extend(faultless(request).and(claims).err());
    all
}

/// What lowering found wrong with the pod or the claims that it names.
fn faultless(request: &Request) -> Result<(), Stopped> {
    match &request.fault {
        Some(fault) => Err(claims::object(fault.reason, &fault.subject, &fault.detail)),
        None => Ok(()),
    }
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
