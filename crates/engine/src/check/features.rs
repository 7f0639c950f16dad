//! NodeDeclaredFeatures: the node declares every feature of the kubelet that the pod's spec needs.

use super::Failing;
use crate::decision::Facts;
use crate::facts::Node;
use crate::name::Name;
use crate::reason::{Reason, Status};

/// Whether the node declares these features; names the first that it does not.
pub(crate) fn declared(features: &[Name], node: &Node) -> Result<(), Failing> {
    let Some(missing) = features.iter().find(|feature| !node.features.contains(feature)) else {
        return Ok(());
    };
    let facts = Facts::Subject { subject: missing.clone(), detail: Name::default() };
    Err(Failing::new(Reason::FeatureMissing, Status::UnschedulableAndUnresolvable).with(facts))
}
