//! What kube-scheduler says of a pod that fits nowhere: the text of its FitError, which stands in the
//! pod's condition `PodScheduled` and in its event `FailedScheduling`. The texts are kube-scheduler's
//! of 1.37, for they are looked for word by word; what it adds about preemption is left out.

use std::collections::BTreeMap;

use phalanx_engine::{Example, Facts, NodeReport, Only, PodKey, Reason, Report, Status};

/// The text about a pod in a cluster of so many nodes; none where kube-scheduler would place it, would not try it, or would end the
/// attempt in an error.
pub(crate) fn fit_error(report: &Report, nodes: usize, pod: &PodKey) -> Option<String> {
    if report.object.iter().any(|(reason, _)| *reason == Reason::Gated) {
        return Some("Scheduling is blocked due to non-empty scheduling gates".to_owned());
    }
    if let Some(text) = before_nodes(report, pod) {
        return text.map(|text| format!("0/{nodes} nodes are available: {text}."));
    }
    if nodes == 0 {
        return Some("no nodes available to schedule pods".to_owned());
    }
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for node in &report.nodes {
        for text in of_node(node, report.only.as_ref())? {
            *counts.entry(text).or_default() += 1;
        }
    }
    // Sorted as texts: `10 x` comes before `2 y`.
    let mut counted: Vec<String> =
        counts.into_iter().map(|(text, count)| format!("{count} {text}")).collect();
    counted.sort_unstable();
    Some(format!("0/{nodes} nodes are available: {}.", counted.join(", ")))
}

/// What a PreFilter says; outer none where each lets the pod pass, inner none where no attempt ends so.
fn before_nodes(report: &Report, pod: &PodKey) -> Option<Option<String>> {
    let conflict = |(reason, _): &&(Reason, Example)| *reason == Reason::NodeAffinity;
    if report.object.iter().any(|stopped| conflict(&stopped)) {
        return Some(Some("pod affinity terms conflict".to_owned()));
    }
    if let Some(only) = report.only.as_ref().filter(|only| only.nodes.is_empty()) {
        let plugins = only.plugins.join(" ");
        return Some(Some(format!("node(s) didn't satisfy plugin(s) [{plugins}] simultaneously")));
    }
    let (reason, example) = report.object.first()?;
    if *reason == Reason::NoNodes {
        return None;
    }
    Some(of_object(*reason, example, pod))
}

/// What kube-scheduler says of a pod's own volumes.
#[expect(clippy::too_many_lines, reason = "all of them in one match")]
fn of_object(reason: Reason, example: &Example, pod: &PodKey) -> Option<String> {
    let Facts::Volume(facts) = &example.facts else { return None };
    let claim = &facts.claim;
    let volume = facts.volume.as_ref().map(ToString::to_string).unwrap_or_default();
    let named = format!("persistentvolumeclaim \"{claim}\"");
    let namespace = &pod.0.namespace;
    Some(match reason {
        Reason::VolumeClaimMissing => format!("{named} not found"),
        Reason::VolumeClaimNotMade => {
            format!("waiting for ephemeral volume controller to create the {named}")
        }
        Reason::VolumeClaimLost => {
            format!("{named} bound to non-existent persistentvolume \"{volume}\"")
        }
        Reason::VolumeClaimDeleting => format!("{named} is being deleted"),
        Reason::VolumeClaimOfOther => format!(
            "PVC {namespace}/{claim} was not created for pod {namespace}/{} (pod is not owner)",
            pod.0.name
        ),
        Reason::VolumeClaimUnbound => "pod has unbound immediate PersistentVolumeClaims".to_owned(),
        Reason::VolumeMissing => format!("persistentvolume \"{volume}\" not found"),
        // Of these no attempt ends in a FitError: the pod is not made, or not put into the queue, or
        // the attempt ends in an error.
        Reason::AdmissionRefused
        | Reason::QuotaExceeded
        | Reason::Gated
        | Reason::ClaimMissing
        | Reason::TemplateMissing
        | Reason::ClaimOfOther
        | Reason::ClaimDeleting
        | Reason::ClassMissing
        | Reason::SelectorInvalid
        | Reason::RequestUnsupported
        | Reason::TooManyDevices
        | Reason::TooManyUsers
        | Reason::NoNodes
        | Reason::NodeName
        | Reason::NodeUnschedulable
        | Reason::NodeTaint
        | Reason::NodeAffinity
        | Reason::PortsTaken
        | Reason::TooManyPods
        | Reason::InsufficientCpu
        | Reason::InsufficientMemory
        | Reason::InsufficientEphemeral
        | Reason::InsufficientScalar
        | Reason::DiskInUse
        | Reason::VolumeClaimInUse
        | Reason::DriverMissing
        | Reason::VolumeLimit
        | Reason::VolumeElsewhere
        | Reason::NoVolume
        | Reason::StorageShort
        | Reason::VolumeGone
        | Reason::VolumeZone
        | Reason::SpreadKeyMissing
        | Reason::SpreadUnmet
        | Reason::PodAffinityUnmet
        | Reason::PodAntiAffinityUnmet
        | Reason::RepelledByPod
        | Reason::ClaimElsewhere
        | Reason::BindingFailed
        | Reason::NoDevices
        | Reason::PoolIncomplete
        | Reason::PoolInvalid
        | Reason::SelectorError
        | Reason::SelectorFalse
        | Reason::TooFewDevices
        | Reason::DevicesKeptBack
        | Reason::DeviceTainted
        | Reason::DevicesTaken
        | Reason::CapacityShort
        | Reason::CountersShort
        | Reason::AttributeMissing
        | Reason::MatchUnmet
        | Reason::DistinctUnmet
        | Reason::LinksUnknown
        | Reason::AlignUnmet
        | Reason::NotTogether
        | Reason::SearchBound
        | Reason::FeatureMissing => return None,
    })
}

