//! Why something is not placed: one small enum, in order of precedence.
//!
//! A check returns its reason. Requeueing, condition reasons, metric labels, cures and sentences
//! are exhaustive matches on it; the sentences themselves are made in one place outside the engine,
//! from a reason and the [`Example`](crate::Example) that carries its names and numbers.

/// A reason. The order of the variants is the order of precedence: what concerns the object comes
/// first, then what concerns nodes in the order of kube-scheduler's filters, then devices in the
/// order in which a candidate is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The API server would refuse to make the pod.
    AdmissionRefused,
    /// A quota of the namespace leaves no room for one more.
    QuotaExceeded,
    /// Scheduling gates keep the pod back.
    Gated,
    /// A claim on a volume that the pod names does not exist.
    VolumeClaimMissing,
    /// The claim for a volume of the pod is yet to be made.
    VolumeClaimNotMade,
    /// The volume of a claim is gone for good.
    VolumeClaimLost,
    /// A claim on a volume is being deleted.
    VolumeClaimDeleting,
    /// The claim on a volume was made for another pod.
    VolumeClaimOfOther,
    /// A claim that does not wait for its pod has no volume yet.
    VolumeClaimUnbound,
    /// The volume that a claim names does not exist.
    VolumeMissing,
    /// A claim that the pod names does not exist.
    ClaimMissing,
    /// A claim template that the pod names does not exist.
    TemplateMissing,
    /// The claim was made for another pod.
    ClaimOfOther,
    /// The claim is being deleted.
    ClaimDeleting,
    /// A request names a DeviceClass that does not exist.
    ClassMissing,
    /// A selector does not compile.
    SelectorInvalid,
    /// The claim asks in a way that we can't grant: an unknown mode, or a gate that is off.
    RequestUnsupported,
    /// The claim asks for more devices than an allocation can hold (32).
    TooManyDevices,
    /// The claim has as many users as the API allows (256).
    TooManyUsers,
    /// Fewer members of a group that starts whole exist than it needs, or what declares it does not.
    GroupIncomplete,
    /// Some members of a group that starts whole fit together, and not all that it needs.
    GroupShort,
    /// There is no node at all.
    NoNodes,
    /// The node is not the one that the pod names.
    NodeName,
    /// The node is cordoned.
    NodeUnschedulable,
    /// The node has a taint that is not tolerated.
    NodeTaint,
    /// The node does not match the pod's selector or required affinity.
    NodeAffinity,
    /// A pod on the node has a host port that is asked for.
    PortsTaken,
    /// The node takes no more pods.
    TooManyPods,
    /// Too little CPU is free.
    InsufficientCpu,
    /// Too little memory is free.
    InsufficientMemory,
    /// Too little ephemeral storage is free.
    InsufficientEphemeral,
    /// Too little of an extended resource or of hugepages is free.
    InsufficientScalar,
    /// A pod on the node has the same disk.
    DiskInUse,
    /// Another pod uses a claim that is for one pod alone.
    VolumeClaimInUse,
    /// The CSI driver of a volume is not installed on the node.
    DriverMissing,
    /// The node can't attach so many volumes.
    VolumeLimit,
    /// A volume of the pod can't be used from the node.
    VolumeElsewhere,
    /// No volume is there for a claim, and none can be made.
    NoVolume,
    /// There is too little room to make a volume.
    StorageShort,
    /// The volume of a claim that was made for the pod is gone.
    VolumeGone,
    /// A volume of the pod is in another zone.
    VolumeZone,
    /// The node lacks the label of a topology spread constraint.
    SpreadKeyMissing,
    /// One more pod in the node's domain would skew the spread.
    SpreadUnmet,
    /// No pod that the pod must be near is in the node's domain.
    PodAffinityUnmet,
    /// A pod that the pod must be away from is in the node's domain.
    PodAntiAffinityUnmet,
    /// A pod in the node's domain must be away from this one.
    RepelledByPod,
    /// A claim of the pod is allocated and can't be used from this node.
    ClaimElsewhere,
    /// A device of a claim that is allocated reports that it can't be bound.
    BindingFailed,
    /// The node sees no device.
    NoDevices,
    /// A pool that the node sees is being republished.
    PoolIncomplete,
    /// A pool that the node sees contradicts itself.
    PoolInvalid,
    /// A selector ends in an error on the devices that could have done.
    SelectorError,
    /// No device passes the selectors.
    SelectorFalse,
    /// Devices pass the selectors, yet fewer than asked for.
    TooFewDevices,
    /// Enough devices pass, but they are not given out here, for want of a feature of the node or
    /// of a feature gate.
    DevicesKeptBack,
    /// Enough devices pass, but for taints that are not tolerated.
    DeviceTainted,
    /// Enough devices would do, but they are in use.
    DevicesTaken,
    /// Devices would do, but too little of their capacity is left.
    CapacityShort,
    /// Partitions would do, but their shared counters are spent.
    CountersShort,
    /// A constraint reads an attribute that too few of the devices have.
    AttributeMissing,
    /// No set of the free devices agrees on the attribute.
    MatchUnmet,
    /// No set of the free devices differs in the attribute.
    DistinctUnmet,
    /// Nearness is required and nothing is known of the node's links.
    LinksUnknown,
    /// No domain of the required level holds a set.
    AlignUnmet,
    /// Each request could be met, but not all of them together.
    NotTogether,
    /// The search was ended by its bound.
    SearchBound,
    /// The node does not declare a feature that the pod needs.
    FeatureMissing,
}

