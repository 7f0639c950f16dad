//! What kube-scheduler says of a pod that fits nowhere: the text of its FitError, which stands in the
//! pod's condition `PodScheduled` and in its event `FailedScheduling`. The texts are kube-scheduler's
//! of 1.37, for they are looked for word by word; what it adds about preemption is left out.

use std::collections::BTreeMap;

use phalanx_engine::{
    Example, Facts, NodeReport, Only, PodKey, Reason, Report, Status, VolumeFacts,
};

/// The text about a pod in a cluster of so many nodes; of a pod that gates keep back, that of its
/// condition. None where kube-scheduler would place the pod, or end the attempt in an error.
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
        for text in of_node(node, report.only.as_ref(), pod)? {
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
    if report.object.iter().any(|(reason, _)| *reason == Reason::NodeAffinity) {
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
    Some(said(*reason, example, pod))
}

/// What a node counts under; none where kube-scheduler would take it.
fn of_node(node: &NodeReport, only: Option<&Only>, pod: &PodKey) -> Option<Vec<String>> {
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
        let text = Some(*status).filter(|status| *status != Status::Error);
        let text = text.and_then(|_| said(*reason, example, pod))?;
        // A plugin says the same once, however many of the pod's objects it is true of.
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    Some(texts)
}

/// What kube-scheduler says of a pod's own volumes, or of a node. None where it does not know the rule,
/// or where no attempt ends in a FitError so: the pod is not made, or not put into the queue, or the
/// attempt ends in an error.
#[expect(clippy::too_many_lines, reason = "all of them in one match")]
fn said(reason: Reason, example: &Example, pod: &PodKey) -> Option<String> {
    let text = match reason {
        Reason::VolumeClaimMissing => return Some(format!("{} not found", claim(example)?)),
        Reason::VolumeClaimNotMade => {
            let claim = claim(example)?;
            return Some(format!("waiting for ephemeral volume controller to create the {claim}"));
        }
        Reason::VolumeClaimLost => {
            let (claim, volume) = (claim(example)?, volume(example)?);
            return Some(format!("{claim} bound to non-existent {volume}"));
        }
        Reason::VolumeClaimDeleting => {
            return Some(format!("{} is being deleted", claim(example)?));
        }
        Reason::VolumeClaimOfOther => {
            let (claim, namespace, name) = (&facts(example)?.claim, &pod.0.namespace, &pod.0.name);
            return Some(format!(
                "PVC {namespace}/{claim} was not created for pod {namespace}/{name} (pod is not owner)"
            ));
        }
        Reason::VolumeMissing => return Some(format!("{} not found", volume(example)?)),
        Reason::VolumeClaimUnbound => "pod has unbound immediate PersistentVolumeClaims",
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
        | Reason::ClaimMissing
        | Reason::TemplateMissing
        | Reason::ClaimOfOther
        | Reason::ClaimDeleting
        | Reason::ClassMissing
        | Reason::SelectorInvalid
        | Reason::RequestUnsupported
        | Reason::TooManyDevices
        | Reason::TooManyUsers
        | Reason::GroupIncomplete
        | Reason::GroupShort
        | Reason::NoNodes => return None,
    };
    Some(text.to_owned())
}

fn facts(example: &Example) -> Option<&VolumeFacts> {
    let Facts::Volume(facts) = &example.facts else { return None };
    Some(facts)
}

fn claim(example: &Example) -> Option<String> {
    Some(format!("persistentvolumeclaim \"{}\"", facts(example)?.claim))
}

fn volume(example: &Example) -> Option<String> {
    let volume = facts(example)?.volume.as_ref().map(ToString::to_string).unwrap_or_default();
    Some(format!("persistentvolume \"{volume}\""))
}
