//! Sentences about volumes and the claims on them.

use phalanx_engine::{Reason, VolumeFacts, VolumeLack};

/// The sentence for what is wrong with a claim on a volume.
#[expect(clippy::too_many_lines, reason = "all of them in one match")]
pub(super) fn sentence(reason: Reason, facts: &VolumeFacts) -> String {
    let claim = claim(facts);
    let volume = facts.volume.as_deref().unwrap_or_default();
    match reason {
        Reason::VolumeClaimMissing => format!("{claim} does not exist"),
        Reason::VolumeClaimNotMade if facts.claim.is_empty() => {
            "its PersistentVolumeClaim is yet to be made by the ephemeral volume controller"
                .to_owned()
        }
        Reason::VolumeClaimNotMade => {
            format!("{claim} is yet to be made for the pod by the ephemeral volume controller")
        }
        Reason::VolumeClaimLost if volume.is_empty() => format!("{claim} has lost its volume"),
        Reason::VolumeClaimLost => {
            format!("{claim} has lost its volume: PersistentVolume {volume} is gone")
        }
        Reason::VolumeClaimDeleting => format!("{claim} is being deleted"),
        Reason::VolumeClaimOfOther => {
            format!("{claim} was not made for this pod: it has another owner or none")
        }
        Reason::VolumeClaimUnbound => unbound(&claim, volume, facts),
        Reason::VolumeMissing | Reason::VolumeGone => {
            format!("{claim} is bound to PersistentVolume {volume}, which does not exist")
        }
        Reason::VolumeClaimInUse => {
            format!("{claim} is ReadWriteOncePod, and another pod uses it already")
        }
        Reason::VolumeElsewhere => format!(
            "{claim} is bound to PersistentVolume {volume}, which its node affinity keeps from this \
             node"
        ),
        Reason::NoVolume => no_volume(&claim, volume, facts),
        Reason::StorageShort => format!(
            "{claim}: no volume is there for it, and no CSIStorageCapacity of class {} that this \
             node can use is large enough to make one",
            class(facts)
        ),
        Reason::VolumeZone => zone(&claim, volume, facts),
        Reason::AdmissionRefused
        | Reason::QuotaExceeded
        | Reason::PortsTaken
        | Reason::SpreadKeyMissing
        | Reason::SpreadUnmet
        | Reason::PodAffinityUnmet
        | Reason::PodAntiAffinityUnmet
        | Reason::RepelledByPod
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
        | Reason::NoNodes
        | Reason::NodeName
        | Reason::NodeUnschedulable
        | Reason::NodeTaint
        | Reason::NodeAffinity
        | Reason::TooManyPods
        | Reason::InsufficientCpu
        | Reason::InsufficientMemory
        | Reason::InsufficientEphemeral
        | Reason::InsufficientScalar
        | Reason::DiskInUse
        | Reason::DriverMissing
        | Reason::VolumeLimit
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
        | Reason::FeatureMissing => super::short(reason).to_owned(),
    }
}

fn claim(facts: &VolumeFacts) -> String {
    if facts.claim.is_empty() {
        return "the PersistentVolumeClaim that is made for the pod".to_owned();
    }
    format!("PersistentVolumeClaim {}", facts.claim)
}

fn class(facts: &VolumeFacts) -> &str {
    facts.class.as_deref().unwrap_or_default()
}

/// A claim that does not wait for its pod.
fn unbound(claim: &str, volume: &str, facts: &VolumeFacts) -> String {
    let why = match facts.lack {
        Some(VolumeLack::HalfBound) => {
            format!("it names PersistentVolume {volume}, and the binding is not complete")
        }
        Some(VolumeLack::NoClass) => {
            "it names no StorageClass, and no volume has been bound to it".to_owned()
        }
        Some(VolumeLack::ClassMissing) => {
            format!("its StorageClass {} does not exist", class(facts))
        }
        Some(
            VolumeLack::Immediate
            | VolumeLack::MadeElsewhere
            | VolumeLack::NotMade
            | VolumeLack::Topology
            | VolumeLack::Room,
        )
        | None => format!(
            "its StorageClass {} binds at once (Immediate), and nothing has yet",
            class(facts)
        ),
    };
    format!("{claim} is not bound: {why}")
}

/// A claim that waits for its pod, and finds nothing.
fn no_volume(claim: &str, volume: &str, facts: &VolumeFacts) -> String {
    if facts.lack == Some(VolumeLack::MadeElsewhere) {
        let node = facts.node.as_deref().unwrap_or_default();
        return format!("{claim}: a volume is being made for it on {node}");
    }
    let none = match volume {
        "" => "no PersistentVolume that is free, fits it and can be used from this node".to_owned(),
        kept => format!("PersistentVolume {kept} is kept for it and can't be used from this node"),
    };
    let made = match facts.lack {
        Some(VolumeLack::Topology) => {
            format!("StorageClass {} allows none to be made here", class(facts))
        }
        Some(
            VolumeLack::Immediate
            | VolumeLack::HalfBound
            | VolumeLack::NoClass
            | VolumeLack::ClassMissing
            | VolumeLack::MadeElsewhere
            | VolumeLack::NotMade
            | VolumeLack::Room,
        )
        | None => format!("StorageClass {} makes none", class(facts)),
    };
    format!("{claim}: {none}, and {made}")
}

fn zone(claim: &str, volume: &str, facts: &VolumeFacts) -> String {
    let Some((asked, has)) = &facts.label else {
        return super::short(Reason::VolumeZone).to_owned();
    };
    let key = asked.split('=').next().unwrap_or(asked);
    let node = match has {
        Some(has) => format!("the node has {key}={has}"),
        None => format!("the node has no label {key}"),
    };
    format!("{claim} is bound to PersistentVolume {volume}, which is labelled {asked}, and {node}")
}