/// What a reason is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The pod or one of its objects: no node was evaluated.
    Object,
    /// Its queue.
    Queue,
    /// Its group as a whole.
    Group,
    /// A node.
    Node,
    /// Devices of a node.
    Device,
}

/// How far a candidate device gets, in the order in which it is looked at. A reason about devices
/// belongs to the stage at which too few are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceStage {
    /// It passes the selectors.
    Selected,
    /// Its taints are tolerated.
    Tolerated,
    /// Nobody holds it.
    Free,
    /// Its capacity, its counters and its links allow it.
    Fitting,
    /// It can be together with the others.
    Together,
}

/// Which kinds of change could make a reason go away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// A change of the pod, its claims, templates or classes.
    Object,
    /// A node that appears or changes.
    Node,
    /// A pod that ends, or a node that appears or grows.
    Room,
    /// Slices, taint rules or links that change.
    Devices,
    /// A claim that is released, or devices that appear.
    Release,
}

/// Which kind of cure a reason has, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CureKind {
    /// Make or mend the object named.
    Object,
    /// End pods that hold what is missing.
    EndPods,
    /// Heal a node or a device.
    Heal,
    /// Relax one constraint of the pod.
    Relax,
    /// Ask for fewer.
    Reduce,
    /// Wait: it goes away by itself.
    Wait,
}

/// Whether removing pods could help, as kube-scheduler codes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Removing pods may help.
    Unschedulable,
    /// Removing pods can't help.
    UnschedulableAndUnresolvable,
    /// The attempt itself fails.
    Error,
}

/// One row of the table of reasons.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    code: &'static str,
    check: &'static str,
    scope: Scope,
    wake: Wake,
    cure: CureKind,
}

const fn row(
    code: &'static str,
    check: &'static str,
    scope: Scope,
    wake: Wake,
    cure: CureKind,
) -> Row {
    Row { code, check, scope, wake, cure }
}

const DRA: &str = "DynamicResources";
const FIT: &str = "NodeResourcesFit";
const RESTRICTIONS: &str = "VolumeRestrictions";
const LIMITS: &str = "NodeVolumeLimits";
const BINDING: &str = "VolumeBinding";
const SPREAD: &str = "PodTopologySpread";
const NEAR: &str = "InterPodAffinity";

