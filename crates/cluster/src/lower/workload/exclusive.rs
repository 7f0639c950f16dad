//! Domains that parts of a workload have each for itself (`exclusive-topology`): what the webhooks of
//! JobSet and LeaderWorkerSet add to their pods. The first pod of a part chooses the domain as any pod
//! would, and those after it are kept there: the webhooks by a node selector once the first has its
//! node, here by the same affinity to the pods of the part, which comes to the same. The webhooks tell
//! parts by a digest of their names; here they are told by the labels that those names are in, which a
//! mask of names leaves what they are to each other.

use std::borrow::Cow;
use std::ops::Range;

use phalanx_objects::core::{
    Affinity, LabelSelector, LabelSelectorOperator, LabelSelectorRequirement, PodAffinityTerm,
    PodSpec,
};

use super::record::Indexes;
use super::{ROLES_MAX, RolePlan, marks};

/// A domain that a part has for itself.
#[derive(Clone, Debug)]
pub(super) struct Alone<'k> {
    /// A label that pods of all parts have.
    pub(super) key: &'static str,
    /// The labels by which its pods are known.
    pub(super) part: &'k [(&'static str, String)],
    /// The label of nodes whose values are the domains.
    pub(super) topology: &'k str,
    /// Whether parts of other namespaces count.
    pub(super) everywhere: bool,
}

/// Whether roles may be cut into so many: of each the make of its pods is kept.
pub(super) fn can_be_cut(parts: u32) -> bool {
    usize::try_from(parts).is_ok_and(|parts| parts <= ROLES_MAX)
}

/// What comes of it that each of these parts has a domain for itself: of pods that start together the
/// domain holds the whole of a part, of others the first chooses.
pub(super) fn told(what: &str, part: &str, key: &str, roles: &[RolePlan<'_>]) -> String {
    let has = format!("{what} has a domain of {key} for itself.");
    match roles.iter().all(marks::is_of_gang) {
        true => {
            format!("{has} Its pods start together, so that it is one with room for all of them.")
        }
        false => format!(
            "{has} As kube-scheduler does it, the first pod of {part} chooses the domain for its own room \
             alone, and those that find none there wait."
        ),
    }
}

/// The part of a role with these indexes.
pub(super) fn part<'a>(role: &RolePlan<'a>, span: Range<u32>) -> RolePlan<'a> {
    RolePlan {
        wanted: span.end.saturating_sub(span.start),
        indexes: Some(Indexes::some(span.clone())),
        span: Some(span),
        ..role.clone()
    }
}

impl RolePlan<'_> {
    /// Its pods are where others of the part are, and where no pods of other parts are.
    pub(super) fn keep_alone(&mut self, alone: &Alone<'_>) {
        let Alone { key, part, topology, everywhere } = alone;
        let one = |key: &str, operator, values: &[&String]| LabelSelectorRequirement {
            key: key.to_owned(),
            operator,
            values: values.iter().map(|value| (*value).clone()).collect(),
        };
        let term = |everywhere: bool, match_expressions| PodAffinityTerm {
            label_selector: Some(LabelSelector { match_expressions, ..LabelSelector::default() }),
            namespace_selector: everywhere.then(LabelSelector::default),
            topology_key: (*topology).to_owned(),
            ..PodAffinityTerm::default()
        };
        let own = part.iter().map(|(label, value)| one(label, LabelSelectorOperator::In, &[value]));
        let own = term(false, own.collect());
        // A pod of another part differs in one of them.
        let others = part.iter().map(|(label, value)| {
            let is_of_some = one(key, LabelSelectorOperator::Exists, &[]);
            term(*everywhere, vec![is_of_some, one(label, LabelSelectorOperator::NotIn, &[value])])
        });
        let affinity = spec_of(&mut self.template).affinity.get_or_insert_with(Affinity::default);
        affinity.pod_affinity.required_during_scheduling_ignored_during_execution.push(own);
        affinity
            .pod_anti_affinity
            .required_during_scheduling_ignored_during_execution
            .extend(others);
    }
}

/// The spec of a template, to be changed.
pub(super) fn spec_of<'t>(
    template: &'t mut Cow<'_, phalanx_objects::core::PodTemplateSpec>,
) -> &'t mut PodSpec {
    &mut template.to_mut().spec
}