/// What a node counts under; none where kube-scheduler would take it.
fn of_node(node: &NodeReport, only: Option<&Only>) -> Option<Vec<String>> {
    if let Some(only) = only.filter(|only| !only.nodes.contains(&node.node.0)) {
        return Some(vec![format!(
            "node(s) didn't satisfy plugin(s) [{}]",
            only.plugins.join(" ")
        )]);
    }
    let plugin = node.checks.first()?.0.check();
    let of_first = node.checks.iter().take_while(|(reason, ..)| reason.check() == plugin);
    let mut texts: Vec<String> = Vec::new();
    for (reason, status, example) in of_first {
        let text = of_filter(*reason, *status, example)?;
        // A plugin says the same once, however many of the pod's objects it is true of.
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    Some(texts)
}

/// What a filter says of a node; none where kube-scheduler does not know the rule, or does not refuse
/// the node so.
#[expect(clippy::too_many_lines, reason = "all of them in one match")]
fn of_filter(reason: Reason, status: Status, example: &Example) -> Option<String> {
    if status == Status::Error {
        return None;
    }
    let text = match reason {
        Reason::NodeName => "node(s) didn't match the requested node name",
        Reason::NodeUnschedulable => "node(s) were unschedulable",
        Reason::NodeTaint => "node(s) had untolerated taint(s)",
        Reason::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
        Reason::PortsTaken => "node(s) didn't have free ports for the requested pod ports",
        Reason::TooManyPods => "Too many pods",
        Reason::InsufficientCpu => "Insufficient cpu",
        Reason::InsufficientMemory => "Insufficient memory",
        Reason::InsufficientEphemeral => "Insufficient ephemeral-storage",
        Reason::DiskInUse => "node(s) had no available disk",
        Reason::VolumeClaimInUse => {
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access \
             mode already in-use by another pod"
        }
        Reason::VolumeLimit => "node(s) exceed max volume count",
        Reason::VolumeElsewhere => "node(s) didn't match PersistentVolume's node affinity",
        Reason::NoVolume => "node(s) didn't find available persistent volumes to bind",
        Reason::StorageShort => "node(s) did not have enough free storage",
        Reason::VolumeGone => {
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
        }
        Reason::VolumeZone => "node(s) had no available volume zone",
        Reason::SpreadKeyMissing => {
            "node(s) didn't match pod topology spread constraints (missing required label)"
        }
        Reason::SpreadUnmet => "node(s) didn't match pod topology spread constraints",
        Reason::PodAffinityUnmet => "node(s) didn't match pod affinity rules",
        Reason::PodAntiAffinityUnmet => "node(s) didn't match pod anti-affinity rules",
        Reason::RepelledByPod => "node(s) didn't satisfy existing pods anti-affinity rules",
        Reason::ClaimElsewhere => "resourceclaim not available on the node",
        Reason::FeatureMissing => "node(s) didn't match Pod's required features",
        Reason::InsufficientScalar => {
            let Facts::Amount { resource, .. } = &example.facts else { return None };
            return Some(format!("Insufficient {resource}"));
        }
        Reason::DriverMissing => {
            let Facts::Subject { subject, .. } = &example.facts else { return None };
            return Some(format!("{subject} CSI driver is not installed on the node"));
        }
        Reason::NoDevices
        | Reason::PoolIncomplete
        | Reason::PoolInvalid
        | Reason::SelectorError
        | Reason::SelectorFalse
        | Reason::TooFewDevices
        | Reason::DevicesKeptBack
        | Reason::DeviceTainted
        | Reason::DevicesTaken
        | Reason::CapacityShort
        | Reason::CountersShort
        | Reason::AttributeMissing
        | Reason::MatchUnmet
        | Reason::DistinctUnmet
        | Reason::NotTogether => "cannot allocate all claims",
        Reason::BindingFailed
        | Reason::LinksUnknown
        | Reason::AlignUnmet
        | Reason::SearchBound
        | Reason::AdmissionRefused
        | Reason::QuotaExceeded
        | Reason::Gated
        | Reason::VolumeClaimMissing
        | Reason::VolumeClaimNotMade
        | Reason::VolumeClaimLost
        | Reason::VolumeClaimDeleting
        | Reason::VolumeClaimOfOther
        | Reason::VolumeClaimUnbound
        | Reason::VolumeMissing
        | Reason::ClaimMissing
        | Reason::TemplateMissing
        | Reason::ClaimOfOther
        | Reason::ClaimDeleting
        | Reason::ClassMissing
        | Reason::SelectorInvalid
        | Reason::RequestUnsupported
        | Reason::TooManyDevices
        | Reason::TooManyUsers
        | Reason::NoNodes => return None,
    };
    Some(text.to_owned())
}