impl Reason {
    /// Every reason, in order.
    pub const ALL: [Self; 67] = [
        Self::AdmissionRefused,
        Self::QuotaExceeded,
        Self::Gated,
        Self::VolumeClaimMissing,
        Self::VolumeClaimNotMade,
        Self::VolumeClaimLost,
        Self::VolumeClaimDeleting,
        Self::VolumeClaimOfOther,
        Self::VolumeClaimUnbound,
        Self::VolumeMissing,
        Self::ClaimMissing,
        Self::TemplateMissing,
        Self::ClaimOfOther,
        Self::ClaimDeleting,
        Self::ClassMissing,
        Self::SelectorInvalid,
        Self::RequestUnsupported,
        Self::TooManyDevices,
        Self::TooManyUsers,
        Self::GroupIncomplete,
        Self::GroupShort,
        Self::NoNodes,
        Self::NodeName,
        Self::NodeUnschedulable,
        Self::NodeTaint,
        Self::NodeAffinity,
        Self::PortsTaken,
        Self::TooManyPods,
        Self::InsufficientCpu,
        Self::InsufficientMemory,
        Self::InsufficientEphemeral,
        Self::InsufficientScalar,
        Self::DiskInUse,
        Self::VolumeClaimInUse,
        Self::DriverMissing,
        Self::VolumeLimit,
        Self::VolumeElsewhere,
        Self::NoVolume,
        Self::StorageShort,
        Self::VolumeGone,
        Self::VolumeZone,
        Self::SpreadKeyMissing,
        Self::SpreadUnmet,
        Self::PodAffinityUnmet,
        Self::PodAntiAffinityUnmet,
        Self::RepelledByPod,
        Self::ClaimElsewhere,
        Self::BindingFailed,
        Self::NoDevices,
        Self::PoolIncomplete,
        Self::PoolInvalid,
        Self::SelectorError,
        Self::SelectorFalse,
        Self::TooFewDevices,
        Self::DevicesKeptBack,
        Self::DeviceTainted,
        Self::DevicesTaken,
        Self::CapacityShort,
        Self::CountersShort,
        Self::AttributeMissing,
        Self::MatchUnmet,
        Self::DistinctUnmet,
        Self::LinksUnknown,
        Self::AlignUnmet,
        Self::NotTogether,
        Self::SearchBound,
        Self::FeatureMissing,
    ];

    #[expect(clippy::too_many_lines, reason = "a table: a row for each reason, and no more to it")]
    pub(crate) fn row(self) -> Row {
        use CureKind as C;
        use Scope::{Device as D, Node as N, Object as O};
        use Wake as W;
        match self {
            Self::AdmissionRefused => row("AdmissionRefused", "", O, W::Object, C::Object),
            Self::QuotaExceeded => row("QuotaExceeded", "", O, W::Room, C::Reduce),
            Self::Gated => row("SchedulingGated", "SchedulingGates", O, W::Object, C::Wait),
            Self::VolumeClaimMissing => {
                row("VolumeClaimMissing", RESTRICTIONS, O, W::Object, C::Object)
            }
            Self::VolumeClaimNotMade => row("VolumeClaimNotMade", BINDING, O, W::Object, C::Wait),
            Self::VolumeClaimLost => row("VolumeClaimLost", BINDING, O, W::Object, C::Object),
            Self::VolumeClaimDeleting => {
                row("VolumeClaimBeingDeleted", BINDING, O, W::Object, C::Wait)
            }
            Self::VolumeClaimOfOther => {
                row("VolumeClaimOfOtherPod", BINDING, O, W::Object, C::Object)
            }
            Self::VolumeClaimUnbound => row("VolumeClaimUnbound", BINDING, O, W::Object, C::Wait),
            Self::VolumeMissing => row("VolumeMissing", "VolumeZone", O, W::Object, C::Object),
            Self::ClaimMissing => row("ClaimMissing", DRA, O, W::Object, C::Object),
            Self::TemplateMissing => row("ClaimTemplateMissing", DRA, O, W::Object, C::Object),
            Self::ClaimOfOther => row("ClaimOfOtherPod", DRA, O, W::Object, C::Object),
            Self::ClaimDeleting => row("ClaimBeingDeleted", DRA, O, W::Object, C::Wait),
            Self::ClassMissing => row("DeviceClassMissing", DRA, O, W::Object, C::Object),
            Self::SelectorInvalid => row("SelectorInvalid", DRA, O, W::Object, C::Object),
            Self::RequestUnsupported => row("RequestUnsupported", DRA, O, W::Object, C::Object),
            Self::TooManyDevices => row("TooManyDevices", DRA, O, W::Object, C::Reduce),
            Self::TooManyUsers => row("TooManyClaimUsers", DRA, O, W::Release, C::EndPods),
            Self::GroupIncomplete => row("GroupIncomplete", "", Scope::Group, W::Object, C::Object),
            Self::GroupShort => row("GroupShort", "", Scope::Group, W::Room, C::EndPods),
            Self::NoNodes => row("NoNodes", "", O, W::Node, C::Object),
            Self::NodeName => row("NodeName", "NodeName", N, W::Node, C::Relax),
            Self::NodeUnschedulable => {
                row("NodeUnschedulable", "NodeUnschedulable", N, W::Node, C::Heal)
            }
            Self::NodeTaint => row("NodeTaint", "TaintToleration", N, W::Node, C::Relax),
            Self::NodeAffinity => row("NodeAffinity", "NodeAffinity", N, W::Node, C::Relax),
            Self::PortsTaken => row("HostPortTaken", "NodePorts", N, W::Room, C::EndPods),
            Self::TooManyPods => row("TooManyPods", FIT, N, W::Room, C::EndPods),
            Self::InsufficientCpu => row("InsufficientCPU", FIT, N, W::Room, C::EndPods),
            Self::InsufficientMemory => row("InsufficientMemory", FIT, N, W::Room, C::EndPods),
            Self::InsufficientEphemeral => {
                row("InsufficientEphemeralStorage", FIT, N, W::Room, C::EndPods)
            }
            Self::InsufficientScalar => row("InsufficientResource", FIT, N, W::Room, C::EndPods),
            Self::DiskInUse => row("DiskInUse", RESTRICTIONS, N, W::Room, C::EndPods),
            Self::VolumeClaimInUse => row("VolumeClaimInUse", RESTRICTIONS, N, W::Room, C::EndPods),
            Self::DriverMissing => row("CSIDriverMissing", LIMITS, N, W::Node, C::Object),
            Self::VolumeLimit => row("TooManyVolumes", LIMITS, N, W::Room, C::EndPods),
            Self::VolumeElsewhere => row("VolumeElsewhere", BINDING, N, W::Node, C::Object),
            Self::NoVolume => row("NoVolumeForClaim", BINDING, N, W::Object, C::Object),
            Self::StorageShort => {
                row("InsufficientStorageCapacity", BINDING, N, W::Room, C::Object)
            }
            Self::VolumeGone => row("VolumeGone", BINDING, N, W::Object, C::Object),
            Self::VolumeZone => row("VolumeInOtherZone", "VolumeZone", N, W::Node, C::Object),
            Self::SpreadKeyMissing => row("SpreadLabelMissing", SPREAD, N, W::Node, C::Relax),
            Self::SpreadUnmet => row("SpreadSkewed", SPREAD, N, W::Room, C::Relax),
            Self::PodAffinityUnmet => row("PodAffinity", NEAR, N, W::Room, C::Relax),
            Self::PodAntiAffinityUnmet => row("PodAntiAffinity", NEAR, N, W::Room, C::EndPods),
            Self::RepelledByPod => row("PodAntiAffinityOfOthers", NEAR, N, W::Room, C::EndPods),
            Self::ClaimElsewhere => row("ClaimAllocatedElsewhere", DRA, N, W::Release, C::EndPods),
            Self::BindingFailed => row("BindingFailed", DRA, N, W::Release, C::EndPods),
            Self::PoolIncomplete => row("PoolIncomplete", DRA, D, W::Devices, C::Wait),
            Self::PoolInvalid => row("PoolInvalid", DRA, D, W::Devices, C::Object),
            Self::NoDevices => row("NoDevices", DRA, D, W::Devices, C::Object),
            Self::SelectorError => row("SelectorError", DRA, D, W::Devices, C::Relax),
            Self::SelectorFalse => row("SelectorMatchesNone", DRA, D, W::Devices, C::Relax),
            Self::TooFewDevices => row("TooFewDevices", DRA, D, W::Devices, C::Reduce),
            Self::DevicesKeptBack => row("DevicesKeptBack", DRA, D, W::Devices, C::Relax),
            Self::DeviceTainted => row("DeviceTainted", DRA, D, W::Devices, C::Heal),
            Self::DevicesTaken => row("DevicesTaken", DRA, D, W::Release, C::EndPods),
            Self::CapacityShort => row("CapacityShort", DRA, D, W::Release, C::EndPods),
            Self::CountersShort => row("CountersShort", DRA, D, W::Release, C::EndPods),
            Self::AttributeMissing => row("AttributeMissing", DRA, D, W::Devices, C::Relax),
            Self::MatchUnmet => row("MatchAttributeUnmet", DRA, D, W::Release, C::Relax),
            Self::DistinctUnmet => row("DistinctAttributeUnmet", DRA, D, W::Release, C::Relax),
            Self::LinksUnknown => row("LinksUnknown", DRA, D, W::Devices, C::Relax),
            Self::AlignUnmet => row("AlignUnmet", DRA, D, W::Release, C::Relax),
            Self::NotTogether => row("RequestsNotTogether", DRA, D, W::Release, C::EndPods),
            Self::SearchBound => row("SearchBound", DRA, D, W::Release, C::Wait),
            Self::FeatureMissing => {
                row("NodeFeatureMissing", "NodeDeclaredFeatures", N, W::Node, C::Relax)
            }
        }
    }

    /// The stage at which too few devices are left; none where it is not about single devices.
    pub fn stage(self) -> Option<DeviceStage> {
        match self {
            Self::SelectorError | Self::SelectorFalse | Self::TooFewDevices => {
                Some(DeviceStage::Selected)
            }
            // Between the two: what is kept back is neither tolerated nor free.
            Self::DevicesKeptBack | Self::DeviceTainted => Some(DeviceStage::Tolerated),
            Self::DevicesTaken => Some(DeviceStage::Free),
            Self::CapacityShort | Self::CountersShort | Self::NotTogether | Self::LinksUnknown => {
                Some(DeviceStage::Fitting)
            }
            Self::AttributeMissing | Self::MatchUnmet | Self::DistinctUnmet | Self::AlignUnmet => {
                Some(DeviceStage::Together)
            }
            Self::AdmissionRefused
            | Self::QuotaExceeded
            | Self::Gated
            | Self::VolumeClaimMissing
            | Self::VolumeClaimNotMade
            | Self::VolumeClaimLost
            | Self::VolumeClaimDeleting
            | Self::VolumeClaimOfOther
            | Self::VolumeClaimUnbound
            | Self::VolumeMissing
            | Self::DiskInUse
            | Self::VolumeClaimInUse
            | Self::DriverMissing
            | Self::VolumeLimit
            | Self::VolumeElsewhere
            | Self::NoVolume
            | Self::StorageShort
            | Self::VolumeGone
            | Self::VolumeZone
            | Self::FeatureMissing
            | Self::ClaimMissing
            | Self::TemplateMissing
            | Self::ClaimOfOther
            | Self::ClaimDeleting
            | Self::ClassMissing
            | Self::SelectorInvalid
            | Self::RequestUnsupported
            | Self::TooManyDevices
            | Self::TooManyUsers
            | Self::GroupIncomplete
            | Self::GroupShort
            | Self::NoNodes
            | Self::NodeName
            | Self::NodeUnschedulable
            | Self::NodeTaint
            | Self::NodeAffinity
            | Self::PortsTaken
            | Self::TooManyPods
            | Self::InsufficientCpu
            | Self::InsufficientMemory
            | Self::InsufficientEphemeral
            | Self::InsufficientScalar
            | Self::SpreadKeyMissing
            | Self::SpreadUnmet
            | Self::PodAffinityUnmet
            | Self::PodAntiAffinityUnmet
            | Self::RepelledByPod
            | Self::ClaimElsewhere
            | Self::BindingFailed
            | Self::NoDevices
            | Self::PoolIncomplete
            | Self::PoolInvalid
            | Self::SearchBound => None,
        }
    }

    /// How far a node got that fell for it: more is a nearer miss. A node from which an allocated
    /// claim can't be used is no nearer than one that the pod may not go to.
    pub(crate) fn progress(self) -> u8 {
        let claims = [Self::ClaimElsewhere, Self::BindingFailed];
        if claims.contains(&self) { Self::NodeAffinity as u8 } else { self as u8 }
    }

    /// Stable name for scripts, condition reasons and metric labels.
    pub fn code(self) -> &'static str {
        self.row().code
    }

    /// kube-scheduler's plugin that makes this check; empty where none does.
    pub fn check(self) -> &'static str {
        self.row().check
    }

    /// What it is about.
    pub fn scope(self) -> Scope {
        self.row().scope
    }

    /// What could change it.
    pub fn wake(self) -> Wake {
        self.row().wake
    }

    /// Which kind of cure it has.
    pub fn cure(self) -> CureKind {
        self.row().cure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_every_reason_once_in_order_and_codes_differ() {
        assert!(Reason::ALL.windows(2).all(|w| w[0] < w[1]));
        let mut codes: Vec<_> = Reason::ALL.iter().map(|r| r.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Reason::ALL.len());
    }
}
